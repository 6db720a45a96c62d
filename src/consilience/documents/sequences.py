"""The section on sequences: which label follows which, and examples with the track of each worker."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values, spell_surrogates
from ..answers.tagging import are_tags, find_runs, split_tag
from ..kernels import NEARLY_ZERO
from ..planning.items import find_entropy
from .charts import Chart, draw_heat
from .document import Part, Section, Text, Widget, to_name
from .view import View
from .workers import MOST_CLASSES_DRAWN, merge_rare

# How many examples there are, how long, and of how many workers; characters of a text.
N_EXAMPLES, LONGEST_EXAMPLE, MOST_TRACKS, LONGEST_PASSAGE = 5, 60, 12, 1500
# Colours of labels in the page.
N_COLOURS = 8


def describe_sequences(view: View) -> list[Part]:
    """What was learned about how labels follow each other, with examples."""
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
