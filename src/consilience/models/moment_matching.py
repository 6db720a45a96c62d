"""Moment matching as a model of its own: no likelihood, no EM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..engines.base import Engine
from ..errors import ConvergenceWarning, DataWarning, ParameterError, Python, Sentence, warn
from ..inference.em import Parameters, Progress, expect, expect_from_votes, maximise
from ..inference.moment_effort import SLOW, estimate_moments
from ..inference.moments import (
    SHRINKAGE,
    MomentFit,
    answers_to_match,
    find_obstacles,
    learn_moments,
)
from ..inference.sizes import NAME_CLASSES, check_matrices, check_moments
from ..inference.structures.independent import IndependentParameters
from ..kernels.types import Floats
from ..results.intervals import Confidence, find_intervals
from ..specs import ENDS, ArraySpec
from .parameters import check_callback, check_number, fixed_prior
from .predicting import AnyCrowd, PredictingModel, voters


class MomentMatching(PredictingModel):
    r"""Learn confusion matrices and class prior from which answers occur together, without EM.

    Single answers, pairs and triples of answers to the same item occur with frequencies that depend on the matrices
    :math:`\Gamma_m` and the prior :math:`\pi` alone; both are chosen to match the frequencies observed (least squares
    under simplex constraints, by alternating ADMM). Labels are then the most probable classes. The estimate is
    consistent: its error falls as :math:`1 / \sqrt{N}`. It is a start for EM that does not depend on majority vote
    (``start="moments"`` of the other models) more than an end: EM is more precise.

    Parameters
    ----------
    prior : {"learn", "uniform"} or array
        The class prior.
    shrinkage : float
        How many answers per class the crowd's matrix counts for when the matrix of a worker with few answers is pulled
        towards it.
    max_iter, tol : int, float
        Most sweeps; stop when no probability changes by more than `tol` in one.
    callback : callable, optional
        Called after each sweep with a `Progress`; its gain is the largest change.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, workers_, answer_labels_, copies_count_once_
        As for `DawidSkene`.
    trace_ : ndarray
        The objective after each sweep (implicit: without its constant). It falls.
    n_iter_, converged_ : int, bool
        How the search ended.

    Notes
    -----
    There is a warning, which names workers, when the answers cannot identify the matrices: workers who never share an
    item with two others, groups of workers without common items, classes that nobody tells apart. Weights of answers
    are not used: of a spread answer the label with most weight counts. Where near-copies count once (`fuse`), one
    member of a group is drawn for each item, and all members have the same matrix.

    Time grows with the cube of the number of classes. A fit that may take more than two minutes gives a warning that
    says how long.

    References
    ----------
    P. A. Traganitis, A. Pages-Zamora and G. B. Giannakis, "Blind multiclass ensemble classification", IEEE Transactions
    on Signal Processing 66 (2018).

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(5000, n_workers=8, n_classes=3, seed=2)
    >>> model = cs.MomentMatching().fit(crowd.responses)
    >>> round(cs.metrics.confusion_error(crowd.parameters.confusion, model.confusion_), 2)
    0.04
    """

    _structure_type = IndependentParameters
    _arrays: ClassVar[Mapping[str, ArraySpec]] = {
        **PredictingModel._arrays,
        "_worker_intervals": ArraySpec("M 4", ENDS),
    }

    _why_no_batches = ": moments are those of all answers"

    def __init__(
        self,
        *,
        prior: Any = "learn",
        shrinkage: float = SHRINKAGE,
        max_iter: int = 500,
        tol: float = 1e-5,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback

    def _check_parameters(self) -> None:
        check_number(self, "shrinkage", 0)
        check_number(self, "max_iter", 1, whole=True)
        check_number(self, "tol", 0)
        check_callback(self)

    def _check_answers(self, r: AnyCrowd) -> AnyCrowd:
        if r.silence_counts:
            raise ParameterError(
                "MomentMatching takes silence for no answer.",
                Sentence("Use {model}.", model=Python("DawidSkene", "dawid-skene")),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="abstain",
            )
        return r

    def _check_size(self, r: Responses, graph: Graph | None) -> None:
        super()._check_size(r, graph)
        check_matrices("MomentMatching", voters(r), r.n_items)
        effort = estimate_moments(answers_to_match(r))
        instead = Sentence("Or use {model}.", model=Python("DawidSkene", "dawid-skene"))
        check_moments("MomentMatching", r, effort, instead)
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

    def _learn(self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine) -> None:
        problem = self._pose_votes(r, graph, gold, engine)
        by_vote = maximise(problem, expect_from_votes(problem))
        found = self._match(r, by_vote.workers.mean, by_vote.structure.mean)
        workers = problem.workers.given(found.confusion.transpose(0, 2, 1))
        learned = Parameters(workers, problem.structure.given(found.prior), problem.prior)
        statistics = expect(problem, learned)
        posterior, label_codes = self._conclude(r, problem, learned)
        confidence = Confidence(np.ones(1), lambda _, run: posterior[run])
        estimates = self._gather_estimates(r, problem, learned, statistics, gold)
        intervals, _ = find_intervals(r, posterior, label_codes, estimates, confidence)
        self._keep(r, problem, learned, statistics, posterior, label_codes, intervals)
        self.trace_, self.n_iter_, self.converged_ = found.trace, found.n_iter, found.converged

    def _match(self, r: Responses, start: Floats, prior: Floats) -> MomentFit:
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
        if self.tol > 0 and not found.converged:
            warn(
                ConvergenceWarning(
                    f"MomentMatching stopped after {self.max_iter} sweeps before it settled.",
                    Sentence("Allow more with {max_iter}.", max_iter=2 * self.max_iter),
                    Sentence("Or accept the fit with a higher {tol}."),
                    keyword="max_iter",
                )
            )
        for obstacle in find_obstacles(answers, found.confusion):
            warn(DataWarning(f"Moments cannot identify the model. {obstacle}"))
        return found
