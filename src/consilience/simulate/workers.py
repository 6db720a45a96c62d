"""The workers of a made-up crowd: what kinds there are, and how each confuses the classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import is_among, is_whole
from ..errors import ParameterError, Sentence, plural
from ..kernels.types import Floats
from ..memory import NUMBER, require_memory
from .checks import as_floats, bad_parameter, check_whole

ACTIVITIES = ("equal", "unequal")


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
