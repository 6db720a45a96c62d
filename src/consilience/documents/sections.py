"""The page on a fitted model: its sections, in order, and the charts that can be drawn one by one.

A section is a function of a `View` that returns parts, or nothing where it has nothing to say. A new one is a line in
`SECTIONS`, and needs no template.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..answers.answers import Answers
from ..errors import plural, to_sentence
from ..inference import sum_by
from ..kernels import Floats
from ..results.record import SHARED_ERRORS
from .charts import Chart, bin_counts, bin_shares, draw_bars, draw_shares
from .document import Column, Columns, Document, Findings, Fold, Part, Section, Table, Text
from .header import counts_probabilities, describe_overview
from .items import LEAST_KNOWN, describe_differences, describe_known, draw_by_gold, list_uncertain, prepare_review
from .sequences import describe_network, describe_sequences, draw_transitions
from .special import describe_tags, describe_votes, draw_tags, draw_votes
from .view import View
from .workers import choose_classes, draw_confusion, draw_raters, draw_workers, show_workers, tabulate

# The most classes that a chart shows; the others are one.
MOST_BARS = 15
# The most answers per item of which each majority has a bar of its own.
MOST_SINGLE = 12
UNDECIDED = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


def list_notes(view: View) -> list[Part]:
    """What needs attention, the most serious first."""
    return [Findings(view.findings)] if view.findings else [Text(["Nothing stands out."])]


def describe_confidence(view: View) -> list[Part]:
    """How sure the labels are, how their probabilities were found, and how these are judged by known labels.

    Nothing if confidences are not told.
    """
    chart, found = draw_confidence(view), view.result
    if chart is None:
        return []
    reliability, kept = draw_by_gold(view), list_kept(view) if counts_probabilities(view) else None
    beside: list[Part] = [reliability] if reliability is not None else [kept] if kept is not None else []
    parts: list[Part] = [Columns([[chart], beside])]
    compared = found.comparison
    if kept is not None and found.names.positions is None and (compared is None or not compared.n_known):
        parts.append(Text([SHARED_ERRORS], quiet=True))
    if kept is not None and reliability is not None:
        parts.append(Fold(kept.title, [kept]))
    origin = [] if found.calibrated is None else [view.model.explain_calibration()]
    origin += [] if found.guidance is None else [found.guidance.findings.describe()]
    return [*parts, *([Fold("Where the probabilities come from", [Text([each]) for each in origin])] if origin else [])]


def draw_confidence(view: View) -> Chart | None:
    """How many labels have which confidence; None if that is not told."""
    if view.confidence is None:
        return None
    sure = (view.confidence >= 0.95).mean() if len(view.confidence) else 0.0
    alt = f"{sure:.1%} of the labels have a confidence of at least 95%."
    names, counts = bin_shares(view.confidence, 20)
    first = next((n for n, count in enumerate(counts) if count), 0)
    return draw_bars("Confidence of the labels", alt, names[first:], counts[first:], "Confidence", "Items")


def list_kept(view: View) -> Table:
    """How many labels have at least some confidence, and how many of these are expected to be right."""
    confidence, rows = view.result.labels.confidence, list[tuple[str, float, float | None]]()
    for limit in UNDECIDED:
        kept = confidence >= limit
        rows.append((f"{limit:.0%}", float(kept.mean()), float(confidence[kept].mean()) if kept.any() else None))
    columns = [Column("confidence", "Confidence at least"), Column("kept", "Labels kept", "percent")]
    columns += [Column("right", "Expected to be right", "percent")]
    return Table("kept", "Labels that are left if you keep the surest", columns, rows)


def count_answers_given(view: View) -> list[Part]:
    """How many answers there are, what they say, and how far they agree."""
    per_item, per_worker, words = draw_per_item(view), draw_per_worker(view), list[str]()
    if per_item is None:
        words.append(f"Each item has {plural(int(view.n_answers[0]), 'answer')}.")
    if per_worker is None:
        words.append(f"Each worker gave {plural(int(view.answers.votes_per_worker()[0]), 'answer')}.")
    compared = view.result.comparison
    words += [] if compared is None else [to_sentence(compared.describe_agreement())]
    numbers = [[chart] for chart in (per_item, per_worker) if chart is not None]
    charts = [[chart] for chart in (draw_agreement(view), draw_classes(view)) if chart is not None]
    fold: list[Part] = [Text(words)] if words else []
    fold += [Columns(numbers)] if numbers else []
    return [Columns(charts), *([Fold("Answers in numbers", fold)] if fold else [])]


def draw_per_item(view: View) -> Chart | None:
    """How many answers items have; None if all have equally many."""
    numbers = view.n_answers
    alt = f"Items have {numbers.mean() if len(numbers) else 0.0:.1f} answers on average."
    is_even = len(numbers) and numbers.min() == numbers.max()
    return None if is_even else draw_bars("Answers per item", alt, *bin_counts(numbers), "Answers", "Items")


def draw_per_worker(view: View) -> Chart | None:
    """How many answers workers gave; None if all gave equally many."""
    numbers = view.answers.votes_per_worker()
    alt = f"The median worker gave {plural(round(np.median(numbers) if len(numbers) else 0.0), 'answer')}."
    is_even = len(numbers) and numbers.min() == numbers.max()
    return None if is_even else draw_bars("Answers per worker", alt, *bin_counts(numbers), "Answers", "Workers")


def draw_classes(view: View) -> Chart:
    """The share of each class among the answers, and among the fused labels."""
    r = view.answers
    votes, named = np.bincount(r.label, weights=r.amount, minlength=r.n_labels), r.class_of_label >= 0
    said = np.zeros(r.n_classes)
    said[r.class_of_label[named]] = votes[named]
    fused = np.bincount(view.result.labels.codes, minlength=r.n_classes).astype(float)
    place, names = choose_classes(fused + 1e-9 * said, view.classes, MOST_BARS)
    shares = {
        "Answers": sum_by(place, said / max(votes.sum(), 1e-300), len(names)),
        "Fused labels": sum_by(place, fused / max(fused.sum(), 1), len(names)),
    }
    most = int(fused.argmax())
    share = fused[most] / max(fused.sum(), 1)
    alt = f"The most frequent label is {view.classes[most]}, with {share:.1%} of the items."
    return draw_shares("Classes in answers and labels", alt, names, shares)


def draw_agreement(view: View) -> Chart | None:
    """How large the majority of items is that have at least two answers.

    It is in workers if all items have equally many, else in shares.
    """
    several = view.n_answers > 1
    if not several.any():
        return None
    top, n_answers = find_majorities(view.answers)[several], view.n_answers[several]
    unanimous, n = int((top > 1 - 1e-9).sum()), int(n_answers[0])
    divided = top[top <= 1 - 1e-9]
    if (n_answers == n).all() and n <= MOST_SINGLE and np.allclose(divided * n, (divided * n).round()):
        sizes = np.bincount(np.minimum((divided * n).round(), n - 1).astype(np.int64), minlength=n)
        names, counts = [f"{k} of {n}" for k in range(1, n)], sizes[1:].tolist()
    else:
        names, counts = bin_shares(divided, 10)
    first = next((n for n, count in enumerate(counts) if count), len(counts))
    whole = "all" if unanimous == len(top) else f"{unanimous / len(top):.1%}" if unanimous else "none"
    which = "the only item" if len(top) == 1 else f"{whole} of the {len(top):,} items"
    alt = f"All workers {'agree' if unanimous or len(top) > 1 else 'do not agree'} on {which} with two or more answers."
    title, names, counts = "How many workers share the most frequent answer", [*names[first:], "all"], counts[first:]
    return draw_bars(title, alt, names, [*counts, unanimous], "Workers of an item who agree", "Items")


def find_majorities(r: Answers) -> Floats:
    """The share of its most frequent label among the answers to each item; 0 if it has none.

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


# By their ids, in the order of the page: title, menu, what a link from a finding says, and the function.
SECTIONS: dict[str, tuple[str, str, str, Callable[[View], list[Part]]]] = {
    "attention": ("What needs attention", "Attention", "", list_notes),
    "changes": ("What the known labels say", "Known labels", "", describe_known),
    "tags": ("Tags", "Tags", "", describe_tags),
    "workers": ("Workers", "Workers", "See the workers", show_workers),
    "votes": ("Probabilities of the classifiers", "Classifiers", "", describe_votes),
    "confidence": ("Confidence", "Confidence", "", describe_confidence),
    "vote": ("Compared with the plain vote", "Plain vote", "", describe_differences),
    "answers": ("Answers", "Answers", "See the answers", count_answers_given),
    "sequences": ("Sequences", "Sequences", "", describe_sequences),
    "network": ("Network", "Network", "See the network", describe_network),
    "uncertain": ("Least certain items", "Least certain", "", list_uncertain),
    "review": ("Review", "Review", "Review items", prepare_review),
}

# By their names: the function, and why there may be no such chart.
CHARTS: dict[str, tuple[Callable[[View], Chart | None], str]] = {
    "workers": (lambda view: draw_workers(tabulate(view)), "no worker has an answer"),
    "raters": (lambda view: draw_raters(tabulate(view)), "the answers are no ratings"),
    "confusion": (draw_confusion, "there is only one class"),
    "confidence": (draw_confidence, "nothing checks the answers, or a check has failed"),
    "classes": (draw_classes, ""),
    "votes": (draw_votes, "the answers are no soft votes"),
    "agreement": (draw_agreement, "no item has two answers"),
    "answers_per_item": (draw_per_item, "all items have the same number of answers"),
    "answers_per_worker": (draw_per_worker, "all workers gave the same number of answers"),
    "reliability": (draw_by_gold, f"it needs {LEAST_KNOWN} known labels that were drawn at random"),
    "tags": (draw_tags, "only those of TagSets have it"),
    "transitions": (draw_transitions, "only those of HiddenMarkov have it"),
}


def describe(view: View, title: str) -> Document:
    """The page on a fitted model."""
    overview = describe_overview(view, title)
    found = {name: section(view) for name, (*_, section) in SECTIONS.items()}
    sections = [Section(name, *SECTIONS[name][:2], parts, SECTIONS[name][2]) for name, parts in found.items() if parts]
    return Document(title, overview.headline, [*overview.parts, *sections], overview.badge, overview.level)
