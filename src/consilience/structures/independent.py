"""Independent items: each label is drawn from the class prior pi, on its own.

q_nk = pi_k b_nk / Z_n,   Z_n = sum_k pi_k b_nk,   expected counts: sum_n q_nk
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..data.blocks import Block
from ..distributions import estimate
from ..kernels.types import Floats, freeze


class IndependentSummary(NamedTuple):
    """What one pass over items adds up to."""

    log_normaliser: float  # sum_n log Z_n
    mass: Floats  # (K,): sum_n q_nk


class IndependentParameters(NamedTuple):
    """The class prior, as the E-step uses it and as it is reported."""

    weights: Floats
    mean: Floats
    bound: float

    def infer(self, block: Block, evidence: Floats) -> IndependentSummary:  # noqa: ARG002 (chains need the block)
        """Turn evidence into posteriors, in place."""
        from ..kernels.compile import width_of
        from ..kernels.independent import normalise_items

        mass = np.zeros(evidence.shape[1])
        log_normaliser = normalise_items(evidence, self.weights, mass, width_of(evidence.shape[1]))
        return IndependentSummary(log_normaliser, mass)

    @classmethod
    def restored(cls, **fields: Any) -> IndependentParameters:
        """Return parameters as they were saved."""
        return cls(**fields)

    def point(self) -> IndependentParameters:
        """Return the same with the reported prior in the E-step: a proper likelihood."""
        return IndependentParameters(self.mean, self.mean, 0.0)


@dataclass(frozen=True)
class Independent:
    """Independent items whose class prior is learned, with pseudo-counts, or fixed."""

    n_classes: int
    fixed_prior: Floats | None
    smoothing: float
    estimation: str

    def update(self, summary: IndependentSummary) -> IndependentParameters:
        """Return the class prior that expected counts of classes call for."""
        if self.fixed_prior is not None:
            return self.given(self.fixed_prior)
        found = estimate(
            summary.mass.reshape(1, -1, 1), np.full((1, self.n_classes, 1), self.smoothing), self.estimation
        )
        return IndependentParameters(freeze(found.weights.ravel()), freeze(found.mean.ravel()), found.bound)

    def given(self, prior: Floats) -> IndependentParameters:
        """Return a known class prior as parameters."""
        return IndependentParameters(freeze(np.array(prior)), freeze(np.array(prior)), 0.0)

    def summarise(self, block: Block, posterior: Floats) -> IndependentSummary:  # noqa: ARG002
        """Return the summary of posteriors that came from elsewhere, such as vote shares."""
        return IndependentSummary(0.0, posterior.sum(axis=0))
