"""The overview: whether to trust the labels, what needs attention, and answers and probabilities in sums."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..documents.charts import Chart, Table, bin_counts, bin_shares, draw_bars, draw_shares
from ..errors import Python, plural, spell_in_python, to_sentence
from ..inference import sum_by
from ..kernels import Floats
from ..models.latent import LatentModel
from ..models.majority_vote import MajorityVote
from ..results.comparison import LEAST_HIDDEN, Comparison, is_unclear
from ..results.findings import Finding
from ..results.record import SHARED_ERRORS
from ..results.result import describe_left_out
from .changes import draw_by_gold
from .subject import Subject
from .workers import choose_classes

UNCALIBRATED = "The probabilities of this model are not calibrated."
# The most classes that a chart shows; the others are one.
MOST_BARS = 15
# The most answers per item of which each majority has a bar of its own.
MOST_SINGLE = 12
UNDECIDED = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


class Verdict(NamedTuple):
    """Whether to trust the labels.

    Attributes
    ----------
    headline : str
        In one sentence.
    lead : list of str
        What this rests on.
    badge : str
        How labels compare with majority vote in predicting hidden answers; empty where there is nothing to compare.
    level : {"good", "care", "bad"}
        How the badge is shown.
    counts : bool
        Whether probabilities can be relied on as far as the headline says.
    """

    headline: str
    lead: Sequence[str] = ()
    badge: str = ""
    level: str = "care"
    counts: bool = False


class Figure(NamedTuple):
    """A number of the first screen."""

    name: str
    value: str
    detail: str = ""


class Header(NamedTuple):
    """The first screen."""

    verdict: Verdict
    more: str  # what would tell more
    results: str  # how many results there are, where these are not the labels
    figures: list[Figure]
    facts: list[tuple[str, str]]


def describe_all(subject: Subject) -> Header:
    """Return the first screen: whether to trust the labels, and what was fused."""
    verdict = judge(subject)
    compared, results = subject.fusion.comparison, subject.task.count(subject.fusion, verdict.counts)
    more = "" if compared is None else compared.describe_more()
    return Header(verdict, to_sentence(more) if more else "", results, list_figures(subject), list_facts(subject))


def judge(subject: Subject) -> Verdict:
    """Return whether to trust the labels, as the comparison with majority vote tells."""
    model, r = subject.model, subject.responses
    compared = subject.fusion.comparison
    if len(subject.classes) == 1:
        return Verdict("There is only one class, so every label is the same.")
    if subject.is_known.all():
        return Verdict("The label of every item is known, so nothing was fused.")
    if isinstance(model, MajorityVote):
        headline = "These labels come from a majority vote, which trusts every worker equally."
        return Verdict(headline, [UNCALIBRATED, "So it is not known how many are right."])
    if any(finding.kind == "unchecked" for finding in subject.findings):
        headline = "Do not rely on these labels yet: nothing checks the answers that they come from."
        return Verdict(headline, ["Hardly any item has answers from two workers."])
    if r.n_responses < LEAST_HIDDEN or (compared is not None and not compared.tested and not r.silence_counts):
        return Verdict("There are too few answers to tell how far these labels can be trusted.")
    calibrated = isinstance(model, LatentModel)
    lead = [] if calibrated else [UNCALIBRATED]
    if compared is None:
        headline = f"It is not known how many of these {subject.n_labels:,} {subject.called} are right."
        untested = "They were not compared with majority vote; fuse does that."
        return Verdict(headline, [*lead, untested], counts=calibrated)
    return judge_compared(subject, compared, lead)


def judge_compared(subject: Subject, compared: Comparison, lead: list[str]) -> Verdict:
    """Return the verdict on a model that was compared with majority vote."""
    test = to_sentence(compared.describe_test(figures=False))
    if compared.by_chance:
        headline = "Do not rely on these labels: the answers show no signal."
        return Verdict(headline, [test, to_sentence(compared.describe_agreement())])
    if compared.collapsed:
        return Verdict("Check these labels before you use them: one class takes the items of others.", [test])
    if compared.verdict == "worse":
        headline = f"{to_sentence(compared.rival)[:-1]} may be better than these labels."
        return Verdict(headline, lead, f"Worse than {compared.rival}", "bad")
    headline = to_sentence(compared.describe_headline(f"{subject.n_labels:,} {subject.called}"))
    counts = isinstance(subject.model, LatentModel) and not compared.withheld
    # Of soft votes, hidden answers can be predicted better although labels are not: one word would not be true of both.
    apart = compared.predicts and not compared.better
    if not compared.tested or compared.n_differ == 0 or apart:
        return Verdict(headline, [*lead, test], counts=counts)
    if compared.better:
        return Verdict(headline, lead, f"Better than {compared.rival}", "good", counts)
    return Verdict(headline, lead, f"No clear difference from {compared.rival}", "care", counts)


def list_figures(subject: Subject) -> list[Figure]:
    """Return the few numbers of the first screen."""
    compared, figures = subject.fusion.comparison, []
    if compared is not None:
        name = f"Differ from {compared.rival}"
        figures.append(count_labels(subject, name, compared.n_differ, 1 - compared.agreement))
        if not math.isnan(compared.alpha):
            level = "" if compared.alpha_level == "nominal" else f", {compared.alpha_level} distance"
            figures.append(Figure("Agreement of workers", f"{compared.alpha:z.2f}", f"0: chance, 1: all agree{level}"))
    if judge(subject).counts:
        found = subject.fusion.expected_accuracy
        if compared is not None:  # also where a sample is shown
            found = compared.expected_accuracy, compared.expected_accuracy_low, compared.expected_accuracy_high
        ordered = compared is not None and not math.isnan(compared.within_one)
        figures += [] if math.isnan(found[0]) else [expect(*found, ordered)]
        if compared is not None and ordered:
            ends = f"95% interval {compared.within_one_low:.1%} to {compared.within_one_high:.1%}"
            off = f"{compared.absolute_error:.2f} levels off on average"
            figures.append(Figure("At most one level off", f"{compared.within_one:.1%}", f"{ends}; {off}"))
    return figures


def expect(accuracy: float, low: float, high: float, ordered: bool = False) -> Figure:
    """Return how many labels are expected to be right, and what that assumes.

    >>> expect(0.934, 0.92, 0.95)
    Figure(name='Right, if workers err independently', value='93.4%', detail='95% interval 92.0% to 95.0%')
    """
    interval, name = f"{low:.1%} to {high:.1%}", "Right, if workers err independently"
    if is_unclear(accuracy, low, high, ordered):
        return Figure(name, interval, "95% interval")
    return Figure(name, f"{accuracy:.1%}", f"95% interval {interval}")


def count_labels(subject: Subject, name: str, number: int, share: float) -> Figure:
    """Return a number of labels with their share; of a sample only the share."""
    if subject.is_sample:
        return Figure(name, f"{share:.1%}", "of the labels")
    return Figure(name, f"{number:,}", f"{share:.1%} of the {subject.called}")


def list_facts(subject: Subject) -> list[tuple[str, str]]:
    """Return what was fused, in names and words."""
    r = subject.responses
    sequences = "" if r.sequences is None else f" in {plural(len(r.sequences), subject.task.places[0])}"
    counted = f"{r.n_items:,}" if subject.called == "labels" else plural(r.n_items, subject.task.item)
    facts = [
        ("Items", f"{subject.n_labels:,}" if subject.is_sample else f"{counted}{sequences}"),
        ("Workers", f"{r.n_workers:,}"),
        ("Answers", f"{int(subject.fusion.n_answers.sum()):,}"),
        ("Classes", f"{r.n_classes:,}"),
        ("Model", type(subject.model).__name__),
    ]
    if subject.fusion.labels.rule == "median":
        facts.append(("Labels", "medians of the probabilities"))
    if subject.fusion.left_out is not None:
        facts.append(("Left out", describe_left_out(*subject.fusion.left_out)))
    if subject.is_sample:
        facts.append(("Shown here", f"a random sample of {r.n_items:,} items"))
    if subject.is_known.any():
        facts.append(("Known labels", f"{int(subject.is_known.sum()):,}"))
    if r.silence_counts:
        facts.append(("Silence", "counts as an answer"))
    return facts


def list_notes(subject: Subject) -> list[Finding]:
    """Return what needs attention, the most serious first, in plain text.

    What to do about several findings, and where to look, is said of the first of them.
    """
    return spell_notes(subject.findings)


def spell_notes(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings in plain text, each remedy and each place once."""
    notes, said = list[Finding](), set[str]()
    for finding in findings:
        note = finding.spelled(spell_parameter)
        remedies = tuple(words for words in map(str, note.remedies) if words not in said)
        notes.append(replace(note, remedies=remedies, place="" if note.place in said else note.place))
        said |= {*remedies, note.place}
    return notes


def spell_parameter(name: str, value: object) -> str:
    """Return a parameter as Python and the command line spell it: the report is read by users of both.

    >>> print(spell_parameter("gold", None))
    gold= (--gold on the command line)
    >>> print(spell_parameter("abstain", "answer"))
    abstain='answer' (--abstain answer on the command line)
    """
    given = value.value if isinstance(value, Python) else value
    option = f"--{name.replace('_', '-')}"
    shell = option if given is None else f"{option} {shlex.quote(str(given))}"
    return f"{spell_in_python(name, value)} ({shell} on the command line)"


class AnswerCounts(NamedTuple):
    """How many answers there are, in words where a chart would have a single bar, and how far they agree."""

    words: list[str]
    numbers: list[Chart]
    charts: list[Chart]


def describe_answers(subject: Subject) -> AnswerCounts:
    """Return how many answers there are, what they say, and how far they agree."""
    per_item, per_worker, words = draw_per_item(subject), draw_per_worker(subject), []
    if per_item is None:
        words.append(f"Each item has {plural(int(subject.n_answers[0]), 'answer')}.")
    if per_worker is None:
        words.append(f"Each worker gave {plural(int(subject.responses.votes_per_worker()[0]), 'answer')}.")
    compared = subject.fusion.comparison
    words += [] if compared is None else [to_sentence(compared.describe_agreement())]
    numbers, charts = (per_item, per_worker), (draw_agreement(subject), draw_classes(subject))
    return AnswerCounts(words, *([chart for chart in some if chart is not None] for some in (numbers, charts)))


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
    votes = np.bincount(r.label, weights=r.amount, minlength=r.n_labels)
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


def find_majorities(r: Answers) -> Floats:
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


def draw_confidence(subject: Subject) -> Chart | None:
    """Return how many labels have which confidence; None if that is not told."""
    if subject.told_confidence is None:
        return None
    sure = (subject.confidence >= 0.95).mean() if subject.n_items else 0.0
    alt = f"{sure:.1%} of the labels have a confidence of at least 95%."
    names, counts = bin_shares(subject.confidence, 20)
    first = next((n for n, count in enumerate(counts) if count), 0)
    return draw_bars("Confidence of the labels", alt, names[first:], counts[first:], "Confidence", "Items")


class Confidence(NamedTuple):
    """How sure the labels are, and whether that is right."""

    chart: Chart
    kept: Table | None
    caveat: str  # how far to trust what is expected
    origin: list[str]  # of the probabilities
    reliability: Chart | None


def describe_confidence(subject: Subject) -> Confidence | None:
    """Return how sure the labels are, how their probabilities were found, and how these are judged by known labels.

    None if confidences are not told.
    """
    chart = draw_confidence(subject)
    if chart is None:
        return None
    model, guidance = subject.model, subject.fusion.guidance
    origin = [model.explain_calibration()] if isinstance(model, LatentModel) else []
    origin += [] if guidance is None else [guidance.findings.describe()]
    kept = list_kept(subject) if judge(subject).counts else None
    compared = subject.fusion.comparison
    is_recorded = subject.fusion.names.positions is None and (compared is None or not compared.n_known)
    caveat = SHARED_ERRORS if kept is not None and is_recorded else ""
    return Confidence(chart, kept, caveat, origin, draw_by_gold(subject))


def list_kept(subject: Subject) -> Table:
    """Return how many labels have at least some confidence, and how many of these are expected to be right."""
    rows = []
    for limit in UNDECIDED:
        kept = subject.confidence >= limit
        right = f"{subject.confidence[kept].mean():.1%}" if kept.any() else ""
        rows.append((f"{limit:.0%}", f"{kept.mean():.1%}", right))
    columns = "Confidence at least", "Labels kept", "Expected to be right"
    return Table("Labels that are left if you keep the surest", rows, columns)
