"""The accuracy of workers over the order of their answers."""

import json

import numpy as np
import pyarrow.csv as pc
import pytest

import consilience as cs
from command_line import run
from consilience.answers.columns import to_values
from consilience.errors import NotFittedError, ParameterError
from consilience.results.drift import reject

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


def test_nobody_falls_if_another_learns():
    table = draw(12, n_items=1500, n_workers=5, accuracy=(0.7, 0.9))
    truth, rng = np.random.default_rng(12).integers(4, size=1500), np.random.default_rng(0)
    mine = table["worker"] == 0
    right = rng.random(len(mine)) < 0.5 + 0.45 * table["item"] / 1500
    learned = np.where(right, truth[table["item"]], (truth[table["item"]] + 1) % 4)
    model = fit(table | {"label": np.where(mine, learned, table["label"])})
    change = look(model)["change"]
    assert who_falls(model) == []
    assert change[0] == pytest.approx(0.3, abs=0.1)
    assert (np.abs(change[1:]) < 0.1).all()


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


def test_equal_times_tell_nothing():
    table = draw(5)
    table["when"] = np.zeros(len(table["item"]))
    assert np.isnan(fit(table).drift_report().to_pandas()["change"]).all()


def test_answers_without_a_time_are_left_out():
    table = draw(5)
    when = np.where(table["item"] % 2 == 0, table["when"], np.nan)
    report = fit(table | {"when": when}).drift_report().to_pandas()
    assert report["answers"].sum() == np.isfinite(when).sum()
    assert report["change"].notna().all()


def test_few_answers_are_not_judged():
    report = fit(draw(6, n_items=70)).drift_report().to_pandas()
    assert report["answers"].max() >= 20 > report["answers"].min()
    assert np.array_equal(report["change"].isna(), report["answers"] < 20)


def test_two_workers_cannot_judge_each_other():
    report = fit(draw(7, n_workers=2, per_item=2)).drift_report().to_pandas()
    assert (report["answers"] == 0).all()
    assert report["change"].isna().all()


@pytest.mark.parametrize("classes", [1, 2])
def test_a_tiny_crowd(classes):
    table = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": [0, classes - 1, 0], "when": [1, 2, 3]}
    assert fit(table).drift_report().to_pydict()["remarks"] == ["", ""]
    one = {name: column[:1] for name, column in table.items()}
    assert fit(one).drift_report().to_pydict()["answers"] == [0]


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


def test_graphs():
    table = draw(6, n_items=2000, falls=[0])
    graph = cs.Graph.from_edges(np.arange(1999), np.arange(1, 2000))
    r = cs.Answers.from_frame(table, order="when")
    assert who_falls(cs.MarkovField(coupling=0.2, **PLAIN).fit(r, graph=graph)) == [0]


def test_silence_as_an_answer():
    table = draw(8, n_items=400)
    model = fit(table, abstain="answer", background=0)
    assert model.drift_report().to_pandas()["change"].notna().all()


def test_known_labels_judge_too():
    """With one other worker, only items of known label say anything."""
    table = draw(9, n_workers=6, per_item=2)
    r = cs.Answers.from_frame(table, order="when")
    model = cs.DawidSkene(**PLAIN).fit(r, gold=dict.fromkeys(range(100), 1))
    assert sum(model.drift_report().to_pydict()["answers"]) == 200


def test_spread_answers_and_weights():
    table = draw(10)
    twice = {name: np.repeat(column, 2) for name, column in table.items()}
    twice["label"] = twice["label"] ^ (np.arange(len(twice["item"])) % 2)
    twice["weight"] = np.tile([0.75, 0.25], len(table["item"]))
    model = fit(twice, weight="weight")
    assert who_falls(model) == []


def test_near_copies_do_not_judge_each_other():
    table = draw(6, n_items=2000, falls=[0])
    mine = table["worker"] == 0
    copied = {name: np.append(column, column[mine]) for name, column in table.items()}
    copied["worker"][len(mine) :] = 20
    with pytest.warns(cs.errors.DataWarning, match="copy each other"):
        model = cs.fuse(cs.Answers.from_frame(copied, order="when"))
    assert model.copies_ == [[0, 20]]
    assert who_falls(model) == [0, 20]


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
    told = json.loads(run("fuse", file, "--columns", "order=when", "--calibration", "none", "--json").stdout)
    assert [each["remarks"] for each in told["least_reliable"] if "falls" in each["remarks"]] != []
    assert [each["kind"] for each in told["findings"] if "falls" in each["problem"]] == ["drift"]
    plain = run("fuse", file, "--calibration", "none", "--report", page)
    assert "falls" not in plain.stdout
    assert "Change of accuracy" not in page.read_text(encoding="utf-8")


def test_the_table_of_workers_has_the_change(tmp_path):
    file, table, model = write_csv(tmp_path / "answers.csv"), tmp_path / "workers.csv", tmp_path / "m"
    changes = ["accuracy_first", "accuracy_last", "change", "change_low", "change_high"]
    arguments = ("--calibration", "none", "--workers-report", table, "--json")
    found = json.loads(run("fuse", file, "--order", "when", *arguments, "--save", model).stdout)
    expected = cs.load(model).drift_report()
    written = pc.read_csv(table)
    assert written.column_names[-5:] == changes
    assert written["worker"][0].as_py() == 0  # those come first who call for attention
    assert written.sort_by("worker").select(changes).equals(expected.sort_by("worker").select(changes))
    tired = next(worker for worker in found["least_reliable"] if worker["worker"] == 0)
    assert tired["change_high"] < 0
    file.write_text("item,worker,label,when\n3000,99,0,2025-01-01T00:00\n")
    assert run("update", model, file, "--workers-report", table, "-q").exit_code == 0
    assert dict(zip(*pc.read_csv(table).select(["worker", "change"]).to_pydict().values(), strict=True))[99] is None
    run("fuse", write_csv(file), *arguments)
    assert not set(changes) & set(pc.read_csv(table).column_names)


def test_what_does_not_go_with_an_order(tmp_path):
    file = write_csv(tmp_path / "answers.csv")
    assert "which does not go with --order" in run("fuse", file, "--order", "when", "--memory", "1GB").stderr
    assert "--order" in run("fuse", file, "--order", "label2").stderr


def test_holm():
    rng = np.random.default_rng(0)
    chances = rng.random(20) * rng.choice([0.01, 1], 20)
    ordered, holds = np.sort(chances), []
    for place, chance in enumerate(ordered):
        if chance * (20 - place) >= 0.05:
            break
        holds.append(chance)
    assert sorted(chances[reject(chances, 20)]) == holds
