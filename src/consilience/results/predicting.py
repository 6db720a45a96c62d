"""What was learned, applied to other items of the same workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_column
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..answers.item_tables import ItemPriors, list_items, match_item_prior
from ..answers.responses import Responses, empty_responses
from ..answers.vocabulary import lookup
from ..engines import open_engine
from ..engines.base import Engine, Placed
from ..errors import DataWarning, InputError, NotFittedError, Sentence, listing, shorten, warn
from ..formats.reading import open_paths
from ..formats.sources import open_item_data
from ..inference.distributions import Distributions
from ..inference.em import decode_labels, infer_posterior
from ..inference.guidance import Guide
from ..inference.learned import as_used
from ..inference.powers import raise_where
from ..inference.preconditions import check_prediction
from ..inference.recipes.base import LatentRecipe, Recipe
from ..inference.recipes.independent import VoteRecipe, collect_votes
from ..inference.sources import InMemory, count_once, number_groups
from ..inference.workers.rows import Factors
from ..kernels.types import Floats
from .fitting import find_features
from .fusion import Fusion, Guidance, Labels


class NewItems(NamedTuple):
    """Other answers, ready for inference."""

    engine: Engine
    placed: list[Placed]
    graph: Graph | None
    factors: Factors


class Applied(NamedTuple):
    """A recipe, what it found, and other answers to apply it to."""

    recipe: Recipe
    fusion: Fusion
    source: InMemory
    graph: object = None
    gold: object = None
    engine: object = None

    @contextmanager
    def bring(self, known: Distributions, anchored: bool = True) -> Iterator[NewItems]:
        """Lay out the answers in blocks, with matrices that are known for their workers."""
        recipe, fusion = self.recipe, self.fusion
        r = recipe.check_answers(self.source.responses)
        links = recipe.weigh_links(r, recipe.align(r, self.graph))
        label, worker = find_labels(recipe, fusion, r), find_workers(fusion, r)
        r = weigh_copies(fusion, r, worker)
        classes, learned = fusion.names.classes, fusion.learned
        class_of_label = lookup(classes, to_column(r.labels))
        kind = learned.worker_model
        workers = kind(r.n_workers, class_of_label, len(classes), fusion.takes_silence, r.silence_weight)
        check_prediction(recipe.model, workers)
        crowd = Distributions.known(learned.crowd)
        weights = workers.adopt(known.weights, crowd.weights, worker, label)
        logs = workers.adopt(known.log_weights, crowd.log_weights, worker, label)
        factors = workers.factors(Distributions(weights, logs, weights, 0.0), r.weight is not None)
        # The fit may have added classes, which these answers do not know of.
        matched = match_gold(open_paths(self.gold), r, classes)
        source = replace(replace(self.source, responses=r).with_classes(classes), gold=matched)
        with open_engine(self.engine) as opened:
            yield NewItems(opened, list(opened.place(source.lay_out(workers, anchored))), links, factors)

    def infer(self, to_calibrate: bool = False) -> Floats:
        """Return the posteriors that the estimates call for, or those that can be calibrated."""
        learned = self.fusion.learned
        structure = learned.structure.relaxed() if to_calibrate else learned.structure
        with self.bring(as_used(learned.log_weights), not to_calibrate) as new:
            return infer_posterior(new.engine, new.placed, new.factors, structure, new.graph)[0]

    def find_probabilities(self) -> Floats:
        """Return class probabilities, calibrated as those of the fit."""
        if isinstance(self.recipe, VoteRecipe):
            return self.share_votes()
        if not isinstance(self.recipe, LatentRecipe) or self.fusion.calibrated is None:
            return self.infer()
        plain = isinstance(self.recipe.calibration, str) and self.recipe.calibration == "none"
        posterior, power = self.infer(not plain), self.fusion.calibrated.found.power
        return raise_where(self.recipe.find_raised(self.source.responses), posterior, power)

    def share_votes(self) -> Floats:
        """Return vote shares; workers need not be known."""
        fusion, r = self.fusion, self.source.responses
        self.recipe.align(r, self.graph)
        r = r.with_classes(fusion.names.classes)
        r = weigh_copies(fusion, r, lookup(fusion.names.workers, to_column(r.workers)))
        known = match_gold(open_paths(self.gold), r, fusion.names.classes)
        unvoted = r.vote_shares() if r.silence_counts else fusion.prior
        with open_engine(self.engine) as opened:
            return collect_votes(opened, InMemory(r, known), unvoted)[0]

    def find_labels(self) -> NDArray[np.int64]:
        """Return labels, chosen as those of the fit."""
        recipe, fusion = self.recipe, self.fusion
        if isinstance(recipe, VoteRecipe):
            return recipe.break_ties(self.share_votes(), self.source.responses.keys, fusion.names.classes)
        if not isinstance(recipe, LatentRecipe) or not recipe.decodes_jointly:
            return np.asarray(self.infer().argmax(axis=1))
        learned = fusion.learned
        with self.bring(as_used(learned.log_weights)) as new:
            return decode_labels(new.engine, new.placed, new.factors, learned.structure, new.graph)

    def find_both(self, codes: NDArray[np.int64]) -> Labels:
        """Return labels with their probabilities."""
        keys, classes = self.source.responses.key_columns(), self.fusion.names.classes
        return Labels(keys, classes, codes, self.find_probabilities())

    def score(self) -> float:
        """Return the mean log likelihood of an item's answers, at the reported estimates."""
        learned = self.fusion.learned
        with self.bring(learned.reported()) as new:
            value = infer_posterior(new.engine, new.placed, new.factors, learned.structure.point(), new.graph)[1]
            return value / self.source.responses.n_items


def add_content(recipe: Recipe, fusion: Fusion, r: Responses | None, features: object, item_prior: object) -> InMemory:
    """Return other answers with what is known of the items, relative to class shares of the fit."""
    if features is None and item_prior is None:
        assert r is not None
        return InMemory(r)
    recipe.check_content(features, item_prior)
    names = fusion.names
    if features is not None:
        features = open_item_data(features, "features")
    if r is None:
        keys = list_items(features, in_sequences="sequence" in fusion.labels.keys)
        r = empty_responses(keys, names.workers, names.labels, names.classes, names.normalised)
    r = recipe.check_answers(r).with_classes(names.classes)
    source = InMemory(r)
    if item_prior is not None:
        source = source.with_priors(match_item_prior(open_item_data(item_prior, "item_prior"), r), fusion.prior)
    if features is None:
        return source
    found, given = need_guidance(fusion), find_features(recipe, features, r)
    rows = given.select(found.names, found.findings.n_features)
    if not found.findings.used:
        return source
    guide = need_guide(found)
    return source.with_priors(ItemPriors(given.item, guide.find_priors(rows)), guide.shares)


def need_guidance(fusion: Fusion) -> Guidance:
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


def weigh_copies(fusion: Fusion, r: Responses, worker: NDArray[np.int64]) -> Responses:
    """Return answers as the fit took its own; `worker` is the index of each of their workers at the fit."""
    if not fusion.copies_count_once:
        return r
    groups = number_groups(fusion.copies, len(fusion.names.workers) + 1)
    return count_once(r, groups[worker])  # -1 is a worker who was not there


def find_labels(recipe: Recipe, fusion: Fusion, r: Responses) -> NDArray[np.int64]:
    """Return the index of each label at the fit."""
    names = fusion.names
    label = lookup(names.labels, to_column(r.labels))
    if (label < 0).any():
        raise InputError(
            f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
            f"model knows {listing(names.labels.tolist())}.",
            "Fit again with both.",
        )
    check_silence(recipe, fusion, r)
    if recipe.needs_same_silence and r.silence_counts and lookup(names.classes, to_column([r.background]))[0] < 0:
        raise InputError(
            f"The background of the answers, {shorten(r.background)}, is no class of the model, which knows "
            f"{listing(names.classes.tolist())}.",
            Sentence("Read them with the same {background}."),
        )
    return label


def check_silence(recipe: Recipe, fusion: Fusion, r: Responses) -> None:
    """Raise an error unless silence is an answer here if it was one at the fit."""
    if recipe.needs_same_silence and r.silence_counts != fusion.takes_silence:
        raise InputError(
            "The answers must take silence as the fit did.", Sentence("Read them with the same {abstain}.")
        )


def find_workers(fusion: Fusion, r: Responses) -> NDArray[np.int64]:
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
