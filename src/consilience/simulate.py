"""Made-up crowds with a known truth: to try out plans, models and code.

`independent`, `sequences` and `network` share the workers' part and differ in how the truth is drawn. The defaults are
the generators of the paper: confusion matrices drawn uniformly from the simplex, of which floor(M / 2) + 1 have their
largest entry on the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ParameterError, parameter_error
from .formats.answers import Answers, Sequences
from .graph import Graph
from .kernels.types import Floats
from .responses import Responses
from .vocabulary import Values

ACTIVITIES = ("equal", "unequal")


@dataclass(frozen=True, eq=False)
class TrueParameters:
    """What the data were drawn from. `transition` and `initial` are None unless the truth is a Markov chain."""

    prior: Floats
    confusion: Floats  # [worker, truth, answer]
    transition: Floats | None = None
    initial: Floats | None = None


@dataclass(frozen=True, eq=False)
class Simulation:
    """Answers, the truth behind them (in the order of `responses.items`), the graph if any, and the parameters."""

    responses: Responses
    truth: Values
    parameters: TrueParameters
    graph: Graph | None = None

    def __repr__(self) -> str:
        graph = "" if self.graph is None else f", graph with {self.graph.n_edges:,} edges"
        return f"Simulation({self.responses!r}{graph})"


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
        How many different workers answer each item; default: all.
    good : {"most", "all"} or int
        How many of the random confusion matrices are better than random (largest entry on the diagonal): floor(M/2)+1,
        all, or a number.
    accuracy : float, pair or array, optional
        Instead of random matrices: the probability of the right answer, errors spread evenly. One number for all, a
        pair (lowest, highest) to draw from, or one number per worker.
    spammers, adversaries, copycats : int
        How many of the last workers answer at random with a taste of their own, are wrong on purpose (the right
        answer is their least likely), or repeat the answers of one of the first workers to whatever that one answered.
    activity : {"equal", "unequal"}
        Whether workers answer equally often, or few answer much and many little (as 1 / rank).
    prior : array, optional
        Class probabilities; default: equal.
    seed : int
        Same seed, same crowd.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(500, n_workers=30, n_classes=3, answers_per_item=5, spammers=4, seed=1)
    >>> crowd.responses
    Responses(2,500 answers: 500 items x 30 workers, 3 classes: 0, 1, 2)
    >>> crowd.truth[:5]
    array([1, 2, 0, 2, 0])
    """
    rng = np.random.default_rng(seed)
    _check_sizes(n_items=n_items, n_workers=n_workers, n_classes=n_classes)
    shares = _class_prior(prior, n_classes)
    truth = rng.choice(n_classes, size=n_items, p=shares)
    confusion = _draw_workers(rng, n_workers, n_classes, good, accuracy, spammers, adversaries, copycats)
    responses = _draw_answers(rng, truth, confusion, answers_per_item, activity, copycats, np.arange(n_items))
    return Simulation(responses, truth, TrueParameters(shares, confusion))


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
        Probability of staying, mixed into the transition matrix.
    n_workers, n_classes, answers_per_item, good, accuracy, spammers, adversaries, copycats, activity, seed
        As in `independent`.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.sequences(100, length=(5, 30), answers_per_item=3, seed=1).responses
    Responses(5,415 answers: 1,805 items in 100 sequences x 10 workers, 4 classes: 0, 1, 2, 3)
    """
    from .kernels.chain import sample_chains

    rng = np.random.default_rng(seed)
    low, high = (length, length) if isinstance(length, (int, np.integer)) else length
    _check_sizes(n_sequences=n_sequences, length=low, n_workers=n_workers, n_classes=n_classes)
    if high < low or not 0 <= stickiness < 1:
        raise ParameterError(
            f"length must be a number or (least, most), stickiness in [0, 1). Got {length!r}, {stickiness!r}."
        )
    moves = (
        rng.dirichlet(np.ones(n_classes), size=n_classes) if transition is None else _stochastic(transition, n_classes)
    )
    moves = stickiness * np.eye(n_classes) + (1 - stickiness) * moves
    start = stationary_distribution(moves)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(low, high + 1, n_sequences))]).astype(np.int64)
    n_items = int(offsets[-1])
    truth = sample_chains(offsets, start.cumsum(), moves.cumsum(axis=1), rng.random(n_items))
    confusion = _draw_workers(rng, n_workers, n_classes, good, accuracy, spammers, adversaries, copycats)
    position = np.arange(n_items) - np.repeat(offsets[:-1], np.diff(offsets))
    keys = Sequences(np.arange(n_sequences), offsets, position)
    responses = _draw_answers(rng, truth, confusion, answers_per_item, activity, copycats, keys)
    return Simulation(responses, truth, TrueParameters(start, confusion, moves, start))


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
    activity: str = "equal",
    prior: ArrayLike | None = None,
    seed: int = 0,
) -> Simulation:
    """Draw a crowd that answers about the nodes of a network in which like is linked with like.

    The graph is a stochastic block model: an edge joins two random nodes of one class with probability `homophily`,
    two random nodes of different classes otherwise.

    Parameters
    ----------
    degree : float
        Average number of neighbours.
    homophily : float
        Share of edges within a class.
    n_items, n_workers, n_classes, answers_per_item, good, accuracy
        As in `independent`.
    spammers, adversaries, copycats, activity, prior, seed
        As in `independent`.

    Returns
    -------
    Simulation
        With `graph`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.network(1000, degree=4, seed=1).graph
    Graph(1,000 items, 2,000 edges, mean degree 4.00)
    """
    rng = np.random.default_rng(seed)
    _check_sizes(n_items=n_items, n_workers=n_workers, n_classes=n_classes)
    if not degree >= 0 or not 0 <= homophily <= 1:
        raise ParameterError(f"degree must be >= 0 and homophily in [0, 1]. Got {degree!r} and {homophily!r} instead.")
    shares = _class_prior(prior, n_classes)
    truth = rng.choice(n_classes, size=n_items, p=shares)
    source, target = _draw_edges(rng, truth, n_classes, round(n_items * degree / 2), homophily)
    confusion = _draw_workers(rng, n_workers, n_classes, good, accuracy, spammers, adversaries, copycats)
    responses = _draw_answers(rng, truth, confusion, answers_per_item, activity, copycats, np.arange(n_items))
    graph = Graph.from_edges(source, target, items=responses.items)
    return Simulation(responses, truth, TrueParameters(shares, confusion), graph)


def stationary_distribution(transition: Floats) -> Floats:
    """Return the distribution that a Markov chain settles in: the left eigenvector of eigenvalue 1."""
    n = len(transition)
    system = np.vstack([transition.T - np.eye(n), np.ones(n)])
    solution = np.linalg.lstsq(system, np.concatenate([np.zeros(n), [1.0]]), rcond=None)[0]
    solution = np.maximum(solution, 0.0)
    return np.asarray(solution / solution.sum())


def _check_sizes(**sizes: Any) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise parameter_error(name, "simulate", "a whole number >= 1", value)


def _class_prior(prior: ArrayLike | None, n_classes: int) -> Floats:
    if prior is None:
        return np.full(n_classes, 1 / n_classes)
    return _stochastic(prior, n_classes, rows=None)


def _stochastic(values: ArrayLike, n_classes: int, rows: int | None = -1) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    shape = (n_classes,) if rows is None else (n_classes, n_classes)
    if array.shape != shape or (array < 0).any() or not np.allclose(array.sum(axis=-1), 1, atol=1e-6):
        raise ParameterError(f"Expected probabilities of shape {shape} that sum to 1. Got {np.shape(array)}.")
    return np.asarray(array / array.sum(axis=-1, keepdims=True))


def _draw_workers(
    rng: np.random.Generator,
    n_workers: int,
    n_classes: int,
    good: str | int,
    accuracy: ArrayLike | None,
    spammers: int,
    adversaries: int,
    copycats: int,
) -> Floats:
    """Return confusion matrices [worker, truth, answer]: first the honest, then spammers, adversaries, copycats."""
    honest = n_workers - spammers - adversaries - copycats
    if min(spammers, adversaries, copycats) < 0 or honest < (1 if copycats else 0):
        raise ParameterError(
            f"spammers ({spammers}), adversaries ({adversaries}) and copycats ({copycats}) must be >= 0 and leave room "
            f"among {n_workers} workers."
        )
    confusion = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
    if accuracy is None:
        better = {"most": n_workers // 2 + 1, "all": n_workers}.get(good, good) if isinstance(good, str) else good
        if isinstance(better, str) or better < 0:
            raise parameter_error("good", "simulate", "'most', 'all' or a number of workers", good)
        fair = confusion[: min(better, honest)]
        _swap_to_diagonal(fair, fair.argmax(axis=2))
    else:
        confusion[:honest] = _by_accuracy(rng, accuracy, honest, n_classes)
    confusion[honest : honest + spammers] = rng.dirichlet(np.ones(n_classes), size=spammers)[:, None, :]
    wrong = confusion[honest + spammers : n_workers - copycats]
    _swap_to_diagonal(wrong, wrong.argmin(axis=2))
    if copycats:
        confusion[n_workers - copycats :] = confusion[_leaders(n_workers, copycats)]
    return confusion


def _leaders(n_workers: int, copycats: int) -> NDArray[np.int64]:
    """Return whom each copycat copies: the first workers, in turn."""
    return np.arange(copycats) % (n_workers - copycats)


def _swap_to_diagonal(confusion: Floats, chosen: NDArray[np.int64]) -> None:
    """Exchange the chosen entry of each row, chosen[worker, truth], with the diagonal one, in place."""
    n_workers, n_classes, _ = confusion.shape
    worker, truth = np.ix_(np.arange(n_workers), np.arange(n_classes))
    moved, diagonal = confusion[worker, truth, chosen].copy(), confusion[worker, truth, truth].copy()
    confusion[worker, truth, chosen] = diagonal
    confusion[worker, truth, truth] = moved


def _by_accuracy(rng: np.random.Generator, accuracy: ArrayLike, n_workers: int, n_classes: int) -> Floats:
    levels = np.asarray(accuracy, dtype=np.float64)
    if levels.shape == (2,) and n_workers != 2:
        levels = rng.uniform(levels[0], levels[1], n_workers)
    if levels.shape not in ((), (n_workers,)) or (levels < 0).any() or (levels > 1).any():
        expected = f"a number in [0, 1], a pair (lowest, highest), or one number for each of {n_workers} workers"
        raise parameter_error("accuracy", "simulate", expected, accuracy)
    right = np.broadcast_to(levels, (n_workers,))[:, None, None]
    wrong = (1 - right) / max(n_classes - 1, 1)
    return np.where(np.eye(n_classes, dtype=bool), right, wrong) if n_classes > 1 else np.ones((n_workers, 1, 1))


def _draw_answers(
    rng: np.random.Generator,
    truth: NDArray[np.int64],
    confusion: Floats,
    answers_per_item: int | None,
    activity: str,
    copycats: int,
    keys: Values | Sequences,
) -> Responses:
    """Draw who answers what, and what they say."""
    n_items, n_classes, n_workers = len(truth), confusion.shape[1], len(confusion)
    answering = n_workers - copycats
    per_item = answering if answers_per_item is None else answers_per_item
    if not 1 <= per_item <= answering:
        raise parameter_error("answers_per_item", "simulate", f"between 1 and {answering}", answers_per_item)
    worker = _draw_distinct(rng, n_items, per_item, _activity(activity, answering))
    label = _draw_labels(rng, confusion, worker, truth)
    if copycats:
        worker, label, per_item_counts = _copy(worker, label, n_workers, copycats)
    else:
        per_item_counts = np.full(n_items, per_item)
        worker, label = worker.ravel(), label.ravel()
    names = np.arange(n_classes)
    return Responses.from_answers(
        Answers(
            offsets=np.concatenate([[0], np.cumsum(per_item_counts)]).astype(np.int64),
            worker=worker.astype(np.int32),
            label=label.astype(np.int32),
            weight=None,
            workers=np.arange(n_workers),
            labels=names,
            keys=keys,
        ),
        None,
    )


def _activity(activity: str, n_workers: int) -> Floats:
    if activity not in ACTIVITIES:
        raise parameter_error("activity", "simulate", "'equal' or 'unequal'", activity)
    rate = np.ones(n_workers) if activity == "equal" else 1.0 / np.arange(1, n_workers + 1)
    return np.asarray(rate / rate.sum())


def _draw_distinct(rng: np.random.Generator, n_items: int, per_item: int, rate: Floats) -> NDArray[np.int64]:
    """Return (n_items, per_item) workers, no worker twice for one item, drawn by their rates."""
    if per_item == len(rate):
        return np.broadcast_to(np.arange(per_item), (n_items, per_item))
    if 2 * per_item > len(rate):
        # Nearly all answer: the smallest of exponential waiting times, a draw without replacement by rate.
        waits = rng.exponential(size=(n_items, len(rate))) / rate
        return np.argpartition(waits, per_item, axis=1)[:, :per_item]
    cumulated = rate.cumsum()
    cumulated[-1] = 1.0
    workers = np.searchsorted(cumulated, rng.random((n_items, per_item)), side="right")
    while True:
        # Draw again, for items with a repeated worker only, whatever repeats an earlier entry.
        order = np.argsort(workers, axis=1, kind="stable")
        ordered = np.take_along_axis(workers, order, axis=1)
        repeated = np.zeros(workers.shape, bool)
        np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        if not repeated.any():
            return workers
        workers[repeated] = np.searchsorted(cumulated, rng.random(int(repeated.sum())), side="right")


def _draw_labels(
    rng: np.random.Generator, confusion: Floats, worker: NDArray[np.int64], truth: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw each answer from the worker's row for the item's truth, by inverting the cumulated probabilities."""
    draw = rng.random(worker.shape)
    cumulated = confusion.cumsum(axis=2)
    label = np.zeros(worker.shape, np.int64)
    for answer in range(confusion.shape[2] - 1):
        label += draw > cumulated[worker, truth[:, None], answer]
    return label


def _copy(
    worker: NDArray[np.int64], label: NDArray[np.int64], n_workers: int, copycats: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Append, for each copycat, its leader's answers; return workers, labels and answers per item, by item."""
    item = np.repeat(np.arange(len(worker)), worker.shape[1])
    workers, labels, items = [worker.ravel()], [label.ravel()], [item]
    for copycat, leader in enumerate(_leaders(n_workers, copycats)):
        copied = worker.ravel() == leader
        workers.append(np.full(int(copied.sum()), n_workers - copycats + copycat))
        labels.append(label.ravel()[copied])
        items.append(item[copied])
    everything = np.concatenate(items)
    order = np.argsort(everything, kind="stable")
    counts = np.bincount(everything, minlength=len(worker))
    return np.concatenate(workers)[order], np.concatenate(labels)[order], counts


def _draw_edges(
    rng: np.random.Generator, truth: NDArray[np.int64], n_classes: int, n_edges: int, homophily: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the end points of `n_edges` different edges (of fewer, where a small graph has no room for them)."""
    n_items = len(truth)
    pairs = np.empty(0, np.int64)
    for _ in range(50):
        source, target = _draw_pairs(rng, truth, n_classes, n_edges - len(pairs), homophily)
        proper = source != target
        low, high = np.minimum(source, target)[proper], np.maximum(source, target)[proper]
        pairs = np.unique(np.concatenate([pairs, low * n_items + high]))
        if len(pairs) == n_edges:
            break
    return pairs // n_items, pairs % n_items


def _draw_pairs(
    rng: np.random.Generator, truth: NDArray[np.int64], n_classes: int, n_pairs: int, homophily: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return random pairs of items: of one class with probability `homophily`, else of two classes."""
    sizes = np.bincount(truth, minlength=n_classes)
    by_class = np.argsort(truth, kind="stable")
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    n_within = int((rng.random(n_pairs) < homophily).sum())
    squares = sizes.astype(np.float64) ** 2
    k = rng.choice(n_classes, size=n_within, p=squares / squares.sum())
    ends = [by_class[first[k] + (rng.random(n_within) * sizes[k]).astype(np.int64)] for _ in range(2)]
    source, target = rng.integers(0, len(truth), (2, n_pairs - n_within))
    while (same := truth[source] == truth[target]).any() and (sizes > 0).sum() > 1:
        source[same], target[same] = rng.integers(0, len(truth), (2, int(same.sum())))
    return np.concatenate([ends[0], source]), np.concatenate([ends[1], target])
