"""Fruits, cups and cars: what tells them apart is shape and colour, and both vary."""

from __future__ import annotations

import math

import numpy as np

from tnsum.datasets._solids import Box, Cylinder, Ellipsoid, Part, Ring, Rod, Solid, Spot, Vector

_WOOD, _LEAF = (0.36, 0.24, 0.12), (0.20, 0.42, 0.12)


def apple(rng: np.random.Generator) -> Solid:
    """Round, with a dimple above, a stem, and cheeks of another colour."""
    u = rng.uniform
    thickness, squash = u(0.48, 0.56), u(1.02, 1.16)
    radius = u(0.38, 0.52) * thickness
    skin = _between(rng, (0.62, 0.70, 0.22), (0.86, 0.74, 0.30))
    cheek = _between(rng, (0.78, 0.10, 0.10), (0.86, 0.34, 0.16))
    dimple = squash * math.sqrt(thickness**2 - radius**2)
    stem = Rod(
        (0, 0, dimple - 0.1), (u(-0.1, 0.1), u(-0.1, 0.1), dimple + u(0.14, 0.24)), 0.025, 0.03
    )
    spots = [
        Spot((u(-0.6, 0.6), u(-0.6, 0.6), u(-0.2, 0.6)), u(0.2, 0.75), cheek, 2.0)
        for _ in range(rng.integers(1, 4))
    ]
    body = Ring((0, 0, 0), radius, thickness, squash=squash, taper=u(0.08, 0.2))
    return Solid([Part(body, skin), Part(stem, _WOOD)], spots, shine=0.35)


def tomato(rng: np.random.Generator) -> Solid:
    """Flatter than an apple and of one colour, with the leaves of its flower above."""
    u = rng.uniform
    thickness, squash = u(0.44, 0.52), u(0.88, 1.04)
    radius = u(0.45, 0.65) * thickness
    skin = _between(rng, (0.78, 0.09, 0.06), (0.90, 0.38, 0.10))
    dimple = squash * math.sqrt(thickness**2 - radius**2)
    parts = [Part(Ring((0, 0, 0), radius, thickness, squash=squash), skin)]
    length, start = u(0.22, 0.34), u(0, 1.2)
    for k in range(5):
        x, y = math.cos(start + 1.2566 * k), math.sin(start + 1.2566 * k)
        tip = (length * x, length * y, squash * thickness + u(-0.01, 0.06))
        parts.append(Part(Rod((0.04 * x, 0.04 * y, dimple + 0.02), tip, 0.04, 0.015), _LEAF))
    parts.append(Part(Rod((0, 0, dimple), (0, 0, dimple + u(0.08, 0.16)), 0.035, 0.03), _LEAF))
    return Solid(parts, shine=0.5)


def pear(rng: np.random.Generator) -> Solid:
    """A large ball that grows into a small one above it, with a stem."""
    u = rng.uniform
    low, high, rise = u(0.44, 0.52), u(0.22, 0.30), u(0.48, 0.68)
    lean = u(-0.08, 0.08)
    skin = _between(rng, (0.62, 0.70, 0.26), (0.88, 0.78, 0.34))
    cheek = _between(rng, (0.80, 0.46, 0.20), (0.66, 0.64, 0.26))
    base = -0.32
    top = base + rise + high
    parts = [
        Part(Ellipsoid((0, 0, base), (low, low, u(0.92, 1.0) * low)), skin),
        Part(Ellipsoid((lean, 0, base + rise), (high, high, u(1.0, 1.2) * high)), skin, 0.45),
        Part(Rod((lean, 0, top - 0.1), (1.8 * lean, 0, top + u(0.1, 0.2)), 0.025, 0.03), _WOOD),
    ]
    spots = [Spot((u(-0.5, 0.5), u(-0.5, 0.5), u(-0.5, 0.2)), u(0.2, 0.5), cheek, 2.2)]
    return Solid(parts, spots, shine=0.25)


def cup(rng: np.random.Generator) -> Solid:
    """A hollow cylinder or cone with a handle; white within, white or of one colour without."""
    u = rng.uniform
    radius, half, taper = u(0.40, 0.50), u(0.40, 0.54), u(0.0, 0.2)
    wall, white = u(0.04, 0.06), (0.93, 0.93, 0.91)
    glaze = [white, white, (0.82, 0.42, 0.14), (0.75, 0.14, 0.14)]
    glaze += [(0.20, 0.45, 0.32), (0.90, 0.80, 0.40)]
    outside = glaze[rng.integers(len(glaze))]
    band = glaze[rng.integers(len(glaze))]
    handle = Ring((radius * 1.02, 0, u(-0.05, 0.08)), u(0.55, 0.68) * half, u(0.05, 0.07), around=1)
    height = u(0.06, 0.2)
    return Solid([
        Part(Cylinder((0, 0, 0), radius, half, taper=taper), outside),
        Part(Cylinder((0, 0, 0), radius + 0.008, height, taper=taper * height / half), band),
        Part(handle, outside, 0.04),
        Part(Cylinder((0, 0, 2 * wall), radius - wall, half, taper=taper), white, cuts=True),
    ], shine=0.4, middle=(0.15, 0, 0))  # fmt: skip


def car(rng: np.random.Generator) -> Solid:
    """A long low body on four wheels, a narrower cabin of glass on it, a roof, lamps."""
    u = rng.uniform
    half, aside, height = u(0.72, 0.88), u(0.32, 0.38), u(0.13, 0.17)
    paints = [(0.88, 0.74, 0.12), (0.80, 0.12, 0.10), (0.90, 0.90, 0.88), (0.15, 0.40, 0.22)]
    paints += [(0.70, 0.72, 0.74), (0.16, 0.16, 0.18), (0.88, 0.45, 0.10)]
    paint = paints[rng.integers(len(paints))]
    glass, rubber = (0.10, 0.12, 0.15), (0.06, 0.06, 0.06)
    wheel, cabin, back, lift = u(0.13, 0.17), u(0.34, 0.46), u(-0.22, -0.02), u(0.12, 0.17)
    top = height + 1.6 * lift
    parts = [
        Part(Box((0, 0, 0), (half, aside, height), 0.09), paint),
        Part(Box((back, 0, height + 0.7 * lift), (cabin, 0.88 * aside, lift), 0.05, 0.28), glass),
        Part(Box((back, 0, top), (0.66 * cabin, 0.62 * aside, 0.035), 0.03), paint, 0.03),
        Part(Cylinder((0.62 * half, 0.92 * aside, -height), wheel, 0.07, along=1), rubber, four=True),
        Part(Cylinder((0.62 * half, 0.92 * aside, -height), 0.55 * wheel, 0.08, along=1),
             (0.72, 0.72, 0.74), four=True),
    ]  # fmt: skip
    lamps = [
        Spot((side * half, y * 0.65 * aside, 0.02), 0.08, colour)
        for side, colour in ((1, (0.96, 0.95, 0.80)), (-1, (0.60, 0.05, 0.05)))
        for y in (-1, 1)
    ]
    return Solid(parts, lamps, shine=0.45, middle=(0, 0, 0.5 * (top - height - wheel)))


def _between(rng: np.random.Generator, first: Vector, second: Vector) -> Vector:
    """A colour on the way from one to the other."""
    share = rng.uniform()
    r, g, b = (a + share * (b - a) for a, b in zip(first, second, strict=True))
    return r, g, b
