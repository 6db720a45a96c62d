"""Kills `consilience fuse --memory` at random moments, resumes it, and compares the labels with those of a whole run.

    python tests/fuzz/disk_kills.py --rounds 5 --seed 0

In each round a run is killed with SIGKILL up to three times, at any moment: while the store is built, during the fit,
or while labels are written. Old labels must be there until the new ones are. The last run ends by itself. Its labels
must be those of a run that nobody disturbed, to the byte, and nothing but stores and labels may be left.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import consilience as cs
from consilience.formats.writing import write_table

MAIN = "from consilience.cli.main import main; main()"
TIMEOUT = 300


class Target:
    """A folder with answers, the command to fuse them on disk, and what its labels are."""

    def __init__(self, folder: Path, n_items: int = 60_000) -> None:
        r = cs.simulate.independent(n_items, n_workers=30, n_classes=4, answers_per_item=5, seed=1).responses
        columns = {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
        self.answers, self.place = folder / "answers.parquet", folder / "place"
        write_table(pa.table(columns), self.answers)
        self.start().wait(TIMEOUT)  # compiles
        self.clear()
        begun = time.perf_counter()
        assert self.start().wait(TIMEOUT) == 0
        self.seconds = time.perf_counter() - begun
        self.expected = self.digest()

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the command."""
        outputs = ("-o", str(self.place / "labels"), "--store", str(self.place / "stores"))
        command = [sys.executable, "-c", MAIN, "fuse", str(self.answers), *outputs, "--memory", "2GB", "--quiet"]
        self.place.mkdir(exist_ok=True)
        return subprocess.Popen([*command, *options])

    def clear(self) -> None:
        """Remove what earlier runs left."""
        shutil.rmtree(self.place)

    def digest(self) -> str:
        """Return a hash of the labels."""
        found = hashlib.sha256()
        for path in sorted((self.place / "labels").iterdir()):
            found.update(path.name.encode() + path.read_bytes())
        return found.hexdigest()

    def run(self, draw: random.Random, old_labels: bool) -> tuple[int, list[str]]:
        """Kill some runs, and let the last one end; return the number of kills, and what is wrong."""
        if not old_labels:
            shutil.rmtree(self.place / "labels")
        shutil.rmtree(self.place / "stores")
        n_kills, complaints = 0, []
        while True:
            process = self.start(*(["--resume"] if n_kills else []))
            try:
                code = process.wait(draw.uniform(0.5, 1.1 * self.seconds) if n_kills < 3 else TIMEOUT)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                n_kills += 1
            there = (self.place / "labels").exists()
            if there and self.digest() != self.expected:
                complaints.append("labels are there and not complete")
            # A kill may come between two renames; the next run gives the old labels their name again.
            if old_labels and not there and not (self.place / ".labels.replaced").exists():
                complaints.append("old labels are lost")
        if code:
            complaints.append(f"exit code {code}")
        elif self.digest() != self.expected:
            complaints.append("other labels")
        left = [str(path) for path in self.place.rglob("*") if path.name.startswith(".labels")]
        return n_kills, complaints + [f"left: {path}" for path in left]


def run_rounds(n_rounds: int, seed: int = 0) -> tuple[int, list[str]]:
    """Return the number of kills, and what is wrong."""
    draw, n_kills, complaints = random.Random(seed), 0, []
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Path(folder))
        for number in range(n_rounds):
            n, wrong = target.run(draw, old_labels=number % 2 == 1)
            n_kills += n
            complaints += [f"round {number}: {each}" for each in wrong]
    return n_kills, complaints


def main() -> int:
    """Kill, resume and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n_kills, complaints = run_rounds(options.rounds, options.seed)
    print(f"runs on disk: {n_kills} kills, {len(complaints)} complaints", *complaints, sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
