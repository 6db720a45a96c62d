"""What reading and writing have in common in all formats: files and folders, compression, lines, names of columns.

A file may also be on another machine, at any address that fsspec knows, such as s3://bucket/answers/*.parquet.
"""

from __future__ import annotations

import csv
import difflib
import glob
import io
import itertools
import os
import re
import sys
from collections.abc import Generator, Iterator
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

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
# How Parquet and Arrow begin.
_BINARY = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
_NAME_OF_INPUT = "standard input"
# What was read from a standard input, which can be read only once.
_inputs: WeakKeyDictionary[Any, pa.Buffer] = WeakKeyDictionary()
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
    if path == STANDARD_INPUT:
        usual = "jsonl" if text.startswith(b"{") else "tsv" if b"\t" in text.partition(b"\n")[0] else "csv"
        found = find_by_name(usual)
    else:
        found = next((each for each in formats if each.fits(path)), None)
    if path != STANDARD_INPUT or not text.startswith((b"[", *_BINARY)):
        name = "-.csv" if path == STANDARD_INPUT else path.lower()
        for each in formats:
            may_be = text.startswith(each.head) and not name.endswith(each.never)
            if may_be and each.codec.recognise is not None and each.codec.recognise(head, path):
                found = each
                break
    if path == STANDARD_INPUT and (found is None or found.outputs or text.startswith((b"[", *_BINARY))):
        raise InputError(
            "Standard input must be CSV, TSV or JSON lines, and no file of an annotation tool.",
            "Give the name of the file.",
        )
    return found


def open_input(path: str) -> Any:
    """A stream of the bytes of a file, decompressed if its content or its suffix says that it is compressed."""
    if path == STANDARD_INPUT:
        return _open_standard_input()
    with open_raw(path, "rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP or path.lower().endswith(".gz")
    return pa.input_stream(open_raw(path, "rb"), compression="gzip" if compressed else None)


def _open_standard_input() -> Any:
    """A stream of all that is on standard input, however often it is read."""
    stream = sys.stdin
    if stream not in _inputs:
        binary = getattr(stream, "buffer", None)
        _inputs[stream] = pa.py_buffer(binary.read() if binary is not None else stream.read().encode())
    buffer = _inputs[stream]
    compressed = buffer.size >= len(_GZIP) and buffer[: len(_GZIP)].to_pybytes() == _GZIP
    return pa.input_stream(pa.BufferReader(buffer), compression="gzip" if compressed else None)


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
        raise _missing_error(path)
    try:
        if is_remote(path):
            system, inner = _find_system(path)
            is_pattern, is_file = glob.has_magic(inner), system.isfile(inner)
            listed = system.glob(inner) if is_pattern else [inner] if is_file else system.ls(inner, detail=False)
            found = list(map(system.unstrip_protocol, listed))
        elif os.path.isdir(path):
            found = [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
        else:
            found = glob.glob(path, recursive=True)
    except PermissionError as error:
        raise permission_error(path) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the path.") from error
    inputs = sorted(file for file in found if is_remote(file) or os.path.isfile(file))
    if not inputs:
        others = f"found only {listing(sorted(found))}" if found else "found nothing"
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


def _missing_error(path: str) -> InputError:
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        return InputError(f"{path!r} does not exist, nor does the folder {folder!r}.", "Check the path.")
    others = [other for other in os.listdir(folder or ".") if other != name]  # a broken link has this very name
    close = difflib.get_close_matches(name, others, cutoff=0.8)
    hint = f"Did you mean {listing(os.path.join(folder, other) for other in close)}?" if close else "Check the path."
    return InputError(f"{path!r} does not exist.", hint)


def permission_error(path: str) -> InputError:
    """The error for a file that may not be read."""
    return InputError(f"{path!r} cannot be read: permission denied.", "Change its permissions or copy it.")


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
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns
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
        found: tuple[Any, str] = fsspec.core.url_to_fs(path)
        return found
    except (ValueError, ImportError) as error:  # no such protocol, or its package is missing
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the address.") from error


def read_integers(texts: Any) -> Any:
    """`texts` as int64 if each is exactly how its integer is written; as null if all are null."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts))
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return texts
    # Arrow knows several types of text, and columns of different types are never equal.
    return numbers if pc.cast(numbers, texts.type).equals(texts) else texts
