"""In which order the nodes of a network are multiplied, found once per topology and sizes.

The order comes from opt_einsum, from cotengra (if installed) for large graphs with loops, and from the
leaves inwards where a tree is contracted to something small.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from tnsum._typing import Label, Operand
from tnsum.topology import Topology

Path: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Plan:
    """The order of the products, and what they cost.

    Attributes
    ----------
    path : tuple of pairs
        Which two operands are multiplied; the result of step k counts as operand n + k.
    keep : tuple
        For each operand and then each step, the modes that are needed afterwards.
    n_multiplications, largest : int
        The multiplications of all products; the entries of the largest array.
    """

    path: Path
    keep: tuple[frozenset[int], ...]
    n_multiplications: int
    largest: int

    @property
    def work(self) -> int:
        """The multiplications, with as many for each product as would fit into the time of its start."""
        return self.n_multiplications + 100_000 * len(self.path)


def plan_for(
    operands: Sequence[Operand], output: Sequence[Label], path: Path | None = None
) -> tuple[Plan, dict[Label, int]]:
    """The plan of a contraction, and the numbers that stand in it for the modes.

    Summed modes of size one are passed over, as `without_trivial_modes` does.
    """
    numbers: dict[Label, int] = {}
    sizes: list[int] = []
    inputs = []
    for array, modes in operands:
        held = []
        for mode, size in zip(modes, array.shape, strict=True):
            if size > 1 or mode in output:
                if mode not in numbers:
                    numbers[mode] = len(numbers)
                    sizes.append(size)
                held.append(numbers[mode])
        inputs.append(tuple(held))
    return _plan(tuple(inputs), tuple(numbers[m] for m in output), tuple(sizes), path), numbers


@lru_cache(maxsize=8192)
def _plan(
    inputs: tuple[tuple[int, ...], ...],
    output: tuple[int, ...],
    sizes: tuple[int, ...],
    path: Path | None,
) -> Plan:
    if path is None:
        path = found_path(inputs, output, sizes)
    live = [set(modes) for modes in inputs]
    holders = Counter(mode for modes in live for mode in modes)
    holders.update(output)
    keep = [frozenset(m for m in modes if holders[m] > 1) for modes in live]
    held = list(keep)
    # A mode that only one operand holds is summed at once, before any product.
    n_multiplications = 0
    largest = max((_extent(modes, sizes) for modes in live), default=1)
    for i, j in path:
        union = held[i] | held[j]
        n_multiplications += _extent(union, sizes)
        holders.subtract(held[i])
        holders.subtract(held[j])
        kept = frozenset(mode for mode in union if holders[mode] > 0)
        holders.update(kept)
        held.append(kept)
        keep.append(kept)
        largest = max(largest, _extent(kept, sizes))
    return Plan(path, tuple(keep), n_multiplications, largest)


def _extent(modes: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[mode] for mode in modes)


def found_path(
    inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], sizes: tuple[int, ...]
) -> Path:
    """A good order of products, as pairs of operands numbered in the order in which they are made."""
    if len(inputs) <= 2:
        return ((0, 1),) if len(inputs) == 2 else ()
    from opt_einsum import paths

    size_of = dict(enumerate(sizes))
    path = _numbered(
        paths.auto(list(map(frozenset, inputs)), frozenset(output), size_of), len(inputs)
    )
    # opt_einsum searches all orders of few operands; among many it is greedy, and a longer search
    # pays where that order is dear.
    work = _plan(inputs, output, sizes, path).n_multiplications
    if len(inputs) > _FEW and work > _DEAR:
        linear = _cotengra_path(inputs, output, size_of)
        if linear is not None:
            other = _numbered(linear, len(inputs))
            if _plan(inputs, output, sizes, other).n_multiplications < work:
                return other
    return path


_FEW, _DEAR = 14, 10**8


def _numbered(linear: Iterable[Sequence[int]], n: int) -> Path:
    """A path of positions in a shrinking list, as pairs of numbers that stay."""
    ids = list(range(n))
    path: list[tuple[int, int]] = []
    for step in linear:
        chosen = [ids.pop(k) for k in sorted(step, reverse=True)]
        # A step of several operands multiplies them one after the other.
        while len(chosen) > 1:
            path.append((chosen.pop(), chosen.pop()))
            chosen.append(n + len(path) - 1)
        ids.append(chosen[0])
    return tuple(path)


def _cotengra_path(
    inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], size_of: dict[int, int]
) -> Any:
    """The path of cotengra's search, or None where it is not installed.

    The search is random and takes no seed: its orders, and with them the last digits of a result, may
    differ from one process to the next.
    """
    try:
        import cotengra
    except ImportError:
        return None
    search = cotengra.HyperOptimizer(
        methods=["greedy", "labels"], max_repeats=16, optlib="random", parallel=False, progbar=False
    )
    return cotengra.array_contract_path(inputs, output, size_dict=size_of, optimize=search)


@lru_cache(maxsize=256)
def inward(topology: Topology) -> tuple[tuple[int, int], ...]:
    """The nodes of a tree, by number, from the leaves inwards, each with the one it hangs on.

    Leaves are taken away layer by layer, so that what is left at the end is a centre of the tree.
    """
    number = {name: k for k, name in enumerate(topology.nodes)}
    neighbours: list[set[int]] = [set() for _ in number]
    for mode in topology.contraction_modes:
        i, j = (number[name] for name in topology.holders(mode))
        neighbours[i].add(j)
        neighbours[j].add(i)
    layer = [k for k, near in enumerate(neighbours) if len(near) == 1]
    steps = []
    while layer:
        following = []
        for leaf in layer:
            if not neighbours[leaf]:
                continue
            (parent,) = neighbours[leaf]
            steps.append((leaf, parent))
            neighbours[leaf].clear()
            neighbours[parent].discard(leaf)
            if len(neighbours[parent]) == 1:
                following.append(parent)
        layer = following
    return tuple(steps)


@lru_cache(maxsize=256)
def zipped_path(topology: Topology, copies: int, n_others: int) -> Path | None:
    """For `copies` networks of a tree, node by node from the leaves inwards, then other operands.

    The operands are the nodes of the first copy, then those of the next; None if there is no tree.
    """
    if not topology.is_tree:
        return None
    n = len(topology.nodes)
    made = copies * n + n_others
    current = list(range(n))
    path: list[tuple[int, int]] = []

    def multiply(i: int, j: int) -> int:
        path.append((i, j))
        return made + len(path) - 1

    steps = inward(topology)
    centre = steps[-1][1] if steps else 0
    for leaf, parent in (*steps, (centre, centre)):
        for copy in range(1, copies):
            current[leaf] = multiply(current[leaf], copy * n + leaf)
        if parent != leaf:
            current[parent] = multiply(current[parent], current[leaf])
    for other in range(copies * n, made):
        current[centre] = multiply(current[centre], other)
    return tuple(path)
