"""`consilience evaluate`: labels against known ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .command import Command, tell
from .options import NORMALISE, PRINTING, read_options

if TYPE_CHECKING:
    from rich.console import Console

    from ..evaluation.labels import Evaluation, SpanEvaluation
    from ..evaluation.spans import SpansEvaluation

# Classes shown in the table; --json has all.
MOST_CLASSES = 20


@click.command(
    cls=Command,
    groups=read_options(
        f"""
        Options:
          {PRINTING}
        Columns:
          --item COL  Column of items, in either file, if not item, task, question or id.
          --label COL  Column of labels, in either file, if not label, answer or response.
          --sequence COL  Column of sequences, in either file.
          --position COL  Column of positions in a sequence, in either file.
        Labels:
          {NORMALISE}
        """
    ),
)
@click.argument("labels")
@click.argument("gold")
def evaluate(labels: str, gold: str, **columns: Any) -> None:
    """Compare labels with known ones.

    LABELS is a file written by `fuse -o`. GOLD has columns item (or sequence, position) and label, gold or truth.
    Probabilities are judged too, if LABELS has them, and spans, if the labels of sequences are IOB2 tags. Both may also
    be files of an annotation tool with spans, GOLD with known ones or those of one worker, LABELS written by `fuse -o`;
    or tables of spans, with columns document, start, end and label.
    """
    from ..evaluation.labels import evaluate as evaluate_files
    from ..evaluation.spans import SpansEvaluation

    evaluation = evaluate_files(labels, gold, **columns)
    show = print_known_spans if isinstance(evaluation, SpansEvaluation) else print_evaluation
    facts = {"labels": labels, "gold": gold, **evaluation.to_dict()}
    tell(lambda: facts, lambda: show(evaluation, labels, gold))


def print_evaluation(evaluation: Evaluation, labels: str, gold: str) -> None:
    """Print scores, then those of each class."""
    from .terminal import Column, fit_text, format_number, open_console, print_facts, print_table, print_title

    console = open_console()
    print_title(console, f"{fit_text(labels, 36)} against {fit_text(gold, 34)}")
    scores = [
        ("Accuracy", evaluation.accuracy, ""),
        ("Macro F1", evaluation.macro_f1, ""),
        ("Log loss", evaluation.log_loss, "  nats per item; 0 is best"),
        ("Brier score", evaluation.brier, "  0 is best, 2 worst"),
        ("Calibration error", evaluation.calibration_error, "  0 is best"),
    ]
    print_facts(
        console,
        [
            ("Items compared", f"{evaluation.n_matched:,}"),
            ("Gold without label", f"{evaluation.n_gold_only:,}"),
            ("Labels without gold", f"{evaluation.n_labels_only:,}"),
            *((name, f"{format_number(value)}{note}") for name, value, note in scores if value is not None),
        ],
    )
    if evaluation.spans is not None:
        print_spans(console, evaluation.spans)
    console.print()
    columns = [Column("class", 32), *(Column(name, number=True) for name in ("precision", "recall", "F1", "items"))]
    rows = [
        (name, *map(format_number, (of.precision, of.recall, of.f1)), f"{of.support:,}")
        for name, of in evaluation.classes
    ]
    hidden = len(rows) - MOST_CLASSES
    print_title(console, f"Classes ({hidden:,} more with --json)" if hidden > 0 else "Classes")
    print_table(console, columns, [*rows[:MOST_CLASSES], *([None] if hidden > 0 else [])])


def print_known_spans(evaluation: SpansEvaluation, labels: str, gold: str) -> None:
    """Print scores of fused spans, then those of each type."""
    from .terminal import Column, fit_text, format_number, open_console, print_facts, print_table, print_title

    console = open_console()
    print_title(console, f"{fit_text(labels, 36)} against {fit_text(gold, 34)}")
    counts = evaluation.strict
    scores = (
        ("Mean confidence", evaluation.mean_confidence, "  should be the strict precision"),
        ("Calibration error", evaluation.calibration_error, "  0 is best"),
    )
    print_facts(
        console,
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
        console.print()
        print_table(console, columns, [*rows, *([None] if len(parts) > MOST_CLASSES else [])])


def print_spans(console: Console, spans: SpanEvaluation) -> None:
    """Print scores of spans."""
    from .terminal import Column, format_number, print_facts, print_table, print_title

    console.print()
    print_title(console, "Spans")
    columns = [Column("", 28), *(Column(name, number=True) for name in ("precision", "recall", "F1"))]
    named = (("whole spans", spans.strict), ("parts of spans", spans.relaxed))
    print_table(console, columns, [(name, *map(format_number, score[:3])) for name, score in named])
    found = (
        f"{spans.strict.n_gold:,} in gold, {spans.strict.n_predicted:,} in labels, {spans.strict.n_correct:,} in both"
    )
    invalid = f"{spans.n_invalid_transitions:,} in labels"
    print_facts(console, [("Spans", found), ("Invalid transitions", invalid)])
