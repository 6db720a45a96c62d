"""The simulators of crowds, and what they return: answers, truth, true parameters, and what could be known at best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.answers import Answers
from ..answers.columns import Indices, Values
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..errors import Sentence, parameter_error, plural
from ..inference.workers.ordinal import rate
from ..kernels import Floats
from ..limits import NUMBER, require_memory
from ..options import SHARE, is_whole, number, whole
from .drawing import (
    Crew,
    check_numbers,
    cumulate,
    draw_edges,
    draw_figures,
    stationary_distribution,
    to_figures,
    to_probabilities,
    to_range,
)

# Without any noise, answers would be impossible, and a spread of 0 stands for this one.
LEAST_SPREAD = 1e-3


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
        from ..answers.blocks import cut_blocks
        from ..answers.tagging import free_transitions
        from ..engines.base import Threads
        from ..inference.em import decode_labels, infer_posterior
        from ..inference.structures.chain import Chain
        from ..inference.structures.field import Field
        from ..inference.structures.independent import Independent
        from ..inference.workers.confusion import ConfusionWorkers

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
        known = Threads(), blocks, workers.factors(workers.given(true.confusion), weighted=False), structure
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
    shares = to_probabilities("prior", prior, n_classes)
    truth = crew.truth.choice(n_classes, size=n_items, p=shares)
    return _draw_crowd(crew, truth, np.arange(n_items), prior=shares)


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

    check_numbers(whole(1), n_sequences=n_sequences)
    shortest, longest = to_range(length)
    check_numbers(SHARE, stickiness=stickiness)
    if stickiness == 1:
        raise parameter_error("stickiness", "simulate", "less than 1", stickiness)
    workers = n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, hard, activity
    crew = Crew(seed, n_sequences * (shortest + longest) // 2, *workers)
    if transition is None:
        moves = crew.structure.dirichlet(np.ones(n_classes), size=n_classes)
    else:
        moves = to_probabilities("transition", transition, n_classes, n_classes)
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
    check_numbers(SHARE, homophily=homophily)
    workers = n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, hard, activity
    crew = Crew(seed, n_items, *workers)
    check_numbers(number(0, n_items - 1), degree=degree)
    n_edges = round(n_items * degree / 2)
    require_memory(
        2 * NUMBER * n_edges, f"A network of {plural(n_edges, 'edge')} is too large", Sentence("Lower {degree}.")
    )
    shares = to_probabilities("prior", prior, n_classes)
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
    if per_item is not None and not (is_whole(per_item) and 1 <= per_item <= n_raters):
        expected = f"None or a whole number between 1 and {n_raters}, the raters"
        raise parameter_error("per_item", "simulate", expected, per_item)
    crew = Crew(seed, n_items, n_raters, levels, per_item)
    rng, expected = crew.workers, f"a standard deviation >= 0, or {plural(n_raters, 'number')}"
    biases = to_figures("bias", bias, expected)
    is_deviation = biases.ndim == 0 and biases >= 0
    if not (is_deviation or biases.shape == (n_raters,)) or not np.isfinite(biases).all():
        raise parameter_error("bias", "simulate", expected, bias)
    if is_deviation:
        biases = np.asarray(biases * rng.standard_normal(n_raters))
    expected = "one for all, a range (lowest, highest), or one per rater:"
    spreads = draw_figures(rng, "spread", spread, n_raters, np.inf, f"{expected} finite numbers >= 0")
    shares = draw_figures(rng, "careless", careless, n_raters, 1.0, f"{expected} numbers in [0, 1]")
    types = np.column_stack([biases, np.maximum(spreads, LEAST_SPREAD), shares])
    confusion = rate(types, np.arange(float(levels)), np.arange(levels)).transpose(0, 2, 1)
    frequency = to_probabilities("prior", prior, levels)
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
