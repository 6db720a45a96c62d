"""`consilience fuse` for several questions, and what other commands do with a file of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import cast

import click
import pyarrow as pa

from ..api import load
from ..arguments import split_by_question
from ..engines import EngineLike
from ..errors import listing, plural
from ..formats.scanning import scan_answers
from ..formats.writing import write_table
from ..kinds.tag_tables import Separators
from ..models.asking import fuse_questions
from ..models.fusing import Fitting
from ..models.question_tables import count_question
from ..models.questions import Questions
from ..options import ROLES
from ..results.label_files import is_one_file
from .command import Record, describe_findings, is_asked, tell
from .files import check_folder, check_outputs, check_page, write_together
from .terminal import Column, Display, Screen, fit_text, format_number

# Options that are for one question, or for answers of another kind.
_OF_ONE = ("knn", "undecided_spans", "disagreements", "content", "background", "gold_column")
_READING = ("classes", "ordered", "positions", "duplicates", "drop_missing", "separator")
# So many workers are shown, if it is at least so probable that they answer without looking.
N_WORKERS, SUSPECT = 5, 0.1


def fuse_all(
    options: SimpleNamespace, names: Sequence[str], engine: EngineLike, started: float, scanned: bool = False
) -> None:
    """Fuse the answers to several questions in a file: read, fit, write, and only then print."""
    flags = [f"--{name.replace('_', '-')}" for name in _OF_ONE if getattr(options, name, None)]
    if flags:
        raise click.UsageError(f"{', '.join(flags)} does not go with several questions. Leave it out.")
    tables, others = [options.output, options.workers_report], [options.save, options.report]
    if options.output is not None and not is_one_file(options.output):
        check_folder(tables.pop(0), options.source)
    check_outputs(tables, others, [options.source, *options.gold])
    if options.report is not None:
        check_page(options.report)
    with Display(is_asked("quiet")) as display:
        display.say(f"{'Sorting' if scanned else 'Reading'} {fit_text(options.source, 50)}")
        found = fit(options, names, engine, display, scanned)
        display.say("Writing")
        files = write_files(options, found)
    seconds = round(time.perf_counter() - started, 3)
    tell(
        lambda: describe(found, options.source, files, seconds),
        lambda: print_questions(found, options.source, files),
    )


def fit(
    options: SimpleNamespace, names: Sequence[str], engine: EngineLike, display: Display, scanned: bool
) -> Questions:
    """Return the questions, fused."""
    columns = {name: getattr(options, name) for name in (*ROLES[:6], *_READING, "format") if name != "label"}
    if not scanned:
        columns |= {name: getattr(options, name) for name in ("items", "normalise", "order")}
    columns = {name: value for name, value in columns.items() if value is not None}
    if options.abstain != "ignore":
        columns["abstain"] = options.abstain
    settable = ("estimation", "prior", "calibration", "label_by", "max_iter", "seed")
    given = {name: getattr(options, name) for name in settable}
    parameters = {name: value for name, value in given.items() if value is not None}
    settings = options.features, options.item_prior, parameters, options.source_kind
    fitting = Fitting(options.model, engine, display.show_iteration, *settings)
    columns, known = add_settings(columns, options.settings, names)
    gold: object = False if options.ignore_gold else (list(options.gold) or None)
    if known:
        if gold is not None:
            raise click.UsageError("Known labels are given by --gold, or by --for QUESTION gold=FILE. Leave out one.")
        gold = known
    source: object = options.source
    if scanned:
        columns |= {"store": options.store, "resume": options.resume}
        source = scan_answers(options.source, options.memory, label=names, **columns)
        columns = {name: value for name, value in columns.items() if name == "ordered"}
    return fuse_questions(source, names, options.graph, gold, columns, options.block, fitting)


def add_settings(
    columns: Mapping[str, object], settings: Sequence[tuple[str, tuple[str, object]]], names: Sequence[str]
) -> tuple[Record, Record]:
    """Return how questions are read, with what holds for some of them alone, and the known labels of those."""
    own: dict[str, Record] = {}
    for name, (key, value) in settings:
        if name in own.setdefault(key, {}):
            raise click.UsageError(f"--for {name!r} says {key} twice. Leave out one.")
        if name not in names:
            raise click.UsageError(f"--for names {name!r}, and the questions are {listing(names, len(names))}.")
        own[key][name] = value
    known = own.pop("gold", {})
    signs = own.pop("separator", None)
    split: Record = {key: split_by_question(key, columns.get(key), names) | each for key, each in own.items()}
    if signs is not None:  # who reads cells knows which other questions hold the default
        split["separator"] = Separators(cast("str | None", columns.get("separator")), signs)
    return {**columns, **split}, known


def write_files(options: SimpleNamespace, found: Questions) -> dict[str, str]:
    """Write the files asked for; return what is where."""

    def write_labels(path: str) -> None:
        if is_one_file(path):
            write_table(tabulate(found, options.wide, options.undecided), path)
        else:
            found.write(path, undecided=options.undecided)

    return write_together(
        {
            "labels": (options.output, write_labels),
            "workers": (options.workers_report, lambda path: write_table(tabulate_workers(found), path)),
            "model": (options.save, partial(found.save, answers=not options.no_answers)),
        },
        (options.report, lambda path: write_report(found, path, options.source)),
    )


def write_report(found: Questions, path: str, source: str) -> None:
    """Write the report on all questions."""
    from ..reporting.page import write_questions  # which loads templates

    write_questions(found, path, os.path.basename(source.rstrip("/")))


def in_arrow(found: Questions) -> Questions:
    """Return the questions with tables of Arrow."""
    shown = {name: each.fresh().adopt(replace(each.result_, backend="pyarrow")) for name, each in found.items()}
    return Questions(shown, found.shared_)


def tabulate(found: Questions, wide: bool, undecided: float | None) -> pa.Table:
    """Return the labels of all questions."""
    table: pa.Table = in_arrow(found).to_frame(wide=wide, undecided=undecided)
    return table


def tabulate_workers(found: Questions) -> pa.Table:
    """Return the report on workers over all questions."""
    table = in_arrow(found).worker_report()
    return pa.table({name: table[name] for name in table.column_names})


def describe(found: Questions, source: str, files: dict[str, str], seconds: float) -> Record:
    """Return the figures of a fit to several questions, for --json."""
    shared = found.shared_
    return {
        "source": source,
        "questions": {name: describe_question(found, name) for name in found},
        "sharing": None if shared is None else {"own": shared.own, "easiness": shared.easiness},
        "explanation": found.explain_sharing(),
        "workers": tabulate_workers(found).to_pylist(),
        "files": files,
        "seconds": seconds,
    }


def describe_question(found: Questions, name: str) -> Record:
    """Return the figures of one question."""
    model = found[name]
    result = model.result_
    compared = result.comparison
    return {
        "model": type(model).__name__,
        "workers": len(result.names.workers),
        **count_question(result),
        "verdict": None if compared is None else compared.verdict,
        "findings": describe_findings(model.findings_, name),
    }


def print_questions(found: Questions, source: str, files: dict[str, str]) -> None:
    """Print what was found of each question, who needs a look, and what was written."""
    screen = Screen()
    blocked = max((len(each.result_.blocked) for each in found.values() if each.result_.blocked is not None), default=0)
    left_out = [("Left out", plural(blocked, "blocked worker"))] if blocked else []
    screen.facts([("Questions", f"{len(found)} in {fit_text(source, 50)}"), *left_out])
    screen.line()
    figures = {name: describe_question(found, name) for name in found}
    rows = []
    for name, it in figures.items():
        n_items, n_answers = f"{it['items']:,}", f"{it['answers']:,}"
        sure = format_number(it["mean_confidence"])
        rows.append([name, len(it["classes"]), n_items, n_answers, sure, it["verdict"] or ""])
    columns = [Column(title, number=True) for title in ("classes", "items", "answers", "confidence")]
    screen.table([Column("question", 24), *columns, Column("against the vote", 24)], rows)
    screen.line()
    screen.sentence(found.explain_sharing())
    screen.findings(join_findings({name: it["findings"] for name, it in figures.items()}))
    print_workers(screen, found)
    if files:
        screen.facts([(kind.capitalize(), fit_text(path, 60)) for kind, path in files.items()])


def join_findings(findings: Mapping[str, Sequence[Record]]) -> list[Record]:
    """Return the findings of all questions; one that several questions have is said once."""
    names = dict[str, list[str]]()
    for name, found in findings.items():
        for each in found:
            names.setdefault(each["problem"], []).append(fit_text(name, 24))
    every = {each["problem"]: each for found in findings.values() for each in found}
    return [{**every[said], "problem": f"{', '.join(where)}: {said}"} for said, where in names.items()]


def print_workers(screen: Screen, found: Questions) -> None:
    """Print who most probably answers without looking."""
    rows = sorted(tabulate_workers(found).to_pylist(), key=lambda row: -(row["chance"] or 0.0))
    rows = [row for row in rows if (row["chance"] or 0.0) >= SUSPECT]
    if not rows:
        screen.sentence("No worker seems to answer without looking, judging by all questions.")
        return
    columns = [Column("worker", 24), *(Column(title, number=True) for title in ("answers", "accuracy", "chance"))]
    screen.title("Who may answer without looking, over all questions")
    screen.table(
        columns,
        [
            [row["worker"], f"{row['answers']:,}", format_number(row["accuracy"]), format_number(row["chance"])]
            for row in rows[:N_WORKERS]
        ]
        + ([None] if len(rows) > N_WORKERS else []),
    )
    screen.line()
    screen.sentence("Leave out those above .9 with --block FILE, a table with a column worker.")


def update_all(model: str, source: str | None, gold: Sequence[str], duplicates: str, files: Record) -> None:
    """Add the answers in a file to saved questions, and fuse all of them."""
    started = time.perf_counter()
    check_outputs(
        [files["output"], files["workers_report"]], [files["save"] or model, files["report"]], [source, *gold]
    )
    with Display(is_asked("quiet")) as display:
        display.say("Loading")
        found = load(model)
        display.say("Fitting")
        found.update(source, list(gold) or None, duplicates=duplicates)
        display.say("Writing")
        written = write_together(
            {
                "labels": (files["output"], lambda path: write_table(tabulate(found, False, None), path)),
                "workers": (files["workers_report"], lambda path: write_table(tabulate_workers(found), path)),
                "model": (files["save"] or model, found.save),
            },
            (files["report"], lambda path: write_report(found, path, model)),
        )
    seconds = round(time.perf_counter() - started, 3)
    tell(lambda: describe(found, source or model, written, seconds), lambda: print_questions(found, model, written))


def predict_all(model: str, source: str, output: str | None) -> None:
    """Label the items in a file by what saved questions know of the workers."""
    found = in_arrow(load(model))
    labels = found.predict(source, as_frame=True)
    table = pa.table({name: labels[name] for name in labels.column_names})
    if output is not None:
        write_table(table, output)
    asked = pa.compute.value_counts(table["question"]).to_pylist()
    n_items = {each["values"]: each["counts"] for each in asked}
    mean = float(pa.compute.mean(table["confidence"]).as_py() or "nan")

    def show() -> None:
        screen = Screen()
        screen.title(f"Labels for {fit_text(source, 40)} by {fit_text(model, 40)}")
        screen.facts(
            [
                *((name, f"{n:,} items") for name, n in n_items.items()),
                ("Confidence", f"{format_number(mean)} on average"),
                ("Labels", fit_text(output, 60) if output else "not written; give -o FILE to keep them"),
            ]
        )

    tell(lambda: {"model": model, "items": n_items, "mean_confidence": mean, "file": output}, show)
