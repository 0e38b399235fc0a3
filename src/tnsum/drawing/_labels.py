"""Lines that end nowhere, and texts: each looks for a place that nothing else has taken."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from tnsum.drawing._faces import Face
from tnsum.drawing._graph import Edge, Stub
from tnsum.drawing._lines import leaving_angle, tangent_angle
from tnsum.drawing._places import at_angle, between
from tnsum.drawing._plane import Plane
from tnsum.drawing._scene import Box, Line, Point, Text, on_curve

LABEL_SIZE = 11.0

_STUB = 22.0
_BAR = 5.0
# The text begins that much further out: past a bar or a loop.
_PAST_STUB = {"physical": 0.0, "summed": 1.0, "trace": 1.0}
_NEAR = 3.0
# No text comes nearer to a node, and no line is looked at before it is clear of it.
_BESIDE = 2.0
_PAST = 5.5
# Room around all nodes for lines that end nowhere and their texts.
_MARGIN = 260.0
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.85)
# More lines than this at one node go out further, so far that each text has this much of a circle.
_FEW = 7
_ARC = 42.0


class Board:
    """What has been put where so far, and how many texts found no place."""

    def __init__(
        self,
        faces: Sequence[Face],
        centres: Sequence[Point],
        lines: Sequence[Line],
        edges: Sequence[Edge],
        stubs: Sequence[Stub],
    ) -> None:
        self.centres = list(centres)
        self.lines: list[Line] = list(lines)
        self.texts: list[Text] = []
        self.n_missing = 0
        self._faces = faces
        boxes = [mark.box for mark in lines]
        boxes += [_moved(face.box, centre) for face, centre in zip(faces, centres, strict=True)]
        everything = Box(
            min(box.left for box in boxes),
            min(box.top for box in boxes),
            max(box.right for box in boxes),
            max(box.bottom for box in boxes),
        )
        # How many lines there will be at each vertex.
        self._crowds = Counter(stub.vertex for stub in stubs)
        self._crowds.update(vertex for edge in edges for vertex in (edge.start, edge.end))
        longest = max((_fan(n) for n in self._crowds.values()), default=0.0)
        self._plane = Plane(everything.grown(_MARGIN + longest))
        for line in lines:
            self._plane.take_along(line.points)
        for box in boxes[len(lines) :]:
            self._plane.take(box.grown(_BESIDE))
        self._angles: list[list[float]] = [[] for _ in centres]
        for line, edge in zip(lines, edges, strict=True):
            for vertex in (edge.start, edge.end):
                self._angles[vertex].append(leaving_angle(line, self.centres[vertex]))

    def put_stub(self, stub: Stub, outward: Sequence[float], label: str, title: str) -> None:
        """A line that ends nowhere, a short one with a bar, or a loop, in the best free direction."""
        text = Text(
            (0.0, 0.0), label, LABEL_SIZE, "text" if stub.kind == "physical" else "size", title
        )
        size = text.box
        for angle, length in self._ways_out(stub.vertex, outward):
            reach = self._faces[stub.vertex].reach(angle) + length + _PAST_STUB[stub.kind]
            box = _box_at(_from(self.centres[stub.vertex], angle, reach), angle, size)
            if self._plane.is_free(box):
                lines = self._stub_lines(stub, angle, length, title)
                if self._are_free(stub.vertex, lines, angle):
                    self._take_stub(stub.vertex, angle, lines)
                    self._put(text, box)
                    return
        # No room for the text: the line goes where it meets nothing, as far from the others as it can.
        angles = sorted(range(0, 360, 5), key=lambda a: -self._room(stub.vertex, a))
        ways = ((angle, self._stub_lines(stub, angle, _STUB, title)) for angle in angles)
        first = next(ways)
        free = (way for way in chain([first], ways) if self._are_free(stub.vertex, way[1], way[0]))
        self._take_stub(stub.vertex, *next(free, first))
        self.n_missing += 1

    def put_beside_dot(self, vertex: int, label: str, title: str) -> None:
        """The text of a mode that many nodes hold, beside its dot."""
        text = Text((0.0, 0.0), label, LABEL_SIZE, "size", title)
        size = text.box
        for further in (0.0, 10.0, 20.0, 30.0, 45.0, 60.0):
            for angle in self._around(vertex):
                distance = self._faces[vertex].reach(angle) + further
                start = _from(self.centres[vertex], angle, distance)
                box = _box_at(start, angle, size)
                if self._plane.is_free(box):
                    self._put(text, box)
                    return
        self.n_missing += 1

    def put_beside_line(self, line: Line, label: str) -> None:
        """The text of a mode, above its line or to the right of it, or wherever there is room."""
        text = Text((0.0, 0.0), label, LABEL_SIZE, "size", line.title)
        size = text.box
        for t in _ALONG:
            angle = tangent_angle(line, t)
            # Of the two sides the upper one, at a vertical line the right one.
            first = angle - 90 if at_angle(angle)[0] > 0.01 else angle + 90
            if abs(at_angle(angle)[0]) <= 0.01:
                first = 0.0
            for side in (first, first + 180):
                box = _box_at(on_curve(line.points, t), side, size)
                if self._plane.is_free(box):
                    self._put(text, box)
                    return
        self.n_missing += 1

    def _ways_out(self, vertex: int, wished: Sequence[float]) -> Iterator[tuple[float, float]]:
        """Directions and lengths to try: those wished for, a little longer too, then all around."""
        length = _STUB + _fan(self._crowds[vertex])
        nearest = self._nearest(vertex)
        for angle in wished:
            if self._room(vertex, angle) > nearest:
                yield angle, length
                yield angle, 1.3 * length
        around = list(self._around(vertex))
        for other in (length, 2 * _STUB, 0.6 * _STUB):
            yield from ((angle, other) for angle in around)

    def _around(self, vertex: int) -> Iterator[float]:
        """Directions all around: between other lines first, and of two alike the lower one."""
        n = max(16, 2 * self._crowds[vertex])
        around = [(self._room(vertex, 360 * k / n), 360 * k / n) for k in range(n)]
        around.sort(key=lambda one: (-round(one[0]), between(one[1], 90)))
        nearest = self._nearest(vertex)
        yield from (angle for room, angle in around if room > nearest)

    def _nearest(self, vertex: int) -> float:
        """How near in direction two lines may be."""
        return min(24.0, 150 / self._crowds[vertex])

    def _room(self, vertex: int, angle: float) -> float:
        """How far a direction is from the lines that are there."""
        return min([180.0, *(between(angle, other) for other in self._angles[vertex])])

    def _stub_lines(self, stub: Stub, angle: float, length: float, title: str) -> list[Line]:
        """The lines of a stub."""
        centre = self.centres[stub.vertex]
        reach = self._faces[stub.vertex].reach(angle)
        if stub.kind == "trace":
            out = (reach + length) / 0.66
            controls = _from(centre, angle - 28, out), _from(centre, angle + 28, out)
            return [Line((centre, *controls, centre), "contraction line", title)]
        end = _from(centre, angle, reach + length)
        if stub.kind == "physical":
            return [Line((centre, end), "physical line", title)]
        bar = _from(end, angle - 90, _BAR), _from(end, angle + 90, _BAR)
        return [
            Line((centre, end), "contraction line", title),
            Line(bar, "contraction line", title),
        ]

    def _are_free(self, vertex: int, lines: Sequence[Line], angle: float) -> bool:
        return all(self._plane.is_free_along(self._outside(vertex, line, angle)) for line in lines)

    def _outside(self, vertex: int, line: Line, angle: float) -> tuple[Point, ...]:
        """The part of a stub that is to be seen; of a loop, its axis."""
        box = self._faces[vertex].box
        x, y = map(abs, at_angle(angle))
        # The whole box of a node is taken, its corners too.
        half_width, half_height = box.width / 2 + _PAST, box.height / 2 + _PAST
        past = min(half_width / max(x, 1e-9), half_height / max(y, 1e-9))
        start = _from(self.centres[vertex], angle, past)
        end = on_curve(line.points, 0.5) if len(line.points) == 4 else line.points[-1]
        return start, end

    def _take_stub(self, vertex: int, angle: float, lines: Sequence[Line]) -> None:
        self._angles[vertex].append(angle)
        for line in lines:
            self._plane.take_along(line.points)
            self.lines.append(line)

    def _put(self, text: Text, box: Box) -> None:
        if text.text:
            self._plane.take(box)
            self.texts.append(replace(text, centre=box.centre))


def _fan(n_lines: int) -> float:
    """How much further lines go out where they are many."""
    return _ARC * n_lines / (2 * math.pi) if n_lines > _FEW else 0.0


def _from(point: Point, angle: float, distance: float) -> Point:
    x, y = at_angle(angle, distance)
    return point[0] + x, point[1] + y


def _box_at(point: Point, angle: float, size: Box) -> Box:
    """A box of that size that begins at a point, in a direction."""
    x, y = at_angle(angle)
    support = size.width / 2 * abs(x) + size.height / 2 * abs(y) + _NEAR
    return Box.around((point[0] + support * x, point[1] + support * y), size.width, size.height)


def _moved(box: Box, centre: Point) -> Box:
    x, y = centre
    return Box(box.left + x, box.top + y, box.right + x, box.bottom + y)
