"""Bringing networks to the names, and to the order of axes, of the first of them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tnsum import _arrays
from tnsum._typing import Array, Namespace
from tnsum.errors import ModeError, NetworkError
from tnsum.isomorphism import Isomorphism, match_topologies
from tnsum.network import Network, NetworkStack
from tnsum.node_arrays import NodeArraysBase
from tnsum.topology import Topology

Term: TypeAlias = Network | NetworkStack
T = TypeVar("T", bound=NodeArraysBase)


def count(term: Term) -> int:
    """How many networks a term stands for."""
    return len(term) if isinstance(term, NetworkStack) else 1


def aligned(
    terms: Sequence[Term], first: Term, number: int, equal_ranks: bool = False
) -> Sequence[Term]:
    """Terms of one topology with the first one's names and order of axes, as views of their arrays.

    `number` is that of the terms' first network among the summands, for errors. With `equal_ranks`,
    modes of equal ranks are matched where that is possible.
    """
    term, topology = terms[0], first.topology
    _check_library(term, first, number)
    if not equal_ranks and term.topology == topology and term.shape == first.shape:
        return terms
    labels = ("summand 0", f"summand {number}")
    same_ranks = not equal_ranks or dict(term.ranks) == dict(first.ranks)
    if term.topology == topology and same_ranks:
        modes: Mapping[str, str] = {mode: mode for mode in topology.modes}
        found = [type(each)._unchecked(topology, each.arrays) for each in terms]
    else:
        ranks = (first.ranks, term.ranks) if equal_ranks else None
        isomorphism = match_topologies(topology, term.topology, labels, ranks)
        modes = isomorphism.modes
        found = [permuted(each, topology, isomorphism) for each in terms]
    for mode, size, expected in zip(
        topology.physical_modes, found[0].shape, first.shape, strict=True
    ):
        if size != expected:
            raise ModeError(
                f"Summands must have the same physical sizes: mode {modes[mode]!r} of "
                f"{labels[1]} has size {size}, mode {mode!r} of {labels[0]} has {expected}."
            )
    return found


def _check_library(term: Term, first: Term, number: int) -> None:
    a, b = first._some_array, term._some_array
    if type(a) is not type(b) or not _arrays.is_on_host(a):
        _arrays.common_namespace({"summand 0": a, f"summand {number}": b})


def permuted(term: T, topology: Topology, names: Isomorphism) -> T:
    """The term with a topology's names and order of axes, as views of its arrays."""
    xp = term.namespace
    leading = tuple(range(term._n_leading))
    arrays = {}
    for name, held in topology.nodes.items():
        theirs: list[str | None] = list(term.topology.nodes[names.nodes[name]])
        axes: list[int] = []
        for mode in held:
            axis = theirs.index(names.modes[mode])
            theirs[axis] = None  # a mode held twice has two axes; each is used once
            axes.append(axis + len(leading))
        array = term.arrays[names.nodes[name]]
        straight = axes == sorted(axes)
        arrays[name] = array if straight else xp.permute_dims(array, (*leading, *axes))
    return type(term)._unchecked(topology, arrays)


def stack_of(networks: Sequence[Network]) -> NetworkStack:
    """Networks of one topology, dtype and equal ranks in a stack; a single one is not copied."""
    xp, topology = networks[0].namespace, networks[0].topology
    arrays, held = {}, [network.arrays for network in networks]
    rooms = _rooms(xp, held[0], len(held))
    for name in topology.nodes:
        several = [each[name] for each in held]
        shape = several[0].shape
        if len(several) == 1 or not shape:
            arrays[name] = xp.stack(several) if len(several) > 1 else several[0][None, ...]
        elif name in rooms:
            arrays[name] = rooms[name]
            np.concatenate(several, out=rooms[name].reshape(-1, *shape[1:]))
        else:
            # Several times as fast as `stack`, which makes a view of each.
            arrays[name] = xp.reshape(xp.concat(several), (len(several), *shape))
    return NetworkStack._unchecked(topology, arrays)


def _rooms(xp: Namespace, arrays: Mapping[str, Array], n: int) -> dict[str, Array]:
    """For n arrays like each of these, NumPy's, parts of one room; none where it would be small.

    NumPy asks for large pages for arrays from 4 MiB on. Of smaller ones, page by page must be got anew
    each time: that takes longer than what is copied into them.
    """
    if _arrays.library(xp) != "numpy" or n == 1:
        return {}
    sizes = [n * array.size for array in arrays.values()]
    some = next(iter(arrays.values()))
    if sum(sizes) * some.itemsize < _LARGE:
        return {}
    parts = np.split(np.empty(sum(sizes), dtype=some.dtype), np.cumsum(sizes)[:-1])
    shaped = (part.reshape(n, *a.shape) for part, a in zip(parts, arrays.values(), strict=True))
    return dict(zip(arrays, shaped, strict=True))


_LARGE = 2**22


def stacked(networks: Sequence[Network]) -> NetworkStack:
    """See `NetworkStack.from_networks`."""
    return stack_of(_of_one_dtype(_of_equal_ranks(networks, Network)))


def concatenated(stacks: Sequence[NetworkStack]) -> NetworkStack:
    """See `NetworkStack.concatenate`."""
    terms = _of_one_dtype(_of_equal_ranks(stacks, NetworkStack))
    xp, topology = terms[0].namespace, terms[0].topology
    arrays = {name: xp.concat([t.arrays[name] for t in terms]) for name in topology.nodes}
    return NetworkStack._unchecked(topology, arrays)


def _of_one_dtype(terms: Sequence[Any]) -> list[Any]:
    dtype = _arrays.result_dtype(terms[0].namespace, [term.dtype for term in terms])
    return [term.astype(dtype) for term in terms]


def _of_equal_ranks(items: Sequence[Any], kind: type) -> list[Any]:
    try:
        items = list(items)
    except TypeError:
        raise NetworkError(
            f"A sequence of {kind.__name__}s must come; {type(items).__name__} came."
        ) from None
    for k, item in enumerate(items):
        if not isinstance(item, kind):
            raise NetworkError(f"Item {k} must be a {kind.__name__}; {type(item).__name__} came.")
    if not items:
        raise NetworkError(f"There must be at least one {kind.__name__}; none came.")
    terms = [items[0]]
    for k, item in enumerate(items[1:], 1):
        terms += aligned([item], items[0], k, equal_ranks=True)
    for k, term in enumerate(terms):
        for mode, rank in term.ranks.items():
            if rank != terms[0].ranks[mode]:
                raise NetworkError(
                    f"Networks of a stack must have equal ranks: mode {mode!r} has rank {rank} in item "
                    f"{k}, {terms[0].ranks[mode]} in item 0. tnsum.add takes networks of any ranks."
                )
    return terms
