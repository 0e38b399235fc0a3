"""How many pixels a unit of an arrangement is, at least, so that nodes and their texts have room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tnsum.drawing._faces import Face
from tnsum.drawing._graph import Edge
from tnsum.drawing._places import Places, angle_of

_SHORTEST_LINE = 30.0
_SHORTEST_SWING = 64.0
_GAP = 12.0
# A line that ends nowhere, with its text below it.
_STUB_ROOM = 38.0


def scales_of(
    places: Places,
    faces: Sequence[Face],
    edges: Sequence[Edge],
    edge_widths: Sequence[float],
    stub_widths: Sequence[float],
) -> tuple[float, float]:
    """The pixels of a unit to the right and of a unit down.

    `edge_widths` are the widths of the texts at lines, `stub_widths` for each vertex that of the widest
    text at a line that ends there, or zero.
    """
    straight = [
        (edge, width)
        for edge, width in zip(edges, edge_widths, strict=True)
        if (min(edge.start, edge.end), max(edge.start, edge.end)) not in places.turns
    ]
    if places.is_rigid:
        scale = max(_apart(places, faces), _along_lines(places, faces, [e for e, _ in straight]))
        return scale, scale
    boxes = [face.box for face in faces]
    wanted = [1.0], [1.0]
    for edge, text_width in straight:
        x, y = _steps(places, edge)
        width = (boxes[edge.start].width + boxes[edge.end].width) / 2
        height = (boxes[edge.start].height + boxes[edge.end].height) / 2
        if x and (not y or places.flows_right):
            room = max(text_width + 14, _SHORTEST_SWING if y else _SHORTEST_LINE)
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
                has_stub = not places.flows_right and (stub_widths[one] or stub_widths[other])
                room = (boxes[one].height + boxes[other].height) / 2
                room += _GAP / (2 if places.flows_right else 1) + (_STUB_ROOM if has_stub else 0)
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


def _apart(places: Places, faces: Sequence[Face]) -> float:
    """The scale at which no two nodes overlap."""
    points = np.array(places.points)
    halves = np.array([(face.box.width / 2, face.box.height / 2) for face in faces])
    apart = np.abs(points[:, None, :] - points[None, :, :])
    room = halves[:, None, :] + halves[None, :, :] + _GAP
    # Boxes are apart as soon as they are along one of the axes.
    needed = (room / np.maximum(apart, 1e-6)).min(axis=2)
    np.fill_diagonal(needed, 0)
    return float(needed.max())


def _along_lines(places: Places, faces: Sequence[Face], edges: Sequence[Edge]) -> float:
    """The scale at which every line can be seen."""
    found = 1.0
    for edge in edges:
        start, end = places.points[edge.start], places.points[edge.end]
        angle = angle_of(start, end)
        length = max(float(np.hypot(*np.subtract(start, end))), 1e-6)
        covered = faces[edge.start].reach(angle) + faces[edge.end].reach(angle)
        found = max(found, (covered + _SHORTEST_LINE) / length)
    return found
