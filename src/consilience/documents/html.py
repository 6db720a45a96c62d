"""Documents as HTML: a page with everything in it, filled by jinja2, which no other file imports, and in notebooks.

Whatever comes from the data is escaped by jinja2, or is JSON whose signs ``<``, ``>`` and ``&`` jinja2 escapes. The
page may load nothing, and runs and styles nothing but what is in it: its content security policy has the hashes of the
one script and the one style sheet.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from ..answers.previews import MOST_ROWS_SHOWN, count_rest, frame_html, html_estimate, html_table, paragraph, to_word
from ..errors import InputError, spell_in_python
from ..formats.writing import cannot_be_replaced, replace_file
from ..options import spell_in_shell
from ..results.findings import Finding
from .charts import import_converter, not_installed
from .document import Document, Facts, Section, Table, Text, Widget, spell, to_name

TEMPLATES = Path(__file__).parent / "templates"
# Characters that control a terminal or an editor in which the page is looked at; a tab and ends of lines do not.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONGEST_TITLE = 200
# In notebooks, so many findings are shown.
MOST_FINDINGS = 3


def check_page(path: str | None) -> None:
    """Raise the error that a page would meet, by what is installed and by the name of the file.

    A device may have any name.
    """
    if path is None:
        return
    load_templates()
    import_converter()
    if not path.lower().endswith((".html", ".htm")) and not cannot_be_replaced(path):
        problem = f"The report is an HTML page, and {path!r} does not end in .html."
        raise InputError(problem, "Give a name such as report.html.")


def write_page(document: Document, path: str) -> Path:
    """Write the page beside the file, and put it there when it is whole."""
    page = to_page(document)
    with replace_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def to_page(document: Document) -> str:
    """A document as a page.

    All pages have the same policy: it also holds for the documents within a page.
    """
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    policy = (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = dict[str, object]()
    for widget in document.find(Widget):
        data |= widget.data
    page: str = (
        load_templates()
        .get_template("page.html.jinja")
        .render(
            document=replace(document, title=to_name(document.title, LONGEST_TITLE)),
            head=[part for part in document.parts if not isinstance(part, Section)],
            sections={part.id: part for part in document.parts if isinstance(part, Section)},
            data=data,
            policy=policy,
            style=style,
            script=script,
        )
    )
    return page


@cache
def load_templates() -> Any:
    """The templates of the page, or the error that jinja2 is not installed."""
    try:
        import jinja2
    except ImportError as error:
        raise not_installed("jinja2") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Plain text is shown without control characters; markup is our own.
        finalize=lambda value: CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value) if type(value) is str else value,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    kind = {"kind": lambda part: type(part).__name__}
    environment.filters |= kind | {"spell": spell, "sort_key": to_sort_key, "notes": spell_notes}
    environment.globals["render"] = to_page
    return environment


def to_sort_key(value: Any) -> str:
    """What the script sorts entries of a table by: intervals by their lower end, and nothing for what is not known.

    >>> to_sort_key((0.25, 0.5)), to_sort_key("a"), to_sort_key(None)
    ('0.2500', 'a', '')
    """
    value = value[0] if isinstance(value, tuple) else value
    if value is None or value != value:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def spell_notes(findings: Sequence[Finding]) -> list[Finding]:
    """Findings in plain text, each remedy and each place once: that of the first finding that has it.

    Parameters are spelled as Python and the command line do: the page is read by users of both.
    """

    def spell_twice(name: str, value: object) -> str:
        shell, code = spell_in_shell(name, value), spell_in_python(name, value)
        return f"{code} in Python" if shell is None else f"{code} ({shell} on the command line)"

    notes, said = list[Finding](), set[str]()
    for finding in findings:
        note = finding.spelled(spell_twice)
        remedies = tuple(words for words in map(str, note.remedies) if words not in said)
        notes.append(replace(note, remedies=remedies, place="" if note.place in said else note.place))
        said |= {*remedies, note.place}
    return notes


# ------------------------------------------------------------------------------------------------------------ notebooks


def to_cells(document: Document) -> str:
    """A document in a notebook: small tables in the colours of the page, without scripts; see `answers.previews`."""

    def show_value(value: object, form: str) -> str:
        if form == "estimate" and isinstance(value, tuple):
            return html_estimate(value)
        return escape(to_word(value) if form == "text" else spell(value, form))

    shown = [paragraph(each) for each in (document.title, document.headline) if each]
    for part in document.parts:
        if isinstance(part, Facts):
            facts = [each for each in part.facts if each.name and (each.value is not None or each.text)]
            rows = [(escape(each.name), escape(each.shown)) for each in facts]
            shown.append(html_table((), rows, (False, False)))
        elif isinstance(part, Text):
            shown.append(paragraph(" ".join(part.sentences)))
        elif isinstance(part, list):
            shown += [paragraph(str(each.problem)) for each in part[:MOST_FINDINGS]]
        elif isinstance(part, Table):
            shown += [paragraph(part.title)] if part.title else []
            heads, numbers = [each.name for each in part.columns], [each.is_number for each in part.columns]
            cells = [
                [show_value(value, each.format) for value, each in zip(row, part.columns, strict=True)]
                for row in part.cells()[:MOST_ROWS_SHOWN]
            ]
            shown.append(html_table(heads, cells, numbers))
            shown += map(paragraph, count_rest(len(part.rows) + part.n_more, len(cells)))
        elif isinstance(part, Section):
            shown.append(to_cells(Document(part.title, "", part.parts)))
    return frame_html(*shown)
