"""One call from answers to labels: what it chooses, what it compares, and what it warns of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from command_line import run
from consilience.errors import DataWarning


def test_keywords_that_do_not_exist():
    answers = {"item": [1, 1], "worker": ["a", "b"], "label": ["x", "x"]}
    with pytest.raises(TypeError, match=r"fuse\(\) got an unexpected keyword argument 'modle'"):
        cs.fuse(answers, modle=3)
    with pytest.raises(TypeError, match=r"read_answers\(\) got .* 'wroker'"):
        cs.read_answers("answers.csv", wroker="who")


def test_comparison_is_always_there():
    answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    assert cs.fuse(answers, model="majority").comparison_ is None
    with pytest.warns(DataWarning, match="nothing checks them"):
        assert cs.fuse({"item": [1], "worker": ["a"], "label": ["x"]}).comparison_ is None


# Answers in memory and on disk


def write_answers(path, worker="w3"):
    rng = np.random.default_rng(0)
    item, names = np.repeat(np.arange(40), 3), ["w1", "w2", worker] * 40
    columns = {"item": item, "worker": names, "label": np.array(["a", "b"])[rng.integers(0, 2, 120)]}
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("on_disk", [False, True])
def test_labels_of_an_earlier_fusion_are_told_wherever_answers_are(tmp_path, on_disk):
    path = write_answers(tmp_path / "answers.parquet", worker="consilience")
    source = cs.scan_answers(path, store=tmp_path / "stores") if on_disk else path
    with pytest.warns(cs.errors.ConsilienceWarning) as told:
        cs.fuse(source)
    assert "There are answers of a worker called 'consilience'" in " ".join(str(each.message) for each in told)
    result = run("fuse", path, *(["--memory", "1GB", "--store", tmp_path / "stores"] if on_disk else []))
    assert "There are answers of a worker called 'consilience'" in result.stderr
