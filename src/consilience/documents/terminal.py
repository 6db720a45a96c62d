"""Documents as text: for terminals and pipes.

Whatever comes from data is inert: the only control characters in the text are those that make headings bold, which
whoever prints it leaves out where it does not go to a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..answers.previews import MOST_ROWS, NARROWEST, fit_text, text_table, wrap
from ..errors import count_shown, make_inert, spell_in_python
from ..results.findings import Finding
from .document import Document, Documents, Fact, Facts, Findings, Part, Section, Table, Text, spell

# What JSON shows of a finding, which may be one of a question. Those that were "warned" of are not said again.
Describe: TypeAlias = Callable[[Finding, str], dict[str, Any]]


def describe_in_python(finding: Finding, question: str = "") -> dict[str, Any]:  # noqa: ARG001
    """What JSON shows of a finding, with parameters as Python spells them."""
    return finding.to_record(spell_in_python) | {"warned": False}


def render(document: Document, width: int = 80, describe: Describe = describe_in_python) -> str:
    """A document as lines of text, of at most `width` columns where its figures and commands are not longer.

    >>> facts = Facts([Fact("items", "Items", 1200, format="count"), Fact("seed", "", 0)])
    >>> print(render(Document("", "", [facts, Text(["Nothing is known."])])))
      Items  1,200
    <BLANKLINE>
    Nothing is known.
    """
    lines = [bold(document.title)] if document.title else []
    lines += wrap(document.headline, width)
    n_head = len(lines)
    for part in document.parts:
        block = list_lines(part, width, describe)
        is_note = isinstance(part, Text) and part.quiet
        if block and len(lines) > n_head and not is_note:
            lines.append("")
        lines += [f"  {line}" for line in block] if is_note else block
    return "\n".join(lines)


def bold(text: str) -> str:
    """A heading."""
    return f"\x1b[1m{make_inert(text)}\x1b[0m"


def list_lines(part: Part, width: int, describe: Describe) -> list[str]:
    """The lines of a part; none for parts that only other renderers show."""
    if isinstance(part, Facts):
        return list_facts([each for each in part.facts if each.name and (each.value is not None or each.text)], width)
    if isinstance(part, Text):
        return wrap(" ".join(part.sentences), width - 2 * part.quiet)
    if isinstance(part, Table):
        return list_rows(part, width)
    if isinstance(part, Section):
        lines = [bold(part.title)]
        for each in part.parts:
            indent = "  " if isinstance(each, Text) else ""
            lines += [f"{indent}{line}" for line in list_lines(each, width - 2, describe)]
        return lines
    if not isinstance(part, Findings | Documents):
        return []
    # A problem that several questions have is said once.
    owners = part.documents if isinstance(part, Documents) else {"": Document("", "", [part])}
    problems: dict[str, list[str]] = {}
    for name, document in owners.items():
        for finding in (each for found in document.find(Findings) for each in found.findings):
            record = describe(finding, name)
            if not record["warned"]:
                problems.setdefault(record["problem"], []).extend([fit_text(name, NARROWEST)] if name else [])
    found = [f"{', '.join(names)}: {problem}" if names else problem for problem, names in problems.items()]
    said = [f"{'    ' if n else '  - '}{line}" for each in found for n, line in enumerate(wrap(each, width - 4))]
    return [bold("What needs attention"), *said] if said else []


def list_facts(facts: Sequence[Fact], width: int) -> list[str]:
    """Names and what is to be said of them, in two columns; a sentence that is too long goes on below."""
    lines = []
    name_width = max((len(each.name) for each in facts), default=0)
    room = max(20, width - name_width - 4)
    for each in facts:
        text = make_inert(f"{each.shown}  {each.detail}" if each.detail else each.shown)
        first, *rest = wrap(text, room) if len(text) > room and text.endswith(".") else [text]
        lines += [f"  {each.name:{name_width}}  {first}", *(f"  {'':{name_width}}  {line}" for line in rest)]
    return [line.rstrip() for line in lines]


def list_rows(table: Table, width: int) -> list[str]:
    """A table under its title. There is a row of dots for rows that are not shown, and for those without any value."""
    if not table.rows:
        return []
    n_shown = count_shown(len(table.rows), MOST_ROWS)
    n_hidden = len(table.rows) - n_shown
    rows = table.rows[n_hidden:] if table.last else table.rows[:n_shown]
    numbers, heads = [each.is_number for each in table.columns], [each.name for each in table.columns]
    for with_interval in (True, False):
        texts: list[list[str] | None] = [
            None
            if all(value is None for value in row)
            else [
                make_inert(spell(value, each.format))
                if with_interval or each.format != "estimate" or value is None
                else spell(value[0], "figure")
                for value, each in zip(row, table.columns, strict=True)
            ]
            for row in rows
        ]
        longest = [max(map(len, column)) for column in zip(heads, *filter(None, texts), strict=True)]
        if sum(min(each, NARROWEST) + 2 for each in longest) <= width:
            break
    if n_hidden or table.n_more:
        texts.insert(0 if table.last else n_shown, None)
    lines = [f"  {line}" for line in text_table(heads, texts, numbers, width - 2)]
    more = f" ({n_hidden:,} {'before these' if table.last else 'more'} with --json)" if n_hidden else ""
    return [*([bold(f"{table.title}{more}")] if table.title else []), bold(lines[0]), *lines[1:]]
