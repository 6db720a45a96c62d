"""How much is tried: enough in `make test`, and all of it in `make robust`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings


def examples(n: int, **options: Any) -> settings:
    """Draw `n` examples in `make robust`, and a share of them in `make test` (see the profiles in conftest.py)."""
    return settings(max_examples=max(5, n * settings().max_examples // 100), deadline=None, **options)


def rest_robust(values: Iterable[Any], first: int = 1) -> list[Any]:
    """Return the values of a parameter, of which all but the first ones are left to `make robust`."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=[pytest.mark.robust] * (place >= first))
        for place, value in enumerate(values)
    ]


def all_pairs(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return few combinations of values, one of each axis, in which each two values of two axes meet.

    An error that needs three settings at once is missed; one that needs two is not.
    """
    combinations = [tuple(enumerate(chosen)) for chosen in itertools.product(*(range(len(axis)) for axis in axes))]
    missing = {pair for each in combinations for pair in itertools.combinations(each, 2)}
    found = []
    while missing:
        best = max(combinations, key=lambda each: len(missing.intersection(itertools.combinations(each, 2))))
        missing.difference_update(itertools.combinations(best, 2))
        found.append(tuple(axes[axis][value] for axis, value in best))
    return found
