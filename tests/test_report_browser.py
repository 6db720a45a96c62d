"""The report in a real browser: Chromium, driven by Playwright, without network.

`make browser` installs what these tests need. They are skipped where it is missing.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.cli.simulate import N_KNOWN, draw_demo

pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
api = pytest.importorskip("playwright.sync_api", reason="browser tests need Playwright: make browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.robust,
    pytest.mark.skipif(CHROMIUM is None, reason="browser tests need Chromium: make browser"),
    pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning"),
]

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
EXAMPLES = Path(__file__).parents[1] / "examples"
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", 'with "quotes", and comma']
# Elements that stick out of the page, without what scrolls within it or is hidden from sight.
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((e) => !e.closest(".scroll, svg, .sr, .skip"))
    .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map((e) => e.outerHTML.slice(0, 100))"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def crowd():
    """Return answers whose every text is hostile."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    knows = rng.random((60, 6)) < np.linspace(0.9, 0.3, 6)
    return cs.Answers.from_matrix(
        np.where(knows, truth[:, None], rng.integers(0, 3, (60, 6))),
        labels=HOSTILE,
        items=[f"<b>item {n}</b>" for n in range(60)],
        workers=[f"</td><svg onload=alert({m})>" for m in range(6)],
    )


def make_report(kind: str, folder: Path) -> Path:
    """Write a report: on hostile texts, on spans in texts and known labels, or on a network."""
    content = None
    if kind == "texts":
        r = crowd()
        model = cs.fuse(r)
        content = {item: f"{item} </script><script>alert(3)</script> " + "long" * 100 for item in r.items.tolist()}
    elif kind == "spans":
        model = cs.fuse(cs.read_spans(EXAMPLES / "label_studio.json"))
    else:
        made = cs.simulate.network(n_items=150, n_workers=6, n_classes=3, answers_per_item=3, seed=2)
        model = cs.fuse(made.responses, graph=made.graph)
    return cs.report(model, folder / f"{kind}.html", content)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {kind: make_report(kind, folder) for kind in ("texts", "spans", "network")}


@pytest.fixture(scope="module")
def path(paths):
    return paths["texts"]


@contextmanager
def visit(browser, path, **options):
    """Open a report in a browser without network. Nothing may be asked for, and nothing be said or complained of."""
    context = browser.new_context(**{"offline": True, "viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or heard.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert heard == []
    context.close()


def open_all(page) -> None:
    """Open all that is folded."""
    page.evaluate("() => document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    page.locator("#worker-table .name").first.click()


@pytest.fixture
def page(browser, path):
    with visit(browser, path, accept_downloads=True) as page:
        page.get_by_text("All 6 workers").click()
        yield page


def names(page) -> list[str]:
    return page.locator("#worker-table tbody tr:visible > th").all_inner_texts()


def test_nothing_is_loaded_and_no_text_runs(page):
    assert page.locator("svg.chart path").count() > 30
    assert page.locator("img").count() == 0
    assert HOSTILE[0] in page.inner_text("body")
    assert page.title().startswith("Fused labels: ")


def test_workers_are_sorted_and_searched(page):
    head = page.locator("#worker-table thead th", has_text="Accuracy")
    values = page.locator("#worker-table tbody td:nth-child(3)")
    head.get_by_role("button").click()
    down = [float(text.rstrip("%")) for text in values.all_inner_texts()]
    assert down == sorted(down, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").press("Enter")
    assert [float(text.rstrip("%")) for text in values.all_inner_texts()] == down[::-1]
    page.fill("#search", "ALERT(3)")
    assert names(page) == ["</td><svg onload=alert(3)>"]
    assert page.inner_text("#found") == "1 found"
    page.fill("#search", "")
    assert len(names(page)) == 6


def test_a_click_on_a_name_opens_a_heat_map(page):
    button = page.get_by_role("button", name="</td><svg onload=alert(2)>")
    button.click()
    heat = page.locator("table.heat")
    assert heat.locator("tbody tr").count() == 3
    assert heat.locator("thead th").all_inner_texts()[:3] == HOSTILE
    for row in range(3):
        shares = heat.locator(f"tbody tr:nth-child({row + 1}) td").all_inner_texts()
        assert abs(sum(int(text.rstrip("%") or 0) for text in shares) - 100) <= 2
    assert button.get_attribute("aria-expanded") == "true"
    button.press("Enter")
    assert heat.count() == 0


def test_review_by_keys_is_kept_and_downloaded(page, path, tmp_path):
    page.get_by_role("button", name="Start").press("Enter")
    first = page.inner_text(".card.current h3")
    page.keyboard.press("1")
    assert page.inner_text(".card.current h3") != first
    page.keyboard.press("ArrowRight")
    page.keyboard.press("2")
    page.keyboard.press("3")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    assert page.inner_text("#done") == "2 labelled"
    page.reload()
    assert page.inner_text("#done") == "2 labelled"
    assert page.get_by_role("button", name="Go on").is_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download gold.csv").click()
    assert download.value.suggested_filename == "gold.csv"
    download.value.save_as(tmp_path / "gold.csv")
    table = cs.formats.reading.read_table(tmp_path / "gold.csv").table.to_pylist()
    assert [row["label"] for row in table] == HOSTILE[:2]
    assert all(row["item"].startswith("<b>item ") and row["random"] in ("true", "false") for row in table)
    again = cs.fuse(crowd(), gold=tmp_path / "gold.csv")
    known = dict(zip(again.to_frame()["item"].to_pylist(), again.labels_, strict=True))
    assert [known[row["item"]] for row in table] == HOSTILE[:2]


@pytest.mark.parametrize("kind", ["texts", "spans", "network"])
def test_nothing_is_wider_than_a_phone(browser, paths, kind):
    with visit(browser, paths[kind], viewport={"width": 390, "height": 800}) as page:
        open_all(page)
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("kind", ["texts", "spans", "network"])
def test_every_chart_has_marks_and_a_table(browser, paths, kind):
    with visit(browser, paths[kind]) as page:
        charts = page.locator("figure:has(svg.chart)").all()
        assert len(charts) >= 5
        for chart in charts:
            assert chart.locator("svg.chart path[fill]:not([fill='none']), svg.chart line").count() > 0
            assert chart.locator("svg.chart").get_attribute("aria-label")
            assert chart.locator("tbody tr").count() > 0


# What may be seen of a report before anything is unfolded, in words (those of charts too) and pixels.
MOST_WORDS, MOST_HEIGHT = 900, 4500
WORDS = r"() => document.body.innerText.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length"


def fuse_demo():
    """Return the model of the demo, which knows some labels."""
    answers, images, _ = draw_demo()
    return cs.fuse(answers, gold=images.slice(0, N_KNOWN))


def fuse_of_gallery(name: str):
    """Return a model of the gallery of the docs, or that of the demo."""
    if name == "demo":
        return fuse_demo()
    if name == "ratings":
        return cs.fuse(Path(__file__).parent.parent / "examples" / "ratings.csv", classes=list("01234"), ordered=True)
    gallery = pytest.importorskip("docs.gallery", reason="the gallery of the docs needs Sphinx")
    return next(exhibit for exhibit in gallery.EXHIBITS if exhibit.name == name).fuse()


@pytest.mark.parametrize("name", ["demo", "llm_judges", "music", "ner", "ratings"])
def test_reports_are_short(browser, tmp_path, name):
    path = cs.report(fuse_of_gallery(name), tmp_path / "report.html")
    with visit(browser, path) as page:
        assert page.evaluate(WORDS) <= MOST_WORDS
        assert page.evaluate("document.documentElement.scrollHeight") <= MOST_HEIGHT
        paragraphs = page.locator("p:not(.content):visible").all_inner_texts()
        sentences = [words for text in paragraphs for words in text.split(". ") if len(words.split()) > 3]
        assert len(set(sentences)) == len(sentences)


@pytest.fixture(scope="module")
def axe():
    reason = "accessibility tests need axe-core: make browser"
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason).Axe()


@pytest.mark.parametrize(
    ("kind", "scheme"), [("texts", "light"), ("spans", "light"), ("network", "light"), ("spans", "dark")]
)
def test_axe_finds_no_barrier(browser, paths, axe, kind, scheme):
    with visit(browser, paths[kind], color_scheme=scheme) as page:
        open_all(page)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        found = axe.run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


def test_on_paper_all_workers_are_there_and_no_controls(page):
    page.reload()  # with all folded
    assert not page.locator("#worker-table").is_visible()
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#worker-table tbody tr").last.is_visible()
    assert not page.locator("nav").is_visible()
    assert not page.locator("#search").is_visible()
    assert not page.locator("#review").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.tall')).overflowY") == "visible"
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not page.locator("#worker-table").is_visible()


@pytest.mark.parametrize("kind", ["texts", "spans", "network"])
def test_without_javascript_texts_and_tables_are_there(browser, paths, kind):
    with visit(browser, paths[kind], java_script_enabled=False) as page:
        page.locator("summary", has_text="workers, and how each").click()
        assert page.locator("#worker-table tbody tr").first.is_visible()
        assert page.locator("svg.chart").count() >= 4
        cards = page.locator(".card")
        assert cards.count() == 50
        assert cards.last.is_visible()
        assert page.get_by_text("To label items here, allow JavaScript.").is_visible()
        assert not page.locator("#search").is_visible()
