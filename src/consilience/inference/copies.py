r"""Workers who copy each other, found from their answers.

Two workers who work on their own agree because both see the truth. Given the truth k of an item they agree with
probability

    J_ab(k) = sum_l Gamma_a[k, l] Gamma_b[k, l]

If one of them copies the other with probability c, and answers on their own otherwise, it is c + (1 - c) J_ab. So with
A the share of common items on which they agree and E the mean of sum_k q_nk J_ab(k) over these items, the *residual
agreement* (A - E) / (1 - E) estimates c. It is computed in these steps:

1. **Suspects.** Pairs that agree much more than is usual for both are found, in a sample if there are many answers; see
   `consilience.inference.copy_suspects`.
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
   pair are copies if (A - E') / (1 - E') is at least 1/2, and if so much agreement has a probability below 0.1 %,
   divided by the number of pairs, in a binomial distribution. In it E' is raised by its standard error, and the
   number of items is divided by the spread of the other pairs' agreement, if that is more than binomial: neighbours
   in a sequence are no independent items.
5. Workers linked by such pairs form groups, and steps 2 to 4 are repeated with these until no pair is acquitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from ..answers.answers import Answers
from ..kernels import Floats
from .copy_suspects import (
    FEWEST_ITEMS,
    FEWEST_OTHERS,
    Integers,
    Pairs,
    Sample,
    choose_pairs,
    count_agreement,
    count_closely,
    draw_items,
    draw_sample,
    extend_sample,
    find_suspects,
    is_copied,
    look_up,
    typical_agreement,
)
from .sources import count_once


class PlainFit(NamedTuple):
    """The class prior (K,), and how each worker answers (M, A, K), with silence in the end where that is an answer."""

    prior: Floats
    matrices: Floats


# Fits a plain model to answers, some of whose labels are known (-1: unknown).
FitPlain: TypeAlias = Callable[[Answers, NDArray[np.int32] | None], PlainFit]

# Workers that there must be.
FEWEST_WORKERS = 4
# The probability that a crowd without copies has any.
CHANCE = 0.001
# Common items of all pairs that are judged.
MOST_EVENTS = 100_000
MOST_ROUNDS = 5
# Steps of EM for a worker's matrix, and its pseudo-counts in each class.
N_STEPS, SMOOTHING = 5, 0.5
# The powers that posteriors may be raised to; of those that predict answers well within so many nats, the smallest.
POWERS, WITHIN, LEAST_POWER = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0), 2.0, 0.3
# By how many nats a worker's answers may be less probable by the labels of all than by those of others, and the
# share of labels that may be anything.
DOUBT, DOUBTFUL = 3.0, 0.01


def find_copies(r: Answers, gold: NDArray[np.int32] | None, fit: FitPlain) -> Integers:
    """Return the group of near-copies that each worker belongs to: 0 for none, else 1, 2, ... by first member.

    Parameters
    ----------
    r : Answers
        The answers; one label for each item and worker.
    gold : array (N,), optional
        Known classes, -1 where unknown.
    fit : callable
        Fits a plain model.
    """
    nobody = np.zeros(r.n_workers, np.int64)
    if r.n_workers < FEWEST_WORKERS or r.n_labels + r.silence_counts < 2:
        return nobody
    numbers = draw_items(r)
    sample = draw_sample(r, gold, numbers)
    pairs, few = count_agreement(sample)
    usual = typical_agreement(sample, pairs)
    if sample.is_part:
        pairs = count_closely(r, pairs, usual)
    suspect = find_suspects(pairs, usual)
    if not suspect.any() or len(np.unique(sample.half)) < 2:  # a few sequences may all be in one half
        return nobody
    judged = choose_pairs(r, pairs, suspect, few)
    if sample.is_part:
        sample = extend_sample(r, gold, sample, numbers, *judged)
    events = find_events(sample, *judged)
    by_all = np.ascontiguousarray(fit(sample.responses, sample.gold).matrices.transpose(2, 0, 1))
    copied, shared = events.suspect, 0.0
    for number in range(MOST_ROUNDS):
        groups = group_pairs(events.pairs, copied, r.n_workers)
        before, expected = copied, expect_agreement(sample, events, groups, fit, by_all, shared)
        shared, found = judge_pairs(events, expected, len(pairs.first))
        copied = before & found
        if not copied.any() or (number and (copied == before).all()):
            break
    return group_pairs(events.pairs, copied, r.n_workers)


class Events(NamedTuple):
    """Common items of pairs: the answers of both, as indices into those of the sample, and whether they agree."""

    pairs: Pairs
    suspect: NDArray[np.bool_]  # for each pair
    uncertainty: Floats  # for each pair, the sum of 1 / n over the answers of both, from which matrices were learned
    pair: Integers
    first: Integers
    second: Integers
    agree: NDArray[np.bool_]


def find_events(sample: Sample, pairs: Pairs, suspect: NDArray[np.bool_]) -> Events:
    """Return the common items of pairs, as many of each as can be looked at."""
    n_workers, most = sample.responses.n_workers, max(FEWEST_ITEMS, MOST_EVENTS // max(len(pairs.first), 1))
    pair, first, second = look_up(sample.worker, sample.item, n_workers, pairs, most)
    n_answers = np.maximum(np.bincount(sample.worker, minlength=n_workers), 1)
    uncertainty = 1 / n_answers[pairs.first] + 1 / n_answers[pairs.second]
    return Events(pairs, suspect, uncertainty, pair, first, second, sample.label[first] == sample.label[second])


def group_pairs(pairs: Pairs, linked: NDArray[np.bool_], n_workers: int) -> Integers:
    """Return groups of workers who are linked by pairs: 1, 2, ... by first member, and 0 for workers without links."""
    if not linked.any():
        return np.zeros(n_workers, np.int64)
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    first, second = pairs.first[linked], pairs.second[linked]
    links = coo_array((np.ones(len(first)), (first, second)), shape=(n_workers, n_workers))
    component = connected_components(links, directed=False)[1]
    several = np.bincount(component)[component] > 1
    groups = np.zeros(n_workers, np.int64)
    _, index, code = np.unique(component[several], return_index=True, return_inverse=True)
    groups[several] = 1 + np.argsort(np.argsort(index))[code]
    return groups


def expect_agreement(
    sample: Sample, events: Events, groups: Integers, fit: FitPlain, by_all: Floats, shared: float
) -> Floats:
    """Return how probable it is that the two workers of each event agree, if they do not copy each other."""
    said = interpret_answers(sample, groups, fit)
    owner = np.where(groups > 0, groups, groups.max() + 1 + np.arange(len(groups)))[sample.worker]
    code = np.unique(sample.item * (owner.max() + 1) + owner, return_inverse=True)[1]
    # What each answer's group says about the item: for workers in no group it is the answer itself.
    by_group = sum_columns(code, said.logs, len(code))[:, code]
    by_others = said.evidence[:, sample.item]
    by_others -= by_group
    # n answers that have a share of their errors in common are worth n / (1 + (n - 1) * share) independent ones.
    n_answers = said.shares.sum() / sample.responses.n_items
    most = 1 / (1 + max(n_answers - 1, 0.0) * shared)
    power = np.minimum(choose_exponents(sample, by_others, said, groups), most)[groups]  # of each worker
    others = to_probabilities(power[sample.worker] * by_others, sample.known)
    learned = learn_matrices(sample, others, said.matrices)
    a, b = events.pairs.first, events.pairs.second
    alike = np.empty((learned.shape[0], len(a)))
    for which, known in ((events.suspect, give_credit(sample, others, learned, by_all)), (~events.suspect, learned)):
        alike[:, which] = np.einsum("kpl,kpl->kp", known[:, a[which]], known[:, b[which]])
    same = ((groups[a] == groups[b]) & (groups[a] > 0))[events.pair]
    without = by_others[:, events.first] - np.where(same, 0.0, by_group[:, events.second])
    least = np.minimum(power[a], power[b])[events.pair]
    posterior = to_probabilities(least * without, None if sample.known is None else sample.known[events.first])
    return np.asarray((posterior * alike[:, events.pair]).sum(axis=0))


class Said(NamedTuple):
    """What answers say about their items, by matrices that were learned from other items. Classes come first."""

    matrices: Floats  # (K, M, A), means of both halves of the items
    chances: Floats  # (K, n_answers): the probability of each answer
    shares: Floats  # (n_answers,): how much each answer counts
    logs: Floats  # (K, n_answers): log probabilities times shares
    evidence: Floats  # (K, n_items): sums of these, and of the log prior


def interpret_answers(sample: Sample, groups: Integers, fit: FitPlain) -> Said:
    """Return what the answers say if each group counts once."""
    r = sample.responses
    weighted = count_once(r, groups)
    fits = []
    for half in (1, 0):  # the items of one half are judged by what was learned from the other
        items = np.flatnonzero(sample.half == half)
        fits.append(fit(weighted.about(items), None if sample.gold is None else sample.gold[items]))
    matrices = np.stack([each.matrices.transpose(2, 0, 1) for each in fits], axis=1)
    n_rows = r.n_workers * sample.n_symbols
    flat = matrices.reshape(len(matrices), 2 * n_rows)
    chances = flat[:, sample.half[sample.item] * n_rows + sample.row]
    np.maximum(chances, 1e-20, out=chances)
    shares = share_of(sample, groups)
    logs = np.log(chances)
    logs *= shares
    prior = np.log(np.maximum(np.stack([each.prior for each in fits], axis=1), 1e-300))[:, sample.half]
    return Said(matrices.mean(axis=1), chances, shares, logs, prior + sum_columns(sample.item, logs, r.n_items))


def choose_exponents(sample: Sample, by_others: Floats, said: Said, groups: Integers) -> Floats:
    """Return the power to raise posteriors to: the smallest that predicts answers nearly as well as the best.

    Each worker's answers are predicted by the posteriors of others. If the best power is low, the others may err
    together. Then it is 0, and workers are judged by the labels of all. If only a part of all answers was sampled, not
    all suspects are known, and others may err together about some groups only. So the power is also 0 for groups whose
    own answers call for a low one.

    The power of each group is returned; that of workers in none comes first.
    """
    scores = []
    for power in POWERS:
        predicted = np.einsum("kn,kn->n", to_probabilities(power * by_others, sample.known), said.chances)
        each = said.shares * np.log(np.maximum(predicted, 1e-300))
        scores.append(np.append(np.bincount(groups[sample.worker], each, minlength=groups.max() + 1), each.sum()))
    best = np.array(POWERS)[np.argmax(scores, axis=0)]
    total = np.array(scores)[:, -1]
    power = POWERS[int(np.argmax(total >= max(total) - WITHIN))] if best[-1] >= LEAST_POWER else 0.0
    low = (best[:-1] < LEAST_POWER) & (np.arange(len(best) - 1) > 0) & sample.is_part
    return np.where(low, 0.0, power)


def share_of(sample: Sample, groups: Integers) -> Floats:
    """Return 1 / g for answers of workers of whose group g answered the item, and 1 for others."""
    group = groups[sample.worker]
    n_groups = groups.max() + 1
    size = np.bincount(sample.item * n_groups + group)[sample.item * n_groups + group]
    return np.where(group > 0, 1.0 / size, 1.0)


def learn_matrices(sample: Sample, posterior: Floats, matrices: Floats) -> Floats:
    """Return how each worker answers, (K, M, A), by EM from probabilities (K, n_answers) that do not depend on them.

    Where these tell nothing, the matrices stay near those at the start: those of a fit to all answers.
    """
    n_classes, n_workers, n_symbols = matrices.shape
    for _ in range(N_STEPS):
        weight = matrices.reshape(n_classes, -1)[:, sample.row]
        weight *= posterior
        weight /= np.maximum(weight.sum(axis=0), 1e-300)
        counts = sum_columns(sample.row, weight, n_workers * n_symbols).reshape(matrices.shape)
        crowd = counts.sum(axis=1, keepdims=True) + 1.0 / n_symbols
        counts += SMOOTHING * crowd / crowd.sum(axis=2, keepdims=True)
        matrices = counts / counts.sum(axis=2, keepdims=True)
    return matrices


def give_credit(sample: Sample, posterior: Floats, matrices: Floats, by_all: Floats) -> Floats:
    """Return matrices between those by the labels of others and those by all labels, as near to the latter as can be.

    The answers of a worker may be less probable than by the former, but not by more than `DOUBT`.
    """
    n_classes, n_workers, _ = matrices.shape
    posterior = (1 - DOUBTFUL) * posterior + DOUBTFUL / n_classes
    tables = (table.reshape(n_classes, -1)[:, sample.row] for table in (matrices, by_all))
    least, most = (np.maximum((posterior * table).sum(axis=0), 1e-300) for table in tables)
    best = np.bincount(sample.worker, np.log(least), minlength=n_workers)
    credit = np.zeros(n_workers)
    for step in np.linspace(0.1, 1.0, 10):
        score = np.bincount(sample.worker, np.log((1 - step) * least + step * most), minlength=n_workers)
        credit = np.where(score >= best - DOUBT, step, credit)
    return matrices + credit[:, None] * (by_all - matrices)


def judge_pairs(events: Events, expected: Floats, n_pairs: int) -> tuple[float, NDArray[np.bool_]]:
    """Return the residual agreement that is usual, and which pairs are copies.

    `expected` is the probability that they agree at each event without.
    """
    n, suspect = len(events.pairs.first), events.suspect
    n_common, n_agree = (np.bincount(events.pair, each, minlength=n) for each in (None, events.agree))
    n_common = np.maximum(n_common, 1)
    usual = np.bincount(events.pair, expected, minlength=n)
    uncertain = np.sqrt(usual / n_common * (1 - usual / n_common) * events.uncertainty)
    left = np.maximum(n_common - usual, 1e-9)
    others = np.flatnonzero(~suspect)
    many = others[n_common[others] >= FEWEST_ITEMS]
    shared, spread = 0.0, 1.0
    if len(many) >= FEWEST_OTHERS:
        shared = float(np.median((n_agree - usual)[many] / left[many]))
    elif len(others):
        shared = float((n_agree - usual)[others].sum() / left[others].sum())
    shared = float(np.clip(shared, 0.0, 1.0))
    usual = usual + shared * left
    if len(many) >= FEWEST_OTHERS:
        chance = expected + shared * (1 - expected)
        variance = np.bincount(events.pair, chance * (1 - chance), minlength=n)
        scores = (n_agree - usual)[many] / np.sqrt(np.maximum(variance[many], 1e-9))
        # The lower half, since pairs that are nearly suspect would widen the upper one.
        spread = max(1.0, float((np.median(scores) - np.quantile(scores, 0.25)) / 0.6745) ** 2)
    copied = is_copied(n_common / spread, n_agree / spread, usual / n_common, CHANCE / n_pairs, uncertain)
    return shared, suspect & copied


def sum_columns(codes: Integers, values: Floats, size: int) -> Floats:
    """Return the sums of values (K, n) with the same code, (K, size)."""
    return np.stack([np.bincount(codes, row, minlength=size) for row in values])


def to_probabilities(logs: Floats, known: NDArray[np.int32] | None) -> Floats:
    """Return probabilities (K, n) from logarithms, certain where the class is known."""
    values = logs - logs.max(axis=0)
    np.exp(values, out=values)
    values /= values.sum(axis=0)
    if known is not None:
        certain = np.flatnonzero(known >= 0)
        values[:, certain] = 0.0
        values[known[certain], certain] = 1.0
    return np.asarray(values)
