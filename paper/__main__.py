"""Run the experiments: ``make paper``, or ``python -m paper`` in the folder of the repository."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.real_crowds import is_present
from consilience.errors import ConsilienceError, InputError, listing, plural

from . import EXPERIMENTS, find
from .cache import Cache, cache_folder
from .experiment import Experiment
from .output import find_differences, write
from .running import Run, Step, run

ROOT = Path(__file__).parents[1]
# Where whole experiments go, which the documentation shows, and where parts go.
DOCS, BUILD = ROOT / "docs" / "reproduction", ROOT / "build" / "reproduction"

HELP = """\
Run the experiments of the paper: all of them, or those named. With make: make paper ARGS="table-1 table-2"

  sequence-items    simulated sequences, by the number of items
  sequence-workers  simulated sequences, by the number of workers
  network-sparse    simulated networks of average degree 0.5
  network-dense     simulated networks of average degree 5
  table-1           real sequences
  table-2           real networks
  overview          both tables, beside the printed numbers
  chain-coupling    how strongly to believe the chain
  sequence-choices  other transitions, workers and decoding on real sequences
  silence           labelling functions whose silence is an answer
  other-sets        the other sets of `benchmarks/real_crowds.py`

All of them take about half an hour on two cores. Results are kept as long as code and data stay the same.
Experiments whose data are not there are left out; if such an experiment is named, that is an error.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0 done, 1 results not as expected, 2 bad input."""
    options = _parse(arguments)
    try:
        return _run_all(options)
    except ConsilienceError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m paper", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which experiments to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="a part of each, in about two minutes")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        help="where to write a table, a figure and a page of each experiment "
        "(default: docs/reproduction for whole experiments, build/reproduction for parts)",
    )
    parser.add_argument(
        "--expect",
        metavar="FOLDER",
        type=Path,
        help="compare with the tables in this folder; exit with 1 if one differs",
    )
    parser.add_argument("--no-cache", action="store_true", help="run everything again, and keep nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return parser.parse_args(arguments)


def _run_all(options: argparse.Namespace) -> int:
    experiments = [find(name) for name in options.names or EXPERIMENTS]
    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise InputError(f"--output {str(options.output)!r} is a file.", "Name a folder.")
    if options.expect is not None and not options.expect.is_dir():
        raise InputError(f"There is no folder {str(options.expect)!r} to compare with (--expect).")
    cache, begin, results = Cache(None if options.no_cache else cache_folder()), time.perf_counter(), []
    for experiment in experiments:
        result = _run_one(experiment, options, cache)
        results.append(result)
        if not options.json:
            print(_describe(result), flush=True)
    seconds = time.perf_counter() - begin
    print(
        json.dumps({"experiments": results, "seconds": seconds}, indent=2)
        if options.json
        else f"{seconds:.0f} s in all."
    )
    differences = [line for result in results for line in result["differences"] or []]
    for line in differences:
        print(f"Not as expected: {line}", file=sys.stderr)
    return 1 if differences else 0


def _run_one(experiment: Experiment, options: argparse.Namespace, cache: Cache) -> dict[str, Any]:
    """Run one experiment, write its files, and return what is to be said about it."""
    jobs = experiment.choose(options.quick)
    absent = sorted({name for job in jobs for name in job.data if not is_present(name)})
    if absent and options.names:
        raise InputError(
            f"{experiment.name} needs data that are not there: {listing(absent)}.",
            "Set $CONSILIENCE_DATA to the folder that holds them; `python benchmarks/real_crowds.py` lists them.",
        )
    jobs = [job for job in jobs if not set(job.data) & set(absent)]
    result: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title,
        "missing": absent,
        "differences": None,
    }
    if not jobs:
        return result
    whole = not options.quick and not absent
    found = _run_visibly(experiment.name, jobs, cache, quiet=options.json)
    if options.expect:  # before anything is written, since that may go into the same folder
        result["differences"] = find_differences(experiment, found.records, options.expect, whole)
    files = write(experiment, found.records, options.output or (DOCS if whole else BUILD), whole)
    numbers = {"jobs": found.n_jobs, "known": found.n_known, "seconds": found.seconds}
    return {**result, **numbers, "files": [str(path) for path in files]}


def _run_visibly(name: str, jobs: Sequence[Any], cache: Cache, quiet: bool) -> Run:
    """Run jobs, with a line on the terminal that says which one is running."""

    def show(step: Step) -> None:
        text = f"{name}: {step.done} of {step.total}, {step.job}" if step.job else ""
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    return run(jobs, cache, None if quiet or not sys.stderr.isatty() else show)


def _describe(result: dict[str, Any]) -> str:
    """Return one line about an experiment."""
    absent = f"no data: {', '.join(result['missing'])} (see `benchmarks/real_crowds.py`)" if result["missing"] else ""
    if "files" not in result:
        return f"{result['name']:16}  left out, {absent}"
    known = f", {result['known']} from the cache" if result["known"] else ""
    compared = "" if result["differences"] is None else "NOT as expected" if result["differences"] else "as expected"
    notes = "".join(f"; {note}" for note in (compared, absent) if note)
    files = f"{_relative(result['files'][0]).removesuffix('csv')}{{csv,png,md}}"
    return f"{result['name']:16}  {result['seconds']:6.1f} s, {plural(result['jobs'], 'job')}{known}: {files}{notes}"


def _relative(path: str) -> str:
    """Return a path from the folder of the repository, if it is in there."""
    return str(Path(path).relative_to(ROOT)) if Path(path).is_relative_to(ROOT) else path


if __name__ == "__main__":
    sys.exit(main())
