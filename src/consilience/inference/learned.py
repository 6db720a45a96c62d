"""What was learned of the workers and of all items together: the part of a result that other answers are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import Values
from ..kernels import Floats
from . import Distributions
from .em import Parameters, Problem
from .structures import Statistics, StructureParameters
from .workers import WORKERS
from .workers.base import WorkerModel


class Names(NamedTuple):
    """Who answered, what was said, and what can be true."""

    workers: Values
    labels: Values
    classes: Values
    normalised: bool  # whether labels are in their normal form
    positions: tuple[float, ...] | None  # of ordered classes, increasing

    @classmethod
    def of(cls, crowd: Answers) -> Names:
        """The names in a crowd."""
        return cls(crowd.workers, crowd.labels, crowd.classes, crowd.normalised, crowd.positions)


@dataclass(frozen=True, eq=False)
class Learned:
    """Estimates of workers and structure.

    Attributes
    ----------
    kind : str
        The worker model, by name.
    confusion : array (M, K, A)
        How each worker answers, by class.
    counts : array (M, L, K)
        Expected counts of answers.
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
    """

    kind: str
    confusion: Floats
    counts: Floats
    log_weights: Floats
    crowd: Floats
    weight_scale: float
    further: dict[str, Floats]
    structure: StructureParameters

    @classmethod
    def of(cls, problem: Problem, parameters: Parameters, statistics: Statistics) -> Learned:
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
        )

    @property
    def worker_model(self) -> type[WorkerModel]:
        """The worker model."""
        return WORKERS[self.kind]

    def reported(self) -> Distributions:
        """The estimates that are reported, as distributions."""
        return Distributions.known(self.worker_model.reported(self.confusion, self.further))


def as_used(log_weights: Floats) -> Distributions:
    """Weights as the E-step takes them, in `fit` for the last time and in `predict_proba`: so both agree."""
    return Distributions(np.exp(log_weights), log_weights, log_weights, 0.0)


def infer_as_used(problem: Problem, learned: Parameters) -> Floats:
    """The posteriors that belong to the estimates."""
    return problem.infer(learned._replace(workers=as_used(learned.workers.log_weights)))[0]


class CouplingScore(NamedTuple):
    """How well hidden answers were predicted with one coupling."""

    coupling: float
    score: float  # mean log probability
    error: float  # its standard error


def explain_choice(chosen: float, scores: list[CouplingScore], words: str, note: str = "", unit: float = 1.0) -> str:
    """Say in words which coupling was chosen, and why; all couplings times a unit, which a note may explain."""
    best = max(scores, key=lambda entry: entry.score)
    tried = ", ".join(f"{entry.coupling * unit:.3g}: {entry.score:.4f}" for entry in scores)
    return (
        f"Coupling {chosen * unit:.3g}{note}: {words}. Hidden answers were predicted best at "
        f"{best.coupling * unit:.3g} (mean log probability by coupling: {tried}); "
        "the smallest coupling within one standard error was taken."
    )
