"""Commands on a saved model: `update` adds answers, `predict` labels other items, and `report` writes a page."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial

import click
import pyarrow as pa

from ..answers.responses import Responses
from ..errors import DataWarning, InputError, plural, to_sentence, warn
from ..formats.files import name_of
from ..formats.sources import as_graph
from ..formats.writing import write_table
from ..models.fitted import FittedModel
from ..models.loading import load
from ..models.updating import check_answers, read_like
from ..reporting.page import write_page
from ..results.comparison import Comparison
from .command import Record, describe_findings, is_asked, tell
from .fuse import split_arguments
from .outputs import check_content, check_outputs, check_page, write_together
from .summary import describe_verdict, knows_all, tabulate_workers
from .terminal import MOST_KEY, Column, Display, Screen, fit_text, format_columns, format_number

# Rows shown in the table; the file and --json have all.
MOST_ROWS = 10


def update(
    model: str,
    source: str | None,
    output: str | None,
    save: str | None,
    changes: str | None,
    duplicates: str,
    gold: tuple[str, ...],
    graph: str | None,
    workers_report: str | None,
    report: str | None,
    content: str | None,
) -> None:
    """Add the answers in a file to a saved model, and fuse all of them."""
    started = time.perf_counter()
    if source is None and not gold and graph is None:
        raise click.UsageError("There is nothing to add. Give a file of new answers, --gold or --graph.")
    if report is not None:
        check_page(report)
        check_content(content)
    with Display(is_asked("quiet")) as display:
        display.say("Loading")
        version = find_version(model)
        fitted = load(model)
        check_answers(fitted.fusion_)
        inputs = [source, graph, content, *gold, *([model] if save else [])]
        check_outputs([output, changes, workers_report], [save or model, report], inputs)
        before = getattr(fitted, "comparison_", None)
        if "callback" in fitted.get_params():
            fitted.set_params(callback=display.show_iteration)
        fitted.update(source, graph, list(gold) or None, duplicates=duplicates)
        shown = fitted.fresh().adopt(replace(fitted.fusion_, backend="pyarrow"))
        changed = shown.changes()
        given = split_arguments("update", gold)

        def save_model(path: str) -> None:
            fitted.save(path)
            if save is None:
                check_version(model, version)

        def write_report(path: str) -> None:
            write_page(shown, path, content, os.path.basename(model), os.path.dirname(content or ""), given)

        display.say("Writing")
        files = write_together(
            {
                "labels": (output, lambda path: write_table(shown.to_frame(), path)),
                "changes": (changes, partial(write_table, changed)),
                "workers": (workers_report, lambda path: write_table(tabulate_workers(shown), path)),
                "report": (report, write_report),
                "model": (save or model, save_model),
            }
        )
    tell(
        lambda: describe(shown, before, changed, files, time.perf_counter() - started),
        lambda: print_update(shown, before, changed, model, files),
    )


def find_version(path: str) -> tuple[int, ...] | None:
    """Return numbers that differ if a file has changed or was replaced; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:  # an absent model is the business of `load`
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def check_version(path: str, version: tuple[int, ...] | None) -> None:
    """Raise an error if a file is not the one that it was, so that no answers of another run are lost."""
    if find_version(path) != version:
        raise InputError(
            f"{path!r} has changed since it was read, perhaps by another update. Nothing was written.",
            "Run this update again.",
        )


def describe(
    model: FittedModel, before: Comparison | None, changed: pa.Table, files: dict[str, str], seconds: float
) -> Record:
    """Return what an update brought, for `--json`."""
    found = model.update_
    comparison = getattr(model, "comparison_", None)
    figures = {name: value for name, value in found._asdict().items() if name not in ("columns", "verdict", "roles")}
    return {
        "columns": found.roles,
        **figures,
        "answers": model.responses_.n_responses,
        "items": model.responses_.n_items,
        "workers": model.responses_.n_workers,
        "verdict_before": None if before is None else before.verdict,
        "verdict": None if comparison is None else comparison.verdict,
        "reason": found.verdict,
        "findings": describe_findings(model.findings_),
        "mean_confidence": model.fusion_.labelled.mean_confidence,
        "copies": model.copies_,
        "changes": changed.to_pylist(),
        "files": files,
        "seconds": round(seconds, 3),
    }


def print_update(
    model: FittedModel, before: Comparison | None, changed: pa.Table, name: str, files: dict[str, str]
) -> None:
    """Print what is new, which labels changed, and the verdict before and after."""
    screen, found, r = Screen(), model.update_, model.responses_
    screen.title(f"Update of {fit_text(name, 60)}")
    sizes = [plural(*size) for size in ((r.n_workers, "worker"), (r.n_items, "item"))]
    facts = [
        *([("Columns", format_columns(found.roles))] if found.roles else []),
        ("New", found.describe_news()),
        ("Answers", f"{r.n_responses:,} by {sizes[0]} about {sizes[1]}"),
        ("Changed", f"{found.n_changed:,} of {plural(r.n_items - found.n_new_items, 'label')}"),
    ]
    comparison = getattr(model, "comparison_", None)
    if comparison is None:
        facts.append(("Confidence", f"{format_number(model.fusion_.labelled.mean_confidence)} on average"))
    else:
        if before is not None:
            facts.append(("Before", to_sentence(before.describe_test())))
        facts.append(("Verdict", to_sentence(describe_verdict(model, comparison))))
        if found.verdict is not None:
            facts.append(("Reason", to_sentence(found.verdict)))
        if not knows_all(model):
            facts.append(("Accuracy", to_sentence(comparison.describe_accuracy())))
    if hasattr(model, "explain_calibration"):
        facts.append(("Calibration", model.explain_calibration()))
    screen.facts(facts)
    screen.line()
    screen.findings(describe_findings(model.findings_))
    if changed.num_rows:
        hidden = changed.num_rows - MOST_ROWS
        more = f" ({hidden:,} more with --changes or --json)" if hidden > 0 else ""
        screen.title(f"Labels that changed{more}")
        keys, spare = changed.column_names[: changed.column_names.index("label_before")], screen.spare // 3
        columns = [Column(key, 20 + spare) for key in keys]
        columns += [Column("before", 14 + spare), Column("now", 14 + spare)]
        columns += [Column("confidence", number=True), Column("new answers", number=True)]
        rows: list[list[object] | None] = [
            [
                *(row[key] for key in keys),
                row["label_before"],
                row["label"],
                format_number(row["confidence"]),
                row["new_answers"],
            ]
            for row in changed.slice(0, MOST_ROWS).to_pylist()
        ]
        rows += [None] if hidden > 0 else []
        screen.table(screen.widen(columns, rows, keys, MOST_KEY + spare), rows)
        screen.line()
    screen.facts([(kind.capitalize(), fit_text(path, 60)) for kind, path in files.items()])


def predict(model: str, source: str, output: str | None, gold: tuple[str, ...], graph: str | None) -> None:
    """Label the items in a file by what a saved model knows of the workers."""
    check_outputs([output], [], [model, source, graph, *gold])
    fitted = load(model)
    responses = replace(read_like(fitted, source), backend="pyarrow")
    warn_of_known(fitted, responses)
    links = None if graph is None else as_graph(graph, responses)
    labels = fitted.predict(responses, links, list(gold) or None, as_frame=True)
    if output is not None:
        write_table(labels, output)
    sizes = {"answers": responses.n_responses, "items": responses.n_items, "workers": responses.n_workers}
    mean = float(labels["confidence"].to_numpy().mean())
    tell(
        lambda: {"model": model, "columns": responses.columns, **sizes, "mean_confidence": mean, "file": output},
        lambda: print_labels(responses, labels, model, source, output),
    )


def warn_of_known(model: FittedModel, responses: Responses) -> None:
    """Warn if some of the items were there at the fit, whose answers are not looked at."""
    n_known = 0
    known = model.fusion_.given.answers
    if known is not None:
        n_known = int((known.find_items(list(responses.key_columns().values())) >= 0).sum())
    if n_known:
        warn(
            DataWarning(
                f"The model was fitted to {n_known:,} of these {plural(responses.n_items, 'item')}. Their labels here "
                "come from the answers in this file alone.",
                "To add these answers to the others, use `consilience update`.",
            )
        )


def print_labels(responses: Responses, labels: pa.Table, model: str, source: str, output: str | None) -> None:
    """Print how many labels there are, and how certain they are."""
    screen = Screen()
    screen.title(f"Labels for {fit_text(name_of(source), 40)} by {fit_text(model, 40)}")
    sizes = [plural(*size) for size in ((responses.n_workers, "worker"), (responses.n_items, "item"))]
    facts = [
        *([("Columns", format_columns(responses.columns))] if responses.columns else []),
        ("Answers", f"{responses.n_responses:,} by {sizes[0]} about {sizes[1]}"),
        ("Confidence", f"{format_number(float(labels['confidence'].to_numpy().mean()))} on average"),
        ("Labels", fit_text(output, 60) if output else "not written; give -o FILE to keep them"),
    ]
    screen.facts(facts)


def report(model: str, output: str, content: str | None) -> None:
    """Write a report on a saved model."""
    check_page(output)
    check_content(content)
    check_outputs([], [output], [model, content])
    write_page(load(model), output, content, os.path.basename(model), os.path.dirname(content or ""))
    tell(
        lambda: {"model": model, "file": output},
        lambda: Screen().facts([("Report", fit_text(output, 60))]),
    )
