"""What a fit changed, compared with majority vote, and whether that is for the better."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..data.hashing import draw_numbers, hash_ids, hash_items
from ..data.responses import Responses
from ..engines.base import Engine
from ..errors import plural, quietly
from .base import Model
from .held_out import held_out_score
from .hidden_markov import HiddenMarkov
from .majority_vote import MajorityVote

# Answers on which two models are compared: enough to see a difference, few enough to be quick.
MOST_ANSWERS = 200_000
# How many standard errors a difference must exceed to count as one.
STANDARD_ERRORS = 2


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
        Standard error of `held_out_gain`; infinite if there were too few answers to hide.

    Notes
    -----
    There is one rule: the model is *better* than the vote if `held_out_gain` is more than two standard errors above 0,
    *worse* if it is more than two below, and *no different* otherwise.
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
    def verdict(self) -> str:
        """How hidden answers are predicted, compared with the vote: "better", "no different" or "worse"."""
        if abs(self.held_out_gain) <= STANDARD_ERRORS * self.held_out_error:
            return "no different"
        return "better" if self.held_out_gain > 0 else "worse"

    @property
    def better(self) -> bool:
        """Whether the verdict is "better"."""
        return self.verdict == "better"

    @property
    def tested(self) -> bool:
        """Whether there were enough answers to hide, so that the verdict means something."""
        return math.isfinite(self.held_out_error)

    def __str__(self) -> str:
        differ = f"{self.n_differ:,} of {plural(self.n_items, 'label')} {'differs' if self.n_differ == 1 else 'differ'}"
        return (
            f"{differ} from majority vote ({self.agreement:.1%} agree); expected gain {100 * self.expected_gain:+.1f} "
            f"percentage points; {self.describe_test()}"
        )

    def describe_test(self) -> str:
        """Return the verdict in words, with its figures."""
        if not self.tested:
            return "too few answers to test on hidden ones"
        words = {"better": "better than by", "no different": "no differently than by", "worse": "worse than by"}
        return f"hidden answers are predicted {words[self.verdict]} the vote ({self.describe_gain()})"

    def describe_gain(self) -> str:
        """Return the gain at hidden answers with its standard error."""
        return f"{self.held_out_gain:+.4f} +- {self.held_out_error:.4f}"


def can_compare(responses: Responses) -> bool:
    """Tell whether some answers can be hidden and others left: two answers, or two workers or sequences."""
    if responses.sequences is None:
        return len(responses.votes()[0]) > 1
    sequence = responses.sequences.of_items()[responses.item_of_answer()]
    return bool((responses.worker != responses.worker[:1]).any() or (sequence != sequence[:1]).any())


def compare_with_vote(
    model: Model, responses: Responses, graph: object, gold: object, engine: Engine, seed: int = 0
) -> Comparison:
    """Compare a fitted model with majority vote on the same answers.

    The fits made here give no warnings: `model` gave them when it was fitted.
    """
    with quietly():
        return _compare(model, responses, graph, gold, engine, seed)


def _compare(model: Model, responses: Responses, graph: object, gold: object, engine: Engine, seed: int) -> Comparison:
    responses = responses.with_classes(model.classes_)  # tag schemes add classes that nobody said
    shares = MajorityVote(ties="first").fit(responses, gold=gold, engine=engine).posterior_
    rows = np.arange(len(shares))
    ours = model._label_codes
    tied = shares >= shares.max(axis=1, keepdims=True) - 1e-12
    vote = np.where(tied[rows, ours], ours, shares.argmax(axis=1))
    gain = model.posterior_[rows, ours] - model.posterior_[rows, vote]
    part = sample_items(model._weigh_copies(responses, np.arange(responses.n_workers)), seed)
    settled = model._settled()
    if isinstance(model, HiddenMarkov):
        # A coupling that was learned is taken as found: learning it again would take longer than all the rest.
        settled.set_params(coupling=model.coupling_)
    fit_score = held_out_score(settled, part, graph=graph, gold=None, seed=seed, engine=engine)
    vote_score = held_out_score(MajorityVote(), part, seed=seed, engine=engine)
    difference, error = fit_score.minus(vote_score)
    return Comparison(len(rows), int((vote != ours).sum()), float(gain.mean()), difference, error)


def sample_items(responses: Responses, seed: int) -> Responses:
    """Return the answers to a random part of the items (of the sequences), if there are very many.

    Which these are depends on their ids and the seed.
    """
    if responses.n_responses <= MOST_ANSWERS:
        return responses
    sequences = responses.sequences
    hashes = hash_items(responses.keys) if sequences is None else hash_ids(sequences.ids)
    chosen = draw_numbers(seed, hashes) < np.uint64(2**64 * (MOST_ANSWERS / responses.n_responses))
    of_items = chosen if sequences is None else chosen[sequences.of_items()]
    return responses.keep(of_items[responses.item_of_answer()])
