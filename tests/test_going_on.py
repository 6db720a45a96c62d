"""Updates, batches and fits one after the other: nothing of one is left in the next, and none is left half done."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import consilience as cs
from consilience.models import latent, updating


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
    assert model.result_.calibrated.calibration == expected.result_.calibrated.calibration
    np.testing.assert_array_equal(model.posterior_, expected.posterior_)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["callback", "conclude"])
def test_an_interrupted_fit_leaves_the_model_as_it_was(where, parts, monkeypatch):
    model = cs.DawidSkene().fit(parts[0])
    before, labels = model.result_, model.labels_.copy()
    actions = {
        "fit": lambda: model.fit(parts[1]),
        "update": lambda: model.update(parts[1]),
        "batch": lambda: model.partial_fit(parts[1]),
    }
    if where == "callback":
        model.set_params(callback=interrupt)
    for name, act in actions.items():
        with monkeypatch.context() as patch:
            if where == "conclude":  # after the loop, in the middle of all that is made of it
                patch.setattr(latent, "find_intervals", interrupt)
            with pytest.raises(KeyboardInterrupt):
                act()
        assert model.result_ is before, name
        np.testing.assert_array_equal(model.labels_, labels)
    # A model that was never fitted is not half fitted.
    new = cs.DawidSkene(callback=interrupt)
    for act in (new.fit, new.partial_fit):
        with pytest.raises(KeyboardInterrupt):
            act(parts[0])
        assert not new.__sklearn_is_fitted__()


def test_an_interrupted_update_leaves_the_model_as_it_was(parts, monkeypatch):
    model = cs.fuse(parts[0])
    before, labels, verdict = model.result_, model.labels_.copy(), model.comparison_
    with monkeypatch.context() as patch:
        patch.setattr(updating, "compare_fused", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.update(parts[1])
    assert model.result_ is before
    assert model.comparison_ is verdict
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.update(parts[1]).comparison_ is not verdict


def test_a_new_label_is_counted(parts):
    model = cs.DawidSkene().fit(parts[0])
    model.update({"item": [0], "worker": ["late"], "label": [7]})
    assert model.update_.n_new_labels == 1
    assert "1 new label" in model.update_.describe()
