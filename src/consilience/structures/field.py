"""Fields: the labels of a graph's nodes form a Markov random field in which neighbours tend to agree.

    P(y) prop. to prod_n pi_{y_n}  prod_{edges (n, n')} exp(beta w_nn' [y_n = y_n'])

with coupling beta in nats per agreeing neighbour (the paper's delta is 2 beta). Inference is by mean field, iterated
conditional modes or belief propagation, over the whole graph at once. The coupling is given, or learned by maximum
pseudo-likelihood of the posteriors, one Newton step after each inference:

    maximise over beta >= 0:  sum_nk q_nk log softmax_k(log pi_k + beta s_nk) + log beta - beta,   s = A q

The last two terms are a Gamma(2, 1) prior, which matters in small graphs only; `MOST_COUPLING` is a cap.

The objective is that of mean field, sum q (log evidence + log pi + beta s / 2 - log q) plus the parameters' bounds; the
field's own normaliser, which nobody can compute, is left out. At fixed coupling it never falls by mean field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..blocks import Block, freeze
from ..estimation import estimate
from ..graph import Graph
from ..kernels.types import Floats

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
    bound: float
    learns: bool
    inference: str
    graph: Graph
    memory: Memory

    #: Inference needs all items at once.
    @property
    def whole(self) -> bool:
        """Tell the E-step that items cannot be taken block by block."""
        return True

    def infer_all(self, evidence: Floats, final: bool = False) -> FieldSummary:
        """Turn evidence into posteriors, in place; `final` starts anew and goes on for longer."""
        from ..kernels.field import field_objective, neighbour_sums

        with np.errstate(divide="ignore"):
            unary = np.log(evidence) + np.log(np.where(self.weights > 0, self.weights, 1e-300))
        memory = Memory() if final else self.memory
        posterior = infer_field(self.graph, unary, self.coupling, self.inference, memory, final)
        sums = np.empty_like(posterior)
        neighbour_sums(self.graph.offsets, self.graph.neighbours, self.graph.weights, posterior, sums)
        value = float(field_objective(np.maximum(unary, -1e300), sums, self.coupling, posterior))
        coupling = self._next_coupling(sums, posterior) if self.learns and not final else self.coupling
        evidence[:] = posterior
        return FieldSummary(value, posterior.sum(axis=0), coupling)

    def _next_coupling(self, sums: Floats, posterior: Floats) -> float:
        from ..kernels.field import pseudo_likelihood_terms

        with np.errstate(divide="ignore"):
            log_prior = np.log(np.maximum(self.mean, 1e-300))
        beta = max(self.coupling, 1e-3)
        gradient, curvature = pseudo_likelihood_terms(sums, log_prior, beta, posterior)
        gradient += 1 / beta - 1
        curvature += 1 / beta**2
        return float(np.clip(beta + gradient / curvature, 0.0, MOST_COUPLING))

    @classmethod
    def restored(cls, **fields: Any) -> FieldParameters:
        """Return parameters as they were saved: without a graph."""
        return cls(**fields, graph=NO_GRAPH, memory=Memory())

    def stripped(self) -> FieldParameters:
        """Return prior and coupling alone, without a graph."""
        return self._replace(graph=NO_GRAPH, memory=Memory())

    def point(self) -> FieldParameters:
        """Return the same with the reported prior in the E-step."""
        return self._replace(weights=self.mean, bound=0.0)


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
            return self._parameters(self.fixed_prior, self.fixed_prior, 0.0, coupling)
        found = estimate(
            summary.mass.reshape(1, -1, 1), np.full((1, self.n_classes, 1), self.smoothing), self.estimation
        )
        return self._parameters(found.weights.ravel(), found.mean.ravel(), found.bound, coupling)

    def given(self, prior: Floats) -> FieldParameters:
        """Return a known class prior as parameters; a coupling that is learned begins at 0."""
        return self._parameters(prior, prior, 0.0, self.coupling or 0.0)

    def forget(self) -> None:
        """Let the next inference start anew."""
        self.memory.posterior = self.memory.messages = None

    def summarise(self, block: Block, posterior: Floats) -> FieldSummary:  # noqa: ARG002
        """Return the summary of posteriors that came from elsewhere, such as vote shares."""
        return FieldSummary(0.0, posterior.sum(axis=0), 0.0)

    def _parameters(self, weights: Floats, mean: Floats, bound: float, coupling: float) -> FieldParameters:
        learns = self.coupling is None
        kept = (freeze(np.array(weights)), freeze(np.array(mean)))
        return FieldParameters(*kept, coupling, bound, learns, self.inference, self.graph, self.memory)


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
    """Return beliefs and messages. On trees the beliefs are exact; loops are damped."""
    from ..kernels.compile import width_of
    from ..kernels.field import sweep_messages

    sent = np.ones((len(graph.neighbours), unary.shape[1])) if messages is None else messages.copy()
    beliefs = np.empty_like(unary)
    damping = 0.0 if graph.is_forest else DAMPING
    for _ in range(max_sweeps):
        moved = sweep_messages(
            graph.offsets,
            graph.weights,
            graph.reverse_edges,
            unary,
            coupling,
            damping,
            sent,
            beliefs,
            width_of(unary.shape[1]),
        )
        if moved < tol:
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
