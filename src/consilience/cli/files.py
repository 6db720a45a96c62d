"""Commands on files: `evaluate` compares labels with known ones, `convert` changes the format, `formats` lists all."""

from __future__ import annotations

import time
from typing import Any

from ..answers.dialects.register import DIALECTS, LONG
from ..answers.responses import LAYOUTS
from ..evaluation.labels import Evaluation, SpanEvaluation
from ..evaluation.labels import evaluate as evaluate_files
from ..evaluation.spans import SpansEvaluation
from ..formats import register
from ..formats.files import is_folder
from ..formats.register import FOLDER, Format
from ..formats.targets import choose_form, list_losses, read_content, write_content
from .command import Record, is_asked, make_inert, tell
from .outputs import check_folder, check_outputs
from .terminal import Column, Display, Screen, fit_text, format_number

# Classes shown in the table; --json has all.
MOST_CLASSES = 20


def evaluate(labels: str, gold: str, **columns: Any) -> None:
    """Compare labels with known ones."""
    evaluation = evaluate_files(labels, gold, **columns)
    show = print_known_spans if isinstance(evaluation, SpansEvaluation) else print_evaluation
    facts = {"labels": labels, "gold": gold, **evaluation.to_dict()}
    tell(lambda: facts, lambda: show(evaluation, labels, gold))


def print_evaluation(evaluation: Evaluation, labels: str, gold: str) -> None:
    """Print scores, then those of each class."""
    screen = Screen()
    screen.title(f"{fit_text(labels, 36)} against {fit_text(gold, 34)}")
    scores = [
        ("Accuracy", evaluation.accuracy, ""),
        ("Macro F1", evaluation.macro_f1, ""),
        ("Log loss", evaluation.log_loss, "  nats per item; 0 is best"),
        ("Brier score", evaluation.brier, "  0 is best, 2 worst"),
        ("Calibration error", evaluation.calibration_error, "  0 is best"),
    ]
    screen.facts(
        [
            ("Items compared", f"{evaluation.n_matched:,}"),
            ("Gold without label", f"{evaluation.n_gold_only:,}"),
            ("Labels without gold", f"{evaluation.n_labels_only:,}"),
            *((name, f"{format_number(value)}{note}") for name, value, note in scores if value is not None),
        ],
    )
    if evaluation.spans is not None:
        print_spans(screen, evaluation.spans)
    screen.line()
    columns = [Column("class", 32), *(Column(name, number=True) for name in ("precision", "recall", "F1", "items"))]
    rows = [
        (name, *map(format_number, (of.precision, of.recall, of.f1)), f"{of.support:,}")
        for name, of in evaluation.classes
    ]
    hidden = len(rows) - MOST_CLASSES
    screen.title(f"Classes ({hidden:,} more with --json)" if hidden > 0 else "Classes")
    screen.table(columns, [*rows[:MOST_CLASSES], *([None] if hidden > 0 else [])])


def print_known_spans(evaluation: SpansEvaluation, labels: str, gold: str) -> None:
    """Print scores of fused spans, then those of each type."""
    screen = Screen()
    screen.title(f"{fit_text(labels, 36)} against {fit_text(gold, 34)}")
    counts = evaluation.strict
    scores = (
        ("Mean confidence", evaluation.mean_confidence, "  should be the strict precision"),
        ("Calibration error", evaluation.calibration_error, "  0 is best"),
    )
    screen.facts(
        [
            ("Documents compared", f"{evaluation.n_documents:,}"),
            ("Not fused", f"{evaluation.n_unanswered:,}"),
            ("Spans", f"{counts.n_gold:,} in gold, {counts.n_predicted:,} in labels, {counts.n_correct:,} in both"),
            *((name, format_number(value) + note) for name, value, note in scores if value is not None),
        ],
    )
    named = (("strict", evaluation.strict), ("relaxed", evaluation.relaxed), ("type only", evaluation.type_only))
    for title, parts in (("", named), ("type", evaluation.types)):
        columns = [Column(title, 32), *(Column(name, number=True) for name in ("precision", "recall", "F1"))]
        rows = [(name, *map(format_number, score[:3])) for name, score in parts[:MOST_CLASSES]]
        screen.line()
        screen.table(columns, [*rows, *([None] if len(parts) > MOST_CLASSES else [])])


def print_spans(screen: Screen, spans: SpanEvaluation) -> None:
    """Print scores of spans."""
    screen.line()
    screen.title("Spans")
    columns = [Column("", 28), *(Column(name, number=True) for name in ("precision", "recall", "F1"))]
    named = (("whole spans", spans.strict), ("parts of spans", spans.relaxed))
    screen.table(columns, [(name, *map(format_number, score[:3])) for name, score in named])
    found = (
        f"{spans.strict.n_gold:,} in gold, {spans.strict.n_predicted:,} in labels, {spans.strict.n_correct:,} in both"
    )
    invalid = f"{spans.n_invalid_transitions:,} in labels"
    screen.facts([("Spans", found), ("Invalid transitions", invalid)])


def convert(source: str, target: str, format: str | None, to: str | None, **options: Any) -> None:
    """Convert all annotations of all workers from one format to another."""
    started = time.perf_counter()
    with Display(is_asked("quiet")) as display:
        display.say(f"Reading {fit_text(source, 50)}")
        content = read_content(source, format, **options)
        form = choose_form(content, target, to)
        check_target(source, target, is_table=form in LAYOUTS)
        display.say("Writing")
        write_content(content, target, form)
    lost = list_losses(content, form)
    facts = {"source": source, "from": content.format, "read": str(content), "target": target, "to": form, "lost": lost}
    seconds = round(time.perf_counter() - started, 3)
    tell(lambda: {**facts, "seconds": seconds}, lambda: print_conversion(facts, seconds))


def check_target(source: str, target: str, is_table: bool) -> None:
    """Raise an error if the target cannot be written, or if that would change the input."""
    if not is_table and is_folder(target):
        check_folder(target, source)
    else:
        check_outputs([target] if is_table else [], [] if is_table else [target], [source])


def print_conversion(facts: Record, seconds: float) -> None:
    """Print what was read and written, and what was not."""
    screen = Screen()
    screen.title(f"{fit_text(facts['source'], 36)} to {fit_text(facts['target'], 34)}")
    lines = [
        ("Read", f"{facts['read']} ({facts['from']})"),
        ("Written", f"{fit_text(facts['target'], 50)} ({facts['to']})"),
    ]
    if facts["lost"]:
        lines.append(("Not kept", make_inert("; ".join(facts["lost"])) + "."))
    screen.facts([*lines, ("Time", f"{seconds:.1f} s")])


def formats() -> None:
    """List all formats: what is read from each, what is written, and how it is recognised."""
    rows = describe_formats()
    tell(lambda: {"formats": rows}, lambda: print_formats(rows))


def describe_formats() -> list[Record]:
    """Return what the registers say of all formats of files, and of all forms of tables."""
    forms = [(LONG, "one row per answer", ""), *((each.name, each.title, each.suffix) for each in DIALECTS)]
    tables = [
        {
            "name": name,
            "title": title,
            "read": ["answers"],
            "written": name in LAYOUTS,
            "suffixes": [suffix] if suffix else [],
            "recognised_by": "name" if suffix else "columns",
            "form_of_table": True,
        }
        for name, title, suffix in forms
    ]
    return [_describe_format(each) for each in register.FORMATS] + tables


def _describe_format(each: Format) -> Record:
    codec = each.codec
    holds = {
        "table": each.kind == "table",
        "spans": codec.read_spans is not None,
        "answers": codec.write_labels is not None,
        "masks": codec.read_masks is not None,
    }
    is_folder = FOLDER in each.outputs
    suffixes = [suffix for suffix in dict.fromkeys((*each.suffixes, *each.outputs)) if suffix != FOLDER]
    return {
        "name": each.name,
        "title": each.title,
        "read": [kind for kind, is_there in holds.items() if is_there],
        "written": any(write is not None for write in (codec.write, codec.write_spans, codec.write_masks)),
        "suffixes": [*suffixes, *(["folder"] if is_folder else [])],
        "recognised_by": "content" if codec.recognise is not None or is_folder else "name",
        "form_of_table": False,
    }


def print_formats(rows: list[Record]) -> None:
    """Print one line for each format, then what each is."""
    screen = Screen()
    columns = [Column(name, 24) for name in ("name", "read", "written", "ends in", "found by")]
    for title, are_forms in (("Files and folders", False), ("Forms of tables, in files of any kind", True)):
        shown = [row for row in rows if row["form_of_table"] == are_forms]
        screen.title(title)
        screen.table(columns, [_line(row) for row in shown])
        screen.line()
        screen.facts([(row["name"], row["title"]) for row in shown])
        screen.line()
    screen.line("  fuse -o writes results in the format of their source, or as a table;")
    screen.line("  convert writes all annotations in another.")


def _line(row: Record) -> list[object]:
    ends = [suffix for suffix in row["suffixes"] if suffix != "folder"][:1] + ["folder"] * ("folder" in row["suffixes"])
    found = row["recognised_by"]
    return [row["name"], ", ".join(row["read"]), "yes" if row["written"] else "no", ", ".join(ends), found]
