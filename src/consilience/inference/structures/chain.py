"""Chains: the labels of a sequence form a Markov chain, believed as strongly as the coupling says.

With start distribution s, transition matrix T[from, to] and class prior pi, a chain of coupling lambda has the factors

    first position:  (s_k / pi_k)^lambda pi_k            step:  (T[j, k] / pi_k)^lambda pi_k     (0 where forbidden)

so that lambda = 1 is the hidden Markov model, and lambda = 0 gives independent items (constrained, where steps are
forbidden). Start and transitions are estimated from the posteriors of first positions and from those of neighbouring
pairs, the prior from all posteriors; sequences never link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Block
from ...answers.tagging import Transitions
from ...kernels import Floats, freeze, width_of
from ..distributions import fit_distribution, log_of, weigh_logs
from . import Structure, StructureParameters, Summary

# How probable a step is that the rules forbid, where probabilities are calibrated: about as one that was never seen.
BROKEN = 1e-4


@dataclass(frozen=True, eq=False)
class ChainSummary(Summary):
    """Expected counts of one pass over sequences."""

    start: Floats  # posteriors of first positions
    pairs: Floats  # posteriors of neighbouring pairs [from, to]


@dataclass(frozen=True, eq=False)
class ChainParameters(StructureParameters):
    """Factors of the chain for the E-step, and its probabilities for the reader."""

    start_factor: Floats
    pair_factor: Floats
    end_factor: Floats
    mean: Floats  # class prior
    initial: Floats
    transition: Floats
    coupling: float
    bound: float

    def infer_block(self, block: Block, evidence: Floats) -> ChainSummary:
        """Turn the evidence of one block into posteriors, in place."""
        from ...kernels.chain import forward_backward

        n_classes = evidence.shape[1]
        mass, start, pairs = np.zeros(n_classes), np.zeros(n_classes), np.zeros((n_classes, n_classes))
        factors = (self.start_factor, self.pair_factor, self.end_factor)
        log_normaliser = forward_backward(
            block.sequences, evidence, *factors, start, pairs, mass, width_of(n_classes, block.total_size)
        )
        return ChainSummary(log_normaliser, mass, start, pairs)

    def expect_log(self, summary: ChainSummary) -> float:
        """The expected log probability of the labels that a summary has counted."""
        starts = weigh_logs(summary.start, log_of(self.start_factor))
        return starts + weigh_logs(summary.pairs, log_of(self.pair_factor))

    def decode_block(self, block: Block, evidence: Floats) -> NDArray[np.int64]:
        """The most probable sequence of classes."""
        from ...kernels.chain import FAINTEST_CLASS, viterbi

        path = np.zeros(len(evidence), np.int64)
        # The factor of a step that hardly ever happens may be zero. It is no forbidden step.
        start = np.where(self._starts(), np.maximum(self.start_factor, FAINTEST_CLASS), 0.0)
        pair = np.where(self._steps(), np.maximum(self.pair_factor, FAINTEST_CLASS), 0.0)
        factors = (freeze(start), freeze(pair), self.end_factor)
        viterbi(block.sequences, evidence, block.gold, *factors, path, width_of(evidence.shape[1], block.total_size))
        return path

    def point(self) -> Self:
        """The parameters with which the E-step uses the reported probabilities."""
        start = temper(self.initial, self.mean, self.coupling, self._starts())
        pair = temper(self.transition, self.mean, self.coupling, self._steps())
        return replace(self, start_factor=start, pair_factor=pair, bound=0.0)

    def relaxed(self) -> Self:
        """The chain in which a step that is forbidden has the probability `BROKEN`, as far as it is coupled.

        A worker who begins a span too late errs on two tags by one slip. Rules that are never broken turn this into two
        independent proofs, and the true tags become all but impossible. Where a sequence begins and ends, rules hold.
        """
        broken = np.power(BROKEN, self.coupling) * np.power(self.mean, 1 - self.coupling)
        return replace(self, pair_factor=freeze(np.where(self.pair_factor > 0, self.pair_factor, broken)))

    def _starts(self) -> NDArray[np.bool_]:
        """Which classes may begin a sequence."""
        return (self.start_factor > 0) | (self.initial > 0)

    def _steps(self) -> NDArray[np.bool_]:
        """Which class may follow which, [from, to]."""
        return (self.pair_factor > 0) | (self.transition > 0)


@dataclass(frozen=True, eq=False)
class Chain(Structure):
    """A Markov chain of given coupling, with pseudo-counts and perhaps forbidden transitions."""

    coupling: float
    allowed: Transitions

    def update(self, summary: ChainSummary) -> ChainParameters:
        """The chain that expected counts call for."""
        prior_weights, prior, prior_bound = self.estimate_prior(summary.mass)
        start_weights, start, bound = self._estimate(summary.start, self.allowed.start)
        rows = [self._estimate(counts, to) for counts, to in zip(summary.pairs, self.allowed.steps, strict=True)]
        bound += sum(row[2] for row in rows)
        return ChainParameters(
            *self._factors(start_weights, np.stack([row[0] for row in rows]), prior_weights),
            freeze(np.array(prior)),
            freeze(start),
            freeze(np.stack([row[1] for row in rows])),
            self.coupling,
            # Exact at both ends: at coupling 0 only the prior counts, at 1 only the chain.
            self.coupling * bound + (1 - self.coupling) * prior_bound,
        )

    def _estimate(self, counts: Floats, allowed: NDArray[np.bool_]) -> tuple[Floats, Floats, float]:
        """Weights, mean and bound of one distribution over the allowed classes; the others are exactly 0."""
        weights, mean = np.zeros(self.n_classes), np.zeros(self.n_classes)
        weights[allowed], mean[allowed], bound = fit_distribution(counts[allowed], self.smoothing, self.estimation)
        return weights, mean, bound

    def given(self, prior: Floats, initial: Floats | None = None, transition: Floats | None = None) -> ChainParameters:
        """A known chain as parameters, by default one that draws each label from the class prior.

        What is forbidden is set to 0. Where nothing else is left, all that is allowed is equally likely.
        """
        transition = spread_over(self.allowed.steps, prior if transition is None else transition)
        initial = spread_over(self.allowed.start, prior if initial is None else initial)
        reported = (freeze(np.array(prior)), freeze(initial), freeze(transition))
        return ChainParameters(*self._factors(initial, transition, prior), *reported, self.coupling, 0.0)

    def _factors(self, start: Floats, transition: Floats, prior: Floats) -> tuple[Floats, Floats, Floats]:
        """The factors of first positions, steps and endings."""
        return (
            temper(start, prior, self.coupling, self.allowed.start),
            temper(transition, prior, self.coupling, self.allowed.steps),
            freeze(self.allowed.end.astype(np.float64)),
        )

    def one_of_each(self, classes: NDArray[np.bool_]) -> ChainSummary:
        """The summary of one item of each of these classes, with as many steps to all that may follow."""
        start, steps = self.allowed.start & classes, self.allowed.steps & np.outer(classes, classes)
        pairs = steps / np.maximum(steps.sum(axis=1, keepdims=True), 1)
        return ChainSummary(0.0, classes.astype(np.float64), start / max(start.sum(), 1), pairs)

    def summarise(self, block: Block, posterior: Floats) -> ChainSummary:
        """The summary of one block's posteriors from elsewhere; neighbours are taken as independent."""
        first = block.sequences[:-1]
        linked = np.ones(len(posterior), bool)
        linked[first] = False
        after = np.flatnonzero(linked)
        pairs = posterior[after - 1].T @ posterior[after]
        return ChainSummary(
            0.0, posterior.sum(axis=0), posterior[first].sum(axis=0), np.where(self.allowed.steps, pairs, 0.0)
        )


def temper(probability: Floats, prior: Floats, coupling: float, allowed: NDArray[np.bool_]) -> Floats:
    """Return (p / pi)^lambda pi as p^lambda pi^(1 - lambda), which is p or pi itself at the ends; 0 where forbidden."""
    return freeze(np.where(allowed, np.power(probability, coupling) * np.power(prior, 1 - coupling), 0.0))


def spread_over(allowed: NDArray[np.bool_], probability: Floats) -> Floats:
    """Distributions over what is allowed, in proportion to probabilities; evenly where these are all 0."""
    kept = np.where(allowed, probability, 0.0)
    kept = np.where(kept.sum(axis=-1, keepdims=True) > 0, kept, allowed.astype(np.float64))
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))
