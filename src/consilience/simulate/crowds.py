"""The simulators of crowds, and what they return: answers, truth, true parameters, and what could be known at best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.answers import Answers
from ..answers.columns import Values
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..arguments import is_whole
from ..errors import Sentence, plural
from ..inference.workers.ordinal import rate
from ..kernels import Floats
from ..memory import NUMBER, require_memory
from .drawing import (
    Crew,
    as_probabilities,
    bad_parameter,
    check_between,
    check_whole,
    cumulate,
    draw_answers,
    draw_biases,
    draw_edges,
    draw_figures,
    length_range,
    mislead,
    stationary_distribution,
)

# Without any noise, answers would be impossible, and a spread of 0 stands for this one.
LEAST_SPREAD = 1e-3

if TYPE_CHECKING:
    from ..inference.structures import StructureParameters


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
    copies: NDArray[np.int64]
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
        """Return the best that can be made of the answers: the posterior under the true parameters.

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
        from ..answers.blocks import cut_blocks
        from ..engines.base import Threads
        from ..inference.em import decode_labels, infer_posterior
        from ..inference.workers.confusion import ConfusionWorkers

        r = self.responses.keep(self.parameters.copies[self.responses.worker] < 0)
        workers = ConfusionWorkers(r.n_workers, r.class_of_label, r.n_classes)
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows)
        factors = workers.factors(workers.given(self.parameters.confusion), weighted=False)
        graph = None if self.graph is None else self.graph.aligned_with(r.items)
        known = Threads(), blocks, factors, self._true_structure()
        posterior, _ = infer_posterior(*known, graph)
        return Oracle(posterior, r.classes[posterior.argmax(axis=1) if graph is not None else decode_labels(*known)])

    def _true_structure(self) -> StructureParameters:
        """Return what ties the labels together, with its true parameters."""
        from ..answers.tagging import free_transitions
        from ..inference.structures.chain import Chain
        from ..inference.structures.field import Field
        from ..inference.structures.independent import Independent

        true, prior = self.parameters, self.parameters.prior
        if self.graph is not None and true.coupling is not None:
            return Field(len(prior), prior, 0.0, "em", true.coupling, "belief_propagation").given(prior)
        if true.transition is not None and true.initial is not None:
            chain = Chain(len(prior), prior, 0.0, "em", 1.0, free_transitions(len(prior)))
            return chain.given(prior, true.initial, true.transition)
        return Independent(len(prior), prior, 0.0, "em").given(prior)


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
    check_whole(1, n_items=n_items)
    crew = Crew(n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, activity)
    check_between("hard", hard, 0, 1)
    crew.check_size(n_items, Sentence("Lower {n_items}."))
    streams = _Streams(seed)
    shares = _class_shares(prior, n_classes)
    truth = streams.truth.choice(n_classes, size=n_items, p=shares)
    return _draw_crowd(streams, crew, truth, np.arange(n_items), hard, prior=shares)


def sequences(
    n_sequences: int = 25,
    length: int | tuple[int, int] = 40,
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
    transition: ArrayLike | None = None,
    stickiness: float = 0.0,
    seed: int = 0,
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
    n_workers, n_classes, answers_per_item, good, accuracy
        As in `independent`.
    spammers, adversaries, copycats, hard, activity, seed
        As in `independent`.

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

    check_whole(1, n_sequences=n_sequences)
    shortest, longest = length_range(length)
    check_between("stickiness", stickiness, 0, 1, half_open=True)
    crew = Crew(n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, activity)
    check_between("hard", hard, 0, 1)
    crew.check_size(n_sequences * shortest, Sentence("Lower {n_sequences} or {length}."))
    streams = _Streams(seed)
    if transition is None:
        moves = streams.structure.dirichlet(np.ones(n_classes), size=n_classes)
    else:
        moves = as_probabilities("transition", transition, (n_classes, n_classes))
    moves = stickiness * np.eye(n_classes) + (1 - stickiness) * moves
    start = stationary_distribution(moves)
    lengths = streams.structure.integers(shortest, longest + 1, n_sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_items = int(offsets[-1])
    # Draws from (0, 1], so that what has probability 0 never happens.
    truth = sample_chains(offsets, cumulate(start), cumulate(moves), 1.0 - streams.truth.random(n_items))
    keys = Sequences(np.arange(n_sequences), offsets, np.arange(n_items) - np.repeat(offsets[:-1], lengths))
    return _draw_crowd(streams, crew, truth, keys, hard, prior=start, transition=moves, initial=start)


def network(
    n_items: int = 1000,
    n_workers: int = 10,
    n_classes: int = 4,
    *,
    degree: float = 5.0,
    homophily: float = 0.9,
    answers_per_item: int | None = None,
    good: str | int = "all",
    accuracy: ArrayLike | None = None,
    spammers: int = 0,
    adversaries: int = 0,
    copycats: int = 0,
    hard: float = 0.0,
    activity: str = "equal",
    prior: ArrayLike | None = None,
    seed: int = 0,
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
    n_items, n_workers, n_classes, answers_per_item, good, accuracy
        As in `independent`.
    spammers, adversaries, copycats, hard, activity, prior, seed
        As in `independent`.

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
    check_whole(1, n_items=n_items)
    check_between("degree", degree, 0, n_items - 1)
    check_between("homophily", homophily, 0, 1)
    crew = Crew(n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, activity)
    check_between("hard", hard, 0, 1)
    crew.check_size(n_items, Sentence("Lower {n_items}."))
    n_edges = round(n_items * degree / 2)
    require_memory(
        2 * NUMBER * n_edges, f"A network of {plural(n_edges, 'edge')} is too large", Sentence("Lower {degree}.")
    )
    streams = _Streams(seed)
    shares = _class_shares(prior, n_classes)
    truth = streams.truth.choice(n_classes, size=n_items, p=shares)
    source, target = draw_edges(streams.structure, truth, n_classes, n_edges, homophily)
    graph = Graph.from_edges(source, target, items=np.arange(n_items))
    # By Bayes' rule an edge speaks for agreement by the odds that it lies within a class, over those of any pair.
    alike = float(np.sum(shares**2))
    odds = np.log(max(homophily, 1e-9) * (1 - alike) / (max(1 - homophily, 1e-9) * alike)) if alike < 1 else 0.0
    coupling = max(float(odds), 0.0)
    crowd = _draw_crowd(streams, crew, truth, np.arange(n_items), hard, prior=shares, coupling=coupling)
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
    check_whole(1, n_items=n_items, n_raters=n_raters, levels=levels)
    if per_item is not None and not (is_whole(per_item) and 1 <= per_item <= n_raters):
        raise bad_parameter("per_item", f"None or a whole number between 1 and {n_raters}, the raters", per_item)
    crew = Crew(n_raters, levels, per_item, "all", None, 0, 0, 0, "equal")
    crew.check_size(n_items, Sentence("Lower {n_items}."))
    streams = _Streams(seed)
    biases = draw_biases(streams.workers, bias, n_raters)
    spreads = draw_figures(streams.workers, "spread", spread, n_raters, np.inf)
    shares = draw_figures(streams.workers, "careless", careless, n_raters, 1.0)
    types = np.column_stack([biases, np.maximum(spreads, LEAST_SPREAD), shares])
    confusion = rate(types, np.arange(float(levels)), np.arange(levels)).transpose(0, 2, 1)
    frequency = _class_shares(prior, levels)
    truth = streams.truth.choice(levels, size=n_items, p=frequency)
    answers = draw_answers(streams.answers, crew, confusion, truth, np.arange(n_items))
    true = TrueParameters(
        frequency, confusion, crew.kinds(), crew.copies(), bias=biases, spread=spreads, careless=shares
    )
    return Simulation(replace(answers, positions=tuple(map(float, range(levels)))), truth, true)


class _Streams:
    """Random numbers for each part on its own, so that the parameters of one part leave the others as they are."""

    def __init__(self, seed: int) -> None:
        if not is_whole(seed) or seed < 0:
            raise bad_parameter("seed", "a whole number >= 0", seed)
        self.truth, self.structure, self.workers, self.answers, self.hard = np.random.default_rng(seed).spawn(5)


def _draw_crowd(
    streams: _Streams, crew: Crew, truth: NDArray[np.int64], keys: Values | Sequences, hard: float, **true: Any
) -> Simulation:
    """Return what workers say about items whose truth was drawn from true parameters."""
    confusion = crew.draw_confusion(streams.workers)
    apparent = mislead(streams.hard, truth, crew.n_classes, hard)
    responses = draw_answers(streams.answers, crew, confusion, apparent, keys)
    parameters = TrueParameters(confusion=confusion, kinds=crew.kinds(), copies=crew.copies(), hard=hard, **true)
    return Simulation(responses, truth, parameters)


def _class_shares(prior: ArrayLike | None, n_classes: int) -> Floats:
    if prior is None:
        return np.full(n_classes, 1 / n_classes)
    return as_probabilities("prior", prior, (n_classes,))
