"""Solids as signed distances: how far a point lies from a surface, negative inside.

Distances make shapes easy to put together: the least of two is their union, the greater of one and
minus the other is one without the other, and a least that is rounded where the two are nearly equal
joins them as if they had grown together. The formulas are those that Inigo Quilez collected. Some are
bounds rather than distances, which is all that sphere tracing needs.

Points come as three arrays, x forward, y to the left and z up. Only sums, products, quotients, square
roots and comparisons are used: these are rounded in the same way on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

Vector: TypeAlias = tuple[float, float, float]
Values: TypeAlias = np.ndarray[Any, Any]
Points: TypeAlias = tuple[Values, Values, Values]


class Shape(Protocol):
    """What has a signed distance."""

    def distance(self, points: Points) -> Values:
        """The distance of each point."""


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid whose axes are those of space."""

    centre: Vector
    radii: Vector

    def distance(self, points: Points) -> Values:
        """To first order, the distance."""
        x, y, z = ((p - c) / r for p, c, r in zip(points, self.centre, self.radii, strict=True))
        a, b, c = self.radii
        level = _length(x, y, z)
        slope = np.maximum(_length(x / a, y / b, z / c), 1e-6)
        return np.asarray(level * (level - 1) / slope)


@dataclass(frozen=True)
class Rod:
    """A straight rod with round ends, thicker at one of them."""

    start: Vector
    end: Vector
    radius: float
    end_radius: float

    def distance(self, points: Points) -> Values:
        """The distance from the axis, less the radius there."""
        x, y, z = (p - s for p, s in zip(points, self.start, strict=True))
        a, b, c = (e - s for e, s in zip(self.end, self.start, strict=True))
        along = np.clip((x * a + y * b + z * c) / (a * a + b * b + c * c), 0, 1)
        off_axis = _length(x - a * along, y - b * along, z - c * along)
        return off_axis - (self.radius + (self.end_radius - self.radius) * along)


@dataclass(frozen=True)
class Box:
    """A box with rounded edges, whose upper side may be smaller than its lower one."""

    centre: Vector
    half: Vector
    rounding: float
    taper: float = 0.0

    def distance(self, points: Points) -> Values:
        """The distance, but for the taper."""
        x, y, z = (p - c for p, c in zip(points, self.centre, strict=True))
        a, b, c = (h - self.rounding for h in self.half)
        narrower = self.taper * np.clip(z / c, -1, 1)
        x, y, z = np.abs(x) - a * (1 - narrower), np.abs(y) - b * (1 - narrower), np.abs(z) - c
        outside = _length(np.maximum(x, 0), np.maximum(y, 0), np.maximum(z, 0))
        return outside + np.minimum(np.maximum(np.maximum(x, y), z), 0) - self.rounding


@dataclass(frozen=True)
class Cylinder:
    """A cylinder along y or z, or a cone without its tip: `taper` is how much wider its end is."""

    centre: Vector
    radius: float
    half: float
    along: int = 2
    taper: float = 0.0

    def distance(self, points: Points) -> Values:
        """The distance, but for the taper."""
        p, q, r = (points[k] - self.centre[k] for k in ((self.along + k) % 3 for k in (1, 2, 0)))
        side = np.sqrt(p * p + q * q) - self.radius * (
            1 + self.taper * np.clip(r / self.half, -1, 1)
        )
        end = np.abs(r) - self.half
        outside = np.sqrt(np.maximum(side, 0) ** 2 + np.maximum(end, 0) ** 2)
        return np.asarray(outside + np.minimum(np.maximum(side, end), 0))


@dataclass(frozen=True)
class Ring:
    """A torus around z or y, squashed along its axis; thicker than wide it is an apple's body."""

    centre: Vector
    radius: float
    thickness: float
    around: int = 2
    squash: float = 1.0
    taper: float = 0.0

    def distance(self, points: Points) -> Values:
        """The distance, times the squash at most."""
        p, q, r = (points[k] - self.centre[k] for k in ((self.around + k) % 3 for k in (1, 2, 0)))
        r = r / self.squash
        off_axis = np.sqrt(p * p + q * q) * (1 - self.taper * np.clip(r, -1, 1))
        return (np.sqrt((off_axis - self.radius) ** 2 + r * r) - self.thickness) * self.squash


@dataclass(frozen=True)
class Part:
    """A shape of one colour that is added to a solid, or, with `cuts`, taken away from it.

    `blend` is how widely it is rounded into the parts before it. With `mirrored` it is there twice,
    at y and at -y; with `four` also at x and -x.
    """

    shape: Shape
    colour: Vector
    blend: float = 0.0
    cuts: bool = False
    mirrored: bool = False
    four: bool = False

    def distance(self, points: Points) -> Values:
        """The distance of each point from the shape or its mirror images."""
        x, y, z = points
        x = np.abs(x) if self.four else x
        y = np.abs(y) if self.mirrored or self.four else y
        return self.shape.distance((x, y, z))


@dataclass(frozen=True)
class Spot:
    """A colour for what lies within a radius of a centre, paler towards `soft` times the radius."""

    centre: Vector
    radius: float
    colour: Vector
    soft: float = 1.1


@dataclass(frozen=True)
class Solid:
    """Parts one after the other, spots of colour on them, how much they shine, and their middle."""

    parts: Sequence[Part]
    spots: Sequence[Spot] = ()
    shine: float = 0.2
    middle: Vector = (0.0, 0.0, 0.0)

    def distance(self, points: Points) -> Values:
        """A bound on the distance of each point from the surface."""
        whole: Values = self.parts[0].distance(points)
        for part in self.parts[1:]:
            distance = part.distance(points)
            whole = (
                np.maximum(whole, -distance) if part.cuts else _union(whole, distance, part.blend)
            )
        return whole

    def colours(self, points: Points) -> Values:
        """Red, green and blue of points on the surface: those of their part, and of spots."""
        whole = self.parts[0].distance(points)
        owner = np.zeros(len(whole), np.intp)
        for k, part in enumerate(self.parts[1:], 1):
            distance = part.distance(points)
            is_owner = -distance > whole if part.cuts else distance < whole
            owner[is_owner] = k
            whole = np.maximum(whole, -distance) if part.cuts else np.minimum(whole, distance)
        colours: Values = np.array([part.colour for part in self.parts], np.float32)[owner]
        for spot in self.spots:
            away = _length(*(p - c for p, c in zip(points, spot.centre, strict=True))) / spot.radius
            share = np.clip((spot.soft - away) / (spot.soft - 1), 0, 1)[:, None]
            colours = colours + share * (np.array(spot.colour, np.float32) - colours)
        return colours


def _union(first: Values, second: Values, blend: float) -> Values:
    """The lesser distance, rounded where the two differ by less than `blend`."""
    if blend == 0:
        return np.minimum(first, second)
    near = np.maximum(blend - np.abs(first - second), 0)
    return np.asarray(np.minimum(first, second) - near * near * (0.25 / blend))


def _length(x: Values, y: Values, z: Values) -> Values:
    return np.asarray(np.sqrt(x * x + y * y + z * z))
