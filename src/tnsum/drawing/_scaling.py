"""Arrangements in pixels, as small as nodes and their texts allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tnsum.drawing._faces import Face
from tnsum.drawing._graph import Edge
from tnsum.drawing._places import UP, Places, angle_of
from tnsum.drawing._scene import Numbers, Point

_SHORTEST_LINE = 30.0
_SHORTEST_SWING = 64.0
_GAP = 12.0
# The part of the lines that must be long enough where points may be moved.
_LONG_LINES = 0.8
_MOST_PUSHES = 20
_ROOM = 95.0
_MANY = 31
# A line that ends nowhere, with its text below it.
_STUB_ROOM = 38.0


def pixels_of(
    places: Places,
    faces: Sequence[Face],
    edges: Sequence[Edge],
    edge_widths: Sequence[float],
    stub_widths: Sequence[float],
) -> list[Point]:
    """The centre of each vertex in pixels, as near to one another as nodes and texts allow.

    `edge_widths` are the widths of the texts at lines, `stub_widths` for each vertex that of the widest
    text at a line that ends there, or zero.
    """
    straight = [
        (edge, width)
        for edge, width in zip(edges, edge_widths, strict=True)
        if (min(edge.start, edge.end), max(edge.start, edge.end)) not in places.turns
    ]
    if places.kind == "lined up":
        scale_x, scale_y = _scales(places, faces, straight, stub_widths)
        return [(scale_x * x, scale_y * y) for x, y in places.points]
    along = _along_lines(places, faces, [edge for edge, _ in straight])
    if places.kind == "rigid":
        scale = max([_apart(places, faces), *along])
        return [(scale * x, scale * y) for x, y in places.points]
    # A few lines may be short, and few nodes too near: these are moved apart, one by one.
    points, halves = np.array(places.points), _halves(faces)
    scale = max(float(np.quantile(along, _LONG_LINES)), _for_texts(points, halves))
    return _moved_apart(scale * points, halves)


def _scales(
    places: Places,
    faces: Sequence[Face],
    straight: Sequence[tuple[Edge, float]],
    stub_widths: Sequence[float],
) -> tuple[float, float]:
    """The pixels of a unit to the right and of a unit down, of points in rows and columns."""
    boxes = [face.box for face in faces]
    wanted = [1.0], [1.0]
    for edge, text_width in straight:
        x, y = _steps(places, edge)
        width = (boxes[edge.start].width + boxes[edge.end].width) / 2
        height = (boxes[edge.start].height + boxes[edge.end].height) / 2
        if x and (not y or places.flows_right):
            room = max(text_width + 18, _SHORTEST_SWING if y else _SHORTEST_LINE)
            wanted[0].append((width + room) / x)
        if y and not places.flows_right:
            wanted[1].append((height + _SHORTEST_LINE) / y)
    for axis in (0, 1):
        for one, other in _next_to_each_other(places, axis):
            distance = abs(places.points[one][axis] - places.points[other][axis])
            if axis == 0:
                stubs = (stub_widths[one] + stub_widths[other]) / 2
                room = max((boxes[one].width + boxes[other].width) / 2, stubs) + _GAP
            else:
                room = (boxes[one].height + boxes[other].height) / 2
                if places.flows_right:
                    # Lines that end at a leaf go on to the right, those at others up.
                    has_stub = bool(stub_widths[other]) and places.outward[other][0] == UP
                    room += _GAP / 2
                else:
                    has_stub = bool(stub_widths[one] or stub_widths[other])
                    room += _GAP
                room += _STUB_ROOM if has_stub else 0
            wanted[axis].append(room / distance)
    return max(wanted[0]), max(wanted[1])


def _steps(places: Places, edge: Edge) -> tuple[float, float]:
    one, other = places.points[edge.start], places.points[edge.end]
    return abs(one[0] - other[0]), abs(one[1] - other[1])


def _next_to_each_other(places: Places, axis: int) -> list[tuple[int, int]]:
    """Pairs of vertices that follow one another along an axis, at one place of the other axis."""
    lines: dict[float, list[int]] = {}
    for vertex, point in enumerate(places.points):
        lines.setdefault(round(point[1 - axis], 6), []).append(vertex)
    pairs: list[tuple[int, int]] = []
    for line in lines.values():
        line.sort(key=lambda v: places.points[v][axis])
        pairs += pairwise(line)
    return pairs


def _halves(faces: Sequence[Face]) -> Numbers:
    return np.array([(face.box.width / 2, face.box.height / 2) for face in faces])


def _apart(places: Places, faces: Sequence[Face]) -> float:
    """The scale at which no two nodes overlap."""
    points, halves = np.array(places.points), _halves(faces)
    apart = np.abs(points[:, None, :] - points[None, :, :])
    room = halves[:, None, :] + halves[None, :, :] + _GAP
    # Boxes are apart as soon as they are along one of the axes.
    needed = (room / np.maximum(apart, 1e-6)).min(axis=2)
    np.fill_diagonal(needed, 0)
    return float(needed.max())


def _for_texts(points: Numbers, halves: Numbers) -> float:
    """The scale at which each of many nodes has the room around it that its lines and texts need."""
    if len(points) < _MANY:
        return 0.0
    # The more nodes there are, the more lines of others pass by.
    room = _ROOM * (1 + len(points) / 400)
    wanted = (2 * halves + room).prod(axis=1).sum()
    return math.sqrt(wanted / max(float(np.ptp(points, axis=0).prod()), 1.0))


def _moved_apart(points: Numbers, halves: Numbers) -> list[Point]:
    """Points with boxes that overlap pushed apart, again and again, along the axis where it is less."""
    room = halves[:, None, :] + halves[None, :, :] + _GAP
    for _ in range(_MOST_PUSHES):
        apart = points[:, None, :] - points[None, :, :]
        overlap = room - np.abs(apart)
        np.einsum("iik->ik", overlap)[:] = 0
        both = (overlap > 0).all(axis=2)
        if not both.any():
            break
        along_x = both & (overlap[:, :, 0] <= overlap[:, :, 1])
        push = np.stack([along_x, both & ~along_x], axis=2) * overlap
        # Of two at one place the earlier one goes to the left and up.
        order = np.sign(np.arange(len(points))[:, None] - np.arange(len(points)))[:, :, None]
        sign = np.where(apart == 0, order, np.sign(apart))
        points = points + 0.55 * (push * sign).sum(axis=1)
    return [(float(x), float(y)) for x, y in points]


def _along_lines(places: Places, faces: Sequence[Face], edges: Sequence[Edge]) -> list[float]:
    """For each line the scale at which it can be seen."""
    found = []
    for edge in edges:
        start, end = places.points[edge.start], places.points[edge.end]
        angle = angle_of(start, end)
        covered = faces[edge.start].reach(angle) + faces[edge.end].reach(angle)
        found.append((covered + _SHORTEST_LINE) / max(math.dist(start, end), 1e-6))
    return found
