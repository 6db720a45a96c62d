r"""Sets of tags: each tag fits a share of the things, whatever the other tags of a thing are.

The items are all tags of one thing, then those of the next. With evidence :math:`b_{it}(y)` of the answers about tag t
of thing i, and the share :math:`\theta_t` of things that it fits,

.. math:: P(y_{it} = 1) = \frac{\theta_t b_{it}(1)}{\theta_t b_{it}(1) + (1 - \theta_t) b_{it}(0)}

Shares have a Beta prior of `STRENGTH` pseudo-counts around the share of yes among the votes about the tag. The
estimates are modes, so that the objective never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import xlogy

from ...answers.answers import Block
from ...kernels import Floats, freeze
from . import Structure, StructureParameters, Summary

# Pseudo-counts of the share of a tag.
STRENGTH = 2.0


@dataclass(frozen=True, eq=False)
class SetsSummary(Summary):
    """Expected counts of one pass over sets."""

    fits: Floats  # expected number of things that each tag fits


@dataclass(frozen=True, eq=False)
class SetsParameters(StructureParameters):
    """The share of things that each tag fits."""

    shares: Floats
    mean: Floats
    bound: float

    def infer_block(self, block: Block, evidence: Floats) -> SetsSummary:
        """Turn the evidence of one block, (n T, 2), into posteriors in place."""
        by_thing = evidence.reshape(-1, len(self.shares), 2)
        by_thing *= np.stack([1 - self.shares, self.shares], axis=1)
        total = by_thing.sum(axis=2)
        by_thing[..., 1] = np.divide(by_thing[..., 1], total, out=np.zeros_like(total), where=total > 0)
        by_thing[..., 0] = 1 - by_thing[..., 1]
        with np.errstate(divide="ignore"):
            return sum_up(block, by_thing[..., 1], float(np.log(total).sum()))

    def point(self) -> Self:
        """The same: the E-step uses what is reported."""
        return self


@dataclass(frozen=True, eq=False)
class Sets(Structure):
    """Tags whose shares are learned.

    Attributes
    ----------
    base : array (T,)
        Around which share of the things each tag is expected to fit.
    """

    base: Floats = field(default_factory=lambda: freeze(np.zeros(0)))

    def update(self, summary: SetsSummary) -> SetsParameters:
        """The shares that expected counts call for."""
        return self.make((summary.fits + STRENGTH * self.base) / (summary.mass.sum() / len(self.base) + STRENGTH))

    def make(self, shares: Floats) -> SetsParameters:
        """Parameters with these shares."""
        pseudo = STRENGTH * self.base
        density = float((xlogy(pseudo, shares) + xlogy(STRENGTH - pseudo, 1 - shares)).sum())
        fitting = float(shares.mean())
        return SetsParameters(freeze(np.array(shares)), freeze(np.array([1 - fitting, fitting])), density)

    def given(self, prior: Floats) -> SetsParameters:
        """The shares around which those of tags are expected."""
        return self.make(self.base)

    def summarise(self, block: Block, posterior: Floats) -> SetsSummary:
        """The summary of one block's posteriors that came from elsewhere, such as vote shares."""
        return sum_up(block, posterior[:, 1].reshape(-1, len(self.base)), 0.0)


def sum_up(block: Block, fitting: Floats, log_normaliser: float) -> SetsSummary:
    """Expected counts of things whose tags fit with some probability, (n, T); those without answers do not count."""
    if len(block.answered):
        fitting = fitting[block.answered.reshape(fitting.shape).any(axis=1)]
    n_fitting = float(fitting.sum())
    mass = np.array([fitting.size - n_fitting, n_fitting])
    return SetsSummary(log_normaliser, mass, fitting.sum(axis=0))
