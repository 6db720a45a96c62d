"""Answers that come later: a table of them, read as those were that are there, and joined with these.

The result is what reading one table with both would give: items that are new come after the others, in the order in
which they appear; workers and labels are sorted, if they were before; positions of a sequence stand in their order.

A worker's answer to an item is the set of its labels and weights, or its probabilities. If it is given again as it was,
nothing happens. If it is another one, that is an error with ``duplicates="error"``, and with "last" the new answer
takes the place of the old one. An answer can also be retracted. An item stays if all of its answers are. A worker all
of whose answers are gone, and a label that nobody says any more, are gone too. Of answers without an order it is not
known when they were given.

In a table with ``duplicates="last"``, a row without a label takes an answer back. Otherwise it is a question that was
not answered, and is left out. It is an error if there is an answer to it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_among
from ..errors import (
    DataWarning,
    InputError,
    ManyQuestionsError,
    Sentence,
    listing,
    parameter_error,
    plural,
    quietly,
    shorten,
    warn,
    warn_of,
)
from ..kernels import Floats, Truths
from . import LONG, MATRIX, recognise, translate
from .answers import Answers, empty_responses, keep_weights
from .classes import extend_scale
from .columns import (
    Codes,
    Column,
    Indices,
    Union,
    Values,
    count_codes,
    encode_in_order_of_appearance,
    find_missing,
    keep_values,
    lookup,
    objects,
    to_column,
    to_values,
)
from .items import Sequences, join_keys, key_of
from .long_tables import find_columns, sort_rows
from .slips import warn_of_slips
from .soft_votes import Probabilities, relabel
from .tables import ROLES, Table, open_frame
from .tagging import SCHEMES, complete_tags, looks_tagged

POLICIES = ("error", "last")


class Retracted(NamedTuple):
    """Answers to take back: the item and the worker of each, by their index among the old ones."""

    item: Indices
    worker: Indices


NOTHING = Retracted(np.empty(0, np.int64), np.empty(0, np.int64))


def check_join_policy(duplicates: object) -> None:
    """Raise an error unless there is such a policy for answers that are there already."""
    if not is_among(duplicates, POLICIES):
        raise parameter_error("duplicates", "update", "'error' or 'last'", duplicates)


def read_further(table: Table, old: Answers, duplicates: str, format: str | None = None) -> tuple[Answers, Retracted]:
    """Read the answers of a table, and find those of the old ones that it takes back.

    Columns that have the names of the old answers' play the same roles, and labels are normalised if the old ones are.
    With ``duplicates="last"``, the last row of a worker about an item counts, unless answers have weights: then several
    rows are an answer that is spread over labels. Known labels beside the answers are read if the old table had some.

    Parameters
    ----------
    table : Table
        Further answers.
    old : Answers
        Those that are there.
    duplicates : {"error", "last"}
        As for `update`.
    format : str, optional
        The form of the table, as in `Answers.from_frame`.
    """
    table, unnamed = table.prefer(old.columns), dict.fromkeys(ROLES)
    if format is None and old.provenance.format == MATRIX and recognise(table, unnamed) is not None:
        format = MATRIX  # few rows may hold few -1
    try:
        table = translate(table, format, unnamed)
    except ManyQuestionsError:  # the old answers are those to one of them
        table = translate(table, format, {**unnamed, "label": old.columns.get("label")})
    # Roles that are not to be found by their usual names.
    names: dict[str, Any] = dict.fromkeys(ROLES)
    if old.sequences is not None:
        names |= {role: table.need(role, parameter=role) for role in ("sequence", "position")}
    else:
        same = "item" in old.columns and old.columns["item"] in table.names
        names["item"] = old.columns["item"] if same else table.need("item", parameter="item")
    for role in ("weight", "order"):
        names[role] = old.columns.get(role) if old.columns.get(role) in table.names else None
    columns = find_columns(table, names)
    table, rows = _split_missing(table, columns, duplicates)
    taken_back = NOTHING
    if len(rows):
        taken_back = _read_retracted(table.keep(rows), columns, old, duplicates)
        if len(rows) == table.n_rows:
            return no_answers(old).read_from(columns=columns), taken_back
        table = table.keep(np.setdiff1d(np.arange(table.n_rows), rows, assume_unique=True))
    known = old.columns.get("gold")
    # What is to be said of the labels is said of all together.
    with quietly(), tell_duplicates("weight" in columns):
        new = Answers.from_frame(
            table,
            **names,
            duplicates="error" if "weight" in columns else duplicates,
            normalise=old.normalised,
            gold=known if known is not None and known in table.names else False,
            format=LONG,
            rescale=table.soft is not None,
        )
    return new, taken_back


@contextmanager
def tell_duplicates(weighted: bool = False) -> Iterator[None]:
    """Say what can be done here about several answers of a worker about an item: less than elsewhere."""
    try:
        yield
    except InputError as error:
        if error.keyword != "duplicates":
            raise
        remedies: tuple[str | Sentence, ...] = (
            "Remove them.",
            Sentence("Or let the last one count, with {duplicates}.", duplicates="last"),
        )
        if weighted:
            remedies = ("Leave one row for each label, with weights that sum to at most 1.",)
        raise InputError(error.problem, *remedies, keyword="duplicates") from None


def _split_missing(table: Table, columns: dict[str, str], duplicates: str) -> tuple[Table, Indices]:
    """The rows that count, and which of these have no label."""
    missing = find_missing(table.read(columns["label"]))
    if not len(missing) or duplicates != "last":
        return table, missing
    pair = np.zeros(table.n_rows, np.int64)
    for role in ("item", "sequence", "position", "worker"):
        if role in columns:
            codes, values = encode_in_order_of_appearance(table.values(columns[role], "Fill it in or drop the row."))
            pair = np.unique(pair * len(values) + codes, return_inverse=True)[1]
    is_missing = np.zeros(table.n_rows, bool)
    is_missing[missing] = True
    if "weight" in columns:
        counts = ~(is_missing & (np.bincount(pair, ~is_missing) > 0)[pair])
    else:
        counts = np.zeros(table.n_rows, bool)
        counts[table.n_rows - 1 - np.unique(pair[::-1], return_index=True)[1]] = True
    rows = np.flatnonzero(counts)
    return table.keep(rows), np.flatnonzero(is_missing[rows])


def _read_retracted(table: Table, columns: dict[str, str], old: Answers, duplicates: str) -> Retracted:
    """The answers that rows without a label take back, with ``duplicates="last"``; else these are no answers yet.

    A warning tells of rows that are left out, and of those that take nothing back.
    """
    keys = [table.read(columns[role]) for role in ("item", "sequence", "position") if role in columns]
    item, worker = old.find_items(keys), lookup(old.workers, table.read(columns["worker"]))
    known = np.flatnonzero((item >= 0) & (worker >= 0))
    item, worker = item[known], worker[known]
    items, place = np.unique(item, return_inverse=True)
    answers, owner = old.answers_about(items)
    given = np.isin(place * old.n_workers + worker, owner * old.n_workers + old.worker[answers])
    rows, n_lost = known[given], table.n_rows - int(given.sum())
    if duplicates == "last":
        if n_lost:
            rows_of = f"{plural(n_lost, 'row')} of {table.name} without a label"
            warn_of(f"{rows_of} {'takes' if n_lost == 1 else 'take'} back nothing: there is no such answer.")
        return Retracted(item[given], worker[given])
    if len(rows):
        raise InputError(
            f"{plural(len(rows), 'row')} of {table.name} without a label would take back an answer that was given "
            f"before; the first is at {table.locate(int(rows[0]))}.",
            Sentence("To take answers back, use {duplicates}.", duplicates="last"),
            "To keep them, drop these rows.",
            keyword="duplicates",
        )
    verb = "has no label and is" if table.n_rows == 1 else "have no label and are"
    warn_of(
        f"{plural(table.n_rows, 'row')} of {table.name} {verb} left out: not answered yet.",
        "An update takes lists of questions that are answered in part. Where answers are first read, such rows are "
        "an error, since they may be a slip.",
    )
    return NOTHING


def no_answers(old: Answers) -> Answers:
    """No answers about no items, of the same kind as the old ones."""
    keys: Values | Sequences = old.keys[:0] if not isinstance(old.keys, Sequences) else old.keys
    if isinstance(keys, Sequences):
        keys = Sequences(keys.ids[:0], np.zeros(1, np.int64), keys.position[:0])
    return empty_responses(keys, old.workers[:0], old.labels[:0], old.classes[:0], old.normalised)


class Joined(NamedTuple):
    """All answers, and what is new among them.

    Attributes
    ----------
    responses : Answers
        Old and new answers.
    item : int64 array (n_old_items,)
        Where each old item is now.
    n_new : int64 array (n_items,)
        New answers to each item, corrected ones among them. One that is spread over labels is one answer.
    n_corrected, n_retracted, n_repeated : int
        Answers that took the place of others, that were retracted, and that were there already.
    n_new_workers : int
        Workers who were not there.
    """

    responses: Answers
    item: Indices
    n_new: Indices
    n_corrected: int = 0
    n_retracted: int = 0
    n_repeated: int = 0
    n_new_workers: int = 0

    @property
    def n_new_items(self) -> int:
        """Items that were not there."""
        return self.responses.n_items - len(self.item)

    @property
    def n_added(self) -> int:
        """New answers that did not take the place of others."""
        return int(self.n_new.sum()) - self.n_corrected

    @property
    def n_changed(self) -> int:
        """Answers that are new, corrected or retracted."""
        return int(self.n_new.sum()) + self.n_retracted


class AnswerRows(NamedTuple):
    """Some answers, by the codes that all answers have together."""

    item: Indices
    worker: Codes
    label: Codes
    weight: Floats
    order: Floats
    votes: Probabilities  # (n, L) of soft votes; of others (n, 0)
    pair: Indices  # one number for the item and the worker

    @classmethod
    def of(cls, r: Answers, item: Indices, worker: Codes, label: Codes, sizes: tuple[int, int, int]) -> AnswerRows:
        """All answers; `item`, `worker` and `label` are the codes of each item, worker and label of theirs.

        `sizes` count all workers and labels, and the columns of soft votes.
        """
        n_workers, n_labels, width = sizes
        about, who = item[r.item_of_answer()], worker[r.worker]
        votes = np.empty((r.n_responses, width), np.float32) if r.soft is None else relabel(r.soft, label, n_labels)
        pair = np.asarray(about * n_workers + who)
        return cls(about, who, label[r.label], r.weights(), r.orders(), votes, pair)

    def keep(self, which: Truths | Indices) -> AnswerRows:
        """Some of the answers."""
        return AnswerRows(*(array[which] for array in self))  # type: ignore[arg-type]


def join_responses(old: Answers, new: Answers, duplicates: str = "error", retracted: Retracted = NOTHING) -> Joined:
    """Join the answers of both, as reading both tables together would give them.

    Parameters
    ----------
    old, new : Answers
        Answers that are there, and further ones.
    duplicates : {"error", "last"}
        What to do if a worker's answer to an item is there already, and was another one.
    retracted : Retracted
        Answers to take away from the old ones. A new answer of the same worker to the same item comes in its place.
    """
    check_join_policy(duplicates)
    _check_kinds(old, new)
    if old.normalised:
        new = new.spelled_as(objects([*old.labels.tolist(), *old.classes.tolist()]))
    keys, item, item_of_new = join_keys(old.keys, new.keys)
    workers, labels = Union.of(old.workers, new.workers), Union.of(old.labels, new.labels)
    n_workers, n_labels = len(workers.values), len(labels.values)
    sizes = n_workers, n_labels, 0 if old.soft is None and new.soft is None else n_labels
    coming = AnswerRows.of(new, item_of_new, workers.new, labels.new, sizes)
    # Old answers to items that new answers, or retractions, are about.
    spoken = np.zeros(max(int(item.max(initial=-1)), int(item_of_new.max(initial=-1))) + 1, bool)
    spoken[item_of_new] = True
    spoken[item[retracted.item]] = True
    touched = spoken[item][old.item_of_answer()]
    there = AnswerRows.of(old.keep(touched), item, workers.old, labels.old, sizes)
    repeated, corrected = _compare(there, coming)
    if duplicates == "error" and len(corrected):
        who, key = workers.values[[corrected[0] % n_workers]].tolist()[0], key_of(keys, int(corrected[0]) // n_workers)
        said = [listing(labels.values[each.label[each.pair == corrected[0]]].tolist()) for each in (there, coming)]
        raise InputError(
            f"Worker {shorten(who)} answered item {shorten(key)} before, with {said[0]}, and now with {said[1]}. "
            f"{plural(len(corrected), 'such pair')} in all.",
            Sentence("To let new answers take the place of old ones, use {duplicates}.", duplicates="last"),
            keyword="duplicates",
        )
    taken_back = item[retracted.item] * n_workers + workers.old[retracted.worker]
    gone = np.flatnonzero(touched)[np.isin(there.pair, np.append(taken_back, corrected))]
    coming = coming.keep(~np.isin(coming.pair, repeated))
    # Of each item first the old answers that are left, then the new ones.
    stays = np.ones(old.n_responses, bool)
    stays[gone] = False
    kept = old if not len(gone) else old.keep(stays)
    weighted = kept.weight is not None or not (coming.weight == 1.0).all()
    ordered = kept.order is not None or not np.isnan(coming.order).all()
    votes = None if kept.soft is None else np.concatenate([relabel(kept.soft, labels.old, n_labels), coming.votes])
    offsets, worker, label, (weight, order, soft) = sort_rows(
        np.concatenate([item[kept.item_of_answer()], coming.item]),
        keys,
        np.concatenate([workers.old[kept.worker], coming.worker]),
        np.concatenate([labels.old[kept.label], coming.label]),
        np.concatenate([kept.weights(), coming.weight]) if weighted else None,
        np.concatenate([kept.orders(), coming.order]) if ordered else None,
        votes,
    )
    joined = replace(
        old,
        offsets=offsets,
        worker=worker,
        label=label,
        weight=keep_weights(weight),
        order=order,
        soft=soft,
        workers=workers.values,
        labels=labels.values,
        keys=keys,
        provenance=old.provenance._replace(gold=None, origin=None),
    )
    if len(gone):
        joined = _drop_unused(joined, workers.old[np.unique(old.worker[gone])], labels.old[np.unique(old.label[gone])])
    classes = _join_classes(old, joined.labels)
    joined = replace(joined, classes=classes, positions=old.place(classes))
    added = labels.values[np.setdiff1d(labels.new, labels.old)]
    if len(added):
        _doubt_labels(joined, added)
    n_retracted = len(np.setdiff1d(taken_back, corrected))
    n_new = np.bincount(np.unique(coming.pair) // n_workers, minlength=joined.n_items)
    n_new_workers = len(np.setdiff1d(workers.new, workers.old))
    return Joined(joined, item, n_new, len(corrected), n_retracted, len(repeated), n_new_workers)


def _check_kinds(old: Answers, new: Answers) -> None:
    """Raise an error for answers that cannot be joined."""
    remedy: str | Sentence = "Read the new answers as the others were read."
    if (old.sequences is None) != (new.sequences is None):
        there, here = ("are not", "are") if old.sequences is None else ("are", "are not")
        problem = f"The items of the fit {there} in sequences, and those of the new answers {here}."
    elif new.silence_counts and (not old.silence_counts or old.background != new.background):
        problem = "The new answers must take silence as those of the fit did."
        remedy = Sentence("Read them with the same {abstain} and {background}.")
    elif old.n_responses and new.n_responses and (old.soft is None) != (new.soft is None):
        there, here = ("labels", "probabilities") if old.soft is None else ("probabilities", "labels")
        problem = f"The answers of the fit are {there}, and the new ones are {here}."
    else:
        return
    raise InputError(problem, remedy)


def _compare(there: AnswerRows, coming: AnswerRows) -> tuple[Indices, Indices]:
    """The pairs of item and worker whose answer is the same in both, and those whose answer is another one."""
    if there.votes.size:  # of two equal probabilities either may have given the label
        pairs, before, after = np.intersect1d(there.pair, coming.pair, return_indices=True)
        differs = (there.votes[before] != coming.votes[after]).any(axis=1)
        return np.asarray(pairs[~differs]), np.asarray(pairs[differs])
    pairs = np.intersect1d(there.pair, coming.pair)
    both = there.keep(np.isin(there.pair, pairs)), coming.keep(np.isin(coming.pair, pairs))
    # The answers are the same if each label with its weight is as often in both.
    rows = np.concatenate([np.stack([each.pair, each.label, each.weight.view(np.int64)]) for each in both], axis=1)
    found, place = np.unique(rows, axis=1, return_inverse=True)
    balance = np.bincount(place.ravel(), np.repeat([-1, 1], [len(each.pair) for each in both]), found.shape[1])
    other = np.unique(found[0][balance != 0])
    return np.setdiff1d(pairs, other, assume_unique=True), other


def _drop_unused(r: Answers, worker: Codes, label: Codes) -> Answers:
    """The answers without those of some workers and labels of which there is no answer left."""
    heard, said = np.ones(r.n_workers, bool), np.ones(r.n_labels, bool)
    heard[worker] = count_codes(r.worker, r.n_workers)[worker] > 0
    if r.soft is None:  # a soft vote speaks of all labels
        said[label] = count_codes(r.label, r.n_labels)[label] > 0
    if heard.all() and said.all():
        return r
    if not said.any():
        raise InputError("No answer would be left.", "Fit a new model.")
    spoken, labels = keep_values(r.label, r.labels, said)
    return replace(keep_workers(r, heard), label=spoken, labels=labels)


def _join_classes(old: Answers, labels: Values) -> Values:
    """The classes: all labels if they were so before, with those that a tag scheme or the background adds.

    Classes that were named stay as they are. On a scale only numbers have their place.
    """

    def with_background(said: Values) -> Values:
        has = lookup(said, to_column([old.background]))[0] >= 0
        return said if has else to_values(to_column([old.background, *said.tolist()]))

    classes = old.classes.tolist()
    if old.positions is not None:
        return extend_scale(old.classes, old.positions, old.labels, labels)
    if classes == old.labels.tolist():
        return labels
    if old.silence_counts and classes == with_background(old.labels).tolist():
        return with_background(labels)
    if looks_tagged(old.labels) and any(classes == complete_tags(old.labels, each).tolist() for each in SCHEMES):
        return labels  # the model adds the others again
    return old.classes


def _doubt_labels(joined: Answers, added: Values) -> None:
    """Warn of new labels that look like a slip, or are no classes."""
    warn_of_slips(joined, silence=False)
    is_class = lookup(joined.classes, to_column(added)) >= 0
    unknown = added[~is_class]
    levels = added[np.isin(lookup(joined.classes, to_column(added)), (0, len(joined.classes) - 1))]  # the new ends
    if len(levels) and joined.positions is not None:
        extend = "extends" if len(levels) == 1 else "extend"
        warn_of(
            f"The new {'label' if len(levels) == 1 else 'labels'} {listing(levels.tolist())} {extend} the scale: its "
            f"levels are now {listing(joined.classes.tolist())}.",
            "If that is a slip, correct the answers, and update the earlier model with these.",
        )
    if len(unknown):
        verb = "is no class" if len(unknown) == 1 else "are no classes"
        warn_of(
            f"The new {'label' if len(unknown) == 1 else 'labels'} {listing(unknown.tolist())} {verb}: the classes "
            f"were named when the model was fitted, and are {listing(joined.classes.tolist())}.",
            "To add a class, fit again.",
        )


def grow(r: Answers, workers: Values, labels: Values, classes: Values, positions: tuple[float, ...] | None) -> Answers:
    """The same answers, with the workers, labels and classes of earlier ones among theirs, on their scale.

    If the classes of these are their labels, as they are if none are named, a label that was no class before
    ("unsure") is none now.
    """
    who, said = Union.of(workers, r.workers), Union.of(labels, r.labels)
    scaled = r.scaled_as(classes, positions)
    if positions is not None:
        scaled = scaled.with_classes(extend_scale(classes, positions, labels, said.values))
    else:
        new = r.classes
        if np.array_equal(new, r.labels):
            new = new[(lookup(labels, to_column(new)) < 0) | (lookup(classes, to_column(new)) >= 0)]
        scaled = replace(scaled, classes=Union.of(classes, new).values)
    return replace(
        scaled,
        worker=who.new[r.worker],
        label=said.new[r.label],
        soft=None if r.soft is None else relabel(r.soft, said.new, len(said.values)),
        workers=who.values,
        labels=said.values,
    )


NOBODY: Values = np.empty(0, object)


def read_blocked(block: Any) -> Values:
    """Return the ids of workers to leave out: a list of them, or a table with a column worker."""
    if block is None:
        return NOBODY
    if isinstance(block, str):
        raise InputError(f"One worker to block is a list, too: [{block!r}].")
    is_table = isinstance(block, Table) or hasattr(block, "columns") or isinstance(block, dict)
    if not is_table:
        return _unique(to_column(block if hasattr(block, "__array__") else list(block), "The list of blocked workers"))
    table = open_frame(block, "the blocked workers")
    return _unique(table.values(table.need("worker")))


def _unique(column: Column) -> Values:
    values = to_values(column)
    if isinstance(column, np.ndarray) and {type(name) for name in column} == {int, str}:
        values = values.astype(str)  # in which numbers and their text are the same
    return encode_in_order_of_appearance(to_column(values))[1]


def leave_out(r: Answers, blocked: Values) -> Answers:
    """Return the answers without those of blocked workers; items, labels and classes stay.

    A warning tells which ids are no workers, and how many items have no answer left.
    """
    found = lookup(r.workers, to_column(blocked))
    check_blocked(blocked, blocked[found >= 0].tolist(), r.workers)
    if len(np.unique(found[found >= 0])) == r.n_workers:
        raise nobody_left()
    left = drop_workers(r, found[found >= 0])
    lost = int(np.sum((np.diff(left.offsets) == 0) & (np.diff(r.offsets) > 0)))
    if lost:
        verb = "has" if lost == 1 else "have"
        problem = f"{plural(lost, 'item')} {verb} no answer but those of blocked workers."
        warn(DataWarning(problem, "Have others answer these items.", keyword="block"))
    return left


def check_blocked(blocked: Values, found: Sequence[object], workers: Values) -> None:
    """Warn of blocked ids that are no workers, with those that are spelled alike; none at all is an error.

    `found` are the ids, or their texts, of those that are.
    """
    known = set(map(str, found))
    unknown = [str(name) for name in blocked.tolist() if str(name) not in known]
    if not unknown:
        return
    texts = {str(name).strip().lower(): name for name in workers.tolist()}
    close = {name: difflib.get_close_matches(name.strip().lower(), texts, n=1) for name in unknown[:3]}
    remedies = [f"Did you mean {texts[near[0]]!r} by {name!r}?" for name, near in close.items() if near]
    verb = "has" if len(unknown) == 1 else "have"
    problem = f"{plural(len(unknown), 'worker')} to block {verb} no answers here: {listing(unknown)}."
    if len(unknown) == len(blocked):
        raise InputError(problem, *remedies, f"The workers are {listing(workers.tolist())}.", keyword="block")
    warn(DataWarning(problem, *remedies, keyword="block"))


def nobody_left() -> InputError:
    """Return the error that all workers are blocked; a worker report, which has them all, is no list of some."""
    remedy = "Of a worker report, keep only those to leave out, such as those who answer as if by chance."
    return InputError("All workers are blocked: nobody is left.", remedy, keyword="block")


def drop_workers(r: Answers, workers: NDArray[np.int64]) -> Answers:
    """Return the answers without some of the workers, which are given by index."""
    kept = np.ones(r.n_workers, bool)
    kept[workers] = False
    return keep_workers(r.keep(kept[r.worker]), kept)


def keep_workers(r: Answers, kept: Truths) -> Answers:
    """Return the same answers with only the workers that are marked True, who gave all of them."""
    worker, workers = keep_values(r.worker, r.workers, kept)
    weight = None if r.silence_weight is None else r.silence_weight[kept]
    return replace(r, worker=worker, workers=workers, silence_weight=weight)
