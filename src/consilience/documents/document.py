"""`Document`: what is said of a result, in parts that terminal, HTML, JSON and notebook render in their own way.

A document is made once, from a `Result`, a ranking, or several questions; renderers read it and compute nothing. Values
stay what they are (numbers, ids, labels) until `spell` makes text of them, so that all renderers write a share, a count
or an interval in the same way, and JSON has the bare number. A renderer leaves out the parts that it cannot show.

Text from the data is hostile until a renderer has escaped it: no part holds markup.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from ..answers.columns import spell_surrogates
from ..answers.previews import spell_estimate
from ..results.findings import Finding
from .charts import Chart

Format = Literal[
    "text",
    "count",
    "number",
    "figure",
    "signed",
    "share",
    "percent",
    "confidence",
    "interval",
    "estimate",
    "change",
    "spelled",
]
Level = Literal["good", "care", "bad"]

# The most characters of a label or an id that are shown.
LONGEST_NAME = 60
# Characters that XML does not allow, nor charts: vl-convert aborts the process at one. And marks of direction,
# which would turn round what stands beside a name.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


@dataclass(frozen=True)
class Fact:
    """A named value, such as the number of items.

    Attributes
    ----------
    key : str
        The key in JSON.
    name : str
        What people read; empty where only JSON shows the fact.
    value : object
        What JSON shows: a number, text, None, or a list or dict of these.
    text : str
        What people read after the name. Default: the value, spelled by `format`.
    format : str
        How the value is spelled, see `spell`.
    detail : str
        What the value means or assumes, in a few words.
    """

    key: str
    name: str
    value: Any
    text: str = ""
    format: Format = "text"
    detail: str = ""

    @property
    def shown(self) -> str:
        """The value in words."""
        return self.text or spell(self.value, self.format)


@dataclass(frozen=True)
class Facts:
    """Facts of equal rank. "figures" are few, and large: what a reader looks for first; "terms" explain words."""

    facts: Sequence[Fact]
    kind: Literal["facts", "figures", "terms"] = "facts"


@dataclass(frozen=True)
class Text:
    """Sentences of one paragraph, each with its full stop."""

    sentences: Sequence[str]
    quiet: bool = False  # whether it is only a note
    link: str = ""  # the id of a section where there is more


@dataclass(frozen=True)
class Column:
    """A column of a table: its key in JSON, its head, how its values are spelled, and what it means."""

    key: str
    name: str
    format: Format = "text"
    help: str = ""

    @property
    def is_number(self) -> bool:
        """Whether entries are aligned to the right."""
        return self.format != "text"


@dataclass(frozen=True)
class Table:
    """Values in rows, whose first entry names the row.

    Attributes
    ----------
    key : str
        The key in JSON.
    title : str
        The caption.
    columns : sequence of Column
        Names, and formats.
    rows : sequence of sequence
        As many values as there are columns; None or NaN is what is not known.
    n_more : int
        How many rows there are that the table does not have.
    data : sequence of mapping
        The rows as JSON shows them, where these have more than people see.
    last : bool
        Whether the last rows are shown where there is no room for all.
    links : sequence of str
        For each row, the id of a section about it; none if there are no such sections.
    """

    key: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    n_more: int = 0
    data: Sequence[Mapping[str, Any]] = ()
    last: bool = False
    links: Sequence[str] = ()

    @classmethod
    def of(
        cls, key: str, title: str, columns: Sequence[Column], data: Sequence[Mapping[str, Any]], last: bool = False
    ) -> Table:
        """A table of records, of which people see some columns. An estimate is the column with its interval.

        >>> columns = Column("name", "name"), Column("x", "x", "estimate")
        >>> Table.of("points", "", columns, [{"name": "a", "x": 0.5, "x_low": 0.0, "x_high": 1.0}]).spelled()
        [['a', '0.50 (0.00-1.00)']]
        """

        def pick(row: Mapping[str, Any], column: Column) -> Any:
            value = row[column.key]
            if column.format != "estimate" or value is None:
                return value
            return value, row.get(f"{column.key}_low"), row.get(f"{column.key}_high")

        return cls(key, title, columns, [[pick(row, each) for each in columns] for row in data], 0, data, last)

    def spelled(self) -> list[list[str]]:
        """The entries in words."""
        return [[spell(value, each.format) for value, each in zip(row, self.columns, strict=True)] for row in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON shows them."""
        if self.data:
            return list(map(dict, self.data))
        return [dict(zip([each.key for each in self.columns], row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Findings:
    """What checks found, the most serious first.

    A `consilience.results.findings.Finding` names parameters without spelling them: each renderer calls its `spelled`
    with `errors.spell_in_python`, with the options of a command, or with both.
    """

    findings: Sequence[Finding]


@dataclass(frozen=True)
class Content:
    """What an item looks like: a text, or the name of a picture; a picture as a data URL; an address in the web."""

    text: str = ""
    picture: str = ""
    address: str = ""


@dataclass(frozen=True)
class Item:
    """An item with its answers and probabilities, as a person looks at it.

    Attributes
    ----------
    key : mapping
        What identifies it: item, or sequence and position.
    name : str
        What it is called.
    label : str
        The fused label.
    confidence : float or None
        The probability of the label; None if nothing checks the answers.
    address : str
        Where the id leads to, if it is an address in the web.
    probable : sequence of (str, float)
        The most probable classes, and the label; none where `confidence` is None.
    said : sequence of (str, int, sequence of str)
        The labels that were given, with the number of workers and the names of some of them.
    content : Content or None
        What it looks like.
    around : sequence of (str, bool)
        The words around it, and whether each is the item itself.
    vote : str
        The classes with most votes.
    drawn : bool
        Whether it was drawn at random.
    why : sequence of (str, str, str, str)
        What the label comes from, line by line: who, what, how much, and in a word.
    """

    key: Mapping[str, Any]
    name: str
    label: str
    confidence: float | None
    address: str = ""
    probable: Sequence[tuple[str, float]] = ()
    said: Sequence[tuple[str, int, Sequence[str]]] = ()
    content: Content | None = None
    around: Sequence[tuple[str, bool]] = ()
    vote: str = ""
    drawn: bool = False
    why: Sequence[tuple[str, str, str, str]] = ()


@dataclass(frozen=True)
class Items:
    """Items to look at, the most urgent first; `rival` names what votes are shown of, where they are."""

    items: Sequence[Item]
    rival: str = ""


@dataclass(frozen=True)
class Columns:
    """Columns of parts, side by side where there is room."""

    columns: Sequence[Sequence[Part]]

    @property
    def parts(self) -> list[Part]:
        """The parts, column after column."""
        return [part for column in self.columns for part in column]


@dataclass(frozen=True)
class Fold:
    """Parts that only those need who ask for them: HTML folds them up."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Widget:
    """What only the page shows, such as the review of items: a macro of its templates, with values and data.

    Attributes
    ----------
    macro : str
        Its name in ``templates/widgets.html.jinja``.
    values : mapping
        What the macro shows. All text is escaped.
    data : mapping
        What the script of the page works on.
    """

    macro: str
    values: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """Parts under a heading.

    Attributes
    ----------
    id : str
        What links and the `place` of a finding name.
    title, menu : str
        The heading, and its short form.
    parts : sequence
        What it shows.
    link : str
        What a link from a finding to this section says.
    """

    id: str
    title: str
    menu: str
    parts: Sequence[Part]
    link: str = ""


@dataclass(frozen=True)
class Documents:
    """A document on each of several things, such as questions, by name; `key` is that of all of them in JSON."""

    key: str
    documents: Mapping[str, Document]


Part: TypeAlias = Facts | Text | Table | Chart | Findings | Items | Columns | Fold | Widget | Section | Documents
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Document:
    """What is said of a result.

    Attributes
    ----------
    title : str
        What it is about, usually the name of a file.
    headline : str
        Whether to trust the labels, in one sentence.
    parts : sequence
        Text, facts and figures first, then findings, and sections.
    badge : str
        How labels compare with majority vote, in a few words; empty where there is nothing to compare.
    level : {"good", "care", "bad"}
        How the badge is shown.
    """

    title: str
    headline: str
    parts: Sequence[Part]
    badge: str = ""
    level: Level = "care"

    def find(self, kind: type[Kind]) -> list[Kind]:
        """The parts of one kind, in order: those outside of sections, then those within others.

        >>> document = Document("", "", [Section("a", "A", "A", [Text(["Inside."])]), Text(["Outside."])])
        >>> [text.sentences for text in document.find(Text)]
        [['Outside.'], ['Inside.']]
        """
        found, parts = list[Kind](), list(self.parts)
        for part in parts:  # which grows
            found += [part] if isinstance(part, kind) else []
            parts += part.parts if isinstance(part, Section | Fold | Columns) else []
        return found


def spell(value: Any, format: Format = "text") -> str:
    r"""A value in words. This is the only place where numbers of documents are formatted.

    Parameters
    ----------
    value : object
        What is shown; None and NaN are "".
    format : str
        "count": a whole number; "number": two decimals; "signed": the same with a sign; "figure": three decimals;
        "share": a whole percentage; "percent": one with a decimal; "confidence": a whole percentage that is not rounded
        to certainty; "interval": a pair of shares; "estimate": a number with its interval; "change": a difference of
        shares with its interval; "text": as it is, without lone surrogates; "spelled": the same of a number that was
        spelled already.

    Examples
    --------
    >>> spell(1200, "count"), spell(0.8125, "number"), spell(0.5, "signed"), spell(None, "share")
    ('1,200', '0.81', '+0.50', '')
    >>> spell(0.123, "share"), spell(0.1234, "percent"), spell(0.998, "confidence"), spell((0.5, 0.75), "interval")
    ('12%', '12.3%', '>99%', '50% to 75%')
    >>> spell("a\ud800")
    'a\\ud800'
    """
    if isinstance(value, bool):
        return "yes" if value else ""
    if format in ("text", "spelled"):
        return "" if value is None else spell_surrogates(str(value))
    if format == "interval":
        ends = [] if value is None else [spell(end, "share") for end in value]
        return " to ".join(ends) if all(ends) else ""
    if format == "estimate":
        return "" if value is None else spell_estimate(value)
    if format == "change":
        ends = [] if value is None or math.isnan(value[0]) else [f"{each:+.0%}" for each in value]
        return f"{ends[0]} ({ends[1]} to {ends[2]})" if ends else ""
    if value is None or math.isnan(value):
        return ""
    if format == "count" and value != round(value):
        return f"{value:,.1f}"
    if format == "figure" and 0 < abs(value) < 0.001:
        return f"{value:.2g}"
    if format == "confidence":
        return ">99%" if 0.995 <= value < 1 else f"{value:.0%}"
    return f"{value:{_SPECS[format]}}"


_SPECS = {"count": ",.0f", "number": "z.2f", "figure": ".3f", "signed": "+z.2f", "share": "z.0%", "percent": "z.1%"}


def to_name(value: object, width: int = LONGEST_NAME) -> str:
    r"""A value as a short text in one line, without characters that act; one that is empty is named so.

    >>> to_name("a" * 100, 10), to_name("  "), to_name("a\x01b")
    ('aaaaaaaaa…', '(empty)', 'a�b')
    """
    text = " ".join(spell_surrogates(str(value)).split()) or "(empty)"
    text = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= width else text[: width - 1] + "…"
