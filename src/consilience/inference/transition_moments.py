"""The transition matrix by moments: which answers follow which, given how workers answer.

With u_n[k] = sum of Gamma_m[k, f_mn] over the answers to position n, and W_n = sum of Gamma_m' Gamma_m over those who
answered it, the joint J[j, k] = P(y_{n-1} = j, y_n = k) satisfies E[u_{n-1} u_n'] = W_{n-1} J W_n. All ordered pairs of
workers take part, a worker with itself included (given the truth, answers to different positions are independent),
which is why no sum over pairs of workers is needed. J minimises

    1/2 <J, sum_n W_{n-1} J W_n> - <J, sum_n u_{n-1} u_n'>     over J >= 0, sum J = 1, J = 0 where forbidden

found by FISTA with projection on the simplex; T[j, k] = J[j, k] / sum_k J[j, k], with the sums of J itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..answers.responses import Responses
from ..errors import InputError
from ..kernels.types import Floats
from .moments import lay_out

FLOOR = 1e-8


def match_transitions(
    responses: Responses, confusion: Floats, allowed: NDArray[np.bool_], max_iter: int = 2000, tol: float = 1e-9
) -> Floats:
    """Return the transition matrix [from, to] that lagged moments of the answers call for.

    Parameters
    ----------
    responses : Responses
        Answers to sequences, each of weight 1.
    confusion : array (M, L, K)
        How workers answer.
    allowed : array (K, K)
        Which steps are possible.
    max_iter, tol
        Most iterations of FISTA; stop when no entry moves by more than `tol`.
    """
    operator, linear = lagged_moments(responses, confusion)
    n_classes = confusion.shape[2]
    cells = np.flatnonzero(allowed.ravel())
    joint = np.zeros(n_classes * n_classes)
    joint[cells] = minimise_on_simplex(operator[np.ix_(cells, cells)], linear.ravel()[cells], max_iter, tol)
    table = np.where(allowed, np.maximum(joint.reshape(n_classes, n_classes), FLOOR), 0.0)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def lagged_moments(responses: Responses, confusion: Floats) -> tuple[Floats, Floats]:
    """Return the operator sum_n W_{n-1} (x) W_n of shape (K^2, K^2), and sum_n u_{n-1} u_n' of shape (K, K)."""
    if responses.sequences is None:
        raise InputError("Transitions need sequences: give sequence= and position= when the answers are read.")
    n_classes = confusion.shape[2]
    item = responses.item_of_answer()
    told = np.zeros((responses.n_items, n_classes))
    np.add.at(told, item, confusion[responses.worker, responses.label])
    after = np.ones(responses.n_items, bool)
    after[responses.sequences.offsets[:-1]] = False
    now = np.flatnonzero(after)
    linear = told[now - 1].T @ told[now]

    layout = lay_out(responses)
    gram = np.einsum("mlj,mlk->mjk", confusion, confusion)
    together = np.zeros((len(layout.set_size), n_classes, n_classes))
    member = np.repeat(np.arange(responses.n_workers), np.diff(layout.set_offsets))
    np.add.at(together, layout.sets, gram[member])
    # Neighbours answered by the same two sets of workers share one term.
    pair = layout.set_of_item[now - 1] * len(together) + layout.set_of_item[now]
    distinct, count = np.unique(pair, return_counts=True)
    operator = np.zeros((n_classes * n_classes, n_classes * n_classes))
    for part in np.array_split(np.arange(len(distinct)), max(1, len(distinct) * n_classes**2 // 2_000_000)):
        before = together[distinct[part] // len(together)].reshape(len(part), n_classes**2) * count[part][:, None]
        here = together[distinct[part] % len(together)].reshape(len(part), n_classes**2)
        # (j j'), (k k') summed over pairs of sets, then put in the order (j k), (j' k').
        product = (before.T @ here).reshape(n_classes, n_classes, n_classes, n_classes)
        operator += product.transpose(0, 2, 1, 3).reshape(operator.shape)
    return operator, linear


def minimise_on_simplex(hessian: Floats, linear: Floats, max_iter: int, tol: float) -> Floats:
    """Minimise 1/2 x' H x - b' x on the simplex by FISTA, restarted where it overshoots."""
    from ..kernels.moments import simplex_threshold

    step = 1.0 / max(float(np.linalg.eigvalsh(hessian)[-1]), 1e-300)
    point = np.full(len(linear), 1.0 / len(linear))
    ahead, momentum = point.copy(), 1.0
    for _ in range(max_iter):
        free = ahead - step * (hessian @ ahead - linear)
        new = np.maximum(free - simplex_threshold(free, 0, 1), 0.0)
        if (ahead - new) @ (new - point) > 0:
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / faster * (new - point)
        moved, point, momentum = float(np.abs(new - point).max()), new, faster
        if moved < tol:
            break
    return point
