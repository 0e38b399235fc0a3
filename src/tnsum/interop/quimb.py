"""Networks from and to quimb, where tensors have named indices as nodes have modes.

A quimb network stands for 10**exponent times the product of its tensors, summed over every index that
is not one of its outer ones. An index is outer when a single axis in the whole network has it. That is
also what tnsum takes for physical unless it is told otherwise, so nearly all networks, with traces and
hyperedges too, are held by both in the same arrays. The exceptions are tnsum's alone: a mode that is
summed over though held once, and a physical mode held more than once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tnsum import _arrays
from tnsum._typing import Array, Modes
from tnsum.errors import ModeError, NetworkError
from tnsum.interop._imports import imported
from tnsum.interop._recognition import as_network, recognised
from tnsum.network import Network

_KINDS = "network", "mps", "mpo", "peps"

# How many powers of ten one node takes of a network's exponent: the first of these that is enough.
_DOUBLE_STEPS, _SINGLE_STEPS = (30, 60, 120, 240), (8, 16, 30)
# Scaled, a node's largest entry stays within these powers of ten, far enough from overflow to compute.
_DOUBLE_RANGE, _SINGLE_RANGE = 250, 30


def from_quimb(network: Any, physical_modes: Modes | None = None) -> Network:
    """The network of a quimb TensorNetwork of any kind, or of a single quimb Tensor.

    Indices become modes. A node is named by its tensor's first tag that no other tensor has (those of
    a MatrixProductState are `I0`, `I1`, ...), without such a tag `node{k}` by its place in the network
    (underscores are added to a name already taken).

    Parameters
    ----------
    network : quimb.tensor.TensorNetwork or quimb.tensor.Tensor
    physical_modes : Sequence[str], optional
        The axes of the represented tensor, in order; every other index is summed over. Without it,
        these are the outer indices: of a MatrixProductState, PEPS or other vector in the order of its
        sites, of an operator all upper ones before all lower ones, as in quimb's `to_dense`; otherwise
        in the order of `network.outer_inds()`.

    Notes
    -----
    Arrays are taken as they are, without a copy. An `exponent` other than zero is multiplied into as
    few nodes as keep every factor moderate (1e30, in single precision 1e8, if there are enough of
    them); only their arrays are new. Gradients flow through an exponent. Not kept: other tags,
    `left_inds`, the parameters of a PTensor, and what a class knows of its geometry.

    Raises
    ------
    NetworkError
        Something else came, the network has no tensor, its arrays are not such as Network takes, or
        its exponent is not finite or cannot be spread over the nodes without overflow.
    ModeError
        A physical mode is named twice, or no tensor has it.
    """
    qtn = imported("quimb.tensor", "from_quimb")
    if isinstance(network, qtn.Tensor):
        network = qtn.TensorNetwork([network])
    if not isinstance(network, qtn.TensorNetwork):
        raise NetworkError(
            f"from_quimb takes a quimb TensorNetwork or Tensor; {type(network).__name__} came."
        )
    names = _node_names(network)
    nodes = {name: (t.data, t.inds) for name, t in zip(names, network.tensors, strict=True)}
    if physical_modes is None:
        physical_modes = _outer_indices(qtn, network)
    return _with_exponent(Network(nodes, physical_modes), network.exponent)


def to_quimb(x: Network, kind: str = "network") -> Any:
    """The quimb network with one tensor per node: modes are its indices, the node's name its tag.

    Parameters
    ----------
    x : Network
    kind : {"network", "mps", "mpo", "peps"}
        With "network" a TensorNetwork. With the others a MatrixProductState, a MatrixProductOperator
        (modes of the first half of `x.physical_modes` are the upper indices) or a PEPS, with the names
        that quimb gives: physical indices `k0`, `k1`, ... (lower ones `b0`, ...; `k0,0` in a PEPS),
        tags `I0`, `I1`, ... (`I0,0`). Names of nodes and modes do not matter then, but `x` must be a
        tensor train, a train of operators or a grid (see `tnsum.formats`), with physical modes in the
        order of its nodes.

    Notes
    -----
    No data are copied. Of kind "network", `from_quimb` gives all names and arrays back, but quimb has
    no order of outer indices other than that of their appearance: where `x.physical_modes` are in
    another one, say `from_quimb(network, physical_modes=x.physical_modes)`. Hyperedges and traces are
    kept; with a hyperedge quimb's own `contract` asks for `output_inds=x.physical_modes`.

    Raises
    ------
    NetworkError
        Something else than a Network came, or the kind is not one of these.
    ModeError
        A mode is summed over though held once, or is physical and held more than once.
    TopologyError
        The network is not of the kind that is asked for.
    """
    x = as_network(x, "to_quimb")
    if kind not in _KINDS:
        raise NetworkError(f"kind must be one of {', '.join(_KINDS)}; {kind!r} came.")
    qtn = imported("quimb.tensor", "to_quimb")
    caller = f"to_quimb(x, kind={kind!r})"
    if kind == "mps":
        _, x = recognised(x, ["tensor_train"], caller)
        return qtn.MatrixProductState(x.arrays.values(), shape="lpr")
    if kind == "mpo":
        _, x = recognised(x, ["operator_train"], caller)
        return qtn.MatrixProductOperator(x.arrays.values(), shape="ludr")
    if kind == "peps":
        _, x = recognised(x, ["grid"], caller)
        # In quimb, up is towards the next row.
        return qtn.PEPS(_rows(x), shape="drulp")
    _check_holders(x)
    nodes = x.topology.nodes.items()
    return qtn.TensorNetwork([qtn.Tensor(x.arrays[k], modes, tags=[k]) for k, modes in nodes])


def _node_names(network: Any) -> list[str]:
    """The first tag of each tensor that no other has; a name by its place where there is none."""
    counts = Counter(tag for tensor in network.tensors for tag in tensor.tags)
    own = [[tag for tag in tensor.tags if counts[tag] == 1] for tensor in network.tensors]
    taken = {tags[0] for tags in own if tags}
    names = []
    for k, tags in enumerate(own):
        name = tags[0] if tags else f"node{k}"
        while not tags and name in taken:
            name += "_"
        names.append(name)
    return names


def _outer_indices(qtn: Any, network: Any) -> Sequence[str]:
    """The indices that one axis has, in the order of sites if they all belong to sites."""
    counts = Counter(index for tensor in network.tensors for index in tensor.inds)
    # quimb also calls an index outer that one tensor has twice, once the others that had it are gone.
    outer = [index for index in network.outer_inds() if counts[index] == 1]
    if isinstance(network, qtn.TensorNetworkGenVector):
        of_sites = network.site_inds_present
    elif isinstance(network, qtn.TensorNetworkGenOperator):
        of_sites = (*network.upper_inds_present, *network.lower_inds_present)
    else:
        return outer
    # Sites may have lost their indices, or have had them renamed.
    present = [index for index in of_sites if counts[index] == 1]
    return present if len(present) == len(outer) else outer


def _with_exponent(x: Network, exponent: Any) -> Network:
    """The network times 10**exponent."""
    xp = x.namespace
    # quimb computes it in the arrays' library: there it may carry a gradient.
    is_array = _arrays.is_array(exponent) and not _arrays.is_on_host(exponent)
    try:
        total = float(
            _arrays.constant(_arrays.namespace(exponent), exponent) if is_array else exponent
        )
        is_array = is_array and _arrays.namespace(exponent) is xp
    except (OverflowError, TypeError, ValueError):
        total = math.nan
    if not math.isfinite(total):
        raise NetworkError(
            f"The exponent of a quimb network must be a finite number; {exponent} came. quimb makes it "
            f"infinite when it equalises the norm of a tensor of zeros: pass it check_zero=True."
        )
    if total == 0 and not is_array:
        return x
    *others, last = _shares(x, total).items()
    factors: dict[str, Any] = {name: 10.0**share for name, share in others if share}
    factors[last[0]] = 10.0 ** last[1]
    if is_array:
        rest = 10.0 ** (exponent - sum(share for _, share in others))
        factors[last[0]] = _arrays.astype(xp, rest, _arrays.real_dtype(xp, x.dtype))
    arrays = {k: a * factors[k] if k in factors else a for k, a in x.arrays.items()}
    return Network.from_topology(x.topology, arrays)


def _shares(x: Network, total: float) -> dict[str, float]:
    """The powers of ten that the first nodes take of `total`, each as many as one step at most."""
    is_single = _arrays.dtype_name(x.dtype) in ("float32", "complex64")
    reach = _SINGLE_RANGE if is_single else _DOUBLE_RANGE
    sign = math.copysign(1.0, total)
    room = {name: reach - sign * _magnitude(array) for name, array in x.arrays.items()}
    for step in _SINGLE_STEPS if is_single else _DOUBLE_STEPS:
        shares: dict[str, float] = {}
        left = abs(total)
        for name in x.arrays:
            taken = min(left, step, max(room[name], 0.0))
            shares[name] = sign * taken
            left -= taken
            if left == 0:
                return shares
    raise NetworkError(
        f"The exponent of a quimb network must fit into its nodes: 10**{total:g} cannot be spread over "
        f"them without overflow or underflow ({_arrays.dtype_name(x.dtype)}, number of nodes: "
        f"{len(x.arrays)}). Set network.exponent to 0 and keep that factor apart."
    )


def _magnitude(array: Array) -> float:
    """The power of ten of an array's largest entry; 0 if that says nothing."""
    if _arrays.is_traced(array):
        return 0.0
    xp = _arrays.namespace(array)
    largest = float(xp.max(xp.abs(_arrays.constant(xp, array))))
    return math.log10(largest) if largest > 0 and math.isfinite(largest) else 0.0


def _check_holders(x: Network) -> None:
    """Raise where quimb would keep an index that is to be summed over, or the other way round."""
    physical = set(x.physical_modes)
    for mode in x.topology.modes:
        holders = x.topology.holders(mode)
        if mode in physical and len(holders) > 1:
            raise ModeError(
                f"quimb sums over an index that several axes have, so a physical mode must be held "
                f"once; {mode!r} is held by nodes {holders}. Give it another name in these nodes, and "
                f"join both names by a node that is the identity matrix."
            )
        if mode not in physical and len(holders) == 1:
            raise ModeError(
                f"quimb keeps an index that only one axis has, so a contraction mode must be held more "
                f"than once; {mode!r} is held once, by node {holders[0]!r}. Sum that axis of its array, "
                f"or add a node of ones that holds the mode too."
            )


def _rows(x: Network) -> list[list[Array]]:
    """The arrays of a grid, row by row; its nodes are named `node0_0`, `node0_1`, ..."""
    rows: dict[str, list[Array]] = {}
    for name, array in x.arrays.items():
        rows.setdefault(name.partition("_")[0], []).append(array)
    return list(rows.values())
