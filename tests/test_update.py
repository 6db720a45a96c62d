"""Models that are updated: the result is that of a fit to all answers."""

from __future__ import annotations

import copy

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.errors import (
    DataWarning,
    InputError,
    NotFittedError,
    ParameterError,
)
from consilience.inference.estimator import renew
from effort import rest_robust

EXACT = {"tol": 1e-10, "max_iter": 5000}


def to_table(r, answers=slice(None)):
    """Return some answers as a table."""
    keys = {name: np.asarray(column)[r.item_of_answer()][answers] for name, column in r.key_columns().items()}
    return keys | {"worker": r.workers[r.worker][answers], "label": r.labels[r.label][answers]}


def join(*tables):
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def split(r, share=0.05, seed=0):
    """Return two tables: most answers, and a few."""
    late = np.random.default_rng(seed).random(r.n_responses) < share
    return to_table(r, ~late), to_table(r, late)


def independent(n_items=400, n_workers=20, seed=1, **keywords):
    accuracy = np.random.default_rng(seed).uniform(0.6, 0.95, n_workers)
    keywords = {"answers_per_item": 5, "n_classes": 3} | keywords
    return cs.simulate.independent(n_items, n_workers=n_workers, accuracy=accuracy, seed=seed, **keywords).responses


def apart(model, full):
    """Return the largest difference of posteriors before calibration, items matched by id."""
    assert sorted(map(str, model.result_.answers.items)) == sorted(map(str, full.result_.answers.items))
    place = full.result_.answers.find_items(list(model.result_.answers.key_columns().values()))
    return np.abs(model.uncalibrated_posterior_ - full.uncalibrated_posterior_[place]).max()


def test_batches_end_where_a_fit_to_all_ends():
    """Half of the answers come first, then 20 batches. Of the workers of each batch, about a tenth are new."""
    n_items, n_workers, n_new = 1200, 160, 5
    r = independent(n_items, n_workers)
    item, rng = r.item_of_answer(), np.random.default_rng(0)
    arrival = np.maximum((np.arange(n_workers) - 60) // n_new + 1, 0)[r.worker]
    batch = np.where(item < n_items * 0.7, 0, rng.integers(1, 21, len(item)))
    batch = np.maximum(batch, arrival)
    tables = [to_table(r, batch == b) for b in range(21)]
    model = cs.DawidSkene(calibration="none", **EXACT).fit(tables[0])
    for b in range(1, 21):
        model.update(tables[b])
        full = cs.DawidSkene(calibration="none", **EXACT).fit(join(*tables[: b + 1]))
        assert apart(model, full) < 1e-3, b
        assert model.result_.answers.items.tolist() == full.result_.answers.items.tolist()


@pytest.mark.parametrize(
    "model",
    [
        cs.DawidSkene(**EXACT),
        cs.DawidSkene(estimation="em", **EXACT),
        cs.DawidSkene(workers="one-coin", **EXACT),
        cs.DawidSkene(smoothing=0.5, prior="uniform", **EXACT),
    ],
    ids=str,
)
def test_an_update_is_a_fit_to_all(model):
    first, later = split(independent())
    updated = renew(model).fit(first).update(later)
    full = renew(model).fit(join(first, later))
    assert apart(updated, full) < 1e-3
    np.testing.assert_allclose(updated.confusion_, full.confusion_, atol=2e-3)
    np.testing.assert_allclose(updated.result_.intervals.workers, full.result_.intervals.workers, atol=5e-3)


@pytest.mark.parametrize(
    ("workers", "coupling"), rest_robust([("confusion", 1.0), ("sequential", 0.5), ("confusion", "learn")], 2)
)
def test_sequences_grow_and_come_new(workers, coupling):
    r = cs.simulate.sequences(60, length=10, n_workers=8, n_classes=3, seed=5).responses
    sequence, position = (np.asarray(column)[r.item_of_answer()] for column in r.key_columns().values())
    late = (sequence >= 58) | ((sequence == 3) & (position < 4)) | ((sequence == 4) & (position > 6))
    late |= (sequence == 5) & (position % 2 == 0)  # it grows in the middle
    settings = {"coupling": coupling, "workers": workers, "tol": 1e-10, "max_iter": 1000, "calibration": "none"}
    model = cs.HiddenMarkov(**settings).fit(to_table(r, ~late)).update(to_table(r, late))
    full = cs.HiddenMarkov(**settings).fit(to_table(r))
    assert model.coupling_ == full.coupling_
    assert apart(model, full) < 1e-3
    position = model.result_.answers.sequences.position
    assert position[model.result_.answers.sequences.of_items() == 5].tolist() == list(range(10))


def test_a_graph_gains_nodes_and_edges():
    crowd = cs.simulate.network(400, n_workers=8, n_classes=3, degree=5, seed=2)
    r, graph = crowd.responses, crowd.graph
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    edges = np.stack([source, graph.neighbours], axis=1)[source < graph.neighbours]
    ids = r.items[edges]
    late = (edges >= 385).any(axis=1)
    answers_late = r.item_of_answer() >= 385
    old_graph = cs.Graph.from_edges(*ids[~late].T, items=r.items[:385])
    settings = {"coupling": 0.7, "calibration": "none", "tol": 1e-10, "max_iter": 2000}
    model = cs.MarkovField(**settings).fit(to_table(r, ~answers_late), graph=old_graph)
    model.update(to_table(r, answers_late), graph=list(map(tuple, ids[late].tolist())))
    full = cs.MarkovField(**settings).fit(to_table(r), graph=graph)
    assert model.result_.given.graph.n_edges == graph.n_edges
    assert apart(model, full) < 1e-3
    # An edge that is given again takes the new weight.
    a, b = ids[0].tolist()
    model.update(graph={"source": [a], "target": [b], "weight": [3.0]})
    assert model.result_.given.graph.to_scipy()[edges[0, 0], edges[0, 1]] == 3.0
    assert model.result_.given.graph.n_edges == graph.n_edges


def test_nothing_new_changes_nothing():
    r = independent()
    model = cs.DawidSkene().fit(r)
    before = copy.copy(model)
    model.update(r)
    assert model.n_iter_ <= before.n_iter_
    assert model.update_.n_repeated == r.n_responses
    assert model.changes().num_rows == 0
    np.testing.assert_allclose(model.uncalibrated_posterior_, before.uncalibrated_posterior_, atol=5e-3)
    np.testing.assert_allclose(model.result_.intervals.workers, before.result_.intervals.workers, atol=1e-2)


def test_known_labels_are_joined_and_the_new_ones_hold():
    r = independent()
    model = cs.DawidSkene().fit(r, gold={r.items[0]: 1, r.items[1]: 2})
    model.update(gold={r.items[1]: 0, r.items[2]: 1})
    assert model.labels_[:3].tolist() == [1, 0, 1]
    assert model.update_.n_gold == 2
    assert model.result_.calibrated.calibration.n_gold == 3
    model.update({"item": ["new"], "worker": [r.workers[0]], "label": [0]})
    assert model.labels_[:3].tolist() == [1, 0, 1]
    assert model.result_.given.gold.codes[:3].tolist() == [1, 0, 1]


def test_changes_are_listed():
    first = {"item": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xxyyxx")}
    model = cs.MajorityVote().fit(first)
    later = {"item": [1, 1, 1, 4], "worker": ["c", "d", "e", "c"], "label": ["y", "y", "y", "x"]}
    model.update(later)
    changes = model.changes()
    assert changes.to_pydict() == {
        "item": [1],
        "label_before": ["x"],
        "label": ["y"],
        "confidence_before": [1.0],
        "confidence": [0.6],
        "new_answers": [3],
    }
    found = model.update_
    assert (found.n_answers, found.n_new_items, found.n_new_workers, found.n_changed) == (4, 1, 3, 1)
    assert found.describe() == "4 new answers, 1 new item, 3 new workers; 1 label changed"


def test_answers_are_corrected_and_retracted():
    r = independent()
    table = to_table(r)
    wrong = table | {"label": np.where(np.arange(r.n_responses) < 20, (table["label"] + 1) % 3, table["label"])}
    model = cs.DawidSkene(calibration="none", **EXACT).fit(wrong)
    first = {name: column[:20].tolist() for name, column in table.items()}
    with pytest.raises(InputError, match="before, with"):
        model.update(first)
    model.update(first, duplicates="last")
    assert model.update_.n_corrected == 20
    assert apart(model, cs.DawidSkene(calibration="none", **EXACT).fit(table)) < 1e-3
    model.update(first | {"label": [None] * 20}, duplicates="last")
    assert model.update_.n_retracted == 20
    rest = {name: column[20:] for name, column in table.items()}
    items = model.result_.answers.items.tolist()
    full = cs.DawidSkene(calibration="none", **EXACT).fit(cs.Answers.from_frame(rest, items=items))
    assert apart(model, full) < 1e-3


def test_new_labels_are_new_classes():
    first, later = split(independent(n_classes=3))
    keep = first["label"] != 2
    old = {name: column[keep] for name, column in first.items()}
    rest = {name: column[~keep] for name, column in first.items()}
    few = {name: column[:8] for name, column in rest.items()}
    model = cs.DawidSkene(calibration="none", **EXACT).fit(old).update(few)
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(model.posterior_).all()
    full = cs.DawidSkene(calibration="none", **EXACT).fit(join(old, few))
    assert (model.labels_ == full.labels_).mean() > 0.98
    model.update(join(later, {name: column[8:] for name, column in rest.items()}))
    assert apart(model, cs.DawidSkene(calibration="none", **EXACT).fit(join(first, later))) < 1e-3


def test_an_updated_model_is_saved_and_goes_on(tmp_path):
    first, later = split(independent(), 0.08)
    half = len(later["item"]) // 2
    parts = [{name: column[:half] for name, column in later.items()}, {n: c[half:] for n, c in later.items()}]
    model = cs.DawidSkene().fit(first).update(parts[0])
    file = model.save(tmp_path / "crowd.model")
    loaded = cs.load(file)
    assert loaded.result_.calibrated.powers == model.result_.calibrated.powers
    with pytest.raises(NotFittedError, match="not updated"):
        loaded.changes()
    model.update(parts[1])
    loaded.update(parts[1])
    assert np.array_equal(model.posterior_, loaded.posterior_)
    assert np.array_equal(model.result_.intervals.expected, loaded.result_.intervals.expected)
    fitted = model.fit(first)
    with pytest.raises(NotFittedError, match="not updated"):
        fitted.changes()


def test_fused_models_are_compared_again():
    first, later = split(independent(n_items=300))
    fused = cs.fuse(first)
    old = fused.comparison_
    fused.update(later)
    full = cs.fuse(join(first, later))
    assert fused.comparison_.n_items == full.comparison_.n_items
    assert fused.comparison_ != old
    assert fused.comparison_.verdict == full.comparison_.verdict
    assert fused.comparison_.held_out_gain == pytest.approx(full.comparison_.held_out_gain, abs=0.02)


def test_what_cannot_be_updated():
    r = independent()
    with pytest.raises(NotFittedError):
        cs.DawidSkene().update(r)
    model = cs.DawidSkene().fit(r)
    with pytest.raises(ParameterError, match="nothing to add"):
        model.update()
    with pytest.raises(ParameterError, match="one of 'error', 'last'"):
        model.update(r, duplicates="first")
    with pytest.raises(ParameterError, match="takes no graph"):
        model.update(graph=[(r.items[0], r.items[1])])
    features = np.random.default_rng(0).normal(size=(r.n_items, 2))
    with pytest.warns(DataWarning, match="not used"):
        with_features = cs.DawidSkene().fit(r, features=features)
    with pytest.raises(ParameterError, match="features or priors"):
        with_features.update(r)
    with_priors = cs.DawidSkene().fit(r, item_prior=np.full((r.n_items, 3), 1 / 3))
    with pytest.raises(ParameterError, match="features or priors"):
        with_priors.update(r)
    project = cs.simulate.spans(20, seed=1)
    of_spans = cs.HiddenMarkov(transitions="bio", coupling=1.0).fit(project.spans)
    for more in ({"responses": project.spans}, {"responses": "absent.json"}, {"gold": {}}):
        with pytest.raises(InputError, match="Spans of texts cannot be added to a fit"):
            of_spans.update(**more)
    with pytest.raises(InputError, match="Spans of texts cannot be added"):
        cs.DawidSkene().fit(r).update(project.spans)
    masks = cs.Masks.from_arrays(np.random.default_rng(1).integers(0, 2, (3, 8, 8)))
    with pytest.raises(InputError, match="Masks cannot be added to a fit"):
        cs.DawidSkene().fit(masks).update({"item": [1], "worker": [1], "label": [1]})


def test_files_and_tables_of_all_kinds(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("task,worker,label\n7,a,x\n1,c,y\n")
    answers = {"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    for more in (path, str(path), pa.table({"task": [7, 1], "worker": ["a", "c"], "label": ["x", "y"]})):
        model = cs.DawidSkene().fit(answers).update(more)
        assert model.result_.answers.items.tolist() == [1, 2, 7]


@pytest.mark.parametrize(
    ("parameters", "worker", "label"),
    [
        ({"start": np.tile(np.eye(3) * 0.7 + 0.1, (8, 1, 1))}, 20, 1),
        ({"prior": [0.2, 0.3, 0.5]}, 2, 3),
        ({"smoothing": np.ones((3, 3))}, 2, 3),
    ],
)
def test_arrays_as_parameters_do_not_grow(parameters, worker, label):
    r = cs.simulate.independent(60, n_workers=8, n_classes=3, answers_per_item=5, seed=1).responses
    model = cs.DawidSkene(**parameters).fit(r)
    before, new = model.posterior_, {"item": [100, 100], "worker": [0, worker], "label": [0, label]}
    (name,) = parameters
    with pytest.raises(ParameterError, match=f"The '{name}' parameter of DawidSkene must be"):
        model.update(new)
    assert np.array_equal(model.posterior_, before)
    assert model.result_.answers.n_responses == r.n_responses
    model.set_params(**{name: getattr(cs.DawidSkene(), name)}).update(new)
    assert model.result_.answers.n_responses == r.n_responses + 2
