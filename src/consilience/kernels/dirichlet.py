"""Expectations of logarithms under Dirichlet distributions, for all workers in one pass.

For x >= 8 the asymptotic series of digamma and log gamma are exact to 2e-14; smaller x are first moved up by
psi(x) = psi(x + n) - sum_i 1 / (x + i) and lgamma(x) = lgamma(x + n) - log prod_i (x + i). The two share their one
expensive part, the logarithm of x.
"""

from __future__ import annotations

import numpy as np

from .compile import kernel
from .types import Floats, read_only

HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


@kernel
def digamma_and_log_gamma(x: float) -> tuple[float, float]:
    """Return (psi(x), log Gamma(x)) for x > 0."""
    inverses = 0.0
    product = 1.0
    while x < 8.0:
        inverses += 1.0 / x
        product *= x
        x += 1.0
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


def expect_logs(counts: Floats, smoothing: Floats, log_weights: Floats) -> float:
    """Write E[log theta] under Dir(smoothing + counts) along axis 1; return minus the KL divergence to Dir(smoothing).

    counts and log_weights are (M, L, K): for each m and k a distribution over the L answers. smoothing is (1, L, K) or
    (M, L, K). With a = smoothing + counts and A = sum_l a:

        E[log theta_l] = psi(a_l) - psi(A)
        -KL = sum_l lgamma(a_l) - lgamma(A) - [the same of the smoothing] - sum_l counts_l E[log theta_l]
    """
    _, n_labels, n_classes = counts.shape
    psi, log_gamma, log_beta = np.empty((n_labels, n_classes)), np.empty((n_labels, n_classes)), np.empty(n_classes)
    return float(add_expectations(read_only(counts), read_only(smoothing), psi, log_gamma, log_beta, log_weights))


@kernel
def add_expectations(
    counts: Floats, smoothing: Floats, psi0: Floats, log_gamma0: Floats, log_beta0: Floats, log_weights: Floats
) -> float:
    """Do what `expect_logs` says; psi0, log_gamma0 (L, K) and log_beta0 (K,) keep the values of the smoothing."""
    n_rows, n_labels, n_classes = counts.shape
    bound = 0.0
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
        for k in range(n_classes):
            total = 0.0
            for label in range(n_labels):
                total += smoothing[prior, label, k] + counts[m, label, k]
            psi_total, log_gamma_total = digamma_and_log_gamma(total)
            bound -= log_gamma_total + log_beta0[k]
            for label in range(n_labels):
                count = counts[m, label, k]
                if count > 0.0:
                    psi, log_gamma = digamma_and_log_gamma(smoothing[prior, label, k] + count)
                else:
                    # Most cells of a sparse crowd: nothing was counted, the prior's values stand.
                    psi, log_gamma = psi0[label, k], log_gamma0[label, k]
                log_weights[m, label, k] = psi - psi_total
                bound += log_gamma - count * (psi - psi_total)
    return bound


def polya(
    counts: Floats, off: float, diagonal: float, off_part: Floats, diagonal_part: Floats, fixed: Floats, slope: Floats
) -> float:
    """Return sum_rk log B(a_k + counts_rk) - log B(a_k), and add its slopes in off and diagonal to `slope` (2,).

    counts is (R, L, K), a = off * off_part + diagonal * diagonal_part + fixed; the parts are (1, L, K), fixed (1, L, K)
    or (R, L, K).
    """
    parts = (read_only(off_part[0]), read_only(diagonal_part[0]), read_only(fixed))
    return float(add_polya(read_only(counts), float(off), float(diagonal), *parts, slope))


@kernel
def add_polya(
    counts: Floats, off: float, diagonal: float, off_part: Floats, diagonal_part: Floats, fixed: Floats, slope: Floats
) -> float:
    """Do what `polya` says, with parts (L, K)."""
    n_rows, n_labels, n_classes = counts.shape
    value = 0.0
    for r in range(n_rows):
        own = min(r, fixed.shape[0] - 1)
        for k in range(n_classes):
            mass = 0.0
            for label in range(n_labels):
                mass += counts[r, label, k]
            if mass <= 0.0:
                continue
            total, off_total, diagonal_total = 0.0, 0.0, 0.0
            for label in range(n_labels):
                a = off * off_part[label, k] + diagonal * diagonal_part[label, k] + fixed[own, label, k]
                total += a
                off_total += off_part[label, k]
                diagonal_total += diagonal_part[label, k]
                count = counts[r, label, k]
                if count > 0.0:
                    psi, log_gamma = digamma_and_log_gamma(a + count)
                    psi0, log_gamma0 = digamma_and_log_gamma(a)
                    value += log_gamma - log_gamma0
                    slope[0] += (psi - psi0) * off_part[label, k]
                    slope[1] += (psi - psi0) * diagonal_part[label, k]
            psi, log_gamma = digamma_and_log_gamma(total + mass)
            psi0, log_gamma0 = digamma_and_log_gamma(total)
            value -= log_gamma - log_gamma0
            slope[0] -= (psi - psi0) * off_total
            slope[1] -= (psi - psi0) * diagonal_total
    return value
