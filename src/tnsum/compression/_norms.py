"""How large the summands are: what the rounding error of their sum is measured by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tnsum._arrays import on_host
from tnsum._matrices import adjoint, in_double
from tnsum._scale import OF_ZERO, rescaled_each, unscaled
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group, group_of
from tnsum.compression._products import absorbed
from tnsum.network import NetworkStack


def log2_of_norms(
    xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group], power: int, enough: float
) -> float:
    """The log2 of all summands' norms added, or of the root of their powers added.

    It may be larger, if it is at most `enough`: then the product of its nodes' norms, which bounds that
    of a tree, stands for the norm of each summand. None is left out: it may be the largest.
    """
    bound = _added([_log2_bounds(xp, group) for group in groups], power)
    if bound <= enough:
        return bound
    return _added([_log2_norms(xp, tree, group) for group in groups], power)


def _added(logs: Sequence[Array], power: int) -> float:
    """The log2 of the root of powers added, from the log2 of each."""
    joined = np.concatenate(logs)
    top = float(np.max(joined))
    if not np.isfinite(top):
        return top
    return top + float(np.log2(np.sum(2.0 ** (power * (joined - top))))) / power


def _log2_bounds(xp: Namespace, group: Group) -> Array:
    """The log2 of the product of the norms of each summand's nodes."""
    total: Array = 0.0
    for array in group:
        flat = xp.reshape(array, (array.shape[0], -1))
        squares = np.abs(np.asarray(on_host(xp.vecdot(flat, flat)))).astype(float)
        with np.errstate(divide="ignore"):
            total = total + np.log2(squares) / 2
    return total


def _log2_norms(xp: Namespace, tree: Sequence[Branch], group: Group) -> Array:
    """The log2 of the norm of each summand, from the Gram matrices of its branches."""
    grams: list[Array] = []
    exponents: Array = 0.0
    for branch, array in zip(tree, group, strict=True):
        least = _NEAR / max(1, len(tree[branch.parent].children))
        gram = _gram(xp, array, [grams[c] for c in branch.children])
        gram, taken = rescaled_each(xp, gram, 0, least)
        grams.append(xp.matrix_transpose(gram))
        exponents = exponents + taken
    squares = np.abs(np.asarray(on_host(grams[-1]))[:, 0, 0]).astype(float)
    with np.errstate(divide="ignore"):
        return (np.log2(squares) + np.asarray(on_host(exponents))) / 2


def _gram(xp: Namespace, array: Array, below: Sequence[Array]) -> Array:
    """The Gram matrices of a branch, (m, rank, rank), from those of its children, transposed."""
    m, up = array.shape[0], array.shape[-1]
    other = xp.reshape(absorbed(xp, array, below, 0), (m, -1, up))
    return xp.matmul(adjoint(xp, xp.reshape(array, (m, -1, up))), other)


# The powers of two that all Gram matrices below a node may have together.
_NEAR = 30.0


def branches_near_one(
    xp: Namespace, tree: Sequence[Branch], stack: NetworkStack
) -> tuple[NetworkStack, Array]:
    """A stack of NumPy's, nodes near one, with every branch of each network near one too, and the log2
    that is taken out of each network: OF_ZERO of those that are zero.

    Else a network whose branches are large, and that is small only in the end, sets the scale on the
    way, and pushes others out of range.
    """
    n = len(stack)
    group = group_of(xp, tree, stack, np.ones(n))
    arrays: dict[str, Array] = {}
    grams: list[Array] = []
    exponents = np.zeros(n)
    largest = exponents
    for branch, each in zip(tree, group, strict=True):
        gram = _gram(xp, in_double(xp, each), [grams[c] for c in branch.children])
        largest = np.max(np.abs(gram), axis=(1, 2))
        taken = np.floor(np.log2(np.where(largest > 0, largest, 1.0)) / 2)
        held = stack.arrays[branch.name]
        arrays[branch.name] = unscaled(xp, held, np.reshape(-taken, (-1, *(1,) * (held.ndim - 1))))
        grams.append(xp.matrix_transpose(gram * 4.0 ** -taken[:, None, None]))
        exponents = exponents + taken
    nodes = {name: arrays[name] for name in stack.arrays}
    scaled = NetworkStack._unchecked(stack.topology, nodes)
    return scaled, np.where(largest > 0, exponents, OF_ZERO)
