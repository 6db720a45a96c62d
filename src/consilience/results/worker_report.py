"""What a fit says about each worker, and about the classifier of features, which is described as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, Values, lookup, to_column, to_values
from ..inference import Cells, sum_by
from ..inference.guidance import ComparedOpinions
from ..inference.recipes import VOTE_SMOOTHING
from ..inference.workers.temperatures import MeanWorkers
from ..kernels import Floats
from . import raters
from .chance import BY_CHANCE
from .intervals import informativeness, informativeness_of_speech, judge_voters
from .result import Guidance, Labels, Result
from .sureness import list_sureness

FEW_ANSWERS = 10
UNINFORMATIVE = 0.05
CONTRARY = 0.05
ONE_LABEL = 0.95
AS_IF_BY_CHANCE, ONE_LABEL_ONLY, FEW, MOSTLY_CALLS = "answers as if by chance", "one label", "few answers", "calls"
# Beginnings of remarks, those first that call for most attention; of few answers nobody can tell.
ATTENTION = (
    AS_IF_BY_CHANCE,
    "contrary",
    ONE_LABEL_ONLY,
    "near-copy",
    "accuracy falls",
    "harsh",
    "lenient",
    MOSTLY_CALLS,
    "uninformative",
    "",
    FEW,
)
# Expected answers that a mistake must have to be told, and a truth for the rate of a mistake to mean something.
WORTH_TELLING, ENOUGH_MET = 0.5, 3.0
# A mistake is a habit if its share of at least `FEW_ANSWERS` answers about that truth lies above one half, and by so
# many standard errors that chance alone brings it there in one case of ten.
HABIT, BEYOND_CHANCE = 0.5, 1.28
# Columns that take the labels for the truth, and remarks that do not.
JUDGED, COUNTED = ("accuracy", "informativeness", *raters.FIGURES), (FEW, ONE_LABEL_ONLY)
# So many entries of a table of workers are worked on at a time.
MOST_ENTRIES = 1 << 20


class Mistake(NamedTuple):
    """A mistake of a worker.

    >>> mistake = Mistake("cat", "dog", 0.86, 12.0)
    >>> str(mistake), mistake.describe_habit()
    ('cat -> dog (86%)', 'calls cat dog (86%)')
    """

    truth: Any
    answer: Any
    share: float  # of the answers about that truth
    n_met: float  # how many these are expected to be

    def __str__(self) -> str:
        return f"{self.truth} -> {self.answer} ({self.share:.0%})"

    def describe_habit(self) -> str:
        """Return a remark if the worker mostly makes this mistake."""
        error = (HABIT * (1 - HABIT) / self.n_met) ** 0.5
        is_habit = self.n_met >= FEW_ANSWERS and self.share > HABIT + BEYOND_CHANCE * error
        return f"{MOSTLY_CALLS} {self.truth} {self.answer} ({self.share:.0%})" if is_habit else ""


def describe_workers(
    counts: Floats,
    confusion: Floats,
    prior: Floats,
    n_answers: NDArray[np.int64],
    labels: Values,
    classes: Values,
    intervals: Floats,
    suspected: Suspected | None = None,
) -> dict[str, Column]:
    """Return the columns of `worker_report`.

    Parameters
    ----------
    counts : array (M, L, K)
        Expected number of times worker m said l when the truth was k.
    confusion : array (M, K, L)
        Confusion matrices.
    prior : array (K,)
        Class prior.
    n_answers : array (M,)
        Number of answers.
    labels, classes : ndarray
        Their names.
    intervals : array (M, 4)
        Ends of the intervals of accuracy and of informativeness.
    suspected : Suspected, optional
        Who seems to answer by chance.
    """
    said = lookup(classes, to_column(labels))
    right = np.zeros(len(counts))
    for label, k in enumerate(said):
        if k >= 0:
            right += counts[:, label, k]
    total = counts.sum(axis=(1, 2))
    # What the same mix of answers would get right if it had nothing to do with the truth.
    mix = counts.sum(axis=2) / np.maximum(total, 1e-300)[:, None]
    truth = counts.sum(axis=1) / np.maximum(total, 1e-300)[:, None]
    chance = sum((mix[:, label] * truth[:, k] for label, k in enumerate(said) if k >= 0), start=np.zeros(len(counts)))
    information = informativeness(confusion, prior)
    hears_silence = confusion.shape[2] > len(labels)
    figures = Figures(
        right=right,
        total=total,
        # A worker of one label has said two things where silence is the other.
        top=np.zeros(len(counts)) if hears_silence else mix.max(axis=1),
        chance=chance,
        information=information,
        speech=informativeness_of_speech(confusion, prior) if hears_silence else information,
    )
    worst = worst_confusions(counts, said, labels, classes)
    return make_columns(figures, worst, n_answers, prior, intervals, suspected)


def describe_voters(
    cells: Cells,
    smoothing: tuple[float, float],
    prior: Floats,
    n_answers: NDArray[np.int64],
    labels: Values,
    classes: Values,
) -> dict[str, Column]:
    """Return the same columns as `describe_workers` for matrices that are `cells` and two pseudo-counts.

    Parameters
    ----------
    cells : Cells
        Expected counts.
    smoothing : tuple
        The pseudo-counts, off and on the diagonal, that make confusion matrices of them.
    prior, n_answers, labels, classes
        As for `describe_workers`.
    """
    said = lookup(classes, to_column(labels))
    n_workers, n_labels, n_classes = cells.shape
    figures, worst = [], list[Mistake | None]()
    n_together = max(1, MOST_ENTRIES // max(n_labels, n_classes))
    for first in range(0, n_workers, n_together):
        part = cells.of_workers(first, min(first + n_together, n_workers))
        figures.append(_count_votes(part, said, smoothing, prior))
        worst += _worst_votes(part, said, labels, classes)
    together = Figures(*map(np.concatenate, zip(*figures, strict=True)))
    intervals = judge_voters(together.right, together.total, together.information, prior)
    return make_columns(together, worst, n_answers, prior, intervals)


def _count_votes(cells: Cells, said: NDArray[np.int64], smoothing: tuple[float, float], prior: Floats) -> Figures:
    """Return the figures of a few workers."""
    right = np.where(said[cells.label] == cells.klass, cells.count, 0.0)
    by_label, by_class = cells.sum_out(2), cells.sum_out(1)
    total = by_label.sum(axis=1)
    named = np.flatnonzero(said >= 0)
    scale = np.maximum(total, 1e-300)
    # Shares first: the product of two large counts may leave the range of doubles.
    label_share, class_share = by_label / scale[:, None], by_class / scale[:, None]
    chance = np.sum(label_share[:, named] * class_share[:, said[named]], axis=1)
    information = _inform(cells, said, smoothing, prior)
    return Figures(
        right=sum_by(cells.worker, right, cells.shape[0]),
        total=total,
        top=by_label.max(axis=1) / scale,
        chance=chance,
        information=information,
        speech=information,
    )


def _inform(cells: Cells, said: NDArray[np.int64], smoothing: tuple[float, float], prior: Floats) -> Floats:
    """Return what `informativeness` does.

    The information is sum_k p_k sum_l c log c - sum_l a log a, where c[k, l] are the matrices and a the shares of the
    answers. Most c are the same for all labels, namely off / T_k.
    """
    off, diagonal = smoothing
    n_labels = cells.shape[1]
    named = np.flatnonzero(said >= 0)
    truth = said[named]
    is_right = said[cells.label] == cells.klass
    wrong = cells.where(~is_right)
    right = cells.where(is_right).sum_out(2)[:, named]  # how often each label that names a class was right
    mass = cells.sum_out(1) + n_labels * off
    mass[:, truth] += diagonal - off
    least = off / mass
    n_least = n_labels - wrong.with_counts(np.ones(len(wrong.count))).sum_out(1)
    n_least[:, truth] -= 1
    correct = (right + diagonal) / mass[:, truth]
    mistaken = (wrong.count + off) / mass[wrong.worker, wrong.klass]
    # Sums and no products of matrices, whose rounding depends on how many workers there are.
    negative_entropy = np.sum(n_least * prior * _times_log(least), axis=1)
    negative_entropy += np.sum(prior[truth] * _times_log(correct), axis=1)
    negative_entropy += sum_by(wrong.worker, prior[wrong.klass] * _times_log(mistaken), cells.shape[0])
    answer = wrong.with_counts(prior[wrong.klass] * wrong.count / mass[wrong.worker, wrong.klass]).sum_out(2)
    answer += np.sum(least * prior, axis=1, keepdims=True)
    answer[:, named] += (correct - least[:, truth]) * prior[truth]
    information = negative_entropy - _times_log(answer).sum(axis=1)
    entropy = -float(_times_log(prior).sum())
    return np.clip(information / entropy, 0.0, 1.0) if entropy > 0 else np.zeros(cells.shape[0])


def _times_log(values: Floats) -> Floats:
    """Return x log x."""
    return values * np.log(np.where(values > 0, values, 1.0))


def _worst_votes(cells: Cells, said: NDArray[np.int64], labels: Values, classes: Values) -> list[Mistake | None]:
    """Return what `worst_confusions` does."""
    met = cells.sum_out(1)
    wrong = cells.where((said[cells.label] != cells.klass) & (cells.count >= WORTH_TELLING))
    telling = tells_rates(met, cells.sum_out(2))[wrong.worker, wrong.klass]
    wrong = wrong.where(telling)
    rate = wrong.count / met[wrong.worker, wrong.klass]
    order = np.lexsort((-rate, wrong.worker))  # of equal rates the first
    worker, first = np.unique(wrong.worker[order], return_index=True)
    mistakes: list[Mistake | None] = [None] * cells.shape[0]
    for m, cell in zip(worker.tolist(), order[first].tolist(), strict=True):
        k = wrong.klass[cell]
        share = float(wrong.count[cell] / met[m, k])
        mistakes[m] = Mistake(classes[k], labels[wrong.label[cell]], share, float(met[m, k]))
    return mistakes


class Figures(NamedTuple):
    """What is counted of each worker, (M,) each."""

    right: Floats  # expected number of right answers
    total: Floats  # number of answers
    top: Floats  # share of the label that is given most often
    chance: Floats  # share of right answers that the same mix of answers would have by chance
    information: Floats  # informativeness
    speech: Floats  # informativeness of answers that are not silence


class Suspected(NamedTuple):
    """Who seems to answer by chance, (M,) each."""

    probability: Floats  # NaN where nothing can be told
    accused: NDArray[np.bool_]

    @classmethod
    def of(cls, found: Result) -> Suspected | None:
        """Return whom a fit suspects; None if it cannot tell.

        Nobody is accused by few answers, nor where all agree no more than by chance, or most workers seem to: then
        there is no truth to judge them by.
        """
        chance = found.chance.value
        if chance is None:
            return None
        accused = (chance >= BY_CHANCE) & (found.n_answers >= FEW_ANSWERS)
        n_judged = np.count_nonzero(~np.isnan(chance) & (found.n_answers >= FEW_ANSWERS))
        noise = found.comparison is not None and found.comparison.by_chance
        if noise or 2 * accused.sum() > n_judged:
            accused = np.zeros(len(chance), bool)
        return cls(chance, accused)


def make_columns(
    figures: Figures,
    worst: Sequence[Mistake | None],
    n_answers: NDArray[np.int64],
    prior: Floats,
    intervals: Floats,
    suspected: Suspected | None = None,
) -> dict[str, Column]:
    """Return the columns of the report, with the remarks that the figures call for."""
    total, chance = figures.total, figures.chance
    unknown = Suspected(np.full(len(total), np.nan), np.zeros(len(total), bool))
    by_chance, accused = suspected or unknown
    told = np.maximum(figures.information, figures.speech)
    accuracy = np.divide(figures.right, total, out=np.full(len(total), np.nan), where=total > 0)
    error = np.sqrt(np.maximum(chance * (1 - chance), 0.0) / np.maximum(total, 1.0))
    few, one_label = n_answers < FEW_ANSWERS, (figures.top > ONE_LABEL) & (prior.max() < ONE_LABEL)
    contrary = accuracy + CONTRARY + 2 * error < chance
    dull = (told < UNINFORMATIVE) & (prior.max() < 1)  # with one class there is no information to give
    habits = ["" if mistake is None else mistake.describe_habit() for mistake in worst]
    remarks = []
    for m in range(len(total)):
        found = [AS_IF_BY_CHANCE] if accused[m] else []
        if one_label[m]:
            found.append(ONE_LABEL_ONLY)
        elif contrary[m] and not found:
            found.append("contrary")
        elif dull[m] and not found:
            found.append("uninformative")
        elif not found and habits[m]:
            found.append(habits[m])
        remarks.append(FEW if few[m] else "; ".join(found))
    return {
        "answers": to_column(n_answers.astype(np.int64)),
        "accuracy": to_column(accuracy),
        "accuracy_low": to_column(intervals[:, 0].copy()),
        "accuracy_high": to_column(intervals[:, 1].copy()),
        "informativeness": to_column(figures.information),
        "informativeness_low": to_column(intervals[:, 2].copy()),
        "informativeness_high": to_column(intervals[:, 3].copy()),
        "chance": to_column(by_chance),
        "worst_confusion": to_column(["" if mistake is None else str(mistake) for mistake in worst]),
        "remarks": to_column(remarks),
    }


def rank_attention(report: Mapping[str, Column]) -> tuple[NDArray[np.int64], Floats]:
    """Return by what the workers of a report are sorted, those first who call for attention: by remarks, then accuracy.

    Accuracy counts by the lower end of its interval, so that a worker with a single answer, which happens to be right,
    is not the best of all. Those with few answers are sorted by the middle of the interval: of one answer, the lower
    end says that all may be wrong, and that is no need for attention.

    >>> remarks = pa.array(["few answers", "answers as if by chance; one label"])
    >>> accuracy = {"accuracy": [0.0, 0.4], "accuracy_low": [0.0, 0.3], "accuracy_high": [0.98, 0.5]}
    >>> rank_attention({"remarks": remarks, **{name: pa.array(values) for name, values in accuracy.items()}})
    (array([10,  0]), array([0.49, 0.3 ]))
    """
    # What is missing is not a number.
    low, accuracy, high = (np.asarray(report[f"accuracy{end}"], float) for end in ("_low", "", "_high"))
    low = np.where(np.isnan(low), np.where(np.isnan(accuracy), 0.0, accuracy), low)
    different, place = np.unique(np.asarray(report["remarks"]), return_inverse=True)
    kind = np.array([_rank_remarks(remarks) for remarks in different], np.int64)[place]
    halfway = (kind == ATTENTION.index(FEW)) & ~np.isnan(high)
    return kind, np.where(halfway, (low + high) / 2, low)


def _rank_remarks(remarks: str) -> int:
    """Return the place in `ATTENTION` of the one of several remarks that calls for most."""
    parts = remarks.split("; ")
    return next(
        place
        for place, name in enumerate(ATTENTION)
        if any(each == name or (name and each.startswith(name)) for each in parts)
    )


def name_copies(columns: dict[str, Column], groups: Sequence[Sequence[int]]) -> dict[str, Column]:
    """Return the columns of the report with a remark for each near-copy, and the number of its group."""
    remarks = to_values(columns["remarks"]).tolist()
    numbers: list[int | None] = [None] * len(remarks)
    for number, group in enumerate(groups, 1):
        for member in group:
            remark = f"near-copy (group {number})"
            remarks[member] = f"{remarks[member]}; {remark}" if remarks[member] else remark
            numbers[member] = number
    return columns | {"remarks": to_column(remarks), "group": pa.array(numbers, pa.int64())}


def worst_confusions(counts: Floats, said: NDArray[np.int64], labels: Values, classes: Values) -> list[Mistake | None]:
    """Return each worker's mistake with the highest rate, as a share of the answers about that truth.

    Of one who says only one label there is nothing to tell: all other truths are called by it.
    """
    wrong = counts.copy()
    for label, k in enumerate(said):
        if k >= 0:
            wrong[:, label, k] = 0.0
    wrong[wrong < WORTH_TELLING] = 0.0
    met = counts.sum(axis=1)
    wrong *= tells_rates(met, counts.sum(axis=2))[:, None, :]
    wrong /= np.maximum(met, 1e-300)[:, None, :]
    mistakes = list[Mistake | None]()
    for m, cell in enumerate(wrong.reshape(len(counts), -1).argmax(axis=1)):
        label, k = divmod(int(cell), counts.shape[2])
        share = float(wrong[m, label, k])
        mistakes.append(Mistake(classes[k], labels[label], share, float(met[m, k])) if share > 0 else None)
    return mistakes


def tells_rates(met: Floats, given: Floats) -> NDArray[np.bool_]:
    """Tell about which truths, (M, K), each worker has enough answers for rates; there is one, if any.

    `met` (M, K) and `given` (M, L) are the expected numbers of answers by truth and by label. For one who says only one
    label there is none.
    """
    enough = np.minimum(met.max(axis=1, keepdims=True), ENOUGH_MET)
    several = np.count_nonzero(given, axis=1) > 1
    return np.asarray((met >= enough) & (met > 0) & several[:, None])


def count_answers(found: Result) -> Floats | Cells:
    """Return the expected counts of answers, (M, L, K); of a vote only those that are not zero."""
    if found.model != "MajorityVote":
        return found.learned.counts
    if found.voting is not None and not found.learning.is_known:
        return Cells.of_answers(found.voting.responses, found.labels.posterior)
    return Cells.of_table(found.learned.counts)


def describe_answers(found: Result) -> dict[str, Column]:
    """Return the columns of the worker report that a fit tells, after the first.

    A worker whose answers nothing else judges is right by definition. Then only what can be counted is told.
    """
    columns, unjudged = judge_answers(found), find_unjudged(found)
    if not unjudged.any():
        return columns
    for name in [name for name in columns if name.startswith(JUDGED)]:
        columns[name] = to_column(np.where(unjudged, np.nan, to_values(columns[name])))
    remarks, worst = (np.array(to_values(columns[name]).tolist(), object) for name in ("remarks", "worst_confusion"))
    remarks[unjudged & ~np.isin(remarks, COUNTED)] = worst[unjudged] = ""
    return columns | {"worst_confusion": to_column(worst.tolist()), "remarks": to_column(remarks.tolist())}


def find_unjudged(found: Result) -> NDArray[np.bool_]:
    """Tell which workers have answers, none of which is judged by anything else, (M,)."""
    answered = found.n_answers > 0
    if not found.checked:
        return np.ones(len(answered), bool)
    chance, knows_more = found.chance.value, found.guidance is not None or found.given.has_priors
    if chance is None or knows_more or found.takes_silence or min(len(found.names.labels), len(found.prior)) < 2:
        return np.zeros(len(answered), bool)
    return np.asarray(answered & np.isnan(chance))


def judge_answers(found: Result) -> dict[str, Column]:
    """Return the columns of the worker report by what was learned."""
    names, counts = found.names, count_answers(found)
    if isinstance(counts, Cells):
        return describe_voters(counts, VOTE_SMOOTHING, found.prior, found.n_answers, names.labels, names.classes)
    learned, intervals = found.learned, found.intervals.workers
    assert intervals is not None
    columns = describe_workers(
        counts,
        learned.confusion,
        found.prior,
        found.n_answers,
        names.labels,
        names.classes,
        intervals,
        Suspected.of(found),
    )
    if learned.kind == "ordinal":
        columns |= describe_raters(found, columns)
    if found.checked and learned.kind != MeanWorkers.name:  # whose posterior is not calibrated
        columns |= judge_sureness(found)
    return columns | learned.worker_model.further_columns(learned.further, names.labels, names.classes)


def judge_sureness(found: Result) -> dict[str, Column]:
    """How sure workers are who give probabilities."""
    given = found.given.answers
    return {} if given is None or not given.is_soft else list_sureness(given, found.labels.posterior)


def describe_raters(found: Result, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return what the worker report says of raters on a scale: further columns, and remarks about their bias.

    On a scale one is contrary whose answers are lower where the truth is higher. A harsh rater may never be right, and
    still say which items are better, and to call a class by the next one is no habit to remark on.
    """
    said = lookup(found.names.classes, to_column(found.names.labels))
    figures = found.raters.value
    if figures is None:
        figures = np.full((len(found.n_answers), len(raters.FIGURES)), np.nan)
    contrary, on_bias = raters.are_contrary(found.learned.counts, said).tolist(), raters.remark_on_bias(figures)
    remarks = [
        remark
        if remark and not remark.startswith(("contrary", MOSTLY_CALLS))
        else "contrary"
        if contrary[m]
        else on_bias[m]
        for m, remark in enumerate(to_values(columns["remarks"]).tolist())
    ]
    return {"remarks": to_column(remarks), **raters.list_columns(figures)}


def report_classifier(guidance: Guidance, prior: Floats, classes: Values) -> dict[str, Column]:
    """Return the columns of a table that describes the classifier as a worker, empty if there is none."""
    opinions = guidance.opinions
    counts = np.zeros((len(classes), len(classes))) if opinions is None else opinions.counts
    total = counts.sum(axis=0, keepdims=True)
    confusion = np.divide(counts, total, out=np.full(counts.shape, 1 / len(counts)), where=total > 0)
    n_answers = np.array([round(float(counts.sum()))])
    unknown = np.full((1, 4), np.nan)
    columns = describe_workers(counts[None], confusion.T[None], prior, n_answers, classes, classes, unknown)
    n_rows = 0 if opinions is None else 1
    return {name: column[:n_rows] for name, column in {"worker": to_column(["classifier"]), **columns}.items()}


def list_disagreements(guidance: Guidance, labels: Labels, n: int | None) -> dict[str, Column]:
    """Return the columns of a table of items for which classifier and crowd call for different labels."""
    opinions, classes = guidance.opinions, labels.classes
    if opinions is None:
        nobody, none = np.empty(0, np.int64), np.empty(0)
        opinions = ComparedOpinions(nobody, nobody, none, nobody, none, none)
    differ = np.flatnonzero(opinions.crowd_code != opinions.classifier_code)
    certainty = (opinions.crowd_share * opinions.classifier_share)[differ]
    differ = differ[np.argsort(-certainty, kind="stable")][:n]
    item = opinions.item[differ]
    columns: dict[str, Column] = {name: to_column(to_values(key)[item]) for name, key in labels.keys.items()}
    columns["label"] = to_column(labels.values[item])
    columns["crowd_label"] = to_column(classes[opinions.crowd_code[differ]])
    columns["crowd_confidence"] = to_column(opinions.crowd_share[differ])
    columns["classifier_label"] = to_column(classes[opinions.classifier_code[differ]])
    columns["classifier_confidence"] = to_column(opinions.classifier_share[differ])
    return columns
