"""Whatever is at a path: answers about items, spans that workers marked in texts, or masks that readers drew.

What it is follows from the content. A file of an annotation tool may hold spans and answers about whole texts. Then the
spans are read, with a warning, unless names of columns are given: only answers have columns.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from scipy.sparse import issparse

from ..answers.columns import Values
from ..answers.dialects.register import list_names
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..arguments import is_among, to_path
from ..errors import DataWarning, InputError, ParameterError, Sentence, listing, parameter_error, warn
from ..tasks.masks import Masks
from ..tasks.spans import Spans
from .annotations import NotSpans, list_inputs
from .answers import read_source
from .brat import is_brat
from .files import STANDARD_INPUT, find_format
from .masks import NPY, are_masks, read_masks
from .png import SUFFIX as PNG
from .reading import open_path
from .register import FORMATS, Format, find_by_name
from .spans import read_spans

Opened: TypeAlias = Responses | Spans | Masks

# These name columns of a table of answers.
ROLES = ("item", "worker", "label", "sequence", "position", "weight")
# What `Responses.from_frame` does if nothing is said.
_DEFAULTS: dict[str, Any] = {
    "duplicates": "error",
    "abstain": "ignore",
    "normalise": False,
    "drop_missing": False,
    "ignore": (),
}


def open_source(path: str | os.PathLike[str], **columns: Any) -> Opened:
    """Read answers, spans or masks, whatever is at a path.

    Parameters
    ----------
    path : str or path
        A file, a folder, or a pattern such as ``"answers/*.csv"``.
    **columns
        The parameters of `read_responses`. Of these only `format`, which may also be the name of a format of spans or
        masks, and ``gold=False`` go with spans and masks.

    Returns
    -------
    Responses, Spans or Masks
    """
    source = to_path("path", "open_source", path)
    given = {
        name: value
        for name, value in columns.items()
        if value is not None and not is_among(value, [_DEFAULTS.get(name)])
    }
    found = find_source(source, given.get("format"))
    if found is None:
        return read_source(source, **columns)
    if found.codec.read_masks is not None:
        _refuse(given, source, "masks")
        return read_masks(source)
    if not any(name in given for name in ROLES):
        try:
            spans = read_spans(source, found.name)
        except NotSpans:
            return read_source(source, **columns)
        _refuse(given, source, "spans")
        _tell_questions(spans, source)
        return spans.without_gold() if given.get("gold") is False else spans
    return read_source(source, **columns)


def open_spans(source: Any) -> Any:
    """Return the spans at a path, if there are any; anything else as it is."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    found = find_source(os.fspath(source))
    if found is None or found.codec.read_spans is None:
        return source
    try:
        return read_spans(source, found.name)
    except NotSpans:
        return source


def open_masks(source: Any, images: Values) -> Any:
    """Return the masks of some of these images at a path, if there are any; anything else as it is."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    path = os.fspath(source)
    if not os.path.isdir(path):
        return read_masks(path) if are_masks(path) else source
    if not are_masks(path):  # pictures that are not in a folder of their reader are an error of masks
        return read_masks(path) if any(name.lower().endswith((PNG, NPY)) for name in os.listdir(path)) else source
    # One reader tells nothing about what folders stand for. The names of folders and files do.
    inner = [each.path for each in os.scandir(path) if each.is_dir() and not each.name.startswith(".")]
    files = {os.path.splitext(name)[0] for folder in inner for name in os.listdir(folder) if not name.startswith(".")}
    ids = set(map(str, images.tolist()))
    by_image = {os.path.basename(folder) for folder in inner} <= ids and not files <= ids
    return read_masks(path, folders="images" if by_image else "readers")


def as_graph(graph: Any, responses: Responses) -> Graph:
    """Return a graph over these items from whatever describes one."""
    if isinstance(graph, Graph):
        return graph
    if issparse(graph):
        return Graph.from_scipy(graph, items=responses.items)
    if isinstance(graph, list) and all(isinstance(edge, tuple) and len(edge) == 2 for edge in graph):
        return Graph.from_edges([edge[0] for edge in graph], [edge[1] for edge in graph], items=responses.items)
    if hasattr(graph, "nodes") and callable(getattr(graph, "edges", None)):
        return Graph.from_networkx(graph)
    return Graph.from_frame(open_path(graph), items=responses.items)


def find_source(path: str, format: Any = None) -> Format | None:
    """Return the format of spans, of answers in a tool's file, or of masks that is at a path; None for other tables.

    Nothing but the beginning of files is read. If there are none, or they are of several formats, the answer is None
    too, and whoever reads them as a table says so.
    """
    if format is not None:
        known = [*(each.name for each in FORMATS), *list_names()]
        if not is_among(format, known):
            raise parameter_error("format", "fuse", f"one of {', '.join(map(repr, known))}", format)
        named = find_by_name(format)
        return named if named is not None and _is_special(named) else None
    if path == STANDARD_INPUT:
        return None
    if are_masks(path):
        return find_by_name("masks")
    try:
        if os.path.isdir(path) and is_brat(path):
            return find_by_name("brat")
        formats = {find_format(file) for file in list_inputs(path)} - {None}
    except (InputError, OSError):
        return None
    shared = formats.pop() if len(formats) == 1 else None
    return shared if shared is not None and _is_special(shared) else None


def _is_special(format: Format) -> bool:
    return bool(format.outputs)


def _tell_questions(spans: Spans, path: str) -> None:
    """Warn that a file with spans holds answers about whole texts too, if it does."""
    questions = spans.questions
    if questions:
        warn(
            DataWarning(
                f"{path!r} holds spans and answers about whole texts ({listing(questions)}). Only the spans are used.",
                Sentence("To use the answers instead, give {label}.", label=questions[0]),
            )
        )


def _refuse(given: dict[str, Any], path: str, what: str) -> None:
    """Raise an error for parameters that say how to read a table of answers."""
    for name in given:
        if name not in ("format", "gold") or (name == "gold" and given[name] is not False):
            raise ParameterError(
                Sentence(f"{{{name}}} is for tables of answers.", **{name: None}),
                f"{path!r} holds {what}: leave it out.",
                keyword=name,
            )
