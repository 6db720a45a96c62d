"""What a fit takes in memory, checked before it is asked for: a few thousand different labels are enough for too much.

Each check is about the largest thing of its kind, and asks for less than was measured: what might fit is tried.
"""

from __future__ import annotations

import math

from ..answers.graph import Graph
from ..answers.responses import Responses
from ..errors import Python, Sentence, plural
from ..memory import NUMBER, available_memory, require_memory
from .moment_effort import Effort
from .workers.base import WorkerModel

# How many tables of all matrices there are at a time: in a fit (measured: 11 to 12), in one that is repeated with part
# of the answers (19 to 23), in a start from votes without further iterations (6 to 7), and where known matrices are
# applied to other answers (4).
FIT_TABLES, HIDING_TABLES, START_TABLES, PREDICTION_TABLES = 10, 16, 6, 2
# The same of all posteriors.
POSTERIOR_TABLES = 2

NAME_CLASSES = Sentence("Name the few classes that can be true with {classes}.")


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
