"""Numbers on a scale: averages against plain loops, known crowds, odd input, and the way from a file to a table."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from command_line import run
from consilience.errors import DataWarning, InputError, ParameterError, StoreError
from consilience.inference import averages
from consilience.inference.averages import AVERAGES, Numbers, Scale, learn


def project(**options):
    return cs.simulate.numbers(120, 12, 4, **{"seed": 3, **options})


def fuse(source, **options):
    return cs.fuse(source, **{"kind": "numbers", **options})


def table(*rows):
    return dict(zip(("item", "worker", "label"), map(list, zip(*rows, strict=True)), strict=True))


def root_mean_square(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.fixture(scope="module")
def crowd():
    return project()


@pytest.fixture(scope="module")
def fused(crowd):
    return fuse(crowd.responses, average="robust")


# ---------------------------------------------------------------------------------------------------------- averages


def test_mean_and_median_are_those_of_a_loop(crowd):
    r = crowd.responses
    said = np.asarray(r.labels)[r.label]
    for average, plain in (("mean", np.mean), ("median", np.median)):
        values = cs.Measurement(average=average).fit(r).values_
        np.testing.assert_allclose(values, [plain(said[a:b]) for a, b in zip(r.offsets, r.offsets[1:], strict=False)])


def test_the_weighted_average_is_the_fixed_point_of_a_loop(crowd):
    """Of values by precision, and variances shrunk to the harmonic mean of all."""
    r = crowd.responses
    item, said = r.item_of_answer(), Scale.of(np.asarray(r.labels)[r.label])
    y = said.apply(np.asarray(r.labels)[r.label])
    found = learn(Numbers(item, r.worker, y, np.ones(len(y)), np.full(120, np.nan), 12), "weighted", 1000, 1e-9)
    noise, usual = np.ones(12), 1.0
    for _ in range(1000):
        t, v = np.zeros(120), np.zeros(120)
        for n in range(120):
            weights = [1 / noise[m] for m in r.worker[item == n]]
            t[n], v[n] = np.average(y[item == n], weights=weights), 1 / sum(weights)
        for m in range(12):
            own = r.worker == m
            squares = sum((y[own] - t[item[own]]) ** 2 + v[item[own]])
            noise[m] = (4 * usual + squares) / (4 + own.sum())
        before, usual = usual, 12 / sum(1 / noise)
        if abs(usual - before) < 1e-12:
            break
    np.testing.assert_allclose(found.value, t, atol=1e-6)


def test_quantiles_are_those_of_a_fine_grid(crowd, monkeypatch):
    r = crowd.responses
    coarse = cs.Measurement(average="robust").fit(r).result_
    monkeypatch.setattr(averages, "N_POINTS", 801)
    fine = cs.Measurement(average="robust").fit(r).result_
    width = np.median(fine.high - fine.low)
    assert np.abs(coarse.low - fine.low).max() < 0.03 * width
    assert np.abs(coarse.high - fine.high).max() < 0.03 * width


@pytest.mark.robust
def test_what_is_said_of_made_up_crowds_holds():
    """Values are nearer to the truth than mean and median; intervals hold; the careless are found, and no others."""
    ratios, items, biases, found, wrong = [], [], [], [], []
    for seed in range(5):
        made = cs.simulate.numbers(seed=seed)
        model = fuse(made.responses)
        result, report = model.result_, model.worker_report()
        error = root_mean_square(model.values_ - made.truth)
        plain = [cs.Measurement(average=each).fit(made.responses).values_ for each in ("mean", "median")]
        ratios.append([error / root_mean_square(each - made.truth) for each in plain])
        items.append(np.mean((result.low <= made.truth) & (made.truth <= result.high)))
        low, high = (np.array(report[f"bias_{end}"]) for end in ("low", "high"))
        biases.append(np.mean(((low <= made.bias) & (made.bias <= high))[~made.careless]))
        found.append(np.mean(result.called_careless[made.careless]))
        wrong.append(int(result.called_careless[~made.careless].sum()))
    assert (np.mean(ratios, axis=0) <= 0.75).all(), ratios
    assert 0.87 <= np.mean(items) <= 0.93, items
    assert 0.88 <= np.mean(biases) <= 0.95, biases
    assert np.mean(found) >= 0.8, found
    assert not any(wrong), wrong


def test_bias_and_spread_are_found(crowd, fused):
    report, careful = fused.worker_report(), ~crowd.careless
    assert np.corrcoef(np.array(report["bias"])[careful], crowd.bias[careful])[0, 1] > 0.9
    assert np.corrcoef(np.array(report["spread"])[careful], crowd.spread[careful])[0, 1] > 0.7


def test_one_slip_of_a_digit_moves_the_mean_only():
    rows = [(n, m, float(10 * n + [0, 0.1, -0.1, 0.05][m])) for n in range(30) for m in range(4)]
    rows[0] = (0, 0, 5000.0)
    values = {average: cs.Measurement(average=average).fit(table(*rows)).values_[0] for average in AVERAGES}
    assert values["mean"] > 1000
    assert abs(values["robust"]) < 0.2
    assert fuse(table(*rows)).average_ != "mean"


def test_a_log_scale_is_taken_where_errors_are_ratios(crowd):
    r = crowd.responses
    said = np.exp(np.asarray(r.labels)[r.label] / 10)
    rows = {"item": r.item_of_answer(), "worker": r.worker, "label": said}
    model = fuse(rows)
    assert model.scale_ == "log"
    assert model.values_.min() > 0
    assert fuse(r).scale_ == "linear"
    with pytest.raises(InputError, match="numbers above 0"):
        fuse({**rows, "label": said - 5}, scale="log")


def test_copies_count_as_one():
    made = cs.simulate.numbers(120, 12, 6, careless=0.0, seed=5)
    r = made.responses
    rows = {"item": r.item_of_answer(), "worker": r.worker, "label": np.asarray(r.labels)[r.label]}
    own = rows["worker"] == 0
    copied = {name: [*values, *values[own], *values[own], *values[own]] for name, values in rows.items()}
    n = int(own.sum())
    copied["worker"] = [*rows["worker"], *[20] * n, *[21] * n, *[22] * n]
    alone = fuse(rows, average="robust")
    with pytest.warns(DataWarning, match="4 workers give the same numbers"):
        model = fuse(copied, average="robust")
    assert [model.result_.workers[group].tolist() for group in model.result_.copies] == [[0, 20, 21, 22]]
    assert any(finding.kind == "copies" for finding in model.findings_)
    error, before = (root_mean_square(each.values_ - made.truth) for each in (model, alone))
    assert error < 1.1 * before


# -------------------------------------------------------------------------------------------------------- invariances


def test_order_names_and_units_do_not_matter(crowd, fused):
    r = crowd.responses
    said = np.asarray(r.labels)[r.label]
    order = np.random.default_rng(0).permutation(len(said))
    rows = {"item": r.item_of_answer()[order], "worker": r.worker[order], "label": said[order]}
    other = fuse({**rows, "label": 1000 * rows["label"] - 7}, average="robust")
    values = dict(zip(other.to_frame()["item"].to_pylist(), other.values_, strict=True))
    np.testing.assert_allclose([(values[n] + 7) / 1000 for n in range(120)], fused.values_, rtol=1e-6)


def test_weights_count():
    rows = table(("a", "x", 1.0), ("a", "y", 3.0), ("b", "x", 5.0), ("b", "y", 8.0))
    values = fuse({**rows, "weight": [0.5, 1.0, 1.0, 1.0]}, weight="weight", average="mean").values_
    np.testing.assert_allclose(values, [np.average([1, 3], weights=[0.5, 1]), 6.5])


# -------------------------------------------------------------------------------------------------------- known values


def test_known_values_are_kept_and_place_the_crowd(crowd, fused):
    known = {n: float(crowd.truth[n] - 20) for n in range(8)}  # too few for a line
    model = fuse(crowd.responses, gold=known, average="robust")
    frame = model.to_frame()
    assert frame["value"].to_pylist()[:8] == list(known.values()) == frame["low"].to_pylist()[:8]
    assert frame["known"].to_pylist() == [True] * 8 + [False] * 112
    assert abs(np.mean(model.values_[8:] - fused.values_[8:]) + 20) < 3


def test_ten_known_values_teach_a_line(crowd):
    truth = 7 + 0.4 * crowd.truth  # the crowd is far too high, and too bold
    model = fuse(crowd.responses, gold={n: float(truth[n]) for n in range(40)})
    assert model.result_.line[1] == pytest.approx(0.4, abs=0.1)
    assert root_mean_square(model.values_[40:] - truth[40:]) < 4
    held = (model.result_.low <= truth) & (truth <= model.result_.high)
    assert np.mean(held[40:]) > 0.8
    assert any(finding.kind == "line" for finding in model.findings_)
    fair = fuse(crowd.responses, gold={n: float(crowd.truth[n]) for n in range(40)})
    assert fair.result_.line is None


def test_known_values_that_are_no_numbers(crowd):
    with pytest.raises(InputError, match=r"Known values must be numbers. Got 'high'"):
        fuse(crowd.responses, gold={0: "high"})


# --------------------------------------------------------------------------------------------------------- recognition


def test_numbers_are_recognised_and_classes_are_not(crowd):
    r = crowd.responses
    rows = {"item": r.item_of_answer(), "worker": r.worker, "label": np.asarray(r.labels)[r.label]}
    with pytest.warns(DataWarning, match=r"different numbers. They are fused as numbers.*use kind='labels'"):
        assert isinstance(cs.fuse(rows), cs.Measurement)
    with pytest.warns(DataWarning, match="different numbers"):
        assert isinstance(cs.fuse({**rows, "label": rows["label"].round().astype(int) * 3}), cs.Measurement)
    grades = {**rows, "label": np.clip(rows["label"] // 20, 0, 5).astype(int)}
    assert not isinstance(cs.fuse(grades), cs.Measurement)
    assert cs.fuse(grades, kind="ratings").result_.names.positions is not None
    assert isinstance(fuse(grades), cs.Measurement)
    assert isinstance(cs.fuse(grades, model="measurement"), cs.Measurement)
    assert isinstance(cs.fuse(grades, model=cs.Measurement(average="mean")), cs.Measurement)
    with pytest.raises(ParameterError, match="kind"):
        cs.fuse(grades, kind="number")


def test_numbers_with_an_anchor_are_no_classes():
    """Most sliders are left at 0, and workers often agree on that."""
    rng = np.random.default_rng(0)
    item, worker = np.repeat(np.arange(200), 5), np.tile(np.arange(5), 200)
    said = np.where(rng.random(1000) < 0.6, 0, rng.integers(1, 101, 1000))
    with pytest.warns(DataWarning, match="They are fused as numbers"):
        cs.fuse({"item": item, "worker": worker, "label": said})
    species = rng.integers(0, 200, 200)[item]  # ids of 200 classes, on which most agree
    said = np.where(rng.random(1000) < 0.7, species, rng.integers(0, 200, 1000))
    assert not isinstance(cs.fuse({"item": item, "worker": worker, "label": said}), cs.Measurement)


# ----------------------------------------------------------------------------------------------------------- odd input

ROWS = [(n, m, float(n + m)) for n in range(6) for m in range(3)]


@pytest.mark.parametrize(
    ("rows", "n_items"),
    [
        ([("a", "x", 1.5)], 1),
        ([("a", m, float(m)) for m in range(30)], 1),
        ([(n, "x", float(n)) for n in range(30)], 30),
        ([(n, m, 7.0) for n in range(9) for m in range(3)], 9),
        ([(n, m, 0.0) for n in range(9) for m in range(3)], 9),
        ([(n, m, 1e98 * (n + m + 1)) for n in range(9) for m in range(3)], 9),
        ([(n, m, 1e-300 * (n + m + 1)) for n in range(9) for m in range(3)], 9),
        ([*ROWS, (0, 9, 1e90)], 6),
        ([*ROWS, ("new", 9, -1e90)], 7),
        ([(n, m, float(n % 2)) for n in range(9) for m in range(3)], 9),
        ([("a", "x", "1.5"), ("a", "y", "2"), ("b", "x", " 3e2")], 2),
        ([(n, n, float(n)) for n in range(40)], 40),
    ],
)
@pytest.mark.parametrize("average", ["auto", *AVERAGES])
def test_unusual_numbers_give_finite_values(rows, n_items, average):
    model = cs.Measurement(average=average).fit(table(*rows))
    frame = model.to_frame()
    value, low, high = (np.array(frame[name], float) for name in ("value", "low", "high"))
    assert len(value) == n_items
    assert np.isfinite(value).all()
    told = np.isfinite(low)
    assert (low <= value)[told].all()
    assert (value <= high)[told].all()
    for column in ("bias", "spread", "careless"):
        assert np.isfinite(np.array(model.worker_report()[column])).all()
    model.overview("x"), model.page("x"), model.next_items(3)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([1.0, float("inf"), 2.0], r"must be finite numbers. Got inf"),
        ([1.0, float("nan"), 2.0], r"has no answer|missing|empty"),
        (["1", "high", "2"], r"must be finite numbers. Got 'high'"),
        ([1.0, 1e200, 2.0], r"too large: 1e\+200"),
    ],
)
def test_what_is_no_number(label, message):
    with pytest.raises(InputError, match=message):
        fuse({"item": [1, 2, 3], "worker": [1, 1, 2], "label": label})


@pytest.mark.parametrize("average", AVERAGES)
def test_no_iterations_are_enough_for_a_value(crowd, average):
    model = cs.Measurement(average=average, max_iter=0).fit(crowd.responses)
    assert np.isfinite(model.values_).all()


def test_single_answers_have_no_interval():
    with pytest.warns(DataWarning, match="Each item has one answer"):
        model = fuse(table(*((n, n % 3, float(n)) for n in range(12))))
    assert model.to_frame()["low"].null_count == 12
    assert model.findings_[0].kind == "single answers"


def test_an_item_that_nobody_answered():
    model = cs.Measurement(average="mean").fit(cs.Answers.from_frame(table(*ROWS), items=range(8)))
    frame = model.to_frame()
    assert frame["value"].null_count == frame["low"].null_count == 2
    assert set(model.next_items(2)["item"].to_pylist()) == {6, 7}


def test_other_kinds_are_no_numbers():
    with pytest.raises(InputError, match="no numbers"):
        fuse(cs.simulate.tags(20, seed=1).tags)


# ------------------------------------------------------------------------------------------ files and the command line


def test_save_load_and_update(crowd, fused, tmp_path):
    loaded = cs.load(fused.save(tmp_path / "a.model"))
    assert loaded.to_frame().equals(fused.to_frame())
    assert loaded.worker_report().equals(fused.worker_report())
    r = crowd.responses
    said, item = np.asarray(r.labels)[r.label], r.item_of_answer()
    rows = pa.table({"item": item, "worker": r.worker, "label": said})
    first = fuse(rows.slice(0, 300), average="robust")
    first.update(rows.slice(300))
    np.testing.assert_allclose(first.values_, fused.values_)
    with pytest.raises(InputError):
        first.update({"item": [0], "worker": [r.worker[0]], "label": [1e3]})
    n = len(first.result_.said)
    first.update({"item": [0], "worker": [r.worker[0]], "label": [1e3]}, gold={5: 9.0}, duplicates="last")
    assert len(first.result_.said) == n
    assert first.values_[5] == 9.0


def test_sequences(tmp_path):
    rows = {"sequence": list("aabb") * 2, "position": [0, 1, 0, 1] * 2, "worker": list("xxxxyyyy")}
    model = fuse({**rows, "label": [1.0, 2, 3, 4, 1.5, 2.5, 3.5, 4.5]}, average="mean")
    assert model.to_frame().column_names[:2] == ["sequence", "position"]
    loaded = cs.load(model.save(tmp_path / "a.model"))
    loaded.update({"sequence": ["b"], "position": [1], "worker": ["z"], "label": [9.5]})
    np.testing.assert_allclose(loaded.values_, [1.25, 2.25, 3.25, 6.0])


def test_evaluate(crowd, fused):
    truth = dict(enumerate(crowd.truth.tolist()))
    for labels in (fused, fused.to_frame()):
        found = cs.evaluate(labels, truth)
        error = fused.values_ - crowd.truth
        assert found.absolute_error == pytest.approx(np.abs(error).mean())
        assert found.rmse == pytest.approx(root_mean_square(error))
        assert found.correlation == pytest.approx(np.corrcoef(fused.values_, crowd.truth)[0, 1])
        assert 0.75 < found.coverage <= 1


def test_from_a_file_to_a_table(crowd, tmp_path):
    r = crowd.responses
    rows = {"item": r.item_of_answer(), "worker": r.worker, "mark": np.asarray(r.labels)[r.label].round(1)}
    lines = ["item,worker,mark", *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "marks.csv").write_text("\n".join(lines))
    truth = [f"{n},{value}" for n, value in enumerate(crowd.truth)]
    (tmp_path / "known.csv").write_text("\n".join(["item,label", *truth]))
    paths = {name: tmp_path / name for name in ("values.csv", "workers.csv", "a.model", "page.html", "next.csv")}
    outputs = ["-o", paths["values.csv"], "--save", paths["a.model"], "--workers-report", paths["workers.csv"]]
    result = run("fuse", tmp_path / "marks.csv", "--label", "mark", *outputs, "--report", paths["page.html"])
    assert result.exit_code == 0, result.stderr
    assert "use --kind labels" in result.stderr
    assert "Most disputed items" in result.stdout
    assert "Disputed items" in paths["page.html"].read_text()
    judged = run("evaluate", paths["values.csv"], tmp_path / "known.csv", "--json")
    assert json.loads(judged.stdout)["correlation"] > 0.8
    listed = run("next", paths["a.model"], "-n", "5", "-o", paths["next.csv"])
    assert listed.exit_code == 0, listed.stderr
    assert paths["next.csv"].read_text().startswith("item,label,value,low,high")
    more = run("update", paths["a.model"], "--gold", tmp_path / "known.csv", "-o", paths["values.csv"])
    assert more.exit_code == 0, more.stderr
    assert run("fuse", tmp_path / "marks.csv", "--label", "mark", "--kind", "labels").exit_code == 0


def test_charts_and_notebooks(fused):
    assert cs.chart(fused).rows
    assert "Biases" in cs.chart(fused, "workers").title
    assert cs.chart(fused, "items").rows
    assert "<table" in fused._repr_html_()


def test_sliders_of_label_studio_and_back(tmp_path):
    def answer(who, number):
        result = {"type": "number", "from_name": "quality", "to_name": "text", "value": {"number": number}}
        return {"completed_by": who, "result": [result]}

    said = {1: (3, 4.5, 5), 2: (80, 75.25, 90), 3: (20, 25, 10)}
    tasks = [
        {"id": n, "data": {"text": f"Text {n}."}, "annotations": [answer(who, x) for who, x in enumerate(each, 1)]}
        for n, each in said.items()
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    model = fuse(tmp_path / "export.json", average="median")
    assert model.values_.tolist() == [4.5, 80, 20]
    made = run(
        "fuse", tmp_path / "export.json", "--kind", "numbers", "--average", "median", "-o", tmp_path / "back.json"
    )
    assert made.exit_code == 0, made.stderr
    back = json.loads((tmp_path / "back.json").read_text())
    assert [task["predictions"][0]["result"][0]["value"] for task in back] == [{"number": x} for x in (4.5, 80.0, 20.0)]


def test_means_of_groups(crowd, fused):
    known = {n: float(crowd.truth[n]) for n in range(0, 120, 4)}
    group = {n: "even" if n % 2 == 0 else "odd" for n in range(120)}
    (row,) = cs.estimate(fused, known).rows
    assert row["low"] < crowd.truth.mean() < row["high"]
    assert row["worth"] > row["known"]
    assert {each["group"] for each in fused.estimate(known, by=group).rows} == {"even", "odd"}
    with pytest.raises(ParameterError, match="not fitted to"):
        fuse(crowd.responses, gold=known).estimate(known)
    r = crowd.responses
    answers = {"item": r.item_of_answer(), "worker": r.worker, "label": np.asarray(r.labels)[r.label]}
    more = fuse(cs.Answers.from_frame(answers, items=range(150)), average="robust")  # of which nobody answered some
    (row,) = more.estimate(known | {140: float(crowd.truth[0])}).rows
    assert (row["items"], row["known"]) == (150, 31)
    assert row["low"] < crowd.truth.mean() < row["high"]


def test_numbers_that_are_mapped_from_files(crowd, tmp_path):
    r = crowd.responses
    said = np.asarray(r.labels)[r.label]
    for n, rows in enumerate((slice(0, 200), slice(200, None))):
        part = {"item": r.item_of_answer()[rows], "worker": r.worker[rows], "label": said[rows]}
        pq.write_table(pa.table(part), tmp_path / f"{n}.parquet")
    scanned = cs.scan_answers(str(tmp_path / "*.parquet"), store=tmp_path / "store")
    np.testing.assert_allclose(fuse(scanned, average="robust").values_, fuse(r, average="robust").values_)


@pytest.mark.parametrize("spoil", ["item", "first", "worker", "average"])
def test_damaged_models(fused, tmp_path, spoil):
    result, model = fused.result_, copy(fused)
    wrong = {"item": result.item + 100, "first": np.append(-1, result.item[1:]), "worker": result.worker + 100}
    name = "item" if spoil == "first" else spoil
    model._result = replace(result, **{name: wrong.get(spoil, "mode")})
    path = model.save(tmp_path / "a.model")
    with pytest.raises(StoreError, match="damaged"):
        cs.load(path)
