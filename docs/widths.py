"""Check that no built page is wider than a telephone: `python docs/widths.py docs/_build/html`.

Things inside a box that scrolls may be as wide as they like. This needs playwright and Chromium; without them nothing
is checked, and the output says so.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

WIDTH = 390
# The elements that reach beyond the right edge and are in no box that scrolls. Menus wait outside of the page.
TOO_WIDE = """() => {
  const page = document.documentElement.clientWidth;
  const held = e => { for (e = e.parentElement; e && e !== document.body; e = e.parentElement)
    if (getComputedStyle(e).overflowX !== "visible" && e.getBoundingClientRect().right <= page + 1) return true; };
  return [...document.querySelectorAll("article *")]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > page + 1 && !held(e))
    .map(e => `<${e.localName} class="${e.className}"> ${e.textContent.trim().replace(/\\s+/g, " ").slice(0, 60)}`)
    .slice(0, 3);
}"""


def find_wide(pages: list[Path], chromium: str) -> dict[str, list[str]]:
    """Return what is too wide on each page that has such a thing."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": WIDTH, "height": 800})
        for page in pages:
            view.goto(page.absolute().as_uri())
            if wide := view.evaluate(TOO_WIDE):
                found[page.name] = wide
        browser.close()
    return found


def main(folder: Path) -> int:
    chromium = shutil.which("chromium")
    try:
        import playwright  # noqa: F401
    except ImportError:
        chromium = None
    if chromium is None:
        print("widths of pages: not checked, since there is no playwright or no Chromium")
        return 0
    pages = sorted(folder.glob("*.html"))
    found = find_wide(pages, chromium)
    for name, elements in found.items():
        print(f"{name} is wider than {WIDTH} pixels:", *elements, sep="\n  ")
    print(f"widths of pages: {len(pages) - len(found)} of {len(pages)} fit on {WIDTH} pixels")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
