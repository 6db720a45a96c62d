"""Models of items that are independent of each other: Dawid-Skene, sets of tags, majority vote and moment matching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.blocks import cut_blocks
from ...answers.columns import Values
from ...answers.graph import Graph
from ...answers.items import Sequences
from ...answers.random_choices import Hashes, draw_numbers, hash_ids, hash_items
from ...engines.base import Engine
from ...errors import ConvergenceWarning, DataWarning, InputError, ParameterError, Python, Sentence, plural, warn
from ...kernels import Floats, freeze
from ...limits import allocate, require_few
from .. import ITEMS_AT_ONCE
from ..em import Progress
from ..moments import MomentFit, answers_to_match, find_obstacles, learn_moments
from ..preconditions import (
    NAME_CLASSES,
    SLOW,
    check_matrices,
    check_moments,
    estimate_moments,
    fixed_prior,
    is_hopeless,
)
from ..sources import Source
from ..starts import find_starts
from ..structures.independent import Independent, IndependentParameters
from ..structures.sets import Sets, SetsParameters, SetsSummary
from ..workers import voters
from ..workers.rows import vote
from ..workers.tags import count_tags
from . import LatentRecipe, Plan, Recipe

LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class IndependentRecipe(LatentRecipe):
    """How `DawidSkene` is fitted."""

    model = "DawidSkene"
    structure_type = IndependentParameters

    def make_structure(self, r: Answers) -> Independent:
        """Return the class prior as a structure."""
        return Independent(*self.structure_parts(r))

    def plan(self, source: Source, graph: Graph | None, engine: Engine) -> Plan:
        """Return what is to be fitted, and from where."""
        problem = self.pose(source, self.make_structure(source.responses), graph, engine)
        return Plan(problem, find_starts(self, problem, source.responses))

    def find_raised(self, r: Answers) -> NDArray[np.bool_]:
        """Tell of which items the posterior is raised to a power."""
        if r.silence_counts:
            return super().find_raised(r)
        # Of an item without answers all that speaks is the class prior, and what else is known of the item. There are
        # no errors that workers could share.
        return np.asarray(r.offsets[1:] > r.offsets[:-1])


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
        n_skills, n_sets = r.n_workers * n_tags, r.n_responses // n_tags
        size = f"{r.n_workers:,} workers x {n_tags:,} tags are {n_skills:,} skills to be learned"
        remedy = "Leave out rare tags, or workers with few sets."
        require_few("skills", n_skills, f"{size} from {plural(n_sets, 'set')}", remedy, n=n_sets)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteRecipe(Recipe):
    """How `MajorityVote` is taken."""

    model = "MajorityVote"
    structure_type = IndependentParameters
    needs_same_silence = False

    ties: str = "random"
    seed: int = 0

    def label_votes(self, shares: Floats, keys: Values | Sequences, classes: Values) -> NDArray[np.int64]:
        """Return the class with the largest share of each item, ties broken by the rule; or the median."""
        return self.label_hashed(shares, partial(hash_items, keys), classes)

    def label_hashed(
        self, shares: Floats, hash_rows: Callable[[NDArray[np.int64]], Hashes], classes: Values
    ) -> NDArray[np.int64]:
        """Return the same as `label_votes`, where a function gives the hashes of some items."""
        if self.label_by == "median":
            return self.label_items(shares)
        chosen, is_tied = np.empty(len(shares), np.int64), np.empty(len(shares), bool)
        for first in range(0, len(shares), ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            tied = find_tied(shares[run])
            chosen[run] = tied.argmax(axis=1)
            is_tied[run] = reduce(add, tied.T, np.zeros(len(tied), np.int32)) > 1
        if self.ties == "random":
            several = np.flatnonzero(is_tied)
            of_items, of_classes = hash_rows(several), hash_ids(classes)
            for first in range(0, len(several), ITEMS_AT_ONCE):
                run = slice(first, first + ITEMS_AT_ONCE)
                draws = draw_numbers(self.seed, of_items[run, None], of_classes)
                tied = find_tied(shares[several[run]])
                chosen[several[run]] = np.where(tied, draws, np.iinfo(np.uint64).max).argmin(axis=1)
        return chosen


def collect_votes(engine: Engine, source: Source, unvoted: Floats) -> tuple[Floats, Floats]:
    """Return the vote shares of all items, and their sums; items without votes get `unvoted`."""
    r: Answers = source.responses
    # It does not matter who votes: the row of an answer is its label.
    workers = voters(r)
    known, votes = None if source.gold is None else source.gold.codes, workers.read_votes(r)
    placed = engine.place(cut_blocks(r, r.label, r.n_labels, known, soft=votes))
    shares, mass, first = allocate((r.n_items, r.n_classes)), np.zeros(r.n_classes), 0
    for part in engine.map(vote, placed, r.class_of_label if not len(votes) else workers.votes(), unvoted):
        shares[first : first + len(part)] = part
        mass, first = mass + part.sum(axis=0), first + len(part)
    return shares, mass


def find_tied(shares: Floats) -> NDArray[np.bool_]:
    """Tell which classes of each item have the largest share.

    Shares that differ by rounding only are tied: 1/3 + 1/3 and 2/3 are the same vote.
    """
    return np.asarray(shares >= reduce(np.maximum, shares.T)[:, None] - 1e-12)


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentRecipe(Recipe):
    """How `MomentMatching` is fitted."""

    model = "MomentMatching"
    structure_type = IndependentParameters

    prior: Any
    shrinkage: float
    max_iter: int
    tol: float
    callback: Callable[[Progress], object] | None

    def check_answers(self, r: Answers) -> Answers:
        """Return the answers, unless silence is one."""
        if r.silence_counts:
            raise ParameterError(
                "MomentMatching takes silence for no answer.",
                Sentence("Use {model}.", model=Python("DawidSkene", "dawid-skene")),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="abstain",
            )
        return super().check_answers(r)

    def check_size(self, r: Answers, graph: Graph | None) -> None:
        """Raise an error for a fit that needs more memory than there is, and warn of one that takes long."""
        super().check_size(r, graph)
        check_matrices(self.model, voters(r), r)
        effort = estimate_moments(answers_to_match(r))
        instead = Sentence("Or use {model}.", model=Python("DawidSkene", "dawid-skene"))
        check_moments(self.model, r, effort, instead)
        long = f"MomentMatching may take about {effort.describe_time()} for {voters(r).describe_size()}"
        remedies = "Merge rare or misspelt labels.", NAME_CLASSES, instead
        if is_hopeless(r, effort):
            few = f"{plural(r.n_responses, 'answer')} are too few for so many entries"
            raise InputError(f"{long}, and {few}.", *remedies, keyword="classes")
        if effort.seconds > SLOW:
            warn(DataWarning(f"{long}.", *remedies, keyword="classes"))

    def explain_stop(self, trace: Floats, n_responses: int) -> ConvergenceWarning | None:
        """Return the warning that the sweeps ended before they settled; None if they were not asked to."""
        if self.tol <= 0:
            return None
        return ConvergenceWarning(
            f"MomentMatching stopped after {self.max_iter} sweeps before it settled.",
            Sentence("Allow more with {max_iter}.", max_iter=2 * self.max_iter),
            Sentence("Or accept the fit with a higher {tol}."),
            keyword="max_iter",
        )

    def match(self, r: Answers, start: Floats, prior: Floats) -> MomentFit:
        """Return aligned, shrunk matrices and the prior; warn of what stands in the way."""
        given = fixed_prior(self, r)
        answers = answers_to_match(r)
        found = learn_moments(
            answers,
            start,
            prior if given is None else given,
            shrinkage=self.shrinkage,
            learn_prior=given is None,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
        )
        stopped = None if found.converged else self.explain_stop(found.trace, r.n_responses)
        if stopped is not None:
            warn(stopped)
        for obstacle in find_obstacles(answers, found.confusion):
            warn(DataWarning(f"Moments cannot identify the model. {obstacle}"))
        return found
