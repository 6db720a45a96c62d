"""What users hand in, as `Responses`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from ..formats.answers import answers_from_table
from ..formats.files import read_table
from ..formats.frames import Table, open_frame
from ..responses import Responses


def read_responses(
    path: str | os.PathLike[str],
    item: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    sequence: str | None = None,
    position: str | None = None,
    weight: str | None = None,
    classes: ArrayLike | None = None,
    items: Any = None,
    duplicates: str = "error",
) -> Responses:
    """Read answers from a file, a glob or a folder: .csv .tsv .jsonl .parquet .arrow.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder.
    item, worker, label, sequence, position, weight, classes, items, duplicates
        As in `Responses.from_frame`.

    Returns
    -------
    Responses

    Notes
    -----
    In CSV and TSV every column is text, except that whole numbers become integers; only the empty field is missing.
    """
    answers = answers_from_table(open_file(path), item, worker, label, sequence, position, weight, items, duplicates)
    return Responses.from_answers(answers, classes)


def open_file(path: str | os.PathLike[str], nameable: bool = True) -> Table:
    """Return a table file, glob or folder as a `Table` that knows in which file and line a row stands."""
    source = read_table(path)
    return replace(open_frame(source.table, os.fspath(path), nameable), locate=source.locate)


def as_responses(source: Any) -> Responses:
    """Return answers in any form as `Responses`."""
    if isinstance(source, Responses):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_responses(source)
    return Responses.from_frame(source)
