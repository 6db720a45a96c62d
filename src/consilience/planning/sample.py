"""A sample of items to label, by which it is estimated how many are of each class.

A sample tells how many items are of each class (see `consilience.estimation`). It is drawn at random from all items
whose label is not known, or in strata: the items, in the order of the standard deviations of their classes, are cut
into parts of equal size, of which those with large ones have more items drawn, as Neyman (1934) found to be best. No
part has fewer than half as many as by chance, since probabilities may be wrong. Each item has the probability with
which it was drawn.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..answers.columns import Column, to_column
from ..answers.random_choices import draw_numbers
from ..kernels import Floats, Integers
from ..results.result import Result
from .items import hash_keys

# Strata have at least so many items that are drawn, and are at most so many.
IN_STRATUM, MOST_STRATA = 10, 5


def expect_errors(result: Result, n: int) -> tuple[float, float]:
    """Half the widths of intervals that are to be expected of a share with so many known labels.

    The first is right if the probabilities are, the second for known labels alone, both of the class with the widest.
    """
    posterior, parts = result.labels.posterior, result.kind.list_parts()
    n_items = len(posterior) // (1 if parts is None else len(parts))
    left, share = np.sqrt((1 - min(n / n_items, 1)) / n), posterior.mean(axis=0)
    ends = (posterior * (1 - posterior)).mean(axis=0).max(), (share * (1 - share)).max()
    return float(1.96 * left * np.sqrt(ends[0])), float(1.96 * left * np.sqrt(ends[1]))


def draw_sample(result: Result, n: int, strata: bool = False) -> dict[str, Column]:
    """The columns of `Model.draw_items`."""
    labels, gold, together = result.labels, result.given.gold, result.kind.list_parts()
    every = 1 if together is None else len(together)
    first = np.arange(0, labels.n_items, every)
    unknown = first if gold is None else first[gold.codes[first] < 0]
    n = min(n, len(unknown))
    draws = draw_numbers(result.seed, hash_keys(labels.take(unknown)))
    posterior = labels.posterior
    spread = np.sqrt((posterior * (1 - posterior)).sum(axis=1).reshape(-1, every).mean(axis=1))[unknown // every]
    parts, sizes = [np.arange(len(unknown))], np.array([n])
    if strata and n >= 2 * IN_STRATUM:
        parts = np.array_split(np.lexsort((draws, spread)), min(MOST_STRATA, n // IN_STRATUM))
        largest, least = np.array([len(each) for each in parts]), spread.mean() / 2
        wanted = largest * np.maximum([spread[each].mean() for each in parts], max(least, 1e-9))
        sizes = np.minimum(np.maximum(np.floor(n * wanted / wanted.sum()), 2).astype(np.int64), largest)
        for at in np.argsort(-wanted, kind="stable"):  # what rounding has left
            sizes[at] += min(n - sizes.sum(), largest[at] - sizes[at]) if n > sizes.sum() else 0
    chosen, chance = list[Integers](), list[Floats]()
    for part, size in zip(parts, sizes.tolist(), strict=True):
        chosen.append(unknown[part[np.argsort(draws[part], kind="stable")[:size]]])
        chance.append(np.full(size, size / max(len(part), 1)))
    rows, inclusion = np.concatenate(chosen), np.concatenate(chance)
    order = np.argsort(draw_numbers(result.seed, hash_keys(labels.take(rows))), kind="stable")
    rows, inclusion = rows[order], inclusion[order]
    columns = labels.take(rows) if every == 1 else {"item": labels.keys["sequence"].take(rows)}
    texts = result.kind.show(rows) if every == 1 else None
    columns |= {} if texts is None else {"text": to_column(texts or pa.nulls(0, pa.string()))}
    columns |= {"random": to_column(np.ones(len(rows), bool))}
    columns |= {"inclusion_probability": to_column(inclusion)} if strata else {}
    return columns
