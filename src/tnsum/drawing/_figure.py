"""A scene as a matplotlib figure, for papers: PDF, SVG, PNG.

Everything is a patch in the coordinates of the axes, texts too: they are outlines of letters of DejaVu
Sans, which matplotlib brings along. So a picture looks the same at any size, and nothing that was apart
comes to overlap.
"""

from __future__ import annotations

import io
from functools import cache

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from tnsum.drawing._palette import LINE_WIDTH, OUTLINE_WIDTH, palette_of
from tnsum.drawing._scene import Line, Mark, Point, Scene, Shape, Text
from tnsum.errors import NetworkError

_PIXELS_PER_INCH = 96.0
# Twice as fine as a screen.
_DPI = 192
_POINTS_PER_PIXEL = 0.75
_BASE_LINE = 0.36
# The part of a radius at which a curve of third order is nearest to a quarter of a circle.
_CIRCLE = 0.5523
_CURVES = {2: Path.LINETO, 3: Path.CURVE3, 4: Path.CURVE4}
# What letters are replaced by that DejaVu Sans does not have.
_UNKNOWN = "\N{WHITE SQUARE}"


def painted(scene: Scene, ax: Axes | None, theme: str) -> Axes:
    """The axes with a scene, in a figure of pyplot's if none are given (see `tnsum.draw`)."""
    if ax is None:
        from matplotlib import pyplot

        ax = _filling(pyplot.figure(figsize=_size(scene)))
    elif not isinstance(ax, Axes):
        raise NetworkError(f"ax must be a matplotlib Axes; {type(ax).__name__} came.")
    _paint(scene, ax, theme)
    return ax


def figure_of(scene: Scene, theme: str = "light") -> Figure:
    """A figure with a scene, which nobody but the caller knows of."""
    figure = Figure(figsize=_size(scene))
    _paint(scene, _filling(figure), theme)
    return figure


def file_of(figure: Figure, kind: str, ground: str) -> bytes:
    """A figure as a PDF, SVG or PNG file, the same for the same figure."""
    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}[kind]
    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "tnsum"}):
        figure.savefig(file, format=kind, dpi=_DPI, facecolor=ground, metadata=dates)
    return file.getvalue()


def _size(scene: Scene) -> tuple[float, float]:
    return scene.box.width / _PIXELS_PER_INCH, scene.box.height / _PIXELS_PER_INCH


def _filling(figure: Figure) -> Axes:
    # Not seen, unless somebody who saves the figure asks for a colour.
    figure.set_facecolor("none")
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _paint(scene: Scene, ax: Axes, theme: str) -> None:
    palette, box = palette_of(theme), scene.box
    ax.set_axis_off()
    # Up is positive for matplotlib.
    ax.set(xlim=(box.left, box.right), ylim=(-box.bottom, -box.top), aspect="equal")
    for order, mark in enumerate(scene.marks):
        ink = palette[mark.role]
        width = LINE_WIDTH if isinstance(mark, Line) else OUTLINE_WIDTH
        patch = PathPatch(
            _path(mark),
            facecolor=ink.fill or "none",
            edgecolor=ink.line or "none",
            linewidth=_POINTS_PER_PIXEL * width if ink.line else 0.0,
            zorder=2 + order / len(scene.marks),
        )
        # The limits are known: to look for them anew at each patch takes most of the time.
        ax.add_artist(patch)


def _path(mark: Mark) -> Path:
    if isinstance(mark, Line):
        codes = [Path.MOVETO, *[_CURVES[len(mark.points)]] * (len(mark.points) - 1)]
        return Path([(x, -y) for x, y in mark.points], codes)
    return _rounded(mark) if isinstance(mark, Shape) else _outlines(mark)


def _rounded(mark: Shape) -> Path:
    """A rectangle whose corners are quarters of circles."""
    centre, corner = mark.box.centre, mark.corner
    half = mark.box.width / 2, mark.box.height / 2
    inner = half[0] - corner, half[1] - corner
    bend = (1 - _CIRCLE) * corner
    vertices: list[Point] = []
    for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        # Counter-clockwise around one corner after the other.
        level, upright = (x * half[0], y * inner[1]), (x * inner[0], y * half[1])
        bends = (x * half[0], y * (half[1] - bend)), (x * (half[0] - bend), y * half[1])
        quarter = [level, *bends, upright]
        vertices += quarter if x * y > 0 else quarter[::-1]
    codes = [Path.LINETO, *[Path.CURVE4] * 3] * 4
    codes[0] = Path.MOVETO
    moved = [(centre[0] + x, -centre[1] + y) for x, y in [*vertices, vertices[0]]]
    return Path(moved, [*codes, Path.CLOSEPOLY])


def _outlines(mark: Text) -> Path:
    """The outlines of a text's letters, around its centre; names are drawn as they are, not as maths."""
    found, codes = text_to_path.get_text_path(_font(), drawable(mark.text), ismath=False)
    if not len(codes):
        return Path(np.empty((0, 2)))
    vertices = np.asarray(found) * (mark.size / text_to_path.FONT_SCALE)
    x, y = mark.centre
    middle = (vertices[:, 0].min() + vertices[:, 0].max()) / 2
    vertices += x - middle, -(y + _BASE_LINE * mark.size)
    return Path(vertices, codes)


def drawable(text: str) -> str:
    """A text without letters that DejaVu Sans does not have."""
    return "".join(letter if ord(letter) in _letters() else _UNKNOWN for letter in text)


@cache
def _font() -> FontProperties:
    return FontProperties(family="DejaVu Sans")


@cache
def _letters() -> frozenset[int]:
    """What DejaVu Sans has letters for."""
    return frozenset(FT2Font(findfont(_font())).get_charmap())
