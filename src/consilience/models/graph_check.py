r"""What can be said about a graph without known labels: whether it tells anything, and whether errors run along it.

**Whether it tells anything.** If it does, answers about neighbours agree more than by chance. With x_n the vote shares
of item n, less their mean over all ends of edges, and C the mean of x x^T over these ends, the agreement beyond chance
and its standard error, if the E edges join items at random, are

    sum over edges (n, n') of x_n . x_n' / (E tr C)    and    |C| / (sqrt(E) tr C),   |C| the root of the sum of squares

A fit on a shuffled graph with the same degrees shows how strong a coupling is learned by chance. Both cannot show that
labels which the graph changes are right.

**Whether errors run along it.** Where workers draw outlines or copy from one item to the next, their errors run along
the edges as the labels do: neighbours then agree, and repeat errors as well as the truth. That can be seen. With the
error of worker m at item n of label y_n, centred by the worker's rate of errors for that label,

    e_mn = [m's answer to n is not y_n] - mean of the same over the items of label y_n that m answered

the correlation over edges whose ends have the same label, pooled over workers, is

    rho = sum over edges (n, n'), y_n = y_n', and workers m who answered both of  e_mn e_mn'
          / sum over the same of  (e_mn^2 + e_mn'^2) / 2

If errors are independent, products of different pairs are uncorrelated, and the standard error of rho is the root of
the sum of (e_mn e_mn')^2, divided by the same. Labels that the graph has smoothed can make errors look alike. So can
labels without the graph, if many of them are wrong and the truth is smooth. So rho is computed by both, and the smaller
one counts. Measured (docs/networks.md): simulated outlines .49 to .80, and .26 to .38 if they are off by half a pixel;
outlines drawn by a crowd .68; papers, songs and sentences up to .14; independent noise on pixels and networks 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data.graph import Graph
from ..data.responses import Responses
from ..kernels.types import Floats

# Neighbours who all agree, and then add fewer nats than this to the log odds of a label, are as good as none.
NO_PULL = 0.2
# What is so many standard errors above 0 is not due to chance.
SURE = 3.0
# Errors run along edges if they are correlated at least so much.
ALIKE = 0.4
# With a larger standard error, errors that run along edges would not be noticed.
UNCLEAR = 0.2
# Vote shares of a smaller variance are the same but for rounding.
SAME = 1e-20
# Items whose neighbours are looked at together.
ITEMS_AT_ONCE = 50_000


@dataclass(frozen=True)
class GraphCheck:
    """What is known about a graph without known labels.

    Attributes
    ----------
    coupling, shuffled_coupling : float
        What was learned on the graph, and on a random one with the same degrees, for edges of the usual weight.
    changed, shuffled_changed : float
        Share of labels that differ from those of `DawidSkene`, which knows no graph.
    degree : float
        Mean number of neighbours of the items that have any.
    agreement, agreement_error : float
        How much answers about neighbours agree beyond chance, at most 1, and the standard error of that if the edges
        join items at random. Both are infinite if this was not measured.
    error_correlation, error_correlation_error : float
        How much a worker's errors at neighbouring items are alike, given the labels, and the standard error of that if
        they are not. The error is infinite where there is nothing to tell by.
    """

    coupling: float
    shuffled_coupling: float
    changed: float
    shuffled_changed: float
    degree: float = 1.0
    agreement: float = float("inf")
    agreement_error: float = float("inf")
    error_correlation: float = 0.0
    error_correlation_error: float = float("inf")

    @property
    def silent(self) -> bool:
        """Whether neighbours have next to no say."""
        return self.coupling * self.degree <= NO_PULL

    @property
    def agrees(self) -> bool:
        """Whether answers about neighbours agree more than chance explains."""
        return self.agreement >= SURE * self.agreement_error

    @property
    def differs(self) -> bool:
        """Whether answers about neighbours differ more than chance explains."""
        return -self.agreement >= SURE * self.agreement_error

    @property
    def sound(self) -> bool:
        """Whether the graph tells something that a random one does not."""
        return not self.silent and self.agrees and self.coupling > 2 * self.shuffled_coupling

    @property
    def repeats_errors(self) -> bool:
        """Whether a worker's errors run along the edges, so that neighbours repeat them."""
        return self.error_correlation >= max(ALIKE, SURE * self.error_correlation_error)

    def __str__(self) -> str:
        found = ""
        if self.agreement_error < float("inf"):
            found = f" (agreement beyond chance {show(self.agreement)}, standard error {show(self.agreement_error)})"
        coupling = f"coupling {self.coupling:.2f}"
        shuffled = f"a shuffled graph: coupling {self.shuffled_coupling:.2f}, {self.shuffled_changed:.1%} of the labels"
        if self.silent:
            unlike = " Neighbours differ more than by chance, which this model cannot use." if self.differs else ""
            check = "" if self.agrees else " Check that its edges use the same ids of items as the answers."
            return f"The graph has almost no effect on these labels ({coupling}){found}.{unlike}{check}"
        changes = f"The graph changes {self.changed:.1%} of the labels ({coupling}; {shuffled})."
        if not self.agrees:
            return (
                f"Neighbouring items agree no more than by chance{found}: nothing shows that the graph tells anything "
                f"about these labels. {changes} Check that its edges use the same ids of items as the answers."
            )
        if not self.sound:
            return (
                f"Neighbouring items agree more than by chance{found}, but a shuffled graph has nearly as strong a "
                f"coupling. {changes} Do not rely on these changes."
            )
        return (
            f"The graph tells something about these labels: neighbouring items agree more than by chance{found}. "
            f"{changes} {self.describe_errors()}"
        )

    def describe_errors(self) -> str:
        """Say whether errors run along the edges, and what follows."""
        if self.repeats_errors:
            return (
                "But workers tend to make the same error on neighbouring items (correlation "
                f"{show(self.error_correlation)}), so the labels that the graph changes may have been right before."
            )
        if self.error_correlation_error > UNCLEAR:
            found = "There are too few answers to tell whether workers make the same error on neighbouring items."
        else:
            found = f"The errors of workers on neighbouring items have a correlation of {show(self.error_correlation)}."
        return (
            found if self.changed == 0 else f"{found} Only known labels can tell whether the changed labels are right."
        )


def show(figure: float) -> str:
    """Return a number with two digits; what is nearly 0 has no sign."""
    return f"{round(figure, 2) + 0.0:.2f}"


def measure_agreement(r: Responses, graph: Graph) -> tuple[float, float]:
    """Return how much answers about neighbours agree beyond chance, and the standard error of that by chance.

    Items without answers, and labels that are no classes, are left out.
    """
    shares, answered = vote_shares(r)
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    both = answered[source] & answered[graph.neighbours]
    links = link(graph, source, both)
    degrees = np.bincount(source[both], minlength=graph.n_items)
    n_edges = degrees.sum() / 2
    if n_edges == 0:
        return 0.0, float("inf")
    shares -= degrees @ shares / degrees.sum()
    spread = (shares * degrees[:, None]).T @ shares / degrees.sum()
    total = float(np.trace(spread))
    if total <= SAME:
        return 0.0, float("inf")  # all answers are alike
    together = float((shares * (links @ shares)).sum()) / 2  # each edge is met from both ends
    return together / (n_edges * total), float(np.linalg.norm(spread) / (np.sqrt(n_edges) * total))


def vote_shares(r: Responses) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the shares of the classes in the answers to each item, and which items have any."""
    said = r.class_of_label[r.label]
    named = said >= 0
    weight = None if r.weight is None else r.weight[named]
    cell = r.item_of_answer()[named] * r.n_classes + said[named]
    votes = np.bincount(cell, weight, r.n_items * r.n_classes).reshape(r.n_items, r.n_classes)
    total = votes.sum(axis=1)
    return votes / np.where(total > 0, total, 1.0)[:, None], total > 0


def link(graph: Graph, source: NDArray[np.int64], chosen: NDArray[np.bool_]) -> sparse.csr_matrix:
    """Return the chosen ones of the edges, which are there in both directions, as a matrix of zeros and ones."""
    ends = source[chosen], graph.neighbours[chosen]
    return sparse.csr_matrix((np.ones(len(ends[0])), ends), shape=(graph.n_items, graph.n_items))


def correlate_errors(r: Responses, graph: Graph, labels: NDArray[np.int64]) -> tuple[float, float]:
    """Return how much a worker's errors at neighbouring items are alike, given labels, and the standard error of that.

    Parameters
    ----------
    r : Responses
        The answers. Labels that are no classes are left out.
    graph : Graph
        Over the items of `r`.
    labels : ndarray
        For each item, the index of its class.
    """
    errors, answered = centre_errors(r, labels)
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    links = link(graph, source, labels[source] == labels[graph.neighbours])
    squares = errors.multiply(errors).tocsr()
    together = spread = products = 0.0
    for first in range(0, graph.n_items, ITEMS_AT_ONCE):
        rows = slice(first, first + ITEMS_AT_ONCE)
        # Each edge is met from both ends.
        together += errors[rows].multiply(links[rows] @ errors).sum()
        spread += squares[rows].multiply(links[rows] @ answered).sum()
        products += squares[rows].multiply(links[rows] @ squares).sum() / 2
    if spread <= 0:
        return 0.0, float("inf")
    return float(together / spread), float(np.sqrt(products) / (spread / 2))


def centre_errors(r: Responses, labels: NDArray[np.int64]) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Return the errors e (items x workers), and who answered what.

    An answer that is spread over several labels is wrong by the share that goes to other labels than the item's.
    """
    said = r.class_of_label[r.label]
    named = said >= 0
    item, worker, said = r.item_of_answer()[named], r.worker[named].astype(np.int64), said[named]
    weight = np.ones(len(item)) if r.weight is None else r.weight[named]
    votes, vote = np.unique(item * r.n_workers + worker, return_inverse=True)
    wrong = np.bincount(vote, weight * (said != labels[item])) / np.bincount(vote, weight)
    item, worker = np.divmod(votes, r.n_workers)
    cell = worker * r.n_classes + labels[item]
    rate = np.bincount(cell, wrong) / np.maximum(np.bincount(cell), 1)
    shape = (r.n_items, r.n_workers)
    errors = sparse.csr_matrix((wrong - rate[cell], (item, worker)), shape=shape)
    return errors, sparse.csr_matrix((np.ones(len(item)), (item, worker)), shape=shape)


def mean_degree(graph: Graph) -> float:
    """Return the mean number of neighbours of the items that have any."""
    linked = graph.degrees[graph.degrees > 0]
    return float(linked.mean()) if len(linked) else 0.0


def judge_graph(
    r: Responses, graph: Graph, couplings: tuple[float, float], labels: tuple[NDArray[np.int64], ...]
) -> GraphCheck:
    """Return the check of a graph.

    Parameters
    ----------
    r, graph
        The answers, and the graph over their items.
    couplings : pair of float
        Learned on the graph, and on a shuffled one.
    labels : three arrays
        Found with the graph, with the shuffled one, and without any.
    """
    here, shuffled, alone = labels
    correlation, error = min(correlate_errors(r, graph, found) for found in (here, alone))
    return GraphCheck(
        *couplings,
        float(np.mean(here != alone)),
        float(np.mean(shuffled != alone)),
        mean_degree(graph),
        *measure_agreement(r, graph),
        correlation,
        error,
    )
