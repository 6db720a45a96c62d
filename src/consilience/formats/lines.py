"""Text files line by line: slow readings, to say in a message where something stands."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from ..errors import InputError
from .files import TEXT_FORMATS, find_format, open_input

DELIMITERS = {"csv": ",", "tsv": "\t"}


def open_text(path: str, errors: str) -> io.TextIOWrapper:
    """Return the text of a file, without a byte order mark; line ends are left to the csv module."""
    binary = io.BufferedReader(open_input(path))
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="")


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    with io.BufferedReader(open_input(path)) as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())


def record_lines(path: str) -> Iterator[int]:
    """Yield the number of the line on which each record starts, the header being a record; blank lines hold none."""
    delimiter = DELIMITERS.get(find_format(path))
    if delimiter is None:
        yield from (number for number, _ in numbered_lines(path))
        return
    with open_text(path, errors="replace") as text:
        reader = csv.reader(text, delimiter=delimiter)
        start = 1
        for record in reader:
            if record:
                yield start
            start = reader.line_num + 1


def place_of_row(path: str, row: int) -> str:
    """Return where row `row` (from 0) of a file stands, for a message."""
    format_ = find_format(path)
    if format_ in TEXT_FORMATS:
        try:
            n_before = row + (format_ in DELIMITERS)
            return f"{path}, line {next(itertools.islice(record_lines(path), n_before, None))}"
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
        # Not even readable: the caller says so.
        return


def encoding_error(place: str) -> InputError:
    """Return the error for text in another encoding."""
    return InputError(f"{place}: the text is not UTF-8. Save the file as UTF-8.")
