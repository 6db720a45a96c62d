"""Workers who give sets of tags: for each tag they miss it now and then where it fits, and give it where it does not.

A worker has a matrix for each tag, with a sensitivity (how often the tag is given where it fits) and a rate of false
alarms. A type is a pair of these with a strength, as in `consilience.inference.workers.types`. Whoever misses many
cases of one tag often misses those of others. So tags are questions to the same workers, with the shared prior of
`consilience.inference.skills`: a worker has one type for all tags, but a tag calls for a type of its own with a
probability that is learned. Types are the levels, and their shares are the same for all tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ...answers.answers import Answers
from ...answers.columns import Column, Values, to_column
from ...answers.keys import Sequences
from ...errors import ParameterError
from ...kernels import Floats, Integers, freeze
from ..distributions import Distributions
from ..skills import Skills, expect_types, learn_skills
from .base import Prior, Types
from .rows import Counted
from .types import TypedWorkers, give_shares, respond_by_parts, types_of

SENSITIVITIES = (0.1, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97)
FALSE_ALARMS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)
# Where the probability that a tag calls for a skill of its own begins.
OWN_AT_FIRST = 0.5


@dataclass(frozen=True, eq=False)
class TagWorkers(TypedWorkers):
    """A matrix for each worker and tag; items are all tags of one thing, then those of the next."""

    name: ClassVar[str] = "tags"
    hears_silence: ClassVar[bool] = False
    context: ClassVar[str] = "tag"
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {
        "log_weights": "MT L K: log weights",
        "further": {"tag_confusion_": "M T K L: probabilities", "_tag_counts": "M T L K: counts"},
    }

    @classmethod
    def of(cls, responses: Answers, *layout: Any) -> Self:
        """The model for the workers of these answers."""
        return replace(super().of(responses, *layout), n_contexts=count_tags(responses))

    def find_contexts(self, responses: Answers) -> Integers:
        """The tag that each answer is about."""
        return responses.item_of_answer() % self.n_contexts

    def draw_types(self) -> Floats:
        """How each type answers, (P, L, K), for the classes no and yes in this order."""
        said, false = (grid.ravel() for grid in np.meshgrid(SENSITIVITIES, FALSE_ALARMS, indexing="ij"))
        by_class = np.stack([np.stack([1 - false, 1 - said], axis=1), np.stack([false, said], axis=1)], axis=1)
        return np.ascontiguousarray(by_class[:, self.class_of_label])

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats, learn: bool = False) -> Prior:
        """Types that are equally frequent."""
        begun = super().prior(smoothing, estimation, unvoted, learn)
        shares = np.exp(types_of(begun).log_shares[0])
        return give_skills(begun, Skills(shares, OWN_AT_FIRST, ()))

    def learn_prior(self, counts: Floats, prior: Prior) -> Prior:
        """Shares of types, and of tags with a skill of their own, under which the counts are likelier."""
        return give_skills(prior, learn_skills(*self._weigh(counts, types_of(prior))))

    def update(self, counts: Floats, prior: Prior) -> Distributions:
        """The matrices that expected counts call for."""
        given, more = self._condition_on_tags(counts, prior)
        distributions = super().update(counts, given)
        return distributions._replace(bound=distributions.bound + more)

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The counts behind the matrices, with the pseudo-counts of the types of each worker and tag."""
        return super().counted(counts, self._condition_on_tags(counts, prior)[0])

    def _condition_on_tags(self, counts: Floats, prior: Prior) -> tuple[Prior, float]:
        """The prior of each worker and tag given the other tags, and what that adds to the bound."""
        evidence, skills = self._weigh(counts, types_of(prior))
        likely, log_evidence = expect_types(evidence, skills)
        alone = sum(float(np.log((e * p).sum(axis=1)).sum()) for e, p in zip(evidence, likely, strict=True))
        log_shares = np.log(np.stack(likely, axis=1)).reshape(self.n_workers * self.n_contexts, -1)
        return give_shares(prior, log_shares), log_evidence - alone

    def _weigh(self, counts: Floats, types: Types) -> tuple[list[Floats], Skills]:
        """The evidence of counts for types, (M, P) of each tag, up to a factor, and what tags have in common."""
        even = types._replace(log_shares=np.zeros((1, types.n_types)), likely=None)
        every = np.concatenate([part for _, part, _ in respond_by_parts(self.by_matrix(counts), even)])
        by_tag = every.reshape(self.n_workers, self.n_contexts, -1).transpose(1, 0, 2)
        skills = Skills(np.exp(types.log_shares[0]), types.own, (None,) * self.n_contexts)
        return list(np.ascontiguousarray(by_tag)), skills

    @classmethod
    def further_columns(cls, further: Mapping[str, Floats], labels: Values, classes: Values) -> dict[str, Column]:
        """How often each worker misses a tag that fits, and gives one that does not, over all tags."""
        counts = further["_tag_counts"].sum(axis=1)
        right = counts.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            misses, alarms = counts[:, 0, 1] / right[:, 1], counts[:, 1, 0] / right[:, 0]
        return {"misses": to_column(misses), "false_alarms": to_column(alarms)}


def give_skills(prior: Prior, skills: Skills) -> Prior:
    """The prior with shares of types, and of tags that call for one of their own."""
    types = types_of(prior)._replace(log_shares=freeze(np.log(skills.shares)[None]), own=skills.own)
    return prior._replace(types=types, log_density=skills.log_density)


def count_tags(responses: Answers) -> int:
    """How many tags each thing has of which the items are the tags."""
    sequences = responses.sequences
    if isinstance(sequences, Sequences) and len(sequences):
        n_tags = len(sequences.position) // len(sequences)
        if np.array_equal(sequences.position, np.tile(np.arange(n_tags), len(sequences))):
            return n_tags
    raise ParameterError(
        "Workers of the kind 'tags' are for sets of tags.",
        "Read the answers with read_tags, or give them to fuse with a separator.",
        keyword="workers",
    )
