"""All commands with their options and help; the modules that do what they say are imported when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from .. import formats as register
from ..answers import list_names
from ..engines import ENGINES
from ..formats import readable_formats, span_formats, usual_suffixes, writable_formats
from ..models.register import MODELS
from .command import Command, declare

TABLES = usual_suffixes(writable_formats())
PRINTING = ["quiet", "as_json", "debug"]
OUTPUT = ["output", *PRINTING]


def list_formats() -> list[str]:
    """Names of formats of files, and of forms of tables, that the registers have by now."""
    return [*(each.name for each in register.FORMATS), *list_names(), "one-hot"]


CHOICES: dict[str, Callable[[], Sequence[str]]] = {
    "model": lambda: ["auto", *MODELS],
    "engine": lambda: list(ENGINES),
    "format": list_formats,
    "to": lambda: [*(each.name for each in span_formats()), "masks", "long", "wide"],
    "file_format": lambda: [each.name for each in writable_formats()],
}


def take_one(ctx: click.Context, parameter: click.Parameter, sources: tuple[str, ...]) -> str:
    """Return the one source; there are several where a shell has replaced a pattern by names."""
    if len(sources) > 1:
        problem = f"one file, folder or pattern is expected, and {len(sources)} were given."
        remedy = "Quote a pattern, so that the shell leaves it alone: 'answers/*.csv'."
        raise click.BadParameter(f"{problem} {remedy}", ctx, parameter)
    return sources[0]


def take_source() -> click.Argument:
    """The argument SOURCE."""
    return click.Argument(["source"], nargs=-1, required=True, metavar="SOURCE", callback=take_one)


@declare(
    "fuse:fuse",
    {
        "Options": ["output", "report", "save", *PRINTING],
        "Columns": [
            *("item", "worker", "label", "labels", "wide", "settings", "sequence", "position", "weight", "order"),
            *("gold_column", "columns", "ignore"),
        ],
        "Answers": [
            *("format", "separator", "classes", "ordered", "positions", "drop_missing", "rescale", "duplicates"),
            *("abstain", "background", "normalise", "block", "source_kind", "items"),
        ],
        "Known labels": ["gold", "ignore_gold"],
        "Content and graph": ["content", "features", "item_prior", "graph", "knn", "k"],
        "Model": ["model", "estimation", "prior", "calibration", "label_by", "max_iter", "seed"],
        "Outputs": ["workers_report", "disagreements", "undecided", "no_answers", "all_workers"],
        "Size": ["memory", "store", "resume", "engine", "threads", "scheduler"],
    },
    take_source(),
    choices=CHOICES,
    note=TABLES,
)
def fuse() -> None:
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
    consilience fuse batch_results.csv --columns label=Answer.category -o labels.csv
    consilience fuse tags.csv --separator ';' -o sets.csv
    consilience fuse label-studio-export.json -o fused.json
    """


fuse.help = str(fuse.help).replace(
    "TABLES", usual_suffixes(each for each in readable_formats() if each.kind == "table")
)


@declare(
    "rank:rank",
    {
        "Options": ["output", "report", "save", *PRINTING],
        "Columns": ["left", "right", "winner", "worker", "item", "group", "weight"],
        "Scores instead of verdicts": ["candidate", "score", "rank"],
        "Known verdicts": ["gold"],
        "Model": ["discrimination", "position_bias", "max_iter", "seed"],
        "Outputs": ["judges_report", "wins", "next_comparisons", "n"],
    },
    take_source(),
    short="Rank candidates by verdicts on pairs of them.",
    note=TABLES,
)
def rank() -> None:
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
    "saved:update",
    {
        "Options": ["output", "report", "save", *PRINTING],
        "Answers": ["duplicates"],
        "Known labels": ["gold"],
        "Model": ["label_by"],
        "Content and graph": ["content", "graph"],
        "Outputs": ["changes", "workers_report"],
    },
    click.Argument(["model"]),
    click.Argument(["source"], required=False),
    short="Add answers to a saved model, and fuse all of them.",
    note=TABLES,
)
def update() -> None:
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
    "saved:predict",
    {"Options": OUTPUT, "Known labels": ["gold"], "Model": ["label_by"], "Graph": ["graph"]},
    click.Argument(["model"]),
    click.Argument(["source"]),
    short="Label items by what a saved model knows of the workers.",
    note=TABLES,
)
def predict() -> None:
    """Label the items in SOURCE by what a saved model knows of the workers. The model does not change.

    MODEL is a file written by `fuse --save`. SOURCE is read as its answers were: columns of the same names play the
    same roles. The answers in MODEL are not looked at: to add answers to its items, use `update`.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience predict crowd.model more.csv -o labels.csv
    """


@declare(
    "saved:report",
    {"Options": OUTPUT, "Content": ["content", "source_kind"]},
    click.Argument(["model"]),
    short="Write a report on a saved model: one HTML page.",
)
def report() -> None:
    """Write a report on a saved model: one HTML page to look at and to send.

    MODEL is a file written by `fuse --save` or `rank --save`. The page needs no network. It says whether to trust the
    labels, whom to talk to and what to look at, and lets you review items.

    Examples
    --------
    consilience fuse answers.csv --save crowd.model
    consilience report crowd.model -o report.html
    """


@declare(
    "saved:explain",
    {"Options": PRINTING},
    click.Argument(["model"]),
    click.Argument(["item"]),
    click.Argument(["position"], required=False),
    short="Say why an item has its label: who said what, and what it weighed.",
)
def explain() -> None:
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
    "saved:next_items",
    {
        "Options": ["n", "at_random", *OUTPUT],
        "Questions to workers": ["questions", "workers", "budget", "cost", "per_worker", "asked"],
        "Items that are certain": ["stop"],
    },
    click.Argument(["model"]),
    name="next",
    short="List the items to label next, or the questions to ask.",
    note=TABLES,
)
def next_items() -> None:
    """List the items that a person should label next, or the questions that workers should be asked.

    MODEL is a file written by `fuse --save`. Items whose probabilities are spread most evenly over the classes (by
    entropy) come first, and two of ten are drawn at random. The file that -o writes has an empty column label. Fill it
    in, and give the file to `fuse --gold`. Of spans it lists single words, and the column text has the word.

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
    "files:evaluate",
    {
        "Options": PRINTING,
        "Columns": ["item", "label", "sequence", "position"],
        "Labels": ["separator", "normalise", "ordered", "classes"],
    },
    click.Argument(["labels"]),
    click.Argument(["gold"]),
)
def evaluate() -> None:
    """Compare labels with known ones.

    LABELS is a file written by `fuse -o`. GOLD has columns item (or sequence, position) and label, gold or truth.
    Probabilities are judged too, if LABELS has them, and spans, if the labels of sequences are IOB2 tags. Both may also
    be files of an annotation tool with spans, GOLD with known ones or those of one worker, LABELS written by `fuse -o`;
    or tables of spans, with columns document, start, end and label.

    LABELS may also be a ranking, as `rank -o` or `rank --save` wrote it. GOLD then has columns candidate and score or
    rank; or left, right and winner.
    """


@declare(
    "files:convert",
    {
        "Options": ["to", "format", *PRINTING],
        "Columns": ["item", "worker", "label", "sequence", "position", "weight", "ignore"],
        "Answers": ["separator", "drop_missing", "rescale"],
    },
    click.Argument(["source"], metavar="IN"),
    click.Argument(["target"], metavar="OUT"),
    short="Convert the annotations of all workers to another format.",
    choices=CHOICES,
)
def convert() -> None:
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


@declare("files:formats", {"Options": ["as_json", "debug"]}, short="List the formats that can be read and written.")
def formats() -> None:
    """List all formats: what is read from each, what is written, and how it is recognised.

    Names are those of `--format` of `fuse`, and of `--from` and `--to` of `convert`.
    """


@declare("simulate:demo", {"Options": ["debug"]}, short="Fuse a made-up crowd, compare with the truth, write a report.")
def demo() -> None:
    """Fuse the answers of a made-up crowd, compare with the truth, and write a report.

    demo-answers.csv and demo-report.html are written to the current folder. The report needs the extra: pip install
    'consilience[report]'.
    """


@click.group(short_help="Write the answers of a made-up crowd, and the truth.")
def simulate() -> None:
    """Write the answers of a made-up crowd, and the truth behind them, to files.

    To see what a plan is worth before paying for it: how many answers per item, of workers how good?
    """


def declare_simulator(items: Sequence[str], *crowd: str) -> Callable[[Callable[[], None]], Command]:
    """What makes the command of a simulator, with options of its items and of the crowd."""
    groups = {"Options": ["folder", *PRINTING], "Items": items, "Crowd": crowd, "Files": ["file_format", "force"]}

    def make(function: Callable[[], None]) -> Command:
        command = declare(f"simulate:draw_{function.__name__}", groups, choices=CHOICES)(function)
        simulate.add_command(command)
        return command

    return make


WORKERS = (
    *("good", "n_workers", "n_classes", "answers_per_item", "accuracy", "spammers", "adversaries", "copycats"),
    *("hard", "activity", "seed"),
)


@declare_simulator(["n_items", "prior"], *WORKERS)
def independent() -> None:
    """Items that have nothing to do with each other."""


@declare_simulator(["n_sequences", "length", "stickiness"], *WORKERS)
def sequences() -> None:
    """Sequences of items whose labels form a Markov chain."""


@declare_simulator(["n_items", "degree", "homophily", "prior"], *WORKERS)
def network() -> None:
    """Items in a network that links like with like."""


@declare_simulator(["n_items", "levels", "prior"], "n_raters", "per_item", "bias", "spread", "careless", "seed")
def ratings() -> None:
    """Ratings on a scale by harsh and lenient raters."""


COMMANDS = (fuse, rank, update, predict, evaluate, report, explain, next_items, convert, formats, simulate, demo)
