r"""Scores as the paper reports them, and as we do.

The paper prints the mean over classes of precision, recall and F. It takes them in each sequence and averages over
sequences. A class that does not occur in a sequence counts 0 there, so the mean cannot exceed the share of classes
present:

.. math:: F = \frac{1}{S} \sum_s \frac{1}{K} \sum_k \frac{2 P_{sk} R_{sk}}{P_{sk} + R_{sk}}

For named entities and abstracts the printed numbers satisfy F = 2PR / (P + R), so they must come from all sequences
together. For named entities they are strict span scores. For abstracts, of all scores that were tried, the relaxed span
scores of the work that the data come from fit best: precision is the mean share of a predicted span that is right,
recall the mean share of a true span that is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience import Answers, metrics

from .crowds import Codes, list_answers

OUTSIDE = "O"
# A worker who answered less than this share of the items with known truth cannot be the best one: the paper's best for
# songs answered ten.
LEAST_SHARE = 0.05


class Score(NamedTuple):
    """Precision, recall and F."""

    precision: float
    recall: float
    f: float


def score_per_sequence(truth: Codes, found: Codes, lengths: Codes, n_classes: int) -> Score:
    """Return the paper's scores: per sequence and class, averaged over both. Absent classes count 0.

    >>> score_per_sequence(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([2, 1]), 2)
    Score(precision=0.5, recall=0.375, f=0.4166...)
    """
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    cells = len(lengths) * n_classes
    right, said, true = (
        np.bincount((sequence * n_classes + code)[where], minlength=cells).astype(float)
        for code, where in ((truth, truth == found), (found, slice(None)), (truth, slice(None)))
    )
    none = np.zeros(cells)
    precision = np.divide(right, said, out=none.copy(), where=said > 0)
    recall = np.divide(right, true, out=none.copy(), where=true > 0)
    f = np.divide(2 * right, said + true, out=none.copy(), where=said + true > 0)
    return Score(float(precision.mean()), float(recall.mean()), float(f.mean()))


def score_classes(truth: Any, found: Any) -> Score:
    """Return macro precision, recall and F over all items, of the classes that occur in either."""
    scores = metrics.class_f1(truth, found).values()
    return Score(*(float(np.mean(part)) for part in zip(*((s.precision, s.recall, s.f1) for s in scores), strict=True)))


def score_spans(truth: Any, found: Any, lengths: Codes) -> Score:
    """Return strict span scores over all sequences."""
    score = metrics.span_score(truth, found, lengths)
    return Score(score.precision, score.recall, score.f1)


def score_parts_of_spans(truth: Any, found: Any, lengths: Codes) -> Score:
    """Return relaxed span scores. A span is a run of words that are not outside."""
    true, said = (np.where(np.asarray(labels) == OUTSIDE, OUTSIDE, "I") for labels in (truth, found))
    score = metrics.relaxed_span_score(true, said, lengths)
    return Score(score.precision, score.recall, score.f1)


def score_inside(truth: Any, found: Any) -> Score:
    """Return scores of the words inside any span, over all sequences."""
    inside = [np.asarray(labels) != OUTSIDE for labels in (truth, found)]
    score = metrics.class_f1(*(each.tolist() for each in inside)).get(True)
    return Score(score.precision, score.recall, score.f1) if score else Score(0.0, 0.0, 0.0)


class BestWorker(NamedTuple):
    """The items with known truth that the best worker answered, and the class of each answer, as indices."""

    items: Codes
    said: Codes


def find_best_worker(r: Answers, truth: Codes) -> BestWorker:
    """Return the answers of the worker with the highest macro-F on the items with known truth.

    Parameters
    ----------
    r : Answers
        The answers.
    truth : array
        Index of each item's class, -1 where it is not known.
    """
    answers = list_answers(r)
    known = truth[answers.item] >= 0
    best, score = np.zeros(len(known), dtype=bool), -1.0
    for worker in range(r.n_workers):
        own = known & (answers.worker == worker)
        if own.any() and own.sum() >= LEAST_SHARE * (truth >= 0).sum():
            f = metrics.macro_f1(truth[answers.item[own]], answers.said[own])
            if f > score:
                best, score = own, f
    return BestWorker(answers.item[best], answers.said[best])
