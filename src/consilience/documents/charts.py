"""Charts as inline SVG, drawn by Vega-Lite through vl-convert, which no other file imports.

A chart is a Vega-Lite specification with the data in it. `Chart.spec` is the whole of it, with colours of its own, so
Altair and any editor of Vega-Lite can open it. In the page, colours are CSS variables, which vl-convert passes on as
they are: the same chart is light and dark. It has a text for those who cannot see it, and the table that it was drawn
from.

vl-convert was chosen over matplotlib: both take about 60 ms for a chart of 12 kB, but matplotlib draws no colours that
it does not know, such as CSS variables.
"""

from __future__ import annotations

import copy
import math
import os
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_truth, to_path
from ..errors import MissingDependencyError, parameter_error
from ..formats.writing import replace_file
from ..kernels import Floats
from ..results.sureness import Reliability

# Colours, by what they mean.
INK, MUTED, LINE, ACCENT, OTHER = "var(--ink)", "var(--muted)", "var(--line)", "var(--accent)", "var(--other)"
CARE = "var(--care)"
# Text in the colour of INK can be read on it.
HEAT = "var(--heat)"
PAPER = "var(--paper)"  # behind a chart in a file
# What they are in a file, light and dark, as in report.css.
COLOURS = {
    INK: ("#1b2430", "#e7ebf0"),
    MUTED: ("#566170", "#a3afbc"),
    LINE: ("#e1e6eb", "#2c3640"),
    ACCENT: ("#1f6f8b", "#7cc6dd"),
    OTHER: ("#a9b4bf", "#5f6c79"),
    CARE: ("#8a5a00", "#e6b450"),
    HEAT: ("#6cb2ca", "#1d6a85"),
    PAPER: ("#ffffff", "#12171d"),
}
LIGHT, DARK = ({name: pair[tone] for name, pair in COLOURS.items()} for tone in (0, 1))
# What they are in a notebook, where all follow from the colour of the text around the chart.
_NOTEBOOK = (
    "--ink:currentColor;--muted:currentColor;--line:rgba(128,128,128,.35);--other:#98a4b0;--care:#b97a10;"
    "--accent:color-mix(in srgb,currentColor 30%,#3a8fb7);"
    "--heat:rgba(58,143,183,.6)"
)
WIDTH = 400
# The scale and the axis of shares.
UNIT = {"domain": [0, 1]}
QUARTERS = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]}
# A row of a chart with one row for each of several things.
ROW = 20
# A cell of a heat map must be so wide to have a number in it.
LEAST_SIDE = 28
# With more rows, only the shares that stand out have a number.
FEW_ROWS = 6
# So many remarkable dots have their name beside them.
MOST_NAMED = 12
# The most that a label of an axis takes.
LABEL = 130
FONT = "system-ui, sans-serif"

_TEXT = {"labelColor": MUTED, "titleColor": MUTED, "labelFontSize": 13}
_CONFIG = {
    "aria": False,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": LABEL,
        "labelPadding": 6,
        "ticks": False,
        "domain": False,
    },
    "legend": {**_TEXT, "symbolType": "square", "orient": "top", "title": None, "offset": 4, "columnPadding": 24},
}

Spec = dict[str, Any]
# The version that `Chart.spec` is written in.
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


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
        What is special to the chart in its specification, with colours of the page.
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

    @cached_property
    def svg(self) -> str:
        """The picture, with a text for those who cannot see it."""
        return _finish(import_converter().vegalite_to_svg(complete(self.figure)), self.alt)

    @property
    def spec(self) -> Spec:
        """The whole specification, in Vega-Lite, for Altair and other tools."""
        figure = {"$schema": SCHEMA, "title": self.title, "description": self.alt, **complete(self.figure)}
        spec: Spec = to_colours({**figure, "background": PAPER}, LIGHT)
        return spec

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
        svg = colour(self.svg, DARK if dark else LIGHT)
        content = svg.encode() if target.suffix.lower() == ".svg" else import_converter().svg_to_png(svg, scale=2)
        with replace_file(target) as temporary:
            temporary.write_bytes(content)
        return target


def colour(svg: str, palette: Mapping[str, str]) -> str:
    """Return a picture with these colours, on a ground of its own, as a file can hold it."""
    svg = re.sub(r'(?<==")var\(--[a-z]+\)(?=")', lambda found: palette.get(found[0], found[0]), svg)
    ground = f'<rect width="100%" height="100%" fill="{palette[PAPER]}"/>'
    return re.sub(r"^<svg([^>]*)>", lambda head: f'<svg xmlns="http://www.w3.org/2000/svg"{head[1]}>{ground}', svg)


def complete(figure: Spec) -> Spec:
    """Return the specification of a figure with what all charts share."""
    return {"background": "transparent", "config": _CONFIG, "padding": 2, "autosize": {"type": "pad"}, **figure}


def to_colours(part: Any, palette: Mapping[str, str]) -> Any:
    """Return a copy of a part of a specification with these colours.

    >>> to_colours({"mark": {"color": "var(--ink)"}, "values": [{"name": "a"}]}, {"var(--ink)": "#000"})
    {'mark': {'color': '#000'}, 'values': [{'name': 'a'}]}
    """
    if isinstance(part, dict):
        return {
            name: copy.deepcopy(value) if name == "values" else to_colours(value, palette)  # text of the data
            for name, value in part.items()
        }
    if isinstance(part, list):
        return [to_colours(each, palette) for each in part]
    return palette.get(part, part) if isinstance(part, str) else part


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


def _finish(svg: str, alt: str) -> str:
    svg = re.sub(r"<defs>.*?</defs>", "", svg)  # clips, whose numbers differ from picture to picture
    svg = re.sub(r"<[^>]*>", lambda tag: _tidy(tag[0]), svg)
    size = re.search(r'width="([\d.]+)" height="([\d.]+)" viewBox="([\d. ]+)"', svg)
    assert size is not None
    width, height, box = size.groups()
    head = f'<svg class="chart" role="img" width="{width}" height="{height}" viewBox="{box}"'
    return re.sub(r"^<svg[^>]*>", lambda _: f'{head} aria-label="{escape(alt)}">', svg)


def _tidy(tag: str) -> str:
    """Return a tag without what nobody sees: the picture has one text, and parts of it need none."""
    if tag.startswith("<path") and 'd=""' in tag:
        return ""
    tag = re.sub(r' (class|role|aria-[a-z]+|pointer-events|clip-path)="[^"]*"', "", tag)
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)


def widen(names: Sequence[str], most: int) -> int:
    """Return how much wider names may be in the browser, whose font is not the one that they were measured in.

    >>> widen(["cat"], 130), widen(["a" * 60], 130)
    (3, 20)
    """
    return round(0.15 * min(7 * max(map(len, names), default=0), most))


def _measure(name: str, title: str | None = None, **more: object) -> Spec:
    """Return an axis for numbers."""
    return {"field": name, "type": "quantitative", "title": title, **more}


def _name(name: str, title: str | None = None, axis: Spec | None = None, **more: object) -> Spec:
    """Return an axis for names, in the order of the rows."""
    axis = {"grid": False, **(axis or {})}
    return {"field": name, "type": "nominal", "sort": None, "title": title, "axis": axis, **more}


def _lying(names: Sequence[str], rows: list[Spec], step: int) -> Spec:
    """Return what charts share that have a row for each name."""
    return {
        "width": WIDTH - 60,
        "padding": {"left": 2 + widen(names, LABEL), "right": 2, "top": 2, "bottom": 2},
        "height": {"step": step},
        "data": {"values": rows},
    }


def choose_ticks(names: Sequence[str]) -> list[str]:
    """Return the bars that have a name below them: as many as there is room for, evenly spaced, the last among them.

    >>> choose_ticks(["1", "2", "3"]), choose_ticks([f"{n}-{n + 1}%" for n in range(9, 21)])
    (['1', '2', '3'], ['11-12%', '14-15%', '17-18%', '20-21%'])
    """
    longest = max(map(len, names), default=1)
    most = max(1, WIDTH // (8 * longest + 24))
    step = -(-len(names) // most)
    return list(names[(len(names) - 1) % step :: step]) if names else []


def draw_bars(title: str, alt: str, names: Sequence[str], counts: Sequence[int], x: str, y: str) -> Chart:
    """Return upright bars, one for each name, in this order."""
    table = [(name, int(count)) for name, count in zip(names, counts, strict=True)]
    n_ticks = max(1, min(4, int(max(counts, default=0))))  # with more, ticks could be parts of a thing
    below = {"labelAngle": 0, "values": choose_ticks(names), "labelOverlap": False}
    beside = {"tickCount": n_ticks, "labelExpr": "format(datum.value, '~s')"}
    figure = {
        "width": WIDTH,
        "height": 140,
        "data": {"values": [{"name": name, "count": count} for name, count in table]},
        "mark": {"type": "bar", "color": ACCENT, "cornerRadiusEnd": 2},
        "encoding": {
            "x": _name("name", x, below, scale={"paddingInner": 0.15}),
            "y": _measure("count", y, axis=beside),
        },
    }
    return Chart(title, alt, figure, (x, y), table)


def draw_shares(title: str, alt: str, names: Sequence[str], shares: dict[str, Floats], first: str = "Class") -> Chart:
    """Return lying bars, for each name one for each kind of share."""
    kinds = list(shares)
    rows = [
        {"name": name, "kind": kind, "share": round(float(shares[kind][row]), 6)}
        for row, name in enumerate(names)
        for kind in kinds
    ]
    colours = {"domain": kinds, "range": [OTHER, ACCENT][-len(kinds) :]}
    figure = {
        **_lying(names, rows, step=9),
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "y": _name("name", scale={"paddingInner": 0.35}),
            "yOffset": {"field": "kind", "sort": kinds},
            "x": _measure("share", axis={"format": "%", "tickCount": 4}, scale={"zero": True}, stack=None),
            "color": {"field": "kind", "type": "nominal", "scale": colours},
        },
    }
    table = [(name, *(f"{shares[kind][row]:.1%}" for kind in kinds)) for row, name in enumerate(names)]
    return Chart(title, alt, figure, (first, *kinds), table)


def draw_heat(
    title: str, alt: str, rows: Sequence[str], columns: Sequence[str], shares: Floats, y: str, x: str
) -> Chart:
    """Return a heat map of shares, whose rows sum to 1."""
    cells = [
        {"row": row, "column": column, "share": round(float(shares[i, j]), 4)}
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
    side = max(22, min(46, (WIDTH - 80) // max(len(columns), 1)))
    angle = 0 if 8 * max(map(len, columns), default=0) + 8 <= side else -40
    above = {"labelAngle": angle, "orient": "top", "labelLimit": 90, "labelOverlap": False}
    beside = {"labelLimit": 90, "titlePadding": 8 + widen(rows, 90)}
    shade = _measure("share", legend=None, scale={**UNIT, "range": [0.04, 1]})
    shaded: Spec = {"mark": {"type": "rect", "color": HEAT}, "encoding": {"fillOpacity": shade}}
    written: Spec = {
        "mark": {"type": "text", "fontSize": 12},
        "transform": [{"filter": f"datum.share >= {0.005 if len(rows) <= FEW_ROWS else 0.045}"}],
        "encoding": {"text": _measure("share", format=".0%"), "color": {"value": INK}},
    }
    figure = {
        "width": {"step": side},
        "height": {"step": min(side, 26)},
        "data": {"values": cells},
        "encoding": {"y": _name("row", y, beside), "x": _name("column", x, above)},
        "layer": [shaded, written] if side >= LEAST_SIDE else [shaded],
    }
    table = [(name, *(f"{share:.1%}" for share in line)) for name, line in zip(rows, shares.tolist(), strict=True)]
    return Chart(title, alt, figure, (y, *columns), table)


# A name, a value, the ends of its interval, and a remark.
Interval = tuple[str, float, float, float, str]


def draw_shares_right(title: str, alt: str, rows: Sequence[Interval]) -> Chart:
    """Return the accuracy of each name with its interval, on a scale that ends at 1."""
    start = min(0.75, math.floor(4 * min((low for _, _, low, _, _ in rows), default=0)) / 4)
    figure = _draw_intervals(rows, (start, 1.0), {"format": "%", "tickCount": 5})
    table = [(name, f"{value:.1%}", f"{low:.1%} to {high:.1%}") for name, value, low, high, _ in rows]
    return Chart(title, alt, figure, ("Worker", "Accuracy", "95% interval"), table)


def draw_biases(title: str, alt: str, rows: Sequence[Interval], spreads: Sequence[float]) -> Chart:
    """Return the bias of each name with its interval, on a scale with 0 in the middle, and beside it its spread."""
    width = WIDTH - 160
    # So wide that each remark has room beside its interval, on the side where there is more.
    free = [max(0.3, 1 - 2 * (8 + 7 * len(remark)) / width) for *_, remark in rows]
    needed = [min(-row[2], row[3]) / share for row, share in zip(rows, free, strict=True) if row[4]]
    reach = math.ceil(2 * max([1e-9, *needed, *(max(-low, high) for _, _, low, high, _ in rows)])) / 2
    axis = {"tickCount": 5, "labelExpr": "datum.value ? format(datum.value, '+~f') : '0'"}
    biases = _draw_intervals(rows, (-reach, reach), axis, "Bias")
    values = [{"name": row[0], "spread": round(spread, 4)} for row, spread in zip(rows, spreads, strict=True)]
    room, point = _name("name", axis={"labels": False}), {"type": "point", "filled": True, "size": 50, "opacity": 1}
    most = max(1, math.ceil(max(spreads, default=1)))
    scale, ticks = {"domain": [0, most]}, {"tickCount": min(most, 2), "format": "~f"}
    figure = {
        "padding": biases.pop("padding"),
        "spacing": 16,
        "hconcat": [
            {**biases, "width": width},
            {
                "width": 90,
                "height": biases["height"],
                "data": {"values": values},
                "mark": {**point, "color": ACCENT},
                "encoding": {
                    "y": room,
                    "x": _measure("spread", "Spread", scale=scale, axis=ticks),
                },
            },
        ],
    }
    table = [
        (name, f"{value:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{spread:.2f}")
        for (name, value, low, high, _), spread in zip(rows, spreads, strict=True)
    ]
    return Chart(title, alt, figure, ("Rater", "Bias in levels", "95% interval", "Spread in levels"), table)


def draw_scores(title: str, alt: str, rows: Sequence[Interval], ranks: Sequence[str]) -> Chart:
    """Return the score of each name with its interval, and in the table its ranks."""
    least, most = min(low for _, _, low, _, _ in rows), max(high for _, _, _, high, _ in rows)
    room = 0.04 * (most - least)
    figure = _draw_intervals(rows, (least - room, most + room), {"tickCount": 5}, "Score")
    table = [
        (name, f"{value:+.2f}", f"{low:+.2f} to {high:+.2f}", rank)
        for (name, value, low, high, _), rank in zip(rows, ranks, strict=True)
    ]
    return Chart(title, alt, figure, ("Candidate", "Score", "95% interval", "Rank"), table)


# A name, two figures, a size, and a remark if it is remarkable.
Dot = tuple[str, float, float, float, str]


def draw_dots(title: str, alt: str, dots: Sequence[Dot], x: str, y: str, size: str) -> Chart:
    """Return dots at two figures, with lines at 0; those with a remark are coloured, and the largest of them named."""
    reach = 1.1 * max((abs(dot[1]) for dot in dots), default=1) or 1
    heights = [0.0, *(dot[2] for dot in dots)]
    room = 0.1 * (max(heights) - min(heights)) or 1
    width, height = 2 * reach, max(heights) - min(heights) + 2 * room
    # Remarkable dots that have room for their name, the largest first.
    named = list[Dot]()
    for dot in sorted((dot for dot in dots if dot[-1]), key=lambda dot: -dot[3]):
        is_free = all(abs(dot[1] - near[1]) > 0.14 * width or abs(dot[2] - near[2]) > 0.06 * height for near in named)
        if is_free and len(named) < MOST_NAMED:
            named.append(dot)
    values = [
        {
            "name": dot[0],
            "x": round(dot[1], 4),
            "y": round(dot[2], 4),
            "size": dot[3],
            "remark": dot[4],
            "shown": dot[0] if dot in named else "",
        }
        for dot in dots
    ]
    colours = {"condition": {"test": "datum.remark", "value": CARE}, "value": ACCENT}
    zero = {"mark": {"type": "rule", "color": OTHER, "strokeDash": [4, 4]}}
    across = _measure("x", x, scale={"domain": [-reach, reach]}, axis={"grid": False, "tickCount": 5})
    domain = [min(heights) - room, max(heights) + room]
    up = _measure("y", y, scale={"domain": domain, "nice": False}, axis={"tickCount": 5})
    sizes = _measure("size", legend=None, scale={"range": [25, 220], "zero": True})
    points = {"mark": {"type": "point", "filled": True, "opacity": 0.8}, "encoding": {"size": sizes}}
    texts = {
        "mark": {"type": "text", "align": "left", "dx": 9, "fontSize": 12, "limit": 90},
        "encoding": {"text": {"field": "shown"}},
    }
    figure = {
        "width": WIDTH - 60,
        "height": 260,
        "layer": [
            {**zero, "data": {"values": [{"x": 0}]}, "encoding": {"x": across}},
            {**zero, "data": {"values": [{"y": 0}]}, "encoding": {"y": up}},
            {
                "data": {"values": values},
                "encoding": {"x": across, "y": up, "color": colours},
                "layer": [points, texts],
            },
        ],
    }
    table = [(name, f"{b:.2f}", f"{a:+.2f}", round(weight), remark) for name, a, b, weight, remark in dots]
    return Chart(title, alt, figure, ("Name", y, x, size, "Remarks"), table)


def _draw_intervals(
    rows: Sequence[Interval], domain: tuple[float, float], axis: Spec, title: str | None = None
) -> Spec:
    """Return a point with its interval for each name; those with a remark are coloured."""
    names, values = [name for name, *_ in rows], []
    for name, value, low, high, remark in rows:
        # A remark is on the side of the interval where there is more room, but not over the names.
        room = (low - domain[0]) / (domain[1] - domain[0]) * WIDTH
        is_left = low + high >= sum(domain) and room > 12 + 8 * len(remark)
        ends = {"value": round(value, 4), "low": round(low, 4), "high": round(high, 4)}
        values.append({"name": name, **ends, "remark": remark, "is_left": is_left})
    scale = {"domain": list(domain)}
    rule = {"type": "rule", "strokeWidth": 4, "opacity": 0.35, "strokeCap": "round"}
    point = {"type": "point", "filled": True, "size": 50, "opacity": 1}
    return {
        **_lying(names, values, step=ROW),
        "encoding": {
            "y": _name("name"),
            "color": {"condition": {"test": "datum.remark", "value": CARE}, "value": ACCENT},
        },
        "layer": [
            {"mark": rule, "encoding": {"x": _measure("low", title, scale=scale, axis=axis), "x2": {"field": "high"}}},
            {"mark": point, "encoding": {"x": _measure("value", title, scale=scale)}},
            _tell("high", title, "!datum.is_left", {"align": "left", "dx": 8}),
            _tell("low", title, "datum.is_left", {"align": "right", "dx": -8}),
        ],
    }


def _tell(end: str, title: str | None, where: str, place: Spec) -> Spec:
    """Return a layer with the remarks, at one end of the interval."""
    return {
        "transform": [{"filter": f"datum.remark && {where}"}],
        "mark": {"type": "text", "fontSize": 12, "color": CARE, **place},
        "encoding": {"x": _measure(end, title), "text": {"field": "remark"}},
    }


def draw_reliability(title: str, alt: str, confidence: Floats, accuracy: Floats, counts: NDArray[np.int64]) -> Chart:
    """Return how often labels are right against how probable they are said to be."""
    rows = [
        {"confidence": float(c), "accuracy": float(a), "items": int(n)}
        for c, a, n in zip(confidence.round(4), accuracy.round(4), counts, strict=True)
    ]
    points, diagonal = {"values": rows}, {"values": [{"confidence": end, "accuracy": end} for end in (0, 1)]}
    size = _measure("items", legend=None, scale={"range": [30, 250]})
    figure = {
        "width": 220,
        "height": 170,
        "encoding": {
            "x": _measure("confidence", "Confidence", scale=UNIT, axis=QUARTERS),
            "y": _measure("accuracy", "Share of right labels", scale=UNIT, axis=QUARTERS),
        },
        "layer": [
            {"data": diagonal, "mark": {"type": "line", "color": OTHER, "strokeDash": [4, 4]}},
            {"data": points, "mark": {"type": "line", "color": ACCENT, "strokeWidth": 1.5}},
            {
                "data": points,
                "mark": {"type": "point", "filled": True, "color": ACCENT, "opacity": 1},
                "encoding": {"size": size},
            },
        ],
    }
    table = [(f"{c:.1%}", f"{a:.1%}", int(n)) for c, a, n in zip(confidence, accuracy, counts, strict=True)]
    return Chart(title, alt, figure, ("Mean confidence", "Share of right labels", "Items"), table)


def draw_curves(title: str, alt: str, curves: Mapping[str, Reliability]) -> Chart:
    """Return how often votes are right against how probable they are said to be, for each of some classifiers."""
    rows = [
        {"name": name, "confidence": float(c), "accuracy": float(a)}
        for name, curve in curves.items()
        for c, a in zip(curve.confidence.round(4), curve.accuracy.round(4), strict=True)
    ]
    diagonal = [{"name": name, "confidence": end, "accuracy": end} for name in curves for end in (0.0, 1.0)]
    lines = {"right": rows, "even": diagonal}
    figure = {
        "data": {"values": [{**row, "line": line} for line, each in lines.items() for row in each]},
        "facet": {"field": "name", "type": "nominal", "sort": list(curves), "title": None},
        "columns": 4,
        "spec": {
            "width": 110,
            "height": 90,
            "encoding": {
                "x": _measure("confidence", "Probability", scale=UNIT, axis=QUARTERS),
                "y": _measure("accuracy", "Right", scale=UNIT, axis=QUARTERS),
            },
            "layer": [
                {
                    "transform": [{"filter": "datum.line == 'even'"}],
                    "mark": {"type": "line", "color": OTHER, "strokeDash": [4, 4]},
                },
                {
                    "transform": [{"filter": "datum.line == 'right'"}],
                    "mark": {"type": "line", "color": ACCENT, "strokeWidth": 1.5, "point": {"color": ACCENT}},
                },
            ],
        },
    }
    table = [
        (name, f"{c:.1%}", f"{a:.1%}", int(n))
        for name, curve in curves.items()
        for c, a, n in zip(curve.confidence, curve.accuracy, curve.counts, strict=True)
    ]
    return Chart(title, alt, figure, ("Classifier", "Mean probability", "Share of right votes", "Votes"), table)


def bin_counts(values: NDArray[np.int64], most: int = 12) -> tuple[list[str], list[int]]:
    """Return how often whole numbers occur, in at most so many bins: single numbers, equal bins, or growing ones.

    Bins grow if most of the numbers would fall into the first of equal bins, as where few workers give most answers.

    >>> bin_counts(np.array([1, 1, 3]))
    (['1', '2', '3'], [2, 0, 1])
    >>> bin_counts(np.array([0, 61, 99]), 3)
    (['0-49', '50-99'], [1, 2])
    >>> bin_counts(np.array([1, 2, 3, 4, 5, 900]))[0]
    ['1', '2-4', '5-9', '10-19', '20-49', '50-99', '100-199', '200-499', '500-999']
    """
    if not len(values):
        return [], []
    low, high = int(values.min()), int(values.max())
    rounds = [step * 10**power for power in range(18) for step in (1, 2, 5)]
    width = next(width for width in rounds if high // width - low // width < most)
    starts = np.arange(low // width * width, high + 1, width)
    ends = np.append(starts[1:], starts[-1] + width)
    if width > 1 and np.median(values) < ends[0]:
        for edges in ([0, *rounds], [0, *rounds[::3]]):
            first, last = bisect(edges, low) - 1, bisect(edges, high)
            starts, ends = np.array(edges[first:last]), np.array(edges[first + 1 : last + 1])
            if len(starts) <= most:
                break
    counts = np.bincount(np.searchsorted(starts, values, "right") - 1, minlength=len(starts))
    names = [
        f"{a:,}" if b == a + 1 else f"{a:,}-{b - 1:,}" for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return names, counts.tolist()


def bin_shares(values: Floats, n_bins: int = 20) -> tuple[list[str], list[int]]:
    """Return how many numbers from 0 to 1 fall into each of some bins of equal width.

    >>> bin_shares(np.array([0.0, 0.2, 1.0]), 4)
    (['0-25%', '25-50%', '50-75%', '75-100%'], [2, 0, 0, 1])
    """
    place = np.minimum((values * n_bins).astype(np.int64), n_bins - 1)
    ends = [round(100 * n / n_bins) for n in range(n_bins + 1)]
    names = [f"{low}-{high}%" for low, high in pairwise(ends)]
    return names, np.bincount(place, minlength=n_bins).tolist()
