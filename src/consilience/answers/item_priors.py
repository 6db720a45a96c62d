"""What is known of items before any answer: a prior of each, as probabilities of the classes.

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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError, listing, plural
from ..kernels import ROUNDING, Floats, freeze
from ..options import to_floats
from .classes import normalise_label
from .columns import Indices, spell_surrogates
from .matching import match_rows, open_item_table
from .tables import is_table, read_figures

if TYPE_CHECKING:
    from .answers import Answers

# Smaller probabilities than this count as this: they can still be multiplied. Zero stays zero.
LEAST_PRIOR = 1e-100


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
        offenders = f"That is not so for {plural(int(bad.sum()), 'item')}: {listing(r.items[item[bad]].tolist())}."
        raise InputError(
            f"item_prior must hold probabilities: numbers >= 0, and not only zeros. {offenders if len(item) else ''}",
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
    probabilities = priors.probabilities
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(probabilities > 0, np.maximum(probabilities, LEAST_PRIOR), 0.0))
    log_prior = np.zeros((r.n_items, r.n_classes)) if known is None else known.copy()
    # A class that no item can have stays impossible.
    logs -= np.log(np.maximum(shares, LEAST_PRIOR))
    log_prior[priors.item] += np.where(abs(logs) < ROUNDING, 0.0, logs)
    return freeze(log_prior)
