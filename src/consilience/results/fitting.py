"""From answers to a result: a recipe is followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple, cast

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
from ..inference.draws import Levels, draw_levels
from ..inference.em import Fit, Parameters, Problem, expect_from_votes, maximise
from ..inference.guidance import Guided, compare_opinions, guide_by_features
from ..inference.learned import Learned, Names
from ..inference.powers import raise_in_place, raise_where
from ..inference.preconditions import START_TABLES, check_matrices, fixed_prior, given_pair
from ..inference.recipes import Fitting, LatentRecipe, Plan, Recipe
from ..inference.recipes.independent import MomentRecipe, VoteRecipe, collect_votes
from ..inference.sharing import Together, can_share, fit_together
from ..inference.sources import Source
from ..inference.structures import Statistics, Summary
from ..inference.structures.independent import Independent
from ..inference.workers import voters
from ..inference.workers.base import WorkerModel
from ..inference.workers.ordinal import OrdinalWorkers
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind
from .answer_worth import are_checked, find_careful, find_judged, is_share_checked, sum_chances
from .calibration import Found, calibrate, judge_fit
from .chance import Apart, count_judged, judge_chance
from .interval_sums import Estimates, Past, invert_scores, right_matrix, sum_up
from .intervals import Confidence, Intervals, VoteSums, find_intervals, judge_shares, judge_votes
from .raters import judge_raters
from .result import Calibrated, Course, Given, Guidance, Judgement, Labels, Later, Result, count_known, find_known
from .source_kinds import ignores_silence, recognise_kind


class GoingOn(NamedTuple):
    """How a fit goes on from the one before; see `consilience.models.fitted`.

    Attributes
    ----------
    calibrated : Calibrated or None
        The calibration of that one, if it is kept.
    n_changes : int
        Answers that have come, or changed, since the last fit that did not go on from another.
    """

    calibrated: Calibrated | None
    n_changes: int


class Asked(NamedTuple):
    """What else is asked of a fit.

    Attributes
    ----------
    copies : list of list of int, optional
        Groups of workers who copy each other. They are looked for if they are not given.
    count_copies_once : bool
        Whether each of these groups counts as one worker.
    going_on : GoingOn, optional
        How the fit goes on from another one.
    source_kind : str, optional
        Who gives the answers; see `consilience.results.source_kinds`. It is recognised if it is not given.
    """

    copies: list[list[int]] | None = None
    count_copies_once: bool = False
    going_on: GoingOn | None = None
    source_kind: str | None = None


NOTHING_ELSE = Asked()


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
    """Return what describes the items, matched to them."""
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
    asked: Asked = NOTHING_ELSE,
    task: AnyKind = TABLE,
) -> Result:
    """Return what a model finds in answers, which belong to a task."""
    source = open_source(recipe, answers, gold, features, item_prior, task)
    aligned = recipe.align(source.responses, graph)
    with open_engine(engine) as opened:
        return fit_source(recipe, source, aligned, opened, asked)


def fit_source(
    recipe: Recipe, source: Source, graph: Graph | None, engine: Engine, asked: Asked = NOTHING_ELSE
) -> Result:
    """Return what a model finds in a source; the nodes of the graph are its items."""
    task, kind = source.task, recognise_kind(source.responses, source.task)
    links = recipe.weigh_links(source.responses, graph)
    recipe.check_size(source.responses, links)
    # A new object, which shares the arrays and nothing that was derived from them meanwhile.
    answers = source.responses.read_from(gold=None)
    given = Given(answers, source.gold, None if graph is None else replace(graph))
    copies = asked.copies
    if copies is None and (asked.count_copies_once or not recipe.finds_copies_later):
        copies = recipe.find_copies(source, engine)
    used = source.count_once(copies) if copies and asked.count_copies_once else source
    found = learn(recipe, used, links, engine, asked.going_on)
    later = Later(find_copies_later, recipe, source) if copies is None else Later.known(copies)
    given = given._replace(log_prior=found.given.log_prior, has_priors=found.given.has_priors)
    once = used is not source
    kind = asked.source_kind or kind
    chance = Later(hear_chance, source, found.chance)
    return replace(
        found, copying=later, copies_count_once=once, given=given, task=task, source_kind=kind, chance=chance
    )


class Fused(NamedTuple):
    """What was found of several questions to the same workers.

    Attributes
    ----------
    recipes : list of Recipe
        As they were followed: with what other questions say of the workers.
    found : list of Result
        The result of each question.
    together : Together or None
        What is learned of all questions together; None if there is nothing to share.
    shared : list of int
        Which questions were fitted together.
    """

    recipes: list[Recipe]
    found: list[Result]
    together: Together | None
    shared: list[int]


def fit_questions(
    recipes: Sequence[Recipe],
    sources: Sequence[Source],
    graphs: Sequence[Graph | None],
    engine: Engine,
    asked: Asked = NOTHING_ELSE,
) -> Fused:
    """Return what models find in several questions to the same workers, each with its recipe.

    Those whose workers are of types are fitted together: a question is then an ordinary fit, in which the probability
    that a worker is of a type comes from the other questions. Others are fitted on their own.
    """
    copies = [recipe.find_copies(source, engine) for recipe, source in zip(recipes, sources, strict=True)]
    settled, together = list(recipes), None
    shared = [q for q, recipe in enumerate(recipes) if can_share(recipe)]
    if len(shared) > 1:
        once = [
            sources[q].count_once(copies[q]) if copies[q] and asked.count_copies_once else sources[q] for q in shared
        ]
        typed = [cast(LatentRecipe, recipes[q]) for q in shared]
        together = fit_together(typed, once, [graphs[q] for q in shared], engine)
        for q, types in zip(shared, together.types, strict=True):
            settled[q] = replace(cast(LatentRecipe, recipes[q]), worker_types=types)
    found = [
        fit_source(recipe, source, graph, engine, asked._replace(copies=groups))
        for recipe, source, graph, groups in zip(settled, sources, graphs, copies, strict=True)
    ]
    return Fused(settled, found, together, shared if together is not None else [])


def hear_chance(source: Source, chance: Later[Floats | None]) -> Floats | None:
    """Return the probability that each worker answers by chance; None for functions whose silence is ignored.

    Such a function, which has one label, seems to say it by chance.
    """
    found = chance.value
    return None if found is None or ignores_silence(source.responses) else found


def find_copies_later(recipe: Recipe, source: Source) -> list[list[int]]:
    """Return the groups of source-copies of a model that does not look for them at each fit."""
    with open_engine(None) as engine:
        return recipe.find_copies(source, engine)


@singledispatch
def learn(recipe: Recipe, source: Source, links: Graph | None, engine: Engine, going_on: GoingOn | None) -> Result:
    """Return what a recipe finds in answers as they count, with a graph as it is weighed."""
    raise NotImplementedError(recipe.model)


def make_result(recipe: Recipe, source: Source, **found: Any) -> Result:
    """Return what was found, with what every result says of its answers."""
    r = source.responses
    given = Given(log_prior=source.log_prior, has_priors=source.log_prior is not None)
    about: dict[str, Any] = {"n_answers": r.votes_per_worker(), "given": given}
    return Result(model=recipe.model, names=Names.of(r), backend=r.backend, **about | found)


# Models with a hidden truth


@learn.register
def learn_latent(
    recipe: LatentRecipe, source: Source, links: Graph | None, engine: Engine, going_on: GoingOn | None
) -> Result:
    """Run the loop, calibrate the best fit, and conclude."""
    guided = None
    if source.features is not None:
        guided = guide_by_features(Fitting(recipe, source, *recipe.fit_unguided(source, links, engine)))
        source = guided.source
    plan = recipe.plan(source, links, engine)
    return conclude(recipe, source, plan, recipe.run(plan), guided=guided, going_on=going_on)


def conclude(
    recipe: LatentRecipe,
    source: Source,
    plan: Plan,
    fits: dict[str, Fit],
    *,
    guided: Guided | None = None,
    going_on: GoingOn | None = None,
    before: Calibrated | None = None,
    past: Past | None = None,
) -> Result:
    """Calibrate the best fit, judge it, and return all that was found.

    `before` and `past` are calibration and sums of the earlier batches of a stream.
    """
    problem, best = plan.problem, recipe.choose(plan.problem, fits)
    recipe.warn_of_iterations(best, source.responses.n_responses)
    posterior = recipe.conclude(problem, best.parameters)
    opinion = None if guided is None else guided.opinion
    estimates = gather_estimates(recipe, source, problem, best.parameters, best.statistics, posterior)
    kept = None if going_on is None else going_on.calibrated
    found = calibrate(Fitting(recipe, source, problem, best), posterior, opinion, before, kept)
    codes = recipe.decode_jointly(problem, best.parameters)
    if codes is None:
        codes = found.confidence.find_labels(source.responses.n_items, recipe.label_items)
    concluded = Concluded(plan, best, posterior, codes, estimates, found)
    learned = Learned.of(problem, best.parameters, best.statistics)
    results = find_labels(recipe, source, concluded, learned, guided, going_on, past)
    return make_result(
        recipe,
        source,
        prior=best.parameters.structure.mean,
        learning=Later.known(learned),
        course=Course(
            best.trace,
            best.n_iter,
            best.converged,
            {name: each.trace for name, each in fits.items()},
            best.parameters.prior.pair or given_pair(recipe.smoothing),
        ),
        seed=recipe.seed,
        calibrated=found.calibrated,
        coupling=recipe.find_coupling(problem, best.parameters),
        coupling_scores=plan.coupling_scores,
        n_changes=0 if going_on is None else going_on.n_changes,
        **results,
    )


class Concluded(NamedTuple):
    """The best fit, what it says of the items that are looked at one by one, and how that is calibrated."""

    plan: Plan
    best: Fit
    posterior: Floats
    codes: NDArray[np.int64]
    estimates: Estimates
    found: Found

    @property
    def power(self) -> float:
        """The power that posteriors are raised to."""
        return self.found.calibrated.found.power

    def are_checked(self, source: Source, n_known: int) -> bool:
        """Tell whether anything checks the answers: with others, neighbours, chains, features and item priors do."""
        linked = source.log_prior is not None or not isinstance(self.plan.problem.structure, Independent)
        return are_checked(source.responses, n_known, linked)


def find_labels(
    recipe: LatentRecipe,
    source: Source,
    fit: Concluded,
    learned: Learned,
    guided: Guided | None,
    going_on: GoingOn | None,
    past: Past | None,
) -> dict[str, Any]:
    """Labels and intervals, and what is found of workers by answers of the others."""
    r, posterior = source.responses, fit.posterior
    spans = judge_spans(recipe, source, fit)
    judging = judge_fitted(recipe, source, fit, going_on, past)
    reported = fit.found.left_out
    if fit.power != 1:
        reported = posterior.copy() if reported is posterior else reported
        raise_in_place(recipe.find_raised(r), reported, fit.power)
    known = find_known(source.gold, fit.codes)
    checked = fit.are_checked(source, count_known(source.gold))
    if past is not None:
        checked |= is_share_checked(*past.sums.judged.sum(axis=1).tolist())
    labels = Labels.of(r, fit.codes, reported, posterior, known=known, rule=recipe.rule, shown=checked)
    if isinstance(judging, Due):
        judging = Later(judge_later, judging, source, learned, labels, fit.found.calibrated)
    problem = fit.plan.problem
    by = source, problem.workers, learned.log_weights, posterior, problem.graph is not None
    return {
        "labels": labels,
        "checked": checked,
        "judging": judging,
        # The answers of earlier batches are gone.
        **({} if past is not None else judge_apart(Later(count_judged, *by), problem.workers)),
        "span_confidence": spans,
        "guidance": None if guided is None else describe_guidance(source, guided, posterior, fit.codes),
    }


def judge_apart(apart: Later[Apart], workers: WorkerModel) -> dict[str, Later[Any]]:
    """Return what is found of workers by answers of the others: chance, and the figures of raters."""
    raters = {"raters": Later(judge_raters, apart, workers)} if isinstance(workers, OrdinalWorkers) else {}
    return {"chance": Later(judge_chance, apart, workers), **raters}


class Due(NamedTuple):
    """What is kept of an update for its intervals, which are worked out when somebody asks for them."""

    workers: WorkerModel
    pseudo_counts: Floats  # (K,) or (1,): of a worker's answers about each class; see `WorkerModel`
    summary: Summary
    prior_is_known: bool
    raised: NDArray[np.bool_]  # of which items the posterior is raised to a power
    levels: Later[Levels | None]


def find_levels(
    recipe: LatentRecipe, source: Source, problem: Problem, best: Fit, codes: NDArray[np.int64]
) -> Levels | None:
    """Return what draws let expect of labels; None where there are none, since classes have no order or labels do."""
    ordered = isinstance(problem.workers, OrdinalWorkers) and isinstance(problem.structure, Independent)
    return draw_levels(recipe, source, problem, best, codes) if ordered and recipe.max_iter else None


def judge_fitted(
    recipe: LatentRecipe, source: Source, fit: Concluded, going_on: GoingOn | None, past: Past | None
) -> Later[Judgement] | Due:
    """Return the intervals of a fit in memory; of an update or of raters they are due when somebody asks for them."""
    plan, best = fit.plan, fit.best
    problem = plan.problem
    levels = Later(find_levels, recipe, source, replace(problem, placed=()), best, fit.codes)
    takes_long = going_on is not None or (isinstance(problem.workers, OrdinalWorkers) and past is None)
    if takes_long and problem.graph is None:
        pseudo_counts, is_known = fit.estimates.pseudo_counts, fit.estimates.prior_is_known
        raised = recipe.find_raised(source.responses)
        return Due(problem.workers, pseudo_counts, best.statistics.summary, is_known, raised, levels)
    earlier, confidence = None if past is None else past.sums, fit.found.confidence._replace(levels=levels.value)
    intervals, sums = find_intervals(
        source.responses, fit.posterior, fit.codes, fit.estimates, confidence, earlier=earlier
    )
    if plan.apart is not None:
        # A field may lead small classes to adopt their neighbours' label, and would not know of it.
        alone = judge_shares_apart(recipe, source, *plan.apart)
        low, high = intervals.prior
        intervals = intervals._replace(prior=np.stack([np.minimum(low, alone[0]), np.maximum(high, alone[1])]))
    return Later.known(Judgement(intervals, Past(best.statistics.summary, sums)))


def judge_later(due: Due, source: Source, learned: Learned, labels: Labels, calibrated: Calibrated) -> Judgement:
    """Work out intervals that take as long as the fit itself."""
    r, power = source.responses, calibrated.found.power
    prior, judged = learned.structure.mean, find_judged(r, source.gold, None)
    assert labels.uncalibrated is not None
    careful = find_careful(source, due.workers, learned.log_weights, labels.uncalibrated)
    known = due.pseudo_counts, due.prior_is_known, judged, careful
    estimates = Estimates(learned.confusion, learned.counts, prior, *known)

    def raised(other: float, run: slice) -> Floats:
        return raise_where(due.raised[run], labels.posterior[run], other / power)

    confidence = Confidence(np.array(calibrated.powers), raised, power, due.levels.value)
    intervals, sums = find_intervals(r, labels.uncalibrated, labels.codes, estimates, confidence)
    return Judgement(intervals, Past(due.summary, sums))


def judge_shares_apart(recipe: LatentRecipe, source: Source, apart: Problem, fit: Fit) -> Floats:
    """Return the interval of class shares, (2, K), by the answers alone."""
    r, learned = source.responses, fit.parameters
    posterior = recipe.conclude(apart, learned)
    found = gather_estimates(recipe, source, apart, learned, fit.statistics, posterior)
    right = right_matrix(found.confusion, r)
    sums = sum_up(r, posterior, right, found, sum_chances(r, posterior, found.careful, found.counts))
    return judge_shares(sums.moments, r.n_items, found, invert_scores(r, sums, right, found), r.n_items)


def judge_spans(recipe: LatentRecipe, source: Source, fit: Concluded) -> Floats | None:
    """Return the confidence of each span among the labels, if these are the tags of a chain."""
    r = source.responses
    if not recipe.follows_tags or not are_tags(r.classes):
        return None
    left_out = recipe.calibration != "none" and recipe.max_iter > 0
    sequence = cast(Sequences, r.sequences).of_items()
    problem = fit.plan.problem
    return judge_fit(problem, fit.best, fit.posterior, fit.codes, r.classes, sequence, left_out, fit.power)


def describe_guidance(source: Source, guided: Guided, posterior: Floats, codes: NDArray[np.int64]) -> Guidance:
    """Return what features were found to say, with how often the classifier agrees with the labels."""
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


def gather_estimates(
    recipe: Recipe,
    source: Source,
    problem: Problem,
    learned: Parameters,
    statistics: Statistics,
    posterior: Floats,
) -> Estimates:
    """Return what intervals are about; `posterior` (N, K) is that before calibration."""
    workers = problem.workers
    confusion = workers.plain_mean(learned.workers, statistics.counts, learned.prior)
    return Estimates(
        confusion.transpose(0, 2, 1),
        workers.plain_counts(statistics.counts),
        learned.structure.mean,
        workers.pseudo_counts(learned.prior),
        fixed_prior(recipe, source.responses) is not None,
        find_judged(source.responses, source.gold, problem.graph),
        find_careful(source, workers, learned.workers.log_weights, posterior),
    )


# Votes


@learn.register
def learn_votes(
    recipe: VoteRecipe,
    source: Source,
    links: Graph | None,  # noqa: ARG001
    engine: Engine,
    going_on: GoingOn | None,  # noqa: ARG001
) -> Result:
    """Take the vote."""
    r, unvoted = source.responses, source.responses.vote_shares()
    shares, mass = collect_votes(engine, source, unvoted)
    codes = recipe.label_votes(shares, r.keys, r.classes)
    known, checked = find_known(source.gold, codes), are_checked(r, count_known(source.gold), False)
    labels = Labels.of(r, codes, shares, known=known, rule=recipe.rule, shown=checked)
    # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
    structure = Independent(r.n_classes, None, 0.0, "em")
    prior = structure.update(Summary(0.0, mass)).mean if r.silence_counts else unvoted
    sums = VoteSums.of(shares, labels.confidence, prior, None if r.sequences is None else r.sequences.offsets)
    return make_result(
        recipe,
        source,
        prior=prior,
        labels=labels,
        checked=checked,
        learning=Later(learn_from_votes, recipe, source, prior),
        course=Course(np.empty(0), 0, True),
        judging=Later.known(Judgement(Intervals(None, *judge_votes(sums, prior)), None)),
        seed=recipe.seed,
        voting=source,
    )


def learn_from_votes(recipe: VoteRecipe, source: Source, prior: Floats, engine: Engine | None = None) -> Learned:
    """Count the answers, and return the matrices that they make: the vote itself needs none, and they may be large."""
    check_matrices(recipe.model, voters(source.responses), source.responses, START_TABLES)
    with open_engine(engine) as opened:
        problem = recipe.pose_votes(source, None, opened)
        statistics = expect_from_votes(problem)
        learned = Learned.of(problem, maximise(problem, statistics), statistics)
    return replace(learned, structure=Independent(len(prior), None, 0.0, "em").given(prior))


# Moments


@learn.register
def learn_by_moments(
    recipe: MomentRecipe,
    source: Source,
    links: Graph | None,
    engine: Engine,
    going_on: GoingOn | None,  # noqa: ARG001
) -> Result:
    """Match moments, and judge the items by what they say of the workers."""
    source = replace(source, responses=source.responses.hardened())  # moments are those of labels
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
    estimates = gather_estimates(recipe, source, problem, learned, statistics, posterior)
    intervals, _ = find_intervals(r, posterior, codes, estimates, confidence)
    known, checked = find_known(source.gold, codes), are_checked(r, count_known(source.gold), False)
    labels = Labels.of(r, codes, posterior, known=known, rule=recipe.rule, shown=checked)
    by = source, problem.workers, workers.log_weights, posterior, False
    return make_result(
        recipe,
        source,
        prior=learned.structure.mean,
        labels=labels,
        checked=checked,
        **judge_apart(Later(count_judged, *by), problem.workers),
        learning=Later.known(Learned.of(problem, learned, statistics)),
        course=Course(found.trace, found.n_iter, found.converged),
        judging=Later.known(Judgement(intervals, None)),
    )
