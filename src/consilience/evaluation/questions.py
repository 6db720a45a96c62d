"""Labels of several questions compared with known ones, each question on its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..answers.columns import Column, are_distinct, holds_sign, to_values
from ..answers.tables import Table, is_table, open_frame
from ..arguments import split_by_question
from ..errors import shorten
from ..kinds.tag_tables import USUAL, split_cell
from ..models.questions import Questions, split_gold
from .tags import not_told

# What the column of the confidence is called beside that of a question, in a table with a row per item.
CONFIDENCE = "_confidence"


def split_labels(labels: object, label: str | None) -> dict[str, object] | None:
    """Return the labels of each question, of fitted ones or of a table that `Questions.to_frame` returns; else None.

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
    shown = {name: {"label": name, "confidence": f"{name}{CONFIDENCE}"} for name in wide}
    return {
        name: open_frame(
            {title: table.read(source) for title, source in {**dict(zip(before, before, strict=True)), **own}.items()}
        )
        for name, own in shown.items()
    }


def pair_questions(
    labels: Mapping[str, object], gold: object, given: Mapping[str, object]
) -> dict[str, tuple[object, object, dict[str, Any]]]:
    """Return the labels, known labels and other parameters of `evaluate` for each question of which some are known.

    A separator that is one text goes with the questions in some cell of which it is. Without any, labels in tables that
    look like sets of tags are an error.
    """
    names = list(labels)
    known = split_gold(gold, names)
    split = {role: split_by_question(role, value, names) for role, value in given.items()}
    found = {}
    for name, each in known.items():
        own = {role: values[name] for role, values in split.items() if name in values}
        sign = given.get("separator")
        if isinstance(sign, str) and not any(holds(part, sign) for part in (labels[name], each)):
            own["separator"] = None
        if sign is None and isinstance(labels[name], Table):
            check_single(name, list_texts(labels[name]) | list_texts(each))
        found[name] = labels[name], each, own
    return found


def holds(labels: object, sign: str) -> bool:
    """Tell whether a sign is in some cell of the labels in a table."""
    column = find_column(labels)
    return column is not None and holds_sign(column, sign)


def find_column(labels: object) -> Column | None:
    """Return the column of labels in a table; None if it has lists, or if there is none."""
    if not isinstance(labels, Table):
        return None
    name = labels.preferred.get("known label") or labels.find("label")
    return None if name is None or labels.lists(name) is not None else labels.read(name)


def list_texts(labels: object) -> set[str]:
    """Return the different labels that are text."""
    column = find_column(labels)
    values = [] if column is None else to_values(column).tolist()
    return {each for each in values if isinstance(each, str)}


def check_single(name: str, texts: set[str]) -> None:
    """Raise an error if labels seem to be sets: what a usual sign joins is there alone too, or in another order."""
    for sign in USUAL:
        sets = [frozenset(split_cell(text, sign)) for text in texts if sign in text]
        several = [each for each in sets if len(each) > 1]
        if len(set(several)) < len(several) or any(each & texts for each in several):
            raise not_told(f"Labels of question {shorten(name)} hold {sign!r}, and what it joins are labels too.")
