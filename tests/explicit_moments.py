"""The paper's moment matching, with its tensors written out: the readable oracle, for a few workers.

Objective (paper, section III-B), with Gamma_m as (L, K), P = diag(pi), and weights v (1 in the paper) where the
workers answered together:

    1/2 sum_m v_m |mu_m - Gamma_m pi|^2
  + 1/2 sum_{m<j} v_mj |S_mj - Gamma_m P Gamma_j'|^2
  + 1/2 sum_{m<j<i} v_mji |T_mji - [[Gamma_m P, Gamma_j, Gamma_i]]|^2
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consilience.answers.answers import Answers
from consilience.inference.em import Progress
from consilience.inference.moments import MomentFit, order_of_sweeps, repeat_sweeps
from consilience.kernels import Floats
from consilience.kernels.moments import solve_on_simplex


class Moments(NamedTuple):
    """Observed frequencies of answers of each worker, pair and triple who answered together, and their weights."""

    observed: dict[tuple[int, ...], Floats]
    weights: dict[tuple[int, ...], float]


def compute_moments(responses: Answers, count_weights: bool = False) -> Moments:
    """Return all moments of workers who answered together; weights are 1, or the number of items in common."""
    n_workers, n_labels = responses.n_workers, responses.n_labels
    answer = np.zeros((responses.n_items, n_workers, n_labels))
    answer[responses.item_of_answer(), responses.worker, responses.label] = 1.0
    answered = answer.sum(axis=2)
    observed: dict[tuple[int, ...], Floats] = {}
    weights: dict[tuple[int, ...], float] = {}
    for order, letters in ((1, "na->a"), (2, "na,nb->ab"), (3, "na,nb,nc->abc")):
        for group in combinations(range(n_workers), order):
            together = float(np.prod(answered[:, list(group)], axis=1).sum())
            if together > 0:
                observed[group] = np.einsum(letters, *(answer[:, m] for m in group)) / together
                weights[group] = together if count_weights else 1.0
    return Moments(observed, weights)


def objective_and_gradient(moments: Moments, confusion: Floats, prior: Floats) -> tuple[float, Floats, Floats]:
    """Return the paper's objective and its gradients in the matrices (M, L, K) and in the prior."""
    value = 0.0
    gradient, prior_gradient = np.zeros_like(confusion), np.zeros_like(prior)
    for group, observed in moments.observed.items():
        factors = [confusion[m] for m in group]
        letters = "abc"[: len(group)]
        spec = ",".join(f"{letter}k" for letter in letters)
        residual = np.einsum(f"k,{spec}->{letters}", prior, *factors) - observed
        weight = moments.weights[group]
        value += 0.5 * weight * float((residual**2).sum())
        prior_gradient += weight * np.einsum(f"{letters},{spec}->k", residual, *factors)
        for i, m in enumerate(group):
            others = [f for j, f in enumerate(factors) if j != i]
            rest = ",".join(f"{letter}k" for j, letter in enumerate(letters) if j != i)
            spec_m = f"{letters},k{',' + rest if rest else ''}->{letters[i]}k"
            gradient[m] += weight * np.einsum(spec_m, residual, prior, *others)
    return value, gradient, prior_gradient


def sweep(
    moments: Moments,
    order: NDArray[np.int64],
    confusion: Floats,
    prior: Floats,
    dual: Floats,
    prior_dual: Floats,
) -> None:
    """Solve for each worker's matrix, in this order, then for the prior, the rest held; in place."""
    _, n_labels, n_classes = confusion.shape
    for m in order:
        hessian, linear = np.zeros((n_classes, n_classes)), np.zeros((n_labels, n_classes))
        for group, observed in moments.observed.items():
            if m not in group:
                continue
            others = _khatri_rao([confusion[j] for j in group if j != m], n_classes)
            unfolded = np.moveaxis(observed, group.index(m), 0).reshape(n_labels, -1)
            hessian += moments.weights[group] * (others.T @ others)
            linear += moments.weights[group] * (unfolded @ others)
        if hessian.any():
            terms = (hessian * np.outer(prior, prior), linear * prior)
            solve_on_simplex(*terms, confusion[m], dual[m], n_classes, 50, 1e-10)
    prior_hessian, prior_linear = np.zeros((n_classes, n_classes)), np.zeros(n_classes)
    for group, observed in moments.observed.items():
        factor = _khatri_rao([confusion[j] for j in group], n_classes)
        prior_hessian += moments.weights[group] * (factor.T @ factor)
        prior_linear += moments.weights[group] * (observed.ravel() @ factor)
    solve_on_simplex(prior_hessian, prior_linear, prior, prior_dual, 1, 200, 1e-10)


def match_explicit_moments(
    responses: Answers,
    confusion: Floats,
    prior: Floats,
    *,
    learn_prior: bool = True,
    max_iter: int = 500,
    tol: float = 1e-5,
    callback: Callable[[Progress], object] | None = None,
) -> MomentFit:
    """Match the paper's moments, with unit weights; arguments and result as those of `match_moments`."""
    moments, order = compute_moments(responses), order_of_sweeps(responses)
    confusion, prior = np.array(confusion, order="C"), np.array(prior)
    dual, prior_dual = np.zeros_like(confusion), np.zeros_like(prior)

    def sweep_and_measure() -> float:
        held = prior.copy()
        sweep(moments, order, confusion, prior, dual, prior_dual)
        if not learn_prior:
            prior[:] = held
        return objective_and_gradient(moments, confusion, prior)[0]

    return repeat_sweeps(sweep_and_measure, confusion, prior, max_iter, tol, callback)


def _khatri_rao(factors: list[Floats], n_classes: int) -> Floats:
    """Return the column-wise Kronecker product."""
    product = np.ones((1, n_classes))
    for factor in factors:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, n_classes)
    return product
