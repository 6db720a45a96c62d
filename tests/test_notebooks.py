"""What is shown in terminals and notebooks: tables, models, comparisons and single charts."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import consilience as cs
from consilience.answers.previews import ReportTable
from consilience.errors import InputError, MissingDependencyError, NotFittedError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

HOSTILE = ["<img src=x onerror=alert(1)>", "</td></table><script>alert(2)</script>", 'a "b" & c', "two\nlines"]
# What may stand in HTML that a notebook shows, and needs nothing from elsewhere.
TAGS = {"div", "p", "code", "table", "thead", "tbody", "tr", "th", "td", "svg", "g", "path", "circle", "text", "rect"}
TAGS |= {"figure", "figcaption", "line"}


class Snippet(HTMLParser):
    """HTML in which every element is closed, with its text."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []
        assert {tag for tag, _ in self.tags} <= TAGS
        for _, attributes in self.tags:
            assert not [
                name for name in attributes if name.startswith("on") or name in ("src", "href", "class", "id")
            ] or (attributes.get("class") == "chart")

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def hostile_crowd() -> cs.Answers:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 80)
    answers = np.where(rng.random((80, 6)) < 0.7, truth[:, None], rng.integers(0, 4, (80, 6)))
    items = [f"<b>item</b>{n}" for n in range(80)]
    return cs.Answers.from_matrix(answers, labels=HOSTILE, items=items, workers=[f"<i>{m}" for m in range(6)])


@pytest.fixture(scope="module")
def fused():
    return cs.fuse(hostile_crowd())


# -------------------------------------------------------------------------------------------------------------- tables


def test_missing_and_odd_cells():
    table = pa.table(
        {
            "name": ["a\nb\x1b[31m", None, "c" * 99],
            "x": [float("nan"), None, 1e12],
            "sure": [True, None, False],
            "low": [1, 2, 3],
            "y": [0.5, 2.0, None],
            "y_low": [0.1, 1.0, None],
            "y_high": [0.7, 3.0, None],
        }
    )
    lines = repr(ReportTable(table)).splitlines()
    assert lines[0].split() == ["name", "x", "sure", "low", "y"]
    assert "a b\N{REPLACEMENT CHARACTER}[31m" in lines[1]
    assert "0.50 (0.10-0.70)" in lines[1]
    assert "c" * 39 + "…" in lines[3]
    assert ReportTable(table)._repr_html_().count("<circle") == 1  # that from 1 to 3 is no share
    assert repr(ReportTable(pa.table({"a": []}))) == "a\nno rows"
    assert repr(ReportTable(pa.table({}))) == "no rows"
    assert "no rows" in Snippet(ReportTable(pa.table({}))._repr_html_()).text
    assert repr(ReportTable(pa.table({"a": range(21)}))).endswith("19\n... 1 more row")


def test_a_report_is_an_arrow_table_in_all_that_takes_a_stream(fused, tmp_path):
    report = fused.worker_report()
    assert isinstance(report, ReportTable)
    plain = report.arrow
    assert isinstance(plain, pa.Table)
    assert pa.table(report).equals(plain)
    assert pl.DataFrame(report).equals(pl.DataFrame(plain))
    assert report.to_pandas().equals(plain.to_pandas())
    assert report.num_rows == len(report) == 6
    assert report["worker"].equals(plain["worker"])
    assert report.column_names == plain.column_names
    with pytest.raises(AttributeError, match="nothing"):
        report.nothing  # noqa: B018


def test_answers_and_evaluations_in_notebooks():
    crowd = cs.simulate.independent(100, n_workers=6, n_classes=3, answers_per_item=4, seed=0)
    text = Snippet(crowd.responses._repr_html_()).text
    assert all(each in text for each in ("Answers", "400, 4.0 per item", "100", "3: 0, 1, 2"))
    table = pa.table({"item": [0, 0, 1], "worker": ["a", "b", "a"], "label": [HOSTILE[0], HOSTILE[1], HOSTILE[0]]})
    assert HOSTILE[0] in Snippet(cs.Answers.from_frame(table)._repr_html_()).text
    fused = cs.fuse(crowd.responses)
    found = cs.evaluate(fused, dict(enumerate(crowd.truth.tolist())))
    text = Snippet(found._repr_html_()).text
    assert all(each in text for each in ("Evaluation", "Macro F1", f"{found.accuracy:.3f}", "precision", "known"))


def test_models_are_copied_and_say_if_they_are_not_fitted():
    from sklearn.base import clone

    crowd = cs.simulate.independent(50, n_workers=4, n_classes=2, seed=0)
    for model in (cs.DawidSkene(), cs.fuse(crowd.responses)):
        with pytest.raises(AttributeError, match=r"object has no attribute 'other'$"):
            model.other  # noqa: B018
        assert clone(model).get_params() == copy.deepcopy(model).get_params() == copy.copy(model).get_params()
    with pytest.raises(NotFittedError, match="fit"):
        cs.DawidSkene().labels_  # noqa: B018


# ----------------------------------------------------------------------------------------------------------- notebooks


def test_everything_is_inert_and_takes_its_colours_from_the_page(fused):
    for each in (fused, fused.worker_report(), fused.next_items(5), cs.DawidSkene(seed=7)):
        html = each._repr_html_()
        Snippet(html)
        assert "url(" not in html
        assert not re.search(r"(?<!&)#[0-9a-f]{3,6}\b", html)  # no colour that suits light or dark alone
    text = Snippet(fused._repr_html_()).text
    assert "<b>item</b>0" in text
    assert HOSTILE[1] in text


def test_a_model_shows_what_it_found(fused):
    found = Snippet(fused._repr_html_())
    for words in (
        "DawidSkene()",
        "80",
        "480 by 6 workers about 80 items",
        "if workers err independently",
        "75 more rows",
    ):
        assert words in found.text
    assert fused.comparison_.describe_test()[1:] in found.text
    unfitted = Snippet(cs.HiddenMarkov(coupling=0.5)._repr_html_())
    assert "HiddenMarkov(coupling=0.5)" in unfitted.text
    assert "Not fitted yet." in unfitted.text


# -------------------------------------------------------------------------------------------------------------- charts


@pytest.fixture
def drawing():
    pytest.importorskip("vl_convert", reason="charts need vl-convert: pip install 'consilience[report]'")


def test_charts_are_those_of_the_report(fused, drawing):
    from consilience.documents.html import to_page
    from consilience.documents.page import CHARTS, describe_page
    from consilience.documents.view import View

    gold = dict.fromkeys(fused.result_.answers.items[:30].tolist(), HOSTILE[0])
    crowd = cs.simulate.sequences(30, n_workers=4, n_classes=3, seed=1)
    chain = cs.HiddenMarkov(coupling=0.5).fit(crowd.responses)
    models = {"reliability": cs.DawidSkene().fit(fused.result_.answers, gold=gold), "transitions": chain}
    models["tags"] = cs.TagSets().fit(cs.simulate.tags(30, n_workers=5, n_tags=3, seed=1).tags)
    votes = np.random.default_rng(1).dirichlet(np.ones(3), (40, 4))
    models["votes"] = cs.DawidSkene(workers="temperatures").fit(cs.Answers.from_probabilities(votes))
    models["raters"] = cs.DawidSkene(workers="ordinal").fit(cs.simulate.ratings(40, n_raters=5, seed=1).responses)
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    pages = {id(model): to_page(describe_page(View(model), "x")) for model in (fused, *models.values())}
    for name in CHARTS:
        model = models.get(name, fused)
        chart = cs.chart(model, name)
        assert chart.svg in pages[id(model)]
        assert chart.alt
        Snippet(chart._repr_html_())


def test_a_chart_is_written_light_and_dark(fused, drawing, tmp_path):
    chart = cs.chart(fused)
    light = chart.save(tmp_path / "light.svg").read_text("utf-8")
    dark = chart.save(str(tmp_path / "dark.SVG"), dark=True).read_text("utf-8")
    for text, ground in ((light, "#ffffff"), (dark, "#12171d")):
        assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        assert "var(" not in text
        assert f'fill="{ground}"' in text
    assert chart.save(tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ParameterError, match=r"ends in \.svg or \.png"):
        chart.save(tmp_path / "c.pdf")
    with pytest.raises(InputError, match="no folder"):
        chart.save(tmp_path / "nowhere" / "c.svg")


def test_charts_without_the_extra(fused, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'consilience\[report\]'"):
        cs.chart(fused)
    Snippet(fused._repr_html_())  # needs nothing
