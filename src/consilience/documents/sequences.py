"""Sequences and networks: how labels follow each other, and examples with every worker's track."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values, spell_surrogates
from ..answers.tagging import are_tags, find_runs, split_tag
from ..inference.sources import Source
from ..planning.next_items import find_entropy
from ..results.comparison import describe_limit, describe_usual
from .charts import Chart, draw_heat
from .document import Column, Columns, Fold, Part, Table, Text, Widget, to_name
from .view import View
from .workers import MOST_CLASSES, choose_classes, fold_table

# How many examples there are, how long, and of how many workers.
N_EXAMPLES, LONGEST, MOST_TRACKS = 5, 60, 12
LONGEST_TEXT = 1500
# Colours of labels in the page.
N_COLOURS = 8


def describe_sequences(view: View) -> list[Part]:
    """What was learned about how labels follow each other, with examples; nothing if there are no sequences."""
    if view.answers.sequences is None or view.result.task.places[0] != "sequence":
        return []
    chart, parts = draw_transitions(view), list[Part]()
    if chart is not None:
        words = [view.model.explain_coupling()]
        parts += [Columns([[chart]]), Fold("How neighbouring labels depend on each other", [Text(words)])]
    elif view.result.model == "HiddenMarkov":
        parts.append(
            Text(["No sequence has two positions, so nothing was learned about how labels follow each other."])
        )
    examples = list_examples(view)
    if examples:
        differ = ", where the fused labels differ most from majority vote" if view.differs.any() else ""
        parts.append(Fold(f"Examples{differ}", [Widget("examples", {"examples": examples})]))
    return parts


def draw_transitions(view: View) -> Chart | None:
    """Which label follows which; None if that was not learned."""
    found, sequences = view.result, view.answers.sequences
    if found.model != "HiddenMarkov" or sequences is None or view.answers.n_items == len(sequences):
        return None
    transition, prior = np.asarray(view.model.transition_), found.prior
    size = np.bincount(found.labels.codes, minlength=len(view.classes)).astype(float)
    place, names = choose_classes(size, view.classes, MOST_CLASSES)
    table = fold_table(transition * np.maximum(prior, 1e-12)[:, None], place, place, len(names), len(names))
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    stays = float(np.sum(prior * np.diag(transition)))
    alt = f"A label stays the same at the next position in {stays:.0%} of the cases."
    return draw_heat("Which label follows which", alt, names, names, shares, "From", "To")


def describe_network(view: View) -> list[Part]:
    """What was found about the graph, in words and figures; nothing for other models."""
    check, is_field = view.result.graph_check, view.result.model == "MarkovField"
    if not is_field and check is None:
        return []
    figures, words = list[tuple[str, str]](), "The graph was not checked. fuse does that."
    if is_field:
        unit = view.model.usual_weight
        figures.append(
            (f"Coupling, in nats per agreeing neighbour{describe_usual(unit)}", f"{view.model.coupling_ * unit:.2f}")
        )
    if check is not None:
        words = str(check)
        if is_field and view.model.listeners == "unanswered":
            words += f" {describe_limit(bool(Source(view.answers).find_told().all()), 'The graph')}"
        figures += [
            ("Coupling on a shuffled graph", f"{check.shuffled_coupling:.2f}"),
            ("Neighbours of an item, on average", f"{check.degree:.1f}"),
            ("Labels that the graph changes", f"{check.changed:.1%}"),
            ("Labels that a shuffled graph changes", f"{check.shuffled_changed:.1%}"),
        ]
        if check.measured:
            agreement = f"{check.agreement:.3f}, standard error {check.agreement_error:.3f}"
            figures.append(("Agreement along edges beyond chance", agreement))
        if check.error_correlation_error < float("inf"):
            figures.append(("Correlation of a worker's errors along edges", f"{check.error_correlation:.2f}"))
    columns = [Column("name", ""), Column("value", "", "spelled")]
    table = Table("graph", "The graph in figures", columns, figures)
    return [Text([words]), *([Fold("In detail", [table])] if figures else [])]


def list_examples(view: View) -> list[dict[str, Any]]:
    """The sequences in which most fused labels differ from the vote, or that are least certain.

    Of each there is the track of each worker, cell by cell, or the text with the spans of each.
    """
    r, found = view.answers, view.result
    assert r.sequences is not None
    starts, length = r.sequences.offsets[:-1], np.diff(r.sequences.offsets)
    eligible = np.flatnonzero(length > 0)
    if not len(eligible):
        return []
    differs = np.add.reduceat(np.append(view.differs, False).astype(np.int64), starts)[eligible]
    doubt = np.add.reduceat(np.append(find_entropy(found.labels.posterior), 0.0), starts)[eligible] / length[eligible]
    fits = length[eligible] <= LONGEST
    alone = np.add.reduceat(np.append(view.n_answers, 0), starts)[eligible] < 2 * length[eligible]
    order = np.lexsort((-doubt, -differs, ~fits, alone))
    colours = colour_classes(view.classes)
    with_text = found.task.read(0) is not None and are_tags(found.names.classes)
    show = show_text if with_text else show_tracks
    return [show(view, int(eligible[n]), colours) for n in order[:N_EXAMPLES]]


def colour_classes(classes: list[str]) -> list[int | None]:
    """The colour of each class: tags of one type have the same, and O has none.

    >>> colour_classes(["B-PER", "I-PER", "O", "B-LOC"])
    [0, 0, None, 1]
    """
    colours: dict[str, int] = {}
    result: list[int | None] = []
    for name in classes:
        if name == "O":
            result.append(None)
            continue
        parts = split_tag(name, "OBIELSU")
        kind = name if parts is None else str(parts[1])
        result.append(colours.setdefault(kind, len(colours)) % N_COLOURS)
    return result


def list_said(view: View, start: int, stop: int) -> dict[int, NDArray[np.int64]]:
    """The label that each worker gave to each of consecutive items, -1 for none."""
    r = view.answers
    here = slice(int(r.offsets[start]), int(r.offsets[stop]))
    item = np.repeat(np.arange(stop - start), np.diff(r.offsets[start : stop + 1]))
    found = {}
    for worker in np.unique(r.worker[here]).tolist():
        mine = r.worker[here] == worker
        found[worker] = np.full(stop - start, -1)
        found[worker][item[mine]] = r.label[here][mine]
    return found


def _name_sequence(view: View, sequence: int) -> str:
    assert view.answers.sequences is not None
    return to_name(view.answers.sequences.ids[[sequence]].tolist()[0])


def show_tracks(view: View, sequence: int, colours: list[int | None]) -> dict[str, Any]:
    """A sequence with the labels of each worker, one position after the other: text, colour, and whether it differs."""
    r = view.answers
    start, end = view.bounds_of(sequence)
    stop = min(end, start + LONGEST)
    fused, said = view.result.labels.codes[start:stop].tolist(), list(list_said(view, start, stop).items())

    def cell(name: str, klass: int, differs: bool) -> tuple[str, int | None, bool]:
        return name if len(name) <= 8 else name[:7] + "…", colours[klass] if klass >= 0 else None, differs

    tracks = []
    for worker, codes in said[:MOST_TRACKS]:
        klass = [int(r.class_of_label[code]) if code >= 0 else -1 for code in codes.tolist()]
        cells = [
            None if code < 0 else cell(view.labels[code], k, k != label)
            for code, k, label in zip(codes.tolist(), klass, fused, strict=True)
        ]
        tracks.append((view.workers[worker], cells))
    shown = [view.show(item) for item in range(start, stop)]
    words = [to_name(each.text, 20) for each in shown if each is not None and not each.picture]
    return {
        "name": _name_sequence(view, sequence),
        "words": words if len(words) == stop - start else [],
        "tracks": tracks,
        "fused": [cell(view.classes[k], k, False) for k in fused],
        "more": end - stop,
        "more_workers": len(said) - len(tracks),
    }


def show_text(view: View, sequence: int, colours: list[int | None]) -> dict[str, Any]:
    """A text with the fused spans, and with those of each worker, in pieces: text, label and colour."""
    r, passage = view.answers, view.result.task.read(sequence)
    assert passage is not None
    whole, first, last = passage
    start, stop = view.bounds_of(sequence)

    def mark(
        codes: NDArray[np.int64], names: list[str], values: Values, kinds: list[int | None]
    ) -> list[tuple[str, str, int | None]]:
        known, labels = np.where(codes >= 0, codes, len(names)), np.append(values.astype(object), "O")
        runs, place = find_runs(known, labels, np.zeros(stop - start, np.int64)), 0
        pieces = list[tuple[str, str, int | None]]()
        for begin, end in zip(runs.first.tolist(), runs.stop.tolist(), strict=True):
            a, b, code = int(first[begin]), int(last[end - 1]), int(codes[begin])
            tag = split_tag(names[code], "OBIELSU")
            pieces += [(whole[place:a], "", None)]
            pieces += [(whole[a:b], str(tag[1]) if tag else names[code], kinds[code])]
            place = b
        room, kept = LONGEST_TEXT, list[tuple[str, str, int | None]]()
        for words, label, colour in [*pieces, (whole[place:], "", None)]:
            text = spell_surrogates(words)
            if room > 0 and text:
                kept.append((text if len(text) <= room else text[:room] + "…", label, colour))
            room -= len(text)
        return kept

    by_label = [colours[k] if k >= 0 else None for k in r.class_of_label.tolist()]
    said = list(list_said(view, start, stop).items())
    fused = view.result.labels.codes[start:stop]
    return {
        "name": _name_sequence(view, sequence),
        "text": mark(fused, view.classes, view.result.names.classes, colours),
        "readers": [(view.workers[m], mark(codes, view.labels, r.labels, by_label)) for m, codes in said[:MOST_TRACKS]],
        "more_workers": max(0, len(said) - MOST_TRACKS),
    }
