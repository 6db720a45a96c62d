"""Answers: who said what about which item, checked once and held as plain arrays; see `arrays`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from ..errors import InputError, listing
from ..memory import NUMBER, require_memory
from .arrays import AnswerArrays
from .columns import Column, Indices, Values, name_probabilities, objects, to_column
from .composite import join_names
from .frames import build_frame, open_frame
from .items import Sequences, count_items
from .long_tables import TableOptions, arrange_answers
from .matrices import read_matrix, read_probabilities
from .tables import ROLES, check_spread


@dataclass(frozen=True, eq=False, repr=False)
class Answers(AnswerArrays):
    """Answers of workers about items.

    Build one with `from_frame`, `from_matrix`, `from_probabilities` or `consilience.read_answers`.

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
    positions : tuple of float or None
        Where ordered classes are on their scale, in the order of `classes`; None for classes without an order.
    gold : dict or None
        Known labels by item, where the table of answers has a column of them; `consilience.fuse` uses these.
    soft : float32 array (n_answers, L) or None
        The probability that each answer gives to every label, where answers are probabilities.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> cs.Answers.from_frame(answers)
    Answers(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """

    @classmethod
    def of(cls, answers: AnswerArrays) -> Answers:
        """Return arrays of answers as responses."""
        return cls(**{each.name: getattr(answers, each.name) for each in fields(answers)})

    @classmethod
    def from_frame(
        cls,
        frame: object,
        item: str | Sequence[str] | None = None,
        worker: str | None = None,
        label: str | None = None,
        sequence: str | Sequence[str] | None = None,
        position: str | None = None,
        weight: str | None = None,
        classes: ArrayLike | None = None,
        items: object = None,
        duplicates: str = "error",
        abstain: str = "ignore",
        background: object = None,
        normalise: bool = False,
        gold: str | bool | None = None,
        drop_missing: bool = False,
        format: str | None = None,
        order: str | None = None,
        ignore: Sequence[str] | str = (),
        ordered: bool | None = None,
        positions: ArrayLike | None = None,
        rescale: bool = False,
    ) -> Answers:
        """Read answers from a table, which usually has one row per answer.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or dict of columns
            Any table narwhals knows will do, and so will anything that gives an Arrow stream (a DuckDB relation, an
            ADBC reader); lazy ones are collected.
        item, worker, label : str, optional
            Column names. By default the first that exists of item/task/question/id, worker/annotator/judge/labeler,
            label/answer/response. Else similar names are looked for, such as task_id, image_id, rater, user_id,
            verdict, category or rating; several that would do are an error. An item may be several columns, such as
            ``["prompt", "pair"]`` or "prompt,pair": its id is then their values joined by ``|``, and tables of
            results have the columns beside it.
        sequence, position : str, optional
            Columns that name the sequence an item belongs to and its place in it; they replace `item`. Found by these
            names where the table has no item column.
        weight : str, optional
            Column of weights in (0, 1]: the probability that an answer was given with care. Without care, labels are
            as frequent as in all answers, whatever the truth. With weights a worker may spread one answer over several
            labels of an item: it is one of them, each with the probability that its weight is. Weights below 1e-100
            count as 1e-100.
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
            - "mean": one answer, which may be any of the rows: the weight of each is divided by their number.
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
        format : {"long", "mturk", "toloka", "appen", "wide", "matrix", "soft", "soft-long", "soft-wide"}, optional
            The form of the table: one row per answer ("long"); results of MTurk, Toloka or Appen, with the columns that
            these have; one row per item and one column per worker ("wide"); or the same of labelling functions, whose
            entries -1 are no answers ("matrix"): row n is item n if no column says so. Probabilities have one row per
            item and worker, with a column p(<class>) or <class> for each class ("soft"); a row for each label too, with
            a column probability ("soft-long"); or a column for each worker and class, such as forest_cat ("soft-wide").
            Default: recognised by the columns where there is no doubt, else "long".
        order : str, optional
            Column that says when answers were given: numbers, or dates or times (text as
            ISO 8601 writes it). With it `drift_report` tells
            how the accuracy of each worker changes. Labels do not depend on it. Answers without a value are left out of
            that report.
        ignore : str or sequence of str, optional
            Columns of a table with one column per worker that hold no answers, such as the text of the items.
        ordered : bool, optional
            Whether the classes are levels from low to high, such as ratings. True: `classes` are in order, if they are
            given; else labels must be numbers, or text that reads as numbers, and are in order of their value. By
            default classes are ordered if the column of labels says so: an ordered categorical of pandas, an Enum of
            polars, or an Arrow dictionary with ``ordered=True``.
        positions : sequence of float, optional
            Where the ordered classes are on their scale, in the order of the classes, such as ``[0, 1, 5]``. Default:
            0, 1, 2, ...
        rescale : bool, default False
            Whether probabilities are divided by their sum, which must be 1, or 100 of percentages, up to rounding.

        Returns
        -------
        Answers

        Warns
        -----
        DataWarning
            When labels differ only in how they are written; when they look like ids, free text or scores, or like a
            missing value ("NA"); or when silence seems to be an answer.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"task": ["a", "a", "b"], "annotator": [1, 2, 1], "answer": [True, False, True]}
        >>> cs.Answers.from_frame(table).classes
        array([False,  True])
        """
        whole = join_names(item), worker, label, join_names(sequence), position, weight, order
        names = dict(zip(ROLES, whole, strict=True))
        options = TableOptions(
            classes,
            items,
            duplicates,
            abstain,
            background,
            normalise,
            gold,
            drop_missing,
            format,
            ignore,
            ordered,
            positions,
        )
        return cls.of(arrange_answers(open_frame(frame), names, options._replace(rescale=rescale)))

    @classmethod
    def from_matrix(
        cls,
        F: ArrayLike,
        missing: object = -1,
        lengths: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        items: object = None,
        workers: object = None,
        abstain: str = "ignore",
        background: object = None,
        normalise: bool = False,
        ordered: bool | None = None,
        positions: ArrayLike | None = None,
    ) -> Answers:
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
        ordered, positions
            As in `from_frame`. `labels` are in order, too, if they are given and classes are not.

        Returns
        -------
        Answers

        Examples
        --------
        >>> import consilience as cs
        >>> cs.Answers.from_matrix([[0, 1, -1], [1, 1, 1]], labels=["no", "yes"])
        Answers(5 answers: 2 items x 3 workers, 2 classes: 'no', 'yes')
        """
        options = TableOptions(
            classes=classes,
            items=items,
            abstain=abstain,
            background=background,
            normalise=normalise,
            ordered=ordered,
            positions=positions,
            lengths=lengths,
            workers=workers,
        )
        return cls.of(read_matrix(F, missing, labels, options))

    @classmethod
    def from_probabilities(
        cls,
        P: ArrayLike,
        lengths: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        items: object = None,
        workers: object = None,
        abstain: str = "ignore",
        background: object = None,
        rescale: bool = False,
        ordered: bool | None = None,
        positions: ArrayLike | None = None,
    ) -> Answers:
        """Read soft votes: P[item, worker, class] is the probability that the worker gives to the class.

        Each vote is one answer, with its most probable class as the label; the probabilities stand beside it (`soft`).
        If all of them are 0 or 1, these are plain answers. Rows of NaN are missing. So are rows with some NaN, with a
        warning.

        Parameters
        ----------
        P : array of shape (n_items, n_workers, n_classes)
            Probabilities, each row of which sums to 1. Where rows do not sum to 1 and all sums along another axis do,
            the axes are taken to be in the wrong order, which is an error.
        lengths, items, workers
            As in `from_matrix`.
        classes : sequence, optional
            Names of the classes; default 0, 1, 2, ...
        abstain, background
            As in `from_frame`: what a row of NaN means. A background that is not among the classes comes before them.
        rescale : bool, default False
            Whether each row is divided by its sum. The sum must be 1, or 100 of percentages, up to rounding to two
            decimals, which is 0.005 for each class; any other is an error.
        ordered, positions
            As in `from_frame`.

        Returns
        -------
        Answers

        Examples
        --------
        >>> import consilience as cs
        >>> cs.Answers.from_probabilities([[[0.9, 0.1], [0.4, 0.6]]], classes=["ham", "spam"])
        Answers(2 answers: 1 items x 2 workers, 2 classes: 'ham', 'spam')
        """
        options = TableOptions(
            classes=classes,
            items=items,
            abstain=abstain,
            background=background,
            ordered=ordered,
            positions=positions,
            rescale=rescale,
            lengths=lengths,
            workers=workers,
        )
        return cls.of(read_probabilities(P, options))


def empty_responses(
    keys: Values | Sequences, workers: Values, labels: Values, classes: Values, normalised: bool
) -> Answers:
    """Return items to which there are no answers."""
    offsets, nobody = np.zeros(count_items(keys) + 1, np.int64), np.empty(0, np.int32)
    return Answers(offsets, nobody, nobody, None, workers, labels, classes, keys, normalised=normalised)


def to_long(responses: Answers) -> Any:
    """Return a table with one row per answer: item (or sequence and position), worker, label, perhaps weight and gold.

    Items that nobody answered have no row. Soft votes have a column p(<label>) for each label instead of one of labels.

    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> to_long(Answers.from_frame(answers)).to_pydict() == answers
    True
    """
    owner = responses.item_of_answer()
    columns = {name: column.take(owner) for name, column in _key_columns(responses).items()}
    columns["worker"] = to_column(responses.workers).take(responses.worker)
    if responses.soft is None:
        columns["label"] = to_column(responses.labels).take(responses.label)
    else:
        names = name_probabilities(responses.labels, columns)
        columns |= dict(zip(names, map(to_column, responses.soft.T.copy()), strict=True))
    if responses.weight is not None:
        columns["weight"] = to_column(responses.weight)
    return build_frame(columns, responses.backend)


def to_wide(responses: Answers) -> Any:
    """Return a table with one row per item and one column per worker, empty where a worker gave no answer.

    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> to_wide(Answers.from_frame(answers)).to_pydict()
    {'item': [1, 2], 'ann': ['cat', 'cat'], 'bob': ['dog', None]}
    """
    columns = _key_columns(responses)
    names = [str(worker) for worker in responses.workers.tolist()]
    taken = [name for name in names if name in columns]
    if taken or len(set(names)) < len(names):
        raise InputError(
            f"Workers would share a column with something else: {listing(taken or names)}.",
            "Rename them, or write one row per answer.",
        )
    check_spread(responses.n_items, len(names), responses.n_responses)
    require_memory(NUMBER * responses.n_items * len(names), f"A table of {responses.n_items:,} x {len(names):,} cells")
    codes = np.full((len(names), responses.n_items), -1, np.int64)
    owner = responses.item_of_answer()
    codes[responses.worker, owner] = responses.label
    if np.count_nonzero(codes >= 0) < responses.n_responses:
        raise InputError(
            "Some answers are spread over several labels, and a cell holds one.", "Write one row per answer."
        )
    for name, row in zip(names, codes, strict=True):
        columns[name] = _pick(to_column(responses.labels), row)
    return build_frame(columns, responses.backend)


def _key_columns(responses: Answers) -> dict[str, Column]:
    """Return what identifies the items, and their known labels if there are any."""
    columns = responses.key_columns()
    if responses.gold:
        columns["gold"] = to_column([responses.gold.get(item) for item in responses.items.tolist()])
    return columns


def _pick(labels: Column, codes: Indices) -> Column:
    """Return the labels of some codes, missing where the code is -1."""
    if isinstance(labels, np.ndarray):
        return objects([None if code < 0 else labels[code] for code in codes.tolist()])
    return labels.take(pa.array(codes, mask=codes < 0))


# What answers can be written as, by the names that users give them.
LAYOUTS: dict[str, Callable[[Answers], Any]] = {"long": to_long, "wide": to_wide}
