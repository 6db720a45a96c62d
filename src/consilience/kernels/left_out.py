"""Evidence from counts to which the item itself has not contributed; see `consilience.inference.workers.left_out`."""

from __future__ import annotations

import numpy as np

from .compile import kernel
from .types import Floats, Integers, Rows, Width

# What is left of a count, however much is taken away: rounding must not make it negative.
LEAST = 1e-12
# A quotient of counts is between 1e-19 and 1e19 up to ten million answers: so many of them can be multiplied before the
# logarithm is taken. Counts beyond that are too large for an item to matter, and never that unequal.
STRIDE = 12


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
            check = offsets[i] + STRIDE
            for j in range(offsets[i], offsets[i + 1]):
                row = codes[j]
                if weight.size > 0:
                    taken = weight[j] * own
                    quotient = max(above[row, k] - taken, LEAST) / max(below[row, k] - taken, LEAST)
                    out[i, k] += weight[j] * np.log(quotient)
                    continue
                if j == check:
                    check += STRIDE
                    out[i, k] += np.log(product)
                    product = 1.0
                product *= max(above[row, k] - own, LEAST) / max(below[row, k] - own, LEAST)
            out[i, k] += np.log(product)
