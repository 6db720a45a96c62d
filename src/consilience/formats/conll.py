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
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..answers.tables import check_spread
from ..errors import InputError, first_line, listing, shorten
from ..tasks.spans import SpanCollector, Spans
from . import Codec
from .annotation_tools import (
    Span,
    check_all_found,
    check_unchanged,
    finish,
    index_documents,
    list_readings,
    origin_of,
    say_nothing,
    token_places,
)
from .files import HEAD, encoding_error, list_inputs, numbered_lines, stem
from .records import Id, Place, plain
from .writing import replace_file

_NAME = "conll"
_TOOL = "CoNLL"
_UNREAD = "_"
_TAG = re.compile(r"([BIESLUM])-(\S.*)")
_PHRASES = {"NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"}
_START = "-DOCSTART-"
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass
class _Sentence:
    """A sentence: its tokens, and one tuple of columns for each."""

    line: int
    name: str | None = None
    before: list[str] = field(default_factory=list)  # comments and marks of documents
    rows: list[Sequence[str]] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(row[0] for row in self.rows)


# ------------------------------------------------------------------------------------------------------------- parsing


def _lines(path: str) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(path, blank=True):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise encoding_error(f"{path}, line {number}") from error
        if "\0" in text:
            raise encoding_error(f"{path}, line {number}")
        yield number, text


def _split(line: str, separator: str | None) -> list[str]:
    return [part.strip(" ") for part in line.rstrip("\t ").split("\t")] if separator == "\t" else line.split()


def _layout(path: str) -> tuple[str | None, int]:
    """Return separator and number of columns of the first line that is no comment; without such a line, 0 columns."""
    for _, line in _lines(path):
        if line.strip() and not line.startswith(("#", _START)):
            separator = "\t" if "\t" in line else None
            return separator, len(_split(line, separator))
    return None, 0


def _parse(path: str) -> tuple[list[_Sentence], list[str] | None, str | None]:
    """Return the sentences of a file, the names of its columns if it has any, and the separator."""
    separator, width = _layout(path)
    names = None
    sentences: list[_Sentence] = []
    current = _Sentence(1)
    for number, line in _lines(path):
        place = Place(path, "line", number)
        if not line.strip():
            if current.rows:
                sentences.append(current)
                current = _Sentence(number + 1)
            continue
        fields = _split(line, separator)
        if line.startswith("#") and (len(fields) != width or not _is_tag(fields[-1])):
            current.before.append(line)
            key, _, value = line[1:].partition("=")
            if key.strip() == "global.columns":
                names = value.split()
            elif key.strip() == "sent_id":
                current.name = value.strip()
        elif line.startswith(_START):
            current.before.append(line)
        elif len(fields) != width or not fields[0]:
            place.fail(f"expected {width} columns, found {len(fields)}: {shorten(line)}.", "Correct the line.")
        else:
            current.rows.append(fields)
    return sentences + [current] * bool(current.rows), names, separator


def _is_tag(tag: str) -> bool:
    return tag in ("O", _UNREAD) or _TAG.fullmatch(tag) is not None


def _tag_columns(path: str, sentences: list[_Sentence]) -> list[int]:
    """Return which columns hold annotations."""
    width = len(sentences[0].rows[0])
    values = [{row[i] for sentence in sentences for row in sentence.rows} for i in range(width)]
    tagged = [i for i in range(1, width) if all(map(_is_tag, values[i])) and values[i] != {_UNREAD}]
    phrases = {i for i in tagged if _types(values[i]) and _types(values[i]) <= _PHRASES}
    entities = [i for i in tagged if i not in phrases]
    # A column of O alone says nothing of its kind; beside phrases only, it is the last column that holds entities.
    chosen = entities or tagged
    if not chosen:
        last = max(values[-1], key=lambda tag: not _is_tag(tag))
        raise InputError(
            f"{path!r} has no column of tags: the last column holds {shorten(last)}.",
            "Give tags such as O, B-PER and I-PER in the last column, after the token.",
        )
    return chosen


def _types(tags: Collection[str]) -> set[str]:
    return {match[2] for match in map(_TAG.fullmatch, tags) if match is not None}


def find_tagged(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield first token, last token and type of each span that tags of any scheme mark.

    A tag continues a span if it is I, E, L or M of the same type, and the tag before it is B, I or M of that type.

    >>> list(find_tagged(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "S-ORG"]))
    [(0, 1, 'PER'), (3, 3, 'LOC'), (4, 4, 'LOC'), (5, 5, 'ORG')]
    """
    first, open_type = 0, None
    for i, tag in enumerate([*tags, "O"]):
        match = _TAG.fullmatch(tag)
        letter, kind = (match[1], match[2]) if match is not None else ("O", None)
        goes_on = open_type is not None and kind == open_type and letter in "IELM"
        if open_type is not None and not goes_on:
            yield first, i - 1, open_type
            open_type = None
        if kind is not None and not goes_on:
            first, open_type = i, kind
        if open_type is not None and letter in "ELSU":
            yield first, i, open_type
            open_type = None


def _places(tokens: Sequence[str]) -> list[tuple[int, int]]:
    places, at = [], 0
    for token in tokens:
        places.append((at, at + len(token)))
        at += len(token) + 1
    return places


# -------------------------------------------------------------------------------------------------------------- spans


def _sources(path: str) -> Iterator[tuple[str, list[_Sentence], dict[str, int]]]:
    """Yield path, sentences, and the column of each worker, of all files."""
    files = list_inputs(path)
    for file in files:
        sentences, names, _ = _parse(file)
        if not sentences:
            say_nothing(file, _TOOL)
        columns = _tag_columns(file, sentences)
        if names is not None and len(names) != len(sentences[0].rows[0]):
            raise InputError(
                f"{file!r} names {len(names)} columns, but has {len(sentences[0].rows[0])}.", "Correct it."
            )
        if len(files) > 1 and len(columns) > 1:
            raise InputError(
                f"{file!r} has {len(columns)} columns of tags, and there are several files.",
                "Give one file per annotator with one column of tags, or one file for all.",
            )
        if len(columns) == 1 and (names is None or len(files) > 1):
            yield file, sentences, {stem(file): columns[0]}
        else:
            workers = [f"column{i + 1}" if names is None else names[i] for i in columns]
            if len(set(workers)) < len(workers):
                raise InputError(f"{file!r} has several columns of one name: {listing(workers)}.", "Rename them.")
            yield file, sentences, dict(zip(workers, columns, strict=True))


def _name_sentences(sentences: list[_Sentence]) -> Sequence[Id]:
    """Return the names of the sentences of a file, or their numbers from 1 if some have no name."""
    names = [sentence.name for sentence in sentences if sentence.name is not None]
    return names if len(names) == len(sentences) else range(1, len(sentences) + 1)


def _read_spans(path: str) -> Spans:
    collector = SpanCollector()
    documents: dict[Id, tuple[int, tuple[str, ...]]] = {}
    first = ("", 0)
    for file, sentences, columns in _sources(path):
        names = _name_sentences(sentences)
        first = first if documents else (file, len(sentences))
        if isinstance(names, range) and len(sentences) != first[1]:
            raise InputError(
                f"{file!r} has {len(sentences)} sentences, and {first[0]!r} has {first[1]}.",
                "Give all files the same sentences, or name them with comments such as # sent_id = s1.",
            )
        for name, sentence in zip(names, sentences, strict=True):
            tokens = sentence.tokens
            place = Place(file, "line", sentence.line, sentence.name)
            places = _places(tokens)
            if name not in documents:
                documents[name] = collector.add_document(name, " ".join(tokens), places), tokens
            document, known = documents[name]
            if known != tokens:
                at = next((i for i, pair in enumerate(zip(known, tokens, strict=False)) if pair[0] != pair[1]), None)
                odd = "another number of tokens" if at is None else f"{shorten(tokens[at])} for {shorten(known[at])}"
                place.fail(f"the sentence has {odd} in {first[0]!r}.", "Give all files the same tokens.")
            for worker, column in columns.items():
                tags = [row[column] for row in sentence.rows]
                if all(tag == _UNREAD for tag in tags):
                    continue
                if _UNREAD in tags:
                    place.fail(f"{shorten(worker)} tagged only some of the tokens.", "Tag all, or none (_).")
                spans = [(places[i][0], places[j][1], kind) for i, j, kind in find_tagged(tags)]
                collector.add_reading(document, worker, spans)
    return finish(collector, path, _NAME)


# ------------------------------------------------------------------------------------------------------------ writing


def _write_spans(spans: Spans, path: str) -> None:
    """Write a column for each worker. With the tokens of a CoNLL file, its other columns and comments are kept."""
    workers = [str(plain(worker)) for worker in spans.workers.tolist()]
    names = [re.sub(r"\s", "_", worker) or "_" for worker in workers]
    if len(set(names)) < len(names):
        raise InputError(f"Workers have the same name without blanks: {listing(workers)}.", "Rename one of them.")
    if os.path.isdir(path):
        raise InputError(f"{path!r} is a folder.", "Give the name of a file: it has a column for each worker.")
    origin = origin_of(spans, _NAME)
    kept = {} if origin is None else _kept_columns(origin)
    check_all_found(origin, index_documents(spans), kept)
    readings = list_readings(spans)
    sizes = np.array([len(_find_tokens(spans, index)) for index in range(len(spans.texts))], np.int64)
    check_spread(int(sizes.sum()), len(workers), int(sizes[spans.readings[:, 0]].sum()))
    n_kept = len(next(iter(kept.values())).rows[0]) - 1 if kept else 0
    with replace_file(path) as temporary, open(temporary, "wb") as sink:
        header = ["FORM", *(f"KEPT{i + 1}" for i in range(n_kept)), *names]
        sink.write(f"# global.columns = {' '.join(header)}\n".encode())
        for name, index in index_documents(spans).items():
            sentence, text = kept.get(name), spans.texts[index]
            if sentence is not None:
                place = Place(str(origin), "line", sentence.line, sentence.name)
                check_unchanged(place, " ".join(sentence.tokens), text)
            marks = {str(each.worker): each.spans for each in readings[index]}
            lines = _compose(
                name, text, sentence, _find_tokens(spans, index), [marks.get(worker) for worker in workers]
            )
            try:
                sink.write("".join(f"{line}\n" for line in [*lines, ""]).encode())
            except UnicodeEncodeError as error:
                raise InputError(f"Document {shorten(name)} cannot be written: {first_line(error)}.") from error


def _compose(
    name: Id,
    text: str,
    sentence: _Sentence | None,
    places: Sequence[tuple[int, int]],
    marks: Sequence[Sequence[Span] | None],
) -> list[str]:
    """Return the lines of a sentence, with a column for each worker, whose spans are None where it was not read."""
    if sentence is None:
        places = _cut(places, [span for spans in marks for span in spans or ()])
    columns = [[_UNREAD] * len(places) if spans is None else _to_tags(name, places, spans) for spans in marks]
    before = sentence.before if sentence is not None else [f"# sent_id = {_one_line(str(name))}"]
    lines = [line for line in before if not line.startswith("# global.columns")]
    for i, (start, end) in enumerate(places):
        own = sentence.rows[i][1:] if sentence is not None else ()
        lines.append("\t".join([re.sub(r"\s", "_", text[start:end]), *own, *(column[i] for column in columns)]))
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _kept_columns(origin: str) -> dict[Id, _Sentence]:
    """Return the sentences of the original files, with the columns that are no annotations, the same number in all."""
    kept: dict[Id, _Sentence] = {}
    for _, sentences, columns in _sources(origin):
        taken = set(columns.values())
        for name, sentence in zip(_name_sentences(sentences), sentences, strict=True):
            sentence.rows = [[field for i, field in enumerate(row) if i not in taken] for row in sentence.rows]
            kept.setdefault(name, sentence)
    width = max(len(sentence.rows[0]) for sentence in kept.values())
    for sentence in kept.values():  # files may have different columns
        sentence.rows = [[*row, *[_UNREAD] * (width - len(row))] for row in sentence.rows]
    return kept


def _find_tokens(spans: Spans, index: int) -> list[tuple[int, int]]:
    """Return the tokens of a document."""
    return token_places(spans, index) or _tokenize(spans.texts[index])


def _tokenize(text: str) -> list[tuple[int, int]]:
    """Return words and signs as tokens."""
    return [match.span() for match in _WORD.finditer(text)]


def _cut(places: Sequence[tuple[int, int]], spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Return tokens, cut where a span begins or ends within one."""
    cuts = np.array(sorted({offset for start, end, _ in spans for offset in (start, end)}), np.int64)
    pieces: list[tuple[int, int]] = []
    for start, end in places:
        inner = cuts[np.searchsorted(cuts, start, "right") : np.searchsorted(cuts, end)].tolist()
        pieces += itertools.pairwise([start, *inner, end])
    return pieces


def _to_tags(name: Id, places: Sequence[tuple[int, int]], spans: Sequence[Span]) -> list[str]:
    """Return IOB2 tags; a span that is no sequence of tokens, or overlaps another, is an error."""
    first = {start: i for i, (start, _) in enumerate(places)}
    last = {end: i for i, (_, end) in enumerate(places)}
    tags = ["O"] * len(places)
    for start, end, label in spans:
        if start not in first or end not in last:
            raise InputError(
                f"The span from {start} to {end} in document {shorten(name)} does not begin and end with a token.",
                "Write another format, such as label-studio.",
            )
        covered = range(first[start], last[end] + 1)
        if any(tags[i] != "O" for i in covered):
            raise InputError(
                f"Spans of one worker overlap in document {shorten(name)}, which columns of tags cannot express.",
                "Write another format, such as label-studio.",
            )
        if re.search(r"\s", label):
            raise InputError(f"{label!r} cannot be part of a tag: it has a blank.", "Rename it.")
        for i in covered:
            tags[i] = f"{'B' if i == covered[0] else 'I'}-{label}"
    return tags


def _recognise(head: bytes, path: str) -> bool:
    """Tell whether all lines in the first bytes are tokens with tags, comments or blank, and some tag has a type."""
    if path.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")) or b"\0" in head:
        return False
    lines = head.decode("utf-8-sig", errors="ignore").splitlines()
    lines = lines[:-1] if len(head) >= HEAD else lines
    rows = [_split(line, "\t" if "\t" in line else None) for line in lines if line.strip()]
    rows = [row for row in rows if not row[0].startswith(("#", _START))]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2 or not all(_is_tag(row[-1]) for row in rows):
        return False
    return any(_types(column) and all(map(_is_tag, column)) for column in list(zip(*rows, strict=True))[1:])


CONLL = Codec(recognise=_recognise, read_spans=_read_spans, write_spans=_write_spans, carries=frozenset({"tokens"}))
