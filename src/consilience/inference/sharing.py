r"""Several questions to the same workers: what a worker's answers to one question say of those to another.

Workers of each question are of types (see `consilience.inference.workers.types`). Here types have levels: a level is a
skill and a strength. The skill of a type is the log odds of a right answer, relative to chance,

.. math:: z = \log \frac{(n - 1) a}{1 - a}

with a its mean probability of the right answer over classes, of n labels. A worker is of level t with probability
:math:`v_t`. In a question of easiness g, the types of level t are those whose skill is nearest to :math:`g z_t`, of the
same strength. Somebody who answers by chance, z = 0, does so in all questions, easy or hard.

In each question a worker has the level t that they have in all with probability 1 - o, and with probability o a level
of their own, drawn from the shares :math:`s_{qt}` of the question. Within a level, types have shares :math:`h_{qu}`.
With :math:`e_{mqu}` the evidence that the expected counts of worker m in question q are for type u,

.. math:: E_{mqt} = \sum_{u \in t} h_{qu} e_{mqu}, \quad
          X_{mqt} = (1 - o) E_{mqt} + o \sum_r s_{qr} E_{mqr}, \quad
          J = \sum_m \log \sum_t v_t \prod_q X_{mqt}

o is learned with the density o (1 - o)^(1/2), and all shares with the power 0.02 of each, as those of types are.
Where skills do not carry over, o goes to 1, the product no longer depends on t, and the questions are separate.

**The loop** is that of any fit. The E-step is done for each question on its own. The M-step does a few steps of EM for
v, o, s and h. Given these and the other questions, worker m is of type u in question q with the probability

.. math:: p_{mqu} = h_{qu} \Big[ (1 - o) \sum_{t \ni u} P(t \mid \text{other questions}) + o s_{q t(u)} \Big]

which takes the place of the shares of types, :math:`w_u`, in the M-step of the question. The objective is the sum of
the bounds of all questions, in which J takes the place of the evidence of their types,

.. math:: \sum_q \Big( \text{bound}_q - \sum_m \log \sum_u p_{mqu} e_{mqu} \Big) + J + \text{log densities}

It is the variational bound of all questions together, and never falls: the distribution of matrices that the M-step
finds is the best one given the counts of all questions, and so is the E-step given those.

The easiness of questions is found once, before: by the mean skill of workers in each question on its own, relative to
the geometric mean over questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_column
from ..answers.graph import Graph
from ..answers.vocabulary import add_values, lookup
from ..engines.base import Engine
from ..kernels import Floats, Integers, freeze
from .em import Parameters, Problem, iterate, maximise
from .recipes import LatentRecipe, Recipe
from .sources import Source
from .structures import Statistics, Trail
from .workers.nominal import NominalWorkers
from .workers.ordinal import OrdinalWorkers
from .workers.types import RARE, STRENGTHS, Skills, TypedWorkers, give_shares, types_of

# Worker models that share skills.
KINDS = (NominalWorkers.name, OrdinalWorkers.name)
# Skills of levels: those of accuracies of .3, .45, .6, .75, .85 and .95 where there are two answers.
SKILLS = np.log(np.array([0.3, 0.45, 0.6, 0.75, 0.85, 0.95]) / (1 - np.array([0.3, 0.45, 0.6, 0.75, 0.85, 0.95])))
N_LEVELS = len(SKILLS) * len(STRENGTHS)
# The density of o has these powers of o and 1 - o.
OWN, SAME = 1.0, 0.5
# Steps of EM for the shares of levels in each M-step.
STEPS = 10
# No question is harder than that: the least mean skill.
LEAST_SKILL = 0.3
# How often the shares of types are learned to find the easiness of a question.
ROUNDS = 50
TINY = np.finfo(np.float64).tiny


class Levels(NamedTuple):
    """The levels of the types of a question.

    Attributes
    ----------
    easiness : float
        What skills are multiplied with in this question.
    of_type : array (T, S)
        Of which level each type is, 1 or 0.
    stands_for : array (S, S)
        For each level that of the types that stand for it, 1 or 0: itself, or the nearest one that has any.
    """

    easiness: float
    of_type: Floats
    stands_for: Floats

    @classmethod
    def of(cls, skills: Floats, easiness: float) -> Levels:
        """Return the levels of types with these skills, (T,), which are listed by strength."""
        skill = np.abs(skills[:, None] / easiness - SKILLS).argmin(axis=1)
        strength = np.repeat(np.arange(len(STRENGTHS)), len(skills) // len(STRENGTHS))
        present = np.unique(skill)
        nearest = present[np.abs(np.arange(len(SKILLS))[:, None] - present).argmin(axis=1)]
        level = (nearest[:, None] * len(STRENGTHS) + np.arange(len(STRENGTHS))).ravel()
        return cls(
            easiness, freeze(np.eye(N_LEVELS)[skill * len(STRENGTHS) + strength]), freeze(np.eye(N_LEVELS)[level])
        )

    @property
    def even(self) -> Floats:
        """Equal shares of the types of each level, (T,)."""
        return np.asarray(1.0 / (self.of_type @ self.of_type.sum(axis=0)))

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which levels have types, (S,)."""
        return np.asarray(self.of_type.any(axis=0))


class Sharing(NamedTuple):
    """What is learned of all questions together; see the head of this module.

    Attributes
    ----------
    levels : tuple of Levels
        Of each question.
    shares : array (S,)
        Of levels, v.
    own : float
        The probability that a question calls for a skill of its own, o.
    own_shares : tuple of array (S,)
        Of levels in each question, s.
    within : tuple of array (T,)
        Of the types within their level, h.
    """

    levels: tuple[Levels, ...]
    shares: Floats
    own: float
    own_shares: tuple[Floats, ...]
    within: tuple[Floats, ...]

    @property
    def learns(self) -> bool:
        """Whether it is learned at all."""
        return True

    @classmethod
    def start(cls, levels: tuple[Levels, ...]) -> Sharing:
        """Return equal shares."""
        own_shares = tuple(each.present / each.present.sum() for each in levels)
        return cls(levels, np.full(N_LEVELS, 1 / N_LEVELS), 0.5, own_shares, tuple(each.even for each in levels))

    def is_due(self, iteration: int) -> bool:  # noqa: ARG002
        """Whether it is learned in this iteration: in all of them."""
        return True

    @property
    def log_density(self) -> float:
        """The logarithm of the density of what is learned."""
        found = OWN * np.log(self.own) + SAME * np.log(1 - self.own) + RARE * np.log(self.shares).sum()
        for own_shares, within in zip(self.own_shares, self.within, strict=True):
            found += RARE * (np.log(own_shares[own_shares > 0]).sum() + np.log(within).sum())
        return float(found)


class Weighed(NamedTuple):
    """What the evidence of all questions says of levels, at some shares."""

    of_levels: tuple[Floats, ...]  # (M, S) of each question, E
    by_own: tuple[Floats, ...]  # (M, 1) of each question, the sum over r of s E
    mixed: tuple[Floats, ...]  # (M, S) of each question, X
    log_scores: Floats  # (M, S), log v + sum of log X

    @classmethod
    def of(cls, evidence: Sequence[Floats], sharing: Sharing) -> Weighed:
        """Return what evidence, (M, T) of each question, says."""
        of_levels, by_own, mixed = [], [], []
        for q, (e, levels) in enumerate(zip(evidence, sharing.levels, strict=True)):
            of_levels.append(np.maximum(e @ (levels.of_type * sharing.within[q][:, None]), TINY))
            by_own.append((of_levels[q] @ sharing.own_shares[q])[:, None])
            mixed.append((1 - sharing.own) * of_levels[q] @ levels.stands_for.T + sharing.own * by_own[q])
        log_scores = np.log(sharing.shares) + sum(np.log(each) for each in mixed)
        return cls(tuple(of_levels), tuple(by_own), tuple(mixed), np.asarray(log_scores))

    @property
    def log_evidence(self) -> float:
        """J, but for the factors of the evidence."""
        return float(np.log(normalise(self.log_scores)[1]).sum() + self.log_scores.max(axis=1).sum())


def normalise(log_scores: Floats) -> tuple[Floats, Floats]:
    """Return probabilities (M, S), and the sums (M, 1) of scores whose largest one is 1."""
    scores = np.exp(log_scores - log_scores.max(axis=1, keepdims=True))
    total = scores.sum(axis=1, keepdims=True)
    return np.asarray(scores / total), np.asarray(total)


def learn_sharing(evidence: Sequence[Floats], sharing: Sharing) -> Sharing:
    """Return shares under which the evidence is higher: one step of EM."""
    weighed = Weighed.of(evidence, sharing)
    level = normalise(weighed.log_scores)[0]
    n_own, own_shares, within = 0.0, [], []
    for q, (e, levels) in enumerate(zip(evidence, sharing.levels, strict=True)):
        own = level * (sharing.own * weighed.by_own[q] / weighed.mixed[q])
        share = sharing.own_shares[q] * weighed.of_levels[q] / weighed.by_own[q]
        n_levels = own.sum(axis=1, keepdims=True) * share  # (M, S): workers of each level by their own skill
        n_own += float(n_levels.sum())
        n_all = n_levels + (level - own) @ levels.stands_for
        n_types = np.sum(e * (n_all / weighed.of_levels[q] @ levels.of_type.T), axis=0) * sharing.within[q] + RARE
        within.append(n_types / (levels.of_type @ (n_types @ levels.of_type)))
        n_each = np.where(levels.present, n_levels.sum(axis=0) + RARE, 0.0)
        own_shares.append(n_each / n_each.sum())
    n_workers = level.sum(axis=0) + RARE
    o = (n_own + OWN) / (len(level) * len(evidence) + OWN + SAME)
    return Sharing(sharing.levels, n_workers / n_workers.sum(), o, tuple(own_shares), tuple(within))


def expect_types(evidence: Sequence[Floats], sharing: Sharing) -> list[Floats]:
    """Return the probabilities of types, (M, T), of each question, given the other questions: p."""
    weighed, found = Weighed.of(evidence, sharing), []
    for q, levels in enumerate(sharing.levels):
        level = normalise(weighed.log_scores - np.log(weighed.mixed[q]))[0]
        of_levels = (1 - sharing.own) * level @ levels.stands_for + sharing.own * sharing.own_shares[q]
        found.append(np.maximum(of_levels @ levels.of_type.T * sharing.within[q], TINY))
    return found


def find_easiness(evidence: Sequence[Floats], skills: Sequence[Floats]) -> Floats:
    """Return the easiness of each question, from the skills of workers in each question on its own."""
    means = np.empty(len(evidence))
    for q, e in enumerate(evidence):
        shares = np.full(e.shape[1], 1 / e.shape[1])
        for _ in range(ROUNDS):
            of_types = e * shares
            n_workers = np.sum(of_types / of_types.sum(axis=1, keepdims=True), axis=0) + RARE
            shares = n_workers / n_workers.sum()
        means[q] = max(LEAST_SKILL, float(shares @ skills[q]))
    return np.asarray(means / np.exp(np.log(means).mean()))


class JointParameters(NamedTuple):
    """Everything that is learned of several questions."""

    parts: tuple[Parameters, ...]
    prior: Sharing
    log_share: float  # J - sum_q sum_m log sum_u p e, and the log densities: what sharing adds to the bounds


@dataclass(frozen=True)
class JointProblem:
    """Several questions that are fitted together.

    Attributes
    ----------
    problems : tuple of Problem
        The questions. Their workers are of types.
    worker : tuple of array
        For each worker of each question the index among all workers.
    n_workers : int
        How many workers there are in all.
    """

    problems: tuple[Problem, ...]
    worker: tuple[Integers, ...]
    n_workers: int

    @property
    def n_responses(self) -> int:
        """Number of answers to all questions."""
        return sum(each.n_responses for each in self.problems)

    def weigh(self, statistics: Sequence[Statistics]) -> list[Floats]:
        """Return the evidence for types, (M, T) of each question, up to a factor per worker."""
        found = []
        for problem, (counts, summary), worker in zip(self.problems, statistics, self.worker, strict=True):
            own = cast(TypedWorkers, problem.workers).compare_types(counts, summary.mass, types_of(problem.prior))
            every = np.ones((self.n_workers, own.shape[1]))
            every[worker] = own
            found.append(every)
        return found

    def begin(self, statistics: tuple[Statistics, ...]) -> JointParameters:
        """Return where the loop starts, from what was found in each question on its own."""
        evidence = self.weigh(statistics)
        skills = [cast(TypedWorkers, each.workers).find_skills(types_of(each.prior)) for each in self.problems]
        easiness = find_easiness(evidence, skills)
        levels = tuple(Levels.of(each, float(g)) for each, g in zip(skills, easiness, strict=True))
        return self._maximise(statistics, Sharing.start(levels), None)

    def expect(self, parameters: JointParameters, trail: Trail) -> tuple[Statistics, ...]:  # noqa: ARG002
        """E-step of each question. None of them has a trail: what inference was at before is not gone on from."""
        pairs = zip(self.problems, parameters.parts, strict=True)
        return tuple(problem.expect(part, Trail()) for problem, part in pairs)

    def judge(self, parameters: JointParameters, statistics: tuple[Statistics, ...]) -> float:
        """Return the objective, given what the E-step at these parameters returned."""
        triples = zip(self.problems, parameters.parts, statistics, strict=True)
        return parameters.log_share + sum(problem.judge(part, found) for problem, part, found in triples)

    def improve(self, statistics: tuple[Statistics, ...], parameters: JointParameters, learn: bool) -> JointParameters:
        """M-step: the shares of levels, and then the matrices of each question."""
        sharing = parameters.prior
        if learn:
            evidence = self.weigh(statistics)
            for _ in range(STEPS):
                sharing = learn_sharing(evidence, sharing)
        return self._maximise(statistics, sharing, parameters.parts)

    def _maximise(
        self, statistics: tuple[Statistics, ...], sharing: Sharing, before: tuple[Parameters, ...] | None
    ) -> JointParameters:
        evidence = self.weigh(statistics)
        # Factors of the evidence cancel: those in J are those in the evidence of questions.
        log_share = Weighed.of(evidence, sharing).log_evidence + sharing.log_density
        parts = []
        for q, shares in enumerate(expect_types(evidence, sharing)):
            problem, worker = self.problems[q], self.worker[q]
            own = evidence[q][worker] * shares[worker]
            log_share -= float(np.log(own.sum(axis=1)).sum())
            prior = give_shares(problem.prior, np.log(shares[worker]))
            parts.append(maximise(problem, statistics[q], prior, None if before is None else before[q].workers))
        return JointParameters(tuple(parts), sharing, log_share)


class Together(NamedTuple):
    """What a fit of several questions together has found.

    Attributes
    ----------
    skills : list of Skills
        What each question hears of its workers from the others.
    sharing : Sharing
        What is learned of all questions together.
    trace : array
        The objective of all questions together, before each iteration and at the end. It never falls.
    """

    skills: list[Skills]
    sharing: Sharing
    trace: Floats


def can_share(recipe: Recipe) -> bool:
    """Tell whether each worker of a model is of one type, so that questions can be fitted together."""
    return isinstance(recipe, LatentRecipe) and recipe.workers in KINDS and recipe.max_iter > 0


def fit_together(
    recipes: Sequence[LatentRecipe], sources: Sequence[Source], graphs: Sequence[Graph | None], engine: Engine
) -> Together:
    """Fit several questions together, each with its recipe, whose workers are of types; see `can_share`.

    It starts from fits of each question on its own. Whatever the recipes say, estimation is by variational Bayes.
    """
    workers, problems, statistics = [], [], []
    for recipe, source, graph in zip(recipes, sources, graphs, strict=True):
        alone = replace(recipe, estimation="variational", skills=None, before=None)
        plan = alone.plan(source, graph, engine)
        problems.append(plan.problem)
        statistics.append(alone.choose(plan.problem, alone.run(plan)).statistics)
        workers.append(source.responses.workers)
    every = workers[0]
    for ids in workers[1:]:
        every, _ = add_values(every, ids)
    place = tuple(lookup(every, to_column(ids)) for ids in workers)
    joint = JointProblem(tuple(problems), place, len(every))
    max_iter, tol = max(each.max_iter for each in recipes), min(each.tol for each in recipes)
    found, _, trace, _, _ = iterate(joint, joint.begin(tuple(statistics)), max_iter, tol)
    skills = [Skills(ids, types_of(part.prior).log_shares) for ids, part in zip(workers, found.parts, strict=True)]
    return Together(skills, found.prior, trace)
