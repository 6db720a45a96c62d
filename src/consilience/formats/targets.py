"""Results and annotations written in one format or another.

Results are written in the format of their source, or as a table. The rule is the same for spans, labels and masks. A
path that ends as the files of the source's format do (see `Format.outputs`) gets results in this format. So does one
with the suffix of the source itself. Any other suffix must be that of a table.

All annotations of all workers can be converted: spans to any format of spans, or to a table with one row per span;
answers to a table with one row per answer ("long") or one column per worker ("wide"); masks to a folder of masks.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

from .. import formats as register
from ..answers.answers import Answers
from ..answers.columns import is_missing, to_values
from ..answers.tables import open_frame
from ..errors import InputError, Sentence, listing, parameter_error, quietly
from ..kinds import need_kind
from ..kinds.base import Fused, TableKind
from ..kinds.masks import FusedMasks, Masks
from ..kinds.spans import Spans
from ..kinds.tags import ONE_HOT, TagsKind
from ..options import to_path
from . import (
    FOLDER,
    Format,
    Verdict,
    find_by_name,
    list_suffixes,
    span_formats,
    writable_formats,
)
from .files import PathLike, is_folder
from .masks import write_masks
from .sources import Opened, find_source, find_span_format, open_source, open_table, take_answers
from .writing import write_table

LONG = "long"
# In a table with one column per worker, all columns are used.
_ALL_USED = ("wide", "matrix", "soft", "soft-long", "soft-files")


def choose_target(path: str, source: str, found: Format | None) -> Format | None:
    """The format in which to write results to a path: that of their source, or None for a table.

    Parameters
    ----------
    path : str
        Where to write.
    source : str
        The path of the source.
    found : Format or None
        Its format, as `find_source` tells it.
    """
    if found is None or ends_as(path, found.outputs):
        return found
    if has_table_suffix(path):
        return None
    if found.text and not is_folder(path) and _suffix(path) == _suffix(source):
        return found
    raise InputError(
        f"{path!r} is neither a name for {found.title} nor for a table.",
        f"Use {_describe(found.outputs)} to write the former, or one of {' '.join(list_suffixes(writable_formats()))}.",
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
    found = find_source(source) if format is None else find_by_name(format)
    write = None if found is None else found.codec.write_labels
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
    found = find_span_format(origin[1] if format is None and origin is not None else format, "write_spans")
    read, write = found.codec.read_spans, found.codec.write_spans
    assert read is not None
    assert write is not None
    if origin is None or origin[1] != found.name:
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


def write_results(found: Fused, labels: object, path: str, format: Format) -> None:
    """Write the results of a fit in the format of their source; `labels` is the table of labels."""
    kind = found.task
    results = kind.collect(found, labels)
    if isinstance(kind, (TableKind, TagsKind)) and kind.origin is not None:
        write_labels(results, path, kind.origin[0], format.name, kind.question)
    elif isinstance(results, Spans):
        write_spans(results, path, format.name)
    elif isinstance(results, FusedMasks):
        write_masks(results, path)


# --------------------------------------------------------------------------------------------------- conversion


class FileContent(NamedTuple):
    """What was read.

    Attributes
    ----------
    opened : Answers, Spans, Masks or what another task takes
        The annotations.
    format : str
        The name of the format.
    unused : tuple of str
        Columns of a table of answers that play no role.
    """

    opened: Opened
    format: str
    unused: tuple[str, ...] = ()

    def __str__(self) -> str:
        return need_kind(self.opened).describe(self.opened)


def read_content(path: str, format: str | None = None, **columns: Any) -> FileContent:
    """All annotations at a path; `columns` are parameters of `read_answers`."""
    found = find_source(path, format)
    if found is not None:
        return FileContent(open_source(path, format=format, **columns), found.name)
    table, form = open_table(path, format)
    responses = take_answers(table, **columns, format=form)
    origin = table.origin
    layout = responses.format if isinstance(responses, Answers) else ""
    used = table.names if layout in (*_ALL_USED, ONE_HOT) else responses.columns.values()
    unused = tuple(str(name) for name in table.names if name not in used)
    return FileContent(responses, layout or (LONG if origin is None else origin[1]), unused)


def choose_form(content: FileContent, path: str, to: str | None) -> str:
    """What to write: the name of a format of spans or masks, or of a layout of tables.

    Parameters
    ----------
    content : FileContent
        What was read.
    path : str
        Where to write.
    to : str or None
        What the user asks for; None: what the path ends in tells.
    """
    kind, is_table = need_kind(content.opened), has_table_suffix(path)
    known = {each.name: each for each in register.FORMATS if each.kind == kind.name != "table"}
    tables = f"Give the name of a table: {' '.join(list_suffixes(writable_formats()))}."
    if to is None:
        fitting = [each.name for each in known.values() if ends_as(path, each.outputs)]
        if content.format in fitting:
            return content.format
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


def write_content(content: FileContent, path: str, form: str) -> None:
    """Write annotations in a form that `choose_form` chose."""
    opened, layouts = content.opened, need_kind(content.opened).layouts
    if form in layouts:
        write_table(layouts[form](opened), path)
    elif isinstance(opened, Spans):
        write_spans(opened, path, form)
    elif isinstance(opened, Masks):
        write_masks(opened, path)


def list_losses(content: FileContent, form: str) -> list[str]:
    """What is not written, in words."""
    target = find_by_name(form)
    carried = {"confidence", "white space"} if target is None else target.codec.carries
    if form == content.format:
        carried = {*carried, "white space"}
    unused = [f"other columns ({listing(content.unused)})"] if content.unused else []
    return unused + need_kind(content.opened).list_losses(content.opened, content.format, form, carried)
