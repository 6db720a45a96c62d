r"""How far workers agree with each other, before any model.

All functions but `span_agreement` count pairs of answers that different workers gave to the same item. An answer with a
weight counts by its weight, and a pair by the product of the two. With :math:`n_{ic}` the mass of label c on item i,
:math:`n_i` its sum over labels, :math:`w_a` the weight of entry a, and :math:`m_{iw}` the mass of worker w on item i,

.. math:: A_i = \sum_c n_{ic}^2 - \sum_{a \in i} w_a^2, \quad P_i = n_i^2 - \sum_w m_{iw}^2

are the agreeing pairs and all pairs of item i, each counted twice, without those of a worker with itself. Without
weights they are :math:`\sum_c n_{ic} (n_{ic} - 1)` and :math:`n_i (n_i - 1)`. Workers who count once together, as
`consilience.fuse` lets near-copies do, are one worker here: two answers of one group are no pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, listing, parameter_error
from ..kernels import NEARLY_ZERO, Floats, freeze, read_only
from ..limits import ITEMS_AT_ONCE, allocate
from ..options import is_among

if TYPE_CHECKING:
    from ..answers.answers import Answers
    from ..kinds.spans import Spans

# What may be known of labels.
LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(r: Answers, level: str = "nominal") -> float:
    r"""Krippendorff's alpha.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}, \quad
              D_o = \frac{1}{n} \sum_i n_i \Big( 1 - \frac{A_i}{P_i} \Big), \quad
              D_e = 1 - \frac{\sum_c n_c^2 - \sum_a w_a^2}{n^2 - \sum_{iw} m_{iw}^2}

    with :math:`A_i`, :math:`P_i` the agreeing pairs and all pairs of item i, and :math:`n_c`, :math:`n` the masses of
    label c and of all answers, on items answered by at least two workers; other items are dropped. Without weights
    this is the definition by the coincidence matrix, missing answers included:
    :math:`D_e = 1 - \sum_c n_c (n_c - 1) / (n (n - 1))`.

    On a scale, two answers c and d agree the more, the nearer they are to each other. They count as
    :math:`1 - \delta_{cd}^2 / \max \delta^2` of an agreeing pair, with the distance

    .. math:: \delta_{cd} = |y_c - y_d| \;\text{(interval)}, \qquad
              \delta_{cd} = \sum_{g = c}^{d} n_g - \frac{n_c + n_d}{2} \;\text{(ordinal)}

    between positions y, or between ranks of all answers. Answers outside of the scale, such as "can't tell", do not
    count.

    Parameters
    ----------
    r : Answers
        The answers.
    level : {"nominal", "ordinal", "interval"}, default "nominal"
        What is known of the labels: nothing but their names, their order, or their distances. The last two need ordered
        classes (`ordered=True`), or labels that are numbers.

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
    >>> from consilience.answers.answers import Answers
    >>> r = Answers.from_matrix([[0, 0, 0], [1, 1, 0], [1, 1, -1], [0, -1, -1]])
    >>> round(krippendorff_alpha(r), 4)
    0.5625
    >>> ratings = Answers.from_matrix([[0, 1, 1], [3, 4, 4], [2, 2, 1], [4, 4, 3]], ordered=True)
    >>> round(krippendorff_alpha(ratings), 2), round(krippendorff_alpha(ratings, "ordinal"), 2)
    (0.2, 0.81)
    """
    return _count_pairs(r, level).alpha()


def krippendorff_interval(r: Answers, level: str = "nominal") -> AlphaInterval:
    r"""Krippendorff's alpha with a 95% interval.

    The answers are taken as a sample of items: the interval is for the alpha of all items that could have been drawn,
    answered by the same workers. Item i of weight 1 moves alpha by its influence

    .. math:: I_i = \frac{\partial \alpha}{\partial w_i}
                  = -\frac{1}{D_e} \Big( \frac{n_i (1 - A_i / P_i - D_o)}{n} - (1 - \alpha) \,
                    \frac{\partial D_e}{\partial w_i} \Big)

    and the variance of alpha is the sum of the squares of the influences around their mean (the infinitesimal
    jackknife). Items of one sequence have one influence, their sum. The interval is symmetric in
    :math:`\operatorname{artanh} \alpha`, with the quantile of Student's t for the number of units. Where no two answers
    to an item differ, the lower end is the alpha at which that still happens with a probability of 2.5%.

    Ordinal distances depend on how frequent labels are, which an item moves too: its influence has this part as well.

    Parameters
    ----------
    r : Answers
        The answers.
    level : {"nominal", "ordinal", "interval"}, default "nominal"
        As for `krippendorff_alpha`.

    Returns
    -------
    AlphaInterval
        alpha, low and high. All are nan where alpha is; low and high are -1 and 1 if only one item, or one sequence,
        has two answers to an item.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(500, n_workers=10, n_classes=3, answers_per_item=4, accuracy=0.8, seed=1)
    >>> [round(value, 2) for value in krippendorff_interval(crowd.responses)]
    [0.48, 0.44, 0.52]
    """
    from scipy.special import stdtrit

    pairs = _count_pairs(r, level)
    alpha = pairs.alpha()
    if np.isnan(alpha):
        return AlphaInterval(alpha, alpha, alpha)
    # The derivative of alpha by the weight of each item, at weights of 1.
    observed, expected, n = pairs.observed(), pairs.expected(), pairs.mass.sum()
    n_pairs, influence = n**2 - pairs.own_total.sum(), np.empty(len(pairs.paired))
    for run in pairs.runs():
        by_observed = pairs.mass[run] * (1 - pairs.shares(run) - observed) / n
        # D_e = 1 - G / T: agreeing pairs of all answers, and all pairs. Own pairs are of one item, linear in it.
        by_agreeing = 2 * pairs.chance[run] - pairs.own_agreeing[run]
        by_total = 2 * n * pairs.mass[run] - pairs.own_total[run]
        by_expected = ((1 - expected) * by_total - by_agreeing) / n_pairs
        influence[run] = ((1 - alpha) * by_expected - by_observed) / expected
    if pairs.moved is not None:
        influence -= (pairs.moved[0] - (1 - alpha) * pairs.moved[1]) / expected
    if r.sequences is not None:
        influence = _sum_at(np.unique(r.sequences.of_items()[pairs.paired], return_inverse=True)[1], influence)
    n_units = len(influence)
    if n_units < 2:
        return AlphaInterval(alpha, -1.0, 1.0)
    if alpha >= 1 - 1e-12:
        # With probability 2.5 % no unit disagrees if each does so with this one.
        return AlphaInterval(alpha, max(-1.0, 1 - (1 - 0.025 ** (1 / n_units)) / expected), 1.0)
    influence -= influence.mean()
    influence *= influence
    error = np.sqrt(influence.sum() * n_units / (n_units - 1))
    centre = np.arctanh(max(alpha, -1 + 1e-12))
    reach = float(stdtrit(n_units - 1, 0.975)) * error / max(1 - alpha**2, 1e-12)
    return AlphaInterval(alpha, float(np.tanh(centre - reach)), float(np.tanh(centre + reach)))


class AlphaInterval(NamedTuple):
    """Krippendorff's alpha and its 95% interval."""

    alpha: float
    low: float
    high: float


def pairwise_agreement(r: Answers) -> float:
    r"""The probability that two answers to one item by different workers agree, over all pairs.

    .. math:: \frac{\sum_i A_i}{\sum_i P_i}

    with :math:`A_i`, :math:`P_i` the agreeing pairs and all pairs of item i. An item with many answers has many pairs
    and counts accordingly.

    Parameters
    ----------
    r : Answers
        The answers.

    Returns
    -------
    float
        Between 0 and 1, not corrected for chance; nan if no item has two answers.

    Examples
    --------
    >>> from consilience.answers.answers import Answers
    >>> r = Answers.from_matrix([[0, 0, 0], [1, 1, 0], [1, 1, -1], [0, -1, -1]])
    >>> round(pairwise_agreement(r), 4)
    0.7143
    """
    pairs = _count_pairs(r, "nominal")
    total = (pairs.mass**2 - pairs.own_total).sum()
    return float(pairs.agreeing.sum() / total) if total > 0 else float("nan")


def span_agreement(spans: Spans) -> float:
    """How far workers agree about spans: the mean strict F1 of all pairs of workers.

    Of a pair the documents count that both have read. Pairs without such a document are left out, and so are pairs of
    whom neither marked a span there. It is NaN if no pair is left.

    Parameters
    ----------
    spans : Spans
        The spans of several workers.

    Examples
    --------
    >>> import consilience as cs
    >>> table = {"document": [1, 1, 1], "worker": ["a", "b", "b"], "start": [0, 0, 8], "end": [3, 3, 11]}
    >>> spans = cs.Spans.from_frame(table | {"label": ["PER"] * 3}, {1: "Ann met Bob."})
    >>> round(span_agreement(spans), 3)
    0.667
    """
    from scipy.sparse import csr_array  # which takes long to load

    marks, n_workers, n_documents = spans.marks, len(spans.workers), len(spans.documents)
    rows = np.stack([marks.document, marks.start, marks.end, marks.label], axis=1)
    _, span = np.unique(rows, axis=0, return_inverse=True) if len(rows) else (rows, np.empty(0, np.int64))
    ones = np.ones(len(rows))
    said = csr_array((ones, (span, marks.worker)), shape=(len(rows), n_workers))
    marked = csr_array((ones, (marks.document, marks.worker)), shape=(n_documents, n_workers))
    read = csr_array((np.ones(len(spans.readings)), tuple(spans.readings.T)), shape=(n_documents, n_workers))
    common = (said.T @ said).toarray()
    in_shared = (marked.T @ read).toarray()  # spans of the first in documents that the second has read
    total = in_shared + in_shared.T
    pairs = np.triu(total > 0, 1)
    return float((2 * common[pairs] / total[pairs]).mean()) if pairs.any() else float("nan")


class _Pairs(NamedTuple):
    """Sums over pairs of answers, on the items that at least two workers answered."""

    paired: NDArray[np.int64]  # which items these are
    mass: Floats  # n_i
    agreeing: Floats  # A_i
    own_agreeing: Floats  # sum of w_a^2 of each item, with entries of one group and label added first
    own_total: Floats  # sum of m_iw^2 of each item; P_i is n_i^2 less this
    chance: Floats  # sum over labels of n_c n_ic; on a scale, of pairs of them by how near they are
    label_mass: Floats  # n_c
    moved: Floats | None = None  # (2, n): by how much an item moves D_o and D_e by moving ordinal distances

    def shares(self, run: slice = slice(None)) -> Floats:
        """The share of agreeing pairs of each item; 1 where the weights of all pairs are lost in rounding."""
        total = self.mass[run] ** 2 - self.own_total[run]
        return np.divide(self.agreeing[run], total, out=np.ones_like(total), where=total > 0)

    def runs(self) -> list[slice]:
        """Runs of items, so that what is made of them takes little memory."""
        return [slice(first, first + ITEMS_AT_ONCE) for first in range(0, len(self.paired), ITEMS_AT_ONCE)]

    def observed(self) -> float:
        """The observed disagreement."""
        total = sum(float(np.sum((1 - self.shares(run)) * self.mass[run])) for run in self.runs())
        return total / float(self.mass.sum())

    def expected(self) -> float:
        """The disagreement that chance would give."""
        total = float(np.sum(self.mass) ** 2 - self.own_total.sum())
        agreeing = float(self.chance.sum()) - float(self.own_agreeing.sum())
        return 1 - agreeing / total if total > 0 else 0.0  # lost in rounding

    def alpha(self) -> float:
        """Krippendorff's alpha."""
        expected = self.expected() if np.count_nonzero(self.label_mass) > 1 else 0.0
        return float(1 - self.observed() / expected) if expected > 0 else float("nan")


def _count_pairs(r: Answers, level: str) -> _Pairs:
    from ..answers.answers import Answers
    from ..kernels.agreement import add_chance, count_pairs

    if not isinstance(r, Answers):
        raise parameter_error("r", "agreement", "Answers, such as Answers.from_frame returns", r)
    if not is_among(level, LEVELS):
        raise parameter_error("level", "krippendorff_alpha", f"one of {listing(LEVELS)}", level)
    if level != "nominal":
        return _count_scaled_pairs(r, level)
    offsets, owner, label, weight = r.offsets, r.worker, r.label, freeze(np.empty(0)) if r.amount is None else r.amount
    if r.leader is not None:  # what one group says of an item by one label is one answer
        key = (r.item_of_answer() * r.n_workers + r.leader[r.worker]) * r.n_labels + r.label
        rows, place = np.unique(key, return_inverse=True)
        weight = freeze(_sum_at(place, r.weights()))
        pair, label = np.divmod(rows, r.n_labels)
        item, owner = np.divmod(pair, r.n_workers)
        offsets = freeze(np.searchsorted(item, np.arange(r.n_items + 1)).astype(r.offsets.dtype))
        owner, label = freeze(owner.astype(r.worker.dtype)), freeze(label.astype(r.label.dtype))
    paired, sums, label_mass = np.empty(r.n_items, np.int64), allocate((4, r.n_items)), np.zeros(r.n_labels)
    scratch = np.zeros(r.n_workers), np.zeros(r.n_labels)
    n_paired = count_pairs(offsets, owner, label, weight, *scratch, paired, sums, label_mass)
    paired, chance = paired[:n_paired], np.empty(n_paired)
    add_chance(offsets, label, weight, read_only(paired), read_only(label_mass), chance)
    mass, agreeing, own_agreeing, own_total = sums[:, :n_paired]
    return _Pairs(paired, mass, agreeing, own_agreeing, own_total, chance, label_mass)


def _count_scaled_pairs(r: Answers, level: str) -> _Pairs:
    """The same for answers on a scale."""
    if r.positions is not None:
        place = np.where(r.class_of_label >= 0, np.array(r.positions)[r.class_of_label], np.nan)
    else:
        try:
            place = np.array([float(label) for label in r.labels.tolist()])
        except (TypeError, ValueError):
            raise InputError(
                f"Labels have no order: {listing(r.labels.tolist())}.",
                "Say ordered=True where the answers are read, with classes= from low to high.",
                'Or take level="nominal".',
            ) from None
    kept = np.flatnonzero(np.isfinite(place[r.label]))
    item, weight = r.item_of_answer()[kept], r.weights(kept)
    places, code = np.unique(place[r.label[kept]], return_inverse=True)
    n_levels = len(places)
    by_level = _sum_at(item * n_levels + code, weight, r.n_items * n_levels).reshape(-1, n_levels)
    if r.weight is None and r.leader is None:  # each answer is a pair with itself alone
        paired, of_owner, row = np.flatnonzero(by_level.sum(axis=1) >= 2), by_level[:0], item[:0]
    else:
        owner = r.worker[kept] if r.leader is None else r.leader[r.worker[kept]]
        owners, group = np.unique(item * r.n_workers + owner, return_inverse=True)
        of_owner = _sum_at(group * n_levels + code, weight, len(owners) * n_levels).reshape(-1, n_levels)
        owned = owners // r.n_workers
        paired = np.flatnonzero(np.bincount(owned, minlength=r.n_items) >= 2)
        here = np.isin(owned, paired)
        of_owner, row = of_owner[here], np.searchsorted(paired, owned[here])
    by_level = by_level[paired]
    mass, label_mass = by_level.sum(axis=1), by_level.sum(axis=0)
    middle = np.cumsum(label_mass) - label_mass / 2 if level == "ordinal" else places
    gaps = np.abs(middle[:, None] - middle)
    widest = max(gaps.max(initial=0.0), NEARLY_ZERO)
    gaps = gaps / widest
    near = 1 - gaps**2
    own_agreeing = own_total = mass
    if len(row):
        own_agreeing = _sum_at(row, np.sum(of_owner @ near * of_owner, axis=1), len(mass))
        own_total = _sum_at(row, of_owner.sum(axis=1) ** 2, len(mass))
    moved = None
    if level == "ordinal":  # distances are sums of the numbers of answers of each level; only their ratios count
        low, high, each = np.ogrid[:n_levels, :n_levels, :n_levels]
        between = (each >= np.minimum(low, high)) & (each <= np.maximum(low, high))
        change = 2 * gaps[:, :, None] * (between - 0.5 * (each == low) - 0.5 * (each == high)) / widest
        # How often two answers are these levels, to one item and to any. Own pairs of one level are at distance 0.
        share = mass / (mass**2 - own_total) / mass.sum()
        observed = (by_level.T * share) @ by_level - (of_owner.T * share[row]) @ of_owner
        n_pairs = max(mass.sum() ** 2 - own_total.sum(), NEARLY_ZERO)
        expected = (np.outer(label_mass, label_mass) - of_owner.T @ of_owner) / n_pairs
        moved = np.stack([by_level @ np.einsum("cd,cdg->g", each, change) for each in (observed, expected)])
    return _Pairs(
        paired=paired,
        mass=mass,
        agreeing=np.sum(by_level @ near * by_level, axis=1) - own_agreeing,
        own_agreeing=own_agreeing,
        own_total=own_total,
        chance=by_level @ (near @ label_mass),
        label_mass=label_mass,
        moved=moved,
    )


def _sum_at(index: NDArray[np.integer], value: Floats, length: int = 0) -> Floats:
    return np.bincount(index, value, length).astype(np.float64, copy=False)
