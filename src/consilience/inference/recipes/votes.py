"""Majority vote: vote shares of each item, and how ties are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from ...answers.blocks import cut_blocks
from ...answers.columns import Values
from ...answers.hashing import Hashes, draw_numbers, hash_ids, hash_items
from ...answers.items import Sequences
from ...answers.responses import Responses
from ...engines.base import Engine
from ...kernels.types import Floats
from ..cells import ITEMS_AT_ONCE
from ..parameters import check_choice, check_number
from ..sources import InMemory
from ..structures.independent import IndependentParameters
from ..workers.rows import vote
from .base import Recipe


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteRecipe(Recipe):
    """How `MajorityVote` is taken."""

    model = "MajorityVote"
    structure_type = IndependentParameters
    takes_disk = True
    needs_same_silence = False
    finds_copies_later = True
    why_no_batches = ": each item has its own votes, and nothing is learned from others"

    ties: str = "random"
    seed: int = 0

    def check(self) -> None:
        """Raise an error for a setting with a value that it cannot have."""
        check_choice(self, "ties", ("random", "first"))
        check_number(self, "seed", 0, whole=True)

    def break_ties(self, shares: Floats, keys: Values | Sequences, classes: Values) -> NDArray[np.int64]:
        """Return the class with the largest share of each item, ties broken by the rule."""
        return self.settle_ties(shares, partial(hash_items, keys), classes)

    def settle_ties(
        self, shares: Floats, hash_rows: Callable[[NDArray[np.int64]], Hashes], classes: Values
    ) -> NDArray[np.int64]:
        """Return the same as `break_ties`, where a function gives the hashes of some items."""
        chosen, is_tied = np.empty(len(shares), np.int64), np.empty(len(shares), bool)
        for first in range(0, len(shares), ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            tied = find_tied(shares[run])
            chosen[run] = tied.argmax(axis=1)
            is_tied[run] = reduce(add, tied.T, np.zeros(len(tied), np.int32)) > 1
        if self.ties == "random":
            several = np.flatnonzero(is_tied)
            of_items, of_classes = hash_rows(several), hash_ids(classes)
            for first in range(0, len(several), ITEMS_AT_ONCE):
                run = slice(first, first + ITEMS_AT_ONCE)
                draws = draw_numbers(self.seed, of_items[run, None], of_classes)
                tied = find_tied(shares[several[run]])
                chosen[several[run]] = np.where(tied, draws, np.iinfo(np.uint64).max).argmin(axis=1)
        return chosen


def collect_votes(engine: Engine, source: InMemory, unvoted: Floats) -> tuple[Floats, Floats]:
    """Return the vote shares of all items, and their sums; items without votes get `unvoted`."""
    r: Responses = source.responses
    # It does not matter who votes: the row of an answer is its label.
    placed = engine.place(cut_blocks(r, r.label, r.n_labels, None if source.gold is None else source.gold.codes))
    shares, mass, first = np.empty((r.n_items, r.n_classes)), np.zeros(r.n_classes), 0
    for part in engine.map(vote, placed, r.class_of_label, unvoted):
        shares[first : first + len(part)] = part
        mass, first = mass + part.sum(axis=0), first + len(part)
    return shares, mass


def find_tied(shares: Floats) -> NDArray[np.bool_]:
    """Tell which classes of each item have the largest share.

    Shares that differ by rounding only are tied: 1/3 + 1/3 and 2/3 are the same vote.
    """
    return np.asarray(shares >= reduce(np.maximum, shares.T)[:, None] - 1e-12)
