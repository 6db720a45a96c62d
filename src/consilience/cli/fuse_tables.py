"""The summary of a fit as tables."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Mapping, Sequence

from .. import formats as register
from ..answers import DIALECTS
from ..errors import join_names, plural, to_sentence
from ..formats.files import name_of
from ..inference.workers.temperatures import WELL_SURE
from ..kinds.tag_tables import ONE_HOT
from ..results.comparison import describe_usual
from ..results.result import describe_left_out
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
    measure,
    quote_blanks,
    wrap,
)

# The parameters to show, of those the model has.
_SHOWN = ("estimation", "ties", "seed")
# What levels of a scale are declared with.
DECLARE = "If they are levels, say so with --ordered."
# Two names of ten columns and a share; wider than eighty columns allow where workers' names are long too.
MOST_CONFUSION = 32
# What known labels are given with.
REMEDY = "(consilience next --at-random)"
# Items that are listed, and seconds that are worth telling.
N_ITEMS, LONG = 2, 60.0
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
        for line in wrap(make_inert(neighbours["explanation"]), screen.width - 2):
            screen.line(f"  {line}")
        screen.line()
    if any(each["accuracy"] is not None for each in (*summary.most_reliable, *summary.least_reliable)):
        print_workers(screen, summary)
        screen.line()
    if summary.least_certain:
        print_items(screen, summary)
        screen.line()
    screen.facts(_ending(summary))


def _find_title(format: str) -> str:
    if format == ONE_HOT:
        return "one column per tag"
    return next(each.title for each in (*DIALECTS, *register.FORMATS) if each.name == format)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    kind = ["ordinal workers"] if summary.parameters.get("workers") == "ordinal" else []
    kind += ["labels by median"] if summary.parameters.get("label_by") == "median" else []
    named = [f"{name} {summary.parameters[name]}" for name in _SHOWN if name in summary.parameters]
    shown = ", ".join(kind + named)
    sizes = [plural(*size) for size in ((summary.workers, "worker"), (summary.items, "item"))]
    facts = [
        *describe_right({} if summary.comparison is None else summary.comparison["words"]),
        *([] if summary.format is None else [("Format", f"{summary.format}: {_find_title(summary.format)}")]),
        *([("Columns", format_columns(summary.columns))] if any(a != b for a, b in summary.columns.items()) else []),
        ("Model", f"{summary.model} ({shown})" if shown else summary.model),
        ("Answers", f"{summary.answers:,} by {sizes[0]} about {sizes[1]}"),
        *([("Left out", describe_left_out(**summary.left_out))] if summary.left_out is not None else []),
        *([("Classes", _list_classes(summary.classes))] if summary.tags is None else _describe_tags(summary.tags)),
        *_describe_scale(summary),
        *([] if summary.soft is None else [("Soft votes", to_sentence(summary.soft))]),
        *(
            []
            if summary.outside_classes is None
            else [("Not classes", _describe_outside(summary, summary.outside_classes))]
        ),
        *([] if summary.spans is None else [("Spans", _count_spans(summary.spans))]),
    ]
    if summary.gold and not (summary.comparison or {}).get("n_known"):  # which the first line names
        keep = "keeps" if summary.gold == 1 else "keep"
        facts.append(("Gold", f"{plural(summary.gold, 'item')} {keep} the label that is known"))
    if summary.gold and summary.gold == summary.items:
        facts.append(("Verdict", to_sentence(ALL_KNOWN)))
    elif summary.comparison is None and summary.mean_confidence is not None:  # else expected accuracy tells it
        facts.append(("Confidence", f"{format_number(summary.mean_confidence)} on average"))
    elif summary.comparison is not None:
        facts += _compare(summary.comparison, "label" if summary.tags is None else "single tag")
    if summary.undecided is not None:
        facts.append(("Undecided", summary.undecided["explanation"]))
    if not summary.converged:
        facts.append(("Iterations", f"{summary.iterations}, not converged"))
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
    return facts


def describe_right(words: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Return how many labels are right, and what known labels would tell, as the first of the facts."""
    headline, more = words.get("headline"), words.get("known_labels")
    if headline is None:
        return []
    sentences = [headline, *([] if more is None else [f"{more} {REMEDY}"])]
    return [("Accuracy", " ".join(map(to_sentence, sentences)))]


def _compare(comparison: Record, judged: str) -> list[tuple[str, str]]:
    words = comparison["words"]
    differ = f" {to_sentence(format_difference(comparison['n_differ'], judged))}" if comparison["n_differ"] else ""
    named = {"Expected": "expected", "Agreement": "alpha"}
    return [
        ("Verdict", f"{to_sentence(words['verdict'])}{differ}"),
        *((name, to_sentence(words[key])) for name, key in named.items() if words[key] is not None),
    ]


def _count_spans(spans: Record) -> str:
    certain = spans["mean_confidence"]
    sure = "" if certain is None else f", with a mean confidence of {format_number(certain)}"
    return (
        f"{spans['fused']:,} from {spans['marked']:,} that workers marked in {plural(spans['documents'], 'document')}"
        f"{sure}."
    )


def _describe_tags(tags: Record) -> list[tuple[str, str]]:
    """Return which tags there are, how large the fused sets are, and whether tags go together."""
    size = f"{tags['mean_size']:.1f} tags on average"
    sure = f"a mean confidence of {format_number(tags['mean_confidence'])}"
    return [
        ("Tags", f"{len(tags['tags'])}: {_list_names(tags['tags'])}."),
        ("Sets", f"{tags['fused']:,} from {tags['given']:,} that workers gave, with {size}, and {sure}."),
        *([("Topics", tags["explanation"])] if "explanation" in tags else []),
    ]


def _list_classes(classes: list[object]) -> str:
    return f"{len(classes)}: {_list_names(classes)}."


def _describe_scale(summary: Summary) -> list[tuple[str, str]]:
    """Return that whole numbers were taken for names; that they were taken for a scale is a finding."""
    if summary.scale is None or summary.scale["ordered"]:
        return []
    return [("Order", f"{to_sentence(summary.scale['explanation'])} {DECLARE}")]


def _list_names(names: list[object]) -> str:
    return join_names((fit_text(quote_blanks(name), 16) for name in names), "--json has all")


def _describe_outside(summary: Summary, outside: Record) -> str:
    """Return how many answers have a label that is not a class, and what that means."""
    n_answers, labels = outside["answers"], outside["labels"]
    number = "some answers" if n_answers is None else plural(n_answers, "answer")
    meaning = "Such answers have no vote" if summary.model == "MajorityVote" else "Such answers still are evidence"
    return f"{_list_names(labels)}, in {number}. {meaning}."


def print_workers(screen: Screen, summary: Summary) -> None:
    """Print the workers at both ends, those first who call for attention."""
    spare = screen.spare // 2
    best, worst = summary.most_reliable[::-1], summary.least_reliable
    n_hidden = summary.workers - summary.workers_with_few_answers - len(best) - len(worst)
    width = MOST_CONFUSION + 2 * spare
    rows: list[list[object] | None] = []
    remarks = False
    for with_interval in (True, False):
        rows = [_describe(each, width, with_interval) for each in worst]
        rows += [None] * (n_hidden > 0) + [_describe(each, width, with_interval) for each in best]
        if summary.classifier is not None:
            rows += [[], _describe(summary.classifier | {"worker": "(classifier)"}, width, with_interval)]
        remarks = any(row and row[-1] for row in rows)
        rows = [row if remarks or not row else row[:-1] for row in rows]
        if measure(_worker_columns(MOST_NAME + spare, width, remarks), rows) <= screen.width:
            break
    # What is left of the line beside the other columns is for the names; the middle of longer ones is left out.
    columns = screen.widen(_worker_columns(NAME, width, remarks), rows, ["worker"], MOST_NAME + spare)
    left_out = f" ({n_hidden:,} between left out)" if n_hidden > 0 else ""
    screen.title(f"Workers, those to look at first{left_out}")
    screen.table(columns, rows)
    if summary.workers_with_few_answers:
        screen.facts([(f"Not ranked: {plural(summary.workers_with_few_answers, 'worker')} with few answers", "")])


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
    """Return the remarks in few words, and how sure a classifier is if that is not right."""
    sureness = worker.get("sureness")
    remarks = "; ".join(each for each in (sureness, worker["remarks"]) if each and each != WELL_SURE)
    return (
        remarks.replace("accuracy falls from", "falls from")
        .replace("answers as if by", "as if by")
        .replace("(group ", "(")
    )


def print_items(screen: Screen, summary: Summary) -> None:
    """Print the items that are least certain."""
    spare = screen.spare // 3
    keys = [name for name in _KEY_WIDTHS if name in summary.least_certain[0]]
    columns = [Column(name, _KEY_WIDTHS[name] + spare) for name in keys]
    columns += [
        Column("label", 14 + spare),
        Column("confidence", number=True),
        Column("runner-up" if summary.tags is None else "in doubt", 14 + spare),
        Column("probability", number=True),
    ]
    screen.title("Least certain items")
    shown = summary.least_certain[:N_ITEMS]
    rows = [_describe_item(item, keys) for item in shown]
    screen.table(screen.widen(columns, rows, keys, MOST_KEY + spare), rows)
    if summary.tags is None and any((item["runner_up_probability"] or 0) > item["confidence"] for item in shown):
        medians = summary.parameters.get("label_by") == "median"
        why = "Labels are medians" if medians else "The labels of a sequence are chosen together"
        screen.line(f"  {why}, so a runner-up can be ahead.")


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


def _advise(summary: Summary) -> str:
    """Return which command lists the labels that are done, and which the questions that are worth asking."""
    asked = "" if summary.source_kind == "functions" else ", --questions (open)"
    if "model" not in summary.files:
        return f"--save FILE, then next FILE --stop .95 (done){asked}"
    return f"consilience next {make_inert(shlex.quote(summary.files['model']))} --stop .95 (done){asked}"


def _can_go_on(summary: Summary) -> bool:
    """Tell whether further answers can be planned: of tables, if confidences are told."""
    return (
        summary.spans is None
        and summary.mean_confidence is not None
        and summary.gold < summary.items
        and len(summary.classes) > 1
    )


def _ending(summary: Summary) -> list[tuple[str, str]]:
    written = [(kind.capitalize(), _name_file(path)) for kind, path in summary.files.items()]
    return [
        *(written or [("Written", "nothing; give -o FILE to keep the labels")]),
        *([("Next", _advise(summary))] if _can_go_on(summary) else []),
        *([("Time", f"{summary.seconds:.1f} s")] if summary.seconds >= LONG else []),
    ]
