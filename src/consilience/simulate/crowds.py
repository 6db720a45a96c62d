"""The three simulators, and what ties labels of items together: Markov chains, and edges mostly within a class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.columns import Values
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..arguments import is_whole
from ..errors import ParameterError, Sentence, plural
from ..kernels.types import Floats
from ..memory import NUMBER, require_memory
from .results import Simulation, TrueParameters
from .workers import (
    Crew,
    as_probabilities,
    bad_parameter,
    check_between,
    check_whole,
    cumulate,
    draw_answers,
    mislead,
)


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
    Responses(2,500 answers: 500 items x 30 workers, 3 classes: 0, 1, 2)
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
    Responses(4,941 answers: 1,647 items in 100 sequences x 10 workers, 4 classes: 0, 1, 2, 3)
    """
    from ..kernels.chain import sample_chains

    check_whole(1, n_sequences=n_sequences)
    shortest, longest = _length_range(length)
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


def _length_range(length: int | tuple[int, int]) -> tuple[int, int]:
    ends: Any = (length, length) if is_whole(length) else length
    paired = isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(is_whole, ends))
    if not (paired and 1 <= ends[0] <= ends[1]):
        raise bad_parameter("length", "a whole number >= 1, or a pair (least, most) of them", length)
    check_whole(1, length=ends[1])
    return int(ends[0]), int(ends[1])


def stationary_distribution(transition: Floats) -> Floats:
    """Return the distribution that a Markov chain keeps: the left eigenvector of eigenvalue 1.

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
    rng: np.random.Generator, truth: NDArray[np.int64], n_classes: int, n_edges: int, homophily: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of `n_edges` different edges of a stochastic block model.

    Each joins items of one class with probability `homophily`; within that, all pairs are equally likely.
    """
    sizes = np.bincount(truth, minlength=n_classes)
    by_class = np.argsort(truth, kind="stable")
    first = np.cumsum(sizes) - sizes
    a, b = np.triu_indices(n_classes, 1)
    room_within, room_between = sizes * (sizes - 1) // 2, sizes[a] * sizes[b]
    if not room_between.sum():
        homophily = 1.0  # there is but one class
    n_within = int(rng.binomial(n_edges, homophily))
    _check_room(n_within, int(room_within.sum()), "within classes", len(truth))
    _check_room(n_edges - n_within, int(room_between.sum()), "between classes", len(truth))

    pair = draw_subset(rng, n_within, int(room_within.sum()))
    k, pair = _find_part(pair, room_within)
    low, high = _unfold(pair)
    source, target = first[k] + low, first[k] + high

    pair = draw_subset(rng, n_edges - n_within, int(room_between.sum()))
    k, pair = _find_part(pair, room_between)
    low, high = np.divmod(pair, sizes[b[k]])
    source = np.concatenate([source, first[a[k]] + low])
    target = np.concatenate([target, first[b[k]] + high])
    return by_class[source], by_class[target]


def draw_subset(rng: np.random.Generator, size: int, total: int) -> NDArray[np.int64]:
    """Return `size` different numbers out of 0, 1, ..., total - 1, in order; any such set is as likely as another."""
    if 2 * size > total:
        left_out = draw_subset(rng, total - size, total)
        return np.delete(np.arange(total), left_out)
    found = np.empty(0, np.int64)
    while len(found) < size:
        found = np.sort(np.concatenate([found, rng.integers(0, total, size - len(found))]))
        found = found[np.append(True, found[1:] != found[:-1])]  # quicker than np.unique
    return found


def _check_room(wanted: int, room: int, where: str, n_items: int) -> None:
    if wanted > room:
        raise ParameterError(
            f"{plural(wanted, 'edge')} {where} would be needed, and {plural(n_items, 'item')} have only "
            f"{plural(room, 'pair')} {where}.",
            Sentence(f"Lower {{degree}}, or {'lower' if where.startswith('within') else 'raise'} {{homophily}}."),
        )


def _find_part(index: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return in which of consecutive parts each index falls, and where in it."""
    ends = np.cumsum(sizes)
    part = np.searchsorted(ends, index, side="right")
    return part, index - (ends - sizes)[part]


def _unfold(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pair (low, high) that stands at each index of the list (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    high = ((1 + np.sqrt(1.0 + 8.0 * index)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > index
    high += high * (high + 1) // 2 <= index
    return index - high * (high - 1) // 2, high
