"""Matching two coloured multigraphs: colour refinement, then individualisation.

The two graphs are refined together, as one graph with two halves. A partition of the vertices is
split until every vertex of a class has the same number of neighbours in every other class; a class
with more vertices in one half than in the other proves that no matching exists. Where a class still
holds several vertices of each half, one pair is singled out and the refinement goes on; a wrong
choice is taken back. Splitting by all parts but the largest (Hopcroft) makes the refinement
O(edges log vertices), so that a chain of a thousand nodes with physical modes only at its ends is
matched in milliseconds, and so is a closed balanced tree with its many symmetries.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Adjacency = Sequence[Sequence[tuple[int, int]]]
"""For each vertex, its neighbours and how many edges lead to each."""


@dataclass(frozen=True)
class Mismatch:
    """One vertex of each half that has no counterpart (None where that half has none to name)."""

    first: int | None
    second: int | None


class _Partition:
    """The vertices of both halves in classes that are split further and further, with undo."""

    def __init__(self, first: Adjacency, second: Adjacency, colours: Sequence[int]) -> None:
        self.half = len(first)
        self.adjacency = [list(edges) for edges in first]
        self.adjacency += [[(v + self.half, n) for v, n in edges] for edges in second]
        self.members: dict[int, set[int]] = {}
        self.class_of = list(colours)
        for vertex, colour in enumerate(colours):
            self.members.setdefault(colour, set()).add(vertex)
        self.next_class = max(self.members, default=-1) + 1
        self.large = {c for c, vertices in self.members.items() if len(vertices) > 2}
        self.trail: list[tuple[int, int]] = []
        self.unbalanced: int | None = next(
            (c for c, vertices in self.members.items() if not self._balanced(vertices)), None
        )

    def _balanced(self, vertices: set[int]) -> bool:
        return 2 * sum(vertex < self.half for vertex in vertices) == len(vertices)

    def _sort_by_size(self, *classes: int) -> None:
        for c in classes:
            (self.large.add if len(self.members[c]) > 2 else self.large.discard)(c)

    def split(self, old: int, part: set[int]) -> int:
        """Move `part` out of class `old` into a class of its own."""
        new = self.next_class
        self.next_class += 1
        self.members[old] -= part
        self.members[new] = part
        for vertex in part:
            self.class_of[vertex] = new
        self.trail.append((old, new))
        self._sort_by_size(old, new)
        if not self._balanced(part):
            self.unbalanced = new
        return new

    def undo(self, length: int) -> None:
        """Take back every split after the first `length`."""
        while len(self.trail) > length:
            old, new = self.trail.pop()
            part = self.members.pop(new)
            for vertex in part:
                self.class_of[vertex] = old
            self.members[old] |= part
            self.large.discard(new)
            self._sort_by_size(old)
        self.unbalanced = None

    def refine(self, splitters: Sequence[int]) -> bool:
        """Split until stable; False as soon as a class is unbalanced."""
        waiting = deque(splitters)
        while waiting and self.unbalanced is None:
            counts: dict[int, int] = {}
            for vertex in self.members[waiting.popleft()]:
                for neighbour, edges in self.adjacency[vertex]:
                    counts[neighbour] = counts.get(neighbour, 0) + edges
            touched: dict[int, dict[int, set[int]]] = {}
            for vertex, count in counts.items():
                parts = touched.setdefault(self.class_of[vertex], {})
                parts.setdefault(count, set()).add(vertex)
            for old, parts in touched.items():
                untouched = len(self.members[old]) - sum(map(len, parts.values()))
                ordered = sorted(parts.values(), key=len)
                if not untouched:
                    ordered.pop()
                elif len(ordered[-1]) > untouched:
                    # The largest part keeps the class, so that only smaller ones are looked at
                    # again: here the untouched vertices leave it.
                    largest = ordered.pop()
                    others = set().union(*ordered)
                    ordered.append(self.members[old] - largest - others)
                waiting.extend(self.split(old, part) for part in ordered)
        return self.unbalanced is None

    def undecided(self) -> int | None:
        """A class with more than one vertex in each half."""
        return next(iter(self.large), None)

    def pairs(self) -> list[int]:
        """The counterpart of each vertex of the first half, once every class is a pair."""
        counterpart = [0] * self.half
        for low, high in map(sorted, self.members.values()):
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
    if partition.unbalanced is not None or not partition.refine(list(partition.members)):
        return partition.mismatch()
    if not partition.large:
        return partition.pairs()
    ours, theirs = _components(first), _components(second)
    if len(ours) == 1:
        return _searched(partition)
    # Any two components that match may be matched: no choice among them is ever taken back.
    classes = partition.class_of[: len(first)], partition.class_of[len(first) :]
    waiting: dict[tuple[int, ...], list[list[int]]] = {}
    for component in theirs:
        waiting.setdefault(_signature(component, classes[1]), []).append(component)
    counterpart = [0] * len(first)
    for component in ours:
        candidates = waiting.get(_signature(component, classes[0]), [])
        for k, candidate in enumerate(candidates):
            found = match(
                _restricted(first, component), _restricted(second, candidate),
                [classes[0][v] for v in component], [classes[1][v] for v in candidate],
            )  # fmt: skip
            if not isinstance(found, Mismatch):
                for vertex, partner in zip(component, found, strict=True):
                    counterpart[vertex] = candidate[partner]
                del candidates[k]
                break
        else:
            return Mismatch(component[0], next((c[0] for c in candidates), None))
    return counterpart


def _components(adjacency: Adjacency) -> list[list[int]]:
    """The connected components, each with its vertices in order."""
    seen = [False] * len(adjacency)
    found = []
    for start in range(len(adjacency)):
        if seen[start]:
            continue
        seen[start] = True
        component = [start]
        for vertex in component:
            for neighbour, _ in adjacency[vertex]:
                if not seen[neighbour]:
                    seen[neighbour] = True
                    component.append(neighbour)
        found.append(sorted(component))
    return found


def _restricted(adjacency: Adjacency, component: Sequence[int]) -> Adjacency:
    """The graph of one component, its vertices numbered anew."""
    number = {vertex: k for k, vertex in enumerate(component)}
    return [[(number[w], n) for w, n in adjacency[v]] for v in component]


def _signature(component: Sequence[int], classes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(classes[vertex] for vertex in component))


def _searched(partition: _Partition) -> list[int] | Mismatch:
    """Single out pairs until every class is one, taking back what leads nowhere."""
    diagnosis: Mismatch | None = None
    # Each choice: the length of the trail before it, its class, its vertex, the candidates left.
    choices: list[tuple[int, int, int, Iterator[int]]] = []
    while (undecided := partition.undecided()) is not None:
        vertices = sorted(partition.members[undecided])
        middle = len(vertices) // 2
        choices.append((len(partition.trail), undecided, vertices[0], iter(vertices[middle:])))
        while True:
            if not choices:
                return diagnosis or Mismatch(None, None)
            length, chosen, vertex, candidates = choices[-1]
            candidate = next(candidates, None)
            if candidate is None:
                choices.pop()
                if choices:
                    partition.undo(choices[-1][0])
                continue
            if partition.refine([partition.split(chosen, {vertex, candidate})]):
                break
            diagnosis = diagnosis or partition.mismatch()
            partition.undo(length)
    return partition.pairs()
