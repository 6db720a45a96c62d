"""Spans from tables, one row per span: those of workers, and those that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..answers.columns import Column, Indices, Values, find_missing, objects, spell_surrogates, to_column, to_values
from ..answers.frames import is_table, open_frame
from ..answers.item_tables import read_numbers
from ..answers.tables import SPAN_ROLES, Table
from ..answers.vocabulary import encode_in_order_of_appearance, encode_sorted, join_columns, lookup
from ..errors import DataWarning, InputError, Sentence, listing, parameter_error, plural, shorten, warn
from .texts import FUSED, MarkedTexts, Marks, check_offsets, cut_texts, pick_marks, sort_marks

Texts = TypeVar("Texts", bound=MarkedTexts)
Names = Mapping[str, str | None]
# Documents without a text have no known length.
_LONGEST = np.iinfo(np.int64).max


def read_span_table(spans: Any, texts: Any, readings: Any, gold: Any, names: Names) -> MarkedTexts:
    """Return the spans of a table; see `Spans.from_frame`."""
    documents, contents = _read_texts(texts, names["document"])
    table = open_frame(spans, "the table of spans")
    document = _find_documents(table, names, documents)
    said = table.values(table.need("worker", names["worker"], "worker"), "Say who marked each span.")
    read = None
    if is_table(readings):
        read = open_frame(readings, "the table of readings")
        further = read.values(read.need("worker", _if_there(read, names["worker"])), "Say who read each document.")
        said = join_columns(said, further)
    elif not (isinstance(readings, str) and readings in ("marked", "all")):
        raise parameter_error(
            "readings", "Spans.from_frame", "'marked', 'all' or a table of document and worker", readings
        )
    worker_codes, workers = encode_sorted(said)
    worker = worker_codes.astype(np.int64)
    start, end = (read_offsets(table, table.need(role, names[role], role)) for role in ("start", "end"))
    label = read_types(table, names)
    known, known_documents = _read_gold(gold, names, documents)
    code, labels = encode_types([*label, *known[2]])
    marks = Marks(document, worker[: len(document)], start, end, code[: len(label)])
    known_marks = Marks(known[3], np.zeros(len(known[3]), np.int64), known[0], known[1], code[len(label) :])
    lengths = np.array([len(text) for text in contents], np.int64)
    for each in (marks, known_marks):
        check_offsets(each, lengths, documents)
    pairs = np.stack([marks.document, marks.worker], axis=1)
    if read is not None:
        pairs = np.concatenate([pairs, np.stack([_find_documents(read, names, documents), worker[len(document) :]], 1)])
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


def find_span_columns(given: Any) -> dict[str, str] | None:
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


def find_marked(table: Table, start: str, end: str) -> Indices:
    """Return the rows that hold a span. The others, without start and end, name a document that holds none."""
    empty = np.intersect1d(find_missing(table.read(start)), find_missing(table.read(end)))
    return np.setdiff1d(np.arange(table.n_rows), empty)


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
    return Marks(*columns[:, fresh])


def _read_texts(texts: Any, document: str | None) -> tuple[Values, list[str]]:
    """Return ids and texts of all documents."""
    if isinstance(texts, Mapping) and not _is_columns(texts):
        ids: Column = to_column(list(texts), "Ids of documents")
        contents = list(texts.values())
    else:
        table = open_frame(texts, "the table of texts")
        name = table.need("document", _if_there(table, document))
        ids = table.values(name, "Give each document its id.")
        text = table.need("text")
        contents = to_values(table.values(text, "Give each document its text.")).tolist()
    odd = next((text for text in contents if not isinstance(text, str)), None)
    if odd is not None:
        raise InputError(f"Texts must be text. Got {shorten(odd)} instead.", keyword="texts")
    if not contents:
        raise InputError("There are no documents.", "Give at least one text.", keyword="texts")
    codes, distinct = encode_in_order_of_appearance(ids)
    if len(distinct) < len(codes):
        repeated = distinct[np.bincount(codes) > 1]
        raise InputError(
            f"{plural(len(repeated), 'document')} have more than one text: {listing(repeated.tolist())}.",
            "Give each document its own id.",
            keyword="texts",
        )
    return distinct, contents


def _is_columns(texts: Mapping[Any, Any]) -> bool:
    """Tell a dict of columns from a dict of texts."""
    return bool(texts) and not any(isinstance(values, str) for values in texts.values())


def _if_there(table: Table, name: str | None) -> str | None:
    """Return the name that a column has in the table of spans, if it has it here too."""
    return name if name in table.names else None


def _find_documents(table: Table, names: Names, documents: Values) -> Indices:
    """Return the index of the document of each row."""
    given = names["document"] if table.name == "the table of spans" else _if_there(table, names["document"])
    name = table.need("document", given, "document")
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


def read_offsets(table: Table, name: str, rows: Indices | None = None) -> Indices:
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


def read_types(table: Table, names: Names, rows: Indices | None = None) -> list[str]:
    """Return the types of spans as text: of all of them, or of those of some rows."""
    given = names["type"] if table.name == "the table of spans" else _if_there(table, names["type"])
    name = table.need("type", given, "label")
    column = table.values(name, "Give each span its type.") if rows is None else table.read(name).take(rows)
    return [spell_surrogates(str(value)) for value in to_values(column).tolist()]


def _read_gold(
    gold: Any, names: Names, documents: Values
) -> tuple[tuple[Indices, Indices, list[str], Indices], Indices]:
    """Return start, end, type and document of known spans, and the documents whose spans are known."""
    if gold is None:
        nothing = np.empty(0, np.int64)
        return (nothing, nothing, [], nothing), nothing
    table = open_frame(gold, "gold")
    document = _find_documents(table, names, documents)
    start, end = (table.need(role, _if_there(table, names[role])) for role in ("start", "end"))
    rows = find_marked(table, start, end)
    found = (read_offsets(table, start, rows), read_offsets(table, end, rows), read_types(table, names, rows))
    return (*found, document[rows]), np.unique(document)


def read_sole_spans(given: Any, name: str, documents: Values, texts: list[str], fused: bool = False) -> MarkedTexts:
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
