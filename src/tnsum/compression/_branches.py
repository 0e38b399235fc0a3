"""Rooted trees, and the arrays of a lazy sum along their branches.

A tree is rooted at one of its nodes. Every other node v has one mode *up*, to its parent, and modes
*down*, to its children; v and all below it are a *branch*. The array of v in summand m is brought to

    A_v[m] of shape (ranks of the modes down, n, rank up)      n: the physical indices of v, in one axis

with rank 1 up at the root, which also carries the weight. Summands of equal ranks are held together,
m being the first axis. Children come before their parents, so that a loop goes from the leaves to the
root, and its reverse back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from tnsum._typing import Array, Namespace
from tnsum.network import NetworkStack
from tnsum.topology import Topology

Group: TypeAlias = list[Array]
"""The arrays of summands of equal ranks, one for each branch."""


@dataclass(frozen=True)
class Branch:
    """A node of a rooted tree, with what lies below it.

    Attributes
    ----------
    name : str
    up : str or None
        The mode to the parent; the root has none.
    parent : int
        The parent's position; of the root, its own.
    children : tuple of int
        The children's positions, in the order of `down`.
    down : tuple of str
    physical : tuple of str
    held : tuple of str
        All modes, in the order of the node's own axes.
    """

    name: str
    up: str | None
    parent: int
    children: tuple[int, ...]
    down: tuple[str, ...]
    physical: tuple[str, ...]
    held: tuple[str, ...]

    @cached_property
    def modes(self) -> tuple[str, ...]:
        """The modes in the order of the axes above."""
        return (*self.down, *self.physical, *((self.up,) if self.up is not None else ()))

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Where each of `modes` is among `held`."""
        return tuple(map(self.held.index, self.modes))

    @cached_property
    def axes_back(self) -> tuple[int, ...]:
        """Where each of `held` is among `modes`."""
        return tuple(map(self.modes.index, self.held))

    @cached_property
    def is_in_order(self) -> bool:
        """Whether `modes` and `held` are the same."""
        return self.modes == self.held


@lru_cache(maxsize=256)
def branches_of(topology: Topology) -> tuple[Branch, ...]:
    """The branches of a tree, children before parents, the root last.

    A path is rooted at an end, so that nothing branches; any other tree in its middle.
    """
    neighbours: dict[str, dict[str, str]] = {name: {} for name in topology.nodes}
    for mode in topology.contraction_modes:
        a, b = topology.holders(mode)
        neighbours[a][mode] = b
        neighbours[b][mode] = a
    order, above = _outwards(_root(neighbours), neighbours)
    order.reverse()
    position = {name: k for k, name in enumerate(order)}
    physical = set(topology.physical_modes)
    found = []
    for name in order:
        up, others = above.get(name), neighbours[name]
        down = tuple(mode for mode in topology.nodes[name] if mode in others and mode != up)
        found.append(
            Branch(
                name,
                up,
                position[name if up is None else others[up]],
                tuple(position[others[mode]] for mode in down),
                down,
                tuple(mode for mode in topology.nodes[name] if mode in physical),
                tuple(topology.nodes[name]),
            )
        )
    return tuple(found)


def _root(neighbours: Mapping[str, Mapping[str, str]]) -> str:
    ends = [name for name, modes in neighbours.items() if len(modes) <= 1]
    if len(ends) <= 2:
        return ends[-1]
    # The middle of a longest path: then branches are as short as they can be.
    start = _outwards(ends[0], neighbours)[0][-1]
    order, above = _outwards(start, neighbours)
    path = [order[-1]]
    while path[-1] != start:
        path.append(neighbours[path[-1]][above[path[-1]]])
    middle = path[(len(path) - 1) // 2 : len(path) // 2 + 1]
    return max(middle, key=lambda name: len(neighbours[name]))


def _outwards(
    root: str, neighbours: Mapping[str, Mapping[str, str]]
) -> tuple[list[str], dict[str, str]]:
    """All nodes, nearer ones first, and the mode of each towards the root."""
    order, above = [root], dict[str, str]()
    for name in order:
        for mode, other in neighbours[name].items():
            if mode != above.get(name):
                above[other] = mode
                order.append(other)
    return order, above


def longest_way(tree: Sequence[Branch]) -> int:
    """The nodes along the longest way through a tree that passes its root."""
    depths: list[int] = []
    for branch in tree:
        depths.append(1 + max((depths[c] for c in branch.children), default=0))
    return 1 + sum(sorted(depths[c] for c in tree[-1].children)[-2:])


def group_of(xp: Namespace, tree: Sequence[Branch], stack: NetworkStack, weights: Array) -> Group:
    """The arrays of a stack in the shape above, the weights in the root."""
    found = []
    for branch in tree:
        array = stack.arrays[branch.name]
        if not branch.is_in_order:
            array = xp.permute_dims(array, (0, *(axis + 1 for axis in branch.axes)))
        n_down = 1 + len(branch.down)
        size = math.prod(array.shape[n_down : n_down + len(branch.physical)])
        up = array.shape[-1] if branch.up is not None else 1
        if branch.up is None:
            array = array * xp.reshape(weights, (-1, *(1,) * (array.ndim - 1)))
        found.append(xp.reshape(array, (*array.shape[:n_down], size, up)))
    return found


def node_array(xp: Namespace, branch: Branch, array: Array, sizes: Mapping[str, int]) -> Array:
    """An array of shape (ranks down, n, rank up) with one axis per mode, in the node's own order."""
    physical = [sizes[mode] for mode in branch.physical]
    up = array.shape[-1:] if branch.up is not None else ()
    array = xp.reshape(array, (*array.shape[: len(branch.down)], *physical, *up))
    return array if branch.is_in_order else xp.permute_dims(array, branch.axes_back)


def moved(xp: Namespace, array: Array, axis: int, to: int) -> Array:
    """The array with one axis at another place."""
    if axis == to:
        return array
    order = [k for k in range(array.ndim) if k != axis]
    order.insert(to, axis)
    return xp.permute_dims(array, tuple(order))
