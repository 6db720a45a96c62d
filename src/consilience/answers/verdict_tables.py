"""Tables of comparisons: columns found, candidates and judges encoded, and verdicts in any of the usual words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError, Sentence, join_names, listing, plural, shorten
from ..kernels import Floats, Integers
from .columns import Codes, Values, to_column
from .items import read_order
from .tables import Table, squeeze
from .vocabulary import encode_in_order_of_appearance, encode_sorted, join_columns, lookup

# What a verdict can be.
LEFT, RIGHT, TIE = 0, 1, 2
VERDICTS = ("left", "right", "tie")
# Words for verdicts, in letters and digits alone; signs as they are.
_LEFT = ("left", "a", "modela", "responsea", "answera", "optiona", "candidatea", "systema", "first", "1", "x", ">")
_RIGHT = ("right", "b", "modelb", "responseb", "answerb", "optionb", "candidateb", "systemb", "second", "2", "y", "<")
_TIE = ("tie", "tied", "draw", "equal", "same", "both", "neither", "bothbad", "bothgood", "tiebothbad", "0", "=")
WORDS = {**dict.fromkeys(_LEFT, LEFT), **dict.fromkeys(_RIGHT, RIGHT), **dict.fromkeys(_TIE, TIE)}
# Where the share of points that the left one gets says who won.
_POINTS = {"1": LEFT, "10": LEFT, "05": TIE, "0": RIGHT, "00": RIGHT}
# Where 1 is for the left and -1 for the right one.
_BALANCE = {"1": LEFT, "-1": RIGHT, "0": TIE}
_SIGNS = {"-1": "-1", ">": ">", ">>": ">", "<": "<", "<<": "<", "=": "=", "==": "="}
# Winners are ids of candidates if so many of them are, and those that are not are wrong.
MOSTLY = 0.9
# More pairs than this are not made of scores; of many scores, so many for each.
MOST_PAIRS, PAIRS_PER_SCORE = 3_000_000, 100
# More verdicts than this, by their weights, cannot be told apart from certainty in double precision.
MOST_VERDICTS = 1e12
_FILL = "Every verdict must say which two were compared: fill it in or drop the row."
_WRITE = "Write the candidate that won, or left, right and tie."


def read_comparisons(table: Table, names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the fields of `Comparisons` that a table holds; `names` are the columns that are given, by role."""
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows: there are no comparisons to rank by.")
    if is_of_scores(table, names):
        return read_scores(table, names)
    roles = {role: names[role] for role in ("left", "right", "winner")}
    found = {role: table.find(role, given) for role, given in roles.items()}
    missing = [role for role, name in found.items() if name is None]
    if len(missing) > 1:
        error = table.no_columns(missing)
        if "left" in missing and "right" in missing:
            hint = Sentence("For a table of scores or ranks, name {candidate} and {score} or {rank}.")
            error = InputError(error.problem, *error.remedies, hint)
        raise error
    taken = replace(table, taken=[name for name in found.values() if name is not None])
    columns = {role: taken.need(role, given, parameter=role) for role, given in roles.items()}
    columns |= find_others(table, names, list(columns.values()))
    left, right, candidates = encode_pairs(table, columns)
    verdict, winners = read_verdicts(table, columns["winner"], left, right, candidates)
    return {
        "left": left,
        "right": right,
        "verdict": verdict,
        "candidates": candidates,
        "winners": winners,
        "weight": read_multiples(table, columns["weight"]) if "weight" in columns else None,
        **read_judges(table, columns),
    }


def list_columns(table: Table, names: Mapping[str, str | None]) -> set[str]:
    """Return the columns that may play a role in comparisons, by those that are given."""
    given = {name for name in names.values() if name is not None and name in table.names}
    roles = ("left", "right", "winner", "worker", "item", "candidate", "score", "rank")
    return given | {name for role in roles if (name := table.find(role)) is not None}


def find_others(table: Table, names: Mapping[str, str | None], taken: Sequence[str]) -> dict[str, str]:
    """Return the columns of judges and items, which may be missing, and others that are named."""
    found = {}
    for role in ("worker", "item"):
        name = table.find(role, names[role])
        if name is not None and (names[role] is not None or name not in taken):
            found[role] = name
    for role in ("group", "weight", "order"):
        if names[role] is not None:
            found[role] = table.need(role, names[role], parameter=role)
    return found


def read_judges(table: Table, columns: dict[str, str]) -> dict[str, Any]:
    """Return who gave each verdict, about what and when, as fields of `Comparisons`."""
    n = table.n_rows
    worker, workers = np.zeros(n, np.int32), np.array([""], object)
    who = columns.get("worker", columns.get("group"))  # a family without members is one judge
    if who is not None:
        worker, workers = encode_sorted(table.values(who, "Every verdict must say who gave it: fill it in."))
        columns = {**columns, "worker": who}
    item, group, groups = None, None, np.empty(0, object)
    if "item" in columns:
        item = encode_in_order_of_appearance(table.values(columns["item"], "Fill it in, or drop the row."))[0]
    if "group" in columns and columns["group"] != who:
        group, groups = encode_sorted(table.values(columns["group"], "Every judge needs a family: fill it in."))
    order = read_order(table, columns["order"]) if "order" in columns else None
    judges = {"worker": worker, "workers": workers, "item": item, "group": group, "groups": groups}
    return {**judges, "order": order, "columns": columns, "backend": table.backend}


def encode_pairs(table: Table, columns: Mapping[str, str]) -> tuple[Codes, Codes, Values]:
    """Return the two candidates of each row, and the ids of all; no candidate is compared with itself."""
    sides = [encode_in_order_of_appearance(table.values(columns[role], _FILL)) for role in ("left", "right")]
    codes, candidates = encode_sorted(join_columns(*(to_column(values) for _, values in sides)))
    split = len(sides[0][1])
    left, right = codes[:split][sides[0][0]], codes[split:][sides[1][0]]
    same = np.flatnonzero(left == right)
    if len(same):
        row = int(same[0])
        raise InputError(
            f"In {plural(len(same), 'row')} of {table.name} a candidate is compared with itself; the first is "
            f"{shorten(candidates[left[row]])} at {table.locate(row)}.",
            "Drop such rows: they tell nothing.",
        )
    return left, right, candidates


# ------------------------------------------------------------------------------------------------------------ verdicts


def read_verdicts(
    table: Table, name: str, left: Codes, right: Codes, candidates: Values
) -> tuple[NDArray[np.int8], str]:
    """Return the verdict of each row, by the ids of candidates if all fit, else by words for the two sides; and how."""
    column = table.values(name, "A comparison without a verdict needs no row: drop it.")
    said, values = encode_in_order_of_appearance(column)
    place = lookup(candidates, to_column(values))
    by_id = place[said]
    is_id = (by_id == left) | (by_id == right)
    words = [spell_word(value) for value in values.tolist()]
    # Numbers are ties only beside ids: in a column without these they are sides.
    ties = [bool(is_id.any()) if word in ("0", "-1") else WORDS.get(word) == TIE for word in words]
    is_tie = np.array(ties)[said] & (by_id < 0)
    is_neither = ~is_id & ~is_tie
    if is_neither.sum() <= (1 - MOSTLY) * np.sum(~is_tie):
        verdict = np.where(is_tie, TIE, np.where(by_id == left, LEFT, RIGHT)).astype(np.int8)
        winners = describe_winners("ids of candidates", values.tolist(), np.where(place < 0, TIE, -1).tolist())
        wrong = np.flatnonzero(is_neither)
        if not (len(wrong) or tell_ids(by_id[is_id], left[is_id], right[is_id])):
            check_sides(table, name, words, said, verdict)
    else:
        codes = np.array(spell_verdicts(table, name, words, values.tolist()), np.int8)
        verdict = codes[said]
        winners = describe_winners("sides", values.tolist(), codes.tolist())
        wrong = np.flatnonzero(verdict < 0)
    if len(wrong):
        raise no_verdict(table, name, wrong, values[said[wrong]], candidates[left[wrong]], candidates[right[wrong]])
    return np.asarray(verdict), winners


def describe_winners(how: str, values: Sequence[object], codes: Sequence[int]) -> str:
    """Return in words how winners were read, with what stands for each verdict.

    >>> describe_winners("sides", [1, -1, 0], [LEFT, RIGHT, TIE])
    'sides (left: 1; right: -1; tie: 0)'
    >>> describe_winners("ids of candidates", ["a", "b"], [-1, -1])
    'ids of candidates'
    """
    said = {
        word: [str(value) for value, code in zip(values, codes, strict=True) if code == place]
        for place, word in enumerate(VERDICTS)
    }
    parts = [f"{word}: {', '.join(sorted(texts))}" for word, texts in said.items() if texts]
    return f"{how} ({'; '.join(parts)})" if parts else how


def tell_ids(won: Codes, left: Codes, right: Codes) -> bool:
    """Tell whether winners that are ids can be nothing else: another one would not have been among the two of a row."""
    seen = np.unique(won)
    return len(seen) > 2 or (len(seen) == 2 and not bool((np.isin(left, seen) & np.isin(right, seen)).all()))


def check_sides(table: Table, name: str, words: Sequence[str], said: Codes, verdict: NDArray[np.int8]) -> None:
    """Raise an error if ids of candidates are 0, 1 or 2, which may as well mean sides, and other ones."""
    known = {word for word in words if word == "0" or WORDS.get(word) != TIE}
    sides = {"1": LEFT, "2": RIGHT, "-1": RIGHT, "0": TIE if known & {"2", "-1"} else RIGHT}
    if known and known <= sides.keys() and (np.array([sides.get(word, TIE) for word in words])[said] != verdict).any():
        raise InputError(
            f"Column {name!r} of {table.name} holds {join_names(sorted(known))}, which may be candidates, or stand for "
            "left and right: the two readings differ.",
            "Write left, right and tie; or give candidates other names than 0, 1 and 2.",
            keyword="winner",
        )


def spell_word(value: object) -> str:
    """Return what is compared with the words for verdicts.

    >>> spell_word("Model_A"), spell_word("tie (bothbad)"), spell_word(1.0), spell_word(" > ")
    ('modela', 'tiebothbad', '1', '>')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return _SIGNS.get(text, squeeze(text))


def spell_verdicts(table: Table, name: str, words: Sequence[str], values: Sequence[object]) -> list[int]:
    """Return the verdict that each word stands for, -1 if it stands for none."""
    known = set(words)
    if known <= _POINTS.keys() and "05" in known:
        return [_POINTS[word] for word in words]
    if known <= _BALANCE.keys() and "-1" in known:
        return [_BALANCE[word] for word in words]
    if known <= {"0", "1"} or known <= {"true", "false"}:
        raise InputError(
            f"Column {name!r} of {table.name} holds {listing(values)} only, which may be won and lost or won and tied.",
            _WRITE,
            keyword="winner",
        )
    return [WORDS.get(word, -1) for word in words]


def no_verdict(table: Table, name: str, rows: Integers, said: Values, left: Values, right: Values) -> InputError:
    """Return the error for winners that are neither of the two, nor a word for one."""
    first = f"{shorten(said[0])} for {shorten(left[0])} and {shorten(right[0])}"
    return InputError(
        f"Column {name!r} of {table.name} names neither of the two candidates in {plural(len(rows), 'row')}, nor has a "
        f"word for a side or a tie; the first is {first} at {table.locate(int(rows[0]))}.",
        _WRITE,
        keyword="winner",
    )


def read_multiples(table: Table, name: str) -> Floats:
    """Return the column of how many verdicts rows stand for: finite numbers above 0."""
    numbers = read_numbers(table, name)
    wrong = np.flatnonzero(~((numbers > 0) & np.isfinite(numbers)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"Column {name!r} of {table.name} has {plural(len(wrong), 'weight')} that cannot be so; the first is "
            f"{numbers[row]} at {table.locate(row)}.",
            "Weights are finite numbers above 0: drop verdicts that count for nothing.",
            keyword="weight",
        )
    if numbers.sum() > MOST_VERDICTS:
        raise InputError(
            f"The weights in column {name!r} of {table.name} add up to {numbers.sum():.3g}, and at most "
            f"{MOST_VERDICTS:.0e} verdicts can be counted.",
            "A weight is how many verdicts a row stands for.",
            keyword="weight",
        )
    return numbers


def read_numbers(table: Table, name: str) -> Floats:
    """Return a column of numbers, as numbers or as text."""
    codes, values = encode_in_order_of_appearance(table.values(name, "Fill it in, or drop the row."))
    try:
        if values.dtype.kind in "mM":
            raise TypeError("these are times")
        return np.array(values, dtype=np.float64)[codes]
    except (TypeError, ValueError, OverflowError) as error:
        place = next((place for place, value in enumerate(values.tolist()) if not is_numeric(value)), 0)
        row = int(np.argmax(codes == place))
        raise InputError(
            f"Column {name!r} of {table.name} must hold numbers; the first that is none is {shorten(values[place])} at "
            f"{table.locate(row)}."
        ) from error


def is_numeric(value: object) -> bool:
    """Tell whether a value is a number, or text that is one.

    >>> is_numeric("1.5"), is_numeric("judge")
    (True, False)
    """
    try:
        return isinstance(value, (str, int, float)) and not math.isnan(float(value))
    except (ValueError, OverflowError):
        return False


# ---------------------------------------------------------------------------------------------------- scores and ranks


def is_of_scores(table: Table, names: Mapping[str, str | None]) -> bool:
    """Tell whether a table has one row for each judge, item and candidate."""
    sides = [names[role] for role in ("left", "right", "winner")]
    named = [role for role in ("candidate", "score", "rank") if names[role] is not None]
    if named and any(side is not None for side in sides):
        raise ParameterError(
            Sentence("Give either {left}, {right} and {winner}, or {candidate} with {score} or {rank}, not both.")
        )
    if named or any(side is not None for side in sides):
        return bool(named)
    has_sides = table.find("left") is not None and table.find("right") is not None
    return not has_sides and table.find("candidate") is not None and find_scale(table, names) is not None


class Scale(NamedTuple):
    """The column that says how good a candidate is, and whether it is a rank, which is better if it is lower."""

    role: str
    name: str


def find_scale(table: Table, names: Mapping[str, str | None]) -> Scale | None:
    """Return the column of scores or ranks."""
    if names["score"] is not None and names["rank"] is not None:
        raise ParameterError(Sentence("Give either {score} or {rank}, not both."))
    for role in ("score", "rank"):
        if names[role] is not None:
            return Scale(role, table.need(role, names[role], parameter=role))
    found = [Scale(role, name) for role in ("score", "rank") if (name := table.find(role)) is not None]
    return found[0] if found else None


def read_scores(table: Table, names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return scores or ranks as verdicts on all pairs that one judge saw for one item."""
    candidate = table.need("candidate", names["candidate"], parameter="candidate")
    scale = find_scale(table, names)
    if scale is None:
        listed = listing([str(each) for each in table.names], len(table.names))
        raise InputError(
            f"{table.name} has no column of scores or ranks that is known by its name. It has {listed}.",
            Sentence("Name it with {score} (higher is better) or {rank} (lower is better)."),
        )
    if names["weight"] is not None:
        raise ParameterError(Sentence("{weight} is for tables of verdicts, and not of scores or ranks."))
    columns = {"candidate": candidate, scale.role: scale.name}
    columns |= find_others(table, names, list(columns.values()))
    who, candidates = encode_sorted(table.values(candidate, _FILL))
    good = read_numbers(table, scale.name) * (1 if scale.role == "score" else -1)
    judges = read_judges(table, columns)
    check_once(table, who, judges, candidates)
    first, second, weight = pair_rows(judges["worker"], judges["item"], len(judges["workers"]))
    if not len(first):
        raise InputError(
            f"No judge of {table.name} has scored two candidates for one item: there is nothing to compare.",
            Sentence("Name the columns with {worker} and {item}."),
        )
    verdict = np.where(good[first] == good[second], TIE, np.where(good[first] > good[second], LEFT, RIGHT))
    rows = {
        role: None if judges[role] is None else judges[role][first] for role in ("worker", "item", "group", "order")
    }
    sides = {"left": who[first], "right": who[second], "verdict": verdict.astype(np.int8), "candidates": candidates}
    winners = "higher scores" if scale.role == "score" else "lower ranks"
    return {**judges, **rows, **sides, "weight": weight, "has_positions": False, "winners": winners}


def check_once(table: Table, who: Codes, judges: Mapping[str, Any], candidates: Values) -> None:
    """Raise an error if a judge has scored a candidate twice for one item."""
    item = np.zeros(len(who), np.int32) if judges["item"] is None else judges["item"]
    key = np.lexsort((who, item, judges["worker"]))
    same = np.ones(len(key) - 1, bool)
    for codes in (who, item, judges["worker"]):
        same &= codes[key[1:]] == codes[key[:-1]]
    if same.any():
        row = int(key[1:][same].min())
        raise InputError(
            f"In {plural(int(same.sum()), 'row')} of {table.name} a candidate is scored that the same judge has scored "
            f"before for the same item; the first is {shorten(candidates[who[row]])} at {table.locate(row)}.",
            Sentence("Keep one of them, or name what tells them apart with {item} or {worker}."),
        )


def pair_rows(worker: Codes, item: Codes | None, n_workers: int) -> tuple[Integers, Integers, Floats]:
    """Return all pairs of rows of one judge and item, the two rows of each, and what a pair weighs.

    >>> first, second, weight = pair_rows(np.array([0, 1, 0, 0]), None, 2)
    >>> first.tolist(), second.tolist(), weight.round(2).tolist()
    ([0, 0, 2], [2, 3, 3], [0.67, 0.67, 0.67])
    """
    key = worker.astype(np.int64) if item is None else item.astype(np.int64) * n_workers + worker
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order])) + 1
    sizes = np.diff(np.concatenate([[0], ends, [len(key)]]))
    n_pairs = int((sizes * (sizes - 1) // 2).sum())
    most = max(MOST_PAIRS, PAIRS_PER_SCORE * len(key))
    if n_pairs > most:
        raise InputError(
            f"{len(key):,} scores make {n_pairs:,} pairs, and at most {most:,} are compared.",
            "Give scores of fewer candidates in each list.",
        )
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(len(key)) - start
    after = np.repeat(sizes, sizes) - place - 1  # how many rows of the same list come later
    first = np.repeat(np.arange(len(key)), after)
    second = first + 1 + np.arange(n_pairs) - np.repeat(np.cumsum(after) - after, after)
    weight = 2 / np.repeat(sizes, sizes)[first]
    return order[first], order[second], weight
