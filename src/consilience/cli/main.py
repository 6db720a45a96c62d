"""The program `consilience`: all commands with their options and help.

Modules that do what a command says are imported when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from inspect import cleandoc
from textwrap import indent
from typing import Any

import click

from .. import __version__
from .. import formats as register
from ..answers import list_names
from ..engines import ENGINES
from ..formats import readable_formats, span_formats, usual_suffixes, writable_formats
from ..models import MODELS
from .command import ENDINGS, FAILURE, IS_PROCESS, Command, Parameter, describe_signal, show_usage_error

TABLES = usual_suffixes(writable_formats())
READ_TABLES = usual_suffixes(each for each in readable_formats() if each.kind == "table")
PRINTING_OPTIONS = "quiet as_json debug"


class Program(click.Group):
    """The program. Its messages are never too long, and an interruption ends it in the same way wherever it comes."""

    def main(  # type: ignore[override]  # click's is overloaded
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **more: Any
    ) -> Any:
        """Run the command that the arguments name; exit if this is the whole of the program."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **more)
        try:
            code = super().main(args, standalone_mode=False, **more)
            sys.stdout.flush()
        except click.ClickException as error:
            code = show_usage_error(error)
        except click.Abort as abort:  # click's word for an interruption
            code, message = describe_signal(abort.__cause__)
            print(message, file=sys.stderr)
        except OSError as error:  # the output cannot be printed: nobody reads it, or the disk is full
            code = FAILURE
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again at its end
            with suppress(OSError):
                print("" if isinstance(error, BrokenPipeError) else f"Failure: {error}.\n", end="", file=sys.stderr)
        sys.exit(code)


@click.group(
    "consilience", cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Fuse the answers of many fallible workers into one label per item, with the model's probability for each class.

    Start with `consilience demo`, then `consilience fuse answers.csv`.
    """


def main() -> None:
    """Run the program with the arguments of this process."""
    # While modules are loaded nearly all objects stay: looking for cycles among them takes a tenth of a short run.
    gc.set_threshold(100_000)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it is closed, and the next file to be opened would take its place
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # Text that a terminal's encoding does not know is shown by its code, and stops nothing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def stop(number: int, _: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number))

    for name in ENDINGS:  # signals interrupt what is done, so that it is undone; those that are ignored stay so
        known = getattr(signal, name, None)
        if known is not None and signal.getsignal(known) is signal.SIG_DFL:
            signal.signal(known, stop)
    program(prog_name="consilience", obj=IS_PROCESS)


# What options may be, as the registers have it when they are given.
CHOICES: dict[str, Callable[[], Sequence[str]]] = {
    "model": lambda: ["auto", *MODELS],
    "engine": lambda: list(ENGINES),
    "format": lambda: [*(each.name for each in register.FORMATS), *list_names(), "one-hot"],
    "to": lambda: [*(each.name for each in span_formats()), "masks", "long", "wide"],
    "file_format": lambda: [each.name for each in writable_formats()],
}


def declare(
    name: str, run: str, arguments: str, parent: click.Group = program, **groups: str
) -> Callable[[Callable[[], None]], None]:
    """Add a command, whose help is the docstring of a function without a body.

    Parameters
    ----------
    name : str
        What users type.
    run : str
        The function that does it, and its module in this package, which is not imported before: "fuse:run_fuse".
    arguments : str
        What is given without a name; "[position]" may be left out, and "source..." is one after all.
    parent : click.Group
        The group that it is in.
    **groups : str
        Names of options, by the titles under which the help lists them.
    """

    def run_later(**given: object) -> None:
        home, _, function = run.partition(":")
        getattr(import_module(f".{home}", __package__), function)(**given)

    def add(function: Callable[[], None]) -> None:
        text, _, examples = cleandoc(function.__doc__ or "").partition("\n\nExamples\n--------\n")
        lines = indent(examples, "  ").replace("\n\n", "\n\n\b\n")  # \b keeps lines apart
        options: dict[str, list[click.Option]] = {
            title.capitalize().replace("_", " "): [
                Parameter(each, (name, parent.name or ""), TABLES, CHOICES.get(each)) for each in names.split()
            ]
            for title, names in groups.items()
        }
        parent.add_command(
            Command(
                name,
                callback=run_later,
                params=[name_argument(each) for each in arguments.split()],
                help=text.replace("TABLES", READ_TABLES),
                epilog=f"\b\nExamples:\n{lines}" if examples else None,
                short_help=f"{re.split('[.:,]', text)[0]}.",
                groups=options,
            )
        )

    return add


def name_argument(text: str) -> click.Argument:
    """An argument, as `declare` has it."""
    name = text.strip("[].")
    if text.endswith("..."):
        return click.Argument([name], nargs=-1, required=True, metavar=name.upper(), callback=take_one)
    metavar = {"origin": "IN", "target": "OUT"}.get(name)
    return click.Argument([name], required=not text.startswith("["), metavar=metavar)


def take_one(ctx: click.Context, parameter: click.Parameter, sources: tuple[str, ...]) -> str:
    """The one source; there are several where a shell has replaced a pattern by names."""
    if len(sources) > 1:
        problem = f"one file, folder or pattern is expected, and {len(sources)} were given."
        remedy = "Quote a pattern, so that the shell leaves it alone: 'answers/*.csv'."
        raise click.BadParameter(f"{problem} {remedy}", ctx, parameter)
    return sources[0]


@declare(
    "fuse",
    "fuse:run_fuse",
    "source...",
    options=f"output report save {PRINTING_OPTIONS}",
    columns="item worker label wide settings sequence position weight order gold_column ignore",
    answers=(
        "format kind separator classes ordered positions drop_missing rescale duplicates abstain background "
        "normalise block source_kind items"
    ),
    known_labels="gold ignore_gold teach",
    content_and_graph="content features item_prior graph knn k",
    model="model estimation prior calibration label_by average scale max_iter seed",
    outputs="workers_report disagreements undecided no_answers all_workers",
    size="memory store resume engine threads scheduler",
)
def fuse_answers() -> None:
    """Fuse the answers in SOURCE into one label per item.

    SOURCE is a table of answers, one per row: a file (TABLES), a folder, a quoted pattern
    such as 'answers/*.csv', or - for standard input. Results of platforms, tables with one column per worker, matrices
    (.npy), files of annotation tools and folders of masks are recognised; `consilience formats` lists them all. Where
    workers marked spans in texts, spans are fused. Probabilities are calibrated by hidden answers, and still too high
    where workers err together unless there are known labels. Without -o nothing is written, and only a summary is
    printed.

    Examples
    --------
    consilience fuse answers.csv -o labels.parquet
    consilience fuse answers.csv --item question --gold known.csv --json
    consilience fuse batch_results.csv --label Answer.category -o labels.csv
    consilience fuse tags.csv --separator ';' -o sets.csv
    consilience fuse label-studio-export.json -o fused.json
    """


@declare(
    "rank",
    "rank:run_rank",
    "source...",
    options=f"output report save {PRINTING_OPTIONS}",
    columns="left right winner worker item group weight",
    scores_instead_of_verdicts="candidate score rank",
    known_verdicts="gold",
    model="discrimination position_bias max_iter seed",
    outputs="judges_report wins next_comparisons n",
)
def rank_candidates() -> None:
    """Rank candidates by the verdicts in SOURCE on pairs of them, and weigh the judges.

    SOURCE is a table with one verdict per row: the two candidates, and which of them won: its name, or left, right or
    tie; A, B or tie; 1, 2 or 0; >, < or =. Files of arenas (model_a, model_b, winner) and crowd-kit (worker, left,
    right, label) are recognised. It may be a file, a folder, a quoted pattern, or - for standard input. Judges who toss
    coins hardly count, and the preference of judges for one side is taken out. Without -o nothing is written.

    Examples
    --------
    consilience rank battles.csv -o ranking.csv
    consilience rank battles.csv -o ranking.csv --report ranking.html --judges-report judges.csv
    consilience rank battles.csv --next-comparisons next.csv -n 100
    consilience rank ratings.csv --candidate model --score stars -o ranking.csv
    """


@declare(
    "update",
    "saved:run_update",
    "model [source]",
    options=f"output report save {PRINTING_OPTIONS}",
    answers="duplicates",
    known_labels="gold",
    model="label_by",
    content_and_graph="content graph",
    outputs="changes workers_report",
)
def update_model() -> None:
    """Add the answers in SOURCE to a saved model, and fuse all of them.

    MODEL is a file written by `fuse --save`. SOURCE is read as its answers were: columns of the same names play the
    same roles. Items, workers and labels may be new. MODEL is replaced, together with the labels, when all is done. If
    another run replaced it meanwhile, the update stops and writes nothing.

    Examples
    --------
    consilience fuse monday.csv -o labels.parquet --save crowd.model
    consilience update crowd.model tuesday.csv -o labels.parquet
    consilience update crowd.model corrections.csv --duplicates last --changes changes.csv
    """


@declare(
    "predict",
    "saved:run_predict",
    "model source",
    options=f"output {PRINTING_OPTIONS}",
    known_labels="gold",
    model="label_by",
    graph="graph",
)
def predict_labels() -> None:
    """Label the items in SOURCE by what a model knows of the workers. The model does not change.

    MODEL is a file written by `fuse --save`. SOURCE is read as its answers were: columns of the same names play the
    same roles. The answers in MODEL are not looked at: to add answers to its items, use `update`.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience predict crowd.model more.csv -o labels.csv
    """


@declare(
    "evaluate",
    "files:run_evaluate",
    "labels gold",
    options=PRINTING_OPTIONS,
    columns="item label sequence position",
    labels="separator normalise ordered classes",
)
def evaluate_labels() -> None:
    """Compare labels with known ones.

    LABELS is a file written by `fuse -o`. GOLD has columns item (or sequence, position) and label, gold or truth.
    Probabilities are judged too, if LABELS has them, and spans, if the labels of sequences are IOB2 tags. Both may also
    be files of an annotation tool with spans, GOLD with known ones or those of one worker, LABELS written by `fuse -o`;
    or tables of spans, with columns document, start, end and label.

    LABELS may also be a ranking, as `rank -o` or `rank --save` wrote it. GOLD then has columns candidate and score or
    rank; or left, right and winner.
    """


@declare(
    "estimate",
    "counting:run_estimate",
    "labels known",
    options=f"output at_least {PRINTING_OPTIONS}",
    counts="of by pairs item",
)
def estimate_shares() -> None:
    """Estimate how many items are of each class, or a mean: with intervals that hold, by some known labels.

    LABELS is a model written by `fuse --save`, or a table with a row for each item and columns p(<class>), one
    judge's labels, or numbers. KNOWN has columns item (or sequence, position) and label: those of items that were drawn
    at random, such as `next --known` lists. What LABELS says of all items is corrected by what it says of these.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience next crowd.model --known 100 -o known.csv
    consilience estimate crowd.model known.csv
    consilience estimate labels.parquet known.csv --of yes --by system --pairs prompt -o systems.csv
    """


@declare("audit", "counting:run_audit", "model known", options=f"output {PRINTING_OPTIONS}", counts="by")
def audit_workers() -> None:
    """Judge each worker by known labels: accuracy with intervals, agreement beyond chance, and shared errors.

    MODEL is a file written by `fuse --save`. KNOWN has columns item (or sequence, position) and label: those of items
    that were drawn at random.

    Examples
    --------
    consilience fuse judges.csv --save judges.model
    consilience audit judges.model known.csv
    """


@declare("check", "counting:run_check", "source", options=PRINTING_OPTIONS)
def check_source() -> None:
    """Say what a file holds, what can be computed from it, and what to type next. Nothing is fitted.

    SOURCE is what `fuse` takes: a file, a folder or a quoted pattern.

    Examples
    --------
    consilience check answers.csv
    """


@declare("report", "saved:run_report", "model", options=f"output {PRINTING_OPTIONS}", content="content source_kind")
def report_model() -> None:
    """Write a report on a saved model: one HTML page to look at and to send.

    MODEL is a file written by `fuse --save` or `rank --save`. The page needs no network. It says whether to trust the
    labels, whom to talk to and what to look at, and lets you review items.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience report crowd.model -o report.html
    """


@declare("explain", "saved:run_explain", "model item [position]", options=PRINTING_OPTIONS)
def explain_item() -> None:
    """Say why an item has its label: who said what, how much each answer weighed, and what else had a say.

    MODEL is a file written by `fuse --save`. ITEM is the id of an item; if items are in sequences, that of a sequence,
    and POSITION is the place in it. Weights are log odds of the label against the most probable other class: 0.7
    doubles the odds, 2.3 makes them ten times as large. Their sum gives the odds of the probabilities.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience explain crowd.model 17
    consilience explain crowd.model document-3 12 --json
    """


@declare(
    "next",
    "saved:run_next",
    "model",
    options=f"n at_random known strata output {PRINTING_OPTIONS}",
    questions_to_workers="questions workers budget cost per_worker asked",
    items_that_are_certain="stop",
)
def list_next() -> None:
    """List the items that a person should label next, or the questions that workers should be asked.

    MODEL is a file written by `fuse --save`. Items whose probabilities are spread most evenly over the classes (by
    entropy) come first, and two of ten are drawn at random. The file that -o writes has an empty column label. Fill it
    in, and give the file to `fuse --gold`. Of spans it lists single words, and the column text has the word.

    With --known all items are drawn at random, and the file has no fused labels, which would lead the person: give it
    to `estimate`. With --strata more of the uncertain ones are drawn.

    With --questions the list has an item and a worker in each row: those whose answers are expected to tell most about
    the labels, for what they cost. With --stop it has the items that are certain enough to stop paying for. Of a
    ranking (`rank --save`) it lists the comparisons to ask for.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience next crowd.model -n 50 -o items.csv
    consilience fuse answers.csv --gold items.csv -o labels.csv

    consilience next crowd.model --questions -n 200 --per-worker 20 -o questions.csv
    consilience update crowd.model questions.csv -o labels.csv
    consilience next crowd.model --questions --workers available.csv --budget 50
    consilience next crowd.model --stop 0.95 -o done.csv
    """


@declare(
    "convert",
    "files:run_convert",
    "origin target",
    options=f"to format {PRINTING_OPTIONS}",
    columns="item worker label sequence position weight ignore",
    answers="separator drop_missing rescale",
)
def convert_annotations() -> None:
    """Convert all annotations of all workers from one format to another.

    IN is anything that `consilience fuse` takes. Spans are written for another annotation tool, or as a table with one
    row per span. Answers are written as a table with one row per answer, or with one column per worker. Masks are
    written to a folder. What cannot be written in the new format is told.

    Examples
    --------
    consilience convert label-studio-export.json brat-folder --to brat
    consilience convert batch_results.csv answers.parquet
    consilience convert answers.csv wide.csv --to wide
    """


@declare("formats", "files:list_formats", "", options="as_json debug")
def show_formats() -> None:
    """List all formats: what is read from each, what is written, and how it is recognised.

    Names are those of `--format` of `fuse`, and of `--from` and `--to` of `convert`.
    """


@program.group(short_help="Write the answers of a made-up crowd, and the truth.")
def simulate() -> None:
    """Write the answers of a made-up crowd, and the truth behind them, to files.

    To see what a plan is worth before paying for it: how many answers per item, of workers how good?
    """


CROWD = "good n_workers n_classes answers_per_item accuracy spammers adversaries copycats hard activity seed"
RATERS = "n_raters per_item bias spread careless seed"


def declare_simulator(kind: str, items: str, crowd: str = CROWD) -> Callable[[Callable[[], None]], None]:
    """Add the command of a simulator, with options of its items and of the crowd."""
    groups = {"options": f"folder {PRINTING_OPTIONS}", "items": items, "crowd": crowd, "files": "file_format force"}
    return declare(kind, f"simulate:draw_{kind}", "", simulate, **groups)


@declare_simulator("independent", "n_items prior")
def draw_independent() -> None:
    """Items that have nothing to do with each other."""


@declare_simulator("sequences", "n_sequences length stickiness")
def draw_sequences() -> None:
    """Sequences of items whose labels form a Markov chain."""


@declare_simulator("network", "n_items degree homophily prior")
def draw_network() -> None:
    """Items in a network that links like with like."""


@declare_simulator("ratings", "n_items levels prior", RATERS)
def draw_ratings() -> None:
    """Ratings on a scale by harsh and lenient raters."""


@declare("demo", "simulate:run_demo", "", options="debug")
def show_demo() -> None:
    """Fuse the answers of a made-up crowd, compare with the truth, and write a report.

    demo-answers.csv and demo-report.html are written to the current folder. The report needs the extra: pip install
    'consilience[report]'.
    """
