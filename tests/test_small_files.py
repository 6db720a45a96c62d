"""Small files, large trouble: what a few hundred kilobytes would make cost minutes or gigabytes is refused at once."""

from __future__ import annotations

import json
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.errors import InputError
from test_cli import run

# Seconds of this process: what the bar allows for an error.
MOST_SECONDS = 2.0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refuse(words: str, *arguments: str, command: str = "fuse") -> None:
    """Demand an error in these words, soon, and no output."""
    began = time.process_time()
    result = run(command, *arguments)
    assert time.process_time() - began < MOST_SECONDS
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
    assert not Path("labels.csv").exists()


def write_png(path: Path, side: int) -> None:
    """Write a transparent picture that is all of one colour, without taking its memory."""
    packed = zlib.compressobj(9)
    rows = b"".join(packed.compress(bytes(1 + 4 * side)) for _ in range(side)) + packed.flush()

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([8, 6, 0, 0, 0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


@pytest.mark.parametrize("form", ["long", "wide", "json"])
def test_very_many_columns(form):
    names = [*(["item", "worker", "label"] if form == "long" else ["item"]), *(f"c{i}" for i in range(200_000))]
    if form == "json":
        Path("a.jsonl").write_text(json.dumps(dict.fromkeys(names[:20_000], "x")) + "\n")
        return refuse("has 20,000 columns, and at most 10,000 are taken", "a.jsonl", "-o", "labels.csv")
    Path("a.csv").write_text(",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
    options = ("--format", "wide") if form == "wide" else ()
    return refuse(f"has {len(names):,} columns, and at most 10,000 are taken", "a.csv", "-o", "labels.csv", *options)


@pytest.mark.parametrize("shape", [(1, 2_000_000), (2, 5_000_000)])
def test_very_wide_matrices(shape):
    np.save("a.npy", np.zeros(shape, np.int8))
    refuse(f"has {shape[1]:,} columns", "a.npy", "-o", "labels.csv")


@pytest.mark.parametrize("save", [np.save, np.savez_compressed])
def test_masks_of_very_many_readers(save):
    name = "a.npy" if save is np.save else "a.npz"
    save(name, np.zeros((2_000_000, 1, 1), np.uint8))
    refuse("There are 2,000,000 readers along the first axis, and at most 10,000 are taken", name, "-o", "labels")


def test_sequences_with_thousands_of_labels():
    rows = "".join(f"{i // 20},{i % 20},{w},L{i}\n" for i in range(2000) for w in range(2))
    Path("a.csv").write_text(f"sequence,position,worker,label\n{rows}")
    refuse("takes at most 100 classes for 4,000 answers", "a.csv", "-o", "labels.csv")


@pytest.mark.parametrize("options", ["-o labels.csv", "--report r.html", "--save m.model"])
@pytest.mark.parametrize("model", ["majority", "dawid-skene"])
def test_a_label_for_each_answer(model, options):
    Path("a.csv").write_text("item,worker,label\n" + "".join(f"{i // 2},{i % 2},L{i}\n" for i in range(20_000)))
    refuse("needs probabilities for 10,000 items x 20,000 classes", "a.csv", "--model", model, *options.split())
    assert not any(map(Path.exists, map(Path, ("r.html", "m.model"))))


@pytest.mark.parametrize("n_pictures", [1, 6])
def test_pictures_that_unpack_to_a_thousand_times_their_size(n_pictures):
    pytest.importorskip("PIL")
    for number in range(n_pictures):
        write_png(Path(f"a/reader {number % 3}/{number}.png"), 3000)
    refuse("It is not clear what the folders in 'a' stand for", "a", "-o", "labels")


def test_questions_by_the_thousand():
    names = ",".join(f"q{number}" for number in range(1000))
    rows = "".join(f"{i // 3},{i % 3},{','.join('ab'[i % 2] for _ in range(1000))}\n" for i in range(30))
    Path("a.csv").write_text(f"item,worker,{names}\n{rows}")
    refuse("There are 1,000 questions, and at most 200 are taken", "a.csv", "--label", "q*", "-o", "labels.csv")


@pytest.mark.parametrize(("n_rows", "n_each"), [(2000, 5), (3, 10_000)])
def test_very_many_tags(n_rows, n_each):
    sets = (";".join(f"tag {k}" for k in range(n * n_each, (n + 1) * n_each)) for n in range(n_rows))
    Path("a.csv").write_text(
        "item,worker,tags\n" + "".join(f"{n // 3},{n % 3},{said}\n" for n, said in enumerate(sets))
    )
    words = f"There are {n_rows * n_each:,} different tags, and at most 500 are taken"
    refuse(words, "a.csv", "--separator", ";", "-o", "labels.csv")


def test_sets_of_a_worker_each():
    """Each worker has a skill for each tag: 30,000 workers took minutes and gigabytes."""
    rows = "".join(f"{i // 5},w{i},t{i % 50};t{i * 7 % 50}\n" for i in range(10_000))
    Path("a.csv").write_text(f"item,worker,tags\n{rows}")
    words = "10,000 workers x 50 tags are 500,000 skills to be learned from 10,000 sets, and at most 200,000 are taken"
    refuse(words, "a.csv", "--separator", ";", "-o", "labels.csv")


def test_soft_votes_with_labels_of_their_own():
    rows = "".join(f"{i // 4},{i // 2 % 2},L{i},.5\n" for i in range(20_000))
    Path("a.csv").write_text(f"item,worker,label,probability\n{rows}")
    words = "has 10,000 votes on 20,000 labels, 200,000,000 cells for 20,000 probabilities, and at most 5,000,000"
    refuse(words, "a.csv", "-o", "labels.csv")


@pytest.mark.parametrize("n", [3000, 30_000])
def test_tables_with_a_column_for_each_of_very_many_workers(n):
    """They are nearly empty: 30,000 answers by as many workers took minutes."""
    Path("a.csv").write_text("item,worker,label\n" + "".join(f"{i},w{i},{'ab'[i % 2]}\n" for i in range(n)))
    refuse(f"take {n * n:,} cells for {n:,} answers", "a.csv", "labels.csv", "--to", "wide", command="convert")


def test_very_many_candidates():
    rows = "".join(f"{i},{i + 1},left\n" for i in range(6000))
    Path("a.csv").write_text(f"left,right,winner\n{rows}")
    refuse("6,001 candidates", "a.csv", "-o", "labels.csv", command="rank")


def test_arrays_that_unpack_to_a_thousand_times_their_size():
    np.savez_compressed("a.npz", np.zeros((9, 8000, 8000), np.uint8))
    refuse("unpack to 576,000,128, and at most 536,870,912 are taken", "a.npz", "-o", "labels")


@pytest.mark.parametrize(("n_workers", "n_classes"), [(300, 10), (5, 60)])
def test_ratings_with_few_answers_for_each_entry(n_workers, n_classes):
    """A rater of one answer may be of any type: 300 took two minutes. Such a scale is fused without types."""
    n = max(n_workers, 3 * n_classes)
    rating = 1 + np.arange(n) // 3 % n_classes
    table = {"item": np.arange(n) // 3, "worker": np.arange(n) % n_workers, "label": rating}
    began = time.process_time()
    for options in ({}, {"ordered": True}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", cs.errors.ConsilienceWarning)
            fused = cs.fuse(table, **options)
        assert any("fused without their order" in str(each.message) for each in caught) == bool(options)
        assert fused.get_params()["workers"] == ("one-coin" if n_classes > 20 else "confusion")
    assert "median" in fused.to_frame().column_names
    assert time.process_time() - began < 30
    r = cs.Answers.from_frame(table, ordered=True)
    with pytest.raises(InputError, match=r"with 540 types of workers, which takes too long.*Use workers='confusion'"):
        cs.DawidSkene(workers="ordinal").fit(r)
