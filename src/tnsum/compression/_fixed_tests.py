"""The test tensors of an accumulator: fixed by a seed, the same on every machine and for all time.

Sums that were accumulated apart can be added only if they were looked at through the same test
tensors, and a file may be read by another version of NumPy than wrote it. So the numbers are made of
PCG64's stream of integers, which NumPy promises not to change, by exact arithmetic: signs, and uniform
numbers. Each node has a stream of its own, so no number depends on an order of drawing.

There are two families. Below every contraction mode lie *narrow* test tensors, of a width somewhat
larger than the ranks wanted. They are nested: those of branch v are a matrix D_v with a row for each
combination of test tensors of v's children and physical indices of v; where there are no more rows
than the width, D_v is the identity, and nothing is lost. Above every mode lie *wide* ones, mixed (see
`_test_tensors`), of which the last are kept apart: nothing but the error is found from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tnsum._arrays import device_of
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch
from tnsum.compression._test_tensors import below_siblings, in_blocks, tests_from, uniform

# Columns of the wide family that are kept apart, to find the error.
APART = 32


@dataclass(frozen=True)
class Widths:
    """How many test tensors there are, and how many rows they have.

    Attributes
    ----------
    narrow : tuple of int
        The width of D_v for each branch but the root.
    rows : tuple of int
        The rows of D_v; for the root, as many as it would have.
    wide : int
        The columns above each mode, those kept apart included.
    """

    narrow: tuple[int, ...]
    rows: tuple[int, ...]
    wide: int

    @property
    def n_sums(self) -> list[int]:
        """The numbers in what is seen through them at each node: Psi and Omega (see `_two_sided`)."""
        pairs = zip(self.rows, self.narrow, strict=False)
        return [(rows + narrow) * self.wide for rows, narrow in pairs] + [self.rows[-1]]


def widths_for(tree: Sequence[Branch], sizes: Sequence[int], max_rank: int) -> Widths:
    """The widths that ranks up to `max_rank` need; `sizes` are the physical indices of each node.

    Measured: wider ones gain little. With these the error is mostly within 1.3 times what is best with
    such ranks, twice where decay is slowest, on chains to order 50, binary trees and Tucker networks.
    """
    most = [rank + (rank + 1) // 2 + 8 for rank in _largest_ranks(tree, sizes, max_rank)]
    narrow: list[int] = []
    rows: list[int] = []
    for v, branch in enumerate(tree):
        rows.append(sizes[v] * math.prod(narrow[c] for c in branch.children))
        narrow.append(min(rows[v], most[v]))
    # Two and a half times as many, in whole blocks.
    wide = in_blocks(5 * max(most) / 2) + APART
    return Widths(tuple(narrow[:-1]), tuple(rows), wide)


def _largest_ranks(tree: Sequence[Branch], sizes: Sequence[int], max_rank: int) -> list[int]:
    """The ranks up that are possible: as many as there are indices below or above, if those are few."""
    below: list[int] = []
    for branch, size in zip(tree, sizes, strict=True):
        below.append(min(max_rank, size * math.prod(below[c] for c in branch.children)))
    above = [1] * len(tree)
    for v in range(len(tree) - 1, -1, -1):
        outside = above[v] * sizes[v] * math.prod(below[c] for c in tree[v].children)
        for child in tree[v].children:
            above[child] = min(max_rank, outside // below[child])
    return [min(pair) for pair in zip(below, above, strict=True)]


@dataclass(frozen=True)
class FixedTests:
    """The test tensors of both families.

    Attributes
    ----------
    below : list of array or None
        D_v, of shape (rows, narrow width), for each branch but the root; None is the identity.
    above : list of array or None
        For each node, as `tests_from` makes them; None where nothing looks.
    """

    below: list[Array | None]
    above: list[Array | None]


def fixed_tests(
    xp: Namespace,
    tree: Sequence[Branch],
    sizes: Sequence[int],
    widths: Widths,
    seed: int,
    like: Array,
) -> FixedTests:
    """The test tensors of a seed, in the library, dtype and on the device of an array."""
    is_seen = below_siblings(tree)
    below: list[Array | None] = []
    above: list[Array | None] = []
    for v, width in enumerate(widths.narrow):
        shape: tuple[int, ...] = (widths.rows[v], width)
        is_all = widths.rows[v] == width
        numbers = None if is_all else uniform(_stream((seed, 0, v)), shape) / math.sqrt(width)
        below.append(None if numbers is None else _like(xp, numbers, like))
    for v, branch in enumerate(tree):
        is_used = branch.children or is_seen[v]
        if not is_used:
            above.append(None)
            continue
        tests = tests_from(_stream((seed, 1, v)), tree, v, sizes[v], widths.wide)
        above.append(_like(xp, tests, like))
    return FixedTests(below, above)


def _stream(seed: tuple[int, ...]) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(seed))


def _like(xp: Namespace, numbers: np.ndarray[Any, Any], like: Array) -> Array:
    return xp.asarray(numbers, dtype=like.dtype, device=device_of(like))
