"""Fields: the labels of a graph's nodes form a Markov random field in which neighbours tend to agree.

    P(y) prop. to prod_n pi_{y_n}  prod_{edges (n, n')} exp(beta w_nn' [y_n = y_n'])

with coupling beta in nats per agreeing neighbour (the paper's delta is 2 beta). Inference is by mean field, iterated
conditional modes or belief propagation, over the whole graph at once. The coupling is given, or learned by maximum
pseudo-likelihood of the posteriors, together with the pull h of each class, one Newton step after each inference:

    maximise over beta >= 0 and h:  sum_nk q_nk log softmax_k(h_k + beta s_nk) + log beta - beta,   s = A q

The last two terms are a Gamma(2, 1) prior, which matters in small graphs only; `MOST_COUPLING` is a cap. Neighbours
carry most of what the class prior says, so h is far weaker than log pi where labels come in patches: with log pi in its
place small classes would die out. It is log pi at beta = 0, for a coupling that is given, and for nodes without edges.

The objective is that of mean field, sum q (log evidence + log pi + beta s / 2 - log q) plus the parameters' bounds; the
field's own normaliser, which nobody can compute, is left out. At fixed coupling it never falls by mean field.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block
from ..data.graph import Graph
from ..distributions import estimate
from ..kernels.types import Floats, freeze

INFERENCES = ("mean_field", "icm", "belief_propagation")
MOST_COUPLING = 3.0
# Inference stops when no probability moves by more than this, or after so many sweeps: in EM, where it goes on from the
# last iteration, and at the end, where it starts anew.
EM_SWEEPS, EM_TOL = 20, 1e-3
LAST_SWEEPS, LAST_TOL = 200, 1e-6
DAMPING = 0.2
NO_GRAPH = Graph(np.empty(0), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


class FieldSummary(NamedTuple):
    """What one inference over the graph gives."""

    log_normaliser: float
    mass: Floats
    coupling: float  # the next one
    pull: Floats  # (K,): the next pull of each class


@dataclass
class Memory:
    """Where inference ended the last time, to go on from there. It never leaves the driver's machine."""

    posterior: Floats | None = None
    messages: Floats | None = None


class FieldParameters(NamedTuple):
    """Class prior and coupling, and the graph they are for."""

    weights: Floats
    mean: Floats
    coupling: float
    pull: Floats  # (K,): h, for nodes with edges
    bound: float
    learns: bool
    fixed: bool  # whether the class prior is given
    inference: str
    graph: Graph
    memory: Memory

    @property
    def whole(self) -> bool:
        """Tell the E-step that items cannot be taken block by block."""
        return True

    def infer_all(self, evidence: Floats, final: bool = False) -> FieldSummary:
        """Turn evidence into posteriors, in place; `final` starts anew and goes on for longer."""
        from ..kernels.field import field_objective, neighbour_sums

        with np.errstate(divide="ignore"):
            unary = np.log(evidence)
        linked = self.graph.degrees > 0
        unary[linked] += self.pull
        unary[~linked] += log_of(self.weights)
        memory = Memory() if final else self.memory
        posterior = infer_field(self.graph, unary, self.coupling, self.inference, memory, final)
        sums = np.empty_like(posterior)
        neighbour_sums(self.graph.offsets, self.graph.neighbours, self.graph.weights, posterior, sums)
        value = float(field_objective(np.maximum(unary, -1e300), sums, self.coupling, posterior))
        learned = (self.coupling, self.pull) if final or not self.learns else self._learn(sums, posterior)
        evidence[:] = posterior
        return FieldSummary(value, posterior.sum(axis=0), *learned)

    def _learn(self, sums: Floats, posterior: Floats) -> tuple[float, Floats]:
        """Return coupling and pulls after one Newton step on their pseudo-likelihood."""
        from ..kernels.field import pseudo_likelihood_terms

        if not self.graph.n_edges:
            return 0.0, self.pull
        n_classes = posterior.shape[1]
        beta = max(self.coupling, 1e-3)
        gradient, curvature = pseudo_likelihood_terms(self.graph.offsets, sums, self.pull, beta, posterior)
        # Pulls are held near log pi by as much as one node would: classes that are not there, and their common level.
        gradient[:n_classes] -= self.pull - log_of(self.mean)
        curvature[np.diag_indices(n_classes)] += 1.0
        gradient[n_classes] += 1 / beta - 1
        curvature[n_classes, n_classes] += 1 / beta**2
        if self.fixed:
            curvature[:n_classes, n_classes] = curvature[n_classes, :n_classes] = gradient[:n_classes] = 0.0
        # Short steps: far from the optimum a quadratic is a poor guide.
        step = np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
        coupling = beta + np.clip(step[n_classes], -0.5, 0.5)
        return float(np.clip(coupling, 0.0, MOST_COUPLING)), self.pull + step[:n_classes]

    @classmethod
    def restored(cls, **fields: Any) -> FieldParameters:
        """Return parameters as they were saved: without a graph."""
        return cls(**fields, graph=NO_GRAPH, memory=Memory())

    def stripped(self) -> FieldParameters:
        """Return prior and coupling alone, without a graph."""
        return self._replace(graph=NO_GRAPH, memory=Memory())

    def point(self) -> FieldParameters:
        """Return the same with the reported prior in the E-step."""
        return self._replace(weights=self.mean, pull=self.pull if self.learns else log_of(self.mean), bound=0.0)


@dataclass(frozen=True)
class Field:
    """A field over a graph, whose class prior and coupling are learned or fixed."""

    n_classes: int
    fixed_prior: Floats | None
    smoothing: float
    estimation: str
    graph: Graph
    coupling: float | None  # None: learned
    inference: str
    memory: Memory = field(default_factory=Memory)

    def update(self, summary: FieldSummary) -> FieldParameters:
        """Return prior and coupling that expected counts call for."""
        coupling = summary.coupling if self.coupling is None else self.coupling
        if self.fixed_prior is not None:
            return self._parameters(self.fixed_prior, self.fixed_prior, 0.0, coupling, log_of(self.fixed_prior))
        found = estimate(
            summary.mass.reshape(1, -1, 1), np.full((1, self.n_classes, 1), self.smoothing), self.estimation
        )
        weights = found.weights.ravel()
        pull = summary.pull if self.coupling is None and coupling > 0 else log_of(weights)
        return self._parameters(weights, found.mean.ravel(), found.bound, coupling, pull)

    def given(self, prior: Floats) -> FieldParameters:
        """Return a known class prior as parameters; a coupling that is learned begins at 0."""
        return self._parameters(prior, prior, 0.0, self.coupling or 0.0, log_of(prior))

    @property
    def whole(self) -> bool:
        """Tell the loop that items cannot be taken block by block."""
        return True

    def stripped(self) -> Field:
        """Return the same without the graph: what blocks are told."""
        return replace(self, graph=NO_GRAPH, memory=Memory())

    def forget(self) -> None:
        """Let the next inference start anew."""
        self.memory.posterior = self.memory.messages = None

    def summarise(self, block: Block, posterior: Floats) -> FieldSummary:  # noqa: ARG002
        """Return the summary of posteriors that came from elsewhere, such as vote shares."""
        return FieldSummary(0.0, posterior.sum(axis=0), 0.0, np.zeros(posterior.shape[1]))

    def _parameters(
        self, weights: Floats, mean: Floats, bound: float, coupling: float, pull: Floats
    ) -> FieldParameters:
        learns = self.coupling is None
        prior = (freeze(np.array(weights)), freeze(np.array(mean)))
        return FieldParameters(
            *prior,
            coupling,
            freeze(np.array(pull)),
            bound,
            learns=learns,
            fixed=self.fixed_prior is not None,
            inference=self.inference,
            graph=self.graph,
            memory=self.memory,
        )


def log_of(probability: Floats) -> Floats:
    """Return logarithms that stay finite."""
    return np.asarray(np.log(np.maximum(probability, 1e-300)))


def infer_field(graph: Graph, unary: Floats, coupling: float, inference: str, memory: Memory, final: bool) -> Floats:
    """Return the posteriors of all nodes, and remember where inference ended."""
    sweeps, tol = (LAST_SWEEPS, LAST_TOL) if final else (EM_SWEEPS, EM_TOL)
    if inference == "mean_field":
        start = alone(unary) if memory.posterior is None else memory.posterior
        memory.posterior = run_mean_field(graph, unary, coupling, start, sweeps, tol)
    elif inference == "belief_propagation":
        memory.posterior, memory.messages = run_belief_propagation(graph, unary, coupling, memory.messages, sweeps, tol)
    else:
        labels = unary.argmax(axis=1) if memory.posterior is None else memory.posterior.argmax(axis=1)
        memory.posterior = given_neighbours(graph, unary, coupling, find_modes(graph, unary, coupling, labels, sweeps))
    return memory.posterior


def alone(unary: Floats) -> Floats:
    """Return the posteriors of nodes without edges."""
    powers = np.exp(unary - unary.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def run_mean_field(graph: Graph, unary: Floats, coupling: float, start: Floats, max_sweeps: int, tol: float) -> Floats:
    """Sweep until no probability moves by more than `tol`; each update raises the objective."""
    from ..kernels.compile import width_of
    from ..kernels.field import sweep_mean_field

    posterior = start.copy()
    edges = (graph.offsets, graph.neighbours, graph.weights)
    for _ in range(max_sweeps):
        if sweep_mean_field(*edges, unary, coupling, posterior, width_of(unary.shape[1])) < tol:
            break
    return posterior


def run_belief_propagation(
    graph: Graph, unary: Floats, coupling: float, messages: Floats | None, max_sweeps: int, tol: float
) -> tuple[Floats, Floats]:
    """Return beliefs and messages. Trees take two sweeps, to their roots and back, and are exact; loops are damped."""
    from ..kernels.compile import width_of
    from ..kernels.field import sweep_messages

    sent = np.ones((len(graph.neighbours), unary.shape[1])) if messages is None else messages.copy()
    beliefs = np.empty_like(unary)
    links, width = (graph.offsets, graph.weights, graph.reverse_edges), width_of(unary.shape[1])
    if graph.is_forest:
        for order in (graph.outward_order[::-1].copy(), graph.outward_order):
            sweep_messages(order, *links, unary, coupling, 0.0, sent, beliefs, width)
        return beliefs, sent
    order = np.arange(graph.n_items)
    for _ in range(max_sweeps):
        if sweep_messages(order, *links, unary, coupling, DAMPING, sent, beliefs, width) < tol:
            break
    return beliefs, sent


def find_modes(
    graph: Graph, unary: Floats, coupling: float, labels: NDArray[np.int64], max_sweeps: int
) -> NDArray[np.int64]:
    """Return labels that no single change improves (or where the sweeps ended)."""
    from ..kernels.compile import width_of
    from ..kernels.field import sweep_modes

    found = labels.astype(np.int64)
    edges = (graph.offsets, graph.neighbours, graph.weights)
    for _ in range(max_sweeps):
        if not sweep_modes(*edges, unary, coupling, found, width_of(unary.shape[1])):
            break
    return found


def given_neighbours(graph: Graph, unary: Floats, coupling: float, labels: NDArray[np.int64]) -> Floats:
    """Return the posterior of each node given the labels of its neighbours, as the paper's E-step does."""
    from ..kernels.field import neighbour_sums

    hard = np.zeros_like(unary)
    hard[np.arange(len(labels)), labels] = 1.0
    sums = np.empty_like(unary)
    neighbour_sums(graph.offsets, graph.neighbours, graph.weights, hard, sums)
    return alone(unary + coupling * sums)
