"""`consilience fuse` for answers that do not fit in memory: sorted into a store on disk, and fused from there."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from .fuse import Options
    from .progress import Display
    from .summary import Summary

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
    "save",
)


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
    """Raise an error for what needs memory."""
    wanted = [name for name in _IN_MEMORY if getattr(options, name) is not None]
    if options.abstain != "ignore":
        wanted.append("abstain")
    if options.normalise:
        wanted.append("normalise")
    if wanted:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wanted)
        raise click.UsageError(
            f"Answers on disk do not go with {flags}. Leave it out, or read all answers into memory: without --memory "
            "and --resume."
        )
    if options.output is not None:
        from pathlib import Path

        from ..formats.register import writable_formats
        from ..formats.writing import check_writable
        from ..models.stored_labels import check_folder

        if any(each.fits(options.output) for each in writable_formats()):
            check_writable(options.output)
        else:
            check_folder(Path(options.output))


def fuse_on_disk(options: Options, display: Display) -> tuple[Summary, dict[str, str]]:
    """Fuse the answers, write what was asked for, and return the figures and the files."""
    from ..formats.reading import open_file
    from ..formats.writing import write_table
    from ..models.fuse import fuse
    from ..reporting.write import check_installed, write_page
    from ..store.scanning import scan_responses
    from .fuse import ROLES, open_engine
    from .summary import summarise_stored
    from .text import fit_text

    check_options(options)
    if options.report is not None:
        check_installed()
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
    if options.report is not None:
        title = os.path.basename(options.source.rstrip("/"))
        write_page(model, options.report, title=title)
        files["report"] = options.report
    return summarise_stored(model, answers, workers, options.source, options.all_workers), files
