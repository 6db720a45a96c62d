"""Comparisons: who preferred which of two candidates, read from tables, checked once and held as plain arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import (
    Codes,
    Indices,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    join_columns,
    lookup,
    to_column,
)
from ..answers.tables import Table, open_frame, squeeze
from ..errors import InputError, ParameterError, Sentence, join_names, listing, parameter_error, plural, shorten
from ..formats.reading import open_file
from ..kernels import Floats, Integers
from ..limits import require_few

# What a verdict can be.
LEFT, RIGHT, TIE = 0, 1, 2
VERDICTS = ("left", "right", "tie")
# Roles of columns: of a table of verdicts, and of one of scores.
SIDES, SCORED = ("left", "right", "winner"), ("candidate", "score", "rank")
# Words for verdicts, in letters and digits alone; signs as they are.
_LEFT = ("left", "a", "modela", "responsea", "answera", "optiona", "candidatea", "systema", "first", "1", "x", ">")
_RIGHT = ("right", "b", "modelb", "responseb", "answerb", "optionb", "candidateb", "systemb", "second", "2", "y", "<")
_TIE = ("tie", "tied", "draw", "equal", "same", "both", "neither", "bothbad", "bothgood", "tiebothbad", "0", "=")
WORDS = {**dict.fromkeys(_LEFT, LEFT), **dict.fromkeys(_RIGHT, RIGHT), **dict.fromkeys(_TIE, TIE)}
# The share of points that the left one gets; and 1 for the left, -1 for the right one.
_POINTS = {"1": LEFT, "10": LEFT, "05": TIE, "0": RIGHT, "00": RIGHT}
NUMBERED_VERDICTS = ("05", _POINTS), ("-1", {"1": LEFT, "-1": RIGHT, "0": TIE})  # only where the first of them occurs
_SIGNS = {"-1": "-1", ">": ">", ">>": ">", "<": "<", "<<": "<", "=": "=", "==": "="}
# Winners are ids of candidates if so many of them are, and those that are not are wrong.
MOSTLY = 0.9
# The most verdicts that a row can stand for.
MOST_VERDICTS = 1e12
_FILL = "Every verdict must say which two were compared: fill it in or drop the row."


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """Verdicts of judges on pairs of candidates.

    Build one with `from_frame`; `consilience.rank` takes tables and files as they are.

    Attributes
    ----------
    candidates : ndarray
        Ids of the candidates, sorted.
    workers : ndarray
        Ids of the judges, sorted. Where no column names them, all verdicts are those of one judge, called "".
    left, right, worker : int32 array
        Which two were compared, and by whom, as indices.
    verdict : int8 array
        0 if the left one was preferred, 1 for the right one, 2 for a tie.
    item : int32 array or None
        What each comparison is about, such as a prompt.
    group : int32 array or None
        The family of judges that the judge belongs to, as an index into `groups`.
    groups : ndarray
        Ids of the families.
    weight : float64 array or None
        How many verdicts a row stands for.
    has_positions : bool
        Whether left and right mean anything; not if verdicts follow from scores or ranks.
    columns : dict
        The column of the table that played each role.
    backend : str
        The frame library that the table came in.
    winners : str
        How winners were read: as ids of candidates, or as sides, with the words for these; "" if they were not read.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.Comparisons.from_frame({"left": ["a", "b"], "right": ["b", "c"], "winner": ["left", "tie"]})
    Comparisons(2 verdicts on 3 candidates by 1 judge; winners: sides (left: left; tie: tie))
    """

    left: Codes
    right: Codes
    verdict: NDArray[np.int8]
    worker: Codes
    candidates: Values
    workers: Values
    item: Codes | None = None
    group: Codes | None = None
    groups: Values = field(default_factory=lambda: np.empty(0, object))
    weight: Floats | None = None
    has_positions: bool = True
    columns: Mapping[str, str] = field(default_factory=dict)
    backend: str = "pyarrow"
    winners: str = ""

    @classmethod
    def from_frame(
        cls,
        frame: object,
        left: str | None = None,
        right: str | None = None,
        winner: str | None = None,
        worker: str | None = None,
        item: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        candidate: str | None = None,
        score: str | None = None,
        rank: str | None = None,
    ) -> Comparisons:
        """Read comparisons from a table, which has one row per verdict; or per score.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or dict of columns
            Any table narwhals knows will do.
        left, right, winner : str, optional
            Column names. By default left and right, or model_a and model_b, and similar pairs; winner, label, verdict
            and similar names. A winner is the id of one of the two candidates, or a word for its place: left, right
            and tie; A, B and tie; model_a, model_b, tie and "tie (bothbad)"; 1, 2 and 0; 1, -1 and 0;
            >, < and =.
        worker, item : str, optional
            Columns of judges, and of what the candidates are compared on, such as prompts. By default they are found
            by the names that `Answers.from_frame` looks for. Both may be missing.
        group : str, optional
            Column of families of judges, such as the language model behind several prompts.
        weight : str, optional
            Column of how many verdicts a row stands for: any number above 0.
        candidate, score, rank : str, optional
            Columns of a table with one row for each judge, item and candidate. Higher scores are better, and so are
            lower ranks. All candidates that one judge saw for one item are compared with each other; the k (k - 1) / 2
            verdicts on k candidates count for k - 1. Such a table is recognised by a column candidate, model or system
            where there are no left and right.

        Returns
        -------
        Comparisons
        """
        names = {role: name for role, name in locals().items() if role not in ("cls", "frame")}
        return cls(**read_comparisons(open_frame(frame), names))

    @property
    def n_comparisons(self) -> int:
        """Number of verdicts."""
        return len(self.verdict)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.candidates)

    @property
    def n_workers(self) -> int:
        """Number of judges."""
        return len(self.workers)

    @property
    def has_workers(self) -> bool:
        """Whether it is known who gave which verdict."""
        return "worker" in self.columns

    @property
    def n_items(self) -> int:
        """Number of items, 0 if they are not known."""
        return 0 if self.item is None or not len(self.item) else int(self.item.max()) + 1

    @property
    def weights(self) -> Floats:
        """How many verdicts each row stands for."""
        return np.ones(self.n_comparisons) if self.weight is None else self.weight

    def keep(self, rows: Indices) -> Comparisons:
        """Some of the verdicts, with all candidates and judges."""
        names = ("left", "right", "verdict", "worker", "item", "group", "weight")
        arrays = {name: array for name in names if (array := getattr(self, name)) is not None}
        return replace(self, **{name: array[rows] for name, array in arrays.items()})

    def add_known(self, known: Comparisons) -> Comparisons:
        """The verdicts with known ones on the same candidates, as those of one judge more.

        A known verdict is an item of its own, and belongs to no family.
        """
        own = np.arange(known.n_comparisons, dtype=np.int32)
        more = {name: getattr(known, name) for name in ("left", "right", "verdict")}
        more["worker"] = np.full_like(own, self.n_workers)
        more |= {} if self.item is None else {"item": self.n_items + own}
        more |= {} if self.group is None else {"group": len(self.groups) + own}
        joined: dict[str, Any] = {name: np.append(getattr(self, name), each) for name, each in more.items()}
        if self.weight is not None or known.weight is not None:
            joined["weight"] = np.append(self.weights, known.weights)
        return replace(self, **joined)

    def __repr__(self) -> str:
        items = f" on {plural(self.n_items, 'item')}" if self.n_items else ""
        winners = f"; winners: {self.winners}" if self.winners else ""
        return (
            f"Comparisons({plural(self.n_comparisons, 'verdict')} on {self.n_candidates:,} candidates by "
            f"{plural(self.n_workers, 'judge')}{items}{winners})"
        )


def open_comparisons(source: object, **columns: Any) -> Comparisons:
    """Comparisons in any form: as they are, or read from a table or the files at a path."""
    if isinstance(source, (str, os.PathLike)):
        return Comparisons.from_frame(open_file(source), **columns)
    if not isinstance(source, Comparisons):
        return Comparisons.from_frame(source, **columns)
    if columns:
        raise ParameterError(f"Columns ({listing(columns)}) cannot be named for Comparisons: they are read already.")
    return source


def open_verdicts(gold: object, candidates: Values) -> Comparisons:
    """Known verdicts, on some of these candidates."""
    if isinstance(gold, Mapping) and gold and all(isinstance(pair, tuple) for pair in gold):
        wrong = next((pair for pair in gold if len(pair) != 2), None)
        if wrong is not None:
            raise parameter_error("gold", "rank", "{(left, right): winner}", wrong)
        left, right = zip(*gold, strict=True)
        gold = {"left": list(left), "right": list(right), "winner": list(gold.values())}
    if not isinstance(gold, (str, os.PathLike, Comparisons)):
        gold = open_frame(gold, "the table of known verdicts")
    known = open_comparisons(gold)
    place = lookup(candidates, to_column(known.candidates)).astype(np.int32)
    if (place < 0).any():
        strange = listing(known.candidates[place < 0].tolist())
        raise InputError(f"Known verdicts are about candidates that were not compared: {strange}.")
    nobody, judge = np.zeros(known.n_comparisons, np.int32), np.array([""], object)
    sides = place[known.left], place[known.right]
    return Comparisons(*sides, known.verdict, nobody, candidates, judge, weight=known.weight)


# -------------------------------------------------------------------------------------------------- reading tables


def refuse_rows(table: Table, rows: Indices, what: str, value: object, *remedies: str, keyword: str = "") -> InputError:
    """The error for rows that cannot be so, the first of which has this value."""
    where = f"{plural(len(rows), 'row')} of {table.name}"
    first = f"{shorten(value)} at {table.locate(int(rows[0]))}"
    return InputError(f"In {where} {what}; the first is {first}.", *remedies, keyword=keyword or None)


def read_comparisons(table: Table, names: Mapping[str, str | None]) -> dict[str, Any]:
    """The fields of `Comparisons` that a table holds; `names` are the columns that are given, by role."""
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows: there are no comparisons to rank by.")
    if has_scores(table, names):
        return read_scores(table, names)
    if table.find("left", names["left"]) is None and table.find("right", names["right"]) is None:
        error = table.no_column("left", None, parameter="left")
        hint = Sentence("For a table of scores or ranks, name {candidate} and {score} or {rank}.")
        raise InputError(error.problem, *error.remedies, hint)
    columns = {role: table.need(role, names[role], parameter=role) for role in SIDES}
    sides = [to_column(table.values(columns[role], _FILL)) for role in ("left", "right")]
    codes, candidates = encode_sorted(join_columns(*sides))
    left, right = codes[: table.n_rows], codes[table.n_rows :]
    same = np.flatnonzero(left == right)
    if len(same):
        raise refuse_rows(table, same, "a candidate is compared with itself", candidates[left[same[0]]], "Drop them.")
    verdict, winners = read_winners(table, columns["winner"], left, right, candidates)
    fields: dict[str, Any] = {
        "left": left,
        "right": right,
        "verdict": verdict,
        "candidates": candidates,
        "winners": winners,
    }
    fields |= read_judges(table, names, columns)
    if names["weight"] is not None:
        fields["columns"]["weight"] = name = table.need("weight", names["weight"], parameter="weight")
        fields["weight"] = weight = read_amounts(table, name)
        wrong = np.flatnonzero(~((weight > 0) & (weight <= MOST_VERDICTS)))
        if len(wrong):
            what = f"column {name!r} has a weight that is not above 0, or beyond {MOST_VERDICTS:.0e}"
            raise refuse_rows(table, wrong, what, weight[wrong[0]], "Drop such verdicts.", keyword="weight")
    return fields


def read_judges(table: Table, names: Mapping[str, str | None], columns: dict[str, str]) -> dict[str, Any]:
    """Who gave each verdict, and about what, as fields of `Comparisons`; `columns` are those that are read already."""
    taken, roles = list(columns.values()), dict(columns)
    for role in ("worker", "item"):
        name = table.find(role, names[role])
        if name is not None and (names[role] is not None or name not in taken):
            roles[role] = name
    if names["group"] is not None:
        roles["group"] = table.need("group", names["group"], parameter="group")
        roles.setdefault("worker", roles["group"])  # a family without members is one judge
    fields: dict[str, Any] = {"worker": np.zeros(table.n_rows, np.int32), "workers": np.array([""], object)}
    if "worker" in roles:
        who = table.values(roles["worker"], "Every verdict must say who gave it: fill it in.")
        fields["worker"], fields["workers"] = encode_sorted(who)
    if "item" in roles:
        fields["item"] = encode_in_order_of_appearance(table.values(roles["item"], "Fill it in, or drop the row."))[0]
    if "group" in roles and roles["group"] != roles["worker"]:
        families = table.values(roles["group"], "Every judge needs a family: fill it in.")
        fields["group"], fields["groups"] = encode_sorted(families)
    return {**fields, "columns": roles, "backend": table.backend}


# ------------------------------------------------------------------------------------------------------------- winners


def read_winners(
    table: Table, name: str, left: Codes, right: Codes, candidates: Values
) -> tuple[NDArray[np.int8], str]:
    """The verdict of each row, by the ids of candidates if all fit, else by words for the two sides; and how."""
    remedy = "A comparison without a verdict needs no row: drop it."
    said, values = encode_in_order_of_appearance(table.values(name, remedy))
    place, words = lookup(candidates, to_column(values)), [spell_word(value) for value in values.tolist()]
    known, winner = set(words), place[said]
    meaning = next((each for needed, each in NUMBERED_VERDICTS if needed in known <= each.keys()), WORDS)
    codes = np.array([meaning.get(word, -1) for word in words], np.int8)
    is_id = (winner == left) | (winner == right)
    # Numbers are ties only beside ids: in a column without these they are sides.
    ties = [bool(is_id.any()) if word in ("0", "-1") else WORDS.get(word) == TIE for word in words]
    is_tie = np.array(ties)[said] & (winner < 0)
    problem, verdict, how = "", codes[said], "sides"
    if (~is_id & ~is_tie).sum() <= (1 - MOSTLY) * np.sum(~is_tie):
        how, codes = "ids of candidates", np.where(place < 0, TIE, -1)
        by_word, verdict = verdict, np.select([winner == left, is_id, is_tie], [LEFT, RIGHT, TIE], -1)
        are_numbers = len(candidates) == 2 and {spell_word(each) for each in candidates.tolist()} <= {"0", "1", "2"}
        if are_numbers and ((by_word != verdict) & ~is_tie).any():
            problem = f"{join_names(sorted(known))}, which may be candidates, or stand for left and right"
    elif known <= {"0", "1"} or known <= {"true", "false"}:
        problem = f"{listing(values.tolist())} only, which may be won and lost or won and tied"
    if problem:
        raise InputError(
            f"Column {name!r} of {table.name} holds {problem}.",
            "Write left, right and tie, or the candidate that won; candidates called 0, 1 or 2 need other names.",
            keyword="winner",
        )
    wrong = np.flatnonzero(verdict < 0)
    if len(wrong):
        wrong = wrong[~is_id[wrong]] if not is_id[wrong].all() else wrong
        row = int(wrong[0])
        pair = f"{shorten(candidates[left[row]])} and {shorten(candidates[right[row]])}"
        what = f"column {name!r} names neither of the two candidates ({pair}), nor has a word for a side or a tie"
        remedy = "Write the candidate that won, or left, right and tie."
        raise refuse_rows(table, wrong, what, values[said[row]], remedy, keyword="winner")
    texts = [sorted(str(values[n]) for n in np.flatnonzero(codes == code)) for code in range(len(VERDICTS))]
    meanings = "; ".join(f"{side}: {', '.join(text)}" for side, text in zip(VERDICTS, texts, strict=True) if text)
    return verdict.astype(np.int8), f"{how} ({meanings})" if meanings else how


def spell_word(value: object) -> str:
    """What is compared with the words for verdicts.

    >>> spell_word("Model_A"), spell_word("tie (bothbad)"), spell_word(1.0), spell_word(" > ")
    ('modela', 'tiebothbad', '1', '>')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return _SIGNS.get(text, squeeze(text))


# ---------------------------------------------------------------------------------------------------- scores and ranks


def read_amounts(table: Table, name: str) -> Floats:
    """A column of numbers, as numbers or as text."""
    codes, values = encode_in_order_of_appearance(table.values(name, "Fill it in, or drop the row."))
    numbers = np.array([as_number(value) for value in values.tolist()])
    if values.dtype.kind in "mM" or np.isnan(numbers).any():
        place = int(np.argmax(np.isnan(numbers)))
        raise refuse_rows(table, np.flatnonzero(codes == place), f"column {name!r} holds no number", values[place])
    return np.asarray(numbers[codes], np.float64)


def as_number(value: object) -> float:
    """A number, or text that is one, as a float; NaN for anything else.

    >>> as_number("1.5"), as_number("judge")
    (1.5, nan)
    """
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def has_scores(table: Table, names: Mapping[str, str | None]) -> bool:
    """Whether a table has one row for each judge, item and candidate, with a score or a rank."""
    scored, sided = (any(names[role] is not None for role in roles) for roles in (SCORED, SIDES))
    if scored and sided:
        raise ParameterError(
            Sentence("Give either {left}, {right} and {winner}, or {candidate} with {score} or {rank}, not both.")
        )
    if scored or sided:
        return scored
    usual = {role for role in ("candidate", "score", "rank", "left", "right") if table.find(role) is not None}
    return "candidate" in usual and not usual.isdisjoint({"score", "rank"}) and not usual >= {"left", "right"}


def read_scores(table: Table, names: Mapping[str, str | None]) -> dict[str, Any]:
    """Scores or ranks as verdicts on all pairs that one judge saw for one item."""
    candidate = table.need("candidate", names["candidate"], parameter="candidate")
    by_rank = names["rank"] is not None or (names["score"] is None and table.find("score") is None)
    if (names["score"] is not None and by_rank) or names["weight"] is not None:
        raise ParameterError(Sentence("Scores or ranks go with either {score} or {rank}, and without {weight}."))
    role = "rank" if by_rank else "score"
    if table.find(role, names[role]) is None:
        known = listing([str(each) for each in table.names], len(table.names))
        remedy = Sentence("Name it with {score} (higher is better) or {rank} (lower is better).")
        problem = f"{table.name} has no column of scores or ranks that is known by its name, but {known}."
        raise InputError(problem, remedy)
    columns = {"candidate": candidate, role: table.need(role, names[role], parameter=role)}
    good = read_amounts(table, columns[role]) * (-1 if by_rank else 1)
    who, candidates = encode_sorted(table.values(candidate, _FILL))
    fields = read_judges(table, names, columns)
    worker, item = fields["worker"], fields.get("item", np.zeros_like(who))
    order = np.lexsort((who, item, worker))
    again = np.all([np.diff(codes[order]) == 0 for codes in (who, item, worker)], axis=0)
    if again.any():
        rows = np.sort(order[1:][again])
        what = "a candidate is scored that the same judge has scored before for the same item"
        raise refuse_rows(table, rows, what, candidates[who[rows[0]]], "Keep one of them, or name all columns.")
    first, second, weight = pair_rows(worker, item)
    if not len(first):
        raise InputError(
            f"No judge of {table.name} has scored two candidates for one item: there is nothing to compare.",
            Sentence("Name the columns with {worker} and {item}."),
        )
    lead = np.sign(good[first] - good[second])
    fields |= {name: fields[name][first] for name in ("worker", "item", "group") if name in fields}
    fields |= {"left": who[first], "right": who[second], "verdict": np.choose(lead.astype(int) + 1, [RIGHT, TIE, LEFT])}
    winners = "lower ranks" if by_rank else "higher scores"
    return {**fields, "candidates": candidates, "weight": weight, "has_positions": False, "winners": winners}


def pair_rows(worker: Integers, item: Integers) -> tuple[Integers, Integers, Floats]:
    """All pairs of rows of one judge and item: the two rows of each, and what a pair weighs.

    >>> first, second, weight = pair_rows(np.array([0, 1, 0, 0]), np.zeros(4, int))
    >>> first.tolist(), second.tolist(), weight.round(2).tolist()
    ([0, 0, 2], [2, 3, 3], [0.67, 0.67, 0.67])
    """
    n = len(worker)
    order = np.lexsort((worker, item))
    ends = np.flatnonzero((np.diff(worker[order]) != 0) | (np.diff(item[order]) != 0)) + 1
    sizes = np.diff(np.concatenate([[0], ends, [n]]))
    n_pairs, remedy = int((sizes * (sizes - 1) // 2).sum()), "Give scores of fewer candidates in each list."
    require_few("pairs of scores", n_pairs, f"{n:,} scores make {n_pairs:,} pairs", remedy, n=n)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    after = np.repeat(sizes, sizes) - place - 1  # how many rows of the same list come later
    first = np.repeat(np.arange(n), after)
    second = first + 1 + np.arange(n_pairs) - np.repeat(np.cumsum(after) - after, after)
    return order[first], order[second], 2 / np.repeat(sizes, sizes)[first]
