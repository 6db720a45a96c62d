"""Long tables, one row per answer: columns found, ids encoded, answers sorted by item, repeated ones settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import check_truth, is_among
from ..errors import InputError, ParameterError, Python, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Floats, Integers, Truths
from . import Names, translate
from .classes import choose_classes, choose_scale, choose_spelling, list_classes, merge_spellings
from .columns import Codes, Column, Indices, Values, find_missing, find_present, is_categorical, is_ordered, to_values
from .composite import split_names
from .gold import add_gold, find_gold, match_known
from .items import Sequences, count_items, encode_items, key_of, read_keys, read_order
from .responses import Answers, Provenance, keep_weights
from .slips import Source, find_sets, find_sign, warn_of_silence, warn_of_slips
from .soft_votes import Probabilities, SoftRows
from .tables import WHOLE, Table, squeeze
from .vocabulary import are_distinct, encode_in_order_of_appearance, encode_sorted, keep_values, narrow_codes
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
    """How a table of answers is read; see `Answers.from_frame`."""

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
    origin, gold = table.origin, options.gold
    table, names = combine(table, names)
    table = translate(table, options.format, {**names, "gold": gold if isinstance(gold, str) else None}, options.ignore)
    columns = find_columns(table, names)
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
    known_labels = find_gold(table, gold)
    if options.drop_missing:
        table = _drop_missing(table, columns["label"])
    drop = f"A missing answer needs no row: drop it{_HOW_TO_DROP.get(table.backend, '').format(columns['label'])}."
    _refuse_sets(table, columns["label"])
    said = table.values(columns["label"], *_suggest_tags(table, columns["label"]), drop, DROP_ROWS)
    votes = None if table.soft is None else _read_votes(table, table.soft, options)
    label, labels = _encode_labels(table, said, options) if votes is None else (votes.find_codes(), votes.labels)
    spell = choose_spelling(labels, list_classes(options.classes).tolist()) if options.normalise else None
    if spell is not None:
        label, labels = merge_spellings(label, labels, spell, ordered=is_categorical(said))
    is_scale = is_ordered(said)
    del said
    worker, workers = encode_sorted(table.values(columns["worker"], _FILL))
    weight = read_weights(table, columns["weight"]) if "weight" in columns else None
    order = read_order(table, columns["order"]) if "order" in columns else None
    item, keys = _read_items(table, columns, options.items)
    soft = None if votes is None else _sort_votes(votes, item, keys)
    offsets, worker, label, weight, order = sort_rows(item, keys, worker, label, weight, order)
    known = None if known_labels is None else match_known(table, known_labels, item)
    if names["item"] is None:
        _doubt_ids(table, columns, offsets)
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
        soft=soft,
        provenance=Provenance(columns, table.format, origin),
    )
    del label
    answers = settle_duplicates(answers, options.duplicates, item, table)
    del item
    possible, silent = choose_classes(options.classes, answers.labels, options.abstain, options.background, spell)
    possible, places = choose_scale(options.ordered, options.positions, possible, options.classes, is_scale)
    answers = replace(answers, classes=possible, positions=places, background=silent)
    answers = replace(answers, weight=keep_weights(answers.weight))
    if known is not None:
        answers = add_gold(answers, known, table.name, named=isinstance(gold, str))
    warn_of_silence(answers)
    warn_of_slips(answers, Source(named=options.classes is not None))
    return answers


def combine(table: Table, names: Names) -> tuple[Table, Names]:
    """Return a table in which columns that play a role together are joined in one, and names with that one's."""
    given = dict(names)
    for role in WHOLE:
        table, given[role] = table.combine(role, given.get(role))
    return table, given


def _encode_labels(table: Table, said: Column, options: TableOptions) -> tuple[Codes, Values]:
    """Return each answer's index among the labels, and these, sorted; probabilities in their place are an error."""
    label, labels = encode_sorted(said)
    told = options.classes is not None or options.ordered is not None or is_ordered(said)
    if table.format in WIDE_FORMS and not told:
        refuse_shares(table, labels)
    return label, labels


def _read_votes(table: Table, soft: SoftRows, options: TableOptions) -> SoftRows:
    """Return the soft votes of a table, if they sum to 1."""
    from .soft_tables import check_votes

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


def _sort_votes(soft: SoftRows, item: Integers, keys: Values | Sequences) -> Probabilities | None:
    """Return soft votes in the order that `sort_rows` gives to answers; None if they are plain answers."""
    from ..kernels.columns import order_by

    if soft.are_plain():
        return None
    if np.all(item[:-1] <= item[1:]):
        return np.ascontiguousarray(soft.votes, np.float32)
    place, _ = order_by(item, count_items(keys))
    return np.ascontiguousarray(soft.votes[place], np.float32)


def _refuse_sets(table: Table, label: str) -> None:
    """Raise an error if answers are lists."""
    if table.lists(label) is not None:
        raise InputError(
            f"Column {label!r} of {table.name} holds lists: each answer is a set of tags.",
            "Read it with consilience.read_tags or consilience.Tags.from_frame, or give it to consilience.fuse.",
        )


def _suggest_tags(table: Table, label: str) -> list[Sentence]:
    """Return what to do about missing answers if others are sets of tags: then they are sets without a tag."""
    column = table.read(label)
    if not len(find_missing(column)):
        return []
    sets = find_sets(list(dict.fromkeys(to_values(column).tolist())))
    return [Sentence("If cells hold sets of tags, use {separator}.", separator=find_sign(sets))] if sets else []


def _read_items(table: Table, columns: Mapping[str, str], items: object) -> tuple[Integers, Values | Sequences]:
    """Return the item of each row, and what identifies all items: those that are named come first."""
    items = table.items if items is None else items
    names = [columns[role] for role in ("item", "sequence", "position") if role in columns]
    named = None if items is None else read_keys(items, len(names), columns)
    return encode_items([table.values(name, _FILL) for name in names], named, table.name)


def sort_rows(
    item: Integers, keys: Values | Sequences, worker: Codes, label: Codes, weight: Floats | None, order: Floats | None
) -> tuple[Indices, Codes, Codes, Floats | None, Floats | None]:
    """Return where the answers to each item begin, and worker, label, weight and order of the answers, item by item."""
    from ..kernels.columns import find_offsets, group_answers, order_by

    n_items = count_items(keys)
    if np.all(item[:-1] <= item[1:]):
        # Sorted by item already, as most tables are: nothing to move.
        return find_offsets(item, n_items), worker, label, weight, order
    worker, label, offsets = group_answers(item, n_items, worker, label)
    if weight is not None or order is not None:
        place, _ = order_by(item, n_items)
        weight, order = (None if each is None else each[place] for each in (weight, order))
    return offsets, worker, label, weight, order


def find_columns(table: Table, names: Names) -> dict[str, str]:
    """Return the column that plays each role: item (or sequence and position), worker, label, and others if named."""
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
    """Return the column of items where "id" is a number of rows, and another column has a name of items, else None.

    Beside a column such as task_id, "id" is one. Rows of several files may have the same numbers.
    """
    name = table.find_usual("item")
    others = table.candidates("item")
    if name is None or str(name).lower() != "id" or len(others) != 1:
        return None
    is_key = squeeze(others[0]) in ("itemid", "taskid", "questionid")
    return others[0] if is_key or are_distinct(table.read(name)) else None


def _drop_missing(table: Table, label: str) -> Table:
    """Return the table without rows that have no answer, and warn of their number."""
    rows = find_missing(table.read(label))
    if not len(rows) or len(rows) == table.n_rows:
        return table
    n_rows = f"{len(rows):,} of {table.n_rows:,}"
    warn_of(f"Rows of {table.name} without an answer in column {label!r} were left out: {n_rows}.")
    return table.keep(find_present(table.read(label)))


def _doubt_ids(table: Table, columns: Mapping[str, str], offsets: Indices) -> None:
    """Warn if the column of items was found by the name "id" and looks like a number of rows."""
    key = columns["item" if "item" in columns else "sequence"]
    if key.lower() == "id" and table.n_rows > 1 and np.diff(offsets).max() == 1:
        warn_of(
            f"No two rows of {table.name} have the same {key!r}: is {key!r} a row number?",
            Sentence("Name the item column with {item}."),
        )


def read_weights(table: Table, name: str) -> Floats:
    """Return the column of weights, which must be numbers in (0, 1]."""
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
        return _keep_one(answers, pair, policy)
    size = np.bincount(pair)
    repeated = size > 1
    if answers.weight is not None:
        repeated &= (np.bincount(pair, weights=answers.weight) > 1 + WEIGHT_SLACK) | _says_a_label_twice(answers, pair)
    if policy == "error" and repeated.any():
        raise _duplicate_error(answers, pair, repeated, item, table)
    weight = np.ones(len(pair)) if answers.weight is None else answers.weight
    weight = np.where(repeated[pair], weight / size[pair], weight)
    return _join_rows(replace(answers, weight=weight), pair)


def _join_rows(answers: Answers, pair: Indices) -> Answers:
    """Return the answers, of which all rows about one pair are in a row: together they are one answer."""
    first = np.full(int(pair.max()) + 1, len(pair))
    np.minimum.at(first, pair, np.arange(len(pair)))
    order = np.argsort(first[pair], kind="stable")
    weight, times = (None if each is None else each[order] for each in (answers.weight, answers.order))
    return replace(answers, worker=answers.worker[order], label=answers.label[order], weight=weight, order=times)


def _find_spans(answers: Answers, pair: Indices, item: Integers, table: Table) -> str | None:
    """Return in words that the rows are spans and no answers; None if they are not.

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
    shared = n_different <= MOST_DIFFERENT * len(marked)
    if len(marked) == int(pair.max()) + 1 or not (shared or _fit_words(table, end - start)):
        return None
    return (
        f"{table.name} holds spans (columns {listing(names.values())}), not answers about whole items: some workers "
        "marked several in one document."
    )


def _fit_words(table: Table, length: Indices) -> bool:
    """Tell whether a table says what spans read, and that is as long as they are."""
    name = table.find_usual("text")
    words = [] if name is None else to_values(table.read(name)).tolist()
    return bool(words) and [len(each) if isinstance(each, str) else -1 for each in words] == length.tolist()


def _says_a_label_twice(answers: Answers, pair: Indices) -> Truths:
    """Return for each pair whether two of its rows have the same label."""
    said, times = np.unique(pair * answers.n_labels + answers.label, return_counts=True)
    twice = np.zeros(int(pair.max()) + 1, bool)
    twice[said[times > 1] // answers.n_labels] = True
    return twice


def _keep_one(answers: Answers, pair: Indices, policy: str) -> Answers:
    """Return the answers with the first or last row of each pair."""
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


def _duplicate_error(answers: Answers, pair: Indices, repeated: Truths, item: Integers, table: Table) -> InputError:
    """Return the error that names the first pair with more than one answer."""
    first = int(np.flatnonzero(repeated[pair])[0])
    same = np.flatnonzero(pair == pair[first])
    about = int(answers.items_of(np.array([first]))[0])
    rows = np.flatnonzero(item == about)[same - answers.offsets[about]]
    where = _say_where(table, int(rows[0]), int(rows[1]))
    others = "last, or mean" if table.soft is None else "last"
    why, remedy = "", Sentence(f"Remove them, or settle them with {{duplicates}} (or {others}).", duplicates="first")
    further = find_further_column(answers, item, table) if table.soft is None else None
    if answers.weight is not None:
        heavy = answers.weight[same].sum() > 1 + WEIGHT_SLACK
        if heavy:
            remedy = Sentence(
                "If the weights are rounded probabilities, settle them with {duplicates}.", duplicates="mean"
            )
        why = ", with weights of more than 1 in all" if heavy else ", with the same label"
    who, key = answers.workers[[answers.worker[first]]].tolist()[0], key_of(answers.keys, about)
    return InputError(
        f"Worker {shorten(who)} answered item {shorten(key)} more than once{why}: see {where}. "
        f"{plural(int(repeated.sum()), 'such pair')} in all.",
        *([] if further is None else [further, Sentence("If not, settle them with {duplicates}.", duplicates="first")]),
        *([remedy] if further is None else []),
        keyword="duplicates",
    )


def find_further_column(answers: Answers, item: Integers, table: Table) -> Sentence | None:
    """Return the question whether an item is several columns, with the one beside that of items that tells rows apart.

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
    together = ",".join([*parts, best[1]])
    return Sentence(
        f"Is an item several columns? With {{{role}}} no worker has answered one more than once.", **{role: together}
    )


def _say_where(table: Table, first: int, second: int) -> str:
    """Return the places of two rows, with the file they share only once."""
    here, there = table.locate(first), table.locate(second)
    file, comma, _ = here.rpartition(", ")
    if not comma:
        return f"{here} and {there} of {table.name}"
    return f"{here} and {there.removeprefix(file + comma)}"
