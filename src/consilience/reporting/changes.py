"""What known labels changed: the same fit without them, beside the one with them; and how it is judged by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from ..answers.columns import to_values
from ..documents.charts import Chart, Plain, Table, draw_reliability
from ..errors import join_names, plural
from ..kernels import Floats
from ..metrics.probabilities import reliability_curve
from ..results.result import Result
from ..results.worker_report import FEW_ANSWERS
from .subject import Subject

# Fewer known labels than this say little about probabilities.
LEAST_KNOWN = 20
# Workers and items that are listed, and the least change of an accuracy that is.
MOST_WORKERS, MOST_ITEMS, LEAST_CHANGE = 5, 10, 0.01
# Labels of at least this confidence are called sure.
SURE = 0.95


def find_changes(subject: Subject) -> Plain | None:
    """Return what known labels changed; None if none are known, or if not all items are here."""
    n_known = int(subject.is_known.sum())
    if not n_known or subject.is_sample:
        return None
    known = f"{plural(n_known, 'label')} {'is' if n_known == 1 else 'are'} known."
    alone, found = subject.alone, subject.fusion
    if isinstance(alone, str):
        return Plain([f"{known} What {'it' if n_known == 1 else 'they'} changed is not shown: {alone}."])
    before = alone.labels.codes
    changed = np.flatnonzero((before != subject.codes) & ~subject.is_known)
    words = [known, *describe_labels(subject, before, len(changed))]
    more = [*describe_power(found, alone), *describe_accuracy(subject, before)]
    if subject.told_confidence is not None:
        words += describe_contradictions(subject, alone)
        more += [*describe_expected(found, alone), *describe_caution(found, alone)]
    tables = list_moved(subject, alone), list_relabelled(subject, before, changed)
    return Plain(words, tables=[table for table in tables if table.rows], more=more)


def draw_by_gold(subject: Subject) -> Chart | None:
    """Return how often labels of the crowd alone are right, by their confidence; None if few labels are known.

    A fit that knows them has judged the workers by them. Only labels of items that were drawn at random count.
    """
    gold = subject.gold
    if gold is None or subject.is_sample or gold.judging.sum() < LEAST_KNOWN:
        return None
    alone = subject.alone
    rows = np.flatnonzero(gold.judging & subject.is_answered)
    if isinstance(alone, str) or len(rows) < LEAST_KNOWN:
        return None
    posterior, truth = alone.labels.posterior[rows], gold.codes[rows]
    accuracy, confidence = np.mean(alone.labels.codes[rows] == truth), alone.labels.confidence[rows].mean()
    judged = (
        f"Without known labels, {accuracy:.1%} of {plural(len(rows), 'label')} are right, with a mean confidence of "
        f"{confidence:.1%}."
    )
    curve = reliability_curve(truth, posterior, np.arange(posterior.shape[1]), bins=10, adaptive=True)
    title = "Confidence without known labels, and how often it is right"
    return draw_reliability(title, judged, curve.confidence, curve.accuracy, curve.n_items)


def describe_labels(subject: Subject, before: NDArray[np.int64], n_changed: int) -> list[str]:
    """Return in words which labels the known ones changed."""
    assert subject.gold is not None
    known = np.flatnonzero(subject.is_known)
    n_known, n_differ = len(known), int((before[known] != subject.gold.codes[known]).sum())
    alone = "what the crowd alone says: the labels of the same fit without known labels"
    if not n_differ:
        words = [f"{'It agrees' if n_known == 1 else 'All of them agree'} with {alone}."]
    else:
        count = "It" if n_known == 1 else f"{n_differ:,} of them"
        words = [f"{count} {'differs' if n_differ == 1 else 'differ'} from {alone}."]
    n_others = subject.n_items - n_known
    if not n_others:
        return words
    changed = "No other label" if not n_changed else f"{n_changed:,} of the {plural(n_others, 'other label')}"
    return [*words, f"{changed} changed because of {'it' if n_known == 1 else 'them'}."]


def describe_power(found: Result, alone: Result) -> list[str]:
    """Return in words how calibration moved."""
    if found.calibrated is None or alone.calibrated is None or found.calibrated.found.given:
        return []
    before, after = f"{alone.calibrated.found.power:.2g}", f"{found.calibrated.found.power:.2g}"
    if before == after:
        return [f"Probabilities are raised to the power {after}, as without known labels."]
    return [
        f"Probabilities are raised to the power {after}; without known labels it would be {before}. A lower power "
        "makes them less extreme."
    ]


def describe_accuracy(subject: Subject, before: NDArray[np.int64]) -> list[str]:
    """Return in words how often the crowd alone is right, by known labels that were drawn at random."""
    assert subject.gold is not None
    drawn = np.flatnonzero(subject.gold.judging & subject.is_answered)
    if len(drawn) < LEAST_KNOWN:
        return []
    n_right = int((before[drawn] == subject.gold.codes[drawn]).sum())
    low, high = find_interval(n_right, len(drawn))
    share = f"{n_right / len(drawn):.1%}"
    if int(subject.is_known.sum()) == int(subject.gold.judging.sum()):
        return [
            f"The crowd alone is right about {n_right:,} of {plural(len(drawn), 'known item')} ({share}). If these "
            f"were drawn at random, it is right about {low:.1%} to {high:.1%} of all items (95% interval)."
        ]
    return [
        f"{plural(len(drawn), 'known item')} were drawn at random. The crowd alone is right about {n_right:,} of them: "
        f"{share}. So it is right about {low:.1%} to {high:.1%} of all items (95% interval)."
    ]


def describe_expected(found: Result, alone: Result) -> list[str]:
    """Return in words how expected accuracy moved."""
    if found.calibrated is None:
        return []
    before, after = f"{alone.labels.mean_confidence:.1%}", f"{found.labels.mean_confidence:.1%}"
    if before == after:
        return [f"The expected accuracy of all labels is {after}, as without known labels."]
    return [f"The expected accuracy of all labels changed from {before} to {after}."]


def describe_contradictions(subject: Subject, alone: Result) -> list[str]:
    """Return in words which known labels contradict labels of which the crowd alone was sure."""
    assert subject.gold is not None
    before, known, confidence = alone.labels.codes, subject.gold.codes, alone.labels.confidence
    rows = np.flatnonzero(subject.is_known & (before != known) & (confidence >= SURE))
    if not len(rows):
        return []
    rows = rows[np.argsort(-confidence[rows], kind="stable")]
    named = [
        f"{subject.name_of(i)} (known {subject.classes[known[i]]}, crowd {subject.classes[before[i]]} "
        f"{confidence[i]:.1%})"
        for i in rows.tolist()
    ]
    one = len(rows) == 1
    what = "The known label of 1 item contradicts a label" if one else f"Known labels of {len(rows):,} items contradict"
    labels = "" if one else " labels"
    check = "Check it." if one else "Check these."
    return [f"{what}{labels} of which the crowd was at least {SURE:.0%} sure: {join_names(named)}. {check}"]


def describe_caution(found: Result, alone: Result) -> list[str]:
    """Return in words that few known labels say little about the probabilities, where these were lowered by them."""
    if found.calibrated is None or alone.calibrated is None:
        return []
    n_drawn = found.calibrated.found.n_gold
    if not 0 < n_drawn < LEAST_KNOWN or found.calibrated.found.power >= alone.calibrated.found.power:
        return []
    known = "1 known label counts" if n_drawn == 1 else f"{n_drawn} known labels count"
    return [
        f"Only {known} as drawn at random. So few say little about the other items, and "
        "probabilities are lowered as a precaution, whatever the few labels say."
    ]


def find_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) 95 % interval of a share.

    >>> tuple(round(end, 3) for end in find_interval(0, 20)), tuple(round(end, 3) for end in find_interval(16, 20))
    ((0.0, 0.168), (0.563, 0.943))
    """
    low = float(betaincinv(n_right, n - n_right + 1, 0.025)) if n_right else 0.0
    high = float(betaincinv(n_right + 1, n - n_right, 0.975)) if n_right < n else 1.0
    return low, high


def list_moved(subject: Subject, alone: Result) -> Table:
    """Return the workers with some answers whose accuracy moved most, as far as it moved by a percentage point."""
    before, after = find_accuracy(alone), find_accuracy(subject.fusion)
    moved = np.where(subject.fusion.n_answers >= FEW_ANSWERS, np.nan_to_num(np.abs(after - before)), 0.0)
    order = np.argsort(-moved, kind="stable")[:MOST_WORKERS]
    rows = [(subject.workers[m], f"{before[m]:.1%}", f"{after[m]:.1%}") for m in order if moved[m] >= LEAST_CHANGE]
    return Table("Workers whose accuracy moved most", rows, ("Worker", "Crowd alone", "Now"))


def list_relabelled(subject: Subject, before: NDArray[np.int64], changed: NDArray[np.int64]) -> Table:
    """Return the surest of the items of unknown label that have another label because of the known ones."""
    listed = changed[np.argsort(-subject.confidence[changed], kind="stable")[:MOST_ITEMS]]
    rows = [
        (
            subject.name_of(i),
            subject.classes[before[i]],
            subject.classes[subject.codes[i]],
            *([] if subject.told_confidence is None else [f"{subject.confidence[i]:.0%}"]),
        )
        for i in listed.tolist()
    ]
    columns = ("Item", "Crowd alone", "Now", *([] if subject.told_confidence is None else ["Confidence"]))
    which = ", the surest of them" if len(changed) > len(rows) else ""
    return Table(f"Other labels that changed{which}", rows, columns)


def find_accuracy(found: Result) -> Floats:
    """Return the accuracy of each worker, as `worker_report` has it."""
    return np.asarray(to_values(found.workers["accuracy"]), np.float64)
