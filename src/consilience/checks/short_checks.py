"""The short checks: whether labels can be believed, whether answers are what they seem, and which workers to look at.

Of answers, these are classes, columns, silence, and items that nobody answered. Workers are looked at who copy, who
tell little, and who are often wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import to_values
from ..answers.slips import CHANCE, doubt_silence, find_sets, find_sign
from ..answers.tagging import SCHEMES, looks_tagged, split_tag
from ..errors import ConsilienceWarning, Python, Sentence, join_names, listing, plural, shorten
from ..results.comparison import KEPT, Comparison
from ..results.findings import Finding, Words
from ..results.source_kinds import KINDS
from ..results.worker_report import MOSTLY_CALLS, Suspected, describe_answers
from .comparison import are_soft, share_kept
from .subject import Subject

# Where to find the items for which a classifier calls for another label.
DOUBTED = Python("disagreements()", "FILE")
VOTE = Python("model='majority'", "majority")
OTHER_WAYS_WITH_SOFT_VOTES: tuple[Words, ...] = (
    Sentence("These are soft votes. Use {model}, which takes their mean.", model=VOTE),
    "Or fuse the most probable label of each vote.",
)
# Labels below this confidence are called doubtful, and are worth telling from this share of all.
DOUBTFUL, WORTH_TELLING = 0.7, 0.01
# With fewer answers, single answers of workers and one label for all of them are no surprise.
FEW = 20
OFTEN_WRONG = "often wrong"
# What remarks on workers mean, of one and of several.
MEANINGS = {
    "uninformative": (
        "tells little, since the answers hardly depend on what is right",
        "tell little, since their answers hardly depend on what is right",
    ),
    "contrary": ("is right less often than by chance", "are right less often than by chance"),
    "one label": ("gives nearly always the same label", "give nearly always the same label"),
    MOSTLY_CALLS: ("mostly calls one class another", "mostly call one class another"),
    # No remark of `worker_report`: with many classes, a worker can be so and still tell something.
    OFTEN_WRONG: ("is more often wrong than right", "are more often wrong than right"),
}


def find_unchecked(subject: Subject) -> Iterator[Finding]:
    """Hardly any item has answers of two workers, and nothing else checks them."""
    if subject.is_checked:
        return
    r = subject.sample.responses
    lack = "All answers come from one worker"
    if r.n_workers > 1:
        lack = f"{'Nearly every' if r.have_several_workers().any() else 'Each'} item has only one answer"
    yield Finding(
        f"{lack}: nothing checks them. The labels are little more than these answers, and neither their confidence nor "
        "the accuracy of workers can be told: these are left empty.",
        (
            "Have at least some of the items answered by several workers.",
            Sentence("Or give known labels with {gold}."),
        ),
        "bad",
    )


def find_untested(subject: Subject) -> Iterator[Finding]:
    """There are too few answers to test how sure the labels are."""
    if subject.fusion.labels.shown or not subject.is_checked:
        return
    guidance = subject.fusion.guidance
    remedies: tuple[Words, ...] = ("Collect more answers.", Sentence("Or give known labels with {gold}."))
    if guidance is not None and guidance.findings.used:
        look = Sentence("Look at items that the classifier doubts: {disagreements}.", disagreements=DOUBTED)
        remedies = (look, *remedies)
    yield Finding(
        "There are too few answers to test how sure the labels are: their confidence is left empty.",
        remedies,
    )


def find_noise(subject: Subject) -> Iterator[Finding]:
    """Workers agree no more than by chance, and hidden answers cannot be predicted."""
    comparison = subject.comparison
    if comparison is not None and comparison.by_chance and subject.is_checked:
        yield Finding(
            f"These answers show no signal: the workers agree no more than by chance ({comparison.alpha_name} "
            f"{comparison.alpha:.2f}, 95% interval {comparison.alpha_low:.2f} to {comparison.alpha_high:.2f}), and "
            "hidden answers could not be predicted from the others. Do not rely on the labels.",
            ("Check that item, worker and label are the right columns, and that the workers understood the task.",),
            "bad",
            category=ConsilienceWarning,
        )


def find_collapse(subject: Subject) -> Iterator[Finding]:
    """One class takes the items of others."""
    comparison, r = subject.comparison, subject.sample.responses
    if comparison is None or not comparison.collapsed or comparison.by_chance or not subject.is_checked:
        return
    remedies: list[Words] = [
        Sentence("Give known labels with {gold}."),
        Sentence("If you know how frequent the classes are, give {prior}."),
        Sentence("Or use the vote, with {model}.", model=VOTE),
    ]
    if are_soft(r):
        remedies[-1:] = OTHER_WAYS_WITH_SOFT_VOTES
    elif not r.silence_counts:
        silence = Sentence("If workers only answer where they see something, say so with {abstain}.", abstain="answer")
        remedies.insert(0, silence)
    yield Finding(
        f"{describe_collapse(subject, comparison)} This can be correct, but it is typical of a fit that "
        "has collapsed. Check some of these items by hand before you use the labels.",
        tuple(remedies),
        "bad",
        category=ConsilienceWarning,
    )


def describe_collapse(subject: Subject, comparison: Comparison) -> str:
    """Return in words which class takes the items of others."""
    classes, model, differences = subject.fusion.names.classes, subject.fusion.model, subject.differences
    assert differences is not None
    if comparison.kept_share < KEPT:
        kept = share_kept(differences.unanimous, differences.kept)
        lost = shorten(classes[[np.nanargmin(kept)]].tolist()[0])
        return (
            f"Where all workers who answered an item agree on {lost}, {model} gives another label to "
            f"{1 - np.nanmin(kept):.0%} of the items."
        )
    top = shorten(classes[[differences.labels.argmax()]].tolist()[0])
    return (
        f"{model} gives {top} to {comparison.top_share:.1%} of the items, and {comparison.rival} to "
        f"{comparison.vote_top_share:.1%}."
    )


def find_no_gain(subject: Subject) -> Iterator[Finding]:
    """Hidden answers are not predicted better than by majority vote."""
    compared, r = subject.comparison, subject.sample.responses
    if compared is None or compared.better or not compared.n_differ or compared.untested:
        return
    if not subject.makes_sense or not subject.is_checked or r.silence_counts:
        return
    remedies: tuple[Words, ...] = ("Collect more answers.",)
    if compared.verdict == "worse":
        remedies = OTHER_WAYS_WITH_SOFT_VOTES if are_soft(r) else (Sentence("Use {model}.", model=VOTE),)
    if subject.sample.gold is None:
        remedies += ("To find out which is better, compare both with some known labels (evaluate).",)
    yield Finding(
        describe_no_gain(compared, subject.fusion.model),
        remedies,
        "bad" if compared.verdict == "worse" else "care",
        # Better probabilities are no reason for a warning, even if labels are no better.
        category=None if compared.predicts and compared.informed else ConsilienceWarning,
    )


def describe_no_gain(comparison: Comparison, model: str) -> str:
    """Return in words why a fit is not thought to be better than the vote."""
    if comparison.verdict == "worse":
        return (
            f"{model} predicts hidden answers worse than {comparison.rival} does ({comparison.describe_gain()}). "
            f"{name_rival(comparison)} may be better."
        )
    if comparison.predicts:
        return (
            f"{model} predicts hidden answers better than {comparison.rival} does ({comparison.describe_gain()}), but "
            f"{comparison.describe_lack()}. Nothing shows that its labels are better."
        )
    return (
        f"There is no clear difference between {model} and {comparison.rival} in predicting hidden answers "
        f"({comparison.describe_gain()}). {name_rival(comparison)} may be as good, or better."
    )


def name_rival(comparison: Comparison) -> str:
    """Return what a fit is compared with, at the beginning of a sentence."""
    return "The mean" if comparison.soft else "The vote"


def find_unsettled(subject: Subject) -> Iterator[Finding]:
    """The fit stopped before it settled."""
    course, n_responses = subject.fusion.course, subject.sample.responses.n_responses
    warning = None if course.converged else subject.recipe.explain_stop(course.trace, n_responses)
    if warning is not None:
        yield Finding.told(warning)


def find_doubtful(subject: Subject) -> Iterator[Finding]:
    """More than a few labels have a low confidence."""
    labels = subject.labels
    n_doubtful = int((labels.confidence < DOUBTFUL).sum())
    share = n_doubtful / labels.n_items
    if len(labels.classes) < 2 or not n_doubtful or share < WORTH_TELLING or not subject.makes_sense:
        return
    verb, judged = "has" if n_doubtful == 1 else "have", subject.fusion.task.judged
    problem = f"{plural(n_doubtful, judged)} ({share:.1%}) {verb} a confidence below {DOUBTFUL:.0%}."
    remedy = "Collect more answers for such items, or review those that would teach most."
    yield Finding(problem, (remedy,), category=None)


def find_silence(subject: Subject) -> Iterator[Finding]:
    """Workers answer as labelling functions do, and their silence is ignored."""
    warning = doubt_silence(subject.sample.responses)
    if warning is not None:
        yield Finding.told(warning)


def find_unsaid(subject: Subject) -> Iterator[Finding]:
    """A class that nobody said may be a label that is no class."""
    r = subject.sample.responses
    unsaid = r.classes[r.label_of_class < 0].tolist()
    left_out = r.labels[r.class_of_label < 0].tolist()
    if not unsaid or not left_out or r.silence_counts:
        return
    texts = {str(label).strip().lower(): label for label in left_out}
    close = {
        name: texts[found]
        for name in unsaid
        for found in difflib.get_close_matches(str(name).strip().lower(), texts, n=1)
    }
    n_lost = int((r.class_of_label[r.label] < 0).sum())
    are, verb = "is" if len(unsaid) == 1 else "are", "is no class" if len(left_out) == 1 else "are no classes"
    yield Finding(
        f"Nobody said {listing(unsaid)}, which {are} among the classes, while {listing(left_out)} "
        f"({plural(n_lost, 'answer')}) {verb}.",
        tuple(f"Did you mean {label!r} by {name!r}?" for name, label in list(close.items())[:3]),
        keyword="classes",
    )


def find_set_classes(subject: Subject) -> Iterator[Finding]:
    """Classes are sets of labels."""
    sets = find_sets(subject.sample.responses.classes.tolist())
    if sets:
        yield Finding(
            f"Some classes are sets of labels: {listing(sets)}. Each set is taken for a class of its own, unlike any "
            "other.",
            (Sentence("Fuse them as sets of tags, with {separator}.", separator=find_sign(sets)),),
            "bad",
            keyword="label",
        )


def find_wrong_columns(subject: Subject) -> Iterator[Finding]:
    """The column of labels or of workers is probably another one."""
    r = subject.sample.responses
    if r.n_responses < FEW or not {"label", "worker"} <= r.columns.keys():
        return
    if r.n_labels == 1 and not r.silence_counts:
        yield Finding(
            f"All answers in column {r.columns['label']!r} are {shorten(r.labels[0])}: there is nothing to fuse.",
            (Sentence("If another column holds the answers, name it with {label}."),),
            keyword="label",
        )
    elif r.n_workers == r.n_responses:
        yield Finding(
            f"Each worker in column {r.columns['worker']!r} gave one answer: nothing can be learned about single "
            "workers.",
            (Sentence("If another column holds the workers, name it with {worker}."),),
            keyword="worker",
        )


def find_unanswered(subject: Subject) -> Iterator[Finding]:
    """Nobody answered some of the items."""
    r = subject.sample.responses
    n_silent = r.n_items - int(np.count_nonzero(np.diff(r.offsets)))
    if not n_silent or r.silence_counts:
        return
    has_neighbours = subject.graph is not None or r.sequences is not None
    source = "class frequencies and neighbours" if has_neighbours else "class frequencies"
    verb, them = ("has", "it") if n_silent == 1 else ("have", "them")
    problem = f"{plural(n_silent, 'item')} {verb} no answer. What is said of {them} comes from {source} alone."
    yield Finding(problem, (f"Have {them} answered, or leave {them} out.",), category=None)


def find_copies(subject: Subject) -> Iterator[Finding]:
    """Workers seem to copy each other, or a common source."""
    found = subject.fusion
    if not found.copies:
        return
    groups = [f"({listing(found.names.workers[group].tolist())})" for group in found.copies]
    counts = "Each of them counts fully."
    remedies: list[Words] = [
        Sentence("See the column group of {workers_report}.", workers_report=Python("worker_report()")),
        "fuse lets each group count as one worker.",
    ]
    if found.copies_count_once:
        each = "They count as one worker" if len(groups) == 1 else "Each group counts as one worker"
        counts = f"{each} on items that several of them answered."
        remedies[1] = (
            f"If you know that they worked independently, use {found.model}().fit in Python, which counts each worker "
            "fully."
        )
    yield Finding(
        f"{plural(sum(map(len, found.copies)), 'worker')} seem to copy each other, or a common source: "
        f"{join_names(groups)}. They agree more often than independent workers of their accuracy "
        f"would. {counts}",
        tuple(remedies),
    )


def find_one_type(subject: Subject) -> Iterator[Finding]:
    """Workers mark one type of span only, while others mark more."""
    r = subject.sample.responses
    if not looks_tagged(r.labels) or "O" not in r.labels.tolist():
        return
    types, counts = count_types(r)
    by_others = counts.sum(axis=0) - counts
    n_marks, top = counts.sum(axis=1), counts.argmax(axis=1)
    workers = np.arange(r.n_workers)
    share = by_others[workers, top] / np.maximum(by_others.sum(axis=1), 1)
    # One who draws at random from what others mark would hardly draw one type so often.
    alone = np.flatnonzero((counts[workers, top] == n_marks) & (n_marks > 0) & (share**n_marks < CHANCE))
    if not len(alone):
        return
    named = zip(r.workers[alone].tolist(), top[alone].tolist(), strict=True)
    who = join_names(f"{shorten(worker)}: {types[code]}" for worker, code in named)
    marks = "marks" if len(alone) == 1 else "mark"
    yield Finding(
        f"{plural(len(alone), 'worker')} {marks} only one type of span ({who}), while others mark more. Tokens that "
        "they left are counted as 'O'.",
        ("Check which types they were asked to mark.",),
        category=None,
    )


def count_types(r: Answers) -> tuple[list[str], NDArray[np.int64]]:
    """Return the types of tags, and how many tags of each every worker gave that may begin a span, (M, types)."""
    tags = [split_tag(label, SCHEMES["bio"]) or ("O", "") for label in r.labels.tolist()]
    first = "B" if any(letter == "B" for letter, _ in tags) else "I"
    types = sorted({kind for letter, kind in tags if letter != "O"})
    place = np.array([types.index(kind) if letter == first else -1 for letter, kind in tags])[r.label]
    marks = place >= 0
    counts = np.bincount(r.worker[marks] * len(types) + place[marks], minlength=r.n_workers * len(types))
    return types, counts.reshape(r.n_workers, len(types))


def find_poor_workers(subject: Subject) -> Iterator[Finding]:
    """Workers tell little, say nearly always the same, or are often wrong."""
    if not subject.makes_sense:
        return
    found, columns = subject.fusion, describe_answers(subject.fusion)
    answers, high = np.asarray(to_values(columns["answers"])), to_values(columns["accuracy_high"])
    remarks = np.array(to_values(columns["remarks"]).tolist(), object)
    # With many classes, one can be mostly wrong and still tell something. On a scale, so does anyone who is near.
    if found.model == "MajorityVote" or found.learned.kind != "ordinal":
        remarks[(remarks == "") & (np.asarray(high, float) < 0.5)] = OFTEN_WRONG
    is_vote = found.model == "MajorityVote"
    weight = "Majority vote counts them fully." if is_vote else "The fit gives their answers little weight."
    suspected = Suspected.of(found)
    advised = suspected is not None and bool(suspected.accused.any())  # by another finding: every sentence once
    for remark, meaning in MEANINGS.items():
        is_habit = remark == MOSTLY_CALLS
        rows = np.flatnonzero([each.startswith(f"{remark} ") if is_habit else each == remark for each in remarks])
        # Where silence is an answer, one who says only one label may tell a lot.
        if not len(rows) or (remark == "one label" and subject.sample.responses.silence_counts):
            continue
        rows, kind = rows[np.argsort(-answers[rows], kind="stable")], KINDS[found.source_kind]
        share = answers[rows].sum() / max(answers.sum(), 1)
        names = [shorten(name) for name in found.names.workers[rows].tolist()]
        names = join_habits(names, remarks[rows].tolist()) if is_habit else names
        who = f"{plural(len(rows), kind.noun)} ({share:.1%} of the answers) {meaning[len(rows) > 1]}"
        told = [weight] if remark in ("uninformative", "one label") else []
        problem = f"{who}: {join_names(names, 'the worker report has all')}."
        advice, advised = [] if advised else [kind.advice], True
        yield Finding(problem, (*advice, *told), category=None)


def join_habits(names: list[str], remarks: list[str]) -> list[str]:
    """Return who mostly calls which class another; the share is told of those who are alone in that.

    >>> join_habits(["'a'", "'b'", "'c'"], ["calls x y (90%)", "calls y x (60%)", "calls x y (70%)"])
    ["'a', 'c' call x y", "'b' calls y x (60%)"]
    """
    alike = dict[str, list[tuple[str, str]]]()
    for name, remark in zip(names, remarks, strict=True):
        alike.setdefault(remark.rpartition(" (")[0], []).append((name, remark))
    joined = []
    for habit, members in alike.items():
        together = f"{join_names(name for name, _ in members)} call {habit.removeprefix('calls ')}"
        joined.append(together if len(members) > 1 else " ".join(members[0]))
    return joined
