"""Documents in a terminal: as wide as it is, without losing words, and in colour only where that is wanted."""

from __future__ import annotations

import re
import sys
from typing import Any

import click
import pytest

from consilience.cli.command import publish
from consilience.documents.document import Column, Document, Table
from consilience.documents.overview import describe_fit, describe_questions
from consilience.documents.terminal import to_lines
from consilience.models.base import Standalone
from consilience.models.questions import Questions


def describe(model: Any) -> Document:
    if isinstance(model, Questions):
        return describe_questions(model, "Labels")
    return model.overview("Labels") if isinstance(model, Standalone) else describe_fit(model, "Labels", None, False)


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(model, width):
    lines = [re.sub(r"\x1b\[\d+m", "", line) for line in to_lines(describe(model), width).splitlines()]
    assert max(map(len, lines)) <= width


def test_remarks_are_wrapped_between_words_and_not_cut():
    remark = "harsh by 1.2 levels, and worse from one week to the next"
    columns = [Column("", "worker"), Column("", "worst confusion"), Column("", "remarks")]
    rows = [("ann", "good -> bad (81%)", remark), ("bob", "", ""), ("cid", "", "few answers")]
    lines = to_lines(Document("", "", [Table("", "", columns, rows)]), 60).splitlines()
    start = re.sub(r"\x1b\[\d+m", "", lines[0]).index("remarks")
    assert " ".join(line[start:] for line in lines[1:-2]) == remark
    assert [line.split() for line in lines[-2:]] == [["bob"], ["cid", "few", "answers"]]
    assert max(map(len, lines[1:])) <= 60


@pytest.mark.parametrize(("value", "is_bold"), [(None, True), ("", True), ("1", False)])
def test_no_color(monkeypatch, capsys, value, is_bold):
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with click.Context(click.Command("explain")):
        publish(Document("Labels", "", []))
    assert ("\x1b[1m" in capsys.readouterr().out) == is_bold
