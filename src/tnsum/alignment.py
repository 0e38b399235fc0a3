"""Bringing networks to the names, and to the order of axes, of the first of them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tnsum import _arrays
from tnsum.errors import ModeError, NetworkError
from tnsum.isomorphism import match_topologies
from tnsum.network import Network, NetworkStack
from tnsum.topology import Topology

Term: TypeAlias = Network | NetworkStack


def count(term: Term) -> int:
    """How many networks a term stands for."""
    return len(term) if isinstance(term, NetworkStack) else 1


def aligned(term: Term, first: Term, number: int) -> Term:
    """The term with the first one's names and order of axes, as views of its arrays."""
    labels = ("summand 0", f"summand {number}")
    _arrays.common_namespace({labels[0]: first.some_array, labels[1]: term.some_array})
    topology = first.topology
    if term.topology is topology or term.topology == topology:
        same = term.topology is topology
        found_term = term if same else type(term)._unchecked(topology, term.arrays)
        partner = {mode: mode for mode in topology.physical_modes}
    else:
        found = match_topologies(topology, term.topology, labels)
        found_term = _permuted(term, topology, found.nodes, found.modes)
        partner = {mode: found.modes[mode] for mode in topology.physical_modes}
    if found_term.shape != first.shape:
        for mode, size, expected in zip(partner, found_term.shape, first.shape, strict=True):
            if size != expected:
                raise ModeError(
                    f"Summands must have the same physical sizes: mode {partner[mode]!r} of "
                    f"{labels[1]} has size {size}, mode {mode!r} of {labels[0]} has {expected}."
                )
    return found_term


def _permuted(
    term: Term, topology: Topology, nodes: Mapping[str, str], modes: Mapping[str, str]
) -> Term:
    xp = term.namespace
    leading = tuple(range(term._n_leading))
    arrays = {}
    for name, held in topology.nodes.items():
        theirs: list[str | None] = list(term.topology.nodes[nodes[name]])
        axes: list[int] = []
        for mode in held:
            axis = theirs.index(modes[mode])
            theirs[axis] = None  # a mode held twice has two axes; each is used once
            axes.append(axis + len(leading))
        array = term.arrays[nodes[name]]
        straight = axes == sorted(axes)
        arrays[name] = array if straight else xp.permute_dims(array, (*leading, *axes))
    return type(term)._unchecked(topology, arrays)


def stacked(networks: Sequence[Network]) -> NetworkStack:
    """See `NetworkStack.from_networks`."""
    terms = _aligned_terms(networks, Network)
    xp = terms[0].namespace
    dtype = _arrays.result_dtype(xp, [term.dtype for term in terms])
    arrays = {
        name: xp.stack([_arrays.astype(xp, term.arrays[name], dtype) for term in terms])
        for name in terms[0].topology.nodes
    }
    return NetworkStack._unchecked(terms[0].topology, arrays)


def concatenated(stacks: Sequence[NetworkStack]) -> NetworkStack:
    """See `NetworkStack.concatenate`."""
    terms = _aligned_terms(stacks, NetworkStack)
    xp = terms[0].namespace
    dtype = _arrays.result_dtype(xp, [term.dtype for term in terms])
    arrays = {
        name: xp.concat([_arrays.astype(xp, term.arrays[name], dtype) for term in terms])
        for name in terms[0].topology.nodes
    }
    return NetworkStack._unchecked(terms[0].topology, arrays)


def _aligned_terms(items: Sequence[Any], kind: type) -> list[Any]:
    items = list(items)
    for k, item in enumerate(items):
        if not isinstance(item, kind):
            raise NetworkError(f"Item {k} must be a {kind.__name__}; {type(item).__name__} came.")
    if not items:
        raise NetworkError(f"There must be at least one {kind.__name__}; none came.")
    terms = [items[0], *(aligned(item, items[0], k) for k, item in enumerate(items[1:], 1))]
    for k, term in enumerate(terms):
        for mode, rank in term.ranks.items():
            if rank != terms[0].ranks[mode]:
                raise NetworkError(
                    f"Networks of a stack must have equal ranks: mode {mode!r} has rank {rank} in item "
                    f"{k}, {terms[0].ranks[mode]} in item 0. tnsum.add takes networks of any ranks."
                )
    return terms
