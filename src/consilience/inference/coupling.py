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


def explain_choice(chosen: float, scores: list[CouplingScore], words: str, note: str = "", unit: float = 1.0) -> str:
    """Say in words which coupling was chosen, and why; all couplings times a unit, which a note may explain."""
    best = max(scores, key=lambda entry: entry.score)
    tried = ", ".join(f"{entry.coupling * unit:.3g}: {entry.score:.4f}" for entry in scores)
    return (
        f"Coupling {chosen * unit:.3g}{note}: {words}. Hidden answers were predicted best at "
        f"{best.coupling * unit:.3g} (mean log probability by coupling: {tried}); "
        "the smallest coupling within one standard error was taken."
    )
