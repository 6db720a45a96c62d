"""The crowd alone: what the model says with the same parameters and answers, and without known labels.

For this it is fitted again, once, from the same start. The coupling of neighbours and groups of near-copies are taken
as found. What was known of the items beside their answers is not kept with a model: where the probabilities show that
there was something, nothing is compared.
"""

from __future__ import annotations

import numpy as np

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..errors import quietly
from ..inference.sources import Source
from ..models.base import Model
from ..models.latent import LatentModel
from ..results.fitting import fit
from ..results.new_answers import Applied
from ..results.result import Result

# With more answers and edges a second fit would take too long: so many take about ten seconds on two cores.
MOST_ANSWERS = 10_000_000
# Posteriors of the fit and of its own parameters differ by less, unless something else was known of the items. In
# networks they are found step by step, and only nearly the same.
SAME, NEARLY_SAME = 1e-6, 0.05


def find_obstacle(model: Model, r: Answers, graph: Graph | None, known: dict[object, object] | None) -> str:
    """Return why the fit without known labels cannot be compared; nothing if it can."""
    n_edges = 0 if graph is None else graph.n_edges
    if r.n_responses + n_edges > MOST_ANSWERS:
        return "there are so many answers that a second fit would take too long"
    if isinstance(model, LatentModel):
        with quietly():
            posterior = Applied(model.recipe(), model.result_, Source(r), graph, known).infer()
        if np.abs(posterior - model.result_.labels.fitted).max() > (SAME if graph is None else NEARLY_SAME):
            return "the fit knew more of the items than their answers, and this is not kept with the model"
    return ""


def fit_alone(model: Model) -> Result:
    """Return what the same model finds without known labels."""
    parameters: dict[str, object] = {"callback": None} if "callback" in model.get_params() else {}
    if model.get_params().get("coupling") == "learn":
        parameters["coupling"] = model.result_.coupling
    found, once = model.result_, model.result_.copies_count_once
    with quietly():
        return fit(
            model.fresh(**parameters).recipe(),
            found.answers,
            found.given.graph,
            copies=found.copies,
            count_copies_once=once,
        )
