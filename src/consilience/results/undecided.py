r"""Labels that are left open because they are not certain enough.

Of the labels whose confidence :math:`c_n` is at least t, :math:`\sum_{n: c_n \geq t} (1 - c_n)` are expected to be
wrong, as far as the probabilities are right. Confidences that differ from t by rounding only are kept.

Without known labels the probabilities are too high where workers err together. `benchmarks/review.py` compares the
expectation with the truth on real crowds, and `describe` says what was found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column
from ..arguments import is_number
from ..errors import parameter_error, plural
from ..kernels.types import Floats
from .fusion import Labelled, Labels

ROUNDING = 1e-12
# For calibration by hidden answers alone; `tests/test_review_page.py` compares it with what was measured.
NOT_SEEN = (
    "Without known labels this is often too low: on seven of eight real crowds, about twice as many or more were wrong."
)


class Undecided(NamedTuple):
    """How many labels are certain enough to be kept, and how many of these are expected to be wrong.

    Attributes
    ----------
    confidence : float
        The least confidence of a label that is kept.
    n_items : int
        How many items there are.
    n_kept : int
        How many labels are kept.
    expected_errors : float
        How many of these are wrong, by their probabilities.
    n_gold : int or None
        How many known labels the probabilities were calibrated by; None if they are not calibrated.
    """

    confidence: float
    n_items: int
    n_kept: int
    expected_errors: float
    n_gold: int | None

    @property
    def n_open(self) -> int:
        """How many labels are left open."""
        return self.n_items - self.n_kept

    @property
    def share_kept(self) -> float:
        """Share of the items whose label is kept."""
        return self.n_kept / self.n_items

    @property
    def expected_error_rate(self) -> float:
        """Share of the kept labels that are wrong, by their probabilities; NaN if none is kept."""
        return self.expected_errors / self.n_kept if self.n_kept else float("nan")

    def describe(self) -> str:
        """Say it in words."""
        least = f"with a confidence of at least {self.confidence:g}"
        if not self.n_kept:
            return f"No label has a confidence of at least {self.confidence:g}. All {self.n_items:,} are left open."
        verb = "is" if self.n_kept == 1 else "are"
        kept = f"{self.n_kept:,} of {plural(self.n_items, 'label')} ({self.share_kept:.1%}) {verb} kept, {least}."
        number = f"{self.expected_errors:,.0f}" if self.expected_errors >= 10 else f"{self.expected_errors:.1f}"
        wrong = f"By their probabilities, {self.expected_error_rate:.1%} of these are wrong (about {number})."
        return f"{kept} {wrong} {self._doubt()}".rstrip()

    def _doubt(self) -> str:
        """Say how far to believe the expectation."""
        if self.n_gold is None:
            return "These probabilities are not calibrated, so this can be far off."
        return "" if self.n_gold else NOT_SEEN


def check_confidence(value: object, name: str, owner: str) -> float:
    """Return the least confidence of a label that is kept, after a check; `name` is the parameter of `owner`."""
    if not is_number(value) or not 0 <= value <= 1:
        raise parameter_error(name, owner, "a number from 0 to 1", value)
    return float(value)


def find_open(confidence: Floats, least: float) -> NDArray[np.bool_]:
    """Tell which labels are left open.

    >>> find_open(np.array([0.1 + 0.6, 0.69, 1.0]), 0.7)
    array([False,  True, False])
    """
    return np.asarray(confidence < least - ROUNDING)


def count_kept(labelled: Labelled, least: float, n_gold: int | None) -> Undecided:
    """Return how many labels are kept, and how many of these are expected to be wrong."""
    n_kept, n_wrong = 0, 0.0
    for part in labelled.parts():
        confidence = part.confidence
        kept = confidence[~find_open(confidence, least)]
        n_kept, n_wrong = n_kept + len(kept), n_wrong + float(np.sum(1.0 - kept))
    return Undecided(least, labelled.n_items, n_kept, n_wrong, n_gold)


def list_undecided(labels: Labels, least: float | None) -> dict[str, Column]:
    """Return the columns of a table of labels, of which those with a lower confidence are left open."""
    columns = labels.list_columns()
    if least is not None:
        columns["label"] = leave_open(columns["label"], find_open(labels.confidence, least))
    return columns


def leave_open(labels: Column, is_open: NDArray[np.bool_]) -> Column:
    """Return the labels without those that are left open."""
    if isinstance(labels, np.ndarray):
        labels = labels.copy()
        labels[is_open] = None
        return labels
    return pc.if_else(pa.array(is_open), pa.scalar(None, labels.type), labels)
