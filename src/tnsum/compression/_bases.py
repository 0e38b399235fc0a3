"""Orthonormal bases of the branches of a sum, by QR: what is exact.

From the leaves to the root, Q_v R_v = T_v (see `_products`). A branch with fewer rows than columns is
its own R_v, with the unit vectors as basis. At the root the columns of all summands are added: that is
the sum, in an orthonormal basis. Nothing is lost, and nothing is squared on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group
from tnsum.compression._products import Factor


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis of a branch.

    Attributes
    ----------
    matrix : array of shape (number of rows, size), or None
        None stands for the unit vectors.
    rows : tuple of int
        The sizes of the bases below, then the number of the node's own physical indices.
    size : int
    """

    matrix: Array | None
    rows: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Orthogonal:
    """A sum in orthonormal bases of its branches.

    Attributes
    ----------
    bases : list of Basis
        One for each branch but the root.
    core : array
        The sum in them; its axes are the children of the root, and the root's physical indices.
    exponent : float
        The power of two that `core` is to be multiplied by.
    lost : float
        An estimate of the part of the sum that the bases do not hold, relative to its norm.
    """

    bases: list[Basis]
    core: Array
    exponent: float
    lost: float = 0.0


def factors_at(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    reduced: Sequence[list[Array]],
    v: int,
) -> list[Factor]:
    """The node v of every group, with what the branches below it have become."""
    children = tree[v].children
    return [
        Factor(xp, group[v], [reduced[c][g] for c in children]) for g, group in enumerate(groups)
    ]


def direct_bases(xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group]) -> Orthogonal:
    """The sum in bases that hold every summand."""
    bases: list[Basis] = []
    reduced: list[list[Array]] = []
    exponent = 0.0
    for v in range(len(tree) - 1):
        factors = factors_at(xp, tree, groups, reduced, v)
        basis, columns, taken = _orthogonalised(xp, factors)
        bases.append(basis)
        reduced.append(columns)
        exponent += taken
    core = added(factors_at(xp, tree, groups, reduced, len(tree) - 1))
    return Orthogonal(bases, core, exponent)


def added(factors: Sequence[Factor]) -> Array:
    """The sum of all summands at the root."""
    total = factors[0].total()
    for factor in factors[1:]:
        total = total + factor.total()
    return total


def unit_vectors(factors: Sequence[Factor]) -> tuple[Basis, list[Array]]:
    """The unit vectors as basis of a branch, and R_v = T_v in them."""
    rows = factors[0].rows
    return Basis(None, rows, math.prod(rows)), [factor.whole() for factor in factors]


def _orthogonalised(xp: Namespace, factors: Sequence[Factor]) -> tuple[Basis, list[Array], float]:
    """A basis of the branch, R_v for every group, and the power of two that was taken out."""
    n_columns = sum(factor.n_columns for factor in factors)
    basis, columns = unit_vectors(factors)
    if basis.size > n_columns:
        flat = [xp.reshape(c, (-1, basis.size)) for c in columns]
        joined = flat[0] if len(flat) == 1 else xp.concat(flat, axis=0)
        matrix, triangle = xp.linalg.qr(joined.T)
        basis = Basis(matrix, basis.rows, n_columns)
        columns = split(xp, triangle.T, factors)
    columns, exponent = rescaled_together(xp, columns)
    return basis, columns, exponent


def split(xp: Namespace, rows: Array, factors: Sequence[Factor]) -> list[Array]:
    """R_v for each group, of shape (m, rank, size), from a matrix with the columns of all as rows."""
    found, start = [], 0
    for factor in factors:
        stop = start + factor.n_columns
        shape = (factor.n_summands, factor.rank, rows.shape[1])
        found.append(xp.reshape(rows[start:stop, :], shape))
        start = stop
    return found
