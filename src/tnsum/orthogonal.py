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
Every summand carries a power of two of its own, so that long chains neither overflow nor underflow, and
no summand is lost beside a larger one before their weights decide which of them is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias

from tnsum import _matrices, _scale
from tnsum._memory import check_memory
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.contraction import STACK, evaluate_scaled, operands_of, parts_of_stack, sliced
from tnsum.network import NetworkStack
from tnsum.paths import Path, found_path, plan_for, zipped_path
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


Ranks: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""For each group the number of its networks, and the ranks of each of them."""


@dataclass(frozen=True)
class _Reduction:
    """The parts to collapse, in order, what is left at the end, and the multiplications it takes.

    Parts are numbered: first the nodes, then the collapsed ones.
    """

    collapses: tuple[_Part, ...]
    whole: _Part
    work: int


@lru_cache(maxsize=512)
def _reduction(topology: Topology, shape: tuple[int, ...], groups: Ranks) -> _Reduction:
    """The cheapest of some ways: collapse every tall part, only very tall ones, or none."""
    factors = [1.0, 8.0] + ([math.inf] if math.prod(shape) <= _DENSE else [])
    found = []
    for factor in factors:
        collapses, whole, sizes = _collapsed(topology, shape, groups, factor)
        work = _work(topology, groups, collapses, whole, sizes)
        found.append(_Reduction(tuple(collapses), whole, work))
    return min(found, key=lambda reduction: reduction.work)


# The largest tensor for which contracting it is considered instead of orthogonalising.
_DENSE = 2**26


def _collapsed(
    topology: Topology, shape: tuple[int, ...], groups: Ranks, factor: float
) -> tuple[list[_Part], _Part, dict[Label, int]]:
    """The parts with more than `factor` times as many rows as columns, what is left, sizes of rows."""
    sizes: dict[Label, int] = dict(zip(topology.physical_modes, shape, strict=True))
    n_nodes = len(topology.nodes)
    collapses: list[_Part] = []

    def part(sources: tuple[int, ...], held: Iterable[Label], cut: frozenset[str]) -> _Part:
        # Rows of size one would only cost axes, of which an array has at most 64.
        rows = tuple(m for m in dict.fromkeys(held) if m not in cut and sizes.get(m, 1) > 1)
        columns = sum(n * _extent(cut, rank, sizes) for n, rank in ranks)
        is_whole = len(parts) == 2 * n_nodes - 2
        if is_whole or math.prod(sizes[m] for m in rows) <= factor * columns:
            return _Part(sources, rows, cut)
        collapses.append(_Part(sources, rows, cut))
        label = ("rows", len(collapses) - 1)
        sizes[label] = columns
        return _Part((n_nodes + len(collapses) - 1,), (label,), cut)

    ranks = [(n, dict(zip(topology.contraction_modes, r, strict=True))) for n, r in groups]
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
    return collapses, parts[-1], sizes


def _extent(modes: Iterable[str], ranks: dict[str, int], sizes: dict[Label, int]) -> int:
    return math.prod(ranks[m] if m in ranks else sizes[m] for m in modes)


def _work(
    topology: Topology,
    groups: Ranks,
    collapses: Sequence[_Part],
    whole: _Part,
    sizes: dict[Label, int],
) -> int:
    """About how many multiplications it takes to collapse the parts and to multiply what is left."""
    work = 0
    n_columns = [0] * len(collapses)
    for n, rank in groups:
        size: dict[Label, int] = {STACK: n, **sizes}
        size.update(zip(topology.contraction_modes, rank, strict=True))
        held: list[tuple[Label, ...]] = [(STACK, *modes) for modes in topology.nodes.values()]

        def multiplied(sources: Iterable[int], output: tuple[Label, ...]) -> int:
            shapes = [(_Shape(tuple(size[m] for m in held[k])), held[k]) for k in sources]  # noqa: B023
            return plan_for(shapes, output)[0].work

        for k, part in enumerate(collapses):
            work += multiplied(part.sources, (*part.rows, STACK, *sorted(part.cut)))
            held.append((("rows", k), STACK, *sorted(part.cut)))
            n_columns[k] += math.prod(size[m] for m in held[-1][1:])
        work += multiplied(whole.sources, whole.rows)
    # Householder's QR runs at about half the speed of a matrix product.
    rows = [math.prod(sizes[m] for m in part.rows) for part in collapses]
    return work + sum(2 * m * n * n for m, n in zip(rows, n_columns, strict=True))


@dataclass(frozen=True)
class _Shape:
    """Stands for an array where only its shape is asked for."""

    shape: tuple[int, ...]


def _reduction_of(topology: Topology, groups: Sequence[Group]) -> _Reduction:
    ranks = tuple((len(stack), tuple(stack.ranks.values())) for stack, _ in groups)
    return _reduction(topology, groups[0][0].shape, ranks)


def work_of_cores(topology: Topology, sums: Sequence[Sequence[Group]]) -> int:
    """About how many multiplications `cores` makes."""
    return _reduction_of(topology, [group for one in sums for group in one]).work


def cores(
    xp: Namespace, topology: Topology, sums: Sequence[Sequence[Group]]
) -> list[tuple[Array, Array]]:
    """Each sum as a vector in one orthonormal basis for all of them, with a power of two beside it.

    A sum comes as its groups: stacks in one dtype with their weights (`NetworkSum._grouped`).
    """
    groups = [group for one in sums for group in one]
    reduction = _reduction_of(topology, groups)
    whole = reduction.whole
    stacks, scales = zip(*(balanced_stack(xp, stack) for stack, _ in groups), strict=True)
    operands, own = [operands_of(stack) for stack in stacks], list(scales)
    for number, part in enumerate(reduction.collapses):
        output = (*part.rows, STACK, *sorted(part.cut))
        found = []
        for g, held in enumerate(operands):
            array, taken = evaluate_scaled(xp, [held[k] for k in part.sources], output)
            # Columns keep their own scale: a power of two beside one is beside its triangle.
            own[g] = own[g] + taken
            found.append(array)
        for g, triangle in enumerate(_triangles(xp, found, len(part.rows))):
            # Axis 1 counts the summands.
            triangle, taken = _scale.rescaled_each(xp, triangle, 1, _LEAST)
            own[g] = own[g] + taken
            operands[g].append((triangle, (("rows", number), *output[len(part.rows) :])))
    vectors, start = [], 0
    for one in sums:
        numbers = range(start, start + len(one))
        start += len(one)
        total: _scale.Scaled | None = None
        for g in numbers:
            left = [operands[g][k] for k in whole.sources]
            weighed = scaled_weights(xp, groups[g][1], own[g])
            for term in _terms(xp, left, *weighed, whole.rows):
                total = _scale.plus(xp, total, term)
        assert total is not None
        core, taken = _scale.rescaled(xp, xp.reshape(total[0], (-1,)))
        vectors.append((core, total[1] + taken))
    return vectors


def _terms(
    xp: Namespace,
    operands: Sequence[Operand],
    weights: Array,
    exponents: Array,
    rows: Sequence[Label],
) -> Iterator[_scale.Scaled]:
    """The weighted sum of what is left of a group's networks, in pieces."""
    weighed = [*operands, (weights, (STACK,))]
    for part in parts_of_stack(weighed, weights.shape[0], rows):
        beside = sliced([(exponents, (STACK,))], STACK, part)
        yield evaluate_scaled(xp, sliced(weighed, STACK, part), rows, exponents=beside)


def balanced(xp: Namespace, groups: Sequence[Group]) -> tuple[list[Group], Array]:
    """The groups with the largest entry of every node near one, and the power of two that is left.

    The scale of each summand goes into its weight, so that summands whose nodes are large in one place
    and small in another do not push each other out of range on the way.
    """
    stacks, own = zip(*(balanced_stack(xp, stack) for stack, _ in groups), strict=True)
    weights, top = weights_in_scale(xp, [weight for _, weight in groups], own)
    return list(zip(stacks, weights, strict=True)), top


def balanced_stack(xp: Namespace, stack: NetworkStack) -> tuple[NetworkStack, Array]:
    """A stack with nodes near one, and the power of two that is taken out of each network."""
    arrays: dict[str, Array] = {}
    exponents: Array = 0.0
    for name, array in stack.arrays.items():
        least = _scale.reach(array.dtype) / len(stack.arrays)
        arrays[name], taken = _scale.rescaled_each(xp, array, 0, least)
        exponents = exponents + taken
    return NetworkStack._unchecked(stack.topology, arrays), exponents


def weights_in_scale(
    xp: Namespace, weights: Sequence[Array], exponents: Sequence[Array]
) -> tuple[list[Array], Array]:
    """Weights times their summands' powers of two, and the largest of these, which is taken out."""
    pairs = [scaled_weights(xp, w, e) for w, e in zip(weights, exponents, strict=True)]
    top = reduce(xp.maximum, [xp.max(powers) for _, powers in pairs])
    top = xp.where(top <= _scale.OF_ZERO / 2, xp.zeros_like(top), top)
    return [_scale.unscaled(xp, weight, powers - top) for weight, powers in pairs], top


def scaled_weights(xp: Namespace, weights: Array, exponents: Array) -> tuple[Array, Array]:
    """Weights near one, and the powers of two of their summands with what was taken out of them."""
    weights, taken = _scale.rescaled_each(xp, weights, 0, _LEAST)
    return weights, exponents + taken


_ADVICE = "Loops of high rank and many summands of high order make it large; inner needs less."

# The powers of two up to which triangles are left as they are: far less than the range of any dtype.
_LEAST = 15.0


def _triangles(xp: Namespace, found: Sequence[Array], n_rows: int) -> list[Array]:
    """The columns of R = qr([T_1 | T_2 | ...]) for each T."""
    shapes = [tuple(array.shape[n_rows:]) for array in found]
    matrices = [
        xp.reshape(array, (math.prod(array.shape[:n_rows]), math.prod(shape)))
        for array, shape in zip(found, shapes, strict=True)
    ]
    n_entries = sum(math.prod(matrix.shape) for matrix in matrices)
    what = "The largest matrix to be orthogonalised, with its work space,"
    check_memory(3 * n_entries, matrices[0].dtype, what, _ADVICE)
    joined = matrices[0] if len(matrices) == 1 else xp.concat(matrices, axis=1)
    triangle = _matrices.triangle(xp, joined)
    columns, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        columns.append(xp.reshape(triangle[:, start:stop], (-1, *shape)))
        start = stop
    return columns
