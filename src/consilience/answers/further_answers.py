"""A table of further answers, read as those were that are there.

With ``duplicates="last"``, a row without a label takes an answer back. Otherwise it is a question that was not
answered, and is left out. It is an error if there is an answer to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..answers.columns import Indices
from ..errors import InputError, Sentence, plural, quietly, warn_of
from .columns import Values, find_missing
from .dialects.register import LONG, translate
from .items import Sequences
from .joining import NOTHING, Retracted
from .long_tables import TableOptions, find_columns, read_answers
from .responses import Responses, empty_responses
from .tables import ROLES, Table
from .vocabulary import encode_in_order_of_appearance, lookup


def read_further(
    table: Table, old: Responses, duplicates: str, format: str | None = None
) -> tuple[Responses, Retracted]:
    """Return the answers of a table, and those of the old ones that it takes back.

    Columns that have the names of the old answers' play the same roles, and labels are normalised if the old ones are.
    With ``duplicates="last"``, the last row of a worker about an item counts, unless answers have weights: then several
    rows are an answer that is spread over labels. Known labels beside the answers are read if the old table had some.

    Parameters
    ----------
    table : Table
        Further answers.
    old : Responses
        Those that are there.
    duplicates : {"error", "last"}
        As for `update`.
    format : str, optional
        The form of the table, as in `Responses.from_frame`.
    """
    table = translate(table.prefer(old.columns), format, dict.fromkeys(ROLES))
    names = _name_columns(table, old)
    columns = find_columns(table, names)
    table, rows = _split_missing(table, columns, duplicates)
    taken_back = NOTHING
    if len(rows):
        if duplicates == "last":
            taken_back = _find_retracted(table.keep(rows), columns, old)
        else:
            _check_unanswered(table.keep(rows), columns, old)
        table = table.keep(np.setdiff1d(np.arange(table.n_rows), rows, assume_unique=True))
    if not table.n_rows and len(rows):
        return no_answers(old).read_from(columns=columns), taken_back
    gold = columns_of_gold(table, old)
    policy = "error" if "weight" in columns else duplicates
    options = TableOptions(duplicates=policy, normalise=old.normalised, gold=gold, format=LONG)
    # What is to be said of the labels is said of all together.
    with quietly(), tell_duplicates("weight" in columns):
        return Responses.of(read_answers(table, names, options)), taken_back


@contextmanager
def tell_duplicates(weighted: bool = False) -> Iterator[None]:
    """Say what can be done here about several answers of a worker about an item: less than elsewhere."""
    try:
        yield
    except InputError as error:
        if error.keyword != "duplicates":
            raise
        remedies: tuple[str | Sentence, ...] = (
            "Remove them.",
            Sentence("Or let the last one count, with {duplicates}.", duplicates="last"),
        )
        if weighted:
            remedies = ("Leave one row for each label, with weights that sum to at most 1.",)
        raise InputError(error.problem, *remedies, keyword="duplicates") from None


def columns_of_gold(table: Table, old: Responses) -> str | bool:
    """Return the column of known labels, if the old answers came with one and this table has it; else False."""
    name = old.columns.get("gold")
    return name if name is not None and name in table.names else False


def _name_columns(table: Table, old: Responses) -> dict[str, str | None]:
    """Return the names of the columns that are not to be found by their usual names."""
    names: dict[str, str | None] = dict.fromkeys(ROLES)
    if old.sequences is not None:
        names |= {role: table.need(role, parameter=role) for role in ("sequence", "position")}
    elif "item" in old.columns and old.columns["item"] in table.names:
        names["item"] = old.columns["item"]
    else:
        names["item"] = table.need("item", parameter="item")
    for role in ("weight", "order"):
        name = old.columns.get(role)
        names[role] = name if name in table.names else None
    return names


def _split_missing(table: Table, columns: dict[str, str], duplicates: str) -> tuple[Table, Indices]:
    """Return the rows that count, and which of these have no label."""
    missing = find_missing(table.read(columns["label"]))
    if not len(missing) or duplicates != "last":
        return table, missing
    pair = np.zeros(table.n_rows, np.int64)
    for role in ("item", "sequence", "position", "worker"):
        if role in columns:
            codes, values = encode_in_order_of_appearance(table.values(columns[role], "Fill it in or drop the row."))
            pair = np.unique(pair * len(values) + codes, return_inverse=True)[1]
    is_missing = np.zeros(table.n_rows, bool)
    is_missing[missing] = True
    if "weight" in columns:
        counts = ~(is_missing & (np.bincount(pair, ~is_missing) > 0)[pair])
    else:
        counts = np.zeros(table.n_rows, bool)
        counts[table.n_rows - 1 - np.unique(pair[::-1], return_index=True)[1]] = True
    rows = np.flatnonzero(counts)
    return table.keep(rows), np.flatnonzero(is_missing[rows])


def _check_unanswered(table: Table, columns: dict[str, str], old: Responses) -> None:
    """Warn that rows without a label are left out; raise an error if the old answers have one in their place."""
    rows, _ = _find_given(table, columns, old)
    if len(rows):
        raise InputError(
            f"{plural(len(rows), 'row')} of {table.name} without a label would take back an answer that was given "
            f"before; the first is at {table.locate(int(rows[0]))}.",
            Sentence("To take answers back, use {duplicates}.", duplicates="last"),
            "To keep them, drop these rows.",
            keyword="duplicates",
        )
    verb = "has no label and is" if table.n_rows == 1 else "have no label and are"
    warn_of(
        f"{plural(table.n_rows, 'row')} of {table.name} {verb} left out: not answered yet.",
        "An update takes lists of questions that are answered in part. Where answers are first read, such rows are "
        "an error, since they may be a slip.",
    )


def _find_retracted(table: Table, columns: dict[str, str], old: Responses) -> Retracted:
    """Return the answers that the rows of a table take back; a warning tells if some are not there."""
    rows, taken_back = _find_given(table, columns, old)
    n_lost = table.n_rows - len(rows)
    if n_lost:
        rows_of = f"{plural(n_lost, 'row')} of {table.name} without a label"
        warn_of(f"{rows_of} {'takes' if n_lost == 1 else 'take'} back nothing: there is no such answer.")
    return taken_back


def _find_given(table: Table, columns: dict[str, str], old: Responses) -> tuple[Indices, Retracted]:
    """Return the rows whose worker answered their item before, and these items and workers."""
    keys = [table.read(columns[role]) for role in ("item", "sequence", "position") if role in columns]
    item, worker = old.find_items(keys), lookup(old.workers, table.read(columns["worker"]))
    known = np.flatnonzero((item >= 0) & (worker >= 0))
    item, worker = item[known], worker[known]
    items, place = np.unique(item, return_inverse=True)
    answers, owner = old.answers_about(items)
    given = np.isin(place * old.n_workers + worker, owner * old.n_workers + old.worker[answers])
    return known[given], Retracted(item[given], worker[given])


def no_answers(old: Responses) -> Responses:
    """Return no answers about no items, of the same kind as the old ones."""
    keys = old.keys
    if isinstance(keys, Sequences):
        nothing: Values | Sequences = Sequences(keys.ids[:0], np.zeros(1, np.int64), keys.position[:0])
    else:
        nothing = keys[:0]
    return empty_responses(nothing, old.workers[:0], old.labels[:0], old.classes[:0], old.normalised)
