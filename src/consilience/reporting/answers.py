"""The answers in sums: how many there are, what they say, how far they agree; and the probabilities that result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.responses import Responses
from ..errors import plural, quietly, to_sentence
from ..kernels.types import Floats
from ..metrics.probabilities import reliability_curve
from ..models.latent import LatentModel
from .charts import Chart, bin_counts, bin_shares, draw_bars, draw_reliability, draw_shares
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


class Counts(NamedTuple):
    """How many answers there are about each item, or of each worker, and how to say it."""

    numbers: NDArray[np.int64]
    title: str
    alt: str
    what: str
    each: str

    def draw(self) -> Chart | None:
        """Return how often each number occurs; None if all are the same."""
        if len(self.numbers) and self.numbers.min() == self.numbers.max():
            return None
        return draw_bars(self.title, self.alt, *bin_counts(self.numbers), "Answers", self.what)

    def describe(self) -> str:
        """Return the number in words, where all are the same."""
        return f"{self.each} {plural(int(self.numbers[0]), 'answer')}."


def count_per_item(subject: Subject) -> Counts:
    """Return how many answers items have."""
    numbers = subject.n_answers
    alt = f"Items have {numbers.mean() if len(numbers) else 0.0:.1f} answers on average."
    return Counts(numbers, "Answers per item", alt, "Items", "Each item has")


def count_per_worker(subject: Subject) -> Counts:
    """Return how many answers workers gave."""
    numbers = subject.responses.votes_per_worker()
    median = np.median(numbers) if len(numbers) else 0.0
    alt = f"The median worker gave {plural(round(median), 'answer')}."
    return Counts(numbers, "Answers per worker", alt, "Workers", "Each worker gave")


class Answers(NamedTuple):
    """How many answers there are, in words where a chart would have a single bar, and how far they agree."""

    words: list[str]
    charts: list[Chart]
    agreement: str


def describe_answers(subject: Subject) -> Answers:
    """Return how many answers there are, what they say, and how far they agree."""
    counted = [(each, each.draw()) for each in (count_per_item(subject), count_per_worker(subject))]
    charts = [*(chart for _, chart in counted), draw_classes(subject), draw_agreement(subject)]
    compared = subject.fusion.comparison
    return Answers(
        [each.describe() for each, chart in counted if chart is None],
        [chart for chart in charts if chart is not None],
        "" if compared is None else to_sentence(compared.describe_agreement()),
    )


def draw_classes(subject: Subject) -> Chart:
    """Return the share of each class among the answers, and among the fused labels."""
    r = subject.responses
    votes = np.bincount(r.label, weights=r.weight, minlength=r.n_labels)
    said = np.zeros(r.n_classes)
    named = r.class_of_label >= 0
    said[r.class_of_label[named]] = votes[named]
    fused = np.bincount(subject.codes, minlength=r.n_classes).astype(float)
    order, names = choose_classes(fused + 1e-9 * said, subject.classes, MOST_BARS)
    shares = {
        "Answers": fold(said / max(votes.sum(), 1e-300), order, len(names)),
        "Fused labels": fold(fused / max(fused.sum(), 1), order, len(names)),
    }
    most = int(fused.argmax())
    share = fused[most] / max(fused.sum(), 1)
    alt = f"The most frequent label is {subject.classes[most]}, with {share:.1%} of the items."
    return draw_shares("Classes in answers and labels", alt, names, shares)


def fold(values: Floats, place: NDArray[np.int64], n_places: int) -> Floats:
    """Return sums of values by their place."""
    return np.bincount(place, values, minlength=n_places).astype(float)


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
    names, counts = bin_shares(subject.confidence, 20)
    first = next((n for n, count in enumerate(counts) if count), 0)
    sure = (subject.confidence >= 0.95).mean() if subject.n_items else 0.0
    alt = f"{sure:.1%} of the labels have a confidence of at least 95%."
    return draw_bars("Confidence of the labels", alt, names[first:], counts[first:], "Confidence", "Items")


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
