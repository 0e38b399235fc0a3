"""inner, norm, distance of networks and sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tnsum import _arrays
from tnsum._typing import Array, Label, Namespace, Operand, Scalar
from tnsum.addition import add
from tnsum.contraction import STACK, evaluate_scaled, operands_of, piece_size, sliced
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import Group, Scaled, balanced, cores, plus, work_of_cores
from tnsum.paths import plan_for, zipped_path
from tnsum.summation import NetworkSum
from tnsum.topology import Topology


def norm(x: Network | NetworkSum) -> Scalar:
    """The Frobenius norm of the represented tensor.

    Accurate relative to the summands' norms times machine precision, also under cancellation;
    differentiable once. It overflows only if the norm itself does.

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
    length, exponent = _length(_as_sum(x))
    return _arrays.scalar(_arrays.unscaled(x.namespace, length, exponent))


def distance(x: Network | NetworkSum, y: Network | NetworkSum, relative: bool = False) -> Scalar:
    """The Frobenius norm of x - y; with `relative`, divided by that of y.

    It comes out of orthogonalising the difference, so that small distances are accurate.

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
    difference = add(_as_sum(x), _as_sum(y), weights=[1, -1])
    length, exponent = _length(difference)
    if relative:
        other, other_exponent = _length(_as_sum(y))
        length, exponent = length / other, exponent - other_exponent
    return _arrays.scalar(_arrays.unscaled(difference.namespace, length, exponent))


def inner(x: Network | NetworkSum, y: Network | NetworkSum) -> Scalar:
    """The inner product of two tensors; the first is conjugated.

    Either pair by pair of summands or, where that is less work (many summands of few physical
    indices), by orthogonalising both sums together, in time linear in the number of summands.

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
    first, second = _as_sum(x), _as_sum(y)
    both = add(first, second)
    groups = first.grouped(both.dtype), both.tail(len(first.terms)).grouped(both.dtype)
    xp, topology = both.namespace, both.topology
    if _pairwise_work(topology, *groups) <= work_of_cores(topology, groups):
        return _arrays.scalar(_pairwise(xp, topology, *groups))
    vectors = cores(xp, topology, groups[:1] if x is y else groups)
    (core, exponent), (other, other_exponent) = vectors[0], vectors[-1]
    found = xp.sum(_arrays.conj(xp, core) * other)
    return _arrays.scalar(_arrays.unscaled(xp, found, exponent + other_exponent))


def _length(x: NetworkSum) -> tuple[Array, Array]:
    """The norm as a number and a power of two."""
    ((core, exponent),) = cores(x.namespace, x.topology, [x.grouped(x.dtype)])
    return x.namespace.linalg.vector_norm(core), exponent


def _as_sum(x: Network | NetworkSum) -> NetworkSum:
    if isinstance(x, Network):
        return NetworkSum._unchecked(x.topology, [x], [1])
    if isinstance(x, NetworkSum):
        return x
    advice = " Say stack.sum() first." if isinstance(x, NetworkStack) else ""
    raise NetworkError(f"A Network or NetworkSum must come; {type(x).__name__} came.{advice}")


def _doubled(first: Group, second: Group) -> list[Operand]:
    """The closed network of <first|second>: physical modes joined, all others kept apart."""
    (stack, weights), (other, other_weights) = first, second
    xp, physical = stack.namespace, set(stack.physical_modes)
    ours = [*operands_of(stack), (weights, (STACK,))]
    theirs = [*operands_of(other), (other_weights, (STACK,))]
    ours = [(_arrays.conj(xp, array), modes) for array, modes in ours]
    theirs = [(a, tuple(m if m in physical else ("other", m) for m in ms)) for a, ms in theirs]
    return [*ours[:-1], *theirs[:-1], ours[-1], theirs[-1]]


def _pairwise(
    xp: Namespace, topology: Topology, first: Sequence[Group], second: Sequence[Group]
) -> Scalar:
    path = zipped_path(topology, 2, 2)
    other_stack: Label = ("other", STACK)
    total: Scaled | None = None
    first, taken = balanced(xp, first)
    second, other_taken = balanced(xp, second)
    for one in first:
        for two in second:
            operands = _doubled(one, two)
            n_one, n_two = len(one[0]), len(two[0])
            single = sliced(sliced(operands, STACK, slice(0, 1)), other_stack, slice(0, 1))
            n_pairs = max(1, piece_size(operands[0][0]) // plan_for(single, (), path)[0].largest)
            step_two = min(n_two, max(1, math.isqrt(n_pairs)))
            step_one = min(n_one, max(1, n_pairs // step_two))
            for a in range(0, n_one, step_one):
                part = sliced(operands, STACK, slice(a, a + step_one))
                for b in range(0, n_two, step_two):
                    piece = sliced(part, other_stack, slice(b, b + step_two))
                    total = plus(xp, total, evaluate_scaled(xp, piece, (), path))
    assert total is not None
    return _arrays.unscaled(xp, total[0], total[1] + taken + other_taken)


def _pairwise_work(topology: Topology, first: Sequence[Group], second: Sequence[Group]) -> int:
    path = zipped_path(topology, 2, 2)
    plans = (plan_for(_doubled(one, two), (), path)[0] for one in first for two in second)
    # Its many small products run at less than half the speed of few large ones.
    return 2 * sum(plan.n_multiplications for plan in plans)
