"""What a fit changed, compared with majority vote, and whether that is for the better."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ..errors import ConsilienceWarning
from ..responses import Responses
from .base import Model
from .held_out import held_out_score
from .majority_vote import MajorityVote

# Answers on which two models are compared: enough to tell them apart, few enough to cost next to nothing.
MOST_ANSWERS = 200_000


@dataclass(frozen=True)
class Comparison:
    """A fitted model beside majority vote.

    Attributes
    ----------
    n_items : int
        Number of items.
    n_differ : int
        Items whose label is not the vote's (of tied classes the vote is given the model's, if it is among them).
    expected_gain : float
        By the model's own probabilities, how many more of all items it gets right, as a share.
    held_out_gain : float
        By how much, in mean log probability, the model predicts hidden answers better than the vote does.
    held_out_error : float
        Standard error of `held_out_gain`.
    """

    n_items: int
    n_differ: int
    expected_gain: float
    held_out_gain: float
    held_out_error: float

    @property
    def agreement(self) -> float:
        """Share of items on which model and vote agree."""
        return 1 - self.n_differ / self.n_items

    @property
    def better(self) -> bool:
        """Whether hidden answers are predicted better than by the vote, beyond one standard error."""
        return self.held_out_gain > self.held_out_error

    def __str__(self) -> str:
        verdict = "better than" if self.better else "no better than"
        return (
            f"{self.n_differ:,} of {self.n_items:,} labels differ from majority vote ({self.agreement:.1%} agree); "
            f"expected gain {self.expected_gain:+.1%}; hidden answers are predicted {verdict} by the vote "
            f"({self.held_out_gain:+.4f} +- {self.held_out_error:.4f})"
        )


def can_compare(responses: Responses) -> bool:
    """Tell whether some answers can be hidden and others left: two answers, or two workers or sequences."""
    if responses.sequences is None:
        return responses.n_responses > 1
    sequence = responses.sequences.of_items()[responses.item_of_answer()]
    return bool((responses.worker != responses.worker[:1]).any() or (sequence != sequence[:1]).any())


def compare_with_vote(model: Model, responses: Responses, graph: object, gold: object, seed: int = 0) -> Comparison:
    """Compare a fitted model with majority vote on the same answers.

    What there is to warn about was said when `model` was fitted; the fits made here say nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        return _compare(model, responses, graph, gold, seed)


def _compare(model: Model, responses: Responses, graph: object, gold: object, seed: int) -> Comparison:
    shares = MajorityVote(ties="first").fit(responses, gold=gold).posterior_
    rows = np.arange(len(shares))
    ours = model._label_codes
    tied = shares >= shares.max(axis=1, keepdims=True) - 1e-12
    vote = np.where(tied[rows, ours], ours, shares.argmax(axis=1))
    gain = model.posterior_[rows, ours] - model.posterior_[rows, vote]
    part = sample_items(responses, seed)
    fit_score = held_out_score(model, part, graph=graph, gold=None, seed=seed)
    vote_score = held_out_score(MajorityVote(), part, seed=seed)
    difference, error = fit_score.minus(vote_score)
    return Comparison(len(rows), int((vote != ours).sum()), float(gain.mean()), difference, error)


def sample_items(responses: Responses, seed: int) -> Responses:
    """Return the answers to a random part of the items (of the sequences), if there are very many."""
    if responses.n_responses <= MOST_ANSWERS:
        return responses
    n_units = responses.n_items if responses.sequences is None else len(responses.sequences)
    chosen = np.random.default_rng(seed).random(n_units) < MOST_ANSWERS / responses.n_responses
    of_items = chosen if responses.sequences is None else chosen[responses.sequences.of_items()]
    return responses.keep(of_items[responses.item_of_answer()])
