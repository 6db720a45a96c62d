"""Documents as text, for terminals and pipes, and as the records that `--json` prints.

Whatever comes from data is inert: the only control characters in the text are those that make headings bold, which
whoever prints it leaves out where it does not go to a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..answers.previews import MOST_ROWS_SHOWN, NARROWEST, fit_text, text_table, wrap
from ..errors import count_shown, make_inert, spell_in_python
from ..results.findings import Finding
from .document import Document, Facts, Part, Section, Table, Text, spell

# A last column of text that has so much room is wrapped.
LEAST_ROOM = 12
# What JSON shows of a finding, which may be one of a question. Those that were "warned" of are not said again.
Describe: TypeAlias = Callable[[Finding, str], dict[str, Any]]


def describe_in_python(finding: Finding, question: str = "") -> dict[str, Any]:  # noqa: ARG001
    """What JSON shows of a finding, with parameters as Python spells them."""
    return finding.to_record(spell_in_python) | {"warned": False}


def to_record(parts: Sequence[Part], describe: Describe = describe_in_python, question: str = "") -> dict[str, Any]:
    """The values of parts by their keys: facts, rows of tables, and findings. Parts without a key are left out.

    >>> from .document import Fact
    >>> to_record([Facts([Fact("items", "Items", 3), Fact("", "File", "a.csv")])])
    {'items': 3}
    """
    record: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Facts):
            record |= {each.key: each.value for each in part.facts if each.key}
        elif isinstance(part, Table) and part.key:
            record[part.key] = part.records()
        elif isinstance(part, list):
            record["findings"] = [describe(each, question) for each in part]
        elif isinstance(part, Document):
            record.setdefault("questions", {})[part.title] = to_record(part.parts, describe, part.title)
        elif isinstance(part, Section):
            record |= to_record(part.parts, describe, question)
    return record


def to_lines(document: Document, width: int = 80, describe: Describe = describe_in_python) -> str:
    """A document as lines of text, of at most `width` columns where its figures and commands are not longer.

    >>> from .document import Fact
    >>> facts = Facts([Fact("items", "Items", 1200, format="count"), Fact("seed", "", 0)])
    >>> print(to_lines(Document("", "", [facts, Text(["Nothing is known."])])))
      Items  1,200
    <BLANKLINE>
    Nothing is known.
    """
    lines = [bold(document.title)] if document.title else []
    lines += wrap(document.headline, width)
    n_head = len(lines)
    # What needs attention stands in one place; a problem that several questions have is said once.
    questions = {part.title: part for part in document.parts if isinstance(part, Document)}
    for part in document.parts:
        is_note = isinstance(part, Text) and part.quiet
        if isinstance(part, list):
            block = list_problems({"": document}, width, describe)
        elif isinstance(part, Document):
            block = list_problems(questions, width, describe)
            questions = {}
        else:
            block = list_lines(part, width)
        if block and len(lines) > n_head and not is_note:
            lines.append("")
        lines += [f"  {line}" for line in block] if is_note else block
    return "\n".join(lines)


def bold(text: str) -> str:
    """A heading."""
    return f"\x1b[1m{make_inert(text)}\x1b[0m"


def list_problems(documents: Mapping[str, Document], width: int, describe: Describe) -> list[str]:
    """The findings of documents by the question that each is about; of the only one by nothing."""
    problems: dict[str, list[str]] = {}
    for question, document in documents.items():
        for finding in (each for findings in document.find(list) for each in findings):
            record = describe(finding, question)
            if not record["warned"]:
                problems.setdefault(record["problem"], []).extend([fit_text(question, NARROWEST)] if question else [])
    findings = [f"{', '.join(names)}: {problem}" if names else problem for problem, names in problems.items()]
    said = [f"{'    ' if n else '  - '}{line}" for each in findings for n, line in enumerate(wrap(each, width - 4))]
    return [bold("What needs attention"), *said] if said else []


def list_lines(part: Part, width: int) -> list[str]:
    """The lines of a part; none for parts that only other renderers show."""
    if isinstance(part, Text):
        return wrap(" ".join(part.sentences), width - 2 * part.quiet)
    if isinstance(part, Table):
        return list_rows(part, width)
    lines = list[str]()
    if isinstance(part, Section):
        lines.append(bold(part.title))
        for each in part.parts:
            indent = "  " if isinstance(each, Text) else ""
            lines += [f"{indent}{line}" for line in list_lines(each, width - 2)]
    elif isinstance(part, Facts):  # names and texts in two columns; a sentence that is too long goes on below
        facts = [each for each in part.facts if each.name and (each.value is not None or each.text)]
        name_width = max((len(each.name) for each in facts), default=0)
        room = max(20, width - name_width - 4)
        for fact in facts:
            text = make_inert(f"{fact.shown}  {fact.detail}" if fact.detail else fact.shown)
            # A command, or the path of a file, is to be copied as it is.
            first, *rest = wrap(text, room) if len(text) > room and (fact.key or text.endswith(".")) else [text]
            lines += [f"  {fact.name:{name_width}}  {first}".rstrip()]
            lines += [f"  {'':{name_width}}  {line}" for line in rest]
    return lines


def list_rows(table: Table, width: int) -> list[str]:
    """A table under its title. There is a row of dots for rows that are not shown, and for those without any value."""
    if not table.rows:
        return []
    n_shown = count_shown(len(table.rows), MOST_ROWS_SHOWN)
    n_hidden = len(table.rows) - n_shown
    rows = table.cells()[n_hidden:] if table.last else table.cells()[:n_shown]
    numbers, heads = [each.is_number for each in table.columns], [each.name for each in table.columns]
    for with_interval in (True, False):
        texts: list[list[str] | None] = []
        for row in rows:
            words = []
            for value, each in zip(row, table.columns, strict=True):
                is_short = each.format == "estimate" and value is not None and not with_interval
                words.append(make_inert(spell(value[0], "figure") if is_short else spell(value, each.format)))
            texts.append(None if all(value is None for value in row) else words)
        longest = [max(map(len, column)) for column in zip(heads, *filter(None, texts), strict=True)]
        if sum(min(each, NARROWEST) + 2 for each in longest) <= width:
            break
    # The last column, such as that of remarks, goes on below; others are cut.
    others = sum((each if number else min(each, NARROWEST)) + 2 for each, number in zip(longest, numbers, strict=True))
    room = width - 2 - (others - min(longest[-1], NARROWEST) - 2)
    if not numbers[-1] and longest[-1] > room >= LEAST_ROOM:
        wrapped: list[list[str] | None] = []
        for words_of_row in texts:
            if words_of_row is None:
                wrapped.append(None)
                continue
            first, *rest = wrap(words_of_row[-1], room) or [""]
            wrapped.append([*words_of_row[:-1], first])
            wrapped += [[*[""] * (len(heads) - 1), line] for line in rest]
        n_shown += len(wrapped) - len(texts)
        texts = wrapped
    if n_hidden or table.n_more:
        texts.insert(0 if table.last else n_shown, None)
    lines = [f"  {line}" for line in text_table(heads, texts, numbers, width - 2)]
    more = f" ({n_hidden:,} {'before these' if table.last else 'more'} with --json)" if n_hidden else ""
    return [*([bold(f"{table.title}{more}")] if table.title else []), bold(lines[0]), *lines[1:]]
