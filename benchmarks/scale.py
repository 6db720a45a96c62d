"""Growth: from a file of answers to a file of labels, by the number of answers, in memory and on disk.

Each run is a process of its own. It first goes its way with a small crowd, so that everything is imported and loaded.
Then the clock runs until the labels are written. DuckDB counts majority votes of the same file into a file, and
crowd-kit fits `DawidSkene` where that takes minutes at most.

    python benchmarks/scale.py 1e5 1e6 1e7    # these sizes; prints
    python benchmarks/run.py scale            # up to 1e7 answers; renews the tables and the picture of the docs
    python benchmarks/run.py scale --largest 1e8
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alone import half_of_memory, measure_alone, read_memory
from crowd import Crowd

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
N_CLASSES, ANSWERS_PER_ITEM, MOST_WORKERS = 4, 5, 10_000
LARGEST, QUICK, SMALL = 10_000_000, 20_000, 100_000
MEMORY = "4GB"  # the limit of the way by disk
LIMIT = 1200  # seconds
IN_MEMORY, ONE_THREAD, ON_DISK, VOTE, RIVAL = "in memory", "one thread", "on disk", "DuckDB", "crowd-kit"
# How answers are written: rows in random order, or item by item, in Parquet; and in random order in CSV.
RANDOM, BY_ITEM, CSV = "random order", "item by item", "CSV"
# The largest number of answers that each takes in a reasonable time.
MOST = {IN_MEMORY: np.inf, ONE_THREAD: np.inf, ON_DISK: np.inf, VOTE: np.inf, RIVAL: 10_000_000}


class Growth(NamedTuple):
    """What each way took for one number of answers: figures by name, or the reason why there are none."""

    n_answers: int
    n_items: int
    n_workers: int
    file: int  # bytes
    ways: dict[str, dict[str, Any]]


def write_crowd(path: Path, n_answers: int, form: str = RANDOM) -> tuple[int, int]:
    """Write answers in one of the forms, and return the numbers of items and workers."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    n_items = n_answers // ANSWERS_PER_ITEM
    n_workers = min(MOST_WORKERS, n_answers // 1000)
    schema = pa.schema([("item", pa.int64()), ("worker", pa.int32()), ("label", pa.int8())])
    with (csv.CSVWriter if form == CSV else pq.ParquetWriter)(path, schema) as writer:
        for piece in Crowd(n_items, n_workers, N_CLASSES).draw():
            writer.write_table(pa.table(piece._asdict(), schema))
    if form == BY_ITEM:
        pq.write_table(pq.read_table(path).sort_by("item"), path, row_group_size=1 << 20)
    return n_items, n_workers


class Watch:
    """A clock for named stages, which also keeps the times of iterations."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self.steps: list[tuple[int, float]] = []
        self.start = self.last = time.perf_counter()
        self.start_work = time.process_time()

    def stage(self, name: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.stages[name], self.last = now - self.last, now

    def step(self, progress: Any) -> None:
        """End an iteration; models call this."""
        self.steps.append((progress.iteration, time.perf_counter()))

    def figures(self) -> dict[str, Any]:
        """Return all seconds, and the shortest iteration of the first fit: later ones calibrate, on fewer answers."""
        figures: dict[str, Any] = {
            "seconds": self.last - self.start,
            "work": time.process_time() - self.start_work,
            "peak": read_memory("VmHWM"),
            **self.stages,
        }
        first = [self.steps[0]] if self.steps else []
        for iteration, moment in self.steps[1:]:
            if iteration != first[-1][0] + 1:
                break
            first.append((iteration, moment))
        if len(first) > 1:
            figures |= {"step": min(np.diff([moment for _, moment in first])), "iterations": len(first)}
        return figures


def fuse_in_memory(source: Path, folder: Path) -> dict[str, Any]:
    import consilience as cs
    from consilience.formats.writing import write_table

    watch = Watch()
    responses = cs.read_answers(source)
    watch.stage("read")
    fused = cs.fuse(responses, callback=watch.step)
    watch.stage("fuse")
    write_table(fused.to_frame(), folder / "labels.parquet")
    watch.stage("write")
    return watch.figures()


def fuse_in_one_thread(source: Path, folder: Path) -> dict[str, Any]:
    import pyarrow as pa

    os.environ["CONSILIENCE_THREADS"] = "1"
    pa.set_cpu_count(1)
    return fuse_in_memory(source, folder)


def fuse_on_disk(source: Path, folder: Path) -> dict[str, Any]:
    import consilience as cs

    watch = Watch()
    stored = cs.scan_answers(source, memory=MEMORY, store=folder / "stores")
    watch.stage("read")
    fused = cs.fuse(stored, callback=watch.step)
    watch.stage("fuse")
    fused.write(folder / "labels")
    watch.stage("write")
    files = [file for file in (folder / "stores").rglob("*") if file.is_file()]
    return {**watch.figures(), "disk": sum(file.stat().st_size for file in files)}


def count_votes(source: Path, folder: Path) -> dict[str, Any]:
    import duckdb

    with duckdb.connect() as database:
        database.execute(f"set threads = {os.cpu_count()}")
        database.execute(f"set memory_limit = '{0.9 * half_of_memory() / 1e6:.0f}MB'")
        database.execute(f"set temp_directory = '{folder / 'spilled'}'")
        watch = Watch()
        query = f"select item, mode(label) as label from '{source}' group by item"
        database.execute(f"copy ({query}) to '{folder / 'votes.parquet'}' (format parquet)")
        watch.stage("all")
    return watch.figures()


def fit_crowd_kit(source: Path, folder: Path) -> dict[str, Any]:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    watch = Watch()
    answers = pd.read_parquet(source).rename(columns={"item": "task"})
    watch.stage("read")
    labels = DawidSkene().fit_predict(answers)
    watch.stage("fuse")
    labels.to_frame("label").to_parquet(folder / "labels.parquet")
    watch.stage("write")
    return watch.figures()


WAYS: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    VOTE: count_votes,
    IN_MEMORY: fuse_in_memory,
    ONE_THREAD: fuse_in_one_thread,
    ON_DISK: fuse_on_disk,
    RIVAL: fit_crowd_kit,
}


def measure_here(way: str, small: str, source: str) -> None:
    """Go one way in this process, first with a small crowd, and print the figures."""
    warnings.simplefilter("ignore")
    for path in map(Path, (small, source)):
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            figures = WAYS[way](path, Path(folder))
    print(json.dumps(figures))


def measure(n_answers: int, quick: bool = False, form: str = RANDOM) -> Growth:
    """Go all ways, one after the other, several times if that is quick; keep the fastest run of each."""
    with tempfile.TemporaryDirectory() as folder:
        suffix = ".csv" if form == CSV else ".parquet"
        small, source = Path(folder) / f"small{suffix}", Path(folder) / f"answers{suffix}"
        write_crowd(small, min(n_answers, SMALL), form)
        n_items, n_workers = write_crowd(source, n_answers, form)
        left_out = (RIVAL,) if quick else () if form == RANDOM else (RIVAL, ONE_THREAD)
        ways = [way for way in WAYS if n_answers <= MOST[way] and way not in left_out]
        repeats = 1 if quick else 3 if n_answers <= 1_000_000 else 2 if n_answers <= 10_000_000 else 1
        found: dict[str, dict[str, Any]] = {}
        for number in range(repeats):
            for way in ways:
                if way == RIVAL and (number and found[way].get("seconds", np.inf) > 10):
                    continue
                figures = go(way, small, source)
                found[way] = choose_run(found.get(way), figures)
                print(f"{n_answers:,} answers, {way}: {figures}", file=sys.stderr, flush=True)
        return Growth(n_answers, n_items, n_workers, source.stat().st_size, found)


def choose_run(before: dict[str, Any] | None, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the run with the least seconds, with the largest peak of both. A failed run replaces no other."""
    if before is None or "seconds" not in before:
        return figures
    if "seconds" not in figures:
        return before
    best = min(before, figures, key=lambda run: run["seconds"])
    return {**best, "peak": max(before["peak"], figures["peak"])}


def go(way: str, small: Path, source: Path) -> dict[str, Any]:
    """Go one way in a process of its own, and return its figures, or {"reason": why there are none}."""
    found, reason = measure_alone(__file__, "--one", way, small, source, seconds=LIMIT, memory=half_of_memory())
    return found[0] if found else {"reason": reason}


def time_start(repeats: int) -> float:
    """Return the seconds that the command takes for a handful of answers: imports, and kernels from disk."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "answers.csv"
        source.write_text("item,worker,label\n" + "".join(f"{n},{w},{n % 2}\n" for n in range(20) for w in "abc"))
        command = [sys.executable, "-m", "consilience", "fuse", str(source), "-o", f"{folder}/labels.csv", "--quiet"]
        times = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
    return min(times[1:])


def number(n: int) -> str:
    """Return 100k, 1M, ..."""
    return f"{n // 1_000_000}M" if n >= 1_000_000 else f"{n // 1000}k"


def show(figures: dict[str, Any] | None, key: str, form: Callable[[float], str]) -> str:
    """Return one cell."""
    if figures is None:
        return "not run"
    return form(figures[key]) if key in figures else str(figures.get("reason", "")).split(":")[0]


def seconds(value: float) -> str:
    """Return a time as tables show it."""
    return f"{value * 1e3:.{1 if value < 0.1 else 0}f} ms" if value < 1 else f"{value:,.1f} s"


def size(value: float) -> str:
    """Return bytes as tables show them."""
    return f"{value / 1e6:,.0f} MB" if value < 1e9 else f"{value / 1e9:.1f} GB"


def tabulate_times(rows: list[Growth]) -> str:
    """Return seconds from file to file, by the clock."""
    names = (
        "answers",
        "DuckDB",
        "in memory",
        "ratio",
        "one thread",
        "ratio",
        "iteration",
        "ratio",
        "on disk",
        "crowd-kit",
    )
    lines = [f"| {' | '.join(names)} |", f"|{'--:|' * len(names)}"]
    for row in rows:
        ways = row.ways
        vote, many, one, disk, rival = (ways.get(way) for way in (VOTE, IN_MEMORY, ONE_THREAD, ON_DISK, RIVAL))
        cells = [show(each, "seconds", seconds) for each in (vote, many, one, disk, rival)]
        cells.insert(2, show_ratio(many, vote, "seconds"))
        cells[4:4] = show_ratio(one, many, "seconds"), show(many, "step", seconds), show_ratio(one, many, "step")
        lines.append(f"| {number(row.n_answers)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def show_ratio(one: dict[str, Any] | None, other: dict[str, Any] | None, key: str) -> str:
    """Return a ratio of two figures, "" if one is missing."""
    return f"{one[key] / other[key]:.1f}x" if one and other and key in one and key in other else ""


def tabulate_peaks(rows: list[Growth]) -> str:
    """Return peaks of memory."""
    lines = ["| answers | DuckDB | in memory | on disk | crowd-kit |", "|--:|--:|--:|--:|--:|"]
    for row in rows:
        cells = [show(row.ways.get(way), "peak", size) for way in (VOTE, IN_MEMORY, ON_DISK, RIVAL)]
        lines.append(f"| {number(row.n_answers)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def describe(rows: list[Growth], by_item: Growth, csv: Growth, start: float) -> str:
    """Return the section of the page."""
    most = max(row.n_answers for row in rows)
    parts = [
        "## Growth",
        "From a Parquet file of answers to a Parquet file of labels.",
        f"- There are {ANSWERS_PER_ITEM} answers per item, {N_CLASSES} classes, and one worker per 1,000 answers, but "
        f"at most {MOST_WORKERS:,}. Rows are in random order, and ids are integers.\n"
        "- *in memory* and *on disk* are `read_answers` and `scan_answers`, then `fuse`, with calibration and the "
        f'comparison with majority vote. On disk, `memory="{MEMORY}"`, and the store is built anew.\n'
        "- DuckDB runs `copy (select item, mode(label) ... group by item) to ...` with "
        f"{os.cpu_count()} threads. The first *ratio* is our time in memory to its time.\n"
        "- *one thread* is in memory with `$CONSILIENCE_THREADS=1`, and the ratio beside it how much longer "
        "that takes. *iteration* is the shortest of the EM loop, again with how much longer it takes with one thread.\n"
        "- crowd-kit's `DawidSkene` is fitted between pandas' functions for Parquet.\n"
        "- Times are the best of three runs up to 1M answers, and of two for 10M; for more there is one run. Each is a "
        "process of its own that has gone the same way with 100,000 answers before, so start-up is not counted.\n"
        f"- `consilience fuse` takes {seconds(start)} for 60 answers, as a whole process.",
        tabulate_times(rows),
        "The same where rows are in the order of items, which DuckDB counts faster:",
        tabulate_times([by_item]),
        "And from a CSV file, in random order:",
        tabulate_times([csv]),
        "Peak memory of the process (VmHWM), which counts pages of the store that are mapped:",
        tabulate_peaks(rows),
        "```{image} _static/scale.png\n:alt: Time and peak memory against the number of answers, both on logarithmic "
        f"scales, up to {number(most)} answers.\n```",
    ]
    return "\n\n".join(parts) + "\n"


def draw(rows: list[Growth], path: Path) -> None:
    """Draw time and memory against the number of answers."""
    import matplotlib.pyplot as plt

    from paper.drawing import INK, RC

    plt.rcParams.update(RC)
    styles = {
        VOTE: ("DuckDB's majority vote", INK, "s"),
        IN_MEMORY: ("consilience, in memory", "#2b6cb0", "o"),
        ON_DISK: ("consilience, on disk", "#2f855a", "D"),
        RIVAL: ("crowd-kit", "#dd7b1f", "^"),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.9))
    for way, (name, colour, mark) in styles.items():
        for axes, key, unit in ((left, "seconds", 1), (right, "peak", 1e9)):
            points = [(row.n_answers, row.ways[way][key] / unit) for row in rows if key in row.ways.get(way, {})]
            axes.plot(*zip(*points, strict=True), color=colour, marker=mark, ms=4, lw=1.5, label=name)
    left.set(xscale="log", yscale="log", xlabel="answers", ylabel="seconds, file to file")
    right.set(xscale="log", yscale="log", xlabel="answers", ylabel="peak memory, GB")
    figure.tight_layout(w_pad=3, rect=(0, 0.08, 1, 1))
    figure.legend(*left.get_legend_handles_labels(), loc="lower center", ncol=4)
    figure.savefig(path)
    plt.close(figure)


def renew(rows: list[Growth]) -> None:
    """Draw the picture that the page shows."""
    sys.path += [str(ROOT), str(DOCS)]  # for the style of pictures
    draw(rows, DOCS / "_static" / "scale.png")


def report(quick: bool = False, largest: int = LARGEST) -> str:
    """Return the section of the page. Unless `quick`, renew the tables and the picture."""
    sizes = [QUICK] if quick else [10**power for power in range(5, 12) if 10**power <= largest]
    rows = [measure(n_answers, quick) for n_answers in sizes]
    by_item, csv = (measure(QUICK if quick else min(largest, LARGEST), quick, form) for form in (BY_ITEM, CSV))
    if not quick:
        renew(rows)
    return describe(rows, by_item, csv, time_start(1 if quick else 5))


def main() -> None:
    """Print the section for some sizes, or go one way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=float, help="numbers of answers")
    parser.add_argument("--one", nargs=3, metavar=("WAY", "SMALL", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure_here(*arguments.one)
    else:
        rows = [measure(int(n_answers)) for n_answers in arguments.sizes or (QUICK,)]
        others = (measure(rows[0].n_answers, form=form) for form in (BY_ITEM, CSV))
        print(describe(rows, *others, time_start(3)))


if __name__ == "__main__":
    main()
