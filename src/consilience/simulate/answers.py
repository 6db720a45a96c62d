"""Who answers which item, and what they say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..answers.items import Sequences
from ..answers.responses import Responses
from ..kernels.types import Floats
from .checks import cumulate
from .workers import Crew

# Answers drawn at a time: what is needed meanwhile stays in the processor's cache.
CHUNK = 1 << 16
# From one in so many workers on, drawing again whoever was drawn before takes longer than drawing lots for everyone.
MANY = 8


def draw_answers(
    rng: np.random.Generator, crew: Crew, confusion: Floats, truth: NDArray[np.int64], keys: Values | Sequences
) -> Responses:
    """Draw all answers about items with the given truth and ids."""
    per_item = crew.n_looking if crew.answers_per_item is None else crew.answers_per_item
    worker = draw_distinct(rng, len(truth), per_item, crew.draw_rates(rng))
    label = draw_labels(rng, confusion, worker, truth)
    offsets = np.arange(len(truth) + 1) * per_item
    workers, labels = worker.astype(np.int32).ravel(), label.ravel()
    if crew.copycats:
        workers, labels, offsets = add_copies(workers, labels, offsets, crew)
    classes = np.arange(crew.n_classes)
    return Responses(offsets, workers, labels, None, np.arange(crew.n_workers), classes, classes, keys)


def mislead(rng: np.random.Generator, truth: NDArray[np.int64], n_classes: int, share: float) -> NDArray[np.int64]:
    """Return what seems to be true: on this share of the items another class, the same for all workers."""
    if share == 0 or n_classes == 1:
        return truth
    is_hard, other = rng.random(len(truth)) < share, rng.integers(1, n_classes, len(truth))
    return np.where(is_hard, (truth + other) % n_classes, truth)


def draw_distinct(rng: np.random.Generator, n_items: int, per_item: int, rates: Floats) -> NDArray[np.int64]:
    """Return (n_items, per_item) workers, drawn one after the other by their rates, none twice for one item."""
    if per_item == len(rates):
        return np.broadcast_to(np.arange(per_item), (n_items, per_item))
    if per_item * MANY > len(rates):
        # Many of them answer: those with the shortest of random waiting times, which is the same draw.
        workers = np.zeros((n_items, per_item), np.int64)
        often, chunk = rates.astype(np.float32), max(1, CHUNK // len(rates))
        for start in range(0, n_items, chunk):
            waits = rng.standard_exponential((min(chunk, n_items - start), len(rates)), np.float32) / often
            workers[start : start + chunk] = np.argpartition(waits, per_item, axis=1)[:, :per_item]
        return workers
    cumulated = cumulate(rates)
    workers = np.searchsorted(cumulated, rng.random((n_items, per_item)), side="right")
    rows, part = np.arange(n_items), workers
    while len(rows):
        # Whoever stands further left already is drawn again, in the items where that happens.
        order = np.argsort(part, axis=1, kind="stable")
        ordered = np.take_along_axis(part, order, axis=1)
        repeated = np.zeros(part.shape, bool)
        np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        left = repeated.any(axis=1)
        rows, part, repeated = rows[left], part[left], repeated[left]
        part[repeated] = np.searchsorted(cumulated, rng.random(int(repeated.sum())), side="right")
        workers[rows] = part
    return workers


def draw_labels(
    rng: np.random.Generator, confusion: Floats, worker: NDArray[np.int64], truth: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Draw each answer from the worker's row for the item's truth: the place of a random number in cumulated ones."""
    n_classes = confusion.shape[2]
    width = 1 << (n_classes - 1).bit_length()
    cumulated = np.full((*confusion.shape[:2], width), np.inf)
    cumulated[:, :, :n_classes] = cumulate(confusion)
    flat = cumulated.ravel()
    label = np.zeros(worker.shape, np.int32)
    chunk = max(1, CHUNK // worker.shape[1])
    for start in range(0, len(worker), chunk):
        here = slice(start, start + chunk)
        draw = rng.random(worker[here].shape)
        first = (worker[here] * n_classes + truth[here, None]) * width
        at, step = first.copy(), width // 2
        while step:  # halve the interval: `at` ends at the first entry that exceeds the draw
            at += step * (draw >= flat[at + (step - 1)])
            step //= 2
        label[here] = at - first
    return label


def add_copies(
    worker: NDArray[np.int32], label: NDArray[np.int32], offsets: NDArray[np.int64], crew: Crew
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Repeat each answer for all who copy it; return workers, labels and offsets of items."""
    n_times = 1 + np.bincount(crew.copies()[crew.n_looking :], minlength=crew.n_looking)[worker]
    ends = np.concatenate([[0], np.cumsum(n_times)])
    # Worker w is copied by w + n, w + 2 n, ... where n workers have answers of their own.
    turn = np.arange(ends[-1]) - np.repeat(ends[:-1], n_times)
    workers = np.repeat(worker, n_times) + turn * crew.n_looking
    return workers.astype(np.int32), np.repeat(label, n_times), ends[offsets]
