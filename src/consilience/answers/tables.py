"""Tables: named columns, found by the role they play, and errors that say where a value is."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from ..arguments import is_among
from ..errors import InputError, Sentence, listing, plural, shorten
from .columns import Column, Indices, find_missing, join_parts, join_texts, name_parts

if TYPE_CHECKING:
    from .soft_votes import SoftRows


import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from ..errors import first_line
from ..memory import NUMBER, require_memory
from .columns import Values, is_missing, spell_surrogates, split_repeated, to_column

# What columns of a table of answers can be, and which names tell so.
ROLES = ("item", "worker", "label", "sequence", "position", "weight", "order")
# Roles that several columns can play together.
WHOLE = ("item", "sequence")
ALIASES = {
    "item": ("item", "task", "question", "id"),
    "worker": ("worker", "annotator", "judge", "labeler"),
    "label": ("label", "answer", "response"),
    "sequence": ("sequence",),
    "position": ("position",),
    "weight": ("weight",),
    "order": ("order",),
    # In a table of gold.
    "known label": ("label", "answer", "response", "gold", "truth"),
    "random": ("random",),
    # In a table of spans.
    "document": ("document", "document_id", "doc", "doc_id", "text_id", "sentence", "sequence", "item", "task", "id"),
    "start": ("start", "begin", "start_offset", "start_char"),
    "end": ("end", "stop", "end_offset", "end_char"),
    "type": ("label", "type", "tag", "entity"),
    "text": ("text", "content"),
    # In a table of answers, beside them.
    "gold": ("gold", "truth"),
    # In a table of comparisons.
    "left": ("left", "model_a", "candidate_a", "option_a", "response_a", "system_a"),
    "right": ("right", "model_b", "candidate_b", "option_b", "response_b", "system_b"),
    "winner": ("winner", "preference", "preferred", "verdict", "label", "answer", "choice", "result"),
    "group": ("group", "family"),
    # In a table of scores or ranks of candidates.
    "candidate": ("candidate", "model", "system", "option", "variant"),
    "score": ("score", "rating", "grade", "points"),
    "rank": ("rank", "place"),
}
# What a table of spans says of each.
SPAN_ROLES = ("document", "start", "end", "type")
# Names that are looked for only where none of the above exists, in letters and digits alone: WorkerId and worker_id are
# both "workerid". Several columns with names of one row are a doubt, which the user has to settle.
_ITEMS = (
    ("itemid", "taskid", "questionid"),
    (
        *("imageid", "promptid", "docid", "documentid", "exampleid", "sampleid", "unitid", "hitid", "recordid"),
        *("instanceid", "objectid", "textid", "sentenceid", "tweetid", "postid", "commentid", "pairid", "queryid"),
        *("reviewid", "messageid", "articleid", "ticketid", "caseid", "productid", "pageid", "videoid", "photoid"),
    ),
    ("image", "prompt", "document", "doc", "example", "sample", "unit", "record", "instance", "object", "tweet"),
    ("text", "sentence", "url", "filename", "file", "path"),
)
_WORKERS = (
    (
        *("workerid", "annotatorid", "judgeid", "labelerid", "labeller", "labellerid", "rater", "raterid", "coder"),
        *("coderid", "performer", "performerid", "contributor", "contributorid", "reviewer", "reviewerid", "assessor"),
        *("assessorid", "evaluator", "evaluatorid", "expert", "expertid", "toloker", "tolokerid", "turker", "turkerid"),
    ),
    ("user", "userid", "username", "participant", "participantid", "respondent", "respondentid", "annotatedby"),
    ("labelingfunction", "labellingfunction", "lf"),
    ("model", "modelid", "modelname", "classifier", "llm"),
)
_LABELS = (
    (
        *("verdict", "category", "class", "choice", "annotation", "vote", "judgment", "judgement", "decision", "tag"),
        *("classlabel", "classid", "labelid", "classification", "workerlabel", "crowdlabel", "selection"),
        *("tags", "labels"),
    ),
    ("rating", "grade", "value", "score", "result", "output", "prediction"),
)
_GOLD = (
    (
        *("goldlabel", "goldanswer", "golden", "goldstandard", "groundtruth", "truelabel", "trueclass", "gt"),
        *("correctanswer", "correctlabel", "ytrue"),
    ),
)
OTHER_ALIASES = {"item": _ITEMS, "worker": _WORKERS, "label": _LABELS, "known label": (*_GOLD, *_LABELS), "gold": _GOLD}
# Roles of other tables than those of answers, whose names say nothing about answers.
_APART = ("left", "right", "winner", "group", "candidate", "score", "rank")
_ALL_ALIASES = {alias for role, aliases in ALIASES.items() if role not in _APART for alias in aliases}
# Longer names are compared by their beginning.
LONGEST_NAME = 100
_PAIRS = "Verdicts on pairs make a ranking: `consilience rank`, or consilience.rank in Python."
_WIDE = Sentence("If each worker has a column of their own, use {format}.", format="wide")
_SEPARATORS = {";": "semicolons", "\t": "tabs"}


# Each column costs some tenths of a millisecond, and workers are compared in pairs.
MOST_COLUMNS = 10_000


def _list_other(role: str) -> set[str]:
    """Return all names in `OTHER_ALIASES` of a role."""
    return {alias for aliases in OTHER_ALIASES[role] for alias in aliases}


def check_width(n_columns: int, owner: str) -> None:
    """Raise an error for a table, or a matrix, with more columns than are read."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"{owner} has {n_columns:,} columns, and at most {MOST_COLUMNS:,} are read.",
            "Give a table with one row per answer.",
        )


# Cells of a table with a column for each worker, and for each answer in it: the others are empty.
MOST_CELLS, CELLS_PER_ANSWER = 5_000_000, 100


def check_spread(n_rows: int, n_workers: int, n_answers: int) -> None:
    """Raise an error if a table with a column for each worker is too wide to be read, or huge and nearly empty."""
    allowed = max(MOST_CELLS, CELLS_PER_ANSWER * n_answers)
    if n_workers >= MOST_COLUMNS or n_rows * n_workers > allowed:
        raise InputError(
            f"A column for each of {n_workers:,} workers, and {n_rows:,} rows, take {n_rows * n_workers:,} cells for "
            f"{n_answers:,} answers. Fewer than {MOST_COLUMNS:,} columns, and at most {allowed:,} cells, are written.",
            "Write one row per answer or span.",
        )


def check_names(names: Sequence[str], owner: str) -> None:
    """Raise an error unless the columns of a table, which `owner` stands for, are not too many and differ in name."""
    check_width(len(names), owner)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{owner} has more than one column called {listing(repeated)}.", "Give each column its own name."
        )


def hold_no_lists(name: str) -> list[Any] | None:  # noqa: ARG001
    """Return that no column holds lists."""
    return None


@dataclass(frozen=True)
class Table:
    """Named columns of one length, of any frame library or file.

    Attributes
    ----------
    names : sequence of str
        Names of the columns.
    read : callable
        Returns the column of a name.
    n_rows : int
        Length of the columns.
    backend : str
        The frame library the table came in.
    name : str
        What messages call the table.
    locate : callable
        Says for a message where a row is.
    preferred : mapping
        For a role, the column to take if there is one of that name.
    format : str
        How the user calls the form of the table, if that is not one row per answer; see `dialects`.
    items : column or None
        All items, where a table names them also if nobody answered them.
    origin : tuple of str or None
        Path and format of the file that it was read from.
    synonyms : mapping
        Other names by which users may call a column.
    ignored : sequence of str
        Columns that are not taken for workers, where each of these has a column.
    taken : sequence of str
        Columns that have their role already: none is proposed for another one.
    lists : callable
        Returns the lists that are in the cells of a column, None where a cell is missing; None for other columns.
    soft : SoftRows or None
        What each row gives to each label, where answers are soft votes.
    """

    names: Sequence[str]
    read: Callable[[str], Column]
    n_rows: int
    backend: str
    name: str
    locate: Callable[[int], str]
    preferred: Mapping[str, str | None] = field(default_factory=dict)
    format: str = ""
    items: Column | None = None
    origin: tuple[str, str] | None = None
    synonyms: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()
    taken: Sequence[str] = ()
    lists: Callable[[str], list[Any] | None] = hold_no_lists
    soft: SoftRows | None = None

    def find(self, role: str, given: str | None = None) -> str | None:
        """Return the name of the column that plays `role`: the given one, or the first alias that exists.

        Upper and lower case are the same to an alias.
        """
        if given is not None:
            if not is_among(given, self.names) and is_among(given, list(self.synonyms)):
                return self.synonyms[given]
            if not is_among(given, self.names):
                raise self.no_column(role, given, parameter=role)
            return given
        return self.find_usual(role) or next(iter(self.candidates(role)), None)

    def find_usual(self, role: str) -> str | None:
        """Return the column that is to be preferred for a role, or the first of the role's own names in `ALIASES`."""
        wanted = self.preferred.get(role)
        if wanted is not None and is_among(wanted, self.names):
            return wanted
        by_lower = {str(name).lower(): name for name in reversed(self.names)} | {name: name for name in self.names}
        return next((by_lower[alias] for alias in ALIASES[role] if alias in by_lower), None)

    def candidates(self, role: str) -> list[str]:
        """Return the columns whose names are in the first row of `OTHER_ALIASES` in which there are any."""
        squeezed = [(squeeze(name), name) for name in self.names]
        for aliases in OTHER_ALIASES.get(role, ()):
            found = [name for text, name in squeezed if text in aliases]
            if found:
                return found
        return []

    def need(self, role: str, given: str | None = None, parameter: str | None = None) -> str:
        """Return the column that `find` finds; the error of `no_column`, or one that lists several, if in doubt."""
        name = self.find(role, given)
        if name is None:
            raise self.no_column(role, None, parameter)
        if given is None and self.find_usual(role) is None:
            found = self.candidates(role)
            if len(found) > 1:
                raise self.many_columns(role, found, parameter)
        return name

    def find_spans(self) -> dict[str, str] | None:
        """Return the columns of document, start, end and type of a table of spans; None for any other table.

        A table with positions is one of tokens.
        """
        found = {role: name for role in SPAN_ROLES if (name := self.find_usual(role)) is not None}
        return found if len(found) == len(SPAN_ROLES) and self.find_usual("position") is None else None

    def has_sequences(self) -> bool:
        """Tell whether items are identified by sequence and position: there is no column item, and one sequence."""
        return self.find_usual("item") is None and self.find("sequence") is not None

    def need_keys(self, paired: bool) -> list[str]:
        """Return the columns that say which item a row is about: item, or sequence and position."""
        return [self.need(role) for role in key_roles(paired)]

    def prefer(self, names: Mapping[str, str | None]) -> Table:
        """Return the table with names of columns to look for first, after those that it has already.

        Columns that identify an item together, and are all here, are joined in a further one.
        """
        own = {role: name for role, name in self.preferred.items() if name is not None}
        table, wanted = self, {**names, **own}
        for role in WHOLE:
            parts = name_parts(wanted.get(role), self.names)
            if parts is not None and all(is_among(part, self.names) for part in parts):
                table, wanted[role] = table.combine(role, parts)
        return replace(table, preferred=wanted)

    def combine(self, role: str, given: str | Sequence[str] | None) -> tuple[Table, str | None]:
        """Return the table with a column in which those that play a role together are joined, and its name.

        If one column plays it, that is its name, and the table stays as it is.
        """
        parts = name_parts(given, self.names)
        if parts is None:
            return self, cast("str | None", given)
        for part in parts:
            if not is_among(part, self.names):
                raise self.no_column(role, part, parameter=role)
        if len(parts) == 1:
            return self, parts[0]
        name = join_texts(parts)
        if name in self.names:
            return self, name
        joined = self.add({name: join_parts([self.read(part) for part in parts])})
        return replace(joined, ignored=[*self.ignored, *parts]), name

    def keep(self, rows: Indices) -> Table:
        """Return the table of some of the rows, which know where they came from."""
        return replace(
            self,
            read=lambda name: self.read(name).take(rows),
            n_rows=len(rows),
            locate=lambda row: self.locate(int(rows[row])),
            lists=lambda name: _take(self.lists(name), rows),
            soft=None if self.soft is None else self.soft.pick(rows),
        )

    def add(self, columns: Mapping[str, Column]) -> Table:
        """Return the table with some columns more."""
        return replace(
            self,
            names=[*self.names, *columns],
            read=lambda name: columns[name] if name in columns else self.read(name),
            lists=lambda name: None if name in columns else self.lists(name),
        )

    def lay_out(self, roles: Mapping[str, tuple[str, Column]], locate: Callable[[int], str], items: Column) -> Table:
        """The table of other rows about the same items: for each role the name of its column, and the column."""
        columns, preferred = dict(roles.values()), {role: name for role, (name, _) in roles.items()}
        n_rows = len(roles["item"][1])
        return Table(
            list(columns), columns.__getitem__, n_rows, self.backend, self.name, locate, preferred, items=items
        )

    def many_columns(self, role: str, found: Sequence[str], parameter: str | None = None) -> InputError:
        """Return the error for several columns that may play a role, one of which the caller has to choose."""
        return InputError(
            f"{self.name} has {plural(len(found), 'column')} that may be the {role}: {listing(found, len(found))}.",
            "Rename the one that is meant." if parameter is None else Sentence(f"Choose one with {{{parameter}}}."),
            keyword=parameter,
        )

    def no_column(self, role: str, given: str | None, parameter: str | None = None) -> InputError:
        """Return the error for a missing column, with the nearest name there is.

        Parameters
        ----------
        role : str
            The role for which there is no column.
        given : str or None
            The name that was looked for; None: the aliases of the role.
        parameter : str, optional
            The parameter with which the caller can name the column; without one, it has to be renamed.
        """
        names = {str(name).lower(): str(name) for name in self.names if not is_among(name, self.taken)}
        if given is None:  # a column that is found for another role is not the one that was meant
            others = _ALL_ALIASES | {
                each for other in ("worker", "label") if other != role for each in _list_other(other)
            }
            names = {lower: name for lower, name in names.items() if lower not in others}
        tried = ALIASES[role] if given is None else (given.lower() if isinstance(given, str) else shorten(given),)
        near = 0.6 if given is not None else 0.7
        close = [names[name] for word in tried for name in difflib.get_close_matches(word, names, n=1, cutoff=near)]
        looked = f" (looked for {_list_aliases(role)})" if given is None else ""
        wanted = f"has no column for the {role}{looked}" if given is None else f"has no column {shorten(given)}"
        remedy: str | Sentence
        if parameter is not None:
            text = f"Did you mean {{{parameter}}}?" if close else f"Name it with {{{parameter}}}."
            remedy = Sentence(text, **{parameter: close[0] if close else None})
        else:
            remedy = f"Rename {close[0]!r}?" if close else "Rename the column that holds it."
        remedies = [self._explain_names(tried) or remedy]
        if given is None and role == "worker" and parameter is not None:
            remedies.append(_WIDE)
        if given is None and role == "label" and self.find("left") is not None and self.find("right") is not None:
            remedies.append(_PAIRS)
        return InputError(f"{self.name} {wanted}. {self._list_names(tried)}.", *remedies, keyword=parameter)

    def no_columns(self, roles: Sequence[str]) -> InputError:
        """Return the error for several missing columns, which the caller can name with parameters."""
        looked = "; ".join(f"{role}: looked for {_list_aliases(role)}" for role in roles)
        tried = [alias for role in roles for alias in ALIASES[role]]
        remedies = [Sentence(f"Name them with {', '.join(f'{{{role}}}' for role in roles)}.")]
        if "worker" in roles:
            remedies.append(_WIDE)
        explained = self._explain_names(tried)
        return InputError(
            f"{self.name} has no columns for {', '.join(roles)} ({looked}). {self._list_names(tried)}.",
            *([explained] if explained else remedies),
        )

    def _list_names(self, tried: Sequence[str]) -> str:
        """Return all names of columns in words, first those that resemble what was looked for."""
        names = [str(name) for name in self.names]
        likely = sorted((name for name in names if _resemble(name, tried)), key=lambda name: -_likeness(name, tried))
        ordered = [*likely, *(name for name in names if name not in likely)]
        return f"It has {listing(ordered, len(ordered))}" if names else "It has no columns"

    def _explain_names(self, tried: Sequence[str]) -> str:
        """Return why names may not be what they seem (another separator, or blanks around them); empty if not so."""
        names = [str(name) for name in self.names]
        if len(names) == 1:
            for sign, signs in _SEPARATORS.items():
                if sign in names[0]:
                    remedy = "Save it with commas" + (", or call it .tsv." if sign == "\t" else ".")
                    return f"That is one column: its parts seem to be separated by {signs}. {remedy}"
        padded = [name for name in names if name != name.strip() and name.strip().lower() in tried]
        return f"Remove the blanks around the name {padded[0]!r}." if padded else ""

    def values(self, name: str, *remedies: str | Sentence) -> Column:
        """Return a column without missing values; a missing one is an error that says where it is, and what to do."""
        column = self.read(name)
        rows = find_missing(column)
        if len(rows):
            share = "is empty throughout" if len(rows) == len(column) else f"has {plural(len(rows), 'missing value')}"
            raise InputError(
                f"Column {name!r} of {self.name} {share}; the first is at {self.locate(int(rows[0]))}.", *remedies
            )
        return column


def _take(lists: list[Any] | None, rows: Indices) -> list[Any] | None:
    return None if lists is None else [lists[row] for row in rows.tolist()]


def key_roles(paired: bool) -> tuple[str, ...]:
    """Return the roles of columns that identify an item: its id, or the sequence that it is in and its position."""
    return ("sequence", "position") if paired else ("item",)


def plays(table: Table, names: Mapping[str, str | None], *roles: str) -> bool:
    """Tell whether a column plays one of some roles, by the name that was given or by its own."""
    return any(names.get(role) is not None or table.find(role) is not None for role in roles)


def refuse_roles(table: Table, names: Mapping[str, str | None], roles: Sequence[str], how: str) -> None:
    """Raise an error for names of columns that a table does not have, because of `how` it is read."""
    for role in roles:
        if names.get(role) is not None:
            raise InputError(
                f"{table.name} is read {how}, {'which has' if ' of ' in how else 'and has'} no column of its own for "
                f"the {role}.",
                Sentence(f"Leave {{{role}}} out.", **{role: names[role]}),
                Sentence("If it has one row per answer, use {format}.", format="long"),
                keyword=role,
            )


def squeeze(name: object) -> str:
    """Return the letters and digits of a name, in lower case.

    >>> squeeze("Worker-ID"), squeeze("worker_id")
    ('workerid', 'workerid')
    """
    return "".join(filter(str.isalnum, str(name).lower()))


def _list_aliases(role: str) -> str:
    return ", ".join(ALIASES[role]) + (" and similar names" if role in OTHER_ALIASES else "")


def _resemble(name: str, tried: Sequence[str]) -> bool:
    return _likeness(name, tried) >= 0.6


def _likeness(name: str, tried: Sequence[str]) -> float:
    """Return from 0 to 1 how much a name resembles one of some words; one that holds such a word does so most."""
    text = squeeze(name[:LONGEST_NAME])
    if any(len(word) > 2 and squeeze(word) in text for word in tried):
        return 1.0
    return max((difflib.SequenceMatcher(None, text, word[:LONGEST_NAME]).ratio() for word in tried), default=0.0)


# The libraries in which results can go back.
BACKENDS = ("pandas", "polars", "pyarrow")


def open_frame(frame: object, name: str = "the table") -> Table:
    """Return a frame of any library narwhals knows, or a mapping of columns, as a `Table`; a `Table` as it is."""
    if isinstance(frame, Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        check_names(frame.column_names, "A table")
        return open_arrow(frame, name)
    if isinstance(frame, Mapping):
        return _open_mapping(frame, name)
    native = _to_native(frame)
    if _is_stream(frame, native):
        return open_frame(_read_stream(frame, name), name)
    if not isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"Cannot read {name} from a {type(frame).__name__}.",
            "Give a pandas, polars or pyarrow table, a dict of columns, a path, or consilience.Answers; for arrays "
            "see Answers.from_matrix.",
        )
    if isinstance(native, nw.LazyFrame):
        # polars collects to polars; engines such as DuckDB have no frame of their own and give Arrow.
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    eager = native

    def read(column: str) -> Column:
        return _series_to_column(eager.get_column(column), f"Column {column!r} of {name}")

    def lists(column: str) -> list[Any] | None:
        series = eager.get_column(column)
        return find_lists(series.to_list()) if isinstance(series.dtype, (nw.List, nw.Array, nw.Object)) else None

    backend = "pandas" if eager.implementation.is_pandas_like() else eager.implementation.name.lower()
    return Table(eager.columns, read, len(eager), backend, name, _count_rows, lists=lists)


def open_arrow(table: pa.Table, name: str) -> Table:
    """Return an Arrow table as a `Table`."""

    def read(column: str) -> Column:
        return to_column(table.column(column), f"Column {column!r} of {name}")

    def lists(column: str) -> list[Any] | None:
        values = table.column(column)
        return find_lists(values.to_pylist()) if pa.types.is_nested(values.type) else None

    return Table(table.column_names, read, table.num_rows, "pyarrow", name, _count_rows, lists=lists)


def find_lists(entries: list[Any]) -> list[Any] | None:
    """Return the lists in a column as Python lists, None where there is none; None if there is anything else.

    Tuples and frozen sets are values like any other: they may be labels.

    >>> find_lists([["a", "b"], None, np.array(["a"])]), find_lists(["a", ["b"]]), find_lists([None])
    ([['a', 'b'], None, ['a']], None, None)
    """
    there = [entry for entry in entries if not is_missing(entry)]
    if not there or not all(isinstance(entry, (list, set, np.ndarray)) for entry in there):
        return None
    lists = [entry.tolist() if isinstance(entry, np.ndarray) else entry for entry in entries]
    return [None if is_missing(entry) else list(entry) for entry in lists]


def _open_mapping(columns: Mapping[str, Any], name: str) -> Table:
    """Return a mapping of columns as a `Table`."""
    for column, values in columns.items():
        if not hasattr(values, "__len__"):
            raise InputError(f"Column {column!r} of {name} must be a sequence of values. Got {shorten(values)}.")
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"The columns of {name} have different lengths: {listing(sorted(lengths))}.")

    def read(column: str) -> Column:
        return read_column(columns[column], f"Column {column!r} of {name}")

    def lists(column: str) -> list[Any] | None:
        values = columns[column]
        is_plain = isinstance(values, np.ndarray) and values.dtype.kind != "O"
        return None if is_plain or isinstance(values, range) else find_lists(list(values))

    return Table(list(columns), read, lengths.pop() if lengths else 0, "pyarrow", name, _count_rows, lists=lists)


def _count_rows(row: int) -> str:
    return f"row {row} (counting from 0)"


def is_table(values: object) -> bool:
    """Tell a table, of any frame library or a mapping of columns, from other things."""
    if isinstance(values, (Mapping, Table, pa.RecordBatch)):
        return True
    native = _to_native(values)
    return isinstance(native, (nw.DataFrame, nw.LazyFrame)) or _is_stream(values, native)


def _is_stream(values: object, native: object) -> bool:
    """Tell whether something gives a table as an Arrow stream, and is no frame whose columns can be had one by one.

    `native` is what narwhals makes of it. An array or a series gives a stream, too, and no table.
    """
    if isinstance(native, nw.DataFrame):
        kind = native.implementation
        if kind.is_pandas_like() or kind.is_polars() or kind.is_pyarrow():
            return False
    elif isinstance(native, (nw.LazyFrame, nw.Series, pa.Array, pa.ChunkedArray, type)):
        return False
    return hasattr(values, "__arrow_c_stream__")


def _read_stream(source: object, name: str) -> pa.Table:
    """Return all of an Arrow stream, which can be read only once."""
    try:
        return pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:  # whatever a database meets while it gives its rows
        raise InputError(
            f"Cannot read {name} from the Arrow stream of a {type(source).__name__}: {first_line(error)}.",
            "A stream can be read only once, and must be one of rows with named columns.",
        ) from error


def _to_native(values: Any) -> Any:
    """Return what narwhals makes of a table or series; other things as they are."""
    try:
        return nw.from_native(values, allow_series=True, pass_through=True)
    except DuplicateError:
        check_names([*getattr(values, "column_names", values.columns)], "A table")
        raise


def read_lists(frame: object) -> dict[str, Any]:
    """Return the columns of a table in which each row holds a list: an array if all have one length, else a list."""
    if isinstance(frame, Mapping):
        columns = {name: list(values) for name, values in frame.items() if hasattr(values, "__len__")}
        return {name: values for name, values in columns.items() if _are_lists(values)}
    if isinstance(frame, Table):
        return {}
    native = _to_native(pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame)
    if isinstance(native, nw.LazyFrame):
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    nested = [name for name, kind in native.schema.items() if isinstance(kind, (nw.List, nw.Array, nw.Object))]
    entries = {name: _list_entries(native.get_column(name)) for name in nested}
    return {name: values for name, values in entries.items() if isinstance(values, np.ndarray) or _are_lists(values)}


def _list_entries(series: Any) -> Any:
    """Return lists of one length as the rows of an array, else as a list."""
    if isinstance(series.dtype, (nw.List, nw.Array)) and not series.implementation.is_pandas_like():
        lists = series.to_arrow()
        lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        numbers = lists.flatten()  # of lists that are there
        if lists.null_count == 0 and numbers.null_count == 0 and len(lists) and len(numbers) % len(lists) == 0:
            width = len(numbers) // len(lists)
            if pc.all(pc.equal(pc.list_value_length(lists), width)).as_py() and not pa.types.is_nested(numbers.type):
                return numbers.to_numpy(zero_copy_only=False).reshape(len(lists), width)
    return series.to_list()


def _are_lists(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(entry, (list, tuple, np.ndarray)) for entry in values[:3])


def read_column(values: object, what: str = "The data") -> Column:
    """Return values that stand alone as a column: a series of any frame library, an array, or any sequence.

    `what` stands for the values in messages.
    """
    check_length(values, what)
    if type(values).__module__.partition(".")[0] == "pandas" and not hasattr(values, "columns"):
        import pandas as pd

        # An index or a bare categorical: narwhals knows it in a series.
        values = values.to_series() if isinstance(values, pd.Index) else pd.Series(values)
    native = _to_native(values)
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"{what} must be a sequence of values. Got a {type(values).__name__} instead.", "Give one column of it."
        )
    return _series_to_column(native, what) if isinstance(native, nw.Series) else to_column(values, what)


def check_length(values: object, what: str) -> None:
    """Raise an error for a range, or an array that repeats one number, which takes no memory yet and would take all."""
    if isinstance(values, range):
        n_values = (values[-1] - values[0]) // values.step + 1 if values else 0
        require_memory(NUMBER * n_values, f"{what} has {n_values:,} values")
    elif isinstance(values, np.ndarray):
        require_memory(values.nbytes, f"{what} has {values.size:,} values")


def read_distinct(values: object, what: str) -> Values:
    """Return values that must be distinct and in order; `what` stands for them in messages."""
    if isinstance(values, (set, frozenset)):
        raise InputError(f"{what} must be in order.", "Give a list, not a set.")
    column = read_column(values, what)
    n_missing = len(find_missing(column))
    if n_missing:
        raise InputError(f"{what} must be distinct values; {n_missing:,} of {len(column):,} are missing.")
    distinct, repeated = split_repeated(column)
    if repeated:
        raise InputError(f"{what} must be distinct values. Found more than once: {listing(repeated)}.")
    return distinct


def read_names(values: object, count: int, what: str) -> Values:
    """Return the names of `count` things: those given, which must be distinct and as many, or 0, 1, 2, ..."""
    if values is None:
        return np.arange(count)
    names = read_distinct(values, what)
    if len(names) != count:
        raise InputError(f"{what} must be {count:,} distinct values; got {len(names):,}.")
    return names


def build_frame(columns: Mapping[str, Column], backend: str) -> Any:
    """Return named columns as a table of the frame library `backend` ("pandas", "polars" or "pyarrow")."""
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame({name: _to_pandas(column) for name, column in columns.items()})
    if backend == "polars":
        import polars as pl

        return pl.DataFrame({name: _to_polars(column) for name, column in columns.items()})
    return pa.table({name: _to_arrow(column) for name, column in columns.items()})


def open_series(series: Any) -> tuple[Column, Column] | None:
    """Return (index, values) of a pandas-like Series, or None if it is no such thing."""
    native = _to_native(series)
    if not (isinstance(native, nw.Series) and native.implementation.is_pandas_like()):
        return None
    return read_column(series.index, "The index of the series"), read_column(series, "The series")


def _series_to_column(series: Any, what: str) -> Column:
    pandas_like = series.implementation.is_pandas_like()
    # pandas keeps strings, enums and anything else in object columns: the entries' own types decide.
    if series.dtype == nw.Object or (
        pandas_like and (series.to_native().dtype == object or series.dtype == nw.Unknown)
    ):
        return to_column(series.to_list(), what)
    if pandas_like and series.to_native().dtype == "category":
        categories = read_column(series.to_native().cat.categories, what)
        if isinstance(categories, np.ndarray):
            return to_column(series.to_list(), what)
        codes, ordered = series.to_native().cat.codes.to_numpy(), bool(series.to_native().cat.ordered)
        indices = pa.array(codes, mask=codes < 0)
        return to_column(pa.DictionaryArray.from_arrays(indices, categories, ordered=ordered), what)
    if series.dtype == nw.Categorical and series.implementation.is_polars():
        # polars sorts categoricals by their text; an Enum keeps the order it was given.
        series = series.cast(nw.String)
    try:
        column = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        column = series.to_list()
    return to_column(column, what)


def _to_arrow(column: Column) -> pa.Array:
    if isinstance(column, np.ndarray):
        column = to_column(column)
    if isinstance(column, np.ndarray):
        # Arrow has no type for these objects (enums, tuples, mixed types): their text has to do.
        texts = [None if entry is None else spell_surrogates(str(entry)) for entry in column]
        return pa.array(texts, pa.string())
    return column


def _to_pandas(column: Column) -> Any:
    import pandas as pd

    if isinstance(column, np.ndarray):
        # pandas would make text of its own of objects that are text, and that takes no half characters.
        return pd.Series(column, dtype=object)
    if pa.types.is_integer(column.type) and column.null_count:
        kind = "UInt64" if pa.types.is_unsigned_integer(column.type) else "Int64"
        return pd.Series(column.to_pandas(integer_object_nulls=True), dtype=kind)  # not floats
    return column.to_pandas()


def _to_polars(column: Column) -> Any:
    import polars as pl

    if isinstance(column, np.ndarray):
        column = to_column(column)
    if isinstance(column, np.ndarray):
        return pl.Series(values=column.tolist(), dtype=pl.Object)
    return pl.Series(values=pl.from_arrow(column))
