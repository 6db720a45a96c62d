"""Moment matching: confusion matrices from the co-occurrence of answers, without EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...answers.graph import Graph
from ...answers.responses import Responses
from ...errors import ConvergenceWarning, DataWarning, ParameterError, Python, Sentence, warn
from ...kernels.types import Floats
from ..em import Progress
from ..moments import MomentFit, answers_to_match, find_obstacles, learn_moments
from ..parameters import check_callback, check_number, fixed_prior
from ..sizes import NAME_CLASSES, SLOW, check_matrices, check_moments, estimate_moments
from ..structures.independent import IndependentParameters
from ..workers.confusion import voters
from .base import AnyCrowd, Recipe


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentRecipe(Recipe):
    """How `MomentMatching` is fitted."""

    model = "MomentMatching"
    structure_type = IndependentParameters
    why_no_batches = ": moments are those of all answers"

    prior: Any
    shrinkage: float
    max_iter: int
    tol: float
    callback: Callable[[Progress], object] | None

    def check(self) -> None:
        """Raise an error for a setting with a value that it cannot have."""
        check_number(self, "shrinkage", 0)
        check_number(self, "max_iter", 1, whole=True)
        check_number(self, "tol", 0)
        check_callback(self)

    def check_answers(self, r: AnyCrowd) -> AnyCrowd:
        """Return the answers, unless silence is one."""
        if r.silence_counts:
            raise ParameterError(
                "MomentMatching takes silence for no answer.",
                Sentence("Use {model}.", model=Python("DawidSkene", "dawid-skene")),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="abstain",
            )
        return r

    def check_size(self, r: Responses, graph: Graph | None) -> None:
        """Raise an error for a fit that needs more memory than there is, and warn of one that takes long."""
        super().check_size(r, graph)
        check_matrices(self.model, voters(r), r.n_items)
        effort = estimate_moments(answers_to_match(r))
        instead = Sentence("Or use {model}.", model=Python("DawidSkene", "dawid-skene"))
        check_moments(self.model, r, effort, instead)
        if effort.seconds > SLOW:
            warn(
                DataWarning(
                    f"MomentMatching may take about {effort.describe_time()} for {voters(r).describe_size()}.",
                    "Merge rare or misspelt labels.",
                    NAME_CLASSES,
                    instead,
                    keyword="classes",
                )
            )

    def explain_stop(self, trace: Floats, n_responses: int) -> ConvergenceWarning | None:  # noqa: ARG002
        """Return the warning that the sweeps ended before they settled; None if they were not asked to."""
        if self.tol <= 0:
            return None
        return ConvergenceWarning(
            f"MomentMatching stopped after {self.max_iter} sweeps before it settled.",
            Sentence("Allow more with {max_iter}.", max_iter=2 * self.max_iter),
            Sentence("Or accept the fit with a higher {tol}."),
            keyword="max_iter",
        )

    def match(self, r: Responses, start: Floats, prior: Floats) -> MomentFit:
        """Return aligned, shrunk matrices and the prior; warn of what stands in the way."""
        given = fixed_prior(self, r)
        answers = answers_to_match(r)
        found = learn_moments(
            answers,
            start,
            prior if given is None else given,
            shrinkage=self.shrinkage,
            learn_prior=given is None,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
        )
        stopped = None if found.converged else self.explain_stop(start, r.n_responses)
        if stopped is not None:
            warn(stopped)
        for obstacle in find_obstacles(answers, found.confusion):
            warn(DataWarning(f"Moments cannot identify the model. {obstacle}"))
        return found
