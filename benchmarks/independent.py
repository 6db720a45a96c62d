"""Dawid-Skene against crowd-kit: one EM iteration, a full fit, from file to file, memory, and start-up."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import consilience as cs

SIZES = {"1M answers": (200_000, 1000, 10), "10M answers": (2_000_000, 2000, 4)}
QUICK = {"20k answers": (4_000, 100, 5)}
ANSWERS_PER_ITEM = 5


def make_crowd(n_items: int, n_workers: int, n_classes: int, seed: int = 0) -> pd.DataFrame:
    """Return a long table of answers by workers with random confusion matrices, most of them fair."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    confusion = 0.6 * np.eye(n_classes) + 0.4 * rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
    # One worker from each of five groups: nobody answers an item twice.
    group = n_workers // ANSWERS_PER_ITEM
    worker = rng.integers(0, group, (n_items, ANSWERS_PER_ITEM)) + group * np.arange(ANSWERS_PER_ITEM)
    draw = rng.random((n_items, ANSWERS_PER_ITEM))
    label = np.zeros_like(worker)
    for k in range(n_classes - 1):
        label += draw > confusion[worker, truth[:, None], : k + 1].sum(axis=2)
    return pd.DataFrame(
        {
            "task": np.repeat(np.arange(n_items), ANSWERS_PER_ITEM),
            "worker": worker.ravel(),
            "label": label.ravel(),
        }
    )


def best_time(action: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def time_crowd_kit(answers: pd.DataFrame, full: bool) -> tuple[float, float, int]:
    """Return seconds per iteration, of a full fit (NaN if not asked for), and its iterations."""
    from crowdkit.aggregation import DawidSkene

    def fit(n_iter: int) -> object:
        return DawidSkene(n_iter=n_iter, tol=0).fit(answers)

    short, long = best_time(lambda: fit(1), 2), best_time(lambda: fit(4), 2)
    if not full:
        return (long - short) / 3, float("nan"), 0
    model = DawidSkene()
    start = time.perf_counter()
    model.fit(answers)
    return (long - short) / 3, time.perf_counter() - start, len(model.loss_history_)


def time_ours(responses: cs.Answers, estimation: str, n_threads: int) -> float:
    """Return seconds per iteration: the median time from one to the next, in the fastest of three fits."""

    def time_fit() -> float:
        moments: list[float] = []
        model = cs.DawidSkene(
            estimation=estimation,
            calibration="none",
            max_iter=14,
            tol=0,
            callback=lambda _: moments.append(time.perf_counter()),
        )
        model.fit(responses, engine=cs.engines.Threads(n_threads))
        return float(np.median(np.diff(moments)))

    return min(time_fit() for _ in range(3))


def compare_iterations(sizes: dict[str, tuple[int, int, int]], full_rivals: set[str]) -> str:
    """Return tables of times per iteration and of full fits, one for each size."""
    lines = []
    for name, (n_items, n_workers, n_classes) in sizes.items():
        answers = make_crowd(n_items, n_workers, n_classes)
        responses = cs.Answers.from_frame(answers)
        rival, rival_full, rival_steps = time_crowd_kit(answers, name in full_rivals)
        lines += [
            f"{name}: {n_items:,} items, M={n_workers:,}, K={n_classes}.",
            "",
            "| | per iteration | ratio | full fit | iterations | ratio |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        shown = f"{rival_full:.1f} s | {rival_steps}" if rival_full == rival_full else "not run | "
        lines.append(f"| crowd-kit | {rival * 1e3:,.0f} ms | 1 | {shown} | 1 |")
        for estimation in ("em", "variational"):
            for n_threads in (1, 2):
                step = time_ours(responses, estimation, n_threads)
                model = cs.DawidSkene(estimation=estimation)
                engine = cs.engines.Threads(n_threads)
                # From the table to the labels, as crowd-kit's time is.
                full = best_time(
                    lambda model=model, answers=answers, engine=engine: model.fit(
                        cs.Answers.from_frame(answers), engine=engine
                    ),
                    2,
                )
                ratio = f"{rival_full / full:.0f}x" if rival_full == rival_full else ""
                lines.append(
                    f"| consilience, {estimation}, {n_threads} thread{'s' * (n_threads > 1)} | {step * 1e3:,.1f} ms "
                    f"| {rival / step:.0f}x | {full:.2f} s | {model.n_iter_} | {ratio} |"
                )
        lines.append("")
    return "\n".join(lines[:-1])


# Runs in a process of its own: fits the table in argv[1], prints bytes above the input and seconds.
MEMORY_SCRIPT = """
import sys, threading, time, psutil, pyarrow as pa, consilience as cs
cs.DawidSkene(max_iter=2, tol=0).fit({"item": [1, 1, 2], "worker": [1, 2, 1], "label": [0, 1, 3]}, engine="threads")
table = pa.ipc.open_file(pa.memory_map(sys.argv[1])).read_all()
table = pa.table({name: pa.array(table[name].to_numpy().copy()) for name in table.column_names})
process = psutil.Process()
base = peak = process.memory_info().rss
done = False
def watch():
    global peak
    while not done:
        peak = max(peak, process.memory_info().rss)
        time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
start = time.perf_counter()
cs.DawidSkene().fit(cs.Answers.from_frame(table, item="task"))
seconds = time.perf_counter() - start
done = True; thread.join()
print(peak - base, seconds)
"""


def measure_memory(sizes: dict[str, tuple[int, int, int]]) -> str:
    """Return the table of peak memory above the input."""
    lines = ["| data | peak above the input | per answer |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, size in sizes.items():
            answers = make_crowd(*size)
            path = Path(folder) / "answers.arrow"
            table = pa.Table.from_pandas(answers, preserve_index=False)
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
            out = subprocess.run(
                [sys.executable, "-c", MEMORY_SCRIPT, str(path)], check=True, capture_output=True, text=True
            )
            extra = int(out.stdout.split()[0])
            lines.append(f"| {name} | {extra / 2**20:,.0f} MiB | {extra / len(answers):.0f} bytes |")
    return "\n".join(lines)


def time_files(sizes: dict[str, tuple[int, int, int]]) -> str:
    """Return the table of times from a Parquet file of answers to a Parquet file of labels."""
    lines = ["| data | file to labels file | answers per second |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, size in sizes.items():
            answers = make_crowd(*size)
            source, target = Path(folder) / "answers.parquet", Path(folder) / "labels.parquet"
            pq.write_table(pa.Table.from_pandas(answers, preserve_index=False), source)
            command = [sys.executable, "-m", "consilience", "fuse", str(source), "-o", str(target), "--quiet"]
            seconds = best_time(lambda command=command: subprocess.run(command, check=True), 2)
            lines.append(f"| {name} | {seconds:.1f} s | {len(answers) / seconds / 1e6:.1f} M |")
    return "\n".join(lines)


def report(quick: bool = False) -> str:
    """Return all tables as Markdown."""
    warnings.simplefilter("ignore")
    sizes = QUICK if quick else SIZES
    parts = [
        "## Independent items: Dawid-Skene",
        f"Workers with random confusion matrices, {ANSWERS_PER_ITEM} answers per item. crowd-kit's times are those of "
        "its `DawidSkene`. Full fits run each library's defaults, from the table to the labels; they stop by different "
        "rules.",
        compare_iterations(sizes, set(list(sizes)[:1])),
        "Peak memory of reading an Arrow table and fitting, above the table itself:",
        measure_memory(sizes),
        "`consilience fuse answers.parquet -o labels.parquet`, whole process:",
        time_files(sizes),
    ]
    return "\n\n".join(parts) + "\n"
