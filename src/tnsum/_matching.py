"""Matching two coloured multigraphs: colour refinement, then individualisation.

The two graphs are refined together, as one graph with two halves. A partition of the vertices is
split until every vertex of a class has the same number of neighbours in every other class; a class
with more vertices in one half than in the other proves that no matching exists. Splitting by all
parts but the largest (Hopcroft) makes the refinement O(edges log vertices), so that a chain of a
thousand nodes with physical modes only at its ends is matched in milliseconds.

Where a class holds one vertex of each half, that pair is decided, and its edges need no more
attention: they are part of what the refinement has found out about the others. What is undecided
falls into components. Components that match may be matched in any way, without ever taking a choice
back, so symmetries (equal branches of a tree, parallel modes) cost nothing. Only within a connected
rest is a pair singled out, and another tried if that fails.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Adjacency = Sequence[Sequence[tuple[int, int]]]
"""For each vertex, its neighbours and how many edges lead to each."""


@dataclass(frozen=True)
class Mismatch:
    """One vertex of each half that has no counterpart (None where that half has none to name)."""

    first: int | None
    second: int | None


class _Partition:
    """The vertices of both halves in classes that are split further and further."""

    def __init__(self, first: Adjacency, second: Adjacency, colours: Sequence[int]) -> None:
        self.half = len(first)
        self.adjacency = [list(edges) for edges in first]
        self.adjacency += [[(v + self.half, n) for v, n in edges] for edges in second]
        self.members: dict[int, set[int]] = {}
        self.class_of = list(colours)
        for vertex, colour in enumerate(colours):
            self.members.setdefault(colour, set()).add(vertex)
        self.next_class = max(self.members, default=-1) + 1
        self.is_balanced = all(map(self._balanced, self.members.values()))

    def _balanced(self, vertices: set[int]) -> bool:
        return 2 * sum(vertex < self.half for vertex in vertices) == len(vertices)

    def _split(self, old: int, part: set[int]) -> int:
        """Move `part` out of class `old` into a class of its own."""
        new = self.next_class
        self.next_class += 1
        self.members[old] -= part
        self.members[new] = part
        for vertex in part:
            self.class_of[vertex] = new
        self.is_balanced = self.is_balanced and self._balanced(part)
        return new

    def refine(self) -> bool:
        """Split until stable; False as soon as a class is unbalanced."""
        waiting = deque(self.members)
        while waiting and self.is_balanced:
            counts: dict[int, int] = {}
            for vertex in self.members[waiting.popleft()]:
                for neighbour, edges in self.adjacency[vertex]:
                    counts[neighbour] = counts.get(neighbour, 0) + edges
            touched: dict[int, dict[int, set[int]]] = {}
            for vertex, count in counts.items():
                parts = touched.setdefault(self.class_of[vertex], {})
                parts.setdefault(count, set()).add(vertex)
            for old, parts in touched.items():
                waiting.extend(self._split(old, part) for part in self._smaller_parts(old, parts))
        return self.is_balanced

    def _smaller_parts(self, old: int, parts: dict[int, set[int]]) -> list[set[int]]:
        """All parts of a class but the largest, which keeps the class and is not looked at again."""
        untouched = len(self.members[old]) - sum(map(len, parts.values()))
        ordered = sorted(parts.values(), key=len)
        if not untouched:
            return ordered[:-1]
        if len(ordered[-1]) <= untouched:
            return ordered
        rest = self.members[old].difference(*ordered)
        return [*ordered[:-1], rest]

    def undecided(self) -> tuple[list[int], list[int]]:
        """The vertices of each half that share their class with others of their half."""
        large = [c for c, vertices in self.members.items() if len(vertices) > 2]
        vertices = sorted(v for c in large for v in self.members[c])
        middle = len(vertices) // 2
        return vertices[:middle], [v - self.half for v in vertices[middle:]]

    def pairs(self) -> list[int]:
        """The counterpart of each decided vertex of the first half, and -1 for the others."""
        counterpart = [-1] * self.half
        for vertices in self.members.values():
            if len(vertices) == 2:
                low, high = sorted(vertices)
                counterpart[low] = high - self.half
        return counterpart

    def mismatch(self) -> Mismatch:
        """The first vertices, in order, of classes that have too few in the other half."""
        surplus: list[list[int]] = [[], []]
        for vertices in self.members.values():
            halves = [v for v in vertices if v < self.half], [v for v in vertices if v >= self.half]
            if len(halves[0]) != len(halves[1]):
                longer = int(len(halves[1]) > len(halves[0]))
                surplus[longer].append(min(halves[longer]))
        first, second = (min(vertices, default=None) for vertices in surplus)
        return Mismatch(first, None if second is None else second - self.half)


def match(
    first: Adjacency, second: Adjacency, first_colours: Sequence[int], second_colours: Sequence[int]
) -> list[int] | Mismatch:
    """The vertex of `second` for each vertex of `first`, keeping edges and colours.

    Where there is none, the vertices that have no counterpart.
    """
    partition = _Partition(first, second, [*first_colours, *second_colours])
    if not partition.refine():
        return partition.mismatch()
    counterpart = partition.pairs()
    ours, theirs = partition.undecided()
    if not ours:
        return counterpart
    classes = partition.class_of[: len(first)], partition.class_of[len(first) :]
    components = _components(first, ours)
    waiting: dict[tuple[int, ...], list[list[int]]] = {}
    for component in _components(second, theirs):
        waiting.setdefault(_signature(component, classes[1]), []).append(component)
    for component in components:
        candidates = waiting.get(_signature(component, classes[0]), [])
        for k, candidate in enumerate(candidates):
            parts = _restricted(first, component), _restricted(second, candidate)
            colours = [classes[0][v] for v in component], [classes[1][v] for v in candidate]
            search = _singled_out if len(components) == 1 else match
            found = search(*parts, *colours)
            if not isinstance(found, Mismatch):
                for vertex, partner in zip(component, found, strict=True):
                    counterpart[vertex] = candidate[partner]
                del candidates[k]
                break
        else:
            left = [vertices for group in waiting.values() for vertices in group]
            return Mismatch(component[0], left[0][0])
    return counterpart


def _singled_out(
    first: Adjacency, second: Adjacency, first_colours: Sequence[int], second_colours: Sequence[int]
) -> list[int] | Mismatch:
    """A matching in which one vertex has a colour of its own, for one candidate after the other."""
    new = max(first_colours) + 1
    for candidate, colour in enumerate(second_colours):
        if colour == first_colours[0]:
            theirs = [*second_colours[:candidate], new, *second_colours[candidate + 1 :]]
            found = match(first, second, [new, *first_colours[1:]], theirs)
            if not isinstance(found, Mismatch):
                return found
    return Mismatch(0, second_colours.index(first_colours[0]))


def _components(adjacency: Adjacency, vertices: Iterable[int]) -> list[list[int]]:
    """The connected components of the graph of some vertices, each in order."""
    left = dict.fromkeys(vertices)
    found = []
    while left:
        component = [next(iter(left))]
        del left[component[0]]
        for vertex in component:
            for neighbour, _ in adjacency[vertex]:
                if neighbour in left:
                    del left[neighbour]
                    component.append(neighbour)
        found.append(sorted(component))
    return found


def _restricted(adjacency: Adjacency, component: Sequence[int]) -> Adjacency:
    """The graph of some vertices, numbered anew."""
    number = {vertex: k for k, vertex in enumerate(component)}
    return [[(number[w], n) for w, n in adjacency[v] if w in number] for v in component]


def _signature(component: Sequence[int], classes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(classes[vertex] for vertex in component))
