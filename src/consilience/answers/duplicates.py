"""Workers who answered an item more than once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_among
from ..errors import DataWarning, InputError, Python, Sentence, listing, parameter_error, plural, shorten, warn
from ..tasks.span_tables import find_span_columns
from .items import Sequences
from .responses import Responses
from .tables import Table
from .vocabulary import to_values

DUPLICATES = ("error", "first", "last", "mean")
# Weights of one worker's spread answer may exceed 1 by rounding.
WEIGHT_SLACK = 1e-6
# Spans that several workers marked are fewer than what they marked in all, by at least this factor.
MOST_DIFFERENT = 0.95
_FUSE_SPANS = (
    "The texts are not in such a table: fuse the file of the annotation tool that they come from.",
    Sentence("Or give table and texts to {from_frame}.", from_frame=Python("Spans.from_frame")),
)
_SETTLE = Sentence(
    "If start and end are something else, settle repeated answers with {duplicates}.", duplicates="first"
)


def check_policy(policy: str) -> None:
    """Raise an error unless there is such a policy."""
    if not is_among(policy, DUPLICATES):
        raise parameter_error("duplicates", "Responses", f"one of {', '.join(map(repr, DUPLICATES))}", policy)


def settle_duplicates(answers: Responses, policy: str, item: NDArray[np.signedinteger], table: Table) -> Responses:
    """Apply `duplicates=` to the pairs of item and worker that have more than one row.

    Several rows are one answer if they have weights, which sum to at most 1, and different labels. "first" and "last"
    keep one row of every pair all the same.

    Parameters
    ----------
    answers : Responses
        All rows.
    policy : {"error", "first", "last", "mean"}
        As in `Responses.from_frame`.
    item : ndarray
        The item of each row of the table. The answers are in the stable order of items.
    table : Table
        Where the answers come from.
    """
    from ..kernels.layout import find_repeat

    if find_repeat(answers.offsets, answers.worker, answers.n_workers) < 0:
        return answers
    _, pair = np.unique(answers.item_of_answer() * answers.n_workers + answers.worker, return_inverse=True)
    spans = _find_spans(answers, pair, item, table)
    if spans is not None and policy == "error":
        raise InputError(spans, *_FUSE_SPANS, _SETTLE, keyword="duplicates")
    if spans is not None:
        warn(DataWarning(spans, *_FUSE_SPANS))
    if policy in ("first", "last"):
        return _keep_one(answers, pair, policy)
    size = np.bincount(pair)
    repeated = size > 1
    if answers.weight is not None:
        repeated &= (np.bincount(pair, weights=answers.weight) > 1 + WEIGHT_SLACK) | _says_a_label_twice(answers, pair)
    if not repeated.any():
        return answers
    if policy == "error":
        raise _duplicate_error(answers, pair, repeated, item, table)
    weight = np.ones(len(pair)) if answers.weight is None else answers.weight
    return replace(answers, weight=np.where(repeated[pair], weight / size[pair], weight))


def _find_spans(
    answers: Responses, pair: NDArray[np.int64], item: NDArray[np.signedinteger], table: Table
) -> str | None:
    """Return in words that the rows are spans and no answers; None if they are not.

    Spans begin before they end, and some worker marked several of them in one document. Start and end may also be the
    times of an answer. So they must also fit the words of the spans, or now and then be the same for several workers.
    """
    names = find_span_columns(table)
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


def _fit_words(table: Table, length: NDArray[np.int64]) -> bool:
    """Tell whether a table says what spans read, and that is as long as they are."""
    name = table.find_usual("text")
    words = [] if name is None else to_values(table.read(name)).tolist()
    return bool(words) and [len(each) if isinstance(each, str) else -1 for each in words] == length.tolist()


def _says_a_label_twice(answers: Responses, pair: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each pair whether two of its rows have the same label."""
    said, times = np.unique(pair * answers.n_labels + answers.label, return_counts=True)
    twice = np.zeros(int(pair.max()) + 1, bool)
    twice[said[times > 1] // answers.n_labels] = True
    return twice


def _keep_one(answers: Responses, pair: NDArray[np.int64], policy: str) -> Responses:
    """Return the answers with the first or last row of each pair."""
    step = 1 if policy == "first" else -1
    _, chosen = np.unique(pair[::step], return_index=True)
    kept = np.zeros(len(pair), bool)
    kept[chosen if step == 1 else len(pair) - 1 - chosen] = True
    answers = answers.keep(kept)
    # A label that only occurred in answers that were dropped is a label nobody gave.
    said = np.bincount(answers.label, minlength=answers.n_labels) > 0
    rank = np.cumsum(said, dtype=np.int32) - np.int32(1)
    labels = answers.labels[said]
    return replace(answers, label=rank[answers.label], labels=labels, classes=labels)


def _duplicate_error(
    answers: Responses,
    pair: NDArray[np.int64],
    repeated: NDArray[np.bool_],
    item: NDArray[np.signedinteger],
    table: Table,
) -> InputError:
    """Return the error that names the first pair with more than one answer."""
    first = int(np.flatnonzero(repeated[pair])[0])
    same = np.flatnonzero(pair == pair[first])
    about = _item_of(answers, first)
    rows = np.flatnonzero(item == about)[same - answers.offsets[about]]
    where = _say_where(table, int(rows[0]), int(rows[1]))
    why, remedy = "", Sentence("Remove them, or settle them with {duplicates} (or last, or mean).", duplicates="first")
    if answers.weight is not None:
        heavy = answers.weight[same].sum() > 1 + WEIGHT_SLACK
        if heavy:
            remedy = Sentence(
                "If the weights are rounded probabilities, settle them with {duplicates}.", duplicates="mean"
            )
        why = ", with weights of more than 1 in all" if heavy else ", with the same label"
    who, key = answers.workers[[answers.worker[first]]].tolist()[0], _key_of(answers, about)
    return InputError(
        f"Worker {shorten(who)} answered item {shorten(key)} more than once{why}: see {where}. "
        f"{plural(int(repeated.sum()), 'such pair')} in all.",
        remedy,
        keyword="duplicates",
    )


def _say_where(table: Table, first: int, second: int) -> str:
    """Return the places of two rows, with the file they share only once."""
    here, there = table.locate(first), table.locate(second)
    file, comma, _ = here.rpartition(", ")
    if not comma:
        return f"{here} and {there} of {table.name}"
    return f"{here} and {there.removeprefix(file + comma)}"


def _item_of(answers: Responses, answer: int) -> int:
    """Return the index of the item that an answer is about."""
    return int(np.searchsorted(answers.offsets, answer, side="right")) - 1


def _key_of(answers: Responses, item: int) -> object:
    """Return what identifies an item, as Python writes it: 7, not np.int64(7)."""
    keys = answers.keys
    if isinstance(keys, Sequences):
        owner = int(np.searchsorted(keys.offsets, item, side="right")) - 1
        return keys.ids[[owner]].tolist()[0], keys.position[[item]].tolist()[0]
    return keys[[item]].tolist()[0]
