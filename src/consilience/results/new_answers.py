"""What was learned, applied to new answers of the same workers: predictions, and a stream that is fitted in batches.

What is kept of the batches of a stream are statistics that add up, and nothing that grows with the number of answers.
With C the statistics of all batches so far (expected counts of answers, of classes and of transitions), the next batch
is fitted as if C were counted with it, and C becomes C plus the statistics of that batch. So a worker's matrix moves by
the share of new answers among all of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers, empty_responses
from ..answers.classes import find_by_value
from ..answers.columns import lookup, to_column
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..answers.item_tables import ItemPriors, list_items, match_item_prior
from ..answers.joining import grow
from ..engines import open_engine
from ..engines.base import Engine, Placed
from ..errors import (
    DataWarning,
    InputError,
    NotFittedError,
    ParameterError,
    Sentence,
    listing,
    quietly,
    shorten,
    warn,
)
from ..formats.reading import open_paths
from ..formats.sources import open_item_data
from ..inference import Distributions
from ..inference.em import Parameters, Problem, decode_labels, expect_from_votes, infer_posterior, maximise
from ..inference.estimator import LabelEstimator, LatentEstimator, Plan
from ..inference.guidance import Guide
from ..inference.learned import Before, as_used
from ..inference.levels import choose_labels
from ..inference.powers import raise_where
from ..inference.preconditions import check_prediction
from ..inference.sources import Source
from ..inference.structures import Statistics
from ..inference.votes import collect_votes, label_votes
from ..inference.workers.priors import make_pair
from ..inference.workers.rows import AnyFactors
from ..kernels import Floats, freeze
from ..limits import within
from .calibration import find_raised
from .fitting import align, check_content, find_features
from .intervals import Past
from .result import Given, Guidance, Labels, Result, find_known, weigh_copies


class NewItems(NamedTuple):
    """Other answers, ready for inference."""

    engine: Engine
    placed: list[Placed]
    graph: Graph | None
    factors: AnyFactors


class Applied(NamedTuple):
    """A model, what it found, and other answers to apply it to."""

    model: LabelEstimator
    fusion: Result
    source: Source
    graph: object = None
    gold: object = None
    engine: object = None

    @contextmanager
    def bring(self, known: Distributions, anchored: bool = True) -> Iterator[NewItems]:
        """Lay out the answers in blocks, with matrices that are known for their workers."""
        model, fusion = self.model, self.fusion
        r = model._prepare(self.source.responses)
        aligned = align(model, r, self.graph)
        links = None if aligned is None else model._weigh_links(r, aligned)
        label, worker = find_labels(model, fusion, r), find_workers(fusion, r)
        r = weigh_copies(fusion, r, worker)
        classes, learned = fusion.names.classes, fusion.learned
        class_of_label = lookup(classes, to_column(r.labels))
        kind = learned.worker_model
        workers = kind.of(r, class_of_label, len(classes), fusion.takes_silence, learned.said[label])
        check_prediction(fusion.model, workers)
        crowd = Distributions.known(learned.crowd)
        r = kind.read_as_before(r)
        weights = workers.adopt(known.weights, crowd.weights, worker, label)
        logs = workers.adopt(known.log_weights, crowd.log_weights, worker, label)
        factors = workers.factors(Distributions(weights, logs, weights, 0.0), r.amount is not None)
        # The fit may have added classes, which these answers do not know of.
        matched = match_gold(open_paths(self.gold), r, classes)
        source = replace(replace(self.source, responses=r).with_classes(classes), gold=matched)
        with open_engine(self.engine) as opened, within(r.memory):
            yield NewItems(opened, list(opened.place(source.lay_out(workers, anchored))), links, factors)

    def infer(self, to_calibrate: bool = False) -> Floats:
        """Return the posteriors that the estimates call for, or those that can be calibrated."""
        learned = self.fusion.learned
        structure = learned.structure.relaxed() if to_calibrate else learned.structure
        with self.bring(as_used(learned.log_weights), not to_calibrate) as new:
            return infer_posterior(new.engine, new.placed, new.factors, structure, new.graph)[0]

    def find_probabilities(self) -> Floats:
        """Return class probabilities, calibrated as those of the fit."""
        if self.fusion.is_vote:
            return self.share_votes()
        if not isinstance(self.model, LatentEstimator) or self.fusion.calibrated is None:
            return self.infer()
        plain = isinstance(self.model.calibration, str) and self.model.calibration == "none"
        posterior, power = self.infer(not plain), self.fusion.calibrated.found.power
        return raise_where(find_raised(self.fusion.learned.structure, self.source.responses), posterior, power)

    def share_votes(self) -> Floats:
        """Return vote shares; workers need not be known."""
        fusion, r = self.fusion, self.source.responses
        align(self.model, r, self.graph)
        r = r.with_classes(fusion.names.classes)
        r = weigh_copies(fusion, r, lookup(fusion.names.workers, to_column(r.workers)))
        known = match_gold(open_paths(self.gold), r, fusion.names.classes)
        unvoted = r.vote_shares() if r.silence_counts else fusion.prior
        with open_engine(self.engine) as opened:
            return collect_votes(opened, Source(r, known), unvoted)[0]

    def find_labels(self) -> Labels:
        """Return labels with their probabilities, chosen as those of the fit."""
        model, r, names = self.model, self.source.responses, self.fusion.names
        classes = names.classes
        gold = match_gold(open_paths(self.gold), model._prepare(r), classes)
        told, jointly = self._replace(gold=gold), model._rule == "sequence"
        probabilities = told.find_probabilities()
        if self.fusion.is_vote:
            ties, seed = model.get_params()["ties"], model.get_params()["seed"]
            codes = label_votes(probabilities, r.keys, classes, ties, model.label_by, seed)
        else:
            codes = told.decode() if jointly else choose_labels(probabilities, model.label_by)
        known, shown = find_known(gold, codes), self.fusion.labels.shown
        scale = classes, names.positions
        return Labels(r.key_columns(), *scale, codes, probabilities, None, known, model._rule, shown)

    def decode(self) -> NDArray[np.int64]:
        """Return the most probable joint labelling."""
        learned = self.fusion.learned
        with quietly(), self.bring(as_used(learned.log_weights)) as new:  # what is to be said was said just now
            return decode_labels(new.engine, new.placed, new.factors, learned.structure)

    def score(self) -> float:
        """Return the mean log likelihood of an item's answers, at the reported estimates."""
        learned = self.fusion.learned
        with self.bring(learned.reported()) as new:
            value = infer_posterior(new.engine, new.placed, new.factors, learned.structure.point(), new.graph)[1]
            return value / self.source.responses.n_items


def add_content(
    model: LabelEstimator, fusion: Result, r: Answers | None, features: object, item_prior: object
) -> Source:
    """Return other answers with what is known of the items, relative to class shares of the fit."""
    if features is None and item_prior is None:
        assert r is not None
        return Source(r)
    check_content(model, features, item_prior)
    names = fusion.names
    if features is not None:
        features = open_item_data(features, "features")
    if r is None:
        keys = list_items(features, in_sequences="sequence" in fusion.labels.keys)
        r = empty_responses(keys, names.workers, names.labels, names.classes, names.normalised)
        r = r.scaled_as(names.classes, names.positions)
    r = model._prepare(r).with_classes(names.classes)
    source = Source(r)
    if item_prior is not None:
        source = source.with_priors(match_item_prior(open_item_data(item_prior, "item_prior"), r), fusion.prior)
    if features is None:
        return source
    found, given = need_guidance(fusion), find_features(model, features, r)
    rows = given.select(found.names, found.findings.n_features)
    if not found.findings.used:
        return source
    guide = need_guide(found)
    return source.with_priors(ItemPriors(given.item, guide.find_priors(rows)), guide.shares)


def need_guidance(fusion: Result) -> Guidance:
    """Return what features were found to say, if there were any."""
    if fusion.guidance is None:
        raise NotFittedError(f"This {fusion.model} was fitted without features.", Sentence("Fit it with {features}."))
    return fusion.guidance


def need_guide(found: Guidance) -> Guide:
    """Return the classifier of features that have a say, if it is there."""
    if found.guide is None:
        raise NotFittedError(
            "The classifier of this model was not saved with it: only the default classifier is.",
            "Fit the model again.",
        )
    return found.guide


def find_labels(model: LabelEstimator, fusion: Result, r: Answers) -> NDArray[np.int64]:
    """Return the index of each label at the fit."""
    names = fusion.names
    label = find_by_value(names.labels, r.labels)
    if (label < 0).any():
        raise InputError(
            f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
            f"model knows {listing(names.labels.tolist())}.",
            "Fit again with both.",
        )
    check_silence(model, fusion, r)
    if model._needs_same_silence and r.silence_counts and lookup(names.classes, to_column([r.background]))[0] < 0:
        raise InputError(
            f"The background of the answers, {shorten(r.background)}, is no class of the model, which knows "
            f"{listing(names.classes.tolist())}.",
            Sentence("Read them with the same {background}."),
        )
    return label


def check_silence(model: LabelEstimator, fusion: Result, r: Answers) -> None:
    """Raise an error unless silence is an answer here if it was one at the fit."""
    if model._needs_same_silence and r.silence_counts != fusion.takes_silence:
        raise InputError(
            "The answers must take silence as the fit did.", Sentence("Read them with the same {abstain}.")
        )


def find_workers(fusion: Result, r: Answers) -> NDArray[np.int64]:
    """Return the index of each worker at the fit, -1 for those who were not there."""
    worker = lookup(fusion.names.workers, to_column(r.workers))
    if (worker < 0).any():
        warn(
            DataWarning(
                f"{int((worker < 0).sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                f"{listing(r.workers[worker < 0].tolist())}. They are taken to answer as the crowd does on the "
                "whole."
            )
        )
    return worker


def fit_first(model: LatentEstimator, r: Answers, gold: object, engine: object) -> Result:
    """Return what is found in the first batch."""
    r = model._prepare(r)
    source = Source(r, match_gold(open_paths(gold), r, r.classes))
    model._check_size(r, None)
    with open_engine(engine) as opened:
        plan = model._plan(source, None, opened)
        problem = plan.problem
        nothing = np.zeros((problem.workers.n_rows, r.n_classes))
        earlier = Statistics(nothing, problem.structure.one_of_each(r.label_of_class >= 0))
        plan = plan._replace(problem=replace(problem, earlier=earlier))
        found: Result = model._learn(source, None, opened, plan=plan)
    given = found.given._replace(gold=source.gold)
    return replace(found, given=given, n_batches=1, chance=None, raters=None)


def fit_next(model: LatentEstimator, before: Result, r: Answers, gold: object, engine: object) -> Result:
    """Return what is found in one more batch and all before."""
    past, names = need_past(model, before), before.names
    r = model._prepare(r)
    check_silence(model, before, r)
    r = model._prepare(grow(r, names.workers, names.labels, names.classes, names.positions))
    source = Source(r, match_gold(open_paths(gold), r, r.classes))
    model._check_size(r, None)
    r = before.learned.worker_model.read_as_before(r)
    source = replace(source, responses=r)
    worker = lookup(r.workers, to_column(names.workers))
    copies = [worker[group].tolist() for group in before.copies]
    used = source.count_once(copies) if before.copies_count_once else source
    n_answers = np.zeros(r.n_workers, np.int64)
    n_answers[worker] = before.n_answers
    smoothing, scores = before.course.smoothing, before.coupling_scores
    used = replace(used, before=Before(False, names, before.learned, smoothing, before.coupling, scores))
    with open_engine(engine) as opened:
        problem = model._pose(used, None, opened)
        past, earlier = carry_over(before, past, r, problem)
        said = add_shares(before, used.responses, float(earlier.counts.sum()))
        problem = replace(problem, earlier=earlier, workers=replace(problem.workers, said=said))
        kept = scores if model._learns_coupling else []
        plan = Plan(problem, find_starts(before, used.responses, problem), kept)
        found: Result = model._learn(used, None, opened, plan=plan, before=before.calibrated, past=past)
    return replace(
        found,
        n_answers=n_answers + found.n_answers,
        copies=copies,
        copies_count_once=before.copies_count_once,
        given=Given(gold=source.gold),
        n_batches=max(before.n_batches, 1) + 1,  # what `fit` learned from is the first one
    )


def carry_over(before: Result, past: Past, r: Answers, problem: Problem) -> tuple[Past, Statistics]:
    """The sums and statistics of earlier batches, for the workers, labels and classes of this one."""
    from ..kernels.answers import SMALLEST

    names, learned = before.names, before.learned
    pairs = (r.workers, names.workers), (r.labels, names.labels), (r.classes, names.classes)
    worker, label, klass = (lookup(new, to_column(old)) for new, old in pairs)
    past = embed_past(past, worker, r.n_workers, klass, r.n_classes)
    counts = problem.workers.embed_counts(learned.counts, learned.further, worker, (label, klass))
    summary = past.summary + problem.structure.one_of_each(find_new_classes(before, r))
    if not problem.weighted:  # the M-step takes these for 0, and the objective would be minus infinity
        counts[np.abs(counts) < SMALLEST * problem.n_responses] = 0.0
    return past, Statistics(counts, summary)


def embed_past(past: Past, worker: NDArray[np.int64], n_workers: int, klass: NDArray[np.int64], n_classes: int) -> Past:
    """The same for more workers and classes, whose indices among these are given."""

    def embed(array: Floats, n_before: int, place: NDArray[np.int64], size: int) -> Floats:
        """An array whose axes, but for the first `n_before`, are workers or classes."""
        before, n_axes = array.shape[:n_before], array.ndim - n_before
        embedded = np.zeros((*before, *(size,) * n_axes))
        embedded[np.ix_(*map(np.arange, before), *(place,) * n_axes)] = array
        return embedded

    classes, sums = (klass, n_classes), past.sums
    counts = {name: array for name, array in vars(past.summary).items() if name != "log_normaliser"}
    summary: dict[str, Any] = {name: embed(array, 0, *classes) for name, array in counts.items()}
    both = np.append(klass, n_classes + klass), 2 * n_classes
    return Past(
        replace(past.summary, log_normaliser=0.0, **summary),
        sums._replace(
            chances=embed(sums.chances, 1, worker, n_workers),
            judged=embed(sums.judged, 1, worker, n_workers),
            scores=embed(sums.scores, 1, *both) if sums.scores.size else sums.scores,
            lack=embed(sums.lack, 0, *classes),
            moments=embed(sums.moments, 1, *classes),
            meant=embed(sums.meant, 0, *classes),
        ),
    )


def add_shares(before: Result, r: Answers, n_earlier: float) -> Floats:
    """Return the share of each label in the answers of this batch and in those before, of which so many count."""
    earlier = np.zeros(r.n_labels)
    earlier[lookup(r.labels, to_column(before.names.labels))] = before.learned.said
    n_new = float(r.n_responses if r.weight is None else r.weight.sum())
    return freeze((n_earlier * earlier + n_new * r.label_shares()) / max(n_earlier + n_new, 1e-300))


def find_new_classes(before: Result, r: Answers) -> NDArray[np.bool_]:
    """Tell which classes no label has named before."""
    classes = before.names.classes
    named = classes[lookup(before.names.labels, to_column(classes)) >= 0]
    return (r.label_of_class >= 0) & (lookup(named, to_column(r.classes)) < 0)


def need_past(model: LatentEstimator, before: Result) -> Past:
    """Return what is kept of earlier batches, or say why there is nothing."""
    if before.guidance is not None and before.guidance.findings.used:
        raise ParameterError(
            "This model was fitted with features, which batches do not have.",
            "Start from a model without them.",
            keyword="features",
        )
    kind = before.learned.kind
    if kind != model.workers:
        raise ParameterError(
            f"This model was fitted with workers={kind!r}, whose counts are of another kind than those of "
            f"{model.workers!r}.",
            Sentence("Keep {workers}.", workers=kind),
            keyword="workers",
        )
    past = before.past
    if past is None:
        raise NotFittedError("This model does not hold what further batches need.", "Fit the model again.")
    return past


def find_starts(before: Result, r: Answers, problem: Problem) -> dict[str, Parameters]:
    """Return where to start: at what earlier batches teach.

    If there are new classes, or more answers than before, votes are another start.
    """
    assert problem.earlier is not None
    prior, smoothing = problem.prior, before.course.smoothing
    if prior.parts is not None and smoothing is not None and min(smoothing) > 0:
        prior = make_pair(prior, prior.parts, smoothing)
    starts = {"earlier": maximise(problem, problem.earlier, prior)}
    if find_new_classes(before, r).any() or r.weights().sum() > problem.earlier.counts.sum():
        starts["majority"] = maximise(problem, expect_from_votes(problem), prior)
    return starts
