"""Sets of tags: workers who miss tags or give wrong ones, and topics by which tags go together, if confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ...answers.graph import Graph
from ...answers.random_choices import count_units, hide_answers
from ...answers.responses import Answers
from ...arguments import is_whole
from ...engines.base import Engine
from ...errors import InputError, ParameterError, Sentence, parameter_error, plural
from ...kernels import Floats, freeze
from ...specs import Fault
from ..em import Fit, Parameters, Problem, maximise, run_em
from ..hidden_fits import HeldOutScore, score_hidden
from ..learned import CouplingScore
from ..sources import Source
from ..starts import find_starts
from ..structures import Statistics, StructureParameters
from ..structures.sets import Sets, SetsParameters, SetsSummary, choose_centres, find_topics
from ..workers.tags import count_tags
from . import LatentRecipe, Plan

# Skills, one for each worker and tag, that are learned from few sets, and for each of many.
MOST_PAIRS, PAIRS_PER_SET = 200_000, 5
# Numbers of topics that are tried.
TOPICS = (1, 2, 4, 8)
# They are compared on this share of the sets, in as many folds as it takes to hide enough sets, or answers about tags.
HIDDEN, ENOUGH_SETS, ENOUGH_ANSWERS, MOST_FOLDS = 0.1, 1000, 50_000, 5
# When fits that are only compared have settled.
ROUGH = 1e-4
LEAST_SHARE = 1e-3
# More topics count as confirmed if they predict hidden answers better by so many standard errors.
CONFIRMED = 2.0


@dataclass(frozen=True, eq=False, kw_only=True)
class SetsRecipe(LatentRecipe):
    """How `TagSets` is fitted."""

    model = "TagSets"
    structure_type = SetsParameters
    summary_type = SetsSummary
    takes_content = False
    takes_disk = True

    topics: Any

    @property
    def learns_coupling(self) -> bool:
        """Whether the number of topics is to be learned."""
        return isinstance(self.topics, str) and self.topics == "learn"

    def check(self) -> None:
        """Raise an error for a setting with a value that it cannot have."""
        super().check()
        if not self.learns_coupling and not (is_whole(self.topics) and self.topics >= 1):
            raise parameter_error("topics", self.model, "'learn' or a whole number >= 1", self.topics)
        if self.learns_coupling and self.max_iter == 0:
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and topics cannot be learned.",
                Sentence("Give {topics}.", topics=1),
                keyword="topics",
            )

    def check_learned(self, found: StructureParameters) -> None:
        """Raise a `Fault` if what a file says of topics cannot be what a fit has found."""
        sets = cast(SetsParameters, found)
        if len(sets.topics) != len(sets.shares) or len(sets.topics) != sets.coupling:
            raise Fault("the topics are not those of the tags")

    def check_answers(self, r: Answers) -> Answers:
        """Return the answers, if they are about tags."""
        count_tags(r)
        return r

    def prepare(self, r: Answers) -> Answers:
        """Return the answers for a fit, if the skills to be learned are not far more than the sets."""
        n_tags, r = count_tags(r), super().prepare(r)
        n_pairs, n_sets = r.n_workers * n_tags, r.n_responses // n_tags
        most = max(MOST_PAIRS, PAIRS_PER_SET * n_sets)
        if n_pairs > most:
            raise InputError(
                f"{r.n_workers:,} workers x {n_tags:,} tags are {n_pairs:,} skills to be learned from "
                f"{plural(n_sets, 'set')}, and at most {most:,} are.",
                "Leave out rare tags, or workers with few sets.",
            )
        return r

    def make_structure(self, r: Answers) -> Sets:
        """Return the topics; a number that is to be learned stands at 1."""
        return self.place_topics(share_yes(r), 1 if self.learns_coupling else int(self.topics))

    def place_topics(self, fitting: Floats, n_topics: int) -> Sets:
        """Return a structure of so many topics, around what is known of the tags of some things, (n, T)."""
        base = np.clip(fitting.mean(axis=0), LEAST_SHARE, 1 - LEAST_SHARE)
        centres = choose_centres(fitting, n_topics, np.random.default_rng(self.seed))
        centres = np.clip(centres, LEAST_SHARE, 1 - LEAST_SHARE)
        return Sets(2, None, 0.0, self.estimation, freeze(base), freeze(centres))

    def plan(self, source: Source, graph: Graph | None, engine: Engine) -> Plan:
        """Return what is to be fitted, and from where, with as many topics as hidden answers confirm."""
        r, scores = source.responses, list[CouplingScore]()
        n_topics = 1 if self.learns_coupling else int(self.topics)
        if self.learns_coupling and self.before is not None and self.before.coupling_scores:
            n_topics, scores = int(cast(float, self.before.coupling)), self.before.coupling_scores
        elif self.learns_coupling and count_units(r) > 1 and count_tags(r) > 1:
            n_topics, scores = self.learn_topics(source, engine)
        one = self.place_topics(share_yes(r), 1)
        problem = self.pose(source, one, graph, engine)
        if n_topics == 1:
            return Plan(problem, find_starts(self, problem, r), scores)
        alone = run_em(problem, find_starts(self, problem, r)[0][1], self.max_iter, ROUGH)
        problem, start = self.add_topics(problem, alone, n_topics)
        return Plan(problem, [("majority", start)], scores)

    def add_topics(self, problem: Problem, fit: Fit, n_topics: int) -> tuple[Problem, Parameters]:
        """The problem with so many topics, and where it starts: from a fit with one topic."""
        fitting = problem.infer(fit.parameters)[0][:, 1].reshape(-1, count_columns(problem))
        sets = self.place_topics(fitting, n_topics)
        of_topic = find_topics(fitting, sets.centres)
        sums = of_topic.sum(axis=0), of_topic.T @ fitting
        summary = SetsSummary(0.0, fit.statistics.summary.mass, *sums)
        posed = replace(problem, structure=sets)
        return posed, maximise(posed, Statistics(fit.statistics.counts, summary), fit.parameters.prior)

    def find_coupling(self, problem: Problem, parameters: Parameters) -> float:  # noqa: ARG002
        """Return the number of topics."""
        return float(len(cast(Sets, problem.structure).centres))

    def learn_topics(self, source: Source, engine: Engine) -> tuple[int, list[CouplingScore]]:
        """Return how many topics hidden answers confirm, and how well each number was judged.

        All answers of a worker about a thing are hidden together. A larger number is taken if it is clearly better than
        the one before.
        """
        r = source.responses
        n_hidden = max(1, round(HIDDEN * count_units(r)))
        n_folds = min(MOST_FOLDS, -(-ENOUGH_SETS // n_hidden), -(-ENOUGH_ANSWERS // (n_hidden * count_tags(r))))
        scores: list[HeldOutScore] = []
        for hidden, unit in hide_answers(r, HIDDEN, self.seed, n_folds):
            fold = [score_hidden(r, hidden, unit, *found) for found in self.judge_topics(source.keep(~hidden), engine)]
            scores = [old.plus(new) for old, new in zip(scores, fold, strict=True)] if scores else fold
        chosen = 0
        for number, score in enumerate(scores):
            gain, error = score.minus(scores[chosen])
            if gain > CONFIRMED * error:
                chosen = number
        judged = zip(TOPICS, scores, strict=True)
        return TOPICS[chosen], [CouplingScore(float(number), score.score, score.error) for number, score in judged]

    def judge_topics(self, source: Source, engine: Engine) -> Iterator[tuple[Floats, Floats]]:
        """Yield posteriors and expected counts (M, L, K) of the fit with each number of topics."""
        r = source.responses
        alone = self.pose(source, self.place_topics(share_yes(r), 1), None, engine)
        first = run_em(alone, find_starts(self, alone, r)[0][1], self.max_iter, ROUGH)
        for n_topics in TOPICS:
            problem, fit = alone, first
            if n_topics > 1:
                problem, start = self.add_topics(alone, first, n_topics)
                fit = run_em(problem, start, self.max_iter, ROUGH)
            yield problem.infer(fit.parameters)[0], problem.workers.plain_counts(fit.statistics.counts)


def count_columns(problem: Problem) -> int:
    """Return the number of tags."""
    return len(cast(Sets, problem.structure).base)


def share_yes(r: Answers) -> Floats:
    """Return which share of the answers about each tag of a thing is yes, (n, T), for things with answers."""
    n_tags, n_answers = count_tags(r), np.diff(r.offsets)
    is_yes = r.class_of_label[r.label] == 1
    n_yes = np.bincount(r.item_of_answer(), weights=is_yes, minlength=r.n_items)
    shares = (n_yes / np.maximum(n_answers, 1)).reshape(-1, n_tags)
    told = n_answers.reshape(-1, n_tags).all(axis=1)
    return shares[told] if told.any() else np.full((1, n_tags), 0.5)
