"""A sum seen from both sides of every contraction mode.

With D_v the narrow test tensors below the mode up of branch v, U_v the wide ones above it (see
`_fixed_tests`) and X the sum, as a matrix whose rows are the physical indices of branch v,

    Omega_v = D_v^T X U_v                                 (narrow x wide)
    Psi_v   = (D_c1 kron D_c2 ... kron 1)^T X U_v         (narrow of each child, n; wide)

and at the root, above which there is nothing, Psi = (D_c1 kron D_c2 ... kron 1)^T X. All are linear in
X: those of a sum are the sums of its summands', whatever their order, and terms that cancel in the sum
cancel in them.

A summand's numbers can be far from one, and long products of them farther: all that belongs to one
summand is kept near one, with a power of two beside it, until all are brought to one scale and added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tnsum._arrays import (
    constant,
    device_of,
    dtype_name,
    is_on_host,
    namespace,
    on_host,
    real_dtype,
)
from tnsum._scale import OF_ZERO, is_in_range, unscaled
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group, group_of
from tnsum.compression._fixed_tests import APART, FixedTests
from tnsum.compression._norms import log2_on_host
from tnsum.compression._products import Factor, squares_of
from tnsum.compression._test_tensors import below_siblings, inside_of, outside_of
from tnsum.network import NetworkStack

Scaled: TypeAlias = tuple[Array, float]
"""An array, and the exponent of the power of two that it is to be multiplied by."""


@dataclass(frozen=True)
class Sums:
    """What has been added up so far.

    Attributes
    ----------
    psi : list of Scaled
        Psi for each branch, as a matrix of shape (rows, wide); the root's is of shape (rows, 1).
    omega : list of Scaled
        Omega for each branch but the root.
    alone : list of float
        For each branch the log2 of what rounding is measured by, in the scale of Omega (of a lone
        node's Psi): the norms of the node and of what hangs at it multiplied (see `_norms`), as test
        tensors see them, of all summands added up.
    """

    psi: list[Scaled]
    omega: list[Scaled]
    alone: list[float]

    @property
    def some_array(self) -> Array:
        """One of the arrays: all are of one library, dtype and device."""
        return self.psi[-1][0]

    def moved_to(self, like: Array) -> Sums:
        """The same in the library and on the device of another array, if they are elsewhere: NumPy's."""
        if type(like) is type(self.some_array):
            return self
        xp, device = namespace(like), device_of(like)

        def moved(pair: Scaled) -> Scaled:
            return xp.asarray(pair[0], dtype=like.dtype, device=device), pair[1]

        return Sums(list(map(moved, self.psi)), list(map(moved, self.omega)), self.alone)

    def plus(self, other: Sums) -> Sums:
        """Both added up."""
        return Sums(
            [_plus(a, b) for a, b in zip(self.psi, other.psi, strict=True)],
            [_plus(a, b) for a, b in zip(self.omega, other.omega, strict=True)],
            [float(np.logaddexp2(a, b)) for a, b in zip(self.alone, other.alone, strict=True)],
        )


def _plus(a: Scaled, b: Scaled) -> Scaled:
    if a[1] < b[1]:
        a, b = b, a
    # Equal exponents are the rule: scales are rounded to large powers of two.
    return (a[0] + (b[0] if a[1] == b[1] else b[0] * 2.0 ** (b[1] - a[1]))), a[1]


def sums_of(
    xp: Namespace, tree: Sequence[Branch], tests: FixedTests, stack: NetworkStack, weights: Array
) -> Sums:
    """What the networks of a stack, times their weights, add."""
    # Gradients would keep every term alive.
    weights, exponents = _rescaled(xp, constant(xp, weights))
    held = {}
    for name, array in stack.arrays.items():
        held[name], taken = _rescaled(xp, constant(xp, array))
        exponents = exponents + taken
    arrays = group_of(xp, tree, NetworkStack._unchecked(stack.topology, held), weights)
    below, below_exponents = _seen_below(xp, tree, tests, arrays)
    above, above_exponents, products = _seen_above(xp, tree, tests, arrays, exponents)
    psi, omega = list[Scaled](), list[Scaled]()
    alone: list[float] = []
    for v, branch in enumerate(tree):
        factor = Factor(xp, arrays[v], [below[c] for c in branch.children])
        others = sum((below_exponents[c] for c in branch.children), start=above_exponents[v])
        if v < len(tree) - 1 or len(tree) == 1:
            logs = log2_on_host(factor.squares) + 2 * np.asarray(
                on_host(others - above_exponents[v])
            )
            alone.append(float(np.logaddexp2.reduce((logs + products[v]) / 2)))
        if v == len(tree) - 1:
            root, exponent = _in_scale(xp, arrays[v], others)
            total = Factor(xp, root, factor.below).total()
            psi.append((xp.reshape(total, (-1, 1)), exponent))
            break
        columns, exponent = _in_scale(xp, above[v], others)
        psi.append((factor.times(columns), exponent))
        columns, exponent = _in_scale(xp, above[v], below_exponents[v] + above_exponents[v])
        flat = xp.reshape(below[v], (-1, below[v].shape[-1]))
        omega.append((flat.T @ xp.reshape(columns, (-1, columns.shape[-1])), exponent))
    return Sums(psi, omega, alone)


def seen_apart(
    xp: Namespace, tree: Sequence[Branch], tests: FixedTests, arrays: Sequence[Array]
) -> Array:
    """The columns kept apart of Psi at the first leaf, of a network that is given by its arrays.

    At a leaf Psi is all of the network through test tensors: nothing lies below.
    """
    group = [array[None, ...] for array in arrays]
    none = xp.zeros((1,), dtype=real_dtype(xp, group[0].dtype), device=device_of(group[0]))
    above, exponents, _ = _seen_above(xp, tree, tests, group, none)
    columns = Factor(xp, group[0], []).times(above[0][:, :, -APART:])
    return columns * 2.0 ** float(exponents[0][0])


def _seen_below(
    xp: Namespace, tree: Sequence[Branch], tests: FixedTests, arrays: Group
) -> tuple[list[Array], list[Array]]:
    """D_v^T of each branch but the root, of shape (m, rank up, narrow), and its exponents."""
    found: list[Array] = []
    exponents: list[Array] = []
    for v, branch in enumerate(tree[:-1]):
        factor = Factor(xp, arrays[v], [found[c] for c in branch.children])
        matrix = tests.below[v]
        columns = factor.whole() if matrix is None else factor.projected(matrix)
        columns, taken = _rescaled(xp, columns)
        found.append(columns)
        exponents.append(sum((exponents[c] for c in branch.children), start=taken))
    return found, exponents


def _seen_above(
    xp: Namespace, tree: Sequence[Branch], tests: FixedTests, arrays: Group, exponents: Array
) -> tuple[list[Array], list[Array], list[Array]]:
    """U_v times all outside each branch, of shape (m, rank up, wide), and its exponents; and the log2
    of its squared norm, or of the squared norms of what was multiplied at the node above, if larger.

    `exponents` are those of the summands; they are the root's.
    """
    inside: list[Array | None] = []
    taken_inside: list[Array] = []
    for v, is_seen in enumerate(below_siblings(tree)):
        columns, taken = None, exponents
        if is_seen:
            below = [inside[c] for c in tree[v].children]
            columns, taken = _rescaled(xp, inside_of(xp, arrays[v], below, tests.above[v]))
            taken = sum((taken_inside[c] for c in tree[v].children), start=taken)
        inside.append(columns)
        taken_inside.append(taken)
    found: list[Array | None] = [None] * len(tree)
    own: list[Array] = [exponents] * len(tree)
    logs: list[Array] = [2 * np.asarray(on_host(exponents))] * len(tree)
    for v in range(len(tree) - 1, -1, -1):
        children = tree[v].children
        if not children:
            continue
        siblings = [inside[c] for c in children]
        each = outside_of(xp, arrays[v], found[v], siblings, tests.above[v])
        squares = squares_of(xp, arrays[v])
        outer = found[v]
        if outer is not None:
            squares = squares * squares_of(xp, outer) / outer.shape[-1]
        for child, columns in zip(children, each, strict=True):
            found[child], taken = _rescaled(xp, columns)
            others = (taken_inside[c] for c in children if c != child)
            around = sum(others, start=own[v])
            own[child] = around + taken
            product = squares * columns.shape[-1]
            for c, sibling in zip(children, siblings, strict=True):
                if c != child and sibling is not None:
                    product = product * squares_of(xp, sibling) / sibling.shape[-1]
            logs[child] = np.maximum(
                log2_on_host(squares_of(xp, found[child])) + 2 * np.asarray(on_host(own[child])),
                log2_on_host(product) + 2 * np.asarray(on_host(around)),
            )
    return found, own, logs


# scales


# Powers of two that slices may have, so that a product of some of them is in range.
_NEAR = {"float32": 8.0, "complex64": 8.0, "float64": 40.0, "complex128": 40.0}
# Exponents are rounded to multiples of this, so that sums hardly ever need another.
_STEP = 16


def _rescaled(xp: Namespace, array: Array) -> tuple[Array, Array]:
    """The array with each slice along the first axis near one, and the log2 taken out of each."""
    if is_in_range(array, _NEAR[dtype_name(array.dtype)]):
        return array, np.zeros(array.shape[0])
    largest = xp.abs(array)
    if array.ndim > 1:
        largest = xp.max(largest, axis=tuple(range(1, array.ndim)))
    is_zero = largest == 0
    exponents = xp.floor(xp.log2(xp.where(is_zero, xp.ones_like(largest), largest)))
    shape = (-1, *(1,) * (array.ndim - 1))
    array = unscaled(xp, array, xp.reshape(-exponents, shape))
    return array, xp.where(is_zero, xp.full_like(largest, OF_ZERO), exponents)


def _in_scale(xp: Namespace, array: Array, exponents: Array) -> Scaled:
    """The slices with their exponents multiplied in, but for a common one that is taken out."""
    if is_on_host(array) and not np.any(exponents):
        return array, 0.0
    top = _STEP * round(float(xp.max(exponents)) / _STEP)
    shape = (-1, *(1,) * (array.ndim - 1))
    return unscaled(xp, array, xp.reshape(exponents - top, shape)), float(top)
