"""What crowds are drawn from.

Workers: what kinds there are, how each confuses the classes, and what they say. And what ties labels of items together:
Markov chains, and edges mostly within a class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.answers import Answers
from ..answers.columns import Indices, Values
from ..answers.items import Sequences
from ..arguments import is_among, is_whole, to_floats
from ..errors import ParameterError, Sentence, parameter_error, plural
from ..kernels import Floats
from ..limits import NUMBER, require_memory
from ..options import ACTIVITIES, SHARE, Kind, whole

# Answers drawn at a time: what is needed meanwhile stays in the processor's cache.
CHUNK = 1 << 16
# From one in so many workers on, drawing again whoever was drawn before takes longer than drawing lots for everyone.
MANY = 8


def check_numbers(kind: Kind, **parameters: object) -> None:
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


def to_probabilities(name: str, values: ArrayLike | None, *shape: int) -> Floats:
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
        per_item: int | None = None,
        good: str | int = "all",
        accuracy: ArrayLike | None = None,
        spammers: int = 0,
        adversaries: int = 0,
        copycats: int = 0,
        hard: float = 0.0,
        activity: str = "equal",
    ) -> None:
        check_numbers(whole(1), n_items=n_items, n_workers=n_workers, n_classes=n_classes)
        check_numbers(whole(0), seed=seed, spammers=spammers, adversaries=adversaries, copycats=copycats)
        check_numbers(SHARE, hard=hard)
        if not is_among(activity, ACTIVITIES):
            raise parameter_error("activity", "simulate", "'equal' or 'unequal'", activity)
        n_looking = int(n_workers) - int(copycats)  # those with answers of their own
        n_honest = n_looking - int(spammers) - int(adversaries)
        if n_honest < 0 or n_looking < 1:
            raise ParameterError(
                f"{plural(spammers, 'spammer')}, {adversaries:,} adversaries and {plural(copycats, 'copycat')} are too "
                f"many for {plural(n_workers, 'worker')}, at least one of whom must not be a copycat.",
                "Ask for fewer.",
            )
        others = " (all workers but the copycats)" if copycats else ""
        if per_item is not None and not (is_whole(per_item) and 1 <= per_item <= n_looking):
            expected = f"a whole number between 1 and {n_looking}{others}"
            raise parameter_error("answers_per_item", "simulate", expected, per_item)
        n_good = min(int(n_workers) // 2 + 1, n_honest) if is_among(good, ("most",)) else n_honest
        if not is_among(good, ("most", "all")):
            if not (is_whole(good) and 0 <= good <= n_honest):
                expected = f"'most', 'all' or a number of workers between 0 and {n_honest}"
                raise parameter_error("good", "simulate", expected, good)
            n_good = int(good)
        self.n_answers = n_looking if per_item is None else per_item
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
    n_workers, n_classes, _ = confusion.shape
    worker, truth = np.ix_(np.arange(n_workers), np.arange(n_classes))
    moved, diagonal = confusion[worker, truth, chosen], confusion[worker, truth, truth]
    confusion[worker, truth, chosen] = diagonal
    confusion[worker, truth, truth] = moved


def draw_figures(
    rng: np.random.Generator, name: str, given: ArrayLike, n_workers: int, most: float, expected: str
) -> Floats:
    """A figure of each worker: one for all, drawn from a range that is a tuple, or those given."""
    values = to_figures(name, given, expected)
    is_range = isinstance(given, tuple) and values.shape == (2,)
    shaped = is_range or values.shape in ((), (n_workers,))
    if not (shaped and ((values >= 0) & (values <= most) & (values < np.inf)).all()):
        raise parameter_error(name, "simulate", expected, given)
    if is_range and values[0] > values[1]:
        raise parameter_error(name, "simulate", expected, given)
    return rng.uniform(values[0], values[1], n_workers) if is_range else np.full(n_workers, values)


def draw_distinct(rng: np.random.Generator, n_items: int, per_item: int, rates: Floats) -> Indices:
    """Workers (n_items, per_item), drawn one after the other by their rates, none twice for one item."""
    if per_item == len(rates):
        return np.broadcast_to(np.arange(per_item), (n_items, per_item))
    if per_item * MANY > len(rates):
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
    found = []
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
        found.append((part, pair - (ends - room)[part]))
    # Within a class, the pairs are (0, 1), (0, 2), (1, 2), (0, 3), ...
    k, pair = found[0]
    high = ((1 + np.sqrt(1.0 + 8.0 * pair)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > pair
    high += high * (high + 1) // 2 <= pair
    source, target = first[k] + pair - high * (high - 1) // 2, first[k] + high
    k, pair = found[1]
    low, other = np.divmod(pair, sizes[b[k]])
    by_class = np.argsort(truth, kind="stable")
    source = np.concatenate([source, first[a[k]] + low])
    return by_class[source], by_class[np.concatenate([target, first[b[k]] + other])]


def draw_subset(rng: np.random.Generator, size: int, total: int) -> Indices:
    """Draw `size` different numbers out of 0, 1, ..., total - 1, in order; any such set is as likely as another."""
    if 2 * size > total:
        left_out = draw_subset(rng, total - size, total)
        return np.delete(np.arange(total), left_out)
    found = np.empty(0, np.int64)
    while len(found) < size:
        found = np.sort(np.concatenate([found, rng.integers(0, total, size - len(found))]))
        found = found[np.append(True, found[1:] != found[:-1])]  # quicker than np.unique
    return found
