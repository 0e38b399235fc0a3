"""Where the vertices of one connected graph lie, in units that are turned into pixels later.

`Places` are what every arrangement gives: a point for each vertex, the directions in which lines that
end nowhere should leave it, the best first, and what scaling may do to them. Angles are in
degrees, 0 to the right and 90 down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tnsum.drawing._scene import Point

Neighbours: TypeAlias = Sequence[Sequence[int]]

RIGHT, DOWN, LEFT, UP = 0.0, 90.0, 180.0, -90.0


@dataclass(frozen=True)
class Places:
    """Where vertices lie.

    Attributes
    ----------
    points : tuple of Point
    outward : tuple of tuple of float
        For each vertex the directions for lines that end nowhere, the best first.
    kind : {"lined up", "rigid", "loose"}
        Whether points lie in rows and columns, whose axes are scaled apart; or both axes are scaled
        alike, so that a circle stays one; or points may be moved a little besides.
    turns : mapping of (int, int) to float
        Pairs of vertices, the smaller first, whose line leaves both to one side: how far, to the
        right if positive.
    flows_right : bool
        Whether lines go from left to right, not from top to bottom.
    """

    points: tuple[Point, ...]
    outward: tuple[tuple[float, ...], ...]
    kind: Literal["lined up", "rigid", "loose"]
    turns: Mapping[tuple[int, int], float] = field(default_factory=dict)
    flows_right: bool = False


def at_angle(angle: float, radius: float = 1.0) -> Point:
    """The point in that direction."""
    turn = math.radians(angle)
    return radius * math.cos(turn), radius * math.sin(turn)


def angle_of(start: Point, end: Point) -> float:
    """The direction from one point to another, from -180 to 180."""
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))


def between(one: float, other: float) -> float:
    """How far apart two directions are, from 0 to 180."""
    return abs((one - other + 180) % 360 - 180)
