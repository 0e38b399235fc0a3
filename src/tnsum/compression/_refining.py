"""Bases of a given size, refined until they hold as much of the sum as bases of that size can.

A sketch of a few more columns than the rank wanted finds the leading directions only as far as the
singular values beyond them are small. Where these fall slowly, it may lose a third of what the best
network of that rank holds. Each further pass through the lazy sum multiplies by it and its adjoint once
more, so that the leading directions prevail.

*Matrices* (trees of two nodes). The blocks that passes give are all kept: with X the sum, the basis
spans Y, X X^H Y, (X X^H)^2 Y, ... for a few random columns Y. This is the block Krylov method (C. Musco
and C. Musco, Randomized block Krylov methods, 2015): about 1 / sqrt(e) passes for a relative excess e of
the error, where iterating a subspace takes 1 / e.

*All other trees.* What lies outside branch v in the network found so far has an orthonormal basis N_v.
With it in place of random test tensors, O_v = (all outside branch v of each summand) N_v^H, and

    Y_v = sum over m of T_v[m] O_v[m]

spans the leading directions of branch v better than before: this is one step of subspace iteration for
all modes, as in higher-order orthogonal iteration (L. De Lathauwer, B. De Moor and J. Vandewalle, On the
best rank-(R1, ..., RN) approximation, 2000).

Passes end when what they still gain, extrapolated, is below a few ten-thousandths of what is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tnsum._arrays import astype, device_of, real_dtype
from tnsum._matrices import adjoint, in_double, left_vectors, length, range_of
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import (
    FEW_ROWS,
    Basis,
    Orthogonal,
    factors_at,
    n_siblings,
    side_by_side,
    unit_vectors,
)
from tnsum.compression._branches import Branch, Group, moved
from tnsum.compression._products import Factor, absorbed, pieces_of, total_of
from tnsum.compression._test_tensors import uniform

# What further passes may still gain, relative to what is held; and the most passes.
_ENOUGH, _MOST = 8e-4, 40
# The fewest columns of a Krylov block beyond the rank.
_SPARE = 4
# Directions of so many times machine precision, relative to the leading one of a block, are rounding;
# those so many times weaker than it are orthogonalised once more.
_WEAK, _NEARLY_WEAK = 16.0, 1e-2


class _Gains:
    """Whether passes still gain enough, from what is held after each of them."""

    def __init__(self) -> None:
        self._held: list[float] = []

    def are_small(self, held: float) -> bool:
        """Whether what further passes gain, extrapolated, is small beside what is held now."""
        self._held.append(held)
        if len(self._held) < 3:
            return False
        before, last = (b - a for a, b in zip(self._held[-3:-1], self._held[-2:], strict=True))
        last = max(last, 0.0)
        ratio = min(last / before, 0.95) if before > 0 else 0.0
        return last * ratio / (1 - ratio) <= _ENOUGH * held


def krylov_bases(xp: Namespace, groups: Sequence[Group], rank: int, seed: int) -> Orthogonal:
    """A sum of products of two matrices in a basis of the leading directions of its range."""
    # The sum is one product of two matrices, with the terms of all summands side by side.
    left = side_by_side(xp, [xp.matrix_transpose(group[0]) for group in groups])
    lasts = [xp.reshape(group[1], (-1, group[1].shape[2])) for group in groups]
    right = lasts[0] if len(lasts) == 1 else xp.concat(lasts, axis=0)
    rows, columns = left.shape[0], right.shape[1]
    most = min(rows, columns, left.shape[1])
    width = min(most, rank + max(_SPARE, 3 * rank // 4))
    numbers = uniform(np.random.PCG64(seed), (columns, width))
    outside = xp.asarray(numbers, dtype=right.dtype, device=device_of(right))
    basis, core = None, None
    gram: Array = None
    gains = _Gains()
    for _ in range(_MOST):
        block = left @ (right @ outside)
        room = most - (0 if basis is None else basis.shape[1])
        size = length(xp, block)
        found = _orthonormal_beside(xp, basis, block / (size or 1.0))
        if found is None:
            break
        block = found[:, : min(room, found.shape[1])]
        image = (adjoint(xp, block) @ left) @ right
        basis = block if basis is None else xp.concat([basis, block], axis=1)
        core = image if core is None else xp.concat([core, image], axis=0)
        gram = _bordered(xp, gram, in_double(xp, core), in_double(xp, image))
        outside = adjoint(xp, image)
        if basis.shape[1] >= most:
            break
        if gains.are_small(float(xp.sum(xp.linalg.eigvalsh(gram)[-min(rank, gram.shape[0]) :]))):
            break
    assert basis is not None
    assert core is not None
    # All but the leading directions have served; in single precision the Gram matrix resolves them.
    if core.dtype == gram.dtype:
        turn = left_vectors(xp, core)[0]
    else:
        turn = astype(xp, xp.flip(xp.linalg.eigh(gram)[1], axis=1), core.dtype)
    turn = turn[:, : min(width, turn.shape[1])]
    basis, core = basis @ turn, adjoint(xp, turn) @ core
    return Orthogonal([Basis(basis, (rows,), basis.shape[1])], core, 0.0)


def _bordered(xp: Namespace, gram: Array | None, core: Array, image: Array) -> Array:
    """The Gram matrix of the rows of a core, from that of all rows but the last ones."""
    border = core @ adjoint(xp, image)
    if gram is None:
        return border
    above = xp.concat([gram, border[: gram.shape[0], :]], axis=1)
    return xp.concat([above, adjoint(xp, border)], axis=0)


def _orthonormal_beside(xp: Namespace, basis: Array | None, block: Array) -> Array | None:
    """An orthonormal basis of what a block of norm one adds to an orthonormal basis; None if that is
    nothing but rounding.
    """
    if basis is not None:
        for _ in range(2):
            block = block - basis @ (adjoint(xp, basis) @ block)
        if length(xp, block) < _WEAK * _precision(xp, block):
            return None
    block, values = _range_of(xp, block)
    if basis is not None and values[-1] < _NEARLY_WEAK * values[0]:
        # What was weak has become as large as the rest, and so has its rounding.
        block, _ = _range_of(xp, block - basis @ (adjoint(xp, basis) @ block))
    return block


def _range_of(xp: Namespace, matrix: Array) -> tuple[Array, Array]:
    """The left singular vectors and the singular values of a matrix that are more than rounding."""
    vectors, values = range_of(xp, matrix)
    n = max(1, int(np.sum(values > _WEAK * _precision(xp, matrix) * values[0])))
    return vectors[:, :n], values[:n]


def _precision(xp: Namespace, array: Array) -> float:
    return float(xp.finfo(real_dtype(xp, array.dtype)).eps)


def refined_bases(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal,
    caps: Sequence[int | None],
    held: Callable[[Orthogonal], float],
) -> Orthogonal:
    """The sum in bases refined by passes, as long as these gain; `held` is what is to grow.

    No basis is larger than its cap, if there is one.
    """
    gains = _Gains()
    gains.are_small(held(found))
    for _ in range(_MOST):
        found = _pass(xp, tree, groups, found, caps)
        if gains.are_small(held(found)):
            break
    return found


def in_bases(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    basis_of: Callable[[int, list[Factor]], Array | None],
) -> Orthogonal:
    """The sum projected onto orthonormal bases, found from the leaves to the root; None stands for the
    unit vectors.
    """
    bases: list[Basis] = []
    reduced: list[list[Array]] = []
    exponent = 0.0
    for v in range(len(tree) - 1):
        factors = factors_at(xp, tree, groups, reduced, v)
        matrix = basis_of(v, factors)
        if matrix is None:
            basis, columns = unit_vectors(factors)
        else:
            basis = Basis(matrix, factors[0].rows, matrix.shape[1])
            columns = [factor.projected(matrix) for factor in factors]
        columns, taken = rescaled_together(xp, columns, n_siblings(tree, v))
        bases.append(basis)
        reduced.append(columns)
        exponent += taken
    factors = factors_at(xp, tree, groups, reduced, len(tree) - 1)
    core = total_of([factor.total() for factor in factors])
    return Orthogonal(bases, core, exponent, reduced=reduced)


def _pass(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal,
    caps: Sequence[int | None],
) -> Orthogonal:
    """The sum in the bases that the outsides of a network near it give."""
    outside = _outside(xp, tree, groups, found)

    def basis_of(v: int, factors: list[Factor]) -> Array | None:
        if math.prod(factors[0].rows) <= (caps[v] or FEW_ROWS):
            return None
        pairs = zip(factors, outside[v], strict=True)
        seen = total_of([factor.times(each) for factor, each in pairs])
        matrix = _range_of(xp, seen)[0]
        return matrix[:, : min(caps[v] or matrix.shape[1], matrix.shape[1])]

    return replace(in_bases(xp, tree, groups, basis_of), about=found.about)


def _outside(
    xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group], found: Orthogonal
) -> list[list[Array]]:
    """O_v for each branch but the root and each group, of shape (m, rank up, width)."""
    outside: list[list[Array]] = [[] for _ in tree]
    triangles: list[Array] = [found.core] * len(tree)
    for v in range(len(tree) - 1, -1, -1):
        children = tree[v].children
        if not children:
            continue
        if v == len(tree) - 1:
            full = found.core[..., None]
        else:
            basis = found.bases[v]
            full = triangles[v] if basis.matrix is None else basis.matrix @ triangles[v]
            full = xp.reshape(full, (*basis.rows, -1))
        for k, c in enumerate(children):
            matrix = xp.reshape(moved(xp, full, k, 0), (full.shape[k], -1))
            # The rows of N are an orthonormal basis of what is outside; all of it, where it is small.
            if matrix.shape[1] > matrix.shape[0]:
                turned, triangle = xp.linalg.qr(adjoint(xp, matrix))
                triangles[c] = adjoint(xp, triangle)
            else:
                turned = xp.eye(matrix.shape[1], dtype=matrix.dtype, device=device_of(matrix))
                triangles[c] = matrix
            columns = []
            for g, group in enumerate(groups):
                above = outside[v][g] if v < len(tree) - 1 else None
                siblings = [None if d == c else found.reduced[d][g] for d in children]
                columns.append(_projected(xp, group[v], above, siblings, turned, k))
            # Only ratios between summands matter.
            outside[c], _ = rescaled_together(xp, columns, 2)
    return outside


def _projected(
    xp: Namespace,
    array: Array,
    above: Array | None,
    siblings: Sequence[Array | None],
    turned: Array,
    k: int,
) -> Array:
    """What is outside child number k of a node, in each summand, on the columns of a basis."""
    rank = array.shape[k + 1]
    sizes = [s.shape[-1] for s in siblings if s is not None]
    width = 1 if above is None else above.shape[-1]
    found = []
    for piece in pieces_of(array, rank * math.prod(sizes) * array.shape[-2] * width):
        part = absorbed(
            xp, array[piece, ...], [None if s is None else s[piece, ...] for s in siblings], 0
        )
        part = moved(xp, part, k + 1, 1)
        m, up = part.shape[0], part.shape[-1]
        if above is not None:
            part = xp.matmul(xp.reshape(part, (m, -1, up)), above[piece, ...])
        found.append(xp.reshape(xp.reshape(part, (m * rank, -1)) @ turned, (m, rank, -1)))
    return found[0] if len(found) == 1 else xp.concat(found, axis=0)
