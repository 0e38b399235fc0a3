"""The paper's notation as functions, for arrays of any library; modes count from 0.

Unfoldings follow Kolda and Bader: the columns of the mode-n unfolding are ordered so that the first
of the other modes varies fastest. With it the unfolding of a Tucker network is, for every mode n,

    X_(n) = A_n G_(n) (A_{N-1} kron ... kron A_{n+1} kron A_{n-1} kron ... kron A_0)^T.

(Equation (3) of the paper, as printed, has the factors next to n in the wrong order; it holds only
for the first and the last mode.)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from functools import reduce

from tnsum._arrays import as_array, common_namespace, copied, place_blocks
from tnsum._typing import Array, Namespace
from tnsum.errors import ModeError, NetworkError

__all__ = [
    "contraction_product",
    "fold",
    "kronecker",
    "mode_product",
    "outer",
    "superdiagonal",
    "unfold",
    "vec",
]


def unfold(x: Array, mode: int) -> Array:
    """The mode-n unfolding: a matrix with the mode as rows and all others as columns.

    Raises
    ------
    ModeError
        `x` has no such mode.

    Examples
    --------
    >>> import numpy as np
    >>> unfold(np.arange(8.0).reshape(2, 2, 2), 1)
    array([[0., 4., 1., 5.],
           [2., 6., 3., 7.]])
    """
    xp = _namespace(x)
    mode = _checked_mode(x, mode)
    others = [k for k in reversed(range(x.ndim)) if k != mode]
    n_columns = math.prod(x.shape[k] for k in others)
    return xp.reshape(xp.permute_dims(x, (mode, *others)), (x.shape[mode], n_columns))


def fold(matrix: Array, mode: int, shape: Sequence[int]) -> Array:
    """The tensor of the given shape whose mode-n unfolding is `matrix`.

    Raises
    ------
    ModeError
        The shape has no such mode.
    NetworkError
        The matrix is not the unfolding of a tensor of that shape.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(24.0).reshape(2, 3, 4)
    >>> bool(np.all(fold(unfold(x, 1), 1, x.shape) == x))
    True
    """
    xp = _namespace(matrix)
    if not isinstance(shape, Sequence) or not all(hasattr(n, "__index__") for n in shape):
        raise NetworkError(f"shape must be a sequence of integers; {shape!r} came.")
    order = len(shape)
    mode = _mode_of_shape(shape, mode)
    others = [k for k in reversed(range(order)) if k != mode]
    expected = (shape[mode], math.prod(shape[k] for k in others))
    if tuple(matrix.shape) != expected:
        raise NetworkError(
            f"The mode-{mode} unfolding of a tensor of shape {tuple(shape)} must have shape "
            f"{expected}; {tuple(matrix.shape)} came."
        )
    permuted = xp.reshape(matrix, tuple(shape[k] for k in (mode, *others)))
    axes = (mode, *others)
    return xp.permute_dims(permuted, tuple(axes.index(k) for k in range(order)))


def mode_product(x: Array, matrix: Array, mode: int) -> Array:
    """The mode-n product: every mode-n fibre of `x` multiplied by `matrix`; the mode stays in place.

    Raises
    ------
    ModeError
        `x` has no such mode, or the matrix has another number of columns than the mode's size.

    Examples
    --------
    >>> import numpy as np
    >>> mode_product(np.ones((2, 3)), np.array([[1.0, 10.0]]), 0)
    array([[11., 11., 11.]])
    """
    xp = _namespace(x, matrix)
    mode = _checked_mode(x, mode)
    if matrix.ndim != 2 or matrix.shape[1] != x.shape[mode]:
        raise ModeError(
            f"A mode-{mode} product must have as many columns in the matrix as the size of the mode: "
            f"the matrix has shape {tuple(matrix.shape)}, the tensor {tuple(x.shape)}."
        )
    return xp.moveaxis(xp.tensordot(matrix, x, axes=((1,), (mode,))), 0, mode)


def contraction_product(x: Array, y: Array, m: int, n: int) -> Array:
    """The (m, n)-contraction product: mode `n` of `x` summed with mode `m` of `y`.

    The result has the remaining modes of `x`, then those of `y`.

    Raises
    ------
    ModeError
        There is no such mode, or the two modes differ in size.

    Examples
    --------
    >>> import numpy as np
    >>> contraction_product(np.ones((2, 3, 4)), np.ones((5, 3)), m=1, n=1).shape
    (2, 4, 5)
    """
    xp = _namespace(x, y)
    n, m = _checked_mode(x, n), _checked_mode(y, m)
    if x.shape[n] != y.shape[m]:
        raise ModeError(
            f"Contracted modes must have one size: mode {n} of shape {tuple(x.shape)} has "
            f"{x.shape[n]}, mode {m} of shape {tuple(y.shape)} has {y.shape[m]}."
        )
    return xp.tensordot(x, y, axes=((n,), (m,)))


def kronecker(*arrays: Array) -> Array:
    """The Kronecker product of arrays of one order, from left to right.

    Raises
    ------
    NetworkError
        No array came, or their orders differ.

    Examples
    --------
    >>> import numpy as np
    >>> kronecker(np.array([[1.0, 2.0]]), np.array([[1.0], [10.0]]))
    array([[ 1.,  2.],
           [10., 20.]])
    """
    xp = _namespace(*arrays)
    _check_orders("a Kronecker product", arrays)

    def pair(a: Array, b: Array) -> Array:
        a_wide = xp.reshape(a, tuple(n for size in a.shape for n in (size, 1)))
        b_wide = xp.reshape(b, tuple(n for size in b.shape for n in (1, size)))
        shape = tuple(p * q for p, q in zip(a.shape, b.shape, strict=True))
        return xp.reshape(a_wide * b_wide, shape)

    return reduce(pair, arrays)


def outer(*arrays: Array) -> Array:
    """The outer product: the modes of all arrays, one after the other.

    Raises
    ------
    NetworkError
        No array came.

    Examples
    --------
    >>> import numpy as np
    >>> outer(np.ones(2), np.ones((3, 4)), np.ones(5)).shape
    (2, 3, 4, 5)
    """
    xp = _namespace(*arrays)
    return reduce(lambda a, b: xp.tensordot(a, b, axes=0), arrays)


def vec(x: Array) -> Array:
    """All entries as one vector, the first mode varying fastest.

    This is the column order of `unfold`: vec(x) stacks the columns of the mode-0 unfolding.

    Examples
    --------
    >>> import numpy as np
    >>> vec(np.array([[1.0, 3.0], [2.0, 4.0]]))
    array([1., 2., 3., 4.])
    """
    xp = _namespace(x)
    return xp.reshape(xp.permute_dims(x, tuple(reversed(range(x.ndim)))), (-1,))


def superdiagonal(*blocks: Array, shared: Iterable[int] = ()) -> Array:
    """The block tensor with the blocks along the superdiagonal of all modes but the shared ones.

    This is the paper's Definitions 1 and 2. Without shared modes every index of a block is shifted
    by the sizes of the blocks before it, and everything else is zero: the contraction nodes of a
    sum. Shared modes keep their size: the physical nodes of a sum. When all modes are shared the
    blocks fall onto each other and are added, as the arrays of lone nodes are.

    Parameters
    ----------
    *blocks : array
        Arrays of one order; they may differ in size along the modes that are not shared.
    shared : iterable of int
        The modes that all blocks have in common, counted from 0.

    Raises
    ------
    NetworkError
        No block came, or the blocks differ in order.
    ModeError
        A shared mode does not exist, or differs in size.

    Examples
    --------
    >>> import numpy as np
    >>> superdiagonal(np.array([[1.0, 2.0]]), np.array([[3.0]]))
    array([[1., 2., 0.],
           [0., 0., 3.]])
    >>> superdiagonal(np.array([[1.0, 2.0]]), np.array([[3.0]]), shared=[0])
    array([[1., 2., 3.]])
    """
    xp = _namespace(*blocks)
    _check_orders("a superdiagonal", blocks)
    if not isinstance(shared, Iterable):
        raise ModeError(f"shared must be a collection of modes; {shared!r} came.")
    common = frozenset(_checked_mode(blocks[0], mode) for mode in shared)
    for number, block in enumerate(blocks):
        for mode in common:
            if block.shape[mode] != blocks[0].shape[mode]:
                raise ModeError(
                    f"A shared mode must have one size: mode {mode} of block {number} has "
                    f"{block.shape[mode]}, of block 0 {blocks[0].shape[mode]}."
                )
    if len(common) == blocks[0].ndim:
        return as_array(reduce(operator.add, blocks)) if len(blocks) > 1 else copied(xp, blocks[0])
    return place_blocks(xp, blocks, common)


def _namespace(*arrays: Array) -> Namespace:
    if not arrays:
        raise NetworkError("At least one array must come; none did.")
    return common_namespace({f"array {k}": array for k, array in enumerate(arrays)})


def _checked_mode(x: Array, mode: int) -> int:
    return _mode_of_shape(x.shape, mode)


def _mode_of_shape(shape: Sequence[int], mode: int) -> int:
    order = len(shape)
    is_integer = hasattr(mode, "__index__") and not getattr(mode, "ndim", 0)
    if not is_integer or not -order <= operator.index(mode) < order:
        raise ModeError(
            f"mode must be an integer in 0 ... {order - 1} for shape {tuple(shape)}; {mode!r} came."
        )
    return operator.index(mode) % order


def _check_orders(what: str, arrays: Sequence[Array]) -> None:
    orders = [array.ndim for array in arrays]
    if len(set(orders)) > 1:
        raise NetworkError(f"The arrays of {what} must have one order; orders {orders} came.")
