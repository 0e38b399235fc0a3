"""Lines that end nowhere, and texts: each looks for a place that nothing else has taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tnsum.drawing._faces import Face
from tnsum.drawing._graph import Edge, Stub
from tnsum.drawing._lines import leaving_angle, tangent_angle
from tnsum.drawing._places import at_angle, between
from tnsum.drawing._plane import Plane
from tnsum.drawing._scene import Box, Line, Point, Role, Text, on_curve

LABEL_SIZE = 11.0

_STUB = 22.0
_LOOP = 24.0
_BAR = 5.0
_NEAR = 3.0
_PAST = 4.5
# Room around all nodes for lines that end nowhere and their texts.
_MARGIN = 260.0
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.85)
_FEW = 6


class Board:
    """What has been put where so far, and how many texts found no place."""

    def __init__(
        self,
        faces: Sequence[Face],
        centres: Sequence[Point],
        lines: Sequence[Line],
        edges: Sequence[Edge],
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
        self._plane = Plane(everything.grown(_MARGIN))
        for line in lines:
            self._plane.take_along(line.points)
        for box in boxes[len(lines) :]:
            self._plane.take(box)
        self._angles: list[list[float]] = [[] for _ in centres]
        for line, edge in zip(lines, edges, strict=True):
            for vertex in (edge.start, edge.end):
                self._angles[vertex].append(leaving_angle(line, self.centres[vertex]))

    def put_stub(self, stub: Stub, outward: Sequence[float], label: str, title: str) -> None:
        """A line that ends nowhere, a short one with a bar, or a loop, in the best free direction."""
        role: Role = "text" if stub.kind == "physical" else "size"
        for length in (1.0, 2.0):
            for angle in self._directions(stub.vertex, outward):
                lines, end = self._stub_lines(stub, angle, length, title)
                text = _text_at(end, angle, label, role, title)
                if self._plane.is_free(text.box) and all(
                    self._plane.is_free_along(self._outside(stub.vertex, line, angle))
                    for line in lines
                ):
                    self._take_stub(stub.vertex, angle, lines)
                    self._put(text)
                    return
        # No room for the text: the line goes where it is furthest from the others.
        angle = max(range(0, 360, 5), key=lambda a: self._room(stub.vertex, a))
        lines, _ = self._stub_lines(stub, angle, 1.0, title)
        self._take_stub(stub.vertex, angle, lines)
        self.n_missing += 1

    def put_beside_dot(self, vertex: int, label: str, title: str) -> None:
        """The text of a mode that many nodes hold, beside its dot."""
        for further in (0.0, 10.0, 20.0, 30.0):
            for angle in self._directions(vertex, ()):
                distance = self._faces[vertex].reach(angle) + further
                start = _from(self.centres[vertex], angle, distance)
                text = _text_at(start, angle, label, "size", title)
                if self._plane.is_free(text.box):
                    self._put(text)
                    return
        self.n_missing += 1

    def put_beside_line(self, line: Line, label: str) -> None:
        """The text of a mode, above its line or to the right of it, or wherever there is room."""
        for t in _ALONG:
            angle = tangent_angle(line, t)
            # Of the two sides the upper one, at a vertical line the right one.
            first = angle - 90 if at_angle(angle)[0] > 0.01 else angle + 90
            if abs(at_angle(angle)[0]) <= 0.01:
                first = 0.0
            for side in (first, first + 180):
                text = _text_at(on_curve(line.points, t), side, label, "size", line.title)
                if self._plane.is_free(text.box):
                    self._put(text)
                    return
        self.n_missing += 1

    def _directions(self, vertex: int, wished: Sequence[float]) -> Iterator[float]:
        """Directions to try: those wished for, then all around, none along a line that is there."""
        taken = self._angles[vertex]
        nearest = 24.0 if len(taken) <= _FEW else 6.0
        yield from (a for a in wished if all(between(a, b) > nearest for b in taken))
        n = 16 if len(taken) <= _FEW else 48
        around = [(self._room(vertex, 360 * k / n), 360 * k / n) for k in range(n)]
        # Those between other lines first, and of two alike the lower one.
        around.sort(key=lambda one: (-round(one[0]), between(one[1], 90)))
        yield from (angle for room, angle in around if room > nearest)

    def _room(self, vertex: int, angle: float) -> float:
        """How far a direction is from the lines that are there."""
        return min([180.0, *(between(angle, other) for other in self._angles[vertex])])

    def _stub_lines(
        self, stub: Stub, angle: float, length: float, title: str
    ) -> tuple[list[Line], Point]:
        """The lines of a stub, and the point where its text begins."""
        centre = self.centres[stub.vertex]
        reach = self._faces[stub.vertex].reach(angle)
        if stub.kind == "trace":
            out = (reach + _LOOP * length) / 0.66
            controls = _from(centre, angle - 28, out), _from(centre, angle + 28, out)
            loop = Line((centre, *controls, centre), "contraction line", title)
            return [loop], _from(centre, angle, reach + _LOOP * length + 1)
        end = _from(centre, angle, reach + _STUB * length)
        if stub.kind == "physical":
            return [Line((centre, end), "physical line", title)], end
        bar = _from(end, angle - 90, _BAR), _from(end, angle + 90, _BAR)
        return [
            Line((centre, end), "contraction line", title),
            Line(bar, "contraction line", title),
        ], _from(end, angle, 1.0)

    def _outside(self, vertex: int, line: Line, angle: float) -> tuple[Point, ...]:
        """The part of a stub that is to be seen; of a loop, its axis."""
        box = self._faces[vertex].box
        x, y = map(abs, at_angle(angle))
        # The whole box of a node is taken, its corners too.
        past = min(box.width / 2 / max(x, 1e-9), box.height / 2 / max(y, 1e-9)) + _PAST
        start = _from(self.centres[vertex], angle, past)
        end = on_curve(line.points, 0.5) if len(line.points) == 4 else line.points[-1]
        return start, end

    def _take_stub(self, vertex: int, angle: float, lines: Sequence[Line]) -> None:
        self._angles[vertex].append(angle)
        for line in lines:
            self._plane.take_along(line.points)
            self.lines.append(line)

    def _put(self, text: Text) -> None:
        if text.text:
            self._plane.take(text.box)
            self.texts.append(text)


def _from(point: Point, angle: float, distance: float) -> Point:
    x, y = at_angle(angle, distance)
    return point[0] + x, point[1] + y


def _text_at(point: Point, angle: float, label: str, role: Role, title: str) -> Text:
    """A text that begins at a point, in a direction."""
    text = Text((0.0, 0.0), label, LABEL_SIZE, role, title)
    x, y = map(abs, at_angle(angle))
    support = text.box.width / 2 * x + text.box.height / 2 * y
    return text.moved(*_from(point, angle, support + _NEAR))


def _moved(box: Box, centre: Point) -> Box:
    x, y = centre
    return Box(box.left + x, box.top + y, box.right + x, box.bottom + y)
