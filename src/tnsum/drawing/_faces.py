"""What nodes look like: an outline with a name, blocks of summands in it, outlines behind it.

A face is drawn around the point (0, 0); the arrangement moves it to its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from tnsum.drawing._places import at_angle
from tnsum.drawing._scene import Box, Mark, Point, Role, Shape, Text
from tnsum.drawing._words import shortened, width_of

BlockLayout: TypeAlias = Literal["added", "side by side", "superdiagonal"]

NAME_SIZE = 12.0

_DIAMETER = 34.0
_BARE = 15.0
_BLOCK = 22.0
_GAP = 5.0
_PADDING = 9.0
_BLOCK_NAME_SIZE = 11.0
_BLOCK_TEXT_SIZE = 10.0
_WEIGHT_SIZE = 9.5
_LAYER = 4.0


@dataclass(frozen=True)
class Face:
    """The marks of a node, its outline, and the box of them all, around the point (0, 0)."""

    marks: tuple[Mark, ...]
    outline: Shape

    @cached_property
    def box(self) -> Box:
        """The box of everything, outlines behind the node included."""
        boxes = [mark.box for mark in self.marks]
        return Box(
            min(box.left for box in boxes),
            min(box.top for box in boxes),
            max(box.right for box in boxes),
            max(box.bottom for box in boxes),
        )

    def reach(self, angle: float) -> float:
        """How far it is from the centre to the outline in a direction, round corners included."""
        x, y = map(abs, at_angle(angle))
        corner = self.outline.corner
        half_width, half_height = self.box.width / 2, self.box.height / 2
        along = min(half_width / max(x, 1e-9), half_height / max(y, 1e-9))
        a, b = half_width - corner, half_height - corner
        if along * x <= a or along * y <= b:
            return along
        # The ray leaves through a corner: a circle of radius `corner` around (a, b).
        middle = a * x + b * y
        return middle + math.sqrt(max(0.0, middle**2 - a**2 - b**2 + corner**2))


@dataclass(frozen=True)
class Block:
    """A summand's part of a node: what is written in it, and its title."""

    text: str
    title: str


def plain_face(name: str, role: Role, title: str, n_behind: int = 0) -> Face:
    """A circle with a name in it, wider if the name needs it; outlines behind it for a stack."""
    text = shortened(name)
    width = max(_DIAMETER, width_of(text, NAME_SIZE) + 2 * _PADDING)
    outline = Shape(Box.around((0.0, 0.0), width, _DIAMETER), _DIAMETER / 2, role, title)
    behind: list[Mark] = [
        Shape(outline.box, outline.corner, "behind", title).moved(k * _LAYER, -k * _LAYER)
        for k in range(n_behind, 0, -1)
    ]
    label = Text((0.0, 0.0), text, NAME_SIZE, "text", title)
    shift = -n_behind * _LAYER / 2, n_behind * _LAYER / 2
    marks: list[Mark] = [*behind, outline, label]
    return Face(tuple(mark.moved(*shift) for mark in marks), outline)


def bare_face(role: Role, title: str) -> Face:
    """A small circle without a name."""
    outline = Shape(Box.around((0.0, 0.0), _BARE, _BARE), _BARE / 2, role, title)
    return Face((outline,), outline)


def dot_face(title: str) -> Face:
    """A small dot, where a mode that several nodes hold comes together."""
    dot = Shape(Box.around((0.0, 0.0), 8.0, 8.0), 4.0, "dot", title)
    return Face((dot,), dot)


def block_face(
    name: str,
    role: Role,
    title: str,
    blocks: Sequence[Block | None],
    layout: BlockLayout,
    weights: str,
) -> Face:
    """The outline of a node of a sum, with its name and blocks; None stands for those left out."""
    side = max([_BLOCK, *(_side(block.text) for block in blocks if block is not None)])
    inner = _diagonal(blocks, side) if layout == "superdiagonal" else _row(blocks, side, layout)
    content = Face(tuple(inner), Shape(Box(0, 0, 0, 0), 0, role)).box
    text = shortened(name)
    name_height = 1.3 * _BLOCK_NAME_SIZE
    weights_height = 1.4 * _WEIGHT_SIZE if weights else 0.0
    widths = (
        content.width, width_of(text, _BLOCK_NAME_SIZE), width_of(weights, _WEIGHT_SIZE)
    )  # fmt: skip
    width = max(widths) + 2 * _PADDING
    height = content.height + name_height + weights_height + 1.6 * _PADDING
    outline = Shape(Box.around((0.0, 0.0), width, height), 12.0, role, title)
    top = -height / 2 + 0.6 * _PADDING
    middle = top + name_height + content.height / 2 + 0.2 * _PADDING
    marks: list[Mark] = [outline]
    marks.append(Text((0.0, top + name_height / 2), text, _BLOCK_NAME_SIZE, "text", title))
    marks += [mark.moved(-content.centre[0], middle - content.centre[1]) for mark in inner]
    if weights:
        place = 0.0, height / 2 - 0.5 * _PADDING - weights_height / 2
        marks.append(Text(place, weights, _WEIGHT_SIZE, "size", title))
    return Face(tuple(marks), outline)


def _side(text: str) -> float:
    return width_of(text, _BLOCK_TEXT_SIZE) + 8.0


def _row(blocks: Sequence[Block | None], side: float, layout: BlockLayout) -> list[Mark]:
    """Blocks side by side, with a plus between them where arrays are simply added."""
    plus = 12.0 if layout == "added" else 0.0
    step = side + _GAP + plus
    marks: list[Mark] = []
    for k, block in enumerate(blocks):
        marks += _cell(block, k, (k * step, 0.0), side, (1.0, 0.0))
        if plus and k > 0:
            marks.append(Text(((k - 0.5) * step, 0.0), "+", NAME_SIZE, "text"))
    return marks


def _diagonal(blocks: Sequence[Block | None], side: float) -> list[Mark]:
    """Blocks along the diagonal; what is beside it is left empty."""
    step_x, step_y = side + 2.0, _BLOCK
    marks: list[Mark] = []
    for k, block in enumerate(blocks):
        place = k * step_x, k * step_y
        marks += _cell(block, k, place, side, (step_x / step_y, 1.0))
    return marks


def _cell(block: Block | None, k: int, place: Point, side: float, towards: Point) -> list[Mark]:
    """One block, or three small dots for those left out."""
    if block is None:
        dots = [Box.around((0.0, 0.0), 3.0, 3.0)] * 3
        return [
            Shape(dot, 1.5, "dot").moved(place[0] + t * towards[0], place[1] + t * towards[1])
            for dot, t in zip(dots, (-6.0, 0.0, 6.0), strict=True)
        ]
    role: Role = "block 0" if k == 0 else "block 1" if k == 1 else "block 2"
    box = Box.around(place, side, _BLOCK)
    label = Text(place, block.text, _BLOCK_TEXT_SIZE, "text", block.title)
    return [Shape(box, _BLOCK / 2, role, block.title), label]
