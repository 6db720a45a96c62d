"""A made-up crowd whose truth is known: the data of `consilience demo`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CLASSES = ("cat", "dog", "fox", "wolf")
PRIOR = (0.35, 0.3, 0.2, 0.15)
N_ITEMS = 2000
ANSWERS_PER_ITEM = 5


class Crowd(NamedTuple):
    """Answers in columns, the true label of each item, and what kind of worker each is."""

    answers: dict[str, list[str]]
    truth: dict[str, str]
    kinds: dict[str, str]


def make_crowd(seed: int = 0) -> Crowd:
    """Draw a crowd of forty workers of mixed quality, and their answers.

    Parameters
    ----------
    seed : int
        The same seed gives the same crowd.

    Examples
    --------
    >>> crowd = make_crowd()
    >>> len(crowd.truth), len(crowd.answers["label"]), len(crowd.kinds)
    (2000, 10000, 40)
    """
    rng = np.random.default_rng(seed)
    kinds, confusion = draw_workers(rng)
    truth = rng.choice(len(CLASSES), size=N_ITEMS, p=PRIOR)
    # The workers of an item are the first few of a random order of all.
    worker = rng.random((N_ITEMS, len(kinds))).argsort(axis=1)[:, :ANSWERS_PER_ITEM]
    cumulated = confusion[worker, truth[:, None]].cumsum(axis=2)
    label = (rng.random((*worker.shape, 1)) > cumulated[:, :, :-1]).sum(axis=2)
    items = [f"image-{n:04d}" for n in range(1, N_ITEMS + 1)]
    workers = [f"w{m:02d}" for m in range(1, len(kinds) + 1)]
    answers = {
        "item": [item for item in items for _ in range(ANSWERS_PER_ITEM)],
        "worker": [workers[m] for m in worker.ravel()],
        "label": [CLASSES[k] for k in label.ravel()],
    }
    names = [CLASSES[k] for k in truth]
    return Crowd(answers, dict(zip(items, names, strict=True)), dict(zip(workers, kinds, strict=True)))


def draw_workers(rng: np.random.Generator) -> tuple[list[str], NDArray[np.float64]]:
    """Return the kind of each worker and the confusion matrices (worker, truth, answer), in random order."""
    n_classes = len(CLASSES)
    even = np.full((n_classes, n_classes), 1 / n_classes)
    matrices = [("careful", _near_diagonal(accuracy)) for accuracy in rng.uniform(0.8, 0.95, 8)]
    matrices += [("ordinary", _near_diagonal(accuracy)) for accuracy in rng.uniform(0.45, 0.75, 15)]
    matrices += [("calls wolves dogs", _wolf_is_dog(accuracy)) for accuracy in rng.uniform(0.75, 0.9, 6)]
    matrices += [("clicks at random", even)] * 8
    matrices += [("always says cat", np.eye(n_classes)[np.zeros(n_classes, int)] * 0.97 + even * 0.03)] * 2
    matrices += [("contrary", np.roll(_near_diagonal(0.85), 1, axis=1))]
    order = rng.permutation(len(matrices))
    return [matrices[m][0] for m in order], np.stack([matrices[m][1] for m in order])


def _near_diagonal(accuracy: float) -> NDArray[np.float64]:
    n_classes = len(CLASSES)
    wrong = (1 - accuracy) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + np.eye(n_classes) * (accuracy - wrong)


def _wolf_is_dog(accuracy: float) -> NDArray[np.float64]:
    matrix = _near_diagonal(accuracy)
    wolf, dog = CLASSES.index("wolf"), CLASSES.index("dog")
    matrix[wolf, [dog, wolf]] = matrix[wolf, [wolf, dog]]
    return matrix
