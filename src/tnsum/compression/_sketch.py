"""Orthonormal bases of the branches of a sum, by sketching: randomise, then orthogonalise.

Instead of T_v itself, as in `_bases`, its sketch Y_v = T_v O_v is orthogonalised, whose columns are a
few random combinations of all columns (see `_test_tensors`). The work is linear in the number of
summands, and the largest products are single ones. Some of the test tensors are kept apart: what Q_v
leaves of *their* Y_v estimates what it leaves of the sum. Where that is too much the sketch is widened,
at this node and all later ones. Directions that neither the sketch nor the tests need are left out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tnsum._arrays import conj, on_host
from tnsum._matrices import is_doubled, length, range_of
from tnsum._progress import Step, unseen
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import (
    FEW_ROWS,
    Basis,
    Orthogonal,
    factors_at,
    n_siblings,
    unit_vectors,
)
from tnsum.compression._branches import Branch, Group, longest_way
from tnsum.compression._products import Factor, squares_of, total_of
from tnsum.compression._test_tensors import TestTensors, in_blocks

# Test columns that no basis sees, and the fewest columns that are drawn at once, by the nodes along the
# longest way through a tree, up to a number of them.
_COLUMNS = {16: (16, 8), 64: (16, 32), 256: (32, 64), sys.maxsize: (32, 96)}
_SHORT = 64
_FIRST_WIDTH = 24
# The part of what may be lost, or of noise, that directions left out may take. Noise does not blur what
# is found in double precision of sums of single precision: less of it is left out.
_SPARE, _SPARE_OF_SINGLE = 0.3, 0.15
# How much wider than the rank a sketch must be to resolve all of its directions.
_SPARE_COLUMNS = 8
# What is lost of the sum to rounding, in units of machine precision times what is multiplied.
_NOISE = 6.0


def sketched_bases(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    enough: float,
    cap: int | None,
    precision: float,
    seed: Any,
    give_up: int | None = None,
    step: Step = unseen,
) -> Orthogonal | None:
    """The sum in bases that lose at most about `enough` of it at each branch, relative to its norm.

    With `cap`, no sketch is wider than ranks of that size need; without `enough`, it is at once. None if
    a sketch wider than `give_up` is needed.
    """
    longest = longest_way(tree)
    most = math.inf if cap is None else (2 if longest <= _SHORT else 4) * cap + 2 * _SPARE_COLUMNS
    n_tests, at_once = next(pair for limit, pair in _COLUMNS.items() if longest <= limit)
    tests = TestTensors(xp, tree, groups, seed)
    sketch = _Sketch(xp, tests, n_tests, at_once, enough, most, precision)
    step()
    bases: list[Basis] = []
    reduced: list[list[Array]] = []
    lost, exponent = 0.0, 0.0
    squares: list[list[Array]] = []
    for v in range(len(tree) - 1):
        factors = factors_at(xp, tree, groups, reduced, v)
        squares.append([factor.squares for factor in factors])
        if math.prod(factors[0].rows) <= FEW_ROWS:
            basis, columns = unit_vectors(factors)
        else:
            matrix, loss = sketch.basis(factors, v)
            if give_up is not None and sketch.width > give_up:
                return None
            lost += loss**2
            basis = Basis(matrix, factors[0].rows, matrix.shape[1])
            columns = [factor.projected(matrix) for factor in factors]
        columns, taken = rescaled_together(xp, columns, n_siblings(tree, v))
        bases.append(basis)
        reduced.append(columns)
        exponent += taken
        step()
    factors = factors_at(xp, tree, groups, reduced, len(tree) - 1)
    core = total_of([factor.total() for factor in factors])
    squares.append([factor.squares for factor in factors])
    about = _products(xp, tree, reduced, squares, sketch.outside_squares)
    return Orthogonal(bases, core, exponent, math.sqrt(lost), about, reduced)


def _products(
    xp: Namespace,
    tree: Sequence[Branch],
    reduced: Sequence[list[Array]],
    squares: Sequence[list[Array]],
    outside: Mapping[int, list[Array]],
) -> float:
    """What rounding is measured by (see `_norms`), in quadrature over the summands.

    Parameters
    ----------
    squares : sequence of list of array
        The squared norms of A_v and its R_c, multiplied, for each summand of each group.
    outside : mapping of list of array
        The squared norms of O_v where they were seen. Elsewhere the product of what O_v is made of
        stands for them, which is not less.
    """
    total = 0.0
    for g in range(len(squares[-1])):
        above = {len(tree) - 1: xp.ones_like(squares[-1][g])}
        for v in range(len(tree) - 1, -1, -1):
            product = squares[v][g] * above[v]
            total += float(xp.sum(product))
            for c in tree[v].children:
                if c in outside:
                    above[c] = outside[c][g]
                else:
                    own = squares_of(xp, reduced[c][g])
                    above[c] = product / xp.where(own > 0, own, xp.ones_like(own))
    return math.sqrt(total)


class _Sketch:
    """The sum through as many test tensors as were needed so far; the first ones are the tests.

    `outside_squares` are the squared norms of O_v for each summand, of each branch so far.
    """

    def __init__(
        self,
        xp: Namespace,
        tests: TestTensors,
        n_tests: int,
        at_once: int,
        enough: float,
        most: float,
        precision: float,
    ) -> None:
        self._xp, self._tests, self._n_tests, self._at_once = xp, tests, n_tests, at_once
        self._most = most
        self._wanted, self._precision = enough, precision
        self.outside_squares: dict[int, list[Array]] = {}
        # Where the dtype is the limit, spare columns are needed in any case.
        first = _FIRST_WIDTH + (_SPARE_COLUMNS if _NOISE * precision > enough > 0 else 0)
        width = most if enough == 0 and most < math.inf else min(most, first)
        self.width = in_blocks(max(width, at_once))
        self._outside = tests.outside(n_tests + self.width)
        self._noise = self._enough = self._spare = self._fall = 0.0
        self._cancellation = 1.0

    def basis(self, factors: Sequence[Factor], v: int) -> tuple[Array, float]:
        """An orthonormal basis of branch v, and what it loses of the sum, relative to its norm."""
        xp = self._xp
        n_columns = sum(factor.n_columns for factor in factors)
        enough_columns = min(math.prod(factors[0].rows), n_columns, self._most)
        seen = self._seen(factors, self._outside[v])
        self._measure_noise(factors, v, seen)
        tests, sketch = seen[:, : self._n_tests], seen[:, self._n_tests :]
        losses = {}
        while True:
            basis, loss, n_sure = _chosen(xp, sketch, tests, self._noise, self._spare)
            width = sketch.shape[1]
            # A sketch hardly wider than the rank resolves its last directions less than its dtype could.
            narrow = loss > self._wanted and width < n_sure + _SPARE_COLUMNS
            if width >= enough_columns or (loss <= self._enough and not narrow):
                return basis, loss
            losses[width] = loss
            lacking = self._lacking(losses) if loss > self._enough else _SPARE_COLUMNS
            further = self._tests.outside(in_blocks(max(lacking, self._at_once)), v)
            self.width += further[v][0].shape[-1]
            for u in range(v, len(further) - 1):
                pairs = zip(self._outside[u], further[u], strict=True)
                self._outside[u] = [xp.concat(pair, axis=2) for pair in pairs]
            sketch = xp.concat([sketch, self._seen(factors, further[v])], axis=1)

    def _measure_noise(self, factors: Sequence[Factor], v: int, seen: Array) -> None:
        """Measure how far products cancel: wider sketches do not resolve what is below rounding."""
        xp, width = self._xp, seen.shape[1]
        total = length(xp, seen) / math.sqrt(width)
        squares = [squares_of(xp, columns) / width for columns in self._outside[v]]
        self.outside_squares[v] = squares
        pairs = zip(factors, squares, strict=True)
        each = sum(float(xp.sum(factor.squares * outside)) for factor, outside in pairs)
        ratio = math.sqrt(each) / total if total > 0 else math.inf
        self._cancellation = max(self._cancellation, ratio)
        noise = self._precision * self._cancellation
        self._noise = max(self._wanted, _NOISE * noise)
        self._enough = self._noise if self._wanted or self._most == math.inf else 0.0
        of_noise = _SPARE_OF_SINGLE if is_doubled(self._xp, seen) else _SPARE
        self._spare = max(_SPARE * self._wanted, of_noise * _NOISE * noise)

    def _lacking(self, losses: Mapping[int, float]) -> float:
        """How many columns are lacking, from the losses at the widths tried: half as many as there are,
        or fewer if losses that go on falling as they last did would be enough sooner.
        """
        *_, (width, loss) = losses.items()
        if len(losses) > 1:
            (narrower, before), _ = list(losses.items())[-2:]
            self._fall = math.log(before / loss) / (width - narrower) if before > loss else 0.0
        if self._fall == 0 or self._enough == 0:
            return width / 2
        return min(width / 2, math.log(loss / self._enough) / self._fall)

    def _seen(self, factors: Sequence[Factor], outside: Sequence[Array]) -> Array:
        """Y_v: the columns of all summands through the test tensors, added."""
        return total_of([f.times(columns) for f, columns in zip(factors, outside, strict=True)])


def _chosen(
    xp: Namespace, sketch: Array, tests: Array, noise: float, spare: float
) -> tuple[Array, float, int]:
    """A basis of a sketch; what tests lose; and how many directions are more than noise.

    Directions are left out that neither the sketch nor the tests need: up to `spare` of their norms.
    """
    basis, values = range_of(xp, sketch)
    total = length(xp, tests)
    if total == 0:
        return basis[:, :1], 0.0, 1
    inside = conj(xp, basis.T) @ tests
    left = length(xp, tests - basis @ inside) / total
    of_sketch = _tails(values)
    of_tests = _tails(on_host(xp.linalg.vector_norm(inside, axis=1))) * math.sqrt(
        max(0, 1 - left**2)
    )
    tails = np.maximum(of_sketch, of_tests)
    n_kept = max(1, int(np.sum(tails > spare)))
    dropped = float(of_tests[n_kept]) if n_kept < len(of_tests) else 0.0
    return basis[:, :n_kept], math.hypot(left, dropped), int(np.sum(tails > noise))


def _tails(values: Array) -> Array:
    """The norm of the values from each on, relative to that of all."""
    tails = np.sqrt(np.cumsum(np.asarray(values, dtype=float)[::-1] ** 2))[::-1]
    return tails / tails[0] if tails[0] > 0 else tails
