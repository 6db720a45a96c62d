"""What a crowd is, whatever holds its answers: who answers, what is said, what can be true, and how many there are."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.types import Floats
from .vocabulary import Values


class Crowd(Protocol):
    """The vocabularies and sizes that answers in memory and answers on disk have in common; see `Responses`."""

    @property
    def workers(self) -> Values:
        """Worker ids."""

    @property
    def labels(self) -> Values:
        """What workers say."""

    @property
    def classes(self) -> Values:
        """What can be true."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def n_workers(self) -> int:
        """Number of workers."""

    @property
    def n_labels(self) -> int:
        """Number of labels."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def n_responses(self) -> int:
        """Number of answers."""

    @property
    def class_of_label(self) -> NDArray[np.int64]:
        """For each label, the class it names, or -1."""

    @property
    def label_of_class(self) -> NDArray[np.int64]:
        """For each class, the label that names it, or -1."""

    @property
    def sequences(self) -> Sized | None:
        """The sequences that the items are in; None where items are independent of each other."""

    @property
    def silence_counts(self) -> bool:
        """Whether a worker's silence about an item is itself an answer."""

    @property
    def silence_weight(self) -> Floats | None:
        """Where silence is an answer: how much that of each worker counts."""

    @property
    def normalised(self) -> bool:
        """Whether labels are in their normal form."""

    def vote_shares(self) -> Floats:
        """Return what an item without votes is taken for."""

    def with_classes(self, classes: Values) -> Self:
        """Return the same answers with other classes."""
