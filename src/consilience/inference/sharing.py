r"""Several questions to the same workers are fitted together, with one prior of the workers; see `skills`.

Questions may have other classes, or a scale. So levels are pairs of a skill and a strength. The skill of a
type is the log odds of a right answer relative to chance,

.. math:: z = \log \frac{(n - 1) a}{1 - a}

with a its mean probability of the right one of n labels. In a question of easiness g, the types of a level are those of
its strength whose skill is nearest to g z. Somebody who answers by chance, z = 0, does so in all questions, easy or
hard. Easiness is found beforehand: by the mean skill of workers in each question on its own, relative to the geometric
mean over questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np

from ..answers.columns import add_values, lookup, to_column
from ..answers.graph import Graph
from ..engines import Engine
from ..kernels import Floats, Integers
from .em import Parameters, Problem, run_em
from .estimator import LabelEstimator, LatentEstimator, renew
from .observations import Observations
from .skills import RARE, Skills, expect_types, learn_skills
from .structures import Statistics, Trail
from .workers import WORKERS
from .workers.types import TYPE_STRENGTHS, TypedWorkers, WorkerTypes, give_shares, types_of

# Worker models that share skills.
SHARING_WORKERS = [name for name, model in WORKERS.items() if model.shares_skills]
# Skills of levels: those of accuracies of .3, .45, .6, .75, .85 and .95 where there are two answers.
SKILLS = np.log(np.array([0.3, 0.45, 0.6, 0.75, 0.85, 0.95]) / (1 - np.array([0.3, 0.45, 0.6, 0.75, 0.85, 0.95])))
N_LEVELS = len(SKILLS) * len(TYPE_STRENGTHS)
# Steps of EM for the shares of levels in each M-step, and to find the easiness of a question.
LEVEL_STEPS, EASINESS_ROUNDS = 10, 50
# No question is harder than that: the least mean skill.
LEAST_SKILL = 0.3


def match_levels(skills: Floats, easiness: float) -> Floats:
    """Equal shares of the types of each level, (S, T), for types with these skills, (T,), which are listed by strength.

    A level whose skill is nearest to that of no type has the types of the nearest one that has some.
    """
    skill = np.abs(skills[:, None] / easiness - SKILLS).argmin(axis=1)
    present = np.unique(skill)
    nearest = present[np.abs(np.arange(len(SKILLS))[:, None] - present).argmin(axis=1)]
    strength = np.repeat(np.arange(len(TYPE_STRENGTHS)), len(skills) // len(TYPE_STRENGTHS))
    same = (nearest[:, None, None] == skill) & (np.arange(len(TYPE_STRENGTHS))[:, None] == strength)
    chosen = same.reshape(N_LEVELS, len(skills)).astype(np.float64)
    return np.asarray(chosen / chosen.sum(axis=1, keepdims=True))


def find_easiness(evidence: Sequence[Floats], skills: Sequence[Floats]) -> Floats:
    """The easiness of each question, from the skills of workers in each question on its own."""
    means = np.empty(len(evidence))
    for q, e in enumerate(evidence):
        shares = np.full(e.shape[1], 1 / e.shape[1])
        for _ in range(EASINESS_ROUNDS):
            of_types = e * shares
            n_workers = np.sum(of_types / of_types.sum(axis=1, keepdims=True), axis=0) + RARE
            shares = n_workers / n_workers.sum()
        means[q] = max(LEAST_SKILL, float(shares @ skills[q]))
    return np.asarray(means / np.exp(np.log(means).mean()))


class JointParameters(NamedTuple):
    """Everything that is learned of several questions."""

    parts: tuple[Parameters, ...]
    prior: Skills
    log_share: float  # J - sum_q sum_m log sum_u p e, and the log densities: what sharing adds to the bounds


@dataclass(frozen=True)
class JointProblem:
    """Several questions, as the loop solves them.

    Attributes
    ----------
    problems : tuple of Problem
        The questions. Their workers are of types.
    worker : tuple of array
        For each worker of each question the index among all workers.
    n_workers, n_responses : int
        How many workers and answers there are in all.
    """

    problems: tuple[Problem, ...]
    worker: tuple[Integers, ...]
    n_workers: int
    n_responses: int
    enough_steps: ClassVar[None] = None

    def compare(self, statistics: Sequence[Statistics]) -> list[Floats]:
        """The evidence for types, (M, T) of each question, up to a factor per worker."""
        evidence = []
        for problem, (counts, _), worker in zip(self.problems, statistics, self.worker, strict=True):
            own = cast(TypedWorkers, problem.workers).compare_types(counts, types_of(problem.prior))
            every = np.ones((self.n_workers, own.shape[1]))
            every[worker] = own
            evidence.append(every)
        return evidence

    def expect(self, parameters: JointParameters, trail: Trail) -> tuple[Statistics, ...]:  # noqa: ARG002
        """E-step of each question, which does not start from where the last inference ended."""
        pairs = zip(self.problems, parameters.parts, strict=True)
        return tuple(problem.expect(part, Trail()) for problem, part in pairs)

    def objective(self, parameters: JointParameters, statistics: tuple[Statistics, ...]) -> float:
        """The objective, given what the E-step at these parameters returned."""
        triples = zip(self.problems, parameters.parts, statistics, strict=True)
        return parameters.log_share + sum(problem.objective(part, counted) for problem, part, counted in triples)

    def maximise(self, statistics: tuple[Statistics, ...], skills: Skills, learn: bool = False) -> JointParameters:
        """M-step: the shares of levels, and then the matrices of each question, given what others say of workers."""
        evidence = self.compare(statistics)
        for _ in range(LEVEL_STEPS if learn else 0):
            skills = learn_skills(evidence, skills)
        # Factors of the evidence cancel: those in J are those in the evidence of questions.
        shares, log_share = expect_types(evidence, skills)
        log_share += skills.log_density
        parts = []
        for q, (problem, worker) in enumerate(zip(self.problems, self.worker, strict=True)):
            own = shares[q][worker]
            log_share -= float(np.log((evidence[q][worker] * own).sum(axis=1)).sum())
            prior = give_shares(problem.prior, np.log(own))
            parts.append(problem.maximise(statistics[q], prior))
        return JointParameters(tuple(parts), skills, log_share)


def can_share(model: LabelEstimator) -> bool:
    """Tell whether each worker of a model is of one type, so that questions can be fitted together."""
    return isinstance(model, LatentEstimator) and model.workers in SHARING_WORKERS and model.max_iter > 0


def fit_together(
    models: Sequence[LatentEstimator], observed: Sequence[Observations], graphs: Sequence[Graph | None], engine: Engine
) -> tuple[list[WorkerTypes], float, Floats, Floats]:
    """Fit several questions together, each with its model, whose workers are of types; see `can_share`.

    It starts from fits of each question on its own. Whatever the models say, estimation is by variational Bayes.

    Returns
    -------
    types : list of WorkerTypes
        The types of the workers of each question, by the others.
    own : float
        The probability that a question calls for a skill of its own.
    easiness : array
        Of each question.
    trace : array
        The objective of all questions together, before each iteration and at the end. It never falls.
    """
    problems, first_statistics, every = [], [], observed[0].responses.workers
    for model, observations, graph in zip(models, observed, graphs, strict=True):
        alone = renew(model, estimation="variational")
        plan = alone._plan(replace(observations, worker_types=None), graph, engine)
        problems.append(plan.problem)
        fits = {name: alone._run(plan.problem, start) for name, start in plan.starts.items()}
        first_statistics.append(alone._choose(plan.problem, fits).statistics)
        every, _ = add_values(every, observations.responses.workers)
    place = tuple(lookup(every, to_column(observations.responses.workers)) for observations in observed)
    n_responses = sum(each.n_responses for each in problems)
    joint, statistics = JointProblem(tuple(problems), place, len(every), n_responses), tuple(first_statistics)
    evidence = joint.compare(statistics)
    skills = [cast(TypedWorkers, each.workers).find_skills(types_of(each.prior)) for each in problems]
    easiness = find_easiness(evidence, skills)
    types = tuple(match_levels(each, float(g)) for each, g in zip(skills, easiness, strict=True))
    start = joint.maximise(statistics, Skills(np.full(N_LEVELS, 1 / N_LEVELS), 0.5, types))
    max_iter, tol = max(each.max_iter for each in models), min(each.tol for each in models)
    fit = run_em(joint, start, max_iter, tol)
    parameters = cast(JointParameters, fit.parameters)
    worker_types = [
        WorkerTypes(observations.responses.workers, types_of(part.prior).log_shares)
        for observations, part in zip(observed, parameters.parts, strict=True)
    ]
    return worker_types, parameters.prior.own, easiness, fit.trace
