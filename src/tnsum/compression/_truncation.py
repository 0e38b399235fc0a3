"""Truncating a sum whose branches have orthonormal bases.

From the root to the leaves: the triangle L_v of what lies outside branch v, so that the sum is
(basis of v) L_v (something orthonormal). Nothing is truncated on this way. Then from the leaves to the
root: the branch at v, in the bases already truncated below it, times L_v; its leading left singular
vectors are the truncated basis of v. As each basis lies within the product of those below it, all that
is dropped is orthogonal, and the root of the sum of its squares bounds the error, tightly.

Along a path there is a shorter way: see `_chains`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tnsum._arrays import conj, device_of, real_dtype
from tnsum._matrices import adjoint, in_double, left_vectors, length, triangle
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import Basis, Orthogonal
from tnsum.compression._branches import Branch, moved


def truncated(
    xp: Namespace,
    tree: Sequence[Branch],
    x: Orthogonal,
    budget: float,
    floor: float,
    caps: Sequence[int | None],
) -> tuple[list[Array], float]:
    """The truncated arrays, of shape (ranks down, n, rank up), and the norm of what is dropped.

    Parameters
    ----------
    budget : float
        The norm of all that may be dropped; each mode gets an equal part of what is left of it.
    floor : float
        Singular values below it are noise, and dropped in any case.
    caps : sequence of int or None
        The largest rank up of each branch, if there is one; it counts more than the budget.
    """
    outside = _outside(xp, tree, x)
    found: list[Array] = []
    projections: list[Array] = []
    left, lost = budget**2, 0.0
    for v, branch in enumerate(tree[:-1]):
        node = _node(xp, x.bases[v], outside[v])
        for k, child in enumerate(branch.children):
            node = multiplied(xp, node, projections[child], k)
        rows, matrix = node.shape[:-1], xp.reshape(node, (-1, node.shape[-1]))
        vectors, values = left_vectors(xp, matrix @ outside[v])
        share = left / (len(tree) - 1 - v)
        rank, dropped = rank_of(values, share, floor, caps[v])
        left, lost = max(left - dropped, 0.0), lost + dropped
        vectors = vectors[:, :rank]
        projections.append(conj(xp, vectors.T) @ matrix)
        found.append(xp.reshape(vectors, (*rows, rank)))
    node = x.core[..., None]
    for k, child in enumerate(tree[-1].children):
        node = multiplied(xp, node, projections[child], k)
    # The result is a projection: what it does not hold is dropped, as far as squares resolve that. The
    # sum of what is dropped at each mode counts some of it twice where branches meet.
    whole, kept = (length(xp, in_double(xp, array)) ** 2 for array in (x.core, node))
    precision = float(xp.finfo(real_dtype(xp, node.dtype)).eps)
    unresolved = _UNRESOLVED * (precision * whole + floor * math.sqrt(whole))
    if lost > _RESOLVED * unresolved:
        lost = min(lost, whole - kept + unresolved)
    return [*found, node], math.sqrt(lost)


# What the difference of the squares of two norms may be wrong by, in units of machine precision and of
# noise; and how many times larger it must be to be of use.
_UNRESOLVED, _RESOLVED = 32.0, 32.0


def _outside(xp: Namespace, tree: Sequence[Branch], x: Orthogonal) -> list[Array]:
    """L_v for each branch but the root."""
    found: list[Array] = [x.core] * (len(tree) - 1)
    for v in range(len(tree) - 1, -1, -1):
        children = tree[v].children
        if not children:
            continue
        if v == len(tree) - 1:
            full = x.core[..., None]
        else:
            basis = x.bases[v]
            full = found[v] if basis.matrix is None else basis.matrix @ found[v]
            full = xp.reshape(full, (*basis.rows, -1))
        for k, child in enumerate(children):
            matrix = moved(xp, full, k, 0)
            matrix = xp.reshape(matrix, (matrix.shape[0], -1))
            if matrix.shape[1] > matrix.shape[0]:
                matrix = adjoint(xp, triangle(xp, adjoint(xp, matrix)))
            found[child] = matrix
    return found


def _node(xp: Namespace, basis: Basis, like: Array) -> Array:
    """A basis as an array with an axis for each child, n, and its size."""
    matrix = basis.matrix
    if matrix is None:
        matrix = xp.eye(basis.size, dtype=like.dtype, device=device_of(like))
    return xp.reshape(matrix, (*basis.rows, basis.size))


def multiplied(xp: Namespace, node: Array, matrix: Array, axis: int) -> Array:
    """The node with a matrix multiplied to one of its axes."""
    node = moved(xp, node, axis, 0)
    rest = node.shape[1:]
    node = matrix @ xp.reshape(node, (node.shape[0], -1))
    return moved(xp, xp.reshape(node, (node.shape[0], *rest)), 0, axis)


def rank_of(
    values: np.ndarray[Any, Any], budget: float, floor: float, cap: int | None
) -> tuple[int, float]:
    """How many singular values are kept, at least one, and the sum of squares of all others.

    Those that the budget or the floor let go are dropped, and those beyond the cap.
    """
    numbers = values.tolist()
    rank, dropped = len(numbers), 0.0
    while rank > 1:
        value = numbers[rank - 1]
        if dropped + value**2 > budget and value > floor and (cap is None or rank <= cap):
            break
        dropped += value**2
        rank -= 1
    return rank, dropped
