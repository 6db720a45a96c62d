"""A real crowd as experiments need it: its answers, and the truth beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.responses import Responses
from ..datasets import Dataset, load


class Crowd(NamedTuple):
    """A dataset with answers.

    Attributes
    ----------
    stored : Dataset
        All of it.
    responses : Responses
        The answers.
    truth : ndarray of str
        The known label of each item, in the order of `responses.items`; empty where there is none.
    """

    stored: Dataset
    responses: Responses
    truth: Any


def load_crowd(name: str) -> Crowd:
    """Read a dataset that has answers."""
    stored = load(name)
    assert stored.responses is not None, f"{name} has no answers"
    truth = np.array([stored.gold.get(key, "") for key in stored.responses.items.tolist()])
    return Crowd(stored, stored.responses, truth)
