"""Posteriors of independent items."""

from __future__ import annotations

import numpy as np

from .answers import LOG_IMPOSSIBLE
from .compile import kernel
from .types import Floats, Truths, Width

IMPOSSIBLE = np.exp(LOG_IMPOSSIBLE)


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
