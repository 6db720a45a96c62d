"""What a fit says about each worker, and about the classifier of features, which is described as one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, Values, lookup, to_column, to_values
from ..inference import Cells, sum_by
from ..inference.guidance import ComparedOpinions
from ..inference.workers.priors import START
from ..inference.workers.temperatures import MeanWorkers
from ..kernels import Floats, Truths
from . import raters
from .chance import BY_CHANCE
from .drift import tabulate_drift
from .intervals import informativeness, judge_voters
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
# So many entries of a table of workers are worked on at a time, and matrices of a vote with more are not made for it.
MOST_ENTRIES, MOST_MADE = 1 << 20, 1 << 24


def tabulate_workers(found: Result) -> tuple[dict[str, Column], dict[str, Column] | None]:
    """The columns of `Model.worker_report` and of `Model.drift_report` after the first; no drift without an order.

    A worker whose answers nothing else judges is right by definition: only what can be counted is in the table.
    """
    names, prior, learned_matrices = found.names, found.prior, found.model != "MajorityVote"
    counts = count_answers(found)
    nothing = np.full(len(found.n_answers), np.nan)
    if learned_matrices:
        learned, chance, intervals = found.learned, found.chance, found.intervals.workers
        information = speech = informativeness(learned.confusion, prior)
        if found.takes_silence:
            speech = informativeness(learned.confusion, prior, spoken=True)
        columns = describe_workers(
            counts,
            (information, speech),
            prior,
            found.n_answers,
            names.labels,
            names.classes,
            intervals,
            nothing if chance is None else chance,
            find_accused(found),
            found.takes_silence,
        )
        if learned.kind == "ordinal":
            columns |= describe_raters(found, columns)
        given = found.given.answers
        if found.checked and given is not None and given.soft is not None and learned.kind != MeanWorkers.name:
            columns |= list_sureness(given, found.labels.posterior)
        columns |= learned.worker_model.further_columns(learned.further, names.labels, names.classes)
    else:
        columns = describe_workers(counts, None, prior, found.n_answers, names.labels, names.classes, None, nothing)

    unjudged = find_unjudged(found)
    if unjudged.any():
        for name in [name for name in columns if name.startswith(JUDGED)]:
            columns[name] = to_column(np.where(unjudged, np.nan, to_values(columns[name])))
        remarks, worst = (
            np.array(to_values(columns[each]).tolist(), object) for each in ("remarks", "worst_confusion")
        )
        remarks[unjudged & ~np.isin(remarks, COUNTED)] = worst[unjudged] = ""
        columns |= {"worst_confusion": to_column(worst.tolist()), "remarks": to_column(remarks.tolist())}

    r, drift = found.given.answers, None
    has_matrices = learned_matrices or counts.shape[0] * counts.shape[1] ** 2 <= MOST_MADE
    if has_matrices and r is not None and r.order is not None:
        drift = tabulate_drift(found, np.asarray(to_values(columns["accuracy"]), np.float64))
    every = [[each] if each else [] for each in to_values(columns["remarks"]).tolist()]
    for worker, remark in enumerate([] if drift is None else to_values(drift["remarks"]).tolist()):
        every[worker] += [remark] if remark else []
    groups: list[int | None] = [None] * len(every)
    for number, group in enumerate(found.copies, 1):
        for worker in group:
            every[worker].append(f"near-copy (group {number})")
            groups[worker] = number
    columns |= {"remarks": to_column(["; ".join(each) for each in every]), "group": pa.array(groups, pa.int64())}
    return columns, drift


def count_answers(found: Result) -> Floats | Cells:
    """The expected counts of answers, (M, L, K); of a vote only those that are not zero."""
    if found.model != "MajorityVote":
        return found.learned.counts
    if found.voting is not None:
        return Cells.of_answers(found.voting.responses, found.labels.posterior)
    return Cells.of_table(found.learned.counts)


def find_accused(found: Result) -> Truths:
    """Which workers are said to answer by chance, (M,).

    Nobody is accused by few answers, nor where all agree no more than by chance, or most workers seem to: then there is
    no truth to judge them by.
    """
    chance, nobody = found.chance, np.zeros(len(found.n_answers), bool)
    if chance is None:
        return nobody
    many = found.n_answers >= FEW_ANSWERS
    accused = (chance >= BY_CHANCE) & many
    noise = found.comparison is not None and found.comparison.by_chance
    return nobody if noise or 2 * accused.sum() > np.count_nonzero(~np.isnan(chance) & many) else accused


def find_unjudged(found: Result) -> Truths:
    """Which workers have answers, none of which is judged by anything else, (M,)."""
    answered = found.n_answers > 0
    if not found.checked:
        return np.ones(len(answered), bool)
    chance, knows_more = found.chance, found.guidance is not None or found.given.has_priors
    if chance is None or knows_more or found.takes_silence or min(len(found.names.labels), len(found.prior)) < 2:
        return np.zeros(len(answered), bool)
    return np.asarray(answered & np.isnan(chance))


def describe_workers(
    counts: Floats | Cells,
    informed: tuple[Floats, Floats] | None,
    prior: Floats,
    n_answers: NDArray[np.int64],
    labels: Values,
    classes: Values,
    intervals: Floats | None,
    by_chance: Floats,
    accused: Truths | None = None,
    takes_silence: bool = False,
) -> dict[str, Column]:
    """The columns that every report has, with the remarks that the figures call for.

    Parameters
    ----------
    counts : array (M, L, K) or Cells
        Expected number of times worker m said l when the truth was k.
    informed : pair of arrays (M,), or None
        How informative answers are, and those that are not silence. None: worked out for the matrices of a vote.
    prior : array (K,)
        Class prior.
    n_answers : array (M,)
        Number of answers.
    labels, classes : ndarray
        Their names.
    intervals : array (M, 4) or None
        Ends of the intervals of accuracy and of informativeness; None: those of a vote.
    by_chance : array (M,)
        The probability that each worker answers by chance, NaN where nothing is known.
    accused : array (M,), optional
        Who is said to do so.
    takes_silence : bool
        Whether silence is an answer.
    """
    said, n_workers = lookup(classes, to_column(labels)), len(n_answers)
    named = np.flatnonzero(said >= 0)
    right, total, top, expected, information = np.zeros((5, n_workers))
    worst, habits = [""] * n_workers, [""] * n_workers
    n_entries = max(counts.shape[1:]) if isinstance(counts, Cells) else counts[0].size
    n_together = max(1, MOST_ENTRIES // n_entries)
    for first in range(0, n_workers, n_together):
        last = min(first + n_together, n_workers)
        run = slice(first, last)
        cells = counts.of_workers(first, last) if isinstance(counts, Cells) else Cells.of_table(counts[run])
        is_right = said[cells.label] == cells.klass
        given, met = cells.sum_out(2), cells.sum_out(1)
        total[run] = given.sum(axis=1)
        right[run] = sum_by(cells.worker, np.where(is_right, cells.count, 0.0), last - first)
        # Shares first: the product of two large counts may leave the range of doubles.
        scale = np.maximum(total[run], 1e-300)[:, None]
        # What the same mix of answers would get right if it had nothing to do with the truth.
        expected[run] = np.sum((given / scale)[:, named] * (met / scale)[:, said[named]], axis=1)
        # A worker of one label has said two things where silence is the other.
        top[run] = 0.0 if takes_silence else (given / scale).max(axis=1)
        if informed is None:
            information[run] = inform_by_votes(cells, said, prior)
        # The mistake with the highest rate: not of one who says only one label, which all other truths are called by.
        enough = np.minimum(met.max(axis=1, keepdims=True), ENOUGH_MET)
        telling = (met >= enough) & (met > 0) & (np.count_nonzero(given, axis=1) > 1)[:, None]
        wrong = cells.where(~is_right & (cells.count >= WORTH_TELLING) & telling[cells.worker, cells.klass])
        rate = wrong.count / met[wrong.worker, wrong.klass]
        order = np.lexsort((-rate, wrong.worker))  # of equal rates the first
        worker, place = np.unique(wrong.worker[order], return_index=True)
        for m, cell in zip(worker.tolist(), order[place].tolist(), strict=True):
            truth, answer, share = classes[wrong.klass[cell]], labels[wrong.label[cell]], float(rate[cell])
            worst[first + m] = f"{truth} -> {answer} ({share:.0%})"
            if is_habit(share, float(met[m, wrong.klass[cell]])):
                habits[first + m] = f"{MOSTLY_CALLS} {truth} {answer} ({share:.0%})"
    information, speech = (information, information) if informed is None else informed
    if intervals is None:
        intervals = judge_voters(right, total, information, prior)

    accuracy = np.divide(right, total, out=np.full(n_workers, np.nan), where=total > 0)
    error = np.sqrt(np.maximum(expected * (1 - expected), 0.0) / np.maximum(total, 1.0))
    one_label = (top > ONE_LABEL) & (prior.max() < ONE_LABEL)
    contrary = accuracy + CONTRARY + 2 * error < expected
    # With one class there is no information to give.
    dull = (np.maximum(information, speech) < UNINFORMATIVE) & (prior.max() < 1)
    remarks = []
    for m in range(n_workers):
        by_figures = "contrary" if contrary[m] else "uninformative" if dull[m] else habits[m]
        found = [AS_IF_BY_CHANCE] if accused is not None and accused[m] else []
        found += [ONE_LABEL_ONLY] if one_label[m] else [] if found else [by_figures]
        remarks.append(FEW if n_answers[m] < FEW_ANSWERS else "; ".join(found))
    return {
        "answers": to_column(n_answers.astype(np.int64)),
        "accuracy": to_column(accuracy),
        "accuracy_low": to_column(intervals[:, 0].copy()),
        "accuracy_high": to_column(intervals[:, 1].copy()),
        "informativeness": to_column(information),
        "informativeness_low": to_column(intervals[:, 2].copy()),
        "informativeness_high": to_column(intervals[:, 3].copy()),
        "chance": to_column(by_chance),
        "worst_confusion": to_column(worst),
        "remarks": to_column(remarks),
    }


def is_habit(share: float, n_met: float) -> bool:
    """Whether a mistake is what a worker mostly does, by its share of so many answers about a truth.

    >>> is_habit(0.86, 12.0), is_habit(0.9, 9.0), is_habit(0.6, 10.0)
    (True, False, False)
    """
    return n_met >= FEW_ANSWERS and share > HABIT + BEYOND_CHANCE * (HABIT * (1 - HABIT) / n_met) ** 0.5


def inform_by_votes(cells: Cells, said: NDArray[np.int64], prior: Floats) -> Floats:
    """The same as `informativeness` of the matrices that counts and the pseudo-counts of votes make.

    The information is sum_k p_k sum_l c log c - sum_l a log a, where c[k, l] are the matrices and a the shares of the
    answers. Most c are the same for all labels, namely off / T_k.
    """

    def times_log(values: Floats) -> Floats:
        return values * np.log(np.where(values > 0, values, 1.0))

    (off, diagonal), n_labels, named = START, cells.shape[1], np.flatnonzero(said >= 0)
    truth, is_right = said[named], said[cells.label] == cells.klass
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
    negative_entropy = np.sum(n_least * prior * times_log(least), axis=1)
    negative_entropy += np.sum(prior[truth] * times_log(correct), axis=1)
    negative_entropy += sum_by(wrong.worker, prior[wrong.klass] * times_log(mistaken), cells.shape[0])
    answer = wrong.with_counts(prior[wrong.klass] * wrong.count / mass[wrong.worker, wrong.klass]).sum_out(2)
    answer += np.sum(least * prior, axis=1, keepdims=True)
    answer[:, named] += (correct - least[:, truth]) * prior[truth]
    information = negative_entropy - times_log(answer).sum(axis=1)
    entropy = -float(times_log(prior).sum())
    return np.clip(information / entropy, 0.0, 1.0) if entropy > 0 else np.zeros(cells.shape[0])


def describe_raters(found: Result, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Further columns for raters on a scale, and remarks about their bias.

    On a scale one is contrary whose answers are lower where the truth is higher. A harsh rater may never be right, and
    still say which items are better, and to call a class by the next one is no habit to remark on.
    """
    said = lookup(found.names.classes, to_column(found.names.labels))
    figures = found.raters
    if figures is None:
        figures = np.full((len(found.n_answers), len(raters.FIGURES)), np.nan)
    contrary, on_bias = raters.are_contrary(found.learned.counts, said).tolist(), raters.remark_on_bias(figures)
    remarks = to_values(columns["remarks"]).tolist()
    for m, remark in enumerate(remarks):
        if not remark or remark.startswith(("contrary", MOSTLY_CALLS)):
            remarks[m] = "contrary" if contrary[m] else on_bias[m]
    rated = {name: to_column(figures[:, place].copy()) for place, name in enumerate(raters.FIGURES)}
    return {"remarks": to_column(remarks), **rated}


def rank_attention(report: Mapping[str, Column]) -> tuple[NDArray[np.int64], Floats]:
    """By what the workers of a report are sorted, those first who call for attention: by remarks, then accuracy.

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
    parts = [remarks.split("; ") for remarks in different]
    first = [
        next(
            n
            for n, name in enumerate(ATTENTION)
            if any(each == name or (name and each.startswith(name)) for each in part)
        )
        for part in parts
    ]
    kind = np.array(first, np.int64)[place]
    halfway = (kind == ATTENTION.index(FEW)) & ~np.isnan(high)
    return kind, np.where(halfway, (low + high) / 2, low)


def report_classifier(guidance: Guidance, prior: Floats, classes: Values) -> dict[str, Column]:
    """The columns of a table that describes the classifier as a worker, empty if there is none."""
    opinions = guidance.opinions
    counts = np.zeros((len(classes), len(classes))) if opinions is None else opinions.counts
    total = counts.sum(axis=0, keepdims=True)
    confusion = np.divide(counts, total, out=np.full(counts.shape, 1 / len(counts)), where=total > 0)
    information, unknown = informativeness(confusion.T[None], prior), np.full((1, 4), np.nan)
    n_answers = np.array([round(float(counts.sum()))])
    columns = describe_workers(
        counts[None], (information, information), prior, n_answers, classes, classes, unknown, unknown[:, 0]
    )
    n_rows = 0 if opinions is None else 1
    return {name: column[:n_rows] for name, column in {"worker": to_column(["classifier"]), **columns}.items()}


def list_disagreements(guidance: Guidance, labels: Labels, n: int | None) -> dict[str, Column]:
    """The columns of a table of items for which classifier and crowd call for different labels."""
    opinions, classes = guidance.opinions, labels.classes
    if opinions is None:
        nobody, none = np.empty(0, np.int64), np.empty(0)
        opinions = ComparedOpinions(nobody, nobody, none, nobody, none, none)
    differ = np.flatnonzero(opinions.crowd_code != opinions.classifier_code)
    certainty = (opinions.crowd_share * opinions.classifier_share)[differ]
    differ = differ[np.argsort(-certainty, kind="stable")][:n]
    item = opinions.item[differ]
    return {
        **{name: to_column(to_values(key)[item]) for name, key in labels.keys.items()},
        "label": to_column(labels.values[item]),
        "crowd_label": to_column(classes[opinions.crowd_code[differ]]),
        "crowd_confidence": to_column(opinions.crowd_share[differ]),
        "classifier_label": to_column(classes[opinions.classifier_code[differ]]),
        "classifier_confidence": to_column(opinions.classifier_share[differ]),
    }
