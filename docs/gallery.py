"""Sphinx extension: the three whole reports of the page `report`, made while the pages are built.

Each report is about a real crowd if its data are in `$CONSILIENCE_DATA`, and otherwise about a simulated crowd of the
same form. The title of the report and a sentence on the page say which. Reports are not committed: the licences of some
sets are not stated (benchmarks/README.md).
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sphinx.application import Sphinx

import consilience as cs
from benchmarks.real_crowds import is_present, load
from consilience.api import write_report

# The comment in report.md that is replaced by the sentence on the origin of the reports.
PLACE = "<!-- what the reports are about -->"


class Exhibit(NamedTuple):
    """One report: the name of the real set, its title, and what replaces the real set where it is absent."""

    name: str
    title: str
    simulate: Callable[[], Any]

    @property
    def is_real(self) -> bool:
        return is_present(self.name)

    def fuse(self) -> Any:
        with warnings.catch_warnings(action="ignore", category=cs.errors.DataWarning):  # the report has them
            return self.simulate() if not self.is_real else fuse_real(self.name)


def fuse_real(name: str) -> Any:
    data = load(name)
    return cs.fuse(data.responses, graph=data.graph, source_kind="models" if name == "llm_judges" else None)


def simulate_names() -> Any:
    return cs.fuse(cs.simulate.spans(400, n_workers=20, readers=5, seed=1).spans)


def simulate_judges() -> Any:
    crowd = cs.simulate.independent(419, 40, 2, accuracy=(0.4, 0.7), copycats=6, hard=0.1, seed=1)
    return cs.fuse(crowd.responses, source_kind="models")


def simulate_songs() -> Any:
    crowd = cs.simulate.network(
        700, 44, 10, degree=10, homophily=0.4, answers_per_item=4, accuracy=(0.3, 0.95), spammers=4, seed=1
    )
    return cs.fuse(crowd.responses, graph=crowd.graph)


EXHIBITS = (
    Exhibit("ner", "Names in news", simulate_names),
    Exhibit("llm_judges", "LLM judges", simulate_judges),
    Exhibit("music", "Genres of songs", simulate_songs),
)


def describe_origin() -> str:
    simulated = [f"*{exhibit.title}*" for exhibit in EXHIBITS if not exhibit.is_real]
    if not simulated:
        return "In this copy of the documentation, all three reports are about the real data."
    return (
        f"When this copy of the documentation was built, the data of {', '.join(simulated)} were absent. There the "
        "report is about a **simulated crowd** of the same form, and its title says so. The pictures show the real one."
    )


def write_reports(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    logging.getLogger("consilience").setLevel(logging.WARNING)  # a build prints no progress of fits
    folder = Path(app.outdir) / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for exhibit in EXHIBITS:
        title = exhibit.title if exhibit.is_real else f"{exhibit.title} (simulated)"
        write_report(exhibit.fuse(), str(folder / f"{exhibit.name}.html"), None, title)


def say_origin(app: Sphinx, page: str, source: list[str]) -> None:  # noqa: ARG001 (Sphinx calls it so)
    if page == "report":
        source[0] = source[0].replace(PLACE, describe_origin())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_reports)
    app.connect("source-read", say_origin)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
