"""What a picture consists of: shapes, lines and texts at known places, which every painter paints.

Lengths are in pixels of a screen (1/96 inch), x to the right and y down. A mark has a role, which a
palette turns into colours, and a title: what a reader is told who points at it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tnsum.drawing._words import LINE_HEIGHT, width_of

Point: TypeAlias = tuple[float, float]
Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Role: TypeAlias = Literal[
    "contraction line", "physical line", "physical node", "contraction node", "fourth-order node",
    "behind", "dot", "block 0", "block 1", "block 2", "text", "size",
]  # fmt: skip


class Box(NamedTuple):
    """A rectangle along the axes."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, centre: Point, width: float, height: float) -> Box:
        """The box of that size with its centre there."""
        x, y = centre
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top

    @property
    def centre(self) -> Point:
        """The point in the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def grown(self, margin: float) -> Box:
        """The box with a margin around it."""
        return Box(self.left - margin, self.top - margin, self.right + margin, self.bottom + margin)


@dataclass(frozen=True)
class Line:
    """A straight line (two points), or a curve of second (three) or third order (four)."""

    points: tuple[Point, ...]
    role: Role
    title: str = ""

    @cached_property
    def box(self) -> Box:
        """A box that holds the line; of a curve, of points along it."""
        if len(self.points) == 2:
            (x0, y0), (x1, y1) = self.points
            return Box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
        xs, ys = on_curve(self.points, _ALONG_CURVE)
        return Box(float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max()))

    def moved(self, x: float, y: float) -> Line:
        """The same line elsewhere."""
        return Line(tuple((a + x, b + y) for a, b in self.points), self.role, self.title)


@dataclass(frozen=True)
class Shape:
    """A rectangle with round corners: the outline of a node, a block in it, or a dot."""

    box: Box
    corner: float
    role: Role
    title: str = ""

    def moved(self, x: float, y: float) -> Shape:
        """The same shape elsewhere."""
        return Shape(_moved(self.box, x, y), self.corner, self.role, self.title)


@dataclass(frozen=True)
class Text:
    """A line of text around a point."""

    centre: Point
    text: str
    size: float
    role: Role
    title: str = ""

    @cached_property
    def box(self) -> Box:
        """A box that holds the text, whatever the font."""
        return Box.around(self.centre, width_of(self.text, self.size), LINE_HEIGHT * self.size)

    def moved(self, x: float, y: float) -> Text:
        """The same text elsewhere."""
        centre = self.centre[0] + x, self.centre[1] + y
        return Text(centre, self.text, self.size, self.role, self.title)


Mark: TypeAlias = Line | Shape | Text

_MARGIN = 6.0
_ALONG_CURVE = np.linspace(0.0, 1.0, 17)


@dataclass(frozen=True)
class Scene:
    """Marks, in the order in which they are painted, and what the picture shows in words."""

    marks: tuple[Mark, ...]
    description: str = ""

    @cached_property
    def box(self) -> Box:
        """The part of the plane that holds all marks, with a margin."""
        boxes = [mark.box for mark in self.marks]
        if not boxes:
            return Box(0, 0, 2 * _MARGIN, 2 * _MARGIN)
        return Box(
            math.floor(min(box.left for box in boxes)),
            math.floor(min(box.top for box in boxes)),
            math.ceil(max(box.right for box in boxes)),
            math.ceil(max(box.bottom for box in boxes)),
        ).grown(_MARGIN)

    def moved(self, x: float, y: float) -> Scene:
        """The same scene elsewhere."""
        return replace(self, marks=tuple(mark.moved(x, y) for mark in self.marks))


def in_row(scenes: Sequence[Scene], gap: float = 12.0, description: str = "") -> Scene:
    """Scenes side by side, their middles at one height."""
    marks: list[Mark] = []
    right = 0.0
    for scene in scenes:
        box = scene.box
        marks += scene.moved(right - box.left, -box.centre[1]).marks
        right += box.width + gap
    return Scene(tuple(marks), description)


def in_column(scenes: Sequence[Scene], gap: float = 12.0, description: str = "") -> Scene:
    """Scenes one below the other, their middles in one vertical line."""
    marks: list[Mark] = []
    bottom = 0.0
    for scene in scenes:
        box = scene.box
        marks += scene.moved(-box.centre[0], bottom - box.top).marks
        bottom += box.height + gap
    return Scene(tuple(marks), description)


def packed(scenes: Sequence[Scene], description: str) -> Scene:
    """Scenes in rows, about as wide as high, but no row narrower than the widest scene."""
    area = sum(scene.box.width * scene.box.height for scene in scenes)
    widest = max(scene.box.width for scene in scenes)
    most = max(widest, 1.6 * math.sqrt(area))
    rows: list[list[Scene]] = [[]]
    width = 0.0
    for scene in scenes:
        if rows[-1] and width + scene.box.width > most:
            rows.append([])
            width = 0.0
        rows[-1].append(scene)
        width += scene.box.width
    return in_column([in_row(row) for row in rows], description=description)


def lone_text(text: str, size: float, role: Role = "text") -> Scene:
    """A scene of one line of text."""
    return Scene((Text((0.0, 0.0), text, size, role),), text)


def on_curve(points: Sequence[Point], t: Any) -> tuple[Any, Any]:
    """The point of a line or curve at parameter t, from 0 to 1; or the points at many."""
    level: list[tuple[Any, Any]] = list(points)
    while len(level) > 1:
        level = [((1 - t) * a[0] + t * b[0], (1 - t) * a[1] + t * b[1]) for a, b in pairwise(level)]
    return level[0]


def _moved(box: Box, x: float, y: float) -> Box:
    return Box(box.left + x, box.top + y, box.right + x, box.bottom + y)
