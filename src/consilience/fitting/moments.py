"""Moment matching: confusion matrices and class prior from which answers go together, without labels and without EM.

The idea is the paper's (section III-B, after Traganitis, Pages-Zamora & Giannakis 2018): choose matrices and prior so
that the expected single, pairwise and triple co-occurrences of answers match the observed ones. The paper stores all
M^3 moment tensors, which ends at about a hundred workers; here every pair and triple counts by how often it answered
together, and then no tensor is needed (see `consilience.kernels.moments`): time and memory are linear in the answers.
`consilience.fitting.explicit_moments` is the paper's form, for comparison.

Pairs alone do not identify the model, so triples have the say wherever items have three answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..errors import listing
from ..kernels.types import Floats
from ..responses import Responses

# Weight of single answers, pairs and triples, where there are triples, and where there are none.
WITH_TRIPLES = (0.1, 0.1, 1.0)
WITHOUT_TRIPLES = (0.1, 1.0, 0.0)
# Solving for one worker needs no more accuracy than the sweep around it.
MAX_INNER, INNER_TOL = 20, 1e-9
# The crowd's matrix counts as this many answers per class when a worker's own matrix is shrunk towards it.
SHRINKAGE = 20.0
# Below this, a singular value says that some classes cannot be told apart.
LEAST_SINGULAR_VALUE = 0.02


class Layout(NamedTuple):
    """Answers sorted by worker, and the distinct sets of workers who answered an item."""

    worker_offsets: NDArray[np.int64]
    item: NDArray[np.int64]
    label: NDArray[np.int64]
    set_offsets: NDArray[np.int64]  # worker m is in the sets set_offsets[m]:set_offsets[m + 1]
    sets: NDArray[np.int64]
    set_of_item: NDArray[np.int64]
    set_size: Floats  # number of items with that set


class MomentFit(NamedTuple):
    """What moment matching found. Matrices are (M, L, K)."""

    confusion: Floats
    prior: Floats
    trace: Floats
    n_iter: int
    converged: bool


def match_moments(
    responses: Responses,
    confusion: Floats,
    prior: Floats,
    *,
    learn_prior: bool = True,
    max_iter: int = 500,
    tol: float = 1e-5,
    callback: Callable[[int, float], object] | None = None,
) -> MomentFit:
    """Match first, second and third moments of the answers, by sweeps over workers and prior.

    Parameters
    ----------
    responses : Responses
        The answers, each of weight 1.
    confusion, prior : array (M, L, K) and (K,)
        Where to start, such as the matrices that majority vote suggests.
    learn_prior : bool
        Whether the prior is found too, or held.
    max_iter, tol
        Most sweeps; stop when no probability moves by more than `tol` in a sweep.
    callback : callable, optional
        Told (sweep, largest change).
    """
    from ..kernels.moments import prior_terms, solve_vector_on_simplex, sum_powers, sweep_workers

    layout = lay_out(responses)
    weights = item_weights(responses, layout)
    n_workers, _, n_classes = confusion.shape
    confusion, prior = np.array(confusion, order="C"), np.array(prior)
    dual, prior_dual = np.zeros_like(confusion), np.zeros_like(prior)
    gram = np.empty((n_workers, n_classes, n_classes))
    item_powers = np.empty((3, responses.n_items, n_classes))
    set_powers = np.empty((3, len(layout.set_size), n_classes, n_classes))
    trace, converged = [], False
    by_worker = (layout.worker_offsets, layout.item, layout.label, layout.set_offsets, layout.sets)
    for sweep in range(max_iter):
        old, old_prior = confusion.copy(), prior.copy()
        # Anew in each sweep: differences added up over many sweeps would drift.
        sum_powers(*by_worker, confusion, gram, item_powers, set_powers)
        sweep_workers(
            *by_worker,
            layout.set_of_item,
            layout.set_size,
            weights,
            confusion,
            dual,
            prior,
            gram,
            item_powers,
            set_powers,
            MAX_INNER,
            INNER_TOL,
        )
        hessian, linear = prior_terms(layout.set_of_item, layout.set_size, weights, item_powers, set_powers)
        if learn_prior:
            solve_vector_on_simplex(hessian, linear, prior, prior_dual, 10 * MAX_INNER, INNER_TOL)
        trace.append(float(0.5 * prior @ hessian @ prior - linear @ prior))
        change = max(float(np.abs(confusion - old).max()), float(np.abs(prior - old_prior).max()))
        if callback is not None:
            callback(sweep + 1, change)
        if change < tol:
            converged = True
            break
    return MomentFit(confusion, prior, np.array(trace), len(trace), converged)


def objective_and_gradient(
    responses: Responses, weights: Floats, confusion: Floats, prior: Floats
) -> tuple[float, Floats, Floats]:
    """Return the objective (without its constant) and its gradients in the matrices (M, L, K) and in the prior.

    `weights` (U, 3) are those of singles, pairs and triples for each distinct set of workers.
    """
    from ..kernels.moments import prior_terms, sum_powers, worker_terms

    layout = lay_out(responses)
    n_workers, n_labels, n_classes = confusion.shape
    gram = np.empty((n_workers, n_classes, n_classes))
    item_powers = np.empty((3, responses.n_items, n_classes))
    set_powers = np.empty((3, len(layout.set_size), n_classes, n_classes))
    by_worker = (layout.worker_offsets, layout.item, layout.label, layout.set_offsets, layout.sets)
    sum_powers(*by_worker, confusion, gram, item_powers, set_powers)
    of_sets = (layout.set_of_item, layout.set_size, weights)
    gradient = np.empty_like(confusion)
    hessian, linear = np.empty((n_classes, n_classes)), np.empty((n_labels, n_classes))
    for m in range(n_workers):
        worker_terms(m, *by_worker, *of_sets, confusion, prior, gram, item_powers, set_powers, hessian, linear)
        gradient[m] = confusion[m] @ hessian - linear
    hessian, linear = prior_terms(*of_sets, item_powers, set_powers)
    return float(0.5 * prior @ hessian @ prior - linear @ prior), gradient, hessian @ prior - linear


def lay_out(responses: Responses) -> Layout:
    """Sort answers by worker, and find which items were answered by the same set of workers."""
    from ..kernels.layout import order_by

    n_workers = responses.n_workers
    item = responses.item_of_answer()
    order, worker_offsets = order_by(responses.worker, n_workers)
    # A set is known by the sum of its workers' random 64-bit numbers: equal sets, equal sums.
    numbers = np.random.default_rng(0).integers(0, 2**63, n_workers, dtype=np.uint64)
    sums = np.zeros(responses.n_items, np.uint64)
    np.add.at(sums, item, numbers[responses.worker])
    _, first, set_of_item, set_size = np.unique(sums, return_index=True, return_inverse=True, return_counts=True)
    # The members of a set are the workers of its first item.
    sizes = np.diff(responses.offsets)[first]
    member_of = np.repeat(np.arange(len(first)), sizes)
    at = np.repeat(responses.offsets[first] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(
        sizes.sum()
    )
    by_member, set_offsets = order_by(responses.worker[at], n_workers)
    return Layout(
        worker_offsets,
        item[order],
        responses.label[order].astype(np.int64),
        set_offsets,
        member_of[by_member],
        set_of_item.astype(np.int64),
        set_size.astype(np.float64),
    )


def item_weights(responses: Responses, layout: Layout) -> Floats:
    """Return the weights (U, 3) of singles, pairs and triples in each set, so that every item has equal say.

    An item with A answers has A singles, A (A - 1) / 2 pairs and A (A - 1) (A - 2) / 6 triples.
    """
    size = np.zeros(len(layout.set_size))
    size[layout.set_of_item] = np.diff(responses.offsets)
    emphasis = WITH_TRIPLES if (size >= 3).any() else WITHOUT_TRIPLES
    ways = np.stack([size, size * (size - 1) / 2, size * (size - 1) * (size - 2) / 6], axis=1)
    return np.asarray(np.divide(emphasis, ways, out=np.zeros_like(ways), where=ways > 0) / responses.n_items)


def strongest_answers(responses: Responses) -> Responses:
    """Return the answers with each worker's weights on an item replaced by the label with most weight."""
    if responses.weight is None:
        return responses
    pair = responses.item_of_answer() * responses.n_workers + responses.worker
    # Within a pair the heaviest comes first, and of equals the first label.
    order = np.lexsort((-responses.weight, pair))
    first = np.ones(len(order), bool)
    first[1:] = pair[order][1:] != pair[order][:-1]
    chosen = np.zeros(len(order), bool)
    chosen[order[first]] = True
    return responses.keep(chosen).unweighted()


def shrink(confusion: Floats, n_answers: NDArray[np.int64]) -> Floats:
    """Pull the matrices (M, L, K) of workers with few answers towards the crowd's, by N_m / (N_m + SHRINKAGE K)."""
    share = n_answers / max(n_answers.sum(), 1)
    pooled = np.einsum("m,mlk->lk", share, confusion)
    own = (n_answers / (n_answers + SHRINKAGE * confusion.shape[2]))[:, None, None]
    return np.asarray(own * confusion + (1 - own) * pooled)


def align_classes(
    confusion: Floats, prior: Floats, n_answers: NDArray[np.int64], label_of_class: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Undo the one permutation that moments cannot see: most workers are more often right than wrong.

    The same permutation for all workers: the assignment of components to classes that maximises the sum of diagonal
    entries of all matrices, weighted by answers.
    """
    summed = np.einsum("m,mlk->lk", n_answers.astype(np.float64), confusion)
    named = label_of_class >= 0
    agreement = np.where(named[:, None], summed[label_of_class], 0.0)
    _, component = linear_sum_assignment(agreement, maximize=True)
    return np.ascontiguousarray(confusion[:, :, component]), prior[component]


def find_obstacles(responses: Responses, confusion: Floats) -> list[str]:
    """Return, in words, why these answers cannot identify the model; an empty list if nothing was found.

    Moments need three workers who share items, one connected crowd, and workers who between them tell all classes
    apart (three disjoint groups whose stacked matrices have full rank; Kruskal's condition).
    """
    found = []
    answers = np.diff(responses.offsets)
    item = responses.item_of_answer()
    company = np.zeros(responses.n_workers)
    np.maximum.at(company, responses.worker, answers[item])
    active = np.bincount(responses.worker, minlength=responses.n_workers) > 0
    alone = active & (company < 3)
    if alone.any():
        names = listing(responses.workers[alone].tolist())
        found.append(
            f"{int(alone.sum()):,} worker(s) never answered an item together with two others, so that nothing but the "
            f"crowd's average is known of them: {names}."
        )
    links = coo_array(
        (np.ones(len(item)), (responses.worker, item)), shape=(responses.n_workers, responses.n_items)
    ).tocsr()
    n_parts, part = connected_components(links @ links.T, directed=False)
    sizes = np.bincount(part[active], minlength=n_parts)
    if (sizes > 0).sum() > 1:
        apart = active & (part != sizes.argmax())
        found.append(
            f"The workers fall into {(sizes > 0).sum():,} groups that share no item, whose classes cannot be compared; "
            f"outside the largest group: {listing(responses.workers[apart].tolist())}."
        )
    n_classes = confusion.shape[2]
    order = np.argsort(-np.bincount(responses.worker, minlength=responses.n_workers), kind="stable")
    groups = [confusion[order[i::3]].reshape(-1, n_classes) for i in range(min(3, responses.n_workers))]
    # Divided by the root of the group's size, so that the value is that of an average worker.
    least = min(np.linalg.svd(g, compute_uv=False)[-1] / np.sqrt(len(g) / confusion.shape[1]) for g in groups)
    if active.sum() < 3 or least < LEAST_SINGULAR_VALUE:
        spread = np.array([np.linalg.svd(matrix, compute_uv=False).min() for matrix in confusion])
        weak = responses.workers[active & (spread <= np.median(spread[active]))]
        found.append(
            f"The answers hardly tell the {n_classes} classes apart (least singular value {least:.3f}); the workers "
            f"who tell least are {listing(weak.tolist())}."
        )
    return found
