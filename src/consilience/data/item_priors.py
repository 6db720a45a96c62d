r"""Priors of items: what is known of each item beside its answers, as probabilities of the classes.

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

At a fit p is the mean over all items. Items without a prior count with the share of each class in all votes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import to_floats
from ..errors import InputError, first_line, listing, plural
from ..kernels.types import Floats, freeze
from .frames import is_table, open_frame
from .responses import Responses
from .tables import Table
from .vocabulary import find_missing, spell_surrogates, to_values

KEY_REMEDY = "Say which item each row belongs to."
# Smaller probabilities than this count as this: they can still be multiplied. Zero stays zero.
LEAST = 1e-100


class ItemPriors(NamedTuple):
    """Probabilities of the classes for some items."""

    item: NDArray[np.int64]  # (n,): which items these are
    probabilities: Floats  # (n, K): rows sum to 1


def match_item_prior(given: Any, r: Responses) -> ItemPriors:
    """Return the probabilities that a user has for items, matched to the items and classes of the answers.

    Parameters
    ----------
    given : array, table or path
        An array of shape (n_items, n_classes), in the order of the items and the classes; or a table with a column item
        (or sequence and position), and one for each class, called by the name of the class or p(<class>).
    r : Responses
        Whose items and classes they are.
    """
    if is_table(given):
        return _read_table(open_frame(given, "item_prior"), r)
    try:
        values = to_floats(given)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"item_prior must be an array of numbers, or a table; {first_line(error)}.", keyword="item_prior"
        ) from error
    if values.shape != (r.n_items, r.n_classes):
        raise InputError(
            f"item_prior must have the shape ({r.n_items}, {r.n_classes}): a row for each item, and a column for each "
            f"class, {listing(r.classes.tolist())}. It has the shape {values.shape}.",
            "To give it for some items only, use a table with a column item and one for each class.",
            keyword="item_prior",
        )
    return _select(np.arange(r.n_items), values, r)


def _read_table(table: Table, r: Responses) -> ItemPriors:
    item, rows = match_rows(table, r, "item_prior")
    columns = {str(name): name for name in table.names}
    names = [_find_column(columns, value) for value in r.classes.tolist()]
    missing = [
        value
        for value, name, said in zip(r.classes.tolist(), names, r.label_of_class, strict=True)
        if name is None and said >= 0
    ]
    if missing:
        raise InputError(
            f"item_prior has no column for the class {listing(missing)}. It has {listing(map(str, table.names))}.",
            "Name each column by its class, or p(<class>).",
            keyword="item_prior",
        )
    values = np.stack([read_numbers(table, name)[rows] if name else np.zeros(len(rows)) for name in names], axis=1)
    return _select(item, values, r)


def _find_column(columns: dict[str, Any], value: Any) -> Any:
    """Return the column of a class, or None."""
    text = spell_surrogates(str(value))
    return next((columns[name] for name in (f"p({text})", text) if name in columns), None)


def match_rows(table: Table, r: Responses, what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the items that rows of a table are about, and which rows these are; other rows are left out."""
    names = key_names(table, r)
    keys = [table.values(name, KEY_REMEDY) for name in names]
    item = r.find_items(keys)
    known = np.flatnonzero(item >= 0)
    if not len(known):
        found = [to_values(key)[:3].tolist() for key in keys]
        example = listing(found[0] if len(found) == 1 else zip(*found, strict=True))
        raise InputError(
            f"None of the {plural(len(item), 'row')} of {what} is about an item of the answers ({what} has "
            f"{example}; the answers have {listing(r.items[:3].tolist())}).",
            "Check that both use the same ids.",
            keyword=what,
        )
    repeated = np.flatnonzero(np.bincount(item[known], minlength=r.n_items) > 1)
    if len(repeated):
        raise InputError(
            f"{what} has several rows for {plural(len(repeated), 'item')}: {listing(r.items[repeated].tolist())}.",
            "Keep one row for each of them.",
            keyword=what,
        )
    return item[known], known


def key_names(table: Table, r: Responses) -> list[str]:
    """Return the columns of a table that say which item a row is about."""
    table = replace(table, preferred={**r.columns, **table.preferred})
    return [table.need(role) for role in (("item",) if r.sequences is None else ("sequence", "position"))]


def read_numbers(table: Table, name: str) -> Floats:
    """Return a column of numbers; a missing one is nan."""
    column = table.read(name)
    values = to_values(column)
    numbers = np.full(len(values), np.nan)
    there = np.ones(len(values), bool)
    there[find_missing(column)] = False
    try:
        numbers[there] = to_floats(values[there].tolist())
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Column {name!r} of {table.name} must hold numbers; {first_line(error)}.", "Leave it out, or correct it."
        ) from error
    return numbers


def _select(item: NDArray[np.int64], values: Floats, r: Responses) -> ItemPriors:
    """Return the rows that say something, rescaled."""
    silent = np.isnan(values).all(axis=1)
    item, values = item[~silent], values[~silent]
    bad = ~((values >= 0) & (values < np.inf)).all(axis=1) | ~(values > 0).any(axis=1)
    if bad.any():
        raise InputError(
            f"item_prior must hold probabilities: numbers >= 0, and not only zeros. That is not so for "
            f"{plural(int(bad.sum()), 'item')}: {listing(r.items[item[bad]].tolist())}.",
            "Leave out the rows of items that have none.",
            keyword="item_prior",
        )
    if not len(item):
        raise InputError("item_prior holds no probabilities.", keyword="item_prior")
    values = values / values.max(axis=1, keepdims=True)
    return ItemPriors(item, values / values.sum(axis=1, keepdims=True))


def class_shares(priors: ItemPriors, r: Responses) -> Floats:
    """Return p, the share of each class over all items."""
    return np.asarray((priors.probabilities.sum(axis=0) + (r.n_items - len(priors.item)) * r.vote_shares()) / r.n_items)


def add_priors(r: Responses, priors: ItemPriors, shares: Floats) -> Responses:
    """Return the answers with what is known of their items, relative to class shares; it adds to what was known.

    Examples
    --------
    >>> import consilience as cs
    >>> r = cs.Responses.from_matrix([[0, 1], [1, 1]])
    >>> known = ItemPriors(np.array([1]), np.array([[0.8, 0.2]]))
    >>> add_priors(r, known, np.array([0.5, 0.5])).log_prior.round(2)
    array([[ 0.  ,  0.  ],
           [ 0.47, -0.92]])
    """
    found = priors.probabilities
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(found > 0, np.maximum(found, LEAST), 0.0))
    log_prior = np.zeros((r.n_items, r.n_classes)) if r.log_prior is None else r.log_prior.copy()
    # A class that no item can have stays impossible.
    log_prior[priors.item] += logs - np.log(np.maximum(shares, LEAST))
    return replace(r, log_prior=freeze(log_prior))
