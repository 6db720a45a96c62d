r"""What further answers would bring, and when to stop asking.

Let a be the label of an item, and :math:`q_k` the probability of class k. After further answers
:math:`l_1, \dots, l_n` of workers :math:`m_1, \dots, m_n` it is

.. math:: q_k(l) \propto q_k \prod_i \Gamma_{m_i}[k, l_i]^t

with a power t that calibrates probabilities: what workers say together is believed no more than it was. Powers that
are equally likely are drawn, since after few answers little is known of the right one. The label
changes if another class is ahead then, and the errors that n answers are expected to correct are

.. math:: R(n) = \mathbf{E} \max_k \big( q_k(l) - q_a(l) \big)

One answer can seldom turn a label that is fairly certain, and three can: so the first answer is worth a third of what
three bring. An answer about the item is worth :math:`r = \max_{n \leq 8} R(n) / n`, and answers are spent where this is
largest. The sum over the next `FORESEEN` answers is what they bring. If that is less than `min_gain`, it is time to
stop. Gains fall from then on, so that twice the answers bring less than `min_gain` for each hundred of them: with .1,
less than .01 of the labels if an item has up to ten answers now.

Nothing is foreseen as long as answers have told nothing about single items: labels are hardly surer than class shares
alone would make them, or nearly all items are in one class against the votes. Then the model does not know its workers.

Nor is it where a check has failed, so that probabilities mean nothing (`Result.withheld`).

Expectations are means over `N_DRAWS` random draws of the truth, by q, and of answers. Workers are drawn as often as the
list of the best questions names them. Answers that are pending are drawn first. An item has no more answers than there
are workers left who can be asked about it. Only items that a list of `FORESEEN` questions would look at are considered.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_number
from ..errors import parameter_error, plural
from ..kernels import Floats
from ..results.comparison import BY_VOTE, NEARLY_ALL
from ..results.result import Result
from .next_questions import FORESEEN, Round, choose_questions, look_at

# Expected errors fewer, with `FORESEEN` answers, for which these are worth asking for.
MIN_GAIN = 0.1
# The least share of the doubt that class shares leave, by which labels must be surer.
LEAST_TOLD = 0.1
# Most answers about an item that are thought of at once; draws for each item; and numbers in memory at once.
MOST_AHEAD, N_DRAWS, MOST_NUMBERS = 8, 256, 2_000_000


class Forecast(NamedTuple):
    """What the next answers would bring.

    Attributes
    ----------
    n_answers : int
        How many answers are thought of: 100, or as many as can be asked for.
    fewer_errors : float
        How many errors these are expected to correct; nan if answers have told nothing about single items so far, or
        if numbers are `withheld`.
    expected_errors : float
        How many labels are expected to be wrong now, by their probabilities; nan if numbers are `withheld`.
    n_labels : int
        How many labels there are.
    min_gain : float
        The least `fewer_errors` of 100 answers that are worth asking for.
    withheld : str
        Why no numbers are given; empty if they are.
    """

    n_answers: int
    fewer_errors: float
    expected_errors: float
    n_labels: int
    min_gain: float
    withheld: str = ""

    @property
    def stop(self) -> bool:
        """Whether it is time to stop."""
        return self.fewer_errors < self.min_gain * self.n_answers / FORESEEN or not self.n_answers

    def to_record(self) -> dict[str, object]:
        """Return what `--json` shows."""
        return {**self._asdict(), "stop": self.stop, "words": self.describe()}

    def describe(self) -> str:
        """Return in words what the next answers would bring, and whether to stop."""
        if self.n_answers and math.isnan(self.fewer_errors):
            reason = self.withheld or "so far they tell nothing about single items"
            return f"What further answers would bring cannot be foreseen: {reason}."
        if self.withheld:
            return "Stop: no further answer would tell more."
        errors = f"expected errors among {plural(self.n_labels, 'label')} are about {self.expected_errors:.1f}"
        gain = "no further answer would tell more"
        if self.n_answers:
            gain = f"the next {plural(self.n_answers, 'answer')} would bring about {self.fewer_errors:.1f} errors fewer"
        return f"{'Stop: if' if self.stop else 'If'} workers err independently, {errors}, and {gain}."


def forecast_answers(found: Result, asking: Round, min_gain: object = MIN_GAIN) -> Forecast:
    """Return what the next answers of a round would bring."""
    if not (is_number(min_gain) and min_gain >= 0):
        raise parameter_error("min_gain", "forecast_answers", "a number >= 0", min_gain)
    labelled = found.labels
    errors = math.nan if found.withheld else labelled.n_items * (1 - labelled.mean_confidence)
    wish, part = asking.wish._replace(n=FORESEEN, budget=np.inf), asking.part
    chosen, survey = choose_questions(part, wish), look_at(part, wish)
    if survey is None or not len(chosen.items):
        return Forecast(0, 0.0, errors, labelled.n_items, float(min_gain), found.withheld)
    top = survey.find_top(FORESEEN)
    items = survey.items[top]
    n_pending = np.bincount(survey.pending.item, minlength=len(survey.posterior))[items]
    if found.withheld or not has_told(found):
        return Forecast(FORESEEN, math.nan, errors, labelled.n_items, float(min_gain), found.withheld)
    _, offsets, _ = survey.closed
    n_left = len(np.unique(wish.crew.group)) - np.diff(offsets)[items]
    who, counts = np.unique(chosen.workers, return_counts=True)
    powers = np.ones(1) if found.calibrated is None else np.array(found.calibrated.powers)
    ahead = Ahead(wish.crew.confusion[who], counts / counts.sum(), powers, found.seed)
    turned = ahead.find_turned(survey.posterior[items], MOST_AHEAD + int(n_pending.max()))
    n_answers, gain = spend(turned, n_pending, n_left)
    return Forecast(n_answers, gain, errors, labelled.n_items, float(min_gain))


def has_told(found: Result) -> bool:
    """Tell whether answers have told something about single items."""
    top = float(found.prior.max())
    told = found.labels.mean_confidence - top >= LEAST_TOLD * (1 - top)
    return told and not (top >= NEARLY_ALL and found.answers.vote_shares()[found.prior.argmax()] <= BY_VOTE)


class Ahead(NamedTuple):
    """How answers are drawn.

    Attributes
    ----------
    confusion : array (M, K, A)
        The matrices of those who answer.
    share : array (M,)
        How often each of them answers.
    powers : array
        What answers count: powers that are equally likely.
    seed : int
        Of what is random.
    """

    confusion: Floats
    share: Floats
    powers: Floats
    seed: int

    def find_turned(self, posterior: Floats, most: int) -> Floats:
        """Return R(n) of each item for n = 0 to `most` answers, (n_items, most + 1)."""
        rng = np.random.default_rng(self.seed)
        at_once = max(1, MOST_NUMBERS // (N_DRAWS * posterior.shape[1]))
        runs = [posterior[first : first + at_once] for first in range(0, len(posterior), at_once)]
        return np.concatenate([self._draw(rng, run, most) for run in runs])

    def _draw(self, rng: np.random.Generator, posterior: Floats, most: int) -> Floats:
        """Return R(n) of some items."""
        n_items, label = len(posterior), posterior.argmax(axis=1)
        truth = pick(rng.random((n_items, N_DRAWS)), np.cumsum(posterior, axis=1)[:, None])
        logs = np.repeat(np.log(np.maximum(posterior, 1e-300))[:, None], N_DRAWS, axis=1)
        rows, chances = np.log(np.maximum(self.confusion, 1e-300)), np.cumsum(self.confusion, axis=2)
        turned, power = np.zeros((n_items, most + 1)), np.resize(self.powers, N_DRAWS)[:, None]
        for n in range(1, most + 1):
            worker = rng.choice(len(self.share), size=truth.shape, p=self.share)
            answer = pick(rng.random(truth.shape), chances[worker, truth])
            logs += power * rows[worker, :, answer]
            raised = np.exp(logs - logs.max(axis=2, keepdims=True))
            raised /= raised.sum(axis=2, keepdims=True)
            own = raised[np.arange(n_items), :, label]
            turned[:, n] = (raised.max(axis=2) - own).mean(axis=1)
        return turned


def pick(number: Floats, cumulated: Floats) -> NDArray[np.int64]:
    """Return which entry random numbers from 0 to 1 fall on, by cumulated probabilities along the last axis.

    >>> pick(np.array([0.1, 0.7]), np.array([0.5, 1.0])).tolist()
    [0, 1]
    """
    return np.asarray(np.minimum((number[..., None] >= cumulated).sum(axis=-1), cumulated.shape[-1] - 1))


def spend(turned: Floats, n_pending: NDArray[np.int64], n_left: NDArray[np.int64]) -> tuple[int, float]:
    """Return how many answers can be had, `FORESEEN` at most, and what they bring where they bring most.

    Parameters
    ----------
    turned : array (n_items, n)
        The errors that 0, 1, ... answers about each item correct.
    n_pending, n_left : array of int (n_items,)
        Answers that will come anyway, and workers who can be asked.

    Examples
    --------
    >>> spend(np.array([[0.0, 0.1, 0.4], [0.0, 0.1, 0.1]]), np.array([0, 0]), np.array([2, 5]))
    (7, 0.5)
    """
    rows, ahead = np.arange(len(turned)), np.arange(1, MOST_AHEAD + 1)
    at = np.minimum(n_pending[:, None] + ahead, turned.shape[1] - 1)
    brought = turned[rows[:, None], at] - turned[rows, n_pending][:, None]
    rate = np.where(ahead <= np.maximum(n_left, 1)[:, None], brought / ahead, -np.inf)
    best = rate.argmax(axis=1)
    order = np.argsort(-rate[rows, best], kind="stable")
    before = np.cumsum(ahead[best][order]) - ahead[best][order]
    taken = np.clip(FORESEEN - before, 0, ahead[best][order])
    gain = float((taken * np.maximum(rate[rows, best][order], 0.0)).sum())
    return int(min(FORESEEN, np.maximum(n_left, 0).sum())), gain
