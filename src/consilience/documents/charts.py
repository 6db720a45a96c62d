"""Charts as inline SVG, drawn by Vega-Lite through vl-convert, which no other file imports.

A chart is a Vega-Lite specification with the data in it, in the light colours of the page, so that Altair and any
editor of Vega-Lite can open it. In the page, colours are CSS variables: the same chart is light and dark. It has a text
for those who cannot see it, and the table that it was drawn from.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError, parameter_error
from ..formats.writing import replace_file
from ..kernels import Floats
from ..options import check_truth, to_path

# Names of colours in report.css; what they are there, light and dark. Text in the colour of ink can be read on heat.
COLOURS = {
    "ink": ("#1b2430", "#e7ebf0"),
    "muted": ("#566170", "#a3afbc"),
    "line": ("#e1e6eb", "#2c3640"),
    "accent": ("#1f6f8b", "#7cc6dd"),
    "other": ("#a9b4bf", "#5f6c79"),
    "care": ("#8a5a00", "#e6b450"),
    "heat": ("#6cb2ca", "#1d6a85"),
    "paper": ("#ffffff", "#12171d"),
}
INK, MUTED, LINE, ACCENT, OTHER, CARE, HEAT, PAPER = (light for light, _ in COLOURS.values())
# What they are in a notebook, where all follow from the colour of the text around the chart.
_NOTEBOOK = (
    "--ink:currentColor;--muted:currentColor;--line:rgba(128,128,128,.35);--other:#98a4b0;--care:#b97a10;"
    "--accent:color-mix(in srgb,currentColor 30%,#3a8fb7);"
    "--heat:rgba(58,143,183,.6)"
)
CHART_WIDTH = 400
# A cell of a heat map must be so wide to have a number in it; with more rows, only large shares have one.
LEAST_SIDE, FEW_ROWS = 28, 6
# The most that a label of an axis takes.
LABEL = 130

Spec = dict[str, Any]
# A name, a value, the ends of its interval, and a remark.
Interval = tuple[str, float, float, float, str]


def fill(chart: str, **values: Any) -> Any:
    """A specification of ``templates/charts.json``: what begins with $ there stands for a colour or one of the values.

    >>> fill("heat", side=30)["width"], fill("shared")["config"]["axis"]["gridColor"] == LINE
    ({'step': 30}, True)
    """
    names = {name: light for name, (light, _) in COLOURS.items()} | values

    def replace(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: replace(each) for key, each in part.items()}
        if isinstance(part, list):
            return [replace(each) for each in part]
        return names.get(part[1:], part) if isinstance(part, str) and part.startswith("$") else part

    return replace(load_specs()[chart])


@cache
def load_specs() -> dict[str, Spec]:
    """The specifications of all charts, without data."""
    specs: dict[str, Spec] = json.loads((Path(__file__).parent / "templates" / "charts.json").read_text("utf-8"))
    return specs


@dataclass(frozen=True)
class Chart:
    """A chart with what stands behind it.

    Attributes
    ----------
    title : str
        What it shows.
    alt : str
        The same in words, for those who cannot see it.
    figure : dict
        What is special to the chart in its specification.
    columns : tuple of str
        Heads of the table of its data.
    rows : sequence of tuple
        The rows of that table.
    """

    title: str
    alt: str
    figure: Spec = field(repr=False)
    columns: tuple[str, ...]
    rows: Sequence[tuple[str | int | float, ...]] = field(repr=False)

    @property
    def spec(self) -> Spec:
        """The whole specification, in Vega-Lite, for Altair and other tools."""
        head = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "title": self.title}
        shared = fill("shared") | copy.deepcopy(self.figure)
        return {**head, "description": self.alt, **shared, "background": PAPER}

    @cached_property
    def svg(self) -> str:
        """The picture for the page: with CSS variables for colours, and a text for those who cannot see it."""
        names = {pair[0]: f"var(--{name})" for name, pair in COLOURS.items()}

        def tidy(match: re.Match[str]) -> str:  # of a tag: the picture has one text, and parts of it need none
            tag = re.sub(r' (class|role|aria-[a-z]+|pointer-events|clip-path)="[^"]*"', "", match[0])
            tag = re.sub(r'(?<==")#[0-9a-f]{6}(?=")', lambda colour: names.get(colour[0], colour[0]), tag)
            tag = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)
            return "" if tag.startswith("<path") and 'd=""' in tag else tag

        svg = import_converter().vegalite_to_svg(fill("shared") | self.figure)
        svg = re.sub(r"<defs>.*?</defs>", "", svg)  # clips, whose numbers differ from picture to picture
        svg = re.sub(r"<[^>]*>", tidy, svg)
        size = re.search(r'width="[\d.]+" height="[\d.]+" viewBox="[\d. ]+"', svg)
        assert size is not None
        head = f'<svg class="chart" role="img" {size[0]} aria-label="{escape(self.alt)}">'
        return re.sub(r"^<svg[^>]*>", lambda _: head, svg)

    def __str__(self) -> str:
        return f"{self.title}: {self.alt}"

    def _repr_html_(self) -> str:
        title = f'<figcaption style="font-weight:600;margin-bottom:.4em">{escape(self.title)}</figcaption>'
        return f'<figure style="margin:.4em 0;color:inherit;{_NOTEBOOK}">{title}{self.svg}</figure>'

    def save(self, path: str | os.PathLike[str], *, dark: bool = False) -> Path:
        """Write the chart to a file, without its title.

        Parameters
        ----------
        path : str or path
            The file. Its suffix is .svg or .png.
        dark : bool, default False
            Whether it is light on a dark ground.
        """
        check_truth("dark", "save", dark)
        target = Path(to_path("path", "save", path))
        if target.suffix.lower() not in (".svg", ".png"):
            raise parameter_error("path", "save", "a file that ends in .svg or .png", str(target))
        svg, paper = self.svg, COLOURS["paper"][dark]
        for name, pair in COLOURS.items():
            svg = svg.replace(f'="var(--{name})"', f'="{pair[dark]}"')
        ground = f'<rect width="100%" height="100%" fill="{paper}"/>'
        svg = re.sub(r"^<svg([^>]*)>", rf'<svg xmlns="http://www.w3.org/2000/svg"\1>{ground}', svg)
        content = svg.encode() if target.suffix.lower() == ".svg" else import_converter().svg_to_png(svg, scale=2)
        with replace_file(target) as temporary:
            temporary.write_bytes(content)
        return target


def import_converter() -> ModuleType:
    """vl-convert, or the error that it is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise not_installed("vl-convert-python") from error
    converter: ModuleType = vl_convert
    return converter


def not_installed(package: str) -> MissingDependencyError:
    """The error that a package is missing which reports need."""
    return MissingDependencyError(
        f"Reports need {package}, which is not installed.", "Install it: pip install 'consilience[report]'"
    )


# -------------------------------------------------------------------------------------------------- kinds of charts


def leave_room(names: Sequence[str], most: int) -> int:
    """How much wider names may be in the browser, whose font is not the one that they were measured in.

    >>> leave_room(["cat"], 130), leave_room(["a" * 60], 130)
    (3, 20)
    """
    return round(0.15 * min(7 * max(map(len, names), default=0), most))


def draw_bars(title: str, alt: str, names: Sequence[str], counts: Sequence[int], x: str, y: str) -> Chart:
    """Upright bars, one for each name, in this order. As many have a name below them as there is room for."""
    table = [(name, int(count)) for name, count in zip(names, counts, strict=True)]
    ticks = max(1, min(4, int(max(counts, default=0))))  # with more, ticks could be parts of a thing
    step = -(-len(names) // max(1, CHART_WIDTH // (8 * max(map(len, names), default=1) + 24)))
    named = list(names[(len(names) - 1) % step :: step]) if names else []  # the last among them
    rows = [{"name": name, "count": count} for name, count in table]
    return Chart(title, alt, fill("bars", rows=rows, x=x, y=y, named=named, ticks=ticks), (x, y), table)


def draw_shares(title: str, alt: str, names: Sequence[str], shares: dict[str, Floats], first: str = "Class") -> Chart:
    """Lying bars, for each name one for each kind of share."""
    kinds, rows = list(shares), list[Spec]()
    for n, name in enumerate(names):
        rows += [{"name": name, "kind": kind, "share": round(float(shares[kind][n]), 6)} for kind in kinds]
    colours, left = [OTHER, ACCENT][-len(kinds) :], 2 + leave_room(names, LABEL)
    table = [(name, *(f"{shares[kind][row]:.1%}" for kind in kinds)) for row, name in enumerate(names)]
    return Chart(title, alt, fill("shares", rows=rows, kinds=kinds, colours=colours, left=left), (first, *kinds), table)


def draw_heat(
    title: str, alt: str, rows: Sequence[str], columns: Sequence[str], shares: Floats, y: str, x: str
) -> Chart:
    """A heat map of shares, whose rows sum to 1."""
    cells = [
        {"row": row, "column": column, "share": round(float(shares[i, j]), 4)}
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
    side = max(22, min(46, (CHART_WIDTH - 80) // max(len(columns), 1)))
    angle = 0 if 8 * max(map(len, columns), default=0) + 8 <= side else -40
    written = f"datum.share >= {0.005 if len(rows) <= FEW_ROWS else 0.045}"
    more = {"padding": 8 + leave_room(rows, 90), "angle": angle, "written": written}
    figure = fill("heat", rows=cells, side=side, height=min(side, 26), x=x, y=y, **more)
    if side < LEAST_SIDE:
        del figure["layer"][1]
    table = [(name, *(f"{share:.1%}" for share in line)) for name, line in zip(rows, shares.tolist(), strict=True)]
    return Chart(title, alt, figure, (y, *columns), table)


def draw_intervals(
    title: str,
    alt: str,
    heads: tuple[str, ...],
    rows: Sequence[Interval],
    domain: tuple[float, float],
    axis: Spec,
    form: str,
    more: Sequence[str] = (),
) -> Chart:
    """A point with its interval for each name; those with a remark are coloured.

    The table writes numbers in this form, and may have one more column.
    """
    values, table = list[Spec](), list[tuple[str, ...]]()
    digits = max(4, 3 - math.floor(math.log10(domain[1] - domain[0])))
    for n, (name, value, low, high, remark) in enumerate(rows):
        # A remark is on the side of the interval where there is more room, but not over the names.
        room = (low - domain[0]) / (domain[1] - domain[0]) * CHART_WIDTH
        is_left = low + high >= sum(domain) and room > 12 + 8 * len(remark)
        ends = {"value": round(value, digits), "low": round(low, digits), "high": round(high, digits)}
        values.append({"name": name, **ends, "remark": remark, "is_left": is_left})
        table.append((name, f"{value:{form}}", f"{low:{form}} to {high:{form}}", *more[n : n + 1]))
    word = None if form.endswith("%") else heads[1].removesuffix(" in levels")
    left = 2 + leave_room([row[0] for row in rows], LABEL)
    figure = fill(
        "intervals", rows=values, left=left, width=CHART_WIDTH - 60, word=word, domain=list(domain), axis=axis
    )
    return Chart(title, alt, figure, heads, table)


def draw_biases(
    title: str, alt: str, heads: tuple[str, ...], rows: Sequence[Interval], others: Sequence[float]
) -> Chart:
    """The bias of each name with its interval, on a scale with 0 in the middle, and beside it another figure."""
    width = CHART_WIDTH - 160
    # So wide that each remark has room beside its interval, on the side where there is more.
    free = [max(0.3, 1 - 2 * (8 + 7 * len(remark)) / width) for *_, remark in rows]
    needed = [min(-row[2], row[3]) / share for row, share in zip(rows, free, strict=True) if row[4]]
    reach = math.ceil(2 * max([1e-9, *needed, *(max(-low, high) for _, _, low, high, _ in rows)])) / 2
    axis = {"tickCount": 5, "labelExpr": "datum.value ? format(datum.value, '+~f') : '0'"}
    biases = draw_intervals(title, alt, heads, rows, (-reach, reach), axis, "+.2f", [f"{x:.2f}" for x in others])
    least, most = min(0, math.floor(min(others, default=0))), max(1, math.ceil(max(others, default=1)))
    points = [{"name": row[0], "x": round(x, 4)} for row, x in zip(rows, others, strict=True)]
    word, ticks = heads[3].removesuffix(" in levels"), min(most - least, 2)
    beside = fill("beside", rows=points, word=word, domain=[least, most], ticks=ticks)
    padding = biases.figure.pop("padding")
    figure = {"padding": padding, "spacing": 16, "hconcat": [{**biases.figure, "width": width}, beside]}
    return Chart(title, alt, figure, heads, biases.rows)


def draw_curve(title: str, alt: str, confidence: Floats, accuracy: Floats, sizes: NDArray[Any]) -> Chart:
    """How often labels are right against how probable they are said to be."""
    points = list(zip(confidence.tolist(), accuracy.tolist(), sizes.tolist(), strict=True))
    rows: list[Spec] = [{"line": "even", "x": end, "y": end} for end in (0.0, 1.0)]
    rows += [{"line": "right", "x": round(x, 4), "y": round(y, 4), "n": int(n)} for x, y, n in points]
    table = [(f"{x:.1%}", f"{y:.1%}", int(n)) for x, y, n in points]
    return Chart(title, alt, fill("curve", rows=rows), ("Confidence", "Share of right labels", "Items"), table)


def bin_shares(values: Floats, n_bins: int = 20) -> tuple[list[str], list[int]]:
    """How many numbers from 0 to 1 fall into each of some bins of equal width.

    >>> bin_shares(np.array([0.0, 0.2, 1.0]), 4)
    (['0-25%', '25-50%', '50-75%', '75-100%'], [2, 0, 0, 1])
    """
    place = np.minimum((values * n_bins).astype(np.int64), n_bins - 1)
    ends = [round(100 * n / n_bins) for n in range(n_bins + 1)]
    names = [f"{low}-{high}%" for low, high in pairwise(ends)]
    return names, np.bincount(place, minlength=n_bins).tolist()
