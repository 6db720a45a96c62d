"""How deep JSON is nested, found before it is parsed: parsers recurse, and die of what is too deep."""

from __future__ import annotations

from typing import IO

import numpy as np

from .files import BLOCK

# Tables are flat. So many brackets may be open all the same, for columns that nobody reads.
MOST_OPEN = 100
_QUOTE, _NEWLINE = ord('"'), ord("\n")
# What "[" and "{", and "]" and "}", become when one bit is set.
_OPENING, _CLOSING, _FOLD = ord("{"), ord("}"), 0x20


def find_deep_nesting(stream: IO[bytes]) -> int | None:
    r"""Return the first line, from 1, on which more than `MOST_OPEN` brackets are open; None if there is none.

    Brackets count from one line to the next, as for a parser. A string ends with its line at the latest, so that a
    quote too many in one line hides no bracket of another.

    >>> import io
    >>> find_deep_nesting(io.BytesIO(b'{"text": "' + b"[" * 200 + b'"}'))
    >>> find_deep_nesting(io.BytesIO(b'{"a": 1}\n{"a": ' + b"[" * 200))
    2
    """
    n_open, line, in_string = 0, 1, False
    while chunk := stream.read(BLOCK):
        while chunk.endswith(b"\\") and (more := stream.read(1)):
            chunk += more
        text = np.frombuffer(chunk.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
        quotes, breaks = np.flatnonzero(text == _QUOTE), np.flatnonzero(text == _NEWLINE)
        folded = text | _FOLD
        places = np.flatnonzero((folded == _OPENING) | (folded == _CLOSING))
        # Quotes before the line of each bracket do not count; in the first line there may be one in an earlier chunk.
        before = np.concatenate([[-int(in_string)], np.searchsorted(quotes, breaks)])
        row = np.searchsorted(breaks, places)
        outside = (np.searchsorted(quotes, places) - before[row]) % 2 == 0
        steps = np.where(folded[places[outside]] == _OPENING, 1, -1)
        levels = n_open + np.cumsum(steps)
        levels -= np.minimum(np.minimum.accumulate(levels), 0)  # a bracket that closes nothing changes nothing
        deep = np.flatnonzero(levels > MOST_OPEN)
        if len(deep):
            return line + int(row[outside][deep[0]])
        n_open = int(levels[-1]) if len(levels) else n_open
        in_string = bool((len(quotes) - before[-1]) % 2)
        line += len(breaks)
    return None
