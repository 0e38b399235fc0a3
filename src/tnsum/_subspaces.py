"""Leading eigenvectors of many small positive semidefinite matrices at once, by subspace iteration.

A full decomposition of a matrix G of size n finds n vectors where a few are wanted. Here a block V of
a few more columns than that is multiplied by polynomials of G that are large at the wanted eigenvalues
and small at the others, and made orthonormal in between; at last the small matrix V^H G V is
decomposed. Products of matrices are cheap, and this takes little else.

The first polynomial is a power; the triangle of a QR decomposition then says about where the
eigenvalues are. The others are Chebyshev polynomials T_d(2 G / b - 1), with b the least of them: what
lies from zero to b stays below one, and what is larger grows like exp(d arccosh(2 lambda / b - 1)), as
fast as it does in any polynomial. A column loses the more of its last digits the more the largest
eigenvalue outgrows its own, which limits the degree.

Let Theta = V^H G V be diagonal, theta_1 >= theta_2 >= ..., and W the rest of an orthonormal basis:

    [V W]^H G [V W] = [ Theta  E^H ]        |E| = |G V - V Theta|,
                      [ E      H   ],       |H|^2 = |G|^2 - |Theta|^2 - 2 |E|^2  (Frobenius norms).

The r wanted columns are eigenvectors if theirs of G V - V Theta are rounding. Whether one with a larger
eigenvalue was missed is another question. Without the wanted columns the matrix above is at most theta_r
if H and what the others of them, e_j, add to it are,

    h + sum over j > r of |e_j|^2 / (theta_r - theta_j)  <=  theta_r,

where h bounds H: its norm, or its trace, trace G - trace Theta, whichever is less. What fails either
test is filtered once more, and then decomposed in full. Columns that pass have residuals of at most
2 sqrt(n) times machine precision, relative to the largest eigenvalue: in single precision more than
`eigh` leaves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tnsum._arrays import (
    astype,
    can_decide,
    device_of,
    dtype_name,
    index_dtype,
    is_complex,
    is_on_accelerator,
)
from tnsum._matrices import adjoint
from tnsum._typing import Array, Namespace

# Columns beyond those wanted: with more of them, fewer steps are needed, and each costs more.
_MORE = 5
# The degree of the power, and the degrees of the filters of each attempt, by precision.
_POWER = {"float32": 2, "float64": 3}
_FILTERS = {"float32": ((3,), (3, 3)), "float64": ((4, 6), (6, 6))}
# The wanted eigenvalues must exceed the smallest in the block so many times for filters to be enough.
_FALL = 3.0
# Rounding makes errors up to so many times machine precision and the root of a matrix's size.
_ROUNDING = 2.0
# Measured: this pays for matrices so many times as large as the block is wide, and for so many of them.
_TIMES, _LEAST = 4, 16


def pays(matrices: Array, rank: int) -> bool:
    """Whether `leading_eigenvectors` is the quicker way to that many eigenvectors.

    Not on an accelerator, where many small QR decompositions take far longer than `eigh` does; and not
    where a gradient is wanted or values are traced, since what is done depends on the values.
    """
    m, n, _ = matrices.shape
    are_fit = m >= _LEAST and n >= _TIMES * (rank + _MORE)
    return are_fit and can_decide(matrices) and not is_on_accelerator(matrices)


def leading_eigenvectors(xp: Namespace, matrices: Array, rank: int) -> Array:
    """Eigenvectors to the largest eigenvalues of positive semidefinite (m, n, n): (m, n, rank).

    They are orthonormal and in the order of falling eigenvalues. Residuals are at most 2 sqrt(n) times
    machine precision, relative to the largest eigenvalue.
    """
    trace = _trace(xp, matrices)
    block, sizes = _powered(xp, matrices, trace, rank + _MORE)
    smallest = _bounded(xp, xp.min(sizes, axis=1), trace)
    does_fall = astype(xp, sizes[:, rank - 1] > _FALL * smallest, index_dtype(xp))
    if 2 * int(xp.sum(does_fall)) <= matrices.shape[0]:
        return _by_eigh(xp, matrices, rank)
    return _converged(xp, matrices, block, smallest, rank, _FILTERS[dtype_name(trace.dtype)])


def _converged(
    xp: Namespace,
    matrices: Array,
    block: Array,
    smallest: Array,
    rank: int,
    attempts: tuple[tuple[int, ...], ...],
) -> Array:
    """The eigenvectors by filters of these degrees; what they do not find, by all that follow."""
    if not attempts:
        return _by_eigh(xp, matrices, rank)
    block = _filtered(xp, matrices, block, smallest, attempts[0])
    block, smallest, is_right = _rotated(xp, matrices, block, rank)
    vectors = adjoint(xp, block[:, :rank, :])
    if bool(xp.all(is_right)):
        return vectors
    left = xp.nonzero(~is_right)[0]
    matrices, block, smallest = (xp.take(a, left, axis=0) for a in (matrices, block, smallest))
    others = _converged(xp, matrices, block, smallest, rank, attempts[1:])
    return _replaced(xp, vectors, is_right, others)


def _by_eigh(xp: Namespace, matrices: Array, rank: int) -> Array:
    """From full decompositions, with one step of the iteration after them.

    How large a residual `eigh` leaves depends on the LAPACK: some leave 30 times machine precision for
    matrices of size 32. The step reduces it to what is stated.
    """
    vectors = xp.flip(xp.linalg.eigh(matrices)[1], axis=-1)[..., : rank + _MORE]
    scale = _factors(xp, 1 / _positive(xp, _trace(xp, matrices)), matrices)
    block, _ = _orthonormal(xp, (adjoint(xp, vectors) @ matrices) * scale)
    return adjoint(xp, _rotated(xp, matrices, block, rank)[0][:, :rank, :])


# Blocks are V^H, of shape (m, width, n): with the long axis last, products are quicker.


def _powered(xp: Namespace, matrices: Array, trace: Array, width: int) -> tuple[Array, Array]:
    """The block of a power of G times fixed columns, and about the largest eigenvalues of G."""
    degree = _POWER[dtype_name(trace.dtype)]
    start = _start(matrices.shape[-1], width)
    block = xp.asarray(start, dtype=matrices.dtype, device=device_of(matrices))
    scale = _factors(xp, 1 / _positive(xp, trace), matrices)
    for _ in range(degree):
        block = (block @ matrices) * scale
    block, triangle = _orthonormal(xp, block)
    sizes = xp.abs(xp.linalg.diagonal(triangle)) ** (1 / degree)
    return block, sizes * trace[:, None]


@lru_cache(maxsize=64)
def _start(n: int, width: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal((width, n))


def _filtered(
    xp: Namespace, matrices: Array, block: Array, smallest: Array, degrees: tuple[int, ...]
) -> Array:
    """The block times Chebyshev polynomials of G that are small from zero to `smallest`."""
    twice = matrices * _factors(xp, 4 / _positive(xp, smallest), matrices)
    # In place: large arrays that come and go take longer than the arithmetic.
    twice -= 2 * xp.eye(matrices.shape[-1], dtype=matrices.dtype, device=device_of(matrices))
    for degree in degrees:
        before, block = block, (block @ twice) / 2
        for _ in range(degree - 1):
            before, block = block, block @ twice - before
        block, _ = _orthonormal(xp, block)
    return block


def _orthonormal(xp: Namespace, block: Array) -> tuple[Array, Array]:
    """The orthonormal block of the same span, whatever its rank, and the triangle."""
    columns, triangle = xp.linalg.qr(adjoint(xp, block))
    return adjoint(xp, columns), triangle


def _rotated(xp: Namespace, matrices: Array, block: Array, rank: int) -> tuple[Array, Array, Array]:
    """The eigenvectors in the span of a block, the smallest value, and where the first are of all."""
    images = block @ matrices
    # Of the negative matrix, so that the largest come first.
    values, rotation = xp.linalg.eigh(-(images @ adjoint(xp, block)))
    values, rotation = -values, adjoint(xp, rotation)
    block, images = rotation @ block, rotation @ images
    residuals = images - astype(xp, values, block.dtype)[:, :, None] * block
    is_right = _are_leading(xp, matrices, values, _squares(xp, residuals), rank)
    return block, _bounded(xp, values[:, -1], values[:, 0]), is_right


def _are_leading(xp: Namespace, matrices: Array, values: Array, squares: Array, rank: int) -> Array:
    """Whether the first are eigenvectors and no larger eigenvalue was missed, by squared residuals."""
    rounding = _ROUNDING * math.sqrt(matrices.shape[-1]) * _precision(xp, values)
    trace, whole = _trace(xp, matrices), _squares(xp, xp.reshape(matrices, (values.shape[0], -1)))
    by_trace = trace - xp.sum(values, axis=1) + rounding / 2 * trace
    by_norm = whole - xp.sum(values**2 + 2 * squares, axis=1) + rounding / 2 * whole
    rest = xp.minimum(xp.clip(by_trace, min=0.0), xp.sqrt(xp.clip(by_norm, min=0.0)))
    least = values[:, rank - 1] + rounding * trace
    below = _positive(xp, least[:, None] - values[:, rank:])
    none_missed = rest + xp.sum(squares[:, rank:] / below, axis=1) <= least
    return none_missed & (xp.max(squares[:, :rank], axis=1) <= (rounding * values[:, 0]) ** 2)


def _replaced(xp: Namespace, array: Array, is_kept: Array, others: Array) -> Array:
    """The array with all but the kept entries of its first axis replaced by others, in their order."""
    kind, m = index_dtype(xp), array.shape[0]
    n_others = xp.cumulative_sum(astype(xp, ~is_kept, kind))
    places = xp.where(is_kept, xp.arange(m, dtype=kind, device=device_of(array)), m - 1 + n_others)
    return xp.take(xp.concat([array, others], axis=0), places, axis=0)


def _trace(xp: Namespace, matrices: Array) -> Array:
    return _real(xp, xp.linalg.trace(matrices))


def _bounded(xp: Namespace, smallest: Array, largest: Array) -> Array:
    """The smallest eigenvalue of a block, but not below what rounding makes of the largest."""
    return xp.maximum(smallest, _precision(xp, largest) * largest)


def _precision(xp: Namespace, real: Array) -> float:
    return float(xp.finfo(real.dtype).eps)


def _positive(xp: Namespace, numbers: Array) -> Array:
    """The numbers, one in place of zero."""
    return xp.where(numbers > 0, numbers, xp.ones_like(numbers))


def _factors(xp: Namespace, numbers: Array, like: Array) -> Array:
    """One number for each sample, as a factor of its matrix."""
    return astype(xp, numbers, like.dtype)[:, None, None]


def _real(xp: Namespace, array: Array) -> Array:
    return xp.real(array) if is_complex(array.dtype) else array


def _squares(xp: Namespace, array: Array) -> Array:
    """The squared norms along the last axis."""
    return _real(xp, xp.vecdot(array, array))
