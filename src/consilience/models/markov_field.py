"""Result over a graph: neighbours tend to have the same label, as far as the data bear it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ..checks.graph_check import check_graph
from ..engines import open_engine
from ..errors import InputError, plural
from ..inference.em import Progress
from ..inference.learned import explain_choice
from ..inference.recipes.field import FieldRecipe
from ..inference.structures.field import weight_unit
from ..results.comparison import GraphCheck, describe_usual
from ..results.fitting import open_source
from .base import Found, NoBatches
from .latent import LatentModel, describe_age


class MarkovField(LatentModel):
    r"""Fuse answers about the nodes of a network: papers and citations, people and ties, pixels, nearest neighbours.

    The labels form a Markov random field: each edge multiplies the probability of a labelling by :math:`e^{\beta w}` if
    its ends agree. Workers answer by their confusion matrices, and everything is learned from the answers: labels,
    matrices, class prior and the coupling :math:`\beta`, which falls to zero where neighbours have nothing in common.
    Items nobody answered get their label from their neighbours; items without neighbours from their answers.

    Parameters
    ----------
    coupling : {"learn", "paper"} or float
        :math:`\beta`, in nats per agreeing neighbour (the paper's delta is twice that): learned; as in the paper, where
        delta is the number of workers, or half the number of answers to an item; or given. A learned coupling is a
        multiple of the one by pseudo-likelihood, which tells how much neighbours agree. It is the multiple at which the
        neighbours of items whose answers are all hidden predict these answers best; see `explain_coupling`.
    inference : {"mean_field", "icm", "belief_propagation"}
        How posteriors are found: mean field; iterated conditional modes, as in the paper; or damped sum-product belief
        propagation, which is exact on trees.
    degree_normalised : bool
        Divide each edge's weight by the geometric mean of its ends' degrees, so that nodes with many neighbours do not
        dominate.
    listeners : {"all", "unanswered"}
        Which items hear their neighbours: all, or only those that nobody answered. The labels of the others are then
        those of `DawidSkene`. That is for workers whose errors run along the edges (see `check_graph`), and for a
        coupling that is given.
    start : {"majority", "moments", "best", "dawid-skene"}, fitted model or array
        Where to start. "dawid-skene" fits `DawidSkene` first; with few answers that is too sure of itself for the
        neighbours to be heard.
    workers, estimation, prior, smoothing, calibration, label_by, classifier
        As for `DawidSkene`.
    n_init, max_iter, tol, seed, callback
        As for `DawidSkene`.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_, starts_
        As for `DawidSkene`, and so are all that are not listed here. The trace is the mean-field objective without the
        field's normaliser: at a given coupling it never falls by mean field if all items listen; while the coupling is
        learned, and otherwise, it is a guide. With a strong coupling a fit may have to go on from posteriors that are
        inferred anew; the trace begins there.
    coupling_ : float
        The coupling used, for edges of weight 1. Where edges have weights, it is told in words for edges of the
        `usual_weight`.
    coupling_scores_ : list of CouplingScore
        Each coupling that was tried, with the mean log probability of the answers to a hidden item and its standard
        error. Empty if the coupling was given, or if there was nothing to choose by.

    Notes
    -----
    Inference runs on this machine, over the whole graph; evidence and counts go through the engine. To learn the
    coupling takes about thirty more fits of a small graph, and six of one with more than 25,000 answered items; each
    goes on from the one before. `check_graph` fits the same model to a shuffled graph, at the same price.

    A class prior that is learned has no say at items with neighbours. One that is given with `prior` has.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.network(500, n_workers=5, n_classes=3, degree=6, seed=1)
    >>> model = cs.MarkovField().fit(crowd.responses, graph=crowd.graph)
    >>> alone = cs.DawidSkene().fit(crowd.responses)
    >>> cs.metrics.accuracy(crowd.truth, model.labels_) > cs.metrics.accuracy(crowd.truth, alone.labels_)
    True
    """

    coupling_ = Found(lambda found: cast(float, found.coupling), "Nats per agreeing neighbour, for weight 1.")
    coupling_scores_ = Found(lambda found: found.coupling_scores, "How well each coupling predicted hidden items.")

    coupling: str | float
    listeners: str

    def __init__(
        self,
        *,
        coupling: str | float = "learn",
        inference: str = "mean_field",
        degree_normalised: bool = False,
        listeners: str = "all",
        workers: str = "confusion",
        estimation: str = "variational",
        prior: object = "learn",
        smoothing: object = "learn",
        calibration: str | float = "hidden answers",
        classifier: object = None,
        label_by: str = "mode",
        start: object = "majority",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        seed: int = 0,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self._store(locals())

    partial_fit = NoBatches(": a graph cannot be cut into them")

    def recipe(self) -> FieldRecipe:
        """Return the parameters as they stand, and how they are followed."""
        return FieldRecipe(**self.get_params())

    def check_graph(
        self,
        responses: object,
        graph: object,
        gold: object = None,
        engine: object = None,
        *,
        features: object = None,
        item_prior: object = None,
    ) -> GraphCheck:
        """Check whether the graph is informative, by a fit to a shuffled one, and whether errors run along its edges.

        If neighbours agree no more than on a shuffled graph with the same degrees, the graph is not informative. If a
        worker's errors at neighbouring items are alike, neighbours repeat them instead of correcting them. That the
        labels which the graph changes are right, only known labels can show.

        The coupling that is learned tells the two graphs apart: a model whose coupling is given is fitted again, with
        a learned one, to both.

        Parameters
        ----------
        responses, graph, gold, engine, features, item_prior
            As for `fit`.

        Returns
        -------
        GraphCheck
        """
        recipe, r, n_items = self.recipe(), self.read(responses)[1], self.result_.labels.n_items
        if r.n_items != n_items:
            raise InputError(
                f"The model was fitted to {plural(n_items, 'item')}, and these answers are about {r.n_items:,}.",
                "Give the answers of the fit.",
            )
        source = open_source(recipe, r, gold, features, item_prior)
        with open_engine(engine) as opened:
            return check_graph(recipe, self.result_, source, recipe.align(r, graph), opened)

    def explain_coupling(self) -> str:
        """Say in words how strongly neighbouring labels are coupled, and why."""
        found = self.result_
        heard = "" if self.listeners == "all" else " It counts only for items that nobody answered."
        unit, note = self.usual_weight, describe_usual(self.usual_weight)
        if not found.coupling_scores:
            why = "there was nothing to judge it by" if self.recipe().learns_coupling else "it was given"
            return f"Coupling {self.coupling_ * unit:.3g}{note}: {why}.{heard}"
        words = "neighbours add nothing to the answers" if self.coupling_ == 0 else "neighbours tend to agree"
        return explain_choice(self.coupling_, found.coupling_scores, words, note, unit) + describe_age(found) + heard

    @property
    def usual_weight(self) -> float:
        """The usual weight of an edge, the geometric mean. Such an edge couples labels by so many times `coupling_`.

        1 for ``coupling="paper"``, and if the graph was not saved with the model.
        """
        graph = None if not self.is_fitted else self.result_.given.graph
        if graph is None or (isinstance(self.coupling, str) and self.coupling == "paper"):
            return 1.0
        return weight_unit(graph.weights)

    def _describe(self) -> str:
        note = describe_usual(self.usual_weight)
        return f"{super()._describe()}; coupling {self.coupling_ * self.usual_weight:.2f}{note}"
