"""Evidence from answers, posteriors of independent items, and counts of answers.

Evidence and counts are the two passes every worker model shares.

An answer is one integer, its *row* in a table of shape (n_rows, K). Item i owns the answers
`offsets[i]:offsets[i + 1]`. What a row means (worker and label, or also the worker's previous answer) is the worker
model's affair. An empty `weight` means that every weight is 1; an empty `gold` that no label is known.
"""

from __future__ import annotations

import numpy as np

from .compile import kernel
from .types import Floats, Integers, Rows, Truths, Width

# A running product below TINY is multiplied by HUGE until it is not, and this is counted, class by class. It is looked
# at every STRIDE answers, so a table entry may be as small as SMALLEST without the product leaving the range of a
# double: TINY * SMALLEST ** STRIDE = 1e-300.
TINY, HUGE, LOG_HUGE = 1e-60, 1e60, 60 * np.log(10.0)
STRIDE, SMALLEST = 8, 1e-30
# Log likelihood of answers that no class allows: they are set aside, at a price that stays finite.
LOG_IMPOSSIBLE = -690.0
IMPOSSIBLE = np.exp(LOG_IMPOSSIBLE)
# What is left of a count, however much is taken away: rounding must not make it negative.
LEAST = 1e-12
# A quotient of counts is between 1e-19 and 1e19 up to ten million answers: so many of them can be multiplied before the
# logarithm is taken. Counts beyond that are too large for an item to matter, and never that unequal.
QUOTIENTS = 12


def multiply_rows(
    codes: Rows, offsets: Integers, gold: Integers, table: Floats, base: Floats, out: Floats, width: Width
) -> float:
    """Write evidence out[i, k] = c_i * base[k] * prod_j table[codes[j], k]; return sum_i log(1 / c_i).

    The scale c_i is chosen so that nothing under- or overflows that could still matter. An item with gold g keeps only
    out[i, g]. An item whose answers no class allows gets out[i, :] = 1.
    """
    shift = np.zeros(len(width), np.int64)
    return float(multiply_and_scale(codes, offsets, gold, table, base, out, shift, width))


@kernel
def multiply_and_scale(
    codes: Rows,
    offsets: Integers,
    gold: Integers,
    table: Floats,
    base: Floats,
    out: Floats,
    shift: Integers,
    width: Width,
) -> float:
    """Do what `multiply_rows` says. `shift` (K,), zero before and after, counts how often HUGE was multiplied."""
    n_classes, log_scale = len(width), 0.0
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            out[i, k] = base[k]
        first, last = offsets[i], offsets[i + 1]
        check = first + STRIDE
        for j in range(first, last):
            if j == check:
                check += STRIDE
                for k in range(n_classes):
                    while 0.0 < out[i, k] < TINY:
                        out[i, k] *= HUGE
                        shift[k] += 1
            row = codes[j]
            for k in range(n_classes):
                out[i, k] *= table[row, k]
        many = last - first > STRIDE
        if gold.size > 0 and gold[i] >= 0:
            known = out[i, gold[i]]
            log_scale += np.log(known) - shift[gold[i]] * LOG_HUGE if known > 0.0 else LOG_IMPOSSIBLE
            for k in range(n_classes):
                out[i, k] = 0.0
            out[i, gold[i]] = 1.0
        else:
            if many:
                # Bring all possible classes to the scale of the least shifted one.
                least = -1
                for k in range(n_classes):
                    if out[i, k] > 0.0 and (least < 0 or shift[k] < least):
                        least = shift[k]
                for k in range(n_classes):
                    factor = 1.0
                    for _ in range(least, shift[k]):
                        factor *= HUGE
                    out[i, k] *= 1.0 / factor
                log_scale -= max(least, 0) * LOG_HUGE
            possible = 0
            while possible < n_classes and out[i, possible] < TINY:
                possible += 1
            if possible == n_classes:  # otherwise the scale may stay; mostly the first class settles it
                top = 0.0
                for k in range(n_classes):
                    top = max(top, out[i, k])
                log_scale += np.log(top) if top > 0.0 else LOG_IMPOSSIBLE
                for k in range(n_classes):
                    out[i, k] = out[i, k] / top if top > 0.0 else 1.0
        if many:
            for k in range(n_classes):
                shift[k] = 0
    return log_scale


@kernel
def add_log_rows(
    codes: Rows,
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
    n_classes = len(width)
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
def add_votes(codes: Rows, offsets: Integers, weight: Floats, choice: Integers, out: Floats) -> None:
    """Add votes: out[i, choice[codes[j]]] += w_j for each answer j of each item i; a row of choice -1 has no vote."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            k = choice[codes[j]]
            if k >= 0:
                out[i, k] += weight[j] if weight.size > 0 else 1.0


@kernel
def sum_rows(codes: Rows, offsets: Integers, weight: Floats, power: int, table: Floats, out: Floats) -> None:
    """Add out[i, k] += w_j ** power * table[codes[j], k] for each answer j of each item i."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            w = weight[j] ** power if weight.size > 0 else 1.0
            for k in range(table.shape[1]):
                out[i, k] += w * table[codes[j], k]


@kernel
def sum_chances(
    worker: Integers,
    label: Integers,
    offsets: Integers,
    weight: Floats,
    class_of_label: Integers,
    posterior: Floats,
    out: Floats,
) -> None:
    """Add each worker's sums of w_j, w_j p_j and w_j p_j^2 to out (3, M); p_j is the chance that answer j is right."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            w = weight[j] if weight.size > 0 else 1.0
            k = class_of_label[label[j]]
            chance = posterior[i, k] if k >= 0 else 0.0
            out[0, worker[j]] += w
            out[1, worker[j]] += w * chance
            out[2, worker[j]] += w * chance * chance


@kernel
def count_rows(codes: Rows, offsets: Integers, weight: Floats, posterior: Floats, out: Floats, width: Width) -> None:
    """Add expected counts: out[codes[j], k] += w_j posterior[i, k] for each answer j of each item i."""
    n_classes = len(width)
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            row = codes[j]
            w = weight[j] if weight.size > 0 else 1.0
            for k in range(n_classes):
                out[row, k] += w * posterior[i, k]


@kernel
def add_to_rows(rows: Integers, counts: Floats, out: Floats) -> None:
    """Add counts[j] to out[rows[j]]."""
    for j in range(rows.size):
        for k in range(counts.shape[1]):
            out[rows[j], k] += counts[j, k]


@kernel
def normalise_items(evidence: Floats, prior: Floats, told: Truths, mass: Floats, width: Width) -> float:
    """Turn evidence into posteriors, in place: q[i, k] = prior[k] b[i, k] / Z_i with Z_i = sum_k prior[k] b[i, k].

    Adds sum_i q[i, k] to `mass` and returns sum_i log Z_i. Where the prior rules out every class that the answers
    allow, the prior is set aside, at a price: Z_i is sum_k b[i, k] exp(LOG_IMPOSSIBLE), if that is more. If `told` is
    not empty, only items for which it is True count in both sums.
    """
    n_classes = len(width)
    log_total = 0.0
    product = 1.0  # of many Z_i: one logarithm for all of them
    for i in range(evidence.shape[0]):
        total = 0.0
        for k in range(n_classes):
            total += prior[k] * evidence[i, k]
        counts = told.size == 0 or told[i]
        allowed = 0.0
        if total <= 1e-150:
            for k in range(n_classes):
                allowed += evidence[i, k]
        if total > allowed * IMPOSSIBLE:
            if not counts:
                pass
            elif total > 1e-150:
                product *= total
            else:
                log_total += np.log(total)  # the product might leave the range of doubles
            for k in range(n_classes):
                # A division, not a multiplication by 1 / total: what is certain is exactly 1.
                evidence[i, k] = prior[k] * evidence[i, k] / total
        else:
            for k in range(n_classes):
                evidence[i, k] /= allowed
            if counts:
                log_total += LOG_IMPOSSIBLE + np.log(allowed)
        if counts:
            for k in range(n_classes):
                mass[k] += evidence[i, k]
        if not 1e-150 < product < 1e150:
            log_total += np.log(product)
            product = 1.0
    return float(log_total + np.log(product))


@kernel
def add_left_out(
    codes: Rows,
    offsets: Integers,
    weight: Floats,
    above: Floats,
    below: Floats,
    posterior: Floats,
    out: Floats,
    width: Width,
) -> None:
    """Write out[i, k] = sum_j w_j log((above[c, k] - w_j q_ik) / (below[c, k] - w_j q_ik)), with c = codes[j].

    q is the posterior. Neither side of the fraction is less than `LEAST`. `above` and `below` are (n_rows, K).
    """
    n_classes = len(width)
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            out[i, k] = 0.0
            own = posterior[i, k]
            product = 1.0
            check = offsets[i] + QUOTIENTS
            for j in range(offsets[i], offsets[i + 1]):
                row = codes[j]
                if weight.size > 0:
                    taken = weight[j] * own
                    quotient = max(above[row, k] - taken, LEAST) / max(below[row, k] - taken, LEAST)
                    out[i, k] += weight[j] * np.log(quotient)
                    continue
                if j == check:
                    check += QUOTIENTS
                    out[i, k] += np.log(product)
                    product = 1.0
                product *= max(above[row, k] - own, LEAST) / max(below[row, k] - own, LEAST)
            out[i, k] += np.log(product)
