"""Sequences and networks: how labels follow each other, and examples with every worker's track."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..answers.tagging import are_tags, find_runs, split_tag
from ..documents.charts import Chart, Plain, Table, draw_heat
from ..inference.sources import Source
from ..models.hidden_markov import HiddenMarkov
from ..models.markov_field import MarkovField
from ..results.comparison import describe_limit, describe_usual
from .subject import Subject, spell, to_name
from .workers import MOST_CLASSES, choose_classes, fold_table

# How many examples there are, how long, and of how many workers.
N_EXAMPLES, LONGEST, MOST_TRACKS = 5, 60, 12
LONGEST_TEXT = 1500
# Colours of labels in the page.
N_COLOURS = 8


class Cell(NamedTuple):
    """A label at one position."""

    text: str
    colour: int | None
    differs: bool = False


class Track(NamedTuple):
    """What one worker said along a sequence."""

    name: str
    cells: list[Cell | None]


class Piece(NamedTuple):
    """A part of a text, and the span that it is."""

    text: str
    label: str = ""
    colour: int | None = None


class Example(NamedTuple):
    """A sequence: the track of each worker and the fused one, or the text with the spans of each."""

    name: str
    words: list[str]
    tracks: list[Track]
    fused: Track | None
    more: int  # positions that are not shown
    more_workers: int
    readers: list[tuple[str, list[Piece]]]
    text: list[Piece]


class Sequences(NamedTuple):
    """How labels follow each other, and examples."""

    words: str
    chart: Chart | None
    examples: list[Example]
    differ: bool  # whether there are labels that differ from the vote


def describe_sequences(subject: Subject) -> Sequences | None:
    """Return what was learned about how labels follow each other, with examples; None if there are no sequences."""
    if subject.responses.sequences is None or subject.task.places[0] != "sequence":
        return None
    chart, words = draw_transitions(subject), ""
    if chart is not None and isinstance(subject.model, HiddenMarkov):
        words = subject.model.explain_coupling()
    elif isinstance(subject.model, HiddenMarkov):
        words = "No sequence has two positions, so nothing was learned about how labels follow each other."
    return Sequences(words, chart, list_examples(subject), bool(subject.differs.any()))


def draw_transitions(subject: Subject) -> Chart | None:
    """Return which label follows which; None if that was not learned."""
    model, sequences = subject.model, subject.responses.sequences
    if not isinstance(model, HiddenMarkov) or sequences is None or subject.n_items == len(sequences):
        return None
    transition, prior = np.asarray(model.transition_), subject.fusion.prior
    size = np.bincount(subject.codes, minlength=len(subject.classes)).astype(float)
    place, names = choose_classes(size, subject.classes, MOST_CLASSES)
    table = fold_table(transition * np.maximum(prior, 1e-12)[:, None], place, place, len(names), len(names))
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    stays = float(np.sum(prior * np.diag(transition)))
    alt = f"A label stays the same at the next position in {stays:.0%} of the cases."
    return draw_heat("Which label follows which", alt, names, names, shares, "From", "To")


def describe_network(subject: Subject) -> Plain | None:
    """Return what was found about the graph, in words and figures; None for other models."""
    model, check = subject.model, subject.fusion.graph_check
    if not isinstance(model, MarkovField) and check is None:
        return None
    figures, words = list[tuple[str, str]](), "The graph was not checked. fuse does that."
    if isinstance(model, MarkovField):
        name = f"Coupling, in nats per agreeing neighbour{describe_usual(model.usual_weight)}"
        figures.append((name, f"{model.coupling_ * model.usual_weight:.2f}"))
    if check is not None:
        words = str(check)
        if isinstance(model, MarkovField) and model.listeners == "unanswered":
            words += f" {describe_limit(bool(Source(subject.responses).find_told().all()), 'The graph')}"
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
    return Plain([words], tables=[Table("The graph in figures", figures)] if figures else [])


def list_examples(subject: Subject) -> list[Example]:
    """Return the sequences in which most fused labels differ from the vote, or that are least certain."""
    r = subject.responses
    if r.sequences is None:
        return []
    colours = colour_classes(subject.classes)
    starts = r.sequences.offsets[:-1]
    length = np.diff(r.sequences.offsets)
    eligible = np.flatnonzero(length > 0)
    if not len(eligible):
        return []
    differs = np.add.reduceat(np.append(subject.differs, False).astype(np.int64), starts)[eligible]
    doubt = np.add.reduceat(np.append(subject.entropy, 0.0), starts)[eligible] / length[eligible]
    fits = length[eligible] <= LONGEST
    alone = np.add.reduceat(np.append(subject.n_answers, 0), starts)[eligible] < 2 * length[eligible]
    order = np.lexsort((-doubt, -differs, ~fits, alone))
    with_text = subject.task.read(0) is not None and are_tags(subject.fusion.names.classes)
    make = show_text if with_text else show_tracks
    return [make(subject, int(eligible[n]), colours) for n in order[:N_EXAMPLES]]


def colour_classes(classes: list[str]) -> list[int | None]:
    """Return the colour of each class: tags of one type have the same, and O has none.

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


def name_sequence(subject: Subject, sequence: int) -> str:
    """Return what a sequence is called, short enough to be shown."""
    assert subject.responses.sequences is not None
    return to_name(subject.responses.sequences.ids[[sequence]].tolist()[0])


def codes_of_workers(subject: Subject, start: int, stop: int) -> dict[int, NDArray[np.int64]]:
    """Return the label that each worker gave to each of consecutive items, -1 for none."""
    r = subject.responses
    here = slice(int(r.offsets[start]), int(r.offsets[stop]))
    item = np.repeat(np.arange(stop - start), np.diff(r.offsets[start : stop + 1]))
    found = {}
    for worker in np.unique(r.worker[here]).tolist():
        mine = r.worker[here] == worker
        codes = np.full(stop - start, -1)
        codes[item[mine]] = r.label[here][mine]
        found[worker] = codes
    return found


def show_tracks(subject: Subject, sequence: int, colours: list[int | None]) -> Example:
    """Return a sequence with the labels of each worker, one position after the other."""
    r = subject.responses
    start, end = subject.bounds_of(sequence)
    stop = min(end, start + LONGEST)
    fused = subject.codes[start:stop].tolist()
    tracks = []
    said = list(codes_of_workers(subject, start, stop).items())
    for worker, codes in said[:MOST_TRACKS]:
        cells: list[Cell | None] = []
        for code, label in zip(codes.tolist(), fused, strict=True):
            klass = int(r.class_of_label[code]) if code >= 0 else -1
            colour = colours[klass] if klass >= 0 else None
            cells.append(None if code < 0 else Cell(shorten_tag(subject.labels[code]), colour, klass != label))
        tracks.append(Track(subject.workers[worker], cells))
    row = Track("Fused", [Cell(shorten_tag(subject.classes[k]), colours[k]) for k in fused])
    shown = [subject.show(item) for item in range(start, stop)]
    words = [to_name(each.text, 20) for each in shown if each is not None and not each.picture]
    words = words if len(words) == stop - start else []
    return Example(name_sequence(subject, sequence), words, tracks, row, end - stop, len(said) - len(tracks), [], [])


def shorten_tag(name: str) -> str:
    """Return a label short enough for a cell."""
    return name if len(name) <= 8 else name[:7] + "…"


def show_text(subject: Subject, sequence: int, colours: list[int | None]) -> Example:
    """Return a text with the fused spans, and with those of each worker."""
    r = subject.responses
    passage = subject.task.read(sequence)
    assert passage is not None
    text, *where = passage
    start, stop = subject.bounds_of(sequence)

    def mark(codes: NDArray[np.int64], names: list[str], values: Values, kinds: list[int | None]) -> list[Piece]:
        known = np.where(codes >= 0, codes, len(names))
        labels = np.append(values.astype(object), "O")
        runs = find_runs(known, labels, np.zeros(stop - start, np.int64))
        pieces, place = [], 0
        for begin, end in zip(runs.first.tolist(), runs.stop.tolist(), strict=True):
            a, b = int(where[0][begin]), int(where[1][end - 1])
            code = int(codes[begin])
            kind = split_tag(names[code], "OBIELSU")
            pieces += [Piece(text[place:a]), Piece(text[a:b], str(kind[1]) if kind else names[code], kinds[code])]
            place = b
        pieces.append(Piece(text[place:]))
        return cut(pieces)

    by_label = [colours[k] if k >= 0 else None for k in r.class_of_label.tolist()]
    said = list(codes_of_workers(subject, start, stop).items())
    readers = [
        (subject.workers[worker], mark(codes, subject.labels, r.labels, by_label))
        for worker, codes in said[:MOST_TRACKS]
    ]
    fused = mark(subject.codes[start:stop], subject.classes, subject.fusion.names.classes, colours)
    return Example(name_sequence(subject, sequence), [], [], None, 0, len(said) - len(readers), readers, fused)


def cut(pieces: list[Piece]) -> list[Piece]:
    """Return the beginning of a text in pieces."""
    room, kept = LONGEST_TEXT, []
    for piece in pieces:
        text = spell(piece.text)
        kept.append(piece._replace(text=text if len(text) <= room else text[:room] + "…"))
        room -= len(text)
        if room <= 0:
            break
    return [piece for piece in kept if piece.text]
