"""What a network, stack or sum is, in one line and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tnsum._arrays import dtype_name
from tnsum._packing import KINDS, Saved
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
    if isinstance(x, NetworkSum):
        return x.n_summands
    return len(x) if isinstance(x, NetworkStack) else 1


def n_parameters_of(x: Saved, node: str) -> int:
    """The entries that are held of one node; the zeros of a sum's blocks are not."""
    terms: tuple[Any, ...] = x._terms if isinstance(x, NetworkSum) else (x,)
    return sum(int(term.arrays[node].size) for term in terms)


def as_values(x: Saved) -> dict[str, Any]:
    """All that is known of `x` without its entries, ready for JSON."""
    topology, sizes = x.topology, x.sizes
    physical = set(topology.physical_modes)
    return {
        "kind": KINDS[type(x)],
        "networks": n_networks(x),
        "order": x.order,
        "shape": list(x.shape),
        "dtype": dtype_name(x.dtype),
        "parameters": x.n_parameters,
        "nodes": [
            {"name": name, "modes": list(held), "parameters": n_parameters_of(x, name)}
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
