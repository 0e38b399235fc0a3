"""Decompositions of matrices, as every part of tnsum that needs them takes them."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from tnsum._arrays import (
    astype,
    conj,
    constant,
    device_of,
    is_jax,
    is_on_accelerator,
    is_torch,
    library,
    on_host,
    result_dtype,
    widest_real,
)
from tnsum._numpy import NUMPY
from tnsum._typing import Array, Namespace


def adjoint(xp: Namespace, matrix: Array) -> Array:
    """The conjugate transpose of a matrix, or of each of a stack."""
    return conj(xp, xp.matrix_transpose(matrix))


def length(xp: Namespace, array: Array) -> float:
    """The Euclidean norm of an array whose entries are neither huge nor tiny."""
    if library(xp) == "numpy":
        # As it lies in memory: what is not contiguous would be copied.
        flat = array.ravel(order="K")
        return math.sqrt(np.vdot(flat, flat).real)
    return float(xp.linalg.vector_norm(array))


def triangle(xp: Namespace, matrix: Array) -> Array:
    """R of a QR decomposition of a tall matrix.

    The orthonormal basis is a constant to gradients. This is exact in the first derivative of
    anything that depends on the matrix through its inner products, since the basis spans the
    columns, and it spares the derivative of QR, which does not exist where columns are dependent.
    """
    if library(xp) == "numpy":
        n_columns = matrix.shape[1]
        if n_columns > _NARROW:
            return np.linalg.qr(matrix, mode="r")
        # Half of the time for a narrow matrix goes into finding where its triangle is.
        whole, _ = np.linalg.qr(matrix, mode="raw")
        return np.where(_upper(n_columns), whole.T[:n_columns], 0)
    if is_jax(xp) or _is_tracked(matrix):
        basis = constant(xp, qr(xp, constant(xp, matrix))[0])
        return conj(xp, basis).T @ matrix
    return qr(xp, matrix)[1]


_NARROW = 64


@lru_cache(maxsize=_NARROW)
def _upper(n: int) -> Array:
    return np.triu(np.ones((n, n), dtype=bool))


def qr(xp: Namespace, matrix: Array) -> tuple[Array, Array]:
    """The QR decomposition of a matrix, also of one whose columns are dependent.

    What is left of a dependent column is machine precision times as small as the column, and machine
    precision times smaller again for each further one, down to numbers that MKL, which PyTorch calls,
    divides by without a look, so that infinities and NaN come back. Then the columns are
    made independent first, by no more than the rounding error of a QR decomposition.
    """
    basis, triangle = xp.linalg.qr(matrix)
    if is_torch(xp) and _is_known(xp, triangle) is False and _is_known(xp, matrix):
        return _stirred_qr(xp, matrix)
    return basis, triangle


def _is_known(xp: Namespace, array: Array) -> bool | None:
    """Whether all entries are finite; None if that cannot be seen, as within torch.func.vmap."""
    try:
        return bool(xp.all(xp.isfinite(array)))
    except RuntimeError:
        return None


def _stirred_qr(xp: Namespace, matrix: Array) -> tuple[Array, Array]:
    """The QR decomposition of a matrix with noise of the size of the rounding error in each column."""
    sizes = xp.max(xp.abs(matrix), axis=0)
    noise = np.random.default_rng(0).uniform(-1, 1, tuple(matrix.shape))
    noise = xp.asarray(noise, dtype=sizes.dtype, device=device_of(matrix))
    unit = matrix / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
    # Less would be lost beside the entries.
    basis, triangle = xp.linalg.qr(unit + noise * float(xp.finfo(sizes.dtype).eps))
    return basis, triangle * sizes


def svd(xp: Namespace, matrix: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition.

    LAPACK's divide and conquer, which NumPy calls, fails on a few matrices that are finite, mostly of
    low rank and with entries far below machine precision; of their adjoint it finds it, or without
    those entries. Small matrices of accelerators are decomposed on the host, which takes less time and
    is more exact in single precision, unless a gradient is to flow through them.
    """
    if is_on_accelerator(matrix) and math.prod(matrix.shape) <= _SMALL and not _is_tracked(matrix):
        device = device_of(matrix)
        left, values, right = svd(NUMPY, on_host(matrix))
        return (
            xp.asarray(left, device=device),
            xp.asarray(values, device=device),
            xp.asarray(right, device=device),
        )
    try:
        left, values, right = xp.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        try:
            right, values, left = xp.linalg.svd(adjoint(xp, matrix), full_matrices=False)
            left, right = adjoint(xp, left), adjoint(xp, right)
        except np.linalg.LinAlgError:
            size = np.abs(matrix)
            cut = np.where(size > _TINY * np.max(size), matrix, 0)
            left, values, right = xp.linalg.svd(cut, full_matrices=False)
    return left, values, right


# Matrices with no more entries than that are small.
_SMALL = 2**15


def _is_tracked(array: Array) -> bool:
    """Whether gradients flow through an array: they would not through one on the host."""
    return bool(getattr(array, "requires_grad", False))


# Entries so many times smaller than the largest are far below the precision of any dtype.
_TINY = 1e-20


def left_vectors(xp: Namespace, matrix: Array) -> tuple[Array, np.ndarray[Any, Any]]:
    """The left singular vectors and the singular values; of a long matrix by way of its triangle."""
    rows, columns = matrix.shape
    basis = None
    if rows > _LONG * columns:
        basis, matrix = qr(xp, matrix)
    elif columns > _LONG * rows:
        matrix = adjoint(xp, triangle(xp, adjoint(xp, matrix)))
    vectors, values, _ = svd(xp, matrix)
    vectors = vectors if basis is None else basis @ vectors
    return vectors, np.asarray(on_host(values), dtype=float)


# How many times longer than wide a matrix is where QR before SVD pays.
_LONG = 1.5


def range_of(xp: Namespace, matrix: Array) -> tuple[Array, np.ndarray[Any, Any]]:
    """An orthonormal basis of what the columns of a tall matrix span, and the part of each vector.

    These are the left singular vectors and the singular values. In single precision they come from the
    Gram matrix in double precision, in a third of the time; vectors far below rounding are left out.
    """
    if is_doubled(xp, matrix):
        wide = in_double(xp, matrix)
        squares, turn = xp.linalg.eigh(adjoint(xp, wide) @ wide)
        found = np.asarray(on_host(squares), dtype=float)
        least = _SQUARES * max(1.0, math.sqrt(len(found)) / 8) * found[-1]
        n = int(np.sum(found > least)) if found[-1] > 0 else 0
        if n:
            turn = xp.flip(turn[:, -n:] / xp.sqrt(squares[-n:]), axis=1)
            # What LAPACK leaves in weak ones differs from one to another, and may be a tenth of them.
            with suppress(np.linalg.LinAlgError, RuntimeError):
                vectors = orthonormalized(xp, wide @ turn)
                return astype(xp, vectors, matrix.dtype), np.sqrt(found[: -n - 1 : -1])
    return left_vectors(xp, matrix)


# Of the squares of singular values in double precision, what single precision may still resolve; more
# than `eigh` gets wrong, which grows like the root of the size.
_SQUARES = 1e-14


def orthonormalized(xp: Namespace, vectors: Array) -> Array:
    """Vectors that are nearly orthonormal made so: each in the space of those up to it (Cholesky QR)."""
    lower = xp.linalg.cholesky(adjoint(xp, vectors) @ vectors)
    return vectors @ adjoint(xp, xp.linalg.inv(lower))


def is_doubled(xp: Namespace, matrix: Array) -> bool:
    """Whether a matrix is of single precision where double precision is at hand, and pays."""
    if is_on_accelerator(matrix) or is_jax(xp) or _is_tracked(matrix):
        return False
    return bool(result_dtype(xp, [matrix.dtype, widest_real(xp)]) != matrix.dtype)


def in_double(xp: Namespace, matrix: Array) -> Array:
    """A matrix in double precision if it is doubled; others as they are."""
    if not is_doubled(xp, matrix):
        return matrix
    return astype(xp, matrix, result_dtype(xp, [matrix.dtype, widest_real(xp)]))
