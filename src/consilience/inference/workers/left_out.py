"""Evidence of an item from counts to which the item itself has not contributed.

An item's posterior q has helped to make the matrices that judge it; where workers gave few answers it confirms itself.
What is reported therefore judges each answer by its worker's matrix without this item: with expected counts C, pseudo-
counts a and an answer l of weight w, the factor of class k is

    (C_m[l, k] + a[l, k] - w q_k) / (C_m[., k] + a[., k] - w q_k)
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...answers.blocks import Block
from ...kernels.types import Floats, freeze, read_only

LEAST = 1e-12  # of what is left of a count; see `consilience.kernels.answers`
# Silence of all workers is computed at so many values of q, and interpolated, where so much of it was counted.
N_STEPS, STEEP = 65, 3.0


class Counted(Protocol):
    """What a worker model has counted, ready to leave items out."""

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """Return the log evidence (n_items, K) of a block whose items have these posteriors."""


class CountedRows(NamedTuple):
    """Counts of rows, and of the groups of rows that are one distribution for each class: `size` rows in turn."""

    rows: Floats  # (n_rows, K): counts and pseudo-counts
    totals: Floats  # (n_rows / size, K): their sums
    size: int

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """Return the log evidence of a block."""
        return divide_left_out(block, posterior, self.rows[block.rows], self.totals[block.rows // self.size])


class CountedSilence(NamedTuple):
    """As `CountedRows`, where each worker who said nothing about an item has answered, too: with silence."""

    rows: Floats  # (M L, K)
    silence: Floats  # (M, K)
    totals: Floats  # (M, K), with those of silence
    weight: Floats | None = None  # (M,): how much the silence of each worker counts

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """Return the log evidence of a block: silence of all, and answers in its place."""
        speaker = block.rows // (len(self.rows) // len(self.silence))
        # An answer and the silence in whose place it is have the same total, which the silence of all has taken.
        evidence = divide_left_out(block, posterior, self.rows[block.rows], self.silence[speaker])
        at = np.linspace(0.0, 1.0, N_STEPS)
        for k in range(posterior.shape[1]):
            # Where little silence was counted, its logarithm is too steep to be interpolated.
            steep = self.silence[:, k] < STEEP
            shallow = self._log_silence(at, ~steep, k)
            evidence[:, k] += np.interp(posterior[:, k], at, shallow)
            for worker in np.flatnonzero(steep):
                evidence[:, k] += self._log_silence(posterior[:, k], np.array([worker]), k)
        return evidence

    def _log_silence(self, taken: Floats, workers: NDArray[Any], k: int) -> Floats:
        """Return the log evidence for class k of the silence of some workers, for items with these posteriors of k."""
        weight = np.ones(len(self.silence)) if self.weight is None else self.weight
        own = taken[:, None] * weight[workers]
        silence, total = (counts[workers, k] - own for counts in (self.silence, self.totals))
        logs = np.log(np.maximum(silence, LEAST)) - np.log(np.maximum(total, LEAST))
        return np.asarray((weight[workers] * logs).sum(axis=1))


class CountedCoins(NamedTuple):
    """Right and wrong answers of workers who have one accuracy each."""

    coins: Floats  # (M, 2): counts and pseudo-counts
    names: Floats  # (L, K): 1 where a label names a class
    can_err: Floats  # (K,): 1 where there are right and wrong answers

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """Return the log evidence of a block."""
        n_labels = len(self.names)
        row, own = block.rows[block.codes], own_shares(block, posterior)
        coins, named = self.coins[row // n_labels], self.names[row % n_labels]
        right = (own * named * self.can_err).sum(axis=1)
        wrong = (own * (1 - named) * self.can_err).sum(axis=1)
        left = np.maximum(coins - np.stack([right, wrong], axis=1), LEAST)
        logs = np.log(left) - np.log(left.sum(axis=1, keepdims=True))
        even = np.log(max(n_labels - 1, 1))
        return add_answers(block, np.where(named > 0, logs[:, :1], logs[:, 1:] - even) * self.can_err)


def divide_left_out(block: Block, posterior: Floats, above: Floats, below: Floats) -> Floats:
    """Return sums over the answers of each item of the logarithms of quotients of counts without it.

    `above` and `below` are the counts of the block's rows, (n_rows, K).
    """
    from ...kernels.answers import add_left_out

    n_classes = posterior.shape[1]
    evidence = np.empty((block.n_items, n_classes))
    counts = freeze(above), freeze(below), read_only(np.ascontiguousarray(posterior))
    add_left_out(block.codes, block.offsets, block.weight, *counts, evidence, block.width(n_classes))
    return evidence


def own_shares(block: Block, posterior: Floats) -> Floats:
    """Return what each answer of a block has contributed to the counts, (n_answers, K)."""
    own = np.repeat(posterior, np.diff(block.offsets), axis=0)
    return own * block.weight[:, None] if len(block.weight) else own


def add_answers(block: Block, logs: Floats) -> Floats:
    """Return sums over the answers of each item, times their weights, of logs (n_answers, K)."""
    if len(block.weight):
        logs = logs * block.weight[:, None]
    sums = np.zeros((block.n_items, logs.shape[1]))
    answered = np.flatnonzero(np.diff(block.offsets))
    if len(answered):
        sums[answered] = np.add.reduceat(logs, block.offsets[answered], axis=0)
    return sums
