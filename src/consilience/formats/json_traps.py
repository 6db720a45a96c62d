"""What kills parsers of JSON, found before they see it: deep nesting, a bare null at the start of a line, long lines.

Parsers recurse, so that deep brackets overflow their stack; Arrow's crashes on a block that begins with null; and a
line takes several times its length in memory.
"""

from __future__ import annotations

import re
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ..memory import format_bytes
from .files import BLOCK, LONGEST_ROW

# Tables are flat. So many brackets may be open all the same, for columns that nobody reads.
MOST_OPEN = 100
_QUOTE, _NEWLINE, _RETURN = map(ord, '"\n\r')
# What "[" and "{", and "]" and "}", become when one bit is set.
_OPENING, _CLOSING, _FOLD = ord("{"), ord("}"), 0x20
# Blanks, and the bytes of a byte order mark.
_BLANKS = re.compile(rb"[ \t\xef\xbb\xbf]*")
_IS_BLANK = np.array([_BLANKS.fullmatch(bytes([byte])) is not None for byte in range(256)])


def find_trap(stream: IO[bytes]) -> tuple[int, str] | None:
    r"""Return the first line, from 1, that a parser may die of, and what is wrong with it; None if there is none.

    Brackets count from one line to the next, as for a parser. A string ends with its line at the latest, so that a
    quote too many in one line hides no bracket of another.

    >>> import io
    >>> find_trap(io.BytesIO(b'{"text": "' + b"[" * 200 + b'"}'))
    >>> find_trap(io.BytesIO(b'{"a": 1}\n{"a": ' + b"[" * 200))
    (2, 'more than 100 brackets are open')
    >>> find_trap(io.BytesIO(b'{"a": 1}\n  null\n'))
    (2, 'expected one JSON object per line, found null')
    """
    n_open, line, length, in_string, blank = 0, 1, 0, False, True
    while chunk := stream.read(BLOCK):
        if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:  # a backslash is cut off from what it stands before
            chunk += stream.read(1)
        first_break, last_break = chunk.find(b"\n"), chunk.rfind(b"\n")
        if length + (len(chunk) if first_break < 0 else first_break) > LONGEST_ROW:
            return line, _TOO_LONG
        length = length + len(chunk) if first_break < 0 else len(chunk) - last_break - 1
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        text = np.frombuffer(chunk, np.uint8)
        breaks = np.flatnonzero(text == _NEWLINE)
        null, blank = _find_null(chunk, text, blank)
        places, levels = _find_levels(text, breaks, n_open, in_string)
        deep = places[levels > MOST_OPEN]
        found = [(int(at[0]), words) for at, words in ((deep, _TOO_DEEP), (null, _NO_OBJECT)) if len(at)]
        if found:
            place, words = min(found)
            return line + int(np.searchsorted(breaks, place)), words
        n_open = int(levels[-1]) if len(levels) else n_open
        last = breaks[-1] if len(breaks) else -1
        in_string = bool((np.count_nonzero(text[last + 1 :] == _QUOTE) + (in_string and last < 0)) % 2)
        line += len(breaks)
    return None


_TOO_DEEP = f"more than {MOST_OPEN} brackets are open"
_TOO_LONG = f"the line is longer than {format_bytes(LONGEST_ROW)}"
_NO_OBJECT = "expected one JSON object per line, found null"


def _find_levels(
    text: NDArray[np.uint8], breaks: NDArray[np.int64], n_open: int, in_string: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where brackets outside of strings are, and how many are open after each."""
    quotes = np.flatnonzero(text == _QUOTE)
    folded = text | _FOLD
    places = np.flatnonzero((folded == _OPENING) | (folded == _CLOSING))
    # Quotes before the line of a bracket do not count; of the first line there may be one in an earlier chunk.
    before = np.concatenate([[-int(in_string)], np.searchsorted(quotes, breaks)])
    outside = (np.searchsorted(quotes, places) - before[np.searchsorted(breaks, places)]) % 2 == 0
    places = places[outside]
    levels = n_open + np.cumsum(np.where(folded[places] == _OPENING, 1, -1))
    # A bracket that closes nothing changes nothing.
    return places, levels - np.minimum(np.minimum.accumulate(levels), 0)


def _find_null(chunk: bytes, text: NDArray[np.uint8], blank: bool) -> tuple[NDArray[np.int64], bool]:
    """Return where lines begin with an n, after blanks; and whether the last line is blank so far.

    `blank` tells whether the line that goes on here was. A carriage return begins a line too.
    """
    starts = np.flatnonzero((text == _NEWLINE) | (text == _RETURN)) + 1
    starts = np.concatenate([[0], starts]) if blank else starts
    ends = len(starts) > 0 and starts[-1] == len(text)
    starts = starts[:-1] if ends else starts
    for i in np.flatnonzero(_IS_BLANK[text[starts]]):
        starts[i] = _BLANKS.match(chunk, starts[i]).end()  # type: ignore[union-attr] # it matches anything
    ends = ends or (len(starts) > 0 and starts[-1] == len(text))
    starts = starts[starts < len(text)]
    return starts[text[starts] == ord("n")], bool(ends)
