r"""Priors of workers: pseudo-counts, which may be given or learned.

**A prior that is learned** is one pair of pseudo-counts, off the diagonal and on it, for the whole crowd.
Pseudo-counts are alpha = off * A + diagonal * B + F, with parts A, B and F that depend on labels and classes alone.
Given the expected counts C of rows r (a worker, or a worker and their previous answer), the part of the variational
bound that depends on the pair is the log likelihood of Polya's urn,

    sum_rk [ log B(alpha_k + C_rk) - log B(alpha_k) ],    log B(a) = sum_l lgamma(a_l) - lgamma(sum_l a_l)

To it comes a log-normal density around `CENTRE` with a standard deviation of 1 of the logarithms, which decides where
the counts say little. A few Newton steps in the logarithms, each taken only as far as the sum rises: so the bound never
falls.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import Floats, freeze, read_only
from ...options import to_floats

# The iterations in which a prior is learned.
LEARNING = range(5, sys.maxsize, 3)
CENTRE = (0.3, 2.0)
START = (0.1, 1.1)
LEAST, MOST = np.log((0.02, 0.02)), np.log((50.0, 200.0))
# Newton steps in one call, and the gain below which another is not worth the time. The loop calls often.
MOST_STEPS, LEAST_GAIN = 3, 1e-3
# The longest step, and how often one is halved before it is given up.
LONGEST, MOST_HALVINGS = 1.0, 6
DIFFERENCE = 1e-3


class Types(NamedTuple):
    """Types of workers; see `consilience.inference.workers.types`.

    Attributes
    ----------
    pseudo_counts : array (T, L', K)
        Those of a worker of each type, for the labels that name a class.
    log_shares : array (1 or M, T)
        The logarithm of the share of workers who are of each type; or of the probability that each worker is.
    n_gone : int
        How many further types were left out.
    likely : array (M, T), optional
        Which types each worker may be of; all of them by default.
    own : float
        Where a worker answers several questions: the probability that one calls for a type of its own.
    """

    pseudo_counts: Floats
    log_shares: Floats
    n_gone: int = 0
    likely: NDArray[np.bool_] | None = None
    own: float = 1.0

    @property
    def n_types(self) -> int:
        """Number of types."""
        return len(self.pseudo_counts)


class Prior(NamedTuple):
    """What is believed of workers before any answer: pseudo-counts in the shape that the worker model learns in.

    A prior that is learned is a pair of numbers: its pseudo-counts are the sum of three parts, the first two each times
    one of them.
    """

    smoothing: Floats
    estimation: str
    pair: tuple[float, float] | None = None
    parts: tuple[Floats, Floats, Floats] | None = None
    log_density: float = 0.0  # of the pair, or of the shares of types
    types: Types | None = None
    learns: bool = False

    def is_due(self, iteration: int) -> bool:
        """Whether it is learned in this iteration: not in the first ones, whose counts are those of votes.

        Types are looked at early, so that only those that a worker may be of are looked at again.
        """
        return self.learns and (iteration in LEARNING or (iteration == 1 and self.types is not None))

    def settle(self) -> Prior:
        """Return a prior that is not learned again, for other answers of the same workers."""
        types = None if self.types is None else self.types._replace(likely=None)
        return self._replace(parts=None, types=types, learns=False)


def make_pair(parts: tuple[Floats, Floats, Floats], pair: tuple[float, float] = START) -> Prior:
    """The prior with pseudo-counts off * parts[0] + diagonal * parts[1] + parts[2], which is learned."""
    off, diagonal = pair
    logs = np.log(pair) - np.log(CENTRE)
    density = float(-0.5 * logs @ logs)
    smoothing = freeze(off * parts[0] + diagonal * parts[1] + parts[2])
    return Prior(smoothing, "variational", pair, parts, density, learns=True)


def improve_pair(prior: Prior, counts: Floats, fixed: Floats | None = None) -> Prior:
    """The prior with a pair under which the counts (R, L, K) are likelier, by a few steps of Newton's method.

    Parameters
    ----------
    prior : Prior
        With the pair to start from.
    counts : array (R, L, K)
        Expected counts.
    fixed : array (R, L, K), optional
        Further pseudo-counts.
    """
    from ...kernels.answers import add_polya

    assert prior.parts is not None
    assert prior.pair is not None
    constant = prior.parts[2] if fixed is None else prior.parts[2] + fixed
    arrays = read_only(counts), read_only(prior.parts[0][0]), read_only(prior.parts[1][0]), read_only(constant)

    def judge(logs: Floats) -> tuple[float, Floats]:
        """The sum to be maximised, and its slope in the logarithms of the pair."""
        (off, diagonal), slope, away = np.exp(logs).tolist(), np.zeros(2), logs - np.log(CENTRE)
        value = float(add_polya(*arrays, off, diagonal, slope))
        return value - 0.5 * float(away @ away), slope * np.exp(logs) - away

    place = np.log(prior.pair)
    value, slope = judge(place)
    for _ in range(MOST_STEPS):
        # The step leads to where the slope would vanish if it were linear; uphill, and not too far.
        curvature = np.stack([(judge(place + h)[1] - slope) / DIFFERENCE for h in DIFFERENCE * np.eye(2)])
        curvature = (curvature + curvature.T) / 2
        values, vectors = np.linalg.eigh(curvature)
        # Where the sum is not concave its slope is followed, as if it were.
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-6))
        step = step / max(1.0, float(np.abs(step).max()) / LONGEST)
        beyond = (place + step < LEAST) | (place + step > MOST)
        if beyond.sum() == 1:
            # A number that would go beyond its limit goes as far as that, and the other one where it is best then.
            stopped, other = int(beyond.argmax()), int(beyond.argmin())
            step[stopped] = np.clip((place + step)[stopped], LEAST[stopped], MOST[stopped]) - place[stopped]
            rest = slope[other] + curvature[other, stopped] * step[stopped]
            step[other] = np.clip(rest / max(abs(curvature[other, other]), 1e-6), -LONGEST, LONGEST)
        for _ in range(MOST_HALVINGS):
            further = np.clip(place + step, LEAST, MOST)
            new_value, new_slope = judge(further)
            if new_value > value:
                break
            step = step / 2
        else:
            break
        gain, place, value, slope = new_value - value, further, new_value, new_slope
        if gain < LEAST_GAIN:
            break
    off, diagonal = np.exp(place).tolist()
    return make_pair(prior.parts, (off, diagonal))


def names_class(class_of_label: NDArray[np.int64], n_classes: int) -> NDArray[np.bool_]:
    """Return whether each label names each class, (L, K)."""
    return np.asarray(class_of_label[:, None] == np.arange(n_classes))


def smoothing_array(smoothing: Any, class_of_label: NDArray[np.int64], n_classes: int, n_workers: int) -> Floats:
    """Return pseudo-counts as an array (1 or M, L, K) from a float, a pair (off diagonal, diagonal) or an array.

    >>> smoothing_array((0.1, 1.1), np.array([0, 1]), 2, 5)
    array([[[1.1, 0.1],
            [0.1, 1.1]]])
    """
    n_labels = len(class_of_label)
    array = to_floats(smoothing)
    if array.shape == (2,):
        pseudo_counts = np.where(names_class(class_of_label, n_classes), array[1], array[0])[None]
    elif array.ndim == 0:
        pseudo_counts = np.full((1, n_labels, n_classes), float(array))
    else:
        if array.ndim not in (2, 3):
            raise ValueError("neither a number nor a pair nor a matrix")
        pseudo_counts = array if array.ndim == 3 else array[None]
        if pseudo_counts.shape[1:] != (n_classes, n_labels) or pseudo_counts.shape[0] not in (1, n_workers):
            raise ValueError(
                f"an array of shape (classes, labels) = ({n_classes}, {n_labels}), or one such matrix per worker"
            )
        pseudo_counts = pseudo_counts.transpose(0, 2, 1)
    return freeze(np.ascontiguousarray(pseudo_counts))
