"""`scan_answers`: answers from files that may be larger than memory."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from numpy.typing import ArrayLike

from ..answers.blocked import check_blocked, read_blocked
from ..answers.classes import choose_classes, choose_scale
from ..answers.columns import Values
from ..answers.composite import name_parts
from ..answers.frames import read_distinct
from ..answers.long_tables import TableOptions
from ..answers.responses import Answers
from ..answers.slips import warn_of_silence
from ..answers.tables import WHOLE
from ..arguments import check_questions, check_truth, split_by_question, to_path
from ..engines import EngineLike, open_engine
from ..engines.base import Threads
from ..errors import DataWarning, ParameterError, Sentence, about, listing, parameter_error, warn
from ..formats.reading import open_paths, scan_table
from ..kinds.tag_tables import check_duplicates, check_separator, find_separators
from ..memory import available_memory
from .answers import StoredAnswers, open_store
from .building import HEADER, ROLES, Dropping, build_store, find_key
from .sets import Asked, find_tagged
from .votes import FORMS

# A thread that makes blocks of a partition takes about so much memory. With less than the least, none can.
PER_THREAD = 1 << 30
LEAST_MEMORY = 10**9
# Answers about so many items, or in so many sequences, tell whether workers are labelling functions.
SAMPLE = 50_000
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def scan_answers(
    path: str | os.PathLike[str],
    memory: str | int | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    item: str | None = None,
    worker: str | None = None,
    label: str | Sequence[str] | None = None,
    sequence: str | None = None,
    position: str | None = None,
    weight: str | None = None,
    classes: ArrayLike | None = None,
    ordered: bool | None = None,
    positions: ArrayLike | None = None,
    duplicates: str = "error",
    drop_missing: bool = False,
    format: str | None = None,
    rescale: bool = False,
    engine: EngineLike = None,
    resume: bool = False,
    block: object = None,
    separator: Any = None,
) -> StoredAnswers | dict[str, StoredAnswers]:
    r"""Read answers that may be larger than memory.

    The answers are sorted into blocks on disk, once: a store. If the same files were read before in the same way, the
    store is there already. Fits read it block by block, and results are written block by block by `write`.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder: Parquet, Arrow, CSV, TSV or JSON lines, with
        one row per answer.
    memory : str or int, optional
        How much memory there is for building the store, such as "4GB", at least "1GB". It decides how many threads
        build it, each of which takes about 1 GiB. Default: the memory of the machine. Fits take what they need.
    store : str or path, optional
        The folder in which stores are kept. Default: ``$CONSILIENCE_STORES``, or else ``consilience`` in the user's
        cache folder. With five answers per item, a store takes 6 to 9 bytes per answer. While it is being built, the
        rows are on the same disk once more.
    item, worker, label, sequence, position, weight, classes, ordered, positions, duplicates, drop_missing, format
        As for `read_answers`. Several labels are several questions, each with a store of its own.
    rescale : bool
        Whether to divide each soft vote by its sum, as for `read_answers`.
    engine : optional
        Who builds the store; see `consilience.engines`. The workers of a cluster must see the files, and the folder of
        stores, under the same paths.
    resume : bool
        Let a fit that was interrupted go on where it stood. After each iteration, what it has counted is kept in the
        store. A fit with the same parameters comes to the same results, to the bit. By default, fits begin anew.
    block : list, table or path, optional
        Workers whose answers are left out: their ids, or a table with a column worker. So are items and labels that
        nobody else has answered or said.
    separator : str, optional
        What stands between the tags in a cell: answers are sets of tags, as for `read_tags`.

    Returns
    -------
    StoredAnswers or dict
        If `label` lists several columns, a dict from each of these questions to its answers, which `consilience.fuse`
        takes. Each question is a store of its own. `classes`, `ordered`, `positions` and `separator` may then be
        mappings too.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "answers.csv").write_text("item,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> cs.scan_answers(folder / "answers.csv", store=folder / "stores")
    StoredAnswers(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """
    check_truth("drop_missing", "scan_answers", drop_missing)
    check_truth("rescale", "scan_answers", rescale)
    check_truth("resume", "scan_answers", resume)
    names = dict(zip(ROLES, (item, worker, None, sequence, position, weight), strict=True))
    how = Scanning(path, memory, store, names, duplicates, drop_missing, rescale, format, engine, resume, block)
    questions = check_questions(label, "scan_answers")
    if questions is None:
        return how.scan(cast("str | None", label), Scale(classes, ordered, positions, separator))
    if len(questions) == 1:
        return how.scan(questions[0], Scale(classes, ordered, positions, separator))
    told = find_separators(
        separator, questions, "scan_answers", lambda *sought: find_tagged(scan_table(path, format), *sought)
    )
    given = {"classes": classes, "ordered": ordered, "positions": positions, "separator": told}
    split = [split_by_question(role, value, questions) for role, value in given.items()]
    found = {}
    for name in questions:
        scale = Scale(*(each.get(name) for each in split))
        # A cell without an answer is none to this question, unless it may be an empty set.
        own = how if scale.separator is not None else how._replace(drop_missing=True)
        with about(name):
            found[name] = own.scan(name, scale)
    return found


class Scale(NamedTuple):
    """What the answers in one column are; see `scan_answers`."""

    classes: ArrayLike | None
    ordered: bool | None
    positions: ArrayLike | None
    separator: str | None

    def find_sets(self, duplicates: object) -> Asked | None:
        """Return how cells are read as sets of tags; None if they are not."""
        check_separator(self.separator, "scan_answers")
        if self.separator is None:
            return None
        check_duplicates(duplicates, "scan_answers")
        if self.ordered or self.positions is not None:
            raise ParameterError(
                "Tags have no order.",
                Sentence("Leave out {ordered} and {positions}.", ordered=True, positions=None),
                keyword="ordered",
            )
        return Asked(self.separator, self.classes)


class Scanning(NamedTuple):
    """How files are read into a store; see `scan_answers`."""

    path: str | os.PathLike[str]
    memory: str | int | None
    store: str | os.PathLike[str] | None
    names: Mapping[str, str | None]
    duplicates: str
    drop_missing: bool
    rescale: bool
    format: str | None
    engine: EngineLike
    resume: bool
    block: object

    def scan(self, label: str | None, scale: Scale) -> StoredAnswers:
        """Return the answers in one column; `scale` says what they are."""
        path, memory, store, names, duplicates, drop_missing, rescale, format, engine, resume, block = self
        names = {**names, "label": label}
        classes, ordered, positions, _ = scale
        sets = scale.find_sets(duplicates)
        limit = available_memory() if memory is None else parse_memory(memory)
        scan = scan_table(path, format)
        check_single(names, scan.names)
        fingerprint = scan.fingerprint()
        reading = TableOptions(duplicates=duplicates, rescale=rescale, format=format if format in FORMS else None)
        options: dict[str, object] = {**names, "duplicates": duplicates, "drop_missing": drop_missing}
        options |= {"rescale": rescale, "form": reading.format}
        if sets is not None:
            named = None if classes is None else read_distinct(classes, "classes").tolist()
            options, classes = options | {"separator": sets.separator, "tags": named}, None
        blocked = read_blocked(open_paths(block) if isinstance(block, (str, os.PathLike)) else block)
        if len(blocked):
            options["block"] = sorted(map(str, blocked.tolist()))
        unknown = [path for path, _, changed in fingerprint if changed is None]
        if unknown:
            warn(
                DataWarning(
                    f"It cannot be seen whether {listing(unknown)} changes, so that a new store is built each time.",
                    "Keep a copy on disk, or where files have times.",
                )
            )
            options["run"] = secrets.token_hex(8)
        folder = find_folder(store) / find_key(scan, fingerprint, options)
        built = not (folder / HEADER).exists()
        if built:
            with open_engine(engine) as opened:
                if isinstance(opened, Threads):
                    opened = Threads(limit_threads(opened.n_threads, limit))
                build_store(folder, scan, fingerprint, names, reading, Dropping(drop_missing, blocked), opened, sets)

        def choose(labels: Values, is_scale: bool) -> tuple[Values, tuple[float, ...] | None]:
            return choose_scale(ordered, positions, choose_classes(classes, labels)[0], classes, is_scale)

        answers = open_store(folder, choose)
        check_blocked(blocked, answers.blocked.tolist(), answers.workers)
        if sets is None:
            warn_of_silence(take_sample(answers), answers.n_items)
        return replace(answers, built=built, resume=resume, blocked=blocked)


def check_single(names: Mapping[str, str | None], known: Sequence[str]) -> None:
    """Raise an error if several columns are to identify an item."""
    for role in WHOLE:
        if name_parts(names[role], known) is not None:
            raise ParameterError(
                Sentence(f"{{{role}}} of answers on disk is one column.", **{role: None}),
                "Join the columns in one before.",
                "Or read the answers with read_answers.",
                keyword=role,
            )


def take_sample(answers: StoredAnswers) -> Answers:
    """Return the answers about some items, or in some sequences. Which partition these are in depends on their ids."""
    number = next(answers.filled())
    units = answers.list_units(number)
    return answers.pick({number: units[:: -(-len(units) // SAMPLE)]})


def limit_threads(n_threads: int, memory: float) -> int:
    """Return how many of some threads can build a store with some memory, of which the program takes a part itself.

    >>> limit_threads(8, 4 << 30), limit_threads(8, 1 << 30), limit_threads(8, float("inf"))
    (3, 1, 8)
    """
    return int(max(1, min(n_threads, memory / PER_THREAD - 1)))


def find_folder(store: str | os.PathLike[str] | None) -> Path:
    """Return the folder in which stores are kept."""
    if store is not None:
        return Path(to_path("store", "scan_answers", store))
    named = os.environ.get("CONSILIENCE_STORES") or None
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(named or os.path.join(cache, "consilience"))


def parse_memory(memory: str | int) -> int:
    """Return a size in bytes.

    >>> parse_memory("4GB"), parse_memory("1536 MiB"), parse_memory(2_000_000_000)
    (4000000000, 1610612736, 2000000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(memory), re.IGNORECASE)
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None or isinstance(memory, bool) or float(found[1]) * unit < LEAST_MEMORY:
        raise parameter_error("memory", "scan_answers", "a size such as '4GB' or '2GiB', at least '1GB'", memory)
    return int(float(found[1]) * unit)
