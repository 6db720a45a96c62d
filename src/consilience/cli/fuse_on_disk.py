"""`consilience fuse` for answers that do not fit in memory: sorted into a store on disk, and fused from there."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

import click

from ..answers.dialects.register import DIALECTS

if TYPE_CHECKING:
    from .fuse import Options
    from .summary import Summary
    from .terminal import Display

# What a fit in memory takes for each answer at most, reading included (measured: 60 to 90 bytes).
BYTES_PER_ANSWER = 100
# These need all answers, or all labels, in memory.
_IN_MEMORY = (
    "items",
    "graph",
    "knn",
    "features",
    "item_prior",
    "background",
    "gold_column",
    "order",
    "undecided",
    "disagreements",
    "content",
)
_DEFAULTS: dict[str, object] = {"abstain": "ignore", "normalise": False, "ignore": ()}
_FLAGS = {"gold_column": "--columns gold=..."}
_MODELS_IN_MEMORY = ("moments", "markov-field")


def goes_to_disk(options: Options) -> bool:
    """Tell whether answers are fused from disk: if memory is limited, or if they would not fit in what there is."""
    if options.memory is not None or options.resume:
        return True
    if options.source == "-" or not _are_large(options.source):
        return False
    from ..errors import ConsilienceError
    from ..formats.scanning import scan_table
    from ..memory import available_memory

    try:
        n_rows = sum(scan_table(options.source, options.format).sizes)
    except ConsilienceError:
        return False  # whoever reads it as a whole says what is wrong
    return n_rows * BYTES_PER_ANSWER > available_memory()


def _are_large(source: str) -> bool:
    """Tell whether files are so large that it is worth counting their rows."""
    folder = os.path.join(source, "*") if os.path.isdir(source) else source
    files = [source] if os.path.isfile(source) else glob.glob(folder, recursive=True)
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file)) > 1 << 28


def check_options(options: Options) -> None:
    """Raise an error for what needs memory, and for what cannot be written."""
    wanted = [name for name in _IN_MEMORY if getattr(options, name) is not None]
    wanted += [name for name, default in _DEFAULTS.items() if getattr(options, name) != default]
    flags = [_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in wanted]
    if options.model in _MODELS_IN_MEMORY:
        flags.append(f"--model {options.model}")
    if any(options.format == each.name for each in DIALECTS):
        flags.append(f"--format {options.format}")
    if flags:
        limited, leave = options.memory is not None or options.resume, "it" if len(flags) == 1 else "them"
        raise click.UsageError(
            f"Answers on disk do not go with {', '.join(flags)}. "
            + (
                f"Leave {leave} out, or read all answers into memory: without --memory and --resume."
                if limited
                else "These answers would take more memory than there is, so they are fused on disk. Leave "
                f"{leave} out, or fuse a part of the answers."
            )
        )
    if options.source == "-":
        raise click.UsageError("Answers on disk cannot come from standard input. Give a file, a folder or a pattern.")
    check_files(options)


def check_files(options: Options) -> None:
    """Raise the error that writing would meet, also where an output would overwrite an input."""
    from pathlib import Path

    from ..results.label_files import check_folder, is_one_file
    from .fuse import check_report
    from .outputs import check_folder as check_input
    from .outputs import check_outputs

    tables, output = [options.workers_report], options.output
    if output is not None and is_one_file(output):
        tables.append(output)
    elif output is not None:
        check_input(output, options.source)
        check_folder(Path(output))
    check_outputs(tables, [options.save, options.report], [options.source, *options.gold])
    check_report(options)


def fuse_on_disk(options: Options, display: Display) -> tuple[Summary, dict[str, str]]:
    """Fuse the answers, write what was asked for, and return the figures and the files."""
    from ..api import fuse
    from ..formats.reading import open_file
    from ..formats.writing import write_table
    from ..reporting.write import write_page
    from ..storage.scanning import scan_responses
    from .fuse import open_engine
    from .options import ROLES
    from .summary import summarise_stored
    from .terminal import fit_text

    check_options(options)
    engine = open_engine(options.engine, options.threads, options.scheduler)
    settings = (*ROLES, "classes", "duplicates", "drop_missing", "format", "resume")
    display.say(f"Sorting {fit_text(options.source, 50)} on disk")
    answers = scan_responses(
        options.source,
        options.memory,
        store=options.store,
        engine=engine,
        **{name: getattr(options, name) for name in settings},
    )
    names = {role: getattr(options, role) for role in ("item", "sequence", "position")}
    preferred = {**names, "known label": options.label}
    gold = [open_file(path, preferred=preferred) for path in options.gold] or None
    chosen = ("estimation", "prior", "calibration", "max_iter", "seed")
    parameters = {name: getattr(options, name) for name in chosen if getattr(options, name) is not None}
    display.say("Fitting")
    model = fuse(answers, gold=gold, model=options.model, engine=engine, callback=display.show_iteration, **parameters)
    files = {}
    display.say("Writing")
    if options.output is not None:
        model.write(options.output, engine)
        files["labels"] = options.output
    workers = model.worker_report()
    if options.workers_report is not None:
        write_table(workers, options.workers_report)
        files["workers"] = options.workers_report
    if options.save is not None:
        model.save(options.save, answers=not options.no_answers)
        files["model"] = options.save
    if options.report is not None:
        title = os.path.basename(options.source.rstrip("/"))
        write_page(model, options.report, title=title)
        files["report"] = options.report
    return summarise_stored(model, answers, workers, options.source, options.all_workers), files
