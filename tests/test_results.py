"""What every result promises, whatever was brought: it is the same after saving, can be shown, and has a report."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.errors import NotFittedError
from consilience.results import saving
from fuzz.kinds import demand_sound, list_models

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def assert_same(one, other, path=""):
    """Demand that all of a result that is saved is the same."""
    if hasattr(one, "pictures"):
        return  # a file has the answers about pixels, and not the pictures
    if saving.is_record(type(one)):
        for name in saving.list_fields(type(one)):
            assert_same(getattr(one, name), getattr(other, name), f"{path}/{name}")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for name, each in one.items():
            assert_same(each, other[name], f"{path}/{name}")
    elif isinstance(one, pa.Array):
        assert one.to_pylist() == other.to_pylist(), path
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(np.asarray(other), one, err_msg=path)
    elif path != "/fitted_estimates" or one is not None:  # a vote makes matrices when they are asked for
        assert str(one) == str(other), path


def test_all_is_the_same_after_saving(model, tmp_path):
    loaded = cs.load(model.save(tmp_path / "m.model"))
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    for one, other in zip(list_models(model), list_models(loaded), strict=True):
        assert_same(one.result_, other.result_)
        assert list(map(str, one.findings_)) == list(map(str, other.findings_))
    for read in ("to_frame", "worker_report", "next_items", "judge_report"):
        if hasattr(model, read):
            assert getattr(loaded, read)().equals(getattr(model, read)()), read


def test_spans_may_be_saved_without_texts(fitted, tmp_path):
    fused = fitted["spans"]
    table = fused.to_spans()
    assert cs.load(fused.save(tmp_path / "whole")).to_spans().equals(table)
    bare = cs.load(fused.save(tmp_path / "bare", texts=False))
    assert bare.to_spans().drop_columns("text").equals(table.drop_columns("text"))
    assert bare.to_spans()["text"].null_count == table.num_rows
    with pytest.raises(NotFittedError, match="saved without texts"):
        bare.to_span_set()


def test_numbers_are_sound(model):
    demand_sound(model)


@pytest.mark.parametrize("name", ["plain", "vote", "ratings", "sequences", "tags", "questions", "spans"])
def test_a_report_has_the_same_bytes_after_saving(fitted, name, tmp_path):
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
    cs.report(fitted[name], tmp_path / "a.html")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        cs.report(cs.load(fitted[name].save(tmp_path / "m.model")), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
