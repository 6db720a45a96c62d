"""Tables of any frame library or file: named columns, found by the role they play, and results out in the same library.

Errors say where a value is.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from ..arguments import is_among
from ..errors import InputError, Sentence, first_line, listing, plural, shorten
from ..limits import NUMBER, require_few, require_memory
from .columns import (
    Column,
    Indices,
    Values,
    find_missing,
    is_missing,
    join_parts,
    join_texts,
    name_parts,
    spell_surrogates,
    split_repeated,
    to_column,
)

if TYPE_CHECKING:
    from .soft_votes import SoftRows

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
# The libraries in which results can go back.
BACKENDS = ("pandas", "polars", "pyarrow")


def check_width(n_columns: int, owner: str) -> None:
    """Raise an error for a table, or a matrix, with more columns than are read."""
    require_few("columns", n_columns, f"{owner} has {n_columns:,} columns", "Give a table with one row per answer.")


def check_spread(n_rows: int, n_workers: int, n_answers: int) -> None:
    """Raise an error if a table with a column for each worker is too wide to be read, or huge and nearly empty."""
    n_cells, remedy = n_rows * n_workers, "Write one row per answer or span."
    size = f"A column for each of {n_workers:,} workers, and {n_rows:,} rows, take {n_cells:,} cells"
    require_few("cells", n_cells, f"{size} for {n_answers:,} answers", remedy, n=n_answers)
    require_few("columns", n_workers + 1, f"{size} in {n_workers + 1:,} columns", remedy)


def check_names(names: Sequence[str], owner: str) -> None:
    """Raise an error unless the columns of a table, which `owner` stands for, are not too many and differ in name."""
    check_width(len(names), owner)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{owner} has more than one column called {listing(repeated)}.", "Give each column its own name."
        )


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
    cells : callable
        Returns the cells of a column that may hold lists, in Arrow or as Python objects; None for other columns.
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
    cells: Callable[[str], Any] = lambda name: None  # noqa: ARG005
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
        """The column that is to be preferred for a role, or the first of the role's own names in `ALIASES`."""
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
        """The table of some of the rows, which know where they came from."""

        def cells(name: str) -> Any:
            found = self.cells(name)
            return [found[row] for row in rows.tolist()] if isinstance(found, list) else found and found.take(rows)

        return replace(
            self,
            read=lambda name: self.read(name).take(rows),
            n_rows=len(rows),
            locate=lambda row: self.locate(int(rows[row])),
            cells=cells,
            soft=None if self.soft is None else self.soft.pick(rows),
        )

    def add(self, columns: Mapping[str, Column]) -> Table:
        """The table with some columns more."""
        return replace(
            self,
            names=[*self.names, *columns],
            read=lambda name: columns[name] if name in columns else self.read(name),
            cells=lambda name: None if name in columns else self.cells(name),
        )

    def lay_out(self, roles: Mapping[str, tuple[str, Column]], locate: Callable[[int], str], items: Column) -> Table:
        """The table of other rows about the same items: for each role the name of its column, and the column."""
        columns, preferred = dict(roles.values()), {role: name for role, (name, _) in roles.items()}
        n_rows = len(roles["item"][1])
        return Table(
            list(columns), columns.__getitem__, n_rows, self.backend, self.name, locate, preferred, items=items
        )

    def lists(self, name: str) -> list[Any] | None:
        """The lists in the cells of a column, None where a cell is missing; None for other columns.

        Tuples and frozen sets are values like any other: they may be labels.
        """
        cells = self.cells(name)
        if cells is None:
            return None
        entries: list[Any] = cells if isinstance(cells, list) else cells.to_pylist()
        there = [entry for entry in entries if not is_missing(entry)]
        if not there or not all(isinstance(entry, (list, set, np.ndarray)) for entry in there):
            return None
        lists = [entry.tolist() if isinstance(entry, np.ndarray) else entry for entry in entries]
        return [None if is_missing(entry) else list(entry) for entry in lists]

    def vectors(self, name: str) -> Any:
        """The lists or arrays in a column: one array if all have one length, else a list; None for other columns."""
        cells = self.cells(name)
        if isinstance(cells, (pa.Array, pa.ChunkedArray)):
            lists = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
            numbers = lists.flatten() if hasattr(lists, "flatten") else lists  # of lists that are there
            width, rest = divmod(len(numbers), max(len(lists), 1))
            whole = lists.null_count == numbers.null_count == rest == 0 and not pa.types.is_nested(numbers.type)
            if width and whole and pc.all(pc.equal(pc.list_value_length(lists), width)).as_py():
                return numbers.to_numpy(zero_copy_only=False).reshape(len(lists), width)
            cells = lists.to_pylist()
        held = bool(cells) and all(isinstance(entry, (list, tuple, np.ndarray)) for entry in cells[:3])
        return cells if held else None

    def values(self, name: str, *remedies: str | Sentence) -> Column:
        """A column without missing values; a missing one is an error that says where it is, and what to do."""
        column = self.read(name)
        rows = find_missing(column)
        if len(rows):
            share = "is empty throughout" if len(rows) == len(column) else f"has {plural(len(rows), 'missing value')}"
            raise InputError(
                f"Column {name!r} of {self.name} {share}; the first is at {self.locate(int(rows[0]))}.", *remedies
            )
        return column

    def many_columns(self, role: str, found: Sequence[str], parameter: str | None = None) -> InputError:
        """The error for several columns that may play a role, one of which the caller has to choose."""
        return InputError(
            f"{self.name} has {plural(len(found), 'column')} that may be the {role}: {listing(found, len(found))}.",
            "Rename the one that is meant." if parameter is None else Sentence(f"Choose one with {{{parameter}}}."),
            keyword=parameter,
        )

    def no_column(self, role: str, given: str | None, parameter: str | None = None) -> InputError:
        """The error for a missing column, with the nearest name there is.

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
        tried, near, wanted = ALIASES.get(role, ()), 0.7, f"has no column for the {role}"
        if given is not None:
            tried, near = (given.lower() if isinstance(given, str) else shorten(given),), 0.6
            wanted = f"has no column {shorten(given)}"
        else:  # a column that is found for another role is not the one that was meant
            wanted += f" (looked for {_list_aliases(role)})"
            others = [OTHER_ALIASES[other] for other in ("worker", "label") if other != role]
            meant = _ALL_ALIASES.union(*(aliases for rows in others for aliases in rows))
            names = {lower: name for lower, name in names.items() if lower not in meant}
        close = [names[name] for word in tried for name in difflib.get_close_matches(word, names, n=1, cutoff=near)]
        remedy: str | Sentence = f"Rename {close[0]!r}?" if close else "Rename the column that holds it."
        if parameter is not None:
            text = f"Did you mean {{{parameter}}}?" if close else f"Name it with {{{parameter}}}."
            remedy = Sentence(text, **{parameter: close[0] if close else None})
        listed, explained = self._describe(tried)
        remedies = [explained or remedy]
        if given is None and role == "worker" and parameter is not None:
            remedies.append(_WIDE)
        if given is None and role == "label" and self.find("left") is not None and self.find("right") is not None:
            remedies.append(_PAIRS)
        return InputError(f"{self.name} {wanted}. {listed}.", *remedies, keyword=parameter)

    def no_columns(self, roles: Sequence[str]) -> InputError:
        """The error for several missing columns, which the caller can name with parameters."""
        looked = "; ".join(f"{role}: looked for {_list_aliases(role)}" for role in roles)
        listed, explained = self._describe([alias for role in roles for alias in ALIASES[role]])
        named = Sentence(f"Name them with {', '.join(f'{{{role}}}' for role in roles)}.")
        remedies = [explained] if explained else [named, _WIDE] if "worker" in roles else [named]
        return InputError(f"{self.name} has no columns for {', '.join(roles)} ({looked}). {listed}.", *remedies)

    def _describe(self, tried: Sequence[str]) -> tuple[str, str]:
        """All names of columns in words, first those that resemble what was looked for, and why none is found.

        The latter is another separator, or blanks around a name; mostly it is empty.
        """
        names = [str(name) for name in self.names]
        likeness = {name: _likeness(name, tried) for name in names}
        ordered = sorted(names, key=lambda name: -likeness[name] if likeness[name] >= 0.6 else 0.0)
        listed = f"It has {listing(ordered, len(ordered))}" if names else "It has no columns"
        sign = next((sign for sign in _SEPARATORS if len(names) == 1 and sign in names[0]), None)
        if sign is not None:
            remedy = "Save it with commas" + (", or call it .tsv." if sign == "\t" else ".")
            return listed, f"That is one column: its parts seem to be separated by {_SEPARATORS[sign]}. {remedy}"
        padded = [name for name in names if name != name.strip() and name.strip().lower() in tried]
        return listed, f"Remove the blanks around the name {padded[0]!r}." if padded else ""


def key_roles(paired: bool) -> tuple[str, ...]:
    """The roles of columns that identify an item: its id, or the sequence that it is in and its position."""
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
    """The letters and digits of a name, in lower case.

    >>> squeeze("Worker-ID"), squeeze("worker_id")
    ('workerid', 'workerid')
    """
    return "".join(filter(str.isalnum, str(name).lower()))


def _list_aliases(role: str) -> str:
    return ", ".join(ALIASES[role]) + (" and similar names" if role in OTHER_ALIASES else "")


def _likeness(name: str, tried: Sequence[str]) -> float:
    """From 0 to 1 how much a name resembles one of some words; one that holds such a word does so most."""
    text = squeeze(name[:LONGEST_NAME])
    if any(len(word) > 2 and squeeze(word) in text for word in tried):
        return 1.0
    return max((difflib.SequenceMatcher(None, text, word[:LONGEST_NAME]).ratio() for word in tried), default=0.0)


def open_frame(frame: object, name: str = "the table") -> Table:
    """A frame of any library narwhals knows, or a mapping of columns, as a `Table`; a `Table` as it is."""
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
        try:
            stream: Any = frame
            return open_frame(pa.RecordBatchReader.from_stream(stream).read_all(), name)
        except Exception as error:  # whatever a database meets while it gives its rows
            raise InputError(
                f"Cannot read {name} from the Arrow stream of a {type(frame).__name__}: {first_line(error)}.",
                "A stream can be read only once, and must be one of rows with named columns.",
            ) from error
    if not isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"Cannot read {name} from a {type(frame).__name__}.",
            "Give a pandas, polars or pyarrow table, a dict of columns, a path, or consilience.Answers; for arrays "
            "see Answers.from_matrix.",
        )
    if isinstance(native, nw.LazyFrame):
        # polars collects to polars; engines such as DuckDB have no frame of their own and give Arrow.
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    eager, in_pandas = native, native.implementation.is_pandas_like()

    def read(column: str) -> Column:
        return _series_to_column(eager.get_column(column), f"Column {column!r} of {name}")

    def cells(column: str) -> Any:
        series = eager.get_column(column)
        if in_pandas or series.dtype == nw.Object:
            return series.to_list() if isinstance(series.dtype, (nw.List, nw.Array, nw.Object)) else None
        return series.to_arrow() if isinstance(series.dtype, (nw.List, nw.Array)) else None

    backend = "pandas" if in_pandas else eager.implementation.name.lower()
    return Table(eager.columns, read, len(eager), backend, name, _count_rows, cells=cells)


def open_arrow(table: pa.Table, name: str) -> Table:
    """An Arrow table as a `Table`."""

    def read(column: str) -> Column:
        return to_column(table.column(column), f"Column {column!r} of {name}")

    def cells(column: str) -> Any:
        values = table.column(column)
        return values if pa.types.is_nested(values.type) else None

    return Table(table.column_names, read, table.num_rows, "pyarrow", name, _count_rows, cells=cells)


def _open_mapping(columns: Mapping[str, Any], name: str) -> Table:
    """A mapping of columns as a `Table`."""
    for column, values in columns.items():
        if not hasattr(values, "__len__"):
            raise InputError(f"Column {column!r} of {name} must be a sequence of values. Got {shorten(values)}.")
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"The columns of {name} have different lengths: {listing(sorted(lengths))}.")

    def read(column: str) -> Column:
        return read_column(columns[column], f"Column {column!r} of {name}")

    def cells(column: str) -> Any:
        values = columns[column]
        is_plain = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind != "O"
        return None if is_plain or isinstance(values, range) else list(values)

    return Table(list(columns), read, lengths.pop() if lengths else 0, "pyarrow", name, _count_rows, cells=cells)


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


def _to_native(values: Any) -> Any:
    """What narwhals makes of a table or series; other things as they are."""
    try:
        return nw.from_native(values, allow_series=True, pass_through=True)
    except DuplicateError:
        check_names([*getattr(values, "column_names", values.columns)], "A table")
        raise


def read_column(values: object, what: str = "The data") -> Column:
    """Values that stand alone as a column: a series of any frame library, an array, or any sequence.

    `what` stands for the values in messages.
    """
    # A range, or an array that repeats one number, takes no memory yet and would take all.
    if isinstance(values, range):
        n_values = (values[-1] - values[0]) // values.step + 1 if values else 0
        require_memory(NUMBER * n_values, f"{what} has {n_values:,} values")
    elif isinstance(values, np.ndarray):
        require_memory(values.nbytes, f"{what} has {values.size:,} values")
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


def read_distinct(values: object, what: str) -> Values:
    """Values that must be distinct and in order; `what` stands for them in messages."""
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
    """The names of `count` things: those given, which must be distinct and as many, or 0, 1, 2, ..."""
    if values is None:
        return np.arange(count)
    names = read_distinct(values, what)
    if len(names) != count:
        raise InputError(f"{what} must be {count:,} distinct values; got {len(names):,}.")
    return names


def open_series(series: Any) -> tuple[Column, Column] | None:
    """(index, values) of a pandas-like Series, or None if it is no such thing."""
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


def build_frame(columns: Mapping[str, Column], backend: str) -> Any:
    """Named columns as a table of the frame library `backend` ("pandas", "polars" or "pyarrow")."""
    if backend == "pandas":
        import pandas as pd

        def to_series(column: Column) -> Any:
            if isinstance(column, np.ndarray):
                # pandas would make text of its own of objects that are text, and that takes no half characters.
                return pd.Series(column, dtype=object)
            if pa.types.is_integer(column.type) and column.null_count:  # not floats
                kind = "UInt64" if pa.types.is_unsigned_integer(column.type) else "Int64"
                return pd.Series(column.to_pandas(integer_object_nulls=True), dtype=kind)
            return column.to_pandas()

        return pd.DataFrame({name: to_series(column) for name, column in columns.items()})
    columns = {name: to_column(each) if isinstance(each, np.ndarray) else each for name, each in columns.items()}
    # Of objects that no type of Arrow holds (enums, tuples, mixed types).
    odd = {name: column.tolist() for name, column in columns.items() if isinstance(column, np.ndarray)}
    if backend == "polars":
        import polars as pl

        return pl.DataFrame(
            {
                name: pl.Series(values=odd[name], dtype=pl.Object)
                if name in odd
                else pl.Series(values=pl.from_arrow(column))
                for name, column in columns.items()
            }
        )
    texts = {
        name: pa.array([None if entry is None else spell_surrogates(str(entry)) for entry in entries], pa.string())
        for name, entries in odd.items()
    }
    return pa.table({name: texts.get(name, column) for name, column in columns.items()})
