"""The summary of a fit as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from .summary import Record, Summary
from .tables import Column, open_console, print_facts, print_table, print_title, spare_width
from .text import fit_text, format_number, format_share

# The settings a reader of the labels wants to know, of those the model has.
_TOLD = ("estimation", "ties", "seed")
_KEY_WIDTHS = {"item": 20, "sequence": 10, "position": 8}


def print_summary(summary: Summary) -> None:
    """Print the whole summary on stdout."""
    console = open_console()
    print_title(console, f"Labels for {fit_text(summary.source, 60)}")
    print_facts(console, _facts(summary))
    console.print()
    print_workers(console, summary)
    console.print()
    print_items(console, summary)
    console.print()
    print_facts(console, _ending(summary))


def _facts(summary: Summary) -> list[tuple[str, str]]:
    told = ", ".join(f"{name} {summary.settings[name]}" for name in _TOLD if name in summary.settings)
    facts = [
        ("Model", f"{summary.model} ({told})"),
        ("Answers", f"{summary.answers:,} by {summary.workers:,} workers about {summary.items:,} items"),
        ("Classes", _list_classes(summary.classes)),
    ]
    if summary.gold:
        facts.append(("Gold", f"{summary.gold:,} items keep the label that is known"))
    if summary.iterations or not summary.converged:
        facts.append(("Iterations", f"{summary.iterations}, {'converged' if summary.converged else 'not converged'}"))
    facts.append(("Confidence", f"{format_number(summary.mean_confidence)} on average"))
    return facts + ([] if summary.comparison is None else _compare(summary.comparison))


def _compare(comparison: Record) -> list[tuple[str, str]]:
    verdict = "better than" if comparison["better"] else "no better than"
    agreement, n_differ = format_share(comparison["agreement"]), comparison["n_differ"]
    more_right = format_share(comparison["expected_gain"], sign=True)
    gain, error = comparison["held_out_gain"], comparison["held_out_error"]
    return [
        ("Majority vote", f"agrees on {agreement} of the items; {n_differ:,} labels differ"),
        ("Expected gain", f"{more_right} of the items right, by the model's own probabilities"),
        ("Held-out test", f"{verdict} the vote at hidden answers: {gain:+.4f} +- {error:.4f}"),
    ]


def _list_classes(classes: list[object]) -> str:
    shown = ", ".join(fit_text(name, 16) for name in classes[:4])
    more = f" and {len(classes) - 4:,} more" if len(classes) > 4 else ""
    return f"{len(classes)}: {shown}{more}"


def print_workers(console: Console, summary: Summary) -> None:
    """Print the workers at both ends, from most to least reliable."""
    spare = spare_width(console) // 2
    columns = [
        Column("worker", 12 + spare),
        Column("answers", 9, number=True),
        Column("accuracy", number=True),
        Column("informs", number=True),
        Column("worst confusion", 20 + spare),
        Column("flags", 24),
    ]
    best, worst = summary.most_reliable, summary.least_reliable[::-1]
    n_hidden = summary.workers - summary.workers_with_few_answers - len(best) - len(worst)
    rows = [_describe(worker) for worker in best] + [None] * (n_hidden > 0) + [_describe(worker) for worker in worst]
    print_title(console, "Workers, most reliable first" + (f" ({n_hidden:,} between left out)" if n_hidden > 0 else ""))
    print_table(console, columns, rows)
    if summary.workers_with_few_answers:
        print_facts(console, [(f"Not ranked: {summary.workers_with_few_answers:,} workers with few answers", "")])


def _describe(worker: Record) -> list[object]:
    return [
        worker["worker"],
        f"{worker['answers']:,}",
        format_number(worker["accuracy"]),
        format_number(worker["informativeness"]),
        worker["worst_confusion"],
        worker["flags"],
    ]


def print_items(console: Console, summary: Summary) -> None:
    """Print the items that are least certain."""
    spare = spare_width(console) // 3
    keys = [name for name in _KEY_WIDTHS if name in summary.least_certain[0]]
    columns = [Column(name, _KEY_WIDTHS[name] + spare) for name in keys]
    columns += [
        Column("label", 14 + spare),
        Column("confidence", number=True),
        Column("runner-up", 14 + spare),
        Column("probability", number=True),
    ]
    print_title(console, "Least certain items")
    print_table(console, columns, [_describe_item(item, keys) for item in summary.least_certain])


def _describe_item(item: Record, keys: Sequence[str]) -> list[object]:
    second = "" if item["runner_up_probability"] is None else item["runner_up"]
    return [
        *(item[name] for name in keys),
        item["label"],
        format_number(item["confidence"]),
        second,
        format_number(item["runner_up_probability"]),
    ]


def _ending(summary: Summary) -> list[tuple[str, str]]:
    written = [(kind.capitalize(), fit_text(path, 60)) for kind, path in summary.files.items()]
    return [
        *(written or [("Written", "nothing; give -o FILE to keep the labels")]),
        ("Time", f"{summary.seconds:.1f} s"),
    ]
