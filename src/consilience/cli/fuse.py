"""`consilience fuse`: from a file of answers to a file of labels."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..engines import ENGINES
from ..formats.register import Format, readable_formats, usual_suffixes
from ..models.register import MODELS
from . import options as shared
from .command import TYPED, Command, is_asked, tell
from .options import ROLES, TABLES, choice, flag, number, option

if TYPE_CHECKING:
    from ..answers.responses import Responses
    from ..preparing import Prepared
    from ..reporting.again import Given
    from .summary import Summary
    from .terminal import Display

# As in the library, whose modules with these names take long to import.
ESTIMATIONS = ("variational", "em")
DUPLICATES = ("error", "first", "last", "mean")
ABSTAIN = ("ignore", "answer")
CALIBRATIONS = ("hidden answers", "gold", "none")
PRIORS = ("learn", "uniform")
_COLUMNS = (*ROLES, "order", "gold")

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv -o labels.parquet
  consilience fuse answers.csv --item question --gold known.csv --json
  consilience fuse batch_results.csv --columns label=Answer.category -o labels.csv
  consilience fuse label-studio-export.json -o fused.json
"""  # \b keeps the lines apart

_READABLE = usual_suffixes(each for each in readable_formats() if each.kind == "table")

_HELP = f"""Fuse the answers in SOURCE into one label per item.

SOURCE is a table of answers, one per row: a file ({_READABLE}), a folder, a quoted pattern
such as 'answers/*.csv', or - for standard input. Results of platforms, tables with one column per worker, matrices
(.npy), files of annotation tools and folders of masks are recognised; `consilience formats` lists them all. Where
workers marked spans in texts, spans are fused. Probabilities are calibrated by hidden answers, and still too high where
workers err together unless there are known labels. Without -o nothing is written, and only a summary is printed.
"""


@dataclass(frozen=True)
class Options:
    """The arguments of the command, as given."""

    source: str
    output: str | None
    item: str | None
    worker: str | None
    label: str | None
    sequence: str | None
    position: str | None
    weight: str | None
    order: str | None
    gold_column: str | None
    format: str | None
    ignore: tuple[str, ...]
    drop_missing: bool
    classes: list[str] | None
    duplicates: str
    abstain: str
    background: str | None
    normalise: bool
    items: str | None
    gold: tuple[str, ...]
    ignore_gold: bool
    graph: str | None
    knn: str | None
    k: int
    features: str | None
    item_prior: str | None
    model: str
    estimation: str | None
    prior: str | dict[str, float] | None
    calibration: str | float | None
    max_iter: int | None
    seed: int | None
    undecided: float | None
    save: str | None
    no_answers: bool
    workers_report: str | None
    report: str | None
    content: str | None
    disagreements: str | None
    all_workers: bool
    engine: str
    threads: int | None
    scheduler: str | None
    memory: str | None
    store: str | None
    resume: bool
    arguments: tuple[str, ...]  # all of these, as they were typed


def _take_one(ctx: click.Context, parameter: click.Parameter, sources: tuple[str, ...]) -> str:
    if len(sources) > 1:
        raise click.BadParameter(
            f"one file, folder or pattern is expected, and {len(sources)} were given. Quote a pattern, so that the "
            "shell leaves it alone: 'answers/*.csv'.",
            ctx,
            parameter,
        )
    return sources[0]


def _read_columns(ctx: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, str]:
    columns: dict[str, str] = {}
    parts = [] if text is None else next(csv.reader([text], skipinitialspace=True), []) or [""]
    for part in parts:
        role, sign, name = part.partition("=")
        if role not in _COLUMNS or not sign or role in columns:
            raise click.BadParameter(
                f"{text!r} must name columns such as item=HITId,worker=WorkerId,label=Answer.category, each of "
                f"{', '.join(_COLUMNS)} at most once.",
                ctx,
                parameter,
            )
        columns[role] = name
    return columns


def _split_classes(ctx: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
    if text is None:
        return None
    classes = next(csv.reader([text], skipinitialspace=True), [])
    if not classes or "" in classes:
        raise click.BadParameter(
            f"{text!r} has an empty class. Separate classes by single commas, and quote one that holds a comma.",
            ctx,
            parameter,
        )
    return classes


def _read_prior(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | dict[str, float] | None:
    if text is None or text in PRIORS:
        return text
    prior = {}
    for part in next(csv.reader([text], skipinitialspace=True), None) or [""]:
        name, equals, number = part.rpartition("=")
        try:
            prior[name] = float(number if equals else "")
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is neither learn nor uniform, nor class probabilities such as cat=0.9,dog=0.1.",
                ctx,
                parameter,
            ) from None
    return prior


def _read_calibration(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | float | None:
    if text is None or text.replace("-", " ") in CALIBRATIONS:
        return text if text is None else text.replace("-", " ")
    try:
        return float(text)
    except ValueError:
        known = ", ".join(name.replace(" ", "-") for name in CALIBRATIONS)
        raise click.BadParameter(f"{text!r} is neither one of {known}, nor a number.", ctx, parameter) from None


_GROUPS = {
    "Options": [
        option(
            "-o --output",
            "FILE",
            f"Write labels or spans here: a table ({TABLES}); or if SOURCE is of an annotation tool or holds masks, a "
            "file or folder of the same kind.",
        ),
        shared.report,
        option("--save", "FILE", "Write the fitted model here, with the answers, for consilience.load."),
        *shared.printing,
    ],
    "Columns": [
        option("--item", "COL", "Column of items, if not item, task, question, id or the like."),
        option("--worker", "COL", "Column of workers, if not worker, annotator, judge or the like."),
        option("--label", "COL", "Column of answers, if not label, answer, response or the like."),
        option("--sequence", "COL", "Column of sequences, whose positions are the items."),
        option("--position", "COL", "Column of positions in a sequence."),
        option("--weight", "COL", "Column of weights in (0, 1]."),
        option("--order", "COL", "Column of times or numbers: when answers were given. Tells who gets worse."),
        option(
            "--columns",
            "ROLE=COL,...",
            "Several columns at once: item=HITId,label=Answer.x. The role gold is a column of known labels.",
            callback=_read_columns,
        ),
        shared.ignore,
    ],
    "Answers": [
        shared.source_format,
        option("--classes", "A,B,...", "What can be true. Default: all labels.", callback=_split_classes),
        shared.drop_missing,
        choice(
            "--duplicates",
            DUPLICATES,
            "What to do when a worker answered an item more than once.",
            default="error",
        ),
        choice(
            "--abstain",
            ABSTAIN,
            "What a worker's silence about an item means: nothing, or an answer, as of labelling functions.",
            default="ignore",
        ),
        option("--background", "LABEL", "With --abstain answer: the class of items about which all are silent."),
        shared.normalise,
        option("--items", "FILE", "Items that exist even if nobody answered them, in the order wanted."),
    ],
    "Known labels": [
        option(
            "--gold",
            "FILE",
            "Known labels: a table with item (or sequence, position) and label, gold or truth; for spans and masks "
            "also a file, table or folder of known ones. May be given several times.",
            multiple=True,
        ),
        flag(
            "--ignore-gold",
            "Do not use a column of known labels beside the answers.",
            clashes={
                "--gold": "--ignore-gold does not go with --gold: a column of known labels is not used beside them. "
                "Leave out one of them.",
                "--columns gold": "--ignore-gold does not go with --columns gold=...: it leaves out that column. Leave "
                "out one of them.",
            },
        ),
    ],
    "Content and graph": [
        option(
            "--content",
            "COL",
            "With --report: the column of SOURCE with the text of each item, or the path of its picture.",
            **shared.OF_REPORT,
        ),
        option(
            "--features",
            "FILE",
            "Numbers that describe the items, by which a classifier guides the labels: a table with a column item, or "
            ".npy or .npz with a row for each item, in order.",
        ),
        option(
            "--item-prior",
            "FILE",
            "Class probabilities of items before any answer: a table with a column item and one for each class.",
        ),
        option("--graph", "FILE", "Edges between items: a table with columns source and target, and perhaps weight."),
        option(
            "--knn",
            "FILE",
            "Features (.npy, or .npz of scipy); row n is item n. Neighbours are linked.",
            clashes={"--graph": "--graph and --knn both make a graph: give one of them."},
        ),
        number(
            "--k",
            "N",
            "Neighbours of each item for --knn.",
            default=10,
            needs=["--knn"],
            reason="it says to how many others each item is linked",
        ),
    ],
    "Model": [
        choice(
            "--model",
            ["auto", *MODELS],
            "How to fuse: auto is markov-field with a graph, hidden-markov for sequences, else dawid-skene.",
            default="auto",
        ),
        choice("--estimation", ESTIMATIONS, "How to fit. Default: variational."),
        option(
            "--prior",
            "A=P,B=P,...",
            "How frequent the classes are, if that is known; or uniform. Default: learn.",
            callback=_read_prior,
        ),
        option(
            "--calibration",
            "HOW",
            "What probabilities are calibrated by: hidden-answers, gold, none, or a power. Default: hidden-answers.",
            callback=_read_calibration,
        ),
        number("--max-iter", "N", "Most iterations. Default: the model's."),
        number("--seed", "N", "Seed of all that is random. Default: 0.", least=0),
    ],
    "Outputs": [
        shared.workers_report,
        option(
            "--disagreements",
            "FILE",
            "With --features: write a table of the items for which classifier and workers call for different labels.",
            needs=["--features"],
            reason="a classifier learns from these",
        ),
        option(
            "--undecided",
            "P",
            "Leave labels open whose confidence is below P. The summary says how many are kept.",
            type=click.FloatRange(0, 1),
        ),
        flag(
            "--no-answers",
            "With --save: leave the answers, and the graph, out of the file.",
            needs=["--save"],
            reason="it says what the file of the model holds",
        ),
        flag("--all-workers", "Show all workers, not only the most and the least reliable."),
    ],
    "Size": [
        option(
            "--memory",
            "SIZE",
            "Sort the answers into a store on disk with so much memory, such as 4GB, and fuse them from there. "
            "Default: on disk only if they would not fit in memory.",
        ),
        option(
            "--store",
            "FOLDER",
            "Where stores are kept. Default: the user's cache folder.",
            needs=["--memory", "--resume"],
            reason="it says where answers on disk are kept",
        ),
        flag("--resume", "Go on where an earlier run on disk was interrupted."),
        choice("--engine", ENGINES, "Where to work.", default="threads"),
        number(
            "--threads",
            "N",
            "Number of threads. Default: all processors.",
            clashes={"--engine dask": "--threads does not go with --engine dask. Leave it out."},
        ),
        option(
            "--scheduler",
            "ADDRESS",
            "With --engine dask: a running cluster, such as tcp://10.0.0.1:8786.",
            needs=["--engine dask"],
        ),
    ],
}


@click.command(cls=Command, epilog=_EXAMPLES, help=_HELP, groups=_GROUPS)
@click.argument("source", nargs=-1, required=True, metavar="SOURCE", callback=_take_one)
def fuse(**arguments: Any) -> None:
    """Fuse the answers in a file into one label per item."""
    columns = arguments.pop("columns")
    for role, name in columns.items():
        if arguments.get(role) not in (None, name) and role != "gold":
            raise click.UsageError(f"--{role} and --columns name different columns for the {role}. Name one.")
    roles = {role: name for role, name in columns.items() if role != "gold"}
    typed = tuple(click.get_current_context().meta[TYPED])
    run(Options(**arguments | roles, gold_column=columns.get("gold"), arguments=typed))


def run(options: Options) -> None:
    """Read, fit, write, and only then print."""
    from ..formats.sources import find_source
    from .fuse_on_disk import fuse_on_disk, goes_to_disk
    from .summary import summarise, tabulate_workers
    from .terminal import Display

    started = time.perf_counter()
    if goes_to_disk(options):
        with Display(is_asked("quiet")) as display:
            summary, files = fuse_on_disk(options, display)
        print_results(summary, files, time.perf_counter() - started)
        return
    named = ("source", "graph", "knn", "features", "item_prior", "items")
    sources = [*(getattr(options, name) for name in named), *options.gold]
    if sources.count("-") > 1:
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    found = find_source(options.source, options.format)
    target = check_files(options, found, sources)
    check_report(options)
    if target is not None and options.undecided is not None:
        raise click.UsageError("--undecided is for tables of labels. Leave it out, or write a table.")
    with Display(is_asked("quiet")) as display:
        model, prepared = fit(options, display, found)
        labels, workers = model.to_frame(), tabulate_workers(model)
        summary = summarise(model, prepared, labels, workers, options.source, options.all_workers, options.undecided)
        if options.undecided is not None:
            labels = model.to_frame(undecided=options.undecided)
        display.say("Writing")
        files = write(options, model, prepared.source, labels, workers, target)
    print_results(summary, files, time.perf_counter() - started)


def check_files(options: Options, found: Format | None, sources: list[str | None]) -> Format | None:
    """Return the format in which results go back to the tool they come from, None for a table; check all outputs."""
    from ..formats.files import is_folder
    from ..formats.targets import choose_target
    from .outputs import check_folder, check_outputs

    output = options.output
    target = None if output is None else choose_target(output, options.source, found)
    tables, others = [options.workers_report, options.disagreements], [options.save, options.report]
    if output is not None and target is not None and is_folder(output):
        check_folder(output, options.source)
    else:
        (tables if target is None else others).insert(0, output)
    check_outputs(tables, others, sources)
    return target


def fit(options: Options, display: Display, found: Format | None) -> tuple[Any, Prepared]:
    """Return the fitted model, and what it was fitted to."""
    from ..api import fuse_prepared

    engine = open_engine(options.engine, options.threads, options.scheduler)
    prepared = open_inputs(options, display, found)
    names = ("estimation", "prior", "calibration", "max_iter", "seed")
    parameters = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    display.say("Fitting")
    fitted = fuse_prepared(
        prepared,
        options.model,
        engine,
        display.show_iteration,
        options.features,
        options.item_prior,
        parameters,
    )
    return fitted, prepared


def open_inputs(options: Options, display: Display, found: Format | None) -> Prepared:
    """Open the answers, which are of the format that was found, known labels and the graph."""
    from ..answers.graph import Graph
    from ..formats.arrays import read_features
    from ..preparing import prepare
    from .terminal import fit_text

    gold = list(options.gold) or None
    # The columns named for the answers are taken from files of known labels too, where these have them.
    names = {role: getattr(options, role) for role in ("item", "sequence", "position")}
    gold_columns = {**names, "known label": options.label}
    display.say(f"Reading {fit_text(options.source, 50)}")
    features = None if options.knn is None else read_features(options.knn)
    graph = options.graph if features is None else Graph.knn(features, options.k)
    settings = (
        "classes",
        "duplicates",
        "abstain",
        "background",
        "normalise",
        "drop_missing",
        "format",
        "order",
        "items",
    )
    columns = {name: getattr(options, name) for name in (*ROLES, *settings)}
    if options.items is None and features is not None and found is None:
        columns["items"] = range(features.shape[0])  # every row of features is an item
    # The content of items is no worker's answer.
    columns["ignore"] = (*options.ignore, *([options.content] if options.content and found is None else []))
    columns["gold"] = options.gold_column
    # Known spans in a file are kept: they say where tokens are cut, to which other known labels may belong.
    if options.ignore_gold or (gold and options.gold_column is None and found is None):
        columns["gold"] = False
    prepared = prepare(options.source, graph, gold, columns, gold_columns)
    if options.ignore and getattr(prepared.source, "format", None) not in ("wide", "matrix"):
        raise click.UsageError("--ignore is for tables in which each worker has a column. Leave it out.")
    return prepared


def check_report(options: Options) -> None:
    """Raise the error that a report would meet, as far as it can be told before the work."""
    if options.report is None:
        return
    from .outputs import check_page

    check_page(options.report)
    if options.content is not None and options.source == "-":
        raise click.UsageError("--content cannot be read from standard input. Give a file.")


def write(
    options: Options, model: Any, opened: Any, labels: Any, workers: Any, target: Format | None
) -> dict[str, str]:
    """Write the files asked for, results as a table or in the format of their source; return what is where."""
    from ..formats.writing import write_table
    from .outputs import write_together

    kind, write_result = choose_writer(model, opened, labels, target)
    return write_together(
        {
            kind: (options.output, write_result),
            "workers": (options.workers_report, partial(write_table, workers)),
            "disagreements": (options.disagreements, lambda path: write_table(model.disagreements(), path)),
            "report": (options.report, lambda path: write_report(options, model, path)),
            "model": (options.save, partial(model.save, answers=not options.no_answers)),
        }
    )


def write_report(options: Options, model: Any, path: str) -> None:
    """Write the report, with the content of the items if its column is named."""
    from ..reporting.write import write_page

    content = None if options.content is None else read_content(options, model.responses_)
    title = "Standard input" if options.source == "-" else os.path.basename(options.source.rstrip("/"))
    given = split_arguments("fuse", options.arguments, options.gold or (options.source,))
    given = given._replace(keeps=bool(options.gold) and model.fusion_.passages is not None)
    write_page(model, path, content, title, os.path.dirname(options.source), given)


def split_arguments(command: str, arguments: Sequence[str], gold: Sequence[str]) -> Given:
    """Return a command and its arguments without known labels, in two parts: others belong between them."""
    from ..reporting.again import Given

    typed = [command, *arguments]
    n_options = typed.index("--") if "--" in typed else len(typed)  # what follows is no option
    rest, place = list[str](), None
    parts = iter(typed[:n_options])
    for part in parts:
        name, sign, _ = part.partition("=")
        if name != "--gold":
            rest.append(part)
            continue
        place = len(rest) if place is None else place
        if not sign:
            next(parts, None)
    if place is None:
        place = rest.index("--report") if "--report" in rest else len(rest)
    return Given(rest[:place], [*rest[place:], *typed[n_options:]], gold)


def read_content(options: Options, responses: Responses) -> dict[str, Any]:
    """Return the columns of the answers' table that say which item a row is about, and what it looks like."""
    from ..formats.reading import open_file

    formats = {each.name for each in readable_formats()}
    table = open_file(options.source, format=options.format if options.format in formats else None)
    if options.content not in table.names:
        raise table.no_column("content", options.content, "content")
    roles = ("item",) if responses.sequences is None else ("sequence", "position")
    names = [responses.columns.get(role, role) for role in roles]
    return {
        role: table.read(name) for role, name in zip((*roles, "content"), (*names, str(options.content)), strict=True)
    }


def choose_writer(model: Any, opened: Any, labels: Any, target: Format | None) -> tuple[str, Callable[[str], object]]:
    """Return what the results are called, and what writes them: as a table, or in the format of their source."""
    from ..formats.masks import write_masks
    from ..formats.targets import write_labels, write_spans
    from ..formats.writing import write_table
    from ..tasks.masks import Masks
    from ..tasks.spans import Spans

    if isinstance(opened, Spans):
        if target is None:
            return "spans", lambda path: write_table(model.to_spans(), path)
        return "spans", lambda path: write_spans(model.to_span_set(), path)
    if target is None:
        return "labels", partial(write_table, labels)
    if isinstance(opened, Masks):
        return "labels", lambda path: write_masks(model.to_masks(), path)
    assert opened.origin is not None
    origin, question = opened.origin[0], opened.columns.get("label")
    return "labels", lambda path: write_labels(labels, path, origin, target.name, question)


def print_results(summary: Summary, files: dict[str, str], seconds: float) -> None:
    """Print how it went, in the form asked for."""
    from .fuse_tables import print_summary

    summary = replace(summary, files=files, seconds=round(seconds, 3))
    tell(lambda: asdict(summary), lambda: print_summary(summary))


def open_engine(name: str, n_threads: int | None, scheduler: str | None = None) -> Any:
    """Return the engine asked for; only the name of one that has to be closed in the end."""
    from ..engines.local import Threads

    if scheduler is not None:
        os.environ["DASK_SCHEDULER_ADDRESS"] = scheduler  # which Dask reads when it is loaded
    return Threads(n_threads) if name == "threads" else name
