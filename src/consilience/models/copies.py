r"""Workers who copy each other, found from their answers.

Two workers who work on their own agree because both see the truth. Given the truth k of an item they agree with
probability

    J_ab(k) = sum_l Gamma_a[k, l] Gamma_b[k, l]

If one of them copies the other with probability c, and answers on their own otherwise, it is c + (1 - c) J_ab. So with
A the share of common items on which they agree and E the mean of sum_k q_nk J_ab(k) over these items, the *residual
agreement* (A - E) / (1 - E) estimates c. It is computed in these steps:

1. **Suspects.** A pair is suspect if it agrees more than half as far from what is usual for both workers (the median of
   their agreement with others) to always. Two good workers among bad ones are suspects, too.
2. **Labels without them.** Five copies of one worker outvote four others. By labels that include them they look
   perfect, and their agreement is no surprise. So workers linked by suspect pairs form groups; a group counts once in
   a fit of all answers; and a pair is judged by the posterior q without the groups of both. Each worker's matrix Gamma
   is learned by EM from the posterior without the worker's own group.
3. **Judgement.** Items that are hard for all make everybody agree more than J_ab says. So the residual agreement of a
   pair is compared with the median R of pairs that are not suspect: the probability of agreement is E' = E + R (1 - E).
   The pair are copies if at least half of the agreement that is left, (A - E') / (1 - E'), is copied, and if so much
   agreement would be less probable than 1 %, divided by the number of pairs, by a binomial distribution. The number of
   items is divided by the spread of the other pairs' agreement, if that is more than binomial, as in sequences.
4. Workers linked by such pairs form groups, and steps 2 and 3 are repeated with these until they do not change.

Everything is computed on a sample of the items (of whole sequences) if there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc

from ..data.hashing import draw_numbers, hash_ids, hash_items
from ..data.responses import Responses
from ..kernels.types import Floats

Integers: TypeAlias = NDArray[np.int64]


class PlainFit(NamedTuple):
    """The class prior (K,), and how each worker answers (M, A, K), with silence in the end where that is an answer."""

    prior: Floats
    matrices: Floats


# Fits a plain model to answers, some of whose labels are known (-1: unknown).
FitPlain: TypeAlias = Callable[[Responses, NDArray[np.int32] | None], PlainFit]

# Common items that a pair must have, and workers that there must be.
FEWEST_ITEMS, FEWEST_WORKERS = 10, 4
# The share of copied answers from which workers count as copies.
LEAST_COPIED = 0.5
# The probability that a crowd without copies has any.
CHANCE = 0.01
# What all pairs may cost, in multiplications, if they are counted from dense matrices; sparse ones cost more each.
MOST_WORK, SPARSE_WORK = 2e9, 100
# Pairs that are judged because they are suspect, and for comparison; and common items that are judged in all.
MOST_SUSPECTS, MOST_OTHERS, MOST_EVENTS = 5_000, 300, 1_000_000
# Rounds of judging, steps of EM for a worker's matrix, and pseudo-counts of it.
DEVIATIONS, DOUBTFUL = 3.0, 0.01
POWERS, WITHIN = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0), 2.0
MOST_ROUNDS, N_STEPS, SMOOTHING = 5, 10, 0.5


def find_copies(r: Responses, gold: NDArray[np.int32] | None, fit: FitPlain) -> Integers:
    """Return the group of near-copies that each worker belongs to: 0 for none, else 1, 2, ... by first member.

    Parameters
    ----------
    r : Responses
        The answers; one label for each item and worker.
    gold : array (N,), optional
        Known classes, -1 where unknown.
    fit : callable
        Fits a plain model.
    """
    nobody = np.zeros(r.n_workers, np.int64)
    if r.n_workers < FEWEST_WORKERS or r.n_labels + r.silence_counts < 2:
        return nobody
    sample = draw_sample(r, gold)
    pairs = count_agreement(sample)
    usual = typical_agreement(pairs, r.n_workers)
    suspect = find_suspects(pairs, usual)
    if not suspect.any():
        return nobody
    judged = choose_pairs(r, pairs, suspect)
    events = find_events(sample, pairs.of(judged), suspect[judged])
    by_all = fit(sample.responses, sample.gold).matrices
    groups, earlier = group_pairs(events.pairs, events.suspect, r.n_workers), list[bytes]()
    while len(earlier) < MOST_ROUNDS and groups.any() and groups.tobytes() not in earlier:
        earlier.append(groups.tobytes())
        expected = expect_agreement(sample, events, groups, fit, by_all)
        copied = judge_pairs(events, expected, len(pairs.first))
        groups = group_pairs(events.pairs, copied, r.n_workers)
    return groups


class Pairs(NamedTuple):
    """Pairs of workers, and how often they agree about common items."""

    first: Integers
    second: Integers
    n_common: Floats
    n_agree: Floats

    def of(self, chosen: NDArray[np.bool_] | Integers) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(column[chosen] for column in self))


@dataclass(frozen=True, eq=False)
class Sample:
    """The answers that are looked at.

    Attributes
    ----------
    responses : Responses
        The answers, as about independent items.
    gold : array or None
        Known classes.
    item, worker, label : array
        The same answers in order of item and worker, with silence as the label L where that is an answer.
    """

    responses: Responses
    gold: NDArray[np.int32] | None
    item: Integers
    worker: Integers
    label: Integers

    @property
    def n_symbols(self) -> int:
        """Number of different answers."""
        return self.responses.n_labels + self.responses.silence_counts


def draw_sample(r: Responses, gold: NDArray[np.int32] | None) -> Sample:
    """Return the answers to as many items, by a hash of their ids, as can be looked at."""
    sizes = np.full(r.n_items, r.n_workers) if r.silence_counts else np.diff(r.offsets)
    share = MOST_WORK / max(work_of(sizes, r), 1.0)
    chosen = np.ones(r.n_items, bool) if r.silence_counts else sizes > 1
    if share < 1:
        limit = np.uint64(share * 2.0**64)
        if r.sequences is None:
            chosen &= draw_numbers(0, hash_items(r.keys)) < limit
        else:
            chosen &= (draw_numbers(0, hash_ids(r.sequences.ids)) < limit)[r.sequences.of_items()]
    items = np.flatnonzero(chosen)
    part = replace(r, keys=np.arange(r.n_items)).about(items)
    known = None if gold is None else gold[items]
    if not r.silence_counts:
        item, worker = part.item_of_answer(), part.worker.astype(np.int64)
        order = np.lexsort((worker, item))
        return Sample(part, known, item[order], worker[order], part.label[order].astype(np.int64))
    label = np.full((len(items), r.n_workers), r.n_labels, np.int64)
    label[part.item_of_answer(), part.worker] = part.label
    item, worker = (index.ravel() for index in np.indices(label.shape))
    return Sample(part, known, item, worker, label.ravel())


def is_dense(sizes: Integers, r: Responses) -> bool:
    """Tell whether pairs are counted from dense matrices, because that is less work."""
    dense = (r.n_labels + 1.0) * len(sizes) * r.n_workers**2
    return bool(dense <= SPARSE_WORK * np.sum(sizes.astype(np.float64) ** 2))


def work_of(sizes: Integers, r: Responses) -> float:
    """Return how much work it is to count all pairs, in multiplications of a dense matrix."""
    if is_dense(sizes, r):
        return (r.n_labels + 1.0) * len(sizes) * r.n_workers**2
    return float(SPARSE_WORK * np.sum(sizes.astype(np.float64) ** 2))


def count_agreement(sample: Sample) -> Pairs:
    """Return all pairs of workers that have enough items in common."""
    r = sample.responses
    sizes = np.bincount(sample.item, minlength=max(r.n_items, 1))
    dense = is_dense(sizes, r)
    n_common, n_agree = 0.0, 0.0
    for label in (None, *range(sample.n_symbols)):
        here = slice(None) if label is None else np.flatnonzero(sample.label == label)
        item, worker = sample.item[here], sample.worker[here]
        if dense:
            said = np.zeros((len(sizes), r.n_workers), np.float32)
            said[item, worker] = 1.0
        else:
            said = csr_array((np.ones(len(item), np.float32), (item, worker)), shape=(len(sizes), r.n_workers))
        both = said.T @ said
        if label is None:
            n_common = both
        else:
            n_agree = n_agree + both
    if dense:
        first, second = np.nonzero(np.triu(n_common >= FEWEST_ITEMS, 1))
        common, agree = n_common[first, second], n_agree[first, second]
    else:
        found = coo_array(n_common)
        enough = (found.row < found.col) & (found.data >= FEWEST_ITEMS)
        first, second, common = found.row[enough], found.col[enough], found.data[enough]
        agree = np.asarray(csr_array(n_agree)[first, second]).ravel()
    order = np.lexsort((second, first))
    columns = (first.astype(np.int64), second.astype(np.int64), common.astype(float), agree.astype(float))
    return Pairs(*(column[order] for column in columns))


def typical_agreement(pairs: Pairs, n_workers: int) -> Floats:
    """Return the median of each worker's agreement with others, weighted by common items; NaN for no others."""
    worker = np.concatenate([pairs.first, pairs.second])
    agreement = np.tile(pairs.n_agree / pairs.n_common, 2)
    weight = np.tile(pairs.n_common, 2)
    order = np.lexsort((agreement, worker))
    worker, agreement, weight = worker[order], agreement[order], weight[order]
    total = np.bincount(worker, weight, minlength=n_workers)
    before = np.concatenate([[0.0], np.cumsum(total)])
    reached = np.cumsum(weight) - before[worker] >= total[worker] / 2 - 1e-9
    usual = np.full(n_workers, np.nan)
    usual[worker[reached][::-1]] = agreement[reached][::-1]  # the first that reaches half of the weight
    return usual


def find_suspects(pairs: Pairs, usual: Floats) -> NDArray[np.bool_]:
    """Tell which pairs agree much more than is usual for both."""
    expected = np.maximum(usual[pairs.first], usual[pairs.second])
    return is_copied(pairs.n_common, pairs.n_agree, expected, 1.0 / max(len(pairs.first), 1))


def is_copied(n_common: Floats, n_agree: Floats, expected: Floats, chance: float) -> NDArray[np.bool_]:
    """Tell which pairs agree about enough of what they would not agree about anyway, and not by chance."""
    copied = n_agree - n_common * expected >= LEAST_COPIED * n_common * (1 - expected)
    # The probability of at least so many successes; it also takes numbers that are not whole.
    tail = betainc(np.maximum(n_agree, 1e-9), n_common - n_agree + 1, np.clip(expected, 0.0, 1.0))
    return np.asarray(copied & (expected < 1) & (tail < chance))


def choose_pairs(r: Responses, pairs: Pairs, suspect: NDArray[np.bool_]) -> Integers:
    """Return the pairs to judge: suspects, those that agree most often first, and others to compare them with."""
    suspects = np.flatnonzero(suspect)
    if len(suspects) > MOST_SUSPECTS:
        suspects = suspects[np.argsort(-pairs.n_agree[suspects], kind="stable")[:MOST_SUSPECTS]]
    others = np.flatnonzero(~suspect)
    if len(others) > MOST_OTHERS:
        hashes = hash_ids(r.workers)
        numbers = draw_numbers(0, hashes[pairs.first[others]] ^ hashes[pairs.second[others]])
        # Pairs with few common items tell little: of those with the most, some at random.
        most = np.argsort(-pairs.n_common[others], kind="stable")[: 10 * MOST_OTHERS]
        others = others[most[np.argsort(numbers[most], kind="stable")[:MOST_OTHERS]]]
    return np.sort(np.concatenate([suspects, others]))


class Events(NamedTuple):
    """Common items of pairs: the answers of both, as indices into those of the sample, and whether they agree."""

    pairs: Pairs
    suspect: NDArray[np.bool_]  # for each pair
    pair: Integers
    first: Integers
    second: Integers
    agree: NDArray[np.bool_]


def find_events(sample: Sample, pairs: Pairs, suspect: NDArray[np.bool_]) -> Events:
    """Return the common items of pairs, as many of each as can be looked at."""
    most = max(FEWEST_ITEMS, MOST_EVENTS // max(len(pairs.first), 1))
    order = np.lexsort((sample.item, sample.worker))
    ends = np.searchsorted(sample.worker[order], np.arange(sample.responses.n_workers + 1))
    answers = [order[begin:end] for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    firsts, seconds = [], []
    for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        ours, theirs = answers[a], answers[b]
        _, i, j = np.intersect1d(sample.item[ours], sample.item[theirs], assume_unique=True, return_indices=True)
        firsts.append(ours[i[:most]])
        seconds.append(theirs[j[:most]])
    pair = np.repeat(np.arange(len(firsts)), [len(each) for each in firsts])
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    return Events(pairs, suspect, pair, first, second, sample.label[first] == sample.label[second])


def group_pairs(pairs: Pairs, linked: NDArray[np.bool_], n_workers: int) -> Integers:
    """Return groups of workers who are linked by pairs: 1, 2, ... by first member, and 0 for workers without links."""
    first, second = pairs.first[linked], pairs.second[linked]
    links = coo_array((np.ones(len(first)), (first, second)), shape=(n_workers, n_workers))
    component = connected_components(links, directed=False)[1]
    several = np.bincount(component)[component] > 1
    groups = np.zeros(n_workers, np.int64)
    _, index, code = np.unique(component[several], return_index=True, return_inverse=True)
    groups[several] = 1 + np.argsort(np.argsort(index))[code]
    return groups


def expect_agreement(sample: Sample, events: Events, groups: Integers, fit: FitPlain, by_all: Floats) -> Floats:
    """Return how probable it is that the two workers of each event agree, if they do not copy each other."""
    logs, evidence = weigh(sample, groups, fit)
    owner = np.where(groups > 0, groups, groups.max() + 1 + np.arange(len(groups)))[sample.worker]
    code = np.unique(sample.item * (owner.max() + 1) + owner, return_inverse=True)[1]
    # What each answer's group says about the item: for workers in no group it is the answer itself.
    by_group = sum_rows(code, logs.own, len(code))[code]
    gold = None if sample.gold is None else sample.gold[sample.item]
    by_others = evidence[sample.item] - by_group
    power = calibrate(sample, by_others, logs, gold)
    others = normalise(power * by_others, gold)
    learned = learn_matrices(sample, others, logs.matrices.mean(axis=0))
    a, b = events.pairs.first, events.pairs.second
    alike = np.empty((len(a), learned.shape[2]))
    for which, known in ((events.suspect, give_credit(sample, others, learned, by_all)), (~events.suspect, learned)):
        alike[which] = np.einsum("plk,plk->pk", known[a[which]], known[b[which]])
    same = (groups[a] == groups[b]) & (groups[a] > 0)
    item = sample.item[events.first]
    without = evidence[item] - by_group[events.first] - np.where(same[events.pair, None], 0.0, by_group[events.second])
    posterior = normalise(power * without, None if gold is None else gold[events.first])
    return np.einsum("ek,ek->e", posterior, alike[events.pair])


class Logs(NamedTuple):
    """What answers say by matrices that were learned from other items."""

    matrices: Floats  # (2, M, A, K), of either half of the items
    chances: Floats  # (n_answers, K): the probability of each answer
    shares: Floats  # (n_answers,): how much each answer counts
    own: Floats  # (n_answers, K): log probabilities times shares


def weigh(sample: Sample, groups: Integers, fit: FitPlain) -> tuple[Logs, Floats]:
    """Return what each answer says, and the log evidence (n_items, K) of all of them and the class prior."""
    r = sample.responses
    half = np.arange(r.n_items) % 2
    weighted = count_once(r, groups)
    fits = []
    for which in (1, 0):
        items = np.flatnonzero(half == which)
        fits.append(fit(weighted.about(items), None if sample.gold is None else sample.gold[items]))
    matrices = np.stack([each.matrices for each in fits])
    chances = np.maximum(matrices[half[sample.item], sample.worker, sample.label], 1e-20)
    shares = share_of(sample, groups)
    own = np.log(chances) * shares[:, None]
    prior = np.log(np.maximum(np.stack([each.prior for each in fits]), 1e-300))[half]
    return Logs(matrices, chances, shares, own), prior + sum_rows(sample.item, own, r.n_items)


def calibrate(sample: Sample, by_others: Floats, logs: Logs, gold: NDArray[np.int32] | None) -> float:
    """Return the power to which posteriors are raised: the smallest that predicts answers nearly as well as the best.

    Each worker's answers are predicted by the posteriors of others.
    """
    scores = []
    for power in POWERS:
        predicted = np.einsum("nk,nk->n", normalise(power * by_others, gold), logs.chances)
        scores.append(np.sum(logs.shares * np.log(np.maximum(predicted, 1e-300))))
    return POWERS[int(np.argmax(np.array(scores) >= max(scores) - WITHIN))]


def share_of(sample: Sample, groups: Integers) -> Floats:
    """Return 1 / g for answers of workers of whose group g answered the item, and 1 for others."""
    group = groups[sample.worker]
    n_groups = groups.max() + 1
    size = np.bincount(sample.item * n_groups + group)[sample.item * n_groups + group]
    return np.where(group > 0, 1.0 / size, 1.0)


def learn_matrices(sample: Sample, posterior: Floats, matrices: Floats) -> Floats:
    """Return how each worker answers, (M, A, K), by EM from probabilities (n_answers, K) that do not depend on them.

    Where these tell nothing, the matrices stay near those at the start: those of a fit to all answers.
    """
    n_workers, n_symbols, n_classes = matrices.shape
    row = sample.worker * n_symbols + sample.label
    for _ in range(N_STEPS):
        weight = posterior * matrices.reshape(-1, n_classes)[row]
        weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
        counts = sum_rows(row, weight, n_workers * n_symbols).reshape(matrices.shape)
        pooled = counts.sum(axis=0) + 1.0 / n_symbols
        counts = counts + SMOOTHING * pooled / pooled.sum(axis=0)
        matrices = counts / counts.sum(axis=1, keepdims=True)
    return matrices


def give_credit(sample: Sample, posterior: Floats, matrices: Floats, by_all: Floats) -> Floats:
    """Return matrices between those by the labels of others, and those by all labels, as near to the latter as can be.

    The answers of a worker may be less probable than by the former, but not much: as in a test of likelihood ratios.
    """
    n_workers, n_symbols, n_classes = matrices.shape
    row = sample.worker * n_symbols + sample.label
    posterior = (1 - DOUBTFUL) * posterior + DOUBTFUL / n_classes
    tables = (table.reshape(-1, n_classes)[row] for table in (matrices, by_all))
    least, most = (np.maximum(np.einsum("nk,nk->n", posterior, table), 1e-300) for table in tables)
    n_free = n_classes * (n_symbols - 1)
    doubt = 4.5
    best = np.bincount(sample.worker, np.log(least), minlength=n_workers)
    credit = np.zeros(n_workers)
    for step in np.linspace(0.1, 1.0, 10):
        score = np.bincount(sample.worker, np.log((1 - step) * least + step * most), minlength=n_workers)
        credit = np.where(score >= best - doubt, step, credit)
    return matrices + credit[:, None, None] * (by_all - matrices)


def judge_pairs(events: Events, expected: Floats, n_pairs: int) -> NDArray[np.bool_]:
    """Tell which pairs are copies, given the probability that they agree at each event without."""
    n, suspect = len(events.pairs.first), events.suspect
    n_common, n_agree = (np.bincount(events.pair, each, minlength=n) for each in (None, events.agree))
    usual = np.bincount(events.pair, expected, minlength=n)
    others = ~suspect if np.count_nonzero(~suspect) >= 3 else np.ones(n, bool)
    left = np.maximum(n_common - usual, 1e-9)
    shared = float(np.clip(np.median(((n_agree - usual) / left)[others]), 0.0, 1.0))
    usual = usual + shared * left
    chance = expected + shared * (1 - expected)
    variance = np.bincount(events.pair, chance * (1 - chance), minlength=n)
    scores = ((n_agree - usual) / np.sqrt(np.maximum(variance, 1e-9)))[others]
    # The lower half, since pairs that are nearly suspect would widen the upper one.
    spread = max(1.0, float((np.median(scores) - np.quantile(scores, 0.25)) / 0.6745) ** 2)
    return suspect & is_copied(n_common / spread, n_agree / spread, usual / n_common, CHANCE / n_pairs)


def count_once(r: Responses, groups: Integers) -> Responses:
    """Return the answers with weights such that those of a group about an item have the weight of one answer.

    Where silence is an answer, all workers of a group answer all items, and the weight is the same for all.
    """
    if not groups.any():
        return r
    group = groups[r.worker]
    if r.silence_counts:
        size = np.bincount(groups, minlength=groups.max() + 1).astype(float)
        size[0] = 1.0
        r, share = replace(r, silence_weight=1.0 / size[groups]), 1.0 / size[group]
    else:
        n_groups = groups.max() + 1
        item, worker = r.votes()
        size = np.bincount(item * n_groups + groups[worker], minlength=r.n_items * n_groups)
        share = np.where(group > 0, 1.0 / size[r.item_of_answer() * n_groups + group], 1.0)
    return replace(r, weight=share if r.weight is None else share * r.weight)


def sum_rows(codes: Integers, values: Floats, size: int) -> Floats:
    """Return the sums of rows of values with the same code, (size, K)."""
    return np.stack([np.bincount(codes, column, minlength=size) for column in values.T], axis=1)


def normalise(logs: Floats, gold: NDArray[np.int32] | None) -> Floats:
    """Return probabilities from logarithms, certain where the class is known."""
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        values[known] = 0.0
        values[known, gold[known]] = 1.0
    return np.asarray(values)
