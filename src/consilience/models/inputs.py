"""What users hand in as answers, as `Responses`."""

from __future__ import annotations

from typing import Any

from ..data.masks import Masks
from ..data.responses import Responses
from ..data.spans import Spans
from ..errors import ParameterError, listing
from ..formats.answers import read_source


def as_responses(source: Any, **columns: Any) -> Responses:
    """Return answers in any form as `Responses`: as they are, from spans or masks, a table, or the files at a path.

    A column of known labels beside the answers is not read, unless it is asked for with ``gold=None``.
    """
    if not isinstance(source, (Responses, Spans, Masks)):
        return read_source(source, **{"gold": False, **columns})
    if columns:
        raise ParameterError(
            f"Columns ({listing(columns)}) cannot be named for {type(source).__name__}: they are read already."
        )
    return source if isinstance(source, Responses) else source.to_responses()
