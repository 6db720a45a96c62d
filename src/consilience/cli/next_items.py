"""`consilience next`: which items a person should label, whom to ask what, and which items are certain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

from ..answers.frames import build_frame
from ..errors import InputError
from ..formats.reading import open_path, read_table
from ..formats.writing import write_table
from ..models.fitted import FittedModel
from ..models.loading import load
from ..planning.next_items import add_label, list_next_items, list_stop_items
from ..planning.next_questions import list_questions
from .command import Record, tell
from .commands import N_LISTED
from .outputs import check_outputs
from .terminal import MOST_KEY, Column, Screen, fit_text, format_number

# Rows shown in the table; the file and --json have all.
MOST_ROWS = 20
# Columns that are shown, of those there are, with their headings and how numbers are printed.
_SHOWN: dict[str, tuple[str, Callable[[Any], str] | None]] = {
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
    model: str, n: int | None, output: str | None, questions: bool, stop: float | None, **asking: Any
) -> None:
    """List the items that a person should label next, or the questions that workers should be asked."""
    check_outputs([output], [], [model, asking["workers"], asking["asked"]])
    fitted = load(model)
    if questions:
        listed = ask_workers(fitted, n, **asking)
    elif stop is not None:
        listed = find_certain(fitted, stop)
    else:
        listed = choose_items(fitted, N_LISTED if n is None else n)
    if output is not None:
        write_table(listed.written, output)
    tell(lambda: {"model": model, **listed.figures, "file": output}, lambda: print_listing(listed, model, output))


def choose_items(fitted: FittedModel, n: int) -> Listing:
    """List the items that a person should label."""
    columns = list_next_items(fitted.fusion_, n, words=True)
    table, written = build_frame(columns, "pyarrow"), build_frame(add_label(columns), "pyarrow")
    empty = "Nothing to label", "the label of every item is known"
    order = ("Order", _describe_order(table))
    return Listing(table, written, {"items": table.to_pylist()}, "Items of {} to label next", "more", order, empty)


def _describe_order(table: pa.Table) -> str:
    """Say in which order items are listed."""
    rows = table.select(["random", "entropy"]).to_pylist()
    chosen = [row["entropy"] for row in rows if not row["random"]]
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
    columns = list_questions(fitted.fusion_, n, who, budget, costs, limits, open_path(asked))
    table, written = build_frame(columns, "pyarrow"), build_frame(add_label(columns), "pyarrow")
    empty = "Nothing to ask", "no answer would tell more, or nobody can be asked within these limits"
    price = ("Questions", f"{table.num_rows:,}, for {sum(table['cost'].to_pylist()):g} in all")
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
    table = build_frame(list_stop_items(fitted.fusion_.labelled, stop), "pyarrow")
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
    hidden, spare = table.num_rows - MOST_ROWS, screen.spare // 3
    more = f" ({hidden:,} {listed.more} with -o or --json)" if hidden > 0 else ""
    screen.title(f"{listed.title.format(fit_text(model, 40))}{more}")
    keys = [name for name in ("item", "sequence", "position") if name in table.column_names]
    shown = {name: of for name, of in _SHOWN.items() if name in table.column_names}
    head = [Column(name, 20 + spare) for name in keys]
    for name, (heading, show) in shown.items():
        head.append(Column(heading, 20 + spare) if show is None else Column(heading, number=name != "random"))
    rows: list[list[object] | None] = [
        [row[name] for name in keys]
        + [row[name] if show is None else show(row[name]) for name, (_, show) in shown.items()]
        for row in table.slice(max(0, hidden) if listed.from_end else 0, MOST_ROWS).to_pylist()
    ]
    if hidden > 0:
        rows.insert(0 if listed.from_end else MOST_ROWS, None)
    screen.table(screen.widen(head, rows, keys, MOST_KEY + spare), rows)
    written = f"{fit_text(output, 60)}{listed.advice}" if output else "nothing; give -o FILE to keep it"
    screen.line()
    screen.facts([listed.fact, ("List", written)])
