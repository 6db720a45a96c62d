"""`consilience fuse`: from a file of answers to a file of labels, by `consilience.fuse`."""

from __future__ import annotations

import fnmatch
import glob
import inspect
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from .. import api, memory
from ..answers import DIALECTS
from ..answers.answers import Answers
from ..answers.graph import Graph
from ..engines.base import Threads
from ..errors import ConsilienceError
from ..formats import readable_formats
from ..formats.arrays import read_features
from ..formats.files import is_folder
from ..formats.reading import open_file, scan_table
from ..formats.scanning import FORMS, scan_answers
from ..formats.sources import find_source, open_table, read_answers
from ..formats.targets import ResultWriters, choose_target
from ..formats.writing import check_table_path, write_table
from ..kinds.tag_tables import ONE_HOT
from ..models.questions import Questions
from ..options import BY_QUESTION, given
from ..results.label_files import check_folder as check_labels
from ..results.label_files import is_one_file
from .command import TYPED, is_asked, tell
from .files import check_folder, check_outputs, check_page, write_together
from .fuse_tables import print_summary
from .questions import describe, print_questions, tabulate, tabulate_workers
from .summary import summarise
from .summary import tabulate_workers as tabulate_report
from .terminal import Display, fit_text

if TYPE_CHECKING:
    from ..reporting.subject import Command

# What a fit in memory takes for each answer at most, reading included (measured: 60 to 90 bytes).
BYTES_PER_ANSWER = 100
# Keywords of `consilience.fuse` are options of the command; so are those of `scan_answers`.
KEYWORDS = frozenset(inspect.signature(api.fuse).parameters) - {"source", "graph", "gold", "engine", "callback"}
SCANNED = frozenset(inspect.signature(scan_answers).parameters)
# Those that say how answers are read, so that they have no effect on answers that are read already.
READING = frozenset(inspect.signature(read_answers).parameters) | {"separator", "gold_column", "content"}


def fuse(**typed: Any) -> None:
    """Fuse the answers in a file into one label per item: read, fit, write, and only then print."""
    started = time.perf_counter()
    options = SimpleNamespace(**typed)
    source = options.source
    asked = settle_keywords(options)
    inputs = [source, *(typed[name] for name in ("graph", "knn", "features", "item_prior", "items", "block"))]
    if (inputs := [*inputs, *options.gold]).count("-") > 1:
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    scanned = is_scanned(options, asked)
    if options.labels is not None:
        asked["label"] = match_columns(options, scanned, asked)
    tool = None if scanned else find_source(source, options.format)
    target = None if options.output is None else choose_target(options.output, source, tool)
    check_files(options, inputs, target is not None, scanned)
    if options.scheduler is not None:
        os.environ["DASK_SCHEDULER_ADDRESS"] = options.scheduler  # which Dask reads when it is loaded
    engine = Threads(options.threads) if options.engine == "threads" else options.engine
    with Display(is_asked("quiet")) as display:
        display.say(f"{'Sorting' if scanned else 'Reading'} {fit_text(source, 50)}")
        graph = options.graph
        if options.knn is not None:
            features = read_features(options.knn)
            graph = Graph.knn(features, options.k)
            if tool is None and not scanned:  # every row of features is an item
                asked.setdefault("items", range(features.shape[0]))
        answers: Any = source
        if scanned:
            read = {name: asked.pop(name) for name in list(asked) if name in SCANNED - {"block"}}
            answers = scan_answers(source, options.memory, store=options.store, resume=options.resume, **read)
        elif options.content is not None and tool is None:  # the content of items is no worker's answer
            table, asked["format"] = open_table(source, options.format)
            answers = replace(table, ignored=[*table.ignored, options.content])
        gold = False if options.ignore_gold else settle_gold(options)
        found = api.fuse(answers, graph, gold, engine=engine, callback=display.show_iteration, **asked)
        several = isinstance(found, Questions)
        refused = ("content", "disagreements", "all_workers") if several else ("wide", "settings")
        if without_effect := [name for name in refused if typed[name]]:
            flag = "--for" if without_effect[0] == "settings" else f"--{without_effect[0].replace('_', '-')}"
            raise click.UsageError(f"{flag} does not go with {'several questions' if several else 'one question'}.")
        if not several:
            workers = tabulate_report(found)
            summary = summarise(found, workers, options)
        display.say("Writing")
        files = write_several(options, found) if several else write_one(options, found, workers, target)
    seconds = round(time.perf_counter() - started, 3)
    if several:
        tell(lambda: describe(found, source, files, seconds), lambda: print_questions(found, source, files))
        return
    summary = replace(summary, files=files, seconds=seconds)
    tell(lambda: asdict(summary), lambda: print_summary(summary))


# -------------------------------------------------------------------------------------------------------- arguments


def settle_keywords(options: SimpleNamespace) -> dict[str, Any]:
    """The keywords of `consilience.fuse` that were given, in its terms."""
    asked = {name: value for name, value in given(vars(options)).items() if name in KEYWORDS}
    names = list(options.label)
    if again := sorted({name for name in names if names.count(name) > 1}):
        raise click.UsageError(f"--label names {', '.join(map(repr, again))} more than once. Name each question once.")
    asked.pop("label", None)
    if names:
        asked["label"] = names if len(names) > 1 else names[0]
    for role, name in (options.columns or {}).items():
        keyword = "gold_column" if role == "gold" else role
        if asked.setdefault(keyword, name) != name:
            raise click.UsageError(f"--{role} and --columns name different columns for the {role}. Name one.")
    for key in BY_QUESTION:
        own: dict[str | None, Any] = {}
        for name, (of, value) in options.settings:
            if of == key and own.setdefault(name, value) is not value:
                raise click.UsageError(f"--for {name!r} says {key} twice. Leave out one.")
        if own and key != "gold":
            asked[key] = own | ({None: asked[key]} if key in asked else {})
    return asked


def settle_gold(options: SimpleNamespace) -> Any:
    """Known labels: files, or those of each question."""
    own = {name: value for name, (key, value) in options.settings if key == "gold"}
    if own and options.gold:
        raise click.UsageError("Known labels are given by --gold, or by --for QUESTION gold=FILE. Leave out one.")
    return own or list(options.gold) or None


def match_columns(options: SimpleNamespace, scanned: bool, asked: Mapping[str, Any]) -> list[str] | str:
    """The columns of answers to several questions that --label and --labels name."""
    table: Any = (scan_table if scanned else lambda *place: open_table(*place)[0])(options.source, options.format)
    known = list(map(str, table.names))
    found = fnmatch.filter(known, options.labels)
    if not found:
        columns = ", ".join(map(repr, known))
        raise click.UsageError(f"No column is called like {options.labels!r}. There are {columns}.")
    label = asked.get("label", [])
    names = list(dict.fromkeys([*([label] if isinstance(label, str) else label), *found]))
    return names if len(names) > 1 else names[0]


def is_scanned(options: SimpleNamespace, asked: Mapping[str, Any]) -> bool:
    """Whether answers are read by `scan_answers`: if memory is limited, or if they would not fit in what there is."""
    source, limited = options.source, options.memory is not None or options.resume
    if not limited:
        folder = os.path.join(source, "*") if os.path.isdir(source) else source
        files = [source] if os.path.isfile(source) else glob.glob(folder, recursive=True)
        if source == "-" or sum(os.path.getsize(file) for file in files if os.path.isfile(file)) <= 1 << 28:
            return False  # not worth counting rows
        try:
            n_rows = sum(scan_table(source, options.format).sizes)
        except ConsilienceError:
            return False  # whoever reads it as a whole says what is wrong
        if n_rows * BYTES_PER_ANSWER <= memory.available_memory():
            return False
    flags = [f"--{name.replace('_', '-')}" for name in asked if name in READING - SCANNED]
    flags += ["--content"] if options.content is not None else []
    if options.format in {each.name for each in DIALECTS} - set(FORMS) | {ONE_HOT}:
        flags.append(f"--format {options.format}")
    if source == "-":
        flags.append("standard input")
    if flags:
        why = "With --memory or --resume, answers"
        if not limited:
            why = "These answers would take more memory than there is. They"
        raise click.UsageError(
            f"{why} are read a part at a time, which does not go with {', '.join(flags)}. "
            "Leave it out, or fuse a part of the answers without --memory and --resume."
        )
    return True


def check_files(options: SimpleNamespace, inputs: Sequence[str | None], to_tool: bool, scanned: bool) -> None:
    """Raise the error that writing would meet, before anything is read."""
    output, source = options.output, options.source
    tables, others = [options.workers_report, options.disagreements], [options.save, options.report]
    if output is not None and scanned and not is_one_file(output):
        check_folder(output, source)
        check_labels(Path(output))
    elif output is not None and to_tool and is_folder(output):
        check_folder(output, source)
    else:
        (others if to_tool else tables).insert(0, output)
    check_outputs(tables, others, inputs)
    if options.report is not None:
        check_page(options.report)
        if options.content is not None and source == "-":
            raise click.UsageError("--content cannot be read from standard input. Give a file.")
    if to_tool and options.undecided is not None:
        raise click.UsageError("--undecided is for tables of labels. Leave it out, or write a table.")


# ---------------------------------------------------------------------------------------------------------- results


def write_one(options: SimpleNamespace, model: Any, workers: Any, target: Any) -> dict[str, str]:
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

    def write_report(path: str) -> None:
        from ..reporting.page import write_page  # which loads templates

        title = "Standard input" if options.source == "-" else os.path.basename(options.source.rstrip("/"))
        command = split_arguments("fuse", options.gold, options.source)
        command = command._replace(keeps=bool(options.gold) and found.task.cut_by_known)
        write_page(model, path, content, title, os.path.dirname(options.source), command)

    return write_together(
        {
            found.task.results: (options.output, write_results),
            "workers": (options.workers_report, partial(write_table, workers)),
            "disagreements": (options.disagreements, lambda path: write_table(model.disagreements(), path)),
            "model": (options.save, partial(model.save, answers=not options.no_answers)),
        },
        (options.report, write_report),
    )


def write_several(options: SimpleNamespace, found: Questions) -> dict[str, str]:
    """Write the files asked for, each about all questions; return what is where."""

    def write_labels(path: str) -> None:
        if is_one_file(path):
            check_table_path(path)
            write_table(tabulate(found, options.wide, options.undecided), path)
        else:
            found.write(path, undecided=options.undecided)

    def write_report(path: str) -> None:
        from ..reporting.page import write_questions  # which loads templates

        write_questions(found, path, os.path.basename(options.source.rstrip("/")))

    return write_together(
        {
            "labels": (options.output, write_labels),
            "workers": (options.workers_report, lambda path: write_table(tabulate_workers(found), path)),
            "model": (options.save, partial(found.save, answers=not options.no_answers)),
        },
        (options.report, write_report),
    )


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


def read_content(options: SimpleNamespace, responses: Answers) -> dict[str, object]:
    """The columns of the answers' table that say which item a row is about, and what it looks like."""
    formats = {each.name for each in readable_formats()}
    table = open_file(options.source, format=options.format if options.format in formats else None)
    if options.content not in table.names:
        raise table.no_column("content", options.content, "content")
    roles = ("item",) if responses.sequences is None else ("sequence", "position")
    names = [responses.columns.get(role, role) for role in roles]
    return {
        role: table.read(name) for role, name in zip((*roles, "content"), (*names, str(options.content)), strict=True)
    }
