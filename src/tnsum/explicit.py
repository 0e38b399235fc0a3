"""The explicit block arrays of a sum: the paper's Conjecture 1, zeros included."""

from __future__ import annotations

import math

from tnsum import _arrays
from tnsum._memory import check_memory
from tnsum._typing import Array, DType, Namespace
from tnsum._weights import weighted
from tnsum.errors import NetworkError
from tnsum.multilinear import superdiagonal
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed

_ADVICE = "Keep the sum lazy: only node and to_network build explicit blocks."


def block_node(s: NetworkSum, name: str) -> Array:
    """One node of a sum (see `NetworkSum.node`)."""
    topology = explicit_topology(s)
    if name not in topology.nodes:
        raise NetworkError(f"A node must be one of {listed(tuple(topology.nodes))}; {name!r} came.")
    n_entries = math.prod(_sizes(s, topology)[mode] for mode in topology.nodes[name])
    dtype = s.dtype
    check_memory(n_entries, dtype, f"Node {name!r} of the explicit sum", _ADVICE)
    return _blocks(s, name, topology, dtype)


def block_network(s: NetworkSum) -> Network:
    """All nodes of a sum as a network (see `NetworkSum.to_network`)."""
    topology = explicit_topology(s)
    sizes = _sizes(s, topology)
    n_entries = sum(math.prod(sizes[mode] for mode in held) for held in topology.nodes.values())
    dtype = s.dtype
    check_memory(n_entries, dtype, "The explicit sum", _ADVICE)
    arrays = {name: _blocks(s, name, topology, dtype) for name in topology.nodes}
    return Network._unchecked(topology, arrays)


def explicit_topology(s: NetworkSum) -> Topology:
    """The summands' topology, its components joined if there are blocks to be kept apart."""
    return s.topology if s.n_summands == 1 else s.topology.joined


def _sizes(s: NetworkSum, topology: Topology) -> dict[str, int]:
    joining = dict.fromkeys(topology.modes, s.n_summands)
    return {**joining, **dict(zip(s.physical_modes, s.shape, strict=True)), **s.ranks}


def _blocks(s: NetworkSum, name: str, topology: Topology, dtype: DType) -> Array:
    """The superdiagonal of the summands' arrays of one node; the first node carries the weights."""
    modes = topology.nodes[name]
    xp = s.namespace
    carries_weights = name == next(iter(topology.nodes))
    n_joining = len(modes) - len(s.topology.nodes[name])
    apart = [k for k, mode in enumerate(modes) if mode not in s.physical_modes]
    blocks: list[Array] = []
    for term, weight in s._weighted_terms:
        array = _arrays.astype(xp, term.arrays[name], dtype)
        if carries_weights:
            array = weighted(xp, array, weight)
        if n_joining:
            array = xp.reshape(array, (*array.shape, *(1,) * n_joining))
        if isinstance(term, NetworkStack) and len(apart) == 1:
            blocks.append(_side_by_side(xp, array, apart[0]))
        elif isinstance(term, NetworkStack):
            blocks += [array[m, ...] for m in range(len(term))]
        else:
            blocks.append(array)
    shared = [k for k in range(len(modes)) if k not in apart]
    return superdiagonal(*blocks, shared=shared)


def _side_by_side(xp: Namespace, arrays: Array, axis: int) -> Array:
    """The arrays of a stack, one after the other along an axis of theirs."""
    order = (*range(1, axis + 1), 0, *range(axis + 1, arrays.ndim))
    shape = [*arrays.shape[1:]]
    shape[axis] *= arrays.shape[0]
    return xp.reshape(xp.permute_dims(arrays, order), tuple(shape))
