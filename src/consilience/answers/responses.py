"""Responses: who said what about which item, checked once and held as plain integer arrays.

Everything after this file works on these arrays: answers are sorted by item (items of a sequence stand together, in
order of position), item i owns the answers `offsets[i]:offsets[i + 1]`, and `worker` and `label` are indices into
`workers` and `labels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import listing
from ..kernels.types import Floats, Integers
from .frames import open_frame
from .items import Sequences
from .spelling import merge_spellings, spell_as
from .vocabulary import Codes, Column, Values, count_codes, lookup, objects, spell_surrogates, to_column

if TYPE_CHECKING:
    from ..tasks.masks import Pictures

# Counts are weights times probabilities. From smaller weights they could vanish, as if nobody had said so.
LEAST_WEIGHT = 1e-100


class Passages(NamedTuple):
    """The texts whose tokens the items are, so that tags can become spans again.

    Attributes
    ----------
    documents : ndarray
        Ids of all documents, those without a reader included.
    texts : list of str or None
        Their texts; None if they were not saved.
    offsets : int64 array (D + 1,)
        Document d owns the tokens offsets[d]:offsets[d + 1].
    start, end : int64 array
        Where each token is in its text.
    fused : int64 array
        The document of each sequence; its tokens are the items.
    origin : tuple of str or None
        Path and format of the file.
    """

    documents: Values
    texts: list[str] | None
    offsets: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    fused: NDArray[np.int64]
    origin: tuple[str, str] | None

    def first_tokens(self) -> NDArray[np.int64]:
        """Return the first token of each sequence."""
        return self.offsets[self.fused]

    def read_words(self, items: Sequence[int], offsets: NDArray[np.int64]) -> list[str]:
        """Return the words of some tokens; sequence s owns the items offsets[s]:offsets[s + 1]."""
        assert self.texts is not None
        rows = np.asarray(items, np.int64)
        number = np.searchsorted(offsets, rows, side="right") - 1
        document = self.fused[number]
        token = self.offsets[document] + rows - offsets[number]
        places = zip(document.tolist(), self.start[token].tolist(), self.end[token].tolist(), strict=True)
        return [spell_surrogates(self.texts[d][start:end]) for d, start, end in places]


@dataclass(frozen=True, eq=False)
class Responses:
    """Answers of workers about items.

    Build one with `from_frame`, `from_matrix`, `from_probabilities` or `consilience.read_responses`.

    Attributes
    ----------
    items : ndarray
        Item ids in the order of ``items=`` where that was given, else of first appearance; (sequence, position) pairs
        for sequences.
    workers : ndarray
        Worker ids, sorted.
    labels : ndarray
        What workers say, sorted (categoricals: in category order).
    classes : ndarray
        What can be true; the labels seen, unless given.
    n_items, n_workers, n_classes, n_responses : int
        How many there are.
    columns : dict
        The column of the table that played each role, such as ``{"item": "task", "worker": "who", "label": "label"}``;
        empty for matrices.
    order : float64 array or None
        When each answer was given, where a column says so: numbers, or seconds since 1970; NaN where it is not known.
    gold : dict or None
        Known labels by item, where the table of answers has a column of them; `consilience.fuse` uses these.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> cs.Responses.from_frame(answers)
    Responses(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """

    offsets: NDArray[np.int64]
    worker: Codes
    label: Integers
    weight: NDArray[np.float64] | None
    workers: Values
    labels: Values
    classes: Values
    keys: Values | Sequences  # what identifies the items
    backend: str = "pyarrow"  # the frame library in which results go back
    background: Any = None  # where silence is an answer: the class of items about which all are silent
    columns: Mapping[str, str] = field(default_factory=dict)
    normalised: bool = False  # whether labels are in their normal form; then gold and priors are matched by that
    silence_weight: Floats | None = None  # where silence is an answer: how much that of each worker counts; default 1
    # Where near-copies count once: one worker of the group of each, the same for all of its members.
    leader: NDArray[np.int64] | None = None
    passages: Passages | None = None  # of tokens: the texts that they are in
    gold: Mapping[Any, Any] | None = None  # known labels that the table of answers came with
    format: str = ""  # the form of table they were read from, if it was none with one row per answer
    pictures: Pictures | None = None  # where items are pixels: the images that they are in
    origin: tuple[str, str] | None = None  # path and format of the file they were read from
    order: Floats | None = None  # when each answer was given, see `data.ordering`; NaN where it is not known

    def __post_init__(self) -> None:
        # Kernels are compiled for arrays that are read-only.
        for array in (self.offsets, self.worker, self.label, self.weight, self.order):
            if array is not None:
                array.flags.writeable = False

    def __repr__(self) -> str:
        kind = "" if self.sequences is None else f" in {len(self.sequences):,} sequences"
        return (
            f"Responses({self.n_responses:,} answers: {self.n_items:,} items{kind} x {self.n_workers:,} workers, "
            f"{self.n_classes} classes: {listing(self.classes.tolist())})"
        )

    @property
    def n_items(self) -> int:
        """Number of items, those nobody answered included."""
        return len(self.offsets) - 1

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_labels(self) -> int:
        """Number of labels that workers use."""
        return len(self.labels)

    @property
    def n_responses(self) -> int:
        """Number of answers."""
        return len(self.worker)

    @property
    def sequences(self) -> Sequences | None:
        """The sequences that the items are in; None where items are independent of each other."""
        return self.keys if isinstance(self.keys, Sequences) else None

    @cached_property
    def items(self) -> Values:
        """Item ids, in the order of every per-item result; pairs (sequence, position) for sequences."""
        if not isinstance(self.keys, Sequences):
            return self.keys
        owners = self.keys.ids[self.keys.of_items()].tolist()
        return objects(list(zip(owners, self.keys.position.tolist(), strict=True)))

    @cached_property
    def class_of_label(self) -> NDArray[np.int64]:
        """For each label, the class it names, or -1 ("unsure")."""
        return lookup(self.classes, to_column(self.labels))

    @cached_property
    def label_of_class(self) -> NDArray[np.int64]:
        """For each class, the label that names it, or -1 (nobody said it)."""
        return lookup(self.labels, to_column(self.classes))

    @property
    def silence_counts(self) -> bool:
        """Whether a worker's silence about an item is itself an answer."""
        return self.background is not None

    def vote_shares(self) -> Floats:
        """Return what an item without votes is taken for: the background, or each class's share of all votes."""
        return self._vote_shares.copy()

    @cached_property
    def _vote_shares(self) -> Floats:
        shares = np.zeros(self.n_classes)
        if self.silence_counts:
            shares[lookup(self.classes, to_column([self.background]))] = 1.0
            return shares
        if self.weight is None:
            votes = count_codes(self.label, self.n_labels)
        else:
            votes = np.bincount(self.label, weights=self.weight, minlength=self.n_labels)
        named = self.class_of_label >= 0
        shares[self.class_of_label[named]] = votes[named]
        return np.asarray(shares / shares.sum()) if shares.sum() > 0 else np.full(len(shares), 1 / len(shares))

    def key_columns(self) -> dict[str, Column]:
        """Return what identifies an item, as named columns: item, or sequence and position."""
        if self.sequences is None:
            return {"item": to_column(self.items)}
        owner = self.sequences.ids[self.sequences.of_items()]
        return {"sequence": to_column(owner), "position": to_column(self.sequences.position)}

    def find_items(self, keys: Sequence[Column]) -> NDArray[np.int64]:
        """Return the index of the item with each key (one column, or sequence and position), or -1."""
        if self.sequences is None:
            return lookup(self.items, keys[0])
        owner = lookup(self.sequences.ids, keys[0])
        places, place_of_item = np.unique(self.sequences.position, return_inverse=True)
        place = lookup(places, keys[1])
        known = self.sequences.of_items() * len(places) + place_of_item
        wanted = np.where((owner < 0) | (place < 0), -1, owner * len(places) + place)
        # Items stand in order of sequence and position, so `known` is sorted.
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[at] == wanted, at, -1)

    def keep(self, answers: NDArray[np.bool_]) -> Responses:
        """Return the same items, workers and labels with only the answers marked True."""
        kept = np.concatenate([[0], np.cumsum(answers)])
        return replace(
            self,
            offsets=kept[self.offsets].astype(np.int64),
            worker=self.worker[answers],
            label=self.label[answers],
            weight=None if self.weight is None else self.weight[answers],
            order=None if self.order is None else self.order[answers],
        )

    def about(self, items: NDArray[np.int64]) -> Responses:
        """Return the answers about some of the items, which must not be in sequences."""
        assert not isinstance(self.keys, Sequences)
        answers, owner = self.answers_about(items)
        return replace(
            self,
            keys=self.keys[items],
            offsets=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(items)))]).astype(np.int64),
            gold=None,
            pictures=None,
            worker=self.worker[answers],
            label=self.label[answers],
            weight=None if self.weight is None else self.weight[answers],
            order=None if self.order is None else self.order[answers],
        )

    def answers_about(self, items: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of the answers about some of the items, and for each the place of its item among these."""
        sizes = self.offsets[items + 1] - self.offsets[items]
        first = np.cumsum(sizes) - sizes
        answers = np.arange(sizes.sum()) + np.repeat(self.offsets[items] - first, sizes)
        return answers, np.repeat(np.arange(len(items)), sizes)

    def with_classes(self, classes: Values) -> Responses:
        """Return the same answers with other classes."""
        # A new object, so that nothing derived from the old classes is kept.
        return self if classes is self.classes else replace(self, classes=classes)

    def spelled_as(self, known: Values) -> Responses:
        """Return the same answers with labels and classes written as the known labels of the same normal form."""
        spell = spell_as(known)
        label, labels = merge_spellings(self.label, self.labels, spell, ordered=True)
        _, classes = merge_spellings(np.arange(self.n_classes, dtype=np.int32), self.classes, spell, ordered=True)
        background = None if self.background is None else spell(self.background)
        return replace(self, label=label, labels=labels, classes=classes, background=background, normalised=True)

    def unweighted(self) -> Responses:
        """Return the same answers, each with weight 1."""
        return replace(self, weight=None)

    def weights(self, answers: slice | NDArray[np.int64] = slice(None)) -> Floats:
        """Return the weight of each answer, or of some answers: 1 where none was given."""
        return np.ones(len(self.worker[answers])) if self.weight is None else self.weight[answers]

    def orders(self, answers: slice | NDArray[np.int64] = slice(None)) -> Floats:
        """Return when each answer was given, or some answers: NaN where it is not known."""
        return np.full(len(self.worker[answers]), np.nan) if self.order is None else self.order[answers]

    def item_of_answer(self) -> NDArray[np.int64]:
        """Return the index of the item that each answer is about."""
        return np.repeat(np.arange(self.n_items), np.diff(self.offsets))

    def items_of(self, answers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the item that each of some answers is about: a few of many, by their indices."""
        return np.searchsorted(self.offsets, answers, side="right") - 1

    def have_several_workers(self) -> NDArray[np.bool_]:
        """Tell which items, or sequences, at least two workers answered."""
        ends = self.offsets if self.sequences is None else self.offsets[self.sequences.offsets]
        several = np.diff(ends) > 1
        first = ends[:-1][several]
        if len(first):
            # Two workers are there if one answer is by another worker than the answer before.
            changes = np.append(False, self.worker[1:] != self.worker[:-1])
            changes[ends[:-1][np.diff(ends) > 0]] = False
            several[several] = np.logical_or.reduceat(changes, first)
        return several

    def votes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the item and the worker of each vote; an answer that is spread over several labels is one vote."""
        return (self.item_of_answer(), self.worker.astype(np.int64)) if self.weight is None else self._votes

    @cached_property
    def _votes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # `np.unique` takes many times as long for codes that are nearly sorted.
        codes = np.sort(self.item_of_answer() * self.n_workers + self.worker)
        item, worker = np.divmod(codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]], self.n_workers)
        item.flags.writeable = worker.flags.writeable = False
        return item, worker

    def votes_per_worker(self) -> NDArray[np.int64]:
        """Return the number of items that each worker answered."""
        return self._votes_per_worker.copy()

    @cached_property
    def _votes_per_worker(self) -> NDArray[np.int64]:
        return count_codes(self.worker if self.weight is None else self._votes[1], self.n_workers)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        item: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        sequence: str | None = None,
        position: str | None = None,
        weight: str | None = None,
        classes: ArrayLike | None = None,
        items: Any = None,
        duplicates: str = "error",
        abstain: str = "ignore",
        background: Any = None,
        normalise: bool = False,
        gold: str | bool | None = None,
        drop_missing: bool = False,
        format: str | None = None,
        order: str | None = None,
        ignore: Sequence[str] | str = (),
    ) -> Responses:
        """Read answers from a table, which usually has one row per answer.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or dict of columns
            Any table narwhals knows will do, and so will anything that gives an Arrow stream (a DuckDB relation, an
            ADBC reader); lazy ones are collected.
        item, worker, label : str, optional
            Column names. By default the first that exists of item/task/question/id, worker/annotator/judge/labeler,
            label/answer/response. Else similar names are looked for, such as task_id, image_id, rater, user_id,
            verdict, category or rating; several that would do are an error.
        sequence, position : str, optional
            Columns that name the sequence an item belongs to and its place in it; they replace `item`. Found by these
            names where the table has no item column.
        weight : str, optional
            Column of weights in (0, 1]. A weight scales an answer's log likelihood and its count; with weights a
            worker may spread one answer over several labels of an item. Weights below 1e-100 count as 1e-100.
        classes : sequence, optional
            What can be true, in this order. Default: all labels seen. May leave labels out ("unsure" is an answer and
            no class) and may name classes nobody said.
        items : table, array, or (sequence, position) pairs, optional
            Items that exist even if nobody answered them, in the order that all results have. Answered items that are
            not named come after them, in order of first appearance. Sequences are in the order in which they are first
            named, and the positions in a sequence are always sorted.
        duplicates : {"error", "first", "last", "mean"}
            What to do when a worker answered an item more than once, which means in more than one row. With weights,
            rows with different labels whose weights sum to at most 1 are one answer that is spread over these labels,
            which "error" and "mean" accept as it is.

            - "error": raise an error that says where.
            - "first", "last": keep the first or last row of a worker about an item, also of an answer that is spread.
            - "mean": divide the weights of a worker's rows about an item by their number.
        abstain : {"ignore", "answer"}
            What a worker's silence about an item means: nothing; or something, for every worker and every item, as with
            labelling functions that speak only where they see a sign. Silence is then the last column of
            `confusion_`. Name all items with `items`, also those nobody spoke about.
        background : label, optional
            With ``abstain="answer"``: the class that an item is taken for at first if all are silent about it. Default:
            "O" where the labels are tags. A class that nobody said is added to the classes, unless `classes` is given
            or the name looks like a misspelt label: then it is an error.
        normalise : bool, default False
            Whether labels that differ only in case, spaces or Unicode form are the same. They are then written as in
            `classes`. Labels that are not there are in lower case (IOB tags keep their first letter), without spaces
            around them, and in the form NFC. Gold, the keys of a `prior` and tables given to `predict` may then be
            written in any way.
        gold : str or False, optional
            The column of known labels, if there is one: each row has that of its item, or nothing. Default: gold, truth
            or a similar name. False: none. Two known labels of one item are an error.
        drop_missing : bool, default False
            Whether rows without an answer are left out, with a warning that counts them, instead of an error.
        format : {"long", "mturk", "toloka", "appen", "wide", "matrix"}, optional
            The form of the table: one row per answer ("long"); results of MTurk, Toloka or Appen, with the columns that
            these have; one row per item and one column per worker ("wide"); or a matrix, whose row n is item n and
            whose entries -1 are no answers. Default: recognised by the columns where there is no doubt, else "long".
        order : str, optional
            Column that says when answers were given: numbers, or dates or times (text as ISO 8601 or MTurk writes them,
            or such as 11/13/2025 10:12:21 if some row tells which number is the month). With it `drift_report` tells
            how the accuracy of each worker changes. Labels do not depend on it. Answers without a value are left out of
            that report.
        ignore : str or sequence of str, optional
            Columns of a table with one column per worker that hold no answers, such as the text of the items.

        Returns
        -------
        Responses

        Warns
        -----
        DataWarning
            When labels differ only in how they are written; when they look like ids, free text or scores, or like a
            missing value ("NA"); or when silence seems to be an answer.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"task": ["a", "a", "b"], "annotator": [1, 2, 1], "answer": [True, False, True]}
        >>> cs.Responses.from_frame(table).classes
        array([False,  True])
        """
        from .long_tables import read_answers  # which needs this class

        names = {
            "item": item,
            "worker": worker,
            "label": label,
            "sequence": sequence,
            "position": position,
            "weight": weight,
            "order": order,
        }
        options = (classes, items, duplicates, abstain, background, normalise, gold, drop_missing, format)
        return read_answers(open_frame(frame), names, *options, ignore=ignore)

    @classmethod
    def from_matrix(
        cls,
        F: ArrayLike,
        missing: Any = -1,
        lengths: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        items: Any = None,
        workers: Any = None,
        abstain: str = "ignore",
        background: Any = None,
        normalise: bool = False,
    ) -> Responses:
        """Read answers from a matrix: F[item, worker] is a label.

        Rows and columns keep their order; a row or column without answers stays.

        Parameters
        ----------
        F : array of shape (n_items, n_workers)
            Labels. NaN, None and masked entries are missing, as is `missing`.
        missing : label, default -1
            The entry that stands for no answer.
        lengths : array, optional
            Lengths of consecutive sequences of rows.
        labels : sequence, optional
            What the integers in F stand for: F holds indices into it. For a matrix of other things, the labels in
            the order wanted.
        classes : sequence, optional
            What can be true; default: all labels.
        items, workers : sequence, optional
            Names of rows ((sequence, position) pairs with `lengths`) and columns; default 0, 1, 2, ...
        abstain, background
            As in `from_frame`: what a missing entry means. A matrix of labelling functions is read with
            ``abstain="answer"``, and with the class of rows about which all are silent as `background`.
        normalise : bool, default False
            As in `from_frame`.

        Returns
        -------
        Responses

        Examples
        --------
        >>> import consilience as cs
        >>> cs.Responses.from_matrix([[0, 1, -1], [1, 1, 1]], labels=["no", "yes"])
        Responses(5 answers: 2 items x 3 workers, 2 classes: 'no', 'yes')
        """
        from .matrices import read_matrix  # which needs this class

        return read_matrix(F, missing, lengths, labels, classes, items, workers, abstain, background, normalise)

    @classmethod
    def from_probabilities(
        cls,
        P: ArrayLike,
        lengths: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        items: Any = None,
        workers: Any = None,
        abstain: str = "ignore",
        background: Any = None,
        rescale: bool = False,
    ) -> Responses:
        """Read soft votes: P[item, worker, class] is the probability that the worker gives to the class.

        Each vote is one answer spread over the classes by weights. Rows of NaN are missing. So are rows with some NaN,
        with a warning.

        Parameters
        ----------
        P : array of shape (n_items, n_workers, n_classes)
            Probabilities. A row may sum to less than 1 (a vote that counts less), not to more. Where rows do not sum to
            1 and all sums along another axis do, the axes are taken to be in the wrong order, which is an error.
        lengths, items, workers
            As in `from_matrix`.
        classes : sequence, optional
            Names of the classes; default 0, 1, 2, ...
        abstain, background
            As in `from_frame`: what a row of NaN means. A background that is not among the classes comes before them.
        rescale : bool, default False
            Whether each row is divided by its sum. The sum must be 1 up to rounding to two decimals, which is 0.005 for
            each class; any other is an error.

        Returns
        -------
        Responses

        Examples
        --------
        >>> import consilience as cs
        >>> cs.Responses.from_probabilities([[[0.9, 0.1], [0.4, 0.6]]], classes=["ham", "spam"])
        Responses(4 answers: 1 items x 2 workers, 2 classes: 'ham', 'spam')
        """
        from .matrices import read_probabilities  # which needs this class

        return read_probabilities(P, lengths, classes, items, workers, abstain, background, rescale)


def keep_weights(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return the weights of answers, at least `LEAST_WEIGHT`; None where all are 1: models are faster without."""
    return None if weight is None or bool(np.all(weight == 1.0)) else np.maximum(weight, LEAST_WEIGHT)


def empty_responses(
    keys: Values | Sequences, workers: Values, labels: Values, classes: Values, normalised: bool
) -> Responses:
    """Return items to which there are no answers."""
    n_items = len(keys.position) if isinstance(keys, Sequences) else len(keys)
    nobody = np.empty(0, np.int32)
    return Responses(
        np.zeros(n_items + 1, np.int64), nobody, nobody, None, workers, labels, classes, keys, normalised=normalised
    )
