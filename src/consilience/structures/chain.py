"""Chains: the labels of a sequence form a Markov chain, believed as strongly as `strength` says.

With start distribution s, transition matrix T[from, to] and class prior pi, a chain of strength lambda has the factors

    first position:  (s_k / pi_k)^lambda pi_k            step:  (T[j, k] / pi_k)^lambda pi_k     (0 where forbidden)

so that lambda = 1 is the hidden Markov model, and lambda = 0 gives independent items (constrained, where steps are
forbidden). Start and transitions are estimated from the posteriors of first positions and from those of neighbouring
pairs, the prior from all posteriors; sequences never link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..blocks import Block, freeze
from ..estimation import estimate
from ..kernels.types import Floats
from ..tagging import Transitions


class ChainSummary(NamedTuple):
    """What one pass over sequences adds up to."""

    log_normaliser: float
    mass: Floats  # (K,): posteriors of all positions
    start: Floats  # (K,): posteriors of first positions
    pairs: Floats  # (K, K): posteriors of neighbouring pairs [from, to]


class ChainParameters(NamedTuple):
    """Factors of the chain for the E-step, and its probabilities for the reader."""

    start_factor: Floats
    pair_factor: Floats
    end_factor: Floats
    mean: Floats  # class prior
    initial: Floats
    transition: Floats
    strength: float
    bound: float

    def infer(self, block: Block, evidence: Floats) -> ChainSummary:
        """Turn evidence into posteriors, in place."""
        from ..kernels.chain import forward_backward
        from ..kernels.compile import width_of

        n_classes = evidence.shape[1]
        mass, start, pairs = np.zeros(n_classes), np.zeros(n_classes), np.zeros((n_classes, n_classes))
        log_normaliser = forward_backward(
            block.sequences,
            evidence,
            self.start_factor,
            self.pair_factor,
            self.end_factor,
            start,
            pairs,
            mass,
            width_of(n_classes),
        )
        return ChainSummary(log_normaliser, mass, start, pairs)

    def decode(self, block: Block, evidence: Floats) -> NDArray[np.int64]:
        """Return the most probable sequence of classes."""
        from ..kernels.chain import viterbi
        from ..kernels.compile import width_of

        path = np.empty(len(evidence), np.int64)
        viterbi(
            block.sequences,
            evidence,
            self.start_factor,
            self.pair_factor,
            self.end_factor,
            path,
            width_of(evidence.shape[1]),
        )
        return path

    def point(self) -> ChainParameters:
        """Return the same with the reported probabilities in the E-step."""
        start, pair = chain_factors(self.initial, self.transition, self.mean, self.strength)
        return self._replace(start_factor=start, pair_factor=pair, bound=0.0)


@dataclass(frozen=True)
class Chain:
    """A Markov chain of given strength, with pseudo-counts and perhaps forbidden transitions."""

    n_classes: int
    fixed_prior: Floats | None
    smoothing: float
    estimation: str
    strength: float
    allowed: Transitions

    def update(self, summary: ChainSummary) -> ChainParameters:
        """Return the chain that expected counts call for."""
        everything = np.ones(self.n_classes, bool)
        if self.fixed_prior is None:
            prior_weights, prior, prior_bound = self._estimate(summary.mass, everything)
        else:
            prior_weights, prior, prior_bound = self.fixed_prior, self.fixed_prior, 0.0
        start_weights, start, bound = self._estimate(summary.start, self.allowed.start)
        rows = [self._estimate(counts, to) for counts, to in zip(summary.pairs, self.allowed.steps, strict=True)]
        bound += sum(row[2] for row in rows)
        factors = chain_factors(start_weights, np.stack([row[0] for row in rows]), prior_weights, self.strength)
        return ChainParameters(
            *factors,
            self._ends(),
            freeze(np.array(prior)),
            freeze(start),
            freeze(np.stack([row[1] for row in rows])),
            self.strength,
            # Exact at both ends: at strength 0 only the prior counts, at 1 only the chain.
            self.strength * bound + (1 - self.strength) * prior_bound,
        )

    def _estimate(self, counts: Floats, allowed: NDArray[np.bool_]) -> tuple[Floats, Floats, float]:
        """Return weights, mean and bound of one distribution over the allowed classes; the others are exactly 0."""
        size = int(allowed.sum())
        found = estimate(counts[allowed].reshape(1, size, 1), np.full((1, size, 1), self.smoothing), self.estimation)
        weights, mean = np.zeros(self.n_classes), np.zeros(self.n_classes)
        weights[allowed], mean[allowed] = found.weights.ravel(), found.mean.ravel()
        return weights, mean, found.bound

    def given(self, prior: Floats, initial: Floats, transition: Floats) -> ChainParameters:
        """Return a known chain as parameters; what is forbidden is set to 0."""
        transition = np.where(self.allowed.steps, transition, 0.0)
        initial = np.where(self.allowed.start, initial, 0.0)
        transition = transition / transition.sum(axis=1, keepdims=True)
        initial = initial / initial.sum()
        factors = chain_factors(initial, transition, prior, self.strength)
        reported = (freeze(np.array(prior)), freeze(initial), freeze(transition))
        return ChainParameters(*factors, self._ends(), *reported, self.strength, 0.0)

    def _ends(self) -> Floats:
        return freeze(self.allowed.end.astype(np.float64))

    def summarise(self, block: Block, posterior: Floats) -> ChainSummary:
        """Return the summary of posteriors that came from elsewhere, neighbours taken as independent given them."""
        first = block.sequences[:-1]
        linked = np.ones(len(posterior), bool)
        linked[first] = False
        after = np.flatnonzero(linked)
        pairs = posterior[after - 1].T @ posterior[after]
        return ChainSummary(
            0.0, posterior.sum(axis=0), posterior[first].sum(axis=0), np.where(self.allowed.steps, pairs, 0.0)
        )


def chain_factors(start: Floats, transition: Floats, prior: Floats, strength: float) -> tuple[Floats, Floats]:
    """Return start and step factors of a chain of the given strength; zeros stay zeros."""
    base = np.where(prior > 0, prior, 1.0)  # a class that the prior rules out keeps the chain's own factor

    def temper(probability: Floats) -> Floats:
        tempered = np.power(probability / base, strength) * base
        return freeze(np.where(probability > 0, tempered, 0.0))

    return temper(start), temper(transition)
