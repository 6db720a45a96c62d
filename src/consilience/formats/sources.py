"""Whatever is at a path, read and written back: answers, sets of tags, spans marked in texts, masks of readers.

What it is follows from the content. A file of an annotation tool may hold spans and answers about whole texts. Then the
spans are read, with a warning, unless names of columns are given: only answers have columns.

Results are written in the format of their source, or as a table. The rule is the same for spans, labels and masks. A
path that ends as the files of the source's format do (see `Format.outputs`) gets results in this format. So does one
with the suffix of the source itself. Any other suffix must be that of a table.

All annotations of all workers can be converted: spans to any format of spans, or to a table with one row per span;
answers to a table with one row per answer ("long") or one column per worker ("wide"); masks to a folder of masks.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from .. import formats as register
from ..answers import LONG, list_names
from ..answers.answers import Answers
from ..answers.columns import is_missing, to_values
from ..answers.graph import Graph
from ..answers.tables import Table, open_frame
from ..errors import InputError, ParameterError, Sentence, first_line, listing, parameter_error, quietly, warn_of
from ..kinds import need_kind, read_rows
from ..kinds.base import Fused
from ..kinds.masks import Masks
from ..kinds.spans import Spans
from ..kinds.tags import ONE_HOT, Tags
from ..options import COLUMN_ROLES, given, is_among, to_path
from . import FOLDER, Format, Verdict, find_by_name, list_suffixes, readable_formats, span_formats, writable_formats
from .annotation_tools import NotSpans
from .arrays import MATRIX_SUFFIX, NPY, NPZ, SOFT_FILES, open_matrix, open_votes, read_features
from .files import STANDARD_INPUT, PathLike, is_folder, share_format
from .masks import are_masks, read_masks
from .reading import open_file, open_path, read_table
from .writing import write_table

Opened: TypeAlias = Answers | Spans | Masks | Tags

# The parameters of `Answers.from_frame`: names of columns, and how to read them.
COLUMNS = frozenset(inspect.signature(Answers.from_frame).parameters) - {"frame"}
# The parameters of `Tags.from_frame`. Those that `Answers.from_frame` has not are for sets of tags alone.
TAG_COLUMNS = frozenset(inspect.signature(Tags.from_frame).parameters) - {"frame"}


def open_source(path: str | os.PathLike[str], **columns: Any) -> Any:
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
    file_format = find_source(source, asked.get("format"))
    opened: Any = source
    if file_format is not None and file_format.kind != "spans":
        assert file_format.codec.load is not None
        opened = file_format.codec.load(source)
    elif not any(name in asked for name in (*COLUMN_ROLES[:6], "separator")):
        opened = open_spans(source, file_format)
    if file_format is None or opened is source:
        return take_answers(source, **columns)
    for name, value in asked.items():
        if name != "format" and not (name == "gold" and value is False):
            raise ParameterError(
                Sentence(f"{{{name}}} is for tables of answers.", **{name: None}),
                f"{source!r} holds {file_format.kind}: leave it out.",
                keyword=name,
            )
    if not isinstance(opened, Spans):
        return opened
    if opened.questions:
        warn_of(
            f"{source!r} holds spans and answers about whole texts ({listing(opened.questions)}). Only the spans are "
            "used.",
            Sentence("To use the answers instead, give {label}.", label=opened.questions[0]),
        )
    return opened.without_gold() if asked.get("gold") is False else opened


def open_spans(source: Any, file_format: Format | None = None) -> Any:
    """The spans at a path, whose format may be known, if there are any; anything else as it is."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    file_format = file_format or find_source(os.fspath(source))
    try:
        return source if file_format is None or file_format.kind != "spans" else read_spans(source, file_format.name)
    except NotSpans:
        return source


def open_known(given: Any, brought: object) -> Any:
    """What is known of what was brought: spans or masks at a path if they are known, else what is there."""
    if not isinstance(brought, Masks):
        return open_path(open_spans(given))
    path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    if not are_masks(path):
        return given
    if not os.path.isdir(path):
        return read_masks(path)
    # One reader tells nothing about what folders stand for. Their names do.
    folders = {each.name for each in os.scandir(path) if each.is_dir() and not each.name.startswith(".")}
    return read_masks(path, folders="images" if folders <= set(map(str, brought.images.tolist())) else "readers")


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
    for each in register.FORMATS:
        if FOLDER in each.outputs and each.codec.is_at is not None and each.codec.is_at(path):
            return each
    try:
        shared = share_format(path)[1]
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
    if path.lower().endswith(MATRIX_SUFFIX) and os.path.isfile(path):
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
    read = None if chosen is None or chosen.kind != "spans" else chosen.codec.load
    if read is None:
        share_format(source)  # an error if there is nothing
        names = listing([each.name for each in span_formats()], most=20)
        raise InputError(
            f"{source!r} is not recognised as texts with spans.",
            f"Name the format with format=, one of {names}; read a table with consilience.read_answers.",
        )
    try:
        spans: Spans = read(source)
        return spans
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


# ----------------------------------------------------------------------------------------------------------- results


def choose_target(path: str, source: str, file_format: Format | None) -> Format | None:
    """The format in which to write results to a path: that of their source, or None for a table.

    Parameters
    ----------
    path : str
        Where to write.
    source : str
        The path of the source.
    file_format : Format or None
        Its format, as `find_source` tells it.
    """
    if file_format is None or ends_as(path, file_format.outputs):
        return file_format
    if has_table_suffix(path):
        return None
    if file_format.text and not is_folder(path) and _suffix(path) == _suffix(source):
        return file_format
    raise InputError(
        f"{path!r} is neither a name for {file_format.title} nor for a table.",
        f"Use {_describe(file_format.outputs)} to write the former, or one of "
        f"{' '.join(list_suffixes(writable_formats()))}.",
    )


def ends_as(path: str, outputs: tuple[str, ...]) -> bool:
    """Whether a path ends in one of some suffixes, perhaps compressed, or is that of a folder if this is one.

    >>> ends_as("a.json.gz", (".json",)), ends_as("no-such/a", (".json", FOLDER)), ends_as("no-such/a", (".json",))
    (True, True, False)
    """
    return (FOLDER if is_folder(path) else _suffix(path)) in outputs


def has_table_suffix(path: str) -> bool:
    """Whether a path has the suffix of a table that can be written."""
    return any(each.fits(path) for each in writable_formats())


def _describe(outputs: tuple[str, ...]) -> str:
    return " or ".join("a folder" if suffix == FOLDER else suffix for suffix in outputs)


def _suffix(path: str) -> str:
    return os.path.splitext(path.lower().removesuffix(".gz"))[1]


def write_labels(
    labels: Any, path: PathLike, origin: PathLike, format: str | None = None, question: str | None = None
) -> None:
    """Write fused labels to a copy of the annotation tool's file that the answers were read from.

    They become predictions of Label Studio, suggestions of Argilla, or the answers of one more annotator in Prodigy and
    doccano. All else in the file is kept.

    Parameters
    ----------
    labels : table
        With columns item and label, or labels with lists of tags, and perhaps confidence, as `to_frame` of a model
        returns it.
    path : str or path
        Where to write.
    origin : str or path
        The file that the answers were read from.
    format : str, optional
        Its format: "label-studio", "prodigy", "doccano" or "argilla". By default it follows from the content.
    question : str, optional
        What the labels answer, if the file has several questions: the column that was given as `label`.

    Examples
    --------
    >>> import consilience as cs, json, tempfile, pathlib
    >>> folder, results = pathlib.Path(tempfile.mkdtemp()), pathlib.Path(tempfile.mkdtemp())
    >>> for name, label in ("ann", "good"), ("bob", "bad"), ("cem", "good"):
    ...     _ = (folder / f"{name}.jsonl").write_text(json.dumps({"id": 1, "text": "Well.", "label": [label]}))
    >>> fused = cs.fuse(folder, model="majority")
    >>> cs.write_labels(fused.to_frame(), results / "fused.jsonl", origin=folder)
    >>> json.loads((results / "fused.jsonl").read_text())["label"]
    ['good']
    """
    target, source = to_path("path", "write_labels", path), to_path("origin", "write_labels", origin)
    file_format = find_source(source) if format is None else find_by_name(format)
    write = None if file_format is None else file_format.codec.write_labels
    if write is None:
        if format is not None:
            known = [each.name for each in span_formats() if each.codec.write_labels is not None]
            raise parameter_error("format", "write_labels", f"one of {', '.join(map(repr, known))}", format)
        raise InputError(
            f"{source!r} is not recognised as a file with answers of an annotation tool.",
            "Name the format with format=, or write the table of labels itself.",
        )
    table = open_frame(labels, "the table of labels")
    items = to_values(table.values(table.need("item"), "Give each item a label.")).tolist()
    names = table.lists("labels") if "labels" in table.names else None
    if names is None:
        names = to_values(table.values(table.need("label"), "Give each item a label.")).tolist()
    figures: dict[str, list[Any]] = {}
    for name in table.names:
        if name == "confidence" or str(name).startswith("p("):
            values = to_values(table.read(name)).tolist()
            figures[name] = [None if is_missing(value) else value for value in values]
    missing = [None] * table.n_rows
    verdicts = {}
    for row, (item, label) in enumerate(zip(items, names, strict=True)):
        if label is not None:
            tags = label if isinstance(label, list) else []
            chances = [figures.get(f"p({tag})", missing)[row] for tag in tags]
            own = None if None in chances or not isinstance(label, list) else chances
            verdicts[str(item)] = Verdict(label, figures.get("confidence", missing)[row], own)
    write(verdicts, question, source, target)


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
    origin = spans.origin
    if format is None and origin is None:
        raise parameter_error("format", "write_spans", "given, since the spans were not read from a file", format)
    file_format = find_span_format(origin[1] if format is None and origin is not None else format, "write_spans")
    read, write = file_format.codec.load, file_format.codec.save
    assert read is not None
    assert write is not None
    if origin is None or origin[1] != file_format.name:
        write(replace(spans, origin=None), target)
        return
    with quietly():
        now = read(origin[0])
    texts = dict(zip(map(str, now.documents.tolist()), now.texts, strict=True))
    known = zip(spans.documents.tolist(), spans.texts, strict=True)
    changed = [name for name, text in known if texts.get(str(name)) != text]
    if changed:
        raise InputError(
            f"{origin[0]!r} has changed since it was read: it has no document {listing(changed)} with the same text.",
            "Read and fuse the file again.",
        )
    write(spans, target)


def write_results(result: Fused, labels: object, path: str, format: Format) -> None:
    """Write the results of a fit in the format of their source; `labels` is the table of labels."""
    origin, question = result.kind.origin, result.kind.question
    results = result.kind.from_labels(result, labels)
    if isinstance(results, Spans):
        write_spans(results, path, format.name)
    elif results is labels and origin is not None:
        write_labels(results, path, origin[0], format.name, question)
    elif format.codec.save is not None:
        format.codec.save(results, path)


# --------------------------------------------------------------------------------------------------- conversion


def name_form(opened: Any, path: str, format: str | None = None) -> str:
    """The name of the format of what was read from a path, or of the layout of a table."""
    file_format = find_source(path, format)
    if file_format is not None:
        return file_format.name
    layout = opened.format if isinstance(opened, Answers) else ""
    return layout or (LONG if opened.origin is None else opened.origin[1])


def choose_form(opened: Any, form: str, path: str, to: str | None) -> str:
    """What to write: the name of a format of spans or masks, or of a layout of tables.

    Parameters
    ----------
    opened, form
        What was read, and the name of its format.
    path : str
        Where to write.
    to : str or None
        What the user asks for; None: what the path ends in tells.
    """
    kind, is_table = need_kind(opened), has_table_suffix(path)
    known = {each.name: each for each in register.FORMATS if each.kind == kind.name and each.outputs}
    tables = f"Give the name of a table: {' '.join(list_suffixes(writable_formats()))}."
    if to is None:
        fitting = [each.name for each in known.values() if ends_as(path, each.outputs)]
        if form in fitting:
            return form
        if kind.layouts and (is_table or not known):
            to = LONG
        elif fitting and not is_folder(path):
            return fitting[0]
        else:
            raise InputError(
                f"The name {path!r} does not tell in which format to write.",
                Sentence(f"Name it with {{to}}: {', '.join(known)}."),
                *([tables] if kind.layouts else []),
            )
    if to in kind.layouts:
        if not is_table:
            raise InputError(f"{path!r} is not the name of a table that can be written.", tables)
    elif to not in known:
        instead = "" if known else ", or fuse them: results go back to the tool that they came from"
        raise InputError(
            f"These are {kind.title}, which cannot be written as {to}.",
            f"Choose one of {listing([*known, *kind.layouts], 20)}{instead}.",
        )
    elif (known[to].outputs == (FOLDER,)) != is_folder(path) and not ends_as(path, known[to].outputs):
        raise InputError(
            f"{path!r} is {'a folder' if is_folder(path) else 'the name of a file'}.",
            f"To write {known[to].title}, name {_describe(known[to].outputs)}.",
        )
    return to


def write_form(opened: Any, source: str, path: str, form: str) -> list[str]:
    """Write annotations that have one form in another, which `choose_form` chose; return what is lost, in words."""
    kind, file_format = need_kind(opened), find_by_name(form)
    carried = {"confidence", "white space"} if file_format is None else {*file_format.codec.carries}
    if form in kind.layouts:
        write_table(kind.layouts[form](opened), path)
    elif isinstance(opened, Spans):
        write_spans(opened, path, form)
    elif file_format is not None and file_format.codec.save is not None:
        file_format.codec.save(opened, path)
    return kind.list_losses(opened, source, form, carried | {"white space"} if form == source else carried)
