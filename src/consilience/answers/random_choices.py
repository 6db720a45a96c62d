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
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError
from ..kernels import Integers, Truths
from .answers import Answers
from .columns import Indices, Values, to_column, to_values
from .items import Sequences

Hashes = NDArray[np.uint64]

# Odd, and without a pattern: the golden ratio in 64 bits.
STEP = np.uint64(0x9E3779B97F4A7C15)
# Ids that are hashed together.
AT_ONCE = 1 << 17
# What is drawn is at least so large, so that it has a logarithm.
TINY = 1e-300


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
    from ..kernels.columns import hash_texts, scramble

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
        As in `Answers.keys`.
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
    from ..kernels.columns import mix_bits

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


# How many times as many units as are hidden the sample has from which they are drawn.
SPARE = 10


def hide_answers(
    r: Answers, fraction: float, seed: int, n_folds: int = 1, n_all: int | None = None
) -> Iterator[tuple[Truths, Indices]]:
    """Yield, for each fold, which answers to hide, and the unit (0, 1, ...) that each hidden answer belongs to.

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
    n_all : int, optional
        If the answers are a sample of `sample_units` already: the number of units in all, of which the fraction is.
    """
    n_units = count_units(r)
    if n_units < 2:
        raise InputError("There is nothing to hide: the answers are all of one unit. Give more answers.")
    n_hidden, n_folds = count_hidden(n_units if n_all is None else n_all, fraction, n_folds)
    unit_of_answer, first = (None, None) if are_alone(r) else find_units(r)
    hashes = hash_owners(r)
    wanted = n_hidden * n_folds
    eligible = sample_units(r, first, hashes, seed, wanted) if n_all is None else np.arange(n_units)
    answer = eligible if first is None else first[eligible]
    # The units with the smallest numbers are the first fold, those with the next ones the second, and so on.
    ends = n_hidden * np.arange(1, n_folds + 1)
    numbers = draw_numbers(seed, hashes[find_owners(r, answer)], hash_ids(r.workers)[find_leaders(r, answer)])
    sorted_in_folds = eligible[np.argpartition(numbers, np.minimum(ends, len(eligible) - 1))]
    for end in ends:
        if unit_of_answer is None:
            hidden = np.zeros(n_units, bool)
            hidden[sorted_in_folds[end - n_hidden : end]] = True
            yield hidden, np.arange(n_hidden)
            continue
        chosen = np.full(n_units, -1, np.int64)
        chosen[np.sort(sorted_in_folds[end - n_hidden : end])] = np.arange(n_hidden)
        unit = chosen[unit_of_answer]
        yield unit >= 0, unit[unit >= 0]


def count_hidden(n_units: int, fraction: float, n_folds: int) -> tuple[int, int]:
    """Return how many units to hide at a time, and how often.

    >>> count_hidden(1000, 0.1, 3), count_hidden(2, 0.9, 3)
    ((100, 3), (1, 2))
    """
    n_hidden = min(max(1, round(fraction * n_units)), n_units - 1)
    return n_hidden, min(n_folds, n_units // n_hidden)


def hide_items(r: Answers, n_parts: int, enough: int, seed: int, known: Truths | None = None) -> Iterator[Truths]:
    """Yield, for each fold, the answers to hide: all answers to some items.

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


def find_units(r: Answers) -> tuple[Indices, Indices]:
    """Return the unit (0, 1, ...) of each answer, and the first answer of each unit."""
    every = np.arange(r.n_responses)
    if are_alone(r):
        return every, every
    item = r.item_of_answer()
    owner = item if r.sequences is None else r.sequences.of_items()[item]
    codes = owner * r.n_workers + find_leaders(r, every)
    _, first, unit = np.unique(codes, return_index=True, return_inverse=True)
    return unit, first


def find_leaders(r: Answers, answers: Indices) -> NDArray[np.integer]:
    """Return the worker of each of these answers; for workers who count once together, always the same one."""
    worker = r.worker[answers]
    return worker if r.leader is None else r.leader[worker]


def are_alone(r: Answers) -> bool:
    """Tell whether each answer is a unit."""
    return r.sequences is None and r.weight is None and r.leader is None


def sample_units(r: Answers, first: Indices | None, hashes: Hashes, seed: int, n_wanted: int) -> Indices:
    """Return the units of a random sample of the items, from which `n_wanted` units can be drawn.

    It is `SPARE` times as large, so that most answers to an item stay. To draw from all units would take longer. The
    units of sequences are all in the sample.

    Parameters
    ----------
    r : Answers
        The answers.
    first : array (n_units,) or None
        The first answer of each unit; None if each answer is a unit.
    hashes : array
        Of the ids of all items, or sequences.
    seed, n_wanted : int
        Another seed samples other units.
    """
    n_units = r.n_responses if first is None else len(first)
    n_sampled = count_sampled(n_wanted, len(hashes), n_units)
    if r.sequences is None and n_sampled < len(hashes):
        numbers = draw_numbers(seed, hashes)
        sampled = numbers <= np.partition(numbers, n_sampled)[n_sampled]
        if first is None:
            eligible, _ = r.answers_about(np.flatnonzero(sampled))
        else:
            eligible = np.flatnonzero(sampled[find_owners(r, first)])
        if len(eligible) >= n_wanted:
            return eligible
    return np.arange(n_units)


def count_sampled(n_wanted: int, n_items: int, n_units: int) -> int:
    """Return how many items to sample, so that they have `SPARE` times as many units as are wanted."""
    return SPARE * n_wanted * n_items // n_units


def hash_owners(r: Answers) -> Hashes:
    """Return the hashes of all items, or sequences."""
    return hash_items(r.keys) if r.sequences is None else hash_ids(r.sequences.ids)


def count_units(r: Answers) -> int:
    """Return how many units could be hidden."""
    return r.n_responses if are_alone(r) else len(find_units(r)[1])


def find_owners(r: Answers, answers: Indices) -> Indices:
    """Return the item, or the sequence, that each of some answers is about."""
    item = r.items_of(answers)
    return item if r.sequences is None else r.sequences.of_items()[item]
