"""Sums along a path: triangles on the way up, truncation on the way down.

A path is rooted at its end, and every node v but the first has one child c. On the way up only the
triangles R_v of the branches are found, as in `_bases`, and no basis: that is half of the work of QR.
They are held side by side for all summands, as matrices of shape (size of the basis, m times rank).

On the way down, P_v[m] is what lies outside branch v of summand m, in the orthonormal basis of the nodes
found so far. Then

    sum over m of R_c[m] A_v[m] P_v[m]        (size of the basis of c  x  n times the new rank of v)

is the sum itself, as truncated so far, in orthonormal bases of both sides. Its leading right singular
vectors are the node of the result, and A_v[m] P_v[m] projected on them is P_c[m]. What is dropped at c
lies outside the branch in which all later truncations happen, so all that is dropped is orthogonal: the
root of the sum of its squares is the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tnsum._arrays import astype, conj, device_of, on_host
from tnsum._matrices import in_double, length, orthonormalized, svd, triangle
from tnsum._progress import Step, unseen
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import Orthogonal
from tnsum.compression._branches import Branch, Group
from tnsum.compression._products import squares_of, total_of
from tnsum.compression._truncation import rank_of


@dataclass(frozen=True)
class Chain:
    """A sum along a path, with the triangles of its branches.

    Attributes
    ----------
    groups : list of Group
    triangles : list of list of array
        For each branch but the root, and each group.
    taken : list of float
        The power of two that was taken out at each of them; they go on with what is left.
    core, exponent, lost, about, is_measured
        As for `Orthogonal`.
    """

    groups: Sequence[Group]
    triangles: list[list[Array]]
    taken: list[float]
    core: Array
    exponent: float
    lost: float = 0.0
    about: float | None = None
    is_measured: bool = False


def is_path(tree: Sequence[Branch]) -> bool:
    """Whether every branch has one child at most."""
    return all(len(branch.children) < 2 for branch in tree)


def direct_chain(xp: Namespace, groups: Sequence[Group], step: Step = unseen) -> Chain:
    """The sum with the triangles of bases that hold every summand."""
    triangles: list[list[Array]] = []
    taken: list[float] = []
    for v in range(len(groups[0]) - 1):
        parts = [_joined(xp, group[v], below) for group, below in _with_below(groups, triangles)]
        n_columns = [part.shape[1] for part in parts]
        if parts[0].shape[0] > sum(n_columns):
            parts = _triangles(xp, parts, n_columns)
        parts, exponent = rescaled_together(xp, parts)
        triangles.append(parts)
        taken.append(exponent)
        step()
    return Chain(groups, triangles, taken, _core(xp, groups, triangles), sum(taken))


def _triangles(xp: Namespace, parts: Sequence[Array], n_columns: Sequence[int]) -> list[Array]:
    """The triangle of matrices side by side, in as many parts."""
    if len(parts) == 1:
        return [triangle(xp, parts[0])]
    whole = triangle(xp, xp.concat(parts, axis=1))
    starts = [sum(n_columns[:g]) for g in range(len(parts))]
    return [whole[:, a : a + n] for a, n in zip(starts, n_columns, strict=True)]


def chain_of(xp: Namespace, x: Orthogonal) -> Chain:
    """A sum in orthonormal bases as one summand, all of whose triangles are unit matrices."""
    dtype, device = x.core.dtype, device_of(x.core)
    units = [xp.eye(basis.size, dtype=dtype, device=device) for basis in x.bases]
    group = []
    for basis, unit in zip(x.bases, units, strict=True):
        array = unit if basis.matrix is None else basis.matrix
        group.append(xp.reshape(array, (1, *basis.rows, basis.size)))
    group.append(x.core[None, ..., None])
    taken = [0.0] * len(units)
    triangles = [[unit] for unit in units]
    return Chain([group], triangles, taken, x.core, x.exponent, x.lost, x.about, x.is_measured)


def truncated_chain(
    xp: Namespace, x: Chain, budget: float, floor: float, caps: Sequence[int | None], small: float
) -> tuple[list[Array], float, float]:
    """The truncated arrays, of shape (rank down, n, rank up), the norm of what is dropped, and a
    bound of what rounding is measured by (see `_norms`), in the scale of the core.

    Budget, floor and caps are those of `truncated`. At nodes where it is at most `small` the bound need
    not be tight.
    """
    found: list[Array] = []
    outside: list[Array | None] = [None] * len(x.groups)
    left, lost, up = budget**2, 0.0, 1
    products = []
    precision = float(xp.finfo(in_double(xp, x.core).dtype).eps)
    resolved = _RESOLVED * precision * length(xp, x.core) ** 2
    for v in range(len(x.triangles), 0, -1):
        parts = [_times(xp, group[v], o) for group, o in zip(x.groups, outside, strict=True)]
        below = x.triangles[v - 1]
        matrix = total_of([b @ part for b, part in zip(below, parts, strict=True)])
        products.append(_product(xp, x.groups, v, below, outside, small))
        vectors, dropped = _row_space(xp, matrix, left / v, floor, caps[v - 1], resolved)
        rank = vectors.shape[1]
        left, lost = max(left - dropped, 0.0), lost + dropped
        found.append(xp.reshape(vectors.T, (rank, -1, up)))
        basis = conj(xp, vectors)
        if x.taken[v - 1]:
            basis = basis * 2.0 ** -x.taken[v - 1]
        outside = [part @ basis for part in parts]
        up = rank
    products.append(_product(xp, x.groups, 0, None, outside, small))
    leaves = [_times(xp, group[0], o) for group, o in zip(x.groups, outside, strict=True)]
    arrays = [total_of([_summed(xp, leaf, up) for leaf in leaves]), *reversed(found)]
    return arrays, math.sqrt(lost), math.hypot(*products)


def _product(
    xp: Namespace,
    groups: Sequence[Group],
    v: int,
    below: Sequence[Array] | None,
    outside: Sequence[Array | None],
    small: float,
) -> float:
    """The norms of R_c[m], A_v[m] and P_v[m] multiplied, summed over m; or a bound, if that is small."""
    each = []
    for g, group in enumerate(groups):
        others = [outside[g], None if below is None else below[g].T]
        each.append([array for array in (group[v], *others) if array is not None])
    bound = sum(math.prod(length(xp, array) for array in arrays) for arrays in each)
    if bound <= small:
        return bound
    total = 0.0
    for arrays in each:
        m = arrays[0].shape[0]
        squares = [squares_of(xp, xp.reshape(a, (m, -1, a.shape[-1]))) for a in arrays]
        total += float(xp.sum(xp.sqrt(math.prod(squares[1:], start=squares[0]))))
    return total


def _row_space(
    xp: Namespace, matrix: Array, budget: float, floor: float, cap: int | None, resolved: float
) -> tuple[Array, float]:
    """An orthonormal basis of the leading row space, and the square of what it drops.

    Where the budget exceeds what Gram matrices resolve, they show the leading columns in half the time
    of an SVD; what is dropped is then measured, not read off. Those of single precision are in double.
    """
    # LAPACK is quicker with a long matrix than with a wide one.
    matrix = matrix.T
    if matrix.shape[1] >= _MANY and budget > resolved:
        wide = in_double(xp, matrix)
        squares, turn = xp.linalg.eigh(conj(xp, wide.T) @ wide)
        values = np.sqrt(np.maximum(np.asarray(on_host(squares), dtype=float)[::-1], 0.0))
        rank, _ = rank_of(values, budget - resolved / 2, floor, cap)
        if values[rank - 1] ** 2 > resolved / 2:
            vectors = orthonormalized(xp, wide @ (turn[:, -rank:] / xp.sqrt(squares[-rank:])))
            vectors = astype(xp, vectors, matrix.dtype)
            rest = matrix - vectors @ (conj(xp, vectors.T) @ matrix)
            dropped = length(xp, rest) ** 2
            if dropped <= budget or rank == cap:
                return vectors, dropped
    vectors, singular, _ = svd(xp, matrix)
    rank, dropped = rank_of(np.asarray(on_host(singular), dtype=float), budget, floor, cap)
    return vectors[:, :rank], dropped


# Gram matrices resolve squares down to so many times machine precision, and pay for so many columns.
_RESOLVED, _MANY = 100.0, 24


def _with_below(
    groups: Sequence[Group], triangles: Sequence[list[Array]]
) -> list[tuple[Group, Array | None]]:
    below = triangles[-1] if triangles else [None] * len(groups)
    return list(zip(groups, below, strict=True))


def _joined(xp: Namespace, array: Array, below: Array | None) -> Array:
    """T_v of all summands side by side: of shape (rows, m times rank)."""
    m, up = array.shape[0], array.shape[-1]
    if below is not None:
        down = array.shape[1]
        each = xp.permute_dims(xp.reshape(below, (-1, m, down)), (1, 0, 2))
        array = xp.matmul(each, xp.reshape(array, (m, down, -1)))
    array = xp.permute_dims(xp.reshape(array, (m, -1, up)), (1, 0, 2))
    return xp.reshape(array, (-1, m * up))


def _core(xp: Namespace, groups: Sequence[Group], triangles: Sequence[list[Array]]) -> Array:
    """The sum at the root."""
    if not triangles:
        return total_of([xp.sum(group[-1], axis=(0, -1)) for group in groups])
    pairs = zip(groups, triangles[-1], strict=True)
    return total_of([below @ _times(xp, group[-1], None) for group, below in pairs])


def _times(xp: Namespace, array: Array, outside: Array | None) -> Array:
    """A_v[m] P_v[m], of shape (m times rank down, n times new rank); nothing is outside the root."""
    m, up = array.shape[0], array.shape[-1]
    if outside is None:
        return xp.reshape(array, (-1, array.shape[-2]))
    n_rows = m * (array.shape[1] if array.ndim == 4 else 1)
    each = xp.matmul(xp.reshape(array, (m, -1, up)), xp.reshape(outside, (m, up, -1)))
    return xp.reshape(each, (n_rows, -1))


def _summed(xp: Namespace, leaf: Array, up: int) -> Array:
    """The sum over m at the leaf, of shape (n, rank up)."""
    return xp.reshape(xp.sum(leaf, axis=0), (-1, up))
