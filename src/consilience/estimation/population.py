"""The items that are counted: what is predicted for all of them, and what is known of a sample.

They are those of a fit, or the rows of a table with probabilities, one judge's labels, or numbers. Predictions for the
sample must not have seen its labels: a fit with known labels gives, for their items, what it would say without.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import find_by_value, to_numbers
from ..answers.columns import (
    Column,
    Values,
    add_values,
    encode_in_order_of_appearance,
    find_missing,
    find_present,
    is_present,
    lookup,
    number_groups,
    objects,
    plain_labels,
    to_column,
)
from ..answers.gold import Gold, find_classes, find_label, match_gold
from ..answers.matching import match_column, match_items, open_gold
from ..answers.tables import Table, key_roles, open_frame, read_figures
from ..engines import open_engine
from ..errors import InputError, ParameterError, listing, plural, shorten
from ..formats.reading import open_path
from ..inference.hidden_answers import raise_where
from ..inference.labels import collect_votes
from ..inference.observations import Observations
from ..kernels import Floats, Truths
from ..results.calibration import find_raised
from ..results.result import Result
from .difference import Indices

# What the mean of levels and numbers is called among the things that are estimated.
MEAN = "mean"
# Fewer known labels than these say nothing of all items, and of one group.
LEAST_KNOWN, LEAST_IN_GROUP = 10, 5
# Labels of one judge are numbers to be averaged if so many differ.
MANY = 20
DRAW = "Draw items with `consilience next MODEL --known 100`, have a person label them, and give their labels."
PROBABILITY = re.compile(r"p\((.*)\)", re.DOTALL)
# What a table of labels says of those that were given, and how seldom all items of a sample are certain by chance.
RULE, KNOWN = "decided_by", "known label"
SELDOM = 0.001


class Quantity(NamedTuple):
    """What is estimated: the share of a class, or a mean."""

    name: Any
    predicted: Floats  # of all items
    known: Floats  # of the sample
    is_share: bool


@dataclass(frozen=True, eq=False)
class Population:
    """All items, with what is predicted and what is known of them.

    Attributes
    ----------
    answers : Answers
        Whose items they are.
    columns : mapping
        Columns of the items by which groups can be named.
    names : ndarray
        Classes or tags; nothing for numbers.
    predicted : array (N, T)
        Their probabilities, or predicted numbers.
    rows : int64 array (n,)
        The items that were drawn at random, and are known.
    known : array (n, T)
        What is known of them.
    inclusion : array (n,) or None
        The probability with which each was drawn; None: all were as likely.
    positions : tuple or None
        Where classes are on a scale.
    n_aside : int
        Known labels that were not drawn at random.
    backend : str
        The library of tables.
    """

    answers: Answers
    columns: Mapping[str, Column]
    names: Values
    predicted: Floats
    rows: Indices
    known: Floats
    inclusion: Floats | None = None
    positions: tuple[float, ...] | None = None
    n_aside: int = 0
    backend: str = "pyarrow"
    n_items: int = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update(n_items=len(self.predicted))
        if not len(self.rows):
            problem = f"None of the {plural(self.n_aside, 'known label')} was drawn at random" if self.n_aside else ""
            raise InputError(
                f"{problem or 'There are no known labels'}, so nothing is known of all items.",
                DRAW,
            )
        if len(self.rows) < LEAST_KNOWN:
            raise InputError(
                f"Only {plural(len(self.rows), 'known label')} {'was' if len(self.rows) == 1 else 'were'} drawn at "
                f"random; {LEAST_KNOWN} are the fewest that say something of all items.",
                "Have more items labelled.",
            )
        if (self.known == self.known[0]).all():
            value = self.known[0]
            said = [str(self.names[t]) for t in np.flatnonzero(value)] if len(self.names) else [f"{value[0]:g}"]
            raise InputError(
                f"All {plural(len(self.rows), 'known label')} are {listing(said)}, so nothing is known of other items.",
                "Have more items labelled, drawn at random.",
            )

    def quantify(self, of: object) -> list[Quantity]:
        """What is asked for: a class, a tag or "mean", several of them, or None for all."""
        every = {name: place for place, name in enumerate(self.names.tolist())}
        has_mean = self.positions is not None or not every
        if of is None:
            asked: list[Any] = [*([MEAN] if has_mean else []), *every]
        else:
            asked = list(of) if isinstance(of, (list, tuple, set, np.ndarray)) else [of]
        found = list[Quantity]()
        for name in asked:
            place = -1 if not every else int(find_by_value(self.names, objects([name]))[0])
            if place >= 0:
                found.append(Quantity(self.names[place], self.predicted[:, place], self.known[:, place], True))
            elif name == MEAN and has_mean:
                scale = np.ones(1) if self.positions is None else np.array(self.positions)
                found.append(Quantity(MEAN, self.predicted @ scale, self.known @ scale, False))
            else:
                there = [*([MEAN] if has_mean else []), *every]
                raise ParameterError(
                    f"There is nothing called {shorten(name)} to be estimated.",
                    f"There are {listing(there)}.",
                    keyword="of",
                )
        return found

    def sort_into(self, given: object, keyword: str) -> tuple[Indices, list[Any]]:
        """The number of the group of each item, -1 for none, and what the groups are called.

        Parameters
        ----------
        given : str, mapping, Series, table or path
            A column of the items, or what has the group of each.
        keyword : str
            The parameter that it is given as.
        """
        if isinstance(given, (str, os.PathLike)):
            if given in self.columns:
                rows, values = np.arange(self.n_items), self.columns[cast(str, given)]
            elif os.path.exists(given):
                return self.sort_into(open_path(given), keyword)
            else:
                raise InputError(
                    f"The items have no column {shorten(given)}. They have {listing(self.columns)}.",
                    "Or give a table with the items and one other column.",
                    keyword=keyword,
                )
        else:
            every = self.answers.n_items // self.n_items
            rows, values = match_column(given, self.answers, keyword)
            rows = rows[::every]
        codes, names = encode_in_order_of_appearance(values)
        absent = np.isin(np.arange(len(codes)), find_missing(values))
        group = np.where(rows >= 0, np.where(absent, -1, codes)[rows], -1)
        return group, names.tolist()


def predict_unseen(result: Result) -> Floats:
    """The probabilities of all items by a fit that did not see their known labels."""
    labels, gold, calibrated = result.labels, result.given.gold, result.calibrated
    if gold is None or not gold.n_known:
        return labels.posterior
    rows, r = np.flatnonzero(gold.codes >= 0), result.answers.with_classes(result.names.classes)
    if result.is_vote:
        unvoted = r.vote_shares() if r.silence_counts else np.full(r.n_classes, 1 / r.n_classes)
        with open_engine(None) as engine:
            return collect_votes(engine, Observations(r), unvoted)[0]
    if calibrated is None or calibrated.blind is None or len(calibrated.blind) != len(rows):
        raise InputError(
            "The fit saw the known labels, and did not keep what it would say without them.",
            "Fit without them, and give them to the estimate alone.",
        )
    changed, power = find_raised(result.estimates.structure, r), calibrated.calibration.power
    posterior = labels.posterior.copy()
    if result.teaching is not None:
        # What known labels taught follows their shares, also where these are off by chance: intervals do not know of
        # it, and held in 87 to 93 % where others hold in 95 %.
        posterior = raise_where(changed, labels.fitted, power)
    posterior[rows] = raise_where(changed[rows], calibrated.blind, power)
    return posterior


def survey_result(result: Result, gold: object = None) -> Population:
    """The items of a fit, by known labels that are given, opened, or those that it was fitted to."""
    classes, kind = result.names.classes, result.kind
    r = result.answers.with_classes(classes)
    known = result.given.gold if gold is None else match_gold(gold, r, classes, as_sample=True)
    if known is None:
        raise InputError("There are no known labels, so nothing is known of all items.", DRAW, keyword="gold")
    columns, names, posterior = dict(result.labels.keys), classes, predict_unseen(result)
    sampled = (known.codes >= 0) & known.judging
    tags = kind.list_parts()
    if tags is None:
        rows = np.flatnonzero(sampled)
        truth, positions = np.eye(len(classes))[known.codes[rows]], result.labels.positions
    else:  # each tag is a share of its own
        n_tags, yes = len(tags), posterior.shape[1] - 1
        posterior, names, positions = posterior[:, yes].reshape(-1, n_tags), tags, None
        rows = np.flatnonzero(sampled.reshape(-1, n_tags).all(axis=1))
        truth = (known.codes.reshape(-1, n_tags)[rows] == yes).astype(np.float64)
        columns = {name: each[::n_tags] for name, each in kind.name_keys(columns).items() if name != "tag"}
    n_aside = int(((known.codes >= 0) & ~known.judging).sum())
    chance = None if known.inclusion is None else known.inclusion[rows]
    return Population(r, columns, names, posterior, rows, truth, chance, positions, n_aside, result.backend)


def list_labels(column: Column) -> Values:
    """The different labels in a column."""
    return encode_in_order_of_appearance(plain_labels(column.take(find_present(column))))[1]


def survey_table(given: object, gold: object, item: str | Sequence[str] | None = None) -> Population:
    """The items of a table of labels, by known labels.

    It has a row for each item, and columns p(<class>), or one column of labels or numbers.
    """
    table = open_frame(open_path(given), "the table of labels")
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows.", "Give a table with labels.")
    known_table = open_path(gold)
    if item is None and table.find_usual("item") is not None:
        # Known labels may name the items of several columns by these alone.
        other = open_gold(known_table, False)
        shared = [name for name in other.names if name in table.names and name != find_label(other)]
        item = shared if other.find_usual("item") is None and len(shared) > 1 else None
    table, named = table.combine("item", list(item) if isinstance(item, (list, tuple)) else item)
    paired = named is None and table.has_sequences()
    names = [table.need(role, named if role == "item" else None) for role in key_roles(paired)]
    parts = [str(each) for each in item] if isinstance(item, (list, tuple)) and len(item) > 1 else []
    keys = {name: table.values(name, "Say which item each row is about.") for name in names}
    number = number_groups(list(keys.values()))
    if len(np.unique(number)) < len(number):
        again = int(np.setdiff1d(np.arange(len(number)), np.unique(number, return_index=True)[1])[0])
        problem = f"{table.name} has several rows about one item, such as that at {table.locate(again)}."
        raise InputError(
            problem, "If they are answers of workers, fuse them first: consilience fuse FILE --save MODEL."
        )
    nobody = {"(judge)": np.zeros(table.n_rows, int), "(label)": np.zeros(table.n_rows, int)}
    roles: dict[str, Any] = dict(zip(key_roles(paired), names, strict=True))
    r = Answers.from_frame({**keys, **nobody}, worker="(judge)", label="(label)", **roles)
    order = np.argsort(match_items(open_frame(keys).prefer(r.columns), r))
    table = table.keep(order)

    found = {str(name): match[1] for name in table.names if (match := PROBABILITY.fullmatch(str(name)))}
    label = table.find("label")
    distinct = None if label is None else list_labels(table.read(label))
    figures = None if distinct is None else to_numbers(distinct)
    is_number = figures is not None and (len(figures) > MANY or bool((figures != np.round(figures)).any()))
    if found:
        classes = objects(list(found.values()))
        predicted = np.column_stack([read_figures(table, name) for name in found])
    elif label is None:
        raise table.no_column("label", None)
    elif is_number:
        classes, predicted = objects([]), read_figures(table, label)[:, None]
    else:
        assert distinct is not None
        other = open_gold(known_table, paired, parts)  # a class that the judge never names can be true
        more = add_values(distinct, list_labels(other.read(find_label(other))))[0]
        classes = objects(sorted(more.tolist(), key=str))
        said = lookup(classes, plain_labels(table.read(label)))
        predicted = np.where(said[:, None] < 0, np.nan, np.eye(len(classes))[said])
    if np.isnan(predicted).any():
        row = int(np.flatnonzero(np.isnan(predicted).any(axis=1))[0])
        raise InputError(
            f"{table.name} does not say what is predicted for the item at {table.locate(row)}.",
            "Give a prediction for each item, or leave the item out everywhere.",
        )
    odd = ((predicted < 0) | (predicted > 1)).any(axis=1) & (len(classes) > 0)
    if odd.any():
        row = int(odd.argmax())
        found_there = next(each for each in predicted[row].tolist() if not 0 <= each <= 1)
        problem = f"Probabilities are from 0 to 1. {table.name} has {found_there:g} at {table.locate(row)}."
        raise InputError(problem, "Divide percentages by 100, or correct the columns p(...).")

    if len(classes):
        other = open_gold(known_table, paired, parts)
        said = list_labels(other.read(find_label(other)))
        absent = said[find_classes(to_column(said), classes) < 0]
        if len(absent):
            raise InputError(
                f"{other.name} has labels of which {table.name} has no probability: {listing(absent.tolist())}.",
                f"Add columns such as p({absent[0]}), of zeros if it was not possible, or correct the labels.",
            )
        known = cast(Gold, match_gold(known_table, r, classes, as_sample=True))
        rows = np.flatnonzero(known.judging)
        truth = np.eye(len(classes))[known.codes[rows]]
    else:
        values = open_gold(known_table, paired, parts).prefer(r.columns)
        column = find_label(values)
        values = values.keep(np.flatnonzero(is_present(values.read(column))))
        as_labels = {name: values.read(name) for name in values.names if name != column} | {
            "label": ["known"] * values.n_rows
        }
        known = cast(Gold, match_gold(open_frame(as_labels, values.name), r, objects(["known"]), as_sample=True))
        rows = np.flatnonzero(known.judging)
        place = np.full(r.n_items, -1)
        place[match_items(values, r)] = np.arange(values.n_rows)
        truth = read_figures(values, column)[place[rows], None]
    refuse_known(table, predicted, rows, truth)
    scale = to_numbers(classes) if len(classes) > 2 else None  # of two classes a share says all
    columns = {str(name): table.read(name) for name in table.names if str(name) not in found}
    n_aside = int(((known.codes >= 0) & ~known.judging).sum())
    chance = None if known.inclusion is None else known.inclusion[rows]
    positions = None if scale is None else tuple(scale.tolist())
    return Population(r, columns, classes, predicted, rows, truth, chance, positions, n_aside, table.backend)


def find_given(table: Table) -> Truths | None:
    """The rows whose label was given to the fit; None if the table does not say."""
    return lookup(objects([KNOWN]), table.read(RULE)) >= 0 if RULE in table.names else None


def are_given(certain: Truths, sampled: Indices) -> bool:
    """Whether all items of a sample are certain where so few others are that they hardly are so by chance.

    >>> are_given(np.arange(100) < 10, np.arange(10)), are_given(np.ones(100, bool), np.arange(10))
    (True, False)
    """
    others = np.delete(certain, sampled)
    return bool(len(others) and certain[sampled].all() and others.mean() ** len(sampled) < SELDOM)


def refuse_known(table: Table, predicted: Floats, rows: Indices, truth: Floats) -> None:
    """Refuse labels that the fit was given: where they are known, predictions have no errors, and elsewhere they do."""
    given, certain, is_number = find_given(table), np.zeros(len(predicted), bool), predicted.shape[1] == 1
    if is_number and {"low", "high"} <= set(table.names):
        certain = (read_figures(table, "low") == predicted[:, 0]) & (read_figures(table, "high") == predicted[:, 0])
    elif not is_number:
        alone = "confidence" in table.names and not any(PROBABILITY.fullmatch(str(name)) for name in table.names)
        certain = (read_figures(table, "confidence") if alone else predicted.max(axis=1)) >= 1
    n_given = 0 if given is None else int(given[rows].sum())
    if not n_given and np.isclose(predicted[rows], truth).all() and are_given(certain, rows):
        n_given = len(rows)
    if n_given:
        raise InputError(
            f"{table.name} was fused with the known labels of {n_given:,} of these {plural(len(rows), 'item')}, so it "
            "shows none of the errors there that it has elsewhere.",
            "Fuse without the known values."
            if is_number
            else "Estimate from the model, saved with --save, which keeps what it would say without them; or fuse "
            "without --gold.",
        )
