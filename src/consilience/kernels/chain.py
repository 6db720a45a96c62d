"""Markov chains: forward-backward with expected counts, Viterbi, the probability of runs of labels, and drawing.

A chain is given by factors, which need not be normalised: start[k] for the first position, pair[j, k] from class j to
class k, and end[k], which is multiplied into the evidence b[t, k] of the last position. For the positions of a sequence

    alpha_1k = start_k b_1k / c_1          alpha_tk = b_tk sum_j alpha_{t-1,j} pair_jk / c_t
    beta_Tk  = 1                           beta_tj  = sum_k pair_jk b_{t+1,k} beta_{t+1,k} / c_{t+1}
    q_tk     = alpha_tk beta_tk            xi_t(j, k) = alpha_tj pair_jk b_{t+1,k} beta_{t+1,k} / c_{t+1}

with c_t such that alpha_t sums to 1; the log normaliser is sum_t log c_t. Where no path is possible (known labels may
contradict forbidden transitions) the link is cut, at a price, and the evidence alone begins a new chain; where nothing
that the evidence allows may end a sequence, it ends all the same. Paths of less than FAINT of the whole do not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import LOG_IMPOSSIBLE, Floats, Integers, Width, freeze
from .compile import kernel

# So faint a class is not followed further: what is divided by it later stays in the range of doubles.
FAINTEST_CLASS = 1e-290
# Where the sum over classes is below LOW, the evidence (at most about 1) is raised, lest products lose their digits.
LEAST_FORWARD, RAISE = 1e-15, 1e280
LOG_RAISE = np.log(RAISE)


def forward_backward(
    sequences: Integers,
    evidence: Floats,
    start: Floats,
    pair: Floats,
    end: Floats,
    start_counts: Floats,
    pair_counts: Floats,
    mass: Floats,
    width: Width,
) -> float:
    """Turn evidence into posteriors, in place; add expected counts to the three arrays; return the log normaliser.

    `pair_counts` receives sum_t xi_t, `start_counts` the posteriors of first positions, `mass` all posteriors.
    """
    n_classes, longest = len(width), longest_of(sequences)
    alpha, scale, outer = np.empty((longest, n_classes)), np.empty(longest), np.zeros((n_classes, n_classes))
    reach, ahead, beta = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    ended = end_sequences(sequences, evidence, end)
    chain = (sequences, evidence, start, pair, transposed(pair), ended)
    log_normaliser = pass_both_ways(*chain, start_counts, mass, alpha, scale, reach, ahead, beta, outer, width)
    pair_counts += pair * outer
    return float(log_normaliser)


@kernel
def pass_both_ways(
    sequences: Integers,
    evidence: Floats,
    start: Floats,
    pair: Floats,
    pair_from: Floats,
    ended: NDArray[np.bool_],
    start_counts: Floats,
    mass: Floats,
    alpha: Floats,
    scale: Floats,
    reach: Floats,
    ahead: Floats,
    beta: Floats,
    outer: Floats,
    width: Width,
) -> float:
    """Do what `forward_backward` says, after `end_sequences`, which returned `ended`, and before pairs are counted.

    `outer` (K, K) receives sum_t alpha_t ahead_t' with ahead = b_{t+1} beta_{t+1} / c_{t+1}; times `pair` it is
    sum_t xi_t. `pair_from` is [to, from], so that inner loops are contiguous both ways. Scratch: alpha (longest, K),
    scale (longest,), and of size K reach, which is sum_j alpha_{t-1,j} pair_jk, ahead and beta.
    """
    log_total, product = 0.0, 1.0
    for s in range(sequences.size - 1):
        first, last = sequences[s], sequences[s + 1] - 1
        if not ended[s]:
            log_total += LOG_IMPOSSIBLE
        log_total, product = pass_forward(
            first, last, evidence, start, pair, alpha, scale, reach, log_total, product, width
        )
        pass_backward(first, last, evidence, pair_from, start_counts, mass, alpha, scale, ahead, beta, outer, width)
    return float(log_total + np.log(product))


@kernel
def pass_forward(
    first: int,
    last: int,
    evidence: Floats,
    start: Floats,
    pair: Floats,
    alpha: Floats,
    scale: Floats,
    reach: Floats,
    log_total: float,
    product: float,
    width: Width,
) -> tuple[float, float]:
    """Write alpha and scale of one sequence; return what was given, with its log normaliser: a sum, and a product."""
    n_classes = len(width)
    for t in range(last - first + 1):
        row = first + t
        for k in range(n_classes):
            reach[k] = 0.0 if t > 0 else start[k]
        if t > 0:
            for j in range(n_classes):
                a = alpha[t - 1, j]
                for k in range(n_classes):
                    reach[k] += a * pair[j, k]
        total = 0.0
        for k in range(n_classes):
            if not reach[k] > FAINTEST_CLASS:
                reach[k] = 0.0
            alpha[t, k] = reach[k] * evidence[row, k]
            total += alpha[t, k]
        if total < LEAST_FORWARD:
            total = 0.0
            for k in range(n_classes):
                alpha[t, k] = reach[k] * (evidence[row, k] * RAISE)
                total += alpha[t, k]
            if total > 0.0:
                for k in range(n_classes):
                    evidence[row, k] *= RAISE
            log_total -= LOG_RAISE
        scale[t] = total
        if not total > 0.0:
            # Nothing is possible here: cut the link.
            for k in range(n_classes):
                alpha[t, k] = evidence[row, k]
                total += alpha[t, k]
            log_total += LOG_IMPOSSIBLE + LOG_RAISE
            scale[t] = -1.0
        if 1e-150 < total < 1e150:
            product *= total
            if not 1e-150 < product < 1e150:
                log_total += np.log(product)
                product = 1.0
        else:
            log_total += np.log(total)  # the product might leave the range of doubles
        for k in range(n_classes):
            alpha[t, k] /= total
    return log_total, product


@kernel
def pass_backward(
    first: int,
    last: int,
    evidence: Floats,
    pair_from: Floats,
    start_counts: Floats,
    mass: Floats,
    alpha: Floats,
    scale: Floats,
    ahead: Floats,
    beta: Floats,
    outer: Floats,
    width: Width,
) -> None:
    """Turn the evidence of one sequence into posteriors, after `pass_forward`, and count."""
    n_classes = len(width)
    for k in range(n_classes):
        beta[k] = 1.0
    for t in range(last - first, -1, -1):
        row = first + t
        for k in range(n_classes):
            # What cannot be reached has no say; its beta may be of any size.
            ahead[k] = evidence[row, k] / scale[t] * beta[k] if alpha[t, k] > 0.0 else 0.0
            evidence[row, k] = alpha[t, k] * beta[k]
            mass[k] += evidence[row, k]
        if t == 0:
            for k in range(n_classes):
                start_counts[k] += evidence[row, k]
        elif scale[t] > 0.0:
            for j in range(n_classes):
                beta[j] = 0.0
            for k in range(n_classes):
                w = ahead[k]
                for j in range(n_classes):
                    beta[j] += pair_from[k, j] * w
            for j in range(n_classes):
                a = alpha[t - 1, j]
                for k in range(n_classes):
                    outer[j, k] += a * ahead[k]
        else:
            for j in range(n_classes):
                beta[j] = 1.0


def follow_paths(
    sequences: Integers,
    evidence: Floats,
    start: Floats,
    pair: Floats,
    end: Floats,
    path: Integers,
    continues: Floats,
    width: Width,
) -> Floats:
    """Return the parts of which the probability of any run of the labels `path` is made, (n, 3).

    Given the evidence, labels form a Markov chain with steps

        u_t(j, k) = P(y_{t+1} = k | y_t = j) = pair_jk w_{t+1,k} / sum_l pair_jl w_{t+1,l}        w_tk = b_tk beta_tk

    `goes_on[j, k]` is 1 where label k after label j goes on with the same run, and 0 elsewhere. The columns are

        enter_t = P(y_t = path_t = k, not going on with the run before) = sum_j (1 - goes_on_jk) q_{t-1,j} u_{t-1}(j, k)
        step_t  = u_{t-1}(path_{t-1}, path_t)
        stop_t  = P(the run does not go on after t | y_t = path_t = j) = sum_k (1 - goes_on_jk) u_t(j, k)

    so that exactly the run a..b is there with probability enter_a step_{a+1} ... step_b stop_b. Steps depend on ratios
    of w only, which is scaled to a maximum of 1 at each position. Where a link is cut, labels are independent.
    """
    n_classes = len(width)
    posterior, unused = evidence.copy(), np.zeros((n_classes, n_classes))
    forward_backward(sequences, posterior, start, pair, end, unused[0], unused.copy(), unused[0], width)
    end_sequences(sequences, evidence, end)
    parts, weight = np.ones((len(evidence), 3)), np.empty((2, n_classes))
    trace_paths(sequences, evidence, posterior, pair, freeze(path), freeze(continues), weight, parts, width)
    return parts


@kernel
def trace_paths(
    sequences: Integers,
    evidence: Floats,
    posterior: Floats,
    pair: Floats,
    path: Integers,
    continues: Floats,
    weight: Floats,
    parts: Floats,
    width: Width,
) -> None:
    """Do what `follow_paths` says, from the posteriors. Scratch: weight (2, K), which is w of this and the next row."""
    n_classes = len(width)
    for s in range(sequences.size - 1):
        first, last = sequences[s], sequences[s + 1] - 1
        for row in range(last, first - 1, -1):
            here, after = weight[row % 2], weight[(row + 1) % 2]
            top = 0.0
            entered = 0.0
            for j in range(n_classes):
                total = 1.0
                if row < last:
                    total = 0.0
                    for k in range(n_classes):
                        total += pair[j, k] * after[k]
                    k = path[row + 1]
                    step = 0.0
                    stop = 1.0
                    if total > 0.0:
                        step = pair[j, k] * after[k] / total
                        if j == path[row]:
                            stop = 0.0
                            for k in range(n_classes):
                                stop += (1.0 - continues[j, k]) * pair[j, k] * after[k] / total
                    else:
                        sum_after = 0.0
                        for k in range(n_classes):
                            sum_after += after[k]
                        step = after[path[row + 1]] / sum_after if sum_after > 0.0 else 0.0
                    entered += (1.0 - continues[j, path[row + 1]]) * posterior[row, j] * step
                    if j == path[row]:
                        parts[row + 1, 1] = step
                        parts[row, 2] = stop
                here[j] = evidence[row, j] * total
                top = max(top, here[j])
            if row < last:
                parts[row + 1, 0] = entered
            for j in range(n_classes):
                # Where nothing is possible, the link is cut: what comes after says nothing about this row.
                here[j] = here[j] / top if top > 0.0 else evidence[row, j]
        parts[first, 0] = posterior[first, path[first]]


def end_sequences(sequences: Integers, evidence: Floats, end: Floats) -> NDArray[np.bool_]:
    """Multiply the factor of endings into the evidence of last positions; return for each whether it could be done.

    It is not done where it would leave nothing possible.
    """
    if (end == 1.0).all():
        return np.ones(sequences.size - 1, bool)
    last = sequences[1:] - 1
    product = evidence[last] * end
    possible = (product > 0.0).any(axis=1)
    evidence[last[possible]] = product[possible]
    return np.asarray(possible)


def longest_of(sequences: Integers) -> int:
    """Return the length of the longest sequence."""
    return int(np.diff(sequences).max(initial=0))


def transposed(pair: Floats) -> Floats:
    """Return factors [to, from] in C order."""
    return freeze(pair.T.copy())


def viterbi(
    sequences: Integers,
    evidence: Floats,
    gold: Integers,
    start: Floats,
    pair: Floats,
    end: Floats,
    path: Integers,
    width: Width,
) -> None:
    """Write the most probable sequence of classes; of equals, the lowest class at the latest position.

    Scores are scaled to a maximum of 1 at each position, which changes no comparison. Where no path is possible the
    evidence is set aside, so that nothing forbidden is decoded; where it is a known label, the link is cut.
    """
    n_classes = len(width)
    back = np.empty((longest_of(sequences), n_classes), np.int16)
    score, reach, ahead = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    stuck = sequences[1:][~end_sequences(sequences, evidence, end)] - 1
    evidence[stuck[gold[stuck] < 0] if gold.size else stuck] = end
    find_best_paths(sequences, evidence, gold, start, transposed(pair), end, back, score, reach, ahead, path, width)


@kernel
def find_best_paths(
    sequences: Integers,
    evidence: Floats,
    gold: Integers,
    start: Floats,
    pair_from: Floats,
    end: Floats,
    back: Integers,
    score: Floats,
    reach: Floats,
    ahead: Floats,
    path: Integers,
    width: Width,
) -> None:
    """Do what `viterbi` says; `pair_from` is [to, from].

    Scratch: back (longest, K), the best class before; of size K score, reach, which is max_j score_j pair_jk, and
    ahead, which is the same times the evidence.
    """
    n_classes = len(width)
    for s in range(sequences.size - 1):
        first, last = sequences[s], sequences[s + 1] - 1
        for t in range(last - first + 1):
            row = first + t
            top = 0.0
            for k in range(n_classes):
                most, best = start[k], -1
                if t > 0:
                    most = -1.0
                    for j in range(n_classes):
                        value = score[j] * pair_from[k, j]
                        if value > most:
                            most, best = value, j
                reach[k], back[t, k] = most, best
                ahead[k] = most * evidence[row, k]
                top = max(top, ahead[k])
            if not top > 0.0 and not (gold.size > 0 and gold[row] >= 0):
                for k in range(n_classes):
                    ahead[k] = reach[k] * end[k] if row == last else reach[k]
                    top = max(top, ahead[k])
            if not top > 0.0:
                best = 0
                for j in range(n_classes):
                    if t > 0 and score[j] > score[best]:
                        best = j
                for k in range(n_classes):
                    ahead[k] = evidence[row, k]
                    back[t, k] = best if t > 0 else -1
                    top = max(top, ahead[k])
            for k in range(n_classes):
                score[k] = ahead[k] / top
        best = 0
        for k in range(n_classes):
            if score[k] > score[best]:
                best = k
        for row in range(last, first - 1, -1):
            path[row] = best
            best = back[row - first, best]


@kernel
def sample_chains(sequences: Integers, start: Floats, moves: Floats, draws: Floats) -> Integers:
    """Draw chains from cumulated start and transition probabilities and one uniform number per position."""
    path = np.zeros(draws.size, np.int64)
    n_classes = start.size
    for s in range(sequences.size - 1):
        for i in range(sequences[s], sequences[s + 1]):
            cumulated = start if i == sequences[s] else moves[path[i - 1]]
            k = 0
            while k < n_classes - 1 and draws[i] > cumulated[k]:
                k += 1
            path[i] = k
    return path
