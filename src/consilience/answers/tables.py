"""Tables: named columns, found by the role they play, and errors that say where a value is."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from ..arguments import is_among
from ..errors import InputError, Sentence, listing, plural, shorten
from .columns import Column, Indices, find_missing
from .composite import join_columns, join_texts, name_parts

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
        joined = self.add({name: join_columns([self.read(part) for part in parts])})
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
