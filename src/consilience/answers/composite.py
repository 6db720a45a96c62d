r"""Items that several columns identify together, such as prompt and pair.

Inside, such an item has one id: its parts as text, joined by `|`, in which a `|` or `\` of a part has a `\` in front.
The column of the items is called by the names of the columns, joined in the same way. Tables of results have the parts
beside the id, as whole numbers where all of a column are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, shorten
from .columns import Column, Values, decode_categories, is_missing, to_column

SIGN, ESCAPE = "|", "\\"
# Columns of tables of results, after which no part of an item is called.
TAKEN = ("item", "sequence", "position", "worker", "label", "confidence", "median", "mean", "low", "high", "decided_by")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PART = re.compile(r"(?:[^|\\]|\\.)*", re.DOTALL)
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"


def join_texts(parts: Iterable[object]) -> str:
    r"""Return some parts as one text.

    >>> join_texts(["a|b", 7]), split_text(join_texts(["a|b", 7]))
    ('a\\|b|7', ['a|b', '7'])
    """
    return SIGN.join(to_text(part).replace(ESCAPE, ESCAPE * 2).replace(SIGN, ESCAPE + SIGN) for part in parts)


def to_text(part: object) -> str:
    """Return a part of an item, or the name of a column, as text."""
    try:
        return str(part)
    except Exception as error:  # an object whose own code fails
        raise InputError(
            f"Items that several columns identify are named by text, and {shorten(part)} cannot be written as text.",
            "Give text or numbers.",
        ) from error


def split_text(text: str) -> list[str]:
    """Return the parts that `join_texts` joined."""
    parts, at = [], 0
    while at <= len(text):
        found = _PART.match(text, at)
        assert found is not None
        parts.append(_ESCAPED.sub(r"\1", found[0]))
        at = found.end() + 1
    return parts


def join_columns(columns: Sequence[Column]) -> Column:
    """Return the columns of parts as one of ids; it is missing where one of them is.

    >>> join_columns([pa.array(["p", "q"]), pa.array([7, None])]).to_pylist()
    ['p|7', None]
    """
    texts = []
    for column in columns:
        if isinstance(column, np.ndarray):
            column = pa.array([None if is_missing(entry) else to_text(entry) for entry in column], pa.large_string())
        text = pc.cast(decode_categories(column), pa.large_string())
        text = pc.replace_substring(text, ESCAPE, ESCAPE * 2)
        texts.append(pc.replace_substring(text, SIGN, ESCAPE + SIGN))
    return to_column(pc.binary_join_element_wise(*texts, pa.scalar(SIGN, pa.large_string())))


def split_ids(ids: Values, names: str | None, taken: Iterable[str] = TAKEN) -> dict[str, Column]:
    """Return the columns of the parts of ids, if the column of ids is called by several names; else none.

    A part that is called like a column of results has item_ in front of its name.

    >>> split_ids(np.array(["p|7", "q|8"], object), "prompt|pair")["pair"].to_pylist()
    [7, 8]
    """
    called = split_names(names)
    if called is None:
        return {}
    parts = [split_text(str(each)) for each in ids.tolist()]
    columns: dict[str, Column] = {}
    for place, name in enumerate(called):
        texts = pa.array([each[place] if place < len(each) else None for each in parts], pa.large_string())
        whole = len(texts) > 0 and pc.all(pc.match_substring_regex(texts, _WHOLE), min_count=0).as_py()
        columns[f"item_{name}" if name in taken else name] = to_column(
            pc.cast(texts, pa.int64()) if whole and not texts.null_count else texts
        )
    return columns


def join_names(given: str | Sequence[str] | None) -> str | None:
    """Return the name of one column as it is, whatever it is, and those of several, in a list or tuple, as one."""
    return join_texts(given) if isinstance(given, (list, tuple)) else cast("str | None", given)


def split_names(names: str | None) -> list[str] | None:
    """Return the names of several columns that are joined; None if it is one."""
    parts = split_text(names) if isinstance(names, str) and SIGN in names else []
    return parts if len(parts) > 1 else None


def name_parts(given: object, known: Sequence[str]) -> list[str] | None:
    """Return the columns that a user named for one role, if these are several.

    They are in a list, or in a text with commas or as `join_texts` joins them, unless a column is called like that.

    >>> name_parts(["a", "b"], ["a", "b"]), name_parts("a,b", ["a", "b", "c"]), name_parts("a,b", ["a,b"])
    (['a', 'b'], ['a', 'b'], None)
    """
    if isinstance(given, (list, tuple)):
        return [to_text(each) for each in given]
    if not isinstance(given, str) or given in known:
        return None
    commas = [each.strip() for each in given.split(",")]
    several = [parts for parts in (split_names(given), commas) if parts is not None and len(parts) > 1]
    return next((parts for parts in several if set(parts) & set(known)), None)


def tuples_to_ids(keys: Iterable[object]) -> list[object]:
    """Return ids of items from tuples of their parts; anything else as it is."""
    return [join_texts(key) if isinstance(key, tuple) else key for key in keys]


def name_composite(columns: Mapping[str, str], role: str = "item") -> list[str]:
    """Return the columns that identify an item together, if these are several; else none."""
    return split_names(columns.get(role)) or []
