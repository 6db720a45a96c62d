"""`consilience predict`: labels of other items, by what a saved model knows of the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .command import Command, tell
from .options import TABLES, option, printing

if TYPE_CHECKING:
    from ..answers.responses import Responses
    from ..models.fitted import FittedModel

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv --save crowd.model
  consilience predict crowd.model more.csv -o labels.csv
"""  # \b keeps the lines apart


@click.command(
    cls=Command,
    short_help="Label items by what a saved model knows of the workers.",
    epilog=_EXAMPLES,
    groups={
        "Options": [option("-o --output", "FILE", f"Write the labels here: {TABLES}."), *printing],
        "Known labels": [option("--gold", "FILE", "Known labels. May be given several times.", multiple=True)],
        "Graph": [option("--graph", "FILE", "Edges between the items, for a model with a graph.")],
    },
)
@click.argument("model")
@click.argument("source")
def predict(model: str, source: str, output: str | None, gold: tuple[str, ...], graph: str | None) -> None:
    """Label the items in SOURCE by what a saved model knows of the workers. The model does not change.

    MODEL is a file written by `fuse --save`. SOURCE is read as its answers were: columns of the same names play the
    same roles. The answers in MODEL are not looked at: to add answers to its items, use `update`.
    """
    from dataclasses import replace

    from ..formats.sources import as_graph
    from ..formats.writing import write_table
    from ..models.loading import load
    from ..models.updating import read_like
    from .outputs import check_outputs

    check_outputs([output], [], [model, source, graph, *gold])
    fitted = load(model)
    responses = replace(read_like(fitted, source), backend="pyarrow")
    warn_of_known(fitted, responses)
    links = None if graph is None else as_graph(graph, responses)
    labels = fitted.predict(responses, links, list(gold) or None, as_frame=True)
    if output is not None:
        write_table(labels, output)
    sizes = {"answers": responses.n_responses, "items": responses.n_items, "workers": responses.n_workers}
    mean = float(labels["confidence"].to_numpy().mean())
    tell(
        lambda: {"model": model, "columns": responses.columns, **sizes, "mean_confidence": mean, "file": output},
        lambda: print_labels(responses, labels, model, source, output),
    )


def warn_of_known(model: FittedModel, responses: Responses) -> None:
    """Warn if some of the items were there at the fit, whose answers are not looked at."""
    from ..errors import DataWarning, plural, warn

    n_known = 0
    known = model.fusion_.given.answers
    if known is not None:
        n_known = int((known.find_items(list(responses.key_columns().values())) >= 0).sum())
    if n_known:
        warn(
            DataWarning(
                f"The model was fitted to {n_known:,} of these {plural(responses.n_items, 'item')}. Their labels here "
                "come from the answers in this file alone.",
                "To add these answers to the others, use `consilience update`.",
            )
        )


def print_labels(responses: Responses, labels: Any, model: str, source: str, output: str | None) -> None:
    """Print how many labels there are, and how certain they are."""
    from ..errors import plural
    from ..formats.files import name_of
    from .terminal import fit_text, format_columns, format_number, open_console, print_facts, print_title

    console = open_console()
    print_title(console, f"Labels for {fit_text(name_of(source), 40)} by {fit_text(model, 40)}")
    sizes = [plural(*size) for size in ((responses.n_workers, "worker"), (responses.n_items, "item"))]
    facts = [
        *([("Columns", format_columns(responses.columns))] if responses.columns else []),
        ("Answers", f"{responses.n_responses:,} by {sizes[0]} about {sizes[1]}"),
        ("Confidence", f"{format_number(float(labels['confidence'].to_numpy().mean()))} on average"),
        ("Labels", fit_text(output, 60) if output else "not written; give -o FILE to keep them"),
    ]
    print_facts(console, facts)
