"""Who gives the answers: people, labelling functions or models. What is said of them goes by that."""

from __future__ import annotations

from ..errors import parameter_error
from ..options import is_among

# What one of them is called, and what to do about one that answers badly.
NOUNS = {"people": "worker", "functions": "function", "models": "model"}
ADVICE = {
    "people": "Look at their answers, and ask how they understood the task.",
    "functions": "Look at what they label, and correct them or leave them out.",
    "models": "Look at their answers, and at what they were told to do.",
}


def check_kind(kind: str) -> str:
    """The kind of source that is given, if there is such a one."""
    if is_among(kind, tuple(NOUNS)):
        return kind
    raise parameter_error("source_kind", "fuse", f"one of {', '.join(map(repr, NOUNS))}, or None", kind)
