r"""How far workers agree with each other, before any model.

All three functions count pairs of answers that different workers gave to the same item. An answer with a weight counts
by its weight, and a pair by the product of the two. With :math:`n_{ic}` the mass of label c on item i, :math:`n_i` its
sum over labels, :math:`w_a` the weight of entry a, and :math:`m_{iw}` the mass of worker w on item i,

.. math:: A_i = \sum_c n_{ic}^2 - \sum_{a \in i} w_a^2, \quad P_i = n_i^2 - \sum_w m_{iw}^2

are the agreeing pairs and all pairs of item i, each counted twice, without those of a worker with itself. Without
weights they are :math:`\sum_c n_{ic} (n_{ic} - 1)` and :math:`n_i (n_i - 1)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, parameter_error

if TYPE_CHECKING:
    from ..data.responses import Responses

_MOST_WORKERS = 5_000  # two dense matrices of this side take 400 MB


def krippendorff_alpha(r: Responses) -> float:
    r"""Return Krippendorff's alpha for nominal labels.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}, \quad
              D_o = \frac{1}{n} \sum_i n_i \Big( 1 - \frac{A_i}{P_i} \Big), \quad
              D_e = 1 - \frac{\sum_c n_c^2 - \sum_a w_a^2}{n^2 - \sum_{iw} m_{iw}^2}

    with :math:`A_i`, :math:`P_i` the agreeing pairs and all pairs of item i, and :math:`n_c`, :math:`n` the masses of
    label c and of all answers, on items answered by at least two workers; other items are dropped. Without weights
    this is the definition by the coincidence matrix, missing answers included:
    :math:`D_e = 1 - \sum_c n_c (n_c - 1) / (n (n - 1))`.

    Parameters
    ----------
    r : Responses
        The answers.

    Returns
    -------
    float
        1 is perfect agreement, 0 what chance would give, below 0 systematic disagreement. nan if no item has two
        answers, or if only one label occurs on those that do: chance would then agree as well, and 0/0 says nothing.

    References
    ----------
    K. Krippendorff, "Computing Krippendorff's alpha-reliability", 2011.

    Examples
    --------
    >>> from consilience.data.responses import Responses
    >>> r = Responses.from_matrix([[0, 0, 0], [1, 1, 0], [1, 1, -1], [0, -1, -1]])
    >>> round(krippendorff_alpha(r), 4)
    0.5625
    """
    pairs = _count_pairs(r)
    if np.count_nonzero(pairs.label_mass) < 2:
        return float("nan")
    observed = np.average(1 - pairs.agreeing / pairs.total, weights=pairs.mass)
    agreeing = np.sum(pairs.label_mass**2) - pairs.own_agreeing
    total = np.sum(pairs.mass) ** 2 - pairs.own_total
    return float(1 - observed / (1 - agreeing / total))


def pairwise_agreement(r: Responses) -> float:
    r"""Return the probability that two answers to one item by different workers agree, over all pairs.

    .. math:: \frac{\sum_i A_i}{\sum_i P_i}

    with :math:`A_i`, :math:`P_i` the agreeing pairs and all pairs of item i. An item with many answers has many pairs
    and counts accordingly.

    Parameters
    ----------
    r : Responses
        The answers.

    Returns
    -------
    float
        Between 0 and 1, not corrected for chance; nan if no item has two answers.

    Examples
    --------
    >>> from consilience.data.responses import Responses
    >>> r = Responses.from_matrix([[0, 0, 0], [1, 1, 0], [1, 1, -1], [0, -1, -1]])
    >>> round(pairwise_agreement(r), 4)
    0.7143
    """
    pairs = _count_pairs(r)
    return float(pairs.agreeing.sum() / pairs.total.sum()) if pairs.total.size else float("nan")


def agreement_matrix(r: Responses) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    r"""Return, for each two workers, the share of common items on which they agree, and how many those are.

    .. math:: S_{vw} = \frac{\sum_i \sum_c n_{ivc} \, n_{iwc}}{\sum_i m_{iv} \, m_{iw}}

    with :math:`n_{iwc}` the weight (1 by default) that worker w gave label c on item i, :math:`m_{iw}` its sum over c.

    Parameters
    ----------
    r : Responses
        The answers, of at most 5,000 workers.

    Returns
    -------
    agree_share : ndarray of float64, shape (n_workers, n_workers)
        Between 0 and 1; nan where two workers have no item in common. The diagonal is 1, less only for a worker who
        spreads answers over several labels.
    n_common : ndarray of int64, shape (n_workers, n_workers)
        Number of items both answered; on the diagonal, number of items answered.

    Examples
    --------
    >>> from consilience.data.responses import Responses
    >>> r = Responses.from_matrix([[0, 0, 0], [1, 1, 0], [1, 1, -1], [0, -1, -1]])
    >>> share, n_common = agreement_matrix(r)
    >>> share.tolist()
    [[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]
    >>> n_common.tolist()
    [[4, 3, 2], [3, 3, 2], [2, 2, 2]]
    """
    _check_answers(r)
    if r.n_workers > _MOST_WORKERS:
        raise InputError(
            f"An agreement matrix is made for at most {_MOST_WORKERS:,} workers. Got {r.n_workers:,} instead.",
            "Select the workers to compare first.",
        )
    item = r.item_of_answer()
    owner_item, owner, owner_mass = _sum_by_worker(r, item)
    n_common = _products(owner, owner_item, np.ones(len(owner), dtype=np.int64), r.n_workers)
    # Numbering only the (item, label) pairs that occur keeps the sparse matrix small however many labels there are.
    _, item_label = np.unique(item * len(r.labels) + r.label, return_inverse=True)
    if r.weight is None:
        total, weight = n_common, np.ones(len(item))
    else:
        total, weight = _products(owner, owner_item, owner_mass, r.n_workers), r.weight
    agreeing = _products(r.worker, item_label, weight, r.n_workers)
    return np.divide(agreeing, total, out=np.full(total.shape, np.nan), where=n_common > 0), n_common


class _Pairs(NamedTuple):
    """Sums over pairs of answers, on the items that at least two workers answered."""

    mass: NDArray[np.float64]  # n_i
    agreeing: NDArray[np.float64]  # A_i
    total: NDArray[np.float64]  # P_i
    label_mass: NDArray[np.float64]  # n_c
    own_agreeing: float  # sum of w_a^2
    own_total: float  # sum of m_iw^2


def _check_answers(r: object) -> None:
    from ..data.responses import Responses

    if not isinstance(r, Responses):
        raise parameter_error("r", "agreement", "Responses, such as Responses.from_frame returns", r)


def _count_pairs(r: Responses) -> _Pairs:
    _check_answers(r)
    item = r.item_of_answer()
    weight = np.ones(len(item)) if r.weight is None else r.weight
    owner_item, _, owner_mass = _sum_by_worker(r, item)
    label_item, label, label_mass = _sum_by_pair(item, r.label, len(r.labels), r.weight)
    paired = np.bincount(owner_item, minlength=r.n_items) >= 2
    mass = _sum_at(item, weight, r.n_items)[paired]
    own_agreeing = _sum_at(item, weight**2, r.n_items)[paired]
    own_total = _sum_at(owner_item, owner_mass**2, r.n_items)[paired]
    return _Pairs(
        mass=mass,
        agreeing=_sum_at(label_item, label_mass**2, r.n_items)[paired] - own_agreeing,
        total=mass**2 - own_total,
        label_mass=_sum_at(label, label_mass * paired[label_item], len(r.labels)),
        own_agreeing=float(own_agreeing.sum()),
        own_total=float(own_total.sum()),
    )


def _sum_by_worker(
    r: Responses, item: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.float64]]:
    if r.weight is None:  # only a weighted answer may be spread over several entries
        return item, r.worker, np.ones(len(item))
    return _sum_by_pair(item, r.worker, r.n_workers, r.weight)


def _sum_by_pair(
    item: NDArray[np.int64], code: NDArray[np.int32], n_codes: int, weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return item, code and summed weight of each (item, code) pair that occurs, without an array of all pairs."""
    key = item * n_codes + code
    if weight is None:
        pair, count = np.unique(key, return_counts=True)
        mass = count.astype(np.float64)
    else:
        pair, position = np.unique(key, return_inverse=True)
        mass = _sum_at(position, weight, len(pair))
    return pair // n_codes, pair % n_codes, mass


def _sum_at(index: NDArray[np.integer], value: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    return np.bincount(index, weights=value, minlength=length).astype(np.float64, copy=False)


def _products(
    worker: NDArray[np.integer], column: NDArray[np.integer], value: NDArray[Any], n_workers: int
) -> NDArray[Any]:
    """Return the inner products of the rows of the sparse matrix with `value` at (worker, column)."""
    from scipy.sparse import csr_array

    rows = csr_array((value, (worker, column)), shape=(n_workers, int(column.max(initial=0)) + 1))
    product: NDArray[Any] = (rows @ rows.T).toarray()
    return product
