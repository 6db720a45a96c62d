"""Answers from files."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from ..answers.dialects.register import list_names
from ..answers.responses import Responses
from ..answers.tables import Table
from ..arguments import is_among, to_path
from ..errors import parameter_error
from .label_matrix import SUFFIX, open_matrix
from .reading import open_file
from .register import readable_formats

# The parameters of `Responses.from_frame`: names of columns, and how to read them.
COLUMNS = frozenset(inspect.signature(Responses.from_frame).parameters) - {"frame"}


def read_responses(path: str | os.PathLike[str], **columns: Any) -> Responses:
    r"""Read answers from a file, a glob or a folder: .csv .tsv .jsonl .parquet .arrow, or a matrix in .npy.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder. "-" is standard input: CSV, TSV or JSON lines.
    **columns
        Names of columns and the other parameters of `Responses.from_frame`: item, worker, label, sequence, position,
        weight, classes, items, duplicates, abstain, background, normalise, gold, drop_missing, format, order, ignore.
        Here `items` may also be the path of a file, and `format` also the name of a file format (csv, tsv, jsonl,
        parquet, arrow) for a file whose suffix does not tell.

    Returns
    -------
    Responses

    Notes
    -----
    The suffixes .ndjson (JSON lines) and .feather (Arrow) do too, and text formats may be compressed (.csv.gz). A file
    that is Parquet, Arrow, JSON lines or compressed by its content is read as such, whatever its suffix.

    Results of MTurk, Toloka and Appen and tables with one column per worker are recognised by their columns; see
    `format` of `Responses.from_frame`. A .npy file is a matrix with one row per item and one column per worker, and -1
    for no answer.

    In CSV and TSV every column is text, except that whole numbers become integers; only the empty field is missing.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("item,who,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> cs.read_responses(file, worker="who")
    Responses(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """
    check_keywords(read_responses, columns)
    return read_source(to_path("path", "read_responses", path), **columns)


def read_source(source: Any, **columns: Any) -> Responses:
    """Read answers from a table, or from the files at a path, with items that may be the path of a file.

    The names of the columns of answers hold for the file of items too, where it has such columns.
    """
    items, format = columns.get("items"), columns.get("format")
    if isinstance(items, (str, os.PathLike)):
        items = open_file(items, preferred={role: columns.get(role) for role in ("item", "sequence", "position")})
    if isinstance(source, (str, os.PathLike)):
        source, format = open_table(to_path("path", "read_responses", source), format)
    answers = Responses.from_frame(source, **columns | {"items": items, "format": format})
    del source
    pa.default_memory_pool().release_unused()  # Arrow would keep the memory of a file that was read
    return answers


def open_table(path: str, format: Any = None) -> tuple[Table, str | None]:
    """Return the table at a path, and the form that it has if that is given; `format` is one of files or of tables."""
    is_file_format = isinstance(format, str) and format in {each.name for each in readable_formats()}
    if not is_file_format:
        check_form(format)
    if path.lower().endswith(SUFFIX) and os.path.isfile(path):
        return open_matrix(path), format or "matrix"
    return open_file(path, format=format if is_file_format else None), None if is_file_format else format


def check_form(format: Any) -> None:
    """Raise an error for a format that is neither one of files nor of tables, before anything is read."""
    known = [*(each.name for each in readable_formats()), *list_names()]
    if format is not None and not is_among(format, known):
        raise parameter_error("format", "read_responses", f"one of {', '.join(map(repr, known))}", format)


def check_keywords(function: Callable[..., Any], given: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise what Python does for a keyword that neither a function nor `Responses.from_frame` has, nor `others`."""
    own = {name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD}
    known = own | COLUMNS | set(others)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f". Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}")
