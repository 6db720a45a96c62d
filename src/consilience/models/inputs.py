"""What users hand in, as `Responses`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ..errors import ParameterError, listing
from ..formats.frames import Table, open_frame
from ..formats.reading import read_table
from ..responses import Responses


def read_responses(path: str | os.PathLike[str], **columns: Any) -> Responses:
    r"""Read answers from a file, a glob or a folder: .csv .tsv .jsonl .parquet .arrow.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder.
    **columns
        Names of columns and the other keywords of `Responses.from_frame`: item, worker, label, sequence, position,
        weight, classes, items, duplicates.

    Returns
    -------
    Responses

    Notes
    -----
    In CSV and TSV every column is text, except that whole numbers become integers; only the empty field is missing.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("item,who,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> cs.read_responses(file, worker="who")
    Responses(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """
    return Responses.from_frame(open_file(path), **columns)


def open_file(path: str | os.PathLike[str], nameable: bool = True) -> Table:
    """Return a table file, glob or folder as a `Table` that knows in which file and line a row stands."""
    source = read_table(path)
    return replace(open_frame(source.table, os.fspath(path), nameable), locate=source.locate)


def as_responses(source: Any, **columns: Any) -> Responses:
    """Return answers in any form as `Responses`."""
    if isinstance(source, Responses):
        if columns:
            raise ParameterError(f"Columns ({listing(columns)}) cannot be named for Responses: they are read already.")
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_responses(source, **columns)
    return Responses.from_frame(source, **columns)
