"""Trees: chains, combs and stars where a tree is one, otherwise levels below a root.

Vertices with three or more neighbours are where a tree branches. Where there is none it is a chain;
where they follow one another along a path, each with no more than two further paths, it is a comb; where
there is one it is a star, unless it has too many arms. Every other tree hangs from the middle of its
longest path: a few leaves side by side at the bottom, many one below the other at the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tnsum.drawing._places import DOWN, LEFT, RIGHT, UP, Neighbours, Places, at_angle
from tnsum.drawing._rows import comb_of, path_from
from tnsum.drawing._scene import Point

_MOST_ARMS = 24
_MOST_LEAVES_BELOW = 12


def tree_of(neighbours: Neighbours, n_physical: Sequence[int]) -> Places:
    """Where the vertices of a tree lie."""
    branching = [v for v, some in enumerate(neighbours) if len(some) > 2]
    if not branching:
        return comb_of(neighbours, _longest_path(neighbours), n_physical)
    if len(branching) == 1 and len(neighbours[branching[0]]) <= _MOST_ARMS:
        return _star(neighbours, branching[0])
    backbone = _backbone(neighbours, branching) if len(branching) > 1 else None
    if backbone is not None:
        return comb_of(neighbours, backbone, n_physical)
    return _levels(neighbours, _root(neighbours, n_physical), n_physical)


def _backbone(neighbours: Neighbours, branching: Sequence[int]) -> list[int] | None:
    """The path of a comb, or None: through all that branch, on along the longest paths at its ends."""
    inside = set(branching)
    joined = {v: [other for other in neighbours[v] if other in inside] for v in branching}
    ends = [v for v in branching if len(joined[v]) == 1]
    if len(ends) != 2 or any(len(some) > 2 for some in joined.values()):
        return None
    path = [ends[0]]
    while following := [other for other in joined[path[-1]] if other not in path[-2:]]:
        path.append(following[0])
    if len(path) < len(branching) or any(len(neighbours[v]) > 4 for v in branching):
        return None
    before = _longest_arm(neighbours, path[0], inside)
    after = _longest_arm(neighbours, path[-1], inside)
    return [*reversed(before), *path, *after]


def _longest_arm(neighbours: Neighbours, start: int, inside: set[int]) -> list[int]:
    """The longest of the paths that leave a vertex, the first of these if there are several."""
    best: list[int] = []
    for first in neighbours[start]:
        if first in inside:
            continue
        arm = path_from(neighbours, start, first)
        best = arm if len(arm) > len(best) else best
    return best


def _star(neighbours: Neighbours, centre: int) -> Places:
    """Arms in all directions, the first one up."""
    points: dict[int, Point] = {centre: (0.0, 0.0)}
    n = len(neighbours[centre])
    # Lines that end at the centre leave between two arms.
    outward = {centre: tuple(UP + 360 * (k + 0.5) / n for k in (n // 2, *range(n)))}
    for k, first in enumerate(neighbours[centre]):
        angle = UP + 360 * k / n
        for radius, vertex in enumerate(path_from(neighbours, centre, first), start=1):
            points[vertex] = at_angle(angle, radius)
            outward[vertex] = (angle, angle - 90, angle + 90)
    order = range(len(neighbours))
    return Places(tuple(points[v] for v in order), tuple(outward[v] for v in order), "rigid")


def _levels(neighbours: Neighbours, root: int, n_physical: Sequence[int]) -> Places:
    """Parents above the middle of their children, or to the left of it if there are many leaves."""
    order, parents = _downwards(neighbours, root)
    children: dict[int, list[int]] = {v: [] for v in order}
    for v in order[1:]:
        children[parents[v]].append(v)
    depth = {root: 0}
    for v in order[1:]:
        depth[v] = depth[parents[v]] + 1
    leaves = _leaves_in_order(children, root)
    flows_right = len(leaves) > _MOST_LEAVES_BELOW
    place: dict[int, float] = {}
    n_rows = 0
    for v in leaves:
        # Physical modes of a row need room above, a second one below; the leaf's first goes on in it.
        n_across = max(
            n_physical[v] - 1, *(n_physical[w] for w in _before(v, parents, children)), 0
        )
        place[v] = float(n_rows + (flows_right and n_across > 0))
        n_rows = int(place[v]) + (2 if flows_right and n_across > 1 else 1)
    for v in reversed(order):
        if children[v]:
            place[v] = (place[children[v][0]] + place[children[v][-1]]) / 2
    vertices = range(len(neighbours))
    outward: tuple[tuple[float, ...], ...]
    if flows_right:
        points = tuple((float(depth[v]), place[v]) for v in vertices)
        outward = tuple((RIGHT, UP, DOWN) if not children[v] else (UP, DOWN, LEFT)
                        for v in vertices)  # fmt: skip
    else:
        points = tuple((place[v], float(depth[v])) for v in vertices)
        outward = tuple((DOWN, RIGHT, LEFT, UP) if not children[v] else (UP, RIGHT, LEFT, DOWN)
                        for v in vertices)  # fmt: skip
    return Places(points, outward, "lined up", flows_right=flows_right)


def _before(
    leaf: int, parents: Mapping[int, int], children: Mapping[int, Sequence[int]]
) -> list[int]:
    """Those above a leaf that have no other leaf below them."""
    found, vertex = [], parents[leaf]
    while len(children[vertex]) == 1 and vertex != parents[vertex]:
        found.append(vertex)
        vertex = parents[vertex]
    return found


def _leaves_in_order(children: dict[int, list[int]], root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        vertex = waiting.pop()
        if not children[vertex]:
            found.append(vertex)
        waiting += reversed(children[vertex])
    return found


def _root(neighbours: Neighbours, n_physical: Sequence[int]) -> int:
    """A vertex in the middle of the longest path; of two, one without a physical mode."""
    path = _longest_path(neighbours)
    middle = [path[(len(path) - 1) // 2], path[len(path) // 2]]
    return min(middle, key=lambda v: (n_physical[v] > 0, -len(neighbours[v]), v))


def _longest_path(neighbours: Neighbours) -> list[int]:
    """A longest path of a tree, from the earlier one of its ends."""
    one = _downwards(neighbours, 0)[0][-1]
    order, parents = _downwards(neighbours, one)
    path = [order[-1]]
    while path[-1] != one:
        path.append(parents[path[-1]])
    return path if path[0] < path[-1] else path[::-1]


def _downwards(neighbours: Neighbours, root: int) -> tuple[list[int], dict[int, int]]:
    """The vertices by their distance from a root, and the parent of each."""
    order, parents = [root], {root: root}
    for vertex in order:
        new = [other for other in neighbours[vertex] if other not in parents]
        parents.update(dict.fromkeys(new, vertex))
        order += new
    return order, parents
