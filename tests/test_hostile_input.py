"""Input at fault: our own exception, exit code 2, and never a message that is too long."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import consilience as cs
from consilience.answers.columns import to_column
from consilience.errors import LONGEST, ConsilienceError, DataWarning, InputError, Sentence, StoreError, cut, shorten
from consilience.formats import list_suffixes, writable_formats
from consilience.formats.reading import read_table
from consilience.formats.writing import write_table
from effort import rest_robust
from test_cli import MAIN, environment, make_answers, run

LONG = "x" * 100_000


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def answers(folder) -> Path:
    write_table(pa.table(make_answers(30)), "answers.csv")
    return folder / "answers.csv"


def refusal(function, *arguments, **more) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments, **more)
    assert len(str(caught.value)) <= LONGEST
    return str(caught.value)


def answers_with(**columns) -> pa.Table:
    return pa.table({"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": list("xyxx")} | columns)


# Times and decimals


@pytest.mark.parametrize("kind", [pa.time64("ns"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "Mars/Olympus")])
@pytest.mark.parametrize("role", ["item", "label"])
@pytest.mark.parametrize("categorical", [False, True])
def test_times_that_python_cannot_hold(kind, role, categorical):
    column = pa.array([1, 2, 1, 2]).view(kind)
    table = answers_with(**{role: column.dictionary_encode() if categorical else column})
    said = refusal(cs.fuse, table)
    assert f"Column '{role}' of the table must not hold times" in said
    assert "Write them as text." in said


@pytest.mark.parametrize(
    ("numbers", "kind", "values"),
    [
        ([1000, 2000], pa.time64("ns"), [dt.time(0, 0, 0, 1), dt.time(0, 0, 0, 2)]),
        ([0, 86_400_000 + 1], pa.date64(), [dt.date(1970, 1, 1), dt.date(1970, 1, 2)]),
        ([None, None], pa.timestamp("us", "Mars/Olympus"), [None, None]),
        (
            [253402300799, -62135596800],
            pa.timestamp("s"),
            [dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(1, 1, 1)],
        ),
    ],
)
def test_times_at_the_limits_are_kept(numbers, kind, values):
    assert to_column(pa.array(numbers, pa.int64()).view(kind)).to_pylist() == values


@pytest.mark.parametrize("width", [32, 64, 128, 256])
def test_decimals_of_every_width(width, folder):
    if not hasattr(pa, f"decimal{width}"):
        pytest.skip("this pyarrow has no such decimals")
    kind = getattr(pa, f"decimal{width}")(5, 2)
    column = pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.25")] * 2, kind)
    fused = cs.MajorityVote().fit(answers_with(label=column))
    assert fused.classes_.tolist() == [decimal.Decimal("1.50"), decimal.Decimal("2.25")]
    fused.save("fit.model")
    assert cs.load("fit.model").classes_.tolist() == fused.classes_.tolist()


def test_nanoseconds_are_written_as_json(folder):
    column = np.array([1, 2, 1, 1], "M8[ns]")
    write_table(cs.MajorityVote().fit(answers_with(label=column)).to_frame(), "labels.jsonl")
    assert read_table("labels.jsonl").table["label"].to_pylist()[1] == "1970-01-01 00:00:00.000000001"


# Categories over batches


def batches(*categories):
    parts = [pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(each)) for each in categories]
    return pa.chunked_array(parts)


def test_categories_that_are_missing_over_batches():
    missing = answers_with(label=batches(["x", "y"], ["x", None]))
    assert "has 1 missing value" in refusal(cs.Answers.from_frame, missing)


def test_more_categories_over_batches_than_an_index_counts():
    names = [f"{n:03d}" for n in range(200)]
    index = pa.array(range(100), pa.int8())
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(index, part) for part in (names[:100], names[100:])])
    assert to_column(column).to_pylist() == names


# Damaged and misnamed files


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_arrow_files_that_lie_about_lengths(folder, suffix):
    table = answers_with()
    with pa.OSFile("good", "wb") as sink:
        make = pa.ipc.new_file if suffix == ".arrow" else pa.ipc.new_stream
        with make(sink, table.schema) as writer:
            writer.write_table(table)
    good, outcomes = Path("good").read_bytes(), set()
    for place in range(0, len(good) - 8, 8):
        for lie in (2**62, 2**31 - 1, -1):
            Path(f"bad{suffix}").write_bytes(good[:place] + lie.to_bytes(8, "little", signed=True) + good[place + 8 :])
            try:
                cs.read_answers(f"bad{suffix}")
                outcomes.add("read")
            except ConsilienceError as error:
                outcomes.add("refused" if len(str(error)) <= LONGEST else "refused at length")
    assert outcomes == {"read", "refused"}


def damaged_features() -> dict[str, bytes]:
    """Return files that are no features, by name."""

    def saved(save, *arguments, **more) -> bytes:
        stream = io.BytesIO()
        save(stream, *arguments, **more)
        return stream.getvalue()

    matrix = sparse.random(30, 5, 0.5, format="csr", random_state=0)
    good, dense = saved(sparse.save_npz, matrix), saved(np.save, np.ones((30, 2)))
    parts = {"format": b"csr", "shape": (30, 5), "data": matrix.data, "indptr": matrix.indptr}
    return {
        "cut.npz": good[: len(good) // 2],
        "flipped.npz": good[:200] + bytes(100) + good[300:],
        "plain.npz": saved(np.savez, a=np.ones(3)),
        "beyond.npz": saved(np.savez, **parts, indices=matrix.indices + 10**6),
        "negative.npz": saved(np.savez, **parts, indices=matrix.indices - 7),
        "empty.npz": b"",
        "text.npy": b"item,label\n1,2\n",
        "cut.npy": dense[:-9],
        "huge.npy": dense.replace(b"(30, 2), }          ", b"(30, 9999999999), } "),
        "odd.npy": dense.replace(b"(30, 2)", b"(9**9,)"),
        "scalar.npy": saved(np.save, np.float64(1)),
        "vector.npy": saved(np.save, np.ones(30)),
        "objects.npy": saved(np.save, np.array([{}] * 30), allow_pickle=True),
        "words.npy": saved(np.save, np.full((30, 2), "word")),
        "none.npy": saved(np.save, np.ones((30, 0))),
        "overflow.npy": saved(np.save, np.linspace(-1e300, 1e300, 60).reshape(30, 2)),
    }


@pytest.mark.parametrize("name", damaged_features())
def test_damaged_features(answers, name):
    Path(name).write_bytes(damaged_features()[name])
    numbered = make_answers(30) | {"item": [int(item[1:]) for item in make_answers(30)["item"]]}
    write_table(pa.table(numbered), "numbered.csv")
    result = run("fuse", "numbered.csv", "--knn", name, "--k", "3")
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    assert len(result.stderr) <= LONGEST


def test_misnamed_features_are_read(answers):
    numbered = make_answers(30) | {"item": [int(item[1:]) for item in make_answers(30)["item"]]}
    write_table(pa.table(numbered), "numbered.csv")
    features = np.random.default_rng(0).normal(size=(30, 2))
    sparse.save_npz("sparse.npz", sparse.csr_array(features))
    os.rename("sparse.npz", "sparse.npy")
    with open("dense.npz", "wb") as stream:
        np.save(stream, features)
    for name in ("sparse.npy", "dense.npz"):
        result = run("fuse", "numbered.csv", "--knn", name, "--k", "3", "--quiet")
        assert result.exit_code == 0, result.output


# Names of files


@pytest.mark.parametrize("path", ["a\0b.csv", "d\0/a.csv", "\ud800.csv"])
def test_names_that_no_file_can_have(folder, path):
    fused = cs.MajorityVote().fit(answers_with())
    assert "is no name of a file" in refusal(write_table, pa.table({"a": [1]}), path)
    assert "is no name of a file" in refusal(fused.save, path)
    assert "does not exist" in refusal(cs.read_answers, path)
    assert "does not exist" in refusal(cs.fuse, answers_with(), gold=path)
    with pytest.raises(ConsilienceError):
        cs.load(path)
    assert os.listdir() == []


def test_names_of_files_that_are_not_utf8(folder):
    name = os.fsdecode(b"caf\xe9")
    try:
        os.mkdir(name)
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    table = pa.table(make_answers(30))
    for suffix in list_suffixes(writable_formats()):
        path = f"{name}/{name}{suffix}"
        write_table(table, path)
        assert read_table(path).table.equals(table)
        model = f"{name}/{name}.model"
        result = run("fuse", path, "-o", f"{name}/labels{suffix}", "--save", model, "--json")
        assert result.exit_code == 0, result.output
        assert cs.load(model).n_iter_ > 0
        os.remove(f"{name}/labels{suffix}")


# Streams that are closed or full


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a shell")
@pytest.mark.parametrize("closed", rest_robust(["<&- >&- 2>&-", "2>&-", ">&-", "<&-"]))
def test_closed_streams(answers, closed):
    def shell(arguments: str) -> int:
        command = f"{sys.executable} -c '{MAIN}' {arguments} {closed}"
        return subprocess.run(command, shell=True, capture_output=True, timeout=60, env=environment()).returncode

    assert shell("fuse answers.csv -o labels.csv") == 0
    assert read_table("labels.csv").table.num_rows == 30
    # A file that was opened in place of a stream would hold what is printed.
    assert Path("answers.csv").read_text().startswith("item,worker,label\n")
    assert shell("fuse nothing.csv") == 2
    assert shell("--help") == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", rest_robust(["fuse answers.csv", "fuse answers.csv --json", "--help"]))
def test_a_full_output(answers, arguments, unbuffered):
    command = f"{sys.executable} -c '{MAIN}' {arguments} >/dev/full"
    settings = environment() | {"PYTHONUNBUFFERED": unbuffered}
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, env=settings)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert "No space left" in result.stderr


# Long messages


def test_long_messages_are_cut_in_the_middle():
    for n in (0, LONGEST - 20, LONGEST, LONGEST + 1, 10 * LONGEST, 1_000_000):
        error = InputError(f"The column {'x' * n} is empty.", Sentence("Name another with {label}.", label="y" * n))
        for text in (str(error), error.say(lambda name, value: f"--{name} {value}"), str(DataWarning(*error.args))):
            assert len(text) <= LONGEST
            assert text.startswith("The column ")
            assert text.endswith(".")
    said = str(InputError(f"The column {LONG} is empty.", "Fill it in."))
    assert said.endswith(" is empty. Fill it in.")
    assert " characters] ..." in said


@pytest.mark.parametrize("width", [1, 30, 31, 200])
@pytest.mark.parametrize("n", [0, 1, 30, 31, 100, 12_345])
def test_cut_counts_what_it_leaves_out(n, width):
    text = "".join(chr(97 + i % 26) for i in range(n))
    short = cut(text, width)
    if n <= width:
        assert short == text
    elif width > 30:
        head, _, rest = short.partition("... [")
        count, _, tail = rest.partition(" characters] ...")
        assert len(short) <= width
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(count.replace(",", "")) + len(tail) == n


def test_values_that_cannot_be_shown():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert shorten(Broken()) == "<Broken>"
    assert shorten(deep) == "<list>"
    while deep:
        deep = deep[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("fuse", LONG),
        ("fuse", "answers.csv", "-o", LONG),
        ("fuse", "answers.csv", "-o", f"{LONG}.csv"),
        ("fuse", "answers.csv", "--save", LONG),
        ("fuse", "answers.csv", "--item", LONG),
        ("fuse", "answers.csv", "--classes", LONG),
        ("fuse", "answers.csv", "--gold", LONG),
        ("fuse", "answers.csv", "--knn", LONG),
        ("fuse", "answers.csv", "--model", LONG),
        ("fuse", "answers.csv", "--max-iter", LONG),
        ("fuse", f"--{LONG}"),
        ("fuse", "\x1b" * 10_000),
        (LONG,),
        ("evaluate", LONG, LONG),
        ("simulate", "independent", "-o", LONG),
        ("simulate", LONG),
    ],
    ids=lambda arguments: " ".join(each[:12] for each in arguments),
)
def test_long_arguments(answers, arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output[:500]
    assert 0 < len(result.stderr) <= LONGEST + 1


def test_long_failures_and_warnings(answers, monkeypatch):
    def fail(*_, **__):
        import warnings

        warnings.warn(LONG, UserWarning, stacklevel=1)
        warnings.warn(DataWarning(LONG, "Look."), stacklevel=1)
        raise RuntimeError(LONG)

    monkeypatch.setattr("consilience.api.fuse_prepared", fail)
    for options in ((), ("--debug",)):
        result = run("fuse", "answers.csv", *options)
        assert result.exit_code == 1
        assert max(map(len, result.stderr.splitlines())) <= LONGEST + len("Warning: ")
    assert click.unstyle(result.stderr).count("Warning: ") == 2


# Python objects


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([["a", "b"], ["c", "d"]]),
        np.array([[0, None], [1, 0]], dtype=object),
        np.array([[0, 1], [1, 0]], "M8[s]"),
        np.zeros((2, 2), "V3"),
        [[0, 1], [1]],
        "text",
    ],
    ids=["text", "objects", "times", "void", "ragged", "no matrix"],
)
def test_adjacency_matrices_of_something_else(matrix):
    assert "An adjacency matrix" in refusal(cs.Graph.from_scipy, matrix)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("features", [np.zeros((5, 0)), sparse.csr_array((5, 0))], ids=["dense", "sparse"])
def test_neighbours_without_features(features, metric):
    assert "at least one column. They have the shape (5, 0)" in refusal(cs.Graph.knn, features, 2, metric=metric)


def test_neighbours_at_distances_beyond_all_numbers():
    features = np.linspace(-1e300, 1e300, 10).reshape(5, 2)
    assert "must not be larger than 1e+15" in refusal(cs.Graph.knn, features, 2)
    assert cs.Graph.knn(features * 1e-290, 2).n_items == 5


def test_sparse_features_whose_indices_lie():
    features = sparse.random(30, 5, 0.5, format="csr", random_state=0)
    features.indices[:] = 10**6
    assert "features must be numbers" in refusal(cs.Graph.knn, features, 2)


def test_metrics_and_matrices_of_odd_arrays():
    odd = pa.array([1, 2], pa.time64("ns"))
    assert "must be an array of labels" in refusal(cs.metrics.accuracy, odd, odd)
    assert "must be a matrix" in refusal(cs.Answers.from_matrix, odd)


@pytest.mark.filterwarnings("ignore:No known label")
def test_bytes_that_are_no_text_are_evaluated():
    raw = pa.array([b"\xff", b"a"])
    gold = pa.table({"item": [1, 2], "label": raw})
    assert cs.evaluate(pa.table({"item": [1, 2], "label": ["b", "c"]}), gold).accuracy == 0
    assert cs.evaluate(gold, gold).accuracy == 1


# Half characters

HALF, OTHER = "\ud800", "\udfff"


@pytest.mark.parametrize("role", ["item", "worker", "label"])
@pytest.mark.parametrize("backend", ["dict", "pandas"])
def test_half_characters_are_shown_by_their_codes(role, backend, folder):
    columns = {"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "x", "y", "y"]}
    first = columns[role][0]
    columns[role] = [HALF if value == first else OTHER for value in columns[role]]
    source = columns if backend == "dict" else pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()})
    fused = cs.DawidSkene().fit(source)
    if role == "label":
        assert fused.classes_.tolist() == [HALF, OTHER]
        names = fused.to_frame().column_names if backend == "dict" else list(fused.to_frame().columns)
        assert names[-2:] == ["p(\\ud800)", "p(\\udfff)"]
    for table in (fused.to_frame(), fused.worker_report()) if backend == "dict" else ():
        if role in table.column_names:
            assert set(table[role].to_pylist()) <= {"\\ud800", "\\udfff"}
        for suffix in (".csv", ".jsonl", ".parquet", ".arrow"):
            write_table(table, f"table{suffix}")
            assert read_table(f"table{suffix}").table.column_names == table.column_names
    with pytest.raises(StoreError, match=r"'\\ud800' has half a character"):
        fused.save("fit.model")
    assert not Path("fit.model").exists()


def test_half_characters_are_evaluated():
    gold = {"item": [1, 2], "label": [HALF, OTHER]}
    assert cs.evaluate(gold, gold).accuracy == 1
    assert cs.evaluate({"item": [1, 2], "label": [HALF, "x"]}, gold).accuracy == 0.5
