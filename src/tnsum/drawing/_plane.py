"""Which parts of the plane are taken, in small cells, so that what comes later finds room elsewhere.

Boxes and lines are short, so that plain Python is done before NumPy has begun.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tnsum.drawing._scene import Box, Point, on_curve

_CELL = 3.0
# Curves are followed in straight pieces.
_N_PIECES = 16


class Plane:
    """A part of the plane, free at first; outside of it nothing is free."""

    def __init__(self, box: Box) -> None:
        self._left, self._top = box.left, box.top
        self._n_rows = math.ceil(box.height / _CELL) + 1
        self._n_columns = math.ceil(box.width / _CELL) + 1
        # Row after row, one byte for each cell: 1 if it is taken.
        self._taken = bytearray(self._n_rows * self._n_columns)

    def is_free(self, box: Box) -> bool:
        """Whether nothing lies in a box."""
        rows, first, last = self._cells(box)
        if rows.start < 0 or rows.stop > self._n_rows or first < 0 or last > self._n_columns:
            return False
        find, width = self._taken.find, self._n_columns
        return all(find(1, row * width + first, row * width + last) < 0 for row in rows)

    def take(self, box: Box) -> None:
        """Let nothing else lie in a box."""
        rows, first, last = self._cells(box)
        first, last = max(first, 0), min(last, self._n_columns)
        for row in range(max(rows.start, 0), min(rows.stop, self._n_rows)):
            start = row * self._n_columns
            self._taken[start + first : start + last] = b"\1" * max(0, last - first)

    def is_free_along(self, points: Sequence[Point]) -> bool:
        """Whether nothing lies along a line or curve."""
        where = self._along(points)
        return bool(where) and not any(map(self._taken.__getitem__, where))

    def take_along(self, points: Sequence[Point]) -> None:
        """Let nothing else lie along a line or curve."""
        for cell in self._along(points):
            self._taken[cell] = 1

    def _cells(self, box: Box) -> tuple[range, int, int]:
        """The rows of all cells that a box touches, and their first and last column."""
        rows = range(
            math.floor((box.top - self._top) / _CELL),
            math.ceil((box.bottom - self._top) / _CELL),
        )
        first = math.floor((box.left - self._left) / _CELL)
        return rows, first, math.ceil((box.right - self._left) / _CELL)

    def _along(self, points: Sequence[Point]) -> list[int]:
        """The cells along a line or curve, without pieces that leave this part of the plane."""
        x, y = self._left, self._top
        scaled = [((a - x) / _CELL, (b - y) / _CELL) for a, b in points]
        if len(scaled) > 2:
            scaled = [on_curve(scaled, k / _N_PIECES) for k in range(_N_PIECES + 1)]
        return [cell for start, end in pairwise(scaled) for cell in self._straight(start, end)]

    def _straight(self, start: Point, end: Point) -> list[int]:
        """The cells along a straight line; none if it leaves this part of the plane."""
        (x, y), width = start, self._n_columns
        if min(x, y, *end) < 0 or max(x, end[0]) >= width or max(y, end[1]) >= self._n_rows:
            return []
        n = max(1, math.ceil(math.dist(start, end) / 0.8))
        dx, dy = (end[0] - x) / n, (end[1] - y) / n
        return [int(y + k * dy) * width + int(x + k * dx) for k in range(n + 1)]
