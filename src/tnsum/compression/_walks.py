"""The order in which overlaps of two networks are multiplied, and in which a sweep comes to their nodes.

An order of products is a binary tree: its leaves are the nodes of the topology, every other *place* is
the product of two places before it. `_environments` says what is found there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal, TypeAlias

from tnsum.orthogonal import Group
from tnsum.paths import Path, found_path
from tnsum.topology import Topology

Step: TypeAlias = tuple[Literal["inside", "outside", "update"], int]


@dataclass(frozen=True)
class Tree:
    """An order of products, and a walk to all nodes.

    Places are numbered: the nodes of the topology first, then each pair of places that is multiplied.

    Attributes
    ----------
    topology : Topology
    pairs : tuple of pairs of int
    cuts : tuple of tuple of str
        The modes that are cut between each place and all the rest.
    above : tuple of int
        The place that each place lies below; of the last one, itself.
    steps : tuple of Step
        What a walk does, one step after the other.
    """

    topology: Topology
    pairs: Path
    cuts: tuple[tuple[str, ...], ...]
    above: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def n_nodes(self) -> int:
        """How many places are nodes."""
        return len(self.topology.nodes)

    @property
    def root(self) -> int:
        """The place of the whole network."""
        return len(self.cuts) - 1

    def beside(self, place: int) -> int:
        """The place that is multiplied with a place."""
        i, j = self.pairs[self.above[place] - self.n_nodes]
        return j if place == i else i

    def way_to(self, place: int) -> list[int]:
        """The places between the root and a place, from above."""
        found = []
        while (place := self.above[place]) != self.root:
            found.append(place)
        return found[::-1]


@lru_cache(maxsize=256)
def tree_of(topology: Topology, sizes: tuple[tuple[str, int], ...]) -> Tree:
    """A tree in which the overlap of two networks of these sizes takes few multiplications.

    No mode may be held twice by one node, and no contraction mode by one node only.
    """
    pairs = _pairs(topology, dict(sizes))
    n = len(topology.nodes)
    below = [frozenset({k}) for k in range(n)]
    above = list(range(n + len(pairs)))
    for k, (i, j) in enumerate(pairs, n):
        below.append(below[i] | below[j])
        above[i] = above[j] = k
    number = {name: k for k, name in enumerate(topology.nodes)}
    holders = {m: frozenset(number[name] for name in topology.holders(m)) for m in topology.modes}
    cuts = tuple(
        tuple(mode for mode, nodes in holders.items() if nodes & inside and nodes - inside)
        for inside in below
    )
    return Tree(topology, pairs, cuts, tuple(above), _steps(pairs, n))


def _pairs(topology: Topology, sizes: Mapping[str, int]) -> Path:
    """Which two places are multiplied, one pair after the other."""
    physical = set(topology.physical_modes)
    several = [m for m in topology.modes if len(topology.holders(m)) > 1]
    number = {mode: k for k, mode in enumerate(several)}
    inputs = tuple(
        tuple(number[m] for m in held if m in number) for held in topology.nodes.values()
    )
    extents = tuple(sizes[m] if m in physical else sizes[m] ** 2 for m in several)
    neighbours = {pair for m in several for pair in combinations(topology.holders(m), 2)}
    if 2 < len(inputs) <= _FEW and len(neighbours) <= 2 * len(inputs):
        # Where each node has few neighbours, the best of all orders is found at once.
        from opt_einsum.paths import DynamicProgramming, linear_to_ssa

        search = DynamicProgramming()
        found = search(list(map(frozenset, inputs)), frozenset(), dict(enumerate(extents)))
        return tuple((i, j) for i, j in linear_to_ssa(found))
    return found_path(inputs, (), extents)


_FEW = 20


def _steps(pairs: Path, n: int) -> tuple[Step, ...]:
    """A walk to all leaves: first the insides that it meets before it has been there."""
    steps: list[Step] = []
    first = {n + len(pairs) - 1}
    for k, (i, _) in reversed(list(enumerate(pairs, n))):
        first |= {i} if k in first else set()
    steps += [("inside", k) for k in range(n, n + len(pairs)) if k not in first]
    # What is still to be done, the next one last.
    waiting: list[Step | int] = [n + len(pairs) - 1]
    while waiting:
        step = waiting.pop()
        if not isinstance(step, int):
            steps.append(step)
        elif step < n:
            steps.append(("update", step))
        else:
            i, j = pairs[step - n]
            todo: list[Step | int] = []
            for place in (i, j):
                todo += [("outside", place)] if place >= n else []
                todo += [place]
                todo += [("inside", place)] if place >= n else []
            waiting += reversed(todo)
    # What follows the last update would serve no one.
    while steps[-1][0] != "update":
        steps.pop()
    return tuple(steps)


def work_of_sweep(tree: Tree, sizes: Mapping[str, int], groups: Sequence[Group]) -> int:
    """About how many multiplications a sweep of a network of these sizes takes."""
    physical = set(tree.topology.physical_modes)
    products = [{*tree.cuts[i], *tree.cuts[j]} for i, j in tree.pairs]
    products += [set(held) for held in tree.topology.nodes.values()]
    work = 0
    for n, ranks in [(1, sizes), *((len(stack), stack.ranks) for stack, _ in groups)]:
        size = {m: k if m in physical else k * ranks[m] for m, k in sizes.items()}
        work += n * sum(math.prod(size[mode] for mode in modes) for modes in products)
    return 4 * work
