"""`Estimate`: shares and means of all items with intervals, beside those by known labels alone and by the fit alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from ..answers.columns import to_column
from ..answers.previews import build_report, frame_html, paragraph
from ..answers.tables import build_frame
from ..errors import join_names, plural, shorten, spell_in_python
from ..results.findings import Finding
from .difference import Indices, Means, estimate_means
from .population import LEAST_IN_GROUP, Population, Quantity

# The most differences that are listed, and the gain below which predictions are said to bring nothing.
MOST_DIFFERENCES, LITTLE = 1000, 1.2
HEADS = (
    "group", "of", "estimate", "low", "high", "items", "known",
    "labels_alone", "labels_alone_low", "labels_alone_high", "fit_alone", "worth",
)  # fmt: skip
DIFFERENCES = ("of", "group", "other", "difference", "low", "high", "pairs")


@dataclass(frozen=True)
class Estimate:
    """How many: shares and means of all items, with 95 % intervals.

    Attributes
    ----------
    rows : sequence of dict
        A row for each group and each thing that is estimated: `group`, None for all items; `of`, the class, the tag or
        "mean"; `estimate`, `low`, `high`; `items` and `known`, how many there are; `labels_alone` with its interval,
        by known labels alone; `fit_alone`, without them; `worth`, to how many known labels alone the estimate is equal.
        What cannot be told is None.
    differences_rows : sequence of dict
        For each two groups `of`, `group`, `other`, `difference` of the first from the second, `low`, `high`, and
        `pairs`, how many clusters both have known items of.
    findings : list of Finding
        What to know of it.
    n_items, n_known : int
        All items, and those that were drawn at random and are known.
    backend : str
        The library of tables.
    """

    rows: Sequence[Mapping[str, Any]]
    differences_rows: Sequence[Mapping[str, Any]] = ()
    findings: list[Finding] = field(default_factory=list)
    n_items: int = 0
    n_known: int = 0
    backend: str = "pyarrow"

    @property
    def table(self) -> Any:
        """The rows as a table."""
        return build_report(self._columns(), self.backend)

    @property
    def differences(self) -> Any:
        """The differences of groups as a table."""
        return build_report(gather(self.differences_rows, DIFFERENCES), self.backend)

    def _columns(self) -> dict[str, Any]:
        return gather(self.rows, HEADS)

    def to_frame(self) -> Any:
        """Return the rows as a table of the library that the labels came in."""
        return build_frame(self._columns(), self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain numbers, lists and dicts."""
        return {
            "items": self.n_items,
            "known": self.n_known,
            "estimates": [dict(row) for row in self.rows],
            "differences": [dict(row) for row in self.differences_rows],
            "findings": [each.to_record(spell_in_python) for each in self.findings],
        }

    def find_below(self, least: float) -> list[Mapping[str, Any]]:
        """The rows whose interval begins below a number, or that have none."""
        return [row for row in self.rows if row["low"] is None or row["low"] < least]

    def describe(self) -> str:
        """What the estimate rests on."""
        return (
            f"By {plural(self.n_known, 'known label')} of {plural(self.n_items, 'item')}, which count as drawn at "
            "random. Intervals hold in 95% of such draws."
        )

    @property
    def has_groups(self) -> bool:
        """Whether there are groups."""
        return any(row["group"] is not None for row in self.rows)

    def list_shown(self) -> list[Any]:
        """Both tables as people see them, an interval beside its value."""
        columns = self._columns()
        if not self.has_groups:
            del columns["group"]
        shown = [columns] + [gather(self.differences_rows, DIFFERENCES)] * bool(self.differences_rows)
        for each, name in zip(shown, ("estimate", "difference"), strict=False):
            for end in ("low", "high"):
                each[f"{name}_{end}"] = each.pop(end)
        return [build_report(each, "pyarrow") for each in shown]

    def __repr__(self) -> str:
        said = [self.describe(), *(str(each.spelled(spell_in_python).problem) for each in self.findings)]
        return "\n".join([*map(repr, self.list_shown()), *said])

    def _repr_html_(self) -> str:
        said = [self.describe(), *(str(each.spelled(spell_in_python).problem) for each in self.findings)]
        return frame_html(*(each._repr_html_() for each in self.list_shown()), *map(paragraph, said))


def gather(rows: Sequence[Mapping[str, Any]], heads: Sequence[str]) -> dict[str, Any]:
    """Rows as columns. The ends of an interval stand beside its value under the names that tables show as one."""
    return {head: to_column([row[head] for row in rows]) for head in heads}


def estimate_population(population: Population, of: object = None, by: object = None, pairs: object = None) -> Estimate:
    """Shares and means of a population, by groups where these are asked for; see `Model.estimate`."""
    rows, n_items = population.rows, population.n_items
    group, names = np.zeros(n_items, np.int64), [None]
    if by is not None:
        group, names = population.sort_into(by, "by")
    cluster = find_clusters(population, pairs)
    quantities = population.quantify(of)
    inside, drawn = np.flatnonzero(group >= 0), group[rows] >= 0
    place = np.full(n_items, -1)
    place[inside] = np.arange(len(inside))
    n_known = np.bincount(group[rows][drawn], minlength=len(names))
    sizes = np.bincount(group[inside], minlength=len(names))
    counts = dict(zip(names, zip(sizes.tolist(), n_known.tolist(), strict=True), strict=True))
    findings = list(find_doubts(population, n_items - len(inside), counts, by))

    # Two tags are no such pair: an item may have both.
    known, predicted = (part.sum(axis=1) for part in (population.known, population.predicted))
    is_either = len(population.names) == 2 and bool((known == 1).all()) and np.allclose(predicted, 1)
    table, differences = list[dict[str, Any]](), list[dict[str, Any]]()
    for each in quantities:
        if not drawn.any():
            continue
        sample = each.known[drawn], place[rows[drawn]], each.predicted[inside], group[inside]
        more: dict[str, Any] = {
            "inclusion": None if population.inclusion is None else population.inclusion[drawn],
            "cluster": None if cluster is None else cluster[inside],
            "is_share": each.is_share,
            "n_groups": len(names),
        }
        means, alone = estimate_means(*sample, **more), estimate_means(*sample, **more, power=0.0)
        fit = np.bincount(group[inside], each.predicted[inside], len(names)) / np.maximum(sizes, 1)
        # What nobody is known to be, or all are, has one end of an interval, and no estimate.
        same = each.is_share and bool((each.known == each.known[0]).all())
        for n, name in enumerate(names):
            table.append(make_row(name, each, means, alone, fit, n, int(sizes[n]), int(n_known[n]), same))
        if not (is_either and len(table) > len(names)):  # the other one of two classes says the same
            findings += find_bias(each, table[-len(names) :], same, len(rows))
        if by is not None and not same:
            told = np.flatnonzero(n_known >= LEAST_IN_GROUP).tolist()
            shared = count_shared(group[rows[drawn]], None if cluster is None else cluster[rows[drawn]])
            for a, b in combinations(told, 2):
                if len(differences) < MOST_DIFFERENCES and not np.isnan(means.variance[[a, b]]).any():
                    value, low, high = means.compare(a, b)
                    head = {"of": plain(each.name), "group": plain(names[a]), "other": plain(names[b])}
                    found = {"difference": value, "low": low, "high": high, "pairs": shared.get((a, b), 0)}
                    differences.append(head | found)
    return Estimate(table, differences, findings, n_items, len(rows), population.backend)


def find_clusters(population: Population, pairs: object) -> Indices | None:
    """What known items come in: as they are paired, or whole sequences; None where each came alone."""
    if pairs is not None:
        group, names = population.sort_into(pairs, "pairs")
        alone = group < 0
        return np.where(alone, len(names) + np.cumsum(alone), group)
    sequences = population.answers.sequences
    if sequences is None or population.answers.n_items != population.n_items:  # or items with a row for each tag
        return None
    owner = sequences.of_items()
    return owner if len(np.unique(owner[population.rows])) < len(population.rows) else None


def make_row(
    name: Any, each: Quantity, means: Means, alone: Means, fit: Any, n: int, n_items: int, n_known: int, same: bool
) -> dict[str, Any]:
    """The estimate of one group."""
    ends, plainly = ([part[n] for part in every.find_intervals()] for every in (means, alone))
    told = n_known >= LEAST_IN_GROUP and not np.isnan(ends[0])
    unseen = same and told
    value, low, high = (float(each) if told else None for each in ends)
    if unseen:  # the known end is that of all
        value, low, high = None, (low if each.known[0] else 0.0), (1.0 if each.known[0] else high)
    worth = None
    if told and not same and means.variance[n] > 0:
        worth = min(round(n_known * alone.variance[n] / means.variance[n]), n_items)  # all labels are no more
    labels = [float(part) if told and not same else None for part in plainly]
    row = {"group": plain(name), "of": plain(each.name), "estimate": value, "low": low, "high": high}
    row |= {"items": n_items, "known": n_known}
    row |= dict(zip(("labels_alone", "labels_alone_low", "labels_alone_high"), labels, strict=True))
    return row | {"fit_alone": float(fit[n]) if n_items else None, "worth": worth}


def plain(value: Any) -> Any:
    """A value as Python has it."""
    return value.item() if isinstance(value, np.generic) else value


def count_shared(group: Indices, cluster: Indices | None) -> dict[tuple[int, int], int]:
    """For each two groups the number of clusters of which both have known items."""
    counts: dict[tuple[int, int], int] = {}
    if cluster is None:
        return counts
    found = np.unique(np.stack([cluster, group]), axis=1)
    for part in np.split(found[1], np.flatnonzero(np.diff(found[0])) + 1):
        for pair in combinations(part.tolist(), 2):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def find_doubts(
    population: Population, n_outside: int, sizes: Mapping[Any, tuple[int, int]], by: object
) -> Iterator[Finding]:
    """What known labels cannot tell; `sizes` are the numbers of items and known labels of each group."""
    if population.n_aside:
        not_used = "was not drawn at random, and is" if population.n_aside == 1 else "were not drawn at random, and are"
        problem = f"{plural(population.n_aside, 'known label')} {not_used} not used."
        why = "Items that were chosen because they are doubtful say little about the others."
        yield Finding(problem, (why,), kind="not random")
    if by is None:
        return
    empty = [shorten(plain(name)) for name, (n_items, _) in sizes.items() if not n_items]
    few = [f"{shorten(plain(name))} ({n})" for name, (n_items, n) in sizes.items() if n_items and n < LEAST_IN_GROUP]
    if empty:
        yield Finding(f"There are no items of {plural(len(empty), 'group')}: {join_names(empty)}.", kind="empty group")
    if few:
        has = "group has" if len(few) == 1 else "groups have"
        problem = f"{len(few):,} {has} fewer than {LEAST_IN_GROUP} known labels, and no estimate: {join_names(few)}."
        yield Finding(problem, ("Have more of their items labelled, drawn at random.",), kind="few known")
    if n_outside:
        has = "item has no group, and is" if n_outside == 1 else "items have no group, and are"
        yield Finding(f"{n_outside:,} {has} left out.", kind="no group")


def find_bias(each: Quantity, rows: Sequence[Mapping[str, Any]], same: bool, n_known: int) -> Iterator[Finding]:
    """What estimates say of the fit, and of what nobody is known to be."""
    name = shorten(plain(each.name))
    if same:
        seen = bool(each.known[0])
        ends = [row["low"] if seen else row["high"] for row in rows if row["low"] is not None]
        if ends:
            limit = f"at least {min(ends):.1%}" if seen else f"at most {max(ends):.1%}"
            who = (
                f"All {plural(n_known, 'known label')} are" if seen else f"None of {plural(n_known, 'known label')} is"
            )
            problem = f"{who} {name}, so there is no estimate of its share: it is {limit}."
            yield Finding(problem, ("Have more items labelled.",), kind="unseen")
        return
    outside = [row for row in rows if row["estimate"] is not None and not row["low"] <= row["fit_alone"] <= row["high"]]
    if outside:
        # the one that is the farthest outside
        row = max(outside, key=lambda row: max(row["low"] - row["fit_alone"], row["fit_alone"] - row["high"]))
        form = ".1%" if each.is_share else ".3g"
        what = f"the share of {name}" if each.is_share else "the mean"
        what += "" if row["group"] is None else f" in {shorten(row['group'])}"
        problem = f"Without known labels {what} would be {row['fit_alone']:{form}}, which is outside of "
        problem += f"{row['low']:{form}} to {row['high']:{form}}."
        yield Finding(problem, ("Errors of the predictions do not cancel out: use the estimate.",), kind="bias")
    worths = [row["worth"] / row["known"] for row in rows if row["worth"] is not None]
    if worths and max(worths) < LITTLE:
        yield Finding(f"For {name} the predictions tell little beyond the known labels.", kind="little worth")
