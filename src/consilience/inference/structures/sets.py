r"""Sets of tags: which tags of one thing go together, by a topic that nobody sees.

A thing has a topic z with probability :math:`\pi_z`, and tag t fits it with probability :math:`\theta_{zt}`, whatever
its other tags are. With evidence :math:`b_{it}(y)` of the answers about tag t of thing i,

.. math:: P(z_i = z) \propto \pi_z \prod_t \sum_y \theta_{zt}^y (1 - \theta_{zt})^{1 - y} b_{it}(y)

and given the topic, tags are independent. One topic is a share of things for each tag, and nothing else. With more of
them, tags that often fit the same things speak for each other, and those that exclude each other against each other.

Shares of topics have a Dirichlet prior with parameter 2, and :math:`\theta_{zt}` a Beta prior of `STRENGTH`
pseudo-counts around the share of yes among the votes about tag t. The estimates are modes, so that the objective never
falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

import numpy as np
from scipy.special import xlogy

from ...answers.blocks import Block
from ...kernels import Floats, freeze
from ...specs import COUNTS, DISTRIBUTIONS, NOT_NEGATIVE, OBJECTIVES, PROBABILITIES, ArraySpec
from . import BlockwiseParameters, Structure, Summary

# Pseudo-counts of the share of a tag in a topic, and of a topic.
STRENGTH, TOPIC = 2.0, 1.0
# Votes of a single thing are never all that certain.
LEAST_SHARE = 0.02
_NOTHING = freeze(np.zeros((1, 0)))


@dataclass(frozen=True, eq=False)
class SetsSummary(Summary):
    """What one pass over sets adds up to."""

    topics: Annotated[Floats, ArraySpec("*", COUNTS)]  # expected number of things of each topic
    fits: Annotated[Floats, ArraySpec("* *", COUNTS)]  # and of those that each tag fits


@dataclass(frozen=True, eq=False)
class SetsParameters(BlockwiseParameters):
    """Shares of topics, and of the things of a topic that each tag fits."""

    topics: Annotated[Floats, ArraySpec("*", DISTRIBUTIONS)]
    shares: Annotated[Floats, ArraySpec("* T", PROBABILITIES)]  # (Z, T)
    mean: Annotated[Floats, ArraySpec("K", DISTRIBUTIONS)]
    coupling: Annotated[float, ArraySpec("", NOT_NEGATIVE)]  # the number of topics
    bound: Annotated[float, ArraySpec("", OBJECTIVES)]

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        """Number of tags."""
        return int(self.shares.shape[1])

    @property
    def tag_shares(self) -> Floats:
        """The share of all things that each tag fits, (T,)."""
        return np.asarray(self.topics @ self.shares)

    def infer_block(self, block: Block, evidence: Floats) -> SetsSummary:
        """Turn the evidence of one block, (n T, 2), into posteriors in place."""
        n_tags = self.shares.shape[1]
        no, yes = (evidence[:, k].reshape(-1, 1, n_tags) for k in range(2))
        fitting, other = self.shares * yes, (1 - self.shares) * no  # (n, Z, T)
        total = fitting + other
        with np.errstate(divide="ignore"):
            logs = np.log(total).sum(axis=2) + np.log(self.topics)
        top = logs.max(axis=1, keepdims=True)
        of_topic = np.exp(logs - top)
        sums = of_topic.sum(axis=1, keepdims=True)
        of_topic /= sums
        joint = of_topic[:, :, None] * np.divide(fitting, total, out=np.zeros_like(total), where=total > 0)
        found = np.clip(joint.sum(axis=1), 0.0, 1.0).ravel()
        evidence[:, 1], evidence[:, 0] = found, 1 - found
        told = block.told.reshape(-1, n_tags).any(axis=1) if len(block.told) else np.ones(len(no), bool)
        n_told = n_tags * int(told.sum())
        fits = joint[told].sum(axis=0)
        mass = np.array([n_told - fits.sum(), fits.sum()])
        return SetsSummary(float((top + np.log(sums)).sum()), mass, of_topic[told].sum(axis=0), fits)

    def point(self) -> Self:
        """Return the same: the E-step uses what is reported."""
        return self


@dataclass(frozen=True, eq=False)
class Sets(Structure[SetsSummary, SetsParameters]):
    """Topics of which there are so many as there are centres, at which sets are looked for at first.

    Attributes
    ----------
    base : array (T,)
        Around which shares of things each tag is expected to fit.
    centres : array (Z, T)
        The share of each tag in each topic, to begin with.
    """

    summary_type: ClassVar[type[Summary]] = SetsSummary

    base: Floats = field(default_factory=lambda: _NOTHING[0])
    centres: Floats = field(default_factory=lambda: _NOTHING)

    def update(self, summary: SetsSummary) -> SetsParameters:
        """Return the shares that expected counts call for."""
        n_topics = len(self.centres)
        topics = (summary.topics + TOPIC) / (summary.topics.sum() + TOPIC * n_topics)
        pseudo = STRENGTH * self.base
        shares = (summary.fits + pseudo) / (summary.topics[:, None] + STRENGTH)
        return self._make(topics, shares)

    def _make(self, topics: Floats, shares: Floats) -> SetsParameters:
        pseudo = STRENGTH * self.base
        density = (
            xlogy(pseudo, shares).sum() + xlogy(STRENGTH - pseudo, 1 - shares).sum() + TOPIC * np.log(topics).sum()
        )
        fitting = float((topics @ shares).mean())
        mean = np.array([1 - fitting, fitting])
        found = freeze(topics), freeze(np.ascontiguousarray(shares)), freeze(mean)
        return SetsParameters(*found, float(len(topics)), float(density))

    def given(self, prior: Floats) -> SetsParameters:  # noqa: ARG002 (each tag has a prior of its own)
        """Return topics that are equally frequent, with the shares of the centres."""
        n_topics = len(self.centres)
        return self._make(np.full(n_topics, 1 / n_topics), np.array(self.centres))

    def summarise(self, block: Block, posterior: Floats) -> SetsSummary:
        """Return the summary of one block's posteriors that came from elsewhere, such as vote shares.

        Each thing is of the topics whose centre is near.
        """
        n_tags = len(self.base)
        fitting = posterior[:, 1].reshape(-1, n_tags)
        told = block.told.reshape(-1, n_tags).any(axis=1) if len(block.told) else np.ones(len(fitting), bool)
        fitting = fitting[told]
        of_topic = find_topics(fitting, self.centres)
        return SetsSummary(
            0.0, np.array([(1 - fitting).sum(), fitting.sum()]), of_topic.sum(axis=0), of_topic.T @ fitting
        )


def find_topics(fitting: Floats, centres: Floats) -> Floats:
    """Return the probability of each topic for things whose tags fit with some probability, (n, Z)."""
    shares = np.clip(centres, LEAST_SHARE, 1 - LEAST_SHARE)
    logs = fitting @ np.log(shares).T + (1 - fitting) @ np.log(1 - shares).T
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def choose_centres(fitting: Floats, n_topics: int, rng: np.random.Generator, n_rounds: int = 10) -> Floats:
    """Return the shares of tags in topics that things fall into by the votes about their tags, (Z, T).

    The first centres are things far from each other, drawn at random.
    """
    if n_topics == 1:
        return np.asarray(fitting.mean(axis=0, keepdims=True))
    chosen = [int(rng.integers(len(fitting)))]
    for _ in range(1, n_topics):
        far = np.min([((fitting - fitting[at]) ** 2).sum(axis=1) for at in chosen], axis=0) + 1e-9
        chosen.append(int(rng.choice(len(fitting), p=far / far.sum())))
    centres = fitting[chosen]
    mean = fitting.mean(axis=0)
    for _ in range(n_rounds):
        of_topic = find_topics(fitting, centres)
        centres = (of_topic.T @ fitting + STRENGTH * mean) / (of_topic.sum(axis=0)[:, None] + STRENGTH)
    return np.asarray(centres)
