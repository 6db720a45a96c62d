"""From answers to a result, which is computed once at the end of a fit, and what it says of other answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers, empty_responses
from ..answers.classes import find_by_value
from ..answers.columns import lookup, to_column
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..engines import Engine, open_engine
from ..errors import DataWarning, InputError, ParameterError, Python, Sentence, listing, parameter_error, shorten, warn
from ..inference.copies import find_groups
from ..inference.distributions import log_of
from ..inference.em import Names, decode_labels, infer_posterior
from ..inference.estimator import LabelEstimator, LatentEstimator
from ..inference.hidden_answers import CouplingScore, raise_where
from ..inference.labels import choose_labels, collect_votes, label_votes
from ..inference.observations import Observations
from ..inference.starts import PREDICTION_TABLES, check_matrices
from ..inference.structures import Independent, StructureParameters, Summary
from ..inference.teaching import compare_logs
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind
from ..limits import keep_to, release_mapped
from ..options import check
from .calibration import find_raised
from .intervals import Intervals, are_checked, find_vote_intervals
from .result import Course, FitResult, Given, Labels, Result, weigh_copies

NOTHING_CHOSEN = Given()


def make_observations(
    model: LabelEstimator,
    answers: Answers | None,
    gold: object = None,
    features: object = None,
    item_prior: object = None,
    kind: AnyKind = TABLE,
    before: Result | None = None,
    teach: str | bool = "auto",
) -> Observations:
    """Answers with known labels, and with what else is known of the items; `teach` is whether known labels teach.

    To be fitted they have the classes that the model needs. Other answers, of workers that a result `before` knows,
    have its classes, and what its classifier says of features. They may be None: all that is known is in features.
    """
    model._check()
    observations, has_content = None if answers is None else Observations(answers, kind=kind), False
    if features is not None or item_prior is not None:
        from ..answers.features import list_items, match_features
        from ..answers.item_priors import ItemPriors, class_shares, match_item_prior, vote_shares_by_item
        from ..formats.sources import open_item_data

        has_content = True
        if not model._takes_content:
            raise ParameterError(
                f"{type(model).__name__} takes neither features nor priors of items.",
                Sentence("Choose another, such as {model}.", model=Python("DawidSkene()", "dawid-skene")),
                keyword="model",
            )
        if features is not None and before is None and model.get_params()["max_iter"] == 0:
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and no classifier can learn from features.",
                "Allow some iterations, or leave out the features.",
                keyword="max_iter",
            )
        features = None if features is None else open_item_data(features, "features")
    if observations is None:
        assert before is not None
        names, keys = before.names, list_items(features, in_sequences="sequence" in before.labels.keys)
        r = empty_responses(keys, names.workers, names.labels, names.classes, names.normalised)
        observations = Observations(r.scaled_as(names.classes, names.positions))
    r = model._prepare(observations.responses)
    if before is None:
        observations = replace(observations, responses=r)
    elif has_content:
        observations = observations.with_classes(before.names.classes)
    r = observations.responses
    if item_prior is not None:
        priors = match_item_prior(open_item_data(item_prior, "item_prior"), r)
        shares = class_shares(priors, vote_shares_by_item(r)) if before is None else before.prior
        observations = observations.with_priors(priors, shares)
    if features is not None:
        given = match_features(features, r)
        if before is None:
            observations = replace(observations, features=given)
        else:
            feature_result = before.need_features()
            rows = given.select(feature_result.names, feature_result.findings.n_features)
            if feature_result.findings.used:
                classifier = feature_result.classifier
                assert classifier is not None
                observations = observations.with_priors(
                    ItemPriors(given.item, classifier.find_priors(rows)), classifier.shares
                )
    classes = r.classes if before is None else before.names.classes
    check("teach", teach, type(model).__name__)
    if teach is True and not isinstance(model, LatentEstimator):
        problem = f"To {type(model).__name__}, known labels tell nothing of workers."
        raise ParameterError(problem, Sentence("Leave out {teach}.", teach=None), keyword="teach")
    observations = replace(observations, teach=teach if isinstance(teach, bool) else None)
    return observations if gold is None else replace(observations, gold=match_gold(gold, r, classes))


def align(model: LabelEstimator, r: Answers, graph: object) -> Graph | None:
    """The graph with the items of the answers as its nodes; None for models that take none."""
    name = type(model).__name__
    if not model._takes_graph:
        if graph is None:
            return None
        raise ParameterError(
            f"{name} takes no graph.",
            Sentence("Leave out {graph}."),
            Sentence("Or use {model}.", model=Python("MarkovField", "markov-field")),
            keyword="graph",
        )
    if graph is None:
        how = Sentence("Give one with {graph}.", graph=Python("graph=cs.Graph.from_edges(source, target)"))
        raise ParameterError(f"{name} needs a graph.", how, keyword="graph")
    if not isinstance(graph, Graph):
        raise parameter_error("graph", name, "a consilience.Graph (see Graph.from_edges)", graph)
    return graph.aligned_with(r.items)


def fit_model(
    model: LabelEstimator,
    observations: Observations,
    graph: Graph | None,
    engine: Engine,
    *,
    copies: list[list[int]] | None = None,
    count_copies_once: bool = False,
    source_kind: str | None = None,
    chosen: Given = NOTHING_CHOSEN,
    coupling_scores: list[CouplingScore] | None = None,
) -> FitResult:
    """Fit a model to observations; the nodes of the graph are their items.

    Parameters
    ----------
    model, observations, graph, engine
        The parameters, what is fitted, and where.
    copies : list of list of int, optional
        Groups of workers who copy each other. They are looked for if they are not given.
    count_copies_once : bool
        Whether each of these groups counts as one worker.
    source_kind : str, optional
        Who gives the answers; see `consilience.results.findings`. It is recognised if it is not given.
    chosen : Given
        What `fuse` decided before: how soft votes and numbers are fused, and who was left out.
    coupling_scores : list of CouplingScore, optional
        How a coupling that is given was learned.
    """
    r = observations.responses
    # A new object, which shares the arrays and nothing that is derived from them meanwhile.
    answers = replace(r, gold=None)
    if source_kind is None:
        source_kind = "people"
        may_be_silent = r.sequences is None and answers.silence_doubt is not None
        if observations.kind.whole_items and (r.silence_counts or may_be_silent):
            source_kind = "functions"
        elif observations.kind.whole_items and r.soft is not None:
            source_kind = "models"
    links = None if graph is None else model._weigh_links(r, graph)
    model._check_size(r, links)
    if copies is None:
        copies = find_groups(observations, engine)
    counts_once = bool(copies) and count_copies_once
    given = chosen._replace(
        answers=answers,
        gold=observations.gold,
        graph=None if graph is None else replace(graph),
        teach=observations.teach,
        source_kind=source_kind,
        copies=copies,
        copies_count_once=counts_once,
    )
    used = observations.count_once(copies) if counts_once else observations
    further = {} if coupling_scores is None else {"coupling_scores": coupling_scores}
    found: FitResult = model._learn(used, links, engine, given, **further)
    release_mapped()
    return found


def make_result(
    model: str,
    observations: Observations,
    given: Given,
    codes: NDArray[np.int64],
    posterior: Floats,
    uncalibrated: Floats | None = None,
    *,
    rule: str,
    checked: bool,
    n_earlier: Any = 0,
    chance: Floats | None = None,
    **further: Any,
) -> FitResult:
    """The result of a fit: labels with their probabilities, and vocabularies and counts of the answers."""
    r = observations.responses
    known = None if observations.gold is None else observations.gold.find_kept(codes)
    # A function with one label, whose silence is ignored, seems to say it by chance.
    chance_is_told = r.sequences is not None or given.answers is None or given.answers.silence_doubt is None
    labels = Labels(r.key_columns(), r.classes, r.positions, codes, posterior, uncalibrated, known, rule, checked)
    return FitResult(
        model=model,
        names=Names(r.workers, r.labels, r.classes, r.normalised, r.positions),
        backend=r.backend,
        n_answers=n_earlier + r.votes_per_worker(),
        given=given._replace(log_prior=observations.log_prior, has_priors=observations.log_prior is not None),
        labels=labels,
        checked=checked,
        chance=chance if chance_is_told else None,
        kind=observations.kind,
        **further,
    )


def take_vote(
    observations: Observations,
    engine: Engine,
    given: Given = NOTHING_CHOSEN,
    ties: str = "random",
    label_by: str = "mode",
    seed: int = 0,
) -> FitResult:
    """The vote, as what `MajorityVote` finds."""
    r, unvoted = observations.responses, observations.responses.vote_shares()
    shares, mass = collect_votes(engine, observations, unvoted)
    codes = label_votes(shares, r.keys, r.classes, ties, label_by, seed)
    # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
    structure = Independent(r.n_classes, None, 0.0, "em")
    prior = structure.update(Summary(0.0, mass)).mean if r.silence_counts else unvoted
    sequences = None if r.sequences is None else r.sequences.offsets
    release_mapped()
    confidence = shares[np.arange(len(codes)), codes]
    return make_result(
        "MajorityVote",
        observations,
        given,
        codes,
        shares,
        rule="" if label_by == "mode" else label_by,
        checked=are_checked(r, observations.gold, False),
        prior=prior,
        course=Course(np.empty(0), 0, True),
        intervals=Intervals(None, *find_vote_intervals(shares, confidence, prior, sequences)),
        seed=seed,
        voting=observations,
    )


# ------------------------------------------------------------------------------------------------------- other answers


class Others:
    """Other answers of the workers of a fit, with what was learned of these."""

    def __init__(
        self,
        model: LabelEstimator,
        result: Result,
        r: Answers | None,
        graph: object,
        gold: object,
        features: object = None,
        item_prior: object = None,
    ) -> None:
        self.model, self.result = model, result
        # The fit may have added classes, which these answers do not know of.
        self.observations = make_observations(model, r, gold, features, item_prior, before=result)
        self.graph = align(model, self.observations.responses, graph)
        self.worker = lookup(result.names.workers, to_column(self.observations.responses.workers))

    def check(self) -> NDArray[np.int64]:
        """Raise an error for answers that the matrices of the fit cannot judge; else the label of each of theirs."""
        model, r, names = self.model, self.observations.responses, self.result.names
        label = find_by_value(names.labels, r.labels)
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(names.labels.tolist())}.",
                "Fit again with both.",
            )
        check_silence(model, self.result, r)
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
        taught: Floats | None = None,
    ) -> tuple[Any, float]:
        """The posteriors that parameters call for, and their log likelihood; or the most probable joint labelling.

        `taught` is what known labels of the fit add to the evidence, (N, K).
        """
        result, r, names, estimates = self.result, self.observations.responses, self.result.names, self.result.estimates
        links = None if self.graph is None else self.model._weigh_links(r, self.graph)
        class_of_label = lookup(names.classes, to_column(r.labels))
        r = self.weigh()
        workers = estimates.worker_model.of(r, class_of_label, len(names.classes), result.takes_silence)
        check_matrices(result.model, workers, r, PREDICTION_TABLES)
        factors = workers.factors(workers.adopt(log_weights, log_of(estimates.crowd), self.worker, label))
        observations = replace(self.observations, responses=r).with_classes(names.classes)
        observations = observations if taught is None else observations.add_log_prior(taught)
        with open_engine(engine) as opened, keep_to(r.memory):
            placed = list(opened.place(observations.lay_out(workers, anchored)))
            if decodes:
                return decode_labels(opened, placed, factors, structure), 0.0
            return infer_posterior(opened, placed, factors, structure, links)

    def weigh(self) -> Answers:
        """The answers, as the fit took its own."""
        r = weigh_copies(self.result, self.observations.responses, self.worker)
        return replace(r, weight_scale=self.result.estimates.weight_scale)

    def find_probabilities(self, engine: object) -> Floats:
        """Class probabilities, by what known labels of the fit taught; of a vote its shares."""
        return self.teach(self.calibrate(engine))

    def teach(self, calibrated: Floats) -> Floats:
        """Calibrated probabilities, and what known labels of the fit say of the workers."""
        result, gold, r = self.result, self.observations.gold, self.observations.responses
        if result.teaching is None:
            return calibrated
        changed = find_raised(result.estimates.structure, r)
        changed = changed if gold is None else changed & (gold.codes < 0)
        return result.teaching.apply(self.weigh().with_classes(result.names.classes), calibrated, changed, self.worker)

    def calibrate(self, engine: object) -> Floats:
        """Class probabilities, calibrated as those of the fit; of a vote its shares, for which no worker is known."""
        model, result, r = self.model, self.result, self.observations.responses
        if result.is_vote:
            r = weigh_copies(result, r.with_classes(result.names.classes), self.worker)
            unvoted = r.vote_shares() if r.silence_counts else result.prior
            with open_engine(engine) as opened:
                return collect_votes(opened, Observations(r, self.observations.gold), unvoted)[0]
        label, estimates = self.check(), result.estimates
        if result.calibrated is None or not isinstance(model, LatentEstimator) or model.calibration == "none":
            posterior: Floats = self.infer(engine, label, estimates.structure, estimates.log_weights)[0]
        else:
            relaxed = estimates.structure.relaxed()
            posterior = self.infer(engine, label, relaxed, estimates.log_weights, anchored=False)[0]
        if result.calibrated is None:
            return posterior
        return raise_where(find_raised(estimates.structure, r), posterior, result.calibrated.calibration.power)

    def find_labels(self, engine: object) -> Labels:
        """Labels with their probabilities, chosen as those of the fit."""
        model, result, r, names = self.model, self.result, self.observations.responses, self.result.names
        calibrated, gold = self.calibrate(engine), self.observations.gold
        probabilities, taught = self.teach(calibrated), None
        if result.is_vote:
            ties, seed = model.get_params()["ties"], model.get_params()["seed"]
            codes = label_votes(probabilities, r.keys, names.classes, ties, model.label_by, seed)
        elif model._rule == "sequence":  # the most probable joint labelling
            estimates, label = result.estimates, find_by_value(names.labels, r.labels)
            if result.teaching is not None and result.calibrated is not None:
                taught = compare_logs(probabilities, calibrated, result.calibrated.calibration.power)
            codes = self.infer(engine, label, estimates.structure, estimates.log_weights, decodes=True, taught=taught)[
                0
            ]
        else:
            codes = choose_labels(probabilities, model.label_by)
        known = None if gold is None else gold.find_kept(codes)
        keys, scale, shown = r.key_columns(), (names.classes, names.positions), result.labels.shown
        return Labels(keys, *scale, codes, probabilities, None, known, model._rule, shown)

    def score(self, engine: object) -> float:
        """The mean log likelihood of an item's answers, at the reported estimates."""
        estimates = self.result.estimates
        value = self.infer(engine, self.check(), estimates.structure.point(), estimates.reported())[1]
        return value / self.observations.responses.n_items


def check_silence(model: LabelEstimator, result: Result, r: Answers) -> None:
    """Raise an error unless silence is an answer here if it was one at the fit."""
    if model._needs_same_silence and r.silence_counts != result.takes_silence:
        raise InputError(
            "The answers must take silence as the fit did.", Sentence("Read them with the same {abstain}.")
        )
