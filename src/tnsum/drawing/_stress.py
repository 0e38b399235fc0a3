"""Where the vertices of any graph lie: distances in the plane like those along the lines.

Springs join all pairs of vertices, each as long as the shortest way between the two in the graph, and
the weaker the longer it is. Their energy is made smaller step by step (stress majorisation: each step
minimises a quadratic bound of it, so that it never grows), a fixed number of times, from the plane in
which the distances spread most. Chance only moves vertices apart that would start at one place, and its
seed is fixed: a graph looks the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tnsum.drawing._places import Neighbours, Places, angle_of
from tnsum.drawing._scene import Numbers, Point

_STEPS = 40
# Each step takes time with the square of the number of vertices.
_MANY = 300
_STEPS_FOR_MANY = 20
_SEED = 0


def spread(neighbours: Neighbours, n_physical: Sequence[int]) -> Places:
    """The vertices of a connected graph, neighbours about one unit apart."""
    distances = _distances(neighbours)
    found = _majorised(_start(distances), distances)
    places = given([(float(x), float(y)) for x, y in found], n_physical)
    return replace(places, kind="loose")


def given(points: Sequence[Point], n_physical: Sequence[int]) -> Places:
    """Vertices at places that are known; physical modes lead away from the middle."""
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    centred = [(a - x, b - y) for a, b in points]
    outward = tuple(_away(p, n) for p, n in zip(centred, n_physical, strict=True))
    return Places(tuple(centred), outward, "rigid")


def _away(point: Point, n_physical: int) -> tuple[float, ...]:
    """Away from the middle of the picture, or a little to the side of that; two on either side of it."""
    angle = angle_of((0.0, 0.0), point)
    first = (22, -22) if n_physical == 2 else (0,)
    return tuple(angle + turn for turn in (*first, 30, -30, 60, -60, 90, -90))


def _distances(neighbours: Neighbours) -> Numbers:
    """The lengths of the shortest ways between all pairs of vertices."""
    flat = np.array([other for some in neighbours for other in some])
    starts = np.cumsum([0, *map(len, neighbours[:-1])])
    n = len(neighbours)
    found = np.zeros((n, n))
    reached = np.eye(n, dtype=bool)
    length = 0
    while not reached.all():
        length += 1
        # What a neighbour reaches is one step further away.
        new = np.logical_or.reduceat(reached[flat], starts, axis=0) & ~reached
        found[new] = length
        reached |= new
    return found


def _start(distances: Numbers) -> Numbers:
    """The plane in which the distances spread most."""
    squared = distances**2
    centred = squared - squared.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(-centred / 2)
    plane: Numbers = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    # The wider direction is the horizontal one; the first vertex lies left and above.
    plane = plane[:, ::-1] * np.where(plane[0, ::-1] > 0, -1.0, 1.0)
    plane += np.random.default_rng(_SEED).normal(scale=0.05, size=plane.shape)
    return plane


def _majorised(points: Numbers, distances: Numbers) -> Numbers:
    """Points after a fixed number of steps that lessen the energy of the springs."""
    n = len(points)
    weights = 1 / np.maximum(distances, 1) ** 2
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + 1 / n) - 1 / n
    pulls = weights * distances
    for _ in range(_STEPS if n <= _MANY else _STEPS_FOR_MANY):
        x, y = points[:, 0], points[:, 1]
        # Much quicker than np.hypot, and points are never so far apart that squares overflow.
        apart = np.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)
        ratios = pulls / np.maximum(apart, 1e-9)
        points = inverse @ (ratios.sum(axis=1)[:, None] * points - ratios @ points)
    centred: Numbers = points - points.mean(axis=0)
    return centred
