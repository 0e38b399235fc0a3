"""How large the summands and their parts are: what the rounding error of their sum is measured by.

Multiplying the nodes of a summand X_m together, in any order, rounds each product to machine precision
times the norms of what is multiplied. With A_v the node v and B_c what hangs at each of its modes c, on
the side away from v, the rounding error of the whole sum is about machine precision times

    F = sum over m of |w_m| (sum over v of f_v[m]^2)^(1/2),      f_v = |A_v| * product over c of |B_c|.

F is at least the sum of |w_m| |X_m|. It is far larger where large entries of neighbouring nodes cancel
(a badly conditioned gauge): then the summands themselves are known no better. The norms of all B_c are
traces of Gram matrices, found on one way up the tree and one way down, for all summands at once.

Measured over 2000 sums of small trees, gauges of condition 1 to 1e12: the error of what is compressed
without a tolerance is at most 2.9 times F; in the median it is 0.65 times (gauges of condition 1) to
0.01 times. See chapter 3 of N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tnsum._arrays import conj, on_host
from tnsum._matrices import adjoint, in_double
from tnsum._scale import OF_ZERO, unscaled
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group, group_of, moved
from tnsum.compression._products import absorbed
from tnsum.network import NetworkStack


def log2_of_products(
    xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group], power: int, enough: float
) -> float:
    """The log2 of F; with a power of two, the summands' parts of it are added in quadrature.

    It may be larger, if it is at most `enough`: then the product of its nodes' norms stands for every
    f_v of a summand. None is left out: it may be the largest.
    """
    more = np.log2(len(tree)) / 2
    bound = _added([_log2_bounds(xp, group) for group in groups], power) + more
    # Of two nodes that hang at each other, the bound is exact.
    if bound <= enough or len(tree) <= 2:
        return float(bound)
    return _added([_log2_products(xp, tree, group) for group in groups], power)


def _added(logs: Sequence[Array], power: int) -> float:
    """The log2 of the root of powers added, from the log2 of each."""
    joined = np.concatenate(logs)
    top = float(np.max(joined))
    if not np.isfinite(top):
        return top
    return top + float(np.log2(np.sum(2.0 ** (power * (joined - top))))) / power


def _log2_bounds(xp: Namespace, group: Group) -> Array:
    """The log2 of the product of the norms of each summand's nodes."""
    return sum(_log2_squares(xp, array) for array in group) / 2


def _log2_squares(xp: Namespace, array: Array) -> Array:
    """The log2 of the squared norm of an array at each index of its first axis, on the host."""
    flat = xp.reshape(array, (array.shape[0], -1))
    return log2_on_host(xp.vecdot(flat, flat))


def log2_on_host(numbers: Array) -> Array:
    """The log2 of the sizes of some numbers, as a NumPy array; that of zero is -inf."""
    with np.errstate(divide="ignore"):
        return np.log2(np.abs(np.asarray(on_host(numbers))).astype(float))


def _log2_products(xp: Namespace, tree: Sequence[Branch], group: Group) -> Array:
    """The log2 of (sum over v of f_v^2)^(1/2) for each summand."""
    arrays = [in_double(xp, array) for array in group]
    own = [_log2_squares(xp, array) for array in arrays]
    # Gram matrices of the branches, transposed, and of what lies outside them; and log2 of their traces.
    inside: list[Array] = []
    outside: list[Array | None] = [None] * len(tree)
    of_inside: list[Array] = []
    of_outside: list[Array] = [np.zeros_like(own[-1])] * len(tree)
    for branch, array, log in zip(tree, arrays, own, strict=True):
        below = [of_inside[c] for c in branch.children]
        gram = _gram(xp, array, [inside[c] for c in branch.children])
        gram, trace = _of_trace_one(xp, gram)
        # What cancels below rounding is not known to be that small.
        of_inside.append(np.logaddexp2(trace + sum(below), log + sum(below) + _LOG2_PRECISION))
        inside.append(xp.matrix_transpose(gram))
    products = []
    for v in range(len(tree) - 1, -1, -1):
        children = tree[v].children
        around = own[v] + of_outside[v] + sum(of_inside[c] for c in children)
        products.append(around)
        gram_above = outside[v]
        above = arrays[v] if gram_above is None else _times(xp, arrays[v], gram_above)
        for k, child in enumerate(children):
            siblings = [None if c == child else inside[c] for c in children]
            other = absorbed(xp, above, siblings, 0)
            first, second = (_with_axis_first(xp, a, k + 1) for a in (arrays[v], other))
            gram = xp.matmul(conj(xp, first), xp.matrix_transpose(second))
            gram, trace = _of_trace_one(xp, gram)
            others = of_outside[v] + sum(of_inside[c] for c in children if c != child)
            outside[child] = xp.matrix_transpose(gram)
            of_outside[child] = np.logaddexp2(trace + others, own[v] + others + _LOG2_PRECISION)
    return np.logaddexp2.reduce(products, axis=0) / 2


_LOG2_PRECISION = -52.0


def _of_trace_one(xp: Namespace, gram: Array) -> tuple[Array, Array]:
    """Gram matrices divided by their traces, and the log2 of these, on the host."""
    trace = xp.abs(xp.linalg.trace(gram))
    usable = xp.where(trace > 0, trace, xp.ones_like(trace))
    return gram / usable[:, None, None], log2_on_host(trace)


def _times(xp: Namespace, array: Array, gram: Array) -> Array:
    """(m, ranks down, n, rank up) times a matrix for each m on the last axis."""
    m, up = array.shape[0], array.shape[-1]
    return xp.reshape(xp.matmul(xp.reshape(array, (m, -1, up)), gram), array.shape)


def _with_axis_first(xp: Namespace, array: Array, axis: int) -> Array:
    """For each m a matrix whose rows are the indices of one axis."""
    return xp.reshape(moved(xp, array, axis, 1), (array.shape[0], array.shape[axis], -1))


def _gram(xp: Namespace, array: Array, below: Sequence[Array]) -> Array:
    """The Gram matrices of a branch, (m, rank, rank), from those of its children, transposed."""
    m, up = array.shape[0], array.shape[-1]
    other = xp.reshape(absorbed(xp, array, below, 0), (m, -1, up))
    return xp.matmul(adjoint(xp, xp.reshape(array, (m, -1, up))), other)


def branches_near_one(
    xp: Namespace, tree: Sequence[Branch], stack: NetworkStack
) -> tuple[NetworkStack, Array]:
    """A stack of NumPy's, nodes near one, with every branch of each network near one too, and the log2
    that is taken out of each network: OF_ZERO of those that are zero.

    Else a network whose branches are large, and that is small only in the end, sets the scale on the
    way, and pushes others out of range.
    """
    n = len(stack)
    group = group_of(xp, tree, stack, np.ones(n))
    arrays: dict[str, Array] = {}
    grams: list[Array] = []
    exponents = np.zeros(n)
    largest = exponents
    for branch, each in zip(tree, group, strict=True):
        gram = _gram(xp, in_double(xp, each), [grams[c] for c in branch.children])
        largest = np.max(np.abs(gram), axis=(1, 2))
        taken = np.floor(np.log2(np.where(largest > 0, largest, 1.0)) / 2)
        held = stack.arrays[branch.name]
        arrays[branch.name] = unscaled(xp, held, np.reshape(-taken, (-1, *(1,) * (held.ndim - 1))))
        grams.append(xp.matrix_transpose(gram * 4.0 ** -taken[:, None, None]))
        exponents = exponents + taken
    nodes = {name: arrays[name] for name in stack.arrays}
    scaled = NetworkStack._unchecked(stack.topology, nodes)
    return scaled, np.where(largest > 0, exponents, OF_ZERO)
