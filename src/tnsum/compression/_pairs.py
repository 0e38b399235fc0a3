"""Inner products of many networks with loops, and norms of their sums from them.

The inner products come from the insides of overlaps (`_environments`), each of which meets one node of
either network after the other. In that order the two-layered network of a grid takes a fifth of the time
that it takes when nodes meet their partners first. The square of the norm of a sum,

    | sum_m w_m X_m |^2 = sum_m |w_m X_m|^2 + 2 Re sum_m<n <w_m X_m|w_n X_n>,

takes each pair once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tnsum import _arrays
from tnsum._typing import Array, Namespace, Operand
from tnsum.compression._environments import Overlap, kets_of, pieces_of
from tnsum.compression._walks import tree_of, work_of_sweep
from tnsum.contraction import STACK
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import Group
from tnsum.topology import Topology


def inner_products(
    xp: Namespace, first: Network | NetworkStack, stack: NetworkStack
) -> tuple[Any, Any]:
    """<first|X_m> for each network of a stack, or each with its own, and the powers of two beside them.

    NumPy arrays: one number for each summand. The topology has distinct modes.
    """
    topology = stack.topology
    tree = tree_of(topology, tuple(stack.sizes.items()))
    is_stack = isinstance(first, NetworkStack)
    bras = [first.arrays[name] for name in topology.nodes]
    physical = set(topology.physical_modes)
    arrays = [stack.arrays[name] for name in topology.nodes]
    labels = [(STACK, *kets_of(held, physical)) for held in topology.nodes.values()]
    found, exponents = [], []
    for where in pieces_of(tree, arrays, len(stack)):
        kets: list[Operand] = [(a[where, ...], m) for a, m in zip(arrays, labels, strict=True)]
        own = [array[where, ...] for array in bras] if is_stack else bras
        ones = _ones(xp, kets[0][0])
        overlap = Overlap(xp, tree, own, kets, (ones, (STACK,)), is_stack)
        (numbers, _), exponent = overlap.whole()
        found.append(np.asarray(_arrays.on_host(numbers)))
        exponents.append(np.full(len(found[-1]), exponent))
    return np.concatenate(found), np.concatenate(exponents)


def _ones(xp: Namespace, like: Array) -> Array:
    return xp.ones((like.shape[0],), dtype=like.dtype, device=_arrays.device_of(like))


def _in_double(weights: Array) -> Any:
    hosted = np.asarray(_arrays.on_host(weights))
    return hosted.astype(np.result_type(hosted.dtype, np.float64))


def work_of_pairs(topology: Topology, groups: Sequence[Group]) -> int:
    """About how many multiplications the inner products of all pairs of summands take."""
    n = sum(len(stack) for stack, _ in groups)
    sizes = groups[0][0].sizes
    tree = tree_of(topology, tuple(sizes.items()))
    # A sweep of a network against the summands takes about four overlaps with each.
    return work_of_sweep(tree, sizes, groups) * (n + 1) // 8


def length_by_pairs(xp: Namespace, groups: Sequence[Group]) -> tuple[float, float] | None:
    """The norm of a sum and a power of two beside it, or None where too many digits cancel."""
    top, total, together = -math.inf, 0.0, 0.0
    for g, (stack, weights) in enumerate(groups):
        hosted = _in_double(weights)
        for m in range(len(stack)):
            own, weight = stack[m], np.conj(hosted[m])
            later = [
                (stack[m:], hosted[m:]),
                *((s, _in_double(w)) for s, w in groups[g + 1 :]),
            ]
            for k, (others, their_weights) in enumerate(later):
                numbers, exponents = inner_products(xp, own, others)
                terms = 2 * np.real(weight * numbers * their_weights)
                if k == 0:
                    terms[0] /= 2
                before, top = top, max(top, float(exponents.max()))
                scale = 2.0 ** (before - top)
                powers = np.exp2(exponents - top)
                total = total * scale + float(np.sum(terms * powers))
                alone = math.sqrt(abs(float(terms[0] * powers[0]))) if k == 0 else 0.0
                together = together * math.sqrt(scale) + alone
    if not total > (_CANCELLED * together) ** 2:
        return None
    return math.sqrt(total), top / 2


# The part of the summands' norms that a norm must have so that it has eleven good digits.
_CANCELLED = 1e-2
