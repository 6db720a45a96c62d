r"""One pass over the blocks after a fit: posteriors, and all sums over answers and items that a result is made of.

Each block yields the posteriors of its items, the same with each item left out of what was learned of its workers, and
sums: of what answers say of their workers (see `consilience.results.chance`), and of the scores of items (see
`consilience.results.intervals`). Sums are added in the order of the blocks. Whatever is made of posteriors item by item
(labels, powers of them) looks at no answers.

A network is inferred as a whole. Its posteriors are known before the pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..answers.answers import Block
from ..answers.columns import count_codes
from ..inference.em import Parameters, Problem, infer_block, infer_left_out, keep_unsaid
from ..inference.observations import Observations
from ..inference.structures import Statistics, StructureParameters
from ..inference.workers.base import WorkerModel
from ..inference.workers.rows import LeftOut, RowCounts, Weighing, exponentiate
from ..kernels import Floats, Truths, freeze, read_only
from ..limits import allocate, release_mapped
from .chance import count_by_others
from .intervals import (
    MOST_CLASSES_TOGETHER,
    SMALLEST_SHARE,
    IntervalInputs,
    Sums,
    compare_votes,
    cut_runs,
    sum_by_item,
    sum_sequences,
)

# What is summed of the answers of each worker: their weights, chances to be right and squares of these, and the weights
# of those that something else judges.
N_SUMS = 4


class Conclusion(NamedTuple):
    """The results of the pass.

    Attributes
    ----------
    posterior, left_out : array (N, K)
        Posteriors of the fit, and those that leave each item out; the same array where nothing was learned from items.
        Models with a hidden truth then raise `left_out` to a power in place: it becomes what is reported.
    sums : Sums
        What intervals are made of; with earlier batches of a stream.
    counts, pairs : array
        What others say; see `consilience.results.chance.count_by_others`.
    """

    posterior: Floats
    left_out: Floats
    sums: Sums
    counts: Floats
    pairs: Floats


class Task(NamedTuple):
    """The work on each block, wherever it is."""

    workers: WorkerModel
    log_weights: Floats
    factors: Weighing
    structure: StructureParameters
    without: LeftOut | None  # None where nothing was learned from items
    relaxed: StructureParameters
    unsaid: tuple[int, ...]
    network: tuple[Floats, Floats | None] | None  # its posteriors, which are inferred before
    right: Floats  # (M, K)
    judged: Truths  # (N,)
    meant: Truths  # (K,)
    shares: Floats  # (K,)
    size: int  # of scores
    mean: Floats  # (K,): the posterior of an item, on average


def conclude(
    observations: Observations,
    problem: Problem,
    parameters: Parameters,
    statistics: Statistics,
    inputs: IntervalInputs,
    leaves_out: bool,
    earlier: Sums | None = None,
) -> Conclusion:
    """Make the pass.

    Parameters
    ----------
    observations, problem, parameters, statistics
        What was fitted, and what was found.
    inputs : IntervalInputs
        The same, as far as intervals depend on it.
    leaves_out : bool
        Whether matrices were learned from these items.
    earlier : Sums, optional
        Sums over the earlier batches of a stream.
    """
    r, workers, n_classes = observations.responses, problem.workers, len(inputs.prior)
    network = None
    if parameters.structure.takes_all:
        posterior = problem.infer(parameters)
        network = posterior, infer_left_out(problem, parameters, statistics, posterior) if leaves_out else None

    # Which classes some answer means: by a label that was given or, where it is an answer, silence.
    meant = r.vote_shares() > 0 if r.silence_counts else np.zeros(n_classes, bool)
    said = (r.label_counts if r.amount is None else count_codes(r.label, r.n_labels)) > 0
    meant[r.class_of_label[said & (r.class_of_label >= 0)]] = True
    if earlier is not None:
        meant |= earlier.meant > 0

    counted = workers.counted(statistics.counts, parameters.prior) if leaves_out else None
    # Scores are of classes and of their shares, unless these are known.
    size = 0 if n_classes > MOST_CLASSES_TOGETHER else n_classes if inputs.prior_is_known else 2 * n_classes
    task = Task(
        workers,
        parameters.workers.log_weights,
        workers.factors(parameters.workers.log_weights),
        parameters.structure,
        None if counted is None else LeftOut(counted, np.empty((0, n_classes))),
        problem.structure.for_left_out(parameters.structure),
        problem.unsaid,
        network,
        inputs.right,
        inputs.judged,
        meant,
        inputs.prior / max(inputs.prior[meant].sum(), SMALLEST_SHARE),
        size,
        statistics.summary.mass / max(statistics.summary.mass.sum(), SMALLEST_SHARE),
    )
    from ..kernels.answers import add_to_rows

    by_worker = np.zeros((r.n_workers, N_SUMS))
    counts = np.zeros((workers.n_workers, 3) if workers.accuracy_alone else (workers.n_rows, workers.n_classes))
    totals: list[Floats] | None = None
    posterior = allocate((r.n_items, n_classes))
    left_out, first = allocate(posterior.shape) if leaves_out else posterior, 0
    for own, left, tables, others in problem.engine.map(conclude_block, problem.placed, task):
        run = slice(first, first := first + len(own))
        posterior[run] = own
        if leaves_out:
            left_out[run] = left
        for (rows, part), total in zip(tables, (by_worker, counts), strict=True):
            if totals is None:  # small data are one block: nothing need be compiled for them
                total[rows] = part
            else:
                add_to_rows(rows, part, total)
        totals = others if totals is None else [total + part for total, part in zip(totals, others, strict=True)]
    release_mapped()
    assert totals is not None
    pairs, scores, lack, moments = totals
    chances, judged = np.ascontiguousarray(by_worker[:, :3].T), by_worker[:, [3, 0]].T
    n_sequences = 0 if r.sequences is None else np.count_nonzero(np.diff(r.sequences.offsets))
    votes = np.zeros(3)
    if r.n_responses and (r.sequences is not None or r.amount is not None):
        votes = compare_votes(r, posterior, chances if earlier is None else chances + earlier.chances)
    sums = Sums(
        chances,
        judged,
        votes,
        np.pad(scores, ((0, 0), *[(0, 2 * n_classes - size)] * 2)) if size else np.empty((2, 0, 0)),
        lack,
        moments,
        meant.astype(np.float64),
        np.array([len(posterior), n_sequences], np.float64),
    )
    if earlier is not None:
        sums = sums.plus(earlier)
    return Conclusion(posterior, left_out, sums, counts, pairs)


def conclude_block(block: Block, task: Task) -> tuple[Floats, Floats, list[RowCounts], list[Floats]]:
    """Posteriors, those with each item left out, tables of sums over answers, and sums over items."""
    from ..kernels.answers import sum_chances

    run, workers = slice(block.first_item, block.first_item + block.n_items), task.workers
    if task.network is None:
        posterior = infer_block(block, task.factors, task.structure)[0]
        left_out = posterior
        if task.without is not None:
            left_out, _ = exponentiate(block, task.without.counted.log_evidence(block, posterior))
            task.relaxed.infer_block(block, left_out)
            left_out = keep_unsaid(left_out, posterior, task.unsaid) if task.unsaid else left_out
    else:
        posterior = np.ascontiguousarray(task.network[0][run])
        left_out = posterior if task.network[1] is None else task.network[1][run]

    # Who gave the answers of each row, and which class it means.
    n_classes, n_rows = posterior.shape[1], len(block.rows)
    owner = block.rows // (workers.n_rows // workers.n_workers)
    means = freeze(workers.class_of_label[block.rows % workers.n_answers])
    codes, offsets, amount = block.codes, block.offsets, block.amount
    own, judged = np.zeros((n_rows, N_SUMS)), task.judged[run]
    sum_chances(codes, offsets, amount, means, read_only(posterior), own)
    own[:, 3] = own[:, 0]
    if not judged.all():
        counts = np.repeat(judged, np.diff(offsets)).astype(np.float64)
        own[:, 3] = np.bincount(codes, counts * amount if len(amount) else counts, n_rows)

    there, begins = np.unique(owner, return_index=True)
    by_worker = there, np.add.reduceat(own, begins) if n_rows else own
    by_others, pairs = count_by_others(workers, block, posterior, judged, task.log_weights, task.mean)

    # Scores of items and of sequences.
    scores, lack = np.zeros((2, task.size, task.size)), np.zeros(n_classes)
    right = task.right[owner] if task.size else np.empty((0, n_classes))
    variance = right * (1 - right)
    # Weights may be so large or so small that sums of their products are infinite, or 0: then nothing is known.
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        for part in cut_runs(block.n_items, n_classes, block.sequences) if task.size else ():
            q = posterior[part]
            surprise, variances = sum_by_item(codes, codes, offsets, amount, means, right, variance, part)
            away = np.where(task.meant, q - q[:, task.meant].sum(axis=1, keepdims=True) * task.shares, 0.0)
            score = np.concatenate([q * surprise, away], axis=1)[:, : task.size]
            scores[0] += score.T @ score
            lack += np.sum(q**2 * (variances - surprise**2), axis=0)
            if len(block.sequences):
                together = sum_sequences(score, block.sequences, part)
                scores[1] += together.T @ together
    moments = np.stack([posterior.sum(axis=0), np.einsum("nk,nk->k", posterior, posterior)])
    return posterior, left_out, [by_worker, by_others], [pairs, scores, lack, moments]
