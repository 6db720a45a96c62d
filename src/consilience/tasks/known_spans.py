"""Spans that are known, in the texts of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.frames import open_frame
from ..answers.item_tables import read_numbers
from ..answers.tables import Table
from ..answers.vocabulary import Values, encode_in_order_of_appearance, lookup, objects, to_column, to_values
from ..errors import DataWarning, InputError, listing, plural, shorten, warn
from .span_tables import SPAN_ROLES, encode_types, find_marked, read_offsets, read_types
from .spans import FUSED, Marks, Spans, check_offsets, cut_texts, pick_marks, sort_marks

# Documents without a text have no known length.
_LONGEST = np.iinfo(np.int64).max


def read_sole_spans(given: Any, name: str, documents: Values, texts: list[str], fused: bool = False) -> Spans:
    """Return the spans of a table that holds those of one person, or fused ones, as known spans.

    Parameters
    ----------
    given : table
        Columns document, start, end and label, as `find_span_columns` finds them. A row without start and end names a
        document that holds no span.
    name : str
        What messages call a table that has no name of its own.
    documents, texts
        Ids and texts of documents. Other documents of the table get an empty text.
    fused : bool
        Whether fused spans are wanted, where a table has these beside the spans of workers.
    """
    table = _pick_worker(open_frame(given, name), fused)
    names = {role: table.need(role) for role in SPAN_ROLES}
    said = table.values(names["document"], "Say which document each span is in.")
    document, own = encode_in_order_of_appearance(said)
    place = lookup(documents, to_column(own))
    contents = [texts[n] if n >= 0 else "" for n in place.tolist()]
    rows = find_marked(table, names["start"], names["end"])
    code, labels = encode_types(read_types(table, names, rows))
    start, end = (read_offsets(table, names[role], rows) for role in ("start", "end"))
    confidence = read_numbers(table, "confidence")[rows] if "confidence" in table.names else None
    marks = Marks(document.astype(np.int64)[rows], np.zeros(len(rows), np.int64), start, end, code, confidence)
    lengths = np.array([len(text) or _LONGEST for text in contents], np.int64)
    check_offsets(marks, lengths, own)
    _check_stretches(table, rows, marks, contents)
    _, first = np.unique(np.stack(marks[:5]), axis=1, return_index=True)
    nobody, nothing = np.empty((0, 2), np.int64), pick_marks(marks, np.empty(0, np.int64))
    every = np.arange(len(own))
    return Spans(own, contents, objects([]), labels, nothing, nobody, None, pick_marks(marks, first), every)


def _pick_worker(table: Table, fused: bool) -> Table:
    """Return a table of spans, which must be of one worker; of fused spans, if these are wanted and there are any."""
    name = table.find_usual("worker")
    if name is None:
        return table
    column = table.values(name, "Say who marked each span.")
    workers = encode_in_order_of_appearance(column)[1].tolist()
    if fused and FUSED in workers:
        return table.keep(np.flatnonzero(lookup(objects([FUSED]), column) >= 0))
    if len(workers) > 1:
        raise InputError(
            f"{table.name} holds the spans of {plural(len(workers), 'worker')}: {listing(workers)}.",
            "Give the spans of one.",
        )
    return table


def _check_stretches(table: Table, rows: NDArray[np.int64], marks: Marks, texts: list[str]) -> None:
    """Raise an error if a table says what spans read, and that is neither so nor the whole text of the document."""
    name = table.find_usual("text")
    if name is None:
        return
    said, found = to_values(table.read(name).take(rows)).tolist(), cut_texts(texts, marks)
    for n, (words, stretch, document) in enumerate(zip(said, found, marks.document.tolist(), strict=True)):
        whole = texts[document]
        if whole and isinstance(words, str) and words.strip() not in (stretch.strip(), whole.strip(), ""):
            raise InputError(
                f"The span from {marks.start[n]} to {marks.end[n]} at {table.locate(int(rows[n]))} reads "
                f"{shorten(words)} in {table.name}, and {shorten(stretch)} in the text of the document.",
                "Offsets count characters from 0, and the end is excluded. Check that both have the same texts.",
            )


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
