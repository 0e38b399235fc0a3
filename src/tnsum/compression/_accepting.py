"""What an accumulator accepts: its parameters, and the terms that are added to it."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from tnsum._arrays import check_values, common_namespace, is_complex, is_number
from tnsum._typing import Array
from tnsum.addition import add
from tnsum.alignment import Term, permuted
from tnsum.compression._gradients import held_arrays
from tnsum.errors import ModeError, NetworkError, TopologyError
from tnsum.isomorphism import match_topologies
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed, short


def checked_topology(topology: Any) -> Topology:
    """A topology that is a tree, once its components are joined."""
    if not isinstance(topology, Topology):
        raise NetworkError(f"topology must be a Topology; {type(topology).__name__} came.")
    if not topology.joined.is_tree:
        raise TopologyError(
            f"A SumAccumulator needs a tree, in which each contraction mode joins two nodes and no two "
            f"ways lead from one node to another; a topology with {len(topology.nodes)} nodes and "
            f"{len(topology.contraction_modes)} contraction modes that is none came."
        )
    return topology


def checked_shape(shape: Any, topology: Topology) -> tuple[int, ...]:
    """One positive size for each physical mode."""
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if len(sizes) != topology.order or not all(_is_integer(size) and size > 0 for size in sizes):
        raise ModeError(
            f"shape must be one positive integer for each of the physical modes "
            f"{listed(topology.physical_modes)}; {short(sizes)} came."
        )
    return tuple(map(int, sizes))


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_one_each(x: Any, weight: Any) -> TypeGuard[NetworkStack]:
    """Whether there is to be a weight for each network of a stack, rather than one for all."""
    is_one = is_number(weight) or getattr(weight, "ndim", None) == 0
    return isinstance(x, NetworkStack) and not is_one


def checked_term(x: Any, weight: Any, dtype: str, beside: Array | None) -> NetworkSum:
    """What is to be added, with its weights, as a sum that fits beside an array of the same dtype."""
    if not isinstance(x, Network | NetworkStack | NetworkSum):
        raise NetworkError(
            f"A Network, NetworkStack or NetworkSum must come; {type(x).__name__} came."
        )
    total = x.sum(weight) if _is_one_each(x, weight) else add(x, weights=[weight])
    check_values("SumAccumulator.add", held_arrays(total))
    if beside is not None:
        common_namespace({"the accumulator": beside, "the summand": total._some_array})
    if is_complex(total.dtype) and not is_complex(dtype):
        kind = {"float32": "complex64", "float64": "complex128"}[dtype]
        raise NetworkError(
            f"A complex summand or weight needs a complex accumulator; this one is of dtype {dtype}. "
            f"Make one with dtype={kind!r}."
        )
    return total


def aligned_terms(total: NetworkSum, topology: Topology, shape: tuple[int, ...]) -> Sequence[Term]:
    """The terms of a sum in the names, and the order of axes, of a topology."""
    terms: Sequence[Term] = total._terms
    modes: Mapping[str, str] = {mode: mode for mode in topology.physical_modes}
    if total.topology != topology:
        labels = ("the accumulator", "the summand")
        names = match_topologies(topology, total.topology, labels)
        modes, terms = names.modes, [permuted(term, topology, names) for term in terms]
    for mode, size, expected in zip(topology.physical_modes, terms[0].shape, shape, strict=True):
        if size != expected:
            raise ModeError(
                f"Summands must have the physical sizes of the accumulator: mode {modes[mode]!r} of "
                f"the summand has size {size}, mode {mode!r} of the accumulator has {expected}."
            )
    return terms
