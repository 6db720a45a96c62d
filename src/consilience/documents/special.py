"""Sections about what hangs together, and about kinds of answers: sequences, networks and tags."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values, spell_surrogates, to_values
from ..answers.tagging import are_tags, find_runs, split_tag
from ..inference.observations import Observations
from ..inference.structures.sets import SetsParameters
from ..kernels import NEARLY_ZERO
from ..kinds.tags import TagsKind, report_tags
from ..planning.items import find_entropy
from ..results.comparison import describe_limit, describe_usual
from .charts import Chart, draw_heat, draw_shares
from .document import Column, Part, Section, Table, Text, Widget, name_all, spell, to_name
from .items import View
from .workers import MOST_CLASSES_DRAWN, merge_rare

# How many examples there are, how long, and of how many workers; characters of a text.
N_EXAMPLES, LONGEST_EXAMPLE, MOST_TRACKS, LONGEST_PASSAGE = 5, 60, 12, 1500
# Colours of labels in the page.
N_COLOURS = 8
# Tags that are drawn, and workers in their table.
MOST_TAGS, MOST_TAGGERS = 30, 200

# --------------------------------------------------------------------------------------------------------- sequences


def describe_sequences(view: View) -> list[Part]:
    """What was learned about how labels follow each other, with examples; nothing if there are no sequences."""
    if view.answers.sequences is None or not view.result.kind.in_order:
        return []
    chart, parts = draw_transitions(view), list[Part]()
    if chart is not None:
        words = Text([view.model.explain_coupling()])
        parts += [([chart],), Section("How neighbouring labels depend on each other", [words])]
    elif view.result.model == "HiddenMarkov":
        nothing = "No sequence has two positions, so nothing was learned about how labels follow each other."
        parts.append(Text([nothing]))
    examples = list_examples(view)
    if examples:
        differ = ", where the fused labels differ most from majority vote" if view.differs.any() else ""
        parts.append(Section(f"Examples{differ}", [Widget("examples", {"examples": examples})]))
    return parts


def draw_transitions(view: View) -> Chart | None:
    """Which label follows which; None if that was not learned."""
    result, sequences = view.result, view.answers.sequences
    if result.model != "HiddenMarkov" or sequences is None or view.answers.n_items == len(sequences):
        return None
    transition, prior = np.asarray(view.model.transition_), result.prior
    size = np.bincount(result.labels.codes, minlength=len(view.classes)).astype(float)
    place, names = merge_rare(size, view.classes, MOST_CLASSES_DRAWN)
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (place[:, None], place), transition * np.maximum(prior, 1e-12)[:, None])
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), NEARLY_ZERO)
    alt = f"A label stays the same at the next position in {prior @ np.diag(transition):.0%} of the cases."
    return draw_heat("Which label follows which", alt, names, names, shares, "From", "To")


def list_examples(view: View) -> list[dict[str, Any]]:
    """The sequences in which most fused labels differ from the vote, or that are least certain.

    Of each there is the track of each worker, cell by cell (text, colour, and whether it differs from the fused label);
    or the text with the fused spans, and with those of each worker, in pieces (text, label and colour).
    """
    r, result = view.answers, view.result
    assert r.sequences is not None
    starts, length = r.sequences.offsets[:-1], np.diff(r.sequences.offsets)
    eligible = np.flatnonzero(length > 0)
    if not len(eligible):
        return []
    differs = np.add.reduceat(np.append(view.differs, False).astype(np.int64), starts)[eligible]
    doubt = np.add.reduceat(np.append(find_entropy(result.labels.posterior), 0.0), starts)[eligible] / length[eligible]
    fits = length[eligible] <= LONGEST_EXAMPLE
    alone = np.add.reduceat(np.append(view.n_answers, 0), starts)[eligible] < 2 * length[eligible]
    order = np.lexsort((-doubt, -differs, ~fits, alone))
    colours, by_label = colour_classes(view.classes), list[int | None]()
    by_label += [colours[k] if k >= 0 else None for k in r.class_of_label.tolist()]
    cells, label_cells = (
        [name if len(name) <= 8 else f"{name[:7]}…" for name in each] for each in (view.classes, view.labels)
    )
    are_texts = result.kind.read(0) is not None and are_tags(result.names.classes)
    examples = list[dict[str, Any]]()
    for sequence in eligible[order[:N_EXAMPLES]].tolist():
        start, end = r.sequences.offsets[sequence : sequence + 2].tolist()
        stop = end if are_texts else min(end, start + LONGEST_EXAMPLE)
        # The label that each worker gave to each of these items, -1 for none.
        here = slice(int(r.offsets[start]), int(r.offsets[stop]))
        workers, place = np.unique(r.worker[here], return_inverse=True)
        said, fused = np.full((len(workers), stop - start), -1), result.labels.codes[start:stop]
        said[place, r.item_of_answer()[here] - start] = r.label[here]
        shown = [(view.workers[m], codes) for m, codes in zip(workers.tolist(), said, strict=True)][:MOST_TRACKS]
        example: dict[str, Any] = {"name": to_name(r.sequences.ids[[sequence]].tolist()[0])}
        example["more_workers"] = len(workers) - len(shown)
        if are_texts:
            passage = result.kind.read(sequence)
            assert passage is not None
            example["text"] = mark_spans(passage, fused, view.classes, result.names.classes, colours)
            example["readers"] = [
                (name, mark_spans(passage, codes, view.labels, r.labels, by_label)) for name, codes in shown
            ]
        else:
            contents = [view.show(each) for each in range(start, stop)]
            words = [to_name(text, 20) for text, picture, _ in contents if text and not picture]
            example |= {"words": words if len(words) == stop - start else [], "more": end - stop, "tracks": []}
            example["fused"] = [(cells[k], colours[k], False) for k in fused.tolist()]
            for name, codes in shown:
                off = (r.class_of_label[codes] != fused).tolist()
                track = [
                    (label_cells[k], by_label[k], off[n]) if k >= 0 else None for n, k in enumerate(codes.tolist())
                ]
                example["tracks"].append((name, track))
        examples.append(example)
    return examples


def colour_classes(classes: list[str]) -> list[int | None]:
    """The colour of each class: tags of one type have the same, and O has none.

    >>> colour_classes(["B-PER", "I-PER", "O", "B-LOC"])
    [0, 0, None, 1]
    """
    parts, colours = [split_tag(name, "OBIELSU") for name in classes], dict[str, int]()
    kinds = [name if part is None else str(part[1]) for name, part in zip(classes, parts, strict=True)]
    return [
        None if name == "O" else colours.setdefault(kind, len(colours)) % N_COLOURS
        for name, kind in zip(classes, kinds, strict=True)
    ]


def mark_spans(
    passage: tuple[str, Any, Any], codes: NDArray[np.int64], names: list[str], values: Values, colours: list[int | None]
) -> list[tuple[str, str, int | None]]:
    """A text in pieces, of which those that are spans have a label and a colour; its end is left out if it is long."""
    whole, first, last = passage
    known, labels = np.where(codes >= 0, codes, len(names)), np.append(values.astype(object), "O")
    runs, place = find_runs(known, labels, np.zeros(len(codes), np.int64)), 0
    pieces = list[tuple[str, str, int | None]]()
    for begin, end in zip(runs.first.tolist(), runs.stop.tolist(), strict=True):
        a, b, code = int(first[begin]), int(last[end - 1]), int(codes[begin])
        tag = split_tag(names[code], "OBIELSU")
        pieces += [(whole[place:a], "", None), (whole[a:b], str(tag[1]) if tag else names[code], colours[code])]
        place = b
    room, kept = LONGEST_PASSAGE, list[tuple[str, str, int | None]]()
    for words, label, colour in [*pieces, (whole[place:], "", None)]:
        text = spell_surrogates(words)
        if room > 0 and text:
            kept.append((text if len(text) <= room else text[:room] + "…", label, colour))
        room -= len(text)
    return kept


# ----------------------------------------------------------------------------------------------------------- networks


def describe_network(view: View) -> list[Part]:
    """What was found about the graph, in words and figures; nothing for other models."""
    check, is_field = view.result.graph_check, view.result.model == "MarkovField"
    if not is_field and check is None:
        return []
    words, rows = ["The graph was not checked. fuse does that."], list[tuple[str, float | None, str]]()
    if is_field:
        unit = view.model._usual_weight
        name = f"Coupling, in nats per agreeing neighbour{describe_usual(unit)}"
        rows.append((name, view.model.coupling_ * unit, "number"))
    if check is not None:
        words = [str(check)]
        if is_field and view.model.listeners == "unanswered":
            words.append(describe_limit(bool(Observations(view.answers).find_answered().all()), "The graph"))
        rows += [
            ("Coupling on a shuffled graph", check.shuffled_coupling, "number"),
            ("Neighbours of an item, on average", check.degree, "number"),
            ("Labels that the graph changes", check.changed, "percent"),
            ("Labels that a shuffled graph changes", check.shuffled_changed, "percent"),
            ("Agreement along edges beyond chance", check.agreement if check.measured else None, "figure"),
            ("Its standard error", check.agreement_error if check.measured else None, "figure"),
            ("Correlation of a worker's errors along edges", check.error_correlation, "number"),
        ]
    columns = [Column("name", ""), Column("value", "", "spelled")]
    figures = [(name, spell(value, form)) for name, value, form in rows if value is not None]
    return [Text(words), Section("In detail", [Table("graph", "The graph in figures", columns, figures)])]


# --------------------------------------------------------------------------------------------------------------- tags


def report_each_tag(view: View) -> dict[str, Any]:
    """The columns of the table of tags."""
    result = view.result
    shares = cast(SetsParameters, result.estimates.structure).shares
    counts = result.estimates.further["_tag_counts"]
    return {
        name: to_values(column) for name, column in report_tags(cast(TagsKind, result.kind), shares, counts).items()
    }


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
