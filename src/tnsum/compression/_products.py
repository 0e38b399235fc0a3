"""Products of a node of the sum with what its branches below have become.

If Q_c is an orthonormal basis of the branch below mode c of the sum, then R_c[m], of shape (rank, size
of the basis), holds the columns of summand m in it. With

    T_v[m] = A_v[m], each mode c down multiplied by R_c[m]       rows: sizes of the bases below, n
                                                                 columns: the rank up

the branch at v is T_v = [ T_v[1] | T_v[2] | ... ], side by side and without a zero. What is needed of it
are T_v itself, its product with a matrix that has rows for all these columns, and Q^H T_v. The last two
need no T_v: the largest product in them is one with the columns of all summands at once,

    sum over m, r1:  R_1[m, r1, q1] (A_v[m] ...)[m, r1, ...],

a single matrix product. Summands go through in pieces that stay in the cache. Where all of T_v does, it
is found once, with the columns of all summands as rows: then each product with it is a single one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from tnsum._arrays import conj, dtype_name, is_complex, is_on_host
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import moved
from tnsum.contraction import piece_size

# The working arrays of a piece are several, and used again at once: they are to be in the inner cache.
_PART_OF_A_PIECE = 4
# The bytes of T_v that stay in the cache, those of all groups of summands together.
_KEPT = 2**23
_BYTES = {"float32": 4, "float64": 8, "complex64": 8, "complex128": 16}


@dataclass(frozen=True)
class Factor:
    """The node v of summands of equal ranks: A_v, and R_c for each child c, all with axis m first.

    `n_groups` is how many such groups of summands there are.
    """

    xp: Namespace
    array: Array
    below: Sequence[Array]
    n_groups: int = 1

    @property
    def n_summands(self) -> int:
        """How many summands there are."""
        return int(self.array.shape[0])

    @property
    def rank(self) -> int:
        """The rank up."""
        return int(self.array.shape[-1])

    @property
    def n_columns(self) -> int:
        """The columns of all summands together."""
        return self.n_summands * self.rank

    @property
    def rows(self) -> tuple[int, ...]:
        """The sizes of the bases below, and n."""
        return (*(int(r.shape[-1]) for r in self.below), int(self.array.shape[-2]))

    def whole(self) -> Array:
        """T_v, of shape (m, rank, rows)."""
        xp = self.xp
        array = absorbed(xp, self.array, self.below, 0)
        return xp.matrix_transpose(xp.reshape(array, (self.n_summands, -1, self.rank)))

    def times(self, columns: Array) -> Array:
        """T_v times a matrix of shape (m, rank, width): summed over m, of shape (rows, width)."""
        xp, width = self.xp, columns.shape[-1]
        if not self.below:
            flat = xp.reshape(moved(xp, self.array, 1, 0), (self.array.shape[1], -1))
            return flat @ xp.reshape(columns, (-1, width))
        if self._turned is not None:
            found = self._turned.T @ xp.reshape(columns, (-1, width))
            return _with_second_first(xp, xp.reshape(found, (self.rows[-1], -1, width)))
        total = None
        for array, first, piece in self._pieces(width):
            found = summed(xp, first, xp.matmul(array, columns[piece, ...]))
            total = found if total is None else total + found
        return xp.reshape(total, (-1, width))

    @cached_property
    def squares(self) -> Array:
        """The squared norms of A_v and of each R_c, multiplied for each summand."""
        return reduce(operator.mul, [squares_of(self.xp, a) for a in (self.array, *self.below)])

    def projected(self, basis: Array) -> Array:
        """Basis^H T_v for a basis of shape (rows, size), as R_v: of shape (m, rank, size)."""
        xp, size = self.xp, basis.shape[-1]
        basis = conj(xp, basis)
        if not self.below:
            flat = xp.reshape(xp.matrix_transpose(self.array), (-1, self.array.shape[1]))
            return xp.reshape(flat @ basis, (self.n_summands, self.rank, size))
        if self._turned is not None:
            basis = _with_second_first(xp, xp.reshape(basis, (-1, self.rows[-1], size)))
            return xp.reshape(self._turned @ basis, (self.n_summands, self.rank, size))
        n_first = self.below[0].shape[-1]
        wide = xp.reshape(basis, (n_first, -1))
        found = []
        for array, first, _ in self._pieces(size):
            product = xp.reshape(first, (-1, n_first)) @ wide
            product = xp.reshape(product, (array.shape[0], array.shape[1], size))
            found.append(xp.matmul(xp.matrix_transpose(array), product))
        return found[0] if len(found) == 1 else xp.concat(found, axis=0)

    def total(self) -> Array:
        """The sum of T_v over m where the rank up is one: that is the root. Its shape is `rows`."""
        xp, n_below = self.xp, len(self.below)
        if not self.below:
            return xp.sum(self.array, axis=0)[..., 0]
        per_summand = self.array.shape[1] * math.prod(self.rows[1:])
        totals = []
        for piece in pieces_of(self.array, per_summand):
            array = self.array[piece, ...]
            # The last axis is multiplied, and what comes of it stays there: nothing large is moved.
            for k in range(n_below - 1, 0, -1):
                array = moved(xp, array, k + 1, array.ndim - 1)
                m, *shape, rank = array.shape
                product = xp.matmul(xp.reshape(array, (m, -1, rank)), self.below[k][piece, ...])
                array = xp.reshape(product, (m, *shape, -1))
            totals.append(summed(xp, self.below[0][piece, ...], array))
        first, *others, n = self.rows
        total = xp.reshape(total_of(totals), (first, n, *reversed(others)))
        return xp.permute_dims(total, (0, *range(n_below, 1, -1), 1))

    @cached_property
    def _turned(self) -> Array | None:
        """T_v with m and the rank as rows, and n before the sizes of the bases below: all that is
        multiplied on the way is the last axis. None if it is large.
        """
        xp, n_below = self.xp, len(self.below)
        # What arises on the way may be larger.
        sizes = [math.prod(self.array.shape)]
        for columns in self.below:
            sizes.append(sizes[-1] // columns.shape[1] * columns.shape[2])
        if max(sizes) * _BYTES[dtype_name(self.array.dtype)] > _KEPT // self.n_groups:
            return None
        array = xp.permute_dims(self.array, (0, *range(n_below + 2, 0, -1)))
        for k, columns in enumerate(self.below):
            *shape, rank = array.shape
            product = xp.matmul(xp.reshape(array, (shape[0], -1, rank)), columns)
            array = moved(xp, xp.reshape(product, (*shape, -1)), n_below + 2, k + 3)
        return xp.reshape(array, (self.n_columns, -1))

    def _pieces(self, width: int) -> Iterator[tuple[Array, Array, slice]]:
        """Some summands at a time: A_v with all children but the first absorbed, as
        (m, r1 and other rows, rank); the first one's R; and which summands they are.
        """
        xp = self.xp
        per_summand = self.array.shape[1] * math.prod(self.rows[1:]) * max(width, self.rank)
        for piece in pieces_of(self.array, per_summand):
            below = [r[piece, ...] for r in self.below]
            array = absorbed(xp, self.array[piece, ...], below, 1)
            yield xp.reshape(array, (array.shape[0], -1, self.rank)), below[0], piece


def squares_of(xp: Namespace, array: Array) -> Array:
    """The squared norm of an array at each index of its first axis, without copies."""
    if is_on_host(array) and array.flags.c_contiguous:
        # A few long products instead of many short ones.
        array = xp.reshape(array, (array.shape[0], -1))
    squares = xp.vecdot(array, array)
    squares = xp.real(squares) if is_complex(squares.dtype) else squares
    return xp.sum(squares, axis=tuple(range(1, squares.ndim))) if squares.ndim > 1 else squares


def pieces_of(array: Array, per_summand: int) -> Iterator[slice]:
    """Some summands at a time, such that their working array is a small piece."""
    n = array.shape[0]
    step = max(8, piece_size(array) // _PART_OF_A_PIECE // per_summand)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _with_second_first(xp: Namespace, array: Array) -> Array:
    """An array of three axes as a matrix: its second axis before the first, then the third."""
    return xp.reshape(xp.permute_dims(array, (1, 0, 2)), (-1, array.shape[2]))


def summed(xp: Namespace, first: Array, product: Array) -> Array:
    """The sum over m and r1 of (m, r1, q1) times (m, r1 and others, width): one matrix product."""
    m, rank, size = first.shape
    return xp.reshape(first, (m * rank, size)).T @ xp.reshape(product, (m * rank, -1))


def total_of(arrays: Sequence[Array]) -> Array:
    """The sum of arrays of one shape."""
    return reduce(operator.add, arrays)


def absorbed(xp: Namespace, array: Array, below: Sequence[Array | None], start: int) -> Array:
    """A_v with the children from number `start` on multiplied, but for None; axes as they were."""
    for k in range(len(below) - 1, start - 1, -1):
        matrix = below[k]
        if matrix is None:
            continue
        front = moved(xp, array, k + 1, 1)
        m, rank, *rest = front.shape
        product = xp.matmul(xp.matrix_transpose(matrix), xp.reshape(front, (m, rank, -1)))
        array = moved(xp, xp.reshape(product, (m, -1, *rest)), 1, k + 1)
    return array
