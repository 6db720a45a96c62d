"""What users hand in as answers, as `Responses`."""

from __future__ import annotations

from typing import Any

from ..data.masks import Masks
from ..data.responses import Responses
from ..errors import ParameterError, listing
from ..formats.answers import read_frame
from ..formats.reading import open_path


def as_responses(source: Any, **columns: Any) -> Responses:
    """Return answers in any form as `Responses`: as they are, from masks, a table, or the files at a path."""
    if not isinstance(source, (Responses, Masks)):
        return read_frame(open_path(source), **columns)
    if columns:
        raise ParameterError(
            f"Columns ({listing(columns)}) cannot be named for {type(source).__name__}: they are read already."
        )
    return source.to_responses() if isinstance(source, Masks) else source
