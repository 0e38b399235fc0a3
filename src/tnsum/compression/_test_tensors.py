"""Random test tensors, and what the summands look like through them.

A sketch looks at every branch from outside: O_v[m], of shape (rank up, width), is all of summand m that
lies outside branch v, contracted with `width` random test tensors, the same for every m. Then T_v O_v,
summed over m, is what the *sum* looks like there: terms that cancel in the sum cancel in its sketch.

A test tensor is a network of the same tree. It comes in blocks of b = 8, whose columns are mixed at
every node, for each of its n physical indices by a random orthogonal matrix: then columns that are not
correlated stay so, and some of them can test what was found from others. From node to node the blocks
are shuffled like cards, so that all columns drawn at once are mixed. Products of vectors, which are
not, have tails that grow exponentially with the order; many columns are nearly Gaussian. What two
product states look like through all of them differs, after L nodes, by a factor whose logarithm has a
variance of about 2 L / width: so longer trees are looked at through more of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tnsum._arrays import device_of
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import are_kept, n_siblings
from tnsum.compression._branches import Branch, Group, moved
from tnsum.compression._products import pieces_of

# The columns of a block: mixing more of them at once costs more, and is no better.
BLOCK = 8


def in_blocks(width: float) -> int:
    """The next multiple of a block."""
    return BLOCK * math.ceil(width / BLOCK)


class TestTensors:
    """The test tensors of a sum, drawn from one seed as they are asked for."""

    def __init__(
        self,
        xp: Namespace,
        tree: Sequence[Branch],
        groups: Sequence[Group],
        seed: Any,
        all_branches: bool = False,
    ) -> None:
        self._xp, self._tree, self._groups = xp, tree, groups
        self._stream = np.random.PCG64(seed)
        self._has_siblings = below_siblings(tree)
        self._inside_taken: dict[int, float] = {}
        self._outside_taken: dict[int, float] = {}
        kept = are_kept(tree, groups[0])[:-1]
        self._is_wanted = [all_branches or not is_kept for is_kept in kept]

    def outside(self, width: int, start: int = 0) -> list[list[Array]]:
        """O_v for each branch from number `start` on and each group, of shape (m, rank up, width).

        Branches that are kept as they are have none, unless all are asked for. The width is a multiple
        of that of a block.
        """
        xp, tree, groups = self._xp, self._tree, self._groups
        tests = [self._drawn(v, width) for v in range(len(tree))]
        inside = self._inside(tests, self._has_siblings)
        found: list[list[Array]] = [[] for _ in tree]
        for v in range(len(tree) - 1, -1, -1):
            children = tree[v].children
            wanted = [k for k, c in enumerate(children) if c >= start and self._is_wanted[c]]
            if not wanted:
                continue
            columns = []
            for g, group in enumerate(groups):
                above = found[v][g] if v < len(tree) - 1 else None
                siblings = [inside[c][g] if inside[c] else None for c in children]
                columns.append(outside_of(xp, group[v], above, siblings, tests[v], wanted))
            for k, each in zip(wanted, zip(*columns, strict=True), strict=True):
                c = children[k]
                found[c] = self._in_scale(list(each), self._outside_taken, c, 1)
        return found

    def exponent_outside(self, v: int) -> float:
        """The log2 that was taken out of O_v in all."""
        total, u = 0.0, v
        while u != len(self._tree) - 1:
            parent = self._tree[u].parent
            total += self._outside_taken.get(u, 0.0)
            total += sum(self._exponent_inside(c) for c in self._tree[parent].children if c != u)
            u = parent
        return total

    def _exponent_inside(self, v: int) -> float:
        children = self._tree[v].children
        return self._inside_taken.get(v, 0.0) + sum(map(self._exponent_inside, children))

    def _inside(self, tests: Sequence[Array | None], is_seen: Sequence[bool]) -> list[list[Array]]:
        """Some branches of each group through the test tensors; the others are empty."""
        xp, groups = self._xp, self._groups
        found: list[list[Array]] = []
        for v, each in enumerate(tests):
            below = [found[c] for c in self._tree[v].children]
            columns: list[Array] = []
            if is_seen[v]:
                for g, group in enumerate(groups):
                    columns.append(inside_of(xp, group[v], [b[g] for b in below], each))
                columns = self._in_scale(columns, self._inside_taken, v, n_siblings(self._tree, v))
            found.append(columns)
        return found

    def _in_scale(
        self, columns: list[Array], taken: dict[int, float], v: int, n_factors: int
    ) -> list[Array]:
        """Columns of branch v near one: only ratios matter, so a power of two is left out.

        It is the same for all summands, and for all test tensors, whenever they were drawn.
        """
        if v not in taken:
            columns, taken[v] = rescaled_together(self._xp, columns, n_factors)
        elif taken[v]:
            columns = [each * 2.0 ** -taken[v] for each in columns]
        return columns

    def _drawn(self, v: int, width: int) -> Array:
        array = self._groups[0][v]
        tests = tests_from(self._stream, self._tree, v, array.shape[-2], width)
        return self._xp.asarray(tests, dtype=array.dtype, device=device_of(array))


def below_siblings(tree: Sequence[Branch]) -> list[bool]:
    """Which branches are looked at from inside: those with siblings, and all that is below them."""
    found = [len(tree[branch.parent].children) > 1 for branch in tree]
    found[-1] = False
    for v in range(len(tree) - 2, -1, -1):
        for child in tree[v].children:
            found[child] = found[child] or found[v]
    return found


def tests_from(
    stream: np.random.PCG64, tree: Sequence[Branch], v: int, n: int, width: int
) -> np.ndarray[Any, Any]:
    """What a node has of test tensors, from a stream of random integers.

    Vectors, of shape (n, width), at the leaves and the root; elsewhere matrices, of shape
    (blocks, n b, b): for each of the n a Hadamard matrix, its rows and columns with random signs.
    Vectors of signs would be orthogonal to others by chance, as to (1, 1); uniform numbers are not.
    """
    if not tree[v].children or v == len(tree) - 1:
        return uniform(stream, (n, width))
    n_octets = n * (width // BLOCK)
    of_rows, of_columns = np.reshape(_octets(stream, 2 * n_octets), (2, n_octets))
    signs = _WITH_ROWS[of_rows] * _OF_COLUMNS[of_columns]
    return np.reshape(signs / math.sqrt(BLOCK), (-1, n * BLOCK, BLOCK))


def uniform(stream: np.random.PCG64, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Uniform numbers of mean zero and variance one, none of them zero."""
    integers = stream.random_raw(math.prod(shape)) >> np.uint64(11)
    numbers = (integers.astype(np.float64) + 0.5) * 2.0**-53 - 0.5
    return np.reshape(numbers * math.sqrt(12), shape)


def _octets(stream: np.random.PCG64, n: int) -> np.ndarray[Any, Any]:
    """Random octets: those of the integers, the lowest one of each first."""
    return stream.random_raw(-(-n // 8)).astype("<u8").view(np.uint8)[:n]


# The signs that the bits of an octet stand for, the highest one first: minus where it is set.
_SIGNS = 1 - 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int8)
_PAIR = np.array([[1, 1], [1, -1]], dtype=np.int8)
_HADAMARD = np.kron(np.kron(_PAIR, _PAIR), _PAIR)
# For each octet, the signs of a Hadamard matrix with such rows, and those of such columns.
_WITH_ROWS = np.reshape(_SIGNS[:, :, None] * _HADAMARD, (256, -1))
_OF_COLUMNS = np.reshape(_SIGNS[:, None, :] * np.ones_like(_HADAMARD), (256, -1))


def inside_of(xp: Namespace, array: Array, below: Sequence[Array], tests: Array) -> Array:
    """A branch through the test tensors, from what its children are: of shape (m, rank up, width)."""
    m, n, up = array.shape[0], array.shape[-2], array.shape[-1]
    if not below:
        flat = xp.reshape(xp.permute_dims(array, (2, 0, 1)), (up * m, n))
        return _swapped(xp, xp.reshape(flat @ tests, (up, m, -1)))
    last = moved(xp, xp.reshape(array, (m, -1, n, up)), 1, 3)
    product = xp.matmul(xp.reshape(last, (m, n * up, -1)), _combined(xp, below))
    product = xp.reshape(product, (m, n, up, -1))
    return _mixed(xp, moved(xp, product, 1, 2), tests)


def outside_of(
    xp: Namespace,
    array: Array,
    above: Array | None,
    below: Sequence[Array | None],
    tests: Array,
    wanted: Sequence[int] | None = None,
) -> list[Array]:
    """O_c for each child c of a node, from O of the node itself and from its other children; with
    `wanted`, for these children only.

    Above the root there is nothing. Where a node has one child, nothing need be known from below.
    """
    width = tests.shape[-1] if above is None else above.shape[-1]
    per_summand = math.prod(array.shape[1:-1]) * width
    wanted = range(len(below)) if wanted is None else wanted
    found: list[list[Array]] = [[] for _ in wanted]
    for piece in pieces_of(array, per_summand):
        part = array[piece, ...]
        others = [None if b is None else b[piece, ...] for b in below]
        for k, its in zip(wanted, found, strict=True):
            siblings = [b for i, b in enumerate(others) if i != k and b is not None]
            if above is None:
                its.append(_outside_of_root(xp, part, siblings, tests, k))
            elif siblings:
                its.append(_beside(xp, part, siblings, above[piece, ...], tests, k))
            else:
                its.append(_times_and_mixed(xp, part, above[piece, ...], tests))
    return [f[0] if len(f) == 1 else xp.concat(f, axis=0) for f in found]


def _outside_of_root(
    xp: Namespace, array: Array, siblings: Sequence[Array], tests: Array, k: int
) -> Array:
    """O of the root's child number k: physical indices meet vectors."""
    first = moved(xp, array[..., 0], k + 1, 1)
    m, rank = first.shape[:2]
    if not siblings:
        flat = xp.reshape(first, (m * rank, -1)) @ tests
        return xp.reshape(flat, (m, rank, -1))
    around = _combined(xp, [*siblings, tests[None, ...]])
    return xp.matmul(xp.reshape(first, (m, rank, -1)), around)


def _beside(
    xp: Namespace,
    array: Array,
    siblings: Sequence[Array],
    above: Array,
    tests: Array,
    k: int,
) -> Array:
    """O of a node's child number k that has siblings."""
    first = moved(xp, array, k + 1, 1)
    # The child's rank, n, the siblings' ranks, the rank up.
    first = moved(xp, first, first.ndim - 2, 2)
    m, rank, n = first.shape[:3]
    around = _combined(xp, [*siblings, above])
    product = xp.matmul(xp.reshape(first, (m, rank * n, -1)), around)
    return _mixed(xp, xp.reshape(product, (m, rank, n, -1)), tests)


def _combined(xp: Namespace, columns: Sequence[Array]) -> Array:
    """(m, rank, width) of several, multiplied column by column: (m, product of the ranks, width)."""
    found = _swapped(xp, columns[0])
    for each in columns[1:]:
        product = found[:, None, :, :] * _swapped(xp, each)[None, :, :, :]
        found = xp.reshape(product, (-1, *product.shape[2:]))
    return _swapped(xp, found)


def _swapped(xp: Namespace, array: Array) -> Array:
    """(m, rank, width) as (rank, m, width), and back. The latter is how most lie in memory: products
    of columns go through all summands at once.
    """
    return xp.permute_dims(array, (1, 0, 2))


def _times_and_mixed(xp: Namespace, array: Array, above: Array, tests: Array) -> Array:
    """(m, rank, n, rank up) times (m, rank up, width), with n and the columns of each block mixed, and
    the blocks shuffled.

    The tests meet what is above first: then the longest sums are in the products of single summands,
    which are small, and nothing large is moved.
    """
    m, rank, n, up = array.shape
    blocks, _, block = tests.shape
    above = xp.permute_dims(xp.reshape(above, (m * up, blocks, block)), (1, 0, 2))
    spread = xp.permute_dims(xp.reshape(tests, (blocks, n, block, block)), (0, 2, 1, 3))
    seen = xp.matmul(above, xp.reshape(spread, (blocks, block, n * block)))
    turned = xp.reshape(xp.permute_dims(array, (0, 1, 3, 2)), (1, m, rank, up * n))
    product = xp.matmul(turned, xp.reshape(seen, (blocks, m, up * n, block)))
    return xp.reshape(xp.permute_dims(product, (1, 2, 3, 0)), (m, rank, -1))


def _mixed(xp: Namespace, array: Array, tests: Array) -> Array:
    """(m, rank, n, width) with n and the columns of each block mixed, and the blocks shuffled:
    (m, rank, width).
    """
    m, rank, n, width = array.shape
    blocks, rows, block = tests.shape
    array = xp.reshape(array, (m * rank, n, blocks, block))
    array = xp.reshape(xp.permute_dims(array, (2, 0, 1, 3)), (blocks, m * rank, rows))
    mixed = xp.reshape(xp.matmul(array, tests), (blocks, m, rank, block))
    return _swapped(xp, xp.reshape(xp.permute_dims(mixed, (2, 1, 3, 0)), (rank, m, width)))
