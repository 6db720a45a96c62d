r"""Soft votes that are pooled: a vote x (n_answers, K) counts as e = t x + a - c, with t and a those of its worker.

The pool of item i is c + sum_j w_j e_jk over its votes j, with weights w. A vote alone says S = softmax(t x + a), and
the pool of the others says T, which is proportional to q / exp(w e), q the posterior. How t should change so that S
predicts T is told by the slope and the curvature of sum_k T_k log S_k,

    slope = sum_k (T_k - S_k) x_k,    curvature = sum_k S_k (x_k - m)^2,    m = sum_k S_k x_k

What is summed, class by class, is the curvature, and the slope plus t times the curvature: the quotient of the sums is
where Newton's step leads, and sums that were taken at different t add.
"""

from __future__ import annotations

import numpy as np

from . import Floats, Integers, Rows, Width
from .compile import kernel

Votes = np.ndarray[tuple[int, int], np.dtype[np.float32]]


@kernel
def pool_votes(
    codes: Rows,
    offsets: Integers,
    weight: Floats,
    votes: Votes,
    temperature: Floats,
    shift: Floats,
    base: Floats,
    out: Floats,
    width: Width,
) -> None:
    """Write out[i, k] = base[k] + sum_j w_j (t x_jk + s_k), t and s those of codes[j]; 0 for an item without votes."""
    n_classes = len(width)
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1]
        for k in range(n_classes):
            out[i, k] = base[k] if last > first else 0.0
        for j in range(first, last):
            row = codes[j]
            w = weight[j] if weight.size > 0 else 1.0
            for k in range(n_classes):
                out[i, k] += w * (temperature[row] * votes[j, k] + shift[row, k])


@kernel
def count_pulls(
    codes: Rows,
    offsets: Integers,
    weight: Floats,
    votes: Votes,
    temperature: Floats,
    shift: Floats,
    prior: Floats,
    worker: Integers,
    posterior: Floats,
    stride: int,
    scratch: Floats,
    out: Floats,
    width: Width,
) -> None:
    """Add to out[worker[codes[j]]] (6, K) what each vote j, about every item of so many, says of its worker.

    With s = a - c as `shift` and c as `prior`, the rows are: slope plus curvature times t; the curvature; S; a share of
    the softmax of the item's pool, the same for each of its votes; t + a; and the first with q in place of T. `scratch`
    is (3, K).
    """
    n_classes = len(width)
    for i in range(0, offsets.size - 1, stride):
        first, last = offsets[i], offsets[i + 1]
        for k in range(n_classes):
            scratch[2, k] = prior[k]
        for j in range(first, last):
            row, w = codes[j], weight[j] if weight.size > 0 else 1.0
            for k in range(n_classes):
                scratch[2, k] += w * (temperature[row] * votes[j, k] + shift[row, k])
        top, total = -np.inf, 0.0
        for k in range(n_classes):
            top = max(top, scratch[2, k])
        for k in range(n_classes):
            scratch[2, k] = np.exp(scratch[2, k] - top)
            total += scratch[2, k]
        for j in range(first, last):
            row, w = codes[j], weight[j] if weight.size > 0 else 1.0
            t, top = temperature[row], -np.inf
            for k in range(n_classes):
                scratch[0, k] = t * votes[j, k] + shift[row, k]
                top = max(top, scratch[0, k] + prior[k])
            alone, others, most = 0.0, 0.0, np.inf
            for k in range(n_classes):
                most = min(most, w * scratch[0, k])
            for k in range(n_classes):
                # A share of the own vote, if it counts less, is left among the others.
                scratch[1, k] = posterior[i, k] * np.exp(most - w * scratch[0, k])
                others += scratch[1, k]
                scratch[0, k] = np.exp(scratch[0, k] + prior[k] - top)
                alone += scratch[0, k]
            mean = 0.0
            for k in range(n_classes):
                scratch[0, k] /= alone
                mean += scratch[0, k] * votes[j, k]
            others, m = others if others > 0.0 else 1.0, worker[row]
            for k in range(n_classes):
                x, said = votes[j, k], scratch[0, k]
                curvature = said * (x - mean) ** 2
                out[m, 0, k] += w * ((scratch[1, k] / others - said) * x + t * curvature)
                out[m, 1, k] += w * curvature
                out[m, 2, k] += w * said
                out[m, 3, k] += scratch[2, k] / (total * (last - first))
                out[m, 4, k] += w * (t + shift[row, k] + prior[k])
                out[m, 5, k] += w * ((posterior[i, k] - said) * x + t * curvature)
