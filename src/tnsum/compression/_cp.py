"""CP networks as sums of their components, and as Tucker networks.

A CP network is a sum of products of vectors, one product for each index of the mode that all its nodes
hold. So it is, exactly and without any arithmetic, a lazy sum of Tucker networks of rank one. The
superdiagonal core of its explicit Tucker network, nearly all zeros, is never built.
"""

from __future__ import annotations

from tnsum import _arrays
from tnsum._typing import Array, Namespace
from tnsum.addition import as_sum
from tnsum.errors import TopologyError
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import Group
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed


def cp_to_tucker(x: Network | NetworkSum) -> NetworkSum:
    """A CP network, or a sum of them, as the exact lazy sum of Tucker networks of rank one.

    There is one summand for each component. `compress` makes one small Tucker network of them, with a
    bound for its error; nothing is compressed here, and no superdiagonal core is built. Nodes and
    contraction modes have the names that `tnsum.tucker` gives them, physical modes keep theirs.

    Parameters
    ----------
    x : Network or NetworkSum
        Each node holds one physical mode and one contraction mode, which all nodes share, as in
        `tnsum.cp`.

    Raises
    ------
    NetworkError
        `x` is something else, or its order is larger than a core may have.
    TopologyError
        `x` is no CP network.

    Examples
    --------
    >>> import numpy as np
    >>> from tnsum import compress, cp
    >>> x = cp([np.ones((4, 2)), np.eye(4, 2), np.ones((4, 2))])
    >>> s = cp_to_tucker(x + x)
    >>> s
    NetworkSum of 4 networks of order 3, shape (4, 4, 4), float64, ranks r0=4, r1=4, r2=4
    >>> dict(compress(s).ranks)
    {'r0': 1, 'r1': 1, 'r2': 1}
    """
    s = as_sum(x)
    _check_cp(s.topology)
    xp, topology = s.namespace, _star(s.physical_modes)
    stacks, weights = [], []
    for group in s._grouped(s.dtype):
        stack, own = components(xp, *group)
        shape = (len(stack), *(1,) * s.order)
        arrays = {"core": xp.ones(shape, dtype=s.dtype, device=s.device)}
        for n, mode in enumerate(s.physical_modes):
            (name,) = s.topology.holders(mode)
            array = stack.arrays[name]
            arrays[f"factor{n}"] = xp.reshape(array, (len(stack), -1, 1))
        stacks.append(NetworkStack(topology, arrays))
        weights.append(own)
    return NetworkSum._unchecked(topology, stacks, weights)


def _check_cp(topology: Topology) -> None:
    modes = topology.physical_modes
    shared = topology.contraction_modes[:1]
    own = [tuple(m for m in held if m not in shared) for held in topology.nodes.values()]
    twos = all(len(held) == 2 for held in topology.nodes.values())
    if not shared or not twos or sorted(own) != sorted((mode,) for mode in modes):
        raise TopologyError(
            f"cp_to_tucker needs a CP network, each of whose nodes holds one physical mode and the one "
            f"contraction mode that all of them share, as tnsum.cp makes it; a network with nodes "
            f"{listed(tuple(topology.nodes))}, physical modes {listed(modes)} and contraction modes "
            f"{listed(topology.contraction_modes)} came."
        )


def _star(modes: tuple[str, ...]) -> Topology:
    """The topology of a Tucker network with these physical modes."""
    ranks = []
    for n in range(len(modes)):
        rank = f"r{n}"
        while rank in modes:
            rank += "_"
        ranks.append(rank)
    factors = {f"factor{n}": pair for n, pair in enumerate(zip(modes, ranks, strict=True))}
    return Topology({"core": tuple(ranks), **factors}, modes)


def components(xp: Namespace, stack: NetworkStack, weights: Array) -> Group:
    """A group of networks with one contraction mode, with each index of it as a summand of rank one."""
    (mode,) = stack.topology.contraction_modes
    arrays = {}
    for name, held in stack.topology.nodes.items():
        axis = held.index(mode) + 1
        array = xp.moveaxis(stack.arrays[name], axis, 1)
        array = xp.reshape(array, (-1, *array.shape[2:]))
        arrays[name] = xp.expand_dims(array, axis=axis)
    ones = xp.ones((1, stack.ranks[mode]), dtype=weights.dtype, device=_arrays.device_of(weights))
    repeated = xp.reshape(weights[:, None] * ones, (-1,))
    return NetworkStack._unchecked(stack.topology, arrays), repeated
