"""A subject as a scene: nodes, lines and texts at their places.

Nodes and lines come first. Then every line that ends nowhere looks for a direction in which it and its
text are in nobody's way, then every text beside a line for a place there. Where something finds none,
everything is drawn a little further apart, a few times; what then still has no place is left out. Its
line keeps a title, which says its name and size to whoever points at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tnsum.drawing._arrangement import arranged
from tnsum.drawing._faces import Face, dot_face
from tnsum.drawing._graph import Edge, Graph, Stub, graph_of
from tnsum.drawing._labels import LABEL_SIZE, Board
from tnsum.drawing._lines import edge_lines
from tnsum.drawing._places import Places
from tnsum.drawing._scaling import pixels_of
from tnsum.drawing._scene import Mark, Point, Scene, in_column, lone_text, packed
from tnsum.drawing._stress import given
from tnsum.drawing._subjects import Subject
from tnsum.drawing._words import shortened, width_of

_GROWTH = 1.12
_CAPTION_SIZE = 14.0


def scene_of(subject: Subject, positions: Mapping[str, Point] | None = None) -> Scene:
    """The picture of a subject; `positions` are places of its nodes, in any unit, y down."""
    graph = graph_of(subject.topology)
    if positions is None:
        scenes = [_drawn(_part(graph, subject, c)) for c in graph.components]
    else:
        places = given(tuple(positions[name] for name in graph.nodes), graph.n_physical)
        scenes = [_drawn(_part(graph, subject, tuple(range(graph.n_vertices))), places)]
    found = scenes[0] if len(scenes) == 1 else packed(scenes, "")
    if subject.caption:
        found = in_column([found, lone_text(subject.caption, _CAPTION_SIZE)], gap=0.0)
    return Scene(found.marks, subject.description)


@dataclass(frozen=True)
class Part:
    """A connected part of what is drawn, its vertices numbered anew, with texts and titles of modes."""

    faces: tuple[Face, ...]
    edges: tuple[Edge, ...]
    stubs: tuple[Stub, ...]
    dots: Mapping[int, str]
    neighbours: tuple[tuple[int, ...], ...]
    n_physical: tuple[int, ...]
    labels: Mapping[str, str]
    titles: Mapping[str, str]


def _part(graph: Graph, subject: Subject, vertices: Sequence[int]) -> Part:
    number = {v: k for k, v in enumerate(vertices)}
    n_nodes = len(graph.nodes)
    edges = tuple(
        Edge(number[e.start], number[e.end], e.mode) for e in graph.edges if e.start in number
    )
    stubs = tuple(Stub(number[s.vertex], s.mode, s.kind) for s in graph.stubs if s.vertex in number)
    dots = {number[v]: graph.dots[v - n_nodes] for v in vertices if v >= n_nodes}
    modes = dict.fromkeys([e.mode for e in edges] + [s.mode for s in stubs])
    titles = {mode: _mode_title(mode, subject) for mode in modes}
    return Part(
        tuple(
            subject.faces[graph.nodes[v]] if v < n_nodes else dot_face(titles[dots[number[v]]])
            for v in vertices
        ),
        edges,
        stubs,
        dots,
        tuple(tuple(number[w] for w in graph.neighbours[v]) for v in vertices),
        tuple(graph.n_physical[v] for v in vertices),
        {mode: "" if subject.is_bare else _label(mode, subject.sizes) for mode in modes},
        titles,
    )


def _label(mode: str, sizes: Mapping[str, int] | None) -> str:
    return shortened(mode) + ("" if sizes is None else f"={sizes[mode]}")


def _mode_title(mode: str, subject: Subject) -> str:
    kind = "physical" if mode in subject.topology.physical_modes else "contraction"
    return f"{kind} mode {subject.sized(mode)}"


def _drawn(part: Part, places: Places | None = None) -> Scene:
    """The scene of a connected part, as narrow as its texts allow."""
    places = places or arranged(part.neighbours, part.n_physical)
    widths = {mode: width_of(text, LABEL_SIZE) for mode, text in part.labels.items()}
    at_vertex = [0.0] * len(part.faces)
    for stub in part.stubs:
        at_vertex[stub.vertex] = max(at_vertex[stub.vertex], widths[stub.mode])
    edge_widths = [
        0.0 if edge.mode in part.dots.values() else widths[edge.mode] for edge in part.edges
    ]
    centres = pixels_of(places, part.faces, part.edges, edge_widths, at_vertex)
    best = board = _board(part, places, centres)
    for _ in range(_tries(len(part.faces), len(part.edges))):
        if not board.n_missing:
            break
        centres = [(_GROWTH * x, _GROWTH * y) for x, y in centres]
        board = _board(part, places, centres)
        best = board if board.n_missing < best.n_missing else best
    return Scene(tuple(best.lines) + _faces(part, best.centres) + tuple(best.texts))


def _tries(n_vertices: int, n_edges: int) -> int:
    """How often everything may be drawn further apart: not where nothing is, or where it takes long."""
    if n_vertices == 1:
        return 0
    # A grid has two lines for each node; few nodes with many lines take as long as many nodes.
    n = max(n_vertices, n_edges // 2)
    return 7 if n <= 30 else 2 if n <= 60 else 0


def _faces(part: Part, centres: Sequence[Point]) -> tuple[Mark, ...]:
    return tuple(
        mark.moved(*centre)
        for face, centre in zip(part.faces, centres, strict=True)
        for mark in face.marks
    )


def _board(part: Part, places: Places, centres: Sequence[Point]) -> Board:
    """Everything at its place around the centres of nodes and dots."""
    widest = max((width_of(text, LABEL_SIZE) for text in part.labels.values()), default=0.0)
    lines = edge_lines(part.edges, part.faces, centres, places, part.titles, widest)
    board = Board(part.faces, centres, lines, part.edges, part.stubs)
    for stub in part.stubs:
        board.put_stub(
            stub, places.outward[stub.vertex], part.labels[stub.mode], part.titles[stub.mode]
        )
    stubbed = {stub.mode for stub in part.stubs}
    for vertex, mode in part.dots.items():
        if mode not in stubbed:
            board.put_beside_dot(vertex, part.labels[mode], part.titles[mode])
    for edge, line in zip(part.edges, lines, strict=True):
        if edge.mode not in part.dots.values():
            board.put_beside_line(line, part.labels[edge.mode])
    return board
