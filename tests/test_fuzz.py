"""A few hundred cases of each fuzzer. `make fuzz` runs more of them."""

from __future__ import annotations

import pytest

from fuzz.harness import run_cases


@pytest.mark.robust
@pytest.mark.parametrize(
    ("surface", "n_cases", "least_results"),
    [("crowds", 200, 0.85), ("kinds", 200, 0.3)],
)
def test_odd_input_gives_sound_results_or_our_own_errors(surface, n_cases, least_results):
    tally = run_cases(surface, range(n_cases), seed=11)
    assert not tally.failures, "\n".join(tally.failures[:5])
    assert tally.outcomes["result"] > least_results * n_cases
    assert tally.outcomes["own error"] > 0
