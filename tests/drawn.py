"""What an SVG of ours shows, read from its text alone: boxes, lines, texts and titles.

Widths of texts are those of DejaVu Sans, which the source does not ask.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

_NAMESPACE = "{http://www.w3.org/2000/svg}"
NODES = ("physical-node", "contraction-node", "fourth-order-node")

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Item:
    """Something in a picture: its role, title and box; of a line its points, of a text its words."""

    role: str
    title: str
    box: Box
    points: tuple[Point, ...] = ()
    text: str = ""

    @property
    def centre(self) -> Point:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


@dataclass(frozen=True)
class Picture:
    """All that an SVG shows, and its view box."""

    items: tuple[Item, ...]
    view: Box

    def of_role(self, *roles: str) -> list[Item]:
        return [item for item in self.items if item.role in roles and not item.text]

    @property
    def nodes(self) -> dict[str, Item]:
        """Outlines of nodes by name."""
        return {item.title.split(":")[0]: item for item in self.of_role(*NODES)}

    @property
    def blocks(self) -> list[Item]:
        return self.of_role("block-0", "block-1", "block-2")

    @property
    def lines(self) -> list[Item]:
        return [item for item in self.items if item.points]

    @property
    def texts(self) -> list[Item]:
        return [item for item in self.items if item.text]

    @property
    def labels(self) -> list[str]:
        return [item.text for item in self.texts]

    @property
    def titles(self) -> list[str]:
        return [item.title for item in self.items]


def read(svg: str) -> Picture:
    """The picture of an SVG."""
    root = ET.fromstring(svg)
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    items = []
    for group in root.findall(f"{_NAMESPACE}g"):
        for element in group:
            items.append(_item(element, group.attrib["class"]))
    return Picture(tuple(items), (left, top, left + width, top + height))


def _item(element: ET.Element, role: str) -> Item:
    kind, found = element.tag.removeprefix(_NAMESPACE), element.attrib
    title = element.find(f"{_NAMESPACE}title")
    words = "" if title is None else str(title.text)
    if kind == "rect":
        x, y, width, height = (float(found[name]) for name in ("x", "y", "width", "height"))
        return Item(role, words, (x, y, x + width, y + height))
    if kind == "path":
        numbers = list(map(float, re.findall(r"-?[\d.]+", found["d"])))
        controls = list(zip(numbers[::2], numbers[1::2], strict=True))
        points = tuple(_bezier(controls, k / 40) for k in range(41))
        xs, ys = zip(*points, strict=True)
        return Item(role, words, (min(xs), min(ys), max(xs), max(ys)), points)
    text = (
        "".join(element.itertext()).removeprefix(words) if title is not None else str(element.text)
    )
    x, y, size = (float(found[name]) for name in ("x", "y", "font-size"))
    width = float(found["textLength"]) if "textLength" in found else measured(text, size)
    # From the tops of tall letters to the bottoms of deep ones.
    return Item(
        role, words, (x - width / 2, y - 0.76 * size, x + width / 2, y + 0.24 * size), (), text
    )


def _bezier(controls: list[Point], t: float) -> Point:
    n = len(controls) - 1
    weights = [math.comb(n, k) * t**k * (1 - t) ** (n - k) for k in range(n + 1)]
    x = sum(w * p[0] for w, p in zip(weights, controls, strict=True))
    y = sum(w * p[1] for w, p in zip(weights, controls, strict=True))
    return x, y


@cache
def measured(text: str, size: float) -> float:
    """The width of a text in DejaVu Sans."""
    font = FontProperties(family="DejaVu Sans", size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def overlap(one: Box, other: Box, tolerance: float = 0.2) -> bool:
    """Whether two boxes have more than a border in common."""
    return (
        one[0] < other[2] - tolerance and other[0] < one[2] - tolerance
        and one[1] < other[3] - tolerance and other[1] < one[3] - tolerance
    )  # fmt: skip


def inside(inner: Box, outer: Box, tolerance: float = 0.2) -> bool:
    """Whether a box lies in another."""
    return (
        inner[0] >= outer[0] - tolerance and inner[1] >= outer[1] - tolerance
        and inner[2] <= outer[2] + tolerance and inner[3] <= outer[3] + tolerance
    )  # fmt: skip


def overlaps(picture: Picture) -> list[tuple[str, str]]:
    """Pairs of nodes, of texts, of both, and of texts and lines, that lie over one another."""
    nodes = list(picture.nodes.values())
    outside = [t for t in picture.texts if not any(inside(t.box, node.box) for node in nodes)]
    found = [(a.title, b.title) for a, b in combinations(nodes, 2) if overlap(a.box, b.box)]
    found += [(a.text, b.text) for a, b in combinations(outside, 2) if overlap(a.box, b.box)]
    found += [(a.text, b.title) for a in outside for b in nodes if overlap(a.box, b.box)]
    for text in outside:
        for line in picture.lines:
            if _are_near(text, line) and any(_meets(text.box, *p) for p in pairwise(line.points)):
                found.append((text.text, line.title))
    return found


def _are_near(one: Item, other: Item) -> bool:
    """Whether it is worth while to look more closely."""
    return overlap(one.box, other.box, -1.0)


def _meets(box: Box, start: Point, end: Point) -> bool:
    """Whether a short line goes through a box."""
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    return any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in (start, middle, end))


def hidden_lines(picture: Picture) -> list[tuple[str, str]]:
    """Lines that go through, or end in, a node that they do not join."""
    return [
        (line.title, node.title)
        for line in picture.lines
        for node in picture.nodes.values()
        if _are_near(line, node)
        and not any(_joins(end, node.box) for end in (line.points[0], line.points[-1]))
        and any(inside((*p, *p), node.box, -1.0) for p in line.points)
    ]


def _joins(end: Point, box: Box) -> bool:
    """Whether a line that ends there is one of a node: at its centre, or halfway up one of its sides."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    # Of a stack, the centre is that of all its outlines.
    near = [math.dist(end, (x, y)) < 7]
    near += [math.dist(end, (side, y)) < 0.3 for side in (box[0], box[2])]
    return any(near)
