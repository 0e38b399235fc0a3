"""How far a network is from a sum, measured through random test tensors.

What rounding may do is known beforehand (`_norms`), but terms that cancel exactly, or that share their
rounding, do far less: a bound thousands of times too large is of no use. And what bases of a given size
lose is seen by few columns only roughly. So the difference between the sum and the network is measured
as one more summand, through test tensors that had no part in finding the network. With O_v all that lies
outside branch v through them, each column of

    sum over m of T_v[m] O_v[m]  -  T_v[network] O_v[network]

has the squared norm of the difference as the mean of its own. Multiplying by random numbers rounds anew,
independently of what was computed before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tnsum._arrays import device_of, on_host
from tnsum._matrices import in_double, length
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import Orthogonal
from tnsum.compression._branches import Branch, Group, longest_way
from tnsum.compression._products import Factor, total_of
from tnsum.compression._test_tensors import TestTensors

# The columns that rounding is measured through at once, again for each 16 nodes of the longest way; and
# those for what bases lose, and the fewest draws of them (or one for three nodes of that way) and the
# most.
_WIDTH, _COLUMNS, _FEWEST, _MOST = 64, 32, 8, 48
# What bases lose is reported with so many times its standard deviation, which is to be this part of it:
# of matrices, whose columns are independent, and of trees, whose draws have long tails.
_SIGMAS_OF_MATRIX, _SIGMAS, _PRECISE = 3.0, 5.0, 0.12


class _Difference:
    """The difference of a sum and a network, seen through new test tensors whenever it is asked for."""

    def __init__(
        self,
        xp: Namespace,
        tree: Sequence[Branch],
        groups: Sequence[Group],
        arrays: Sequence[Array],
        exponent: float,
        seed: int,
    ) -> None:
        # In the scale of the groups.
        scale = 2.0 ** (exponent / len(tree))
        network = [array[None, ...] * scale for array in arrays]
        self._xp, self._everything = xp, [*groups, network]
        self._tests = TestTensors(xp, tree, self._everything, (seed, _APART), all_branches=True)
        self._exponent = exponent

    def squares(self, width: int) -> Any:
        """The squared norms of some columns, in the scale of the network."""
        xp, outside = self._xp, self._tests.outside(width)[0]
        *seen, own = (
            Factor(xp, group[0], []).times(columns)
            for group, columns in zip(self._everything, outside, strict=True)
        )
        columns = in_double(xp, total_of(seen) - own)
        squares = np.asarray(on_host(xp.linalg.vector_norm(columns, axis=0)), dtype=float) ** 2
        return squares * 4.0 ** (self._tests.exponent_outside(0) - self._exponent)


# What makes the test tensors others than those that a sketch of the same seed draws.
_APART = 0x7E57


def residual(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    arrays: Sequence[Array],
    exponent: float,
    seed: int,
) -> float:
    """The distance of the arrays of a network to the sum, in the scale of the arrays, estimated."""
    if len(tree) == 1:
        total = total_of([Factor(xp, group[0], []).total() for group in groups])
        return length(xp, total - arrays[0][..., 0])
    difference = _Difference(xp, tree, groups, arrays, exponent, seed)
    # The largest of several draws: along long ways each may be several times too small.
    n_draws = math.ceil(longest_way(tree) / 16)
    return math.sqrt(max(float(np.mean(difference.squares(_WIDTH))) for _ in range(n_draws)))


def measured_loss(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal,
    dropped: float,
    seed: int,
) -> float:
    """The norm of what orthonormal bases do not hold of the sum, in the scale of the core.

    It is hardly ever larger, and known well enough beside what is dropped besides.
    """
    arrays = []
    for basis in found.bases:
        matrix = basis.matrix
        if matrix is None:
            device = device_of(found.core)
            matrix = xp.eye(basis.size, dtype=found.core.dtype, device=device)
        arrays.append(xp.reshape(matrix, (*basis.rows, basis.size)))
    arrays.append(found.core[..., None])
    difference = _Difference(xp, tree, groups, arrays, found.exponent, seed)
    # Columns that are drawn at once share a factor that varies with the length of a tree: their own
    # spread does not show it, that of several draws does. Two nodes share nothing.
    is_matrix = len(tree) == 2
    fewest = max(_FEWEST, longest_way(tree) // 3)
    means = [difference.squares(_COLUMNS) if is_matrix else np.mean(difference.squares(_COLUMNS))]
    while True:
        samples = np.ravel(means)
        if len(samples) >= fewest:
            mean = float(np.mean(samples))
            sigmas = _SIGMAS_OF_MATRIX if is_matrix else _SIGMAS
            more = sigmas * float(np.std(samples, ddof=1)) / math.sqrt(len(samples))
            # A few draws tell their spread but roughly.
            more *= 1 + 4 / len(samples)
            if more <= _PRECISE * (mean + dropped**2) or len(means) >= _MOST:
                return math.sqrt(mean + more)
        squares = difference.squares(_COLUMNS)
        means.append(squares if is_matrix else np.mean(squares))
