"""What users call of an estimator: `fit`, a result that is assigned once, and methods that read it or apply it."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast, dataclass_transform, overload

from ..answers.answers import Answers
from ..answers.columns import Values, to_column
from ..answers.graph import Graph
from ..answers.previews import build_report, round_figures
from ..answers.random_choices import count_units
from ..answers.tables import build_frame
from ..answers.tagging import are_tags
from ..checks.register import run_checks
from ..engines import Engine, open_engine
from ..errors import NotFittedError, ParameterError, Python, Sentence, StoreError, listing, shorten
from ..inference import estimator
from ..inference.estimator import Fitted, LabelEstimator, LatentEstimator, describe_call, list_defaults
from ..inference.observations import Observations
from ..kernels import Floats
from ..kinds.base import AnyKind
from ..limits import keep_to
from ..options import check_truth, to_path
from ..results.findings import Finding, check_kind
from ..results.fitting import Others, align, fit_model, make_observations
from ..results.result import FitResult, FusionChecks, Result
from ..results.worker_report import tabulate_workers
from . import MODELS, OTHERS, model_class
from .opening import open_gold_tables, open_with_kind
from .planning import PlanningMethods

if TYPE_CHECKING:
    from ..documents.charts import Chart
    from ..documents.document import Document
    from ..kinds.masks import FusedMasks, Masks
    from ..kinds.spans import Spans
    from ..results.explanations import Explanation
    from ..results.saving import SavedModel
    from .updating import Update

# Labels that a notebook shows.
N_FIRST_LABELS = 5
Value = TypeVar("Value")
# Attributes that apply where they are not empty, and where methods apply that not all fitted models have.
OPTIONAL = ("copies_", "comparison_", "graph_check_", "update_", "sequential_confusion_", "temperatures_", "teaching_")
APPLIES: dict[str, Callable[[Result], bool]] = {
    **dict.fromkeys(("to_spans", "to_span_set"), lambda result: are_tags(result.names.classes)),
    "to_masks": lambda result: "to_masks" in result.kind.methods,
    "drift_report": lambda result: result.drift is not None,
    "changes": lambda result: result.update is not None,
    **dict.fromkeys(
        ("classifier_", "disagreements", "explain_features"), lambda result: result.feature_result is not None
    ),
}

# An estimator whose fit becomes a result.
Finished = TypeVar("Finished", bound=LabelEstimator)
log = logging.getLogger("consilience")


class FromResult(Generic[Value]):
    """An attribute of a fitted model, which reads from its result; None where the fit had nothing to say of it."""

    def __init__(self, read: Callable[[Any], Value], doc: str) -> None:
        self.read = read
        self.__doc__ = doc

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...
    @overload
    def __get__(self, model: Fitted[Any], owner: type) -> Value: ...
    def __get__(self, model: Fitted[Any] | None, owner: type) -> Self | Value:
        return self if model is None else self.read(model.result_)

    def __set__(self, model: Fitted[Any], value: object) -> None:
        raise AttributeError("What a fit found cannot be changed. Fit again, or copy it first.")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Model(PlanningMethods, LabelEstimator):
    """Base of all models: scikit-learn's conventions without scikit-learn.

    Parameters are keyword arguments, the annotated attributes of a model. They are stored as given and checked when
    `fit` is called. What was learned is in attributes that end in an underscore, which read from one result that is
    assigned when the fit is complete.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    labels_ = FromResult(lambda result: result.labels.values, "The fused label of each item.")
    posterior_ = FromResult(lambda result: result.labels.posterior, "The probabilities of the classes of each item.")
    classes_ = FromResult(lambda result: result.names.classes, "What can be true.")
    prior_ = FromResult(lambda result: result.prior, "Class prior.")
    confusion_ = FromResult(lambda result: result.estimates.matrices, "Matrices of workers, [worker, truth, answer].")
    trace_ = FromResult(lambda result: result.course.trace, "The objective before each iteration and at the end.")
    n_iter_ = FromResult(lambda result: result.course.n_iter, "Number of iterations.")
    converged_ = FromResult(lambda result: result.course.converged, "Whether the fit settled.")
    copies_ = FromResult(
        lambda result: [result.names.workers[group].tolist() for group in result.given.copies],
        "Groups of workers who seem to copy each other, each a list of their ids; see `worker_report`.",
    )
    comparison_ = FromResult(
        lambda result: result.comparison, "The comparison with majority vote, of a model that `fuse` made."
    )
    graph_check_ = FromResult(
        lambda result: result.graph_check, "What a shuffled graph tells, of a model that `fuse` made with a graph."
    )
    update_: ClassVar[FromResult[Update | None]] = FromResult(
        lambda result: result.update, "What the last `update` brought, in numbers."
    )

    @property
    def findings_(self) -> list[Finding]:
        """What checks found, the most serious first: what `fuse` warns of, and what a report says of workers and items.

        A `Finding` has the attributes kind, level ("care" or "bad"), problem, remedies and place.
        """
        result = self.result_
        return list(result.findings) if result.findings is not None or result.answers is None else []

    def _adopt(self, result: Result) -> Self:
        """Take a result as that of this model; return the model itself."""
        self._result = result
        return self

    @classmethod
    def _restore(cls, saved: SavedModel) -> Self:
        """The model that `save` wrote, after a look at whether it can be one."""
        model = cls(**saved.parameters)
        model._check()
        result = saved.read_result(model)
        return model._adopt(complete(model, result, result.fusion_checks))

    def fit(
        self,
        responses: object,
        *,
        graph: object = None,
        gold: object = None,
        features: object = None,
        item_prior: object = None,
        teach: str | bool = "auto",
        engine: object = None,
    ) -> Self:
        """Learn labels and how workers answer, from the answers and from what is known of the items.

        Unlike `fuse`, `fit` counts each of several workers who copy each other in full, and compares the fit with
        nothing.

        Parameters
        ----------
        responses : Answers, Spans, Masks or table
            The answers; a table is read with `Answers.from_frame`, and `Spans` become tags of tokens. `HiddenMarkov`
            needs sequences. For `MarkovField` name nodes that nobody answered with ``items=`` when the answers are
            read. Answers on disk (`scan_answers`) are taken by `DawidSkene`, `HiddenMarkov` and `MajorityVote`.
        graph : Graph, optional
            Which items are neighbours, matched by id. `MarkovField` needs it, and no other model takes one.
        gold : dict, Series, table or path, or a list of these, optional
            Known labels: {item: label}, for sequences {(sequence, position): label}, or a table with columns item (or
            sequence and position) and label. Their items keep them.
        features : array, sparse matrix, table or path, optional
            Numbers that describe the items, such as embeddings, for models with a hidden truth. A classifier learns
            from them and the fused labels, and has a say if it tells something; see `explain_features`. An array or a
            matrix (.npy, or .npz of scipy) has a row for each item, in the order of ``Answers.items``: that in which
            items first appear in the answers, or that of ``items=``. In a table (or .parquet, .csv) rows are matched by
            the column item (or sequence and position), and the other columns hold numbers, or lists of numbers. Rows
            about other items are not used.
        item_prior : array, table or path, optional
            Class probabilities of items before any answer, such as those of a model of your own. An array has a row for
            each item and a column for each class, in the order of ``Answers.items`` and of the classes. A table has a
            column item (or sequence and position) and one for each class, called by its name or p(<class>); items that
            are not there have none. Rows are rescaled to sum to 1. They say how items differ: how frequent classes are
            is learned, or given with `prior`.
        teach : {"auto", True, False}
            Whether known labels tell how much to trust each worker, beyond what agreement tells, for models with a
            hidden truth: as far as cross validation on them says, for certain, or not at all. `teaching_` says what
            they taught. It takes 10 known labels.
        engine : optional
            Where to work: None, "threads", "dask", a `distributed.Client` or an engine of `consilience.engines`.

        Returns
        -------
        self
        """
        self._check()
        kind, answers = open_with_kind(responses)
        if gold is not None:
            gold = kind.spread_known(open_gold_tables(gold), answers.columns)
        observations = make_observations(self, answers, gold, features, item_prior, kind, teach=teach)
        links = align(self, observations.responses, graph) if self._takes_graph or graph is not None else None
        with open_engine(engine) as opened, keep_to(observations.responses.memory):
            self._result = complete(self, fit_model(self, observations, links, opened))
        return self

    def fit_predict(self, responses: object, y: None = None, **given: Any) -> Values:
        """Fit, and return the labels. Parameters are those of `fit`; `y` is what a pipeline of scikit-learn passes."""
        if y is not None:
            raise ParameterError(
                Sentence("y is not used: known labels go to {gold}.", gold=Python("gold=")), keyword="y"
            )
        labels: Values = self.fit(responses, **given).labels_
        return labels

    def _apply(
        self, responses: object, graph: object, gold: object, features: object = None, item_prior: object = None
    ) -> Others:
        """Other answers with what the fit learned of their workers."""
        from .updating import read_like

        result = self.result_
        self._check()
        r = None if responses is None and features is not None else read_like(self, responses)
        known = result.kind.spread_known(open_gold_tables(gold), {} if r is None else r.columns)
        return Others(self, result, r, graph, known, features, item_prior)

    def _read(self, responses: object) -> tuple[AnyKind, Answers]:
        """Return other answers on the scale of the fit; their labels in its spelling, if its own are normalised."""
        names = self.result_.names
        read_it = names.normalised and not isinstance(responses, Answers)
        columns = {"normalise": True} if read_it else {}
        kind, answers = open_with_kind(responses, self.result_.kind, **columns)
        answers = answers.spelled_as(names.labels) if names.normalised else answers
        return kind, answers.scaled_as(names.classes, names.positions)

    def predict_proba(
        self,
        responses: object,
        graph: object = None,
        gold: object = None,
        engine: object = None,
        *,
        features: object = None,
        item_prior: object = None,
    ) -> Floats:
        """Return class probabilities of other items answered by the same workers.

        A worker who was not there at the fit is taken to answer as the crowd does on the whole, with a warning. A
        `MajorityVote` needs to know no worker. Posteriors are raised to the same power as those of the fit. With
        ``calibration="none"`` this is `posterior_` for the answers (and gold, and graph) of the fit; otherwise
        posteriors of fitted items leave the item itself out of what was learned, which other items need not.

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
        return self._apply(responses, graph, gold, features, item_prior).find_probabilities(engine)

    def predict(
        self,
        responses: object,
        graph: object = None,
        gold: object = None,
        engine: object = None,
        *,
        features: object = None,
        item_prior: object = None,
        as_frame: bool = False,
    ) -> Any:
        """Return the labels of other items answered by the same workers: the most probable class of `predict_proba`.

        Models that decode sequences jointly give the most probable path.

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
        from ..results.label_files import list_columns

        check_truth("as_frame", "predict", as_frame)
        others = self._apply(responses, graph, gold, features, item_prior)
        labels = others.find_labels(engine)
        if not as_frame:
            return labels.values
        return build_frame(list_columns(labels, self.result_.kind), others.observations.responses.backend)

    def score(self, responses: object, graph: object = None, gold: object = None, engine: object = None) -> float:
        """Return the mean log likelihood of an item's answers (and gold label), at the reported estimates.

        For a `MarkovField` it is the mean-field objective per item, without the field's normaliser: it compares answers
        under one fitted model, and does not compare couplings.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.
        """
        return self._apply(responses, graph, gold).score(engine)

    def __dir__(self) -> list[str]:
        """The names that apply to what was fitted."""
        result, names = self._result, list(super().__dir__())
        if result is None:
            return names

        settled = {
            each.name for each in fields(cast(Any, self)) if not each.init
        }  # which are no parameters of this model

        def applies(name: str) -> bool:
            if name in OPTIONAL:
                value = getattr(self, name)
                return bool(value) if isinstance(value, list) else value is not None
            return name not in settled and (name not in APPLIES or APPLIES[name](result))

        return [name for name in names if applies(name)]

    def _describe(self) -> str:
        result = self.result_
        steps = f", {result.course.n_iter} iterations" if result.course.n_iter else ""
        settled = "" if result.course.converged else " (not converged)"
        sure = f"mean confidence {result.labels.mean_confidence:.3f}"
        if not result.labels.shown:
            sure = "too few answers to tell how sure" if result.checked else "nothing checks the answers"
        return (
            f"{result.labels.n_items:,} items, {len(result.names.workers):,} workers, {len(result.names.classes)} "
            f"classes{steps}{settled}; {sure}"
        )

    def to_frame(self, *, undecided: float | None = None) -> Any:
        """Return a table with one row per item: its id, label, confidence, and the probability of each class.

        The label is the most probable class. Where a rule can decide otherwise, the last column is decided_by: "known
        label", "sequence" for a label that is on the most probable path and not the most probable by itself, "median"
        for a median that is not the most probable level, or "". Confidence, probabilities and what is made of them are
        missing if each item has one answer and nothing else checks it.

        Ordered classes have four more columns, after confidence:

        - median: the lowest level with at least half of the probability at or below it. No other level has a smaller
          expected distance from the truth.
        - mean: of the levels that are numbers; of their positions if they are names (0 for the lowest, then 1, 2, ...),
          or if other `positions` were given.
        - low, high: the ends of a 90% interval: the lowest levels with at least 5% and 95% at or below them.

        Levels that read as numbers are numbers in median, low and high; others are named as the labels are.

        The table is of the library that the answers came in (pandas, polars), pyarrow for files and matrices.

        Parameters
        ----------
        undecided : float, optional
            Labels whose confidence is below this number, from 0 to 1, are left open: they are missing in the table.
            `labels_` does not change. The method ``result_.undecided`` counts how many are kept.
        """
        from ..results.label_files import check_confidence, list_columns

        result = self.result_
        least = None if undecided is None else check_confidence(undecided, "undecided", "to_frame")
        return build_frame(list_columns(result.labels, result.kind, least), result.backend)

    def write(self, path: str | os.PathLike[str], *, undecided: float | None = None) -> None:
        """Write the labels with their probabilities to files, about a million items at a time.

        The columns are those of `to_frame`. What is there is replaced when everything is written.

        Parameters
        ----------
        path : str or path
            A folder of Parquet files, or the name of one file (.parquet .csv .tsv .jsonl .arrow).
        undecided : float, optional
            As for `to_frame`: labels whose confidence is below this number are left open.
        """
        from ..results.label_files import check_confidence, write_label_files

        least = None if undecided is None else check_confidence(undecided, "undecided", "write")
        write_label_files(self.result_, to_path("path", "write", path), least)

    def to_spans(self) -> Any:
        """Return a table with one row per fused span, for labels that are tags such as B-PER, I-PER and O.

        Columns: document (the sequence), start, end (excluded), label, text, and confidence: the probability that
        exactly this span with this type is there. Start and end count characters where the model was fitted to `Spans`.
        Where it was fitted to tags, they count tokens of the sequence, and the text is missing.

        The table is of the library that the answers came in, as that of `to_frame`.

        Examples
        --------
        >>> import consilience as cs
        >>> project = cs.simulate.spans(50, seed=1)
        >>> fused = cs.HiddenMarkov(transitions="bio").fit(project.spans)
        >>> fused.to_spans().column_names
        ['document', 'start', 'end', 'label', 'text', 'confidence']
        """
        from ..kinds.span_kind import tabulate_spans

        result = self.result_
        return build_frame(tabulate_spans(result.kind, result), result.backend)

    def to_span_set(self) -> Spans:
        """Return the fused spans with their texts as a `Spans`, of one worker who is called "consilience".

        It holds all documents that the model was fitted to, and the confidence of each span.
        """
        from ..kinds.span_kind import collect_spans

        return collect_spans(self.result_.kind, self.result_)

    def to_masks(self, masks: Masks | None = None) -> FusedMasks:
        """Return one mask for each image, for a model that was fitted to `Masks`.

        Parameters
        ----------
        masks : Masks, optional
            The masks that the model was fitted to. A model that was saved and loaded needs them, since its file does
            not hold the sizes of images.

        Returns
        -------
        FusedMasks
            A dict with an array for each image, of the values that the readers' masks hold. Its attribute `confidence`
            is a dict with the probability of each pixel's class.
        """
        from ..kinds.masks import draw_masks

        return draw_masks(self.result_.kind, self.result_.labels, masks)

    def explain(self, item: object) -> Explanation:
        """Return why an item has its label: what each answer weighed, and all else that had a say.

        The parts are log odds of the label against the most probable other class, with natural logarithms: 0.7 doubles
        the odds, 2.3 makes them ten times as large. They are the class prior, the answers, what else is known of the
        item (classifier or item prior), in a chain the rest of the sequence, in a network the neighbours, and
        calibration. Together they are the log odds of the probabilities in `posterior_`. The parts of a `MajorityVote`
        are shares of the votes.

        Parameters
        ----------
        item : id, or pair of sequence and position
            The item.

        Returns
        -------
        Explanation
            It prints as a table; `parts`, `log_odds` and `to_frame` have the figures.

        Examples
        --------
        >>> import consilience as cs
        >>> votes = {"item": [1, 1, 1, 2], "worker": ["ann", "bo", "cy", "ann"], "label": ["cat", "cat", "dog", "dog"]}
        >>> print(cs.MajorityVote().fit(votes).explain(1))
        Item 1: cat (0.667), against dog (0.333)
        2 of 3 workers say cat.
                        answer  share
          ann           cat      0.33  for
          bo            cat      0.33  for
          cy            dog      0.33  against
          share of cat           0.67
        """
        from ..results.explanations import explain_row, find_item

        result = self.result_
        row = find_item(result.answers, result.kind.find_key(item))
        return explain_row(self, result, row)

    def worker_report(self) -> Any:
        """Return a table with one row per worker: how many answers, how good, and what to look at.

        Columns:

        - worker: the id.
        - answers: how many there are.
        - accuracy: share of answers that agree with the truth, weighted by the posterior before calibration.
        - accuracy_low, accuracy_high: ends of its 95% interval, missing for workers without answers. All figures
          are missing for those none of whose answers is judged by anything else.
        - informativeness: mutual information of answer and truth, as a share of the truth's entropy: 0 tells nothing, 1
          tells all, also for one who is always wrong in the same way. Few answers pull it towards the crowd's, so this
          is not the column to block workers by.
        - informativeness_low, informativeness_high: ends of its 95% interval, missing as those of accuracy are.
        - chance: the probability that the answers have nothing to do with the truth, as those of one who clicks without
          looking. The worker's own answer is left out of what each item is judged by. From 0.9 on it is safe to act
          on. Missing where nothing can be told: for workers without an answer that anything else judges, for functions
          with one label, in streams, and for `MajorityVote`.
        - worst_confusion: the mistake with the highest rate, its share of the answers about that truth. Empty for
          workers who say only one label.
        - remarks: "few answers", "answers as if by chance", "uninformative", "contrary", "one label", "near-copy
          (group ...)", "accuracy falls from ... to ...", "harsh by ... levels", "lenient by ... levels"; several are
          separated by semicolons. Where silence is an answer, which it never is to `MajorityVote`, those who speak
          little or say one label are judged by what they tell when they speak.
        - group: the number of the group of near-copies that the worker belongs to, missing for others. Workers of a
          group agree more than workers who answer independently would, given how accurate they are: at least half of
          their answers seem to be copied from each other, or from one source.

        Where known labels teach, there is weight: what they add to the log odds of the label that the worker gives,
        beyond what agreement tells. Of tags it is the mean over tags; see `teaching_`.

        Raters on a scale (``workers="ordinal"``) have five more:

        - bias, bias_low, bias_high: by how many levels the answers are too high, compared with the mean of all raters,
          and the ends of its 95% interval. Below 0 a rater is harsh, above 0 lenient. The rater's own answer is left
          out of what each item is judged by. Missing where chance is.
        - spread: by how many levels the answers scatter, as a standard deviation.
        - careless: the share of answers that might be any level.

        Other worker models add columns of their own too. Figures are rounded to three digits.

        The table is of the library that the answers came in (pandas, polars). For others it is a `ReportTable`: an
        Arrow table that prints as a table.
        """
        result = self.result_
        ids, figures = (
            result.workers["worker"],
            {name: each for name, each in result.workers.items() if name != "worker"},
        )
        return build_report({"worker": ids, **round_figures(figures)}, result.backend)

    def drift_report(self) -> Any:
        """Return a table with one row per worker: how accuracy changes over the order of the answers.

        The answers must have been read with ``order``, a column that says when each was given.

        Columns: worker; answers, by which the worker is judged: those with a time, to items that at least two others
        answered, or whose label is known and one other did; accuracy_first and accuracy_last, the accuracy in the first
        and in the last third of the worker's answers; change, the difference; change_low and change_high, the ends of
        its 95% interval; remarks, "accuracy falls from ... to ..." if it falls beyond chance. All but the first two
        are missing for workers with fewer than 20 such answers.

        An answer is judged by those of other workers to the same item, and a worker relative to them: if the items at
        the end are harder for all, that is no fall. In a crowd in which nobody changes, anybody gets a
        remark with a probability of about 5% or less. `worker_report` has the same remarks.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(400, n_workers=5, n_classes=2, accuracy=0.9, seed=1)
        >>> r, item = crowd.responses, crowd.responses.item_of_answer()
        >>> tired = (r.worker == 4) & (item > 200) & (item % 2 == 0)
        >>> table = {"item": item, "worker": r.worker, "label": r.label ^ tired, "time": item}
        >>> answers = cs.Answers.from_frame(table, order="time")
        >>> cs.DawidSkene().fit(answers).drift_report().to_pydict()["remarks"]
        ['', '', '', '', 'accuracy falls from 86% to 52%']
        """
        result = self.result_
        if result.answers.order is None:
            raise ParameterError(
                "It is not known in which order the answers were given.",
                Sentence("Read them with {order}, the column of numbers or times that tells."),
                keyword="order",
            )
        columns = {"worker": to_column(result.names.workers), **round_figures(dict(result.drift or {}))}
        return build_report(columns, result.backend)

    def save(self, path: str | os.PathLike[str], *, answers: bool = True, texts: bool = True) -> Path:
        """Write the fitted model to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path : str or path
            The file.
        answers : bool, default True
            Whether the answers are written too, and the graph of a `MarkovField`: who said what about which item.
            Without them `result_.answers` of the loaded model is not available. All results are, and `predict` works. A
            model that was fitted to answers on disk is always written without them, and without labels.
        texts : bool, default True
            Whether the texts of a model that was fitted to `Spans` are written too. Without them the file still has
            the offsets of all tokens, and `to_spans` of the loaded model gives spans without their texts.
        """
        from ..results.saving import write_model

        return write_model(to_path("path", "save", path), **self._to_saved(answers, texts))

    def _to_saved(self, answers: bool, texts: bool) -> dict[str, Any]:
        """The content of the file of the model."""
        from ..results.saving import describe_model

        check_truth("answers", "save", answers)
        check_truth("texts", "save", texts)
        return describe_model(self.result_, self.get_params(), answers=answers, texts=texts)

    def _repr_html_(self) -> str:
        from ..documents.document import Document, Facts
        from ..documents.html import to_cells
        from ..documents.overview import list_facts, list_first_labels

        if self._result is None:
            return to_cells(Document(describe_call(self), "Not fitted yet.", []))
        facts, labels_shown = Facts(list_facts(self)), list_first_labels(self._result, N_FIRST_LABELS)
        return to_cells(Document(describe_call(self), "", [facts, labels_shown]))

    def update(
        self,
        responses: object = None,
        graph: object = None,
        gold: object = None,
        engine: object = None,
        *,
        duplicates: str = "error",
    ) -> Self:
        """Add answers, known labels or edges to those of the fit, and fit the model to all of them.

        The result is that of a fit to all answers. Items, workers and labels may be new, and sequences may grow.
        `labels_` and all other results are those of all items. `changes` lists the labels that have changed, and
        `update_` counts what is new. A model from `consilience.fuse` is compared with majority vote again.

        Parameters
        ----------
        responses : Answers, table or path, optional
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
        >>> model.update({"item": [2, 3], "worker": ["c", "c"], "label": ["x", "y"]}).result_.answers.items
        array([1, 2, 3])
        """
        from .updating import update_model

        update_model(self, responses, graph, gold, engine, duplicates)
        return self

    def changes(self) -> Any:
        """Return a table of the items whose label was changed by the last `update`.

        Columns: item (or sequence and position); label_before and label; confidence_before and confidence;
        new_answers, the number of answers to the item that came or changed. Items that are new are not listed:
        ``update_.n_new_items`` says how many there are. The table is of the library that the answers came in.
        """
        result = self.result_
        if result.update is None:
            raise NotFittedError("This model was not updated since it was fitted or loaded.", "Call update(responses).")
        return build_report(result.kind.name_keys(result.update.columns), result.backend)


def name_source(model: Model, kind: str | None) -> None:
    """Describe the result as one of people, functions or models; None: as it was recognised."""
    if kind is not None:
        given = model.result_.given._replace(source_kind=check_kind(kind))
        result = replace(model.result_, given=given)
        model._adopt(replace(result, findings=run_checks(model, result)))


class Standalone(Fitted[estimator.FittedResult]):
    """An estimator with a result of its own, such as a ranking: parameters, `fit`, and a frozen dataclass.

    It shares saving, documents and the command line with the models of labels, and nothing else. A subclass has a
    constructor, `fit`, which ends in `_adopt`, `overview`, `page`, and the attributes below. It is found by its line
    in `consilience.models`.

    Attributes
    ----------
    result_type : type
        The dataclass. Its `shapes` say what saved arrays must look like, see `consilience.results.saving`; its method
        `check_saved`, if it has one, raises a `ValueError` unless its fields go together. It has a field `backend`, the
        frame library of tables.
    charts : dict
        What draws each chart of a result, by name; the first one is the default.
    page_title : str
        What the report is called if nothing else is said.
    """

    page_title: ClassVar[str] = "Results"
    result_type: ClassVar[Any]
    charts: ClassVar[Mapping[str, Callable[[Any], Chart | None]]] = {}
    findings_: Sequence[Finding] = ()

    def _adopt(self, result: estimator.FittedResult) -> Self:
        """Take a result as that of this model; return the model itself."""
        self._result = result
        return self

    @abstractmethod
    def fit(self, answers: Any, *, gold: Any = None) -> Self:
        """Learn from what users bring, and from what is known of it."""

    @abstractmethod
    def overview(self, title: str = "") -> Document:
        """The document that terminals, notebooks and JSON show."""

    @abstractmethod
    def page(self, title: str = "") -> Document:
        """The report."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path : str or path
            The file.
        """
        from ..results.saving import write_model

        parameters = {name: None if name == "callback" else value for name, value in self.get_params().items()}
        return write_model(to_path("path", "save", path), type(self).__name__, parameters, self.result_)

    @classmethod
    def _restore(cls, saved: SavedModel) -> Self:
        """The model that `save` wrote, after a look at whether it can be one."""
        model = cls(**saved.parameters)
        model._check()
        result = saved.read_part(cls.result_type, saved.fusion, saved.path)
        if hasattr(result, "check_saved"):
            result.check_saved()
        saved.check_all_was_read()
        return model._adopt(result)

    def _repr_html_(self) -> str:
        from ..documents.document import Document
        from ..documents.html import to_cells

        call = describe_call(self)
        return to_cells(self.overview(call) if self._result is not None else Document(call, "Not fitted yet.", []))


def restore(saved: SavedModel) -> Any:
    """The fitted model in a file: one of those of the register, and nothing else."""
    from ..results.saving import compare_names

    names = {entry.rpartition(".")[2]: name for name, entry in (MODELS | OTHERS).items()}
    if saved.model not in names:
        raise StoreError(
            f"The file holds a model {shorten(saved.model)}, which this release does not know.",
            f"It knows {listing(names)}.",
        )
    owner = model_class(names[saved.model])
    compare_names("parameter", list_defaults(owner), saved.parameters)
    return owner._restore(saved)


def compare_fused(
    model: Finished, fit: FitResult, observations: Observations, graph: Graph | None, engine: Engine
) -> tuple[Finished, FitResult, FusionChecks]:
    """Compare a fit with majority vote, and its graph with a shuffled one.

    Returned are the model and its fit, and what it was compared with. Where neighbours repeat errors, these are another
    model and a further fit, see `limit_graph`.
    """
    limited, check, comparison, vote = model, None, None, None
    if fit.is_network and isinstance(model, LatentEstimator):
        from ..comparisons.graph import limit_graph

        log.info("Comparing with a shuffled graph")
        limited, fit, check = limit_graph(model, fit, observations, cast(Graph, graph), engine)
    if not fit.is_vote and count_units(observations.responses) > 1:
        from ..comparisons.vote import compare_with_vote

        log.info("Comparing with majority vote")
        comparison, vote = compare_with_vote(limited, fit, observations, graph, engine)
    return limited, fit, FusionChecks(comparison, vote, check, limited is not model)


def complete(
    model: LabelEstimator, fit: FitResult, fusion_checks: FusionChecks | None = None, update: object = None
) -> Result:
    """The result of a fit: with its worker table, what it was compared with, and what checks say of it.

    Where no answers could be hidden to test confidences, and not all labels are known, tables show no confidence.
    """
    comparison = None if fusion_checks is None else fusion_checks.comparison
    workers, drift = tabulate_workers(fit, comparison)
    fields_of_fit: dict[str, Any] = {each.name: getattr(fit, each.name) for each in fields(FitResult)}
    if comparison is not None and comparison.untested and comparison.share_known < 1:
        fields_of_fit["labels"] = replace(fit.labels, shown=False)
    table = {"worker": to_column(fit.names.workers), **workers}
    result = Result(**fields_of_fit, workers=table, drift=drift, fusion_checks=fusion_checks, update=update)
    return replace(result, findings=run_checks(model, result))
