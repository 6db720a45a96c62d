"""Documents as JSON: what `--json` prints."""

from __future__ import annotations

from typing import Any

from .document import Columns, Document, Documents, Facts, Findings, Fold, Section, Table
from .terminal import Describe, describe_in_python


def to_record(document: Document, describe: Describe = describe_in_python, question: str = "") -> dict[str, Any]:
    """The values of a document by their keys: facts, rows of tables, and findings. Parts without a key are left out.

    >>> from .document import Fact
    >>> to_record(Document("", "", [Facts([Fact("items", "Items", 3), Fact("", "File", "a.csv")])]))
    {'items': 3}
    """
    record: dict[str, Any] = {}
    for part in document.parts:
        if isinstance(part, Facts):
            record |= {each.key: each.value for each in part.facts if each.key}
        elif isinstance(part, Table) and part.key:
            record[part.key] = part.records()
        elif isinstance(part, Findings):
            record["findings"] = [describe(each, question) for each in part.findings]
        elif isinstance(part, Documents):
            record[part.key] = {name: to_record(each, describe, name) for name, each in part.documents.items()}
        elif isinstance(part, Section | Fold | Columns):
            record |= to_record(Document("", "", part.parts), describe, question)
    return record
