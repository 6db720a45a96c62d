"""The page on a fitted model: its first screen, its sections in order, and the charts that can be drawn one by one.

A section is a function of a `View` that returns parts, or nothing where it has nothing to say. A new one is a line in
`SECTIONS`, and needs no template.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array

from ..answers.columns import spell_surrogates
from ..errors import plural, to_sentence
from ..inference.cells import sum_by
from ..kernels import NEARLY_ZERO
from ..results.comparison import LEAST_HIDDEN, is_unclear
from ..results.record import SHARED_ERRORS
from ..results.result import describe_left_out
from .charts import Chart, bin_shares, draw_bars, draw_shares
from .document import Column, Document, Fact, Facts, Part, Section, Table, Text, name_all, to_name
from .estimates import audit_page, estimate_page
from .items import LEAST_KNOWN_SHOWN, describe_differences, describe_known, draw_by_gold, list_uncertain, prepare_review
from .networks import describe_network
from .overview import tabulate_questions
from .sequences import describe_sequences, draw_transitions
from .tags import describe_tags, draw_tags
from .view import View
from .workers import draw_confusion, draw_raters, draw_workers, list_workers, merge_rare, tabulate

# The most classes that a chart shows; the others are one.
MOST_BARS = 15
# The most answers per item of which each majority has a bar of its own.
MOST_SINGLE = 12
UNDECIDED = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
UNCALIBRATED = "The probabilities of this model are not calibrated."
# Of several questions: the workers who are shown, and who are in the page at all; the most that the menu names.
N_WORKERS_SHOWN, MOST_WORKERS_HELD, MOST_NAMED = 12, 500, 8


def describe_page(view: View, title: str) -> Document:
    """The page on a fitted model."""
    result, r, compared = view.result, view.answers, view.result.comparison
    kind, labels = result.kind, result.kind.name_labels()
    headline, lead, badge, level, is_reliable = describe_trust(view, labels)

    sequences = "" if r.sequences is None else f" in {plural(len(r.sequences), kind.places[0])}"
    counted = f"{r.n_items:,}" if labels == "labels" else plural(r.n_items, kind.item)
    blocked, n_known = result.left_out, int(view.is_known.sum())
    facts = [
        Fact("items", "Items", r.n_items, f"{counted}{sequences}"),
        Fact("workers", "Workers", r.n_workers, format="count"),
        Fact("answers", "Answers", int(result.n_answers.sum()), format="count"),
        Fact("classes", "Classes", r.n_classes, format="count"),
        Fact("model", "Model", result.model),
        Fact("rule", "Labels", None, "medians of the probabilities" if result.labels.rule == "median" else ""),
        Fact("left_out", "Left out", None, "" if blocked is None else describe_left_out(*blocked)),
        Fact("gold", "Known labels" if n_known else "", n_known, format="count"),
        Fact("silence", "Silence", None, "counts as an answer" if r.silence_counts else ""),
    ]

    figures = list[Fact]()
    if compared is not None:
        share = f"{1 - compared.agreement:.1%} of the {labels}"
        figures.append(Fact("n_differ", f"Differ from {compared.rival}", compared.n_differ, "", "count", share))
        if not math.isnan(compared.alpha):
            distance = "" if compared.alpha_level == "nominal" else f", {compared.alpha_level} distance"
            meaning = f"0: chance, 1: all agree{distance}"
            figures.append(Fact("alpha", "Agreement of workers", compared.alpha, "", "number", meaning))
    value, low, high = result.expected_accuracy
    if compared is not None:
        value, low, high = (getattr(compared, f"expected_accuracy{end}") for end in ("", "_low", "_high"))
    are_levels = compared is not None and not math.isnan(compared.within_one)
    if is_reliable and not math.isnan(value):
        interval, name = f"{low:.1%} to {high:.1%}", "Right, if workers err independently"
        unclear = is_unclear(value, low, high, are_levels)
        ends = "95% interval" if unclear else f"95% interval {interval}"
        figures.append(Fact("expected_accuracy", name, value, interval if unclear else f"{value:.1%}", detail=ends))
    if is_reliable and compared is not None and are_levels:
        ends = f"95% interval {compared.within_one_low:.1%} to {compared.within_one_high:.1%}"
        off = f"{ends}; {compared.absolute_error:.2f} levels off on average"
        figures.append(Fact("within_one", "At most one level off", compared.within_one, "", "percent", off))

    parts: list[Part] = [Facts(facts), *([Text(lead)] if lead else [])]
    more, results = "" if compared is None else compared.describe_more(), kind.summarise(r, result, is_reliable)
    parts += [Text([to_sentence(more)], link="review")] if more else []
    parts += [] if results is None else [Text([results[1]])]
    parts += [Facts(figures, "figures")] if figures else []
    for name, (heading, menu, link, describe, applies) in SECTIONS.items():
        shown = describe(view) if applies(view) else []
        parts += [Section(heading, shown, name, menu, link)] if shown else []
    return Document(title, headline, parts, badge, level)


def describe_trust(view: View, called: str = "labels") -> tuple[str, list[str], str, Any, bool]:
    """Whether to trust the labels, as the comparison with majority vote tells.

    It is a headline, what this rests on, how labels compare with the vote and how that is shown, and whether
    probabilities can be relied on as far as the headline says.
    """
    result, r, compared = view.result, view.answers, view.result.comparison
    labels = f"{result.labels.n_items:,} {called}"
    is_reliable = result.calibrated is not None
    lead = [] if is_reliable else [UNCALIBRATED]
    test = [] if compared is None else [to_sentence(compared.describe_test(figures=False))]
    # Where nothing can be said of the labels.
    if len(view.classes) == 1:
        return "There is only one class, so every label is the same.", [], "", "care", False
    if view.is_known.all():
        return "The label of every item is known, so nothing was fused.", [], "", "care", False
    if result.model == "MajorityVote":
        headline = "These labels come from a majority vote, which trusts every worker equally."
        return headline, [UNCALIBRATED, "So it is not known how many are right."], "", "care", False
    if any(finding.kind == "unchecked" for finding in view.findings):
        headline = "Do not rely on these labels yet: nothing checks the answers that they come from."
        return headline, ["Hardly any item has answers from two workers."], "", "care", False
    if r.n_responses < LEAST_HIDDEN or (compared is not None and not compared.tested and not r.silence_counts):
        return "There are too few answers to tell how far these labels can be trusted.", [], "", "care", False
    if compared is None:
        headline = f"It is not known how many of these {labels} are right."
        return headline, [*lead, "They were not compared with majority vote; fuse does that."], "", "care", is_reliable
    if compared.by_chance:
        headline = "Do not rely on these labels: the answers show no signal."
        return headline, [*test, to_sentence(compared.describe_agreement())], "", "care", False
    if compared.collapsed:
        return "Check these labels before you use them: one class takes the items of others.", test, "", "care", False

    rival, is_reliable = compared.rival, is_reliable and not compared.withheld
    if compared.verdict == "worse":
        headline = f"{to_sentence(rival)[:-1]} may be better than these labels."
        return headline, lead, f"Worse than {rival}", "bad", False
    headline = to_sentence(compared.describe_headline(labels))
    # Of soft votes, hidden answers can be predicted better although labels are not: one word would not be true of both.
    if not compared.tested or compared.n_differ == 0 or (compared.predicts and not compared.better):
        return headline, [*lead, *test], "", "care", is_reliable
    if compared.better:
        return headline, lead, f"Better than {rival}", "good", is_reliable
    return headline, lead, f"No clear difference from {rival}", "care", is_reliable


# -------------------------------------------------------------------------------------------- confidence and answers


def describe_confidence(view: View) -> list[Part]:
    """How sure the labels are, how their probabilities were found, and how these are judged by known labels.

    Nothing if confidences are not told.
    """
    chart, result, reliability = draw_confidence(view), view.result, draw_by_gold(view)
    if chart is None:
        return []
    kept: Table | None = None
    if describe_trust(view)[-1]:  # how many labels have at least some confidence, and how many of these may be right
        columns = [Column("confidence", "Confidence at least"), Column("kept", "Labels kept", "percent")]
        columns.append(Column("right", "Expected to be right", "percent"))
        rows, confidence = [], result.labels.confidence
        for limit in UNDECIDED:
            chosen = confidence[confidence >= limit]
            rows.append((f"{limit:.0%}", len(chosen) / len(confidence), chosen.mean() if len(chosen) else None))
        kept = Table("kept", "Labels that are left if you keep the surest", columns, rows)
    beside = [each for each in (reliability, kept) if each is not None][:1]
    parts: list[Part] = [([chart], beside)]
    if (
        kept is not None
        and result.names.positions is None
        and (result.comparison is None or (result.comparison.like_record and not result.comparison.n_known))
    ):
        parts.append(Text([SHARED_ERRORS], quiet=True))
    if kept is not None and reliability is not None:
        parts.append(Section(kept.title, [kept]))
    origin = [] if result.calibrated is None else [view.model.result_.explain_calibration()]
    origin += [] if result.feature_result is None else [result.feature_result.findings.describe()]
    if origin:
        parts.append(Section("Where the probabilities come from", [Text([each]) for each in origin]))
    return parts


def draw_confidence(view: View) -> Chart | None:
    """How many labels have which confidence; None if that is not told."""
    if view.confidence is None:
        return None
    sure = (view.confidence >= 0.95).mean() if len(view.confidence) else 0.0
    alt = f"{sure:.1%} of the labels have a confidence of at least 95%."
    names, counts = bin_shares(view.confidence, 20)
    first = next((n for n, count in enumerate(counts) if count), 0)
    return draw_bars("Confidence of the labels", alt, names[first:], counts[first:], "Confidence", "Items")


def describe_answers(view: View) -> list[Part]:
    """What the answers say, how far they agree, and how many there are."""
    words = list[str]()
    for numbers, each in ((view.n_answers, "item has"), (view.answers.votes_per_worker(), "worker gave")):
        low, middle, high = (round(np.quantile(numbers, share)) for share in (0, 0.5, 1)) if len(numbers) else (0, 0, 0)
        if low == high:
            words.append(f"Each {each} {plural(high, 'answer')}.")
        else:
            words.append(f"The median {each} {plural(middle, 'answer')}, and others {low:,} to {high:,}.")
    compared = view.result.comparison
    words += [] if compared is None else [to_sentence(compared.describe_agreement())]
    charts = [[chart] for chart in (draw_agreement(view), draw_classes(view)) if chart is not None]
    return [tuple(charts), Section("Answers in numbers", [Text(words)])]


def draw_classes(view: View) -> Chart:
    """The share of each class among the answers, and among the fused labels."""
    r = view.answers
    votes, named = np.bincount(r.label, weights=r.amount, minlength=r.n_labels), r.class_of_label >= 0
    said = np.zeros(r.n_classes)
    said[r.class_of_label[named]] = votes[named]
    fused = np.bincount(view.result.labels.codes, minlength=r.n_classes).astype(float)
    place, names = merge_rare(fused + 1e-9 * said, view.classes, MOST_BARS)
    shares = {
        "Answers": sum_by(place, said / max(votes.sum(), NEARLY_ZERO), len(names)),
        "Fused labels": sum_by(place, fused / max(fused.sum(), 1), len(names)),
    }
    most = int(fused.argmax())
    share = fused[most] / max(fused.sum(), 1)
    alt = f"The most frequent label is {view.classes[most]}, with {share:.1%} of the items."
    return draw_shares("Classes in answers and labels", alt, names, shares)


def draw_agreement(view: View) -> Chart | None:
    """How large the majority of items is that have at least two answers: the share of their most frequent label.

    All labels count, also those that are no classes. It is in workers if all items have equally many, else in shares.
    """
    r, several = view.answers, view.n_answers > 1
    if not several.any():
        return None
    item, weight = r.item_of_answer(), r.weights()
    given = coo_array((weight, (item, r.label)), shape=(r.n_items, r.n_labels)).tocsr()
    total = np.bincount(item, weight, minlength=r.n_items)
    top = (given.max(axis=1).toarray().ravel() / np.maximum(total, NEARLY_ZERO))[several]

    n_answers = view.n_answers[several]
    unanimous, n = int((top > 1 - 1e-9).sum()), int(n_answers[0])
    divided = top[top <= 1 - 1e-9]
    if (n_answers == n).all() and n <= MOST_SINGLE and np.allclose(divided * n, (divided * n).round()):
        sizes = np.bincount(np.minimum((divided * n).round(), n - 1).astype(np.int64), minlength=n)
        names, counts = [f"{k} of {n}" for k in range(1, n)], sizes[1:].tolist()
    else:
        names, counts = bin_shares(divided, 10)
    begin = next((n for n, count in enumerate(counts) if count), len(counts))
    whole = "all" if unanimous == len(top) else f"{unanimous / len(top):.1%}" if unanimous else "none"
    which = "the only item" if len(top) == 1 else f"{whole} of the {len(top):,} items"
    alt = f"All workers {'agree' if unanimous or len(top) > 1 else 'do not agree'} on {which} with two or more answers."
    title, names, counts = "How many workers share the most frequent answer", [*names[begin:], "all"], counts[begin:]
    return draw_bars(title, alt, names, [*counts, unanimous], "Workers of an item who agree", "Items")


def list_notes(view: View) -> list[Part]:
    """What needs attention, the most serious first."""
    return [view.findings] if view.findings else [Text(["Nothing stands out."])]


# By their ids, in the order of the page: title, menu, what a link from a finding says, function, and where it applies.
SECTIONS: dict[str, tuple[str, str, str, Callable[[View], list[Part]], Callable[[View], bool]]] = {
    "attention": ("What needs attention", "Attention", "", list_notes, lambda _: True),
    "changes": ("What the known labels say", "Known labels", "", describe_known, lambda it: bool(it.is_known.any())),
    "estimates": ("How many?", "How many", "", estimate_page, lambda it: it.population is not None),
    "audit": ("Workers by known labels", "Audit", "", audit_page, lambda it: it.population is not None),
    "tags": ("Tags", "Tags", "", describe_tags, lambda it: it.result.model == "TagSets"),
    "workers": ("Workers", "Workers", "See the workers", list_workers, lambda _: True),
    "confidence": ("Confidence", "Confidence", "", describe_confidence, lambda _: True),
    "vote": (
        "Compared with the plain vote",
        "Plain vote",
        "",
        describe_differences,
        lambda it: it.result.model != "MajorityVote",
    ),
    "answers": ("Answers", "Answers", "See the answers", describe_answers, lambda _: True),
    "sequences": (
        "Sequences",
        "Sequences",
        "",
        describe_sequences,
        lambda it: it.answers.sequences is not None and it.result.kind.in_order,
    ),
    "network": (
        "Network",
        "Network",
        "See the network",
        describe_network,
        lambda it: it.result.model == "MarkovField" or it.result.graph_check is not None,
    ),
    "uncertain": ("Least certain items", "Least certain", "", list_uncertain, lambda _: True),
    "review": ("Review", "Review", "Review items", prepare_review, lambda _: True),
}

# By their names: the function, and why there may be no such chart.
CHARTS: dict[str, tuple[Callable[[View], Chart | None], str]] = {
    "workers": (lambda view: draw_workers(tabulate(view)), "no worker has an answer"),
    "raters": (lambda view: draw_raters(tabulate(view)), "the answers are no ratings"),
    "confusion": (draw_confusion, "there is only one class"),
    "confidence": (draw_confidence, "nothing checks the answers, or a check has failed"),
    "classes": (draw_classes, ""),
    "agreement": (draw_agreement, "no item has two answers"),
    "reliability": (draw_by_gold, f"it needs {LEAST_KNOWN_SHOWN} known labels that were drawn at random"),
    "tags": (draw_tags, "only those of TagSets have it"),
    "transitions": (draw_transitions, "only those of HiddenMarkov have it"),
}


# -------------------------------------------------------------------------------------------------- several questions


def describe_questions_page(questions: Any, title: str) -> Document:
    """Several questions: how they compare with majority vote, who answers without looking, and each by itself."""
    documents = {name: describe_page(View(model), name) for name, model in questions.items()}
    links = [f"question-{n}" for n in range(len(documents))]
    table = tabulate_questions(questions, {name: each.badge or each.headline for name, each in documents.items()})
    columns = [replace(each, name=each.name.capitalize()) for each in table.columns]
    table = replace(table, columns=columns, links=links)

    workers = sorted(pa.table(questions.worker_report()).to_pylist(), key=lambda row: -(row["chance"] or 0.0))
    heads = [
        Column("worker", "Worker"),
        Column("answers", "Answers", "count"),
        Column("chance", "By chance", "share", "The probability that the worker answers without looking"),
        *([Column("remarks", "Remarks")] if any(row["remarks"] for row in workers) else []),
        Column("accuracy", "Accuracy", "share"),
        *(Column(f"accuracy({name})", f"Accuracy: {spell_surrogates(name)}", "share") for name in documents),
    ]
    parts: list[Part] = [
        Text(["Those come first who most probably answer without looking. Talk to workers above 90%."]),
        Table("workers", "Workers over all questions", heads, workers[:N_WORKERS_SHOWN]),
    ]
    if workers[N_WORKERS_SHOWN:]:
        more = f"{len(workers) - N_WORKERS_SHOWN:,} more workers"
        n_listed = MOST_WORKERS_HELD - N_WORKERS_SHOWN
        left_out = f", of whom {n_listed} are listed" if len(workers) > MOST_WORKERS_HELD else ""
        others = Table("more_workers", f"{more}{left_out}", heads, workers[N_WORKERS_SHOWN:MOST_WORKERS_HELD])
        parts.append(Section(f"{more}{left_out}", [others]))

    badges = Counter(each.badge or "Not compared with majority vote" for each in documents.values())
    counted = "; ".join(f"{words}: {n:,}" for words, n in badges.items())
    facts = [
        Fact("questions", "Questions", len(documents), format="count"),
        Fact("workers", "Workers", len(workers), format="count"),
        Fact("answers", "Answers", sum(row[3] for row in table.cells()), format="count"),
    ]
    menus = name_all([*documents, ""])[:-1] if len(documents) <= MOST_NAMED else [""] * len(documents)
    sections = [
        Section("Questions", [table], "questions", "Questions"),
        Section("Workers over all questions", parts, "workers", "Workers"),
    ]
    for link, (name, document), menu in zip(links, documents.items(), menus, strict=True):
        sections.append(Section(to_name(name), [document], link, menu))
    headline = f"{plural(len(documents), 'question')}. {counted}."
    return Document(title, headline, [Facts(facts), Text([questions.explain_sharing()]), *sections])
