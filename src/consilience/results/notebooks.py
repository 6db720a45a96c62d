"""What models show of themselves in notebooks: a few figures, some labels, and a small picture."""

from __future__ import annotations

from html import escape

from ..answers.columns import to_values
from ..errors import plural
from .fusion import Fusion, Labels
from .previews import draw_histogram, frame_html, html_table, paragraph, to_word

# Labels, and names of classes, that are shown.
FIRST, MOST_NAMES = 5, 8


def show_model(call: str, found: Fusion | None) -> str:
    """Return what a notebook shows of a model; `call` is how it is made."""
    head = f'<p style="margin:.3em 0;color:inherit"><code>{escape(call)}</code></p>'
    if found is None:
        return frame_html(head, paragraph("Not fitted yet."))
    if not found.in_memory:
        ways = "write(path) writes them." if found.source is not None else "They are not in its file."
        text = paragraph(f"Fitted to answers on disk: the labels are not in memory. {ways}")
        return frame_html(head, html_table((), list_facts(found), (False, False)), text)
    confidence = found.labels.confidence
    alt = "Confidence: how many labels have which"
    picture = draw_histogram(confidence, alt) if len(confidence) else ""
    n_more = len(confidence) - FIRST
    rest = [paragraph(f"... {plural(n_more, 'more label')}; to_frame() has them all.")] if n_more > 0 else []
    return frame_html(
        head, html_table((), list_facts(found), (False, False)), picture, show_labels(found.labels), *rest
    )


def list_facts(found: Fusion) -> list[tuple[str, str]]:
    """Return the figures of a result, as HTML."""
    classes, n_items = found.names.classes, found.labelled.n_items
    names = [to_word(name) for name in classes[:MOST_NAMES].tolist()]
    more = f" and {len(classes) - MOST_NAMES:,} more" if len(classes) > MOST_NAMES else ""
    facts = [
        ("Items", f"{n_items:,}"),
        ("Workers", f"{len(found.names.workers):,}, with {plural(int(found.n_answers.sum()), 'answer')}"),
        ("Classes", f"{len(classes)}: {', '.join(names)}{more}"),
    ]
    if n_items:
        facts.append(("Mean confidence", f"{found.labelled.mean_confidence:.3f}"))
    if not found.course.converged:
        facts.append(("Iterations", f"{found.course.n_iter:,}, not converged"))
    if found.comparison is not None:
        compared = found.comparison
        facts += [("Accuracy", compared.describe_accuracy()), ("Verdict", compared.describe_test())]
    return [(name, escape(value)) for name, value in facts]


def show_labels(labels: Labels) -> str:
    """Return the first labels as a table, with their confidence."""
    keys = {name: to_values(column[:FIRST]).tolist() for name, column in labels.keys.items()}
    rows = zip(*keys.values(), labels.classes[labels.codes[:FIRST]].tolist(), strict=True)
    cells = [
        [*(escape(to_word(value)) for value in row), f"{share:.3f}"]
        for row, share in zip(rows, labels.confidence[:FIRST].tolist(), strict=True)
    ]
    return html_table([*keys, "label", "confidence"], cells, [*(False for _ in keys), False, True])
