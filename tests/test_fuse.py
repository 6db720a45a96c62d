"""One call from answers to labels: what it chooses, what it compares, and what it warns of."""

from __future__ import annotations

import math

import pandas as pd
import polars as pl
import pytest

import consilience as cs
from consilience.errors import InputError
from consilience.models.comparison import Comparison
from consilience.models.fuse import doubt_gain


def test_keywords_that_do_not_exist():
    answers = {"item": [1, 1], "worker": ["a", "b"], "label": ["x", "x"]}
    with pytest.raises(TypeError, match=r"fuse\(\) got an unexpected keyword argument 'modle'. Did you mean 'model'\?"):
        cs.fuse(answers, modle=3)
    with pytest.raises(TypeError, match=r"read_responses\(\) got .* 'wroker'. Did you mean 'worker'\?"):
        cs.read_responses("answers.csv", wroker="who")


def test_comparison_is_always_there():
    answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    assert cs.fuse(answers, model="majority").comparison_ is None
    assert cs.fuse({"item": [1], "worker": ["a"], "label": ["x"]}).comparison_ is None


@pytest.mark.parametrize(
    ("gain", "error", "verdict"),
    [
        (0.3, 0.1, "better"),
        (0.2, 0.1, "no different"),
        (0.15, 0.1, "no different"),
        (-0.15, 0.1, "no different"),
        (-0.3, 0.1, "worse"),
        (0.0, 0.0, "no different"),
        (5.0, float("inf"), "no different"),
    ],
)
def test_one_rule_for_better(gain, error, verdict):
    comparison = Comparison(100, 1, 0.01, gain, error)
    assert comparison.verdict == verdict
    assert comparison.better is (verdict == "better")
    assert "1 of 100 labels differs from majority vote" in str(comparison)
    assert "inf" not in str(comparison)
    for has_gold in (False, True):
        text = str(doubt_gain(comparison, "DawidSkene", has_gold))
        assert ("gold=" in text) is not has_gold
        assert ("within two standard errors" in text) is (verdict != "worse" and math.isfinite(error))


def test_missing_labels_say_how_to_drop_them():
    answers = {"item": [1, 1], "worker": ["a", "b"], "label": ["x", None]}
    with pytest.raises(InputError, match=r"dropna\(subset=\['label'\]\).*keep_default_na=False"):
        cs.fuse(pd.DataFrame(answers))
    with pytest.raises(InputError, match=r"drop_nulls\('label'\)"):
        cs.fuse(pl.DataFrame(answers))
