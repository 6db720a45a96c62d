"""Commands on files, and the files that all commands write: checked before the work, written after it.

`evaluate` compares labels with known ones, `convert` changes the format, `formats` lists all formats.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

from .. import formats as register
from ..answers import DIALECTS, LONG, Dialect
from ..answers.answers import LAYOUTS
from ..api import load
from ..errors import InputError, count_shown, join_names
from ..evaluation.labels import Evaluation, SpanEvaluation
from ..evaluation.labels import evaluate as evaluate_files
from ..evaluation.questions import QuestionsEvaluation
from ..evaluation.rankings import RankingEvaluation
from ..evaluation.spans import SpansEvaluation
from ..evaluation.tags import TagsEvaluation
from ..formats import FOLDER, Format, list_suffixes, readable_formats
from ..formats.files import is_folder
from ..formats.targets import choose_form, list_losses, read_content, write_content
from ..formats.writing import cannot_be_replaced, check_table_path, check_writable
from ..kinds.tag_tables import ONE_HOT
from ..models.question_files import holds_questions
from ..results.archive import HEADER
from .command import Record, is_asked, make_inert, tell
from .terminal import Column, Display, Screen, fit_text, format_number

# Classes shown in the table; --json has all.
MOST_CLASSES = 20


def evaluate(labels: str, gold: str, **columns: Any) -> None:
    """Compare labels with known ones."""
    evaluation = evaluate_files(load(labels) if is_model(labels) else labels, gold, **columns)
    facts = {"labels": labels, "gold": gold, **evaluation.to_dict()}

    def show() -> None:
        several = isinstance(evaluation, QuestionsEvaluation)
        for place, (name, found) in enumerate(evaluation.items() if several else [("", evaluation)]):
            if place:
                Screen().line()
            print_any(found, f"{labels}, {name}" if name else labels, gold)

    tell(lambda: facts, show)


def print_any(evaluation: Any, labels: str, gold: str) -> None:
    """Print how good labels, spans, sets or a ranking are."""
    show: Callable[[Any, str, str], None] = print_evaluation
    if isinstance(evaluation, RankingEvaluation):
        show = print_known_ranking
    if isinstance(evaluation, (SpansEvaluation, TagsEvaluation)):
        show = print_known_spans if isinstance(evaluation, SpansEvaluation) else print_known_sets
    show(evaluation, labels, gold)


def is_model(path: str) -> bool:
    """Tell whether a file holds a saved model."""
    if not is_zipfile(path):
        return False
    with ZipFile(path) as file:
        return HEADER in file.namelist() or holds_questions(path)


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
    if evaluation.scale is not None:
        scores += [
            ("Within one level", evaluation.scale.within_one, ""),
            ("Absolute error", evaluation.scale.absolute_error, "  levels; 0 is best"),
            ("Quadratic kappa", evaluation.scale.quadratic_kappa, "  1 is best, 0 is chance"),
            ("Rank correlation", evaluation.scale.rank_correlation, "  Spearman's; 1 is best"),
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
    n_shown = count_shown(len(rows), MOST_CLASSES)
    hidden = len(rows) - n_shown
    screen.title(f"Classes ({hidden:,} more with --json)" if hidden > 0 else "Classes")
    screen.table(columns, [*rows[:n_shown], *([None] if hidden > 0 else [])])


def print_known_ranking(evaluation: RankingEvaluation, labels: str, gold: str) -> None:
    """Print how good a ranking is."""
    screen = Screen()
    screen.title(f"{fit_text(labels, 36)} against {fit_text(gold, 34)}")
    scores = (
        ("Kendall's tau", evaluation.kendall, "  1 is best, 0 is chance"),
        ("Spearman's rho", evaluation.spearman, "  1 is best, 0 is chance"),
        ("Accuracy", evaluation.accuracy, "  of verdicts other than ties"),
        ("Log loss", evaluation.log_loss, "  nats per verdict; 0 is best"),
    )
    screen.facts(
        [
            ("Candidates", f"{evaluation.n_candidates:,}"),
            *([("Parts", f"{evaluation.n_parts:,}; only pairs within a part count")] if evaluation.n_parts > 1 else []),
            *([("Known verdicts", f"{evaluation.n_verdicts:,}")] if evaluation.n_verdicts else []),
            *((name, f"{format_number(value)}{note}") for name, value, note in scores if value is not None),
        ],
    )


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
        n_shown = count_shown(len(parts), MOST_CLASSES)
        rows = [(name, *map(format_number, score[:3])) for name, score in parts[:n_shown]]
        screen.line()
        screen.table(columns, [*rows, *([None] if len(parts) > n_shown else [])])


def print_known_sets(evaluation: TagsEvaluation, labels: str, gold: str) -> None:
    """Print scores of sets of tags, then those of each tag."""
    screen = Screen()
    screen.title(f"{fit_text(labels, 36)} against {fit_text(gold, 34)}")
    scores = (
        ("Sets that are right", evaluation.exact, ""),
        ("Mean confidence", evaluation.mean_confidence, "  should be the share of sets that are right"),
        ("Calibration error", evaluation.calibration_error, "  of the probabilities of tags; 0 is best"),
    )
    screen.facts(
        [
            ("Items compared", f"{evaluation.n_items:,}"),
            ("Gold without set", f"{evaluation.n_unanswered:,}"),
            *((name, format_number(value) + note) for name, value, note in scores if value is not None),
        ],
    )
    screen.line()
    columns = [Column("tag", 32), *(Column(name, number=True) for name in ("precision", "recall", "F1", "known"))]
    n_shown = count_shown(len(evaluation.tags), MOST_CLASSES)
    parts = [("all", evaluation.micro), *evaluation.tags[:n_shown]]
    rows = [(name, *map(format_number, score[:3]), f"{score[3]:,}") for name, score in parts]
    screen.table(columns, [*rows, *([None] if len(evaluation.tags) > n_shown else [])])


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
    forms = [Dialect(LONG, "one row per answer", ""), *DIALECTS]
    forms += [Dialect(ONE_HOT, "one row per answer, one column per tag", "")]
    tables = [
        {
            "name": each.name,
            "title": each.title,
            "read": {LONG: ["answers", "tags"], ONE_HOT: ["tags"]}.get(each.name, ["answers"]),
            "written": each.name in LAYOUTS,
            "suffixes": ["folder", ".npy"] if each.is_folder else [each.suffix] if each.suffix else [],
            "recognised_by": "content" if each.is_folder else "name" if each.suffix else "columns",
            "form_of_table": True,
        }
        for each in forms
    ]
    return [_describe_format(each) for each in register.FORMATS] + tables


def _describe_format(each: Format) -> Record:
    codec = each.codec
    holds = {
        "table": each.kind == "table",
        "spans": codec.read_spans is not None,
        "answers": codec.write_labels is not None,
        "tags": codec.write_labels is not None,
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


def check_folder(path: str, source: str) -> None:
    """Raise an error if a folder cannot be written to, or if that would change the input."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(f"{path!r} is a file.", "Give a folder.")
    root = os.path.dirname(source) if glob.has_magic(source) or os.path.isfile(source) else source
    real, read = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    is_own = real == read or (os.path.isdir(source) and real.is_relative_to(read))
    if is_own:
        raise InputError(f"Writing to {path!r} would change the input {source!r}.", "Write to another folder.")
    inputs = [Path(os.path.realpath(each)) for each in (glob.glob(source, recursive=True) or [source])]
    for link in _find_links(path):
        end = Path(os.path.realpath(link))
        if any(end.is_relative_to(each) or each.is_relative_to(end) for each in inputs):
            raise InputError(
                f"Writing to {path!r} would change the input {source!r}: {link!r} is a link to it.",
                "Write to another folder.",
            )


def _find_links(folder: str) -> Iterator[str]:
    """Yield the symbolic links in a folder, at any depth."""
    for inner, folders, files in os.walk(folder):
        yield from (link for name in (*folders, *files) if os.path.islink(link := os.path.join(inner, name)))


def check_page(path: str) -> None:
    """Raise the error that a report would meet, by what is installed and by the name of the file.

    A device may have any name.
    """
    from ..reporting.page import check_installed

    check_installed()
    if not path.lower().endswith((".html", ".htm")) and not cannot_be_replaced(path):
        raise InputError(
            f"The report is an HTML page, and {path!r} does not end in .html.", "Give a name such as report.html."
        )


def check_content(path: str | None) -> None:
    """Raise an error for a file of content that is not there: it may be meant for a column, as with `fuse`."""
    if path is not None and not os.path.exists(path) and not glob.has_magic(path):
        raise InputError(
            f"There is no file {path!r}.",
            "Give a file with the items and their content, such as --content answers.csv. A column can be named only "
            "with fuse.",
        )


def check_outputs(tables: Sequence[str | None], others: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Raise the error that writing would meet, also where an output would overwrite an input or another output.

    Parameters
    ----------
    tables : sequence of str or None
        Paths of tables, whose suffix says the format; None where there is none.
    others : sequence of str or None
        Paths of other files.
    inputs : sequence of str or None
        What is read: files, globs and folders.
    """
    taken: dict[str, str] = {}
    for path, check in [(path, check_table_path) for path in tables] + [(path, check_writable) for path in others]:
        if path is None:
            continue
        check(path)
        if cannot_be_replaced(path):
            continue  # a device or a pipe takes anything
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{path!r} is named for two outputs.", "Give each its own file.")
        taken[real] = path
        for source in inputs:
            if source is not None and _is_read_from(real, source):
                raise InputError(f"Writing {path!r} would change the input {source!r}.", "Write to another place.")


# The path of an output, None if it is not wanted, and what writes it there.
Output = tuple[str | None, Callable[[str], object]]


def write_together(results: Mapping[str, Output], page: Output | None = None) -> dict[str, str]:
    """Write results, then the report on them; return what is where.

    A report takes more time and memory than results do, and draws with foreign code. Whatever happens to it, results
    are there; the error that it ends with says so.

    Parameters
    ----------
    results : mapping
        The output of each kind.
    page : Output, optional
        The report.
    """
    for path, write in results.values():
        if path is not None:
            write(path)
    files = {kind: path for kind, (path, _) in results.items() if path is not None}
    target, write = page or (None, str)
    if target is None:
        return files
    try:
        write(target)
    except Exception as error:
        if files:
            error.add_note(f"Only the report is missing: {join_names(files.values())} had been written before.")
        raise
    return {**files, "report": target}


def _is_read_from(real: str, source: str) -> bool:
    """Tell whether a file is, or would be, among those that `source` stands for."""
    would_be_read = real.lower().endswith(tuple(list_suffixes(readable_formats())))
    if os.path.isdir(source):
        return would_be_read and os.path.dirname(real) == os.path.realpath(source)
    try:
        if real in {os.path.realpath(file) for file in (source, *glob.glob(source, recursive=True))}:
            return True
    except ValueError:  # no file can have such a name
        return False
    parts = Path(os.path.abspath(source)).parts
    n_fixed = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    root, path = os.path.realpath(os.path.join(*parts[:n_fixed])), Path(real)
    return would_be_read and path.is_relative_to(root) and _matches(path.relative_to(root).parts, parts[n_fixed:])


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Tell whether a glob would find a file if it were there: the parts of its path match those of the pattern.

    >>> _matches(("a", "b", "new.csv"), ("**", "*.csv")), _matches(("a", "new.csv"), ("*.csv",))
    (True, False)
    """
    if not names or not patterns:
        return not names and not patterns
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or _matches(names[1:], patterns)
    hidden = names[0].startswith(".") and not patterns[0].startswith(".")
    return not hidden and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])
