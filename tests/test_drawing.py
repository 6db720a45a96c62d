"""Charts are drawn in a process of their own: whatever it does, the page is whole and the labels are written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import consilience as cs
from consilience.errors import ConsilienceWarning, EngineError
from consilience.formats.writing import write_table
from consilience.reporting import charts, converter, page
from test_cli import environment, make_answers, run

vl_convert = pytest.importorskip("vl_convert", reason="charts need vl-convert: pip install 'consilience[report]'")

# Programs that take the place of the one that draws. The first line of each is what all need.
START = "import json, os, sys, time\nrequests = (json.loads(line) for line in sys.stdin)\n"
DIES = "os.abort()"
HANGS = "time.sleep(60)"
DIES_AT_CLASSES = """
for request in requests:
    if "share" in json.dumps(request):
        os.abort()
    print(json.dumps({"text": '<svg width="1" height="1" viewBox="0 0 1 1"></svg>'}), flush=True)
"""
FAILS = """
for request in requests:
    print(json.dumps({"error": "ValueError: no"}), flush=True)
"""


@pytest.fixture
def replaced(monkeypatch, tmp_path):
    """Return what lets another program draw."""
    own = converter.Converter()
    for module in (charts, page):
        monkeypatch.setattr(module, "CONVERTER", own)

    def replace(text: str) -> None:
        (tmp_path / "program.py").write_text(START + text)
        monkeypatch.setattr(converter, "PROGRAM", tmp_path / "program.py")

    yield replace
    own.stop()


@pytest.fixture(scope="module")
def fused():
    return cs.fuse(cs.simulate.independent(200, n_workers=6, seed=1).responses)


def count(html: str) -> tuple[int, int, int]:
    """Return how many charts, pictures and unfolded tables of charts a page has."""
    return html.count("<figcaption>"), html.count("<svg"), html.count("<details open>")


def test_a_picture_is_that_of_vl_convert(fused):
    chart = cs.chart(fused, "confidence")
    here = vl_convert.vegalite_to_svg(charts.complete(chart.figure))
    assert here.count("<path") > 3
    assert charts._finish(here, chart.alt) == chart.svg


def test_a_page_without_pictures_has_tables(fused, tmp_path, replaced):
    whole = page.make_page(page.gather(fused), "x")
    n_charts, n_pictures, n_open = count(whole)
    assert n_charts == n_pictures > 3
    assert n_open == 0
    page.CONVERTER.stop()
    replaced(DIES)
    with pytest.warns(ConsilienceWarning, match=rf"{n_charts} of {n_charts} charts could not be drawn: .* SIGABRT"):
        cs.report(fused, tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text("utf-8")
    assert count(html) == (n_charts, 0, n_charts)
    attention = html.partition('id="attention"')[2].partition("</section>")[0]
    assert "charts could not be drawn" in attention


def test_one_bad_chart_costs_only_its_picture(fused, tmp_path, replaced):
    replaced(DIES_AT_CLASSES)
    with pytest.warns(ConsilienceWarning, match=r"\d of \d charts could not be drawn"):
        html = page.make_page(page.gather(fused), "x")
    n_charts, n_pictures, n_open = count(html)
    assert 1 <= n_open < n_charts
    assert n_pictures + n_open == n_charts


@pytest.mark.parametrize(
    ("program", "words"), [(DIES, "by the signal SIGABRT"), ("sys.exit(3)", "with code 3"), (FAILS, "ValueError: no")]
)
def test_a_chart_says_why_it_cannot_be_drawn(fused, tmp_path, replaced, program, words):
    replaced(program)
    chart = cs.chart(fused, "workers")
    with pytest.raises(EngineError, match=words):
        chart.save(tmp_path / "c.png")
    assert not (tmp_path / "c.png").exists()
    shown = chart._repr_html_()
    assert words in shown
    assert shown.count("<tr>") == 1 + len(chart.rows)


def test_a_process_that_hangs_is_ended(replaced):
    replaced(HANGS)
    began = time.monotonic()
    drawn = page.CONVERTER.draw([{"figure": {}}] * 3, seconds=0.2)
    assert drawn == ([None] * 3, "it took longer than 0.2 seconds")
    assert time.monotonic() - began < 5


def test_a_process_that_cannot_be_started(fused, replaced, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EngineError, match="could not be started"):
        _ = cs.chart(fused, "workers").svg


def test_after_an_interruption_answers_are_not_mixed_up(fused, replaced):
    """The answer to the first request must not be taken for that to the next."""
    expected = cs.chart(fused, "confidence").svg

    ask = page.CONVERTER._ask

    def ask_and_stop(request):
        ask(request)
        raise KeyboardInterrupt

    page.CONVERTER._ask = ask_and_stop
    with pytest.raises(KeyboardInterrupt):
        _ = cs.chart(fused, "workers").svg
    page.CONVERTER._ask = ask
    assert cs.chart(fused, "confidence").svg == expected


def test_nothing_in_the_current_folder_is_run(fused, tmp_path, replaced, monkeypatch):
    for name in ("json", "base64", "vl_convert", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('run', 'w')\nraise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert cs.chart(fused, "workers").svg.startswith("<svg")
    assert not (tmp_path / "run").exists()


def test_vl_convert_is_not_loaded_here():
    code = "import sys, consilience as cs; m = cs.fuse(cs.simulate.independent(50, seed=1).responses); cs.chart(m).svg"
    code += "; sys.exit('vl_convert' in sys.modules)"
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment(), check=False).returncode == 0


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

    monkeypatch.setattr(page, "make_page", fail)
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


@pytest.mark.robust
@pytest.mark.parametrize("gigabytes", [1, 2, 4])
def test_a_limit_of_address_space_costs_only_the_pictures(answers, gigabytes):
    pytest.importorskip("resource")
    command = f"ulimit -v {int(gigabytes * 2**20)}; exec {sys.executable} -m consilience"
    command += " fuse answers.csv -o labels.csv --save m.model --report r.html"
    done = subprocess.run(["sh", "-c", command], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "charts could not be drawn" in done.stderr
    assert "ulimit -v" in done.stderr
    assert Path("labels.csv").exists()
    html = Path("r.html").read_text("utf-8")
    assert count(html)[1:] == (0, count(html)[0])
    assert not [name for name in os.listdir() if name.startswith(("core", "."))]


@pytest.mark.robust
def test_the_process_ends_with_its_parent(fused):
    code = (
        "import time; from consilience.reporting.converter import CONVERTER as c;"
        "c.draw([{'figure': {'mark': 'bar'}}]);"
        "print(c._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, 0)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the process that draws is still there")
