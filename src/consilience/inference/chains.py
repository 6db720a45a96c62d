r"""Hidden Markov fusion: a chain over the labels of a sequence, as strong as hidden answers call for.

**Transitions by moments.** Which answers follow which, given how workers answer, tells the transition matrix. With
u_n[k] = sum of Gamma_m[k, f_mn] over the answers to position n, and W_n = sum of Gamma_m' Gamma_m over those who
answered it, the joint J[j, k] = P(y_{n-1} = j, y_n = k) satisfies E[u_{n-1} u_n'] = W_{n-1} J W_n. All ordered pairs of
workers take part, a worker with itself included (given the truth, answers to different positions are independent),
which is why no sum over pairs of workers is needed. J minimises

    1/2 <J, sum_n W_{n-1} J W_n> - <J, sum_n u_{n-1} u_n'>     over J >= 0, sum J = 1, J = 0 where forbidden

found by FISTA with projection on the simplex; T[j, k] = J[j, k] / sum_k J[j, k], with the sums of J itself.

**Runs of labels.** How probable they are: spans of texts, from their first token to their last. Labels of
neighbours depend on each other, so that the probability of a run is no product of posteriors. Given the evidence, the
labels of a sequence are a Markov chain again, whose steps are in `consilience.kernels.chain`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers, Block
from ..answers.random_choices import count_units, hide_answers
from ..errors import InputError
from ..kernels import NEARLY_ZERO, Floats, width_of
from .em import Fit, Parameters, Problem, Run, expect_from_votes
from .hidden_answers import CouplingScore, HeldOutScore, score_hidden
from .moments import lay_out
from .observations import HIDDEN, Observations
from .structures import Statistics
from .structures.chain import Chain, ChainParameters
from .workers.rows import LeftOut, Weighing

COUPLINGS = (0.0, 0.1, 0.25, 0.5, 1.0)
# Couplings are compared on this share of the (worker, sequence) pairs, in as many folds as it takes to hide enough.
# There are fewer folds if one costs much: products of two classes at each item, over all folds.
ENOUGH_HIDDEN, MOST_FOLDS, MOST_FOLD_PRODUCTS = 2000, 10, 200_000_000
# The least part of all neighbouring pairs that an allowed transition is given by moments.
LEAST_TRANSITION = 1e-8


def learn_coupling(
    observations: Observations, problem: Problem, run: Run, seed: int
) -> tuple[float, list[CouplingScore]]:
    """The coupling of a chain that hidden answers call for, and how well each was judged.

    Few pairs of worker and sequence are hidden in several folds, so that each is hidden once; of many, one part.
    """
    r = observations.responses
    n_folds = min(MOST_FOLDS, -(-ENOUGH_HIDDEN // max(1, round(HIDDEN * count_units(r)))))
    n_folds = min(n_folds, max(1, MOST_FOLD_PRODUCTS // (r.n_items * r.n_classes**2)))
    scores: list[HeldOutScore] = []
    for hidden, unit in hide_answers(r, HIDDEN, seed, n_folds):
        fold = []
        for climbed, fit in climb(problem.about(observations.keep(~hidden)), COUPLINGS, run):
            by_class = climbed.workers.shrink(fit.statistics.counts, r.worker[hidden], r.label[hidden])
            fold.append(score_hidden(r, hidden, unit, climbed.infer(fit.parameters), by_class))
        scores = [old.plus(new) for old, new in zip(scores, fold, strict=True)] if scores else fold
    best = max(scores, key=lambda score: score.score)
    within = [gap <= error for gap, error in (best.minus(score) for score in scores)]
    judged = list(zip(COUPLINGS, scores, strict=True))
    chosen = next(c for (c, score), near in zip(judged, within, strict=True) if near or score is best)
    return chosen, [CouplingScore(coupling, score.score, score.error) for coupling, score in judged]


def climb(problem: Problem, couplings: Sequence[float], run: Run) -> Iterator[tuple[Problem, Fit]]:
    """The fit at each coupling, from weak to strong: the first from the votes, others from the one before."""
    chain, statistics, prior = cast(Chain, problem.structure), expect_from_votes(problem), problem.prior
    for coupling in couplings:
        problem = replace(problem, structure=replace(chain, coupling=coupling))
        fit = run(problem, problem.maximise(statistics, prior))
        yield problem, fit
        statistics, prior = fit.statistics, fit.parameters.prior


def match_transitions(
    responses: Answers, confusion: Floats, allowed: NDArray[np.bool_], max_iter: int = 2000, tol: float = 1e-9
) -> Floats:
    """The transition matrix [from, to] that lagged moments of the answers call for.

    Parameters
    ----------
    responses : Answers
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
    table = np.where(allowed, np.maximum(joint.reshape(n_classes, n_classes), LEAST_TRANSITION), 0.0)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def lagged_moments(responses: Answers, confusion: Floats) -> tuple[Floats, Floats]:
    """The operator sum_n W_{n-1} (x) W_n of shape (K^2, K^2), and sum_n u_{n-1} u_n' of shape (K, K)."""
    if responses.sequences is None:
        raise InputError("Transitions need sequences: give sequence= and position= when the answers are read.")
    n_classes = confusion.shape[2]
    item = responses.item_of_answer()
    evidence = np.zeros((responses.n_items, n_classes))
    np.add.at(evidence, item, confusion[responses.worker, responses.label])
    after = np.ones(responses.n_items, bool)
    after[responses.sequences.offsets[:-1]] = False
    now = np.flatnonzero(after)
    linear = evidence[now - 1].T @ evidence[now]

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

    step = 1.0 / max(float(np.linalg.eigvalsh(hessian)[-1]), NEARLY_ZERO)
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


def follow_labels(
    problem: Problem,
    parameters: Parameters,
    statistics: Statistics | None,
    posterior: Floats,
    codes: NDArray[np.int64],
    continues: Floats,
) -> Floats:
    """The parts of the probabilities of runs of labels in a chain, (n_items, 3); see `kernels.chain`.

    With `statistics` evidence is from counts without each item, and the chain relaxed, as for calibrated posteriors.
    Classes that nobody said and no label is are left out: left-out evidence does not hold it against them.
    """
    structure, unused = cast(ChainParameters, parameters.structure), np.empty(0, np.int64)
    weighing: Weighing = problem.workers.factors(parameters.workers.log_weights)
    if statistics is not None:
        counted = problem.workers.counted(statistics.counts, parameters.prior)
        weighing = LeftOut(counted, posterior)
        structure = problem.structure.for_left_out(structure)
        unused = np.setdiff1d(np.array(problem.unsaid, np.int64), codes)
    shared = (weighing, structure, codes, continues, unused)
    return np.concatenate(list(problem.engine.map(follow_block, problem.placed, *shared)))


def follow_block(
    block: Block,
    weighing: Weighing,
    structure: ChainParameters,
    codes: NDArray[np.int64],
    continues: Floats,
    unused: NDArray[np.int64],
) -> Floats:
    """Parts of the probabilities of runs of labels in one block."""
    from ..kernels.chain import follow_paths

    evidence, _ = weighing.weigh(block)
    evidence[:, unused] = 0.0
    own = codes[block.first_item : block.first_item + block.n_items]
    factors, width = (structure.start_factor, structure.pair_factor, structure.end_factor), evidence.shape[1]
    return follow_paths(block.sequences, evidence, *factors, own, continues, width_of(width, block.total_size))
