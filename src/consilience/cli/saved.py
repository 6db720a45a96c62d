"""Commands on a saved model, of one question or of several.

`update` adds answers, `predict` labels other items, `report` writes a page. `next` lists which items a person should
label, whom to ask what, or which items are certain.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import click
import pyarrow as pa

from ..api import load
from ..errors import DataWarning, InputError, count_shown, plural, to_sentence, warn
from ..formats.files import name_of
from ..formats.reading import open_path, read_table
from ..formats.sources import as_graph
from ..formats.writing import write_table
from ..models.fitted import check_answers, read_like
from ..models.questions import Questions
from ..options import N_LISTED
from ..planning.next_items import add_label
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.tables import to_number
from ..results.explanations import Explanation
from . import questions as several_questions
from .command import describe_findings, is_asked, refuse, tell, typed_command
from .files import check_content, check_outputs, check_page, tabulate_labels, write_report, write_together
from .fuse_tables import describe_right
from .summary import describe_accuracy, describe_verdict, summarise, tabulate_workers
from .terminal import MOST_KEY, Column, Display, Screen, fit_text, format_columns, format_number

# Rows shown in tables; files and --json have all.
MOST_CHANGES, MOST_LISTED = 10, 20


def open_labels(path: str) -> Any:
    """A saved model of labels, or several: no ranking."""
    found = load(path)
    if isinstance(found, BradleyTerry):
        problem = f"{path!r} holds a ranking, which has no labels."
        raise InputError(problem, "Rank all verdicts again, with `consilience rank`.")
    return found


def in_arrow(found: Any) -> Any:
    """A fitted model, or several, whose tables are of Arrow."""
    if isinstance(found, Questions):
        return Questions({name: in_arrow(each) for name, each in found.items()}, found.shared_)
    result = found.found_ if isinstance(found, BradleyTerry) else found.result_
    return found.fresh().adopt(replace(result, backend="pyarrow"))


def find_version(path: str) -> tuple[int, ...] | None:
    """Numbers that differ if a file has changed or was replaced; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:  # an absent model is the business of `load`
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def update(
    model: str,
    source: str | None,
    output: str | None,
    save: str | None,
    changes: str | None,
    duplicates: str,
    gold: tuple[str, ...],
    label_by: str | None,
    graph: str | None,
    workers_report: str | None,
    report: str | None,
    content: str | None,
) -> None:
    """Add the answers in a file to a saved model, and fuse all of them."""
    started = time.perf_counter()
    if source is None and graph is None and not gold:
        raise click.UsageError("There is nothing to add. Give a file of new answers, --gold or --graph.")
    if report is not None:
        check_page(report)
        check_content(content)
    inputs = [source, graph, content, *gold, *([model] if save else [])]
    with Display(is_asked("quiet")) as display:
        display.say("Loading")
        version = find_version(model)
        found = open_labels(model)
        several = isinstance(found, Questions)
        if several:
            refuse("several questions", "graph", "changes", "label_by", "content")
        else:
            found.set_params(**({} if label_by is None else {"label_by": label_by}))
            check_answers(found.result_)
            if "callback" in found.get_params():
                found.set_params(callback=display.show_iteration)
        check_outputs([output, changes, workers_report], [save or model, report], inputs)
        before = getattr(found, "comparison_", None)
        display.say("Fitting")
        found.update(source, gold=list(gold) or None, duplicates=duplicates, **({} if several else {"graph": graph}))
        shown = in_arrow(found)
        changed: Any = None if several else shown.changes()
        workers = several_questions.tabulate_workers(shown) if several else tabulate_workers(shown)
        title, folder, command = os.path.basename(model), os.path.dirname(content or ""), typed_command("update", gold)
        display.say("Writing")
        if save is None and find_version(model) != version:
            raise InputError(
                f"{model!r} has changed since it was read, perhaps by another update. Nothing was written.",
                "Run this update again.",
            )
        files = write_together(
            {
                "labels": (output, lambda path: write_table(tabulate_labels(shown), path)),
                "changes": (changes, partial(write_table, changed)),
                "workers": (workers_report, partial(write_table, workers)),
                "model": (save or model, found.save),
            },
            (report, partial(write_report, shown, title, content, folder, command)),
        )
    seconds = round(time.perf_counter() - started, 3)
    if several:
        tell(
            lambda: several_questions.describe(shown, source or model, files, seconds),
            lambda: several_questions.print_questions(shown, model, files),
        )
        return
    news = shown.update_

    def describe() -> dict[str, Any]:
        options = SimpleNamespace(source=source or model, all_workers=False, undecided=None)
        fit = asdict(summarise(shown, workers, options))
        return {
            **fit,
            "columns": news.roles,
            **{name: value for name, value in news._asdict().items() if name not in ("columns", "verdict", "roles")},
            "verdict_before": None if before is None else before.verdict,
            "verdict": None if fit["comparison"] is None else fit["comparison"]["verdict"],
            "reason": news.verdict,
            "changes": changed.to_pylist(),
            "files": files,
            "seconds": seconds,
        }

    tell(describe, lambda: print_update(shown, changed, model, files))


def print_update(model: Any, changed: pa.Table, name: str, files: dict[str, str]) -> None:
    """Print what is new, which labels changed, and the verdict now and before."""
    screen, found, r, result = Screen(), model.update_, model.responses_, model.result_
    screen.title(f"Update of {fit_text(name, 60)}")
    sizes = [plural(*size) for size in ((r.n_workers, "worker"), (r.n_items, "item"))]
    comparison = getattr(model, "comparison_", None)
    facts = [
        *([] if comparison is None else describe_right(describe_accuracy(model, comparison))),
        *([("Columns", format_columns(found.roles))] if found.roles else []),
        ("New", found.describe_news()),
        ("Answers", f"{r.n_responses:,} by {sizes[0]} about {sizes[1]}"),
        ("Changed", f"{found.n_changed:,} of {plural(r.n_items - found.n_new_items, 'label')}"),
    ]
    if result.task.judged != "label":
        counted = f"are {result.task.judged}s: each of an item is an answer and a label of its own."
        facts.append(("Counted", counted))
    if comparison is not None:
        facts.append(("Verdict", to_sentence(describe_verdict(model, comparison))))
        facts += [] if found.verdict is None else [("Before", to_sentence(found.verdict))]
    elif result.labels.shown:
        facts.append(("Confidence", f"{format_number(result.labels.mean_confidence)} on average"))
    if hasattr(model, "explain_calibration"):
        facts.append(("Calibration", model.explain_calibration()))
    screen.facts(facts)
    screen.line()
    screen.findings(describe_findings(model.findings_))
    if changed.num_rows:
        hidden = changed.num_rows - count_shown(changed.num_rows, MOST_CHANGES)
        more = f" ({hidden:,} more with --changes or --json)" if hidden > 0 else ""
        screen.title(f"Labels that changed{more}")
        shown = {"label_before": "before", "label": "now", "confidence": "confidence", "new_answers": "new answers"}
        print_rows(screen, changed.slice(0, changed.num_rows - hidden), shown, hidden)
        screen.line()
    screen.facts([(kind.capitalize(), fit_text(path, 60)) for kind, path in files.items()])


def predict(
    model: str, source: str, output: str | None, gold: tuple[str, ...], label_by: str | None, graph: str | None
) -> None:
    """Label the items in a file by what a saved model knows of the workers."""
    check_outputs([output], [], [model, source, graph, *gold])
    found = in_arrow(open_labels(model))
    if isinstance(found, Questions):
        refuse("several questions", "gold", "label_by", "graph")
        labels = found.predict(source, as_frame=True)
        counts = {name: labels["question"].to_pylist().count(name) for name in found}
        figures: dict[str, Any] = {"items": {name: n for name, n in counts.items() if n}}
        facts = [(name, plural(n, "item")) for name, n in figures["items"].items()]
    else:
        found.set_params(**({} if label_by is None else {"label_by": label_by}))
        r = replace(read_like(found, source), backend="pyarrow")
        warn_of_known(found, r)
        labels = found.predict(r, None if graph is None else as_graph(graph, r), list(gold) or None, as_frame=True)
        labels = tabulate_labels(found, labels)
        figures = {"columns": r.columns, "answers": r.n_responses, "items": r.n_items, "workers": r.n_workers}
        facts = [("Columns", format_columns(r.columns))] if r.columns else []
        sizes = f"{plural(r.n_workers, 'worker')} about {plural(r.n_items, 'item')}"
        facts.append(("Answers", f"{r.n_responses:,} by {sizes}"))
    if output is not None:
        write_table(labels, output)
    mean = float(labels["confidence"].to_numpy().mean())  # NaN if nothing checks the answers of the fit

    def show() -> None:
        screen = Screen()
        screen.title(f"Labels for {fit_text(name_of(source), 40)} by {fit_text(model, 40)}")
        sure = [] if math.isnan(mean) else [("Confidence", f"{format_number(mean)} on average")]
        written = fit_text(output, 60) if output else "not written; give -o FILE to keep them"
        screen.facts([*facts, *sure, ("Labels", written)])

    tell(lambda: {"model": model, **figures, "mean_confidence": mean, "file": output}, show)


def warn_of_known(model: Any, responses: Any) -> None:
    """Warn if some of the items were there at the fit, whose answers are not looked at."""
    known = model.result_.given.answers
    n_known = 0 if known is None else int((known.find_items(list(responses.key_columns().values())) >= 0).sum())
    if n_known:
        warn(
            DataWarning(
                f"The model was fitted to {n_known:,} of these {plural(responses.n_items, 'item')}. Their labels here "
                "come from the answers in this file alone.",
                "To add these answers to the others, use `consilience update`.",
            )
        )


def explain(model: str, item: str, position: str | None) -> None:
    """Say why an item of a saved model has its label."""
    models = open_labels(model)
    found = models.explain(item if position is None else (item, position))
    several = isinstance(models, Questions)
    each_by = "questions" if several else "tags"

    def describe() -> dict[str, Any]:
        if isinstance(found, Explanation):
            return {"model": model, **found.to_record()}
        return {"model": model, each_by: {name: each.to_record() for name, each in found.items()}}

    def show() -> None:
        screen = Screen()
        listed = {"": found} if isinstance(found, Explanation) else found
        for place, (name, each) in enumerate(listed.items()):
            if place:
                screen.line()
            title, words, *lines = str(each).splitlines()
            screen.title(f"{fit_text(name, 40)}: {title}" if name and several else title)
            screen.sentence(words)
            for line in lines:
                screen.line(line)

    tell(describe, show)


def report(model: str, output: str, content: str | None, source_kind: str | None) -> None:
    """Write a report on a saved model."""
    check_page(output)
    check_content(content)
    check_outputs([], [output], [model, content])
    found = load(model)
    if isinstance(found, Questions | BradleyTerry):
        refuse("several questions" if isinstance(found, Questions) else "a ranking", "content", "source_kind")
    else:
        found = found.name_source(source_kind)
    given = () if content is None else ("--content", content)
    command = typed_command("update", (), (model, *given, "--report", output))
    write_report(found, os.path.basename(model), content, os.path.dirname(content or ""), command, output)
    tell(
        lambda: {"model": model, "file": output},
        lambda: Screen().facts([("Report", fit_text(output, 60))]),
    )


def next_items(
    model: str,
    n: int | None,
    output: str | None,
    at_random: bool,
    questions: bool,
    stop: float | None,
    workers: str | None,
    budget: float | None,
    cost: float | None,
    per_worker: int | None,
    asked: str | None,
) -> None:
    """List the items that a person should label next, or the questions that workers should be asked."""
    check_outputs([output], [], [model, workers, asked])
    found = in_arrow(load(model))
    several, is_ranking = isinstance(found, Questions), isinstance(found, BradleyTerry)
    n = N_LISTED if n is None and budget is None else n
    kind, more, advice, figures = "items", "more", "; fill in its column label", dict[str, Any]()
    if several:
        refuse("several questions", "stop", "workers", "budget", "cost", "per_worker", "asked")
    if is_ranking:
        refuse("a ranking", "at_random", "questions", "stop")
        table, kind, advice = found.next_comparisons(n), "comparisons", "; add a column winner"
        title, facts, empty = "Comparisons to ask for, by {}", [], ("Nothing to ask", "nothing is uncertain")
    elif questions:
        who, costs, limits = (None, cost, per_worker) if workers is None else read_workers(workers, cost, per_worker)
        wishes = {} if several else {"cost": costs, "per_worker": limits, "asked": open_path(asked), "budget": budget}
        table, kind = found.next_questions(n, who, **wishes), "questions"
        title = "Questions of {} to ask next"
        facts = [("Order", "By gain, over all questions.")] if several else []
        facts += (
            [] if several else [("Questions", f"{len(table):,}, for {sum(table['cost'].to_pylist()):,.10g} in all")]
        )
        empty = "Nothing to ask", "no answer would tell more, or nobody can be asked within these limits"
    elif stop is not None:
        table, kept = found.stop_items(stop), found.undecided(stop)
        title, more, advice = "Items of {} to stop paying for, most certain first", "before these", ""
        facts, empty = [("Certain", kept.describe())], ("Nothing to stop", kept.describe())
        figures = {"n_stopped": kept.n_kept, "n_open": kept.n_open, "expected_errors": kept.expected_errors}
    else:
        table, title = found.next_items(n, at_random=at_random), "Items of {} to label next"
        facts, empty = [("Order", describe_order(table))], ("Nothing to label", "the label of every item is known")
    if output is not None:
        is_final = is_ranking or stop is not None  # else labels are to be filled in
        columns = dict(zip(table.column_names, table.columns, strict=True))
        write_table(table if is_final else pa.table(add_label(columns)), output)

    def show() -> None:
        screen = Screen()
        if not table.num_rows:
            screen.facts([empty])
            return
        hidden = table.num_rows - count_shown(table.num_rows, MOST_LISTED)
        rest = f" ({hidden:,} {more} with -o or --json)" if hidden > 0 else ""
        screen.title(f"{title.format(fit_text(model, 40))}{rest}")
        from_end = stop is not None  # many items are certain: only the last ones tell where the line is drawn
        part = table.slice(hidden if from_end else 0, table.num_rows - hidden)
        print_rows(screen, part, _LISTED, hidden, from_end)
        screen.line()
        written = f"{fit_text(output, 60)}{advice}" if output else "nothing; give -o FILE to keep it"
        screen.facts([*facts, ("List", written)])

    tell(lambda: {"model": model, **figures, kind: table.to_pylist(), "file": output}, show)


# What columns of a list are called, of those there are and that are no keys of items; others are for files alone.
_LISTED = {
    "left": "left",
    "right": "right",
    "text": "text",
    "worker": "worker",
    "fused_label": "fused label",
    "label": "label",
    "confidence": "confidence",
    "entropy": "entropy",
    "gain": "gain in nats",
    "cost": "cost",
    "expected_errors": "expected errors up to here",
    "random": "at random",
}
_KEYS = ("item", "sequence", "position", "tag", "question")


def print_rows(screen: Screen, table: pa.Table, names: dict[str, str], hidden: int, from_end: bool = False) -> None:
    """Print the keys of items and some columns under other names; `...` stands for rows that are hidden."""
    spell: dict[str, Callable[[Any], str]] = {
        "cost": "{:g}".format,
        "expected_errors": "{:.1f}".format,
        "gain": spell_gain,
        "new_answers": str,
    }
    keys = [name for name in _KEYS if name in table.column_names]
    shown = [name for name in names if name in table.column_names]
    spare = screen.spare // 3
    columns, cells = [Column(name, 20 + spare) for name in keys], [table[name].to_pylist() for name in keys]
    for name in shown:
        values = table[name].to_pylist()
        is_number = name in ("confidence", "entropy", *spell)
        if is_number:
            values = [spell.get(name, format_number)(value) for value in values]
        if name == "random":
            values = ["yes" if drawn else "" for drawn in values]
        columns.append(Column(names[name], 14 if is_number else 20 + spare, number=is_number))
        cells.append(values)
    rows: list[tuple[object, ...] | None] = list(zip(*cells, strict=True))
    if hidden > 0:
        rows.insert(0 if from_end else len(rows), None)
    screen.table(screen.widen(columns, rows, keys, MOST_KEY + spare), rows)


def spell_gain(gain: float) -> str:
    """A gain, whose first digits are shown however small it is."""
    return format_number(gain) if gain >= 0.001 else f"{gain:.2g}"


def describe_order(table: pa.Table) -> str:
    """In which order items are listed."""
    rows = table.select(["random", "entropy"]).to_pylist()
    chosen = [row["entropy"] for row in rows if not row["random"]]
    if rows and not chosen:
        return "Drawn at random: their labels tell how many of all labels are right."
    drawn = "; some between are drawn at random" if len(chosen) < len(rows) else ""
    last = "Positions beside a less certain one" if "sequence" in table.column_names else "Items without answers"
    later = f" {last} come last." if chosen != sorted(chosen, reverse=True) else ""
    return f"By entropy: first where probabilities are spread most evenly over the classes{drawn}.{later}"


def read_workers(path: str, cost: float | None, per_worker: int | None) -> tuple[Any, Any, Any]:
    """Who may be asked, what they cost, and how many questions they may be asked, from a table."""
    table = read_table(path).table
    if "worker" not in table.column_names:
        raise InputError(f"{path} has no column worker. Found {', '.join(table.column_names)}.")
    ids, given = table["worker"].to_pylist(), dict[str, Any](cost=cost, per_worker=per_worker)
    for name, price in given.items():
        if name in table.column_names:
            flag = f"--{name.replace('_', '-')}"
            if price is not None:
                raise InputError(f"{path} has a column {name}.", f"Leave out {flag}, or the column.")
            entries = [to_number(entry) if isinstance(entry, str) else entry for entry in table[name].to_pylist()]
            given[name] = dict(zip(ids, entries, strict=True))
    return ids, given["cost"], given["per_worker"]
