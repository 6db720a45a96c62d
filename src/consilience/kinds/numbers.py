"""Numbers on a scale: answers of which each is a number, such as marks and positions of sliders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import to_number, to_numbers
from ..errors import InputError, Sentence, listing, shorten
from ..kernels import freeze
from .base import TableKind

# Larger numbers have no squares.
LARGEST = 1e100


class NumbersKind(TableKind):
    """Items of a table, whose answers are numbers."""

    name = "numbers"
    is_saved = False
    title = "numbers on a scale"
    model = "measurement"
    results = "values"
    judged = "value"

    @classmethod
    def to_answers(cls, brought: Answers) -> tuple[NumbersKind, Answers]:
        """The answers themselves, if they are numbers."""
        return cls(brought.origin, brought.columns.get("label")), as_numbers(brought)

    @classmethod
    def find_strange(cls, answers: Answers, known: list[object]) -> list[object]:  # noqa: ARG003
        """The known values that cannot be so."""
        return [each for each in known if to_number(each) is None]


def as_numbers(answers: Answers) -> Answers:
    """The same answers with labels that are floats, from low to high."""
    name = shorten(answers.columns.get("label", "label"))
    if answers.soft is not None or answers.silence_counts:
        raise InputError("Probabilities, and silence, are no numbers.", Sentence("Leave out {kind}."), keyword="kind")
    numbers = to_numbers(answers.labels)
    if numbers is None:
        odd = [each for each in answers.labels.tolist() if to_number(each) is None]
        raise InputError(
            f"The answers in {name} must be finite numbers. Got {listing(odd)}.",
            Sentence("Name the column of numbers with {label}."),
            "Or leave those rows out.",
            keyword="label",
        )
    if np.abs(numbers).max(initial=0.0) > LARGEST:
        largest = numbers[np.argmax(np.abs(numbers))]
        raise InputError(f"The answers in {name} are too large: {largest:.3g}.", "Divide them by a constant.")
    values, place = np.unique(numbers, return_inverse=True)
    return replace(answers, label=freeze(place[answers.label]), labels=values, classes=values)
