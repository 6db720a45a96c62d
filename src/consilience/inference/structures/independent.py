"""Independent items: each label is drawn from the class prior pi, on its own.

q_nk = pi_k b_nk / Z_n,   Z_n = sum_k pi_k b_nk,   expected counts: sum_n q_nk

An item of which nothing is known has q_n = pi: it would only confirm what was believed before, and is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...answers.blocks import Block
from ...kernels import Floats, freeze, width_of
from .. import log_of, weigh_logs
from . import Structure, StructureParameters, Summary


@dataclass(frozen=True, eq=False)
class IndependentParameters(StructureParameters):
    """The class prior, as the E-step uses it and as it is reported."""

    weights: Floats
    mean: Floats
    bound: float

    def infer_block(self, block: Block, evidence: Floats) -> Summary:
        """Turn the evidence of one block into posteriors, in place."""
        from ...kernels.answers import normalise_items

        n_classes = evidence.shape[1]
        mass = np.zeros(n_classes)
        log_normaliser = normalise_items(
            evidence, self.weights, block.told, mass, width_of(n_classes, block.total_size)
        )
        return Summary(log_normaliser, mass)

    def expect_log(self, summary: Summary) -> float:
        """Return the expected log probability of the labels that a summary has counted."""
        return weigh_logs(summary.mass, log_of(self.weights))

    def log_prior(self, linked: bool) -> Floats:
        """Return what the class prior says of an item, in logarithms (K,)."""
        return log_of(self.weights)

    def point(self) -> Self:
        """Return the parameters with which the E-step uses the reported prior."""
        return type(self)(self.mean, self.mean, 0.0)


@dataclass(frozen=True, eq=False)
class Independent(Structure[Summary, IndependentParameters]):
    """Independent items whose class prior is learned, with pseudo-counts, or fixed."""

    def update(self, summary: Summary) -> IndependentParameters:
        """Return the class prior that expected counts of classes call for."""
        return IndependentParameters(*self.estimate_prior(summary.mass))

    def given(self, prior: Floats) -> IndependentParameters:
        """Return a known class prior as parameters."""
        return IndependentParameters(freeze(np.array(prior)), freeze(np.array(prior)), 0.0)

    def one_of_each(self, classes: NDArray[np.bool_]) -> Summary:
        """Return the summary of one item of each of these classes."""
        return Summary(0.0, classes.astype(np.float64))

    def summarise(self, block: Block, posterior: Floats) -> Summary:
        """Return the summary of one block's posteriors that came from elsewhere, such as vote shares."""
        return Summary(0.0, (posterior[block.told] if len(block.told) else posterior).sum(axis=0))
