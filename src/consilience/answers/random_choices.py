"""Random choices that depend on ids, and not on where they stand; among them which answers are hidden from a fit.

Which of several tied classes is the label, whether an answer is hidden, in which order nodes are visited: all this is
a function of the *text* of the ids that are involved, and of the seed. This is the contract:

- The order of rows, of workers and of classes does not matter, and neither does what else is in the data.
- The type of a column does not matter: 7, 7.0, "7" and a category "7" have the same text, and so have True and "true".
- Ids that are positions, as in a matrix without names, are their decimal text.
- The same ids and the same seed give the same numbers on every machine and in every process.
- Other names give other numbers.

Hashes have 64 bits. They are no defence against someone who chooses ids with care.

Answers are hidden from a fit, so that it can be judged by them. What is hidden is a *unit*: a worker's whole vote on an
item, or all answers of a worker in a sequence, since neighbouring answers are alike and would give each other away.
Where near-copies count once, they are one worker here: the answers of a whole group are hidden together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError
from ..kernels import Integers, Truths
from ..limits import side_by_side
from .answers import Answers
from .columns import Indices, Values, to_column, to_values
from .keys import Sequences

Hashes = NDArray[np.uint64]

# Odd, and without a pattern: the golden ratio in 64 bits.
GOLDEN_STEP = np.uint64(0x9E3779B97F4A7C15)
# Ids that are hashed together.
IDS_AT_ONCE = 1 << 17
# How many times as many units as are hidden the sample has from which they are drawn.
SPARE = 10


def hash_ids(ids: Values) -> Hashes:
    """A 64-bit hash of the text of each id.

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
    from ..kernels.columns import hash_texts, mix_bits

    if len(ids) and type(ids[0]) is tuple:
        lengths = {len(each) if type(each) is tuple else 0 for each in ids.tolist()}
        if len(lengths) == 1 and 0 not in lengths:
            parts = zip(*ids.tolist(), strict=True)
            return draw_numbers(None, *(hash_ids(to_values(to_column(list(part)))) for part in parts))
    hashes = np.empty(len(ids), np.uint64)

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop, IDS_AT_ONCE):  # the texts of all ids together would take much memory
            run = slice(first, min(first + IDS_AT_ONCE, stop))
            some, texts = ids[run], None
            if some.dtype.kind == "f" and bool(np.all((np.abs(some) < 2**53) & (some == np.floor(some)))):
                some = some.astype(np.int64)
            if some.dtype.kind in "iu":
                texts = pc.cast(pa.array(some), pa.large_string())
            elif some.dtype == object:
                with suppress(TypeError, ValueError, NotImplementedError):  # some are no text, or half a character
                    texts = pa.array(some, pa.large_string())
            if texts is None:
                texts = pa.array([_text_of(entry) for entry in some.tolist()], pa.large_binary())
            offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
            data = texts.buffers()[2]
            hashes[run] = hash_texts(np.frombuffer(b"" if data is None else data, np.uint8), offsets)
            mix_bits(hashes[run])

    side_by_side(fill, len(ids))
    return hashes


def _text_of(entry: object) -> bytes:
    """The text of a single id. An object without a text of its own has the name of its type."""
    kind: Any = type(entry)
    if isinstance(entry, bytes):
        return entry
    if isinstance(entry, (tuple, frozenset)):
        parts = list(map(_text_of, entry))
        return b"\0".join(sorted(parts) if isinstance(entry, frozenset) else parts)  # a set has no order
    text = str(entry)
    if isinstance(entry, (bool, np.bool_)):
        text = text.lower()
    elif isinstance(entry, (float, np.floating)):
        number = float(entry)
        text = str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    elif kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        text = kind.__name__  # what Python would print is an address in memory
    return text.encode("utf-8", "surrogatepass")


def hash_items(keys: Values | Sequences, rows: Integers | None = None) -> Hashes:
    """A hash of what identifies each item: its id, or its sequence and position.

    Parameters
    ----------
    keys : ndarray or Sequences
        As in `Answers.keys`.
    rows : array of int, optional
        Only of these items, in this order.
    """
    chosen: Any = slice(None) if rows is None else rows
    if not isinstance(keys, Sequences):
        return hash_ids(keys[chosen])
    return draw_numbers(None, hash_ids(keys.ids)[keys.of_items()[chosen]], hash_ids(keys.position[chosen]))


def draw_numbers(seed: int | None, *hashes: Hashes) -> Hashes:
    """One random 64-bit number for each combination of ids, whose hashes broadcast against each other.

    Their order matters. Without a seed the number is a hash of the combination.

    Examples
    --------
    >>> items, classes = hash_ids(np.array(["a", "b"])), hash_ids(np.array([0, 1, 2]))
    >>> draw_numbers(0, items[:, None], classes).shape
    (2, 3)
    """
    from ..kernels.columns import mix_bits

    parts: list[Any] = list(hashes)
    if seed is not None:
        words = range(0, max(int(seed).bit_length(), 1), 64)
        parts = [np.full(1, (int(seed) >> shift) % 2**64, np.uint64) for shift in words] + parts
    total = np.zeros(1, np.uint64)
    for each in parts:
        total = total * GOLDEN_STEP + each
        total += GOLDEN_STEP
        mix_bits(total)
    return total


def sample_items(r: Answers, most: int, seed: int) -> Indices:
    """Whole items, or all items of whole sequences, with about so many answers at most; all, if these are no more.

    They are those with the smallest random numbers, so that they do not depend on the order of the items.
    """
    if r.n_responses <= most:
        return np.arange(r.n_items)
    numbers = draw_numbers(seed, r.item_hashes if r.sequences is None else hash_ids(r.sequences.ids))
    n_drawn = max(most * len(numbers) // r.n_responses, 1)
    drawn = numbers <= np.partition(numbers, n_drawn - 1)[n_drawn - 1]
    return np.flatnonzero(drawn if r.sequences is None else drawn[r.sequences.of_items()])


def draw_units(rows: Indices, unit: Indices, most: int) -> Indices:
    """Some of the rows, ascending: all rows of the first units, until these are `most` rows.

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


def hide_answers(r: Answers, fraction: float, seed: int, n_folds: int = 1) -> Iterator[tuple[Truths, Indices]]:
    """For each fold, which answers to hide, and the unit (0, 1, ...) that each hidden answer belongs to.

    Folds hide different units; there are fewer of them where the units do not suffice.

    Parameters
    ----------
    r : Answers
        The answers.
    fraction : float
        Share of the units to hide: the nearest whole number of them, at least one, and never all.
    seed : int
        Another seed hides other units.
    n_folds : int
        How many times to hide that many.
    """
    unit, first = find_units(r)
    n_units = r.n_responses if first is None else len(first)
    if n_units < 2:
        raise InputError("There is nothing to hide: the answers are all of one unit. Give more answers.")
    n_hidden = min(max(1, round(fraction * n_units)), n_units - 1)
    n_folds = min(n_folds, n_units // n_hidden)
    n_wanted = n_hidden * n_folds
    hashes = r.item_hashes if r.sequences is None else hash_ids(r.sequences.ids)[r.sequences.of_items()]
    eligible = None
    # Units are drawn from those of a sample of the items, since to draw from all would take longer. It has `SPARE`
    # times as many as are wanted, so that most answers to an item stay.
    n_sampled = SPARE * n_wanted * len(hashes) // n_units
    if r.sequences is None and n_sampled < len(hashes):
        numbers = draw_numbers(seed, hashes)
        sampled = numbers <= np.partition(numbers, n_sampled)[n_sampled]
        items = np.flatnonzero(sampled)
        some = r.answers_about(items)[0] if first is None else np.flatnonzero(sampled[r.items_of(first)])
        eligible = some if len(some) >= n_wanted else None
    eligible = np.arange(n_units) if eligible is None else eligible
    answer = eligible if first is None else first[eligible]
    worker = r.worker[answer] if r.leader is None else r.leader[r.worker[answer]]
    numbers = draw_numbers(seed, hashes[r.items_of(answer)], hash_ids(r.workers)[worker])
    # The units with the smallest numbers are the first fold, those with the next ones the second, and so on.
    ends = n_hidden * np.arange(1, n_folds + 1)
    in_folds = eligible[np.argpartition(numbers, np.minimum(ends, len(eligible) - 1))]
    for end in ends:
        drawn = np.sort(in_folds[end - n_hidden : end])
        if unit is None:
            hidden = np.zeros(n_units, bool)
            hidden[drawn] = True
            yield hidden, np.arange(n_hidden)
        else:
            chosen = np.full(n_units, -1, np.int64)
            chosen[drawn] = np.arange(n_hidden)
            yield chosen[unit] >= 0, chosen[unit][chosen[unit] >= 0]


def hide_items(r: Answers, n_parts: int, enough: int, seed: int, known: Truths | None = None) -> Iterator[Truths]:
    """For each fold, the answers to hide: all answers to some items.

    Parameters
    ----------
    r : Answers
        The answers.
    n_parts : int
        Each fold hides this part of the items that have answers.
    enough : int
        How many items to hide in all: there are as many folds as it takes, and at most `n_parts`.
    seed : int
        Another seed hides other items.
    known : array of bool, optional
        Items that are not hidden, since their label is known.
    """
    answered = np.diff(r.offsets) > 0
    items = np.flatnonzero(answered if known is None else answered & ~known)
    items = items[np.argsort(draw_numbers(seed, hash_items(r.keys, items)), kind="stable")]
    n_hidden = len(items) // n_parts
    n_folds = min(n_parts, -(-enough // n_hidden)) if n_hidden else 0
    for fold in range(n_folds):
        hidden = np.zeros(r.n_items, bool)
        hidden[items[fold * n_hidden : (fold + 1) * n_hidden]] = True
        yield hidden[r.item_of_answer()]


def find_units(r: Answers) -> tuple[Indices, Indices] | tuple[None, None]:
    """The unit (0, 1, ...) of each answer, and the first answer of each unit; None where each answer is one."""
    if r.sequences is None and r.weight is None and r.leader is None:
        return None, None
    codes = r.owners_of(r.item_of_answer()) * r.n_workers + (r.worker if r.leader is None else r.leader[r.worker])
    _, first, unit = np.unique(codes, return_index=True, return_inverse=True)
    return unit, first


def count_units(r: Answers) -> int:
    """How many units could be hidden."""
    first = find_units(r)[1]
    return r.n_responses if first is None else len(first)
