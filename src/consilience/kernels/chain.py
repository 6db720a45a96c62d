"""Markov chains: forward-backward with expected counts, Viterbi, and drawing.

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

from .answers import LOG_IMPOSSIBLE
from .compile import Width, count_of, kernel
from .types import Floats, Integers

# So faint a class is not followed further: what is divided by it later stays in the range of doubles.
FAINT = 1e-290
# Where the sum over classes is below LOW, the evidence (at most about 1) is raised, lest products lose their digits.
LOW, RAISE = 1e-15, 1e280


@kernel
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
    n_classes = count_of(width)
    longest = 0
    for s in range(sequences.size - 1):
        longest = max(longest, sequences[s + 1] - sequences[s])
    alpha = np.empty((longest, n_classes))
    scale = np.empty(longest)
    reach = np.empty(n_classes)  # sum_j alpha_{t-1,j} pair_jk
    ahead = np.empty(n_classes)  # b_{t+1} beta_{t+1} / c_{t+1}
    beta = np.empty(n_classes)
    outer = np.zeros((n_classes, n_classes))  # sum_t alpha_t ahead_t', which times pair is sum_t xi_t
    pair_from = np.ascontiguousarray(pair.T)  # [to, from], so that the inner loop of the backward pass is contiguous
    log_total = 0.0
    product = 1.0
    for s in range(sequences.size - 1):
        first = sequences[s]
        length = sequences[s + 1] - first
        if not end_sequence(evidence, first + length - 1, end, width):
            log_total += LOG_IMPOSSIBLE
        for t in range(length):
            for k in range(n_classes):
                reach[k] = 0.0 if t > 0 else start[k]
            if t > 0:
                for j in range(n_classes):
                    a = alpha[t - 1, j]
                    for k in range(n_classes):
                        reach[k] += a * pair[j, k]
            total = 0.0
            for k in range(n_classes):
                alpha[t, k] = reach[k] * evidence[first + t, k] if reach[k] > FAINT else 0.0
                total += alpha[t, k]
            if total < LOW:
                total = raise_evidence(evidence, first + t, reach, alpha, t, width)
                log_total -= np.log(RAISE)
            scale[t] = total
            if not total > 0.0:
                # Nothing is possible here: cut the link.
                for k in range(n_classes):
                    alpha[t, k] = evidence[first + t, k]
                    total += alpha[t, k]
                log_total += LOG_IMPOSSIBLE + np.log(RAISE)
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
        for k in range(n_classes):
            beta[k] = 1.0
        for t in range(length - 1, -1, -1):
            row = first + t
            if t > 0 and scale[t] > 0.0:
                for k in range(n_classes):
                    # What cannot be reached has no say; its beta may be of any size.
                    ahead[k] = evidence[row, k] / scale[t] * beta[k] if alpha[t, k] > 0.0 else 0.0
            for k in range(n_classes):
                q = alpha[t, k] * beta[k]
                evidence[row, k] = q
                mass[k] += q
                if t == 0:
                    start_counts[k] += q
            if t > 0:
                if scale[t] > 0.0:
                    for j in range(n_classes):
                        a = alpha[t - 1, j]
                        for k in range(n_classes):
                            outer[j, k] += a * ahead[k]
                    for j in range(n_classes):
                        beta[j] = 0.0
                    for k in range(n_classes):
                        w = ahead[k]
                        for j in range(n_classes):
                            beta[j] += pair_from[k, j] * w
                else:
                    for j in range(n_classes):
                        beta[j] = 1.0
    for j in range(n_classes):
        for k in range(n_classes):
            pair_counts[j, k] += pair[j, k] * outer[j, k]
    return float(log_total + np.log(product))


@kernel
def raise_evidence(evidence: Floats, row: int, reach: Floats, alpha: Floats, t: int, width: Width) -> float:
    """Multiply the evidence of what can be reached by RAISE, and do alpha_t again; return its sum.

    What cannot be reached has no say and is set to 0. Where nothing is possible, nothing is changed.
    """
    total = 0.0
    for k in range(count_of(width)):
        alpha[t, k] = reach[k] * (evidence[row, k] * RAISE) if reach[k] > FAINT else 0.0
        total += alpha[t, k]
    if total > 0.0:
        for k in range(count_of(width)):
            evidence[row, k] = evidence[row, k] * RAISE if reach[k] > FAINT else 0.0
    return total


@kernel
def end_sequence(evidence: Floats, last: int, end: Floats, width: Width) -> bool:
    """Multiply the factor of endings into the evidence of the last position, if that leaves anything possible."""
    possible = False
    for k in range(count_of(width)):
        possible |= evidence[last, k] * end[k] > 0.0
    for k in range(count_of(width)):
        if possible:
            evidence[last, k] *= end[k]
    return possible


@kernel
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
    n_classes = count_of(width)
    longest = 0
    for s in range(sequences.size - 1):
        longest = max(longest, sequences[s + 1] - sequences[s])
    back = np.empty((longest, n_classes), np.int16)
    score = np.empty(n_classes)
    new = np.empty(n_classes)
    ahead = np.empty(n_classes)  # the same with the evidence
    for s in range(sequences.size - 1):
        first = sequences[s]
        length = sequences[s + 1] - first
        last = first + length - 1
        if not end_sequence(evidence, last, end, width) and not (gold.size > 0 and gold[last] >= 0):
            evidence[last] = end
        for t in range(length):
            if t == 0:
                for k in range(n_classes):
                    new[k] = start[k]
                    back[0, k] = -1
            else:
                for k in range(n_classes):
                    new[k] = -1.0
                for j in range(n_classes):
                    for k in range(n_classes):
                        value = score[j] * pair[j, k]
                        if value > new[k]:
                            new[k] = value
                            back[t, k] = j
            top = 0.0
            for k in range(n_classes):
                ahead[k] = new[k] * evidence[first + t, k]
                top = max(top, ahead[k])
            if not top > 0.0 and not (gold.size > 0 and gold[first + t] >= 0):
                for k in range(n_classes):
                    ahead[k] = new[k] * end[k] if first + t == last else new[k]
                    top = max(top, ahead[k])
            if not top > 0.0:
                best = 0
                for j in range(n_classes):
                    if t > 0 and score[j] > score[best]:
                        best = j
                for k in range(n_classes):
                    ahead[k] = evidence[first + t, k]
                    back[t, k] = best if t > 0 else -1
                    top = max(top, ahead[k])
            for k in range(n_classes):
                score[k] = ahead[k] / top
        best = 0
        for k in range(n_classes):
            if score[k] > score[best]:
                best = k
        for t in range(length - 1, -1, -1):
            path[first + t] = best
            best = back[t, best]


@kernel
def sample_chains(sequences: Integers, start: Floats, moves: Floats, draws: Floats) -> Integers:
    """Draw chains from cumulated start and transition probabilities and one uniform number per position."""
    path = np.empty(draws.size, np.int64)
    n_classes = start.size
    for s in range(sequences.size - 1):
        for i in range(sequences[s], sequences[s + 1]):
            cumulated = start if i == sequences[s] else moves[path[i - 1]]
            k = 0
            while k < n_classes - 1 and draws[i] > cumulated[k]:
                k += 1
            path[i] = k
    return path
