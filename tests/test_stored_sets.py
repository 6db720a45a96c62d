"""Sets of tags on disk: what is found is what is found in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

import consilience as cs
from command_line import run
from consilience.errors import InputError, ParameterError
from consilience.formats.writing import write_table
from test_store import _small_parts  # noqa: F401 (the fixture is for all tests)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def write_sets(path, n_items=150, seed=1):
    """Write sets as cells with a separator; return the path."""
    table = cs.simulate.tags(n_items, n_workers=10, n_tags=5, seed=seed).tags.to_frame()
    cells = [";".join(each) for each in table["labels"].to_pylist()]
    write_table(pa.table({"item": table["item"], "worker": table["worker"], "tags": cells}), path)
    return path


def read_sets(path):
    """Return written sets by item."""
    frame = pa.dataset.dataset(path).to_table().to_pandas().set_index("item").sort_index()
    return frame.assign(labels=frame["labels"].map(list))


def list_answers(r):
    """Return item, tag, worker and answer of each answer, sorted."""
    keys = zip(*(column.to_pylist() for column in r.key_columns().values()), strict=True)
    items, workers, labels = list(keys), r.workers[r.worker].tolist(), r.labels[r.label].tolist()
    return sorted(zip([items[i] for i in r.item_of_answer()], workers, labels, strict=True))


def check_same(tmp_path, on_disk, in_memory):
    """Check that sets, probabilities and workers are the same."""
    assert not on_disk.result_.in_memory
    on_disk.write(tmp_path / "disk")
    in_memory.write(tmp_path / "memory")
    found, wanted = read_sets(tmp_path / "disk"), read_sets(tmp_path / "memory")
    assert list(found) == list(wanted) == list(in_memory.to_frame().column_names[1:])
    assert found.index.equals(wanted.index)
    assert found["labels"].tolist() == wanted["labels"].tolist()
    np.testing.assert_allclose(found.drop(columns="labels"), wanted.drop(columns="labels"), atol=1e-9)
    np.testing.assert_allclose(on_disk.tag_confusion_, in_memory.tag_confusion_, atol=1e-9)
    np.testing.assert_allclose(on_disk.tag_shares_, in_memory.tag_shares_, atol=1e-9)
    assert on_disk.n_iter_ == in_memory.n_iter_


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_sets_on_disk_are_those_in_memory(tmp_path, suffix):
    path = write_sets(tmp_path / f"a.{suffix}")
    stored = cs.scan_answers(path, store=tmp_path / "stores", separator=";")
    tags = cs.read_tags(path, separator=";")
    assert repr(stored) == repr(tags).replace("Tags", "StoredAnswers")
    assert len(stored.partitions) > 1
    check_same(tmp_path, cs.TagSets().fit(stored), cs.TagSets().fit(tags))
    again = cs.scan_answers(path, store=tmp_path / "stores", separator=";")
    assert not again.built


def test_known_sets_and_named_tags_on_disk(tmp_path):
    path = write_sets(tmp_path / "a.csv")
    names = ["z", "e", "d", "c", "b", "a"]
    gold = {item: ["a", "c"] if item % 2 else [] for item in range(0, 60, 3)}
    stored = cs.scan_answers(path, store=tmp_path / "stores", separator=";", classes=names)
    tags = cs.read_tags(path, separator=";", classes=names)
    model = cs.TagSets()
    on_disk, in_memory = (cs.fuse(each, gold=gold, model=model) for each in (stored, tags))
    check_same(tmp_path, on_disk, in_memory)
    assert on_disk.tags_.tolist() == names
    fitted = cs.TagSets().fit(stored, gold=gold)
    np.testing.assert_array_equal(fitted.tag_confusion_, on_disk.tag_confusion_)


def test_duplicates_and_empty_sets_on_disk(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item,worker,tags\n1,ann,x;y\n1,bob,\n1,ann,y\n2,ann, ; \n2,bob,x\n")
    with pytest.raises(InputError, match=r"answers an item again; the first is at .*, line 4"):
        cs.scan_answers(path, store=tmp_path / "stores", separator=";")
    for policy in ("first", "last"):
        for drop in (False, True):
            how = {"separator": ";", "duplicates": policy, "drop_missing": drop}
            stored = cs.scan_answers(path, store=tmp_path / "stores", **how)
            found, wanted = stored.load(), cs.read_tags(path, **how).to_responses()
            assert list_answers(found) == list_answers(wanted)


@pytest.mark.parametrize(
    ("cells", "how", "message"),
    [
        ("x,y", {"separator": ";"}, "The separator ';' never occurs: no cell .* hold ','"),
        ("x;y", {"separator": ";", "classes": ["x"]}, "tags that are not among the classes: 'y'"),
        ("", {"separator": ";"}, "All sets in .* are empty"),
        ("x;y", {"separator": ";", "ordered": True}, "Tags have no order"),
        ("x;y", {"separator": " "}, "separator"),
        ("x;y", {"separator": ";", "duplicates": "all"}, "duplicates"),
    ],
)
def test_errors_of_sets_on_disk(tmp_path, cells, how, message):
    (tmp_path / "a.csv").write_text(f'item,worker,tags\n1,ann,"{cells}"\n2,ann,"{cells}"\n')
    with pytest.raises((InputError, ParameterError), match=message):
        cs.scan_answers(tmp_path / "a.csv", store=tmp_path / "stores", **how)


def test_the_command_fuses_sets_on_disk(tmp_path):
    path, output = write_sets(tmp_path / "a.csv"), tmp_path / "sets.csv"
    options = ["--separator", ";", "--store", str(tmp_path / "stores"), "--memory", "4GB", "-o", str(output)]
    options += ["--save", str(tmp_path / "m.consilience")]
    done = run("fuse", path, *options)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "600 by 10 workers about 150 items" in said
    assert "Sets 150 from 600 that workers gave" in said
    head, *rows = output.read_text().splitlines()
    assert head.startswith("item,labels,confidence,p(a),p(b)")
    assert len(rows) == 150
    assert any(";" in row.split(",")[1] for row in rows)
    assert cs.load(tmp_path / "m.consilience").tags_.tolist() == list("abcde")
