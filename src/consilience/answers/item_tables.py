"""What is known of items beside their answers, matched to the items by id: features, and priors.

Features are numbers that describe what an item is. Priors of items are probabilities of the classes.

Let g_nk be the probability of class k for item n before any answer, from a classifier or from whoever knows the item,
and p_k the share of the class over all items. By Bayes' rule, what is known of item n multiplies the evidence by

    g_nk / p_k   prop. to   P(what is known of n | class k)

while each structure keeps its own prior over the labels:

- independent items have q_nk prop. to pi_k (g_nk / p_k) b_nk, which is g_nk b_nk if the class prior pi is p;
- a chain has P(y) prod_n (g_n(y_n) / p(y_n)) b_n(y_n), with P(y) the product of its start and steps, so that the share
  of a class is not counted once by the chain and once more by g;
- a field has the same product, with its couplings in place of steps.

So priors of items say how items differ. How frequent the classes are is up to the class prior, which is learned or
given. For independent items the objective stays a likelihood: that of the answers and of what else is known.

At a fit p is the mean over all items. Items without a prior count with their vote shares, or what else is known of
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, listing, plural, warn_of
from ..kernels import Floats, freeze
from ..options import to_floats
from .answers import Answers
from .classes import normalise_label
from .columns import Indices, Values, name_composite, spell_surrogates
from .gold import match_items
from .graph import to_rows
from .items import Sequences, encode_items
from .tables import WHOLE, Table, is_table, open_frame, read_figures

KEY_REMEDY = "Say which item each row belongs to."
# What is left of logarithms that should cancel out.
ROUNDING = 1e-12
# Smaller probabilities than this count as this: they can still be multiplied. Zero stays zero.
LEAST = 1e-100


@dataclass(frozen=True, eq=False)
class Features:
    """Features of some items.

    Attributes
    ----------
    rows : array or sparse array (n, D)
        The numbers, in single or double precision.
    item : int64 array (n,)
        The item that each row is about, ascending.
    names : list of str or None
        The columns of the table that they came in.
    """

    rows: Any
    item: Indices
    names: list[str] | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def select(self, names: list[str] | None, n_columns: int) -> Any:
        """The rows with the columns of a fit, which had these names; without names, with as many columns."""
        if names is None or self.names is None:
            problem = f"{plural(n_columns, 'feature')}, and these are {self.n_columns:,}"
            columns: Any = slice(None)
            is_like = self.n_columns == n_columns
        else:
            missing = [name for name in names if name not in self.names]
            problem = f"the features {listing(names)}, and these have no column {listing(missing)}"
            columns, is_like = [self.names.index(name) for name in names if name not in missing], not missing
        if not is_like:
            raise InputError(f"The model was fitted with {problem}.", keyword="features")
        return self.rows[:, columns]


def open_item_table(given: Any, what: str) -> Table:
    """A table of any frame library as a `Table`; a pandas index that has a name is a column."""
    name = getattr(getattr(given, "index", None), "name", None)
    if name is not None and hasattr(given, "reset_index") and name not in given.columns:
        given = given.reset_index()
    return open_frame(given, what)


def match_rows(table: Table, r: Answers) -> tuple[Indices, Indices]:
    """The items that rows of a table are about, ascending, and which rows these are; other rows are left out."""
    table = table.prefer(r.columns)
    item = match_items(table, r)
    known = np.flatnonzero(item >= 0)
    rows = known[np.argsort(item[known], kind="stable")]
    repeated = np.unique(item[rows][1:][np.diff(item[rows]) == 0])
    if len(repeated):
        items = listing(r.items[repeated].tolist())
        problem = f"There are several rows of {table.name} for {plural(len(repeated), 'item')}: {items}."
        raise InputError(problem, "Keep one row for each of them.")
    return item[rows], rows


def key_names(table: Table, r: Answers) -> list[str]:
    """The columns of a table that say which item a row is about, and those that these are joined from."""
    names = table.prefer(r.columns).need_keys(r.sequences is not None)
    return [*names, *(part for role in WHOLE for part in name_composite(r.columns, role) if part in table.names)]


def list_items(given: Any, in_sequences: bool) -> Values | Sequences:
    """What identifies the items that features are about; without a table these are 0, 1, 2, ..."""
    if is_table(given):
        table = open_item_table(given, "features")
        return encode_items([table.values(name, KEY_REMEDY) for name in table.need_keys(in_sequences)], None, "")[1]
    if in_sequences:
        raise InputError(
            "features must say which sequence and position each row is about.",
            "Give a table with columns sequence and position.",
            keyword="features",
        )
    return np.arange(to_rows(given, with_gaps=True).shape[0])


def match_features(given: object, r: Answers, with_gaps: bool = False) -> Features:
    """Features of the items of the answers.

    Parameters
    ----------
    given : array, sparse matrix or table
        An array or a matrix has a row for each item, in the order of the items. A table has a column item (or sequence
        and position), by which rows are matched, and its other columns hold numbers, or lists of numbers of one length.
        Items that the table leaves out have no features.
    r : Answers
        Whose items they are.
    with_gaps : bool
        Whether numbers may be missing.
    """
    if not is_table(given):
        rows = to_rows(given, with_gaps)
        if rows.shape[0] != r.n_items:
            raise InputError(
                f"features must have a row for each of the {plural(r.n_items, 'item')}, in the order of the items, "
                f"which begin with {listing(r.items[:3].tolist())}. They have the shape {rows.shape}.",
                f"Or give a table with {'columns sequence and position' if r.sequences else 'a column item'}.",
                keyword="features",
            )
        return Features(rows, np.arange(r.n_items))
    table = open_item_table(given, "features")
    item, chosen = match_rows(table, r)
    keys, labels, parts = key_names(table, r), list[str](), list[Any]()
    for name in [name for name in table.names if name not in keys]:
        lists = table.vectors(name)
        if lists is None:
            parts.append(read_figures(table, name)[:, None])
            labels.append(str(name))
            continue
        try:
            parts.append(lists if isinstance(lists, np.ndarray) else np.stack(list(map(np.asarray, lists))))
        except ValueError as error:
            problem = f"Column {name!r} of features must hold lists of numbers of one length, and none is missing."
            raise InputError(problem, keyword="features") from error
        labels += [f"{name}[{number}]" for number in range(parts[-1].shape[1])]
    if not parts:
        problem = f"{table.name} has no columns but {listing(keys)}."
        raise InputError(problem, "Add columns of numbers.", keyword="features")
    left_out = np.setdiff1d(np.arange(r.n_items), item)
    if len(left_out):
        warn_of(
            f"{len(left_out):,} of {plural(r.n_items, 'item')} have no features: "
            f"{listing(r.items[left_out].tolist())}. Their labels come from the answers alone."
        )
    rows = (parts[0] if len(parts) == 1 else np.hstack(parts))[chosen]
    return Features(to_rows(rows, with_gaps, labels, r.items[item]), item, labels)


class ItemPriors(NamedTuple):
    """Probabilities of the classes for some items."""

    item: Indices  # (n,): which items these are
    probabilities: Floats  # (n, K): rows sum to 1


def match_item_prior(given: object, r: Answers) -> ItemPriors:
    """The probabilities that a user has for items, matched to the items and classes of the answers.

    Parameters
    ----------
    given : array or table
        An array of shape (n_items, n_classes), in the order of the items and the classes; or a table with a column item
        (or sequence and position), and one for each class, called by the name of the class or p(<class>).
    r : Answers
        Whose items and classes they are.
    """
    if is_table(given):
        table = open_item_table(given, "item_prior")
        item, rows = match_rows(table, r)
        spell = normalise_label if r.normalised else str
        columns = {spell(str(name)): name for name in table.names}
        texts = [spell(spell_surrogates(str(value))) for value in r.classes.tolist()]
        names = [columns.get(f"p({text})", columns.get(text)) for text in texts]
        missing = r.classes[np.array([name is None for name in names]) & (r.label_of_class >= 0)].tolist()
        if missing:
            raise InputError(
                f"item_prior has no column for {listing(missing)}. It has {listing(map(str, table.names))}.",
                "Name each column by its class, or p(<class>).",
                keyword="item_prior",
            )
        nothing = np.zeros(table.n_rows)
        values = np.stack([nothing if name is None else read_figures(table, name) for name in names], axis=1)[rows]
    else:
        item = np.arange(r.n_items)
        try:
            values = to_floats(given)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (r.n_items, r.n_classes):
            raise InputError(
                f"item_prior must be numbers of the shape ({r.n_items}, {r.n_classes}): a row for each item, and a "
                f"column for each class, {listing(r.classes.tolist())}.",
                "To give it for some items only, use a table with a column item and one for each class.",
                keyword="item_prior",
            )
    silent = np.isnan(values).all(axis=1)
    item, values = item[~silent], values[~silent]
    bad = ~((values >= 0) & (values < np.inf)).all(axis=1) | ~(values > 0).any(axis=1)
    if bad.any() or not len(item):
        found = f"That is not so for {plural(int(bad.sum()), 'item')}: {listing(r.items[item[bad]].tolist())}."
        raise InputError(
            f"item_prior must hold probabilities: numbers >= 0, and not only zeros. {found if len(item) else ''}",
            "Leave out the rows of items that have none.",
            keyword="item_prior",
        )
    values = values / values.max(axis=1, keepdims=True)
    return ItemPriors(item, values / values.sum(axis=1, keepdims=True))


def class_shares(priors: ItemPriors, known: Floats) -> Floats:
    """p, the share of each class over all items; `known` (N, K) is what counts for items without a prior."""
    others = np.ones(len(known), bool)
    others[priors.item] = False
    return np.asarray((priors.probabilities.sum(axis=0) + known[others].sum(axis=0)) / len(known))


def vote_shares_by_item(r: Answers) -> Floats:
    """The share of each class in the votes for each item, (N, K); in all votes, for items that have none."""
    item, code, weight = r.item_of_answer(), r.class_of_label[r.label], r.weights()
    named = code >= 0
    shares = np.zeros((r.n_items, r.n_classes))
    np.add.at(shares, (item[named], code[named]), weight[named])
    total = shares.sum(axis=1)
    shares[total > 0] /= total[total > 0, None]
    shares[total == 0] = r.vote_shares()
    return shares


def add_priors(r: Answers, known: Floats | None, priors: ItemPriors, shares: Floats) -> Floats:
    """What is known of the items (N, K), in logarithms relative to class shares; it adds to what was known.

    Examples
    --------
    >>> import consilience as cs
    >>> r = cs.Answers.from_matrix([[0, 1], [1, 1]])
    >>> priors = ItemPriors(np.array([1]), np.array([[0.8, 0.2]]))
    >>> add_priors(r, None, priors, np.array([0.5, 0.5])).round(2)
    array([[ 0.  ,  0.  ],
           [ 0.47, -0.92]])
    """
    found = priors.probabilities
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(found > 0, np.maximum(found, LEAST), 0.0))
    log_prior = np.zeros((r.n_items, r.n_classes)) if known is None else known.copy()
    # A class that no item can have stays impossible.
    logs -= np.log(np.maximum(shares, LEAST))
    log_prior[priors.item] += np.where(abs(logs) < ROUNDING, 0.0, logs)
    return freeze(log_prior)
