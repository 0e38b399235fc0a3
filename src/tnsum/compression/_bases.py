"""Orthonormal bases of the branches of a sum, by QR: what is exact.

From the leaves to the root, Q_v R_v = T_v (see `_products`). A branch with fewer rows than columns is
its own R_v, with the unit vectors as basis. At the root the columns of all summands are added: that is
the sum, in an orthonormal basis. Nothing is lost, and nothing is squared on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tnsum._matrices import qr
from tnsum._progress import Step, unseen
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group
from tnsum.compression._products import Factor, total_of


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
    about : float or None
        What rounding is measured by (see `_norms`), in quadrature over the summands and in the scale of
        `core`, as a sketch sees it: in long trees up to some ten times too large or too small.
    reduced : sequence of list of array
        R_v for each branch but the root and each group, where they are kept.
    is_measured : bool
        Whether `lost` was measured, and not estimated from few columns.
    """

    bases: list[Basis]
    core: Array
    exponent: float
    lost: float = 0.0
    about: float | None = None
    reduced: Sequence[list[Array]] = ()
    is_measured: bool = False


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
        Factor(xp, group[v], [reduced[c][g] for c in children], len(groups))
        for g, group in enumerate(groups)
    ]


def direct_bases(
    xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group], step: Step = unseen
) -> Orthogonal:
    """The sum in bases that hold every summand."""
    bases: list[Basis] = []
    reduced: list[list[Array]] = []
    exponent = 0.0
    for v in range(len(tree) - 1):
        factors = factors_at(xp, tree, groups, reduced, v)
        basis, columns, taken = _orthogonalised(xp, factors, n_siblings(tree, v))
        bases.append(basis)
        reduced.append(columns)
        exponent += taken
        step()
    core = total_of([f.total() for f in factors_at(xp, tree, groups, reduced, len(tree) - 1)])
    return Orthogonal(bases, core, exponent)


def n_siblings(tree: Sequence[Branch], v: int) -> int:
    """How many branches, v among them, are multiplied with one another at the next node."""
    return len(tree[tree[v].parent].children)


# Branches with no more rows than that are kept as they are, in the unit vectors.
FEW_ROWS = 32


def are_kept(tree: Sequence[Branch], group: Group) -> list[bool]:
    """Which branches surely have few rows."""
    rows: list[int] = []
    for branch, array in zip(tree, group, strict=True):
        below = math.prod(rows[c] for c in branch.children)
        rows.append(min(below * int(array.shape[-2]), FEW_ROWS + 1))
    return [n <= FEW_ROWS for n in rows]


def unit_vectors(factors: Sequence[Factor]) -> tuple[Basis, list[Array]]:
    """The unit vectors as basis of a branch, and R_v = T_v in them."""
    rows = factors[0].rows
    return Basis(None, rows, math.prod(rows)), [factor.whole() for factor in factors]


def _orthogonalised(
    xp: Namespace, factors: Sequence[Factor], n_siblings: int
) -> tuple[Basis, list[Array], float]:
    """A basis of the branch, R_v for every group, and the power of two that was taken out."""
    n_columns = sum(factor.n_columns for factor in factors)
    basis, columns = unit_vectors(factors)
    if basis.size > n_columns:
        matrix, triangle = qr(xp, side_by_side(xp, columns))
        basis = Basis(matrix, basis.rows, n_columns)
        columns = split(xp, triangle.T, factors)
    if basis.matrix is None and not factors[0].below:
        # The arrays as they came, which are in range.
        return basis, columns, 0.0
    columns, exponent = rescaled_together(xp, columns, n_siblings)
    return basis, columns, exponent


def side_by_side(xp: Namespace, columns: Sequence[Array]) -> Array:
    """T_v as a matrix, from its parts of shape (m, rank, rows)."""
    flat = [xp.reshape(c, (-1, c.shape[-1])) for c in columns]
    return (flat[0] if len(flat) == 1 else xp.concat(flat, axis=0)).T


def split(xp: Namespace, rows: Array, factors: Sequence[Factor]) -> list[Array]:
    """R_v for each group, of shape (m, rank, size), from a matrix with the columns of all as rows."""
    found, start = [], 0
    for factor in factors:
        stop = start + factor.n_columns
        shape = (factor.n_summands, factor.rank, rows.shape[1])
        found.append(xp.reshape(rows[start:stop, :], shape))
        start = stop
    return found
