"""From answers to a result, which is computed once at the end of a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..engines import Engine
from ..errors import ParameterError, Python, Sentence, parameter_error
from ..inference.copies import find_groups
from ..inference.em import Names
from ..inference.estimator import LabelEstimator, LatentEstimator
from ..inference.labels import collect_votes, label_votes
from ..inference.sources import Source
from ..inference.structures import Independent, Summary
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind, TableKind
from ..limits import release_mapped
from .intervals import Intervals, are_checked, judge_votes
from .result import Course, Given, Labels, Result

if TYPE_CHECKING:
    from ..answers.items import Features


def make_source(
    model: LabelEstimator,
    answers: Answers,
    gold: object = None,
    features: object = None,
    item_prior: object = None,
    task: AnyKind = TABLE,
) -> Source:
    """Answers with the classes that a model needs, with known labels, and with what else is known of the items."""
    model._check()
    if features is not None or item_prior is not None:
        check_content(model)
    r = model._prepare(answers)
    source = Source(r, task=task)
    if features is not None and isinstance(model, LatentEstimator) and model.max_iter == 0:
        raise ParameterError(
            "With max_iter=0 nothing is fitted, and no classifier can learn from features.",
            "Allow some iterations, or leave out the features.",
            keyword="max_iter",
        )
    if item_prior is not None:
        from ..answers.items import class_shares, match_item_prior, vote_shares_by_item
        from ..formats.sources import open_item_data

        priors = match_item_prior(open_item_data(item_prior, "item_prior"), r)
        source = source.with_priors(priors, class_shares(priors, vote_shares_by_item(r)))
    if features is not None:
        source = replace(source, features=find_features(model, features, r))
    return source if gold is None else replace(source, gold=match_gold(gold, r, r.classes))


def check_content(model: LabelEstimator) -> None:
    """Raise an error if a model cannot use what is known of the items beside their answers."""
    if not model._takes_content:
        raise ParameterError(
            f"{type(model).__name__} takes neither features nor priors of items.",
            Sentence("Choose another, such as {model}.", model=Python("DawidSkene()", "dawid-skene")),
            keyword="model",
        )


def find_features(model: LabelEstimator, features: object, r: Answers) -> Features:
    """What describes the items, matched to them."""
    from ..answers.items import match_features
    from ..formats.sources import open_item_data

    with_gaps = isinstance(model, LatentEstimator) and model.classifier is not None
    return match_features(open_item_data(features, "features"), r, with_gaps=with_gaps)


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


def fit_source(
    model: LabelEstimator,
    source: Source,
    graph: Graph | None,
    engine: Engine,
    *,
    copies: list[list[int]] | None = None,
    count_copies_once: bool = False,
    source_kind: str | None = None,
) -> Result:
    """What a model finds in a source; the nodes of the graph are its items.

    Parameters
    ----------
    model, source, graph, engine
        The parameters, what is fitted, and where.
    copies : list of list of int, optional
        Groups of workers who copy each other. They are looked for if they are not given.
    count_copies_once : bool
        Whether each of these groups counts as one worker.
    source_kind : str, optional
        Who gives the answers; see `consilience.results.source_kinds`. It is recognised if it is not given.
    """
    r = source.responses
    # Functions are silent, as an answer or as one label each. Soft votes come from models.
    ignores_silence = r.sequences is None and r.silence_doubt is not None
    if source_kind is None:
        source_kind = "people"
        if isinstance(source.task, TableKind) and (r.silence_counts or ignores_silence):
            source_kind = "functions"
        elif isinstance(source.task, TableKind) and r.soft is not None:
            source_kind = "models"
    links = None if graph is None else model._weigh_links(r, graph)
    model._check_size(r, links)
    # A new object, which shares the arrays and nothing that was derived from them meanwhile.
    answers = replace(r, gold=None)
    if copies is None:
        copies = find_groups(source, engine)
    used = source.count_once(copies) if copies and count_copies_once else source
    found: Result = model._learn(used, links, engine)
    release_mapped()
    kept = None if graph is None else replace(graph)
    return replace(
        found,
        copies=copies,
        copies_count_once=used is not source,
        given=found.given._replace(answers=answers, gold=source.gold, graph=kept),
        task=source.task,
        source_kind=source_kind,
        # A function with one label, whose silence is ignored, seems to say it by chance.
        chance=None if ignores_silence else found.chance,
    )


def make_result(
    model: str,
    source: Source,
    codes: NDArray[np.int64],
    posterior: Floats,
    uncalibrated: Floats | None = None,
    *,
    rule: str,
    checked: bool,
    **found: Any,
) -> Result:
    """What was found: labels with their probabilities, and what every result says of its answers."""
    r = source.responses
    known = None if source.gold is None else source.gold.find_kept(codes)
    about = r.key_columns(), r.classes, r.positions, codes, posterior, uncalibrated
    return Result(
        model=model,
        names=Names(r.workers, r.labels, r.classes, r.normalised, r.positions),
        backend=r.backend,
        n_answers=r.votes_per_worker(),
        given=Given(log_prior=source.log_prior, has_priors=source.log_prior is not None),
        labels=Labels(*about, known=known, rule=rule, shown=checked),
        checked=checked,
        **found,
    )


def take_vote(source: Source, engine: Engine, ties: str = "random", label_by: str = "mode", seed: int = 0) -> Result:
    """The vote, as what `MajorityVote` finds."""
    r, unvoted = source.responses, source.responses.vote_shares()
    shares, mass = collect_votes(engine, source, unvoted)
    codes = label_votes(shares, r.keys, r.classes, ties, label_by, seed)
    # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
    structure = Independent(r.n_classes, None, 0.0, "em")
    prior = structure.update(Summary(0.0, mass)).mean if r.silence_counts else unvoted
    sequences = None if r.sequences is None else r.sequences.offsets
    release_mapped()
    confidence = shares[np.arange(len(codes)), codes]
    return make_result(
        "MajorityVote",
        source,
        codes,
        shares,
        rule="" if label_by == "mode" else label_by,
        checked=are_checked(r, source.gold, False),
        prior=prior,
        course=Course(np.empty(0), 0, True),
        intervals=Intervals(None, *judge_votes(shares, confidence, prior, sequences)),
        seed=seed,
        voting=source,
    )
