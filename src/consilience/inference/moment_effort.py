"""What moment matching will take, in time and memory, before it is begun.

A sweep is linear in the answers, but with K classes every set of workers has K (K + 1) / 2 products and every worker's
problem takes L K^2 steps an iteration: with hundreds of classes that is hours, for matrices that a few answers per
entry cannot determine anyway.
"""

from __future__ import annotations

from typing import NamedTuple

from ..answers.responses import Responses
from ..memory import NUMBER, available_memory
from .moments import lay_out

# Most fits settle within so many sweeps.
USUAL_SWEEPS = 50
# Seconds, as measured, of a product of one member of a set of workers; and of an entry of a worker's problem with one
# class, in all inner iterations.
PER_PRODUCT, PER_STEP = 3e-9, 1.1e-8
# Seconds of an entry of the transitions' problem with one class, squared twice: its largest eigenvalue.
PER_TRANSITION = 3e-10
# Seconds from which a fit is said to be slow.
SLOW = 120.0


class Effort(NamedTuple):
    """How much a fit will take, roughly, and how much memory at least."""

    seconds: float
    n_bytes: int

    def describe_time(self) -> str:
        """Return the time in words.

        >>> Effort(150, 0).describe_time(), Effort(9000, 0).describe_time()
        ('2 minutes', '2.5 hours')
        """
        minutes = self.seconds / 60
        return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:,.1f} hours"


def estimate_moments(r: Responses, in_sequences: bool = False) -> Effort:
    """Return what it takes to match the moments of answers, with those of transitions if they are wanted."""
    effort = _estimate(r, r.n_items, r.n_responses, in_sequences)
    if effort.seconds <= SLOW and effort.n_bytes <= available_memory():
        return effort
    # Many items may have been answered by the same workers: it may be less.
    layout = lay_out(r)
    return _estimate(r, len(layout.set_size), len(layout.members), in_sequences)


def _estimate(r: Responses, n_sets: int, n_members: int, in_sequences: bool) -> Effort:
    n_pairs = r.n_classes * (r.n_classes + 1) // 2
    seconds = USUAL_SWEEPS * (PER_PRODUCT * n_members * n_pairs + PER_STEP * r.n_workers * r.n_labels * r.n_classes**2)
    n_numbers = (r.n_workers + 2 * n_sets) * n_pairs
    if in_sequences:
        seconds += PER_TRANSITION * r.n_classes**6
        n_numbers += 2 * r.n_classes**4
    return Effort(seconds, NUMBER * n_numbers)


def is_hopeless(r: Responses, effort: Effort) -> bool:
    """Tell whether moments take long for little: there are fewer answers than entries of the matrices."""
    return effort.seconds > SLOW and r.n_responses < r.n_workers * r.n_labels * r.n_classes
