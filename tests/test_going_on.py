"""Updates, batches and fits one after the other: nothing of one is left in the next, and none is left half done."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import consilience as cs
from consilience.results import stored, updating


def cut(crowd, *shares):
    """Return the answers in parts, by item."""
    r = crowd.responses
    item = r.item_of_answer()
    ends = np.cumsum([0.0, *shares]) * r.n_items
    columns = {"item": item, "worker": r.worker, "label": r.label}
    return [
        {name: np.asarray(column)[(item >= low) & (item < high)] for name, column in columns.items()}
        for low, high in pairwise(ends)
    ]


@pytest.fixture(scope="module")
def parts():
    crowd = cs.simulate.independent(1200, n_workers=15, n_classes=3, answers_per_item=4, accuracy=(0.5, 0.9), seed=3)
    return cut(crowd, 0.9, 0.03, 0.03, 0.04)


@pytest.mark.parametrize("asked", ["in between", "never", "by saving"])
def test_what_speaks_for_the_power_survives_updates(asked, parts, tmp_path):
    first, second, third, last = parts
    model = cs.DawidSkene().fit(first).update(second)
    if asked == "in between":
        model.worker_report()
    if asked == "by saving":
        model = cs.load(model.save(tmp_path / "a.model"))
    model = model.update(third).partial_fit(last)
    expected = cs.DawidSkene().fit(first).update(second)
    expected.worker_report()
    expected = expected.update(third).partial_fit(last)
    assert model.calibration_ == expected.calibration_
    np.testing.assert_array_equal(model.posterior_, expected.posterior_)


def test_an_interrupted_update_leaves_the_model_as_it_was(parts, monkeypatch):
    model = cs.fuse(parts[0])
    labels, verdict = model.labels_.copy(), model.comparison_

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(updating, "judge", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.update(parts[1])
    assert model.comparison_ is verdict
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.update(parts[1]).comparison_ is not verdict


def test_an_interrupted_batch_leaves_the_model_as_it_was(parts, monkeypatch):
    model = cs.DawidSkene().partial_fit(parts[0])
    before = model.worker_report()["answers"].to_pylist()
    with monkeypatch.context() as patch:
        patch.setattr(cs.DawidSkene, "_settle_fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(parts[1])
    assert model.worker_report()["answers"].to_pylist() == before
    assert model._n_batches == 1
    assert len(model.partial_fit(parts[1]).labels_) == len(np.unique(parts[1]["item"]))


def test_a_batch_forgets_what_an_update_changed(parts):
    model = cs.DawidSkene().fit(parts[0]).update(parts[1])
    assert model.update_.n_new_items > 0
    model.partial_fit(parts[2])
    with pytest.raises(cs.errors.NotFittedError):
        _ = model.update_


def test_a_parameter_that_was_changed_counts_in_the_next_update(parts):
    model = cs.DawidSkene(calibration=0.5).fit(parts[0])
    model.set_params(calibration="hidden answers")
    assert model.update(parts[1]).calibration_.n_hidden > 0


def test_a_fit_on_disk_keeps_nothing_of_an_earlier_update(parts, monkeypatch, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(stored, "FEW", 0)
    pq.write_table(pa.table(parts[0]), tmp_path / "a.parquet")
    answers = cs.scan_responses(tmp_path / "a.parquet", store=tmp_path / "stores")
    model = cs.DawidSkene().fit(parts[0]).update(parts[1])
    model.fit(answers)
    assert "answers came" not in model.explain_calibration()
    with pytest.raises(cs.errors.NotFittedError):
        _ = model.update_
    assert cs.load(cs.DawidSkene().fit(answers).save(tmp_path / "b.model")).n_iter_ == model.n_iter_


def test_a_new_label_is_counted(parts):
    model = cs.DawidSkene().fit(parts[0])
    model.update({"item": [0], "worker": ["late"], "label": [7]})
    assert model.update_.n_new_labels == 1
    assert "1 new label" in model.update_.describe()
