"""The first screen: whether to trust the labels, in one sentence, and what needs attention."""

from __future__ import annotations

import math
import shlex
from typing import Any, NamedTuple

import numpy as np

from ..answers.columns import find_missing, to_values
from ..answers.slips import doubt_silence
from ..checks.comparison import LEAST_HIDDEN, are_checked, find_differences
from ..checks.doubts import doubt_checks, find_doubts, tell_copies
from ..checks.drift import find_drift, has_order
from ..errors import Message, Python, plural, spell_in_python, to_sentence
from ..inference.sources import InMemory
from ..models.latent import LatentModel
from ..models.majority_vote import MajorityVote
from ..models.markov_field import MarkovField
from ..results.comparison import Comparison, is_unclear
from ..results.span_results import find_fused_spans
from .subject import Subject, to_name
from .workers import is_number

# Labels below this confidence are called doubtful, and worth a note from this share of all.
DOUBTFUL, WORTH_A_NOTE = 0.7, 0.01
# The least expected accuracy that is shown as good.
GOOD = 0.75
# From this accuracy on, percentages with one decimal would say 100.
NEARLY_ALL = 0.9995
UNCALIBRATED = "The probabilities of this model are not calibrated."
# Names that a note lists.
MOST_NAMES = 5


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


class Note(NamedTuple):
    """Something that needs attention, and what to do."""

    problem: str
    remedies: list[str]
    link: str = ""  # the section that shows more
    level: str = "care"


class Figure(NamedTuple):
    """A number of the first screen."""

    name: str
    value: str
    detail: str = ""


def judge(subject: Subject) -> Verdict:
    """Return whether to trust the labels, as the comparison with majority vote tells."""
    model, r = subject.model, subject.responses
    compared: Comparison | None = getattr(model, "comparison_", None)
    if len(subject.classes) == 1:
        return Verdict("care", "One class", "There is only one class, so every label is the same.", [])
    if subject.is_known.all():
        return Verdict("good", "All known", "The label of every item is known, so nothing was fused.", [])
    if isinstance(model, MajorityVote):
        headline = "These labels come from a majority vote, which trusts every worker equally."
        return Verdict("care", "Majority vote", headline, [UNCALIBRATED, "So it is not known how many are right."])
    if subject.n_items > 1 and not are_checked(InMemory(r, subject.gold), subject.graph):
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
    lead = [*say_vote_accuracy(compared), test]
    if not isinstance(subject.model, LatentModel):
        lead.append(UNCALIBRATED)
    if compared.has_record and getattr(subject.model, "feature_findings_", None) is None:
        lead.append(to_sentence(compared.describe_record()))  # which was made without features
    if compared.verdict == "worse":
        return Verdict("bad", "Worse than majority vote", "Majority vote may be better than these labels.", lead)
    low, high = compared.expected_accuracy_low, compared.expected_accuracy_high
    headline = expect(compared.expected_accuracy, low, high, f"{subject.n_labels:,} {subject.called}")
    level = "good" if compared.expected_accuracy >= GOOD else "care"
    counts = isinstance(subject.model, LatentModel)
    if not compared.tested:
        return Verdict("care", "Not tested", headline, lead, counts)
    if compared.n_differ == 0:
        return Verdict(level, "Same as majority vote", headline, lead, counts)
    if compared.better:
        return Verdict(level, "Better than majority vote", headline, lead, counts)
    return Verdict("care", "No clear difference from majority vote", headline, lead, counts)


def say_vote_accuracy(compared: Comparison) -> list[str]:
    """Return what majority vote is expected to get right, or why that is not known; nothing if its labels are these."""
    low, high, gain = compared.expected_accuracy_low, compared.expected_accuracy_high, compared.expected_gain
    if math.isnan(gain) or is_unclear(compared.expected_accuracy, low, high):
        return [to_sentence(compared.describe_accuracy())]
    if not compared.n_differ:
        return []
    return [f"By the same estimate, majority vote gets {compared.expected_accuracy - gain:.1%} right."]


def judge_alone(subject: Subject) -> Verdict:
    """Return the verdict on a model that was not compared with majority vote."""
    model = subject.model
    untested = "They were not compared with majority vote; fuse does that."
    if not isinstance(model, LatentModel):
        headline = f"It is not known how many of these {subject.n_labels:,} {subject.called} are right."
        return Verdict("care", "Not compared", headline, [UNCALIBRATED, untested])
    low, high = model.expected_accuracy_low_, model.expected_accuracy_high_
    interval = f"The 95% interval is {low:.1%} to {high:.1%} if workers err independently."
    headline = expect(model.expected_accuracy_, low, high, f"{subject.n_labels:,} {subject.called}")
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
    model = subject.model
    compared: Comparison | None = getattr(model, "comparison_", None)
    figures = []
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


def count_spans(subject: Subject, counts: bool) -> str:
    """Return in words how many spans the labels make, and if probabilities count, how sure these are.

    Nothing of models that were not fitted to spans of texts.
    """
    if not subject.has_spans:
        return ""
    _, confidence, types = find_fused_spans(subject.model.fusion_)
    if not types:
        return "There are no spans among the labels."
    told = f"The labels make {plural(len(types), 'span')}"
    if not counts or len(find_missing(confidence)):  # files of earlier releases hold none
        return f"{told}."
    return f"{told}, with a mean confidence of {np.mean(to_values(confidence)):.1%}."


def list_facts(subject: Subject) -> list[tuple[str, str]]:
    """Return what was fused, in names and words."""
    r, model = subject.responses, subject.model
    sequences = "" if r.sequences is None else f" in {plural(len(r.sequences), 'sequence')}"
    words = f" {'word' if r.n_items == 1 else 'words'}" if subject.has_spans else ""
    facts = [
        ("Items", f"{subject.n_labels:,}" if subject.is_sample else f"{r.n_items:,}{words}{sequences}"),
        ("Workers", f"{r.n_workers:,}"),
        ("Answers", f"{int(model.fusion_.n_answers.sum()):,}"),
        ("Classes", f"{r.n_classes:,}"),
        ("Model", type(model).__name__),
    ]
    if subject.is_sample:
        facts.append(("Shown here", f"a random sample of {r.n_items:,} items"))
    if subject.is_known.any():
        facts.append(("Known labels", f"{int(subject.is_known.sum()):,}"))
    if r.silence_counts:
        facts.append(("Silence", "counts as an answer"))
    return facts


def list_notes(subject: Subject, workers: list[dict[str, Any]]) -> list[Note]:
    """Return what needs attention, the most serious first."""
    model, r = subject.model, subject.responses
    compared: Comparison | None = getattr(model, "comparison_", None)
    silence = doubt_silence(r, subject.n_labels if subject.on_disk else None)
    notes = [] if silence is None else [to_note(silence, "care")]
    if hasattr(model, "comparison_"):
        level = judge(subject).level
        known = InMemory(r, subject.gold)
        differences = None
        if compared is not None and compared.collapsed:
            vote = MajorityVote().fit(r, gold=subject.known_labels).fusion_.labels
            differences = find_differences(model.fusion_.labels, vote, known)
        doubts = find_doubts(model.fusion_, known, subject.graph, differences)
        notes += [to_note(doubt, level) for doubt in doubts]
    elif r.n_items > 1 and not are_checked(InMemory(r, subject.gold), subject.graph):
        notes.append(to_note(doubt_checks(model.fusion_, r), "bad"))
    notes += note_graph(model)
    if model.copies_:
        notes.append(note_copies(model))
    makes_sense = compared is None or not (compared.by_chance or compared.collapsed)
    notes += [*note_workers(model, workers, r.silence_counts), *note_falls(model, workers)] if makes_sense else []
    if not model.converged_:
        notes.append(
            Note(
                "The fit stopped before it settled.",
                [f"Allow more iterations with {spell_parameter('max_iter', None)}."],
            )
        )
    notes += note_unanswered(subject)
    notes += note_doubtful(subject) if makes_sense else []
    return notes


def note_copies(model: Any) -> Note:
    """Return who seems to copy whom, and what the fit did about it."""
    remedy = "Ask them how they worked. The column Group of the table shows who belongs together."
    if model.copies_count_once_:
        return Note(say(tell_copies(model.fusion_).problem), [remedy], "workers")
    n_workers = plural(sum(map(len, model.copies_)), "worker")
    problem = f"{n_workers} seem to copy each other, or a common source. Each of them counts fully."
    return Note(problem, [remedy, "fuse lets each group count as one worker."], "workers")


def note_graph(model: Any) -> list[Note]:
    """Return what the check of the graph found, if it calls for attention."""
    check = getattr(model, "graph_check_", None) if isinstance(model, MarkovField) else None
    if check is None:
        return []
    if check.sound and check.repeats_errors:
        done = "" if model.listeners != "unanswered" else " So it is used only for items that nobody answered."
        remedy = "To see whether the graph helps, compare both results on known labels."
        return [Note(f"{check.describe_errors()}{done}", [remedy], "network")]
    if not check.silent and not check.sound and check.changed > 0:
        problem = f"The graph may not be informative about these labels: {check.describe_doubt()}."
        return [Note(problem, ["Fuse without it, unless known labels show that it helps."], "network")]
    return []


OFTEN_WRONG = "often wrong"
# What remarks on workers mean, of one and of several.
MEANINGS = {
    "uninformative": (
        "tells little: the answers hardly depend on what is right",
        "tell little: their answers hardly depend on what is right",
    ),
    "contrary": ("is right less often than by chance", "are right less often than by chance"),
    "one label": ("gives nearly always the same label", "give nearly always the same label"),
    # No remark of `worker_report`: with many classes, a worker can be so and still tell something.
    OFTEN_WRONG: ("is more often wrong than right", "are more often wrong than right"),
}


def note_workers(model: Any, workers: list[dict[str, Any]], silence_counts: bool) -> list[Note]:
    """Return which workers to talk to. Where silence is an answer, one who says only one label may tell a lot."""
    weight = (
        "Majority vote counts them fully."
        if isinstance(model, MajorityVote)
        else "The fit gives their answers little weight."
    )
    n_all = max(sum(worker["answers"] for worker in workers), 1)
    notes = []
    for remark, (one, several) in MEANINGS.items():
        found = [worker for worker in workers if remark == find_remark(worker)]
        if not found or (silence_counts and remark == "one label"):
            continue
        found.sort(key=lambda worker: -worker["answers"])
        names = ", ".join(to_name(worker["name"], 30) for worker in found[:MOST_NAMES])
        more = f" and {len(found) - MOST_NAMES:,} more" if len(found) > MOST_NAMES else ""
        share = sum(worker["answers"] for worker in found) / n_all
        who = f"{plural(len(found), 'worker')} {one if len(found) == 1 else several} ({names}{more})"
        problem = f"{who}. {share:.1%} of the answers are theirs."
        remedies = ["Look at their answers, and ask how they understood the task."]
        told = [weight] if remark in ("uninformative", "one label") else []
        notes.append(Note(problem, [*remedies, *told], "workers"))
    return notes


def note_falls(model: Any, workers: list[dict[str, Any]]) -> list[Note]:
    """Return whose accuracy falls over time."""
    if not has_order(model.fusion_):
        return []
    drift = find_drift(model.fusion_)
    found = [worker for worker in workers if drift.falls[worker["number"]]]
    if not found:
        return []
    found.sort(key=lambda worker: drift.change[worker["number"]])
    figures = [
        f"{to_name(worker['name'], 30)}: {drift.first[worker['number']]:.0%} to {drift.last[worker['number']]:.0%}"
        for worker in found[:MOST_NAMES]
    ]
    more = f" and {len(found) - MOST_NAMES:,} more" if len(found) > MOST_NAMES else ""
    problem = f"The accuracy of {plural(len(found), 'worker')} falls over time ({', '.join(figures)}{more})."
    return [Note(problem, ["Look at their last answers. They may be tired, or the task may have changed."], "workers")]


def find_remark(worker: dict[str, Any]) -> str:
    """Return the remark on a worker; one who has none is often wrong if the whole interval is below one half."""
    remark = str(worker["remarks"]).partition("; ")[0]  # ids of near-copies may follow, which can be any text
    if remark in MEANINGS or remark == "few answers":
        return remark
    high = worker["accuracy_high"]
    return OFTEN_WRONG if is_number(high) and high < 0.5 else ""


def note_unanswered(subject: Subject) -> list[Note]:
    """Return a note on items that nobody answered."""
    n_silent = int((subject.n_answers == 0).sum())
    if not n_silent or subject.responses.silence_counts:
        return []
    has_neighbours = subject.graph is not None or subject.responses.sequences is not None
    source = "class frequencies and neighbours" if has_neighbours else "class frequencies"
    verb, them = ("has", "it") if n_silent == 1 else ("have", "them")
    problem = f"{plural(n_silent, 'item')} {verb} no answer. What is said of {them} comes from {source} alone."
    return [Note(problem, [f"Have {them} answered, or leave {them} out."], "answers")]


def note_doubtful(subject: Subject) -> list[Note]:
    """Return a note on labels of low confidence, if they are more than a few."""
    n_doubtful = int((subject.confidence < DOUBTFUL).sum())
    if len(subject.classes) < 2 or not n_doubtful or n_doubtful < WORTH_A_NOTE * subject.n_items:
        return []
    verb = "has" if n_doubtful == 1 else "have"
    share = n_doubtful / subject.n_items
    problem = f"{plural(n_doubtful, 'label')} ({share:.1%}) {verb} a confidence below {DOUBTFUL:.0%}."
    if subject.is_sample:
        problem = f"{share:.1%} of the labels have a confidence below {DOUBTFUL:.0%}."
    return [Note(problem, ["Collect more answers for such items, or review those that would teach most."], "review")]


def to_note(message: Message, level: str) -> Note:
    """Return an error or a warning of the package as a note."""
    return Note(say(message.problem), [text for text in map(say, message.remedies) if text], level=level)


def say(part: Any) -> str:
    """Return a part of a message; parameters are named so that both Python and the command line know them."""
    return str(part) if isinstance(part, str) else part.say(spell_parameter) or ""


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
