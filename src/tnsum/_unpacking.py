"""Networks, stacks and sums from the named arrays and the description that `_packing` makes of them.

What is read is checked in full against the sizes that the file states, before any data are touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from tnsum._checks import check_shapes
from tnsum._packing import CLASSIFIER, KINDS, REAL, VERSION, Networks, is_text
from tnsum._tensor_files import TensorFile, short_repr
from tnsum._typing import Array
from tnsum.alignment import Term
from tnsum.errors import NetworkError
from tnsum.explicit import explicit_topology
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed, short

# Nodes of single networks, beyond which they come back as stacks: objects take more memory than data.
_MOST_SINGLE = 2**18


def unpacked(
    document: Mapping[str, Any], kind: str, file: TensorFile, wanted: Sequence[str] | None
) -> Networks:
    """What a description and the arrays of a file stand for; of it only the wanted nodes, if given."""
    topology = checked_topology(document)
    parts = _checked_parts(document, kind)
    chosen = tuple(topology.nodes) if wanted is None else _checked_wanted(wanted, topology)
    shapes = [_checked_shapes(file, k, dtype, topology, kind) for k, (dtype, _) in enumerate(parts)]
    n_arrays = len(parts) * len(topology.nodes) + (kind == "sum")
    if len(file.arrays) != n_arrays:
        raise NetworkError(
            f"it has {len(file.arrays)} tensors, but its description needs {n_arrays}"
        )
    arrays = [_arrays_of(file, k, dtype, shapes[k], chosen) for k, (dtype, _) in enumerate(parts)]
    if kind == "sum":
        total = _sum(file, document, topology, parts, arrays)
        return total if wanted is None else _blocks_alone(total, chosen)
    alone = topology if wanted is None else _alone(topology, chosen)
    cls = Network if kind == "network" else NetworkStack
    return cls._unchecked(alone, {name: arrays[0][name] for name in alone.nodes})


def check_version(document: Any) -> None:
    """Raise unless a description is one of a version that is known."""
    if not isinstance(document, dict):
        raise NetworkError("its description must be a JSON object")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise NetworkError(
            f"its format version must be a positive integer; {short_repr(version)} came"
        )
    if version > VERSION:
        raise NetworkError(
            f"it has format version {version}, this tnsum reads up to {VERSION}. Install a newer tnsum."
        )


def checked_kind(document: Any) -> str:
    """What a description says the file holds, if its version is known."""
    check_version(document)
    kind = document.get("kind")
    kinds = tuple(KINDS.values())
    if kind == CLASSIFIER:
        raise NetworkError("it holds a classifier. Read it with tnsum.fusion.load_classifier")
    if kind not in kinds:
        raise NetworkError(f"it must hold one of {listed(kinds)}; {short_repr(kind)} came")
    return str(kind)


def checked_topology(document: Mapping[str, Any]) -> Topology:
    """The topology of a description."""
    nodes, physical = document.get("nodes"), document.get("physical_modes")
    if not isinstance(nodes, list) or not all(map(_is_node, nodes)) or not _are_names(physical):
        raise NetworkError(
            "its description must list nodes, each with name and modes, and physical_modes, all of "
            "them texts"
        )
    found = {node["name"]: node["modes"] for node in nodes}
    if len(found) != len(nodes):
        raise NetworkError("its description names a node twice")
    return Topology(found, physical)


def _is_node(node: object) -> bool:
    return (
        isinstance(node, dict)
        and set(node) == {"name", "modes"}
        and _are_names([node["name"]])
        and _are_names(node["modes"])
    )


def _are_names(names: object) -> bool:
    return isinstance(names, list) and all(map(is_text, names))


def _checked_parts(document: Mapping[str, Any], kind: str) -> list[tuple[str, bool]]:
    """The dtype of each part, and whether it was a stack."""
    parts = document.get("parts")
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        raise NetworkError(
            f"its description must list parts, each with stacked and a dtype of {listed(tuple(REAL))}"
        )
    found = [(part["dtype"], part["stacked"]) for part in parts]
    if not found or (kind != "sum" and [stacked for _, stacked in found] != [kind == "stack"]):
        wanted = "a part at least" if kind == "sum" else f"one part, with stacked {kind == 'stack'}"
        raise NetworkError(f"a {kind} must have {wanted}; {short_repr(parts)} came")
    return found


def _is_part(part: object) -> bool:
    return (
        isinstance(part, dict)
        and set(part) == {"dtype", "stacked"}
        and isinstance(part["dtype"], str)
        and part["dtype"] in REAL
        and type(part["stacked"]) is bool
    )


def _checked_wanted(wanted: Sequence[str], topology: Topology) -> tuple[str, ...]:
    names = topology.nodes
    unknown = [name for name in wanted if not isinstance(name, str) or name not in names]
    if unknown or not wanted:
        came = short_repr(unknown[0]) if unknown else "none"
        raise NetworkError(f"nodes must be of {listed(tuple(names))}; {came} came.")
    chosen = set(wanted)
    return tuple(name for name in names if name in chosen)


def _checked_shapes(
    file: TensorFile, k: int, dtype: str, topology: Topology, kind: str
) -> dict[str, _Shape]:
    """The shape of each node's array in part k, as they must be to fit together."""
    found = {name: _Shape(checked_tensor(file, f"{k}/{name}", dtype)) for name in topology.nodes}
    check_shapes(topology, found, n_leading=int(kind != "network"))
    return found


@dataclass(frozen=True)
class _Shape:
    """What stands for an array that has not been read."""

    shape: tuple[int, ...]


def checked_tensor(file: TensorFile, key: str, dtype: str) -> tuple[int, ...]:
    """The shape of an array of the file, without the axis that holds real and imaginary parts."""
    stored = file.arrays.get(key)
    if stored is None:
        raise NetworkError(f"tensor {key[:80]!r} is missing")
    shape = stored.shape
    is_complex = dtype.startswith("complex")
    if stored.dtype != REAL[dtype] or (is_complex and shape[-1:] != (2,)):
        pair = " with a last axis of size 2" if is_complex else ""
        raise NetworkError(
            f"tensor {key[:80]!r} must be of {REAL[dtype]}{pair}, to hold {dtype}; {stored.dtype} of "
            f"shape {short(shape)} came"
        )
    return shape[:-1] if is_complex else shape


def _arrays_of(
    file: TensorFile, k: int, dtype: str, shapes: Mapping[str, _Shape], chosen: Sequence[str]
) -> dict[str, Array]:
    """The arrays of part k; nodes that are not chosen get a stand-in that takes no memory."""
    nothing = np.zeros((), dtype)
    found = {name: np.broadcast_to(nothing, at.shape) for name, at in shapes.items()}
    found.update({name: numbers_of(file, f"{k}/{name}", dtype) for name in chosen})
    return found


def numbers_of(file: TensorFile, key: str, dtype: str) -> Array:
    """An array of the file; pairs of real numbers become complex ones without a copy."""
    array = file.read(key)
    return array.view(dtype)[..., 0] if dtype.startswith("complex") else array


def _sum(
    file: TensorFile,
    document: Mapping[str, Any],
    topology: Topology,
    parts: Sequence[tuple[str, bool]],
    arrays: Sequence[Mapping[str, Array]],
) -> NetworkSum:
    stacks = [NetworkStack._unchecked(topology, part) for part in arrays]
    for k, stack in enumerate(stacks):
        if stack.shape != stacks[0].shape:
            raise NetworkError(
                f"the parts of a sum must have one shape: part {k} has {short(stack.shape)}, part 0 "
                f"{short(stacks[0].shape)}"
            )
    counts = [len(stack) for stack in stacks]
    n_singles = sum(n for n, (_, is_stacked) in zip(counts, parts, strict=True) if not is_stacked)
    are_few = n_singles * len(topology.nodes) <= _MOST_SINGLE
    order = _checked_order(document, n_singles + sum(is_stacked for _, is_stacked in parts))
    weights = _checked_weights(file, document, sum(counts))
    # A weight of 1 is left out; but if all are 1 and complex, they are what makes the sum complex.
    leave_out = np.isrealobj(weights) or not np.all(weights == 1)
    terms: list[Term] = []
    scalars: list[Any] = []
    for stack, (_, is_stacked), end in zip(stacks, parts, accumulate(counts), strict=True):
        own = weights[end - len(stack) : end]
        if is_stacked or not are_few:
            terms.append(stack)
            scalars.append(1 if leave_out and np.all(own == 1) else own)
        else:
            terms += list(stack)
            scalars += [1 if leave_out and weight == 1 else weight for weight in own.tolist()]
    if order is not None and are_few:
        placed = sorted(zip(order, terms, scalars, strict=True), key=itemgetter(0))
        _, terms, scalars = map(list, zip(*placed, strict=True))
    return NetworkSum._unchecked(topology, terms, scalars)


def _checked_order(document: Mapping[str, Any], n: int) -> list[int] | None:
    """The places of n single networks and stacks among the summands, if they are not in order."""
    order = document.get("order")
    if order is None:
        return None
    is_right = isinstance(order, list) and len(order) == n and all(type(k) is int for k in order)
    if not is_right or sorted(order) != list(range(n)):
        raise NetworkError(f"order must name the places 0 ... {n - 1}, each once")
    return list(order)


def _checked_weights(file: TensorFile, document: Mapping[str, Any], n: int) -> Array:
    dtype = document.get("weights")
    if dtype not in ("float64", "complex128"):
        raise NetworkError(f"weights must be float64 or complex128; {short_repr(dtype)} came")
    shape = checked_tensor(file, "weights", dtype)
    if shape != (n,):
        raise NetworkError(f"there must be {n} weights, one per summand; shape {short(shape)} came")
    return numbers_of(file, "weights", dtype)


# some nodes only


def _alone(topology: Topology, chosen: Sequence[str]) -> Topology:
    """Some nodes of a topology; modes that lead to others become physical, after those that are."""
    nodes = {name: topology.nodes[name] for name in chosen}
    held = {mode for modes in nodes.values() for mode in modes}
    own = [mode for mode in topology.physical_modes if mode in held]
    cut = [
        mode
        for mode in topology.contraction_modes
        if mode in held and not all(name in nodes for name in topology.holders(mode))
    ]
    return Topology(nodes, own + cut)


def _blocks_alone(total: NetworkSum, chosen: Sequence[str]) -> Network:
    """The explicit blocks of some nodes of a sum."""
    arrays = {name: total.node(name) for name in chosen}
    return Network._unchecked(_alone(explicit_topology(total), chosen), arrays)
