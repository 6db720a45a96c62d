"""What a fit says about each worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, Values, spell_surrogates, to_column, to_values
from ..answers.vocabulary import lookup
from ..inference.cells import Cells, sum_by
from ..kernels.types import Floats
from .intervals import informativeness, informativeness_of_speech, judge_voters

FEW_ANSWERS = 10
UNINFORMATIVE = 0.05
CONTRARY = 0.05
ONE_LABEL = 0.95
# Expected answers that a mistake must have to be told.
WORTH_TELLING = 0.5
# So many entries of a table of workers are worked on at a time.
MOST_ENTRIES = 1 << 20
# Near-copies that a remark names.
MOST_NAMES = 3


def describe_workers(
    counts: Floats,
    confusion: Floats,
    prior: Floats,
    n_answers: NDArray[np.int64],
    labels: Values,
    classes: Values,
    intervals: Floats,
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
    return make_columns(figures, worst_confusions(counts, said, labels, classes), n_answers, prior, intervals)


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
    figures, words = [], list[str]()
    n_together = max(1, MOST_ENTRIES // max(n_labels, n_classes))
    for first in range(0, n_workers, n_together):
        part = cells.of_workers(first, min(first + n_together, n_workers))
        figures.append(_count_votes(part, said, smoothing, prior))
        words += _worst_votes(part, said, labels, classes)
    together = Figures(*map(np.concatenate, zip(*figures, strict=True)))
    intervals = judge_voters(together.right, together.total, together.information, prior)
    return make_columns(together, words, n_answers, prior, intervals)


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


def _worst_votes(cells: Cells, said: NDArray[np.int64], labels: Values, classes: Values) -> list[str]:
    """Return what `worst_confusions` does."""
    met = cells.sum_out(1)
    wrong = cells.where((said[cells.label] != cells.klass) & (cells.count >= WORTH_TELLING))
    order = np.lexsort((-wrong.count, wrong.worker))  # of equal counts the first
    worker, first = np.unique(wrong.worker[order], return_index=True)
    words = [""] * cells.shape[0]
    for m, cell in zip(worker.tolist(), order[first].tolist(), strict=True):
        k = wrong.klass[cell]
        words[m] = say_confusion(classes[k], labels[wrong.label[cell]], wrong.count[cell] / met[m, k])
    return words


class Figures(NamedTuple):
    """What is counted of each worker, (M,) each."""

    right: Floats  # expected number of right answers
    total: Floats  # number of answers
    top: Floats  # share of the label that is given most often
    chance: Floats  # share of right answers that the same mix of answers would have by chance
    information: Floats  # informativeness
    speech: Floats  # informativeness of answers that are not silence


def make_columns(
    figures: Figures, worst: list[str], n_answers: NDArray[np.int64], prior: Floats, intervals: Floats
) -> dict[str, Column]:
    """Return the columns of the report, with the remarks that the figures call for."""
    total, chance = figures.total, figures.chance
    told = np.maximum(figures.information, figures.speech)
    accuracy = np.divide(figures.right, total, out=np.full(len(total), np.nan), where=total > 0)
    error = np.sqrt(np.maximum(chance * (1 - chance), 0.0) / np.maximum(total, 1.0))
    remarks = []
    for m in range(len(total)):
        remark = ""
        if n_answers[m] < FEW_ANSWERS:
            remark = "few answers"
        elif figures.top[m] > ONE_LABEL and prior.max() < ONE_LABEL:
            remark = "one label"
        elif accuracy[m] + CONTRARY + 2 * error[m] < chance[m]:
            remark = "contrary"
        elif told[m] < UNINFORMATIVE and prior.max() < 1:  # with one class there is no information to give
            remark = "uninformative"
        remarks.append(remark)
    return {
        "answers": to_column(n_answers.astype(np.int64)),
        "accuracy": to_column(accuracy),
        "accuracy_low": to_column(intervals[:, 0].copy()),
        "accuracy_high": to_column(intervals[:, 1].copy()),
        "informativeness": to_column(figures.information),
        "informativeness_low": to_column(intervals[:, 2].copy()),
        "informativeness_high": to_column(intervals[:, 3].copy()),
        "worst_confusion": to_column(worst),
        "remarks": to_column(remarks),
    }


def rank_accuracy(worker: Mapping[str, Any]) -> float:
    """Return by what workers are ranked: the lower end of the interval of their accuracy.

    So a worker with a single answer, which happens to be right, is not the best of all.

    >>> rank_accuracy({"accuracy": 0.97, "accuracy_low": 0.21}), rank_accuracy({"accuracy": None, "accuracy_low": None})
    (0.21, 0.0)
    """
    known = (worker[name] for name in ("accuracy_low", "accuracy"))
    return next((float(value) for value in known if value is not None and not np.isnan(value)), 0.0)


def name_copies(columns: dict[str, Column], groups: Sequence[Sequence[int]], workers: Values) -> dict[str, Column]:
    """Return the columns of the report with a remark for each near-copy, and the number of its group."""
    remarks = to_values(columns["remarks"]).tolist()
    numbers: list[int | None] = [None] * len(remarks)
    for number, group in enumerate(groups, 1):
        names = [spell_surrogates(str(name)) for name in workers[list(group)].tolist()]
        for place, member in enumerate(group):
            others = names[:place] + names[place + 1 :]
            more = f" and {len(others) - MOST_NAMES:,} more" if len(others) > MOST_NAMES else ""
            remark = f"near-copy of {', '.join(others[:MOST_NAMES])}{more}"
            remarks[member] = f"{remarks[member]}; {remark}" if remarks[member] else remark
            numbers[member] = number
    return columns | {"remarks": to_column(remarks), "group": pa.array(numbers, pa.int64())}


def worst_confusions(counts: Floats, said: NDArray[np.int64], labels: Values, classes: Values) -> list[str]:
    """Return each worker's most frequent mistake in words: "cat -> dog (31%)", the share of that truth's answers."""
    wrong = counts.copy()
    for label, k in enumerate(said):
        if k >= 0:
            wrong[:, label, k] = 0.0
    met = counts.sum(axis=1)
    words = []
    for m, cell in enumerate(wrong.reshape(len(counts), -1).argmax(axis=1)):
        label, k = divmod(int(cell), counts.shape[2])
        told = wrong[m, label, k] >= WORTH_TELLING
        words.append(say_confusion(classes[k], labels[label], wrong[m, label, k] / met[m, k]) if told else "")
    return words


def say_confusion(truth: Any, answer: Any, share: float) -> str:
    """Return a mistake in words, with its share of the answers about that truth."""
    return f"{truth} -> {answer} ({share:.0%})"
