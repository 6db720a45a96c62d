"""Whatever is at a path: answers about items, sets of tags, spans that workers marked in texts, masks of readers.

What it is follows from the content. A file of an annotation tool may hold spans and answers about whole texts. Then the
spans are read, with a warning, unless names of columns are given: only answers have columns.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from .. import formats as register
from ..answers import list_names
from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.tables import Table, open_frame
from ..errors import (
    InputError,
    ParameterError,
    Sentence,
    first_line,
    listing,
    parameter_error,
    warn_of,
)
from ..kinds import read_rows
from ..kinds.masks import Masks
from ..kinds.spans import Spans
from ..kinds.tags import ONE_HOT, Tags
from ..options import ROLES, given, is_among, to_path
from . import Format, find_by_name, readable_formats, span_formats
from .annotation_tools import NotSpans
from .arrays import MATRIX, NPY, NPZ, SOFT_FILES, open_matrix, open_votes, read_features
from .brat import is_brat
from .files import STANDARD_INPUT, PathLike, share_format
from .masks import are_masks, read_masks
from .reading import open_file, open_path, read_table

Opened: TypeAlias = Answers | Spans | Masks | Tags

# The parameters of `Answers.from_frame`: names of columns, and how to read them.
COLUMNS = frozenset(inspect.signature(Answers.from_frame).parameters) - {"frame"}
# The parameters of `Tags.from_frame`. Those that `Answers.from_frame` has not are for sets of tags alone.
TAG_COLUMNS = frozenset(inspect.signature(Tags.from_frame).parameters) - {"frame"}


def open_source(path: str | os.PathLike[str], **columns: Any) -> Opened:
    """Read answers, spans, masks or sets of tags, whatever is at a path.

    Parameters
    ----------
    path : str or path
        A file, a folder, or a pattern such as ``"answers/*.csv"``.
    **columns
        The parameters of `read_answers`, and those of `read_tags`. Of these only `format`, which may also be the name
        of a format of spans or masks, and ``gold=False`` go with spans and masks.

    Returns
    -------
    Answers, Spans, Masks or Tags
    """
    source, asked = to_path("path", "open_source", path), given(columns)
    found = find_source(source, asked.get("format"))
    if found is not None and found.codec.read_masks is not None:
        opened: Any = read_masks(source)
    elif found is not None and not any(name in asked for name in (*ROLES[:6], "separator")):
        opened = open_spans(source, found)
    else:
        opened = None
    if not isinstance(opened, (Spans, Masks)):
        return take_answers(source, **columns)
    what = "spans" if isinstance(opened, Spans) else "masks"
    for name, value in asked.items():
        if name != "format" and not (name == "gold" and value is False):
            raise ParameterError(
                Sentence(f"{{{name}}} is for tables of answers.", **{name: None}),
                f"{source!r} holds {what}: leave it out.",
                keyword=name,
            )
    if isinstance(opened, Masks):
        return opened
    if opened.questions:
        warn_of(
            f"{source!r} holds spans and answers about whole texts ({listing(opened.questions)}). Only the spans are "
            "used.",
            Sentence("To use the answers instead, give {label}.", label=opened.questions[0]),
        )
    return opened.without_gold() if asked.get("gold") is False else opened


def open_spans(source: Any, found: Format | None = None) -> Any:
    """The spans at a path, whose format may be known, if there are any; anything else as it is."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    found = found or find_source(os.fspath(source))
    try:
        return source if found is None or found.codec.read_spans is None else read_spans(source, found.name)
    except NotSpans:
        return source


def open_known(given: Any, brought: object) -> Any:
    """What is known of what was brought: spans or masks at a path if they are known, else what is there."""
    if not isinstance(brought, Masks):
        return open_path(open_spans(given))
    if not isinstance(given, (str, os.PathLike)) or not are_masks(os.fspath(given)):
        return given
    if not os.path.isdir(given):
        return read_masks(given)
    # One reader tells nothing about what folders stand for. Their names do.
    folders = {each.name for each in os.scandir(given) if each.is_dir() and not each.name.startswith(".")}
    return read_masks(given, folders="images" if folders <= set(map(str, brought.images.tolist())) else "readers")


def find_source(path: str, format: Any = None) -> Format | None:
    """The format of spans, of answers in a tool's file, or of masks that is at a path; None for other tables.

    Nothing but the beginning of files is read. If there are none, or they are of several formats, the answer is None
    too, and whoever reads them as a table says so.
    """
    if format is not None:
        _check_form(format, "fuse", register.FORMATS)
        named = find_by_name(format)
        return named if named is not None and named.outputs else None
    if path == STANDARD_INPUT:
        return None
    if (os.path.isdir(path) or path.lower().endswith((NPY, NPZ))) and are_masks(path):
        return find_by_name("masks")
    try:
        shared = find_by_name("brat") if os.path.isdir(path) and is_brat(path) else share_format(path)[1]
    except (InputError, OSError):
        return None
    return shared if shared is not None and shared.outputs else None


# ------------------------------------------------------------------------------------------------------ answers


def read_answers(
    path: str | os.PathLike[str],
    *,
    item: str | Sequence[str] | None = None,
    worker: str | None = None,
    label: str | None = None,
    sequence: str | Sequence[str] | None = None,
    position: str | None = None,
    weight: str | None = None,
    classes: ArrayLike | None = None,
    items: object = None,
    duplicates: str = "error",
    abstain: str = "ignore",
    background: object = None,
    normalise: bool = False,
    gold: str | bool | None = None,
    drop_missing: bool = False,
    format: str | None = None,
    order: str | None = None,
    ignore: Sequence[str] | str = (),
    ordered: bool | None = None,
    positions: ArrayLike | None = None,
    rescale: bool = False,
) -> Answers:
    r"""Read answers from a file, a glob or a folder: .csv .tsv .jsonl .parquet .arrow, or a matrix in .npy.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder. "-" is standard input: CSV, TSV or JSON lines.
    item, worker, label, sequence, position, weight, order, gold, ignore : optional
        Names of columns, as for `Answers.from_frame`.
    classes, duplicates, abstain, background, normalise, drop_missing, ordered, positions, rescale : optional
        As for `Answers.from_frame`.
    items : table, array, pairs or path, optional
        As for `Answers.from_frame`, or the path of a file.
    format : str, optional
        As for `Answers.from_frame`, or the name of a file format (csv, tsv, jsonl, parquet, arrow) for a file whose
        suffix does not tell.

    Returns
    -------
    Answers

    Notes
    -----
    The suffixes .ndjson (JSON lines) and .feather (Arrow) do too, and text formats may be compressed (.csv.gz). A file
    that is Parquet, Arrow, JSON lines or compressed by its content is read as such, whatever its suffix.

    Results of MTurk, Toloka and Appen and tables with one column per worker are recognised by their columns; see
    `format` of `Answers.from_frame`. A .npy file is a matrix with one row per item and one column per worker, and -1
    for no answer; of fractions with three axes, probabilities by item, worker and class. A folder may hold one .npy
    array or table of probabilities for each worker, called by the worker ("soft-files").

    In CSV and TSV every column is text, except that whole numbers become integers; only the empty field is missing.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("item,who,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> cs.read_answers(file, worker="who")
    Answers(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """
    columns = dict(locals())
    table, form = open_table(to_path("path", "read_answers", columns.pop("path")), format)
    return Answers.from_frame(table, **columns | {"items": _open_items(columns), "format": form})


def read_tags(
    path: str | os.PathLike[str],
    *,
    item: str | Sequence[str] | None = None,
    worker: str | None = None,
    label: str | Sequence[str] | None = None,
    separator: str | None = None,
    classes: object = None,
    items: object = None,
    duplicates: str = "error",
    gold: str | bool | None = None,
    drop_missing: bool = False,
    format: str | None = None,
) -> Tags:
    r"""Read sets of tags from a file, a glob or a folder: a table, or the file of an annotation tool.

    Parameters
    ----------
    path : str or path
        As for `read_answers`. Label Studio, Argilla, Prodigy and doccano files hold sets where several labels can be
        chosen.
    item, worker, label, separator, classes, duplicates, gold, drop_missing : optional
        As for `Tags.from_frame`.
    items, format : optional
        As for `Tags.from_frame`; or the path of a file, and the name of a file format.

    Returns
    -------
    Tags

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tags.csv"
    >>> _ = file.write_text("item,worker,tags\n1,ann,spam;urgent\n1,bob,urgent\n2,ann,\n")
    >>> cs.read_tags(file, separator=";")
    Tags(3 sets of 2 items by 2 workers, 2 tags: 'spam', 'urgent')
    """
    columns = dict(locals())
    table, form = open_table(to_path("path", "read_tags", columns.pop("path")), format)
    return Tags.from_frame(table, **columns | {"items": _open_items(columns), "format": form})


def take_answers(source: Any, **columns: Any) -> Answers | Tags:
    """Answers from a table, or from the files at a path: or sets of tags; see `read_rows`."""
    if isinstance(source, (str, os.PathLike)):
        table, form = open_table(to_path("path", "read_answers", source), columns.get("format"))
        columns |= {"format": form}
    else:
        table = open_frame(source)
    items = columns.get("items")
    return read_rows(table, columns if items is None else columns | {"items": _open_items(columns)})


def _open_items(columns: Mapping[str, Any]) -> Any:
    """All items, which may be in a file: the names of the columns of answers hold there too, where it has such."""
    items = columns.get("items")
    if not isinstance(items, (str, os.PathLike)):
        return items
    return open_file(items, preferred={role: columns.get(role) for role in ("item", "sequence", "position")})


def open_table(path: str, format: Any = None) -> tuple[Table, str | None]:
    """The table at a path, and the form that it has if that is given; `format` is one of files or of tables."""
    is_file_format = isinstance(format, str) and format in {each.name for each in readable_formats()}
    if format is not None and not is_file_format:
        _check_form(format, "read_answers", readable_formats())
    may_be_votes = format == SOFT_FILES or path.lower().endswith(NPY) or not os.path.isfile(path)
    votes = open_votes(path, format) if may_be_votes and not is_file_format else None
    if votes is not None:
        return votes, SOFT_FILES
    if path.lower().endswith(MATRIX) and os.path.isfile(path):
        return open_matrix(path), format or "matrix"
    return open_file(path, format=format if is_file_format else None), None if is_file_format else format


def _check_form(format: object, owner: str, formats: Iterable[Format]) -> None:
    """Raise an error for a format that is neither one of these nor a form of tables, before anything is read."""
    known = [*(each.name for each in formats), *list_names(), ONE_HOT]
    if format is not None and not is_among(format, known):
        raise parameter_error("format", owner, f"one of {', '.join(map(repr, known))}", format)


# -------------------------------------------------------------------------------------------------------- spans


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
    chosen = find_source(source) if format is None else find_span_format(format, "read_spans")
    read = None if chosen is None else chosen.codec.read_spans
    if read is None:
        share_format(source)  # an error if there is nothing
        names = listing([each.name for each in span_formats()], most=20)
        raise InputError(
            f"{source!r} is not recognised as texts with spans.",
            f"Name the format with format=, one of {names}; read a table with consilience.read_answers.",
        )
    try:
        return read(source)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{source!r} cannot be read: {first_line(error)}.", "Check the file.") from error


def find_span_format(name: object, owner: str) -> Format:
    """The format of spans that a parameter of `owner` names."""
    formats = {each.name: each for each in span_formats()}
    if not is_among(name, formats):
        raise parameter_error("format", owner, f"one of {listing(formats, most=20)}", name)
    return formats[str(name)]


# ------------------------------------------------------------------------------------------------- what is about items


def as_graph(graph: Any, responses: Answers) -> Graph:
    """A graph over these items from whatever describes one."""
    if isinstance(graph, Graph):
        return graph
    if issparse(graph):
        return Graph.from_scipy(graph, items=responses.items)
    if isinstance(graph, list) and all(isinstance(edge, tuple) and len(edge) == 2 for edge in graph):
        return Graph.from_edges([edge[0] for edge in graph], [edge[1] for edge in graph], items=responses.items)
    if hasattr(graph, "nodes") and callable(getattr(graph, "edges", None)):
        return Graph.from_networkx(graph)
    return Graph.from_frame(open_path(graph), items=responses.items)


def open_item_data(source: Any, what: str) -> Any:
    """What a file holds about items: an array or a sparse matrix, or a table; anything else as it is.

    `what` is the parameter that the file is given for.
    """
    if not isinstance(source, (str, os.PathLike)):
        return source
    name = to_path(what, "fit", source)
    if name.lower().endswith((NPY, NPZ)) and os.path.isfile(name):
        return read_features(name)
    return read_table(name).table
