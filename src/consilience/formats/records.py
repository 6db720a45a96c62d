r"""Records of annotation tools: JSON objects read one by one from an array, or from lines.

The text of a file is in memory, and one record at a time as Python objects. Every fault is an `InputError` that says
in which file and record it is: another encoding, a document that is cut off, a value of another type.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast, overload

import pyarrow as pa

from ..errors import InputError, first_line, shorten
from .files import encoding_error, open_input, open_output
from .writing import replace_file

Record: TypeAlias = dict[str, Any]
Id: TypeAlias = str | int
T = TypeVar("T")

_AGAIN = "Export the file again."
_BLANKS = re.compile(r"[ \t\r\n]*")
_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


@dataclass(frozen=True)
class Place:
    """Where a record is, for messages."""

    path: str
    unit: str  # "line" or "record"
    number: int  # from 1
    name: object = None  # what the record is called in the file, if it has an id

    def __str__(self) -> str:
        name = "" if self.name is None else f" (id {shorten(self.name)})"
        return f"{self.path}, {self.unit} {self.number}{name}"

    def fail(self, problem: str, *remedies: str) -> NoReturn:
        """Raise the error for this record. Without remedies it is one of the tool's export."""
        raise InputError(f"{self}: {problem}", *(remedies or (_AGAIN,)))

    @overload
    def get(self, record: Record, key: str, kind: type[T], default: T) -> T: ...

    @overload
    def get(self, record: Record, key: str, kind: type[T]) -> T | None: ...

    def get(self, record: Record, key: str, kind: type[T], default: T | None = None) -> T | None:
        """Return the value of a key, or `default` where it is missing or null; one of another type is an error."""
        value = record.get(key)
        return default if value is None else self.check(value, kind, repr(key))

    def need(self, record: Record, key: str, kind: type[T], what: str = "") -> T:
        """Return the value of a key that must be there."""
        value = record.get(key)
        if value is None:
            self.fail(f"{what}{key!r} is missing.")
        return self.check(value, kind, f"{what}{key!r}")

    def check(self, value: object, kind: type[T], what: str) -> T:
        """Return a value, after a check of its type."""
        allowed = (int, float) if kind is float else kind
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            self.fail(f"{what} must be {_NAMES[kind]}, found {shorten(value)}.")
        return cast(T, value)

    def check_all(self, values: object, kind: type[T], what: str) -> list[T]:
        """Return a list, after a check of the type of its entries."""
        return [self.check(value, kind, f"an entry of {what}") for value in self.check(values, list, what)]

    def entries(self, record: Record, key: str, kind: type[T]) -> list[T]:
        """Return the list at a key, empty where it is missing or null, after a check of the type of its entries."""
        return self.check_all(self.get(record, key, list, []), kind, repr(key))

    def check_id(self, value: object, what: str) -> Id:
        """Return an id: text that is not empty, or a whole number."""
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            self.fail(f"{what} must be text or a whole number, found {shorten(value)}.")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            self.fail(f"{what} is a number of more than 64 bits: {shorten(value)}.", "Write it as text.")
        return value

    def check_span(self, text: str, start: object, end: object) -> None:
        """Raise an error unless a span is within its text, and not empty."""
        start, end = self.check(start, int, "the start of a span"), self.check(end, int, "the end of a span")
        if 0 <= start == end <= len(text):
            self.fail(f"the span from {start} to {end} is empty.", "Correct it, or leave it out.")
        if not 0 <= start < end <= len(text):
            self.fail(
                f"the span from {shorten(start)} to {shorten(end)} is not within the text, which has {len(text):,} "
                "characters.",
                "Check that the offsets belong to this text.",
            )

    def check_score(self, value: object) -> float | None:
        """Return a confidence, None if there is none."""
        if value is not None and not 0 <= self.check(value, float, "a score") <= 1:
            self.fail(f"a score must be between 0 and 1, found {shorten(value)}.", "Correct or remove it.")
        return None if value is None else float(cast(float, value))


def read_records(path: str) -> Iterator[tuple[Place, Record]]:
    """Yield the objects of a JSON array, of JSON lines, or a single object, each with its place."""
    try:
        with open_input(path) as stream:
            text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise encoding_error(path) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the file.") from error

    def skip(at: int) -> int:
        return _BLANKS.match(text, at).end()  # type: ignore[union-attr] # it matches anything

    decode = json.JSONDecoder().raw_decode
    at, line = skip(0), 1 + text.count("\n", 0, skip(0))
    if at == len(text):
        raise InputError(f"{path!r} is empty.", "Export it again.")
    is_array = text[at] == "["
    at = skip(at + 1) if is_array else at
    for number in itertools.count(1):
        if text[at : at + 1] == ("]" if is_array else ""):
            return
        place = Place(path, "record", number) if is_array else Place(path, "line", line)
        try:
            record, end = decode(text, at)
        except RecursionError:
            place.fail("brackets are nested too deeply.")
        except ValueError as error:
            why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            place.fail(f"not valid JSON ({shorten(why, 100)}).", "The file may be damaged or cut off: export it again.")
        if not isinstance(record, dict):
            place.fail(f"expected a JSON object, found {shorten(record)}.")
        if text.find("\\ud", at, end) >= 0 or text.find("\\uD", at, end) >= 0:
            _check_unicode(record, place)
        yield place, record
        line, at = line + text.count("\n", at, skip(end)), skip(end)
        if is_array:
            if text[at : at + 1] not in (",", "]"):
                problem = "a comma is missing" if at < len(text) else "the file ends in the middle of a list"
                place.fail(f"after this record {problem}.", "The file may be cut off: export it again.")
            if text[at] == "]":
                if skip(at + 1) < len(text):
                    place.fail("there is text after the end of the list.")
                return
            at = skip(at + 1)


def _check_unicode(record: Record, place: Place) -> None:
    """Raise an error if some text has half of a character, which no file could hold."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        place.fail("some text has half of a surrogate pair, which is no character.")


def _dump(value: Record) -> bytes:
    """Return a value as JSON in UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode()
    except (RecursionError, UnicodeEncodeError, TypeError) as error:
        raise InputError(f"A record cannot be written as JSON: {first_line(error)}.", "Check its text.") from error


def write_records(records: Iterable[Record], path: str, as_array: bool = False) -> None:
    """Write records to a file: as JSON lines, or as a JSON array with one record per line."""
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        sink.write(b"[" if as_array else b"")
        for number, record in enumerate(records):
            line = _dump(record)
            sink.write(b"," * (number > 0) + b"\n" + line if as_array else line + b"\n")
        sink.write(b"\n]\n" if as_array else b"")


def peek_record(head: bytes) -> Record:
    r"""Return the first record of a file, of which these are the first bytes; an empty one if it is longer.

    >>> peek_record(b'[{"id": 1, "data": {"text": "a"}}, {"id"'), peek_record(b'{"id": 1')
    ({'id': 1, 'data': {'text': 'a'}}, {})
    """
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="ignore").lstrip().removeprefix("[").lstrip()
    try:
        record, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def is_array(head: bytes) -> bool:
    """Tell whether a file begins as a JSON array."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


class Identity(NamedTuple):
    """What says which document a record is about.

    Attributes
    ----------
    name : str, int or None
        Its id, None if it has none.
    content : object
        Its text, or whatever else it is about, as JSON holds it.
    scope : object
        Where a document occurs only once, such as the file or the worker.
    """

    name: Any
    content: object
    scope: object


class Entry(NamedTuple):
    """A record of a file: its place, the document that it is about, the file, and what it says."""

    place: Place
    name: Any
    file: str
    record: Record


def read_documents(files: Iterable[str], identify: Callable[[Place, Record, str], Identity]) -> Iterator[Entry]:
    """Yield the records of several files, each with the document that it is about.

    Records are about the same document if they have the same id; without ids, if they have the same text. Documents
    without an id get numbers in order of appearance. Such a text that occurs several times in one scope is several
    documents. One id with two texts is an error.
    """
    numbers: dict[tuple[bytes, int], int] = {}
    seen: dict[tuple[object, bytes], int] = {}
    contents: dict[str, bytes] = {}
    for file in files:
        for place, record in read_records(file):
            name, content, scope = identify(place, record, file)
            place = replace(place, name=name)
            key = _digest(place, content)
            if name is None:
                count = seen[scope, key] = seen.get((scope, key), 0) + 1
                name = numbers.setdefault((key, count), len(numbers) + 1)
            else:
                place.check_id(name, "the id")
            if contents.setdefault(str(name), key) != key:
                place.fail(
                    f"another record has another text for the id {shorten(name)}.",
                    "Give a text the same id in all files, or leave the ids out; read files of other texts apart.",
                )
            yield Entry(place, name, file, record)


def _digest(place: Place, content: object) -> bytes:
    """Return a few bytes that are the same for the same content only."""
    try:
        return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).digest()
    except RecursionError:
        place.fail("brackets are nested too deeply.")


def plain(value: Any) -> str | int | float:
    """Return a value of a vocabulary as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (str, int, float, bool)) else str(value)
