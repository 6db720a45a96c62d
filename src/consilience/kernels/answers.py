"""Evidence from answers, posteriors of independent items, counts of answers, and what variational Bayes makes of them.

Evidence and counts are the two passes every worker model shares.

An answer is one integer, its *row* in a table of shape (n_rows, K). Item i owns the answers
`offsets[i]:offsets[i + 1]`. What a row means (worker and label, or also the worker's previous answer) is the worker
model's affair. An empty `weight` or `share`, the power that the likelihood of each answer is raised to, means that
every one is 1; an empty `gold` that no label is known.

Variational Bayes needs expectations of logarithms under Dirichlet distributions. For x >= 8 the asymptotic series of
digamma and log gamma are exact to 2e-14; smaller x are first moved up by psi(x) = psi(x + 8) - sum_i 1 / (x + i) and
lgamma(x) = lgamma(x + 8) - log prod_i (x + i). The two share their one expensive part, the logarithm of x.
"""

from __future__ import annotations

import numpy as np

from . import LEAST_LEFT_OVER, LOG_IMPOSSIBLE, Floats, Integers, Rows, Truths, Width
from .compile import kernel

# A running product below TINY is multiplied by HUGE until it is not, and this is counted, class by class. It is looked
# at every STRIDE answers, so a table entry may be as small as SMALLEST without the product leaving the range of a
# double: TINY * SMALLEST ** STRIDE = 1e-300.
TINY, HUGE, LOG_HUGE = 1e-60, 1e60, 60 * np.log(10.0)
STRIDE, SMALLEST = 8, 1e-30
IMPOSSIBLE = np.exp(LOG_IMPOSSIBLE)
# A quotient of counts is between 1e-19 and 1e19 up to ten million answers: so many of them can be multiplied before the
# logarithm is taken. Counts beyond that are too large for an item to matter, and never that unequal.
QUOTIENTS = 12
HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


@kernel
def multiply_rows(
    codes: Rows,
    offsets: Integers,
    gold: Integers,
    table: Floats,
    base: Floats,
    out: Floats,
    shift: Integers,
    width: Width,
) -> float:
    """Write evidence out[i, k] = c_i * base[k] * prod_j table[codes[j], k]; return sum_i log(1 / c_i).

    The scale c_i is chosen so that nothing under- or overflows that could still matter. An item with gold g keeps only
    out[i, g]. An item whose answers no class allows gets out[i, :] = 1. `shift` (K,), zero before and after, counts how
    often HUGE was multiplied.
    """
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
    share: Floats,
    log_table: Floats,
    log_base: Floats,
    out: Floats,
    width: Width,
) -> float:
    """Do what `multiply_rows` does, in logarithms: out[i, k] = c_i * exp(log_base[k] + sum_j s_j log_table[.., k]).

    Slower by the exponentials, but it takes shares and table entries of any size.
    """
    n_classes = len(width)
    log_scale = 0.0
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            out[i, k] = log_base[k]
        for j in range(offsets[i], offsets[i + 1]):
            row = codes[j]
            s = share[j] if share.size > 0 else 1.0
            for k in range(n_classes):
                out[i, k] += s * log_table[row, k]
        log_scale += scale_item(out, i, gold[i] if gold.size > 0 else -1)
    return log_scale


@kernel
def scale_item(out: Floats, i: int, known: int) -> float:
    """Turn the log evidence out[i] into evidence whose largest entry is 1; return the logarithm of that entry."""
    n_classes = out.shape[1]
    top = -np.inf
    for k in range(n_classes):
        top = max(top, out[i, k])
    if known >= 0:
        top = out[i, known] if out[i, known] > -np.inf else LOG_IMPOSSIBLE
        for k in range(n_classes):
            out[i, k] = 0.0
        out[i, known] = 1.0
    elif top > -np.inf:
        for k in range(n_classes):
            out[i, k] = np.exp(out[i, k] - top)
    else:
        top = LOG_IMPOSSIBLE
        for k in range(n_classes):
            out[i, k] = 1.0
    return float(top)


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
    codes: Rows, offsets: Integers, weight: Floats, choice: Integers, posterior: Floats, out: Floats
) -> None:
    """Add the sums of w_j, w_j p_j and w_j p_j^2 of each row to out (n_rows, ...), in its first three columns.

    p_j is the chance that answer j is right: that of the class that its row means, 0 for a row of choice -1.
    """
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            row = codes[j]
            w = weight[j] if weight.size > 0 else 1.0
            k = choice[row]
            chance = posterior[i, k] if k >= 0 else 0.0
            out[row, 0] += w
            out[row, 1] += w * chance
            out[row, 2] += w * chance * chance


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
def count_without(
    codes: Rows,
    offsets: Integers,
    weight: Floats,
    owner: Integers,
    judged: Truths,
    posterior: Floats,
    place: Rows,
    quotients: Floats,
    out: Floats,
    pairs: Floats,
    scratch: Floats,
) -> None:
    """Add out[r, k] += w p_k for each worker's answer to each item i that is judged; p is without that worker.

        p_k = posterior[i, k] prod_j quotients[place[j], k] * constant,    sum_k p_k = 1

    The product is over the worker's answers j to the item, which are in a row: one, or more if an answer is spread over
    labels. w is the sum of their weights, and r the row of the heaviest. `owner` is the worker of each row. What the
    posterior rules out stays so. Quotients are 1 or more, and can be multiplied. Unless `pairs` (K, K) is empty,
    pairs[k, h] += w p_k p_h. `scratch` is (K,).
    """
    n_classes = out.shape[1]
    for i in range(offsets.size - 1):
        if not judged[i]:
            continue
        first = offsets[i]
        while first < offsets[i + 1]:
            last = first + 1
            while last < offsets[i + 1] and owner[codes[last]] == owner[codes[first]]:
                last += 1
            heaviest, total, mass = first, 0.0, 1.0
            for k in range(n_classes):
                scratch[k] = posterior[i, k]
            for j in range(first, last):
                w = weight[j] if weight.size > 0 else 1.0
                total += w
                if weight.size > 0 and w > weight[heaviest]:
                    heaviest = j
                scale = 1.0 / mass
                mass = 0.0
                for k in range(n_classes):
                    scratch[k] *= quotients[place[j], k] * scale
                    mass += scratch[k]
            for k in range(n_classes):
                out[codes[heaviest], k] += total * scratch[k] / mass
            for k in range(len(pairs)):
                for h in range(n_classes):
                    pairs[k, h] += total * scratch[k] * scratch[h] / (mass * mass)
            first = last


@kernel
def add_to_rows(rows: Integers, counts: Floats, out: Floats) -> None:
    """Add counts[j] to out[rows[j]]."""
    for j in range(rows.size):
        for k in range(counts.shape[1]):
            out[rows[j], k] += counts[j, k]


@kernel
def normalise_items(evidence: Floats, prior: Floats, answered: Truths, mass: Floats, width: Width) -> float:
    """Turn evidence into posteriors, in place: q[i, k] = prior[k] b[i, k] / Z_i with Z_i = sum_k prior[k] b[i, k].

    Adds sum_i q[i, k] to `mass` and returns sum_i log Z_i. Where the prior rules out every class that the answers
    allow, the prior is set aside, at a price: Z_i is sum_k b[i, k] exp(LOG_IMPOSSIBLE), if that is more. If `answered`
    is not empty, only items for which it is True count in both sums.
    """
    n_classes = len(width)
    log_total = 0.0
    product = 1.0  # of many Z_i: one logarithm for all of them
    for i in range(evidence.shape[0]):
        total = 0.0
        for k in range(n_classes):
            total += prior[k] * evidence[i, k]
        counts = answered.size == 0 or answered[i]
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
    share: Floats,
    above: Floats,
    below: Floats,
    posterior: Floats,
    out: Floats,
    width: Width,
) -> None:
    """Write out[i, k] = sum_j s_j log((above[c, k] - s_j q_ik) / (below[c, k] - s_j q_ik)), with c = codes[j].

    q is the posterior. Neither side of the fraction is less than `LEAST_LEFT_OVER`. `above` and `below` are
    (n_rows, K).
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
                if share.size > 0:
                    taken = share[j] * own
                    quotient = max(above[row, k] - taken, LEAST_LEFT_OVER) / max(below[row, k] - taken, LEAST_LEFT_OVER)
                    out[i, k] += share[j] * np.log(quotient)
                    continue
                if j == check:
                    check += QUOTIENTS
                    out[i, k] += np.log(product)
                    product = 1.0
                product *= max(above[row, k] - own, LEAST_LEFT_OVER) / max(below[row, k] - own, LEAST_LEFT_OVER)
            out[i, k] += np.log(product)


@kernel
def digamma_and_log_gamma(x: float) -> tuple[float, float]:
    """Return (psi(x), log Gamma(x)) for x > 0."""
    inverses = 0.0
    product = 1.0
    if x < 8.0:
        # With y = x (x + 7), x (x + 1) ... (x + 7) = y (y + 6) (y + 10) (y + 12): one division for eight.
        y = x * (x + 7.0)
        first, last = y * (y + 6.0), (y + 10.0) * (y + 12.0)
        product = first * last
        inverses = (2.0 * x + 7.0) * ((2.0 * y + 6.0) * last + (2.0 * y + 22.0) * first) / product
        x += 8.0
    log_x = np.log(x)
    u = 1.0 / x
    v = u * u
    psi = log_x - 0.5 * u
    psi -= v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v * (1 / 240 - v * (1 / 132 - v * (691 / 32760))))))
    log_gamma = (x - 0.5) * log_x - x + HALF_LOG_TWO_PI
    log_gamma += u * (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * (691 / 360360))))))
    if product != 1.0:
        log_gamma -= np.log(product)
    return psi - inverses, log_gamma


@kernel
def list_gammas(x: float) -> tuple[float, float, float, float]:
    """Return psi(x), log p Gamma(x), p, and the derivative of psi, for x > 0; one logarithm serves the p of many x."""
    inverses, squares, product = 0.0, 0.0, 1.0
    if x < 8.0:
        y, slope = x * (x + 7.0), 2.0 * x + 7.0
        first, last = y * (y + 6.0), (y + 10.0) * (y + 12.0)
        product = first * last
        scale = 1.0 / product
        ratio = ((2.0 * y + 6.0) * last + (2.0 * y + 22.0) * first) * scale
        inverses = slope * ratio
        bend = 2.0 * (first + last + (2.0 * y + 6.0) * (2.0 * y + 22.0)) * scale
        squares = slope * slope * (ratio * ratio - bend) - 2.0 * ratio
        x += 8.0
    log_x = np.log(x)
    u = 1.0 / x
    v = u * u
    psi = log_x - 0.5 * u
    psi -= v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v * (1 / 240 - v * (1 / 132 - v * (691 / 32760))))))
    log_gamma = (x - 0.5) * log_x - x + HALF_LOG_TWO_PI
    log_gamma += u * (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * (691 / 360360))))))
    series = 1 / 6 - v * (1 / 30 - v * (1 / 42 - v * (1 / 30 - v * (5 / 66 - v * (691 / 2730)))))
    return psi - inverses, log_gamma, product, squares + u + 0.5 * v + u * v * series


@kernel
def add_expectations(
    counts: Floats,
    smoothing: Floats,
    psi0: Floats,
    log_gamma0: Floats,
    log_beta0: Floats,
    log_weights: Floats,
    bound: Floats,
) -> None:
    """Write E[log theta] under Dir(smoothing + counts) along axis 1, and minus the KL divergence to Dir(smoothing).

    counts and log_weights are (M, L, K): for each m and k a distribution over the L answers; `bound` is (M,). smoothing
    is (1, L, K) or (M, L, K). psi0, log_gamma0 (L, K) and log_beta0 (K,) are room for the values of the smoothing. With
    a = smoothing + counts and A = sum_l a:

        E[log theta_l] = psi(a_l) - psi(A)
        -KL = sum_l lgamma(a_l) - lgamma(A) - [the same of the smoothing] - sum_l counts_l E[log theta_l]
    """
    n_rows, n_labels, n_classes = counts.shape
    for m in range(n_rows):
        prior = min(m, smoothing.shape[0] - 1)
        if m == prior:
            for k in range(n_classes):
                total = 0.0
                log_beta0[k] = 0.0
                for label in range(n_labels):
                    total += smoothing[m, label, k]
                    psi0[label, k], log_gamma0[label, k] = digamma_and_log_gamma(smoothing[m, label, k])
                    log_beta0[k] += log_gamma0[label, k]
                log_beta0[k] -= digamma_and_log_gamma(total)[1]
        own = 0.0
        for k in range(n_classes):
            total = 0.0
            for label in range(n_labels):
                total += smoothing[prior, label, k] + counts[m, label, k]
            psi_total, log_gamma_total = digamma_and_log_gamma(total)
            own -= log_gamma_total + log_beta0[k]
            for label in range(n_labels):
                count = counts[m, label, k]
                if count > 0.0:
                    psi, log_gamma = digamma_and_log_gamma(smoothing[prior, label, k] + count)
                else:
                    # Most cells of a sparse crowd: nothing was counted, the prior's values stand.
                    psi, log_gamma = psi0[label, k], log_gamma0[label, k]
                log_weights[m, label, k] = psi - psi_total
                own += log_gamma - count * (psi - psi_total)
        bound[m] = own


@kernel
def add_polya(
    counts: Floats,
    off_part: Floats,
    diagonal_part: Floats,
    fixed: Floats,
    off: float,
    diagonal: float,
    before: Floats,
    sums: Floats,
) -> None:
    """Write sum_k log B(a_k + counts_rk) - log B(a_k) of each row r, with slopes and curvatures, to sums (R, 6).

    counts is (R, L, K), a = off * off_part + diagonal * diagonal_part + fixed; the parts are (L, K), fixed (1, L, K) or
    (R, L, K). Slopes are those in off and diagonal, curvatures in off, both and diagonal. `before` (3, L, K) is room
    for the values of a where it is the same for all rows.
    """
    n_rows, n_labels, n_classes = counts.shape
    is_shared = fixed.shape[0] == 1
    if is_shared:
        for label in range(n_labels):
            for k in range(n_classes):
                a = off * off_part[label, k] + diagonal * diagonal_part[label, k] + fixed[0, label, k]
                psi, log_gamma, product, bend = list_gammas(a)
                before[0, label, k], before[1, label, k], before[2, label, k] = psi, log_gamma - np.log(product), bend
    for r in range(n_rows):
        value, slope_off, slope_diagonal, bend_off, bend_both, bend_diagonal = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        own = min(r, fixed.shape[0] - 1)
        for k in range(n_classes):
            mass = 0.0
            for label in range(n_labels):
                mass += counts[r, label, k]
            if mass <= 0.0:
                continue
            total, off_total, diagonal_total, quotient = 0.0, 0.0, 0.0, 1.0
            for label in range(n_labels):
                one, other = off_part[label, k], diagonal_part[label, k]
                a = off * one + diagonal * other + fixed[own, label, k]
                total += a
                off_total += one
                diagonal_total += other
                count = counts[r, label, k]
                if count > 0.0:
                    if is_shared:
                        psi0, log_gamma0, bend0 = before[0, label, k], before[1, label, k], before[2, label, k]
                    else:
                        psi0, log_gamma0, product, bend0 = list_gammas(a)
                        quotient /= product
                    psi, log_gamma, product, bend = list_gammas(a + count)
                    bend -= bend0
                    quotient *= product
                    value += log_gamma - log_gamma0
                    if not 1e-100 < quotient < 1e100:
                        value -= np.log(quotient)
                        quotient = 1.0
                    slope_off += (psi - psi0) * one
                    slope_diagonal += (psi - psi0) * other
                    bend_off += bend * one * one
                    bend_both += bend * one * other
                    bend_diagonal += bend * other * other
            psi, log_gamma, product, bend = list_gammas(total + mass)
            psi0, log_gamma0, product0, bend0 = list_gammas(total)
            bend -= bend0
            value -= log_gamma - log_gamma0 - np.log(product / product0) + np.log(quotient)
            slope_off -= (psi - psi0) * off_total
            slope_diagonal -= (psi - psi0) * diagonal_total
            bend_off -= bend * off_total * off_total
            bend_both -= bend * off_total * diagonal_total
            bend_diagonal -= bend * diagonal_total * diagonal_total
        sums[r, 0], sums[r, 1], sums[r, 2] = value, slope_off, slope_diagonal
        sums[r, 3], sums[r, 4], sums[r, 5] = bend_off, bend_both, bend_diagonal
