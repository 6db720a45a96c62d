r"""Fused tags as spans, each with the probability that it is right.

The confidence of a span is the probability that exactly this span with this type is there. For IOB2 tags it is

    p = P(y_a = B-X, y_{a+1} = ... = y_b = I-X, y_{b+1} is not I-X)

In a chain p comes from the posterior of the whole sequence, by the evidence and the chain that calibrated posteriors
come from: each token is left out of what was learned about its workers, and a forbidden step is only improbable. It is
reported as

    p^t / (p^t + (1 - p)^t)

with the power t of the model. For models without a chain tokens are independent, and p is the product of calibrated
posteriors of the tags.

Tags are read as `consilience.metrics.span_score` reads them, in any scheme. A span that begins with I-X, in a scheme
that has no B-X there, must not go on with the span before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, Values, objects, to_column, to_values
from ..answers.contents import Passages
from ..answers.tagging import split_tag
from ..answers.vocabulary import encode_in_order_of_appearance
from ..errors import InputError, NotFittedError, listing
from ..inference.em import Fit, Problem
from ..inference.label_runs import follow_labels
from ..kernels.types import Floats
from ..metrics.spans import find_continuations, find_spans, split_tags
from ..specs import Fault
from ..tasks.spans import Spans
from ..tasks.texts import FUSED, Marks, Origin, Tokens, sort_marks
from .fusion import Fusion, Labels

_LETTERS = "OBIELSU"


class Runs(NamedTuple):
    """Runs of tags that are spans, in order."""

    sequence: NDArray[np.int64]  # number of the sequence
    first: NDArray[np.int64]  # first token, as an index into all items
    stop: NDArray[np.int64]  # token after the last one
    offset: NDArray[np.int64]  # first token of the sequence


def are_tags(classes: Values) -> bool:
    """Tell whether all classes are tags of spans, of any scheme."""
    return all(split_tag(name, _LETTERS) is not None for name in classes.tolist())


def find_runs(codes: NDArray[np.int64], classes: Values, sequence: NDArray[np.int64]) -> Runs:
    """Return the spans among labels, given as indices into the classes; `sequence` is the number of that of each."""
    prefix, kind = split_tags(classes.tolist())
    first = np.append(True, sequence[1:] != sequence[:-1])[: len(codes)]
    spans = find_spans(prefix[codes], kind[codes], first)
    offset = np.flatnonzero(first)
    return Runs(sequence[spans.start], spans.start, spans.stop, offset[sequence[spans.start]])


def judge_runs(parts: Floats, runs: Runs) -> Floats:
    """Return the probability of each span: enter_a step_{a+1} ... step_b stop_b."""
    if not len(runs.first):
        return np.empty(0)
    steps = parts[:, 1].copy()
    steps[runs.first] = parts[runs.first, 0]
    ends = np.stack([runs.first, runs.stop], axis=1).ravel()
    product = np.multiply.reduceat(np.append(steps, 1.0), ends)[::2]
    return np.asarray(np.clip(product * parts[runs.stop - 1, 2], 0.0, 1.0))


def follow_alone(posterior: Floats, codes: NDArray[np.int64], classes: Values, sequence: NDArray[np.int64]) -> Floats:
    """Return what `consilience.kernels.chain.follow_paths` does, for labels that are independent of each other."""
    goes_on = find_continuations(*split_tags(classes.tolist())).astype(np.float64)
    rows = np.arange(len(codes))
    linked = np.flatnonzero(sequence[1:] == sequence[:-1])
    parts = np.ones((len(codes), 3))
    parts[:, 1] = posterior[rows, codes]
    parts[linked + 1, 0] -= np.einsum("ij,ji->i", posterior[linked], goes_on[:, codes[linked + 1]])
    parts[:, 0] *= parts[:, 1]
    parts[linked, 2] -= np.einsum("ij,ij->i", posterior[linked + 1], goes_on[codes[linked]])
    return parts


def judge_fit(
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    codes: NDArray[np.int64],
    classes: Values,
    sequence: NDArray[np.int64],
    left_out: bool,
    power: float,
) -> Floats:
    """Return the confidence of each span among the labels of a chain."""
    goes_on = find_continuations(*split_tags(classes.tolist())).astype(np.float64)
    statistics = fit.statistics if left_out else None
    parts = follow_labels(problem, fit.parameters, statistics, posterior, codes, goes_on)
    return raise_odds(judge_runs(parts, find_runs(codes, classes, sequence)), power)


def raise_odds(probability: Floats, power: float) -> Floats:
    """Return p^t / (p^t + (1 - p)^t).

    >>> raise_odds(np.array([0.8, 1.0, 0.0]), 0.5).round(3).tolist()
    [0.667, 1.0, 0.0]
    """
    if power == 1.0:
        return probability
    yes, no = probability**power, (1 - probability) ** power
    return np.asarray(yes / (yes + no))


def number_sequences(labels: Labels) -> tuple[NDArray[np.int64], Values]:
    """Return the number of the sequence of each item, and the ids of the sequences."""
    if "sequence" not in labels.keys:
        raise InputError("Only labels of sequences are spans, and these items are not in any.")
    codes, ids = encode_in_order_of_appearance(labels.keys["sequence"])
    return codes.astype(np.int64), ids


def find_fused_spans(found: Fusion) -> tuple[Runs, Column, list[str]]:
    """Return the fused spans, their confidence, and the type of each."""
    labels = found.labels
    sequence, _ = number_sequences(labels)
    if not are_tags(labels.classes):
        raise InputError(
            f"Only tags such as B-PER, I-PER and O are spans. These labels are {listing(labels.classes.tolist())}."
        )
    runs = find_runs(labels.codes, labels.classes, sequence)
    kinds = [(split_tag(name, _LETTERS) or ("", ""))[1] for name in labels.classes.tolist()]
    types = [kinds[code] for code in labels.codes[runs.first].tolist()]
    confidence = found.span_confidence
    if confidence is None:  # tokens are independent of each other
        confidence = judge_runs(follow_alone(labels.posterior, labels.codes, labels.classes, sequence), runs)
    return runs, to_column(confidence), types


def tabulate_spans(found: Fusion) -> dict[str, Column]:
    """Return the columns of a table of the fused spans; see `Model.to_spans`."""
    runs, confidence, types = find_fused_spans(found)
    _, ids = number_sequences(found.labels)
    start, end = _find_offsets(found.passages, runs)
    texts = None if found.passages is None else found.passages.texts
    if texts is None:
        text: Column = pa.nulls(len(types), pa.string())
    else:
        owner = found.passages.fused[runs.sequence]  # type: ignore[union-attr]
        places = zip(owner.tolist(), start.tolist(), end.tolist(), strict=True)
        text = to_column([texts[document][a:b] for document, a, b in places] or pa.nulls(0, pa.string()))
    return {
        "document": to_column(ids[runs.sequence]),
        "start": to_column(start),
        "end": to_column(end),
        "label": to_column(types or pa.nulls(0, pa.string())),
        "text": text,
        "confidence": confidence,
    }


def collect_spans(found: Fusion) -> Spans:
    """Return the fused spans with their texts; see `Model.to_span_set`."""
    passages = found.passages
    if passages is None or passages.texts is None:
        lack = "was fitted to tags" if passages is None else "was saved without texts"
        raise NotFittedError(
            f"This {found.model} {lack}, and has no texts. to_spans() gives a table without them.",
            "Fit it to a Spans." if passages is None else "Save it with texts=True.",
        )
    runs, confidence, types = find_fused_spans(found)
    start, end = _find_offsets(passages, runs)
    labels = sorted(set(types))
    numbers = {name: number for number, name in enumerate(labels)}
    code = np.array([numbers[name] for name in types], np.int64)
    fused = passages.fused
    zeros = np.zeros(len(types), np.int64)
    known = np.asarray(to_values(confidence), np.float64)
    marks = Marks(fused[runs.sequence], zeros, start, end, code, known)
    return Spans(
        passages.documents,
        passages.texts,
        objects([FUSED]),
        objects(labels),
        sort_marks(marks),
        np.stack([fused, np.zeros(len(fused), np.int64)], axis=1),
        Tokens(passages.offsets, passages.start, passages.end),
        origin=None if passages.origin is None else Origin(*passages.origin),
        backend=found.backend,
    )


def _find_offsets(passages: Passages | None, runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return start and end of spans: characters of a text, or numbers of tokens where there is none."""
    first, last = runs.first - runs.offset, runs.stop - runs.offset - 1
    if passages is None:
        return first, last + 1
    base = passages.first_tokens()[runs.sequence]
    return passages.start[base + first], passages.end[base + last]


def read_words(found: Fusion, items: NDArray[np.int64]) -> list[str] | None:
    """Return the words of some items of a fit to texts; None if it has none."""
    passages = found.passages
    if passages is None or passages.texts is None:
        return None
    sequence, ids = number_sequences(found.labels)
    return passages.read_words(items.tolist(), np.searchsorted(sequence, np.arange(len(ids) + 1)))


def check_confidence(confidence: Floats, codes: NDArray[np.int64], classes: Values, column: Column) -> None:
    """Raise a `Fault` unless there is a confidence for each span."""
    sequence = encode_in_order_of_appearance(column)[0].astype(np.int64)
    if not are_tags(classes) or len(find_runs(codes, classes, sequence).first) != len(confidence):
        raise Fault("there is not one confidence for each span")
