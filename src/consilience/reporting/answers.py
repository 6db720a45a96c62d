"""The answers in sums: how many there are, what they say, how far they agree; and the probabilities that result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.responses import Responses
from ..errors import plural, quietly, to_sentence
from ..inference.cells import sum_by
from ..kernels.types import Floats
from ..metrics.probabilities import reliability_curve
from ..models.latent import LatentModel
from .charts import Chart, bin_counts, bin_shares, draw_bars, draw_distribution, draw_reliability, draw_shares
from .overview import judge
from .subject import Subject
from .workers import choose_classes

# The most classes that a chart shows; the others are one.
MOST_BARS = 15
# The most answers per item of which each majority has a bar of its own.
MOST_SINGLE = 12
# Fewer known labels than this say little about probabilities.
LEAST_KNOWN = 20
UNDECIDED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class Answers(NamedTuple):
    """How many answers there are, in words where a chart would have a single bar, and how far they agree."""

    words: list[str]
    charts: list[Chart]
    agreement: str


def describe_answers(subject: Subject) -> Answers:
    """Return how many answers there are, what they say, and how far they agree."""
    per_item, per_worker, words = draw_per_item(subject), draw_per_worker(subject), []
    if per_item is None:
        words.append(f"Each item has {plural(int(subject.n_answers[0]), 'answer')}.")
    if per_worker is None:
        words.append(f"Each worker gave {plural(int(subject.responses.votes_per_worker()[0]), 'answer')}.")
    charts = [per_item, per_worker, draw_classes(subject), draw_agreement(subject)]
    compared = subject.fusion.comparison
    agreement = "" if compared is None else to_sentence(compared.describe_agreement())
    return Answers(words, [chart for chart in charts if chart is not None], agreement)


def draw_per_item(subject: Subject) -> Chart | None:
    """Return how many answers items have; None if all have equally many."""
    numbers = subject.n_answers
    alt = f"Items have {numbers.mean() if len(numbers) else 0.0:.1f} answers on average."
    return draw_numbers("Answers per item", alt, numbers, "Items")


def draw_per_worker(subject: Subject) -> Chart | None:
    """Return how many answers workers gave; None if all gave equally many."""
    numbers = subject.responses.votes_per_worker()
    median = np.median(numbers) if len(numbers) else 0.0
    return draw_numbers(
        "Answers per worker", f"The median worker gave {plural(round(median), 'answer')}.", numbers, "Workers"
    )


def draw_numbers(title: str, alt: str, numbers: NDArray[np.int64], what: str) -> Chart | None:
    """Return how often each number of answers occurs; None if all are the same."""
    if len(numbers) and numbers.min() == numbers.max():
        return None
    return draw_bars(title, alt, *bin_counts(numbers), "Answers", what)


def draw_classes(subject: Subject) -> Chart:
    """Return the share of each class among the answers, and among the fused labels."""
    r = subject.responses
    votes = np.bincount(r.label, weights=r.weight, minlength=r.n_labels)
    said = np.zeros(r.n_classes)
    named = r.class_of_label >= 0
    said[r.class_of_label[named]] = votes[named]
    fused = np.bincount(subject.codes, minlength=r.n_classes).astype(float)
    place, names = choose_classes(fused + 1e-9 * said, subject.classes, MOST_BARS)
    shares = {
        "Answers": sum_by(place, said / max(votes.sum(), 1e-300), len(names)),
        "Fused labels": sum_by(place, fused / max(fused.sum(), 1), len(names)),
    }
    most = int(fused.argmax())
    share = fused[most] / max(fused.sum(), 1)
    alt = f"The most frequent label is {subject.classes[most]}, with {share:.1%} of the items."
    return draw_shares("Classes in answers and labels", alt, names, shares)


def draw_agreement(subject: Subject) -> Chart | None:
    """Return how large the majority of items is that have at least two answers."""
    several = subject.n_answers > 1
    if not several.any():
        return None
    top = find_majorities(subject.responses)[several]
    unanimous = int((top > 1 - 1e-9).sum())
    names, counts = bin_majorities(top[top <= 1 - 1e-9], subject.n_answers[several])
    first = next((n for n, count in enumerate(counts) if count), len(counts))
    names, counts = [*names[first:], "all"], [*counts[first:], unanimous]
    share = unanimous / len(top)
    whole = "all" if unanimous == len(top) else "none" if not unanimous else f"{share:.1%}"
    which = "the only item" if len(top) == 1 else f"{whole} of the {len(top):,} items"
    alt = f"All workers {'agree' if unanimous or len(top) > 1 else 'do not agree'} on {which} with two or more answers."
    title = "How many workers share the most frequent answer"
    return draw_bars(title, alt, names, counts, "Workers of an item who agree", "Items")


def find_majorities(r: Responses) -> Floats:
    """Return the share of its most frequent label among the answers to each item; 0 if it has none.

    All labels count, also those that are no classes.
    """
    item, weight = r.item_of_answer(), r.weights()
    codes = item * r.n_labels + r.label
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
    most = np.zeros(r.n_items)
    np.maximum.at(most, codes[first] // r.n_labels, np.add.reduceat(weight[order], first))
    return most / np.maximum(np.bincount(item, weight, minlength=r.n_items), 1e-300)


def bin_majorities(top: Floats, n_answers: NDArray[np.int64]) -> tuple[list[str], list[int]]:
    """Return how many items have a majority of which size: in workers if all items have equally many, else in shares.

    >>> bin_majorities(np.array([0.5, 0.75, 0.75]), np.array([4, 4, 4, 4]))
    (['1 of 4', '2 of 4', '3 of 4'], [0, 1, 2])
    """
    n = int(n_answers[0])
    size = top * n
    if (n_answers == n).all() and n <= MOST_SINGLE and np.allclose(size, size.round()):
        counts = np.bincount(np.minimum(size.round(), n - 1).astype(np.int64), minlength=n)
        return [f"{k} of {n}" for k in range(1, n)], counts[1:].tolist()
    return bin_shares(top, 10)


def draw_confidence(subject: Subject) -> Chart:
    """Return how many labels have which confidence."""
    sure = (subject.confidence >= 0.95).mean() if subject.n_items else 0.0
    alt = f"{sure:.1%} of the labels have a confidence of at least 95%."
    return draw_distribution("Confidence of the labels", alt, subject.confidence, "Confidence", "Items")


class Kept(NamedTuple):
    """What is left if labels below a confidence are left open."""

    limit: str
    kept: str
    right: str


class Confidence(NamedTuple):
    """How sure the labels are, and whether that is right."""

    chart: Chart
    kept: list[Kept]
    calibration: str
    features: str
    reliability: Chart | None


def describe_confidence(subject: Subject) -> Confidence:
    """Return how sure the labels are, how their probabilities were found, and how these are judged by known labels."""
    model, guidance = subject.model, subject.fusion.guidance
    return Confidence(
        draw_confidence(subject),
        list_kept(subject) if judge(subject).counts else [],
        model.explain_calibration() if isinstance(model, LatentModel) else "",
        "" if guidance is None else guidance.findings.describe(),
        draw_by_gold(subject),
    )


def list_kept(subject: Subject) -> list[Kept]:
    """Return how many labels have at least some confidence, and how many of these are expected to be right."""
    rows = []
    for limit in UNDECIDED:
        kept = subject.confidence >= limit
        right = f"{subject.confidence[kept].mean():.1%}" if kept.any() else ""
        rows.append(Kept(f"{limit:.0%}", f"{kept.mean():.1%}", right))
    return rows


def draw_by_gold(subject: Subject) -> Chart | None:
    """Return how often labels of each confidence are right, by known labels; None if there are few of them.

    Known labels took part in learning about the workers, but do not decide about their own items here. Probabilities
    are judged by those that were drawn at random, if it is known which these are.
    """
    gold, guidance = subject.gold, subject.fusion.guidance
    if gold is None or gold.judging.sum() < LEAST_KNOWN or (guidance is not None and guidance.findings.used):
        return None
    rows = np.flatnonzero(gold.judging)
    with quietly():
        posterior = subject.model.predict_proba(subject.responses, graph=subject.graph)
    posterior, truth = posterior[rows], gold.codes[rows]
    accuracy, confidence = float((posterior.argmax(axis=1) == truth).mean()), float(posterior.max(axis=1).mean())
    drawn = "" if len(rows) == int(subject.is_known.sum()) else " that were drawn at random"
    judged = (
        f"Of {plural(len(rows), 'item')} of known label{drawn}, the answers alone, with what was learned from all "
        f"known labels, get {accuracy:.1%} right, with a mean confidence of {confidence:.1%}."
    )
    curve = reliability_curve(truth, posterior, np.arange(posterior.shape[1]), bins=10, adaptive=True)
    title = "Confidence, and how often it is right"
    return draw_reliability(title, judged, curve.confidence, curve.accuracy, curve.n_items)
