"""The files that a command writes: checked before the work, and written after it, all or none."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import InputError
from ..formats.register import list_suffixes, readable_formats
from ..formats.writing import cannot_be_replaced, check_table_path, check_writable, replace_together


def check_folder(path: str, source: str) -> None:
    """Raise an error if a folder cannot be written to, or if that would change the input."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(f"{path!r} is a file.", "Give a folder.")
    root = os.path.dirname(source) if glob.has_magic(source) or os.path.isfile(source) else source
    real, read = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    is_own = real == read or (os.path.isdir(source) and real.is_relative_to(read))
    if is_own:
        raise InputError(f"Writing to {path!r} would change the input {source!r}.", "Write to another folder.")
    inputs = [Path(os.path.realpath(each)) for each in (glob.glob(source, recursive=True) or [source])]
    for link in _find_links(path):
        end = Path(os.path.realpath(link))
        if any(end.is_relative_to(each) or each.is_relative_to(end) for each in inputs):
            raise InputError(
                f"Writing to {path!r} would change the input {source!r}: {link!r} is a link to it.",
                "Write to another folder.",
            )


def _find_links(folder: str) -> Iterator[str]:
    """Yield the symbolic links in a folder, at any depth."""
    for inner, folders, files in os.walk(folder):
        yield from (link for name in (*folders, *files) if os.path.islink(link := os.path.join(inner, name)))


def check_page(path: str) -> None:
    """Raise the error that a report would meet, by what is installed and by the name of the file.

    A device may have any name.
    """
    from ..reporting.page import check_installed

    check_installed()
    if not path.lower().endswith((".html", ".htm")) and not cannot_be_replaced(path):
        raise InputError(
            f"The report is an HTML page, and {path!r} does not end in .html.", "Give a name such as report.html."
        )


def check_content(path: str | None) -> None:
    """Raise an error for a file of content that is not there: it may be meant for a column, as with `fuse`."""
    if path is not None and not os.path.exists(path) and not glob.has_magic(path):
        raise InputError(
            f"There is no file {path!r}.",
            "Give a file with the items and their content, such as --content answers.csv. A column can be named only "
            "with fuse.",
        )


def check_outputs(tables: Sequence[str | None], others: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Raise the error that writing would meet, also where an output would overwrite an input or another output.

    Parameters
    ----------
    tables : sequence of str or None
        Paths of tables, whose suffix says the format; None where there is none.
    others : sequence of str or None
        Paths of other files.
    inputs : sequence of str or None
        What is read: files, globs and folders.
    """
    taken: dict[str, str] = {}
    for path, check in [(path, check_table_path) for path in tables] + [(path, check_writable) for path in others]:
        if path is None:
            continue
        check(path)
        if cannot_be_replaced(path):
            continue  # a device or a pipe takes anything
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{path!r} is named for two outputs.", "Give each its own file.")
        taken[real] = path
        for source in inputs:
            if source is not None and _is_read_from(real, source):
                raise InputError(f"Writing {path!r} would change the input {source!r}.", "Write to another place.")


def write_together(outputs: Mapping[str, tuple[str | None, Callable[[str], object]]]) -> dict[str, str]:
    """Write files, all or none; return what is where.

    Parameters
    ----------
    outputs : mapping
        For each kind of output its path, None if it is not wanted, and what writes it there.
    """
    with replace_together():
        for path, write in outputs.values():
            if path is not None:
                write(path)
    return {kind: path for kind, (path, _) in outputs.items() if path is not None}


def _is_read_from(real: str, source: str) -> bool:
    """Tell whether a file is, or would be, among those that `source` stands for."""
    would_be_read = real.lower().endswith(tuple(list_suffixes(readable_formats())))
    if os.path.isdir(source):
        return would_be_read and os.path.dirname(real) == os.path.realpath(source)
    try:
        if real in {os.path.realpath(file) for file in (source, *glob.glob(source, recursive=True))}:
            return True
    except ValueError:  # no file can have such a name
        return False
    parts = Path(os.path.abspath(source)).parts
    n_fixed = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    root, path = os.path.realpath(os.path.join(*parts[:n_fixed])), Path(real)
    return would_be_read and path.is_relative_to(root) and _matches(path.relative_to(root).parts, parts[n_fixed:])


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Tell whether a glob would find a file if it were there: the parts of its path match those of the pattern.

    >>> _matches(("a", "b", "new.csv"), ("**", "*.csv")), _matches(("a", "new.csv"), ("*.csv",))
    (True, False)
    """
    if not names or not patterns:
        return not names and not patterns
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or _matches(names[1:], patterns)
    hidden = names[0].startswith(".") and not patterns[0].startswith(".")
    return not hidden and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])
