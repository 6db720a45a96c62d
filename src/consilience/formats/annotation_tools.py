"""What formats of annotation tools share: annotations per document, fused labels, and records of JSON.

A tool that keeps its annotations as JSON records is a `JsonTool`: a class that says how the records look. Reading,
writing, and what is kept beside the annotations are the same for all of them.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import Values
from ..errors import DataWarning, InputError, listing, plural, shorten, warn
from ..tasks.spans import SpanCollector, Spans
from ..tasks.texts import Marks, Origin
from . import Codec, Verdict, Verdicts
from .files import list_inputs
from .records import Entry, Id, Identity, Place, Record, plain, read_documents

Span: TypeAlias = tuple[int, int, str]
# The spans of one annotation, each with its score, None where it has none.
Scored: TypeAlias = dict[Span, float | None]
# Under this key, the metadata of a table has the name of the question whose answers are called "label".
QUESTION = "question"
_AGAIN = "Read and fuse the file again."


@dataclass(frozen=True)
class Reading:
    """One worker's annotation of one document, as it is written to a file."""

    worker: str | int | float
    spans: list[Span]
    confidence: list[float] | None = None

    @property
    def scores(self) -> list[float | None]:
        """The confidence of each span, None where there is none."""
        return [None] * len(self.spans) if self.confidence is None else list(self.confidence)

    @property
    def score(self) -> float | None:
        """The mean confidence; None where there is none. Where there are no spans, there is nothing to doubt: 1."""
        if self.confidence is None:
            return None
        return sum(self.confidence) / len(self.confidence) if self.confidence else 1.0


# ---------------------------------------------------------------------------------------------------------- annotations


def list_readings(spans: Spans) -> list[list[Reading]]:
    """Return the annotations of each document, in order of workers."""
    found: dict[tuple[int, int], tuple[list[Span], list[float]]] = {
        (document, worker): ([], []) for document, worker in spans.readings.tolist()
    }
    is_judged = _find_judges(spans)
    for key, span, confidence in _rows(spans.marks, spans.labels):
        marks, scores = found[key]
        marks.append(span)
        scores.append(confidence)
    workers = [plain(worker) for worker in spans.workers.tolist()]
    readings: list[list[Reading]] = [[] for _ in spans.documents]
    for (document, worker), (marks, scores) in found.items():
        is_known = is_judged[worker] and not any(map(math.isnan, scores))
        readings[document].append(Reading(workers[worker], marks, scores if is_known else None))
    return readings


def _find_judges(spans: Spans) -> list[bool]:
    """Tell for each worker whether their spans have a confidence; where all spans have one, for all workers."""
    known = spans.marks.confidence
    if known is None or not np.isnan(known).any():
        return [known is not None] * len(spans.workers)
    n_known = np.bincount(spans.marks.worker[~np.isnan(known)], minlength=len(spans.workers))
    return [bool(number) for number in n_known]


def list_gold(spans: Spans) -> dict[int, list[Span]]:
    """Return the known spans of each document that has them."""
    known: dict[int, list[Span]] = {document: [] for document in spans.gold_documents.tolist()}
    if spans.gold is not None:
        for (document, _), span, _ in _rows(spans.gold, spans.labels):
            known[document].append(span)
    return known


def _rows(marks: Marks, labels: Values) -> Iterable[tuple[tuple[int, int], Span, float]]:
    names = [str(plain(label)) for label in labels.tolist()]
    confidence = [1.0] * len(marks.start) if marks.confidence is None else marks.confidence.tolist()
    columns = (marks.document, marks.worker, marks.start, marks.end, marks.label)
    for row, score in zip(zip(*(column.tolist() for column in columns), strict=True), confidence, strict=True):
        document, worker, start, end, label = row
        yield (document, worker), (start, end, names[label]), score


def index_documents(spans: Spans) -> dict[Id, int]:
    """Return the index of each document by its id."""
    return {name: index for index, name in enumerate(spans.documents.tolist())}


def token_places(spans: Spans, document: int) -> list[tuple[int, int]] | None:
    """Return (start, end) of the tokens of a document, None if there are none."""
    if spans.tokens is None:
        return None
    first, last = spans.tokens.offsets[document : document + 2]
    return list(zip(spans.tokens.start[first:last].tolist(), spans.tokens.end[first:last].tolist(), strict=True))


def origin_of(spans: Spans, name: str) -> str | None:
    """Return the path that spans were read from, if that was in the format of this name."""
    return spans.origin.path if spans.origin is not None and spans.origin.format == name else None


def check_unchanged(place: Place, text: str, known: str) -> None:
    """Raise an error if a record has another text than the one that was read."""
    if text != known:
        place.fail(f"the file has changed since it was read: the text is now {shorten(text)}.", _AGAIN)


def check_all_found(origin: str | None, documents: Iterable[object], found: Collection[object] = ()) -> None:
    """Raise an error if some documents are no longer in the file that they were read from."""
    lost = [name for name in documents if name not in found]
    if origin is not None and lost:
        raise InputError(f"{origin!r} has changed since it was read: it has no document {listing(lost)}.", _AGAIN)


def finish(collector: SpanCollector, path: str, name: str, questions: Iterable[str] = ()) -> Spans:
    """Return what a reader collected, and which questions about whole texts it met; an error names the file."""
    try:
        return replace(collector.finish(Origin(os.path.abspath(path), name)), questions=tuple(sorted(set(questions))))
    except InputError as error:
        raise InputError(f"{path}: {error.problem}", *error.remedies) from error


# ------------------------------------------------------------------------------------------------------------- messages


def say_spans(path: str, tool: str) -> NoReturn:
    """Raise the error for spans where answers were expected."""
    raise InputError(
        f"{path!r} holds spans marked in texts ({tool}), not one answer per item.",
        "Read it with consilience.read_spans, or give it to fuse without names of columns.",
    )


class NotSpans(InputError):
    """Answers about whole items where spans were expected."""


def say_nothing(path: str, tool: str) -> NoReturn:
    """Raise the error for a file without any annotation."""
    raise InputError(f"{path!r} holds no annotations ({tool}).", "Export the annotated records.")


# ----------------------------------------------------------------------------------------------------------- JSON tools


class Answer(NamedTuple):
    """What a worker says of a whole document: the answer to each question, and perhaps the known one.

    Where several labels can be chosen, an answer is a list of them. See `settle_sets` for what becomes of lists.
    """

    item: Any
    worker: str
    given: dict[str, Id | list[Id]]
    gold: Id | list[Id] | None = None


class JsonTool(ABC):
    """The files of an annotation tool at a path: JSON records with spans, with answers about whole texts, or both.

    Subclasses say how the records of a tool look. An object is used for one pass over the files, and may count what it
    meets.

    Attributes
    ----------
    name, title : str
        The name of the format, and what messages call the tool.
    carries : frozenset of str
        As in `Codec`.
    path : str or None
        Where the files are. None stands for no files: all records that are written are new.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    carries: ClassVar[frozenset[str]] = frozenset({"confidence", "white space"})
    numbers_are_ratings: ClassVar[bool] = False  # whether labels are text, so that numbers are levels of a scale
    silence_is_empty: ClassVar[bool] = False  # whether an annotation without a choice is the empty set of them

    def __init__(self, path: str | None) -> None:
        self.path = path or ""
        self.origin = path
        self.questions: set[str] = set()  # about whole texts, that were met while spans were read
        self.n_spans = 0  # that were met while answers were read
        self.are_sets = False  # whether the file says that lists of labels are sets

    @staticmethod
    @abstractmethod
    def recognise(head: bytes, path: str) -> bool:
        """Tell whether the first bytes of a file are those of the tool's."""

    @abstractmethod
    def identify(self, place: Place, record: Record, file: str) -> Identity:
        """Return what says which document a record is about."""

    @abstractmethod
    def text(self, entry: Entry) -> str:
        """Return the text in which spans of a record are marked."""

    @abstractmethod
    def readings(self, entry: Entry) -> Iterator[tuple[str | None, Scored]]:
        """Yield the spans of each annotation in a record, with the worker, or None if they are known to be true."""

    @abstractmethod
    def answers(self, entry: Entry) -> Iterable[Answer]:
        """Return the answers in a record."""

    @abstractmethod
    def write_spans(self, spans: Spans, path: str) -> None:
        """Write what was read with the spans of all workers in it."""

    @abstractmethod
    def write_labels(self, verdicts: Verdicts, path: str) -> None:
        """Write what was read with a label for each item."""

    def files(self) -> list[str]:
        """Return the files to read."""
        return [] if self.origin is None else list_inputs(self.path)

    @cached_property
    def is_spread(self) -> bool:
        """Whether the records are in several files."""
        return len(self.files()) > 1

    def entries(self) -> Iterator[Entry]:
        """Yield all records."""
        return read_documents(self.files(), self.identify)

    def tokens(self, entry: Entry) -> list[tuple[int, int]] | None:  # noqa: ARG002
        """Return the places of the tokens of a text, None if the tool has none."""
        return None

    def is_marked(self, entry: Entry) -> bool:  # noqa: ARG002
        """Tell whether a record is one of marking spans."""
        return True

    def say_spans(self) -> NoReturn:
        """Raise the error for spans where answers were expected."""
        say_spans(self.path, self.title)

    def say_answers(self) -> NoReturn:
        """Raise the error for answers where spans were expected."""
        raise NotSpans(
            f"{self.path!r} holds answers about whole items ({self.title}), not spans marked in texts.",
            "Read it with consilience.read_answers.",
        )

    def say_nothing(self) -> NoReturn:
        """Raise the error for files without any annotation."""
        say_nothing(self.path, self.title)

    def warn_dropped(self, number: int, noun: str, reason: str) -> None:
        """Warn that some annotations were not used, if there are any."""
        if number:
            verb = "was" if number == 1 else "were"
            warn(DataWarning(f"{plural(number, noun)} in {self.path!r} {verb} not used ({reason})."))

    def check_spans(self, n_readings: int, n_spans: int) -> None:  # noqa: B027
        """Warn of what was not read with the spans; raise an error if there is nothing but that."""

    def check_answers(self, answers: list[Answer]) -> list[Answer]:
        """Return all answers, after a warning of what was not read with them, or an error if there is only that."""
        if self.n_spans and not answers:
            self.say_spans()
        return answers

    def read_spans(self) -> Spans:
        """Return the texts, and the spans that workers marked in them."""
        collector = SpanCollector()
        documents: dict[Any, tuple[int, str]] = {}
        truths: dict[int, set[Span]] = {}
        n_readings = n_spans = 0
        for entry in self.entries():
            if not self.is_marked(entry):
                continue
            text = self.text(entry)
            if entry.name not in documents:
                documents[entry.name] = collector.add_document(entry.name, text, self.tokens(entry)), text
            document, known = documents[entry.name]
            if known != text:
                entry.place.fail(f"another line has another text for the input {shorten(entry.name)}.")
            for worker, spans in self.readings(entry):
                n_spans += len(spans)
                if worker is not None:
                    n_readings += 1
                    scores = [score for score in spans.values() if score is not None]
                    collector.add_reading(document, worker, spans, scores if len(scores) == len(spans) > 0 else None)
                elif document not in truths:
                    truths[document] = set(spans)
                    collector.add_gold(document, spans)
                elif truths[document] != set(spans):
                    entry.place.fail("two annotations are marked as ground truth, and differ.", "Keep one of them.")
        self.check_spans(n_readings, n_spans)
        return finish(collector, self.path, self.name, self.questions)

    def read(self, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
        """Return answers as a table with columns item, worker and label, or one column per question if several."""
        answers = self.check_answers([answer for entry in self.entries() for answer in self.answers(entry)])
        answers = settle_sets(answers, self.are_sets, self.silence_is_empty)
        questions = sorted({question for answer in answers for question in answer.given})
        if not questions:
            self.say_nothing()
        taken = {"item", "worker", "gold"} & set(questions) if len(questions) > 1 else set()
        if taken:
            raise InputError(f"{self.path!r} has a question called {listing(taken)}.", "Rename it.")
        columns = {"item": [each.item for each in answers], "worker": [each.worker for each in answers]}
        for name in questions:
            columns["label" if len(questions) == 1 else name] = [each.given.get(name) for each in answers]
        if len(questions) == 1 and any(each.gold is not None for each in answers):
            columns["gold"] = [each.gold for each in answers]
        # A single question may also be called by its own name.
        metadata = {QUESTION: questions[0]} if len(questions) == 1 else None
        chosen = {name: _to_array(values) for name, values in columns.items() if wanted is None or name in wanted}
        if self.numbers_are_ratings:
            chosen |= {name: _to_levels(chosen[name]) for name in chosen.keys() - {"item", "worker", "gold"}}
        return pa.table(chosen, metadata=metadata), list(columns)

    @classmethod
    def codec(cls) -> Codec:
        """Return the functions that read and write the format."""

        def write_spans(spans: Spans, path: str) -> None:
            cls(origin_of(spans, cls.name)).write_spans(spans, path)

        return Codec(
            read=lambda path, wanted: cls(path).read(wanted),
            recognise=cls.recognise,
            read_spans=lambda path: cls(path).read_spans(),
            write_spans=write_spans,
            carries=cls.carries,
            write_labels=lambda verdicts, origin, path: cls(origin).write_labels(verdicts, path),
        )


def settle_sets(answers: list[Answer], are_sets: bool = False, silence_is_empty: bool = False) -> list[Answer]:
    """Return answers with lists only for questions to which some answer is a list of several labels, or `are_sets`.

    Lists of one label are this label for other questions, and empty ones no answer. Where a question is one about sets,
    all answers to it are lists, and no answer may be an empty one.

    >>> said = [Answer(1, "ann", {"q": ["x"]}), Answer(1, "bob", {"q": []})]
    >>> settle_sets(said), settle_sets([*said, Answer(2, "ann", {"q": ["x", "y"]})])[:2] == said
    ([Answer(item=1, worker='ann', given={'q': 'x'}, gold=None)], True)
    """
    sets = {question for each in answers for question, said in each.given.items() if are_sets or are_several(said)}
    sets |= {question for each in answers if are_several(each.gold) for question in each.given}
    settled = []
    for each in answers:
        given: dict[str, Id | list[Id]] = {question: [] for question in sets if silence_is_empty}
        for question, said in each.given.items():
            if question in sets:
                given[question] = said if isinstance(said, list) else [said]
            elif said != []:
                given[question] = said[0] if isinstance(said, list) else said
        gold = each.gold[0] if isinstance(each.gold, list) and len(each.gold) == 1 and not sets else each.gold
        gold = [gold] if sets and gold is not None and not isinstance(gold, list) else gold
        if given:
            settled.append(each._replace(given=given, gold=gold))
    return settled


def are_several(said: object) -> bool:
    """Tell whether an answer is a list of several labels."""
    return isinstance(said, list) and len(said) > 1


def _to_array(values: list[Any]) -> pa.Array:
    """Return a column; ids of several types become text."""
    if any(isinstance(value, list) for value in values):
        kinds = {type(each) for value in values for each in value or ()}
        cells = [None if value is None else [str(each) for each in value] for value in values]
        return pa.array(cells if kinds != {int} else values, pa.list_(pa.int64() if kinds == {int} else pa.string()))
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)


def _to_levels(values: pa.Array) -> pa.Array:
    """Return whole numbers as ordered categories; other columns as they are."""
    if not pa.types.is_integer(values.type):
        return values
    levels = pc.unique(values.drop_null()).sort()
    return pa.DictionaryArray.from_arrays(pc.index_in(values, levels), levels, ordered=True)


def as_rating(label: object, question: str) -> int:
    """Return a label as a rating, which tools hold as a whole number.

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


class SharedRecords(JsonTool):
    """A tool in whose records the annotations of all workers are side by side."""

    @abstractmethod
    def workers(self, entry: Entry) -> set[str]:
        """Return who annotated a record with spans."""

    @abstractmethod
    def new_record(self, name: Id, text: str) -> Record:
        """Return a record without annotations."""

    @abstractmethod
    def update(self, place: Place, record: Record, text: str, readings: list[Reading]) -> None:
        """Put the spans of some workers into a record."""

    @abstractmethod
    def add_label(self, entry: Entry, verdict: Verdict) -> None:
        """Put a fused label into a record."""

    def updated_records(self, spans: Spans) -> Iterator[Record]:
        """Yield the original records with the spans in place, then those of documents that there are no records of."""
        readings, indices, gold = list_readings(spans), index_documents(spans), list_gold(spans)
        left, known = dict(indices), dict[Id, set[str]]()
        for entry in self.entries():
            known.setdefault(entry.name, set()).update(self.workers(entry))
        for entry in self.entries():
            place, name, _, record = entry
            index = indices.get(name)
            if index is not None:
                check_unchanged(place, self.text(entry), spans.texts[index])
                # Workers who have an annotation in another record of the document get none here.
                others = known[name] - self.workers(entry)
                chosen = [each for each in readings[index] if str(each.worker) not in others]
                known[name].update(str(each.worker) for each in chosen)
                self.update(place, record, spans.texts[index], chosen)
                left.pop(name, None)
            # In one file the same text is several records.
            yield {**record, "id": plain(name)} if self.is_spread else record
        check_all_found(self.origin, left)
        for name, index in left.items():
            record = self.new_record(name, spans.texts[index])
            self.update(Place("", "record", index + 1), record, spans.texts[index], readings[index])
            if index in gold:
                self.add_truth(name, record, spans.texts[index], gold[index])
            yield record

    def add_truth(self, name: Id, record: Record, text: str, spans: list[Span]) -> None:
        """Put the known spans of a document into a new record, where the tool has a place for them."""

    def labelled_records(self, verdicts: Verdicts) -> Iterator[Record]:
        """Yield all records, with a label for each item."""
        written: set[str] = set()
        for entry in self.entries():
            verdict = verdicts.find(entry.name)
            written.add(str(entry.name))
            if verdict is not None:
                self.add_label(entry, verdict)
            yield entry.record
        verdicts.check_written(self.path, written)
