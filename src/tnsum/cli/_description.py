"""What a network, stack, sum or accumulator is, in one line and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tnsum._arrays import dtype_name
from tnsum._packing import KINDS, Saved
from tnsum.compression._accumulator import SumAccumulator
from tnsum.network import NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import short

_SHOWN_NODES = 6


def in_one_line(x: Saved) -> str:
    """For instance: sum of 3 networks of order 3, shape (6, 5, 4), float64, 118 parameters."""
    several = "" if KINDS[type(x)] == "network" else f" of {n_networks(x)} networks"
    return (
        f"{KINDS[type(x)]}{several} of order {x.order}, shape {short(x.shape)}, {dtype_name(x.dtype)}, "
        f"{x.n_parameters} parameters"
    )


def n_networks(x: Saved) -> int:
    """How many networks it stands for."""
    if isinstance(x, NetworkSum | SumAccumulator):
        return x.n_summands
    return len(x) if isinstance(x, NetworkStack) else 1


def n_parameters_of_nodes(x: Saved) -> dict[str, int]:
    """The entries that are held of each node; the zeros of a sum's blocks are not."""
    if isinstance(x, SumAccumulator):
        pairs = zip(x._tree, x._widths.n_sums, strict=True)
        return {branch.name: n for branch, n in pairs}
    terms: tuple[Any, ...] = x._terms if isinstance(x, NetworkSum) else (x,)
    nodes = x.topology.nodes
    return {name: sum(int(term.arrays[name].size) for term in terms) for name in nodes}


def as_values(x: Saved) -> dict[str, Any]:
    """All that is known of `x` without its entries, ready for JSON."""
    topology, held_by = x.topology, n_parameters_of_nodes(x)
    physical = set(topology.physical_modes)
    sizes, more = _sizes_of(x), dict[str, int]()
    if isinstance(x, SumAccumulator):
        more = {"max_rank": x.max_rank, "seed": x.seed}
    return {
        "kind": KINDS[type(x)],
        "networks": n_networks(x),
        "order": x.order,
        "shape": list(x.shape),
        "dtype": dtype_name(x.dtype),
        "parameters": x.n_parameters,
        **more,
        "nodes": [
            {"name": name, "modes": list(held), "parameters": held_by[name]}
            for name, held in topology.nodes.items()
        ],
        "modes": [
            {
                "name": mode,
                "size": sizes[mode],
                "physical": mode in physical,
                "nodes": list(dict.fromkeys(topology.holders(mode))),
            }
            for mode in (*topology.physical_modes, *topology.contraction_modes)
        ],
    }


def _sizes_of(x: Saved) -> Mapping[str, int]:
    """The size of each mode; the ranks of an accumulator are the largest that it may give."""
    if not isinstance(x, SumAccumulator):
        return x.sizes
    physical = dict(zip(x.topology.physical_modes, x.shape, strict=True))
    return {mode: physical.get(mode, x.max_rank) for mode in x.topology.modes}


def node_rows(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The rows of a table of nodes."""
    sizes = {mode["name"]: mode["size"] for mode in values["modes"]}
    return [
        (
            node["name"],
            ", ".join(f"{mode}={sizes[mode]}" for mode in node["modes"]),
            str(node["parameters"]),
        )
        for node in values["nodes"]
    ]


def mode_rows(values: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The rows of a table of modes."""
    return [
        (
            mode["name"],
            "physical" if mode["physical"] else "contraction",
            str(mode["size"]),
            _some(mode["nodes"]),
        )
        for mode in values["modes"]
    ]


def _some(names: list[str]) -> str:
    """Names in a cell of a table, cut short when they are many."""
    if len(names) <= _SHOWN_NODES:
        return ", ".join(names)
    return f"{', '.join(names[:_SHOWN_NODES])}, ... {len(names)} in all"
