"""Structures: how the labels of items hang together. This is all that the loop and the models ask of one.

It turns evidence into posteriors, and posteriors into its own counts. It has three parts, each small, frozen, and
without memory:

- `Structure` is what is fixed before the fit: pseudo-counts, the rules of a tag scheme, whether a coupling is learned.
  It turns the summary of one pass over the data into parameters (the M-step).
- `StructureParameters` is what is learned. It turns evidence into posteriors (the E-step).
- `Summary` is what one pass over the data adds up to: the expected counts that the next parameters are made of.

Most structures work block by block, because a block holds whole sequences, and say how one block is inferred. A
structure whose items all hang together, as in a graph, takes all items at once. Whatever else inference needs travels
as an argument: the graph, and the `Trail` of the last inference.

The simplest structure, `Independent`, is here too; others have a file each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from operator import add, sub
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Block
from ...answers.graph import Graph
from ...kernels import Floats, freeze, width_of
from ..distributions import fit_distribution, log_of, weigh_logs


@dataclass(frozen=True, eq=False)
class Summary:
    """Expected counts of a structure over some items. Those of different items add, field by field."""

    log_normaliser: float  # sum over items of log Z; it is not saved
    mass: Floats  # expected number of items of each class

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(sub, vars(self).values(), vars(other).values()))


@dataclass
class Trail:
    """Where the last inference over a graph ended, so that the next one of the same fit can continue from there."""

    posterior: Floats | None = None
    messages: Floats | None = None


class StructureParameters(ABC):
    """The parameters of a structure, which infer posteriors from evidence."""

    mean: Floats  # (K,): the class prior to report
    bound: float  # what the parameters add to the objective

    #: Whether items hang together beyond blocks, so that inference takes all of them at once.
    takes_all: ClassVar[bool] = False

    def infer_block(self, block: Block, evidence: Floats) -> Summary:
        """Turn the evidence of one block, (n_items, K), into posteriors in place."""
        raise NotImplementedError

    def infer(self, evidence: Floats, graph: Graph | None, trail: Trail | None, n_threads: int) -> Summary:
        """Turn the evidence of all items, (N, K), into posteriors in place, where a structure takes them all at once.

        With a trail, which belongs to a fit, inference continues from where the last one ended. Without one it starts
        from the evidence alone and takes more sweeps.
        """
        raise NotImplementedError

    def decode_block(self, block: Block, evidence: Floats) -> NDArray[np.int64]:
        """The most probable joint labelling of one block: here, the most probable class of each item."""
        self.infer_block(block, evidence)
        return np.asarray(evidence.argmax(axis=1))

    def expect_log(self, summary: Any) -> float:
        """The expected log probability of the labels that a summary has counted: for fits in batches."""
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted in batches.")

    @abstractmethod
    def point(self) -> Self:
        """The parameters with which the E-step uses what is reported: a proper likelihood."""

    def log_prior(self, linked: bool) -> Floats:
        """The logarithms of the class prior of an item, (K,), without its neighbours.

        In a network the prior may depend on whether the item is linked to others.
        """
        return log_of(self.mean)

    def relaxed(self) -> Self:
        """The parameters for calibrated probabilities: what was ruled out is only improbable."""
        return self


@dataclass(frozen=True, eq=False)
class Structure(ABC):
    """The settings of a structure, fixed before the fit and small enough to be sent to every block."""

    n_classes: int
    fixed_prior: Floats | None
    smoothing: float
    estimation: str

    def estimate_prior(self, mass: Floats) -> tuple[Floats, Floats, float]:
        """Weights, mean and bound of the class prior that expected counts of classes call for."""
        if self.fixed_prior is not None:
            known = freeze(np.array(self.fixed_prior))
            return known, known, 0.0
        return fit_distribution(mass, self.smoothing, self.estimation)

    @abstractmethod
    def update(self, summary: Any) -> Any:
        """The parameters that expected counts call for: the M-step."""

    @abstractmethod
    def summarise(self, block: Block, posterior: Floats) -> Any:
        """The summary of one block's posteriors that came from elsewhere, such as vote shares."""

    def one_of_each(self, classes: NDArray[np.bool_]) -> Any:
        """The summary of about one item of each of these classes: what a stream of items begins with."""
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted in batches.")

    def for_left_out(self, parameters: Any) -> Any:
        """The parameters for posteriors that leave items out: probabilities as reported, of what is ruled out too.

        Variational Bayes holds its ignorance against a rare class, as exp(E[log pi]) is far below E[pi]. Evidence that
        leaves items out is made of the means of matrices, and so is the rest.
        """
        return parameters.point().relaxed()

    @abstractmethod
    def given(self, prior: Floats) -> Any:
        """Parameters with this class prior. What ties items together and is learned starts at nothing."""


class Statistics(NamedTuple):
    """Everything one pass over the data adds up to."""

    counts: Floats  # (n_rows, K)
    summary: Summary


@dataclass(frozen=True, eq=False)
class IndependentParameters(StructureParameters):
    """Each label is drawn from the class prior pi on its own; the prior as the E-step uses it, and as it is reported.

    q_nk = pi_k b_nk / Z_n,   Z_n = sum_k pi_k b_nk,   expected counts: sum_n q_nk

    An item of which nothing is known has q_n = pi: it would only confirm what was believed before, and is not counted.
    """

    weights: Floats
    mean: Floats
    bound: float

    def infer_block(self, block: Block, evidence: Floats) -> Summary:
        """Turn the evidence of one block into posteriors, in place."""
        from ...kernels.answers import normalise_items

        n_classes = evidence.shape[1]
        mass = np.zeros(n_classes)
        log_normaliser = normalise_items(
            evidence, self.weights, block.answered, mass, width_of(n_classes, block.total_size)
        )
        return Summary(log_normaliser, mass)

    def expect_log(self, summary: Summary) -> float:
        """The expected log probability of the labels that a summary has counted."""
        return weigh_logs(summary.mass, log_of(self.weights))

    def log_prior(self, linked: bool) -> Floats:
        """The logarithms of the class prior of an item, (K,)."""
        return log_of(self.weights)

    def point(self) -> Self:
        """The parameters with which the E-step uses the reported prior."""
        return type(self)(self.mean, self.mean, 0.0)


@dataclass(frozen=True, eq=False)
class Independent(Structure):
    """Independent items, whose class prior is learned or fixed; the simplest structure."""

    def update(self, summary: Summary) -> IndependentParameters:
        """The class prior that expected counts of classes call for."""
        return IndependentParameters(*self.estimate_prior(summary.mass))

    def given(self, prior: Floats) -> IndependentParameters:
        """A known class prior as parameters."""
        return IndependentParameters(freeze(np.array(prior)), freeze(np.array(prior)), 0.0)

    def one_of_each(self, classes: NDArray[np.bool_]) -> Summary:
        """The summary of one item of each of these classes."""
        return Summary(0.0, classes.astype(np.float64))

    def summarise(self, block: Block, posterior: Floats) -> Summary:
        """The summary of one block's posteriors that came from elsewhere, such as vote shares."""
        return Summary(0.0, (posterior[block.answered] if len(block.answered) else posterior).sum(axis=0))
