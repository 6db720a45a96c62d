"""From answers to a result, which is computed once at the end of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..answers.item_tables import Features, class_shares, match_features, match_item_prior, vote_shares_by_item
from ..answers.items import Sequences
from ..answers.tagging import are_tags
from ..engines import open_engine
from ..engines.base import Engine
from ..errors import ParameterError
from ..formats.reading import open_paths
from ..formats.sources import open_item_data
from ..inference import ITEMS_AT_ONCE
from ..inference.em import Fit, Parameters, Problem, decode_labels, expect_from_votes, maximise
from ..inference.guidance import Guided, compare_opinions, guide_by_features
from ..inference.learned import Learned, Names
from ..inference.powers import raise_in_place
from ..inference.preconditions import fixed_prior, given_pair
from ..inference.recipes import Fitting, LatentRecipe, Plan, Recipe
from ..inference.recipes.independent import MomentRecipe, VoteRecipe, collect_votes
from ..inference.sharing import Together, can_share, fit_together
from ..inference.sources import Source
from ..inference.structures import Summary
from ..inference.structures.independent import Independent
from ..inference.workers.ordinal import OrdinalWorkers
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind
from ..limits import release_mapped, within
from .calibration import calibrate, judge_spans
from .chance import count_judged, find_chance
from .intervals import (
    Confidence,
    Intervals,
    Past,
    are_checked,
    find_intervals,
    gather_estimates,
    is_share_checked,
    judge_shares_of,
    judge_votes,
)
from .raters import find_raters
from .result import Calibrated, Course, Given, Guidance, Labels, Result, count_known, find_known
from .source_kinds import ignores_silence, recognise_kind


def open_source(
    recipe: Recipe,
    answers: Answers,
    gold: object = None,
    features: object = None,
    item_prior: object = None,
    task: AnyKind = TABLE,
) -> Source:
    """Answers with the classes that a model needs, with known labels, and with what else is known of the items."""
    recipe.check()
    recipe.check_content(features, item_prior)
    r = recipe.prepare(answers)
    source = Source(r, task=task)
    if features is not None and isinstance(recipe, LatentRecipe) and recipe.max_iter == 0:
        raise ParameterError(
            "With max_iter=0 nothing is fitted, and no classifier can learn from features.",
            "Allow some iterations, or leave out the features.",
            keyword="max_iter",
        )
    if item_prior is not None:
        priors = match_item_prior(open_item_data(item_prior, "item_prior"), r)
        source = source.with_priors(priors, class_shares(priors, vote_shares_by_item(r)))
    if features is not None:
        source = replace(source, features=find_features(recipe, features, r))
    return replace(source, gold=match_gold(open_paths(gold), r, r.classes))


def find_features(recipe: Recipe, features: object, r: Answers) -> Features:
    """What describes the items, matched to them."""
    with_gaps = cast(LatentRecipe, recipe).classifier is not None
    return match_features(open_item_data(features, "features"), r, with_gaps=with_gaps)


def fit(
    recipe: Recipe,
    answers: Answers,
    graph: object = None,
    gold: object = None,
    features: object = None,
    item_prior: object = None,
    engine: object = None,
    task: AnyKind = TABLE,
    **asked: Any,
) -> Result:
    """What a model finds in answers, which belong to a task; what else is asked is as for `fit_source`."""
    source = open_source(recipe, answers, gold, features, item_prior, task)
    aligned = recipe.align(source.responses, graph)
    with open_engine(engine) as opened, within(source.responses.memory):
        return fit_source(recipe, source, aligned, opened, **asked)


def fit_source(
    recipe: Recipe,
    source: Source,
    graph: Graph | None,
    engine: Engine,
    *,
    copies: list[list[int]] | None = None,
    count_copies_once: bool = False,
    source_kind: str | None = None,
    kept: Calibrated | None = None,
    n_changes: int = 0,
) -> Result:
    """What a model finds in a source; the nodes of the graph are its items.

    Parameters
    ----------
    recipe, source, graph, engine
        The settings of the model, what it is fitted to, and where.
    copies : list of list of int, optional
        Groups of workers who copy each other. They are looked for if they are not given.
    count_copies_once : bool
        Whether each of these groups counts as one worker.
    source_kind : str, optional
        Who gives the answers; see `consilience.results.source_kinds`. It is recognised if it is not given.
    kept : Calibrated, optional
        The calibration of an earlier fit, if it is to be kept.
    n_changes : int
        Answers that came or changed since the last fit that started anew.
    """
    r = source.responses
    kind = source_kind or recognise_kind(r, source.task)
    links = recipe.weigh_links(r, graph)
    recipe.check_size(r, links)
    # A new object, which shares the arrays and nothing that was derived from them meanwhile.
    answers = replace(r, gold=None)
    if copies is None:
        copies = recipe.find_copies(source, engine)
    used = source.count_once(copies) if copies and count_copies_once else source
    if isinstance(recipe, VoteRecipe):
        found = learn_votes(recipe, used, engine)
    elif isinstance(recipe, MomentRecipe):
        found = learn_by_moments(recipe, used, links, engine)
    else:
        found = learn_latent(cast(LatentRecipe, recipe), used, links, engine, kept)
    release_mapped()
    # A function with one label, whose silence is ignored, seems to say it by chance.
    chance = None if ignores_silence(r) else found.chance
    given = Given(answers, source.gold, None if graph is None else replace(graph), found.given.log_prior)
    given = given._replace(has_priors=found.given.has_priors)
    return replace(
        found,
        copies=copies,
        copies_count_once=used is not source,
        given=given,
        task=source.task,
        source_kind=kind,
        chance=chance,
        n_changes=n_changes,
    )


def fit_questions(
    recipes: Sequence[Recipe],
    sources: Sequence[Source],
    graphs: Sequence[Graph | None],
    engine: Engine,
    *,
    count_copies_once: bool = False,
    source_kind: str | None = None,
) -> tuple[list[Recipe], list[Result], Together | None, list[int]]:
    """What models find in several questions to the same workers, each with its recipe.

    Those whose workers are of types are fitted together: a question is then an ordinary fit, in which the probability
    that a worker is of a type comes from the other questions. Others are fitted on their own.

    Returns
    -------
    settled : list of Recipe
        With what other questions say of the workers.
    found : list of Result
        The result of each question.
    together : Together or None
        What is learned of all questions together; None if there is nothing to share.
    shared : list of int
        Which questions were fitted together.
    """
    copies = [recipe.find_copies(source, engine) for recipe, source in zip(recipes, sources, strict=True)]
    settled, together = list(recipes), None
    shared = [q for q, recipe in enumerate(recipes) if can_share(recipe)]
    if len(shared) > 1:
        once = [sources[q].count_once(copies[q]) if copies[q] and count_copies_once else sources[q] for q in shared]
        typed = [cast(LatentRecipe, recipes[q]) for q in shared]
        together = fit_together(typed, once, [graphs[q] for q in shared], engine)
        for q, types in zip(shared, together.types, strict=True):
            settled[q] = replace(cast(LatentRecipe, recipes[q]), worker_types=types)
    found = [
        fit_source(
            recipe, source, graph, engine, copies=groups, count_copies_once=count_copies_once, source_kind=source_kind
        )
        for recipe, source, graph, groups in zip(settled, sources, graphs, copies, strict=True)
    ]
    return settled, found, together, shared if together is not None else []


def make_result(recipe: Recipe, source: Source, **found: Any) -> Result:
    """What was found, with what every result says of its answers."""
    r = source.responses
    given = Given(log_prior=source.log_prior, has_priors=source.log_prior is not None)
    about: dict[str, Any] = {"n_answers": r.votes_per_worker(), "given": given}
    return Result(model=recipe.model, names=Names.of(r), backend=r.backend, **about | found)


def learn_latent(
    recipe: LatentRecipe, source: Source, links: Graph | None, engine: Engine, kept: Calibrated | None = None
) -> Result:
    """Run the loop for a model with a hidden truth, and conclude."""
    guided = None
    if source.features is not None:
        guided = guide_by_features(Fitting(recipe, source, *recipe.fit_unguided(source, links, engine)))
        source = guided.source
    plan = recipe.plan(source, links, engine)
    return conclude(recipe, source, plan, recipe.run(plan), guided=guided, kept=kept)


def conclude(
    recipe: LatentRecipe,
    source: Source,
    plan: Plan,
    fits: dict[str, Fit],
    *,
    guided: Guided | None = None,
    kept: Calibrated | None = None,
    before: Calibrated | None = None,
    past: Past | None = None,
) -> Result:
    """All that the best of some fits says: it is calibrated and judged once, here.

    `kept` is a calibration to keep; `before` and `past` are calibration and sums of the earlier batches of a stream.
    """
    r, problem = source.responses, plan.problem
    best = recipe.choose(problem, fits)
    recipe.warn_of_iterations(best, r.n_responses)
    posterior = recipe.conclude(problem, best.parameters)
    learned = Learned.of(problem, best.parameters, best.statistics)
    estimates = gather_estimates(
        source, problem, best.parameters, best.statistics, posterior, fixed_prior(recipe, r) is not None
    )

    # Calibration and labels.
    opinion = None if guided is None else guided.opinion
    calibrated, reported, confidence = calibrate(
        Fitting(recipe, source, problem, best), posterior, opinion, before, kept
    )
    power = calibrated.found.power
    if recipe.rule == "sequence":
        factors = problem.factors(best.parameters.workers)
        codes = decode_labels(problem.engine, problem.placed, factors, best.parameters.structure)
    else:
        runs = (slice(first, first + ITEMS_AT_ONCE) for first in range(0, r.n_items, ITEMS_AT_ONCE))
        codes = np.concatenate([recipe.label_items(confidence.raised(power, run)) for run in runs])

    # Intervals, while the posteriors are not yet raised to the power.
    ordered = isinstance(problem.workers, OrdinalWorkers)
    earlier = None if past is None else past.sums
    intervals, sums = find_intervals(r, posterior, codes, estimates, confidence, earlier, ordered)
    if plan.apart is not None:
        # A field may lead small classes to adopt their neighbours' label, and would not know of it.
        low, high = judge_shares_apart(recipe, source, *plan.apart)
        ends = np.minimum(low, intervals.prior[0]), np.maximum(high, intervals.prior[1])
        intervals = intervals._replace(prior=np.stack(ends))
    spans = None
    if recipe.follows_tags and are_tags(r.classes):
        left_out = recipe.calibration != "none" and recipe.max_iter > 0
        sequence = cast(Sequences, r.sequences).of_items()
        spans = judge_spans(problem, best, posterior, codes, r.classes, sequence, left_out, power)
    if power != 1:
        reported = posterior.copy() if reported is posterior else reported
        raise_in_place(recipe.find_raised(r), reported, power)
        release_mapped()

    # What checks the answers: others, neighbours, chains, features and item priors.
    linked = source.log_prior is not None or not isinstance(problem.structure, Independent)
    checked = are_checked(r, count_known(source.gold), linked)
    if past is not None:
        checked |= is_share_checked(*past.sums.judged.sum(axis=1).tolist())
    labels = Labels.of(
        r, codes, reported, posterior, known=find_known(source.gold, codes), rule=recipe.rule, shown=checked
    )
    # What others say of each worker. The answers of earlier batches are gone.
    apart = {} if past is not None else judge_workers_apart(source, problem, learned.log_weights, posterior)
    return make_result(
        recipe,
        source,
        prior=best.parameters.structure.mean,
        labels=labels,
        estimates=learned,
        course=Course(
            best.trace,
            best.n_iter,
            best.converged,
            {name: each.trace for name, each in fits.items()},
            best.parameters.prior.pair or given_pair(recipe.smoothing),
        ),
        intervals=intervals,
        # A graph cannot be cut into batches.
        past=None if problem.graph is not None else Past(best.statistics.summary, sums),
        seed=recipe.seed,
        calibrated=calibrated,
        coupling=recipe.find_coupling(problem, best.parameters),
        coupling_scores=plan.coupling_scores,
        checked=checked,
        span_confidence=spans,
        guidance=None if guided is None else describe_guidance(source, guided, posterior, codes),
        **apart,
    )


def judge_workers_apart(source: Source, problem: Problem, log_weights: Floats, posterior: Floats) -> dict[str, Floats]:
    """What is found of workers by answers of the others: chance, and the figures of raters."""
    workers = problem.workers
    counts, pairs = count_judged(source, workers, log_weights, posterior, problem.graph is not None)
    found = {"chance": find_chance(counts, workers.class_of_label, workers.silent)}
    return found | ({"raters": find_raters(counts, pairs, workers)} if isinstance(workers, OrdinalWorkers) else {})


def judge_shares_apart(recipe: LatentRecipe, source: Source, apart: Problem, fit: Fit) -> Floats:
    """The interval of class shares, (2, K), by the answers alone."""
    r, posterior = source.responses, recipe.conclude(apart, fit.parameters)
    given = fixed_prior(recipe, r) is not None
    found = gather_estimates(source, apart, fit.parameters, fit.statistics, posterior, given)
    return judge_shares_of(r, posterior, found)


def describe_guidance(source: Source, guided: Guided, posterior: Floats, codes: NDArray[np.int64]) -> Guidance:
    """What features were found to say, with how often the classifier agrees with the labels."""
    opinion, findings, opinions = guided.opinion, guided.findings, None
    if opinion is not None:
        opinions = compare_opinions(source, opinion, guided.alone, posterior)
        answered = np.diff(source.responses.offsets)[opinion.item] > 0
        agrees = (opinion.code == codes[opinion.item])[answered]
        findings = findings._replace(
            accuracy=float(agrees.mean()) if len(agrees) else None,
            n_changed=int((guided.alone.argmax(axis=1) != posterior.argmax(axis=1)).sum()),
        )
    return Guidance(findings, guided.names, guided.guide, opinions)


def learn_votes(recipe: VoteRecipe, source: Source, engine: Engine) -> Result:
    """Take the vote."""
    r, unvoted = source.responses, source.responses.vote_shares()
    shares, mass = collect_votes(engine, source, unvoted)
    codes = recipe.label_votes(shares, r.keys, r.classes)
    known, checked = find_known(source.gold, codes), are_checked(r, count_known(source.gold), False)
    labels = Labels.of(r, codes, shares, known=known, rule=recipe.rule, shown=checked)
    # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
    structure = Independent(r.n_classes, None, 0.0, "em")
    prior = structure.update(Summary(0.0, mass)).mean if r.silence_counts else unvoted
    sequences = None if r.sequences is None else r.sequences.offsets
    release_mapped()
    return make_result(
        recipe,
        source,
        prior=prior,
        labels=labels,
        course=Course(np.empty(0), 0, True),
        intervals=Intervals(None, *judge_votes(shares, labels.confidence, prior, sequences)),
        checked=checked,
        seed=recipe.seed,
        voting=source,
    )


def learn_by_moments(recipe: MomentRecipe, source: Source, links: Graph | None, engine: Engine) -> Result:
    """Match moments, and judge the items by what they say of the workers."""
    source = replace(source, responses=replace(source.responses, soft=None))  # moments are those of labels
    r = source.responses
    problem = recipe.pose_votes(source, links, engine)
    by_vote = maximise(problem, expect_from_votes(problem))
    found = recipe.match(r, by_vote.workers.mean, by_vote.structure.mean)
    workers = problem.workers.given(found.confusion.transpose(0, 2, 1))
    learned = Parameters(workers, problem.structure.given(found.prior), problem.prior)
    statistics = problem.expect(learned)
    posterior = recipe.conclude(problem, learned)
    codes = recipe.label_items(posterior)
    confidence = Confidence(np.ones(1), lambda _, run: posterior[run])
    estimates = gather_estimates(source, problem, learned, statistics, posterior, fixed_prior(recipe, r) is not None)
    checked = are_checked(r, count_known(source.gold), False)
    return make_result(
        recipe,
        source,
        prior=learned.structure.mean,
        labels=Labels.of(r, codes, posterior, known=find_known(source.gold, codes), rule=recipe.rule, shown=checked),
        estimates=Learned.of(problem, learned, statistics),
        course=Course(found.trace, found.n_iter, found.converged),
        intervals=find_intervals(r, posterior, codes, estimates, confidence)[0],
        checked=checked,
        **judge_workers_apart(source, problem, workers.log_weights, posterior),
    )
