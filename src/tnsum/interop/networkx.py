"""Networks and topologies from and to networkx, for its algorithms on graphs and its drawing.

A contraction mode that joins two nodes is an edge, and one that a node holds twice is a loop. What
cannot be an edge (a contraction mode held once or by more than two nodes, a physical mode held more
than once) is a vertex of its own, joined to its holders.
"""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Integral
from typing import Any

from tnsum._typing import Array
from tnsum.errors import NetworkError
from tnsum.interop._imports import imported
from tnsum.network import Network
from tnsum.topology import Topology


def to_networkx(x: Network | Topology) -> Any:
    """The graph of a network or a topology, as a networkx.MultiGraph; arrays are not copied.

    Vertices and edges have these attributes, those in brackets only if `x` is a network:

    - A node is a vertex, keyed by its name: `kind="node"`, `modes` (a tuple), [`array`].
    - A contraction mode that two nodes hold, or one node twice, is an edge, keyed by its name: `mode`,
      [`rank`].
    - Any other contraction mode, and a physical mode held more than once, is a vertex, keyed
      `("mode", name)`: `kind="mode"`, `mode`. It has an edge to a node for each time the node holds
      it: `mode`, [`rank`, if it is a contraction mode].
    - A physical mode held once is only in its node's `modes`.

    `graph.graph["physical_modes"]` is their order. `from_networkx` is the exact way back.

    Raises
    ------
    NetworkError
        Something else than a Network or a Topology came, or networkx is not installed.
    """
    if not isinstance(x, Network | Topology):
        advice = {
            "NetworkSum": " Say x.topology, or x.to_network() for the explicit blocks.",
            "NetworkStack": " Say x.topology, or x[k] for one network.",
        }.get(type(x).__name__, "")
        raise NetworkError(
            f"to_networkx takes a Network or a Topology; {type(x).__name__} came.{advice}"
        )
    networkx = imported("networkx", "to_networkx")
    topology = x if isinstance(x, Topology) else x.topology
    graph = networkx.MultiGraph(physical_modes=topology.physical_modes)
    for name, modes in topology.nodes.items():
        array = {} if isinstance(x, Topology) else {"array": x.arrays[name]}
        graph.add_node(name, kind="node", modes=modes, **array)
    ranks = {} if isinstance(x, Topology) else x.ranks
    summed = set(topology.contraction_modes)
    for mode in topology.modes:
        holders = topology.holders(mode)
        attributes = {"mode": mode, **({"rank": ranks[mode]} if mode in ranks else {})}
        if mode in summed and len(holders) == 2:
            graph.add_edge(*holders, key=mode, **attributes)
        elif mode in summed or len(holders) > 1:
            # No node has this key: names of nodes are strings.
            vertex = ("mode", mode)
            graph.add_node(vertex, kind="mode", mode=mode)
            graph.add_edges_from((name, vertex, attributes) for name in holders)
    return graph


def from_networkx(graph: Any) -> Network:
    """The network of a graph as `to_networkx` makes it of a network; arrays are not copied.

    Nodes come in the order of the vertices. The vertices' `modes` say all there is to know about a
    topology; edges are checked to agree with them. Keys of edges, and attributes that `to_networkx`
    does not write, are not read.

    Raises
    ------
    NetworkError
        The graph is none of networkx, is directed, lacks an attribute or has one that contradicts
        the others; an array does not fit (as for Network); networkx is not installed.
    ModeError
        `physical_modes` does not name modes of the nodes, each once; as for Network.
    """
    _check_graph(graph, "from_networkx")
    topology = _own_topology(graph)
    arrays = {name: _array(name, graph.nodes[name]) for name in topology.nodes}
    x = Network.from_topology(topology, arrays)
    sizes = x.sizes
    for *ends, attributes in graph.edges(data=True):
        mode = attributes["mode"]
        size = sizes[mode]
        rank = attributes.get("rank", size)
        if not isinstance(rank, Integral) or rank != size:
            raise NetworkError(
                f"The rank of an edge must be the size of its mode: mode {mode!r} has size {size}, the "
                f"edge between {ends[0]!r} and {ends[1]!r} has rank {rank!r}."
            )
    return x


def topology_from_networkx(graph: Any, physical: bool = True) -> Topology:
    """The topology of any undirected graph: a node per vertex, a contraction mode per edge.

    A graph that `to_networkx` made gives back its topology exactly, whatever `physical` is. Of any
    other graph the nodes are named `str(vertex)`, contraction modes `r0`, `r1`, ... in the order of
    `graph.edges`, and physical modes `i0`, `i1`, ... in the order of the vertices. A node holds its
    contraction modes in the order of their numbers, then its physical mode. Parallel edges are
    parallel modes, a loop is a trace. Attributes are not kept.

    Parameters
    ----------
    graph : networkx.Graph or networkx.MultiGraph
    physical : bool
        Whether each vertex of a plain graph gets a physical mode.

    Raises
    ------
    NetworkError
        The graph is none of networkx, is directed, has no vertices, or two of its vertices have one
        name; an attribute contradicts others (as for `from_networkx`); networkx is not installed.
    ModeError
        As for `from_networkx`.
    """
    _check_graph(graph, "topology_from_networkx")
    if "physical_modes" in graph.graph or any("modes" in a for _, a in graph.nodes(data=True)):
        return _own_topology(graph)
    modes: dict[Hashable, list[str]] = {vertex: [] for vertex in graph}
    for k, ends in enumerate(graph.edges()):
        for vertex in ends:
            modes[vertex].append(f"r{k}")
    physical_modes = [f"i{k}" for k in range(len(modes))] if physical else []
    for held, mode in zip(modes.values(), physical_modes, strict=False):
        held.append(mode)
    vertices: dict[str, Hashable] = {}
    for vertex in modes:
        other = vertices.setdefault(str(vertex), vertex)
        if other is not vertex:
            raise NetworkError(
                f"Every vertex needs a name of its own: {other!r} and {vertex!r} are both called "
                f"{str(vertex)!r}. Rename one with networkx.relabel_nodes."
            )
    return Topology({name: modes[vertex] for name, vertex in vertices.items()}, physical_modes)


def _check_graph(graph: Any, function: str) -> None:
    networkx = imported("networkx", function)
    if not isinstance(graph, networkx.Graph):
        raise NetworkError(f"{function} takes a graph of networkx; {type(graph).__name__} came.")
    if graph.is_directed():
        raise NetworkError(
            f"The graph of a network must be undirected; {type(graph).__name__} came. Say "
            f"graph.to_undirected() first."
        )


def _own_topology(graph: Any) -> Topology:
    """The topology of a graph with the attributes of `to_networkx`, which anybody may have changed."""
    if "physical_modes" not in graph.graph:
        raise NetworkError(
            "The graph of a network must have graph.graph['physical_modes'], the physical modes in "
            "order, as to_networkx writes it; it has none. topology_from_networkx takes any graph."
        )
    nodes = {}
    for vertex, attributes in graph.nodes(data=True):
        kind = str(attributes.get("kind"))
        if kind == "node" and "modes" in attributes:
            nodes[vertex] = attributes["modes"]
        elif kind != "mode":
            raise NetworkError(
                f"A vertex must have kind 'node' and `modes`, or kind 'mode', as to_networkx writes "
                f"them; vertex {vertex!r} has kind {kind!r} and attributes {list(attributes)}."
            )
    topology = Topology(nodes, graph.graph["physical_modes"])
    _check_edges(graph, to_networkx(topology))
    return topology


def _check_edges(graph: Any, expected: Any) -> None:
    """Raise unless two graphs have the same vertices and, of each mode, the same edges."""
    found, wanted = _ends_by_mode(graph), _ends_by_mode(expected)
    for mode in {**wanted, **found}:
        if found.get(mode) != wanted.get(mode):
            raise NetworkError(
                f"The edges of a mode must join the vertices that hold it: mode {mode!r} must have "
                f"{wanted.get(mode, [])} by the `modes` of the vertices, {found.get(mode, [])} came."
            )
    stray = [vertex for vertex in graph if vertex not in expected]
    if stray:
        raise NetworkError(
            f"A vertex of kind 'mode' must be keyed ('mode', name) and joined to its nodes; "
            f"{stray[0]!r} is not. Remove it."
        )


def _ends_by_mode(graph: Any) -> dict[str, list[tuple[Hashable, ...]]]:
    """The pairs of vertices that each mode's edges join, in an order that is always the same."""
    found: dict[str, list[tuple[Hashable, ...]]] = {}
    for *ends, mode in graph.edges(data="mode"):
        if not isinstance(mode, str):
            raise NetworkError(
                f"An edge must have the name of its mode as attribute `mode`; the edge between "
                f"{ends[0]!r} and {ends[1]!r} has {mode!r}."
            )
        found.setdefault(mode, []).append(tuple(sorted(ends, key=repr)))
    return {mode: sorted(pairs, key=repr) for mode, pairs in found.items()}


def _array(name: str, attributes: dict[str, Any]) -> Array:
    if "array" not in attributes:
        raise NetworkError(
            f"The vertex of a node must have its array as attribute `array`; {name!r} has none. "
            f"topology_from_networkx takes graphs without arrays."
        )
    return attributes["array"]
