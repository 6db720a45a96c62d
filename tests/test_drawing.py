"""Charts are drawn once each, and a report comes after the results: what fails in it costs only the report."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from consilience.documents import html
from consilience.documents.page import describe_page
from consilience.documents.view import View
from consilience.formats.writing import write_table
from test_cli import make_answers, run

vl_convert = pytest.importorskip("vl_convert", reason="charts need vl-convert: pip install 'consilience[report]'")


def test_each_chart_of_a_page_is_drawn_once(fitted, monkeypatch):
    drawn = []
    usual = vl_convert.vegalite_to_svg
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda figure: drawn.append(figure) or usual(figure))
    page = html.to_page(describe_page(View(fitted["plain"]), "x"))
    assert len(drawn) == page.count("<figcaption>") == page.count("<svg") > 3


@pytest.fixture
def answers(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_table(pa.table(make_answers()), "answers.csv")
    return tmp_path / "answers.csv"


def test_labels_are_written_before_the_report_is_begun(answers, monkeypatch):
    Path("r.html").write_text("old")

    def fail(*_, **__):
        assert Path("labels.csv").exists()
        assert Path("m.model").exists()
        raise ZeroDivisionError

    monkeypatch.setattr(html, "to_page", fail)
    result = run("fuse", "answers.csv", "-o", "labels.csv", "--save", "m.model", "--report", "r.html")
    assert result.exit_code == 1
    assert "Only the report is missing: labels.csv, m.model had been written before." in result.stderr
    assert Path("r.html").read_text() == "old"
    Path("labels.csv").unlink()
    result = run("update", "m.model", "answers.csv", "--duplicates", "last", "-o", "labels.csv", "--report", "r.html")
    assert result.exit_code == 1
    assert "Only the report is missing: labels.csv" in result.stderr


@pytest.mark.parametrize("option", ["--content", "--workers-report"])
def test_bad_input_of_a_report_leaves_everything_as_it_was(answers, option):
    value = {"--content": "nothing", "--workers-report": "folder/w.csv"}[option]
    result = run("fuse", "answers.csv", "-o", "labels.csv", "--report", "r.html", option, value)
    assert result.exit_code == 2
    assert os.listdir() == ["answers.csv"]
