"""A lazy sum along the branches of a tree, and arrays along them as a network."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tnsum import _arrays
from tnsum._scale import OF_ZERO, are_alike, reach, rescaled_together, unscaled
from tnsum._typing import Array, DType, Namespace
from tnsum.compression._branches import Branch, Group, group_of, node_array
from tnsum.compression._norms import branches_near_one
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import balanced, balanced_stack, weights_in_scale
from tnsum.summation import NetworkSum
from tnsum.topology import Topology


def groups_of(
    xp: Namespace, s: NetworkSum, topology: Topology, tree: Sequence[Branch]
) -> tuple[list[Group], float]:
    """The summands in groups of equal ranks, and the power of two that was taken out of all."""
    pairs = s._grouped(s.dtype)
    if topology is not s.topology:
        pairs = [(joined_stack(xp, stack, topology), weights) for stack, weights in pairs]
    check_finite(xp, [weights for _, weights in pairs])
    exponent: Array = 0.0
    held = [[stack.arrays[name] for name in topology.nodes] for stack, _ in pairs]
    n_factors = max(1, *(len(branch.children) for branch in tree))
    if not are_alike(held, reach(s.dtype), n_factors):
        check_finite(xp, [array for arrays in held for array in arrays])
        pairs, exponent = _in_balance(xp, tree, pairs)
    all_weights, taken = rescaled_together(xp, [weights for _, weights in pairs])
    found = []
    for (stack, _), weights in zip(pairs, all_weights, strict=True):
        found.append(group_of(xp, tree, stack, weights))
    return found, float(exponent) + taken


def _in_balance(
    xp: Namespace, tree: Sequence[Branch], pairs: Sequence[tuple[NetworkStack, Array]]
) -> tuple[list[tuple[NetworkStack, Array]], Array]:
    """The groups with nodes near one, as in `balanced`; where values are at hand (NumPy), with branches
    near one as well, and without summands that are zero to set the scale.
    """
    if not _arrays.is_on_host(pairs[0][1]):
        return balanced(xp, pairs)
    stacks, all_weights, exponents = [], [], []
    for stack, weights in pairs:
        stack, taken = balanced_stack(xp, stack)
        stack, more = branches_near_one(xp, tree, stack)
        size = np.abs(weights)
        own = np.floor(np.log2(np.where(size > 0, size, 1.0)))
        stacks.append(stack)
        all_weights.append(unscaled(xp, weights, -own))
        exponents.append(np.where(size > 0, own + taken + more, OF_ZERO))
    if max(float(np.max(each)) for each in exponents) <= OF_ZERO / 2:
        return list(zip(stacks, all_weights, strict=True)), 0.0
    scaled_weights, top = weights_in_scale(xp, all_weights, exponents)
    return list(zip(stacks, scaled_weights, strict=True)), top


def check_finite(xp: Namespace, arrays: Sequence[Array]) -> None:
    if not all(bool(xp.all(xp.isfinite(array))) for array in arrays):
        raise NetworkError("The entries and weights of all summands must be finite; some are not.")


def joined_stack(xp: Namespace, stack: NetworkStack, topology: Topology) -> NetworkStack:
    """A stack with modes of rank one that join its components."""
    arrays = {}
    for name, array in stack.arrays.items():
        n_new = len(topology.nodes[name]) + 1 - array.ndim
        arrays[name] = xp.reshape(array, (*array.shape, *(1,) * n_new))
    return NetworkStack._unchecked(topology, arrays)


def largest_basis(tree: Sequence[Branch], groups: Sequence[Group]) -> tuple[int, int]:
    """The size of the largest basis that QR would find, and the most rows that one of them has."""
    sizes: list[int] = []
    most_rows = groups[0][-1].shape[-2]
    for v, branch in enumerate(tree[:-1]):
        n_rows = math.prod(sizes[c] for c in branch.children) * groups[0][v].shape[-2]
        n_columns = sum(group[v].shape[0] * group[v].shape[-1] for group in groups)
        sizes.append(min(n_rows, n_columns))
        most_rows = max(most_rows, n_rows)
    return max(sizes, default=1), most_rows


def scaled(arrays: list[Array], exponent: float) -> list[Array]:
    """The arrays times two to the exponent: at the root, or spread over all if it is large."""
    whole, n = int(exponent), len(arrays)
    parts = [whole * (k + 1) // n - whole * k // n for k in range(n)]
    if abs(whole) <= _MOST_AT_ROOT:
        parts = [0] * (n - 1) + [whole]
    # In two steps, neither of which is out of range if the result is not.
    return [
        a * 2.0 ** (part // 2) * 2.0 ** (part - part // 2) if part else a
        for a, part in zip(arrays, parts, strict=True)
    ]


def check_range(log2_norm: float, n_nodes: int, dtype: DType) -> None:
    """Raise unless the nodes of a network can have that norm together."""
    name = _arrays.dtype_name(dtype)
    limit = n_nodes * (120 if name in ("float32", "complex64") else 1000)
    if abs(log2_norm) > limit:
        raise NetworkError(
            f"The norm of the sum must be such that {n_nodes} nodes of {name} can hold it; it is about "
            f"2**{log2_norm:.0f}. Take other weights."
        )


# Powers of two that one node may take.
_MOST_AT_ROOT = 20


def network_of(
    xp: Namespace,
    topology: Topology,
    shape: Sequence[int],
    tree: Sequence[Branch],
    arrays: Sequence[Array],
) -> Network:
    """The network of a tree's arrays, of shape (ranks down, n, rank up)."""
    sizes = dict(zip(topology.physical_modes, shape, strict=True))
    held = {branch.name: (branch, array) for branch, array in zip(tree, arrays, strict=True)}
    nodes = {name: node_array(xp, *held[name], sizes) for name in topology.nodes}
    return Network._unchecked(topology, nodes)


def zero_network(xp: Namespace, s: NetworkSum, topology: Topology) -> Network:
    """The network of zero, of rank one."""
    sizes = dict(zip(s.physical_modes, s.shape, strict=True))
    device = _arrays.device_of(s._some_array)
    arrays = {}
    for name, modes in topology.nodes.items():
        shape = tuple(sizes.get(mode, 1) for mode in modes)
        arrays[name] = xp.zeros(shape, dtype=s.dtype, device=device)
    return Network._unchecked(topology, arrays)
