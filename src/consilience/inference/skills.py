r"""One prior of workers who answer several questions: how far a worker answers all of them alike.

Questions may be columns of a table, or the tags of a set. Each is an ordinary fit, in which the probability that a
worker is of a type (see `consilience.inference.workers.types`) comes from the other questions. Levels of skill are the
same for all questions. A worker has level s with probability :math:`v_s`. In each question the worker answers by this
level with probability 1 - o; with probability o the question calls for a skill of its own, and the level is drawn anew
from v. Whoever answers question q by level s is of type u with probability :math:`h_{qsu}`. With :math:`e_{mqu}` the
evidence that the expected counts of worker m in question q are for type u,

.. math:: E_{mqs} = \sum_u h_{qsu} e_{mqu}, \quad
          X_{mqs} = (1 - o) E_{mqs} + o \sum_r v_r E_{mqr}, \quad
          J = \sum_m \log \sum_s v_s \prod_q X_{mqs}

v, o and h are learned by EM, o with the density o (1 - o)^(1/2), and v and h with the power 0.02 of each share. Where
skills do not carry over, o goes to 1, the product no longer depends on s, and questions are separate.

Given all this and the answers to the other questions, worker m is of type u in question q with probability

.. math:: p_{mqu} = (1 - o) \sum_s P(s \mid \text{other questions}) h_{qsu} + o \sum_s v_s h_{qsu}

which takes the place of the shares of types in the M-step of the question. The objective of all questions together is
the sum of their bounds, in which J takes the place of the evidence of types:

.. math:: \sum_q \Big( \text{bound}_q - \sum_m \log \sum_u p_{mqu} e_{mqu} \Big) + J + \text{log densities}

It never falls: the distribution of matrices that the M-step finds is the best one given the counts of all questions,
and so is the E-step given those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from ..kernels import Floats

# The share of a type, or of a level, counts as if so many workers more were of it.
RARE = 0.02
# The density of o has these powers of o and 1 - o.
OWN_SKILL_POWER, SAME_SKILL_POWER = 1.0, 0.5
SMALLEST_DENSITY = np.finfo(np.float64).tiny


class Skills(NamedTuple):
    """Shares of skills, and the probability of a skill of its own, over all questions."""

    shares: Floats  # (S,): of levels, v
    own: float  # the probability that a question calls for a skill of its own, o
    types: tuple[
        Floats | None, ...
    ]  # for each question h, shares of types by level (S, T); None where these are the same
    learns: bool = True

    def is_due(self, iteration: int) -> bool:  # noqa: ARG002
        """Whether it is learned in this iteration: in all of them."""
        return True

    @property
    def log_density(self) -> float:
        """The logarithm of the density of what is learned."""
        total = (
            OWN_SKILL_POWER * np.log(self.own)
            + SAME_SKILL_POWER * np.log1p(-self.own)
            + RARE * np.log(self.shares).sum()
        )
        return float(total + sum(RARE * np.log(h[h > 0]).sum() for h in self.types if h is not None))


def weigh(evidence: Sequence[Floats], skills: Skills) -> tuple[list[Floats], list[Floats], list[Floats], Floats, float]:
    """The evidence for levels, by that for types, (M, T) of each question.

    Of each question E (M, S), the sum over r of v E (M, 1), and X (M, S); log v + sum of log X, (M, S); and J, but for
    factors of the evidence.
    """
    by_level = [
        np.maximum(e if h is None else e @ h.T, SMALLEST_DENSITY) for e, h in zip(evidence, skills.types, strict=True)
    ]
    anew = [(each @ skills.shares)[:, None] for each in by_level]
    mixed = [(1 - skills.own) * each + skills.own * other for each, other in zip(by_level, anew, strict=True)]
    log_scores = np.log(skills.shares) + sum(np.log(each) for each in mixed)
    return by_level, anew, mixed, log_scores, float(logsumexp(log_scores, axis=1).sum())


def learn_skills(evidence: Sequence[Floats], skills: Skills) -> Skills:
    """Shares under which the evidence is higher: one step of EM."""
    *weighed, log_scores, _ = weigh(evidence, skills)
    level = softmax(log_scores, axis=1)
    drawn, n_own, types = level.sum(axis=0), 0.0, list[Floats | None]()
    for e, h, by_level, anew, mixed in zip(evidence, skills.types, *weighed, strict=True):
        own = level * (skills.own * anew / mixed)
        n_anew = own.sum(axis=1, keepdims=True) * (skills.shares * by_level / anew)
        drawn, n_own = drawn + n_anew.sum(axis=0), n_own + float(own.sum())
        if h is None:
            types.append(None)
        else:
            n_types = h * (((n_anew + level - own) / by_level).T @ e) + RARE * (h > 0)
            types.append(n_types / n_types.sum(axis=1, keepdims=True))
    shares, n_pairs = drawn + RARE, len(evidence[0]) * len(evidence)
    return Skills(
        shares / shares.sum(), (n_own + OWN_SKILL_POWER) / (n_pairs + OWN_SKILL_POWER + SAME_SKILL_POWER), tuple(types)
    )


def expect_types(evidence: Sequence[Floats], skills: Skills) -> tuple[list[Floats], float]:
    """The probabilities p of types, (M, T) of each question, given the other questions; and J."""
    _, _, mixed, log_scores, log_evidence = weigh(evidence, skills)
    types = []
    for h, own in zip(skills.types, mixed, strict=True):
        levels = (1 - skills.own) * softmax(log_scores - np.log(own), axis=1) + skills.own * skills.shares
        types.append(np.maximum(levels if h is None else levels @ h, SMALLEST_DENSITY))
    return types, log_evidence
