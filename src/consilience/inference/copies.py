r"""Workers who copy each other, found from their answers.

Two workers who work on their own agree because both see the truth. Given the truth k of an item they agree with
probability

    J_ab(k) = sum_l Gamma_a[k, l] Gamma_b[k, l]

If one of them copies the other with probability c, and answers on their own otherwise, it is c + (1 - c) J_ab. So with
A the share of common items on which they agree and E the mean of sum_k q_nk J_ab(k) over these items, the *residual
agreement* (A - E) / (1 - E) estimates c. It is computed in these steps:

1. **Suspects.** Pairs that agree much more than is usual for both are found, in a sample if there are many answers; see
   below.
2. **Labels without them.** Five copies of one worker outvote four others. By labels that include them they look
   perfect, and their agreement is no surprise. So workers who are linked by suspect pairs form groups, a group counts
   once in a fit to all answers, and a pair is judged by the posterior q without the groups of both. Items are judged by
   matrices that were learned from the other half of the items, and q is raised to the power at which it predicts
   answers best: otherwise noise would look like knowledge. If this power is low, q is not used at all, and only the
   labels of all are: the others may err together. The power is also low where so many workers answer each item that it
   hardly matters.
3. **Matrices.** Gamma is learned by EM from q without the worker's own group. Each suspect has the benefit of the
   doubt: Gamma is moved towards the matrix by the labels of all, as far as this does not make the worker's answers much
   less probable. So good workers among bad ones, whose labels tell nothing, keep their good matrices.
4. **Judgement.** Items that are hard for all make everybody agree more than J_ab says. So the residual agreement is
   compared with the median R of pairs that are not suspect: the probability of agreement is E' = E + R (1 - E). The
   pair are copies if (A - E') / (1 - E') is at least 1/2, and if so much agreement has a probability below 0.1%,
   divided by the number of pairs, in a binomial distribution. In it E' is raised by its standard error, and the
   number of items is divided by the spread of the other pairs' agreement, if that is more than binomial: neighbours
   in a sequence are no independent items.
5. Workers linked by such pairs form groups, and steps 2 to 4 are repeated with these until no pair is acquitted.

**Suspects.** A pair is suspect if its agreement is more than halfway from what is usual for both workers (the median of
their agreement with others) to always. With A the share of common items on which they agree, and E the larger of what
is usual for each,

    (A - E) / (1 - E) >= 1/2

Two good workers among bad ones are suspects, too.

Pairs are counted in all answers, or, where that would take long, in as many as can be counted. If there are many
answers, suspects are judged on a sample of the items: those that the pairs to be judged have in common, and some
others. All this depends on ids and not on the order of rows.

**Many classes.** With more than 20, the labels of each item are numbered at random before pairs are judged, and classes
are these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from scipy.special import betainc

from ..answers.answers import Answers
from ..answers.gold import Gold
from ..answers.random_choices import draw_numbers, hash_ids, hash_items
from ..engines import Engine
from ..kernels import NEARLY_ZERO, Floats
from .em import expect_from_votes, place, run_em
from .observations import Observations, count_once, keep_strongest
from .structures import Independent
from .workers.base import START, ConfusionWorkers, smoothing_array

Integers: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]
# Fits a plain model to answers, some of whose labels are known (-1: unknown). It gives the class prior (K,), and how
# each worker answers (M, A, K), with silence in the end where that is an answer.
FitPlain: TypeAlias = Callable[[Answers, NDArray[np.int32] | None], tuple[Floats, Floats]]

# Workers that there must be, and common items that a pair must have.
FEWEST_WORKERS, FEWEST_COMMON_ITEMS = 4, 10
# The share of copied answers from which workers count as copies, and the probability that a crowd without has any.
LEAST_COPIED, CHANCE_OF_COPIES = 0.5, 0.001
# Multiplications that it may take to count all pairs; and the size of a matrix of all pairs that is dense.
MOST_WORK, MOST_CELLS = 2e6, 10_000_000
# Answers that all take part in judging; of more, those to items that the pairs have in common, and others.
MOST_ANSWERS_SAMPLED, MOST_IN_COMMON, MOST_APART = 60_000, 240_000, 30_000
# Answers that are looked up to find common items, and common items of all pairs that are judged.
MOST_LOOKUPS, MOST_EVENTS = 2_000_000, 100_000
# Pairs that are judged because they are suspect, and for comparison; and how often.
MOST_SUSPECTS, MOST_OTHERS, FEWEST_OTHERS, COPY_ROUNDS = 1_000, 300, 5, 5
# With more classes, labels are numbered within each item: so many numbers there are.
MOST_CLASSES, MOST_NUMBERS = 20, 20
# Steps of EM for a worker's matrix, and its pseudo-counts in each class.
MATRIX_STEPS_OF_COPIES, SMOOTHING = 5, 0.5
# The powers that posteriors may be raised to; of those that predict answers well within so many nats, the smallest.
COPY_POWERS, NATS_OF_BEST, LEAST_POWER = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0), 2.0, 0.3
# By how many nats a worker's answers may be less probable by the labels of all than by those of others, and the
# share of labels that may be anything.
DOUBT_OF_COPIES, SHARE_OF_ANY_LABEL = 3.0, 0.01
# How long the plain fit lasts by which copies are judged.
PLAIN_ITERATIONS, PLAIN_TOL = 30, 1e-4


def find_groups(observations: Observations, engine: Engine) -> list[list[int]]:
    """The groups of workers who copy each other, each by their indices, in the order of their first members.

    Where pairs agree suspiciously often, EM is fitted to answers and to halves of them, by which pairs are judged.
    """
    by_kind = observations.kind.find_copies(observations.responses)
    if by_kind is not None:
        return by_kind

    def fit_plain(part: Answers, known: NDArray[np.int32] | None) -> tuple[Floats, Floats]:
        workers = ConfusionWorkers.of(part, part.class_of_label, part.n_classes)
        smoothing = smoothing_array(START, part.class_of_label, part.n_classes, part.n_workers)
        prior = workers.prior(smoothing, "em", part.vote_shares())
        structure = Independent(part.n_classes, None, START[0], "em")
        gold = None if known is None else Gold(known, known >= 0)
        problem = place(Observations(part, gold), workers, prior, structure, None, engine)
        start = problem.maximise(expect_from_votes(problem))
        parameters = run_em(problem, start, PLAIN_ITERATIONS, PLAIN_TOL).parameters
        return parameters.structure.mean, parameters.workers.mean

    r, gold = keep_strongest(observations.responses), None if observations.gold is None else observations.gold.codes
    if r.n_workers < FEWEST_WORKERS or r.n_labels + r.silence_counts < 2:
        return []
    # Pairs are counted in the answers to as many items (of as many sequences) as they can be counted in.
    sizes = np.full(r.n_items, r.n_workers) if r.silence_counts else np.diff(r.offsets)
    share = MOST_WORK / max(float(np.sum(sizes.astype(np.float64) ** 2)), 1.0)
    limit = np.uint64(min(share * 2.0**64, 2.0**64 - 4096))
    items = np.flatnonzero((draw_items(r) <= limit) & ((sizes > 1) | r.silence_counts))
    is_part = share < 1 and not r.silence_counts
    counted = gather_answers(r, gold, items)
    pairs, few = count_agreement(counted)

    # What is usual for each worker: the median of the agreement with others, weighted by common items; NaN for no
    # others. Pairs that do not have enough items in common are taken together.
    worker = np.concatenate([pairs.first, pairs.second])
    rest = []
    given = counted.item * counted.n_symbols + counted.label
    for code, count in ((counted.item, pairs.n_common), (given, pairs.n_agree)):
        total = np.bincount(counted.worker, np.bincount(code)[code] - 1.0, minlength=r.n_workers)
        rest.append(np.maximum(total - np.bincount(worker, np.tile(count, 2), minlength=r.n_workers), 0.0))
    n_rest, n_alike = rest
    agreement = np.concatenate([np.tile(pairs.n_agree / pairs.n_common, 2), n_alike / np.maximum(n_rest, 1.0)])
    weight = np.concatenate([np.tile(pairs.n_common, 2), n_rest])
    worker = np.concatenate([worker, np.arange(r.n_workers)])
    order = np.lexsort((agreement, worker))
    worker, agreement, weight = worker[order], agreement[order], weight[order]
    total = np.bincount(worker, weight, minlength=r.n_workers)
    begins = np.concatenate([[0.0], np.cumsum(total)])
    reached = (np.cumsum(weight) - begins[worker] >= total[worker] / 2 - 1e-9) & (weight > 0)
    usual = np.full(r.n_workers, np.nan)
    usual[worker[reached][::-1]] = agreement[reached][::-1]  # the first that reaches half of the weight

    # Suspects agree much more than is usual for both, on enough items.
    expected = np.maximum(usual[pairs.first], usual[pairs.second])
    suspect = is_copied(pairs.n_common, pairs.n_agree, expected, 1.0 / max(len(pairs.first), 1))
    if not suspect.any() or len(np.unique(counted.half)) < 2:  # a few sequences may all be in one half
        return []
    if r.n_classes > MOST_CLASSES and not r.silence_counts:
        r, gold = number_labels(r, gold)
        counted = gather_answers(r, gold, items)
    # Judged are those that agree most often, and others to compare them with: only if too few of these have enough
    # items in common, those that have few.
    hashes = hash_ids(r.workers)
    numbers = draw_numbers(0, hashes[pairs.first] ^ hashes[pairs.second])  # whichever of the two comes first
    suspects, others = np.flatnonzero(suspect), np.flatnonzero(~suspect)
    suspects = suspects[np.lexsort((numbers[suspects], -pairs.n_agree[suspects]))[:MOST_SUSPECTS]]
    if len(others) >= FEWEST_OTHERS:
        beside = pairs.of(others[np.argsort(numbers[others])[:MOST_OTHERS]])
    else:
        beside = few.of(np.lexsort((few.second, few.first, -few.n_common))[:MOST_OTHERS])
    judged = Pairs(*(np.concatenate(both) for both in zip(pairs.of(suspects), beside, strict=True)))
    copied = suspect = np.arange(len(judged.first)) < len(suspects)

    sample = counted
    if len(counted.item) > MOST_ANSWERS_SAMPLED:
        in_common = np.zeros(len(counted.items), bool)
        in_common[counted.item[find_events(counted, judged)[1]]] = True
        sizes, chosen = np.bincount(counted.item, minlength=len(in_common)), np.zeros(len(in_common), bool)
        for which, most in ((in_common, MOST_IN_COMMON), (~in_common, MOST_APART)):
            chosen |= which & (np.cumsum(sizes * which) <= most)
        sample = gather_answers(r, gold, np.sort(counted.items[chosen]))
    events = find_events(sample, judged)
    by_all = np.ascontiguousarray(fit_plain(sample.responses, sample.gold)[1].transpose(2, 0, 1))
    shared = 0.0
    for number in range(COPY_ROUNDS):
        groups, before = group_pairs(judged, copied, r.n_workers), copied
        agreement = expect_agreement(sample, judged, suspect, events, groups, fit_plain, by_all, shared, is_part)
        shared, found_again = find_copied_pairs(sample, judged, suspect, events, agreement, len(pairs.first))
        copied = before & found_again
        if not copied.any() or (number and (copied == before).all()):
            break
    groups = group_pairs(judged, copied, r.n_workers)
    return [np.flatnonzero(groups == group).tolist() for group in range(1, groups.max() + 1)]


def number_labels(r: Answers, gold: NDArray[np.int32] | None) -> tuple[Answers, NDArray[np.int32] | None]:
    """The answers and known classes with labels that are numbers, given out at random within each item.

    Whether two workers agree stays the same (unless an item has more labels than there are numbers), and matrices of
    thousands of labels become small. A known class that nobody said has a number that no label of the item has.
    """
    said, place = np.unique(r.item_of_answer() * r.n_labels + r.label, return_inverse=True)
    owner, label = np.divmod(said, r.n_labels)
    of_items = hash_items(r.keys)
    order = np.lexsort((draw_numbers(0, of_items[owner], hash_ids(r.labels)[label]), owner))
    rank = np.empty(len(said), np.int64)
    rank[order] = np.arange(len(said)) - np.searchsorted(owner, owner)
    first = (draw_numbers(0, of_items) % MOST_NUMBERS).astype(np.int64)
    number = (np.minimum(rank, MOST_NUMBERS - 1) + first[owner]) % MOST_NUMBERS
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        name = r.label_of_class[gold[known]]
        wanted = known * r.n_labels + name
        at = np.minimum(np.searchsorted(said, wanted), len(said) - 1)
        unsaid = (np.bincount(owner, minlength=r.n_items)[known] + first[known]) % MOST_NUMBERS
        gold = gold.copy()
        gold[known] = np.where((said[at] == wanted) & (name >= 0), number[at], unsaid)
    numbers, codes = np.arange(MOST_NUMBERS), number[place].astype(r.label.dtype)
    return replace(r, label=codes, labels=numbers, classes=numbers, positions=None, soft=None, gold=None), gold


class Sample(NamedTuple):
    """The answers that are looked at, whose items are in an order that goes by a hash of their ids."""

    responses: Answers  # as about independent items
    gold: NDArray[np.int32] | None  # known classes
    half: Integers  # for each item, 0 or 1; the same for all items of a sequence
    # The same answers in order of item and worker, with silence as the label L where that is an answer.
    item: Integers
    worker: Integers
    label: Integers
    items: Integers  # the index of each item among all
    n_symbols: int  # number of different answers

    @property
    def row(self) -> Integers:
        """The code of the worker and the label of each answer."""
        return self.worker * self.n_symbols + self.label


def draw_items(r: Answers) -> NDArray[np.uint64]:
    """A random number for each item, the same for all of a sequence; it goes by ids."""
    if r.sequences is None:
        return draw_numbers(0, r.item_hashes)
    return draw_numbers(0, hash_ids(r.sequences.ids))[r.sequences.of_items()]


def gather_answers(r: Answers, gold: NDArray[np.int32] | None, items: Integers) -> Sample:
    """The answers to these items, and silence where it is one, in an order that goes by ids."""
    numbers = draw_items(r)
    items = items[np.argsort(numbers[items] if r.sequences is None else hash_items(r.keys, items), kind="stable")]
    part = replace(r, keys=np.arange(r.n_items)).about(items)
    item, worker, label = part.item_of_answer(), part.worker.astype(np.int64), part.label.astype(np.int64)
    if r.silence_counts:
        every = np.full((len(items), r.n_workers), r.n_labels, np.int64)
        every[item, worker] = label
        label = every.ravel()
        item, worker = (index.ravel() for index in np.indices(every.shape))
    else:
        order = np.argsort(item * r.n_workers + worker)
        item, worker, label = item[order], worker[order], label[order]
    known = None if gold is None else gold[items]
    half = (numbers[items] % 2).astype(np.int64)
    return Sample(part, known, half, item, worker, label, items, r.n_labels + r.silence_counts)


class Pairs(NamedTuple):
    """Pairs of workers, how many items they have in common, and about how many of these they agree."""

    first: Integers
    second: Integers
    n_common: Floats
    n_agree: Floats

    def of(self, chosen: Truths | Integers) -> Pairs:
        """Some of the pairs."""
        return Pairs(*(column[chosen] for column in self))  # type: ignore[arg-type]


def count_agreement(sample: Sample) -> tuple[Pairs, Pairs]:
    """All pairs of workers with enough items in common, and those with fewer."""
    n_workers, tables = sample.responses.n_workers, list[csr_array]()
    # How often each two workers have answered the same item, and have given the same answer to it.
    for code in (sample.item, sample.item * sample.n_symbols + sample.label):
        shape = (int(code.max(initial=0)) + 1, n_workers)
        said = csr_array((np.ones(len(code), np.float32), (code, sample.worker)), shape=shape)
        tables.append(said.T.tocsr() @ said)
    sums = coo_array(tables[0])
    upper = np.flatnonzero(sums.row < sums.col)
    first, second = sums.row[upper].astype(np.int64), sums.col[upper].astype(np.int64)
    n_common = sums.data[upper].astype(float)
    if not len(upper):
        pairs = Pairs(first, second, n_common, n_common)
        return pairs, pairs
    quick: Any = tables[1].toarray() if n_workers**2 <= MOST_CELLS else tables[1]  # an array is faster to look up
    n_agree = quick[first, second]
    n_agree = n_agree.toarray() if issparse(n_agree) else n_agree  # which depends on the release of SciPy
    pairs = Pairs(first, second, n_common, np.asarray(n_agree, dtype=np.float64).ravel())
    return pairs.of(n_common >= FEWEST_COMMON_ITEMS), pairs.of(n_common < FEWEST_COMMON_ITEMS)


def is_copied(
    n_common: Floats, n_agree: Floats, expected: Floats, chance: float, error: Floats | float = 0.0
) -> Truths:
    """Whether pairs agree about enough of what they would not agree about anyway, and not by chance.

    `error` is the standard error of the `expected` agreement.
    """
    copied = n_agree - n_common * expected >= LEAST_COPIED * n_common * (1 - expected)
    # The probability of at least so many successes; it also takes numbers that are not whole.
    tail = betainc(np.maximum(n_agree, 1e-9), n_common - n_agree + 1, np.clip(expected + error, 0.0, 1.0))
    return np.asarray(copied & (expected < 1) & (tail < chance))


# Common items of pairs: of which pair, and the answers of both, as indices into those of the sample.
Events: TypeAlias = tuple[Integers, Integers, Integers]


def find_events(sample: Sample, pairs: Pairs) -> Events:
    """The common items of pairs, as many of each as can be looked at.

    Answers are in order of their items. Those of the one who gave fewer, as many as can be, are looked up among those
    of the other.
    """
    by_worker = np.argsort(sample.worker, kind="stable")
    ends = np.searchsorted(sample.worker[by_worker], np.arange(sample.responses.n_workers + 1))
    width = int(sample.item.max(initial=0)) + 1
    codes = sample.worker[by_worker] * width + sample.item[by_worker]  # which are sorted
    n_answers = np.diff(ends)
    swap = n_answers[pairs.first] > n_answers[pairs.second]
    one, other = np.where(swap, pairs.second, pairs.first), np.where(swap, pairs.first, pairs.second)
    sizes = np.minimum(n_answers[one], MOST_LOOKUPS // max(len(one), 1))
    pair = np.repeat(np.arange(len(one)), sizes)
    first = by_worker[np.arange(len(pair)) + np.repeat(ends[one] - np.cumsum(sizes) + sizes, sizes)]
    wanted = other[pair] * width + sample.item[first]
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    common = np.flatnonzero(codes[at] == wanted)
    pair = pair[common]
    most = max(FEWEST_COMMON_ITEMS, MOST_EVENTS // max(len(pairs.first), 1))
    kept = np.arange(len(pair)) - np.searchsorted(pair, pair) < most
    return pair[kept], first[common][kept], by_worker[at[common]][kept]


def group_pairs(pairs: Pairs, linked: Truths, n_workers: int) -> Integers:
    """Groups of workers who are linked by pairs: 1, 2, ... by first member, and 0 for workers without links."""
    groups = np.zeros(n_workers, np.int64)
    if not linked.any():
        return groups
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    first, second = pairs.first[linked], pairs.second[linked]
    links = coo_array((np.ones(len(first)), (first, second)), shape=(n_workers, n_workers))
    component = connected_components(links, directed=False)[1]
    several = np.bincount(component)[component] > 1
    _, index, code = np.unique(component[several], return_index=True, return_inverse=True)
    groups[several] = 1 + np.argsort(np.argsort(index))[code]
    return groups


def expect_agreement(
    sample: Sample,
    pairs: Pairs,
    suspect: Truths,
    events: Events,
    groups: Integers,
    fit: FitPlain,
    by_all: Floats,
    shared: float,
    is_part: bool,
) -> Floats:
    """How probable it is that the two workers of each event agree, if they do not copy each other.

    Arrays begin with the classes; `by_all` are matrices (K, M, A) by the labels of all, `shared` is the residual
    agreement that is usual, and `is_part` says whether pairs were counted in a part of the answers only.
    """
    r, (pair, first, second) = sample.responses, events
    # What the answers say if each group counts once. The items of one half are judged by what was learned from the
    # other.
    once, fits = count_once(r, groups), []
    for half in (1, 0):
        items = np.flatnonzero(sample.half == half)
        fits.append(fit(once.about(items), None if sample.gold is None else sample.gold[items]))
    matrices = np.stack([each.transpose(2, 0, 1) for _, each in fits], axis=1)
    n_rows = r.n_workers * sample.n_symbols
    chances = matrices.reshape(len(matrices), 2 * n_rows)[:, sample.half[sample.item] * n_rows + sample.row]
    np.maximum(chances, 1e-20, out=chances)
    group = groups[sample.worker]
    of_group = sample.item * (groups.max() + 1) + group
    shares = np.where(group > 0, 1.0 / np.bincount(of_group)[of_group], 1.0)
    logs = np.log(chances)
    logs *= shares
    prior = np.log(np.maximum(np.stack([each for each, _ in fits], axis=1), NEARLY_ZERO))[:, sample.half]
    evidence = prior + sum_columns(sample.item, logs, r.n_items)

    # What others say of the item of each answer: for workers in no group the answer itself is left out.
    owner = np.where(groups > 0, groups, groups.max() + 1 + np.arange(len(groups)))[sample.worker]
    code = np.unique(sample.item * (owner.max() + 1) + owner, return_inverse=True)[1]
    by_group = sum_columns(code, logs, len(code))[:, code]
    by_others = evidence[:, sample.item] - by_group
    # n answers that have a share of their errors in common are worth n / (1 + (n - 1) * share) independent ones.
    n_answers = shares.sum() / r.n_items
    most = 1 / (1 + max(n_answers - 1, 0.0) * shared)
    power = np.minimum(choose_exponents(sample, by_others, chances, shares, groups, is_part), most)[groups]
    known = None if sample.gold is None else sample.gold[sample.item]
    others = to_probabilities(power[sample.worker] * by_others, known)

    # Matrices by the labels of others; and for suspects between these and those by all labels, as near to the latter
    # as can be: their answers may be less probable than by the former, but not by more than `DOUBT_OF_COPIES`.
    learned = learn_matrices(sample, others, matrices.mean(axis=1))
    doubted = (1 - SHARE_OF_ANY_LABEL) * others + SHARE_OF_ANY_LABEL / len(others)
    tables = (table.reshape(len(others), -1)[:, sample.row] for table in (learned, by_all))
    least, best = (np.maximum((doubted * table).sum(axis=0), NEARLY_ZERO) for table in tables)
    lowest = np.bincount(sample.worker, np.log(least), minlength=r.n_workers) - DOUBT_OF_COPIES
    credit = np.zeros(r.n_workers)
    for step in np.linspace(0.1, 1.0, 10):
        score = np.bincount(sample.worker, np.log((1 - step) * least + step * best), minlength=r.n_workers)
        credit = np.where(score >= lowest, step, credit)
    a, b = pairs.first, pairs.second
    alike = np.empty((len(others), len(a)))
    for which, table in ((suspect, learned + credit[:, None] * (by_all - learned)), (~suspect, learned)):
        alike[:, which] = np.einsum("kpl,kpl->kp", table[:, a[which]], table[:, b[which]])

    same = ((groups[a] == groups[b]) & (groups[a] > 0))[pair]
    without = by_others[:, first] - np.where(same, 0.0, by_group[:, second])
    lower = np.minimum(power[a], power[b])[pair]
    posterior = to_probabilities(lower * without, None if known is None else known[first])
    return np.asarray((posterior * alike[:, pair]).sum(axis=0))


def choose_exponents(
    sample: Sample, by_others: Floats, chances: Floats, shares: Floats, groups: Integers, is_part: bool
) -> Floats:
    """The power to raise posteriors to: the smallest that predicts answers nearly as well as the best.

    Each worker's answers, of these `chances` by class, are predicted by the posteriors of others. If the best power is
    low, the others may err together. Then it is 0, and workers are judged by the labels of all. If only a part of all
    answers was sampled, not all suspects are known, and others may err together about some groups only. So the power is
    also 0 for groups whose own answers call for a low one.

    The power of each group is returned; that of workers in none comes first.
    """
    scores, known = [], None if sample.gold is None else sample.gold[sample.item]
    for power in COPY_POWERS:
        predicted = np.einsum("kn,kn->n", to_probabilities(power * by_others, known), chances)
        each = shares * np.log(np.maximum(predicted, NEARLY_ZERO))
        scores.append(np.append(np.bincount(groups[sample.worker], each, minlength=groups.max() + 1), each.sum()))
    best = np.array(COPY_POWERS)[np.argmax(scores, axis=0)]
    total = np.array(scores)[:, -1]
    power = COPY_POWERS[int(np.argmax(total >= max(total) - NATS_OF_BEST))] if best[-1] >= LEAST_POWER else 0.0
    low = (best[:-1] < LEAST_POWER) & (np.arange(len(best) - 1) > 0) & is_part
    return np.where(low, 0.0, power)


def learn_matrices(sample: Sample, posterior: Floats, matrices: Floats) -> Floats:
    """How each worker answers, (K, M, A), by EM from probabilities (K, n_answers) that do not depend on them.

    Where these tell nothing, the matrices stay near those at the start: those of a fit to all answers.
    """
    n_classes, n_workers, n_symbols = matrices.shape
    for _ in range(MATRIX_STEPS_OF_COPIES):
        weight = matrices.reshape(n_classes, -1)[:, sample.row]
        weight *= posterior
        weight /= np.maximum(weight.sum(axis=0), NEARLY_ZERO)
        counts = sum_columns(sample.row, weight, n_workers * n_symbols).reshape(matrices.shape)
        crowd = counts.sum(axis=1, keepdims=True) + 1.0 / n_symbols
        counts += SMOOTHING * crowd / crowd.sum(axis=2, keepdims=True)
        matrices = counts / counts.sum(axis=2, keepdims=True)
    return matrices


def find_copied_pairs(
    sample: Sample, pairs: Pairs, suspect: Truths, events: Events, expected: Floats, n_pairs: int
) -> tuple[float, Truths]:
    """The residual agreement that is usual, and which pairs are copies.

    `expected` is the probability that they agree at each event without. Matrices are as uncertain as the answers are
    few that they were learned from.
    """
    pair, first, second = events
    n, agree = len(pairs.first), sample.label[first] == sample.label[second]
    n_answers = np.maximum(np.bincount(sample.worker, minlength=sample.responses.n_workers), 1)
    n_common = np.maximum(np.bincount(pair, minlength=n), 1)
    n_agree = np.bincount(pair, agree, minlength=n)
    usual = np.bincount(pair, expected, minlength=n).astype(np.float64)
    uncertainty = 1 / n_answers[pairs.first] + 1 / n_answers[pairs.second]
    uncertain = np.sqrt(usual / n_common * (1 - usual / n_common) * uncertainty)
    left = np.maximum(n_common - usual, 1e-9)
    others = np.flatnonzero(~suspect)
    many = others[n_common[others] >= FEWEST_COMMON_ITEMS]
    shared, spread = 0.0, 1.0
    if len(many) >= FEWEST_OTHERS:
        shared = float(np.median((n_agree - usual)[many] / left[many]))
    elif len(others):
        shared = float((n_agree - usual)[others].sum() / left[others].sum())
    shared = float(np.clip(shared, 0.0, 1.0))
    usual = usual + shared * left
    if len(many) >= FEWEST_OTHERS:
        chance = expected + shared * (1 - expected)
        variance = np.bincount(pair, chance * (1 - chance), minlength=n)
        scores = (n_agree - usual)[many] / np.sqrt(np.maximum(variance[many], 1e-9))
        # The lower half, since pairs that are nearly suspect would widen the upper one.
        spread = max(1.0, float((np.median(scores) - np.quantile(scores, 0.25)) / 0.6745) ** 2)
    copied = is_copied(n_common / spread, n_agree / spread, usual / n_common, CHANCE_OF_COPIES / n_pairs, uncertain)
    return shared, suspect & copied


def sum_columns(codes: Integers, values: Floats, size: int) -> Floats:
    """The sums of values (K, n) with the same code, (K, size)."""
    return np.stack([np.bincount(codes, row, minlength=size) for row in values])


def to_probabilities(logs: Floats, known: NDArray[np.int32] | None) -> Floats:
    """Probabilities (K, n) from logarithms, certain where the class is known."""
    values = logs - logs.max(axis=0)
    np.exp(values, out=values)
    values /= values.sum(axis=0)
    if known is not None:
        certain = np.flatnonzero(known >= 0)
        values[:, certain] = 0.0
        values[known[certain], certain] = 1.0
    return np.asarray(values)
