"""`Measurement`: values of items from the numbers of workers, with intervals, and what these workers are like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammaincinv, stdtrit

from ..answers.answers import Answers
from ..answers.classes import to_number, to_numbers
from ..answers.columns import Column, Values, is_present, name_composite, objects, to_column, to_values
from ..answers.gold import find_label, match_gold
from ..answers.joining import join_responses
from ..answers.matching import open_gold
from ..answers.previews import build_report, round_figures
from ..answers.random_choices import draw_numbers, hash_ids, hash_items
from ..answers.tables import BACKENDS, build_frame
from ..documents.document import Document
from ..engines import open_engine
from ..errors import InputError, LabelWarning, ParameterError, Sentence, listing, parameter_error, plural, quietly
from ..estimation.estimate import Estimate, estimate_population
from ..estimation.population import survey_table
from ..inference.averages import (
    AVERAGES,
    LEAD,
    LEAST_HIDDEN,
    LEVEL,
    MIDDLE_TWO_THIRDS,
    MOST_HIDDEN,
    TINY,
    WIDTH,
    Averages,
    Compared,
    Numbers,
    Scale,
    compare,
    learn,
)
from ..inference.copies import find_groups, number_labels
from ..inference.observations import Observations, assign_groups, count_once
from ..kernels import Floats, Integers, Truths
from ..kinds.numbers import as_numbers
from ..models.base import FromResult, Standalone
from ..models.opening import open_answers, open_gold_tables
from ..models.updating import read_batch
from ..options import is_whole
from ..planning.items import hash_keys, mix_random
from .page import CHARTS, check_values, describe_values, report_values

# So many known values teach a line, if it is ahead of values as they are by more than a standard error.
LEAST_KNOWN = 10
# From this probability on a worker is called careless: in made-up crowds four of five of these are found, and one of
# 400 others is accused. With fewer answers nothing is said.
CARELESS, LEAST_ANSWERS = 0.96, 5
# A bias is worth a remark if it is larger than this part of the usual spread of errors, beyond doubt.
LEAST_BIAS = 0.5


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found of N items by M workers who gave A numbers. Nothing in it changes.

    Attributes
    ----------
    keys : dict
        What identifies the items: columns item, or sequence and position.
    workers : ndarray
        Ids.
    item, worker, said, weight : ndarray of shape (A,)
        The answers, sorted by item.
    known, value, low, high : ndarray of shape (N,)
        Known values, and those that were found, with 90 % intervals; what is not known is NaN.
    variance : ndarray of shape (N,)
        That of the values; of their logarithms on a logarithmic scale.
    bias, bias_error, spread, freedom, careless : ndarray of shape (M,)
        How workers answer, see `consilience.inference.averages`; on a logarithmic scale biases and spreads are those of
        logarithms.
    average, scale : str
        What was used: one of `AVERAGES`, and "linear" or "log".
    line : tuple of float or None
        Offset and slope that known values taught.
    errors : dict
        How far each average was from hidden answers; empty if they were not compared.
    copies : list of list of int
        Groups of workers who copy each other, by their indices. Each group counts as one worker.
    """

    shapes: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("keys", "known", "value", "low", "high", "variance"), "N"),
        **dict.fromkeys(("workers", "bias"), "M"),
        **dict.fromkeys(("bias_error", "spread", "freedom"), "M: positive"),
        "careless": "M: probabilities",
        "item": "A",
        "worker": "A: workers",
        "said": "A: finite",
        "weight": "A: positive",
        "average": AVERAGES,
        "scale": ("linear", "log"),
        "backend": tuple(BACKENDS),
    }

    keys: dict[str, Column]
    workers: Values
    item: Integers
    worker: Integers
    said: Floats
    weight: Floats | None
    known: Floats
    value: Floats
    low: Floats
    high: Floats
    variance: Floats
    bias: Floats
    bias_error: Floats
    spread: Floats
    freedom: Floats
    careless: Floats
    average: str
    scale: str
    line: tuple[float, float] | None
    errors: dict[str, float]
    copies: list[list[int]]
    n_iter: int
    converged: bool
    seed: int
    backend: str
    columns: dict[str, str]

    def check_saved(self) -> None:
        """Raise a `ValueError` unless the fields of a file go together."""
        if (
            not len(self.item)
            or not 0 <= self.item[0] <= self.item[-1] < len(self.value)
            or (np.diff(self.item) < 0).any()
        ):
            raise ValueError("the items of the answers cannot be so")
        if any(not 0 <= m < len(self.workers) for group in self.copies for m in group):
            raise ValueError("copies are not workers")
        if not set(self.keys) >= ({"item"} if "item" in self.keys else {"sequence", "position"}):
            raise ValueError("nothing says which items these are")

    @cached_property
    def n_answers(self) -> Integers:
        """How many answers each item has."""
        return np.bincount(self.item, minlength=len(self.value))

    @cached_property
    def asked(self) -> Integers:
        """How many answers each worker gave."""
        return np.bincount(self.worker, minlength=len(self.workers))

    @cached_property
    def width(self) -> Floats:
        """How wide the intervals are: on a logarithmic scale, as ratios."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(self.high / self.low) if self.scale == "log" else self.high - self.low

    @cached_property
    def called_careless(self) -> Truths:
        """Which workers are called careless."""
        return (self.careless > CARELESS) & (self.asked >= LEAST_ANSWERS)

    def table(self, rows: Integers | None = None) -> dict[str, Column]:
        """The columns of values, of all items or some."""
        rows = np.arange(len(self.value)) if rows is None else rows
        keys = {name: column.take(rows) for name, column in self.keys.items()}
        figures = {"value": self.value, "low": self.low, "high": self.high, "answers": self.n_answers}
        more = {"known": np.isfinite(self.known)} if np.isfinite(self.known).any() else {}
        return keys | {name: to_column(values[rows]) for name, values in (figures | more).items()}

    def next_items(self, n: int) -> dict[str, Column]:
        """The columns of `Measurement.next_items`."""
        unknown, wide = np.isnan(self.known), np.nan_to_num(self.width, nan=np.inf)
        rows, drawn = mix_random(n, unknown, self.n_answers > 0, -wide, draw_numbers(self.seed, hash_keys(self.keys)))
        return self.table(rows) | {"random": to_column(drawn)}

    def read_answers(self) -> Answers:
        """The answers, as they were read."""
        keys = {name: self.keys[name] for name in ("item", "sequence", "position") if name in self.keys}
        said = {"worker": self.workers[self.worker], "label": self.said, "weight": self.weight}
        rows = {name: column.take(self.item) for name, column in keys.items()}
        with quietly():
            table = rows | {name: values for name, values in said.items() if values is not None}
            answers = as_numbers(Answers.from_frame(table, items=keys, gold=False))
        return replace(answers, columns=self.columns)

    @cached_property
    def worker_table(self) -> dict[str, Column]:
        """The columns of the worker report."""
        reach = stdtrit(self.freedom, (1 + LEVEL) / 2) * self.bias_error
        ends = 2 * gammaincinv(self.freedom / 2, [[(1 + LEVEL) / 2], [(1 - LEVEL) / 2]])
        low, high = self.spread * np.sqrt(self.freedom / ends)
        least = LEAST_BIAS * np.median(self.spread)
        remarks = []
        for m in range(len(self.workers)):
            sided = abs(self.bias[m]) > reach[m] and abs(self.bias[m]) > least
            words = ["careless"] if self.called_careless[m] else ["high" if self.bias[m] > 0 else "low"] * int(sided)
            remarks.append("; ".join(words + ["few answers"] * int(self.asked[m] < LEAST_ANSWERS)))
        figures = {
            "answers": self.asked,
            "bias": self.bias,
            "bias_low": self.bias - reach,
            "bias_high": self.bias + reach,
            "spread": self.spread,
            "spread_low": low,
            "spread_high": high,
            "careless": self.careless,
        }
        return {
            name: to_column(values) for name, values in {"worker": self.workers, **figures, "remarks": remarks}.items()
        }


@dataclass(kw_only=True, eq=False, repr=False)
class Measurement(Standalone[Measured]):
    r"""One value per item from the numbers that workers gave: marks, sliders, estimates.

    Worker m says of item n

    .. math:: y_{nm} = t_n + b_m + s_m e

    with a bias :math:`b_m`, a spread :math:`s_m` and a heavy-tailed error e; or the worker is careless, and the answers
    have nothing to do with the items. No average is best everywhere. So the mean, the median, the mean weighted by
    precision and the robust average by this model predict answers that were hidden, and the best one is used.

    Parameters
    ----------
    average : {"auto", "mean", "median", "weighted", "robust"}
        How a value is made of answers. "auto" is the one that predicts hidden answers best; of few answers, the median.
    scale : {"auto", "linear", "log"}
        Whether errors are differences or ratios. "auto": ratios if all answers are positive and hidden answers ask for
        it.
    max_iter, tol : int, float
        Most steps. They stop when values move by less than `tol` standard errors, on average.
    seed : int
        Seed of which answers are hidden.

    Attributes
    ----------
    values_ : ndarray
        The value of each item, NaN where nobody answered.
    average_, scale_ : str
        What was used.
    errors_ : dict
        How far each average was from hidden answers (root mean square); empty if there was nothing to compare.
    findings_ : list of Finding
        What to know about the values, the most serious first.
    n_iter_, converged_ : int, bool
        How the fit ended.

    Notes
    -----
    Known values (`gold`) are kept, and tell how high workers answer. Ten or more also teach a line: if the crowd is too
    high or too timid as a whole, :math:`a + b t_n` is nearer to the truth, and intervals are as wide as known values
    ask for. The formulas are in `consilience.inference.averages`.

    Examples
    --------
    >>> import consilience as cs
    >>> marks = {"item": list("aaabbbccc"), "worker": list("xyzxyzxyz"), "label": [6.5, 7, 9, 2, 2.5, 5, 4, 4.5, 6]}
    >>> model = cs.Measurement(average="median").fit(marks)
    >>> model.values_.tolist()
    [7.0, 2.5, 4.5]
    """

    result_type: ClassVar[Any] = Measured
    charts: ClassVar[Any] = CHARTS
    page_title: ClassVar[str] = "Values"

    values_ = FromResult(lambda result: result.value, "The value of each item, NaN where nobody answered.")
    average_ = FromResult(lambda result: result.average, "The average that was used.")
    scale_ = FromResult(lambda result: result.scale, 'Whether errors are differences ("linear") or ratios ("log").')
    errors_ = FromResult(lambda result: dict(result.errors), "How far each average was from hidden answers.")
    n_iter_ = FromResult(lambda result: result.n_iter, "Number of iterations.")
    converged_ = FromResult(lambda result: result.converged, "Whether the fit settled.")

    average: str = "auto"
    scale: str = "auto"
    max_iter: int = 200
    tol: float = 0.01
    seed: int = 0

    def _adopt(self, result: Measured) -> Self:
        """Take a result as that of this model; return the model itself."""
        self.findings_ = check_values(result)
        return super()._adopt(result)

    def fit(self, answers: object, *, gold: object = None) -> Self:
        """Learn the values of items, and how workers answer.

        Parameters
        ----------
        answers : Answers, table or path
            The answers, whose labels are numbers; see `Answers.from_frame`.
        gold : dict, Series, table or path, optional
            Known values: {item: value}, or a table with columns item and label.

        Returns
        -------
        self
        """
        crowd = open_numbers(answers)
        return self._fit(crowd, match_known(open_gold_tables(gold), crowd))

    def _fit(self, crowd: Answers, known: Floats) -> Self:
        """Learn from answers and known values; return the model itself."""
        self._check()
        said = np.asarray(crowd.labels, np.float64)[crowd.label]
        with open_engine(None) as engine:  # who says the same to the last digit, beyond chance
            copies = find_groups(Observations(number_labels(crowd, None)[0]), engine)
        crowd = count_once(crowd, assign_groups(copies, crowd.n_workers))
        positive = said.min() > 0 and not (known <= 0).any()
        if self.scale == "log" and not positive:
            problem = "A logarithmic scale is for numbers above 0, and some are not."
            raise InputError(problem, Sentence("Leave out {scale}.", scale="log"), keyword="scale")
        is_log, average, errors = self.scale == "log", self.average, dict[str, float]()
        if average == "auto" or (self.scale == "auto" and positive):
            is_log, average, errors = self._compare(crowd, said, known, positive)
        at = np.isfinite(known)
        are_single = np.diff(crowd.offsets).max() < 2 and not at.any()
        average = "mean" if are_single else average  # which are the answers themselves
        scale, data = pose(crowd, said, known, is_log)
        learned, line = self._learn(data, average)
        unit = scale.unit
        value, low, high = (
            np.where(at, known, scale.undo(each)) for each in (learned.value, learned.low, learned.high)
        )
        if are_single:  # nothing tells how wrong these are
            low = high = np.full(crowd.n_items, np.nan)
        if line is not None:
            line = line[0] * unit + scale.middle * (1 - line[1]), line[1]
        spread = learned.spread * unit * (MIDDLE_TWO_THIRDS if average == "robust" else 1.0)
        return self._adopt(
            Measured(
                keys=dict(crowd.key_columns()),
                workers=crowd.workers,
                item=crowd.item_of_answer(),
                worker=np.asarray(crowd.worker, np.int64),
                said=said,
                weight=crowd.weight,
                known=known,
                value=value,
                low=low,
                high=high,
                variance=np.where(at, 0.0, learned.variance * unit**2),
                bias=learned.bias * unit,
                bias_error=learned.bias_error * unit,
                spread=spread,
                freedom=learned.freedom,
                careless=learned.careless,
                average=average,
                scale="log" if is_log else "linear",
                line=line,
                errors={name: error * unit for name, error in errors.items()},
                copies=copies,
                n_iter=learned.n_iter,
                converged=learned.converged,
                seed=self.seed,
                backend=crowd.backend,
                columns=dict(crowd.columns),
            )
        )

    def _compare(
        self, crowd: Answers, said: Floats, known: Floats, positive: bool
    ) -> tuple[bool, str, dict[str, float]]:
        """Whether a logarithmic scale is used, which average, and how far each is from hidden answers."""
        hashes = hash_items(crowd.keys)
        order = np.argsort(draw_numbers(self.seed, hashes), kind="stable")
        inside = np.cumsum(np.diff(crowd.offsets)[order]) <= MOST_HIDDEN
        chosen = np.zeros(crowd.n_items, bool)
        chosen[order[inside]] = True
        item = crowd.item_of_answer()
        rows = np.flatnonzero(chosen[item])
        draws = draw_numbers(self.seed, hashes[item[rows]], hash_ids(crowd.workers)[crowd.worker[rows]]) >> np.uint64(8)
        compared, scales = dict[bool, Compared](), dict[bool, Scale]()
        for is_log in (False, True) if self.scale == "auto" and positive else (self.scale == "log",):
            scales[is_log], data = pose(crowd, said, known, is_log)
            compared[is_log] = compare(data.about(chosen), draws.astype(np.int64), self.max_iter, self.tol)
        is_log, found = next(iter(compared.items()))
        if len(found.answers) < LEAST_HIDDEN:
            return is_log, "median" if self.average == "auto" else self.average, {}
        if len(compared) == 2:
            # The density of a number is that of its logarithm, divided by the number.
            log_said = np.log(said[rows][found.answers])
            gain = compared[True].densities - np.log(scales[True].unit) - log_said
            gain -= found.densities - np.log(scales[False].unit)
            is_log = bool(gain.mean() > LEAD * gain.std() / np.sqrt(len(gain)))
        errors = compared[is_log].errors()
        return is_log, min(errors, key=errors.__getitem__) if self.average == "auto" else self.average, errors

    def _learn(self, data: Numbers, average: str) -> tuple[Averages, tuple[float, float] | None]:
        """What is learned with known values, and the line that they teach; None if they teach none."""
        at = np.flatnonzero(np.isfinite(data.known))
        if len(at) >= LEAST_KNOWN:
            plain = learn(data._replace(known=np.full(len(data.known), np.nan)), average, self.max_iter, self.tol)
            at = at[np.isfinite(plain.value[at])]
            x, truth, n = plain.value[at], data.known[at], len(at)
            spread = float(np.sum((x - x.mean()) ** 2)) if n else 0.0
            if n >= LEAST_KNOWN and spread > 0:
                slope = float(np.sum((x - x.mean()) * (truth - truth.mean()))) / spread
                offset = float(truth.mean() - slope * x.mean())
                # What is left of each known value, by the line through the others.
                left = (truth - offset - slope * x) / (1 - 1 / n - (x - x.mean()) ** 2 / spread)
                gain = (truth - x) ** 2 - left**2
                if slope > 0 and gain.mean() > gain.std() / np.sqrt(n):
                    half = slope * (plain.high[at] - plain.low[at]) / 2
                    wider = max(1.0, WIDTH * float(np.sqrt(np.mean(left**2) / max(np.mean(half**2), TINY))))
                    value = offset + slope * plain.value
                    low, high = (value + slope * wider * (end - plain.value) for end in (plain.low, plain.high))
                    variance = (slope * wider) ** 2 * plain.variance
                    return replace(plain, value=value, low=low, high=high, variance=variance), (offset, slope)
        return learn(data, average, self.max_iter, self.tol), None

    def update(self, answers: object, *, gold: object = None, duplicates: str = "error") -> Self:
        """Add answers, and learn from all of them.

        Parameters
        ----------
        answers : Answers, table or path
            Further answers; items and workers may be new.
        gold : optional
            Further known values, as for `fit`.
        duplicates : {"error", "first", "last"}
            What to do with answers of a worker about an item that is there already.

        Returns
        -------
        self
        """
        result = self.result_
        old = result.read_answers()
        with quietly(LabelWarning):
            new, retracted, _ = read_batch(answers, old, duplicates)
            joined = join_responses(old, as_numbers(new), duplicates, retracted)
        crowd = replace(joined.responses, columns=result.columns, backend=result.backend)
        known, further = np.full(crowd.n_items, np.nan), match_known(open_gold_tables(gold), crowd)
        known[joined.item] = result.known
        return self._fit(crowd, np.where(np.isfinite(further), further, known))

    def to_frame(self) -> Any:
        """Return a table of items: value, its 90 % interval (low, high), and answers, their number."""
        return build_frame(self.result_.table(), self.result_.backend)

    def worker_report(self) -> Any:
        """Return a table of workers.

        Columns: worker; answers; bias with its 90 % interval (bias_low, bias_high), positive if the worker answers
        high; spread, which two thirds of the errors are within, with its interval; careless, the probability that the
        answers have nothing to do with the items; remarks. On a logarithmic scale biases and spreads are those of
        logarithms: 0.1 is about 10 %.
        """
        return build_report(round_figures(self.result_.worker_table), self.result_.backend)

    def next_items(self, n: int = 50) -> Any:
        """Return a table of the items to ask about next: those with the widest intervals, and two of ten at random.

        Parameters
        ----------
        n : int, default 50
            How many items to list.
        """
        if not is_whole(n) or n < 1:
            raise parameter_error("n", "next_items", "a whole number >= 1", n)
        return build_frame(self.result_.next_items(int(n)), self.result_.backend)

    def estimate(self, gold: object = None, of: object = "mean", by: object = None, pairs: object = None) -> Estimate:
        """Return the mean of all values, and of groups, with intervals that hold whatever the errors of the workers.

        Parameters
        ----------
        gold, of, by, pairs
            Known values of items that were drawn at random, and groups, as for `Model.estimate`. The model must not
            have been fitted to known values: these have no errors, and others have.

        Returns
        -------
        Estimate
        """
        if gold is None or np.isfinite(self.result_.known).any():
            problem = "Known values are needed that the model was not fitted to."
            raise ParameterError(problem, Sentence("Fit without {gold}, and give it here."), keyword="gold")
        result = self.result_
        mean = np.nanmean(result.value)  # predicted where nobody answered
        values = {"value": to_column(np.where(np.isnan(result.value), mean, result.value))}
        found, named = dict(result.table() | values), result.columns.get("item", "item")
        if named not in found and not name_composite(result.columns):  # known values may call items as answers do
            found = {named if name == "item" else name: column for name, column in found.items()}
        item = named if named in found else None
        population = survey_table(build_frame(found, result.backend), gold, item)
        return estimate_population(population, of or "mean", by, pairs)

    def overview(self, title: str = "") -> Document:
        """What terminals, notebooks and JSON show."""
        return describe_values(self.result_, self.findings_, title)

    def page(self, title: str = "Values") -> Document:
        """The report."""
        return report_values(self.result_, self.findings_, title, type(self).__name__)

    def _describe(self) -> str:
        result = self.result_
        numbers, workers = plural(len(result.said), "number"), plural(len(result.workers), "worker")
        return f"{numbers} of {workers} about {plural(len(result.value), 'item')}"


def open_numbers(answers: object) -> Answers:
    """Answers in any form, whose labels are floats."""
    with quietly(LabelWarning):
        crowd = open_answers(answers)
    if not isinstance(crowd, Answers):
        raise InputError(f"{type(crowd).__name__} are no numbers.", "Give a table with a number in each row.")
    return as_numbers(crowd)


def pose(crowd: Answers, said: Floats, known: Floats, is_log: bool) -> tuple[Scale, Numbers]:
    """The answers as they are worked with, and the scale of that."""
    scale = Scale.of(said, is_log)
    weight = np.ones(len(said)) if crowd.weight is None else np.asarray(crowd.weight, np.float64)
    weight = weight if crowd.share is None else weight * crowd.share
    numbers = scale.apply(said), weight, scale.apply(known)
    return scale, Numbers(crowd.item_of_answer(), np.asarray(crowd.worker, np.int64), *numbers, crowd.n_workers)


def match_known(gold: object, crowd: Answers) -> Floats:
    """The known value of each item, else NaN."""
    known = np.full(crowd.n_items, np.nan)
    if gold is None or gold is False:
        return known
    parts, said = [] if crowd.sequences is not None else name_composite(crowd.columns), list[Any]()
    for each in gold if isinstance(gold, (list, tuple)) and len(gold) else [gold]:
        table = open_gold(each, crowd.sequences is not None, parts).prefer(crowd.columns)
        column = table.read(find_label(table))
        said += to_values(column)[is_present(column)].tolist()
    names = objects(list(dict.fromkeys(said)))
    values = to_numbers(names)
    if values is None:
        odd = [each for each in names.tolist() if to_number(each) is None]
        raise InputError(f"Known values must be numbers. Got {listing(odd)}.", "Correct them.", keyword="gold")
    matched = match_gold(gold, crowd, names)
    return known if matched is None else np.where(matched.codes >= 0, values[matched.codes], np.nan)
