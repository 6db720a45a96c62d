r"""What a fit changed, compared with majority vote, and what can be said about it without any truth.

**What differs.** Majority vote breaks ties at random, and all figures are expectations over these draws. With
:math:`v_{nk}` the probability that the vote of item n falls on class k (1 / the number of tied classes), the calibrated
posterior q, and the fused label y, the labels differ at :math:`\sum_n (1 - v_{n y_n})` items, and the fit expects to be
right at a share of :math:`\frac{1}{N} \sum_n q_{n y_n}`, and the vote at :math:`\frac{1}{N} \sum_{nk} v_{nk} q_{nk}`.

**Whether it is better.** Some answers are hidden, everything else is fitted, and the hidden answers f of workers m
about items n are predicted by

.. math:: \log \sum_k q_{nk} \Gamma_m[k, f]

with posteriors q of the fit, and with vote shares instead, each with matrices counted from it. The difference is the
gain over the vote. The same is done with the mean of q over the hidden answers in place of q. It says nothing about
single items: a fit that does not predict better has found nothing, however badly the vote does. Answers about one item
(in one sequence) are right or wrong together, so standard errors are over items (sequences).

**Soft votes** are compared with the mean of their probabilities, which is seldom as sure as it should be. So its labels
may be as good although its probabilities are not, and labels are compared on their own: with y the label of the fit to
the other votes, v that of their mean, and l the most probable label of the hidden vote, by the mean of

.. math:: [l = y] - [l = v]
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.classes import find_set_labels
from ..answers.graph import Graph
from ..answers.random_choices import hide_answers, sample_items
from ..engines import Engine
from ..errors import quietly, shorten
from ..inference.estimator import LabelEstimator, LatentEstimator, renew
from ..inference.hidden_answers import Calibration, HiddenAnswers, Predicted, find_scorable, log_chance, mean_and_error
from ..inference.labels import find_tied
from ..inference.observations import HIDDEN, MOST_ANSWERS, Observations
from ..inference.workers.base import WorkerModel
from ..inference.workers.rows import shrink_rows
from ..kernels import Floats
from ..limits import ITEMS_AT_ONCE, release_mapped, side_by_side
from ..metrics.agreement import krippendorff_interval
from ..results.comparison import LEAST_HIDDEN, UNANIMOUS, Comparison, are_soft
from ..results.fitting import fit_model, take_vote
from ..results.intervals import UNCHECKED, is_share_checked
from ..results.record import LEAST_KNOWN_ALONE, find_range
from ..results.result import FitResult, weigh_copies

# With more classes, a table is not like those of which there are records.
MOST_CLASSES_OF_RECORD = 20


def compare_with_vote(
    model: LabelEstimator, fit: FitResult, observations: Observations, graph: Graph | None, engine: Engine
) -> tuple[Comparison, Floats]:
    """Compare a result with majority vote on the same answers, of which the shares (N, K) are returned too.

    The fits made here give no warnings: those of the result were given when it was fitted.
    """
    r, labels, calibrated = observations.responses, fit.labels, fit.calibrated
    n_items = labels.n_items
    with quietly():
        # A copy would give away what is hidden from another: they count once together, in the vote as well.
        used = weigh_copies(fit, r, np.arange(r.n_workers))
        level = "ordinal" if used.is_ordered else "nominal"
        few = used.n_responses <= MOST_ANSWERS
        alpha = krippendorff_interval(used if few else used.about(sample_items(used, MOST_ANSWERS, seed=0)), level)
        release_mapped()
        vote = take_vote(Observations(r, observations.gold), engine)
        fair = vote if used is r else take_vote(Observations(used, observations.gold), engine)
        hidden = find_hidden(model, fit, replace(observations, responses=used, features=None), graph, engine)
        gains = measure_gains(used, fair, hidden, fit.estimates.worker_model)

    release_mapped()
    n_labels = np.bincount(labels.codes, minlength=len(labels.classes))
    n_votes = np.diff(r.offsets)
    if (r.class_of_label < 0).any():
        n_votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
    # Items that may show what the fit keeps: those with two votes, whose label is not known.
    may_show = n_votes > 1 if observations.gold is None else (n_votes > 1) & (observations.gold.codes < 0)

    def compare_items(start: int, stop: int) -> list[tuple[Any, Any, Any]]:
        """Sums over runs of items, one by one: at how many labels differ, the vote is right and says the top class.

        Further those over items that all of their workers give to a class: how many there are, and how many of these
        have this label, (K,) each.
        """
        sums = []
        for number in range(start, stop):
            run = slice(number * ITEMS_AT_ONCE, (number + 1) * ITEMS_AT_ONCE)
            codes, shares = labels.codes[run], vote.labels.posterior[run]
            tied = find_tied(shares)
            chances = tied / tied.sum(axis=1, keepdims=True)
            figures = (
                np.sum(1 - chances[np.arange(len(chances)), codes]),
                np.einsum("nk,nk->", chances, labels.posterior[run]),
                chances[:, n_labels.argmax()].sum(),
            )
            agreed = (reduce(np.maximum, shares.T) > 1 - 1e-9) & may_show[run]
            voted = vote.labels.codes[run][agreed]
            kept = voted[codes[agreed] == voted]
            by_class = np.stack([np.bincount(each, minlength=len(n_labels)) for each in (voted, kept)])
            sums.append((np.array(figures), by_class[0], by_class[1]))
        return sums

    parts = chain.from_iterable(side_by_side(compare_items, -(-n_items // ITEMS_AT_ONCE), 4))
    (n_differ, n_right, n_top), n_agreed, n_kept = (sum(each) for each in zip(*parts, strict=True))
    release_mapped()
    kept = np.where(n_agreed >= UNANIMOUS, n_kept / np.maximum(n_agreed, 1), np.nan)
    lost = None if np.isnan(kept).all() else int(np.nanargmin(kept))

    accuracy = fit.expected_accuracy[0]
    calibration = Calibration(1.0) if calibrated is None else calibrated.calibration
    # Figures with both ends of their intervals.
    figures = {"expected_accuracy": fit.expected_accuracy, "alpha": alpha}
    if fit.intervals.levels is not None and len(labels.classes) > 2:  # of two levels, each label is right or one off
        figures |= dict(zip(("within_one", "absolute_error"), fit.intervals.levels.tolist(), strict=True))
    gain_names = ("held_out_gain", "held_out_error", "informed_gain", "informed_error", "label_gain", "label_error")
    further: dict[str, Any] = dict(zip(gain_names, gains, strict=True))
    for name, values in figures.items():
        further |= dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
    comparison = Comparison(
        n_items=n_items,
        # As expected over random ties; at least one if there are any: 0 means that all labels are those of the vote.
        n_differ=max(round(float(n_differ)), int(n_differ > 1e-9)),
        expected_gain=accuracy - float(n_right) / n_items,
        top_share=float(n_labels.max() / n_items),
        vote_top_share=float(n_top / n_items),
        kept_share=1.0 if lost is None else float(kept[lost]),
        lost=lost,
        blind_accuracy=calibrated.blind_accuracy if calibrated is not None and calibration.n_gold else accuracy,
        n_known=calibration.n_gold,
        n_known_right=calibration.n_right,
        share_known=0.0 if observations.gold is None else observations.gold.n_known / n_items,
        # Answers and fit are like those of which there are records; see `Comparison.like_record`.
        like_record=fit.model == "DawidSkene"
        and isinstance(model, LatentEstimator)
        and (model.workers, model.calibration) == ("confusion", "hidden answers")
        and fit.kind.whole_items
        and graph is None
        and fit.feature_result is None
        and not fit.given.has_priors
        and r.sequences is None
        and not r.silence_counts
        and not are_soft(r)
        and r.n_classes <= MOST_CLASSES_OF_RECORD,
        alpha_level=level,
        soft=r.soft is not None,
        **further,
    )
    release_mapped()
    # Why no expected accuracy is given, because a check has failed; nothing if none has.
    sets, reason = find_set_labels(r.classes.tolist()), ""
    if r.silence_doubt is not None:
        reason = "workers answer as labelling functions do, and their silence is ignored"
    elif sets:
        reason = f"some classes are sets of labels, such as {shorten(sets[0])}"
    elif are_soft(r) and r.soft is None:
        reason = "answers are spread over several labels, and how sure these make a label is not known"
    elif not fit.checked:
        reason = UNCHECKED
    elif comparison.untested:
        several = r.have_several_workers()
        alone = not is_share_checked(int(several.sum()), len(several))
        reason = "too few items have answers of two workers" if alone else "there are too few answers"
    else:
        starts = r.offsets[:-1][np.diff(r.offsets) > 0]
        agree = np.maximum.reduceat(r.label, starts) == np.minimum.reduceat(r.label, starts)
        if agree.all() and not r.silence_counts:
            reason = "workers never disagree, so nothing tells whether they copy each other"
        elif comparison.by_chance:
            reason = "the answers show no signal"
        elif comparison.collapsed:
            reason = "one class takes the items of others"
    if reason:
        names = [name for name in further if name.startswith(("expected_accuracy", "within_one", "absolute_error"))]
        unknown: dict[str, Any] = dict.fromkeys((*names, "blind_accuracy", "expected_gain"), math.nan)
        comparison = replace(comparison, withheld=reason, **unknown)
    # Known labels of a sequence are right or wrong together, so they do not tell how many are.
    if r.sequences is None and (comparison.by_record or comparison.n_known >= LEAST_KNOWN_ALONE):
        share = comparison.share_known
        range_of_others = find_range(comparison.find_densities(), max(1, round((1 - share) * n_items)))
        middle, low, high = (share + (1 - share) * each for each in range_of_others)
        comparison = replace(comparison, accuracy=middle, accuracy_low=low, accuracy_high=high)
    return comparison, vote.labels.posterior


def find_hidden(
    model: LabelEstimator, fit: FitResult, observations: Observations, graph: Graph | None, engine: Engine
) -> Predicted | None:
    """How well hidden answers are predicted by the others; None if none can be hidden.

    Calibration by hidden answers has found it. Any other model is fitted again, with a coupling that was learned taken
    as found.
    """
    r = observations.responses
    if fit.calibrated is not None and fit.calibrated.predicted is not None:
        return fit.calibrated.predicted
    # Where silence is an answer, one that is hidden would be another answer: silence.
    if r.silence_counts:
        return None
    hidden, unit = next(hide_answers(r, HIDDEN, 0))
    shown = observations.keep(~hidden)
    again = fit_model(renew_with_estimates(model, fit), shown, graph, engine, copies=[])
    answer = np.flatnonzero(hidden)
    item = r.items_of(answer)
    n_left = np.diff(shown.responses.offsets)[item] if graph is None and r.sequences is None else None
    judging = find_scorable(item, observations.gold, n_left)
    answer, unit = answer[judging], unit[judging]
    if not len(answer):
        return None
    counts, said = again.estimates.counts, (r.worker[answer], r.label[answer])
    if (kind := again.estimates.worker_model).accuracy_alone:
        shrunk = kind.of(r, r.class_of_label, r.n_classes).shrink(counts, *said)
    else:
        shrunk = shrink_rows(counts, *said)
    by_class = again.labels.posterior[r.items_of(answer)]
    return HiddenAnswers(answer, np.zeros_like(answer), unit, by_class, shrunk, shrunk).predict(1.0)


def renew_with_estimates(model: LabelEstimator, fit: FitResult, coupling: bool = True) -> LabelEstimator:
    """An unfitted model without callback, which takes the power as found, and the `coupling` too unless it is False."""
    settled: dict[str, Any] = {"callback": None} if "callback" in model.get_params() else {}
    if isinstance(model, LatentEstimator):
        if model.calibration != "none" and fit.calibrated is not None:
            settled["calibration"] = fit.calibrated.calibration.power
        if coupling and model._learns_coupling and fit.coupling is not None:
            settled["coupling"] = fit.coupling
    return renew(model, **settled)


def measure_gains(
    r: Answers, vote: FitResult, hidden: Predicted | None, kind: type[WorkerModel] | None = None
) -> tuple[float, float, float, float, float, float]:
    """The gains over the vote, over mean probabilities, and by labels, each with its standard error.

    The `kind` of workers says how answers are predicted by the vote, too.
    """
    if hidden is None or len(hidden.answer) < LEAST_HIDDEN:
        unknown = math.nan if r.silence_counts else math.inf
        return 0.0, unknown, 0.0, unknown, math.nan, math.nan
    answer = hidden.answer
    shares, by_class = np.empty((2, len(answer), r.n_classes))
    for fold in range(hidden.fold.max() + 1):
        here = hidden.fold == fold
        shares[here], by_class[here] = vote_without(r, vote, answer[here], kind)
    by_vote = hidden.score - log_chance(shares, by_class)
    unit = np.unique(r.owners_of(r.items_of(answer)), return_inverse=True)[1]
    sizes, share = np.bincount(unit), r.weights(answer)
    totals = [np.bincount(unit, share * gains).astype(np.float64) for gains in (by_vote, hidden.score - hidden.base)]
    by_label = math.nan, math.nan
    if r.soft is not None:
        said = r.class_of_label[r.label[answer]]
        right = (said == hidden.top).astype(np.float64) - (said == shares.argmax(axis=1))
        by_label = mean_and_error(np.bincount(unit, share * right).astype(np.float64), sizes)
    return *mean_and_error(totals[0], sizes), *mean_and_error(totals[1], sizes), *by_label


def vote_without(
    r: Answers, vote: FitResult, answer: NDArray[np.int64], kind: type[WorkerModel] | None = None
) -> tuple[Floats, Floats]:
    """Vote shares of the items of some answers, and how probable the answers are for each class, without them.

    Only the items of these answers change: the counts of the whole vote are corrected there.
    """
    items, item = np.unique(r.items_of(answer), return_inverse=True)
    about, owner = r.answers_about(items)
    weight = r.weights(about)
    left = np.where(np.isin(about, answer), 0.0, weight)
    shares = np.zeros((len(items), r.n_classes))
    if r.soft is not None:
        np.add.at(shares, owner, left[:, None] * r.class_votes(about))
    else:
        klass = r.class_of_label[r.label[about]]
        np.add.at(shares, (owner[klass >= 0], klass[klass >= 0]), left[klass >= 0])
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), r.vote_shares())
    worker, label = r.worker[answer], r.label[answer]
    if kind is not None and kind.accuracy_alone:
        workers, before = kind.of(r, r.class_of_label, r.n_classes), vote.labels.posterior
        part, shown = r.about(items), r.keep(~np.isin(np.arange(r.n_responses), answer)).about(items)
        counts = tally(workers, r, before) - tally(workers, part, before[items]) + tally(workers, shown, shares)
        return shares[item], workers.shrink(counts, worker, label)
    counts = vote.estimates.counts.copy()
    change = left[:, None] * shares[owner] - weight[:, None] * vote.labels.posterior[items][owner]
    np.add.at(counts, (r.worker[about], r.label[about]), change)
    return shares[item], shrink_rows(np.maximum(counts, 0.0), worker, label)


def tally(workers: WorkerModel, r: Answers, posterior: Floats) -> Floats:
    """The expected counts of answers, by posterior probability of each class."""
    counts = np.zeros(workers.table_shape)
    for block in Observations(r).lay_out(workers):
        rows, own = workers.count(block, posterior[block.first_item : block.first_item + block.n_items])
        counts[rows] += own
    return counts
