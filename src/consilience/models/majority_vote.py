"""Majority vote: every worker counts the same."""

from __future__ import annotations

from typing import Any, ClassVar

from ..answers.graph import Graph
from ..engines import Engine
from ..inference.sources import Source
from ..results.fitting import take_vote
from ..results.result import Result
from .base import Model


class MajorityVote(Model):
    """The label that most workers gave.

    The posterior of a class is its share of the item's votes (of their weights, where there are weights). Answers that
    are not among the classes do not count; an item without votes gets the overall shares, `prior_`.

    Parameters
    ----------
    ties : {"random", "first"}
        Which of several classes with equal votes is the label: one of them at random, or the first in the order of the
        classes. What is random depends on `seed` and on the names of item and classes, not on the order of rows.
    label_by : {"mode", "median"}
        What the label is: the class with most votes; or for ordered classes the median of the votes, the lower one of
        two.
    seed : int
        Seed of the tie rule.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_
        Results. `confusion_` compares each worker with the vote shares, and is worked out when it is first used;
        `score` is the likelihood under these matrices.
    trace_, n_iter_, converged_
        Empty, 0 and True: a vote takes no iterations.
    copies_ : list
        Groups of workers who seem to copy each other.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {"item": [1, 1, 1, 2], "worker": ["a", "b", "c", "a"], "label": ["x", "x", "y", "y"]}
    >>> cs.MajorityVote().fit(answers).labels_
    array(['x', 'y'], dtype=object)
    """

    _needs_same_silence: ClassVar[bool] = False

    ties: str = "random"
    label_by: str = "mode"
    seed: int = 0

    def _learn(self, source: Source, graph: Graph | None, engine: Engine, **further: Any) -> Result:  # noqa: ARG002
        return take_vote(source, engine, self.ties, self.label_by, self.seed)
