"""Whether the answers are what they seem: classes, columns, silence, and items that nobody answered."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import numpy as np

from ..answers.slips import doubt_silence
from ..errors import Sentence, listing, plural, shorten
from ..results.findings import Finding
from .subject import Subject

# With fewer answers, single answers of workers and one label for all of them are no surprise.
FEW = 20


def find_silence(subject: Subject) -> Iterator[Finding]:
    """Workers answer as labelling functions do, and their silence is ignored."""
    n_stored = None if subject.fusion.source is None else subject.fusion.labelled.n_items
    warning = doubt_silence(subject.sample.responses, n_stored)
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
    verb = "is no class" if len(left_out) == 1 else "are no classes"
    yield Finding(
        f"Nobody said {listing(unsaid)}, which is among the classes, while {listing(left_out)} "
        f"({plural(n_lost, 'answer')}) {verb}.",
        tuple(f"Did you mean {label!r} by {name!r}?" for name, label in list(close.items())[:3]),
        keyword="classes",
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
