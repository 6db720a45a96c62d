"""Every option once: what it may be, what it does, and what it needs; and checks of what users give.

From this table come the checks of parameters, the keywords that `fuse` and the readers share, and the command line. The
key is the name in Python; at the shell it is written with dashes. An option that one command or model has under the
same name as another is called after it, such as "rank.item".

The file has three parts: checks of values, domains (what values may be), and the table. A parameter of `fuse` is in its
signature and in this table; `api.fuse` takes those that `formats.sources.COLUMNS` names for reading, those in
`api.BESIDE` itself, and all others for the model. The command line compares with that signature, see `cli/fuse.py`.

Importing this module costs nothing, so that the command line can show its help in an instant.
"""

from __future__ import annotations

import csv
import math
import os
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from .errors import ParameterError, Python, Sentence, listing, parameter_error
from .limits import require_few

if TYPE_CHECKING:  # the command line shows its help in an instant, without NumPy
    from .kernels import Floats


# -------------------------------------------------------------------------------------------------- checks of values
# An object may have no order, no hash and no truth value, and may not be what its type suggests. So a check first asks
# for the type, and compares only then.

# By their names: NumPy's are not the same as Python's, and its durations count as whole numbers.
_NO_NUMBERS = ("bool", "bool_", "timedelta64", "Decimal", "Fraction")


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number, of Python or NumPy, within the range of floats; truth values are not.

    >>> import numpy as np
    >>> is_number(np.float32(0.5)), is_number(True), is_number("learn"), is_number(10**400)
    (True, False, False, False)
    """
    if not isinstance(value, Real) or type(value).__name__ in _NO_NUMBERS:
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number by its type.

    >>> import numpy as np
    >>> is_whole(np.int8(3)), is_whole(10**400), is_whole(3.0)
    (True, True, False)
    """
    return isinstance(value, Integral) and type(value).__name__ not in _NO_NUMBERS


def is_among(value: object, choices: Collection[Any]) -> bool:
    """Whether a value is one of a few; arrays and tables, which have no one answer to ==, are not.

    >>> import numpy as np
    >>> is_among("em", ("em", "variational")), is_among(np.array(["em"]), ("em", "variational"))
    (True, False)
    """
    try:
        return value in dict.fromkeys(choices)
    except TypeError:  # it has no hash
        return False


def check_truth(name: str, owner: str, value: object) -> None:
    """Raise an error unless a value is true or false."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise parameter_error(name, owner, "True or False", value)


def to_path(name: str, owner: str, value: Any) -> str:
    """A path as text."""
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise parameter_error(name, owner, "a path", value)
    return path


def to_floats(values: Any) -> Floats:
    """Numbers as an array of floats, NaN where they are masked; whatever they are not is a `ValueError`.

    >>> import numpy as np
    >>> to_floats(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    >>> to_floats([1j])
    Traceback (most recent call last):
    ValueError: these are of type complex128
    """
    import numpy as np

    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype.kind in "cmM":  # of which NumPy would take a part
            raise ValueError(f"these are of type {array.dtype}")
        return np.asarray(np.ma.filled(array.astype(np.float64, copy=False), np.nan))
    except (TypeError, OverflowError, NotImplementedError) as error:
        raise ValueError(str(error)) from error


def check_questions(label: object, owner: str) -> list[str] | None:
    """The questions that a list of columns names; None if it is no list. Each is named once."""
    if not isinstance(label, (list, tuple)):
        return None
    names = [str(each) for each in label if isinstance(each, (str, Real)) or hasattr(each, "dtype")]
    if len(set(names)) < len(label) or not names:
        raise parameter_error("label", owner, "the name of a column, or a list of different ones", label)
    remedy = Sentence("Name some of them with {label}.")
    require_few("questions", len(names), f"There are {len(names):,} questions", remedy, keyword="label")
    return names


def split_by_question(parameter: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """The value of a parameter for each question: a mapping from questions, None for all others, or one value."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    if None in value:
        value = dict.fromkeys(names, value[None]) | {name: each for name, each in value.items() if name is not None}
    known = set(names)  # found by hash: an odd object may not be comparable
    unknown = [str(name) for name in value if name not in known]
    if unknown:
        said = {"unknown": Python(listing(unknown)), "names": Python(listing(names, len(names)))}
        problem = Sentence(f"{{{parameter}}} is given for {{unknown}}, and the questions are {{names}}.", **said)
        raise ParameterError(problem, keyword=parameter)
    return dict(value)


# -------------------------------------------------------------------------------------------------- kinds of values


class Domain(NamedTuple):
    """What values of an option may be."""

    expected: str  # continues "must be"
    accepts: Callable[[Any], bool] = lambda _: True
    metavar: str = ""  # what stands for a value in the help; empty for flags
    read: Callable[[str], Any] = str  # a value from text; a `ValueError` if it is none
    choices: tuple[str, ...] = ()


class Option(NamedTuple):
    """One option."""

    domain: Domain
    says: str
    default: Any = None
    flags: tuple[str, ...] = ()  # at the shell, if not its name with dashes
    main: bool = False  # whether `--help` shows it where there are many
    many: bool = False  # whether the shell takes it several times
    required: bool = False
    needs: tuple[str, ...] = ()  # other options, or "option=value": without all of them it would have no effect
    clashes: tuple[str, ...] = ()  # options that leave it without an effect


def one_of(*choices: str) -> Domain:
    """One of a few words."""
    expected = f"one of {', '.join(map(repr, choices))}"
    return Domain(expected, lambda value: isinstance(value, str) and value in choices, "WORD", str, choices)


def whole(least: int, metavar: str = "N") -> Domain:
    """A whole number, of as many bits as NumPy draws for a seed of its own."""
    expected = f"a whole number >= {least}{' and < 2**128' if metavar == 'SEED' else ''}"
    return Domain(expected, lambda value: is_whole(value) and least <= value < 2**128, metavar, int)


def number(least: float, most: float = math.inf, *, above: bool = False, metavar: str = "X") -> Domain:
    """A number in a range; `above`: larger than its lower end."""
    sign = ">" if above else ">="
    expected = f"a number {sign} {least:g}" if most == math.inf else f"a number between {least:g} and {most:g}"
    most = min(most, sys.float_info.max)

    def accepts(value: Any) -> bool:
        return is_number(value) and least <= float(value) <= most and not (above and value == least)

    return Domain(expected, accepts, metavar, float)


def named(names: tuple[str, ...], otherwise: Domain, metavar: str) -> Domain:
    """One of a few words, in which the shell takes dashes for blanks, or a value of another kind."""

    def read(text: str) -> Any:
        return text.replace("-", " ") if text.replace("-", " ") in names else otherwise.read(text)

    def accepts(value: Any) -> bool:
        return value in names if isinstance(value, str) else otherwise.accepts(value)

    return Domain(f"one of {', '.join(map(repr, names))}, or {otherwise.expected}", accepts, metavar, read)


def split(text: str) -> list[str]:
    """Parts of a text between commas, of which none is empty; one in quotes may hold some.

    >>> split('a, "b,c"')
    ['a', 'b,c']
    """
    parts = next(csv.reader([text], skipinitialspace=True), []) or [""]
    if "" in parts:
        raise ValueError
    return parts


def read_setting(text: str) -> tuple[str, Any]:
    """What holds for one of several questions: the name of a parameter and its value.

    >>> read_setting("ordered=yes"), read_setting("classes=good,bad"), read_setting("separator=;")
    (('ordered', True), ('classes', ['good', 'bad']), ('separator', ';'))
    """
    key, _, value = text.partition("=")
    if key not in BY_QUESTION or (key == "ordered" and value not in ("yes", "no")):
        raise ValueError
    return key, value == "yes" if key == "ordered" else OPTIONS[key].domain.read(value)


def read_prior(text: str) -> str | dict[str, float]:
    """How frequent the classes are, or how that is found."""
    parts = [part.rpartition("=") for part in split(text)]
    return text if text in PRIORS else {name: float(share if sign else "") for name, sign, share in parts}


def read_range(text: str) -> float | tuple[float, ...] | list[float]:
    """One number, the ends of a range, or one for each worker."""
    numbers = [int(part) if part.strip().isdecimal() else float(part) for part in text.split(",")]
    return numbers if len(numbers) > 2 else numbers[0] if len(numbers) == 1 else tuple(numbers)


COLUMN_ROLES = ("item", "worker", "label", "sequence", "position", "weight", "order", "gold")  # of columns
BY_QUESTION = ("separator", "classes", "ordered", "positions", "gold")
PRIORS = ("learn", "uniform")
CALIBRATIONS = ("hidden answers", "gold", "none")
INFERENCES = ("mean_field", "icm", "belief_propagation")
ACTIVITIES = ("equal", "unequal")
# Items or questions that are listed if nothing is said.
N_LISTED = 50

COLUMN, FILE = Domain("the name of a column", metavar="COL"), Domain("a path", metavar="FILE")
FOLDER_NAME, FORMAT_NAME = FILE._replace(metavar="FOLDER"), Domain("the name of a format", metavar="NAME")
FLAG = Domain("True or False", lambda value: type(value).__name__ in ("bool", "bool_"))
FUNCTION = Domain("a function or None", lambda value: value is None or callable(value))
ANY = Domain("")  # checked where it is used, with the answers
CLASSES = Domain("names of classes between single commas", metavar="A,B,...", read=split)
NUMBER_LIST = Domain(
    "numbers such as 0.3,0.7", metavar="P,P,...", read=lambda text: [float(p) for p in text.split(",")]
)
RANGE = Domain("a number, or several with commas", metavar="P|LOW,HIGH", read=read_range)
LENGTH = Domain("a length such as 40, or a range such as 5,30", metavar="N|LEAST,MOST", read=read_range)
GOOD = named(("most", "all"), whole(0), "most|all|N")
SHARE = number(0, 1, metavar="P")
TEACHES: dict[str, str | bool] = {"auto": "auto", "yes": True, "no": False}
TEACH = Domain(
    "'auto', True or False",
    lambda value: is_among(value, ("auto",)) or FLAG.accepts(value),
    "WORD",
    TEACHES.__getitem__,
    tuple(TEACHES),
)
PRIOR = Domain("learn, uniform, or probabilities such as cat=0.9,dog=0.1", metavar="A=P,B=P,...", read=read_prior)
SETTING = Domain(
    f"a setting such as ordered=yes, of {', '.join(BY_QUESTION)}", metavar="QUESTION KEY=VALUE", read=read_setting
)


def switch(says: str, **more: Any) -> Option:
    """An option without a value."""
    return Option(FLAG, says, False, **more)


# -------------------------------------------------------------------------------------------------------- the table

OUTPUT = ("-o", "--output")
LOOKS = "What the items look like: a table with a column item, and one with texts or paths of pictures."

OPTIONS: dict[str, Option] = {
    # Columns of answers.
    "item": Option(COLUMN, "Column of items, if not item, task, id or the like. Several: prompt,pair.", main=True),
    "worker": Option(COLUMN, "Column of workers, if not worker, annotator, judge or the like.", main=True),
    "label": Option(
        COLUMN,
        "Column of answers, if not label or the like; several, or 'Answer.*': questions.",
        flags=("--labels", "--label"),
        main=True,
        many=True,
    ),
    "sequence": Option(COLUMN, "Column of sequences, whose positions are the items."),
    "position": Option(COLUMN, "Column of positions in a sequence."),
    "weight": Option(COLUMN, "Column of weights in (0, 1]: how much each answer counts, compared with others."),
    "order": Option(COLUMN, "Column of times or numbers: when answers were given. Tells who gets worse."),
    "gold_column": Option(COLUMN, "Column of known labels beside the answers, if not gold, truth or the like."),
    "ignore": Option(COLUMN, "Where each worker has a column: one that holds no answers.", default=(), many=True),
    # How answers are read.
    "format": Option(FORMAT_NAME, "Format of SOURCE, if it is not recognised; see `consilience formats`."),
    "separator": Option(
        Domain("text such as ';'", metavar="SIGN"),
        "What stands between the tags in a cell, such as ';': answers are sets of tags.",
        main=True,
    ),
    "classes": Option(CLASSES, "What can be true. Default: all labels."),
    "ordered": Option(
        FLAG,
        "Whether classes are levels from low to high: --classes as listed, or numbers. Default: as the column says.",
        flags=("--ordered/--unordered",),
        main=True,
    ),
    "positions": Option(NUMBER_LIST._replace(metavar="X,Y,..."), "Where the levels are. Default: 0,1,2,..."),
    "kind": Option(
        one_of("numbers", "labels", "ratings"), "What answers are: numbers, classes, or classes in order.", main=True
    ),
    "drop_missing": switch("Leave out rows without an answer."),
    "rescale": switch("Divide probabilities by their sum, if that is 1 or 100 but for rounding."),
    "duplicates": Option(
        one_of("error", "first", "last", "mean"), "When a worker answered an item more than once.", default="error"
    ),
    "abstain": Option(
        one_of("ignore", "answer"), "What silence means: nothing, or an answer (labelling functions).", default="ignore"
    ),
    "background": Option(
        Domain("a class", metavar="LABEL"), "With --abstain answer: the class of items about which all are silent."
    ),
    "normalise": switch("Take labels that differ only in case, spaces or Unicode form as the same."),
    "block": Option(FILE, "Leave out the workers in this file: a table with a column worker."),
    "items": Option(FILE, "Items that exist even if nobody answered them, in the order wanted."),
    # Several questions.
    "wide": switch("With several questions: one row per item in the table of labels."),
    "settings": Option(
        SETTING, "What holds for one question, such as --for stars ordered=yes.", (), ("--for",), many=True
    ),
    # What is known beside the answers.
    "gold": Option(
        FILE,
        "Known labels: a table with item (or sequence, position) and label; or known spans or masks.",
        default=(),
        main=True,
        many=True,
    ),
    "ignore_gold": switch("Do not use a column of known labels beside the answers.", clashes=("gold", "gold_column")),
    "teach": Option(
        TEACH,
        "Whether known labels tell how much to trust each worker. auto: as far as they tell more than agreement does.",
        default="auto",
    ),
    "features": Option(FILE, "Numbers that describe the items: a table with a column item, or .npy or .npz."),
    "item_prior": Option(FILE, "Class probabilities before any answer: a table with item, and one column per class."),
    "graph": Option(FILE, "Edges between items: a table with columns source and target, and perhaps weight."),
    "knn": Option(FILE, "Features (.npy, .npz); row n is item n. Neighbours are linked.", clashes=("graph",)),
    "k": Option(whole(1), "Neighbours of each item for --knn.", default=10, needs=("knn",)),
    "content": Option(COLUMN, "The column of SOURCE with texts or paths of pictures.", needs=("report",)),
    "source_kind": Option(
        one_of("people", "functions", "models"), "Who gives the answers; words go by that. Default: recognised."
    ),
    # The model, and its parameters.
    "model": Option(one_of("auto"), "How to fuse. Default: by what the answers are.", default="auto", main=True),
    "workers": Option(ANY, "How a worker answers."),
    "estimation": Option(one_of("variational", "em"), "How to fit. Default: variational."),
    "prior": Option(PRIOR, "How frequent the classes are, if that is known; or uniform. Default: learn."),
    "smoothing": Option(ANY, "Pseudo-counts of the confusion matrices. Default: learn."),
    "calibration": Option(
        named(CALIBRATIONS, number(0, above=True), "HOW"),
        "What probabilities are calibrated by: hidden-answers, gold, none, or a power. Default: hidden-answers.",
    ),
    "label_by": Option(
        one_of("mode", "median"), "What a label is: the most probable class, or the median of ordered ones."
    ),
    "start": Option(ANY, "Where to start."),
    "n_init": Option(whole(1), "Number of starts; those after the first are random."),
    "max_iter": Option(whole(0), "Most iterations. Default: the model's."),
    "MomentMatching.max_iter": Option(whole(1), "Most sweeps."),
    "BradleyTerry.max_iter": Option(whole(1), "Most iterations of a search."),
    "BradleyTerry.tol": Option(number(0, above=True), "How far from the maximum a search may stop."),
    "n_draws": Option(whole(1), "How many scores are drawn for intervals of ranks."),
    "tol": Option(number(0), "Stop when the objective gains less than this per answer."),
    "seed": Option(whole(0, "SEED"), "Seed of all that is random. Default: 0."),
    "callback": Option(FUNCTION, "Called after each iteration."),
    "HiddenMarkov.coupling": Option(named(("learn",), number(0, 1), "X"), "How strongly steps are coupled."),
    "MarkovField.coupling": Option(named(("learn", "paper"), number(0), "X"), "How strongly neighbours are coupled."),
    "transitions": Option(ANY, "Which label may follow which."),
    "decode": Option(one_of("viterbi", "marginal"), "Whether labels of a sequence are chosen together."),
    "inference": Option(one_of(*INFERENCES), "How posteriors of a graph are found."),
    "listeners": Option(one_of("all", "unanswered"), "Which items take their neighbours into account."),
    "ties": Option(one_of("random", "first"), "Which of several classes with equal votes is the label."),
    "average": Option(
        one_of("auto", "mean", "median", "weighted", "robust"), "How a value is made of numbers. Default: compared."
    ),
    "scale": Option(one_of("auto", "linear", "log"), "Whether errors of numbers are differences or ratios."),
    "shrinkage": Option(number(0), "How many answers per class the crowd's matrix counts for."),
    # Outputs.
    "output": Option(FILE, "Write the result here: a table ({note}).", flags=OUTPUT, main=True),
    "fuse.output": Option(
        FILE,
        "Write labels or spans here: a table ({note}), or a file or folder of the kind that SOURCE is.",
        flags=OUTPUT,
        main=True,
    ),
    "report": Option(FILE, "Write a report here: one HTML page to look at and to send.", main=True),
    "save": Option(FILE, "Write the fitted model here, with the answers, for consilience.load.", main=True),
    "no_answers": switch("With --save: leave the answers, and the graph, out of the file.", needs=("save",)),
    "workers_report": Option(FILE, "Write a table of all workers here; suffixes as for -o."),
    "disagreements": Option(FILE, "Write the items on which classifier and workers differ here.", needs=("features",)),
    "undecided": Option(SHARE, "Leave labels open whose confidence is below P. The summary says how many are kept."),
    "all_workers": switch("Show all workers, not only the most and the least reliable."),
    "changes": Option(FILE, "Write a table of the labels that have changed here."),
    # What is printed.
    "quiet": switch("Print nothing but errors.", flags=("-q", "--quiet")),
    "as_json": switch("Print one JSON object instead of tables.", flags=("--json",), main=True),
    "debug": switch("Show the traceback of an error."),
    # Size.
    "memory": Option(
        Domain("an amount of memory such as '4GB'", metavar="SIZE"),
        "Sort the answers on disk with so much memory, such as 4GB. Default: only if they do not fit in memory.",
        main=True,
    ),
    "store": Option(FOLDER_NAME, "Where sorted answers are kept. Default: the user's cache.", needs=("memory|resume",)),
    "resume": switch("Go on where an earlier run on disk was interrupted."),
    "engine": Option(one_of("threads"), "Where to work.", default="threads"),
    "threads": Option(whole(1), "Number of threads. Default: all processors.", clashes=("engine=dask",)),
    "scheduler": Option(
        Domain("an address", metavar="ADDRESS"),
        "With --engine dask: a running cluster, such as tcp://10.0.0.1:8786.",
        needs=("engine=dask",),
    ),
    # Saved models.
    "update.save": Option(FILE, "Write the updated model here. Default: MODEL itself."),
    "update.duplicates": Option(
        one_of("error", "last"),
        "When a worker answered an item otherwise before. last: the new answer counts, and a row without one retracts.",
        default="error",
        needs=("source",),
    ),
    "update.content": Option(FILE, LOOKS, needs=("report",)),
    "report.content": Option(FILE, LOOKS),
    "report.output": Option(FILE, "Write the page here.", default="report.html", flags=OUTPUT),
    "n": Option(whole(1), f"Most rows to list. Default: {N_LISTED}.", flags=("-n",)),
    "at_random": switch(
        "Draw all items at random. They tell how many labels are right.", clashes=("questions", "stop")
    ),
    "known": Option(
        whole(1),
        "Draw so many items at random for a person to label: they tell how many items are of each class.",
        clashes=("questions", "stop", "at_random", "n"),
    ),
    "strata": switch("With --known: draw more of those that are uncertain, and note how many.", needs=("known",)),
    "questions": switch("List questions to ask: which worker should answer which item."),
    "next.workers": Option(
        FILE, "Who may be asked: a table with worker, and perhaps cost and per_worker.", needs=("questions",)
    ),
    "budget": Option(number(0, metavar="SUM"), "The most that all questions may cost.", needs=("questions",)),
    "cost": Option(number(0, above=True, metavar="PRICE"), "What an answer costs. Default: 1.", needs=("questions",)),
    "per_worker": Option(whole(0), "Most questions for one worker.", needs=("questions",)),
    "asked": Option(FILE, "Questions that were asked already, such as an earlier list.", needs=("questions",)),
    "stop": Option(SHARE, "List the items whose confidence is at least P.", clashes=("questions", "n")),
    # Counts.
    "of": Option(
        COLUMN._replace(metavar="CLASS"), "A class or tag to count, or mean. Default: all.", default=(), many=True
    ),
    "by": Option(COLUMN, "Groups of items: a column, or a file with the items and one other column."),
    "pairs": Option(COLUMN, "What items of several groups share, such as the prompt: as for --by."),
    "at_least": Option(
        number(-math.inf, metavar="X"), "Exit with code 3 unless every interval begins at X or above.", needs=("of",)
    ),
    "estimate.item": Option(COLUMN, "Column of items in LABELS, if not item or the like. Several: prompt,system."),
    # Files.
    "evaluate.item": Option(COLUMN, "Column of items, in either file, if not item, task, question or id."),
    "evaluate.label": Option(COLUMN, "Column of labels, in either file, if not label, answer or response."),
    "evaluate.classes": Option(CLASSES, "The levels from low to high. Default: by size, else as their columns p(...)."),
    "evaluate.ordered": Option(FLAG, "Labels are levels: it also counts how far they are off.", flags=("--ordered",)),
    "convert.label": Option(COLUMN, "Column of answers, if not label, answer, response or the like."),
    "convert.format": Option(FORMAT_NAME, "Format of IN, if it is not recognised.", flags=("--from",)),
    "to": Option(FORMAT_NAME, "Format of OUT, if its name does not tell: of a tool, masks, long or wide."),
    # Rankings.
    "left": Option(COLUMN, "Column of the candidates on the left, if not left, model_a or the like.", main=True),
    "right": Option(COLUMN, "Column of the candidates on the right, if not right, model_b or the like.", main=True),
    "winner": Option(COLUMN, "Column of who won, if not winner, label, verdict or the like.", main=True),
    "rank.item": Option(COLUMN, "Column of what is compared on, such as prompts, if not item, task or the like."),
    "group": Option(COLUMN, "Column of families of judges, such as the model behind several prompts."),
    "rank.weight": Option(COLUMN, "Column of how many verdicts a row stands for."),
    "candidate": Option(COLUMN, "Column of candidates, in a table with a row for each judge, item and candidate."),
    "score": Option(COLUMN, "Column of their scores; higher ones are better."),
    "rank": Option(COLUMN, "Column of their ranks; lower ones are better."),
    "rank.gold": Option(FILE, "Known verdicts: a table with left, right and winner.", main=True),
    "discrimination": Option(one_of("learn", "equal"), "Whether judges are weighed. Default: learn."),
    "position_bias": Option(one_of("learn", "none"), "Whether judges may prefer a side. Default: learn."),
    "judges_report": Option(FILE, "Write a table of all judges here; suffixes as for -o."),
    "wins": Option(FILE, "Write a table of the probability that each candidate beats each other one here."),
    "next_comparisons": Option(FILE, "Write a table of the comparisons to ask for next here."),
    "rank.n": Option(whole(1), f"How many. Default: {N_LISTED}.", flags=("-n",), needs=("next_comparisons",)),
    # Simulated crowds.
    "folder": Option(FOLDER_NAME, "Write the files in this folder.", flags=OUTPUT, required=True),
    "n_items": Option(whole(1), "Number of items.", default=1000, flags=("--items",)),
    "ratings.n_items": Option(whole(1), "Number of items.", default=400, flags=("--items",)),
    "n_sequences": Option(whole(1), "Number of sequences.", default=25, flags=("--sequences",)),
    "length": Option(LENGTH, "Items in each sequence, or a range to draw from.", default=40),
    "stickiness": Option(SHARE, "Probability that a label stays, beyond the random transition matrix.", default=0.0),
    "degree": Option(number(0, metavar="D"), "Average number of neighbours.", default=5.0),
    "homophily": Option(SHARE, "Share of edges within a class.", default=0.9),
    "simulate.prior": Option(NUMBER_LIST, "Class probabilities. Default: equal."),
    "good": Option(GOOD, "How many workers are better than random.", default="most"),
    "network.good": Option(GOOD, "How many workers are better than random.", default="all"),
    "n_workers": Option(whole(1), "Number of workers.", default=10, flags=("--workers",)),
    "n_classes": Option(whole(1), "Number of classes.", default=4, flags=("--classes",)),
    "answers_per_item": Option(whole(1), "Workers who answer each item. Default: all."),
    "accuracy": Option(RANGE, "Probability of the right answer: one for all, a range, or one per honest worker."),
    "spammers": Option(whole(0), "Workers who answer at random.", default=0),
    "adversaries": Option(whole(0), "Workers who are wrong on purpose.", default=0),
    "copycats": Option(whole(0), "Workers who copy another one.", default=0),
    "hard": Option(SHARE, "Share of items on which all workers err together.", default=0.0),
    "activity": Option(one_of(*ACTIVITIES), "Whether workers answer equally often, or few much.", default="equal"),
    "simulate.seed": Option(whole(0), "Same seed, same crowd.", default=0),
    "file_format": Option(one_of("csv"), "Format of the tables.", default="csv", flags=("--format",)),
    "force": switch("Overwrite files that are there already."),
    "levels": Option(whole(1), "Number of levels.", default=5),
    "n_raters": Option(whole(1), "Number of raters.", default=40, flags=("--raters",)),
    "per_item": Option(whole(1), "Raters of each item.", default=3),
    "bias": Option(RANGE, "Standard deviation of their biases, in levels; or one bias per rater.", default=0.7),
    "spread": Option(RANGE, "Noise: one deviation, a range to draw from, or one per rater.", default=(0.4, 1.2)),
    "careless": Option(RANGE, "Share of answers that are any level, in the same way.", default=0.0),
}


def find_option(name: str, *owners: str) -> Option | None:
    """The option of this name that a command or a model has; None where there is none."""
    return next((OPTIONS[key] for key in (*(f"{each}.{name}" for each in owners), name) if key in OPTIONS), None)


def spell_in_shell(name: str, value: object) -> str | None:
    """A parameter as `fuse` and `rank` take it at the command line; None if they do not.

    >>> spell_in_shell("ordered", False), spell_in_shell("gold", None), spell_in_shell("workers", "confusion")
    ('--unordered', '--gold', None)
    """
    option, given = OPTIONS.get(name), value.value if isinstance(value, Python) else value
    if option is None or option.domain is ANY:
        return None
    on, _, off = (option.flags or (f"--{name.replace('_', '-')}",))[-1].partition("/")
    if option.domain is FLAG:
        return on if given is not False else off or None
    return on if given is None else f"{on} {shlex.quote(str(given))}"


def check(name: str, value: object, owner: str) -> None:
    """Raise an error for a value that an option cannot have, in the same words everywhere."""
    option = OPTIONS.get(f"{owner}.{name}") or OPTIONS.get(name)
    if option is not None and not option.domain.accepts(value):
        raise parameter_error(name, owner, option.domain.expected, value)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those keywords that do not have their default."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and not is_among(value, (OPTIONS[name].default if name in OPTIONS else None,))
    }
