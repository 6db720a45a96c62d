"""What a fit works on: answers, known labels of their items, and what else is known of these.

Workers who copy each other can count once. If g workers of a group answer an item, the share of each of their answers
is 1 / g: the power that its likelihood is raised to. Together they count as one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import NO_VOTES, Answers, Block, cut_blocks
from ..answers.columns import Values, lookup, to_column
from ..answers.features import Features
from ..answers.gold import Gold
from ..answers.item_priors import ItemPriors, add_priors
from ..answers.random_choices import hash_ids
from ..kernels import Floats, Integers, freeze
from ..kinds.base import TABLE, AnyKind
from .workers.base import WorkerModel
from .workers.rows import ADDED_TO_VOTES, vote
from .workers.types import WorkerTypes

# Answers that are looked at one by one, and the part of them that is hidden at a time.
MOST_ANSWERS, HIDDEN = 100_000, 0.1


@dataclass(frozen=True, eq=False)
class Observations:
    """Answers, known labels of their items, and what else is known of these."""

    responses: Answers
    gold: Gold | None = None
    log_prior: Floats | None = None  # (N, K): what is known of each item beside its answers, see `answers.item_priors`
    features: Features | None = None  # what describes the items
    kind: AnyKind = TABLE  # what the items are
    worker_types: WorkerTypes | None = None  # what the workers' answers to other questions say of them
    teach: bool | None = None  # whether known labels teach; None: as far as they do, see `teaching`

    def lay_out(self, workers: WorkerModel, anchored: bool = True) -> list[Block]:
        """Cut the answers into blocks; where silence is an answer, items are `anchored` to their votes.

        Estimates are found with the anchor, and calibrated probabilities without it: it would count votes twice.
        """
        r, known = self.responses, None if self.gold is None else self.gold.codes
        soft = workers.read_votes(r) if workers.needs_votes and r.soft is not None else NO_VOTES
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows, known, self.log_prior, soft)
        if not workers.silent or not anchored:
            return blocks
        votes, unvoted = workers.votes(), r.vote_shares()
        # Silence may otherwise be taken for the most telling answer, under another meaning of the classes.
        shares = (vote(block, votes, unvoted) + ADDED_TO_VOTES for block in blocks)
        return [replace(block, anchor=freeze(np.log(each))) for block, each in zip(blocks, shares, strict=True)]

    def with_classes(self, classes: Values) -> Observations:
        """The same answers with other classes. Priors of items say nothing about classes that are new."""
        if classes is self.responses.classes:
            return self
        log_prior = None
        if self.log_prior is not None:
            log_prior = np.append(self.log_prior, np.zeros((self.responses.n_items, 1)), axis=1)
            log_prior = log_prior[:, lookup(self.responses.classes, to_column(classes))]  # -1 is the column of zeros
        return replace(self, responses=self.responses.with_classes(classes), log_prior=log_prior)

    def count_once(self, copies: list[list[int]]) -> Observations:
        """The same answers with shares such that each group of workers counts as one."""
        groups = assign_groups(copies, self.responses.n_workers)
        return replace(self, responses=count_once(self.responses, groups)) if copies else self

    def keep(self, answers: NDArray[np.bool_]) -> Observations:
        """The same items with only the answers marked True."""
        return replace(self, responses=self.responses.keep(answers))

    def about(self, items: NDArray[np.int64]) -> Observations:
        """The answers about some of the items; of a sequence about all of them, or none.

        Features, the kind of items and types of workers are left behind: the parameters are fixed by then.
        """
        return Observations(
            self.responses.about(items),
            None if self.gold is None else self.gold.about(items),
            None if self.log_prior is None else self.log_prior[items],
        )

    def with_priors(self, priors: ItemPriors, shares: Floats) -> Observations:
        """The answers with more that is known of the items, relative to class shares."""
        return replace(self, log_prior=add_priors(self.responses, self.log_prior, priors, shares))

    def add_log_prior(self, more: Floats) -> Observations:
        """The same with more that is known of the items, (N, K)."""
        return replace(self, log_prior=more if self.log_prior is None else self.log_prior + more)

    def find_answered(self) -> NDArray[np.bool_]:
        """Which items have answers. Where silence is an answer, all have."""
        r = self.responses
        return np.diff(r.offsets) > 0 if not r.silence_counts else np.ones(r.n_items, bool)


def assign_groups(members: list[list[int]], n_workers: int) -> Integers:
    """The group of each worker, 1, 2, ..., and 0 for none, from the members of each."""
    groups = np.zeros(n_workers, np.int64)
    for number, group in enumerate(members, 1):
        groups[group] = number
    return groups


def count_once(r: Answers, groups: Integers) -> Answers:
    """The answers with shares such that those of a group about an item count as one answer.

    Where silence is an answer, all workers of a group answer all items, and the share is the same for all. The
    `leader` of a group, the same for all of its members, is the member with the smallest hash.
    """
    if not groups.any():
        return r
    by_hash = np.argsort(hash_ids(r.workers), kind="stable")[::-1]
    leaders = np.zeros(groups.max() + 1, np.int64)
    leaders[groups[by_hash]] = by_hash  # the last one stays
    r = replace(r, leader=np.where(groups > 0, leaders[groups], np.arange(r.n_workers)))
    if r.silence_counts:
        size = np.bincount(groups).astype(float)
        size[0] = 1.0
        r, share = replace(r, silence_weight=1.0 / size[groups]), 1.0 / size[groups[r.worker]]
    else:
        # 1 / g for answers of workers of whose group g answered the item, and 1 for others.
        n_groups = groups.max() + 1
        item, worker = r.votes()
        grouped = np.flatnonzero(groups[worker])
        codes, size = np.unique(item[grouped] * n_groups + groups[worker[grouped]], return_counts=True)
        answers = np.flatnonzero(groups[r.worker])
        wanted = r.items_of(answers) * n_groups + groups[r.worker[answers]]
        share = np.ones(r.n_responses)
        share[answers] = 1.0 / size[np.searchsorted(codes, wanted)]
    return replace(r, share=share if r.share is None else share * r.share)


def keep_strongest(responses: Answers) -> Answers:
    """The answers in which each worker gives an item only the label with most weight."""
    if responses.amount is None:
        return responses
    pair = responses.item_of_answer() * responses.n_workers + responses.worker
    # Within a pair the heaviest comes first, and of equals the first label.
    kept = responses.keep(find_first(np.lexsort((-responses.amount, pair)), pair))
    return replace(kept, weight=None, share=None)


def find_first(order: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which entries are the first of those with the same code, which are next to each other in this order."""
    first = np.ones(len(order), bool)
    first[1:] = codes[order][1:] != codes[order][:-1]
    chosen = np.zeros(len(order), bool)
    chosen[order[first]] = True
    return chosen
