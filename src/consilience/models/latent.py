"""Models with a hidden truth, fitted by the EM loop: everything but the choice of structure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.arrays import Crowd
from ..answers.columns import Values
from ..answers.contents import Features
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.item_tables import (
    ItemPriors,
    add_priors,
    class_shares,
    list_items,
    match_features,
    match_item_prior,
    vote_shares_by_item,
)
from ..answers.responses import Responses, empty_responses
from ..answers.vocabulary import VERY_MANY
from ..arguments import is_whole as is_whole_number
from ..engines.base import Engine
from ..errors import (
    ConvergenceWarning,
    NotFittedError,
    ParameterError,
    Sentence,
    parameter_error,
    plural,
    warn,
)
from ..formats.sources import open_item_data
from ..inference.classifiers import EstimatorJudge, LinearJudge, as_pipeline, check_classifier
from ..inference.distributions import ESTIMATIONS
from ..inference.em import Fit, Parameters, Problem, Progress, run_em
from ..inference.moment_effort import Effort, estimate_moments
from ..inference.moments import MomentFit
from ..inference.sizes import FIT_TABLES, HIDING_TABLES, START_TABLES, check_matrices
from ..inference.structures.base import AnyStructure, StructureParameters, Summary
from ..inference.workers.base import WorkerModel
from ..inference.workers.confusion import smoothing_array
from ..inference.workers.learned import make_pair
from ..inference.workers.register import WORKERS
from ..kernels.types import Floats, freeze
from ..memory import release_unused
from ..results.answer_worth import find_judged
from ..results.batches import Past
from ..results.calibration import calibrate, check_calibration
from ..results.hidden_fits import Judged
from ..results.interval_sums import Estimates
from ..results.intervals import Confidence, find_intervals
from ..results.powers import Calibration, Evidence, are_findings, are_powers, raise_in_place, raise_where
from ..results.previews import build_report
from ..specs import DISTRIBUTIONS, ENDS, OBJECTIVES, ArraySpec, are_names, is_truth, is_whole
from ..storage.answers import StoredResponses
from .guidance import (
    GUIDE_SPECS,
    OPINION_SPECS,
    ComparedOpinions,
    FeatureFindings,
    Guide,
    Guided,
    are_feature_findings,
    compare_opinions,
    guide_by_features,
    list_disagreements,
    report_classifier,
    restore_guide,
    state_of_guide,
)
from .inputs import as_responses
from .parameters import (
    PAIR,
    check_callback,
    check_choice,
    check_number,
    checked_smoothing,
    fixed_prior,
    given_pair,
    is_pair,
)
from .predicting import INTERVALS, PredictingModel, part_of, refuse_content, sum_pseudo_counts
from .starts import find_starts, is_start

Starts = list[tuple[str, Parameters]]
Known: TypeAlias = tuple[Responses, Gold | None]  # answers, and known labels of their items


class Plan(NamedTuple):
    """What is to be fitted, and from where."""

    problem: Problem
    starts: Starts
    notes: dict[str, Any]  # attributes that the model has after the fit
    past: Past | None = None  # of the earlier batches of a stream


class Due(NamedTuple):
    """What is kept of an update for its intervals, which are worked out when somebody asks for them."""

    pseudo_counts: Floats  # (K,): of a worker's answers about each class
    summary: Summary
    evidence: Evidence


class LatentModel(PredictingModel):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

    _start_choices: tuple[str, ...] = ("majority", "moments", "best")

    workers: str
    estimation: str
    prior: Any
    smoothing: Any
    calibration: Any
    classifier: Any = None
    start: Any
    n_init: int
    max_iter: int
    tol: float
    seed: int
    callback: Callable[[Progress], object] | None

    starts_: dict[str, Floats]
    smoothing_: tuple[float, float] | None
    uncalibrated_posterior_: Floats
    calibration_: Calibration
    feature_findings_: FeatureFindings | None  # None without features
    feature_names_: list[str] | None  # None if they came without names
    _guide: Guide | None
    _opinions: ComparedOpinions | None  # of classifier and crowd
    _log_prior: Floats | None  # what was known of the items beside their answers; it is not saved
    _hidden: list[Judged]  # the hidden answers of the fit; they are not saved
    _powers: list[float]  # equally likely powers, of which the one of `calibration_` is chosen
    _due: Due | None = None  # of an update whose intervals nobody has asked for
    _n_changes: int = 0  # answers that came or changed since the last fit that did not go on from another
    _has_priors: bool = False  # whether something was known of the items beside their answers
    _past: Past | None = None  # what a further batch needs; None if the answers are on disk

    _arrays: ClassVar[Mapping[str, ArraySpec]] = {
        **PredictingModel._arrays,
        "uncalibrated_posterior_": ArraySpec("N K", DISTRIBUTIONS),
        "_worker_intervals": ArraySpec("M 4", ENDS),
    }
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **PredictingModel._scalars,
        "smoothing_": is_pair,
        "calibration_": are_findings,
        "feature_findings_": are_feature_findings,
        "feature_names_": are_names,
        "_powers": are_powers,
        "_n_changes": is_whole,
        "_has_priors": is_truth,
    }

    def __getattr__(self, name: str) -> Any:
        """Work out the intervals of an update when one is first asked for: they take as long as the update itself."""
        if name not in INTERVALS or self._due is None:
            return super().__getattr__(name)  # which says what is missing
        r = self._weigh_copies(self.responses_, np.arange(len(self.workers_)))
        gold, power = self._gold, self.calibration_.power
        is_fixed = fixed_prior(self, r) is not None
        judged = find_judged(r, gold, None)
        due = self._due
        estimates = Estimates(self.confusion_, self._counts, self.prior_, due.pseudo_counts, is_fixed, judged)

        changed = self._find_raised(r)

        def raised(other: float, run: slice) -> Floats:
            return raise_where(changed[run], self.posterior_[run], other / power)

        confidence = Confidence(np.array(self._powers), raised, power)
        found, sums = find_intervals(r, self.uncalibrated_posterior_, self._label_codes, estimates, confidence)
        self._keep_intervals(found)
        self._past, self._due = Past(due.summary, sums, due.evidence), None
        return self.__dict__[name]

    @property
    def power_(self) -> float:
        """The power that posteriors were raised to."""
        self._check_fitted()
        return self.calibration_.power

    def _settled(self) -> Self:
        copy = super()._settled()
        if self._is_fitted() and copy.calibration != "none":
            copy.calibration = self.power_
        return copy

    def _n_calibrating(self) -> int | None:
        return None if self.calibration_.given else self.calibration_.n_gold

    def _calibrates_nothing(self) -> bool:
        return isinstance(self.calibration, str) and self.calibration == "none"

    def explain_calibration(self) -> str:
        """Say in words how the probabilities were calibrated."""
        self._check_fitted()
        if self.calibration_.given and self._calibrates_nothing():
            return "Probabilities are those of the fit, without correction, as was asked for."
        # A model from `fuse` finds it at each update.
        is_old = not self.calibration_.given and "comparison_" not in self.__dict__
        return self.calibration_.describe() + (self._tell_age() if is_old else "")

    def _tell_age(self) -> str:
        """Return in words how many answers have come since power and coupling were found; empty if none have."""
        if not self._n_changes:
            return ""
        return f" This was found before the last {plural(self._n_changes, 'answer')} came or changed."

    def fit(
        self,
        responses: Any,
        graph: Any = None,
        gold: Any = None,
        engine: Any = None,
        *,
        features: Any = None,
        item_prior: Any = None,
    ) -> Self:
        """Learn labels and how workers answer, from the answers and from what is known of the items.

        Parameters
        ----------
        responses : Responses, Spans or table
            The answers; a table is read with `Responses.from_frame`, and `Spans` become tags of tokens. `HiddenMarkov`
            needs sequences. For `MarkovField`
            name nodes that nobody answered with ``items=`` when the answers are read.
        graph : Graph, optional
            Which items are neighbours, matched by id. `MarkovField` needs it, and no other model takes one.
        gold : dict, Series, table or path, or a list of these, optional
            Known labels: {item: label}, for sequences {(sequence, position): label}, or a table with columns item (or
            sequence and position) and label. Their items keep them.
        engine : optional
            Where to work: None, "threads", "dask", a `distributed.Client` or an engine of `consilience.engines`.
        features : array, sparse matrix, table or path, optional
            Numbers that describe the items, such as embeddings. A classifier learns from them and the fused labels, and
            has a say if it tells something; see `explain_features`. An array or a matrix (.npy, or .npz of scipy) has a
            row for each item, in the order of ``Responses.items``: that in which items first appear in the answers, or
            that of ``items=``. In a table (or .parquet, .csv) rows are matched by the column item (or sequence and
            position), and the other columns hold numbers, or lists of numbers. Rows about other items are not used.
        item_prior : array, table or path, optional
            Class probabilities of items before any answer, such as those of a model of your own. An array has a row for
            each item and a column for each class, in the order of ``Responses.items`` and of the classes. A table has a
            column item (or sequence and position) and one for each class, called by its name or p(<class>); items that
            are not there have none. Rows are rescaled to sum to 1. They say how items differ: how frequent classes are
            is learned, or given with `prior`.

        Returns
        -------
        self
        """
        self._check_parameters()
        if isinstance(responses, StoredResponses):
            refuse_content(features=features, item_prior=item_prior)
        else:
            responses = self._add_content(as_responses(responses), features, item_prior)
        return self._fit(responses, graph, gold, engine)

    def fit_predict(
        self,
        responses: Any,
        graph: Any = None,
        gold: Any = None,
        engine: Any = None,
        *,
        features: Any = None,
        item_prior: Any = None,
    ) -> Values:
        """Fit, and return the labels. Parameters are those of `fit`."""
        return self.fit(responses, graph, gold, engine, features=features, item_prior=item_prior).labels_

    def _add_content(self, r: Responses, features: Any, item_prior: Any) -> Responses:
        """Return the answers with what is known of the items, for a fit."""
        if features is None and item_prior is None:
            return r
        if features is not None and self.max_iter == 0:
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and no classifier can learn from features.",
                "Allow some iterations, or leave out the features.",
                keyword="max_iter",
            )
        r = self._prepare(r)
        if item_prior is not None:
            priors = match_item_prior(open_item_data(item_prior, "item_prior"), r)
            r = add_priors(r, priors, class_shares(priors, vote_shares_by_item(r)))
        return r if features is None else replace(r, features=self._match_features(features, r))

    def _match_features(self, features: Any, r: Responses) -> Features:
        return match_features(open_item_data(features, "features"), r, with_gaps=self.classifier is not None)

    def _add_new_content(self, responses: Any, features: Any, item_prior: Any) -> Any:
        """Return other answers with what is known of the items, relative to class shares of the fit."""
        self._check_fitted()
        if features is None and item_prior is None:
            return responses
        if features is not None:
            features = open_item_data(features, "features")
        if responses is None and features is not None:
            r = self._without_answers(features)
        else:
            r = self._check_answers(self._read(responses)).with_classes(self.classes_)
        if item_prior is not None:
            r = add_priors(r, match_item_prior(open_item_data(item_prior, "item_prior"), r), self.prior_)
        if features is None:
            return r
        findings, given = self._need_findings(), self._match_features(features, r)
        rows = given.select(self.feature_names_, findings.n_features)
        if not findings.used:
            return r
        guide = self._need_guide()
        return add_priors(r, ItemPriors(given.item, guide.find_priors(rows)), guide.shares)

    def _without_answers(self, features: Any) -> Responses:
        """Return the items that features are about, to which there are no answers."""
        keys = list_items(features, in_sequences="sequence" in self._keys)
        return empty_responses(keys, self.workers_, self.answer_labels_, self.classes_, self._normalised)

    def _need_findings(self) -> FeatureFindings:
        self._check_fitted()
        if self.feature_findings_ is None:
            raise NotFittedError(
                f"This {type(self).__name__} was fitted without features.", Sentence("Fit it with {features}.")
            )
        return self.feature_findings_

    def _need_guide(self) -> Guide:
        if self._guide is None:
            raise NotFittedError(
                "The classifier of this model was not saved with it: only the default classifier is.",
                "Fit the model again.",
            )
        return self._guide

    @property
    def classifier_(self) -> Any:
        """The classifier, trained on all items; None if features have no say."""
        findings = self._need_findings()
        if not findings.used:
            return None
        judge = self._need_guide().judge
        if isinstance(judge, EstimatorJudge):
            return judge.estimator
        assert isinstance(judge, LinearJudge)
        return as_pipeline(judge, self.classes_, findings.strength or 1.0, self.feature_names_)

    def explain_features(self) -> str:
        """Say in words what the features tell about the labels."""
        return self._need_findings().describe()

    def classifier_report(self) -> Any:
        """Return a table with one row: the classifier, described as `worker_report` describes a worker.

        Its answers are the labels that it gives, out of fold, to items that have answers. They are compared with the
        fused labels, as those of workers are. There are no intervals. If features are not used, the table has no row.
        """
        self._need_findings()
        return build_report(report_classifier(self._opinions, self.prior_, self.classes_), self._backend)

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
        self._need_findings()
        if n is not None and not (is_whole_number(n) and n >= 0):
            raise parameter_error("n", "disagreements", "a whole number >= 0", n)
        columns = list_disagreements(self._opinions, self._keys, self.labels_, self.classes_, n)
        return build_report(columns, self._backend)

    def predict_proba(
        self,
        responses: Any,
        graph: Any = None,
        gold: Any = None,
        engine: Any = None,
        *,
        features: Any = None,
        item_prior: Any = None,
    ) -> Floats:
        """Return class probabilities of other items answered by the same workers.

        A worker who was not there at the fit is taken to answer as the crowd does on the whole, with a warning.
        Posteriors are raised to the same power as those of the fit. With ``calibration="none"`` this is `posterior_`
        for the answers (and gold, and graph) of the fit; otherwise posteriors of fitted items leave the item itself out
        of what was learned, which other items need not.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`. With features, `responses` may be None: items of which nothing is known but their features.
        features : array, sparse matrix, table or path, optional
            As for `fit`, with the same columns, which are matched by name if both come in tables. The classifier of the
            fit judges the items; it has learned from all items of the fit.
        item_prior : array, table or path, optional
            As for `fit`, with the classes of an array in the order of ``classes_``. Of an independent item it takes the
            place of the class prior: it is relative to the class prior of the fit, not to the mean over these items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
        """
        new = self._add_new_content(responses, features, item_prior)
        r, posterior = self._infer(new, graph, gold, engine, not self._calibrates_nothing())
        return self._calibrate(r, posterior, self.calibration_.power)

    def predict(
        self,
        responses: Any,
        graph: Any = None,
        gold: Any = None,
        engine: Any = None,
        *,
        features: Any = None,
        item_prior: Any = None,
        as_frame: bool = False,
    ) -> Any:
        """Return the labels of other items answered by the same workers, chosen as `labels_` are.

        The answers of the fit are not looked at: to add answers to its items, use `update`.

        Parameters
        ----------
        responses, graph, gold, engine, features, item_prior
            As for `predict_proba`.
        as_frame : bool, default False
            Whether to return a table with ids, labels, confidence and probabilities, as `to_frame` does.

        Returns
        -------
        ndarray or table
        """
        new = self._add_new_content(responses, features, item_prior)
        return super().predict(new, graph, gold, engine, as_frame=as_frame)

    def _calibrate(self, r: Responses, posterior: Floats, power: float) -> Floats:
        """Return the posteriors of these answers raised to a power."""
        return raise_where(self._find_raised(r), posterior, power)

    def _find_raised(self, r: Responses) -> NDArray[np.bool_]:
        """Tell of which items the posterior is raised to a power."""
        return np.ones(r.n_items, bool)

    @abstractmethod
    def _make_structure(self, r: Crowd) -> AnyStructure:
        """Return the structure, from the parameters."""

    def _check_size(self, r: Responses, graph: Graph | None) -> None:
        super()._check_size(r, graph)
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        n_tables = FIT_TABLES if self.max_iter > 1 else START_TABLES
        if self.max_iter > 0 and self.calibration == "hidden answers":
            n_tables = HIDING_TABLES
        check_matrices(type(self).__name__, workers, r.n_items, n_tables)

    def _learn(self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine) -> None:
        guided = None
        if r.features is not None:
            guided = guide_by_features(self, r, *self._fit_unguided(r, graph, gold, engine), gold)
            r = guided.responses
        plan = self._plan(r, graph, gold, engine)
        self._finish(r, plan, self._run(plan), gold, guided)

    def _fit_stored(
        self,
        s: StoredResponses,
        graph: Any,
        gold: Any,
        engine: Any,
        copies: list[list[int]] | None,
        count_copies_once: bool,
    ) -> Self:
        from ..results.stored import fit_stored

        fit_stored(self, s, graph, gold, engine, copies, count_copies_once)
        return self

    def _fit_unguided(
        self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine
    ) -> tuple[Problem, Fit]:
        """Return the problem without features, and its fit, from which a classifier learns."""
        plan = self._plan(r, graph, gold, engine)
        return plan.problem, self._choose(plan.problem, self._run(plan))

    def _plan(
        self, r: Crowd, graph: Graph | None, gold: Gold | None, engine: Engine, sample: Known | None = None
    ) -> Plan:
        """Return what is to be fitted, and from where; `sample` are some of the answers, if these are on disk."""
        problem = self._pose(r, self._make_structure(r), graph, gold, engine)
        return Plan(problem, find_starts(self, problem, cast(Responses, r) if sample is None else sample[0]), {})

    def _run(self, plan: Plan) -> dict[str, Fit]:
        """Run the loop from every start."""
        limits = (self.max_iter, self.tol, self.callback)
        return {name: run_em(plan.problem, start, *limits) for name, start in plan.starts}

    def _choose(self, problem: Problem, fits: Mapping[str, Fit]) -> Fit:
        """Return the fit with the highest objective."""
        several = len(fits) > 1
        return (
            max(fits.values(), key=lambda fit: self._judge_fit(problem, fit)) if several else next(iter(fits.values()))
        )

    def _finish(self, r: Responses, plan: Plan, fits: dict[str, Fit], gold: Gold | None, guided: Guided | None) -> None:
        """Calibrate the best fit, and keep all that was learned."""
        problem, best = plan.problem, self._choose(plan.problem, fits)
        self._warn_of_iterations(best, r.n_responses)
        if r.n_responses >= VERY_MANY:
            release_unused()  # before the results, which are most of what a fit takes
        posterior, label_codes = self._conclude(r, problem, best.parameters)
        opinion = None if guided is None else guided.opinion
        estimates = self._gather_estimates(r, problem, best.parameters, best.statistics, gold)
        earlier = (None, None) if plan.past is None else (plan.past.evidence, plan.past.sums)
        found, reported, confidence, hidden, evidence = calibrate(
            self, r, problem, best, posterior, gold, opinion, earlier=earlier[0]
        )
        powers = confidence.powers.tolist()
        intervals, past = None, None
        if self._going_on is None or problem.graph is not None:  # fields correct theirs
            intervals, sums = find_intervals(r, posterior, label_codes, estimates, confidence, earlier=earlier[1])
            past = Past(best.statistics.summary, sums, evidence)
        if found.power != 1:
            reported = posterior.copy() if reported is posterior else reported
            raise_in_place(self._find_raised(r), reported, found.power)
        notes = plan.notes | self._judge_labels(r, problem, best, posterior, label_codes, found.power)
        self._keep(r, problem, best.parameters, best.statistics, reported, label_codes, intervals)
        self.uncalibrated_posterior_, self._hidden = posterior, hidden
        self._settle_fit(best, fits, found)
        self._past, self._due = past, None
        if intervals is None:
            self._due = Due(sum_pseudo_counts(best.parameters.prior), best.statistics.summary, evidence)
        self._powers, self._has_priors = powers, r.log_prior is not None
        self._n_changes = 0 if self._going_on is None else self._going_on.n_changes
        self.feature_findings_ = None if guided is None else guided.findings
        self._guide = None if guided is None else guided.guide
        self._opinions, self._log_prior = None, r.log_prior
        self.feature_names_ = None if guided is None else guided.names
        if guided is not None and opinion is not None:
            self._opinions = compare_opinions(r, gold, opinion, guided.alone, posterior)
            answered = np.diff(r.offsets)[opinion.item] > 0
            agrees = (opinion.code == label_codes[opinion.item])[answered]
            self.feature_findings_ = guided.findings._replace(
                accuracy=float(agrees.mean()) if len(agrees) else None,
                n_changed=int((guided.alone.argmax(axis=1) != label_codes).sum()),
            )
        for name, value in notes.items():
            setattr(self, name, value)

    def _settle_fit(self, best: Fit, fits: Mapping[str, Fit], found: Calibration) -> None:
        """Keep how the fit went, and nothing of what an earlier fit kept for updates and batches."""
        self.calibration_, self._past, self._due, self._n_batches = found, None, None, 0
        self._powers, self._n_changes, self._has_priors = [], 0, False
        self.trace_, self.n_iter_, self.converged_ = best.trace, best.n_iter, best.converged
        self.starts_ = {name: fit.trace for name, fit in fits.items()}
        self.smoothing_ = best.parameters.prior.pair or given_pair(self.smoothing)

    def _judge_labels(
        self,
        r: Responses,  # noqa: ARG002
        problem: Problem,  # noqa: ARG002
        fit: Fit,  # noqa: ARG002
        posterior: Floats,  # noqa: ARG002
        label_codes: NDArray[np.int64],  # noqa: ARG002
        power: float,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return further attributes of the fitted model, which tell how far to believe the labels."""
        return {}

    def _judge_fit(self, problem: Problem, fit: Fit) -> float:  # noqa: ARG002
        """Return by what fits from different starts are compared."""
        return fit.objective

    def _pose(
        self, r: Crowd, structure: AnyStructure, graph: Graph | None, gold: Gold | None, engine: Engine
    ) -> Problem:
        """Return what is to be fitted, its blocks placed."""
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        prior = workers.prior(checked_smoothing(self, r), self.estimation, r.vote_shares())
        if self._learns_smoothing():
            prior = make_pair(prior, split_prior(workers, r))
        return self._place(r, workers, prior, structure, graph, gold, engine)

    def _learns_smoothing(self) -> bool:
        return isinstance(self.smoothing, str) and self.smoothing == "learn" and self.estimation == "variational"

    def _structure_parts(self, r: Crowd) -> tuple[int, Floats | None, float, str]:
        """Return what every structure is made of: number of classes, fixed prior if any, smoothing, estimation."""
        return r.n_classes, fixed_prior(self, r), float(checked_smoothing(self, r).min()), self.estimation

    def _warn_of_iterations(self, fit: Fit, n_responses: int) -> None:
        if self.tol > 0 and self.max_iter > 0 and not fit.converged:
            gain = (fit.trace[-1] - fit.trace[-2]) / max(n_responses, 1)
            warn(
                ConvergenceWarning(
                    f"{type(self).__name__} stopped after {self.max_iter} iterations while its objective still gained "
                    f"{gain:.1e} per answer.",
                    Sentence("Allow more with {max_iter}.", max_iter=2 * self.max_iter),
                    Sentence("Or accept the fit with a higher {tol}."),
                    keyword="max_iter",
                )
            )

    def _scalar_values(self) -> dict[str, Any]:
        findings = self.feature_findings_
        return super()._scalar_values() | {"feature_findings_": None if findings is None else findings._asdict()}

    def _state(self) -> dict[str, NDArray[Any]]:
        kept = {f"start {name}": trace for name, trace in self.starts_.items()}
        if self._opinions is not None:
            kept |= {f"classifier {name}": array for name, array in self._opinions._asdict().items()}
        if self._guide is not None and isinstance(self._guide.judge, LinearJudge):
            kept |= {f"classifier {name}": array for name, array in state_of_guide(self._guide).items()}
        return super()._state() | kept

    def _specs(self, names: Iterable[str]) -> dict[str, ArraySpec]:
        starts = [name for name in names if name.startswith("start ") and is_start(name.removeprefix("start "))]
        held = [name.removeprefix("classifier ") for name in names if name.startswith("classifier ")]
        specs = dict.fromkeys(starts, ArraySpec("*", OBJECTIVES))
        findings = cast(dict[str, Any] | None, self.feature_findings_)  # as it was in the file
        if findings is not None and findings["used"]:
            wanted = OPINION_SPECS | (GUIDE_SPECS if "weights" in held else {})
            specs |= {f"classifier {name}": spec for name, spec in wanted.items()}
        return super()._specs(names) | specs

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.starts_ = part_of(arrays, "start ")
        self.smoothing_ = None if self.smoothing_ is None else (self.smoothing_[0], self.smoothing_[1])
        self.calibration_ = Calibration(*self.calibration_)
        self._opinions = self._guide = self._log_prior = None
        if self.feature_findings_ is not None:
            self.feature_findings_ = FeatureFindings(**cast(dict[str, Any], self.feature_findings_))
            kept = part_of(arrays, "classifier ")
            if self.feature_findings_.used:
                self._opinions = ComparedOpinions(*(kept[name] for name in ComparedOpinions._fields))
                self._opinions.check(len(self._label_codes))
            if "weights" in kept:
                self._guide = restore_guide(kept, len(self.classes_), self.feature_findings_.n_features)

    def _check_parameters(self) -> None:
        check_choice(self, "workers", tuple(WORKERS))
        check_choice(self, "estimation", ESTIMATIONS)
        check_calibration(self)
        check_classifier(self)
        check_number(self, "n_init", 1, whole=True)
        check_number(self, "max_iter", 0, whole=True)
        check_number(self, "tol", 0)
        check_number(self, "seed", 0, whole=True)
        check_callback(self)
        if self.max_iter == 0 and (self.n_init > 1 or (isinstance(self.start, str) and self.start == "best")):
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and starts cannot be compared.",
                Sentence("Choose one start, with {n_init}.", n_init=1),
                keyword="max_iter",
            )

    def _estimate_moments(self, answers: Responses) -> Effort:
        """Return what a start from moments will take."""
        return estimate_moments(answers)

    def _structure_from_moments(
        self,
        r: Responses,  # noqa: ARG002 (chains look at neighbouring answers)
        structure: AnyStructure,
        found: MomentFit,
    ) -> StructureParameters:
        """Return what moments say of the structure: the class prior."""
        started: StructureParameters = structure.given(found.prior)
        return started


def split_prior(workers: WorkerModel, r: Crowd) -> tuple[Floats, Floats, Floats]:
    """Return the parts of pseudo-counts that a learned pair multiplies, and the part that stays; see `Prior`.

    Classes that no answer can mean keep the pseudo-counts of EM. Those of a learned prior may be many, and such a class
    would then be as good an explanation of any answer as the other classes.
    """
    unvoted = r.vote_shares()
    meant = (r.label_of_class >= 0) | (unvoted > 0)

    def at(off: float, diagonal: float) -> Floats:
        smoothing = smoothing_array((off, diagonal), r.class_of_label, r.n_classes, r.n_workers)
        return workers.prior(np.where(meant, smoothing, PAIR[0]), "variational", unvoted).smoothing

    # Worker models are linear in the pair as long as the diagonal is the larger one.
    low, high, both = at(1.0, 2.0), at(1.0, 3.0), at(2.0, 3.0)
    off, diagonal = both - high, high - low
    return freeze(off), freeze(diagonal), freeze(low - off - 2.0 * diagonal)
