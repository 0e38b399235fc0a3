"""Recognising the formats that other libraries have classes for, whatever the names of nodes and modes.

A network is a Tucker network, a tensor train, ... when its topology is isomorphic to that of the
builder in `tnsum.formats`, physical modes paired by position. It is then brought to the builder's
names and order of axes, as views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tnsum._checks import MOST_AXES
from tnsum._typing import Array
from tnsum.alignment import permuted
from tnsum.errors import NetworkError, TopologyError
from tnsum.formats import cp, grid, tensor_ring, tensor_train, tucker
from tnsum.isomorphism import match_topologies
from tnsum.network import Network
from tnsum.topology import Topology, listed


def as_network(x: object, function: str) -> Network:
    """`x`, checked to be a Network; the error says how to make one of it."""
    if isinstance(x, Network):
        return x
    advice = {
        "NetworkSum": " Say x.to_network() first, for the explicit blocks.",
        "NetworkStack": " Say x[k] for one network, or x.sum().to_network().",
    }.get(type(x).__name__, "")
    raise NetworkError(f"{function} takes a Network; {type(x).__name__} came.{advice}")


def recognised(x: Network, formats: Sequence[str], function: str) -> tuple[str, Network]:
    """The first of `formats` that `x` has, and `x` in the names and order of axes of its builder.

    A network that has these names already is what its builder makes.

    Formats are `tucker`, `cp`, `tensor_train`, `operator_train`, `tensor_ring`, `grid`.
    """
    for name in formats if x.order else ():
        if any(topology == x.topology for topology in _TOPOLOGIES[name](x.order)):
            return name, x
    modes = {mode: f"_{k}" for k, mode in enumerate(x.topology.modes)}
    for name in formats:
        for topology in _TOPOLOGIES[name](x.order) if x.order else ():
            if len(topology.nodes) != len(x.arrays):
                continue
            own = {
                modes[m]: i for m, i in zip(x.physical_modes, topology.physical_modes, strict=True)
            }
            renamed = x.rename(modes=modes).rename(modes=own)
            try:
                found = match_topologies(topology, renamed.topology, (name, "the network"))
            except TopologyError:
                continue
            return name, permuted(renamed, topology, found)
    wanted = " or ".join(_WORDS[name] for name in formats)
    raise TopologyError(
        f"{function} needs a {wanted}, physical modes in the order of its nodes; a network of order "
        f"{x.order} with nodes {listed(tuple(x.arrays))} came. If only the order is wrong, mend it with "
        f"x.transpose(...)."
    )


def _stars(order: int) -> Iterator[Topology]:
    if order <= MOST_AXES:
        yield tucker(np.ones((1,) * order), [np.ones((1, 1))] * order).topology


def _shared_mode(order: int) -> Iterator[Topology]:
    yield cp([np.ones((1, 1))] * order).topology


def _trains(order: int) -> Iterator[Topology]:
    yield tensor_train([np.ones((1, 1, 1))] * order).topology


def _operator_trains(order: int) -> Iterator[Topology]:
    if order % 2 == 0:
        yield tensor_train([np.ones((1, 1, 1, 1))] * (order // 2)).topology


def _rings(order: int) -> Iterator[Topology]:
    yield tensor_ring([np.ones((1, 1, 1))] * order).topology


def _grids(order: int) -> Iterator[Topology]:
    for height in range(1, order + 1):
        if order % height == 0:
            yield grid(_grid_of_ones(height, order // height)).topology


def _grid_of_ones(height: int, width: int) -> list[list[Array]]:
    degrees = [[(a > 0) + (a < height - 1) + (b > 0) + (b < width - 1) for b in range(width)]
               for a in range(height)]  # fmt: skip
    return [[np.ones((1,) * (degree + 1)) for degree in row] for row in degrees]


_TOPOLOGIES: dict[str, Callable[[int], Iterator[Topology]]] = {
    "tucker": _stars,
    "cp": _shared_mode,
    "tensor_train": _trains,
    "operator_train": _operator_trains,
    "tensor_ring": _rings,
    "grid": _grids,
}
_WORDS = {
    "tucker": "Tucker network",
    "cp": "CP network",
    "tensor_train": "tensor train",
    "operator_train": "train of operators",
    "tensor_ring": "tensor ring",
    "grid": "grid",
}
