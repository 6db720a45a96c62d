"""What a simulator returns: answers, truth, true parameters, and what could be known at best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..kernels.types import Floats

if TYPE_CHECKING:
    from ..inference.structures.base import StructureParameters


@dataclass(frozen=True, eq=False)
class TrueParameters:
    """What the data were drawn from.

    Attributes
    ----------
    prior : ndarray
        Class probabilities; of a chain, those it keeps.
    confusion : ndarray
        ``confusion[worker, truth, answer]``.
    kinds : ndarray
        What each worker is: honest, spammer, adversary or copycat.
    copies : ndarray
        Index of the worker whose answers each worker repeats; -1 for workers with answers of their own.
    transition, initial : ndarray or None
        ``transition[from, to]`` and the distribution of first labels, if the truth is a Markov chain.
    coupling : float or None
        In a network: by how many nats an edge speaks for its ends being of one class.
    hard : float
        Share of items on which all workers err together.
    """

    prior: Floats
    confusion: Floats
    kinds: NDArray[np.str_]
    copies: NDArray[np.int64]
    transition: Floats | None = None
    initial: Floats | None = None
    coupling: float | None = None
    hard: float = 0.0


@dataclass(frozen=True, eq=False)
class Oracle:
    """The best labels that the answers allow: those of a judge who knows the true parameters, but not the truth.

    Attributes
    ----------
    posterior : ndarray
        Class probabilities of each item, rows in the order of `responses.items`.
    labels : ndarray
        The most probable class of each item; of a sequence the most probable labels taken together (Viterbi).
    """

    posterior: Floats
    labels: Values


@dataclass(frozen=True, eq=False)
class Simulation:
    """Answers and what is behind them.

    Attributes
    ----------
    responses : Responses
        The answers.
    truth : ndarray
        The true class of each item, in the order of `responses.items`.
    parameters : TrueParameters
        What both were drawn from.
    graph : Graph or None
        The network, if there is one.
    """

    responses: Responses
    truth: Values
    parameters: TrueParameters
    graph: Graph | None = None

    def __repr__(self) -> str:
        graph = "" if self.graph is None else f", graph with {self.graph.n_edges:,} edges"
        return f"Simulation({self.responses!r}{graph})"

    def oracle(self) -> Oracle:
        """Return the best that can be made of the answers: the posterior under the true parameters.

        No method is right about more items on average than the most probable class of each, so that this is the
        ceiling for all of them. Answers of copycats say nothing that their originals have not said, and are left out.
        In networks it is found by belief propagation: exact on trees, an approximation elsewhere.

        Returns
        -------
        Oracle

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(2000, answers_per_item=5, accuracy=(0.4, 0.9), seed=1)
        >>> for labels in (cs.MajorityVote().fit(crowd.responses).labels_, crowd.oracle().labels):
        ...     print(f"{cs.metrics.accuracy(crowd.truth, labels):.3f}")
        0.874
        0.930
        """
        from ..answers.blocks import cut_blocks
        from ..engines.local import Threads
        from ..inference.em import decode_labels, infer_posterior
        from ..inference.workers.confusion import ConfusionWorkers

        r = self.responses.keep(self.parameters.copies[self.responses.worker] < 0)
        workers = ConfusionWorkers(r.n_workers, r.class_of_label, r.n_classes)
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows)
        factors = workers.factors(workers.given(self.parameters.confusion), weighted=False)
        graph = None if self.graph is None else self.graph.aligned_with(r.items)
        known = (Threads(), blocks, factors, self._true_structure(), graph)
        posterior, _ = infer_posterior(*known)
        return Oracle(posterior, r.classes[decode_labels(*known)])

    def _true_structure(self) -> StructureParameters:
        """Return what ties the labels together, with its true parameters."""
        from ..answers.tagging import free_transitions
        from ..inference.structures.chain import Chain
        from ..inference.structures.field import Field
        from ..inference.structures.independent import Independent

        true, prior = self.parameters, self.parameters.prior
        if self.graph is not None and true.coupling is not None:
            return Field(len(prior), prior, 0.0, "em", true.coupling, "belief_propagation").given(prior)
        if true.transition is not None and true.initial is not None:
            chain = Chain(len(prior), prior, 0.0, "em", 1.0, free_transitions(len(prior)))
            return chain.given(prior, true.initial, true.transition)
        return Independent(len(prior), prior, 0.0, "em").given(prior)
