"""Results as tables: labels, workers, and the classifier of features."""

from __future__ import annotations

import numpy as np

from ..answers.columns import Column, Values, to_column, to_values
from ..inference.cells import Cells
from ..inference.guidance import ComparedOpinions
from ..inference.recipes.base import VOTE_SMOOTHING
from ..inference.sources import InMemory
from ..kernels.types import Floats
from .fusion import Fusion, Guidance, Labels
from .worker_report import describe_voters, describe_workers


def count_answers(found: Fusion) -> Floats | Cells:
    """Return the expected counts of answers, (M, L, K); of a vote only those that are not zero."""
    if found.model != "MajorityVote":
        return found.learned.counts
    if isinstance(found.voting, InMemory) and not found.learning.is_known:
        return Cells.of_answers(found.voting.responses, found.labels.posterior)
    return Cells.of_table(found.learned.counts)


def describe_answers(found: Fusion) -> dict[str, Column]:
    """Return the columns of the worker report that a fit tells, after the first."""
    names, counts = found.names, count_answers(found)
    if isinstance(counts, Cells):
        return describe_voters(counts, VOTE_SMOOTHING, found.prior, found.n_answers, names.labels, names.classes)
    learned, intervals = found.learned, found.intervals.workers
    assert intervals is not None
    columns = describe_workers(
        counts, learned.confusion, found.prior, found.n_answers, names.labels, names.classes, intervals
    )
    return columns | learned.worker_model.further_columns(learned.further, names.labels, names.classes)


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
