"""The one EM loop, for any structure, worker model and engine.

Each iteration is E-step, then M-step; a final E-step follows the loop, so that posteriors always belong to the
parameters that are reported. The objective at parameters theta is

    sum_n log Z_n(theta) + bound(theta)

the penalised log likelihood for EM, the evidence lower bound for variational Bayes (see `consilience.distributions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block
from ..data.responses import Responses
from ..distributions import Estimate
from ..engines.base import Engine
from ..kernels.types import Floats
from ..workers.rows import RowCounts, RowTable, count, vote, weigh


class Summary(Protocol):
    """A structure's expected counts: a NamedTuple whose fields add."""

    @property
    def log_normaliser(self) -> float:
        """Sum over items of log Z."""

    @property
    def mass(self) -> Floats:
        """Expected number of items of each class."""

    def __iter__(self) -> Iterator[Any]: ...


class StructureParameters(Protocol):
    """Parameters of a structure.

    They infer posteriors in place: of one block, `infer(block, evidence)`; or, where `whole` is true, of all items at
    once, `infer_all(evidence, final)`.
    """

    @property
    def mean(self) -> Floats:
        """The class prior."""

    @property
    def bound(self) -> float:
        """What the parameters add to the objective."""

    def point(self) -> Any:
        """Return the same with what is reported in the E-step: a proper likelihood."""


class Structure(Protocol):
    """A structure: it turns its summary into parameters."""

    def update(self, summary: Any) -> StructureParameters:
        """Return the parameters that expected counts call for."""

    def summarise(self, block: Block, posterior: Floats) -> Summary:
        """Return the summary of posteriors that came from elsewhere, such as vote shares."""


class Workers(Protocol):
    """A worker model: it says which row of a table an answer is, and estimates the rows."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def encode(self, responses: Responses) -> NDArray[np.signedinteger[Any]]:
        """Return the row of each answer."""

    def votes(self) -> Floats:
        """Return which class each row votes for."""

    def update(self, counts: Floats, mass: Floats) -> Estimate:
        """Return the rows that expected counts of rows and of classes call for."""

    def table(self, found: Estimate, weighted: bool) -> RowTable:
        """Return the factors of evidence for each row."""

    def given(self, confusion: Floats) -> Estimate:
        """Return known matrices, of shape (M, K, L), as an estimate."""

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M, L, K)."""

    def plain_mean(self, found: Estimate, counts: Floats) -> Floats:
        """Return the matrices to report, as (M, L, K)."""

    def crowd(self, counts: Floats, mass: Floats) -> Floats:
        """Return how the workers answer on the whole, (1, L, K)."""

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return the matrices of a fitted crowd for these workers and labels."""


@dataclass(frozen=True)
class Problem:
    """What is to be fitted, and where the data are."""

    engine: Engine
    placed: Sequence[Any]
    workers: Workers
    structure: Structure
    n_responses: int
    weighted: bool
    unvoted: Floats  # (K,): what an item without votes is taken for at first


class Parameters(NamedTuple):
    """Everything that is learned."""

    workers: Estimate
    structure: StructureParameters

    def objective(self, log_normaliser: float) -> float:
        """Return the objective, given the E-step's sum of log Z."""
        return log_normaliser + self.workers.bound + self.structure.bound


class Statistics(NamedTuple):
    """Everything one pass over the data adds up to."""

    counts: Floats  # (n_rows, K)
    summary: Summary


class Progress(NamedTuple):
    """What a callback is told after each iteration."""

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

    @property
    def objective(self) -> float:
        """The objective at the final parameters."""
        return float(self.trace[-1])


def run_em(
    problem: Problem,
    start: Parameters,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    """Iterate E- and M-steps from `start` until the objective gains less than `tol` per answer.

    With `tol=0` exactly `max_iter` iterations are made; with `max_iter=0` none, and the start is the result.
    """
    forget(problem.structure)
    parameters, trace = start, []
    for iteration in range(max_iter):
        statistics = expect(problem, parameters)
        trace.append(parameters.objective(statistics.summary.log_normaliser))
        gain = (trace[-1] - trace[-2]) / max(problem.n_responses, 1) if iteration else np.inf
        if callback is not None:
            callback(Progress(iteration + 1, max_iter, trace[-1], float(gain)))
        # The gain may be negative where the objective is only a guide: that is no reason to stop.
        if tol > 0 and abs(gain) < tol:
            return Fit(parameters, statistics, np.array(trace), iteration, converged=True)
        parameters = maximise(problem, statistics)
    statistics = expect(problem, parameters)
    trace.append(parameters.objective(statistics.summary.log_normaliser))
    gain = (trace[-1] - trace[-2]) / max(problem.n_responses, 1) if max_iter else np.inf
    return Fit(parameters, statistics, np.array(trace), max_iter, bool(tol > 0 and abs(gain) < tol))


def expect(problem: Problem, parameters: Parameters) -> Statistics:
    """E-step: expected counts of answers and of the structure, summed over blocks in their order."""
    table = problem.workers.table(parameters.workers, problem.weighted)
    if is_whole(parameters.structure):
        posterior, log_scale = gather_evidence(problem.engine, problem.placed, table)
        structure: Any = parameters.structure
        summary = structure.infer_all(posterior)
        counts = problem.engine.map(count_block, problem.placed, posterior)
        return add_up(problem, counts, summary._replace(log_normaliser=summary.log_normaliser + log_scale))
    return add_up(problem, problem.engine.map(expect_block, problem.placed, table, parameters.structure))


def forget(structure: Any) -> None:
    """Make a structure that goes on from its last inference start anew."""
    if hasattr(structure, "forget"):
        structure.forget()


def is_whole(structure: Any) -> bool:
    """Tell whether a structure infers all items at once, as a graph's does, and not block by block."""
    return bool(getattr(structure, "whole", False))


def gather_evidence(engine: Engine, placed: Sequence[Any], table: RowTable) -> tuple[Floats, float]:
    """Return the evidence of all items, in order, and the logarithm of its scales."""
    results = list(engine.map(weigh, placed, table))
    return np.concatenate([evidence for evidence, _ in results]), float(sum(scale for _, scale in results))


def expect_from_votes(problem: Problem) -> Statistics:
    """Return the statistics of vote shares instead of posteriors: where most fits begin."""
    votes, unvoted = problem.workers.votes(), problem.unvoted
    structure: Any = problem.structure
    if is_whole(structure):
        structure = structure.stripped()  # the graph stays on the driver's machine
    return add_up(problem, problem.engine.map(vote_block, problem.placed, votes, unvoted, structure))


def maximise(problem: Problem, statistics: Statistics) -> Parameters:
    """M-step."""
    from ..kernels.answers import SMALLEST

    counts = statistics.counts
    if not problem.weighted:
        # What EM drives to zero is zero, before it becomes too small to be multiplied. No answer is lost: without
        # weights it counts for at least 1 / K in some class.
        counts = np.where(counts < SMALLEST * problem.n_responses, 0.0, counts)
    summary = statistics.summary
    return Parameters(problem.workers.update(counts, summary.mass), problem.structure.update(summary))


def decode_labels(engine: Engine, placed: Sequence[Any], table: RowTable, structure: Any) -> NDArray[np.int64]:
    """Return the most probable joint labelling, as class indices of all items in order."""
    return np.concatenate(list(engine.map(decode_block, placed, table, structure)))


def infer_posterior(engine: Engine, placed: Sequence[Any], table: RowTable, structure: Any) -> tuple[Floats, float]:
    """Return the posteriors of all items, in order, and their log likelihood (or its bound's data part)."""
    if is_whole(structure):
        posterior, log_scale = gather_evidence(engine, placed, table)
        summary = structure.infer_all(posterior, final=True)
        return posterior, summary.log_normaliser + log_scale
    results = list(engine.map(infer_block, placed, table, structure))
    return np.concatenate([posterior for posterior, _ in results]), float(sum(value for _, value in results))


def add_up(problem: Problem, results: Iterator[tuple[RowCounts, Any]], whole: Any = None) -> Statistics:
    """Sum block results in block order; `whole` is the structure's summary if that is not a sum over blocks."""
    from ..kernels.answers import add_to_rows

    counts = np.zeros((problem.workers.n_rows, problem.workers.n_classes))
    total: Any = None
    for block_counts, summary in results:
        add_to_rows(block_counts.rows, block_counts.counts, counts)
        if whole is None:
            total = summary if total is None else type(total)(*(a + b for a, b in zip(total, summary, strict=True)))
    return Statistics(counts, total if whole is None else whole)


def expect_block(block: Block, table: RowTable, structure: Any) -> tuple[RowCounts, Summary]:
    """E-step of one block."""
    evidence, log_scale = weigh(block, table)
    summary: Any = structure.infer(block, evidence)  # evidence is the posterior from here on
    return count(block, evidence), summary._replace(log_normaliser=summary.log_normaliser + log_scale)


def count_block(block: Block, posterior: Floats) -> tuple[RowCounts, None]:
    """Expected counts of one block, from the posteriors of all items."""
    return count(block, posterior[block.first_item : block.first_item + block.n_items]), None


def infer_block(block: Block, table: RowTable, structure: Any) -> tuple[Floats, float]:
    """Posteriors of one block, and their log normaliser."""
    evidence, log_scale = weigh(block, table)
    summary = structure.infer(block, evidence)
    return evidence, summary.log_normaliser + log_scale


def decode_block(block: Block, table: RowTable, structure: Any) -> NDArray[np.int64]:
    """Most probable joint labelling of one block."""
    evidence, _ = weigh(block, table)
    path: NDArray[np.int64] = structure.decode(block, evidence)
    return path


def vote_block(block: Block, votes: Floats, prior: Floats, structure: Structure) -> tuple[RowCounts, Summary]:
    """Statistics of one block's vote shares."""
    shares = vote(block, votes, prior)
    return count(block, shares), structure.summarise(block, shares)
