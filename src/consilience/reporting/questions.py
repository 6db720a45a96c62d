"""The report on several questions: one page, with what is said of all workers, and the report on each question."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..answers.columns import Column, to_values
from ..models.questions import Questions, report_workers

# So many workers are listed, those first who most probably answer without looking.
N_WORKERS = 50
_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; line-height: 1.5 }
table { border-collapse: collapse } th, td { text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #8884 }
iframe { width: 100%; height: 80vh; border: 1px solid #8888 } .wide { overflow-x: auto }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } a { color: #8bf } }
"""


def join_pages(questions: Questions, pages: Mapping[str, str], title: str) -> str:
    """Return one page. The report on each question is a document of its own within it: none changes another."""
    sections, contents = [], []
    for number, (name, page) in enumerate(pages.items()):
        contents.append(f'<li><a href="#question-{number}">{escape(name)}</a></li>')
        sections.append(
            f'<section id="question-{number}"><h2>{escape(name)}</h2>'
            f'<iframe title="{escape(name)}" srcdoc="{escape(page)}"></iframe></section>'
        )
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>{view}'
    body = (
        f"<h1>{escape(title)}</h1><p>{escape(questions.explain_sharing())}</p><nav><ul>{''.join(contents)}</ul></nav>"
        f"<section><h2>Workers over all questions</h2>{tabulate_workers(questions)}</section>{''.join(sections)}"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main>{body}</main></body></html>'


def tabulate_workers(questions: Questions) -> str:
    """Return the table of workers, those first who most probably answer without looking."""
    columns = report_workers(questions)
    rows = list(zip(*(list_cells(column) for column in columns.values()), strict=True))
    chance = list(columns).index("chance")
    rows.sort(key=lambda row: -row[chance] if isinstance(row[chance], float) else 0.0)
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    shown = "".join(f"<tr>{''.join(f'<td>{show(cell)}</td>' for cell in row)}</tr>" for row in rows[:N_WORKERS])
    more = f"<p>The first {N_WORKERS} of {len(rows):,}.</p>" if len(rows) > N_WORKERS else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{shown}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>{more}'


def list_cells(column: Column) -> list[object]:
    """Return the entries of a column."""
    return list(to_values(column).tolist())


def show(cell: object) -> str:
    """Return the text of a cell."""
    if cell is None or cell != cell:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else escape(str(cell))
