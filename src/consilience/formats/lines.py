"""Text files read line by line. This is slow: it serves messages that say where something is."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Generator, Iterator
from typing import IO, AnyStr

from ..errors import InputError
from ..memory import format_bytes
from .files import LONGEST_ROW, name_of, open_input
from .register import LineFinder


def read_text(path: str, errors: str) -> Generator[str]:
    """Yield the lines of a file as text, without a byte order mark; line ends are left to the csv module."""
    binary = io.BufferedReader(open_input(path))
    with io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="") as file:
        yield from (line for _, line in _bounded_lines(file, path))


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    with io.BufferedReader(open_input(path)) as file:
        yield from ((number, line) for number, line in _bounded_lines(file, path) if line.strip())


def _bounded_lines(file: IO[AnyStr], path: str) -> Iterator[tuple[int, AnyStr]]:
    """Yield the lines with their numbers. One that is too long is an error before all of it is in memory."""
    for number in itertools.count(1):
        line = file.readline(LONGEST_ROW + 1)
        if not line:
            return
        if len(line) > LONGEST_ROW:
            raise long_row_error(path, number)
        yield number, line


def find_long_row(path: str) -> int | None:
    """Return the line on which the first row begins that is too long, None if there is none.

    A row goes on in the next line as long as a quote is open.
    """
    start, size, is_open = 1, 0, False
    with io.BufferedReader(open_input(path)) as file:
        for number in itertools.count(1):
            line = file.readline(LONGEST_ROW + 1)
            size += len(line)
            if size > LONGEST_ROW:
                return start
            if not line:
                return None
            is_open ^= bool(line.count(b'"') % 2)
            if not is_open:
                start, size = number + 1, 0
    return None


def long_row_error(path: str, line: int) -> InputError:
    """Return the error for a row that is too long."""
    return InputError(
        f"{name_of(path)}, line {line}: the row is longer than {format_bytes(LONGEST_ROW)}.",
        "Give one answer per row, and close every quote that is opened.",
    )


def place_of_row(path: str, row: int, find_lines: LineFinder | None) -> str:
    """Return the place of row `row` (from 0) of a file, for a message: its line if there are lines, else its number."""
    if find_lines is not None:
        try:
            return f"{name_of(path)}, line {next(itertools.islice(find_lines(path), row, None))}"
        except (OSError, csv.Error, StopIteration, InputError):
            # The file is gone or changed, or has a field too long for the csv module, or a row too long for anyone.
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
    """Return the error for text in another encoding."""
    return InputError(f"{place}: the text is not UTF-8.", "Save the file as UTF-8.")
