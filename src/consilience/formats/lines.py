"""Text files read line by line. This is slow: it serves messages that say where something is."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from ..errors import InputError
from .files import open_input
from .register import LineFinder


def open_text(path: str, errors: str) -> io.TextIOWrapper:
    """Return the text of a file, without a byte order mark; line ends are left to the csv module."""
    binary = io.BufferedReader(open_input(path))
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="")


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    with io.BufferedReader(open_input(path)) as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())


def place_of_row(path: str, row: int, find_lines: LineFinder | None) -> str:
    """Return the place of row `row` (from 0) of a file, for a message: its line if there are lines, else its number."""
    if find_lines is not None:
        try:
            return f"{path}, line {next(itertools.islice(find_lines(path), row, None))}"
        except (OSError, csv.Error, StopIteration):
            # The file is gone or changed, or has a field too long for the csv module.
            pass
    return f"{path}, row {row + 1}"


def check_encoding(path: str) -> None:
    """Raise an error that names the first line which is not UTF-8, if there is one."""
    try:
        for number, line in numbered_lines(path):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise encoding_error(f"{path}, line {number}") from error
    except OSError:
        # The file cannot be read at all: the caller says so.
        return


def encoding_error(place: str) -> InputError:
    """Return the error for text in another encoding."""
    return InputError(f"{place}: the text is not UTF-8.", "Save the file as UTF-8.")
