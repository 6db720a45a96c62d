"""The one EM loop, for any structure, worker model and engine: `run_em`.

Each iteration is E-step, then M-step; a final E-step follows the loop, so that posteriors always belong to the
parameters that are reported. The objective at parameters theta is

    sum_n log Z_n(theta) + bound(theta)

the penalised log likelihood for EM, the evidence lower bound for variational Bayes (see
`consilience.inference.distributions`). A prior of the workers that is learned (see
`consilience.inference.workers.base`) is a part of the M-step every few iterations, and its density a part of the
objective.

A stream is fitted batch by batch. The statistics S of earlier batches are added to those of every E-step, and the
objective of the batch is

    sum_n log Z_n(theta) + <S, log theta> + bound(theta)

where <S, log theta> is the expected log probability of what was counted: the logarithms of the factors that the E-step
multiplies, each times its expected count. So what was learned yesterday is the prior of today.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Block, Budget
from ..answers.columns import Values
from ..answers.graph import Graph
from ..engines import Engine, Placed
from ..errors import InputError, plural
from ..kernels import ROUNDING, Floats
from ..limits import NUMBER, allocate, are_allowed, release_mapped
from .cells import Cells
from .checkpoints import load_run, name_run, save_run
from .distributions import Distributions, log_of
from .structures import Statistics, Structure, StructureParameters, Summary, Trail
from .workers import WORKERS
from .workers.base import Prior, WorkerModel
from .workers.rows import AnyFactors, LeftOut, RowCounts, Weighing, vote

if TYPE_CHECKING:
    from .observations import Observations


class Parameters(NamedTuple):
    """Everything that is learned."""

    workers: Distributions
    structure: StructureParameters
    prior: Prior  # of the workers, which may be learned too


class Progress(NamedTuple):
    """The argument of a callback after each iteration."""

    iteration: int
    max_iter: int
    objective: float
    gain: float  # of the objective, per answer


class Fit(NamedTuple):
    """The result of one run of the loop."""

    parameters: Parameters
    statistics: Statistics
    trace: Floats
    n_iter: int
    converged: bool


def run_em(
    problem: Any,
    start: Any,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], object] | None = None,
    budget: Budget | None = None,
) -> Fit:
    """Iterate E- and M-steps from `start` until the objective gains less than `tol` per answer.

    With `tol=0` exactly `max_iter` iterations are made; with `max_iter=0` none, and the start is the result. A prior
    that is learned must have settled too: the last step before the end has looked at it. Where there is no
    likelihood, a fit has settled after `enough_steps`. What is fitted is a `Problem`, or several that share something.
    With a budget, where each iteration stands is kept in its folder, from where an interrupted run continues.
    """
    parameters, trace, trail, enough = start, list[float](), Trail(), problem.enough_steps
    prior_is_new, path = not start.prior.learns, None
    if budget is not None:
        path = name_run(budget, (start, tol, problem.prior, problem.checkpoint_key))
        if budget.resume:
            parameters, trace, prior_is_new = load_run(path, start, max_iter) or (parameters, trace, prior_is_new)
    for iteration in range(len(trace), max_iter + 1):
        statistics = problem.expect(parameters, trail)
        trace.append(problem.objective(parameters, statistics))
        gain = (trace[-1] - trace[-2]) / max(problem.n_responses, 1) if iteration else np.inf
        if callback is not None and iteration < max_iter:
            callback(Progress(iteration + 1, max_iter, trace[-1], float(gain)))
        # The gain may be negative where the objective is only approximate: that is no reason to stop.
        settled = tol > 0 and (abs(gain) < tol or (enough is not None and iteration >= enough))
        learns = parameters.prior.learns
        converged = bool(settled and (prior_is_new or not learns))
        if converged or iteration == max_iter:
            break
        prior_is_new = parameters.prior.is_due(iteration) or (settled and learns)
        parameters = problem.maximise(statistics, parameters.prior, prior_is_new)
        if path is not None:
            save_run(path, parameters, trace, prior_is_new)
    return Fit(parameters, statistics, np.array(trace), iteration, converged)


@dataclass(frozen=True)
class Problem:
    """Placed blocks, worker model with its prior, structure and graph: the input of the loop."""

    engine: Engine
    placed: Sequence[Placed]
    workers: WorkerModel
    prior: Prior
    structure: Structure
    graph: Graph | None
    n_responses: int
    weighted: bool
    weight_scale: float  # what weights are multiplied by
    unvoted: Floats  # (K,): what an item without votes is taken for at first
    budget: Budget | None = None  # of answers that are mapped from files
    checkpoint_key: tuple[Any, ...] = ()  # what the answers are fitted with: known labels, priors of items and the like
    unsaid: tuple[int, ...] = ()  # classes that no answer can mean: no label names them, nor does silence
    enough_steps: int | None = None  # after so many iterations a fit has settled, whatever the objective says
    earlier: Statistics | None = None  # of the earlier batches of a stream, which count too; its log normaliser is 0

    def expect(self, parameters: Parameters, trail: Trail | None = None) -> Statistics:
        """E-step: expected counts of answers and of the structure, those of earlier batches among them.

        `trail` is that of the fit it belongs to.
        """
        factors, structure = self.workers.factors(parameters.workers.log_weights), parameters.structure
        if not structure.takes_all:
            return self.add_up(self.engine.map(expect_block, self.placed, factors, structure))
        posterior, log_scale = self.weigh(factors)
        summary = structure.infer(posterior, self.graph, trail, self.engine.n_threads)
        counted = self.engine.map(count_block, self.placed, posterior, factors)
        return self.add_up(
            ((counts, None) for counts in counted), replace(summary, log_normaliser=summary.log_normaliser + log_scale)
        )

    def weigh(self, factors: AnyFactors) -> tuple[Floats, float]:
        """The evidence of all items, in order, and the logarithm of its scales."""
        return gather(self.engine.map(weigh_block, self.placed, factors), len(self.placed))

    def add_up(self, results: Iterable[tuple[RowCounts, Any]], summary: Any = None) -> Statistics:
        """The statistics of all blocks and of earlier batches, with counts of silence.

        Counts of rows, which are distinct in a block, come with the summary of each block, unless there is one of all.
        """
        from ..kernels.answers import add_to_rows

        total, is_first = np.zeros(self.workers.table_shape), True
        for (rows, counts), part in results:
            if is_first:  # small data are one block: nothing need be compiled for them
                total[rows] = counts
            else:
                add_to_rows(rows, counts, total)
            if part is not None:
                summary = part if summary is None else summary + part
            is_first = False
        statistics = Statistics(total, summary)
        if self.earlier is not None:
            statistics = Statistics(self.earlier.counts + total, self.earlier.summary + summary)
        if self.workers.silent:
            self.workers.count_silence(statistics.counts, statistics.summary.mass)
        return statistics

    def objective(self, parameters: Parameters, statistics: Statistics) -> float:
        """The objective, given what the E-step at these parameters returned."""
        workers, structure, prior = parameters
        value = statistics.summary.log_normaliser + workers.bound + structure.bound + prior.log_density
        if self.earlier is None:
            return value
        counts, summary = self.earlier
        factors = self.workers.factors(workers.log_weights)
        return value + factors.expect_log(counts, summary.mass) + structure.expect_log(summary)

    def maximise(self, statistics: Statistics, prior: Prior | None = None, learn: bool = False) -> Parameters:
        """M-step, with the prior that the problem has or a later one, which may be learned from these statistics."""
        from ..kernels.answers import SMALLEST

        prior, (counts, summary) = prior or self.prior, statistics
        if learn:
            prior = self.workers.learn_prior(counts, prior)
        if not self.weighted:
            # What EM drives to zero is zero, before it becomes too small to be multiplied. No answer is lost: without
            # weights it counts for at least 1 / K in some class.
            counts = np.where(np.abs(counts) < SMALLEST * self.n_responses, 0.0, counts)
        return Parameters(self.workers.update(counts, prior), self.structure.update(summary), prior)

    def infer(self, parameters: Parameters) -> Floats:
        """The posteriors that belong to parameters."""
        factors = self.workers.factors(parameters.workers.log_weights)
        return infer_posterior(self.engine, self.placed, factors, parameters.structure, self.graph)[0]

    def subtract(self, fit: Fit, part: Observations) -> Statistics:
        """The statistics of a fit without those of part of its items, as `earlier` of a problem about this part."""
        own = replace(self.about(part), earlier=None).expect(fit.parameters)
        counts = fit.statistics.counts - own.counts
        counts[counts < ROUNDING * fit.statistics.counts] = 0.0
        return Statistics(counts, replace(fit.statistics.summary - own.summary, log_normaliser=0.0))

    def about(self, observations: Observations) -> Problem:
        """The same problem with other answers of the same workers, such as part of them."""
        placed = self.engine.place(observations.lay_out(self.workers))
        return replace(self, placed=placed, n_responses=observations.responses.n_responses)


# The loop from a start, with the iterations that a model asks for.
Run: TypeAlias = Callable[[Problem, Parameters], Fit]


def place(
    observations: Observations,
    workers: WorkerModel,
    prior: Prior,
    structure: Structure,
    graph: Graph | None,
    engine: Engine,
) -> Problem:
    """The problem of observations, whose blocks are cut and put where they will be worked on."""
    r, gold, unvoted = observations.responses, observations.gold, observations.responses.vote_shares()
    meant = unvoted > 0
    meant[workers.class_of_label[workers.class_of_label >= 0]] = True
    names = workers.name, type(structure).__name__, prior.estimation, r.classes.tolist()
    joined = None if gold is None else gold.codes, observations.log_prior, r.amount, r.positions, structure
    return Problem(
        engine=engine,
        placed=engine.place(observations.lay_out(workers)),
        workers=workers,
        prior=prior,
        structure=structure,
        graph=graph,
        n_responses=r.n_responses,
        weighted=r.amount is not None,
        weight_scale=r.scale,
        unvoted=unvoted,
        # A field continues from one iteration to the next with more than its parameters.
        budget=None if graph is not None else r.budget,
        checkpoint_key=(*joined, zlib.crc32(repr(names).encode())),
        unsaid=tuple(np.flatnonzero(~meant).tolist()),
        enough_steps=workers.enough_steps,
    )


def expect_from_votes(problem: Problem) -> Statistics:
    """The statistics of vote shares instead of posteriors: where most fits begin."""
    shared = problem.workers, problem.workers.votes(), problem.unvoted, problem.structure
    return problem.add_up(problem.engine.map(vote_block, problem.placed, *shared))


def infer_posterior(
    engine: Engine,
    placed: Sequence[Placed],
    factors: Weighing,
    structure: StructureParameters,
    graph: Graph | None = None,
) -> tuple[Floats, float]:
    """The posteriors of all items, in order, and their log likelihood (or the data's part of its bound)."""
    if not structure.takes_all:
        return gather(engine.map(infer_block, placed, factors, structure), len(placed))
    posterior, log_scale = gather(engine.map(weigh_block, placed, factors), len(placed))
    return posterior, structure.infer(posterior, graph, None, engine.n_threads).log_normaliser + log_scale


def infer_left_out(
    problem: Problem, parameters: Parameters, statistics: Statistics, posterior: Floats, use_gold: bool = True
) -> Floats:
    """Posteriors of all items, each from counts without it; see `consilience.inference.workers.rows`.

    `posterior` are those that went into the counts. Without `use_gold`, items with a known label are judged as if it
    were not known.
    """
    counted = problem.workers.counted(statistics.counts, parameters.prior)
    structure = problem.structure.for_left_out(parameters.structure)
    without = LeftOut(counted, posterior, use_gold)
    left_out, _ = infer_posterior(problem.engine, problem.placed, without, structure, problem.graph)
    return keep_unsaid(left_out, posterior, problem.unsaid) if use_gold and problem.unsaid else left_out


def keep_unsaid(left_out: Floats, posterior: Floats, unsaid: tuple[int, ...]) -> Floats:
    """Posteriors that leave items out, in which classes that nobody said keep the probability of the fit.

    All that is known of these is the prior of their answers, which variational Bayes holds against them and counts
    without the item do not.
    """
    kept = left_out.copy()
    kept[:, unsaid] = 0.0
    total = kept.sum(axis=1, keepdims=True)
    rest = np.maximum(1.0 - posterior[:, unsaid].sum(axis=1, keepdims=True), 0.0)  # rounding may exceed 1
    kept *= np.divide(rest, total, out=np.zeros_like(total), where=total > 0)
    kept[:, unsaid] = posterior[:, unsaid]
    # Where nothing is left of the classes that somebody said, the posterior of the fit is all there is.
    kept = np.where(total > 0, kept, posterior)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def decode_labels(
    engine: Engine, placed: Sequence[Placed], factors: Weighing, structure: StructureParameters
) -> NDArray[np.int64]:
    """The most probable joint labelling, as class indices of all items in order."""
    return np.concatenate(list(engine.map(decode_block, placed, factors, structure)))


# What is done with one block, where it lives. Sums are taken in block order, whoever computed what is added: that is
# why results are the same everywhere.


def weigh_block(block: Block, factors: Weighing) -> tuple[Floats, float]:
    """Evidence of one block up to a factor per item, and the sum of the logarithms of these."""
    return factors.weigh(block)


def expect_block(block: Block, factors: AnyFactors, structure: StructureParameters) -> tuple[RowCounts, Summary]:
    """E-step of one block."""
    evidence, log_scale = factors.weigh(block)
    summary = structure.infer_block(block, evidence)  # evidence is the posterior from here on
    return factors.count_rows(block, evidence), replace(summary, log_normaliser=summary.log_normaliser + log_scale)


def count_block(block: Block, posterior: Floats, factors: AnyFactors) -> RowCounts:
    """Expected counts of one block, from the posteriors of all items."""
    return factors.count_rows(block, posterior[block.first_item : block.first_item + block.n_items])


def infer_block(block: Block, factors: Weighing, structure: StructureParameters) -> tuple[Floats, float]:
    """Posteriors of one block, and their log normaliser."""
    evidence, log_scale = factors.weigh(block)
    summary = structure.infer_block(block, evidence)
    return evidence, summary.log_normaliser + log_scale


def decode_block(block: Block, factors: Weighing, structure: StructureParameters) -> NDArray[np.int64]:
    """Most probable joint labelling of one block."""
    return structure.decode_block(block, factors.weigh(block)[0])


def vote_block(
    block: Block, workers: WorkerModel, votes: NDArray[np.int64], unvoted: Floats, structure: Structure
) -> tuple[RowCounts, Summary]:
    """Statistics of one block's vote shares."""
    shares = vote(block, votes, unvoted)
    return workers.count(block, shares), cast(Summary, structure.summarise(block, shares))


def gather(results: Iterable[tuple[Floats, float]], n_blocks: int) -> tuple[Floats, float]:
    """The rows of all blocks in one array, and the sum of their numbers.

    Blocks have about the same number of rows, so there is room for all of them from the beginning: no block is in
    memory twice. Room that is not used takes none.
    """
    rows, n_rows, total = np.empty((0, 0)), 0, 0.0
    if n_blocks == 1:
        ((rows, total),) = results
        return rows, float(total)
    for part, number in results:
        if not n_rows:
            rows = allocate((len(part) * (n_blocks + n_blocks // 2), part.shape[1]))
        elif len(rows) < n_rows + len(part):
            before, rows = rows, allocate((2 * (n_rows + len(part)), part.shape[1]))
            rows[:n_rows] = before[:n_rows]
        rows[n_rows : n_rows + len(part)] = part
        n_rows, total = n_rows + len(part), total + number
    release_mapped()
    return rows[:n_rows], float(total)


# What was learned of the workers and of all items together: the part of a result that other answers are judged by.


class Names(NamedTuple):
    """Who answered, what was said, and what can be true."""

    workers: Values
    labels: Values
    classes: Values
    normalised: bool  # whether labels are in their normal form
    positions: tuple[float, ...] | None  # of ordered classes, increasing


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a result says of workers and structure, made of `Parameters` and `Statistics`.

    Attributes
    ----------
    worker_model_name : str
        The worker model, by name.
    confusion : array (M, K, A)
        How each worker answers, by class; of one-coin workers three probabilities, see `matrices`.
    counts : array (M, L, K)
        Expected counts of answers; of one-coin workers three numbers.
    log_weights : array (R, L, K)
        What the E-step uses.
    crowd : array (1, L, K)
        How the crowd answers on the whole.
    weight_scale : float
        What weights of answers are multiplied by.
    further : dict
        Arrays that only this worker model has, which are attributes of a fitted model too.
    structure : StructureParameters
        How labels hang together.
    cells : Cells, optional
        The cells of `counts` that are not 0, of one-coin workers.
    """

    worker_model_name: str
    confusion: Floats
    counts: Floats
    log_weights: Floats
    crowd: Floats
    weight_scale: float
    further: dict[str, Floats]
    structure: StructureParameters
    cells: Cells | None = None

    @classmethod
    def of(
        cls, problem: Problem, parameters: Parameters, statistics: Statistics, cells: Cells | None = None
    ) -> Estimates:
        """The estimates of a fit."""
        workers, counts = problem.workers, statistics.counts
        confusion = workers.plain_mean(parameters.workers, counts, parameters.prior)
        return cls(
            workers.name,
            np.ascontiguousarray(confusion.transpose(0, 2, 1)),
            workers.plain_counts(counts),
            parameters.workers.log_weights,
            workers.crowd(counts, parameters.prior),
            problem.weight_scale,
            workers.further_arrays(parameters.workers, counts),
            parameters.structure,
            cells,
        )

    @cached_property
    def matrices(self) -> Floats:
        """The confusion matrices (M, K, A), which may be large."""
        n_classes, n_labels = len(self.structure.mean), len(self.further.get("_class_of_label", ()))
        n_entries = len(self.confusion) * n_labels * n_classes
        if not are_allowed(2 * NUMBER * n_entries, "entries", n_entries):
            raise InputError(
                f"The confusion matrices of {plural(len(self.confusion), 'worker')} x {n_labels:,} labels x "
                f"{n_classes:,} classes would be too large.",
                "The worker report has the accuracy of each worker, which is all that was learned.",
            )
        return self.worker_model.matrices(self.confusion, self.further, n_classes)

    @property
    def crowd_matrix(self) -> Floats:
        """How the crowd answers on the whole, (K, A)."""
        crowd = self.crowd.transpose(0, 2, 1)
        return np.asarray(self.worker_model.matrices(crowd, self.further, len(self.structure.mean))[0])

    @property
    def worker_model(self) -> type[WorkerModel]:
        """The worker model."""
        return WORKERS[self.worker_model_name]

    def reported(self) -> Floats:
        """The logarithms of the estimates that are reported, (R, L, K)."""
        return log_of(self.worker_model.reported(self.confusion, self.further))
