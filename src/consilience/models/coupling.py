"""How strongly neighbouring labels are coupled, judged by what is hidden."""

from __future__ import annotations

from typing import NamedTuple

from ..specs import is_finite


class CouplingScore(NamedTuple):
    """How well hidden answers were predicted with one coupling."""

    coupling: float
    score: float  # mean log probability
    error: float  # its standard error


def are_scores(value: object) -> bool:
    """Tell whether a value from JSON is a list of `CouplingScore`, of which an error may be infinite."""
    return isinstance(value, list) and all(
        isinstance(entry, list) and len(entry) == 3 and is_finite(entry[0]) and all(type(x) is float for x in entry[1:])
        for entry in value
    )


def explain_choice(chosen: float, scores: list[CouplingScore], words: str) -> str:
    """Say in words which coupling was chosen, and why."""
    best = max(scores, key=lambda entry: entry.score)
    tried = ", ".join(f"{entry.coupling:.3g}: {entry.score:.4f}" for entry in scores)
    return (
        f"Coupling {chosen:.3g}: {words}. Hidden answers were predicted best at {best.coupling:.3g} (mean log "
        f"probability by coupling: {tried}); the smallest coupling within one standard error was taken."
    )
