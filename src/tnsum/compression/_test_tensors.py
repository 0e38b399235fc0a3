"""Random test tensors, and what the summands look like through them.

A sketch looks at every branch from outside: O_v[m], of shape (rank up, width), is all of summand m that
lies outside branch v, contracted with `width` random test tensors, the same for every m. Then T_v O_v,
summed over m, is what the *sum* looks like there: terms that cancel in the sum cancel in its sketch.

A test tensor is a network of the same tree. It comes in blocks of b, whose columns are mixed by a
random matrix of shape (n b, b) at every node: b = 1 would be products of vectors, whose tails grow
exponentially with the order; wide blocks are nearly Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tnsum._arrays import device_of
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group, moved
from tnsum.compression._products import pieces_of

BLOCK = 8


class TestTensors:
    """The test tensors of a sum, drawn from one seed as they are asked for."""

    def __init__(
        self, xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group], seed: Any
    ) -> None:
        self._xp, self._tree, self._groups = xp, tree, groups
        self._generator = np.random.default_rng(seed)
        self._has_siblings = below_siblings(tree)

    def outside(self, width: int, start: int = 0) -> list[list[Array]]:
        """O_v for each branch from number `start` on and each group, of shape (m, rank up, width)."""
        xp, tree, groups = self._xp, self._tree, self._groups
        tests = [self._drawn(v, width) for v in range(len(tree))]
        inside: list[list[Array]] = []
        for v, branch in enumerate(tree):
            below = [inside[c] for c in branch.children]
            seen = range(len(groups)) if self._has_siblings[v] else ()
            inside.append(
                [inside_of(xp, groups[g][v], [b[g] for b in below], tests[v]) for g in seen]
            )
        found: list[list[Array]] = [[] for _ in tree]
        for v in range(len(tree) - 1, -1, -1):
            children = tree[v].children
            if not children or max(children) < start:
                continue
            columns = []
            for g, group in enumerate(groups):
                above = found[v][g] if v < len(tree) - 1 else None
                siblings = [inside[c][g] if inside[c] else None for c in children]
                columns.append(outside_of(xp, group[v], above, siblings, tests[v]))
            for k, child in enumerate(children):
                # Only ratios matter: one power of two for all summands is left out.
                found[child] = rescaled_together(xp, [each[k] for each in columns])[0]
        return found

    def cancellation(self, outside: Sequence[Array]) -> float:
        """The norms of all summands in quadrature, relative to that of the sum.

        `outside` is O of leaf 0.
        """
        xp = self._xp
        tests = self._drawn(0, outside[0].shape[-1])
        seen = [
            xp.sum(inside_of(xp, group[0], [], tests) * columns, axis=1)
            for group, columns in zip(self._groups, outside, strict=True)
        ]
        total = float(xp.linalg.vector_norm(sum(xp.sum(part, axis=0) for part in seen)))
        alone = math.hypot(*(float(xp.linalg.vector_norm(part)) for part in seen))
        return alone / total if total > 0 else math.inf

    def _drawn(self, v: int, width: int) -> Array:
        array = self._groups[0][v]
        shape = shape_of_tests(self._tree, v, array.shape[-2], width)
        numbers = self._generator.standard_normal(shape) * scale_of_tests(shape)
        return self._xp.asarray(numbers, dtype=array.dtype, device=device_of(array))


def below_siblings(tree: Sequence[Branch]) -> list[bool]:
    """Which branches are looked at from inside: those with siblings, and all that is below them."""
    found = [len(tree[branch.parent].children) > 1 for branch in tree]
    found[-1] = False
    for v in range(len(tree) - 2, -1, -1):
        for child in tree[v].children:
            found[child] = found[child] or found[v]
    return found


def shape_of_tests(tree: Sequence[Branch], v: int, n: int, width: int) -> tuple[int, ...]:
    """Vectors of shape (n, width) at the leaves and the root, elsewhere (blocks, n b, b)."""
    is_inner = tree[v].children and v < len(tree) - 1
    return (width // BLOCK, n * BLOCK, BLOCK) if is_inner else (n, width)


def scale_of_tests(shape: Sequence[int]) -> float:
    """What numbers of variance one are multiplied by, so that mixing does not make columns larger."""
    return 1.0 if len(shape) == 2 else BLOCK**-0.5


def inside_of(xp: Namespace, array: Array, below: Sequence[Array], tests: Array) -> Array:
    """A branch through the test tensors, from what its children are: of shape (m, rank up, width)."""
    m, up = array.shape[0], array.shape[-1]
    if not below:
        flat = xp.reshape(xp.matrix_transpose(array), (m * up, -1))
        return xp.reshape(flat @ tests, (m, up, -1))
    first, width = below[0], below[0].shape[-1]
    rest = array.shape[2:]
    product = xp.matmul(xp.matrix_transpose(xp.reshape(array, (m, array.shape[1], -1))), first)
    product = _contracted(xp, xp.reshape(product, (m, *rest, width)), below[1:])
    return _mixed(xp, moved(xp, product, 1, 2), tests)


def outside_of(
    xp: Namespace, array: Array, above: Array | None, below: Sequence[Array | None], tests: Array
) -> list[Array]:
    """O_c for each child c of a node, from O of the node itself and from its other children.

    Above the root there is nothing. Where a node has one child, nothing need be known from below.
    """
    if above is None:
        return _outside_of_root(xp, array[..., 0], below, tests)
    per_summand = math.prod(array.shape[1:-1]) * above.shape[-1]
    found: list[list[Array]] = [[] for _ in below]
    for piece in pieces_of(array, per_summand):
        part = array[piece, ...]
        if len(below) == 1:
            found[0].append(_times_and_mixed(xp, part, above[piece, ...], tests))
            continue
        product = xp.matmul(
            xp.reshape(part, (part.shape[0], -1, part.shape[-1])), above[piece, ...]
        )
        product = xp.reshape(product, (*part.shape[:-1], -1))
        others = [None if b is None else b[piece, ...] for b in below]
        for k in range(len(below)):
            found[k].append(_mixed(xp, _without(xp, product, others, k), tests))
    return [f[0] if len(f) == 1 else xp.concat(f, axis=0) for f in found]


def _outside_of_root(
    xp: Namespace, array: Array, below: Sequence[Array | None], tests: Array
) -> list[Array]:
    """The same for the root, whose physical indices meet vectors."""
    if array.shape[-1] > 1 or len(below) == 1:
        flat = xp.reshape(array, (-1, array.shape[-1])) @ tests
        product = xp.reshape(flat, (*array.shape[:-1], tests.shape[-1]))
        return [_without(xp, product, below, k) for k in range(len(below))]
    found = []
    array = array[..., 0]
    for k in range(len(below)):
        # One of the others by a matrix product, the rest entry by entry.
        other = len(below) - 1 if k < len(below) - 1 else k - 1
        last = moved(xp, array, other + 1, array.ndim - 1)
        shape = last.shape
        product = xp.matmul(xp.reshape(last, (shape[0], -1, shape[-1])), below[other])
        product = xp.reshape(product, (*shape[:-1], -1)) * tests
        rest = [b for i, b in enumerate(below) if i != other]
        found.append(_without(xp, product, rest, k - (other < k)))
    return found


def _times_and_mixed(xp: Namespace, array: Array, above: Array, tests: Array) -> Array:
    """(m, rank, n, rank up) times (m, rank up, width), then mixed: one block of columns after another,
    so that nothing large is moved.
    """
    m, rank, _, up = array.shape
    above = xp.permute_dims(xp.reshape(above, (m, up, -1, BLOCK)), (2, 0, 1, 3))
    product = xp.matmul(xp.reshape(array, (1, m, -1, up)), above)
    product = xp.reshape(product, (above.shape[0], m * rank, -1))
    mixed = xp.permute_dims(xp.matmul(product, tests), (1, 0, 2))
    return xp.reshape(mixed, (m, rank, -1))


def _mixed(xp: Namespace, array: Array, tests: Array) -> Array:
    """(m, rank, n, width) with n and the columns of each block mixed: (m, rank, width)."""
    m, rank, n, width = array.shape
    blocks = width // BLOCK
    array = xp.reshape(array, (m * rank, n, blocks, BLOCK))
    array = xp.reshape(xp.permute_dims(array, (2, 0, 1, 3)), (blocks, m * rank, n * BLOCK))
    mixed = xp.permute_dims(xp.matmul(array, tests), (1, 0, 2))
    return xp.reshape(mixed, (m, rank, width))


def _contracted(xp: Namespace, array: Array, below: Sequence[Array]) -> Array:
    """(m, ranks, ..., width) with each rank contracted, column by column: (m, ..., width)."""
    for sketch in below:
        m, rank, width = sketch.shape
        shape = (m, rank, *(1,) * (array.ndim - 3), width)
        array = xp.sum(array * xp.reshape(sketch, shape), axis=1)
    return array


def _without(xp: Namespace, array: Array, below: Sequence[Array | None], kept: int) -> Array:
    """(m, ranks down, ..., width) with all ranks but one contracted: (m, that rank, ..., width)."""
    array = moved(xp, array, kept + 1, len(below))
    return _contracted(xp, array, [b for k, b in enumerate(below) if k != kept])
