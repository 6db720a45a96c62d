"""Answers to the same item, compared with each other.

Sums over pairs of them are those of `consilience.metrics.agreement`. `consilience.checks.drift` says what is computed
of answers that are judged by those of other workers, and why.
"""

from __future__ import annotations

import numpy as np

from . import Codes, Floats, Integers
from .compile import kernel

# Others by whose answers the difficulty of an item is judged, at most.
MOST_OTHERS = 16
# Added to variances, so that a worker who hardly errs does not count without limit.
LEAST_VARIANCE = 0.05
# Probabilities below this one are left out of sums over pairs of classes.
NEGLIGIBLE = 1e-6


@kernel
def count_pairs(
    offsets: Integers,
    owner: Integers,
    label: Integers,
    weight: Floats,
    of_owner: Floats,
    of_label: Floats,
    paired: Integers,
    sums: Floats,
    label_mass: Floats,
) -> int:
    """Write sums of the items that at least two owners answered, and return how many there are.

    paired[n] is the item, and sums[:, n] are n_i, A_i, sum of w_a^2 and sum of m_iw^2. The weight of each label on
    these items is added to `label_mass`. An empty `weight` means that every weight is 1. Scratch, zero before and
    after: of_owner, of_label.
    """
    n = 0
    for i in range(offsets.size - 1):
        n_owners, mass, own = 0, 0.0, 0.0
        for j in range(offsets[i], offsets[i + 1]):
            w = weight[j] if weight.size > 0 else 1.0
            if of_owner[owner[j]] == 0.0:
                n_owners += 1
            of_owner[owner[j]] += w
            of_label[label[j]] += w
            mass += w
            own += w * w
        by_label, by_owner = 0.0, 0.0
        for j in range(offsets[i], offsets[i + 1]):
            by_label += of_label[label[j]] ** 2
            by_owner += of_owner[owner[j]] ** 2
            if n_owners > 1:
                label_mass[label[j]] += of_label[label[j]]
            of_label[label[j]] = 0.0
            of_owner[owner[j]] = 0.0
        if n_owners > 1:
            paired[n] = i
            sums[0, n], sums[1, n], sums[2, n], sums[3, n] = mass, by_label - own, own, by_owner
            n += 1
    return n


@kernel
def add_chance(
    offsets: Integers, label: Integers, weight: Floats, paired: Integers, label_mass: Floats, chance: Floats
) -> None:
    """Write chance[n], the sum over the answers to item paired[n] of their weight times the mass of their label."""
    for n in range(paired.size):
        total = 0.0
        for j in range(offsets[paired[n]], offsets[paired[n] + 1]):
            total += (weight[j] if weight.size > 0 else 1.0) * label_mass[label[j]]
        chance[n] = total


@kernel
def judge_answers(
    offsets: Integers,
    worker: Codes,
    label: Codes,
    weight: Floats,
    group: Integers,
    matrix: Floats,
    logs: Floats,
    row: Codes,
    mix: Floats,
    evidence: Floats,
    known: Codes,
    class_of_label: Integers,
    label_of_class: Integers,
    trend: Floats,
    alone: bool,
    out: Floats,
    likely: Codes,
) -> None:
    """Write for each answer six numbers into its row of `out`.

    These are p - e, d, v and x, each the mean over the others; and over the others, the sums of x (p - e) / v and of
    x^2 / v of their own answers. All are 0 if there are no others. The most likely class goes into `likely`.

    Workers of one group do not judge each other; if `alone`, nobody is in a group or has two answers to an item.
    `matrix` is (M, L, K). Answer j has added logs[row[j]] to the `evidence`, which is the log posterior by all answers,
    up to a constant for each item. `trend` is how much more accurate the worker was at that time than on average.
    `weight` and `trend` may be empty.
    """
    n_classes = evidence.shape[1]
    base, q = np.empty(n_classes), np.empty(n_classes)
    found = np.empty(4)
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        for a in range(begin, end):
            for k in range(n_classes):
                base[k] = evidence[i, k]
            take_out(base, begin, end, a, worker, group, alone, logs, row)
            for column in range(out.shape[1]):
                out[a, column] = 0.0
            normalise(base, q, known[i])
            likely[a] = np.argmax(q)
            n_others = 0
            for step in range(1, end - begin):
                b = begin + (a - begin + step) % (end - begin)
                if group[worker[b]] == group[worker[a]]:
                    continue
                for k in range(n_classes):
                    q[k] = base[k]
                take_out(q, begin, end, b, worker, group, alone, logs, row)
                normalise(q, q, known[i])
                judge(q, matrix[worker[a]], mix[worker[a]], class_of_label, label_of_class, label[a], found)
                for column in range(4):
                    out[a, column] += found[column]
                judge(q, matrix[worker[b]], mix[worker[b]], class_of_label, label_of_class, label[b], found)
                share = 1.0 if weight.size == 0 else weight[b]
                residual = found[0] - (trend[b] * found[1] if trend.size > 0 else 0.0)
                scale = share * found[3] / (found[2] + LEAST_VARIANCE)
                out[a, 4] += scale * residual
                out[a, 5] += scale * found[3]
                n_others += 1
                if n_others == MOST_OTHERS:
                    break
            for column in range(4):
                out[a, column] /= max(n_others, 1)


@kernel
def take_out(
    evidence: Floats,
    begin: int,
    end: int,
    answer: int,
    worker: Codes,
    group: Integers,
    alone: bool,
    logs: Floats,
    row: Codes,
) -> None:
    """Subtract from the evidence about an item what an answer, and others of the same group, have added."""
    first, last = (answer, answer + 1) if alone else (begin, end)
    for j in range(first, last):
        if group[worker[j]] == group[worker[answer]]:
            for k in range(evidence.size):
                evidence[k] -= logs[row[j], k]


@kernel
def normalise(evidence: Floats, q: Floats, known: int) -> None:
    """Write the probabilities of classes into q: 1 for the known class, if there is one."""
    top = evidence.max()
    total = 0.0
    for k in range(q.size):
        q[k] = np.exp(evidence[k] - top)
        total += q[k]
    for k in range(q.size):
        q[k] /= total
        if known >= 0:
            q[k] = 1.0 if k == known else 0.0


@kernel
def judge(
    q: Floats,
    matrix: Floats,
    mix: Floats,
    class_of_label: Integers,
    label_of_class: Integers,
    label: int,
    found: Floats,
) -> None:
    """Write p - e, d, v and x of an answer: see `consilience.checks.drift`."""
    mean = square = chance = slope = 0.0
    for k in range(q.size):
        if q[k] < NEGLIGIBLE:
            continue
        name = label_of_class[k]
        wrong = max(1.0 - matrix[name, k], 1e-12) if name >= 0 else 1.0
        for said in range(matrix.shape[0]):
            meant = class_of_label[said]
            if meant < 0:
                continue
            right = q[meant]
            share = q[k] * matrix[said, k]
            mean += share * right
            square += share * right * right
            slope += q[k] * right if meant == k else -share * right / wrong
    for said in range(matrix.shape[0]):
        if class_of_label[said] >= 0:
            chance += mix[said] * q[class_of_label[said]]
    own = class_of_label[label]
    found[0] = (q[own] if own >= 0 else 0.0) - mean
    found[1] = slope
    found[2] = max(square - mean * mean, 0.0)
    found[3] = mean - chance
