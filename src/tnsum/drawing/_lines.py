"""Lines between nodes: straight, bent where several join the same two, around others or the side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tnsum.drawing._faces import Face
from tnsum.drawing._graph import Edge
from tnsum.drawing._places import Places, angle_of, at_angle
from tnsum.drawing._scene import Line, Numbers, Point, on_curve

_BEND = 15.0
_TURN = 42.0
# How far the middle of a line may be from the straight one, where that would go through a node.
_WAYS_ROUND = tuple(
    side * out for out in (20.0, 35.0, 50.0, 70.0, 90.0, 115.0, 140.0) for side in (1, -1)
)
_PARTS = np.linspace(0.0, 1.0, 9)
_BESIDE = 2.0
# To look for ways round takes time with the number of nodes times that of lines.
_MANY = 300


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
    obstacles = _Obstacles(faces, centres)
    looks = places.kind == "loose" and len(faces) <= _MANY
    hit = obstacles.hit_by(pairs) if looks else set()
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
            if pair in hit and counts[pair] == 1:
                points = obstacles.passed(start, end, pair)
        found.append(Line(points, "contraction line", titles[edge.mode]))
    return found


class _Obstacles:
    """All nodes and dots: a line that goes through one would seem to join it."""

    def __init__(self, faces: Sequence[Face], centres: Sequence[Point]) -> None:
        self._centres = np.array(centres)
        halves = [(face.box.width / 2, face.box.height / 2) for face in faces]
        self._halves = np.array(halves) + _BESIDE

    def hit_by(self, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """The pairs of vertices whose straight line goes through others."""
        ends = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        hits = self._hits(self._centres[ends[:, 0]], self._centres[ends[:, 1]])
        np.put_along_axis(hits, ends, False, axis=1)
        return {pair for pair, is_hit in zip(pairs, hits.max(axis=1), strict=True) if is_hit}

    def passed(self, start: Point, end: Point, ends: tuple[int, int]) -> tuple[Point, ...]:
        """The least bent line that passes all others; the straight one if none does."""
        for out in _WAYS_ROUND:
            line = _bent(start, end, out)
            points = np.stack(on_curve(line, _PARTS), axis=1)
            hits = self._hits(points[:-1], points[1:])
            hits[:, ends] = False
            if not hits.any():
                return line
        return start, end

    def _hits(self, starts: Numbers, ends: Numbers) -> Numbers:
        """Whether each of some straight lines goes through each box."""
        # The parameters between which a line is inside a box, axis by axis.
        enters: Numbers = np.zeros(1)
        leaves: Numbers = np.ones(1)
        for axis in (0, 1):
            start, step = starts[:, axis, None], (ends - starts)[:, axis, None]
            step = np.where(step == 0, 1e-9, step)
            middle = (self._centres[:, axis] - start) / step
            half = self._halves[:, axis] / np.abs(step)
            enters, leaves = np.maximum(enters, middle - half), np.minimum(leaves, middle + half)
        hits: Numbers = enters < leaves
        return hits


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
    if len(line.points) == 2:
        return angle_of(*line.points)
    return angle_of(on_curve(line.points, t - 0.05), on_curve(line.points, t + 0.05))
