"""Networks from which a fit starts.

*Projected.* Along every contraction mode a sum has one block for each summand. With functions f_0 = 1,
f_1, f_2, ... of the summand m that are orthonormal under the weights |w_m|, node v of the sum is, in the
basis of these functions,

    sum_m |w_m| f_a(m) f_b(m) ... X_m,v          with one of a, b, ... for each contraction mode of v.

All functions give a sum of all summands. The constant f_0 alone gives the mean of their nodes, which is
right to first order in how they differ, if they share a gauge. The next functions are the principal
components of the nodes: along these the summands differ most. As many are taken as fit into the ranks.

*Blocks.* Summands as blocks: first the largest, then always the one that is farthest from the span of
those before, as many as fit. A CP network counts as many summands, one for each component: if all
components are drawn from few, these are found at once.

*Random.* Where more than two nodes hold a mode, as in CP, alternating least squares may creep for long
past a bad place (a swamp): other numbers find another way.

Ranks that are too large are cut. A mode that two nodes hold keeps the leading singular values of the
product of the two, all their other modes taken for physical; any other mode keeps those indices at which
the product of the nodes' norms is largest. Small random numbers take the place of zeros and of what is
missing: a mode that is zero on both sides would stay so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tnsum import _arrays
from tnsum._matrices import svd
from tnsum._typing import Array, Namespace
from tnsum.compression._cp import components
from tnsum.compression._pairs import inner_products
from tnsum.compression._targets import Target, log2_norms, log2_on_host
from tnsum.contraction import piece_size
from tnsum.multilinear import superdiagonal
from tnsum.network import NetworkStack
from tnsum.orthogonal import Group
from tnsum.topology import Topology

Nodes: TypeAlias = dict[str, Array]
Generator: TypeAlias = np.random.Generator

_N_RANDOM = 3
# Random numbers in place of zeros, relative to the root mean square of the others.
_SMALL = 0.1
# Functions beyond those that are asked for, and steps, of the search for principal components.
_FURTHER, _N_STEPS = 4, 4


def starts(
    xp: Namespace, target: Target, sizes: Mapping[str, int], seed: int
) -> Iterator[list[Array]]:
    """The arrays of several networks of these sizes, made as they are asked for."""
    generator = np.random.default_rng(seed)
    topology, norms = target.topology, target.log2_norms
    heaviest = max(range(len(norms)), key=lambda g: np.logaddexp2.reduce(norms[g]))
    (group,) = _normalised(xp, [target.groups[heaviest]])
    nodes = _projected(xp, sizes, group, generator)
    yield _of_sizes(xp, topology, sizes, nodes, generator)
    is_cp = len(topology.contraction_modes) == 1
    if is_cp or sum(map(len, norms)) > 1:
        groups = [components(xp, *g) for g in target.groups] if is_cp else target.groups
        nodes = _blocks(xp, topology, sizes, groups)
        yield _of_sizes(xp, topology, sizes, nodes, generator)
    if any(len(topology.holders(mode)) > 2 for mode in topology.contraction_modes):
        for _ in range(_N_RANDOM):
            shapes = [tuple(sizes[m] for m in held) for held in topology.nodes.values()]
            yield [_random(xp, shape, group[1], generator) for shape in shapes]


def _normalised(xp: Namespace, groups: Sequence[Group]) -> list[Group]:
    """Groups with all nodes of norm one and weights in 0 ... 1; their phases are in the first node.

    Summands that differ only in how their norm is spread over the nodes then have one gauge.
    """
    stacks, logs = [], []
    for stack, weights in groups:
        arrays: Nodes = {}
        size = xp.abs(weights)
        log = log2_on_host(size)
        factors = weights / _astype(xp, _or_one(xp, size), weights)
        for name, array in stack.arrays.items():
            norms = xp.linalg.vector_norm(xp.reshape(array, (array.shape[0], -1)), axis=1)
            log = log + log2_on_host(norms)
            factors = factors / _astype(xp, _or_one(xp, norms), weights)
            arrays[name] = array * xp.reshape(factors, (-1, *(1,) * (array.ndim - 1)))
            factors = xp.ones_like(factors)
        stacks.append(NetworkStack._unchecked(stack.topology, arrays))
        logs.append(log)
    top = max(np.max(log) for log in logs)
    like = groups[0][1]
    return [
        (stack, _from_host(xp, 2.0 ** (log - top), like))
        for stack, log in zip(stacks, logs, strict=True)
    ]


def _or_one(xp: Namespace, array: Array) -> Array:
    return xp.where(array > 0, array, xp.ones_like(array))


def _astype(xp: Namespace, array: Array, like: Array) -> Array:
    return _arrays.astype(xp, array, like.dtype)


def _from_host(xp: Namespace, numbers: Any, like: Array) -> Array:
    return xp.asarray(numbers, dtype=like.dtype, device=_arrays.device_of(like))


def _random(xp: Namespace, shape: tuple[int, ...], like: Array, generator: Generator) -> Array:
    """Normal numbers of variance one in the dtype of an array."""
    numbers = generator.standard_normal(shape)
    if _arrays.is_complex(like.dtype):
        numbers = (numbers + 1j * generator.standard_normal(shape)) / math.sqrt(2)
    return _from_host(xp, numbers, like)


# functions of the summand


def _projected(
    xp: Namespace, sizes: Mapping[str, int], group: Group, generator: Generator
) -> Nodes:
    """The nodes of a group of summands in a basis of as many functions as fit."""
    stack, weights = group
    n, ranks = len(stack), stack.ranks
    room = {mode: max(1, min(n, sizes[mode] // rank)) for mode, rank in ranks.items()}
    functions = _functions(xp, group, max(room.values(), default=1), generator)
    found = {}
    for name, held in stack.topology.nodes.items():
        array = stack.arrays[name]
        widths = [room[m] for m in held if m in room]
        step = max(1, piece_size(array) // math.prod(widths))
        total: Array = 0.0
        for start in range(0, n, step):
            piece = slice(start, min(start + step, n))
            products = weights[piece, None]
            for width in widths:
                products = products[:, :, None] * functions[piece, :width][:, None, :]
                products = xp.reshape(products, (products.shape[0], -1))
            total = total + products.T @ xp.reshape(array[piece, ...], (products.shape[0], -1))
        total = xp.reshape(total, (*widths, *array.shape[1:]))
        # Each function goes beside the index of its mode, and both become one.
        axes, shape = list[int](), list[int]()
        for k, mode in enumerate(held):
            axes += [sum(m in room for m in held[:k])] if mode in room else []
            axes += [len(widths) + k]
            shape += [array.shape[k + 1] * room.get(mode, 1)]
        found[name] = xp.reshape(xp.permute_dims(total, tuple(axes)), tuple(shape))
    return found


def _functions(xp: Namespace, group: Group, width: int, generator: Generator) -> Array:
    """The constant and the leading principal components of the nodes: (summands, width).

    By subspace iteration with the real parts of the inner products of all nodes. What is orthogonal to
    the constant sees no mean.
    """
    stack, weights = group
    n = len(stack)
    roots = xp.sqrt(weights / xp.sum(weights))[:, None]
    constant = xp.abs(roots)
    basis = _random(xp, (n, min(n, width + _FURTHER) - 1), constant, generator)
    matrices = [xp.reshape(array, (n, -1)) * roots for array in stack.arrays.values()]
    for _ in range(_N_STEPS if width > 1 else 0):
        basis = xp.linalg.qr(xp.concat([constant, basis], axis=1))[0][:, 1:]
        images = [m @ (_arrays.conj(xp, m.T) @ _astype(xp, basis, m)) for m in matrices]
        basis = sum(xp.real(m) if _arrays.is_complex(m.dtype) else m for m in images)
    basis = xp.linalg.qr(xp.concat([constant, basis], axis=1))[0][:, 1:width]
    found = xp.concat([constant, basis], axis=1) / _or_one(xp, constant)
    return _astype(xp, found, weights)


# blocks


def _blocks(
    xp: Namespace, topology: Topology, sizes: Mapping[str, int], groups: Sequence[Group]
) -> Nodes:
    """Summands that differ, as blocks: as many as fit, but at least one."""
    left = {mode: sizes[mode] for mode in topology.contraction_modes}
    normalised = _normalised(xp, groups)
    chosen: list[Nodes] = []
    for g, m in _pivots(xp, groups):
        stack, weights = normalised[g]
        for mode, rank in stack.ranks.items():
            left[mode] -= rank
        if chosen and min(left.values(), default=-1) < 0:
            break
        share = float(xp.abs(weights[m])) ** (1 / len(topology.nodes))
        one = {name: array[m : m + 1, ...] * share for name, array in stack.arrays.items()}
        chosen.append({name: array[0, ...] for name, array in one.items()})
    found = {}
    for name, held in topology.nodes.items():
        shared = [k for k, mode in enumerate(held) if mode not in left]
        found[name] = superdiagonal(*(nodes[name] for nodes in chosen), shared=shared)
    return found


def _pivots(xp: Namespace, groups: Sequence[Group]) -> Iterator[tuple[int, int]]:
    """Summands, by group and number: first the largest, then always what is farthest from the others.

    This is Cholesky's decomposition of their Gram matrix with pivots; a column is found when it is
    needed.
    """
    logs = np.concatenate([log2_norms(xp, stack, weights) for stack, weights in groups])
    top = np.max(logs)
    left = 4.0 ** (logs - top)
    ends = np.cumsum([len(stack) for stack, _ in groups])
    columns: list[Any] = []
    for _ in range(len(left)):
        pivot = int(np.argmax(left))
        g = int(np.searchsorted(ends, pivot, side="right"))
        m = pivot - int(ends[g] - len(groups[g][0]))
        yield g, m
        if left[pivot] <= 0:
            return
        column = _gram_column(xp, groups, g, m, 2 * top)
        for other in columns:
            column = column - other * np.conj(other[pivot])
        columns.append(column / math.sqrt(left[pivot]))
        left = left - np.abs(columns[-1]) ** 2
        left[pivot] = -math.inf


def _gram_column(xp: Namespace, groups: Sequence[Group], g: int, m: int, top: float) -> Any:
    """<w_m X_m|w X> for one summand and all of them, divided by two to the `top`."""
    own, weight = groups[g][0][m], complex(groups[g][1][m])
    found = []
    for stack, weights in groups:
        numbers, exponents = inner_products(xp, own, stack)
        numbers = numbers * np.asarray(_arrays.on_host(weights)) * weight.conjugate()
        found.append(numbers * 2.0 ** (exponents - top))
    return np.conj(np.concatenate(found))


# to the sizes asked for


def _of_sizes(
    xp: Namespace,
    topology: Topology,
    sizes: Mapping[str, int],
    nodes: Nodes,
    generator: Generator,
) -> list[Array]:
    nodes = dict(nodes)
    for mode in topology.contraction_modes:
        names = topology.holders(mode)
        axes = [topology.nodes[name].index(mode) for name in names]
        if nodes[names[0]].shape[axes[0]] > sizes[mode]:
            cut = _cut_between if len(names) == 2 else _cut_hyperedge
            last = [xp.moveaxis(nodes[name], k, -1) for name, k in zip(names, axes, strict=True)]
            moved = zip(cut(xp, last, sizes[mode]), axes, strict=True)
            several = [xp.moveaxis(array, -1, k) for array, k in moved]
            nodes.update(zip(names, several, strict=True))
    return [
        _without_zeros(xp, nodes[name], tuple(sizes[m] for m in held), generator)
        for name, held in topology.nodes.items()
    ]


def _cut_between(xp: Namespace, arrays: Sequence[Array], rank: int) -> list[Array]:
    """Two nodes whose product over their last axes keeps its leading singular values."""
    factors = [xp.linalg.qr(xp.reshape(a, (-1, a.shape[-1]))) for a in arrays]
    left, values, right = svd(xp, factors[0][1] @ factors[1][1].T)
    rank = min(rank, values.shape[0])
    roots = _astype(xp, xp.sqrt(values[:rank]), left)
    cut = left[:, :rank] * roots, right[:rank, :].T * roots
    matrices = [basis @ c for (basis, _), c in zip(factors, cut, strict=True)]
    return [xp.reshape(m, (*a.shape[:-1], rank)) for m, a in zip(matrices, arrays, strict=True)]


def _cut_hyperedge(xp: Namespace, arrays: Sequence[Array], rank: int) -> list[Array]:
    """Nodes with those indices of their last axes at which the product of their norms is largest."""
    logs = np.zeros(arrays[0].shape[-1])
    for array in arrays:
        matrix = xp.reshape(array, (-1, array.shape[-1]))
        logs = logs + log2_on_host(xp.linalg.vector_norm(matrix, axis=0))
    chosen = np.sort(np.argsort(-logs, kind="stable")[:rank])
    indices = xp.asarray(chosen, device=_arrays.device_of(arrays[0]))
    return [xp.take(array, indices, axis=array.ndim - 1) for array in arrays]


def _without_zeros(
    xp: Namespace, array: Array, shape: tuple[int, ...], generator: Generator
) -> Array:
    """The array filled up to a shape, with small random numbers there and in place of zeros."""
    size = float(xp.linalg.vector_norm(array)) / math.sqrt(math.prod(array.shape))
    for axis, wanted in enumerate(shape):
        if array.shape[axis] < wanted:
            missing = (*array.shape[:axis], wanted - array.shape[axis], *array.shape[axis + 1 :])
            zeros = xp.zeros(missing, dtype=array.dtype, device=_arrays.device_of(array))
            array = xp.concat([array, zeros], axis=axis)
    numbers = _random(xp, shape, array, generator) * (_SMALL * size or 1.0)
    return xp.where(array == 0, numbers, array)
