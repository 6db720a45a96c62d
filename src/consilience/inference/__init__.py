"""Fitting: how parameters are found. One loop, written once, for every structure and every worker model.

This module holds what all of them share: tables of expected counts, of which most may be zero, and the step from
expected counts to probabilities, by maximum a posteriori or by variational Bayes.

Both take counts n of shape (R, L, K) (for each r and k a distribution over L outcomes) and pseudo-counts s, and give
what the E-step multiplies (`weights`), what is reported (`mean`), and what the distributions add to the objective
(`bound`):

==============  ==================================  =====================  ======================================
estimation      weights                             mean                   bound
==============  ==================================  =====================  ======================================
"em"            p = (n + s) / sum_l (n + s)         p                      sum s log p
"variational"   exp(psi(a) - psi(sum_l a))          a / sum_l a            -KL(Dir(a) || Dir(s)), a = n + s
==============  ==================================  =====================  ======================================

So in EM the pseudo-counts are those of a Dirichlet(s + 1) prior, whose mode is sought, and in variational Bayes s is
the Dirichlet parameter itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from ..answers.answers import Answers
from ..kernels import Floats, Integers, freeze, read_only
from ..limits import side_by_side

# A thread is worth starting for so many entries of tables of counts.
ENTRIES_PER_THREAD = 1 << 16
# A difference counts as one if it exceeds so many standard errors.
STANDARD_ERRORS = 2.0
# 95 % intervals: the quantiles at their ends, and half their width in standard deviations.
TAILS_95, NORMAL_95 = (0.025, 0.975), 1.959963984540054


class Distributions(NamedTuple):
    """Distributions over axis 1 of arrays (R, L, K): as the E-step uses them, and as they are reported."""

    log_weights: Floats
    mean: Floats
    bound: float

    @classmethod
    def known(cls, mean: Floats) -> Distributions:
        """Probabilities that are given: the E-step uses what is reported."""
        with np.errstate(divide="ignore"):
            return cls(freeze(np.log(mean)), mean, 0.0)


def fit_distributions(counts: Floats, smoothing: Floats, estimation: str) -> Distributions:
    """The distributions that expected counts call for.

    Parameters
    ----------
    counts : array of shape (R, L, K)
        Expected counts.
    smoothing : array of shape (1, L, K) or (R, L, K)
        Pseudo-counts.
    estimation : {"em", "variational"}
        See the table above.

    Examples
    --------
    >>> counts = np.array([[[9.0], [1.0]]])
    >>> fit_distributions(counts, np.ones((1, 2, 1)), "em").mean.ravel()
    array([0.83333333, 0.16666667])
    """
    from ..kernels.answers import add_expectations

    total = counts + smoothing
    mass = total.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / mass
    if (mass <= 0).any():
        # A class that a worker never met, and no smoothing: the crowd's matrix stands in, or else ignorance.
        crowd = counts.sum(axis=0)
        crowd_mass = crowd.sum(axis=0)
        safe = np.where(crowd_mass > 0, crowd_mass, 1.0)
        fallback = np.where(crowd_mass > 0, crowd / safe, 1.0 / counts.shape[1])
        mean = np.where(mass > 0, mean, fallback)
    if estimation == "em":
        with np.errstate(divide="ignore"):
            logs = np.log(mean)
            if np.any((mean == 0) & (total > 0)):
                # Pseudo-counts so small that the quotient is 0 as a double, which would cost the bound infinitely much.
                logs = np.where((mean == 0) & (total > 0), np.log(total) - np.log(mass), logs)
        # 0 log 0 = 0: where nothing is added, a probability may be zero.
        bound = float(np.sum(smoothing * np.where(smoothing > 0, logs, 0.0))) if np.any(smoothing > 0) else 0.0
        return Distributions(freeze(logs), mean, bound)
    log_weights = np.zeros_like(total)
    bounds, (n_labels, n_classes) = np.empty(len(counts)), counts.shape[1:]

    def expect(start: int, stop: int) -> None:
        run = slice(start, stop)
        room = np.empty((n_labels, n_classes)), np.empty((n_labels, n_classes)), np.empty(n_classes)
        own = smoothing[run] if len(smoothing) > 1 else smoothing
        add_expectations(read_only(counts[run]), read_only(own), *room, log_weights[run], bounds[run])

    side_by_side(expect, len(counts), ENTRIES_PER_THREAD // (n_labels * n_classes))
    return Distributions(freeze(log_weights), freeze(mean), float(bounds.sum()))


def fit_distribution(counts: Floats, smoothing: float, estimation: str) -> tuple[Floats, Floats, float]:
    """Weights, mean and bound of the one distribution (L,) that expected counts (L,) call for."""
    shape = (1, len(counts), 1)
    fitted = fit_distributions(counts.reshape(shape), np.full(shape, smoothing), estimation)
    weights = fitted.mean if estimation == "em" else np.exp(fitted.log_weights)
    return freeze(weights.ravel()), freeze(fitted.mean.ravel()), fitted.bound


def log_of(probabilities: Floats) -> Floats:
    """Logarithms; that of 0 is minus infinity."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


def weigh_logs(counts: Floats, logs: Floats) -> float:
    """The sum of counts times logarithms, with 0 log 0 = 0.

    >>> weigh_logs(np.array([2.0, 0.0]), np.array([-0.5, -np.inf]))
    -1.0
    """
    return float(np.sum(np.multiply(counts, logs, out=np.zeros_like(counts), where=counts > 0)))


@dataclass(frozen=True, eq=False)
class Cells:
    """The entries of a table (M, L, K) of expected counts that are not zero, in order.

    With thousands of labels the full table would not fit into memory, and an item's votes are about a few classes only.
    What is counted of improbable classes has the class K, which is none.

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
        """The entries of a table."""
        worker, label, klass = np.nonzero(counts)
        return cls(worker, label, klass, counts[worker, label, klass], counts.shape)

    @classmethod
    def of_answers(cls, r: Answers, posterior: Floats, least: float = 0.0) -> Cells:
        """How often each worker gave each label to items of each class, by posterior probability.

        Classes of an item with a probability below `least` are counted together. The sums are taken in the order of the
        items, as everywhere.
        """
        answered, item = np.unique(r.item_of_answer(), return_inverse=True)
        probable = csr_array(
            posterior[answered] if not least else np.where(posterior >= least, posterior, 0.0)[answered]
        )
        if least:
            rest = np.maximum(1.0 - probable.sum(axis=1), 0.0)
            probable = csr_array(hstack([probable, csr_array(rest[:, None])]))
        kinds, kind = np.unique(r.worker * np.int64(r.n_labels) + r.label, return_inverse=True)
        weight = r.weights()
        # Columns within a row must be in order before the product: it adds in this order.
        given = csr_array((weight, (kind, item)), shape=(len(kinds), len(answered)))
        given.sum_duplicates()
        sums = (given @ probable).tocoo()
        order = np.lexsort((sums.col, sums.row))
        worker, label = np.divmod(kinds[sums.row[order]], max(r.n_labels, 1))
        shape = (r.n_workers, r.n_labels, r.n_classes)
        return cls(worker, label, sums.col[order].astype(np.int64), sums.data[order], shape)

    def where(self, chosen: NDArray[np.bool_]) -> Cells:
        """Some of the entries; the others are zero."""
        return Cells(self.worker[chosen], self.label[chosen], self.klass[chosen], self.count[chosen], self.shape)

    def of_workers(self, first: int, last: int) -> Cells:
        """The table of consecutive workers, from `first` to before `last`."""
        here = slice(*np.searchsorted(self.worker, [first, last]).tolist())
        shape = (last - first, *self.shape[1:])
        return Cells(self.worker[here] - first, self.label[here], self.klass[here], self.count[here], shape)

    def sum_out(self, axis: int) -> Floats:
        """The sums over labels, (M, K), for axis 1; over classes, (M, L), for axis 2."""
        code, width = (self.klass, self.shape[2] + 1) if axis == 1 else (self.label, self.shape[1])
        sums = sum_by(self.worker * width + code, self.count, self.shape[0] * width)
        return np.ascontiguousarray(sums.reshape(self.shape[0], width)[:, : self.shape[3 - axis]])

    def sum_rows(self, codes: Integers, wanted: Integers) -> Floats:
        """Return, for each wanted code, the sum over the cells that have it, by class: (n, K)."""
        distinct, row = np.unique(wanted, return_inverse=True)
        at = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
        near = (distinct[at] == codes) & (self.klass < self.shape[2])
        n_classes = self.shape[2]
        codes_near = at[near] * n_classes + self.klass[near]
        sums = sum_by(codes_near, self.count[near], len(distinct) * n_classes)
        return np.asarray(sums.reshape(len(distinct), n_classes)[row])


def sum_by(codes: Integers, values: Floats, size: int) -> Floats:
    """The sum of the values of each code 0, 1, ..., size - 1, taken in their order."""
    return np.bincount(codes, values, minlength=size).astype(np.float64)  # without any codes it would be integers
