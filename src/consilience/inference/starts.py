"""Where the EM loop starts: from votes, from moments, from another model, from given matrices, or at random."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import lookup, to_column
from ..answers.random_choices import hash_ids
from ..arguments import to_floats
from ..errors import (
    DataWarning,
    InputError,
    NotFittedError,
    ParameterError,
    Sentence,
    listing,
    parameter_error,
    warn,
)
from ..kernels import Floats, freeze
from . import Distributions
from .em import Parameters, Problem, expect_from_votes, maximise
from .moments import MomentFit, answers_to_match, find_obstacles, learn_moments
from .preconditions import check_moments, fixed_prior
from .sources import Source
from .structures import StructureParameters, Trail
from .workers.priors import make_pair

if TYPE_CHECKING:
    from .estimator import LatentEstimator

# With so many answers, the loop starts from what was learned.
LARGE = 500_000


def goes_on(source: Source) -> bool:
    """Whether the loop starts where the fit before ended; few answers are fitted anew in no time."""
    return source.before is not None and source.responses.n_responses >= LARGE


def find_starts(model: LatentEstimator, problem: Problem, source: Source) -> dict[str, Parameters]:
    """The parameters to start from, by name: those asked for by `start`, then `n_init - 1` random ones.

    A large fit that goes on from another has one start: where that one ended.
    """
    from .estimator import Estimator

    r = source.responses
    if goes_on(source):
        reached = go_on(source.before, problem, r, model.max_iter)
        if reached is not None:
            return {"update": reached}
    votes = expect_from_votes(problem)
    by_vote = maximise(problem, votes)
    plain = problem.workers.plain_mean(by_vote.workers, votes.counts, problem.prior)

    def settle(confusion: Floats, structure: StructureParameters = by_vote.structure) -> Parameters:
        given = Parameters(problem.workers.given(confusion), structure, problem.prior)
        if model.max_iter == 0:
            return given  # it is not a start then, but the result
        # Given matrices have no prior term, so that their objective cannot be compared with that of other starts. One
        # E- and M-step gives parameters that can.
        return maximise(problem, problem.expect(given, Trail()))

    starts: dict[str, Parameters] = {}
    if isinstance(model.start, Estimator):
        starts["model"] = settle(confusion_of_model(model.start, r, plain))
    elif not isinstance(model.start, str):
        starts["given"] = settle(given_confusion(model, r))
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
            found = moments_of(model, r, plain, by_vote.structure.mean)
            if found is None:
                starts["majority"] = by_vote
            else:
                if model.max_iter > 0:
                    # Moments may put the prior of a rare class at zero, from where EM never returns: votes have their
                    # say.
                    found = found._replace(prior=(found.prior + by_vote.structure.mean) / 2)
                structure = model._start_from_moments(r, problem.structure, found)
                starts["moments"] = settle(found.confusion.transpose(0, 2, 1), structure)
    rng, order = np.random.default_rng(model.seed), np.argsort(hash_ids(r.workers))
    for i in range(1, model.n_init):
        starts[f"random {i}"] = settle(random_confusion(rng, plain, order))
    return starts


def go_on(before: Any, problem: Problem, r: Answers, max_iter: int) -> Parameters | None:
    """The parameters of the fit before, for answers that hold more; None if there are other labels or classes.

    Workers who were not there start as the crowd answers on the whole.
    """
    prior, learned, known, workers = problem.prior, before.learned, before.names, problem.workers
    worker, label, k = (
        lookup(old, to_column(there))
        for old, there in ((known.workers, r.workers), (known.labels, r.labels), (known.classes, r.classes))
    )
    if learned.kind != workers.name or (label < 0).any() or not np.array_equal(k, np.arange(len(known.classes))):
        return None
    if prior.parts is not None and before.course.smoothing is not None:
        prior = make_pair(prior, prior.parts, before.course.smoothing)
    crowd = np.log(np.maximum(learned.crowd, np.finfo(np.float64).tiny))
    logs = freeze(workers.adopt(learned.log_weights, crowd, worker, label))
    given = Parameters(Distributions(freeze(np.exp(logs)), logs, logs, 0.0), learned.structure, prior)
    return given if max_iter == 0 else maximise(problem, problem.expect(given, Trail()), prior)


def is_start(name: str) -> bool:
    """Tell whether `find_starts`, or a model itself, gives a start this name.

    >>> is_start("random 2"), is_start("votes")
    (True, False)
    """
    return (
        re.fullmatch(r"update|model|given|earlier|dawid-skene|majority|climbing|moments|random [1-9][0-9]*", name)
        is not None
    )


def moments_of(model: LatentEstimator, r: Answers, plain: Floats, prior: Floats) -> MomentFit | None:
    """Matrices and prior by moments, ready to start from; say what keeps them from being good ones.

    None if they would take very long, or more memory than there is.
    """
    given = fixed_prior(model, r)
    answers = answers_to_match(r)
    try:
        check_moments(type(model).__name__, answers, in_sequences=model._is_chain)
    except InputError as error:
        use = Sentence("Use {start}.", start="majority")
        warn(DataWarning(f"The fit does not start from moments. {error.problem}", use, keyword="start"))
        return None
    found = learn_moments(answers, plain, prior if given is None else given, learn_prior=given is None)
    for obstacle in find_obstacles(answers, found.confusion) if model.start == "moments" else ():
        warn(DataWarning(f"Moments are a poor start here. {obstacle}"))
    return found


def confusion_of_model(model: Any, r: Answers, plain: Floats) -> Floats:
    """A fitted model's matrices for the workers it knows, the vote's for the others."""
    if model._result is None:
        raise NotFittedError(
            f"The {type(model).__name__} to start from is not fitted yet.", "Fit it first.", keyword="start"
        )
    names, matrices = model._result.names, model._result.learned.confusion
    label = lookup(names.labels, to_column(r.labels))
    k = lookup(names.classes, to_column(r.classes))
    if (label < 0).any() or (k < 0).any():
        raise InputError(
            "The model to start from does not know all labels and classes of these answers: it has "
            f"{listing(names.labels.tolist())}.",
            keyword="start",
        )
    if r.silence_counts and matrices.shape[2] == len(names.labels):
        raise InputError(
            "The model to start from takes silence for no answer.",
            Sentence("Fit it to answers with the same {abstain}."),
            keyword="start",
        )
    worker = lookup(names.workers, to_column(r.workers))
    confusion = plain.transpose(0, 2, 1).copy()
    known = worker >= 0
    if r.silence_counts:
        label = np.append(label, matrices.shape[2] - 1)
    found = matrices[worker[known]][:, k][:, :, label]
    mass = found.sum(axis=2, keepdims=True)
    # A worker who, by that model, never says any of these labels: the vote knows better.
    confusion[known] = np.divide(found, mass, out=confusion[known], where=mass > 0)
    return confusion


def given_confusion(model: LatentEstimator, r: Answers) -> Floats:
    """The parameter `start` as confusion matrices (M, K, L)."""
    shape = (r.n_workers, r.n_classes, r.n_labels + r.silence_counts)
    expected = (
        f"{', '.join(map(repr, model._start_choices))}, a fitted model, or an array of confusion matrices of shape "
        f"{shape} (workers, classes, labels) whose rows sum to 1"
    )
    try:
        confusion = to_floats(model.start)
    except (TypeError, ValueError) as error:
        raise parameter_error("start", type(model).__name__, expected, model.start) from error
    if confusion.shape == shape[1:]:
        confusion = np.broadcast_to(confusion, shape)
    if confusion.shape != shape or not (confusion >= 0).all() or not np.allclose(confusion.sum(axis=2), 1, atol=1e-6):
        raise parameter_error("start", type(model).__name__, expected, model.start)
    return confusion


def random_confusion(rng: np.random.Generator, mean: Floats, order: NDArray[np.int64]) -> Floats:
    """The vote's matrices, blurred: half of each is a random distribution, drawn for workers in this order."""
    confusion = mean.transpose(0, 2, 1)
    noise = np.zeros(confusion.shape)
    noise[order] = rng.dirichlet(np.ones(confusion.shape[2]), size=confusion.shape[:2])
    return 0.5 * confusion + 0.5 * noise
