"""The section on a network: what was found about the graph."""

from __future__ import annotations

from ..inference.observations import Observations
from ..results.comparison import describe_limit, describe_usual
from .document import Column, Part, Section, Table, Text, spell
from .view import View


def describe_network(view: View) -> list[Part]:
    """What was found about the graph, in words and figures."""
    check, is_field = view.result.graph_check, view.result.model == "MarkovField"
    words, rows = ["The graph was not checked. fuse does that."], list[tuple[str, float | None, str]]()
    if is_field:
        unit = view.model._usual_weight
        name = f"Coupling, in nats per agreeing neighbour{describe_usual(unit)}"
        rows.append((name, view.model.coupling_ * unit, "number"))
    if check is not None:
        words = [str(check)]
        if is_field and view.model.listeners == "unanswered":
            words.append(describe_limit(bool(Observations(view.answers).find_answered().all()), "The graph"))
        rows += [
            ("Coupling on a shuffled graph", check.shuffled_coupling, "number"),
            ("Neighbours of an item, on average", check.degree, "number"),
            ("Labels that the graph changes", check.changed, "percent"),
            ("Labels that a shuffled graph changes", check.shuffled_changed, "percent"),
            ("Agreement along edges beyond chance", check.agreement if check.measured else None, "figure"),
            ("Its standard error", check.agreement_error if check.measured else None, "figure"),
            ("Correlation of a worker's errors along edges", check.error_correlation, "number"),
        ]
    columns = [Column("name", ""), Column("value", "", "spelled")]
    figures = [(name, spell(value, form)) for name, value, form in rows if value is not None]
    return [Text(words), Section("In detail", [Table("graph", "The graph in figures", columns, figures)])]
