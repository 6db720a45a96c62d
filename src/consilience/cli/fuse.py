"""`consilience fuse`: from a file of answers to a file of labels."""

from __future__ import annotations

import fnmatch
import glob
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import click
import pyarrow as pa

from .. import memory
from ..answers import DIALECTS
from ..answers.graph import Graph
from ..answers.responses import Answers
from ..engines import EngineLike
from ..engines.base import Engine, Threads
from ..errors import ConsilienceError, InputError
from ..formats import Format, readable_formats
from ..formats.arrays import read_features
from ..formats.files import is_folder
from ..formats.reading import open_file, scan_table
from ..formats.scanning import FORMS, scan_answers
from ..formats.sources import find_source, open_table
from ..formats.targets import ResultWriters, choose_target
from ..formats.writing import write_table
from ..kinds.tag_tables import ONE_HOT
from ..models import fusing
from ..models.asking import find_questions
from ..models.fitted import FittedModel
from ..models.latent import LatentModel
from ..models.preparing import Prepared, prepare
from ..options import ROLES
from ..results.label_files import check_folder as check_labels
from ..results.label_files import is_one_file
from .command import TYPED, is_asked, tell
from .files import check_folder, check_outputs, check_page, write_together
from .fuse_tables import print_summary
from .summary import summarise, tabulate_workers
from .terminal import Display, fit_text

if TYPE_CHECKING:
    from ..reporting.subject import Command

# What a fit in memory takes for each answer at most, reading included (measured: 60 to 90 bytes).
BYTES_PER_ANSWER = 100
# Options of reading that need all rows of the files at once, with their defaults.
_READ_WHOLE: dict[str, object] = {
    **dict.fromkeys(("items", "background", "gold_column", "order", "content")),
    "abstain": "ignore",
    "normalise": False,
    "ignore": (),
}
# How answers are read, at once or a part at a time.
_READING = ("classes", "ordered", "positions", "duplicates", "drop_missing", "format", "rescale", "separator")
_FLAGS = {"gold_column": "--columns gold=..."}


class Options(SimpleNamespace):
    """The arguments of the command, by the names of its parameters; `gold_column` is the role gold of `--columns`."""


def fuse(columns: Mapping[str, str] | None, **arguments: object) -> None:
    """Fuse the answers in a file into one label per item: read, fit, write, and only then print."""
    started = time.perf_counter()
    named = dict(columns or {})
    gold_column = named.pop("gold", None) or arguments.pop("gold_column", None)
    arguments.pop("gold_column", None)
    said = cast(Sequence[str], arguments.get("label") or ())
    arguments |= {"label": said[0] if len(said) == 1 else None, "questions": said if len(said) > 1 else ()}
    for role, name in named.items():
        if arguments.get(role) not in (None, name):
            raise click.UsageError(f"--{role} and --columns name different columns for the {role}. Name one.")
    options = Options(**arguments | named, gold_column=gold_column)
    scanned = is_scanned(options)
    questions = list_questions(options, scanned)
    if not questions:
        questions = fuse_one(options, scanned, started)
    if questions:
        from .questions import fuse_all  # which few need

        fuse_all(options, questions, open_engine(options), started, scanned)


def fuse_one(options: Options, scanned: bool, started: float) -> list[str]:
    """Fuse the answers to one question; return the questions if there are several, and nothing else is done."""
    if _list_inputs(options).count("-") > 1:
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    found = None if scanned else find_source(options.source, options.format)
    target = check_files(options, found)
    engine = open_engine(options)
    with Display(is_asked("quiet")) as display:
        try:
            prepared = open_inputs(options, display, found, scanned)
        except InputError as error:
            named = {"label": options.label, "format": options.format}
            questions = None if scanned else find_questions(error, options.source, named)
            if questions is None:
                raise
            return questions
        if options.settings:
            raise click.UsageError("--for is for several questions, and this is one. Give --separator, --classes, ...")
        display.say("Fitting")
        model = fit(options, prepared, engine, display)
        workers = tabulate_workers(model)
        summary = summarise(model, prepared, workers, options)
        display.say("Writing")
        files = write_files(options, model, workers, target)
    summary = replace(summary, files=files, seconds=round(time.perf_counter() - started, 3))
    tell(lambda: asdict(summary), lambda: print_summary(summary))
    return []


def list_questions(options: Options, scanned: bool) -> list[str]:
    """Return the columns of answers to several questions, if there are several."""
    names = list(options.questions)
    again = sorted({name for name in names if names.count(name) > 1})
    if again:
        raise click.UsageError(f"--label names {', '.join(map(repr, again))} more than once. Name each question once.")
    if options.labels is not None:
        of_table = scan_table if scanned else lambda *given: open_table(*given)[0]
        known = list(map(str, of_table(options.source, options.format).names))
        found = fnmatch.filter(known, options.labels)
        if not found:
            columns = ", ".join(map(repr, known))
            raise click.UsageError(f"No column is called like {options.labels!r}. There are {columns}.")
        names += [name for name in found if name not in names]
    if len(names) == 1:
        options.label = names.pop()
    return names


def is_scanned(options: Options) -> bool:
    """Whether answers are read by `scan_answers`: if memory is limited, or if they would not fit in what there is."""
    if options.memory is not None or options.resume:
        refuse_scanned(options)
        return True
    if options.source == "-" or not _are_large(options.source):
        return False
    try:
        n_rows = sum(scan_table(options.source, options.format).sizes)
    except ConsilienceError:
        return False  # whoever reads it as a whole says what is wrong
    if n_rows * BYTES_PER_ANSWER <= memory.available_memory():
        return False
    refuse_scanned(options)
    return True


def _are_large(source: str) -> bool:
    """Tell whether files are so large that it is worth counting their rows."""
    folder = os.path.join(source, "*") if os.path.isdir(source) else source
    files = [source] if os.path.isfile(source) else glob.glob(folder, recursive=True)
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file)) > 1 << 28


def refuse_scanned(options: Options) -> None:
    """Raise an error for ways of reading that need all rows of the files at once."""
    flags = [
        _FLAGS.get(name, f"--{name.replace('_', '-')}")
        for name, default in _READ_WHOLE.items()
        if getattr(options, name) != default
    ]
    if options.format in {each.name for each in DIALECTS} - set(FORMS) | {ONE_HOT}:
        flags.append(f"--format {options.format}")
    if options.source == "-":
        flags.append("standard input")
    if flags:
        why = "With --memory or --resume, answers"
        if options.memory is None and not options.resume:
            why = "These answers would take more memory than there is. They"
        raise click.UsageError(
            f"{why} are read a part at a time, which does not go with {', '.join(flags)}. "
            "Leave it out, or fuse a part of the answers without --memory and --resume."
        )


def _list_inputs(options: Options) -> list[str | None]:
    named = ("source", "graph", "knn", "features", "item_prior", "items", "block")
    return [*(getattr(options, name) for name in named), *options.gold]


def check_files(options: Options, found: Format | None) -> Format | None:
    """Return the format in which results go back to the tool they come from, None for a table; check all outputs."""
    output, source = options.output, options.source
    tables, others = [options.workers_report, options.disagreements], [options.save, options.report]
    target = None if output is None else choose_target(output, source, found)
    if output is not None and found is None and not is_one_file(output):
        check_folder(output, source)
        check_labels(Path(output))
    elif output is not None and target is not None and is_folder(output):
        check_folder(output, source)
    else:
        (tables if target is None else others).insert(0, output)
    check_outputs(tables, others, _list_inputs(options))
    if options.report is not None:
        check_page(options.report)
        if options.content is not None and source == "-":
            raise click.UsageError("--content cannot be read from standard input. Give a file.")
    if target is not None and options.undecided is not None:
        raise click.UsageError("--undecided is for tables of labels. Leave it out, or write a table.")
    return target


def open_engine(options: Options) -> Engine | str:
    """Return the engine asked for; only the name of one that has to be closed in the end."""
    if options.scheduler is not None:
        os.environ["DASK_SCHEDULER_ADDRESS"] = options.scheduler  # which Dask reads when it is loaded
    return Threads(options.threads) if options.engine == "threads" else options.engine


def open_inputs(options: Options, display: Display, found: Format | None, scanned: bool) -> Prepared:
    """Open the answers, which are of the format that was found, known labels and the graph."""
    gold = list(options.gold) or None
    # The columns named for the answers are taken from files of known labels too, where these have them.
    names = {role: getattr(options, role) for role in ("item", "sequence", "position")}
    gold_columns = {**names, "known label": options.label}
    columns = {name: getattr(options, name) for name in (*ROLES[:6], *_READING)}
    features = None if options.knn is None else read_features(options.knn)
    graph = options.graph if features is None else Graph.knn(features, options.k)
    if scanned:
        display.say(f"Sorting {fit_text(options.source, 50)}")
        where = {"store": options.store, "resume": options.resume}
        answers = scan_answers(options.source, options.memory, **where, **columns)
        prepared = prepare(answers, graph, gold, None, gold_columns, options.block)
        return prepared._replace(may_be_scale=prepared.may_be_scale and options.ordered is None)
    display.say(f"Reading {fit_text(options.source, 50)}")
    columns |= {name: getattr(options, name) for name in ("items", "abstain", "background", "normalise", "order")}
    if options.items is None and features is not None and found is None:
        columns["items"] = range(features.shape[0])  # every row of features is an item
    # The content of items is no worker's answer.
    columns["ignore"] = (*options.ignore, *([options.content] if options.content and found is None else []))
    columns["gold"] = options.gold_column
    # Known spans in a file are kept: they say where tokens are cut, to which other known labels may belong.
    if options.ignore_gold or (gold and options.gold_column is None and found is None):
        columns["gold"] = False
    prepared = prepare(options.source, graph, gold, columns, gold_columns, options.block)
    if options.ignore and prepared.layout not in ("wide", "matrix", "soft", "soft-wide"):
        raise click.UsageError("--ignore is for tables in which each worker has a column. Leave it out.")
    return prepared


def fit(options: Options, prepared: Prepared, engine: EngineLike, display: Display) -> FittedModel:
    """Return the fitted model."""
    names = ("estimation", "prior", "calibration", "label_by", "max_iter", "seed")
    parameters = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    others = options.features, options.item_prior, parameters, options.source_kind
    fitted: FittedModel = fusing.fuse_prepared(
        prepared, fusing.Fitting(options.model, engine, display.show_iteration, *others)
    )
    return fitted


def write_files(options: Options, model: FittedModel, workers: pa.Table, target: Format | None) -> dict[str, str]:
    """Write the files asked for: results as a table, or in the format of their source. Return what is where."""
    found = model.result_

    def write_results(path: str) -> None:
        if target is not None:
            found.task.write(found, model.to_frame(), path, ResultWriters(target))
        elif found.task.results == "spans":
            write_table(found.task.tabulate(found, None), path)
        else:
            model.write(path, undecided=options.undecided)

    content = None if options.content is None else read_content(options, model.responses_)
    guided = cast(LatentModel, model)  # if this table is asked for: other models take no features
    return write_together(
        {
            found.task.results: (options.output, write_results),
            "workers": (options.workers_report, partial(write_table, workers)),
            "disagreements": (options.disagreements, lambda path: write_table(guided.disagreements(), path)),
            "model": (options.save, partial(model.save, answers=not options.no_answers)),
        },
        (options.report, lambda path: write_report(options, model, path, content)),
    )


def write_report(options: Options, model: FittedModel, path: str, content: object) -> None:
    """Write the report, with the content of the items."""
    from ..reporting.page import write_page  # which loads templates

    title = "Standard input" if options.source == "-" else os.path.basename(options.source.rstrip("/"))
    given = split_arguments("fuse", options.gold, options.source)
    given = given._replace(keeps=bool(options.gold) and model.result_.task.cut_by_known)
    write_page(model, path, content, title, os.path.dirname(options.source), given)


def split_arguments(command: str, gold: Sequence[str], source: str = "") -> Command:
    """Return the command that runs, as it was typed, without known labels, in two parts: others belong between them."""
    from ..reporting.subject import Command  # which loads the sections of the report

    typed = [command, *click.get_current_context().meta[TYPED]]
    n_options = typed.index("--") if "--" in typed else len(typed)  # what follows is no option
    rest, place = list[str](), None
    parts = iter(typed[:n_options])
    for part in parts:
        name, sign, _ = part.partition("=")
        if name != "--gold":
            rest.append(part)
            continue
        place = len(rest) if place is None else place
        if not sign:
            next(parts, None)
    if place is None:
        place = rest.index("--report") if "--report" in rest else len(rest)
    return Command(rest[:place], [*rest[place:], *typed[n_options:]], gold, source)


def read_content(options: Options, responses: Answers) -> dict[str, object]:
    """Return the columns of the answers' table that say which item a row is about, and what it looks like."""
    formats = {each.name for each in readable_formats()}
    table = open_file(options.source, format=options.format if options.format in formats else None)
    if options.content not in table.names:
        raise table.no_column("content", options.content, "content")
    roles = ("item",) if responses.sequences is None else ("sequence", "position")
    names = [responses.columns.get(role, role) for role in roles]
    return {
        role: table.read(name) for role, name in zip((*roles, "content"), (*names, str(options.content)), strict=True)
    }
