"""A sum as it is fitted, and back.

Fitting need not know of every topology. A contraction mode that one node holds alone is summed over
before anything else, a mode that a node holds twice matters only where both indices are equal, and the
components of a disconnected network are joined. What is left has *distinct* modes: no node holds one
twice, and each contraction mode is held by several nodes. The fitted network is brought back: modes held
twice get a diagonal, modes held alone rank one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tnsum import _arrays
from tnsum._products import simplified, transposed
from tnsum._scale import rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.compression._balance import balanced_networks
from tnsum.compression._pairs import inner_products, length_by_pairs, work_of_pairs
from tnsum.compression._rounding import sizes_of, summed
from tnsum.contraction import STACK
from tnsum.errors import NetworkError
from tnsum.measures import length_of
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import Group, balanced, cores, work_of_cores
from tnsum.summation import NetworkSum
from tnsum.topology import Topology


@dataclass(frozen=True)
class Target:
    """A sum to be fitted.

    Attributes
    ----------
    topology : Topology
        Of distinct modes. A node holds first the physical modes that others hold too, then
        contraction modes, then its own physical modes.
    groups : list of Group
        The summands, with the largest entry of every node near one.
    originals : list of Group
        The summands as they came, but for the scale: those of bad gauges are brought into balance.
    exponent : float
        The power of two that was taken out of all of them.
    norm, norm_exponent : float
        The norm, and the power of two that it is to be multiplied by.
    log2_norms : list of NumPy arrays
        The log2 of |w_m| |X_m| for each summand of each group.
    log2_terms, log2_original_terms : float
        The log2 of the sum of the largest terms of all summands (`_rounding`), as they are fitted and as
        they came.
    """

    topology: Topology
    groups: list[Group]
    originals: list[Group]
    exponent: float
    norm: float
    norm_exponent: float
    log2_norms: list[Any]
    log2_terms: float
    log2_original_terms: float

    @property
    def cancellation(self) -> float:
        """The norms of all summands together, relative to that of the sum."""
        return self.relative(summed(self.log2_norms))

    @property
    def terms(self) -> float:
        """The largest terms of all summands together as they are fitted, relative to the sum."""
        return self.relative(self.log2_terms)

    @property
    def original_terms(self) -> float:
        """The largest terms of all summands together as they came, relative to the sum."""
        return self.relative(self.log2_original_terms)

    def relative(self, log2: float) -> float:
        """What has this log2, relative to the norm of the sum."""
        if self.norm == 0:
            return math.inf
        return math.exp2(min(log2 - math.log2(self.norm) - self.norm_exponent, 1000.0))


def target_of(xp: Namespace, s: NetworkSum) -> Target:
    """The sum as it is fitted. No gradient flows through a fit."""
    groups = s._grouped(s.dtype)
    held = [array for stack, weights in groups for array in (*stack.arrays.values(), weights)]
    if not all(bool(xp.all(xp.isfinite(array))) for array in held):
        raise NetworkError("The entries and weights of all summands must be finite; some are not.")
    topology = s.topology.joined
    distinct = _distinct(topology)
    groups, exponent = balanced(
        xp, [(_constant(xp, g), _arrays.constant(xp, w)) for g, w in groups]
    )
    weights, whole = rescaled_together(xp, [weights for _, weights in groups])
    originals, sizes = [], []
    for (stack, _), own in zip(groups, weights, strict=True):
        originals.append((_distinct_stack(xp, stack, topology, distinct), own))
        sizes.append(sizes_of(xp, originals[-1], _moduli(xp, stack, topology, distinct)))
    calm, calm_sizes = originals, sizes
    if any(np.any(each.terms > each.norms + _BAD) for each in sizes):
        calm = [(balanced_networks(xp, stack), own) for stack, own in originals]
        calm_sizes = [sizes_of(xp, group) for group in calm]
    if work_of_cores(distinct, [calm]) <= QUICK:
        norm, taken = orthogonal_length(xp, distinct, calm)
    else:
        norm, taken = map(float, length_of(sum_of(distinct, calm)))
    return Target(
        distinct,
        calm,
        originals,
        float(exponent) + whole,
        norm,
        taken,
        [each.norms for each in calm_sizes],
        *(summed([each.terms for each in some]) for some in (calm_sizes, sizes)),
    )


# Summands are brought into balance where the log2 of the terms exceeds that of their norm by more.
_BAD = 10.0


def looped_length(s: NetworkSum, most: int) -> tuple[Array, Array] | None:
    """The norm of a sum from inner products, in their best order, and a power of two beside it.

    None where that takes more multiplications than `most`, or where too many digits cancel.
    """
    xp, topology = s.namespace, s.topology.joined
    distinct = _distinct(topology)
    groups, exponent = balanced(xp, s._grouped(s.dtype))
    weights, taken = rescaled_together(xp, [own for _, own in groups])
    groups = [
        (_distinct_stack(xp, stack, topology, distinct), own)
        for (stack, _), own in zip(groups, weights, strict=True)
    ]
    if work_of_pairs(distinct, groups) > most:
        return None
    found = length_by_pairs(xp, groups)
    if found is None:
        return None
    like = groups[0][1]
    dtype = _arrays.real_dtype(xp, like.dtype)
    length = xp.asarray(found[0], dtype=dtype, device=_arrays.device_of(like))
    return length, exponent + taken + found[1]


def _constant(xp: Namespace, stack: NetworkStack) -> NetworkStack:
    arrays = {name: _arrays.constant(xp, array) for name, array in stack.arrays.items()}
    return NetworkStack._unchecked(stack.topology, arrays)


def _moduli(
    xp: Namespace, stack: NetworkStack, topology: Topology, distinct: Topology
) -> Mapping[str, Array] | None:
    """The nodes with what is summed inside them taken by its absolute value; None if nothing is."""
    if all(len(distinct.nodes[name]) == len(held) for name, held in topology.nodes.items()):
        return None
    arrays = {name: xp.abs(array) for name, array in stack.arrays.items()}
    moduli = NetworkStack._unchecked(stack.topology, arrays)
    return _distinct_stack(xp, moduli, topology, distinct).arrays


# So many multiplications are quick: orthogonalising is preferred to all else.
QUICK = 2**33


def orthogonal_length(
    xp: Namespace, topology: Topology, groups: Sequence[Group]
) -> tuple[float, float]:
    """The norm of a sum by orthogonalising it, and a power of two beside it.

    `length_of` would compare the work of other ways, which takes longer than a small sum.
    """
    ((core, exponent),) = cores(xp, topology, [groups])
    return float(xp.linalg.vector_norm(core)), float(exponent)


def sum_of(topology: Topology, groups: Sequence[Group]) -> NetworkSum:
    """The lazy sum of groups of summands."""
    stacks, weights = zip(*groups, strict=True)
    return NetworkSum._unchecked(topology, stacks, weights)


def _distinct(topology: Topology) -> Topology:
    physical = set(topology.physical_modes)
    several = {mode for mode in topology.modes if len(set(topology.holders(mode))) > 1}
    nodes = {}
    for name, held in topology.nodes.items():
        modes = [m for m in dict.fromkeys(held) if m in physical or m in several]
        nodes[name] = sorted(modes, key=lambda m: (m not in physical) + 2 * (m not in several))
    return Topology(nodes, topology.physical_modes)


def _distinct_stack(
    xp: Namespace, stack: NetworkStack, topology: Topology, distinct: Topology
) -> NetworkStack:
    arrays = {}
    for name, held in topology.nodes.items():
        array = stack.arrays[name]
        # Modes that join components come last, with rank one.
        array = xp.reshape(array, (*array.shape, *(1,) * (len(held) + 1 - array.ndim)))
        modes = (STACK, *distinct.nodes[name])
        arrays[name] = transposed(xp, simplified(xp, (array, (STACK, *held)), modes), modes)
    return NetworkStack._unchecked(distinct, arrays)


def log2_norms(xp: Namespace, stack: NetworkStack, weights: Array) -> Any:
    """The log2 of |w_m| |X_m| for each summand of a group, as a NumPy array."""
    squares, exponents = inner_products(xp, stack, stack)
    with np.errstate(divide="ignore"):
        return (np.log2(np.abs(squares)) + exponents) / 2 + log2_on_host(xp.abs(weights))


def log2_on_host(array: Array) -> Any:
    """The log2 of small arrays of real numbers, as a NumPy array; that of zero is -inf."""
    with np.errstate(divide="ignore"):
        return np.log2(np.asarray(_arrays.on_host(array), dtype=float))


def sizes_within(
    topology: Topology, shape: Sequence[int], ranks: Mapping[str, int]
) -> dict[str, int]:
    """The sizes of all modes: no rank larger than the other modes of a node that holds it allow."""
    sizes = dict(zip(topology.physical_modes, shape, strict=True))
    sizes.update({mode: ranks[mode] for mode in topology.contraction_modes})
    shrinking = True
    while shrinking:
        shrinking = False
        for mode in topology.contraction_modes:
            others = [
                math.prod(sizes[m] for m in topology.nodes[name] if m != mode)
                for name in topology.holders(mode)
            ]
            # A matrix between the two nodes can bring the rank down to that; among three it cannot.
            if len(others) == 2 and min(others) < sizes[mode]:
                sizes[mode], shrinking = min(others), True
    return sizes


def network_of(
    xp: Namespace, target: Target, arrays: Sequence[Array], topology: Topology
) -> Network:
    """The network of fitted nodes, in the joined topology of the sum."""
    pairs = zip(target.topology.nodes.items(), arrays, strict=True)
    return Network._unchecked(
        topology,
        {
            name: _with_all_modes(xp, array, modes, topology.nodes[name])
            for (name, modes), array in pairs
        },
    )


def _with_all_modes(
    xp: Namespace, array: Array, modes: Sequence[str], held: Sequence[str]
) -> Array:
    """A node with the modes that it holds twice or alone."""
    now: list[str | None] = list(modes)
    for k, mode in enumerate(held):
        if mode in modes and mode in held[:k]:
            axis = now.index(mode)
            unit = xp.eye(array.shape[axis], dtype=array.dtype, device=_arrays.device_of(array))
            array = xp.moveaxis(xp.moveaxis(array, axis, -1)[..., None] * unit, -2, axis)
            now.append(mode)
    axes = []
    for mode in held:
        if mode in modes:
            axes.append(now.index(mode))
            now[axes[-1]] = None
    sizes = iter(xp.permute_dims(array, tuple(axes)).shape)
    shape = tuple(next(sizes) if mode in modes else 1 for mode in held)
    return xp.reshape(xp.permute_dims(array, tuple(axes)), shape)
