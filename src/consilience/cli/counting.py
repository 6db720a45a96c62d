"""Commands that count and judge: `estimate` and `audit` by known labels, and `check`, which fits nothing."""

from __future__ import annotations

from typing import Any
from zipfile import ZipFile, is_zipfile

import click
import pyarrow as pa

from ..answers.previews import fit_text
from ..api import estimate
from ..documents.document import Document, Fact, Facts, Part
from ..documents.estimates import describe_audit, describe_estimate
from ..evaluation.checking import check
from ..formats.writing import write_table
from ..models.questions import in_arrow
from ..options import split
from ..results.saving import HEADER
from .command import publish, refuse
from .files import check_outputs
from .saved import open_labels

# The exit code where an interval begins below what is asked for.
BELOW = 3


def is_model(path: str) -> bool:
    """Whether a file is a saved model."""
    if not is_zipfile(path):
        return False
    with ZipFile(path) as file:
        return HEADER in file.namelist()


def run_estimate(labels: str, known: str, output: str | None, at_least: float | None, **typed: Any) -> None:
    """Estimate how many items are of each class, of a saved model or of a table of labels."""
    item, of, by, pairs = (typed[name] for name in ("item", "of", "by", "pairs"))
    check_outputs([output], [], [labels, known])
    source: Any = labels
    if is_model(labels):
        refuse("a model", "item")
        source = in_arrow(open_labels(labels, or_updated=True)[0])
    columns = {} if item is None or is_model(labels) else {"item": item if "," not in item else split(item)}
    found = estimate(source, known, list(of) or None, by, pairs, **columns)
    several = isinstance(found, dict)
    every = found if several else {"": found}
    tables, parts = [], list[Part]()
    for name, each in every.items():
        table = pa.table(each.to_frame())
        tables.append(table.add_column(0, "question", pa.array([name] * len(table))) if several else table)
        about = describe_estimate(each)
        parts += [Document(name, "", about)] if several else about
    if output is not None:
        write_table(pa.concat_tables(tables), output)
    below = [row for each in every.values() for row in each.find_below(at_least)] if at_least is not None else []
    facts = [Fact("file", "Table" if output else "", output), Fact("labels", "", labels), Fact("gold", "", known)]
    if at_least is not None:
        text = (
            f"{len(below):,} of {sum(len(each.rows) for each in every.values()):,} intervals begin below {at_least:g}"
        )
        facts.append(Fact("below", f"At least {at_least:g}", len(below), text if below else "yes, all intervals"))
    publish(Document(f"How many: {fit_text(labels, 40)} by {fit_text(known, 30)}", "", [*parts, Facts(facts)]))
    if below:
        click.get_current_context().exit(BELOW)


def run_audit(model: str, known: str, output: str | None, by: str | None) -> None:
    """Judge each worker of a saved model by known labels."""
    check_outputs([output], [], [model, known])
    found = in_arrow(open_labels(model)[0]).audit(known, by)
    several = isinstance(found, dict)
    every, tables, parts = found if several else {"": found}, [], list[Part]()
    for name, each in every.items():
        table = pa.table(each.to_frame())
        tables.append(table.add_column(0, "question", pa.array([name] * len(table))) if several else table)
        about = describe_audit(each)
        parts += [Document(name, "", about)] if several else about
    if output is not None:
        write_table(pa.concat_tables(tables, promote_options="default"), output)
    facts = Facts([Fact("file", "Table" if output else "", output), Fact("model", "", model), Fact("gold", "", known)])
    publish(Document(f"Workers of {fit_text(model, 40)} by {fit_text(known, 30)}", "", [*parts, facts]))


def run_check(source: str) -> None:
    """Say what a file holds, and what to type next."""
    publish(check(source).describe())
