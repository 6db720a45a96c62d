"""Moment matching over all pairs and all triples of answers, without ever forming a moment.

Weighting each pair and triple of workers by how often it answered together turns sums over pairs and triples into
sums over items of elementary symmetric polynomials. With a_nmk = Gamma_m[f_mn, k], G_m = Gamma_m' Gamma_m, and e_r the
polynomial of degree r over the workers who answered, the objective is, up to a constant,

    1/2 pi' [ sum_n w1 e1(G) + w2 e2(G) + w3 e3(G) ] pi - sum_nk pi_k [ w1 e1(a_n) + w2 e2(a_n) + w3 e3(a_n) ]

where e_r(G) is taken entry by entry. e1 and e2 of a (per item) and of G (per distinct set of workers) are kept, so that
leaving one worker out costs a subtraction: e1 - a, and e2 - a (e1 - a). In Gamma_m the objective is quadratic with
Hessian H_m and linear part B_m; so it is in pi. G is symmetric: of it the upper triangle is kept, C = K (K + 1) / 2.
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
def upper_triangle(matrix: Floats, out: Floats) -> None:
    """Write the upper triangle of X' X, row by row."""
    i = 0
    for k in range(matrix.shape[1]):
        for kk in range(k, matrix.shape[1]):
            out[i] = 0.0
            for label in range(matrix.shape[0]):
                out[i] += matrix[label, k] * matrix[label, kk]
            i += 1


@kernel
def both_triangles(upper: Floats, n_classes: int) -> Floats:
    """Return the symmetric matrix with this upper triangle."""
    matrix = np.empty((n_classes, n_classes))
    i = 0
    for k in range(n_classes):
        for kk in range(k, n_classes):
            matrix[k, kk] = matrix[kk, k] = upper[i]
            i += 1
    return matrix


@kernel
def sum_products(offsets: Integers, codes: Integers, table: Floats, weights: Floats, products: Floats) -> Floats:
    """Fill e1 and e2 (R, 2, C) of rows of `table`, and return the sum over R of w1 e1 + w2 e2 + w3 e3, of shape (C,).

    Entry r has the rows codes[offsets[r]:offsets[r + 1]] and the weights weights[r].
    """
    width = table.shape[1]
    total = np.zeros(width)
    third = np.empty(width)
    for r in range(offsets.size - 1):
        products[r] = 0.0
        third[:] = 0.0
        for j in range(offsets[r], offsets[r + 1]):
            code = codes[j]
            for i in range(width):
                a = table[code, i]
                third[i] += a * products[r, 1, i]
                products[r, 1, i] += a * products[r, 0, i]
                products[r, 0, i] += a
        for i in range(width):
            total[i] += weights[r, 0] * products[r, 0, i] + weights[r, 1] * products[r, 1, i] + weights[r, 2] * third[i]
    return total


@kernel
def worker_terms(
    own: Floats,
    own_gram: Floats,
    prior: Floats,
    items: Integers,
    labels: Integers,
    item_weights: Floats,
    item_products: Floats,
    sets: Integers,
    set_weights: Floats,
    set_products: Floats,
) -> tuple[Floats, Floats]:
    """Return H_m and B_m of the worker with matrix `own`, who gave `labels` to `items` and is a member of `sets`."""
    n_labels, n_classes = own.shape
    linear = np.zeros((n_labels, n_classes))
    for j in range(items.size):
        n, label = items[j], labels[j]
        w1, w2, w3 = item_weights[n, 0], item_weights[n, 1], item_weights[n, 2]
        for k in range(n_classes):
            e1 = item_products[n, 0, k] - own[label, k]
            e2 = item_products[n, 1, k] - own[label, k] * e1
            linear[label, k] += w1 + w2 * e1 + w3 * e2
    upper = np.zeros(own_gram.size)
    for j in range(sets.size):
        u = sets[j]
        w1, w2, w3 = set_weights[u, 0], set_weights[u, 1], set_weights[u, 2]
        for i in range(upper.size):
            e1 = set_products[u, 0, i] - own_gram[i]
            e2 = set_products[u, 1, i] - own_gram[i] * e1
            upper[i] += w1 + w2 * e1 + w3 * e2
    return both_triangles(upper, n_classes) * np.outer(prior, prior), linear * prior


@kernel
def sweep_workers(
    worker_offsets: Integers,
    item: Integers,
    label: Integers,
    item_weights: Floats,
    item_products: Floats,
    set_offsets: Integers,
    sets: Integers,
    set_weights: Floats,
    set_products: Floats,
    confusion: Floats,
    gram: Floats,
    dual: Floats,
    prior: Floats,
    max_inner: int,
    inner_tol: float,
) -> None:
    """Solve for each worker's matrix in turn, the others held; e1 and e2 follow each change."""
    n_workers, _, n_classes = confusion.shape
    for m in range(n_workers):
        items = item[worker_offsets[m] : worker_offsets[m + 1]]
        labels = label[worker_offsets[m] : worker_offsets[m + 1]]
        of_worker = sets[set_offsets[m] : set_offsets[m + 1]]
        if items.size == 0:
            continue
        hessian, linear = worker_terms(
            confusion[m],
            gram[m],
            prior,
            items,
            labels,
            item_weights,
            item_products,
            of_worker,
            set_weights,
            set_products,
        )
        old, old_gram = confusion[m].copy(), gram[m].copy()
        solve_on_simplex(hessian, linear, confusion[m], dual[m], max_inner, inner_tol)
        upper_triangle(confusion[m], gram[m])
        change, gram_change = confusion[m] - old, gram[m] - old_gram
        for j in range(items.size):
            n, said = items[j], labels[j]
            for k in range(n_classes):
                item_products[n, 1, k] += change[said, k] * (item_products[n, 0, k] - old[said, k])
                item_products[n, 0, k] += change[said, k]
        for j in range(of_worker.size):
            u = of_worker[j]
            for i in range(gram_change.size):
                set_products[u, 1, i] += gram_change[i] * (set_products[u, 0, i] - old_gram[i])
                set_products[u, 0, i] += gram_change[i]
