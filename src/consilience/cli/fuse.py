"""`consilience fuse`: from a file of answers to a file of labels."""

from __future__ import annotations

import fnmatch
import glob
import inspect
import os
import shlex
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pyarrow as pa

from .. import api, limits
from ..answers.graph import Graph
from ..answers.previews import fit_text
from ..answers.tables import build_frame
from ..documents.document import Fact
from ..documents.html import check_page
from ..documents.overview import describe_fit, describe_questions, sort_workers
from ..engines import Threads
from ..formats import readable_formats
from ..formats.arrays import read_features
from ..formats.files import is_folder, name_of
from ..formats.reading import open_file
from ..formats.scanning import IN_MEMORY, scan_answers
from ..formats.sources import choose_target, find_source, open_table, read_answers, write_results
from ..formats.sources import write_labels as write_tool
from ..formats.writing import write_table
from ..kinds.tags import Tags
from ..models.base import Standalone
from ..models.questions import Questions
from ..options import BY_QUESTION, given
from ..results.label_files import check_label_folder, is_one_file
from .command import TYPED_ARGUMENTS, refuse
from .files import Display, check_folder, check_outputs, finish, name_page, write_together

# Keywords of `consilience.fuse` are options of the command; so are those of `scan_answers`.
KEYWORDS = frozenset(inspect.signature(api.fuse).parameters) - {"source", "graph", "gold", "engine", "callback"}
SCANNED = frozenset(inspect.signature(scan_answers).parameters)
# Those that say how answers are read, so that they have no effect on answers that are read already.
READING = frozenset(inspect.signature(read_answers).parameters) | {"separator", "gold_column", "content"}


def run_fuse(**typed: Any) -> None:
    """Fuse the answers in a file into one label per item."""
    started = time.perf_counter()
    options = SimpleNamespace(**typed)
    source, output = options.source, options.output
    asked, gold = expand_keywords(options)
    inputs = [source, *(typed[name] for name in ("graph", "knn", "features", "item_prior", "items", "block"))]
    if (inputs := [*inputs, *options.gold]).count("-") > 1:
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    # Answers are scanned if memory is limited, or if they would not fit in what there is.
    scanned, why = options.memory is not None or options.resume, "With --memory or --resume, answers"
    if not scanned:
        matched = glob.glob(os.path.join(source, "*") if os.path.isdir(source) else source, recursive=True)
        matched = [source] if os.path.isfile(source) else matched  # whose name may look like a pattern
        scanned = sum(os.path.getsize(file) for file in matched if os.path.isfile(file)) > limits.available_memory()
        why = "These answers would take more memory than there is. They"
    flags = [f"--{name.replace('_', '-')}" for name in asked if name in READING - SCANNED]
    flags += ["--content"] if options.content is not None else []
    flags += [f"--format {options.format}"] if options.format in IN_MEMORY else []
    flags += ["standard input"] if source == "-" else []
    if scanned and flags:
        raise click.UsageError(
            f"{why} are read a part at a time, which does not go with {', '.join(flags)}. "
            "Leave it out, or fuse a part of the answers without --memory and --resume."
        )
    tool = None if scanned else find_source(source, options.format)
    target = None if output is None else choose_target(output, source, tool)
    tables, others = [options.workers_report, options.disagreements], [options.save, options.report]
    if output is not None and (not is_one_file(output) if scanned else target is not None and is_folder(output)):
        check_folder(output, source)
        if scanned:
            check_label_folder(Path(output))
    else:
        (tables if target is None else others).insert(0, output)
    check_outputs(tables, others, inputs)
    check_page(options.report)
    if options.content is not None and source == "-":
        raise click.UsageError("--content cannot be read from standard input. Give a file.")
    if target is not None:
        refuse("results in the format of a tool", "undecided")
    if options.scheduler is not None:
        os.environ["DASK_SCHEDULER_ADDRESS"] = options.scheduler  # which Dask reads when it is loaded
    engine = Threads(options.threads) if options.engine == "threads" else options.engine

    with Display() as display:
        display.say(f"{'Sorting' if scanned else 'Reading'} {fit_text(source, 50)}")
        answers, graph = source, options.graph
        if options.knn is not None:
            features = read_features(options.knn)
            graph = Graph.knn(features, options.k)
            if tool is None and not scanned:  # every row of features is an item
                asked.setdefault("items", range(features.shape[0]))
        if scanned:
            read = {name: asked.pop(name) for name in list(asked) if name in SCANNED - {"block"}}
            answers = scan_answers(source, options.memory, store=options.store, resume=options.resume, **read)
        elif options.content is not None and tool is None:  # the content of items is no worker's answer
            table, asked["format"] = open_table(source, options.format)
            answers = replace(table, ignored=[*table.ignored, options.content])
        fused = api.fuse(answers, graph, gold, engine=engine, callback=display.show_iteration, **asked)

        several, is_single = isinstance(fused, Questions), isinstance(fused, Standalone)
        kind = None if several or is_single else fused.result_.kind
        not_labels = None if kind is None else kind.tabulate(fused.result_)  # results that are no labels
        if is_single:
            unusable = ("content", "disagreements", "undecided", "all_workers", "wide", "settings", "no_answers")
            refuse("results that are no labels", *unusable)
        elif several:
            refuse("several questions", "content", "disagreements", "all_workers")
        else:
            refuse("one question", "wide", "settings")
        display.say("Writing")

        def write_labels(path: str) -> None:
            if kind is not None and target is not None:
                write_results(fused.result_, fused.to_frame(), path, target)
            elif is_single and target is not None:  # values go back as what the tool calls labels
                table = pa.table(fused.to_frame())
                values = {"item": table["item"], "label": table["value"]}
                write_tool(values, path, source, target.name, fused.result_.columns.get("label"))
            elif is_single or not_labels is not None:
                write_table(fused.to_frame() if not_labels is None else build_frame(not_labels, "pyarrow"), path)
            else:
                fused.write(path, undecided=options.undecided, **({"wide": True} if options.wide else {}))

        workers = pa.table(fused.worker_report()) if kind is None else sort_workers(fused)
        content = None if options.content is None else find_content(options, fused.result_)
        about = name_page(source), os.path.dirname(source), click.get_current_context().meta[TYPED_ARGUMENTS], source
        files = write_together(
            {
                "labels" if kind is None else kind.results: (output, write_labels),
                "workers": (options.workers_report, partial(write_table, workers)),
                "disagreements": (options.disagreements, lambda path: write_table(fused.disagreements(), path)),
                "model": (options.save, partial(fused.save, **({"answers": False} if options.no_answers else {}))),
            },
            (options.report, lambda path: api.write_report(fused, path, content, *about)),
        )
    what = "Results" if is_single else "Labels" if kind is None or not_labels is None else kind.results.capitalize()
    title, more = f"{what} for {fit_text(name_of(source), 60)}", list[Fact]()
    if kind is None:
        document = fused.overview(title) if is_single else describe_questions(fused, title)
    else:
        document = describe_fit(fused, title, options.undecided, options.all_workers)
        result, gold = fused.result_, fused.result_.given.gold
        all_known = gold is not None and gold.n_known == result.labels.n_items
        if (
            result.reported_confidence is not None
            and len(result.names.classes) > 1
            and not_labels is None
            and not all_known
        ):
            # Which command lists the labels that are done, and which the questions that are worth asking.
            listing = f"consilience next {shlex.quote(options.save)}" if options.save else "--save FILE, then next FILE"
            asking = "" if result.given.source_kind == "functions" else ", --questions (open)"
            more.append(Fact("", "Next", None, f"{listing} --stop .95 (done){asking}"))
    store = [Fact("store", "Sorted copy", answers.budget.folder)] if getattr(answers, "budget", None) else []
    read_from = [Fact("source", "", source), *store]
    finish(document, read_from, files, ("Written", "nothing; give -o FILE to keep the labels"), started, more)


def find_content(options: SimpleNamespace, result: Any) -> dict[str, Any]:
    """The columns of the file that say which item a row is about, or which whole sequence, and what it looks like."""
    formats = {each.name for each in readable_formats()}
    table = open_file(options.source, format=options.format if options.format in formats else None)
    if options.content not in table.names:
        raise table.no_column("content", options.content, "content")
    columns, keys = result.answers.columns, {"item": "item"}
    if result.kind.brought is Tags:  # a row is about all tags of an item
        keys = {"sequence": "item"}
    elif result.answers.sequences is not None:
        keys = {"sequence": "sequence", "position": "position"}
    content = {"content": table.read(options.content)}
    for name, role in keys.items():
        table, column = table.combine(role, columns.get(role, role))
        content[name] = table.read(str(column))
    return content


def expand_keywords(options: SimpleNamespace) -> tuple[dict[str, Any], Any]:
    """The keywords of `consilience.fuse` that were given, in its terms, and the known labels."""
    asked = {name: value for name, value in given(vars(options)).items() if name in KEYWORDS}
    names = list(asked.pop("label", ()))
    if any("*" in name for name in names):  # a pattern stands for all columns that are called so
        known = list(map(str, open_table(options.source, options.format)[0].names))
        matches = {name: fnmatch.filter(known, name) if "*" in name else [name] for name in names}
        for pattern in (name for name in names if not matches[name]):
            raise click.UsageError(f"No column is called like {pattern!r}. There are {', '.join(map(repr, known))}.")
        names = list(dict.fromkeys(name for each in matches.values() for name in each))
    if again := sorted({name for name in names if names.count(name) > 1}):
        raise click.UsageError(f"--label names {', '.join(map(repr, again))} more than once. Name each question once.")
    if names:
        asked["label"] = names if len(names) > 1 else names[0]
    by_question: dict[str, dict[str | None, Any]] = {key: {} for key in BY_QUESTION}
    for name, (key, value) in options.settings:
        if by_question[key].setdefault(name, value) is not value:
            raise click.UsageError(f"--for {name!r} says {key} twice. Leave out one.")
    gold: Any = by_question.pop("gold")
    if gold and options.gold:
        raise click.UsageError("Known labels are given by --gold, or by --for QUESTION gold=FILE. Leave out one.")
    for key, own in by_question.items():
        if own:
            asked[key] = own | ({None: asked[key]} if key in asked else {})
    return asked, False if options.ignore_gold else gold or list(options.gold) or None
