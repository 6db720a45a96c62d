"""One call from answers to labels: what it chooses, what it compares, and what it warns of."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import consilience as cs
from consilience.errors import InputError


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


def test_missing_labels_say_how_to_drop_them():
    answers = {"item": [1, 1], "worker": ["a", "b"], "label": ["x", None]}
    with pytest.raises(InputError, match=r"dropna\(subset=\['label'\]\).*keep_default_na=False"):
        cs.fuse(pd.DataFrame(answers))
    with pytest.raises(InputError, match=r"drop_nulls\('label'\)"):
        cs.fuse(pl.DataFrame(answers))
