"""Answers: who said what about which item, checked once and held as plain arrays.

Answers are sorted by item (items of a sequence stand together, in order of position), item i owns the answers
`offsets[i]:offsets[i + 1]`, and `worker` and `label` are indices into `workers` and `labels`.

Every pass over the data is `statistics = sum over blocks of step(block, parameters)`. A block is a run of whole items
(whole sequences). Where blocks begin and end depends on the data alone, never on how many threads or machines there
are, and sums are taken in block order: that is why results are the same to the bit wherever they are computed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, ParameterError, Sentence, join_names, listing, parameter_error, plural
from ..kernels import Floats, Integers, Truths, freeze
from ..limits import allocate, release_mapped, side_by_side
from ..options import check, to_floats
from . import MATRIX
from .classes import are_ranks, choose_classes, choose_spelling, doubt_silence, merge_spellings, spell_as, warn_of_slips
from .columns import (
    MANY_VALUES,
    MOST_NARROW,
    SIGN,
    VERY_MANY,
    Codes,
    Column,
    Indices,
    Values,
    count_codes,
    encode_sorted,
    find_missing,
    keep_values,
    lookup,
    objects,
    sort_rows,
    split_ids,
    to_column,
)
from .gold import add_gold
from .keys import Sequences, count_items, encode_items, read_keys
from .layouts import FILL_ANSWERS, drop_unlabelled, lay_out_matrix, read_entries, read_weights, resolve_duplicates
from .previews import frame_html, html_facts, paragraph, to_word
from .soft_votes import Probabilities, check_votes, relabel, scale_votes
from .tables import ROLES, WHOLE, find_columns, open_frame, read_names, read_times, translate

# Answers plus items in a block: large enough that a block's overhead vanishes, small enough that two threads have
# something to share at a hundred thousand answers.
BLOCK_SIZE = 1 << 17
# Each block reads and returns a table of the rows of its workers. So blocks of large data have so many answers per row,
# but there are enough of them for many threads, and not so many that Python is what takes time. A block has at most
# about so many probabilities.
ANSWERS_PER_ROW, FEWEST_BLOCKS, MOST_BLOCKS, MOST_PROBABILITIES = 8, 32, 128, 1 << 21
# Rows are marked in a table of all of them, unless there are so many times more of them than answers.
MOST_MARKS_PER_ANSWER = 16
# So many rows can be told apart by codes of two bytes.
MOST_SHORT = 1 << 16
NO_VOTES: Probabilities = freeze(np.empty((0, 0), np.float32))
# Counts are weights times probabilities. From smaller weights they could vanish, as if nobody had said so.
LEAST_ANSWER_WEIGHT = 1e-100


class Budget(NamedTuple):
    """How much memory the fit to answers that are mapped from files may use, and where it keeps what it found."""

    memory: int | None  # in bytes; None: what there is
    folder: str
    resume: bool  # whether a fit goes on where another one was interrupted


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Answers of workers about items.

    Build one with `from_frame`, `from_matrix`, `from_probabilities` or `consilience.read_answers`.

    How much an answer counts in a fit is its `amount` = weight x scale x share: its weight in the table; `scale`, which
    turns weights into amounts of evidence, and which `weight_scale` keeps for a part of the answers; and its share
    where near-copies count once. Without weights the amount is the share.

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

    offsets: Indices
    worker: Codes
    label: Integers
    weight: Floats | None
    workers: Values
    labels: Values
    classes: Values
    keys: Values | Sequences  # what identifies the items
    backend: str = "pyarrow"  # the frame library in which results go back
    background: Any = None  # where silence is an answer: the class of items about which all are silent
    normalised: bool = False  # whether labels are in their normal form; then gold and priors are matched by that
    silence_weight: Floats | None = None  # where silence is an answer: how much that of each worker counts; default 1
    # Where near-copies count once: one worker of the group of each, the same for all of its members, and the power that
    # the likelihood of each answer is raised to.
    leader: Indices | None = None
    share: Floats | None = None
    weight_scale: float | None = None  # see `scale`; that of all answers where these are a part of them
    order: Floats | None = None  # when each answer was given, see `tables.read_times`; NaN where it is not known
    positions: tuple[float, ...] | None = None
    soft: Probabilities | None = None  # (n_answers, L): of each label, the most probable of which is in `label`
    # Where they were read: which column of the table played each role, its form if it had not one row per answer, and
    # path and format of the file.
    columns: Mapping[str, str] = field(default_factory=dict)
    format: str = ""
    origin: tuple[str, str] | None = None
    gold: Mapping[Any, Any] | None = None
    declares_order: bool = False  # whether it was said that classes are levels of a scale, or that they are not
    budget: Budget | None = None  # of `consilience.scan_answers`
    n_items: int = field(init=False)  # those that nobody answered included
    n_workers: int = field(init=False)
    n_labels: int = field(init=False)
    n_classes: int = field(init=False)
    n_responses: int = field(init=False)
    sequences: Sequences | None = field(init=False)  # those that the items are in
    silence_counts: bool = field(init=False)  # whether a worker's silence about an item is itself an answer
    is_ordered: bool = field(init=False)  # whether the classes are levels from low to high
    class_of_label: Indices = field(init=False)  # for each label, the class it names, or -1 ("unsure")
    label_of_class: Indices = field(init=False)  # for each class, the label that names it, or -1 (nobody said it)
    memory: int | None = field(init=False)  # how many bytes a fit may use; None: all there are

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
            Column of weights in (0, 1]: how much each answer counts, compared with the others. The likelihood of an
            answer is raised to its weight, and weights are scaled so that they sum to the effective number of answers.
            With weights a worker may spread one answer over several labels of an item, each with its part of the
            weight. Weights below 1e-100 count as 1e-100.
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
            "O" where the labels are tags. A class that nobody said is added to the classes, unless `classes` is given:
            then it is an error.
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
        format : {"long", "mturk", "toloka", "appen", "wide", "matrix", "soft", "soft-long"}, optional
            The form of the table: one row per answer ("long"); results of MTurk, Toloka or Appen, with the columns that
            these have; one row per item and one column per worker ("wide"); or the same of labelling functions, whose
            entries -1 are no answers ("matrix"): row n is item n if no column says so. Probabilities have one row per
            item and worker, with a column p(<class>) or <class> for each class ("soft"); or a row for each label too,
            with a column probability ("soft-long"). Default: recognised by the columns where there is no doubt, else
            "long".
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
            When labels differ only in how they are written; when they look like free text or scores, or like a missing
            value ("NA") or an abstention; or when silence seems to be an answer.

        Examples
        --------
        >>> import consilience as cs
        >>> table = {"task": ["a", "a", "b"], "annotator": [1, 2, 1], "answer": [True, False, True]}
        >>> cs.Answers.from_frame(table).classes
        array([False,  True])
        """
        flags = {"normalise": normalise, "drop_missing": drop_missing, "rescale": rescale}
        for name, value in {"duplicates": duplicates, **flags}.items():
            check(name, value, "Answers")
        if not (gold is None or gold is False or isinstance(gold, str)):
            raise parameter_error("gold", "Answers.from_frame", "the name of a column, or False", gold)

        # The columns and their roles.
        table = open_frame(frame)
        origin = table.origin
        names: dict[str, Any] = dict(zip(ROLES, (item, worker, label, sequence, position, weight, order), strict=True))
        for role in WHOLE:
            if names[role] is not None:
                table, names[role] = table.combine(role, names[role])
        table = translate(table, format, {**names, "gold": gold if isinstance(gold, str) else None}, ignore)
        if rescale and table.soft is None:
            problem = Sentence("{rescale} is for probabilities, and has no effect on this table.")
            raise ParameterError(problem, "Leave it out.", keyword="rescale")
        if len(ignore) and table.format not in ("wide", MATRIX, "soft"):
            problem = Sentence("{ignore} is for tables in which each worker has a column, and has no effect here.")
            raise ParameterError(problem, "Leave it out.", keyword="ignore")
        columns = find_columns(table, names)
        if table.n_rows == 0:
            raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
        known_labels = None if gold is False else table.find("gold", gold)

        # What they say, encoded.
        said = table.read(columns["label"])
        if len(find_missing(said)):
            table = drop_unlabelled(table, columns["label"], drop_missing)
            said = table.read(columns["label"])
        kind = None if isinstance(said, np.ndarray) else said.type
        has_categories = isinstance(kind, pa.DictionaryType)
        is_scale = isinstance(kind, pa.DictionaryType) and kind.ordered
        votes, spell = None, None
        if table.soft is None:
            codes, labels = encode_sorted(said)
        else:
            rows = check_votes(table, table.soft, classes, normalise, duplicates, rescale)
            codes, labels = rows.find_codes(), rows.labels
            votes = rows.votes if (rows.votes.max(axis=1) < 1).any() else None  # else they are plain answers
        del said
        if normalise:
            spell = choose_spelling(labels, classes)
            codes, labels = merge_spellings(codes, labels, spell, ordered=has_categories)
        who, workers = encode_sorted(table.values(columns["worker"], FILL_ANSWERS))
        weights = read_weights(table, columns["weight"]) if "weight" in columns else None
        times = read_times(table, columns["order"]) if "order" in columns else None

        # Which items they are about, in the order of which they are sorted.
        keys_of_rows = [columns[role] for role in ("item", "sequence", "position") if role in columns]
        items = table.items if items is None else items
        named = None if items is None else read_keys(items, len(keys_of_rows), columns)
        about, keys = encode_items([table.values(name, FILL_ANSWERS) for name in keys_of_rows], named, table.name)
        offsets, who, codes, (weights, times, votes) = sort_rows(
            about, count_items(keys), who, codes, weights, times, votes
        )
        answers = cls(
            offsets=offsets,
            worker=who,
            label=codes.astype(np.int8) if len(codes) >= VERY_MANY and len(labels) <= MOST_NARROW else codes,
            weight=weights,
            workers=workers,
            labels=labels,
            classes=labels,
            keys=keys,
            backend=table.backend,
            normalised=normalise,
            order=times,
            soft=None if votes is None else np.ascontiguousarray(votes, np.float32),
            columns=columns,
            format=table.format,
            origin=origin,
            declares_order=ordered is not None,
        )
        del codes, who
        if answers.n_responses < MANY_VALUES:  # nothing need be compiled for so few
            pairs = np.sort(answers.item_of_answer() * answers.n_workers + answers.worker)
            repeats = bool((pairs[1:] == pairs[:-1]).any())
        else:
            from ..kernels.columns import have_repeated

            every = answers.offsets, answers.worker
            repeats = any(
                side_by_side(
                    lambda start, stop: have_repeated(*every, start, stop, np.full(len(workers), -1, np.int32)),
                    answers.n_items,
                )
            )
        if repeats:
            answers = resolve_duplicates(answers, duplicates, about, table)

        # What can be true, and what looks like a slip.
        levels = answers.labels if is_scale and classes is None else classes
        in_order = True if is_scale and ordered is None else ordered
        answers = choose_classes(answers, classes, abstain, background, in_order, positions, levels, spell)
        if answers.weight is not None:
            answers = replace(answers, weight=keep_weights(answers.weight))
        if known_labels is not None:
            answers = add_gold(answers, table, known_labels, about, named=isinstance(gold, str))
        warn_of_slips(answers, named=classes is not None)
        return answers

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
        check("normalise", normalise, "Answers")
        answered, codes, vocabulary = read_entries(F, missing, labels, normalise)
        spell = choose_spelling(vocabulary, classes) if normalise else None
        if spell is not None:
            codes, vocabulary = merge_spellings(codes, vocabulary, spell, ordered=labels is not None)
        layout = lay_out_matrix(answered, lengths, items, workers)
        answers = cls(**layout, label=codes, labels=vocabulary, classes=vocabulary, normalised=normalise)
        levels = labels if classes is None else classes
        answers = choose_classes(answers, classes, abstain, background, ordered, positions, levels, spell)
        warn_of_slips(answers, named=levels is not None, tabular=False)
        return answers

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
        If all of them are 0 or 1, these are plain answers. Rows of NaN are missing.

        Parameters
        ----------
        P : array of shape (n_items, n_workers, n_classes)
            Probabilities, each row of which sums to 1.
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
        check("rescale", rescale, "Answers.from_probabilities")
        try:
            votes = to_floats(P)
        except (TypeError, ValueError) as error:
            problem = f"P must be an array of probabilities indexed by item, worker and class: {error}."
            raise InputError(problem) from error
        if votes.ndim != 3 or 0 in votes.shape:
            raise InputError(
                f"P must be indexed by item, worker and class; got an array of shape {votes.shape}.",
                "Stack what classifiers give to all classes: numpy.stack([...], axis=1).",
            )
        labels = read_names(classes, votes.shape[2], "classes")
        answered = np.asarray(~np.isnan(votes).all(axis=2))
        if not answered.any():
            raise InputError("P has no votes: every row is of NaN.")
        where = np.argwhere(answered)
        remedy = "If the last axis lacks a class, add it. Else divide each vote by its sum, or transpose P."
        given = votes[answered], labels, rescale
        probabilities = scale_votes(*given, "P", lambda row: f"P{where[row].tolist()}", remedy)
        soft = probabilities.astype(np.float32) if (probabilities.max(axis=1) < 1).any() else None
        code, layout = probabilities.argmax(axis=1).astype(np.int32), lay_out_matrix(answered, lengths, items, workers)
        answers = cls(**layout, label=code, labels=labels, classes=labels, soft=soft)
        answers = choose_classes(answers, None, abstain, background, ordered, positions, classes)
        warn_of_slips(answers, named=True, tabular=False, normalises=False)
        return answers

    def __post_init__(self) -> None:
        # Kernels are compiled for arrays that are read-only.
        for array in (self.offsets, self.worker, self.label, self.weight, self.share, self.order, self.soft):
            if array is not None:
                array.flags.writeable = False
        derived: dict[str, Any] = {
            "n_items": len(self.offsets) - 1,
            "n_workers": len(self.workers),
            "n_labels": len(self.labels),
            "n_classes": len(self.classes),
            "n_responses": len(self.worker),
            "sequences": self.keys if isinstance(self.keys, Sequences) else None,
            "silence_counts": self.background is not None,
            "is_ordered": self.positions is not None,
            "memory": None if self.budget is None else self.budget.memory,
            "class_of_label": np.arange(len(self.labels)),
            "label_of_class": np.arange(len(self.labels)),
        }
        if self.classes is not self.labels:
            derived["class_of_label"] = lookup(self.classes, to_column(self.labels))
            derived["label_of_class"] = lookup(self.labels, to_column(self.classes))
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @cached_property
    def items(self) -> Values:
        """Item ids, in the order of every per-item result; pairs (sequence, position) for sequences."""
        if not isinstance(self.keys, Sequences):
            return self.keys
        owners = self.keys.ids[self.keys.of_items()].tolist()
        return objects(list(zip(owners, self.keys.position.tolist(), strict=True)))

    @cached_property
    def label_counts(self) -> Floats:
        """How often each label was said, by how much answers count."""
        return count_codes(self.label, self.n_labels, self.amount)

    @cached_property
    def item_hashes(self) -> NDArray[np.uint64]:
        """A hash of what identifies each item, by which items are drawn."""
        from .random_choices import hash_items

        return freeze(hash_items(self.keys))

    # The warning that silence may well be an answer, and is ignored; else None.
    silence_doubt = cached_property(doubt_silence)

    @cached_property
    def scale(self) -> float:
        """What weights are multiplied by: they then sum to the effective number of answers, (sum w)^2 / sum w^2.

        The weights of an answer that is spread over several labels are added. Where silence is an answer, it is 1: what
        an answer lacks in weight is silence.
        """
        if self.weight_scale is not None or self.weight is None or self.silence_counts:
            return self.weight_scale or 1.0
        codes = self.item_of_answer() * self.n_workers + self.worker
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
        whole = np.add.reduceat(self.weight, first) if len(first) else np.ones(1)
        return float(whole.sum() / (whole**2).sum())

    @cached_property
    def amount(self) -> Floats | None:
        """How much each answer counts, by its weight and as one of near-copies; None if all count fully.

        It is the power that the likelihood of the answer is raised to.
        """
        if self.weight is None:
            return self.share
        amount = self.weight * self.scale
        return freeze(amount if self.share is None else amount * self.share)

    def weights(self, answers: slice | Indices = slice(None)) -> Floats:
        """How much each answer counts, or some answers: 1 where there are no weights."""
        return np.ones(len(self.worker[answers])) if self.amount is None else self.amount[answers]

    def orders(self, answers: slice | Indices = slice(None)) -> Floats:
        """When each answer was given, or some answers: NaN where it is not known."""
        return np.full(len(self.worker[answers]), np.nan) if self.order is None else self.order[answers]

    def item_of_answer(self) -> Indices:
        """The item that each answer is about."""
        return np.repeat(np.arange(self.n_items), np.diff(self.offsets))

    def items_of(self, answers: Indices) -> Indices:
        """The item that each of some answers is about: a few of many, by their indices."""
        return np.searchsorted(self.offsets, answers, side="right") - 1

    def owners_of(self, items: Indices) -> Indices:
        """What items belong to: their sequences, or themselves where items are independent of each other."""
        return items if self.sequences is None else self.sequences.of_items()[items]

    def answers_about(self, items: Indices) -> tuple[Indices, Indices]:
        """The indices of the answers about some of the items, and for each the place of its item among these."""
        sizes = self.offsets[items + 1] - self.offsets[items]
        first = np.cumsum(sizes) - sizes
        answers = np.arange(sizes.sum()) + np.repeat(self.offsets[items] - first, sizes)
        return answers, np.repeat(np.arange(len(items)), sizes)

    def votes(self) -> tuple[Indices, Indices]:
        """The item and the worker of each vote; an answer that is spread over several labels is one vote."""
        if self.amount is None:
            return self.item_of_answer(), self.worker.astype(np.int64)
        # `np.unique` takes many times as long for codes that are nearly sorted.
        codes = np.sort(self.item_of_answer() * self.n_workers + self.worker)
        item, worker = np.divmod(codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]], self.n_workers)
        return item, worker

    def votes_per_worker(self) -> Indices:
        """The number of items that each worker answered."""
        return count_codes(self.worker if self.amount is None else self.votes()[1], self.n_workers)

    def vote_shares(self) -> Floats:
        """What an item without votes is taken for: the background, or each class's share of all votes."""
        shares = np.zeros(self.n_classes)
        if self.silence_counts:
            shares[lookup(self.classes, to_column([self.background]))] = 1.0
            return shares
        votes = self.label_counts if self.soft is None else self.soft.sum(axis=0, dtype=np.float64)
        named = self.class_of_label >= 0
        shares[self.class_of_label[named]] = votes[named]
        total = shares.sum()
        return shares / total if total > 0 else np.full(self.n_classes, 1 / max(self.n_classes, 1))

    def class_votes(self, answers: Indices | slice = slice(None)) -> Probabilities:
        """What soft votes, all or some, give to each class, (n, K), and not what to other labels."""
        assert self.soft is not None
        given = self.soft[answers]
        if np.array_equal(self.class_of_label, np.arange(self.n_classes)):
            return given
        named = np.flatnonzero(self.class_of_label >= 0)
        votes = np.zeros((len(given), self.n_classes), np.float32)
        votes[:, self.class_of_label[named]] = given[:, named]
        return votes

    def have_several_workers(self) -> Truths:
        """Which items, or sequences, at least two workers answered."""
        if self.sequences is None and self.amount is None:
            return np.asarray(np.diff(self.offsets) > 1)
        item, worker = self.votes()
        codes = np.sort(self.owners_of(item) * self.n_workers + worker)
        owner = codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]] // self.n_workers
        return np.asarray(count_codes(owner, self.n_items if self.sequences is None else len(self.sequences)) > 1)

    def key_columns(self) -> dict[str, Column]:
        """What identifies an item, as named columns: item, or sequence and position, and what these consist of.

        Where several columns of a table identify an item together, they are there beside the id.
        """
        if not isinstance(self.keys, Sequences):
            name = self.columns.get("item", "")
            parts = split_ids(self.keys, name) if SIGN in name else {}
            return {"item": to_column(self.keys), **parts}
        owner = self.keys.ids[self.keys.of_items()]
        places = {"sequence": to_column(owner), "position": to_column(self.keys.position)}
        return {**places, **split_ids(owner, self.columns.get("sequence"))}

    def find_items(self, keys: Sequence[Column]) -> Indices:
        """The index of the item with each key (one column, or sequence and position), or -1."""
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

    def keep(self, answers: Truths) -> Self:
        """The same items, workers and labels with only the answers marked True."""
        kept = np.concatenate([[0], np.cumsum(answers)])
        return replace(self, offsets=kept[self.offsets].astype(np.int64), **self.take(answers))

    def keep_workers(self, kept: Truths) -> Self:
        """The same answers with only the workers that are marked True, who gave all of them."""
        worker, workers = keep_values(self.worker, self.workers, kept)
        weight = None if self.silence_weight is None else self.silence_weight[kept]
        return replace(self, worker=worker, workers=workers, silence_weight=weight)

    def about(self, items: Indices) -> Self:
        """The answers about some of the items; of a sequence about all of them, or none."""
        answers, owner = self.answers_about(items)
        keys: Any = self.keys
        if isinstance(keys, Sequences):
            chosen, sizes = np.unique(keys.of_items()[items], return_counts=True)
            keys = Sequences(keys.ids[chosen], np.concatenate([[0], np.cumsum(sizes)]), keys.position[items])
        else:
            keys = keys[items]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(items)))]).astype(np.int64)
        return replace(self, keys=keys, offsets=offsets, gold=None, **self.take(answers))

    def take(self, answers: Truths | Indices) -> dict[str, Any]:
        """What is known of each of some answers, by the names of the fields."""
        arrays = {name: getattr(self, name) for name in ("worker", "label", "weight", "share", "order", "soft")}
        parts: dict[str, Any] = {name: None if array is None else array[answers] for name, array in arrays.items()}
        return parts if self.weight is None else {**parts, "weight_scale": self.scale}

    def with_classes(self, classes: Values) -> Self:
        """The same answers with other classes.

        Those of a scale keep their positions; they get ranks if there are new ones, or if they had ranks.
        """
        if classes is self.classes:
            return self
        positions = self.positions
        if positions is not None:
            known = lookup(self.classes, to_column(classes))
            if (known < 0).any() or are_ranks(positions):
                positions = tuple(map(float, range(len(classes))))
            else:
                positions = tuple(positions[k] for k in known.tolist())
        return replace(self, classes=classes, positions=positions)

    def scaled_as(self, classes: Values, positions: tuple[float, ...] | None) -> Self:
        """The same answers on the scale of others: with these classes if they are ordered, else without one."""
        return replace(self, classes=self.classes if positions is None else classes, positions=positions)

    def spelled_as(self, known: Values) -> Self:
        """The same answers with labels and classes written as the known labels of the same normal form."""
        spell = spell_as(known)
        place, labels = merge_spellings(np.arange(self.n_labels, dtype=np.int32), self.labels, spell, ordered=True)
        code, classes = merge_spellings(np.arange(self.n_classes, dtype=np.int32), self.classes, spell, ordered=True)
        first = np.unique(code, return_index=True)[1].tolist()
        soft = None if self.soft is None else relabel(self.soft, place, len(labels))
        return replace(
            self,
            label=place[self.label] if soft is None else soft.argmax(axis=1).astype(np.int32),
            labels=labels,
            soft=soft,
            classes=classes,
            positions=None if self.positions is None else tuple(self.positions[k] for k in first),
            background=None if self.background is None else spell(self.background),
            normalised=True,
        )

    def __repr__(self) -> str:
        kind = "" if self.sequences is None else f" in {len(self.sequences):,} sequences"
        return (
            f"{type(self).__name__}({self.n_responses:,} answers: {self.n_items:,} items{kind} x {self.n_workers:,} "
            f"workers, {self.n_classes} classes: {listing(self.classes.tolist())})"
        )

    def _repr_html_(self) -> str:
        kind = "" if self.sequences is None else f" in {plural(len(self.sequences), 'sequence')}"
        names = join_names(map(to_word, self.classes.tolist()), "classes has all")
        facts = [
            ("Answers", f"{self.n_responses:,}, {self.n_responses / max(self.n_items, 1):.1f} per item"),
            ("Items", f"{self.n_items:,}{kind}"),
            ("Workers", f"{self.n_workers:,}"),
            ("Classes", f"{self.n_classes:,}: {names}"),
        ]
        if self.silence_counts:
            facts.append(("Silence", f"is an answer, often of {to_word(self.background)}"))
        return frame_html(paragraph(type(self).__name__), html_facts(facts))


def keep_weights(weight: Floats | None) -> Floats | None:
    """The weights of answers, at least `LEAST_ANSWER_WEIGHT`; None where all are 1: models are faster without."""
    return None if weight is None or bool(np.all(weight == 1.0)) else np.maximum(weight, LEAST_ANSWER_WEIGHT)


def empty_responses(
    keys: Values | Sequences, workers: Values, labels: Values, classes: Values, normalised: bool
) -> Answers:
    """Items to which there are no answers."""
    offsets, nobody = np.zeros(count_items(keys) + 1, np.int64), np.empty(0, np.int32)
    return Answers(offsets, nobody, nobody, None, workers, labels, classes, keys, normalised=normalised)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive items. Arrays are read-only; an empty `amount` or `gold` means there are none.

    Attributes
    ----------
    first_item, n_items : int
        Index of the first item among all items, and number of items.
    codes : int32 or uint16 array
        For each answer, its row among those of the worker model that this block needs.
    offsets : int64 or int32 array
        Item i of the block owns the answers offsets[i]:offsets[i + 1].
    rows : int64 array
        Which of all rows of the worker model these are. Only workers met in the block have rows here, so that what a
        block reads and returns stays small when there are hundreds of thousands of workers.
    amount : float64 array
        The power that the likelihood of each answer is raised to, where answers have weights or near-copies count once.
    gold : int32 array
        Known class of each item, or -1.
    sequences : int64 array
        Sequence s of the block owns the items sequences[s]:sequences[s + 1]; empty where items are not in sequences.
    log_prior : float64 array (n_items, K)
        What is known of each item beside its answers, as the logarithm of a factor for each class, or empty.
    answered : boolean array
        Whether anything is known of each item: an answer, a label, a prior of its own, or silence where that is an
        answer. Empty if something is known of all of them.
    total_size : int
        Answers plus items of all blocks together. It decides which kernels are compiled, so that they are the same for
        all blocks.
    anchor : float64 array (n_items, K)
        As `log_prior`, made of the items' own votes, or empty. It counts while labels are found, and not in calibrated
        probabilities.
    soft : float32 array (n_answers, K)
        What a worker model makes of the probabilities of soft votes, or empty.
    """

    first_item: int
    n_items: int
    codes: Codes | NDArray[np.uint16]
    offsets: Indices | Codes
    rows: Indices
    amount: Floats
    gold: Codes
    sequences: Indices
    log_prior: Floats
    answered: Truths
    total_size: int
    anchor: Floats
    soft: Probabilities


def cut_blocks(
    responses: Answers,
    codes: Integers,
    n_codes: int,
    gold: Codes | None = None,
    known: Floats | None = None,
    soft: Probabilities = NO_VOTES,
) -> list[Block]:
    """Cut the answers into blocks; `codes` is each answer's row in the worker model, which has `n_codes` rows.

    `gold` are the known classes of the items, and `known` (N, K) is what else is known of them. `soft` is what the
    worker model makes of the probabilities of each answer.
    """
    offsets, sequences = responses.offsets, responses.sequences
    ends: Any = range(responses.n_items + 1) if sequences is None else sequences.offsets
    total_size = int(offsets[-1]) + responses.n_items
    size = max(total_size // MOST_BLOCKS, min(ANSWERS_PER_ROW * n_codes, total_size // FEWEST_BLOCKS))
    n_probabilities = responses.n_items * responses.n_classes
    n_blocks = max(1, total_size // max(BLOCK_SIZE, size), n_probabilities // MOST_PROBABILITIES)
    answered = offsets[1:] > offsets[:-1]
    if gold is not None:
        answered |= gold >= 0
    if known is not None:
        answered |= (known != 0).any(axis=1)
    # Blocks are much of the memory of a fit, so they hold short numbers. Those of small data are all of one kind, for
    # which kernels are compiled.
    many = total_size >= MANY_VALUES
    all_told = responses.silence_counts or bool(answered.all())
    # Block b ends with the first whole sequence (or item) that reaches its share of the total size.
    targets = np.linspace(0, total_size, n_blocks + 1).astype(np.int64).tolist()
    cuts = sorted({bisect_left(ends, target, key=lambda end: int(offsets[end]) + int(end)) for target in targets})
    bounds = [int(ends[cut]) for cut in cuts]
    nothing, unknown = freeze(np.empty(0)), freeze(np.empty((0, 0)))
    room = allocate((responses.n_responses, 4), np.uint8)  # for the codes of all blocks
    runs = list(pairwise(zip(cuts, bounds, strict=True)))

    def cut(number: int) -> Block:
        (first, start), (last, stop) = runs[number]
        answers = slice(int(offsets[start]), int(offsets[stop]))
        own = codes[answers]
        if n_codes > MOST_MARKS_PER_ANSWER * max(len(own), BLOCK_SIZE):
            rows, local = np.unique(own, return_inverse=True)
        else:
            used = np.zeros(n_codes, bool)
            used[own] = True
            rows = np.flatnonzero(used)
            local = (np.cumsum(used, dtype=np.int32) - np.int32(1)).take(own)
        short = many and len(rows) <= MOST_SHORT
        kept: Any = room[answers].reshape(-1).view(np.uint16 if short else np.int32)[: len(local)]
        kept[:] = local
        block = Block(
            first_item=start,
            n_items=stop - start,
            codes=freeze(kept),
            offsets=freeze((offsets[start : stop + 1] - offsets[start]).astype(np.int32 if many else np.int64)),
            rows=freeze(rows),
            amount=nothing if responses.amount is None else freeze(responses.amount[answers]),
            gold=freeze(np.empty(0, np.int32) if gold is None else gold[start:stop].astype(np.int32)),
            sequences=freeze(
                np.empty(0, np.int64) if sequences is None else sequences.offsets[first : last + 1] - start
            ),
            log_prior=unknown if known is None else freeze(known[start:stop].copy()),
            answered=freeze(np.empty(0, np.bool_) if all_told else answered[start:stop].copy()),
            total_size=total_size,
            anchor=unknown,
            soft=freeze(soft[answers]) if soft.shape[1] else NO_VOTES,
        )
        release_mapped()
        return block

    parts = side_by_side(lambda start, stop: list(map(cut, range(start, stop))), len(runs), least=1)
    return [block for part in parts for block in part]
