"""Spans from tables, one row per span: those of workers, and those that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..answers.columns import (
    Column,
    Indices,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    join_columns,
    lookup,
    objects,
    spell_surrogates,
    split_repeated,
    to_column,
    to_values,
)
from ..answers.item_tables import read_numbers
from ..answers.tables import SPAN_ROLES, Table, is_table, open_frame
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten, warn_of
from .texts import FUSED, MarkedTexts, Marks, check_offsets, cut_texts, pick_marks, sort_marks

Texts = TypeVar("Texts", bound=MarkedTexts)
Names = Mapping[str, str | None]
# The parameter that names the column of each role.
_PARAMETERS = {"document": "document", "worker": "worker", "start": "start", "end": "end", "type": "label"}
# Documents without a text have no known length.
_LONGEST = np.iinfo(np.int64).max


class SpanRows(NamedTuple):
    """What rows of a table say of spans, in columns."""

    document: Indices
    start: Indices
    end: Indices
    types: list[str]


def read_span_table(spans: object, texts: object, readings: object, gold: object, names: Names) -> MarkedTexts:
    """Return the spans of a table; see `Spans.from_frame`."""
    documents, contents = _read_texts(texts, names)
    table = open_frame(spans, "the table of spans")
    table = table.prefer({role: table.need(role, names[role], each) for role, each in _PARAMETERS.items()})
    found = _read_rows(table, _find_documents(table, documents))
    said, read = table.values(table.need("worker"), "Say who marked each span."), None
    if is_table(readings):
        read = open_frame(readings, "the table of readings").prefer(names)
        said = join_columns(said, read.values(read.need("worker"), "Say who read each document."))
    elif not (isinstance(readings, str) and readings in ("marked", "all")):
        raise parameter_error(
            "readings", "Spans.from_frame", "'marked', 'all' or a table of document and worker", readings
        )
    worker_codes, workers = encode_sorted(said)
    worker, n_spans = worker_codes.astype(np.int64), table.n_rows
    known, known_documents = _read_gold(gold, names, documents)
    code, labels = encode_types([*found.types, *known.types])
    marks = Marks(*found[:1], worker[:n_spans], *found[1:3], code[:n_spans])
    known_marks = Marks(*known[:1], np.zeros(len(known.start), np.int64), *known[1:3], code[n_spans:])
    lengths = np.array([len(text) for text in contents], np.int64)
    for each in (marks, known_marks):
        check_offsets(each, lengths, documents)
    pairs = np.stack([marks.document, marks.worker], axis=1)
    if read is not None:
        pairs = np.concatenate([pairs, np.stack([_find_documents(read, documents), worker[n_spans:]], 1)])
    elif readings == "all":
        every = np.arange(len(documents) * len(workers))
        pairs = np.stack(np.divmod(every, max(1, len(workers))), axis=1)
    return MarkedTexts(
        documents,
        contents,
        workers,
        labels,
        drop_repeated(marks),
        np.unique(pairs, axis=0),
        None,
        None if gold is None else drop_repeated(known_marks),
        known_documents,
        backend=table.backend,
    )


def find_span_columns(given: object) -> dict[str, str] | None:
    """Return the columns of document, start, end and type of a table of spans; None for anything else.

    A table with positions is one of tokens.

    >>> find_span_columns({"doc": [1], "start": [0], "end": [3], "label": ["PER"]})
    {'document': 'doc', 'start': 'start', 'end': 'end', 'type': 'label'}
    >>> find_span_columns({"sequence": [1], "position": [0], "label": ["O"]}), find_span_columns({"start": "PER"})
    (None, None)
    """
    if not is_table(given):
        return None
    if isinstance(given, Mapping):
        if not _is_columns(given):
            return None
        return Table(list(given), given.__getitem__, 0, "", "", str).find_spans()
    return open_frame(given).find_spans()


def find_marked(table: Table) -> Indices:
    """Return the rows that hold a span. The others, without start and end, name a document that holds none."""
    start, end = (find_missing(table.read(table.need(role))) for role in ("start", "end"))
    return np.setdiff1d(np.arange(table.n_rows), np.intersect1d(start, end))


def encode_types(types: list[str]) -> tuple[Indices, Values]:
    """Return the code of each type, and the different types, sorted."""
    if not types:
        return np.empty(0, np.int64), objects([])
    codes, labels = encode_sorted(to_column(types, "Types of spans"))
    return codes.astype(np.int64), labels


def drop_repeated(marks: Marks) -> Marks:
    """Return spans in order, each once."""
    ordered = sort_marks(marks)
    columns = np.stack(ordered[:5])
    fresh = np.append(True, (columns[:, 1:] != columns[:, :-1]).any(axis=0))[: columns.shape[1]]
    return pick_marks(ordered, np.flatnonzero(fresh))


def _read_texts(texts: object, names: Names) -> tuple[Values, list[str]]:
    """Return ids and texts of all documents."""
    if isinstance(texts, Mapping) and not _is_columns(texts):
        ids: Column = to_column(list(texts), "Ids of documents")
        contents = list(texts.values())
    else:
        table = open_frame(texts, "the table of texts").prefer(names)
        ids = table.values(table.need("document"), "Give each document its id.")
        contents = to_values(table.values(table.need("text"), "Give each document its text.")).tolist()
    odd = next((text for text in contents if not isinstance(text, str)), None)
    if odd is not None:
        raise InputError(f"Texts must be text. Got {shorten(odd)} instead.", keyword="texts")
    if not contents:
        raise InputError("There are no documents.", "Give at least one text.", keyword="texts")
    distinct, repeated = split_repeated(ids)
    if repeated:
        raise InputError(
            f"{plural(len(repeated), 'document')} have more than one text: {listing(repeated)}.",
            "Give each document its own id.",
            keyword="texts",
        )
    return distinct, contents


def _is_columns(texts: Mapping[Any, Any]) -> bool:
    """Tell a dict of columns from a dict of texts."""
    return bool(texts) and not any(isinstance(values, str) for values in texts.values())


def _find_documents(table: Table, documents: Values) -> Indices:
    """Return the index of the document of each row."""
    name = table.need("document", parameter="document")
    column = table.values(name, "Say which document each row is about.")
    found = lookup(documents, column)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        missing = encode_in_order_of_appearance(column.take(unknown))[1]
        raise InputError(
            f"{plural(len(missing), 'document')} of {table.name} have no text: {listing(missing.tolist())}. The first "
            f"is at {table.locate(int(unknown[0]))}.",
            Sentence("Give their texts with {texts}."),
            keyword="texts",
        )
    return found


def _read_rows(table: Table, document: Indices, rows: Indices | None = None) -> SpanRows:
    """Return the spans of all rows, or of some; `document` is the index of each row's document."""
    start, end = (_read_offsets(table, table.need(role), rows) for role in ("start", "end"))
    name = table.need("type", parameter="label")
    column = table.values(name, "Give each span its type.") if rows is None else table.read(name).take(rows)
    types = [spell_surrogates(str(value)) for value in to_values(column).tolist()]
    return SpanRows(document if rows is None else document[rows], start, end, types)


def _read_offsets(table: Table, name: str, rows: Indices | None) -> Indices:
    """Return where spans begin, or end: all of them, or those of some rows."""
    column = table.values(name, "Say where each span begins and ends.") if rows is None else table.read(name).take(rows)
    values = to_values(column)
    if values.dtype.kind not in "iu":
        odd = [row for row, value in enumerate(values.tolist()) if not _is_whole(value)]
        if odd:
            raise InputError(
                f"Column {name!r} of {table.name} must hold whole numbers. Got {shorten(values[odd[0]])} at "
                f"{table.locate(odd[0] if rows is None else int(rows[odd[0]]))}.",
                "Count characters from the beginning of the text.",
            )
    return values.astype(np.int64)


def _is_whole(value: object) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _read_gold(gold: object, names: Names, documents: Values) -> tuple[SpanRows, Indices]:
    """Return the known spans, and the documents whose spans are known."""
    if gold is None:
        nothing = np.empty(0, np.int64)
        return SpanRows(nothing, nothing, nothing, []), nothing
    table = open_frame(gold, "gold").prefer(names)
    document = _find_documents(table, documents)
    return _read_rows(table, document, find_marked(table)), np.unique(document)


def read_sole_spans(given: object, name: str, documents: Values, texts: list[str], fused: bool = False) -> MarkedTexts:
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
    document, own = encode_in_order_of_appearance(
        table.values(names["document"], "Say which document each span is in.")
    )
    place = lookup(documents, to_column(own))
    contents = [texts[n] if n >= 0 else "" for n in place.tolist()]
    rows = find_marked(table)
    found = _read_rows(table, document.astype(np.int64), rows)
    code, labels = encode_types(found.types)
    confidence = read_numbers(table, "confidence")[rows] if "confidence" in table.names else None
    marks = Marks(found.document, np.zeros(len(rows), np.int64), found.start, found.end, code, confidence)
    lengths = np.array([len(text) or _LONGEST for text in contents], np.int64)
    check_offsets(marks, lengths, own)
    _check_stretches(table, rows, marks, contents)
    _, first = np.unique(np.stack(marks[:5]), axis=1, return_index=True)
    nobody, nothing = np.empty((0, 2), np.int64), pick_marks(marks, np.empty(0, np.int64))
    every = np.arange(len(own))
    return MarkedTexts(own, contents, objects([]), labels, nothing, nobody, None, pick_marks(marks, first), every)


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


def _check_stretches(table: Table, rows: Indices, marks: Marks, texts: list[str]) -> None:
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


def add_known(spans: Texts, known: MarkedTexts) -> Texts:
    """Return spans, of which some more are known; see `Spans.with_gold`."""
    marks, documents = find_truth(known)
    known = replace(known, documents=known.documents[documents], texts=[known.texts[d] for d in documents.tolist()])
    check_texts(spans, known, lookup(known.documents, to_column(spans.documents)))
    place = lookup(spans.documents, to_column(known.documents))
    if (place < 0).any():
        absent = f"{int((place < 0).sum()):,} of {plural(len(place), 'document')}"
        warn_of(f"{absent} whose spans are known do not occur here and were left out.")
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


def find_truth(gold: MarkedTexts) -> tuple[Marks, Indices]:
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


def check_texts(found: MarkedTexts, gold: MarkedTexts, place: Indices) -> None:
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


def renumber(marks: Marks, place: Indices, labels: Values, names: list[str]) -> Marks:
    """Return spans with documents and types numbered as on the other side."""
    code = np.array([names.index(str(label)) for label in labels.tolist()], np.int64)
    return marks._replace(document=place[marks.document], label=code[marks.label] if len(code) else marks.label)
