"""Who gives the answers: people, labelling functions or models. What is said of them goes by that."""

from __future__ import annotations

from ..answers.answers import Answers
from ..arguments import is_among
from ..errors import parameter_error
from ..kinds.base import AnyKind, TableKind

# What one of them is called, and what to do about one that answers badly.
NOUNS = {"people": "worker", "functions": "function", "models": "model"}
ADVICE = {
    "people": "Look at their answers, and ask how they understood the task.",
    "functions": "Look at what they label, and correct them or leave them out.",
    "models": "Look at their answers, and at what they were told to do.",
}


def recognise_kind(r: Answers, task: AnyKind) -> str:
    """Return the kind of source that gave answers; "people" unless something tells otherwise.

    Functions are silent, as an answer or as one label each. Soft votes come from models.
    """
    if not isinstance(task, TableKind):
        return "people"
    if r.silence_counts or (r.sequences is None and r.silence_doubt is not None):
        return "functions"
    return "models" if r.soft is not None else "people"


def check_kind(kind: str) -> str:
    """Return the kind of source that is given, if there is such a one."""
    if is_among(kind, tuple(NOUNS)):
        return kind
    raise parameter_error("source_kind", "fuse", f"one of {', '.join(map(repr, NOUNS))}, or None", kind)
