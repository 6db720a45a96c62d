"""Models with a hidden truth: what their calibration and their features tell, and batches of answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.keys import Sequences
from ..answers.previews import build_report
from ..answers.random_choices import sample_items
from ..answers.tagging import are_tags
from ..engines import Engine
from ..errors import parameter_error, warn
from ..inference.em import Estimates, Fit, Problem, decode_labels, run_em
from ..inference.estimator import LatentEstimator, Plan, explain_stop
from ..inference.features import FeatureFit, fit_with_features
from ..inference.hidden_answers import CouplingScore, raise_where
from ..inference.labels import choose_labels
from ..inference.observations import MOST_ANSWERS, Observations
from ..inference.starts import fixed_prior, given_pair
from ..inference.structures import Independent
from ..inference.teaching import compare_logs, learn_from_known, list_lessons
from ..kernels import Floats, Truths
from ..limits import ITEMS_AT_ONCE, release_mapped, side_by_side
from ..options import is_whole as is_whole_number
from ..results.calibration import Calibrated, calibrate, find_raised, find_span_confidence
from ..results.chance import measure_by_others
from ..results.conclusion import conclude
from ..results.fitting import make_result
from ..results.intervals import (
    Intervals,
    Sums,
    are_checked,
    find_intervals,
    find_share_intervals,
    gather_inputs,
    invert_scores,
    is_share_checked,
)
from ..results.result import Course, FeatureResult, FitResult, Given
from ..results.worker_report import list_disagreements
from .base import FromResult, Model, complete
from .opening import open_with_kind


class Earlier(NamedTuple):
    """Results of the earlier batches of a stream, beside their statistics."""

    calibrated: Calibrated | None
    sums: Sums
    n_answers: NDArray[np.int64]  # of each worker


class LatentModel(Model, LatentEstimator):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

    uncalibrated_posterior_ = FromResult(lambda result: result.labels.uncalibrated, "Probabilities before calibration.")
    smoothing_ = FromResult(lambda result: result.course.smoothing, "The pair of pseudo-counts that was used.")
    power_ = FromResult(
        lambda result: cast(Calibrated, result.calibrated).calibration.power,
        "The power that posteriors were raised to.",
    )
    teaching_ = FromResult(
        lambda result: result.teaching,
        "What known labels taught: what was `chosen`, the `weights` of workers, and what it brought; None if they were "
        "too few, or not asked.",
    )
    sequential_confusion_ = FromResult(
        lambda result: result.estimates.further.get("sequential_confusion_"),
        "Confusion by a worker's previous answer, of sequential workers; None for others.",
    )
    temperatures_ = FromResult(
        lambda result: result.estimates.further.get("temperatures_"),
        "What soft votes of each worker are multiplied by, of workers='temperatures': below 1 for one who is too sure.",
    )

    def _learn(
        self,
        observations: Observations,
        graph: Graph | None,
        engine: Engine,
        given: Given,
        *,
        plan: Plan | None = None,
        earlier: Earlier | None = None,
        coupling_scores: list[CouplingScore] | None = None,
    ) -> FitResult:
        """Run the loop, and conclude: all that the best fit says is computed here, once.

        Parameters
        ----------
        observations, graph, engine
            What is fitted, and where.
        given : Given
            What it was before copies count once, and what was decided about it.
        plan : Plan, optional
            From where, if that is known.
        earlier : Earlier, optional
            What the earlier batches of a stream taught.
        coupling_scores : list of CouplingScore, optional
            How the coupling was learned, if the plan does not know it.
        """
        r, past = observations.responses, None if earlier is None else earlier.sums
        may_teach = observations.gold is not None or bool(observations.teach)
        lessons = list_lessons(self, observations) if may_teach else np.empty(0, np.int64)

        # What features say, and where to start.
        feature_fit = None
        if observations.features is not None:
            problem, fit = self._fit_without_features(observations, graph, engine)
            feature_fit = fit_with_features(self, observations, problem, fit)
            observations = feature_fit.observations
        plan = self._plan(observations, graph, engine) if plan is None else plan
        problem = plan.problem

        # The loop, from every start.
        fits: dict[str, Fit] = {}
        for name, start in plan.starts.items():
            fits[name] = run_em(problem, start, self.max_iter, self.tol, self.callback, problem.budget)
        best = self._choose(problem, fits)
        stopped = None if best.converged else explain_stop(self)
        if stopped is not None:
            warn(stopped)
        parameters, statistics = best.parameters, best.statistics
        estimates = Estimates.of(problem, parameters, statistics)
        is_given = fixed_prior(self, r) is not None
        inputs = gather_inputs(observations, problem, estimates, parameters.prior, is_given)

        # One pass over the answers. Matrices that were given have learned from no item.
        leaves_out = self.calibration != "none" and self.max_iter > 0
        conclusion = conclude(observations, problem, parameters, statistics, inputs, leaves_out, past)
        posterior, left_out, sums = conclusion.posterior, conclusion.left_out, conclusion.sums
        estimates = replace(estimates, cells=problem.workers.tabulate(r, posterior))

        # Calibration and labels.
        opinion = None if feature_fit is None or feature_fit.classifier is None else feature_fit
        before = None if earlier is None else earlier.calibrated
        calibrated = calibrate(self, observations, problem, best, posterior, left_out, opinion, before)
        power, changed = calibrated.calibration.power, find_raised(parameters.structure, r)
        items = np.arange(r.n_items) if r.n_responses <= MOST_ANSWERS else sample_items(r, MOST_ANSWERS, self.seed)
        sampled = left_out[items]  # before it is raised
        # In place, since a further array of all posteriors would take much memory.
        reported = left_out if leaves_out or power == 1 else posterior.copy()
        codes = np.empty(r.n_items, np.int64)
        side_by_side(partial(choose_part, reported, codes, changed, power, self.label_by), r.n_items)

        # What known labels teach: where items hang together, as evidence that each brings to its sequence.
        teaching, taught = None, problem
        if len(lessons) and calibrated.blind is not None:
            gold, raised = cast(Gold, observations.gold), reported
            is_known = gold.codes >= 0
            start = plan.starts[next(name for name, fit in fits.items() if fit is best)]
            teaching = learn_from_known(self, observations, problem, start, best, power, calibrated.blind, lessons)
            reported = teaching.apply(r, raised, changed & ~is_known, np.arange(r.n_workers))
            codes = choose_labels(reported, self.label_by)
            if self._is_chain:
                taught = problem.about(observations.add_log_prior(compare_logs(reported, raised, power)))
            right = choose_labels(teaching.cross_fitted, self.label_by) == gold.codes[is_known]
            n_right = int(right[(gold.judging & changed)[is_known]].sum())
            calibrated = calibrated._replace(calibration=calibrated.calibration._replace(n_right=n_right))
        if self._rule == "sequence":
            factors = problem.workers.factors(parameters.workers.log_weights)
            codes = decode_labels(engine, taught.placed, factors, parameters.structure)
        release_mapped()

        intervals = find_intervals(r, sums, items, posterior, codes, inputs, sampled, reported, calibrated)
        if plan.apart is not None:
            intervals = include_answers_alone(intervals, observations, *plan.apart, is_given)
        spans = None
        if self._is_chain and are_tags(r.classes):
            sequence = cast(Sequences, r.sequences).of_items()
            spans = find_span_confidence(taught, best, posterior, codes, r.classes, sequence, leaves_out, power)

        # What checks the answers: others, neighbours, chains, features and item priors.
        linked = observations.log_prior is not None or not isinstance(problem.structure, Independent)
        checked = are_checked(r, observations.gold, linked)
        if past is not None:
            checked |= is_share_checked(*past.judged.sum(axis=1).tolist())
        course = Course(
            best.trace,
            best.n_iter,
            best.converged,
            {name: each.trace for name, each in fits.items()},
            parameters.prior.pair or given_pair(self.smoothing),
            plan.coupling_scores if coupling_scores is None else coupling_scores,
        )
        # What others say of each worker. The answers of earlier batches are gone.
        coupling, by_others = getattr(parameters.structure, "coupling", None), dict[str, Any]()
        if not given.n_batches:
            by_others |= measure_by_others(problem.workers, conclusion.counts, conclusion.pairs)
        return make_result(
            type(self).__name__,
            observations,
            given,
            codes,
            reported,
            posterior,
            rule=self._rule,
            checked=checked,
            n_earlier=0 if earlier is None else earlier.n_answers,
            prior=parameters.structure.mean,
            fitted_estimates=estimates,
            course=course,
            intervals=intervals,
            # A graph cannot be cut into batches.
            past=None if problem.graph is not None else sums._replace(summary=statistics.summary),
            seed=self.seed,
            calibrated=calibrated,
            teaching=teaching,
            coupling=None if coupling is None else self._report_coupling(coupling, graph),
            span_confidence=spans,
            feature_result=None if feature_fit is None else summarise_features(feature_fit, posterior, codes),
            **by_others,
        )

    def _report_coupling(self, coupling: float, graph: Graph | None) -> float:  # noqa: ARG002
        """The coupling of neighbours in the unit in which it is reported."""
        return coupling

    @property
    def classifier_(self) -> Any:
        """The classifier, trained on all items; None if features have no say."""
        feature_result = self.result_.need_features()
        if feature_result.classifier is None:
            return None
        return feature_result.classifier.linear.as_pipeline(
            self.classes_, feature_result.findings.strength or 1.0, feature_result.names
        )

    def explain_features(self) -> str:
        """Say in words what the features tell about the labels."""
        return self.result_.need_features().findings.describe()

    def disagreements(self, n: int | None = None) -> Any:
        """Return a table of the items for which classifier and crowd call for different labels, the clearest first.

        At least one of the two is wrong: these are items to look at. Columns: item (or sequence and position); label,
        the fused one; crowd_label and crowd_confidence, by answers alone; classifier_label and classifier_confidence,
        by features alone, out of fold. Neither confidence is calibrated. Items are in the order of their product. Those
        without answers are left out, and those whose label is known. If features are not used, the table has no rows.

        Parameters
        ----------
        n : int, optional
            The most rows to return. Default: all.
        """
        result = self.result_
        if n is not None and not (is_whole_number(n) and n >= 0):
            raise parameter_error("n", "disagreements", "a whole number >= 0", n)
        return build_report(list_disagreements(result.need_features(), result.labels, n), result.backend)


class StreamingModel(LatentModel):
    """A model whose items can be cut into batches."""

    def partial_fit(self, responses: object, gold: object = None, engine: object = None) -> Self:
        """Learn from one more batch of answers, without those of earlier batches.

        What earlier batches taught about workers and classes counts as if their answers were fitted again, at the
        labels that they got then. Answers are not kept: results per item (`labels_`, `posterior_`, `to_frame`) are
        those of the last batch, and memory depends on the number of workers, labels and classes alone. What is said
        about workers and classes (`confusion_`, `prior_`, `worker_report`) is about all batches. `partial_fit` also
        continues from `fit`, and from a model that was loaded. `fit` starts anew.

        Workers, labels and classes may be new in any batch. All answers to an item, and all positions of a sequence,
        should be in the same batch. Workers who copy each other are not looked for.

        Parameters
        ----------
        responses, gold, engine
            As for `fit`: one batch, and known labels of its items.

        Returns
        -------
        self

        Examples
        --------
        >>> import consilience as cs
        >>> model = cs.DawidSkene()
        >>> for day in range(3):
        ...     answers = {
        ...         "item": [1, 1, 1, 2, 2, 2],
        ...         "worker": ["ann", "bob", "eve"] * 2,
        ...         "label": ["cat", "cat", "dog", "dog", "dog", "dog"],
        ...     }
        ...     model = model.partial_fit(answers)
        >>> model.labels_.tolist(), model.worker_report()["answers"].to_pylist()
        (['cat', 'dog'], [6, 6, 6])
        """
        from .updating import fit_batch

        self._check()
        kind, answers = open_with_kind(responses) if self._result is None else self._read(responses)
        return self._adopt(complete(self, fit_batch(self, self._result, answers, kind, gold, engine)))

    def _describe(self) -> str:
        n_batches = self.result_.given.n_batches
        return super()._describe() + (f"; the last of {n_batches:,} batches" if n_batches > 1 else "")


def choose_part(
    reported: Floats, codes: NDArray[np.int64], changed: Truths, power: float, label_by: str, start: int, stop: int
) -> None:
    """Raise probabilities to a power, in place, and choose the labels, of items from `start` to `stop`."""
    for first in range(start, stop, ITEMS_AT_ONCE):
        run = slice(first, min(first + ITEMS_AT_ONCE, stop))
        if power != 1:
            reported[run] = raise_where(changed[run], reported[run], power)
        codes[run] = choose_labels(reported[run], label_by)


def include_answers_alone(
    intervals: Intervals, observations: Observations, problem: Problem, fit: Fit, prior_is_known: bool
) -> Intervals:
    """Intervals of class shares that hold those of a fit without the graph.

    A field may lead small classes to adopt their neighbours' label, and would not know of it.
    """
    estimates = Estimates.of(problem, fit.parameters, fit.statistics)
    inputs = gather_inputs(observations, problem, estimates, fit.parameters.prior, prior_is_known)
    sums = conclude(observations, problem, fit.parameters, fit.statistics, inputs, leaves_out=False).sums
    low, high = find_share_intervals(sums, inputs, invert_scores(observations.responses, sums, inputs))
    ends = np.minimum(low, intervals.prior[0]), np.maximum(high, intervals.prior[1])
    return intervals._replace(prior=np.stack(ends))


def summarise_features(feature_fit: FeatureFit, posterior: Floats, codes: NDArray[np.int64]) -> FeatureResult:
    """The findings on features, with how often the classifier agrees with the labels."""
    findings, opinions = feature_fit.findings, None
    if feature_fit.classifier is not None:
        opinions = feature_fit.compare_opinions()
        answered = np.diff(feature_fit.observations.responses.offsets)[feature_fit.item] > 0
        agrees = (feature_fit.code == codes[feature_fit.item])[answered]
        findings = findings._replace(
            accuracy=float(agrees.mean()) if len(agrees) else None,
            n_changed=int((feature_fit.without_features.argmax(axis=1) != posterior.argmax(axis=1)).sum()),
        )
    return FeatureResult(findings, feature_fit.names, feature_fit.classifier, opinions)
