"""What checks found: how many labels are right, how they differ from the vote, what the graph is worth; and the words.

`consilience.checks` computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..answers.answers import Answers
from ..errors import plural
from ..inference import STANDARD_ERRORS
from ..kernels import Floats
from .record import (
    PAIRS,
    assume_any_error,
    estimate_error_by_record,
    expect_width,
    see_known,
)

# A smaller gain over mean probabilities is none, in nats per answer. So much does the truth tell about the answer of a
# worker who is right 55 % of the time, between two classes.
LEAST_INFORMED_GAIN = 0.005
# With fewer hidden answers than this, nothing is tested.
LEAST_HIDDEN = 20
# What further known labels would bring is reported for so many, unless the range is narrow enough.
MORE, NARROW_ENOUGH = (30, 100), 0.08
# A range that is narrower than this is shown with a decimal.
NARROW = 0.05
# An interval of the expected accuracy ten times as wide, with the estimate at its lower end, says that little is known.
MOST_UNCLEAR = 0.01
# Agreement beyond chance that is worth something.
USEFUL_ALPHA = 0.1
# A collapse: one class takes nearly all items, by the vote at most this share, and so many items fewer ...
NEARLY_ALL, BY_VOTE, MORE_TAKEN = 0.98, 0.9, 20
# ... or of so many items that all of their workers give to one class, it keeps less than this share.
UNANIMOUS, LEAST_KEPT = 20, 0.5
# Neighbours who all agree, and then add fewer nats than this to the log odds of a label, are as good as none.
NO_PULL = 0.2
# What is so many standard errors above 0 is not due to chance.
SURE_ERRORS = 3.0
# Errors run along edges if they are correlated at least so much.
ALIKE = 0.4
# With a larger standard error, errors that run along edges would not be noticed.
UNCLEAR = 0.2
# Whole numbers are a scale if an order predicts hidden answers so much better, in nats per answer. For breeds of dogs
# that look alike in pairs it is .02, with the best of all names; for five grades of relevance .04.
LEAST_LEAD = 0.025
# If a soft vote tells less of the fused label than this part of log K, votes are little more than shares of classes.
TELLING = 0.02
NAMES_OF_WAYS = {"temperatures": "with learned temperatures", "mean": "by the mean of the probabilities"}
CHECK_IDS = "Check that its edges use the same ids of items as the answers."


@dataclass(frozen=True)
class Comparison:
    """A fitted model beside majority vote, and how far the workers agree.

    Attributes
    ----------
    n_items : int
        Number of items.
    n_differ : int
        Items whose label is not the vote's, as expected over random ties.
    accuracy, accuracy_low, accuracy_high : float
        Share of right labels, and the ends of its 90% range: by the record of real crowds and by known labels of items
        drawn at random, or by at least ten of these alone (`consilience.results.record`); nan where there is neither.
    expected_accuracy, expected_accuracy_low, expected_accuracy_high : float
        Share of right labels by the calibrated probabilities, if workers err independently, and its 95% interval;
        nan if it is `withheld`.
    within_one, within_one_low, within_one_high : float
        For ordered classes, the share of labels that are right or one level off, as expected in the same way; else nan.
    absolute_error, absolute_error_low, absolute_error_high : float
        And by how many levels labels are off, on average.
    expected_gain : float
        How much larger the expected accuracy is than that of the vote; nan where that is.
    blind_accuracy : float
        Expected accuracy of the labels that are not known, if known labels have no say in calibration.
    n_known, n_known_right : int
        Known labels of items drawn at random, and those of them that the model gives if it does not know them.
    share_known : float
        Share of all items whose label is known.
    like_record : bool
        Whether answers and fit are like those of which there are records: a table of few classes, and `DawidSkene`.
    withheld : str
        Why no expected accuracy is given, in a sentence; empty if it is.
    soft : bool
        Whether answers are soft votes. Then all that is said of the vote is about the mean of their probabilities.
    alpha, alpha_low, alpha_high : float
        Krippendorff's alpha, the agreement of the workers beyond chance, and its 95% interval. Workers who copy each
        other count once. For ordered classes it is the ordinal one (`alpha_level`), which knows near answers from far
        ones. nan where no item has two answers, or all answers are the same.
    held_out_gain : float
        By how much, in mean log probability, the model predicts hidden answers better than the vote does.
    held_out_error : float
        Standard error of `held_out_gain`; infinite if there are too few answers to test it, and nan if none can be
        hidden, since silence is an answer.
    informed_gain, informed_error : float
        The same compared with mean probabilities, which say nothing about single items.
    label_gain, label_error : float
        Of soft votes, how much more often a hidden vote agrees with the label of the model than with that of the mean,
        and its standard error; else nan.
    top_share, vote_top_share : float
        Share of the most frequent fused label, and the share of the same label by the vote.
    kept_share : float
        Of the items to which at least two workers, and all who answered, give the same class, the share that got this
        class: for the class where it is smallest, among those with at least 20 such items. 1 if there are none.
    lost : int or None
        Which class that is, as an index.
    agreement : float
        Share of items on which model and vote agree.
    verdict : {"better", "no different", "worse"}
        How hidden answers are predicted, compared with the vote; see below.
    better : bool
        Whether the verdict is "better".
    rival : str
        What the model is compared with, in words.
    tested, untested : bool
        Whether enough answers were hidden, so that the verdict means something; and whether there were too few to hide.
        Where silence is an answer, none are hidden.
    predicts : bool
        Whether hidden answers are predicted better than by the vote.
    informed : bool
        Whether the fit predicts hidden answers better than if it knew nothing about single items.
    by_chance : bool
        Whether the workers hardly agree more than by chance, and the fit found nothing in their answers either.
    collapsed : bool
        Whether one class takes nearly all items, or most items of another class, against the votes.
    open_labels : bool
        Whether it is open, of soft votes, which labels are right where those of the mean are others.
    known, width : bool, float
        Whether it is reported how many labels are right, and how wide the range of that is.
    by_record : bool
        Whether the accuracy is judged by the record of real crowds.
    alpha_name : str
        What the measure of agreement is called.

    Notes
    -----
    There is one rule. The model is *better* than the vote if it predicts hidden answers better than the vote by more
    than two standard errors, is `informed`, has not `collapsed`, and gives other labels than the vote; of soft votes,
    if `label_gain` is more than two standard errors above 0, too. It is *worse* if `held_out_gain` is more than two
    standard errors below 0, and *no different* otherwise.
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
    accuracy: float = math.nan
    accuracy_low: float = math.nan
    accuracy_high: float = math.nan
    blind_accuracy: float = math.nan
    n_known: int = 0
    n_known_right: int = 0
    share_known: float = 0.0
    like_record: bool = False
    withheld: str = ""
    alpha_level: str = "nominal"
    within_one: float = math.nan
    within_one_low: float = math.nan
    within_one_high: float = math.nan
    absolute_error: float = math.nan
    absolute_error_low: float = math.nan
    absolute_error_high: float = math.nan
    soft: bool = False
    label_gain: float = math.nan
    label_error: float = math.nan
    lost: int | None = None
    # What follows from these.
    agreement: float = field(init=False)
    tested: bool = field(init=False)
    untested: bool = field(init=False)
    informed: bool = field(init=False)
    by_chance: bool = field(init=False)
    collapsed: bool = field(init=False)
    predicts: bool = field(init=False)
    open_labels: bool = field(init=False)
    verdict: str = field(init=False)
    better: bool = field(init=False)
    rival: str = field(init=False)
    alpha_name: str = field(init=False)
    known: bool = field(init=False)
    width: float = field(init=False)
    by_record: bool = field(init=False)

    def __post_init__(self) -> None:
        gain, error = self.held_out_gain, self.held_out_error
        tested = math.isfinite(error)
        informed = tested and self.informed_gain > max(LEAST_INFORMED_GAIN, STANDARD_ERRORS * self.informed_error)
        # Not if there are too few answers to tell: then the interval of alpha is wide.
        by_chance = tested and not informed and self.alpha_low <= 0 and self.alpha_high < USEFUL_ALPHA
        n_taken = self.n_items * (self.top_share - self.vote_top_share)
        takes_all = self.top_share >= NEARLY_ALL and self.vote_top_share <= BY_VOTE and n_taken >= MORE_TAKEN
        collapsed = takes_all or self.kept_share < LEAST_KEPT
        open_labels = self.soft and not self.label_gain > STANDARD_ERRORS * self.label_error
        # Of soft votes, a smaller gain is that of a mean with the class prior that was learned.
        least = LEAST_INFORMED_GAIN if self.soft else 0.0
        clear = tested and self.n_differ > 0 and abs(gain) > STANDARD_ERRORS * error and abs(gain) >= least
        verdict = "no different"
        if clear and gain < 0:
            verdict = "worse"
        elif clear and informed and not collapsed and not open_labels:
            verdict = "better"
        vars(self).update(
            agreement=1 - self.n_differ / self.n_items,
            tested=tested,
            untested=math.isinf(error),
            informed=informed,
            by_chance=by_chance,
            collapsed=collapsed,
            predicts=gain > max(least, STANDARD_ERRORS * error),
            open_labels=open_labels,
            verdict=verdict,
            better=verdict == "better",
            rival="the mean of the probabilities" if self.soft else "majority vote",
            alpha_name=f"Krippendorff's {'' if self.alpha_level == 'nominal' else self.alpha_level + ' '}alpha",
            known=not math.isnan(self.accuracy),
            width=self.accuracy_high - self.accuracy_low,
            by_record=self.like_record and not self.withheld,
        )

    def __repr__(self) -> str:
        return f"<Comparison: {self}>"

    def __str__(self) -> str:
        differ = f"{self.n_differ:,} of {plural(self.n_items, 'label')} {'differs' if self.n_differ == 1 else 'differ'}"
        return (
            f"{self.describe_headline()}; {differ} from {self.rival} ({self.agreement:.1%} agree); "
            f"{self.describe_test()}; {self.describe_agreement()}"
        )

    def describe(self, judged: str = "labels") -> dict[str, str]:
        """All that is said of the labels, by topic; "" where there is nothing to say.

        Parameters
        ----------
        judged : str
            What the labels are called.
        """
        expected = self.describe_expected()
        return {
            "headline": self.describe_headline(judged),
            "known_labels": self.describe_more(),
            "expected": expected if judged == "labels" or not expected else f"of {judged}, {expected}",
            "verdict": self.describe_test(),
            "alpha": self.describe_agreement(),
        }

    def describe_headline(self, labels: str = "labels") -> str:
        """How many labels are right, in words: the first thing to say of a result."""
        if not self.known:
            why = self.withheld or "there is no record of such data"
            return f"it is not known how many of these {labels} are right: {why}"
        share, low, high = (
            f"{each:.0%}" if self.width >= NARROW else f"{each:.1%}"
            for each in (self.accuracy, self.accuracy_low, self.accuracy_high)
        )
        by = [f"{len(PAIRS)} real crowds"] if self.by_record else []
        by += [plural(self.n_known, "known label")] if self.n_known else []
        return f"about {share} of these {labels} are right ({low} to {high}), judging by {' and '.join(by)}"

    def describe_more(self) -> str:
        """How much narrower the range would be with further known labels, in words; "" where that is little."""
        n_open = round((1 - self.share_known) * self.n_items)
        numbers = [n for n in MORE if n < n_open]
        if not self.known or not numbers or self.width < NARROW_ENOUGH:
            return ""
        densities, share = self.find_densities(), n_open / self.n_items
        widths = [100 * expect_width(densities, n, n_open - n) * (share - n / self.n_items) for n in numbers]
        known = f"{numbers[0]} {'more ' if self.n_known else ''}known labels of items drawn at random"
        further = "".join(f", and {n} to {width:.0f}" for n, width in zip(numbers[1:], widths[1:], strict=True))
        return f"{known} would narrow this to a range about {widths[0]:.0f} points wide{further}"

    def find_densities(self) -> Floats:
        """The densities of the error of the labels that are not known; see `consilience.results.record`."""
        by_record = (
            estimate_error_by_record(self.blind_accuracy, self.expected_accuracy_high) if self.by_record else None
        )
        return see_known(assume_any_error() if by_record is None else by_record, self.n_known, self.n_known_right)

    def describe_expected(self) -> str:
        """How many labels are expected to be right if workers err independently."""
        if math.isnan(self.expected_accuracy):
            return ""
        low, high, are_levels = self.expected_accuracy_low, self.expected_accuracy_high, not math.isnan(self.within_one)
        unclear = is_unclear(self.expected_accuracy, low, high, are_levels)
        right = f"{self.expected_accuracy:.1%} ({low:.1%} to {high:.1%})"
        said = [f"{f'between {low:.1%} and {high:.1%}' if unclear else right} if workers err independently"]
        if are_levels:
            within = f"{self.within_one:.1%} ({self.within_one_low:.1%} to {self.within_one_high:.1%})"
            off = f"{self.absolute_error_low:.2f} to {self.absolute_error_high:.2f}"
            said.append(f"{within} at most one level off, {self.absolute_error:.2f} levels off on average ({off})")
        if unclear:
            said.append(
                f"there are too few answers to {'know the scale' if are_levels else 'calibrate probabilities'} well"
            )
        return "; ".join(said)

    def describe_test(self, figures: bool = True) -> str:
        """The verdict in words, with or without its figures."""
        if not self.tested:
            none = "silence is an answer, so none can be hidden"
            why = none if math.isnan(self.held_out_error) else "there are too few"
            return f"not tested on hidden answers: {why}"
        if self.n_differ == 0:
            return f"the labels are those of {self.rival}"
        if self.by_chance:
            return "no signal: hidden answers could not be predicted from the others"
        gain = f" ({self.describe_gain()})" if figures else ""
        if self.verdict == "no different" and self.collapsed:
            return f"the classes seem to have collapsed, so the labels do not count as better than {self.rival}{gain}"
        if self.verdict == "no different" and self.predicts:
            better = f"hidden answers are predicted better{gain}, but {self.describe_lack()}"
            return f"no different from {self.rival}: {better}"
        words = {"better": "better than", "no different": "no clear difference from", "worse": "worse than"}
        return f"{words[self.verdict]} {self.rival} in predicting hidden answers{gain}"

    def describe_lack(self) -> str:
        """Why labels are not thought to be better although hidden answers are predicted better."""
        if self.informed and self.open_labels:
            return "they do not tell which labels are right where the two differ"
        return "no better than by class frequencies alone"

    def describe_gain(self) -> str:
        """The gain at hidden answers with its standard error."""
        return f"mean log score {self.held_out_gain:+.4f}, standard error {self.held_out_error:.4f}"

    def describe_agreement(self) -> str:
        """How far the workers agree."""
        if math.isnan(self.alpha):
            return "agreement of the workers is not known"
        interval = f"95% interval {self.alpha_low:z.2f} to {self.alpha_high:z.2f}"
        figures = f"{self.alpha_name} {self.alpha:z.2f}, {interval}"
        if self.alpha_high < 0:
            return f"the workers agree less than by chance ({figures})"
        if self.alpha_low <= 0 and self.alpha_high < USEFUL_ALPHA:
            return f"the workers agree no more than by chance ({figures})"
        if self.alpha_low <= 0:
            return f"too few answers to tell whether the workers agree more than by chance ({figures})"
        return f"the workers agree more than by chance ({figures})"


def explain_move(before: Comparison, after: Comparison) -> str:
    """The verdict before an update, in words."""
    if not before.tested:
        return "the verdict was not tested before"
    too = " too" if before.verdict == after.verdict else ""
    return f"the verdict was {before.verdict!r} before{too} ({before.describe_gain()})"


def is_unclear(accuracy: float, low: float, high: float, ordered: bool = False) -> bool:
    """Whether only the interval of an expected accuracy is worth telling: the estimate is at its lower end.

    For ordered classes it may also be at the upper one, since the interval knows of other readings of the scale.

    >>> is_unclear(0.93, 0.92, 0.95), is_unclear(0.61, 0.6, 0.95), is_unclear(0.83, 0.61, 0.83, ordered=True)
    (False, True, True)
    """
    nearest = min(accuracy - low, high - accuracy) if ordered else accuracy - low
    return nearest < (high - low) / 10 > MOST_UNCLEAR


@dataclass(frozen=True)
class ScaleCheck:
    """The comparison of whole numbers as ordered and as plain classes, by hidden answers.

    Attributes
    ----------
    lead, lead_error : float
        By how much, in mean log probability, workers who confuse levels that are near each other predict hidden answers
        better than workers who do not, and the standard error of that; nan where different answers to one item are no
        nearer to each other than at random.
    ordered : bool
        Whether the numbers are taken for levels of a scale.
    """

    lead: float
    lead_error: float
    ordered: bool = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update(ordered=self.lead > max(LEAST_LEAD, SURE_ERRORS * self.lead_error))

    def __str__(self) -> str:
        taken = "levels of a scale" if self.ordered else "names without an order"
        return f"the classes are whole numbers, and were taken for {taken}: {self.describe()}"

    def describe(self) -> str:
        """The scores that the choice rests on, in words."""
        if math.isnan(self.lead):
            return "different answers to one item are no nearer to each other than at random"
        figures = f"mean log score {self.lead:+.3f}, standard error {self.lead_error:.3f}"
        return f"hidden answers are {'' if self.ordered else 'not clearly '}predicted better with an order ({figures})"


@dataclass(frozen=True)
class SoftCheck:
    """By what a way of fusing soft votes was chosen; see `consilience.comparisons.ways`.

    Attributes
    ----------
    way : str
        The worker model that was chosen, by name.
    temperatures, mean : float
        The mean log probability of the most probable labels of hidden votes, with learned temperatures, and by the mean
        of the probabilities; nan if there were too few votes.
    telling : bool
        Whether votes tell more than how frequent classes are; if not, the mean is taken.
    """

    way: str
    temperatures: float = math.nan
    mean: float = math.nan
    telling: bool = True

    def __str__(self) -> str:
        return f"soft votes are fused {NAMES_OF_WAYS[self.way]}: {self.describe()}"

    def describe(self) -> str:
        """The scores that the choice rests on, in words."""
        if math.isnan(self.mean):
            return "too few votes are about items with votes of others, so ways cannot be compared"
        tried = ", ".join(f"{words} {getattr(self, way):.3f}" for way, words in NAMES_OF_WAYS.items())
        figures = f"mean log score {tried}"
        if self.way == ("temperatures" if self.temperatures >= self.mean else "mean"):
            return f"hidden votes are predicted best this way ({figures})"
        if self.telling:
            return f"no other way predicts hidden votes clearly better ({figures})"
        return f"beyond how frequent classes are, votes tell next to nothing that others confirm ({figures})"


@dataclass(frozen=True)
class GraphCheck:
    """The comparison of a graph with a shuffled one, without known labels.

    Attributes
    ----------
    coupling, shuffled_coupling : float
        What was learned on the graph, and on a random one with the same degrees, for edges of the usual weight.
    changed, shuffled_changed : float
        Share of labels that differ from those of `DawidSkene`, which knows no graph, if the coupling is learned and all
        items use their neighbours.
    degree : float
        Mean number of neighbours of the items that have any.
    agreement, agreement_error : float
        How much answers about neighbours agree beyond chance, at most 1, and the standard error of that if the edges
        join items at random. The error is infinite if it could not be measured: no edge joins two items that were
        answered, or all answers are alike.
    error_correlation, error_correlation_error : float
        How much a worker's errors at neighbouring items are alike, given the labels, and the standard error of that if
        they are not. The error is infinite where there is nothing to tell by.
    usual_weight : float
        Of an edge: the geometric mean.
    silent : bool
        Whether neighbours have almost no effect on a label.
    measured, agrees : bool
        Whether it could be measured how much answers about neighbours agree, and whether they agree more than chance
        explains.
    sound : bool
        Whether the graph is informative about the labels, and a random one is not.
    repeats_errors : bool
        Whether a worker's errors run along the edges, so that neighbours repeat them.
    """

    coupling: float
    shuffled_coupling: float
    changed: float
    shuffled_changed: float
    degree: float
    agreement: float
    agreement_error: float
    error_correlation: float
    error_correlation_error: float
    usual_weight: float = 1.0
    silent: bool = field(init=False)
    measured: bool = field(init=False)
    agrees: bool = field(init=False)
    sound: bool = field(init=False)
    repeats_errors: bool = field(init=False)

    def __post_init__(self) -> None:
        silent = self.coupling * self.degree <= NO_PULL
        agrees = self.agreement >= SURE_ERRORS * self.agreement_error
        vars(self).update(
            silent=silent,
            measured=self.agreement_error < math.inf,
            agrees=agrees,
            sound=not silent and agrees and self.coupling > 2 * self.shuffled_coupling,
            repeats_errors=self.error_correlation >= max(ALIKE, SURE_ERRORS * self.error_correlation_error),
        )

    def __str__(self) -> str:
        agreement = self.describe_agreement()
        coupling = f"learned coupling {self.coupling:.2f}{describe_usual(self.usual_weight)}"
        changes = (
            f"Used for all items, the graph changes {self.changed:.1%} of the labels ({coupling}; a shuffled graph: "
            f"coupling {self.shuffled_coupling:.2f}, {self.shuffled_changed:.1%} of the labels)."
        )
        if self.sound:
            verdict = "The graph is informative about these labels: neighbouring items agree more than by chance"
            return f"{verdict} ({agreement}). {changes} {self.describe_errors()}"
        text = f"The graph may not be informative about these labels: {self.describe_doubt()}. {changes}"
        if self.silent:
            text = f"The graph has almost no effect on these labels ({'; '.join(filter(None, (coupling, agreement)))})."
        return f"{text} {CHECK_IDS}" if self.measured and not self.agrees else text

    def describe_agreement(self) -> str:
        """The agreement of neighbours, and its standard error, in words; nothing if it was not measured."""
        if not self.measured:
            return ""
        # As many digits as tell the standard error from 0: the two must be comparable.
        digits = 2 if self.agreement_error >= 0.01 else 3
        return (
            f"agreement beyond chance {self.agreement:z.{digits}f}, standard error {self.agreement_error:z.{digits}f}"
        )

    def describe_doubt(self) -> str:
        """Why a graph that is not sound may not be informative."""
        agreement = self.describe_agreement()
        if not self.measured:
            return "it could not be measured whether neighbouring items agree more than by chance"
        if self.agrees:
            return f"a shuffled graph has nearly as strong a coupling ({agreement})"
        return f"neighbouring items do not clearly agree more than by chance ({agreement})"

    def describe_errors(self) -> str:
        """Whether errors run along the edges, and what follows."""
        if self.repeats_errors:
            return (
                "Workers tend to make the same error on neighbouring items of the graph (correlation "
                f"{self.error_correlation:.2f}), so the graph may spread errors."
            )
        if self.error_correlation_error > UNCLEAR:
            text = "There are too few answers to tell whether workers make the same error on neighbouring items."
        else:
            text = f"The errors of workers on neighbouring items have a correlation of {self.error_correlation:z.2f}."
        return text if self.changed == 0 else f"{text} Only known labels can tell whether the changed labels are right."


def describe_limit(all_answered: bool, graph: str = "It") -> str:
    """For which items a graph is used that only those hear which nobody answered."""
    if all_answered:
        return f"{graph} is not used: all labels come from the answers alone."
    return f"{graph} is used only for items that nobody answered; all other labels come from the answers alone."


def describe_usual(weight: float) -> str:
    """That a coupling is that of edges of the usual weight, where this is not 1.

    >>> describe_usual(157.6), describe_usual(1.0)
    (' for edges of the usual weight (158)', '')
    """
    return "" if weight == 1 else f" for edges of the usual weight ({weight:.3g})"


def are_soft(responses: Answers) -> bool:
    """Whether there are soft votes, or answers that are spread over several labels."""
    spread = responses.weight is not None and len(responses.votes()[0]) < responses.n_responses
    return spread or responses.soft is not None
