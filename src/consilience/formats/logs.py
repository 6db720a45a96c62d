"""What formats of logs share: JSON documents read a part at a time, and answers gathered into a table.

A log of an evaluation says what judges (scorers, graders, metrics, people) make of the outputs of systems for some
samples. It becomes a table with one row per item and judge. An item is a sample, or where several systems answered it,
or one did so several times, a sample and what else tells the outputs apart. A judge that failed said nothing: such
scores are counted, a warning tells of them, and they are no answers.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from ..answers.columns import spell_surrogates
from ..errors import InputError, first_line, listing, plural, shorten, warn_of
from . import files
from .reading import ITEM, QUESTIONS

Key: TypeAlias = tuple[Any, ...]

# So many characters of a document are read at a time.
_CHARACTERS = 1 << 21
_WHITE = re.compile(r"\s*")
_decode = json.JSONDecoder().raw_decode
# What may come after a number. The empty text, at the end of what was read, is no part of it.
_AFTER = [*",]} \t\r\n"]
# Where a document may merely go on beyond what was read, the error is that near to the end.
_LONGEST_WORD = 16


class _Text:
    """The text of a JSON document, of which a part is in memory."""

    def __init__(self, stream: Any, place: str) -> None:
        self.file = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="")
        self.place, self.text, self.at, self.line = place, "", 0, 1

    def fail(self, problem: str) -> NoReturn:
        raise InputError(
            f"{self.place}, line {self.line}: not valid JSON ({problem}).",
            "The file may be damaged or cut off: export it again.",
        )

    def more(self) -> bool:
        """Read on, and forget what was taken."""
        try:
            new = self.file.read(max(_CHARACTERS, len(self.text) - self.at))
        except UnicodeDecodeError as error:
            raise files.encoding_error(f"{self.place}, after line {self.line}") from error
        self.text, self.at = self.text[self.at :] + new, 0
        return bool(new)

    def sign(self) -> str:
        """The next character that is no white space; nothing at the end."""
        while True:
            end = _WHITE.match(self.text, self.at).end()  # type: ignore[union-attr]
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            if end < len(self.text):
                return self.text[end]
            if not self.more():
                return ""

    def skip(self, signs: str) -> str:
        """Take the next character, which must be one of these."""
        found = self.sign()
        if not found or found not in signs:
            self.fail(f"expected {' or '.join(signs)}, found {shorten(found) if found else 'the end'}")
        self.at += 1
        return found

    def goes_on(self, closing: str) -> bool:
        """Take what comes after an element: a comma, and there must be another, or the end."""
        ends = self.skip(f",{closing}") == closing
        if not ends and self.sign() == closing:
            self.fail(f"a comma before {closing}")
        return not ends

    def begins(self, opening: str, closing: str) -> bool:
        """Take the beginning of an array or object, and the end where it is empty."""
        self.skip(opening)
        return self.sign() != closing or self.skip(closing) != closing

    def value(self) -> Any:
        """Take the next value."""
        self.sign()
        while True:
            try:
                value, end = _decode(self.text, self.at)
            except RecursionError:
                self.fail("brackets are nested too deeply")
            except ValueError as error:
                at = getattr(error, "pos", 0)
                near = at + _LONGEST_WORD >= len(self.text) or str(error).startswith("Unterminated")
                if not near or not self.more():
                    self.line += self.text.count("\n", self.at, at)
                    self.fail(shorten(str(error).partition(":")[0], 100))
                continue
            # A number may go on beyond what was read.
            if isinstance(value, (dict, list, str)) or self.text[end : end + 1] in _AFTER or not self.more():
                self.line += self.text.count("\n", self.at, end)
                self.at = end
                return value


def read_parts(stream: Any, place: str, *arrays: str) -> Iterator[tuple[str, int, Any]]:
    """Yield the values of a JSON document, each with its dotted name and the line on which it ends.

    `arrays` are the dotted names of the arrays whose elements are yielded one by one. Without names, the elements of an
    array at the root, or the values on the lines of the file, are yielded under the name "".
    """
    text = _Text(stream, place)

    def walk(name: str) -> Iterator[tuple[str, int, Any]]:
        opening = text.sign()
        is_split = name in arrays or (not name and not arrays)
        if opening == "[" and is_split:
            goes_on = text.begins("[", "]")
            while goes_on:
                value = text.value()
                yield name, text.line, value
                goes_on = text.goes_on("]")
        elif opening == "{" and any(each.startswith(f"{name}." if name else "") for each in arrays if each != name):
            goes_on = text.begins("{", "}")
            while goes_on:
                key = text.value()
                text.skip(":")
                yield from walk(f"{name}.{key}" if name else str(key))
                goes_on = text.goes_on("}")
        else:
            value = text.value()
            yield name, text.line, value

    while text.sign():
        yield from walk("")


def open_parts(path: str, *arrays: str) -> Iterator[tuple[str, int, Any]]:
    """The values of the JSON document in a file; see `read_parts`."""
    return read_parts(files.open_input(path), files.name_of(path), *arrays)


def peek_keys(head: bytes) -> dict[str, Any]:
    """The keys of the first object in the beginning of a file, with those of their values that are whole.

    >>> peek_keys(b'{"a": 1, "b": [{"c": 2}, ')
    {'a': 1, 'b': None}
    """
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="ignore")
    keys: dict[str, Any] = {}
    at = _WHITE.match(text).end()  # type: ignore[union-attr]
    if text[at : at + 1] == "[":
        at = _WHITE.match(text, at + 1).end()  # type: ignore[union-attr]
    try:
        while text[at] in "{,":
            key, at = _decode(text, _WHITE.match(text, at + 1).end())  # type: ignore[union-attr]
            keys[str(key)] = None
            at = _WHITE.match(text, at).end() + 1  # type: ignore[union-attr]
            keys[str(key)], at = _decode(text, _WHITE.match(text, at).end())  # type: ignore[union-attr]
            at = _WHITE.match(text, at).end()  # type: ignore[union-attr]
    except (ValueError, IndexError, RecursionError):
        pass  # the end of what there is
    return keys


def recognise_columns(head: bytes, *names: str) -> bool:
    """Whether the beginning of a file is a header in CSV with some columns."""
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode(errors="ignore")
    try:
        return {*names} <= {*next(csv.reader([first]), [])}
    except csv.Error:
        return False


def read_rows(path: str, title: str, *needed: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of all files in CSV at a path, each with its place."""
    for file in files.list_inputs(path):
        reader = csv.DictReader(files.read_text(file, errors="strict"))
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{file!r} has no column {listing(missing)} ({title}).", "Export it again.")
        try:
            for row in reader:
                place = f"{files.name_of(file)}, line {reader.line_num}"
                if None in row.values() or None in row:
                    problem = f"{place}: the row has another number of fields than the header."
                    raise InputError(problem, "The file may be cut off: export it again.")
                yield place, row
        except UnicodeDecodeError as error:
            raise files.encoding_error(f"{files.name_of(file)}, line {reader.line_num + 1}") from error


@contextmanager
def expect(title: str, place: str, record: object) -> Iterator[None]:
    """Raise the error for a record that does not look as it should."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(
            f"{place}: this is not as {title} writes it ({type(error).__name__}: {first_line(error)}): "
            f"{shorten(record)}.",
            "Export it again.",
        ) from error


class Log:
    """What judges say in the files at a path, gathered row by row.

    Attributes
    ----------
    path, title : str
        Where the logs are, and what messages call them.
    parts : sequence of str
        What tells items apart, such as sample and system. The first always does, others where they differ.
    words : tuple of str, optional
        What judges who use words say for true and for false.
    missing : tuple of str
        What is left out where it is missing, and why.

    A score has a name, and perhaps a source: who gave it. A name that several sources use is a question to them. Other
    names are those of judges, who answer one question together if they use the same sort of values.
    """

    def __init__(
        self,
        path: str,
        title: str,
        parts: Sequence[str],
        words: tuple[str, str] | None = None,
        missing: tuple[str, str] = ("score", "since a judge that failed gives no answer"),
    ) -> None:
        self.path, self.title, self.parts, self.words = path, title, tuple(parts), words
        self.noun, self.why = missing
        # Of each row its item and judge, and what else it has.
        self.keys: list[Key] = []
        self.judges: list[str] = []
        self.sources: list[str] = []
        self.beside: dict[str, list[Any]] = {"content": [], "time": []}
        # Of each answer its row, the question ("": that of all judges), and the value.
        self.rows: list[int] = []
        self.asked: list[str] = []
        self.values: list[Any] = []
        # Known labels by item and question, and the rows of people, whose answers may become such.
        self.known: dict[tuple[Key, str], Any] = {}
        self.people: set[int] = set()
        self.missing: Counter[tuple[str, str]] = Counter()

    def add(self, key: Key, judge: str, value: object, source: str = "", human: bool = False, **beside: Any) -> None:
        """Take a score, a value or one for each of several questions; and whether a person gave it."""
        row = len(self.keys)
        who = f"{judge} ({source})" if source else judge
        for question, said in value.items() if isinstance(value, dict) else [("", value)]:
            if type(said) is float and not math.isfinite(said):
                self.missing[who, "no value"] += 1
            elif (isinstance(said, (str, int, float)) and said != "") or (question and isinstance(said, list)):
                self.rows.append(row)
                self.asked.append(question)
                self.values.append(int(said) if type(said) is float and said.is_integer() else said)
            else:
                self.missing[who, "several values" if said else "no value"] += 1
        if self.rows and self.rows[-1] == row:
            self.keys.append(key)
            self.judges.append(judge)
            self.sources.append(source)
            if human:
                self.people.add(row)
            for name, held in self.beside.items():
                held.append(beside.get(name))

    def table(self, apart: bool = False) -> pa.Table:
        """All answers, with a column of labels, or one for each question; what is missing is told.

        `apart` says that a name from several sources is not a question to these, but several judges.
        """
        if self.missing:
            said = [
                f"{n:,} of {shorten(judge)} ({shorten(why, 60)})" for (judge, why), n in self.missing.most_common(5)
            ]
            said += ["others"] if len(self.missing) > 5 else []
            total = plural(self.missing.total(), self.noun)
            warn_of(f"{total} of {self.path!r} left out, {self.why}: {', '.join(said)}.")
        if not self.values:
            raise InputError(f"{self.path!r} holds no scores ({self.title}).", "Give the log of a scored evaluation.")
        self._name_questions(apart)
        questions = sorted(set(self.asked))
        names = ["label"] if len(questions) == 1 else questions
        columns: dict[str, list[Any]] = {
            part: [key[place] for key in self.keys] for place, part in enumerate(self.parts)
        }
        item = [part for place, part in enumerate(self.parts) if not place or len(set(columns[part])) > 1]
        taken = {*columns, *self.beside, "worker", "gold", "human"} & {*names}
        if taken:
            raise InputError(f"{self.path!r} has a question called {listing(taken)}.", "Rename it.")
        columns["worker"] = self.judges
        columns |= {name: [None] * len(self.keys) for name in names}
        for row, question, value in zip(self.rows, self.asked, self.values, strict=True):
            columns["label" if len(names) == 1 else question][row] = value
        human: dict[tuple[Key, str], Any] = {}
        for row, question, value in zip(self.rows, self.asked, self.values, strict=True):
            if row in self.people:  # where people differ, nothing is known
                place = self.keys[row], question
                human[place] = value if human.get(place, value) == value else None
        for question, name in zip(questions, names, strict=True):
            for kind, held in ("gold", self.known), ("human", human):
                known = [held.get((key, question)) for key in self.keys] if held else []
                if any(each is not None for each in known):
                    columns[kind if len(names) == 1 else f"{name}_{kind}"] = known
        columns |= {name: held for name, held in self.beside.items() if any(each is not None for each in held)}
        told = {ITEM: ",".join(item)} if len(item) > 1 else {}
        told |= {QUESTIONS: json.dumps(names)} if len(names) > 1 else {}
        return pa.table({name: _make_column(values) for name, values in columns.items()}, metadata=told)

    def _name_questions(self, apart: bool) -> None:
        """Let judges answer one question together if they use the same sort of values: words, true or false, numbers.

        Numbers that are all 0 or 1 are true or false.
        """
        sources: dict[str, set[str]] = {}
        for judge, source in zip(self.judges, self.sources, strict=True):
            sources.setdefault(judge, set()).add(source)
        shared = {judge for judge, held in sources.items() if len(held) > 1}
        if shared and apart:
            names = zip(self.judges, self.sources, strict=True)
            self.judges = [f"{judge} ({source})" if judge in shared else judge for judge, source in names]
        elif shared:
            self.asked = [
                question or (self.judges[row] if self.judges[row] in shared else "")
                for row, question in zip(self.rows, self.asked, strict=True)
            ]
            self.judges = [
                (source or judge) if judge in shared else judge
                for judge, source in zip(self.judges, self.sources, strict=True)
            ]
        said: dict[str, set[Any]] = {}
        for row, question, value in zip(self.rows, self.asked, self.values, strict=True):
            if not question:
                held = said.setdefault(self.judges[row], set())
                if len(held) < 100:
                    held.add(value)
        sorts = {
            judge: "grade" if any(type(each) is str for each in held) else "passed" if held <= {0, 1} else "score"
            for judge, held in said.items()
        }
        words = set().union(*(said[judge] for judge, sort in sorts.items() if sort == "grade"))
        as_words = {1: self.words[0], 0: self.words[1]} if self.words and words & {*self.words} else None
        for at, (row, question) in enumerate(zip(self.rows, self.asked, strict=True)):
            if question:
                continue
            sort = sorts[self.judges[row]]
            if sort == "passed":
                self.values[at] = bool(self.values[at]) if as_words is None else as_words[self.values[at]]
            elif sort == "grade":
                self.values[at] = str(self.values[at])
            self.asked[at] = "grade" if sort == "passed" and as_words else sort


def _make_column(values: list[Any]) -> pa.Array:
    """A column; values of several types become text."""
    kinds = {type(each) for each in values} - {type(None)}
    if list in kinds:  # sets, of which some hold one
        cells = [each if each is None or isinstance(each, list) else [each] for each in values]
        return pa.array([None if each is None else [str(one) for one in each] for each in cells], pa.list_(pa.string()))
    if len(kinds) > 1 and not kinds <= {int, float}:
        values = [None if each is None else str(each) for each in values]
    try:
        return pa.array(values)
    except UnicodeEncodeError:  # half of a surrogate pair
        return pa.array([None if each is None else spell_surrogates(each) for each in values])
    except (pa.ArrowInvalid, OverflowError):  # whole numbers of more than 64 bits
        return pa.array([None if each is None else str(each) for each in values])
