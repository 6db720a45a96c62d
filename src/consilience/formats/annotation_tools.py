"""What formats of annotation tools share: JSON records with their checks, and fused spans and labels added to them.

A tool whose annotations are JSON records is a `Tool`: a class that says how a record looks. What becomes of the records
is the same for all tools, and is here: how several files belong together, how annotations become spans or a table of
answers, and how fused spans and labels are added to a copy of the file. What annotators did stays as it is in the
file; what an earlier fusion wrote is replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, first_line, listing, plural, shorten, warn_of
from ..kinds.base import FUSED
from ..kinds.spans import MarkedText, Reading, Scored, Spans, collect_texts, list_texts
from . import Codec, Verdict
from .files import encoding_error, list_inputs, open_input, open_output
from .writing import replace_file

Record: TypeAlias = dict[str, Any]
Id: TypeAlias = str | int | float
# Records, each with the worker whose annotation it is, None for records that hold those of several workers.
Owned: TypeAlias = Iterable[tuple[str | None, Record]]

# Under this key, the metadata of a table has the name of the question whose answers are called "label".
QUESTION = "question"
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


def say_spans(path: str, tool: str) -> NoReturn:
    """Raise the error for spans where answers were expected."""
    raise InputError(
        f"{path!r} holds spans marked in texts ({tool}), not one answer per item.",
        "Read it with consilience.read_spans, or give it to fuse without names of columns.",
    )


def say_nothing(path: str, tool: str) -> NoReturn:
    """Raise the error for a file without any annotation."""
    raise InputError(f"{path!r} holds no annotations ({tool}).", "Export the annotated records.")


# --------------------------------------------------------------------------------------------------------- JSON records


@dataclass(frozen=True)
class Place:
    """Where a record is, for messages. Its methods return values of the record, and check them."""

    path: str
    unit: str  # "line" or "record"
    number: int  # from 1
    id: object = None  # what the record is called in the file, if it has an id

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

    def check_answer(self, value: object, question: str) -> Id | list[Id] | None:
        """The answer to a question: one label, a list of labels, or None."""
        what = f"the answer to {shorten(question)}"
        if value is None:
            return None
        if isinstance(value, list):
            return [self.check_id(each, what) for each in value]
        return self.check_id(int(value) if isinstance(value, float) and value.is_integer() else value, what)

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


@dataclass(frozen=True, eq=False)
class Entry(Place):
    """A record of a file, and the document that it is about."""

    record: Record = field(default_factory=dict)
    name: Id = ""


def read_whole_text(path: str) -> str:
    """All text of a file, which may be compressed, without a byte order mark."""
    try:
        with open_input(path) as stream:
            return str(stream.read(), "utf-8-sig")
    except UnicodeDecodeError as error:
        raise encoding_error(path) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the file.") from error


def read_records(path: str) -> Iterator[Entry]:
    """Yield the objects of a JSON array, of JSON lines, or a single object."""
    text = read_whole_text(path)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError(f"{path!r} is empty.", "Export it again.")
    is_array = text.lstrip().startswith("[")
    has_halves = "\\ud" in text or "\\uD" in text  # perhaps half of a surrogate pair
    for number, line in [(1, text)] if is_array or not lines[0][1].rstrip().endswith("}") else lines:
        place = Entry(path, "line", number)
        try:
            found = json.loads(line)
        except RecursionError:
            place.fail("brackets are nested too deeply.")
        except ValueError as error:
            why = shorten(str(error), 100)
            place.fail(f"not valid JSON ({why}).", "The file may be damaged or cut off: export it again.")
        for count, record in enumerate(found if is_array else [found], 1):
            entry = Entry(path, "record", count) if is_array else place
            if not isinstance(record, dict):
                entry.fail(f"expected a JSON object, found {shorten(record)}.")
            try:
                if has_halves:
                    json.dumps(record, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                entry.fail("some text has half of a surrogate pair, which is no character.")
            yield replace(entry, record=record)


def write_records(records: Iterable[Record], path: str, as_array: bool = False) -> None:
    """Write records to a file: as JSON lines, or as a JSON array with one record per line."""
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        sink.write(b"[" if as_array else b"")
        for number, record in enumerate(records):
            sink.write((b",\n" if number else b"\n") + _dump(record) if as_array else _dump(record) + b"\n")
        sink.write(b"\n]\n" if as_array else b"")


def _dump(value: object, **options: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, **options).encode()
    except (RecursionError, UnicodeEncodeError, TypeError) as error:
        raise InputError(f"A record cannot be written as JSON: {first_line(error)}.", "Check its text.") from error


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


# ---------------------------------------------------------------------------------- the file that spans were read from


def origin_of(spans: Spans, format: str) -> str | None:
    """The path that spans were read from, if that was in the format of this name."""
    return spans.origin[0] if spans.origin is not None and spans.origin[1] == format else None


def check_unchanged(place: Place, text: str, known: str) -> None:
    """Raise an error if a record has another text than the one that was read."""
    if text != known:
        place.fail(
            f"the file has changed since it was read: the text is now {shorten(text)}.", "Read and fuse the file again."
        )


def check_all_found(origin: str | None, documents: Iterable[str], found: Collection[object]) -> None:
    """Raise an error if some documents are no longer in the file that they were read from."""
    lost = [name for name in documents if name not in found]
    if origin and lost:
        raise InputError(
            f"{origin!r} has changed since it was read: it has no document {listing(lost)}.",
            "Read and fuse the file again.",
        )


# ----------------------------------------------------------------------------------------------------------- JSON tools


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
        found: Scored = {}
        for mark in marks:
            start, end = entry.check_span(text, entry.need(mark, "start", int), entry.need(mark, "end", int))
            found[start, end, entry.need(mark, "label", str)] = entry.check_score(mark.get("score"))
        return found

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
        write_records((record for _, record in records), path, self.as_array(path))

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
        for entry in (entry for file in self.files() for entry in read_records(file)):
            name, content, scope = self.identify(entry)
            entry = replace(entry, id=name)
            key = hashlib.blake2b(_dump(content, sort_keys=True), digest_size=16).digest()
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

    def read_answers(self, wanted: Collection[str] | None) -> pa.Table:
        """Answers as a table with columns item, worker and label, or one column per question if there are several."""
        said: list[tuple[Id, str, dict[str, Any], dict[str, Any]]] = []  # item, worker, answers, and known ones
        sets, n_spans = set[str](), 0
        for entry, given in self.annotated:
            known: dict[str, Any] = {}
            for each in given:
                n_spans += len(each.marks or ())
                for question, answer in each.answers.items():
                    each.answers[question] = entry.check_answer(answer, question)
                    if isinstance(answer, list) and len(answer) > 1:
                        sets.add(question)
                if each.worker is None and each.answers:
                    if known not in ({}, each.answers):
                        entry.fail("two annotations are marked as ground truth, and differ.", "Keep one of them.")
                    known = each.answers
            item = self.item(entry) if given else entry.name
            said += [(item, each.worker, each.answers, known) for each in given if each.worker is not None]
        questions = sorted(self.asked)
        if n_spans and not questions:
            say_spans(self.path, self.title)
        self._warn(len(questions))
        if self.are_sets:
            sets.update(questions)
        names = ["label"] if len(questions) == 1 else questions
        if {"item", "worker", "gold"} & set(names):
            raise InputError(f"{self.path!r} has a question called item, worker or gold.", "Rename it.")

        def settle(question: str, answer: Any) -> Any:  # as a list where answers are sets, else as one label
            if question in sets:
                return answer if isinstance(answer, (list, type(None))) else [answer]
            return next(iter(answer), None) if isinstance(answer, list) else answer

        rows = []
        for item, worker, answers, known in said:
            given_answers = [answers.get(question) for question in questions]
            if self.silence_is_empty:
                given_answers = [[] if answer is None else answer for answer in given_answers]
            settled = [settle(*each) for each in zip(questions, given_answers, strict=True)]
            if any(each is not None for each in settled):
                gold = settle(questions[0], known.get(questions[0])) if len(questions) == 1 else None
                rows.append((item, worker, gold, *settled))
        if not rows:
            say_nothing(self.path, self.title)
        columns = dict(zip(["item", "worker", "gold", *names], map(list, zip(*rows, strict=True)), strict=True))
        if all(each is None for each in columns["gold"]):
            del columns["gold"]
        chosen = {name: _make_column(values) for name, values in columns.items() if wanted is None or name in wanted}
        if self.numbers_are_ratings:
            chosen |= {name: _to_levels(chosen[name]) for name in names if name in chosen}
        # A single question may also be called by its own name.
        return pa.table(chosen, metadata={QUESTION: questions[0]} if len(questions) == 1 else None)

    def _warn(self, n_found: int) -> None:
        self.report(n_found)
        for (noun, reason), number in (+self.unused).items():
            warn_of(f"Not used of {self.path!r}: {plural(number, noun)} ({reason}).")

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write the records that were read, with what they do not have yet of the spans of all workers."""
        documents = {str(each.name): each for each in list_texts(spans)}
        self.write(self._marked_records(documents), list(map(str, spans.workers.tolist())), path)

    def _marked_records(self, documents: dict[str, MarkedText]) -> Iterator[tuple[str | None, Record]]:
        models: dict[str, Entry] = {}  # a record of each document
        owners: dict[str, set[str | None]] = {}  # whose annotations of a document are in some record
        for entry, given in self.annotated:
            name, text = str(entry.name), self.text(entry)
            if text is not None:
                models.setdefault(name, entry)
                owners.setdefault(name, set()).update(each.worker for each in given if each.marks is not None)
                if name in documents:
                    check_unchanged(entry, text, documents[name].text)
        check_all_found(self.path, documents, models)
        added: list[Record] = []
        fresh = {
            name: [each for each in document.readings if each.worker not in owners.get(name, set()) - {FUSED}]
            for name, document in documents.items()
        }
        if self.unit == "line":
            is_fused = any(each.worker == FUSED for readings in fresh.values() for each in readings)
            for entry, given in self.annotated:
                worker = given[0].worker if given else None
                if worker != FUSED or not is_fused:
                    yield worker, self.keep(entry)
            for name, document in documents.items():
                like = models[name].record if name in models else None
                for reading in fresh[name]:
                    if reading.worker is not None:
                        record = self.make_record(document, like)
                        self.add_spans(record, document, reading)
                        yield reading.worker, record
            return
        for name, document in documents.items():
            record = models[name].record if name in models else self.make_record(document, None)
            for reading in fresh[name]:
                self.add_spans(record, document, reading)
            if name not in models:
                added.append(record)
        yield from ((None, self.keep(entry)) for entry in self.entries)
        yield from ((None, record) for record in added)

    def write_labels(self, verdicts: dict[str, Verdict], question: str | None, path: str) -> None:
        """Write the records that were read with a label for each item."""
        asked = self.asked
        if len(asked) != 1 and question not in asked:
            raise InputError(f"It is not clear which question of {self.path!r} these labels answer: {listing(asked)}.")
        answered = question if question in asked else next(iter(asked))
        self.write(self._labelled_records(verdicts, answered), [FUSED], path)

    def _labelled_records(self, verdicts: dict[str, Verdict], question: str) -> Iterator[tuple[str | None, Record]]:
        labelled: dict[str, Record] = {}
        for entry, given in self.annotated:
            is_answer = any(question in each.answers for each in given)
            item = str(self.item(entry) if is_answer else entry.name)
            if item in verdicts and (self.unit == "record" or (is_answer and item not in labelled)):
                labelled[item] = self.label(entry, question, self.asked[question], verdicts[item])
            worker = given[0].worker if given else None
            if self.unit == "record" or not is_answer or worker != FUSED:  # which this fusion takes the place of
                yield worker, self.keep(entry)
        lost = [item for item in verdicts if item not in labelled]
        if lost:
            raise InputError(
                f"{self.path!r} has no record of {plural(len(lost), 'item')} with a label: {listing(lost)}.",
                "Give the file that the answers were read from; fuse it again if it has changed since.",
            )
        if self.unit == "line":
            yield from ((FUSED, record) for record in labelled.values())

    @classmethod
    def codec(cls) -> Codec:
        """The functions that read and write the format."""
        return Codec(
            read=lambda path, wanted: cls(path).read_answers(wanted),
            recognise=lambda head, path: cls.recognise(*peek_record(head)),  # noqa: ARG005
            read_spans=lambda path: cls(path).read_spans(),
            write_spans=lambda spans, path: cls(origin_of(spans, cls.name)).write_spans(spans, path),
            carries=cls.carries,
            write_labels=lambda verdicts, question, origin, path: cls(origin).write_labels(verdicts, question, path),
        )


def _make_column(values: Sequence[Any]) -> pa.Array:
    """A column; ids of several types become text."""
    in_lists = any(isinstance(value, list) for value in values)
    kinds = {type(each) for value in values for each in (value or () if in_lists else (value,))} - {type(None)}
    if in_lists and kinds != {int}:
        cells = [None if value is None else [str(each) for each in value] for value in values]
        return pa.array(cells, pa.list_(pa.string()))
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)


def _to_levels(values: pa.Array) -> pa.Array:
    """Whole numbers as ordered categories; other columns as they are."""
    if not pa.types.is_integer(values.type):
        return values
    levels = pc.unique(values.drop_null()).sort()
    return pa.DictionaryArray.from_arrays(pc.index_in(values, levels), levels, ordered=True)
