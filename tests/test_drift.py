"""The accuracy of workers over the order of their answers."""

import json

import numpy as np
import pytest

import consilience as cs
from command_line import run
from consilience.answers.columns import to_values
from consilience.errors import NotFittedError, ParameterError

PLAIN = {"calibration": "none"}


def draw(
    seed, n_items=400, n_workers=20, n_classes=4, per_item=5, falls=(), hard=0.0, shift=False, accuracy=(0.6, 0.95)
):
    """Return answers of workers who answer their items in order; those in `falls` go from .9 to .6."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    if shift:
        truth = (rng.random(n_items) < np.arange(n_items) / n_items).astype(int)
    workers = np.argsort(rng.random((n_items, n_workers)), axis=1)[:, :per_item]
    item, worker = np.repeat(np.arange(n_items), per_item), workers.ravel()
    matrix = np.repeat(rng.uniform(*accuracy, n_workers)[:, None], n_classes, axis=1)
    if shift:
        matrix = np.clip(matrix + rng.uniform(-0.2, 0.2, matrix.shape), 0.3, 0.97)
    right = matrix[worker, truth[item]]
    right = np.where(np.isin(worker, falls), 0.9 - 0.3 * item / n_items, right)
    share = hard * item / n_items
    right = (1 - share) * right + share / n_classes
    wrong = (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes
    return {
        "item": item,
        "worker": worker,
        "label": np.where(rng.random(len(item)) < right, truth[item], wrong),
        "when": item,
    }


def fit(table, model=None, **keywords):
    return (model or cs.DawidSkene(**PLAIN)).fit(cs.Answers.from_frame(table, order="when", **keywords))


def look(model):
    """Return the columns of the drift report as arrays, without rounding."""
    model.worker_report()
    return {name: to_values(column) for name, column in model.result_.drift.items()}


def who_falls(model):
    return np.flatnonzero(look(model)["remarks"] != "").tolist()


def test_a_fall_is_found_and_nobody_else_is_named():
    model = fit(draw(6, n_items=2000, falls=[0]))
    report = model.drift_report().to_pydict()
    assert report["remarks"][0].startswith("accuracy falls from 8")
    assert not any(report["remarks"][1:])
    assert report["accuracy_first"][0] == pytest.approx(0.85, abs=0.06)
    assert report["accuracy_last"][0] == pytest.approx(0.65, abs=0.06)
    assert report["change_low"][0] < -0.2 < report["change_high"][0] < 0
    assert model.worker_report().to_pydict()["remarks"] == report["remarks"]


@pytest.mark.parametrize(
    "crowd",
    [
        {},
        {"n_items": 100},
        {"n_classes": 2, "accuracy": (0.85, 0.99)},
        {"hard": 0.7, "n_items": 2000},
        {"hard": 0.6, "per_item": 3, "n_items": 2000},
        {"shift": True},
        {"n_workers": 400, "n_items": 2000},
        {"accuracy": (0.05, 0.95)},
    ],
    ids=str,
)
def test_nobody_is_named_by_chance(crowd):
    covered, n_named = [], 0
    for seed in range(4):
        found = look(fit(draw(seed, **crowd)))
        told = ~np.isnan(found["change"])
        covered.append(np.mean((found["change_low"] <= 0)[told] & (found["change_high"] >= 0)[told]))
        n_named += bool(any(found["remarks"]))
    assert np.mean(covered) >= 0.93
    assert n_named <= 1


def test_the_unit_of_time_does_not_matter():
    table = draw(4)
    report = fit(table).drift_report().to_pydict()
    rows = np.random.default_rng(0).permutation(len(table["item"]))
    moved = {name: column[rows] for name, column in table.items()}
    moved["when"] = np.exp(moved["when"] / 100)
    # The posteriors of items in another order differ by rounding.
    again = fit(moved).drift_report().to_pydict()
    for name in ("change", "change_low", "accuracy_first"):
        assert np.allclose(report[name], again[name], atol=1e-6)


def test_answers_without_a_time_are_left_out():
    table = draw(5)
    when = np.where(table["item"] % 2 == 0, table["when"], np.nan)
    report = fit(table | {"when": when}).drift_report().to_pandas()
    assert report["answers"].sum() == np.isfinite(when).sum()
    assert report["change"].notna().all()


@pytest.mark.parametrize(
    "model",
    [cs.MajorityVote(), cs.MomentMatching(), cs.DawidSkene(workers="one-coin", **PLAIN), cs.DawidSkene()],
    ids=repr,
)
def test_all_models_find_a_fall(model):
    report = fit(draw(6, n_items=2000, falls=[0]), model).drift_report().to_pydict()
    assert [bool(remark) for remark in report["remarks"]] == [True] + [False] * 19


def in_sequences(table, length=20):
    item = table["item"]
    return {"sequence": item // length, "position": item % length} | {
        name: table[name] for name in ("worker", "label", "when")
    }


def test_sequences():
    model = fit(in_sequences(draw(6, n_items=2000, falls=[0])), cs.HiddenMarkov(**PLAIN))
    assert who_falls(model) == [0]


def test_without_an_order(tmp_path):
    table = draw(11, n_items=60)
    model = cs.DawidSkene(**PLAIN)
    with pytest.raises(NotFittedError):
        model.drift_report()
    model.fit({name: table[name] for name in ("item", "worker", "label")})
    with pytest.raises(ParameterError, match=r"not known in which order.*order="):
        model.drift_report()
    loaded = cs.load(fit(table).save(tmp_path / "bare", answers=False))
    with pytest.raises(NotFittedError, match="holds no answers"):
        loaded.drift_report()
    loaded.worker_report()


def test_saved_and_updated(tmp_path):
    table = draw(6, n_items=2000, falls=[0])
    first = table["item"] < 400
    model = fit({name: column[first] for name, column in table.items()})
    assert who_falls(model) == []
    loaded = cs.load(model.save(tmp_path / "model"))
    assert loaded.drift_report().to_pydict() == model.drift_report().to_pydict()
    loaded.update({name: column[~first] for name, column in table.items()})
    assert loaded.worker_report().to_pydict()["remarks"][0].startswith("accuracy falls from 8")


def write_csv(path):
    table = draw(6, n_items=2000, falls=[0])
    day = np.datetime64("2024-05-01T09:00") + table["when"]
    rows = zip(table["item"], table["worker"], table["label"], day, strict=True)
    path.write_text("\n".join(["item,worker,label,when", *(",".join(map(str, row)) for row in rows)]))
    return path


def test_on_the_command_line(tmp_path):
    file, page = write_csv(tmp_path / "answers.csv"), tmp_path / "page.html"
    result = run("fuse", file, "--order", "when", "--calibration", "none", "--report", page)
    assert result.exit_code == 0
    assert "falls from 8" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert "The accuracy of 1 worker falls over time (0: 8" in text
    assert "Change of accuracy" in text
    assert "compared with others" in text
    told = json.loads(run("fuse", file, "--order", "when", "--calibration", "none", "--json").stdout)
    assert [each["remarks"] for each in told["least_reliable"] if "falls" in each["remarks"]] != []
    assert [each["kind"] for each in told["findings"] if "falls" in each["problem"]] == ["drift"]
    plain = run("fuse", file, "--calibration", "none", "--report", page)
    assert "falls" not in plain.stdout
    assert "Change of accuracy" not in page.read_text(encoding="utf-8")
