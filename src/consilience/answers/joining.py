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
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

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
from ..kernels import Floats
from ..options import is_among
from . import LONG, MATRIX, translate
from .answers import Answers, empty_responses, keep_weights
from .classes import extend_scale, warn_of_slips
from .columns import (
    Indices,
    Values,
    count_codes,
    encode_in_order_of_appearance,
    is_present,
    keep_values,
    lookup,
    number_groups,
    objects,
    sort_rows,
    to_column,
    to_values,
    unite,
)
from .items import Sequences, count_items, join_keys, key_of
from .soft_votes import relabel
from .tables import ROLES, Table, find_columns, is_table, key_roles, open_frame, plays
from .tagging import SCHEMES, complete_tags, looks_tagged

POLICIES = ("error", "last")
NOTHING: Indices = np.empty(0, np.int64)
NOBODY: Values = np.empty(0, object)


def check_join_policy(duplicates: object) -> None:
    """Raise an error unless there is such a policy for answers that are there already."""
    if not is_among(duplicates, POLICIES):
        raise parameter_error("duplicates", "update", "'error' or 'last'", duplicates)


def read_further(table: Table, old: Answers, duplicates: str, format: str | None = None) -> tuple[Answers, Indices]:
    """Read the answers of a table, and find those of the old ones that it takes back, by their indices.

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
    if format is None and old.format == MATRIX and not plays(table, unnamed, "worker", "label"):
        format = MATRIX  # few rows may hold few -1
    try:
        table = translate(table, format, unnamed)
    except ManyQuestionsError:  # the old answers are those to one of them
        table = translate(table, format, {**unnamed, "label": old.columns.get("label")})
    # Roles that are not to be found by their usual names.
    names: dict[str, Any] = dict.fromkeys(ROLES)
    for role in key_roles(old.sequences is not None):
        names[role] = table.need(role, parameter=role)
    for role in ("weight", "order"):
        names[role] = old.columns.get(role) if old.columns.get(role) in table.names else None
    columns = find_columns(table, names)
    keys, weighted = [columns[role] for role in key_roles(old.sequences is not None)], "weight" in columns
    is_missing, taken_back = ~is_present(table.read(columns["label"])), NOTHING
    if is_missing.any() and duplicates == "last":
        fill = "Fill it in or drop the row."
        pair = number_groups(table.values(name, fill) for name in (*keys, columns["worker"]))
        if weighted:  # a row without a label counts where there is none with one
            counts = ~(is_missing & (np.bincount(pair, ~is_missing) > 0)[pair])
        else:  # of several rows the last one
            counts = np.zeros(table.n_rows, bool)
            counts[table.n_rows - 1 - np.unique(pair[::-1], return_index=True)[1]] = True
        table, is_missing = table.keep(np.flatnonzero(counts)), is_missing[counts]
    if is_missing.any():
        silent = table.keep(np.flatnonzero(is_missing))
        taken_back = _find_retracted(silent, keys, columns["worker"], old, duplicates)
        if is_missing.all():
            return replace(no_answers(old), columns=columns), taken_back
        table = table.keep(np.flatnonzero(~is_missing))
    known = old.columns.get("gold")
    # What is to be said of the labels is said of all together.
    with quietly():
        new = Answers.from_frame(
            table,
            **names,
            duplicates="error" if weighted else duplicates,
            normalise=old.normalised,
            gold=known if known is not None and known in table.names else False,
            format=LONG,
            rescale=table.soft is not None,
        )
    return new, taken_back


def weights_of(r: Answers) -> Floats:
    """The weight of each answer as it was given; 1 where there are none."""
    return np.ones(r.n_responses) if r.weight is None else r.weight


def _find_retracted(table: Table, names: list[str], worker: str, old: Answers, duplicates: str) -> Indices:
    """The answers that rows without a label take back, with ``duplicates="last"``; else these are no answers yet.

    A warning tells of rows that are left out, and of those that take nothing back.
    """
    item, who = old.find_items([table.read(name) for name in names]), lookup(old.workers, table.read(worker))
    items = np.unique(item[item >= 0])
    answers, owner = old.answers_about(items)
    pairs = np.where((item < 0) | (who < 0), -1, item * old.n_workers + who)
    given = items[owner] * old.n_workers + old.worker[answers]
    rows = np.flatnonzero(np.isin(pairs, given))
    if duplicates == "last":
        if len(rows) < table.n_rows:
            lost = plural(table.n_rows - len(rows), "row")
            warn_of(f"There are no answers that {lost} of {table.name} without a label would take back.")
        return np.asarray(answers[np.isin(given, pairs)])
    if len(rows):
        raise InputError(
            f"{plural(len(rows), 'row')} of {table.name} without a label would take back an answer that was given "
            f"before; the first is at {table.locate(int(rows[0]))}.",
            Sentence("To take answers back, use {duplicates}.", duplicates="last"),
            "To keep them, drop these rows.",
            keyword="duplicates",
        )
    warn_of(
        f"Left out, since they are not answered yet: {plural(table.n_rows, 'row')} of {table.name} without a label.",
        "An update takes lists of questions that are answered in part. Where answers are first read, such rows are "
        "an error, since they may be a slip.",
    )
    return NOTHING


def no_answers(old: Answers) -> Answers:
    """No answers about no items, of the same kind as the old ones."""
    keys: Values | Sequences = old.keys if isinstance(old.keys, Sequences) else old.keys[:0]
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


def join_responses(old: Answers, new: Answers, duplicates: str = "error", retracted: Indices = NOTHING) -> Joined:
    """Join the answers of both, as reading both tables together would give them.

    Parameters
    ----------
    old, new : Answers
        Answers that are there, and further ones.
    duplicates : {"error", "last"}
        What to do if a worker's answer to an item is there already, and was another one.
    retracted : int64 array
        Answers to take away from the old ones. A new answer of the same worker to the same item comes in its place.
    """
    check_join_policy(duplicates)
    _check_kinds(old, new)
    if old.normalised:
        new = new.spelled_as(objects([*old.labels.tolist(), *old.classes.tolist()]))
    keys, item, item_of_new = join_keys(old.keys, new.keys)
    workers, old_worker, new_worker = unite(old.workers, new.workers)
    labels, old_label, new_label = unite(old.labels, new.labels)
    n_workers, n_labels = len(workers), len(labels)
    # Items, workers and labels of the new answers, and of the old ones about the same items, by the codes of all.
    about, who, said = item_of_new[new.item_of_answer()], new_worker[new.worker], new_label[new.label]
    votes = None if new.soft is None else relabel(new.soft, new_label, n_labels)
    spoken = np.zeros(count_items(keys), bool)
    spoken[about] = True
    touched = np.flatnonzero(spoken[item][old.item_of_answer()])

    def pair_of(answers: Indices) -> Indices:
        return np.asarray(item[old.items_of(answers)] * n_workers + old_worker[old.worker[answers]])

    pair, pair_before = about * n_workers + who, pair_of(touched)
    if old.soft is not None and votes is not None:  # of two equal probabilities either may have given the label
        both, before, after = np.intersect1d(pair_before, pair, return_indices=True)
        differs = (relabel(old.soft[touched[before]], old_label, n_labels) != votes[after]).any(axis=1)
        repeated, corrected = both[~differs], both[differs]
    else:  # an answer is the same if each label with its weight is as often in both
        both = np.intersect1d(pair_before, pair)
        there, here = np.isin(pair_before, both), np.isin(pair, both)
        labels_before, weights_before = old_label[old.label[touched[there]]], weights_of(old)[touched[there]]
        rows = np.stack(
            [
                np.concatenate([pair_before[there], pair[here]]),
                np.concatenate([labels_before, said[here]]),
                np.concatenate([weights_before, weights_of(new)[here]]).view(np.int64),
            ]
        )
        found, place = np.unique(rows, axis=1, return_inverse=True)
        balance = np.bincount(place.ravel(), np.repeat([-1, 1], [there.sum(), here.sum()]), found.shape[1])
        corrected = np.unique(found[0][balance != 0])
        repeated = np.setdiff1d(both, corrected, assume_unique=True)
    if duplicates == "error" and len(corrected):
        whom = workers[[corrected[0] % n_workers]].tolist()[0]
        codes = old_label[old.label[touched[pair_before == corrected[0]]]], said[pair == corrected[0]]
        told = [listing(labels[each].tolist()) for each in codes]
        raise InputError(
            f"Worker {shorten(whom)} answered item {shorten(key_of(keys, int(corrected[0]) // n_workers))} before, "
            f"with {told[0]}, and now with {told[1]}. {plural(len(corrected), 'such pair')} in all.",
            Sentence("To let new answers take the place of old ones, use {duplicates}.", duplicates="last"),
            keyword="duplicates",
        )
    gone = np.union1d(touched[np.isin(pair_before, corrected)], retracted).astype(np.int64)
    stays = np.ones(old.n_responses, bool)
    stays[gone] = False
    kept = old.keep(stays) if len(gone) else old
    # Of each item first the old answers that are left, then the new ones.
    fresh = ~np.isin(pair, repeated)
    weights, orders = weights_of(new)[fresh], new.orders()[fresh]
    weighted = kept.weight is not None or not (weights == 1.0).all()
    timed = kept.order is not None or not np.isnan(orders).all()
    soft = None if kept.soft is None else relabel(kept.soft, old_label, n_labels)
    if soft is not None and votes is not None:
        soft = np.concatenate([soft, votes[fresh]])
    offsets, worker, label, (weight, order, soft) = sort_rows(
        np.concatenate([item[kept.item_of_answer()], about[fresh]]),
        count_items(keys),
        np.concatenate([old_worker[kept.worker], who[fresh]]),
        np.concatenate([old_label[kept.label], said[fresh]]),
        np.concatenate([weights_of(kept), weights]) if weighted else None,
        np.concatenate([kept.orders(), orders]) if timed else None,
        soft,
    )
    joined = replace(
        old,
        offsets=offsets,
        worker=worker,
        label=label,
        weight=keep_weights(weight),
        weight_scale=None,
        order=order,
        soft=soft,
        workers=workers,
        labels=labels,
        keys=keys,
        gold=None,
        origin=None,
    )
    # Workers and labels of which no answer is left; a soft vote speaks of all labels.
    heard, spoke = np.ones(n_workers, bool), np.ones(n_labels, bool)
    lost = old_worker[np.unique(old.worker[gone])]
    heard[lost] = count_codes(worker, n_workers)[lost] > 0
    if soft is None:
        lost = old_label[np.unique(old.label[gone])]
        spoke[lost] = count_codes(label, n_labels)[lost] > 0
    if len(gone) and not spoke.any():
        raise InputError("No answer would be left.", "Fit a new model.")
    if not (heard.all() and spoke.all()):
        codes_left, left = keep_values(joined.label, joined.labels, spoke)
        joined = replace(joined.keep_workers(heard), label=codes_left, labels=left)
    classes = _join_classes(old, joined.labels)
    joined = replace(joined, classes=classes, positions=old.with_classes(classes).positions)
    added = labels[np.setdiff1d(new_label, old_label)]
    if len(added):
        _doubt_labels(joined, added)
    n_retracted = len(np.setdiff1d(pair_of(retracted), corrected))
    n_new = np.bincount(np.unique(pair[fresh]) // n_workers, minlength=joined.n_items)
    n_new_workers = len(np.setdiff1d(new_worker, old_worker))
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


def _join_classes(old: Answers, labels: Values) -> Values:
    """The classes: all labels if they were so before, with those that a tag scheme or the background adds.

    Classes that were named stay as they are. On a scale only numbers have their place.
    """
    classes, said = old.classes.tolist(), old.labels.tolist()
    if old.positions is not None:
        return extend_scale(old.classes, old.positions, old.labels, labels)
    if classes == said:
        return labels
    if old.silence_counts and classes == [old.background, *said]:
        has = lookup(labels, to_column([old.background]))[0] >= 0
        return labels if has else to_values(to_column([old.background, *labels.tolist()]))
    if looks_tagged(old.labels) and any(classes == complete_tags(old.labels, each).tolist() for each in SCHEMES):
        return labels  # the model adds the others again
    return old.classes


def _doubt_labels(joined: Answers, added: Values) -> None:
    """Warn of new labels that look like a slip, or are no classes."""
    warn_of_slips(joined, silence=False)
    place = lookup(joined.classes, to_column(added))
    ends, unknown = added[np.isin(place, (0, len(joined.classes) - 1))].tolist(), added[place < 0].tolist()
    if ends and joined.positions is not None:
        warn_of(
            f"New labels extend the scale: {listing(ends)}. Its levels are now {listing(joined.classes.tolist())}.",
            "If that is a slip, correct the answers, and update the earlier model with these.",
        )
    if unknown:
        classes = listing(joined.classes.tolist())
        warn_of(
            f"New labels are no classes: {listing(unknown)}. Those were named when the model was fitted: {classes}.",
            "To add a class, fit again.",
        )


def grow(r: Answers, workers: Values, labels: Values, classes: Values, positions: tuple[float, ...] | None) -> Answers:
    """The same answers, with the workers, labels and classes of earlier ones among theirs, on their scale.

    If the classes of these are their labels, as they are if none are named, a label that was no class before
    ("unsure") is none now.
    """
    all_workers, _, who = unite(workers, r.workers)
    all_labels, _, said = unite(labels, r.labels)
    scaled = r.scaled_as(classes, positions)
    if positions is not None:
        scaled = scaled.with_classes(extend_scale(classes, positions, labels, all_labels))
    else:
        new = r.classes
        if np.array_equal(new, r.labels):
            new = new[(lookup(labels, to_column(new)) < 0) | (lookup(classes, to_column(new)) >= 0)]
        scaled = replace(scaled, classes=unite(classes, new)[0])
    return replace(
        scaled,
        worker=who[r.worker],
        label=said[r.label],
        soft=None if r.soft is None else relabel(r.soft, said, len(all_labels)),
        workers=all_workers,
        labels=all_labels,
    )


def read_blocked(block: Any) -> Values:
    """The ids of workers to leave out: a list of them, or a table with a column worker."""
    if block is None:
        return NOBODY
    if isinstance(block, str):
        raise InputError(f"One worker to block is a list, too: [{block!r}].")
    if is_table(block):
        table = open_frame(block, "the blocked workers")
        column = table.values(table.need("worker"))
    else:
        column = to_column(block if hasattr(block, "__array__") else list(block), "The list of blocked workers")
    values = to_values(column)
    if isinstance(column, np.ndarray) and {type(name) for name in column} == {int, str}:
        values = values.astype(str)  # in which numbers and their text are the same
    return encode_in_order_of_appearance(to_column(values))[1]


def leave_out(r: Answers, blocked: Values) -> Answers:
    """The answers without those of blocked workers; items, labels and classes stay.

    A warning tells which ids are no workers, with those that are spelled alike, and how many items have no answer left.
    """
    found = lookup(r.workers, to_column(blocked))
    unknown, is_worker = blocked[found < 0].tolist(), found >= 0
    if unknown:
        texts = {str(name).strip().lower(): name for name in r.workers.tolist()}
        close = difflib.get_close_matches(str(unknown[0]).strip().lower(), texts, n=1)
        remedy = f"Did you mean {texts[close[0]]!r} by {str(unknown[0])!r}?" if close else "Check their ids."
        problem = f"There are no answers of {plural(len(unknown), 'worker')} to block: {listing(map(str, unknown))}."
        if not is_worker.any():
            raise InputError(problem, remedy, f"The workers are {listing(r.workers.tolist())}.", keyword="block")
        warn_of(problem, remedy)
    if len(np.unique(found[is_worker])) == r.n_workers:
        # A worker report, which has them all, is no list of some.
        remedy = "Of a worker report, keep only those to leave out, such as those who answer as if by chance."
        raise InputError("All workers are blocked: nobody is left.", remedy, keyword="block")
    left = drop_workers(r, found[is_worker])
    lost = int(np.sum((np.diff(left.offsets) == 0) & (np.diff(r.offsets) > 0)))
    if lost:
        warn_of(f"Only blocked workers have answered {plural(lost, 'item')}.", "Have others answer these items.")
    return left


def drop_workers(r: Answers, workers: Indices) -> Answers:
    """The answers without some of the workers, which are given by index."""
    kept = np.ones(r.n_workers, bool)
    kept[workers] = False
    return r.keep(kept[r.worker]).keep_workers(kept)
