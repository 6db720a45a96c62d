"""Documents as HTML: one page with everything in it, filled by jinja2, which no other file imports.

Whatever comes from the data is escaped by jinja2, or is JSON whose signs ``<``, ``>`` and ``&`` are escaped. The page
may load nothing, and runs and styles nothing but what is in it: its content security policy has the hashes of the one
script and the one style sheet.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import Python, spell_in_python
from ..formats.writing import replace_file
from ..results.findings import Finding
from .charts import import_converter, not_installed
from .document import Document, Section, Widget, spell, to_name

TEMPLATES = Path(__file__).parent / "templates"
# Characters that control a terminal or an editor in which the page is looked at; a tab and ends of lines do not.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONGEST_TITLE = 200


def check_installed() -> None:
    """Raise the error that a page would meet if what it needs is not installed."""
    import_templates()
    import_converter()


def write_page(document: Document, path: str) -> Path:
    """Write the page beside the file, and put it there when it is whole."""
    page = render(document)
    with replace_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def render(document: Document) -> str:
    """A document as a page.

    All pages have the same policy: it also holds for the documents within a page.
    """
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = dict[str, object]()
    for widget in document.find(Widget):
        data |= widget.data
    sections = {part.id: part for part in document.parts if isinstance(part, Section)}
    filled = load_templates().get_template("page.html.jinja")
    page: str = filled.render(
        document=replace(document, title=to_name(document.title, LONGEST_TITLE)),
        head=[part for part in document.parts if not isinstance(part, Section)],
        sections=sections,
        data=to_json(data),
        policy=policy,
        style=style,
        script=script,
    )
    return page


def import_templates() -> ModuleType:
    """jinja2, or the error that it is not installed."""
    try:
        import jinja2
    except ImportError as error:
        raise not_installed("jinja2") from error
    return jinja2


@cache
def load_templates() -> Any:
    """The templates, which are compiled once however many pages there are."""
    jinja2 = import_templates()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=hide_controls,
    )
    environment.filters.update(
        kind=lambda part: type(part).__name__, spell=spell, sort_key=to_sort_key, notes=spell_notes
    )
    environment.globals["render"] = render
    return environment


def hide_controls(value: object) -> object:
    """What a template shows: plain text without control characters; markup is our own."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value) if type(value) is str else value


def digest(text: str) -> str:
    """What a content security policy calls a text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(data: object) -> str:
    r"""Data as JSON that can stand in a script element.

    >>> to_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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
    """Findings in plain text, each remedy and each place once: that of the first finding that has it."""
    notes, said = list[Finding](), set[str]()
    for finding in findings:
        note = finding.spelled(spell_parameter)
        remedies = tuple(words for words in map(str, note.remedies) if words not in said)
        notes.append(replace(note, remedies=remedies, place="" if note.place in said else note.place))
        said |= {*remedies, note.place}
    return notes


def spell_parameter(name: str, value: object) -> str:
    """A parameter as Python and the command line spell it: the page is read by users of both.

    >>> print(spell_parameter("gold", None))
    gold= (--gold on the command line)
    >>> print(spell_parameter("abstain", "answer"))
    abstain='answer' (--abstain answer on the command line)
    """
    given = value.value if isinstance(value, Python) else value
    option = f"--{name.replace('_', '-')}"
    shell = option if given is None else f"{option} {shlex.quote(str(given))}"
    return f"{spell_in_python(name, value)} ({shell} on the command line)"
