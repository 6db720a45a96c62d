"""The report: what it says, that it is inert and whole, and that odd data do not break it."""

from __future__ import annotations

import base64
import copy
import csv
import dataclasses
import functools
import hashlib
import io
import json
import re
import shlex
import sys
import warnings
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from command_line import run
from consilience.api import write_report
from consilience.documents import charts, items, sequences, workers
from consilience.documents import page as pages
from consilience.documents.document import Document, Facts, Table, Text, Widget
from consilience.documents.html import load_templates, spell_notes, to_page
from consilience.documents.page import describe_page
from consilience.documents.view import View
from consilience.errors import InputError, MissingDependencyError, NotFittedError, ParameterError
from consilience.inference.estimator import renew
from consilience.models.base import complete
from consilience.results.findings import Finding

pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

HOSTILE = ["<img src=x onerror=alert(1)>", "cat</script><script>alert(2)</script>", 'a "b", c', "{{ 7 * 7 }}&amp;"]
VOID = {"meta", "img", "input", "br", "path", "line"}


class Page(HTMLParser):
    """A page as a browser would read it: elements with their attributes and texts; every end closes its own start."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict]] = []
        self.elements: list[tuple[str, dict, list[str]]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "an attribute is there twice"
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for element in self.open:
            element[2].append(data)

    def all(self, tag: str) -> list[tuple[dict, str]]:
        return [(attrs, "".join(text)) for name, attrs, text in self.elements if name == tag]

    def text(self) -> str:
        return self.all("body")[0][1]

    def data(self) -> dict:
        return next(json.loads(text) for attrs, text in self.all("script") if attrs.get("id") == "data")


def make_page(view: View, title: str) -> str:
    return to_page(describe_page(view, title))


def page_of(model, content=None) -> Page:
    return Page(make_page(View(model, content), "answers.csv"))


def find_parts(parts, kind) -> list:
    """Return the parts of one kind, wherever they are."""
    return Document("", "", parts).find(kind)


def list_notes(view: View) -> list[Finding]:
    """Return what needs attention, as the page words it."""
    return [note for part in find_parts(pages.list_notes(view), list) for note in spell_notes(part)]


def make_crowd(n_items=120, n_workers=8, labels=("cat", "dog", "fox"), seed=1):
    """Return answers of workers of whom some are better than others."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(labels), n_items)
    knows = rng.random((n_items, n_workers)) < np.linspace(0.9, 0.2, n_workers)
    said = np.where(knows, truth[:, None], rng.integers(0, len(labels), (n_items, n_workers)))
    return cs.Answers.from_matrix(said, labels=list(labels), workers=[f"w{m}" for m in range(n_workers)])


@pytest.fixture(scope="module")
def fused():
    return cs.fuse(make_crowd())


@pytest.fixture(scope="module")
def page(fused):
    return page_of(fused)


# ------------------------------------------------------------------------------------------------------- the whole page


def test_the_page_says_first_whether_to_trust_the_labels(fused, page):
    headings = page.all("h1")
    assert len(headings) == 1
    share, ends = (
        f"{fused.comparison_.accuracy:.0%}",
        f"{fused.comparison_.accuracy_low:.0%} to {fused.comparison_.accuracy_high:.0%}",
    )
    headline = f"About {share} of these 120 labels are right ({ends}), judging by 23 real crowds."
    assert headings[0][1] == headline
    low, high = fused.comparison_.expected_accuracy_low, fused.comparison_.expected_accuracy_high
    assert ("Right, if workers err independently", f"95% interval {low:.1%} to {high:.1%}") in [
        (fact.name, fact.detail) for facts in describe_page(View(fused), "x").find(Facts) for fact in facts.facts
    ]
    assert page.text().count("err independently") == page.text().count("Real workers share errors") == 1
    assert f"{fused.comparison_.expected_accuracy:.1%}" in page.text()
    assert "vote gets" not in page.text()


def test_headings_are_in_order_and_links_lead_somewhere(page):
    levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs, _ in page.elements if "id" in attrs]
    assert len(set(ids)) == len(ids)
    for _, attrs, _ in page.elements:
        for name in ("aria-labelledby", "for"):
            assert attrs.get(name, ids[0]) in ids
        if "href" in attrs:
            assert attrs["href"].startswith("#")
            assert attrs["href"][1:] in ids


def test_tables_have_captions_and_charts_have_words_and_a_table(page):
    n_captions, n_tables = len(page.all("caption")), len(page.all("table"))
    assert n_captions == n_tables > 5
    pictures = page.all("svg")
    assert len(pictures) >= 5
    assert all(attrs["role"] == "img" and len(attrs["aria-label"]) > 20 for attrs, _ in pictures)
    assert len(page.all("figure")) == len(pictures)
    for _, text in page.all("figure"):
        assert "Table" in text
    assert sum(tag == "path" for tag, _, _ in page.elements) > 30  # the charts have marks


def test_the_page_loads_nothing_and_runs_only_its_own_script(fused):
    html = make_page(View(fused), "x")
    page = Page(html)
    assert not re.search(r"https?:|//cdn|@import|url\(|<link|<iframe|<object", html)
    policy = next(attrs["content"] for attrs, _ in page.all("meta") if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    scripts = [text for attrs, text in page.all("script") if attrs.get("type") is None]
    for texts in (scripts, [text for _, text in page.all("style")]):
        assert len(texts) == 1
        assert f"sha256-{base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()}" in policy
    assert not [attrs for _, attrs, _ in page.elements if "style" in attrs]


# ------------------------------------------------------------------------------------------------------- text from data


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 60)
    said = np.where(rng.random((60, 5)) < 0.6, truth[:, None], rng.integers(0, 4, (60, 5)))
    r = cs.Answers.from_matrix(
        said,
        labels=HOSTILE,
        items=[f"<b onclick=alert(1)>item {n}</b>" for n in range(60)],
        workers=[f"</td><svg onload=alert({m})>" for m in range(5)],
    )
    content = {item: f"Text </script><script>alert(3)</script> --> {item}" for item in r.items.tolist()}
    return page_of(cs.fuse(r), content)


def test_text_from_data_is_inert(hostile):
    for tag, attrs, _ in hostile.elements:
        assert not [name for name in attrs if name.startswith("on")], tag
    assert len(hostile.all("script")) == 2
    assert hostile.all("img") == []
    assert hostile.all("b") != []
    assert not [attrs for attrs, _ in hostile.all("b") if attrs]
    text = hostile.text()
    for shown in (*HOSTILE, "Text </script><script>alert(3)</script> -->", "</td><svg onload=alert(4)>"):
        assert shown in text


def test_data_for_the_script_are_exact(hostile):
    data = hostile.data()
    assert sorted(data["review"]["classes"]) == sorted(HOSTILE)
    assert all(item.startswith("<b onclick") for item, _ in data["review"]["items"])


# ------------------------------------------------------------------------------------------------------------- odd data


def fuse_matrix(matrix, **more):
    return cs.fuse(cs.Answers.from_matrix(matrix, **more))


RNG = np.random.default_rng(5)
ODD = {
    "one worker": lambda: fuse_matrix(RNG.integers(0, 2, (30, 1))),
    "one item": lambda: fuse_matrix([[0, 1, 1]]),
    "one answer": lambda: fuse_matrix([[0]], labels=["a", "b"]),
    "one class": lambda: fuse_matrix(np.zeros((30, 4), int)),
    "300 classes": lambda: cs.DawidSkene(max_iter=2, tol=0, calibration="none").fit(
        cs.Answers.from_matrix(np.where(RNG.random((300, 3)) < 0.8, np.arange(300)[:, None], 7))
    ),
    "unanswered items": lambda: fuse_matrix(np.where(np.arange(40)[:, None] < 30, RNG.integers(0, 2, (40, 4)), -1)),
    "silence": lambda: fuse_matrix(
        np.where(RNG.random((90, 5)) < 0.3, (np.arange(90) % 2)[:, None], -1), abstain="answer", background=0
    ),
    "soft votes": lambda: cs.fuse(cs.Answers.from_probabilities(RNG.dirichlet([1, 1], (30, 4)))),
    "majority vote": lambda: cs.fuse(make_crowd(40), model="majority"),
    "moments": lambda: cs.fuse(make_crowd(), model="moments"),
    "no comparison": lambda: cs.DawidSkene().fit(make_crowd(40)),
    "a label that is no class": lambda: cs.fuse(
        {"item": [1, 1, 2, 2], "worker": [1, 2, 1, 2], "label": ["a", "unsure", "b", "b"]}, classes=["a", "b"]
    ),
    "one-item sequences": lambda: fuse_matrix(RNG.integers(0, 2, (20, 3)), lengths=[1] * 20),
    "everything known": lambda: cs.fuse(make_crowd(40), gold=dict.fromkeys(range(40), "cat")),
    "pandas": lambda: cs.fuse(pandas_frame()),
    "masks": lambda: cs.fuse(cs.Masks.from_arrays({w: {"a": np.pad(np.ones((5, 5), int), 4)} for w in "xyz"})),
}


def pandas_frame():
    import pandas as pd

    return pd.DataFrame({"item": [1, 1, 2, 2, 3, 3], "worker": ["a", "b"] * 3, "label": ["x", "y", "x", "x", "y", "y"]})


@functools.cache
def odd_page(name: str) -> Page:
    return page_of(ODD[name]())


@pytest.mark.parametrize("name", ODD)
def test_odd_data_make_a_page_without_odd_numbers(name):
    page = odd_page(name)
    assert not re.search(r"\b(nan|inf|None)\b", page.text().split("{", 1)[0])


@pytest.mark.parametrize(
    ("changes", "level", "badge", "headline"),
    [
        (
            {"held_out_gain": 0.0, "held_out_error": 0.01},
            "care",
            "No clear difference from majority vote",
            "About 90%",
        ),
        ({"n_differ": 0}, "care", "", "About 90%"),
        ({"top_share": 1.0, "vote_top_share": 0.5}, "care", "", "Check these labels"),
        ({"held_out_error": np.inf}, "care", "", "There are too few answers"),
        ({"informed_gain": 0.0, "alpha_low": -0.01, "alpha_high": 0.05}, "care", "", "Do not rely on"),
    ],
)
def test_every_verdict_has_its_words(fused, changes, level, badge, headline):
    model = copy.copy(fused)
    figures = {"accuracy": 0.9, "accuracy_low": 0.85, "accuracy_high": 0.95, "n_differ": 9}
    compared = dataclasses.replace(fused.comparison_, **{**figures, **changes})
    model._adopt(complete(fused, fused.result_, fused.result_.fusion_checks._replace(comparison=compared)))
    subject = View(model)
    verdict = describe_page(subject, "x")
    assert (verdict.level, verdict.badge) == (level, badge)
    assert verdict.headline.startswith(headline)
    assert all(note.problem and note.remedies for note in list_notes(subject))


def test_noise_is_called_so_and_workers_are_not_blamed():
    page = page_of(fuse_matrix(np.random.default_rng(0).integers(0, 3, (400, 6))))
    assert page.all("h1")[0][1] == "Do not rely on these labels: the answers show no signal."
    notes = list_notes(View(fuse_matrix(np.random.default_rng(0).integers(0, 3, (400, 6)))))
    assert len(notes) == 1
    assert notes[0].level == "bad"


def test_copies_and_useless_workers_are_named():
    r = make_crowd(300, 6)
    rng = np.random.default_rng(3)
    matrix = r.labels[r.label.reshape(300, 6)]
    spam = np.full(300, "cat", object)
    random = np.array(["cat", "dog", "fox"], object)[rng.integers(0, 3, 300)]
    names = ["a", "b", "c", "d", "e", "f", "twin of d", "spam", "random"]
    model = cs.fuse(cs.Answers.from_matrix(np.column_stack([matrix, matrix[:, 3], spam, random]), workers=names))
    subject = View(model)
    notes = list_notes(subject)
    text = " ".join(note.problem for note in notes)
    assert "('d', 'twin of d')" in text
    assert "2 workers answer as if by chance: 'spam', 'random'. They gave 600 of 2,700 answers." in text
    assert (
        "1 worker (11.1% of the answers) tells little, since the answers hardly depend on what is right: 'f'." in text
    )


# ---------------------------------------------------------------------------------------------- figures and their twins


def slow_counts(subject: View):
    """Return how often each worker gives each label to items of each class, one answer after the other."""
    r, q = subject.answers, subject.model.uncalibrated_posterior_
    counts = np.zeros((r.n_workers, r.n_labels, r.n_classes))
    for item in range(r.n_items):
        for answer in range(r.offsets[item], r.offsets[item + 1]):
            counts[r.worker[answer], r.label[answer]] += q[item]
    return counts


def test_confusions_are_those_of_the_answers(fused, page):
    subject, counts = View(fused), slow_counts(View(fused))
    shares = counts.sum(axis=0).T / counts.sum(axis=(0, 1))[:, None]
    chart = workers.draw_confusion(subject)
    assert chart.rows[0] == ("cat", *(f"{share:.1%}" for share in shares[0]))
    found = page.data()["confusions"]
    assert found["classes"] == found["labels"] == ["cat", "dog", "fox"]
    for worker, table in found["counts"].items():
        np.testing.assert_allclose(table, counts[int(worker)].T, atol=0.051)


def test_differences_from_the_vote(fused):
    subject, r = View(fused), make_crowd()
    differ = 0
    for item in range(r.n_items):
        votes = np.bincount(r.label[r.offsets[item] : r.offsets[item + 1]], minlength=3)
        differ += votes[fused.result_.labels.codes[item]] < votes.max()
    found = items.describe_differences(subject)
    (flows,) = find_parts(found, Table)
    assert differ == sum(n_items for _, n_items in flows.rows)
    words = find_parts(found, Text)[0].sentences[0]
    n_differ = fused.comparison_.n_differ
    assert words.startswith(
        f"{n_differ} fused labels differ from majority vote, {n_differ - differ} of them where votes"
    )
    example = find_parts(found, Widget)[0].values["items"][0]
    assert example["label"] != example["vote"]
    assert sum(n_workers for _, n_workers, _ in example["said"]) == 8


def one_answer_each():
    rng = np.random.default_rng(1)
    return {"item": range(300), "worker": rng.choice(list("abcdef"), 300), "label": rng.choice(list("xy"), 300)}


def sets_of_tags():
    return make_crowd(60, labels=("cat;dog", "cat", "dog"))


def too_few():
    return {"item": [0, 0, 1, 1, 2, 2], "worker": list("ababab"), "label": list("xxyyxy")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [one_answer_each, sets_of_tags, too_few])
def test_where_confidences_are_withheld_none_is_shown(make):
    model = cs.fuse(make())
    assert model.result_.reported_confidence is None
    page = make_page(View(model), "x")
    assert 'id="confidence"' not in page
    assert 'id="uncertain"' not in page
    assert 'class="share"' not in page
    shown = page.partition('<main id="main">')[2].partition("<script")[0]
    assert "have a confidence of" not in shown
    assert "--stop" not in shown
    if 'id="review"' in page:
        assert '<span class="muted">Fused</span>' in shown
    with pytest.raises(ParameterError, match="no chart 'confidence': nothing checks"):
        cs.chart(model, "confidence")


# ---------------------------------------------------------------------------------------- sequences, texts and networks


def test_sequences_show_every_workers_track_above_the_fused_one():
    crowd = cs.simulate.sequences(20, length=9, n_workers=4, seed=1)
    fused = cs.fuse(crowd.responses)
    example = sequences.list_examples(View(fused))[0]
    number = crowd.responses.sequences.ids.tolist().index(int(example["name"]))
    start, stop = crowd.responses.sequences.offsets[number : number + 2]
    assert [text for text, *_ in example["fused"]] == [str(name) for name in fused.labels_[start:stop]]
    r = crowd.responses
    for name, cells in example["tracks"]:
        worker = [str(each) for each in r.workers.tolist()].index(name)
        for cell, item in zip(cells, range(start, stop), strict=True):
            mine = r.worker[r.offsets[item] : r.offsets[item + 1]] == worker
            said = r.label[r.offsets[item] : r.offsets[item + 1]][mine]
            assert (cell[0] if cell else None) == (str(r.labels[said[0]]) if len(said) else None)
    page = page_of(fused)
    assert fused.explain_coupling() in page.text()
    assert "Which label follows which" in page.text()


def test_texts_show_their_spans():
    project = cs.simulate.spans(40, seed=1)
    fused = cs.fuse(project.spans)
    page = page_of(fused)
    marks = {text for attrs, text in page.all("mark") if attrs["class"] != "here"}
    spans = {f"{row['text']}{row['label']}" for row in fused.to_spans().to_pylist()}
    assert len(marks & spans) >= 5
    example = sequences.list_examples(View(fused))[0]
    texts = dict(zip(project.spans.documents.tolist(), project.spans.texts, strict=True))
    for _, pieces in [*example["readers"], ("fused", example["text"])]:
        assert "".join(text for text, *_ in pieces) in {str(text) for text in texts.values()}


def test_networks_say_what_the_graph_does():
    network = cs.simulate.network(150, seed=1)
    fused = cs.fuse(network.responses, graph=network.graph)
    sound = fused.graph_check_

    def find(**changes):
        check = dataclasses.replace(sound, **changes)
        checks = fused.result_.fusion_checks._replace(graph_check=check)
        again = renew(fused)._adopt(complete(fused, fused.result_, checks))
        return " ".join(note.problem for note in list_notes(View(again)) if note.kind == "graph")

    assert find() == ""
    assert "the same error on neighbouring items" in find(error_correlation=0.5, error_correlation_error=0.01)
    assert "may not be informative" in find(agreement=0.0, changed=0.1)
    text = page_of(fused).text()
    assert str(fused.graph_check_) in text
    assert f"{fused.coupling_:.2f}" in text


# --------------------------------------------------------------------------------------------------- content and review


def test_content_comes_from_dicts_tables_and_series(fused):
    import pandas as pd

    texts = [f"text {n}" for n in range(120)]
    for content in (
        dict(enumerate(texts)),
        {"item": list(range(120)), "text": texts},
        pd.DataFrame({"item": range(120), "text": texts}),
        pd.Series(texts, index=range(120)),
    ):
        subject = View(fused, content)
        assert subject.show(7)[0] == "text 7"
    assert View(fused, {3: "only this"}).show(7) == ("", "", "")
    with pytest.raises(InputError, match="None of the 1 item of the content occurs"):
        View(fused, {"nothing": "x"})
    with pytest.raises(InputError, match="which of them is the content"):
        View(fused, {"item": [1], "a": ["x"], "b": ["y"]})


def test_pictures_are_made_small_and_embedded(fused, tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(6):
        image.new("RGB", (900, 600), (number, 90, 200)).save(tmp_path / f"{number}.png")
    (tmp_path / "5.png").write_bytes(b"no picture")
    subject = View(fused, {n: f"{n % 6}.png" for n in range(120)}, str(tmp_path))
    shown = subject.show(3)
    head, data = shown[1].split(",")
    assert head == "data:image/jpeg;base64"
    assert image.open(io.BytesIO(base64.b64decode(data))).size == (240, 160)
    assert subject.show(5)[0] == "5.png (cannot be read)"
    page = Page(make_page(subject, "x"))
    assert page.all("img")
    assert all(attrs["src"].startswith("data:image/") and attrs["alt"] for attrs, _ in page.all("img"))


def test_items_to_review_are_those_of_next_items(fused, page):
    table = fused.next_items(50).to_pydict()
    found = page.data()["review"]
    assert found["columns"] == ["item"]
    assert [item for item, _ in found["items"]] == [str(item) for item in table["item"]]
    assert [drawn for _, drawn in found["items"]] == table["random"]
    assert page.text().count("drawn at random") >= sum(table["random"])


def test_known_items_are_not_reviewed_and_labels_come_back(tmp_path):
    """The page's script writes this file; tests/test_report_browser.py looks at the real one."""
    crowd = make_crowd(60)
    review = page_of(cs.fuse(crowd)).data()["review"]
    with (tmp_path / "gold.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*review["columns"], "label", "random"])
        for item, drawn in review["items"][:30]:
            writer.writerow([item, "cat", str(drawn).lower()])
    again = cs.fuse(crowd, gold=tmp_path / "gold.csv")
    known = {item for item, _ in review["items"][:30]}
    assert not known & {item for item, _ in page_of(again).data()["review"]["items"]}
    assert ("Known labels", "30") in [
        (fact.name, fact.shown) for fact in describe_page(View(again), "x").find(Facts)[0].facts
    ]


# --------------------------------------------------------------------------------------------------- calling it, errors


def test_models_without_answers_and_other_things_are_refused(fused, tmp_path):
    path = tmp_path / "r.html"
    with pytest.raises(ParameterError, match="must be a fitted model"):
        cs.report("model", path)
    with pytest.raises(NotFittedError):
        cs.report(cs.DawidSkene(), path)
    with pytest.raises(NotFittedError, match="holds no answers"):
        cs.report(cs.load(fused.save(tmp_path / "m.model", answers=False)), path)
    with pytest.raises(InputError, match=r"does not end in .html. Give a name such as report.html"):
        cs.report(fused, tmp_path / "r.pdf")
    with pytest.raises(InputError, match="no folder"):
        cs.report(fused, tmp_path / "nowhere" / "r.html")
    assert not path.exists()


@pytest.mark.parametrize("missing", ["jinja2", "vl_convert"])
def test_what_is_not_installed_is_named(fused, tmp_path, monkeypatch, missing):
    load_templates.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'consilience\[report\]'"):
        cs.report(fused, tmp_path / "r.html")


@pytest.fixture
def answers_file(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    r = make_crowd(40)
    with open("answers.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "worker", "label", "question"])
        for item, worker, label in zip(r.item_of_answer(), r.worker, r.label, strict=True):
            writer.writerow([f"q{item}", r.workers[worker], r.labels[label], f"What is on picture {item}?"])
    return tmp_path / "answers.csv"


def test_the_command_line_writes_reports(answers_file):
    result = run("fuse", "answers.csv", "--report", "r.html", "--content", "question", "--save", "m.model", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["files"] == {"report": "r.html", "model": "m.model"}
    assert "What is on picture" in Page(Path("r.html").read_text("utf-8")).text()
    result = run("report", "m.model", "-o", "again.html")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "again.html" in result.stdout
    result = run("report", "m.model", "-o", "again.html", "--json")
    assert json.loads(result.stdout) == {"model": "m.model", "file": "again.html", "warnings": []}
    assert Page(Path("again.html").read_text("utf-8")).all("h1") == Page(Path("r.html").read_text("utf-8")).all("h1")


def shown_command(path="r.html"):
    return next(text for _, text in Page(Path(path).read_text("utf-8")).all("pre"))


def test_the_content_of_sets_of_tags_is_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes = {"a": "x;y", "b": "x", "c": "y"}
    lines = [f"i{n},{worker},{said},text of {n}" for n in range(20) for worker, said in votes.items()]
    Path("tags.csv").write_text("\n".join(["item,worker,labels,words", *lines]) + "\n", encoding="utf-8")
    asked = ("--separator", ";", "--content", "words", "--report", "r.html")
    assert run("fuse", "tags.csv", *asked).exit_code == 0
    assert "text of 7" in Path("r.html").read_text(encoding="utf-8")


def test_the_command_of_the_page_works(answers_file):
    assert run("fuse", "answers.csv", "--report", "r.html", "-q").exit_code == 0
    Path("gold.csv").write_text("item,label,random\nq1,cat,true\n")
    result = run(*shlex.split(shown_command())[1:])
    assert result.exit_code == 0, result.stderr
    assert "1 label is known" in Path("r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--content", "question"), "--content needs --report"),
        (("--report", "r.html", "--content", "nothing"), "has no column 'nothing'"),
        (("--report", "answers.csv"), "would change the input"),
        (("--report", "report.txt"), "'report.txt' does not end in .html"),
    ],
)
def test_the_command_line_says_what_is_wrong(answers_file, arguments, words):
    result = run("fuse", "answers.csv", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Path("r.html").exists()


def test_specifications_stand_alone(fused):
    import vl_convert

    chart = cs.chart(fused, "workers")
    spec = chart.spec
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert "var(" not in json.dumps(spec)
    assert spec["config"]["axis"]["labelColor"] == charts.MUTED
    svg = vl_convert.vegalite_to_svg(spec)
    assert charts.ACCENT in svg
    assert len(re.findall(r"<line[^>]*stroke-width=\"4\"", svg)) == len(chart.rows)  # intervals
    spec["layer"].clear()
    assert chart.spec["layer"]  # another one each time
    assert str(chart) == f"{chart.title}: {chart.alt}"
    assert len(repr(chart)) < 300


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("cats/<b onclick=alert(1)>.png", "cats/%3Cb%20onclick%3Dalert%281%29%3E.png"),
        ("javascript:alert(1)//.png", None),
        (
            "data:text/html,<script>alert(1)</script>.png",
            None,
        ),
        ("//evil.example/a.png", None),
        ("javascript:alert(1)", None),
        ('https://example.org/"onclick="alert(1)', None),
    ],
)
def test_only_addresses_are_links(fused, text, href):
    page = page_of(fused, dict.fromkeys(range(120), text))
    found = {(attrs["href"], words) for attrs, words in page.all("a") if not attrs["href"].startswith("#")}
    assert found == (set() if href is None else {(href, text)})
    assert text in page.text()


# ------------------------------------------------------------------------------------------------------------ real data


def test_marks_of_direction_are_not_in_pages(tmp_path):
    """They would turn round the words beside them."""
    table = {"left": ["a\u202eb", "c"] * 5, "right": ["c", "d\u2066"] * 5, "winner": ["left", "right"] * 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        ranking = cs.rank(table, n_draws=50)
    page = write_report(ranking, str(tmp_path / "r.html"), None, "x\u202ey").read_text("utf-8")
    assert "<svg" in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)
