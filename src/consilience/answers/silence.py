"""Answers that look like those of labelling functions, whose silence means something."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, Sentence, plural, shorten, warn
from .responses import Responses
from .tagging import looks_tagged
from .vocabulary import count_codes

# A worker with fewer answers is not judged, nor one whose answers would all be alike with a higher probability.
FEWEST_ANSWERS, CHANCE = 5, 0.01
# Tags and single labels are not judged by fewer answers of all workers.
FEWEST_IN_ALL = 20
# Workers count as most, and items as few, beyond this share.
MOST, FEW = 0.5, 0.5
# So many answers are looked at together, until everybody who could be one-sided has said two labels.
AT_ONCE = 1 << 18


def warn_of_silence(r: Responses, n_stored: int | None = None) -> None:
    """Warn if silence may well be an answer, and is ignored. Parameters are those of `doubt_silence`."""
    doubt = doubt_silence(r, n_stored)
    if doubt is not None:
        warn(doubt)


def doubt_silence(r: Responses, n_stored: int | None = None) -> DataWarning | None:
    """Return the warning that silence may well be an answer, and is ignored; else None.

    Parameters
    ----------
    r : Responses
        The answers.
    n_stored : int, optional
        If they are from a store, where silence is never an answer: the number of items there.
    """
    if r.silence_counts:
        return None
    n_alike, n_judged = count_one_sided(r)
    tagged = r.sequences is not None and looks_tagged(r.labels) and "O" not in r.labels.tolist()
    answered, n_places = np.count_nonzero(np.diff(r.offsets)), count_places(r)
    if n_alike > max(1, MOST * n_judged):
        problem = f"{n_alike:,} of {plural(n_judged, 'worker')} with enough answers to tell only ever say one label"
    elif (tagged or r.n_labels == 1) and r.n_responses >= FEWEST_IN_ALL and answered < FEW * n_places:
        said = "tags and never O" if tagged else f"only {shorten(r.labels.tolist()[0])}"
        problem = f"Workers say {said}, about {answered:,} of {plural(n_places, 'item')}"
    else:
        return None
    if n_stored is not None and n_stored > r.n_items:
        problem = f"In a sample of {plural(r.n_items, 'item')}, {problem[0].lower()}{problem[1:]}"
    read = "read the answers with {abstain}" if n_stored is None else "read the answers into memory, with {abstain}"
    return DataWarning(
        f"{problem}, as labelling functions do. Their silence about other items is ignored.",
        Sentence(f"If it means something, {read}.", abstain="answer"),
        Sentence("Then {background} is the class of items about which all are silent."),
        *([] if answered < r.n_items else [Sentence("And {items} names those nobody spoke about, too.")]),
        keyword="abstain",
    )


def count_places(r: Responses) -> int:
    """Return the number of items, with those between the positions of a sequence that nobody answered or named."""
    if r.sequences is None or r.sequences.position.dtype.kind not in "iu":
        return r.n_items
    first, last = r.sequences.offsets[:-1], r.sequences.offsets[1:] - 1
    return int(np.sum(r.sequences.position[last].astype(float) - r.sequences.position[first] + 1))


def count_one_sided(r: Responses) -> tuple[int, int]:
    """Return how many workers only ever say one label, and how many there are, of those for whom it would be no chance.

    The first is 0 where such workers gave less than half of all answers.
    """
    n_answers = count_codes(r.worker, r.n_workers)
    judged = (n_answers >= FEWEST_ANSWERS) & (chance_of_one_label(r, n_answers) < CHANCE)
    alike, first = judged.copy(), np.full(r.n_workers, -1, r.label.dtype)
    for begin in range(0, r.n_responses, AT_ONCE):
        if not alike.any():
            break
        worker, label = r.worker[begin : begin + AT_ONCE], r.label[begin : begin + AT_ONCE]
        new = np.flatnonzero(first[worker] < 0)[::-1]  # of several answers the first one stays
        first[worker[new]] = label[new]
        alike[worker[label != first[worker]]] = False
    enough = n_answers[alike].sum() > MOST * r.n_responses
    return int(alike.sum()) if enough else 0, int(judged.sum())


def chance_of_one_label(r: Responses, n_answers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each worker how probable it is that all answers are alike, if they are drawn from those of all."""
    share = count_codes(r.label, r.n_labels) / max(r.n_responses, 1)
    counts, place = np.unique(n_answers, return_inverse=True)
    return np.array([np.sum(share**count) for count in counts.tolist()])[place]
