"""Fields: the labels of a graph's nodes form a Markov random field in which neighbours tend to agree.

    P(y) prop. to prod_n pi_{y_n}  prod_{edges (n, n')} exp(beta w_nn' [y_n = y_n'])

with coupling beta in nats per agreeing neighbour (the paper's delta is 2 beta). Inference is by mean field, iterated
conditional modes or belief propagation, over the whole graph at once. The coupling is given, or learned by maximum
pseudo-likelihood of the posteriors, one Newton step after each inference:

    maximise over beta >= 0:  sum_nk q_nk log softmax_k(h_k + beta s_nk) + log beta - beta,   s = A q

The last two terms are a Gamma(2, 1) prior, which matters in small graphs only; `MOST_COUPLING` is a cap. Both are for
edges of the usual weight, `weight_unit`: what neighbours tell does not depend on the unit of the weights.

The pull h of a class is log pi if pi is given. A pi that is learned has no say at nodes with edges, where h = 0: their
neighbours say the same, and counted twice it would grow until small classes die out. At beta = 0 neighbours say
nothing, and h is log pi again. Nodes without edges take the class prior of a fit without the graph.

In a directed graph the weight of an edge may differ between its sides: what counts for a node is the one on its own.

The objective is that of mean field, sum q (log evidence + h + beta s / 2 - log q) plus the parameters' bounds; the
field's own normaliser, which nobody can compute, is left out. At fixed coupling it never falls by mean field.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ...answers.answers import Block
from ...answers.graph import Graph
from ...kernels import NEARLY_ZERO, Floats, freeze
from . import IndependentParameters, Structure, StructureParameters, Summary, Trail

MOST_COUPLING = 3.0
LEAST_UNIT, MOST_UNIT = 2.0**-300, 2.0**1000
# No edge couples by more nats than this, which is certainty: sums and squares of couplings stay numbers.
FIRMEST = 1e100
# Inference stops when no probability moves by more than this, or after so many sweeps: in EM, where it continues from
# the last iteration, and at the end, where it starts again.
EM_SWEEPS, EM_TOL = 20, 1e-3
LAST_SWEEPS, LAST_TOL = 200, 1e-6
MESSAGE_DAMPING = 0.2
# Threads share nodes of which each of them gets at least so many, their edges counted too.
WORTH_A_THREAD = 10_000
# Parts of the coupling with which mean field begins, and sweeps with each.
WARM_UP, WARM_UP_SWEEPS = (0.25, 0.5, 0.75), 3


@dataclass(frozen=True, eq=False)
class FieldSummary(Summary):
    """Expected counts of one inference over the graph."""

    coupling: float  # the next one


@dataclass(frozen=True, eq=False)
class FieldParameters(StructureParameters):
    """Class prior and coupling. The graph they are applied to is an argument of `infer`."""

    takes_all: ClassVar[bool] = True

    weights: Floats
    mean: Floats
    coupling: float
    pull: Floats  # h, for nodes with edges
    bound: float
    learns: bool
    fixed: bool  # whether the class prior is given
    inference: str

    def infer(self, evidence: Floats, graph: Graph | None, trail: Trail | None, n_threads: int) -> FieldSummary:
        """Turn the evidence of all nodes into posteriors, in place.

        With a trail, inference continues from it, is brief, and the coupling takes one step; without one it starts
        from the evidence alone and takes more sweeps. All of it is in the order in which nodes are visited.
        """
        from ...kernels.graph import field_objective, pseudo_likelihood_slope

        if graph is None:
            raise TypeError("A field is inferred over a graph.")
        order, graph = graph.by_visit
        with np.errstate(divide="ignore"):
            unary = np.log(evidence[order])
        linked = find_linked(graph)
        unary[linked] += self.pull
        unary[~linked] += log_of(self.weights)
        sweeps, tol = (LAST_SWEEPS, LAST_TOL) if trail is None else (EM_SWEEPS, EM_TOL)
        reached = Trail() if trail is None else trail
        if self.inference == "mean_field":
            start = reached.posterior
            if start is None:
                # First a few sweeps with weaker couplings: with all of it at once, the nodes that are visited first
                # would win over the others.
                start = softmax(unary, axis=1)
                for part in WARM_UP:
                    weak = part * self.coupling
                    start = run_mean_field(graph, unary, weak, start, WARM_UP_SWEEPS, EM_TOL, n_threads)
            posterior = run_mean_field(graph, unary, self.coupling, start, sweeps, tol, n_threads)
        elif self.inference == "belief_propagation":
            sent = reached.messages
            posterior, reached.messages = run_belief_propagation(graph, unary, self.coupling, sent, sweeps, tol)
        else:
            # From the evidence each time: an optimum that is only found from the last one would be lost in predictions.
            modes = find_modes(graph, unary, self.coupling, unary.argmax(axis=1), sweeps)
            posterior = given_neighbours(graph, unary, self.coupling, modes, n_threads)
        reached.posterior = posterior
        sums = add_neighbours(graph, posterior, n_threads)
        value = float(field_objective(np.maximum(unary, -1e300), sums, self.coupling, posterior))
        evidence[order], coupling = posterior, self.coupling
        if self.learns and trail is not None:
            # One Newton step on the pseudo-likelihood; short, for far from the optimum a quadratic is a poor guide.
            coupling, unit = 0.0, weight_unit(graph.weights)
            if graph.n_edges:
                beta = max(self.coupling * unit, 1e-3)
                slope, curvature = pseudo_likelihood_slope(graph.offsets, sums / unit, self.pull, beta, posterior)
                step = np.clip((slope + 1 / beta - 1) / (curvature + 1 / beta**2), -0.5, 0.5)
                coupling = float(np.clip(beta + step, 0.0, MOST_COUPLING)) / unit
        return FieldSummary(value, posterior.sum(axis=0), coupling)

    def log_prior(self, linked: bool) -> Floats:
        """The logarithms of the class prior of a node with edges, or of one without, (K,)."""
        return self.pull if linked else log_of(self.weights)

    def point(self) -> Self:
        """The parameters with which the E-step uses the reported prior."""
        is_prior = np.array_equal(self.pull, log_of(self.weights))
        return replace(self, weights=self.mean, pull=log_of(self.mean) if is_prior else self.pull, bound=0.0)


@dataclass(frozen=True, eq=False)
class Field(Structure):
    """A field whose class prior and coupling are learned or fixed."""

    coupling: float | None  # None: learned
    inference: str
    # The class prior of nodes without edges, if neither is a class prior given nor is it to be learned along.
    unlinked: IndependentParameters | None = None

    def update(self, summary: FieldSummary) -> FieldParameters:
        """Prior and coupling that expected counts call for."""
        coupling = summary.coupling if self.coupling is None else self.coupling
        weights, mean, bound = self.estimate_prior(summary.mass)
        if self.fixed_prior is not None or coupling == 0 or self.unlinked is None:
            return self._parameters(weights, mean, bound, coupling)
        return self._parameters(self.unlinked.weights, mean, 0.0, coupling)

    def for_left_out(self, parameters: FieldParameters) -> FieldParameters:
        """The parameters for posteriors that leave items out; nodes without edges have their own prior."""
        reported: FieldParameters = super().for_left_out(parameters)
        if parameters.fixed or parameters.coupling == 0 or self.unlinked is None:
            return reported
        return replace(reported, weights=self.unlinked.mean)

    def given(self, prior: Floats) -> FieldParameters:
        """A known class prior as parameters; a coupling that is learned begins at 0."""
        return self._parameters(prior, prior, 0.0, self.coupling or 0.0)

    def summarise(self, block: Block, posterior: Floats) -> FieldSummary:
        """The summary of one block's posteriors that came from elsewhere, such as vote shares."""
        return FieldSummary(0.0, posterior.sum(axis=0), 0.0)

    def _parameters(self, weights: Floats, mean: Floats, bound: float, coupling: float) -> FieldParameters:
        fixed = self.fixed_prior is not None
        silent = coupling > 0 and not fixed
        return FieldParameters(
            freeze(np.array(weights)),
            freeze(np.array(mean)),
            coupling,
            freeze(np.zeros(self.n_classes) if silent else log_of(weights)),
            bound,
            learns=self.coupling is None,
            fixed=fixed,
            inference=self.inference,
        )


def find_linked(graph: Graph) -> NDArray[np.bool_]:
    """Tell which nodes have neighbours that count."""
    n_before = np.concatenate([[0], np.cumsum(graph.weights > 0)])
    return np.asarray(n_before[graph.offsets[1:]] > n_before[graph.offsets[:-1]])


def weight_unit(weights: Floats) -> float:
    """The usual weight, for which a coupling is learned: the geometric mean of all that count.

    >>> weight_unit(np.array([0.5, 1.0, 2.0])), weight_unit(np.array([4096.0, 4096.0, 0.0]))
    (1.0, 4096.0)
    """
    linked = weights[weights > 0]
    return (
        float(2.0 ** np.clip(np.log2(linked).mean(), np.log2(LEAST_UNIT), np.log2(MOST_UNIT))) if len(linked) else 1.0
    )


def most_weight(weights: Floats, coupling: float | None) -> float:
    """The largest weight that an edge may have, for a coupling that is given, or None if it is learned."""
    return FIRMEST / max(coupling, 1.0) if coupling is not None else min(FIRMEST * weight_unit(weights), 1e300)


def log_of(probability: Floats) -> Floats:
    """Logarithms that stay finite."""
    return np.asarray(np.log(np.maximum(probability, NEARLY_ZERO)))


def run_mean_field(
    graph: Graph, unary: Floats, coupling: float, start: Floats, max_sweeps: int, tol: float, n_threads: int = 1
) -> Floats:
    """Sweep until no probability moves by more than `tol`; each update raises the objective.

    Nodes are updated in order. Threads share those that follow each other and are not neighbours.
    """
    from ...kernels import width_of
    from ...kernels.graph import sweep_mean_field

    posterior = start.copy()
    weights = freeze(np.empty(0)) if graph.all_alike else graph.weights
    edges, width = (graph.offsets, graph.neighbours, weights), width_of(unary.shape[1], len(graph.neighbours))
    steps = share_nodes(graph, graph.independent_runs, n_threads)

    def update(bounds: NDArray[np.int64]) -> float:
        return sweep_mean_field(bounds, *edges, unary, coupling, posterior, width)

    with ThreadPoolExecutor(max(map(len, steps))) as pool:
        for _ in range(max_sweeps):
            largest = 0.0
            for step in steps:
                changes = map(update, step) if len(step) == 1 else pool.map(update, step)
                largest = max(largest, *changes)
            if largest < tol:
                break
    return posterior


def add_neighbours(graph: Graph, values: Floats, n_threads: int) -> Floats:
    """The weighted sum of the values of each node's neighbours."""
    from ...kernels.graph import neighbour_sums

    edges, sums = (graph.offsets, graph.neighbours, graph.weights), np.zeros_like(values)

    def add(bounds: NDArray[np.int64]) -> None:
        neighbour_sums(int(bounds[0]), int(bounds[-1]), *edges, values, sums)

    with ThreadPoolExecutor(n_threads) as pool:
        for step in share_nodes(graph, np.array([0, graph.n_items]), n_threads):
            list(pool.map(add, step))
    return sums


def share_nodes(graph: Graph, bounds: NDArray[np.int64], n_threads: int) -> list[list[NDArray[np.int64]]]:
    """What threads do in one pass over the nodes: in each step some runs of nodes, which are done at once.

    The nodes of bounds[s]:bounds[s + 1] have nothing to do with each other. Threads share them where there are enough;
    otherwise one thread goes from one run to the next.
    """
    work = graph.offsets + np.arange(graph.n_items + 1)
    n_parts = np.minimum(np.diff(work[bounds]) // WORTH_A_THREAD, n_threads)
    steps, done = list[list[NDArray[np.int64]]](), 0
    for s in np.flatnonzero(n_parts > 1).tolist():
        if s > done:
            steps.append([bounds[done : s + 1]])
        even = np.linspace(work[bounds[s]], work[bounds[s + 1]], n_parts[s] + 1).astype(np.int64)
        cuts = np.searchsorted(work, even)
        steps.append([cuts[i : i + 2] for i in range(n_parts[s])])
        done = s + 1
    return steps if done == len(bounds) - 1 else [*steps, [bounds[done:]]]


def run_belief_propagation(
    graph: Graph, unary: Floats, coupling: float, messages: Floats | None, max_sweeps: int, tol: float
) -> tuple[Floats, Floats]:
    """Beliefs and messages. Trees take two sweeps, to their roots and back, and are exact; loops are damped."""
    from ...kernels import width_of
    from ...kernels.graph import sweep_messages

    sent = np.ones((len(graph.neighbours), unary.shape[1])) if messages is None else messages.copy()
    beliefs = np.zeros_like(unary)
    # What a message counts is up to the node that receives it.
    weights = graph.weights[graph.reverse_edges] if graph.directed else graph.weights
    links, width = (graph.offsets, weights, graph.reverse_edges), width_of(unary.shape[1], len(graph.neighbours))
    if graph.is_forest:
        for order in (graph.outward_order[::-1].copy(), graph.outward_order):
            sweep_messages(order, *links, unary, coupling, 0.0, sent, beliefs, width)
        return beliefs, sent
    order = np.arange(graph.n_items)
    for _ in range(max_sweeps):
        if sweep_messages(order, *links, unary, coupling, MESSAGE_DAMPING, sent, beliefs, width) < tol:
            break
    return beliefs, sent


def find_modes(
    graph: Graph, unary: Floats, coupling: float, labels: NDArray[np.int64], max_sweeps: int
) -> NDArray[np.int64]:
    """Labels that no single change improves (or where the sweeps ended)."""
    from ...kernels import width_of
    from ...kernels.graph import sweep_modes

    modes = labels.astype(np.int64)
    edges, width = (graph.offsets, graph.neighbours, graph.weights), width_of(unary.shape[1], len(graph.neighbours))
    for _ in range(max_sweeps):
        if not sweep_modes(*edges, unary, coupling, modes, width):
            break
    return modes


def given_neighbours(
    graph: Graph, unary: Floats, coupling: float, labels: NDArray[np.int64], n_threads: int = 1
) -> Floats:
    """The posterior of each node given the labels of its neighbours, as the paper's E-step does."""
    hard = np.zeros_like(unary)
    hard[np.arange(len(labels)), labels] = 1.0
    return np.asarray(softmax(unary + coupling * add_neighbours(graph, hard, n_threads), axis=1))
