"""Readers who outline a shape in an image, and err smoothly along its boundary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs

HARMONICS = 6


class Masks(NamedTuple):
    """Answers about the pixels of an image, the true mask (1 inside), and the graph that links each pixel to eight."""

    responses: cs.Responses
    truth: NDArray[np.int64]
    graph: cs.Graph


def draw_masks(seed: int, size: int = 64, wobbles: tuple[float, ...] = (1.5,) * 5) -> Masks:
    """Draw a round shape, and one mask of it for each reader.

    In polar coordinates the shape ends at the radius r(angle), a circle with a few smooth waves. A reader draws
    r(angle) + b + w(angle): waves of their own, and a bias, of about `wobbles` pixels each.
    """
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:size, :size] - size / 2 - rng.uniform(-3, 3, (2, 1, 1))
    angle, radius = np.arctan2(row, column), np.hypot(row, column)
    edge = 0.28 * size + waves(rng, angle, 2.0, first=2)
    drawn = [edge + rng.normal(0, wobble / 2) + waves(rng, angle, wobble) for wobble in wobbles]
    answers = np.stack([(radius < each).astype(np.int64).ravel() for each in drawn], axis=1)
    truth = (radius < edge).astype(np.int64).ravel()
    return Masks(cs.Responses.from_matrix(answers), truth, cs.Graph.grid((size, size)))


def draw_noise(seed: int, size: int = 64, n_readers: int = 5, accuracy: float = 0.8) -> Masks:
    """Draw the same kind of shape, and readers who err at each pixel independently."""
    truth, graph = draw_masks(seed, size).truth, cs.Graph.grid((size, size))
    right = np.random.default_rng(seed).random((len(truth), n_readers)) < accuracy
    return Masks(cs.Responses.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None])), truth, graph)


def waves(rng: np.random.Generator, angle: NDArray[np.float64], height: float, first: int = 1) -> NDArray[np.float64]:
    """Return a smooth random function of the angle, whose standard deviation is about `height`."""
    numbers = np.arange(first, HARMONICS + 1)
    a, b = rng.normal(0, height / np.sqrt(len(numbers)), (2, len(numbers), 1, 1))
    turns = numbers[:, None, None] * angle
    return np.asarray((a * np.cos(turns) + b * np.sin(turns)).sum(axis=0))


def dice(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Return how well two masks overlap: twice the common part over the sum of both."""
    return float(2 * (truth * labels).sum() / (truth.sum() + labels.sum()))
