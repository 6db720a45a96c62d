"""Sets of tags: each tag is a question with two answers, and workers are alike over tags."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, cast

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import lookup, name_composite, to_column, tuples_to_ids
from ..answers.graph import Graph
from ..answers.previews import build_report
from ..errors import plural
from ..inference.estimator import Parts
from ..inference.observations import Observations
from ..inference.structures import StructureParameters, Summary
from ..inference.structures.sets import Sets, SetsParameters, SetsSummary
from ..inference.workers.tags import TagWorkers, count_tags
from ..kernels import Floats, freeze
from ..kinds.tag_kind import TagsKind, report_tags, report_workers_by_tag
from ..limits import require_few
from ..results.explanations import Explanations
from ..results.result import Result
from .base import FromResult
from .latent import LatentModel

LEAST_TAG_SHARE = 1e-3


def kind_of(result: Result) -> TagsKind:
    """Return the tags."""
    return cast(TagsKind, result.kind)


def reshape(result: Result, values: Floats) -> Floats:
    """Figures of single tags as a table (n_items, n_tags)."""
    return values.reshape(-1, len(kind_of(result).tags))


class TagSets(LatentModel):
    r"""Fuse sets of tags, which several workers gave to the same items.

    Each tag is a question with two answers: does it fit the item? Worker m gives tag t with probability :math:`s_{mt}`
    where it fits (sensitivity), and with probability :math:`f_{mt}` where it does not (false alarms). Both are learned
    for each tag, and a worker's tags are expected to be alike as far as the answers bear it out.

    Parameters
    ----------
    calibration, max_iter, tol, seed, callback
        As for `DawidSkene`.

    Attributes
    ----------
    tags_ : ndarray
        All tags.
    tag_posterior_ : ndarray of shape (n_items, n_tags)
        The probability that each tag fits each item, calibrated.
    tag_confusion_ : ndarray of shape (n_workers, n_tags, 2, 2)
        ``tag_confusion_[w, t, truth, answer]``, where 0 is no and 1 is yes.
    tag_shares_ : ndarray of shape (n_tags,)
        The share of items that each tag fits.
    labels_, posterior_, confusion_
        As for `DawidSkene`, of the question whether a tag fits an item: all tags of the first item, then those of the
        next one. `confusion_` is that of workers over all tags.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.tags(200, seed=1)
    >>> fused = cs.TagSets().fit(crowd.tags)
    >>> fused.to_frame().column_names[:4]
    ['item', 'labels', 'confidence', 'p(a)']
    >>> {"misses", "false_alarms"} <= set(fused.worker_report().column_names)
    True
    """

    tag_shares_ = FromResult(
        lambda result: cast(SetsParameters, result.estimates.structure).shares, "The share of items that each tag fits."
    )
    tags_ = FromResult(lambda result: kind_of(result).tags, "All tags.")
    tag_posterior_ = FromResult(
        lambda result: reshape(result, result.labels.posterior[:, 1]), "The probability that each tag fits each item."
    )
    tag_confusion_ = FromResult(
        lambda result: result.estimates.further["tag_confusion_"], "Confusion of each worker by tag."
    )

    _structure_type: ClassVar[type[StructureParameters]] = SetsParameters
    _summary_type: ClassVar[type[Summary]] = SetsSummary
    _takes_content: ClassVar[bool] = False
    # What tags leave no choice of.
    workers: str = field(default=TagWorkers.name, init=False)
    estimation: str = field(default="variational", init=False)
    prior: str = field(default="learn", init=False)
    smoothing: str = field(default="learn", init=False)
    label_by: str = field(default="mode", init=False)
    start: str = field(default="majority", init=False)
    n_init: int = field(default=1, init=False)

    def _prepare(self, r: Answers) -> Answers:
        count_tags(r)  # which raises an error unless the answers are about tags
        return r

    def _check_size(self, r: Answers, graph: Graph | None) -> None:
        n_tags = count_tags(r)
        n_skills, n_sets = r.n_workers * n_tags, r.n_responses // n_tags
        size = f"{r.n_workers:,} workers x {n_tags:,} tags are {n_skills:,} skills to be learned"
        remedy = "Leave out rare tags, or workers with few sets."
        require_few("skills", n_skills, f"{size} from {plural(n_sets, 'set')}", remedy, n=n_sets)
        super()._check_size(r, graph)

    def _make_structure(self, observations: Observations, parts: Parts) -> Sets:  # noqa: ARG002
        """The tags, each expected to fit so many things as votes say."""
        r = observations.responses
        n_tags, n_answers = count_tags(r), np.diff(r.offsets)
        is_yes = r.class_of_label[r.label] == 1
        votes = np.bincount(r.item_of_answer(), weights=is_yes, minlength=r.n_items) / np.maximum(n_answers, 1)
        answered = (n_answers > 0).reshape(-1, n_tags).all(axis=1)
        shares = votes.reshape(-1, n_tags)[answered].mean(axis=0) if answered.any() else np.full(n_tags, 0.5)
        return Sets(2, None, 0.0, self.estimation, freeze(np.clip(shares, LEAST_TAG_SHARE, 1 - LEAST_TAG_SHARE)))

    def explain(self, item: object) -> Any:
        """Return why a tag was given to an item or not, as `DawidSkene.explain` does.

        Parameters
        ----------
        item : id, or pair of an item and a tag
            The item. Without a tag there is an explanation for each, by tag.
        """
        kind, answers = kind_of(self.result_), self.result_.given.answers
        is_composite = answers is not None and bool(name_composite(answers.columns))
        if isinstance(item, tuple) and len(item) == 2 and lookup(kind.tags, to_column([item[1]]))[0] >= 0:
            return super().explain((tuples_to_ids(item[:1])[0] if is_composite else item[0], item[1]))
        if isinstance(item, tuple) and not is_composite:
            return super().explain(item)  # which says that there is no such tag
        key = tuples_to_ids([item])[0]
        return Explanations({str(tag): super(TagSets, self).explain((key, tag)) for tag in kind.tags.tolist()})

    def tag_report(self) -> Any:
        """Return a table with one row per tag.

        Columns: tag; share, of the items that it fits; given, the share of the sets that have it; misses and
        false_alarms of all workers together.
        """
        result = self.result_
        return build_report(
            report_tags(kind_of(result), self.tag_shares_, result.estimates.further["_tag_counts"]), result.backend
        )

    def worker_tag_report(self) -> Any:
        """Return a table with one row per worker and tag: worker, tag, answers, misses and false_alarms.

        The latter are estimates, which lean on the worker's other tags where answers are few.
        """
        result = self.result_
        counts = result.estimates.further["_tag_counts"]
        columns = report_workers_by_tag(kind_of(result), result.names.workers, counts, self.tag_confusion_)
        return build_report(columns, result.backend)
