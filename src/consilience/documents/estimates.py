"""What is said of estimates and of audits: tables, a forest plot, and sentences; and their sections of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import quietly
from ..estimation.estimate import Estimate, estimate_population
from ..estimation.judges import Audit, audit_workers
from ..estimation.population import MEAN
from .charts import Chart, draw_intervals
from .document import Column, Fact, Facts, Part, Section, Table, Text, to_name
from .view import View

# The most estimates that are drawn.
MOST_DRAWN = 40


def describe_estimate(found: Estimate, with_chart: bool = False) -> list[Part]:
    """The estimates, beside those by known labels alone and by the fit alone, and the differences of groups."""
    of = len({row["of"] for row in found.rows}) > 1 or not found.has_groups
    heads = [Column("group", "group")] * found.has_groups + [Column("of", "of")] * of
    heads += [Column("estimate", "estimate", "estimate"), Column("labels_alone", "labels alone", "estimate")]
    heads += [Column("fit_alone", "fit alone", "figure"), Column("known", "known", "count")]
    heads += [Column("worth", "worth", "count")]
    parts: list[Part] = [Facts([Fact("items", "", found.n_items), Fact("known", "", found.n_known)])]
    parts.append(Text([found.describe()]))
    chart = draw_estimates(found) if with_chart else None
    parts += [chart] if chart is not None else []
    parts.append(Table("estimates", "", heads, [spell_row(row, "estimate") for row in found.rows], data=found.rows))
    if found.differences_rows:
        columns = [Column("of", "of")] * of + [Column("group", "group"), Column("other", "less")]
        columns += [Column("difference", "difference", "estimate"), Column("pairs", "pairs", "count")]
        rows = [spell_row(row, "difference") for row in found.differences_rows]
        parts.append(Table("differences", "Differences", columns, rows, data=found.differences_rows))
    parts.append(Text(["Worth: to how many known labels alone the estimate is equal."], quiet=True))
    return [*parts, found.findings]


def spell_row(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row with the ends of its interval under the names by which a table finds them."""
    shown = {key: to_name(value) if isinstance(value, str) else value for key, value in row.items()}
    return shown | {f"{name}_low": row["low"], f"{name}_high": row["high"]}


def draw_estimates(found: Estimate) -> Chart | None:
    """A forest plot of the estimates of shares, or else of means; None without any."""
    told = [row for row in found.rows if row["estimate"] is not None]
    shares = [row for row in told if row["of"] != MEAN] or told
    if not shares:
        return None
    several = len({row["of"] for row in shares}) > 1
    rows = []
    for row in shares[:MOST_DRAWN]:
        name = ", ".join(
            to_name(row[key]) for key in ("group", "of") if row[key] is not None and (key != "of" or several)
        )
        rows.append((name or to_name(row["of"]), row["estimate"], row["low"], row["high"], ""))
    is_share = shares[0]["of"] != MEAN
    low, high = min(row[2] for row in rows), max(row[3] for row in rows)
    step = 0.1 if is_share else 10 ** math.floor(math.log10(max(high - low, 1e-9)))
    domain = math.floor(low / step) * step, math.ceil(high / step) * step
    axis = {"format": "%", "tickCount": 5} if is_share else {"tickCount": 5}
    left = len(shares) - len(rows)
    alt = f"Estimates from {min(row[1] for row in rows):.3g} to {max(row[1] for row in rows):.3g}."
    alt += f" {left:,} more are in the table." if left else ""
    heads = "Estimate of", "Share" if is_share else "Mean", "95% interval"
    return draw_intervals("How many, with 95% intervals", alt, heads, rows, domain, axis, ".1%" if is_share else ".3g")


def describe_audit(found: Audit) -> list[Part]:
    """How good each worker is by known labels, the best first, and what all are worth together."""
    heads = [Column("worker", "worker"), Column("known", "known", "count"), Column("accuracy", "accuracy", "estimate")]
    heads += [Column("agreement", "kappa", "number"), Column("error_correlation", "shared errors", "number")]
    rows = sorted(found.rows, key=lambda row: -(row["accuracy"] or 0.0))
    facts = [
        Fact("known", "", found.n_known),
        Fact("positive", "", found.positive),
        Fact("effective_number", "", found.effective_number),
        Fact("worth", "", found.worth),
    ]
    parts: list[Part] = [Facts(facts), Text(found.describe())]
    shown = [clean(row) for row in rows]
    parts.append(Table("workers", "", heads, shown, data=rows))
    if found.positive is not None:
        classes = [Column(name, name, "estimate") for name in ("sensitivity", "specificity")]
        parts.append(Table("", "", [heads[0], *classes], shown))
    remarks = [Fact("", row["worker"], row["remarks"]) for row in shown[:MOST_DRAWN]]
    parts.append(Section("In words", [Facts(remarks)]))
    if found.groups_rows:
        columns = [Column("worker", "worker"), Column("group", "group"), Column("known", "known", "count")]
        columns.append(Column("accuracy", "accuracy", "estimate"))
        by_group = [clean(row) for row in found.groups_rows]
        parts.append(Table("groups", "By group", columns, by_group, data=found.groups_rows))
    return parts


def clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with names that are short enough to be shown."""
    shown = {
        key: to_name(value) if isinstance(value, str) and key != "remarks" else value for key, value in row.items()
    }
    return shown | {"worker": to_name(row["worker"])}


def estimate_page(view: View) -> list[Part]:
    """The section of the page on shares of classes."""
    assert view.population is not None
    with quietly():
        return describe_estimate(estimate_population(view.population), with_chart=True)[1:]


def audit_page(view: View) -> list[Part]:
    """The section of the page on workers by known labels."""
    assert view.population is not None
    with quietly():
        return describe_audit(audit_workers(view.result, view.population))[1:]
