"""The result of a fit: computed once, frozen, and read by everything that comes after.

A `FitResult` holds what a fit found (estimates, labels and probabilities, calibration, intervals) and what it was found
from (answers, known labels, graph). A `Result` is made of it once, by `consilience.models.base.complete`, with the
worker table, what `fuse` compared, and what checks say. Fitted models hold one, and their attributes that end in an
underscore read from it. An update or a further batch makes another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Column, Values, encode_in_order_of_appearance, name_probabilities, to_column
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..engines import open_engine
from ..errors import NotFittedError, Sentence, plural
from ..inference.em import Estimates, Names, expect_from_votes
from ..inference.features import ComparedOpinions, FeatureClassifier, FeatureFindings
from ..inference.hidden_answers import CouplingScore, raise_to
from ..inference.labels import HIGH, LOW, MEDIAN, find_mean, find_quantile, make_vote_problem, name_levels, place_levels
from ..inference.observations import Observations, assign_groups, count_once
from ..inference.starts import VOTE_TABLES, check_matrices
from ..inference.structures import Independent
from ..inference.teaching import Teaching
from ..inference.workers import voters
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind
from .calibration import Calibrated
from .comparison import Comparison, GraphCheck, ScaleCheck, SoftCheck
from .findings import Finding
from .intervals import UNCHECKED, Intervals, Sums

if TYPE_CHECKING:
    from .label_files import Undecided

# Items that tables of labels are made of at a time.
RUN = 1 << 20


@dataclass(frozen=True, eq=False)
class Labels:
    r"""The labels of some items, with their probabilities.

    The label of item n is the most probable class of the probabilities q that are reported,

    .. math:: y_n = \arg\max_k q_{nk},

    the first of several. There are three exceptions, and the column decided_by names them: a known label; labels that
    were decoded jointly, which are the most probable path through their sequence; and medians of ordered classes, where
    these were asked for (see `consilience.inference.labels`). A vote draws lots among its most probable classes.

    Attributes
    ----------
    keys : dict
        What identifies the items: columns item, or sequence and position.
    classes : ndarray
        What a label can be.
    positions : tuple of float or None
        Where ordered classes are on their scale; None for classes without an order.
    codes : int64 array (N,)
        The label of each item, as an index into the classes.
    posterior : array (N, K)
        The probabilities that are reported.
    uncalibrated : array (N, K) or None
        Those of the fit itself; None for models without calibration.
    known : array (N,) or None
        Which labels are known ones; None if there are no known labels.
    rule : str
        What else may decide a label: "sequence" if labels were decoded jointly, "median", or "".
    shown : bool
        Whether tables show probabilities: not if nothing checks the answers, or they are too few.
    """

    keys: Mapping[str, Column]
    classes: Values
    positions: tuple[float, ...] | None
    codes: NDArray[np.int64]
    posterior: Floats
    uncalibrated: Floats | None = None
    known: NDArray[np.bool_] | None = None
    rule: str = ""
    shown: bool = True
    n_items: int = field(init=False)
    confidence: Floats = field(init=False)  # the probability of each label
    shown_confidence: Floats = field(init=False)  # the same as tables show it: NaN, if nothing checks it

    def __post_init__(self) -> None:
        n_items = len(self.codes)
        confidence = self.posterior[np.arange(n_items), self.codes]
        shown = confidence if self.shown else np.full(n_items, np.nan)
        vars(self).update(n_items=n_items, confidence=confidence, shown_confidence=shown)

    @cached_property
    def values(self) -> Values:
        """The labels themselves."""
        return np.asarray(self.classes[self.codes])

    @property
    def fitted(self) -> Floats:
        """The probabilities of the fit itself."""
        return self.posterior if self.uncalibrated is None else self.uncalibrated

    @cached_property
    def mean_confidence(self) -> float:
        """The mean probability of the labels: their expected accuracy."""
        return float(self.confidence.mean())

    def runs(self) -> list[slice]:
        """Runs of about a million items, whole sequences each: what is worked on at a time."""
        ends = np.arange(RUN, self.n_items, RUN)
        if "sequence" in self.keys and len(ends):
            # The next item of another sequence: equal ids of one sequence stand together.
            ids = encode_in_order_of_appearance(self.keys["sequence"])[0]
            starts = np.append(np.flatnonzero(ids[1:] != ids[:-1]) + 1, self.n_items)
            ends = np.unique(starts[np.searchsorted(starts, ends)])
        bounds = [0, *ends[ends < self.n_items].tolist(), self.n_items]
        return [slice(first, last) for first, last in pairwise(bounds)]

    def part(self, items: slice | NDArray[np.int64]) -> Labels:
        """The labels of some items."""
        parts: dict[str, Any] = {}
        for name in ("codes", "posterior", "uncalibrated", "known"):
            values = getattr(self, name)
            parts[name] = None if values is None else values[items]
        keys = {
            name: column[items] if isinstance(items, slice) else column.take(items)
            for name, column in self.keys.items()
        }
        return replace(self, keys=keys, **parts)

    def list_columns(self) -> dict[str, Column]:
        """The columns of a table of labels: keys, label, confidence, and the probability of each class.

        Ordered classes have the median, the mean, and the ends of a 90% interval before the probabilities. Where a
        rule can decide a label, the last column is decided_by: "" for the most probable class. What nothing checks is
        missing.
        """
        columns: dict[str, Column] = dict(self.keys)
        columns["label"] = to_column(self.values)
        columns["confidence"] = to_column(self.shown_confidence)
        if self.positions is not None:
            names, worth = name_levels(self.classes), place_levels(self.classes, self.positions)
            middle, low, high = (names[find_quantile(self.posterior, share)] for share in (MEDIAN, LOW, HIGH))
            mean, hidden = find_mean(self.posterior, worth), np.full(self.n_items, not self.shown)
            levels = {"median": middle, "mean": mean, "low": low, "high": high}
            columns |= {name: leave_open(to_column(values), hidden) for name, values in levels.items()}
        for k, name in enumerate(name_probabilities(self.classes, columns)):
            shown = np.ascontiguousarray(self.posterior[:, k]) if self.shown else self.shown_confidence
            columns[name] = to_column(shown)
        if self.known is not None or self.rule:
            ruled = bool(self.rule) & (self.confidence < self.posterior.max(axis=1))
            known = np.zeros(self.n_items, bool) if self.known is None else self.known
            rules = np.select([known, ruled], ["known label", self.rule], "").tolist()
            columns["decided_by"] = pa.array(rules, pa.string())
        return columns

    def take(self, rows: NDArray[np.int64]) -> dict[str, Column]:
        """The keys of some of the items."""
        return {name: column.take(rows) for name, column in self.keys.items()}


def leave_open(column: Column, is_open: NDArray[np.bool_]) -> Column:
    """A column in which some entries are missing."""
    if isinstance(column, np.ndarray):
        column = column.copy()
        column[is_open] = None
        return column
    return pc.if_else(pa.array(is_open), pa.scalar(None, column.type), column)


class Course(NamedTuple):
    """How a fit went."""

    trace: Floats
    n_iter: int
    converged: bool
    # The trace of every start.
    starts: Mapping[str, Floats] = {}
    smoothing: tuple[float, float] | None = None
    # How well hidden answers were predicted with the couplings that were tried.
    coupling_scores: list[CouplingScore] = []  # noqa: RUF012 (it is never changed)


class FeatureResult(NamedTuple):
    """The findings on features of the items, and the classifier that learned from them."""

    findings: FeatureFindings
    names: list[str] | None  # None if they came without names
    classifier: FeatureClassifier | None  # None if it has no say
    opinions: ComparedOpinions | None  # of classifier and crowd


class Given(NamedTuple):
    """What a model was fitted to, and how: None where there is nothing, or where a file does not hold it.

    `choose_estimator` fills what `fuse` decided (blocked workers and checks of ways), `fit_model` the inputs and the
    copies, and `make_result` the priors that features have changed.
    """

    answers: Answers | None = None  # before near-copies count once
    gold: Gold | None = None
    graph: Graph | None = None  # as it was given
    log_prior: Floats | None = None  # what was known of the items beside their answers; it is not saved
    has_priors: bool = False
    source_kind: str = "people"  # who gives the answers, see `consilience.results.findings`
    copies: list[list[int]] = []  # noqa: RUF012 (it is never changed): groups of near-copies, by index
    copies_count_once: bool = False
    blocked: Values | None = None  # workers who were left out
    # How many of them there were, and how many answers; None if nobody counted.
    n_blocked: tuple[int, int] | None = None
    n_batches: int = 0  # how many `partial_fit` has learned from
    soft_check: SoftCheck | None = None  # where `fuse` chose how soft votes are fused
    scale_check: ScaleCheck | None = None  # where `fuse` had to find out whether numbers are a scale
    teach: bool | None = None  # whether known labels were to teach; None: as far as they do


class FusionChecks(NamedTuple):
    """The comparisons that `fuse` makes."""

    comparison: Comparison | None = None  # None for votes, and where no answers can be compared
    vote: Floats | None = None  # shares of the votes of each item, known labels among them; they are not saved
    graph_check: GraphCheck | None = None
    limits_graph: bool = False  # whether errors run along edges, so that only some items use their neighbours


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit found: parameters, labels, calibration and intervals. `complete` makes the `Result` of it."""

    model: str  # the name of the model's class
    names: Names
    n_answers: NDArray[np.int64]  # of each worker
    # The frame library in which results are reported.
    backend: str
    prior: Floats
    labels: Labels
    course: Course
    intervals: Intervals
    given: Given
    kind: AnyKind = TABLE  # what the items are
    seed: int = 0
    # Parameters, and what further batches of answers need.
    fitted_estimates: Estimates | None = None  # None for a vote, see `estimates`
    voting: Observations | None = None  # of a vote: the answers as they were counted
    past: Sums | None = None
    coupling: float | None = None
    feature_result: FeatureResult | None = None
    # How far probabilities can be relied on.
    calibrated: Calibrated | None = None  # None for models without calibration
    teaching: Teaching | None = None  # what known labels taught
    checked: bool = True  # whether anything checks the answers; see `consilience.results.intervals`
    # Of the spans among the labels of a chain, if these are tags.
    span_confidence: Floats | None = None
    # The probability that each worker answers by chance; NaN where nothing checks the answers. None for votes, streams,
    # and functions whose silence is ignored.
    chance: Floats | None = None
    # Of raters on a scale, see `consilience.results.chance`; None for other workers, and for streams.
    raters: Floats | None = None

    @property
    def is_vote(self) -> bool:
        """Whether labels are those of a vote."""
        return self.model == "MajorityVote"

    @property
    def is_network(self) -> bool:
        """Whether items are linked by a graph."""
        return self.fitted_estimates is not None and self.fitted_estimates.structure.takes_all

    @cached_property
    def estimates(self) -> Estimates:
        """The parameters of workers and structure. For a vote these are matrices by its labels, which may be large."""
        if self.fitted_estimates is not None:
            return self.fitted_estimates
        assert self.voting is not None
        check_matrices("MajorityVote", voters(self.voting.responses), self.voting.responses, VOTE_TABLES)
        with open_engine(None) as opened:
            problem = make_vote_problem(self.voting, None, opened)
            statistics = expect_from_votes(problem)
            estimates = Estimates.of(problem, problem.maximise(statistics), statistics)
        return replace(estimates, structure=Independent(len(self.prior), None, 0.0, "em").given(self.prior))

    @property
    def takes_silence(self) -> bool:
        """Whether silence was an answer at the fit."""
        estimates = self.estimates
        return estimates.worker_model.hears_silence and estimates.confusion.shape[2] > len(self.names.labels)

    @property
    def expected_accuracy(self) -> tuple[float, float, float]:
        """Share of the labels that are right, by their probabilities, and the ends of its 95% interval."""
        value, (low, high) = self.labels.mean_confidence, self.intervals.expected.tolist()
        return value, min(low, value), max(high, value)


@dataclass(frozen=True, eq=False)
class Result(FitResult):
    """All that a fitted model says: what its fit found, compared, tabulated and checked. Nothing in it changes."""

    # The worker table; see `Model.worker_report`.
    workers: Mapping[str, Column] = field(default_factory=dict)
    # The table of `Model.drift_report` after the first column; None where answers have no order.
    drift: Mapping[str, Column] | None = None
    fusion_checks: FusionChecks | None = None  # None unless `fuse` made the model
    # What checks found, the most serious first; None where the answers were not kept.
    findings: tuple[Finding, ...] | None = None
    update: Any = None  # what the last update changed

    # What follows from these.
    comparison: Comparison | None = field(init=False)  # with majority vote
    graph_check: GraphCheck | None = field(init=False)  # with a shuffled graph
    # Why it is not reported how many labels are expected to be right; "" if it is.
    withheld: str = field(init=False)
    # How many workers were left out, and how many answers of theirs if that is known; None for nobody.
    left_out: tuple[int, int | None] | None = field(init=False)

    def __post_init__(self) -> None:
        checks, blocked = self.fusion_checks or FusionChecks(), self.given.blocked
        compared = checks.comparison
        vars(self).update(
            comparison=compared,
            graph_check=checks.graph_check,
            withheld=(compared.withheld if compared is not None else "") or ("" if self.checked else UNCHECKED),
            left_out=self.given.n_blocked or (None if blocked is None else (len(blocked), None)),
        )

    @property
    def answers(self) -> Answers:
        """The answers that the model was fitted to."""
        if self.given.answers is not None:
            return self.given.answers
        if self.given.n_batches:
            raise NotFittedError(
                "This model was fitted in batches, whose answers it does not keep.",
                "Give further answers to partial_fit, or fit all answers at once.",
            )
        raise NotFittedError(
            "The file of this model holds no answers: it was saved with answers=False.", "Fit the model again."
        )

    def need_features(self) -> FeatureResult:
        """The findings on features; an error if there were none."""
        if self.feature_result is None:
            raise NotFittedError(f"This {self.model} was fitted without features.", Sentence("Fit it with {features}."))
        return self.feature_result

    @property
    def n_calibrating(self) -> int | None:
        """How many known labels probabilities were calibrated by; None if they are not calibrated."""
        calibration = None if self.calibrated is None else self.calibrated.calibration
        return None if calibration is None or calibration.given else calibration.n_gold

    @property
    def reported_confidence(self) -> float | None:
        """The mean probability of the labels; None if it is `withheld`."""
        return None if self.withheld else self.labels.mean_confidence

    def undecided(self, confidence: float) -> Undecided:
        """How many labels have at least this confidence, and how many of these are expected to be wrong.

        The expectation is as good as the probabilities are. Without known labels it is often too low, since errors that
        workers share cannot be seen.

        Parameters
        ----------
        confidence : float
            From 0 to 1. `Model.to_frame(undecided=confidence)` leaves the other labels open.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> print(fused.result_.undecided(0.9).describe())
        282 of 500 labels (56.4%) are kept, with a confidence of at least 0.9. If workers err independently, 3.1% of
        these are wrong (about 8.7). Real workers share errors: on 23 real crowds 10% of the labels were expected to be
        wrong, and 20% were.
        """
        from .label_files import check_confidence, count_kept

        return count_kept(self, check_confidence(confidence, "confidence", "undecided"))

    @property
    def cross_fitted(self) -> Floats | None:
        """The probabilities (n, K) of all items of known label, as if their own were not known.

        None where the fit did not work them out. Whatever is judged by known labels is judged by these.
        """
        if self.teaching is not None:
            return self.teaching.cross_fitted
        calibrated = self.calibrated
        if calibrated is None or calibrated.blind is None:
            return None
        return raise_to(calibrated.blind, calibrated.calibration.power_before)

    def explain_calibration(self) -> str:
        """How the probabilities were calibrated, in words."""
        if self.calibrated is None:
            raise NotFittedError(f"The probabilities of a {self.model} are not calibrated.")
        calibration = self.calibrated.calibration
        if calibration.given and np.array_equal(self.labels.posterior, self.labels.fitted):
            return "Probabilities are those of the fit, without correction, as was asked for."
        return " ".join([calibration.describe(), *([] if self.teaching is None else [self.teaching.describe()])])


def describe_left_out(workers: int, answers: int | None) -> str:
    """Who was left out, in words.

    >>> describe_left_out(2, 80), describe_left_out(1, None)
    ('2 workers, 80 answers', '1 worker')
    """
    return plural(workers, "worker") + ("" if answers is None else f", {plural(answers, 'answer')}")


def weigh_copies(fit: FitResult, r: Answers, worker: NDArray[np.int64]) -> Answers:
    """Answers as the fit took its own; `worker` is the index of each of their workers at the fit."""
    if not fit.given.copies_count_once:
        return r
    groups = assign_groups(fit.given.copies, len(fit.names.workers) + 1)
    return count_once(r, groups[worker])  # -1 is a worker who was not there
