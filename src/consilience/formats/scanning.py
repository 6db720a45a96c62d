"""`scan_answers`: answers from files that may be larger than memory."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, cast

from numpy.typing import ArrayLike

from ..answers.answers import Answers
from ..answers.joining import leave_out, read_blocked
from ..arguments import check_questions, check_truth, split_by_question
from ..errors import about, parameter_error
from ..kinds.tag_tables import check_separator, find_separators, find_tagged
from ..kinds.tags import Tags
from .reading import open_paths
from .sources import open_table, read_answers, read_tags

# Forms of tables that can be read a part at a time, beside one row per answer.
FORMS = ("soft", "soft-long", "soft-wide")
LEAST_MEMORY = 10**9
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def scan_answers(
    path: str | os.PathLike[str],
    memory: str | int | None = None,
    *,
    store: str | os.PathLike[str] | None = None,  # noqa: ARG001
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
    resume: bool = False,
    block: object = None,
    separator: Any = None,
) -> Answers | Tags | dict[str, Answers | Tags]:
    r"""Read answers that may be larger than memory.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder: Parquet, Arrow, CSV, TSV or JSON lines, with
        one row per answer.
    memory : str or int, optional
        How much memory there is, such as "4GB", at least "1GB". Default: the memory of the machine.
    store : str or path, optional
        The folder in which sorted answers are kept. Default: ``$CONSILIENCE_STORES``, or else ``consilience`` in the
        user's cache folder.
    item, worker, label, sequence, position, weight, classes, ordered, positions, duplicates, drop_missing, format
        As for `read_answers`. Several labels are several questions.
    rescale : bool
        Whether to divide each soft vote by its sum, as for `read_answers`.
    resume : bool
        Let a fit that was interrupted go on where it stood. A fit with the same parameters comes to the same results,
        to the bit. By default, fits begin anew.
    block : list, table or path, optional
        Workers whose answers are left out: their ids, or a table with a column worker. So are items and labels that
        nobody else has answered or said.
    separator : str, optional
        What stands between the tags in a cell: answers are sets of tags, as for `read_tags`.

    Returns
    -------
    Answers, Tags or dict
        If `label` lists several columns, a dict from each of these questions to its answers, which `consilience.fuse`
        takes. `classes`, `ordered`, `positions` and `separator` may then be mappings too.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "answers.csv").write_text("item,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> cs.scan_answers(folder / "answers.csv", store=folder / "stores")
    Answers(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """
    for name, value in (("drop_missing", drop_missing), ("rescale", rescale), ("resume", resume)):
        check_truth(name, "scan_answers", value)
    if memory is not None:
        parse_memory(memory)
    blocked = read_blocked(open_paths(block) if isinstance(block, (str, os.PathLike)) else block)

    def scan(label: str | None, separator: Any, **scale: Any) -> Answers | Tags:
        check_separator(separator, "scan_answers")
        given: dict[str, Any] = {
            "item": item,
            "worker": worker,
            "label": label,
            "duplicates": duplicates,
            "format": format,
        }
        if separator is not None:
            return read_tags(path, separator=separator, drop_missing=drop_missing, gold=False, **given)
        places: dict[str, Any] = {
            "sequence": sequence,
            "position": position,
            "weight": weight,
            "rescale": rescale,
            **scale,
        }
        answers = read_answers(path, drop_missing=drop_missing, gold=False, **given, **places)
        return leave_out(answers, blocked) if len(blocked) else answers

    questions = check_questions(label, "scan_answers")
    if questions is None or len(questions) == 1:
        only = questions[0] if questions else cast("str | None", label)
        return scan(only, separator, classes=classes, ordered=ordered, positions=positions)
    given = {"classes": classes, "ordered": ordered, "positions": positions, "separator": separator}
    split = {role: split_by_question(role, value, questions) for role, value in given.items() if role != "separator"}
    split["separator"] = find_separators(
        separator,
        questions,
        "scan_answers",
        lambda *sought: find_tagged(open_table(os.fspath(path), format)[0], *sought),
    )
    found = {}
    for name in questions:
        with about(name):
            found[name] = scan(name, **{"separator": None} | {role: each.get(name) for role, each in split.items()})
    return found


def parse_memory(memory: str | int) -> int:
    """A size in bytes.

    >>> parse_memory("4GB"), parse_memory("1536 MiB"), parse_memory(2_000_000_000)
    (4000000000, 1610612736, 2000000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(memory), re.IGNORECASE)
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None or isinstance(memory, bool) or float(found[1]) * unit < LEAST_MEMORY:
        raise parameter_error("memory", "scan_answers", "a size such as '4GB' or '2GiB', at least '1GB'", memory)
    return int(float(found[1]) * unit)
