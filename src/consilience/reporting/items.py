"""Single items: who said what, which are least certain, where fused labels differ from the vote, what to review."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..documents.charts import Table
from ..errors import plural, to_sentence
from ..kernels import Floats
from ..models.majority_vote import MajorityVote
from ..planning.next_items import choose_next_items
from ..results.explanations import explain_row
from .subject import Command, Content, Subject, find_address, spell

# How many items each list shows, and workers for each label.
N_UNCERTAIN, N_DIFFERENT, N_FLOWS, N_REVIEW = 9, 9, 4, 50
MOST_WORKERS, MOST_LABELS, MOST_PROBABLE = 6, 6, 3
# Words that are shown on either side of an item.
AROUND = 10
# Labels of at least this confidence are not called uncertain.
SURE = 0.95
# The file that the page downloads. Labels that were known before are in it too, if there are no more than so many.
GOLD, MOST_KNOWN = "gold.csv", 10_000


class Said(NamedTuple):
    """A label and the workers who gave it."""

    label: str
    n_workers: int
    workers: list[str]
    more: int


class Item(NamedTuple):
    """An item as it is shown."""

    name: str
    label: str
    confidence: float | None  # None if it is not told
    probable: list[tuple[str, float]]  # the most probable classes, and the label; none if confidences are not told
    said: list[Said]
    content: Content | None
    vote: str  # the classes with most votes
    context: list[tuple[str, bool]]  # words around it, and whether each is the item itself
    address: str = ""  # where its id leads to, if that is an address
    rival: str = ""  # what `vote` is that of
    why: tuple[tuple[str, str, str, str], ...] = ()  # what had a say, line by line: who, what, how much, in a word


def describe_item(subject: Subject, item: int) -> Item:
    """Return an item with its probabilities and answers."""
    posterior = subject.posterior[item]
    label = int(subject.codes[item])
    order = np.argsort(-posterior, kind="stable")[:MOST_PROBABLE].tolist()
    shown = [k for k in order if posterior[k] >= 0.005 or k == label]
    shown += [] if label in shown else [label]
    told = subject.told_confidence
    probable = [] if told is None else [(subject.classes[k], float(posterior[k])) for k in shown]
    voted = np.flatnonzero(subject.vote[item] >= subject.vote[item].max() - 1e-12)
    return Item(
        subject.name_of(item),
        subject.classes[label],
        None if told is None else float(told[item]),
        probable,
        list_said(subject, item),
        subject.show(item),
        ", ".join(subject.classes[k] for k in voted[:3].tolist()),
        context_of(subject, item),
        find_address(subject.key_of(item)[0]),
        "mean of the probabilities" if subject.responses.is_soft else "majority vote",
    )


def context_of(subject: Subject, item: int) -> list[tuple[str, bool]]:
    """Return the texts around an item of a sequence, and whether each is the item itself; none if some are unknown."""
    if subject.responses.sequences is None or subject.content is None:
        return []
    start, stop = subject.bounds_of(subject.sequence_of(item))
    words = []
    for near in range(max(start, item - AROUND), min(stop, item + AROUND + 1)):
        shown = subject.show(near)
        if shown is None or shown.picture:
            return []
        words.append((shown.text, near == item))
    return words


def list_said(subject: Subject, item: int) -> list[Said]:
    """Return the labels that workers gave to an item, the most frequent first."""
    r = subject.responses
    answers = slice(int(r.offsets[item]), int(r.offsets[item + 1]))
    worker, label = r.worker[answers], r.label[answers]
    found = []
    for code in np.unique(label).tolist():
        who = worker[label == code].tolist()
        names = [subject.workers[w] for w in who[:MOST_WORKERS]]
        found.append(Said(subject.labels[code], len(who), names, len(who) - len(names)))
    found.sort(key=lambda said: -said.n_workers)
    if len(found) <= MOST_LABELS:
        return found
    rest = found[MOST_LABELS - 1 :]
    n_workers = sum(said.n_workers for said in rest)
    return [*found[: MOST_LABELS - 1], Said(f"{len(rest):,} other labels", n_workers, [], 0)]


# Why labels need not be the most probable classes, by the rule.
BEHIND = {
    "sequence": "the labels of a sequence are chosen together, so that they fit each other",
    "median": "labels are medians, which are the nearest to the truth on average",
}


class Uncertain(NamedTuple):
    """The items with the lowest confidence.

    Attributes
    ----------
    items : list of Item
        The items.
    n_behind : int
        How many of them have a label that is not the most probable class.
    behind : str
        Why that can be.
    one_class : bool
        Whether there is only one class.
    """

    items: list[Item]
    n_behind: int
    behind: str
    one_class: bool


def list_uncertain(subject: Subject) -> Uncertain | None:
    """Return the items with the lowest confidence among those with answers; those without if there are no others.

    None if confidences are not told.
    """
    if subject.told_confidence is None:
        return None
    doubtful = ~subject.is_known & (subject.confidence < SURE) & (len(subject.classes) > 1)
    told = doubtful & subject.is_answered
    rows = np.flatnonzero(told if told.any() else doubtful)
    chosen = first(rows, subject.confidence[rows], N_UNCERTAIN)
    found = [describe_item(subject, item)._replace(why=list_reasons(subject, item)) for item in chosen]
    n_behind = sum(float(subject.confidence[i]) < item.probable[0][1] for i, item in zip(chosen, found, strict=True))
    behind = BEHIND.get(subject.fusion.labels.rule, "")
    return Uncertain(found, n_behind, behind, len(subject.classes) < 2)


def list_reasons(subject: Subject, item: int) -> tuple[tuple[str, str, str, str], ...]:
    """Return what had a say in the label of an item."""
    return tuple(explain_row(subject.model.recipe(), subject.fusion, item).list_rows())


def first(rows: NDArray[np.int64], size: Floats, n: int) -> list[int]:
    """Return the rows with the smallest sizes, in order; of equal sizes the first."""
    return [int(row) for row in rows[np.argsort(size, kind="stable")[:n]]]


class Difference(NamedTuple):
    """Where fused labels differ from majority vote."""

    words: str
    test: str  # which of the two predicts hidden answers better, and how often such a verdict was right
    flows: Table  # how many items majority vote gives to one class, and the fit to another
    examples: list[Item]


def describe_difference(subject: Subject, n_fewer: int) -> str:
    """Return how many labels differ from majority vote: those with fewer votes than another, and the tied ones.

    `Comparison.n_differ` has a part of the ties, since majority vote draws lots there.
    """
    compared, soft = subject.fusion.comparison, subject.responses.is_soft
    n_differ = n_fewer if compared is None else max(compared.n_differ, n_fewer)
    if not n_differ:
        most = "is that of the mean of the probabilities" if soft else "has most votes, or as many as another one"
        return f"Every fused label {most}."
    rival = "the mean of the probabilities" if soft else "majority vote"
    differ = f"{n_differ:,} fused {'label differs' if n_differ == 1 else 'labels differ'} from {rival}"
    if soft:
        return f"{differ}."
    tied = "votes are tied" if subject.is_voted.all() else "votes are tied, or there are none"
    if not n_fewer:
        return f"{differ}: {tied}."
    fewer = f"{n_fewer:,} {'has' if n_fewer == 1 else 'have'} fewer votes than another class"
    return f"{differ}: {fewer}{'' if n_differ == n_fewer else f', elsewhere {tied}'}."


def compare_labels(subject: Subject) -> Difference | None:
    """Return where another class than the fused label has most votes, with the clearest examples; None for a vote."""
    if isinstance(subject.model, MajorityVote):
        return None
    compared = subject.fusion.comparison
    rows = np.flatnonzero(subject.differs)
    n_classes = len(subject.classes)
    voted = subject.vote[rows].argmax(axis=1) if len(rows) else np.empty(0, np.int64)
    pairs, counts = np.unique(voted * n_classes + subject.codes[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    flows = [
        (f"{subject.classes[pairs[n] // n_classes]} → {subject.classes[pairs[n] % n_classes]}", f"{counts[n]:,}")
        for n in order[:N_FLOWS]
    ]
    if len(order) > N_FLOWS:
        flows.append((plural(len(order) - N_FLOWS, "other kind"), f"{counts[order[N_FLOWS:]].sum():,}"))
    against, rival = ("mean", "Mean") if subject.responses.is_soft else ("majority", "Vote")
    table = Table(f"Labels that were changed against the {against}", flows, (f"{rival} → fused label", "Items"))
    examples = [describe_item(subject, item) for item in first(rows, -subject.confidence[rows], N_DIFFERENT)]
    test = [] if compared is None else [compared.describe_test()]
    test += [compared.describe_record()] if compared is not None and compared.has_record else []
    return Difference(describe_difference(subject, len(rows)), " ".join(map(to_sentence, test)), table, examples)


class NextRun(NamedTuple):
    """How to fuse again with what a reviewer labelled.

    Attributes
    ----------
    command : str
        For the shell; empty where nothing is known of the command that was given.
    python : str
        For Python; empty where the command that was given is known.
    gives_known : bool
        Whether files of known labels are given beside gold.csv.
    """

    command: str
    python: str
    gives_known: bool


def plan_next_run(command: Command | None, argument: str, holds_known: bool) -> NextRun:
    """Return how to fuse again.

    Parameters
    ----------
    command : Command or None
        The command that fused the answers; None if there was none, or nothing is known of it.
    argument : str
        What the answers are called in Python.
    holds_known : bool
        Whether gold.csv holds the labels that were known before. If not, their files are given beside it.

    Examples
    --------
    >>> plan_next_run(Command(("update", "crowd.model"), (), ()), "answers", holds_known=False)
    NextRun(command='consilience update crowd.model --gold gold.csv', python='', gives_known=False)
    """
    if command is None:
        known = f'"{GOLD}"' if holds_known else f'["known.csv", "{GOLD}"]'
        return NextRun("", f"fused = consilience.fuse({argument}, gold={known})", not holds_known)
    before = command.gold or ([command.source] if command.source else [])
    files = [GOLD] if holds_known and not command.keeps else [*before, GOLD]
    return NextRun(command.write(files), "", not holds_known and bool(before))


class Card(NamedTuple):
    """An item to review."""

    item: Item
    is_random: bool  # whether it was drawn at random


class Review(NamedTuple):
    """The items to review, for the page and for its script."""

    cards: list[Card]
    script: dict[str, object]
    n_known: int  # labels that were known before
    holds_known: bool  # whether gold.csv holds these too
    n_nameless: int  # items that cannot be reviewed, since gold.csv cannot name them
    next_run: NextRun
    asks: bool  # whether workers can be asked more
    tells: bool  # whether confidences are told


def prepare_review(subject: Subject) -> Review | None:
    """Return the items to review, with what a person sees and what is written to gold.csv; None if there are none."""
    classes, sequences = subject.fusion.names.classes, subject.responses.sequences
    if not subject.task.reviewed or len(classes) < 2 or find_nameless(classes).any():
        return None
    nameless = find_nameless(subject.responses.items if sequences is None else sequences.ids)
    nameless = nameless if sequences is None else nameless[sequences.of_items()]
    items, at_random, _ = choose_next_items(subject.fusion, N_REVIEW)
    listed = zip(items.tolist(), at_random.tolist(), strict=True)
    chosen = [(item, drawn) for item, drawn in listed if not nameless[item]]
    if not chosen:
        return None
    data: dict[str, object] = {
        "columns": ["item"] if sequences is None else list(subject.task.places),
        "items": [[*subject.key_of(item), drawn] for item, drawn in chosen],
        "classes": [spell(name) for name in classes.tolist()],
    }
    # The same list and classes have the same name in the browser's storage, so that work survives a new report.
    data["id"] = hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]
    n_known = int(subject.is_known.sum())
    holds_known = n_known <= MOST_KNOWN and not nameless[subject.is_known].any()
    data["known"] = list_known(subject) if holds_known else []
    cards = [Card(describe_item(subject, item), drawn) for item, drawn in chosen]
    asks, tells = subject.fusion.source_kind != "functions", subject.told_confidence is not None
    next_run = plan_next_run(subject.command, subject.task.argument, holds_known)
    return Review(cards, {"review": data}, n_known, holds_known, int(nameless.sum()), next_run, asks, tells)


def find_nameless(ids: Values) -> NDArray[np.bool_]:
    """Tell which ids gold.csv cannot hold: empty text, and text that another id has too, such as 1 and "1"."""
    texts = [str(each) for each in ids.tolist()]
    counts = Counter(texts)
    return np.array([text == "" or counts[text] > 1 for text in texts])


def list_known(subject: Subject) -> list[list[object]]:
    """Return the known labels: what identifies the item, the class, and whether it was drawn at random."""
    if subject.gold is None:
        return []
    codes, drawn = subject.gold.codes.tolist(), subject.gold.judging.tolist()
    return [[*subject.key_of(item), codes[item], drawn[item]] for item in np.flatnonzero(subject.is_known).tolist()]
