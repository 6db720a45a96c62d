r"""One-coin workers: worker m is right with probability a_m, whatever the truth, and errs evenly.

Worker m answers l when the truth is k with probability

    a_m                   if l names k
    (1 - a_m) / (L - 1)   if it does not: all labels that do not name k, "unsure" among them, are equally likely
    1 / L                 if no label names k, so that nobody can be right

One number per worker is learned from all answers, by the expected numbers of right and of wrong ones among those about
classes that can be named. The prior is that of one row of a confusion matrix, on average over these classes. Workers
with few answers are known better than by a confusion matrix; that somebody confuses two classes is not seen.

No table has an entry for each label and class, of which there may be thousands. Counted are three numbers of each
worker: right answers, wrong ones, and those about classes that no label names. In the evidence of an item all classes
that nobody said there are alike, so that an answer changes only that of the class it names:

    log b_ik = sum_j log w_j + sum_j [l_j names k] (log r_j - log w_j)

with r_j and w_j the probabilities of a right and of a certain wrong answer. Matrices are made where somebody asks for
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers, Block
from ...kernels import LEAST_LEFT_OVER, LOG_IMPOSSIBLE, NEARLY_ZERO, Floats, Integers, freeze
from ..cells import Cells, sum_by
from ..distributions import Distributions, fit_distributions, weigh_logs
from .base import Prior, WorkerModel, make_pair
from .rows import SHRINKAGE, Counted, RowCounts, multiply_logs, of_answers

# What is counted of each worker: right answers, wrong ones, and those about classes that no label names.
COINS = 3
# Where a table of counts would have more entries, improbable classes of an item are counted together.
MANY_MATRIX_ENTRIES, LEAST_PROBABLE = 1 << 18, 1e-3
# Items added to each class where there are more than so many. With few items of each, a tie would otherwise go to the
# class of one item more as if that were certain. (Measured in simulated crowds of 50 to 1000 classes, equally frequent
# ones and others: 3 to 10 items give the best accuracy and log loss.)
MANY_CLASSES, SOME_OF_EACH = 20, 3.0
# Smaller probabilities are rounding errors, or nothing.
SMALLEST_CHANCE = 1e-15


@dataclass(frozen=True, eq=False)
class OneCoinWorkers(WorkerModel):
    """One accuracy per worker, with errors spread evenly. Rows are those of confusion workers."""

    name: ClassVar[str] = "one-coin"
    words: ClassVar[str] = "one accuracy for each worker"
    accuracy_alone: ClassVar[bool] = True
    added_items: ClassVar[tuple[float, int]] = (SOME_OF_EACH, MANY_CLASSES)
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {
        "log_weights": "M 3 1: log weights",
        "confusion": "M 1 3: probabilities",
        "counts": "M 3 1: counts",
        "crowd": "1 3 1: probabilities",
        "further": {"_class_of_label": "L: known classes"},
    }

    @property
    def table_shape(self) -> tuple[int, int]:
        """The shape of the table of expected counts."""
        return COINS * self.n_workers, 1

    @cached_property
    def can_err(self) -> NDArray[np.bool_]:
        """About which classes there are right and wrong answers, (K,)."""
        return find_errable(self.class_of_label, self.n_classes)

    def count(self, block: Block, posterior: Floats) -> RowCounts:
        """How many answers of each worker are right, wrong, and about classes that nobody can name."""
        worker, own, alone = self.match(block, posterior)
        counts = np.stack([own, np.maximum(1 - alone - own, 0.0), alone], axis=1)
        there, place = np.unique(worker, return_inverse=True)
        sums = [sum_by(place, each, len(there)) for each in of_answers(block, counts).T]
        return (COINS * there[:, None] + np.arange(COINS)).ravel(), np.stack(sums, axis=1).reshape(-1, 1)

    def match(self, block: Block, posterior: Floats) -> tuple[Integers, Floats, Floats]:
        """The worker of each answer of a block, and how probable it is that it is right, or that nobody can be."""
        item, worker, klass = self.read(block)
        own = np.where(klass >= 0, posterior[item, klass], 0.0)
        alone = np.zeros(block.n_items)
        if not self.can_err.all():
            alone = np.minimum(posterior[:, ~self.can_err].sum(axis=1), 1.0)
        return worker, own, alone[item]

    def read(self, block: Block) -> tuple[Integers, Integers, Integers]:
        """The item and the worker of each answer of a block, and the class that it names; -1 for none."""
        worker, label = np.divmod(block.rows, self.n_answers)
        klass = np.where(self.can_err[self.class_of_label], self.class_of_label, -1)[label]
        return np.repeat(np.arange(block.n_items), np.diff(block.offsets)), worker[block.codes], klass[block.codes]

    def by_matrix(self, counts: Floats) -> Floats:
        """The numbers of right and of wrong answers, (M, 2, 1)."""
        return np.ascontiguousarray(counts.reshape(-1, COINS, 1)[:, :2])

    # -------------------------------------------------------------------------------------------------- what is learned

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats, learn: bool = False) -> Prior:
        """Pseudo-counts (1 or M, 2, 1) of right and wrong answers; or, to `learn`, a pair to start from."""
        if not (learn and self.can_err.any()):
            return super().prior(smoothing, estimation, unvoted)
        off, diagonal = np.array([0.0, self.n_labels - 1.0]), np.array([1.0, 0.0])
        off, diagonal = (freeze(each.reshape(1, 2, 1)) for each in (off, diagonal))
        return make_pair((off, diagonal, freeze(np.zeros((1, 2, 1)))))

    def shape_smoothing(self, smoothing: Floats, unvoted: Floats) -> Floats:
        """Pseudo-counts (1 or M, 2, 1) of right and wrong answers."""
        if not self.can_err.any():  # there is nothing to learn, and any prior will do
            return np.ones((1, 2, 1))
        right = self.class_of_label[:, None] == np.arange(self.n_classes)
        parts = [np.where(which & self.can_err, smoothing, 0.0).sum(axis=(1, 2)) for which in (right, ~right)]
        return np.asarray(np.stack(parts, axis=1)[:, :, None] / self.can_err.sum())

    def update(self, counts: Floats, prior: Prior) -> Distributions:
        """The accuracies that expected counts call for."""
        return self._spread(fit_distributions(self.by_matrix(counts), prior.smoothing, prior.estimation))

    def _spread(self, coins: Distributions) -> Distributions:
        """Distributions (M, 3, 1) of a right, a certain wrong, and any answer, from those of right and wrong ones."""
        parts = np.array([0.0, np.log(max(self.n_labels - 1, 1)), 0.0]).reshape(1, COINS, 1)
        alone = np.full((len(coins.mean), 1, 1), -np.log(max(self.n_labels, 1)))
        logs = np.concatenate([coins.log_weights, alone], axis=1) - parts
        mean = np.concatenate([coins.mean, np.exp(alone)], axis=1) / np.exp(parts)
        return Distributions(freeze(logs), freeze(mean), coins.bound)

    def factors(self, log_weights: Floats) -> CoinFactors:
        """The contribution of each worker's answers to the evidence."""
        return CoinFactors(self, log_weights[:, :, 0])

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The numbers of right and wrong answers."""
        return CountedCoins(self, (self.by_matrix(counts) + prior.smoothing)[:, :, 0])

    def given(self, confusion: Floats) -> Distributions:
        """The mean accuracy of known matrices (M, K, L)."""
        named = np.flatnonzero(self.can_err[self.class_of_label] & (self.class_of_label >= 0))
        right = confusion[:, self.class_of_label[named], named].sum(axis=1) / max(self.can_err.sum(), 1)
        return self._spread(Distributions.known(np.stack([right, 1 - right], axis=1)[:, :, None]))

    def crowd(self, counts: Floats, prior: Prior) -> Floats:
        """How the workers answer on the whole, (1, 3, 1)."""
        total, smoothing = self.by_matrix(counts).sum(axis=0), prior.smoothing.mean(axis=0)
        return self._spread(fit_distributions(total[None], smoothing[None], "em")).mean

    def log_answers(self, block: Block, log_weights: Floats) -> Floats:
        """The log evidence of each answer of a block for each class, (n_answers, K)."""
        _, worker, klass = self.read(block)
        right, wrong, alone = log_weights[worker, :, 0].T
        logs = np.where(self.can_err, wrong[:, None], alone[:, None])
        named = np.flatnonzero(klass >= 0)
        logs[named, klass[named]] = right[named]
        return of_answers(block, logs)

    # ------------------------------------------------------------------------------------------------- what is reported

    def plain_mean(self, distributions: Distributions, counts: Floats, prior: Prior) -> Floats:
        """The accuracies to report, (M, 3, 1)."""
        return distributions.mean

    def plain_counts(self, counts: Floats) -> Floats:
        """The numbers of right, wrong, and other answers, (M, 3, 1)."""
        return counts.reshape(-1, COINS, 1)

    def predict(self, mean: Floats, worker: Integers, label: Integers) -> Floats:
        """The probabilities (n, K) of answers, by accuracies (M, 3, 1)."""
        return predict_coins(mean[worker, :, 0], self.class_of_label[label], self.can_err)

    def shrink(self, counts: Floats, worker: Integers, label: Integers) -> Floats:
        """The probabilities (n, K) of answers from expected counts; those of each worker shrunk towards the crowd's."""
        coins = self.by_matrix(counts)[:, :, 0]
        total = coins.sum(axis=0) + 1.0 / max(self.n_labels, 1)
        shrunk = coins + SHRINKAGE * total / total.sum()
        found = self._spread(Distributions.known((shrunk / shrunk.sum(axis=1, keepdims=True))[:, :, None]))
        return self.predict(found.mean, worker, label)

    def judge_by_others(
        self, block: Block, posterior: Floats, judged: NDArray[np.bool_], log_weights: Floats, shares: Floats
    ) -> RowCounts:
        """How many answers of each worker are judged, are right by what others say, and would be by chance."""
        worker, own, alone = self.match(block, posterior)
        # Without the worker's own answer. What the posterior rules out stays so.
        said = np.stack([own, np.maximum(1 - own - alone, 0.0), alone], axis=1)
        factors = np.maximum(np.exp(log_weights[worker, :, 0]), NEARLY_ZERO)
        said = np.divide(said, factors, out=np.zeros_like(said), where=said > SMALLEST_CHANCE)
        item, _, klass = self.read(block)
        by_others = said[:, 0] / np.maximum(said.sum(axis=1), NEARLY_ZERO)
        by_chance = np.where(klass >= 0, shares[klass], 0.0)
        weight = of_answers(block, judged[item].astype(np.float64)[:, None])[:, 0]
        there, place = np.unique(worker, return_inverse=True)
        sums = [sum_by(place, weight * each, len(there)) for each in (1.0, by_others, by_chance)]
        return there, np.stack(sums, axis=1)

    def tabulate(self, r: Answers, posterior: Floats) -> Cells:
        """How often each worker gave each label to items of each class."""
        n_cells = min(r.n_responses, r.n_workers * r.n_labels) * r.n_classes
        return Cells.of_answers(r, posterior, LEAST_PROBABLE if n_cells > MANY_MATRIX_ENTRIES else 0.0)

    @classmethod
    def matrices(cls, confusion: Floats, further: Mapping[str, Floats], n_classes: int) -> Floats:
        """The confusion matrices, (M, K, L), which may be large."""
        klass = further["_class_of_label"].astype(np.int64)
        right, wrong, alone = (confusion[:, 0, part, None, None] for part in range(COINS))
        named = np.arange(n_classes)[:, None] == klass
        return np.where(find_errable(klass, n_classes)[:, None], np.where(named, right, wrong), alone)

    def further_arrays(self, distributions: Distributions, counts: Floats) -> dict[str, Floats]:
        """The class of each label."""
        return {"_class_of_label": self.class_of_label.astype(np.float64)}

    # ------------------------------------------------------------------------------ what was learned, for other answers

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:
        """The accuracies that are reported, like the result of `update`."""
        return np.ascontiguousarray(confusion.transpose(0, 2, 1))

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """The parameters of a fit, in the order of the workers of other answers."""
        return np.concatenate([known, crowd])[worker]

    def embed_counts(
        self, counts: Floats, further: Mapping[str, Floats], worker: NDArray[np.int64], axes: tuple[Integers, Integers]
    ) -> Floats:
        """The expected counts that a fit to fewer workers has kept."""
        embedded = np.zeros((self.n_workers, COINS, 1))
        embedded[worker] = counts
        return embedded.reshape(-1, 1)


def find_errable(class_of_label: Integers, n_classes: int) -> NDArray[np.bool_]:
    """About which classes there are right and wrong answers, (K,)."""
    can_err = np.zeros(n_classes, bool)
    if len(class_of_label) > 1:
        can_err[class_of_label[class_of_label >= 0]] = True
    return can_err


def predict_coins(chances: Floats, klass: Integers, can_err: NDArray[np.bool_]) -> Floats:
    """The probabilities (n, K) of answers that name these classes, by those of each kind of answer, (n, 3)."""
    right, wrong, alone = chances.T
    table: Floats = np.where(can_err, wrong[:, None], alone[:, None])
    named = np.flatnonzero((klass >= 0) & can_err[klass])
    table[named, klass[named]] = right[named]
    return table


def add_coins(workers: OneCoinWorkers, block: Block, logs: Floats) -> Floats:
    """The log evidence (n_items, K) of a block, from the log probabilities of each answer, (n_answers, 3)."""
    item, _, klass = workers.read(block)
    named, shape = np.flatnonzero(klass >= 0), (block.n_items, workers.n_classes)
    place = item[named] * workers.n_classes + klass[named]

    def spread(right: Floats, wrong: Floats, alone: Floats) -> Floats:
        """The sums over the answers of each item."""
        sums = np.zeros(shape)
        np.add.at(sums.reshape(-1), place, (right - wrong)[named])
        sums += sum_by(item, wrong, block.n_items)[:, None]
        if not workers.can_err.all():
            sums[:, ~workers.can_err] = sum_by(item, alone, block.n_items)[:, None]
        return sums

    impossible = np.isinf(logs)
    found = spread(*of_answers(block, np.where(impossible, 0.0, logs)).T)
    if impossible.any():
        found[spread(*impossible.T.astype(np.float64)) > 0] = -np.inf
    return found


class CoinFactors(NamedTuple):
    """What the answers of each worker contribute to the evidence: the logarithms of a right and of a wrong one."""

    workers: OneCoinWorkers
    logs: Floats  # (M, 3)

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """The expected log probability of answers that were counted."""
        return weigh_logs(counts, self.logs.reshape(-1, 1))

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """The expected counts of a block."""
        return self.workers.count(block, posterior)

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """The block's evidence up to a factor per item, and the sum of the logarithms of these factors."""
        logs = add_coins(self.workers, block, self.logs[self.workers.read(block)[1]])
        if len(block.gold):
            known = np.flatnonzero(block.gold >= 0)
            kept = np.maximum(logs[known, block.gold[known]], LOG_IMPOSSIBLE)
            logs[known] = -np.inf
            logs[known, block.gold[known]] = kept
        top = logs.max(axis=1)
        lost = np.flatnonzero(top == -np.inf)  # answers that no class allows are set aside
        logs[lost] = top[lost] = LOG_IMPOSSIBLE
        logs -= top[:, None]
        evidence, log_scale = np.exp(logs, out=logs), float(top.sum())
        for further in (block.log_prior, block.anchor):
            if len(further):
                log_scale += multiply_logs(evidence, further, block.gold)
        return evidence, log_scale


class CountedCoins(NamedTuple):
    """Right and wrong answers of workers who have one accuracy each."""

    workers: OneCoinWorkers
    coins: Floats  # (M, 2): counts and pseudo-counts

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """The log evidence of a block."""
        worker, own, alone = self.workers.match(block, posterior)
        taken = of_answers(block, np.stack([own, np.maximum(1 - alone - own, 0.0)], axis=1))
        left = np.maximum(self.coins[worker] - taken, LEAST_LEFT_OVER)
        chances = left / left.sum(axis=1, keepdims=True)
        n_labels = self.workers.n_labels
        logs = [np.log(chances[:, 0]), np.log(chances[:, 1]) - np.log(max(n_labels - 1, 1)), np.full(len(left), 0.0)]
        logs[2] -= np.log(max(n_labels, 1))
        return add_coins(self.workers, block, np.stack(logs, axis=1))
