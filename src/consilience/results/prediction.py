"""What was learned, applied to other answers of the same workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from ..answers.answers import Answers, empty_responses
from ..answers.classes import find_by_value
from ..answers.columns import lookup, to_column
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..answers.item_tables import ItemPriors, list_items, match_item_prior
from ..engines import Engine, Placed, open_engine
from ..errors import (
    DataWarning,
    InputError,
    NotFittedError,
    Sentence,
    listing,
    quietly,
    shorten,
    warn,
)
from ..formats.reading import open_paths
from ..formats.sources import open_item_data
from ..inference import log_of
from ..inference.em import decode_labels, infer_posterior
from ..inference.estimator import LabelEstimator, LatentEstimator
from ..inference.guidance import Guide
from ..inference.hidden_answers import raise_where
from ..inference.levels import choose_labels
from ..inference.sources import Source
from ..inference.starts import check_prediction
from ..inference.votes import collect_votes, label_votes
from ..inference.workers.rows import AnyFactors
from ..kernels import Floats
from ..limits import keep_to
from .calibration import find_raised
from .fitting import align, check_content, find_features
from .result import Guidance, Labels, Result, weigh_copies


class Applied(NamedTuple):
    """A model, what it found, and other answers to apply it to."""

    model: LabelEstimator
    fusion: Result
    source: Source
    graph: object = None
    gold: object = None
    engine: object = None

    @contextmanager
    def lay_out(
        self, log_weights: Floats, anchored: bool = True
    ) -> Iterator[tuple[Engine, list[Placed], AnyFactors, Graph | None]]:
        """The answers in blocks, what they say by matrices that are known for their workers, and the graph."""
        model, found, names = self.model, self.fusion, self.fusion.names
        r = self.source.responses
        model._prepare(r)
        aligned = align(model, r, self.graph)
        links = None if aligned is None else model._weigh_links(r, aligned)
        label, worker = find_by_value(names.labels, r.labels), lookup(names.workers, to_column(r.workers))
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(names.labels.tolist())}.",
                "Fit again with both.",
            )
        check_silence(model, found, r)
        if model._needs_same_silence and r.silence_counts and lookup(names.classes, to_column([r.background]))[0] < 0:
            raise InputError(
                f"The background of the answers, {shorten(r.background)}, is no class of the model, which knows "
                f"{listing(names.classes.tolist())}.",
                Sentence("Read them with the same {background}."),
            )
        new = worker < 0
        if new.any():
            warn(
                DataWarning(
                    f"{int(new.sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                    f"{listing(r.workers[new].tolist())}. They are taken to answer as the crowd does on the whole."
                )
            )
        learned = found.learned
        r = replace(weigh_copies(found, r, worker), weight_scale=learned.weight_scale)
        kind, class_of_label = learned.worker_model, lookup(names.classes, to_column(r.labels))
        workers = kind.of(r, class_of_label, len(names.classes), found.takes_silence)
        check_prediction(found.model, workers)
        r = kind.read_as_before(r)
        factors = workers.factors(workers.adopt(log_weights, log_of(learned.crowd), worker, label))
        # The fit may have added classes, which these answers do not know of.
        matched = match_gold(open_paths(self.gold), r, names.classes)
        source = replace(replace(self.source, responses=r).with_classes(names.classes), gold=matched)
        with open_engine(self.engine) as opened, keep_to(r.memory):
            yield opened, list(opened.place(source.lay_out(workers, anchored))), factors, links

    def infer(self, to_calibrate: bool = False) -> Floats:
        """The posteriors that the estimates call for, or those that can be calibrated."""
        learned = self.fusion.learned
        structure = learned.structure.relaxed() if to_calibrate else learned.structure
        with self.lay_out(learned.log_weights, not to_calibrate) as (engine, placed, factors, links):
            return infer_posterior(engine, placed, factors, structure, links)[0]

    def find_probabilities(self) -> Floats:
        """Class probabilities, calibrated as those of the fit; of a vote its shares, for which no worker is known."""
        model, found, r = self.model, self.fusion, self.source.responses
        if found.is_vote:
            align(model, r, self.graph)
            r = r.with_classes(found.names.classes)
            r = weigh_copies(found, r, lookup(found.names.workers, to_column(r.workers)))
            gold = match_gold(open_paths(self.gold), r, found.names.classes)
            unvoted = r.vote_shares() if r.silence_counts else found.prior
            with open_engine(self.engine) as opened:
                return collect_votes(opened, Source(r, gold), unvoted)[0]
        if not isinstance(model, LatentEstimator) or found.calibrated is None:
            return self.infer()
        plain = isinstance(model.calibration, str) and model.calibration == "none"
        raised = find_raised(found.learned.structure, r)
        return raise_where(raised, self.infer(not plain), found.calibrated.found.power)

    def find_labels(self) -> Labels:
        """Labels with their probabilities, chosen as those of the fit."""
        model, r, names = self.model, self.source.responses, self.fusion.names
        gold = match_gold(open_paths(self.gold), r, names.classes)
        matched = self._replace(gold=gold)
        probabilities = matched.find_probabilities()
        if self.fusion.is_vote:
            ties, seed = model.get_params()["ties"], model.get_params()["seed"]
            codes = label_votes(probabilities, r.keys, names.classes, ties, model.label_by, seed)
        elif model._rule == "sequence":  # the most probable joint labelling; what is to be said was said just now
            learned = self.fusion.learned
            with quietly(), matched.lay_out(learned.log_weights) as (engine, placed, factors, _):
                codes = decode_labels(engine, placed, factors, learned.structure)
        else:
            codes = choose_labels(probabilities, model.label_by)
        known, shown = None if gold is None else gold.find_kept(codes), self.fusion.labels.shown
        scale = names.classes, names.positions
        return Labels(r.key_columns(), *scale, codes, probabilities, None, known, model._rule, shown)

    def score(self) -> float:
        """The mean log likelihood of an item's answers, at the reported estimates."""
        learned = self.fusion.learned
        with self.lay_out(learned.reported()) as (engine, placed, factors, links):
            value = infer_posterior(engine, placed, factors, learned.structure.point(), links)[1]
            return value / self.source.responses.n_items


def add_content(
    model: LabelEstimator, fusion: Result, r: Answers | None, features: object, item_prior: object
) -> Source:
    """Other answers with what is known of the items, relative to class shares of the fit."""
    if features is None and item_prior is None:
        assert r is not None
        return Source(r)
    check_content(model)
    names = fusion.names
    if features is not None:
        features = open_item_data(features, "features")
    if r is None:
        keys = list_items(features, in_sequences="sequence" in fusion.labels.keys)
        r = empty_responses(keys, names.workers, names.labels, names.classes, names.normalised)
        r = r.scaled_as(names.classes, names.positions)
    model._prepare(r)
    r = r.with_classes(names.classes)
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
    """What features were found to say, if there were any."""
    if fusion.guidance is None:
        raise NotFittedError(f"This {fusion.model} was fitted without features.", Sentence("Fit it with {features}."))
    return fusion.guidance


def need_guide(found: Guidance) -> Guide:
    """The classifier of features that have a say, if it is there."""
    if found.guide is None:
        raise NotFittedError(
            "The classifier of this model was not saved with it: only the default classifier is.",
            "Fit the model again.",
        )
    return found.guide


def check_silence(model: LabelEstimator, fusion: Result, r: Answers) -> None:
    """Raise an error unless silence is an answer here if it was one at the fit."""
    if model._needs_same_silence and r.silence_counts != fusion.takes_silence:
        raise InputError(
            "The answers must take silence as the fit did.", Sentence("Read them with the same {abstain}.")
        )
