r"""CoNLL columns: one token per line with its tags, and a blank line after each sentence.

Relies on the format of the CoNLL-2003 shared task, and for names of columns and sentences on the comments of CoNLL-U
Plus (``# global.columns = FORM ann bob``, ``# sent_id = s1``). Columns are separated by tabs, else by blanks. The first
column is the token.

- One file per annotator: a folder, or a pattern. The worker is the name of the file. Sentences are matched by
  ``sent_id``, else by order; the tokens must agree.
- One file alone: a worker for each column of tags, called as ``global.columns`` says, else "column2" and so on. A
  column holds tags if all its values are ``O``, or a letter of a tag scheme and a type. Beside columns of entity types,
  columns of phrase types (``B-NP``) are not taken for annotations.
- A sentence in which all tags of a column are ``_`` was not read by that worker.
- Tags may be IOB1, IOB2, BIOES or BILOU. A document is a sentence; its text is the tokens, joined by single blanks.
- Written are IOB2 tags, in one column per worker.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..answers.tables import check_spread
from ..answers.tagging import find_spans, split_tags
from ..errors import InputError, listing, shorten
from ..kinds.spans import MarkedText, Reading, Scored, Spans, collect_texts
from ..kinds.tokens import LEFT_OUT_REASONS, list_tags, tag_readings
from . import Codec
from .annotation_tools import Entry, Id, say_nothing
from .files import HEAD, encoding_error, list_inputs, read_whole, stem
from .writing import replace_file

_UNREAD = "_"
_TAG = re.compile(r"[BIESLU]-(\S.*)")
_PHRASES = {"NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"}
_START = "-DOCSTART-"
_OTHER_FORMAT = "Write another format, such as label-studio."


@dataclass
class _Sentence:
    """A sentence: its tokens, and one list of columns for each."""

    place: Entry
    name: str | None = None
    before: list[str] = field(default_factory=list)  # comments and marks of documents
    rows: list[list[str]] = field(default_factory=list)

    def places(self) -> list[tuple[int, int]]:
        """Start and end of each token."""
        ends = itertools.accumulate(len(row[0]) + 1 for row in self.rows)
        return [(end - len(row[0]) - 1, end - 1) for end, row in zip(ends, self.rows, strict=True)]


def _split(line: str, separator: str | None) -> list[str]:
    return [part.strip(" ") for part in line.rstrip("\t ").split("\t")] if separator == "\t" else line.split()


def _is_tag(tag: str) -> bool:
    return tag in ("O", _UNREAD) or _TAG.fullmatch(tag) is not None


def _list_types(tags: Collection[str]) -> set[str]:
    return {match[1] for match in map(_TAG.fullmatch, tags) if match is not None}


def _parse_sentences(path: str) -> tuple[list[_Sentence], list[str] | None]:
    """The sentences of a file, and the names of its columns if it has any."""
    text = read_whole(path)
    if "\0" in text:
        raise encoding_error(path)
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    head = next((line for line in lines if line.strip() and not line.startswith(("#", _START))), "")
    separator = "\t" if "\t" in head else None
    width, names, sentences = len(_split(head, separator)), None, [_Sentence(Entry(path, "line", 1))]
    for number, line in enumerate(lines, 1):
        current, fields = sentences[-1], _split(line, separator)
        if not line.strip():
            if current.rows:
                sentences.append(_Sentence(Entry(path, "line", number + 1)))
        elif line.startswith("#") and (len(fields) != width or not _is_tag(fields[-1])):
            current.before.append(line)
            key, _, value = line[1:].partition("=")
            if key.strip() == "global.columns":
                names = value.split()
            elif key.strip() == "sent_id":
                current.name = value.strip()
                current.place = Entry(path, "line", current.place.number, current.name)
        elif line.startswith(_START):
            current.before.append(line)
        elif len(fields) != width or not fields[0]:
            problem = f"expected {width} columns, found {len(fields)}: {shorten(line)}."
            Entry(path, "line", number).fail(problem, "Correct the line.")
        else:
            current.rows.append(fields)
    if names is not None and len(set(names)) != width:
        raise InputError(f"{path!r} has {width} columns, and calls them {listing(names)}.", "Give each its own name.")
    return [sentence for sentence in sentences if sentence.rows], names


def _find_tag_columns(path: str, sentences: list[_Sentence]) -> list[int]:
    """Which columns hold annotations."""
    values = [set(column) for column in zip(*(row for each in sentences for row in each.rows), strict=True)]
    tagged = [i for i in range(1, len(values)) if all(map(_is_tag, values[i])) and values[i] != {_UNREAD}]
    # A column of O alone says nothing of its kind; beside phrases only, it is the last column that holds entities.
    entities = [i for i in tagged if not _list_types(values[i]) or not _list_types(values[i]) <= _PHRASES]
    if not tagged:
        last = max(values[-1], key=lambda tag: not _is_tag(tag))
        raise InputError(
            f"{path!r} has no column of tags: the last column holds {shorten(last)}.",
            "Give tags such as O, B-PER and I-PER in the last column, after the token.",
        )
    return entities or tagged


def _read_files(path: str) -> Iterator[tuple[dict[Id, _Sentence], dict[str, int]]]:
    """Yield the sentences by name, and the column of each worker, of all files."""
    files = list_inputs(path)
    n_first = 0
    for file in files:
        sentences, names = _parse_sentences(file)
        if not sentences:
            say_nothing(file, "CoNLL")
        columns = _find_tag_columns(file, sentences)
        if len(files) > 1 and len(columns) > 1:
            raise InputError(
                f"{file!r} has {len(columns)} columns of tags, and there are several files.",
                "Give one file per annotator with one column of tags, or one file for all.",
            )
        workers = {f"column{i + 1}" if names is None else names[i]: i for i in columns}
        if len(columns) == 1 and (names is None or len(files) > 1):
            workers = {stem(file): columns[0]}
        n_first = n_first or len(sentences)
        named: dict[Id, _Sentence] = {each.name: each for each in sentences if each.name is not None}
        if not named and len(sentences) == n_first:
            named = dict(enumerate(sentences, 1))
        if len(named) < len(sentences):
            raise InputError(
                f"Of the {len(sentences)} sentences of {file!r} not all have a name of their own.",
                "Name all with comments such as # sent_id = s1; or none, and give all files the same sentences.",
            )
        yield named, workers


def _read_columns(path: str) -> Spans:
    texts = []
    for sentences, columns in _read_files(path):
        own = [
            MarkedText(name, " ".join(row[0] for row in each.rows), [], each.places(), each.place)
            for name, each in sentences.items()
        ]
        texts += own
        rows = [row for each in sentences.values() for row in each.rows]
        places = [(number, *place) for number, each in enumerate(own) for place in each.tokens or []]
        begins = np.array([start == 0 for _, start, _ in places])
        for worker, column in columns.items():
            tags = [row[column] for row in rows]
            spans: list[Scored] = [{} for _ in own]
            starts, stops = find_spans(*split_tags(["O" if tag == _UNREAD else tag for tag in tags]), begins)
            for first, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                number, start, _ = places[first]
                spans[number][start, places[stop - 1][2], tags[first][2:]] = None
            n_unread = Counter(place[0] for place, tag in zip(places, tags, strict=True) if tag == _UNREAD)
            for number, text in enumerate(own):
                if n_unread[number] not in (0, len(text.tokens or [])):
                    raise InputError(
                        f"{text.place}: {shorten(worker)} tagged only some of the tokens.", "Tag all, or none (_)."
                    )
                if not n_unread[number]:
                    texts.append(text._replace(readings=[Reading(worker, spans[number])]))
    return collect_texts(texts, (os.path.abspath(path), "conll"))


def _write_columns(spans: Spans, path: str) -> None:
    """Write a column for each worker. With the tokens of a CoNLL file, its other columns and comments are kept."""
    workers, ids = ([str(each) for each in names.tolist()] for names in (spans.workers, spans.documents))
    if os.path.isdir(path):
        raise InputError(f"{path!r} is a folder.", "Give the name of a file: it has a column for each worker.")
    blank = next((label for label in spans.labels.tolist() if re.search(r"\s", label)), None)
    if blank is not None:
        raise InputError(f"{blank!r} cannot be part of a tag: it has a blank.", "Rename it.")
    odd = np.flatnonzero(np.isin(spans.layer[0], list(LEFT_OUT_REASONS)))
    if len(odd):
        raise InputError(
            f"Spans of one worker overlap in document {shorten(ids[spans.marks.document[odd[0]]])}, or are white space "
            "only, which columns of tags cannot express.",
            _OTHER_FORMAT,
        )
    kept: dict[str, _Sentence] = {}
    for sentences, columns in _read_files(spans.origin[0]) if spans.origin is not None else ():
        for name, each in sentences.items():
            each.rows = [[cell for i, cell in enumerate(row) if i not in columns.values()] for row in each.rows]
            kept.setdefault(str(name), each)
    width = max((len(each.rows[0]) for each in kept.values()), default=1)  # files may have different columns
    tokens, tags = spans.tokenised, list_tags(spans.labels)
    sizes = np.diff(tokens.offsets)[spans.readings[:, 0]]
    check_spread(int(tokens.offsets[-1]), len(workers), int(sizes.sum()))
    codes = np.split(tag_readings(spans.marks, spans.layer, tokens, spans.readings)[2], np.cumsum(sizes)[:-1])
    said = {(d, w): [tags[code] for code in own] for (d, w), own in zip(spans.readings.tolist(), codes, strict=False)}
    with replace_file(path) as temporary, open(temporary, "wb") as sink:
        header = ["FORM", *(f"KEPT{i}" for i in range(1, width)), *(re.sub(r"\s", "_", worker) for worker in workers)]
        sink.write(f"# global.columns = {' '.join(header)}\n".encode())
        for number, (name, text) in enumerate(zip(ids, spans.texts, strict=True)):
            own = slice(tokens.offsets[number], tokens.offsets[number + 1])
            places = zip(tokens.start[own].tolist(), tokens.end[own].tolist(), strict=True)
            rows = [[re.sub(r"\s", "_", text[start:end])] for start, end in places]
            lines = [f"# sent_id = {' '.join(name.split())}"]
            if name in kept:
                if len(kept[name].rows) != len(rows):
                    raise InputError(f"Spans in {shorten(name)} do not begin and end with a token.", _OTHER_FORMAT)
                lines = [line for line in kept[name].before if not line.startswith("# global.columns")]
                rows = [[*row, *others[1:]] for row, others in zip(rows, kept[name].rows, strict=True)]
            columns_of_tags = [said.get((number, worker), [_UNREAD] * len(rows)) for worker in range(len(workers))]
            for i, row in enumerate(rows):
                missing = [_UNREAD] * (width - len(row))
                lines.append("\t".join([*row, *missing, *(column[i] for column in columns_of_tags)]))
            sink.write("".join(f"{line}\n" for line in [*lines, ""]).encode())


def recognise_columns(head: bytes, _path: str) -> bool:
    """Whether all lines in the first bytes are tokens with tags, comments or blank, and some tag has a type."""
    if b"\0" in head:
        return False
    lines = head.decode("utf-8-sig", errors="ignore").splitlines()
    lines = lines[:-1] if len(head) >= HEAD else lines
    rows = [_split(line, "\t" if "\t" in line else None) for line in lines if line.strip()]
    rows = [row for row in rows if not row[0].startswith(("#", _START))]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2 or not all(_is_tag(row[-1]) for row in rows):
        return False
    return any(_list_types(column) and all(map(_is_tag, column)) for column in list(zip(*rows, strict=True))[1:])


CONLL = Codec(recognise=recognise_columns, load=_read_columns, save=_write_columns, carries=frozenset({"tokens"}))
