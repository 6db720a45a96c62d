"""`consilience fuse`: from a file of answers to a file of labels."""

from __future__ import annotations

import csv
import glob
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..answers.dialects.register import DIALECTS
from ..engines import ENGINES
from ..formats.register import Format, readable_formats, usual_suffixes
from ..models.register import MODELS
from . import options as shared
from .command import TYPED, Command, is_asked, tell
from .options import ROLES, read_options

if TYPE_CHECKING:
    import pyarrow as pa

    from ..answers.responses import Responses
    from ..preparing import Prepared
    from ..reporting.again import Given
    from .terminal import Display

# As in the library, whose modules with these names take long to import.
ESTIMATIONS = ("variational", "em")
DUPLICATES = ("error", "first", "last", "mean")
ABSTAIN = ("ignore", "answer")
CALIBRATIONS = ("hidden answers", "gold", "none")
PRIORS = ("learn", "uniform")
_COLUMNS = (*ROLES, "order", "gold")
# What a fit in memory takes for each answer at most, reading included (measured: 60 to 90 bytes).
BYTES_PER_ANSWER = 100
# Options, models and forms of tables that need all answers, or all labels, in memory.
_IN_MEMORY = (
    *("items", "graph", "knn", "features", "item_prior", "background", "gold_column", "order"),
    *("undecided", "disagreements", "content", "abstain", "normalise", "ignore"),
)
_MODELS_IN_MEMORY = ("moments", "markov-field")
_DEFAULTS: dict[str, object] = {"abstain": "ignore", "normalise": False, "ignore": ()}
_FLAGS = {"gold_column": "--columns gold=..."}

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


class Options(SimpleNamespace):
    """The arguments of the command, by the names of its parameters; `gold_column` is the role gold of `--columns`."""


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


_GROUPS = read_options(
    f"""
    Options:
      -o, --output FILE  Write labels or spans here: a table ({shared.TABLES}); or if SOURCE is of an annotation tool
          or holds masks, a file or folder of the same kind.
      {shared.REPORT}
      --save FILE  Write the fitted model here, with the answers, for consilience.load.
      {shared.PRINTING}
    Columns:
      --item COL  Column of items, if not item, task, question, id or the like.
      --worker COL  Column of workers, if not worker, annotator, judge or the like.
      --label COL  Column of answers, if not label, answer, response or the like.
      --sequence COL  Column of sequences, whose positions are the items.
      --position COL  Column of positions in a sequence.
      --weight COL  Column of weights in (0, 1].
      --order COL  Column of times or numbers: when answers were given. Tells who gets worse.
      --columns ROLE=COL,...  Several columns at once: item=HITId,label=Answer.x. The role gold is a column of known
          labels.
      {shared.IGNORE}
    Answers:
      --format NAME  Format of SOURCE, if it is not recognised; see `consilience formats`.
      --classes A,B,...  What can be true. Default: all labels.
      {shared.DROP_MISSING}
      --duplicates [{"|".join(DUPLICATES)}]  What to do when a worker answered an item more than once. [default: error]
      --abstain [{"|".join(ABSTAIN)}]  What a worker's silence about an item means: nothing, or an answer, as of
          labelling functions. [default: ignore]
      --background LABEL  With --abstain answer: the class of items about which all are silent.
      {shared.NORMALISE}
      --items FILE  Items that exist even if nobody answered them, in the order wanted.
    Known labels:
      --gold FILE  Known labels: a table with item (or sequence, position) and label, gold or truth; for spans and masks
          also a file, table or folder of known ones. May be given several times.
      --ignore-gold  Do not use a column of known labels beside the answers.
    Content and graph:
      --content COL  With --report: the column of SOURCE with the text of each item, or the path of its picture.
      --features FILE  Numbers that describe the items, by which a classifier guides the labels: a table with a column
          item, or .npy or .npz with a row for each item, in order.
      --item-prior FILE  Class probabilities of items before any answer: a table with a column item and one for each
          class.
      --graph FILE  Edges between items: a table with columns source and target, and perhaps weight.
      --knn FILE  Features (.npy, or .npz of scipy); row n is item n. Neighbours are linked.
      --k N  Neighbours of each item for --knn. [default: 10]
    Model:
      --model [{"|".join(("auto", *MODELS))}]  How to fuse: auto is markov-field with a graph, hidden-markov for
          sequences, else dawid-skene. [default: auto]
      --estimation [{"|".join(ESTIMATIONS)}]  How to fit. Default: variational.
      --prior A=P,B=P,...  How frequent the classes are, if that is known; or uniform. Default: learn.
      --calibration HOW  What probabilities are calibrated by: hidden-answers, gold, none, or a power. Default:
          hidden-answers.
      --max-iter N  Most iterations. Default: the model's.
      --seed N  Seed of all that is random. Default: 0.
    Outputs:
      {shared.WORKERS_REPORT}
      --disagreements FILE  With --features: write a table of the items for which classifier and workers call for
          different labels.
      --undecided P  Leave labels open whose confidence is below P. The summary says how many are kept.
      --no-answers  With --save: leave the answers, and the graph, out of the file.
      --all-workers  Show all workers, not only the most and the least reliable.
    Size:
      --memory SIZE  Sort the answers into a store on disk with so much memory, such as 4GB, and fuse them from there.
          Default: on disk only if they would not fit in memory.
      --store FOLDER  Where stores are kept. Default: the user's cache folder.
      --resume  Go on where an earlier run on disk was interrupted.
      --engine [{"|".join(ENGINES)}]  Where to work. [default: threads]
      --threads N  Number of threads. Default: all processors.
      --scheduler ADDRESS  With --engine dask: a running cluster, such as tcp://10.0.0.1:8786.
    """,
    {
        "--columns": {"callback": _read_columns},
        "--classes": {"callback": _split_classes},
        "--prior": {"callback": _read_prior},
        "--calibration": {"callback": _read_calibration},
        "--format": {"type": shared.NAMES},
        "--seed": {"type": shared.COUNT_OR_NONE},
        "--undecided": {"type": shared.SHARE},
        "--content": shared.OF_REPORT,
        "--k": {"needs": ["--knn"], "reason": "it says to how many others each item is linked"},
        "--knn": {"clashes": {"--graph": "--graph and --knn both make a graph: give one of them."}},
        "--disagreements": {"needs": ["--features"], "reason": "a classifier learns from these"},
        "--no-answers": {"needs": ["--save"], "reason": "it says what the file of the model holds"},
        "--store": {"needs": ["--memory", "--resume"], "reason": "it says where answers on disk are kept"},
        "--scheduler": {"needs": ["--engine dask"]},
        "--threads": {"clashes": {"--engine dask": "--threads does not go with --engine dask. Leave it out."}},
        "--ignore-gold": {
            "clashes": {
                "--gold": "--ignore-gold does not go with --gold: a column of known labels is not used beside them. "
                "Leave out one of them.",
                "--columns gold": "--ignore-gold does not go with --columns gold=...: it leaves out that column. Leave "
                "out one of them.",
            }
        },
    },
)


@click.command(cls=Command, epilog=_EXAMPLES, help=_HELP, groups=_GROUPS)
@click.argument("source", nargs=-1, required=True, metavar="SOURCE", callback=_take_one)
def fuse(columns: dict[str, str], **arguments: Any) -> None:
    """Fuse the answers in a file into one label per item: read, fit, write, and only then print."""
    from .fuse_tables import print_summary
    from .summary import summarise, tabulate_workers
    from .terminal import Display

    started = time.perf_counter()
    for role, name in columns.items():
        if arguments.get(role) not in (None, name) and role != "gold":
            raise click.UsageError(f"--{role} and --columns name different columns for the {role}. Name one.")
    roles = {role: name for role, name in columns.items() if role != "gold"}
    options = Options(**arguments | roles, gold_column=columns.get("gold"))
    on_disk = goes_to_disk(options)
    found = check_inputs(options, on_disk)
    target = check_files(options, found, on_disk)
    engine = open_engine(options)
    with Display(is_asked("quiet")) as display:
        prepared = open_inputs(options, display, found, engine if on_disk else None)
        display.say("Fitting")
        model = fit(options, prepared, engine, display)
        labels, workers = None if on_disk else model.to_frame(), tabulate_workers(model)
        summary = summarise(model, prepared, labels, workers, options)
        if options.undecided is not None:
            labels = model.to_frame(undecided=options.undecided)
        display.say("Writing")
        kind, write_result = choose_writer(model, labels, target, engine)
        files = write_files(options, model, workers, kind, write_result)
    summary = replace(summary, files=files, seconds=round(time.perf_counter() - started, 3))
    tell(lambda: asdict(summary), lambda: print_summary(summary))


def goes_to_disk(options: Options) -> bool:
    """Tell whether answers are fused from disk: if memory is limited, or if they would not fit in what there is."""
    if options.memory is not None or options.resume:
        return True
    if options.source == "-" or not _are_large(options.source):
        return False
    from ..errors import ConsilienceError
    from ..formats.scanning import scan_table
    from ..memory import available_memory

    try:
        n_rows = sum(scan_table(options.source, options.format).sizes)
    except ConsilienceError:
        return False  # whoever reads it as a whole says what is wrong
    return n_rows * BYTES_PER_ANSWER > available_memory()


def _are_large(source: str) -> bool:
    """Tell whether files are so large that it is worth counting their rows."""
    folder = os.path.join(source, "*") if os.path.isdir(source) else source
    files = [source] if os.path.isfile(source) else glob.glob(folder, recursive=True)
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file)) > 1 << 28


def check_inputs(options: Options, on_disk: bool) -> Format | None:
    """Return the format of a tool that the source has, None for a table; raise an error for what does not go."""
    from ..formats.sources import find_source

    if on_disk:
        refuse_on_disk(options)
        return None
    if _list_inputs(options).count("-") > 1:
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    return find_source(options.source, options.format)


def refuse_on_disk(options: Options) -> None:
    """Raise an error for what needs all answers, or all labels, in memory."""
    flags = [
        _FLAGS.get(name, f"--{name.replace('_', '-')}")
        for name in _IN_MEMORY
        if getattr(options, name) != _DEFAULTS.get(name)
    ]
    if options.model in _MODELS_IN_MEMORY:
        flags.append(f"--model {options.model}")
    if any(options.format == each.name for each in DIALECTS):
        flags.append(f"--format {options.format}")
    if flags:
        limited, leave = options.memory is not None or options.resume, "it" if len(flags) == 1 else "them"
        raise click.UsageError(
            f"Answers on disk do not go with {', '.join(flags)}. "
            + (
                f"Leave {leave} out, or read all answers into memory: without --memory and --resume."
                if limited
                else "These answers would take more memory than there is, so they are fused on disk. Leave "
                f"{leave} out, or fuse a part of the answers."
            )
        )
    if options.source == "-":
        raise click.UsageError("Answers on disk cannot come from standard input. Give a file, a folder or a pattern.")


def _list_inputs(options: Options) -> list[str | None]:
    named = ("source", "graph", "knn", "features", "item_prior", "items")
    return [*(getattr(options, name) for name in named), *options.gold]


def check_files(options: Options, found: Format | None, on_disk: bool) -> Format | None:
    """Return the format in which results go back to the tool they come from, None for a table; check all outputs."""
    from ..formats.files import is_folder
    from ..formats.targets import choose_target
    from ..results.label_files import check_folder, is_one_file
    from .outputs import check_folder as check_input
    from .outputs import check_outputs, check_page

    output, source = options.output, options.source
    tables, others = [options.workers_report, options.disagreements], [options.save, options.report]
    target = None if output is None or on_disk else choose_target(output, source, found)
    if output is not None and on_disk and not is_one_file(output):
        check_input(output, source)
        check_folder(Path(output))
    elif output is not None and target is not None and is_folder(output):
        check_input(output, source)
    else:
        (tables if target is None else others).insert(0, output)
    check_outputs(tables, others, _list_inputs(options))
    if options.report is not None:
        check_page(options.report)
        if options.content is not None and source == "-":
            raise click.UsageError("--content cannot be read from standard input. Give a file.")
    if target is not None and options.undecided is not None:
        raise click.UsageError("--undecided is for tables of labels. Leave it out, or write a table.")
    return target


def open_engine(options: Options) -> Any:
    """Return the engine asked for; only the name of one that has to be closed in the end."""
    from ..engines.local import Threads

    if options.scheduler is not None:
        os.environ["DASK_SCHEDULER_ADDRESS"] = options.scheduler  # which Dask reads when it is loaded
    return Threads(options.threads) if options.engine == "threads" else options.engine


def open_inputs(options: Options, display: Display, found: Format | None, storing: Any) -> Prepared:
    """Open the answers, which are of the format that was found, known labels and the graph.

    Answers are sorted into a store on disk if an engine is given for that.
    """
    from ..answers.graph import Graph
    from ..formats.arrays import read_features
    from ..preparing import prepare
    from ..storage.scanning import scan_responses
    from .terminal import fit_text

    gold = list(options.gold) or None
    # The columns named for the answers are taken from files of known labels too, where these have them.
    names = {role: getattr(options, role) for role in ("item", "sequence", "position")}
    gold_columns = {**names, "known label": options.label}
    columns = {name: getattr(options, name) for name in (*ROLES, "classes", "duplicates", "drop_missing", "format")}
    if storing is not None:
        display.say(f"Sorting {fit_text(options.source, 50)} on disk")
        settings = {"store": options.store, "engine": storing, "resume": options.resume}
        stored = scan_responses(options.source, options.memory, **settings, **columns)
        return prepare(stored, None, gold, None, gold_columns)
    display.say(f"Reading {fit_text(options.source, 50)}")
    features = None if options.knn is None else read_features(options.knn)
    graph = options.graph if features is None else Graph.knn(features, options.k)
    columns |= {name: getattr(options, name) for name in ("items", "abstain", "background", "normalise", "order")}
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


def fit(options: Options, prepared: Prepared, engine: Any, display: Display) -> Any:
    """Return the fitted model."""
    from ..api import fuse_prepared

    names = ("estimation", "prior", "calibration", "max_iter", "seed")
    parameters = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    content = options.features, options.item_prior
    return fuse_prepared(prepared, options.model, engine, display.show_iteration, *content, parameters)


def choose_writer(
    model: Any, labels: pa.Table | None, target: Format | None, engine: Any
) -> tuple[str, Callable[[str], object]]:
    """Return what the results are called, and what writes them: as a table, or in the format of their source."""
    from ..formats.targets import ResultWriters
    from ..formats.writing import write_table

    found = model.fusion_
    task = found.task
    if labels is None:
        return task.results, lambda path: model.write(path, engine)
    if target is None:
        return task.results, lambda path: write_table(task.tabulate(found, labels), path)
    return task.results, lambda path: task.write(found, labels, path, ResultWriters(target))


def write_files(
    options: Options, model: Any, workers: pa.Table, kind: str, write_result: Callable[[str], object]
) -> dict[str, str]:
    """Write the files asked for; return what is where."""
    from ..formats.writing import write_table
    from .outputs import write_together

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
    given = split_arguments("fuse", options.gold or (options.source,))
    given = given._replace(keeps=bool(options.gold) and model.fusion_.task.cut_by_known)
    write_page(model, path, content, title, os.path.dirname(options.source), given)


def split_arguments(command: str, gold: Sequence[str]) -> Given:
    """Return the command that runs, as it was typed, without known labels, in two parts: others belong between them."""
    from ..reporting.again import Given

    typed = [command, *click.get_current_context().meta[TYPED]]
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
