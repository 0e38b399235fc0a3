"""A topology as a graph to be laid out: nodes and dots, and the lines between them.

A contraction mode that two nodes hold is a line between them; one held twice by a node (a trace) is a
loop there; one held once is a short line with an end mark. A mode held in any other way is a dot of its
own, joined to each of its holders: a hyperedge as in CP, or a physical mode of several nodes. A physical
mode is a line that ends nowhere, at the node that holds it or at its dot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from tnsum.topology import Topology

StubKind: TypeAlias = Literal["physical", "summed", "trace"]


@dataclass(frozen=True)
class Edge:
    """A line between two vertices, and the mode that it stands for."""

    start: int
    end: int
    mode: str


@dataclass(frozen=True)
class Stub:
    """A line at one vertex only, and the mode that it stands for."""

    vertex: int
    mode: str
    kind: StubKind


@dataclass(frozen=True)
class Graph:
    """Vertices are numbered: first the nodes, in order, then the dots."""

    nodes: tuple[str, ...]
    dots: tuple[str, ...]
    edges: tuple[Edge, ...]
    stubs: tuple[Stub, ...]

    @property
    def n_vertices(self) -> int:
        """The number of nodes and dots."""
        return len(self.nodes) + len(self.dots)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The vertices that lines join to each vertex, each once, in order."""
        found: list[set[int]] = [set() for _ in range(self.n_vertices)]
        for edge in self.edges:
            found[edge.start].add(edge.end)
            found[edge.end].add(edge.start)
        return tuple(tuple(sorted(some)) for some in found)

    @cached_property
    def n_physical(self) -> tuple[int, ...]:
        """How many physical modes end at each vertex."""
        counts = [0] * self.n_vertices
        for stub in self.stubs:
            counts[stub.vertex] += stub.kind == "physical"
        return tuple(counts)

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The vertices in groups that lines connect, in order."""
        seen: set[int] = set()
        found = []
        for first in range(self.n_vertices):
            if first in seen:
                continue
            seen.add(first)
            group = [first]
            for vertex in group:
                new = [other for other in self.neighbours[vertex] if other not in seen]
                seen.update(new)
                group += new
            found.append(tuple(sorted(group)))
        return tuple(found)


def graph_of(topology: Topology) -> Graph:
    """The graph of a topology."""
    names = tuple(topology.nodes)
    numbers = {name: k for k, name in enumerate(names)}
    physical = set(topology.physical_modes)
    dots: list[str] = []
    edges: list[Edge] = []
    stubs: list[Stub] = []
    for mode in topology.modes:
        held = [numbers[name] for name in topology.holders(mode)]
        if mode not in physical and len(held) == 2 and held[0] != held[1]:
            edges.append(Edge(held[0], held[1], mode))
        elif mode not in physical and len(held) == 2:
            stubs.append(Stub(held[0], mode, "trace"))
        elif len(held) == 1:
            stubs.append(Stub(held[0], mode, "physical" if mode in physical else "summed"))
        else:
            dot = len(names) + len(dots)
            dots.append(mode)
            edges += [Edge(vertex, dot, mode) for vertex in held]
            if mode in physical:
                stubs.append(Stub(dot, mode, "physical"))
    return Graph(names, tuple(dots), tuple(edges), tuple(stubs))
