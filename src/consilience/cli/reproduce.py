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
@click.option("--quick", is_flag=True, help="A part of each, in about two minutes: fewer runs, sizes and sets.")
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
    data that are not there is left out; of an experiment that is named, missing data are an error.
    """  # noqa: D301 (click reads \b as a sign: keep these lines apart)
    from pathlib import Path

    from ..errors import InputError
    from ..paper import find
    from ..paper.cache import Cache, cache_folder
    from .progress import Display

    experiments = [find(name) for name in names or EXPERIMENTS]
    if Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"--output {output!r} is a file, and a folder is needed.")
    if expect is not None and not Path(expect).is_dir():
        raise InputError(f"There is no folder {expect!r} to compare with (--expect).")
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
    off = [line for result in results for line in result["differences"] or []]
    for line in off:
        click.echo(f"Not as expected: {line}", err=True)
    if off:
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
    from ..errors import InputError, listing
    from ..paper.output import find_differences, write
    from ..paper.running import Step, run

    jobs = experiment.choose(quick)
    absent = sorted({name for job in jobs for name in job.data if not is_present(name)})
    if absent and named:
        raise InputError(
            f"{experiment.name} needs data that are not there: {listing(absent)}. Set $CONSILIENCE_DATA to the folder "
            "that holds them; `consilience datasets` tells more."
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

    def tell(step: Step) -> None:
        display.say(f"{experiment.name}: {step.done} of {step.total}" + (f", {step.job}" if step.job else ""))

    whole = not quick and not absent
    found = run(jobs, cache, tell)
    if expect:  # before anything is written, maybe there
        result["differences"] = find_differences(experiment, found.records, Path(expect), whole)
    files = [str(path) for path in write(experiment, found.records, folder, whole)]
    return {**result, "jobs": found.n_jobs, "remembered": found.n_known, "seconds": found.seconds, "files": files}


def _print_result(result: dict[str, Any]) -> None:
    absent = f"no data: {', '.join(result['missing'])} (see `consilience datasets`)" if result["missing"] else ""
    if "files" not in result:
        text = f"left out, {absent}"
    else:
        from ..errors import plural

        known = f", {result['remembered']} remembered" if result["remembered"] else ""
        files = f"{result['files'][0].removesuffix('csv')}{{csv,png,md}}"
        compared = "NOT as expected" if result["differences"] else "as expected"
        if result["differences"] is None:
            compared = ""
        notes = "".join(f"; {note}" for note in (compared, absent) if note)
        text = f"{result['seconds']:6.1f} s, {plural(result['jobs'], 'job')}{known}: {files}{notes}"
    click.echo(f"{result['name']:16}  {text}")
