"""Answers on disk: what a store holds, and that fits to it are those in memory."""

from __future__ import annotations

import json
import os
import weakref
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

import consilience as cs
from consilience.errors import InputError, NotFittedError, ParameterError, StoreError
from consilience.formats.reading import read_table
from consilience.inference import hidden_fits, sources
from consilience.results import fitting, label_files
from consilience.storage import building, layout, partitioning
from consilience.storage.answers import add_gold
from consilience.storage.layout import ArrayFile, write_arrays
from consilience.storage.partitioning import GrowingVocabulary, find_partitions

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """Let small data be many partitions and blocks, and large enough to be fitted on disk."""
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 700)
    monkeypatch.setattr("consilience.answers.arrays.BLOCK_SIZE", 250)
    for module in (sources, hidden_fits):
        monkeypatch.setattr(module, "MOST_ANSWERS", 1500)
    monkeypatch.setattr(fitting, "FEW", 1000)


def crowd(n_items=500, n_workers=12, n_classes=3, per_item=5, seed=0, in_sequences=False):
    """Return a table of answers in random order, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    if in_sequences:
        for i in range(1, n_items):
            truth[i] = truth[i - 1] if rng.random() < 0.7 else truth[i]
        pairs = np.stack([rng.choice(n_workers, per_item, replace=False) for _ in range(n_items // 10)])
        worker = np.repeat(pairs, 10, axis=0).ravel()
    else:
        worker = np.stack([rng.choice(n_workers, per_item, replace=False) for _ in range(n_items)]).ravel()
    item = np.repeat(np.arange(n_items), per_item)
    right = rng.random(len(item)) < rng.uniform(0.5, 0.95, n_workers)[worker]
    label = np.where(right, truth[item], rng.integers(0, n_classes, len(item)))
    columns = {"sequence": item // 10, "position": item % 10} if in_sequences else {"item": item}
    columns |= {"worker": [f"w{m}" for m in worker], "label": [f"class {k}" for k in label]}
    return pa.table(columns).take(pa.array(rng.permutation(len(item)))), truth


def write(table, path):
    """Write a table to a file of any format, or to two files in a folder."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=300)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=400)
    else:
        path.mkdir()
        half = table.num_rows // 2
        pa.parquet.write_table(table.slice(0, half), path / "a.parquet")
        pa.parquet.write_table(table.slice(half), path / "b.parquet")
    return path


def by_item(r):
    """Return all answers about each item, in order."""
    found = {}
    for i, item in enumerate(r.items.tolist()):
        own = slice(r.offsets[i], r.offsets[i + 1])
        weight = r.weights()[own].tolist()
        found[item] = list(zip(r.workers[r.worker[own]], r.labels[r.label[own]], weight, strict=True))
    return found


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl", "a.arrow", "folder"])
@pytest.mark.parametrize("in_sequences", [False, True])
def test_a_store_holds_the_answers_of_the_files(tmp_path, name, in_sequences):
    path = write(crowd(in_sequences=in_sequences)[0], tmp_path / name)
    s, r = cs.scan_answers(path, store=tmp_path / "stores"), cs.read_answers(path)
    loaded = s.load()
    assert len([sizes for sizes in s.partitions if sizes[3]]) > 1
    for each in (s, loaded):
        assert (each.n_items, each.n_workers, each.n_responses) == (r.n_items, r.n_workers, r.n_responses)
        assert each.workers.tolist() == r.workers.tolist()
        assert each.classes.tolist() == r.classes.tolist()
    assert by_item(loaded) == by_item(r)
    np.testing.assert_allclose(s.vote_shares(), r.vote_shares())


@pytest.mark.parametrize("policy", ["first", "last", "mean"])
def test_duplicates_are_settled_as_in_memory(tmp_path, policy):
    table = crowd()[0]
    # A label that occurs only in rows that "first" drops.
    again = table.slice(0, 40).set_column(2, "label", pa.array(["other"] * 40))
    path = write(pa.concat_tables([table, again]), tmp_path / "a.parquet")
    s = cs.scan_answers(path, store=tmp_path / "stores", duplicates=policy)
    r = cs.read_answers(path, duplicates=policy)
    assert s.labels.tolist() == r.labels.tolist()
    assert s.weighted == (r.weight is not None)
    assert by_item(s.load()) == by_item(r)


def test_errors_name_the_file_and_the_row(tmp_path):
    table = crowd()[0]
    path = write(pa.concat_tables([table, table.slice(7, 1)]), tmp_path / "a.csv")
    with pytest.raises(InputError, match=rf"more than once: see .*line 9 and line {table.num_rows + 2}"):
        cs.scan_answers(path, store=tmp_path / "stores")
    gap = table.set_column(2, "label", pa.array([None, *table.column("label").to_pylist()[1:]]))
    path = write(gap, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"has 1 missing value; the first is at .*b\.parquet, row 1"):
        cs.scan_answers(path, store=tmp_path / "stores")
    assert cs.scan_answers(path, store=tmp_path / "stores", drop_missing=True).n_responses == table.num_rows - 1
    assert not [path for path in (tmp_path / "stores").iterdir() if "building" in path.name]


def test_a_store_is_used_again_until_a_file_changes(tmp_path, monkeypatch):
    path = write(crowd()[0], tmp_path / "a.parquet")
    first = cs.scan_answers(path, store=tmp_path / "stores")
    with monkeypatch.context() as patch:
        patch.setattr("consilience.storage.scanning.build_store", lambda *_: pytest.fail("it was built again"))
        assert cs.scan_answers(path, store=tmp_path / "stores").folder == first.folder
    write(crowd(seed=1)[0], path)
    assert cs.scan_answers(path, store=tmp_path / "stores").folder != first.folder


def test_a_failed_store_leaves_nothing(tmp_path, monkeypatch):
    path = write(crowd()[0], tmp_path / "a.parquet")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(building, "write_partition", fail)
        with pytest.raises(StoreError, match="No space left on device"):
            cs.scan_answers(path, store=tmp_path / "stores")
    assert not list((tmp_path / "stores").iterdir())
    assert cs.scan_answers(path, store=tmp_path / "stores").n_items == 500


@pytest.mark.parametrize("size", [None, 0, 4, 1000])
@pytest.mark.parametrize("suffix", ["blocks", "items.arrow"])
def test_a_damaged_store_says_so(tmp_path, size, suffix):
    path = write(crowd()[0], tmp_path / "a.parquet")
    s = cs.scan_answers(path, store=tmp_path / "stores")
    part = next(s.folder.glob(f"part-*.{suffix}"))
    part.unlink() if size is None else os.truncate(part, size)
    with pytest.raises(StoreError, match=r"is not complete\. Delete it, and build it again"):
        cs.scan_answers(path, store=tmp_path / "stores")
    if suffix == "blocks":
        # It was damaged after it was opened.
        with pytest.raises(StoreError, match="and build it again"):
            cs.DawidSkene().fit(s)


def test_parts_reach_the_disk_before_the_store_has_its_name(tmp_path, monkeypatch):
    synced, sync = [], layout.sync
    for module in (layout, building):
        monkeypatch.setattr(module, "sync", lambda path: (synced.append(path.name), sync(path)))
    s = cs.scan_answers(write(crowd()[0], tmp_path / "a.parquet"), store=tmp_path / "stores")
    assert {path.name for path in s.folder.iterdir()} <= {*synced, "lock"}


def fit_both(tmp_path, table, model, gold=None, fuse=False, **columns):
    """Fit a model to answers on disk and in memory."""
    path = write(table, tmp_path / "a.parquet")
    s = cs.scan_answers(path, store=tmp_path / "stores", **columns)
    r = cs.read_answers(path, **columns)
    if fuse:
        return cs.fuse(s, gold=gold, model=model()), cs.fuse(r, gold=gold, model=model())
    return model().fit(s, gold=gold), model().fit(r, gold=gold)


def check_written(tmp_path, on_disk, in_memory):
    """Check that a model writes the labels and probabilities of one in memory."""
    assert not on_disk.result_.in_memory
    on_disk.write(tmp_path / "labels")
    keys = list(in_memory.result_.labels.keys)
    written = pa.dataset.dataset(tmp_path / "labels").to_table().to_pandas().set_index(keys)
    frame = in_memory.to_frame().to_pandas().set_index(keys)
    written = written.loc[frame.index]
    assert list(written) == list(frame)
    for name in written:
        if name in ("label", "decided_by"):
            assert written[name].tolist() == frame[name].tolist()
        else:
            np.testing.assert_allclose(written[name], frame[name], atol=1e-9)


def check_same(tmp_path, on_disk, in_memory):
    """Check that labels, probabilities and workers are the same, and intervals nearly so."""
    check_written(tmp_path, on_disk, in_memory)
    np.testing.assert_allclose(on_disk.confusion_, in_memory.confusion_, atol=1e-9)
    assert (on_disk.n_iter_, on_disk.classes_.tolist()) == (in_memory.n_iter_, in_memory.classes_.tolist())
    np.testing.assert_allclose(on_disk.power_, in_memory.power_)
    np.testing.assert_allclose(on_disk.expected_accuracy_, in_memory.expected_accuracy_)
    assert abs(on_disk.expected_accuracy_low_ - in_memory.expected_accuracy_low_) < 0.02
    workers, others = (model.worker_report().to_pandas() for model in (on_disk, in_memory))
    assert workers.answers.tolist() == others.answers.tolist()
    np.testing.assert_allclose(workers.accuracy, others.accuracy)
    np.testing.assert_allclose(workers.accuracy_low, others.accuracy_low, atol=0.02)


MODELS = {
    "plain": lambda: cs.DawidSkene(),
    "em": lambda: cs.DawidSkene(estimation="em"),
    "one-coin": lambda: cs.DawidSkene(workers="one-coin"),
    "uncalibrated": lambda: cs.DawidSkene(calibration="none"),
    "given power": lambda: cs.DawidSkene(calibration=0.5),
}


@pytest.mark.parametrize("name", MODELS)
def test_fits_to_items_are_those_in_memory(tmp_path, name):
    check_same(tmp_path, *fit_both(tmp_path, crowd()[0], MODELS[name]))


@pytest.mark.parametrize(
    "model",
    [
        lambda: cs.HiddenMarkov(coupling=1.0),
        lambda: cs.HiddenMarkov(),
        lambda: cs.HiddenMarkov(coupling=0.5, workers="sequential", decode="marginal"),
        lambda: cs.DawidSkene(),
    ],
)
def test_fits_to_sequences_are_those_in_memory(tmp_path, model):
    check_same(tmp_path, *fit_both(tmp_path, crowd(in_sequences=True)[0], model))


def test_weights_count_as_in_memory(tmp_path):
    table, _ = crowd()
    weight = np.random.default_rng(0).choice([0.25, 0.5, 1.0], table.num_rows)
    table = table.append_column("weight", pa.array(weight))
    check_same(tmp_path, *fit_both(tmp_path, table, cs.DawidSkene, weight="weight"))


@pytest.mark.parametrize("how", ["hidden answers", "gold"])
def test_known_labels_count_as_in_memory(tmp_path, how):
    table, truth = crowd()
    gold = {i: f"class {truth[i]}" for i in range(0, 500, 7)}
    check_same(tmp_path, *fit_both(tmp_path, table, lambda: cs.DawidSkene(calibration=how), gold))


def test_known_labels_take_no_room_for_the_other_items(tmp_path):
    table, truth = crowd()
    s = cs.scan_answers(write(table, tmp_path / "a.parquet"), store=tmp_path / "stores")
    blocks = add_gold(s, {7: f"class {truth[7]}"}).blocks()
    assert sum(len(items) for items, _ in (block.known for block in blocks)) == 1
    found = np.concatenate([block.open().gold for block in blocks])
    assert len(found) == s.n_items
    keys = np.concatenate([s.keys(number)["item"].to_numpy() for number in s.filled()])
    assert {int(keys[i]): int(found[i]) for i in np.flatnonzero(found >= 0)} == {7: truth[7]}


def test_gold_of_items_that_are_not_there_is_an_error(tmp_path):
    path = write(crowd()[0], tmp_path / "a.parquet")
    s = cs.scan_answers(path, store=tmp_path / "stores")
    with pytest.raises(InputError, match="None of the 1 gold items occurs in the answers"):
        cs.DawidSkene().fit(s, gold={"nobody": "class 1"})


def test_fuse_compares_with_the_vote_as_in_memory(tmp_path):
    on_disk, in_memory = fit_both(tmp_path, crowd()[0], cs.DawidSkene, fuse=True)
    found, expected = on_disk.comparison_, in_memory.comparison_
    assert (found.n_differ, found.verdict) == (expected.n_differ, expected.verdict)
    for name in ("expected_gain", "held_out_gain", "held_out_error", "top_share", "vote_top_share", "kept_share"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    assert abs(found.alpha - expected.alpha) < 0.1


def test_copies_count_once_as_in_memory(tmp_path):
    table, _ = crowd(n_items=1500, n_workers=6, per_item=4)
    rows = table.to_pandas().sort_values(["item", "worker"])
    said = dict(zip(zip(rows.item, rows.worker, strict=True), rows.label, strict=True))
    rows["label"] = [
        said.get((item, "w0"), label) if worker == "w1" else label
        for item, worker, label in zip(rows.item, rows.worker, rows.label, strict=True)
    ]
    on_disk, in_memory = fit_both(tmp_path, pa.table(rows.reset_index(drop=True)), cs.DawidSkene, fuse=True)
    assert in_memory.copies_ == [["w0", "w1"]]
    assert on_disk.copies_ == in_memory.copies_
    check_same(tmp_path, on_disk, in_memory)
    assert on_disk.comparison_.n_differ == in_memory.comparison_.n_differ


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    path = write(crowd()[0], tmp_path / "a.parquet")
    s = cs.scan_answers(path, store=tmp_path / "stores")
    one, four = (cs.DawidSkene().fit(s, engine=cs.engines.Threads(n)) for n in (1, 4))
    assert np.array_equal(one.confusion_, four.confusion_)
    for name, model in (("one", one), ("four", four)):
        model.write(tmp_path / f"{name}.parquet")
    assert pa.parquet.read_table(tmp_path / "one.parquet").equals(pa.parquet.read_table(tmp_path / "four.parquet"))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.arrow", "a.parquet"])
def test_one_file_is_written_partition_by_partition(tmp_path, name, monkeypatch):
    path = write(crowd()[0], tmp_path / "answers.parquet")
    model = cs.DawidSkene().fit(cs.scan_answers(path, store=tmp_path / "stores"))
    model.write(tmp_path / "labels")
    expected = pa.dataset.dataset(tmp_path / "labels").to_table()
    made, n_held, make_table = [], [], label_files.make_table

    def count(*arguments):
        n_held.append(sum(each() is not None for each in made))
        table = make_table(*arguments)
        made.append(weakref.ref(table))
        return table

    monkeypatch.setattr(label_files, "make_table", count)
    model.write(tmp_path / name, engine=cs.engines.Threads(1))
    assert len(n_held) > 2
    assert max(n_held) <= 2
    found = read_table(tmp_path / name).table
    for column, values in expected.to_pydict().items():
        is_number = isinstance(values[0], float)
        assert list(map(float if is_number else str, found.to_pydict()[column])) == list(
            map(str, values) if not is_number else values
        )


def test_few_answers_are_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "FEW", 10_000)
    on_disk, in_memory = fit_both(tmp_path, crowd()[0], cs.DawidSkene)
    assert dict(zip(on_disk.to_frame()["item"].to_pylist(), on_disk.labels_, strict=True)) == dict(
        zip(in_memory.to_frame()["item"].to_pylist(), in_memory.labels_, strict=True)
    )
    on_disk.write(tmp_path / "labels")
    assert pa.dataset.dataset(tmp_path / "labels").to_table().num_rows == 500


def test_a_model_of_answers_on_disk_says_where_labels_are(tmp_path):
    path = write(crowd()[0], tmp_path / "a.parquet")
    model = cs.DawidSkene().fit(cs.scan_answers(path, store=tmp_path / "stores"))
    assert "500 items, 12 workers" in repr(model)
    for name in ("labels_", "posterior_", "to_frame"):
        with pytest.raises(NotFittedError, match="write"):
            getattr(model, name)() if name == "to_frame" else getattr(model, name)
    # After a fit in memory they are there.
    model.fit(cs.read_answers(path))
    assert len(model.labels_) == 500


@pytest.mark.parametrize("model", [cs.MarkovField, cs.MomentMatching])
def test_models_that_need_memory_say_so(tmp_path, model):
    path = write(crowd()[0], tmp_path / "a.parquet")
    with pytest.raises(ParameterError, match="memory"):
        model().fit(cs.scan_answers(path, store=tmp_path / "stores"))


def test_labels_replace_only_labels(tmp_path):
    path = write(crowd()[0], tmp_path / "a.parquet")
    model = cs.DawidSkene().fit(cs.scan_answers(path, store=tmp_path / "stores"))
    model.write(tmp_path / "labels")
    model.write(tmp_path / "labels")
    (tmp_path / "labels" / "notes.txt").write_text("keep me")
    with pytest.raises(InputError, match=r"holds other files than labels, such as 'notes\.txt'"):
        model.write(tmp_path / "labels")
    assert (tmp_path / "labels" / "notes.txt").exists()
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".")]


def test_arrays_come_back_from_a_file(tmp_path):
    arrays = {"a": np.arange(7, dtype=np.int32), "b": np.zeros((0, 4)), "c": np.arange(12.0).reshape(3, 4)}
    write_arrays(tmp_path / "x", arrays)
    file = ArrayFile.open(tmp_path / "x")
    for name, array in arrays.items():
        found = file.read(name)
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
        assert not found.flags.writeable
    np.testing.assert_array_equal(file.map()("c", 1, 3), arrays["c"][1:3])


def test_a_vocabulary_grows_and_is_sorted_in_the_end():
    words = GrowingVocabulary()
    assert words.encode(pa.array(["b", "c", "b"])).tolist() == [0, 1, 0]
    assert words.encode(pa.array(["a", "b"])).tolist() == [2, 0]
    values, index = words.settle(pa.large_string(), to_integers=False)
    assert values.tolist() == ["a", "b", "c"]
    assert index.tolist() == [1, 2, 0]
    categories = GrowingVocabulary()
    categories.encode(pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["low", "unused", "high"])))
    assert categories.settle(pa.large_string(), to_integers=False)[0].tolist() == ["low", "high"]
    numbers = GrowingVocabulary()
    numbers.encode(pa.array(["10", "9"]))
    assert numbers.settle(pa.large_string(), to_integers=True)[0].tolist() == [9, 10]


@pytest.mark.parametrize("ids", [np.arange(1000), np.array([f"item {i}" for i in range(1000)], object)])
def test_ids_are_spread_over_partitions_by_themselves(ids):
    column = pa.array(ids)
    found = find_partitions(column, 8)
    assert np.bincount(found, minlength=8).min() > 80
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(find_partitions(column.take(pa.array(order)), 8), found[order])
    np.testing.assert_array_equal(find_partitions(column, 1), 0)


class Interrupted(Exception):
    """What stops a fit in a test."""


@pytest.mark.parametrize("model", [cs.DawidSkene, partial(cs.HiddenMarkov, coupling=1.0)])
def test_a_fit_that_was_interrupted_goes_on_to_the_same_bits(tmp_path, model, monkeypatch):
    from consilience.inference import em

    path = write(crowd(in_sequences=model is not cs.DawidSkene)[0], tmp_path / "a.parquet")
    expected = model().fit(cs.scan_answers(path, store=tmp_path / "stores"))

    def stop(progress):
        if progress.iteration == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        model(callback=stop).fit(cs.scan_answers(path, store=tmp_path / "stores"))
    n_passes = 0

    def count(*arguments):
        nonlocal n_passes
        n_passes += 1
        return by_block(*arguments)

    by_block = em.CountedEvidence.by_block
    monkeypatch.setattr(em.CountedEvidence, "by_block", count)
    resumed = model().fit(cs.scan_answers(path, store=tmp_path / "stores", resume=True))
    assert np.array_equal(resumed.trace_, expected.trace_)
    assert np.array_equal(resumed.confusion_, expected.confusion_)
    n_resumed, n_passes = n_passes, 0
    model().fit(cs.scan_answers(path, store=tmp_path / "stores"))
    assert n_resumed < n_passes


# On the command line


def fuse_on_disk(tmp_path, *arguments):
    from command_line import run

    path = write(crowd()[0], tmp_path / "a.parquet")
    store = ("--store", tmp_path / "stores")
    return run("fuse", path, "--memory", "2GB", *store, *arguments)


def test_the_command_fuses_on_disk(tmp_path):
    result = fuse_on_disk(tmp_path, "-o", tmp_path / "labels", "--workers-report", tmp_path / "workers.csv")
    assert result.exit_code == 0, result.output
    assert "2,500 by 12 workers about 500 items" in result.stdout
    labels = pa.dataset.dataset(tmp_path / "labels").to_table()
    expected = cs.fuse(tmp_path / "a.parquet")
    found = dict(zip(labels["item"].to_pylist(), labels["label"].to_pylist(), strict=True))
    assert found == dict(zip(expected.to_frame()["item"].to_pylist(), expected.labels_, strict=True))
    assert len((tmp_path / "workers.csv").read_text().splitlines()) == 13
    # The same again, resumed, and as one file.
    result = fuse_on_disk(tmp_path, "-o", tmp_path / "labels.csv", "--resume", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["items"] == 500
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 501


def test_the_command_takes_known_labels_on_disk(tmp_path):
    truth = crowd()[1]
    (tmp_path / "gold.csv").write_text("item,label\n" + "".join(f"{i},class {truth[i]}\n" for i in range(0, 500, 25)))
    result = fuse_on_disk(tmp_path, "--gold", tmp_path / "gold.csv", "--json")
    assert json.loads(result.stdout)["gold"] == 20


@pytest.mark.parametrize(
    "option", [("--graph", "edges.csv"), ("--abstain", "answer"), ("--normalise",), ("--order", "time")]
)
def test_what_needs_memory_is_refused(tmp_path, option):
    result = fuse_on_disk(tmp_path, *option)
    assert result.exit_code == 2
    assert f"Answers on disk do not go with {option[0]}" in result.stderr


def test_a_size_must_be_one(tmp_path):
    for size in ("much", "-4GB", "0", "100MB"):
        with pytest.raises(ParameterError, match="a size such as '4GB'"):
            cs.scan_answers(tmp_path / "a.parquet", memory=size)


def test_answers_that_do_not_fit_are_fused_on_disk(tmp_path, monkeypatch):
    from command_line import run
    from consilience.cli import fuse as command

    path = write(crowd()[0], tmp_path / "a.parquet")
    monkeypatch.setenv("CONSILIENCE_STORES", str(tmp_path / "stores"))
    assert run("fuse", path, "--quiet").exit_code == 0
    assert not (tmp_path / "stores").exists()
    monkeypatch.setattr(command, "_are_large", lambda _: True)
    monkeypatch.setattr("consilience.memory.available_memory", lambda: 100_000)
    assert command.goes_to_disk(command_options(path))
    result = run("fuse", path, "-o", tmp_path / "labels", "--quiet")
    assert result.exit_code == 0, result.output
    assert pa.dataset.dataset(tmp_path / "labels").count_rows() == 500
    assert len(list((tmp_path / "stores").iterdir())) == 1
    monkeypatch.setattr("consilience.memory.available_memory", lambda: 10_000_000)
    assert not command.goes_to_disk(command_options(path))


def command_options(path):
    """Return the options of a plain run of the command."""
    from types import SimpleNamespace

    return SimpleNamespace(source=str(path), memory=None, resume=False, format=None)


def test_the_report_shows_a_sample(tmp_path):
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    result = fuse_on_disk(tmp_path, "--report", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    assert "of these 500 labels" in page
    assert "a random sample of" in page


# Elsewhere


def test_files_may_be_anywhere_that_fsspec_knows(tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="remote files need fsspec: pip install 'consilience[big]'")
    table = crowd()[0]
    system = fsspec.filesystem("memory")
    for name, half in (("a", table.slice(0, 1000)), ("b", table.slice(1000))):
        for suffix in ("parquet", "csv"):
            path = write(half, tmp_path / f"{name}.{suffix}")
            system.pipe(f"/answers/{name}.{suffix}", path.read_bytes())
    here = cs.read_answers(write(table, tmp_path / "all.parquet"))
    for pattern in ("memory://answers/*.parquet", "memory://answers/*.csv"):
        assert by_item(cs.scan_answers(pattern, store=tmp_path / "stores").load()) == by_item(here)
        assert by_item(cs.read_answers(pattern)) == by_item(here)
    with pytest.raises(InputError, match="memory://nowhere"):
        cs.scan_answers("memory://nowhere/*.parquet", store=tmp_path / "stores")
    with pytest.raises(InputError, match="nosuch"):
        cs.scan_answers("nosuch://bucket/a.parquet", store=tmp_path / "stores")
    system.rm("/answers", recursive=True)


# On a cluster


@pytest.mark.robust
def test_a_cluster_builds_fits_and_writes_the_same_bits(tmp_path):
    dask_kills = pytest.importorskip("dask_kills", reason="Dask is not installed")
    path = write(crowd()[0], tmp_path / "a.parquet")
    here = cs.scan_answers(path, store=tmp_path / "stores")
    alone = cs.DawidSkene().fit(here)
    alone.write(tmp_path / "alone")
    with dask_kills.cluster_of(2) as client:
        # Workers are other processes, which do not know of the small blocks: the store is that of this process.
        spread = cs.DawidSkene().fit(here, engine=client)
        spread.write(tmp_path / "spread", engine=client)
        built = cs.scan_answers(path, store=tmp_path / "others", engine=client)
        assert by_item(built.load()) == by_item(here.load())
    assert np.array_equal(alone.confusion_, spread.confusion_)
    assert np.array_equal(alone.trace_, spread.trace_)
    tables = [pa.dataset.dataset(tmp_path / name).to_table() for name in ("alone", "spread")]
    assert tables[0].equals(tables[1])
