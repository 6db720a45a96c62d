"""Texts with marked spans, read from and written to the files of annotation tools."""

from __future__ import annotations

import difflib
import os
from typing import Any

import pyarrow as pa

from ..arguments import to_path
from ..errors import InputError, first_line, listing, parameter_error
from ..tasks.spans import Spans
from .annotations import list_inputs
from .brat import is_brat
from .files import PathLike, find_format
from .register import Format, span_formats


def read_spans(path: PathLike, format: str | None = None) -> Spans:
    r"""Read texts and the spans that workers marked in them.

    Parameters
    ----------
    path : str or path
        A file, a folder, or a pattern such as ``"ann/*.jsonl"``.
    format : str, optional
        Name of the format: "label-studio", "prodigy", "doccano", "brat", "conll" or "argilla". By default it follows
        from the content.

    Returns
    -------
    Spans

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.jsonl").write_text('{"id": 1, "text": "Ann met Bob.", "label": [[0, 3, "PER"]]}\n')
    >>> _ = (folder / "bob.jsonl").write_text('{"id": 1, "text": "Ann met Bob.", "label": [[8, 11, "PER"]]}\n')
    >>> cs.read_spans(folder)
    Spans(2 spans in 1 document by 2 workers, 1 type: 'PER')
    """
    source = to_path("path", "read_spans", path)
    chosen = _find(source) if format is None else _by_name(format, "read_spans")
    read = chosen.codec.read_spans
    assert read is not None
    try:
        return read(source)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{source!r} cannot be read: {first_line(error)}.", "Check the file.") from error


def write_spans(spans: Spans, path: PathLike, format: str | None = None) -> None:
    """Write texts and spans to the file of an annotation tool.

    Parameters
    ----------
    spans : Spans
        What to write. Spans with a confidence are written as predictions, where the format has these.
    path : str or path
        A file. For brat it is a folder, and for doccano and CoNLL it may be one: then there is one file per worker.
    format : str, optional
        Name of the format, as in `read_spans`. By default it is the one that the spans were read from. What that file
        has beside spans is kept if the format is the same.
    """
    target = to_path("path", "write_spans", path)
    if not isinstance(spans, Spans):
        raise parameter_error("spans", "write_spans", "a Spans", spans)
    if format is None and spans.origin is None:
        raise parameter_error("format", "write_spans", "given, since the spans were not read from a file", format)
    chosen = _by_name(format if spans.origin is None or format is not None else spans.origin.format, "write_spans")
    write = chosen.codec.write_spans
    assert write is not None
    write(spans, target)


def _by_name(name: Any, owner: str) -> Format:
    formats = {each.name: each for each in span_formats()}
    if not isinstance(name, str) or name not in formats:
        close = difflib.get_close_matches(str(name), formats, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise parameter_error("format", owner, f"one of {listing(formats, most=20)}{hint}", name)
    return formats[name]


def _find(path: str) -> Format:
    """Return the format of a file, or the one that the files in a folder share."""
    if os.path.isdir(path) and is_brat(path):
        return _by_name("brat", "read_spans")
    files = list_inputs(path)
    found = {file: find_format(file) for file in files}
    formats = {each.name: each for each in found.values() if each is not None}
    shared = next(iter(formats.values()), None)
    names = listing([each.name for each in span_formats()], most=20)
    if len(formats) > 1 and any(each.spans for each in formats.values()):
        raise InputError(
            f"The files in {path!r} are of several formats: {listing(sorted(formats))}.",
            "Choose those of one format with a pattern.",
        )
    if shared is None or not shared.spans:
        what = "" if shared is None else f" It looks like a table ({shared.name})."
        raise InputError(
            f"{path!r} is not recognised as texts with spans.{what}",
            f"Name the format with format=, one of {names}; read a table with consilience.read_responses.",
        )
    return shared
