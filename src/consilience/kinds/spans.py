"""Spans that several workers marked in texts, as users hold them, and as tables and readers of files give them.

A span is the stretch ``text[start:end]`` of a document, with a type. Offsets count characters (Unicode code points), as
Python does. A *reading* is one worker's annotation of one document: all spans that the worker marked there, perhaps
none. A document that a worker never saw has no reading by that worker, which is not the same as an empty one.

Readers of files give `MarkedText` to `collect_texts`; writers get these back from `list_texts`. The fused spans of a
model are a `Spans` too, with one worker and a confidence for each span. So anything that can be read can be written in
any of the formats.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

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
from ..answers.keys import Sequences
from ..answers.tables import Table, build_frame, is_table, open_frame, read_figures
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Floats
from .base import FUSED
from .tokens import BLANK, LEFT_OUT_REASONS, OVERLAPS, Layer, Tokens, choose_layer, list_tags, tag_readings, tokenise

# Documents without a text have no known length.
_LONGEST = np.iinfo(np.int64).max
# Spans as start, end and type, each with its confidence.
Scored: TypeAlias = dict[tuple[int, int, str], float | None]


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
        return _read_tables(spans, texts, readings, gold, names)

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
        marks, tokens, verdict = self.marks, self.tokenised, self.layer[0]
        for code, problem in ((OVERLAPS, "overlap longer ones of the same worker"), (BLANK, "are white space only")):
            rows = np.flatnonzero(verdict == code)
            if len(rows):
                first = rows[0]
                warn_of(
                    f"{plural(len(rows), 'span')} of {len(marks.start):,} {problem}, and are not fused, such as "
                    f"{shorten(self.labels[marks.label[first]])} at {marks.start[first]} to {marks.end[first]} of "
                    f"document {shorten(self.documents[marks.document[first]])} by worker "
                    f"{shorten(self.workers[marks.worker[first]])}.",
                    "spans.left_out() lists them.",
                    *(["To fuse other layers, give the spans of one layer or type at a time."] * (code == OVERLAPS)),
                )
        documents, n_documents = self.fused_documents, len(self.documents)
        if not len(documents):
            raise InputError(
                "No document has both text and a reader.", "Say who read which document, also where nothing was marked."
            )
        if len(documents) < n_documents:
            warn_of(
                f"{plural(n_documents - len(documents), 'document')} of {n_documents:,} without a reader, or without "
                "text, are not fused.",
                "If somebody read them and marked nothing, say so when the spans are read.",
            )
        readings = self.readings[np.isin(self.readings[:, 0], documents)]
        reading, position, code_of = tag_readings(marks, self.layer, tokens, readings)
        sizes = np.diff(tokens.offsets)[documents]
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        item = bounds[np.searchsorted(documents, readings[:, 0])][reading] + position
        order = np.argsort(item, kind="stable")
        used, tag = np.unique(code_of[order], return_inverse=True)
        labels, rank = np.unique(objects(list_tags(self.labels))[used], return_inverse=True)
        known = self.known_tags()
        known_tags = [] if known is None else map(str, known["label"])
        return Answers(
            offsets=np.concatenate([[0], np.cumsum(np.bincount(item, minlength=bounds[-1]))]).astype(np.int64),
            worker=readings[:, 1].astype(np.int32)[reading][order],
            label=rank[tag].astype(np.int32),
            weight=None,
            workers=self.workers,
            labels=labels,
            classes=objects(sorted({*labels.tolist(), *known_tags, "O"})),
            keys=Sequences(self.documents[documents], bounds, np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)),
            backend=self.backend,
        )

    def left_out(self) -> Any:
        """Return the spans that are not fused, as a table: document, worker, start, end, label, text and reason.

        The reason is "overlaps another", for spans that overlap a longer one of the same worker, or "white space only".
        """
        verdict = self.layer[0]
        rows = np.flatnonzero(np.isin(verdict, list(LEFT_OUT_REASONS)))
        reason = to_column([LEFT_OUT_REASONS[code] for code in verdict[rows].tolist()])
        return build_frame({**self._list_columns(pick_marks(self.marks, rows)), "reason": reason}, self.backend)

    def known_tags(self) -> Any:
        """Return the tags of documents whose spans are known, as a table that models take as `gold`.

        Columns: sequence (the document), position (the number of the token) and label. It holds the documents that
        `to_responses` has, and is None if there are none. `fuse` uses it by itself.
        """
        documents = np.intersect1d(self.gold_documents, self.fused_documents)
        if self.gold is None or not len(documents):
            return None
        readings, tokens = np.stack([documents, np.zeros_like(documents)], axis=1), self.tokenised
        reading, position, code = tag_readings(self.gold, choose_layer(self.gold, tokens), tokens, readings)
        columns = {
            "sequence": to_column(self.documents[documents[reading]]),
            "position": to_column(position),
            "label": pa.array(list_tags(self.labels), pa.string()).take(pa.array(code)),
        }
        return build_frame(columns, self.backend)

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
        place = match_documents(known, self, documents)
        again = np.intersect1d(place[documents], self.gold_documents)
        absent = int((place[documents] < 0).sum())
        if absent:
            warn_of(
                f"{absent:,} of {plural(len(documents), 'document')} whose spans are known do not occur here and were "
                "left out."
            )
        if len(again):
            raise InputError(
                f"The spans of {plural(len(again), 'document')} are given twice as known, such as "
                f"{shorten(self.documents[again[0]])}.",
                "Give the known spans of a document once.",
                keyword="gold",
            )
        chosen = pick_marks(marks, np.flatnonzero(place[marks.document] >= 0))
        types = known.labels[chosen.label]
        chosen = chosen._replace(document=place[chosen.document], worker=np.zeros(len(chosen.start), np.int64))
        if self.gold is not None:
            types = np.append(types, self.labels[self.gold.label])
            chosen = Marks(*map(np.append, chosen[:5], self.gold[:5]))  # type: ignore[arg-type]
        layers = [(self.marks, self.labels[self.marks.label]), (chosen, types)]
        labels, (own, gold) = _join_layers(self.documents, self.texts, layers)
        gold_documents = np.union1d(self.gold_documents, np.setdiff1d(place[documents], -1))
        return replace(self, labels=labels, marks=own, gold=gold, gold_documents=gold_documents)

    def without_gold(self) -> Spans:
        """Return the same spans, of which none are known: to see how good fused spans are without them."""
        return replace(self, gold=None, gold_documents=np.empty(0, np.int64))

    @cached_property
    def tokenised(self) -> Tokens:
        """The tokens of all documents, of which each span is a run."""
        return tokenise(self)

    @cached_property
    def layer(self) -> Layer:
        """For each span whether it is fused, or why not; its first token, and the one after its last."""
        return choose_layer(self.marks, self.tokenised)

    @cached_property
    def fused_documents(self) -> Indices:
        """The documents that are fused: those that have a token and a reader."""
        n_readers = np.bincount(self.readings[:, 0], minlength=len(self.documents))
        return np.flatnonzero((np.diff(self.tokenised.offsets) > 0) & (n_readers > 0))


def pick_marks(marks: Marks, rows: Indices) -> Marks:
    """Some of the spans."""
    return Marks(*(None if column is None else column[rows] for column in marks))  # type: ignore[arg-type]


def cut_texts(texts: list[str], marks: Marks) -> list[str]:
    """The stretch of text of each span."""
    places = zip(marks.document.tolist(), marks.start.tolist(), marks.end.tolist(), strict=True)
    return [texts[document][start:end] for document, start, end in places]


def sort_marks(marks: Marks) -> Marks:
    """The spans in order, each once."""
    rows = np.stack(marks[:5], axis=1)
    return pick_marks(marks, np.unique(rows, axis=0, return_index=True)[1])


def _join_layers(
    documents: Values, texts: list[str], layers: Iterable[tuple[Marks, Iterable[object]]], some_unknown: bool = False
) -> tuple[Values, list[Marks]]:
    """The types of some spans, sorted, and the spans in order with these; a layer is spans and the type of each.

    `some_unknown` says whether empty texts stand for texts that are not known.
    """
    named = [(marks, list(map(str, types))) for marks, types in layers]
    names = [name for _, types in named for name in types]
    codes, labels = encode_sorted(to_column(names, "Types of spans") if names else pa.array([], pa.string()))
    lengths = np.array([len(text) or (_LONGEST if some_unknown else 0) for text in texts], np.int64)
    joined, first = [], 0
    for marks, types in named:
        bad = np.flatnonzero((marks.start < 0) | (marks.end <= marks.start) | (marks.end > lengths[marks.document]))
        if len(bad):
            start, end, document = (int(column[bad[0]]) for column in (marks.start, marks.end, marks.document))
            raise InputError(
                f"{plural(len(bad), 'span')} are not within their text, such as {start} to {end} in document "
                f"{shorten(documents[document])}, which has {plural(int(lengths[document]), 'character')}.",
                "Check that the offsets belong to this text.",
            )
        joined.append(sort_marks(marks._replace(label=codes[first : first + len(types)].astype(np.int64))))
        first += len(types)
    return labels, joined


# ----------------------------------------------------------------------------------------------------- texts one by one


class Reading(NamedTuple):
    """The spans that one worker marked in one document.

    Attributes
    ----------
    worker : object
        None for what is known to be true.
    spans : dict
        The confidence of each span (start, end, label), None where it has none.
    is_judged : bool
        Whether the spans have confidences; where there are none, whether other spans of the worker have them.
    """

    worker: Any
    spans: Scored
    is_judged: bool = False


class MarkedText(NamedTuple):
    """A text, and what workers marked in it, as it is read from a file and written to one.

    `tokens` are pairs of start and end, in order and without overlaps; `place` is where the text is, for messages.
    """

    name: Any
    text: str
    readings: Sequence[Reading]
    tokens: list[tuple[int, int]] | None = None
    place: object = ""


def collect_texts(texts: Iterable[MarkedText], origin: tuple[str, str] | None = None) -> Spans:
    """All that was marked in some texts. A document may come several times, with the same text.

    >>> collect_texts([MarkedText("a", "Ann met Bob.", [Reading("w1", {(0, 3, "PER"): None}), Reading("w2", {})])])
    Spans(1 span in 1 document by 2 workers, 1 type: 'PER')
    """
    documents: dict[str, MarkedText] = {}
    given: dict[tuple[Any, Any], Scored] = {}
    known: dict[Any, Scored] = {}
    for each in texts:
        first = documents.setdefault(str(each.name), each)
        if each.text != first.text:
            raise InputError(
                f"{each.place}: the text of {shorten(each.name)} is {shorten(each.text)}, and {shorten(first.text)} "
                "elsewhere.",
                "Give a document the same text, with the same tokens, in all files.",
            )
        for worker, spans, _ in each.readings:
            if worker is None and known.setdefault(first.name, spans).keys() != spans.keys():
                raise InputError(
                    f"{each.place}: two annotations are marked as ground truth, and differ.", "Keep one of them."
                )
            if worker is not None and given.setdefault((first.name, worker), spans) is not spans:
                raise InputError(
                    f"{each.place}: {shorten(each.name)} has several annotations by the same worker, "
                    f"{shorten(worker)}.",
                    "Keep one of them.",
                )
    marked = [(*owner, *span, score) for owner, spans in given.items() for span, score in spans.items()]
    sure = [(name, None, *span, None) for name, spans in known.items() for span in spans or [(None, None, None)]]
    tables = []
    for rows in (marked, [(*owner, *[None] * 4) for owner in given], sure):
        columns = list(zip(*rows, strict=True)) or [()] * 6
        tables.append(dict(zip(("document", "worker", "start", "end", "label", "confidence"), columns, strict=True)))
    contents = {each.name: each.text for each in documents.values()}
    read = _read_tables(tables[0], contents, tables[1], tables[2] if sure else None, {}, scored=True)
    tokens = None
    if all(each.tokens is not None for each in documents.values()):
        own = [each.tokens or [] for each in documents.values()]
        offsets = np.cumsum([0, *map(len, own)]).astype(np.int64)
        tokens = Tokens(offsets, *np.array([token for each in own for token in each], np.int64).reshape(-1, 2).T)
    return replace(read, tokens=tokens, origin=origin)


def list_texts(spans: Spans) -> list[MarkedText]:
    """All documents, with the annotations of each in order of workers; what is known comes last."""
    labels, workers = (list(map(str, names.tolist())) for names in (spans.labels, spans.workers))
    confidence = spans.marks.confidence
    scored = np.zeros(len(spans.marks.start), bool) if confidence is None else ~np.isnan(confidence)
    all_scored = confidence is not None and scored.all()
    judged = set(range(len(workers)) if all_scored else spans.marks.worker[scored].tolist())
    marked: dict[tuple[int, int], Scored] = {(d, w): {} for d, w in spans.readings.tolist()}
    known: dict[tuple[int, int], Scored] = {(d, 0): {} for d in spans.gold_documents.tolist()}
    for marks, holders in ((spans.marks, marked), (spans.gold, known)):
        if marks is not None:
            scores = np.full(len(marks.start), np.nan) if marks.confidence is None else marks.confidence
            columns = [column.tolist() for column in (*marks[:5], scores)]
            for document, worker, start, end, label, score in zip(*columns, strict=True):
                holders[document, worker][start, end, labels[label]] = None if score != score else score
    readings: list[list[Reading]] = [[] for _ in spans.texts]
    for (document, worker), own in marked.items():
        readings[document].append(Reading(workers[worker], own, worker in judged and None not in own.values()))
    for (document, _), own in known.items():
        readings[document].append(Reading(None, own))
    tokens: list[Any] = [None] * len(spans.texts)
    if spans.tokens is not None:
        offsets, start, end = (column.tolist() for column in spans.tokens)
        tokens = [list(zip(start[i:j], end[i:j], strict=True)) for i, j in itertools.pairwise(offsets)]
    names = [name if isinstance(name, (str, int, float)) else str(name) for name in spans.documents.tolist()]
    return [MarkedText(*each) for each in zip(names, spans.texts, readings, tokens, strict=True)]


# ------------------------------------------------------------------------------------------------------------ tables


def find_span_columns(given: object) -> dict[str, str] | None:
    """The columns of document, start, end and type of a table of spans; None for anything else.

    A table with positions is one of tokens.

    >>> find_span_columns({"doc": [1], "start": [0], "end": [3], "label": ["PER"]})
    {'document': 'doc', 'start': 'start', 'end': 'end', 'type': 'label'}
    >>> find_span_columns({"sequence": [1], "position": [0], "label": ["O"]}), find_span_columns({"start": "PER"})
    (None, None)
    """
    if not is_table(given) or (isinstance(given, Mapping) and not _is_columns(given)):
        return None
    table = Table(list(given), given.__getitem__) if isinstance(given, Mapping) else open_frame(given)
    return table.find_spans()


def _read_tables(
    spans: object, texts: object, readings: object, gold: object, names: Mapping[str, str | None], scored: bool = False
) -> Spans:
    """What `Spans.from_frame` reads; `scored` says whether spans have a column confidence."""
    documents, contents = _read_texts(texts, names)
    table = open_frame(spans, "the table of spans")
    parameters = {role: "label" if role == "type" else role for role in names}
    table = table.prefer({role: table.need(role, names[role], each) for role, each in parameters.items()})
    owner = _find_documents(table, documents)
    marks, types = _read_rows(table, owner, np.arange(table.n_rows), scored)
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
    layers = [(marks._replace(worker=codes[: table.n_rows].astype(np.int64)), types)]
    gold_documents = np.empty(0, np.int64)
    if gold is not None:
        truth = open_frame(gold, "gold").prefer(names)
        known = _find_documents(truth, documents)
        layers.append(_read_rows(truth, known, _find_marked(truth)))
        gold_documents = np.unique(known)
    labels, (own, *others) = _join_layers(documents, contents, layers)
    return Spans(
        documents,
        contents,
        workers,
        labels,
        own,
        np.unique(pairs, axis=0),
        gold=others[0] if others else None,
        gold_documents=gold_documents,
        backend=table.backend,
    )


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
    codes = lookup(documents, column)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        missing = encode_in_order_of_appearance(column.take(unknown))[1]
        raise InputError(
            f"{plural(len(missing), 'document')} of {table.name} have no text: {listing(missing.tolist())}. The first "
            f"is at {table.locate(int(unknown[0]))}.",
            Sentence("Give their texts with {texts}."),
            keyword="texts",
        )
    return codes


def _read_rows(table: Table, document: Indices, rows: Indices, scored: bool = False) -> tuple[Marks, list[str]]:
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
    confidence = read_figures(table, "confidence")[rows] if scored else np.empty(0)
    return Marks(document[rows], nobody, start, end, nobody, None if np.isnan(confidence).all() else confidence), types


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
    marks, types = _read_rows(table, codes.astype(np.int64), rows, "confidence" in table.names)
    labels, (gold,) = _join_layers(own, contents, [(marks, types)], some_unknown=True)
    nothing, nobody = pick_marks(gold, np.empty(0, np.int64)), np.empty((0, 2), np.int64)
    return Spans(own, contents, objects([]), labels, nothing, nobody, gold=gold, gold_documents=np.arange(len(own)))


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


def match_documents(spans: Spans, other: Spans, used: Indices | None = None) -> Indices:
    """Where each document is on the other side, which must have the same text; -1 if it is not there, or not `used`."""
    place = lookup(other.documents, to_column(spans.documents))
    if used is not None:
        place[np.setdiff1d(np.arange(len(place)), used)] = -1
    both = np.flatnonzero(place >= 0)
    if not len(both):
        raise InputError(
            f"No document is in both: here are {listing(spans.documents.tolist(), 3)}, and there are "
            f"{listing(other.documents.tolist(), 3)}.",
            "Check that both use the same ids.",
        )
    odd = [row for row in both.tolist() if spans.texts[row] != other.texts[place[row]]]
    if odd:
        raise InputError(
            f"In {plural(len(odd), 'document')}, such as {shorten(spans.documents[odd[0]])}, the text is not the one "
            "whose spans are known.",
            "Give both the same texts.",
        )
    return place
