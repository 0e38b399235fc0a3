"""Gradients through a compressed tree, under PyTorch.

Which directions are kept is decided from values, and bases found by QR and SVD have derivatives that
depend on a gauge and do not exist where singular values are equal. The result has neither problem: it is
a point of the networks of its ranks, which are a smooth manifold there, and to first order

    d compress(S) = P dS,

with P the orthogonal projection onto the tangent space of that manifold. This is exact where nothing
but rounding is dropped; otherwise it leaves out that kept directions turn towards dropped ones, which
is about the ratio of the largest dropped to the smallest kept singular value.

With bases Q_v of all branches orthonormal, and L_v W_v outside of branch v with orthonormal rows W_v,
the projection has a part for each node: at the root <Q|dS>, at every other node

    dQ_v = (1 - Q_v Q_v^H) <W_v, Q below v|dS> L_v^+.

Each is linear in the summands and weights; everything else is constant. This is the projection of
Lubich, Oseledets and Vandereycken (SIAM J. Numer. Anal. 53, 2015), for trees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tnsum import _arrays, _scale
from tnsum._matrices import adjoint, length, qr, svd
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.compression._branches import Branch, branches_of, group_of, moved, node_array
from tnsum.compression._conversion import joined_stack, network_of, scaled
from tnsum.compression._truncation import multiplied
from tnsum.contraction import STACK, evaluate_scaled, operands_of, parts_of_stack, sliced
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import balanced_stack, scaled_weights
from tnsum.summation import NetworkSum


def is_tracked(s: NetworkSum) -> bool:
    """Whether a gradient is to flow through a sum of torch tensors."""
    return any(getattr(array, "requires_grad", False) for array in held_arrays(s))


def held_arrays(s: NetworkSum) -> list[Array]:
    """All arrays of a sum, those of its weights among them."""
    arrays = [array for term in s._terms for array in term.arrays.values()]
    return arrays + [weight for weight in s._weights if _arrays.is_array(weight)]


def constant_sum(s: NetworkSum) -> NetworkSum:
    """The same sum, through which no gradient flows."""
    xp = s.namespace
    terms = [term._mapped(lambda array: _arrays.constant(xp, array)) for term in s._terms]
    weights = [_arrays.constant(xp, w) if _arrays.is_array(w) else w for w in s._weights]
    return NetworkSum._unchecked(s.topology, terms, weights)


def with_gradients(xp: Namespace, s: NetworkSum, network: Network) -> Network:
    """The compressed network of a sum of trees as a function of the sum's arrays and weights."""
    tree = branches_of(network.topology)
    x = _orthogonal(xp, tree, network)
    if length(xp, x.arrays[-1]) == 0:
        return network
    slopes = _Slopes(xp, s, network, tree, x)
    arrays = [array + slopes.at(v) for v, array in enumerate(x.arrays)]
    return network_of(xp, network.topology, s.shape, tree, scaled(arrays, x.exponent))


@dataclass(frozen=True)
class _Orthogonal:
    """A compressed tree whose root carries its norm.

    Attributes
    ----------
    arrays : list of Array
        Of shape (ranks down, n, rank up): with orthonormal columns, but for the root.
    towards : list of Array
        For each branch but the root, its parent's array with orthonormal rows towards that branch.
    outside : list of Array
        L_v for each branch but the root, of shape (rank up, rank up of `towards`).
    exponent : float
        The power of two that was taken out of the root.
    """

    arrays: list[Array]
    towards: list[Array]
    outside: list[Array]
    exponent: float


def _orthogonal(xp: Namespace, tree: Sequence[Branch], network: Network) -> _Orthogonal:
    stack = network.topology, {name: array[None, ...] for name, array in network.arrays.items()}
    one = xp.ones((1,), dtype=network.dtype, device=network.device)
    group = group_of(xp, tree, NetworkStack._unchecked(*stack), one)
    arrays: list[Array] = []
    triangles: list[Array] = []
    exponent = 0.0
    for branch, (array, *_) in zip(tree, group, strict=True):
        for k, child in enumerate(branch.children):
            array = multiplied(xp, array, triangles[child], k)
        (array,), taken = _scale.rescaled_together(xp, [array])
        exponent += taken
        if branch.up is not None:
            basis, triangle = qr(xp, xp.reshape(array, (-1, array.shape[-1])))
            triangles.append(triangle)
            array = xp.reshape(basis, (*array.shape[:-1], basis.shape[-1]))
        arrays.append(array)
    towards: list[Array] = [None] * (len(tree) - 1)
    outside: list[Array] = [None] * (len(tree) - 1)
    for v in range(len(tree) - 1, -1, -1):
        centre = arrays[v] if v == len(tree) - 1 else arrays[v] @ outside[v]
        for k, child in enumerate(tree[v].children):
            rows = moved(xp, centre, k, 0)
            matrix = xp.reshape(rows, (rows.shape[0], -1))
            basis, triangle = qr(xp, adjoint(xp, matrix))
            outside[child] = adjoint(xp, triangle)
            turned = xp.reshape(adjoint(xp, basis), (basis.shape[-1], *rows.shape[1:]))
            towards[child] = moved(xp, turned, 0, k)
    return _Orthogonal(arrays, towards, outside, exponent)


class _Slopes:
    """What each node changes by, to first order: zero in value, linear in the sum."""

    def __init__(
        self, xp: Namespace, s: NetworkSum, network: Network, tree: Sequence[Branch], x: _Orthogonal
    ) -> None:
        self._xp, self._tree, self._x, self._network = xp, tree, x, network
        self._sizes = dict(zip(s.physical_modes, s.shape, strict=True))
        self._groups = []
        for stack, weights in s._grouped(s.dtype):
            stack, own = balanced_stack(xp, joined_stack(xp, stack, network.topology))
            self._groups.append((operands_of(stack), *scaled_weights(xp, weights, own)))

    def at(self, v: int) -> Array:
        """The change of a node, of the shape of its array."""
        xp, x = self._xp, self._x
        seen = self._environment(v)
        slope = seen - _arrays.constant(xp, seen)
        if v == len(self._tree) - 1:
            return slope
        basis = xp.reshape(x.arrays[v], (-1, x.arrays[v].shape[-1]))
        slope = xp.reshape(slope, (basis.shape[0], -1))
        slope = slope - basis @ (adjoint(xp, basis) @ slope)
        return xp.reshape(slope @ _inverse(xp, x.outside[v]), x.arrays[v].shape)

    def _environment(self, v: int) -> Array:
        """The sum seen through all nodes but one, in the shape of that node's array."""
        xp, branch = self._xp, self._tree[v]
        others = [
            self._bra(u, array) for u, array in enumerate(self._around(v)) if array is not None
        ]
        output = tuple(self._label(mode) for mode in branch.held)
        total: _scale.Scaled | None = None
        for operands, weights, exponents in self._groups:
            weighed = [*operands, (weights, (STACK,)), *others]
            for part in parts_of_stack(weighed, weights.shape[0], output):
                beside = sliced([(exponents, (STACK,))], STACK, part)
                piece = sliced(weighed, STACK, part)
                term = evaluate_scaled(xp, piece, output, exponents=beside)
                total = _scale.plus(xp, total, term)
        assert total is not None
        found = _scale.unscaled(xp, total[0], total[1] - self._x.exponent)
        found = xp.permute_dims(found, branch.axes)
        down = found.shape[: len(branch.down)]
        up = found.shape[-1] if branch.up is not None else 1
        return xp.reshape(found, (*down, -1, up))

    def _around(self, v: int) -> list[Array | None]:
        """The orthonormal arrays of all nodes but one, as that one sees them."""
        arrays: list[Array | None] = list(self._x.arrays)
        arrays[v] = None
        while v < len(self._tree) - 1:
            arrays[self._tree[v].parent], v = self._x.towards[v], self._tree[v].parent
        return arrays

    def _bra(self, u: int, array: Array) -> Operand:
        branch = self._tree[u]
        node = node_array(self._xp, branch, array, self._sizes)
        return _arrays.conj(self._xp, node), tuple(self._label(mode) for mode in branch.held)

    def _label(self, mode: str) -> Label:
        return mode if mode in self._sizes else ("other", mode)


def _inverse(xp: Namespace, matrix: Array) -> Array:
    """The pseudoinverse of a matrix, of what is above rounding."""
    left, values, right = svd(xp, matrix)
    least = float(values[0]) * float(xp.finfo(values.dtype).eps) * math.prod(matrix.shape)
    inverses = xp.where(values > least, 1 / values, xp.zeros_like(values))
    return adjoint(xp, right) @ (inverses[:, None] * adjoint(xp, left))
