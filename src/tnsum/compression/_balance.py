"""Networks in balance: the gauge in which rounding hides least.

A matrix T on one side of a contraction mode and its inverse on the other change two nodes, V and W, but
not the tensor. Sums come, and sweeps drift, in gauges with large entries whose products nearly cancel:
rounding is relative to these entries, and hides the error. The nodes are in *balance* when both have the
same Gram matrix on the mode:

    T G_V T = T^-1 G_W T^-1,     G_V = V* V,     G_W = (W* W) conjugated,     T positive definite.

There is only one such T: nodes in balance stay as they are, and two networks that differ little are
changed alike. Gram matrices square the condition of a gauge, so T is never formed. With the QR
decompositions V = P R, W = Q S, both seen as matrices whose columns are the indices of the mode,

    V W^T = P (R S^T) Q^T,     R S^T = u s x*     (singular values),
    V T = P u s^1/2 Z,     W T^-T = Q conj(x s^1/2 Z),     T = (S^T x s^-1/2) Z,

where the unitary Z makes T positive definite: if S^T x s^-1/2 = a b c* (singular vectors), Z is c a*.
Whatever Z is, to rounding the product of both nodes is what it was. Where more than two nodes hold a
mode, each index of it has a factor in every node, and all nodes get the same norm there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tnsum import _arrays
from tnsum._matrices import adjoint, svd
from tnsum._typing import Array, Namespace
from tnsum.network import NetworkStack
from tnsum.topology import Topology

# Passes over all modes, and the log2 by which the product of all nodes' norms must fall in one, so that
# another one pays.
_MOST_PASSES, _GAIN = 12, 0.1


def balanced_networks(xp: Namespace, stack: NetworkStack) -> NetworkStack:
    """The networks of a stack, of distinct modes, all in balance."""
    arrays: Mapping[str, Array] = stack.arrays
    size = _log2_size(xp, arrays)
    for _ in range(_MOST_PASSES):
        arrays, before = _passed(xp, stack.topology, arrays), size
        size = _log2_size(xp, arrays)
        if not size < before - _GAIN:
            break
    return NetworkStack._unchecked(stack.topology, arrays)


def balanced_nodes(xp: Namespace, topology: Topology, arrays: Sequence[Array]) -> list[Array]:
    """The arrays of one network, in balance on one contraction mode after the other."""
    named = {name: a[None, ...] for name, a in zip(topology.nodes, arrays, strict=True)}
    return [array[0, ...] for array in _passed(xp, topology, named).values()]


def _log2_size(xp: Namespace, arrays: Mapping[str, Array]) -> float:
    """The largest log2 among the networks of the product of their nodes' norms."""
    logs = 0.0
    for array in arrays.values():
        norms = xp.linalg.vector_norm(xp.reshape(array, (array.shape[0], -1)), axis=1)
        logs = logs + xp.log2(xp.where(norms > 0, norms, xp.ones_like(norms)))
    return float(xp.max(logs))


def _passed(xp: Namespace, topology: Topology, arrays: Mapping[str, Array]) -> dict[str, Array]:
    nodes = dict(arrays)
    for mode in topology.contraction_modes:
        names = topology.holders(mode)
        axes = [topology.nodes[name].index(mode) + 1 for name in names]
        last = [xp.moveaxis(nodes[name], k, -1) for name, k in zip(names, axes, strict=True)]
        flat = [xp.reshape(a, (a.shape[0], -1, a.shape[-1])) for a in last]
        new = _balanced_pair(xp, *flat) if len(names) == 2 else _equalised(xp, flat)
        for name, k, array, matrix in zip(names, axes, last, new, strict=True):
            nodes[name] = xp.moveaxis(xp.reshape(matrix, array.shape), -1, k)
    return nodes


def _balanced_pair(xp: Namespace, v: Array, w: Array) -> tuple[Array, Array]:
    """The matrices v T and w T^-T in balance, of each network of a stack."""
    (p, r), (q, s) = xp.linalg.qr(v), xp.linalg.qr(w)
    left, values, right = svd(xp, r @ xp.matrix_transpose(s))
    right = adjoint(xp, right)
    # Far below rounding a value counts no more, but its inverse would.
    eps = float(xp.finfo(values.dtype).eps)
    top = xp.max(values, axis=-1, keepdims=True)
    top = xp.where(top > 0, top, xp.ones_like(top))
    roots = _as_columns(xp, xp.sqrt(values), v)
    raised = xp.where(values > eps * top, values, eps * top)
    inverse = _as_columns(xp, 1 / xp.sqrt(raised), v)
    a, _, c = svd(xp, (xp.matrix_transpose(s) @ right) * inverse)
    turn = adjoint(xp, a @ c)
    one = p @ ((left * roots) @ turn)
    return one, q @ _arrays.conj(xp, (right * roots) @ turn)


def _as_columns(xp: Namespace, values: Array, like: Array) -> Array:
    return _arrays.astype(xp, values[..., None, :], like.dtype)


def _equalised(xp: Namespace, matrices: Sequence[Array]) -> list[Array]:
    """Matrices whose columns have one norm in all of them; the products over them are what they were."""
    norms = [xp.linalg.vector_norm(matrix, axis=1, keepdims=True) for matrix in matrices]
    logs = [xp.log(xp.where(norm > 0, norm, xp.ones_like(norm))) for norm in norms]
    mean = sum(logs) / len(logs)
    factors = [_arrays.astype(xp, xp.exp(mean - log), matrices[0].dtype) for log in logs]
    return [matrix * factor for matrix, factor in zip(matrices, factors, strict=True)]
