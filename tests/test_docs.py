"""Pages of the documentation that are put together from parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "docs"


def test_measured_tables_are_shown():
    pages = "".join(page.read_text("utf-8") for page in HERE.glob("*.md"))
    shown = re.findall(r"```{include} measured/([a-z0-9-]+)\.md\n```", pages)
    assert sorted(shown) == sorted(table.stem for table in (HERE / "measured").glob("*.md"))


def test_links_of_the_readme_lead_somewhere():
    root = Path(__file__).parents[1]
    links = re.findall(r"\]\(([^)#]+)", (root / "README.md").read_text("utf-8"))
    links += re.findall(r'(?:src|srcset|href)="([^"#]+)"', (root / "README.md").read_text("utf-8"))
    assert len(links) > 20
    assert [link for link in links if "://" not in link and not (root / link).exists()] == []


def test_pages_that_use_pandas_say_how_to_install_it():
    pages = {page.stem: page.read_text("utf-8") for page in HERE.glob("*.md")}
    using = {
        name for name, text in pages.items() if re.search(r"^(>>>|\.\.\.) .*(to_pandas\(|import pandas)", text, re.M)
    }
    assert using >= {"quickstart", "tables", "judges", "labelling-functions"}
    assert sorted(name for name in using if "`pip install pandas`" not in pages[name]) == []


def test_formulas():
    pytest.importorskip("math_core", reason="math-core turns formulas into MathML; make docs installs it")
    pytest.importorskip("sphinx")
    from docs.formulas import to_mathml

    assert to_mathml("k'", block=False) == '<math><mrow><mi>k</mi><mo lspace="0" rspace="0">\u2032</mo></mrow></math>'
    cases = to_mathml(r"\begin{cases} 1 & \text{if } a \\ 0 & \text{if not} \end{cases}", block=True)
    assert cases.startswith('<math display="block">')
    assert cases.count("<mtr>") == 2


def test_the_pages_can_be_read():
    """The cap of CONTRIBUTING.md: what `wc -w docs/*.md README.md` counts; tables in `docs/measured` are data."""
    pages = [*HERE.glob("*.md"), HERE.parent / "README.md"]
    assert sum(len(page.read_text("utf-8").split()) for page in pages) <= 38_000
