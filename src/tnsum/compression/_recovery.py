"""The network that is recovered from the sums of `_two_sided`, and how much of the sum it lacks.

If the sum X has no larger ranks than the narrow test tensors D_v, then X = (X U_v) Omega_v^+ (D_v^T X)
at every mode, and X is the network with nodes Psi_v Omega_v^+, and Psi at the root. If X has larger
ranks, what is left out is not much more than what the best network leaves out: U_v is wider than D_v,
and D_v wider than the ranks wanted, so that no direction is magnified much. With the singular values
of Omega_v = A S B^H that are above the noise, the node at v is Psi_v B / S, and A^H goes to the parent;
nothing is inverted but these values, and nothing is squared.

From the leaves to the root each node is orthogonalised: then the rows of Psi_v are in an orthonormal
basis, and what columns of U_v that were kept apart lack,

    | (X - (X U_v) Omega_v^+ D_v^T X) U_v |  /  | X U_v |       in that basis,

is an estimate of what is lost at this mode, relative to the norm of X: no test tensor below the mode
comes into it, and those above count in both norms alike.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from tnsum._arrays import conj, device_of, on_host, real_dtype
from tnsum._matrices import length, qr, svd
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import Basis, Orthogonal, n_siblings
from tnsum.compression._branches import Branch, longest_way
from tnsum.compression._conversion import check_range, scaled
from tnsum.compression._fixed_tests import APART, FixedTests
from tnsum.compression._products import Factor
from tnsum.compression._result import warn_of_rounding
from tnsum.compression._truncation import truncated
from tnsum.compression._two_sided import Scaled, Sums, seen_apart
from tnsum.errors import NetworkError

# Singular values below so many times the noise are noise.
_NOISE = 4.0
# The rounding error in units of what it is measured by.
_ROUNDING = 8.0
# How many times larger than its estimate what is lost hardly ever is.
_LOSS = 2.0
# What the columns kept apart say of the error is to be multiplied by this, in trees with no longer ways;
# through longer ones they tell too little. Beyond the last number nothing worth keeping is known.
_MARGIN, _SHORT, _NOTHING = 1.3, 16, 0.95


def compressed(
    xp: Namespace,
    tree: Sequence[Branch],
    sizes: Sequence[int],
    sums: Sums,
    tolerance: float,
    caps: Sequence[int],
    max_rank: int,
    tests: Callable[[], FixedTests],
) -> tuple[list[Array], float]:
    """The arrays of a network near the sum, of shape (ranks down, n, rank up), and its error."""
    precision = precision_of(xp, sums)
    noise = precision * _cancellation(xp, sums)
    rounding = _ROUNDING * noise
    if rounding >= 1:
        # A sum of zeros is known exactly.
        warn_of_rounding(math.inf if max(sums.alone) > -math.inf else 0.0, tolerance, stacklevel=4)
        return _zeros(xp, tree, sizes, sums.some_array), 1.0
    found = _recovered(xp, tree, sizes, sums, precision)
    size = float(xp.linalg.vector_norm(found.core))
    if not 0 < size < math.inf:
        raise NetworkError(
            "What has been added up must be that of some sum; it is not. The file that it was loaded "
            "from is damaged."
        )
    # What is lost, dropped and rounded is not orthogonal: it adds up.
    lost = _LOSS * found.lost + rounding
    warn_of_rounding(rounding, tolerance, stacklevel=4)
    budget = size * max(0.0, tolerance - lost)
    arrays, dropped = truncated(xp, tree, found, budget, noise * size, caps)
    check_range(found.exponent + math.log2(size), len(tree), sums.some_array.dtype)
    error = dropped / size + lost
    if lost >= 1 and len(tree) > 1 and longest_way(tree) <= _SHORT:
        # Where far more is lost than kept, the network found may be farther from the sum than zero is.
        factor, rest = _nearest_multiple(xp, tree, sums, tests(), arrays, found.exponent)
        if rest > _NOTHING:
            _warn_of_small_rank(max_rank)
            return _zeros(xp, tree, sizes, sums.some_array), 1.0
        arrays[-1] = factor * arrays[-1]
        error = _MARGIN * rest + rounding
    return scaled(arrays, found.exponent), error


def _nearest_multiple(
    xp: Namespace,
    tree: Sequence[Branch],
    sums: Sums,
    tests: FixedTests,
    arrays: Sequence[Array],
    exponent: float,
) -> tuple[float, float]:
    """The factor by which a network comes nearest to the sum, and the relative distance that is left."""
    own = seen_apart(xp, tree, tests, arrays)
    psi, taken = sums.psi[0]
    right = psi[:, -APART:]
    sizes = length(xp, own), length(xp, right)
    if not all(sizes):
        return 0.0, 1.0
    overlap = float(xp.real(xp.sum(conj(xp, own / sizes[0]) * (right / sizes[1]))))
    factor = overlap * sizes[1] / sizes[0] * 2.0 ** (taken - exponent)
    return min(1.0, max(0.0, factor)), math.sqrt(max(0.0, 1 - max(0.0, overlap) ** 2))


def _warn_of_small_rank(rank: int) -> None:
    warnings.warn(
        f"The accumulator must be made with a larger max_rank: with {rank} nothing is known of what has "
        f"been added but its size, and the result is zero.",
        RuntimeWarning,
        stacklevel=4,
    )


def precision_of(xp: Namespace, sums: Sums) -> float:
    """The machine precision of the sums."""
    return float(xp.finfo(real_dtype(xp, sums.some_array.dtype)).eps)


def _cancellation(xp: Namespace, sums: Sums) -> float:
    """What rounding is measured by, relative to the norm of the sum."""
    found = []
    for alone, (array, exponent) in zip(sums.alone, sums.omega or sums.psi, strict=True):
        size = float(xp.linalg.vector_norm(array))
        found.append(2.0 ** min(alone - exponent, 1000.0) / size if size > 0 else math.inf)
    return math.hypot(*found)


def _zeros(xp: Namespace, tree: Sequence[Branch], sizes: Sequence[int], like: Array) -> list[Array]:
    """Zero, of rank one."""
    ranks = [(1,) * len(branch.children) for branch in tree]
    shapes = [(*down, size, 1) for down, size in zip(ranks, sizes, strict=True)]
    return [xp.zeros(shape, dtype=like.dtype, device=device_of(like)) for shape in shapes]


def _recovered(
    xp: Namespace, tree: Sequence[Branch], sizes: Sequence[int], sums: Sums, precision: float
) -> Orthogonal:
    """The network with these sums, which are not zero, in orthonormal bases of its branches."""
    bases: list[Basis] = []
    reduced: list[Array] = []
    exponent = lost = 0.0
    for v, branch in enumerate(tree[:-1]):
        factor, taken = _factor(xp, sums.psi[v], [reduced[c] for c in branch.children], sizes[v])
        exponent += taken
        omega, taken = sums.omega[v]
        exponent -= taken
        noise = _NOISE * precision * 2.0 ** (sums.alone[v] - taken)
        seen = xp.matrix_transpose(factor.whole()[0, ...])
        basis, triangle, loss = _resolved(xp, seen, omega, noise)
        lost += loss**2
        bases.append(Basis(basis, factor.rows, basis.shape[1]))
        columns = [triangle.T[None, ...]]
        columns, taken = rescaled_together(xp, columns, n_siblings(tree, v))
        exponent += taken
        reduced += columns
    below = [reduced[c] for c in tree[-1].children]
    root, taken = _factor(xp, sums.psi[-1], below, sizes[-1])
    return Orthogonal(bases, root.total(), exponent + taken, math.sqrt(lost))


def _factor(xp: Namespace, psi: Scaled, below: Sequence[Array], size: int) -> tuple[Factor, float]:
    """Psi as the node of a single summand, with what the branches below it have become."""
    array, exponent = psi
    shape = (1, *(columns.shape[1] for columns in below), size, -1)
    return Factor(xp, xp.reshape(array, shape), below), exponent


def _resolved(xp: Namespace, seen: Array, omega: Array, noise: float) -> tuple[Array, Array, float]:
    """Q and R with Q R = Psi Omega^+, and what the columns kept apart lack; `seen` is Psi."""
    n = omega.shape[1] - APART
    left, values, right = svd(xp, omega[:, :n])
    rank = max(1, int(np.sum(np.asarray(on_host(values)) > noise)))
    back = conj(xp, left[:, :rank].T)
    node = seen[:, :n] @ (conj(xp, right[:rank, :].T) / values[:rank])
    apart = seen[:, n:]
    lacking = xp.linalg.vector_norm(apart - node @ (back @ omega[:, n:]))
    basis, triangle = qr(xp, node)
    total = float(xp.linalg.vector_norm(apart))
    return basis, triangle @ back, float(lacking) / total if total > 0 else 1.0
