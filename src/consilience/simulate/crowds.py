"""The simulators of crowds, and what they return: answers, truth, true parameters, and what could be known at best.

What is drawn are workers (what kinds there are, how each confuses the classes, what they say) and what ties labels of
items together: Markov chains, and edges mostly within a class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.answers import Answers
from ..answers.columns import Indices, Values
from ..answers.graph import Graph
from ..answers.keys import Sequences
from ..errors import ParameterError, Sentence, parameter_error, plural
from ..inference.workers.ordinal import rate
from ..kernels import Floats
from ..limits import NUMBER, require_memory
from ..options import SHARE, Domain, check, is_whole, number, to_floats, whole

# Answers drawn at a time: what is needed meanwhile stays in the processor's cache.
CHUNK = 1 << 16
# From one in so many workers on, drawing again whoever was drawn before takes longer than drawing lots for everyone.
MANY_EDGES = 8
# Without any noise, answers would be impossible, and a spread of 0 stands for this one.
LEAST_NOISE = 1e-3


@dataclass(frozen=True, eq=False)
class TrueParameters:
    """What the data were drawn from.

    Attributes
    ----------
    prior : ndarray
        Class probabilities; of a chain, those it keeps.
    confusion : ndarray
        ``confusion[worker, truth, answer]``.
    kinds : ndarray
        What each worker is: honest, spammer, adversary or copycat.
    copies : ndarray
        Index of the worker whose answers each worker repeats; -1 for workers with answers of their own.
    transition, initial : ndarray or None
        ``transition[from, to]`` and the distribution of first labels, if the truth is a Markov chain.
    coupling : float or None
        In a network: by how many nats an edge speaks for its ends being of one class.
    hard : float
        Share of items on which all workers err together.
    bias, spread, careless : ndarray or None
        Of each rater on a scale, in levels; carelessness is a share of the answers.
    """

    prior: Floats
    confusion: Floats
    kinds: NDArray[np.str_]
    copies: Indices
    transition: Floats | None = None
    initial: Floats | None = None
    coupling: float | None = None
    hard: float = 0.0
    bias: Floats | None = None
    spread: Floats | None = None
    careless: Floats | None = None


@dataclass(frozen=True, eq=False)
class Oracle:
    """The best labels that the answers allow: those of a judge who knows the true parameters, but not the truth.

    Attributes
    ----------
    posterior : ndarray
        Class probabilities of each item, rows in the order of `responses.items`.
    labels : ndarray
        The most probable class of each item; of a sequence the most probable labels taken together (Viterbi).
    """

    posterior: Floats
    labels: Values


@dataclass(frozen=True, eq=False)
class Simulation:
    """Answers and what is behind them.

    Attributes
    ----------
    responses : Answers
        The answers.
    truth : ndarray
        The true class of each item, in the order of `responses.items`.
    parameters : TrueParameters
        What both were drawn from.
    graph : Graph or None
        The network, if there is one.
    """

    responses: Answers
    truth: Values
    parameters: TrueParameters
    graph: Graph | None = None

    def __repr__(self) -> str:
        graph = "" if self.graph is None else f", graph with {self.graph.n_edges:,} edges"
        return f"Simulation({self.responses!r}{graph})"

    def oracle(self) -> Oracle:
        """The best that can be made of the answers: the posterior under the true parameters.

        No method is right about more items on average than the most probable class of each, so that this is the
        ceiling for all of them. Answers of copycats say nothing that their originals have not said, and are left out.
        In networks it is found by belief propagation: exact on trees, an approximation elsewhere.

        Returns
        -------
        Oracle

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(2000, answers_per_item=5, accuracy=(0.4, 0.9), seed=1)
        >>> for labels in (cs.MajorityVote().fit(crowd.responses).labels_, crowd.oracle().labels):
        ...     print(f"{cs.metrics.accuracy(crowd.truth, labels):.3f}")
        0.874
        0.930
        """
        from ..answers.answers import cut_blocks
        from ..answers.tagging import free_transitions
        from ..engines import Threads
        from ..inference.em import decode_labels, infer_posterior
        from ..inference.structures import Independent
        from ..inference.structures.chain import Chain
        from ..inference.structures.field import Field
        from ..inference.workers.base import ConfusionWorkers

        true, prior = self.parameters, self.parameters.prior
        structure: Any
        if self.graph is not None and true.coupling is not None:
            structure = Field(len(prior), prior, 0.0, "em", true.coupling, "belief_propagation").given(prior)
        elif true.transition is not None and true.initial is not None:
            chain = Chain(len(prior), prior, 0.0, "em", 1.0, free_transitions(len(prior)))
            structure = chain.given(prior, true.initial, true.transition)
        else:
            structure = Independent(len(prior), prior, 0.0, "em").given(prior)
        r = self.responses.keep(true.copies[self.responses.worker] < 0)
        workers = ConfusionWorkers(r.n_workers, r.class_of_label, r.n_classes)
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows)
        known = Threads(), blocks, workers.factors(workers.given(true.confusion).log_weights), structure
        posterior, _ = infer_posterior(*known, self.graph)
        codes = posterior.argmax(axis=1) if self.graph is not None else decode_labels(*known)
        return Oracle(posterior, r.classes[codes])


def independent(
    n_items: int = 1000,
    n_workers: int = 10,
    n_classes: int = 4,
    *,
    answers_per_item: int | None = None,
    good: str | int = "most",
    accuracy: ArrayLike | None = None,
    spammers: int = 0,
    adversaries: int = 0,
    copycats: int = 0,
    hard: float = 0.0,
    activity: str = "equal",
    prior: ArrayLike | None = None,
    seed: int = 0,
) -> Simulation:
    """Draw a crowd that answers about independent items.

    Parameters
    ----------
    n_items, n_workers, n_classes : int
        Sizes.
    answers_per_item : int, optional
        How many different workers answer each item; default: all. Answers of copycats come on top.
    good : {"most", "all"} or int
        How many of the random confusion matrices are made better than random (the largest entry of each row is on the
        diagonal): floor(M/2)+1, all, or a number. The rest are as drawn.
    accuracy : float, tuple or array, optional
        Instead of random matrices: the probability of the right answer, errors spread evenly. One number for all, a
        tuple (lowest, highest) to draw from, or an array with one number per honest worker.
    spammers, adversaries, copycats : int
        How many of the workers answer at random, with a taste of their own; are wrong on purpose, so that the right
        answer is their least likely; or repeat the answers of one of the others, in turn, to whatever that one
        answered. Honest workers come first, then these, in this order.
    hard : float
        Share of items, drawn at random, on which all workers err together: they answer as if another class, the same
        for all, were true. The oracle does not know which items these are.
    activity : {"equal", "unequal"}
        Whether workers answer equally often, or few answer much and many little (as 1 / rank, in random order).
    prior : array, optional
        Class probabilities; default: equal.
    seed : int
        Same seed, same crowd. The matrices depend only on the seed and the parameters of the workers: with more items,
        or more answers per item, the workers stay the same.

    Returns
    -------
    Simulation
        With `responses`, `truth`, `parameters` and `oracle`.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(500, n_workers=30, n_classes=3, answers_per_item=5, spammers=4, seed=1)
    >>> crowd.responses
    Answers(2,500 answers: 500 items x 30 workers, 3 classes: 0, 1, 2)
    >>> crowd.truth[:5]
    array([2, 0, 1, 0, 0])
    """
    workers = n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, hard, activity
    crew = Crew(seed, n_items, *workers)
    shares = check_probabilities("prior", prior, n_classes)
    truth = crew.truth.choice(n_classes, size=n_items, p=shares)
    return _draw_crowd(crew, truth, np.arange(n_items), prior=shares)


def sequences(
    n_sequences: int = 25,
    length: int | tuple[int, int] = 40,
    n_workers: int = 10,
    n_classes: int = 4,
    *,
    transition: ArrayLike | None = None,
    stickiness: float = 0.0,
    seed: int = 0,
    **workers: Any,
) -> Simulation:
    """Draw a crowd that answers about sequences whose labels form a Markov chain.

    Parameters
    ----------
    n_sequences : int
        Number of sequences.
    length : int or (int, int)
        Items in each, or the least and the most.
    transition : array (K, K), optional
        ``transition[from, to]``; default: rows drawn uniformly from the simplex. Chains start in its stationary
        distribution.
    stickiness : float
        With this probability a label stays what it was, else it follows the transition matrix. In [0, 1).
    n_workers, n_classes, seed
        As in `independent`.
    **workers
        Who answers, as in `independent`: answers_per_item, good, accuracy, spammers, adversaries, copycats, hard,
        activity.

    Returns
    -------
    Simulation
        With `responses`, `truth` and `parameters`, which has `transition` (stickiness included) and `initial`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.sequences(100, length=(5, 30), answers_per_item=3, seed=1).responses
    Answers(4,941 answers: 1,647 items in 100 sequences x 10 workers, 4 classes: 0, 1, 2, 3)
    """
    from ..kernels.chain import sample_chains

    check_numbers(whole(1), n_sequences=n_sequences)
    check_numbers(number(0, 1 - 1e-9), stickiness=stickiness)
    shortest, longest = to_range(length)
    n_items = n_sequences * (shortest + longest) // 2
    crew = Crew(seed, n_items, n_workers, n_classes, **{"good": "most", **workers})
    if transition is None:
        moves = crew.structure.dirichlet(np.ones(n_classes), size=n_classes)
    else:
        moves = check_probabilities("transition", transition, n_classes, n_classes)
    moves = stickiness * np.eye(n_classes) + (1 - stickiness) * moves
    start = stationary_distribution(moves)
    lengths = crew.structure.integers(shortest, longest + 1, n_sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_items = int(offsets[-1])
    # Draws from (0, 1], so that what has probability 0 never happens.
    truth = sample_chains(offsets, cumulate(start), cumulate(moves), 1.0 - crew.truth.random(n_items))
    keys = Sequences(np.arange(n_sequences), offsets, np.arange(n_items) - np.repeat(offsets[:-1], lengths))
    return _draw_crowd(crew, truth, keys, prior=start, transition=moves, initial=start)


def network(
    n_items: int = 1000,
    n_workers: int = 10,
    n_classes: int = 4,
    *,
    degree: float = 5.0,
    homophily: float = 0.9,
    prior: ArrayLike | None = None,
    seed: int = 0,
    **workers: Any,
) -> Simulation:
    """Draw a crowd that answers about the nodes of a network whose edges mostly link items of one class.

    The graph is a stochastic block model: an edge joins two items of one class with probability `homophily`, and two of
    different classes otherwise; any two such items are as likely as any others.

    Parameters
    ----------
    degree : float
        Average number of neighbours.
    homophily : float
        Share of edges within a class.
    n_items, n_workers, n_classes, prior, seed
        As in `independent`.
    **workers
        Who answers, as in `independent`, but all honest workers are good by default: answers_per_item, good, accuracy,
        spammers, adversaries, copycats, hard, activity.

    Returns
    -------
    Simulation
        With `responses`, `truth`, `parameters` and `graph`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.network(1000, degree=4, seed=1).graph
    Graph(1,000 items, 2,000 edges, mean degree 4.00)
    """
    check_numbers(SHARE, homophily=homophily)
    crew = Crew(seed, n_items, n_workers, n_classes, **workers)
    check_numbers(number(0, n_items - 1), degree=degree)
    n_edges = round(n_items * degree / 2)
    require_memory(
        2 * NUMBER * n_edges, f"A network of {plural(n_edges, 'edge')} is too large", Sentence("Lower {degree}.")
    )
    shares = check_probabilities("prior", prior, n_classes)
    truth = crew.truth.choice(n_classes, size=n_items, p=shares)
    graph = Graph.from_edges(
        *draw_edges(crew.structure, truth, n_classes, n_edges, homophily), items=np.arange(n_items)
    )
    # By Bayes' rule an edge speaks for agreement by the odds that it lies within a class, over those of any pair.
    alike = float(np.sum(shares**2))
    odds = np.log(max(homophily, 1e-9) * (1 - alike) / (max(1 - homophily, 1e-9) * alike)) if alike < 1 else 0.0
    crowd = _draw_crowd(crew, truth, np.arange(n_items), prior=shares, coupling=max(float(odds), 0.0))
    return replace(crowd, graph=graph)


def ratings(
    n_items: int = 400,
    n_raters: int = 40,
    levels: int = 5,
    per_item: int | None = 3,
    *,
    bias: ArrayLike = 0.7,
    spread: ArrayLike = (0.4, 1.2),
    careless: ArrayLike = 0.0,
    prior: ArrayLike | None = None,
    seed: int = 0,
) -> Simulation:
    r"""Draw raters who are harsh or lenient, and answer on a scale 0, 1, ..., levels - 1.

    A rater sees the true level plus the own bias plus noise, and says the level that is nearest:

    .. math:: \operatorname{round}(y_i + b_m + s_m z), \quad z \sim N(0, 1)

    Parameters
    ----------
    n_items, n_raters, levels : int
        Sizes.
    per_item : int or None
        How many different raters rate each item; None for all.
    bias : float or array
        In levels, below 0 for harsh raters: an array with one per rater, or the standard deviation of biases that are
        drawn from a normal distribution around 0.
    spread, careless : float, tuple or array
        The standard deviation of the noise, and the share of answers that are any level: one number for all, a tuple
        (lowest, highest) to draw from, or an array with one per rater.
    prior : array, optional
        How frequent the levels are; default: equally.
    seed : int
        Same seed, same crowd.

    Returns
    -------
    Simulation
        With `responses`, whose classes are ordered, `truth` and `parameters`, which has `bias`, `spread` and
        `careless`.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.ratings(300, n_raters=20, bias=1, seed=1)
    >>> report = cs.DawidSkene(workers="ordinal").fit(crowd.responses).worker_report()
    >>> found, true = np.array(report["bias"]), crowd.parameters.bias
    >>> print(f"{np.corrcoef(found, true)[0, 1]:.2f}")
    0.99
    """
    check_numbers(whole(1), n_raters=n_raters, levels=levels)
    if per_item is not None:
        check_numbers(whole(1), per_item=per_item)
        per_item = min(per_item, n_raters)
    crew = Crew(seed, n_items, n_raters, levels, per_item)
    rng, expected = crew.workers, f"a standard deviation >= 0, or {plural(n_raters, 'number')}"
    biases = to_figures("bias", bias, expected)
    if biases.shape not in ((), (n_raters,)) or not np.isfinite(biases).all() or (biases.ndim == 0 and biases < 0):
        raise parameter_error("bias", "simulate", expected, bias)
    if biases.ndim == 0:
        biases = np.asarray(biases * rng.standard_normal(n_raters))
    expected = "one for all, a range (lowest, highest), or one per rater:"
    spreads = draw_figures(rng, "spread", spread, n_raters, np.inf, f"{expected} finite numbers >= 0")
    shares = draw_figures(rng, "careless", careless, n_raters, 1.0, f"{expected} numbers in [0, 1]")
    types = np.column_stack([biases, np.maximum(spreads, LEAST_NOISE), shares])
    confusion = rate(types, np.arange(float(levels)), np.arange(levels)).transpose(0, 2, 1)
    frequency = check_probabilities("prior", prior, levels)
    truth = crew.truth.choice(levels, size=n_items, p=frequency)
    figures = {"bias": biases, "spread": spreads, "careless": shares}
    crowd = _draw_crowd(crew, truth, np.arange(n_items), confusion, prior=frequency, **figures)
    return replace(crowd, responses=replace(crowd.responses, positions=tuple(map(float, range(levels)))))


def _draw_crowd(
    crew: Crew, truth: Indices, keys: Values | Sequences, confusion: Floats | None = None, **true: Any
) -> Simulation:
    """What workers say about items, by matrices that are drawn if they are not given."""
    confusion = crew.draw_confusion() if confusion is None else confusion
    parameters = TrueParameters(confusion=confusion, kinds=crew.kinds, copies=crew.copies, hard=crew.share_hard, **true)
    return Simulation(crew.draw_answers(confusion, truth, keys), truth, parameters)


# ------------------------------------------------------------------------------------------------------ what is drawn


def check_numbers(kind: Domain, **parameters: object) -> None:
    """Raise an error unless every parameter is of a kind."""
    for name, value in parameters.items():
        if not kind.accepts(value):
            raise parameter_error(name, "simulate", kind.expected, value)


def to_figures(name: str, values: ArrayLike, expected: str) -> Floats:
    """A parameter as an array of numbers."""
    try:
        return to_floats(values)
    except (TypeError, ValueError) as error:
        raise parameter_error(name, "simulate", expected, values) from error


def check_probabilities(name: str, values: ArrayLike | None, *shape: int) -> Floats:
    """A parameter as an array of the given shape that sums to 1 along its last axis; by default all are equal."""
    if values is None:
        return np.full(shape, 1 / shape[-1])
    rows = " in each row" if len(shape) > 1 else ""
    expected = f"{' x '.join(map(str, shape))} probabilities that sum to 1{rows}"
    array = to_figures(name, values, expected)
    if array.shape != shape or not (array >= 0).all() or not np.allclose(array.sum(axis=-1), 1.0, atol=1e-6):
        raise parameter_error(name, "simulate", expected, values)
    return np.asarray(array / array.sum(axis=-1, keepdims=True))


def to_range(length: int | tuple[int, int]) -> tuple[int, int]:
    """The least and the greatest length that a parameter stands for."""
    ends: Any = (length, length) if is_whole(length) else length
    paired = isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(is_whole, ends))
    if not (paired and 1 <= ends[0] <= ends[1]):
        expected = "a whole number >= 1, or a pair (least, most) of them"
        raise parameter_error("length", "simulate", expected, length)
    return int(ends[0]), int(ends[1])


def cumulate(probabilities: Floats) -> Floats:
    """Cumulated probabilities along the last axis, exactly 1 from the last possible outcome on.

    >>> cumulate(np.array([0.1, 0.2, 0.7, 0.0]))
    array([0.1, 0.3, 1. , 1. ])
    """
    total = probabilities.cumsum(axis=-1)
    return np.asarray(total / total[..., -1:])


class Crew:
    """Who takes part: first the honest workers, then spammers, adversaries and copycats. See `independent`.

    Each part of a crowd has random numbers of its own, so that the parameters of one part leave the others as they are.
    """

    def __init__(
        self,
        seed: int,
        n_items: int,
        n_workers: int,
        n_classes: int,
        answers_per_item: int | None = None,
        good: str | int = "all",
        accuracy: ArrayLike | None = None,
        spammers: int = 0,
        adversaries: int = 0,
        copycats: int = 0,
        hard: float = 0.0,
        activity: str = "equal",
    ) -> None:
        sizes = {"n_items": n_items, "n_workers": n_workers, "n_classes": n_classes, "seed": seed, "spammers": spammers}
        others = {"adversaries": adversaries, "copycats": copycats, "hard": hard, "activity": activity}
        for name, value in (sizes | others).items():
            check(name, value, "simulate")
        n_looking = int(n_workers) - int(copycats)  # those with answers of their own
        n_honest = n_looking - int(spammers) - int(adversaries)
        if n_honest < 0 or n_looking < 1:
            raise ParameterError(
                f"{plural(spammers, 'spammer')}, {adversaries:,} adversaries and {plural(copycats, 'copycat')} are too "
                f"many for {plural(n_workers, 'worker')}, at least one of whom must not be a copycat.",
                "Ask for fewer.",
            )
        if answers_per_item is not None and not (is_whole(answers_per_item) and 1 <= answers_per_item <= n_looking):
            others_too = " (all workers but the copycats)" if copycats else ""
            expected = f"a whole number between 1 and {n_looking}{others_too}"
            raise parameter_error("answers_per_item", "simulate", expected, answers_per_item)
        n_good = good
        if isinstance(good, str):
            n_good = {"most": min(int(n_workers) // 2 + 1, n_honest), "all": n_honest}.get(good, good)
        if not (is_whole(n_good) and 0 <= n_good <= n_honest):
            expected = f"'most', 'all' or a number of workers between 0 and {n_honest}"
            raise parameter_error("good", "simulate", expected, good)
        self.n_answers = n_looking if answers_per_item is None else answers_per_item
        require_memory(
            NUMBER * (n_workers * n_classes**2 + n_items * self.n_answers),
            f"{plural(n_items, 'item')} x {plural(self.n_answers, 'answer')}, and the matrices of "
            f"{plural(n_workers, 'worker')} x {n_classes:,} x {n_classes:,} classes, are too many numbers",
            "Ask for fewer.",
        )
        self.truth, self.structure, self.workers, self.answers, self.hard = np.random.default_rng(seed).spawn(5)
        self.n_classes, self.n_looking, self.n_honest, self.n_good = n_classes, n_looking, n_honest, n_good
        self.n_spammers, self.share_hard, self.activity, self.accuracy = spammers, hard, activity, accuracy
        kinds = ["honest", "spammer", "adversary", "copycat"]
        self.kinds = np.repeat(kinds, [n_honest, spammers, adversaries, copycats])
        # Whom each worker copies: the others in turn, and -1 for workers who copy nobody.
        self.copies = np.append(np.full(n_looking, -1), np.arange(copycats) % n_looking)

    def draw_confusion(self) -> Floats:
        """Draw a matrix [truth, answer] for each worker."""
        rng, n_honest, flat = self.workers, self.n_honest, np.ones(self.n_classes)
        confusion = rng.dirichlet(flat, size=(len(self.copies), self.n_classes))
        if self.accuracy is None:
            better = confusion[: self.n_good]
            swap_with_diagonal(better, better.argmax(axis=2))
        else:
            expected = (
                f"a number in [0, 1], a tuple (lowest, highest), or an array with one number for each of the "
                f"{n_honest} workers who are honest"
            )
            right = draw_figures(rng, "accuracy", self.accuracy, n_honest, 1.0, expected)[:, None, None]
            wrong = (1 - right) / max(self.n_classes - 1, 1)
            confusion[:n_honest] = 1.0 if self.n_classes == 1 else np.where(np.eye(self.n_classes) > 0, right, wrong)
        n_seeing = n_honest + self.n_spammers
        confusion[n_honest:n_seeing] = rng.dirichlet(flat, size=self.n_spammers)[:, None, :]
        contrary = confusion[n_seeing : self.n_looking]
        swap_with_diagonal(contrary, contrary.argmin(axis=2))
        confusion[self.n_looking :] = confusion[self.copies[self.n_looking :]]
        return confusion

    def draw_answers(self, confusion: Floats, truth: Indices, keys: Values | Sequences) -> Answers:
        """Draw all answers about items with the given truth and ids."""
        rng, n = self.answers, self.n_looking
        if self.share_hard and self.n_classes > 1:  # another class seems true, the same for all workers
            is_hard = self.hard.random(len(truth)) < self.share_hard
            other = (truth + self.hard.integers(1, self.n_classes, len(truth))) % self.n_classes
            truth = np.where(is_hard, other, truth)
        rates = np.full(n, 1 / n)
        if self.activity == "unequal":
            rates = 1.0 / (1 + rng.permutation(n))
            rates /= rates.sum()
        worker = draw_distinct(rng, len(truth), self.n_answers, rates)
        label = draw_labels(rng, confusion, worker, truth).ravel()
        who, offsets = worker.astype(np.int32).ravel(), np.arange(len(truth) + 1) * self.n_answers
        if len(self.copies) > n:  # each answer is repeated for all who copy it: worker w by w + n, w + 2 n, ...
            n_times = 1 + np.bincount(self.copies[n:], minlength=n)[who]
            ends = np.concatenate([[0], np.cumsum(n_times)])
            turn = np.arange(ends[-1]) - np.repeat(ends[:-1], n_times)
            who = (np.repeat(who, n_times) + turn * n).astype(np.int32)
            label, offsets = np.repeat(label, n_times), ends[offsets]
        classes = np.arange(self.n_classes)
        return Answers(offsets, who, label, None, np.arange(len(self.copies)), classes, classes, keys)


def swap_with_diagonal(confusion: Floats, chosen: Indices) -> None:
    """Exchange the chosen entry of each row, chosen[worker, truth], with the diagonal one, in place."""
    diagonal = np.einsum("mkk->mk", confusion)  # a view
    moved = np.take_along_axis(confusion, chosen[..., None], axis=2)[..., 0]
    np.put_along_axis(confusion, chosen[..., None], diagonal[..., None].copy(), axis=2)
    diagonal[:] = moved


def draw_figures(
    rng: np.random.Generator, name: str, given: ArrayLike, n_workers: int, most: float, expected: str
) -> Floats:
    """A figure of each worker: one for all, drawn from a range that is a tuple, or those given."""
    values = to_figures(name, given, expected)
    is_range = isinstance(given, tuple) and values.shape == (2,)
    fits = values[0] <= values[-1] if is_range else values.shape in ((), (n_workers,))
    if not (fits and ((values >= 0) & (values <= most) & (values < np.inf)).all()):
        raise parameter_error(name, "simulate", expected, given)
    return rng.uniform(values[0], values[1], n_workers) if is_range else np.full(n_workers, values)


def draw_distinct(rng: np.random.Generator, n_items: int, per_item: int, rates: Floats) -> Indices:
    """Workers (n_items, per_item), drawn one after the other by their rates, none twice for one item."""
    if per_item == len(rates):
        return np.broadcast_to(np.arange(per_item), (n_items, per_item))
    if per_item * MANY_EDGES > len(rates):
        # Many of them answer: those with the shortest of random waiting times, which is the same draw.
        workers = np.zeros((n_items, per_item), np.int64)
        often, chunk = rates.astype(np.float32), max(1, CHUNK // len(rates))
        for start in range(0, n_items, chunk):
            waits = rng.standard_exponential((min(chunk, n_items - start), len(rates)), np.float32) / often
            workers[start : start + chunk] = np.argpartition(waits, per_item, axis=1)[:, :per_item]
        return workers
    cumulated = cumulate(rates)
    workers = np.searchsorted(cumulated, rng.random((n_items, per_item)), side="right")
    rows, part = np.arange(n_items), workers
    while len(rows):
        # Whoever stands further left already is drawn again, in the items where that happens.
        order = np.argsort(part, axis=1, kind="stable")
        ordered = np.take_along_axis(part, order, axis=1)
        repeated = np.zeros(part.shape, bool)
        np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        left = repeated.any(axis=1)
        rows, part, repeated = rows[left], part[left], repeated[left]
        part[repeated] = np.searchsorted(cumulated, rng.random(int(repeated.sum())), side="right")
        workers[rows] = part
    return workers


def draw_labels(rng: np.random.Generator, confusion: Floats, worker: Indices, truth: Indices) -> NDArray[np.int32]:
    """Draw each answer from the worker's row for the item's truth: the place of a random number in cumulated ones."""
    cumulated = cumulate(confusion)
    label = np.zeros(worker.shape, np.int32)
    chunk = max(1, CHUNK // worker.shape[1])
    for start in range(0, len(worker), chunk):
        here = slice(start, start + chunk)
        draw = rng.random(worker[here].shape)
        label[here] = (draw[..., None] >= cumulated[worker[here], truth[here, None]]).sum(axis=-1)
    return label


def stationary_distribution(transition: Floats) -> Floats:
    """The distribution that a Markov chain keeps: the left eigenvector of eigenvalue 1.

    >>> stationary_distribution(np.array([[0.9, 0.1], [0.3, 0.7]])).round(6)
    array([0.75, 0.25])
    """
    n = len(transition)
    system = np.vstack([transition.T - np.eye(n), np.ones(n)])
    solution = np.linalg.lstsq(system, np.concatenate([np.zeros(n), [1.0]]), rcond=None)[0]
    # What rounding leaves of states that are never visited.
    solution = np.where(solution < n * np.finfo(float).eps, 0.0, solution)
    return np.asarray(solution / solution.sum())


def draw_edges(
    rng: np.random.Generator, truth: Indices, n_classes: int, n_edges: int, homophily: float
) -> tuple[Indices, Indices]:
    """The ends of `n_edges` different edges of a stochastic block model.

    Each joins items of one class with probability `homophily`; within that, all pairs are equally likely.
    """
    sizes = np.bincount(truth, minlength=n_classes)
    first = np.cumsum(sizes) - sizes
    a, b = np.triu_indices(n_classes, 1)
    rooms = sizes * (sizes - 1) // 2, sizes[a] * sizes[b]  # pairs within each class, and between each two
    n_within = int(rng.binomial(n_edges, homophily if rooms[1].sum() else 1.0))
    edges = []
    for wanted, room, where, lower in (
        (n_within, rooms[0], "within", "lower"),
        (n_edges - n_within, rooms[1], "between", "raise"),
    ):
        ends = np.cumsum(room)
        if wanted > room.sum():
            raise ParameterError(
                f"{plural(wanted, 'edge')} {where} classes would be needed, and {plural(len(truth), 'item')} have "
                f"only {plural(int(room.sum()), 'pair')} {where} classes.",
                Sentence(f"Lower {{degree}}, or {lower} {{homophily}}."),
            )
        pair = draw_subset(rng, wanted, int(room.sum()))
        part = np.searchsorted(ends, pair, side="right")
        edges.append((part, pair - (ends - room)[part]))
    # Within a class, the pairs are (0, 1), (0, 2), (1, 2), (0, 3), ...
    k, pair = edges[0]
    high = ((1 + np.sqrt(1.0 + 8.0 * pair)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > pair
    high += high * (high + 1) // 2 <= pair
    source, target = first[k] + pair - high * (high - 1) // 2, first[k] + high
    k, pair = edges[1]
    low, other = np.divmod(pair, sizes[b[k]])
    by_class = np.argsort(truth, kind="stable")
    source = np.concatenate([source, first[a[k]] + low])
    return by_class[source], by_class[np.concatenate([target, first[b[k]] + other])]


def draw_subset(rng: np.random.Generator, size: int, total: int) -> Indices:
    """Draw `size` different numbers out of 0, 1, ..., total - 1, in order; any such set is as likely as another."""
    if 2 * size > total:
        left_out = draw_subset(rng, total - size, total)
        return np.delete(np.arange(total), left_out)
    drawn = np.empty(0, np.int64)
    while len(drawn) < size:
        drawn = np.sort(np.concatenate([drawn, rng.integers(0, total, size - len(drawn))]))
        drawn = drawn[np.append(True, drawn[1:] != drawn[:-1])]  # quicker than np.unique
    return drawn
