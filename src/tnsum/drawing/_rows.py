"""Chains, combs and long rings: a backbone in rows, with teeth above and below it.

A chain of ten vertices is one line. A longer one goes back and forth, row by row, so that a hundred
nodes still fit onto a page; the line from one row to the next leaves both to the side. A long ring is
such a chain, closed by one line along its left side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tnsum.drawing._places import DOWN, LEFT, RIGHT, UP, Neighbours, Places
from tnsum.drawing._scene import Point

_LONGEST_ROW = 10


def comb_of(neighbours: Neighbours, backbone: Sequence[int], n_physical: Sequence[int]) -> Places:
    """The vertices of `backbone` in rows, and the paths at it as teeth: one down, another one up."""
    inside = set(backbone)
    teeth = {
        vertex: [
            path_from(neighbours, vertex, other)
            for other in neighbours[vertex]
            if other not in inside
        ]
        for vertex in backbone
    }
    below = max((len(some[0]) for some in teeth.values() if some), default=0)
    above = max((len(some[1]) for some in teeth.values() if len(some) > 1), default=0)
    width = _row_length(len(backbone))
    points: dict[int, Point] = {}
    outward: dict[int, tuple[float, ...]] = {}
    # A chain of matrices: only its ends hold physical modes, one each, which go on to the side.
    only_ends = not any(n_physical[vertex] for vertex in backbone[1:-1])
    only_ends &= max(n_physical[vertex] for vertex in backbone) == 1
    for k, vertex in enumerate(backbone):
        row, column = _row_and_column(k, width)
        y = row * (1.0 + below + above)
        points[vertex] = (float(column), y)
        at_end = {0: (LEFT, DOWN, UP), len(backbone) - 1: (RIGHT, DOWN, UP)}
        is_end = only_ends and k in at_end and (k == 0 or row == 0) and not teeth[vertex]
        outward[vertex] = at_end[k] if is_end else (DOWN, UP, RIGHT, LEFT)
        for tooth, side in zip(teeth[vertex], (1, -1), strict=False):
            for step, other in enumerate(tooth, start=1):
                points[other] = (float(column), y + side * step)
                outward[other] = (DOWN, RIGHT, LEFT) if side > 0 else (UP, RIGHT, LEFT)
    turns = _turns(backbone, width)
    order = range(len(neighbours))
    return Places(
        tuple(points[v] for v in order), tuple(outward[v] for v in order), "lined up", turns
    )


def long_ring_of(neighbours: Neighbours, cycle: Sequence[int]) -> Places:
    """A ring in an even number of rows, closed along the left side."""
    n_rows = 2 * max(1, round(len(cycle) / _row_length(len(cycle)) / 2))
    width = math.ceil(len(cycle) / n_rows)
    points: dict[int, Point] = {}
    for k, vertex in enumerate(cycle):
        row, column = _row_and_column(k, width)
        points[vertex] = (float(column), float(row))
    # What is missing in the last row is missing at its end: that row is stretched to the left side.
    last = [vertex for k, vertex in enumerate(cycle) if k // width == n_rows - 1]
    for k, vertex in enumerate(last):
        share = k / max(1, len(last) - 1)
        points[vertex] = ((width - 1) * (1 - share), points[vertex][1])
    turns = _turns(cycle, width)
    turns[_pair(cycle[0], cycle[-1])] = -3.2
    order = range(len(neighbours))
    outward = ((DOWN, UP, RIGHT, LEFT),) * len(neighbours)
    return Places(tuple(points[v] for v in order), outward, "lined up", turns)


def path_from(neighbours: Neighbours, start: int, first: int) -> list[int]:
    """The vertices of a path that leaves `start` through `first`."""
    found, before = [first], start
    while following := [other for other in neighbours[found[-1]] if other != before]:
        before = found[-1]
        found.append(following[0])
    return found


def _row_length(n: int) -> int:
    """How many vertices of a backbone stand in a row."""
    longest = max(_LONGEST_ROW, math.ceil(1.1 * math.sqrt(n)))
    return math.ceil(n / math.ceil(n / longest))


def _row_and_column(k: int, width: int) -> tuple[int, int]:
    row, column = divmod(k, width)
    return row, column if row % 2 == 0 else width - 1 - column


def _turns(backbone: Sequence[int], width: int) -> dict[tuple[int, int], float]:
    """The pairs where a row ends and the next begins: at the right, then at the left, and so on."""
    ends = range(width, len(backbone), width)
    return {
        _pair(backbone[k - 1], backbone[k]): 1.0 if row % 2 == 0 else -1.0
        for row, k in enumerate(ends)
    }


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)
