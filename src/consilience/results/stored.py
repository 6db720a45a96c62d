r"""Fits to answers on disk: the same loop over the same blocks, and results that are written block by block.

Nothing of the size of the items is held in memory. What a fit to answers in memory takes from all posteriors comes from
two places here.

**Sums over all items** are taken block by block: counts, expected accuracy, what differs from the vote.

**A sample of the items**, with all of their answers, is held in memory for what needs only some of them: the items with
the smallest random numbers, which depend on their ids and on the seed.

- The power is found by the same hidden answers as in memory (see `consilience.results.hidden_fits`): only items with
  hidden answers are looked at again.
- Intervals scale sums over the sample to all items. Sums over the answers of a worker are over all of them.
- Copies, the coupling of sequences and moments are looked for in a larger sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.blocks import Block
from ..answers.columns import to_values
from ..answers.gold import Gold, match_gold, open_gold
from ..answers.hashing import Hashes, draw_numbers, hash_ids
from ..answers.hidden_answers import count_hidden, count_sampled
from ..answers.responses import Responses
from ..checks.comparison import count_differing
from ..checks.copy_groups import choose_leaders, count_once, number_groups
from ..engines import Threads, open_engine
from ..engines.base import Engine
from ..errors import ParameterError, Python, Sentence
from ..formats.reading import open_paths
from ..inference.em import Fit, Problem, decode_block, infer_block, keep_unsaid, weigh_left_out
from ..inference.structures.base import BlockwiseParameters
from ..inference.workers.base import WorkerModel
from ..inference.workers.left_out import Counted
from ..inference.workers.rows import Factors, vote
from ..kernels.types import Floats, Integers
from ..models.base import OF_ITEMS
from ..models.base import Totals as LabelTotals
from ..models.majority_vote import find_tied
from ..models.predicting import as_used, lay_out
from ..storage.answers import StoredResponses
from ..storage.layout import StoredBlock
from .calibration import calibrate, score_known
from .cells import sum_by
from .hidden_fits import ENOUGH_ANSWERS, HIDDEN, Totals, choose_folds
from .intervals import Whole, find_intervals
from .powers import POWERS, KnownScores, raise_to
from .stored_blocks import find_steps, prepare_block

if TYPE_CHECKING:
    from ..models.latent import LatentModel, Plan

# Fewer answers than this are read into memory: fits to them are repeated without hidden answers.
FEW = int(ENOUGH_ANSWERS / HIDDEN)
# Copies, and the coupling of sequences, are looked for among so many answers.
MOST_SAMPLED = 400_000
# Somewhat more units than are wanted lie below the limit that is expected to suffice.
MARGIN = 64
# Of the units that could be hidden, a partition returns so many: more are never hidden.
MOST_UNITS = 30_000


def is_small(s: StoredResponses) -> bool:
    """Tell whether answers on disk are so few that they are read into memory."""
    return s.n_responses < FEW


class StoredFit(NamedTuple):
    """What a model keeps of a fit to answers on disk, so that their labels can be written."""

    answers: StoredResponses
    problem: Problem
    judge: Judge
    tally: Tally
    sample: Sample | None  # in which answers were hidden

    def open(self, block: StoredBlock) -> Block:
        """Return a block as the fit took it."""
        return prepare_block(block.open(), self.problem.workers, self.answers.groups)

    def label(self, number: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the labels of a partition, and the probabilities of all classes."""
        judged = [self.judge.judge(self.open(block)) for block in self.answers.blocks(number)]
        return np.concatenate([codes for _, codes, _ in judged]), np.concatenate([each for _, _, each in judged])

    def lean(self) -> StoredFit:
        """Return what is needed to judge blocks, without where they are placed and without the sample."""
        return self._replace(problem=replace(self.problem, placed=[], engine=Threads(1), steps=None), sample=None)

    def view(self, model: LatentModel) -> LatentModel:
        """Return a model as if it had been fitted to the items of the sample, with what it learned from all.

        The comparison with majority vote is that of all items, except for what is counted.
        """
        assert self.sample is not None
        s, r, gold = self.answers, self.sample.responses, self.sample.gold(self.answers)
        judged = [self.judge.judge(block) for block in lay_out(self.sample.weighed(s), self.problem.workers, gold)]
        view = copy(model)
        view._stored = view._totals = None
        view._answers, view._gold, view._keys = r, gold, r.key_columns()
        view.uncalibrated_posterior_ = np.concatenate([posterior for posterior, _, _ in judged])
        view._label_codes = np.concatenate([labels for _, labels, _ in judged])
        view.posterior_ = np.concatenate([reported for _, _, reported in judged])
        if hasattr(view, "comparison_") and view.comparison_ is not None:
            share = r.n_items / s.n_items
            n_differ = count_differing(share * view.comparison_.n_differ)
            view.comparison_ = replace(view.comparison_, n_items=r.n_items, n_differ=n_differ)
        return view


class Judge(NamedTuple):
    """All that makes labels and probabilities of a block."""

    factors: Factors
    decoding: Factors | None  # None: each item has its own most probable label
    structure: BlockwiseParameters
    counted: Counted | None  # None: items are not left out of the counts that judge them
    unsaid: NDArray[np.int64]
    power: float

    def judge(self, block: Block) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return posteriors before calibration, labels, and the probabilities to report."""
        posterior = infer_block(block, self.factors, self.structure)[0]
        labels = posterior.argmax(axis=1)
        if self.decoding is not None:
            labels = decode_block(block, self.decoding, self.structure)
        left_out = posterior
        if self.counted is not None:
            alone = replace(block, first_item=0)
            evidence, _ = weigh_left_out(alone, self.counted, posterior, use_gold=True)
            self.structure.for_left_out().infer_block(alone, evidence)
            left_out = keep_unsaid(evidence, posterior, self.unsaid)
        return posterior, labels, raise_to(left_out, self.power)


class Tally(NamedTuple):
    """Sums over items, and over the answers of workers. Those of different blocks add."""

    confidence: float  # probability of the labels
    labels: NDArray[np.int64]  # (K,): items with each label
    votes: Floats  # (K,): probability that the vote falls on each class
    agreeing: float  # probability that the vote is the label
    vote_confidence: float  # probability of what the vote falls on
    unanimous: NDArray[np.int64]  # (K,): items that at least two workers, and all who answered, give to the class
    kept: NDArray[np.int64]  # (K,): those of them whose label it is
    chances: Floats  # (3, M): weights of answers, times the probability to be right, and times its square
    n_answers: NDArray[np.int64]  # (M,)

    def plus(self, other: Tally) -> Tally:
        """Return the sums over the items of both."""
        sums: list[Any] = [mine + theirs for mine, theirs in zip(self, other, strict=True)]  # type: ignore[operator]
        return Tally(*sums)


class Sample(NamedTuple):
    """Some items, or sequences, of a store, with all of their answers in memory."""

    units: Mapping[int, NDArray[np.int64]]  # of each partition, ascending
    responses: Responses

    def gold(self, s: StoredResponses) -> Gold | None:
        """Return the known labels of the items."""
        if s.gold is None:
            return None
        codes, judging = [], []
        for number, units in self.units.items():
            items = s.items_of(number, units)
            here, code, drawn = s.gold.get(number, (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, bool)))
            at = np.minimum(np.searchsorted(here, items), max(len(here) - 1, 0))
            known = here[at] == items if len(here) else np.zeros(len(items), bool)
            codes.append(np.where(known, code[at] if len(here) else -1, -1).astype(np.int32))
            judging.append(known & (drawn[at] if len(here) else False))
        return Gold(np.concatenate(codes), np.concatenate(judging))

    def weighed(self, s: StoredResponses) -> Responses:
        """Return the answers as the fit takes them: near-copies may count once."""
        return self.responses if s.groups is None else count_once(self.responses, s.groups)


def fit_stored(
    model: LatentModel,
    s: StoredResponses,
    graph: Any,
    gold: Any,
    engine: Any,
    copies: list[list[int]] | None,
    count_copies_once: bool,
) -> LatentModel:
    """Fit a model to answers on disk."""
    model._check_parameters()
    if graph is not None or model._takes_graph:
        raise ParameterError(
            "Items that are linked by a graph must fit in memory.",
            Sentence("Read the answers with {read}.", read=Python("read_responses")),
            keyword="graph",
        )
    if is_small(s):
        return model._fit(s.load(), None, gold, engine, copies, count_copies_once)
    s = model._prepare(s)
    with open_engine(engine) as opened:
        s = add_gold(s, open_paths(gold))
        large = draw_sample(s, model.seed, MOST_SAMPLED * max(s.n_sequences, s.n_items) // s.n_responses)
        if copies is None:
            copies = model._find_copies(large.responses, large.gold(s), opened)
        if copies and count_copies_once:
            s = replace(s, groups=number_groups(copies, s.n_workers))
        steps = find_steps(s, model)
        steps.begin(s.resume)
        plan = model._plan(s, None, None, opened, (large.weighed(s), large.gold(s)))
        fits = model._run(plan)
        conclude(model, s, plan, fits, opened)
        steps.finish()
    model._copies, model.copies_count_once_ = copies, s.groups is not None
    return model


def conclude(model: LatentModel, s: StoredResponses, plan: Plan, fits: dict[str, Fit], engine: Engine) -> None:
    """Calibrate the best fit, take sums over all items, and keep all that was learned."""
    problem, best = plan.problem, model._choose(plan.problem, fits)
    model._warn_of_iterations(best, s.n_responses)
    sample, n_units = draw_hidden(model, s, engine)
    r, gold = sample.weighed(s), sample.gold(s)
    near = pose_sample(model, r, gold, problem, best, engine)
    posterior, label_codes = model._conclude(r, near, best.parameters)
    known = None if s.gold is None else judge_known(model, s, problem, best, engine)
    found, _, confidence, hidden, _ = calibrate(
        model, r, near, best, posterior, gold, None, Totals(n_units, s.n_responses), known
    )
    judge = make_judge(model, problem, best, found.power)
    shared = judge, problem.workers, s.groups, s.vote_shares()
    tally = engine.total(tally_blocks, engine.place(s.grouped_blocks()), Tally.plus, *shared)
    estimates = model._gather_estimates(r, near, best.parameters, best.statistics, gold)
    whole = Whole(s.n_items, tally.confidence / s.n_items, tally.chances)
    intervals, _ = find_intervals(r, posterior, label_codes, estimates, confidence, whole)
    model._keep_learned(problem, best.parameters, best.statistics, intervals)
    model._settle_fit(best, fits, found)
    model._keep_names(s.workers, s.labels, tally.n_answers)
    for name in OF_ITEMS:
        model.__dict__.pop(name, None)  # of an earlier fit
    model.classes_, model._backend, model._normalised = s.classes, s.backend, s.normalised
    model._answers = model._gold = model._graph = model._passages = model._pictures = None
    model.feature_findings_ = model.feature_names_ = model._guide = model._opinions = model._log_prior = None
    model._hidden, model._stored = hidden, StoredFit(s, problem, judge, tally, sample)
    model._totals = LabelTotals(s.n_items, tally.confidence / s.n_items)
    for name, value in plan.notes.items():
        setattr(model, name, value)


def pose_sample(
    model: LatentModel, r: Responses, gold: Gold | None, problem: Problem, best: Fit, engine: Engine
) -> Problem:
    """Return the problem of some items, with the priors of a fit to all of them."""
    posed = model._pose(r, problem.structure, None, gold, engine)
    return replace(posed, prior=best.parameters.prior, unvoted=problem.unvoted)


def judge_known(model: LatentModel, s: StoredResponses, problem: Problem, best: Fit, engine: Engine) -> KnownScores:
    """Return how well known labels are predicted by posteriors that do not know them."""
    assert s.gold is not None
    units = {number: s.units_of(number, items) for number, (items, _, drawn) in s.gold.items() if drawn.any()}
    if not units:
        return KnownScores(np.zeros(len(POWERS)), 0)
    sample = pick_sample(s, units)
    r, gold = sample.weighed(s), sample.gold(s)
    assert gold is not None
    near = pose_sample(model, r, gold, problem, best, engine)
    posterior, _ = model._conclude(r, near, best.parameters)
    return score_known(model, r, near, best, posterior, gold)


def make_judge(model: LatentModel, problem: Problem, best: Fit, power: float) -> Judge:
    """Return what makes labels and probabilities of blocks."""
    learned = best.parameters
    leaves_out = model.calibration != "none" and model.max_iter > 0
    counted = problem.workers.counted(best.statistics.counts, best.statistics.summary.mass, learned.prior)
    return Judge(
        problem.factors(as_used(learned.workers.log_weights)),
        problem.factors(learned.workers) if getattr(model, "decode", "marginal") == "viterbi" else None,
        cast(BlockwiseParameters, learned.structure),
        counted if leaves_out else None,
        problem.find_unsaid(),
        power,
    )


def tally_blocks(stored: Sequence[StoredBlock], *shared: Any) -> Tally:
    """Take the sums over the items of some blocks."""
    return reduce(Tally.plus, (tally_block(block, *shared) for block in stored))


def tally_block(
    stored: StoredBlock, judge: Judge, workers: WorkerModel, groups: Integers | None, unvoted: Floats
) -> Tally:
    """Take the sums over the items of a block."""
    raw = stored.open()
    block = prepare_block(raw, workers, groups)
    posterior, labels, reported = judge.judge(block)
    n_classes, rows, n_workers = posterior.shape[1], np.arange(block.n_items), workers.n_workers
    # The vote counts near-copies one by one.
    shares = vote(raw, np.tile(workers.class_of_label, n_workers), unvoted)
    tied = find_tied(shares)
    chances = tied / tied.sum(axis=1, keepdims=True)
    worker, label = np.divmod(raw.rows[raw.codes], workers.n_labels)
    item, klass = np.repeat(rows, np.diff(block.offsets)), workers.class_of_label[label]
    n_votes = np.bincount(item[klass >= 0], minlength=block.n_items)
    agreed = (shares.max(axis=1) > 1 - 1e-9) & (n_votes > 1)
    if len(block.gold):
        agreed &= block.gold < 0
    voted = shares[agreed].argmax(axis=1)
    weight = block.weight if len(block.weight) else np.ones(len(item))
    right = np.where(klass >= 0, posterior[item, klass], 0.0)
    first = np.append(True, (np.diff(item) != 0) | (np.diff(worker) != 0))[: len(item)]
    return Tally(
        float(reported[rows, labels].sum()),
        np.bincount(labels, minlength=n_classes),
        chances.sum(axis=0),
        float(chances[rows, labels].sum()),
        float(np.einsum("nk,nk->", chances, reported)),
        np.bincount(voted, minlength=n_classes),
        np.bincount(voted[labels[agreed] == voted], minlength=n_classes),
        np.stack([sum_by(worker, each, n_workers) for each in (weight, weight * right, weight * right**2)]),
        np.bincount(worker[first], minlength=n_workers),
    )


# Known labels


def add_gold(s: StoredResponses, gold: Any) -> StoredResponses:
    """Return the answers with known labels, which are matched by hash and then by id."""
    if gold is None:
        return s
    wanted = hash_gold(gold, s)
    units = {number: np.flatnonzero(np.isin(s.hashes(number), wanted)) for number in s.filled()}
    units = {number: found for number, found in units.items() if len(found)}
    if not units:
        units = {next(s.filled()): np.arange(1)}  # so that the error shows an id
    found = match_gold(gold, s.pick(units), s.classes)
    assert found is not None
    known, first = {}, 0
    for number in sorted(units):
        items = s.items_of(number, units[number])
        part = slice(first, first + len(items))
        has = found.codes[part] >= 0
        known[number] = items[has], found.codes[part][has], found.judging[part][has]
        first += len(items)
    return replace(s, gold=known)


def hash_gold(gold: Any, s: StoredResponses) -> Hashes:
    """Return the hashes of the items, or sequences, whose label is known."""
    if isinstance(gold, (list, tuple)) and len(gold):
        return np.concatenate([hash_gold(each, s) for each in gold])
    table = open_gold(gold, s.in_sequences).prefer(s.columns)
    return hash_ids(to_values(table.read(table.need("sequence" if s.in_sequences else "item"))))


# Samples


def draw_sample(s: StoredResponses, seed: int, n_wanted: int) -> Sample:
    """Return the items, or sequences, with the smallest random numbers."""
    n_owners = s.n_sequences if s.in_sequences else s.n_items
    n_wanted = min(max(n_wanted, 1), n_owners)
    share = (n_wanted + 6 * n_wanted**0.5 + MARGIN) / n_owners
    while True:
        limit = np.uint64(min(int(share * 2**64), 2**64 - 1))
        found = {}
        for number in s.filled():
            numbers = draw_numbers(seed, s.hashes(number))
            units = np.flatnonzero(numbers <= limit)
            found[number] = units, numbers[units]
        if share >= 1 or sum(len(units) for units, _ in found.values()) >= n_wanted:
            break
        share *= 2
    every = np.concatenate([numbers for _, numbers in found.values()])
    last = np.partition(every, n_wanted - 1)[n_wanted - 1]
    return pick_sample(s, {number: units[numbers <= last] for number, (units, numbers) in found.items()})


def pick_sample(s: StoredResponses, units: Mapping[int, NDArray[np.int64]]) -> Sample:
    """Return the sample of these items, or sequences."""
    chosen = {number: units[number] for number in sorted(units) if len(units[number])}
    return Sample(chosen, s.pick(chosen))


def draw_hidden(model: LatentModel, s: StoredResponses, engine: Engine) -> tuple[Sample, int]:
    """Return the items, or sequences, among whose answers some are hidden, and how many units could be hidden in all.

    These are the same as in memory; see `consilience.answers.hidden_answers`.
    """
    if not s.in_sequences and not s.weighted and s.groups is None:
        n_units = s.n_responses
    else:
        leader = np.arange(s.n_workers) if s.groups is None else choose_leaders(s.workers, s.groups)
        shared = s, leader, hash_ids(s.workers), model.seed
        parts = list(engine.map(list_units, engine.place(list(s.filled())), *shared))
        n_units = sum(part.n_units for part in parts)
    share, n_folds = choose_folds(n_units, s.n_responses if s.in_sequences else None)
    n_hidden, n_folds = count_hidden(n_units, share, n_folds)
    if not s.in_sequences:
        return draw_sample(s, model.seed, count_sampled(n_hidden * n_folds, s.n_items, n_units) + 1), n_units
    every = np.concatenate([part.numbers for part in parts])
    last = np.partition(every, n_hidden * n_folds - 1)[n_hidden * n_folds - 1]
    units = {part.number: np.unique(part.owner[part.numbers <= last]) for part in parts}
    return pick_sample(s, units), n_units


class Units(NamedTuple):
    """What could be hidden in a partition: pairs of worker and item (sequence), with the smallest random numbers."""

    number: int
    n_units: int
    numbers: Hashes
    owner: NDArray[np.int64]  # the item, or sequence, of each


def list_units(number: int, s: StoredResponses, leader: NDArray[np.int64], hashes: Hashes, seed: int) -> Units:
    """Return the units of a partition."""
    owner, worker = s.who_answered(number)
    pairs = np.unique(owner * s.n_workers + leader[worker])
    owner, worker = np.divmod(pairs, s.n_workers)
    numbers = draw_numbers(seed, s.hashes(number)[owner], hashes[worker])
    if len(numbers) > MOST_UNITS:
        near = np.argpartition(numbers, MOST_UNITS)[:MOST_UNITS]
        owner, numbers = owner[near], numbers[near]
    return Units(number, len(pairs), numbers, owner)
