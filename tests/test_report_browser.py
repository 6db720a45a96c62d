"""The report in a real browser: Chromium, driven by Playwright, without network.

These tests are skipped where there is no Chromium or no Playwright. On Debian: apt install chromium; pip install
playwright.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import consilience as cs

pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
api = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="browser tests need Chromium: apt install chromium"),
    pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning"),
]

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", 'with "quotes", and comma']
# Elements that stick out of the page, without what scrolls within it or is hidden from sight.
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
    .filter((e) => !e.closest(".scroll, svg, .sr, .skip"))
    .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map((e) => e.outerHTML.slice(0, 100))"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def crowd():
    """Return answers whose every text is hostile."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    knows = rng.random((60, 6)) < np.linspace(0.9, 0.3, 6)
    return cs.Responses.from_matrix(
        np.where(knows, truth[:, None], rng.integers(0, 3, (60, 6))),
        labels=HOSTILE,
        items=[f"<b>item {n}</b>" for n in range(60)],
        workers=[f"</td><svg onload=alert({m})>" for m in range(6)],
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    r = crowd()
    content = {item: f"{item} </script><script>alert(3)</script> " + "long" * 100 for item in r.items.tolist()}
    return cs.report(cs.fuse(r), tmp_path_factory.mktemp("report") / "report.html", content)


@pytest.fixture
def page(browser, path):
    """The report, in a browser that notes whatever is said or asked for."""
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.heard = []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on("dialog", lambda dialog: (page.heard.append(dialog.message), dialog.dismiss()))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or page.heard.append(request.url)
    )
    page.goto(path.as_uri())
    yield page
    assert page.heard == []
    context.close()


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


def test_review_by_mouse(page):
    choices = page.locator(".card.current .choices button")
    choices.nth(1).click()
    assert choices.nth(1).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Next item").click()
    assert page.inner_text("#place") == "2 of 50"
    assert page.inner_text("#done") == "1 labelled"


def test_keys_do_nothing_outside_of_the_review(page):
    page.locator("#search").press("1")
    page.locator("h1").click()
    page.keyboard.press("2")
    assert page.inner_text("#done") == "0 labelled"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(browser, path, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator("#worker-table .name").first.click()
    for details in page.locator("details").all():
        details.evaluate("(element) => { element.open = true; }")
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert (colours[0] == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()


def test_without_javascript_texts_and_tables_are_there(browser, path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("#worker-table tbody tr").count() == 6
    assert page.locator("svg.chart").count() >= 4
    assert page.locator(".card").count() == 50
    assert page.get_by_text("To label items here, allow JavaScript.").is_visible()
    assert not page.locator("#search").is_visible()
    context.close()
