"""Dawid-Skene: items are independent of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...answers.arrays import Crowd
from ...answers.responses import Responses
from ..structures.independent import Independent, IndependentParameters
from .base import LatentRecipe


@dataclass(frozen=True, eq=False, kw_only=True)
class IndependentRecipe(LatentRecipe):
    """How `DawidSkene` is fitted."""

    model = "DawidSkene"
    structure_type = IndependentParameters
    takes_disk = True

    def make_structure(self, r: Crowd) -> Independent:
        """Return the class prior as a structure."""
        return Independent(*self.structure_parts(r))

    def find_raised(self, r: Responses) -> NDArray[np.bool_]:
        """Tell of which items the posterior is raised to a power."""
        if r.silence_counts:
            return super().find_raised(r)
        # Of an item without answers all that speaks is the class prior, and what else is known of the item. There are
        # no errors that workers could share.
        return np.asarray(r.offsets[1:] > r.offsets[:-1])
