"""Copy measured tables into the pages that show them: `python docs/fill_tables.py`.

Benchmarks write their tables to docs/measured. A page holds a copy of a table between two comments, so that it can be
read where pages are not built:

    <!-- measured/gold.md -->
    ...
    <!-- end -->

A test says which pages are out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
COPY = re.compile(r"<!-- (measured/[a-z0-9-]+\.md) -->\n.*?<!-- end -->", re.DOTALL)


def fill(text: str) -> str:
    """Return the text of a page with its tables as they were measured last."""
    return COPY.sub(
        lambda found: f"<!-- {found[1]} -->\n\n{(HERE / found[1]).read_text('utf-8').strip()}\n\n<!-- end -->", text
    )


def find_stale() -> dict[Path, str]:
    """Return the pages whose tables are out of date, with the text that they should have."""
    texts = {page: page.read_text("utf-8") for page in sorted(HERE.glob("*.md"))}
    return {page: fill(text) for page, text in texts.items() if fill(text) != text}


if __name__ == "__main__":
    for page, text in find_stale().items():
        page.write_text(text, "utf-8")
        print(f"renewed {page.name}")
