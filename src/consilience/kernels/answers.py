"""Evidence from answers, and counts of answers: the two passes every worker model shares.

An answer is one integer, its *row* in a table of shape (n_rows, K). Item i owns the answers
`offsets[i]:offsets[i + 1]`. What a row means (worker and label, or also the worker's previous answer) is the worker
model's affair. An empty `weight` means that every weight is 1; an empty `gold` that no label is known.
"""

from __future__ import annotations

import numpy as np

from .compile import Width, count_of, kernel
from .types import Floats, Integers

# A running product below TINY is multiplied by HUGE and the fact is counted, class by class. It is looked at every
# STRIDE answers, so a table entry may be as small as SMALLEST without the product leaving the range of a double.
TINY, HUGE, LOG_HUGE = 1e-140, 1e140, 140 * np.log(10.0)
STRIDE, SMALLEST = 4, 1e-39
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
        shifted = False
        for k in range(n_classes):
            out[i, k] = base[k]
        start = offsets[i]
        stop = offsets[i + 1]
        while start < stop:
            for j in range(start, min(start + STRIDE, stop)):
                row = codes[j]
                for k in range(n_classes):
                    out[i, k] *= table[row, k]
            start += STRIDE
            if start < stop:
                for k in range(n_classes):
                    if 0.0 < out[i, k] < TINY:
                        out[i, k] *= HUGE
                        shift[k] += 1
                        shifted = True
        if shifted:
            least = shift.max()
            for k in range(n_classes):
                if out[i, k] > 0.0:
                    least = min(least, shift[k])
            for k in range(n_classes):
                out[i, k] *= HUGE ** (least - shift[k])
                shift[k] = 0
            log_scale -= least * LOG_HUGE
        if gold.size > 0 and gold[i] >= 0:
            log_scale += keep_gold(out, i, gold[i], width)
        else:
            top = 0.0
            for k in range(n_classes):
                top = max(top, out[i, k])
            if top < TINY:
                log_scale += rescale(out, i, top, width)
    return log_scale


@kernel
def keep_gold(out: Floats, i: int, gold: int, width: Width) -> float:
    """Keep only class `gold` of evidence row i; return the log of what it was."""
    known = out[i, gold]
    for k in range(count_of(width)):
        out[i, k] = 0.0
    out[i, gold] = 1.0
    return np.log(known) if known > 0.0 else LOG_IMPOSSIBLE


@kernel
def rescale(out: Floats, i: int, top: float, width: Width) -> float:
    """Divide evidence row i by its largest entry `top` (all ones where that is 0); return the log of the factor."""
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
        if top == -np.inf:
            log_scale += LOG_IMPOSSIBLE
        else:
            log_scale += top
        if gold.size > 0 and gold[i] >= 0:
            # Also below the range of doubles the price of a known label is exact.
            log_scale += max(out[i, gold[i]] - top, LOG_IMPOSSIBLE) if top > -np.inf else 0.0
            for k in range(n_classes):
                out[i, k] = 0.0
            out[i, gold[i]] = 1.0
        else:
            for k in range(n_classes):
                out[i, k] = np.exp(out[i, k] - top) if top > -np.inf else 1.0
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
