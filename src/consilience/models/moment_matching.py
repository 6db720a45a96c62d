"""Moment matching as a model of its own: no likelihood, no EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..engines import Engine
from ..errors import DataWarning, ParameterError, Python, Sentence, warn
from ..inference.em import Learned, Parameters, Progress, expect_from_votes
from ..inference.estimator import explain_stop
from ..inference.hidden_answers import Calibration
from ..inference.labels import choose_labels, pose_votes
from ..inference.moments import SHRINKAGE, answers_to_match, find_obstacles, learn_moments
from ..inference.sources import Source
from ..inference.starts import (
    check_matrices,
    check_moments,
    fixed_prior,
)
from ..inference.workers import voters
from ..results.calibration import Calibrated
from ..results.chance import judge_by_others
from ..results.fitting import make_result
from ..results.intervals import are_checked, find_intervals, gather_estimates
from ..results.result import Course, Result
from .base import Model


class MomentMatching(Model):
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
    label_by : {"mode", "median"}
        As for `DawidSkene`.
    callback : callable, optional
        Called after each sweep with a `Progress`; its gain is the largest change.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_
        As for `DawidSkene`.
    trace_ : ndarray
        The objective after each sweep (implicit: without its constant). It falls.
    n_iter_, converged_ : int, bool
        How the search ended.

    Notes
    -----
    There is a warning, which names workers, when the answers cannot identify the matrices: workers who never share an
    item with two others, and groups of workers without common items. Weights of answers are not used: of a spread
    answer the label with most weight counts. Where near-copies count once (`fuse`), one member of a group is drawn for
    each item, and all members have the same matrix.

    Time grows with the cube of the number of classes.

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

    prior: Any = "learn"
    shrinkage: float = SHRINKAGE
    max_iter: int = 500
    tol: float = 1e-5
    label_by: str = "mode"
    callback: Callable[[Progress], object] | None = None

    def _prepare(self, r: Answers) -> Answers:
        if r.silence_counts:
            raise ParameterError(
                "MomentMatching takes silence for no answer.",
                Sentence("Use {model}.", model=Python("DawidSkene", "dawid-skene")),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="abstain",
            )
        return super()._prepare(r)

    def _check_size(self, r: Answers, graph: Graph | None) -> None:
        super()._check_size(r, graph)
        check_matrices(type(self).__name__, voters(r), r)
        check_moments(type(self).__name__, answers_to_match(r))

    def _learn(self, source: Source, graph: Graph | None, engine: Engine, **further: Any) -> Result:  # noqa: ARG002
        """Match moments, and judge the items by what they say of the workers."""
        source = replace(source, responses=replace(source.responses, soft=None))  # moments are those of labels
        r = source.responses
        problem = pose_votes(source, graph, engine)
        by_vote = problem.maximise(expect_from_votes(problem))
        given, answers = fixed_prior(self, r), answers_to_match(r)
        found = learn_moments(
            answers,
            by_vote.workers.mean,
            by_vote.structure.mean if given is None else given,
            shrinkage=self.shrinkage,
            learn_prior=given is None,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
        )
        stopped = None if found.converged else explain_stop(self)
        if stopped is not None:
            warn(stopped)
        for obstacle in find_obstacles(answers):
            warn(DataWarning(f"Moments cannot identify the model. {obstacle}"))
        workers = problem.workers.given(found.confusion.transpose(0, 2, 1))
        learned = Parameters(workers, problem.structure.given(found.prior), problem.prior)
        statistics, posterior = problem.expect(learned), problem.infer(learned)
        codes = choose_labels(posterior, self.label_by)
        estimates = Learned.of(problem, learned, statistics)
        seen = gather_estimates(source, problem, estimates, learned.prior, given is not None)
        as_found = Calibrated(Calibration(1.0, given=True), [1.0])
        return make_result(
            type(self).__name__,
            source,
            codes,
            posterior,
            rule=self._rule,
            checked=are_checked(r, source.gold, False),
            prior=learned.structure.mean,
            estimates=estimates,
            course=Course(found.trace, found.n_iter, found.converged),
            intervals=find_intervals(r, posterior, codes, seen, posterior, as_found)[0],
            **judge_by_others(source, problem, workers.log_weights, seen.judged, posterior),
        )
