"""Moment matching over all pairs and all triples of answers, without ever forming a moment.

Weighting each pair and triple of workers by how often it answered together turns sums over pairs and triples into
sums over items of elementary symmetric polynomials. With a_nmk = Gamma_m[f_mn, k], G_m = Gamma_m' Gamma_m, and e_r the
polynomial of degree r over the workers who answered, the objective is, up to a constant,

    1/2 pi' [ sum_n w1 e1(G) + w2 e2(G) + w3 e3(G) ] pi - sum_nk pi_k [ w1 e1(a_n) + w2 e2(a_n) + w3 e3(a_n) ]

where e_r(G) is taken entry by entry. Power sums of a (per item) and of G (per distinct set of workers) are kept, so
that leaving one worker out costs a subtraction. In Gamma_m the objective is quadratic with Hessian H_m and linear part
B_m; so it is in pi.
"""

from __future__ import annotations

import numpy as np

from .compile import kernel
from .types import Floats, Integers


@kernel
def project_on_simplex(vector: Floats, out: Floats) -> None:
    """Write the point of the probability simplex nearest to `vector`: sort, find the threshold, cut."""
    descending = np.sort(vector)[::-1]
    total = 0.0
    threshold = 0.0
    for i in range(vector.size):
        total += descending[i]
        if descending[i] - (total - 1.0) / (i + 1) > 0.0:
            threshold = (total - 1.0) / (i + 1)
    for i in range(vector.size):
        out[i] = max(vector[i] - threshold, 0.0)


@kernel
def solve_on_simplex(hessian: Floats, linear: Floats, point: Floats, dual: Floats, max_iter: int, tol: float) -> None:
    """Minimise 1/2 tr(X H X') - <B, X> over X (L, K) with columns on the simplex, by ADMM, in place.

    `point` and `dual` are the warm start and the result. Everything is scaled so that H has mean diagonal 1.
    """
    n_classes = hessian.shape[0]
    scale = max(np.trace(hessian) / n_classes, 1e-300)
    penalty = np.sqrt(np.sum((hessian / scale) ** 2)) / n_classes + 1e-8
    inverse = np.linalg.inv(hessian / scale + penalty * np.eye(n_classes))
    for _ in range(max_iter):
        free = (linear / scale + penalty * (point + dual)) @ inverse
        previous = point.copy()
        for k in range(n_classes):
            project_on_simplex(free[:, k] - dual[:, k], point[:, k])
        dual += point - free
        # Both residuals are absolute: the entries are probabilities.
        if np.max(np.abs(point - free)) < tol and np.max(np.abs(point - previous)) < tol:
            break


@kernel
def solve_vector_on_simplex(
    hessian: Floats, linear: Floats, point: Floats, dual: Floats, max_iter: int, tol: float
) -> None:
    """Minimise 1/2 x' H x - b' x over x on the simplex, by ADMM, in place; scaled as in `solve_on_simplex`."""
    size = linear.size
    scale = max(np.trace(hessian) / size, 1e-300)
    penalty = np.sqrt(np.sum((hessian / scale) ** 2)) / size + 1e-8
    inverse = np.linalg.inv(hessian / scale + penalty * np.eye(size))
    for _ in range(max_iter):
        free = inverse @ (linear / scale + penalty * (point + dual))
        previous = point.copy()
        project_on_simplex(free - dual, point)
        dual += point - free
        if np.max(np.abs(point - free)) < tol and np.max(np.abs(point - previous)) < tol:
            break


@kernel
def sum_powers(
    worker_offsets: Integers,
    item: Integers,
    label: Integers,
    set_offsets: Integers,
    sets: Integers,
    confusion: Floats,
    gram: Floats,
    item_powers: Floats,
    set_powers: Floats,
) -> None:
    """Fill gram[m] = Gamma_m' Gamma_m and the first three power sums of a (3, N, K) and of G (3, U, K, K)."""
    n_workers, _, n_classes = confusion.shape
    item_powers[:] = 0.0
    set_powers[:] = 0.0
    for m in range(n_workers):
        gram[m] = confusion[m].T @ confusion[m]
        for j in range(worker_offsets[m], worker_offsets[m + 1]):
            for k in range(n_classes):
                a = confusion[m, label[j], k]
                item_powers[0, item[j], k] += a
                item_powers[1, item[j], k] += a * a
                item_powers[2, item[j], k] += a * a * a
        for j in range(set_offsets[m], set_offsets[m + 1]):
            for k in range(n_classes):
                for kk in range(n_classes):
                    g = gram[m, k, kk]
                    set_powers[0, sets[j], k, kk] += g
                    set_powers[1, sets[j], k, kk] += g * g
                    set_powers[2, sets[j], k, kk] += g * g * g


@kernel
def worker_terms(
    m: int,
    worker_offsets: Integers,
    item: Integers,
    label: Integers,
    set_offsets: Integers,
    sets: Integers,
    set_of_item: Integers,
    set_size: Floats,
    weights: Floats,
    confusion: Floats,
    prior: Floats,
    gram: Floats,
    item_powers: Floats,
    set_powers: Floats,
    hessian: Floats,
    linear: Floats,
) -> None:
    """Fill H_m and B_m; e1 and e2 of the other workers come from power sums less the worker's own part."""
    n_classes = prior.size
    hessian[:] = 0.0
    linear[:] = 0.0
    for j in range(worker_offsets[m], worker_offsets[m + 1]):
        n = item[j]
        w = weights[set_of_item[n]]
        for k in range(n_classes):
            a = confusion[m, label[j], k]
            e1 = item_powers[0, n, k] - a
            e2 = 0.5 * (e1 * e1 - (item_powers[1, n, k] - a * a))
            linear[label[j], k] += w[0] + w[1] * e1 + w[2] * e2
    for j in range(set_offsets[m], set_offsets[m + 1]):
        u = sets[j]
        w = weights[u]
        for k in range(n_classes):
            for kk in range(n_classes):
                g = gram[m, k, kk]
                e1 = set_powers[0, u, k, kk] - g
                e2 = 0.5 * (e1 * e1 - (set_powers[1, u, k, kk] - g * g))
                hessian[k, kk] += set_size[u] * (w[0] + w[1] * e1 + w[2] * e2)
    for k in range(n_classes):
        linear[:, k] *= prior[k]
        for kk in range(n_classes):
            hessian[k, kk] *= prior[k] * prior[kk]


@kernel
def prior_terms(
    set_of_item: Integers, set_size: Floats, weights: Floats, item_powers: Floats, set_powers: Floats
) -> tuple[Floats, Floats]:
    """Return the Hessian and the linear part of the objective in pi."""
    n_classes = item_powers.shape[2]
    linear = np.zeros(n_classes)
    hessian = np.zeros((n_classes, n_classes))
    for n in range(set_of_item.size):
        w = weights[set_of_item[n]]
        for k in range(n_classes):
            p1, p2, p3 = item_powers[0, n, k], item_powers[1, n, k], item_powers[2, n, k]
            linear[k] += w[0] * p1 + w[1] * (p1 * p1 - p2) / 2 + w[2] * (p1**3 - 3 * p1 * p2 + 2 * p3) / 6
    for u in range(set_size.size):
        w = weights[u]
        for k in range(n_classes):
            for kk in range(n_classes):
                p1, p2, p3 = set_powers[0, u, k, kk], set_powers[1, u, k, kk], set_powers[2, u, k, kk]
                e = w[0] * p1 + w[1] * (p1 * p1 - p2) / 2 + w[2] * (p1**3 - 3 * p1 * p2 + 2 * p3) / 6
                hessian[k, kk] += set_size[u] * e
    return hessian, linear


@kernel
def sweep_workers(
    worker_offsets: Integers,
    item: Integers,
    label: Integers,
    set_offsets: Integers,
    sets: Integers,
    set_of_item: Integers,
    set_size: Floats,
    weights: Floats,
    confusion: Floats,
    dual: Floats,
    prior: Floats,
    gram: Floats,
    item_powers: Floats,
    set_powers: Floats,
    max_inner: int,
    inner_tol: float,
) -> None:
    """Solve for each worker's matrix in turn, the others held; power sums follow each change."""
    n_workers, n_labels, n_classes = confusion.shape
    hessian = np.empty((n_classes, n_classes))
    linear = np.empty((n_labels, n_classes))
    for m in range(n_workers):
        if worker_offsets[m] == worker_offsets[m + 1]:
            continue
        worker_terms(
            m,
            worker_offsets,
            item,
            label,
            set_offsets,
            sets,
            set_of_item,
            set_size,
            weights,
            confusion,
            prior,
            gram,
            item_powers,
            set_powers,
            hessian,
            linear,
        )
        old = confusion[m].copy()
        old_gram = gram[m].copy()
        solve_on_simplex(hessian, linear, confusion[m], dual[m], max_inner, inner_tol)
        gram[m] = confusion[m].T @ confusion[m]
        for j in range(worker_offsets[m], worker_offsets[m + 1]):
            for k in range(n_classes):
                a, b = confusion[m, label[j], k], old[label[j], k]
                item_powers[0, item[j], k] += a - b
                item_powers[1, item[j], k] += a * a - b * b
                item_powers[2, item[j], k] += a * a * a - b * b * b
        for j in range(set_offsets[m], set_offsets[m + 1]):
            for k in range(n_classes):
                for kk in range(n_classes):
                    a, b = gram[m, k, kk], old_gram[k, kk]
                    set_powers[0, sets[j], k, kk] += a - b
                    set_powers[1, sets[j], k, kk] += a * a - b * b
                    set_powers[2, sets[j], k, kk] += a * a * a - b * b * b
