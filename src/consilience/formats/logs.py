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
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from ..answers.columns import spell_surrogates
from ..errors import ConsilienceError, InputError, first_line, listing, plural, shorten, warn_of
from ..limits import require_memory
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
        # Of a small archive a single value may take all memory.
        require_memory(4 * len(self.text), f"{self.place} holds a value that is large", "Export less at a time.")
        return bool(new)

    def sign(self) -> str:
        """The next character that is no white space; nothing at the end."""
        if self.text[self.at : self.at + 1] > " ":
            return self.text[self.at]
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

    def elements(name: str) -> Iterator[tuple[str, int, Any]]:
        goes_on = text.begins("[", "]")
        while goes_on:
            value = text.value()
            yield name, text.line, value
            goes_on = text.goes_on("]")

    def walk(name: str) -> Iterator[tuple[str, int, Any]]:
        opening = text.sign()
        if opening == "[" and name in arrays:
            yield from elements(name)
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

    while opening := text.sign():
        if arrays:
            yield from walk("")
        elif opening == "[":
            yield from elements("")
        else:
            value = text.value()
            yield "", text.line, value


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


def read_rows(path: str, title: str, *needed: str) -> Iterator[tuple[str, int, dict[str, str]]]:
    """The rows of all files in CSV at a path, each with its file and the line on which it ends."""
    for file in files.list_inputs(path):
        reader = csv.DictReader(files.read_text(file, errors="strict"))
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{file!r} has no column {listing(missing)} ({title}).", "Export it again.")
        try:
            for row in reader:
                if None in row.values() or None in row:
                    place = f"{files.name_of(file)}, line {reader.line_num}"
                    problem = f"{place}: the row has another number of fields than the header."
                    raise InputError(problem, "The file may be cut off: export it again.")
                yield file, reader.line_num, row
        except UnicodeDecodeError as error:
            raise files.encoding_error(f"{files.name_of(file)}, line {reader.line_num + 1}") from error
        except csv.Error as error:
            place, most = f"{files.name_of(file)}, line {reader.line_num + 1}", csv.field_size_limit()
            if "field limit" not in str(error):
                raise InputError(f"{place}: not valid CSV ({first_line(error)}).", "Export it again.") from error
            problem = f"{place}: a field has more than {most:,} characters, the most that is read of {title}."
            raise InputError(
                problem, "Leave out columns of long texts.", "If none is, a quote is not closed."
            ) from error


class Reading:
    """Where a file is read: what fails there, since a record does not look as it should, is an error that says so."""

    def __init__(self, title: str, file: str = "") -> None:
        self.title, self.file, self.line, self.record = title, file, 0, None

    def at(self, line: int, record: Any, file: str = "") -> Reading:
        """The same at another record."""
        self.line, self.record, self.file = line, record, file or self.file
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(
            error, (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
        ) and not isinstance(error, ConsilienceError):
            raise InputError(
                f"{self.file}, line {self.line}: this is not as {self.title} writes it ({type(error).__name__}: "
                f"{first_line(error)}): {shorten(self.record)}.",
                "Export it again.",
            ) from error


def join_content(*parts: object) -> str | None:
    """What a judge saw, as one text: the prompt, and what the system said; None if neither is a text."""
    return "\n→ ".join([each for each in parts if isinstance(each, str)]) or None


class Log:
    """What judges say in the files at a path, gathered item by item.

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
        self.keys: dict[Key, int] = {}
        self.contents: list[str | None] = []
        # Each time that an item comes up: the item, and when.
        self.turns, self.times, self.turn = array("q"), list[Any](), -1
        # Of each answer: its turn, who gave it (name, source, whether a person, question), and what was said.
        self.at, self.voices, self.said = array("q"), array("q"), array("q")
        self.who: dict[tuple[str, str, bool, str], int] = {}
        self.vocabulary: list[Any] = []
        self.codes: dict[tuple[type, Any], int] = {}
        self.known: dict[tuple[Key, str], Any] = {}
        self.missed: Counter[tuple[str, str]] = Counter()

    def begin(self, key: Key, content: str | None = None, time: Any = None) -> None:
        """Go on to another item, whose answers come next."""
        item = self.keys.setdefault(key, len(self.keys))
        if item == len(self.contents):
            self.contents.append(content)
        self.turn = len(self.turns)
        self.turns.append(item)
        self.times.append(time or None)

    def add(self, name: str, value: Any, source: str = "", human: bool = False, question: str = "") -> None:
        """Take a score of the item, a value or one for each of several questions; and whether a person gave it."""
        try:
            code = self.codes[type(value), value]
        except (KeyError, TypeError):  # it is new, or a list or an object
            if type(value) is dict:
                for asked, each in value.items():
                    self.add(name, each, source, human, str(asked))
                return
            found = self._encode(value, bool(question))
            if found is None:
                self.miss(name, "several values" if type(value) is list else "no value", source)
                return
            code = found
        voice = self.who.get((name, source, human, question))
        if voice is None:
            voice = self.who[name, source, human, question] = len(self.who)
        self.at.append(self.turn)
        self.voices.append(voice)
        self.said.append(code)

    def _encode(self, value: Any, may_be_set: bool) -> int | None:
        """The code of a value, None if it is missing. Whole numbers are the same as integers and as floats."""
        kind = type(value)
        if kind is list and may_be_set:
            value = tuple(map(str, value))
        elif kind not in _KINDS or value == "" or (kind is float and not math.isfinite(value)):
            return None
        elif kind is float and value.is_integer():
            code = self._encode(int(value), may_be_set)
            assert code is not None
            self.codes[kind, value] = code
            return code
        code = self.codes.setdefault((kind, value), len(self.vocabulary))
        if code == len(self.vocabulary):
            self.vocabulary.append(value)
        return code

    def miss(self, name: str, reason: str, source: str = "") -> None:
        """Count what somebody failed to say."""
        self.missed[f"{name} ({source})" if source else name, reason] += 1

    def table(self, apart: bool = False) -> pa.Table:
        """All answers, with a column of labels, or one for each question; what is missing is told.

        `apart` says that a name from several sources is not a question to these, but several judges.
        """
        if self.missed:
            most = self.missed.most_common(5)
            told = [f"{n:,} of {shorten(judge)} ({shorten(why, 60)})" for (judge, why), n in most]
            told += ["others"] if len(self.missed) > len(most) else []
            total = plural(self.missed.total(), self.noun)
            warn_of(f"{total} of {self.path!r} left out, {self.why}: {', '.join(told)}.")
        if not self.at:
            raise InputError(f"{self.path!r} holds no scores ({self.title}).", "Give the log of a scored evaluation.")
        turns, at, voices, said = (np.frombuffer(x, np.int64) for x in (self.turns, self.at, self.voices, self.said))
        items = turns[at]
        judges, asked, texts = self._name_questions(apart)
        questions = sorted(set(asked))
        names = ["label"] if len(questions) == 1 else [spell_surrogates(each) for each in questions]
        columns = {part: make_column([key[n] for key in self.keys]) for n, part in enumerate(self.parts)}
        item = [part for n, part in enumerate(self.parts) if not n or len(columns[part].unique()) > 1]
        taken = {*columns, "time", "worker", "gold", "human"} & {*names}
        if taken:
            raise InputError(f"{self.path!r} has a question called {listing(taken)}.", "Rename it.")
        columns = {name: each.take(pa.array(items)) for name, each in columns.items()}
        if any(self.contents):  # once, and not beside each answer
            columns["content"] = make_column(self.contents).dictionary_encode().take(pa.array(items))
        if any(self.times):
            columns["time"] = make_column(self.times).take(pa.array(at))
        columns["worker"] = make_column(judges).take(pa.array(voices)).dictionary_encode()
        words = self.vocabulary
        is_person = np.array([human for _, _, human, _ in self.who])
        for question, name in zip(questions, names, strict=True):
            here = np.array([each == question for each in asked])[voices]
            used = [None] * len(words)
            for code in np.unique(said[here]).tolist():
                used[code] = texts[question](words[code])
            label = make_column(used)
            columns[name] = label.take(pa.array(said, mask=~here))
            rows = np.flatnonzero(here & is_person[voices])
            human: dict[int, Any] = {}
            for n, code in zip(items[rows].tolist(), said[rows].tolist(), strict=True):
                human[n] = used[code] if human.get(n, used[code]) == used[code] else None  # where they differ
            known = {n: self.known.get((key, question)) for n, key in enumerate(self.keys)} if self.known else {}
            for kind, held in ("gold", known), ("human", human):
                if any(each is not None for each in held.values()):
                    every = make_column([held.get(n) for n in range(len(self.keys))])
                    columns[kind if len(names) == 1 else f"{name}_{kind}"] = every.take(pa.array(items))
        told_of = {ITEM: ",".join(item)} if len(item) > 1 else {}
        told_of |= {QUESTIONS: json.dumps(names)} if len(names) > 1 else {}
        return pa.table(columns, metadata=told_of)

    def _name_questions(self, apart: bool) -> tuple[list[str], list[str], dict[str, Callable[[Any], Any]]]:
        """Of each voice the judge and the question, and of each question how what is said becomes labels.

        Judges answer one question together if they use the same sort of values: words, true or false, numbers. Numbers
        that are all 0 or 1 are true or false.
        """
        sources: dict[str, set[str]] = {}
        for name, source, _, _ in self.who:
            sources.setdefault(name, set()).add(source)
        judges, asked = [], []
        for name, source, _, question in self.who:
            is_shared = len(sources[name]) > 1
            judges.append(f"{name} ({source})" if is_shared and apart else (source or name) if is_shared else name)
            asked.append(question or (name if is_shared and not apart else ""))
        values: dict[str, set[Any]] = {}
        held_by: dict[str, set[Any]] = {}  # what is said to each question that the log names
        words = self.vocabulary
        pairs = np.unique(np.frombuffer(self.voices, np.int64) * len(words) + np.frombuffer(self.said, np.int64))
        for voice, code in zip(*(each.tolist() for each in np.divmod(pairs, len(words))), strict=True):
            held_in, key = (held_by, asked[voice]) if asked[voice] else (values, judges[voice])
            held_in.setdefault(key, set()).add(words[code])
        # What judges answer together has a name of its own, also where the tool has a question called so.
        grade, passed, score = (f"{sort} (overall)" if sort in asked else sort for sort in ("grade", "passed", "score"))
        sorts = {
            judge: grade if any(type(each) is str for each in held) else passed if held <= {0, 1} else score
            for judge, held in values.items()
        }
        graded = set().union(*(values[judge] for judge, sort in sorts.items() if sort == grade))
        yes, no = self.words if self.words and graded & {*self.words} else (None, None)
        asked = [question or sorts[judge] for question, judge in zip(asked, judges, strict=True)]
        texts: dict[str, Callable[[Any], Any]] = dict.fromkeys(asked, _as_it_is)
        texts |= {passed: bool, score: lambda value: int(value) if type(value) is bool else value}
        if yes is not None:
            asked = [grade if question == passed else question for question in asked]
        texts[grade] = lambda value: value if type(value) is str else (yes, no)[not value] if yes else str(value)
        if self.words:  # a question of its own that some answer by these words, and others by true and false
            graded_questions = (each for each, held in held_by.items() if each != grade and held & {*self.words})
            texts |= dict.fromkeys(graded_questions, partial(_as_word, self.words))
        return judges, asked, texts


# What scores may be; lists, as sets, only where the tool says what was asked.
_KINDS = {str, int, float, bool}


def _as_it_is(value: Any) -> Any:
    return list(value) if type(value) is tuple else value


def _as_word(words: tuple[str, str], value: Any) -> Any:
    return words[not value] if type(value) in (bool, int) and value in (0, 1) else _as_it_is(value)


def make_column(values: Sequence[Any]) -> pa.Array:
    """A column; values of several types become text, and text beside sets a set of one."""
    kinds = {*map(type, values)} - {type(None)}
    if list in kinds:
        cells = [each if each is None or isinstance(each, list) else [each] for each in values]
        texts = [None if each is None else [spell_surrogates(str(one)) for one in each] for each in cells]
        return pa.array(texts, pa.list_(pa.string()))
    if len(kinds) > 1 and not kinds <= {int, float}:
        values = [None if each is None else str(each) for each in values]
    try:
        return pa.array(values)
    except UnicodeEncodeError:  # half of a surrogate pair
        return pa.array([None if each is None else spell_surrogates(each) for each in values])
    except (pa.ArrowInvalid, OverflowError):  # whole numbers of more than 64 bits
        return pa.array([None if each is None else str(each) for each in values])
