"""Figures: curves over sizes, scores of methods side by side, and gains over a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .experiment import Record, mean_of, spread_of, values_of
from .methods import (
    ALG_2,
    ALG_2_1,
    ALG_4,
    DS,
    MM,
    MV,
    MV_1,
    MV_1_SHORT,
    MV_3,
    MV_3_SHORT,
    MV_DS,
    MV_FIRST,
    MV_INSIDE,
    MV_OUTSIDE,
    ORACLE,
    OURS,
    OURS_ALONE,
    OURS_FREE,
    OURS_FREE_FULL,
    OURS_MARGINAL,
    OURS_SEQUENTIAL,
    SINGLE_BEST,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#22303c", "#b8c2cc"
RC: dict[Any, Any] = {
    "figure.dpi": 160,
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


class Look(NamedTuple):
    """How a method is drawn."""

    colour: str
    marker: str
    line: str = "-"


LOOKS = {
    SINGLE_BEST: Look("#8a97a5", "x", ":"),
    MV: Look("#8a97a5", "s"),
    MV_FIRST: Look("#8a97a5", "<"),
    MV_OUTSIDE: Look("#8a97a5", ">"),
    MV_INSIDE: Look("#8a97a5", "<"),
    MM: Look("#c05299", "v"),
    MV_DS: Look("#b39ddb", "d"),
    DS: Look("#7e5bb5", "D"),
    ALG_2: Look("#c98a1b", "^"),
    ALG_2_1: Look("#dd5b1f", "o"),
    MV_1: Look("#2f855a", "P"),
    ALG_4: Look("#dd5b1f", "p"),
    MV_3: Look("#2f855a", "P"),
    MV_1_SHORT: Look("#8cc6a5", "", ":"),
    MV_3_SHORT: Look("#8cc6a5", "", ":"),
    OURS_SEQUENTIAL: Look("#0f2f5c", "p"),
    OURS_ALONE: Look("#7aa7d9", "h"),
    OURS_MARGINAL: Look("#7aa7d9", "x"),
    OURS_FREE: Look("#2f855a", "^"),
    OURS_FREE_FULL: Look("#dd5b1f", "v"),
    OURS: Look("#1f5fa8", "*"),
    ORACLE: Look(INK, "", "--"),
}


class Panel(NamedTuple):
    """One panel of a figure of curves: the score, its title, and whether its scale is logarithmic."""

    score: str
    title: str
    log: bool = False


def draw_curves(
    records: list[Record], over: str, label: str, panels: Sequence[Panel], methods: Sequence[str]
) -> Figure:
    """Draw mean scores over a column of the records, one panel per score, with standard deviations over runs."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC):
        figure = Figure(figsize=(3.4 * len(panels), 3.7))
        axes = figure.subplots(1, len(panels), squeeze=False)
        for axis, panel in zip(axes[0], panels, strict=True):
            for shift, method in enumerate(methods):
                _draw_curve(axis, records, over, panel, method, 1 + 0.012 * (shift - len(methods) / 2))
            sizes = values_of(records, over)
            if sizes[-1] >= 30 * sizes[0]:
                axis.set_xscale("log")
            (_use_log if panel.log else _stretch)(axis)
            axis.set(xlabel=label, title=panel.title)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=min(len(labels), 5))
        figure.tight_layout(rect=(0, 0.05 + 0.055 * (1 + (len(labels) - 1) // 5), 1, 1), w_pad=2)
    return figure


def _stretch(axis: Axes) -> None:
    """Stretch the scale near 1, where the methods differ."""
    import numpy as np

    end = 1.004  # a little above 1, so that 1 itself has a place on the scale
    drawn = np.concatenate([np.asarray(line.get_ydata()) for line in axis.lines])
    low, high = max(drawn.min() - 0.03, 0.0), min(1 - 0.5 * (1 - drawn.max()), 1.0)
    axis.set_yscale("function", functions=(lambda f: -np.log(np.maximum(end - f, 1e-9)), lambda y: end - np.exp(-y)))
    axis.set_ylim(low, high)
    _set_ticks(axis, (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0))


def _use_log(axis: Axes) -> None:
    axis.set_yscale("log")
    _set_ticks(axis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0))


def _set_ticks(axis: Axes, ticks: Sequence[float]) -> None:
    """Label the ticks that lie within the limits, in plain numbers."""
    low, high = axis.get_ylim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axis.set_yticks([], minor=True)


def _draw_curve(axis: Axes, records: list[Record], over: str, panel: Panel, method: str, shift: float) -> None:
    look, points = LOOKS[method], []
    for size in values_of(records, over):
        mean = mean_of(records, panel.score, method=method, **{over: size})
        if mean is not None:
            points.append((size * shift, mean, spread_of(records, panel.score, method=method, **{over: size}) or 0.0))
    if not points:
        return
    x, y, error = zip(*points, strict=True)
    low = [min(e, 0.9 * v) for v, e in zip(y, error, strict=True)] if panel.log else error
    top = 7 if look.marker == "*" else 4
    style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ls": look.line, "ms": top}
    axis.errorbar(x, y, yerr=[low, error], lw=1.3, elinewidth=0.7, capsize=1.5, label=method, **style)


def draw_scores(
    rows: Sequence[str], scores: Mapping[str, Mapping[str, tuple[float | None, float | None]]], label: str
) -> Figure:
    """Draw scores of methods on each row of data: measured ones filled, printed ones hollow and below.

    Parameters
    ----------
    rows : sequence of str
        The labels on the left.
    scores : mapping of method to mapping of row to (measured, printed)
        A score is None where there is none.
    label : str
        The name of the score.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC):
        figure = Figure(figsize=(8.4, 1.0 + 0.62 * len(rows)))
        axis = figure.subplots()
        style: dict[str, Any]
        for place, row in enumerate(rows):
            axis.axhline(place, color=FAINT, lw=0.6, zorder=0)
            for method, by_row in scores.items():
                measured, printed = by_row.get(row, (None, None))
                look = LOOKS[method]
                colour, size = look.colour, 90 if look.marker == "*" else 30
                if measured is not None:
                    # The large star is drawn first, so that it hides no other marker.
                    style = {"s": size, "color": colour, "marker": look.marker, "zorder": 2 if size > 30 else 3}
                    axis.scatter(measured, place - 0.14, linewidths=1, **style)
                if printed is not None:
                    face: dict[str, Any] = (
                        {"color": colour} if look.marker == "x" else {"facecolors": "none", "edgecolors": colour}
                    )
                    axis.scatter(printed, place + 0.2, s=size, marker=look.marker, linewidths=1, **face)
        axis.set(yticks=range(len(rows)), yticklabels=rows, xlabel=label, ylim=(len(rows) - 0.5, -0.5))
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
        for method in scores:
            look = LOOKS[method]
            style = {"s": 90 if look.marker == "*" else 30, "color": look.colour, "marker": look.marker}
            axis.scatter([], [], label=method, **style)
        if any(printed is not None for by_row in scores.values() for _, printed in by_row.values()):
            axis.scatter([], [], s=30, facecolors="none", edgecolors=INK, marker="o", label="hollow: as printed")
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        figure.tight_layout()
    return figure


class Curve(NamedTuple):
    """One line of a figure of gains, and the point on it that is marked."""

    x: Sequence[float]
    gains: Sequence[float]
    mark: tuple[float, float]


def draw_gains(curves: Mapping[str, Curve], x_label: str, y_label: str, marked: str) -> Figure:
    """Draw gains and losses in percentage points, one line for each set of data."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC):
        figure = Figure(figsize=(7.2, 3.6))
        axis = figure.subplots()
        axis.axhline(0, color=FAINT, lw=1)
        colours = ("#c98a1b", "#dd5b1f", "#c05299", "#2f855a", "#1f5fa8")
        for (name, curve), colour in zip(curves.items(), colours, strict=False):
            axis.plot(
                curve.x, [100 * gain for gain in curve.gains], color=colour, marker="o", ms=3.5, lw=1.4, label=name
            )
            x, gain = curve.mark
            axis.scatter(x, 100 * gain, s=110, facecolors="none", edgecolors=colour, linewidths=1.5, zorder=3)
        axis.scatter([], [], s=110, facecolors="none", edgecolors=INK, linewidths=1.5, label=marked)
        axis.set(xlabel=x_label, ylabel=y_label)
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.tight_layout()
    return figure
