"""What crowds are drawn from.

Workers: what kinds there are, how each confuses the classes, and what they say. And what ties labels of items together:
Markov chains, and edges mostly within a class. Checks of the parameters of all simulators come first, with one way to
say what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.answers import Answers
from ..answers.columns import Values
from ..answers.items import Sequences
from ..arguments import is_among, is_number, is_whole, to_floats
from ..errors import ParameterError, Sentence, parameter_error, plural
from ..kernels import Floats
from ..memory import NUMBER, require_memory

ACTIVITIES = ("equal", "unequal")
# Answers drawn at a time: what is needed meanwhile stays in the processor's cache.
CHUNK = 1 << 16
# From one in so many workers on, drawing again whoever was drawn before takes longer than drawing lots for everyone.
MANY = 8
# The most items, workers and classes: their indices have 32 bits.
MOST = 2**31 - 1


def bad_parameter(name: str, expected: str, got: object) -> ParameterError:
    """Return the error for a bad parameter of the simulators."""
    return parameter_error(name, "simulate", expected, got)


def check_whole(least: int, **parameters: object) -> None:
    """Raise an error unless every parameter is a whole number, at least `least`, and a size that arrays can have."""
    for name, value in parameters.items():
        if not is_whole(value) or value < least:
            raise bad_parameter(name, f"a whole number >= {least}", value)
        if value > MOST:
            raise bad_parameter(name, f"a whole number between {least} and {MOST:,}", value)


def check_between(name: str, value: object, low: float, high: float, *, half_open: bool = False) -> None:
    """Raise an error unless a parameter is a number between two others."""
    if not (is_number(value) and low <= value <= high and not (half_open and value == high)):
        if high == np.inf:
            raise bad_parameter(name, f"a number >= {low:g}", value)
        raise bad_parameter(name, f"a number in [{low:g}, {high:g}{')' if half_open else ']'}", value)


def as_floats(name: str, values: ArrayLike, expected: str) -> Floats:
    """Return a parameter as an array of numbers."""
    try:
        return to_floats(values)
    except (TypeError, ValueError) as error:
        raise bad_parameter(name, expected, values) from error


def as_probabilities(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a parameter as an array of the given shape that sums to 1 along its last axis."""
    size = " x ".join(map(str, shape))
    expected = f"{size} probabilities that sum to 1" + (" in each row" if len(shape) > 1 else "")
    array = as_floats(name, values, expected)
    if array.shape != shape or not (array >= 0).all() or not np.allclose(array.sum(axis=-1), 1.0, atol=1e-6):
        raise bad_parameter(name, expected, values)
    return np.asarray(array / array.sum(axis=-1, keepdims=True))


def length_range(length: int | tuple[int, int]) -> tuple[int, int]:
    """Return the least and the greatest length that a parameter stands for."""
    ends: Any = (length, length) if is_whole(length) else length
    paired = isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(is_whole, ends))
    if not (paired and 1 <= ends[0] <= ends[1]):
        raise bad_parameter("length", "a whole number >= 1, or a pair (least, most) of them", length)
    check_whole(1, length=ends[1])
    return int(ends[0]), int(ends[1])


def cumulate(probabilities: Floats) -> Floats:
    """Return cumulated probabilities along the last axis, exactly 1 from the last possible outcome on.

    >>> cumulate(np.array([0.1, 0.2, 0.7, 0.0]))
    array([0.1, 0.3, 1. , 1. ])
    """
    total = probabilities.cumsum(axis=-1)
    return np.asarray(total / total[..., -1:])


@dataclass(frozen=True)
class Crew:
    """Who takes part: first the honest workers, then spammers, adversaries and copycats. See `independent`."""

    n_workers: int
    n_classes: int
    answers_per_item: int | None
    good: str | int
    accuracy: ArrayLike | None
    spammers: int
    adversaries: int
    copycats: int
    activity: str

    def __post_init__(self) -> None:
        check_whole(1, n_workers=self.n_workers, n_classes=self.n_classes)
        check_whole(0, spammers=self.spammers, adversaries=self.adversaries, copycats=self.copycats)
        if self.n_honest < 0 or self.n_looking < 1:
            raise ParameterError(
                f"{plural(self.spammers, 'spammer')}, {self.adversaries:,} adversaries and "
                f"{plural(self.copycats, 'copycat')} are too "
                f"many for {plural(self.n_workers, 'worker')}, at least one of whom must not be a copycat.",
                "Ask for fewer.",
            )
        if not is_among(self.activity, ACTIVITIES):
            raise bad_parameter("activity", "'equal' or 'unequal'", self.activity)
        per_item = self.answers_per_item
        if per_item is not None and not (is_whole(per_item) and 1 <= per_item <= self.n_looking):
            others = " (all workers but the copycats)" if self.copycats else ""
            raise bad_parameter("answers_per_item", f"a whole number between 1 and {self.n_looking}{others}", per_item)

    def check_size(self, n_items: int, lower_items: Sentence) -> None:
        """Raise an error if the matrices of the workers, or their answers, cannot be held in memory."""
        per_item = self.n_looking if self.answers_per_item is None else self.answers_per_item
        sizes = f"{plural(self.n_workers, 'worker')} x {self.n_classes:,} x {self.n_classes:,} classes"
        require_memory(
            NUMBER * self.n_workers * self.n_classes**2,
            f"The matrices of {sizes} are too large",
            Sentence("Lower {n_workers} or {n_classes}."),
            keyword="n_workers",
        )
        require_memory(
            NUMBER * n_items * per_item,
            f"The answers to {plural(n_items, 'item')} x {plural(per_item, 'answer')} are too many",
            lower_items,
            Sentence("Or lower {answers_per_item}."),
        )

    @property
    def n_looking(self) -> int:
        """Number of workers with answers of their own: all but the copycats."""
        return int(self.n_workers) - int(self.copycats)  # which NumPy's integers might not hold

    @property
    def n_honest(self) -> int:
        """Number of workers who do as well as they can."""
        return self.n_looking - int(self.spammers) - int(self.adversaries)

    @property
    def n_good(self) -> int:
        """Number of workers whose random matrix is made better than random."""
        if is_among(self.good, ("most",)):
            return min(self.n_workers // 2 + 1, self.n_honest)
        if is_among(self.good, ("all",)):
            return self.n_honest
        if not is_whole(self.good) or not 0 <= int(self.good) <= self.n_honest:
            expected = f"'most', 'all' or a number of workers between 0 and {self.n_honest}"
            raise bad_parameter("good", expected, self.good)
        return int(self.good)

    def kinds(self) -> NDArray[np.str_]:
        """Return what each worker is."""
        counts = [self.n_honest, self.spammers, self.adversaries, self.copycats]
        return np.repeat(["honest", "spammer", "adversary", "copycat"], counts)

    def copies(self) -> NDArray[np.int64]:
        """Return whom each worker copies: the others in turn, and -1 for workers who copy nobody."""
        leaders = np.full(self.n_workers, -1)
        leaders[self.n_looking :] = np.arange(self.copycats) % self.n_looking
        return leaders

    def draw_confusion(self, rng: np.random.Generator) -> Floats:
        """Draw a matrix [truth, answer] for each worker."""
        n_honest, n_looking, flat = self.n_honest, self.n_looking, np.ones(self.n_classes)
        confusion = rng.dirichlet(flat, size=(self.n_workers, self.n_classes))
        n_good = self.n_good
        if self.accuracy is None:
            better = confusion[:n_good]
            swap_with_diagonal(better, better.argmax(axis=2))
        else:
            confusion[:n_honest] = self._by_accuracy(rng)
        confusion[n_honest : n_honest + self.spammers] = rng.dirichlet(flat, size=self.spammers)[:, None, :]
        contrary = confusion[n_honest + self.spammers : n_looking]
        swap_with_diagonal(contrary, contrary.argmin(axis=2))
        confusion[n_looking:] = confusion[self.copies()[n_looking:]]
        return confusion

    def draw_rates(self, rng: np.random.Generator) -> Floats:
        """Draw how often each worker who looks is asked, as shares: all alike, or 1 / rank in random order."""
        if self.activity == "equal":
            return np.full(self.n_looking, 1 / self.n_looking)
        rates = 1.0 / (1 + rng.permutation(self.n_looking))
        return np.asarray(rates / rates.sum())

    def _by_accuracy(self, rng: np.random.Generator) -> Floats:
        """Return matrices of honest workers with given probabilities of the right answer, errors spread evenly."""
        n_workers, n_classes = self.n_honest, self.n_classes
        expected = (
            f"a number in [0, 1], a tuple (lowest, highest), or an array with one number for each of the {n_workers} "
            "workers who are honest"
        )
        levels = as_floats("accuracy", self.accuracy, expected)  # type: ignore[arg-type]
        drawn = isinstance(self.accuracy, tuple) and levels.shape == (2,)
        if not (drawn or levels.shape in ((), (n_workers,))) or not ((levels >= 0) & (levels <= 1)).all():
            raise bad_parameter("accuracy", expected, self.accuracy)
        if drawn:
            if levels[0] > levels[1]:
                raise bad_parameter("accuracy", expected, self.accuracy)
            levels = rng.uniform(levels[0], levels[1], n_workers)
        right = np.broadcast_to(levels, (n_workers,))[:, None, None]
        if n_classes == 1:
            return np.ones((n_workers, 1, 1))
        return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))


def swap_with_diagonal(confusion: Floats, chosen: NDArray[np.int64]) -> None:
    """Exchange the chosen entry of each row, chosen[worker, truth], with the diagonal one, in place."""
    n_workers, n_classes, _ = confusion.shape
    worker, truth = np.ix_(np.arange(n_workers), np.arange(n_classes))
    moved, diagonal = confusion[worker, truth, chosen], confusion[worker, truth, truth]
    confusion[worker, truth, chosen] = diagonal
    confusion[worker, truth, truth] = moved


def draw_answers(
    rng: np.random.Generator, crew: Crew, confusion: Floats, truth: NDArray[np.int64], keys: Values | Sequences
) -> Answers:
    """Draw all answers about items with the given truth and ids."""
    per_item = crew.n_looking if crew.answers_per_item is None else crew.answers_per_item
    worker = draw_distinct(rng, len(truth), per_item, crew.draw_rates(rng))
    label = draw_labels(rng, confusion, worker, truth)
    offsets = np.arange(len(truth) + 1) * per_item
    workers, labels = worker.astype(np.int32).ravel(), label.ravel()
    if crew.copycats:
        workers, labels, offsets = add_copies(workers, labels, offsets, crew)
    classes = np.arange(crew.n_classes)
    return Answers(offsets, workers, labels, None, np.arange(crew.n_workers), classes, classes, keys)


def draw_biases(rng: np.random.Generator, given: ArrayLike, n_raters: int) -> Floats:
    """Return the bias of each rater: those given, or drawn around 0 with a standard deviation."""
    expected = f"a standard deviation >= 0, or {plural(n_raters, 'number')}"
    values = as_floats("bias", given, expected)
    is_deviation = values.ndim == 0 and values >= 0
    if not (is_deviation or values.shape == (n_raters,)) or not np.isfinite(values).all():
        raise bad_parameter("bias", expected, given)
    return np.asarray(values * rng.standard_normal(n_raters) if is_deviation else values)


def draw_figures(rng: np.random.Generator, name: str, given: ArrayLike, n_raters: int, most: float) -> Floats:
    """Return a figure of each rater: one for all, drawn from a range, or those given."""
    within = f"numbers in [0, {most:g}]" if most < np.inf else "finite numbers >= 0"
    expected = f"one for all, a range (lowest, highest), or one per rater: {within}"
    values = as_floats(name, given, expected)
    is_range = isinstance(given, tuple) and len(given) == 2
    shaped = values.ndim == 0 or (values[0] <= values[1] if is_range else values.shape == (n_raters,))
    if not (shaped and (values >= 0).all() and (values <= most).all() and np.isfinite(values).all()):
        raise bad_parameter(name, expected, given)
    return rng.uniform(values[0], values[1], n_raters) if is_range else np.full(n_raters, values)


def mislead(rng: np.random.Generator, truth: NDArray[np.int64], n_classes: int, share: float) -> NDArray[np.int64]:
    """Return what seems to be true: on this share of the items another class, the same for all workers."""
    if share == 0 or n_classes == 1:
        return truth
    is_hard, other = rng.random(len(truth)) < share, rng.integers(1, n_classes, len(truth))
    return np.where(is_hard, (truth + other) % n_classes, truth)


def draw_distinct(rng: np.random.Generator, n_items: int, per_item: int, rates: Floats) -> NDArray[np.int64]:
    """Return (n_items, per_item) workers, drawn one after the other by their rates, none twice for one item."""
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


def draw_labels(
    rng: np.random.Generator, confusion: Floats, worker: NDArray[np.int64], truth: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Draw each answer from the worker's row for the item's truth: the place of a random number in cumulated ones."""
    cumulated = cumulate(confusion)
    label = np.zeros(worker.shape, np.int32)
    chunk = max(1, CHUNK // worker.shape[1])
    for start in range(0, len(worker), chunk):
        here = slice(start, start + chunk)
        draw = rng.random(worker[here].shape)
        label[here] = (draw[..., None] >= cumulated[worker[here], truth[here, None]]).sum(axis=-1)
    return label


def add_copies(
    worker: NDArray[np.int32], label: NDArray[np.int32], offsets: NDArray[np.int64], crew: Crew
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Repeat each answer for all who copy it; return workers, labels and offsets of items."""
    n_times = 1 + np.bincount(crew.copies()[crew.n_looking :], minlength=crew.n_looking)[worker]
    ends = np.concatenate([[0], np.cumsum(n_times)])
    # Worker w is copied by w + n, w + 2 n, ... where n workers have answers of their own.
    turn = np.arange(ends[-1]) - np.repeat(ends[:-1], n_times)
    workers = np.repeat(worker, n_times) + turn * crew.n_looking
    return workers.astype(np.int32), np.repeat(label, n_times), ends[offsets]


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
