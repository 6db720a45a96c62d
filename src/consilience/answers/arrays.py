"""Answers as plain integer arrays, which everything else works on, and blocks of them.

Answers are sorted by item (items of a sequence stand together, in order of position), item i owns the answers
`offsets[i]:offsets[i + 1]`, and `worker` and `label` are indices into `workers` and `labels`.

Blocks are runs of whole items (whole sequences), the unit in which all work is done. Every pass over the data is
`statistics = sum over blocks of step(block, parameters)`. Where blocks begin and end depends on the data alone, never
on how many threads or machines there are, and sums are taken in block order: that is why results are the same to the
bit wherever they are computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import join_names, listing, plural
from ..kernels import Floats, Integers, Truths, Width, freeze
from .classes import are_ranks, merge_spellings, spell_as
from .columns import Codes, Column, Indices, Values, objects, to_column
from .composite import split_ids
from .items import Sequences
from .previews import frame_html, html_facts, paragraph, to_word
from .soft_votes import Probabilities, relabel
from .vocabulary import MANY, count_codes, lookup

# Counts are weights times probabilities. From smaller weights they could vanish, as if nobody had said so.
LEAST_WEIGHT = 1e-100


class Crowd(ABC):
    """The vocabularies and sizes that answers in memory and answers on disk have in common; see `Answers`."""

    workers: Values
    labels: Values
    classes: Values
    backend: str
    background: Any
    normalised: bool
    silence_weight: Floats | None
    positions: tuple[float, ...] | None  # of ordered classes, increasing; None for classes without an order

    def __repr__(self) -> str:
        kind = "" if self.sequences is None else f" in {len(self.sequences):,} sequences"
        return (
            f"{type(self).__name__}({self.n_responses:,} answers: {self.n_items:,} items{kind} x {self.n_workers:,} "
            f"workers, {self.n_classes} classes: {listing(self.classes.tolist())})"
        )

    def _repr_html_(self) -> str:
        kind = "" if self.sequences is None else f" in {plural(len(self.sequences), 'sequence')}"
        names = join_names(map(to_word, self.classes.tolist()), "classes has all")
        facts = [
            ("Answers", f"{self.n_responses:,}, {self.n_responses / max(self.n_items, 1):.1f} per item"),
            ("Items", f"{self.n_items:,}{kind}"),
            ("Workers", f"{self.n_workers:,}"),
            ("Classes", f"{self.n_classes:,}: {names}"),
            *([("Silence", f"is an answer, often of {to_word(self.background)}")] if self.silence_counts else []),
        ]
        return frame_html(paragraph(type(self).__name__), html_facts(facts))

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items, those nobody answered included."""

    @property
    @abstractmethod
    def n_responses(self) -> int:
        """Number of answers."""

    @property
    @abstractmethod
    def sequences(self) -> Sized | None:
        """The sequences that the items are in; None where items are independent of each other."""

    @abstractmethod
    def vote_shares(self) -> Floats:
        """Return what an item without votes is taken for: the background, or each class's share of all votes."""

    @abstractmethod
    def label_shares(self) -> Floats:
        """Return the share of each label in all answers, each counted by its weight, (L,)."""

    @abstractmethod
    def with_classes(self, classes: Values) -> Self:
        """Return the same answers with other classes."""

    def place(self, classes: Values) -> tuple[float, ...] | None:
        """Return the positions of other classes: those that they had; ranks if there are new ones, or ranks before."""
        if self.positions is None:
            return None
        known = lookup(self.classes, to_column(classes))
        if (known < 0).any() or are_ranks(self.positions):
            return tuple(map(float, range(len(classes))))
        return tuple(self.positions[k] for k in known.tolist())

    @property
    def is_ordered(self) -> bool:
        """Whether the classes are levels from low to high."""
        return self.positions is not None

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_labels(self) -> int:
        """Number of labels that workers use."""
        return len(self.labels)

    @property
    def is_soft(self) -> bool:
        """Whether answers are soft votes."""
        return False

    @property
    def silence_counts(self) -> bool:
        """Whether a worker's silence about an item is itself an answer."""
        return self.background is not None

    @cached_property
    def class_of_label(self) -> Indices:
        """For each label, the class it names, or -1 ("unsure")."""
        return lookup(self.classes, to_column(self.labels))

    @cached_property
    def label_of_class(self) -> Indices:
        """For each class, the label that names it, or -1 (nobody said it)."""
        return lookup(self.labels, to_column(self.classes))

    def share_votes(self, votes: Floats | Indices) -> Floats:
        """Return each class's share of all votes, of which there are so many for each label."""
        shares = np.zeros(self.n_classes)
        named = self.class_of_label >= 0
        shares[self.class_of_label[named]] = votes[named]
        return to_shares(shares)


def to_shares(amounts: Floats | Indices) -> Floats:
    """Return amounts divided by their sum; equal shares if there is nothing."""
    total = amounts.sum()
    return np.asarray(amounts / total) if total > 0 else np.full(len(amounts), 1 / max(len(amounts), 1))


class Provenance(NamedTuple):
    """Where answers were read.

    Attributes
    ----------
    columns : dict
        The column of the table that played each role.
    format : str
        The form of the table, if it was none with one row per answer.
    origin : tuple of str or None
        Path and format of the file.
    gold : dict or None
        Known labels that the table came with.
    """

    columns: Mapping[str, str] = {}
    format: str = ""
    origin: tuple[str, str] | None = None
    gold: Mapping[Any, Any] | None = None


UNKNOWN_PROVENANCE = Provenance()


@dataclass(frozen=True, eq=False, repr=False)
class AnswerArrays(Crowd):
    """What `Answers` hold, whose public attributes are told there, and what can be asked of them."""

    offsets: Indices
    worker: Codes
    label: Integers
    weight: Floats | None
    workers: Values
    labels: Values
    classes: Values
    keys: Values | Sequences  # what identifies the items
    backend: str = "pyarrow"  # the frame library in which results go back
    background: Any = None  # where silence is an answer: the class of items about which all are silent
    normalised: bool = False  # whether labels are in their normal form; then gold and priors are matched by that
    silence_weight: Floats | None = None  # where silence is an answer: how much that of each worker counts; default 1
    # Where near-copies count once: one worker of the group of each, the same for all of its members, and the power that
    # the likelihood of each answer is raised to.
    leader: Indices | None = None
    share: Floats | None = None
    order: Floats | None = None  # when each answer was given, see `items`; NaN where it is not known
    positions: tuple[float, ...] | None = None
    soft: Probabilities | None = None  # (n_answers, L): of each label, the most probable of which is in `label`
    provenance: Provenance = UNKNOWN_PROVENANCE  # where they were read

    def __post_init__(self) -> None:
        # Kernels are compiled for arrays that are read-only.
        for array in (self.offsets, self.worker, self.label, self.weight, self.share, self.order, self.soft):
            if array is not None:
                array.flags.writeable = False

    @property
    def columns(self) -> Mapping[str, str]:
        """The column of the table that played each role; empty for matrices."""
        return self.provenance.columns

    @property
    def format(self) -> str:
        """The form of the table that they were read from; empty if it had one row per answer."""
        return self.provenance.format

    @property
    def gold(self) -> Mapping[Any, Any] | None:
        """Known labels that the table of answers came with."""
        return self.provenance.gold

    def read_from(self, **known: Any) -> Self:
        """Return the same answers, of which something else is known about where they were read."""
        return replace(self, provenance=self.provenance._replace(**known))

    @property
    def n_items(self) -> int:
        """Number of items, those nobody answered included."""
        return len(self.offsets) - 1

    @property
    def is_soft(self) -> bool:
        """Whether answers are soft votes."""
        return self.soft is not None

    @property
    def n_responses(self) -> int:
        """Number of answers."""
        return len(self.worker)

    @property
    def sequences(self) -> Sequences | None:
        """The sequences that the items are in; None where items are independent of each other."""
        return self.keys if isinstance(self.keys, Sequences) else None

    @cached_property
    def items(self) -> Values:
        """Item ids, in the order of every per-item result; pairs (sequence, position) for sequences."""
        if not isinstance(self.keys, Sequences):
            return self.keys
        owners = self.keys.ids[self.keys.of_items()].tolist()
        return objects(list(zip(owners, self.keys.position.tolist(), strict=True)))

    def vote_shares(self) -> Floats:
        """Return what an item without votes is taken for: the background, or each class's share of all votes."""
        return self._vote_shares.copy()

    @cached_property
    def _vote_shares(self) -> Floats:
        if self.silence_counts:
            shares = np.zeros(self.n_classes)
            shares[lookup(self.classes, to_column([self.background]))] = 1.0
            return shares
        if self.soft is not None:
            return self.share_votes(self.soft.sum(axis=0, dtype=np.float64))
        if self.amount is None:
            return self.share_votes(count_codes(self.label, self.n_labels))
        return self.share_votes(np.bincount(self.label, weights=self.amount, minlength=self.n_labels))

    def label_shares(self) -> Floats:
        """Return the share of each label in all answers, each counted by its weight, (L,)."""
        if self.weight is None:
            return to_shares(count_codes(self.label, self.n_labels))
        return to_shares(np.bincount(self.label, weights=self.weight, minlength=self.n_labels))

    def key_columns(self) -> dict[str, Column]:
        """Return what identifies an item, as named columns: item, or sequence and position, and what these consist of.

        Where several columns of a table identify an item together, they are there beside the id.
        """
        if self.sequences is None:
            return {"item": to_column(self.items), **split_ids(self.items, self.columns.get("item"))}
        owner = self.sequences.ids[self.sequences.of_items()]
        places = {"sequence": to_column(owner), "position": to_column(self.sequences.position)}
        return {**places, **split_ids(owner, self.columns.get("sequence"))}

    def find_items(self, keys: Sequence[Column]) -> Indices:
        """Return the index of the item with each key (one column, or sequence and position), or -1."""
        if self.sequences is None:
            return lookup(self.items, keys[0])
        owner = lookup(self.sequences.ids, keys[0])
        places, place_of_item = np.unique(self.sequences.position, return_inverse=True)
        place = lookup(places, keys[1])
        known = self.sequences.of_items() * len(places) + place_of_item
        wanted = np.where((owner < 0) | (place < 0), -1, owner * len(places) + place)
        # Items stand in order of sequence and position, so `known` is sorted.
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[at] == wanted, at, -1)

    def keep(self, answers: Truths) -> Self:
        """Return the same items, workers and labels with only the answers marked True."""
        kept = np.concatenate([[0], np.cumsum(answers)])
        return replace(self, offsets=kept[self.offsets].astype(np.int64), **self._pick(answers))

    def _pick(self, answers: Truths | Indices) -> dict[str, Any]:
        """Return what is known of each of some answers."""
        arrays = {name: getattr(self, name) for name in ("worker", "label", "weight", "share", "order", "soft")}
        return {name: None if array is None else array[answers] for name, array in arrays.items()}

    def about(self, items: Indices) -> Self:
        """Return the answers about some of the items; of a sequence about all of them, or none."""
        answers, owner = self.answers_about(items)
        keys: Any = self.keys
        if isinstance(keys, Sequences):
            chosen, sizes = np.unique(keys.of_items()[items], return_counts=True)
            keys = Sequences(keys.ids[chosen], np.concatenate([[0], np.cumsum(sizes)]), keys.position[items])
        else:
            keys = keys[items]
        return replace(
            self,
            keys=keys,
            offsets=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(items)))]).astype(np.int64),
            provenance=self.provenance._replace(gold=None),
            **self._pick(answers),
        )

    def answers_about(self, items: Indices) -> tuple[Indices, Indices]:
        """Return the indices of the answers about some of the items, and for each the place of its item among these."""
        sizes = self.offsets[items + 1] - self.offsets[items]
        first = np.cumsum(sizes) - sizes
        answers = np.arange(sizes.sum()) + np.repeat(self.offsets[items] - first, sizes)
        return answers, np.repeat(np.arange(len(items)), sizes)

    def with_classes(self, classes: Values) -> Self:
        """Return the same answers with other classes."""
        # A new object, so that nothing derived from the old classes is kept.
        return self if classes is self.classes else replace(self, classes=classes, positions=self.place(classes))

    def spelled_as(self, known: Values) -> Self:
        """Return the same answers with labels and classes written as the known labels of the same normal form."""
        spell = spell_as(known)
        label, labels = merge_spellings(self.label, self.labels, spell, ordered=True)
        code, classes = merge_spellings(np.arange(self.n_classes, dtype=np.int32), self.classes, spell, ordered=True)
        background = None if self.background is None else spell(self.background)
        first = np.unique(code, return_index=True)[1].tolist()
        positions = None if self.positions is None else tuple(self.positions[k] for k in first)
        spelled = replace(self, label=label, labels=labels, background=background, normalised=True)
        if self.soft is not None:
            place, _ = merge_spellings(np.arange(self.n_labels, dtype=np.int32), self.labels, spell, ordered=True)
            soft = relabel(self.soft, place, len(labels))
            spelled = replace(spelled, label=soft.argmax(axis=1).astype(np.int32), soft=soft)
        return replace(spelled, classes=classes, positions=positions)

    def scaled_as(self, classes: Values, positions: tuple[float, ...] | None) -> Self:
        """Return the same answers on the scale of others: with these classes if they are ordered, else without one."""
        return replace(self, classes=self.classes if positions is None else classes, positions=positions)

    def unweighted(self) -> Self:
        """Return the same answers, each of which counts fully."""
        return replace(self, weight=None, share=None)

    @property
    def amount(self) -> Floats | None:
        """How much each answer counts, by its weight and as one of near-copies; None if all count fully."""
        if self.weight is None or self.share is None:
            return self.share if self.weight is None else self.weight
        return self._amount

    @cached_property
    def _amount(self) -> Floats:
        assert self.weight is not None
        assert self.share is not None
        return freeze(np.asarray(self.share * self.weight))

    def class_votes(self, answers: Indices | slice = slice(None)) -> Probabilities:
        """Return what soft votes, all or some, give to each class, (n, K), and not what to other labels."""
        assert self.soft is not None
        given = self.soft[answers]
        if np.array_equal(self.class_of_label, np.arange(self.n_classes)):
            return given
        named = np.flatnonzero(self.class_of_label >= 0)
        votes = np.zeros((len(given), self.n_classes), np.float32)
        votes[:, self.class_of_label[named]] = given[:, named]
        return votes

    def hardened(self) -> Self:
        """Return the most probable label of each answer alone."""
        return self if self.soft is None else replace(self, soft=None)

    def weights(self, answers: slice | Indices = slice(None)) -> Floats:
        """Return how much each answer counts, or some answers: 1 where there are no weights."""
        return np.ones(len(self.worker[answers])) if self.amount is None else self.amount[answers]

    def orders(self, answers: slice | Indices = slice(None)) -> Floats:
        """Return when each answer was given, or some answers: NaN where it is not known."""
        return np.full(len(self.worker[answers]), np.nan) if self.order is None else self.order[answers]

    def item_of_answer(self) -> Indices:
        """Return the index of the item that each answer is about."""
        return np.repeat(np.arange(self.n_items), np.diff(self.offsets))

    def items_of(self, answers: Indices) -> Indices:
        """Return the index of the item that each of some answers is about: a few of many, by their indices."""
        return np.searchsorted(self.offsets, answers, side="right") - 1

    def have_several_workers(self) -> Truths:
        """Tell which items, or sequences, at least two workers answered."""
        ends = self.offsets if self.sequences is None else self.offsets[self.sequences.offsets]
        several = np.diff(ends) > 1
        first = ends[:-1][several]
        if len(first):
            # Two workers are there if one answer is by another worker than the answer before.
            changes = np.append(False, self.worker[1:] != self.worker[:-1])
            changes[ends[:-1][np.diff(ends) > 0]] = False
            several[several] = np.logical_or.reduceat(changes, first)
        return several

    def votes(self) -> tuple[Indices, Indices]:
        """Return the item and the worker of each vote; an answer that is spread over several labels is one vote."""
        return (self.item_of_answer(), self.worker.astype(np.int64)) if self.amount is None else self._votes

    @cached_property
    def _votes(self) -> tuple[Indices, Indices]:
        # `np.unique` takes many times as long for codes that are nearly sorted.
        codes = np.sort(self.item_of_answer() * self.n_workers + self.worker)
        item, worker = np.divmod(codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]], self.n_workers)
        item.flags.writeable = worker.flags.writeable = False
        return item, worker

    def votes_per_worker(self) -> Indices:
        """Return the number of items that each worker answered."""
        return self._votes_per_worker.copy()

    @cached_property
    def _votes_per_worker(self) -> Indices:
        return count_codes(self.worker if self.amount is None else self._votes[1], self.n_workers)


def keep_weights(weight: Floats | None) -> Floats | None:
    """Return the weights of answers, at least `LEAST_WEIGHT`; None where all are 1: models are faster without."""
    return None if weight is None or bool(np.all(weight == 1.0)) else np.maximum(weight, LEAST_WEIGHT)


# Answers plus items in a block: large enough that a block's overhead vanishes, small enough that its posteriors stay
# in the processor's cache and that two threads have something to share at a hundred thousand answers.
BLOCK_SIZE = 1 << 17
# So many rows can be told apart by codes of two bytes.
MOST_SHORT = 1 << 16
NO_VOTES: Probabilities = freeze(np.empty((0, 0), np.float32))


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive items. Arrays are read-only; an empty `weight`, `share` or `gold` means there are none.

    Attributes
    ----------
    first_item : int
        Index of the first item among all items.
    codes : int32 or uint16 array
        For each answer, its row among those of the worker model that this block needs.
    offsets : int64 or int32 array
        Item i of the block owns the answers offsets[i]:offsets[i + 1].
    rows : int64 array
        Which of all rows of the worker model these are. Only workers met in the block have rows here, so that what a
        block reads and returns stays small when there are hundreds of thousands of workers.
    weight : float64 array
        Weight of each answer: the probability that it was given with care.
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
    share : float64 array
        Where near-copies count once: the power that the likelihood of each answer is raised to.
    """

    first_item: int
    codes: Codes | NDArray[np.uint16]
    offsets: Indices | Codes
    rows: Indices
    weight: Floats
    gold: Codes
    sequences: Indices
    log_prior: Floats
    told: Truths
    total_size: int
    anchor: Floats
    soft: Probabilities
    share: Floats

    @property
    def n_items(self) -> int:
        """Number of items in the block."""
        return len(self.offsets) - 1

    @property
    def amount(self) -> Floats:
        """How much each answer counts, by its weight and its share; empty if all count fully."""
        if not len(self.weight) or not len(self.share):
            return self.weight if len(self.weight) else self.share
        return freeze(self.share * self.weight)

    def width(self, n_classes: int) -> Width:
        """Return the `width` argument of kernels that work on this block."""
        from ..kernels.compile import width_of

        return width_of(n_classes, self.total_size)


def cut_blocks(
    responses: AnswerArrays,
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
    ends = np.arange(responses.n_items + 1) if sequences is None else sequences.offsets
    size = (offsets if sequences is None else offsets[ends]) + ends
    total_size = int(size[-1])
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
    cuts = np.unique(np.searchsorted(size, np.linspace(0, total_size, n_blocks + 1).astype(np.int64)))
    bounds = ends[cuts].tolist()
    del ends, size
    nothing, unknown = freeze(np.empty(0)), freeze(np.empty((0, 0)))
    blocks = []
    for (first, start), (last, stop) in pairwise(zip(cuts.tolist(), bounds, strict=True)):
        answers = slice(int(offsets[start]), int(offsets[stop]))
        rows, local = renumber(codes[answers], n_codes)
        blocks.append(
            Block(
                first_item=start,
                codes=freeze(local.astype(np.uint16) if many and len(rows) <= MOST_SHORT else local),
                offsets=freeze((offsets[start : stop + 1] - offsets[start]).astype(np.int32 if many else np.int64)),
                rows=freeze(rows),
                weight=nothing if responses.weight is None else freeze(responses.weight[answers]),
                gold=freeze(np.empty(0, np.int32) if gold is None else gold[start:stop].astype(np.int32)),
                sequences=freeze(
                    np.empty(0, np.int64) if sequences is None else sequences.offsets[first : last + 1] - start
                ),
                log_prior=unknown if known is None else freeze(known[start:stop].copy()),
                told=freeze(np.empty(0, np.bool_) if all_told else told[start:stop].copy()),
                total_size=total_size,
                anchor=unknown,
                soft=freeze(soft[answers]) if soft.shape[1] else NO_VOTES,
                share=nothing if responses.share is None else freeze(responses.share[answers]),
            )
        )
    return blocks


def renumber(codes: Integers, n_codes: int) -> tuple[Indices, Codes]:
    """Return the distinct codes, sorted, and the index of each code among them.

    >>> renumber(np.array([7, 2, 7]), 9)
    (array([2, 7]), array([1, 0, 1], dtype=int32))
    """
    used = np.zeros(n_codes, bool)
    used[codes] = True
    index = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(used), index.take(codes)
