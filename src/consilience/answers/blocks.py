"""Blocks: runs of whole items (whole sequences) of answers, as plain arrays, the unit in which all work is done.

Every pass over the data is `statistics = sum over blocks of step(block, parameters)`. Where blocks begin and end
depends on the data alone, never on how many threads or machines there are, and sums are taken in block order: that is
why results are the same to the bit wherever they are computed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import Floats, Integers, Truths, freeze
from ..limits import allocate, release_mapped
from .columns import MANY, Codes, Indices
from .soft_votes import Probabilities

if TYPE_CHECKING:
    from .answers import Answers

# Answers plus items in a block: large enough that a block's overhead vanishes, small enough that its posteriors stay
# in the processor's cache and that two threads have something to share at a hundred thousand answers.
BLOCK_SIZE = 1 << 17
# So many rows can be told apart by codes of two bytes.
MOST_SHORT = 1 << 16
NO_VOTES: Probabilities = freeze(np.empty((0, 0), np.float32))


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive items. Arrays are read-only; an empty `amount` or `gold` means there are none.

    Attributes
    ----------
    first_item, n_items : int
        Index of the first item among all items, and number of items.
    codes : int32 or uint16 array
        For each answer, its row among those of the worker model that this block needs.
    offsets : int64 or int32 array
        Item i of the block owns the answers offsets[i]:offsets[i + 1].
    rows : int64 array
        Which of all rows of the worker model these are. Only workers met in the block have rows here, so that what a
        block reads and returns stays small when there are hundreds of thousands of workers.
    amount : float64 array
        The power that the likelihood of each answer is raised to, where answers have weights or near-copies count once.
    gold : int32 array
        Known class of each item, or -1.
    sequences : int64 array
        Sequence s of the block owns the items sequences[s]:sequences[s + 1]; empty where items are not in sequences.
    log_prior : float64 array (n_items, K)
        What is known of each item beside its answers, as the logarithm of a factor for each class, or empty.
    told : boolean array
        Whether anything is known of each item: an answer, a label, a prior of its own, or silence where that is an
        answer. Empty if something is known of all of them.
    total_size : int
        Answers plus items of all blocks together. It decides which kernels are compiled, so that they are the same for
        all blocks.
    anchor : float64 array (n_items, K)
        As `log_prior`, made of the items' own votes, or empty. It counts while labels are found, and not in calibrated
        probabilities.
    soft : float32 array (n_answers, K)
        What a worker model makes of the probabilities of soft votes, or empty.
    """

    first_item: int
    n_items: int
    codes: Codes | NDArray[np.uint16]
    offsets: Indices | Codes
    rows: Indices
    amount: Floats
    gold: Codes
    sequences: Indices
    log_prior: Floats
    told: Truths
    total_size: int
    anchor: Floats
    soft: Probabilities


def cut_blocks(
    responses: Answers,
    codes: Integers,
    n_codes: int,
    gold: Codes | None = None,
    known: Floats | None = None,
    soft: Probabilities = NO_VOTES,
) -> list[Block]:
    """Cut the answers into blocks; `codes` is each answer's row in the worker model, which has `n_codes` rows.

    `gold` are the known classes of the items, and `known` (N, K) is what else is known of them. `soft` is what the
    worker model makes of the probabilities of each answer.
    """
    offsets, sequences = responses.offsets, responses.sequences
    ends: Any = range(responses.n_items + 1) if sequences is None else sequences.offsets
    total_size = int(offsets[-1]) + responses.n_items
    n_blocks = max(1, total_size // BLOCK_SIZE)
    told = offsets[1:] > offsets[:-1]
    if gold is not None:
        told |= gold >= 0
    if known is not None:
        told |= (known != 0).any(axis=1)
    # Blocks are much of the memory of a fit, so they hold short numbers. Those of small data are all of one kind, for
    # which kernels are compiled.
    many = total_size >= MANY
    all_told = responses.silence_counts or bool(told.all())
    # Block b ends with the first whole sequence (or item) that reaches its share of the total size.
    targets = np.linspace(0, total_size, n_blocks + 1).astype(np.int64).tolist()
    cuts = sorted({bisect_left(ends, target, key=lambda end: int(offsets[end]) + int(end)) for target in targets})
    bounds = [int(ends[cut]) for cut in cuts]
    nothing, unknown = freeze(np.empty(0)), freeze(np.empty((0, 0)))
    room = allocate((responses.n_responses, 4), np.uint8)  # for the codes of all blocks
    blocks = []
    for (first, start), (last, stop) in pairwise(zip(cuts, bounds, strict=True)):
        answers = slice(int(offsets[start]), int(offsets[stop]))
        used = np.zeros(n_codes, bool)
        used[codes[answers]] = True
        rows = np.flatnonzero(used)
        local = (np.cumsum(used, dtype=np.int32) - np.int32(1)).take(codes[answers])
        short = many and len(rows) <= MOST_SHORT
        kept: Any = room[answers].reshape(-1).view(np.uint16 if short else np.int32)[: len(local)]
        kept[:] = local
        blocks.append(
            Block(
                first_item=start,
                n_items=stop - start,
                codes=freeze(kept),
                offsets=freeze((offsets[start : stop + 1] - offsets[start]).astype(np.int32 if many else np.int64)),
                rows=freeze(rows),
                amount=nothing if responses.amount is None else freeze(responses.amount[answers]),
                gold=freeze(np.empty(0, np.int32) if gold is None else gold[start:stop].astype(np.int32)),
                sequences=freeze(
                    np.empty(0, np.int64) if sequences is None else sequences.offsets[first : last + 1] - start
                ),
                log_prior=unknown if known is None else freeze(known[start:stop].copy()),
                told=freeze(np.empty(0, np.bool_) if all_told else told[start:stop].copy()),
                total_size=total_size,
                anchor=unknown,
                soft=freeze(soft[answers]) if soft.shape[1] else NO_VOTES,
            )
        )
        release_mapped()
    return blocks
