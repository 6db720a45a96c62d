"""Spans that several workers marked in texts, as users hold them and as readers of files collect them.

Readers of files fill a `SpanCollector`; writers take a `Spans`. The fused spans of a model are a `Spans` too, with one
worker and a confidence for each span. So anything that can be read can be written in any of the formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import Column, Indices, Values, encode_sorted, objects, split_repeated, to_column
from ..answers.tables import build_frame
from ..errors import InputError, listing, parameter_error, plural, shorten
from .span_tables import add_known, encode_types, read_span_table
from .span_tags import REASONS, Layers, choose_layers, find_known, make_responses
from .texts import MarkedTexts, Marks, Origin, Tokens, check_offsets, cut_texts, pick_marks, sort_marks


@dataclass(frozen=True, eq=False, repr=False)
class Spans(MarkedTexts):
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
    origin : Origin or None
        Where they were read.
    questions : tuple of str
        Questions about whole texts that the same file answers; `consilience.read_answers` reads these answers.
    """

    @classmethod
    def of(cls, texts: MarkedTexts) -> Spans:
        """Return marked texts as spans."""
        return cls(**{each.name: getattr(texts, each.name) for each in fields(texts)})

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
        return cls.of(read_span_table(spans, texts, readings, gold, names))

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
        return make_responses(self, self.layers)

    def left_out(self) -> Any:
        """Return the spans that are not fused, as a table: document, worker, start, end, label, text and reason.

        The reason is "overlaps another", for spans that overlap a longer one of the same worker, or "white space only".
        """
        verdict = self.layers.marks
        rows = np.flatnonzero(np.isin(verdict, list(REASONS)))
        reason = to_column([REASONS[code] for code in verdict[rows].tolist()])
        return build_frame({**self._list_columns(pick_marks(self.marks, rows)), "reason": reason}, self.backend)

    def known_tags(self) -> Any:
        """Return the tags of documents whose spans are known, as a table that models take as `gold`.

        Columns: sequence (the document), position (the number of the token) and label. It holds the documents that
        `to_responses` has, and is None if there are none. `fuse` uses it by itself.
        """
        columns = find_known(self, self.layers)
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
        return add_known(self, known)

    def without_gold(self) -> Spans:
        """Return the same spans, of which none are known: to see how good fused spans are without them."""
        return replace(self, gold=None, gold_documents=np.empty(0, np.int64))

    @cached_property
    def layers(self) -> Layers:
        """The tokens of all documents, and which spans are fused."""
        return choose_layers(self)


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
        self._spans: list[tuple[int, int, int, str, float | None]] = []  # reading, start, end, label, confidence
        self._gold: list[tuple[int, int, int, str]] = []  # document, start, end, label
        self._gold_documents: list[int] = []

    def add_document(self, name: object, text: str, tokens: list[tuple[int, int]] | None = None) -> int:
        """Add a document, and return its index. Tokens are (start, end) pairs, in order and apart from each other."""
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
        if confidence is not None:
            self._spans += [(reading, *span, each) for span, each in zip(spans, confidence, strict=True)]
        else:
            self._spans += [(reading, *span, None) for span in dict.fromkeys(spans)]

    def add_gold(self, document: int, spans: Iterable[tuple[int, int, str]]) -> None:
        """Add the spans of a document that are known to be right: all that it has."""
        self._gold_documents.append(document)
        self._gold += [(document, *span) for span in dict.fromkeys(spans)]

    def finish(self, origin: Origin | None = None) -> Spans:
        """Return all that was added; impossible offsets, and documents or readings that occur twice, are an error."""
        if not self._documents:
            raise InputError("There are no documents.", "Give at least one text.")
        documents, repeated = split_repeated(to_column(self._documents, "Ids of documents"))
        if repeated:
            raise InputError(
                f"{plural(len(repeated), 'document')} occur more than once: {listing(repeated)}.",
                "Give each document its own id.",
            )
        worker_codes, workers = encode_sorted(to_column([worker for _, worker in self._readings], "Ids of workers"))
        readings = np.array([[document for document, _ in self._readings], worker_codes], np.int64).reshape(2, -1).T
        self._check_readings(readings, workers)
        label_of, labels = encode_types([*(span[3] for span in self._spans), *(span[3] for span in self._gold)])
        n_marked = len(self._spans)
        reading, start, end = _columns([span[:3] for span in self._spans])
        confidence = [span[4] for span in self._spans]
        marks = Marks(
            readings[reading, 0],
            readings[reading, 1],
            start,
            end,
            label_of[:n_marked],
            np.array(confidence, np.float64) if any(each is not None for each in confidence) else None,
        )
        gold_document, gold_start, gold_end = _columns([span[:3] for span in self._gold])
        gold = Marks(gold_document, np.zeros(len(gold_document), np.int64), gold_start, gold_end, label_of[n_marked:])
        lengths = np.array([len(text) for text in self._texts], np.int64)
        for each in (marks, gold):
            check_offsets(each, lengths, objects(self._documents))
        return Spans(
            documents,
            self._texts,
            workers,
            labels,
            sort_marks(marks),
            readings[np.lexsort(readings.T[::-1])],
            self._gather_tokens(),
            sort_marks(gold) if self._gold_documents else None,
            np.unique(np.array(self._gold_documents, np.int64)),
            origin,
        )

    def _check_readings(self, readings: Indices, workers: Values) -> None:
        _, first, count = np.unique(readings, axis=0, return_index=True, return_counts=True)
        if (count > 1).any():
            document, worker = readings[first[count > 1][0]]
            raise InputError(
                f"{plural(int((count > 1).sum()), 'document')} have several annotations by the same worker, such as "
                f"{shorten(self._documents[document])} by {shorten(workers[worker])}.",
                "Keep one of them.",
            )

    def _gather_tokens(self) -> Tokens | None:
        """Return the tokens, if all documents have them."""
        if any(tokens is None for tokens in self._tokens):
            return None
        sizes = [len(tokens) for tokens in self._tokens if tokens is not None]
        start, end = _columns([token for tokens in self._tokens for token in tokens or ()], 2)
        self._check_tokens(np.repeat(np.arange(len(sizes)), sizes), start, end)
        return Tokens(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), start, end)

    def _check_tokens(self, document: Indices, start: Indices, end: Indices) -> None:
        lengths = np.array([len(text) for text in self._texts], np.int64)
        meets = (document[1:] == document[:-1]) & (start[1:] < end[:-1])
        bad = (start < 0) | (end < start) | (end > lengths[document]) | np.append(False, meets)[: len(start)]
        if bad.any():
            first = int(bad.argmax())
            raise InputError(
                f"{plural(int(bad.sum()), 'token')} overlap another, are out of order, or are not within their text, "
                f"such as {start[first]} to {end[first]} in document {shorten(self._documents[document[first]])}.",
                "Check that the tokens belong to this text.",
            )


def _columns(rows: list[Any], width: int = 3) -> Indices:
    return np.array(rows, np.int64).reshape(-1, width).T
