"""What users hand in: answers as `Responses`, and known labels as `match_gold` takes them."""

from __future__ import annotations

from typing import Any

from ..data.responses import Responses
from ..errors import ParameterError, listing
from ..formats.answers import read_frame
from ..formats.reading import open_path


def as_responses(source: Any, **columns: Any) -> Responses:
    """Return answers in any form as `Responses`: as they are, from a table, or from the files at a path."""
    if not isinstance(source, Responses):
        return read_frame(open_path(source), **columns)
    if columns:
        raise ParameterError(f"Columns ({listing(columns)}) cannot be named for Responses: they are read already.")
    return source


def as_gold(gold: Any) -> Any:
    """Return known labels as `match_gold` takes them: a path is opened, anything else is left as it is."""
    return open_path(gold)
