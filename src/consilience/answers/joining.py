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

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arguments import is_among
from ..errors import (
    InputError,
    ManyQuestionsError,
    Sentence,
    listing,
    parameter_error,
    plural,
    quietly,
    shorten,
    warn_of,
)
from ..kernels import Floats, Truths
from . import LONG, MATRIX, recognise, translate
from .blocked import keep_workers
from .classes import extend_scale
from .columns import Codes, Indices, Values, find_missing, objects, to_column, to_values
from .items import Sequences, join_keys, key_of
from .long_tables import TableOptions, arrange_answers, find_columns, sort_rows
from .responses import Answers, empty_responses, keep_weights
from .slips import Source, warn_of_slips
from .soft_votes import Probabilities, relabel
from .tables import ROLES, Table
from .tagging import SCHEMES, complete_tags, looks_tagged
from .vocabulary import Union, count_codes, encode_in_order_of_appearance, keep_values, lookup


def read_further(table: Table, old: Answers, duplicates: str, format: str | None = None) -> tuple[Answers, Retracted]:
    """Return the answers of a table, and those of the old ones that it takes back.

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
    names = _name_columns(table, old)
    columns = find_columns(table, names)
    table, rows = _split_missing(table, columns, duplicates)
    taken_back = NOTHING
    if len(rows):
        if duplicates == "last":
            taken_back = _find_retracted(table.keep(rows), columns, old)
        else:
            _check_unanswered(table.keep(rows), columns, old)
        table = table.keep(np.setdiff1d(np.arange(table.n_rows), rows, assume_unique=True))
    if not table.n_rows and len(rows):
        return no_answers(old).read_from(columns=columns), taken_back
    gold = columns_of_gold(table, old)
    policy = "error" if "weight" in columns else duplicates
    options = TableOptions(duplicates=policy, normalise=old.normalised, gold=gold, format=LONG, rescale=True)
    # What is to be said of the labels is said of all together.
    with quietly(), tell_duplicates("weight" in columns):
        return arrange_answers(table, names, options), taken_back


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


def columns_of_gold(table: Table, old: Answers) -> str | bool:
    """Return the column of known labels, if the old answers came with one and this table has it; else False."""
    name = old.columns.get("gold")
    return name if name is not None and name in table.names else False


def _name_columns(table: Table, old: Answers) -> dict[str, str | None]:
    """Return the names of the columns that are not to be found by their usual names."""
    names: dict[str, str | None] = dict.fromkeys(ROLES)
    if old.sequences is not None:
        names |= {role: table.need(role, parameter=role) for role in ("sequence", "position")}
    elif "item" in old.columns and old.columns["item"] in table.names:
        names["item"] = old.columns["item"]
    else:
        names["item"] = table.need("item", parameter="item")
    for role in ("weight", "order"):
        name = old.columns.get(role)
        names[role] = name if name in table.names else None
    return names


def _split_missing(table: Table, columns: dict[str, str], duplicates: str) -> tuple[Table, Indices]:
    """Return the rows that count, and which of these have no label."""
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


def _check_unanswered(table: Table, columns: dict[str, str], old: Answers) -> None:
    """Warn that rows without a label are left out; raise an error if the old answers have one in their place."""
    rows, _ = _find_given(table, columns, old)
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


def _find_retracted(table: Table, columns: dict[str, str], old: Answers) -> Retracted:
    """Return the answers that the rows of a table take back; a warning tells if some are not there."""
    rows, taken_back = _find_given(table, columns, old)
    n_lost = table.n_rows - len(rows)
    if n_lost:
        rows_of = f"{plural(n_lost, 'row')} of {table.name} without a label"
        warn_of(f"{rows_of} {'takes' if n_lost == 1 else 'take'} back nothing: there is no such answer.")
    return taken_back


def _find_given(table: Table, columns: dict[str, str], old: Answers) -> tuple[Indices, Retracted]:
    """Return the rows whose worker answered their item before, and these items and workers."""
    keys = [table.read(columns[role]) for role in ("item", "sequence", "position") if role in columns]
    item, worker = old.find_items(keys), lookup(old.workers, table.read(columns["worker"]))
    known = np.flatnonzero((item >= 0) & (worker >= 0))
    item, worker = item[known], worker[known]
    items, place = np.unique(item, return_inverse=True)
    answers, owner = old.answers_about(items)
    given = np.isin(place * old.n_workers + worker, owner * old.n_workers + old.worker[answers])
    return known[given], Retracted(item[given], worker[given])


def no_answers(old: Answers) -> Answers:
    """Return no answers about no items, of the same kind as the old ones."""
    keys = old.keys
    if isinstance(keys, Sequences):
        nothing: Values | Sequences = Sequences(keys.ids[:0], np.zeros(1, np.int64), keys.position[:0])
    else:
        nothing = keys[:0]
    return empty_responses(nothing, old.workers[:0], old.labels[:0], old.classes[:0], old.normalised)


POLICIES = ("error", "last")


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


class Retracted(NamedTuple):
    """Answers to take back: the item and the worker of each, by their index among the old ones."""

    item: Indices
    worker: Indices


NOTHING = Retracted(np.empty(0, np.int64), np.empty(0, np.int64))


def check_join_policy(duplicates: object) -> None:
    """Raise an error unless there is such a policy for answers that are there already."""
    if not is_among(duplicates, POLICIES):
        raise parameter_error("duplicates", "update", "'error' or 'last'", duplicates)


def join_responses(old: Answers, new: Answers, duplicates: str = "error", retracted: Retracted = NOTHING) -> Joined:
    """Return the answers of both, as reading both tables together would give them.

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
    there = _list_touched(old, item, item_of_new, workers, labels, retracted)
    coming = AnswerRows(
        item_of_new[new.item_of_answer()],
        workers.new[new.worker],
        labels.new[new.label],
        new.weights(),
        new.orders(),
        _vote_on(new, labels.new, len(labels.values)),
    )
    n_workers = len(workers.values)
    repeated, corrected = _compare(there.answers, coming, n_workers)
    if duplicates == "error" and len(corrected):
        raise _clash_error(keys, workers.values, labels.values, there.answers, coming, corrected)
    taken_back = item[retracted.item] * n_workers + workers.old[retracted.worker]
    gone = there.which[np.isin(there.answers.pairs(n_workers), np.append(taken_back, corrected))]
    coming = coming.keep(~np.isin(coming.pairs(n_workers), repeated))
    joined = _lay_together(old, keys, item, workers, labels, gone, coming)
    if len(gone):
        joined = _drop_unheard(joined, workers.old[np.unique(old.worker[gone])], labels.old[np.unique(old.label[gone])])
    classes = _join_classes(old, joined.labels)
    joined = replace(joined, classes=classes, positions=old.place(classes))
    added = labels.values[np.setdiff1d(labels.new, labels.old)]
    if len(added):
        _doubt_labels(joined, added)
    n_retracted = len(np.setdiff1d(taken_back, corrected))
    n_new = np.bincount(np.unique(coming.pairs(n_workers)) // n_workers, minlength=joined.n_items)
    n_new_workers = len(np.setdiff1d(workers.new, workers.old))
    return Joined(joined, item, n_new, len(corrected), n_retracted, len(repeated), n_new_workers)


class AnswerRows(NamedTuple):
    """Some answers, by the codes that all answers have together."""

    item: Indices
    worker: Codes
    label: Codes
    weight: Floats
    order: Floats
    votes: Probabilities  # (n, L) of soft votes; of others (n, 0)

    def pairs(self, n_workers: int) -> Indices:
        """Return one number for the item and the worker of each answer."""
        return np.asarray(self.item * n_workers + self.worker)

    def keep(self, which: Truths | Indices) -> AnswerRows:
        """Return some of the answers."""
        return AnswerRows(*(array[which] for array in self))  # type: ignore[arg-type]


class Touched(NamedTuple):
    """Old answers to items that are spoken of again: which they are, and their codes among all answers."""

    which: Indices
    answers: AnswerRows


def _check_kinds(old: Answers, new: Answers) -> None:
    """Raise an error for answers that cannot be joined."""
    if (old.sequences is None) != (new.sequences is None):
        there, here = ("are not", "are") if old.sequences is None else ("are", "are not")
        raise InputError(
            f"The items of the fit {there} in sequences, and those of the new answers {here}.",
            "Read the new answers as the others were read.",
        )
    if new.silence_counts and (not old.silence_counts or old.background != new.background):
        raise InputError(
            "The new answers must take silence as those of the fit did.",
            Sentence("Read them with the same {abstain} and {background}."),
        )
    if old.n_responses and new.n_responses and (old.soft is None) != (new.soft is None):
        there, here = ("labels", "probabilities") if old.soft is None else ("probabilities", "labels")
        raise InputError(
            f"The answers of the fit are {there}, and the new ones are {here}.",
            "Read the new answers as the others were read.",
        )


def _list_touched(
    old: Answers, item: Indices, item_of_new: Indices, workers: Union, labels: Union, retracted: Retracted
) -> Touched:
    """Return the old answers to items that new answers, or retractions, are about."""
    spoken = np.zeros(max(int(item.max(initial=-1)), int(item_of_new.max(initial=-1))) + 1, bool)
    spoken[item_of_new] = True
    spoken[item[retracted.item]] = True
    items = np.flatnonzero(spoken[item])
    index, owner = old.answers_about(items)
    codes = workers.old[old.worker[index]], labels.old[old.label[index]]
    votes = _vote_on(old, labels.old, len(labels.values))[index]
    return Touched(index, AnswerRows(item[items][owner], *codes, old.weights(index), old.orders(index), votes))


def _compare(there: AnswerRows, coming: AnswerRows, n_workers: int) -> tuple[Indices, Indices]:
    """Return the pairs of item and worker whose answer is the same in both, and those whose answer is another one."""
    if there.votes.size:
        return _compare_votes(there, coming, n_workers)
    pair = np.concatenate([there.pairs(n_workers), coming.pairs(n_workers)])
    is_later = np.repeat([False, True], [len(there.item), len(coming.item)])
    pairs = np.intersect1d(pair[~is_later], pair[is_later])
    shared = np.flatnonzero(np.isin(pair, pairs))
    label, weight = (
        np.concatenate(both)[shared] for both in ((there.label, coming.label), (there.weight, coming.weight))
    )
    # The answers are the same if each label with its weight is as often in both.
    order = np.lexsort((weight, label, pair[shared]))
    rows = np.stack([pair[shared], label, weight.view(np.int64)])[:, order]
    first = np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))[: len(order)]
    balance = np.bincount(np.cumsum(first) - 1, np.where(is_later[shared[order]], 1, -1))
    other = np.unique(rows[0][first][balance != 0])
    return np.setdiff1d(pairs, other, assume_unique=True), other


def _compare_votes(there: AnswerRows, coming: AnswerRows, n_workers: int) -> tuple[Indices, Indices]:
    """Return the same of soft votes, by their probabilities: of two equal ones either may have given the label."""
    pairs, before, after = np.intersect1d(there.pairs(n_workers), coming.pairs(n_workers), return_indices=True)
    differs = (there.votes[before] != coming.votes[after]).any(axis=1)
    return np.asarray(pairs[~differs]), np.asarray(pairs[differs])


def _lay_together(
    old: Answers,
    keys: Values | Sequences,
    item: Indices,
    workers: Union,
    labels: Union,
    gone: Indices,
    coming: AnswerRows,
) -> Answers:
    """Return all answers in the order of their items: of each item the old ones that are left, then the new ones."""
    stays = np.ones(old.n_responses, bool)
    stays[gone] = False
    kept = old if stays.all() else old.keep(stays)
    weighted = kept.weight is not None or not (coming.weight == 1.0).all()
    ordered = kept.order is not None or not np.isnan(coming.order).all()
    about, soft = np.concatenate([item[kept.item_of_answer()], coming.item]), None
    if old.soft is not None:
        votes = np.concatenate([_vote_on(kept, labels.old, len(labels.values)), coming.votes])
        soft = votes[np.argsort(about, kind="stable")]
    offsets, worker, label, weight, order = sort_rows(
        about,
        keys,
        np.concatenate([workers.old[kept.worker], coming.worker]),
        np.concatenate([labels.old[kept.label], coming.label]),
        np.concatenate([kept.weights(), coming.weight]) if weighted else None,
        np.concatenate([kept.orders(), coming.order]) if ordered else None,
    )
    return replace(
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


def _vote_on(r: Answers, label: Codes, n_labels: int) -> Probabilities:
    """Return what each answer gives to all labels together, `label` of which are its own; nothing if it is not soft."""
    if r.soft is None:
        return np.empty((r.n_responses, n_labels if not r.n_responses else 0), np.float32)
    return relabel(r.soft, label, n_labels)


def _drop_unheard(r: Answers, worker: Codes, label: Codes) -> Answers:
    """Return the answers without those of some workers and labels of which there is no answer left."""
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
    """Return the classes: all labels if they were so before, with those that a tag scheme or the background adds.

    Classes that were named stay as they are. On a scale only numbers have their place.
    """
    if old.positions is not None:
        return extend_scale(old.classes, old.positions, old.labels, labels)
    if _are_same(old.classes, old.labels):
        return labels
    if old.silence_counts and _are_same(old.classes, _with_background(old.labels, old.background)):
        return _with_background(labels, old.background)
    if looks_tagged(old.labels) and any(_are_same(old.classes, complete_tags(old.labels, each)) for each in SCHEMES):
        return labels  # the model adds the others again
    return old.classes


def _with_background(labels: Values, background: object) -> Values:
    has = lookup(labels, to_column([background]))[0] >= 0
    return labels if has else to_values(to_column([background, *labels.tolist()]))


def _are_same(first: Values, second: Values) -> bool:
    return len(first) == len(second) and first.tolist() == second.tolist()


def _doubt_labels(joined: Answers, added: Values) -> None:
    """Warn of new labels that look like a slip, or are no classes."""
    warn_of_slips(joined, Source(unseen=bool(len(added))))
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


def _clash_error(
    keys: Values | Sequences, workers: Values, labels: Values, there: AnswerRows, coming: AnswerRows, clash: Indices
) -> InputError:
    """Return the error that workers give other answers than before; `clash` are their pairs of item and worker."""
    item, worker = divmod(int(clash[0]), len(workers))
    who, key = workers[[worker]].tolist()[0], key_of(keys, item)
    said = [listing(labels[each.label[each.pairs(len(workers)) == clash[0]]].tolist()) for each in (there, coming)]
    return InputError(
        f"Worker {shorten(who)} answered item {shorten(key)} before, with {said[0]}, and now with {said[1]}. "
        f"{plural(len(clash), 'such pair')} in all.",
        Sentence("To let new answers take the place of old ones, use {duplicates}.", duplicates="last"),
        keyword="duplicates",
    )


def merge_classes(r: Answers, labels: Values, classes: Values) -> Values:
    """Return the classes of earlier answers and of these.

    If the classes of these are their labels, as they are if none are named, a label that was no class before
    ("unsure") is none now.
    """
    new = r.classes
    if np.array_equal(new, r.labels):
        column = to_column(new)
        new = new[(lookup(labels, column) < 0) | (lookup(classes, column) >= 0)]
    return Union.of(classes, new).values


def grow(r: Answers, workers: Values, labels: Values, classes: Values, positions: tuple[float, ...] | None) -> Answers:
    """Return the same answers, with the workers, labels and classes of earlier ones among theirs, on their scale."""
    who, said = Union.of(workers, r.workers), Union.of(labels, r.labels)
    scaled = r.scaled_as(classes, positions)
    if positions is not None:
        scaled = scaled.with_classes(extend_scale(classes, positions, labels, said.values))
    return replace(
        scaled,
        worker=who.new[r.worker],
        label=said.new[r.label],
        soft=None if r.soft is None else relabel(r.soft, said.new, len(said.values)),
        workers=who.values,
        labels=said.values,
        classes=merge_classes(r, labels, classes) if positions is None else scaled.classes,
    )
