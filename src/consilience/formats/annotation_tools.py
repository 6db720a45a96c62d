"""What formats of annotation tools share: JSON records with their checks, and fused spans and labels added to them.

A tool whose annotations are JSON records is a `Tool`: a class that says how a record looks. What becomes of the records
is the same for all tools, and is here: how several files belong together, how annotations become spans or a table of
answers, and how fused spans and labels are added to a copy of the file. What annotators did stays as it is in the
file; what an earlier fusion wrote is replaced.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, listing, plural, shorten, warn_of
from ..kinds.base import FUSED
from ..kinds.spans import MarkedText, Reading, Scored, Spans, collect_texts, list_texts
from . import Codec, Verdict
from .files import list_inputs, open_output
from .json_lines import Record, dump, read_records
from .reading import QUESTION, say_spans
from .writing import replace_file

Id: TypeAlias = str | int | float
# Records, each with the worker whose annotation it is, None for records that hold those of several workers.
Owned: TypeAlias = list[tuple[str | None, Record]]

_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


class NotSpans(InputError):
    """Answers about whole items where spans were expected."""


def say_nothing(path: str, tool: str) -> NoReturn:
    """Raise the error for a file without any annotation."""
    raise InputError(f"{path!r} holds no annotations ({tool}).", "Export the annotated records.")


@dataclass(frozen=True, eq=False)
class Entry:
    """A record of a file, or another place in one. Its methods return values of a record, and check them."""

    path: str
    unit: str  # "line" or "record"
    number: int  # from 1
    id: object = None  # what the record is called in the file, if it has an id
    record: Record = field(default_factory=dict)
    name: Id = ""  # the document that it is about

    def __str__(self) -> str:
        name = "" if self.id is None else f" (id {shorten(self.id)})"
        return f"{self.path}, {self.unit} {self.number}{name}"

    def fail(self, problem: str, *remedies: str) -> NoReturn:
        """Raise the error for this record. Without remedies it is one of the tool's export."""
        raise InputError(f"{self}: {problem}", *(remedies or ("Export the file again.",)))

    def get(self, record: Record, key: str, kind: type, default: Any = None) -> Any:
        """The value of a key, or `default` where it is missing or null."""
        value = record.get(key)
        return default if value is None else self.check(value, kind, repr(key))

    def need(self, record: Record, key: str, kind: type) -> Any:
        """The value of a key that must be there."""
        if record.get(key) is None:
            self.fail(f"{key!r} is missing.")
        return self.check(record[key], kind, repr(key))

    def entries(self, record: Record, key: str, kind: type) -> list[Any]:
        """The entries of the list at a key, none where it is missing or null."""
        return [self.check(each, kind, f"an entry of {key!r}") for each in self.get(record, key, list, [])]

    def check(self, value: object, kind: type, what: str) -> Any:
        """The value, which must be of this type."""
        allowed = (int, float) if kind is float else kind
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            self.fail(f"{what} must be {_NAMES[kind]}, found {shorten(value)}.")
        return value

    def check_id(self, value: object, what: str) -> Id:
        """An id: text that is not empty, or a whole number."""
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            self.fail(f"{what} must be text or a whole number, found {shorten(value)}.")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            self.fail(f"{what} is a number of more than 64 bits: {shorten(value)}.", "Write it as text.")
        return value

    def check_span(self, text: str, start: object, end: object) -> tuple[int, int]:
        """The offsets of a span, which must be within its text."""
        first: int = self.check(start, int, "the start of a span")
        last: int = self.check(end, int, "the end of a span")
        if not 0 <= first < last <= len(text):
            is_empty = "empty" if 0 <= first == last <= len(text) else "not within the text"
            self.fail(
                f"the span from {shorten(start)} to {shorten(end)} is {is_empty}, which has {len(text):,} characters.",
                "Check that the offsets belong to this text.",
            )
        return first, last

    def check_score(self, value: object) -> float | None:
        """A confidence, None if there is none."""
        if value is None:
            return None
        score: float = self.check(value, float, "a score")
        if not 0 <= score <= 1:
            self.fail(f"a score must be between 0 and 1, found {shorten(value)}.", "Correct or remove it.")
        return float(score)


def peek_record(head: bytes) -> tuple[Record, bool]:
    r"""The first record of a file, an empty one if it is longer than these first bytes, and whether it is in an array.

    >>> peek_record(b'[{"id": 1, "data": {"text": "a"}}, {"id"'), peek_record(b'{"id": 1')
    (({'id': 1, 'data': {'text': 'a'}}, True), ({}, False))
    """
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="ignore").lstrip()
    in_array = text.startswith("[")
    try:
        record, _ = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip())
    except (ValueError, RecursionError):
        record = {}
    return record if isinstance(record, dict) else {}, in_array


def as_rating(label: object, question: str) -> int:
    """A label as a rating, which tools hold as a whole number.

    >>> as_rating("4", "stars")
    4
    """
    try:
        return int(str(label))
    except ValueError:
        raise InputError(
            f"The label {shorten(label)} is no rating: the answers to {shorten(question)} are whole numbers.",
            "Name the question that the labels answer.",
        ) from None


class Annotation(NamedTuple):
    """What one worker says of one document.

    Attributes
    ----------
    worker : str or None
        None for what is known to be true.
    marks : list of dict or None
        Spans as the record has them; None where none could be marked.
    answers : dict
        The answer to each question about the whole text: a label, a list of those that were chosen, or None.
    """

    worker: str | None
    marks: list[Record] | None
    answers: dict[str, Any]


class Tool(ABC):
    """The files of an annotation tool at a path: JSON records with spans, with answers about whole texts, or both.

    Subclasses say how a record looks. An object is used for one pass over the files, and may count what it meets.

    Attributes
    ----------
    name, title : str
        The name of the format, and what messages call the tool.
    unit : str
        What holds the annotation of one worker: a "line" of a file, or a part of a "record", in which those of all
        workers are side by side.
    carries : frozenset of str
        As in `Codec`.
    path : str
        Where the files are; "" for no files, where all records that are written are new.
    unused : Counter
        How many of what was not used, and why.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str] = "record"
    carries: ClassVar[frozenset[str]] = frozenset({"confidence", "white space"})
    numbers_are_ratings: ClassVar[bool] = False  # whether labels are text, so that numbers are levels of a scale
    silence_is_empty: ClassVar[bool] = False  # whether an annotation without a choice is the empty set of them

    def __init__(self, path: str | None) -> None:
        self.path = path or ""
        self.unused: Counter[tuple[str, str]] = Counter()
        self.measured: set[str] = set()  # questions whose answers are numbers, and no ratings

    # What a tool says of its records

    @staticmethod
    @abstractmethod
    def recognise(first: Record, in_array: bool) -> bool:
        """Whether a file is one of the tool, by its first record, and whether that is in an array."""

    @abstractmethod
    def identify(self, entry: Entry) -> tuple[Id | None, object, object]:
        """The id of the document, its text or what else it is about, and where that text occurs only once."""

    @abstractmethod
    def text(self, entry: Entry) -> str | None:
        """The text in which spans are marked; None for a record in which none could be."""

    @abstractmethod
    def annotations(self, entry: Entry) -> Iterable[Annotation]:
        """What workers say in a record."""

    @abstractmethod
    def make_record(self, document: MarkedText, like: Record | None) -> Record:
        """A record of a document without annotations; where each annotation has a line, like one that there is."""

    @abstractmethod
    def add_spans(self, record: Record, document: MarkedText, reading: Reading) -> None:
        """Add the spans of a worker to a record, in place of what an earlier fusion wrote."""

    @abstractmethod
    def label(self, entry: Entry, question: str, said: Any, verdict: Verdict) -> Record:
        """A record with a fused label as the answer to a question; `said` is an answer that somebody gave."""

    # What a tool may say

    def locate(self, entry: Entry, text: str, marks: list[Record]) -> Scored:
        """Spans as the record has them, with their places in the text."""
        spans: Scored = {}
        for mark in marks:
            start, end = entry.check_span(text, entry.need(mark, "start", int), entry.need(mark, "end", int))
            spans[start, end, entry.need(mark, "label", str)] = entry.check_score(mark.get("score"))
        return spans

    def tokens(self, entry: Entry) -> list[tuple[int, int]] | None:  # noqa: ARG002
        """The places of the tokens of a text, None if the tool has none."""
        return None

    def item(self, entry: Entry) -> Id:
        """What the answers in a record are about."""
        return entry.name

    @property
    def are_sets(self) -> bool:
        """Whether the files say that answers are sets."""
        return False

    def keep(self, entry: Entry) -> Record:
        """A record as it is written beside fused results. In one file the same text is several records."""
        return {**entry.record, "id": entry.name} if len(self.files()) > 1 else entry.record

    def report(self, n_found: int) -> None:  # noqa: B027
        """Warn of what else there is than what was found, and refuse what has nothing but that."""

    def files(self) -> list[str]:
        """The files to read."""
        return list_inputs(self.path) if self.path else []

    def as_array(self, path: str) -> bool:  # noqa: ARG002
        """Whether records are written as one JSON array, not as lines."""
        return False

    def write(self, records: Owned, workers: Sequence[str], path: str) -> None:  # noqa: ARG002
        """Write all records; `workers` are those whose annotations are written."""
        as_array = self.as_array(path)
        with replace_file(path) as temporary, open_output(str(temporary)) as sink:
            sink.write(b"[" if as_array else b"")
            for number, (_, record) in enumerate(records):
                sink.write((b",\n" if number else b"\n") + dump(record) if as_array else dump(record) + b"\n")
            sink.write(b"\n]\n" if as_array else b"")

    # What is the same for all tools

    @cached_property
    def entries(self) -> list[Entry]:
        """All records, each with the document that it is about.

        Records are about the same document if they have the same id; without ids, if they have the same text. Documents
        without an id get numbers in order of appearance. Such a text that occurs several times where it should occur
        once is several documents. One id with two texts is an error.
        """
        numbers: dict[tuple[bytes, int], int] = {}
        seen: Counter[tuple[object, bytes]] = Counter()
        contents: dict[str, bytes] = {}
        entries = []
        for file in self.files():
            for unit, number, record in read_records(file):
                entry = Entry(file, unit, number, record=record)
                name, content, scope = self.identify(entry)
                entry, key = replace(entry, id=name), dump(content, sort_keys=True)
                if name is None:
                    seen[scope, key] += 1
                    name = numbers.setdefault((key, seen[scope, key]), len(numbers) + 1)
                if contents.setdefault(str(entry.check_id(name, "the id")), key) != key:
                    entry.fail(
                        f"another record has another text for the id {shorten(name)}.",
                        "Give a text the same id in all files, or leave the ids out; read files of other texts apart.",
                    )
                entries.append(replace(entry, name=name))
        return entries

    @cached_property
    def annotated(self) -> list[tuple[Entry, list[Annotation]]]:
        """All records, each with its annotations."""
        return [(entry, list(self.annotations(entry))) for entry in self.entries]

    @cached_property
    def asked(self) -> dict[str, Any]:
        """All questions that somebody answered, each with an answer."""
        every = (each.answers.items() for _, given in self.annotated for each in given)
        return {question: said for answers in every for question, said in answers if said not in (None, [])}

    def read_spans(self) -> Spans:
        """The texts, and the spans that workers marked in them."""
        texts = []
        for entry, given in self.annotated:
            text = self.text(entry)
            if text is not None:
                marked = [(each.worker, each.marks) for each in given if each.marks is not None]
                readings = [Reading(worker, self.locate(entry, text, marks)) for worker, marks in marked]
                texts.append(MarkedText(entry.name, text, readings, self.tokens(entry), entry))
        n_spans = sum(len(each.spans) for document in texts for each in document.readings)
        questions = sorted(self.asked)
        if questions and not n_spans:
            raise NotSpans(
                f"{self.path!r} holds answers about whole items ({self.title}), not spans marked in texts.",
                "Read it with consilience.read_answers.",
            )
        self._warn(n_spans)
        if not any(document.readings for document in texts):
            say_nothing(self.path, self.title)
        return replace(collect_texts(texts, (os.path.abspath(self.path), self.name)), questions=tuple(questions))

    def read_answers(self) -> pa.Table:
        """Answers as a table with columns item, worker and label, or one column per question if there are several.

        A column gold has what is known, if there is one question.
        """
        rows: list[tuple[Id, str, dict[str, Any], dict[str, Any]]] = []  # item, worker, answers, and known ones
        n_spans = 0
        for entry, given in self.annotated:
            known: dict[str, Any] = {}
            for each in given:
                n_spans += len(each.marks or ())
                for question, said in each.answers.items():
                    what = f"the answer to {shorten(question)}"
                    if isinstance(said, list):
                        each.answers[question] = [entry.check_id(label, what) for label in said]
                    elif said is not None and question not in self.measured:
                        is_whole = isinstance(said, float) and said.is_integer()
                        each.answers[question] = entry.check_id(int(said) if is_whole else said, what)
                if each.worker is None and each.answers:
                    if known not in ({}, each.answers):
                        entry.fail("two annotations are marked as ground truth, and differ.", "Keep one of them.")
                    known = each.answers
            item = self.item(entry) if given else entry.name
            rows += [(item, each.worker, each.answers, known) for each in given if each.worker is not None]
        questions = sorted(self.asked)
        if n_spans and not questions:
            say_spans(self.path, self.title)
        self._warn(len(questions))
        names = ["label"] if len(questions) == 1 else questions
        if {"item", "worker", "gold"} & set(names):
            raise InputError(f"{self.path!r} has a question called item, worker or gold.", "Rename it.")

        columns: dict[str, list[Any]] = {"item": [row[0] for row in rows], "worker": [row[1] for row in rows]}
        for question, name in zip(questions, names, strict=True):
            said = [answers.get(question) for _, _, answers, _ in rows]
            known_too = [known.get(question) for *_, known in rows]
            are_sets = self.are_sets or any(isinstance(each, list) and len(each) > 1 for each in said + known_too)
            silence: list[Id] | None = [] if self.silence_is_empty else None
            columns[name] = [_to_answer(silence if each is None else each, are_sets) for each in said]
            if len(questions) == 1 and any(each is not None for each in known_too):
                columns["gold"] = [_to_answer(each, are_sets) for each in known_too]
        answered = [row for row in range(len(rows)) if any(columns[name][row] is not None for name in names)]
        if not answered:
            say_nothing(self.path, self.title)
        arrays = {key: _make_column([values[row] for row in answered]) for key, values in columns.items()}
        for question, name in zip(questions, names, strict=True) if self.numbers_are_ratings else []:
            if question not in self.measured and pa.types.is_integer(arrays[name].type):
                levels = pc.unique(arrays[name].drop_null()).sort()
                codes = pc.index_in(arrays[name], levels)
                arrays[name] = pa.DictionaryArray.from_arrays(codes, levels, ordered=True)
        # A single question may also be called by its own name.
        return pa.table(arrays, metadata={QUESTION: questions[0]} if len(questions) == 1 else None)

    def _warn(self, n_found: int) -> None:
        self.report(n_found)
        for (noun, reason), number in (+self.unused).items():
            warn_of(f"Not used of {self.path!r}: {plural(number, noun)} ({reason}).")

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write the records that were read, with what they do not have yet of the spans of all workers."""
        documents = {str(each.name): each for each in list_texts(spans)}
        first: dict[str, Record] = {}  # a record of each document
        owners: dict[str, set[str | None]] = {}  # whose annotations of a document are in some record
        for entry, given in self.annotated:
            if self.text(entry) is not None:
                first.setdefault(str(entry.name), entry.record)
                workers = {each.worker for each in given if each.marks is not None}
                owners.setdefault(str(entry.name), set()).update(workers - {FUSED})
        new: Owned = []
        for name, document in documents.items():
            record = first.get(name)
            if self.unit == "record" and record is None:
                record = self.make_record(document, None)
                new.append((None, record))
            for reading in document.readings:
                if reading.worker in owners.get(name, ()) or (self.unit == "line" and reading.worker is None):
                    continue
                if self.unit == "line":
                    record = self.make_record(document, first.get(name))
                    new.append((reading.worker, record))
                assert record is not None
                self.add_spans(record, document, reading)
        replaced = {FUSED} & {worker for worker, _ in new}
        old = [(given[0].worker if given else None, entry) for entry, given in self.annotated]
        kept = [(worker, self.keep(entry)) for worker, entry in old if self.unit == "record" or worker not in replaced]
        self.write(kept + new, list(map(str, spans.workers.tolist())), path)

    def write_labels(self, verdicts: dict[str, Verdict], question: str | None, path: str) -> None:
        """Write the records that were read with a label for each item."""
        asked = self.asked
        if len(asked) != 1 and question not in asked:
            raise InputError(f"It is not clear which question of {self.path!r} these labels answer: {listing(asked)}.")
        about = question if question in asked else next(iter(asked))
        labelled: dict[str, Record] = {}
        kept: Owned = []
        for entry, given in self.annotated:
            is_answer = any(about in each.answers for each in given)
            item = str(self.item(entry) if is_answer else entry.name)
            if item in verdicts and (self.unit == "record" or (is_answer and item not in labelled)):
                labelled[item] = self.label(entry, about, asked[about], verdicts[item])
            worker = given[0].worker if given else None
            if self.unit == "record" or not is_answer or worker != FUSED:  # which this fusion takes the place of
                kept.append((worker, self.keep(entry)))
        lost = [item for item in verdicts if item not in labelled]
        if lost:
            raise InputError(
                f"{self.path!r} has no record of {plural(len(lost), 'item')} with a label: {listing(lost)}.",
                "Give the file that the answers were read from; fuse it again if it has changed since.",
            )
        new: Owned = [(FUSED, record) for record in labelled.values()] if self.unit == "line" else []
        self.write(kept + new, [FUSED], path)

    @classmethod
    def codec(cls) -> Codec:
        """The functions that read and write the format."""
        return Codec(
            read=lambda path, _wanted: cls(path).read_answers(),
            recognise=lambda head, _path: cls.recognise(*peek_record(head)),
            load=lambda path: cls(path).read_spans(),
            save=lambda spans, path: cls(spans.origin and spans.origin[0]).write_spans(spans, path),
            carries=cls.carries,
            write_labels=lambda verdicts, question, origin, path: cls(origin).write_labels(verdicts, question, path),
        )


def _to_answer(answer: Any, is_set: bool) -> Any:
    """An answer as a list of labels, or as a single label."""
    if is_set:
        return [answer] if isinstance(answer, (str, int)) else answer
    return next(iter(answer), None) if isinstance(answer, list) else answer


def _make_column(values: Collection[Any]) -> pa.Array:
    """A column; ids of several types become text."""
    in_lists = any(isinstance(value, list) for value in values)
    kinds = {type(each) for value in values for each in (value or () if in_lists else (value,))} - {type(None)}
    if in_lists and kinds != {int}:
        cells = [None if value is None else [str(each) for each in value] for value in values]
        return pa.array(cells, pa.list_(pa.string()))
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)
