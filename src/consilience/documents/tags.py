"""The section on tags: how many items each one fits, and who misses it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..answers.columns import to_values
from ..inference.structures.sets import SetsParameters
from ..kinds.tag_kind import TagsKind, report_tags
from .charts import Chart, draw_shares
from .document import Column, Part, Section, Table, name_all, to_name
from .view import View

# Tags that are drawn, and workers in their table.
MOST_TAGS, MOST_TAGGERS = 30, 200


def report_each_tag(view: View) -> dict[str, Any]:
    """The columns of the table of tags."""
    result = view.result
    shares = cast(SetsParameters, result.estimates.structure).shares
    counts = result.estimates.further["_tag_counts"]
    return {
        name: to_values(column) for name, column in report_tags(cast(TagsKind, result.kind), shares, counts).items()
    }


def describe_tags(view: View) -> list[Part]:
    """How many items each tag fits, who misses it, and who gives it where it does not fit."""
    chart = draw_tags(view)
    assert chart is not None
    report = report_each_tag(view)
    names, share = [to_name(tag) for tag in report["tag"].tolist()], np.asarray(report["share"])
    heads = {"share": "Items that it fits", "given": "Given in", "misses": "Missed", "false_alarms": "False alarms"}
    columns = [Column("tag", "Tag"), *(Column(key, name, "percent") for key, name in heads.items())]
    tags = Table("tags", "Each tag", columns, list(zip(names, *(report[key].tolist() for key in heads), strict=True)))

    confusion = view.result.estimates.further["tag_confusion_"]
    missed, false = confusion[:, :, 1, 0], confusion[:, :, 0, 1]
    misses, alarms = missed @ (share / share.sum()), false @ ((1 - share) / (1 - share).sum())
    rows = []
    for m in np.argsort(-(misses + alarms), kind="stable")[:MOST_TAGGERS].tolist():
        worst = [f"{names[int(each[m].argmax())]} ({each[m].max():.0%})" for each in (missed, false)]
        rows.append((view.workers[m], float(misses[m]), worst[0], float(alarms[m]), worst[1]))
    columns = [Column("worker", "Worker"), Column("misses", "Misses", "percent")]
    columns += [Column("worst_miss", "Most of all", "spelled"), Column("false_alarms", "False alarms", "percent")]
    columns += [Column("worst_false_alarm", "Most of all", "spelled")]
    workers = Table("worker_tags", "Misses and false alarms of each worker", columns, rows)
    return [([chart],), Section("In detail", [tags, workers])]


def draw_tags(view: View) -> Chart | None:
    """In how many sets each tag is, as workers gave them and fused; None for other models."""
    if view.result.model != "TagSets":
        return None
    report, n_tags = report_each_tag(view), len(cast(TagsKind, view.result.kind).tags)
    given, fused = report["given"], (view.result.labels.posterior[:, 1].reshape(-1, n_tags) > 0.5).mean(axis=0)
    order = np.argsort(-fused, kind="stable")[:MOST_TAGS]
    names = name_all(report["tag"][order], 24)
    alt = f"The most frequent tag is {names[0]}, in {fused[order[0]]:.1%} of the fused sets."
    shares = {"Sets of workers": given[order], "Fused sets": fused[order]}
    return draw_shares("Tags in the sets of workers, and in fused ones", alt, names, shares, "Tag")
