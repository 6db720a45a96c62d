"""Models of items that do not depend on each other: the vote, Dawid and Skene's model, and moment matching."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.random_choices import sample_items
from ..engines import Engine
from ..errors import ParameterError, Python, Sentence, warn
from ..inference.em import Estimates, Parameters, Progress, expect_from_votes
from ..inference.estimator import Parts, explain_stop
from ..inference.hidden_answers import Calibration
from ..inference.labels import choose_labels, make_vote_problem
from ..inference.moments import answers_to_match, learn_moments
from ..inference.observations import MOST_ANSWERS, Observations
from ..inference.starts import check_matrices, check_moments, fixed_prior
from ..inference.structures import Independent
from ..inference.workers import voters
from ..inference.workers.rows import SHRINKAGE
from ..results.calibration import Calibrated
from ..results.chance import measure_by_others
from ..results.conclusion import conclude
from ..results.fitting import make_result, take_vote
from ..results.intervals import are_checked, find_intervals, gather_inputs
from ..results.result import Course, FitResult, Given
from .base import Model
from .latent import StreamingModel


class MajorityVote(Model):
    """The label that most workers gave.

    The posterior of a class is its share of the item's votes (of their weights, where there are weights). Answers that
    are not among the classes do not count; an item without votes gets the overall shares, `prior_`.

    Parameters
    ----------
    ties : {"random", "first"}
        Which of several classes with equal votes is the label: one of them at random, or the first in the order of the
        classes. What is random depends on `seed` and on the names of item and classes, not on the order of rows.
    label_by : {"mode", "median"}
        What the label is: the class with most votes; or for ordered classes the median of the votes, the lower one of
        two.
    seed : int
        Seed of the tie rule.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_
        Results. `confusion_` compares each worker with the vote shares, and is worked out when it is first used;
        `score` is the likelihood under these matrices.
    trace_, n_iter_, converged_
        Empty, 0 and True: a vote takes no iterations.
    copies_ : list
        Groups of workers who seem to copy each other.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {"item": [1, 1, 1, 2], "worker": ["a", "b", "c", "a"], "label": ["x", "x", "y", "y"]}
    >>> cs.MajorityVote().fit(answers).labels_
    array(['x', 'y'], dtype=object)
    """

    _needs_same_silence: ClassVar[bool] = False

    ties: str = "random"
    label_by: str = "mode"
    seed: int = 0

    def _learn(self, observations: Observations, graph: Graph | None, engine: Engine, given: Given) -> FitResult:  # noqa: ARG002
        return take_vote(observations, engine, given, self.ties, self.label_by, self.seed)


class DawidSkene(StreamingModel):
    r"""Fuse independent answers by learning how each worker confuses the classes.

    The truth :math:`y_n` of item n is drawn from the class prior :math:`\pi`, and worker m answers l when it is k
    with probability :math:`\Gamma_m[k, l]`, independently of the other workers:

    .. math::  P(y_n = k \mid \text{answers}) \propto \pi_k \prod_m \Gamma_m[k, f_{mn}]^{w_{mn}}

    Prior and matrices are learned together with the labels (Dawid & Skene, 1979), by variational Bayes or EM.

    Parameters
    ----------
    workers : {"confusion", "sequential", "one-coin", "ordinal", "nominal", "temperatures", "mean"}
        How a worker answers: by a confusion matrix; by one for each previous answer of their own in the sequence, which
        falls back on the plain matrix where answers are few, for answers to sequences; by one accuracy for all
        classes, with errors spread evenly, for few answers per worker; by a matrix much like that of a rater who is
        more or less harsh, exact and careless, for ordered classes; or by one much like that of a worker who errs
        evenly. The last two are for soft votes, of which the others take the most probable label: with a temperature
        for each worker, learned from the others; or by the mean.
    estimation : {"variational", "em"}
        Variational Bayes with Dirichlet priors, or EM for the mode.
    prior : {"learn", "uniform"}, dict or array
        The class prior: learned, equal, or given, in the order of the classes or as a dict {class: probability}.
    smoothing : "learn", float, pair or array
        Pseudo-counts of the confusion matrices: one number, a pair (off diagonal, diagonal), or an array of shape
        (classes, labels). EM adds them to expected counts, variational Bayes takes them as the Dirichlet parameter.
        "learn" is a pair for the whole crowd that is learned with the matrices; for EM it is (0.1, 1.1). The class
        prior is smoothed by the smallest of them, by 0.1 where they are learned.
    calibration : {"hidden answers", "gold", "none"} or float
        What the reported probabilities are calibrated by. "hidden answers" leaves each item out of what was learned
        about its workers, and raises posteriors to the power at which answers that were hidden from further fits, and
        known labels if there are any, are predicted best; "gold" finds the power by known labels alone; a number is
        the power itself. "none" reports the posteriors of the fit. Labels are the same whatever the calibration.
    label_by : {"mode", "median"}
        What the label of an item is: the most probable class; or for ordered classes the median, which has the least
        expected distance from the truth.
    start : {"majority", "moments", "best"}, fitted model or array
        Where to start: from vote shares, from matched moments (see `MomentMatching`), from both, keeping the higher
        objective, from the matrices of a fitted model, or from given confusion matrices of shape (workers, classes,
        labels). Moments that may take minutes, for matrices with more entries than there are answers, are replaced by
        vote shares, with a warning.
    n_init : int
        Number of starts; those after the first are random. The one with the highest objective is kept.
    max_iter : int
        Most iterations. With 0 nothing is fitted: the start itself gives the labels.
    tol : float
        Stop when the objective gains less than this per answer. 0 runs exactly `max_iter` iterations.
    seed : int
        Seed of all that is random: starts after the first, and answers that are hidden to calibrate or to choose a
        coupling.
    callback : callable, optional
        Called after each iteration with a `Progress` (iteration, max_iter, objective, gain).

    Attributes
    ----------
    labels_ : ndarray
        The most probable class of each item (the first of equals).
    posterior_ : ndarray of shape (n_items, n_classes)
        Class probabilities, calibrated; rows as `Answers.items`, columns as `classes_`. Items without answers have
        the class prior.
    uncalibrated_posterior_ : ndarray of shape (n_items, n_classes)
        The posteriors of the fit itself.
    classes_ : ndarray
        What can be true, as `Answers.classes`.
    power_ : float
        What posteriors were raised to. ``result_.explain_calibration()`` says how it was found.
    teaching_ : Teaching or None
        What known labels taught (`fit(..., gold=...)`): what was `chosen`, the `weights` of workers, and log loss and
        accuracy by cross validation, before and after.
    smoothing_ : tuple of float
        The pseudo-counts off the diagonal and on it that were used, None if an array was given.
    result_ : Result
        All that was found, with the names of workers (``result_.names.workers``), the answers (``result_.answers``),
        and the share of the labels that are right by their probabilities (``result_.expected_accuracy``).
    prior_ : ndarray of shape (n_classes,)
        Class prior.
    confusion_ : ndarray of shape (n_workers, n_classes, n_labels)
        ``confusion_[w, truth, answer]``; rows sum to 1. The paper's Gamma_m is the transpose.
    sequential_confusion_ : ndarray of shape (n_workers, n_labels + 1, n_classes, n_labels)
        With ``workers="sequential"``: by the worker's previous answer, the last for none.
    trace_ : ndarray
        The objective before each iteration and at the end. It never falls, except with ``workers="sequential"``, whose
        smoothing moves with the fit: there it is a guide.
    n_iter_, converged_ : int, bool
        How the fit ended.
    classifier_ : classifier or None
        With `features`: what tells classes from features, trained on all items; None if features are not used.

    Notes
    -----
    With ``estimation="em"`` and smoothing > 0, a class that nobody said is a free cluster: it can take items from the
    other classes, and its name means nothing. Variational Bayes all but empties it; with EM, leave it out of
    ``classes=``, give gold for it, or use no smoothing.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {
    ...     "item": [1, 1, 1, 2, 2, 2, 3, 3, 3],
    ...     "worker": ["ann", "bob", "eve"] * 3,
    ...     "label": ["cat", "cat", "dog", "dog", "dog", "cat", "cat", "cat", "cat"],
    ... }
    >>> model = cs.DawidSkene().fit(answers)
    >>> model.labels_
    array(['cat', 'dog', 'cat'], dtype=object)
    """

    def _make_structure(self, observations: Observations, parts: Parts) -> Independent:  # noqa: ARG002
        return Independent(*parts)


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
    There is a warning where no item has three answers: then moments do not determine the matrices. Weights of answers
    are not used: of a spread answer the label with most weight counts. Where near-copies count once (`fuse`), one
    member of a group is drawn for each item, and all members have the same matrix.

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

    def _learn(self, observations: Observations, graph: Graph | None, engine: Engine, given: Given) -> FitResult:
        """Match moments, and judge the items by what they say of the workers."""
        r = replace(observations.responses, soft=None)  # moments are those of labels
        observations = replace(observations, responses=r)
        problem = make_vote_problem(observations, graph, engine)
        by_vote = problem.maximise(expect_from_votes(problem))
        fixed, answers = fixed_prior(self, r), answers_to_match(r)
        moments = learn_moments(
            answers,
            by_vote.workers.mean,
            by_vote.structure.mean if fixed is None else fixed,
            shrinkage=self.shrinkage,
            learn_prior=fixed is None,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
        )
        stopped = None if moments.converged else explain_stop(self)
        if stopped is not None:
            warn(stopped)
        workers = problem.workers.given(moments.confusion.transpose(0, 2, 1))
        parameters = Parameters(workers, problem.structure.given(moments.prior), problem.prior)
        statistics = problem.expect(parameters)
        estimates = Estimates.of(problem, parameters, statistics)
        inputs = gather_inputs(observations, problem, estimates, parameters.prior, fixed is not None)
        conclusion = conclude(observations, problem, parameters, statistics, inputs, False)
        posterior, items = conclusion.posterior, sample_items(r, MOST_ANSWERS, seed=0)
        codes = choose_labels(posterior, self.label_by)
        as_found = Calibrated(Calibration(1.0, given=True), [1.0])
        return make_result(
            type(self).__name__,
            observations,
            given,
            codes,
            posterior,
            rule=self._rule,
            checked=are_checked(r, observations.gold, False),
            prior=parameters.structure.mean,
            fitted_estimates=estimates,
            course=Course(moments.trace, moments.n_iter, moments.converged),
            intervals=find_intervals(
                r, conclusion.sums, items, posterior, codes, inputs, posterior[items], posterior, as_found
            ),
            **measure_by_others(problem.workers, conclusion.counts, conclusion.pairs),
        )
