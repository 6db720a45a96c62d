r"""Pairs of workers who agree so often that one may copy the other.

A pair is suspect if its agreement is more than halfway from what is usual for both workers (the median of their
agreement with others) to always. With A the share of common items on which they agree, and E the larger of what is
usual for each,

    (A - E) / (1 - E) >= 1/2

Two good workers among bad ones are suspects, too. `consilience.inference.copies` judges the suspects, and compares them
with pairs that are not.

If there are many answers, everything is computed on a sample of the items (of whole sequences). In a large crowd two
workers have few common items in it. So the pairs that agree most in the sample, for what is usual, are looked up among
all answers before suspects are named, and items that the pairs to be judged have in common are added to the sample
after it. All this depends on ids and not on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from scipy.special import betainc

from ..answers.answers import Answers
from ..answers.random_choices import Hashes, draw_numbers, hash_ids, hash_items
from ..kernels import Floats

Integers: TypeAlias = NDArray[np.int64]
# Common items that a pair must have.
FEWEST_ITEMS = 10
# If only a part of all answers was sampled: common items that a pair must have there, and from which on these suffice.
FEWEST_SAMPLED, ENOUGH_SAMPLED = 3, 200
# Answers that are looked up to find the common items of pairs, and that are added to the sample: to items of suspects
# and of others.
MOST_LOOKUPS, MOST_OF_SUSPECTS, MOST_OF_OTHERS = 120_000, 240_000, 60_000
# The share of copied answers from which workers count as copies.
LEAST_COPIED = 0.5
# Answers that are all looked at, and how many are sampled of more.
MOST_ANSWERS, N_SAMPLED = 60_000, 30_000
# Multiplications that it may take to count all pairs from dense matrices; those of sparse ones take longer each. And
# the size from which on sparse ones stay sparse.
MOST_WORK, SPARSE_WORK, MOST_CELLS = 5e8, 100, 10_000_000
# Workers whose pairs fit in a dense matrix. If more of them answered nearly all items, no pairs are looked for.
MOST_DENSE = 5_000
# Pairs that are judged because they are suspect, and for comparison.
MOST_SUSPECTS, MOST_OTHERS, FEWEST_OTHERS = 1_000, 300, 5


@dataclass(frozen=True, eq=False)
class Sample:
    """The answers that are looked at, whose items are in an order that goes by a hash of their ids.

    Attributes
    ----------
    responses : Answers
        The answers, as about independent items.
    gold : array or None
        Known classes.
    half : array
        For each item, 0 or 1; the same for all items of a sequence.
    item, worker, label : array
        The same answers in order of item and worker, with silence as the label L where that is an answer.
    items : array
        The index of each item among all.
    is_part : bool
        Whether there are other answers, which can be looked up.
    """

    responses: Answers
    gold: NDArray[np.int32] | None
    half: Integers
    item: Integers
    worker: Integers
    label: Integers
    items: Integers
    is_part: bool

    @property
    def n_symbols(self) -> int:
        """Number of different answers."""
        return self.responses.n_labels + self.responses.silence_counts

    @cached_property
    def row(self) -> Integers:
        """What each answer is: its worker and label."""
        return self.worker * self.n_symbols + self.label

    @cached_property
    def known(self) -> NDArray[np.int32] | None:
        """The known class of the item of each answer."""
        return None if self.gold is None else self.gold[self.item]


def draw_items(r: Answers) -> Hashes:
    """Return a random number for each item, the same for all of a sequence; it goes by ids."""
    if r.sequences is None:
        return draw_numbers(0, hash_items(r.keys))
    return draw_numbers(0, hash_ids(r.sequences.ids))[r.sequences.of_items()]


def draw_sample(r: Answers, gold: NDArray[np.int32] | None, numbers: Hashes) -> Sample:
    """Return the answers to as many items (of as many sequences) as can be looked at; `numbers` are of `draw_items`."""
    sizes = np.full(r.n_items, r.n_workers) if r.silence_counts else np.diff(r.offsets)
    n_answers = sizes.sum()
    share = min(1.0 if n_answers <= MOST_ANSWERS else N_SAMPLED / n_answers, MOST_WORK / max(work_of(sizes, r), 1.0))
    limit = np.uint64(min(share * 2.0**64, 2.0**64 - 4096))
    items = np.flatnonzero((numbers <= limit) & ((sizes > 1) | r.silence_counts))
    return sample_items(r, gold, numbers, items, share < 1 and not r.silence_counts)


def sample_items(r: Answers, gold: NDArray[np.int32] | None, numbers: Hashes, items: Integers, is_part: bool) -> Sample:
    """Return the answers to these items."""
    items = items[np.argsort(numbers[items] if r.sequences is None else hash_items(r.keys, items), kind="stable")]
    part = replace(r, keys=np.arange(r.n_items)).about(items)
    known = None if gold is None else gold[items]
    half = (numbers[items] % 2).astype(np.int64)
    if not r.silence_counts:
        item, worker = part.item_of_answer(), part.worker.astype(np.int64)
        order = np.argsort(item * r.n_workers + worker)
        label = part.label[order].astype(np.int64)
        return Sample(part, known, half, item[order], worker[order], label, items, is_part)
    label = np.full((len(items), r.n_workers), r.n_labels, np.int64)
    label[part.item_of_answer(), part.worker] = part.label
    item, worker = (index.ravel() for index in np.indices(label.shape))
    return Sample(part, known, half, item, worker, label.ravel(), items, is_part)


def work_of(sizes: Integers, r: Answers) -> float:
    """Return how much work it is to count all pairs, in multiplications of a dense matrix."""
    return min(dense_work(len(sizes), r), SPARSE_WORK * float(np.sum(sizes.astype(np.float64) ** 2)))


def dense_work(n_items: int, r: Answers) -> float:
    """Return how many multiplications it takes to count all pairs from dense matrices."""
    return (r.n_labels + 1.0) * n_items * r.n_workers**2


class Pairs(NamedTuple):
    """Pairs of workers, how many items they have in common, and about how many of these they agree, if counted."""

    first: Integers
    second: Integers
    n_common: Floats
    n_agree: Floats = np.zeros(0)

    def of(self, chosen: NDArray[np.bool_] | Integers) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(column[chosen] if len(column) else column for column in self))  # type: ignore[arg-type]


def count_agreement(sample: Sample) -> tuple[Pairs, Pairs]:
    """Return all pairs of workers with enough items in common, and some with fewer, whose agreement is not counted."""
    r = sample.responses
    sizes = np.bincount(sample.item, minlength=r.n_items)
    dense = dense_work(r.n_items, r) <= work_of(sizes, r)
    if dense and r.n_workers > MOST_DENSE:
        nothing = np.zeros(0, np.int64)
        return Pairs(nothing, nothing, np.zeros(0)), Pairs(nothing, nothing, np.zeros(0))
    found = coo_array(count_densely(sample, None) if dense else count_sparsely(sample, sample.item))
    upper = found.row < found.col
    enough = upper & (found.data >= (FEWEST_SAMPLED if sample.is_part else FEWEST_ITEMS))
    pairs, few = (
        Pairs(found.row[chosen].astype(np.int64), found.col[chosen].astype(np.int64), found.data[chosen].astype(float))
        for chosen in (np.flatnonzero(enough), np.flatnonzero(upper & ~enough))
    )
    if not enough.any():
        return pairs, few
    if dense:
        agree: Any = reduce(add, (count_densely(sample, label) for label in range(sample.n_symbols)))
    else:
        agree = count_sparsely(sample, sample.item * r.n_labels + sample.label)
        agree = agree.toarray() if r.n_workers**2 <= MOST_CELLS else agree  # which is faster to look up
    n_agree = agree[pairs.first, pairs.second]
    n_agree = n_agree.toarray() if issparse(n_agree) else n_agree  # which depends on the release of SciPy
    return pairs._replace(n_agree=np.asarray(n_agree, dtype=np.float64).ravel()), few


def count_densely(sample: Sample, label: int | None) -> NDArray[Any]:
    """Return about how many items each two workers say anything, or this label."""
    said = np.zeros((sample.responses.n_items, sample.responses.n_workers), np.float32)
    here = slice(None) if label is None else np.flatnonzero(sample.label == label)
    said[sample.item[here], sample.worker[here]] = 1.0
    return said.T @ said


def count_sparsely(sample: Sample, code: Integers) -> csr_array:
    """Return how often each two workers have the same code."""
    shape = (int(code.max(initial=0)) + 1, sample.responses.n_workers)
    said = csr_array((np.ones(len(code), np.float32), (code, sample.worker)), shape=shape)
    return said.T.tocsr() @ said


def typical_agreement(sample: Sample, pairs: Pairs) -> Floats:
    """Return the median of each worker's agreement with others, weighted by common items; NaN for no others.

    Pairs that do not have enough items in common are taken together, for each worker.
    """
    n_workers = sample.responses.n_workers
    code = sample.item * sample.n_symbols + sample.label
    pairs = pairs.of(pairs.n_common >= FEWEST_ITEMS)
    worker = np.concatenate([pairs.first, pairs.second])
    both, alike = (
        np.bincount(sample.worker, np.bincount(each)[each] - 1.0, minlength=n_workers) for each in (sample.item, code)
    )
    n_rest, n_alike = (
        np.maximum(total - np.bincount(worker, np.tile(count, 2), minlength=n_workers), 0.0)
        for total, count in ((both, pairs.n_common), (alike, pairs.n_agree))
    )
    agreement = np.concatenate([np.tile(pairs.n_agree / pairs.n_common, 2), n_alike / np.maximum(n_rest, 1.0)])
    weight = np.concatenate([np.tile(pairs.n_common, 2), n_rest])
    worker = np.concatenate([worker, np.arange(n_workers)])
    order = np.lexsort((agreement, worker))
    worker, agreement, weight = worker[order], agreement[order], weight[order]
    total = np.bincount(worker, weight, minlength=n_workers)
    before = np.concatenate([[0.0], np.cumsum(total)])
    reached = (np.cumsum(weight) - before[worker] >= total[worker] / 2 - 1e-9) & (weight > 0)
    usual = np.full(n_workers, np.nan)
    usual[worker[reached][::-1]] = agreement[reached][::-1]  # the first that reaches half of the weight
    return usual


def look_up(
    worker: Integers, item: Integers, n_workers: int, pairs: Pairs, most: int | None = None
) -> tuple[Integers, Integers, Integers]:
    """Return the common items of pairs: of which pair, and the answers of both, as indices.

    Answers are in order of their items. Each answer of the one who gave fewer, or each of the first `most`, is looked
    up among those of the other.
    """
    by_worker = np.argsort(worker, kind="stable")
    ends = np.searchsorted(worker[by_worker], np.arange(n_workers + 1))
    width = int(item.max(initial=0)) + 1
    codes = worker[by_worker] * width + item[by_worker]  # which are sorted
    n_answers = np.diff(ends)
    swap = n_answers[pairs.first] > n_answers[pairs.second]
    one, other = np.where(swap, pairs.second, pairs.first), np.where(swap, pairs.first, pairs.second)
    sizes = n_answers[one] if most is None else np.minimum(n_answers[one], most)
    pair = np.repeat(np.arange(len(one)), sizes)
    first = by_worker[np.arange(len(pair)) + np.repeat(ends[one] - np.cumsum(sizes) + sizes, sizes)]
    wanted = other[pair] * width + item[first]
    found = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    common = np.flatnonzero(codes[found] == wanted)
    return pair[common], first[common], by_worker[found[common]]


def count_lookups(r: Answers, pairs: Pairs) -> Integers:
    """Return how many answers are looked up for each pair: those of the one who gave fewer."""
    n_answers = r.votes_per_worker()
    return np.minimum(n_answers[pairs.first], n_answers[pairs.second])


def find_common(r: Answers, pairs: Pairs) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Return all common items of pairs: of which pair, which item, and whether they agree."""
    looked_at = np.zeros(r.n_workers, bool)
    looked_at[pairs.first] = looked_at[pairs.second] = True
    answer = np.flatnonzero(looked_at[r.worker])
    item, label = r.items_of(answer), r.label[answer]
    pair, first, second = look_up(r.worker[answer].astype(np.int64), item, r.n_workers, pairs)
    return pair, item[first], label[first] == label[second]


def count_closely(r: Answers, pairs: Pairs, usual: Floats) -> Pairs:
    """Return pairs of a sample with those counted in all answers that may be copies, and have few items in the sample.

    These are as many as can be looked up, in order of how improbable their agreement is. Others with too few items are
    left as they are.
    """
    expected = np.maximum(usual[pairs.first], usual[pairs.second])
    n_common, n_agree = pairs.n_common.copy(), pairs.n_agree.copy()
    high = n_agree - n_common * expected >= LEAST_COPIED * n_common * (1 - expected)
    chosen = np.flatnonzero(high & (n_common < ENOUGH_SAMPLED) & (expected < 1))
    if not len(chosen):
        return pairs
    tail = betainc(np.maximum(n_agree[chosen], 1e-9), (n_common - n_agree)[chosen] + 1, expected[chosen])
    hashes = hash_ids(r.workers)
    chosen = chosen[np.lexsort((hashes[pairs.first[chosen]] ^ hashes[pairs.second[chosen]], tail))]
    chosen = chosen[np.cumsum(count_lookups(r, pairs.of(chosen))) <= MOST_LOOKUPS]
    pair, _, agree = find_common(r, pairs.of(chosen))
    n_common[chosen] = np.bincount(pair, minlength=len(chosen))
    n_agree[chosen] = np.bincount(pair, agree, minlength=len(chosen))
    return pairs._replace(n_common=n_common, n_agree=n_agree)


def extend_sample(
    r: Answers,
    gold: NDArray[np.int32] | None,
    sample: Sample,
    numbers: Hashes,
    pairs: Pairs,
    suspect: NDArray[np.bool_],
) -> Sample:
    """Return the sample with items added that pairs have in common, if they have few; as many of each as possible."""
    inside = np.zeros(r.n_items, bool)
    inside[sample.items] = True
    for which, most in ((suspect, MOST_OF_SUSPECTS), (~suspect, MOST_OF_OTHERS)):
        chosen = pairs.of(np.flatnonzero(which & (pairs.n_common < ENOUGH_SAMPLED)))
        chosen = chosen.of(np.cumsum(count_lookups(r, chosen)) <= MOST_LOOKUPS)
        pair, item, _ = find_common(r, chosen)
        order = np.lexsort((numbers[item], pair))
        pair, item = pair[order], item[order]
        rank = np.arange(len(pair)) - np.searchsorted(pair, pair)
        rank[inside[item]] = -1
        item = item[np.lexsort((numbers[item], rank))]
        item = item[np.sort(np.unique(item, return_index=True)[1])]
        item = item[~inside[item]]
        inside[item[np.cumsum(np.diff(r.offsets)[item]) <= most]] = True
    return sample_items(r, gold, numbers, np.flatnonzero(inside), sample.is_part)


def find_suspects(pairs: Pairs, usual: Floats) -> NDArray[np.bool_]:
    """Tell which pairs agree much more than is usual for both, on enough items."""
    expected = np.maximum(usual[pairs.first], usual[pairs.second])
    suspect = is_copied(pairs.n_common, pairs.n_agree, expected, 1.0 / max(len(pairs.first), 1))
    return suspect & (pairs.n_common >= FEWEST_ITEMS)


def is_copied(
    n_common: Floats, n_agree: Floats, expected: Floats, chance: float, error: Floats | float = 0.0
) -> NDArray[np.bool_]:
    """Tell which pairs agree about enough of what they would not agree about anyway, and not by chance.

    `error` is the standard error of the `expected` agreement.
    """
    copied = n_agree - n_common * expected >= LEAST_COPIED * n_common * (1 - expected)
    # The probability of at least so many successes; it also takes numbers that are not whole.
    tail = betainc(np.maximum(n_agree, 1e-9), n_common - n_agree + 1, np.clip(expected + error, 0.0, 1.0))
    return np.asarray(copied & (expected < 1) & (tail < chance))


def choose_pairs(r: Answers, pairs: Pairs, suspect: NDArray[np.bool_], few: Pairs) -> tuple[Pairs, NDArray[np.bool_]]:
    """Return the pairs to judge, and which are suspects: those that agree most often, and others to compare them with.

    Only if too few others have enough items in common, they are those that have `few`.
    """
    hashes = hash_ids(r.workers)
    numbers = draw_numbers(0, hashes[pairs.first] ^ hashes[pairs.second])  # whichever of the two comes first
    suspects, others = np.flatnonzero(suspect), np.flatnonzero(~suspect)
    suspects = suspects[np.lexsort((numbers[suspects], -pairs.n_agree[suspects]))[:MOST_SUSPECTS]]
    if len(others) >= FEWEST_OTHERS:
        chosen = pairs.of(others[np.argsort(numbers[others])[:MOST_OTHERS]])
    else:
        chosen = few.of(np.lexsort((few.second, few.first, -few.n_common))[:MOST_OTHERS])
    found = pairs.of(suspects)
    both = Pairs(
        np.concatenate([found.first, chosen.first]),
        np.concatenate([found.second, chosen.second]),
        np.concatenate([found.n_common, chosen.n_common]),
    )
    return both, np.arange(len(both.first)) < len(suspects)
