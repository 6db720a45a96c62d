"""Spans that several workers marked in texts, as users hold them, and as tables and readers of files give them.

A span is the stretch ``text[start:end]`` of a document, with a type. Offsets count characters (Unicode code points), as
Python does. A *reading* is one worker's annotation of one document: all spans that the worker marked there, perhaps
none. A document that a worker never saw has no reading by that worker, which is not the same as an empty one.

Readers of files fill a `SpanCollector`; writers take a `Spans`. The fused spans of a model are a `Spans` too, with one
worker and a confidence for each span. So anything that can be read can be written in any of the formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
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
from ..answers.item_tables import read_figures
from ..answers.tables import Table, build_frame, is_table, open_frame
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Floats
from .base import FUSED
from .tokens import REASONS, Tokenised, Tokens, choose_layer, make_responses, tabulate_known, tokenise

# What fused spans and labels are called, as a worker.
# Documents without a text have no known length.
_LONGEST = np.iinfo(np.int64).max


class Marks(NamedTuple):
    """Spans as columns, in order of document, then worker, start and end."""

    document: Indices  # (S,): index of the document
    worker: Indices  # (S,): index of the worker; 0 for known spans
    start: Indices
    end: Indices
    label: Indices  # (S,): index of the type
    confidence: Floats | None = None  # (S,), NaN for a span that has none; None if no span has one


@dataclass(frozen=True, eq=False, repr=False)
class Spans:
    """Texts, and the spans that several workers marked in them.

    Build one with `consilience.read_spans`, or `Spans.from_frame`.

    Attributes
    ----------
    documents : ndarray
        Ids of the documents, in reading order.
    texts : list of str
        Their texts.
    workers : ndarray
        Ids of the workers, sorted.
    labels : ndarray
        Types of spans, sorted.
    marks : Marks
        The spans.
    readings : int64 array (R, 2)
        Which worker read which document: indices of document and worker, in order.
    tokens : Tokens or None
        The tokens of the tool that wrote the file, if it has any.
    gold : Marks or None
        Spans that are known to be right.
    gold_documents : int64 array
        The documents whose spans are known, ascending; in them all other stretches are known to be no spans.
    origin : tuple of str or None
        Path and format of the file that they were read from.
    questions : tuple of str
        Questions about whole texts that the same file answers; `consilience.read_answers` reads these answers.
    """

    documents: Values
    texts: list[str]
    workers: Values
    labels: Values
    marks: Marks
    readings: Indices
    tokens: Tokens | None = None
    gold: Marks | None = None
    gold_documents: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    origin: tuple[str, str] | None = None
    questions: tuple[str, ...] = ()
    backend: str = "pyarrow"  # the frame library in which results go back

    def __repr__(self) -> str:
        return (
            f"Spans({plural(len(self.marks.start), 'span')} in {plural(len(self.documents), 'document')} by "
            f"{plural(len(self.workers), 'worker')}, {plural(len(self.labels), 'type')}: "
            f"{listing(self.labels.tolist())})"
        )

    def to_frame(self) -> Any:
        """Return the spans as a table: document, worker, start, end, label, text, and confidence if they have one."""
        columns = self._list_columns(self.marks)
        if self.marks.confidence is not None:
            columns["confidence"] = pa.array(self.marks.confidence, mask=np.isnan(self.marks.confidence))
        return build_frame(columns, self.backend)

    def _list_columns(self, marks: Marks) -> dict[str, Column]:
        """Return spans as columns: document, worker, start, end, label and text."""
        return {
            "document": to_column(self.documents[marks.document]),
            "worker": to_column(self.workers[marks.worker]),
            "start": to_column(marks.start),
            "end": to_column(marks.end),
            "label": to_column(self.labels[marks.label]),
            "text": to_column(cut_texts(self.texts, marks)),
        }

    @classmethod
    def from_frame(
        cls,
        spans: object,
        texts: object,
        readings: object = "marked",
        gold: object = None,
        *,
        document: str | None = None,
        worker: str | None = None,
        start: str | None = None,
        end: str | None = None,
        label: str | None = None,
    ) -> Spans:
        """Read spans from a table with one row per span.

        Parameters
        ----------
        spans : pandas, polars or pyarrow table, or dict of columns
            The document, the worker, start and end (in characters, the end excluded), and the type of each span, which
            is taken as text. Repeated rows count once.
        texts : dict or table
            The text of each document: {document: text}, or a table with columns document and text. All documents are
            named here, in the order that results have.
        readings : {"marked", "all"} or table
            Who read which document. A worker who read a document and marked nothing there has said that it holds no
            span. "marked": each worker read the documents in which they marked a span, and no others. "all": each
            worker read all documents. A table, or a dict of columns, has a column document and a column worker, and
            names all readings without any span; those with spans may be left out.
        gold : table, optional
            Known spans: document, start, end and label. Of each document that is named here all spans are known. A row
            without start, end and label names a document that holds no span.
        document, worker, start, end, label : str, optional
            Names of columns. By default they are called so, or by the other names that `Answers.from_frame` knows.

        Returns
        -------
        Spans

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"document": [1, 1], "worker": ["a", "b"], "start": [0, 0], "end": [3, 7], "label": ["PER", "PER"]}
        >>> cs.Spans.from_frame(table, {1: "Ann Lee met Bob.", 2: "No one."}, readings="all")
        Spans(2 spans in 2 documents by 2 workers, 1 type: 'PER')
        """
        names = {"document": document, "worker": worker, "start": start, "end": end, "type": label}
        documents, contents = _read_texts(texts, names)
        table = open_frame(spans, "the table of spans")
        parameters = {role: "label" if role == "type" else role for role in names}
        table = table.prefer({role: table.need(role, names[role], each) for role, each in parameters.items()})
        owner = _find_documents(table, documents)
        marks, types = _read_rows(table, owner, np.arange(table.n_rows))
        said = table.values(table.need("worker"), "Say who marked each span.")
        if is_table(readings):
            read = open_frame(readings, "the table of readings").prefer(names)
            said = join_columns(said, read.values(read.need("worker"), "Say who read each document."))
            owner = np.append(owner, _find_documents(read, documents))
        elif not (isinstance(readings, str) and readings in ("marked", "all")):
            expected = "'marked', 'all' or a table of document and worker"
            raise parameter_error("readings", "Spans.from_frame", expected, readings)
        codes, workers = encode_sorted(said)
        pairs = np.stack([owner, codes.astype(np.int64)], axis=1)
        if isinstance(readings, str) and readings == "all":
            pairs = np.indices((len(documents), len(workers))).reshape(2, -1).T
        known, known_documents = None, np.empty(0, np.int64)
        if gold is not None:
            truth = open_frame(gold, "gold").prefer(names)
            owner = _find_documents(truth, documents)
            known, known_types = _read_rows(truth, owner, _find_marked(truth))
            types += known_types
            known_documents = np.unique(owner)
        return _assemble(
            documents,
            contents,
            workers,
            marks._replace(worker=codes[: table.n_rows].astype(np.int64)),
            known,
            types,
            readings=np.unique(pairs, axis=0),
            gold_documents=known_documents,
            backend=table.backend,
        )

    def to_responses(self) -> Answers:
        """Return the spans as answers about tokens, in the form of IOB2 tags.

        Documents are sequences, and the number of a token in its document is its position. A worker who read a document
        answers about each of its tokens: B-X for the first token of a span of type X, I-X for its other tokens, and O
        elsewhere. Documents without a reader, or without a token, are left out. How texts become tokens, and which
        spans are left out if several overlap, is told on the page about spans of the user guide.

        The answers hold no texts. A model that is fitted to the `Spans` themselves keeps them for its results.

        Warns
        -----
        DataWarning
            When spans or documents are left out.

        Returns
        -------
        Answers

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"document": [1], "worker": ["a"], "start": [0], "end": [7], "label": ["PER"]}
        >>> cs.Spans.from_frame(table, {1: "Ann Lee met Bob."}).to_responses()
        Answers(5 answers: 5 items in 1 sequences x 1 workers, 3 classes: 'B-PER', 'I-PER', 'O')
        """
        return make_responses(self)

    def left_out(self) -> Any:
        """Return the spans that are not fused, as a table: document, worker, start, end, label, text and reason.

        The reason is "overlaps another", for spans that overlap a longer one of the same worker, or "white space only".
        """
        verdict = self.verdicts
        rows = np.flatnonzero(np.isin(verdict, list(REASONS)))
        reason = to_column([REASONS[code] for code in verdict[rows].tolist()])
        return build_frame({**self._list_columns(pick_marks(self.marks, rows)), "reason": reason}, self.backend)

    def known_tags(self) -> Any:
        """Return the tags of documents whose spans are known, as a table that models take as `gold`.

        Columns: sequence (the document), position (the number of the token) and label. It holds the documents that
        `to_responses` has, and is None if there are none. `fuse` uses it by itself.
        """
        columns = tabulate_known(self)
        return None if columns is None else build_frame(columns, self.backend)

    def with_gold(self, known: Spans) -> Spans:
        """Return the same spans, of which some more are known.

        Parameters
        ----------
        known : Spans
            Its known spans are taken, or those of its only worker. Documents are found by their ids, and have the same
            texts. Documents that are not here are left out, with a warning.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"document": [1, 2], "worker": ["a", "a"], "start": [0, 0], "end": [3, 3], "label": ["PER", "LOC"]}
        >>> texts = {1: "Ann Lee met Bob.", 2: "Rome."}
        >>> expert = {"document": [1], "worker": ["expert"], "start": [0], "end": [7], "label": ["PER"]}
        >>> spans = cs.Spans.from_frame(table, texts).with_gold(cs.Spans.from_frame(expert, texts))
        >>> spans.known_tags()["label"].to_pylist()
        ['B-PER', 'I-PER', 'O', 'O', 'O']
        """
        if not isinstance(known, Spans):
            raise parameter_error("known", "with_gold", "a Spans, such as read_spans returns", known)
        marks, documents = find_truth(known)
        place = lookup(self.documents, to_column(known.documents))
        sure = replace(known, documents=known.documents[documents], texts=[known.texts[d] for d in documents.tolist()])
        check_texts(self, sure, lookup(sure.documents, to_column(self.documents)))
        absent = documents[place[documents] < 0]
        if len(absent):
            warn_of(
                f"{len(absent):,} of {plural(len(documents), 'document')} whose spans are known do not occur here and "
                "were left out."
            )
        again = np.intersect1d(place[documents], self.gold_documents)
        if len(again):
            raise InputError(
                f"The spans of {plural(len(again), 'document')} are given twice as known, such as "
                f"{shorten(self.documents[again[0]])}.",
                "Give the known spans of a document once.",
                keyword="gold",
            )
        found = pick_marks(marks, np.flatnonzero(place[marks.document] >= 0))
        types = [*self.labels[self.marks.label], *known.labels[found.label]]
        found = found._replace(document=place[found.document], worker=np.zeros(len(found.start), np.int64))
        if self.gold is not None:
            types += self.labels[self.gold.label].tolist()
            found = Marks(*map(np.append, found[:5], self.gold[:5]))  # type: ignore[arg-type]
        return _assemble(
            self.documents,
            self.texts,
            self.workers,
            self.marks,
            found,
            list(map(str, types)),
            readings=self.readings,
            tokens=self.tokens,
            gold_documents=np.union1d(self.gold_documents, np.setdiff1d(place[documents], -1)),
            origin=self.origin,
            questions=self.questions,
            backend=self.backend,
        )

    def without_gold(self) -> Spans:
        """Return the same spans, of which none are known: to see how good fused spans are without them."""
        return replace(self, gold=None, gold_documents=np.empty(0, np.int64))

    @cached_property
    def tokenised(self) -> Tokenised:
        """The tokens of all documents, and where spans are among them."""
        return tokenise(self)

    @cached_property
    def verdicts(self) -> Indices:
        """For each span whether it is fused, or why not; see `consilience.kinds.tokens`."""
        return choose_layer(self.marks, self.tokenised.marks)


def pick_marks(marks: Marks, rows: Indices) -> Marks:
    """Some of the spans."""
    return Marks(*(None if column is None else column[rows] for column in marks))  # type: ignore[arg-type]


def cut_texts(texts: list[str], marks: Marks) -> list[str]:
    """The stretch of text of each span."""
    places = zip(marks.document.tolist(), marks.start.tolist(), marks.end.tolist(), strict=True)
    return [texts[document][start:end] for document, start, end in places]


def sort_marks(marks: Marks) -> Marks:
    """The spans in order, each once."""
    ordered = pick_marks(marks, np.lexsort((marks.label, marks.end, marks.start, marks.worker, marks.document)))
    columns = np.stack(ordered[:5])
    fresh = np.append(True, (columns[:, 1:] != columns[:, :-1]).any(axis=0))[: columns.shape[1]]
    return pick_marks(ordered, np.flatnonzero(fresh))


def _assemble(
    documents: Values,
    texts: list[str],
    workers: Values,
    marks: Marks,
    gold: Marks | None,
    types: list[str],
    **others: Any,
) -> Spans:
    """Spans that were checked; `types` are those of the spans, then those of the known ones, as text.

    `others` are further fields of `Spans`. Where nobody read anything, texts that are empty are not known.
    """
    codes, labels = encode_sorted(pa.array(types, pa.string()) if not types else to_column(types, "Types of spans"))
    longest = 0 if len(workers) else _LONGEST
    lengths = np.array([len(text) or longest for text in texts], np.int64)
    layers, n_marked = [], len(marks.start)
    for layer, own in ((marks, codes[:n_marked]), (gold, codes[n_marked:])):
        if layer is None:
            continue
        bad = np.flatnonzero((layer.start < 0) | (layer.end <= layer.start) | (layer.end > lengths[layer.document]))
        if len(bad):
            first, document = bad[0], int(layer.document[bad[0]])
            raise InputError(
                f"{plural(len(bad), 'span')} are not within their text, such as {layer.start[first]} to "
                f"{layer.end[first]} in document {shorten(documents[document])}, which has "
                f"{plural(int(lengths[document]), 'character')}.",
                "Check that the offsets belong to this text.",
            )
        layers.append(sort_marks(layer._replace(label=own.astype(np.int64))))
    known = None if gold is None else layers[1]
    return Spans(documents, texts, workers, labels, layers[0], gold=known, **others)


# ------------------------------------------------------------------------------------------------- readers of files


class SpanCollector:
    """Spans as a reader of files meets them: documents in order, and readings of them in any order.

    Examples
    --------
    >>> collector = SpanCollector()
    >>> first = collector.add_document("a", "Ann met Bob.")
    >>> collector.add_reading(first, "w1", [(0, 3, "PER"), (8, 11, "PER")])
    >>> collector.add_reading(first, "w2", [])
    >>> collector.finish()
    Spans(2 spans in 1 document by 2 workers, 1 type: 'PER')
    """

    def __init__(self) -> None:
        self._documents: list[Any] = []
        self._texts: list[str] = []
        self._tokens: list[list[tuple[int, int]] | None] = []
        self._readings: list[tuple[int, Any]] = []
        # Document, reading, start, end, label and confidence of each span; those that are known are of no reading.
        self._spans: list[tuple[int, int, int, int, str, float]] = []
        self._gold: list[tuple[int, int, int, int, str, float]] = []
        self._gold_documents: list[int] = []

    def add_document(self, name: object, text: str, tokens: list[tuple[int, int]] | None = None) -> int:
        """Add a document, and return its index. Tokens are (start, end) pairs, in order and without overlaps."""
        self._documents.append(name)
        self._texts.append(text)
        self._tokens.append(tokens)
        return len(self._documents) - 1

    def add_reading(
        self,
        document: int,
        worker: object,
        spans: Iterable[tuple[int, int, str]],
        confidence: Iterable[float] | None = None,
    ) -> None:
        """Add one worker's annotation of a document: (start, end, label) of each span. A repeated span counts once."""
        reading = len(self._readings)
        self._readings.append((document, worker))
        scored = dict.fromkeys(spans, np.nan) if confidence is None else dict(zip(spans, confidence, strict=True))
        self._spans += [(document, reading, *span, score) for span, score in scored.items()]

    def add_gold(self, document: int, spans: Iterable[tuple[int, int, str]]) -> None:
        """Add the spans of a document that are known to be right: all that it has."""
        self._gold_documents.append(document)
        self._gold += [(document, 0, *span, np.nan) for span in spans]

    def finish(self, origin: tuple[str, str] | None = None) -> Spans:
        """Return all that was added; impossible offsets, and documents or readings that occur twice, are an error."""
        if not self._documents:
            raise InputError("There are no documents.", "Give at least one text.")
        documents, repeated = split_repeated(to_column(self._documents, "Ids of documents"))
        if repeated:
            raise InputError(
                f"{plural(len(repeated), 'document')} occur more than once: {listing(repeated)}.",
                "Give each document its own id.",
            )
        codes, workers = encode_sorted(to_column([worker for _, worker in self._readings], "Ids of workers"))
        owner, worker_codes = np.array([document for document, _ in self._readings], np.int64), codes.astype(np.int64)
        readings, first, count = np.unique(
            np.stack([owner, worker_codes], axis=1), axis=0, return_index=True, return_counts=True
        )
        if (count > 1).any():
            document, worker = self._readings[first[count > 1][0]]
            raise InputError(
                f"{plural(int((count > 1).sum()), 'document')} have several annotations by the same worker, such as "
                f"{shorten(self._documents[document])} by {shorten(worker)}.",
                "Keep one of them.",
            )
        layers = []
        for rows in (self._spans, self._gold):
            document, reading, start, end = np.array([row[:4] for row in rows], np.int64).reshape(-1, 4).T
            scores = np.array([row[5] for row in rows], np.float64)
            layers.append(Marks(document, reading, start, end, reading, None if np.isnan(scores).all() else scores))
        tokens = None
        if all(each is not None for each in self._tokens):
            offsets = np.cumsum([0, *(len(each or ()) for each in self._tokens)]).astype(np.int64)
            every = [token for each in self._tokens for token in each or ()]
            tokens = Tokens(offsets, *np.array(every, np.int64).reshape(-1, 2).T)
        return _assemble(
            documents,
            self._texts,
            workers,
            layers[0]._replace(worker=worker_codes[layers[0].worker]),
            layers[1] if self._gold_documents else None,
            [row[4] for row in (*self._spans, *self._gold)],
            readings=readings,
            tokens=tokens,
            gold_documents=np.unique(np.array(self._gold_documents, np.int64)),
            origin=origin,
        )


# ------------------------------------------------------------------------------------------------------------ tables


def find_span_columns(given: object) -> dict[str, str] | None:
    """The columns of document, start, end and type of a table of spans; None for anything else.

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
        return Table(list(given), given.__getitem__).find_spans()
    return open_frame(given).find_spans()


def _find_marked(table: Table) -> Indices:
    """The rows that hold a span. The others, without start and end, name a document that holds none."""
    start, end = (find_missing(table.read(table.need(role))) for role in ("start", "end"))
    return np.setdiff1d(np.arange(table.n_rows), np.intersect1d(start, end))


def _read_texts(texts: object, names: Mapping[str, str | None]) -> tuple[Values, list[str]]:
    """Ids and texts of all documents."""
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
    """The index of the document of each row."""
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


def _read_rows(table: Table, document: Indices, rows: Indices) -> tuple[Marks, list[str]]:
    """The spans in some rows, without workers and types, and these; `document` is that of every row of the table."""
    offsets = []
    for role in ("start", "end"):
        name = table.need(role)
        table.keep(rows).values(name, "Say where each span begins and ends.")
        figures = read_figures(table, name)[rows]
        odd = np.flatnonzero(figures != np.round(figures))
        if len(odd):
            raise InputError(
                f"Column {name!r} of {table.name} must hold whole numbers. Got {figures[odd[0]]} at "
                f"{table.locate(int(rows[odd[0]]))}.",
                "Count characters from the beginning of the text.",
            )
        offsets.append(figures.astype(np.int64))
    column = table.keep(rows).values(table.need("type", parameter="label"), "Give each span its type.")
    nobody = np.zeros(len(rows), np.int64)
    types = [spell_surrogates(str(value)) for value in to_values(column).tolist()]
    start, end = offsets
    return Marks(document[rows], nobody, start, end, nobody), types


def read_sole_spans(given: object, name: str, documents: Values, texts: list[str], fused: bool = False) -> Spans:
    """The spans of a table that holds those of one person, or fused ones, as known spans.

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
    table = open_frame(given, name)
    who = table.find_usual("worker")
    if who is not None:
        column = table.values(who, "Say who marked each span.")
        workers = encode_in_order_of_appearance(column)[1].tolist()
        if fused and FUSED in workers:
            table = table.keep(np.flatnonzero(lookup(objects([FUSED]), column) >= 0))
        elif len(workers) > 1:
            raise InputError(
                f"{table.name} holds the spans of {plural(len(workers), 'worker')}: {listing(workers)}.",
                "Give the spans of one.",
            )
    column = table.values(table.need("document"), "Say which document each span is in.")
    codes, own = encode_in_order_of_appearance(column)
    contents = [texts[n] if n >= 0 else "" for n in lookup(documents, to_column(own)).tolist()]
    rows = _find_marked(table)
    marks, types = _read_rows(table, codes.astype(np.int64), rows)
    if "confidence" in table.names:
        marks = marks._replace(confidence=read_figures(table, "confidence")[rows])
    nothing, nobody = pick_marks(marks, np.empty(0, np.int64)), np.empty((0, 2), np.int64)
    every = np.arange(len(own))
    found = _assemble(own, contents, objects([]), nothing, marks, types, readings=nobody, gold_documents=every)
    words = table.find_usual("text")
    if words is not None:  # what spans read, or the whole text of the document
        said, there = to_values(table.read(words).take(rows)).tolist(), cut_texts(contents, marks)
        for n, (text, stretch, document) in enumerate(zip(said, there, marks.document.tolist(), strict=True)):
            whole = contents[document]
            if whole and isinstance(text, str) and text.strip() not in (stretch.strip(), whole.strip(), ""):
                raise InputError(
                    f"The span from {marks.start[n]} to {marks.end[n]} at {table.locate(int(rows[n]))} reads "
                    f"{shorten(text)} in {table.name}, and {shorten(stretch)} in the text of the document.",
                    "Offsets count characters from 0, and the end is excluded. Check that both have the same texts.",
                )
    return found


# ------------------------------------------------------------------------------------------------------- known spans


def find_truth(gold: Spans) -> tuple[Marks, Indices]:
    """The known spans, and the documents whose spans are known: those of one worker, if nothing else is."""
    if gold.gold is not None:
        return gold.gold, gold.gold_documents
    if len(gold.workers) == 1 and len(gold.readings):
        return gold.marks, np.unique(gold.readings[:, 0])
    raise InputError(
        f"No spans are known: there are those of {plural(len(gold.workers), 'worker')}, and none that are known.",
        "Give a Spans with gold, or with one worker.",
        keyword="gold",
    )


def check_texts(found: Spans, gold: Spans, place: Indices) -> None:
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


def align_marks(marks: Marks, place: Indices, labels: Values, names: list[str]) -> Marks:
    """Spans with documents and types numbered as on the other side."""
    code = np.array([names.index(str(label)) for label in labels.tolist()], np.int64)
    return marks._replace(document=place[marks.document], label=code[marks.label] if len(code) else marks.label)
