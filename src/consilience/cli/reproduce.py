"""`consilience reproduce`: the paper's figures and tables, measured on this machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ..paper import EXPERIMENTS
from .command import FAILURE, Command, debug_option, json_option, print_json, quiet_option

if TYPE_CHECKING:
    from pathlib import Path

    from ..paper.cache import Cache
    from ..paper.experiment import Experiment
    from .progress import Display


@click.command("reproduce", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-o",
    "--output",
    default="reproduction",
    show_default=True,
    metavar="FOLDER",
    help="Where to write a table (CSV), a figure (PNG) and a page (Markdown) of each.",
)
@click.option("--quick", is_flag=True, help="A part of each, in about two minutes, with the same numbers.")
@click.option(
    "--expect",
    metavar="FOLDER",
    help="Compare with the tables in this folder; exit with 1 if a score is off.",
)
@click.option("--no-cache", is_flag=True, help="Run everything anew, and remember nothing.")
@json_option
@quiet_option
@debug_option
def reproduce(
    names: tuple[str, ...],
    output: str,
    quick: bool,
    expect: str | None,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    debug: bool,  # noqa: ARG001 (the command's class reads it)
) -> None:
    """Run the experiments of the paper: all, or those named.

    \b
    sequence-items    simulated sequences, by the number of items
    sequence-workers  simulated sequences, by the number of workers
    network-sparse    simulated networks of average degree 0.5
    network-dense     simulated networks of average degree 5
    table-1           real sequences
    table-2           real networks
    overview          both tables, beside what was printed
    chain-strength    how strongly to believe the chain
    other-sets        the other sets of `consilience datasets`

    All take about half an hour on two cores. Results are remembered as long as code and data stay the same. What needs
    data that are not there is left out, unless it is named.
    """  # noqa: D301 (click reads \b as a sign: keep these lines apart)
    from pathlib import Path

    from ..paper import find
    from ..paper.cache import Cache, cache_folder
    from .progress import Display

    experiments = [find(name) for name in names or EXPERIMENTS]
    quiet, cache = quiet or as_json, Cache(None if no_cache else cache_folder())
    begin, results = time.perf_counter(), []
    with Display(quiet) as display:
        for experiment in experiments:
            result = _run(experiment, quick, cache, Path(output), expect, display, named=bool(names))
            results.append(result)
            if not quiet:
                _print_result(result)
    seconds = time.perf_counter() - begin
    if as_json:
        print_json({"experiments": results, "seconds": seconds})
    elif not quiet:
        click.echo(f"{seconds:.0f} s in all.")
    if any(result["differences"] for result in results):
        for line in (line for result in results for line in result["differences"]):
            click.echo(f"Not as expected: {line}", err=True)
        click.get_current_context().exit(FAILURE)


def _run(
    experiment: Experiment,
    quick: bool,
    cache: Cache,
    folder: Path,
    expect: str | None,
    display: Display,
    named: bool,
) -> dict[str, Any]:
    """Return what came of one experiment."""
    from pathlib import Path

    from ..datasets import is_present
    from ..paper.output import find_differences, write
    from ..paper.running import Step, run

    absent = [name for name in experiment.data(quick) if not is_present(name)]
    if absent and not named:
        return {"name": experiment.name, "missing": absent, "differences": []}

    def tell(step: Step) -> None:
        display.say(f"{step.experiment}: {step.done} of {step.total}" + (f", {step.job}" if step.job else ""))

    found = run(experiment, quick=quick, cache=cache, callback=tell)
    files = write(experiment, found.records, folder)
    return {
        "name": experiment.name,
        "title": experiment.title,
        "jobs": found.n_jobs,
        "remembered": found.n_known,
        "seconds": found.seconds,
        "files": [str(path) for path in files],
        "missing": [],
        "differences": find_differences(experiment, found.records, Path(expect)) if expect else [],
    }


def _print_result(result: dict[str, Any]) -> None:
    if result["missing"]:
        text = f"left out, no data: {', '.join(result['missing'])} (see `consilience datasets`)"
    else:
        known = f", {result['remembered']} remembered" if result["remembered"] else ""
        files = f"{result['files'][0].removesuffix('csv')}{{csv,png,md}}"
        text = f"{result['seconds']:6.1f} s, {result['jobs']} jobs{known}: {files}"
    click.echo(f"{result['name']:16}  {text}")
