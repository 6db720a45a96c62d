"""Long tables, one row per answer: columns found, ids encoded, answers sorted by item, repeated ones settled."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import check_truth, is_among, to_floats
from ..errors import (
    InputError,
    ParameterError,
    Python,
    Sentence,
    first_line,
    listing,
    parameter_error,
    plural,
    shorten,
    warn_of,
)
from ..kernels import Floats, Integers, Truths
from ..memory import NUMBER, require_memory
from . import Names, translate
from .answers import Answers, Provenance, keep_weights
from .classes import choose_classes, choose_scale, choose_spelling, list_classes, merge_spellings, normalise_column
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    are_distinct,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    find_present,
    is_categorical,
    is_missing,
    is_ordered,
    keep_values,
    lookup,
    narrow_codes,
    objects,
    split_names,
    to_column,
    to_values,
)
from .gold import add_gold, find_gold, match_known
from .items import NAMED, Sequences, count_items, encode_items, key_of, read_keys, read_order, read_positions
from .slips import Source, find_sets, find_sign, warn_of_silence, warn_of_slips
from .soft_votes import VOTE_SLACK, SoftRows, check_votes, slack_of, suggest, sum_votes
from .tables import WHOLE, Table, read_column, read_distinct, read_names, squeeze
from .wide_tables import refuse_shares

WIDE_FORMS = ("wide", "matrix")
DUPLICATES = ("error", "first", "last", "mean")
# Weights of one worker's spread answer may exceed 1 by rounding.
WEIGHT_SLACK = 1e-6
# So many columns are tried for whether they tell items apart.
MOST_TRIED = 50
# Spans that several workers marked are fewer than what they marked in all, by at least this factor.
MOST_DIFFERENT = 0.95
_FUSE_SPANS = (
    "The texts are not in such a table: fuse the file of the annotation tool that they come from.",
    Sentence("Or give table and texts to {from_frame}.", from_frame=Python("Spans.from_frame")),
)
_SETTLE = Sentence(
    "If start and end are something else, settle repeated answers with {duplicates}.", duplicates="first"
)
_HOW_TO_DROP = {
    "pandas": ", as dropna(subset=[{0!r}]) does. If a label is called NA or None, read it with keep_default_na=False",
    "polars": ", as drop_nulls({0!r}) does",
}
DROP_ROWS = Sentence("Or leave such rows out with {drop_missing}.", drop_missing=True)
_FILL = "Every answer must say who gave it about what: fill it in or drop the row."


class TableOptions(NamedTuple):
    """How a table or a matrix of answers is read; see `Answers.from_frame` and `Answers.from_matrix`."""

    classes: ArrayLike | None = None
    items: object = None
    duplicates: str = "error"
    abstain: str = "ignore"
    background: object = None
    normalise: bool = False
    gold: str | bool | None = None
    drop_missing: bool = False
    format: str | None = None
    ignore: Sequence[str] | str = ()
    ordered: bool | None = None
    positions: ArrayLike | None = None
    rescale: bool = False
    lengths: ArrayLike | None = None
    workers: object = None


def arrange_answers(table: Table, names: Names, options: TableOptions) -> Answers:
    """Read a table of answers; see `Answers.from_frame`.

    Parameters
    ----------
    table : Table
        The answers.
    names : mapping
        For each role that a column can play (item, worker, label, sequence, position, weight, order) its name, None
        where it is not given.
    options : TableOptions
        The other parameters of `Answers.from_frame`.
    """
    check_policy(options.duplicates)
    for name in ("normalise", "drop_missing", "rescale"):
        check_truth(name, "Answers", getattr(options, name))
    origin, gold, given = table.origin, options.gold, dict(names)
    for role in WHOLE:
        table, given[role] = table.combine(role, given.get(role))
    table = translate(table, options.format, {**given, "gold": gold if isinstance(gold, str) else None}, options.ignore)
    columns = find_columns(table, given)
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
    known_labels = find_gold(table, gold)
    if table.lists(columns["label"]) is not None:
        raise InputError(
            f"Column {columns['label']!r} of {table.name} holds lists: each answer is a set of tags.",
            "Read it with consilience.read_tags or consilience.Tags.from_frame, or give it to consilience.fuse.",
        )
    table, said = _read_labels(table, columns["label"], options.drop_missing)
    votes = None
    if table.soft is None:
        label, labels = encode_sorted(said)
        if table.format in WIDE_FORMS and options.classes is None and options.ordered is None and not is_ordered(said):
            refuse_shares(table, labels)
    else:
        rows = _read_votes(table, table.soft, options)
        label, labels = rows.find_codes(), rows.labels
        votes = None if rows.are_plain() else rows.votes
    spell = choose_spelling(labels, list_classes(options.classes).tolist()) if options.normalise else None
    if spell is not None:
        label, labels = merge_spellings(label, labels, spell, ordered=is_categorical(said))
    is_scale = is_ordered(said)
    del said
    worker, workers = encode_sorted(table.values(columns["worker"], _FILL))
    weight = read_weights(table, columns["weight"]) if "weight" in columns else None
    order = read_order(table, columns["order"]) if "order" in columns else None
    keys_of_rows = [columns[role] for role in ("item", "sequence", "position") if role in columns]
    items = table.items if options.items is None else options.items
    named = None if items is None else read_keys(items, len(keys_of_rows), columns)
    item, keys = encode_items([table.values(name, _FILL) for name in keys_of_rows], named, table.name)
    offsets, worker, label, (weight, order, votes) = sort_rows(item, keys, worker, label, weight, order, votes)
    known = None if known_labels is None else match_known(table, known_labels, item)
    if given["item"] is None and keys_of_rows[0].lower() == "id" and table.n_rows > 1 and np.diff(offsets).max() == 1:
        warn_of(
            f"No two rows of {table.name} have the same {keys_of_rows[0]!r}: is {keys_of_rows[0]!r} a row number?",
            Sentence("Name the item column with {item}."),
        )
    answers = Answers(
        offsets=offsets,
        worker=worker,
        label=narrow_codes(label, len(labels)),
        weight=weight,
        workers=workers,
        labels=labels,
        classes=labels,
        keys=keys,
        backend=table.backend,
        normalised=options.normalise,
        order=order,
        soft=None if votes is None else np.ascontiguousarray(votes, np.float32),
        provenance=Provenance(columns, table.format, origin, declares_order=options.ordered is not None),
    )
    del label
    answers = settle_duplicates(answers, options.duplicates, item, table)
    del item
    answers = with_classes(answers, options, spell, options.classes, is_scale)
    answers = replace(answers, weight=keep_weights(answers.weight))
    if known is not None:
        answers = add_gold(answers, known, table.name, named=isinstance(gold, str))
    doubt(answers, Source(named=options.classes is not None))
    return answers


def with_classes(
    answers: Answers,
    options: TableOptions,
    spell: Callable[[Any], Any] | None,
    given: object,
    is_scale: bool = False,
) -> Answers:
    """Answers with what can be true; the parameters are those of `choose_classes` and `choose_scale`."""
    classes, silent = choose_classes(options.classes, answers.labels, options.abstain, options.background, spell)
    classes, places = choose_scale(options.ordered, options.positions, classes, given, is_scale)
    return replace(answers, classes=classes, positions=places, background=silent)


def doubt(answers: Answers, source: Source) -> None:
    """Warn of silence that seems an answer, and of labels and ids that look like slips."""
    warn_of_silence(answers)
    warn_of_slips(answers, source)


def _read_labels(table: Table, name: str, drop_missing: bool) -> tuple[Table, Column]:
    """The column of labels, and the table of the rows that have one; others are left out, or an error."""
    rows = find_missing(table.read(name))
    if drop_missing and 0 < len(rows) < table.n_rows:
        n_rows = f"{len(rows):,} of {table.n_rows:,}"
        warn_of(f"Rows of {table.name} without an answer in column {name!r} were left out: {n_rows}.")
        table = table.keep(find_present(table.read(name)))
        return table, table.read(name)
    if not len(rows):
        return table, table.read(name)
    # Beside sets of tags a missing answer is a set without a tag.
    sets = find_sets(list(dict.fromkeys(to_values(table.read(name)).tolist())))
    as_tags = [Sentence("If cells hold sets of tags, use {separator}.", separator=find_sign(sets))] if sets else []
    drop = f"A missing answer needs no row: drop it{_HOW_TO_DROP.get(table.backend, '').format(name)}."
    return table, table.values(name, *as_tags, drop, DROP_ROWS)


def _read_votes(table: Table, soft: SoftRows, options: TableOptions) -> SoftRows:
    """The soft votes of a table, if they sum to 1."""
    if options.normalise or options.duplicates == "mean":
        name, value = ("normalise", True) if options.normalise else ("duplicates", "mean")
        raise ParameterError(
            Sentence(f"{{{name}}} does not go with probabilities.", **{name: value}), "Leave it out.", keyword=name
        )
    if not soft.named and options.classes is not None:
        names = list_classes(options.classes)
        if len(names) != len(soft.labels):
            raise InputError(
                f"{len(names):,} classes are named, and {table.name} has {len(soft.labels):,}.",
                "Name them all, in the order of the last axis.",
                keyword="classes",
            )
        soft = soft._replace(labels=names)
    return soft._replace(votes=check_votes(table, soft, options.rescale))


def sort_rows(
    item: Integers, keys: Values | Sequences, worker: Codes, label: Codes, *others: Any
) -> tuple[Indices, Codes, Codes, list[Any]]:
    """Where the answers to each item begin, and worker, label and other arrays (or None) of the answers by item."""
    from ..kernels.columns import find_offsets, group_answers, order_by

    n_items = count_items(keys)
    if np.all(item[:-1] <= item[1:]):
        # Sorted by item already, as most tables are: nothing to move.
        return find_offsets(item, n_items), worker, label, list(others)
    worker, label, offsets = group_answers(item, n_items, worker, label)
    if all(each is None for each in others):
        return offsets, worker, label, list(others)
    place, _ = order_by(item, n_items)
    return offsets, worker, label, [None if each is None else each[place] for each in others]


def find_columns(table: Table, names: Names) -> dict[str, str]:
    """Find the column that plays each role: item (or sequence and position), worker, label, and others if named."""
    item, in_sequences = names["item"], names["sequence"] is not None or names["position"] is not None
    if item is not None and in_sequences:
        raise ParameterError(
            Sentence("Give either {item} or {sequence} and {position}, not both: a position is an item.")
        )
    if item is None and not in_sequences:
        in_sequences = table.has_sequences()
    if in_sequences:
        roles = {role: names[role] for role in ("sequence", "position", "worker", "label")}
    else:
        key = item if item is not None else _prefer_ids(table)
        roles = {"item": key, "worker": names["worker"], "label": names["label"]}
    roles |= {role: names[role] for role in ("weight", "order") if names.get(role) is not None}
    table = replace(table, taken=[name for name in roles.values() if name is not None])
    found = {role: table.find(role, given) for role, given in roles.items()}
    missing = [role for role, name in found.items() if name is None]
    if len(missing) > 1:
        raise table.no_columns(missing)
    table = replace(table, taken=[name for name in found.values() if name is not None])
    return {role: table.need(role, given, parameter=role) for role, given in roles.items()}


def _prefer_ids(table: Table) -> str | None:
    """The column of items where "id" is a number of rows, and another column has a name of items, else None.

    Beside a column such as task_id, "id" is one. Rows of several files may have the same numbers.
    """
    name = table.find_usual("item")
    others = table.candidates("item")
    if name is None or str(name).lower() != "id" or len(others) != 1:
        return None
    is_key = squeeze(others[0]) in ("itemid", "taskid", "questionid")
    return others[0] if is_key or are_distinct(table.read(name)) else None


def read_weights(table: Table, name: str) -> Floats:
    """Read the column of weights, which must be numbers in (0, 1]."""
    column = to_values(table.values(name, "Every answer needs a weight in (0, 1]: fill it in or drop the row."))
    try:
        if column.dtype.kind in "mM":
            raise TypeError("these are times")
        weights = np.array(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"Column {name!r} of {table.name} must hold numbers: {error}.") from error
    wrong = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"Column {name!r} of {table.name} has {plural(len(wrong), 'weight')} outside (0, 1]; the first is "
            f"{weights[row]} at {table.locate(row)}.",
            "Divide all weights by the largest, and drop answers that count for nothing.",
        )
    return weights


def check_policy(policy: str) -> None:
    """Raise an error unless there is such a policy."""
    if not is_among(policy, DUPLICATES):
        raise parameter_error("duplicates", "Answers", f"one of {', '.join(map(repr, DUPLICATES))}", policy)


def settle_duplicates(answers: Answers, policy: str, item: Integers, table: Table) -> Answers:
    """Apply `duplicates=` to the pairs of item and worker that have more than one row.

    Several rows are one answer if they have weights, which sum to at most 1, and different labels. "first" and "last"
    keep one row of every pair all the same.

    Parameters
    ----------
    answers : Answers
        All rows.
    policy : {"error", "first", "last", "mean"}
        As in `Answers.from_frame`.
    item : ndarray
        The item of each row of the table. The answers are in the stable order of items.
    table : Table
        Where the answers come from.
    """
    from ..kernels.columns import find_repeat

    if find_repeat(answers.offsets, answers.worker, answers.n_workers) < 0:
        return answers
    _, pair = np.unique(answers.item_of_answer() * answers.n_workers + answers.worker, return_inverse=True)
    spans = _find_spans(answers, pair, item, table)
    if spans is not None and policy == "error":
        raise InputError(spans, *_FUSE_SPANS, _SETTLE, keyword="duplicates")
    if spans is not None:
        warn_of(spans, *_FUSE_SPANS)
    if policy in ("first", "last"):
        step = 1 if policy == "first" else -1
        _, chosen = np.unique(pair[::step], return_index=True)
        kept = np.zeros(len(pair), bool)
        kept[chosen if step == 1 else len(pair) - 1 - chosen] = True
        answers = answers.keep(kept)
        if answers.soft is not None:
            return answers
        # A label that only occurred in answers that were dropped is a label nobody gave.
        said = np.bincount(answers.label, minlength=answers.n_labels) > 0
        label, labels = keep_values(answers.label, answers.labels, said)
        return replace(answers, label=label, labels=labels, classes=labels)
    size = np.bincount(pair)
    repeated = size > 1
    if answers.weight is not None:
        said, times = np.unique(pair * answers.n_labels + answers.label, return_counts=True)
        twice = np.isin(np.arange(len(size)), said[times > 1] // answers.n_labels)
        repeated &= (np.bincount(pair, weights=answers.weight) > 1 + WEIGHT_SLACK) | twice
    if policy == "error" and repeated.any():
        first = int(np.flatnonzero(repeated[pair])[0])
        raise _duplicate_error(answers, np.flatnonzero(pair == pair[first]), int(repeated.sum()), item, table)
    weight = np.ones(len(pair)) if answers.weight is None else answers.weight
    weight = np.where(repeated[pair], weight / size[pair], weight)
    # All rows about one pair stand together: they are one answer.
    first_row = np.full(len(size), len(pair))
    np.minimum.at(first_row, pair, np.arange(len(pair)))
    place = np.argsort(first_row[pair], kind="stable")
    order = None if answers.order is None else answers.order[place]
    return replace(answers, worker=answers.worker[place], label=answers.label[place], weight=weight[place], order=order)


def _find_spans(answers: Answers, pair: Indices, item: Integers, table: Table) -> str | None:
    """The words that say that the rows are spans and no answers; None if they are not.

    Spans begin before they end, and some worker marked several of them in one document. Start and end may also be the
    times of an answer. So they must also fit the words of the spans, or now and then be the same for several workers.
    """
    names = table.find_spans()
    if names is None or any(names[role] in answers.columns.values() for role in ("start", "end")):
        return None
    start, end = (to_values(table.read(names[role])) for role in ("start", "end"))
    if any(each.dtype.kind not in "iu" for each in (start, end)) or (start < 0).any() or (end <= start).any():
        return None
    rows = np.argsort(item, kind="stable")
    _, stretch = np.unique(np.stack([start, end])[:, rows], axis=1, return_inverse=True)
    n_stretches = int(stretch.max()) + 1
    marked = np.unique(pair * n_stretches + stretch.ravel())
    n_different = len(np.unique(answers.item_of_answer() * n_stretches + stretch.ravel()))
    text = table.find_usual("text")
    words = [] if text is None else to_values(table.read(text)).tolist()
    fits = bool(words) and [len(each) if isinstance(each, str) else -1 for each in words] == (end - start).tolist()
    if len(marked) == int(pair.max()) + 1 or not (n_different <= MOST_DIFFERENT * len(marked) or fits):
        return None
    return (
        f"{table.name} holds spans (columns {listing(names.values())}), not answers about whole items: some workers "
        "marked several in one document."
    )


def _duplicate_error(answers: Answers, same: Indices, n_pairs: int, item: Integers, table: Table) -> InputError:
    """The error that names the first pair with more than one answer; `same` are its answers."""
    about = int(answers.items_of(same[:1])[0])
    rows = np.flatnonzero(item == about)[same - answers.offsets[about]]
    here, there = table.locate(int(rows[0])), table.locate(int(rows[1]))
    file, comma, _ = here.rpartition(", ")
    where = f"{here} and {there.removeprefix(file + comma)}" if comma else f"{here} and {there} of {table.name}"
    why, remedies = "", list[Sentence]()
    further = _find_further_column(answers, item, table) if table.soft is None else None
    if further is not None:
        remedies = [further, Sentence("If not, settle them with {duplicates}.", duplicates="first")]
    if answers.weight is not None:
        heavy = answers.weight[same].sum() > 1 + WEIGHT_SLACK
        why = ", with weights of more than 1 in all" if heavy else ", with the same label"
        if heavy and not remedies:
            rounded = "If the weights are rounded probabilities, settle them with {duplicates}."
            remedies = [Sentence(rounded, duplicates="mean")]
    others = "last, or mean" if table.soft is None else "last"
    settle = Sentence(f"Remove them, or settle them with {{duplicates}} (or {others}).", duplicates="first")
    who, key = answers.workers[[answers.worker[same[0]]]].tolist()[0], key_of(answers.keys, about)
    return InputError(
        f"Worker {shorten(who)} answered item {shorten(key)} more than once{why}: see {where}. "
        f"{plural(n_pairs, 'such pair')} in all.",
        *(remedies or [settle]),
        keyword="duplicates",
    )


def _find_further_column(answers: Answers, item: Integers, table: Table) -> Sentence | None:
    """The question whether an item is several columns, with the one beside that of items that tells rows apart.

    With it no worker has answered an item twice, and some items have several answers. Of several such columns the one
    with the fewest values is meant.
    """
    role = "item" if "item" in answers.columns else "sequence"
    names, used = split_names(answers.columns.get(role)), set(answers.columns.values())
    parts = [answers.columns[role]] if names is None else names
    rows = np.argsort(item, kind="stable")
    worker = np.empty(len(rows), np.int64)
    worker[rows] = answers.worker
    best: tuple[int, str] | None = None
    for name in [str(each) for each in table.names if each not in used and each not in parts][:MOST_TRIED]:
        column = table.read(name)
        if len(find_missing(column)):
            continue
        codes, values = encode_in_order_of_appearance(column)
        whole = item.astype(np.int64) * len(values) + codes
        n_whole, pairs = len(np.unique(whole)), np.unique(np.stack([whole, worker]), axis=1)
        if pairs.shape[1] == len(item) and n_whole < len(item) and (best is None or len(values) < best[0]):
            best = len(values), name
    if best is None:
        return None
    return Sentence(
        f"Is an item several columns? With {{{role}}} no worker has answered one more than once.",
        **{role: ",".join([*parts, best[1]])},
    )


# Sums along another axis are 1 so closely only if they are sums over classes.
SUM_SLACK = 1e-5


def read_matrix(F: ArrayLike, missing: object, labels: ArrayLike | None, options: TableOptions) -> Answers:
    """Read F[item, worker]; see `Answers.from_matrix`."""
    _check_size(F, 1, "F")
    check_truth("normalise", "Answers", options.normalise)
    matrix = _to_matrix(F)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"F must have items as rows and workers as columns; got an array of shape {matrix.shape}.")
    answered = ~_missing_entries(matrix, missing)
    entries = np.ma.getdata(matrix)[answered]
    if not len(entries):
        raise InputError(f"F has no answers: all {matrix.size:,} entries are missing.")
    codes, vocabulary = _encode_entries(entries, labels, options.normalise)
    spell = choose_spelling(vocabulary, list_classes(options.classes).tolist()) if options.normalise else None
    if spell is not None:
        codes, vocabulary = merge_spellings(codes, vocabulary, spell, ordered=labels is not None)
    keys, workers = _read_names(options, *matrix.shape)
    answers = Answers(
        offsets=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        worker=np.nonzero(answered)[1].astype(np.int32),
        label=codes,
        weight=None,
        workers=workers,
        labels=vocabulary,
        classes=vocabulary,
        keys=keys,
        normalised=options.normalise,
    )
    answers = with_classes(answers, options, spell, labels if options.classes is None else options.classes)
    doubt(answers, Source(named=labels is not None or options.classes is not None, tabular=False))
    return answers


def read_probabilities(P: ArrayLike, options: TableOptions) -> Answers:
    """Read P[item, worker, class]; see `Answers.from_probabilities`."""
    _check_size(P, NUMBER, "P")
    check_truth("rescale", "Answers.from_probabilities", options.rescale)
    try:
        votes = to_floats(P)
    except (TypeError, ValueError) as error:
        raise InputError(f"P must be an array of probabilities indexed by item, worker and class: {error}.") from error
    if votes.ndim != 3 or 0 in votes.shape:
        raise InputError(
            f"P must be indexed by item, worker and class; got an array of shape {votes.shape}.",
            "Stack what classifiers give to all classes: numpy.stack([...], axis=1).",
        )
    classes = None if options.classes is None else read_distinct(options.classes, "classes")
    _check_axes(votes, votes.shape[2] if classes is None else len(classes), options.rescale)
    answered: Truths = np.logical_not(np.isnan(votes).any(axis=2))
    holed = np.argwhere(~answered & ~np.isnan(votes).all(axis=2))
    if len(holed):
        i, m = holed[0]
        warn_of(
            f"{plural(len(holed), 'row')} of P {'is' if len(holed) == 1 else 'are'} NaN for some classes only, and "
            f"{'counts' if len(holed) == 1 else 'count'} as missing; the first is P[{i}, {m}] = "
            f"{votes[i, m].tolist()}.",
            "Use 0 for a class that the worker rules out.",
        )
    if not answered.any():
        raise InputError("P has no votes: every row holds a NaN.")
    given = votes[answered]
    total, wrong = sum_votes(given, options.rescale)
    if wrong.any():
        first = int(wrong.argmax())
        (i, m), n_wrong = np.argwhere(answered)[first], int(wrong.sum())
        raise InputError(
            f"P[{i}, {m}] = {given[first].tolist()} is not a vote: entries must be >= 0 and sum to 1, and these "
            f"sum to {total[first]:.4g}. There {'is' if n_wrong == 1 else 'are'} {plural(n_wrong, 'such row')}.",
            *suggest(given, total, "If the last axis lacks a class, add it."),
            "Set a row to NaN if the worker did not vote.",
        )
    probabilities = given / total[:, None]
    keys, workers = _read_names(options, *votes.shape[:2])
    labels = read_names(classes, votes.shape[2], "classes")
    answers = Answers(
        offsets=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        worker=np.nonzero(answered)[1].astype(np.int32),
        label=probabilities.argmax(axis=1).astype(np.int32),
        weight=None,
        workers=workers,
        labels=labels,
        classes=labels,
        keys=keys,
        soft=probabilities.astype(np.float32) if (probabilities.max(axis=1) < 1).any() else None,
    )
    answers = with_classes(answers, options._replace(classes=None), None, options.classes)
    doubt(answers, Source(named=True, tabular=False, normalises=False))
    return answers


def _check_size(array: object, n_bytes: int, name: str) -> None:
    """Raise an error for an array, perhaps one number that is repeated, of which no copy fits into memory."""
    shape = getattr(array, "shape", ())
    if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape):
        remedy = "Where most entries are missing, give a table with one row per answer."
        require_memory(n_bytes * math.prod(shape), f"{name} has the shape {shape}", remedy)


def _check_axes(votes: Floats, n_classes: int, rescale: bool) -> None:
    """Raise an error if the classes seem to be along another axis than the last.

    They are where the names of the classes fit only there, or where all sums along another axis are 1 and those along
    the last are not. Votes that count less than 1 pass: their sums along the other axes are 1 by no more than chance.
    """
    remedy = "P must be indexed by item, worker and class, in this order: transpose it."
    if n_classes > 1 and n_classes != votes.shape[2] and n_classes in votes.shape:
        raise InputError(
            f"There are {n_classes:,} classes, and P has {votes.shape[2]:,} entries along its last axis, but "
            f"{n_classes:,} along axis {votes.shape.index(n_classes)}.",
            remedy,
        )
    for axis, slack in ((2, slack_of(votes.shape[2]) if rescale else VOTE_SLACK), (1, SUM_SLACK), (0, SUM_SLACK)):
        with np.errstate(invalid="ignore"):  # infinities of both signs, which are an error later
            totals = votes.sum(axis=axis)
        totals = totals[~np.isnan(totals)]
        if len(totals) and np.all(np.abs(totals - 1) <= slack):
            if axis == 2:
                return
            raise InputError(f"P sums to 1 along axis {axis}, and not along its last axis.", remedy)


def _to_matrix(F: ArrayLike) -> Values:
    """F as an array whose entries have the types they came with."""
    if isinstance(F, np.ma.MaskedArray):
        return F
    plain = (str, bytes, Mapping)
    if not isinstance(F, (list, tuple)) or any(isinstance(r, plain) or not isinstance(r, Iterable) for r in F):
        try:
            return np.asarray(F)
        except ValueError as error:
            raise InputError(f"F must be a matrix of answers; {first_line(error)}.") from error
    # NumPy would make text of ["a", nan], and numbers of [True, -1].
    rows = [objects(list(row)) for row in F]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise InputError(f"F must have rows of one length; got lengths {listing(sorted(widths))}.")
    return np.array(rows, dtype=object).reshape(len(rows), -1 if rows else 0)


def _missing_entries(matrix: Values, missing: object) -> Truths:
    data = np.ma.getdata(matrix)
    mask = np.ma.getmaskarray(matrix).copy()
    if data.dtype.kind in "fmM":
        mask |= np.isnan(data)
    if is_missing(missing):
        missing = None
    if not isinstance(missing, Hashable):
        raise parameter_error("missing", "Answers.from_matrix", "a single entry of F", missing)
    number = isinstance(missing, (int, float, np.number, np.bool_))
    if data.dtype.kind in "biuf":
        if number:
            mask |= data == missing
    elif data.dtype.kind == "O" or not number:
        to_column(data.ravel(), "F")  # which refuses lists and dicts
        lost = (is_missing(entry) or bool(entry == missing) for entry in data.ravel().tolist())
        mask |= np.fromiter(lost, bool, data.size).reshape(data.shape)
    return mask


def _encode_entries(entries: Values, labels: ArrayLike | None, normalise: bool) -> tuple[Codes, Values]:
    """Codes and vocabulary of the answers in a matrix."""
    if entries.dtype == object:
        kinds = set(map(type, entries.tolist()))
        entries = np.array(entries.tolist()) if kinds == {int, float} else to_values(to_column(entries, "F"))
    whole = entries.dtype.kind in "iu" and entries.dtype != np.uint64
    if entries.dtype.kind == "f":
        # A float matrix of whole numbers is an integer matrix that had to hold NaN.
        entries = entries.astype(np.float64)
        whole = bool(np.all((entries == np.round(entries)) & (np.abs(entries) < 2**53)))
    if whole:
        entries = entries.astype(np.int64)
    if labels is None:
        return encode_sorted(to_column(entries, "F"))
    vocabulary = read_distinct(labels, "labels")
    if entries.dtype.kind in "iu":
        outside = np.flatnonzero((entries < 0) | (entries >= len(vocabulary)))
        if len(outside):
            raise InputError(
                f"F holds {entries[outside[0]]}, which is no index into the {len(vocabulary)} labels given.",
                Sentence("With {labels}, the integers of F are indices into it."),
                Sentence("Name the entry that stands for no answer with {missing}."),
            )
        return entries.astype(np.int32), vocabulary
    known, column = vocabulary, to_column(entries, "F")
    if normalise:
        known, column = to_values(normalise_column(to_column(known))), normalise_column(column)
    codes = lookup(known, column)
    if (codes < 0).any():
        raise InputError(
            f"F holds labels that were not named: {listing(dict.fromkeys(entries[codes < 0].tolist()))}.",
            Sentence("Name all labels with {labels}."),
            keyword="labels",
        )
    return codes.astype(np.int32), vocabulary


def _read_names(options: TableOptions, n_items: int, n_workers: int) -> tuple[Values | Sequences, Values]:
    """The keys of a matrix's rows, which may be in sequences of given lengths, and the names of its columns."""
    workers, items = read_names(options.workers, n_workers, "workers"), options.items
    if options.lengths is None:
        return read_names(items, n_items, "items"), workers
    sizes = to_values(read_column(options.lengths, "lengths"))
    if sizes.dtype.kind not in "iu" or (sizes <= 0).any() or sizes.sum() != n_items:
        raise InputError(
            f"lengths must be positive whole numbers that sum to the {n_items:,} rows; got {listing(sizes.tolist())}."
        )
    sizes = sizes.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if items is None:
        return Sequences(np.arange(len(sizes)), offsets, np.arange(n_items) - offsets[owner]), workers
    sequence, position = read_keys(items, 2)
    codes, ids = encode_in_order_of_appearance(sequence)
    place = read_positions(position, NAMED)
    in_order = np.all((place[1:] > place[:-1]) | (np.diff(owner) > 0)) if len(codes) == n_items else False
    if not (in_order and np.array_equal(codes, owner)):
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return Sequences(ids, offsets, place), workers
