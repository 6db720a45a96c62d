"""Evidence from answers, and counts of answers: the two passes every worker model shares.

An answer is one integer, its *row* in a table of shape (n_rows, K). Item i owns the answers
`offsets[i]:offsets[i + 1]`. What a row means (worker and label, or also the worker's previous answer) is the worker
model's affair. An empty `weight` means that every weight is 1; an empty `gold` that no label is known.
"""

from __future__ import annotations

import numpy as np

from .compile import Width, count_of, kernel
from .types import Floats, Integers

# A running product below TINY is multiplied by HUGE until it is not, and this is counted, class by class. It is looked
# at every STRIDE answers, so a table entry may be as small as SMALLEST without the product leaving the range of a
# double: TINY * SMALLEST ** STRIDE = 1e-300.
TINY, HUGE, LOG_HUGE = 1e-60, 1e60, 60 * np.log(10.0)
STRIDE, SMALLEST = 8, 1e-30
# Log likelihood of answers that no class allows: they are set aside, at a price that stays finite.
LOG_IMPOSSIBLE = -690.0


@kernel
def multiply_rows(
    codes: Integers, offsets: Integers, gold: Integers, table: Floats, base: Floats, out: Floats, width: Width
) -> float:
    """Write evidence out[i, k] = c_i * base[k] * prod_j table[codes[j], k]; return sum_i log(1 / c_i).

    The scale c_i is chosen so that nothing under- or overflows that could still matter. An item with gold g keeps only
    out[i, g]. An item whose answers no class allows gets out[i, :] = 1.
    """
    n_classes = count_of(width)
    shift = np.zeros(n_classes, np.int64)
    log_scale = 0.0
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            out[i, k] = base[k]
        if offsets[i + 1] - offsets[i] <= STRIDE:
            for j in range(offsets[i], offsets[i + 1]):
                row = codes[j]
                for k in range(n_classes):
                    out[i, k] *= table[row, k]
            shifted = False
        else:
            shifted = multiply_many(codes[offsets[i] : offsets[i + 1]], table, out, i, shift, width)
        if gold.size > 0 and gold[i] >= 0:
            log_scale += keep_gold(out, i, gold[i], shift[gold[i]], width)
        else:
            if shifted:
                log_scale -= align(out, i, shift, width) * LOG_HUGE
            if not any_above(out, i, TINY, width):
                log_scale += rescale(out, i, width)
        if shifted:
            shift[:] = 0
    return log_scale


@kernel
def multiply_many(codes: Integers, table: Floats, out: Floats, i: int, shift: Integers, width: Width) -> bool:
    """Multiply the rows of many answers into out[i], counting in `shift` how often an entry had to be raised."""
    n_classes = count_of(width)
    shifted = False
    for start in range(0, codes.size, STRIDE):
        for j in range(start, min(start + STRIDE, codes.size)):
            row = codes[j]
            for k in range(n_classes):
                out[i, k] *= table[row, k]
        if start + STRIDE < codes.size:
            for k in range(n_classes):
                while 0.0 < out[i, k] < TINY:
                    out[i, k] *= HUGE
                    shift[k] += 1
                    shifted = True
    return shifted


@kernel
def any_above(out: Floats, i: int, least: float, width: Width) -> bool:
    """Tell whether row i has an entry of at least `least`; mostly the first one settles it."""
    for k in range(count_of(width)):  # noqa: SIM110 (a generator would not compile)
        if out[i, k] >= least:
            return True
    return False


@kernel
def align(out: Floats, i: int, shift: Integers, width: Width) -> int:
    """Bring the entries of evidence row i, each out by HUGE ** shift[k], to the scale of the least shifted one.

    Returns that shift, of the possible classes only; 0 where none is possible.
    """
    least = shift.max() + 1
    for k in range(count_of(width)):
        if out[i, k] > 0.0:
            least = min(least, shift[k])
    if least > shift.max():
        return 0
    for k in range(count_of(width)):
        if out[i, k] > 0.0:
            out[i, k] *= HUGE ** (least - shift[k])
    return int(least)


@kernel
def keep_gold(out: Floats, i: int, gold: int, shift: int, width: Width) -> float:
    """Keep only class `gold` of evidence row i, which is out by HUGE ** shift; return the log of what it was."""
    known = out[i, gold]
    for k in range(count_of(width)):
        out[i, k] = 0.0
    out[i, gold] = 1.0
    return np.log(known) - shift * LOG_HUGE if known > 0.0 else LOG_IMPOSSIBLE


@kernel
def rescale(out: Floats, i: int, width: Width) -> float:
    """Divide evidence row i by its largest entry (all ones where that is 0); return the log of the factor."""
    top = 0.0
    for k in range(count_of(width)):
        top = max(top, out[i, k])
    for k in range(count_of(width)):
        out[i, k] = out[i, k] / top if top > 0.0 else 1.0
    return np.log(top) if top > 0.0 else LOG_IMPOSSIBLE


@kernel
def add_log_rows(
    codes: Integers,
    offsets: Integers,
    gold: Integers,
    weight: Floats,
    log_table: Floats,
    log_base: Floats,
    out: Floats,
    width: Width,
) -> float:
    """Do what `multiply_rows` does, in logarithms: out[i, k] = c_i * exp(log_base[k] + sum_j w_j log_table[.., k]).

    Slower by the exponentials, but it takes weights and table entries of any size.
    """
    n_classes = count_of(width)
    log_scale = 0.0
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            out[i, k] = log_base[k]
        for j in range(offsets[i], offsets[i + 1]):
            row = codes[j]
            w = weight[j] if weight.size > 0 else 1.0
            for k in range(n_classes):
                out[i, k] += w * log_table[row, k]
        top = -np.inf
        for k in range(n_classes):
            top = max(top, out[i, k])
        if gold.size > 0 and gold[i] >= 0:
            known = out[i, gold[i]]
            log_scale += known if known > -np.inf else LOG_IMPOSSIBLE
            for k in range(n_classes):
                out[i, k] = 0.0
            out[i, gold[i]] = 1.0
        elif top > -np.inf:
            log_scale += top
            for k in range(n_classes):
                out[i, k] = np.exp(out[i, k] - top)
        else:
            log_scale += LOG_IMPOSSIBLE
            for k in range(n_classes):
                out[i, k] = 1.0
    return log_scale


@kernel
def add_rows(codes: Integers, offsets: Integers, weight: Floats, table: Floats, out: Floats, width: Width) -> None:
    """Write out[i, k] = sum_j w_j table[codes[j], k]: votes, where the table says which class a label names."""
    n_classes = count_of(width)
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            out[i, k] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            row = codes[j]
            w = weight[j] if weight.size > 0 else 1.0
            for k in range(n_classes):
                out[i, k] += w * table[row, k]


@kernel
def count_rows(
    codes: Integers, offsets: Integers, weight: Floats, posterior: Floats, out: Floats, width: Width
) -> None:
    """Add expected counts: out[codes[j], k] += w_j posterior[i, k] for each answer j of each item i."""
    n_classes = count_of(width)
    if weight.size > 0:
        for i in range(offsets.size - 1):
            for j in range(offsets[i], offsets[i + 1]):
                row = codes[j]
                for k in range(n_classes):
                    out[row, k] += weight[j] * posterior[i, k]
    else:
        for i in range(offsets.size - 1):
            for j in range(offsets[i], offsets[i + 1]):
                row = codes[j]
                for k in range(n_classes):
                    out[row, k] += posterior[i, k]


@kernel
def add_to_rows(rows: Integers, counts: Floats, out: Floats) -> None:
    """Add counts[j] to out[rows[j]]."""
    for j in range(rows.size):
        for k in range(counts.shape[1]):
            out[rows[j], k] += counts[j, k]
