"""The first screen: whether to trust the labels, in one sentence, and what needs attention."""

from __future__ import annotations

import math
import shlex
from typing import NamedTuple

from ..checks.labels import DOUBTFUL
from ..errors import Python, plural, spell_in_python, to_sentence
from ..models.latent import LatentModel
from ..models.majority_vote import MajorityVote
from ..results.comparison import LEAST_HIDDEN, Comparison, is_unclear
from ..results.findings import Finding
from .subject import Subject

# The least expected accuracy that is shown as good.
GOOD = 0.75
# From this accuracy on, percentages with one decimal would say 100.
NEARLY_ALL = 0.9995
UNCALIBRATED = "The probabilities of this model are not calibrated."


class Verdict(NamedTuple):
    """Whether to trust the labels.

    Attributes
    ----------
    level : {"good", "care", "bad"}
        How it is shown.
    badge : str
        In two or three words.
    headline : str
        In one sentence.
    lead : list of str
        What this rests on.
    counts : bool
        Whether the headline says how many labels are right, so that probabilities can be relied on as far as it says.
    """

    level: str
    badge: str
    headline: str
    lead: list[str]
    counts: bool = False


class Figure(NamedTuple):
    """A number of the first screen."""

    name: str
    value: str
    detail: str = ""


class Header(NamedTuple):
    """The first screen."""

    verdict: Verdict
    results: str  # how many results there are, where these are not the labels
    figures: list[Figure]
    facts: list[tuple[str, str]]


def describe_all(subject: Subject) -> Header:
    """Return the first screen: whether to trust the labels, and what was fused."""
    verdict = judge(subject)
    results = subject.task.count(subject.fusion, verdict.counts)
    return Header(verdict, results, list_figures(subject), list_facts(subject))


def judge(subject: Subject) -> Verdict:
    """Return whether to trust the labels, as the comparison with majority vote tells."""
    model, r = subject.model, subject.responses
    compared = subject.fusion.comparison
    if len(subject.classes) == 1:
        return Verdict("care", "One class", "There is only one class, so every label is the same.", [])
    if subject.is_known.all():
        return Verdict("good", "All known", "The label of every item is known, so nothing was fused.", [])
    if isinstance(model, MajorityVote):
        headline = "These labels come from a majority vote, which trusts every worker equally."
        return Verdict("care", "Majority vote", headline, [UNCALIBRATED, "So it is not known how many are right."])
    if any(finding.kind == "unchecked" for finding in subject.findings):
        headline = "Do not rely on these labels yet: nothing checks the answers that they come from."
        return Verdict("bad", "Not checked", headline, ["No item has answers from two workers."])
    if r.n_responses < LEAST_HIDDEN or (compared is not None and not compared.tested and not r.silence_counts):
        headline = "There are too few answers to tell how far these labels can be trusted."
        return Verdict("care", "Too few answers", headline, [])
    if compared is None:
        return judge_alone(subject)
    return judge_compared(subject, compared)


def judge_compared(subject: Subject, compared: Comparison) -> Verdict:
    """Return the verdict on a model that was compared with majority vote."""
    test = to_sentence(compared.describe_test(figures=False))
    if compared.by_chance:
        headline = "Do not rely on these labels: the answers show no signal."
        return Verdict("bad", "No signal", headline, [test, to_sentence(compared.describe_agreement())])
    if compared.collapsed:
        headline = "Check these labels before you use them: one class takes the items of others."
        return Verdict("bad", "Classes collapsed", headline, [test])
    lead = [*describe_vote_accuracy(compared), test]
    if not isinstance(subject.model, LatentModel):
        lead.append(UNCALIBRATED)
    if compared.has_record and subject.fusion.guidance is None:
        lead.append(to_sentence(compared.describe_record()))  # which was made without features
    if compared.verdict == "worse":
        return Verdict("bad", "Worse than majority vote", "Majority vote may be better than these labels.", lead)
    low, high = compared.expected_accuracy_low, compared.expected_accuracy_high
    headline = expect(compared.expected_accuracy, low, high, f"{subject.n_labels:,} {subject.called}")
    level = "good" if compared.expected_accuracy >= GOOD else "care"
    counts = isinstance(subject.model, LatentModel)
    if not compared.tested:
        level, badge = "care", "Not tested"
    elif compared.n_differ == 0:
        badge = "Same as majority vote"
    elif compared.better:
        badge = "Better than majority vote"
    else:
        level, badge = "care", "No clear difference from majority vote"
    return Verdict(level, badge, headline, lead, counts)


def describe_vote_accuracy(compared: Comparison) -> list[str]:
    """Return what majority vote is expected to get right, or why that is not known; nothing if its labels are these."""
    low, high, gain = compared.expected_accuracy_low, compared.expected_accuracy_high, compared.expected_gain
    if math.isnan(gain) or is_unclear(compared.expected_accuracy, low, high):
        return [to_sentence(compared.describe_accuracy())]
    if not compared.n_differ:
        return []
    return [f"By the same estimate, majority vote gets {compared.expected_accuracy - gain:.1%} right."]


def judge_alone(subject: Subject) -> Verdict:
    """Return the verdict on a model that was not compared with majority vote."""
    untested = "They were not compared with majority vote; fuse does that."
    if not isinstance(subject.model, LatentModel):
        headline = f"It is not known how many of these {subject.n_labels:,} {subject.called} are right."
        return Verdict("care", "Not compared", headline, [UNCALIBRATED, untested])
    accuracy, low, high = subject.fusion.expected_accuracy
    interval = f"The 95% interval is {low:.1%} to {high:.1%} if workers err independently."
    headline = expect(accuracy, low, high, f"{subject.n_labels:,} {subject.called}")
    return Verdict("care", "Not compared", headline, [interval, untested], counts=True)


def expect(accuracy: float, low: float, high: float, what: str) -> str:
    """Return in a sentence how many labels are expected to be right; see `Comparison.describe_accuracy`.

    >>> expect(0.934, 0.92, 0.95, "800 labels")
    'About 93.4% of these 800 labels are right, if workers err independently.'
    >>> expect(0.61, 0.6, 0.95, "800 labels")
    'Between 60.0% and 95.0% of these 800 labels are right, if workers err independently.'
    """
    labels = f"of these {what}"
    if math.isnan(accuracy):
        return f"It is not known how many {labels} are right."
    if is_unclear(accuracy, low, high):
        return f"Between {low:.1%} and {high:.1%} {labels} are right, if workers err independently."
    share = "Nearly all" if accuracy >= NEARLY_ALL else f"About {accuracy:.1%}"
    # On real crowds, workers share errors, and fewer labels are right.
    return f"{share} {labels} are right, if workers err independently."


def list_figures(subject: Subject) -> list[Figure]:
    """Return the few numbers of the first screen."""
    compared, figures = subject.fusion.comparison, []
    told = compared is not None and (compared.tested or subject.responses.silence_counts)
    if compared is not None and told and len(subject.classes) > 1 and not math.isnan(compared.expected_accuracy):
        low, high = compared.expected_accuracy_low, compared.expected_accuracy_high
        accuracy, interval = f"{compared.expected_accuracy:.1%}", f"{low:.1%} to {high:.1%}"
        unclear = is_unclear(compared.expected_accuracy, low, high)
        figures.append(Figure("Expected accuracy", interval if unclear else accuracy, f"95% interval {interval}"))
    if compared is not None:
        name = "Differ from majority vote"
        figures.append(count_labels(subject, name, compared.n_differ, 1 - compared.agreement))
        if not math.isnan(compared.alpha):
            figures.append(Figure("Agreement of workers", f"{compared.alpha:z.2f}", "0: chance, 1: all agree"))
    if len(subject.classes) > 1:
        n_doubtful = int((subject.confidence < DOUBTFUL).sum())
        share = n_doubtful / subject.n_items
        figures.append(count_labels(subject, f"Confidence below {DOUBTFUL:.0%}", n_doubtful, share))
    return figures


def count_labels(subject: Subject, name: str, number: int, share: float) -> Figure:
    """Return a number of labels with their share; of a sample only the share."""
    if subject.is_sample:
        return Figure(name, f"{share:.1%}", "of the labels")
    return Figure(name, f"{number:,}", f"{share:.1%} of the {subject.called}")


def list_facts(subject: Subject) -> list[tuple[str, str]]:
    """Return what was fused, in names and words."""
    r = subject.responses
    sequences = "" if r.sequences is None else f" in {plural(len(r.sequences), 'sequence')}"
    counted = f"{r.n_items:,}" if subject.called == "labels" else plural(r.n_items, subject.task.item)
    facts = [
        ("Items", f"{subject.n_labels:,}" if subject.is_sample else f"{counted}{sequences}"),
        ("Workers", f"{r.n_workers:,}"),
        ("Answers", f"{int(subject.fusion.n_answers.sum()):,}"),
        ("Classes", f"{r.n_classes:,}"),
        ("Model", type(subject.model).__name__),
    ]
    if subject.is_sample:
        facts.append(("Shown here", f"a random sample of {r.n_items:,} items"))
    if subject.is_known.any():
        facts.append(("Known labels", f"{int(subject.is_known.sum()):,}"))
    if r.silence_counts:
        facts.append(("Silence", "counts as an answer"))
    return facts


def list_notes(subject: Subject) -> list[Finding]:
    """Return what needs attention, the most serious first, in plain text."""
    return [finding.spelled(spell_parameter) for finding in subject.findings]


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
