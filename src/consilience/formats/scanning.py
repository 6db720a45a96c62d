"""`scan_answers`: answers from files that may be larger than memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike

from ..answers import DIALECTS, translate
from ..answers.answers import Answers, Budget
from ..answers.columns import split_names
from ..answers.joining import leave_out, read_blocked
from ..answers.tables import WHOLE, Table, find_columns, key_roles, open_frame
from ..errors import InputError, ParameterError, Sentence, about, parameter_error
from ..kinds.tags import ONE_HOT, Tags, check_separator, find_separators
from ..limits import available_memory
from ..options import check_questions, check_truth, split_by_question
from .arrays import MATRIX
from .files import is_remote
from .reading import concatenate, find_files, open_path, stream_rows
from .sorting import name_copy, open_copy, sort_copy
from .sources import find_source, open_table, take_answers

# Forms of tables that can be sorted, beside one row per answer; the others are laid out in memory.
FORMS = ("soft", "soft-long")
IN_MEMORY = {each.name for each in DIALECTS} - set(FORMS) | {ONE_HOT}
# Answers in fewer rows are read into memory, and as many rows show what the columns are.
LEAST_ROWS, ENOUGH_ROWS = 200_000, 10_000
LEAST_MEMORY = 10**9
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
    budget = None if memory is None else parse_memory(memory)
    blocked = read_blocked(open_path(block))
    questions = check_questions(label, "scan_answers")
    source, names = os.fspath(path), {"item": item, "worker": worker, "sequence": sequence, "position": position}
    names["weight"] = weight

    def scan(label: Any, **scale: Any) -> Answers | Tags:
        check_separator(scale["separator"], "scan_answers")
        table, folder = open_sorted(source, {**names, "label": label}, format, drop_missing, budget, store)
        options = {"duplicates": duplicates, "drop_missing": drop_missing, "rescale": rescale, "gold": False, **scale}
        form = format if isinstance(table, str) else None
        answers = take_answers(table, **names, label=label, format=form, **options)
        if isinstance(answers, Tags):
            if len(blocked) or resume:
                what = "block" if len(blocked) else "resume"
                raise ParameterError(
                    Sentence(f"{{{what}}} does not go with sets of tags.", **{what: None}),
                    "Leave it out; consilience.fuse takes a list of workers to leave out.",
                    keyword=what,
                )
            return answers
        answers = leave_out(answers, blocked) if len(blocked) else answers
        return answers if folder is None else replace(answers, budget=Budget(budget, folder, resume))

    scale = {"classes": classes, "ordered": ordered, "positions": positions, "separator": separator}
    if questions is None or len(questions) == 1:
        return scan(questions[0] if questions else label, **scale)
    split = {role: split_by_question(role, value, questions) for role, value in scale.items() if role != "separator"}
    split["separator"] = find_separators(separator, questions, "scan_answers", lambda: open_table(source, format)[0])
    found = {}
    for name in questions:
        with about(name):
            found[name] = scan(name, **{role: each.get(name) for role, each in split.items()})
    return found


def open_sorted(
    path: str,
    names: dict[str, Any],
    format: str | None,
    drop_missing: bool,
    memory: int | None,
    store: str | os.PathLike[str] | None,
) -> tuple[Table | str, str | None]:
    """The sorted copy of a table and the folder that holds it; the path and None where it is read as it is.

    That is so with few rows, and with other forms of tables than those of `FORMS`.
    """
    file_format = None if format in FORMS else format
    if find_source(path, file_format) is not None or path.lower().endswith(MATRIX) or format in IN_MEMORY:
        return path, None
    paths, found = find_files(path, file_format)
    sizes = accumulate(len(batch) for each in paths for batch in stream_rows(each, found))
    if not any(n_rows >= LEAST_ROWS for n_rows in sizes):
        return path, None
    heads = [pa.Table.from_batches([next(stream_rows(each, found))]) for each in paths]
    schema = concatenate(paths, [each.slice(0, 0) for each in heads], found.codec.all_text).schema
    head = next(each for each in heads if each.num_rows).slice(0, ENOUGH_ROWS)
    table, columns = open_frame(head, path), {**names, "gold": None}
    if any(table.lists(name) is not None for name in table.names):
        return path, None
    for role in WHOLE:
        table, columns[role] = table.combine(role, names[role])
    form = translate(table, format if format in FORMS else None, columns).format
    if form in IN_MEMORY:
        return path, None
    if form:  # probabilities, of which each class, or each worker, has a column
        paired = columns["sequence"] is not None or columns["position"] is not None or table.has_sequences()
        roles = {role: table.need(role, columns[role]) for role in key_roles(paired)}
        copied = head.column_names
    else:
        roles = find_columns(table, columns)
        copied = [part for name in roles.values() for part in split_names(name) or [name]]
    keys = [part for role in WHOLE if role in roles for part in split_names(roles[role]) or [roles[role]]]
    settings = copied, keys, roles.get("position"), roles.get("label") if drop_missing else None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "consilience"
    folder = Path(store or os.environ.get("CONSILIENCE_STORES") or cache) / name_copy(paths, *settings)
    if not folder.exists():
        sort_copy(folder, paths, found, *settings, schema, memory or available_memory())
        if not is_remote(paths[0]) and name_copy(paths, *settings) != folder.name:
            shutil.rmtree(folder)
            raise InputError(f"{path!r} has changed while it was read.", "Read it again when it is complete.")
    try:
        return open_copy(folder, path, found), str(folder)
    except (OSError, ValueError):  # a part of it is lost
        shutil.rmtree(folder)
        return open_sorted(path, names, format, drop_missing, memory, store)


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
