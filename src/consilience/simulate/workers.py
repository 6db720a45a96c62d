"""The workers of a made-up crowd: what kinds there are, how each confuses the classes, and what they say.

Checks of the parameters of all simulators come first, with one way to say what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.columns import Values
from ..answers.items import Sequences
from ..answers.responses import Responses
from ..arguments import is_among, is_number, is_whole, to_floats
from ..errors import ParameterError, Sentence, parameter_error, plural
from ..kernels.types import Floats
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
) -> Responses:
    """Draw all answers about items with the given truth and ids."""
    per_item = crew.n_looking if crew.answers_per_item is None else crew.answers_per_item
    worker = draw_distinct(rng, len(truth), per_item, crew.draw_rates(rng))
    label = draw_labels(rng, confusion, worker, truth)
    offsets = np.arange(len(truth) + 1) * per_item
    workers, labels = worker.astype(np.int32).ravel(), label.ravel()
    if crew.copycats:
        workers, labels, offsets = add_copies(workers, labels, offsets, crew)
    classes = np.arange(crew.n_classes)
    return Responses(offsets, workers, labels, None, np.arange(crew.n_workers), classes, classes, keys)


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
    n_classes = confusion.shape[2]
    width = 1 << (n_classes - 1).bit_length()
    cumulated = np.full((*confusion.shape[:2], width), np.inf)
    cumulated[:, :, :n_classes] = cumulate(confusion)
    flat = cumulated.ravel()
    label = np.zeros(worker.shape, np.int32)
    chunk = max(1, CHUNK // worker.shape[1])
    for start in range(0, len(worker), chunk):
        here = slice(start, start + chunk)
        draw = rng.random(worker[here].shape)
        first = (worker[here] * n_classes + truth[here, None]) * width
        at, step = first.copy(), width // 2
        while step:  # halve the interval: `at` ends at the first entry that exceeds the draw
            at += step * (draw >= flat[at + (step - 1)])
            step //= 2
        label[here] = at - first
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
