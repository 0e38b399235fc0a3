"""Pictures of solids by sphere tracing (Hart, 1996), for all pixels of some views at once.

From a point outside a solid one can go as far as its distance in any direction without entering it. A
ray does so again and again until it is near, which is where it meets the surface, or has left the
sphere around the solid. The gradient of the distance is the normal there; how much nearer the surface
is than the length of a small step along the normal says how much light its surroundings take away.

The light stands still while the camera goes around, as in a studio, with a weaker one at the camera.
Each pixel is the mean of 2 x 2 rays. All rays of a view are parallel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tnsum.datasets._solids import Points, Solid, Values, Vector

# Solids lie within a sphere of this radius around their middle, and within what a picture shows.
RADIUS = 1.15
_HALF_WIDTH = 1.0
_SAMPLES = 2
_MOST_STEPS = 96
# Distances are bounds only, and not always: a little caution is cheaper than a hole.
_CAUTION = 0.85
# How near to the surface is on it, the step that gives normals, and that which gives openness.
_NEAR, _SMALL, _REACH = 0.005, 0.008, 0.2
_RAYS_AT_ONCE = 2**17

_BACKGROUND = ((0.20, 0.27, 0.62), (0.28, 0.37, 0.76))
_LIGHT = (0.42, 0.28, 0.86)
_AMBIENT, _KEY, _HEADLIGHT = 0.36, 0.56, 0.30


def render(solid: Solid, directions: Sequence[Vector], size: int) -> Values:
    """The solid seen from each direction (unit vectors, from its middle to the camera).

    Returns uint8 of shape (n, size, size, 3).
    """
    at_once = max(1, _RAYS_AT_ONCE // (size * _SAMPLES) ** 2)
    blocks = [directions[k : k + at_once] for k in range(0, len(directions), at_once)]
    return np.concatenate([_render_block(solid, block, size) for block in blocks])


def _render_block(solid: Solid, directions: Sequence[Vector], size: int) -> Values:
    n, side = len(directions), size * _SAMPLES
    ticks = (_HALF_WIDTH * ((np.arange(side) + 0.5) * (2 / side) - 1)).astype(np.float32)
    right = np.tile(ticks, side)
    up = np.repeat(-ticks, side)
    dark, bright = np.array(_BACKGROUND, np.float32)
    height = (up / _HALF_WIDTH)[:, None]
    colours = np.tile(bright + (dark - bright) * (height + 1) / 2, (n, 1))
    # Rays that miss the sphere around the solid show the background.
    depth = RADIUS**2 - right * right - up * up
    inside = np.flatnonzero(np.tile(depth > 0, n))
    ray, view = inside % side**2, inside // side**2
    to_camera, start = _rays(
        solid.middle, directions, right[ray], up[ray], np.sqrt(depth[ray]), view
    )
    hit, points = _trace(solid, start, to_camera, 2 * np.sqrt(depth[ray]))
    colours[inside[hit]] = _shaded(solid, points, _taken(to_camera, hit))
    pixels = colours.reshape(n, size, _SAMPLES, size, _SAMPLES, 3)
    means = sum(pixels[:, :, k, :, m] for k in range(_SAMPLES) for m in range(_SAMPLES))
    return np.clip(means * (255 / _SAMPLES**2) + 0.5, 0, 255).astype(np.uint8)


def _rays(
    middle: Vector,
    directions: Sequence[Vector],
    right: Values,
    up: Values,
    depth: Values,
    view: Values,
) -> tuple[Points, Points]:
    """For each ray the direction to its camera, and where it enters the sphere."""
    axes = np.array([_axes(direction) for direction in directions], np.float32)
    x_axis, y_axis, to_camera = (axes[:, k][view].T for k in range(3))
    start = x_axis * right + y_axis * up + to_camera * depth + np.array(middle, np.float32)[:, None]
    return _rows(to_camera), _rows(start)


def _rows(matrix: Values) -> Points:
    x, y, z = np.ascontiguousarray(matrix)
    return x, y, z


def _axes(direction: Vector) -> tuple[Vector, Vector, Vector]:
    """To the right in the picture, up in it, and towards the camera."""
    x, y, z = direction
    across = math.sqrt(x * x + y * y)
    # From straight above any side may be up.
    a, b = (-y / across, x / across) if across > 0 else (0.0, 1.0)
    return (a, b, 0.0), (-z * b, z * a, x * b - y * a), direction


def _trace(solid: Solid, start: Points, to_camera: Points, length: Values) -> tuple[Values, Points]:
    """Which rays meet the surface, and where."""
    points, active, gone = start, np.arange(len(length)), np.zeros_like(length)
    hits, places = [], []
    for _ in range(_MOST_STEPS):
        distance = solid.distance(points)
        is_hit = distance < _NEAR
        hits.append(active[is_hit])
        places.append(_taken(points, is_hit))
        step = distance * _CAUTION
        gone = gone + step
        go_on = ~is_hit & (gone < length)
        active, gone, length = active[go_on], gone[go_on], length[go_on]
        to_camera = _taken(to_camera, go_on)
        points = _further(_taken(points, go_on), -step[go_on], to_camera)
        if not len(active):
            break
    # What still creeps after so many steps creeps along a surface.
    x, y, z = (np.concatenate(values) for values in zip(*places, points, strict=True))
    return np.concatenate([*hits, active]), (x, y, z)


def _shaded(solid: Solid, points: Points, to_camera: Points) -> Values:
    """Red, green and blue of points on the surface, as the camera sees them."""
    normal = _normals(solid, points)
    colours = solid.colours(points)
    around = solid.distance(_further(points, _REACH, normal))
    openness = 0.35 + 0.65 * np.clip(around / _REACH, 0, 1)
    key = np.maximum(_dot(normal, _LIGHT), 0)
    facing = np.maximum(_dot(normal, to_camera), 0)
    half_way = _further(to_camera, 1.0, _LIGHT)
    glance = np.maximum(_dot(normal, half_way) / np.sqrt(_dot(half_way, half_way)), 0)
    for _ in range(5):
        glance = glance * glance
    light = _AMBIENT * openness + (_KEY * key + _HEADLIGHT * facing) * (0.5 + 0.5 * openness)
    return np.clip(colours * light[:, None] + solid.shine * glance[:, None], 0, 1)


def _normals(solid: Solid, points: Points) -> Points:
    """The gradient of the distance, from the corners of a small tetrahedron."""
    corners = ((1.0, -1.0, -1.0), (-1.0, -1.0, 1.0), (-1.0, 1.0, -1.0), (1.0, 1.0, 1.0))
    x, y, z = (np.zeros_like(p) for p in points)
    for corner in corners:
        x, y, z = _further((x, y, z), solid.distance(_further(points, _SMALL, corner)), corner)
    length = np.maximum(np.sqrt(x * x + y * y + z * z), 1e-12)
    return x / length, y / length, z / length


def _taken(points: Points, which: Values) -> Points:
    x, y, z = points
    return x[which], y[which], z[which]


def _further(points: Points, step: Values | float, direction: Points | Vector) -> Points:
    (x, y, z), (a, b, c) = points, direction
    return x + step * a, y + step * b, z + step * c


def _dot(points: Points, others: Points | Vector) -> Values:
    (x, y, z), (a, b, c) = points, others
    return x * a + y * b + z * c
