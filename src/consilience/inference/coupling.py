"""How strongly neighbouring labels are coupled, judged by what is hidden."""

from __future__ import annotations

from typing import NamedTuple

from ..specs import Figure


class CouplingScore(NamedTuple):
    """How well hidden answers were predicted with one coupling."""

    coupling: float
    score: Figure  # mean log probability
    error: Figure  # its standard error


def explain_choice(chosen: float, scores: list[CouplingScore], words: str, note: str = "", unit: float = 1.0) -> str:
    """Say in words which coupling was chosen, and why; all couplings times a unit, which a note may explain."""
    best = max(scores, key=lambda entry: entry.score)
    tried = ", ".join(f"{entry.coupling * unit:.3g}: {entry.score:.4f}" for entry in scores)
    return (
        f"Coupling {chosen * unit:.3g}{note}: {words}. Hidden answers were predicted best at "
        f"{best.coupling * unit:.3g} (mean log probability by coupling: {tried}); "
        "the smallest coupling within one standard error was taken."
    )
