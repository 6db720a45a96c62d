r"""`Audit`: how good each worker is by known labels, and how far workers err together.

Intervals of shares are those of Wilson (1927), with the effective number of labels where these were drawn with unequal
probabilities, or came in clusters such as documents. Agreement is Cohen's kappa: 0 is chance, 1 is a person's own.

Let e_im be 1 where worker m is wrong about item i, and :math:`\bar\rho` the mean correlation of the errors of two
workers. A panel of M workers then is as good as

.. math:: M / (1 + (M - 1) \bar\rho)

who err independently of each other. What all of them are worth together is :math:`1 / (1 - r^2)`, with r the
correlation of what is known and what the fit says without knowing: so many known labels alone make an interval as
narrow as one label does beside the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..answers.columns import to_column
from ..answers.previews import build_report, frame_html, paragraph, round_figures
from ..errors import plural, shorten
from ..kernels import Floats
from ..results.result import Result
from .difference import LEVEL, Indices
from .population import Population

# Errors of two workers are compared where both answered so many known items; called alike from this correlation on.
LEAST_TOGETHER, ALIKE, MOST_COMPARED = 10, 0.5, 500
# If known labels follow the fit more closely, the rest is rounding, and nothing tells what they are worth.
ALL_EXPLAINED = 1 - 1e-9
# A worker is said to miss a class if so many of its items are called something else, and certainly so many.
MANY_MISSED, SOME_MISSED = 0.25, 0.1
MISSED = {
    0.25: "a quarter",
    1 / 3: "a third",
    0.5: "half",
    2 / 3: "two thirds",
    0.75: "three quarters",
    1: "nearly all",
}
RIGHT = {0.0: "hardly any", 1.0: "nearly all"}
RIGHT |= {n / d: f"{n} of {d}" for n, d in ((1, 10), (1, 4), (1, 3), (1, 2), (2, 3), (3, 4), (4, 5), (9, 10), (19, 20))}


@dataclass(frozen=True)
class Audit:
    """How good workers are, by known labels.

    Attributes
    ----------
    rows : sequence of dict
        A row for each worker with answers to known items: `worker`; `known`, how many these are; `accuracy`, and for
        two classes `sensitivity` and `specificity` of `positive`, each with its 95 % interval (`_low`, `_high`);
        `agreement` with people beyond chance; `error_correlation` with other workers on average, and `errs_like`, who
        shares most errors; `remarks`. What cannot be told is None.
    groups_rows : sequence of dict
        For each worker and group of items `worker`, `group`, `known`, `accuracy` with its interval.
    effective_number : float or None
        How many workers who err independently would be as good as those who answer an item.
    worth : float or None
        To how many known labels alone one known label beside the fit is equal.
    positive : object
        The second of two classes; None if there are more.
    n_known : int
        Known labels that were drawn at random.
    backend : str
        The library of tables.
    """

    rows: Sequence[Mapping[str, Any]]
    groups_rows: Sequence[Mapping[str, Any]] = ()
    effective_number: float | None = None
    worth: float | None = None
    positive: Any = None
    n_known: int = 0
    backend: str = "pyarrow"

    @property
    def table(self) -> Any:
        """The rows as a table."""
        return self._build(self.rows, self.backend)

    @property
    def groups(self) -> Any:
        """The rows by groups of items as a table."""
        return self._build(self.groups_rows, self.backend)

    def _build(self, rows: Sequence[Mapping[str, Any]], backend: str) -> Any:
        heads = list(rows[0]) if rows else []
        return build_report(round_figures({head: to_column([row[head] for row in rows]) for head in heads}), backend)

    def to_frame(self) -> Any:
        """Return the rows as a table of the library that the answers came in."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain numbers, lists and dicts."""
        return {
            "known": self.n_known,
            "positive": self.positive,
            "effective_number": self.effective_number,
            "worth": self.worth,
            "workers": [dict(row) for row in self.rows],
            "groups": [dict(row) for row in self.groups_rows],
        }

    def describe(self) -> list[str]:
        """What is said of all workers together."""
        said = [f"By {plural(self.n_known, 'known label')} of items drawn at random."]
        if self.positive is not None:
            said.append(f"Sensitivity and specificity are those of {shorten(self.positive)}.")
        if self.effective_number is not None:
            panel = f"Workers who answer one item are as good as {self.effective_number:.1f} who err independently."
            said.append(panel)
        if self.worth is not None:
            said.append(f"One known label beside the fit is worth {self.worth:.1f} alone.")
        return said

    def __repr__(self) -> str:
        shown = [self.rows, *([self.groups_rows] if self.groups_rows else [])]
        return "\n".join([*(repr(self._build(each, "pyarrow")) for each in shown), *self.describe()])

    def _repr_html_(self) -> str:
        shown = [self.rows, *([self.groups_rows] if self.groups_rows else [])]
        tables = [self._build(each, "pyarrow")._repr_html_() for each in shown]
        return frame_html(*tables, *map(paragraph, self.describe()))


def find_wilson(value: Floats, number: Floats) -> tuple[Floats, Floats]:
    """Both ends of Wilson's intervals of shares of so many.

    >>> low, high = find_wilson(np.array([0.5, 1.0]), np.array([20.0, 20.0]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.299, 0.839], [0.701, 1.0])
    """
    z2 = ndtri((1 + LEVEL) / 2) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (value + z2 / (2 * number)) / (1 + z2 / number)
        reach = np.sqrt(z2) / (1 + z2 / number) * np.sqrt(value * (1 - value) / number + z2 / (4 * number**2))
    return np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1)


def find_shares(owner: Indices, is_so: Floats, weight: Floats, cluster: Indices, n_owners: int) -> dict[str, Floats]:
    """The share of answers of each owner of which something is true, with its 95 % interval; NaN without answers."""

    def add_up(values: Floats) -> Floats:
        return np.bincount(owner, values, minlength=n_owners).astype(np.float64)

    with np.errstate(divide="ignore", invalid="ignore"):
        total = add_up(weight)
        value = add_up(weight * is_so) / total
        unit, inverse = np.unique(np.stack([owner, cluster]), axis=1, return_inverse=True)
        sums = np.bincount(inverse.ravel(), weight * (is_so - value[owner]))
        spread = np.bincount(unit[0], sums**2, n_owners) / total**2
        largest = np.minimum(
            total**2 / add_up(weight**2), np.where(spread > 0, np.inf, np.bincount(unit[0], minlength=n_owners))
        )
        number = np.where(spread > 0, np.minimum(value * (1 - value) / spread, largest), largest)
    low, high = find_wilson(value, number)
    return {"": value, "_low": np.minimum(low, value), "_high": np.maximum(high, value)}


def audit_workers(result: Result, population: Population, by: object = None) -> Audit:
    """How good the workers of a fit are, by the known labels of its items; see `Model.audit`."""
    r, classes = population.answers, result.names.classes
    # Items of the answers, of which there is one for each tag of an item.
    each = r.n_items // population.n_items
    rows = (population.rows[:, None] * each + np.arange(each)).ravel()
    truth = np.full(r.n_items, -1)
    known = population.known
    truth[rows] = known.argmax(axis=1) if result.kind.list_parts() is None else known.astype(np.int64).ravel()
    chance = np.ones(r.n_items)
    chance[rows] = 1.0 if population.inclusion is None else np.repeat(population.inclusion, each)

    said = r.label if r.soft is None else r.soft.argmax(axis=1)
    item, code = r.item_of_answer(), np.asarray(r.class_of_label)[said]
    told = (truth[item] >= 0) & (code >= 0)
    item, code, worker = item[told], code[told], r.worker[told].astype(np.int64)
    true, weight = truth[item], 1.0 / chance[item]
    cluster = item if r.sequences is None else r.sequences.of_items()[item]
    right = (code == true).astype(np.float64)

    counts = np.bincount(worker, minlength=r.n_workers)
    shares = {"accuracy": find_shares(worker, right, weight, cluster, r.n_workers)}
    recalls = []
    for k in range(len(classes)):
        of = true == k
        recalls.append(find_shares(worker[of], right[of], weight[of], cluster[of], r.n_workers))
    if len(classes) == 2:
        shares |= {"sensitivity": recalls[1], "specificity": recalls[0]}
    kappa, error = find_kappa(worker, code, true, weight, r.n_workers, len(classes))
    mean, most, partner = compare_errors(worker, item, 1 - right, r.n_workers)

    table = list[dict[str, Any]]()
    names = r.workers.tolist()
    for m in np.flatnonzero(counts).tolist():
        row: dict[str, Any] = {"worker": names[m], "known": int(counts[m])}
        for name, found in shares.items():
            row |= {f"{name}{end}": to_figure(values[m]) for end, values in found.items()}
        like = names[partner[m]] if most[m] >= ALIKE else None
        row |= {"agreement": to_figure(kappa[m]), "error_correlation": to_figure(mean[m]), "errs_like": like}
        remarks = [f"right in {near(row['accuracy'], RIGHT)}"]
        if kappa[m] - error[m] <= 0:
            remarks.append("perhaps no better than chance")
        for k, found in enumerate(recalls):
            if 1 - found[""][m] >= MANY_MISSED and 1 - found["_high"][m] > SOME_MISSED:
                remarks.append(f"misses {near(1 - found[''][m], MISSED)} of {shorten(classes[k], 30)}")
        remarks += [f"errs like {shorten(like, 30)}"] if like is not None else []
        table.append(row | {"remarks": "; ".join(remarks)})

    groups = list[dict[str, Any]]()
    if by is not None:
        group, labels = population.sort_into(by, "by")
        own = np.repeat(group, each)[item]
        kept = own >= 0
        place = worker[kept] * len(labels) + own[kept]
        found = find_shares(place, right[kept], weight[kept], cluster[kept], r.n_workers * len(labels))
        sizes = np.bincount(place, minlength=r.n_workers * len(labels))
        for at in np.flatnonzero(sizes).tolist():
            figures = {f"accuracy{end}": to_figure(values[at]) for end, values in found.items()}
            head = {"worker": names[at // len(labels)], "group": labels[at % len(labels)], "known": int(sizes[at])}
            groups.append(head | figures)

    rho = np.nanmean(mean[counts > 0]) if np.isfinite(mean[counts > 0]).any() else np.nan
    size = len(worker) / max(len(np.unique(item)), 1)
    number = None if np.isnan(rho) else float(size / (1 + (size - 1) * max(rho, 0.0)))
    positive = classes[1:].tolist()[0] if len(classes) == 2 else None
    return Audit(table, groups, number, find_worth(population), positive, len(population.rows), population.backend)


def find_kappa(
    worker: Indices, code: Indices, true: Indices, weight: Floats, n_workers: int, n_classes: int
) -> tuple[Floats, Floats]:
    """Cohen's kappa of each worker with the known labels, and half of its 95 % interval."""
    place = (worker * n_classes + true) * n_classes + code
    table = np.bincount(place, weight, n_workers * n_classes**2).reshape(n_workers, n_classes, n_classes)
    total, number = table.sum(axis=(1, 2)), np.bincount(worker, minlength=n_workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = np.einsum("mkk->m", table) / total
        expected = np.einsum("mk,mk->m", table.sum(axis=1), table.sum(axis=2)) / total**2
        kappa = (observed - expected) / (1 - expected)
        error = np.sqrt(observed * (1 - observed) / number) / (1 - expected)
    return kappa, ndtri((1 + LEVEL) / 2) * error


def compare_errors(worker: Indices, item: Indices, wrong: Floats, n_workers: int) -> tuple[Floats, Floats, Indices]:
    """The mean correlation of each worker's errors with those of others, the largest one, and whose that is."""
    mean, most, partner = np.full(n_workers, np.nan), np.full(n_workers, np.nan), np.zeros(n_workers, np.int64)
    chosen = np.flatnonzero(np.bincount(worker, minlength=n_workers) >= LEAST_TOGETHER)[:MOST_COMPARED]
    if len(chosen) < 2:
        return mean, most, partner
    place, items = np.full(n_workers, -1), np.unique(item)
    place[chosen] = np.arange(len(chosen))
    kept = place[worker] >= 0
    errors, there = np.zeros((2, len(items), len(chosen)))
    at = np.searchsorted(items, item[kept]), place[worker[kept]]
    errors[at], there[at] = wrong[kept], 1.0
    number, both, own = there.T @ there, errors.T @ errors, errors.T @ there  # own: errors of a where b answered
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = own / number - (own / number) ** 2
        found = (both / number - own * own.T / number**2) / np.sqrt(spread * spread.T)
    found[(number < LEAST_TOGETHER) | (spread * spread.T < 1e-12)] = np.nan
    np.fill_diagonal(found, np.nan)
    some = np.isfinite(found).any(axis=1)
    mean[chosen[some]] = np.nanmean(found[some], axis=1)
    most[chosen[some]] = np.nanmax(found[some], axis=1)
    partner[chosen[some]] = chosen[np.nanargmax(found[some], axis=1)]
    return mean, most, partner


def find_worth(population: Population) -> float | None:
    """To how many known labels alone one beside the fit is equal: 1 / (1 - r^2), over all classes."""
    f, p = population.known, population.predicted[population.rows]
    f, p = f - f.mean(axis=0), p - p.mean(axis=0)
    scale = float((f * f).sum() * (p * p).sum())
    share = max(float((f * p).sum()), 0.0) ** 2 / scale if scale else 0.0  # what is turned round is of no use
    return 1 / (1 - share) if share < ALL_EXPLAINED else None


def near(value: float, words: Mapping[float, str]) -> str:
    """The nearest of some shares, in words.

    >>> near(0.74, RIGHT), near(0.52, MISSED)
    ('3 of 4', 'half')
    """
    return words[min(words, key=lambda share: abs(share - value))]


def to_figure(value: float) -> float | None:
    """A number, or None for NaN."""
    return None if np.isnan(value) else float(value)
