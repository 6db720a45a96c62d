r"""Probabilities one can bet on: posteriors are raised to a power, which is chosen by what they predict.

All models assume that workers err independently of each other. Where they do not, posteriors are too sure of
themselves. So a posterior q is reported as

    q_nk^t / sum_j q_nj^t

with one power t for all items. t = 1 changes nothing; the nearer it is to 0, the closer probabilities are to 1 / K. It
is chosen by hidden answers: some answers are hidden, the model is fitted to the others, and t is where the answers that
were hidden are predicted best,

    sum over hidden answers of log sum_k q_nk^t / Z_n Gamma_m[k, l]

A classifier that learned from the features of other items has not seen the answers to an item. So it is one more hidden
worker, whose labels are predicted by posteriors without what is known of the items beside their answers. If these are
too sure, the classifier agrees hardly more often where they are sure than elsewhere. The power is at most the largest
one whose prediction of the classifier's labels is within one standard error of the best.

Where labels are known (`gold`), each item is judged as if its label were not known. The logarithm of t has a normal
prior around the choice of hidden answers, with a standard deviation of 1, and its posterior mean given the known labels
is taken: there are few of them, and the best power would depend too much on which these are. No power is above 1, so
that a few labels lower it somewhat, whatever they say; on real crowds the choice of hidden answers is too large. Where
there are no hidden answers, the prior is around 1, with a standard deviation of 2, and the likeliest power is taken.

In a stream, hidden answers and known labels of all batches choose the power. What is kept of the scores s_u of hidden
units u at all powers are their number, their sum and the sum of s_u s_u^T: the lead of one power over another, and its
standard error, follow from these.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_number
from ..data.gold import Gold
from ..data.graph import Graph
from ..data.hashing import draw_units
from ..data.hidden_answers import count_units, hide_answers
from ..data.responses import Responses
from ..data.vocabulary import VERY_MANY
from ..errors import DataWarning, Sentence, parameter_error, plural, warn
from ..fitting.em import (
    Fit,
    Parameters,
    Problem,
    expect,
    infer_left_out,
    infer_posterior,
    maximise,
    run_em,
)
from ..fitting.statistics import Statistics, exchange
from ..kernels.types import Floats
from ..memory import release_unused
from ..specs import is_finite, is_whole
from .held_out import shrink_rows
from .intervals import ITEMS_AT_ONCE, Confidence

log = logging.getLogger("consilience")

if TYPE_CHECKING:
    from .guidance import Opinion
    from .latent import LatentModel

CHOICES = ("hidden answers", "gold", "none")
POWERS = np.geomspace(0.01, 1.0, 33)
# Log weights before anything is known: workers err independently, and the power is 1, or, as likely, they do not, and
# all powers from 0 to 1 are equally likely. (`POWERS` are dense where they are small.)
NOTHING_KNOWN = np.log(POWERS / POWERS.sum() + (POWERS == 1))
# So many equally likely powers stand for what is not known of the right one.
N_POWERS = 8
# Answers to hide in all, and pairs of worker and sequence, if there are so many: in folds of a tenth of all.
ENOUGH_ANSWERS, ENOUGH_PAIRS, HIDDEN, MOST_FOLDS = 20_000, 2_000, 0.1, 10
# From so many answers in sequences on, one fold must do: each may take half as long as the fit.
MANY_ANSWERS = 1_000_000
# A classifier judges powers by so many items, and its matrix takes so many steps of EM.
MOST_JUDGED, MATRIX_STEPS = 10_000, 30
# So few units are multiplied at a time that no threads are started for them, which would take longer.
FEW_UNITS = 200
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
    """

    power: float
    n_hidden: int = 0
    n_gold: int = 0
    given: bool = False
    n_judged: int = 0

    def describe(self) -> str:
        """Return in words how probabilities were calibrated."""
        if self.given:
            return f"Probabilities were raised to the power {self.power:.2g}, which was given."
        by = [plural(self.n_hidden, "hidden answer")] if self.n_hidden else []
        by += [plural(self.n_judged, "label") + " of the classifier"] if self.n_judged else []
        by += [plural(self.n_gold, "known label")] if self.n_gold else []
        if not by:
            return "Probabilities were not raised to a power: there was nothing to calibrate them by."
        if self.power == 1:
            return f"Probabilities were checked against {' and '.join(by)}, and needed no correction."
        warning = (
            ""
            if self.n_gold
            else " Errors that workers share cannot be seen in this way; known labels would show them."
        )
        return f"Probabilities were raised to the power {self.power:.2g}, chosen by {' and '.join(by)}.{warning}"


class Evidence(NamedTuple):
    """What speaks for each power: sums over hidden units and known labels. Those of the batches of a stream add up."""

    sizes: Floats  # (3,): hidden units, hidden answers, known labels
    scores: Floats  # (n_powers,): log probability of the hidden units
    products: Floats  # (n_powers, n_powers): of the scores of each unit
    known: Floats  # (n_powers,): log probability of the known labels

    @classmethod
    def nothing(cls) -> Evidence:
        """Return what is known before any answer."""
        n = len(POWERS)
        return cls(np.zeros(3), np.zeros(n), np.zeros((n, n)), np.zeros(n))

    @classmethod
    def of_hidden(cls, scores: Floats, n_answers: int) -> Evidence:
        """Return the sums over hidden units with these scores, (n_units, n_powers)."""
        sizes = np.array([len(scores), n_answers, 0.0])
        products = np.zeros((len(POWERS), len(POWERS)))
        for first in range(0, len(scores), FEW_UNITS):
            part = scores[first : first + FEW_UNITS]
            products += part.T @ part
        return cls(sizes, scores.sum(axis=0), products, np.zeros(len(POWERS)))

    def plus(self, other: Evidence) -> Evidence:
        """Return the sums over both."""
        return Evidence(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def with_known(self, known: KnownScores | None) -> Evidence:
        """Return the sums with known labels added."""
        if known is None:
            return self
        sizes = self.sizes + np.array([0.0, 0.0, known.n_labels])
        return self._replace(sizes=sizes, known=self.known + known.scores)

    def find_leads(self) -> tuple[Floats, Floats]:
        """Return the same as the function `find_leads`."""
        n_units, best = self.sizes[0], int(self.scores.argmax())
        lead, own = self.scores[best] - self.scores, np.diagonal(self.products)
        squares = np.maximum(own[best] - 2 * self.products[best] + own, 0.0)
        return lead, np.sqrt(np.maximum(squares - lead**2 / n_units, 0.0))


class Fold(NamedTuple):
    """Answers that were hidden, and what a fit to the others says about them.

    Attributes
    ----------
    answer : int64 array (n,)
        Which answers these are.
    posterior : array (n, K)
        The posterior of the item of each, before calibration.
    chances : array (n, K)
        How probable each is for each class, by counts that are shrunk as for `consilience.held_out_score`.
    """

    answer: NDArray[np.int64]
    posterior: Floats
    chances: Floats

    @classmethod
    def of(cls, r: Responses, answer: NDArray[np.int64], posterior: Floats, counts: Floats) -> Fold:
        """Return the fold from the expected counts (M, L, K) of the answers that were shown."""
        return cls(answer, posterior, shrink_rows(counts, r.worker[answer], r.label[answer]))

    def judge(self, power: float) -> Judged:
        """Return how well the answers are predicted if posteriors are raised to a power."""
        raised = raise_to(self.posterior, power)
        alike = np.broadcast_to(raised.mean(axis=0), raised.shape)
        return Judged(self.answer, log_chance(raised, self.chances), log_chance(alike, self.chances))


class Judged(NamedTuple):
    """How well hidden answers are predicted, in log probability.

    Attributes
    ----------
    answer : int64 array (n,)
        Which answers these are.
    score : array (n,)
        By the posterior of the item of each.
    base : array (n,)
        By the mean posterior of all of them, which says nothing about single items.
    """

    answer: NDArray[np.int64]
    score: Floats
    base: Floats


def log_chance(posterior: Floats, chances: Floats) -> Floats:
    """Return the log probability of answers from those of the classes of their items, and of the answers by class."""
    return np.asarray(np.log(np.maximum(np.einsum("ik,ik->i", posterior, chances), 1e-300)))


class Calibrated(NamedTuple):
    """What calibration found."""

    found: Calibration
    left_out: Floats  # posteriors that are yet to be raised to the power
    confidence: Confidence
    hidden: list[Judged]  # answers that were hidden, in folds
    evidence: Evidence  # about the power, of this batch and of all before


def are_findings(value: object) -> bool:
    """Tell whether a value from JSON is a `Calibration`."""
    if not isinstance(value, list) or len(value) != 5:
        return False
    power, n_hidden, n_gold, given, n_judged = value
    counts = (n_hidden, n_gold, n_judged)
    return is_finite(power) and power > 0 and all(map(is_whole, counts)) and isinstance(given, bool)


def are_powers(value: object) -> bool:
    """Tell whether a value from JSON is a list of powers. It is empty for files of earlier releases."""
    return isinstance(value, list) and all(is_finite(power) and power > 0 for power in value)


def check_calibration(owner: LatentModel) -> None:
    """Raise an error unless the parameter `calibration` has a value that it can have."""
    value = owner.calibration
    if not (value in CHOICES if isinstance(value, str) else is_number(value) and 0 < float(value) < np.inf):
        expected = f"one of {', '.join(map(repr, CHOICES))}, or a number > 0"
        raise parameter_error("calibration", type(owner).__name__, expected, value)


def calibrate(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    gold: Gold | None,
    opinion: Opinion | None = None,
    totals: Totals | None = None,
    known: KnownScores | None = None,
    earlier: Evidence | None = None,
) -> Calibrated:
    """Return how a model calibrates the posteriors of its fit.

    `opinion` is what a classifier says of the items, if it has a say. If the answers are a sample of a larger
    crowd, `totals` says how large that is, and `known` how well the known labels of all items are predicted. If they
    are a batch of a stream, `earlier` is what speaks for each power in the batches before.
    """
    evidence = Evidence.nothing() if earlier is None else earlier
    if owner.calibration == "none":
        confidence = Confidence(np.ones(1), lambda _, run: posterior[run])
        return Calibrated(Calibration(1.0, given=True), posterior, confidence, [], evidence)

    @cache  # only where it is needed: the search for the power takes memory itself
    def left_out() -> Floats:
        if r.n_responses >= VERY_MANY:
            release_unused()
        # Matrices that were given have learned from no item.
        return infer_left_out(problem, fit.parameters, fit.statistics, posterior) if owner.max_iter else posterior

    if not isinstance(owner.calibration, str):
        found = Calibration(float(owner.calibration), given=True)
        powers, hidden = np.array([found.power]), list[Judged]()
    elif owner._going_on is not None and owner._going_on.keeps_power and not owner.calibration_.given:
        found, powers, hidden = owner.calibration_, np.array(owner._powers), []
        kept = owner._past or owner._due  # the latter if nobody has asked for intervals since the last update
        evidence = evidence if kept is None else kept.evidence
    else:
        found, log_weights, hidden, evidence = find_power(
            owner, r, problem, fit, posterior, left_out, gold, opinion, totals, known, earlier
        )
        powers = draw_powers(log_weights)

    changed, honest = owner._find_raised(r), left_out()

    def raised(power: float, run: slice) -> Floats:
        return raise_where(changed[run], honest[run], power)

    return Calibrated(found, honest, Confidence(powers, raised, found.power), hidden, evidence)


def find_power(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    left_out: Callable[[], Floats],
    gold: Gold | None,
    opinion: Opinion | None,
    totals: Totals | None = None,
    known: KnownScores | None = None,
    earlier: Evidence | None = None,
) -> tuple[Calibration, Floats, list[Judged], Evidence]:
    """Return the power that hidden answers and known labels call for, and the log weight of each of `POWERS`.

    With them comes how well the hidden answers are predicted, at the power that they call for themselves: errors that
    workers share are in these answers too, and known labels lower the power because of such errors. Last comes what
    speaks for each power, in earlier batches too.
    """
    found, log_weights, hidden = Calibration(1.0), NOTHING_KNOWN, list[Judged]()
    evidence = Evidence.nothing() if earlier is None else earlier
    if owner.calibration == "hidden answers":
        found, log_weights, folds, evidence = find_by_hidden(owner, r, problem, fit, gold, totals, earlier)
        if opinion is not None:
            found, log_weights = limit_power(r, left_out(), opinion, found, log_weights)
        hidden = [fold.judge(found.power) for fold in folds]
    if known is None and gold is not None:
        known = score_known(owner, r, problem, fit, posterior, gold)
    evidence = evidence.with_known(known)
    n_known, scores = round(evidence.sizes[2]), evidence.known
    if n_known:
        if found.n_hidden or found.n_judged:
            log_weights = scores + log_density_around(found.power, 1.0)
            power = mean_power(log_weights)
        else:
            log_weights = scores + log_density_around(1.0, 2.0)
            power = float(POWERS[log_weights.argmax()])
        found = found._replace(power=power, n_gold=n_known)
    elif owner.calibration == "gold":
        lack = "There are no known labels" if known is None else "No known label was drawn at random"
        if gold is not None and gold.judging.any():
            lack = "The known labels that were drawn at random are those of items without answers"
        warn(
            DataWarning(
                f"{lack}, and probabilities were to be calibrated by known labels alone.",
                Sentence("Give some with {gold}."),
                Sentence("Or calibrate by hidden answers, with {calibration}.", calibration="hidden answers"),
                keyword="calibration",
            )
        )
    return found, log_weights, hidden, evidence


class KnownScores(NamedTuple):
    """How well known labels are predicted by posteriors that do not know them."""

    scores: Floats  # log probability of all labels at each of `POWERS`
    n_labels: int


def score_known(
    owner: LatentModel, r: Responses, problem: Problem, fit: Fit, posterior: Floats, gold: Gold
) -> KnownScores:
    """Judge items of known label as if it were not known.

    They were drawn at random, and the power changes their posteriors: not those of independent items without answers.
    """
    known = np.flatnonzero(gold.judging & owner._find_raised(r))
    if not len(known):
        return KnownScores(np.zeros(len(POWERS)), 0)
    unknown = infer_left_out(problem, fit.parameters, fit.statistics, posterior, use_gold=False)
    return KnownScores(score_gold(gold.codes[known], unknown[known]), len(known))


class Totals(NamedTuple):
    """How large a crowd is of which the answers are a sample."""

    n_units: int
    n_responses: int


class Rest(NamedTuple):
    """A fit to the answers that are not hidden, and the items to which some are hidden."""

    problem: Problem
    statistics: Statistics
    parameters: Parameters  # which give the posteriors
    item: NDArray[np.int64]  # the item of each hidden answer, as the problem counts them
    n_left: NDArray[np.int64]  # how many answers to it are left
    gold: Gold | None


def find_by_hidden(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    fit: Fit,
    gold: Gold | None,
    totals: Totals | None = None,
    earlier: Evidence | None = None,
) -> tuple[Calibration, Floats, list[Fold], Evidence]:
    """Return the power at which hidden answers are predicted best by fits to the others, which go on from this fit.

    With it come the log weight of each of `POWERS`, the hidden answers, and what is known of all batches so far.
    """
    scores, folds = judge_hidden(owner, r, problem, fit, gold, totals)
    n_hidden = sum(
        len(fold.answer) if r.weight is None else len(each) for fold, each in zip(folds, scores, strict=True)
    )
    together = np.concatenate([np.empty((0, len(POWERS))), *scores])
    evidence = Evidence.of_hidden(together, n_hidden)
    if earlier is not None:
        evidence = earlier.plus(evidence)
    if evidence.sizes[0] < LEAST_UNITS:
        return Calibration(1.0), NOTHING_KNOWN, folds, evidence
    # By all scores where these are there: rounding errors of their products are larger.
    leads = find_leads(together) if earlier is None else evidence.find_leads()
    return Calibration(choose_power(*leads), round(evidence.sizes[1])), weigh_powers(*leads), folds, evidence


def judge_hidden(
    owner: LatentModel, r: Responses, problem: Problem, fit: Fit, gold: Gold | None, totals: Totals | None = None
) -> tuple[list[Floats], list[Fold]]:
    """Return the scores of hidden units at each of `POWERS`, by fold, and the hidden answers."""
    n_units, n_responses = totals or Totals(count_units(r), r.n_responses)
    scores, folds = list[Floats](), list[Fold]()
    # Where silence is an answer, one that is hidden would be another answer: silence. A single class suits all powers.
    if r.silence_counts or owner.max_iter == 0 or n_units < 2 or r.n_classes < 2:
        return scores, folds
    start = fit.parameters._replace(prior=fit.parameters.prior._replace(parts=None))  # it is not learned again
    share, n_folds = choose_folds(n_units, None if r.sequences is None else n_responses)
    # Earlier batches are shown: if they are larger than this one, few of all answers are hidden at a time.
    few = share < HIDDEN or count_earlier(problem) > r.n_responses
    hiding = hide_answers(r, share, owner.seed, n_folds, None if totals is None else n_units)
    for number, (hidden, unit) in enumerate(hiding, 1):
        log.info("Calibrating by hidden answers: fit %d of at most %d", number, n_folds)
        if not few:
            rest = fit_rest(owner, r, problem, start, gold, hidden, owner.max_iter)
        elif totals is not None or (r.sequences is None and problem.graph is None):
            rest = exchange_items(owner, r, problem, fit, start, gold, hidden)
        else:
            rest = fit_rest(owner, r, problem, start, gold, hidden, 0)
        apart = r.sequences is None and problem.graph is None
        judging = find_judging(rest.item, rest.gold, rest.n_left if apart else None)
        answer = np.flatnonzero(hidden)[judging]
        item, unit = rest.item[judging], np.unique(unit[judging], return_inverse=True)[1]
        if not len(item):
            continue
        learned = maximise(rest.problem, rest.statistics, start.prior)
        posterior = infer_rest(rest)
        left_out = infer_left_out(rest.problem, learned, rest.statistics, posterior)[item]
        workers, counts = rest.problem.workers, rest.statistics.counts
        confusion = workers.plain_mean(learned.workers, counts, start.prior)
        scores.append(score_powers(r, answer, unit, left_out, confusion))
        folds.append(Fold.of(r, answer, left_out, workers.plain_counts(counts)))
    return scores, folds


def count_earlier(problem: Problem) -> float:
    """Return how many answers of earlier batches count."""
    return 0.0 if problem.earlier is None else float(problem.earlier.counts.sum())


def pose_again(
    owner: LatentModel, r: Responses, problem: Problem, start: Parameters, graph: Graph | None, gold: Gold | None
) -> Problem:
    """Return the problem of some of its answers, or items, with a prior that is not learned again."""
    posed = owner._pose(r, problem.structure, graph, gold, problem.engine)
    return replace(posed, prior=start.prior, earlier=problem.earlier)


def fit_rest(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    start: Parameters,
    gold: Gold | None,
    hidden: NDArray[np.bool_],
    max_iter: int,
) -> Rest:
    """Fit the model to the answers that are not hidden; with `max_iter=0`, only count them once again."""
    shown, item = r.keep(~hidden), r.items_of(np.flatnonzero(hidden))
    rest = pose_again(owner, shown, problem, start, problem.graph, gold)
    again = run_em(rest, start, max_iter, owner.tol, owner.callback, owner.acceleration)
    n_left = np.diff(shown.offsets)[item]
    if r.sequences is not None or problem.graph is not None:
        return Rest(rest, again.statistics, again.parameters, item, n_left, gold)
    # Independent items can be judged without the others.
    items, item = np.unique(item, return_inverse=True)
    known = None if gold is None else Gold(gold.codes[items], gold.judging[items])
    few = pose_again(owner, shown.about(items), problem, start, None, known)
    return Rest(few, again.statistics, again.parameters, item, n_left, known)


def exchange_items(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    fit: Fit,
    start: Parameters,
    gold: Gold | None,
    hidden: NDArray[np.bool_],
) -> Rest:
    r"""Count the answers that are not hidden, at the parameters of the fit.

    If few answers of many are hidden, posteriors of other items hardly change. So only items to which some are hidden
    are counted again: with S the statistics of the fit, those of the others are

    .. math:: S - S_{\text{items}} + S_{\text{items without hidden answers}}

    In a sample of sequences, all of them are.
    """
    item = r.items_of(np.flatnonzero(hidden))
    before, known = r, gold
    if r.sequences is None:
        items, item = np.unique(item, return_inverse=True)
        known = None if gold is None else Gold(gold.codes[items], gold.judging[items])
        before, hidden = r.about(items), hidden[r.answers_about(items)[0]]
    after = before.keep(~hidden)
    posed = [pose_again(owner, answers, problem, start, None, known) for answers in (before, after)]
    statistics = exchange(fit.statistics, *(expect(each, start) for each in posed))
    return Rest(posed[1], statistics, start, item, np.diff(after.offsets)[item], known)


def infer_rest(rest: Rest) -> Floats:
    """Return the posteriors of the items to which answers are hidden."""
    problem, found = rest.problem, rest.parameters
    return infer_posterior(
        problem.engine, problem.placed, problem.factors(found.workers), found.structure, problem.graph
    )[0]


def find_judging(
    item: NDArray[np.int64], gold: Gold | None, n_left: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Tell which hidden answers, to these items, can judge a power.

    Those to items whose label is known cannot. Of an independent item without another answer (`n_left` says how many
    are left) all that is known is the class prior, which is reported as it is.
    """
    judging = np.ones(len(item), bool) if gold is None else gold.codes[item] < 0
    return judging if n_left is None else judging & (n_left > 0)


def raise_to(posterior: Floats, power: float) -> Floats:
    """Return the posteriors raised to a power, normalised. What is certain stays so.

    >>> raise_to(np.array([[0.8, 0.2], [1.0, 0.0]]), 0.5).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """
    if power == 1.0:
        return posterior
    raised = (posterior / reduce(np.maximum, posterior.T)[:, None]) ** power
    raised[posterior <= 0] = 0.0
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def raise_where(changed: NDArray[np.bool_], posterior: Floats, power: float) -> Floats:
    """Return the posteriors, those that are to be `changed` raised to a power."""
    raised = raise_to(posterior, power)
    return raised if changed.all() else np.where(changed[:, None], raised, posterior)


def raise_in_place(changed: NDArray[np.bool_], posterior: Floats, power: float) -> None:
    """Raise posteriors to a power run by run, since a second array of all of them would take much memory."""
    for first in range(0, len(posterior), ITEMS_AT_ONCE):
        run = slice(first, first + ITEMS_AT_ONCE)
        posterior[run] = raise_where(changed[run], posterior[run], power)


def choose_folds(n_units: int, n_answers: int | None = None) -> tuple[float, int]:
    """Return the share of units to hide at a time, and how often.

    A unit is an answer, or a pair of worker and sequence: then there are `n_answers` in all.
    """
    wanted = ENOUGH_ANSWERS / n_units
    if n_answers is not None:
        wanted = max(ENOUGH_ANSWERS / n_answers, ENOUGH_PAIRS / n_units)
    share = min(HIDDEN, wanted)
    most = MOST_FOLDS if n_answers is None or n_answers < MANY_ANSWERS else 1
    return share, int(np.clip(np.ceil(wanted / share - 1e-9), 1, most))


def score_powers(
    r: Responses, answer: NDArray[np.int64], unit: NDArray[np.int64], posterior: Floats, confusion: Floats
) -> Floats:
    """Return the log probability of each hidden unit at each of `POWERS`, (n_units, n_powers).

    `posterior` (n_hidden, K), that of the item of each hidden answer, and `confusion` (M, L, K) are of a fit to the
    other answers. The unit of a hidden answer is the answer itself, or all answers of its worker in the sequence, which
    are right or wrong together.
    """
    chances = np.ascontiguousarray(confusion[r.worker[answer], r.label[answer]])
    with np.errstate(divide="ignore"):
        logs = np.log(posterior)
    logs -= logs.max(axis=1, keepdims=True)
    weight = None if r.weight is None else r.weight[answer]
    scores = []
    for power in POWERS.tolist():
        raised = np.exp(power * logs)  # what is impossible stays so
        probability = np.einsum("ik,ik->i", raised, chances) / np.einsum("ik->i", raised)
        score = np.log(np.maximum(probability, 1e-300))
        scores.append(np.bincount(unit, score if weight is None else weight * score))
    return np.stack(scores, axis=1)


def limit_power(
    r: Responses, left_out: Floats, opinion: Opinion, found: Calibration, log_weights: Floats
) -> tuple[Calibration, Floats]:
    """Return the power, and the log weights, after a classifier has judged how sure posteriors may be."""
    rows = np.flatnonzero(np.diff(r.offsets)[opinion.item] > 0)
    rows = draw_units(rows, opinion.unit, MOST_JUDGED)
    unit = np.unique(opinion.unit[rows], return_inverse=True)[1]
    if len(rows) == 0 or unit[-1] + 1 < LEAST_UNITS:
        return found, log_weights
    scores = score_by_classifier(r, left_out, opinion.item[rows], opinion.code[rows], unit)
    lead, error = find_leads(scores)
    limit = float(POWERS[lead <= error].max())
    if limit >= found.power:
        return found, log_weights
    return found._replace(power=limit, n_judged=len(rows)), log_weights + weigh_powers(lead, error)


def score_by_classifier(
    r: Responses, left_out: Floats, item: NDArray[np.int64], label: NDArray[np.int64], unit: NDArray[np.int64]
) -> Floats:
    """Return the log probability of the labels that a classifier gives to items, at each of `POWERS`, (units, powers).

    The classifier is taken for one more worker, whose matrix suits each power best. What is known of the items beside
    their answers, its own opinion among it, is taken out of the posteriors `left_out`. A unit is an item, or all items
    of a sequence.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(left_out[item])
    if r.log_prior is not None:
        logs -= np.where(np.isfinite(r.log_prior[item]), r.log_prior[item], 0.0)
    logs -= logs.max(axis=1, keepdims=True)
    said = np.eye(r.n_classes)[label]
    scores = []
    for power in POWERS.tolist():
        known = np.exp(power * logs)
        known /= known.sum(axis=1, keepdims=True)
        confusion = 0.5 * np.eye(r.n_classes) + 0.5 / r.n_classes
        for _ in range(MATRIX_STEPS):
            joint = known * confusion[:, label].T
            counts = (joint / joint.sum(axis=1, keepdims=True)).T @ said + 0.1
            confusion = counts / counts.sum(axis=1, keepdims=True)
        score = np.log(np.einsum("nk,nk->n", known, confusion[:, label].T))
        scores.append(np.bincount(unit, score))
    return np.stack(scores, axis=1)


def choose_power(lead: Floats, error: Floats) -> float:
    """Return the smallest power whose score is within one standard error, paired over units, of the best one's.

    `lead` and `error` are those of `find_leads`. The smallest: errors that workers share are predicted as if they were
    the truth, so that hidden answers call for too large a power rather than for too small a one.
    """
    return float(POWERS[(lead <= error).argmax()])


def find_leads(scores: Floats) -> tuple[Floats, Floats]:
    """Return by how much the best power's score exceeds each other's, and the standard error, paired over units."""
    lead = scores[:, [int(scores.sum(axis=0).argmax())]] - scores
    return lead.sum(axis=0), lead.std(axis=0) * np.sqrt(len(scores))


def weigh_powers(lead: Floats, error: Floats) -> Floats:
    """Return the log weight of each of `POWERS` by its scores at hidden units, whose `find_leads` these are.

    Near the best power the lead L of that one is quadratic in the distance, and its standard error E linear. If units
    are independent and the model holds, the log likelihood is -L = -2 (L / E)^2. The latter also holds where units
    hang together.
    """
    ratio = np.divide(lead, error, out=np.zeros_like(lead), where=error > 0)
    return np.asarray(NOTHING_KNOWN - 2 * ratio**2)


def draw_powers(log_weights: Floats) -> Floats:
    """Return a few of `POWERS` that are equally likely: quantiles of their distribution.

    >>> draw_powers(NOTHING_KNOWN).round(1).tolist()
    [0.1, 0.4, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    weights = np.exp(log_weights - log_weights.max())
    shares = (np.arange(N_POWERS) + 0.5) / N_POWERS
    return np.asarray(POWERS[np.searchsorted(np.cumsum(weights) / weights.sum(), shares).clip(max=len(POWERS) - 1)])


def score_gold(gold: NDArray[np.int32], posterior: Floats) -> Floats:
    """Return the log probability of known classes at each of `POWERS`, by posteriors (n, K) that did not know them."""
    rows = np.arange(len(gold))
    return np.array([np.log(np.maximum(raise_to(posterior, t)[rows, gold], 1e-12)).sum() for t in POWERS])


def mean_power(scores: Floats) -> float:
    """Return the power whose logarithm is the mean of those of `POWERS`, with log weights `scores`."""
    weights = np.exp(scores - scores.max())
    return float(np.exp((weights * np.log(POWERS)).sum() / weights.sum()))


def log_density_around(power: float, deviation: float) -> Floats:
    """Return the log density of each of `POWERS`: normal in the logarithm, around a power."""
    return np.asarray(-0.5 * ((np.log(POWERS) - np.log(power)) / deviation) ** 2)
