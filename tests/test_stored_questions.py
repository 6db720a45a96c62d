"""Several questions whose answers are on disk: what is found is what is found in memory."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import consilience as cs
from command_line import run
from consilience.errors import InputError, ParameterError
from test_questions import NAMES, make_table
from test_store import _small_parts  # noqa: F401 (the fixture is for all tests)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
ROLES = {"item": "HITId", "worker": "WorkerId"}


@pytest.fixture
def file(tmp_path):
    """Answers to two questions; each row lacks one of them now and then."""
    table, _ = make_table(n_items=500, n_workers=15)
    rng = np.random.default_rng(5)
    for name in NAMES:
        table.loc[rng.random(len(table)) < 0.1, name] = None
    table.to_parquet(tmp_path / "batch.parquet")
    return tmp_path / "batch.parquet"


def test_what_is_found_on_disk_is_what_is_found_in_memory(tmp_path, file):
    stores = cs.scan_answers(file, store=tmp_path / "stores", label=NAMES, **ROLES)
    assert list(stores) == NAMES
    assert len({each.folder for each in stores.values()}) == 2
    on_disk, in_memory = cs.fuse(stores), cs.fuse(pd.read_parquet(file), label=NAMES, format="long", **ROLES)
    assert on_disk.shared_.own == pytest.approx(in_memory.shared_.own, abs=1e-7)
    for name in NAMES:
        assert not hasattr(on_disk[name], "labels_")
        np.testing.assert_allclose(on_disk[name].confusion_, in_memory[name].confusion_, atol=1e-7)
    workers, others = (each.worker_report() for each in (on_disk, in_memory))
    assert workers["answers"].to_pylist() == others["answers"].tolist()
    np.testing.assert_allclose(workers["accuracy"].to_numpy(), others["accuracy"], atol=1e-3)
    expected = in_memory.to_frame()
    expected = expected.set_index(list(expected.columns[:2]))
    on_disk.write(tmp_path / "labels.parquet")
    written = pd.read_parquet(tmp_path / "labels.parquet")
    written = written.set_index(list(written.columns[:2])).loc[expected.index]
    assert written["label"].tolist() == expected["label"].tolist()
    np.testing.assert_allclose(written["confidence"], expected["confidence"], atol=1e-6)
    on_disk.write(tmp_path / "labels")
    assert sorted(path.name for path in (tmp_path / "labels").iterdir()) == [f"question={name}" for name in NAMES]
    more = pd.read_parquet(file).head(40)
    saved = cs.load(on_disk.save(tmp_path / "all.model"))
    predicted, wanted = (each.predict_proba(more) for each in (saved, in_memory))
    for name in NAMES:
        np.testing.assert_allclose(predicted[name], wanted[name], atol=1e-6)


def test_the_command_fuses_questions_on_disk(tmp_path, file):
    stored = ["--memory", "2GB", "--store", tmp_path / "stores", "--item", "HITId", "--worker", "WorkerId"]
    labels, model = tmp_path / "labels.csv", tmp_path / "all.model"
    done = run("fuse", file, "--labels", "Answer.*", *stored, "-o", labels, "--save", model, "--json")
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["questions"]) == NAMES
    counts = pd.read_csv(labels)["question"].value_counts()
    assert counts.sum() == sum(pd.read_parquet(file).dropna(subset=name)["HITId"].nunique() for name in NAMES)
    folder = run(
        "fuse", file, "--labels", "Answer.*", *stored, "-o", tmp_path / "labels", "--report", tmp_path / "r.html"
    )
    assert folder.exit_code == 0, folder.output
    assert pa.parquet.read_table(tmp_path / "labels" / f"question={NAMES[0]}").num_rows == counts[NAMES[0]]
    wide = run("fuse", file, "--labels", "Answer.*", *stored, "--wide")
    assert wide.exit_code == 2
    assert "--wide" in wide.output
    twice = run("fuse", file, "--label", NAMES[0], "--label", NAMES[0], *stored)
    assert twice.exit_code == 2
    assert "more than once" in twice.output


def test_clear_errors(tmp_path, file):
    table = pd.read_parquet(file)
    table["empty"] = pd.Series([None] * len(table), dtype="string")
    table.to_parquet(file)
    with pytest.raises(InputError, match="Column 'empty' has no answers"):
        cs.scan_answers(file, store=tmp_path / "stores", label=[NAMES[0], "empty"], **ROLES)
    with pytest.raises(ParameterError, match="a list of different ones"):
        cs.scan_answers(file, store=tmp_path / "stores", label=[NAMES[0], NAMES[0]], **ROLES)
    with pytest.raises(InputError, match="201 questions, and at most 200"):  # before any store is built
        cs.scan_answers(file, store=tmp_path / "others", label=[*NAMES, *map(str, range(199))], **ROLES)
    assert not (tmp_path / "others").exists()
    with pytest.raises(ParameterError, match="is given for 'x'"):
        cs.scan_answers(file, store=tmp_path / "stores", label=NAMES, ordered={"x": True}, **ROLES)
    stores = cs.scan_answers(file, store=tmp_path / "stores", label=NAMES, **ROLES)
    with pytest.raises(ParameterError, match="they are read already"):
        cs.fuse(stores, item="HITId")
