"""Levels of a scale in results: median, mean and interval of each item, and labels that are medians."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

import consilience as cs
from command_line import run
from consilience.errors import DataWarning, ParameterError
from consilience.inference.labels import HIGH, LOW, MEDIAN, find_quantile, name_levels, place_levels

# Of few answers `fuse` says that the vote may be as good.
pytestmark = pytest.mark.filterwarnings("ignore:There is no clear difference")
WORDS = ["low", "fair", "good", "top"]
FOUR = ["median", "mean", "low", "high"]


def slow_quantile(row, share):
    """The lowest level with at least this share of the probability at or below it."""
    total = 0.0
    for level, each in enumerate(row):
        total += each
        if total >= share - 1e-12:
            return level
    return len(row) - 1


def draw_ratings(seed=0, n_items=60, n_raters=8, levels=4, per_item=3):
    """Truth, and a table of the ratings of raters with a bias."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(levels, size=n_items)
    bias, spread = rng.normal(0, 0.7, n_raters), rng.uniform(0.5, 1.3, n_raters)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_raters, per_item, False) for _ in range(n_items)])
    seen = truth[item] + bias[worker] + spread[worker] * rng.normal(size=len(item))
    return truth, {"item": item, "worker": worker, "label": np.clip(np.round(seen), 0, levels - 1).astype(int)}


def in_words(table):
    """The same ratings with named levels."""
    return {**table, "label": np.array(WORDS)[table["label"]]}


def read_posterior(frame):
    return np.stack([frame[name] for name in frame if name.startswith("p(")], axis=1)


def check_medians(frame, levels):
    """Compare the labels of a table with medians of its probabilities, and what decided them."""
    posterior = read_posterior(frame)
    median = [slow_quantile(row, 0.5) for row in posterior]
    known = (frame["decided_by"] == "known label").to_numpy()
    assert [levels.index(label) for label in frame["label"][~known]] == [
        level for level, skip in zip(median, known, strict=True) if not skip
    ]
    ruled = ~known & (posterior[np.arange(len(frame)), median] < posterior.max(axis=1))
    assert ((frame["decided_by"] == "median").to_numpy() == ruled).all()
    np.testing.assert_array_equal(
        frame["confidence"], posterior[np.arange(len(frame)), [levels.index(each) for each in frame["label"]]]
    )
    return int(ruled.sum())


@pytest.fixture(scope="module")
def crowd():
    """Ratings in which some medians are not the most probable level, with the fit that has them as labels."""
    truth, table = draw_ratings()
    with warnings.catch_warnings():  # sixty items are too few for a clear difference from the vote
        warnings.simplefilter("ignore")
        return truth, table, cs.fuse(pd.DataFrame(table), ordered=True, label_by="median")


@pytest.mark.parametrize("levels", [1, 2, 3, 7])
@pytest.mark.parametrize("share", [LOW, MEDIAN, HIGH])
def test_quantiles(levels, share):
    rng = np.random.default_rng(levels)
    posterior = rng.dirichlet(np.full(levels, 0.4), 500)
    # Sums that meet a share, or would but for rounding.
    posterior = np.concatenate([posterior, rng.multinomial(10, np.full(levels, 1 / levels), 500) / 10])
    posterior = np.concatenate([posterior, rng.multinomial(20, np.full(levels, 1 / levels), 500) * 0.05])
    found = find_quantile(posterior, share)
    assert found.tolist() == [slow_quantile(row, share) for row in posterior]


@pytest.mark.parametrize(
    ("classes", "positions", "names", "worth"),
    [
        (["1", "2", "3"], (0, 1, 2), [1, 2, 3], [1, 2, 3]),
        ([0.5, 1.0, 1.5], (0, 1, 2), [0.5, 1.0, 1.5], [0.5, 1.0, 1.5]),
        ([0, 1, 5], (0, 1, 2), [0, 1, 5], [0, 1, 5]),
        ([3, 2, 1], (0, 1, 2), [3, 2, 1], [3, 2, 1]),
        ([1, 2, 3], (0, 1, 5), [1, 2, 3], [0, 1, 5]),
        (["no", "yes"], (0, 1), ["no", "yes"], [0, 1]),
        (["1", "many"], (0, 3), ["1", "many"], [0, 3]),
    ],
)
def test_what_levels_are_worth(classes, positions, names, worth):
    classes = np.array(classes, dtype=object if isinstance(classes[0], str) else None)
    assert name_levels(classes).tolist() == names
    assert place_levels(classes, tuple(map(float, positions))).tolist() == worth


def test_numbers_have_numbers(crowd):
    frame = crowd[2].to_frame()
    assert list(frame)[:8] == ["item", "label", "confidence", *FOUR, "p(0)"]
    posterior = read_posterior(frame)
    for name, share in (("median", 0.5), ("low", 0.05), ("high", 0.95)):
        assert frame[name].dtype == np.int64
        assert frame[name].tolist() == [slow_quantile(row, share) for row in posterior]
    np.testing.assert_allclose(frame["mean"], posterior @ np.arange(4))


def test_labels_are_medians_wherever_they_are(crowd, tmp_path):
    """One choice in `fuse` holds in tables, files, predictions, updates, and a model that was saved."""
    _, table, fused = crowd
    frame = fused.to_frame()
    assert check_medians(frame, [0, 1, 2, 3]) > 0
    assert fused.labels_.tolist() == frame["label"].tolist() == frame["median"].tolist()
    assert fused.comparison_.expected_accuracy == pytest.approx(frame["confidence"].mean())
    fused.write(tmp_path / "labels.csv")
    written = pd.read_csv(tmp_path / "labels.csv", keep_default_na=False)
    assert written[["label", "median", "low", "high", "decided_by"]].equals(
        frame[["label", "median", "low", "high", "decided_by"]].astype(
            written[["label"]].dtypes["label"], errors="ignore"
        )
    )
    loaded = cs.load(fused.save(tmp_path / "model"))
    assert loaded.to_frame().equals(frame)
    predicted = loaded.predict(pd.DataFrame(table), as_frame=True)
    check_medians(predicted, [0, 1, 2, 3])
    more = pd.DataFrame(draw_ratings(seed=1, n_items=10)[1])
    updated = loaded.update(more.assign(item=more["item"] + 1000)).to_frame()
    assert len(updated) == len(frame) + 10
    check_medians(updated, [0, 1, 2, 3])


def test_known_labels_between_levels_are_the_nearest(tmp_path):
    """Against a search of all levels; halfway between two it is the lower."""
    _, table = draw_ratings(n_items=150)
    values = [0, 0.2, 0.5, 0.8, 1.5, 2.4999, 2.5, 2.51, 3]
    nearest = [min(range(4), key=lambda level: (abs(level - value), level)) for value in values]
    with pytest.warns(DataWarning, match="7 known labels lie between levels and count as the nearest, the lower"):
        model = cs.DawidSkene(calibration="none").fit(
            cs.Answers.from_frame(table, ordered=True), gold=dict(enumerate(values))
        )
    assert dict(zip(model.result_.answers.items.tolist(), model.labels_.tolist(), strict=True)) == {
        **dict(zip(model.result_.answers.items.tolist(), model.labels_.tolist(), strict=True)),
        **dict(enumerate(nearest)),
    }


@pytest.mark.filterwarnings("ignore:Moments do not determine")
@pytest.mark.parametrize("model", [cs.DawidSkene, cs.MajorityVote, cs.MomentMatching, cs.HiddenMarkov])
def test_medians_need_an_order(model):
    table = in_words(draw_ratings()[1])
    if model is cs.HiddenMarkov:
        table = {"sequence": table["item"] // 10, "position": table["item"] % 10} | table
        table.pop("item")
    with pytest.raises(
        ParameterError, match=r"needs classes in order, and nothing says that these are\..*'fair'.*ordered=True"
    ):
        model(label_by="median").fit(table)
    with pytest.raises(ParameterError, match=r"of .* must be one of 'mode', 'median'\. Got 'mean'"):
        model(label_by="mean").fit(table)


def test_commands(crowd, tmp_path):
    _, table, fused = crowd
    pa.csv.write_csv(pa.table(table), tmp_path / "ratings.csv")
    files = {name: tmp_path / f"{name}.csv" for name in ("medians", "modes", "predicted", "updated", "more")}
    base = ("fuse", tmp_path / "ratings.csv", "--ordered")
    assert run(*base, "--label-by", "median", "-o", files["medians"], "--save", tmp_path / "a").exit_code == 0
    assert run(*base, "-o", files["modes"], "--save", tmp_path / "b").exit_code == 0
    pa.csv.write_csv(pa.table({"item": [1000, 1000], "worker": [0, 1], "label": [1, 2]}), files["more"])
    predicted = run(
        "predict", tmp_path / "b", tmp_path / "ratings.csv", "--label-by", "median", "-o", files["predicted"]
    )
    assert predicted.exit_code == 0, predicted.stderr
    assert run("update", tmp_path / "b", files["more"], "--label-by", "median", "-o", files["updated"]).exit_code == 0
    medians, modes, predicted, updated = (
        pd.read_csv(files[name], keep_default_na=False) for name in ("medians", "modes", "predicted", "updated")
    )
    assert medians["label"].tolist() == fused.labels_.tolist() != modes["label"].tolist()
    for each in (medians, predicted, updated):
        check_medians(each, [0, 1, 2, 3])
    assert cs.load(tmp_path / "b").label_by == "median"
    pa.csv.write_csv(pa.table(in_words(table)), tmp_path / "words.csv")
    failed = run("fuse", tmp_path / "words.csv", "--label-by", "median")
    assert failed.exit_code == 2
    assert "--label-by median needs classes in order" in failed.stderr
    assert "--ordered" in failed.stderr
