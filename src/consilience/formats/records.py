r"""Records of annotation tools: JSON objects read one by one from an array, or from lines.

A document of any size is read as a stream. Only one record at a time is held as Python objects. Every fault is an
`InputError` that says in which file and record it is: another encoding, a document that is cut off, brackets nested too
deeply, a record that is too long, a value of another type than the format has.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast, overload

import pyarrow as pa

from ..errors import InputError, first_line, shorten
from ..memory import format_bytes
from .files import LONGEST_ROW, encoding_error, open_input, open_output
from .writing import replace_file

Record: TypeAlias = dict[str, Any]
Id: TypeAlias = str | int
T = TypeVar("T")

_AGAIN = "Export the file again."
_CHUNK = 1 << 20
_BLANKS = re.compile(r"[ \t\r\n]*")
# An error so near the end of what has been read may be due to the end.
_NEAR = 16
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
    return _Records(path).read()


class _Records:
    """A sliding window over the text of a file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.text = ""
        self.at = 0
        self.line = 1
        self.number = 0
        self.is_array = False

    def read(self) -> Iterator[tuple[Place, Record]]:
        self.chunks = _decode(self.path)
        self.decode = json.JSONDecoder().raw_decode
        sign = self.skip()
        if not sign:
            raise InputError(f"{self.path!r} is empty.", "Export it again.")
        if sign == "[":
            self.is_array = True
            self.at += 1
            if self.skip() == "]":
                return
        while True:
            self.number += 1
            yield self.take()
            sign = self.skip()
            if not self.is_array:
                if not sign:
                    return
            elif sign == ",":
                self.at += 1
                self.skip()
            elif sign == "]":
                self.at += 1
                if self.skip():
                    self.place().fail("there is text after the end of the list.")
                return
            else:
                problem = "a comma is missing" if sign else "the file ends in the middle of a list"
                self.place().fail(f"after this record {problem}.", "The file may be cut off: export it again.")

    def place(self) -> Place:
        return Place(self.path, *(("record", self.number) if self.is_array else ("line", self.line)))

    def grow(self, least: int) -> bool:
        """Read more text, at least so much if there is; tell whether there was any."""
        parts, size = [self.text[self.at :]], 0
        self.at = 0
        for chunk in self.chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= least:
                break
        self.text = "".join(parts)
        return size > 0

    def skip(self) -> str:
        """Skip blanks, and return the next character, "" at the end."""
        while True:
            end = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr] # it matches anything
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.grow(_CHUNK):
                return ""

    def take(self) -> tuple[Place, Record]:
        """Return the record that begins here."""
        place = self.place()
        while True:
            try:
                record, end = self.decode(self.text, self.at)
            except RecursionError:
                place.fail("brackets are nested too deeply.")
            except ValueError as error:
                position = getattr(error, "pos", 0)
                is_cut = position > len(self.text) - _NEAR or str(error).startswith("Unterminated")
                size = len(self.text) - self.at
                if is_cut and size > LONGEST_ROW:
                    _fail_long(place)
                if not is_cut or not self.grow(max(_CHUNK, size)):
                    why = str(error) if is_cut else f"{error.msg if isinstance(error, json.JSONDecodeError) else error}"
                    place.fail(
                        f"not valid JSON ({shorten(why, 100)}).", "The file may be damaged or cut off: export it again."
                    )
                continue
            if not isinstance(record, dict):
                place.fail(f"expected a JSON object, found {shorten(record)}.")
            if end - self.at > LONGEST_ROW:
                _fail_long(place)
            taken = self.text[self.at : end]
            if "\\ud" in taken or "\\uD" in taken:
                _check_unicode(record, place)
            self.line += taken.count("\n")
            self.at = end
            return place, record


def _fail_long(place: Place) -> NoReturn:
    place.fail(f"the record is longer than {format_bytes(LONGEST_ROW)}.", "Split its text, or export the file again.")


def _decode(path: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        with open_input(path) as stream:
            while chunk := stream.read(_CHUNK):
                yield decoder.decode(chunk)
            yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise encoding_error(path) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the file.") from error


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


_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t\r\n]*(:?)|"[\s\S]*|[\[\]{}]|[^\s"\[\]{}:,]+')


def peek_keys(head: bytes) -> dict[str, str]:
    r"""Return the keys of the first record of a file, each with the first character of its value.

    It works on the first bytes of a file, even if they end within the record.

    >>> peek_keys(b'[{"id": 1, "data": {"text": "a"}, "note": "x')
    {'id': '1', 'data': '{', 'note': '"'}
    """
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="ignore").lstrip()
    text = text[1:].lstrip() if text.startswith("[") else text
    keys: dict[str, str] = {}
    depth, key = 0, None
    for match in _TOKEN.finditer(text) if text.startswith("{") else ():
        word = match[0]
        if depth == 1 and key is not None:
            keys[key], key = word[0], None
        elif depth == 1 and match[1] is not None and match[2]:
            key = match[1]
            continue
        if word in "[{":
            depth += 1
        elif word in "]}":
            depth -= 1
            if depth == 0:
                break
    return keys


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
