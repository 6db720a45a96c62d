"""What is said of values: findings, an overview for terminals and notebooks, the page, and its charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers.previews import MOST_ROWS_SHOWN
from ..answers.tables import build_frame
from ..documents.charts import Chart, draw_intervals
from ..documents.document import Column, Document, Fact, Facts, Part, Section, Table, Text, name_all
from ..documents.overview import format_columns
from ..errors import ConvergenceWarning, DataWarning, Sentence, join_names, plural
from ..results.findings import Finding

if TYPE_CHECKING:
    from .measurement import Measured

# The most items and workers that tables and charts show.
MOST_DISPUTED, MOST_DRAWN = 10, 20
WORDS = {
    "mean": "the mean of the answers",
    "median": "the median of the answers",
    "weighted": "the mean, weighted by the precision of workers",
    "robust": "the robust average, without the biases of workers",
}


def write(number: float) -> str:
    """A number with the digits that are read."""
    return f"{number:.0f}" if abs(number) >= 1e4 else f"{number:.4g}"


def check_values(result: Measured) -> list[Finding]:
    """All that is to be said of values, the most serious first."""
    findings, careless = list[Finding](), result.called_careless
    if np.isnan(result.low).all():
        problem = "Each item has one answer: nothing tells how wrong these are, and values are the answers themselves."
        findings.append(Finding(problem, ("Ask several workers about some items.",), "bad", kind="single answers"))
    if not result.converged:
        problem = "The fit did not settle: values may still change."
        remedies = (Sentence("Raise {max_iter}."),)
        findings.append(Finding(problem, remedies, "care", "max_iter", ConvergenceWarning, "unsettled"))
    if careless.any():
        names = join_names(map(str, result.workers[careless].tolist()))
        share = result.asked[careless].sum() / len(result.said)
        problem = (
            f"{plural(int(careless.sum()), 'worker')} whose answers have nothing to do with the items: {names}. These "
            f"are {share:.0%} of all answers."
        )
        remedy = "Look at their answers, and ask how they understood the task."
        findings.append(Finding(problem, (remedy,), "care", None, None, "careless", "workers"))
    for group in result.copies:
        names = join_names(map(str, result.workers[group].tolist()))
        problem = f"{plural(len(group), 'worker')} give the same numbers, far more often than chance: {names}. "
        problem += "Together they count as one."
        remedy = "Find out whether they worked on their own."
        findings.append(Finding(problem, (remedy,), "care", None, DataWarning, "copies", "workers"))
    if result.line is not None:
        offset, slope = result.line
        n = plural(int(np.isfinite(result.known).sum()), "known value")
        problem = f"{n} teach a line: values are {write(offset)} + {write(slope)} times what the workers say"
        problem += ", in logarithms." if result.scale == "log" else "."
        findings.append(Finding(problem, (), "care", None, None, "line"))
    return findings


def tabulate_items(result: Measured, most: int = MOST_DISPUTED) -> Table:
    """The most disputed items: those with the widest intervals."""
    wide = np.nan_to_num(np.where(np.isnan(result.known), result.width, 0.0), nan=-1.0)
    rows = np.argsort(-wide, kind="stable")[:most]
    records = build_frame(result.table(rows[wide[rows] > 0]), "pyarrow").to_pylist()
    shown = [{**each, **{name: write(each[name]) for name in ("value", "low", "high")}} for each in records]
    keys = [Column(name, name) for name in result.keys]
    figures = [Column(name, name, "spelled") for name in ("value", "low", "high")]
    columns = [*keys, *figures, Column("answers", "answers", "count")]
    return Table("disputed", "Most disputed items, with 90% intervals", columns, shown, data=records)


def tabulate_workers(result: Measured) -> Table:
    """The workers: where there are many, those with a remark."""
    every = build_frame(result.worker_table, "pyarrow").to_pylist()
    few = len(every) <= MOST_ROWS_SHOWN
    chosen = every if few else [row for row in every if row["remarks"].removesuffix("few answers")][:MOST_ROWS_SHOWN]
    columns = [
        Column("worker", "worker"),
        Column("answers", "answers", "count"),
        Column("bias", "bias", "estimate"),
        Column("spread", "spread", "estimate"),
        Column("careless", "careless", "share"),
        Column("remarks", "remarks"),
    ]
    which = "" if few else f" with remarks, of {len(every):,}"
    return Table("worker_report", f"Workers{which}, with 90% intervals", columns, chosen, data=every)


def describe_values(result: Measured, findings: Sequence[Finding], title: str = "") -> Document:
    """The overview of values."""
    n, n_items, n_workers = len(result.said), len(result.value), len(result.workers)
    n_known, told = int(np.isfinite(result.known).sum()), np.isfinite(result.width)
    half = float(np.median(result.width[told])) / 2 if told.any() else np.nan
    by, about = plural(n_workers, "worker"), plural(n_items, "item")
    errors = ", ".join(f"{name} {write(error)}" for name, error in result.errors.items())
    unit = " in logarithms" if result.scale == "log" else ""
    within = (
        "" if np.isnan(half) else f"half of the values are known within {write(float(half))}{unit}, or better (90%)"
    )
    facts = [
        Fact("columns", "Columns", result.columns, format_columns(result.columns)),
        Fact("answers", "Answers", n, f"{plural(n, 'number')} by {by} about {about}"),
        Fact("items", "", n_items),
        Fact("workers", "", n_workers),
        Fact("average", "Values", result.average, WORDS[result.average]),
        Fact("scale", "Scale" if unit else "", result.scale, "logarithms: errors are ratios"),
        Fact("errors", "Hidden answers" if errors else "", result.errors, f"missed by {errors} (root mean square)"),
        Fact("half_width", "Intervals" if within else "", None if np.isnan(half) else float(half), within),
        Fact("known", "Known" if n_known else "", n_known, plural(n_known, "value")),
        Fact("line", "", None if result.line is None else list(result.line)),
        Fact("converged", "", result.converged),
    ]
    items, workers = tabulate_items(result), tabulate_workers(result)
    tables: list[Part] = [*([items] if items.rows else []), *([workers] if workers.rows else [])]
    return Document(title, "", [Facts(facts), list(findings), *tables])


def report_values(result: Measured, findings: Sequence[Finding], title: str, model: str) -> Document:
    """The page about values by a `model`: how sure they are, what is disputed, and how workers answer."""
    overview = describe_values(result, findings).parts[0]
    items, workers = tabulate_items(result), tabulate_workers(result)
    n_careless, n_workers = int(result.called_careless.sum()), len(result.workers)
    count = Fact("careless", "Careless", n_careless, format="count", detail=f"of {plural(n_workers, 'worker')}")
    parts: list[Part] = [overview, Facts([Fact("model", "Model", model)]), Facts([count], "figures")]
    notes: list[Part] = [list(findings)] if findings else [Text(["Nothing stands out."])]
    parts.append(Section("What needs attention", notes, "attention", "Attention"))
    sections = (
        ("items", "Disputed items", draw_items(result), items, "These have the widest intervals: ask about them next."),
        ("workers", "Workers", draw_workers(result), workers, "A worker with a positive bias answers high."),
    )
    for id, name, chart, table, words in sections:
        shown: list[Part] = [Text([words]), *([([chart],)] if chart is not None else [])]
        shown += [Section("In detail", [table])] if table.rows else []
        parts.append(Section(name, shown, id, name, f"See the {name.lower()}"))
    within = next(fact.text for fact in overview.facts if fact.key == "half_width")  # type: ignore[union-attr]
    headline = f"{within[:1].upper()}{within[1:]}." if within else "Nothing tells how wrong these values are."
    return Document(title, headline, parts)


def draw_items(result: Measured) -> Chart | None:
    """The values of the most disputed items with their intervals."""
    records = [each for each in tabulate_items(result, MOST_DRAWN).data if each["low"] is not None]
    if not records:
        return None
    last = list(result.keys)[:2]
    names = name_all([" ".join(str(each[name]) for name in last) for each in records])
    rows = [(name, each["value"], each["low"], each["high"], "") for name, each in zip(names, records, strict=True)]
    least, most = min(row[2] for row in rows), max(row[3] for row in rows)
    room = 0.04 * (most - least)
    alt = f"{rows[0][0]} is between {write(rows[0][2])} and {write(rows[0][3])}."
    heads, title = ("Item", "Value", "90% interval"), "The most disputed items, with 90% intervals"
    return draw_intervals(title, alt, heads, rows, (least - room, most + room), {"tickCount": 5}, ".6g")


def draw_workers(result: Measured) -> Chart | None:
    """The biases of workers with their intervals, and their spreads; those with a remark come first."""
    if len(result.workers) < 2:
        return None
    table = build_frame(result.worker_table, "pyarrow").to_pylist()
    names, remarks = name_all(result.workers), [each["remarks"].partition(";")[0] for each in table]
    chosen = sorted(range(len(names)), key=lambda m: (not remarks[m], -table[m]["answers"]))[:MOST_DRAWN]
    chosen.sort(key=lambda m: -table[m]["bias"])
    rows: list[Any] = [
        (names[m], *(table[m][f"bias{end}"] for end in ("", "_low", "_high")), remarks[m]) for m in chosen
    ]
    alt = f"{plural(len(names), 'worker')}, {sum(map(bool, remarks))} of them with a remark."
    heads, title = ("Worker", "Bias", "90% interval", "Spread"), "Biases of the workers, with 90% intervals"
    reach = 1.04 * max(max(-row[2], row[3]) for row in rows) or 1.0
    spreads = [write(table[m]["spread"]) for m in chosen]
    return draw_intervals(title, alt, heads, rows, (-reach, reach), {"tickCount": 5}, "+.4g", spreads)


# The charts that can be drawn one by one, by their names.
CHARTS: dict[str, Callable[[Measured], Chart | None]] = {"workers": draw_workers, "items": draw_items}
