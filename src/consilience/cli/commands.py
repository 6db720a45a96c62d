"""All commands with their arguments, options and help; the modules that do what they say are imported when they run."""

from __future__ import annotations

import click

from ..engines import ENGINES
from ..formats import readable_formats, span_formats, usual_suffixes, writable_formats
from ..models.register import MODELS
from .command import Option, declare
from .options import (
    COUNT_OR_NONE,
    ROLES,
    SHARE,
    FormatName,
    Settings,
    Value,
    read_accuracy,
    read_calibration,
    read_classes,
    read_columns,
    read_good,
    read_length,
    read_numbers,
    read_options,
    read_prior,
    read_setting,
)

# As in the library, whose modules with these names take long to import.
ESTIMATIONS = ("variational", "em")
DUPLICATES = ("error", "first", "last", "mean")
ABSTAIN = ("ignore", "answer")
POLICIES = ("error", "last")  # for answers of a worker to an item that was answered before
LAYOUTS = ("long", "wide")
ACTIVITIES = ("equal", "unequal")
# Items or questions that are listed if nothing is said.
N_LISTED = 50

TABLES = usual_suffixes(writable_formats())

# Options that several commands share.
AS_JSON = "--json  Print one JSON object instead of tables."
DEBUG = "--debug  Show the traceback of an error."
PRINTING = f"""
  -q, --quiet  Print nothing but errors.
  {AS_JSON}
  {DEBUG}
"""
IGNORE = "--ignore COL  Where each worker has a column: one that holds no answers. May be given several times."
SEPARATOR = "--separator SIGN  What stands between the tags in a cell, such as ';': answers are sets of tags."
DROP_MISSING = "--drop-missing  Leave out rows without an answer."
RESCALE = "--rescale  Divide probabilities by their sum, if that is 1, or 100 of percentages, but for rounding."
NORMALISE = "--normalise  Take labels that differ only in case, spaces or Unicode form as the same."
REPORT = "--report FILE  Write a report here: one HTML page to look at and to send."
SOURCE_KIND = "--source-kind [people|functions|models]  Who gives the answers; words go by that. Default: recognised."
LABEL_BY = """
  --label-by [mode|median]  What a label is: the most probable class, or the median of ordered classes. Default: {}.
"""
WORKERS_REPORT = "--workers-report FILE  Write a table of all workers here; suffixes as for -o."
CONTENT = """
  --content FILE  What the items look like: a table with a column item (or sequence and position), and one with the text
      of each item or the path of its picture.
"""
COLUMNS = "\n".join(f"--{role} COL  In a table: the column of the {role}." for role in ROLES)
OF_REPORT: Settings = {"needs": ["--report"], "reason": "it says what the report shows of the items"}
OF_QUESTIONS: Settings = {"needs": ["--questions"]}
NOT_IGNORED = {
    "--gold": "--ignore-gold does not go with --gold: a column of known labels is not used beside them. Leave out one "
    "of them.",
    "--columns gold": "--ignore-gold does not go with --columns gold=...: it leaves out that column. Leave out one of "
    "them.",
}
NOT_WITH_STOP = "--stop lists all items that are certain enough. Leave out --questions and -n."
NOT_AT_RANDOM = "--at-random lists items for a person to label. Leave out --questions and --stop."


def take_one(ctx: click.Context, parameter: click.Parameter, sources: tuple[str, ...]) -> str:
    """Return the one source; there are several where a shell has replaced a pattern by names."""
    if len(sources) > 1:
        problem = f"one file, folder or pattern is expected, and {len(sources)} were given."
        remedy = "Quote a pattern, so that the shell leaves it alone: 'answers/*.csv'."
        raise click.BadParameter(f"{problem} {remedy}", ctx, parameter)
    return sources[0]


@declare(
    "fuse:fuse",
    read_options(
        f"""
        Options:
          -o, --output FILE  Write labels or spans here: a table ({TABLES}); or if SOURCE is of an annotation tool or
              holds masks, a file or folder of the same kind.
          {REPORT}
          --save FILE  Write the fitted model here, with the answers, for consilience.load.
          {PRINTING}
        Columns:
          --item COL  Column of items, if not item, task, question, id or the like. Several with commas: prompt,pair.
          --worker COL  Column of workers, if not worker, annotator, judge or the like.
          --label COL  Column of answers, if not label, answer, response or the like. Several are questions to the same
              workers. May be given several times.
          --labels PATTERN  Columns of answers to several questions, such as 'Answer.*'.
          --wide  With several questions: one row per item in the table of labels.
          --for QUESTION KEY=VALUE  What holds for one of several questions: separator, classes, ordered (yes or no),
              positions or gold, such as --for stars ordered=yes. May be given several times.
          --sequence COL  Column of sequences, whose positions are the items.
          --position COL  Column of positions in a sequence.
          --weight COL  Column of weights in (0, 1]: how probably an answer was given with care.
          --order COL  Column of times or numbers: when answers were given. Tells who gets worse.
          --columns ROLE=COL,...  Several columns at once: item=HITId,label=Answer.x. The role gold is a column of known
              labels.
          {IGNORE}
        Answers:
          --format NAME  Format of SOURCE, if it is not recognised; see `consilience formats`.
          {SEPARATOR}
          --classes A,B,...  What can be true. Default: all labels.
          --ordered/--unordered  Whether the classes are levels from low to high, such as ratings: those of --classes
              in their order, or numbers. Default: as the column of labels says.
          --positions X,Y,...  Where the levels are on their scale, such as 0,1,5. Default: 0,1,2,...
          {DROP_MISSING}
          {RESCALE}
          --duplicates [{"|".join(DUPLICATES)}]  What to do when a worker answered an item more than once.
              [default: error]
          --abstain [{"|".join(ABSTAIN)}]  What a worker's silence about an item means: nothing, or an answer, as of
              labelling functions. [default: ignore]
          --background LABEL  With --abstain answer: the class of items about which all are silent.
          {NORMALISE}
          --block FILE  Leave out the workers in this file: a table with a column worker.
          {SOURCE_KIND}
          --items FILE  Items that exist even if nobody answered them, in the order wanted.
        Known labels:
          --gold FILE  Known labels: a table with item (or sequence, position) and label, gold or truth; for spans and
              masks also a file, table or folder of known ones. May be given several times.
          --ignore-gold  Do not use a column of known labels beside the answers.
        Content and graph:
          --content COL  With --report: the column of SOURCE with the text of each item, or the path of its picture.
          --features FILE  Numbers that describe the items, by which a classifier guides the labels: a table with a
              column item, or .npy or .npz with a row for each item, in order.
          --item-prior FILE  Class probabilities of items before any answer: a table with a column item and one for each
              class.
          --graph FILE  Edges between items: a table with columns source and target, and perhaps weight.
          --knn FILE  Features (.npy, or .npz of scipy); row n is item n. Neighbours are linked.
          --k N  Neighbours of each item for --knn. [default: 10]
        Model:
          --model [{"|".join(("auto", *MODELS))}]  How to fuse: auto is markov-field with a graph, hidden-markov for
              sequences, tags for sets of tags, else dawid-skene. [default: auto]
          --estimation [{"|".join(ESTIMATIONS)}]  How to fit. Default: variational.
          --prior A=P,B=P,...  How frequent the classes are, if that is known; or uniform. Default: learn.
          --calibration HOW  What probabilities are calibrated by: hidden-answers, gold, none, or a power. Default:
              hidden-answers.
          {LABEL_BY.format("mode")}
          --max-iter N  Most iterations. Default: the model's.
          --seed N  Seed of all that is random. Default: 0.
        Outputs:
          {WORKERS_REPORT}
          --disagreements FILE  With --features: write a table of the items for which classifier and workers call for
              different labels.
          --undecided P  Leave labels open whose confidence is below P. The summary says how many are kept.
          --no-answers  With --save: leave the answers, and the graph, out of the file.
          --all-workers  Show all workers, not only the most and the least reliable.
        Size:
          --memory SIZE  Sort the answers into a store on disk with so much memory, such as 4GB, and fuse them from
              there. Default: on disk only if they would not fit in memory.
          --store FOLDER  Where stores are kept. Default: the user's cache folder.
          --resume  Go on where an earlier run on disk was interrupted.
          --engine [{"|".join(ENGINES)}]  Where to work. [default: threads]
          --threads N  Number of threads. Default: all processors.
          --scheduler ADDRESS  With --engine dask: a running cluster, such as tcp://10.0.0.1:8786.
        """,
        {
            "--columns": {"type": Value(read_columns)},
            "--for": {"name": "settings", "type": (str, Value(read_setting))},
            "--classes": {"type": Value(read_classes)},
            "--ordered/--unordered": {"default": None},
            "--positions": {"type": Value(read_numbers)},
            "--prior": {"type": Value(read_prior)},
            "--calibration": {"type": Value(read_calibration)},
            "--format": {"type": FormatName()},
            "--seed": {"type": COUNT_OR_NONE},
            "--undecided": {"type": SHARE},
            "--content": OF_REPORT,
            "--k": {"needs": ["--knn"], "reason": "it says to how many others each item is linked"},
            "--knn": {"clashes": {"--graph": "--graph and --knn both make a graph: give one of them."}},
            "--disagreements": {"needs": ["--features"], "reason": "a classifier learns from these"},
            "--no-answers": {"needs": ["--save"], "reason": "it says what the file of the model holds"},
            "--store": {"needs": ["--memory", "--resume"], "reason": "it says where answers on disk are kept"},
            "--scheduler": {"needs": ["--engine dask"]},
            "--threads": {"clashes": {"--engine dask": "--threads does not go with --engine dask. Leave it out."}},
            "--ignore-gold": {"clashes": NOT_IGNORED},
        },
    ),
    click.Argument(["source"], nargs=-1, required=True, metavar="SOURCE", callback=take_one),
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
    read_options(
        f"""
        Options:
          -o, --output FILE  Write the ranking here: {TABLES}.
          {REPORT}
          --save FILE  Write the ranking as a model here, for consilience.load.
          {PRINTING}
        Columns:
          --left COL  Column of the candidates on the left, if not left, model_a or the like.
          --right COL  Column of the candidates on the right, if not right, model_b or the like.
          --winner COL  Column of who won, if not winner, label, verdict or the like.
          --worker COL  Column of judges, if not worker, annotator, judge or the like.
          --item COL  Column of what candidates are compared on, such as prompts, if not item, task, prompt or the like.
          --group COL  Column of families of judges, such as the model behind several prompts.
          --weight COL  Column of how many verdicts a row stands for.
          --order COL  Column of times or numbers: when verdicts were given. Tells who gets worse.
        Scores instead of verdicts:
          --candidate COL  Column of candidates, in a table with a row for each judge, item and candidate.
          --score COL  Column of their scores; higher ones are better.
          --rank COL  Column of their ranks; lower ones are better.
        Known verdicts:
          --gold FILE  Known verdicts: a table with left, right and winner.
        Model:
          --discrimination [learn|equal]  Whether judges are weighed. Default: learn.
          --position-bias [learn|none]  Whether judges may prefer a side. Default: learn.
          --max-iter N  Most iterations. Default: the model's.
          --seed N  Seed of all that is random. Default: 0.
        Outputs:
          --judges-report FILE  Write a table of all judges here; suffixes as for -o.
          --wins FILE  Write a table of the probability that each candidate beats each other one here.
          --next-comparisons FILE  Write a table of the comparisons to ask for next here.
          -n N  With --next-comparisons: how many. Default: {N_LISTED}.
        """,
        {
            "--seed": {"type": COUNT_OR_NONE},
            "-n": {"needs": ["--next-comparisons"], "reason": "it says how many are listed"},
        },
    ),
    click.Argument(["source"], nargs=-1, required=True, metavar="SOURCE", callback=take_one),
    short="Rank candidates by verdicts on pairs of them.",
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
    read_options(
        f"""
        Options:
          -o, --output FILE  Write the labels of all items here: {TABLES}.
          {REPORT}
          --save FILE  Write the updated model here. Default: MODEL itself.
          {PRINTING}
        Answers:
          --duplicates [{"|".join(POLICIES)}]  What to do when a worker answered an item before, with another label.
              last: the new answer replaces the old one, and a row without a label retracts it. [default: error]
        Known labels:
          --gold FILE  Further known labels. May be given several times.
        Model:
          {LABEL_BY.format("as before")}
        Content and graph:
          {CONTENT}
          --graph FILE  Further edges between items, for a model with a graph.
        Outputs:
          --changes FILE  Write a table of the labels that have changed here.
          {WORKERS_REPORT}
        """,
        {
            "--duplicates": {"needs": ["SOURCE"], "reason": "it is about new answers"},
            "--content": OF_REPORT,
        },
    ),
    click.Argument(["model"]),
    click.Argument(["source"], required=False),
    short="Add answers to a saved model, and fuse all of them.",
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
    read_options(
        f"""
        Options:
          -o, --output FILE  Write the labels here: {TABLES}.
          {PRINTING}
        Known labels:
          --gold FILE  Known labels. May be given several times.
        Model:
          {LABEL_BY.format("as the model was fitted")}
        Graph:
          --graph FILE  Edges between the items, for a model with a graph.
        """
    ),
    click.Argument(["model"]),
    click.Argument(["source"]),
    short="Label items by what a saved model knows of the workers.",
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
    read_options(
        f"""
        Options:
          -o, --output FILE  Write the page here. [default: report.html]
          {PRINTING}
        Content:
          {CONTENT}
          {SOURCE_KIND}
        """
    ),
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
    read_options(
        f"""
        Options:
          {PRINTING}
        """
    ),
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
    read_options(
        f"""
        Options:
          -n N  Most items or questions to list. Default: {N_LISTED}.
          --at-random  Draw all items at random. Their labels tell how many of all labels are right.
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
            "--workers": OF_QUESTIONS,
            "--budget": {"type": float, **OF_QUESTIONS},
            "--cost": {"type": float, **OF_QUESTIONS},
            "--per-worker": {"type": COUNT_OR_NONE, **OF_QUESTIONS},
            "--asked": OF_QUESTIONS,
            "--at-random": {"clashes": {"--questions": NOT_AT_RANDOM, "--stop": NOT_AT_RANDOM}},
            "--stop": {"type": SHARE, "clashes": {"--questions": NOT_WITH_STOP, "-n": NOT_WITH_STOP}},
        },
    ),
    click.Argument(["model"]),
    name="next",
    short="List the items to label next, or the questions to ask.",
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
    read_options(
        f"""
        Options:
          {PRINTING}
        Columns:
          --item COL  Column of items, in either file, if not item, task, question or id.
          --label COL  Column of labels, in either file, if not label, answer or response.
          --sequence COL  Column of sequences, in either file.
          --position COL  Column of positions in a sequence, in either file.
        Labels:
          {SEPARATOR}
          {NORMALISE}
          --ordered  The labels are levels of a scale: it also counts how far they are off.
          --classes A,B,...  The levels from low to high. Default: numbers by size, else as their columns p(...).
        """,
        {"--classes": {"type": Value(read_classes)}, "--ordered": {"default": None}},
    ),
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
    read_options(
        f"""
        Options:
          --to NAME  Format of OUT, if its name does not tell: that of a tool, masks, long (one row per answer or span)
              or wide (one column per worker).
          --from NAME  Format of IN, if it is not recognised; see `consilience formats`.
          {PRINTING}
        Columns:
          {COLUMNS}
          {IGNORE}
        Answers:
          {SEPARATOR}
          {DROP_MISSING}
          {RESCALE}
        """,
        {
            "--from": {"name": "format", "type": FormatName()},
            "--to": {"type": click.Choice([*(each.name for each in span_formats()), "masks", *LAYOUTS])},
        },
    ),
    click.Argument(["source"], metavar="IN"),
    click.Argument(["target"], metavar="OUT"),
    short="Convert the annotations of all workers to another format.",
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


@declare(
    "files:formats",
    read_options(f"Options:\n{AS_JSON}\n{DEBUG}"),
    short="List the formats that can be read and written.",
)
def formats() -> None:
    """List all formats: what is read from each, what is written, and how it is recognised.

    Names are those of `--format` of `fuse`, and of `--from` and `--to` of `convert`.
    """


@declare(
    "demo:demo",
    read_options(f"Options:\n{DEBUG}"),
    short="Fuse a made-up crowd, compare with the truth, write a report.",
)
def demo() -> None:
    """Fuse the answers of a made-up crowd, compare with the truth, and write a report.

    demo-answers.csv and demo-report.html are written to the current folder. The report needs the extra: pip install
    'consilience[report]'.
    """


def list_crowd_options(items: str, good: str) -> dict[str, list[Option]]:
    """Return the options of a simulator: those of its items and of the crowd, with how many workers are good."""
    return read_options(
        f"""
        Options:
          -o, --output FOLDER  Write the files in this folder, which is made if it is not there.
          {PRINTING}
        Items:
          {items}
        Crowd:
          --good most|all|N  How many workers are better than random. [default: {good}]
          --workers N  Number of workers. [default: 10]
          --classes N  Number of classes. [default: 4]
          --answers-per-item N  Workers who answer each item. Default: all.
          --accuracy P|LOW,HIGH  Probability of the right answer: one for all, a range to draw from, or one per honest
              worker. Default: random confusion matrices.
          --spammers N  Workers who answer at random. [default: 0]
          --adversaries N  Workers who are wrong on purpose. [default: 0]
          --copycats N  Workers who copy another one. [default: 0]
          --hard P  Share of items on which all workers err together, with the same wrong class in mind. [default: 0.0]
          --activity [{"|".join(ACTIVITIES)}]  Whether workers answer equally often, or few answer much.
              [default: equal]
          --seed N  Same seed, same crowd. [default: 0]
        Files:
          --format [{"|".join(each.name for each in writable_formats())}]  Format of the tables. [default: csv]
          --force  Overwrite files that are there already.
        """,
        {
            "--output": {"required": True},
            "--items": {"name": "n_items"},
            "--sequences": {"name": "n_sequences"},
            "--workers": {"name": "n_workers"},
            "--classes": {"name": "n_classes"},
            "--format": {"name": "file_format"},
            "--good": {"type": Value(read_good)},
            "--length": {"type": Value(read_length)},
            "--prior": {"type": Value(read_numbers)},
            "--accuracy": {"type": Value(read_accuracy)},
            **{each: {"type": float} for each in ("--stickiness", "--degree", "--homophily", "--hard")},
            **{each: {"type": COUNT_OR_NONE} for each in ("--spammers", "--adversaries", "--copycats", "--seed")},
        },
    )


ITEMS = "--items N  Number of items. [default: 1000]"
PRIOR = "--prior P,P,...  Class probabilities. Default: equal."
SEQUENCES = """
  --sequences N  Number of sequences. [default: 25]
  --length N|LEAST,MOST  Items in each sequence, or a range to draw from. [default: 40]
  --stickiness P  Probability that a label stays what it was, beyond what the random transition matrix says.
      [default: 0.0]
"""
NETWORK = f"""
  {ITEMS}
  --degree D  Average number of neighbours. [default: 5.0]
  --homophily P  Share of edges within a class. [default: 0.9]
  {PRIOR}
"""


def list_rater_options() -> dict[str, list[Option]]:
    """Return the options of ratings."""
    return read_options(
        f"""
        Options:
          -o, --output FOLDER  Write the files in this folder, which is made if it is not there.
          {PRINTING}
        Items:
          --items N  Number of items. [default: 400]
          --levels N  Number of levels. [default: 5]
          --prior P,P,...  How frequent the levels are. Default: equally.
        Raters:
          --raters N  Number of raters. [default: 40]
          --per-item N  Raters of each item. [default: 3]
          --bias B|B,B,...  Standard deviation of their biases, in levels; or one bias per rater. [default: 0.7]
          --spread S|LOW,HIGH  Standard deviation of the noise: one for all, a range to draw from, or one per rater.
              [default: 0.4,1.2]
          --careless P|LOW,HIGH  Share of answers that are any level, in the same way. [default: 0.0]
          --seed N  Same seed, same crowd. [default: 0]
        Files:
          --format [{"|".join(each.name for each in writable_formats())}]  Format of the tables. [default: csv]
          --force  Overwrite files that are there already.
        """,
        {
            "--output": {"required": True},
            "--items": {"name": "n_items"},
            "--raters": {"name": "n_raters"},
            "--format": {"name": "file_format"},
            "--prior": {"type": Value(read_numbers)},
            "--seed": {"type": COUNT_OR_NONE},
            **{each: {"type": Value(read_accuracy)} for each in ("--bias", "--spread", "--careless")},
        },
    )


@click.group(short_help="Write the answers of a made-up crowd, and the truth.")
def simulate() -> None:
    """Write the answers of a made-up crowd, and the truth behind them, to files.

    To see what a plan is worth before paying for it: how many answers per item, of workers how good?
    """


@declare("simulate:draw_independent", list_crowd_options(f"{ITEMS}\n{PRIOR}", good="most"))
def independent() -> None:
    """Items that have nothing to do with each other."""


@declare("simulate:draw_sequences", list_crowd_options(SEQUENCES, good="most"))
def sequences() -> None:
    """Sequences of items whose labels form a Markov chain."""


@declare("simulate:draw_network", list_crowd_options(NETWORK, good="all"))
def network() -> None:
    """Items in a network that links like with like."""


@declare("simulate:draw_ratings", list_rater_options())
def ratings() -> None:
    """Ratings on a scale by harsh and lenient raters."""


for simulator in (independent, sequences, network, ratings):
    simulate.add_command(simulator)
COMMANDS = (fuse, rank, update, predict, evaluate, report, explain, next_items, convert, formats, simulate, demo)
