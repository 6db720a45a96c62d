"""Labels of answers on disk: made part by part, and never all in memory.

A judge makes labels and probabilities of a block, from what the fit learned. Sums over all items are taken block by
block, where the blocks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.arrays import Block
from ..answers.columns import Column, to_column, to_values
from ..engines import open_engine
from ..engines.base import Engine
from ..inference import sum_by
from ..inference.em import Fit, Problem, decode_block, infer_block, keep_unsaid
from ..inference.learned import as_used
from ..inference.levels import choose_labels
from ..inference.powers import raise_to
from ..inference.recipes import LatentRecipe
from ..inference.recipes.independent import VoteRecipe, collect_votes, find_tied
from ..inference.sources import InMemory, OnDisk, prepare_block
from ..inference.steps import Steps
from ..inference.structures import BlockwiseParameters
from ..inference.workers.base import WorkerModel
from ..inference.workers.confusion import ConfusionWorkers
from ..inference.workers.mean import MeanWorkers, voters
from ..inference.workers.rows import AnyFactors, Counted, LeftOut, vote
from ..kernels import Floats, Integers
from ..storage.answers import Sample, StoredAnswers, find_gold
from ..storage.layout import StoredBlock
from .answer_worth import Careful, find_accuracy
from .comparison import count_differing
from .intervals import VoteSums, choose
from .result import Given, Labels, Result, find_known

Sums = TypeVar("Sums", bound=tuple[Any, ...])


class PartJudge(Protocol):
    """What makes labels and probabilities of a part of a store."""

    @property
    def rule(self) -> str:
        """What may decide a label beside known ones."""

    def label(self, answers: StoredAnswers, number: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the labels of a part, and the probabilities of all classes."""

    def label_sample(self, sample: InMemory) -> Labels:
        """Return the labels of some items that were brought into memory."""


@dataclass(frozen=True, eq=False)
class StoredLabels:
    """The labels of all items of a store."""

    answers: StoredAnswers
    judge: PartJudge
    mean_confidence: float
    tally: Tally | None = None  # of models with a hidden truth
    sample: Sample | None = None  # some items, for what looks at items one by one
    steps: Steps | None = None  # where the fit has kept its E-steps
    shown: bool = True  # whether tables show probabilities

    def lean(self) -> StoredLabels:
        """Return what is needed to label items, to be sent elsewhere."""
        return StoredLabels(self.answers, self.judge, self.mean_confidence, shown=self.shown)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.answers.n_items

    def numbers(self) -> list[int]:
        """Return the numbers of the parts."""
        return list(self.answers.filled())

    def part(self, number: int) -> Labels:
        """Return the labels of one part."""
        keys = {name: to_column(column) for name, column in self.answers.keys(number).items()}
        codes, posterior = self.judge.label(self.answers, number)
        known = find_known(find_gold(self.answers, number), codes) if self.answers.n_known else None
        scale = self.answers.classes, self.answers.positions
        return Labels(keys, *scale, codes, posterior, None, known, self.judge.rule, self.shown)

    def label_sample(self, sample: InMemory) -> Labels:
        """Return the labels of some items that were brought into memory."""
        labels = self.judge.label_sample(sample)
        known = find_known(sample.gold, labels.codes)
        return replace(labels, known=known, rule=self.judge.rule, shown=self.shown)

    def parts(self) -> Iterator[Labels]:
        """Yield the labels part by part."""
        return map(self.part, self.numbers())


def view_parts(found: Result, with_answers: bool = True) -> Iterator[Result]:
    """Yield a result part by part, each as if it were of its items alone, with what was learned from all.

    A result in memory is one part. The parts of others have their answers only if these are asked for.
    """
    labelled = found.labelled
    if not isinstance(labelled, StoredLabels):
        next(labelled.parts())  # where labels are gone, this says how to get them
        yield found
        return
    s = labelled.answers
    for number in labelled.numbers():
        r = s.pick({number: s.list_units(number)}) if with_answers else None
        yield replace(found, labelled=labelled.part(number), given=Given(r, find_gold(s, number)), source=None)


def view_items(found: Result, sample: Sample) -> Result:
    """Return a result as if it were of some items of a store, with what was learned from all."""
    labelled, source = found.labelled, found.source
    assert isinstance(labelled, StoredLabels)
    assert isinstance(source, OnDisk)
    labels = labelled.label_sample(source.bring(sample))
    return replace(found, labelled=labels, given=Given(sample.responses, sample.gold(labelled.answers)), source=None)


def view_sample(found: Result) -> Result:
    """Return a result as if it were of the items of the sample.

    The comparison with majority vote is that of all items, except for what is counted.
    """
    labelled, comparison = found.labelled, found.comparison
    assert isinstance(labelled, StoredLabels)
    assert labelled.sample is not None
    n_items = labelled.sample.responses.n_items
    if comparison is not None:
        n_differ = count_differing(n_items / labelled.n_items * comparison.n_differ)
        comparison = replace(comparison, n_items=n_items, n_differ=n_differ)
    return replace(view_items(found, labelled.sample), comparison=comparison)


def join_tables(parts: list[dict[str, Column]]) -> dict[str, Column]:
    """Return the columns of several parts as those of one."""
    return parts[0] if len(parts) == 1 else {name: join([part[name] for part in parts]) for name in parts[0]}


def join(columns: list[Column]) -> Column:
    """Return columns of several parts as one."""
    columns = [column for column in columns if len(column)] or columns[:1]  # an empty one may have any type
    if any(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate([to_values(column) for column in columns])
    return pa.chunked_array(columns).combine_chunks()


class Judge(NamedTuple):
    """All that makes labels and probabilities of a block."""

    workers: WorkerModel
    factors: AnyFactors
    decoding: AnyFactors | None  # None: the label of an item is the most probable class of what is reported
    structure: BlockwiseParameters
    counted: Counted | None  # None: items are not left out of the counts that judge them
    unsaid: NDArray[np.int64]
    accuracy: Floats  # (M,): of the answers of each worker, by expected counts
    power: float
    label_by: str
    rule: str

    @classmethod
    def of(cls, recipe: LatentRecipe, problem: Problem, best: Fit, power: float) -> Judge:
        """Return what a fit makes labels with."""
        learned = best.parameters
        leaves_out = recipe.calibration != "none" and recipe.max_iter > 0
        counted = problem.workers.counted(best.statistics.counts, best.statistics.summary.mass, learned.prior)
        return cls(
            problem.workers,
            problem.factors(as_used(learned.workers.log_weights)),
            problem.factors(learned.workers) if recipe.decodes_jointly else None,
            cast(BlockwiseParameters, learned.structure),
            counted if leaves_out else None,
            problem.find_unsaid(),
            find_accuracy(problem.workers.plain_counts(best.statistics.counts), problem.workers.class_of_label),
            power,
            recipe.label_by,
            recipe.rule,
        )

    def judge(self, block: Block) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return posteriors before calibration, labels, and the probabilities to report."""
        posterior = infer_block(block, self.factors, self.structure)[0]
        left_out = posterior
        if self.counted is not None:
            alone = replace(block, first_item=0)
            evidence, _ = LeftOut(self.counted, posterior, self.factors).weigh(alone)
            self.structure.for_left_out().infer_block(alone, evidence)
            left_out = keep_unsaid(evidence, posterior, self.unsaid)
        reported = raise_to(left_out, self.power)
        if self.decoding is not None:
            return posterior, decode_block(block, self.decoding, self.structure), reported
        return posterior, choose_labels(reported, self.label_by), reported

    def label_sample(self, sample: InMemory) -> Labels:
        """Return the labels of some items that were brought into memory."""
        posteriors, codes, reported = zip(*map(self.judge, sample.lay_out(self.workers)), strict=True)
        r, chosen, shown, fitted = sample.responses, *map(np.concatenate, (codes, reported, posteriors))
        return Labels.of(r, chosen, shown, fitted)

    def label(self, answers: StoredAnswers, number: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the labels of a part, and the probabilities of all classes."""
        blocks = (prepare_block(block.open(), self.workers, answers.groups) for block in answers.blocks(number))
        judged = [self.judge(block) for block in blocks]
        return np.concatenate([codes for _, codes, _ in judged]), np.concatenate([each for _, _, each in judged])


class Tally(NamedTuple):
    """Sums over items, and over the answers of workers. Those of different blocks add."""

    confidence: float  # probability of the labels
    labels: NDArray[np.int64]  # (K,): items with each label
    votes: Floats  # (K,): probability that the vote falls on each class
    agreeing: float  # probability that the vote is the label
    vote_confidence: float  # probability of what the vote falls on
    unanimous: NDArray[np.int64]  # (K,): items that at least two workers, and all who answered, give to the class
    kept: NDArray[np.int64]  # (K,): those of them whose label it is
    chances: Floats  # (3, M): as `sum_chances` returns
    n_answers: NDArray[np.int64]  # (M,)

    @classmethod
    def of(cls, answers: StoredAnswers, judge: Judge, engine: Engine) -> Tally:
        """Take the sums over all items of a store."""
        shared = judge, answers.groups, answers.vote_shares()
        return engine.total(tally_blocks, engine.place(answers.grouped_blocks()), add_tuples, *shared)


def add_tuples(one: Sums, other: Sums) -> Sums:
    """Return the sums over the items of both."""
    return type(one)(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))


def tally_blocks(stored: Sequence[StoredBlock], judge: Judge, groups: Integers | None, unvoted: Floats) -> Tally:
    """Take the sums over the items of some blocks."""
    return reduce(add_tuples, (tally_block(block, judge, groups, unvoted) for block in stored))


def tally_block(stored: StoredBlock, judge: Judge, groups: Integers | None, unvoted: Floats) -> Tally:
    """Take the sums over the items of a block."""
    raw, workers = stored.open(), judge.workers
    block = prepare_block(raw, workers, groups)
    posterior, labels, reported = judge.judge(block)
    n_classes, rows, n_workers = posterior.shape[1], np.arange(block.n_items), workers.n_workers
    # The vote counts near-copies one by one.
    voting = (MeanWorkers if len(raw.soft) else ConfusionWorkers)(n_workers, workers.class_of_label, n_classes)
    shares = vote(prepare_block(raw, voting, None), voting.votes(), unvoted)
    tied = find_tied(shares)
    chances = tied / tied.sum(axis=1, keepdims=True)
    worker, label = np.divmod(raw.rows[raw.codes], workers.n_labels)
    item, klass = np.repeat(rows, np.diff(block.offsets)), workers.class_of_label[label]
    n_votes = np.bincount(item[klass >= 0], minlength=block.n_items)
    agreed = (shares.max(axis=1) > 1 - 1e-9) & (n_votes > 1)
    if len(block.gold):
        agreed &= block.gold < 0
    voted = shares[agreed].argmax(axis=1)
    weight = block.amount if len(block.amount) else np.ones(len(item))
    right = np.where(klass >= 0, posterior[item, klass], 0.0)
    if len(block.weight):
        careful = Careful.of_block(block, judge.factors, posterior, klass)
        sums = careful.sum_chances(worker, judge.accuracy)
    else:
        sums = np.stack([sum_by(worker, each, n_workers) for each in (weight, weight * right, weight * right**2)])
    return Tally(
        float(reported[rows, labels].sum()),
        np.bincount(labels, minlength=n_classes),
        chances.sum(axis=0),
        float(chances[rows, labels].sum()),
        float(np.einsum("nk,nk->", chances, reported)),
        np.bincount(voted, minlength=n_classes),
        np.bincount(voted[labels[agreed] == voted], minlength=n_classes),
        sums,
        count_votes(item, worker, n_workers),
    )


def count_votes(item: NDArray[np.int64], worker: NDArray[np.int64], n_workers: int) -> NDArray[np.int64]:
    """Return how many items each worker answered; an answer that is spread over several labels is one vote."""
    first = np.append(True, (np.diff(item) != 0) | (np.diff(worker) != 0))[: len(item)]
    return np.bincount(worker[first], minlength=n_workers)


class VoteJudge(NamedTuple):
    """All that makes the vote of a part."""

    recipe: VoteRecipe
    unvoted: Floats  # (K,): the shares of items without votes

    @property
    def rule(self) -> str:
        """What may decide a label beside known ones."""
        return self.recipe.rule

    def label_sample(self, sample: InMemory) -> Labels:
        """Return the vote of some items that were brought into memory."""
        r = sample.responses
        with open_engine(None) as engine:
            shares, _ = collect_votes(engine, sample, self.unvoted)
        return Labels.of(r, self.recipe.label_votes(shares, r.keys, r.classes), shares)

    def label(self, answers: StoredAnswers, number: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the labels of a part, and the shares of all classes."""
        blocks = (open_votes(block, answers) for block in answers.blocks(number))
        shares = np.concatenate([share_votes(block, answers, self.unvoted) for block in blocks])
        codes = self.recipe.label_hashed(shares, partial(answers.hash_items, number), answers.classes)
        return codes, shares


class VoteTally(NamedTuple):
    """Sums over the items of a vote, and the number of answers of each worker."""

    sums: VoteSums
    n_answers: NDArray[np.int64]  # (M,)

    def plus(self, other: VoteTally) -> VoteTally:
        """Return the sums over the items of both."""
        return VoteTally(add_tuples(self.sums, other.sums), self.n_answers + other.n_answers)

    @classmethod
    def of(cls, answers: StoredAnswers, unvoted: Floats, label_by: str, engine: Engine) -> VoteTally:
        """Take the sums over all items of a store."""
        blocks = engine.place(answers.grouped_blocks())
        return engine.total(tally_votes, blocks, VoteTally.plus, answers.bare(), unvoted, label_by)


def find_shares(s: StoredAnswers, engine: Engine) -> Floats:
    """Return each class's share of all votes, as near-copies count."""
    if s.groups is None or s.is_soft:
        return s.vote_shares()
    votes = engine.total(sum_votes, engine.place(s.grouped_blocks()), np.add, s.bare())
    return replace(s, votes=votes).vote_shares()


def sum_votes(stored: Sequence[StoredBlock], s: StoredAnswers) -> Floats:
    """Return the weights of all answers with each label in some blocks."""
    return np.asarray(reduce(np.add, (sum_labels(open_votes(block, s), s.n_labels) for block in stored)))


def sum_labels(block: Block, n_labels: int) -> Floats:
    """Return the weights of all answers with each label in a block."""
    label = block.rows[block.codes] % n_labels
    return np.bincount(label, block.amount if len(block.amount) else None, n_labels).astype(np.float64)


def tally_votes(stored: Sequence[StoredBlock], s: StoredAnswers, unvoted: Floats, label_by: str) -> VoteTally:
    """Take the sums over the items of some blocks."""
    return reduce(VoteTally.plus, (tally_vote(open_votes(block, s), s, unvoted, label_by) for block in stored))


def tally_vote(block: Block, s: StoredAnswers, unvoted: Floats, label_by: str) -> VoteTally:
    """Take the sums over the items of a block."""
    shares = share_votes(block, s, unvoted)
    worker = block.rows[block.codes] // (voters(s).n_rows // s.n_workers)
    item = np.repeat(np.arange(block.n_items), np.diff(block.offsets))
    chosen = choose(shares, choose_labels(shares, label_by))
    sums = VoteSums.of(shares, chosen, unvoted, block.sequences if s.in_sequences else None)
    return VoteTally(sums, count_votes(item, worker, s.n_workers))


def share_votes(block: Block, s: StoredAnswers, unvoted: Floats) -> Floats:
    """Return the vote shares of the items of a block."""
    return vote(block, voters(s).votes(), unvoted)


def open_votes(block: StoredBlock, s: StoredAnswers) -> Block:
    """Return a block as the vote takes it."""
    return prepare_block(block.open(), voters(s), s.groups)
