r"""What the answers of others say of each worker: who answers without looking, and how raters read a scale.

The probability that the answers of a worker have nothing to do with the truth:

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

Raters are judged by how harsh or lenient each is, how exact, and how often careless.

A rater of type t = (b, s, e), with the bias b, the spread s and the carelessness e, says label l of an item of class k
with probability :math:`\pi_t(l \mid k)`, see `consilience.inference.workers.ordinal`. The types of a fit are few. Here
biases are 0.05 levels apart, on scales of more than eleven levels a 200th of the scale.

**Counts.** Let p be the probabilities of an item without the rater's own answer, as above, and
:math:`C_m[l, k]` the sum of :math:`p_k` over the answers l of rater m. A class that is drawn from p need not be the
true one: it is h with the probability that all answers together tell,

.. math:: W[k, h] = \frac{\sum p_k p_h}{\sum p_k}

so that the answer to an item for which k was drawn is l with probability
:math:`\tilde\pi_t(l \mid k) = \sum_h W[k, h] \pi_t(l \mid h)`. Without W, raters would seem less exact than they are,
and biases larger. The likelihood of a type is

.. math:: \log L_{mt} = \sum_{kl} C_m[l, k] \log \tilde\pi_t(l \mid k)

It takes each answer for one draw, where p is the mean of many, so that intervals are rather too wide than too narrow.

**Posterior.** Biases of the crowd are normal with mean :math:`\mu` and variance :math:`v`, and pairs of spread and
carelessness have shares w. All three are learned in a few rounds from the posterior P of each rater, with a little
added:

.. math:: P_m(b, s, e) \propto N(b; \mu, v)\, w_{se}\, L_{mt}, \quad \mu = \frac1M \sum_m \operatorname{E} b_m, \quad
          v = \frac{\frac14 + \sum_m \operatorname{E} (b_m - \mu)^2}{M + 1}, \quad
          w_{se} \propto 0.2 + \sum_m P_m(s, e)

A bias is relative to the crowd, and reported as the mean of :math:`b - \mu` with an interval between quantiles of
2.5% and 97.5%. Spread and carelessness are means.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp

from ..answers.answers import Block
from ..inference import TAILS_95
from ..inference.cells import sum_by
from ..inference.workers.base import WorkerModel
from ..inference.workers.ordinal import rate
from ..inference.workers.rows import RowCounts
from ..kernels import NEARLY_ZERO, Floats, Rows, Truths, freeze, read_only

# From this probability on a worker is said to answer as if by chance.
BY_CHANCE = 0.9
# Pseudo-counts for each answer, if it is given by chance.
EVEN = (0.5, 1.0, 3.0, 10.0)
# How many answers the crowd's rows, and rows that are mostly right, count for, and what is added to each of them.
AS_THE_CROWD, AS_THE_RIGHT, MOSTLY_RIGHT, ADDED_TO_ROWS = (2.0, 6.0, 20.0), (2.0, 6.0), 0.75, 0.1
# What is believed of the share of workers who answer by chance, where it starts, and how often it is learned.
SHARE_PRIOR, SHARE_START, SHARE_ROUNDS = (0.5, 4.5), 0.1, 10
# Probabilities nearer to 0 or 1 than this are rounded, and count as such.
LEAST_CHANCE_PROBABILITY = 1e-9
# Logarithms, and differences of two, beyond which an exponential is 0 or leaves the range of doubles.
LEAST_LOG, MOST_LOG = -1e300, 345.0
# So many entries of a table of workers are worked on at a time.
MOST_CHANCE_ENTRIES = 1 << 20

# Raters: the grid.
BIAS_STEP, LEAST_BIAS_REACH, MOST_BIASES = 0.05, 2.0, 401
SPREAD_GRID = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
CARELESS_GRID = (0.01, 0.05, 0.2, 0.5, 0.9)
# On longer scales nothing is told: the grid, for each pair of levels, would take gigabytes.
MOST_RATER_LEVELS = 60
# What is learned of the crowd: how often, and what is added: to the sum of squares of one more rater, and to each pair.
CROWD_ROUNDS, ADDED_SQUARE, ADDED_PAIRS = 30, 0.25, 0.2
# So many entries of a table of raters and types are worked on at a time. The crowd is learned from so many.
MOST_TYPES = 1 << 22
# What is reported of each rater.
RATER_FIGURES = ("bias", "bias_low", "bias_high", "spread", "careless")
# A bias of so many levels is worth a remark.
LEAST_BIAS_OF_RATERS = 0.3


def count_by_others(
    workers: WorkerModel, block: Block, posterior: Floats, judged: Truths, log_weights: Floats, shares: Floats
) -> tuple[RowCounts, Floats]:
    """What answers of others say of those of a block: the sums of p by row, and of p_k p_h (K, K), of ordered classes.

    `judged` (N,) tells to which items of the block an answer is judged by something else, `posterior` (N, K) is that
    before calibration. Where only accuracies are kept three sums are by worker: answers, and how many of them are right
    by what others say, and would be by the shares of the classes (K,).
    """
    from ..kernels.answers import count_without

    pairs = np.zeros((workers.n_classes if workers.are_raters else 0, workers.n_classes))
    if workers.accuracy_alone:
        return workers.judge_by_others(block, posterior, judged, log_weights, shares), pairs
    if len(block.anchor):
        # It holds the worker's own vote.
        posterior = posterior / np.exp(block.anchor - block.anchor.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    # The log evidence of the answers as a table, and the row of each answer in it.
    if len(block.amount) or len(block.soft):  # no two answers need be alike
        rows: Rows = freeze(np.arange(len(block.codes), dtype=np.int32))
        logs = np.ascontiguousarray(workers.log_answers(block, log_weights))
    else:
        rows, logs = block.codes, log_weights.reshape(-1, workers.n_classes)[block.rows]
    # How much more probable each class is without the answer, relative to the class that the answer speaks for.
    quotients = np.exp(np.minimum(np.maximum(reduce(np.maximum, logs.T), LEAST_LOG)[:, None] - logs, MOST_LOG))
    owner = block.rows // (workers.n_rows // workers.n_workers)
    counts, scratch = np.zeros((len(block.rows), workers.n_classes)), np.zeros(workers.n_classes)
    given = freeze(owner), freeze(judged.copy()), read_only(np.ascontiguousarray(posterior)), rows, freeze(quotients)
    count_without(block.codes, block.offsets, block.amount, *given, counts, pairs, scratch)
    return (block.rows, counts), pairs


def measure_by_others(workers: WorkerModel, counts: Floats, pairs: Floats) -> dict[str, Floats]:
    """The probability of chance of each worker, and the figures of raters, by the answers of others.

    `counts` and `pairs` are the sums over all blocks; those of pairs of classes say how little p tells these apart.
    """
    if workers.accuracy_alone:
        return {"chance": find_chance_of_coins(*counts.T)}
    table = workers.plain_counts(counts)
    figures = {"chance": find_chance(table, workers.class_of_label, workers.silent)}
    if workers.are_raters:
        figures["raters"] = find_raters(table, pairs, workers)
    return figures


def find_chance(counts: Floats, class_of_label: NDArray[np.int64], silent: bool) -> Floats:
    """The probability that each worker answers by chance, (M,), by counts (M, L, K); NaN if nothing checks it.

    Where silence is an answer, nothing is told by what one says who says only one label: speaking is the answer.

    >>> good, clicker = np.array([[20.0, 2.0], [1.0, 19.0]]), np.array([[9.0, 11.0], [12.0, 10.0]])
    >>> find_chance(np.stack([good, good, clicker]), np.arange(2), False).round(2)
    array([0.  , 0.  , 0.65])
    """
    n_workers, n_labels, n_classes = counts.shape
    chance = np.full(n_workers, np.nan)
    known = counts.sum(axis=(1, 2)) > 0
    if silent:
        known &= (counts.sum(axis=2) > 0).sum(axis=1) > 1
    if min(n_labels, n_classes) < 2 or not known.any():
        return chance
    total = counts[known].sum(axis=0)
    crowd = (total + 1e-9) / (total + 1e-9).sum(axis=0)
    named = class_of_label[:, None] == np.arange(n_classes)
    right = np.where(named, MOSTLY_RIGHT, (1 - MOSTLY_RIGHT) / (n_labels - 1))
    right[:, ~named.any(axis=0)] = 1 / n_labels
    strengths = [(crowd, AS_THE_CROWD), (right, AS_THE_RIGHT)]
    patterns = [times * rows + ADDED_TO_ROWS for rows, several in strengths for times in several]
    even = [np.full((n_labels, 1), a) for a in EVEN]
    rows, odds = np.flatnonzero(known), []  # log(e / s)
    size = max(1, MOST_CHANCE_ENTRIES // max(1, n_labels * n_classes))
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
    chance[known] = learn_share(np.concatenate(odds))
    return chance


def find_chance_of_coins(total: Floats, right: Floats, by_chance: Floats) -> Floats:
    """The probability that each worker answers by chance, (M,), by how many answers are right and would be by chance.

    The evidence is that of `find_chance` with two answers: right and wrong.

    >>> find_chance_of_coins(np.array([30.0, 30, 0]), np.array([25.0, 3, 0]), np.array([3.0, 3, 0])).round(2)
    array([0.  , 0.81,  nan])
    """
    told, known = np.full(len(total), np.nan), np.flatnonzero(total > 0)
    if not len(known):
        return told
    n, hits, share = total[known], right[known], np.clip((by_chance[known] + 0.5) / (total[known] + 1), 1e-9, 1 - 1e-9)
    crowd = float(hits.sum() / n.sum())
    logs = []
    for accuracy, several in ((crowd, AS_THE_CROWD), (MOSTLY_RIGHT, AS_THE_RIGHT)):
        for times in several:
            a, b = times * accuracy + ADDED_TO_ROWS, times * (1 - accuracy) + ADDED_TO_ROWS
            logs.append(betaln(hits + a, n - hits + b) - betaln(a, b))
    by_skill = logsumexp(logs, axis=0) - np.log(len(logs))
    told[known] = learn_share(hits * np.log(share) + (n - hits) * np.log1p(-share) - by_skill)
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
        is_known = ~np.isnan(each)
        probability = np.clip(each[is_known], LEAST_CHANCE_PROBABILITY, 1 - LEAST_CHANCE_PROBABILITY)
        share = (probability.sum() + by_chance) / (is_known.sum() + by_chance + by_skill)
        odds[is_known] += np.log(probability) - np.log1p(-probability) - np.log(share) + np.log1p(-share)
        known |= is_known
    chance = np.full(len(odds), np.nan)
    if known.any():
        chance[known] = learn_share(odds[known])
    return chance


def learn_share(odds: Floats) -> Floats:
    """The probability of chance of each worker from log(e / s), with the share of such workers learned."""
    share, (by_chance, by_skill) = SHARE_START, SHARE_PRIOR
    for _ in range(SHARE_ROUNDS):
        probability = 1 / (1 + np.exp(np.clip(-odds - np.log(share) + np.log1p(-share), -700, 700)))
        share = float((probability.sum() + by_chance) / (len(odds) + by_chance + by_skill))
    return np.asarray(probability)


def find_raters(counts: Floats, pairs: Floats, workers: WorkerModel) -> Floats:
    """Bias, both ends of its interval, spread and carelessness of each rater, (M, 5); NaN if nothing checks it.

    Counts (M, L, K) are sums of p over the answers of each rater, pairs (K, K) those of p_k p_h.
    """
    named = np.flatnonzero(workers.class_of_label >= 0)
    figures = np.full((len(counts), len(RATER_FIGURES)), np.nan)
    judged = np.flatnonzero(counts[:, named].sum(axis=(1, 2)) > 0)
    if min(len(named), workers.n_classes) < 2 or workers.n_classes > MOST_RATER_LEVELS or not len(judged):
        return figures

    # The logarithms of what types answer to a class that is drawn, (B, S E, L' K).
    biases, total = list_biases(workers.n_classes), pairs.sum(axis=1, keepdims=True)
    drawn = np.divide(pairs, total, out=np.eye(len(pairs)), where=total > 0)
    logs = np.empty((len(biases), len(SPREAD_GRID) * len(CARELESS_GRID), len(named) * workers.n_classes))
    for number, bias in enumerate(biases):  # one by one: in between there are several tables of this size
        types = np.array(np.meshgrid([bias], SPREAD_GRID, CARELESS_GRID, indexing="ij")).reshape(3, -1).T
        rates = rate(types, workers.places, workers.class_of_label[named])
        logs[number] = np.log(rates @ drawn.T).reshape(logs.shape[1:])

    def weigh(rows: NDArray[np.int64]) -> Floats:
        """The likelihood of each type for some raters, (M, B, S E), up to a factor for each rater."""
        scores = counts[rows][:, named].reshape(len(rows), -1) @ logs.reshape(-1, logs.shape[2]).T
        scores -= scores.max(axis=1, keepdims=True)
        return np.exp(scores, out=scores).reshape(len(rows), *logs.shape[:2])

    def density_around(mean: float, variance: float) -> Floats:
        """The probability of each bias of the grid under a normal distribution."""
        density = np.exp(-((biases - mean) ** 2) / (2 * variance))
        return np.asarray(density / density.sum())

    # What is learned of the crowd: mean and variance of biases, and the shares of pairs of spread and carelessness.
    size = max(1, MOST_TYPES // logs[..., 0].size)
    likelihood = weigh(judged[np.linspace(0, len(judged) - 1, min(size, len(judged))).astype(np.int64)])
    n, mean, variance, shares = len(likelihood), 0.0, 1.0, np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(CROWD_ROUNDS):
        density = density_around(mean, variance)
        of_bias = (likelihood @ shares) * density
        evidence = of_bias.sum(axis=1, keepdims=True)
        of_pair = np.tensordot(likelihood, density, axes=(1, 0)) * shares / evidence
        average = (of_bias / evidence).sum(axis=0)
        mean = float(average @ biases) / n
        variance = (ADDED_SQUARE + float(average @ (biases - mean) ** 2)) / (n + 1)
        shares = of_pair.sum(axis=0) + ADDED_PAIRS
        shares /= shares.sum()

    # The figures of each rater. A bias stands for all that are nearest to it.
    density, half = density_around(mean, variance), (biases[1] - biases[0]) / 2
    edges = np.append(biases - half, biases[-1] + half) - mean
    for first in range(0, len(judged), size):
        part = judged[first : first + size]
        likelihood = weigh(part)
        of_bias = (likelihood @ shares) * density
        of_bias /= of_bias.sum(axis=1, keepdims=True)
        of_pair = np.tensordot(likelihood, density, axes=(1, 0)) * shares
        of_pair = (of_pair / of_pair.sum(axis=1, keepdims=True)).reshape(-1, len(SPREAD_GRID), len(CARELESS_GRID))
        below = np.pad(of_bias.cumsum(axis=1), ((0, 0), (1, 0)))
        ends = np.array([np.interp(TAILS_95, each, edges) for each in below])
        spread, careless = of_pair.sum(axis=2) @ np.array(SPREAD_GRID), of_pair.sum(axis=1) @ np.array(CARELESS_GRID)
        figures[part] = np.column_stack([of_bias @ biases - mean, ends, spread, careless])
    return figures


def list_biases(n_classes: int) -> Floats:
    """The biases of the grid, (B,)."""
    reach = max(LEAST_BIAS_REACH, n_classes - 1.0)
    return np.linspace(-reach, reach, min(round(2 * reach / BIAS_STEP) + 1, MOST_BIASES))


def remark_on_bias(figures: Floats) -> list[str]:
    """The remark "harsh by ... levels" or "lenient by ... levels" for raters whose bias is beyond doubt, else "".

    >>> remark_on_bias(np.array([[-0.84, -1.1, -0.6, 0.5, 0.0], [0.2, 0.1, 0.3, 0.5, 0.0], [0.9, -0.1, 2, 0.5, 0.0]]))
    ['harsh by 0.8 levels', '', '']
    """
    bias, low, high = figures[:, :3].T
    clear = (np.abs(bias) >= LEAST_BIAS_OF_RATERS) & ((low > 0) | (high < 0))
    return [
        f"{'harsh' if size < 0 else 'lenient'} by {abs(size):.1f} levels" if told else ""
        for size, told in zip(bias.tolist(), clear.tolist(), strict=True)
    ]


def are_contrary(counts: Floats, said: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whose answers are lower where the truth is higher, (M,), by counts (M, L, K); `said` is the class of labels.

    The correlation of answer and truth must be two standard errors below 0.

    >>> harsh, reversed_ = np.tri(3).T, np.eye(3)[::-1]
    >>> are_contrary(20 * np.stack([harsh, reversed_]), np.arange(3))
    array([False,  True])
    """
    inner = counts[:, said >= 0]
    n = np.maximum(inner.sum(axis=(1, 2)), NEARLY_ZERO)
    given, true = said[said >= 0].astype(np.float64), np.arange(counts.shape[2], dtype=np.float64)
    by_label, by_class = inner.sum(axis=2) / n[:, None], inner.sum(axis=1) / n[:, None]
    covariance = np.einsum("mlk,l,k->m", inner, given, true) / n - (by_label @ given) * (by_class @ true)
    squares = (by_label @ given**2 - (by_label @ given) ** 2) * (by_class @ true**2 - (by_class @ true) ** 2)
    return np.asarray(covariance < -2 * np.sqrt(np.maximum(squares, 0.0) / n))
