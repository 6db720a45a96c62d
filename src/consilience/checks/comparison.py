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
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.random_choices import find_owners, hide_answers
from ..answers.slips import doubt_silence, find_sets
from ..engines.base import Engine
from ..errors import quietly, shorten
from ..inference import ITEMS_AT_ONCE
from ..inference.hidden_fits import HiddenAnswers, Predicted, can_judge, log_chance, mean_and_error, shrink_rows
from ..inference.powers import Calibration
from ..inference.recipes import LatentRecipe, Recipe
from ..inference.recipes.independent import IndependentRecipe, VoteRecipe, find_tied
from ..inference.sources import HIDDEN, Source
from ..inference.workers.rows import Care
from ..kernels import Floats
from ..kinds.base import TableKind
from ..metrics.agreement import krippendorff_interval
from ..results.answer_worth import UNCHECKED, is_share_checked
from ..results.comparison import LEAST_HIDDEN, UNANIMOUS, Comparison, count_differing
from ..results.fitting import fit_source, learn_votes
from ..results.intervals import choose
from ..results.new_answers import weigh_copies
from ..results.result import Calibrated, Labels, Result, learn_from_votes
from ..results.result import count_known as count_gold

# With more classes, a table is not like those of which there are records.
MOST_CLASSES = 20


class Vote(NamedTuple):
    """A majority vote: its labels, and the expected counts of answers that they make."""

    labels: Labels
    counts: Callable[[], Floats]


class Differences(NamedTuple):
    """How labels differ from those of the vote, in sums over all items."""

    n_differ: float
    n_right: float  # expected number of right labels of the vote
    labels: NDArray[np.int64]  # (K,): items with each label
    n_top: float  # items to which the vote gives the most frequent label
    unanimous: NDArray[np.int64]  # (K,): items that at least two workers, and all who answered, give to the class
    kept: NDArray[np.int64]  # (K,): those of them whose label it is


def compare_with_vote(
    recipe: Recipe, found: Result, source: Source, graph: Graph | None, engine: Engine
) -> tuple[Comparison, Differences]:
    """Compare a result with majority vote on the same answers.

    The fits made here give no warnings: those of the result were given when it was fitted.
    """
    with quietly():
        alpha, gains, sums = compare(recipe, found, source, graph, engine)
    n_items, (accuracy, low, high) = found.labels.n_items, found.expected_accuracy
    sample = source.responses
    calibrated = found.calibrated or Calibrated(Calibration(1.0), [1.0])
    comparison = Comparison(
        n_items=n_items,
        n_differ=count_differing(sums.n_differ),
        accuracy=math.nan,
        accuracy_low=math.nan,
        accuracy_high=math.nan,
        expected_accuracy=accuracy,
        expected_accuracy_low=low,
        expected_accuracy_high=high,
        expected_gain=accuracy - sums.n_right / n_items,
        alpha=alpha[0],
        alpha_low=alpha[1],
        alpha_high=alpha[2],
        held_out_gain=gains[0],
        held_out_error=gains[1],
        informed_gain=gains[2],
        informed_error=gains[3],
        label_gain=gains[4],
        label_error=gains[5],
        top_share=float(sums.labels.max() / n_items),
        vote_top_share=sums.n_top / n_items,
        kept_share=float(np.nan_to_num(share_kept(sums.unanimous, sums.kept), nan=1.0).min()),
        blind_accuracy=calibrated.blind_accuracy if calibrated.found.n_gold else accuracy,
        n_known=calibrated.found.n_gold,
        n_known_right=calibrated.found.n_right,
        share_known=count_gold(found.given.gold) / n_items,
        like_record=is_like_record(recipe, found, sample, graph),
        alpha_level=find_level(sample),
        soft=sample.is_soft,
    )
    comparison = replace(comparison, **list_levels(found))
    comparison = withhold_accuracy(comparison, find_reason(comparison, sample, found.checked))
    # Known labels of a sequence are right or wrong together, so they do not tell how many are.
    return comparison if sample.sequences is not None else comparison.judge_accuracy(), sums


Gains = tuple[float, float, float, float, float, float]
Compared = tuple[tuple[float, float, float], Gains, Differences]


def compare(recipe: Recipe, found: Result, source: Source, graph: Graph | None, engine: Engine) -> Compared:
    """Return agreement, gains over the vote, and differences from it."""
    r = source.responses
    # A copy would give away what is hidden from another: they count once together, in the vote as well.
    used = weigh_copies(found, r, np.arange(r.n_workers))
    agreement = krippendorff_interval(used, find_level(used))  # before the vote, since both take much memory
    plain = learn_votes(VoteRecipe(), Source(r, source.gold), engine)
    counted = replace(source, responses=used, features=None)
    fair = plain if used is r else learn_votes(VoteRecipe(), Source(used, source.gold), engine)
    hidden = find_hidden(recipe, found, counted, graph, engine)
    counts = cache(partial(count_votes, Source(used, source.gold), fair.prior, engine))
    gains = judge(used, Vote(fair.labels, counts), hidden)
    return agreement, gains, find_differences(found.labels, plain.labels, source)


def count_votes(source: Source, prior: Floats, engine: Engine) -> Floats:
    """Return the expected counts of answers that the labels of a vote make."""
    return learn_from_votes(source, prior, engine).counts


def find_differences(labels: Labels, vote: Labels, source: Source) -> Differences:
    """Return how labels in memory differ from those of the vote."""
    n_labels = np.bincount(labels.codes, minlength=len(labels.classes))
    n_differ, n_right, n_top = compare_labels(vote.posterior, labels.posterior, labels.codes, int(n_labels.argmax()))
    return Differences(n_differ, n_right, n_labels, n_top, *count_unanimous(source, vote, labels.codes))


def compare_labels(
    shares: Floats, posterior: Floats, labels: NDArray[np.int64], top: int
) -> tuple[float, float, float]:
    """Return how many labels are not the vote's, how many of the vote's are right, and how many are the class `top`.

    All three are expectations over random ties, and the second over the posterior.
    """
    sums = np.zeros(3)
    for first in range(0, len(labels), ITEMS_AT_ONCE):
        run = slice(first, first + ITEMS_AT_ONCE)
        tied = find_tied(shares[run])
        chances = tied / tied.sum(axis=1, keepdims=True)
        right = np.einsum("nk,nk->", chances, posterior[run])
        sums += np.sum(1 - choose(chances, labels[run])), right, chances[:, top].sum()
    n_differ, n_right, n_top = sums.tolist()
    return n_differ, n_right, n_top


def is_like_record(recipe: Recipe, found: Result, r: Answers, graph: Graph | None) -> bool:
    """Tell whether answers and fit are like those of which there are records: see `Comparison.like_record`."""
    return (
        isinstance(recipe, IndependentRecipe)
        and (recipe.workers, recipe.calibration) == ("confusion", "hidden answers")
        and isinstance(found.task, TableKind)
        and graph is None
        and found.guidance is None
        and not found.given.has_priors
        and r.sequences is None
        and not r.silence_counts
        and not are_soft(r)
        and r.n_classes <= MOST_CLASSES
    )


def list_levels(found: Result) -> dict[str, Any]:
    """Return what is expected of labels on a scale, each with both ends, by name; nothing for classes without one."""
    levels = found.intervals.levels
    if levels is None or len(found.names.classes) < 3:  # of two levels, each label is right or one off
        return {}
    names = [f"{name}{end}" for name in ("within_one", "absolute_error") for end in ("", "_low", "_high")]
    return dict(zip(names, levels.ravel().tolist(), strict=True))


def find_level(r: Answers) -> str:
    """Return what kind of distance the agreement of these answers knows."""
    return "ordinal" if r.is_ordered else "nominal"


def are_soft(responses: Answers) -> bool:
    """Tell whether there are soft votes, or answers that are spread over several labels."""
    return responses.soft is not None or len(responses.votes()[0]) < responses.n_responses


def find_reason(comparison: Comparison, r: Answers, checked: bool) -> str:
    """Return in words why no expected accuracy is given, because a check has failed; nothing if none has."""
    if doubt_silence(r) is not None:
        return "workers answer as labelling functions do, and their silence is ignored"
    sets = find_sets(r.classes.tolist())
    if sets:
        return f"some classes are sets of labels, such as {shorten(sets[0])}"
    if are_soft(r) and not r.is_soft:
        return "answers are spread over several labels, and how sure these make a label is not known"
    if not checked:
        return UNCHECKED
    if comparison.untested:
        several = r.have_several_workers()
        alone = not is_share_checked(int(several.sum()), len(several))
        return "too few items have answers of two workers" if alone else "there are too few answers"
    if never_differ(r):
        return "workers never disagree, so nothing tells whether they copy each other"
    if comparison.by_chance:
        return "the answers show no signal"
    return "one class takes the items of others" if comparison.collapsed else ""


def never_differ(r: Answers) -> bool:
    """Tell whether all answers to an item are the same, whatever the item."""
    starts = r.offsets[:-1][np.diff(r.offsets) > 0]
    most, least = np.maximum.reduceat(r.label, starts), np.minimum.reduceat(r.label, starts)
    return bool((most == least).all()) and not r.silence_counts


def withhold_accuracy(comparison: Comparison, reason: str) -> Comparison:
    """Return the comparison without an expected accuracy, if there is a reason for that."""
    if not reason:
        return comparison
    figures = ("expected_accuracy", "within_one", "absolute_error")
    expected = [f"{name}{end}" for name in figures for end in ("", "_low", "_high")]
    names = (*expected, "blind_accuracy", "expected_gain")
    unknown: dict[str, Any] = dict.fromkeys(names, math.nan)
    return replace(comparison, withheld=reason, **unknown)


def count_unanimous(
    source: Source, vote: Labels, codes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many items all of their workers give to each class, and how many of these have it as their label.

    An item with one vote is none, nor is one of known label.
    """
    r = source.responses
    n_votes = np.diff(r.offsets)
    if (r.class_of_label < 0).any():
        n_votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
    agreed = (vote.posterior.max(axis=1) > 1 - 1e-9) & (n_votes > 1)
    if source.gold is not None:
        agreed &= source.gold.codes < 0
    items = np.flatnonzero(agreed)
    voted = vote.codes[items]
    n_classes = len(vote.classes)
    return np.bincount(voted, minlength=n_classes), np.bincount(voted[codes[items] == voted], minlength=n_classes)


def share_kept(n_items: NDArray[np.int64], n_kept: NDArray[np.int64]) -> Floats:
    """Return the share of items that were kept, of each class with enough of them; nan for others."""
    return np.where(n_items >= UNANIMOUS, n_kept / np.maximum(n_items, 1), np.nan)


def find_hidden(recipe: Recipe, found: Result, source: Source, graph: Graph | None, engine: Engine) -> Predicted | None:
    """Return how well hidden answers are predicted by the others; None if none can be hidden.

    A model that was calibrated by hidden answers knows. Any other is fitted again, with a coupling that was learned
    taken as found.
    """
    r = source.responses
    if found.calibrated is not None and found.calibrated.predicted is not None:
        return found.calibrated.predicted
    # Where silence is an answer, one that is hidden would be another answer: silence.
    if r.silence_counts:
        return None
    hidden, unit = next(hide_answers(r, HIDDEN, 0))
    shown = source.keep(~hidden)
    again = fit_source(settle(recipe, found), shown, graph, engine, copies=[])
    answer = np.flatnonzero(hidden)
    item = r.items_of(answer)
    n_left = np.diff(shown.responses.offsets)[item] if graph is None and r.sequences is None else None
    judging = can_judge(item, source.gold, n_left)
    answer, unit = answer[judging], unit[judging]
    if not len(answer):
        return None
    shrunk = shrink_rows(again.learned.counts, r.worker[answer], r.label[answer])
    by_class, care = again.labels.posterior[r.items_of(answer)], Care.of(r, answer)
    return HiddenAnswers(answer, np.zeros_like(answer), unit, by_class, shrunk, shrunk, care).predict(1.0)


def settle(recipe: Recipe, found: Result, coupling: bool = True) -> Recipe:
    """Return a recipe without callback, which takes the power as found, and the `coupling` too unless it is False."""
    known = {field.name for field in fields(recipe)}
    settled: dict[str, Any] = {"callback": None} if "callback" in known else {}
    if isinstance(recipe, LatentRecipe):
        if recipe.calibration != "none" and found.calibrated is not None:
            settled["calibration"] = found.calibrated.found.power
        if coupling and recipe.learns_coupling and found.coupling is not None:
            settled["coupling"] = found.coupling
    return replace(recipe, **settled)


def judge(r: Answers, vote: Vote, hidden: Predicted | None) -> Gains:
    """Return the gains over the vote, over mean probabilities, and by labels, each with its standard error."""
    if hidden is None or len(hidden.answer) < LEAST_HIDDEN:
        unknown = math.nan if r.silence_counts else math.inf
        return 0.0, unknown, 0.0, unknown, math.nan, math.nan
    answer, n_hidden = hidden.answer, len(hidden.answer)
    shares, by_class = np.empty((n_hidden, r.n_classes)), np.empty((n_hidden, r.n_classes))
    for fold in range(hidden.fold.max() + 1):
        here = hidden.fold == fold
        shares[here], by_class[here] = vote_without(r, vote, answer[here])
    by_vote = hidden.score - log_chance(shares, by_class, Care.of(r, answer))
    unit = np.unique(find_owners(r, answer), return_inverse=True)[1]
    sizes, share = np.bincount(unit), np.ones(n_hidden) if r.share is None else r.share[answer]
    totals = [np.bincount(unit, share * gains).astype(np.float64) for gains in (by_vote, hidden.score - hidden.base)]
    by_label = math.nan, math.nan
    if r.is_soft:
        said = r.class_of_label[r.label[answer]]
        right = (said == hidden.top).astype(np.float64) - (said == shares.argmax(axis=1))
        by_label = mean_and_error(np.bincount(unit, share * right).astype(np.float64), sizes)
    return *mean_and_error(totals[0], sizes), *mean_and_error(totals[1], sizes), *by_label


def vote_without(r: Answers, vote: Vote, answer: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return vote shares of the items of some answers, and how probable the answers are for each class, without them.

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
    counts = vote.counts().copy()
    change = left[:, None] * shares[owner] - weight[:, None] * vote.labels.posterior[items][owner]
    np.add.at(counts, (r.worker[about], r.label[about]), change)
    return shares[item], shrink_rows(np.maximum(counts, 0.0), r.worker[answer], r.label[answer])
