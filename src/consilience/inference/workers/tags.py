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
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.columns import Column, Values, to_column
from ...answers.items import Sequences
from ...errors import ParameterError, plural
from ...kernels import Floats, Integers, freeze
from .. import Distributions, fit_distributions
from ..skills import Skills, count_draws, expect_types, log_density_of, share_own
from .base import Axes, count_groups
from .priors import Prior, Types
from .rows import Counted
from .types import FEW_WORKERS, NEGLIGIBLE, TypedWorkers, respond_by_parts, share_types, types_of

SENSITIVITIES = (0.1, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97)
FALSE_ALARMS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)
# Where the probability that a tag calls for a skill of its own begins.
OWN_AT_FIRST = 0.5


@dataclass(frozen=True, eq=False)
class TagWorkers(TypedWorkers):
    """A matrix for each worker and tag; items are all tags of one thing, then those of the next.

    The answer (m, t, l) is row (m * T + t) * L + l.
    """

    name: ClassVar[str] = "tags"
    hears_silence: ClassVar[bool] = False
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {
        "log_weights": "MT L K: log weights",
        "further": {"tag_confusion_": "M T K L: distributions", "_tag_counts": "M T L K: counts"},
    }

    n_tags: int = 1

    @classmethod
    def of(cls, responses: Answers, *layout: Any) -> Self:
        """Return the model for the workers of these answers."""
        return replace(super().of(responses, *layout), n_tags=count_tags(responses))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_workers * self.n_tags * self.n_labels

    def describe_size(self) -> str:
        """Return in words what makes a table large."""
        return f"{plural(self.n_workers, 'worker')} x {plural(self.n_tags, 'tag')}"

    def encode(self, responses: Answers) -> Integers:
        """Return the row of each answer."""
        tag = responses.item_of_answer() % self.n_tags
        return (responses.worker.astype(np.int64) * self.n_tags + tag) * self.n_labels + responses.label

    def draw_types(self) -> Floats:
        """Return how each type answers, (P, L, K), for the classes no and yes in this order."""
        said, false = (grid.ravel() for grid in np.meshgrid(SENSITIVITIES, FALSE_ALARMS, indexing="ij"))
        by_class = np.stack([np.stack([1 - false, 1 - said], axis=1), np.stack([false, said], axis=1)], axis=1)
        return np.ascontiguousarray(by_class[:, self.class_of_label])

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats) -> Prior:
        """Return types that are equally frequent."""
        begun = super().prior(smoothing, estimation, unvoted)
        return self.give_shares(begun, types_of(begun)._replace(own=OWN_AT_FIRST), np.zeros(types_of(begun).n_types))

    def give_shares(self, prior: Prior, types: Types, n_workers: Floats) -> Prior:
        """Return the prior with the shares of types that so many workers of each call for."""
        found = share_types(prior, types, n_workers)
        return found._replace(log_density=found.log_density + log_density_of(types.own))

    def learn_prior(self, counts: Floats, mass: Floats, prior: Prior, before: Distributions | None = None) -> Prior:
        """Return shares of types, and of tags with a skill of their own, under which the counts are likelier."""
        evidence, _ = self.weigh(counts, types_of(prior))
        drawn, n_own, _ = count_draws(evidence, self.skills(types_of(prior)))
        types = types_of(prior)._replace(own=share_own(n_own, self.n_workers * self.n_tags))
        few = drawn < FEW_WORKERS
        if few.any() and not few.all():
            kept = types._replace(
                pseudo_counts=freeze(types.pseudo_counts[~few]),
                log_shares=types.log_shares[:, ~few],
                n_gone=types.n_gone + int(few.sum()),
            )
            fewer = self.give_shares(prior, kept, drawn[~few])
            if self.judge(counts, fewer) >= self.judge(counts, prior):
                return fewer
        return self.give_shares(prior, types, drawn)

    def judge(self, counts: Floats, prior: Prior) -> float:
        """Return the logarithm of the evidence of counts for a prior, and of its own density."""
        evidence, scale = self.weigh(counts, types_of(prior))
        return expect_types(evidence, self.skills(types_of(prior)))[1] + scale + prior.log_density

    def skills(self, types: Types) -> Skills:
        """Return what is learned of all tags together."""
        return Skills(np.exp(types.log_shares[0]), types.own, (None,) * self.n_tags)

    def weigh(self, counts: Floats, types: Types) -> tuple[list[Floats], float]:
        """Return the evidence of counts (n_rows, K) for types, (M, P) of each tag, and the logarithm of its scale."""
        even = types._replace(log_shares=np.zeros_like(types.log_shares), likely=None)
        parts = list(respond_by_parts(self._by_tag(counts), even))
        # Up to a factor for each worker and tag, responsibilities of types that are equally frequent are the evidence.
        every = np.concatenate([part for _, part, _ in parts]).reshape(self.n_workers, self.n_tags, -1)
        return [np.ascontiguousarray(every[:, t]) for t in range(self.n_tags)], sum(value for _, _, value in parts)

    def respond(self, counts: Floats, prior: Prior) -> tuple[Floats, float]:
        """Return responsibilities of types, (M T, P), and the logarithm of the evidence of all counts."""
        evidence, scale = self.weigh(counts, types_of(prior))
        likely, log_evidence = expect_types(evidence, self.skills(types_of(prior)))
        found = np.stack([e * p for e, p in zip(evidence, likely, strict=True)], axis=1)
        found = found.reshape(-1, found.shape[2])
        return found / found.sum(axis=1, keepdims=True), log_evidence + scale

    def update(self, counts: Floats, mass: Floats, prior: Prior, before: Distributions | None = None) -> Distributions:
        """Return the matrices that expected counts call for."""
        from ...kernels.types import mix

        by_tag, (responsibility, evidence) = self._by_tag(counts), self.respond(counts, prior)
        responsibility = np.where(responsibility < NEGLIGIBLE, 0.0, responsibility)
        responsibility /= responsibility.sum(axis=1, keepdims=True)
        logs, mean = np.empty_like(by_tag), np.empty_like(by_tag)
        mix(by_tag, types_of(prior).pseudo_counts, responsibility, logs, mean)
        return Distributions(freeze(np.exp(logs)), freeze(logs), freeze(mean), evidence - float(np.sum(by_tag * logs)))

    def counted(self, counts: Floats, mass: Floats, prior: Prior) -> Counted:
        """Return the counts behind the matrices, with the pseudo-counts of the types of each worker and tag."""
        responsibility, _ = self.respond(counts, prior)
        return count_groups(self._by_tag(counts) + np.tensordot(responsibility, types_of(prior).pseudo_counts, axes=1))

    def _by_tag(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M T, L, K)."""
        return counts.reshape(-1, self.n_labels, self.n_classes)

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M, L, K), whatever the tag."""
        shape = (self.n_workers, self.n_tags, self.n_labels, self.n_classes)
        return np.asarray(counts.reshape(shape).sum(axis=1))

    def plain_mean(self, found: Distributions, counts: Floats, prior: Prior) -> Floats:
        """Return the matrices (M, L, K) of workers whatever the tag."""
        return fit_distributions(self.plain_counts(counts), prior.smoothing, "em").mean

    def given(self, confusion: Floats) -> Distributions:
        """Return known matrices (M, K, L), the same for all tags."""
        known = super().given(confusion)
        weights, log_weights, mean = (np.repeat(part, self.n_tags, axis=0) for part in known[:3])
        return Distributions(weights, log_weights, mean, 0.0)

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return the matrices of a fitted crowd for these workers and labels, by tag."""
        own = known.reshape(-1, self.n_tags, *known.shape[1:])
        everyone = np.concatenate([own, np.repeat(crowd, self.n_tags, axis=0)[None]])[worker]
        chosen = everyone[:, :, label]
        return np.ascontiguousarray(chosen.reshape(-1, len(label), known.shape[2]))

    def embed_counts(
        self, counts: Floats, further: Mapping[str, Floats], worker: NDArray[np.int64], axes: Axes
    ) -> Floats:
        """Return expected counts of rows from those of a fit to fewer workers."""
        embedded = np.zeros((self.n_workers, self.n_tags, self.n_labels, self.n_classes))
        embedded[np.ix_(worker, np.arange(self.n_tags), *axes)] = further["_tag_counts"]
        return embedded.reshape(-1, self.n_classes)

    @classmethod
    def check_saved(cls, log_weights: Floats, further: Mapping[str, Floats], n_columns: int | None) -> None:
        """Raise a `ValueError` unless all arrays are about the same tags."""
        n_workers, n_tags = further["tag_confusion_"].shape[:2]
        alike = further["_tag_counts"].shape[1] == n_tags and len(log_weights) == n_workers * n_tags
        if not alike or n_columns not in (None, n_tags):
            raise ValueError("the tags of workers are not those of the sets")

    def further_arrays(self, found: Distributions, counts: Floats) -> dict[str, Floats]:
        """Return the matrices and the expected counts by tag."""
        shape = (self.n_workers, self.n_tags, self.n_labels, self.n_classes)
        by_tag = np.ascontiguousarray(found.mean.reshape(shape).transpose(0, 1, 3, 2))
        return {"tag_confusion_": by_tag, "_tag_counts": counts.reshape(shape)}

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:
        """Return the matrices by tag as (M T, L, K)."""
        by_tag = further["tag_confusion_"].transpose(0, 1, 3, 2)
        return np.ascontiguousarray(by_tag.reshape(-1, *by_tag.shape[2:]))

    @classmethod
    def further_columns(cls, further: Mapping[str, Floats], labels: Values, classes: Values) -> dict[str, Column]:
        """Return how often each worker misses a tag that fits, and gives one that does not, over all tags."""
        counts = further["_tag_counts"].sum(axis=1)
        right = counts.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            misses, alarms = counts[:, 0, 1] / right[:, 1], counts[:, 1, 0] / right[:, 0]
        return {"misses": to_column(misses), "false_alarms": to_column(alarms)}


def count_tags(responses: Answers) -> int:
    """Return how many tags each thing has of which the items are the tags."""
    found = responses.sequences
    if isinstance(found, Sequences) and len(found):
        n_tags = len(found.position) // len(found)
        if np.array_equal(found.position, np.tile(np.arange(n_tags), len(found))):
            return n_tags
    raise ParameterError(
        "Workers of the kind 'tags' are for sets of tags.",
        "Read the answers with read_tags, or give them to fuse with a separator.",
        keyword="workers",
    )
