"""What checks look at: a result, the answers that it comes from, and how it differs from majority vote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..answers.graph import Graph
from ..engines import open_engine
from ..inference.recipes import Recipe
from ..inference.recipes.independent import VoteRecipe
from ..inference.sources import InMemory, Source
from ..results.comparison import Comparison
from ..results.fitting import learn_votes
from ..results.parts import view_sample
from ..results.result import Labels, Result
from .comparison import Differences, find_differences, find_sample


@dataclass(frozen=True, eq=False)
class Subject:
    """A result that is checked.

    Attributes
    ----------
    recipe : Recipe
        How it was fitted.
    fusion : Result
        The result.
    sample : InMemory
        The answers as they were given: all of those in memory, some of those on disk.
    graph : Graph or None
        How items hang together.
    differences : Differences or None
        How labels differ from those of majority vote, if they were compared.
    """

    recipe: Recipe
    fusion: Result
    sample: InMemory
    graph: Graph | None
    differences: Differences | None = None

    @classmethod
    def of(cls, recipe: Recipe, found: Result) -> Subject:
        """Return what checks look at, of a result that was fitted before."""
        source: Source | None = found.source
        if source is None:
            source = InMemory(found.answers.with_classes(found.names.classes), found.given.gold)
        sample, differences = find_sample(found, source), None
        if found.comparison is not None and found.comparison.collapsed and found.in_memory:
            with open_engine(None) as engine:
                vote = learn_votes(VoteRecipe(), sample, None, engine, None)
            differences = find_differences(found.labels, vote.labels, sample)
        return cls(recipe, found, sample, found.given.graph, differences)

    @property
    def comparison(self) -> Comparison | None:
        """The comparison with majority vote."""
        return self.fusion.comparison

    @cached_property
    def labels(self) -> Labels:
        """The labels of the sample."""
        return self.fusion.labels if self.fusion.in_memory else view_sample(self.fusion).labels

    @property
    def is_sample(self) -> bool:
        """Whether there are other items than those of the sample."""
        return self.fusion.labelled.n_items > self.sample.responses.n_items

    @property
    def is_checked(self) -> bool:
        """Whether anything checks the answers."""
        return self.fusion.checked

    @property
    def makes_sense(self) -> bool:
        """Whether the labels tell anything about workers and items: not if they are noise, or have collapsed."""
        return self.comparison is None or not (self.comparison.by_chance or self.comparison.collapsed)
