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
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..answers.hidden_answers import find_owners, hide_answers
from ..answers.responses import Responses
from ..answers.vocabulary import VERY_MANY
from ..engines.base import Engine
from ..errors import plural, quietly
from ..evaluation.held_out import mean_and_error, shrink_rows
from ..kernels.types import Floats
from ..memory import release_unused
from ..metrics.agreement import krippendorff_interval
from ..models.latent import LatentModel
from ..models.majority_vote import MajorityVote, find_tied
from ..models.predicting import PredictingModel
from ..results.answer_worth import ITEMS_AT_ONCE
from ..results.hidden_fits import HIDDEN, Fold, Judged, find_judging, log_chance
from ..results.intervals import choose

# How many standard errors a difference must exceed to count as one.
STANDARD_ERRORS = 2
# A smaller gain over mean probabilities is none, in nats per answer. So much does the truth tell about the answer of a
# worker who is right 55 % of the time, between two classes.
LEAST_GAIN = 0.005
# With fewer hidden answers than this, nothing is tested.
LEAST_HIDDEN = 20
# What benchmarks/verdicts.py found: samples of real crowds with each verdict, those with more right labels than the
# vote, and those with fewer.
RECORD = {"better": (54, 47, 6), "no different": (22, 6, 12), "worse": (0, 0, 0)}
# An interval of the expected accuracy ten times as wide, with the estimate at its lower end, says that little is known.
MOST_UNCLEAR = 0.01
# Agreement beyond chance that is worth something.
USEFUL_ALPHA = 0.1
# A collapse: one class takes nearly all items, by the vote at most this share, and so many items fewer ...
NEARLY_ALL, BY_VOTE, TAKEN = 0.98, 0.9, 20
# ... or of so many items that all of their workers give to one class, it keeps less than this share.
UNANIMOUS, KEPT = 20, 0.5


@dataclass(frozen=True)
class Comparison:
    """A fitted model beside majority vote, and how far the workers agree.

    Attributes
    ----------
    n_items : int
        Number of items.
    n_differ : int
        Items whose label is not the vote's, as expected over random ties.
    expected_accuracy, expected_accuracy_low, expected_accuracy_high : float
        Share of right labels that the calibrated probabilities let expect, and its 95 % interval; nan if nothing checks
        the answers, or if the fit has `collapsed`.
    expected_gain : float
        How much larger the expected accuracy is than that of the vote; nan where that is.
    alpha, alpha_low, alpha_high : float
        Krippendorff's alpha, the agreement of the workers beyond chance, and its 95 % interval. Workers who copy each
        other count once. nan where no item has two answers, or all answers are the same.
    held_out_gain : float
        By how much, in mean log probability, the model predicts hidden answers better than the vote does.
    held_out_error : float
        Standard error of `held_out_gain`; infinite if there are too few answers to test it, and nan if none can be
        hidden, since silence is an answer.
    informed_gain, informed_error : float
        The same compared with mean probabilities, which say nothing about single items.
    top_share, vote_top_share : float
        Share of the most frequent fused label, and the share of the same label by the vote.
    kept_share : float
        Of the items to which at least two workers, and all who answered, give the same class, the share that got this
        class: for the class where it is smallest, among those with at least 20 such items. 1 if there are none.

    Notes
    -----
    There is one rule. The model is *better* than the vote if it predicts hidden answers better than the vote by more
    than two standard errors, is `informed`, has not `collapsed`, and gives other labels than the vote. It is *worse* if
    `held_out_gain` is more than two standard errors below 0, and *no different* otherwise.
    """

    n_items: int
    n_differ: int
    expected_accuracy: float
    expected_accuracy_low: float
    expected_accuracy_high: float
    expected_gain: float
    alpha: float
    alpha_low: float
    alpha_high: float
    held_out_gain: float
    held_out_error: float
    informed_gain: float
    informed_error: float
    top_share: float
    vote_top_share: float
    kept_share: float

    @property
    def agreement(self) -> float:
        """Share of items on which model and vote agree."""
        return 1 - self.n_differ / self.n_items

    @property
    def verdict(self) -> str:
        """How hidden answers are predicted, compared with the vote: "better", "no different" or "worse"."""
        if self.n_differ == 0 or not self.tested or abs(self.held_out_gain) <= STANDARD_ERRORS * self.held_out_error:
            return "no different"
        if self.held_out_gain < 0:
            return "worse"
        return "better" if self.informed and not self.collapsed else "no different"

    @property
    def better(self) -> bool:
        """Whether the verdict is "better"."""
        return self.verdict == "better"

    @property
    def tested(self) -> bool:
        """Whether answers were hidden, and enough of them, so that the verdict means something."""
        return math.isfinite(self.held_out_error)

    @property
    def informed(self) -> bool:
        """Whether the fit predicts hidden answers better than if it knew nothing about single items."""
        return self.tested and self.informed_gain > max(LEAST_GAIN, STANDARD_ERRORS * self.informed_error)

    @property
    def by_chance(self) -> bool:
        """Whether the workers hardly agree more than by chance, and the fit found nothing in their answers either.

        Not if there are too few answers to tell: then the interval of alpha is wide.
        """
        return self.tested and not self.informed and self.alpha_low <= 0 and self.alpha_high < USEFUL_ALPHA

    @property
    def collapsed(self) -> bool:
        """Whether one class takes nearly all items, or most items of another class, against the votes."""
        n_taken = self.n_items * (self.top_share - self.vote_top_share)
        takes_all = self.top_share >= NEARLY_ALL and self.vote_top_share <= BY_VOTE and n_taken >= TAKEN
        return takes_all or self.kept_share < KEPT

    @property
    def has_record(self) -> bool:
        """Whether the record of the verdict is worth telling: not if there is no signal, or the fit has collapsed."""
        return self.tested and self.n_differ > 0 and not self.by_chance and not self.collapsed

    def __str__(self) -> str:
        differ = f"{self.n_differ:,} of {plural(self.n_items, 'label')} {'differs' if self.n_differ == 1 else 'differ'}"
        return (
            f"{differ} from majority vote ({self.agreement:.1%} agree); {self.describe_accuracy()}; "
            f"{self.describe_test()}; {self.describe_agreement()}"
        )

    def _repr_html_(self) -> str:
        from ..results.notebooks import show_comparison

        return show_comparison(self)

    def describe_accuracy(self) -> str:
        """Return in words how many labels are expected to be right."""
        if math.isnan(self.expected_accuracy):
            return "expected accuracy is not known"
        low, high = self.expected_accuracy_low, self.expected_accuracy_high
        if is_unclear(self.expected_accuracy, low, high):
            return (
                f"expected accuracy between {low:.1%} and {high:.1%} if workers err independently; there are too few "
                "answers to calibrate probabilities well"
            )
        interval = f"{low:.1%} to {high:.1%}"
        vote = f"majority vote {self.expected_accuracy - self.expected_gain:.1%}"
        return f"expected accuracy {self.expected_accuracy:.1%} ({interval} if workers err independently), {vote}"

    def describe_test(self, figures: bool = True) -> str:
        """Return the verdict in words, with or without its figures."""
        if not self.tested:
            why = (
                "silence is an answer, so none can be hidden"
                if math.isnan(self.held_out_error)
                else "there are too few"
            )
            return f"not tested on hidden answers: {why}"
        if self.n_differ == 0:
            return "the labels are those of majority vote"
        if self.by_chance:
            return "no signal: hidden answers could not be predicted from the others"
        gain = f" ({self.describe_gain()})" if figures else ""
        if self.verdict == "no different" and self.collapsed:
            return f"the classes seem to have collapsed, so the labels do not count as better than majority vote{gain}"
        if self.verdict == "no different" and self.held_out_gain > STANDARD_ERRORS * self.held_out_error:
            return (
                f"no different from majority vote: hidden answers are predicted better{gain}, but no better than by "
                "class frequencies alone"
            )
        words = {"better": "better than", "no different": "no clear difference from", "worse": "worse than"}
        return f"{words[self.verdict]} majority vote in predicting hidden answers{gain}"

    def describe_gain(self) -> str:
        """Return the gain at hidden answers with its standard error."""
        return f"mean log score {self.held_out_gain:+.4f}, standard error {self.held_out_error:.4f}"

    def describe_record(self) -> str:
        """Return in words how often the verdict was right on real crowds whose truth is known; see `has_record`."""
        n_cases, n_more, n_fewer = RECORD[self.verdict]
        if not n_cases:
            return "no sample of a real crowd had this verdict"
        return (
            f"in {n_cases} samples of ten real crowds with the verdict {self.verdict!r}, the labels were more often "
            f"right than majority vote in {n_more}, and less often in {n_fewer}"
        )

    def describe_agreement(self) -> str:
        """Return in words how far the workers agree."""
        if math.isnan(self.alpha):
            return "agreement of the workers is not known"
        interval = f"95% interval {self.alpha_low:z.2f} to {self.alpha_high:z.2f}"
        figures = f"Krippendorff's alpha {self.alpha:z.2f}, {interval}"
        if self.alpha_high < 0:
            return f"the workers agree less than by chance ({figures})"
        if self.alpha_low <= 0 and self.alpha_high < USEFUL_ALPHA:
            return f"the workers agree no more than by chance ({figures})"
        if self.alpha_low <= 0:
            return f"too few answers to tell whether the workers agree more than by chance ({figures})"
        return f"the workers agree more than by chance ({figures})"


def explain_move(before: Comparison, after: Comparison) -> str:
    """Return in words why the verdict is another one than before, or that it is not."""
    if before.verdict == after.verdict:
        return f"the verdict is {after.verdict!r}, as before"
    if before.tested != after.tested:
        reason = f"there are {'now' if after.tested else 'no longer'} enough answers to test it"
    elif bool(before.n_differ) != bool(after.n_differ):
        reason = f"the labels are {'no longer' if after.n_differ else 'now'} those of majority vote"
    elif before.collapsed != after.collapsed:
        reason = f"the classes {'have' if after.collapsed else 'are no longer'} collapsed"
    elif before.informed != after.informed:
        than = "better" if after.informed else "no better"
        reason = f"the fit predicts hidden answers {than} than class frequencies alone"
    else:
        figures = [f"{each.held_out_gain:+.4f} (standard error {each.held_out_error:.4f})" for each in (before, after)]
        reason = f"the mean log score of hidden answers, compared with majority vote, went from {' to '.join(figures)}"
    return f"the verdict went from {before.verdict!r} to {after.verdict!r}: {reason}"


def is_unclear(accuracy: float, low: float, high: float) -> bool:
    """Tell whether only the interval of an expected accuracy is worth telling: the estimate is at its lower end.

    >>> is_unclear(0.93, 0.92, 0.95), is_unclear(0.61, 0.6, 0.95)
    (False, True)
    """
    return accuracy - low < (high - low) / 10 > MOST_UNCLEAR


def compare_with_vote(
    model: PredictingModel, responses: Responses, graph: object, gold: object, engine: Engine, seed: int = 0
) -> Comparison:
    """Compare a fitted model with majority vote on the same answers.

    The fits made here give no warnings: `model` gave them when it was fitted.
    """
    with quietly():
        if responses.n_responses >= VERY_MANY:
            release_unused()  # the blocks of the fit
        r = responses.with_classes(model.classes_)  # tag schemes add classes that nobody said
        # A copy would give away what is hidden from another: they count once together, in the vote as well.
        used = model._weigh_copies(r, np.arange(r.n_workers))
        agreement = krippendorff_interval(used)  # before the vote, since both take much memory
        vote = MajorityVote().fit(r, gold=gold, engine=engine)
        fair = vote if used is r else MajorityVote().fit(used, gold=gold, engine=engine)
        hidden = find_hidden(model, used, fair, graph, gold, engine, seed)
        if hidden:
            if r.n_responses >= VERY_MANY:
                release_unused()
            fair._work_out_matrices(engine)
        gain, error, informed_gain, informed_error = judge(used, fair, hidden)
    ours = model._label_codes
    top = int(np.bincount(ours).argmax())
    n_differ, n_right, n_top = compare_labels(vote.posterior_, model.posterior_, ours, top)
    comparison = Comparison(
        n_items=r.n_items,
        n_differ=count_differing(n_differ),
        expected_accuracy=model.expected_accuracy_,
        expected_accuracy_low=model.expected_accuracy_low_,
        expected_accuracy_high=model.expected_accuracy_high_,
        expected_gain=model.expected_accuracy_ - n_right / r.n_items,
        **dict(zip(("alpha", "alpha_low", "alpha_high"), agreement, strict=True)),
        held_out_gain=gain,
        held_out_error=error,
        informed_gain=informed_gain,
        informed_error=informed_error,
        top_share=float((ours == top).mean()),
        vote_top_share=n_top / r.n_items,
        kept_share=float(np.nan_to_num(keep_shares(r, vote, ours), nan=1.0).min()),
    )
    return withhold_accuracy(comparison, are_checked(r, graph, gold))


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


def withhold_accuracy(comparison: Comparison, checked: bool) -> Comparison:
    """Return the comparison without an expected accuracy, if nothing checks the answers or the fit has collapsed."""
    if comparison.collapsed or not checked:
        return replace(
            comparison,
            expected_accuracy=math.nan,
            expected_accuracy_low=math.nan,
            expected_accuracy_high=math.nan,
            expected_gain=math.nan,
        )
    return comparison


def count_differing(expected: float) -> int:
    """Return how many labels differ from the vote's, by the number that is expected over random ties.

    If there are any, it is at least one: 0 means that all labels are those of the vote.
    """
    return max(round(expected), int(expected > 1e-9))


def keep_shares(r: Responses, vote: MajorityVote, labels: NDArray[np.int64]) -> Floats:
    """Return for each class the share of the items that all of their workers give to it, which have it as their label.

    nan for classes with fewer than `UNANIMOUS` such items. An item with one vote is none, nor is one of known label.
    """
    n_votes = np.diff(r.offsets)
    if (r.class_of_label < 0).any():
        n_votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
    agreed = (vote.posterior_.max(axis=1) > 1 - 1e-9) & (n_votes > 1)
    if vote._gold is not None:
        agreed &= vote._gold.codes < 0
    items = np.flatnonzero(agreed)
    voted = vote._label_codes[items]
    n_items = np.bincount(voted, minlength=r.n_classes)
    return share_kept(n_items, np.bincount(voted[labels[items] == voted], minlength=r.n_classes))


def share_kept(n_items: NDArray[np.int64], n_kept: NDArray[np.int64]) -> Floats:
    """Return the share of items that were kept, of each class with enough of them; nan for others."""
    return np.where(n_items >= UNANIMOUS, n_kept / np.maximum(n_items, 1), np.nan)


def are_checked(r: Responses, graph: object, gold: object) -> bool:
    """Tell whether anything checks the answers: others about the same item, or sequence; neighbours, gold, silence."""
    if r.silence_counts or graph is not None or gold is not None:
        return True
    return bool(r.have_several_workers().any())


def find_hidden(
    model: PredictingModel, r: Responses, vote: MajorityVote, graph: object, gold: object, engine: Engine, seed: int
) -> list[Judged]:
    """Return hidden answers, in folds, and how well fits to the others predict them.

    A model that was calibrated by hidden answers has them already. Any other is fitted again, with a coupling that was
    learned taken as found.
    """
    if isinstance(model, LatentModel) and model._hidden:
        return model._hidden
    # Where silence is an answer, one that is hidden would be another answer: silence.
    if r.silence_counts:
        return []
    hidden, _ = next(hide_answers(r, HIDDEN, seed))
    shown = r.keep(~hidden)
    settled = model._settled()
    if settled.get_params().get("coupling") == "learn":
        settled.set_params(coupling=model.coupling_)
    fitted = settled._fit(shown, graph, gold, engine, copies=[])
    answer = np.flatnonzero(hidden)
    item = r.items_of(answer)
    n_left = np.diff(shown.offsets)[item] if graph is None and r.sequences is None else None
    answer = answer[find_judging(item, vote._gold, n_left)]
    if not len(answer):
        return []
    return [Fold.of(r, answer, fitted.posterior_[r.items_of(answer)], fitted._counts).judge(1.0)]


def judge(r: Responses, vote: MajorityVote, hidden: list[Judged]) -> tuple[float, float, float, float]:
    """Return the gains over the vote and over mean probabilities at hidden answers, each with its standard error."""
    if sum(len(fold.answer) for fold in hidden) < LEAST_HIDDEN:
        unknown = math.nan if r.silence_counts else math.inf
        return 0.0, unknown, 0.0, unknown
    by_vote = np.concatenate([fold.score - log_chance(*vote_without(r, vote, fold.answer)) for fold in hidden])
    by_mean = np.concatenate([fold.score - fold.base for fold in hidden])
    answer = np.concatenate([fold.answer for fold in hidden])
    unit = np.unique(find_owners(r, answer), return_inverse=True)[1]
    sizes, weight = np.bincount(unit), r.weights(answer)
    totals = [np.bincount(unit, weight * gains).astype(np.float64) for gains in (by_vote, by_mean)]
    return *mean_and_error(totals[0], sizes), *mean_and_error(totals[1], sizes)


def vote_without(r: Responses, vote: MajorityVote, answer: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return vote shares of the items of some answers, and how probable the answers are for each class, without them.

    Only the items of these answers change: the counts of the whole vote are corrected there.
    """
    items, item = np.unique(r.items_of(answer), return_inverse=True)
    about, owner = r.answers_about(items)
    weight = r.weights(about)
    left = np.where(np.isin(about, answer), 0.0, weight)
    klass = r.class_of_label[r.label[about]]
    shares = np.zeros((len(items), r.n_classes))
    np.add.at(shares, (owner[klass >= 0], klass[klass >= 0]), left[klass >= 0])
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), r.vote_shares())
    counts = vote._counts.copy()
    change = left[:, None] * shares[owner] - weight[:, None] * vote.posterior_[items][owner]
    np.add.at(counts, (r.worker[about], r.label[about]), change)
    return shares[item], shrink_rows(np.maximum(counts, 0.0), r.worker[answer], r.label[answer])
