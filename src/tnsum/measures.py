"""inner, norm, distance of networks and sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from typing import TypeAlias

from tnsum import _arrays, _scale
from tnsum._typing import Array, Label, Namespace, Operand, Scalar
from tnsum.addition import add, as_sum
from tnsum.contraction import (
    OTHER_STACK,
    STACK,
    evaluate_scaled,
    operands_of,
    piece_size,
    sliced,
)
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import Group, balanced_stack, cores, scaled_weights, work_of_cores
from tnsum.paths import Path, plan_for, zipped_path
from tnsum.summation import NetworkSum
from tnsum.topology import Topology


def norm(x: Network | NetworkSum) -> Scalar:
    """The Frobenius norm of the represented tensor.

    The sum is orthogonalised, so that the error is about machine precision times the summands' norms,
    also where they nearly cancel. It is differentiable once.

    It overflows only if the norm itself does, wherever in the range of the dtype entries and weights
    lie: each summand has a power of two of its own. What the dtype cannot hold is lost: a norm below its
    smallest normal number has fewer digits, a weight below its smallest number is zero (under JAX both
    are zero already below the smallest normal number), and so is what entries of one node are
    multiplied to that is smaller than others of the same summand by more than that range.

    Two shorter ways are taken where they save much work (not for JAX, nor where gradients flow). A long
    sum of trees is sketched first, as in `compress`, in time linear in the number of summands if the
    ranks of the sum are small. The inner products of all pairs of summands are added up, unless so much
    cancels that fewer than eleven digits would be right.

    Raises
    ------
    NetworkError
        `x` is not a network or a sum.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(2), np.diag([3.0, 4.0]))
    >>> norm(x)
    np.float64(5.0)
    """
    length, exponent = length_of(as_sum(x))
    return _arrays.scalar(_scale.unscaled(x.namespace, length, exponent))


def distance(x: Network | NetworkSum, y: Network | NetworkSum, relative: bool = False) -> Scalar:
    """The Frobenius norm of x - y; with `relative`, divided by that of y.

    It is the norm of the difference, so that small distances are accurate. Relative to a y of norm zero
    it is infinite.

    Raises
    ------
    NetworkError, ModeError, TopologyError
        The two cannot be subtracted (see `tnsum.add`).

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(2), np.eye(2))
    >>> y = x + 1e-10 * x
    >>> round(float(distance(x, y, relative=True)), 15)
    1e-10
    """
    difference = add(as_sum(x), as_sum(y), weights=[1, -1])
    length, exponent = length_of(difference)
    if relative:
        other, other_exponent = length_of(as_sum(y))
        length, exponent = length / other, exponent - other_exponent
    return _arrays.scalar(_scale.unscaled(difference.namespace, length, exponent))


def inner(x: Network | NetworkSum, y: Network | NetworkSum) -> Scalar:
    """The inner product of two tensors; the first is conjugated.

    Either pair by pair of summands or, where that is less work (many summands of few physical
    indices), by orthogonalising both sums together, in time linear in the number of summands. As of
    `norm`, the range of the dtype counts only for what comes and for the result.

    Raises
    ------
    NetworkError, ModeError, TopologyError
        The two cannot be matched (see `tnsum.add`).

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(2), 1j * np.eye(2))
    >>> inner(x, x + 2 * x)
    np.complex128(6+0j)
    """
    first, second = as_sum(x), as_sum(y)
    both = add(first, second)
    groups = first._grouped(both.dtype), both._tail(len(first._weighted_terms))._grouped(both.dtype)
    xp, topology = both.namespace, both.topology
    sums = groups[:1] if x is y else groups
    if _pairwise_work(topology, *groups) <= work_of_cores(topology, sums):
        pairs = [_balanced(xp, group) for group in groups]
        found, exponent = _pairwise(xp, topology, pairs[0], pairs[1])
        return _arrays.scalar(_scale.unscaled(xp, found, exponent))
    vectors = cores(xp, topology, sums)
    (core, exponent), (other, other_exponent) = vectors[0], vectors[-1]
    found = xp.sum(_arrays.conj(xp, core) * other)
    return _arrays.scalar(_scale.unscaled(xp, found, exponent + other_exponent))


def length_of(x: NetworkSum) -> tuple[Array, Array]:
    """The norm as a number and a power of two, which of zero is none."""
    length, exponent = _length_of(x)
    return length, x.namespace.where(length == 0, 0.0, exponent)


def _length_of(x: NetworkSum) -> _scale.Scaled:
    xp, topology, groups = x.namespace, x.topology, x._grouped(x.dtype)
    if x.n_summands > 1 and all(map(_arrays.can_decide, _held(groups))):
        work = work_of_cores(topology, [groups])
        if work > _DEAR and not topology.joined.is_tree:
            looped = _looped_length(x, work // _MUCH)
            if looped is not None:
                return looped
        by_pairs = _pairwise_work(topology, groups, groups)
        found = None
        is_long = x.n_summands >= _LONG and x.n_parameters * _SKETCH < min(work, by_pairs)
        if is_long and topology.joined.is_tree:
            found = _length_by_sketch(xp, x, groups)
        if found is None and _MUCH * by_pairs < work:
            found = _length_by_pairs(xp, topology, groups)
        if found is not None:
            return found
    ((core, exponent),) = cores(xp, topology, [groups])
    return xp.linalg.vector_norm(core), exponent


# Orthogonalising is preferred until it takes this many times the work of adding up pairs.
_MUCH = 2
# Where orthogonalising a sum with loops takes more, a better order of inner products is looked for.
_DEAR = 2**33
# Sketches are for sums of at least so many; about how many multiplications they take for each number.
_LONG, _SKETCH = 16, 2**11


def _held(groups: Sequence[Group]) -> list[Array]:
    return [array for stack, weights in groups for array in (*stack.arrays.values(), weights)]


def _length_by_sketch(
    xp: Namespace, x: NetworkSum, groups: Sequence[Group]
) -> _scale.Scaled | None:
    """The norm in bases found by a sketch, or None where these would be large or hold a NaN."""
    # Compression builds on this module.
    from tnsum.compression import sketched_length

    is_finite = all(bool(xp.all(xp.isfinite(array))) for array in _held(groups))
    found = sketched_length(x) if is_finite else None
    return None if found is None else (found[0], _scale.beside(xp, *found))


def _looped_length(x: NetworkSum, most: int) -> _scale.Scaled | None:
    """The norm of a sum with loops from its inner products, if that takes at most so much work."""
    # Compression builds on this module.
    from tnsum.compression import looped_length

    is_finite = all(
        bool(x.namespace.all(x.namespace.isfinite(a))) for a in _held(x._grouped(x.dtype))
    )
    return looped_length(x, most) if is_finite else None


def _length_by_pairs(
    xp: Namespace, topology: Topology, groups: Sequence[Group]
) -> _scale.Scaled | None:
    """The norm from the inner products of the summands, or None where too many digits cancel.

    The square has the rounding error of (sum of |w_m| |X_m|)^2.
    """
    weighed = _balanced(xp, groups)
    square, exponent = _pairwise(xp, topology, weighed, weighed)
    bound: _scale.Scaled | None = None
    for stack, weights, powers in weighed:
        operands = _doubled(stack, stack, {*stack.physical_modes, STACK})
        squares, own = evaluate_scaled(xp, operands, (STACK,), zipped_path(topology, 2, 0))
        lengths = xp.abs(weights) * xp.sqrt(xp.abs(squares))
        bound = _scale.plus(xp, bound, _scale.added(xp, lengths, powers + own / 2))
    assert bound is not None
    root = xp.sqrt(xp.abs(square))
    ratio = root / bound[0] if bound[0] > 0 else xp.zeros_like(bound[0])
    if not _scale.unscaled(xp, ratio, exponent / 2 - bound[1]) > _CANCELLED:
        return None
    return root, exponent / 2


# The part of its bound that a norm must have so that it has eleven good digits.
_CANCELLED = 1e-2


def _doubled(stack: NetworkStack, other: NetworkStack, shared: Set[Label]) -> list[Operand]:
    """The nodes of <stack|other>: the shared modes joined, all others kept apart."""
    xp = stack.namespace
    ours = [(_arrays.conj(xp, array), modes) for array, modes in operands_of(stack)]
    theirs = [
        (array, tuple(m if m in shared else ("other", m) for m in modes))
        for array, modes in operands_of(other)
    ]
    return [*ours, *theirs]


Weighed: TypeAlias = tuple[NetworkStack, Array, Array]
"""Balanced networks, their weights, and the power of two beside each."""


def _balanced(xp: Namespace, groups: Sequence[Group]) -> list[Weighed]:
    found = []
    for stack, weights in groups:
        balanced, exponents = balanced_stack(xp, stack)
        found.append((balanced, *scaled_weights(xp, weights, exponents)))
    return found


def _pair(
    stack: NetworkStack, weights: Array, other: NetworkStack, other_weights: Array
) -> list[Operand]:
    """The closed network of all inner products of two groups, weighted and summed."""
    nodes = _doubled(stack, other, set(stack.physical_modes))
    conjugated = _arrays.conj(stack.namespace, weights)
    return [*nodes, (conjugated, (STACK,)), (other_weights, (OTHER_STACK,))]


def _pairwise(
    xp: Namespace, topology: Topology, first: Sequence[Weighed], second: Sequence[Weighed]
) -> _scale.Scaled:
    """The inner product of two sums of balanced groups, pair by pair of their summands."""
    path = zipped_path(topology, 2, 2)
    total: _scale.Scaled | None = None
    for *one, powers in first:
        for *two, other_powers in second:
            operands = _pair(*one, *two)
            exponents = [(powers, (STACK,)), (other_powers, (OTHER_STACK,))]
            n_one, n_two = len(one[0]), len(two[0])
            for a, b in _parts_of_pairs(operands, n_one, n_two, path):
                piece, beside = (
                    sliced(sliced(some, STACK, a), OTHER_STACK, b) for some in (operands, exponents)
                )
                found = evaluate_scaled(xp, piece, (), path, beside)
                total = _scale.plus(xp, total, found)
    assert total is not None
    return total


def _parts_of_pairs(
    operands: Sequence[Operand], n_one: int, n_two: int, path: Path | None
) -> Iterator[tuple[slice, slice]]:
    """Where to cut all pairs of two stacks, so that what holds them stays small."""
    single = sliced(sliced(operands, STACK, slice(0, 1)), OTHER_STACK, slice(0, 1))
    n_pairs = max(1, piece_size(operands[0][0]) // plan_for(single, (), path)[0].largest)
    step_two = min(n_two, max(1, math.isqrt(n_pairs)))
    step_one = min(n_one, max(1, n_pairs // step_two))
    for a in range(0, n_one, step_one):
        for b in range(0, n_two, step_two):
            yield slice(a, a + step_one), slice(b, b + step_two)


def _pairwise_work(topology: Topology, first: Sequence[Group], second: Sequence[Group]) -> int:
    """About how many multiplications `_pairwise` makes, from some of the pairs if there are many."""
    path = zipped_path(topology, 2, 2)
    some, others = first[:8], second[:8]
    works = [plan_for(_pair(*one, *two), (), path)[0].work for one in some for two in others]
    # Its many small products run at about a quarter of the speed of few large ones.
    return 4 * sum(works) * len(first) * len(second) // len(works)
