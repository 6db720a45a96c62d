"""Input at fault: our own exception, exit code 2, and never a message that is too long."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import consilience as cs
from consilience.errors import LONGEST_MESSAGE, ConsilienceError, DataWarning, InputError, Sentence, StoreError
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
    assert len(str(caught.value)) <= LONGEST_MESSAGE
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


# Categories over batches


def batches(*categories):
    parts = [pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(each)) for each in categories]
    return pa.chunked_array(parts)


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
                outcomes.add("refused" if len(str(error)) <= LONGEST_MESSAGE else "refused at length")
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
    assert len(result.stderr) <= LONGEST_MESSAGE


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
    for n in (0, LONGEST_MESSAGE - 20, LONGEST_MESSAGE, LONGEST_MESSAGE + 1, 10 * LONGEST_MESSAGE, 1_000_000):
        error = InputError(f"The column {'x' * n} is empty.", Sentence("Name another with {label}.", label="y" * n))
        for text in (str(error), error.say(lambda name, value: f"--{name} {value}"), str(DataWarning(*error.args))):
            assert len(text) <= LONGEST_MESSAGE
            assert text.startswith("The column ")
            assert text.endswith(".")
    said = str(InputError(f"The column {LONG} is empty.", "Fill it in."))
    assert said.endswith(" is empty. Fill it in.")
    assert " characters] ..." in said


# Python objects


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[0, None], [1, 0]], dtype=object),
        [[0, 1], [1]],
        "text",
    ],
    ids=["objects", "ragged", "no matrix"],
)
def test_adjacency_matrices_of_something_else(matrix):
    assert "An adjacency matrix" in refusal(cs.Graph.from_scipy, matrix)


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
