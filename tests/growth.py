"""Cost goes by size: a dimension of a small valid source is doubled, and neither time nor memory may more than triple.

`SOURCES` lists what is grown: one line says how a source of some size is written, what is done with it, and which
dimensions it has. A new format or kind of answer is a line more; a new dimension is a field of `Size` more.

A source is doubled until it takes `seconds` of processor time, or is refused, which must be soon. A factor counts only
from a size on at which it can be measured. The time is that of this process, so that others do not disturb it; a factor
that is too large is measured again, and the least time counts.

    python tests/growth.py              all sources and dimensions, up to two seconds each
    python tests/growth.py jsonl wide   only these
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import consilience as cs
from consilience.answers.layouts import LAYOUTS
from consilience.errors import ConsilienceError
from consilience.formats import find_by_name
from consilience.formats.sources import open_source
from consilience.formats.writing import write_table
from consilience.rankings.comparisons import open_comparisons

# Of two sizes, one twice the other: the largest factor between their costs, and the costs from which on it counts.
MOST, LEAST_SECONDS, LEAST_BYTES = 3.0, 0.05, 16 << 20
# Seconds in which a source is refused.
REFUSAL = 2.0
N_REPEATS = 5
# How many times as large a dimension gets: there are no more workers, or classes, than answers in a table.
MOST_FACTOR = 1 << 11
# Characters of a document for each of its positions.
WORD = 5


@dataclass(frozen=True)
class Size:
    """How large a source is in each dimension."""

    items: int = 500  # rows of a matrix; documents, sequences and images too
    workers: int = 6
    classes: int = 4
    positions: int = 8  # of a sequence, words of a document, pixels of a side of an image, squared
    columns: int = 2  # beside those that are read
    names: int = 1  # that some JSON objects have and others not
    depth: int = 1  # of what is nested in JSON
    tags: int = 4  # that there are, of which each item has half
    candidates: int = 8
    questions: int = 2

    def grow(self, dimension: str, factor: int) -> Size:
        """Return the size with one dimension so many times as large."""
        return replace(self, **{dimension: factor * getattr(self, dimension)})


class Observations(NamedTuple):
    """A kind of source: what writes one of some size to a folder, what is done with it, and its dimensions."""

    write: Callable[[Size, Path], object]
    use: Callable[[object], object]
    dimensions: tuple[str, ...]
    start: Size = Size()


# ------------------------------------------------------------------------------------------------------------ writing


def make_table(size: Size) -> dict[str, list[object]]:
    """Return three answers to each item, with columns beside them."""
    n_rows = 3 * size.items
    rows = range(n_rows)
    table: dict[str, list[object]] = {
        "item": [f"item {row // 3}" for row in rows],
        "worker": [f"worker {(row // 3 * 5 + row % 3) % size.workers}" for row in rows],
        "label": [f"label {(row // 3 + (row % 7 == 0)) % size.classes}" for row in rows],
    }
    return table | {f"column {number}": [str(number + row) for row in rows] for number in range(size.columns)}


def write_plain(name: str) -> Callable[[Size, Path], str]:
    def write(size: Size, folder: Path) -> str:
        path = folder / f"a{find_by_name(name).suffixes[0]}"
        write_table(pa.table(make_table(size)), path)
        return str(path)

    return write


def write_objects(size: Size, folder: Path) -> str:
    """Write JSON lines in which each name stands in some objects only, and something is nested."""
    table = make_table(size)
    nested: object = 1
    for level in range(size.depth):
        nested = {f"level {level}": nested}
    records = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    for number, record in enumerate(records):
        record[f"name {number % size.names}"] = nested
    (folder / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(folder / "a.jsonl")


def write_sequences(size: Size, folder: Path) -> str:
    n = size.items * size.positions
    place = np.arange(3 * n) // 3
    label = (place + (np.arange(3 * n) % 7 == 0)) % size.classes
    table = {"sequence": place // size.positions, "position": place % size.positions}
    table |= {"worker": (place // size.positions * 5 + np.arange(3 * n) % 3) % size.workers, "label": label}
    write_table(pa.table(table), folder / "a.csv")
    return str(folder / "a.csv")


def write_form(header: str, line: str, sign: str = ",") -> Callable[[Size, Path], str]:
    """Return what writes the results of a platform, a line for each answer, and columns beside them."""

    def write(size: Size, folder: Path) -> str:
        table = make_table(size)
        more = [f"_column {number}" for number in range(size.columns)]
        rows = zip(table["item"], table["worker"], table["label"], strict=True)
        lines = [sign.join([line.format(*row), *more]) for row in rows]
        (folder / "a.csv").write_text("\n".join([sign.join([header, *more]), *lines]) + "\n")
        return str(folder / "a.csv")

    return write


def make_matrix(size: Size) -> np.ndarray:
    item, worker = np.indices((size.items, size.workers))
    return (item + (item * 5 + worker) % 7 // 6) % size.classes


def write_wide(size: Size, folder: Path) -> str:
    matrix = make_matrix(size)
    table = {"item": np.arange(size.items)} | {f"worker {w}": matrix[:, w] for w in range(size.workers)}
    write_table(pa.table(table), folder / "a.csv")
    return str(folder / "a.csv")


def write_matrix(size: Size, folder: Path) -> str:
    np.save(folder / "a.npy", make_matrix(size).astype(np.int16))
    return str(folder / "a.npy")


def make_votes(size: Size) -> np.ndarray:
    votes = 0.1 / size.classes + 0.9 * (make_matrix(size)[..., None] == np.arange(size.classes))
    return votes / votes.sum(axis=2, keepdims=True)


def write_soft(size: Size, folder: Path) -> str:
    """Write a row for each vote, and a column for each class."""
    votes = make_votes(size)
    item, worker = (index.ravel() for index in np.indices(votes.shape[:2]))
    cells = {f"p(class {k})": votes[..., k].ravel() for k in range(size.classes)}
    write_table(pa.table({"item": item, "worker": worker} | cells), folder / "a.csv")
    return str(folder / "a.csv")


def write_soft_long(size: Size, folder: Path) -> str:
    votes = make_votes(size)
    names = ("item", "worker", "label", "probability")
    columns = [*(index.ravel() for index in np.indices(votes.shape)), votes.ravel()]
    write_table(pa.table(dict(zip(names, columns, strict=True))), folder / "a.csv")
    return str(folder / "a.csv")


def write_soft_files(size: Size, folder: Path) -> str:
    votes = make_votes(size)
    for m in range(size.workers):
        np.save(folder / f"worker {m}.npy", votes[:, m])
    return str(folder)


def write_marked(name: str) -> Callable[[Size, Path], str]:
    """Return what writes documents in which workers marked every fourth word."""
    file = {"brat": "a", "doccano": "a", "conll": "a.conll", "prodigy": "a.jsonl"}.get(name, "a.json")

    def write(size: Size, folder: Path) -> str:
        text = "word " * size.positions
        spans = [
            (f"document {n}", f"worker {w}", WORD * p, WORD * p + 4, f"type-{(n + p) % size.classes}")
            for n in range(size.items)
            for w in range(size.workers)
            for p in range(w % 4, size.positions, 4)
        ]
        columns = dict(zip(("document", "worker", "start", "end", "label"), zip(*spans, strict=True), strict=True))
        marked = cs.Spans.from_frame(columns, texts={f"document {n}": text for n in range(size.items)})
        cs.write_spans(marked, folder / file, format=name)
        return str(folder / file)

    return write


def write_masks(size: Size, folder: Path) -> str:
    """Write images whose numbers of pixels are the square of the positions at the start, and then grow by them."""
    shape = (Size().positions, size.positions)
    for reader in range(size.workers):
        (folder / f"reader {reader}").mkdir()
        for image in range(size.items):
            pixels = (np.arange(np.prod(shape)) // 3 + image) % size.classes
            pixels[reader] = 0
            np.save(folder / f"reader {reader}" / f"image {image}.npy", pixels.reshape(shape).astype(np.int32))
    return str(folder)


def write_tags(size: Size, folder: Path) -> str:
    """Write sets in cells: each has about half of the tags."""
    table = make_table(replace(size, columns=0))
    said = [";".join(f"tag {k}" for k in range(row // 3 % 2, size.tags, 2)) for row in range(len(table["label"]))]
    write_table(pa.table(table | {"label": said}), folder / "a.csv")
    return str(folder / "a.csv")


def write_questions(size: Size, folder: Path) -> tuple[str, list[str]]:
    table = make_table(replace(size, columns=0))
    said = table.pop("label")
    names = [f"question {number}" for number in range(size.questions)]
    write_table(pa.table(table | dict.fromkeys(names, said)), folder / "a.csv")
    return str(folder / "a.csv"), names


def write_verdicts(size: Size, folder: Path) -> str:
    """Write verdicts on pairs, each candidate with the next and the one after."""
    row = np.arange(3 * size.items)
    left, step = row % size.candidates, 1 + row // size.candidates % 2
    columns = {"judge": row * 5 % size.workers, "left": left, "right": (left + step) % size.candidates}
    columns["winner"] = np.where(row % 4 == 0, columns["right"], columns["left"])
    write_table(pa.table(columns), folder / "a.csv")
    return str(folder / "a.csv")


def keep(size: Size, folder: Path) -> tuple[cs.Answers, Path]:
    return cs.Answers.from_frame(make_table(size)), folder


def keep_sequences(size: Size, folder: Path) -> tuple[cs.Answers, Path]:
    return cs.read_answers(write_sequences(size, folder)), folder


# -------------------------------------------------------------------------------------------------------------- using


def fit(model: cs.Model) -> Callable[[object], object]:
    return lambda given: type(model)(**model.get_params()).fit(given[0])


def fuse(given: object) -> object:
    return cs.fuse(given[0])


def read_tags(given: object) -> object:
    return cs.read_tags(given, separator=";")


def fuse_tags(given: object) -> object:
    return cs.fuse(given, separator=";", max_iter=5, calibration="none")


def fuse_questions(given: object) -> object:
    return cs.fuse(given[0], label=given[1], max_iter=5, calibration="none")


def fuse_soft(given: object) -> object:
    return cs.DawidSkene(workers="temperatures", max_iter=5, calibration="none").fit(cs.read_answers(given))


def read_verdicts(given: object) -> object:
    return open_comparisons(given)


def rank(given: object) -> object:
    return cs.rank(given, n_draws=50, max_iter=20)


def write_labels(suffix: str) -> Callable[[object], object]:
    return lambda given: write_table(cs.MajorityVote().fit(given[0]).to_frame(), given[1] / f"labels{suffix}")


def write_wide_table(given: object) -> object:
    return write_table(LAYOUTS["wide"](given[0]), given[1] / "wide.csv")


def write_again(name: str) -> Callable[[object], object]:
    """Return what reads the file of a tool, and writes a copy with the annotations in place."""

    def use(given: object) -> object:
        path = Path(given)
        return cs.write_spans(cs.read_spans(path, format=name), path.with_name(f"b{path.suffix}"), format=name)

    return use


def save(given: object) -> object:
    return cs.load(cs.MajorityVote().fit(given[0]).save(given[1] / "a.model"))


def report(given: object) -> object:
    return cs.report(cs.MajorityVote().fit(given[0]), given[1] / "r.html")


TABLE = ("items", "workers", "classes", "columns")
CROWD = ("items", "workers", "classes")
SPANS = ("items", "workers", "classes", "positions")
MTURK = "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.url,Answer.category", "h{0},{0}{1},{1},Approved,{0},{2}"
TOLOKA = "INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\tASSIGNMENT:status", "{0}\t{2}\t{1}\tAPPROVED"
APPEN = "_unit_id,_created_at,_worker_id,_trust,category", "{0},1,{1},1,{2}"
FEW, SOFT = Size(items=4, workers=3, positions=16), Size(items=100)

# By their names: those of formats and of forms of tables, then what is done with answers. A name stands before a colon.
SOURCES: dict[str, Observations] = {
    "csv": Observations(write_plain("csv"), open_source, TABLE),
    "jsonl: objects": Observations(write_objects, open_source, ("names", "depth"), Size()),
    "jsonl": Observations(write_plain("jsonl"), open_source, TABLE),
    "matrix": Observations(write_matrix, open_source, CROWD),
    "wide": Observations(write_wide, open_source, CROWD),
    "masks": Observations(write_masks, open_source, ("items", "workers", "classes", "positions"), FEW),
    "fit: vote": Observations(keep, fit(cs.MajorityVote()), CROWD),
    "tsv": Observations(write_plain("tsv"), open_source, TABLE),
    "parquet": Observations(write_plain("parquet"), open_source, TABLE),
    "arrow": Observations(write_plain("arrow"), open_source, TABLE),
    "long": Observations(write_sequences, open_source, ("items", "positions", "workers", "classes")),
    "mturk": Observations(write_form(*MTURK), open_source, TABLE),
    "toloka": Observations(write_form(*TOLOKA, "\t"), open_source, TABLE),
    "appen": Observations(write_form(*APPEN), open_source, TABLE),
    "soft": Observations(write_soft, open_source, CROWD, SOFT),
    "soft-long": Observations(write_soft_long, open_source, CROWD, SOFT),
    "soft-files": Observations(write_soft_files, open_source, CROWD, SOFT),
    "label-studio": Observations(write_marked("label-studio"), open_source, SPANS, FEW),
    "prodigy": Observations(write_marked("prodigy"), open_source, SPANS, FEW),
    "argilla": Observations(write_marked("argilla"), open_source, SPANS, FEW),
    "doccano": Observations(write_marked("doccano"), open_source, SPANS, FEW),
    "brat": Observations(write_marked("brat"), open_source, SPANS, FEW),
    "conll": Observations(write_marked("conll"), open_source, SPANS, FEW),
    # Matrices of workers grow with the square of the classes; the guards of sizes hold these.
    "fit: fuse": Observations(keep, fuse, ("items", "workers")),
    "fit: sequences": Observations(keep_sequences, fuse, ("items", "positions"), Size(items=4)),
    "fit: soft": Observations(write_soft, fuse_soft, CROWD, SOFT),
    "tags": Observations(write_tags, read_tags, ("items", "workers", "tags")),
    "fit: tags": Observations(write_tags, fuse_tags, ("items", "tags"), Size(items=100)),
    "fit: questions": Observations(write_questions, fuse_questions, ("items", "questions"), Size(items=100)),
    # Matrices of candidates grow with their square, and there are at most 5,000.
    "comparisons": Observations(write_verdicts, read_verdicts, ("items", "workers", "candidates")),
    "fit: comparisons": Observations(write_verdicts, rank, ("items", "workers", "candidates")),
    "output: csv": Observations(keep, write_labels(".csv"), CROWD),
    "output: jsonl": Observations(keep, write_labels(".jsonl"), CROWD),
    "output: parquet": Observations(keep, write_labels(".parquet"), CROWD),
    "output: wide": Observations(keep, write_wide_table, CROWD),
    **{
        f"output: {name}": Observations(write_marked(name), write_again(name), SPANS, FEW)
        for name in ("label-studio", "prodigy", "argilla", "doccano", "brat", "conll")
    },
    "output: model": Observations(keep, save, ("items", "workers")),
    "output: report": Observations(keep, report, ("items", "workers")),
}

# ---------------------------------------------------------------------------------------------------------- measuring


# Threads of Arrow may still give memory back to a pool after it was used, so that all are kept.
POOLS: list[pa.MemoryPool] = []


class Cost(NamedTuple):
    """What it takes to use a source, and why it was refused, if it was."""

    seconds: float
    n_bytes: int
    refused: str = ""


def measure(observations: Observations, size: Size, with_memory: bool) -> Cost:
    """Return what it takes to use a source of some size; memory in a run of its own, which takes longer."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = observations.write(size, Path(name))
        began, refused = time.process_time(), ""
        try:
            observations.use(written)
        except ConsilienceError as error:
            refused = str(error)
        seconds = time.process_time() - began
        if not with_memory or refused:
            return Cost(seconds, 0, refused)
        pool = pa.proxy_memory_pool(usual := pa.default_memory_pool())
        POOLS.append(pool)
        pa.set_memory_pool(pool)
        tracemalloc.start()
        try:
            observations.use(written)
            return Cost(seconds, tracemalloc.get_traced_memory()[1] + pool.max_memory())
        finally:
            tracemalloc.stop()
            pa.set_memory_pool(usual)


def find_leaps(observations: Observations, dimension: str, seconds: float) -> Iterator[str]:
    """Yield a line for each doubling of a dimension that more than triples the cost, and for a refusal that takes long.

    It ends when using the source takes so many seconds.
    """
    factor = 1
    measure(observations, observations.start, False)  # which loads and compiles
    before = measure(observations, observations.start, True)
    if before.refused:
        yield f"{observations.start}: {before.refused}"
    while before.seconds < seconds and not before.refused and factor < MOST_FACTOR:
        factor *= 2
        size = observations.start.grow(dimension, factor)
        after = measure(observations, size, True)
        if after.refused:
            if after.seconds > REFUSAL:
                yield f"{size}: refused after {after.seconds:.1f} s ({after.refused[:100]})"
            return
        if after.n_bytes > MOST * max(before.n_bytes, LEAST_BYTES):
            yield f"{size}: {after.n_bytes:,} bytes, and {before.n_bytes:,} for half of it"
        if after.seconds > MOST * max(before.seconds, LEAST_SECONDS):
            half = observations.start.grow(dimension, factor // 2)
            least = [
                min(measure(observations, each, False).seconds for _ in range(N_REPEATS)) for each in (half, size)
            ]  # whoever disturbed one run does not disturb all
            if least[1] > MOST * max(least[0], LEAST_SECONDS):
                yield f"{size}: {least[1]:.2f} s, and {least[0]:.2f} s for half of it"
        before = after


def list_cases(*names: str) -> list[tuple[str, str]]:
    """Return the names of sources, all by default, with their dimensions."""
    return [(name, dimension) for name in names or SOURCES for dimension in SOURCES[name].dimensions]


def main(names: list[str]) -> int:
    """Grow all sources; return 1 if the cost of any leaps."""
    failed = False
    for name, dimension in list_cases(*names):
        leaps = list(find_leaps(SOURCES[name], dimension, seconds=2.0))
        print(f"{name}, {dimension}: {'; '.join(leaps) or 'no factor above three'}", flush=True)
        failed |= bool(leaps)
    return int(failed)


if __name__ == "__main__":
    os.environ.setdefault("CONSILIENCE_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
