"""Moment matching: confusion matrices and class prior from which answers go together, without labels and without EM.

The idea is the paper's (section III-B, after Traganitis, Pages-Zamora & Giannakis 2018): choose matrices and prior so
that the expected single, pairwise and triple co-occurrences of answers match the observed ones. The paper stores all
M^3 moment tensors, which ends at about a hundred workers; here every pair and triple counts by how often it answered
together, and then no tensor is needed (see `consilience.kernels.moments`): time and memory are linear in the answers.

Pairs alone do not identify the model, so triples have the say wherever items have three answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import order_by
from ..answers.random_choices import draw_numbers, hash_ids, hash_items
from ..errors import DataWarning, warn
from ..kernels import Floats, Integers
from .em import Progress
from .observations import find_first, keep_strongest
from .workers.rows import SHRINKAGE

# Weight of single answers, pairs and triples, where there are triples, and where there are none.
WITH_TRIPLES = (0.1, 0.1, 1.0)
WITHOUT_TRIPLES = (0.1, 1.0, 0.0)
# Solving for one worker needs no more accuracy than the sweep around it.
MAX_INNER, INNER_TOL = 20, 1e-9


class Layout(NamedTuple):
    """Answers sorted by worker, and the distinct sets of workers who answered an item."""

    worker_offsets: NDArray[np.int64]
    item: Integers
    label: Integers
    set_offsets: NDArray[np.int64]  # worker m is in the sets sets[set_offsets[m]:set_offsets[m + 1]]
    sets: Integers
    set_of_item: NDArray[np.int64]
    set_size: Floats  # number of items with that set
    member_offsets: NDArray[np.int64]  # set u has the workers members[member_offsets[u]:member_offsets[u + 1]]
    members: Integers


class MomentFit(NamedTuple):
    """The result of moment matching. Matrices are (M, L, K)."""

    confusion: Floats
    prior: Floats
    trace: Floats
    n_iter: int
    converged: bool


def match_moments(
    responses: Answers,
    confusion: Floats,
    prior: Floats,
    *,
    learn_prior: bool = True,
    max_iter: int = 500,
    tol: float = 1e-5,
    callback: Callable[[Progress], object] | None = None,
) -> MomentFit:
    """Match first, second and third moments of the answers, by sweeps over workers and prior.

    Parameters
    ----------
    responses : Answers
        The answers, each of weight 1.
    confusion, prior : array (M, L, K) and (K,)
        Where to start, such as the matrices that majority vote suggests.
    learn_prior : bool
        Whether the prior is found too, or held.
    max_iter, tol
        Most sweeps; stop when no probability moves by more than `tol` in a sweep.
    callback : callable, optional
        Told the `Progress`: its gain is the largest change of a probability.
    """
    from ..kernels.moments import solve_on_simplex, sweep_workers

    layout, order = lay_out(responses), order_of_sweeps(responses)
    confusion, prior = np.array(confusion, order="C"), np.array(prior)
    dual, prior_dual = np.zeros_like(confusion), np.zeros_like(prior)
    products = Products(responses, layout, item_weights(responses, layout), confusion.shape[2])
    products.renew(confusion)

    def sweep() -> float:
        sweep_workers(order, products.by_worker, confusion, products.gram, dual, prior, MAX_INNER, INNER_TOL)
        # Anew in each sweep: differences added up over many sweeps would drift.
        hessian, linear = products.renew(confusion)
        if learn_prior:
            solve_on_simplex(hessian, linear, prior, prior_dual, 1, 10 * MAX_INNER, INNER_TOL)
        return float(0.5 * prior @ hessian @ prior - linear @ prior)

    return repeat_sweeps(sweep, confusion, prior, max_iter, tol, callback)


def order_of_sweeps(responses: Answers) -> NDArray[np.int64]:
    """The order in which the matrices of workers are found: by their ids, not by where they stand."""
    return np.argsort(hash_ids(responses.workers), kind="stable")


def repeat_sweeps(
    sweep: Callable[[], float],
    confusion: Floats,
    prior: Floats,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], object] | None,
) -> MomentFit:
    """Call `sweep`, which changes matrices and prior in place and returns the objective, until they settle."""
    trace, converged = [], False
    for iteration in range(max_iter):
        old, old_prior = confusion.copy(), prior.copy()
        trace.append(sweep())
        change = max(float(np.abs(confusion - old).max()), float(np.abs(prior - old_prior).max()))
        if callback is not None:
            callback(Progress(iteration + 1, max_iter, trace[-1], change))
        if tol > 0 and change < tol:
            converged = True
            break
    return MomentFit(confusion, prior, np.array(trace), len(trace), converged)


class Products:
    """e1 and e2 of every item and of every set of workers (see `consilience.kernels.moments`), and their weights."""

    def __init__(self, responses: Answers, layout: Layout, weights: Floats, n_classes: int) -> None:
        self._triangle = np.triu_indices(n_classes)
        n_pairs = len(self._triangle[0])
        self._offsets, self._layout = responses.offsets, layout
        index = np.int32 if responses.n_workers * responses.n_labels < 2**31 else np.int64
        self._codes = responses.worker * index(responses.n_labels) + responses.label
        self._item_weights = weights[layout.set_of_item]
        self._set_weights = weights * layout.set_size[:, None]
        self._of_items = np.zeros((responses.n_items, 2, n_classes))
        self._of_sets = np.zeros((len(layout.set_size), 2, n_pairs))
        self.gram = np.zeros((responses.n_workers, n_pairs))
        self.by_worker = (
            *(layout.worker_offsets, layout.item, layout.label, self._item_weights, self._of_items),
            *(layout.set_offsets, layout.sets, self._set_weights, self._of_sets),
        )

    def renew(self, confusion: Floats) -> tuple[Floats, Floats]:
        """Compute everything from the matrices; return the Hessian and the linear part of the objective in pi."""
        from ..kernels.moments import sum_products

        n_classes = confusion.shape[2]
        self.gram[:] = (confusion.transpose(0, 2, 1) @ confusion)[:, *self._triangle]
        rows = confusion.reshape(-1, n_classes)
        linear = sum_products(self._offsets, self._codes, rows, self._item_weights, self._of_items)
        offsets, members = self._layout.member_offsets, self._layout.members
        hessian = np.zeros((n_classes, n_classes))
        hessian[self._triangle] = sum_products(offsets, members, self.gram, self._set_weights, self._of_sets)
        hessian.T[self._triangle] = hessian[self._triangle]
        return hessian, linear


def learn_moments(
    responses: Answers, confusion: Floats, prior: Floats, *, shrinkage: float = SHRINKAGE, **settings: Any
) -> MomentFit:
    """Match moments, then put classes in their places and shrink what is uncertain.

    Workers who count once together have the matrix of their leader, who gave their answers; see `answers_to_match`.
    """
    if np.diff(responses.offsets).max(initial=0) < 3:
        warn(DataWarning("Moments do not determine how workers answer: no item has three answers."))
    moments = match_moments(responses, confusion, prior, **settings)
    n_answers = np.bincount(responses.worker, minlength=responses.n_workers)
    aligned, ordered = align_classes(moments.confusion, moments.prior, n_answers, responses.label_of_class)
    shrunk = shrink(aligned, n_answers, shrinkage)
    return moments._replace(confusion=shrunk if responses.leader is None else shrunk[responses.leader], prior=ordered)


def lay_out(responses: Answers) -> Layout:
    """Sort answers by worker, and find which items were answered by the same set of workers."""
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
    member_offsets = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(responses.offsets[first] - member_offsets[:-1], sizes) + np.arange(sizes.sum())
    members = responses.worker[at]
    by_member, set_offsets = order_by(members, n_workers)
    # Half the bytes to read wherever they suffice.
    index = np.int32 if responses.n_items < 2**31 else np.int64
    return Layout(
        worker_offsets,
        item[order].astype(index),
        responses.label[order],
        set_offsets,
        np.repeat(np.arange(len(first)), sizes)[by_member].astype(index),
        set_of_item.astype(np.int64),
        set_size.astype(np.float64),
        member_offsets,
        members,
    )


def item_weights(responses: Answers, layout: Layout) -> Floats:
    """The weights (U, 3) of singles, pairs and triples in each set, so that every item has equal say.

    An item with A answers has A singles, A (A - 1) / 2 pairs and A (A - 1) (A - 2) / 6 triples.
    """
    size = np.zeros(len(layout.set_size))
    size[layout.set_of_item] = np.diff(responses.offsets)
    emphasis = WITH_TRIPLES if (size >= 3).any() else WITHOUT_TRIPLES
    ways = np.stack([size, size * (size - 1) / 2, size * (size - 1) * (size - 2) / 6], axis=1)
    return np.asarray(np.divide(emphasis, ways, out=np.zeros_like(ways), where=ways > 0) / responses.n_items)


def answers_to_match(responses: Answers) -> Answers:
    """The answers whose moments are matched: one label of each worker for an item.

    Moments have no weights. Of workers who count once together, one who answered the item is drawn by a hash, and the
    answer is taken as that of their leader.
    """
    answers = keep_strongest(responses)
    if answers.leader is None:
        return answers
    item, leader = answers.item_of_answer(), answers.leader[answers.worker]
    numbers = draw_numbers(0, hash_items(answers.keys)[item], hash_ids(answers.workers)[answers.worker])
    chosen = find_first(np.lexsort((numbers, leader, item)), item * answers.n_workers + leader)
    return replace(answers, worker=leader.astype(answers.worker.dtype)).keep(chosen)


def shrink(confusion: Floats, n_answers: NDArray[np.int64], shrinkage: float = SHRINKAGE) -> Floats:
    """Pull the matrices (M, L, K) of workers with few answers towards the crowd's, by N_m / (N_m + shrinkage K).

    What is left of a worker's own matrix is mixed with one even answer per class: moments often put a probability at
    exactly 0, which a single contrary answer would turn into certainty.
    """
    n_labels, n_classes = confusion.shape[1:]
    per_class = (n_answers / n_classes)[:, None, None]
    own = (per_class * confusion + 1 / n_labels) / (per_class + 1)
    pooled = np.einsum("m,mlk->lk", n_answers / max(n_answers.sum(), 1), own)
    trust = per_class / (per_class + shrinkage) if shrinkage > 0 else np.ones_like(per_class)
    return np.asarray(trust * own + (1 - trust) * pooled)


def align_classes(
    confusion: Floats, prior: Floats, n_answers: NDArray[np.int64], label_of_class: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Undo the one permutation that moments cannot see: most workers are more often right than wrong.

    The same permutation for all workers: the assignment of components to classes that maximises the sum of diagonal
    entries of all matrices, weighted by answers.
    """
    from scipy.optimize import linear_sum_assignment  # here, for it takes long to import and few need it

    summed = np.einsum("m,mlk->lk", n_answers.astype(np.float64), confusion)
    named = label_of_class >= 0
    agreement = np.where(named[:, None], summed[label_of_class], 0.0)
    _, component = linear_sum_assignment(agreement, maximize=True)
    return np.ascontiguousarray(confusion[:, :, component]), prior[component]
