"""Spans from tables: one row per span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.frames import is_table, open_frame
from ..answers.tables import Table
from ..answers.vocabulary import (
    Column,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    join_columns,
    lookup,
    objects,
    spell_surrogates,
    to_column,
    to_values,
)
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten
from .spans import Marks, Spans, check_offsets, sort_marks

Names = Mapping[str, str | None]
# What a table of spans says of each.
SPAN_ROLES = ("document", "start", "end", "type")


def read_span_table(spans: Any, texts: Any, readings: Any, gold: Any, names: Names) -> Spans:
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
    return Spans(
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
        table = Table(list(given), given.__getitem__, 0, "", "", str)
    else:
        table = open_frame(given)
    found = {role: name for role in SPAN_ROLES if (name := table.find_usual(role)) is not None}
    return found if len(found) == len(SPAN_ROLES) and table.find_usual("position") is None else None


def find_marked(table: Table, start: str, end: str) -> NDArray[np.int64]:
    """Return the rows that hold a span. The others, without start and end, name a document that holds none."""
    empty = np.intersect1d(find_missing(table.read(start)), find_missing(table.read(end)))
    return np.setdiff1d(np.arange(table.n_rows), empty)


def encode_types(types: list[str]) -> tuple[NDArray[np.int64], Values]:
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


def _find_documents(table: Table, names: Names, documents: Values) -> NDArray[np.int64]:
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


def read_offsets(table: Table, name: str, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
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


def read_types(table: Table, names: Names, rows: NDArray[np.int64] | None = None) -> list[str]:
    """Return the types of spans as text: of all of them, or of those of some rows."""
    given = names["type"] if table.name == "the table of spans" else _if_there(table, names["type"])
    name = table.need("type", given, "label")
    column = table.values(name, "Give each span its type.") if rows is None else table.read(name).take(rows)
    return [spell_surrogates(str(value)) for value in to_values(column).tolist()]


def _read_gold(
    gold: Any, names: Names, documents: Values
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], list[str], NDArray[np.int64]], NDArray[np.int64]]:
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
