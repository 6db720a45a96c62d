"""How answers are laid out: one row per answer, one column per worker, the tables of three platforms, and arrays.

A wide table has one row per item and one column per worker, in which an empty cell is no answer. A matrix is a wide
table of labelling functions, as snorkel has them: -1 is no answer either, and without a column of items row n is item
n. It is recognised where most cells are -1, unless that may be the low end of a scale.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from ..errors import (
    InputError,
    ManyQuestionsError,
    Sentence,
    about,
    first_line,
    listing,
    parameter_error,
    plural,
    shorten,
    warn_of,
)
from ..kernels import Floats, Integers, Truths
from ..limits import NUMBER, require_memory
from . import Names
from .classes import normalise_column
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    are_distinct,
    decode_categories,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    find_present,
    is_present,
    join_columns,
    keep_values,
    lookup,
    name_probabilities,
    objects,
    share_categories,
    to_column,
    to_values,
)
from .keys import NAMED, Sequences, encode_items, key_of, read_keys
from .tables import Table, build_frame, check_spread, read_column, read_distinct, read_figures, read_names, refuse_roles

if TYPE_CHECKING:
    from .answers import Answers

# Weights of one worker's spread answer may exceed 1 by rounding.
WEIGHT_SLACK = 1e-6
FILL_ANSWERS = "Every answer must say who gave it about what: fill it in or drop the row."
# What the column of known labels ends in, beside that of the answers to a question.
GOLD_ROLE = "_gold"
# A table is recognised as wide only if its cells hold few different labels.
MOST_LABELS_LISTED = 20
# In a matrix with fewer rows, a column of ids is known by its name alone.
FEWEST_ROWS = 5
# Columns with such names hold no worker's answers.
_SUMMARIES = re.compile(
    r"(consensus|majority|final|adjudicated|aggregated?|average|mean|median|total|sum|count|agreement|duplicate|status)"
    r"|(is|has|n|num)_"
)
_IGNORE = Sentence("Leave columns that hold no answers out with {ignore}.")
# Roles of columns that a table with one column per worker does not have.
_ROLES = ("worker", "label", "sequence", "position", "weight", "order")


# -------------------------------------------------------------------------------------------------- one row per answer


def drop_unlabelled(table: Table, name: str, drop_missing: bool) -> Table:
    """The table of the rows that have a label; that others are there is an error unless they are to be dropped."""
    present = find_present(table.read(name))
    if drop_missing and len(present):
        warn_of_missing(table.name, name, table.n_rows - len(present), table.n_rows)
        return table.keep(present)
    drop = Sentence("Or leave such rows out with {drop_missing}.", drop_missing=True)
    table.values(name, "A missing answer needs no row: drop it.", drop)
    return table


def warn_of_missing(table: str, column: str, n_missing: int, n_rows: int) -> None:
    """Say how many rows of a table were left out, since they hold no answer."""
    left_out = f"{n_missing:,} of {n_rows:,}"
    warn_of(f"Rows of {table} without an answer in column {column!r} were left out: {left_out}.")


def read_weights(table: Table, name: str) -> Floats:
    """Read the column of weights, which must be numbers in (0, 1]."""
    table.values(name, "Every answer needs a weight in (0, 1]: fill it in or drop the row.")
    weights = read_figures(table, name)
    wrong = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"Column {name!r} of {table.name} has {plural(len(wrong), 'weight')} outside (0, 1]; the first is "
            f"{weights[row]} at {table.locate(row)}.",
            "Divide all weights by the largest, and drop answers that count for nothing.",
        )
    return weights


def resolve_duplicates(answers: Answers, policy: str, item: Integers, table: Table) -> Answers:
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
    pair = answers.item_of_answer() * answers.n_workers + answers.worker
    _, first_row, pair = np.unique(pair, return_index=True, return_inverse=True)
    if policy in ("first", "last"):
        row = np.arange(len(pair))
        if policy == "last":
            np.maximum.at(first_row, pair, row)
        answers = answers.keep(first_row[pair] == row)
        if answers.soft is not None:
            return answers
        # A label that only occurred in answers that were dropped is a label nobody gave.
        said = np.bincount(answers.label, minlength=answers.n_labels) > 0
        label, labels = keep_values(answers.label, answers.labels, said)
        return replace(answers, label=label, labels=labels, classes=labels)
    size, weight = np.bincount(pair), np.ones(len(pair)) if answers.weight is None else answers.weight
    repeated = size > 1
    if answers.weight is not None:
        said, times = np.unique(pair * answers.n_labels + answers.label, return_counts=True)
        twice = np.isin(np.arange(len(size)), said[times > 1] // answers.n_labels)
        repeated &= (np.bincount(pair, weights=weight) > 1 + WEIGHT_SLACK) | twice
    if policy == "error" and repeated.any():
        same = np.flatnonzero(pair == pair[np.argmax(repeated[pair])])
        about = int(answers.items_of(same[:1])[0])
        first, second = (table.locate(row) for row in np.flatnonzero(item == about)[same - answers.offsets[about]][:2])
        file, comma, _ = first.rpartition(", ")
        where = f"{first} and {second.removeprefix(file + comma)}" + ("" if comma else f" of {table.name}")
        why, last = "", Sentence("Or let the last one count, with {duplicates}.", duplicates="last")
        remedies: list[str | Sentence] = ["Remove them.", last]
        if weight[same].sum() > 1 + WEIGHT_SLACK and answers.weight is not None:
            why, remedies = ", with weights of more than 1 in all", ["Let the weights of an answer sum to at most 1."]
        elif len(table.names) > len(answers.columns):
            remedies.append("If further columns tell items apart, name all columns of an item, with commas.")
        who, key = answers.workers[[answers.worker[same[0]]]].tolist()[0], key_of(answers.keys, about)
        raise InputError(
            f"Worker {shorten(who)} answered item {shorten(key)} more than once{why}: see {where}. "
            f"{plural(int(repeated.sum()), 'such pair')} in all.",
            *remedies,
            keyword="duplicates",
        )
    weight = np.where(repeated[pair], weight / size[pair], weight)
    # All rows about one pair stand together: they are one answer.
    place = np.argsort(first_row[pair], kind="stable")
    order = None if answers.order is None else answers.order[place]
    return replace(answers, worker=answers.worker[place], label=answers.label[place], weight=weight[place], order=order)


# ------------------------------------------------------------------------------------------------ one column per worker


def read_matrix(table: Table, names: Names, named: bool) -> Table | None:
    """One row per answer from a wide table in which -1 is no answer, and which may have no column of items."""
    return read_wide(table, names, named, missing=-1)


def read_wide(table: Table, names: Names, named: bool, missing: int | None = None) -> Table | None:
    """One row per answer from one row per item; `missing` stands for no answer, beside empty cells.

    A wide table is recognised if its columns hold the same few labels. A matrix is recognised if most cells are -1
    beside whole numbers from 0 on. Beside 1 alone -1 is an ordinary answer. With 0 and 1 it may be a scale, such as
    that of sentiment: then it is silence only if most columns hold one label beside it, as those of functions do.
    """
    # Which columns are which.
    is_matrix, item, candidates = missing is not None, names.get("item"), table.candidates("item")
    if named:
        refuse_roles(table, names, _ROLES, "with one column per worker")
        item = item if is_matrix else table.need("item", item, parameter="item")
    if item is None:
        item = table.find_usual("item") or (candidates[0] if len(candidates) == 1 else None)
    if not named and (item not in table.names if item is not None else not is_matrix):
        return None
    absent = [name for name in table.ignored if name not in table.names]
    if absent:
        raise InputError(f"{table.name} has no column {listing(absent)}. {table.list_columns()}.")
    gold = table.find("gold", names.get("gold"))
    workers = [name for name in table.names if name not in (item, gold, *table.ignored)]
    if named and not (workers and table.n_rows):
        raise InputError(f"{table.name} has no columns of workers, or no rows.", "Give one column for each worker.")
    columns: list[Any] = [table.read(name) for name in workers]
    # In a matrix no worker has another answer in each row.
    has_ids = item is None and len(columns) > 1 and table.n_rows >= FEWEST_ROWS and are_distinct(columns[0])
    if has_ids:
        (item, *workers), columns = workers, columns[1:]

    # Whether it is such a table.
    if not named:
        labels = _find_labels(columns) if len(columns) > 1 else None
        if labels is None or (is_matrix and not all(pa.types.is_integer(each.type) for each in columns)):
            return None
        counts = Counter(label for each in labels for label in each)
        if is_matrix:
            own = [each - {-1} for each in labels]
            n_silent = sum(pc.sum(pc.equal(each, -1)).as_py() or 0 for each in columns)
            one_sided = 2 * sum(len(each) <= 1 for each in own) > len(own)
            said = counts.keys() - {-1}
            may_be_scale = said <= {1} or (said == {0, 1} and not one_sided)
            if 2 * n_silent <= table.n_rows * len(columns) or may_be_scale or min(said) < 0:
                return None
            warn_of(
                f"Most cells of {table.name} are -1, as where labelling functions vote. So -1 is taken for no answer, "
                "and each column for a worker.",
                Sentence("To be sure, give {format}.", format="matrix"),
                Sentence("If -1 is an answer, give {format}.", format="wide"),
            )
        else:
            shared = {label for label, count in counts.items() if count > 1}
            alike = 2 <= len(counts) <= MOST_LABELS_LISTED and 2 * len(shared) >= len(counts)
            has_others = not all(each & shared for each in labels) or any(
                _SUMMARIES.match(str(name).lower()) for name in workers
            )
            if not alike or has_others or not are_distinct(table.read(str(item))):
                return None
            warn_of(
                f"{table.name} has no column of workers. Each of these columns is taken for one: {listing(workers)}.",
                Sentence("To be sure, give {format}.", format="wide"),
                _IGNORE,
            )
    if has_ids:
        warn_of(
            f"The first column of {table.name}, {shorten(item)}, is taken for ids of the items: no two rows have "
            "the same.",
            Sentence("To be sure, name it: {item}.", item=item),
            "If it holds answers of a worker, move it to another place.",
        )

    # Its cells, one below the other.
    require_memory(NUMBER * table.n_rows * len(workers), f"{table.name} has {table.n_rows:,} x {len(workers):,} cells")
    scales = [each for each in columns if getattr(getattr(each, "type", None), "ordered", False)]
    categories = scales[0].dictionary if len(scales) == len(columns) and share_categories(scales) else None
    entries = join_columns(*columns, as_text=True)
    if not isinstance(entries, np.ndarray) and pa.types.is_floating(entries.type):
        with suppress(pa.ArrowInvalid):  # pandas makes floats of whole numbers beside an empty cell
            entries = pc.cast(pc.if_else(pc.is_nan(entries), None, entries), pa.int64())
    there = is_present(entries) & (lookup(np.array([missing]), entries) < 0 if is_matrix else True)
    cells = np.flatnonzero(there)
    if not len(cells):
        raise InputError(f"{table.name} has no answers: all cells of {listing(workers)} are empty.")
    who, row = np.divmod(cells, table.n_rows)
    kept = np.flatnonzero(~_find_other_columns(table, workers, who, entries.take(cells))[who])
    who, row, cells = who[kept], row[kept], cells[kept]
    order = np.argsort(row, kind="stable")
    who, row, label = who[order], row[order], entries.take(cells[order])
    if categories is not None:
        places = pc.index_in(label, value_set=categories)
        label = pa.DictionaryArray.from_arrays(places, categories, ordered=True)
    numbered = [str(name) for name in workers] == [str(n) for n in range(len(workers))]
    name_of_worker = to_column(list(range(len(workers))) if numbered else list(workers))
    remedy = "Say which item each row is about."
    keys = to_column(np.arange(table.n_rows)) if item is None else table.values(item, remedy)
    key = item or "row"
    fields: dict[str, Any] = {key: keys.take(row), "worker": name_of_worker.take(who), "label": label}
    if gold is not None:
        fields[gold] = table.read(gold).take(row)
    return Table(
        list(fields),
        fields.__getitem__,
        len(row),
        table.backend,
        table.name,
        lambda at: f"{table.locate(int(row[at]))}, column {workers[int(who[at])]!r}",
        {"item": key, "worker": "worker", "label": "label", "gold": gold},
        items=to_column(encode_in_order_of_appearance(keys)[1]),
        added=fields,
    )


def _find_other_columns(table: Table, workers: Sequence[str], who: Indices, entries: Column) -> Truths:
    """Which columns have many values that no other column holds: these are no answers, and are left out."""
    codes, values = encode_in_order_of_appearance(entries)
    owner, code = np.divmod(np.unique(who * len(values) + codes), len(values))
    is_shared = np.bincount(code)[code] > 1
    n_labels = np.bincount(owner, minlength=len(workers))
    alone = (np.bincount(owner, is_shared, len(workers)) == 0) & (n_labels > 0) & (len(workers) > 2)
    many = alone & (n_labels > MOST_LABELS_LISTED) & (alone.sum() < len(workers))
    few = [workers[w] for w in np.flatnonzero(alone & ~many).tolist()]
    if few:
        problem = f"No other column of {table.name} holds any of the values of {listing(few)}."
        warn_of(f"{problem} Each column is taken for a worker.", _IGNORE)
    if many.any():
        left_out = listing([workers[w] for w in np.flatnonzero(many).tolist()])
        problem = f"Columns of {table.name} with many values that no other column holds are left out: {left_out}."
        warn_of(problem, Sentence("Name them with {ignore} to silence this warning."))
    return np.asarray(many)


def _find_labels(columns: Sequence[Any]) -> list[set[Any]] | None:
    """The labels in each column; None if one holds none, fractions, or too many."""
    labels = []
    for column in columns:
        if isinstance(column, np.ndarray) or pa.types.is_floating(column.type):
            return None
        labels.append(set(pc.unique(decode_categories(column)).to_pylist()) - {None})
        if not 1 <= len(labels[-1]) <= MOST_LABELS_LISTED:
            return None
    return labels


# ------------------------------------------------------------------------------------------------------------ platforms


def read_mturk(table: Table, names: Names, named: bool) -> Table:  # noqa: ARG001
    """Rows that were not rejected; answers as JSON text and options in columns of their own become columns."""
    table = _leave_out(table, "AssignmentStatus", ["rejected"], "rejected")
    tasks = "Answer.taskAnswers"
    fields: dict[str, list[str | None]] = defaultdict(lambda: [None] * table.n_rows)
    for row, text in enumerate(table.read(tasks).tolist() if tasks in table.names else []):
        try:
            record = json.loads(text) if isinstance(text, str) else {}
            record = record[0] if isinstance(record, list) and len(record) == 1 else record or {}
            answers = list(record.items())
        except (ValueError, RecursionError, AttributeError):
            raise InputError(
                f"Column {tasks!r} of {table.name} must hold one JSON object per row. Got {shorten(text)} at "
                f"{table.locate(row)}.",
                "Correct or remove the row.",
            ) from None
        for name, value in answers:
            for suffix, entry in value.items() if isinstance(value, dict) else [("", value)]:
                if isinstance(entry, (str, bool, int, float)):
                    column = f"Answer.{name}.{suffix}" if suffix else f"Answer.{name}"
                    fields[column][row] = str(entry).lower() if isinstance(entry, bool) else str(entry)
    table = table.add({name: to_column(each) for name, each in fields.items() if name not in table.names})
    # Options of one question of which at most one is ticked; where several may be, each is a question of its own.
    questions = [name for name in _starting(table, "Answer.") if name != tasks]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in questions:
        question, dot, _ = name.rpartition(".")
        if dot and question != "Answer":
            groups[question].append(name)
    for question, options in groups.items():
        cells = [[str(entry or False).lower() for entry in table.read(name).tolist()] for name in options]
        rows = list(zip(*cells, strict=True))
        is_ticked = {entry for each in cells for entry in each} <= {"true", "false"}
        if question in table.names or len(options) < 2 or not is_ticked or any(row.count("true") > 1 for row in rows):
            continue
        parts = [name.removeprefix(f"{question}.") for name in options]
        chosen = [parts[row.index("true")] if "true" in row else None for row in rows]
        table = table.add({question: to_column(chosen)})
        questions = [question, *(name for name in questions if name not in options)]
    item = _choose_item(table, _starting(table, "Input."), "HITId", names)
    label = _choose_question(table, questions, names, "MTurk results")
    return replace(table, preferred={"item": item, "worker": "WorkerId", "label": label})


def read_toloka(table: Table, names: Names, named: bool) -> Table:  # noqa: ARG001
    """Rows that say who answered or what, and were not rejected."""
    worker, questions = "ASSIGNMENT:worker_id", _starting(table, "OUTPUT:")
    filled = np.any([is_present(table.read(name)) for name in (worker, *questions)], axis=0)
    if filled.any() and not filled.all():  # blank lines stand between task suites
        table = table.keep(np.flatnonzero(filled))
    table = _leave_out(table, "ASSIGNMENT:status", ["rejected"], "rejected")
    label = _choose_question(table, questions, names, "Toloka assignments")
    item = _choose_item(table, _starting(table, "INPUT:"), "ASSIGNMENT:task_id", names)
    preferred = {"item": item, "worker": worker, "label": label, "gold": f"GOLDEN:{label.removeprefix('OUTPUT:')}"}
    return replace(table, preferred=preferred)


def read_appen(table: Table, names: Names, named: bool) -> Table:  # noqa: ARG001
    """Rows that can be trusted, with known answers of test questions; several accepted answers are no known label."""
    table = _leave_out(table, "_tainted", ["true", "1"], "not to be trusted")
    columns = [str(name) for name in table.names]
    # Questions have known answers beside them; without any it is the one with a usual name.
    usual = table.find("label")
    questions = [name for name in columns if f"{name}{GOLD_ROLE}" in columns] or ([] if usual is None else [usual])
    label = _choose_question(table, questions, names, "a full report of Appen")
    gold = f"{label}{GOLD_ROLE}"
    if gold in columns:
        tests = table.read("_golden").tolist() if "_golden" in columns else ["true"] * table.n_rows
        known = [
            value if str(test).lower() in ("true", "1") and "\n" not in str(value).strip() else None
            for value, test in zip(table.read(gold).tolist(), tests, strict=True)
        ]
        table = table.add({gold: to_column(known)})
    preferred = {"item": names.get("item") or "_unit_id", "worker": "_worker_id", "label": label, "gold": gold}
    return replace(table, preferred=preferred)


def take_question(table: Table, names: Names) -> Table:
    """The rows that answer one question of a log."""
    if names.get("label") is None:
        raise _many_questions(table, table.questions, "a log")
    label = table.need("label", names["label"], parameter="label")
    sets = table.lists(label)
    rows = find_present(table.read(label)) if sets is None else np.flatnonzero([each is not None for each in sets])
    preferred = {**table.preferred, "label": label, "gold": f"{label}{GOLD_ROLE}"}
    return replace(table.keep(rows), preferred=preferred, questions=())


def _starting(table: Table, prefix: str) -> list[str]:
    return [str(name) for name in table.names if str(name).startswith(prefix)]


def _choose_question(table: Table, questions: Sequence[str], names: Names, kind: str) -> str:
    """The column of answers: the one that was named, or the only question that somebody answered."""
    if names.get("label") is not None:
        return table.need("label", names["label"], parameter="label")
    answered = [name for name in questions if len(find_missing(table.read(name))) < table.n_rows]
    if len(answered) == 1:
        return answered[0]
    if not answered:
        what = f"nothing in {listing(questions, len(questions))}" if questions else "no column of answers"
        raise InputError(
            f"{table.name} looks like {kind}, but there is {what}.",
            Sentence("Name the column of answers with {label}."),
        )
    raise _many_questions(table, answered, kind)


def _many_questions(table: Table, questions: Sequence[str], kind: str) -> ManyQuestionsError:
    error = ManyQuestionsError(
        f"{table.name} ({kind}) has {plural(len(questions), 'question')}: {listing(questions, len(questions))}.",
        Sentence("Choose one with {label}."),
        keyword="label",
    )
    error.questions = tuple(questions)
    return error


def _choose_item(table: Table, inputs: Sequence[str], key: str, names: Names) -> str:
    """The column of items: the one that was named, the only input, if no row lacks it, else the platform's own key."""
    if names.get("item") is not None:
        return table.need("item", names["item"], parameter="item")
    is_whole = len(inputs) == 1 and not len(find_missing(table.read(inputs[0])))
    return inputs[0] if is_whole else table.need("item", key, parameter="item")


def _leave_out(table: Table, column: str, values: Sequence[str], what: str) -> Table:
    """The table without the rows that have one of some values in a column, in any case; a warning counts them."""
    if column not in table.names:
        return table
    kept = np.flatnonzero([str(state).lower() not in values for state in table.read(column).tolist()])
    n_left = table.n_rows - len(kept)
    if n_left:
        problem = f"{plural(n_left, 'row')} of {table.name} {'was' if n_left == 1 else 'were'} left out as {what}"
        with about(None):  # which holds for all questions of the table
            warn_of(
                f"{problem} (column {column!r}).",
                Sentence("To use all rows, use {format}, and name the columns.", format="long"),
            )
    if not len(kept):
        raise InputError(f"No row of {table.name} is left.")
    return table.keep(kept)


# --------------------------------------------------------------------------------------------------------------- arrays


def lay_out_matrix(answered: Truths, lengths: ArrayLike | None, items: object, workers: object) -> dict[str, Any]:
    """What `Answers` have of a matrix: offsets, workers, and keys of its rows, which may be in sequences."""
    n_items, n_workers = answered.shape
    layout = {
        "offsets": np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        "worker": np.nonzero(answered)[1].astype(np.int32),
        "workers": read_names(workers, n_workers, "workers"),
        "weight": None,
    }
    if lengths is None:
        return {**layout, "keys": read_names(items, n_items, "items")}
    sizes = to_values(read_column(lengths, "lengths"))
    if sizes.dtype.kind not in "iu" or (sizes <= 0).any() or sizes.sum() != n_items:
        raise InputError(
            f"lengths must be positive whole numbers that sum to the {n_items:,} rows; got {listing(sizes.tolist())}."
        )
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    numbers = [to_column(owner), to_column(np.arange(n_items) - offsets[owner])]
    place, keys = encode_items(numbers if items is None else read_keys(items, 2), None, NAMED)
    assert isinstance(keys, Sequences)
    if not np.array_equal(place, np.arange(n_items)) or not np.array_equal(keys.offsets, offsets):
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return {**layout, "keys": keys}


def read_entries(
    F: ArrayLike, missing: object, labels: ArrayLike | None, normalise: bool
) -> tuple[Truths, Codes, Values]:
    """Which entries of a matrix are answers, and their codes and vocabulary."""
    matrix: Any
    try:
        if isinstance(F, (list, tuple)) and not any(isinstance(row, (str, bytes, Mapping)) for row in F):
            # NumPy would make text of ["a", nan], and numbers of [True, -1].
            matrix = np.array([objects(list(row)) for row in F], dtype=object)
        else:
            matrix = np.ma.asarray(F) if np.ma.isMaskedArray(F) else np.asarray(F)
    except (TypeError, ValueError) as error:
        raise InputError(f"F must be a matrix of answers; {first_line(error)}.") from error
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"F must have items as rows and workers as columns; got an array of shape {matrix.shape}.")
    if not isinstance(missing, Hashable):
        raise parameter_error("missing", "Answers.from_matrix", "a single entry of F", missing)
    data, mask = np.ma.getdata(matrix).ravel(), np.ma.getmaskarray(matrix).ravel()
    column = to_column(data, "F")
    there = is_present(column) & ~mask
    if data.dtype.kind not in "biuf":
        there &= ~(data.astype(object) == objects([missing])).astype(bool)
    elif isinstance(missing, (int, float, np.number, np.bool_)):
        there &= data != missing
    answered = there.reshape(matrix.shape)
    entries: Any = column.take(np.flatnonzero(there))
    if not len(entries):
        raise InputError(f"F has no answers: all {data.size:,} entries are missing.")

    if isinstance(entries, np.ndarray) and set(map(type, entries.tolist())) == {int, float}:
        entries = to_column(np.array(entries.tolist()))
    kind = pa.null() if isinstance(entries, np.ndarray) else entries.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        with suppress(pa.ArrowInvalid):  # a float matrix of whole numbers is an integer matrix that had to hold NaN
            entries = pc.cast(entries, pa.int64())
        if pa.types.is_floating(entries.type):
            entries = pc.cast(entries, pa.float64())
    if labels is None:
        return answered, *encode_sorted(entries)
    vocabulary = read_distinct(labels, "labels")
    if not isinstance(entries, np.ndarray) and pa.types.is_integer(entries.type):
        codes = to_values(entries)
        outside = np.flatnonzero((codes < 0) | (codes >= len(vocabulary)))
        if len(outside):
            raise InputError(
                f"F holds {codes[outside[0]]}, which is no index into the {len(vocabulary)} labels given.",
                Sentence("With {labels}, the integers of F are indices into it."),
                Sentence("Name the entry that stands for no answer with {missing}."),
            )
        return answered, codes.astype(np.int32), vocabulary
    known = to_column(vocabulary)
    if normalise:
        known, entries = normalise_column(known), normalise_column(entries)
    codes = lookup(to_values(known), entries)
    if (codes < 0).any():
        raise InputError(
            f"F holds labels that were not named: {listing(dict.fromkeys(to_values(entries)[codes < 0].tolist()))}.",
            Sentence("Name all labels with {labels}."),
            keyword="labels",
        )
    return answered, codes.astype(np.int32), vocabulary


# ----------------------------------------------------------------------------------------------------- writing them


def to_long(responses: Answers) -> Any:
    """A table with one row per answer: item (or sequence and position), worker, label, perhaps weight and gold.

    Items that nobody answered have no row. Soft votes have a column p(<label>) for each label instead of one of labels.

    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> from consilience import Answers
    >>> to_long(Answers.from_frame(answers)).to_pydict() == answers
    True
    """
    owner = responses.item_of_answer()
    columns = {name: column.take(owner) for name, column in _name_items(responses).items()}
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
    """A table with one row per item and one column per worker, empty where a worker gave no answer.

    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> from consilience import Answers
    >>> to_wide(Answers.from_frame(answers)).to_pydict()
    {'item': [1, 2], 'ann': ['cat', 'cat'], 'bob': ['dog', None]}
    """
    columns = _name_items(responses)
    names = [str(worker) for worker in responses.workers.tolist()]
    taken = [name for name in names if name in columns]
    if taken or len(set(names)) < len(names):
        raise InputError(
            f"Workers would share a column with something else: {listing(taken or names)}.",
            "Rename them, or write one row per answer.",
        )
    check_spread(responses.n_items, len(names), responses.n_responses)
    codes = np.full((len(names), responses.n_items), -1, np.int64)
    codes[responses.worker, responses.item_of_answer()] = responses.label
    if np.count_nonzero(codes >= 0) < responses.n_responses:
        raise InputError(
            "Some answers are spread over several labels, and a cell holds one.", "Write one row per answer."
        )
    labels = objects([*responses.labels.tolist(), None])  # the last of which is that of the code -1
    for name, row in zip(names, codes, strict=True):
        columns[name] = to_column(labels[row])
    return build_frame(columns, responses.backend)


def _name_items(responses: Answers) -> dict[str, Column]:
    """What identifies the items, and their known labels if there are any."""
    columns = responses.key_columns()
    if responses.gold:
        columns["gold"] = to_column([responses.gold.get(item) for item in responses.items.tolist()])
    return columns


# What answers can be written as, by the names that users give them.
LAYOUTS: dict[str, Callable[[Answers], Any]] = {"long": to_long, "wide": to_wide}
