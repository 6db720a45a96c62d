"""Spans that are known, in the texts of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, InputError, listing, plural, shorten, warn
from .spans import Marks, Spans, pick_marks, sort_marks
from .vocabulary import Values, lookup, objects, to_column


def add_known(spans: Spans, known: Spans) -> Spans:
    """Return spans, of which some more are known; see `Spans.with_gold`."""
    marks, documents = find_truth(known)
    known = replace(known, documents=known.documents[documents], texts=[known.texts[d] for d in documents.tolist()])
    check_texts(spans, known, lookup(known.documents, to_column(spans.documents)))
    place = lookup(spans.documents, to_column(known.documents))
    if (place < 0).any():
        absent = f"{int((place < 0).sum()):,} of {plural(len(place), 'document')}"
        warn(DataWarning(f"{absent} whose spans are known do not occur here and were left out."))
    again = np.intersect1d(place, spans.gold_documents)
    if len(again):
        raise InputError(
            f"The spans of {plural(len(again), 'document')} are given twice as known, such as "
            f"{shorten(spans.documents[again[0]])}.",
            "Give the known spans of a document once.",
            keyword="gold",
        )
    names = sorted({*map(str, spans.labels.tolist()), *map(str, known.labels.tolist())})
    here = np.full(int(documents.max(initial=-1)) + 1, -1, np.int64)
    here[documents] = place
    found = renumber(pick_marks(marks, np.flatnonzero(here[marks.document] >= 0)), here, known.labels, names)
    found = found._replace(worker=np.zeros(len(found.start), np.int64), confidence=None)
    everywhere = np.arange(len(spans.documents))
    if spans.gold is not None:
        before = renumber(spans.gold, everywhere, spans.labels, names)
        found = Marks(*map(np.append, before[:-1], found[:-1]))  # type: ignore[arg-type]
    return replace(
        spans,
        labels=objects(names),
        marks=renumber(spans.marks, everywhere, spans.labels, names),
        gold=sort_marks(found),
        gold_documents=np.union1d(spans.gold_documents, place[place >= 0]),
    )


def find_truth(gold: Spans) -> tuple[Marks, NDArray[np.int64]]:
    """Return the known spans, and the documents whose spans are known: those of one worker, if nothing else is."""
    if gold.gold is not None:
        return gold.gold, gold.gold_documents
    if len(gold.workers) == 1 and len(gold.readings):
        return gold.marks, np.unique(gold.readings[:, 0])
    raise InputError(
        f"No spans are known: there are those of {plural(len(gold.workers), 'worker')}, and none that are known.",
        "Give a Spans with gold, or with one worker.",
        keyword="gold",
    )


def check_texts(found: Spans, gold: Spans, place: NDArray[np.int64]) -> None:
    """Raise an error if no document is in both, or if a document has different texts."""
    both = np.flatnonzero(place >= 0)
    if not len(both):
        raise InputError(
            f"No document is in both: the spans are of {listing(found.documents.tolist(), 3)}, those known of "
            f"{listing(gold.documents.tolist(), 3)}.",
            "Check that both use the same ids.",
        )
    odd = [row for row in both.tolist() if found.texts[row] != gold.texts[place[row]]]
    if odd:
        raise InputError(
            f"In {plural(len(odd), 'document')}, such as {shorten(found.documents[odd[0]])}, the text is not the one "
            "whose spans are known.",
            "Give both the same texts.",
        )


def renumber(marks: Marks, place: NDArray[np.int64], labels: Values, names: list[str]) -> Marks:
    """Return spans with documents and types numbered as on the other side."""
    code = np.array([names.index(str(label)) for label in labels.tolist()], np.int64)
    return marks._replace(document=place[marks.document], label=code[marks.label] if len(code) else marks.label)
