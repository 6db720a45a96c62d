r"""Ordinal and nominal workers: types of raters who know an order of the classes, and of workers who do not.

**Ordinal workers** are harsh or lenient, more or less exact, and careless now and then.

Classes have an order, and a position each. A rater of type (b, s, e) perceives the truth y as y + b + s z, with z
standard normal, and says the label whose position is nearest; with probability e the answer is any label:

.. math:: \pi(j \mid k) = (1 - e) \Big[ \Phi \Big( \frac{h_j - y_k - b}{s} \Big) -
          \Phi \Big( \frac{h_{j-1} - y_k - b}{s} \Big) \Big] + \frac{e}{L}

where :math:`h_j` is halfway between the positions of labels j and j + 1, and the outer ends are infinite. b is the bias
of the rater (harsh below 0, lenient above), s the spread, e the carelessness. Bias and spread are in units of the mean
gap between neighbouring classes. See `consilience.inference.workers.types` for what becomes of types.

A bias is relative to the crowd: if all raters are harsh by one level, nobody can tell without known labels.

**Nominal workers** are right with some probability, whatever the truth, and err evenly. With probability a the answer
is right, and with probability (1 - a) / (L - 1) any other one; a is .3, .45, .6, .75, .85 or .95. These types know of
no order. They are what `ordinal` types are compared with: both learn how strongly a worker is of their type, so that
what is left between them is the order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ...answers.answers import Answers
from ...kernels import Floats
from .types import TYPE_STRENGTHS, TypedWorkers

ACCURACIES = (0.3, 0.45, 0.6, 0.75, 0.85, 0.95)
N_BIASES, LEAST_REACH = 9, 2.0
SPREADS = (0.3, 0.5, 0.8, 1.2, 2.0)
CARELESS = (0.02, 0.2, 0.6)
# So many ratings of a rater are as good as lost on what is not known of the rater.
FEW_RATINGS = 11.0
# Items added to each level of a scale. The answers hardly tell a level from its neighbours: with less than one, a level
# can lose all of its items to them, and the others seem surer than they are.
ONE_OF_EACH = 1.0


@dataclass(frozen=True, eq=False)
class OrdinalWorkers(TypedWorkers):
    """Workers who rate on a scale."""

    name: ClassVar[str] = "ordinal"
    words: ClassVar[str] = "ordinal workers"
    are_raters: ClassVar[bool] = True
    shares_skills: ClassVar[bool] = True
    n_types: ClassVar[int] = N_BIASES * len(SPREADS) * len(CARELESS) * len(TYPE_STRENGTHS)
    added_items: ClassVar[tuple[float, int]] = (ONE_OF_EACH, 0)

    #: Where the classes are on the scale; by default their ranks.
    positions: tuple[float, ...] | None = None

    @classmethod
    def of(cls, responses: Answers, *layout: Any) -> Self:
        """The model for the workers of these answers."""
        return replace(super().of(responses, *layout), positions=responses.positions)

    def limit_power(self, counts: Floats) -> Floats:
        r"""The largest power.

        An E-step takes for known how harsh, exact and careless a rater is. With n ratings this is not known well, and
        posteriors are too sure. In crowds of `consilience.simulate.ratings`, a power of at most
        :math:`c = n / (n + 11)` makes up for that, whatever the sizes. The limit may also be the root of c, or c to
        the power of one and a half.
        """
        n = self.plain_counts(counts).sum(axis=(1, 2))
        limit = float(n @ (n / (n + FEW_RATINGS)) / n.sum()) if n.sum() > 0 else 1.0
        return limit ** np.array([0.5, 1.0, 1.5])

    @property
    def places(self) -> Floats:
        """Where the classes are on the scale, (K,)."""
        return np.array(range(self.n_classes) if self.positions is None else self.positions, dtype=np.float64)

    def draw_types(self) -> Floats:
        """How each type answers, (T, L', K)."""
        named = self.class_of_label[self.class_of_label >= 0]
        reach = max(LEAST_REACH, (self.n_classes - 1) / 2)
        biases = np.linspace(-reach, reach, N_BIASES)
        grid = np.array(np.meshgrid(biases, SPREADS, CARELESS, indexing="ij")).reshape(3, -1).T
        return rate(grid, self.places, named)


def rate(types: Floats, positions: Floats, named: NDArray[np.int64]) -> Floats:
    """The probability of each label that names a class, given each class, for types (T, 3).

    >>> rate(np.array([[0.0, 0.5, 0.0]]), np.arange(3.0), np.arange(3)).round(2)[0]
    array([[0.84, 0.16, 0.  ],
           [0.16, 0.68, 0.16],
           [0.  , 0.16, 0.84]])
    """
    order = np.argsort(positions[named], kind="stable")
    said = positions[named][order]
    gap = np.ptp(positions) / max(len(positions) - 1, 1) or 1.0
    halfway = (said[1:] + said[:-1]) / 2
    bias, spread, careless = (types[:, each, None, None] for each in range(3))
    below = ndtr(((halfway[:, None] - positions) / gap - bias) / spread)
    edges = np.pad(below, ((0, 0), (1, 1), (0, 0)), constant_values=((0, 0), (0, 1), (0, 0)))
    shares = (1 - careless) * np.diff(edges, axis=1) + careless / len(named)
    rates = np.empty_like(shares)
    rates[:, order] = shares
    return rates


class NominalWorkers(TypedWorkers):
    """Workers who are more or less often right."""

    name: ClassVar[str] = "nominal"
    shares_skills: ClassVar[bool] = True

    def draw_types(self) -> Floats:
        """How each type answers, (T, L', K). About a class that no label names, all answers are equal."""
        named = self.class_of_label[self.class_of_label >= 0]
        right = named[:, None] == np.arange(self.n_classes)
        even = np.where(right.any(axis=0), 1.0 / max(len(named) - 1, 1), 1.0 / len(named))
        accuracy = np.array(ACCURACIES)[:, None, None]
        matrices = np.where(right, accuracy, np.where(right.any(axis=0), 1 - accuracy, 1.0) * even)
        return np.asarray(matrices / matrices.sum(axis=1, keepdims=True))
