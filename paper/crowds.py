"""Real crowds as experiments need them, with the truth beside the answers.

This is the only module here that knows the inside of `Answers`. Everything else uses the public names of the library.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_crowds import Dataset, load
from consilience import Answers

Codes = NDArray[np.int64]


class Crowd(NamedTuple):
    """A dataset with answers.

    Attributes
    ----------
    stored : Dataset
        The dataset itself.
    responses : Answers
        Its answers.
    truth : ndarray of str
        The known label of each item, in the order of `responses.items`; empty where there is none.
    """

    stored: Dataset
    responses: Answers
    truth: Any


def load_crowd(name: str) -> Crowd:
    """Read a dataset that has answers."""
    stored = load(name)
    assert stored.responses is not None, f"{name} has no answers"
    truth = np.array([stored.gold.get(key, "") for key in stored.responses.items.tolist()])
    return Crowd(stored, stored.responses, truth)


class Triples(NamedTuple):
    """Indices of the item, the worker and the class of each answer."""

    item: Codes
    worker: Codes
    said: Codes


def list_answers(r: Answers) -> Triples:
    """Return all answers as arrays of indices.

    >>> [part.tolist() for part in list_answers(Answers.from_matrix([[0, -1], [1, 0]]))]
    [[0, 1, 1], [0, 0, 1], [0, 1, 0]]
    """
    return Triples(r.item_of_answer(), r.worker.astype(np.int64), r.class_of_label[r.label])


def measure_sequences(r: Answers, chosen: NDArray[np.bool_]) -> Codes:
    """Return how many chosen items each sequence has, for the sequences that have any.

    >>> r = Answers.from_matrix([[0], [1], [1], [0]], lengths=[2, 1, 1])
    >>> measure_sequences(r, np.array([True, True, False, True]))
    array([2, 1])
    """
    assert r.sequences is not None
    lengths = np.bincount(r.sequences.of_items()[chosen])
    return lengths[lengths > 0]


def keep_busiest(r: Answers, n_workers: int) -> Answers:
    """Return the answers of the workers who gave most; the others stay, without answers.

    >>> keep_busiest(Answers.from_matrix([[0, -1], [1, 0]]), 1)
    Answers(2 answers: 2 items x 2 workers, 2 classes: 0, 1)
    """
    busiest = np.argsort(-np.bincount(r.worker, minlength=r.n_workers), kind="stable")[:n_workers]
    return r.keep(np.isin(r.worker, busiest))


def reorder_classes(r: Answers, classes: list[Any]) -> Answers:
    """Return the same answers with the classes in another order."""
    return r.with_classes(np.array(classes, dtype=object))


def merge_labels(r: Answers, name_of: dict[Any, Any]) -> Answers:
    """Return the same answers under other names; several labels may get the same name.

    >>> merge_labels(Answers.from_matrix([["B", "I"], ["O", "B"]]), {"B": "I", "I": "I", "O": "O"})
    Answers(4 answers: 2 items x 2 workers, 2 classes: 'I', 'O')
    """
    names = sorted(set(name_of.values()))
    code = np.array([names.index(name_of[label]) for label in r.labels.tolist()])
    values = np.array(names, dtype=object)
    return replace(r, label=code[r.label].astype(r.label.dtype), labels=values, classes=values)
