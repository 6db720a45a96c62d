"""The first screen of the page: whether to trust the labels, and what was fused."""

from __future__ import annotations

import math

from ..errors import plural, to_sentence
from ..results.comparison import LEAST_HIDDEN, is_unclear
from ..results.result import describe_left_out
from .document import Document, Fact, Facts, Level, Part, Text
from .view import View

UNCALIBRATED = "The probabilities of this model are not calibrated."


def call_labels(view: View) -> str:
    """What the labels are called, if the results are something else."""
    task = view.result.task
    return f"{task.judged}s" if task.results == "labels" or task.judged != "label" else f"labels of {task.item}s"


def counts_probabilities(view: View) -> bool:
    """Whether probabilities can be relied on as far as the headline says."""
    return judge(view)[-1]


def judge(view: View) -> tuple[str, list[str], str, Level, bool]:
    """Whether to trust the labels, as the comparison with majority vote tells.

    It is a headline, what this rests on, how labels compare with the vote and how that is shown, and whether
    probabilities can be relied on as far as the headline says.
    """
    found, r = view.result, view.answers
    compared, labels = found.comparison, f"{found.labels.n_items:,} {call_labels(view)}"
    if len(view.classes) == 1:
        return "There is only one class, so every label is the same.", [], "", "care", False
    if view.is_known.all():
        return "The label of every item is known, so nothing was fused.", [], "", "care", False
    if found.model == "MajorityVote":
        headline = "These labels come from a majority vote, which trusts every worker equally."
        return headline, [UNCALIBRATED, "So it is not known how many are right."], "", "care", False
    if any(finding.kind == "unchecked" for finding in view.findings):
        headline = "Do not rely on these labels yet: nothing checks the answers that they come from."
        return headline, ["Hardly any item has answers from two workers."], "", "care", False
    if r.n_responses < LEAST_HIDDEN or (compared is not None and not compared.tested and not r.silence_counts):
        return "There are too few answers to tell how far these labels can be trusted.", [], "", "care", False
    calibrated = found.calibrated is not None
    lead = [] if calibrated else [UNCALIBRATED]
    if compared is None:
        headline = f"It is not known how many of these {labels} are right."
        return headline, [*lead, "They were not compared with majority vote; fuse does that."], "", "care", calibrated
    test = to_sentence(compared.describe_test(figures=False))
    if compared.by_chance:
        signal = [test, to_sentence(compared.describe_agreement())]
        return "Do not rely on these labels: the answers show no signal.", signal, "", "care", False
    if compared.collapsed:
        headline = "Check these labels before you use them: one class takes the items of others."
        return headline, [test], "", "care", False
    if compared.verdict == "worse":
        headline = f"{to_sentence(compared.rival)[:-1]} may be better than these labels."
        return headline, lead, f"Worse than {compared.rival}", "bad", False
    headline, counts = to_sentence(compared.describe_headline(labels)), calibrated and not compared.withheld
    # Of soft votes, hidden answers can be predicted better although labels are not: one word would not be true of both.
    if not compared.tested or compared.n_differ == 0 or (compared.predicts and not compared.better):
        return headline, [*lead, test], "", "care", counts
    if compared.better:
        return headline, lead, f"Better than {compared.rival}", "good", counts
    return headline, lead, f"No clear difference from {compared.rival}", "care", counts


def describe_overview(view: View, title: str) -> Document:
    """The first screen."""
    headline, lead, badge, level, counts = judge(view)
    found, compared = view.result, view.result.comparison
    more = "" if compared is None else compared.describe_more()
    results = found.task.count(found, counts)
    parts: list[Part] = [Facts(list_facts(view))]
    parts += [Text(lead)] if lead else []
    parts += [Text([to_sentence(more)], link="review")] if more else []
    parts += [Text([results])] if results else []
    figures = list_figures(view, counts)
    return Document(title, headline, [*parts, *([Facts(figures, "figures")] if figures else [])], badge, level)


def list_figures(view: View, counts: bool) -> list[Fact]:
    """The few numbers of the first screen."""
    compared, figures = view.result.comparison, list[Fact]()
    if compared is not None:
        share = f"{1 - compared.agreement:.1%} of the {call_labels(view)}"
        figures.append(Fact("n_differ", f"Differ from {compared.rival}", compared.n_differ, "", "count", share))
        if not math.isnan(compared.alpha):
            level = "" if compared.alpha_level == "nominal" else f", {compared.alpha_level} distance"
            meaning = f"0: chance, 1: all agree{level}"
            figures.append(Fact("alpha", "Agreement of workers", compared.alpha, "", "number", meaning))
    if not counts:
        return figures
    value, low, high = view.result.expected_accuracy
    if compared is not None:
        value, low, high = (getattr(compared, f"expected_accuracy{end}") for end in ("", "_low", "_high"))
    ordered = compared is not None and not math.isnan(compared.within_one)
    if not math.isnan(value):
        interval, name = f"{low:.1%} to {high:.1%}", "Right, if workers err independently"
        unclear = is_unclear(value, low, high, ordered)
        ends = "95% interval" if unclear else f"95% interval {interval}"
        figures.append(Fact("expected_accuracy", name, value, interval if unclear else f"{value:.1%}", detail=ends))
    if compared is not None and ordered:
        ends = f"95% interval {compared.within_one_low:.1%} to {compared.within_one_high:.1%}"
        off = f"{compared.absolute_error:.2f} levels off on average"
        name = "At most one level off"
        figures.append(Fact("within_one", name, compared.within_one, "", "percent", f"{ends}; {off}"))
    return figures


def list_facts(view: View) -> list[Fact]:
    """What was fused."""
    r, found = view.answers, view.result
    sequences = "" if r.sequences is None else f" in {plural(len(r.sequences), found.task.places[0])}"
    counted = f"{r.n_items:,}" if call_labels(view) == "labels" else plural(r.n_items, found.task.item)
    facts = [
        Fact("items", "Items", r.n_items, f"{counted}{sequences}"),
        Fact("workers", "Workers", r.n_workers, format="count"),
        Fact("answers", "Answers", int(found.n_answers.sum()), format="count"),
        Fact("classes", "Classes", r.n_classes, format="count"),
        Fact("model", "Model", found.model),
    ]
    if found.labels.rule == "median":
        facts.append(Fact("rule", "Labels", "median", "medians of the probabilities"))
    if found.left_out is not None:
        facts.append(Fact("left_out", "Left out", found.left_out[0], describe_left_out(*found.left_out)))
    if view.is_known.any():
        facts.append(Fact("gold", "Known labels", int(view.is_known.sum()), format="count"))
    if r.silence_counts:
        facts.append(Fact("silence", "Silence", True, "counts as an answer"))
    return facts
