"""Nominal workers: types that are right with some probability, whatever the truth, and err evenly.

With probability a the answer is right, and with probability (1 - a) / (L - 1) any other one; a is .3, .45, .6, .75, .85
or .95. These types know of no order. They are what `ordinal` types are compared with: both learn how strongly a worker
is of their type, so that what is left between them is the order. See `consilience.inference.workers.types`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...kernels import Floats
from .confusion import names_class
from .types import TypedWorkers

ACCURACIES = (0.3, 0.45, 0.6, 0.75, 0.85, 0.95)


class NominalWorkers(TypedWorkers):
    """Workers who are more or less often right."""

    name: ClassVar[str] = "nominal"

    def draw_types(self) -> Floats:
        """Return how each type answers, (T, L', K). About a class that no label names, all answers are equal."""
        named = self.class_of_label[self.class_of_label >= 0]
        right = names_class(named, self.n_classes)
        even = np.where(right.any(axis=0), 1.0 / max(len(named) - 1, 1), 1.0 / len(named))
        accuracy = np.array(ACCURACIES)[:, None, None]
        matrices = np.where(right, accuracy, np.where(right.any(axis=0), 1 - accuracy, 1.0) * even)
        return np.asarray(matrices / matrices.sum(axis=1, keepdims=True))
