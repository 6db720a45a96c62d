"""Expected counts of answers of which most are zero, such as those of votes: only the others are kept.

With thousands of labels the full table (workers, labels, classes) would not fit into memory, and an item's votes are
about a few classes only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..answers.responses import Responses
from ..kernels.types import Floats, Integers

# Items that are looked at together, where all at once would take much memory.
ITEMS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Cells:
    """The entries of a table (M, L, K) of expected counts that are not zero, in order.

    Attributes
    ----------
    worker, label, klass : int64 array
        Where each entry stands.
    count : float64 array
        The entries.
    shape : tuple
        M, L and K.
    """

    worker: NDArray[np.int64]
    label: NDArray[np.int64]
    klass: NDArray[np.int64]
    count: Floats
    shape: tuple[int, ...]

    @classmethod
    def of_table(cls, counts: Floats) -> Cells:
        """Return the entries of a table."""
        worker, label, klass = np.nonzero(counts)
        return cls(worker, label, klass, counts[worker, label, klass], counts.shape)

    @classmethod
    def of_answers(cls, r: Responses, posterior: Floats) -> Cells:
        """Return how often each worker gave each label to items of each class, by posterior probability.

        The sums are taken in the order of the items, as everywhere.
        """
        answered, item = np.unique(r.item_of_answer(), return_inverse=True)
        kinds, kind = np.unique(r.worker * np.int64(r.n_labels) + r.label, return_inverse=True)
        weight = np.ones(r.n_responses) if r.weight is None else r.weight
        # Columns within a row must be in order before the product: it adds in this order.
        given = csr_array((weight, (kind, item)), shape=(len(kinds), len(answered)))
        given.sum_duplicates()
        found = (given @ csr_array(posterior[answered])).tocoo()
        order = np.lexsort((found.col, found.row))
        worker, label = np.divmod(kinds[found.row[order]], max(r.n_labels, 1))
        shape = (r.n_workers, r.n_labels, r.n_classes)
        return cls(worker, label, found.col[order].astype(np.int64), found.data[order], shape)

    def where(self, chosen: NDArray[np.bool_]) -> Cells:
        """Return some of the entries; the others are zero."""
        return Cells(self.worker[chosen], self.label[chosen], self.klass[chosen], self.count[chosen], self.shape)

    def of_workers(self, first: int, last: int) -> Cells:
        """Return the table of consecutive workers, from `first` to before `last`."""
        here = slice(*np.searchsorted(self.worker, [first, last]).tolist())
        shape = (last - first, *self.shape[1:])
        return Cells(self.worker[here] - first, self.label[here], self.klass[here], self.count[here], shape)

    def with_counts(self, counts: Floats) -> Cells:
        """Return a table with other entries in the same places."""
        return replace(self, count=counts)

    def sum_out(self, axis: int) -> Floats:
        """Return the sums over labels, (M, K), for axis 1; over classes, (M, L), for axis 2."""
        code, width = (self.klass, self.shape[2]) if axis == 1 else (self.label, self.shape[1])
        sums = sum_by(self.worker * width + code, self.count, self.shape[0] * width)
        return sums.reshape(self.shape[0], width)

    def sum_rows(self, codes: Integers, wanted: Integers) -> Floats:
        """Return, for each wanted code, the sum over the cells that have it, by class: (n, K)."""
        distinct, row = np.unique(wanted, return_inverse=True)
        at = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
        near = distinct[at] == codes
        n_classes = self.shape[2]
        codes_near = at[near] * n_classes + self.klass[near]
        sums = sum_by(codes_near, self.count[near], len(distinct) * n_classes)
        return np.asarray(sums.reshape(len(distinct), n_classes)[row])


def sum_by(codes: Integers, values: Floats, size: int) -> Floats:
    """Return the sum of the values of each code 0, 1, ..., size - 1, taken in their order."""
    return np.bincount(codes, values, minlength=size).astype(np.float64)  # without any codes it would be integers
