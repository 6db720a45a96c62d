r"""Who answers without looking: the probability that the answers of a worker have nothing to do with the truth.

**Counts.** Let q be the posterior of an item before calibration, and :math:`\Gamma_m[k, l]` what the E-step multiplies
for the answer l of worker m. The worker is left out of the item:

.. math:: p_k \propto q_k / \Gamma_m[k, l]

and :math:`C_m[k, l]` is the sum of p over the worker's answers l, to items that somebody or something else
judges. In chains and fields q is the marginal. The factor of a sequential worker is that of the answer given the one
before, which is all that this answer says of its own item. Where silence is an answer only spoken answers count, and of
a soft vote the most probable label. An answer of weight w counts w.

**Two explanations.** By chance, all rows of C come from one distribution over answers. By some skill, each truth has a
row of its own, near that of the crowd or near one that is mostly right. With the Dirichlet-multinomial evidence

.. math:: D(c; a) = \frac{\Gamma(\sum_l a_l)}{\Gamma(\sum_l a_l + c_l)} \prod_l \frac{\Gamma(a_l + c_l)}{\Gamma(a_l)}

they are :math:`e = D(\sum_k C_k; a)`, averaged over a in .5, 1, 3, 10 for each answer, and
:math:`s = \prod_k D(C_k; t R_k + .1)`, averaged over rows R of the crowd with t in 2, 6, 20, and rows with .75 for the
right answer with t in 2, 6. The share h of workers who answer by chance is learned with a Beta(.5, 4.5) prior:

.. math:: P_m = \frac{h e_m}{h e_m + (1 - h) s_m}, \quad h = \frac{\sum_m P_m + .5}{M + 5}

In simulated crowds in which a fifth of the workers click at random, two thirds of those with ten answers or more have P
above .9, and so has one of some hundred others. At .5 nearly all have, and a tenth of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from ..inference import log_of, sum_by
from ..inference.em import Problem
from ..inference.sources import Source
from ..inference.workers.ordinal import OrdinalWorkers
from ..kernels import Floats, Truths, freeze

# From this probability on a worker is said to answer as if by chance.
BY_CHANCE = 0.9
# Pseudo-counts for each answer, if it is given by chance.
EVEN = (0.5, 1.0, 3.0, 10.0)
# How many answers the crowd's rows, and rows that are mostly right, count for, and what is added to each of them.
AS_THE_CROWD, AS_THE_RIGHT, MOSTLY_RIGHT, ADDED = (2.0, 6.0, 20.0), (2.0, 6.0), 0.75, 0.1
# What is believed of the share of workers who answer by chance, where it starts, and how often it is learned.
SHARE_PRIOR, SHARE_START, ROUNDS = (0.5, 4.5), 0.1, 10
# Probabilities nearer to 0 or 1 than this are rounded, and count as such.
LEAST_CHANCE = 1e-9
# So many entries of a table of workers are worked on at a time.
MOST_ENTRIES = 1 << 20


def judge_by_others(
    source: Source, problem: Problem, log_weights: Floats, judged: Truths, posterior: Floats
) -> dict[str, Floats]:
    """What answers of others say of each worker: the probability of chance, and the figures of raters.

    `judged` (N,) tells to which items an answer is judged by something else, `posterior` (N, K) is that before
    calibration.
    """
    from ..kernels.answers import count_without

    workers, n_rows = problem.workers, problem.workers.n_rows
    is_ordinal = isinstance(workers, OrdinalWorkers)
    # The sums of p over answers; and of p_k p_h, for ordered classes: how little p tells them apart.
    counts = np.zeros((n_rows, workers.n_classes))
    pairs = np.zeros((workers.n_classes if is_ordinal else 0, workers.n_classes))
    for block in source.lay_out(workers):
        run = slice(block.first_item, block.first_item + block.n_items)
        logs = log_of(posterior[run])
        if len(block.anchor):
            logs = logs - block.anchor  # it holds the worker's own vote
        spoken = freeze(np.ascontiguousarray(workers.log_answers(block, log_weights)))
        owner = block.rows // (n_rows // workers.n_workers)
        own, scratch = np.zeros((len(block.rows), workers.n_classes)), np.zeros(workers.n_classes)
        answers = (block.codes, block.offsets, block.amount, freeze(owner), freeze(judged[run].copy()))
        count_without(*answers, freeze(np.ascontiguousarray(logs)), spoken, own, pairs, scratch)
        counts[block.rows] += own
    table = workers.plain_counts(counts)
    found = {"chance": find_chance(table, workers.class_of_label, workers.silent)}
    if isinstance(workers, OrdinalWorkers):
        from .raters import find_raters

        found["raters"] = find_raters(table, pairs, workers)
    return found


def find_chance(counts: Floats, class_of_label: NDArray[np.int64], silent: bool) -> Floats:
    """The probability that each worker answers by chance, (M,), by counts (M, L, K); NaN if nothing tells.

    Where silence is an answer, nothing is told by what one says who says only one label: speaking is the answer.

    >>> good, clicker = np.array([[20.0, 2.0], [1.0, 19.0]]), np.array([[9.0, 11.0], [12.0, 10.0]])
    >>> find_chance(np.stack([good, good, clicker]), np.arange(2), False).round(2)
    array([0.  , 0.  , 0.65])
    """
    n_workers, n_labels, n_classes = counts.shape
    told = np.full(n_workers, np.nan)
    known = counts.sum(axis=(1, 2)) > 0
    if silent:
        known &= (counts.sum(axis=2) > 0).sum(axis=1) > 1
    if min(n_labels, n_classes) < 2 or not known.any():
        return told
    total = counts[known].sum(axis=0)
    crowd = (total + 1e-9) / (total + 1e-9).sum(axis=0)
    named = class_of_label[:, None] == np.arange(n_classes)
    right = np.where(named, MOSTLY_RIGHT, (1 - MOSTLY_RIGHT) / (n_labels - 1))
    right[:, ~named.any(axis=0)] = 1 / n_labels
    strengths = [(crowd, AS_THE_CROWD), (right, AS_THE_RIGHT)]
    patterns = [times * rows + ADDED for rows, several in strengths for times in several]
    even = [np.full((n_labels, 1), a) for a in EVEN]
    rows, odds = np.flatnonzero(known), []  # log(e / s)
    size = max(1, MOST_ENTRIES // max(1, n_labels * n_classes))
    for first in range(0, len(rows), size):
        part = counts[rows[first : first + size]]
        evidence = []
        for table, several in ((part.sum(axis=2, keepdims=True), even), (part, patterns)):
            # The log prod_k D(C_k; a_k) for several pseudo-counts a (L, K).
            worker, label, klass = np.nonzero(table)
            logs = []
            for pseudo in several:
                total = pseudo.sum(axis=0)
                before = pseudo[label, klass]
                gains = gammaln(before + table[worker, label, klass]) - gammaln(before)
                all_of_class = np.sum(gammaln(total) - gammaln(total + table.sum(axis=1)), axis=1)
                logs.append(all_of_class + sum_by(worker, gains, len(table)))
            evidence.append(logsumexp(logs, axis=0) - np.log(len(several)))
        odds.append(evidence[0] - evidence[1])
    told[known] = learn_share(np.concatenate(odds))
    return told


def pool_chance(chances: Sequence[Floats]) -> Floats:
    r"""The probability that each worker answers several questions by chance, from that of each question, (M,).

    In a question with a share h of such workers the evidence of chance over that of skill is

    .. math:: \log \frac{e}{s} = \log \frac{P}{1 - P} - \log \frac{h}{1 - h}

    It is summed over questions, and the share that answers all of them by chance is learned as that of one question.

    >>> pool_chance([np.array([0.8, 0.1, 0.0, 0.1]), np.array([0.8, 0.1, 0.1, np.nan])]).round(2)
    array([0.99, 0.06, 0.  , 0.11])
    """
    odds, known = np.zeros(len(chances[0])), np.zeros(len(chances[0]), bool)
    by_chance, by_skill = SHARE_PRIOR
    for each in chances:
        told = ~np.isnan(each)
        probability = np.clip(each[told], LEAST_CHANCE, 1 - LEAST_CHANCE)
        share = (probability.sum() + by_chance) / (told.sum() + by_chance + by_skill)
        odds[told] += np.log(probability) - np.log1p(-probability) - np.log(share) + np.log1p(-share)
        known |= told
    found = np.full(len(odds), np.nan)
    if known.any():
        found[known] = learn_share(odds[known])
    return found


def learn_share(odds: Floats) -> Floats:
    """The probability of chance of each worker from log(e / s), with the share of such workers learned."""
    share, (by_chance, by_skill) = SHARE_START, SHARE_PRIOR
    for _ in range(ROUNDS):
        probability = 1 / (1 + np.exp(np.clip(-odds - np.log(share) + np.log1p(-share), -700, 700)))
        share = float((probability.sum() + by_chance) / (len(odds) + by_chance + by_skill))
    return np.asarray(probability)
