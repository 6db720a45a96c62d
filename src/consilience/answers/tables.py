"""Tables of any frame library or file: named columns, found by the role they play, and results out in the same library.

Errors say where a value is.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from ..errors import InputError, ParameterError, Sentence, first_line, listing, parameter_error, plural, shorten
from ..kernels import Floats
from ..limits import NUMBER, require_few, require_memory
from ..options import COLUMN_ROLES, is_among, to_floats
from . import DIALECTS, Names, list_names
from .columns import (
    Column,
    Indices,
    Values,
    are_distinct,
    decode_categories,
    find_missing,
    find_present,
    is_missing,
    is_present,
    is_text,
    join_parts,
    join_texts,
    spell_surrogates,
    split_names,
    split_repeated,
    to_column,
    to_values,
)

if TYPE_CHECKING:
    from .soft_votes import SoftRows

# What columns of a table of answers can be.
ROLES = tuple(role for role in COLUMN_ROLES if role != "gold")
# Roles that several columns can play together.
WHOLE = ("item", "sequence")
_LABELS = (
    "verdict category class choice annotation vote judgment judgement decision tag classlabel classid labelid "
    "classification workerlabel crowdlabel selection tags labels",
    "rating grade mark value score result output prediction",
)
_GOLD = (
    "goldlabel goldanswer golden goldstandard groundtruth truelabel trueclass gt correctanswer correctlabel ytrue",
)
# The names of columns that tell which role they play. Those in the first row are a role's own. Those in the others are
# looked for, row by row, only where there is none of these, in letters and digits alone: WorkerId and worker_id are
# both "workerid". Several columns with names of one such row are a doubt, which the user has to settle.
_NAMES = {
    "item": (
        "item task question id",
        "itemid taskid questionid",
        "imageid promptid docid documentid exampleid sampleid unitid hitid recordid instanceid objectid textid "
        "sentenceid tweetid postid commentid pairid queryid reviewid messageid articleid ticketid caseid productid "
        "pageid videoid photoid audioid",
        "image prompt document doc example sample unit record instance object tweet photo video audio",
        "itemname taskname imagename documentname",
        "text sentence url filename file path",
        "student studentid",
        "row rowid",
    ),
    "worker": (
        "worker annotator judge labeler",
        "workerid annotatorid judgeid labelerid labeller labellerid rater raterid coder coderid performer performerid "
        "contributor contributorid reviewer reviewerid assessor assessorid grader graderid evaluator evaluatorid "
        "expert expertid toloker tolokerid turker turkerid",
        "workername annotatorname judgename labelername labellername ratername codername reviewername assessorname "
        "gradername evaluatorname expertname",
        "user userid username participant participantid respondent respondentid annotatedby",
        "labelingfunction labellingfunction lf",
        "model modelid modelname classifier llm",
    ),
    "label": ("label answer response", *_LABELS),
    "sequence": ("sequence",),
    "position": ("position",),
    "weight": ("weight",),
    "order": ("order",),
    # Beside answers, and in a table of gold.
    "gold": ("gold truth", *_GOLD),
    "known label": ("label answer response gold truth", *_GOLD, *_LABELS),
    "random": ("random",),
    "inclusion": ("inclusion_probability inclusion",),
    # In a table of spans.
    "document": ("document document_id doc doc_id text_id sentence sequence item task id",),
    "start": ("start begin start_offset start_char",),
    "end": ("end stop end_offset end_char",),
    "type": ("label type tag entity",),
    "text": ("text content",),
    # In a table of comparisons.
    "left": ("left model_a candidate_a option_a response_a system_a",),
    "right": ("right model_b candidate_b option_b response_b system_b",),
    "winner": ("winner preference preferred verdict label answer choice result",),
    "group": ("group family",),
    # In a table of scores or ranks of candidates.
    "candidate": ("candidate model system option variant",),
    "score": ("score rating grade points",),
    "rank": ("rank place",),
}
ALIASES = {role: [row.split() for row in rows] for role, rows in _NAMES.items()}
# What a table of spans says of each.
SPAN_ROLES = ("document", "start", "end", "type")
_PAIRS = "Verdicts on pairs make a ranking: `consilience rank`, or consilience.rank in Python."
_WIDE = Sentence("If each worker has a column of their own, use {format}.", format="wide")
_FRAMES = (nw.DataFrame, nw.LazyFrame, pa.Table)
_COLUMNS = (nw.Series, pa.Array, pa.ChunkedArray, type)
# The libraries in which results can go back.
BACKENDS = ("pandas", "polars", "pyarrow")


def check_spread(n_rows: int, n_workers: int, n_answers: int) -> None:
    """Raise an error if a table with a column for each worker is too wide to be read, or huge and nearly empty."""
    n_cells, remedy = n_rows * n_workers, "Write one row per answer or span."
    size = f"A column for each of {n_workers:,} workers, and {n_rows:,} rows, take {n_cells:,} cells"
    require_few("cells", n_cells, f"{size} for {n_answers:,} answers", remedy, n=n_answers)
    require_few("columns", n_workers + 1, f"{size} in {n_workers + 1:,} columns", remedy)


def check_names(names: Sequence[str], owner: str) -> None:
    """Raise an error unless the columns of a table, which `owner` stands for, are not too many and differ in name."""
    require_few("columns", len(names), f"{owner} has {len(names):,} columns", "Give a table with one row per answer.")
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
    raw : callable
        Returns the column of a name as it came: in Arrow, as a series, or as a sequence of values.
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
        How the user calls the form of the table, if that is not one row per answer; see `DIALECTS`.
    items : column or None
        All items, where a table names them also if nobody answered them.
    origin : tuple of str or None
        Path and format of the file that it was read from.
    synonyms : mapping
        Other names by which users may call a column.
    questions : sequence of str
        The columns of answers to several questions, each of which has rows where it was not asked.
    ignored : sequence of str
        Columns that are not taken for workers, where each of these has a column.
    soft : SoftRows or None
        What each row gives to each label, where answers are soft votes.
    rows : int64 array or None
        The rows that are left of those that came; None for all.
    added : mapping
        Columns that can be encoded as they are, in place of those that came or beside them.
    """

    names: Sequence[str]
    raw: Callable[[str], Any]
    n_rows: int = 0
    backend: str = "pyarrow"
    name: str = "the table"
    locate: Callable[[int], str] = "row {} (counting from 0)".format
    preferred: Mapping[str, str | None] = field(default_factory=dict)
    format: str = ""
    items: Column | None = None
    origin: tuple[str, str] | None = None
    synonyms: Mapping[str, str] = field(default_factory=dict)
    questions: Sequence[str] = ()
    ignored: Sequence[str] = ()
    soft: SoftRows | None = None
    rows: Indices | None = None
    added: Mapping[str, Column] = field(default_factory=dict)

    def read(self, name: str) -> Column:
        """A column that can be encoded."""
        if name in self.added:
            return self.added[name]
        column = read_column(self.raw(name), f"Column {name!r} of {self.name}")
        return column if self.rows is None else column.take(self.rows)

    def find(self, role: str, given: str | None = None) -> str | None:
        """The name of the column that plays `role`: the given one, or the first alias that exists."""
        if given is None:
            return self.find_usual(role) or next(iter(self.candidates(role)), None)
        if is_among(given, self.names):
            return given
        if is_among(given, list(self.synonyms)):
            return self.synonyms[given]
        raise self.no_column(role, given, parameter=role)

    def find_usual(self, role: str) -> str | None:
        """The column that is to be preferred for a role, or the first that has one of the role's own names.

        Upper and lower case, and blanks around a name, make no difference.
        """
        wanted = self.preferred.get(role)
        if wanted is not None and is_among(wanted, self.names):
            return wanted
        by_alias = {str(name).strip().lower(): name for name in reversed(self.names)}
        by_alias |= {name: name for name in self.names}
        return next((by_alias[alias] for alias in ALIASES[role][0] if alias in by_alias), None)

    def candidates(self, role: str) -> list[str]:
        """The columns with other names of a role, in the first row of these in which there are any."""
        squeezed = [(squeeze(name), name) for name in self.names]
        groups = ([name for text, name in squeezed if text in row] for row in ALIASES[role][1:])
        return next(filter(None, groups), [])

    def need(self, role: str, given: str | None = None, parameter: str | None = None) -> str:
        """The column that `find` finds; an error if there is none, or several that may be meant."""
        name = self.find(role, given)
        if name is None:
            raise self.no_column(role, None, parameter)
        candidates = self.candidates(role) if given is None and self.find_usual(role) is None else []
        if len(candidates) > 1:
            raise InputError(
                f"{self.name} has {plural(len(candidates), 'column')} that may be the {role}: "
                f"{listing(candidates, len(candidates))}.",
                "Rename the one that is meant." if parameter is None else Sentence(f"Choose one with {{{parameter}}}."),
                keyword=parameter,
            )
        return name

    def find_spans(self) -> dict[str, str] | None:
        """The columns of document, start, end and type of a table of spans; None for any other table.

        A table with positions is one of tokens.
        """
        columns = {role: name for role in SPAN_ROLES if (name := self.find_usual(role)) is not None}
        return columns if len(columns) == len(SPAN_ROLES) and self.find_usual("position") is None else None

    def has_sequences(self) -> bool:
        """Whether items are identified by sequence and position: there is no column item, and one sequence."""
        return self.find_usual("item") is None and self.find("sequence") is not None

    def need_keys(self, paired: bool) -> list[str]:
        """The columns that say which item a row is about: item, or sequence and position."""
        return [self.need(role) for role in key_roles(paired)]

    def prefer(self, names: Mapping[str, str | None]) -> Table:
        """The table with names of columns to look for first, after those that it has already.

        Columns that identify an item together, and are all here, are joined in a further one.
        """
        own = {role: name for role, name in self.preferred.items() if name is not None}
        table, wanted = self, {**names, **own}
        for role in WHOLE:
            with suppress(InputError):
                table, wanted[role] = table.combine(role, wanted.get(role))
        return replace(table, preferred=wanted)

    def combine(self, role: str, given: str | Sequence[str] | None) -> tuple[Table, str | None]:
        """The table with a column in which those that play a role together are joined, and its name.

        Several columns are in a list, or in a text with commas or as `join_texts` joins them, unless a column is called
        like that. If one column plays the role, that is its name, and the table stays as it is.
        """
        if isinstance(given, (list, tuple)):
            parts = [str(each) for each in given]
        elif not isinstance(given, str) or is_among(given, self.names):
            return self, cast("str | None", given)
        else:
            ways = split_names(given), [each.strip() for each in given.split(",")]
            parts = next((way for way in ways if len(way) > 1 and set(way) & set(self.names)), [])
        for part in parts:
            if not is_among(part, self.names):
                raise self.no_column(role, part, parameter=role)
        if len(parts) < 2:
            return self, parts[0] if parts else cast("str", given)
        name = join_texts(parts)
        if name in self.names:
            return self, name
        joined = self.add({name: join_parts([self.read(part) for part in parts])})
        return replace(joined, ignored=[*self.ignored, *parts]), name

    def keep(self, rows: Indices) -> Table:
        """The table of some of the rows, which know where they came from."""
        return replace(
            self,
            rows=rows if self.rows is None else self.rows[rows],
            added={name: column.take(rows) for name, column in self.added.items()},
            n_rows=len(rows),
            locate=lambda row: self.locate(int(rows[row])),
            soft=None if self.soft is None else self.soft.pick(rows),
        )

    def add(self, columns: Mapping[str, Column]) -> Table:
        """The table with some columns more, or others of the same names."""
        new = [name for name in columns if name not in self.names]
        return replace(self, names=[*self.names, *new], added={**self.added, **columns})

    def cells(self, name: str) -> Any:
        """The cells of a column that may hold lists, in Arrow or as a list of objects; None for other columns."""
        raw = None if name in self.added else self.raw(name)
        if isinstance(raw, nw.Series):
            is_odd = raw.dtype == nw.Object or raw.implementation.is_pandas_like()
            may_hold = isinstance(raw.dtype, (nw.List, nw.Array, nw.Object))
            raw = None if not may_hold else raw.to_list() if is_odd else raw.to_arrow()
        is_plain = isinstance(raw, range) or (isinstance(raw, np.ndarray) and raw.ndim == 1 and raw.dtype != object)
        if isinstance(raw, (pa.Array, pa.ChunkedArray)):
            whole = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
            cells: Any = whole if pa.types.is_nested(raw.type) else None
        else:
            cells = None if raw is None or is_plain else list(raw)
        if cells is None or self.rows is None:
            return cells
        return [cells[row] for row in self.rows.tolist()] if isinstance(cells, list) else cells.take(self.rows)

    def lists(self, name: str) -> list[Any] | None:
        """The lists in the cells of a column, None where a cell is missing; None for other columns.

        Tuples and frozen sets are values like any other: they may be labels.
        """
        cells = self.cells(name)
        cells = [] if cells is None else cells if isinstance(cells, list) else cells.to_pylist()
        kinds = list, set, np.ndarray
        if not isinstance(next((cell for cell in cells if not is_missing(cell)), None), kinds):
            return None
        lists = [None if is_missing(cell) else cell for cell in cells]
        if not all(each is None or isinstance(each, kinds) for each in lists):
            return None
        return [each.tolist() if isinstance(each, np.ndarray) else each and list(each) for each in lists]

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
        if given is None:
            tried, others = ALIASES[role][0], " and similar names" if len(ALIASES[role]) > 1 else ""
            problem = f"has no column for the {role} (looked for {', '.join(tried)}{others})"
        else:
            problem, tried = f"has no column {shorten(given)}", [given.lower()] if isinstance(given, str) else []
        # A column that is found for another role is not the one that was meant.
        taken = {self.find(other) for other in (*ROLES, "gold") if given is None}
        names = {str(name).lower(): str(name) for name in self.names if name not in taken}
        close = [names[near] for word in tried for near in difflib.get_close_matches(word, names, 1, 0.65)]
        remedies: list[str | Sentence] = [f"Rename {close[0]!r}?" if close else "Rename the column that holds it."]
        if parameter is not None:
            text = f"Did you mean {{{parameter}}}?" if close else f"Name it with {{{parameter}}}."
            remedies = [Sentence(text, **{parameter: close[0] if close else None})]
            remedies += [_WIDE] if given is None and role == "worker" else []
        if given is None and role == "label" and not self.format:
            columns = import_module(".soft_votes", __package__).find_class_columns(self, {})
            if len(columns) > 1 and all(self.holds_fractions(name) for name in columns):
                remedies = [Sentence("If these are probabilities of classes, use {format}.", format="soft"), *remedies]
        if given is None and role == "label" and self.find("left") is not None and self.find("right") is not None:
            remedies.append(_PAIRS)
        return InputError(f"{self.name} {problem}. {self.list_columns()}.", *remedies, keyword=parameter)

    def holds_fractions(self, name: str) -> bool:
        """Whether a column has a type of numbers with fractions."""
        column = self.read(name)
        return isinstance(column, pa.Array) and pa.types.is_floating(column.type)

    def list_columns(self) -> str:
        """The names of all columns, for a message."""
        return f"It has {listing(map(str, self.names), len(self.names))}" if len(self.names) else "It has no columns"


def key_roles(paired: bool) -> tuple[str, ...]:
    """The roles of columns that identify an item: its id, or the sequence that it is in and its position."""
    return ("sequence", "position") if paired else ("item",)


def plays(table: Table, names: Mapping[str, str | None], *roles: str) -> bool:
    """Whether a column plays one of some roles, by the name that was given or by its own."""
    return any(names.get(role) is not None or table.find(role) is not None for role in roles)


def find_columns(table: Table, names: Mapping[str, str | None]) -> dict[str, str]:
    """The column that plays each role: item (or sequence and position), worker, label, and others if named."""
    paired, usual = names["sequence"] is not None or names["position"] is not None, table.find_usual("item")
    if names["item"] is not None and paired:
        raise ParameterError(
            Sentence("Give either {item} or {sequence} and {position}, not both: a position is an item.")
        )
    paired = paired or (names["item"] is None and usual is None and table.find("sequence") is not None)
    given = {role: names[role] for role in (*key_roles(paired), "worker", "label")}
    given |= {role: names[role] for role in ("weight", "order") if names.get(role) is not None}
    if not paired and names["item"] is None and usual is not None and str(usual).lower() == "id":
        # Beside a column such as task_id, "id" is a number of rows; those of several files may be the same.
        others = table.candidates("item")
        if len(others) == 1 and (squeeze(others[0]) in ALIASES["item"][1] or are_distinct(table.read(usual))):
            given["item"] = others[0]
    columns = {role: table.need(role, name, parameter=role) for role, name in given.items()}
    is_row = not paired and names["item"] is None and squeeze(columns["item"]) in ALIASES["item"][-1]
    if is_row and table.n_rows > 1 and are_distinct(table.read(columns["item"])):  # it counts the answers
        raise table.no_column("item", None, "item")
    return columns


def refuse_roles(table: Table, names: Mapping[str, str | None], roles: Iterable[str], how: str) -> None:
    """Raise an error for names of columns that a table does not have, because of `how` it is read."""
    for role in roles:
        if names.get(role) is not None:
            raise InputError(
                f"{table.name} is read {how}, without a column of its own for the {role}.",
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


def open_frame(frame: Any, name: str = "the table") -> Table:
    """A frame of any library narwhals knows, or a mapping of columns, as a `Table`; a `Table` as it is."""
    if isinstance(frame, Table):
        return frame
    if isinstance(frame, list) and frame and all(isinstance(row, Mapping) for row in frame):  # records
        keys = list(dict.fromkeys(key for row in frame for key in row))
        check_names(keys, "A list of records")
        frame = {key: [row.get(key) for row in frame] for key in keys}
    if isinstance(frame, Mapping):
        splits = [split for split, values in frame.items() if _is_dataset(values)]
        if splits:
            raise InputError(f"{name} holds the splits {listing(splits)} of a dataset.", "Give one of them.")
        for column, values in frame.items():
            if not hasattr(values, "__len__"):
                raise InputError(f"Column {column!r} of {name} must be a sequence of values. Got {shorten(values)}.")
        lengths = sorted({len(values) for values in frame.values()})
        if len(lengths) > 1:
            raise InputError(f"The columns of {name} have different lengths: {listing(lengths)}.")
        return Table(list(frame), frame.__getitem__, lengths[0] if lengths else 0, name=name)
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if _is_dataset(frame):
        frame = _read_dataset(frame, name)
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        # An index that plays a role that no column plays, such as a pivot by item, is a column.
        table = Table(list(frame.columns), frame.__getitem__)
        names = {name for name in frame.index.names if isinstance(name, str) and name not in table.names}
        index = Table([name for name in frame.index.names if name in names], frame.index.get_level_values)
        lacking = [role for role in ROLES if names and table.find(role) is None]
        found = [column for role in lacking if (column := index.find(role)) is not None]
        frame = frame.reset_index(level=list(dict.fromkeys(found))) if found else frame
    native = frame if isinstance(frame, pa.Table) else _to_native(frame)
    if hasattr(native, "__arrow_c_stream__") and not isinstance(native, (*_FRAMES, *_COLUMNS)):
        try:
            native = pa.RecordBatchReader.from_stream(native).read_all()
        except Exception as error:  # whatever a database meets while it gives its rows
            raise InputError(
                f"Cannot read {name} from the Arrow stream of a {type(frame).__name__}: {first_line(error)}.",
                "A stream can be read only once, and must be one of rows with named columns.",
            ) from error
    if isinstance(native, pa.Table):
        check_names(native.column_names, "A table")
        return Table(native.column_names, native.column, native.num_rows, name=name)
    if isinstance(native, nw.LazyFrame):
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    if not isinstance(native, nw.DataFrame):
        raise InputError(
            f"Cannot read {name} from a {type(frame).__name__}.",
            "Give a pandas, polars or pyarrow table, a dict of columns, a list of records, a path, or "
            "consilience.Answers; for arrays see Answers.from_matrix.",
        )
    kind = native.implementation
    backend = "pandas" if kind.is_pandas_like() else kind.name.lower()
    return Table(native.columns, native.get_column, len(native), backend, name)


def is_table(values: object) -> bool:
    """Whether something is a table, of any frame library or a mapping of columns."""
    if isinstance(values, (Mapping, Table, pa.RecordBatch)) or _is_dataset(values):
        return True
    native = _to_native(values)
    is_stream = hasattr(native, "__arrow_c_stream__") and not isinstance(native, _COLUMNS)
    return isinstance(native, _FRAMES) or is_stream


def _is_dataset(values: object) -> bool:
    """Whether something is a dataset of Hugging Face, or one that is streamed; a dict of splits is a mapping."""
    return hasattr(values, "features") and hasattr(values, "with_format") and not isinstance(values, type)


def _read_dataset(dataset: Any, name: str) -> pa.Table:
    """The rows of a dataset of Hugging Face, in its order, with the names of class labels for their numbers."""
    if not hasattr(dataset, "__len__"):
        raise InputError(f"Cannot read {name} from a dataset that is streamed.", "Load it without streaming=True.")
    table: pa.Table = dataset.with_format("arrow")[:]
    for place, (column, feature) in enumerate((each, dataset.features[each]) for each in table.column_names):
        names = getattr(feature, "names", None)
        if names and pa.types.is_integer(table.schema.field(place).type):
            codes = table.column(column).combine_chunks()
            codes = pc.if_else(pc.less(codes, 0), None, codes)  # -1 is no label
            values = pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), pa.array(names))
            table = table.set_column(place, column, values)
    return table


def _to_native(values: Any) -> Any:
    """What narwhals makes of a table or series; other things, such as a stream of Arrow, as they are."""
    try:
        native = nw.from_native(values, allow_series=True, pass_through=True)
    except DuplicateError:
        check_names([*getattr(values, "column_names", values.columns)], "A table")
        raise
    kind = native.implementation if isinstance(native, nw.DataFrame) else None
    is_known = kind is None or kind.is_pandas_like() or kind.is_polars() or kind.is_pyarrow()
    return native if is_known else values


def read_column(values: Any, what: str = "The data") -> Column:
    """Values that stand alone as a column: a series of any frame library, an array, or any sequence.

    `what` stands for the values in messages.
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return to_column(values, what)
    if isinstance(values, (range, np.ndarray)):
        # A range, or an array that repeats one number, takes no memory yet and would take all.
        n_values = values.size if isinstance(values, np.ndarray) else (values.stop - values.start) // values.step
        require_memory(NUMBER * n_values, f"{what} has {n_values:,} values")
    if type(values).__module__.partition(".")[0] == "pandas" and not hasattr(values, "columns"):
        import pandas as pd

        values = pd.Series(values)  # also an index or a bare categorical, which narwhals does not know
    series = values if isinstance(values, nw.Series) else _to_native(values)
    if isinstance(series, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"{what} must be a sequence of values. Got a {type(values).__name__} instead.", "Give one column of it."
        )
    if not isinstance(series, nw.Series):
        return to_column(values, what)
    if series.implementation.is_pandas_like():
        plain = series.to_native()
        # pandas keeps strings, enums and anything else in object columns: the entries' own types decide.
        if plain.dtype == object or series.dtype == nw.Unknown:
            return to_column(series.to_list(), what)
        if plain.dtype == "category":
            categories, codes = read_column(plain.cat.categories, what), plain.cat.codes.to_numpy()
            if isinstance(categories, np.ndarray):
                return to_column(series.to_list(), what)
            indices, is_scale = pa.array(codes, mask=codes < 0), bool(plain.cat.ordered)
            return to_column(pa.DictionaryArray.from_arrays(indices, categories, ordered=is_scale), what)
    elif series.dtype == nw.Categorical and series.implementation.is_polars():
        # polars sorts categoricals by their text; an Enum keeps the order it was given.
        series = series.cast(nw.String)
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return to_column(series.to_list() if series.dtype == nw.Object else series.to_arrow(), what)
    return to_column(series.to_list(), what)


def read_figures(table: Table, name: str) -> Floats:
    """A column of numbers; a missing one is nan."""
    column = table.read(name)
    values, there = to_values(column), is_present(column)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[there] = to_floats(values[there].tolist())
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Column {name!r} of {table.name} must hold numbers; {first_line(error)}.",
            "Leave it out, or turn it into numbers, such as one column of 0 and 1 for each category.",
        ) from error
    return numbers


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


def build_frame(columns: Mapping[str, Column], backend: str) -> Any:
    """Named columns as a table of the frame library `backend` ("pandas", "polars" or "pyarrow")."""
    columns = {name: to_column(each) if isinstance(each, np.ndarray) else each for name, each in columns.items()}
    if backend == "pandas":
        import pandas as pd

        def to_series(column: Column) -> Any:
            if isinstance(column, np.ndarray):
                return pd.Series(column, dtype=object)
            if pa.types.is_integer(column.type) and column.null_count:  # not floats
                kind = "UInt64" if pa.types.is_unsigned_integer(column.type) else "Int64"
                return pd.Series(column.to_pandas(integer_object_nulls=True), dtype=kind)
            return column.to_pandas()

        return pd.DataFrame({name: to_series(column) for name, column in columns.items()})
    # Objects that no type of Arrow holds are enums, tuples, and of mixed types.
    odd = {name: column.tolist() for name, column in columns.items() if isinstance(column, np.ndarray)}
    if backend == "polars":
        import polars as pl

        kept = {name: pl.Series(values=entries, dtype=pl.Object) for name, entries in odd.items()}
        return pl.DataFrame({name: kept[name] if name in kept else pl.from_arrow(columns[name]) for name in columns})
    texts = {
        name: pa.array([None if entry is None else spell_surrogates(str(entry)) for entry in entries], pa.string())
        for name, entries in odd.items()
    }
    return pa.table({**columns, **texts})


def read_times(table: Table, name: str) -> Floats:
    """The column that says when answers were given, as numbers that can be sorted; NaN where it is not known.

    Dates and times become seconds since 1970, those without a zone as if they were UTC. A text is one as ISO 8601
    writes it.
    """
    column = table.read(name)
    if isinstance(column, np.ndarray):  # times with a zone, or mixed types
        column = pa.array([None if is_missing(entry) else str(entry) for entry in column.tolist()], pa.string())
    column = decode_categories(column)
    if is_text(column.type):
        texts = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    seconds = _to_seconds(column)
    if seconds is None:
        rows = find_present(column).tolist()
        row = next((row for row in rows if _to_seconds(column.slice(row, 1)) is None), rows[0])
        raise InputError(
            f"Column {name!r} of {table.name} must say when answers were given, all in one way. Got "
            f"{shorten(column[row].as_py())} at {table.locate(row)}.",
            "Give numbers, a column of dates or times, or text as ISO 8601 writes it, such as 2024-05-17 or "
            "2024-05-17T09:30:00.",
            keyword="order",
        )
    order = np.array(seconds.to_numpy(zero_copy_only=False), np.float64)
    order[np.isinf(order)] = np.nan
    return order


def _to_seconds(column: pa.Array) -> pa.Array | None:
    """Numbers as they are, and dates and times as seconds since 1970; None for anything else."""
    kinds = pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")
    for kind in () if pa.types.is_boolean(column.type) else kinds:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            times = pc.cast(column, kind, safe=False)
            return times if kind == pa.float64() else pc.divide(pc.cast(pc.cast(times, pa.int64()), pa.float64()), 1e6)
    return None


def translate(table: Table, format: str | None, names: Names, ignore: Sequence[str] | str = ()) -> Table:
    """A table with one row per answer.

    Parameters
    ----------
    table : Table
        In any form. One whose `format` is set already has one row per answer.
    format : str or None
        The name of its form; None: the one that is recognised, else one row per answer.
    names : mapping
        The columns that the user named.
    ignore : str or sequence of str
        Columns that are no workers.
    """
    ignored = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignored, (list, tuple)):
        raise parameter_error("ignore", "Answers.from_frame", "the name of a column, or a list of names", ignore)
    table = replace(table, ignored=[*table.ignored, *ignored])
    if format is None and table.format:
        return table
    if format is not None and not (isinstance(format, str) and format in list_names()):
        known = ", ".join(map(repr, list_names()))
        raise parameter_error("format", "Answers.from_frame", f"one of {known}", format)
    if table.questions:
        table = import_module(".layouts", __package__).take_question(table, names)
    others = ("worker", "label", "sequence", "position", "weight")
    by_answer = names.get("order") is not None or any(
        names.get(role) is not None or table.find(role) is not None for role in others
    )
    lower = {str(name).lower() for name in table.names}
    # Beside a column of labels, those of probabilities are called p(<class>).
    may_be_soft = table.soft is not None or any(name.startswith("p(") for name in lower)
    may_be_soft = may_be_soft or (names.get("label") is None and table.find_usual("label") is None)
    for dialect in DIALECTS:
        missing = [name for name in dialect.needed if name not in table.names]
        if dialect.name == format and missing:
            raise InputError(
                f"{table.name} has no column {listing(missing)}, as {dialect.title} have. {table.list_columns()}.",
                Sentence("Leave {format} out, or choose another.", format=format),
                keyword="format",
            )
        is_like = not missing and any(str(name).startswith(dialect.prefix) for name in table.names)
        is_like = is_like and not dialect.is_folder and not (dialect.by_item and by_answer)
        is_like = is_like and not (dialect.one_of and lower.isdisjoint(dialect.one_of))
        is_like = is_like and (may_be_soft or dialect.name != "soft")
        if dialect.name == format or (format is None and is_like):
            read = getattr(import_module(f".{dialect.home}", __package__), f"read_{dialect.name.replace('-', '_')}")
            translated: Table | None = read(table, names, format is not None)
            if translated is not None:
                return replace(translated, format=dialect.name)
    return table
