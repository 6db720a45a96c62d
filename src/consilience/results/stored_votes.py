"""Majority vote on answers on disk: shares and labels are those in memory, made block by block."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.blocks import Block
from ..checks.copy_groups import number_groups
from ..engines import open_engine
from ..engines.base import Engine
from ..formats.reading import open_paths
from ..inference.workers.rows import vote
from ..kernels.types import Floats
from ..models.base import OF_ITEMS, Totals
from ..models.majority_vote import MajorityVote, break_ties, collect_votes, settle_ties
from ..models.predicting import voters
from ..storage.answers import StoredResponses
from ..storage.layout import StoredBlock
from .intervals import VoteSums
from .stored import MOST_SAMPLED, Sample, add_gold, draw_sample, is_small
from .stored_blocks import prepare_block


class StoredVote(NamedTuple):
    """What a vote keeps of a fit to answers on disk, so that their labels can be written."""

    answers: StoredResponses
    unvoted: Floats  # (K,): the shares of items without votes
    ties: str
    seed: int
    sample: Sample | None

    def lean(self) -> StoredVote:
        """Return what is needed to label items, without the sample."""
        return self._replace(sample=None)

    def label(self, number: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the labels of a partition, and the shares of all classes."""
        s = self.answers
        shares = np.concatenate([share_votes(open_block(block, s), s, self.unvoted) for block in s.blocks(number)])
        return settle_ties(shares, self.ties, self.seed, partial(s.hash_items, number), s.classes), shares

    def view(self, model: MajorityVote) -> MajorityVote:
        """Return a vote as if it had been fitted to the items of the sample, with what all answers tell of workers."""
        assert self.sample is not None
        r, gold = self.sample.responses, self.sample.gold(self.answers)
        _ = model._counts, model._copies  # which are worked out when they are first used
        view = copy(model)
        view._stored = view._totals = None
        view._answers, view._gold, view._keys = r, gold, r.key_columns()
        with open_engine(None) as engine:
            view.posterior_, _ = collect_votes(engine, self.sample.weighed(self.answers), gold, self.unvoted)
        view._label_codes = break_ties(view.posterior_, self.ties, self.seed, r.keys, r.classes)
        return view


class VoteTally(NamedTuple):
    """Sums over the items of a vote, and the number of answers of each worker."""

    sums: VoteSums
    n_answers: NDArray[np.int64]  # (M,)

    def plus(self, other: VoteTally) -> VoteTally:
        """Return the sums over the items of both."""
        return VoteTally(self.sums.plus(other.sums), self.n_answers + other.n_answers)


def vote_stored(
    model: MajorityVote,
    s: StoredResponses,
    graph: Any,
    gold: Any,
    engine: Any,
    copies: list[list[int]] | None,
    count_copies_once: bool,
) -> None:
    """Take the vote of answers on disk. Near-copies are looked for in a sample, now only if they count once."""
    model._check_parameters()
    model._refuse_graph(graph)
    if is_small(s):
        model._fit(s.load(), None, gold, engine, copies, count_copies_once)
        return
    with open_engine(engine) as opened:
        s = add_gold(s, open_paths(gold))
        sample = draw_sample(s, model.seed, MOST_SAMPLED * max(s.n_sequences, s.n_items) // s.n_responses)
        if copies is None and count_copies_once:
            copies = model._find_copies(sample.responses, sample.gold(s), opened)
        if copies and count_copies_once:
            s = replace(s, groups=number_groups(copies, s.n_workers))
        unvoted = find_shares(s, opened)
        tally = opened.total(tally_votes, opened.place(s.grouped_blocks()), VoteTally.plus, s.bare(), unvoted)
    for name in OF_ITEMS:
        model.__dict__.pop(name, None)  # of an earlier fit
    model._keep_names(s.workers, s.labels, tally.n_answers)
    model._backend, model._normalised = s.backend, s.normalised
    model._answers = model._gold = model._graph = model._passages = model._pictures = None
    model._keep_votes(s.classes, unvoted, tally.sums)
    model._stored = StoredVote(s, unvoted, model.ties, model.seed, sample)
    model._totals = Totals(s.n_items, tally.sums.chosen / s.n_items)
    model.copies_count_once_ = s.groups is not None
    if copies is not None:
        model._copies = copies


def find_shares(s: StoredResponses, engine: Engine) -> Floats:
    """Return each class's share of all votes, as near-copies count."""
    if s.groups is None:
        return s.vote_shares()
    votes = engine.total(count_votes, engine.place(s.grouped_blocks()), np.add, s.bare())
    return replace(s, votes=votes).vote_shares()


def count_votes(stored: Sequence[StoredBlock], s: StoredResponses) -> Floats:
    """Return the weights of all answers with each label in some blocks."""
    return np.asarray(reduce(np.add, (sum_labels(open_block(block, s), s.n_labels) for block in stored)))


def sum_labels(block: Block, n_labels: int) -> Floats:
    """Return the weights of all answers with each label in a block."""
    label = block.rows[block.codes] % n_labels
    return np.bincount(label, block.weight if len(block.weight) else None, n_labels).astype(np.float64)


def tally_votes(stored: Sequence[StoredBlock], s: StoredResponses, unvoted: Floats) -> VoteTally:
    """Take the sums over the items of some blocks."""
    return reduce(VoteTally.plus, (tally_block(open_block(block, s), s, unvoted) for block in stored))


def tally_block(block: Block, s: StoredResponses, unvoted: Floats) -> VoteTally:
    """Take the sums over the items of a block."""
    shares = share_votes(block, s, unvoted)
    worker = block.rows[block.codes] // s.n_labels
    item = np.repeat(np.arange(block.n_items), np.diff(block.offsets))
    # A worker may give several labels to an item, of which each has a part of the weight.
    first = np.append(True, (np.diff(item) != 0) | (np.diff(worker) != 0))[: len(item)]
    sums = VoteSums.of(shares, shares.max(axis=1), unvoted, block.sequences if s.in_sequences else None)
    return VoteTally(sums, np.bincount(worker[first], minlength=s.n_workers))


def share_votes(block: Block, s: StoredResponses, unvoted: Floats) -> Floats:
    """Return the vote shares of the items of a block."""
    return vote(block, np.tile(s.class_of_label, s.n_workers), unvoted)


def open_block(block: StoredBlock, s: StoredResponses) -> Block:
    """Return a block as the vote takes it."""
    return prepare_block(block.open(), voters(s), s.groups)
