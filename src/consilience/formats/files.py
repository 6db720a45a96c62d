"""What reading and writing have in common in all formats: files and folders, compression, lines, names of columns.

A file may also be on another machine, at any address that fsspec knows, such as s3://bucket/answers/*.parquet.
"""

from __future__ import annotations

import csv
import glob
import io
import itertools
import os
import re
import sys
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import InputError, MissingDependencyError, first_line, listing
from . import Format, LineFinder, find_by_name, readable_formats

PathLike: TypeAlias = str | os.PathLike[str]

# Text is parsed in blocks of this size, and written this many rows at a time.
BLOCK = 1 << 24
ROWS_PER_WRITE = 1 << 14
# So much of a file is shown to formats that may recognise it.
HEAD = 1 << 20
_GZIP = b"\x1f\x8b"
# The path that stands for standard input, and what messages call it.
STANDARD_INPUT = "-"
_NAME_OF_INPUT = "standard input"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def name_of(path: str) -> str:
    """What messages call a file.

    >>> name_of("answers.csv"), name_of("-")
    ('answers.csv', 'standard input')
    """
    return _NAME_OF_INPUT if path == STANDARD_INPUT else path


def quote_path(path: str) -> str:
    """A path in quotes, and standard input by its name."""
    return _NAME_OF_INPUT if path == STANDARD_INPUT else repr(path)


def find_format(path: str) -> Format | None:
    """The format in which to read a file: the one its content shows, else the one its suffix names, or None.

    Standard input has no suffix: it is JSON lines if it begins with an object, TSV if there are tabs, else CSV.
    """
    try:
        with open_input(path) as stream:
            head = bytes(stream.read(HEAD))
    except OSError:
        head = b""  # the reader will say why
    text, formats = head.removeprefix(b"\xef\xbb\xbf").lstrip(), readable_formats()
    name = "-.csv" if path == STANDARD_INPUT else path.lower()
    for each in formats:
        recognise = each.codec.recognise if text.startswith(each.head) and not name.endswith(each.never) else None
        if recognise is not None and recognise(head, path):
            file_format: Format | None = each
            break
    else:
        file_format = next((each for each in formats if each.fits(path)), None)
    if path != STANDARD_INPUT:
        return file_format
    usual = find_by_name("jsonl" if text.startswith(b"{") else "tsv" if b"\t" in text.partition(b"\n")[0] else "csv")
    if file_format not in (None, usual) or text.startswith((b"[", b"PAR1", b"ARROW1")):
        raise InputError(
            "Standard input must be CSV, TSV or JSON lines, and no file of an annotation tool.",
            "Give the name of the file.",
        )
    return usual


def open_input(path: str) -> Any:
    """A stream of the bytes of a file, decompressed if its content or its suffix says that it is compressed."""
    source = pa.BufferReader(_read_all(sys.stdin)) if path == STANDARD_INPUT else open_raw(path, "rb")
    compressed = source.read(len(_GZIP)) == _GZIP or path.lower().endswith(".gz")
    source.seek(0)
    return pa.input_stream(source, compression="gzip" if compressed else None)


@lru_cache(maxsize=1)
def _read_all(stream: Any) -> bytes:
    """All that is on standard input, which can be read only once."""
    return bytes(stream.buffer.read()) if hasattr(stream, "buffer") else str(stream.read()).encode()


def open_output(path: str) -> Any:
    """A stream that writes to a file, compressed if its suffix says so."""
    return pa.output_stream(open_raw(path, "wb"), compression="gzip" if path.lower().endswith(".gz") else None)


def open_raw(path: str, mode: str) -> Any:
    """A file as Arrow reads and writes it. Its name may be any: Arrow itself takes only names in UTF-8."""
    if mode == "rb" and "://" in path and is_remote(path):
        system, inner = _find_system(path)
        return pa.PythonFile(system.open(inner, "rb"), mode="r")
    return pa.OSFile(os.fsencode(path), mode)


# -------------------------------------------------------------------------------------------------- lines of text


def read_text(path: str, errors: str) -> Generator[str]:
    """The lines of a file as text, without a byte order mark; line ends are left to the csv module."""
    binary = io.BufferedReader(open_input(path))
    with io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="") as file:
        yield from file


def read_whole(path: str) -> str:
    """All text of a file, which may be compressed."""
    try:
        with open_input(path) as stream:
            return str(stream.read(), "utf-8")
    except UnicodeDecodeError as error:
        raise encoding_error(path) from error


def numbered_lines(path: str, blank: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers from 1, those that are blank only if asked for."""
    with io.BufferedReader(open_input(path)) as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if blank or line.strip())


def place_of_row(path: str, row: int, find_lines: LineFinder | None) -> str:
    """The place of row `row` (from 0) of a file, for a message: its line if there are lines, else its number."""
    if find_lines is not None:
        try:
            return f"{name_of(path)}, line {next(itertools.islice(find_lines(path), row, None))}"
        except (OSError, csv.Error, StopIteration, InputError):
            # The file is gone or changed, or has a field too long for the csv module.
            pass
    return f"{name_of(path)}, row {row + 1}"


def check_encoding(path: str) -> None:
    """Raise an error that names the first line which is not UTF-8, if there is one."""
    try:
        for number, line in numbered_lines(path):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise encoding_error(f"{name_of(path)}, line {number}") from error
    except OSError:
        # The file cannot be read at all: the caller says so.
        return


def encoding_error(place: str) -> InputError:
    """The error for text in another encoding."""
    return InputError(f"{place}: the text is not UTF-8.", "Save the file as UTF-8.")


# -------------------------------------------------------------------------------------------- folders and patterns


def is_folder(path: str) -> bool:
    """Whether a path is, or would be, that of a folder: it has no suffix.

    >>> is_folder("no-such/fused"), is_folder("fused.jsonl")
    (True, False)
    """
    if os.path.exists(path):
        return os.path.isdir(path)
    return path.endswith(os.sep) or not os.path.splitext(path)[1]


def make_folder(path: str) -> None:
    """Create a folder, unless it is there."""
    try:
        os.makedirs(path or ".", exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r} cannot be created: {first_line(error)}.", "Write to another place.") from error


def find_formats(path: str) -> dict[str, Format | None]:
    """The files that a path stands for, in order of name, and their formats.

    They are the path itself, those in a folder, or those that match a pattern.

    Files of which no kind is known, such as a read-me, are left out. A damaged file may not be recognised, so files
    with the suffix of another that is recognised are kept.
    """
    if path == STANDARD_INPUT or os.path.isfile(path):
        return {path: find_format(path)}
    if not (is_remote(path) or os.path.isdir(path) or glob.has_magic(path)):
        raise InputError(f"{path!r} does not exist.", "Check the path.")
    try:
        if is_remote(path):
            system, inner = _find_system(path)
            is_pattern, is_file = glob.has_magic(inner), system.isfile(inner)
            listed = system.glob(inner) if is_pattern else [inner] if is_file else system.ls(inner, detail=False)
            paths = list(map(system.unstrip_protocol, listed))
        elif os.path.isdir(path):
            paths = [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
        else:
            paths = glob.glob(path, recursive=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the path.") from error
    inputs = sorted(file for file in paths if is_remote(file) or os.path.isfile(file))
    if not inputs:
        others = f"found only {listing(sorted(paths))}" if paths else "found nothing"
        raise InputError(f"No file to read in {path!r}: {others}.", "Check the path.")
    formats = {file: find_format(file) for file in inputs}
    known = {os.path.splitext(file)[1].lower() for file, format in formats.items() if format is not None}
    return {file: formats[file] for file in inputs if os.path.splitext(file)[1].lower() in known} or formats


def list_inputs(path: str) -> list[str]:
    """The files that a path stands for."""
    return list(find_formats(path))


def share_format(path: str) -> tuple[list[str], Format | None]:
    """The files that a path stands for, and their format; an error where they are of several."""
    formats = find_formats(path)
    examples = {format: file for file, format in reversed(formats.items())}
    if len(examples) > 1:
        raise InputError(
            f"The files in {path!r} are of several formats, such as {listing(sorted(examples.values()))}.",
            "Choose those of one format with a pattern.",
        )
    return list(formats), next(iter(examples))


def stem(path: str) -> str:
    """The name of a file without folder and suffixes that files of annotations have.

    >>> stem("folder/ann.b.jsonl.gz")
    'ann.b'
    """
    name = os.path.basename(path)
    for suffix in (".gz", os.path.splitext(name.removesuffix(".gz"))[1]):
        name = (name.removesuffix(suffix) if suffix else name) or name
    return name


def file_name(worker: object) -> str:
    """The name of a file or folder for a worker or an image, which stays within its folder."""
    name = str(worker)
    if not name or name.startswith(".") or any(sign in name for sign in '/\\\0:*?"<>|') or len(name.encode()) > 200:
        raise InputError(f"{worker!r} cannot be the name of a file.", "Give it another id, or write another format.")
    return name


# ------------------------------------------------------------------------------------------------ other machines


def is_remote(path: str) -> bool:
    """Whether something is an address, and no path.

    >>> is_remote("s3://bucket/answers.parquet"), is_remote("answers.parquet"), is_remote("c:/answers.csv")
    (True, False, False)
    """
    return _ADDRESS.match(path) is not None


def describe_state(path: str) -> object:
    """What is another if a file changes: its size and its time, or what a server says of it; None if nothing."""
    if not is_remote(path):
        state = os.stat(path)
        return state.st_size, state.st_mtime_ns
    system, inner = _find_system(path)
    facts = system.info(inner)
    names = "ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated", "created"
    marks = [facts.get(name) for name in names]
    return (facts.get("size"), *marks) if any(each is not None for each in marks) else None


def _find_system(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError(f"To read {path!r}, fsspec is needed: pip install 'consilience[big]'.") from error
    try:
        system: tuple[Any, str] = fsspec.core.url_to_fs(path)
        return system
    except (ValueError, ImportError) as error:  # no such protocol, or its package is missing
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the address.") from error
