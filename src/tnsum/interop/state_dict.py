"""Networks as state dicts: plain dicts from names to arrays, as PyTorch's modules have them.

A network is trained by PyTorch as the parameters of a module, here one that holds a
`torch.nn.ParameterDict`:

    self.nodes = torch.nn.ParameterDict(to_state_dict(x))              # in __init__
    from_state_dict(dict(self.nodes), self.topology).contract()        # in forward

Gradients reach the parameters, and the module's own state dict holds the nodes as `nodes.A`,
`nodes.B`, ...: `from_state_dict(module.state_dict(), topology, prefix="nodes.")`. Parameters share the
memory of x, which training therefore overwrites; copy the arrays first if x is still needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from tnsum._typing import Array, NodeArrays
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.topology import Topology, listed


def to_state_dict(x: Network | NetworkStack, prefix: str = "") -> dict[str, Array]:
    """The arrays of a network or a stack, the same objects, each named `prefix` + the node's name.

    Not kept is the topology. The way back from a stack is `NetworkStack(x.topology, state)`, without a
    prefix.

    PyTorch's `ParameterDict` refuses names with a dot, the empty name, and names of its methods such
    as "keys"; `x.rename(nodes=...)` mends that. A plain state dict may have them.

    Raises
    ------
    NetworkError
        Something else than a network or a stack came, or the prefix is not a string.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.ones((2, 3)), np.ones((3, 4)))
    >>> state = to_state_dict(x, prefix="layer.")
    >>> list(state)
    ['layer.node0', 'layer.node1']
    >>> from_state_dict(state, x.topology, prefix="layer.").shape
    (2, 4)
    """
    if not isinstance(x, Network | NetworkStack):
        advice = " Say x.to_network() first." if type(x).__name__ == "NetworkSum" else ""
        raise NetworkError(
            f"to_state_dict takes a Network or a NetworkStack; {type(x).__name__} came.{advice}"
        )
    _check_prefix(prefix)
    return {prefix + name: array for name, array in x.arrays.items()}


def from_state_dict(state: NodeArrays, topology: Topology, prefix: str = "") -> Network:
    """The network of a topology whose nodes are the arrays named `prefix` + the node's name.

    Entries outside the prefix belong to others and are ignored; those inside must be the nodes, all
    of them and nothing else, as in PyTorch's `load_state_dict`. Without a prefix that means every
    entry. Nothing is copied.

    Parameters
    ----------
    state : Mapping[str, array]
    topology : Topology
    prefix : str
        With its dot, if there is one: "nodes.".

    Raises
    ------
    NetworkError
        The entries inside the prefix are not the nodes of the topology, an argument is of another
        type, or an array does not fit (as for Network).
    ModeError
        As for Network.
    """
    if not isinstance(state, Mapping):
        raise NetworkError(
            f"A state dict must be a mapping from names to arrays; {type(state).__name__} came. "
            f"Say dict(...) of a ParameterDict, module.state_dict() of a module."
        )
    if not isinstance(topology, Topology):
        raise NetworkError(
            f"topology must be a Topology, such as x.topology; {type(topology).__name__} came."
        )
    _check_prefix(prefix)
    inside = [key for key in state if str(key).startswith(prefix)]
    wanted = {prefix + name: name for name in topology.nodes}
    missing = [key for key in wanted if key not in state]
    if missing:
        raise NetworkError(
            f"A state dict must have an entry for every node; {listed(missing)} did not come. Those "
            f"that begin with {prefix!r} are {listed(inside)}."
        )
    unknown = [key for key in inside if key not in wanted]
    if unknown:
        raise NetworkError(
            f"Entries of a state dict that begin with {prefix!r} must be nodes of the topology; "
            f"{listed(unknown)} came too. Leave them out, or give the nodes a prefix of their own."
        )
    return Network.from_topology(topology, {name: state[key] for key, name in wanted.items()})


def _check_prefix(prefix: object) -> None:
    if not isinstance(prefix, str):
        raise NetworkError(f"prefix must be a string; {type(prefix).__name__} came.")
