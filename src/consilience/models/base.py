"""What every model has: parameters, a result that is assigned once, and answers that are opened in any form."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar, overload

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import Values
from ..answers.tables import build_frame
from ..arguments import check_truth
from ..checks.register import complete
from ..engines import open_engine
from ..errors import InputError, NotFittedError, ParameterError, Python, Sentence, listing
from ..formats.reading import open_paths
from ..formats.sources import COLUMNS, open_source, take_answers
from ..inference.estimator import LabelEstimator, describe_call
from ..kernels import Floats
from ..kinds import find_kind, need_kind
from ..kinds.base import TABLE, AnyKind
from ..limits import within
from ..results.comparison import GraphCheck
from ..results.findings import Finding
from ..results.fitting import align, fit_source, make_source
from ..results.new_answers import Applied, add_content
from ..results.result import Result
from ..results.saving import SavedModel
from ..results.source_kinds import check_kind

Value = TypeVar("Value")
_PROBABILITIES = "The class probabilities are in posterior_; predict_proba(responses) gives those of other items."
# What is meant by names of attributes that no model has, but that other packages do.
MEANT = {
    **dict.fromkeys(("probabilities", "probabilities_", "proba_", "probas_", "predict_proba_"), _PROBABILITIES),
    **dict.fromkeys(("posterior", "posteriors_"), _PROBABILITIES),
    **dict.fromkeys(("labels", "predictions_"), "The fused labels are in labels_; to_frame() has them as a table."),
    **dict.fromkeys(("confidence", "confidence_"), "to_frame() has the confidence of each label."),
    **dict.fromkeys(("errors_", "confusion_matrix_"), "Confusion matrices of the workers are in confusion_."),
}


class Found(Generic[Value]):
    """An attribute of a fitted model, which reads from its result."""

    def __init__(self, read: Callable[[Result], Value], doc: str) -> None:
        self.read = read
        self.__doc__ = doc

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...
    @overload
    def __get__(self, model: Model, owner: type) -> Value: ...
    def __get__(self, model: Model | None, owner: type) -> Self | Value:
        return self if model is None else self.read(model.result_)

    def __set__(self, model: Model, value: object) -> None:
        raise AttributeError("What a fit found cannot be changed. Fit again, or copy it first.")


class NoBatches:
    """Why a model has no `partial_fit`."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __get__(self, model: object, owner: type) -> NoReturn:
        raise NotFittedError(
            f"{owner.__name__} cannot be fitted in batches{self.why}.",
            Sentence("Use {model}.", model=Python("DawidSkene or HiddenMarkov", "dawid-skene")),
        )


class Model(LabelEstimator):
    """Base of all models: scikit-learn's conventions without scikit-learn.

    Parameters are keyword arguments, stored as given and checked when `fit` is called; what was learned is in
    attributes that end in an underscore, which read from one result that is assigned when the fit is complete.
    """

    _result: Result | None = None

    labels_ = Found(lambda found: found.labels.values, "The fused label of each item.")
    posterior_ = Found(lambda found: found.labels.posterior, "The probabilities of the classes of each item.")
    classes_ = Found(lambda found: found.names.classes, "What can be true.")
    workers_ = Found(lambda found: found.names.workers, "Worker ids.")
    answer_labels_ = Found(lambda found: found.names.labels, "What workers say.")
    prior_ = Found(lambda found: found.prior, "Class prior.")
    confusion_ = Found(lambda found: found.learned.confusion, "How each worker answers, [worker, truth, answer].")
    trace_ = Found(lambda found: found.course.trace, "The objective before each iteration and at the end.")
    n_iter_ = Found(lambda found: found.course.n_iter, "Number of iterations.")
    converged_ = Found(lambda found: found.course.converged, "Whether the fit settled.")
    copies_count_once_ = Found(lambda found: found.copies_count_once, "Whether each group in `copies_` counts once.")
    prior_low_ = Found(
        lambda found: np.asarray(found.intervals.prior[0]), "Lower ends of the 95 % intervals of the class shares."
    )
    prior_high_ = Found(
        lambda found: np.asarray(found.intervals.prior[1]), "Upper ends of the 95 % intervals of the class shares."
    )
    expected_accuracy_ = Found(
        lambda found: found.labels.mean_confidence, "Share of the labels that are right, by their probabilities."
    )
    expected_accuracy_low_ = Found(
        lambda found: found.expected_accuracy[1], "Lower end of the 95 % interval of the share of right labels."
    )
    expected_accuracy_high_ = Found(
        lambda found: found.expected_accuracy[2], "Upper end of the 95 % interval of the share of right labels."
    )
    responses_ = Found(
        lambda found: found.answers,
        "The answers that the model was fitted to. They are not copied: the model holds the same arrays.",
    )
    copies_ = Found(
        lambda found: [found.names.workers[group].tolist() for group in found.copies],
        "Groups of workers who seem to copy each other, each a list of their ids; see `worker_report`.",
    )
    comparison_ = Found(
        lambda found: need_fuse(found, found.comparison),
        "The comparison with majority vote, of a model that `fuse` made.",
    )
    graph_check_ = Found(
        lambda found: need_graph_check(found),
        "What a shuffled graph tells, of a model that `fuse` made with a graph.",
    )
    soft_check_ = Found(
        lambda found: need_fuse(found, found.soft_check),
        "How `fuse` chose among ways of fusing soft votes; None for other answers.",
    )
    scale_check_ = Found(
        lambda found: need_fuse(found, found.scale_check),
        "Whether whole numbers are a scale, of a model for which `fuse` had to find out; else None.",
    )

    @property
    def result_(self) -> Result:
        """The result of the fit: all that was found, as one frozen object."""
        if self._result is None:
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call fit(responses) first.")
        return self._result

    @property
    def findings_(self) -> list[Finding]:
        """What checks found, the most serious first: what `fuse` warns of, and what a report says of workers and items.

        A `Finding` has the attributes kind, level ("care" or "bad"), problem, remedies and place.
        """
        found = self.result_
        return list(found.findings) if found.findings is not None or found.answers is None else []

    def _adopt(self, found: Result) -> Self:
        """Take a result as that of this model; return the model itself."""
        self._result = complete(self, found)
        return self

    def _restore(self, saved: SavedModel) -> Self:
        """Take the result that `save` wrote, after a look at whether it can be one; return the model itself."""
        self._check()
        return self._adopt(saved.read_result(self))

    def fit(
        self,
        responses: object,
        *,
        graph: object = None,
        gold: object = None,
        features: object = None,
        item_prior: object = None,
        engine: object = None,
    ) -> Self:
        """Learn labels and how workers answer, from the answers and from what is known of the items.

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
        engine : optional
            Where to work: None, "threads", "dask", a `distributed.Client` or an engine of `consilience.engines`.

        Returns
        -------
        self
        """
        self._check()
        task, answers = open_posed(responses)
        gold = task.spread_known(open_paths(gold), answers.columns)
        source = make_source(self, answers, gold, features, item_prior, task)
        links = align(self, source.responses, graph)
        with open_engine(engine) as opened, within(source.responses.memory):
            return self._adopt(fit_source(self, source, links, opened))

    def fit_predict(self, responses: object, **given: Any) -> Values:
        """Fit, and return the labels. Parameters are those of `fit`."""
        return self.fit(responses, **given).labels_

    def _apply(
        self,
        responses: object,
        graph: object,
        gold: object,
        engine: object,
        features: object = None,
        item_prior: object = None,
    ) -> Applied:
        """Return what was learned, ready to be applied to other answers."""
        fusion = self.result_
        self._check()
        r = None if responses is None and features is not None else self._read(responses)[1]
        gold = fusion.task.spread_known(open_paths(gold), {} if r is None else r.columns)
        return Applied(self, fusion, add_content(self, fusion, r, features, item_prior), graph, gold, engine)

    def _read(self, responses: object) -> tuple[AnyKind, Answers]:
        """Return other answers on the scale of the fit; their labels in its spelling, if its own are normalised."""
        names = self.result_.names
        read_it = names.normalised and not isinstance(responses, Answers)
        columns = {"normalise": True} if read_it else {}
        task, answers = open_posed(responses, self.result_.task, **columns)
        answers = answers.spelled_as(names.labels) if names.normalised else answers
        return task, answers.scaled_as(names.classes, names.positions)

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
        return self._apply(responses, graph, gold, engine, features, item_prior).find_probabilities()

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
        check_truth("as_frame", "predict", as_frame)
        applied = self._apply(responses, graph, gold, engine, features, item_prior)
        labels = applied.find_labels()
        if not as_frame:
            return labels.values
        arranged = self.result_.task.arrange(labels, labels.shown, None)
        return build_frame(labels.list_columns() if arranged is None else arranged, applied.source.responses.backend)

    def score(self, responses: object, graph: object = None, gold: object = None, engine: object = None) -> float:
        """Return the mean log likelihood of an item's answers (and gold label), at the reported estimates.

        For a `MarkovField` it is the mean-field objective per item, without the field's normaliser: it compares answers
        under one fitted model, and does not compare couplings.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.
        """
        return self._apply(responses, graph, gold, engine).score()

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a result."""
        return self._result is not None

    if not TYPE_CHECKING:  # to which every attribute would exist

        def __getattr__(self, name: str) -> Any:
            """Raise the error for an attribute that is not there, with the one that is usually meant."""
            if name not in MEANT:
                return object.__getattribute__(self, name)  # which fails as before: a property may say why
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {MEANT[name]}")

    def __repr__(self) -> str:
        return describe_call(self) if self._result is None else f"{describe_call(self)}: {self._describe()}"

    def _describe(self) -> str:
        found = self.result_
        steps = f", {found.course.n_iter} iterations" if found.course.n_iter else ""
        settled = "" if found.course.converged else " (not converged)"
        sure = f"mean confidence {found.labels.mean_confidence:.3f}"
        if not found.labels.shown:
            sure = "too few answers to tell how sure" if found.checked else "nothing checks the answers"
        return (
            f"{found.labels.n_items:,} items, {len(found.names.workers):,} workers, {len(found.names.classes)} "
            f"classes{steps}{settled}; {sure}"
        )


def name_source(model: Model, kind: str | None) -> None:
    """Let the result be told of as one of people, functions or models; None: as it was recognised."""
    if kind is not None:
        model._adopt(replace(model.result_, source_kind=check_kind(kind), findings=None))


def need_fuse(found: Result, value: Value) -> Value:
    """Return what `fuse` found of a model, if it did."""
    if not found.by_fuse:
        raise NotFittedError(
            f"This {found.model} was not made by fuse: it was not compared with majority vote.",
            Sentence("Use {fuse}.", fuse=Python("consilience.fuse")),
        )
    return value


def need_graph_check(found: Result) -> GraphCheck:
    """Return what `fuse` found of a graph, if it did."""
    if found.graph_check is None:
        raise NotFittedError(
            f"This {found.model} was not made by fuse with a graph: no graph was checked.",
            Sentence("Use {fuse}.", fuse=Python("consilience.fuse")),
        )
    return found.graph_check


def open_answers(source: object, **columns: Any) -> Any:
    """Return answers in any form as what a task takes, such as `Answers`: as they are, or read.

    A column of known labels beside the answers is not read, unless it is asked for with ``gold=None``.
    """
    if find_kind(source) is None:
        columns = {"gold": False, **columns}
        return (
            open_source(source, **columns)
            if isinstance(source, (str, os.PathLike))
            else take_answers(source, **columns)
        )
    if columns:
        raise ParameterError(
            f"Columns ({listing(columns)}) cannot be named for {type(source).__name__}: they are read already."
        )
    return source


def adapt(brought: object, like: AnyKind) -> Any:
    """Return what was brought in terms of a task of the same kind; what is of another kind as it is."""
    return like.adapt(brought) if isinstance(brought, like.brought) else brought


def as_responses(source: object, **columns: Any) -> Answers:
    """Return answers in any form as `Answers`; see `open_posed`."""
    return open_posed(source, **columns)[1]


def open_posed(source: object, like: AnyKind = TABLE, **columns: Any) -> tuple[AnyKind, Answers]:
    """Return answers in any form, with the task that they belong to; see `open_answers`.

    They are read as those of a fit with the task `like` were. Whoever calls it cannot name columns. So errors name the
    function that can.
    """
    try:
        opened = adapt(open_answers(source, **columns, **({} if find_kind(source) else like.reading())), like)
    except InputError as error:
        is_path = isinstance(source, (str, os.PathLike))
        call = "read_answers(path, " if is_path else "Answers.from_frame(df, "
        remedies = [_name_reader(remedy, call) for remedy in error.remedies]
        raise InputError(error.problem, *remedies, keyword=error.keyword).with_traceback(error.__traceback__) from None
    return need_kind(opened).pose(opened)


def _name_reader(remedy: str | Sentence, call: str) -> str | Sentence:
    """Return a remedy with what reads answers, if it names parameters of that."""
    is_about_reading = isinstance(remedy, Sentence) and bool(remedy.names) and COLUMNS.issuperset(remedy.names)
    return remedy.within(call) if isinstance(remedy, Sentence) and is_about_reading else remedy
