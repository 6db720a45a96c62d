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

At a fit p is the mean over all items. Items without a prior count with their vote shares, or what else is known of
them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import to_floats
from ..errors import InputError, first_line, listing, plural
from ..kernels.types import Floats, freeze
from .frames import is_table
from .item_tables import match_rows, open_item_table, read_numbers
from .responses import Responses
from .spelling import normalise_label
from .tables import Table
from .vocabulary import spell_surrogates

# What is left of logarithms that should cancel out.
ROUNDING = 1e-12
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
    given : array or table
        An array of shape (n_items, n_classes), in the order of the items and the classes; or a table with a column item
        (or sequence and position), and one for each class, called by the name of the class or p(<class>).
    r : Responses
        Whose items and classes they are.
    """
    if is_table(given):
        return _read_table(open_item_table(given, "item_prior"), r)
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
    columns = {_spell(r, str(name)): name for name in table.names}
    names = [_find_column(r, columns, value) for value in r.classes.tolist()]
    missing = [
        value
        for value, name, said in zip(r.classes.tolist(), names, r.label_of_class, strict=True)
        if name is None and said >= 0
    ]
    if missing:
        raise InputError(
            f"item_prior has no column for {listing(missing)}. It has {listing(map(str, table.names))}.",
            "Name each column by its class, or p(<class>).",
            keyword="item_prior",
        )
    nothing = np.zeros(len(rows))
    values = [nothing if name is None else read_numbers(table, name)[rows] for name in names]
    return _select(item, np.stack(values, axis=1), r)


def _find_column(r: Responses, columns: dict[str, Any], value: Any) -> Any:
    """Return the column of a class, or None."""
    text = _spell(r, spell_surrogates(str(value)))
    return next((columns[name] for name in (f"p({text})", text) if name in columns), None)


def _spell(r: Responses, name: str) -> str:
    """Return a name as it is compared: in its normal form, if labels are in that."""
    return str(normalise_label(name)) if r.normalised else name


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


def class_shares(priors: ItemPriors, known: Floats) -> Floats:
    """Return p, the share of each class over all items; `known` (N, K) is what counts for items without a prior."""
    others = np.ones(len(known), bool)
    others[priors.item] = False
    return np.asarray((priors.probabilities.sum(axis=0) + known[others].sum(axis=0)) / len(known))


def vote_shares_by_item(r: Responses) -> Floats:
    """Return the share of each class in the votes for each item, (N, K); in all votes, for items that have none."""
    item, code, weight = r.item_of_answer(), r.class_of_label[r.label], r.weights()
    named = code >= 0
    shares = np.zeros((r.n_items, r.n_classes))
    np.add.at(shares, (item[named], code[named]), weight[named])
    total = shares.sum(axis=1)
    shares[total > 0] /= total[total > 0, None]
    shares[total == 0] = r.vote_shares()
    return shares


def add_priors(r: Responses, known: Floats | None, priors: ItemPriors, shares: Floats) -> Floats:
    """Return what is known of the items (N, K), in logarithms relative to class shares; it adds to what was known.

    Examples
    --------
    >>> import consilience as cs
    >>> r = cs.Responses.from_matrix([[0, 1], [1, 1]])
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
