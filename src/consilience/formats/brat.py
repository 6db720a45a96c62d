r"""brat: folders of texts (.txt) with stand-off annotations (.ann), one folder per annotator.

Relies on the stand-off format of brat 1.3. A line ``T1<tab>PER 0 5<tab>Alice`` is a span. Lines of other kinds
(relations R and \*, events E, attributes A and M, normalisations N, notes #) are kept when spans are written back to
the same worker, as long as all that they refer to is kept.

- A worker is the name of a folder. A folder that itself holds .ann files is one worker.
- A document is the path of a file in the worker's folder, without suffix. The text may also be in the folder above, or
  in that of another worker.
- A text without an .ann file was not read by that worker. An empty .ann file is an annotation without spans.
- Offsets count characters, and line breaks of all kinds as they are in the file.
- A span of several fragments (``0 5;8 10``) is taken from the first to the last character, with a warning if there is
  more than blanks between them.
- A confidence is written as a note.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import NoReturn

from ..errors import DataWarning, InputError, plural, shorten, warn
from ..tasks.spans import SpanCollector, Spans
from . import Codec
from .annotation_tools import (
    Reading,
    Span,
    check_unchanged,
    finish,
    index_documents,
    list_readings,
    origin_of,
    say_nothing,
)
from .files import encoding_error, file_name, make_folder
from .records import Place, plain
from .writing import replace_file, replace_together

_NAME = "brat"
_TOOL = "brat"
_BOM = "\ufeff"
_SPAN = re.compile(r"(\S+) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)")
_REFERENCE = re.compile(r"[TREAMN]\d+")


def is_brat(folder: str) -> bool:
    """Tell whether there are .ann files in a folder, or in the folders in it."""
    return bool(_annotated(folder)) or bool(_worker_folders(folder))


def _annotated(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".ann") and not name.startswith("."))
    except OSError:
        return []


def _worker_folders(folder: str) -> dict[str, str]:
    """Return the folders of workers by name."""
    found = {}
    for name in sorted(os.listdir(folder)):
        inner = os.path.join(folder, name)
        if not name.startswith(".") and os.path.isdir(inner) and any(Path(inner).rglob("*.ann")):
            found[name] = inner
    return found


def _find_workers(path: str) -> dict[str, str]:
    """Return the folder of each worker."""
    if not os.path.isdir(path):
        raise InputError(f"{path!r} is no folder.", "brat annotations are read from a folder: give that.")
    workers = _worker_folders(path)
    if _annotated(path):
        if workers:
            raise InputError(
                f"{path!r} holds .ann files, and folders of .ann files such as {next(iter(workers))!r}.",
                "Give one folder per annotator, or a folder of texts only.",
            )
        return {os.path.basename(os.path.abspath(path)): path}
    if not workers:
        say_nothing(path, _TOOL)
    return workers


def _read_spans(path: str) -> Spans:
    workers = _find_workers(path)
    texts: dict[str, str] = {}
    annotations: dict[str, list[tuple[str, str]]] = {}  # for each document, the workers and their files
    for worker, folder in workers.items():
        for file in sorted(map(str, Path(folder).rglob("*.ann"))):
            name = os.path.relpath(file, folder).removesuffix(".ann").replace(os.sep, "/")
            text = _read_text(_find_text(path, folder, name, file, workers))
            if texts.setdefault(name, text) != text:
                raise InputError(
                    f"{file}: the text of {shorten(name)} is not the same as in another folder.",
                    "Give all the same text.",
                )
            annotations.setdefault(name, []).append((worker, file))
    collector = SpanCollector()
    n_split = 0
    for name in sorted(texts):
        document = collector.add_document(name, texts[name])
        for worker, file in annotations[name]:
            spans, split = _parse(file, _read_annotations(file), texts[name])
            n_split += split
            collector.add_reading(document, worker, spans.values())
    if n_split:
        verb = "has several fragments and is" if n_split == 1 else "have several fragments and are"
        warn(DataWarning(f"{plural(n_split, 'span')} in {path!r} {verb} read from the first to the last character."))
    return finish(collector, path, _NAME)


def _find_text(root: str, folder: str, name: str, file: str, workers: dict[str, str]) -> str:
    places = [folder, root, *workers.values()]
    for place in places:
        text = os.path.join(place, f"{name}.txt")
        if os.path.isfile(text):
            return text
    raise InputError(f"{file!r} has no text: there is no {name + '.txt'!r} beside it.", "Add the text.")


def _read_text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise encoding_error(path) from error


def _read_annotations(path: str) -> str:
    return _read_text(path).removeprefix(_BOM)


def _parse(file: str, content: str, text: str) -> tuple[dict[str, Span], int]:
    """Return the spans of an .ann file by their ids, and how many have several fragments."""
    found: dict[str, Span] = {}
    n_split = 0
    for number, line in enumerate(content.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip():
            continue
        place = Place(file, "line", number)
        if not line.startswith("T"):
            if line[0] not in "REAMN#*":
                _bad_line(place, line)
            continue
        mark, _, rest = line.partition("\t")
        where, _, quote = rest.partition("\t")
        match = _SPAN.fullmatch(where)
        if match is None:
            _bad_line(place, line)
        if mark in found:
            place.fail(f"{shorten(mark)} occurs twice.", "Give each annotation its own id.")
        fragments = [tuple(map(int, part.split())) for part in match[2].split(";")]
        for start, end in fragments:
            place.check_span(text, start, end)
        start, end = min(start for start, _ in fragments), max(end for _, end in fragments)
        said = " ".join(text[start:end] for start, end in fragments)
        if quote and _squeeze(quote) != _squeeze(said):
            odd = " The text begins with a byte order mark, which counts as a character." if text[:1] == _BOM else ""
            place.fail(
                f"the annotation quotes {shorten(quote)}, but the text there is {shorten(said)}.{odd}",
                "Remove the mark, or correct the offsets." if odd else "Correct it.",
            )
        n_split += any(text[end:start].strip() for (_, end), (start, _) in itertools.pairwise(sorted(fragments)))
        found[mark] = start, end, match[1]
    return found, n_split


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _bad_line(place: Place, line: str) -> NoReturn:
    place.fail(f"expected an annotation such as T1<tab>PER 0 5<tab>text, found {shorten(line)}.", "Correct the line.")


# ------------------------------------------------------------------------------------------------------------ writing


def _write_spans(spans: Spans, path: str) -> None:
    """Write a folder for each worker, with the texts that the worker read and their annotations."""
    workers = [plain(worker) for worker in spans.workers.tolist()]
    folders = {worker: os.path.join(path, file_name(worker)) for worker in workers}
    origin = origin_of(spans, _NAME)
    known = _find_workers(origin) if origin else {}
    readings = list_readings(spans)
    if os.path.isfile(path):
        raise InputError(f"{path!r} is a file.", "brat annotations are written to a folder: give its name.")
    with replace_together():
        for name, index in index_documents(spans).items():
            for reading in readings[index]:
                base = os.path.join(folders[reading.worker], _document_path(name))
                source = known.get(str(reading.worker))
                old = os.path.join(source, f"{name}.ann") if source is not None else None
                content = _read_annotations(old) if old is not None and os.path.isfile(old) else ""
                if content and origin is not None and source is not None:
                    text = _find_text(origin, source, str(name), str(old), known)
                    check_unchanged(Place(text, "line", 1), _read_text(text), spans.texts[index])
                make_folder(os.path.dirname(base))
                for suffix, new in ((".ann", _compose(old or "", content, spans.texts[index], reading)),
                                    (".txt", spans.texts[index])):  # fmt: skip
                    with replace_file(base + suffix) as temporary:
                        temporary.write_bytes(new.encode())
        if origin is not None and os.path.realpath(origin) != os.path.realpath(path):
            for name in sorted(name for name in os.listdir(origin) if name.endswith(".conf")):
                with replace_file(os.path.join(path, name)) as temporary:
                    shutil.copyfile(os.path.join(origin, name), temporary)


def _document_path(name: object) -> str:
    return os.path.join(*(file_name(part) for part in str(plain(name)).split("/")))


def _compose(file: str, content: str, text: str, reading: Reading) -> str:
    """Return the lines of an .ann file: those of the old one that still hold, and new spans."""
    old, _ = _parse(file, content, text)
    wanted = set(reading.spans)
    lines = [line.removesuffix("\r") for line in content.split("\n") if line.strip()]
    gone, lines = _drop_dangling({mark for mark, span in old.items() if span not in wanted}, lines)
    there = {span for mark, span in old.items() if mark not in gone}
    number = max((int(mark[1:]) for mark in old if re.fullmatch(r"\d{1,18}", mark[1:])), default=0)
    notes = [int(line[1:].split("\t")[0]) for line in lines if re.match(r"#\d{1,9}\t", line)]
    note = max(notes, default=0)
    for (start, end, label), score in zip(reading.spans, reading.scores, strict=True):
        if (start, end, label) in there:
            continue
        if not label or re.search(r"\s", label):
            raise InputError(
                f"{label!r} cannot be a type in brat: it has a blank.", "Rename it, or write another format."
            )
        number += 1
        lines.append(f"T{number}\t{label} {_fragments(text, start, end)}\t{' '.join(text[start:end].splitlines())}")
        if score is not None:
            note += 1
            lines.append(f"#{note}\tAnnotatorNotes T{number}\tconfidence {score:.6g}")
    return "".join(f"{line}\n" for line in lines)


def _drop_dangling(gone: set[str], lines: list[str]) -> tuple[set[str], list[str]]:
    r"""Return all ids that are gone, and the lines that stay: what refers to something that is gone goes too.

    >>> _drop_dangling({"T1"}, ["T1\tA 0 1\ta", "R1\tx Arg1:T1 Arg2:T2", "#1\tNote R1\tb", "T2\tA 2 3\tc"])[1]
    ['T2\tA 2 3\tc']
    """
    ids = [line.partition("\t")[0] for line in lines]
    referring = dict[str, list[int]]()
    for place, line in enumerate(lines):
        for mark in _mentions(line):
            referring.setdefault(mark, []).append(place)
    n_left, dropped, waiting, gone = Counter(ids), set[int](), list(gone), set(gone)
    while waiting:
        for place in referring.get(waiting.pop(), ()):
            if place in dropped:
                continue
            dropped.add(place)
            mark = ids[place]
            n_left[mark] -= 1
            if not n_left[mark] and mark not in gone and mark not in ("*", "#"):
                waiting.append(mark)
                gone.add(mark)
    return gone, [line for place, line in enumerate(lines) if place not in dropped]


def _fragments(text: str, start: int, end: int) -> str:
    """Return the offsets of a span. In brat a span cannot hold a line break: it is one fragment per line then."""
    parts = [(match.start() + start, match.end() + start) for match in re.finditer(r"[^\n]+", text[start:end])]
    return ";".join(f"{first} {last}" for first, last in parts or [(start, end)])


def _mentions(line: str) -> list[str]:
    """Return the ids in a line: its own, and those that it refers to. The text of a span or a note has none."""
    mark, _, rest = line.partition("\t")
    return [mark] if mark.startswith("T") else [mark, *_REFERENCE.findall(rest.partition("\t")[0])]


BRAT = Codec(read_spans=_read_spans, write_spans=_write_spans, carries=frozenset({"confidence", "white space"}))
