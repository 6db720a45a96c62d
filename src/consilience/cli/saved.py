"""Commands on a saved model.

`update` adds answers, `predict` labels other items, `report` writes a page. `next` lists which items a person should
label, whom to ask what, or which items are certain.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import click
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.tables import build_frame
from ..api import load
from ..errors import DataWarning, InputError, count_shown, plural, to_sentence, warn
from ..formats.files import name_of
from ..formats.reading import open_path, read_table
from ..formats.sources import as_graph
from ..formats.writing import write_table
from ..models.fitted import FittedModel, check_answers, read_like
from ..models.question_files import holds_questions
from ..models.questions import Questions
from ..options import N_LISTED
from ..planning.next_items import add_label, list_next_items, list_stop_items
from ..planning.next_questions import list_questions, open_round
from ..rankings.bradley_terry import BradleyTerry
from ..results.comparison import Comparison
from ..results.explanations import Explanation
from .command import Record, describe_findings, is_asked, tell
from .files import check_content, check_outputs, check_page, write_together
from .fuse import split_arguments
from .fuse_tables import describe_right
from .rank import list_next, refuse_ranking
from .summary import describe_accuracy, describe_verdict, summarise, tabulate_workers
from .terminal import MOST_KEY, Column, Display, Screen, fit_text, format_columns, format_number

# Rows shown in tables; files and --json have all.
MOST_CHANGES, MOST_LISTED = 10, 20
# Columns of a list that are shown, of those there are, with their headings and how numbers are printed.
_LISTED: dict[str, tuple[str, Callable[[Any], str] | None]] = {
    "text": ("text", None),
    "worker": ("worker", None),
    "fused_label": ("fused label", None),
    "label": ("label", None),
    "confidence": ("confidence", format_number),
    "entropy": ("entropy", format_number),
    "gain": ("gain in nats", format_number),
    "cost": ("cost", "{:g}".format),
    "expected_errors": ("expected errors up to here", "{:.1f}".format),
    "random": ("at random", lambda drawn: "yes" if drawn else ""),
}


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
    check_additions(source or graph, gold, report, content)
    if holds_questions(model):
        outputs = {"output": output, "save": save, "workers_report": workers_report, "report": report}
        refused = {"--graph": graph, "--changes": changes, "--label-by": label_by, "--content": content}
        update_questions(model, source, gold, duplicates, outputs, refused)
        return
    with Display(is_asked("quiet")) as display:
        display.say("Loading")
        version = find_version(model)
        fitted = load_to_label(model, label_by)
        check_answers(fitted.result_)
        inputs = [source, graph, content, *gold, *([model] if save else [])]
        check_outputs([output, changes, workers_report], [save or model, report], inputs)
        before = getattr(fitted, "comparison_", None)
        if "callback" in fitted.get_params():
            fitted.set_params(callback=display.show_iteration)
        fitted.update(source, graph, list(gold) or None, duplicates=duplicates)
        shown = fitted.fresh().adopt(replace(fitted.result_, backend="pyarrow"))
        changed = shown.changes()
        given = split_arguments("update", gold)

        def write_report(path: str) -> None:
            from ..reporting.page import write_page  # which loads templates

            write_page(shown, path, content, os.path.basename(model), os.path.dirname(content or ""), given)

        display.say("Writing")
        if save is None:
            check_version(model, version)
        files = write_together(
            {
                "labels": (output, lambda path: write_table(to_table(shown, shown.to_frame()), path)),
                "changes": (changes, partial(write_table, changed)),
                "workers": (workers_report, lambda path: write_table(tabulate_workers(shown), path)),
                "model": (save or model, fitted.save),
            },
            (report, write_report),
        )
    tell(
        lambda: describe(shown, before, changed, source or model, files, time.perf_counter() - started),
        lambda: print_update(shown, changed, model, files),
    )


def to_table(model: FittedModel, labels: pa.Table) -> object:
    """Return the table of labels as it is written."""
    task = model.result_.task
    return task.tabulate(model.result_, labels) if task.results == "sets" else labels


def check_additions(added: str | None, gold: Sequence[str], report: str | None, content: str | None) -> None:
    """Raise an error if there is nothing to add to a model, or a report on it cannot be written."""
    if added is None and not gold:
        raise click.UsageError("There is nothing to add. Give a file of new answers, --gold or --graph.")
    if report is not None:
        check_page(report)
        check_content(content)


def update_questions(
    model: str,
    source: str | None,
    gold: Sequence[str],
    duplicates: str,
    outputs: Record,
    refused: Mapping[str, str | None],
) -> None:
    """Add the answers in a file to saved questions; options that are for one question alone are refused."""
    from .questions import update_all  # which few need

    refuse_flags(refused)
    update_all(model, source, gold, duplicates, outputs)


def refuse_flags(refused: Mapping[str, object]) -> None:
    """Raise an error for options that are given and are for one question alone."""
    flags = [flag for flag, value in refused.items() if value is not None]
    if flags:
        raise click.UsageError(f"{', '.join(flags)} does not go with several questions. Leave it out.")


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
    model: FittedModel,
    before: Comparison | None,
    changed: pa.Table,
    source: str,
    files: dict[str, str],
    seconds: float,
) -> Record:
    """Return what an update brought, for `--json`: all that `fuse` tells of a fit, and what is new."""
    found = model.update_
    options = SimpleNamespace(source=source, all_workers=False, undecided=None)
    fit = asdict(summarise(model, tabulate_workers(model), options))
    news = {name: value for name, value in found._asdict().items() if name not in ("columns", "verdict", "roles")}
    return {
        **fit,
        "columns": found.roles,
        **news,
        "verdict_before": None if before is None else before.verdict,
        "verdict": None if fit["comparison"] is None else fit["comparison"]["verdict"],
        "reason": found.verdict,
        "changes": changed.to_pylist(),
        "files": files,
        "seconds": round(seconds, 3),
    }


def print_update(model: FittedModel, changed: pa.Table, name: str, files: dict[str, str]) -> None:
    """Print what is new, which labels changed, and the verdict now and before."""
    screen, found, r = Screen(), model.update_, model.responses_
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
    if model.result_.task.judged != "label":
        facts.append(
            ("Counted", f"are {model.result_.task.judged}s: each of an item is an answer and a label of its own.")
        )
    if comparison is None and model.result_.labels.shown:
        facts.append(("Confidence", f"{format_number(model.result_.labels.mean_confidence)} on average"))
    elif comparison is not None:
        facts.append(("Verdict", to_sentence(describe_verdict(model, comparison))))
        if found.verdict is not None:
            facts.append(("Before", to_sentence(found.verdict)))
    if hasattr(model, "explain_calibration"):
        facts.append(("Calibration", model.explain_calibration()))
    screen.facts(facts)
    screen.line()
    screen.findings(describe_findings(model.findings_))
    if changed.num_rows:
        n_shown = count_shown(changed.num_rows, MOST_CHANGES)
        hidden = changed.num_rows - n_shown
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
            for row in changed.slice(0, n_shown).to_pylist()
        ]
        rows += [None] if hidden > 0 else []
        screen.table(screen.widen(columns, rows, keys, MOST_KEY + spare), rows)
        screen.line()
    screen.facts([(kind.capitalize(), fit_text(path, 60)) for kind, path in files.items()])


def predict(
    model: str, source: str, output: str | None, gold: tuple[str, ...], label_by: str | None, graph: str | None
) -> None:
    """Label the items in a file by what a saved model knows of the workers."""
    check_outputs([output], [], [model, source, graph, *gold])
    if holds_questions(model):
        from .questions import predict_all  # which few need

        refuse_flags({"--gold": gold or None, "--label-by": label_by, "--graph": graph})
        predict_all(model, source, output)
        return
    fitted = load_to_label(model, label_by)
    responses = replace(read_like(fitted, source), backend="pyarrow")
    warn_of_known(fitted, responses)
    links = None if graph is None else as_graph(graph, responses)
    labels = fitted.predict(responses, links, list(gold) or None, as_frame=True)
    if output is not None:
        write_table(to_table(fitted, labels), output)
    sizes = {"answers": responses.n_responses, "items": responses.n_items, "workers": responses.n_workers}
    mean = float(labels["confidence"].to_numpy().mean())
    tell(
        lambda: {"model": model, "columns": responses.columns, **sizes, "mean_confidence": mean, "file": output},
        lambda: print_labels(responses, labels, model, source, output),
    )


def refuse_questions(path: str) -> None:
    """Raise an error if a file holds several questions, for commands that take one."""
    if holds_questions(path):
        raise click.UsageError(
            f"{path!r} holds several questions, and this command takes one. In Python, "
            "consilience.load(path)[question].save(file) writes one of them."
        )


def load_fused(path: str) -> FittedModel:
    """Return a saved model of labels, and neither a ranking nor several questions."""
    refuse_questions(path)
    fitted = load(path)
    if isinstance(fitted, BradleyTerry):
        raise refuse_ranking(path)
    model: FittedModel = fitted
    return model


def load_to_label(path: str, label_by: str | None) -> FittedModel:
    """Return a saved model, which chooses labels in another way from now on if one is given."""
    fitted = load_fused(path)
    return fitted if label_by is None else fitted.set_params(label_by=label_by)


def warn_of_known(model: FittedModel, responses: Answers) -> None:
    """Warn if some of the items were there at the fit, whose answers are not looked at."""
    n_known = 0
    known = model.result_.given.answers
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


def print_labels(responses: Answers, labels: pa.Table, model: str, source: str, output: str | None) -> None:
    """Print how many labels there are, and how certain they are."""
    screen = Screen()
    screen.title(f"Labels for {fit_text(name_of(source), 40)} by {fit_text(model, 40)}")
    sizes = [plural(*size) for size in ((responses.n_workers, "worker"), (responses.n_items, "item"))]
    mean = float(labels["confidence"].to_numpy().mean())  # NaN if nothing checks the answers of the fit
    facts = [
        *([("Columns", format_columns(responses.columns))] if responses.columns else []),
        ("Answers", f"{responses.n_responses:,} by {sizes[0]} about {sizes[1]}"),
        *([] if math.isnan(mean) else [("Confidence", f"{format_number(mean)} on average")]),
        ("Labels", fit_text(output, 60) if output else "not written; give -o FILE to keep them"),
    ]
    screen.facts(facts)


def explain(model: str, item: str, position: str | None) -> None:
    """Say why an item of a saved model has its label."""
    key = item if position is None else (item, position)
    several = holds_questions(model)
    found = (load(model) if several else load_fused(model)).explain(key)
    if isinstance(found, Explanation):
        tell(lambda: {"model": model, **found.to_record()}, lambda: print_explanation(found))
        return

    def show() -> None:
        for place, (name, each) in enumerate(found.items()):
            if place:
                Screen().line()
            print_explanation(each, name if several else "")

    each_by = "questions" if several else "tags"
    tell(lambda: {"model": model, each_by: {name: each.to_record() for name, each in found.items()}}, show)


def print_explanation(found: Explanation, question: str = "") -> None:
    """Print what had a say, line by line."""
    screen = Screen()
    title, words, *lines = str(found).splitlines()
    screen.title(f"{fit_text(question, 40)}: {title}" if question else title)
    screen.sentence(words)
    for line in lines:
        screen.line(line)


def report(model: str, output: str, content: str | None, source_kind: str | None) -> None:
    """Write a report on a saved model."""
    from ..reporting.page import write_page, write_questions
    from ..reporting.subject import Command

    check_page(output)
    check_content(content)
    check_outputs([], [output], [model, content])
    told = load(model)
    if isinstance(told, Questions):
        if content is not None or source_kind is not None:
            raise click.UsageError("--content and --source-kind are for one question. Leave them out.")
        write_questions(told, output, os.path.basename(model))
        tell(lambda: {"model": model, "file": output}, lambda: Screen().facts([("Report", fit_text(output, 60))]))
        return
    if isinstance(told, BradleyTerry):
        if content is not None or source_kind is not None:
            raise click.UsageError("A ranking has no items to show. Leave out --content and --source-kind.")
    else:
        told = told.name_source(source_kind)
    shown = () if content is None else ("--content", content)
    given = Command(("update", model, *shown), ("--report", output), ())
    write_page(told, output, content, os.path.basename(model), os.path.dirname(content or ""), given)
    tell(
        lambda: {"model": model, "file": output},
        lambda: Screen().facts([("Report", fit_text(output, 60))]),
    )


class Listing(NamedTuple):
    """A list, and what is said of it."""

    table: pa.Table
    written: pa.Table  # the same for a file
    figures: Record  # the same for --json
    title: str
    more: str  # what is said of rows that are not shown
    fact: tuple[str, str]
    empty: tuple[str, str]  # what is said if nothing is listed
    advice: str = "; fill in its column label"  # what to do with the file
    from_end: bool = False  # whether the last rows are shown, and not the first


def next_items(
    model: str,
    n: int | None,
    output: str | None,
    at_random: bool,
    questions: bool,
    stop: float | None,
    **asking: Any,
) -> None:
    """List the items that a person should label next, or the questions that workers should be asked."""
    check_outputs([output], [], [model, asking["workers"], asking["asked"]])
    fitted = load(model)
    if isinstance(fitted, Questions):
        refuse_flags({"--stop": stop, **{f"--{name.replace('_', '-')}": value for name, value in asking.items()}})
        listed = choose_of_all(fitted, N_LISTED if n is None else n, at_random, questions)
        if output is not None:
            write_table(listed.written, output)
        tell(lambda: {"model": model, **listed.figures, "file": output}, lambda: print_listing(listed, model, output))
        return
    if isinstance(fitted, BradleyTerry):
        if at_random or questions or stop is not None:
            raise click.UsageError(
                "Of a ranking, comparisons are listed. Leave out --at-random, --questions and --stop."
            )
        list_next(fitted, model, n, output)
        return
    if questions:
        listed = ask_workers(fitted, n, **asking)
    elif stop is not None:
        listed = find_certain(fitted, stop)
    else:
        listed = choose_items(fitted, N_LISTED if n is None else n, at_random)
    if output is not None:
        write_table(listed.written, output)
    tell(lambda: {"model": model, **listed.figures, "file": output}, lambda: print_listing(listed, model, output))


def choose_of_all(found: Questions, n: int, at_random: bool, ask: bool) -> Listing:
    """List what a person should label, or whom to ask what, of several questions."""
    from .questions import in_arrow  # which few need

    shown = in_arrow(found)
    listed = cast(pa.Table, shown.next_questions(n) if ask else shown.next_items(n, at_random=at_random))
    table = pa.table({name: listed[name] for name in listed.column_names})
    written = table.append_column("label", pa.nulls(table.num_rows, pa.string()))
    title, kind = ("Questions of {} to ask next", "questions") if ask else ("Items of {} to label next", "items")
    order = ("Order", "By gain, over all questions." if ask else _describe_order(table))
    empty = "Nothing to ask" if ask else "Nothing to label", "no answer would tell more"
    return Listing(table, written, {kind: table.to_pylist()}, title, "more", order, empty)


def choose_items(fitted: FittedModel, n: int, at_random: bool) -> Listing:
    """List the items that a person should label."""
    columns = fitted.result_.task.name_keys(list_next_items(fitted.result_, n, words=True, at_random=at_random))
    table, written = build_frame(columns, "pyarrow"), build_frame(add_label(columns), "pyarrow")
    empty = "Nothing to label", "the label of every item is known"
    order = ("Order", _describe_order(table))
    return Listing(table, written, {"items": table.to_pylist()}, "Items of {} to label next", "more", order, empty)


def _describe_order(table: pa.Table) -> str:
    """Say in which order items are listed."""
    rows = table.select(["random", "entropy"]).to_pylist()
    chosen = [row["entropy"] for row in rows if not row["random"]]
    if rows and not chosen:
        return "Drawn at random: their labels tell how many of all labels are right."
    drawn = "; some between are drawn at random" if len(chosen) < len(rows) else ""
    last = "Positions beside a less certain one" if "sequence" in table.column_names else "Items without answers"
    later = f" {last} come last." if chosen != sorted(chosen, reverse=True) else ""
    return f"By entropy: first where probabilities are spread most evenly over the classes{drawn}.{later}"


def ask_workers(
    fitted: FittedModel,
    n: int | None,
    workers: str | None,
    budget: float | None,
    cost: float | None,
    per_worker: int | None,
    asked: str | None,
) -> Listing:
    """List the questions that workers should be asked."""
    n = N_LISTED if n is None and budget is None else n
    who, costs, limits = (None, cost, per_worker) if workers is None else _read_workers(workers, cost, per_worker)
    asking = open_round(fitted.result_, n, who, budget, costs, limits, open_path(asked))
    columns = fitted.result_.task.name_keys(list_questions(asking))
    table, written = build_frame(columns, "pyarrow"), build_frame(add_label(columns), "pyarrow")
    empty = "Nothing to ask", "no answer would tell more, or nobody can be asked within these limits"
    price = ("Questions", f"{table.num_rows:,}, for {sum(table['cost'].to_pylist()):,.10g} in all")
    title = "Questions of {} to ask next"
    return Listing(table, written, {"questions": table.to_pylist()}, title, "more", price, empty)


def _read_workers(path: str, cost: float | None, per_worker: int | None) -> tuple[Any, Any, Any]:
    """Return who may be asked, what they cost, and how many questions they may be asked."""
    table = read_table(path).table
    if "worker" not in table.column_names:
        raise InputError(f"{path} has no column worker. Found {', '.join(table.column_names)}.")
    ids = table["worker"].to_pylist()
    given: Record = {"cost": cost, "per_worker": per_worker}
    for name, price in given.items():
        if name in table.column_names:
            if price is not None:
                raise InputError(
                    f"{path} has a column {name}.", f"Leave out --{name.replace('_', '-')}, or the column."
                )
            given[name] = dict(zip(ids, map(_to_number, table[name].to_pylist()), strict=True))
    return ids, given["cost"], given["per_worker"]


def _to_number(entry: object) -> object:
    """Return the number that a text from a file stands for; anything else as it is."""
    if isinstance(entry, str):
        with suppress(ValueError):
            return float(entry)
    return entry


def find_certain(fitted: FittedModel, stop: float) -> Listing:
    """List the items that are certain enough.

    The last ones are shown. The beginning would not tell where the line is drawn: many items are certain.
    """
    columns = fitted.result_.task.name_keys(list_stop_items(fitted.result_.labels, stop))
    table = build_frame(columns, "pyarrow")
    found = fitted.undecided(stop)
    said = {"n_stopped": found.n_kept, "n_open": found.n_open, "expected_errors": found.expected_errors}
    title = "Items of {} to stop paying for, most certain first"
    facts = ("Certain", found.describe()), ("Nothing to stop", found.describe())
    return Listing(table, table, {**said, "items": table.to_pylist()}, title, "before these", *facts, "", from_end=True)


def print_listing(listed: Listing, model: str, output: str | None) -> None:
    """Print the first or last rows of a list, and what to do with it."""
    screen, table = Screen(), listed.table
    if not table.num_rows:
        screen.facts([listed.empty])
        return
    n_shown, spare = count_shown(table.num_rows, MOST_LISTED), screen.spare // 3
    hidden = table.num_rows - n_shown
    more = f" ({hidden:,} {listed.more} with -o or --json)" if hidden > 0 else ""
    screen.title(f"{listed.title.format(fit_text(model, 40))}{more}")
    keys = [name for name in ("item", "sequence", "position", "tag", "question") if name in table.column_names]
    shown = {name: of for name, of in _LISTED.items() if name in table.column_names}
    head = [Column(name, 20 + spare) for name in keys]
    for name, (heading, show) in shown.items():
        head.append(Column(heading, 20 + spare) if show is None else Column(heading, number=name != "random"))
    rows: list[list[object] | None] = [
        [row[name] for name in keys]
        + [row[name] if show is None else show(row[name]) for name, (_, show) in shown.items()]
        for row in table.slice(hidden if listed.from_end else 0, n_shown).to_pylist()
    ]
    if hidden > 0:
        rows.insert(0 if listed.from_end else n_shown, None)
    screen.table(screen.widen(head, rows, keys, MOST_KEY + spare), rows)
    written = f"{fit_text(output, 60)}{listed.advice}" if output else "nothing; give -o FILE to keep it"
    screen.line()
    screen.facts([listed.fact, ("List", written)])
