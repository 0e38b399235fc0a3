"""The figures of a run, by matplotlib, without any state that is shared.

They are narrow, with text that is still readable when a telephone shows them in full width. All that is
neither a method's colour nor a picture is drawn in `INK`, so that a page can put its own colour there.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tnsum.experiments._points import Compared, Point
from tnsum.experiments._protocols import CONCAT, FACTORS, PIXELS, SUM
from tnsum.experiments._splits import percent
from tnsum.fusion._samples import Matrix

INK = "#1f2933"

_STYLES: dict[str, dict[str, Any]] = {
    SUM: {"color": "#3572c6", "marker": "o", "linestyle": "-"},
    CONCAT: {"color": "#d07a1f", "marker": "s", "linestyle": "--"},
    PIXELS: {"color": "#858c96", "marker": "^", "linestyle": "-."},
    FACTORS: {"color": "#2a9468", "marker": "D", "linestyle": "-"},
}

# Typed as anything: the names of settings are literals to matplotlib.
SETTINGS: Any = {
    "axes.edgecolor": INK,
    # The ground is that of the figure, which a page leaves out.
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
    # The names of parts of an SVG are drawn from this, and not from chance.
    "svg.hashsalt": "tnsum",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


def accuracy_figure(points: Sequence[Compared]) -> Figure:
    """Accuracy against the part trained on: means, with a band of one standard deviation."""
    with mpl.rc_context(SETTINGS):
        figure, axes = _new(4.8, 3.3)
        for method in points[0].methods:
            found = [point.accuracy(method) for point in points]
            means = np.array([one.mean for one in found])
            _curve(axes, points, method, means, np.array([one.std for one in found]))
        _fraction_axis(axes, points)
        axes.set_ylabel("accuracy, %")
        axes.legend(loc="best")
    return figure


def difference_figure(points: Sequence[Compared]) -> Figure:
    """Paired difference to the support vector machine on pixels, with a band of two standard errors."""
    with mpl.rc_context(SETTINGS):
        figure, axes = _new(4.8, 2.8)
        axes.axhline(0, color=INK, linewidth=0.8)
        for method in points[0].methods:
            if method != PIXELS:
                found = [point.difference(method, PIXELS) for point in points]
                means = np.array([one.mean for one in found])
                _curve(axes, points, method, means, 2 * np.array([one.error for one in found]))
        _fraction_axis(axes, points)
        axes.set_ylabel("points above SVM on pixels")
        axes.legend(loc="best")
    return figure


def objects_figure(point: Point) -> Figure:
    """Accuracy for each object that was left out; a line at the mean of each method."""
    with mpl.rc_context(SETTINGS):
        figure, axes = _new(4.8, 3.0)
        numbers = [outcome.split.number + 1 for outcome in point.outcomes]
        for method in point.methods:
            style = _STYLES[method]
            found = point.accuracies(method)
            label = f"{method}, mean {np.mean(found):.1f}"
            axes.plot(numbers, found, **{**style, "linestyle": "none"}, label=label)
            axes.axhline(
                float(np.mean(found)), color=style["color"], linewidth=0.9, ls=style["linestyle"]
            )
        axes.set_xticks(numbers)
        axes.set_xlabel("object of each class that was left out")
        axes.set_ylabel("accuracy, %")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=2, fontsize=8)
    return figure


def confusion_figure(confusion: Matrix, classes: Sequence[str]) -> Figure:
    """How many in a hundred images of each class (rows) were taken for each class (columns)."""
    rates = 100 * confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    n = len(classes)
    with mpl.rc_context(SETTINGS):
        figure, axes = _new(4.4, 4.2)
        for row, column in np.ndindex(n, n):
            rate = float(rates[row, column])
            shade = Rectangle((column - 0.5, row - 0.5), 1, 1, alpha=min(1.0, rate / 100) ** 0.6,
                              facecolor=_STYLES[SUM]["color"], edgecolor="none")  # fmt: skip
            axes.add_patch(shade)
            if rate >= 0.05:
                text = f"{rate:.1f}" if rate < 99.95 else "100"
                ink = "white" if rate > 40 else INK
                axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=ink)
        axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(n), _short(classes), rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(n), _short(classes))
        axes.set_xlabel("taken for, %")
        axes.set_ylabel("is")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    return figure


def _new(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _curve(
    axes: Axes, points: Sequence[Compared], method: str, means: Matrix, spread: Matrix
) -> None:
    x, style = [point.fraction or 0.0 for point in points], _STYLES[method]
    axes.plot(x, means, label=method, **style)
    if np.all(np.isfinite(spread)):
        if len(x) == 1:
            axes.errorbar(x, means, spread, color=style["color"], capsize=4)
        axes.fill_between(x, means - spread, means + spread, color=style["color"], alpha=0.16, lw=0)


def _fraction_axis(axes: Axes, points: Sequence[Compared]) -> None:
    x = [point.fraction or 0.0 for point in points]
    axes.set_xscale("log")
    axes.set_xticks(x, [percent(fraction) for fraction in x])
    axes.set_xticks([], minor=True)
    axes.set_xlim(x[0] / 1.25, x[-1] * 1.25)
    axes.set_xlabel("images trained on")
    axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)


def _short(names: Sequence[str]) -> list[str]:
    """Names for an axis: nothing that cannot be drawn, and no longer than there is room."""
    shown = ["".join(c if c.isprintable() else "?" for c in name) for name in names]
    return [name if len(name) <= 12 else f"{name[:11]}…" for name in shown]


def as_svg(figure: Figure) -> bytes:
    """A figure as an SVG file, the same for the same figure."""
    return _saved(figure, "svg", {"Date": None, "Creator": None})


def as_png(figure: Figure) -> bytes:
    """A figure as a PNG file, the same for the same figure."""
    return _saved(figure, "png", {"Software": None})


def as_pdf(figure: Figure) -> bytes:
    """A figure as a PDF file, the same for the same figure."""
    return _saved(figure, "pdf", {"CreationDate": None, "Creator": None, "Producer": None})


def _saved(figure: Figure, kind: str, metadata: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format=kind, dpi=160, metadata=metadata)
    return file.getvalue()


def as_inline(svg: bytes, name: str, label: str) -> str:
    """An SVG file as part of a page: in the page's colour, on its ground, with ids of its own.

    `label` is what a reader who does not see is told; it is to be escaped already.
    """
    text = svg.decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # A page knows what these are; without them it names no address at all.
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace(INK, "currentColor")
    # The ground of the whole figure is the first patch.
    ground = re.compile(r'(<g id="[\w-]*patch_1">.*?)fill: #ffffff', re.DOTALL)
    text = ground.sub(r"\1fill: none", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
