"""What is checked before a fit, and where the loop starts: from votes, moments, a model, matrices, or at random.

Checked are parameters, memory, of which a few thousand labels need too much, and time for moments. A sweep of moment
matching is linear in the answers, but with K classes every set of workers has K (K + 1) / 2 products and every worker's
problem takes L K^2 steps an iteration: with hundreds of classes that is hours, for matrices that a few answers per
entry cannot determine anyway. Each check is about the largest thing of its kind, and asks for less than was measured:
what might fit is tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import lookup, to_column
from ..answers.gold import find_classes
from ..answers.random_choices import hash_ids
from ..errors import InputError, NotFittedError, ParameterError, Python, Sentence, listing, parameter_error, plural
from ..kernels import Floats
from ..limits import NUMBER, are_allowed, available_memory, require_few, require_memory
from ..options import to_floats
from .em import Parameters, Problem, expect_from_votes
from .moments import answers_to_match, lay_out, learn_moments
from .observations import Observations
from .structures import StructureParameters, Trail
from .workers.base import WorkerModel

if TYPE_CHECKING:
    from .estimator import LatentEstimator

# How many tables of all matrices there are at a time: in a fit (measured: 17 to 20), in one that is repeated with part
# of the answers (25), in those that a vote makes (6 to 7), and where known matrices are applied to other answers
# (4).
FIT_TABLES, HIDING_TABLES, VOTE_TABLES, PREDICTION_TABLES = 12, 16, 6, 2
# The same of all posteriors.
POSTERIOR_TABLES = 2
# The most classes of a chain, whose time grows with their square at each position: of few answers, and of many.
FEW_CHAINED, MOST_CHAINED = 100, 200
MERGE = "Merge rare or misspelt labels."
NAME_CLASSES = Sentence("Name the few classes that can be true with {classes}.")
# The pseudo-counts of EM, off the diagonal and on it, unless others are given.
PAIR = (0.1, 1.1)
# Pseudo-counts beyond these mean the same, and their sums and inverses are still numbers.
SMOOTHING_RANGE = (1e-300, 1e100)


def given_pair(smoothing: Any) -> tuple[float, float] | None:
    """The pair (off diagonal, diagonal) that a parameter stands for; None for an array."""
    if isinstance(smoothing, str):
        return PAIR
    array = np.asarray(smoothing, dtype=np.float64)
    if array.ndim > 1:
        return None
    off, diagonal = np.broadcast_to(array, 2).tolist()
    return off, diagonal


def check_unnamed(owner: Any, name: str) -> None:
    """Raise an error if a parameter has names for classes, which may be in another order."""
    value = getattr(owner, name)
    if isinstance(value, Mapping) or hasattr(value, "reindex"):
        raise parameter_error(name, type(owner).__name__, "an array in the order of the classes, without names", value)


def fixed_prior(owner: Any, r: Answers) -> Floats | None:
    """The parameter `prior` as probabilities, or None if the prior is to be learned.

    A dict, or a Series, names the classes, in any order. A Series without names has them in order.
    """
    name, value = type(owner).__name__, owner.prior
    if isinstance(value, str) and value == "learn":
        return None
    if isinstance(value, str) and value == "uniform":
        return np.full(r.n_classes, 1 / r.n_classes)
    names = listing(r.classes.tolist())
    expected = f"'learn', 'uniform' or {r.n_classes} probabilities that sum to 1 (classes: {names})"
    if isinstance(value, Mapping) or hasattr(value, "reindex"):
        named = dict(value.items())
        place = find_classes(to_column(list(named)), r.classes, r.normalised)
        if np.array_equal(np.sort(place), np.arange(r.n_classes)):
            value = [list(named.values())[at] for at in np.argsort(place)]
        elif isinstance(value, Mapping) or list(named) != list(range(len(named))):
            raise parameter_error("prior", name, f"a probability for each of the classes {names}", list(named))
    try:
        prior = to_floats(value)
    except (TypeError, ValueError) as error:
        raise parameter_error("prior", name, expected, owner.prior) from error
    if prior.shape != (r.n_classes,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-6:
        raise parameter_error("prior", name, expected, owner.prior)
    return np.asarray(prior / prior.sum())


def check_matrices(owner: str, workers: WorkerModel, r: Answers, n_tables: int = FIT_TABLES) -> None:
    """Raise an error if the matrices of all workers cannot be held in memory, or are too many for so few answers."""
    n_entries = math.prod(workers.table_shape)
    needed = n_tables * NUMBER * n_entries
    if are_allowed(needed, "entries", n_entries, r.n_responses):
        return
    # As many labels as classes in the end, or both smaller by the same factor.
    n_fitting = math.isqrt(int(workers.n_labels**2 * min(available_memory() / max(needed, 1), 1)))
    merge = f"Merge rare or misspelt labels: up to about {n_fitting:,} would fit."
    vote = Sentence("Or use {model}, which needs no matrices.", model=Python("MajorityVote", "majority"))
    remedies: tuple[str | Sentence, ...] = (merge, NAME_CLASSES)
    if owner == "DawidSkene" and not workers.silent:
        remedies += (Sentence("Or use {workers}, who have one accuracy each.", workers="one-coin"),)
    if owner != "MajorityVote":
        remedies += (vote,)
    require_numbers("entries", n_entries, needed, r, f"{owner} needs matrices for {workers.describe_size()}", remedies)


def require_numbers(
    what: str, n_numbers: int, n_bytes: float, r: Answers, problem: str, remedies: tuple[str | Sentence, ...]
) -> None:
    """Raise an error if numbers cannot be held in memory, or are far more than answers to find them from."""
    require_memory(n_bytes, problem, *remedies, keyword="classes")
    size = f"{problem}: {n_numbers:,} numbers from {plural(r.n_responses, 'answer')}"
    require_few(what, n_numbers, size, *remedies, n=r.n_responses, keyword="classes")


def check_moments(owner: str, r: Answers, in_sequences: bool = False) -> None:
    """Raise an error if moments of answers take very long, or their products cannot be held in memory.

    In each sweep there is a product of each pair of classes for each member of a set of workers, and a worker's problem
    takes L K^2 steps an iteration. Transitions, in sequences, are a problem of K^2 numbers.
    """
    layout, n_pairs = lay_out(r), r.n_classes * (r.n_classes + 1) // 2
    n_steps = len(layout.members) * n_pairs + 4 * r.n_workers * r.n_labels * r.n_classes**2
    n_numbers = (r.n_workers + 2 * len(layout.set_size)) * n_pairs
    if in_sequences:
        n_steps += r.n_classes**6 // 50
        n_numbers += 2 * r.n_classes**4
    problem = f"{owner} needs the moments of {plural(r.n_items, 'item')} for all pairs of {r.n_classes:,} classes"
    remedies = MERGE, NAME_CLASSES, Sentence("Or use {model}.", model=Python("DawidSkene", "dawid-skene"))
    require_numbers("steps of moments", n_steps, NUMBER * n_numbers, r, problem, remedies)


def check_transitions(owner: str, r: Answers) -> None:
    """Raise an error if the transition matrix cannot be held in memory, or takes too long at each position."""
    needed = f"transitions for {r.n_classes:,} x {r.n_classes:,} classes"
    n_bytes = NUMBER * 2 * r.n_classes**2
    require_memory(n_bytes, f"{owner} needs {needed}", MERGE, NAME_CLASSES, keyword="classes")
    most = min(max(FEW_CHAINED, math.isqrt(r.n_responses)), MOST_CHAINED)
    if r.n_classes > most:
        raise InputError(
            f"{owner} needs {needed} at each position, and takes at most {most:,} classes"
            f"{f' for {r.n_responses:,} answers' if most < MOST_CHAINED else ''}.",
            MERGE,
            NAME_CLASSES,
            Sentence("Or use {model}, which needs no transitions.", model=Python("MajorityVote", "majority")),
            keyword="classes",
        )


def find_starts(model: LatentEstimator, problem: Problem, observations: Observations) -> dict[str, Parameters]:
    """The parameters to start from, by name: those that `start` names, then `n_init - 1` random ones."""
    from .estimator import Estimator

    r = observations.responses
    votes = expect_from_votes(problem)
    by_vote = problem.maximise(votes)

    def find_matrices() -> Floats:
        """The matrices (M, K, A) that the votes make."""
        workers, moments = problem.workers, by_vote.workers
        mean = workers.plain_mean(moments, votes.counts, problem.prior).transpose(0, 2, 1)
        return workers.matrices(mean, workers.further_arrays(moments, votes.counts), r.n_classes)

    def start_from(confusion: Floats, structure: StructureParameters = by_vote.structure) -> Parameters:
        given = Parameters(problem.workers.given(confusion), structure, problem.prior)
        if model.max_iter == 0:
            return given  # it is not a start then, but the result
        # Given matrices have no prior term, so that their objective cannot be compared with that of other starts. One
        # E- and M-step gives parameters that can.
        return problem.maximise(problem.expect(given, Trail()))

    starts: dict[str, Parameters] = {}
    if isinstance(model.start, Estimator):
        starts["model"] = start_from(confusion_of_model(model.start, r, find_matrices()))
    elif not isinstance(model.start, str):
        shape = (r.n_workers, r.n_classes, r.n_labels + r.silence_counts)
        expected = (
            f"{', '.join(map(repr, model._start_choices))}, a fitted model, or an array of confusion matrices of shape "
            f"{shape} (workers, classes, labels) whose rows sum to 1"
        )
        try:
            given = to_floats(model.start)
        except (TypeError, ValueError) as error:
            raise parameter_error("start", type(model).__name__, expected, model.start) from error
        given = np.broadcast_to(given, shape) if given.shape == shape[1:] else given
        if given.shape != shape or not (given >= 0).all() or not np.allclose(given.sum(axis=2), 1, atol=1e-6):
            raise parameter_error("start", type(model).__name__, expected, model.start)
        starts["given"] = start_from(given)
    else:
        if model.start not in model._start_choices:
            choices = f"one of {', '.join(map(repr, model._start_choices))}"
            raise parameter_error("start", type(model).__name__, choices, model.start)
        if model.start in ("majority", "best"):
            starts["majority"] = by_vote
        if model.start in ("moments", "best"):
            if r.silence_counts:
                raise ParameterError(
                    "Moments take silence for no answer.",
                    Sentence("Use {start} with {abstain}.", start="majority", abstain="answer"),
                    keyword="start",
                )
            fixed, answers, prior = fixed_prior(model, r), answers_to_match(r), by_vote.structure.mean
            check_moments(type(model).__name__, answers, in_sequences=model._is_chain)
            plain = find_matrices().transpose(0, 2, 1)
            moments = learn_moments(answers, plain, prior if fixed is None else fixed, learn_prior=fixed is None)
            if model.max_iter > 0:
                # Moments may put the prior of a rare class at zero, from where EM never returns: votes have their say.
                moments = moments._replace(prior=(moments.prior + prior) / 2)
            structure = model._start_from_moments(r, problem.structure, moments)
            starts["moments"] = start_from(moments.confusion.transpose(0, 2, 1), structure)
    rng, order = np.random.default_rng(model.seed), np.argsort(hash_ids(r.workers))
    confusion = find_matrices() if model.n_init > 1 else np.empty(0)
    for i in range(1, model.n_init):
        # The vote's matrices, blurred: half of each is a random distribution.
        noise = np.zeros(confusion.shape)
        noise[order] = rng.dirichlet(np.ones(confusion.shape[2]), size=confusion.shape[:2])
        starts[f"random {i}"] = start_from(0.5 * confusion + 0.5 * noise)
    return starts


def confusion_of_model(model: Any, r: Answers, confusion: Floats) -> Floats:
    """A fitted model's matrices for the workers it knows, the vote's for the others."""
    if model._result is None:
        raise NotFittedError(
            f"The {type(model).__name__} to start from is not fitted yet.", "Fit it first.", keyword="start"
        )
    names, matrices = model._result.names, model._result.estimates.matrices
    label = lookup(names.labels, to_column(r.labels))
    k = lookup(names.classes, to_column(r.classes))
    silent = matrices.shape[2] > len(names.labels)
    if (label < 0).any() or (k < 0).any() or (r.silence_counts and not silent):
        has = f"It has {listing(names.labels.tolist())}{' and silence' if silent else ''}."
        raise InputError(
            f"The model to start from does not know all labels and classes of these answers. {has}", keyword="start"
        )
    worker = lookup(names.workers, to_column(r.workers))
    confusion = confusion.copy()
    known = worker >= 0
    if r.silence_counts:
        label = np.append(label, matrices.shape[2] - 1)
    learned = matrices[worker[known]][:, k][:, :, label]
    mass = learned.sum(axis=2, keepdims=True)
    # A worker who, by that model, never says any of these labels: the vote knows better.
    confusion[known] = np.divide(learned, mass, out=confusion[known], where=mass > 0)
    return confusion
