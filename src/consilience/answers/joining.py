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

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, ManyQuestionsError, Sentence, listing, plural, quietly, shorten, warn_of
from ..kernels import Floats
from ..options import check
from . import LONG, MATRIX
from .answers import Answers, keep_weights
from .classes import extend_scale, warn_of_slips
from .columns import (
    Codes,
    Indices,
    Values,
    encode_in_order_of_appearance,
    is_present,
    keep_values,
    lookup,
    number_groups,
    objects,
    sort_rows,
    to_column,
    unite,
)
from .keys import count_items, join_keys, key_of
from .soft_votes import relabel
from .tables import ROLES, Table, find_columns, is_table, key_roles, open_frame, plays, translate
from .tagging import SCHEMES, complete_tags, looks_tagged

NOTHING: Indices = np.empty(0, np.int64)
NOBODY: Values = np.empty(0, object)


def read_further(
    table: Table, old: Answers, duplicates: str, format: str | None = None, joins: bool = True
) -> tuple[Answers, Indices]:
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
    joins : bool
        Whether they are to be joined with the old ones: if not, a row without a label is an error.
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
    said, retracted = is_present(table.read(columns["label"])), NOTHING
    if joins and not said.all():
        *keys, workers = (
            table.values(columns[role], "Fill it in or drop the row.")
            for role in (*key_roles(old.sequences is not None), "worker")
        )
        silent = ~said
        if duplicates == "last":  # all rows of a worker about an item, if the last one has no label
            pair = number_groups([*keys, workers])
            taken_back = np.zeros(len(pair), bool)
            taken_back[pair] = silent
            silent = taken_back[pair]
        item, who = old.find_items(keys), lookup(old.workers, workers)
        items = np.unique(item[silent & (item >= 0)])
        answers, owner = old.answers_about(items)
        given = items[owner] * old.n_workers + old.worker[answers]
        asked = np.where((item < 0) | (who < 0), -1, item * old.n_workers + who)
        retracted = answers[np.isin(given, asked[silent])]
        meant = silent & np.isin(asked, given)
        n_lost, name = int((silent & ~said & ~meant).sum()), table.name
        if duplicates == "last" and n_lost:
            warn_of(f"There are no answers that {plural(n_lost, 'row')} of {name} without a label would take back.")
        elif duplicates != "last" and meant.any():
            raise InputError(
                f"{plural(int(meant.sum()), 'row')} of {name} without a label would take back an answer that was "
                f"given before; the first is at {table.locate(int(np.argmax(meant)))}.",
                Sentence("To take answers back, use {duplicates}.", duplicates="last"),
                "To keep them, drop these rows.",
                keyword="duplicates",
            )
        elif duplicates != "last":
            warn_of(
                f"Left out, since they are not answered yet: {plural(n_lost, 'row')} of {name} without a label.",
                "An update takes lists of questions that are answered in part. Where answers are first read, such rows "
                "are an error, since they may be a slip.",
            )
        table = table.keep(np.flatnonzero(said & ~silent))
        if not table.n_rows:
            return replace(old.about(NOTHING), columns=columns), retracted
    known = old.columns.get("gold")
    # What is to be said of the labels is said of all together.
    with quietly():
        new = Answers.from_frame(
            table,
            **names,
            duplicates="error" if "weight" in columns else duplicates,
            normalise=old.normalised,
            gold=known if known is not None and known in table.names else False,
            format=LONG,
            rescale=table.soft is not None,
        )
    return new, retracted


def weights_of(r: Answers) -> Floats:
    """The weight of each answer as it was given; 1 where there are none."""
    return np.ones(r.n_responses) if r.weight is None else r.weight


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
    check("duplicates", duplicates, "update")
    both = old.n_responses and new.n_responses
    if (old.sequences is None) != (new.sequences is None):
        kinds = [f"items {'not ' if r.sequences is None else ''}in sequences" for r in (old, new)]
    elif new.silence_counts and (not old.silence_counts or old.background != new.background):
        kinds = [f"silence as {'an' if r.silence_counts else 'no'} answer ({r.background!r})" for r in (old, new)]
    elif both and (old.soft is None) != (new.soft is None):
        kinds = ["labels" if r.soft is None else "probabilities" for r in (old, new)]
    else:
        kinds = []
    if kinds:
        raise InputError(
            f"New answers must be like those of the fit, which have {kinds[0]}; these have {kinds[1]}.",
            "Read them as the others were read.",
        )
    if old.normalised:
        new = new.spelled_as(objects([*old.labels.tolist(), *old.classes.tolist()]))
    keys, item, item_of_new = join_keys(old.keys, new.keys)
    workers, old_worker, new_worker = unite(old.workers, new.workers)
    labels, old_label, new_label = unite(old.labels, new.labels)
    n_items, n_workers, n_labels = count_items(keys), len(workers), len(labels)
    # Items, workers and labels of the new answers, and of the old ones about the same items, by the codes of all.
    about, who, said = item_of_new[new.item_of_answer()], new_worker[new.worker], new_label[new.label]
    touched = np.flatnonzero(np.isin(item, about)[old.item_of_answer()])

    def pair_of(answers: Indices) -> Indices:
        return np.asarray(item[old.items_of(answers)] * n_workers + old_worker[old.worker[answers]])

    def say(r: Answers, label: Codes, answers: Indices | slice) -> Any:
        if r.soft is not None:  # of two equal probabilities either may have given the label
            return relabel(r.soft[answers], label, n_labels)
        return np.column_stack([label[r.label[answers]], weights_of(r)[answers]])

    # What workers say about an item is the same if each row is as often in both.
    pair, pair_before = about * n_workers + who, pair_of(touched)
    before, after = say(old, old_label, touched), say(new, new_label, slice(None))
    pairs = np.concatenate([pair_before, pair])
    rows, place = np.unique(np.column_stack([pairs, np.concatenate([before, after])]), axis=0, return_inverse=True)
    balance = np.bincount(place.ravel(), np.repeat([-1, 1], [len(before), len(after)]), len(rows))
    given_again = np.intersect1d(pair_before, pair)
    is_other = np.isin(given_again, rows[balance != 0, 0].astype(np.int64))
    corrected, repeated = given_again[is_other], given_again[~is_other]
    if duplicates == "error" and len(corrected):
        whom = workers[[corrected[0] % n_workers]].tolist()[0]
        codes = old_label[old.label[touched[pair_before == corrected[0]]]], said[pair == corrected[0]]
        names = [listing(labels[each].tolist()) for each in codes]
        raise InputError(
            f"Worker {shorten(whom)} answered item {shorten(key_of(keys, int(corrected[0]) // n_workers))} before, "
            f"with {names[0]}, and now with {names[1]}. {plural(len(corrected), 'such pair')} in all.",
            Sentence("To let new answers take the place of old ones, use {duplicates}.", duplicates="last"),
            keyword="duplicates",
        )
    gone = np.union1d(touched[np.isin(pair_before, corrected)], retracted).astype(np.int64)
    stays = np.ones(old.n_responses, bool)
    stays[gone] = False
    kept = old.keep(stays) if len(gone) else old
    # Of each item first the old answers that are left, then the new ones.
    fresh = ~np.isin(pair, repeated)
    weights = np.concatenate([weights_of(kept), weights_of(new)[fresh]])
    orders = np.concatenate([kept.orders(), new.orders()[fresh]])
    soft = None if kept.soft is None else np.concatenate([relabel(kept.soft, old_label, n_labels), after[fresh]])
    offsets, worker, label, (weight, order, soft) = sort_rows(
        np.concatenate([item[kept.item_of_answer()], about[fresh]]),
        n_items,
        np.concatenate([old_worker[kept.worker], who[fresh]]),
        np.concatenate([old_label[kept.label], said[fresh]]),
        keep_weights(weights),
        None if np.isnan(orders).all() else orders,
        soft,
    )
    joined = replace(
        old,
        offsets=offsets,
        worker=worker,
        label=label,
        weight=weight,
        weight_scale=None,
        order=order,
        soft=soft,
        workers=workers,
        labels=labels,
        keys=keys,
        gold=None,
        origin=None,
    )
    if len(gone):
        # Workers and labels of which no answer is left; a soft vote speaks of all labels.
        lost = np.setdiff1d(old_worker[old.worker[gone]], worker)
        joined = joined.keep_workers(~np.isin(np.arange(n_workers), lost))
        if soft is None:
            lost = np.setdiff1d(old_label[old.label[gone]], label)
            if len(lost) == n_labels:
                raise InputError("No answer would be left.", "Fit a new model.")
            codes_left, left = keep_values(joined.label, joined.labels, ~np.isin(np.arange(n_labels), lost))
            joined = replace(joined, label=codes_left, labels=left)
    classes = _join_classes(old, joined.labels)
    joined = replace(joined, classes=classes, positions=old.with_classes(classes).positions)
    added = labels[np.setdiff1d(new_label, old_label)]
    if len(added):
        warn_of_slips(joined, silence=False)
        unknown = added[lookup(classes, to_column(added)) < 0].tolist()
        if unknown:
            warn_of(
                f"New labels are no classes: {listing(unknown)}. Those were named when the model was fitted: "
                f"{listing(classes.tolist())}.",
                "To add a class, fit again.",
            )
    n_retracted = len(np.setdiff1d(pair_of(retracted), corrected))
    n_new = np.bincount(np.unique(pair[fresh]) // n_workers, minlength=n_items)
    n_new_workers = len(np.setdiff1d(new_worker, old_worker))
    return Joined(joined, item, n_new, len(corrected), n_retracted, len(repeated), n_new_workers)


def _join_classes(old: Answers, labels: Values) -> Values:
    """The classes: all labels if they were so before, with those that a tag scheme or the background adds.

    Classes that were named stay as they are. On a scale only numbers have their place.
    """
    classes, said = old.classes.tolist(), old.labels.tolist()
    if old.positions is not None:
        return extend_scale(old.classes, old.positions, old.labels, labels)
    if old.silence_counts and classes == [old.background, *said]:
        return labels if old.background in labels.tolist() else objects([old.background, *labels.tolist()])
    is_complete = looks_tagged(old.labels) and any(
        classes == complete_tags(old.labels, scheme).tolist() for scheme in SCHEMES
    )
    return labels if classes == said or is_complete else old.classes  # the model adds the other tags again


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
    if is_table(block):
        table = open_frame(block, "the blocked workers")
        column = table.values(table.need("worker"))
    else:
        column = to_column(block if hasattr(block, "__array__") else list(block), "The list of blocked workers")
    return encode_in_order_of_appearance(column)[1]


def leave_out(r: Answers, blocked: Values) -> Answers:
    """The answers without those of blocked workers; items, labels and classes stay.

    A warning tells which ids are no workers, and how many items have no answer left.
    """
    codes = lookup(r.workers, to_column(blocked))
    unknown, left = blocked[codes < 0].tolist(), drop_workers(r, codes[codes >= 0])
    if unknown:
        problem = f"There are no answers of {plural(len(unknown), 'worker')} to block: {listing(map(str, unknown))}."
        remedies = "Check their ids.", f"The workers are {listing(r.workers.tolist())}."
        if len(unknown) == len(blocked):
            raise InputError(problem, *remedies, keyword="block")
        warn_of(problem, *remedies)
    if not left.n_workers:
        # A worker report, which has them all, is no list of some.
        remedy = "Of a worker report, keep only those to leave out, such as those who answer as if by chance."
        raise InputError("All workers are blocked: nobody is left.", remedy, keyword="block")
    lost = int(np.sum((np.diff(left.offsets) == 0) & (np.diff(r.offsets) > 0)))
    if lost:
        warn_of(f"Only blocked workers have answered {plural(lost, 'item')}.", "Have others answer these items.")
    return left


def drop_workers(r: Answers, workers: Indices) -> Answers:
    """The answers without some of the workers, which are given by index."""
    kept = np.ones(r.n_workers, bool)
    kept[workers] = False
    return r.keep(kept[r.worker]).keep_workers(kept)
