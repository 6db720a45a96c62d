"""All annotations of all workers, from one format to another.

Spans go to any format of spans, or to a table with one row per span. Answers go to a table with one row per answer
("long") or one column per worker ("wide"). Masks go to a folder of masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..answers.responses import LAYOUTS, Responses
from ..errors import InputError, Sentence, listing, plural
from ..tasks.masks import Masks
from ..tasks.spans import Spans
from .annotations import is_folder
from .answers import open_table, read_source
from .masks import write_masks
from .register import FOLDER, Format, find_by_name, list_suffixes, span_formats, writable_formats
from .sources import Opened, find_source, open_source
from .spans import write_spans
from .targets import describe_outputs, ends_as, has_table_suffix
from .writing import write_table

LONG = "long"
# In a table with one column per worker, all columns are used.
_ALL_USED = ("wide", "matrix")
_TABLES = f"Give the name of a table: {' '.join(list_suffixes(writable_formats()))}."


class Content(NamedTuple):
    """What was read.

    Attributes
    ----------
    opened : Responses, Spans or Masks
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
        opened = self.opened
        if isinstance(opened, Spans):
            return (
                f"{plural(len(opened.marks.start), 'span')} by {plural(len(opened.workers), 'worker')} in "
                f"{plural(len(opened.documents), 'document')}"
            )
        if isinstance(opened, Masks):
            masks = plural(sum(map(len, opened.codes)), "mask")
            return f"{masks} by {plural(len(opened.readers), 'reader')} of {plural(len(opened.codes), 'image')}"
        return (
            f"{plural(opened.n_responses, 'answer')} by {plural(opened.n_workers, 'worker')} about "
            f"{plural(opened.n_items, 'item')}"
        )


def read_content(path: str, format: str | None = None, **columns: Any) -> Content:
    """Read all annotations at a path; `columns` are parameters of `read_responses`."""
    found = find_source(path, format)
    if found is not None:
        return Content(open_source(path, format=format, **columns), found.name)
    table, form = open_table(path, format)
    responses = read_source(table, **columns, format=form)
    origin = table.origin
    used = table.names if responses.format in _ALL_USED else responses.columns.values()
    unused = tuple(str(name) for name in table.names if name not in used)
    return Content(responses, responses.format or (LONG if origin is None else origin[1]), unused)


def choose_form(content: Content, path: str, to: str | None) -> str:
    """Return what to write: the name of a format of spans or masks, or of a layout of tables.

    Parameters
    ----------
    content : Content
        What was read.
    path : str
        Where to write.
    to : str or None
        What the user asks for; None: what the path ends in tells.
    """
    if isinstance(content.opened, Responses):
        return _choose_layout(path, to)
    own = find_by_name(content.format)
    assert own is not None
    known = [own] if isinstance(content.opened, Masks) else span_formats()
    is_spans = isinstance(content.opened, Spans)
    if to is None:
        if ends_as(path, own.outputs):
            return own.name
        if is_spans and has_table_suffix(path):
            return LONG
        found = [each for each in known if not is_folder(path) and ends_as(path, each.outputs)]
        if not found:
            names = [each.name for each in known]
            raise InputError(
                f"The name {path!r} does not tell in which format to write.",
                Sentence(f"Name it with {{to}}: {', '.join(names)}."),
                *([_TABLES] if is_spans else []),
            )
        return found[0].name
    if to == LONG and is_spans:
        _check_table(path)
        return LONG
    target = next((each for each in known if each.name == to), None)
    if target is None:
        what = "spans marked in texts" if is_spans else "masks"
        names = [each.name for each in known] + ([LONG] if is_spans else [])
        raise InputError(f"These are {what}, which cannot be written as {to}.", f"Choose one of {listing(names, 20)}.")
    _check_nature(path, target)
    return target.name


def _choose_layout(path: str, to: str | None) -> str:
    if to is not None and to not in LAYOUTS:
        raise InputError(
            f"These are answers about whole items, which cannot be written as {to}.",
            f"Choose one of {listing(LAYOUTS)}, or fuse them: results go back to the tool that they came from.",
        )
    _check_table(path)
    return to or LONG


def _check_table(path: str) -> None:
    if not has_table_suffix(path):
        raise InputError(f"{path!r} is not the name of a table that can be written.", _TABLES)


def _check_nature(path: str, target: Format) -> None:
    """Raise an error if a format is written to a folder and the path is that of a file, or the other way round."""
    needs_folder = target.outputs == (FOLDER,)
    if needs_folder != is_folder(path) and not ends_as(path, target.outputs):
        raise InputError(
            f"{path!r} is {'a folder' if is_folder(path) else 'the name of a file'}.",
            f"{target.title[0].upper()}{target.title[1:]} are written to {describe_outputs(target)}.",
        )


def write_content(content: Content, path: str, form: str) -> None:
    """Write annotations in a form that `choose_form` chose."""
    opened = content.opened
    if isinstance(opened, Responses):
        write_table(LAYOUTS[form](opened), path)
    elif isinstance(opened, Masks):
        write_masks(opened, path)
    elif form == LONG:
        write_table(opened.to_frame(), path)
    else:
        write_spans(opened, path, form)


def list_losses(content: Content, form: str) -> list[str]:
    """Return what is not written, in words."""
    opened = content.opened
    if isinstance(opened, Spans):
        return _lose_spans(opened, content.format, form)
    if isinstance(opened, Masks):
        return []
    lost = []
    if content.unused:
        lost.append(f"other columns ({listing(content.unused)})")
    n_silent = int(np.count_nonzero(np.diff(opened.offsets) == 0))
    if form == LONG and n_silent:
        lost.append(f"{plural(n_silent, 'item')} without an answer")
    if form == "wide" and opened.weight is not None:
        lost.append("the weights of answers")
    return lost


def _lose_spans(spans: Spans, source: str, form: str) -> list[str]:
    target = find_by_name(form)
    carried = {"confidence"} if target is None else target.codec.carries
    white_space = target is not None and form != source
    has: Sequence[tuple[str, bool, str]] = (
        ("confidence", spans.marks.confidence is not None, "the confidence of spans"),
        ("tokens", spans.tokens is not None, "the tokens of the tool"),
        ("gold", spans.gold is not None, f"the known spans of {plural(len(spans.gold_documents), 'document')}"),
        ("white space", white_space, "white space of the texts, where it is more than one blank between tokens"),
    )
    lost = [words for name, is_there, words in has if is_there and name not in carried]
    if form == source:
        return lost
    if form == LONG:
        marked = np.unique(np.stack([spans.marks.document, spans.marks.worker], axis=1), axis=0)
        n_empty = len(spans.readings) - len(marked)
        lost += ["the texts"] + ([f"{plural(n_empty, 'annotation')} without spans"] if n_empty else [])
    if spans.questions:
        lost.append(f"answers about whole texts ({listing(spans.questions)})")
    return [*lost, f"all else that {source} files may hold, such as metadata, relations and notes"]
