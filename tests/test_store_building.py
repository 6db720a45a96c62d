"""How stores are built: what they are known by, files that change, several builds at once, mixed types."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from consilience.storage import building, partitioning
from consilience.storage.layout import claim_beside, remove_abandoned

import consilience as cs
from consilience.engines.base import Engine
from consilience.errors import DataWarning, InputError, StoreError
from consilience.formats import files
from consilience.formats import tables as table_formats
from consilience.formats.reading import scan_table

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def scan(path, tmp_path, **options):
    """Build a store."""
    return cs.scan_answers(path, store=tmp_path / "stores", **options)


def write_parquet(path, **columns):
    """Write a table of columns to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path)
    return path


def write_crowd(path, n_items=400, seed=0):
    """Write answers of three workers about each item."""
    item = np.repeat(np.arange(n_items), 3)
    label = np.random.default_rng(seed).integers(0, 3, len(item))
    return write_parquet(path, item=item, worker=np.tile(["a", "b", "c"], n_items), label=label)


def list_answers(r):
    """Return item, worker, label of each answer as text, in order."""
    rows = zip(np.repeat(r.items, np.diff(r.offsets)), r.workers[r.worker], r.labels[r.label], strict=True)
    return sorted((str(item), str(worker), str(label)) for item, worker, label in rows)


def test_a_store_is_known_by_the_format_too(tmp_path):
    path = tmp_path / "x.txt"
    # Read by commas, item is 1; by tabs, it is A.
    path.write_text("item\tworker\tlabel\tq,item,worker,label\nA\tB\tC\tz,1,ann,cat\n")
    for format in ("csv", "tsv"):
        found = scan(path, tmp_path, format=format).load()
        assert list_answers(found) == list_answers(cs.read_answers(path, format=format))


@pytest.mark.parametrize(
    "name",
    [
        "consilience.storage.building.__version__",
        "consilience.answers.blocks.BLOCK_SIZE",
        "consilience.storage.partitioning.ROWS_PER_PARTITION",
    ],
)
def test_a_store_is_known_by_what_decides_its_blocks(tmp_path, monkeypatch, name):
    path = write_crowd(tmp_path / "a.parquet")
    first = scan(path, tmp_path).folder
    monkeypatch.setattr(name, 100)
    assert scan(path, tmp_path).folder != first


def test_files_that_change_while_they_are_read_make_no_store(tmp_path, monkeypatch):
    path = write_crowd(tmp_path / "a.parquet")
    with monkeypatch.context() as patch:

        def change(*arguments):
            write_crowd(path, n_items=401)
            return make_partition(*arguments)

        make_partition = building.make_partition
        patch.setattr(building, "make_partition", change)
        with pytest.raises(InputError, match="it changed"):
            scan(path, tmp_path)
    assert not list((tmp_path / "stores").iterdir())
    assert scan(path, tmp_path).n_items == 401


def test_threads_may_build_the_same_store_at_once(tmp_path, monkeypatch):
    path = write_crowd(tmp_path / "a.parquet")
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 200)
    meet, found = threading.Barrier(4, timeout=20), []

    def wait(*arguments):
        meet.wait()  # until everybody builds
        return split_rows(*arguments)

    split_rows = building.split_rows
    monkeypatch.setattr(building, "split_rows", wait)
    runs = [threading.Thread(target=lambda: found.append(scan(path, tmp_path).load())) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [each.n_items for each in found] == [400] * 4
    assert len(list((tmp_path / "stores").iterdir())) == 1


def test_only_what_has_no_owner_is_removed(tmp_path):
    pytest.importorskip("fcntl", reason="locks of files are those of POSIX")
    folder = tmp_path / "store"
    with claim_beside(folder, "building") as mine:
        (mine / "rows").write_bytes(b"half")
        remove_abandoned(tmp_path, "building")
        assert (mine / "rows").exists()
        kept = mine.rename(tmp_path / "kept")
    assert list(tmp_path.iterdir()) == [kept]
    # This is what a run that died leaves: a folder whose lock nobody holds.
    kept.rename(mine)
    with claim_beside(tmp_path / "another store", "building"):
        assert not mine.exists()


TYPES = {
    "widths": ([1, 2, 3], pa.int64(), [1, 2, 4], pa.int32()),
    "narrow": ([1, 2, 3], pa.int32(), [1, 2, 4], pa.int8()),
    "text": ([1, 2, 3], pa.int64(), ["1", "2", "q"], pa.string()),
    "floats": ([1, 2, 3], pa.int64(), [1.0, 2.5, 3.0], pa.float64()),
    "large": ([1, 2, 2**63 + 5], pa.uint64(), [1, 2, 2**63 + 6], pa.uint64()),
    "wide": (["1", "2", "r"], pa.large_string(), ["1", "2", "q"], pa.string()),
    "categories": (["y", "x", "y"], pa.dictionary(pa.int8(), pa.string()), ["x", "b", "a"], pa.string()),
}


@pytest.mark.parametrize("role", ["item", "worker", "label", "sequence"])
@pytest.mark.parametrize("name", TYPES)
def test_types_may_differ_between_files_as_in_memory(tmp_path, monkeypatch, name, role):
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 2)
    first, kind, second, other = TYPES[name]
    columns = {key: ["u", "v", "w"] for key in ("sequence" if role == "sequence" else "item", "worker", "label")}
    columns |= {"position": [1, 2, 3]} if role == "sequence" else {}
    write_parquet(tmp_path / "in" / "a.parquet", **columns | {role: pa.array(first, kind)})
    if role != "worker":
        columns["worker"] = ["x", "y", "z"]
    write_parquet(tmp_path / "in" / "b.parquet", **columns | {role: pa.array(second, other)})
    policy = {"duplicates": "first"}
    found, expected = scan(tmp_path / "in", tmp_path, **policy), cs.read_answers(tmp_path / "in", **policy)
    assert list_answers(found.load()) == list_answers(expected)
    assert found.workers.tolist() == expected.workers.tolist()
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.n_items == expected.n_items


def test_types_that_do_not_go_together_are_an_error_that_names_the_column(tmp_path):
    columns = {"item": ["1", "2"], "worker": ["a", "b"]}
    write_parquet(tmp_path / "in" / "a.parquet", **columns, label=[True, False])
    write_parquet(tmp_path / "in" / "b.parquet", **columns, label=[1.5, 2.5])
    with pytest.raises(InputError, match="Column 'label' holds values of the types 'bool', 'double'"):
        scan(tmp_path / "in", tmp_path)


@pytest.mark.parametrize(("number", "remedy"), [(28, "Free some space"), (13, "Check this folder")])
def test_space_is_asked_for_only_where_there_is_none(tmp_path, monkeypatch, number, remedy):
    def fail(*_):
        raise OSError(number, "It does not work")

    monkeypatch.setattr(building, "write_values", fail)
    with pytest.raises(StoreError, match=remedy):
        scan(write_crowd(tmp_path / "a.parquet"), tmp_path)


def test_missing_numbers_are_dropped_as_in_memory(tmp_path):
    columns = {"item": [1, 2, 3], "worker": ["a", "b", "c"], "label": [1.0, float("nan"), 2.0]}
    path = write_parquet(tmp_path / "a.parquet", **columns)
    found, expected = scan(path, tmp_path, drop_missing=True), cs.read_answers(path, drop_missing=True)
    assert list_answers(found.load()) == list_answers(expected)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "parts.csv.gz", "a.jsonl", "a.jsonl.gz"])
def test_rows_of_text_are_estimated_from_the_beginning(tmp_path, name):
    row = '{{"item":{},"worker":{},"label":{}}}\n' if "jsonl" in name else "{},{},{}\n"
    text = ("" if "jsonl" in name else "item,worker,label\n") + "".join(
        row.format(i // 5, i % 5, i % 3) for i in range(50_000)
    )
    half = text.index("\n", len(text) // 2) + 1
    parts = [text[:half], text[half:]] if "parts" in name else [text]
    pack = gzip.compress if name.endswith("gz") else bytes
    (tmp_path / name).write_bytes(b"".join(pack(part.encode()) for part in parts))
    assert 25_000 < scan_table(tmp_path / name).sizes[0] < 100_000


def test_damaged_text_has_some_size_too(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"item,worker,label\n1,2,3\n")[:10] + b"damaged" * 100)
    with pytest.raises(InputError, match="cannot be read"):
        scan(tmp_path / "a.csv.gz", tmp_path)
    (tmp_path / "b.csv").write_text("item,worker,label")
    assert scan_table(tmp_path / "b.csv").sizes == (2,)


class Twice(Engine):
    """An engine that does all work twice, once long after its result has arrived."""

    def __init__(self, late):
        self.late, self.again = late, []

    def place(self, blocks):
        return blocks

    def map(self, function, placed, *shared):
        earlier = list(self.again)
        for block in placed:
            yield function(block, *shared)
            self.again.append(partial(function, block, *shared))
            if not self.late:
                function(block, *shared)
        for work in earlier if self.late else ():
            with suppress(FileNotFoundError):
                work()


@pytest.mark.parametrize("late", [False, True])
def test_work_that_is_done_twice_counts_once(tmp_path, monkeypatch, late):
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 200)
    columns = {"item": np.arange(900) // 2, "worker": ["a", "b"] * 450, "label": ["x", "y", "z"] * 300}
    # The label "other" is only in answers that are dropped, so that partitions are made again without it.
    again = {"item": [7, 300], "worker": ["b", "a"], "label": ["other"] * 2}
    table = pa.concat_tables([pa.table(columns), pa.table(again)])
    path = write_parquet(tmp_path / "a.parquet", **dict(zip(table.column_names, table.columns, strict=True)))
    found = scan(path, tmp_path, duplicates="first", engine=Twice(late))
    assert list_answers(found.load()) == list_answers(cs.read_answers(path, duplicates="first"))
    names = {each.name for each in found.folder.iterdir()}
    filled = [f"part-{number:05d}" for number in found.filled()]
    parts = {f"{name}.{suffix}" for name in filled for suffix in ("blocks", "items.arrow")}
    assert names == parts | {"store.json", "workers.arrow", "labels.arrow", "lock"}


@pytest.mark.parametrize(
    ("first", "last"),
    [({"label": 1}, {"label": 1.5}), ({"label": "x"}, {"label": "y", "weight": 1}), ({}, {"label": 1})],
)
def test_columns_of_json_lines_may_change_on_the_way(tmp_path, monkeypatch, first, last):
    monkeypatch.setattr(files, "BLOCK", 100)
    lines = [{"item": i, "worker": "a", **(first if i < 20 else last)} for i in range(30)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert scan_table(path).names == tuple({"item": 0, "worker": 0} | first | last)
    found, expected = scan(path, tmp_path, drop_missing=True), cs.read_answers(path, drop_missing=True)
    assert list_answers(found.load()) == list_answers(expected)
    assert found.labels.tolist() == expected.labels.tolist()


def test_long_rows_of_parquet_are_read_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(table_formats, "BYTES_AT_ONCE", 20_000)
    ids = [f"{i}{'x' * 1000}" for i in range(100)]
    found = scan_table(write_parquet(tmp_path / "a.parquet", item=ids, note=ids, label=[1] * 100))
    tables = list(found.read(found.stretches(1000)[0], ["item", "label"]))
    assert len(tables) > 3
    assert [first for first, _ in tables[:2]] == [0, tables[0][1].num_rows]
    assert sum(table.num_rows for _, table in tables) == 100


@pytest.mark.parametrize("limit", ["ROWS_PER_PIECE", "BYTES_PER_PIECE"])
def test_pieces_are_small_in_rows_and_bytes(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(building, limit, 250)
    sizes = []

    def note(*arguments):
        sizes.append(len(arguments[1]))
        return write_piece(*arguments)

    write_piece = building.write_piece
    monkeypatch.setattr(building, "write_piece", note)
    scan(write_crowd(tmp_path / "a.parquet"), tmp_path)
    assert sizes == ([300] * 4 if limit == "ROWS_PER_PIECE" else [100] * 12)


# Remote files


ADDRESS = "memory://service/a.csv"


@pytest.fixture
def details(monkeypatch):
    """Put a file on a service, and return what the service says of files, beside name and size."""
    pytest.importorskip("fsspec", reason="remote files need fsspec: pip install 'consilience[big]'")
    from fsspec.implementations.memory import MemoryFileSystem

    def describe(self, path, **options):
        found = info(self, path, **options)
        return {name: found[name] for name in ("name", "size", "type")} | details

    info, details = MemoryFileSystem.info, {}
    monkeypatch.setattr(MemoryFileSystem, "info", describe)
    put_remote(b"item,worker,label\n1,ann,cat\n1,bob,dog\n")
    yield details
    MemoryFileSystem().rm("/service", recursive=True)


def put_remote(content):
    """Replace the file on the service."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem().pipe("/service/a.csv", content)


@pytest.mark.parametrize("name", ["Last-Modified", "ETag", "Content-MD5", "updated", "modify"])
def test_changes_of_remote_files_are_seen(tmp_path, details, name):
    details[name] = "one"
    first = scan(ADDRESS, tmp_path)
    assert scan(ADDRESS, tmp_path).folder == first.folder
    put_remote(b"item,worker,label\n1,ann,cow\n1,bob,pig\n")
    details[name] = "two"
    assert scan(ADDRESS, tmp_path).labels.tolist() == ["cow", "pig"]


def test_remote_files_that_tell_nothing_are_read_each_time(tmp_path, details):
    details |= {"size": None, "mimetype": "text/csv"}
    with pytest.warns(DataWarning, match="a new store is built each time"):
        first = scan(ADDRESS, tmp_path)
    put_remote(b"item,worker,label\n1,ann,cow\n1,bob,pig\n")
    with pytest.warns(DataWarning, match="a new store is built each time"):
        assert scan(ADDRESS, tmp_path).labels.tolist() == ["cow", "pig"]
    assert first.labels.tolist() == ["cat", "dog"]


def test_a_file_that_is_removed_while_it_is_read_makes_no_store(tmp_path, monkeypatch):
    path = write_crowd(tmp_path / "a.parquet")

    def remove(*arguments):
        path.unlink(missing_ok=True)
        write_values(*arguments)

    write_values = building.write_values
    monkeypatch.setattr(building, "write_values", remove)
    with pytest.raises(InputError, match=r"a\.parquet' cannot be read"):
        scan(path, tmp_path)


# ------------------------------------------------------------------------------------- text that holds whole numbers

NUMBERS = {
    "numbers": ("item,worker,label", lambda i, m: f"{i},{m + 9},{(i + m // 2) % 11}"),
    "a label with a zero in front": ("item,worker,label", lambda i, m: f"{i},{m},{('0', '01', '10')[i % 3]}"),
    "a worker with a letter": ("item,worker,label", lambda i, m: f"{i + 5},{('7', '8', 'w9')[m]},{i % 2}"),
    "numbers of more than 64 bits": ("item,worker,label", lambda i, m: f"{i},{m},{10 ** (18 + i % 2 * 3)}"),
    "sequences": ("sequence,position,worker,label", lambda i, m: f"{i // 10},{i % 10 + 5},{m + 9},{(i + m // 2) % 11}"),
}


def write_text(path, header, row, n_items=60, separator=","):
    """Write answers of three workers about each item as text."""
    lines = [header, *(row(i, m) for i in range(n_items) for m in range(3))]
    path.write_text("".join(f"{line}\n" for line in lines).replace(",", separator))
    return path


def typed(values):
    """Return values as Python's own, sorted, with the type that the array has."""
    return np.asarray(values).dtype.kind, sorted(np.asarray(values).tolist(), key=str)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("case", NUMBERS)
def test_text_has_the_types_on_disk_that_it_has_in_memory(tmp_path, monkeypatch, case, suffix):
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 20)
    path = write_text(tmp_path / f"a{suffix}", *NUMBERS[case], separator="\t" if suffix == ".tsv" else ",")
    stored, here = scan(path, tmp_path), cs.read_answers(path)
    there = stored.load()
    for name in ("workers", "labels", "classes"):
        assert typed(getattr(stored, name)) == typed(getattr(here, name)), name
        assert getattr(stored, name).tolist() == getattr(here, name).tolist(), name
    for mine, other in zip(there.key_columns().values(), here.key_columns().values(), strict=True):
        assert typed(mine) == typed(other)
    assert (here.labels.dtype.kind == "O") == (case in list(NUMBERS)[1:4:2])
    assert (here.workers.dtype.kind == "O") == ("letter" in case)


def test_rows_that_are_left_out_decide_on_the_types_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item,worker,label\n1,1,5\n1,2,5\n2,1,6\nx,w,\n")
    stored, here = scan(path, tmp_path, drop_missing=True), cs.read_answers(path, drop_missing=True)
    assert typed(stored.workers) == typed(here.workers) == ("O", ["1", "2"])
    assert typed(stored.load().items) == typed(here.items) == ("O", ["1", "2"])
    assert typed(stored.labels) == typed(here.labels) == ("i", [5, 6])


def test_the_command_writes_the_same_types_from_memory_and_from_disk(tmp_path):
    from command_line import run

    path = write_text(tmp_path / "a.csv", *NUMBERS["numbers"])
    for name, options in {"memory": (), "disk": ("--memory", "2GB", "--store", tmp_path / "stores")}.items():
        outputs = ("-o", tmp_path / f"{name}.parquet", "--save", tmp_path / f"{name}.model")
        result = run("fuse", path, *outputs, *options)
        assert result.exit_code == 0, result.output
    here, there = (pa.parquet.read_table(tmp_path / f"{name}.parquet").sort_by("item") for name in ("memory", "disk"))
    assert here.schema.equals(there.schema)
    assert [here.schema.field(name).type for name in ("item", "label")] == [pa.int64(), pa.int64()]
    assert here["item"].equals(there["item"])
    assert here["label"].equals(there["label"])
    here, there = (cs.load(tmp_path / f"{name}.model") for name in ("memory", "disk"))
    assert typed(here.classes_) == typed(there.classes_)
    assert here.worker_report()["worker"].type == there.worker_report()["worker"].type == pa.int64()
