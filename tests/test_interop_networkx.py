"""Networks and topologies as graphs of networkx: exact ways back, and graphs that users bring."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tnsum.interop.networkx
from libraries import LIBRARIES_AND_DTYPES, library, network
from oracle import dense, relative_error
from raising import check_message, check_missing, unreached
from test_peers import peer
from tnsum import ModeError, NetworkError, NetworkStack, Topology, random_network
from tnsum.interop.networkx import from_networkx, to_networkx, topology_from_networkx
from topologies import BY_NAME, CASES, DTYPES, Case, any_cases, arrays

pytestmark = pytest.mark.large
nx = peer("networkx")

TWO = network(BY_NAME["two_nodes"], arrays(BY_NAME["two_nodes"], 0))
CP = network(BY_NAME["cp3"], arrays(BY_NAME["cp3"], 0))

on_all = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def expected_vertices(case: Case) -> tuple[set[Any], Counter[Any]]:
    """The mode vertices and the edges (ends, mode), by the words of the docstring."""
    held = {m: [n for n, modes in case.nodes.items() for k in modes if k == m]
            for modes in case.nodes.values() for m in modes}  # fmt: skip
    vertices, edges = set(), Counter[Any]()
    for mode, names in held.items():
        if mode not in case.physical_modes and len(names) == 2:
            edges[frozenset(names), mode] += 1
        elif mode not in case.physical_modes or len(names) > 1:
            vertices.add(("mode", mode))
            edges.update((frozenset([name, ("mode", mode)]), mode) for name in names)
    return vertices, edges


def check(graph: Any, case: Case) -> None:
    """Assert that a graph has the vertices, edges and attributes of a case."""
    assert type(graph) is nx.MultiGraph
    vertices, edges = expected_vertices(case)
    assert set(graph) == {*case.nodes, *vertices}
    assert list(graph)[: len(case.nodes)] == list(case.nodes)
    assert Counter((frozenset((u, v)), mode) for u, v, mode in graph.edges(data="mode")) == edges
    assert graph.graph == {"physical_modes": case.physical_modes}
    for name, modes in case.nodes.items():
        assert graph.nodes[name]["kind"] == "node"
        assert graph.nodes[name]["modes"] == modes
    for vertex in vertices:
        assert graph.nodes[vertex] == {"kind": "mode", "mode": vertex[1]}
    for u, v, key, mode in graph.edges(keys=True, data="mode"):
        assert key == mode or ("mode", mode) in (u, v)


@pytest.mark.parametrize("dtype", DTYPES)
@on_all
def test_networks_become_graphs_and_come_back(case: Case, dtype: str) -> None:
    held = arrays(case, 0, dtype=dtype)
    x = network(case, held)
    graph = to_networkx(x)
    check(graph, case)
    assert all(graph.nodes[name]["array"] is array for name, array in x.arrays.items())
    for *_, attributes in graph.edges(data=True):
        mode = attributes["mode"]
        assert attributes.get("rank") == case.ranks[0].get(mode)
        assert ("rank" in attributes) == (mode in case.contraction_modes)
    back = from_networkx(graph)
    assert back.topology == x.topology
    assert list(back.arrays) == list(x.arrays)
    assert all(back.arrays[name] is x.arrays[name] for name in x.arrays)


@on_all
def test_topologies_become_graphs_and_come_back(case: Case) -> None:
    topology = Topology(case.nodes, case.physical_modes)
    graph = to_networkx(topology)
    check(graph, case)
    assert not any("array" in a for _, a in graph.nodes(data=True))
    assert not any("rank" in a for *_, a in graph.edges(data=True))
    for physical in (True, False):
        assert topology_from_networkx(graph, physical) == topology
    assert topology_from_networkx(to_networkx(network(case, arrays(case, 0)))) == topology


@settings(deadline=None)
@given(any_cases())
def test_any_network_comes_back(case: Case) -> None:
    x = network(case, arrays(case, 0))
    graph = to_networkx(x)
    check(graph, case)
    back = from_networkx(graph)
    assert back.topology == x.topology
    assert all(back.arrays[name] is x.arrays[name] for name in x.arrays)
    # Components of the graph are those of the topology; kept modes join vertices besides.
    shared = any(len(x.topology.holders(mode)) > 1 for mode in x.physical_modes)
    if not shared:
        assert nx.number_connected_components(graph) == len(x.topology.components)


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
def test_arrays_of_every_library_stay_as_they_are(name: str, dtype: str) -> None:
    case = BY_NAME["hyperedge_and_modes"]
    x = network(case, arrays(case, 0, dtype=dtype), library(name))
    back = from_networkx(to_networkx(x))
    assert all(back.arrays[k] is x.arrays[k] for k in x.arrays)


def test_algorithms_and_changes_of_networkx_work_on_the_graph() -> None:
    train = random_network(tnsum.tensor_train([np.ones((1, 1, 1))] * 5).topology, 3)
    graph = to_networkx(train)
    assert nx.shortest_path(graph, "node0", "node3") == ["node0", "node1", "node2", "node3"]
    assert nx.is_tree(graph)
    assert nx.minimum_cut_value(nx.Graph(graph), "node0", "node4", capacity="rank") == 3
    assert set(nx.spring_layout(graph, seed=0)) == set(train.arrays)
    renamed = from_networkx(nx.relabel_nodes(graph, {"node0": "first"}))
    assert renamed.topology == train.rename(nodes={"node0": "first"}).topology
    # Nothing is lost in a simple graph if no modes are parallel, nor in a copy.
    for same in (nx.Graph(graph), graph.copy(), nx.freeze(graph), graph.subgraph(list(graph))):
        assert from_networkx(same).topology == train.topology


def test_names_of_nodes_and_modes_may_be_equal() -> None:
    x = CP.rename(nodes={"A": "r", "B": "mode", "C": "('mode', 'r')"})
    graph = to_networkx(x)
    assert len(graph) == 4
    back = from_networkx(graph)
    assert back.topology == x.topology
    assert relative_error(back.contract(), CP.contract()) < 1e-14


# graphs of users


def plain_graphs() -> dict[str, Any]:
    """Graphs of many kinds, none of them ours."""
    multi = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "b"), ("b", "c")])
    odd = nx.Graph([(1, "one"), ((0, 1), 2.5), ("one", frozenset([1]))], physical_mode=3)
    odd.add_node((), color="red", kind="node")
    return {
        "petersen": nx.petersen_graph(), "grid": nx.grid_2d_graph(3, 4), "multi": multi, "odd": odd,
        "loop": nx.Graph([(0, 0)]), "one": nx.empty_graph(1), "apart": nx.empty_graph(3),
        "path": nx.path_graph(["z", "a", "m"]), "complete": nx.complete_graph(5),
        "tree": nx.balanced_tree(2, 3), "view": nx.path_graph(6).subgraph([1, 2, 3]),
    }  # fmt: skip


@pytest.mark.parametrize("physical", [True, False])
@pytest.mark.parametrize("name", plain_graphs())
def test_any_graph_has_a_topology(name: str, physical: bool) -> None:
    graph = plain_graphs()[name]
    topology = topology_from_networkx(graph, physical)
    assert list(topology.nodes) == [str(vertex) for vertex in graph]
    assert topology.physical_modes == tuple(f"i{k}" for k in range(len(graph)) if physical)
    assert set(topology.contraction_modes) == {f"r{k}" for k in range(graph.number_of_edges())}
    for k, ends in enumerate(graph.edges()):
        assert sorted(topology.holders(f"r{k}")) == sorted(map(str, ends))
    for k, modes in enumerate(topology.nodes.values()):
        contraction = [mode for mode in modes if mode[0] == "r"]
        assert contraction == sorted(contraction, key=lambda mode: int(mode[1:]))
        assert modes == (*contraction, *[f"i{k}"] * physical)
    # It is a topology like any other, and from now on one of ours.
    again = to_networkx(topology)
    assert topology_from_networkx(again) == topology
    assert again.number_of_edges() == graph.number_of_edges()
    assert nx.is_isomorphic(nx.MultiGraph(graph), again)


def test_random_networks_of_a_graph_are_contracted_rightly() -> None:
    for graph in (nx.cycle_graph(4), nx.MultiGraph([(0, 1), (0, 1), (1, 1)]), nx.star_graph(3)):
        x = random_network(topology_from_networkx(graph), 2, seed=1)
        wanted = dense(x.topology.nodes, x.physical_modes, x.arrays)
        assert relative_error(x.contract(), wanted) < 1e-13
        assert (x + x).to_network().topology == x.topology
    names = topology_from_networkx(nx.cycle_graph(3)).nodes
    assert names == {"0": ("r0", "r1", "i0"), "1": ("r0", "r2", "i1"), "2": ("r1", "r2", "i2")}


# errors


def changed(change: Callable[[Any], Any], x: Any = TWO) -> Any:
    """The graph of a network after somebody changed it."""
    graph = to_networkx(x)
    change(graph)
    return graph


def with_attribute(vertex: Any, name: str, value: Any, x: Any = TWO) -> Any:
    return changed(lambda graph: graph.nodes[vertex].__setitem__(name, value), x)


def with_edge_attribute(name: str, value: Any) -> Any:
    return changed(lambda graph: graph.edges["A", "B", "r"].__setitem__(name, value))


def with_physical_modes(value: Any) -> Any:
    return changed(lambda graph: graph.graph.__setitem__("physical_modes", value))


JOIN = "The edges of a mode must join the vertices that hold it: mode "
VERTEX = ("A vertex must have kind 'node' and `modes`, or kind 'mode', as to_networkx writes them; "
          "vertex ")  # fmt: skip

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: to_networkx(TWO + TWO), NetworkError,  # type: ignore[arg-type]
     "to_networkx takes a Network or a Topology; NetworkSum came. Say x.topology, or x.to_network() for "
     "the explicit blocks."),
    (lambda: to_networkx(NetworkStack.from_networks([TWO])), NetworkError,  # type: ignore[arg-type]
     "to_networkx takes a Network or a Topology; NetworkStack came. Say x.topology, or x[k] for one "
     "network."),
    (lambda: to_networkx(nx.Graph()), NetworkError,
     "to_networkx takes a Network or a Topology; Graph came."),
    (lambda: from_networkx(TWO), NetworkError,
     "from_networkx takes a graph of networkx; Network came."),
    (lambda: topology_from_networkx([(0, 1)]), NetworkError,
     "topology_from_networkx takes a graph of networkx; list came."),
    (lambda: topology_from_networkx(nx.DiGraph([(0, 1)])), NetworkError,
     "The graph of a network must be undirected; DiGraph came. Say graph.to_undirected() first."),
    (lambda: from_networkx(nx.MultiDiGraph(to_networkx(TWO))), NetworkError,
     "The graph of a network must be undirected; MultiDiGraph came. Say graph.to_undirected() first."),
    (lambda: topology_from_networkx(nx.Graph()), NetworkError,
     "A network must have at least one node; none came."),
    (lambda: topology_from_networkx(nx.Graph([(1, 2), (2, "1")])), NetworkError,
     "Every vertex needs a name of its own: 1 and '1' are both called '1'. Rename one with "
     "networkx.relabel_nodes."),
    (lambda: from_networkx(nx.petersen_graph()), NetworkError,
     "The graph of a network must have graph.graph['physical_modes'], the physical modes in order, as "
     "to_networkx writes it; it has none. topology_from_networkx takes any graph."),
    (lambda: topology_from_networkx(changed(lambda graph: graph.graph.clear())), NetworkError,
     "The graph of a network must have graph.graph['physical_modes'], the physical modes in order, as "
     "to_networkx writes it; it has none. topology_from_networkx takes any graph."),
    (lambda: from_networkx(to_networkx(TWO.topology)), NetworkError,
     "The vertex of a node must have its array as attribute `array`; 'A' has none. "
     "topology_from_networkx takes graphs without arrays."),
    (lambda: from_networkx(changed(lambda graph: graph.add_node("C"))), NetworkError,
     f"{VERTEX}'C' has kind 'None' and attributes []."),
    (lambda: from_networkx(changed(lambda graph: graph.nodes["A"].pop("modes"))), NetworkError,
     f"{VERTEX}'A' has kind 'node' and attributes ['kind', 'array']."),
    (lambda: from_networkx(with_attribute("A", "kind", np.zeros(2))), NetworkError,
     f"{VERTEX}'A' has kind '[0. 0.]' and attributes ['kind', 'modes', 'array']."),
    (lambda: from_networkx(with_attribute("A", "modes", "ir")), NetworkError,
     "The modes of node 'A' must be a sequence of names; the single string 'ir' came. Write ('i', 'r'), "
     "or use Network.from_einsum."),
    (lambda: from_networkx(with_attribute("A", "modes", 3)), NetworkError,
     "The modes of node 'A' must be a sequence of strings; 3 came."),
    (lambda: from_networkx(nx.convert_node_labels_to_integers(to_networkx(TWO))), NetworkError,
     "A node's name must be a string; 0 came."),
    (lambda: from_networkx(with_attribute("A", "modes", ("i", "s"))), NetworkError,
     JOIN + "'s' must have [('A', ('mode', 's'))] by the `modes` of the vertices, [] came."),
    (lambda: from_networkx(with_attribute("A", "modes", ("i",))), NetworkError,
     JOIN + "'r' must have [('B', ('mode', 'r'))] by the `modes` of the vertices, [('A', 'B')] came."),
    (lambda: topology_from_networkx(changed(lambda graph: graph.remove_edge("A", "B"))), NetworkError,
     JOIN + "'r' must have [('A', 'B')] by the `modes` of the vertices, [] came."),
    (lambda: from_networkx(changed(lambda graph: graph.add_edge("A", "A", mode="i"))), NetworkError,
     JOIN + "'i' must have [] by the `modes` of the vertices, [('A', 'A')] came."),
    (lambda: from_networkx(changed(lambda graph: graph.add_edge("A", "B", mode="r"))), NetworkError,
     JOIN + "'r' must have [('A', 'B')] by the `modes` of the vertices, [('A', 'B'), ('A', 'B')] came."),
    (lambda: from_networkx(to_networkx(CP).subgraph(["A", "B", ("mode", "r")])), ModeError,
     "A physical mode must be held by a node; none holds 'k'. The nodes hold ('i', 'r', 'j')."),
    (lambda: from_networkx(changed(lambda graph: graph.remove_edge("A", ("mode", "r")), CP)),
     NetworkError,
     JOIN + "'r' must have [('A', ('mode', 'r')), ('B', ('mode', 'r')), ('C', ('mode', 'r'))] by the "
     "`modes` of the vertices, [('B', ('mode', 'r')), ('C', ('mode', 'r'))] came."),
    (lambda: from_networkx(changed(lambda graph: graph.add_edge("A", "B"))), NetworkError,
     "An edge must have the name of its mode as attribute `mode`; the edge between 'A' and 'B' has "
     "None."),
    (lambda: from_networkx(with_edge_attribute("mode", ["r"])), NetworkError,
     "An edge must have the name of its mode as attribute `mode`; the edge between 'A' and 'B' has "
     "['r']."),
    (lambda: from_networkx(changed(lambda graph: graph.add_node("C", kind="mode"))), NetworkError,
     "A vertex of kind 'mode' must be keyed ('mode', name) and joined to its nodes; 'C' is not. "
     "Remove it."),
    (lambda: from_networkx(with_edge_attribute("rank", 5)), NetworkError,
     "The rank of an edge must be the size of its mode: mode 'r' has size 2, the edge between 'A' and "
     "'B' has rank 5."),
    (lambda: from_networkx(with_edge_attribute("rank", np.ones(2))), NetworkError,
     "The rank of an edge must be the size of its mode: mode 'r' has size 2, the edge between 'A' and "
     "'B' has rank array([1., 1.])."),
    (lambda: from_networkx(with_physical_modes("ij")), ModeError,
     "physical_modes must be a sequence of mode names; 'ij' came."),
    (lambda: from_networkx(with_physical_modes(("i", "k"))), ModeError,
     "A physical mode must be held by a node; none holds 'k'. The nodes hold ('i', 'r', 'j')."),
    (lambda: from_networkx(with_physical_modes(("i",))), NetworkError,
     JOIN + "'j' must have [('B', ('mode', 'j'))] by the `modes` of the vertices, [] came."),
    (lambda: from_networkx(with_attribute("A", "array", np.ones((3, 3)))), ModeError,
     "Mode 'r' must have one size: 2 at axis 0 of node 'B' with shape (2, 2), 3 at axis 1 of node 'A' "
     "with shape (3, 3)."),
    (lambda: from_networkx(with_attribute("A", "array", None)), NetworkError,
     "Node 'A' must be an array of NumPy, PyTorch, JAX or another library of the array API standard; "
     "NoneType came. Convert it first, for instance with numpy.asarray."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    check_message(call, error, message)


def test_every_raise_is_reached() -> None:
    assert not unreached([Path(tnsum.interop.networkx.__file__)], [call for call, *_ in ERRORS])


def test_a_rank_of_numpy_and_none_at_all_are_taken() -> None:
    for value in (np.int64(2), 2):
        assert from_networkx(with_edge_attribute("rank", value)).topology == TWO.topology
    without = changed(lambda graph: graph.edges["A", "B", "r"].pop("rank"))
    assert from_networkx(without).topology == TWO.topology


def test_without_networkx_the_error_says_how_to_install_it() -> None:
    check_missing("networkx", "networkx", lambda: to_networkx(TWO))
    check_missing("networkx", "networkx", lambda: from_networkx(None))
