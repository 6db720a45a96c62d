"""What a fit says about each worker, and about the classifier of features, which is described as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, Values, lookup, to_column, to_values
from ..inference import Cells, sum_by
from ..inference.features import ComparedOpinions
from ..inference.workers.priors import START
from ..inference.workers.temperatures import MeanWorkers
from ..kernels import Floats, Truths
from . import raters
from .chance import BY_CHANCE
from .intervals import informativeness, judge_voters
from .result import Guidance, Labels, Result

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
# So many entries of a table of workers are worked on at a time, and matrices of a vote with more are not made for it.
MOST_ENTRIES, MOST_MADE = 1 << 20, 1 << 24


def tabulate_workers(found: Result) -> tuple[dict[str, Column], dict[str, Column] | None]:
    """The columns of `Model.worker_report` and of `Model.drift_report` after the first; no drift without an order.

    A worker whose answers nothing else judges is right by definition: only what can be counted is in the table.
    """
    names, prior, n_answers, given = found.names, found.prior, found.n_answers, found.given.answers
    n_workers, said = len(n_answers), lookup(names.classes, to_column(names.labels))
    learned = None if found.model == "MajorityVote" else found.estimates
    counts = expect_counts(found) if learned is None else learned.counts
    takes_silence = learned is not None and learned.confusion.shape[2] > len(names.labels)
    vote_is_made = n_workers * len(names.labels) * len(names.classes) <= MOST_MADE
    right, total, top, expected, worst, habits = measure_workers(counts, names.labels, names.classes)
    accuracy = np.divide(right, total, out=np.full(n_workers, np.nan), where=total > 0)
    if learned is None:
        information = inform_by_votes(counts, said, prior) if vote_is_made else np.full(n_workers, np.nan)
        speech, intervals = information, judge_voters(right, total, information, prior)
    else:
        information = speech = informativeness(learned.confusion, prior)
        if takes_silence:
            speech = informativeness(learned.confusion, prior, spoken=True)
        assert found.intervals.workers is not None
        intervals = found.intervals.workers.copy()

    # What the figures call for.
    accused, unjudged = find_accused(found), n_answers > 0
    knows_more = found.guidance is not None or found.given.has_priors
    if not found.checked:
        unjudged = np.ones(n_workers, bool)
    elif found.chance is None or knows_more or takes_silence or min(len(names.labels), len(prior)) < 2:
        unjudged = np.zeros(n_workers, bool)
    else:  # all of whose answers nothing else judges
        unjudged &= np.isnan(found.chance)
    error = np.sqrt(np.maximum(expected * (1 - expected), 0.0) / np.maximum(total, 1.0))
    contrary = accuracy + CONTRARY + 2 * error < expected
    # A worker of one label has said two things where silence is the other.
    one_label = (top > ONE_LABEL) & (prior.max() < ONE_LABEL) & (not takes_silence)
    # With one class there is no information to give.
    dull = (np.maximum(information, speech) < UNINFORMATIVE) & (prior.max() < 1) & ~contrary
    further: dict[str, Column] = {}
    if learned is not None and learned.kind == "ordinal":
        # On a scale one is contrary whose answers are lower where the truth is higher. A harsh rater may never be
        # right, and still say which items are better, and to call a class by the next one is no habit to remark on.
        figures = np.full((n_workers, len(raters.FIGURES)), np.nan) if found.raters is None else found.raters.copy()
        figures[unjudged] = np.nan
        contrary, habits = raters.are_contrary(learned.counts, said), raters.remark_on_bias(figures)
        further = {name: to_column(figures[:, place].copy()) for place, name in enumerate(raters.FIGURES)}
    remarks: list[list[str]] = []
    for m in range(n_workers):
        own = [AS_IF_BY_CHANCE] if accused[m] else []
        if n_answers[m] < FEW_ANSWERS:
            own = [FEW]
        elif one_label[m]:
            own.append(ONE_LABEL_ONLY)
        elif not own:
            by_figures = "uninformative" if dull[m] else "contrary" if contrary[m] else habits[m]
            own = [by_figures] if by_figures else []
        if unjudged[m]:
            own = own if own in ([FEW], [ONE_LABEL_ONLY]) else []
            worst[m] = ""
        remarks.append(own)
    for judged in (accuracy, information, intervals):
        judged[unjudged] = np.nan

    drift = None
    if given is not None and given.order is not None and (learned is not None or vote_is_made):
        from .drift import tabulate_drift

        drift = tabulate_drift(found, accuracy)
        for own, remark in zip(remarks, to_values(drift["remarks"]).tolist(), strict=True):
            own += [remark] if remark else []
    groups: list[int | None] = [None] * n_workers
    for number, group in enumerate(found.copies, 1):
        for worker in group:
            remarks[worker].append(f"near-copy (group {number})")
            groups[worker] = number
    if learned is not None:
        if found.checked and given is not None and given.soft is not None and learned.kind != MeanWorkers.name:
            from .sureness import list_sureness

            further |= list_sureness(given, found.labels.posterior)
        further |= learned.worker_model.further_columns(learned.further, names.labels, names.classes)
    columns = {
        "answers": to_column(n_answers.astype(np.int64)),
        "accuracy": to_column(accuracy),
        "accuracy_low": to_column(intervals[:, 0].copy()),
        "accuracy_high": to_column(intervals[:, 1].copy()),
        "informativeness": to_column(information),
        "informativeness_low": to_column(intervals[:, 2].copy()),
        "informativeness_high": to_column(intervals[:, 3].copy()),
        "chance": to_column(np.full(n_workers, np.nan) if found.chance is None else found.chance),
        "worst_confusion": to_column(worst),
        "remarks": to_column(["; ".join(each) for each in remarks]),
    }
    return columns | further | {"group": pa.array(groups, pa.int64())}, drift


def expect_counts(found: Result) -> Floats | Cells:
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


def measure_workers(
    counts: Floats | Cells, labels: Values, classes: Values
) -> tuple[Floats, Floats, Floats, Floats, list[str], list[str]]:
    """What expected counts of answers (M, L, K) say of each worker.

    These are right answers, all answers, the share of the most frequent label, the accuracy that the same mix of
    answers would have by chance, the mistake with the highest rate, and the same if it is a habit.
    """
    n_workers, said = counts.shape[0], lookup(classes, to_column(labels))
    named, n_cells = np.flatnonzero(said >= 0), len(labels) * len(classes)
    right, total, top, expected = np.zeros((4, n_workers))
    worst, habits = [""] * n_workers, [""] * n_workers
    n_together = max(1, MOST_ENTRIES // n_cells)
    for first in range(0, n_workers, n_together):
        last = min(first + n_together, n_workers)
        run = slice(first, last)
        cells = counts.of_workers(first, last) if isinstance(counts, Cells) else Cells.of_table(counts[run])
        is_right = said[cells.label] == cells.klass
        spoken, met = cells.sum_out(2), cells.sum_out(1)
        total[run] = spoken.sum(axis=1)
        right[run] = sum_by(cells.worker, np.where(is_right, cells.count, 0.0), last - first)
        # Shares first: the product of two large counts may leave the range of doubles.
        scale = np.maximum(total[run], 1e-300)[:, None]
        # What the same mix of answers would get right if it had nothing to do with the truth.
        expected[run] = np.sum((spoken / scale)[:, named] * (met / scale)[:, said[named]], axis=1)
        top[run] = (spoken / scale).max(axis=1)
        # Not of one who says only one label, which all other truths are called by.
        enough = np.minimum(met.max(axis=1, keepdims=True), ENOUGH_MET)
        telling = (met >= enough) & (met > 0) & (np.count_nonzero(spoken, axis=1) > 1)[:, None]
        wrong = cells.where(~is_right & (cells.count >= WORTH_TELLING) & telling[cells.worker, cells.klass])
        rate = wrong.count / met[wrong.worker, wrong.klass]
        order = np.lexsort((-rate, wrong.worker))  # of equal rates the first
        worker, place = np.unique(wrong.worker[order], return_index=True)
        for m, cell in zip(worker.tolist(), order[place].tolist(), strict=True):
            truth, answer, share = classes[wrong.klass[cell]], labels[wrong.label[cell]], float(rate[cell])
            worst[first + m] = f"{truth} -> {answer} ({share:.0%})"
            n_met = float(met[m, wrong.klass[cell]])
            if n_met >= FEW_ANSWERS and share > HABIT + BEYOND_CHANCE * (HABIT * (1 - HABIT) / n_met) ** 0.5:
                habits[first + m] = f"{MOSTLY_CALLS} {truth} {answer} ({share:.0%})"
    return right, total, top, expected, worst, habits


def inform_by_votes(counts: Floats | Cells, said: NDArray[np.int64], prior: Floats) -> Floats:
    """The informativeness of the matrices that a vote makes, some workers at a time; `said` is the class of labels."""
    (off, diagonal), named = START, np.flatnonzero(said >= 0)
    n_workers, n_labels, n_classes = counts.shape
    n_together, found = max(1, MOST_ENTRIES // (n_labels * n_classes)), []
    for first in range(0, n_workers, n_together):
        last = min(first + n_together, n_workers)
        cells = counts.of_workers(first, last) if isinstance(counts, Cells) else Cells.of_table(counts[first:last])
        matrices = np.full((last - first, n_classes, n_labels), off)
        matrices[:, said[named], named] = diagonal
        matrices[cells.worker, cells.klass, cells.label] += cells.count
        found.append(informativeness(matrices / matrices.sum(axis=2, keepdims=True), prior))
    return np.concatenate(found) if found else np.empty(0)


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
    information, n_answers = informativeness(confusion.T[None], prior), round(float(counts.sum()))
    right, total, top, _, worst, habits = measure_workers(counts[None], classes, classes)
    by_figures = "uninformative" if information[0] < UNINFORMATIVE and prior.max() < 1 else habits[0]
    one_label = top[0] > ONE_LABEL > prior.max()
    remark = FEW if n_answers < FEW_ANSWERS else ONE_LABEL_ONLY if one_label else by_figures
    unknown = dict.fromkeys(("_low", "_high"), np.full(1, np.nan))
    columns: dict[str, Any] = {"worker": ["classifier"], "answers": np.array([n_answers])}
    for name, figure in {"accuracy": right / np.maximum(total, 1e-300), "informativeness": information}.items():
        columns |= {name: figure} | {f"{name}{end}": values for end, values in unknown.items()}
    columns |= {"chance": np.full(1, np.nan), "worst_confusion": worst, "remarks": [remark]}
    n_rows = 0 if opinions is None else 1
    return {name: to_column(column)[:n_rows] for name, column in columns.items()}


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
