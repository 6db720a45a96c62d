"""A made-up crowd whose truth is known: the data of `consilience demo`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CLASSES = ("cat", "dog", "fox", "wolf")
PRIOR = (0.35, 0.3, 0.2, 0.15)
# What is on the images of each class: an animal, and a place.
ANIMALS = {
    "cat": ("tabby coat and long whiskers", "black fur, green eyes", "ginger, curled up", "white paws, short nose"),
    "dog": ("floppy ears and a collar", "spotted coat, tongue out", "golden fur, wagging", "short legs, long ears"),
    "fox": ("red coat, white tip of the tail", "reddish fur, pointed snout", "bushy tail, black feet"),
    "wolf": ("grey coat, long legs", "pale grey fur, yellow eyes", "dark back, heavy neck"),
}
PLACES = {
    "cat": ("on a window sill", "on a sofa", "in a cardboard box", "on a garden wall", "beside a bowl of milk"),
    "dog": ("in a park, on a lead", "with a stick", "in front of a kennel", "on a beach with a ball", "in a car"),
    "fox": ("at the edge of a field", "beside a hen house", "under a hedge", "between dustbins at night"),
    "wolf": ("in deep snow", "howling on a ridge", "with its pack", "in a pine forest", "beside a dead elk"),
}
N_ITEMS = 2000
ANSWERS_PER_ITEM = 5


class Crowd(NamedTuple):
    """Answers in columns, the true label of each item, what kind of worker each is, and what each item shows."""

    answers: dict[str, list[str]]
    truth: dict[str, str]
    kinds: dict[str, str]
    captions: dict[str, str]


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
    names = dict(zip(items, (CLASSES[k] for k in truth), strict=True))
    captions = {item: describe_image(name, n) for n, (item, name) in enumerate(names.items())}
    return Crowd(answers, names, dict(zip(workers, kinds, strict=True)), captions)


def describe_image(name: str, number: int) -> str:
    """Return what is on the image with a number, of an animal.

    >>> describe_image("cat", 0)
    'Tabby coat and long whiskers, on a window sill.'
    """
    animals, places = ANIMALS[name], PLACES[name]
    text = f"{animals[number % len(animals)]}, {places[number // len(animals) % len(places)]}."
    return text[0].upper() + text[1:]


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
