"""Commands on a saved model, of one question or of several.

`update` adds answers, `predict` labels other items, `report` writes a page. `next` lists which items a person should
label, whom to ask what, or which items are certain.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from functools import partial
from typing import Any

import click
import pyarrow as pa

from ..answers.previews import fit_text
from ..api import load
from ..documents.document import Column, Document, Fact, Facts, Part, Section, Table, Text
from ..documents.overview import describe_fit, describe_questions, format_columns, sort_workers
from ..errors import DataWarning, InputError, plural, to_sentence, warn
from ..formats.files import name_of
from ..formats.reading import open_path, read_table
from ..formats.sources import as_graph
from ..formats.writing import write_table
from ..inference.estimator import renew
from ..models.base import name_source
from ..models.questions import Questions
from ..models.standalone import Standalone
from ..models.updating import check_answers, read_like
from ..options import N_LISTED
from ..planning.next_items import add_label
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.comparisons import as_number
from ..results.explanations import Explanation
from .command import is_asked, publish, refuse, typed_command
from .files import check_content, check_outputs, check_page, tabulate_labels, write_report, write_together
from .terminal import Display, list_files


def open_labels(path: str) -> Any:
    """A saved model of labels, or several: no ranking, nor anything else without labels."""
    found = load(path)
    if isinstance(found, Standalone):
        holds = "a ranking, which has" if isinstance(found, BradleyTerry) else f"a {type(found).__name__}, which has"
        raise InputError(f"{path!r} holds {holds} no labels.", "Compute it again, from all answers.")
    return found


def in_arrow(found: Any) -> Any:
    """A fitted model, or several, whose tables are of Arrow."""
    if isinstance(found, Questions):
        return Questions({name: in_arrow(each) for name, each in found.items()}, found.shared_)
    return renew(found)._adopt(replace(found.result_, backend="pyarrow"))


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
        workers = pa.table(shown.worker_report()) if several else sort_workers(shown)
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
    title = f"Update of {fit_text(model, 60)}"
    document = describe_questions(shown, title) if several else describe_update(shown, changed, before, title)
    ending = [
        Fact("source", "", source or model),
        *list_files(files, ("Written", "nothing")),
        Fact("seconds", "", seconds),
    ]
    publish(replace(document, parts=[*document.parts, Facts(ending)]))


def describe_update(model: Any, changed: pa.Table, before: Any, title: str) -> Document:
    """The overview of a model that was updated: also what is new, and which labels changed."""
    news, judged, after = model.update_, model.result_.task.judged, model.result_.comparison
    counts = {name: value for name, value in news._asdict().items() if name not in ("columns", "verdict", "roles")}
    n_before = model.result_.labels.n_items - news.n_new_items
    facts = [
        Fact("columns", "Columns" if news.roles else "", dict(news.roles), format_columns(news.roles)),
        Fact("", "New", None, news.describe_news()),
        Fact("", "Changed", None, f"{news.n_changed:,} of {plural(n_before, 'label')}"),
        *(Fact(name, "", value) for name, value in counts.items()),
        Fact("verdict_before", "", None if before is None else before.verdict),
        Fact("verdict", "", None if after is None else after.verdict),
        Fact("reason", "Before", news.verdict, to_sentence(news.verdict) if news.verdict else ""),
    ]
    if judged != "label":
        facts.append(Fact("", "Counted", None, f"are {judged}s: each of an item is an answer and a label of its own."))
    if model.result_.calibrated is not None:
        explanation = model.explain_calibration()
        facts.append(Fact("calibration", "Calibration", explanation))
    keys = changed.column_names[: changed.column_names.index("label_before")]
    columns = [*(Column(key, key) for key in keys), Column("label_before", "before"), Column("label", "now")]
    columns += [Column("confidence", "confidence", "figure"), Column("new_answers", "new answers", "count")]
    document = describe_fit(model, title, more=facts)
    table = Table("changes", "Labels that changed", columns, changed.to_pylist())
    return replace(document, parts=[*document.parts, table])


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
        facts = [Fact("", name, None, plural(n, "item")) for name, n in figures["items"].items()]
    else:
        found.set_params(**({} if label_by is None else {"label_by": label_by}))
        r = replace(read_like(found, source), backend="pyarrow")
        warn_of_known(found, r)
        labels = found.predict(r, None if graph is None else as_graph(graph, r), list(gold) or None, as_frame=True)
        labels = tabulate_labels(found, labels)
        figures = {"columns": r.columns, "answers": r.n_responses, "items": r.n_items, "workers": r.n_workers}
        sizes = f"{plural(r.n_workers, 'worker')} about {plural(r.n_items, 'item')}"
        facts = [
            Fact("", "Columns" if r.columns else "", None, format_columns(r.columns)),
            Fact("", "Answers", None, f"{r.n_responses:,} by {sizes}"),
        ]
    if output is not None:
        write_table(labels, output)
    mean = float(labels["confidence"].to_numpy().mean())  # NaN if nothing checks the answers of the fit

    title = f"Labels for {fit_text(name_of(source), 40)} by {fit_text(model, 40)}"
    facts += [
        Fact("mean_confidence", "" if math.isnan(mean) else "Confidence", mean, f"{mean:.3f} on average"),
        Fact("file", "Labels", output, "" if output else "not written; give -o FILE to keep them"),
        *(Fact(name, "", value) for name, value in {"model": model, **figures}.items()),
    ]
    publish(Document(title, "", [Facts(facts)]))


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
    listed = {"": found} if isinstance(found, Explanation) else found
    records = {name: each.to_record() for name, each in listed.items()}
    figures = records.get("", {"questions" if several else "tags": records})
    parts: list[Part] = [Facts([Fact(name, "", value) for name, value in {"model": model, **figures}.items()])]
    for name, each in listed.items():
        title = f"{name}: {each.describe()}" if name and several else each.describe()
        formats = ("text", "text", "spelled", "text")
        columns = [Column("", *column) for column in zip(each.heads, formats, strict=True)]
        weighed = Table("", "", columns, list(each.list_rows()))
        parts.append(Section(title, [Text([each.summarise()]), weighed]))
    publish(Document("", "", parts))


def report(model: str, output: str, content: str | None, source_kind: str | None) -> None:
    """Write a report on a saved model."""
    check_page(output)
    check_content(content)
    check_outputs([], [output], [model, content])
    found = load(model)
    if isinstance(found, Questions | Standalone):
        refuse(
            "several questions" if isinstance(found, Questions) else "results without labels", "content", "source_kind"
        )
    else:
        name_source(found, source_kind)
    given = () if content is None else ("--content", content)
    command = typed_command("update", (), (model, *given, "--report", output))
    write_report(found, os.path.basename(model), content, os.path.dirname(content or ""), command, output)
    publish(Document("", "", [Facts([Fact("model", "", model), Fact("file", "Report", output)])]))


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
    n, shown = N_LISTED if n is None and budget is None else n, fit_text(model, 40)
    kind, advice, figures = "items", "; fill in its column label", dict[str, Any]()
    if several:
        refuse("several questions", "stop", "workers", "budget", "cost", "per_worker", "asked")
    if is_ranking:
        refuse("a ranking", "at_random", "questions", "stop")
        table, kind, advice = found.next_comparisons(n), "comparisons", "; add a column winner"
        title, fact = f"Comparisons to ask for, by {shown}", ("Order", "By gain.")
        empty = "Nothing to ask", "nothing is uncertain"
    elif questions:
        who, costs, limits = (None, cost, per_worker) if workers is None else read_workers(workers, cost, per_worker)
        wishes = {} if several else {"cost": costs, "per_worker": limits, "asked": open_path(asked), "budget": budget}
        table, kind = found.next_questions(n, who, **wishes), "questions"
        title, fact = f"Questions of {shown} to ask next", ("Order", "By gain, over all questions.")
        if not several:
            fact = "Questions", f"{len(table):,}, for {sum(table['cost'].to_pylist()):,.10g} in all"
        empty = "Nothing to ask", "no answer would tell more, or nobody can be asked within these limits"
    elif stop is not None:
        table, kept = found.stop_items(stop), found.undecided(stop)
        title, advice = f"Items of {shown} to stop paying for, most certain first", ""
        fact, empty = ("Certain", kept.describe()), ("Nothing to stop", kept.describe())
        figures = {"n_stopped": kept.n_kept, "n_open": kept.n_open, "expected_errors": kept.expected_errors}
    else:
        table, title = found.next_items(n, at_random=at_random), f"Items of {shown} to label next"
        fact, empty = ("Order", describe_order(table)), ("Nothing to label", "the label of every item is known")
    if output is not None:
        is_final = is_ranking or stop is not None  # else labels are to be filled in
        columns = dict(zip(table.column_names, table.columns, strict=True))
        write_table(table if is_final else pa.table(add_label(columns)), output)

    keys = [Column(name, name) for name in _KEYS if name in table.column_names]
    heads = [*keys, *(column for column in _LISTED if column.key in table.column_names)]
    written = f"{fit_text(output, 60)}{advice}" if output else "nothing; give -o FILE to keep it"
    said = (fact, ("List", written)) if table.num_rows else (empty,)
    facts = [Fact("", name, None, text) for name, text in said]
    facts += [Fact(name, "", value) for name, value in {"model": model, "file": output, **figures}.items()]
    # Many items are certain: only the last ones tell where the line is drawn.
    listed = Table(kind, title, heads, table.to_pylist(), last=stop is not None)
    publish(Document("", "", [listed, Facts(facts)]))


# The columns of a list that people see, of those there are, beside the keys of items.
_KEYS = ("item", "sequence", "position", "tag", "question")
_LISTED = (
    Column("left", "left"),
    Column("right", "right"),
    Column("text", "text"),
    Column("worker", "worker"),
    Column("fused_label", "fused label"),
    Column("label", "label"),
    Column("confidence", "confidence", "figure"),
    Column("entropy", "entropy", "figure"),
    Column("gain", "gain in nats", "figure"),
    Column("cost", "cost", "count"),
    Column("expected_errors", "expected errors up to here", "count"),
    Column("random", "at random"),
)


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
            entries = [as_number(entry) if isinstance(entry, str) else entry for entry in table[name].to_pylist()]
            given[name] = dict(zip(ids, entries, strict=True))
    return ids, given["cost"], given["per_worker"]
