"""`consilience next`: which items a person should label, whom to ask what, and which items are certain."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from .command import Command, tell
from .options import COUNT_OR_NONE, PRINTING, SHARE, TABLES, read_options

if TYPE_CHECKING:
    import pyarrow as pa

    from ..models.fitted import FittedModel as Model

# Rows shown in the table; the file and --json have all.
MOST_ROWS = 20
# Items or questions that are listed if nothing is said.
N_LISTED = 50

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv --save crowd.model
  consilience next crowd.model -n 50 -o items.csv
  consilience fuse answers.csv --gold items.csv -o labels.csv
\b
  consilience next crowd.model --questions -n 200 --per-worker 20 -o questions.csv
  consilience update crowd.model questions.csv -o labels.csv
  consilience next crowd.model --questions --workers available.csv --budget 50
  consilience next crowd.model --stop 0.95 -o done.csv
"""  # \b keeps the lines apart


_OF_QUESTIONS: dict[str, Any] = {"needs": ["--questions"]}
_NOT_WITH_STOP = "--stop lists all items that are certain enough. Leave out --questions and -n."
_GROUPS = read_options(
    f"""
    Options:
      -n N  Most items or questions to list. Default: {N_LISTED}.
      -o, --output FILE  Write the list here: {TABLES}.
      {PRINTING}
    Questions to workers:
      --questions  List questions to ask: which worker should answer which item.
      --workers FILE  Who may be asked: a table with the column worker, and if you like cost and per_worker.
      --budget SUM  The most that all questions may cost.
      --cost PRICE  What an answer costs. Default: 1.
      --per-worker N  Most questions for one worker.
      --asked FILE  Questions that were asked already, such as an earlier list.
    Items that are certain:
      --stop P  List the items whose confidence is at least P.
    """,
    {
        "--workers": _OF_QUESTIONS,
        "--budget": _OF_QUESTIONS | {"type": float},
        "--cost": _OF_QUESTIONS | {"type": float},
        "--per-worker": _OF_QUESTIONS | {"type": COUNT_OR_NONE},
        "--asked": _OF_QUESTIONS,
        "--stop": {"type": SHARE, "clashes": {"--questions": _NOT_WITH_STOP, "-n": _NOT_WITH_STOP}},
    },
)


@click.command(
    "next",
    cls=Command,
    short_help="List the items to label next, or the questions to ask.",
    epilog=_EXAMPLES,
    groups=_GROUPS,
)
@click.argument("model")
def next_items(
    model: str, n: int | None, output: str | None, questions: bool, stop: float | None, **asking: Any
) -> None:
    """List the items that a person should label next, or the questions that workers should be asked.

    MODEL is a file written by `fuse --save`. Items whose probabilities are spread most evenly over the classes (by
    entropy) come first, and two of ten are drawn at random. The file that -o writes has an empty column label. Fill it
    in, and give the file to `fuse --gold`. Of spans it lists single words, and the column text has the word.

    With --questions the list has an item and a worker in each row: those whose answers are expected to tell most about
    the labels, for what they cost. With --stop it has the items that are certain enough to stop paying for.
    """
    from ..models.loading import load
    from .outputs import check_outputs

    check_outputs([output], [], [model, asking["workers"], asking["asked"]])
    fitted = load(model)
    if questions:
        _list_questions(fitted, model, n, output, **asking)
    elif stop is not None:
        _list_certain(fitted, model, stop, output)
    else:
        _list_items(fitted, model, N_LISTED if n is None else n, output)


def _list_items(fitted: Model, model: str, n: int, output: str | None) -> None:
    """List the items that a person should label."""
    from ..answers.frames import build_frame
    from ..formats.writing import write_table
    from ..planning.next_items import add_label, list_next_items

    columns = list_next_items(fitted.fusion_, n, words=True)
    table = build_frame(columns, "pyarrow")
    if output is not None:
        write_table(build_frame(add_label(columns), "pyarrow"), output)
    found = {"model": model, "items": table.to_pylist(), "file": output}
    tell(lambda: found, lambda: print_items(table, model, output))


def _list_questions(
    fitted: Any,
    model: str,
    n: int | None,
    output: str | None,
    workers: str | None,
    budget: float | None,
    cost: float | None,
    per_worker: int | None,
    asked: str | None,
) -> None:
    """List the questions that workers should be asked."""
    from ..answers.frames import build_frame
    from ..formats.reading import open_path
    from ..formats.writing import write_table
    from ..planning.next_questions import add_empty_label, list_questions

    n = N_LISTED if n is None and budget is None else n
    who, costs, limits = (None, cost, per_worker) if workers is None else _read_workers(workers, cost, per_worker)
    columns = list_questions(fitted.fusion_, n, who, budget, costs, limits, open_path(asked))
    table = build_frame(columns, "pyarrow")
    if output is not None:
        write_table(build_frame(add_empty_label(columns), "pyarrow"), output)
    found = {"model": model, "questions": table.to_pylist(), "file": output}
    tell(lambda: found, lambda: print_questions(table, model, output))


def _read_workers(path: str, cost: float | None, per_worker: int | None) -> tuple[Any, Any, Any]:
    """Return who may be asked, what they cost, and how many questions they may be asked."""
    from ..errors import InputError
    from ..formats.reading import read_table

    table = read_table(path).table
    if "worker" not in table.column_names:
        raise InputError(f"{path} has no column worker. Found {', '.join(table.column_names)}.")
    ids = table["worker"].to_pylist()
    given: dict[str, Any] = {"cost": cost, "per_worker": per_worker}
    for name, price in given.items():
        if name in table.column_names:
            if price is not None:
                raise InputError(
                    f"{path} has a column {name}.", f"Leave out --{name.replace('_', '-')}, or the column."
                )
            given[name] = dict(zip(ids, map(_to_number, table[name].to_pylist()), strict=True))
    return ids, given["cost"], given["per_worker"]


def _to_number(entry: Any) -> Any:
    """Return the number that a text from a file stands for; anything else as it is."""
    if isinstance(entry, str):
        with suppress(ValueError):
            return float(entry)
    return entry


def _list_certain(fitted: Model, model: str, stop: float, output: str | None) -> None:
    """List the items that are certain enough."""
    from ..answers.frames import build_frame
    from ..formats.writing import write_table
    from ..planning.next_items import list_stop_items

    table = build_frame(list_stop_items(fitted.fusion_.labelled, stop), "pyarrow")
    found = fitted.undecided(stop)
    if output is not None:
        write_table(table, output)
    said = {"n_stopped": found.n_kept, "n_open": found.n_open, "expected_errors": found.expected_errors}
    tell(
        lambda: {"model": model, **said, "items": table.to_pylist(), "file": output},
        lambda: print_certain(table, model, found.describe(), output),
    )


def print_items(table: pa.Table, model: str, output: str | None) -> None:
    """Print the beginning of the list, and what to do with it."""
    from .terminal import format_number

    if not table.num_rows:
        _print_fact("Nothing to label", "the label of every item is known")
        return
    columns = {"text": "text"} if "text" in table.column_names else {}
    columns |= {
        "fused_label": "fused label",
        "confidence": "confidence",
        "entropy": "entropy",
        "random": "at random",
    }
    shown = {"confidence": format_number, "entropy": format_number, "random": lambda drawn: "yes" if drawn else ""}
    _print_list(table, f"Items of {{}} to label next{_tell_more(table)}", model, columns, shown)
    _print_file(output, "; fill in its column label", ("Order", _describe_order(table)))


def _describe_order(table: pa.Table) -> str:
    """Say in which order items are listed."""
    rows = table.select(["random", "entropy"]).to_pylist()
    chosen = [row["entropy"] for row in rows if not row["random"]]
    drawn = "; some between are drawn at random" if len(chosen) < len(rows) else ""
    last = "Positions beside a less certain one" if "sequence" in table.column_names else "Items without answers"
    later = f" {last} come last." if chosen != sorted(chosen, reverse=True) else ""
    return f"By entropy: first where probabilities are spread most evenly over the classes{drawn}.{later}"


def print_questions(table: pa.Table, model: str, output: str | None) -> None:
    """Print the beginning of the list of questions, and what to do with it."""
    from .terminal import format_number

    if not table.num_rows:
        _print_fact("Nothing to ask", "no answer would tell more, or nobody can be asked within these limits")
        return
    columns = {"worker": "worker", "gain": "gain in nats", "cost": "cost"}
    shown = {"gain": format_number, "cost": lambda cost: f"{cost:g}"}
    _print_list(table, f"Questions of {{}} to ask next{_tell_more(table)}", model, columns, shown)
    total = sum(table["cost"].to_pylist())
    _print_file(output, "; fill in its column label", ("Questions", f"{table.num_rows:,}, for {total:g} in all"))


def print_certain(table: pa.Table, model: str, said: str, output: str | None) -> None:
    """Print the end of the list of certain items, and how many of them are expected to be wrong.

    The beginning would not tell where the line is drawn: many items are certain.
    """
    from .terminal import format_number

    if not table.num_rows:
        _print_fact("Nothing to stop", said)
        return
    columns = {"label": "label", "confidence": "confidence", "expected_errors": "expected errors up to here"}
    shown = {"confidence": format_number, "expected_errors": lambda number: f"{number:.1f}"}
    title = f"Items of {{}} to stop paying for, most certain first{_tell_more(table, 'before these')}"
    _print_list(table, title, model, columns, shown, from_end=True)
    _print_file(output, "", ("Certain", said))


def _tell_more(table: pa.Table, where: str = "more") -> str:
    hidden = table.num_rows - MOST_ROWS
    return f" ({hidden:,} {where} with -o or --json)" if hidden > 0 else ""


def _print_list(
    table: pa.Table,
    title: str,
    model: str,
    columns: dict[str, str],
    shown: dict[str, Any],
    from_end: bool = False,
) -> None:
    """Print the first or last rows: what identifies the item, and other columns by the names they are shown with."""
    from .terminal import MOST_KEY, Column, fit_text, open_console, print_table, print_title, spare_width, widen

    console = open_console()
    spare = spare_width(console) // 3
    keys = [name for name in ("item", "sequence", "position") if name in table.column_names]
    print_title(console, title.format(fit_text(model, 40)))
    head = [Column(name, 20 + spare) for name in keys]
    for name, heading in columns.items():
        is_text = name in ("text", "fused_label", "label", "worker")
        number = name in shown and name != "random"
        head.append(Column(heading, 20 + spare) if is_text else Column(heading, number=number))
    rows: list[list[Any] | None] = [
        [*(row[name] for name in keys), *(shown.get(name, lambda value: value)(row[name]) for name in columns)]
        for row in table.slice(max(0, table.num_rows - MOST_ROWS) if from_end else 0, MOST_ROWS).to_pylist()
    ]
    if table.num_rows > MOST_ROWS:
        rows.insert(0 if from_end else MOST_ROWS, None)
    print_table(console, widen(console, head, rows, keys, MOST_KEY + spare), rows)


def _print_fact(name: str, text: str) -> None:
    from .terminal import open_console, print_facts

    print_facts(open_console(), [(name, text)])


def _print_file(output: str | None, advice: str, *facts: tuple[str, str]) -> None:
    """Print where the list is, after other facts."""
    from .terminal import fit_text, open_console, print_facts

    console = open_console()
    written = f"{fit_text(output, 60)}{advice}" if output else "nothing; give -o FILE to keep it"
    console.print()
    print_facts(console, [*facts, ("List", written)])
