"""Simulated projects in which workers give sets of tags to items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..answers.columns import objects
from ..kernels import Floats, Truths
from ..kinds.tags import Tags
from .drawing import bad_parameter, check_between, check_whole

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class TagSimulation(NamedTuple):
    """Sets of tags, and what is true.

    Attributes
    ----------
    tags : Tags
        The sets that workers gave.
    truth : boolean array of shape (n_items, n_tags)
        Which tags fit each item.
    sensitivity, false_alarms : ndarray of shape (n_workers, n_tags)
        How often each worker gives a tag that fits, and one that does not.
    """

    tags: Tags
    truth: Truths
    sensitivity: Floats
    false_alarms: Floats

    def __repr__(self) -> str:
        return f"TagSimulation({self.tags!r})"


def tags(
    n_items: int = 400,
    n_workers: int = 25,
    n_tags: int = 8,
    *,
    per_item: int = 4,
    topics: int = 4,
    sensitivity: float = 0.67,
    false_alarms: float = 0.09,
    seed: int = 0,
) -> TagSimulation:
    """Draw a project in which workers give sets of tags to items.

    Each item has a topic, in which each tag has a share of its own. Workers differ in how many tags they miss, and in
    how many they give that do not fit; a worker is much alike over all tags.

    Parameters
    ----------
    n_items, n_workers, n_tags : int
        Sizes.
    per_item : int
        How many different workers give a set to each item.
    topics : int
        Number of topics. With 1, tags are independent of each other.
    sensitivity, false_alarms : float
        Means over workers of the probability that a tag is given where it fits, and where it does not.
    seed : int
        Same seed, same project.

    Returns
    -------
    TagSimulation
        With `tags`, `truth`, `sensitivity` and `false_alarms`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.tags(100, n_workers=9, n_tags=3, seed=1)
    TagSimulation(Tags(400 sets of 100 items by 9 workers, 3 tags: 'a', 'b', 'c'))
    """
    check_whole(1, n_items=n_items, n_workers=n_workers, n_tags=n_tags, per_item=per_item, topics=topics)
    check_whole(0, seed=seed)
    check_between("sensitivity", sensitivity, 0, 1)
    check_between("false_alarms", false_alarms, 0, 1)
    if per_item > n_workers:
        raise bad_parameter("per_item", f"at most n_workers={n_workers}", per_item)
    rng = np.random.default_rng(seed)
    shares = rng.beta(0.6, 1.8, (topics, n_tags))
    truth = rng.random((n_items, n_tags)) < shares[rng.integers(topics, size=n_items)]
    hit, alarm = (
        np.clip(_draw(rng, mean, strength, n_workers) + rng.normal(0, spread, (n_workers, n_tags)), 0.005, 0.98)
        for mean, strength, spread in ((sensitivity, 9.0, 0.08), (false_alarms, 13.0, 0.02))
    )
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.sort(rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item], axis=1).ravel()
    said = rng.random((len(item), n_tags)) < np.where(truth[item], hit[worker], alarm[worker])
    names = objects([_LETTERS[t] if n_tags <= len(_LETTERS) else f"tag{t + 1}" for t in range(n_tags)])
    nothing = np.empty(0, np.int64), np.zeros((0, n_tags), bool)
    people = objects([f"w{m + 1}" for m in range(n_workers)])
    sets = Tags(np.arange(n_items), people, names, item, worker.astype(np.int64), said, *nothing)
    return TagSimulation(sets, truth, hit, alarm)


def _draw(rng: np.random.Generator, mean: float, strength: float, size: int) -> Floats:
    """Return probabilities around a mean, one for each worker."""
    if mean in (0, 1):
        return np.full((size, 1), float(mean))
    return rng.beta(strength * mean, strength * (1 - mean), size)[:, None]
