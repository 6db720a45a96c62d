"""Soft votes: what each answer gives to every label, beside the label that it gives most; and tables of them.

A classifier that says ``[.7, .2, .1]`` has answered, with the first class, and has also told how sure it is. As an
answer it is like any other: models that look at labels take its most probable one. The probabilities stand beside it,
for models that learn what they are worth.

The probabilities of a vote are at least 0 and sum to 1. Those that were rounded do so only nearly, and percentages sum
to 100; both are taken if the user says so (`rescale`). All else is an error, and numbers mostly show what happened.

There are two layouts of tables:

- soft: one row per item and worker, one column for each class. Columns are called ``p(cat)``, as results are, or by the
  classes alone; then all columns but those of item and worker are classes.
- soft-long: one row per item, worker and label, and a column of probabilities. A label without a row has none.

A table is recognised if its columns are called ``p(cat)``; or if no column of labels, or several rows about one item
and worker, make it any other, and numbers sum to 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError, ParameterError, Sentence, listing, plural
from ..kernels import Floats, Integers, Truths
from ..limits import NUMBER, require_few, require_memory
from . import PROBABILITY, Names
from .columns import (
    Codes,
    Indices,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    is_text,
    number_groups,
    to_column,
    to_values,
)
from .tables import Table, key_roles, plays, read_names, refuse_roles

Probabilities: TypeAlias = NDArray[np.float32]

# Probabilities of one vote may exceed 1 by rounding.
VOTE_SLACK = 1e-3
# What rounding to two decimals does to one probability at most; sums may differ from 1 by so much at most.
DECIMAL_ROUNDING, MOST_ROUNDING = 0.005, 0.1
PERCENT = 100.0
# What the column of most probable labels is called.
MOST_PROBABLE_LABEL = "most probable label"
# Roles of columns that are no classes.
_OTHERS = ("item", "worker", "sequence", "position", "weight", "order", "gold")
_HOW = "as a table of probabilities"
_NAMED = re.compile(r"p\((.*)\)", re.DOTALL)


class SoftRows(NamedTuple):
    """Soft votes in the rows of a table.

    Attributes
    ----------
    labels : ndarray (L,)
        What each column of the votes is about.
    votes : float64 array (n_rows, L)
        Probabilities as they were read; NaN where one is missing.
    named : bool
        Whether the labels have their names; else they are numbered, and may be named later.
    """

    labels: Values
    votes: Floats
    named: bool = True

    def pick(self, rows: Indices) -> SoftRows:
        """Those of some rows."""
        return self._replace(votes=self.votes[rows])

    def find_codes(self) -> Codes:
        """The label that each row gives most, by index: the first of several."""
        return np.asarray(np.where(np.isnan(self.votes), -np.inf, self.votes).argmax(axis=1), np.int32)


def relabel(votes: Probabilities, label: Integers, n_labels: int) -> Probabilities:
    """Probabilities of other labels; `label` says which of these each label is. Those of merged labels add up."""
    if n_labels == len(label) and np.array_equal(label, np.arange(n_labels)):
        return votes
    moved = np.zeros((len(votes), n_labels), np.float32)
    for column, place in enumerate(label.tolist()):
        moved[:, place] += votes[:, column]
    return moved


# ---------------------------------------------------------------------------------------------------------------- sums


def find_whole(votes: Floats, rounded: bool = True) -> float | None:
    """What all votes (n, L), which may be rounded, sum to: 1, or 100 of percentages; None if it is anything else."""
    is_right = [check_sums(votes / whole, rounded).all() for whole in (1.0, PERCENT)]
    return 1.0 if is_right[0] else PERCENT if is_right[1] else None


def check_sums(votes: Floats, rounded: bool) -> Truths:
    """Which votes (n, L) are at least 0 and sum to 1, perhaps but for rounding."""
    slack = min(DECIMAL_ROUNDING * votes.shape[1], MOST_ROUNDING) * rounded + VOTE_SLACK
    with np.errstate(over="ignore", invalid="ignore"):
        total = votes @ np.ones(votes.shape[1])  # faster than `sum` where there are few classes
    return np.asarray((np.abs(total - 1) <= slack) & (votes >= 0).all(axis=1))


def sum_to_one(votes: Floats) -> bool:
    """Whether all rows (n, L), but for those that are missing, sum to 1 or 100%, up to rounding."""
    there = votes[~np.isnan(votes).all(axis=1)]
    return bool(len(there)) and find_whole(there) is not None


def scale_votes(
    votes: Floats, labels: Values, rescale: bool, name: str, locate: Callable[[int], str], *remedies: str | Sentence
) -> Floats:
    """Votes (n, L) on the labels divided by their sums, which must be 1; others are an error, with what may be why.

    Parameters
    ----------
    votes, labels : ndarray
        Probabilities, of which some or none are given.
    rescale : bool
        Whether sums may also be 100, and 1 or 100 but for rounding.
    name, locate
        What messages call the votes, and where one is.
    *remedies : str
        What to do if a class is missing, and perhaps others.
    """
    holes = np.isnan(votes)
    holed = np.flatnonzero(holes.any(axis=1))
    if len(holed):
        raise InputError(
            f"{name} has no probability of {listing(labels[holes[holed[0]]].tolist())} at {locate(int(holed[0]))}, and "
            f"there are others. So it is in {plural(len(holed), 'row')}.",
            "Give each class a probability, 0 if it is ruled out; leave all empty where there is no vote.",
        )
    whole = find_whole(votes, rescale)
    with np.errstate(over="ignore", invalid="ignore"):
        total = votes @ np.ones(votes.shape[1])
    if whole == 1 or (rescale and whole is not None):
        return np.asarray(votes / total[:, None])
    wrong, whole = np.flatnonzero(~check_sums(votes, rescale)), find_whole(votes)
    if whole is not None:
        kind = "percentages" if whole == PERCENT else "rounded"
        remedies = (Sentence(f"They seem to be {kind}: use {{rescale}}.", rescale=True),)
    elif (votes < 0).any() or (votes > 1).any():
        remedies = ("If these are logits or scores, take their softmax first.", *remedies[1:])
    shown = listing([float(f"{value:.4g}") for value in votes[wrong[0]]])
    raise InputError(
        f"{name} holds {plural(len(wrong), 'vote')} whose numbers are no probabilities: they must be at least 0 and "
        f"sum to 1. The first, at {locate(int(wrong[0]))}, is {shown}, and sums to {total[wrong[0]]:.4g}.",
        *remedies,
    )


def check_votes(
    table: Table, rows: SoftRows, classes: Any, normalise: bool, duplicates: str, rescale: bool
) -> SoftRows:
    """The soft votes of a table, which sum to 1. The parameters are those of `Answers.from_frame`."""
    if normalise or duplicates == "mean":
        name, value = ("normalise", True) if normalise else ("duplicates", "mean")
        problem = Sentence(f"{{{name}}} does not go with probabilities.", **{name: value})
        raise ParameterError(problem, "Leave it out.", keyword=name)
    if not rows.named and classes is not None:
        rows = rows._replace(labels=read_names(classes, len(rows.labels), "classes"))
    remedy = "Give a number to each class that is not ruled out. Else divide each vote by its sum."
    no_votes = Sentence("If they are no probabilities, name the column of answers with {label}.")
    votes = scale_votes(rows.votes, rows.labels, rescale, table.name, table.locate, remedy, no_votes)
    return rows._replace(votes=votes)


# ------------------------------------------------------------------------------------------------- columns of numbers


def stack(table: Table, columns: Sequence[str], sure: bool = False) -> Floats | None:
    """The numbers in some columns, (n_rows, n), NaN where one is missing.

    If one of them holds anything else this is an error if it is `sure` that they are to be numbers, and else None.
    """
    require_memory(
        2 * NUMBER * table.n_rows * len(columns), f"{table.name} has {table.n_rows:,} x {len(columns):,} cells"
    )
    rows = []
    for name in columns:
        column: Any = table.read(name)
        try:
            if is_text(column.type):  # as all columns of CSV files with fractions are
                column = pc.cast(pc.if_else(pc.equal(column, ""), None, column), pa.float64())
            if not any(test(column.type) for test in (pa.types.is_floating, pa.types.is_integer, pa.types.is_null)):
                raise AttributeError
            rows.append(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        except (AttributeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if not sure:
                return None
            raise InputError(
                f"A column of {table.name} that is to hold probabilities holds something else: {listing([name])}.",
                Sentence("Leave it out with {ignore}."),
                keyword="ignore",
            ) from error
    return np.stack(rows, axis=1) if rows else None


def find_class_columns(table: Table, names: Names) -> dict[str, str]:
    """The columns of classes, each with its class."""
    called = {name: match.group(1) for name in table.names if (match := _NAMED.fullmatch(str(name))) is not None}
    if called:
        return {name: label for name, label in called.items() if name not in table.ignored}
    other = {table.find(role) for role in _OTHERS} | {name for name in names.values() if isinstance(name, str)}
    return {name: name for name in table.names if name not in other and name not in table.ignored}


# ------------------------------------------------------------------------------------------------------------- layouts


def with_votes(table: Table, rows: SoftRows) -> Table:
    """A table with one row per soft vote; those that are missing are left out."""
    there = np.flatnonzero(~np.isnan(rows.votes).all(axis=1))
    if not len(there):
        raise InputError(f"{table.name} has no votes: all probabilities are missing.")
    if len(there) < table.n_rows:
        table, rows = table.keep(there), rows.pick(there)
    table = table.add({MOST_PROBABLE_LABEL: to_column(rows.labels).take(rows.find_codes())})
    return replace(table, preferred={**table.preferred, "label": MOST_PROBABLE_LABEL}, soft=rows)


def read_soft(table: Table, names: Names, named: bool) -> Table | None:
    """One row per vote, which it has already.

    It is recognised if it has a worker, and columns of numbers where the label should be.
    """
    if table.soft is not None:
        return table
    if named:
        refuse_roles(table, names, ("label", "weight"), _HOW)
    columns = find_class_columns(table, names)
    if not named:
        is_other = any(names.get(role) is not None for role in ("label", "weight")) or not columns
        if is_other or not plays(table, names, "item", "sequence") or not plays(table, names, "worker"):
            return None
        if list(columns) == list(columns.values()):  # without names such as p(cat)
            votes = None if table.find("label") is not None or len(columns) < 2 else stack(table, list(columns))
            if votes is None or not sum_to_one(votes):
                return None
    table.need("worker", names.get("worker"), parameter="worker")
    if len(columns) < 2:
        which = f": {listing(columns)}" if columns else ""
        raise InputError(
            f"{table.name} has {plural(len(columns), 'column')} that may hold the probabilities of a class{which}. "
            "There must be one for each class.",
            "If there are two classes, add the other one: 1 minus the first.",
            Sentence("If each label has a row of its own, use {format}.", format="soft-long"),
            keyword="format",
        )
    classes = list(columns.values())
    are_numbers = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", str(each)) for each in classes)
    labels = np.array([int(each) for each in classes]) if are_numbers else to_values(to_column(list(map(str, classes))))
    shares: Any = stack(table, list(columns), sure=True)
    return with_votes(table, SoftRows(labels, shares))


read_soft_files = read_soft  # once they are opened


def read_soft_long(table: Table, names: Names, named: bool) -> Table | None:
    """One row per vote from one row per label of each.

    It is recognised if it has a column of probabilities, and several labels by one worker about one item.
    """
    column = next((name for name in table.names if str(name).lower() in PROBABILITY), None)
    if named:
        refuse_roles(table, names, ("weight",), _HOW)
        if column is None:
            raise InputError(
                f"{table.name} has no column of probabilities (looked for {', '.join(PROBABILITY)}).",
                "Rename the column that holds them.",
            )
    elif (
        column is None
        or names.get("weight") is not None
        or not table.n_rows
        or not all(plays(table, names, *roles) for roles in (("item", "sequence"), ("worker",), ("label",)))
    ):
        return None
    label = table.need("label", names.get("label"), parameter="label")
    in_sequences = names.get("item") is None and (names.get("sequence") is not None or table.has_sequences())
    roles = [table.need(role, names.get(role), parameter=role) for role in (*key_roles(in_sequences), "worker")]
    pair = number_groups(table.values(name, "Fill it in or drop the row.") for name in roles)
    n_pairs = int(pair.max()) + 1
    if not named:
        numbers = stack(table, [column])
        if numbers is None:
            return None
        is_single = len(encode_in_order_of_appearance(table.read(label))[1]) == 1
        if n_pairs == table.n_rows and not (is_single and sum_to_one(np.hstack([numbers, 1 - numbers]))):
            return None
    codes, labels = encode_sorted(table.values(label, "Each probability is that of a label: fill it in."))
    if len(labels) < 2:
        raise InputError(
            f"{table.name} has probabilities of {labels.tolist()[0]!r} alone.",
            "Give a row to each class. If there are two, that of the other one is 1 minus the first.",
        )
    n_cells = n_pairs * len(labels)
    size = f"{table.name} has {n_pairs:,} votes on {len(labels):,} labels"
    require_memory(2 * NUMBER * n_cells, size)
    size += f", {n_cells:,} cells for {table.n_rows:,} probabilities"
    require_few("cells", n_cells, size, "Merge rare or misspelt labels.", n=table.n_rows)
    cell = pair * len(labels) + codes
    repeated = np.flatnonzero(np.bincount(cell, minlength=n_cells) > 1)
    if len(repeated):
        first, second = (table.locate(row) for row in np.flatnonzero(cell == repeated[0])[:2].tolist())
        label = labels.tolist()[repeated[0] % len(labels)]
        raise InputError(
            f"{table.name} has two probabilities of {label!r} by one worker about one item: see {first} and {second}.",
            "Leave one of them.",
        )
    given: Any = stack(table, [column], sure=True)
    votes = np.zeros((n_pairs, len(labels)))
    votes.ravel()[cell] = given[:, 0]
    rows = np.unique(pair, return_index=True)[1]  # the first of each
    return with_votes(table.keep(rows), SoftRows(labels, votes))
