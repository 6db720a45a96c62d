"""Commands that count and judge: `estimate` and `audit` by known labels, and `check`, which fits nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zipfile import ZipFile, is_zipfile

import click
import pyarrow as pa

from ..answers.previews import fit_text
from ..api import estimate
from ..documents.document import Document, Fact, Facts, Part, Section
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
    every = found if isinstance(found, dict) else {"": found}
    write_tables(every, output)
    below = [row for each in every.values() for row in each.find_below(at_least)] if at_least is not None else []
    facts = [Fact("file", "Table" if output else "", output), Fact("labels", "", labels), Fact("gold", "", known)]
    if at_least is not None:
        n_rows = sum(len(each.rows) for each in every.values())
        text = f"{len(below):,} of {n_rows:,} intervals begin below {at_least:g}"
        facts.append(Fact("below", f"At least {at_least:g}", len(below), text if below else "yes, all intervals"))
    title = f"How many: {fit_text(labels, 40)} by {fit_text(known, 30)}"
    publish(Document(title, "", [*show(every, describe_estimate), Facts(facts)]))
    if below:
        click.get_current_context().exit(BELOW)


def run_audit(model: str, known: str, output: str | None, by: str | None) -> None:
    """Judge each worker of a saved model by known labels."""
    check_outputs([output], [], [model, known])
    found = in_arrow(open_labels(model)[0]).audit(known, by)
    every = found if isinstance(found, dict) else {"": found}
    write_tables(every, output)
    facts = Facts([Fact("file", "Table" if output else "", output), Fact("model", "", model), Fact("gold", "", known)])
    title = f"Workers of {fit_text(model, 40)} by {fit_text(known, 30)}"
    publish(Document(title, "", [*show(every, describe_audit), facts]))


def write_tables(every: Mapping[str, Any], output: str | None) -> None:
    """Write what was found of each question, or of one without a name."""
    tables = list[pa.Table]()
    for name, found in every.items():
        table = pa.table(found.to_frame())
        if name:  # classes of questions may be of different types
            of = table.column_names.index("of") if "of" in table.column_names else None
            table = table if of is None else table.set_column(of, "of", table["of"].cast(pa.string()))
            table = table.add_column(0, "question", pa.array([name] * len(table)))
        tables.append(table)
    if output is not None:
        write_table(pa.concat_tables(tables, promote_options="default"), output)


def show(every: Mapping[str, Any], describe: Callable[[Any], list[Part]]) -> list[Part]:
    """What is said of each question: apart in JSON, else one below the other, and what needs attention last."""
    if set(every) == {""}:
        return describe(every[""])
    if click.get_current_context().meta.get("as_json"):
        return [Document(name, "", describe(found)) for name, found in every.items()]
    sections = [Section(name, describe(found)) for name, found in every.items()]
    return [
        *sections,
        [each for section in sections for part in section.parts if isinstance(part, list) for each in part],
    ]


def run_check(source: str) -> None:
    """Say what a file holds, and what to type next."""
    publish(check(source).describe())
