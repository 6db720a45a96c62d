"""Sources of answers: what a fit works on, wherever the answers are.

A source has answers, known labels of their items, and what else is known of the items. `InMemory` holds all of this as
arrays, and is one part. `OnDisk` is a store with many parts, of which a sample can be brought into memory. What a fit
computes is a sum over the blocks of a source, or is found in a sample of it. A source in memory is its own sample.

Workers who copy each other can count once. If g workers of a group answer an item, the share of each of their answers
is 1 / g: the power that its likelihood is raised to. Together they count as one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..answers.arrays import NO_VOTES, Block, Crowd, cut_blocks, renumber
from ..answers.columns import Values, to_column
from ..answers.gold import Gold
from ..answers.item_tables import Features, ItemPriors, add_priors
from ..answers.items import Sequences
from ..answers.random_choices import hash_ids
from ..answers.responses import Answers
from ..answers.vocabulary import lookup
from ..engines.base import Engine, Placed
from ..kernels import Floats, Integers, freeze
from ..kinds.base import TABLE, AnyKind
from ..specs import is_whole
from ..storage.answers import Sample, StoredAnswers, draw_sample, pick_sample
from ..storage.layout import Opening, StoredBlock
from .steps import Steps
from .workers.base import WorkerModel
from .workers.confusion import ConfusionWorkers
from .workers.rows import anchor

# Answers that are looked at one by one, and the part of them that is hidden at a time.
MOST_ANSWERS, HIDDEN = 100_000, 0.1
# Copies, and the coupling of sequences, are looked for among so many answers of a store.
MOST_SAMPLED = 400_000
# Fewer answers than this are read into memory.
FEW = 200_000


class Placement(NamedTuple):
    """Where the blocks of a source are worked on."""

    engine: Engine
    placed: Sequence[Placed]
    weighted: bool  # whether answers have weights or shares


class Source(ABC):
    """Answers, known labels of their items, and what else is known of these."""

    @property
    @abstractmethod
    def crowd(self) -> Crowd:
        """Vocabularies and sizes of the answers."""

    @abstractmethod
    def place(self, workers: WorkerModel, engine: Engine) -> Placement:
        """Cut the answers into blocks with the rows of a worker model, and put them where they will be worked on."""

    @abstractmethod
    def with_classes(self, classes: Values) -> Self:
        """Return the same answers with other classes."""

    @abstractmethod
    def count_once(self, copies: list[list[int]]) -> Self:
        """Return the same answers with shares such that each group of workers counts as one."""

    @abstractmethod
    def sample(self) -> InMemory:
        """Return all answers to some items, or to all, in memory: for what needs only some of them."""

    def find_steps(self, settings: object) -> Steps | None:  # noqa: ARG002 (of a store)
        """Return where E-steps of a fit with these settings are kept, if they are."""
        return None


@dataclass(frozen=True, eq=False)
class InMemory(Source):
    """Answers in memory: one part, which is its own sample."""

    responses: Answers
    gold: Gold | None = None
    log_prior: Floats | None = None  # (N, K): what is known of each item beside its answers, see `item_priors`
    features: Features | None = None  # what describes the items
    task: AnyKind = TABLE  # what the items are

    @classmethod
    def of_codes(cls, r: Answers, known: NDArray[np.int32] | None) -> InMemory:
        """Return answers with the known classes of their items, -1 where they are not known."""
        return cls(r, None if known is None else Gold(known, known >= 0))

    @property
    def crowd(self) -> Answers:
        """The answers."""
        return self.responses

    def place(self, workers: WorkerModel, engine: Engine) -> Placement:
        """Cut the answers into blocks, and put them where they will be worked on."""
        return Placement(engine, engine.place(self.lay_out(workers)), self.responses.amount is not None)

    def lay_out(self, workers: WorkerModel, anchored: bool = True) -> list[Block]:
        """Cut the answers into blocks; where silence is an answer, items are `anchored` to their votes.

        Estimates are found with the anchor, and calibrated probabilities without it: it would count votes twice.
        """
        r, known = self.responses, None if self.gold is None else self.gold.codes
        rows, soft = workers.encode(r), workers.read_votes(r)
        blocks = cut_blocks(r, rows, workers.n_rows, known, self.log_prior, soft)
        if not workers.silent or not anchored:
            return blocks
        votes, unvoted = workers.votes(), r.vote_shares()
        return [anchor(block, votes, unvoted) for block in blocks]

    def with_classes(self, classes: Values) -> InMemory:
        """Return the same answers with other classes. Priors of items say nothing about classes that are new."""
        if classes is self.responses.classes:
            return self
        log_prior = None
        if self.log_prior is not None:
            log_prior = np.append(self.log_prior, np.zeros((self.responses.n_items, 1)), axis=1)
            log_prior = log_prior[:, lookup(self.responses.classes, to_column(classes))]  # -1 is the column of zeros
        return replace(self, responses=self.responses.with_classes(classes), log_prior=log_prior)

    def count_once(self, copies: list[list[int]]) -> InMemory:
        """Return the same answers with shares such that each group of workers counts as one."""
        groups = number_groups(copies, self.responses.n_workers)
        return replace(self, responses=count_once(self.responses, groups)) if copies else self

    def sample(self) -> InMemory:
        """Return the source itself."""
        return self

    def keep(self, answers: NDArray[np.bool_]) -> InMemory:
        """Return the same items with only the answers marked True."""
        return replace(self, responses=self.responses.keep(answers))

    def about(self, items: NDArray[np.int64]) -> InMemory:
        """Return the answers about some of the items, which must not be in sequences."""
        return InMemory(
            self.responses.about(items),
            None if self.gold is None else self.gold.about(items),
            None if self.log_prior is None else self.log_prior[items],
        )

    def with_priors(self, priors: ItemPriors, shares: Floats) -> InMemory:
        """Return the answers with more that is known of the items, relative to class shares."""
        return replace(self, log_prior=add_priors(self.responses, self.log_prior, priors, shares))

    def find_told(self) -> NDArray[np.bool_]:
        """Tell which items have answers. Where silence is an answer, all have."""
        r = self.responses
        return np.diff(r.offsets) > 0 if not r.silence_counts else np.ones(r.n_items, bool)


@dataclass(frozen=True, eq=False)
class OnDisk(Source):
    """Answers in a store: its parts are opened block by block."""

    answers: StoredAnswers
    drawn: Sample  # about `MOST_SAMPLED` answers

    @classmethod
    def of(cls, s: StoredAnswers, seed: int) -> OnDisk:
        """Return a store as a source, with the items, or sequences, that have the smallest random numbers."""
        return cls(s, draw_sample(s, seed, MOST_SAMPLED * max(s.n_sequences, s.n_items) // s.n_responses))

    @property
    def crowd(self) -> StoredAnswers:
        """The store."""
        return self.answers

    def place(self, workers: WorkerModel, engine: Engine) -> Placement:
        """Put groups of blocks where they will be opened."""
        s = self.answers
        opening = Opening(engine, partial(open_stored, workers=workers, groups=s.groups))
        return Placement(opening, opening.place(s.grouped_blocks()), s.weighted or s.groups is not None)

    def with_classes(self, classes: Values) -> OnDisk:
        """Return the same answers with other classes."""
        return replace(self, answers=self.answers.with_classes(classes))

    def count_once(self, copies: list[list[int]]) -> OnDisk:
        """Return the same answers, of which those of a group of workers count as one."""
        s = self.answers
        return replace(self, answers=replace(s, groups=number_groups(copies, s.n_workers))) if copies else self

    def bring(self, sample: Sample, weighed: bool = True) -> InMemory:
        """Return a sample in memory, with its known labels and, if it is `weighed`, with near-copies counted once."""
        s, r = self.answers, sample.responses
        return InMemory(r if s.groups is None or not weighed else count_once(r, s.groups), sample.gold(s))

    def sample(self) -> InMemory:
        """Return all answers to some items, in memory."""
        return self.bring(self.drawn)

    def draw_looked_at(self, seed: int) -> Sample:
        """Return the items, or sequences, by which answers are calibrated: the same as in memory."""
        s = self.answers
        return draw_sample(s, seed, MOST_ANSWERS * (s.n_sequences if s.in_sequences else s.n_items) // s.n_responses)

    def known_part(self) -> InMemory | None:
        """Return the items, or sequences, with a known label that was drawn at random; None if there are none."""
        s = self.answers
        known = {} if s.gold is None else s.gold
        units = {number: s.units_of(number, items) for number, (items, _, drawn) in known.items() if drawn.any()}
        return self.bring(pick_sample(s, units)) if units else None

    def find_steps(self, settings: object) -> Steps:
        """Return where the E-steps of a fit with these settings are kept."""
        s = self.answers
        return Steps(s.folder / "steps", (s.gold, s.groups, s.classes.tolist(), settings), needed=s.resume)


def open_stored(block: StoredBlock, workers: WorkerModel, groups: Integers | None) -> Block:
    """Return a block of a store as the fit takes it."""
    return prepare_block(block.open(), workers, groups)


def prepare_block(block: Block, workers: WorkerModel, groups: Integers | None) -> Block:
    """Return a block with the rows of another worker model, or with shares such that near-copies count once."""
    if groups is None and workers.name == ConfusionWorkers.name:
        return replace(block, soft=NO_VOTES) if len(block.soft) else block
    answers = recover_answers(block, workers)
    if groups is not None:
        block = replace(block, share=freeze(share_votes(answers, groups)))
    block = replace(block, soft=freeze(workers.read_votes(answers)))
    if workers.name == ConfusionWorkers.name:
        return block
    rows, codes = renumber(workers.encode(answers), workers.n_rows)
    return replace(block, codes=freeze(codes), rows=freeze(rows))


def recover_answers(block: Block, workers: WorkerModel) -> Answers:
    """Return the answers of a block of a store as `Answers`, with numbers for ids."""
    worker, label = np.divmod(block.rows[block.codes], workers.n_labels)
    numbers = np.arange(block.n_items)
    keys = (
        numbers
        if not len(block.sequences)
        else Sequences(np.arange(len(block.sequences) - 1), block.sequences, numbers)
    )
    named, n_classes = workers.class_of_label, workers.n_classes
    return Answers(
        offsets=block.offsets.astype(np.int64, copy=False),
        worker=worker.astype(np.int32),
        label=label.astype(np.int32),
        weight=block.weight if len(block.weight) else None,
        workers=np.arange(workers.n_workers),
        labels=np.where(named >= 0, named, n_classes + np.arange(workers.n_labels)),
        classes=np.arange(n_classes),
        keys=keys,
        soft=block.soft if len(block.soft) else None,
    )


def list_groups(groups: Integers) -> list[list[int]]:
    """Return the members of each group, by index."""
    return [np.flatnonzero(groups == group).tolist() for group in range(1, groups.max(initial=0) + 1)]


def number_groups(members: list[list[int]], n_workers: int) -> Integers:
    """Return the group of each worker, as `find_copies` does, from the members of each."""
    groups = np.zeros(n_workers, np.int64)
    for number, group in enumerate(members, 1):
        groups[group] = number
    return groups


def are_groups(value: object) -> bool:
    """Tell whether a value from JSON are groups of workers, each by their indices."""
    if not isinstance(value, list) or not all(isinstance(group, list) and len(group) > 1 for group in value):
        return False
    members = [member for group in value for member in group]
    return all(map(is_whole, members)) and len(set(members)) == len(members)


def count_once(r: Answers, groups: Integers) -> Answers:
    """Return the answers with shares such that those of a group about an item count as one answer.

    Where silence is an answer, all workers of a group answer all items, and the share is the same for all. The
    `leader` of a group is the member with the smallest hash.
    """
    if not groups.any():
        return r
    r = replace(r, leader=choose_leaders(r.workers, groups))
    if r.silence_counts:
        size = np.bincount(groups).astype(float)
        size[0] = 1.0
        r, share = replace(r, silence_weight=1.0 / size[groups]), 1.0 / size[groups[r.worker]]
    else:
        share = share_votes(r, groups)
    return replace(r, share=share if r.share is None else share * r.share)


def choose_leaders(workers: Values, groups: Integers) -> NDArray[np.int64]:
    """Return one worker of the group of each, the same for all of its members; workers without a group themselves."""
    by_hash = np.argsort(hash_ids(workers), kind="stable")[::-1]
    leaders = np.zeros(groups.max() + 1, np.int64)
    leaders[groups[by_hash]] = by_hash  # the last one stays
    return np.where(groups > 0, leaders[groups], np.arange(len(workers)))


def share_votes(r: Answers, groups: Integers) -> Floats:
    """Return 1 / g for answers of workers of whose group g answered the item, and 1 for others."""
    n_groups = groups.max() + 1
    item, worker = r.votes()
    grouped = np.flatnonzero(groups[worker])
    codes, size = np.unique(item[grouped] * n_groups + groups[worker[grouped]], return_counts=True)
    answers = np.flatnonzero(groups[r.worker])
    wanted = r.item_of_answer()[answers] * n_groups + groups[r.worker[answers]]
    share = np.ones(r.n_responses)
    share[answers] = 1.0 / size[np.searchsorted(codes, wanted)]
    return share
