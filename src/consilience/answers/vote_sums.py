"""Sums of probabilities: whether numbers are soft votes, and what else they may be.

The probabilities of a vote are at least 0 and sum to 1. Those that were rounded do so only nearly, and percentages sum
to 100; both are taken if the user says so (`rescale`). All else is an error, and numbers mostly tell what happened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import Sentence
from ..kernels import Floats, Truths

# Probabilities of one vote may exceed 1 by rounding.
VOTE_SLACK = 1e-3
# What rounding to two decimals does to one probability at most.
ROUNDING = 0.005
# Sums may differ from 1 by so much at most, however many classes there are.
MOST_ROUNDING = 0.1
# What probabilities sum to, and percentages.
WHOLES = (1.0, PERCENT := 100.0)


class VoteSums(NamedTuple):
    """Sums of votes.

    Attributes
    ----------
    votes : float64 array (n, L)
        Numbers that are to be probabilities.
    total : float64 array (n,)
        The sum of each vote.
    whole : float
        What they must sum to.
    wrong : bool array (n,)
        Which of them are no probabilities.
    """

    votes: Floats
    total: Floats
    whole: float
    wrong: Truths

    @classmethod
    def of(cls, votes: Floats, rescale: bool) -> VoteSums:
        """Return the sums of votes (n, L), none of which is missing."""
        n_classes = votes.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # what is no probability is wrong below
            total = votes @ np.ones(n_classes)  # faster than `sum` where there are few classes
        whole = PERCENT if rescale and are_near(total, PERCENT, n_classes) else 1.0
        wrong = ~(np.abs(total - whole) <= whole * (slack_of(n_classes) if rescale else VOTE_SLACK))
        if votes.min(initial=0.0) < 0:
            wrong |= (votes < 0).any(axis=1)
        return cls(votes, total, whole, wrong)

    def rescaled(self) -> Floats:
        """Return votes that sum to 1."""
        return np.asarray(self.votes / self.total[:, None])

    def can_be_rescaled(self) -> bool:
        """Tell whether all votes are probabilities but for rounding, or percentages."""
        near = any(are_near(self.total, whole, self.votes.shape[1]) for whole in WHOLES)
        return near and bool((self.votes >= 0).all())

    def suggest(self, lacking: str) -> list[str | Sentence]:
        """Return what may be the reason if votes are wrong, and the remedy; `lacking` is that for a missing class."""
        if (self.votes < 0).any():
            return ["Probabilities are not negative. If these are logits or scores, take their softmax first."]
        if self.can_be_rescaled():
            kind = "percentages" if self.total[0] > PERCENT / 2 else "rounded"
            return [Sentence(f"They seem to be {kind}: use {{rescale}}.", rescale=True)]
        if (self.votes > 1).any():
            return ["If these are logits or scores, take their softmax first.", "Else divide each vote by its sum."]
        if (self.total <= 1 + VOTE_SLACK).all():
            return [lacking, "If none is missing, divide each vote by its sum."]
        return ["Divide each vote by its sum."]


def are_near(total: Floats, whole: float, n_classes: int) -> bool:
    """Tell whether all sums are that of a whole, but for rounding."""
    return bool((np.abs(total - whole) <= whole * slack_of(n_classes)).all())


def slack_of(n_classes: int) -> float:
    """Return by how much sums may differ from 1 if probabilities are rounded."""
    return min(ROUNDING * n_classes, MOST_ROUNDING) + VOTE_SLACK
