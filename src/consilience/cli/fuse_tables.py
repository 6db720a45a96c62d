"""The summary of a fit as tables."""

from __future__ import annotations

import glob
import os
import textwrap
from collections.abc import Sequence

from ..answers.dialects.register import DIALECTS
from ..errors import plural, to_sentence
from ..formats import register
from ..formats.files import name_of
from ..memory import format_bytes
from ..results.comparison import describe_usual
from .command import Record, make_inert
from .summary import ALL_KNOWN, Summary
from .terminal import (
    MOST_KEY,
    Column,
    Screen,
    fit_confusion,
    fit_text,
    format_columns,
    format_difference,
    format_ends,
    format_number,
    format_share,
    measure,
    quote_blanks,
)

# The parameters to show, of those the model has.
_SHOWN = ("estimation", "ties", "seed")
# Two names of ten columns and a share; wider than eighty columns allow where workers' names are long too.
MOST_CONFUSION = 32
# The files of labels in a folder.
PARTS = "part-*.parquet"
# The least and the most that names of workers take, before their middle is left out. On MTurk they have 15 letters.
NAME, MOST_NAME = 15, 40
_KEY_WIDTHS = {"item": 20, "sequence": 10, "position": 8, "text": 14}


def print_summary(summary: Summary) -> None:
    """Print the whole summary on stdout."""
    screen = Screen()
    screen.title(f"{'Labels' if summary.spans is None else 'Spans'} for {fit_text(name_of(summary.source), 60)}")
    screen.facts(_facts(summary))
    screen.line()
    screen.findings(summary.findings)
    neighbours = summary.chain or summary.field
    if neighbours is not None:
        screen.title("Neighbours in a sequence" if summary.chain else "Neighbours in the graph")
        for line in textwrap.wrap(make_inert(neighbours["explanation"]), screen.width - 2):
            screen.line(f"  {line}")
        screen.line()
    print_workers(screen, summary)
    screen.line()
    if summary.least_certain:
        print_items(screen, summary)
        screen.line()
    screen.facts(_ending(summary))


def _find_title(format: str) -> str:
    return next(each.title for each in (*DIALECTS, *register.FORMATS) if each.name == format)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    shown = ", ".join(f"{name} {summary.parameters[name]}" for name in _SHOWN if name in summary.parameters)
    sizes = [plural(*size) for size in ((summary.workers, "worker"), (summary.items, "item"))]
    facts = [
        *([] if summary.format is None else [("Format", f"{summary.format}: {_find_title(summary.format)}")]),
        *([("Columns", format_columns(summary.columns))] if summary.columns else []),
        ("Model", f"{summary.model} ({shown})" if shown else summary.model),
        ("Answers", f"{summary.answers:,} by {sizes[0]} about {sizes[1]}"),
        ("Classes", _list_classes(summary.classes)),
        *(
            []
            if summary.outside_classes is None
            else [("Not classes", _describe_outside(summary, summary.outside_classes))]
        ),
        *([] if summary.spans is None else [("Spans", _count_spans(summary.spans))]),
        *([] if summary.store is None else [("Store", _describe_store(summary.store))]),
    ]
    if summary.gold:
        keep = "keeps" if summary.gold == 1 else "keep"
        facts.append(("Gold", f"{plural(summary.gold, 'item')} {keep} the label that is known"))
    if summary.gold and summary.gold == summary.items:
        facts.append(("Verdict", to_sentence(ALL_KNOWN)))
    elif summary.comparison is None:  # which tells it as expected accuracy
        facts.append(("Confidence", f"{format_number(summary.mean_confidence)} on average"))
    else:
        facts += _compare(summary.comparison)
    if summary.undecided is not None:
        facts.append(("Undecided", summary.undecided["explanation"]))
    if summary.iterations or not summary.converged:
        ending = "converged" if summary.converged else "not converged"
        n_before = 0 if summary.store is None else summary.store["resumed_after"]
        resumed = f"; resumed after iteration {n_before}" if n_before else ""
        facts.append(("Iterations", f"{summary.iterations}, {ending}{resumed}"))
    if summary.chain is not None:
        facts.append(("Chain", f"coupling {summary.chain['coupling']:g}, from 0 (independent items) to 1"))
    if summary.field is not None:
        heard = "" if summary.field["listeners"] == "all" else ", for items that nobody answered"
        unit = summary.field["usual_weight"]
        coupling = f"coupling {summary.field['coupling'] * unit:.2f} nats per agreeing neighbour"
        weighted = describe_usual(unit)
        facts.append(("Graph", to_sentence(f"{coupling}{weighted}{heard}") if weighted else f"{coupling}{heard}"))
    if summary.features is not None:
        facts.append(("Features", summary.features["explanation"]))
    if summary.calibration is not None:
        facts.append(("Calibration", summary.calibration))
    return facts


def _compare(comparison: Record) -> list[tuple[str, str]]:
    agreement, n_differ = format_share(comparison["agreement"]), comparison["n_differ"]
    named = {"Verdict": "verdict", "Track record": "record", "Accuracy": "accuracy", "Agreement": "alpha"}
    words = comparison["words"]
    said = [(name, words[key]) for name, key in named.items() if words[key] is not None]
    return [
        *((name, to_sentence(text)) for name, text in said),
        ("Majority vote", f"agrees on {agreement} of the items; {format_difference(n_differ)}"),
    ]


def _count_spans(spans: Record) -> str:
    certain = spans["mean_confidence"]
    sure = "" if certain is None else f", with a mean confidence of {format_number(certain)}"
    return (
        f"{spans['fused']:,} from {spans['marked']:,} that workers marked in {plural(spans['documents'], 'document')}"
        f"{sure}."
    )


def _describe_store(store: Record) -> str:
    """Return where answers on disk are, what they take, and where they come from."""
    origin = "built now" if store["built"] else "used again"
    if store["resume"] and not store["resumed_after"]:
        origin += ": there was nothing to resume"
    return f"{fit_text(store['folder'], 50)} ({format_bytes(store['bytes'])}, {origin})"


def _list_classes(classes: list[object]) -> str:
    shown = ", ".join(fit_text(quote_blanks(name), 16) for name in classes[:4])
    more = f" and {len(classes) - 4:,} more" if len(classes) > 4 else ""
    return f"{len(classes)}: {shown}{more}"


def _describe_outside(summary: Summary, outside: Record) -> str:
    """Return how many answers have a label that is not a class, and what that means."""
    n_answers, labels = outside["answers"], outside["labels"]
    shown = ", ".join(fit_text(quote_blanks(name), 16) for name in labels[:3])
    more = f" and {len(labels) - 3:,} more" if len(labels) > 3 else ""
    number = "some answers" if n_answers is None else plural(n_answers, "answer")
    meaning = "Such answers have no vote" if summary.model == "MajorityVote" else "Such answers still are evidence"
    return f"{shown}{more}, in {number}. {meaning}."


def print_workers(screen: Screen, summary: Summary) -> None:
    """Print the workers at both ends, from most to least reliable."""
    spare = screen.spare // 2
    best, worst = summary.most_reliable, summary.least_reliable[::-1]
    n_hidden = summary.workers - summary.workers_with_few_answers - len(best) - len(worst)
    width = MOST_CONFUSION + 2 * spare
    rows: list[list[object] | None] = []
    remarks = False
    for with_interval in (True, False):
        rows = [_describe(each, width, with_interval) for each in best]
        rows += [None] * (n_hidden > 0) + [_describe(each, width, with_interval) for each in worst]
        if summary.classifier is not None:
            rows += [[], _describe(summary.classifier | {"worker": "(classifier)"}, width, with_interval)]
        remarks = any(row and row[-1] for row in rows)
        rows = [row if remarks or not row else row[:-1] for row in rows]
        if measure(_worker_columns(MOST_NAME + spare, width, remarks), rows) <= screen.width:
            break
    # What is left of the line beside the other columns is for the names; the middle of longer ones is left out.
    columns = screen.widen(_worker_columns(NAME, width, remarks), rows, ["worker"], MOST_NAME + spare)
    left_out = f" ({n_hidden:,} between left out)" if n_hidden > 0 else ""
    screen.title(f"Workers, most reliable first{left_out}")
    screen.table(columns, rows)
    if len(best) + len(worst) > 1:
        screen.line(f"  {_describe_ranking([*best, *worst])}")
    if summary.workers_with_few_answers:
        screen.facts([(f"Not ranked: {plural(summary.workers_with_few_answers, 'worker')} with few answers", "")])


def _describe_ranking(workers: list[Record]) -> str:
    """Say in which order workers are listed."""
    has_interval = any(each["accuracy_low"] is not None and each["accuracy_low"] >= 0 for each in workers)
    last = "; those with remarks last" if len({bool(each["remarks"]) for each in workers}) == 2 else ""
    return f"By {'the lower end of the 95% interval of ' if has_interval else ''}accuracy{last}."


def _worker_columns(name: int, confusion: int, remarks: bool) -> list[Column]:
    return [
        Column("worker", name),
        Column("answers", 9, number=True),
        Column("accuracy", 16, number=True),
        Column("informativeness", 15, number=True),
        Column("worst confusion", confusion),
        *([Column("remarks", 24)] if remarks else []),
    ]


def _describe(worker: Record, width: int, with_interval: bool) -> list[object]:
    ends = format_ends(worker["accuracy_low"], worker["accuracy_high"]) if with_interval else ""
    return [
        worker["worker"],
        f"{worker['answers']:,}",
        f"{format_number(worker['accuracy'])}{ends}",
        format_number(worker["informativeness"]),
        fit_confusion(worker["worst_confusion"], width),
        _shorten_remarks(worker),
    ]


def _shorten_remarks(worker: Record) -> str:
    """Return the remarks in few words, with the number of a group of near-copies in place of their names."""
    others, copied, _ = worker["remarks"].partition("near-copy of ")
    others = others.replace("accuracy falls from", "falls from")
    return f"{others}near-copy ({worker['group']})" if copied else others


def print_items(screen: Screen, summary: Summary) -> None:
    """Print the items that are least certain."""
    spare = screen.spare // 3
    keys = [name for name in _KEY_WIDTHS if name in summary.least_certain[0]]
    columns = [Column(name, _KEY_WIDTHS[name] + spare) for name in keys]
    columns += [
        Column("label", 14 + spare),
        Column("confidence", number=True),
        Column("runner-up", 14 + spare),
        Column("probability", number=True),
    ]
    screen.title("Least certain items")
    rows = [_describe_item(item, keys) for item in summary.least_certain]
    screen.table(screen.widen(columns, rows, keys, MOST_KEY + spare), rows)
    if any((item["runner_up_probability"] or 0) > item["confidence"] for item in summary.least_certain):
        screen.line("  Labels are chosen before calibration, so a runner-up can be ahead.")


def _describe_item(item: Record, keys: Sequence[str]) -> list[object]:
    second = "" if item["runner_up_probability"] is None else item["runner_up"]
    return [
        *(item[name] for name in keys),
        item["label"],
        format_number(item["confidence"]),
        second,
        format_number(item["runner_up_probability"]),
    ]


def _name_file(path: str) -> str:
    """Return the name of what was written; of a folder of Parquet files also how many there are."""
    if os.path.isdir(path) and (n_files := len(glob.glob(os.path.join(glob.escape(path), PARTS)))):
        return f"{fit_text(path, 60)} ({plural(n_files, 'Parquet file')})"
    return fit_text(path, 60)


def _ending(summary: Summary) -> list[tuple[str, str]]:
    written = [(kind.capitalize(), _name_file(path)) for kind, path in summary.files.items()]
    return [
        *(written or [("Written", "nothing; give -o FILE to keep the labels")]),
        ("Time", f"{summary.seconds:.1f} s"),
    ]
