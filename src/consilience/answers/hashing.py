"""Random choices that depend on ids, and not on where they stand.

Which of several tied classes is the label, whether an answer is hidden, in which order nodes are visited: all this is
a function of the *text* of the ids that are involved, and of the seed. This is the contract:

- The order of rows, of workers and of classes does not matter, and neither does what else is in the data.
- The type of a column does not matter: 7, 7.0, "7" and a category "7" have the same text, and so have True and "true".
- Ids that are positions, as in a matrix without names, are their decimal text.
- The same ids and the same seed give the same numbers on every machine and in every process.
- Other names give other numbers.

Hashes have 64 bits. They are no defence against someone who chooses ids with care.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Indices
from ..kernels.types import Integers
from .columns import Values, to_column, to_values
from .items import Sequences

Hashes = NDArray[np.uint64]

# Odd, and without a pattern: the golden ratio in 64 bits.
STEP = np.uint64(0x9E3779B97F4A7C15)
# Ids that are hashed together.
AT_ONCE = 1 << 17


def hash_ids(ids: Values) -> Hashes:
    """Return a 64-bit hash of the text of each id.

    Parameters
    ----------
    ids : ndarray
        Ids of items, workers, sequences or classes. Tuples are hashed part by part: (sequence, position) pairs have the
        hashes of `hash_items`.

    Examples
    --------
    >>> hash_ids(np.array(["7", "b"], dtype=object))
    array([8857979822077535623, 4482684837372322821], dtype=uint64)
    >>> hash_ids(np.array([7.0]))
    array([8857979822077535623], dtype=uint64)
    """
    from ..kernels.encoding import hash_texts, scramble

    if len(ids) and type(ids[0]) is tuple and (parts := _split_tuples(ids)) is not None:
        return combine_hashes(*map(hash_ids, parts))
    hashes = np.empty(len(ids), np.uint64)
    for first in range(0, len(ids), AT_ONCE):  # the texts of all ids together would take much memory
        run = slice(first, first + AT_ONCE)
        texts = _texts_of(ids[run])
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = texts.buffers()[2]
        hashes[run] = scramble(hash_texts(np.frombuffer(b"" if data is None else data, np.uint8), offsets))
    return hashes


def hash_items(keys: Values | Sequences, rows: Integers | None = None) -> Hashes:
    """Return a hash of what identifies each item: its id, or its sequence and position.

    Parameters
    ----------
    keys : ndarray or Sequences
        As in `Responses.keys`.
    rows : array of int, optional
        Only of these items, in this order.
    """
    chosen: Any = slice(None) if rows is None else rows
    if not isinstance(keys, Sequences):
        return hash_ids(keys[chosen])
    return combine_hashes(hash_ids(keys.ids)[keys.of_items()[chosen]], hash_ids(keys.position[chosen]))


def draw_numbers(seed: int, *hashes: Hashes) -> Hashes:
    """Return one random 64-bit number for each combination of ids, whose hashes broadcast against each other.

    Examples
    --------
    >>> items, classes = hash_ids(np.array(["a", "b"])), hash_ids(np.array([0, 1, 2]))
    >>> draw_numbers(0, items[:, None], classes).shape
    (2, 3)
    """
    words = [(int(seed) >> shift) % 2**64 for shift in range(0, max(int(seed).bit_length(), 1), 64)]
    return combine_hashes(*(np.full(1, word, np.uint64) for word in words), *hashes)


def draw_units(rows: Indices, unit: Indices, most: int) -> Indices:
    """Return some of the rows, ascending: all rows of the first units, until these are `most` rows.

    Parameters
    ----------
    rows : array of int
        To choose from.
    unit : array of int
        The unit that each row is part of: its place in a random order.
    most : int
        How many are enough. The last unit is whole, so there may be more.

    Examples
    --------
    >>> draw_units(np.array([0, 1, 2, 3]), np.array([2, 0, 1, 1]), 2)
    array([1, 2, 3])
    """
    if len(rows) <= most:
        return rows
    last = int(np.partition(unit[rows], most - 1)[most - 1])
    return np.asarray(rows[unit[rows] <= last])


def combine_hashes(*hashes: Hashes) -> Hashes:
    """Return one hash for each combination of hashes; their order matters."""
    from ..kernels.encoding import mix_bits

    total = np.zeros(1, np.uint64)
    for each in hashes:
        total = total * STEP + each
        total += STEP
        mix_bits(total)
    return total


def _split_tuples(ids: Values) -> list[Values] | None:
    """Return the parts of ids that are all tuples, of the same length; else None."""
    entries = ids.tolist()
    lengths = {len(entry) if type(entry) is tuple else 0 for entry in entries}
    if len(lengths) != 1 or 0 in lengths:
        return None
    return [to_values(to_column(list(part))) for part in zip(*entries, strict=True)]


def _texts_of(ids: Values) -> pa.Array:
    """Return the text of each id, in UTF-8, as an Arrow array with offsets of 64 bits."""
    if ids.dtype.kind == "f" and bool(np.all((np.abs(ids) < 2**53) & (ids == np.floor(ids)))):
        ids = ids.astype(np.int64)
    if ids.dtype.kind in "iu":
        return pc.cast(pa.array(ids), pa.large_string())
    if ids.dtype == object:
        try:
            return pa.array(ids, pa.large_string())
        except (TypeError, ValueError, NotImplementedError):  # some are no text, or hold half of a character
            pass
    return pa.array([_text_of(entry) for entry in ids.tolist()], pa.large_binary())


def _text_of(entry: object) -> bytes:
    """Return the text of a single id. An object without a text of its own has the name of its type."""
    if isinstance(entry, bytes):
        return entry
    if isinstance(entry, (bool, np.bool_)):
        text = str(bool(entry)).lower()
    elif isinstance(entry, (float, np.floating)):
        number = float(entry)
        text = str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    elif isinstance(entry, (tuple, frozenset)):
        parts = list(map(_text_of, entry))
        return b"\0".join(sorted(parts) if isinstance(entry, frozenset) else parts)  # a set has no order
    elif _has_no_text(type(entry)):
        text = type(entry).__name__  # what Python would print is an address in memory
    else:
        text = str(entry)
    return text.encode("utf-8", "surrogatepass")


def _has_no_text(kind: Any) -> bool:
    """Tell whether objects of this type say nothing about themselves."""
    return kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
