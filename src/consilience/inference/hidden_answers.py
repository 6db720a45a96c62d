r"""Answers that are hidden from a fit, how well the fit to the others predicts them, and the power they call for.

Some answers are hidden, and each is predicted by the others. A posterior q is reported as

    q_nk^t / Z_n,    Z_n = sum_j q_nj^t

with one power t for all items. t = 1 changes nothing; the nearer it is to 0, the closer probabilities are to 1 / K.
`POWERS` are tried. A hidden answer l of worker m about item n has the score

    log sum_k q_nk^t / Z_n Gamma_m[k, l]

times how much the answer counts, with posteriors and matrices that have not seen it. With s_u(t) the score of a unit u
(an answer, or all answers of a worker in a sequence, which are hidden together), and t* the power of the largest sum,
the lead of t* over t and its standard error are

    L(t) = sum_u d_u,    E(t) = sqrt(sum_u d_u^2 - L(t)^2 / n),    d_u = s_u(t*) - s_u(t)

The smallest t with L(t) <= E(t) is taken. The same predictions compare a fit with majority vote. In a stream, hidden
answers and known labels of all batches choose the power: log likelihoods -2 (L / E)^2, and log probabilities of known
labels, add up over batches.

Nothing is fitted again. From the parameters of the fit, two steps of EM on the answers that are left give the
parameters that judge the hidden ones. This is repeated in a few folds. About `MOST_ANSWERS` answers are looked at,
those to items (sequences) with the smallest random numbers. The statistics of all others, among them those of earlier
batches of a stream, stay as the fit has them: with S the statistics of the fit and S_I those of the items that are
looked at, S - S_I is added to each E-step.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.gold import Gold
from ..answers.random_choices import count_units, hide_answers, sample_items
from ..errors import ParameterError, plural
from ..kernels import NEARLY_ZERO, Floats
from .em import Fit, Problem, infer_left_out
from .observations import HIDDEN, MOST_ANSWERS, Observations
from .structures import Trail

# Folds, and steps of EM that follow answers that are hidden.
N_FOLDS, HIDDEN_STEPS = 5, 2
# Of many classes fewer answers are looked at: each has a probability for each class.
MOST_NUMBERS, LEAST_ANSWERS = 5_000_000, 2_000
POWERS = np.geomspace(0.01, 1.0, 33)
# Log weights before anything is known: workers err independently, and the power is 1, or, as likely, they do not, and
# all powers from 0 to 1 are equally likely. (`POWERS` are dense where they are small.)
NOTHING_KNOWN = np.log(POWERS / POWERS.sum() + (POWERS == 1))
# So many equally likely powers stand for what is not known of the right one.
N_POWERS = 8
# Fewer units than this say nothing.
LEAST_UNITS = 20


class Calibration(NamedTuple):
    """The power that posteriors were raised to, and what it was chosen by.

    Attributes
    ----------
    power : float
        The power.
    n_hidden : int
        Hidden answers by which it was chosen.
    n_gold : int
        Known labels by which it was chosen.
    given : bool
        Whether it was given instead.
    n_judged : int
        Items by which a classifier of their features lowered it.
    n_right : int
        Known labels that the model gives if it does not know them.
    power_before : float
        The power without known labels.
    lowered : bool
        Whether it is about half of what hidden answers called for, since classifiers share errors.
    """

    power: float
    n_hidden: int = 0
    n_gold: int = 0
    given: bool = False
    n_judged: int = 0
    n_right: int = 0
    power_before: float = 1.0
    lowered: bool = False

    def describe(self) -> str:
        """In words how probabilities were calibrated."""
        if self.given:
            return f"Probabilities were raised to the power {self.power:.2g}, which was given."
        by = [plural(self.n_hidden, "hidden answer")] if self.n_hidden else []
        by += [plural(self.n_judged, "label") + " of the classifier"] if self.n_judged else []
        by += [plural(self.n_gold, "known label")] if self.n_gold else []
        if not by:
            return "Probabilities were not raised to a power: there was nothing to calibrate them by."
        if self.power == 1:
            return f"Probabilities were checked against {' and '.join(by)}, and needed no correction."
        text = f"Probabilities were raised to the power {self.power:.2g}, chosen by {' and '.join(by)}."
        if self.lowered:
            unseen = "but classifiers share errors that these do not show"
            return f"{text} Hidden answers alone call for twice as much, {unseen}."
        if self.n_gold:
            return text
        return f"{text} Errors that workers share cannot be seen in this way; known labels would show them."


def raise_to(posterior: Floats, power: float) -> Floats:
    """The posteriors raised to a power, normalised. What is certain stays so.

    >>> raise_to(np.array([[0.8, 0.2], [1.0, 0.0]]), 0.5).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """
    if power == 1.0:
        return posterior
    raised = (posterior / reduce(np.maximum, posterior.T)[:, None]) ** power
    raised[posterior <= 0] = 0.0
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def raise_where(changed: NDArray[np.bool_], posterior: Floats, power: float) -> Floats:
    """The posteriors, those that are to be `changed` raised to a power."""
    raised = raise_to(posterior, power)
    return raised if changed.all() else np.where(changed[:, None], raised, posterior)


def score_powers(posterior: Floats, by_class: Floats, unit: NDArray[np.int64], weight: Floats | None = None) -> Floats:
    """The log probability of each hidden unit at each of `POWERS`, (n_units, n_powers).

    `posterior` (n, K) is that of the item of each hidden answer, and `by_class` (n, K) how probable the answer is for
    each class, both by the other answers. The unit of a hidden answer is the answer itself, or all answers of its
    worker in the sequence, which are right or wrong together. `weight` is how much each answer counts.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(posterior)
    logs -= logs.max(axis=1, keepdims=True)
    scores = []
    for power in POWERS.tolist():
        raised = np.exp(power * logs)  # what is impossible stays so
        score = log_chance(raised, by_class) - np.log(np.einsum("ik->i", raised))
        scores.append(np.bincount(unit, score if weight is None else weight * score))
    return np.stack(scores, axis=1)


def log_chance(posterior: Floats, by_class: Floats) -> Floats:
    """The log probability of answers from those of the classes of their items, and of the answers by class."""
    return np.asarray(np.log(np.maximum(np.einsum("ik,ik->i", posterior, by_class), NEARLY_ZERO)))


def score_gold(gold: NDArray[np.int32], posterior: Floats) -> Floats:
    """The log probability of known classes at each of `POWERS`, by posteriors (n, K) that did not know them."""
    rows = np.arange(len(gold))
    return np.array([np.log(np.maximum(raise_to(posterior, t)[rows, gold], 1e-12)).sum() for t in POWERS])


def weigh_powers(scores: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Which of `POWERS` are near the best by the scores of units, and the log weight of each.

    Near are those within one standard error, paired over units. Of these the smallest is taken: errors that workers
    share are predicted as if they were the truth, so that hidden answers call for too large a power rather than for too
    small a one. Near the best power the lead L of that one is quadratic in the distance, and its standard error E
    linear. If units are independent and the model holds, the log likelihood is -L = -2 (L / E)^2. The latter also holds
    where units hang together.
    """
    leads = scores[:, [int(scores.sum(axis=0).argmax())]] - scores
    lead, error = leads.sum(axis=0), leads.std(axis=0) * np.sqrt(len(scores))
    ratio = np.divide(lead, error, out=np.zeros_like(lead), where=error > 0)
    return lead <= error, NOTHING_KNOWN - 2 * ratio**2


def add_batch(
    before: Calibration, earlier: Floats, calibration: Calibration, log_weights: Floats
) -> tuple[Calibration, Floats]:
    """The power that hidden answers of all batches call for, and the log weights of `POWERS`.

    `earlier` are those of the batches before, `log_weights` those of the last one. As for one batch, it is the smallest
    power whose lead is within one standard error of the best.
    """
    n_hidden = before.n_hidden + calibration.n_hidden
    if not n_hidden:
        return calibration, log_weights
    log_likelihood = earlier + log_weights - 2 * NOTHING_KNOWN
    power = float(POWERS[(log_likelihood >= log_likelihood.max() - 2).argmax()])
    return Calibration(power, n_hidden), NOTHING_KNOWN + log_likelihood


def mean_power(scores: Floats) -> float:
    """The power whose logarithm is the mean of those of `POWERS`, with log weights `scores`."""
    weights = np.exp(scores - scores.max())
    return float(np.exp((weights * np.log(POWERS)).sum() / weights.sum()))


def log_density_around(power: float, deviation: float) -> Floats:
    """The log density of each of `POWERS`: normal in the logarithm, around a power."""
    return np.asarray(-0.5 * ((np.log(POWERS) - np.log(power)) / deviation) ** 2)


class HiddenAnswers(NamedTuple):
    """Hidden answers, ascending, and what the others say about them, (n,) or (n, K) each."""

    answer: NDArray[np.int64]  # which answers these are
    fold: NDArray[np.int64]  # those of a fold were hidden together
    unit: NDArray[np.int64]  # 0, 1, ...: an answer, or all answers of a worker to a sequence
    posterior: Floats  # of the item of each, before calibration
    by_class: Floats  # the probability of each for each class, by the worker's matrix
    shrunk: Floats  # the same by counts that are shrunk as for `consilience.held_out_score`
    weight: Floats | None = None  # how much each counts

    def choose_power(self) -> tuple[Calibration, Floats]:
        """The power at which they are predicted best, and the log weight of each of `POWERS`."""
        scores = score_powers(self.posterior, self.by_class, self.unit, self.weight)
        if len(scores) < LEAST_UNITS:
            return Calibration(1.0), NOTHING_KNOWN
        near, log_weights = weigh_powers(scores)
        n_hidden = len(scores) if self.weight is not None else len(self.answer)
        return Calibration(float(POWERS[near.argmax()]), n_hidden), log_weights

    def predict(self, power: float) -> Predicted:
        """How well they are predicted if posteriors are raised to a power."""
        raised = raise_to(self.posterior, power)
        alike = np.broadcast_to(raised.mean(axis=0), raised.shape)
        score, base = log_chance(raised, self.shrunk), log_chance(alike, self.shrunk)
        return Predicted(self.answer, self.fold, score, base, self.posterior.argmax(axis=1))


class Predicted(NamedTuple):
    """How well hidden answers are predicted, in log probability, (n,) each."""

    answer: NDArray[np.int64]
    fold: NDArray[np.int64]
    score: Floats  # by the posterior of the item of each
    base: Floats  # by the mean posterior of all of them, which says nothing about single items
    top: NDArray[np.int64]  # the most probable class of the item of each


def hide_from_fit(observations: Observations, problem: Problem, fit: Fit, seed: int) -> HiddenAnswers | None:
    """Hide answers, and predict them by two steps from the fit to all; None if none can be hidden."""
    r = observations.responses
    # Where silence is an answer, one that is hidden would be another answer: silence. A single class suits all powers.
    if r.silence_counts or r.n_classes < 2:
        return None
    start = fit.parameters._replace(prior=fit.parameters.prior.fixed())
    part, rows, others = observations, None, problem.earlier
    most = min(MOST_ANSWERS, max(MOST_NUMBERS // r.n_classes, LEAST_ANSWERS))
    if problem.graph is None and r.n_responses > most:
        items = sample_items(r, most, seed)
        part, rows = observations.about(items), r.answers_about(items)[0]
    r = part.responses
    if count_units(r) < 2:
        return None

    if rows is not None:
        others = problem.subtract(fit, part)
    n_folds = N_FOLDS
    if problem.graph is not None and problem.graph.n_edges and cast(Any, fit.parameters.structure).coupling:
        # A network is inferred as a whole, and posteriors near 0 and 1 need more answers to be judged by.
        n_folds = 2 * N_FOLDS if r.n_responses <= MOST_ANSWERS else 1
    places, predictions = list[NDArray[np.int64]](), list[Floats]()
    for number, (hidden, unit) in enumerate(hide_answers(r, HIDDEN, seed, n_folds)):
        shown, answer, trail = part.keep(~hidden), np.flatnonzero(hidden), Trail()
        rest, parameters = replace(problem.about(shown), prior=start.prior, earlier=others), start
        for _ in range(HIDDEN_STEPS):
            parameters = rest.maximise(rest.expect(parameters, trail), start.prior)
        statistics = rest.expect(parameters, trail)
        last = rest.maximise(statistics, start.prior)
        left_out = infer_left_out(rest, last, statistics, rest.infer(parameters))
        item = r.items_of(answer)
        alone = problem.graph is None and r.sequences is None
        judging = find_scorable(item, part.gold, np.diff(shown.responses.offsets)[item] if alone else None)
        answer, unit, item = answer[judging], unit[judging], item[judging]
        worker, label = r.worker[answer], r.label[answer]
        matrices = rest.workers.plain_mean(last.workers, statistics.counts, start.prior)
        shrunk = rest.workers.shrink(statistics.counts, worker, label)
        places.append(np.stack([answer, np.full_like(answer, number), unit]))
        predictions.append(np.stack([left_out[item], rest.workers.predict(matrices, worker, label), shrunk]))
    place, (left_out, by_class, shrunk) = np.concatenate(places, axis=1), np.concatenate(predictions, axis=1)
    if not place.size:
        return None
    order = np.argsort(place[0], kind="stable")
    answer, fold, unit = place[:, order]
    # Units are numbered anew, since those of items that cannot judge are gone.
    unit = np.unique(fold * r.n_responses + unit, return_inverse=True)[1]
    return HiddenAnswers(
        answer if rows is None else rows[answer],
        fold,
        unit,
        left_out[order],
        by_class[order],
        shrunk[order],
        None if r.amount is None else r.amount[answer],
    )


def find_scorable(
    item: NDArray[np.int64], gold: Gold | None, n_left: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Tell which hidden answers, to these items, can judge a power.

    Those to items whose label is known cannot. Of an independent item without another answer (`n_left` says how many
    are left) all that is known is the class prior, which is reported as it is.
    """
    judging = np.ones(len(item), bool) if gold is None else gold.codes[item] < 0
    return judging if n_left is None else judging & (n_left > 0)


class HeldOutScore(NamedTuple):
    """How well hidden answers were predicted. Scores of two models on the same hidden answers can be compared."""

    score: float  # mean log probability of a hidden answer
    error: float  # its standard error
    n_answers: int
    totals: Floats  # log probability of each hidden unit: an answer, or a worker's answers in one sequence
    sizes: NDArray[np.int64]  # answers in each unit
    hidden: NDArray[np.int64]  # which answers were hidden

    @classmethod
    def of(cls, totals: Floats, sizes: NDArray[np.int64], hidden: NDArray[np.int64]) -> HeldOutScore:
        """The score of hidden answers."""
        return cls(*mean_and_error(totals, sizes), len(hidden), totals, sizes, hidden)

    def minus(self, other: HeldOutScore) -> tuple[float, float]:
        """The difference of two scores, and the standard error of the paired difference."""
        if not np.array_equal(self.hidden, other.hidden):
            raise ParameterError("The two scores are not of the same hidden answers: use the same fraction and seed.")
        return mean_and_error(self.totals - other.totals, self.sizes)

    def plus(self, other: HeldOutScore) -> HeldOutScore:
        """The score of the hidden answers of both, as of two folds."""
        totals, sizes = np.concatenate([self.totals, other.totals]), np.concatenate([self.sizes, other.sizes])
        return HeldOutScore.of(totals, sizes, np.concatenate([self.hidden, other.hidden]))


def score_hidden(
    r: Answers, hidden: NDArray[np.bool_], unit: NDArray[np.int64], posterior: Floats, by_class: Floats
) -> HeldOutScore:
    """Score hidden answers by the posterior of a fit to the others, and by how probable they are for each class."""
    logs = log_chance(posterior[r.item_of_answer()[hidden]], by_class)
    totals = np.bincount(unit, weights=logs * r.weights(np.flatnonzero(hidden))).astype(np.float64)
    return HeldOutScore.of(totals, np.bincount(unit), np.flatnonzero(hidden))


def mean_and_error(totals: Floats, sizes: NDArray[np.int64]) -> tuple[float, float]:
    """The mean per answer, and its standard error over units."""
    n = sizes.sum()
    mean = float(totals.sum() / n)
    if len(totals) < 2:
        return mean, float("inf")
    spread = np.sum((totals - mean * sizes) ** 2) * len(totals) / (len(totals) - 1)
    return mean, float(np.sqrt(spread) / n)


class CouplingScore(NamedTuple):
    """How well hidden answers were predicted with one coupling."""

    coupling: float
    score: float  # mean log probability
    error: float  # its standard error


def explain_choice(chosen: float, scores: list[CouplingScore], words: str, note: str = "", unit: float = 1.0) -> str:
    """Say in words which coupling was chosen, and why; all couplings times a unit, which a note may explain."""
    best = max(scores, key=lambda entry: entry.score)
    tried = ", ".join(f"{entry.coupling * unit:.3g}: {entry.score:.4f}" for entry in scores)
    return (
        f"Coupling {chosen * unit:.3g}{note}: {words}. Hidden answers were predicted best at "
        f"{best.coupling * unit:.3g} (mean log probability by coupling: {tried}); "
        "the smallest coupling within one standard error was taken."
    )
