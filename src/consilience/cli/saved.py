"""Commands on a saved model, of one question or of several.

`update` adds answers, `predict` labels other items, `report` writes a page, `explain` says why an item has its label.
`next` lists which items a person should label, whom to ask what, or which items are certain.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pyarrow as pa

from ..answers.previews import fit_text
from ..api import load, write_report
from ..documents.document import Column, Document, Fact, Facts, Part, Section, Table, Text
from ..documents.html import check_page
from ..documents.overview import describe_fit, describe_questions, format_columns, sort_workers
from ..errors import InputError, plural, to_sentence, warn_of
from ..formats.files import describe_state, name_of
from ..formats.reading import open_path, read_table
from ..formats.sources import as_graph
from ..formats.writing import write_table
from ..models.base import Standalone, name_source
from ..models.questions import Questions, in_arrow
from ..models.updating import check_answers, read_like
from ..options import N_LISTED, given
from ..planning.items import add_label
from ..planning.sample import expect_errors
from ..rankings.comparisons import as_number
from ..results.explanations import Explanation
from .command import TYPED_ARGUMENTS, list_values, publish, refuse
from .files import Display, check_outputs, finish, name_page, write_together

SEVERAL, NO_LABELS = "several questions", "results without labels"


def open_labels(path: str, *, or_updated: bool = False) -> tuple[Any, bool]:
    """A saved model of labels, and whether it is of several questions; a ranking, say, is an error.

    With `or_updated` it may be any model to which answers can be added.
    """
    loaded = load(path)
    if isinstance(loaded, Standalone) and not (or_updated and hasattr(loaded, "update")):
        problem = f"{path!r} holds a {type(loaded).__name__}, which has no labels."
        page = "Write a report on it: consilience report MODEL -o report.html."
        remedy = "Compute it again, from all answers." if or_updated else page
        raise InputError(problem, remedy)
    return loaded, isinstance(loaded, Questions)


def mark_labels(model: Any, labels: pa.Table) -> pa.Table:
    """Labels of a model as a table is written: sets of tags as text."""
    return labels if isinstance(model, Questions | Standalone) else model.result_.kind.mark(labels)


def run_update(model: str, source: str | None, **typed: Any) -> None:
    """Add the answers in a file to a saved model, and fuse all of them."""
    started, options = time.perf_counter(), SimpleNamespace(**typed)
    graph, gold, content, save = options.graph, options.gold, options.content, options.save or model
    if source is None and graph is None and not gold:
        raise click.UsageError("There is nothing to add. Give a file of new answers, --gold or --graph.")
    check_page(options.report)
    with Display() as display:
        display.say("Loading")
        version = describe_state(model) if os.path.exists(model) else None  # `load` tells that it is not there
        fitted, several = open_labels(model, or_updated=True)
        before, alone = getattr(fitted, "comparison_", None), isinstance(fitted, Standalone)
        if several or alone:
            refuse(SEVERAL if several else NO_LABELS, "graph", "changes", "label_by", "content")
        else:
            fitted.set_params(**given({"label_by": options.label_by}))
            check_answers(fitted.result_)
            if "callback" in fitted.get_params():
                fitted.set_params(callback=display.show_iteration)
        inputs = [source, graph, content, *gold, *([model] if options.save else [])]
        check_outputs([options.output, options.changes, options.workers_report], [save, options.report], inputs)
        display.say("Fitting")
        more = {} if several or alone else {"graph": graph}
        fitted.update(source, gold=list(gold) or None, duplicates=options.duplicates, **more)
        shown = in_arrow(fitted)
        changed: Any = None if several or alone else shown.changes()
        workers = pa.table(shown.worker_report()) if several or alone else sort_workers(shown)
        display.say("Writing")
        if options.save is None and describe_state(model) != version:
            raise InputError(
                f"{model!r} has changed since it was read, perhaps by another update. Nothing was written.",
                "Run this update again.",
            )
        about = name_page(model), os.path.dirname(content or ""), click.get_current_context().meta[TYPED_ARGUMENTS]
        files = write_together(
            {
                "labels": (options.output, lambda path: write_table(mark_labels(shown, shown.to_frame()), path)),
                "changes": (options.changes, partial(write_table, changed)),
                "workers": (options.workers_report, partial(write_table, workers)),
                "model": (save, fitted.save),
            },
            (options.report, lambda path: write_report(shown, path, content, *about)),
        )
    title = f"Update of {fit_text(model, 60)}"
    if alone:
        document = shown.overview(title)
    else:
        document = describe_questions(shown, title) if several else describe_update(shown, changed, before, title)
    finish(document, [Fact("source", "", source or model)], files, ("Written", "nothing"), started)


def describe_update(model: Any, changed: pa.Table, before: Any, title: str) -> Document:
    """The overview of a model that was updated: also what is new, and which labels changed."""
    news, judged, after = model.update_, model.result_.kind.judged, model.result_.comparison
    n_before = model.result_.labels.n_items - news.n_new_items
    facts = [
        Fact("columns", "Columns" if news.roles else "", dict(news.roles), format_columns(news.roles)),
        Fact("", "New", None, news.describe_news()),
        Fact("", "Changed", None, f"{news.n_changed:,} of {plural(n_before, judged)}"),
        *(fact for fact in list_values(news._asdict()) if fact.key not in ("columns", "verdict", "roles")),
        Fact("verdict_before", "", None if before is None else before.verdict),
        Fact("verdict", "", None if after is None else after.verdict),
        Fact("reason", "Before", news.verdict, to_sentence(news.verdict) if news.verdict else ""),
    ]
    if model.result_.calibrated is not None:
        facts.append(Fact("calibration", "Calibration", model.result_.explain_calibration()))
    keys = changed.column_names[: changed.column_names.index("label_before")]
    columns = [*(Column(key, key) for key in keys), Column("label_before", "before"), Column("label", "now")]
    columns += [Column("confidence", "confidence", "figure"), Column("new_answers", "new answers", "count")]
    document = describe_fit(model, title, more=facts)
    table = Table("changes", "Labels that changed", columns, changed.to_pylist())
    return replace(document, parts=[*document.parts, table])


def run_predict(
    model: str, source: str, output: str | None, gold: tuple[str, ...], label_by: str | None, graph: str | None
) -> None:
    """Label the items in a file by what a saved model knows of the workers."""
    check_outputs([output], [], [model, source, graph, *gold])
    loaded, several = open_labels(model)
    models = in_arrow(loaded)
    if several:
        refuse(SEVERAL, "gold", "label_by", "graph")
        labels = models.predict(source, as_frame=True)
        counts = Counter(labels["question"].to_pylist())
        figures: dict[str, Any] = {"items": {name: counts[name] for name in models if counts[name]}}
        facts = [Fact("", name, None, plural(n, "item")) for name, n in figures["items"].items()]
    else:
        models.set_params(**given({"label_by": label_by}))
        r, known = replace(read_like(models, source), backend="pyarrow"), models.result_.given.answers
        n_known = 0 if known is None else int((known.find_items(list(r.key_columns().values())) >= 0).sum())
        if n_known:
            warn_of(
                f"The model was fitted to {n_known:,} of these {plural(r.n_items, 'item')}. Their labels here come "
                "from the answers in this file alone.",
                "To add these answers to the others, use `consilience update`.",
            )
        labels = models.predict(r, None if graph is None else as_graph(graph, r), list(gold) or None, as_frame=True)
        figures = {"columns": r.columns, "answers": r.n_responses, "items": r.n_items, "workers": r.n_workers}
        sizes = f"{r.n_responses:,} by {plural(r.n_workers, 'worker')} about {plural(r.n_items, 'item')}"
        facts = [Fact("", "Columns" if r.columns else "", None, format_columns(r.columns))]
        facts.append(Fact("", "Answers", None, sizes))
    if output is not None:
        write_table(mark_labels(models, labels), output)
    mean = float(labels["confidence"].to_numpy().mean())  # NaN if nothing checks the answers of the fit
    facts += [
        Fact("mean_confidence", "" if math.isnan(mean) else "Confidence", mean, f"{mean:.3f} on average"),
        Fact("file", "Labels", output, "" if output else "not written; give -o FILE to keep them"),
        *list_values({"model": model, **figures}),
    ]
    publish(Document(f"Labels for {fit_text(name_of(source), 40)} by {fit_text(model, 40)}", "", [Facts(facts)]))


def run_explain(model: str, item: str, position: str | None) -> None:
    """Say why an item of a saved model has its label."""
    models, several = open_labels(model)
    explanation = models.explain(item if position is None else (item, position))
    listed = {"": explanation} if isinstance(explanation, Explanation) else explanation
    records = {name: each.to_record() for name, each in listed.items()}
    figures = records.get("", {"questions" if several else "tags": records})
    parts: list[Part] = [Facts(list_values({"model": model, **figures}))]
    for name, each in listed.items():
        title = f"{name}: {each.describe()}" if name and several else each.describe()
        columns = [Column("", *column) for column in zip(each.heads, ("text", "text", "spelled", "text"), strict=True)]
        parts.append(Section(title, [Text([each.summarise()]), Table("", "", columns, list(each.list_rows()))]))
    publish(Document("", "", parts))


def run_report(model: str, output: str, content: str | None, source_kind: str | None) -> None:
    """Write a report on a saved model."""
    check_page(output)
    check_outputs([], [output], [model, content])
    loaded = load(model)
    if isinstance(loaded, Questions | Standalone):
        refuse(SEVERAL if isinstance(loaded, Questions) else NO_LABELS, "content", "source_kind")
    else:
        name_source(loaded, source_kind)
    given = () if content is None else ("--content", content)
    command = ["consilience", "update", model, *given, "--report", output]
    write_report(loaded, output, content, name_page(model), os.path.dirname(content or ""), command)
    publish(Document("", "", [Facts([Fact("model", "", model), Fact("file", "Report", output)])]))


# The columns of a list that people see, of those there are.
_LISTED = (
    *(Column(name, name) for name in ("item", "sequence", "position", "tag", "question")),
    *(Column(name, name) for name in ("left", "right", "text", "worker")),
    Column("fused_label", "fused label"),
    Column("label", "label"),
    *(Column(name, name, "figure") for name in ("value", "low", "high")),
    Column("confidence", "confidence", "figure"),
    Column("entropy", "entropy", "figure"),
    Column("gain", "gain in nats", "figure"),
    Column("cost", "cost", "count"),
    Column("expected_errors", "expected errors up to here", "count"),
    Column("random", "at random"),
)


def run_next(model: str, output: str | None, **typed: Any) -> None:
    """List the items that a person should label next, or the questions that workers should be asked."""
    options = SimpleNamespace(**typed)
    check_outputs([output], [], [model, options.workers, options.asked])
    loaded: Any = in_arrow(load(model))
    several, is_single = isinstance(loaded, Questions), isinstance(loaded, Standalone)
    shown, stop = fit_text(model, 40), options.stop
    n = N_LISTED if options.n is None and options.budget is None else options.n
    advice, figures, empty = "", dict[str, Any](), ("Nothing to ask", "nothing is uncertain")
    if several:
        refuse(SEVERAL, "stop", "workers", "budget", "cost", "per_worker", "asked")
    if is_single:
        refuse(NO_LABELS, "at_random", "known", "questions", "stop")
    if is_single and hasattr(loaded, "next_items"):
        table, kind, advice = loaded.next_items(n), "items", "; fill in its column label"
        title, order = f"Items of {shown} to ask about next", "By the width of intervals; some drawn at random."
        fact = ("Order", order)
    elif is_single:
        table, kind, advice = loaded.next_comparisons(n), "comparisons", "; add a column winner"
        title, fact = f"Comparisons to ask for, by {shown}", ("Order", "By gain.")
    elif options.known is not None:
        table, kind = loaded.draw_items(options.known, strata=options.strata), "items"
        title, advice = f"Items of {shown} to label, drawn at random", "; fill in its column label"
        every = loaded.values() if several else [loaded]
        sure, alone = np.max([expect_errors(each.result_, options.known) for each in every], axis=0).tolist()
        fact = "Shares", f"Within {sure:.3f} if the probabilities are right, {alone:.3f} by known labels alone (95%)."
        empty = "Nothing to label", "the label of every item is known"
        figures = {"within": sure, "within_alone": alone}
    elif stop is not None:
        table, kind, kept = loaded.stop_items(stop), "items", loaded.result_.undecided(stop)
        title = f"Items of {shown} to stop paying for, most certain first"
        fact, empty = ("Certain", kept.describe()), ("Nothing to stop", kept.describe())
        figures = {"n_stopped": kept.n_kept, "n_open": kept.n_open, "expected_errors": kept.expected_errors}
    else:
        advice = "; fill in its column label"
        if options.questions:
            wishes: dict[str, Any] = {} if several else read_workers(options)
            table, kind = loaded.next_questions(n, **wishes), "questions"
            title, fact = f"Questions of {shown} to ask next", ("Order", "By gain, over all questions.")
            if not several:
                fact = "Questions", f"{len(table):,}, for {sum(table['cost'].to_pylist()):,.10g} in all"
            empty = "Nothing to ask", "no answer would tell more, or nobody can be asked within these limits"
        else:
            table, kind = loaded.next_items(n, at_random=options.at_random), "items"
            title, drawn = f"Items of {shown} to label next", table["random"].to_pylist()
            order = "By entropy: first where probabilities are spread most evenly over the classes"
            order += "; some between are drawn at random." if any(drawn) else "."
            if options.at_random:
                order = "Drawn at random: their labels tell how many of all labels are right."
            fact, empty = ("Order", order), ("Nothing to label", "the label of every item is known")
    if output is not None:
        columns = dict(zip(table.column_names, table.columns, strict=True))
        write_table(pa.table(add_label(columns)) if advice.endswith("label") else table, output)

    heads = [column for column in _LISTED if column.key in table.column_names]
    written = f"{fit_text(output, 60)}{advice}" if output else "nothing; give -o FILE to keep it"
    said = (fact, ("List", written)) if table.num_rows else (empty,)
    facts = [Fact("", name, None, text) for name, text in said]
    facts += list_values({"model": model, "file": output, **figures})
    # Many items are certain: only the last ones tell where the line is drawn.
    listed = Table(kind, title, heads, table.to_pylist(), last=stop is not None)
    publish(Document("", "", [listed, Facts(facts)]))


def read_workers(options: SimpleNamespace) -> dict[str, Any]:
    """Who may be asked, what they cost, and how many questions they may be asked: as given, or from a table."""
    wishes = {"cost": options.cost, "per_worker": options.per_worker}
    if options.workers is not None:
        path, table = options.workers, read_table(options.workers).table
        if "worker" not in table.column_names:
            raise InputError(f"{path} has no column worker. Found {', '.join(table.column_names)}.")
        wishes["workers"] = ids = table["worker"].to_pylist()
        for name in {"cost", "per_worker"} & set(table.column_names):
            if wishes[name] is not None:
                raise InputError(
                    f"{path} has a column {name}.", f"Leave out --{name.replace('_', '-')}, or the column."
                )
            entries = [as_number(entry) if isinstance(entry, str) else entry for entry in table[name].to_pylist()]
            wishes[name] = dict(zip(ids, entries, strict=True))
    return wishes | {"asked": open_path(options.asked), "budget": options.budget}
