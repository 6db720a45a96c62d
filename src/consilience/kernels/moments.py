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

from . import Floats, Integers, read_only
from .compile import kernel


@kernel
def simplex_threshold(vector: Floats, first: int, step: int) -> float:
    """Return t such that max(v - t, 0) is the point of the probability simplex nearest to v = vector[first::step].

    The entries above t exceed it by 1 in all. Beginning with all entries, those that are not above the threshold are
    left out until none is (Michelot's algorithm). In exact numbers there are ever fewer entries above it. Rounding can
    bring one back that is as large as the threshold, which changes nothing, but could go on for ever.
    """
    threshold, n_above = -np.inf, vector.size + 1
    while True:
        total, count = 0.0, 0
        for i in range(first, vector.size, step):
            if vector[i] > threshold:
                total += vector[i]
                count += 1
        if count == 0 or count >= n_above:
            return threshold
        threshold, n_above = (total - 1.0) / count, count


def solve_on_simplex(
    hessian: Floats, linear: Floats, point: Floats, dual: Floats, n_simplices: int, max_iter: int, tol: float
) -> None:
    """Minimise 1/2 tr(X H X') - <B, X> over X with columns on the simplex, by ADMM, in place.

    H is (K, K); B, X and the dual U are (L, K), or one row of it. With `n_simplices` K each column of X is a
    distribution, with 1 all of X is. `point` and `dual` are the warm start and the result. With H and B scaled so that
    the mean diagonal of H is 1, an iteration is

        target = (B + penalty (X + U)) (H + penalty)^-1 - U,   X = nearest to target on the simplex,   U = X - target
    """
    matrices = (linear.reshape(-1), point.reshape(-1), dual.reshape(-1))
    iterate_admm(hessian, *matrices, n_simplices, np.empty_like(hessian), np.empty(linear.size), max_iter, tol)


@kernel
def iterate_admm(
    hessian: Floats,
    linear: Floats,
    point: Floats,
    dual: Floats,
    n_simplices: int,
    inverse: Floats,
    target: Floats,
    max_iter: int,
    tol: float,
) -> None:
    """Do what `solve_on_simplex` says, with each (L, K) as one vector, row after row.

    Scratch: inverse (K, K) and target (L K,).
    """
    n_classes = hessian.shape[0]
    trace, square = 0.0, 0.0
    for k in range(n_classes):
        trace += hessian[k, k]
    scale = max(trace / n_classes, 1e-300)
    for k in range(n_classes):
        for j in range(n_classes):
            inverse[k, j] = hessian[k, j] / scale
            square += inverse[k, j] * inverse[k, j]
    penalty = np.sqrt(square) / n_classes + 1e-8
    for k in range(n_classes):
        inverse[k, k] += penalty
    # Gauss-Jordan elimination: a positive definite matrix needs no pivoting.
    for p in range(n_classes):
        pivot = inverse[p, p]
        inverse[p, p] = 1.0
        for j in range(n_classes):
            inverse[p, j] /= pivot
        for k in range(n_classes):
            if k != p:
                factor = inverse[k, p]
                inverse[k, p] = 0.0
                for j in range(n_classes):
                    inverse[k, j] -= factor * inverse[p, j]
    for _ in range(max_iter):
        for row in range(0, point.size, n_classes):
            for k in range(n_classes):
                target[row + k] = -dual[row + k]
            for j in range(n_classes):
                pull = linear[row + j] / scale + penalty * (point[row + j] + dual[row + j])
                for k in range(n_classes):
                    target[row + k] += pull * inverse[j, k]
        change = 0.0
        for first in range(n_simplices):
            threshold = simplex_threshold(target, first, n_simplices)
            for i in range(first, point.size, n_simplices):
                nearest = max(target[i] - threshold, 0.0)
                # Both residuals are absolute: the entries are probabilities.
                change = max(change, abs(nearest - point[i]), abs(nearest - target[i] - dual[i]))
                point[i] = nearest
                dual[i] = nearest - target[i]
        if change < tol:
            break


def sum_products(offsets: Integers, codes: Integers, table: Floats, weights: Floats, products: Floats) -> Floats:
    """Fill e1 and e2 (R, 2, C) of rows of `table`, and return the sum over R of w1 e1 + w2 e2 + w3 e3, of shape (C,).

    Entry r has the rows codes[offsets[r]:offsets[r + 1]] and the weights weights[r].
    """
    third, total = np.empty(table.shape[1]), np.zeros(table.shape[1])
    fill_products(read_only(offsets), read_only(codes), table, weights, products, third, total)
    return total


@kernel
def fill_products(
    offsets: Integers, codes: Integers, table: Floats, weights: Floats, products: Floats, third: Floats, total: Floats
) -> None:
    """Do what `sum_products` says; add the sum to `total` (C,). Scratch: third (C,), which is e3."""
    n_columns = table.shape[1]
    for r in range(offsets.size - 1):
        for i in range(n_columns):
            products[r, 0, i] = products[r, 1, i] = third[i] = 0.0
        for j in range(offsets[r], offsets[r + 1]):
            code = codes[j]
            for i in range(n_columns):
                a = table[code, i]
                third[i] += a * products[r, 1, i]
                products[r, 1, i] += a * products[r, 0, i]
                products[r, 0, i] += a
        for i in range(n_columns):
            total[i] += weights[r, 0] * products[r, 0, i] + weights[r, 1] * products[r, 1, i] + weights[r, 2] * third[i]


# Of all workers: where the answers of each begin, with the item and the label of each answer; weights and products of
# items; where the sets that each worker is a member of begin, with the sets; weights and products of sets.
Memberships = tuple[Integers, Integers, Integers, Floats, Floats, Integers, Integers, Floats, Floats]


@kernel
def add_worker_terms(
    m: int,
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
    prior: Floats,
    hessian: Floats,
    linear: Floats,
    upper: Floats,
) -> None:
    """Write H_m (K, K) and B_m (L K,): sums of w1 + w2 e1 + w3 e2 over all others, times the prior.

    `confusion` (M, L K) are the matrices of all workers, `gram` (M, C) the upper triangles of G. Scratch: upper (C,).
    """
    n_classes = prior.size
    for i in range(linear.size):
        linear[i] = 0.0
    for j in range(worker_offsets[m], worker_offsets[m + 1]):
        n, row = item[j], label[j] * n_classes
        w1, w2, w3 = item_weights[n, 0], item_weights[n, 1], item_weights[n, 2]
        for k in range(n_classes):
            own = confusion[m, row + k]
            e1 = item_products[n, 0, k] - own
            e2 = item_products[n, 1, k] - own * e1
            linear[row + k] += w1 + w2 * e1 + w3 * e2
    for row in range(0, linear.size, n_classes):
        for k in range(n_classes):
            linear[row + k] *= prior[k]
    for i in range(upper.size):
        upper[i] = 0.0
    for j in range(set_offsets[m], set_offsets[m + 1]):
        u = sets[j]
        w1, w2, w3 = set_weights[u, 0], set_weights[u, 1], set_weights[u, 2]
        for i in range(upper.size):
            e1 = set_products[u, 0, i] - gram[m, i]
            e2 = set_products[u, 1, i] - gram[m, i] * e1
            upper[i] += w1 + w2 * e1 + w3 * e2
    i = 0
    for k in range(n_classes):
        for kk in range(k, n_classes):
            hessian[k, kk] = hessian[kk, k] = prior[k] * prior[kk] * upper[i]
            i += 1


def sweep_workers(
    order: Integers,
    memberships: Memberships,
    confusion: Floats,
    gram: Floats,
    dual: Floats,
    prior: Floats,
    max_inner: int,
    inner_tol: float,
) -> None:
    """Solve for each worker's matrix in this order, the others held; e1, e2 and G follow each change."""
    n_workers, n_labels, n_classes = confusion.shape
    size, square = n_labels * n_classes, (n_classes, n_classes)
    matrices = (confusion.reshape(n_workers, size), gram, prior, dual.reshape(n_workers, size))
    scratch = (np.empty(square), np.empty(size), np.empty(gram.shape[1]), np.empty(square), np.empty(size))
    solve_in_turn(read_only(order), *memberships, *matrices, *scratch, np.empty(size), max_inner, inner_tol)


@kernel
def solve_in_turn(
    order: Integers,
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
    prior: Floats,
    dual: Floats,
    hessian: Floats,
    linear: Floats,
    upper: Floats,
    inverse: Floats,
    target: Floats,
    old: Floats,
    max_inner: int,
    inner_tol: float,
) -> None:
    """Do what `sweep_workers` says, with each (L, K) as one vector.

    Scratch: that of `add_worker_terms` and of `iterate_admm`, and old (L K,).
    """
    n_classes = prior.size
    for m in order:
        if worker_offsets[m] == worker_offsets[m + 1]:
            continue
        add_worker_terms(
            m,
            worker_offsets,
            item,
            label,
            item_weights,
            item_products,
            set_offsets,
            sets,
            set_weights,
            set_products,
            confusion,
            gram,
            prior,
            hessian,
            linear,
            upper,
        )
        for i in range(old.size):
            old[i] = confusion[m, i]
        iterate_admm(hessian, linear, confusion[m], dual[m], n_classes, inverse, target, max_inner, inner_tol)
        follow_change(
            m, worker_offsets, item, label, item_products, set_offsets, sets, set_products, confusion, gram, upper, old
        )


@kernel
def follow_change(
    m: int,
    worker_offsets: Integers,
    item: Integers,
    label: Integers,
    item_products: Floats,
    set_offsets: Integers,
    sets: Integers,
    set_products: Floats,
    confusion: Floats,
    gram: Floats,
    upper: Floats,
    old: Floats,
) -> None:
    """Let e1 and e2 of items and sets, and G, follow a worker's matrix, which was `old`. Scratch: upper (C,)."""
    n_classes = item_products.shape[2]
    for j in range(worker_offsets[m], worker_offsets[m + 1]):
        n, row = item[j], label[j] * n_classes
        for k in range(n_classes):
            change = confusion[m, row + k] - old[row + k]
            item_products[n, 1, k] += change * (item_products[n, 0, k] - old[row + k])
            item_products[n, 0, k] += change
    # `upper` is the new upper triangle of G from here on.
    i = 0
    for k in range(n_classes):
        for kk in range(k, n_classes):
            upper[i] = 0.0
            for row in range(0, old.size, n_classes):
                upper[i] += confusion[m, row + k] * confusion[m, row + kk]
            i += 1
    for j in range(set_offsets[m], set_offsets[m + 1]):
        u = sets[j]
        for i in range(upper.size):
            change = upper[i] - gram[m, i]
            set_products[u, 1, i] += change * (set_products[u, 0, i] - gram[m, i])
            set_products[u, 0, i] += change
    for i in range(upper.size):
        gram[m, i] = upper[i]
