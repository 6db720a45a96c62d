"""Tags: how many items each fits, who misses them, and who gives them where they do not fit."""

from __future__ import annotations

import numpy as np

from ..answers.columns import distinct_names
from ..documents.charts import Chart, Plain, Table, draw_shares
from ..models.tag_sets import TagSets
from .subject import Subject, to_name

# Tags that are drawn, and workers in a table.
MOST_DRAWN, MOST_WORKERS = 30, 200


def describe_tags(subject: Subject) -> Plain | None:
    """Return what was learned about the tags, in words, a chart and tables; None for other models."""
    if not isinstance(subject.model, TagSets):
        return None
    chart = draw_tags(subject)
    return Plain([], [] if chart is None else [chart], [tabulate_tags(subject.model), tabulate_misses(subject.model)])


def draw_tags(subject: Subject) -> Chart | None:
    """Return in how many sets each tag is, as workers gave them and fused; None for other models."""
    model = subject.model
    if not isinstance(model, TagSets):
        return None
    given, fused = np.asarray(model.tag_report()["given"]), (model.tag_posterior_ > 0.5).mean(axis=0)
    order = np.argsort(-fused, kind="stable")[:MOST_DRAWN]
    names = distinct_names([to_name(model.tags_[[tag]].tolist()[0], 24) for tag in order.tolist()])
    alt = f"The most frequent tag is {names[0]}, in {fused[order[0]]:.1%} of the fused sets."
    shares = {"Sets of workers": given[order], "Fused sets": fused[order]}
    return draw_shares("Tags in the sets of workers, and in fused ones", alt, names, shares, "Tag")


def tabulate_tags(model: TagSets) -> Table:
    """Return how many items each tag fits, and how often it is missed or given where it does not fit."""
    report = model.tag_report()
    columns = [np.asarray(report[name]) for name in ("share", "given", "misses", "false_alarms")]
    names = [to_name(tag) for tag in model.tags_.tolist()]
    rows = [(name, *(f"{column[t]:.1%}" for column in columns)) for t, name in enumerate(names)]
    return Table("Each tag", rows, ("Tag", "Items that it fits", "Given in", "Missed", "False alarms"))


def tabulate_misses(model: TagSets) -> Table:
    """Return how often each worker misses a tag, and gives one that does not fit, with the worst tag of each."""
    confusion, shares = model.tag_confusion_, model.tag_shares_
    names = [to_name(tag) for tag in model.tags_.tolist()]
    missed, false = confusion[:, :, 1, 0], confusion[:, :, 0, 1]
    misses, alarms = missed @ (shares / shares.sum()), false @ ((1 - shares) / (1 - shares).sum())
    rows = []
    for m in np.argsort(-(misses + alarms), kind="stable")[:MOST_WORKERS].tolist():
        worst = [f"{names[int(each[m].argmax())]} ({each[m].max():.0%})" for each in (missed, false)]
        name = to_name(model.workers_[[m]].tolist()[0])
        rows.append((name, f"{misses[m]:.1%}", worst[0], f"{alarms[m]:.1%}", worst[1]))
    heads = ("Worker", "Misses", "Most of all", "False alarms", "Most of all")
    return Table("Misses and false alarms of each worker", rows, heads)
