"""Kills `consilience fuse`, `rank` or `update` at random moments and looks at what is left of its files.

    python tests/fuzz/kills.py --kills 40 --signal SIGTERM --seed 0 --command rank

Each of the three files must be whole: the old one (or none, if there was none) or the new one. Some may be new and
others old. No temporary file is left but after SIGKILL.

Half of the signals come at any moment of the run, the others while files are being written.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import consilience as cs
from consilience.formats.writing import write_table

OUTPUTS = ("labels.csv", "fit.model", "workers.parquet")
# The options by which each command is asked for these, and one that changes what is in them.
COMMANDS = {
    "fuse": ("-o", "--save", "--workers-report"),
    "rank": ("-o", "--save", "--judges-report"),
    "update": ("-o", "--save", "--workers-report"),
}
OTHERS = {"fuse": ("--model", "majority"), "rank": ("--discrimination", "equal"), "update": ("--gold", "known.csv")}
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
MAIN = "from consilience.cli.main import main; main()"
TIMEOUT = 120


@contextmanager
def children_hear_signals() -> Iterator[None]:
    """Let processes that are started here hear what this one ignores: under nohup, or in the background of a shell."""
    ignored = [
        number for number in map(signal.Signals.__getitem__, SIGNALS) if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@dataclass(frozen=True)
class Run:
    """What one run left behind: the state of each file, the temporary files, the exit code and the lines on stderr."""

    states: tuple[str, ...]
    n_temporary: int
    code: int
    stderr: str

    @property
    def state(self) -> str:
        """What became of the files together."""
        return self.states[0] if len(set(self.states)) == 1 else "damaged" if "damaged" in self.states else "mixed"

    def complaint(self, number: signal.Signals) -> str | None:
        """What is wrong, if anything is."""
        if self.state == "damaged":
            return f"damaged: {dict(zip(OUTPUTS, self.states, strict=True))}"
        if number is signal.SIGKILL:
            return None
        if self.n_temporary:
            return f"{self.n_temporary} temporary files left"
        # It ended before the signal, by its own handler, or by the system's while Python was starting or ending.
        if self.code not in (0, 128 + number, -number):
            return f"exit code {self.code}: {self.stderr}"
        if self.code == 128 + number and len(self.stderr.strip().splitlines()) != 1:
            return f"more or less than one line on stderr: {self.stderr}"
        return None


class Target:
    """A folder with answers and a command for them, whose new outputs are known beforehand."""

    def __init__(self, folder: Path, n_items: int = 3000, command: str = "fuse") -> None:
        self.folder, self.command = folder, command
        self.answers = folder / "answers.parquet"
        self.inputs = [str(self.answers)]
        if command == "rank":
            write_table(cs.simulate.comparisons(n_items, n_candidates=20, n_judges=12, seed=1).to_frame(), self.answers)
        else:
            self._write_answers(n_items)
        option, value = OTHERS[command]
        self.old = self._outputs(option, str(folder / value) if option == "--gold" else value)
        started = time.perf_counter()
        self.new = self._outputs()
        self.seconds = time.perf_counter() - started
        assert self._outputs() == self.new, "the outputs of two runs differ"

    def _write_answers(self, n_items: int) -> None:
        crowd = cs.simulate.independent(n_items, n_workers=8, n_classes=4, answers_per_item=5, seed=1)
        r = crowd.responses
        columns = {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
        table = pa.table(columns)
        if self.command == "update":
            model = str(self.folder / "before.model")
            cs.fuse(table.slice(0, table.num_rows // 2)).save(model)
            table = table.slice(table.num_rows // 2)
            self.inputs.insert(0, model)
            write_table(table.take(list(range(0, 250, 5))).select(["item", "label"]), self.folder / "known.csv")
        write_table(table, self.answers)

    def _start(self, place: Path, *options: str) -> subprocess.Popen[str]:
        names = zip(COMMANDS[self.command], OUTPUTS, strict=True)
        outputs = [part for option, name in names for part in (option, str(place / name))]
        command = [sys.executable, "-c", MAIN, self.command, *self.inputs, *outputs, "--quiet", *options]
        with children_hear_signals():
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _outputs(self, *options: str) -> list[bytes | None]:
        with tempfile.TemporaryDirectory(dir=self.folder) as place, self._start(Path(place), *options) as process:
            _, stderr = process.communicate(timeout=TIMEOUT)
            assert process.returncode == 0, stderr
            return [Path(place, name).read_bytes() for name in OUTPUTS]

    def kill(self, number: signal.Signals, draw: random.Random) -> Run:
        """Run the command, send it a signal at a random moment, and look at the files."""
        old = self.old if draw.random() < 0.5 else [None] * len(OUTPUTS)
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            place = Path(name)
            for file, content in zip(OUTPUTS, old, strict=True):
                if content is not None:
                    (place / file).write_bytes(content)
            with self._start(place) as process:
                if draw.random() < 0.5:
                    _sleep_until(time.perf_counter() + draw.uniform(0, 1.1 * self.seconds), process)
                else:
                    while process.poll() is None and not _temporary_files(place):
                        time.sleep(0.0002)
                    _sleep_until(time.perf_counter() + draw.uniform(0, 0.05) ** 2 / 0.05, process)
                process.send_signal(number)
                _, stderr = process.communicate(timeout=TIMEOUT)
            found = [path.read_bytes() if (path := place / file).exists() else None for file in OUTPUTS]
            states = tuple(map(_state, found, old, self.new))
            return Run(states, len(_temporary_files(place)), process.returncode, stderr)


def _temporary_files(place: Path) -> list[str]:
    return [name for name in os.listdir(place) if name not in OUTPUTS]


def _sleep_until(moment: float, process: subprocess.Popen[str]) -> None:
    while time.perf_counter() < moment and process.poll() is None:
        time.sleep(0.0002)


def _state(found: bytes | None, old: bytes | None, new: bytes | None) -> str:
    return "new" if found == new else "old" if found == old else "damaged"


def run_kills(target: Target, n_kills: int, name: str, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Kill `n_kills` runs; return how often each thing happened, and what is wrong."""
    number, draw = signal.Signals[name], random.Random(seed)
    counts: Counter[str] = Counter()
    complaints = []
    for _ in range(n_kills):
        run = target.kill(number, draw)
        counts[f"all {run.state}" if run.state in ("old", "new") else run.state] += 1
        counts[f"exit code {run.code}"] += 1
        counts["runs with temporary files left"] += run.n_temporary > 0
        complaint = run.complaint(number)
        complaints += [] if complaint is None else [complaint]
    return counts, complaints


def main() -> int:
    """Kill, count and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40, help="signals of each kind")
    parser.add_argument("--signal", choices=SIGNALS, action="append", help="default: all of them")
    parser.add_argument("--command", choices=COMMANDS, default="fuse")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Path(folder), command=arguments.command)
        for name in arguments.signal or SIGNALS:
            counts, complaints = run_kills(target, arguments.kills, name, arguments.seed)
            print(f"{name}: {arguments.kills} kills, {len(complaints)} complaints")
            print(
                *(f"  {count:4}  {what}" for what, count in sorted(counts.items())), *complaints, sep="\n", flush=True
            )
            n_wrong += len(complaints)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
