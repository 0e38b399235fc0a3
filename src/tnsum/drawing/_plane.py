"""Which parts of the plane are taken, in small cells, so that what comes later finds room elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tnsum.drawing._scene import Box, Numbers, Point

_CELL = 3.0


class Plane:
    """A part of the plane, free at first; outside of it nothing is free."""

    def __init__(self, box: Box) -> None:
        self._left, self._top = box.left, box.top
        shape = math.ceil(box.height / _CELL) + 1, math.ceil(box.width / _CELL) + 1
        self._taken = np.zeros(shape, dtype=bool)

    def is_free(self, box: Box) -> bool:
        """Whether nothing lies in a box."""
        rows, columns = self._cells(box)
        inside = rows.start >= 0 and columns.start >= 0
        inside &= rows.stop <= self._taken.shape[0] and columns.stop <= self._taken.shape[1]
        return inside and not self._taken[rows, columns].any()

    def take(self, box: Box) -> None:
        """Let nothing else lie in a box."""
        rows, columns = self._cells(box)
        self._taken[max(rows.start, 0) : rows.stop, max(columns.start, 0) : columns.stop] = True

    def is_free_along(self, points: Sequence[Point]) -> bool:
        """Whether nothing lies along a line or curve."""
        where = self._along(points)
        return bool(where[0].size) and not self._taken[where].any()

    def take_along(self, points: Sequence[Point]) -> None:
        """Let nothing else lie along a line or curve."""
        self._taken[self._along(points)] = True

    def _cells(self, box: Box) -> tuple[slice, slice]:
        """The rows and columns of all cells that a box touches."""
        rows = (
            math.floor((box.top - self._top) / _CELL),
            math.ceil((box.bottom - self._top) / _CELL),
        )
        columns = (
            math.floor((box.left - self._left) / _CELL),
            math.ceil((box.right - self._left) / _CELL),
        )
        return slice(*rows), slice(*columns)

    def _along(self, points: Sequence[Point]) -> tuple[Numbers, Numbers]:
        """The cells along a line, as far as they are in this part of the plane."""
        length = sum(math.dist(a, b) for a, b in pairwise(points))
        n = max(2, math.ceil(length / (0.7 * _CELL)))
        corners = (np.array(points) - (self._left, self._top)) / _CELL
        cells = np.floor(_weights(n, len(points)) @ corners).astype(np.intp)
        inside = ((cells >= 0) & (cells < self._taken.shape[::-1])).all(axis=1)
        columns, rows = cells[inside].T
        return rows, columns


@lru_cache(maxsize=1024)
def _weights(n: int, n_points: int) -> Numbers:
    """What each point of a line or curve counts at n places along it, from its start to its end."""
    t, last = np.linspace(0.0, 1.0, n), n_points - 1
    parts = [math.comb(last, k) * (1 - t) ** (last - k) * t**k for k in range(n_points)]
    return np.stack(parts, axis=1)
