"""Lazy sums orthogonalised: what their norms, distances and inner products are computed from.

The part of a network on one side of a cut is a matrix T: its rows are the physical indices of that
part, its columns the indices of the modes that are cut. In a sum every summand has columns of its
own, so

    T = [ T_1 | T_2 | ... | T_M ],

side by side and without a zero. If Q R = T with orthonormal Q, then R = [ R_1 | ... | R_M ] can take the
place of T in everything that depends on inner products: the physical indices of that part are now
the few rows of R. Joining parts two by two until all nodes are in one leaves, for the whole sum, the
vector C = sum of w_m T_m in an orthonormal basis; its length is the norm. Where T has fewer rows than
columns it is its own R, with the unit vectors as basis.

Nothing is squared on the way, so a distance of 1e-10 between tensors of norm one is seen as such,
and neither loops, hyperedges nor traces matter: only the order of joining does. On a tree it goes
from the leaves inwards, and the work is linear in M as soon as M times the rank exceeds the rows.
A power of two is carried apart, so that long chains neither overflow nor underflow.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias

from tnsum import _arrays
from tnsum._typing import Array, Label, Namespace
from tnsum.contraction import (
    STACK,
    Path,
    evaluate_scaled,
    found_path,
    operands_of,
    pieces,
    plan_for,
    sliced,
    zipped_path,
)
from tnsum.network import NetworkStack
from tnsum.topology import Topology

Group: TypeAlias = tuple[NetworkStack, Array]


@dataclass(frozen=True)
class _Part:
    """Nodes and collapsed parts that are joined.

    A part with more rows than columns is collapsed: multiplied, and replaced by the triangle of its
    QR decomposition. Any other is left as it is until then.
    """

    sources: tuple[int, ...]
    rows: tuple[Label, ...]
    cut: frozenset[str]


def _order_of_joining(topology: Topology, ranks: Sequence[int]) -> Path:
    path = zipped_path(topology, 1, 0)
    if path is None:
        size = dict(zip(topology.contraction_modes, ranks, strict=True))
        number = {mode: k for k, mode in enumerate(size)}
        inputs = tuple(
            tuple({number[m] for m in held if m in size}) for held in topology.nodes.values()
        )
        path = found_path(inputs, (), tuple(size.values()))
    return path


@lru_cache(maxsize=256)
def _collapses(
    topology: Topology, shape: tuple[int, ...], groups: tuple[tuple[int, tuple[int, ...]], ...]
) -> tuple[tuple[_Part, ...], _Part]:
    """The parts that have more rows than columns, in order, and what is left at the end.

    `groups` gives for each group the number of its networks and their ranks. Parts are numbered:
    first the nodes, then the collapses.
    """
    sizes: dict[Label, int] = dict(zip(topology.physical_modes, shape, strict=True))
    n_nodes = len(topology.nodes)
    collapses: list[_Part] = []

    def n_columns(cut: Iterable[str]) -> int:
        columns = 0
        for count, ranks in groups:
            rank = dict(zip(topology.contraction_modes, ranks, strict=True))
            columns += count * math.prod(rank[m] if m in rank else sizes[m] for m in cut)
        return columns

    def part(sources: tuple[int, ...], held: Iterable[Label], cut: frozenset[str]) -> _Part:
        rows = tuple(m for m in dict.fromkeys(held) if m not in cut and m in sizes)
        columns = n_columns(cut)
        is_whole = len(parts) == 2 * n_nodes - 2
        if is_whole or math.prod(sizes[m] for m in rows) <= columns:
            return _Part(sources, rows, cut)
        collapses.append(_Part(sources, rows, cut))
        label = ("rows", len(collapses) - 1)
        sizes[label] = columns
        return _Part((n_nodes + len(collapses) - 1,), (label,), cut)

    holders = Counter(mode for held in topology.nodes.values() for mode in set(held))
    parts: list[_Part] = []
    for k, held in enumerate(topology.nodes.values()):
        parts.append(part((k,), held, frozenset(m for m in held if holders[m] > 1)))
    for i, j in _order_of_joining(topology, groups[0][1]):
        a, b = parts[i], parts[j]
        holders.subtract(a.cut)
        holders.subtract(b.cut)
        cut = frozenset(m for m in a.cut | b.cut if holders[m] > 0)
        holders.update(cut)
        joined: tuple[Label, ...] = (*a.rows, *b.rows, *sorted((a.cut | b.cut) - cut))
        parts.append(part(a.sources + b.sources, joined, cut))
    return tuple(collapses), parts[-1]


def cores(
    xp: Namespace, topology: Topology, sums: Sequence[Sequence[Group]]
) -> list[tuple[Array, Array]]:
    """Each sum as a vector in one orthonormal basis for all of them, with a power of two beside it.

    A sum comes as its groups: stacks in one dtype with their weights (`NetworkSum.grouped`).
    """
    groups = [group for one in sums for group in one]
    collapses, whole = _collapses_of(topology, groups)
    operands = [operands_of(stack) for stack, _ in groups]
    exponents: list[Array] = [0.0] * len(topology.nodes)
    for number, part in enumerate(collapses):
        output = (*part.rows, STACK, *sorted(part.cut))
        chosen = [[held[k] for k in part.sources] for held in operands]
        found = [evaluate_scaled(xp, some, output) for some in chosen]
        triangles, exponent = _triangles(xp, found, len(part.rows))
        for held, triangle in zip(operands, triangles, strict=True):
            held.append((triangle, (("rows", number), *output[len(part.rows) :])))
        exponents.append(exponent + sum(exponents[k] for k in part.sources))
    taken = sum(exponents[k] for k in whole.sources)
    vectors = []
    for one in sums:
        found = []
        for (stack, weights), held in zip(one, operands, strict=False):
            chosen_ones = [*(held[k] for k in whole.sources), (weights, (STACK,))]
            first = sliced(chosen_ones, STACK, slice(0, 1))
            largest = plan_for(first, (STACK, *whole.rows))[0].largest
            for piece in pieces(chosen_ones, STACK, len(stack), largest):
                found.append(evaluate_scaled(xp, piece, whole.rows))
        operands = operands[len(one) :]
        array, exponent = sum_of_scaled(xp, found)
        vectors.append((xp.reshape(array, (-1,)), exponent + taken))
    return vectors


def _triangles(
    xp: Namespace, found: Sequence[tuple[Array, Array]], n_rows: int
) -> tuple[list[Array], Array]:
    """The columns of R = qr([T_1 | T_2 | ...]) for each T, and the power of two taken out of all."""
    top = reduce(xp.maximum, [exponent for _, exponent in found])
    matrices, shapes = [], []
    for array, exponent in found:
        shapes.append(tuple(array.shape[n_rows:]))
        matrix = xp.reshape(array, (math.prod(array.shape[:n_rows]), math.prod(shapes[-1])))
        matrices.append(_arrays.unscaled(xp, matrix, exponent - top))
    joined = matrices[0] if len(matrices) == 1 else xp.concat(matrices, axis=1)
    triangle, taken = _arrays.rescaled(xp, _arrays.triangle(xp, joined))
    columns, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        columns.append(xp.reshape(triangle[:, start:stop], (-1, *shape)))
        start = stop
    return columns, top + taken


def sum_of_scaled(xp: Namespace, found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The sum of arrays that each have a power of two beside them, with the largest beside it."""
    top = reduce(xp.maximum, [exponent for _, exponent in found])
    scaled = [_arrays.unscaled(xp, array, exponent - top) for array, exponent in found]
    return reduce(operator.add, scaled), top


def work_of_cores(topology: Topology, sums: Sequence[Sequence[Group]]) -> int:
    """About how many multiplications `cores` makes."""
    groups = [group for one in sums for group in one]
    collapses, whole = _collapses_of(topology, groups)
    work = 0
    shapes = [[(_Shape(a.shape), modes) for a, modes in operands_of(g)] for g, _ in groups]
    for number, part in enumerate(collapses):
        output = (*part.rows, STACK, *sorted(part.cut))
        n_columns = 0
        for held in shapes:
            sources = [held[k] for k in part.sources]
            work += plan_for(sources, output)[0].n_multiplications
            size = {m: n for a, modes in sources for m, n in zip(modes, a.shape, strict=True)}
            n_columns += math.prod(size[m] for m in output[len(part.rows) :])
            n_rows = math.prod(size[m] for m in part.rows)
        for held in shapes:
            size = {
                m: n
                for k in part.sources
                for m, n in zip(held[k][1], held[k][0].shape, strict=True)
            }
            cut = output[len(part.rows) :]
            held.append((_Shape((n_columns, *(size[m] for m in cut))), (("rows", number), *cut)))
        # Householder's QR runs at about half the speed of a matrix product.
        work += 2 * n_rows * n_columns**2
    for (_, weights), held in zip(groups, shapes, strict=True):
        last = [*(held[k] for k in whole.sources), (_Shape(weights.shape), (STACK,))]
        work += plan_for(last, whole.rows)[0].n_multiplications
    return work


@dataclass(frozen=True)
class _Shape:
    """Stands for an array where only its shape is asked for."""

    shape: tuple[int, ...]


def _collapses_of(topology: Topology, groups: Sequence[Group]) -> tuple[tuple[_Part, ...], _Part]:
    ranks = tuple((len(stack), tuple(stack.ranks.values())) for stack, _ in groups)
    return _collapses(topology, groups[0][0].shape, ranks)
