r"""Workers with temperatures: what a soft vote is worth is learned, and the votes are pooled.

With x_k = log p_k - mean_j log p_j, where probabilities below `LEAST_VOTE` count as that, worker m by itself says

    S_m = softmax(b_m x + a_m)

b_m is an inverse temperature: below 1 the worker is too sure, above 1 too cautious. It is sought such that S_m predicts
what the votes of all others and the structure say together; the own vote is left out, or else b_m would run away. The
others are less sure than all together, so all b_m would shrink from step to step, the more so the fewer workers there
are. Only their ratios are found this way. Their common factor is where S_m predicts the posterior, in which the own
vote counts: as for any calibrated posterior, its mean given one vote is what that vote says.

a_m is the worker's bias towards classes. It is sought such that the mean of S_m over all votes is rho, the mean of the
probabilities of all workers: who says a class more often than others do must be surer of it to be believed. (A bias
that predicts the others instead drifts: all workers together may come to prefer a class.) Each M-step is half a step.

Classifiers know how frequent classes are, and a pool of their votes would count that once for each. The log evidence of
a vote is therefore b_m x + a_m - c with c = log(rho) / 2, and c counts once in the pool of an item. Half, because
without any of it the rarest class wins where votes tell little. The pool has shares of classes of its own, the mean of
its softmax over items, and so has the structure: those of the pool are taken from the evidence. The class prior that is
learned for independent items is then that of the pool, and their posterior is the softmax of the pool. Where another
prior is given, or neighbours and features speak, they count relative to it.

Confusion matrices are counted from the posteriors, by the most probable label of each vote. They are reported, and
hidden answers are judged by them, but they have no say. There is no likelihood: the objective is the log normaliser of
the pool, and only tells that the steps have settled.

**The mean of the probabilities** takes every worker at their word, who counts as much as any other. With p_mk what
worker m gives to class k, the evidence for class k of an item to which W workers gave a vote is

    (1 / W) sum_m p_mk / rho_k

where rho are the mean shares of the classes, so that the posterior of independent items is the mean itself (of which
all else above is true). Nothing is learned of the workers, and the mean is never surer than they are: so it is honest
where they share their errors, and too cautious where they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ...answers.answers import Answers, Block
from ...answers.soft_votes import Probabilities
from ...kernels import Floats, freeze
from ..distributions import Distributions, fit_distributions
from .base import Axes, Prior, WorkerModel
from .rows import Counted, RowCounts, count_answers, exponentiate, of_answers, sum_answers

# Classifiers are trained on alike data, and err alike: hidden answers, which have the same errors, call for a power
# about twice as large as is right.
POWER_OF_CLASSIFIERS = 0.487
# Probabilities below this count as this.
LEAST_VOTE = 1e-2
# A class that nobody gives anything to is not impossible to the mean.
LEAST_MEAN = 1e-9
# Which part of a step is taken, the precision of the logarithm of temperatures, and their limits.
STEP_SHARE, TEMPERATURE_PRECISION, LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.5, 0.25, 0.02, 50.0
# The logarithm of a temperature, and that of the factor of all, should change by so much at most.
LONGEST_CHANGE = 1.0
# By so many votes of each worker, temperatures are known well enough.
ENOUGH_VOTES = 2_000
# Rows of a worker beside those of labels; see `Pool.count_rows`.
TARGET, CURVATURE, SAID, POOLED, BEFORE, WHOLE, PULLS = 0, 1, 2, 3, 4, 5, 6
# Added to shares of classes before they are divided, or their logarithm is taken.
ADDED_TO_SHARES = 1e-2
TINY_SHARE = 1e-6
# So many standard errors of the share of a class among a worker's votes are due to chance.
CHANCE_ERRORS = 2.0
# Which part of the logarithm of the shares counts once in a pool, and not with every vote.
COMMON = 0.5
# Temperatures up to so many times, and down to such a part of, 1 are about right.
ABOUT_RIGHT, WELL_SURE = 1.6, "about right"


class Pool(NamedTuple):
    """Votes as they count: what gives evidence, and counts of it."""

    temperature: Floats  # (M,)
    shift: Floats  # (M, K): a - c
    common: Floats  # (K,): c, which counts once
    pooled: Floats  # (K,): logarithm of the shares of classes in the pool
    n_labels: int

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """Nothing for answers of earlier batches."""
        return 0.0

    def log_evidence(self, block: Block, posterior: Floats | None = None) -> Floats:
        """The pool of each item, (n_items, K); two numbers for all items hardly depend on any of them."""
        logs = sum_answers(block, self.log_answers(block))
        logs[np.diff(block.offsets) > 0] += self.common - self.pooled
        return logs

    def log_answers(self, block: Block) -> Floats:
        """The log evidence of each vote, (n_answers, K)."""
        worker = self.find_workers(block)[block.codes]
        return of_answers(block, self.temperature[worker, None] * block.soft + self.shift[worker])

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """The block's evidence up to a factor per item, and the sum of the logarithms of these factors."""
        return exponentiate(block, self.log_evidence(block))

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """Expected counts of labels, and what votes say of their workers; of many votes, some say enough.

        A vote alone says S = softmax(b x + a), and the others say T, which is proportional to q / exp(w e), q the
        posterior and e the log evidence of the vote, which counts w times. How b should change so that S predicts T is
        told by the slope and the curvature of sum_k T_k log S_k,

            slope = sum_k (T_k - S_k) x_k,    curvature = sum_k S_k (x_k - m)^2,    m = sum_k S_k x_k

        What is counted, class by class, is the curvature, and the slope plus b times the curvature: the quotient of the
        sums is where Newton's step leads, and sums that were taken at different b add.
        """
        n_votes = np.diff(block.offsets)
        stride = max(1, block.total_size // (len(self.temperature) * ENOUGH_VOTES))
        item = np.repeat(np.arange(block.n_items), n_votes)
        chosen = np.flatnonzero(item % stride == 0)
        item, worker, x = item[chosen], self.find_workers(block)[block.codes[chosen]], block.soft[chosen].astype(float)
        weight = block.amount[chosen, None] if len(block.amount) else 1.0
        temperature, shift, own = self.temperature[worker, None], self.shift[worker], posterior[item]
        evidence = temperature * x + shift
        said = softmax(evidence + self.common, axis=1)
        # A share of the own vote, if it counts less, is left among the others.
        taken = weight * evidence
        others = own * np.exp(taken.min(axis=1, keepdims=True) - taken)
        total = others.sum(axis=1, keepdims=True)
        others /= np.where(total > 0, total, 1.0)
        curvature = said * (x - (said * x).sum(axis=1, keepdims=True)) ** 2
        pool = (
            softmax(sum_answers(block, self.log_answers(block)) + self.common, axis=1) / np.maximum(n_votes, 1)[:, None]
        )
        counted = np.empty((PULLS, len(x), x.shape[1]))
        counted[TARGET] = weight * ((others - said) * x + temperature * curvature)
        counted[CURVATURE] = weight * curvature
        counted[SAID] = weight * said
        counted[POOLED] = pool[item]
        counted[BEFORE] = weight * (temperature + shift + self.common)
        counted[WHOLE] = weight * ((own - said) * x + temperature * curvature)
        return add_pulls(count_answers(block, posterior), worker, counted, self.n_labels)

    def find_workers(self, block: Block) -> NDArray[np.int64]:
        """The worker of each row of a block."""
        return block.rows // (self.n_labels + PULLS)


def add_pulls(row_counts: RowCounts, worker: NDArray[np.int64], counted: Floats, n_labels: int) -> RowCounts:
    """Counts of rows with those, (PULLS, n, K), that votes of these workers, (n,), say of them."""
    workers, place = np.unique(worker, return_inverse=True)
    pulls = np.zeros((len(workers), *counted[:, 0].shape))
    for row, k in np.ndindex(pulls.shape[1:]):
        pulls[:, row, k] = np.bincount(place, counted[row, :, k], len(workers))
    rows = (workers[:, None] * (n_labels + PULLS) + n_labels + np.arange(PULLS)).ravel()
    every = np.concatenate([row_counts[0], rows])
    order = np.argsort(every)
    return every[order], np.concatenate([row_counts[1], pulls.reshape(len(rows), -1)])[order]


@dataclass(frozen=True, eq=False)
class TemperatureWorkers(WorkerModel):
    """One temperature and one bias per worker. A vote of m with label l is row m (L + `PULLS`) + l.

    Parameters
    ----------
    shares : array (K,), optional
        The mean of the probabilities of all workers.
    """

    shares: Floats | None = None

    name: ClassVar[str] = "temperatures"
    needs_votes: ClassVar[bool] = True
    n_further_rows: ClassVar[int] = PULLS
    enough_steps: ClassVar[int | None] = 20  # votes that say little go on drifting, and labels hardly change
    caution: ClassVar[float] = POWER_OF_CLASSIFIERS
    pool: ClassVar[type[Pool]] = Pool
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {
        "log_weights": "M 4 K: finite",
        "further": {
            "temperatures_": "M: positive",
            "class_bias_": "M K: finite",
            "_pulls": "M 6 K: finite",
            "_shares": "K: positive",
        },
    }

    @classmethod
    def of(cls, responses: Answers, *layout: Any) -> Self:
        """The model for the workers of these answers."""
        made = super().of(responses, *layout)
        return replace(made, shares=freeze(responses.vote_shares() + ADDED_TO_SHARES / made.n_classes))

    def read_votes(self, responses: Answers) -> Probabilities:
        """X of each vote."""
        logs = np.log(np.maximum(responses.class_votes(), np.float32(LEAST_VOTE)))
        logs -= logs.mean(axis=1, keepdims=True)
        return logs

    def update(self, counts: Floats, prior: Prior, before: Distributions | None = None) -> Distributions:
        """Temperatures and biases that suit the votes better, and the matrices of the most probable labels."""
        plain = fit_distributions(self.plain_counts(counts), prior.smoothing, prior.estimation)
        temperature, bias = self._step(counts, STEP_SHARE)
        return self._make(temperature, bias, counts, plain.mean)

    def _step(self, counts: Floats, damping: float) -> tuple[Floats, Floats]:
        """Temperatures (M,) and biases (M, K) after a part of a step from those that counts were taken at."""
        pulls = self._pulls(counts)
        target, curvature, whole = (pulls[:, row].sum(axis=1) for row in (TARGET, CURVATURE, WHOLE))
        n_votes = pulls[:, SAID].sum(axis=1, keepdims=True)
        before = np.ones((self.n_workers, self.n_classes))
        np.divide(pulls[:, BEFORE], n_votes, out=before, where=n_votes > 0)
        old = before.mean(axis=1)
        said = np.divide(pulls[:, SAID], n_votes, out=np.tile(self._shares(), (self.n_workers, 1)), where=n_votes > 0)
        lack = np.log(self._shares() + ADDED_TO_SHARES) - np.log(said + ADDED_TO_SHARES)
        # What chance explains is no bias.
        error = CHANCE_ERRORS * np.sqrt(np.maximum(1 - said, 0.0) / np.maximum(said * n_votes, 1.0))
        lack = np.sign(lack) * np.maximum(np.abs(lack) - error, 0.0)
        bias = before - old[:, None] + STEP_SHARE * (lack - lack.mean(axis=1, keepdims=True))

        # By how much the logarithms of temperatures should change: their ratios, and the common factor. The logarithm
        # of a ratio has a normal density around 0, of deviation 2.
        size = old**2 * curvature
        if size.sum() <= 0:
            return np.clip(old, LEAST_TEMPERATURE, MOST_TEMPERATURE), bias
        weight = size / size.sum()
        apart = np.log(old)
        apart -= weight @ apart
        ratio = (old * target - size - TEMPERATURE_PRECISION * apart) / (size + TEMPERATURE_PRECISION)
        # Far from where it leads, Newton's step may be much too long, and temperatures would swing.
        ratio = np.clip(ratio - weight @ ratio, -LONGEST_CHANGE, LONGEST_CHANGE)
        way = ratio + np.clip(float(old @ whole) / size.sum() - 1, -LONGEST_CHANGE, LONGEST_CHANGE)
        return np.clip(old * np.exp(damping * way), LEAST_TEMPERATURE, MOST_TEMPERATURE), bias

    def _shares(self) -> Floats:
        return np.full(self.n_classes, 1 / self.n_classes) if self.shares is None else self.shares

    def _make(self, temperature: Floats, bias: Floats, counts: Floats | None, mean: Floats) -> Distributions:
        """What the E-step takes, in logarithms (M, 4, K): b, a - c, c, and the shares of the pool."""
        common = COMMON * np.log(self._shares())
        logs = np.empty((self.n_workers, 4, self.n_classes))
        logs[:, 0], logs[:, 1], logs[:, 2] = np.log(temperature)[:, None], bias - common, common
        pooled = np.zeros(self.n_classes) if counts is None else self._pulls(counts)[:, POOLED].sum(axis=0)
        pooled = pooled if pooled.any() else self._shares()
        logs[:, 3] = np.log(np.maximum(pooled / pooled.sum(), TINY_SHARE))
        return Distributions(freeze(logs), mean, 0.0)

    def factors(self, log_weights: Floats) -> Pool:
        """The votes as they count."""
        temperature, shift = np.exp(log_weights[:, 0, 0]), log_weights[:, 1].copy()
        return self.pool(temperature, shift, log_weights[0, 2].copy(), log_weights[0, 3].copy(), self.n_labels)

    def log_answers(self, block: Block, log_weights: Floats) -> Floats:
        """The log evidence of each vote, (n_answers, K)."""
        return self.factors(log_weights).log_answers(block)

    def given(self, confusion: Floats) -> Distributions:
        """Temperatures of 1, and no biases: known matrices have no say."""
        mean = np.ascontiguousarray(confusion.transpose(0, 2, 1), dtype=np.float64)
        return self._make(np.ones(self.n_workers), np.zeros((self.n_workers, self.n_classes)), None, mean)

    def embed_counts(
        self, counts: Floats, further: Mapping[str, Floats], worker: NDArray[np.int64], axes: Axes
    ) -> Floats:
        """The counts of rows from those of a fit to fewer workers, labels and classes."""
        embedded = super().embed_counts(counts, further, worker, axes).reshape(-1, self.n_answers, self.n_classes)
        embedded[np.ix_(worker, self.n_labels + np.arange(PULLS), axes[1])] = further["_pulls"]
        return embedded.reshape(-1, self.n_classes)

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The votes as the counts let them count: as in the fit, once it has settled."""
        return self.factors(self._make(*self._step(counts, 1.0), counts, np.empty(0)).log_weights)

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """The parameters of these workers; the median of all for one who was not there."""
        every = np.arange(known.shape[1])
        return super().adopt(known, np.median(known, axis=0, keepdims=True), worker, every)

    def further_arrays(self, distributions: Distributions, counts: Floats) -> dict[str, Floats]:
        """Temperatures and biases, and the sums by which they go on."""
        logs = distributions.log_weights
        return {
            "temperatures_": np.exp(logs[:, 0, 0]),
            "class_bias_": logs[:, 1] + logs[:, 2],
            "_pulls": self._pulls(counts),
            "_shares": self._shares(),
        }

    def weigh_items(self, log_weights: Floats) -> Floats:
        """What counts once for every item with votes."""
        return np.asarray(log_weights[0, 2] - log_weights[0, 3])

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:
        """What the E-step takes, (M, 4, K)."""
        n_workers, n_classes, n_labels = confusion.shape
        workers = cls(n_workers, np.arange(n_labels), n_classes, shares=further["_shares"])
        counts = np.zeros((n_workers, n_labels + PULLS, n_classes))
        counts[:, n_labels:] = further["_pulls"]
        reported = workers._make(further["temperatures_"], further["class_bias_"], counts, confusion)
        return np.exp(reported.log_weights)

    def _pulls(self, counts: Floats) -> Floats:
        """What was counted beside labels, (M, PULLS, K)."""
        return np.ascontiguousarray(counts.reshape(self.n_workers, self.n_answers, -1)[:, self.n_labels :])


def describe_temperature(temperature: float) -> str:
    """In words how sure a worker is, compared with what the others say.

    >>> describe_temperature(0.4), describe_temperature(1.1), describe_temperature(3.0)
    ('too sure, 2.5 times', 'about right', 'too cautious, 3 times')
    """
    if temperature <= 1 / MOST_TEMPERATURE:
        return "says nothing that others confirm"
    if temperature < 1 / ABOUT_RIGHT:
        return f"too sure, {1 / temperature:.2g} times"
    if temperature <= ABOUT_RIGHT:
        return WELL_SURE
    return f"too cautious, {temperature:.2g} times" + (" or more" if temperature >= MOST_TEMPERATURE else "")


class MeanPool(Pool):
    """Votes that all count alike."""

    def log_mean(self, block: Block) -> Floats:
        """The logarithm of the mean of the probabilities of each item, (n_items, K); 0 without answers."""
        total, answered = sum_answers(block, read_shares(block)), np.diff(block.offsets) > 0
        logs = np.zeros_like(total)
        mean = total[answered] / total[answered].sum(axis=1, keepdims=True)
        logs[answered] = np.log(np.maximum(mean, LEAST_MEAN))
        return logs

    def log_evidence(self, block: Block, posterior: Floats | None = None) -> Floats:
        """The log evidence (n_items, K)."""
        logs = self.log_mean(block)
        logs[np.diff(block.offsets) > 0] -= self.pooled
        return logs

    def log_answers(self, block: Block) -> Floats:
        """The logarithm of the mean of each item, shared out to its votes by what they give to each class."""
        logs, given = self.log_mean(block), read_shares(block)
        logs += 1 - logs.min(axis=1, keepdims=True)  # the same for all classes, so that a larger share speaks for one
        item = np.repeat(np.arange(block.n_items), np.diff(block.offsets))
        return np.asarray(given / np.maximum(sum_answers(block, given), LEAST_MEAN)[item] * logs[item])

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """Expected counts of labels, and the shares of the classes in the mean."""
        n_votes = np.diff(block.offsets)
        counted = np.zeros((PULLS, len(block.codes), posterior.shape[1]))
        mean = np.exp(self.log_mean(block)) / np.maximum(n_votes, 1)[:, None]
        counted[POOLED] = np.repeat(mean, n_votes, axis=0)
        return add_pulls(count_answers(block, posterior), self.find_workers(block)[block.codes], counted, self.n_labels)


def read_shares(block: Block) -> Floats:
    """The probability that each vote gives to each class, times its weight."""
    return of_answers(block, block.soft.astype(np.float64))


class MeanWorkers(TemperatureWorkers):
    """Workers who are taken at their word. Rows are those of workers with temperatures, which are all 1."""

    name: ClassVar[str] = "mean"
    reports_sureness: ClassVar[bool] = False
    caution: ClassVar[float] = 1.0  # it is never surer than the workers
    pool: ClassVar[type[Pool]] = MeanPool

    def read_votes(self, responses: Answers) -> Probabilities:
        """The probability that each vote gives to each class."""
        return responses.class_votes()

    def votes(self) -> NDArray[np.int64]:
        """Nothing: the probabilities are the votes."""
        return np.empty(0, np.int64)
