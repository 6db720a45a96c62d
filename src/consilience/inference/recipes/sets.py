"""Sets of tags: workers who miss tags or give wrong ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...answers.answers import Answers
from ...answers.graph import Graph
from ...engines.base import Engine
from ...errors import InputError, plural
from ...kernels import freeze
from ..sources import Source
from ..starts import find_starts
from ..structures.sets import Sets, SetsParameters, SetsSummary
from ..workers.tags import count_tags
from . import LatentRecipe, Plan

# Skills, one for each worker and tag, that are learned from few sets, and for each of many.
MOST_PAIRS, PAIRS_PER_SET = 200_000, 5
LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class SetsRecipe(LatentRecipe):
    """How `TagSets` is fitted."""

    model = "TagSets"
    structure_type = SetsParameters
    summary_type = SetsSummary
    takes_content = False

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
        """Return the tags, each expected to fit so many things as votes say."""
        n_tags, n_answers = count_tags(r), np.diff(r.offsets)
        is_yes = r.class_of_label[r.label] == 1
        votes = np.bincount(r.item_of_answer(), weights=is_yes, minlength=r.n_items) / np.maximum(n_answers, 1)
        answered = (n_answers > 0).reshape(-1, n_tags).all(axis=1)
        shares = votes.reshape(-1, n_tags)[answered].mean(axis=0) if answered.any() else np.full(n_tags, 0.5)
        return Sets(2, None, 0.0, self.estimation, freeze(np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)))

    def plan(self, source: Source, graph: Graph | None, engine: Engine) -> Plan:
        """Return what is to be fitted, and from where."""
        problem = self.pose(source, self.make_structure(source.responses), graph, engine)
        return Plan(problem, find_starts(self, problem, source.responses))
