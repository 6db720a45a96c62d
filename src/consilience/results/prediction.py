"""What was learned, applied to other answers of the same workers: an E-step whose parameters stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers, empty_responses
from ..answers.classes import find_by_value
from ..answers.columns import lookup, to_column
from ..answers.gold import match_gold
from ..answers.items import ItemPriors, list_items, match_item_prior
from ..engines import open_engine
from ..errors import DataWarning, InputError, Sentence, listing, shorten, warn
from ..formats.reading import open_paths
from ..formats.sources import open_item_data
from ..inference import log_of
from ..inference.em import decode_labels, infer_posterior
from ..inference.estimator import LabelEstimator, LatentEstimator
from ..inference.hidden_answers import raise_where
from ..inference.labels import choose_labels, collect_votes, label_votes
from ..inference.sources import Source
from ..inference.starts import PREDICTION_TABLES, check_matrices
from ..inference.structures import StructureParameters
from ..kernels import Floats
from ..limits import keep_to
from .calibration import find_raised
from .fitting import align, check_content, find_features
from .result import Labels, Result, weigh_copies


class Others:
    """Other answers of the workers of a fit, with what was learned of these."""

    def __init__(
        self,
        model: LabelEstimator,
        found: Result,
        r: Answers | None,
        graph: object,
        gold: object,
        features: object = None,
        item_prior: object = None,
    ) -> None:
        self.model, self.found = model, found
        source = add_content(model, found, r, features, item_prior)
        model._prepare(source.responses)
        self.graph = align(model, source.responses, graph)
        # The fit may have added classes, which these answers do not know of.
        known = match_gold(open_paths(gold), source.responses, found.names.classes)
        self.source = replace(source, gold=known)
        self.worker = lookup(found.names.workers, to_column(source.responses.workers))

    def check(self) -> NDArray[np.int64]:
        """Raise an error for answers that the matrices of the fit cannot judge; else the label of each of theirs."""
        model, r, names = self.model, self.source.responses, self.found.names
        label = find_by_value(names.labels, r.labels)
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(names.labels.tolist())}.",
                "Fit again with both.",
            )
        check_silence(model, self.found, r)
        if model._needs_same_silence and r.silence_counts and lookup(names.classes, to_column([r.background]))[0] < 0:
            raise InputError(
                f"The background of the answers, {shorten(r.background)}, is no class of the model, which knows "
                f"{listing(names.classes.tolist())}.",
                Sentence("Read them with the same {background}."),
            )
        new = self.worker < 0
        if new.any():
            warn(
                DataWarning(
                    f"{int(new.sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                    f"{listing(r.workers[new].tolist())}. They are taken to answer as the crowd does on the whole."
                )
            )
        return label

    def infer(
        self,
        engine: object,
        label: NDArray[np.int64],
        structure: StructureParameters,
        log_weights: Floats,
        *,
        anchored: bool = True,
        decodes: bool = False,
    ) -> tuple[Any, float]:
        """The posteriors that parameters call for, and their log likelihood; or the most probable joint labelling."""
        found, r, names, learned = self.found, self.source.responses, self.found.names, self.found.learned
        links = None if self.graph is None else self.model._weigh_links(r, self.graph)
        kind, class_of_label = learned.worker_model, lookup(names.classes, to_column(r.labels))
        r = replace(weigh_copies(found, r, self.worker), weight_scale=learned.weight_scale)
        workers = kind.of(r, class_of_label, len(names.classes), found.takes_silence)
        check_matrices(found.model, workers, r, PREDICTION_TABLES)
        factors = workers.factors(workers.adopt(log_weights, log_of(learned.crowd), self.worker, label))
        source = replace(self.source, responses=kind.read_as_before(r)).with_classes(names.classes)
        with open_engine(engine) as opened, keep_to(r.memory):
            placed = list(opened.place(source.lay_out(workers, anchored)))
            if decodes:
                return decode_labels(opened, placed, factors, structure), 0.0
            return infer_posterior(opened, placed, factors, structure, links)

    def find_probabilities(self, engine: object) -> Floats:
        """Class probabilities, calibrated as those of the fit; of a vote its shares, for which no worker is known."""
        model, found, r, learned = self.model, self.found, self.source.responses, self.found.learned
        if found.is_vote:
            r = weigh_copies(found, r.with_classes(found.names.classes), self.worker)
            unvoted = r.vote_shares() if r.silence_counts else found.prior
            with open_engine(engine) as opened:
                return collect_votes(opened, Source(r, self.source.gold), unvoted)[0]
        label = self.check()
        if found.calibrated is None or not isinstance(model, LatentEstimator) or model.calibration == "none":
            posterior: Floats = self.infer(engine, label, learned.structure, learned.log_weights)[0]
        else:
            relaxed = learned.structure.relaxed()
            posterior = self.infer(engine, label, relaxed, learned.log_weights, anchored=False)[0]
        if found.calibrated is None:
            return posterior
        return raise_where(find_raised(learned.structure, r), posterior, found.calibrated.found.power)

    def find_labels(self, engine: object) -> Labels:
        """Labels with their probabilities, chosen as those of the fit."""
        model, found, r, names = self.model, self.found, self.source.responses, self.found.names
        probabilities, gold = self.find_probabilities(engine), self.source.gold
        if found.is_vote:
            ties, seed = model.get_params()["ties"], model.get_params()["seed"]
            codes = label_votes(probabilities, r.keys, names.classes, ties, model.label_by, seed)
        elif model._rule == "sequence":  # the most probable joint labelling
            learned, label = found.learned, find_by_value(names.labels, r.labels)
            codes = self.infer(engine, label, learned.structure, learned.log_weights, decodes=True)[0]
        else:
            codes = choose_labels(probabilities, model.label_by)
        known = None if gold is None else gold.find_kept(codes)
        keys, scale, shown = r.key_columns(), (names.classes, names.positions), found.labels.shown
        return Labels(keys, *scale, codes, probabilities, None, known, model._rule, shown)

    def score(self, engine: object) -> float:
        """The mean log likelihood of an item's answers, at the reported estimates."""
        learned = self.found.learned
        value = self.infer(engine, self.check(), learned.structure.point(), learned.reported())[1]
        return value / self.source.responses.n_items


def add_content(
    model: LabelEstimator, found: Result, r: Answers | None, features: object, item_prior: object
) -> Source:
    """Other answers with what is known of the items, relative to class shares of the fit."""
    if features is None and item_prior is None:
        assert r is not None
        return Source(r)
    check_content(model)
    names = found.names
    if features is not None:
        features = open_item_data(features, "features")
    if r is None:
        keys = list_items(features, in_sequences="sequence" in found.labels.keys)
        r = empty_responses(keys, names.workers, names.labels, names.classes, names.normalised)
        r = r.scaled_as(names.classes, names.positions)
    model._prepare(r)
    source = Source(r.with_classes(names.classes))
    if item_prior is not None:
        priors = match_item_prior(open_item_data(item_prior, "item_prior"), source.responses)
        source = source.with_priors(priors, found.prior)
    if features is None:
        return source
    guidance, given = found.need_guidance(), find_features(model, features, source.responses)
    rows = given.select(guidance.names, guidance.findings.n_features)
    if not guidance.findings.used:
        return source
    guide = guidance.need_guide()
    return source.with_priors(ItemPriors(given.item, guide.find_priors(rows)), guide.shares)


def check_silence(model: LabelEstimator, found: Result, r: Answers) -> None:
    """Raise an error unless silence is an answer here if it was one at the fit."""
    if model._needs_same_silence and r.silence_counts != found.takes_silence:
        raise InputError(
            "The answers must take silence as the fit did.", Sentence("Read them with the same {abstain}.")
        )
