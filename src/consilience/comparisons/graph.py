r"""What can be said about a graph without known labels: whether it is informative, and whether errors run along it.

**Whether it is informative.** If it is, answers about neighbours agree more than by chance. With x_n the vote shares
of item n, less their mean over all ends of edges, and C the mean of x x^T over these ends, the agreement beyond chance
and its standard error, if the E edges join items at random, are

    sum over edges (n, n') of x_n . x_n' / (E tr C)    and    |C| / (sqrt(E) tr C),   |C| the root of the sum of squares

A shuffled graph with the same degrees shows how strong a coupling is learned by chance. Neither can show that labels
which the graph changes are right. Where silence is an answer, the share of silent workers is one of the shares.

**Whether errors run along it.** Where workers draw outlines or copy from one item to the next, their errors run along
the edges as the labels do: neighbours then agree, and repeat errors as well as the truth. That can be seen. With the
error of worker m at item n of label y_n, centred by the worker's rate of errors for that label,

    e_mn = [m's answer to n is not y_n] - mean of the same over the items of label y_n that m answered

the correlation over edges whose ends have the same label, pooled over workers, is

    rho = sum over edges (n, n'), y_n = y_n', and workers m who answered both of  e_mn e_mn'
          / sum over the same of  (e_mn^2 + e_mn'^2) / 2

If errors are independent, products of different pairs are uncorrelated, and the standard error of rho is the root of
the sum of (e_mn e_mn')^2, divided by the same. Where silence is an answer, it is an error about items whose label is
not the background. Labels that the graph has smoothed can make errors look alike. So can labels without the graph, if
many of them are wrong and the truth is smooth. So rho is computed by both, and the smaller one counts.
Measured (docs/networks.md): simulated outlines .49 to .80, and .26 to .38 if they are off by half a pixel;
outlines drawn by a crowd .68; papers, songs and sentences up to .14; independent noise on pixels and networks 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..answers.answers import Answers
from ..answers.columns import lookup, to_column
from ..answers.graph import Graph
from ..answers.random_choices import hide_items
from ..engines import Engine
from ..errors import quietly
from ..inference.em import Fit, Problem
from ..inference.estimator import LatentEstimator, renew
from ..inference.fields import ENOUGH_ITEMS, N_PARTS, fit_independent_items, fix_prior, list_couplings, pick_coupling
from ..inference.hidden_answers import score_powers
from ..inference.observations import Observations
from ..inference.structures import Trail
from ..inference.structures.field import Field, FieldSummary, find_linked, weight_unit
from ..kernels import Floats
from ..results.comparison import GraphCheck
from ..results.fitting import fit_model
from ..results.result import FitResult, weigh_copies

AnyLatent = TypeVar("AnyLatent", bound=LatentEstimator)

# Vote shares of a smaller variance are the same but for rounding.
LEAST_SHARE_VARIANCE = 1e-20
# Items whose neighbours are looked at together.
NEIGHBOURHOODS_AT_ONCE = 50_000
# A coupling has settled when it moves by less than this share of itself; it is learned in so many rounds at most.
COUPLING_SETTLED, COUPLING_ROUNDS = 0.01, 30


def measure_agreement(r: Answers, graph: Graph) -> tuple[float, float]:
    """How much answers about neighbours agree beyond chance, and the standard error of that by chance.

    Items without answers, and labels that are no classes, are left out. The error is infinite if nothing is left.
    """
    said = r.class_of_label[r.label]
    named = said >= 0
    cell = r.item_of_answer()[named] * r.n_classes + said[named]
    votes = np.bincount(cell, r.weights()[named], r.n_items * r.n_classes).reshape(r.n_items, r.n_classes)
    if r.silence_counts:
        item, worker = r.votes()
        each = np.ones(r.n_workers) if r.silence_weight is None else r.silence_weight
        silent = each.sum() - np.bincount(item, each[worker], r.n_items)
        votes = np.column_stack([votes, np.where(silent > LEAST_SHARE_VARIANCE, silent, 0.0)])
    total = votes.sum(axis=1)
    shares = votes / np.where(total > 0, total, 1.0)[:, None]

    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    both = (total > 0)[source] & (total > 0)[graph.neighbours]
    degrees = np.bincount(source[both], minlength=graph.n_items)
    n_edges = degrees.sum() / 2
    if n_edges == 0:
        return 0.0, float("inf")
    shares -= degrees @ shares / degrees.sum()
    spread = (shares * degrees[:, None]).T @ shares / degrees.sum()
    variance = float(np.trace(spread))
    if variance <= LEAST_SHARE_VARIANCE:
        return 0.0, float("inf")  # all answers are alike
    together = float((shares * (link(graph, source, both) @ shares)).sum()) / 2  # each edge is met from both ends
    return together / (n_edges * variance), float(np.linalg.norm(spread) / (np.sqrt(n_edges) * variance))


def link(graph: Graph, source: NDArray[np.int64], chosen: NDArray[np.bool_]) -> sparse.csr_matrix:
    """The chosen ones of the edges, which are there in both directions, as a matrix of zeros and ones."""
    ends = source[chosen], graph.neighbours[chosen]
    return sparse.csr_matrix((np.ones(len(ends[0])), ends), shape=(graph.n_items, graph.n_items))


def correlate_errors(r: Answers, graph: Graph, labels: NDArray[np.int64]) -> tuple[float, float]:
    """How much a worker's errors at neighbouring items are alike, given labels, and the standard error of that.

    Parameters
    ----------
    r : Answers
        The answers. Labels that are no classes are left out, and silence counts where it is an answer. An answer that
        is spread over several labels is wrong by the share that goes to other labels than the item's.
    graph : Graph
        Over the items of `r`.
    labels : ndarray
        For each item, the index of its class.
    """
    said = r.class_of_label[r.label]
    named = said >= 0
    item, worker, said = r.item_of_answer()[named], r.worker[named].astype(np.int64), said[named]
    weight = r.weights()[named]
    votes, vote = np.unique(item * r.n_workers + worker, return_inverse=True)
    wrong = np.bincount(vote, weight * (said != labels[item])) / np.bincount(vote, weight)
    item, worker = np.divmod(votes, r.n_workers)
    if r.silence_counts:  # everyone has answered about every item
        missed = (labels != lookup(r.classes, to_column([r.background]))[0]).astype(np.float64)
        every = np.tile(missed[:, None], r.n_workers)
        every[r.votes()] = np.nan  # also with a label that is no class
        every[item, worker] = wrong
        item, worker = np.nonzero(~np.isnan(every))
        wrong = every[item, worker]
    # Errors less the worker's rate of errors about items of the same label, and where there are answers.
    cell = worker * r.n_classes + labels[item]
    rate = np.bincount(cell, wrong) / np.maximum(np.bincount(cell), 1)
    shape = (r.n_items, r.n_workers)
    errors = sparse.csr_matrix((wrong - rate[cell], (item, worker)), shape=shape)
    answered = sparse.csr_matrix((np.ones(len(item)), (item, worker)), shape=shape)

    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    links = link(graph, source, labels[source] == labels[graph.neighbours])
    together = spread = products = 0.0
    squares = errors.multiply(errors).tocsr()
    for first in range(0, graph.n_items, NEIGHBOURHOODS_AT_ONCE):
        rows = slice(first, first + NEIGHBOURHOODS_AT_ONCE)
        # Each edge is met from both ends.
        together += errors[rows].multiply(links[rows] @ errors).sum()
        spread += squares[rows].multiply(links[rows] @ answered).sum()
        products += squares[rows].multiply(links[rows] @ squares).sum() / 2
    if spread <= 0:
        return 0.0, float("inf")
    return float(together / spread), float(np.sqrt(products) / (spread / 2))


def check_graph(
    model: LatentEstimator, fit: FitResult, observations: Observations, graph: Graph, engine: Engine
) -> GraphCheck:
    """Whether a graph is informative, compared with a shuffled one, and whether errors run along its edges.

    One fit is made, of independent items. Its workers are taken as they are for both graphs, on which only the
    coupling is learned.
    """
    learner = renew(model, callback=None, coupling="learn", listeners="all", calibration="none")
    links, r = learner._weigh_links(observations.responses, graph), observations.responses
    with quietly():
        learning = learner._make_problem(observations, links, engine)
        independent, independent_fit = fit_independent_items(learning, learner._run)
    plain = independent.infer(independent_fit.parameters).argmax(axis=1)
    problem = fix_prior(learning, independent_fit) if find_linked(links).any() else learning
    power = 1.0 if fit.calibrated is None else fit.calibrated.calibration.power
    ours, coupling = fit.labels.fitted.argmax(axis=1), fit.coupling
    if not model._learns_coupling or coupling is None:
        coupling, ours = learn_coupling_only(model.seed, observations, problem, independent_fit, power)
    mixed = replace(problem, graph=learner._weigh_links(r, graph.shuffled(model.seed)))
    shuffled, astray = learn_coupling_only(model.seed, observations, mixed, independent_fit, power)
    unit, linked = weight_unit(graph.weights), graph.degrees[graph.degrees > 0]
    agreement, agreement_error = measure_agreement(r, graph)
    correlation, correlation_error = min(correlate_errors(r, graph, labels) for labels in (ours, plain))
    return GraphCheck(
        coupling=coupling * unit,
        shuffled_coupling=shuffled * unit,
        changed=float(np.mean(ours != plain)),
        shuffled_changed=float(np.mean(astray != plain)),
        degree=float(linked.mean()) if len(linked) else 0.0,
        agreement=agreement,
        agreement_error=agreement_error,
        error_correlation=correlation,
        error_correlation_error=correlation_error,
        usual_weight=unit,
    )


def learn_coupling_only(
    seed: int, observations: Observations, problem: Problem, independent_fit: Fit, power: float
) -> tuple[float, NDArray[np.int64]]:
    """The coupling that hidden items call for, and the most probable class of each item.

    It is chosen as for a fit (see `consilience.inference.fields`), but workers stay as they were found without
    the graph. So evidence is weighed once, and each coupling takes a few sweeps over the graph.
    """
    r, parameters, graph = observations.responses, independent_fit.parameters, cast(Graph, problem.graph)
    evidence, _ = problem.weigh(problem.workers.factors(parameters.workers.log_weights))
    mass = parameters.structure.mean * len(evidence)

    def infer(coupling: float, hidden: NDArray[np.int64]) -> Floats:
        posterior = evidence.copy()
        posterior[hidden] = 1.0  # nothing but their neighbours speaks for them
        field = replace(cast(Field, problem.structure), coupling=coupling).update(FieldSummary(0.0, mass, coupling))
        field.infer(posterior, graph, None, problem.engine.n_threads)
        return posterior

    field, trail = cast(Field, problem.structure).update(FieldSummary(0.0, mass, 0.0)), Trail()
    for _ in range(COUPLING_ROUNDS):  # Newton steps on the pseudo-likelihood
        summary = field.infer(evidence.copy(), graph, trail, problem.engine.n_threads)
        moved, field = abs(summary.coupling - field.coupling), cast(Field, problem.structure).update(summary)
        if moved <= COUPLING_SETTLED * field.coupling:
            break
    known = None if observations.gold is None else observations.gold.codes >= 0
    confusion = problem.workers.plain_mean(parameters.workers, independent_fit.statistics.counts, parameters.prior)
    couplings, by_fold = list_couplings(field.coupling, power), []
    for hidden in hide_items(r, N_PARTS, ENOUGH_ITEMS, seed, known) if field.coupling else ():
        answer = np.flatnonzero(hidden)
        items, unit = np.unique(r.items_of(answer), return_inverse=True)
        by_class = problem.workers.predict(confusion, r.worker[answer], r.label[answer])
        weight = r.weights(answer)
        posteriors = (infer(coupling, items)[items[unit]] for coupling in couplings)
        by_fold.append([score_powers(posterior, by_class, unit, weight) for posterior in posteriors])
    coupling = pick_coupling(couplings, by_fold)[0] if by_fold else field.coupling
    return coupling, infer(coupling, np.empty(0, np.int64)).argmax(axis=1)


def limit_graph(
    model: AnyLatent, fit: FitResult, observations: Observations, graph: Graph, engine: Engine
) -> tuple[AnyLatent, FitResult, GraphCheck]:
    """A field and its fit, and what was found about the graph.

    Where a worker's errors run along the edges, neighbours repeat them. Then the field is fitted again, so that only
    items that nobody answered hear their neighbours; unless the user gave a coupling.
    """
    # What the classifier said of the items need not be learned again.
    counted = weigh_copies(fit, observations.responses, np.arange(observations.responses.n_workers))
    known = replace(observations, responses=counted, features=None, log_prior=fit.given.log_prior)
    check = check_graph(model, fit, known, graph, engine)
    if not (check.sound and check.repeats_errors and model._learns_coupling):
        return model, fit, check
    limited = renew(model, coupling=fit.coupling, listeners="unanswered")
    asked: dict[str, Any] = {"copies": fit.given.copies, "source_kind": fit.given.source_kind, "chosen": fit.given}
    asked["coupling_scores"] = fit.course.coupling_scores  # they tell where the coupling comes from
    return limited, fit_model(limited, observations, graph, engine, count_copies_once=True, **asked), check
