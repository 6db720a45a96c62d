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

from ..answers.columns import Values, distinct_names, spell_surrogates
from ..answers.previews import spell_estimate
from ..results.findings import Finding
from .charts import Chart

# The most characters of a label or an id that are shown.
LONGEST_NAME = 60
# Characters that XML does not allow, nor charts: vl-convert aborts the process at one. And marks of direction,
# which would turn round what stands beside a name.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


@dataclass(frozen=True)
class Fact:
    """A named value, such as the number of items."""

    key: str  # in JSON
    name: str  # what people read; empty where only JSON shows the fact
    value: Any  # what JSON shows: a number, text, None, or a list or dict of these
    text: str = ""  # what people read after the name, if not the value as `format` spells it
    format: str = "text"  # see `spell`
    detail: str = ""  # what the value means or assumes, in a few words

    @property
    def shown(self) -> str:
        """The value in words."""
        return self.text or spell(self.value, self.format)


@dataclass(frozen=True)
class Facts:
    """Facts of equal rank. "figures" are few, and large: what a reader looks for first."""

    facts: Sequence[Fact]
    kind: Literal["facts", "figures"] = "facts"


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
    format: str = "text"
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
    rows : sequence of sequence or mapping
        A value for each column: in their order, or by their keys, where an "estimate" x has its ends in x_low and
        x_high. None or NaN is what is not known.
    n_more : int
        How many rows there are that the table does not have.
    data : sequence of mapping
        The rows as JSON shows them, where these are not those that people see.
    last : bool
        Whether the last rows are shown where there is no room for all.
    links : sequence of str
        For each row, the id of a section about it; none if there are no such sections.
    """

    key: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    n_more: int = 0
    data: Sequence[Mapping[str, Any]] = ()
    last: bool = False
    links: Sequence[str] = ()

    def cells(self) -> list[list[Any]]:
        """The values of each row in the order of the columns.

        >>> columns = Column("name", "name"), Column("x", "x", "estimate")
        >>> Table("points", "", columns, [{"name": "a", "x": 0.5, "x_low": 0.0, "x_high": 1.0}]).cells()
        [['a', (0.5, 0.0, 1.0)]]
        """

        def read(row: Mapping[str, Any], column: Column) -> Any:
            value, key = row[column.key], column.key
            return (
                (value, row.get(f"{key}_low"), row.get(f"{key}_high"))
                if column.format == "estimate" and value is not None
                else value
            )

        return [
            [read(row, each) for each in self.columns] if isinstance(row, Mapping) else list(row) for row in self.rows
        ]

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON shows them."""
        keys, rows = [each.key for each in self.columns], self.data or self.rows
        return [dict(row) if isinstance(row, Mapping) else dict(zip(keys, row, strict=True)) for row in rows]


@dataclass(frozen=True)
class Widget:
    """What only the page shows, such as the review of items: a macro of its templates, with values and data."""

    macro: str  # its name in ``templates/page.html.jinja``
    values: Mapping[str, Any]  # what the macro shows; all text is escaped
    data: Mapping[str, Any] = field(default_factory=dict)  # what the script of the page works on


@dataclass(frozen=True)
class Section:
    """Parts under a heading. The page folds up one within another part: only those need it who ask for it."""

    title: str
    parts: Sequence[Part]
    id: str = ""  # what links and the `place` of a finding name
    menu: str = ""  # the heading in short
    link: str = ""  # what a link from a finding to this section says


@dataclass(frozen=True)
class Document:
    """What is said of a result. As a part of another document it is about one of several questions.

    Attributes
    ----------
    title : str
        What it is about, usually the name of a file, or a question.
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
    level: Literal["good", "care", "bad"] = "care"

    def find(self, kind: type[Wanted]) -> list[Wanted]:
        """The parts of one kind, in order: those outside of sections, then those within others.

        >>> document = Document("", "", [Section("A", [Text(["Inside."])]), Text(["Outside."])])
        >>> [text.sentences for text in document.find(Text)]
        [['Outside.'], ['Inside.']]
        """
        matches, parts = list[Wanted](), list(self.parts)
        for part in parts:  # which grows
            matches += [part] if isinstance(part, kind) else []
            if isinstance(part, tuple):
                parts += [each for column in part for each in column]
            elif isinstance(part, Section):
                parts += part.parts
        return matches


# A tuple holds columns of parts, side by side where there is room. A list holds findings, the most serious first, which
# name parameters without spelling them: each renderer calls their `spelled` with `errors.spell_in_python`, with the
# options of a command, or with both.
Part: TypeAlias = (
    "Facts | Text | Table | Chart | list[Finding] | Widget | Section | Document | tuple[Sequence[Part], ...]"
)
Wanted = TypeVar("Wanted")


def spell(value: Any, form: str = "text") -> str:
    r"""A value in words. This is the only place where numbers of documents are formatted.

    Parameters
    ----------
    value : object
        What is shown; None and NaN are "".
    form : str
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
    if value is None:
        return ""
    if isinstance(value, bool):  # a label, in the one spelling that messages and names of columns have
        return str(value)
    if form in ("text", "spelled"):
        return spell_surrogates(str(value))
    if form == "interval":
        ends = [spell(end, "share") for end in value]
        return " to ".join(ends) if all(ends) else ""
    if form == "estimate":
        return spell_estimate(value)
    if form == "change":
        return "" if math.isnan(value[0]) else "{:+.0%} ({:+.0%} to {:+.0%})".format(*value)
    if math.isnan(value):
        return ""
    specs = {"count": ",.0f", "number": "z.2f", "figure": ".3f", "signed": "+z.2f", "share": "z.0%", "percent": "z.1%"}
    specs["confidence"] = ".0%"
    if form == "confidence" and 0.995 <= value < 1:
        return ">99%"
    if form == "count" and value != round(value):
        return f"{value:,.1f}"
    return f"{value:.2g}" if form == "figure" and 0 < abs(value) < 0.001 else f"{value:{specs[form]}}"


def to_name(value: object, width: int = LONGEST_NAME) -> str:
    r"""A value as a short text in one line, without characters that act; one that is empty is named so.

    >>> to_name("a" * 100, 10), to_name("  "), to_name("a\x01b")
    ('aaaaaaaaa…', '(empty)', 'a�b')
    """
    text = " ".join(spell_surrogates(str(value)).split()) or "(empty)"
    text = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= width else text[: width - 1] + "…"


def name_all(values: Values | Sequence[object], width: int = LONGEST_NAME) -> list[str]:
    """Distinct names of values: two long labels may have the same beginning.

    >>> name_all(["1", 1])
    ['1', '1 (2)']
    """
    listed = values if isinstance(values, Sequence) else values.tolist()
    return distinct_names([to_name(value, width) for value in listed])
