"""What models and comparisons show of themselves in notebooks: a few figures, some labels, and a small picture."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from ..answers.columns import to_values
from ..checks.comparison import is_unclear
from ..errors import plural
from .previews import draw_histogram, draw_interval, html_table, paragraph, to_word

if TYPE_CHECKING:
    from ..checks.comparison import Comparison
    from ..models.base import Model

# Labels, and names of classes, that are shown.
FIRST, MOST_NAMES = 5, 8


def show_model(model: Model) -> str:
    """Return what a notebook shows of a model."""
    head = f'<p style="margin:.3em 0;color:inherit"><code>{escape(model._call())}</code></p>'
    if not model._is_fitted():
        return _frame(head, paragraph("Not fitted yet."))
    if model._totals is not None:
        ways = "write(path) writes them." if model._stored is not None else "They are not in its file."
        text = paragraph(f"Fitted to answers on disk: the labels are not in memory. {ways}")
        return _frame(head, html_table((), list_facts(model), (False, False)), text)
    confidence = model._confidence()
    alt = "Confidence: how many labels have which"
    picture = draw_histogram(confidence, alt) if len(confidence) else ""
    n_more = len(confidence) - FIRST
    rest = [paragraph(f"... {plural(n_more, 'more label')}; to_frame() has them all.")] if n_more > 0 else []
    return _frame(head, html_table((), list_facts(model), (False, False)), picture, show_labels(model), *rest)


def list_facts(model: Model) -> list[tuple[str, str]]:
    """Return the figures of a fitted model, as HTML."""
    names = [to_word(name) for name in model.classes_[:MOST_NAMES].tolist()]
    more = f" and {len(model.classes_) - MOST_NAMES:,} more" if len(model.classes_) > MOST_NAMES else ""
    if model._totals is None:
        confidence = model._confidence()
        n_items, mean = len(confidence), float(confidence.mean()) if len(confidence) else math.nan
    else:
        n_items, mean = model._totals
    facts = [
        ("Items", f"{n_items:,}"),
        ("Workers", f"{len(model.workers_):,}, with {plural(int(model._n_answers.sum()), 'answer')}"),
        ("Classes", f"{len(model.classes_)}: {', '.join(names)}{more}"),
    ]
    if n_items:
        facts.append(("Mean confidence", f"{mean:.3f}"))
    if not model.converged_:
        facts.append(("Iterations", f"{model.n_iter_:,}, not converged"))
    compared = getattr(model, "comparison_", None)
    if compared is not None:
        facts += [("Accuracy", compared.describe_accuracy()), ("Verdict", compared.describe_test())]
    return [(name, escape(value)) for name, value in facts]


def show_labels(model: Model) -> str:
    """Return the first labels as a table, with their confidence."""
    keys = {name: to_values(column[:FIRST]).tolist() for name, column in model._keys.items()}
    rows = zip(*keys.values(), model.classes_[model._label_codes[:FIRST]].tolist(), strict=True)
    cells = [
        [*(escape(to_word(value)) for value in row), f"{share:.3f}"]
        for row, share in zip(rows, model._confidence()[:FIRST].tolist(), strict=True)
    ]
    return html_table([*keys, "label", "confidence"], cells, [*(False for _ in keys), False, True])


def show_comparison(comparison: Comparison) -> str:
    """Return what a notebook shows of a comparison with majority vote."""
    c = comparison
    rows = [("Labels that differ", f"{c.n_differ:,} of {c.n_items:,}")]
    low, high = c.expected_accuracy_low, c.expected_accuracy_high
    if math.isnan(c.expected_accuracy):
        rows.append(("Expected accuracy", "not known"))
    elif is_unclear(c.expected_accuracy, low, high):
        rows.append(("Expected accuracy", f"between {low:.1%} and {high:.1%} if workers err independently"))
    else:
        vote = c.expected_accuracy - c.expected_gain
        drawn = draw_interval(c.expected_accuracy, low, high)
        interval = f"{c.expected_accuracy:.1%} ({low:.1%} to {high:.1%} if workers err independently)"
        rows += [
            ("Expected accuracy", f"{drawn} {interval}"),
            ("The same of majority vote", f"{draw_interval(vote, vote, vote)} {vote:.1%}"),
        ]
    rows += [("Verdict", escape(c.describe_test())), ("Agreement", escape(c.describe_agreement()))]
    return _frame(html_table((), rows, (False, False)))


def _frame(*parts: str) -> str:
    return f'<div style="color:inherit;background:transparent">{"".join(parts)}</div>'
