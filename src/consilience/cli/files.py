"""Commands on files, and the files that all commands write: checked before the work, written after it.

`evaluate` compares labels with known ones, `convert` changes the format, `formats` lists all formats.
"""

from __future__ import annotations

import glob
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Self
from zipfile import ZipFile, is_zipfile

import click

from .. import formats as register
from ..answers import DIALECTS
from ..answers import LONG as LONG_FORM
from ..answers.layouts import LAYOUTS
from ..answers.previews import fit_text
from ..api import load
from ..documents.document import Column, Document, Fact, Facts, Part, Table, Text
from ..errors import InputError, join_names, make_inert, plural
from ..evaluation.evaluation import QuestionsEvaluation
from ..evaluation.labels import evaluate as evaluate_files
from ..formats import FOLDER, list_suffixes, readable_formats
from ..formats.files import is_folder
from ..formats.sources import choose_form, name_form, open_source, write_form
from ..formats.writing import cannot_be_replaced, check_table_path, check_writable
from ..kinds import need_kind
from ..kinds.tags import ONE_HOT
from ..results.saving import HEADER
from .command import list_values, publish

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..inference.em import Progress as Iteration


# Seconds that are worth telling.
LONG_SECONDS = 60.0


def run_evaluate(labels: str, gold: str, **columns: Any) -> None:
    """Compare labels with known ones."""
    is_model = False
    if is_zipfile(labels):
        with ZipFile(labels) as file:
            is_model = HEADER in file.namelist()
    evaluation = evaluate_files(load(labels) if is_model else labels, gold, **columns)
    parts: list[Part] = [Facts(list_values({"labels": labels, "gold": gold, **evaluation.to_dict()}))]
    several = isinstance(evaluation, QuestionsEvaluation)
    for name, scores in evaluation.items() if several else [("", evaluation)]:
        subject = fit_text(f"{labels}, {name}" if name else labels, 36)
        parts.append(scores.describe(f"{subject} against {fit_text(gold, 34)}"))
    publish(Document("", "", parts))


def run_convert(origin: str, target: str, format: str | None, to: str | None, **options: Any) -> None:
    """Convert all annotations of all workers from one format to another."""
    started = time.perf_counter()
    with Display() as display:
        display.say(f"Reading {fit_text(origin, 50)}")
        opened = open_source(origin, format=format, **options)
        source = name_form(opened, origin, format)
        form = choose_form(opened, source, target, to)
        is_table = form in LAYOUTS
        if not is_table and is_folder(target):
            check_folder(target, origin)
        else:
            check_outputs([target] if is_table else [], [] if is_table else [target], [origin])
        display.say("Writing")
        lost = write_form(opened, source, target, form)
    content = need_kind(opened).describe(opened)
    seconds = round(time.perf_counter() - started, 3)
    facts = [
        Fact("read", "Read", content, f"{content} ({source})"),
        Fact("", "Written", None, f"{fit_text(target, 50)} ({form})"),
        Fact("lost", "Not kept" if lost else "", lost, f"{'; '.join(lost)}."),
        Fact("seconds", "Time", seconds, f"{seconds:.1f} s"),
        *list_values({"source": origin, "from": source, "target": target, "to": form}),
    ]
    publish(Document(f"{fit_text(origin, 36)} to {fit_text(target, 34)}", "", [Facts(facts)]))


def list_formats() -> None:
    """List all formats: what is read from each, what is written, and how it is recognised."""
    keys = ("name", "title", "read", "written", "suffixes", "recognised_by", "form_of_table")
    rows: list[tuple[Any, ...]] = []
    for each in register.FORMATS:
        codec, suffixes = each.codec, sorted(dict.fromkeys((*each.suffixes, *each.outputs)), key=FOLDER.__eq__)
        read = [each.kind] + ["answers", "tags"] * (codec.write_labels is not None)
        is_written = codec.write is not None or codec.save is not None
        found_by = "content" if codec.recognise is not None or FOLDER in suffixes else "name"
        named = ["folder" if suffix == FOLDER else suffix for suffix in suffixes]
        rows.append((each.name, each.title, read, is_written, named, found_by, False))
    rows.append((LONG_FORM, "one row per answer", ["answers", "tags"], LONG_FORM in LAYOUTS, [], "columns", True))
    for form in DIALECTS:
        suffixes = ["folder", ".npy"] if form.is_folder else [form.suffix] if form.suffix else []
        found_by = "content" if form.is_folder else "name" if form.suffix else "columns"
        rows.append((form.name, form.title, ["answers"], form.name in LAYOUTS, suffixes, found_by, True))
    rows.append((ONE_HOT, "one row per answer, one column per tag", ["tags"], ONE_HOT in LAYOUTS, [], "columns", True))

    parts: list[Part] = [Facts(list_values({"formats": [dict(zip(keys, row, strict=True)) for row in rows]}))]
    columns = [Column("", name) for name in ("name", "read", "written", "ends in", "found by")]
    for title, are_forms in (("Files and folders", False), ("Forms of tables, in files of any kind", True)):
        shown, facts = [], []
        for name, says, read, is_written, suffixes, found_by, is_form in rows:
            if is_form == are_forms:
                ends = [each for each in suffixes if each != "folder"][:1] + ["folder"] * ("folder" in suffixes)
                shown.append((name, ", ".join(read), "yes" if is_written else "no", ", ".join(ends), found_by))
                facts.append(Fact("", name, says))
        parts += [Table("", title, columns, shown), Facts(facts)]
    ending = "fuse -o writes results in the format of their source, or as a table; convert writes all annotations."
    publish(Document("", "", [*parts, Text([ending])]))


# ------------------------------------------------------------------------------------------------------------- outputs


def check_folder(path: str, source: str) -> None:
    """Raise an error if a folder cannot be written to, or if that would change the input."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(f"{path!r} is a file.", "Give a folder.")
    root = os.path.dirname(source) if glob.has_magic(source) or os.path.isfile(source) else source
    real, read = os.path.realpath(path), os.path.realpath(root)
    if real == read or (os.path.isdir(source) and real.startswith(read + os.sep)):
        raise InputError(f"Writing to {path!r} would change the input {source!r}.", "Write to another folder.")


def check_outputs(tables: Iterable[str | None], others: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Raise the error that writing would meet, also where an output would overwrite an input or another output.

    Parameters
    ----------
    tables : iterable of str or None
        Paths of tables, whose suffix says the format; None where there is none.
    others : iterable of str or None
        Paths of other files.
    inputs : iterable of str or None
        What is read: files, globs and folders.
    """
    taken, sources = set[str](), [source for source in inputs if source is not None]
    suffixes = tuple(list_suffixes(readable_formats()))
    checks = [(path, check_table_path) for path in tables] + [(path, check_writable) for path in others]
    for path, check in checks:
        if path is None:
            continue
        check(path)
        if cannot_be_replaced(path):
            continue  # a device or a pipe takes anything
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{path!r} is named for two outputs.", "Give each its own file.")
        taken.add(real)
        is_table = real.lower().endswith(suffixes)
        for source in sources:
            # A table may also be among what a folder or pattern will stand for once it is written.
            pattern = os.path.realpath(os.path.join(source, "*") if os.path.isdir(source) else source)
            as_deep = "**" in pattern or pattern.count(os.sep) == real.count(os.sep)
            may_match = is_table and as_deep and fnmatchcase(real, pattern.replace(f"**{os.sep}", "*"))
            if may_match or real in map(os.path.realpath, [source, *glob.glob(source, recursive=True)]):
                raise InputError(f"Writing {path!r} would change the input {source!r}.", "Write to another place.")


# The path of an output, None if it is not wanted, and what writes it there.
Output = tuple[str | None, Callable[[str], object]]


def write_together(results: Mapping[str, Output], page: Output) -> dict[str, str]:
    """Write results, then the report on them; return what is where.

    A report takes more time and memory than results do, and draws with foreign code. Whatever happens to it, results
    are there; the error that it ends with says so.
    """
    for path, write in results.values():
        if path is not None:
            write(path)
    files = {kind: path for kind, (path, _) in results.items() if path is not None}
    target, write = page
    if target is None:
        return files
    try:
        write(target)
    except Exception as error:
        if files:
            error.add_note(f"Only the report is missing: {join_names(files.values())} had been written before.")
        raise
    return {**files, "report": target}


def finish(
    document: Document,
    source: list[Fact],
    files: Mapping[str, str],
    otherwise: tuple[str, str],
    started: float,
    more: Sequence[Fact] = (),
) -> None:
    """Print a document, with what was read and written, and how long it took."""
    written = [Fact("files", "", dict(files)), *([] if files else [Fact("", otherwise[0], None, otherwise[1])])]
    for kind, path in files.items():
        parts = glob.glob(os.path.join(glob.escape(path), "part-*.parquet")) if os.path.isdir(path) else []
        number = f" ({plural(len(parts), 'Parquet file')})" if parts else ""
        written.append(Fact("", kind.capitalize(), None, f"{fit_text(path, 60)}{number}"))
    seconds = round(time.perf_counter() - started, 3)
    time_taken = Fact("seconds", "Time" if seconds >= LONG_SECONDS else "", seconds, f"{seconds:.1f} s")
    publish(replace(document, parts=[*document.parts, Facts([*source, *written, *more, time_taken])]))


def name_page(source: str) -> str:
    """What a report on a file is called."""
    return "Standard input" if source == "-" else os.path.basename(source.rstrip("/"))


class Display:
    """One line that says what is being done, and for how long; nothing in a pipe or with --quiet.

    What the library logs meanwhile is shown too.
    """

    _live: Progress | None = None

    def __enter__(self) -> Self:
        self._ending = ExitStack()
        if not click.get_current_context().meta.get("quiet") and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn

            console = Console(stderr=True, highlight=False, markup=False, emoji=False)
            spinner, text = SpinnerColumn("line", style="none"), TextColumn("{task.description}", markup=False)
            elapsed = TextColumn("{task.elapsed:.0f} s", style="dim")
            self._live = Progress(spinner, text, elapsed, console=console, transient=True)
            self._task = self._live.add_task("", total=None)
            log, handler = logging.getLogger("consilience"), logging.Handler(logging.INFO)
            handler.emit = lambda record: self.say(record.getMessage())  # type: ignore[method-assign]
            self._ending.callback(log.setLevel, log.level)
            self._ending.callback(log.removeHandler, handler)
            log.setLevel(logging.INFO)
            log.addHandler(handler)
            self._ending.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def say(self, text: str, at_once: bool = True) -> None:
        """Change what the line says: at once, or when it is drawn again."""
        if self._live is not None:
            self._live.update(self._task, description=make_inert(text), refresh=at_once)

    def show_iteration(self, iteration: Iteration) -> None:
        """Tell of one iteration of a fit: a callback."""
        gain = "" if iteration.iteration == 1 else f", gain per answer {iteration.gain:.1e}"
        self.say(f"Fitting: iteration {iteration.iteration} of at most {iteration.max_iter}{gain}", at_once=False)
