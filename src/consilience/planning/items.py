r"""Which items to label next: those that the model is least certain of, and some at random.

The label of an item teaches most where the model is least certain, so items come in the order of the entropy
of their calibrated probabilities,

.. math:: H_n = -\sum_k q_{nk} \log q_{nk},

the largest first. The power that calibrates probabilities must not be learned from these, since they were chosen by
their probabilities. So two of ten are drawn at random, and marked: `fit` calibrates by them alone if the table of known
labels has the column random.

Two kinds of items come after all others. Independent items that nobody answered: their labels say nothing about
workers. And in a sequence, positions that have a less certain neighbour: one label settles both.

What is random, and the order of items with the same entropy, depends on the seed and the ids of the items, not on the
order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import entr

from ..answers.columns import Column, decode_categories, encode_in_order_of_appearance, to_column, to_values
from ..answers.random_choices import Hashes, draw_numbers, hash_ids
from ..kernels import Floats, Integers, Truths
from ..results.label_files import find_open
from ..results.result import Labels, Result

# Every fifth entry of the list is drawn at random, from the third on.
EVERY, FIRST_RANDOM = 5, 2
# Entropies that differ by rounding only are the same.
DECIMALS = 9


def choose_next_items(
    result: Result, n: int, every: int = EVERY, seed: int | None = None
) -> tuple[Integers, Truths, Floats]:
    """At most n of the items whose label is not known, in order; which were drawn at random; the entropy of each.

    One of so many is drawn at random, of those that are answered: by the lowest of random numbers, which also order
    equal entropies. These follow from the seed: another than that of the fit draws other items.
    """
    labels, gold, answers = result.labels, result.given.gold, result.given.answers
    draws = draw_numbers(result.seed if seed is None else seed, hash_keys(labels.keys))
    entropy = find_entropy(labels.posterior)
    unknown = np.ones(labels.n_items, bool) if gold is None else gold.codes < 0
    answered = np.ones(labels.n_items, bool)
    if answers is not None and not answers.silence_counts:
        answered = np.diff(answers.offsets) > 0
    # Which come after all others, unless they are drawn at random.
    if "sequence" in labels.keys:
        sequence = encode_in_order_of_appearance(labels.keys["sequence"])[0]
        later = ~find_peaks(np.where(unknown, entropy, 0.0), draws, sequence)
    else:
        later = ~answered & (not result.is_network)

    items, at_random = mix_random(n, unknown, answered, 1e3 * later - entropy, draws, every)
    return items, at_random, entropy


def mix_random(
    n: int, unknown: Truths, answered: Truths, rank: Floats, draws: Hashes, every: int = EVERY
) -> tuple[Integers, Truths]:
    """At most n of the unknown items by their rank, the lowest first, and between them some drawn at random: which."""
    n = min(n, int(unknown.sum()))
    at_random = np.arange(n) % every == FIRST_RANDOM % every
    pool = np.flatnonzero(unknown & answered)
    drawn = pool[np.argsort(draws[pool], kind="stable")[: at_random.sum()]]
    at_random[np.flatnonzero(at_random)[len(drawn) :]] = False  # there may be fewer to draw from
    others = np.setdiff1d(np.flatnonzero(unknown), drawn)
    order = np.lexsort((draws[others], rank[others]))
    items = np.zeros(n, np.int64)
    items[at_random], items[~at_random] = drawn, others[order[: n - len(drawn)]]
    return items, at_random


def list_next_items(result: Result, n: int, at_random: bool = False, seed: int | None = None) -> dict[str, Column]:
    """The columns of `Model.next_items`."""
    labels = result.labels
    rows, drawn, entropy = choose_next_items(result, n, 1 if at_random else EVERY, seed)
    texts = result.kind.show(rows)
    return (
        labels.take(rows)
        | ({} if texts is None else {"text": to_column(texts or pa.nulls(0, pa.string()))})
        | {"random": to_column(drawn), "fused_label": to_column(labels.values[rows])}
        | {"confidence": to_column(labels.shown_confidence[rows]), "entropy": to_column(entropy[rows])}
    )


def add_label(columns: dict[str, Column]) -> dict[str, Column]:
    """The columns with an empty one for the labels to come, after those that say which item, and whom to ask."""
    asked = [name for name in ("item", "sequence", "position", "tag", "question", "worker") if name in columns]
    n_rows = len(next(iter(columns.values())))
    return {name: columns[name] for name in asked} | {"label": pa.nulls(n_rows, pa.string())} | columns


def find_entropy(posterior: Floats) -> Floats:
    """The entropy of each row, in nats.

    >>> find_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    array([0.   , 0.693])
    """
    return np.asarray(entr(posterior).sum(axis=1).round(DECIMALS) + 0.0)


def hash_keys(keys: Mapping[str, Column]) -> Hashes:
    """A hash of what identifies each item, the same as `hash_items` gives."""
    columns = [column if isinstance(column, np.ndarray) else decode_categories(column) for column in keys.values()]
    hashes = [hash_ids(to_values(column)) for column in columns]
    return hashes[0] if len(hashes) == 1 else draw_numbers(None, *hashes)


def find_peaks(entropy: Floats, draws: Hashes, sequence: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which positions of a sequence have no neighbour of larger entropy; of equal ones, that with the lower draw.

    >>> entropy, draws = np.array([0.1, 0.3, 0.2, 0.4, 0.4]), np.array([1, 2, 3, 5, 4], np.uint64)
    >>> find_peaks(entropy, draws, np.array([0, 0, 0, 1, 1]))
    array([False,  True, False, False,  True])
    """
    left, right = entropy[:-1], entropy[1:]
    falls = (left > right) | ((left == right) & (draws[:-1] <= draws[1:]))
    together = sequence[:-1] == sequence[1:]
    peak = np.ones(len(entropy), bool)
    peak[1:] &= ~(together & falls)
    peak[:-1] &= ~(together & ~falls)
    return peak


def list_stop_items(labels: Labels, least: float) -> dict[str, Column]:
    """The columns of `Model.stop_items`: items with at least this confidence, the most certain first."""
    confidence = labels.shown_confidence
    rows = np.flatnonzero(~find_open(confidence, least))
    rows = rows[np.argsort(-confidence[rows], kind="stable")]
    columns = labels.take(rows) | {"label": to_column(labels.classes[labels.codes[rows]])}
    certain = confidence[rows]
    return columns | {"confidence": to_column(certain), "expected_errors": to_column(np.cumsum(1.0 - certain))}
