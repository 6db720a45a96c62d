"""Labels of several questions compared with known ones, each question on its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..answers.columns import are_distinct, to_values
from ..answers.tables import Table, is_table, open_frame
from ..arguments import split_by_question
from ..errors import shorten
from ..kinds.tag_tables import USUAL, split_cell
from ..models.questions import Questions, split_gold
from .tags import not_told

# What the column of the confidence is called beside that of a question, in a table with a row per item.
CONFIDENCE = "_confidence"


def split_labels(labels: object, label: str | None) -> dict[str, object] | None:
    """The labels of each question, of fitted ones or of a table that `Questions.to_frame` returns; else None.

    A table whose column of labels is named has one question.
    """
    if isinstance(labels, Questions):
        return dict(labels)
    if label is not None or not is_table(labels):
        return None
    table = open_frame(labels, "the table of labels")
    if {"question", "label", "confidence"} <= set(table.names):
        # With one row per item, the question is what items are called by.
        keys = [name for name in ("item", "sequence") if name in table.names]
        if not keys or are_distinct(table.read(keys[0])):
            return None
        asked = np.array([str(each) for each in to_values(table.read("question")).tolist()])
        return {name: table.keep(np.flatnonzero(asked == name)) for name in dict.fromkeys(asked.tolist())}
    wide = [str(name) for name in table.names if f"{name}{CONFIDENCE}" in table.names]
    if "label" in table.names or not wide:
        return None
    before = list(table.names)[: list(table.names).index(wide[0])]
    found: dict[str, object] = {}
    for name in wide:
        columns = {**dict(zip(before, before, strict=True)), "label": name, "confidence": f"{name}{CONFIDENCE}"}
        found[name] = open_frame({title: table.read(source) for title, source in columns.items()})
    return found


def pair_questions(
    labels: Mapping[str, object], gold: object, given: Mapping[str, object]
) -> dict[str, tuple[object, object, dict[str, Any]]]:
    """The labels, known labels and other parameters of `evaluate` for each question of which some are known.

    A separator that is one text goes with the questions in some cell of which it is. Without any, labels in tables that
    look like sets of tags are an error.
    """
    names, sign = list(labels), given.get("separator")
    split = {role: split_by_question(role, value, names) for role, value in given.items()}
    found = {}
    for name, known in split_gold(gold, names).items():
        own = {role: values[name] for role, values in split.items() if name in values}
        texts = list_distinct_texts(labels[name]) | list_distinct_texts(known)
        if isinstance(sign, str) and not any(sign in text for text in texts):
            own["separator"] = None
        # What a usual sign joins is there alone too, or in another order.
        for usual in USUAL if sign is None and isinstance(labels[name], Table) else ():
            sets = [frozenset(split_cell(text, usual)) for text in texts if usual in text]
            several = [each for each in sets if len(each) > 1]
            if len(set(several)) < len(several) or any(each & texts for each in several):
                raise not_told(f"Labels of question {shorten(name)} hold {usual!r}, and what it joins are labels too.")
        found[name] = labels[name], known, own
    return found


def list_distinct_texts(labels: object) -> set[str]:
    """The different labels in a table that are text; none where they are lists."""
    name = labels.preferred.get("known label") or labels.find("label") if isinstance(labels, Table) else None
    if not isinstance(labels, Table) or name is None or labels.lists(name) is not None:
        return set()
    return {each for each in to_values(labels.read(name)).tolist() if isinstance(each, str)}
