"""What every model has: parameters, results as tables, saving, and the checks that come before."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, Values, spell_surrogates, to_column
from ..answers.contents import Passages, Pictures
from ..answers.frames import build_frame
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..arguments import check_truth, to_path
from ..arguments import is_whole as is_whole_number
from ..checks.copy_groups import count_once, number_groups
from ..errors import NotFittedError, ParameterError, Python, Sentence, listing, parameter_error, quietly, shorten
from ..kernels.types import Floats
from ..results.cells import Cells
from ..results.previews import build_report
from ..results.undecided import Undecided, check_confidence, count_kept, find_open, leave_open
from ..results.worker_report import describe_workers, name_copies
from ..specs import (
    CLASS_CODES,
    COUNTS,
    DISTRIBUTIONS,
    OBJECTIVES,
    WHOLE_COUNTS,
    ArraySpec,
    is_truth,
    is_whole,
)
from ..tasks.masks import FusedMasks, Masks

if TYPE_CHECKING:
    from ..checks.drift import Drift
    from ..results.span_results import Runs
    from ..results.stored import StoredFit
    from ..results.stored_votes import StoredVote
    from ..tasks.spans import Spans


# What a model does not have that was fitted to answers on disk.
OF_ITEMS = ("posterior_", "uncalibrated_posterior_", "_label_codes", "_keys")
# What a file holds of texts, beside their ids and the texts themselves.
PASSAGE_SPECS = {name: ArraySpec("*", WHOLE_COUNTS) for name in ("offsets", "start", "end", "fused")}


class Totals(NamedTuple):
    """What is known of all labels together, where the labels themselves are not in memory."""

    n_items: int
    confidence: float  # on average


class Model(ABC):
    """Base of all models: scikit-learn's conventions without scikit-learn.

    Parameters are keyword arguments, stored as given and checked when `fit` is called; what was learned is in
    attributes that end in an underscore.
    """

    #: Attributes set by `fit`, beside the tables of items and workers, and what they must look like in a file; `save`
    #: writes them all.
    _arrays: ClassVar[Mapping[str, ArraySpec]] = {
        "posterior_": ArraySpec("N K", DISTRIBUTIONS),
        "prior_": ArraySpec("K", DISTRIBUTIONS),
        "confusion_": ArraySpec("M K A", DISTRIBUTIONS),
        "trace_": ArraySpec("*", OBJECTIVES),
        "_counts": ArraySpec("M L K", COUNTS),
        "_n_answers": ArraySpec("M", WHOLE_COUNTS),
        "_label_codes": ArraySpec("N", CLASS_CODES),
    }
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "n_iter_": is_whole,
        "converged_": is_truth,
        "_normalised": is_truth,
    }

    #: Why there is no `partial_fit`, for models without.
    _why_no_batches: ClassVar[str] = ""
    #: Whether the model is fitted to a graph.
    _takes_graph: ClassVar[bool] = False

    classes_: Values
    workers_: Values
    answer_labels_: Values
    posterior_: Floats
    prior_: Floats
    confusion_: Floats
    trace_: Floats
    n_iter_: int
    converged_: bool
    _label_codes: NDArray[np.int64]
    _counts: Floats  # (M, L, K): expected counts of answers
    _n_answers: NDArray[np.int64]
    coupling_: float  # of models with neighbours
    _worker_intervals: Floats  # (M, 4): ends of the intervals of accuracy and of informativeness
    _normalised: bool  # whether labels are in their normal form
    _copies: list[list[int]]  # groups of near-copies, by index
    copies_count_once_: bool
    comparison_: Any
    graph_check_: Any
    _keys: dict[str, Column]
    _backend: str
    _passages: Passages | None = None  # of tokens: the texts that they are in
    _pictures: Pictures | None = None  # where items are pixels: the images that they are in
    # What the model was fitted to: the answers, before near-copies count once, and without features and priors of
    # items; the known labels; and the graph as it was given. None if there are none, or if the file holds none.
    _answers: Responses | None = None
    _stored: StoredFit | StoredVote | None = None  # of a fit to answers on disk; a file does not hold it
    _totals: Totals | None = None  # of a fit to answers on disk
    _n_batches: int = 0  # how many `partial_fit` has learned from
    _gold: Gold | None = None
    _drift: Drift  # worked out when it is first asked for
    _graph: Graph | None = None

    @abstractmethod
    def fit(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Self:
        """Learn from answers; return the model itself."""

    def _add_content(self, r: Responses, features: Any, item_prior: Any) -> Responses:
        """Return the answers with what is known of the items, for models that take that."""
        if features is None and item_prior is None:
            return r
        raise ParameterError(
            f"{type(self).__name__} takes neither features nor priors of items.",
            Sentence("Choose another, such as {model}.", model=Python("DawidSkene()", "dawid-skene")),
            keyword="model",
        )

    @abstractmethod
    def _fit(self, responses: Any, graph: Any, gold: Any, engine: Any, copies: list[list[int]] | None = None) -> Self:
        """Fit; workers who copy each other are looked for, unless `copies` tells who they are."""

    @abstractmethod
    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Floats:
        """Return class probabilities of other items answered by the same workers."""

    def predict(
        self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None, *, as_frame: bool = False
    ) -> Any:
        """Return the labels of other items answered by the same workers, chosen as `labels_` are.

        The answers of the fit are not looked at: to add answers to its items, use `update`.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.
        as_frame : bool, default False
            Whether to return a table with ids, labels, confidence and probabilities, as `to_frame` does.

        Returns
        -------
        ndarray or table
        """
        self._check_fitted()
        check_truth("as_frame", "predict", as_frame)
        if not as_frame:
            return np.asarray(self.classes_[self._predict_codes(responses, graph, gold, engine)])
        r = self._read(responses)
        codes = self._predict_codes(r, graph, gold, engine)
        with quietly():  # what is to be said of these answers was said just now
            posterior = self.predict_proba(r, graph, gold, engine)
        return build_frame(list_labels(r.key_columns(), self.classes_, codes, posterior), r.backend)

    @abstractmethod
    def _read(self, responses: Any) -> Responses:
        """Return other answers, to predict from."""

    @abstractmethod
    def _predict_codes(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        """Return the labels of other items as indices into the classes."""

    def fit_predict(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Values:
        """Fit, and return the labels."""
        return self.fit(responses, graph=graph, gold=gold, engine=engine).labels_

    @property
    def labels_(self) -> Values:
        """The fused label of each item."""
        self._check_fitted()
        return np.asarray(self.classes_[self._label_codes])

    @property
    def responses_(self) -> Responses:
        """The answers that the model was fitted to, without features and priors of items.

        They are not copied: the model holds the same arrays. `save` writes them to the file, unless it is told not to.
        """
        self._check_fitted()
        if self._stored is not None:
            raise NotFittedError(
                "The answers that this model was fitted to are on disk, and not held in memory.",
                Sentence("Read them with {read}.", read=Python("read_responses")),
            )
        if self._totals is not None:
            raise NotFittedError(
                "This model was fitted to answers on disk, and its file does not hold them.",
                "Fuse the answers again, and write all that you need then.",
            )
        if self._answers is None and self._n_batches:
            raise NotFittedError(
                "This model was fitted in batches, whose answers it does not keep.",
                "Give further answers to partial_fit, or fit all answers at once.",
            )
        if self._answers is None:
            raise NotFittedError(
                "The file of this model holds no answers: it was saved with answers=False, or by an earlier release.",
                "Fit the model again.",
            )
        return self._answers

    @property
    def copies_(self) -> list[list[Any]]:
        """Groups of workers who seem to copy each other, each a list of their ids; see `worker_report`."""
        self._check_fitted()
        return [self.workers_[group].tolist() for group in self._copies]

    def _weigh_copies(self, r: Responses, worker: NDArray[np.int64]) -> Responses:
        """Return answers as the fit took its own; `worker` is the index of each of their workers at the fit."""
        if not self.copies_count_once_:
            return r
        groups = number_groups(self._copies, len(self.workers_) + 1)
        return count_once(r, groups[worker])  # -1 is a worker who was not there

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn's signature)
        """Return the parameters."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; return the model itself."""
        known = self._defaults()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {listing(known, 20)}.")
            setattr(self, name, value)
        return self

    def fresh(self, **parameters: Any) -> Self:
        """Return an unfitted copy with the same parameters, except for those given."""
        return type(self)(**{**self.get_params(), **parameters})

    def _settled(self) -> Self:
        """Return an unfitted copy without callback, which takes as found what need not be chosen again."""
        return self.fresh(**{name: None for name in ("callback",) if name in self._defaults()})

    def __sklearn_clone__(self) -> Self:
        """Return what `sklearn.base.clone` should: the same parameters. A model to start from stays fitted."""
        return self.fresh()

    def _call(self) -> str:
        """Return how the model is made: its name, and the parameters that are not the default."""
        defaults = self._defaults()
        changed = [
            f"{name}={_brief(value)}" for name, value in self.get_params().items() if not _same(value, defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __repr__(self) -> str:
        return f"{self._call()}: {self._describe()}" if self._is_fitted() else self._call()

    def _repr_html_(self) -> str:
        from ..results.notebooks import show_model

        return show_model(self)

    def _describe(self) -> str:
        steps = f", {self.n_iter_} iterations" if self.n_iter_ else ""
        settled = "" if self.converged_ else " (not converged)"
        if self._totals is None:
            n_items, confidence = len(self._label_codes), float(self.posterior_.max(axis=1).mean())
        else:
            n_items, confidence = self._totals
        return (
            f"{n_items:,} items, {len(self.workers_):,} workers, {len(self.classes_)} classes{steps}{settled}; mean "
            f"confidence {confidence:.3f}"
        )

    def _is_fitted(self) -> bool:
        return "classes_" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """Say why a model that was fitted to answers on disk has no labels in memory."""
        if name in OF_ITEMS and self._totals is not None:
            raise self._no_labels()
        if name == "partial_fit":
            raise NotFittedError(
                f"{type(self).__name__} cannot be fitted in batches{self._why_no_batches}.",
                Sentence("Use {model}.", model=Python("DawidSkene or HiddenMarkov", "dawid-skene")),
            )
        return super().__getattribute__(name)  # which says what is missing

    def _no_labels(self) -> NotFittedError:
        """Return the error that there are no labels, and how to get them."""
        write = Python("write(path)")
        if self._stored is not None:
            return NotFittedError(
                "The labels of answers on disk are not held in memory.",
                Sentence("Write them to files with {write}.", write=write),
            )
        return NotFittedError(
            "This model was fitted to answers on disk. Its file holds what it learned, but no answers and no labels.",
            "Fuse the answers again, and write all that you need then.",
            Sentence("Or give answers that fit in memory to {predict}.", predict=Python("predict")),
        )

    def _check_fitted(self) -> None:
        if not self._is_fitted():
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call fit(responses) first.")

    def _refuse_graph(self, graph: Any) -> None:
        if graph is not None:
            raise ParameterError(
                f"{type(self).__name__} takes no graph.",
                Sentence("Leave out {graph}."),
                Sentence("Or use {model}.", model=Python("MarkovField", "markov-field")),
                keyword="graph",
            )

    def _remember(self, responses: Responses) -> None:
        """Keep the ids of items and workers, the labels and the frame library in which results are reported."""
        self._keep_names(responses.workers, responses.labels, responses.votes_per_worker())
        self._keys = responses.key_columns()
        self._backend = responses.backend
        self._normalised = responses.normalised
        self._passages = responses.passages
        self._pictures = responses.pictures

    def _keep_names(self, workers: Values, labels: Values, n_answers: NDArray[np.int64]) -> None:
        """Keep who answered and what was said, and forget what belongs to an earlier fit."""
        for name in ("comparison_", "graph_check_", "_drift", "_update"):
            self.__dict__.pop(name, None)
        self.workers_, self.answer_labels_, self._n_answers = workers, labels, n_answers

    def _scalar_values(self) -> dict[str, Any]:
        """Return all learned values by name that are no arrays, for saving."""
        return {name: getattr(self, name) for name in self._scalars}

    def _held_arrays(self) -> dict[str, ArraySpec]:
        """Return which arrays the model has: all, or without those of items if answers are on disk."""
        return {name: spec for name, spec in self._arrays.items() if self._totals is None or name not in OF_ITEMS}

    def _state(self) -> dict[str, NDArray[Any]]:
        """Return all learned arrays by name, for saving."""
        texts = {} if self._passages is None else {name: getattr(self._passages, name) for name in PASSAGE_SPECS}
        kept = {name.strip("_"): getattr(self, name) for name in self._held_arrays()}
        return kept | {f"passages {name}": array for name, array in texts.items()}

    def _specs(self, names: Iterable[str]) -> dict[str, ArraySpec]:
        """Return what each array of a file must look like; `names` are those that the file has."""
        specs = {name.strip("_"): spec for name, spec in self._held_arrays().items()}
        if any(name.startswith("passages ") for name in names):
            specs |= {f"passages {name}": spec for name, spec in PASSAGE_SPECS.items()}
        return specs

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `_state` gave, after a check by `_specs`."""
        for name in self._held_arrays():
            setattr(self, name, arrays[name.strip("_")])

    def _confidence(self) -> Floats:
        """Return the probability of each item's label."""
        return np.asarray(self.posterior_[np.arange(len(self.posterior_)), self._label_codes])

    def to_frame(self, *, undecided: float | None = None) -> Any:
        """Return a table with one row per item: its id, label, confidence, and the probability of each class.

        The table is of the library that the answers came in (pandas, polars), pyarrow for files and matrices.

        Parameters
        ----------
        undecided : float, optional
            Labels whose confidence is below this number, from 0 to 1, are left open: they are missing in the table.
            `labels_` does not change. The method `undecided` counts how many are kept.
        """
        self._check_fitted()
        columns = list_labels(self._keys, self.classes_, self._label_codes, self.posterior_)
        if undecided is not None:
            is_open = find_open(self._confidence(), check_confidence(undecided, "undecided", "to_frame"))
            columns["label"] = leave_open(columns["label"], is_open)
        return build_frame(columns, self._backend)

    def write(self, path: str | os.PathLike[str], engine: Any = None) -> None:
        """Write the labels with their probabilities to files.

        It is for models that were fitted to answers on disk (see `scan_responses`): labels are made block by block, and
        never all in memory. The columns are those of `to_frame`. Items are in the order of the store. What is there is
        replaced when everything is written. A model that was saved and loaded cannot write: it has no answers.

        Parameters
        ----------
        path : str or path
            A folder of Parquet files, or the name of one file (.parquet .csv .tsv .jsonl .arrow).
        engine : optional
            Where to work; see `consilience.engines`.
        """
        from ..results.stored_labels import write_labels

        self._check_fitted()
        write_labels(self, to_path("path", "write", path), engine)

    def undecided(self, confidence: float) -> Undecided:
        """Return how many labels have at least this confidence, and how many of these are expected to be wrong.

        The expectation is as good as the probabilities are. Without known labels it is often too low, since errors that
        workers share cannot be seen.

        Parameters
        ----------
        confidence : float
            From 0 to 1. `to_frame(undecided=confidence)` leaves the other labels open.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> print(fused.undecided(0.9).describe())
        282 of 500 labels (56.4%) are kept, with a confidence of at least 0.9. By their probabilities, 3.1% of these are
        wrong (about 8.7). Without known labels this is often too low: on seven of eight real crowds, about twice as
        many or more were wrong.
        """
        self._check_fitted()
        least = check_confidence(confidence, "confidence", "undecided")
        return count_kept(self._confidence(), least, self._n_calibrating())

    def _n_calibrating(self) -> int | None:
        """Return how many known labels the probabilities were calibrated by; None if they are not calibrated."""
        return None

    def next_items(self, n: int = 50) -> Any:
        """Return a table of the items that a person should label next.

        The items whose probabilities have the largest entropy come first. Two of ten are drawn at random. No item is
        listed whose label was given to the fit as `gold`.

        Columns: item (or sequence and position); random, whether the item was drawn at random; fused_label and
        confidence, the label of the fit and its probability; entropy, in nats. Add a column label with what the person
        says, and give the table to `fit` as `gold`: probabilities are calibrated by the random items alone.

        Independent items that nobody answered come last. In a sequence each position is an item, and one with a less
        certain neighbour comes after those without: the label of the neighbour may settle both.

        Parameters
        ----------
        n : int, default 50
            The most items to list. Labels teach more if the model is fitted again after each ten or so.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> fused.next_items(5).to_pydict()["random"]
        [False, False, True, False, False]
        """
        from ..planning.next_items import list_next_items

        self._check_fitted()
        if not (is_whole_number(n) and n >= 0):
            raise parameter_error("n", "next_items", "a whole number >= 0", n)
        return build_report(list_next_items(self, int(n)), self._backend)

    def stop_items(self, confidence: float = 0.95) -> Any:
        """Return a table of the items that are certain enough to stop paying for more answers.

        The most certain come first. Columns: item (or sequence and position); label and confidence, the label of the
        fit and its probability; expected_errors, how many labels are expected to be wrong, of this item and all items
        above it. The last row has the expected number of errors among all items of the table.

        The expectation is as good as the probabilities are. Without known labels it is often too low; see `undecided`,
        which says so in words.

        Parameters
        ----------
        confidence : float, default 0.95
            The least confidence, from 0 to 1, of an item that is certain enough.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> done = fused.stop_items(0.9)
        >>> done.num_rows, round(done["expected_errors"].to_pylist()[-1], 1)
        (282, 8.7)
        """
        self._check_fitted()
        least = check_confidence(confidence, "confidence", "stop_items")
        certain = self._confidence()
        rows = np.argsort(-certain, kind="stable")
        rows = rows[~find_open(certain[rows], least)]
        columns: dict[str, Column] = {name: column.take(rows) for name, column in self._keys.items()}
        columns["label"] = to_column(self.labels_[rows])
        columns["confidence"] = to_column(certain[rows])
        columns["expected_errors"] = to_column(np.cumsum(1.0 - certain[rows]))
        return build_report(columns, self._backend)

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
        from ..results.span_results import tabulate_spans

        return tabulate_spans(self)

    def to_span_set(self) -> Spans:
        """Return the fused spans with their texts as a `Spans`, of one worker who is called "consilience".

        It holds all documents that the model was fitted to, and the confidence of each span.
        """
        from ..results.span_results import collect_spans

        return collect_spans(self)

    def _judge_spans(self, runs: Runs, sequence: NDArray[np.int64]) -> Column:
        """Return the confidence of each fused span: here, tokens are independent of each other."""
        from ..results.span_results import follow_alone, judge_runs

        return to_column(judge_runs(follow_alone(self.posterior_, self._label_codes, self.classes_, sequence), runs))

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
        self._check_fitted()
        if masks is not None and not isinstance(masks, Masks):
            raise parameter_error("masks", "to_masks", "the Masks that the model was fitted to", masks)
        pictures = self._pictures if masks is None else masks.pictures
        if pictures is None:
            raise ParameterError(
                "This model does not know of which images its items are pixels.",
                Sentence("If it was fitted to Masks, and loaded from a file, give them with {masks}."),
                keyword="masks",
            )
        codes = lookup(pictures.coding.labels, to_column(self.classes_))
        if len(self._label_codes) != pictures.offsets[-1] or (codes < 0).any():
            raise ParameterError("These are not the masks that the model was fitted to.", keyword="masks")
        return FusedMasks(pictures, codes.astype(np.int8)[self._label_codes], self._confidence())

    def worker_report(self) -> Any:
        """Return a table with one row per worker: how many answers, how good, and what to look at.

        Columns: worker; answers; accuracy (share of answers that agree with the truth, weighted by the posterior before
        calibration); informativeness (mutual information of answer and truth, as a share of the truth's entropy: 0
        tells nothing, 1 tells all, also for one who is always wrong in the same way); worst_confusion; remarks ("few
        answers", "uninformative", "contrary", "one label", "near-copy of ...", "accuracy falls from ... to ...";
        several are separated by semicolons; where silence is an answer, which it never is to `MajorityVote`, those who
        speak little or say one label are judged by what they tell when they speak); group, the number of the group of
        near-copies that the worker belongs to, missing for others. After accuracy and informativeness come the ends of
        their 95 % intervals: accuracy_low, accuracy_high, informativeness_low and informativeness_high. They are
        missing for workers without answers.

        Workers of a group agree more than workers who answer independently would, given how accurate they are: at
        least half of their answers seem to be copied from each other, or from one source.

        The table is of the library that the answers came in (pandas, polars). For others it is a `ReportTable`: an
        Arrow table that prints as a table.
        """
        self._check_fitted()
        from ..checks.drift import find_drift, has_order, name_falls

        columns = self._report_columns()
        if has_order(self):
            columns = name_falls(columns, find_drift(self))
        columns = name_copies(columns, self._copies, self.workers_)
        return build_report({"worker": to_column(self.workers_), **columns}, self._backend)

    def drift_report(self) -> Any:
        """Return a table with one row per worker: how accuracy changes over the order of the answers.

        The answers must have been read with ``order``, a column that says when each was given.

        Columns: worker; answers, by which the worker is judged: those with a time, to items that at least two others
        answered, or whose label is known and one other did; accuracy_first and accuracy_last, the accuracy in the first
        and in the last fifth of the worker's answers, by a straight line; change, the difference; change_low and
        change_high, the ends of its 95 % interval; remarks, "accuracy falls from ... to ..." if it falls beyond chance.
        All but the first two are missing for workers with fewer than 20 such answers.

        An answer is judged by those of other workers to the same item, and a worker relative to them: if the items at
        the end are harder for all, that is no fall. In a crowd in which nobody changes, anybody gets a
        remark with a probability of about 5 % or less. `worker_report` has the same remarks.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(400, n_workers=5, n_classes=2, accuracy=0.9, seed=1)
        >>> r, item = crowd.responses, crowd.responses.item_of_answer()
        >>> tired = (r.worker == 4) & (item > 200) & (item % 2 == 0)
        >>> table = {"item": item, "worker": r.worker, "label": r.label ^ tired, "time": item}
        >>> answers = cs.Responses.from_frame(table, order="time")
        >>> cs.DawidSkene().fit(answers).drift_report().to_pydict()["remarks"]
        ['', '', '', '', 'accuracy falls from 93% to 48%']
        """
        from ..checks.drift import check_order, find_drift, tabulate_drift

        self._check_fitted()
        check_order(self)
        columns = {"worker": to_column(self.workers_), **tabulate_drift(find_drift(self))}
        return build_report(columns, self._backend)

    def _answer_counts(self) -> Floats | Cells:
        """Return the expected counts of answers, (M, L, K)."""
        return self._counts

    def _report_columns(self) -> dict[str, Column]:
        """Return the columns of the worker report after the first."""
        return describe_workers(
            self._counts,
            self.confusion_,
            self.prior_,
            self._n_answers,
            self.answer_labels_,
            self.classes_,
            self._worker_intervals,
        )

    def save(self, path: str | os.PathLike[str], *, answers: bool = True, texts: bool = True) -> Path:
        """Write the fitted model to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path : str or path
            The file.
        answers : bool, default True
            Whether the answers are written too, and the graph of a `MarkovField`: who said what about which item.
            Without them `responses_` of the loaded model is not available. All results are, and `predict` works. A
            model that was fitted to answers on disk is always written without them, and without labels.
        texts : bool, default True
            Whether the texts of a model that was fitted to `Spans` are written too. Without them the file still has
            the offsets of all tokens, and `to_spans` of the loaded model gives spans without their texts.
        """
        from ..results.saved import save_model

        self._check_fitted()
        check_truth("answers", "save", answers)
        check_truth("texts", "save", texts)
        return save_model(self, to_path("path", "save", path), texts, answers)


def list_labels(
    keys: Mapping[str, Column], classes: Values, codes: NDArray[np.int64], posterior: Floats
) -> dict[str, Column]:
    """Return the columns of a table of labels: keys, label, confidence, and the probability of each class."""
    columns: dict[str, Column] = dict(keys)
    columns["label"] = to_column(np.asarray(classes[codes]))
    columns["confidence"] = to_column(np.asarray(posterior[np.arange(len(codes)), codes]))
    for k, name in enumerate(name_probabilities(classes, columns)):
        columns[name] = to_column(np.ascontiguousarray(posterior[:, k]))
    return columns


def name_probabilities(classes: Values, taken: Iterable[str]) -> list[str]:
    """Return the names of the columns of probabilities, none of which is taken."""
    return distinct_names([f"p({spell_surrogates(str(name))})" for name in classes.tolist()], taken)


def distinct_names(names: list[str], taken: Iterable[str]) -> list[str]:
    """Make column names distinct: the classes 1 and "1" have the same text."""
    seen = set(taken)
    result = []
    for name in names:
        unique, n = name, 2
        while unique in seen:
            unique, n = f"{name} ({n})", n + 1
        seen.add(unique)
        result.append(unique)
    return result


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(map(str, value.shape))}>"
    return f"<{type(value).__name__}>" if isinstance(value, Model) else shorten(value, 200)


def _same(value: Any, default: Any) -> bool:
    # By their text, for a tuple may hold arrays, which have no one answer to ==.
    return value is default or (type(value) is type(default) and repr(value) == repr(default))
