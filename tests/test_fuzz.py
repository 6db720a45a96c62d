"""A few dozen cases of each fuzzer. `make robust` runs a few hundred, and `make fuzz` more."""

from __future__ import annotations

import pytest

from effort import rest_robust
from fuzz.harness import run_cases

SURFACES = [("readers", 300, 0.2), ("objects", 600, 0.05), ("crowds", 200, 0.9)]


@pytest.mark.parametrize(
    ("surface", "n_cases", "least_results"),
    rest_robust([*((name, n // 6, least) for name, n, least in SURFACES), *SURFACES], len(SURFACES)),
)
def test_odd_input_gives_sound_results_or_our_own_errors(surface, n_cases, least_results):
    tally = run_cases(surface, range(n_cases), seed=11)
    assert not tally.failures, "\n".join(tally.failures[:5])
    assert tally.outcomes["result"] > least_results * n_cases
    assert tally.outcomes["own error"] > 0
