"""Documents in notebooks: small tables of HTML in the colours of the page, without scripts; see `answers.previews`."""

from __future__ import annotations

from html import escape

from ..answers.previews import MOST_ROWS, count_rest, frame_html, html_estimate, html_table, paragraph, to_word
from .document import Document, Facts, Findings, Section, Table, Text, spell

# So many findings are shown.
MOST_FINDINGS = 3


def to_cells(document: Document) -> str:
    """A document as HTML."""

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
        elif isinstance(part, Findings):
            shown += [paragraph(str(each.problem)) for each in part.findings[:MOST_FINDINGS]]
        elif isinstance(part, Table):
            shown += [paragraph(part.title)] if part.title else []
            heads, numbers = [each.name for each in part.columns], [each.is_number for each in part.columns]
            cells = [
                [show_value(value, each.format) for value, each in zip(row, part.columns, strict=True)]
                for row in part.cells()[:MOST_ROWS]
            ]
            shown.append(html_table(heads, cells, numbers))
            shown += map(paragraph, count_rest(len(part.rows) + part.n_more, len(cells)))
        elif isinstance(part, Section):
            shown.append(to_cells(Document(part.title, "", part.parts)))
    return frame_html(*shown)
