"""`consilience fuse` for several questions, and what other commands do with a file of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from ..api import load
from ..errors import plural
from ..formats.writing import write_table
from ..models.question_tables import count_question
from ..models.questions import Questions
from .command import Record, describe_findings, is_asked, tell
from .files import check_outputs, write_together
from .terminal import Column, Display, Screen, fit_text, format_number

# So many workers are shown, if it is at least so probable that they answer without looking.
N_WORKERS, SUSPECT = 5, 0.1


def write_report(found: Questions, path: str, source: str) -> None:
    """Write the report on all questions."""
    from ..api import write_report as write  # which loads everything

    write(found, path, None, os.path.basename(source.rstrip("/")))


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
