"""Four-legged animals: one plan of a body, whose measures make it a cow, a dog or a horse.

The three are meant to be alike, as they are in ETH-80: bodies of the same parts, whose measures and
colours vary from animal to animal and, for single ones, overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tnsum.datasets._solids import Ellipsoid, Part, Rod, Solid, Spot, Vector

_BLACK, _WHITE = (0.13, 0.12, 0.12), (0.92, 0.90, 0.86)


@dataclass(frozen=True)
class Measures:
    """What tells one animal from another: lengths, and rises as length up for length forward."""

    length: float
    girth: float
    leg: float
    leg_girth: float
    neck: float
    neck_rise: float
    neck_girth: float
    head: float
    head_drop: float
    muzzle: float
    ear: float
    tail: float
    tail_rise: float
    tail_girth: float
    horn: float = 0.0
    mane: float = 0.0


def cow(rng: np.random.Generator) -> Solid:
    """Heavy and long, on short legs, the head low, with horns; often in patches."""
    u = rng.uniform
    measures = Measures(
        length=u(0.92, 1.08), girth=u(0.23, 0.29), leg=u(0.30, 0.40), leg_girth=u(0.055, 0.07),
        neck=u(0.20, 0.30), neck_rise=u(0.1, 0.7), neck_girth=u(0.12, 0.16), head=u(0.24, 0.30),
        head_drop=u(0.4, 0.9), muzzle=u(0.075, 0.09), ear=u(0.09, 0.12), tail=u(0.35, 0.45),
        tail_rise=u(-6.0, -3.0), tail_girth=u(0.018, 0.025), horn=u(0.07, 0.12),
    )  # fmt: skip
    coat = _one_of(rng, [_WHITE, _WHITE, (0.45, 0.26, 0.14), (0.62, 0.42, 0.26), _BLACK])
    patch = _BLACK if coat == _WHITE else _one_of(rng, [_WHITE, _darker(coat, 0.6)])
    size = measures.girth
    spots = [
        Spot((u(-0.5, 0.5), u(-size, size), u(-0.1, size)), u(0.13, 0.24), patch)
        for _ in range(rng.integers(4, 9))
    ]
    return _animal(measures, coat, _darker(coat, 0.7), spots)


def dog(rng: np.random.Generator) -> Solid:
    """Small and slim, the head up, with large ears, a narrow muzzle and a raised tail."""
    u = rng.uniform
    measures = Measures(
        length=u(0.74, 0.90), girth=u(0.15, 0.20), leg=u(0.36, 0.46), leg_girth=u(0.045, 0.06),
        neck=u(0.18, 0.26), neck_rise=u(0.9, 1.8), neck_girth=u(0.09, 0.12), head=u(0.22, 0.30),
        head_drop=u(0.05, 0.35), muzzle=u(0.05, 0.07), ear=u(0.12, 0.18), tail=u(0.28, 0.42),
        tail_rise=u(-0.4, 1.5), tail_girth=u(0.03, 0.045),
    )  # fmt: skip
    coat = _one_of(
        rng, [(0.72, 0.55, 0.34), (0.80, 0.68, 0.48), (0.35, 0.22, 0.13), _BLACK, _WHITE]
    )
    saddle = _one_of(rng, [_darker(coat, 0.35), _darker(coat, 0.8), _WHITE])
    spots = [Spot((u(-0.25, 0.0), 0.0, u(0.12, 0.25)), u(0.20, 0.30), saddle, 1.4)]
    return _animal(measures, coat, _darker(coat, 0.5), spots)


def horse(rng: np.random.Generator) -> Solid:
    """Tall on long legs, with a long neck held high, a long head, a mane and a hanging tail."""
    u = rng.uniform
    measures = Measures(
        length=u(0.84, 0.98), girth=u(0.18, 0.23), leg=u(0.46, 0.58), leg_girth=u(0.05, 0.06),
        neck=u(0.32, 0.44), neck_rise=u(0.8, 1.6), neck_girth=u(0.10, 0.13), head=u(0.28, 0.36),
        head_drop=u(0.5, 1.2), muzzle=u(0.055, 0.075), ear=u(0.09, 0.12), tail=u(0.40, 0.52),
        tail_rise=u(-3.0, -1.2), tail_girth=u(0.04, 0.06), mane=u(0.03, 0.045),
    )  # fmt: skip
    coats = [(0.45, 0.25, 0.13), (0.33, 0.18, 0.10), (0.62, 0.40, 0.20), (0.60, 0.58, 0.56), _BLACK]
    coat = _one_of(rng, coats)
    hair = _one_of(rng, [_darker(coat, 0.35), _darker(coat, 0.8), (0.85, 0.78, 0.62)])
    return _animal(measures, coat, hair)


def _animal(m: Measures, coat: Vector, hair: Vector, spots: Sequence[Spot] = ()) -> Solid:
    """The body of those measures, with the origin in the middle of the trunk."""
    half, girth = 0.5 * m.length, m.girth
    ground = -m.leg - 0.75 * girth
    shoulder = (half - girth, 0.0, 0.25 * girth)
    nape = _moved(shoulder, m.neck + 0.6 * girth, m.neck_rise)
    x, _, z = nape
    nose = _moved(nape, m.head, -m.head_drop)
    brow = _moved(nape, 0.25 * m.head, -m.head_drop)
    croup = (0.7 * girth - half, 0.0, 0.55 * girth)
    parts = [
        Part(Ellipsoid((half - 1.1 * girth, 0, 0), (1.1 * girth, 0.9 * girth, girth)), coat),
        Part(Ellipsoid((0, 0, 0), (0.62 * m.length, 0.85 * girth, 0.9 * girth)), coat, 0.1),
        Part(Ellipsoid((0.85 * girth - half, 0, 0.05), (girth, 0.85 * girth, 0.95 * girth)), coat, 0.1),
        Part(Rod(shoulder, nape, 1.25 * m.neck_girth, 0.8 * m.neck_girth), coat, 0.12),
        Part(Rod(brow, nose, 0.85 * m.neck_girth, m.muzzle), coat, 0.06),
        Part(Rod(croup, _moved(croup, -m.tail, -m.tail_rise), m.tail_girth, 0.7 * m.tail_girth), hair),
        _twice((x, 0.05, z + 0.03), (x - 0.3 * m.ear, 0.05 + 0.5 * m.ear, z + 0.85 * m.ear), 0.04, hair),
        *_legs(m, half - 0.9 * girth, ground, coat, 0.0),
        *_legs(m, 0.8 * girth - half, ground, coat, 0.07),
    ]  # fmt: skip
    if m.horn:
        tip = (x + 0.02, 0.05 + m.horn, z + 0.05 + 0.8 * m.horn)
        parts.append(_twice((x, 0.05, z + 0.05), tip, 0.03, (0.85, 0.8, 0.7)))
    if m.mane:
        withers = _moved((x - 0.06, 0.0, z + 0.04), -0.8 * m.neck, m.neck_rise)
        parts.append(Part(Rod((x - 0.04, 0.0, z + 0.06), withers, m.mane, 1.3 * m.mane), hair))
    middle = (0.3 * (nose[0] - half), 0.0, 0.5 * (ground + max(z + m.ear, nose[2])))
    return Solid(parts, spots, shine=0.08, middle=middle)


def _legs(m: Measures, x: float, ground: float, coat: Vector, bend: float) -> list[Part]:
    """A pair of legs below x, whose joint lies `bend` behind."""
    aside = 0.55 * m.girth
    knee = (x - bend, aside, ground + 0.5 * m.leg)
    top, foot = (x, aside, -0.3 * m.girth), (x - 0.3 * bend, aside, ground)
    return [
        Part(Rod(top, knee, 1.7 * m.leg_girth, m.leg_girth), coat, 0.06, mirrored=True),
        Part(Rod(knee, foot, 0.95 * m.leg_girth, 0.85 * m.leg_girth), coat, 0.02, mirrored=True),
    ]


def _twice(start: Vector, end: Vector, radius: float, colour: Vector) -> Part:
    """A pointed part on either side of the head."""
    return Part(Rod(start, end, radius, 0.3 * radius), colour, mirrored=True)


def _moved(point: Vector, length: float, rise: float) -> Vector:
    """The point that far forward and up, in the middle plane."""
    scale = length / math.sqrt(1 + rise * rise)
    return point[0] + scale, point[1], point[2] + scale * rise


def _darker(coat: Vector, factor: float) -> Vector:
    return coat[0] * factor, coat[1] * factor, coat[2] * factor


def _one_of(rng: np.random.Generator, coats: Sequence[Vector]) -> Vector:
    return coats[int(rng.integers(len(coats)))]
