"""Answers from files."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

from ..data.responses import Responses
from .reading import open_file

# The parameters of `Responses.from_frame`: names of columns, and how to read them.
COLUMNS = frozenset(inspect.signature(Responses.from_frame).parameters) - {"frame"}


def read_responses(path: str | os.PathLike[str], **columns: Any) -> Responses:
    r"""Read answers from a file, a glob or a folder: .csv .tsv .jsonl .parquet .arrow.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder.
    **columns
        Names of columns and the other parameters of `Responses.from_frame`: item, worker, label, sequence, position,
        weight, classes, items, duplicates, abstain, background, normalise. Here `items` may also be the path of a file.

    Returns
    -------
    Responses

    Notes
    -----
    The suffixes .ndjson (JSON lines) and .feather (Arrow) do too, and text formats may be compressed (.csv.gz). A file
    that is Parquet, Arrow, JSON lines or compressed by its content is read as such, whatever its suffix.

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
    return read_frame(open_file(path), **columns)


def read_frame(frame: Any, **columns: Any) -> Responses:
    """Read answers as `Responses.from_frame` does, with items that may be the path of a file.

    The names of the columns of answers hold for the file of items too, where it has such columns.
    """
    items = columns.get("items")
    if isinstance(items, (str, os.PathLike)):
        items = open_file(items, preferred={role: columns.get(role) for role in ("item", "sequence", "position")})
    return Responses.from_frame(frame, **columns | {"items": items})


def check_keywords(function: Callable[..., Any], given: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise what Python does for a keyword that neither a function nor `Responses.from_frame` has, nor `others`."""
    own = {name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD}
    known = own | COLUMNS | set(others)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f". Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}")
