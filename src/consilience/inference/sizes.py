"""What a fit will take, before it is begun: memory, of which a few thousand labels need too much, and time for moments.

A sweep of moment matching is linear in the answers, but with K classes every set of workers has K (K + 1) / 2 products
and every worker's problem takes L K^2 steps an iteration: with hundreds of classes that is hours, for matrices that a
few answers per entry cannot determine anyway.

Each check is about the largest thing of its kind, and asks for less than was measured: what might fit is tried.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..answers.graph import Graph
from ..answers.responses import Responses
from ..errors import Python, Sentence, plural
from ..memory import NUMBER, available_memory, require_memory
from .moments import lay_out
from .workers.base import WorkerModel

# How many tables of all matrices there are at a time: in a fit (measured: 11 to 12), in one that is repeated with part
# of the answers (19 to 23), in a start from votes without further iterations (6 to 7), and where known matrices are
# applied to other answers (4).
FIT_TABLES, HIDING_TABLES, START_TABLES, PREDICTION_TABLES = 10, 16, 6, 2
# The same of all posteriors.
POSTERIOR_TABLES = 2

NAME_CLASSES = Sentence("Name the few classes that can be true with {classes}.")
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


def check_matrices(owner: str, workers: WorkerModel, n_items: int, n_tables: int = FIT_TABLES) -> None:
    """Raise an error if the matrices of all workers cannot be held in memory."""
    needed = n_tables * workers.n_bytes
    # As many labels as classes in the end, or both smaller by the same factor.
    n_fitting = math.isqrt(int(workers.n_labels**2 * min(available_memory() / max(needed, 1), 1)))
    votes_fit = NUMBER * POSTERIOR_TABLES * n_items * workers.n_classes <= available_memory()
    vote = Sentence("Or use {model}, which needs no matrices.", model=Python("MajorityVote", "majority"))
    require_memory(
        needed,
        f"{owner} needs matrices for {workers.describe_size()}",
        f"Merge rare or misspelt labels: up to about {n_fitting:,} would fit.",
        NAME_CLASSES,
        *([vote] if votes_fit and owner != "MajorityVote" else []),
        keyword="classes",
    )


def check_prediction(owner: str, workers: WorkerModel) -> None:
    """Raise an error if the matrices for other answers, also of workers who are new, cannot be held in memory."""
    require_memory(
        PREDICTION_TABLES * workers.n_bytes,
        f"{owner} needs matrices for {workers.describe_size()}",
        "Predict in several parts, each of fewer workers.",
    )


def check_moments(owner: str, r: Responses, effort: Effort, instead: Sentence) -> None:
    """Raise an error if the products that moments are matched by cannot be held in memory."""
    require_memory(
        effort.n_bytes,
        f"{owner} needs the moments of {plural(r.n_items, 'item')} for all pairs of {r.n_classes:,} classes",
        "Merge rare or misspelt labels.",
        NAME_CLASSES,
        instead,
        keyword="classes",
    )


def check_posteriors(owner: str, r: Responses) -> None:
    """Raise an error if the posteriors of all items cannot be held in memory."""
    require_memory(
        NUMBER * POSTERIOR_TABLES * r.n_items * r.n_classes,
        f"{owner} needs probabilities for {plural(r.n_items, 'item')} x {r.n_classes:,} classes",
        "Merge rare or misspelt labels.",
        NAME_CLASSES,
        "Or fuse the items in several parts.",
        keyword="classes",
    )


def check_transitions(owner: str, r: Responses) -> None:
    """Raise an error if the transition matrix cannot be held in memory."""
    require_memory(
        NUMBER * 2 * r.n_classes**2,
        f"{owner} needs transitions for {r.n_classes:,} x {r.n_classes:,} classes",
        "Merge rare or misspelt labels.",
        NAME_CLASSES,
        keyword="classes",
    )


def check_messages(owner: str, r: Responses, graph: Graph) -> None:
    """Raise an error if the messages of belief propagation cannot be held in memory."""
    require_memory(
        NUMBER * len(graph.neighbours) * r.n_classes,
        f"{owner} needs messages along {2 * graph.n_edges:,} directed edges x {r.n_classes:,} classes",
        Sentence("Use {inference}.", inference="mean_field"),
        NAME_CLASSES,
        keyword="inference",
    )
