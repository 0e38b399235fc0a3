"""Leading left singular vectors of matrices, one or many at once, with signs fixed by a rule.

Two ways lead to them. The singular value decomposition sees directions down to machine precision. The
Gram matrix X X^H, or X^H X where that is smaller, costs a fraction of it, but it holds the squares of
the singular values: those below the root of machine precision (1e-8 of the largest in double, 3e-4 in
single precision) are lost in its rounding, and their vectors are any orthonormal ones. Of a direction
with singular value s about

    precision * (largest singular value)^2 / s

is lost, and of one below the root of the precision at most s itself: all in all, no more than some
root of the precision times the largest.

Singular vectors are determined up to a sign, or a phase: here the first of those entries whose modulus
is within a thousandth of the largest is positive. (Were it simply the largest, rounding would choose
between entries of equal modulus, which are common.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tnsum._arrays import astype, conj, device_of, index_dtype, on_host
from tnsum._matrices import adjoint, left_vectors
from tnsum._subspaces import leading_eigenvectors, pays
from tnsum._typing import Array, Namespace

Rank: TypeAlias = int | Callable[[np.ndarray[Any, Any]], int]
"""How many vectors to take, or what says so, given the singular values in falling order."""


def by_svd(xp: Namespace, matrices: Array, rank: Rank) -> Array:
    """The leading left singular vectors of a single matrix, (1, rows, columns)."""
    matrix = _widened(xp, matrices, rank)[0, ...]
    vectors, values = left_vectors(xp, matrix)
    vectors = _leading(vectors, rank, lambda: values)
    return with_fixed_signs(xp, vectors[None, ...])


def by_gram(xp: Namespace, matrices: Array, rank: Rank) -> Array:
    """The same of many, (m, rows, columns), from Gram matrices; of one, where `rank` is a function.

    The vectors are orthonormal whatever the ranks of the matrices are. Where few of many are wanted,
    only these are looked for: see `_subspaces`.
    """
    matrices = _widened(xp, matrices, rank)
    rows, columns = matrices.shape[-2:]
    across, is_wide = adjoint(xp, matrices), rows <= columns
    squares = matrices @ across if is_wide else across @ matrices
    if isinstance(rank, int) and pays(squares, rank):
        vectors = leading_eigenvectors(xp, squares, rank)
    else:
        values, vectors = xp.linalg.eigh(squares)
        vectors = xp.flip(vectors, axis=-1)
        vectors = _leading(vectors, rank, lambda: xp.flip(xp.sqrt(xp.clip(values[0, :], min=0.0))))
    if not is_wide:
        # The images have the singular values as lengths: where these vanish, QR finds other vectors.
        vectors, _ = xp.linalg.qr(matrices @ vectors)
    return with_fixed_signs(xp, vectors)


def _leading(vectors: Array, rank: Rank, values: Callable[[], Array]) -> Array:
    """The first vectors, as many as the rank says; singular values are asked for if they matter."""
    n = rank if isinstance(rank, int) else rank(np.asarray(on_host(values()), dtype=float))
    return vectors[..., : min(n, vectors.shape[-1])]


def _widened(xp: Namespace, matrices: Array, rank: Rank) -> Array:
    """Matrices with columns of zeros at the end where the rank exceeds their number."""
    m, rows, columns = matrices.shape
    n_more = min(rank, rows) - columns if isinstance(rank, int) else 0
    if n_more <= 0:
        return matrices
    zeros = xp.zeros((m, rows, n_more), dtype=matrices.dtype, device=device_of(matrices))
    return xp.concat([matrices, zeros], axis=2)


def with_fixed_signs(xp: Namespace, vectors: Array) -> Array:
    """Vectors, the columns of (m, rows, rank), with the signs or phases that the rule gives them."""
    # As rows, along which NumPy finds the largest several times as quickly.
    rows = xp.matrix_transpose(vectors)
    sizes = xp.abs(rows)
    is_large = sizes >= (1 - 2.0**-10) * xp.max(sizes, axis=2, keepdims=True)
    # Of equal ones argmax takes the first.
    where = xp.argmax(astype(xp, is_large, index_dtype(xp)), axis=2, keepdims=True)
    chosen = conj(xp, xp.take_along_axis(rows, where, axis=2))
    return xp.matrix_transpose(rows * (chosen / xp.abs(chosen)))
