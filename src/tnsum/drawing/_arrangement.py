"""Which arrangement a connected graph gets: by what it is, whatever its names.

A lone vertex, a tree (`_trees`), a ring on a circle, a grid as a grid, everything else spread out by
springs (`_stress`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tnsum.drawing._places import DOWN, LEFT, RIGHT, UP, Neighbours, Places, at_angle
from tnsum.drawing._rows import long_ring_of
from tnsum.drawing._scene import Point
from tnsum.drawing._stress import spread
from tnsum.drawing._trees import tree_of

_LARGEST_CIRCLE = 20


def arranged(neighbours: Neighbours, n_physical: Sequence[int]) -> Places:
    """Where the vertices of a connected graph lie.

    `neighbours` are the vertices that lines join to each, `n_physical` how many physical modes end at
    each.
    """
    n = len(neighbours)
    n_lines = sum(map(len, neighbours)) // 2
    if n == 1:
        return Places(((0.0, 0.0),), (_around(n_physical[0]),), "lined up")
    if n_lines == n - 1:
        return tree_of(neighbours, n_physical)
    if n_lines == n and all(len(some) == 2 for some in neighbours):
        return _ring(neighbours)
    return _grid(neighbours, n_lines) or spread(neighbours, n_physical)


def _around(n_physical: int) -> tuple[float, ...]:
    """Directions for the physical modes of a lone node."""
    if n_physical <= 4:
        return (LEFT, RIGHT, DOWN, UP) if n_physical > 1 else (DOWN,)
    return tuple(LEFT + 360 * k / n_physical for k in range(n_physical))


def _ring(neighbours: Neighbours) -> Places:
    """The vertices of a ring on a circle, clockwise from the top; four of them as a square."""
    cycle = [0, min(neighbours[0])]
    while len(cycle) < len(neighbours):
        cycle += [other for other in neighbours[cycle[-1]] if other != cycle[-2]]
    if len(cycle) > _LARGEST_CIRCLE:
        return long_ring_of(neighbours, cycle)
    step = 360 / len(cycle)
    first = UP - 45 if len(cycle) == 4 else UP
    angles = {vertex: first + step * k for k, vertex in enumerate(cycle)}
    points = tuple(at_angle(angles[v]) for v in range(len(cycle)))
    return Places(points, tuple((angles[v],) for v in range(len(cycle))), "rigid")


def _grid(neighbours: Neighbours, n_lines: int) -> Places | None:
    """The vertices of a grid in rows and columns, or None where the graph is no grid.

    With `a` and `b` the steps from two corners of one row that are `w` apart, a vertex lies in row
    (a + b - w) / 2 and column (a - b + w) / 2. Each corner is tried as the second one, and what comes
    out is held against the lines of the graph.
    """
    n = len(neighbours)
    corners = [v for v, some in enumerate(neighbours) if len(some) == 2]
    # A strip has four corners, and no vertex of any grid more than four neighbours.
    if len(corners) != 4 or max(map(len, neighbours)) > 4:
        return None
    found = []
    from_first = _steps_from(neighbours, corners[0])
    for other in corners[1:]:
        width = from_first[other]
        steps = zip(from_first, _steps_from(neighbours, other), strict=True)
        places = [((a + b - width) / 2, (a - b + width) / 2) for a, b in steps]
        if _fits(neighbours, n_lines, places, width + 1):
            found.append(places)
    if not found:
        return None
    # Of two readings, rows or columns first, the one in which the vertices follow one another.
    rows = min(found, key=lambda places: sum(a > b for a, b in pairwise(places)))
    points: tuple[Point, ...] = tuple((column, row) for row, column in rows)
    return Places(points, ((45.0, 135.0, -45.0, -135.0),) * n, "lined up")


def _fits(
    neighbours: Neighbours, n_lines: int, places: Sequence[tuple[float, float]], width: int
) -> bool:
    """Whether lines join exactly the neighbours in a grid of that width."""
    n = len(places)
    height = n // width
    if width * height != n or n_lines != height * (width - 1) + width * (height - 1):
        return False
    wanted = {(float(row), float(column)) for row in range(height) for column in range(width)}
    one_apart = all(
        abs(places[v][0] - places[w][0]) + abs(places[v][1] - places[w][1]) == 1
        for v, some in enumerate(neighbours)
        for w in some
    )
    return one_apart and set(places) == wanted


def _steps_from(neighbours: Neighbours, start: int) -> list[int]:
    """The number of steps from one vertex to each."""
    steps = {start: 0}
    order = [start]
    for vertex in order:
        new = [other for other in neighbours[vertex] if other not in steps]
        steps.update(dict.fromkeys(new, steps[vertex] + 1))
        order += new
    return [steps[vertex] for vertex in range(len(neighbours))]
