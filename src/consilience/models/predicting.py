"""Models whose estimates can be applied to other items of the same workers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..answers.arrays import Crowd
from ..answers.blocks import Block, cut_blocks
from ..answers.columns import Column, to_column
from ..answers.gold import Gold, match_gold
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..checks.copies import PlainFit, find_copies
from ..checks.copy_groups import are_groups, count_once, list_groups, number_groups
from ..checks.mask_copies import find_same_masks
from ..engines import open_engine
from ..engines.base import Engine, Placed
from ..errors import DataWarning, InputError, NotFittedError, ParameterError, Python, Sentence, listing, shorten, warn
from ..formats.reading import open_paths
from ..inference.distributions import Distributions
from ..inference.em import (
    Parameters,
    Problem,
    decode_labels,
    expect_from_votes,
    infer_posterior,
    maximise,
    run_em,
)
from ..inference.moments import strongest_answers
from ..inference.sizes import check_posteriors, check_prediction
from ..inference.statistics import Statistics
from ..inference.structures.base import AnyStructure, StructureParameters
from ..inference.structures.independent import Independent
from ..inference.workers.base import Prior, WorkerModel
from ..inference.workers.confusion import ConfusionWorkers, smoothing_array
from ..inference.workers.register import WORKERS
from ..inference.workers.rows import Factors, anchor
from ..kernels.types import Floats
from ..results.answer_worth import find_judged
from ..results.interval_sums import Estimates
from ..results.intervals import Intervals
from ..results.previews import build_report
from ..results.stored_blocks import find_steps, place_stored
from ..specs import ENDS, LABEL_DISTRIBUTIONS, ArraySpec, Fault, is_truth
from ..storage.answers import StoredResponses
from .base import Model
from .inputs import as_responses
from .parameters import fixed_prior

if TYPE_CHECKING:
    from ..results.updating import Update

# Pseudo-counts (off diagonal, diagonal) of matrices that are made of votes.
VOTE_SMOOTHING = (0.1, 1.1)
# The attributes that hold the ends of intervals.
INTERVALS = ("_worker_intervals", "_prior_interval", "_expected_interval")
# How long the plain fit lasts by which copies are judged.
PLAIN_ITERATIONS, PLAIN_TOL = 30, 1e-4


AnyCrowd = TypeVar("AnyCrowd", bound=Crowd)


class GoingOn(NamedTuple):
    """How a fit goes on from the one before; see `consilience.results.updating`.

    A coupling that is learned is taken as it was found.

    Attributes
    ----------
    keeps_power : bool
        Whether the power that calibrates probabilities is taken as it was found, too.
    starts_there : bool
        Whether the loop starts from what was learned.
    n_changes : int
        Answers that have come, or changed, since the last fit that did not go on from another.
    """

    keeps_power: bool
    starts_there: bool
    n_changes: int


class NewItems(NamedTuple):
    """Other answers, ready for inference."""

    responses: Responses
    engine: Engine
    placed: list[Placed]
    graph: Graph | None
    factors: Factors


class PredictingModel(Model):
    """A model that knows each worker's confusion matrix and how labels hang together."""

    _arrays: ClassVar[Mapping[str, ArraySpec]] = {
        **Model._arrays,
        "_crowd": ArraySpec("1 A K", LABEL_DISTRIBUTIONS),
        "_prior_interval": ArraySpec("2 K", ENDS),
        "_expected_interval": ArraySpec("2", ENDS),
    }
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **Model._scalars,
        "copies_count_once_": is_truth,
        "_copies": are_groups,
        "_workers_fitted": lambda name: isinstance(name, str) and name in WORKERS,
    }

    _log_weights: Floats  # (R, L, K): what the E-step uses
    _crowd: Floats  # (1, L, K): how the crowd answers on the whole
    _workers_fitted: str  # the worker model, by name; the parameter may have been changed since
    _structure: StructureParameters
    _further: dict[str, Floats]  # arrays of the worker model, which are attributes too
    _prior_interval: Floats  # (2, K)
    _expected_interval: Floats  # (2,)
    _going_on: GoingOn | None = None  # during an update that goes on from the fit before
    _update: Update | None = None  # what the last update changed; it is not saved

    #: Whether answers to predict from must take silence as those of the fit did.
    _needs_same_silence = True
    #: Whether workers who copy each other are looked for when somebody asks for them, and not at each fit.
    _finds_copies_later: ClassVar[bool] = False
    #: What the structure learns.
    _structure_type: type[StructureParameters]

    def fit(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Self:
        """Learn labels and how workers answer, from the answers alone.

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

        Returns
        -------
        self
        """
        return self._fit(responses, graph, gold, engine)

    def _fit(
        self,
        responses: Any,
        graph: Any,
        gold: Any,
        engine: Any,
        copies: list[list[int]] | None = None,
        count_copies_once: bool = False,
    ) -> Self:
        """Fit; near-copies count once together if asked for. They are looked for unless `copies` tells who they are."""
        if isinstance(responses, StoredResponses):
            return self._fit_stored(responses, graph, gold, engine, copies, count_copies_once)
        self._check_parameters()
        r = self._prepare(as_responses(responses))
        self._stored = self._totals = None
        graph = self._align(r, graph)
        links = self._links(r, graph)
        known = match_gold(open_paths(gold), r, r.classes)
        self._check_size(r, links)
        with open_engine(engine) as opened:
            if copies is None and (count_copies_once or not self._finds_copies_later):
                copies = self._find_copies(r, known, opened)
            used = count_once(r, number_groups(copies, r.n_workers)) if copies and count_copies_once else r
            self._learn(used, links, known, opened)
        self.copies_count_once_ = used is not r
        if copies is not None:
            self._copies = copies
        # New objects, which share the arrays and nothing that was derived from them meanwhile.
        self._answers = replace(r, features=None, log_prior=None, gold=None)
        self._gold, self._graph = known, None if graph is None else replace(graph)
        return self

    def update(
        self,
        responses: Any = None,
        graph: Any = None,
        gold: Any = None,
        engine: Any = None,
        *,
        duplicates: str = "error",
    ) -> Self:
        """Add answers, known labels or edges to those of the fit, and fit the model to all of them.

        The result is that of a fit to all answers, up to `tol`. Items, workers and labels may be new, and sequences may
        grow. `labels_` and all other results are those of all items. `changes` lists the labels that have changed, and
        `update_` counts what is new.

        While less than a tenth of the answers has come or changed since the last whole fit, three things that are
        expensive and change little are kept as they were found: the power that calibrates probabilities, a coupling
        that is learned, and which workers copy each other. `explain_calibration` says so. With 500,000 answers or more,
        the loop then also starts from where the fit stood, which takes a few iterations. With fewer it starts as `fit`
        does, which is fast enough: another start can lead to another result. After a tenth, or with new known labels,
        everything is fitted again from the beginning. A model from `consilience.fuse` is compared with majority vote
        again after each update, and for this its power is found again, too.

        Parameters
        ----------
        responses : Responses, table or path, optional
            New answers. A table is read as the answers of the fit were: columns of the same names play the same roles,
            and labels are normalised if those were. An answer that is there already with the same label changes
            nothing.
        graph : Graph, or edges in any form that `consilience.fuse` takes, optional
            For `MarkovField`: further edges. An edge that is there already takes the new weight. New items may have
            edges to old ones.
        gold : dict, Series, table or path, or a list of these, optional
            Further known labels, as for `fit`. If the label of an item was known before, the new one replaces it.
        engine : optional
            Where to work; see `fit`.
        duplicates : {"error", "last"}
            What to do if a worker answered an item before, with another label. "last": the new answer replaces the old
            one, and a row without a label retracts the old answer.

        Returns
        -------
        self

        Examples
        --------
        >>> import consilience as cs
        >>> answers = {"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "x", "y", "x"]}
        >>> model = cs.DawidSkene().fit(answers)
        >>> model.update({"item": [2, 3], "worker": ["c", "c"], "label": ["x", "y"]}).responses_.items
        array([1, 2, 3])
        """
        from ..results.updating import update_model

        update_model(self, responses, graph, gold, engine, duplicates)
        return self

    @property
    def update_(self) -> Update:
        """What the last `update` brought, in numbers."""
        self._check_fitted()
        if self._update is None:
            raise NotFittedError("This model was not updated since it was fitted or loaded.", "Call update(responses).")
        return self._update

    def changes(self) -> Any:
        """Return a table of the items whose label was changed by the last `update`.

        Columns: item (or sequence and position); label_before and label; confidence_before and confidence;
        new_answers, the number of answers to the item that came or changed. Items that are new are not listed:
        ``update_.n_new_items`` says how many there are. The table is of the library that the answers came in.
        """
        return build_report(self.update_.columns, self._backend)

    def _fit_stored(
        self,
        s: StoredResponses,  # noqa: ARG002
        graph: Any,  # noqa: ARG002
        gold: Any,  # noqa: ARG002
        engine: Any,  # noqa: ARG002
        copies: list[list[int]] | None,  # noqa: ARG002
        count_copies_once: bool,  # noqa: ARG002
    ) -> Self:
        """Fit to answers on disk, for models that can."""
        raise ParameterError(
            f"{type(self).__name__} takes answers in memory.",
            Sentence("Use {model}.", model=Python("DawidSkene, HiddenMarkov or MajorityVote", "dawid-skene")),
            "Or read them with read_responses.",
            keyword="model",
        )

    def _find_copies(self, r: Responses, gold: Gold | None, engine: Engine) -> list[list[int]]:
        """Return the groups of near-copies, each by the indices of its workers."""
        if r.pictures is not None:
            return find_same_masks(r)

        def fit_plain(part: Responses, known: NDArray[np.int32] | None) -> PlainFit:
            workers = ConfusionWorkers.of(part, part.class_of_label, part.n_classes)
            smoothing = smoothing_array(VOTE_SMOOTHING, part.class_of_label, part.n_classes, part.n_workers)
            prior = workers.prior(smoothing, "em", part.vote_shares())
            structure = Independent(part.n_classes, None, VOTE_SMOOTHING[0], "em")
            labels = None if known is None else Gold(known, known >= 0)
            problem = self._place(part, workers, prior, structure, None, labels, engine)
            start = maximise(problem, expect_from_votes(problem))
            found = run_em(problem, start, PLAIN_ITERATIONS, PLAIN_TOL).parameters
            return PlainFit(found.structure.mean, found.workers.mean)

        return list_groups(find_copies(strongest_answers(r), None if gold is None else gold.codes, fit_plain))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error for a parameter whose value the model cannot take."""

    def _check_size(self, r: Responses, graph: Graph | None) -> None:  # noqa: ARG002 (fields look at it)
        """Raise an error for a fit that needs more memory than there is."""
        check_posteriors(type(self).__name__, r)

    @abstractmethod
    def _learn(self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine) -> None:
        """Learn from answers, with graph and gold matched to their items."""

    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Floats:
        """Return class probabilities of other items answered by the same workers.

        A worker who was not there at the fit is taken to answer as the crowd does on the whole, with a warning.
        For the answers (and gold, and graph) of the fit this is `posterior_`.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
        """
        return self._infer(responses, graph, gold, engine)[1]

    def _infer(
        self, responses: Any, graph: Any, gold: Any, engine: Any, to_calibrate: bool = False
    ) -> tuple[Responses, Floats]:
        """Return other answers, and the posteriors that the estimates call for, or those that can be calibrated."""
        self._check_fitted()
        structure = self._structure.relaxed() if to_calibrate else self._structure
        with self._bring(responses, graph, gold, engine, as_used(self._log_weights), not to_calibrate) as new:
            posterior, _ = infer_posterior(new.engine, new.placed, new.factors, structure, new.graph)
            return new.responses, posterior

    def score(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> float:
        """Return the mean log likelihood of an item's answers (and gold label), at the reported estimates.

        For a `MarkovField` it is the mean-field objective per item, without the field's normaliser: it compares answers
        under one fitted model, and does not compare couplings.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.
        """
        self._check_fitted()
        reported = Distributions.known(WORKERS[self._workers_fitted].reported(self.confusion_, self._further))
        with self._bring(responses, graph, gold, engine, reported) as new:
            value = infer_posterior(new.engine, new.placed, new.factors, self._structure.point(), new.graph)[1]
            return value / new.responses.n_items

    def _predict_codes(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        return np.asarray(self._infer(responses, graph, gold, engine)[1].argmax(axis=1))

    def _decode(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        """Return the most probable joint labelling of other items."""
        with self._bring(responses, graph, gold, engine, as_used(self._log_weights)) as new:
            return decode_labels(new.engine, new.placed, new.factors, self._structure, new.graph)

    def next_questions(
        self,
        n: int | None = None,
        workers: Any = None,
        budget: float | None = None,
        *,
        cost: Any = None,
        per_worker: Any = None,
        asked: Any = None,
    ) -> Any:
        """Return a table of questions to ask next: which worker should answer which item.

        The questions come first whose answers are expected to tell most about the labels, for what they cost. Several
        questions may be about one item: the gain of each is what its answer tells beyond those listed before. No worker
        is asked about an item twice, nor are two workers who copy each other. Nothing is asked about items whose label
        was given to the fit as `gold`, nor where an answer would tell nothing.

        Columns: item (or sequence and position); worker; gain, the expected information about the label of the item, in
        nats; cost. In sequences and networks a question counts less if one about a neighbour is listed before it.

        Parameters
        ----------
        n : int, optional
            The most questions to list. Default: 10, or as many as the budget pays for.
        workers : list, optional
            Who may be asked; default: all workers of the fit. Workers who were not there are taken to answer as the
            crowd does on the whole, with a warning.
        budget : float, optional
            The most that all questions may cost together.
        cost : float or dict, optional
            What an answer costs, for all workers or by worker. Questions are chosen by their gain per cost. Default: 1.
        per_worker : int or dict, optional
            The most questions for each worker. By default no worker has more than four times an even share, as long as
            others can be asked: who is best is not known for certain, and errors of a few would be everywhere.
        asked : table, optional
            Questions that were asked before, such as an earlier list: a table with the columns item (or sequence and
            position) and worker. They are not listed again. Where there is no answer yet, it is expected to come: gains
            are what answers tell beyond it, and it counts in `per_worker`, but not in `budget`.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(500, n_workers=30, n_classes=3, answers_per_item=3, seed=1)
        >>> questions = cs.DawidSkene().fit(crowd.responses).next_questions(100)
        >>> questions.column_names
        ['item', 'worker', 'gain', 'cost']
        """
        from ..planning.next_questions import list_questions

        self._check_fitted()
        return build_report(list_questions(self, n, workers, budget, cost, per_worker, asked), self._backend)

    @contextmanager
    def _bring(
        self, responses: Any, graph: Any, gold: Any, engine: Any, known: Distributions, anchored: bool = True
    ) -> Iterator[NewItems]:
        """Lay out new answers in blocks, with this model's matrices for their workers."""
        self._check_parameters()
        r = self._check_answers(self._read(responses))
        links = self._links(r, graph)
        label, worker = self._find_labels(r), self._find_workers(r)
        r = self._weigh_copies(r, worker)
        class_of_label = lookup(self.classes_, to_column(r.labels))
        kind = WORKERS[self._workers_fitted]
        workers = kind(r.n_workers, class_of_label, len(self.classes_), self._takes_silence(), r.silence_weight)
        check_prediction(type(self).__name__, workers)
        crowd = Distributions.known(self._crowd)
        weights = workers.adopt(known.weights, crowd.weights, worker, label)
        logs = workers.adopt(known.log_weights, crowd.log_weights, worker, label)
        factors = workers.factors(Distributions(weights, logs, weights, 0.0), r.weight is not None)
        # The fit may have added classes, which these answers do not know of.
        matched = match_gold(open_paths(gold), r, self.classes_)
        blocks = lay_out(r.with_classes(self.classes_), workers, matched, anchored)
        with open_engine(engine) as opened:
            yield NewItems(r, opened, list(opened.place(blocks)), links, factors)

    def _read(self, responses: Any) -> Responses:
        """Return other answers, their labels written as those of the fit if these are in their normal form."""
        if not self._normalised:
            return as_responses(responses)
        given = isinstance(responses, Responses)
        return (responses if given else as_responses(responses, normalise=True)).spelled_as(self.answer_labels_)

    def _find_labels(self, r: Responses) -> NDArray[np.int64]:
        """Return the index of each label at the fit."""
        label = lookup(self.answer_labels_, to_column(r.labels))
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(self.answer_labels_.tolist())}.",
                "Fit again with both.",
            )
        self._check_silence(r)
        if self._needs_same_silence and r.silence_counts and lookup(self.classes_, to_column([r.background]))[0] < 0:
            raise InputError(
                f"The background of the answers, {shorten(r.background)}, is no class of the model, which knows "
                f"{listing(self.classes_.tolist())}.",
                Sentence("Read them with the same {background}."),
            )
        return label

    def _check_silence(self, r: Responses) -> None:
        """Raise an error unless silence is an answer here if it was one at the fit."""
        if self._needs_same_silence and r.silence_counts != self._takes_silence():
            raise InputError(
                "The answers must take silence as the fit did.", Sentence("Read them with the same {abstain}.")
            )

    def _takes_silence(self) -> bool:
        """Tell whether silence was an answer at the fit."""
        return bool(self.confusion_.shape[2] > len(self.answer_labels_))

    def _find_workers(self, r: Responses) -> NDArray[np.int64]:
        """Return the index of each worker at the fit, -1 for those who were not there."""
        worker = lookup(self.workers_, to_column(r.workers))
        if (worker < 0).any():
            warn(
                DataWarning(
                    f"{int((worker < 0).sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                    f"{listing(r.workers[worker < 0].tolist())}. They are taken to answer as the crowd does on the "
                    "whole."
                )
            )
        return worker

    def _links(self, r: Responses, graph: Any) -> Graph | None:  # noqa: ARG002 (fields match it to the items)
        """Return the graph over these items, None for models that take none."""
        self._refuse_graph(graph)
        return None

    def _align(self, r: Responses, graph: Any) -> Any:  # noqa: ARG002
        """Return the graph with the items of the answers as its nodes, for models that take one."""
        return graph

    def _check_answers(self, r: AnyCrowd) -> AnyCrowd:
        """Return the answers, if the model can take them."""
        return r

    def _prepare(self, r: AnyCrowd) -> AnyCrowd:
        """Return the answers with the classes that the model needs, for a fit."""
        return self._check_answers(r)

    def _place(
        self,
        r: Crowd,
        workers: WorkerModel,
        prior: Prior,
        structure: AnyStructure,
        graph: Graph | None,
        gold: Gold | None,
        engine: Engine,
    ) -> Problem:
        """Return what is to be fitted, its blocks cut and put where they will be worked on."""
        if isinstance(r, StoredResponses):
            engine, placed = place_stored(r, workers, engine)
            weighted, steps = r.weighted or r.groups is not None, find_steps(r, self)
        else:
            assert isinstance(r, Responses)
            placed, weighted, steps = engine.place(lay_out(r, workers, gold)), r.weight is not None, None
        shares = r.vote_shares()
        return Problem(engine, placed, workers, prior, structure, graph, r.n_responses, weighted, shares, steps)

    def _pose_votes(self, r: Crowd, graph: Graph | None, gold: Gold | None, engine: Engine) -> Problem:
        """Return the problem of independent items and confusion matrices, for models that only need the votes."""
        workers = voters(r)
        smoothing = smoothing_array(VOTE_SMOOTHING, r.class_of_label, r.n_classes, r.n_workers)
        structure = Independent(r.n_classes, None, 0.0, "em")
        return self._place(r, workers, Prior(smoothing, "em"), structure, graph, gold, engine)

    def _keep(
        self,
        r: Responses,
        problem: Problem,
        learned: Parameters,
        statistics: Statistics,
        posterior: Floats,
        label_codes: NDArray[np.int64],
        intervals: Intervals | None,
    ) -> None:
        """Store all that was learned in the attributes users read.

        What may be interrupted has come before: a model is fitted to one set of answers or to another, never to both.
        """
        self._remember(r)
        self.posterior_, self._label_codes = posterior, label_codes
        self.classes_ = r.classes
        self._keep_learned(problem, learned, statistics, intervals)

    def _keep_learned(
        self, problem: Problem, learned: Parameters, statistics: Statistics, intervals: Intervals | None
    ) -> None:
        """Store what was learned of the workers, and of all items together; intervals may be worked out later."""
        workers = problem.workers
        self.prior_ = learned.structure.mean
        self._keep_matrices(problem, learned, statistics)
        self._structure = learned.structure
        self._workers_fitted = workers.name
        self._set_further(workers.further_arrays(learned.workers, statistics.counts))
        if intervals is None:
            for name in INTERVALS:
                self.__dict__.pop(name, None)
        else:
            self._keep_intervals(intervals)

    def _keep_intervals(self, intervals: Intervals) -> None:
        self._worker_intervals, self._prior_interval, self._expected_interval = intervals

    def _gather_estimates(
        self, r: Responses, problem: Problem, learned: Parameters, statistics: Statistics, gold: Gold | None
    ) -> Estimates:
        """Return what intervals are about."""
        workers = problem.workers
        confusion = workers.plain_mean(learned.workers, statistics.counts, learned.prior)
        return Estimates(
            confusion.transpose(0, 2, 1),
            workers.plain_counts(statistics.counts),
            learned.structure.mean,
            sum_pseudo_counts(learned.prior),
            fixed_prior(self, r) is not None,
            find_judged(r, gold, problem.graph),
        )

    @property
    def prior_low_(self) -> Floats:
        """Lower ends of the 95 % intervals of the class shares."""
        self._check_fitted()
        return np.asarray(self._prior_interval[0])

    @property
    def prior_high_(self) -> Floats:
        """Upper ends of the 95 % intervals of the class shares."""
        self._check_fitted()
        return np.asarray(self._prior_interval[1])

    @property
    def expected_accuracy_(self) -> float:
        """Share of the labels that are right, by their probabilities."""
        self._check_fitted()
        if self._totals is not None:
            return self._totals.confidence
        return float(self._confidence().mean())

    @property
    def expected_accuracy_low_(self) -> float:
        """Lower end of the 95 % interval of the share of right labels."""
        self._check_fitted()
        return min(float(self._expected_interval[0]), self.expected_accuracy_)

    @property
    def expected_accuracy_high_(self) -> float:
        """Upper end of the 95 % interval of the share of right labels."""
        self._check_fitted()
        return max(float(self._expected_interval[1]), self.expected_accuracy_)

    def _keep_matrices(self, problem: Problem, learned: Parameters, statistics: Statistics) -> None:
        """Store what was learned of workers in the attributes that users and predictions read."""
        workers, counts = problem.workers, statistics.counts
        confusion = workers.plain_mean(learned.workers, counts, learned.prior)
        self.confusion_ = np.ascontiguousarray(confusion.transpose(0, 2, 1))
        self._counts = workers.plain_counts(counts)
        self._log_weights = learned.workers.log_weights
        self._crowd = workers.crowd(counts, statistics.summary.mass, learned.prior)

    def _conclude(
        self,
        r: Responses,  # noqa: ARG002 (votes look at ids)
        problem: Problem,
        learned: Parameters,
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return the posteriors and the label of each item that belong to the estimates."""
        factors = problem.factors(as_used(learned.workers.log_weights))
        posterior, _ = infer_posterior(problem.engine, problem.placed, factors, learned.structure, problem.graph)
        return posterior, posterior.argmax(axis=1)

    def _set_further(self, arrays: dict[str, Floats]) -> None:
        """Make the worker model's own arrays attributes, in place of those of an earlier fit."""
        for name in self.__dict__.get("_further", ()):
            delattr(self, name)
        self._further = arrays
        for name, array in arrays.items():
            setattr(self, name, array)

    def _report_columns(self) -> dict[str, Column]:
        further = WORKERS[self._workers_fitted].further_columns(self._further, self.answer_labels_, self.classes_)
        return super()._report_columns() | further

    def _state(self) -> dict[str, NDArray[Any]]:
        structure = {f"structure {name}": value for name, value in self._structure.state().items()}
        further = {f"workers {name}": value for name, value in self._further.items()}
        return super()._state() | {"log_weights": self._log_weights} | structure | further

    def _specs(self, names: Iterable[str]) -> dict[str, ArraySpec]:
        workers = WORKERS[self._workers_fitted]
        structure = {f"structure {name}": spec for name, spec in self._structure_type.specs.items()}
        further = {f"workers {name}": spec for name, spec in workers.further_specs.items()}
        return super()._specs(names) | {"log_weights": workers.log_weights_spec} | structure | further

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        if any(member >= len(self.workers_) for group in self._copies for member in group):
            raise Fault("a group of copies names a worker who is not there")
        self._log_weights = arrays["log_weights"]
        self._structure = self._structure_type.from_state(part_of(arrays, "structure "))
        self._set_further(part_of(arrays, "workers "))


def lay_out(r: Responses, workers: WorkerModel, gold: Gold | None, anchored: bool = True) -> list[Block]:
    """Cut the answers into blocks; where silence is an answer, items are `anchored` to their votes.

    Labels are found with the anchor, and calibrated probabilities without it: it would count votes twice.
    """
    blocks = cut_blocks(r, workers.encode(r), workers.n_rows, None if gold is None else gold.codes)
    if not workers.silent or not anchored:
        return blocks
    votes, unvoted = workers.votes(), r.vote_shares()
    return [anchor(block, votes, unvoted) for block in blocks]


def refuse_content(**given: Any) -> None:
    """Raise an error for what is given of items whose answers are on disk."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                Sentence(f"{{{name}}} is for answers in memory.", **{name: Python(name)}),
                "Read them with read_responses.",
                keyword=name,
            )


def sum_pseudo_counts(prior: Prior) -> Floats:
    """Return how many pseudo-counts a worker has for each class, on average, (K,)."""
    return np.asarray(prior.smoothing.sum(axis=1).mean(axis=0))


def voters(r: Crowd) -> ConfusionWorkers:
    """Return the workers of models that only need the votes: silence is no vote."""
    return ConfusionWorkers(r.n_workers, r.class_of_label, r.n_classes)


def as_used(log_weights: Floats) -> Distributions:
    """Return weights as the E-step takes them, in `fit` for the last time and in `predict_proba`: so both agree."""
    return Distributions(np.exp(log_weights), log_weights, log_weights, 0.0)


def part_of(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
