"""What checks look at: a result, the answers that it comes from, and how it differs from majority vote."""

from __future__ import annotations

from dataclasses import dataclass

from ..answers.graph import Graph
from ..engines import open_engine
from ..inference.recipes import Recipe
from ..inference.recipes.independent import VoteRecipe
from ..inference.sources import Source
from ..results.comparison import Comparison
from ..results.fitting import learn_votes
from ..results.result import Labels, Result
from .comparison import Differences, find_differences


@dataclass(frozen=True, eq=False)
class Subject:
    """A result that is checked.

    Attributes
    ----------
    recipe : Recipe
        How it was fitted.
    fusion : Result
        The result.
    sample : Source
        The answers as they were given.
    graph : Graph or None
        How items hang together.
    differences : Differences or None
        How labels differ from those of majority vote, if they were compared.
    """

    recipe: Recipe
    fusion: Result
    sample: Source
    graph: Graph | None
    differences: Differences | None = None

    @classmethod
    def of(cls, recipe: Recipe, found: Result, differences: Differences | None = None) -> Subject:
        """Return what checks look at."""
        sample = Source(found.answers.with_classes(found.names.classes), found.given.gold)
        if differences is None and found.comparison is not None and found.comparison.collapsed:
            with open_engine(None) as engine:
                vote = learn_votes(VoteRecipe(), sample, engine)
            differences = find_differences(found.labels, vote.labels, sample)
        return cls(recipe, found, sample, found.given.graph, differences)

    @property
    def comparison(self) -> Comparison | None:
        """The comparison with majority vote."""
        return self.fusion.comparison

    @property
    def labels(self) -> Labels:
        """The labels."""
        return self.fusion.labels

    @property
    def is_checked(self) -> bool:
        """Whether anything checks the answers."""
        return self.fusion.checked

    @property
    def makes_sense(self) -> bool:
        """Whether the labels tell anything about workers and items: not if they are noise, or have collapsed."""
        return self.comparison is None or not (self.comparison.by_chance or self.comparison.collapsed)
