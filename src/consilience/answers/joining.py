"""Answers that come later, joined with those that are there.

The result is what reading one table with both would give: items that are new come after the others, in the order in
which they appear; workers and labels are sorted, if they were before; positions of a sequence stand in their order.

A worker's answer to an item is the set of its labels and weights. If it is given again as it was, nothing happens. If
it is another one, that is an error with ``duplicates="error"``, and with "last" the new answer takes the place of the
old one. An answer can also be retracted. An item stays if all of its answers are. A worker all of whose answers are
gone, and a label that nobody says any more, are gone too. Of answers without an order it is not known when they were
given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..answers.columns import Indices
from ..arguments import is_among
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels.types import Floats, Truths
from .arrays import keep_weights
from .columns import Codes, Values, objects, to_column, to_values
from .items import Sequences, key_of
from .long_tables import sort_rows
from .responses import Responses
from .slips import Source, warn_of_slips
from .tagging import SCHEMES, complete_tags, looks_tagged
from .vocabulary import Union, add_values, count_codes, join_columns, keep_values, lookup

Indices = Indices
POLICIES = ("error", "last")


class Joined(NamedTuple):
    """All answers, and what is new among them.

    Attributes
    ----------
    responses : Responses
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

    responses: Responses
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


def join_responses(old: Responses, new: Responses, duplicates: str = "error", retracted: Retracted = NOTHING) -> Joined:
    """Return the answers of both, as reading both tables together would give them.

    Parameters
    ----------
    old, new : Responses
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
    keys, item, item_of_new = _join_keys(old, new)
    workers, labels = Union.of(old.workers, new.workers), Union.of(old.labels, new.labels)
    there = _list_touched(old, item, item_of_new, workers, labels, retracted)
    coming = Answers(
        item_of_new[new.item_of_answer()], workers.new[new.worker], labels.new[new.label], new.weights(), new.orders()
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
    joined = replace(joined, classes=_join_classes(old, joined.labels))
    added = labels.values[np.setdiff1d(labels.new, labels.old)]
    if len(added):
        _doubt_labels(joined, added)
    n_retracted = len(np.setdiff1d(taken_back, corrected))
    n_new = np.bincount(np.unique(coming.pairs(n_workers)) // n_workers, minlength=joined.n_items)
    n_new_workers = len(np.setdiff1d(workers.new, workers.old))
    return Joined(joined, item, n_new, len(corrected), n_retracted, len(repeated), n_new_workers)


class Answers(NamedTuple):
    """Some answers, by the codes that all answers have together."""

    item: Indices
    worker: Codes
    label: Codes
    weight: Floats
    order: Floats

    def pairs(self, n_workers: int) -> Indices:
        """Return one number for the item and the worker of each answer."""
        return np.asarray(self.item * n_workers + self.worker)

    def keep(self, which: Truths | Indices) -> Answers:
        """Return some of the answers."""
        return Answers(*(array[which] for array in self))  # type: ignore[arg-type]


class Touched(NamedTuple):
    """Old answers to items that are spoken of again: which they are, and their codes among all answers."""

    which: Indices
    answers: Answers


def _check_kinds(old: Responses, new: Responses) -> None:
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


def _join_keys(old: Responses, new: Responses) -> tuple[Values | Sequences, Indices, Indices]:
    """Return what identifies all items, and where the old and the new ones are among them."""
    if isinstance(old.keys, Sequences) and isinstance(new.keys, Sequences):
        return _join_sequences(old.keys, new.keys)
    assert not isinstance(old.keys, Sequences)
    assert not isinstance(new.keys, Sequences)
    keys, index = add_values(old.keys, new.keys, _find_few)
    return keys, np.arange(old.n_items), index


def _find_few(known: Values, wanted: Values) -> Indices:
    """Return the index of each of some values among the known ones, or -1, as `lookup` does.

    The known ones, of which there may be many more, are looked up among these: the smaller table is faster.
    """
    place = lookup(wanted, to_column(known))
    index = np.full(len(wanted), -1, np.int64)
    there = np.flatnonzero(place >= 0)
    index[place[there]] = there
    return index


def _join_sequences(old: Sequences, new: Sequences) -> tuple[Sequences, Indices, Indices]:
    """Return the sequences of both. Those that are there already may grow, at any place."""
    ids, owner = add_values(old.ids, new.ids)
    position = to_values(join_columns(to_column(old.position), to_column(new.position)))
    try:
        places, rank = np.unique(position, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"Old and new positions cannot be compared: {error}.", "Write them in the same way."
        ) from error
    code = np.concatenate([old.of_items(), owner[new.of_items()]]) * len(places) + rank
    items, first, place = np.unique(code, return_index=True, return_inverse=True)
    offsets = np.searchsorted(items, np.arange(len(ids) + 1) * len(places)).astype(np.int64)
    n_old = len(old.position)
    return Sequences(ids, offsets, position[first]), place[:n_old], place[n_old:]


def _list_touched(
    old: Responses, item: Indices, item_of_new: Indices, workers: Union, labels: Union, retracted: Retracted
) -> Touched:
    """Return the old answers to items that new answers, or retractions, are about."""
    spoken = np.zeros(max(int(item.max(initial=-1)), int(item_of_new.max(initial=-1))) + 1, bool)
    spoken[item_of_new] = True
    spoken[item[retracted.item]] = True
    items = np.flatnonzero(spoken[item])
    index, owner = old.answers_about(items)
    codes = workers.old[old.worker[index]], labels.old[old.label[index]]
    return Touched(index, Answers(item[items][owner], *codes, old.weights(index), old.orders(index)))


def _compare(there: Answers, coming: Answers, n_workers: int) -> tuple[Indices, Indices]:
    """Return the pairs of item and worker whose answer is the same in both, and those whose answer is another one."""
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


def _lay_together(
    old: Responses,
    keys: Values | Sequences,
    item: Indices,
    workers: Union,
    labels: Union,
    gone: Indices,
    coming: Answers,
) -> Responses:
    """Return all answers in the order of their items: of each item the old ones that are left, then the new ones."""
    stays = np.ones(old.n_responses, bool)
    stays[gone] = False
    kept = old if stays.all() else old.keep(stays)
    weighted = kept.weight is not None or not (coming.weight == 1.0).all()
    ordered = kept.order is not None or not np.isnan(coming.order).all()
    offsets, worker, label, weight, order = sort_rows(
        np.concatenate([item[kept.item_of_answer()], coming.item]),
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
        workers=workers.values,
        labels=labels.values,
        keys=keys,
        provenance=old.provenance._replace(gold=None, origin=None),
    )


def _drop_unheard(r: Responses, worker: Codes, label: Codes) -> Responses:
    """Return the answers without those of some workers and labels of which there is no answer left."""
    heard, said = np.ones(r.n_workers, bool), np.ones(r.n_labels, bool)
    heard[worker] = count_codes(r.worker, r.n_workers)[worker] > 0
    said[label] = count_codes(r.label, r.n_labels)[label] > 0
    if heard.all() and said.all():
        return r
    if not said.any():
        raise InputError("No answer would be left.", "Fit a new model.")
    (left, workers), (spoken, labels) = keep_values(r.worker, r.workers, heard), keep_values(r.label, r.labels, said)
    return replace(r, worker=left, label=spoken, workers=workers, labels=labels)


def _join_classes(old: Responses, labels: Values) -> Values:
    """Return the classes: all labels if they were so before, with those that a tag scheme or the background adds.

    Classes that were named stay as they are.
    """
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


def _doubt_labels(joined: Responses, added: Values) -> None:
    """Warn of new labels that look like a slip, or are no classes."""
    warn_of_slips(joined, Source(unseen=bool(len(added))))
    unknown = added[lookup(joined.classes, to_column(added)) < 0]
    if len(unknown):
        verb = "is no class" if len(unknown) == 1 else "are no classes"
        warn_of(
            f"The new {'label' if len(unknown) == 1 else 'labels'} {listing(unknown.tolist())} {verb}: the classes "
            f"were named when the model was fitted, and are {listing(joined.classes.tolist())}.",
            "To add a class, fit again.",
        )


def _clash_error(
    keys: Values | Sequences, workers: Values, labels: Values, there: Answers, coming: Answers, clash: Indices
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


def merge_classes(r: Responses, labels: Values, classes: Values) -> Values:
    """Return the classes of earlier answers and of these.

    If the classes of these are their labels, as they are if none are named, a label that was no class before
    ("unsure") is none now.
    """
    new = r.classes
    if np.array_equal(new, r.labels):
        column = to_column(new)
        new = new[(lookup(labels, column) < 0) | (lookup(classes, column) >= 0)]
    return Union.of(classes, new).values


def grow(r: Responses, workers: Values, labels: Values, classes: Values) -> Responses:
    """Return the same answers, with the workers, labels and classes of earlier ones among theirs."""
    who, said = Union.of(workers, r.workers), Union.of(labels, r.labels)
    return replace(
        r,
        worker=who.new[r.worker],
        label=said.new[r.label],
        workers=who.values,
        labels=said.values,
        classes=merge_classes(r, labels, classes),
    )
