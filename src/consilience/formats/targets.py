"""In which format results are written: that of their source, or a table.

The rule is the same for spans, labels and masks. A path that ends as the files of the source's format do (see
`Format.outputs`) gets results in this format. So does one with the suffix of the source itself. Any other suffix must
be that of a table.
"""

from __future__ import annotations

import os
from typing import Any

from ..answers.columns import to_values
from ..answers.frames import open_frame
from ..arguments import to_path
from ..errors import InputError, parameter_error
from .annotations import Verdict, Verdicts, is_folder
from .files import PathLike
from .register import FOLDER, Format, find_by_name, list_suffixes, span_formats, writable_formats
from .sources import find_source


def choose_target(path: str, source: str, found: Format | None) -> Format | None:
    """Return the format in which to write results to a path: that of their source, or None for a table.

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
        f"Use {describe_outputs(found)} to write the former, or one of {' '.join(list_suffixes(writable_formats()))}.",
    )


def ends_as(path: str, outputs: tuple[str, ...]) -> bool:
    """Tell whether a path ends in one of some suffixes, perhaps compressed, or is that of a folder if this is one.

    >>> ends_as("a.json.gz", (".json",)), ends_as("no-such/a", (".json", FOLDER)), ends_as("no-such/a", (".json",))
    (True, True, False)
    """
    if is_folder(path):
        return FOLDER in outputs
    return _suffix(path) in outputs


def describe_outputs(found: Format) -> str:
    """Return what paths of a format end in, for a message."""
    return " or ".join("a folder" if suffix == FOLDER else suffix for suffix in found.outputs)


def has_table_suffix(path: str) -> bool:
    """Tell whether a path has the suffix of a table that can be written."""
    return path.lower().endswith(tuple(list_suffixes(writable_formats())))


def _suffix(path: str) -> str:
    """Return the suffix of a file in lower case, without that of compression."""
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
        With columns item and label, and perhaps confidence, as `to_frame` of a model returns it.
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
            known = [each.name for each in label_formats()]
            raise parameter_error("format", "write_labels", f"one of {', '.join(map(repr, known))}", format)
        raise InputError(
            f"{source!r} is not recognised as a file with answers of an annotation tool.",
            "Name the format with format=, or write the table of labels itself.",
        )
    write(_read_verdicts(labels, question), source, target)


def label_formats() -> list[Format]:
    """Return the formats of tools that hold answers about whole items."""
    return [each for each in span_formats() if each.codec.write_labels is not None]


def _read_verdicts(labels: Any, question: str | None) -> Verdicts:
    table = open_frame(labels, "the table of labels")
    items, names = (to_values(table.values(table.need(role), "Give each item a label.")) for role in ("item", "label"))
    scores: list[float | None] = [None] * table.n_rows
    if "confidence" in table.names:
        scores = to_values(table.read("confidence")).tolist()
    rows = zip(items.tolist(), names.tolist(), scores, strict=True)
    return Verdicts({str(item): Verdict(label, score) for item, label, score in rows}, question)
