"""Lines between nodes: straight, bent where several join the same two, or around the side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tnsum.drawing._faces import Face
from tnsum.drawing._graph import Edge
from tnsum.drawing._places import Places, angle_of, at_angle
from tnsum.drawing._scene import Line, Point, on_curve

_BEND = 15.0
_TURN = 42.0


def edge_lines(
    edges: Sequence[Edge],
    faces: Sequence[Face],
    centres: Sequence[Point],
    places: Places,
    titles: Mapping[str, str],
    widest: float,
) -> list[Line]:
    """One line for each edge, from centre to centre; nodes are painted over their ends.

    `widest` is the width of the widest text: a line around others leaves room for theirs.
    """
    pairs = [(min(e.start, e.end), max(e.start, e.end)) for e in edges]
    counts = Counter(pairs)
    seen: dict[tuple[int, int], int] = {}
    found = []
    points: tuple[Point, ...]
    for edge, pair in zip(edges, pairs, strict=True):
        number = seen.get(pair, 0)
        seen[pair] = number + 1
        start, end = centres[pair[0]], centres[pair[1]]
        if pair in places.turns:
            side = places.turns[pair]
            out = max(faces[v].box.width / 2 for v in pair) + _TURN * abs(side) + 2 * _BEND * number
            out += 1.5 * widest if abs(side) > 1 else 0.0
            points = _around(start, end, math.copysign(out, side))
        elif places.flows_right and start[0] != end[0]:
            shift = 2 * _BEND * (number - (counts[pair] - 1) / 2)
            left, right = pair if start[0] < end[0] else pair[::-1]
            points = _swung(centres[left], faces[left], centres[right], faces[right], shift)
        else:
            offset = (number - (counts[pair] - 1) / 2) * 2 * _BEND
            points = (start, end) if not offset else _bent(start, end, offset)
        found.append(Line(points, "contraction line", titles[edge.mode]))
    return found


def _bent(start: Point, end: Point, offset: float) -> tuple[Point, ...]:
    """A curve whose middle is that far from the straight line."""
    normal = at_angle(angle_of(start, end) - 90, 2 * offset)
    return start, ((start[0] + end[0]) / 2 + normal[0], (start[1] + end[1]) / 2 + normal[1]), end


def _around(start: Point, end: Point, out: float) -> tuple[Point, ...]:
    """A curve that leaves both ends to one side."""
    side = (max if out > 0 else min)(start[0], end[0]) + out
    return start, (side, start[1]), (side, end[1]), end


def _swung(
    left: Point, left_face: Face, right: Point, right_face: Face, shift: float
) -> tuple[Point, ...]:
    """A curve from the right side of a node to the left side of another, level at both ends."""
    start = left[0] + left_face.box.width / 2, left[1]
    end = right[0] - right_face.box.width / 2, right[1]
    middle = (start[0] + end[0]) / 2
    return start, (middle + shift, start[1]), (middle + shift, end[1]), end


def leaving_angle(line: Line, centre: Point) -> float:
    """The direction in which a line leaves the end that is nearer to a node's centre."""
    ends = math.dist(line.points[0], centre), math.dist(line.points[-1], centre)
    points = line.points if ends[0] <= ends[1] else line.points[::-1]
    return angle_of(points[0], points[1])


def tangent_angle(line: Line, t: float) -> float:
    """The direction of a line at a parameter."""
    return angle_of(on_curve(line.points, t - 0.05), on_curve(line.points, t + 0.05))
