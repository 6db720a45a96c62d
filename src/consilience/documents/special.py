"""Sections about kinds of answers: soft votes, tags, and several questions at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..answers.columns import Column as Values
from ..answers.columns import distinct_names, spell_surrogates, to_values
from ..errors import plural
from ..inference.structures.sets import SetsParameters
from ..inference.workers.temperatures import MeanWorkers
from ..kinds.tags import TagsKind, report_tags
from ..results.sureness import find_reliability, list_sureness
from .charts import Chart, draw_curves, draw_shares
from .document import Column, Columns, Document, Fact, Facts, Fold, Part, Section, Table, Text, Widget, to_name
from .view import View, name_all

# Classifiers that are shown, those with the most votes; tags that are drawn, and workers in their table.
MOST_CLASSIFIERS, MOST_TAGS, MOST_WORKERS = 12, 30, 200
# So many workers over all questions are shown, and so many are in the page at all.
N_SHOWN, N_WORKERS = 12, 500
# The most questions that the menu names.
MOST_NAMED = 8
# Of labels that were not compared with majority vote.
NOT_COMPARED = "not compared"


def describe_votes(view: View) -> list[Part]:
    """How sure classifiers are, compared with how often they are right; nothing if answers are no soft votes."""
    chart = draw_votes(view)
    if chart is None:
        return []
    found = {name: to_values(column).tolist() for name, column in _list_sureness(view).items()}
    words, check = ["Where a curve is below the diagonal, the classifier is too sure; above, it is too cautious."], ""
    if view.result.soft_check is not None:
        check = str(view.result.soft_check)
        words.insert(0, f"{check[0].upper()}{check[1:]}.")
    columns = [Column("classifier", "Classifier"), Column("sureness", "Sureness")]
    columns.append(Column("temperature", "Factor of its log odds", "spelled"))
    rows = [(view.workers[m], found["sureness"][m], f"{found['temperature'][m]:.2g}") for m in _choose_busiest(view)]
    table = Table("sureness", "How sure each classifier is", columns, rows)
    return [Text(words), Columns([[chart]]), Fold("In detail", [table])]


def _list_sureness(view: View) -> dict[str, Values]:
    return list_sureness(view.answers, view.result.labels.posterior)


def _choose_busiest(view: View) -> list[int]:
    n_votes = view.answers.votes_per_worker()
    busiest = np.argsort(-n_votes, kind="stable")[:MOST_CLASSIFIERS]
    return sorted(m for m in busiest.tolist() if n_votes[m])


def draw_votes(view: View) -> Chart | None:
    """How often each classifier is right, by the fit, against how sure it is."""
    r, found = view.answers, view.result
    # The mean is not calibrated, and nothing to compare with.
    if r.soft is None or found.learned.kind == MeanWorkers.name or not found.checked or r.n_classes < 2:
        return None
    shown = _choose_busiest(view)
    names = distinct_names([to_name(view.workers[m], 24) for m in shown])
    curves = {name: find_reliability(r, found.labels.posterior, m) for name, m in zip(names, shown, strict=True)}
    which = "" if len(shown) == r.n_workers else f" {len(shown)} of them are shown."
    alt = f"Curves of {plural(r.n_workers, 'classifier')}: share of right votes by the probability they gave.{which}"
    return draw_curves("How often votes are right, as the fit sees it, by how sure they are", alt, curves)


def report_each_tag(view: View) -> dict[str, Any]:
    """The columns of the table of tags."""
    found = view.result
    shares = cast(SetsParameters, found.learned.structure).shares
    counts = found.learned.further["_tag_counts"]
    return {name: to_values(column) for name, column in report_tags(cast(TagsKind, found.task), shares, counts).items()}


def describe_tags(view: View) -> list[Part]:
    """How many items each tag fits, who misses it, and who gives it where it does not fit; nothing for other models."""
    chart = draw_tags(view)
    if chart is None:
        return []
    report = report_each_tag(view)
    names, share = [to_name(tag) for tag in report["tag"].tolist()], np.asarray(report["share"])
    heads = {"share": "Items that it fits", "given": "Given in", "misses": "Missed", "false_alarms": "False alarms"}
    columns = [Column("tag", "Tag"), *(Column(key, name, "percent") for key, name in heads.items())]
    tags = Table("tags", "Each tag", columns, list(zip(names, *(report[key].tolist() for key in heads), strict=True)))

    confusion = view.result.learned.further["tag_confusion_"]
    missed, false = confusion[:, :, 1, 0], confusion[:, :, 0, 1]
    misses, alarms = missed @ (share / share.sum()), false @ ((1 - share) / (1 - share).sum())
    rows = []
    for m in np.argsort(-(misses + alarms), kind="stable")[:MOST_WORKERS].tolist():
        worst = [f"{names[int(each[m].argmax())]} ({each[m].max():.0%})" for each in (missed, false)]
        rows.append((view.workers[m], float(misses[m]), worst[0], float(alarms[m]), worst[1]))
    columns = [Column("worker", "Worker"), Column("misses", "Misses", "percent")]
    columns += [Column("worst_miss", "Most of all", "spelled"), Column("false_alarms", "False alarms", "percent")]
    columns += [Column("worst_false_alarm", "Most of all", "spelled")]
    workers = Table("worker_tags", "Misses and false alarms of each worker", columns, rows)
    return [Columns([[chart]]), Fold("In detail", [tags, workers])]


def draw_tags(view: View) -> Chart | None:
    """In how many sets each tag is, as workers gave them and fused; None for other models."""
    if view.result.model != "TagSets":
        return None
    report, n_tags = report_each_tag(view), len(cast(TagsKind, view.result.task).tags)
    given, fused = report["given"], (view.result.labels.posterior[:, 1].reshape(-1, n_tags) > 0.5).mean(axis=0)
    order = np.argsort(-fused, kind="stable")[:MOST_TAGS]
    names = distinct_names([to_name(tag, 24) for tag in report["tag"][order].tolist()])
    alt = f"The most frequent tag is {names[0]}, in {fused[order[0]]:.1%} of the fused sets."
    shares = {"Sets of workers": given[order], "Fused sets": fused[order]}
    return draw_shares("Tags in the sets of workers, and in fused ones", alt, names, shares, "Tag")


def show_questions(
    title: str,
    documents: Mapping[str, Document],
    counts: Mapping[str, Mapping[str, Any]],
    sharing: str,
    workers: Mapping[str, Values],
) -> Document:
    """Several questions: how they compare with majority vote, who answers without looking, and each by itself.

    Parameters
    ----------
    title : str
        What the page is called.
    documents : mapping
        The document on each question.
    counts : mapping
        Of each question the classes, and the numbers of items and answers.
    sharing : str
        Whether skills carry over.
    workers : mapping
        The columns of the report on workers over all questions.
    """
    names = list(documents)
    rows = [
        (
            spell_surrogates(name),
            len(counts[name]["classes"]),
            counts[name]["items"],
            counts[name]["answers"],
            counts[name]["mean_confidence"],
            documents[name].badge or documents[name].headline,
        )
        for name in names
    ]
    columns = [Column("question", "Question"), Column("classes", "Classes", "count"), Column("items", "Items", "count")]
    columns += [Column("answers", "Answers", "count"), Column("mean_confidence", "Mean confidence", "percent")]
    columns += [Column("verdict", "In predicting hidden answers")]
    links = [f"question-{n}" for n in range(len(names))]
    table = Table("questions", "Questions", columns, rows, links=links)

    found = {name: to_values(column).tolist() for name, column in workers.items()}
    order = sorted(range(len(found["worker"])), key=lambda m: -np.nan_to_num(found["chance"][m]))
    shown = {"worker": Column("worker", "Worker"), "answers": Column("answers", "Answers", "count")}
    shown["chance"] = Column("chance", "By chance", "share", "The probability that the worker answers without looking")
    shown |= {"remarks": Column("remarks", "Remarks")} if any(found["remarks"]) else {}
    shown |= {"accuracy": Column("accuracy", "Accuracy", "share")}
    shown |= {
        f"accuracy({name})": Column(f"accuracy({name})", f"Accuracy: {spell_surrogates(name)}", "share")
        for name in names
    }
    listed = [[found[key][m] for key in shown] for m in order[:N_WORKERS]]
    head = "Those come first who most probably answer without looking. Talk to workers above 90%."
    first = Table("workers", "Workers over all questions", list(shown.values()), listed[:N_SHOWN])
    parts: list[Part] = [Text([head]), first]
    if listed[N_SHOWN:]:
        title_more = f"{len(listed) - N_SHOWN:,} more workers"
        rest = Table("more_workers", title_more, list(shown.values()), listed[N_SHOWN:])
        n_more = f"These are the first {len(listed):,} of {len(order):,} workers."
        note = [Text([n_more])] if len(order) > len(listed) else []
        parts.append(Fold(title_more, [rest, *note]))

    facts = [Fact("questions", "Questions", len(names), format="count")]
    facts += [Fact("workers", "Workers", len(order), format="count")]
    facts += [Fact("answers", "Answers", sum(counts[name]["answers"] for name in names), format="count")]
    menus = name_all(np.array([*names, ""], object))[:-1] if len(names) <= MOST_NAMED else [""] * len(names)
    each = [
        Section(link, to_name(name), menu, [Widget("frame", {"document": documents[name]})])
        for link, name, menu in zip(links, names, menus, strict=True)
    ]
    return Document(
        title,
        summarise_badges([documents[name].badge for name in names]),
        [
            Facts(facts),
            Text([sharing]),
            Section("questions", "Questions", "Questions", [table]),
            Section("workers", "Workers over all questions", "Workers", parts),
            *each,
        ],
    )


def summarise_badges(badges: Sequence[str]) -> str:
    """How many questions compare how with majority vote, in a sentence.

    >>> summarise_badges(["Better than majority vote", ""])
    '2 questions: in predicting hidden answers, 1 better than majority vote, 1 not compared.'
    >>> summarise_badges(["Better than majority vote"] * 3)
    '3 questions, all better than majority vote in predicting hidden answers.'
    """
    counts = Counter(f"{badge[0].lower()}{badge[1:]}" if badge else NOT_COMPARED for badge in badges)
    if len(counts) == 1:
        (words,) = counts
        where = "" if words == NOT_COMPARED else " in predicting hidden answers"
        return f"{plural(len(badges), 'question')}, all {words.replace('no clear', 'without a clear')}{where}."
    listed = ", ".join(f"{n} {words.replace('no clear', 'without a clear')}" for words, n in counts.items())
    return f"{plural(len(badges), 'question')}: in predicting hidden answers, {listed}."
