"""Tables of soft votes: what each worker gives to every class, as probabilities.

There are three forms:

- soft: one row per item and worker, one column for each class. Columns are called ``p(cat)``, as results are, or by the
  classes alone; then all columns but those of item and worker are classes.
- soft-long: one row per item, worker and label, and a column of probabilities. A label without a row has none.
- soft-wide: one row per item, one column for each worker and class. Names have a sign between the two, as in
  ``forest_cat`` or ``forest:p(cat)``.

A table is recognised if no column of labels, or several rows about one item and worker, make it any other, and numbers
sum to 1 where they have to; the first form also where they do not, since nothing else could be read from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import is_among
from ..errors import InputError, Sentence, listing, plural, shorten
from ..kernels import Floats
from ..memory import NUMBER, require_memory
from . import Names, Reader
from .columns import Column, Indices, Values, is_text, to_column, to_values
from .soft_votes import SoftRows, lacks_any
from .tables import Table, key_roles
from .vocabulary import encode_in_order_of_appearance, encode_sorted
from .vote_sums import WHOLES, VoteSums, are_near

# What the column of most probable labels is called.
MOST_PROBABLE = "most probable label"
# With a row for each label there is a cell for each vote and label. So many may be empty, and so many for each row.
MOST_CELLS, CELLS_PER_ROW = 5_000_000, 100
# Names of the column of probabilities, where each label has a row.
PROBABILITY = ("probability", "probabilities", "prob", "proba")
# What may be between worker and class.
SEPARATORS = (":", "/", "|", "__", ".", "_", " ", "-")
# Roles of columns that are no classes.
_OTHERS = ("item", "worker", "sequence", "position", "weight", "order", "gold")
# So many different fractions are no labels.
MOST_LABELS = 20
# So many rows tell the form of a table.
HEAD = 10_000
_NAMED = re.compile(r"p\((.*)\)", re.DOTALL)
_GIVE_ROWS = "Give a row to each class that is not ruled out."
_LABEL = Sentence("If they are no probabilities, name the column of answers with {label}.")


def to_numbers(column: Column) -> Floats | None:
    """Return a column as numbers, NaN where one is missing; None if it holds anything else."""
    if isinstance(column, np.ndarray):
        return None
    if is_text(column.type):  # as all columns of CSV files with fractions are
        try:
            column = pc.cast(pc.if_else(pc.equal(column, ""), None, column), pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        return None
    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def sum_to_one(votes: Floats) -> bool:
    """Tell whether all rows (n, L), but for those that are missing, sum to 1 or 100 %, up to rounding."""
    there = votes[~np.isnan(votes).all(axis=1)]
    total = there.sum(axis=1)
    return bool(len(there) and (there >= 0).all() and any(are_near(total, each, votes.shape[1]) for each in WHOLES))


def stack(table: Table, columns: Sequence[str]) -> Floats | None:
    """Return the numbers in some columns, (n_rows, n); None if one of them holds anything else."""
    require_memory(
        2 * NUMBER * table.n_rows * len(columns), f"{table.name} has {table.n_rows:,} x {len(columns):,} cells"
    )
    found = []
    for name in columns:
        numbers = to_numbers(table.read(name))
        if numbers is None:
            return None
        found.append(numbers)
    return np.stack(found, axis=1) if found else None


def are_shares(numbers: Floats) -> bool:
    """Tell whether numbers are between 0 and 1, and so many different ones that they can hardly be labels."""
    there = numbers[~np.isnan(numbers)]
    return bool(len(there) and there.min() >= 0 and there.max() <= 1 and len(np.unique(there)) > MOST_LABELS)


def take_head(table: Table) -> Table:
    """Return the first rows of a table, which tell its form."""
    return table if table.n_rows <= HEAD else table.keep(np.arange(HEAD))


def need_numbers(table: Table, columns: Sequence[str]) -> Floats:
    """Return the same; anything else in the columns is an error."""
    votes = stack(table, columns)
    if votes is None:
        odd = [name for name in columns if to_numbers(table.read(name)) is None]
        raise InputError(
            f"Columns of {table.name} that are to hold probabilities hold something else: {listing(odd)}.",
            Sentence("Leave them out with {ignore}."),
            keyword="ignore",
        )
    return votes


def list_classes(table: Table, names: Names) -> dict[str, str]:
    """Return the columns of classes, each with its class."""
    called = {name: match.group(1) for name in table.names if (match := _NAMED.fullmatch(str(name))) is not None}
    if len(called) > 1:
        return {name: label for name, label in called.items() if name not in table.ignored}
    other = {table.find(role) for role in _OTHERS} | {name for name in names.values() if isinstance(name, str)}
    return {name: name for name in table.names if name not in other and name not in table.ignored}


def are_named(columns: dict[str, str]) -> bool:
    """Tell whether columns of classes are called p(<class>)."""
    return any(name != label for name, label in columns.items())


def is_there(table: Table, names: Names, *roles: str) -> bool:
    """Tell whether a column plays one of some roles, by the name that was given or by its own."""
    return any(names.get(role) is not None or table.find(role) is not None for role in roles)


def choose(table: Table, names: Names, role: str) -> str | None:
    """Return the column that plays a role: the one that was named, or else the one that is found."""
    return table.find(role) if names.get(role) is None else names[role]


# ------------------------------------------------------------------------------------------ one row per item and worker


def _recognise(table: Table, names: Names) -> bool:
    """Tell whether a table has a worker, and columns of numbers where the label should be."""
    if any(names.get(role) is not None for role in ("label", "weight")) or not is_there(
        table, names, "item", "sequence"
    ):
        return False
    if not is_there(table, names, "worker"):
        return False
    columns = list_classes(table, names)
    if len(columns) > 1 and are_named(columns):
        return True
    if not columns or table.find("label") is not None:
        return False
    votes = stack(table, list(columns))
    if len(columns) == 1:  # which is an error, and says what it lacks
        return votes is not None and are_shares(votes)
    # Whole numbers may be answers to several questions.
    return votes is not None and (sum_to_one(votes) or bool((np.nan_to_num(votes) % 1 != 0).any(axis=0).all()))


def _translate(table: Table, names: Names) -> Table:
    if table.soft is not None:
        return replace(table, format=names.get("format") or table.format)
    _refuse(table, names, ("label", "weight"))
    columns = list_classes(table, names)
    table.need("worker", names.get("worker"), parameter="worker")
    if len(columns) < 2:
        raise InputError(
            f"{table.name} has {plural(len(columns), 'column')} that may hold the probabilities of a class"
            f"{f': {listing(columns)}' if columns else ''}. There must be one for each class.",
            "If there are two classes, add the other one: 1 minus the first.",
            Sentence("If each label has a row of its own, use {format}.", format="soft-long"),
            keyword="format",
        )
    rows = SoftRows(objects_of(columns.values()), need_numbers(table, list(columns)))
    return with_votes(table, rows, names.get("format") or "soft")


def objects_of(labels: Iterable[str]) -> Values:
    """Return labels as an array: numbers where all of them are written as such."""
    names = list(labels)
    whole = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", str(name)) for name in names)
    return np.array([int(name) for name in names]) if whole else to_values(to_column([str(name) for name in names]))


def with_votes(table: Table, rows: SoftRows, format: str) -> Table:
    """Return a table with one row per soft vote; those that are missing are left out."""
    if lacks_any(rows.votes):
        there = np.flatnonzero(~np.isnan(rows.votes).all(axis=1))
        if not len(there):
            raise InputError(f"{table.name} has no votes: all probabilities are missing.")
        table, rows = table.keep(there), rows.pick(there)
    rows = rows._replace(codes=rows.find_codes())
    table = table.add({MOST_PROBABLE: to_column(rows.labels).take(rows.find_codes())})
    return replace(table, preferred={**table.preferred, "label": MOST_PROBABLE}, format=format, soft=rows)


def _refuse(table: Table, names: Names, roles: Sequence[str]) -> None:
    """Raise an error for names of columns that such a table does not have."""
    for role in roles:
        if names.get(role) is not None:
            raise InputError(
                f"{table.name} is read as a table of probabilities, which has no column of its own for the {role}.",
                Sentence(f"Leave {{{role}}} out.", **{role: names[role]}),
                Sentence("If it has one row per answer, use {format}.", format="long"),
                keyword=role,
            )


# ----------------------------------------------------------------------------------- one row per item, worker and label


def find_probability(table: Table) -> str | None:
    """Return the column of probabilities, where each label has a row."""
    return next((name for name in table.names if str(name).lower() in PROBABILITY), None)


def _recognise_long(table: Table, names: Names) -> bool:
    """Tell whether there is a column of probabilities, and several labels with different ones about one item."""
    column = find_probability(table)
    if (
        column is None
        or names.get("weight") is not None
        or not is_there(table, names, "item", "sequence")
        or not table.n_rows
    ):
        return False
    if not (is_there(table, names, "worker") and is_there(table, names, "label")):
        return False
    head = take_head(table)
    numbers = to_numbers(head.read(column))
    if numbers is None:
        return False
    label = table.need("label", names.get("label"), parameter="label")
    if are_shares(numbers) and len(encode_in_order_of_appearance(head.read(label))[1]) == 1:
        return True  # which is an error, and says what it lacks
    # Mostly a vote has its rows one after the other.
    return any(int(_find_pairs(each, names).max()) + 1 < each.n_rows for each in (head, table))


def _find_pairs(table: Table, names: Names) -> Indices:
    """Return for each row the number of its item and worker, in order of appearance."""
    in_sequences = names.get("item") is None and (names.get("sequence") is not None or table.has_sequences())
    pair = np.zeros(table.n_rows, np.int64)
    for role in (*key_roles(in_sequences), "worker"):
        column = table.values(table.need(role, names.get(role), parameter=role), "Fill it in or drop the row.")
        codes, values = encode_in_order_of_appearance(column)
        pair = encode_in_order_of_appearance(to_column(pair * len(values) + codes))[0].astype(np.int64)
    return pair


def _translate_long(table: Table, names: Names) -> Table:
    _refuse(table, names, ("weight",))
    column = find_probability(table)
    if column is None:
        raise InputError(
            f"{table.name} has no column of probabilities (looked for {', '.join(PROBABILITY)}).",
            "Rename the column that holds them.",
        )
    label = table.need("label", names.get("label"), parameter="label")
    codes, labels = encode_sorted(table.values(label, "Each probability is that of a label: fill it in."))
    if len(labels) < 2:
        raise InputError(
            f"{table.name} has probabilities of {labels.tolist()[0]!r} alone.",
            "Give a row to each class. If there are two, that of the other one is 1 minus the first.",
        )
    (numbers,) = need_numbers(table, [column]).T
    pair = _find_pairs(table, names)
    n_pairs = int(pair.max()) + 1
    size = f"{table.name} has {n_pairs:,} votes on {len(labels):,} labels"
    require_memory(2 * NUMBER * n_pairs * len(labels), size)
    if n_pairs * len(labels) > max(MOST_CELLS, CELLS_PER_ROW * table.n_rows):
        raise InputError(
            f"{size}, and only {table.n_rows:,} probabilities: a table of them would be nearly empty.",
            "Merge rare or misspelt labels.",
        )
    cell = pair * len(labels) + codes
    count = np.bincount(cell, minlength=n_pairs * len(labels))
    if count.max() > 1:
        n, k = divmod(int((count > 1).argmax()), len(labels))
        rows = np.flatnonzero((pair == n) & (codes == k))
        raise InputError(
            f"{table.name} has two probabilities of {labels.tolist()[k]!r} by one worker about one item: see "
            f"{table.locate(int(rows[0]))} and {table.locate(int(rows[1]))}.",
            "Leave one of them.",
        )
    votes = np.zeros((n_pairs, len(labels)))
    votes.ravel()[cell] = numbers
    first = np.empty(n_pairs, np.int64)
    first[pair[::-1]] = np.arange(len(pair))[::-1]  # the first of several stays
    return with_votes(table.keep(first), SoftRows(labels, votes, lacks_rows=True), "soft-long")


# -------------------------------------------------------------------------------------- one column per worker and class


class Grid(NamedTuple):
    """Columns of workers and classes."""

    workers: list[str]
    classes: list[str]
    columns: dict[tuple[str, str], str]


def _recognise_wide(table: Table, names: Names) -> bool:
    """Tell whether names of columns are those of workers and classes, and what is in them sums to 1."""
    if is_there(table, names, "worker", "label", "weight"):
        return False
    item = choose(table, names, "item")
    if not is_among(item, table.names) or len(table.names) < 5:
        return False
    return any(len(grid.workers) > 1 for grid in _find_grids(take_head(table), names))


def _list_cells(table: Table, names: Names) -> list[str]:
    taken = {choose(table, names, "item"), choose(table, names, "gold"), *table.ignored}
    return [name for name in table.names if name not in taken]


def _find_grids(table: Table, names: Names, checked: bool = True) -> Iterator[Grid]:
    """Yield the ways in which names of columns are those of workers and classes; `checked`: votes sum to 1, too."""
    cells = _list_cells(table, names)
    for sign in SEPARATORS:
        for split in (str.rpartition, str.partition):
            parts = [split(str(name), sign) for name in cells]
            if not all(one and other for one, _, other in parts):
                continue
            for pairs in ([(one, other) for one, _, other in parts], [(other, one) for one, _, other in parts]):
                grid = _lay_out(cells, pairs)
                if grid is not None and (not checked or _adds_up(table, grid)):
                    yield grid


def find_grid(table: Table, names: Names) -> Grid | None:
    """Return the workers and classes that columns are called by, best such that votes sum to 1."""
    return next(_find_grids(table, names), None) or next(_find_grids(table, names, checked=False), None)


def _lay_out(cells: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Grid | None:
    """Return the grid of pairs of worker and class, if each worker has each class and there are several classes."""
    named = [(who, match.group(1) if (match := _NAMED.fullmatch(what)) else what) for who, what in pairs]
    workers, classes = (list(dict.fromkeys(each)) for each in zip(*named, strict=True))
    columns = dict(zip(named, cells, strict=True))
    if len(classes) < 2 or len(columns) != len(cells) or len(workers) * len(classes) != len(cells):
        return None
    return Grid(workers, classes, columns)


def _read_worker(table: Table, grid: Grid, who: str) -> Floats | None:
    return stack(table, [grid.columns[who, what] for what in grid.classes])


def _adds_up(table: Table, grid: Grid) -> bool:
    votes = (_read_worker(table, grid, who) for who in grid.workers)
    return all(each is not None and (np.isnan(each).all() or sum_to_one(each)) for each in votes)


def _translate_wide(table: Table, names: Names) -> Table:
    _refuse(table, names, ("worker", "label", "weight", "sequence", "position", "order"))
    item = table.need("item", names.get("item"), parameter="item")
    grid = find_grid(take_head(table), names)
    if grid is None:
        raise InputError(
            f"The columns of {table.name} are not those of workers and classes: {listing(_list_cells(table, names))}.",
            "Call them by worker and class with a sign between the two, such as forest_cat, and give each worker a "
            "column for each class.",
            Sentence("Leave columns that hold no probabilities out with {ignore}."),
        )
    return with_votes(*melt(table, item, grid, choose(table, names, "gold")), "soft-wide")


def melt(table: Table, item: str, grid: Grid, gold: str | None = None) -> tuple[Table, SoftRows]:
    """Return a table with a row for each item and worker, and its soft votes."""
    keys, size = table.values(item, "Say which item each row is about."), len(grid.workers)
    parts = [need_numbers(table, [grid.columns[who, what] for what in grid.classes]) for who in grid.workers]
    votes = np.stack(parts, axis=1).reshape(-1, len(grid.classes))
    row = np.repeat(np.arange(table.n_rows), size)
    who = np.tile(np.arange(size, dtype=np.int32), table.n_rows)
    columns = {item: keys.take(row), "worker": to_column(objects_of(grid.workers)).take(who)}
    if gold is not None:
        columns[gold] = table.read(gold).take(row)
    melted = Table(
        list(columns),
        columns.__getitem__,
        len(row),
        table.backend,
        table.name,
        lambda at: f"{table.locate(int(row[at]))}, worker {grid.workers[at % size]!r}",
        {"item": item, "worker": "worker"} | ({} if gold is None else {"gold": gold}),
        items=to_column(encode_in_order_of_appearance(keys)[1]),
    )
    return melted, SoftRows(objects_of(grid.classes), votes)


# --------------------------------------------------------------------------------------------------------------- checks


def check_votes(table: Table, rows: SoftRows, rescale: bool) -> Floats:
    """Return votes that sum to 1; raise an error for those that are no probabilities, with what may be the reason."""
    holed = np.flatnonzero(np.isnan(rows.votes).any(axis=1)) if lacks_any(rows.votes) else np.empty(0, np.int64)
    if len(holed):
        lacking = rows.labels[np.isnan(rows.votes[holed[0]])].tolist()
        raise InputError(
            f"{table.name} has no probability of {listing(lacking)} at {table.locate(int(holed[0]))}, and there are "
            f"others. There {'is' if len(holed) == 1 else 'are'} {plural(len(holed), 'such row')}.",
            "Give each class a probability, 0 if it is ruled out; leave all empty where there is no vote.",
        )
    sums = VoteSums.of(rows.votes, rescale)
    wrong = np.flatnonzero(sums.wrong)
    if not len(wrong):
        return sums.rescaled()
    row = int(wrong[0])
    first = zip(rows.labels[:5].tolist(), sums.votes[row, :5].tolist(), strict=True)
    shown = ", ".join(f"{value:.4g} for {shorten(label)}" for label, value in first)
    raise InputError(
        f"{table.name} holds {plural(len(wrong), 'vote')} whose numbers are no probabilities: they must be at least 0 "
        f"and sum to 1. The first, at {table.locate(row)}, sums to {sums.total[row]:.4g} ({shown}"
        f"{', ...' if len(rows.labels) > 5 else ''}).",
        *sums.suggest(_GIVE_ROWS if rows.lacks_rows else "If a class is missing, add its column."),
        *(() if sums.can_be_rescaled() else (_LABEL,)),
    )


SOFT = Reader(_recognise, _translate)
SOFT_LONG = Reader(_recognise_long, _translate_long)
SOFT_WIDE = Reader(_recognise_wide, _translate_wide)
SOFT_FILES = Reader(lambda table, names: False, _translate)  # noqa: ARG005 (a folder is recognised when it is opened)
