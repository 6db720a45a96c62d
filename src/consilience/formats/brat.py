r"""brat: folders of texts (.txt) with stand-off annotations (.ann), one folder per annotator.

Relies on the stand-off format of brat 1.3. A line ``T1<tab>PER 0 5<tab>Alice`` is a span. Lines of other kinds
(relations R and \*, events E, attributes A and M, normalisations N, notes #) are kept where the annotations of a worker
are written again.

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
from pathlib import Path

from ..errors import InputError, plural, shorten, warn_of
from ..kinds.base import FUSED
from ..kinds.spans import MarkedText, Reading, Scored, Spans, collect_texts, list_texts
from . import Codec
from .annotation_tools import Entry, say_nothing
from .files import file_name, make_folder, read_whole
from .writing import replace_file

_BOM = "\ufeff"
_SPAN = re.compile(r"(\S+) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)")


def is_brat(path: str) -> bool:
    """Whether a path is that of a folder with .ann files, or with folders of such files."""
    try:
        return os.path.isdir(path) and bool(_annotated(path) or _worker_folders(path))
    except OSError:  # whoever reads it says what is wrong
        return False


def _annotated(folder: str) -> list[Path]:
    return sorted(each for each in Path(folder).glob("*.ann") if not each.name.startswith("."))


def _worker_folders(folder: str) -> dict[str, str]:
    """The folders of workers by name."""
    inner = sorted(each for each in Path(folder).iterdir() if each.is_dir() and not each.name.startswith("."))
    return {each.name: str(each) for each in inner if any(each.rglob("*.ann"))}


def read_brat(path: str) -> Spans:
    """The texts and the spans in a folder."""
    if not os.path.isdir(path):
        raise InputError(f"{path!r} is no folder.", "brat annotations are read from a folder: give that.")
    workers, own = _worker_folders(path), _annotated(path)
    if own and workers:
        raise InputError(
            f"{path!r} holds .ann files, and folders of .ann files such as {next(iter(workers))!r}.",
            "Give one folder per annotator, or a folder of texts only.",
        )
    if not own and not workers:
        say_nothing(path, "brat")
    workers = workers or {os.path.basename(os.path.abspath(path)): path}
    texts: list[MarkedText] = []
    n_split = 0
    for worker, folder in workers.items():
        for file in sorted(map(str, Path(folder).rglob("*.ann"))):
            name = os.path.relpath(file, folder).removesuffix(".ann").replace(os.sep, "/")
            places = (os.path.join(place, f"{name}.txt") for place in (folder, path, *workers.values()))
            beside = next(filter(os.path.isfile, places), None)
            if beside is None:
                raise InputError(f"{file!r} has no text: there is no {name + '.txt'!r} beside it.", "Add the text.")
            text = read_whole(beside)
            spans, split = _parse_spans(file, text)
            n_split += split
            texts.append(MarkedText(name, text, [Reading(worker, spans)], place=Entry(file, "line", 1)))
    if n_split:
        warn_of(
            f"In {path!r}, {plural(n_split, 'span')} of several fragments count from the first to the last character."
        )
    return collect_texts(sorted(texts, key=lambda text: str(text.name)), (os.path.abspath(path), "brat"))


def _parse_spans(file: str, text: str) -> tuple[Scored, int]:
    """The spans of an .ann file, and how many have several fragments."""
    spans: Scored = {}
    marks = set[str]()
    n_split = 0
    for number, line in enumerate(read_whole(file).removeprefix(_BOM).split("\n"), 1):
        line, place = line.removesuffix("\r"), Entry(file, "line", number)
        if not line.strip() or line[0] in "REAMN#*":
            continue
        mark, where, quote = (*line.split("\t", 2), "", "")[:3]
        match = _SPAN.fullmatch(where)
        if match is None or not line.startswith("T"):
            place.fail(
                f"expected an annotation such as T1<tab>PER 0 5<tab>text, found {shorten(line)}.", "Correct the line."
            )
        if mark in marks:
            place.fail(f"{shorten(mark)} occurs twice.", "Give each annotation its own id.")
        marks.add(mark)
        fragments = [place.check_span(text, *map(int, part.split())) for part in match[2].split(";")]
        quoted = "".join(text[start:end] for start, end in fragments)
        if quote and "".join(quote.split()) != "".join(quoted.split()):
            place.fail(f"the annotation quotes {shorten(quote)}, but the text there is {shorten(quoted)}.")
        n_split += any(text[end:start].strip() for (_, end), (start, _) in itertools.pairwise(sorted(fragments)))
        spans[min(start for start, _ in fragments), max(end for _, end in fragments), match[1]] = None
    return spans, n_split


def write_brat(spans: Spans, path: str) -> None:
    """Write a folder for each worker, with the texts that the worker read and their annotations.

    What annotators wrote is copied as it is.
    """
    if os.path.isfile(path):
        raise InputError(f"{path!r} is a file.", "brat annotations are written to a folder: give its name.")
    origin = spans.origin[0] if spans.origin is not None else ""
    sources = (_worker_folders(origin) or {os.path.basename(origin): origin}) if origin else {}
    files: dict[str, str] = {}
    for document in list_texts(spans):
        for reading in document.readings:
            if reading.worker is None:
                continue
            base = os.path.join(path, *map(file_name, (reading.worker, *str(document.name).split("/"))))
            old = os.path.join(sources.get(reading.worker, ""), f"{document.name}.ann")
            if reading.worker in sources and reading.worker != FUSED and os.path.isfile(old):
                files[f"{base}.ann"] = read_whole(old).removeprefix(_BOM)
            else:
                files[f"{base}.ann"] = _compose(document.text, reading)
            files[f"{base}.txt"] = document.text
    for file, content in files.items():
        make_folder(os.path.dirname(file))
        with replace_file(file) as temporary:
            temporary.write_bytes(content.encode())
    for settings in Path(origin).glob("*.conf") if origin and not os.path.samefile(origin, path) else ():
        shutil.copyfile(settings, os.path.join(path, settings.name))


def _compose(text: str, reading: Reading) -> str:
    """The lines of an .ann file."""
    lines = []
    for number, ((start, end, label), score) in enumerate(reading.spans.items(), 1):
        if not label or re.search(r"\s", label):
            raise InputError(
                f"{label!r} cannot be a type in brat: it has a blank.", "Rename it, or write another format."
            )
        # A span cannot hold a line break: it is one fragment per line then.
        parts = [match.span() for match in re.compile(r"[^\n]+").finditer(text, start, end)] or [(start, end)]
        where = ";".join(f"{first} {last}" for first, last in parts)
        lines.append(f"T{number}\t{label} {where}\t{' '.join(text[start:end].splitlines())}\n")
        if score is not None:
            lines.append(f"#{number}\tAnnotatorNotes T{number}\tconfidence {score:.6g}\n")
    return "".join(lines)


BRAT = Codec(load=read_brat, save=write_brat, is_at=is_brat, carries=frozenset({"confidence", "white space"}))
