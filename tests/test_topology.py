"""Topology: what holds what, and which topologies match."""

import pickle
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tnsum import Isomorphism, ModeError, Topology, TopologyError
from topologies import BY_NAME, CASES, Case, any_cases


def topology_of(case: Case) -> Topology:
    return Topology(case.nodes, case.physical_modes)


def einsum(equation: str) -> Topology:
    """Topology of an einsum equation; nodes are called A, B, C, ..."""
    inputs, output = equation.split("->")
    nodes = {chr(ord("A") + k): tuple(term) for k, term in enumerate(inputs.split(","))}
    return Topology(nodes, tuple(output))


def graph(pairs: Sequence[tuple[int, int]], physical: Sequence[int] = ()) -> Topology:
    """Nodes n0, n1, ... joined by a mode for each pair, with a physical mode where asked for."""
    nodes: dict[str, list[str]] = {f"n{k}": [] for k in range(1 + max(map(max, pairs)))}
    for number, pair in enumerate(pairs):
        for k in pair:
            nodes[f"n{k}"].append(f"r{number}")
    for k in physical:
        nodes[f"n{k}"].append(f"i{k}")
    return Topology(nodes, [f"i{k}" for k in physical])


def scrambled(topology: Topology, seed: int, same_names: bool) -> Topology:
    """All renamed and in another order; physical modes keep either their names or their places."""
    rng = np.random.default_rng(seed)

    def shuffled(items: Sequence[str]) -> list[str]:
        return [items[k] for k in rng.permutation(len(items))]

    physical = list(topology.physical_modes)
    new_mode = {m: f"new{k}" for k, m in enumerate(shuffled(topology.modes))}
    if same_names:
        new_mode |= {mode: mode for mode in physical}
        physical = shuffled(physical)
    names = shuffled(list(topology.nodes))
    nodes = {f"node{k}": shuffled([new_mode[m] for m in topology.nodes[name]])
             for k, name in enumerate(names)}  # fmt: skip
    return Topology(nodes, [new_mode[m] for m in physical])


def is_right(found: Isomorphism, first: Topology, second: Topology) -> bool:
    """Whether nodes and modes are renamed one to one, axes kept, physical modes paired as said."""
    ours, theirs = first.physical_modes, second.physical_modes
    pairing = dict(zip(ours, ours if set(ours) == set(theirs) else theirs, strict=True))
    return (
        list(found.nodes) == list(first.nodes)
        and set(found.nodes.values()) == set(second.nodes)
        and list(found.modes) == list(first.modes)
        and set(found.modes.values()) == set(second.modes)
        and all(found.modes[mode] == partner for mode, partner in pairing.items())
        and all(
            Counter(found.modes[m] for m in held) == Counter(second.nodes[found.nodes[name]])
            for name, held in first.nodes.items()
        )
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_modes_and_nodes_are_classified(case: Case) -> None:
    topology = topology_of(case)
    physical = set(case.physical_modes)
    assert topology.nodes == case.nodes
    assert topology.physical_modes == case.physical_modes
    assert topology.contraction_modes == case.contraction_modes
    assert set(topology.modes) == physical | set(case.contraction_modes)
    assert topology.physical_nodes == tuple(n for n, ms in case.nodes.items() if physical & {*ms})
    assert topology.contraction_nodes == tuple(
        n for n, ms in case.nodes.items() if not physical & {*ms}
    )
    assert topology.order == case.order
    assert topology.is_connected == case.is_connected
    for mode in topology.modes:
        held = [name for name, modes in case.nodes.items() for m in modes if m == mode]
        assert topology.holders(mode) == tuple(held)


def test_modes_seen_once_are_physical_in_order_of_appearance() -> None:
    topology = Topology({"A": ("j", "r", "t", "t"), "B": ["r", "i", "s"], "C": ("s", "s"), "D": ()})
    assert topology.modes == ("j", "r", "t", "i", "s")
    assert topology.physical_modes == ("j", "i")
    assert topology.contraction_modes == ("r", "t", "s")
    assert (topology.physical_nodes, topology.contraction_nodes) == (("A", "B"), ("C", "D"))
    assert topology.holders("t") == ("A", "A")
    assert topology.holders("s") == ("B", "C", "C")


def test_physical_modes_are_authoritative() -> None:
    topology = Topology({"A": ("i", "r"), "B": ("r", "j")}, physical_modes=["r"])
    assert topology.physical_modes == ("r",)
    assert topology.contraction_modes == ("i", "j")
    assert not topology.is_connected


def test_modes_may_come_from_an_iterator() -> None:
    nodes: Any = {"A": iter(("i", "r")), "B": (mode for mode in "rj")}
    assert Topology(nodes, iter("ij")) == Topology({"A": ("i", "r"), "B": ("r", "j")}, ("i", "j"))


TREES = {
    "lone_matrix", "lone_vector", "two_nodes", "chain5", "tensor_train5", "operator_train6", "star2",
    "star3", "star4", "star5", "tree8", "comb", "closed_tree",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_tree_has_no_loop_hyperedge_trace_or_shared_mode(case: Case) -> None:
    assert topology_of(case).is_tree == (case.name in TREES)


@pytest.mark.parametrize(
    ("equation", "components"),
    [
        ("ia,aj,kb,bl->ijkl", ["AB", "CD"]),
        ("ia,kb,aj,bl->ijkl", ["AC", "BD"]),
        ("ir,jr->ijr", ["A", "B"]),
        ("irs,jrs->ijr", ["AB"]),
        ("ir,,jr,kr->ijk", ["ACD", "B"]),
        ("ab,cd,bc,ee->", ["ABC", "D"]),
    ],
)
def test_only_modes_that_are_summed_connect(equation: str, components: list[str]) -> None:
    topology = einsum(equation)
    assert topology.components == tuple(map(tuple, components))
    assert topology.is_connected == (len(components) == 1)


def test_joined_connects_the_components_by_modes_of_new_names() -> None:
    topology = Topology({"A": ("i",), "B": ("join1", "k"), "C": ("j",), "D": ("k", "l")})
    joined = topology.joined
    assert joined.nodes == {
        "A": ("i", "join0"),
        "B": ("join1", "k", "join0", "join1_"),
        "C": ("j", "join1_"),
        "D": ("k", "l"),
    }
    assert joined.physical_modes == topology.physical_modes
    assert joined.is_connected
    assert joined.joined is joined


@settings(max_examples=40, deadline=None)
@given(any_cases())
def test_joined_is_connected_and_keeps_what_was_there(case: Case) -> None:
    topology = topology_of(case)
    joined = topology.joined
    assert joined.is_connected
    assert (joined is topology) == topology.is_connected == case.is_connected
    assert joined.physical_modes == case.physical_modes
    added = set(joined.modes) - set(topology.modes)
    assert len(added) == len(topology.components) - 1
    for name, modes in topology.nodes.items():
        assert joined.nodes[name][: len(modes)] == modes
        assert added.issuperset(joined.nodes[name][len(modes) :])


def test_rename_changes_names_only() -> None:
    topology = einsum("itrt,rj->ji")
    renamed = topology.rename(modes={"i": "row", "r": "i", "t": "r"}, nodes={"A": "B", "B": "A"})
    assert renamed.nodes == {"B": ("row", "r", "i", "r"), "A": ("i", "j")}
    assert renamed.physical_modes == ("j", "row")
    assert topology == einsum("itrt,rj->ji")
    assert topology.rename() == topology


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_topologies_equal_hash_pickle_and_copy_by_value(case: Case) -> None:
    topology = topology_of(case)
    again = Topology({n: list(m) for n, m in case.nodes.items()}, list(case.physical_modes))
    for other in (again, pickle.loads(pickle.dumps(topology)), deepcopy(topology)):
        assert other == topology
        assert hash(other) == hash(topology)
    first = next(iter(case.nodes))
    assert topology.rename(nodes={first: "renamed"}) != topology
    assert topology.rename(modes={topology.modes[-1]: "renamed"}) != topology
    if case.order > 1:
        assert Topology(case.nodes, case.physical_modes[::-1]) != topology
    assert topology != case.nodes


@pytest.mark.parametrize(
    "name",
    ["nodes", "modes", "physical_modes", "contraction_modes", "physical_nodes", "contraction_nodes",
     "order", "components", "is_connected", "is_tree", "joined"],
)  # fmt: skip
def test_a_topology_cannot_be_changed(name: str) -> None:
    topology = einsum("ir,rj->ij")
    before = getattr(topology, name)
    with pytest.raises(AttributeError):
        setattr(topology, name, "something else")
    assert getattr(topology, name) == before


def test_nodes_of_a_topology_cannot_be_changed() -> None:
    nodes: Any = {"A": ["i", "r"], "B": ["r", "j"]}
    topology = Topology(nodes)
    nodes["A"].append("k")
    assert topology.nodes["A"] == ("i", "r")
    with pytest.raises(TypeError):
        topology.nodes["A"] = ("k",)  # type: ignore[index]


def test_repr_is_short_and_says_what_it_is() -> None:
    topology = einsum("ir,rj->ji")
    assert repr(topology) == (
        "Topology({'A': ('i', 'r'), 'B': ('r', 'j')}, physical_modes=('j', 'i'))"
    )
    assert eval(repr(topology)) == topology
    long = topology_of(BY_NAME["mera"])
    n_nodes, n_summed = len(long.nodes), len(long.contraction_modes)
    assert (
        repr(long) == f"<Topology: {n_nodes} nodes, 32 physical and {n_summed} contraction modes>"
    )


@pytest.mark.parametrize("same_names", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_scrambled_copy_matches(case: Case, same_names: bool) -> None:
    topology = topology_of(case)
    for seed in range(3):
        other = scrambled(topology, seed, same_names)
        assert is_right(topology.isomorphism(other), topology, other)
        assert is_right(other.isomorphism(topology), other, topology)


@settings(max_examples=100, deadline=None)
@given(any_cases(), st.integers(0, 1000), st.booleans())
def test_a_scrambled_copy_of_any_topology_matches(case: Case, seed: int, same_names: bool) -> None:
    topology = topology_of(case)
    other = scrambled(topology, seed, same_names)
    assert is_right(topology.isomorphism(other), topology, other)


def test_an_isomorphism_is_a_value() -> None:
    found = einsum("ir,rj->ij").isomorphism(einsum("as,sb->ab"))
    assert dict(found.nodes) == {"A": "A", "B": "B"}
    assert dict(found.modes) == {"i": "a", "r": "s", "j": "b"}
    assert found == einsum("ir,rj->ij").isomorphism(einsum("as,sb->ab"))
    assert pickle.loads(pickle.dumps(found)) == found == deepcopy(found)


def test_equal_names_pair_by_name_and_disjoint_ones_by_position() -> None:
    first = einsum("ir,rst,tj,sk->ijk")
    assert first.isomorphism(einsum("ja,abc,ci,bk->kji")).nodes["A"] == "C"
    assert first.isomorphism(einsum("xa,abc,cy,bz->zyx")).nodes["A"] == "D"
    assert first.isomorphism(einsum("xa,abc,cy,bz->yxz")).nodes["A"] == "C"
    assert einsum("ab,bc,ca->").isomorphism(einsum("xy,zx,yz->")).nodes.keys() == {"A", "B", "C"}


def chain(n: int) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(n - 1)]


def ring(n: int, start: int = 0) -> list[tuple[int, int]]:
    return [(start + k, start + (k + 1) % n) for k in range(n)]


def grid(n: int) -> list[tuple[int, int]]:
    across = [(n * a + b, n * a + b + 1) for a in range(n) for b in range(n - 1)]
    return across + [(n * a + b, n * a + b + n) for a in range(n - 1) for b in range(n)]


def binary_tree(n: int) -> list[tuple[int, int]]:
    return [((k - 1) // 2, k) for k in range(1, n)]


LARGE = [
    ("chain", chain(1000), range(1000)),
    ("chain_ends", chain(1000), (0, 999)),
    ("chain_middle", chain(1000), (499,)),
    ("chain_closed", chain(1000), ()),
    ("ring", ring(1000), range(1000)),
    ("ring_closed", ring(1000), ()),
    ("grid", grid(32), range(1024)),
    ("grid_closed", grid(32), ()),
    ("tree", binary_tree(1023), range(1023)),
    ("tree_leaves", binary_tree(1023), range(511, 1023)),
    ("tree_closed", binary_tree(1023), ()),
]


@pytest.mark.parametrize(
    ("pairs", "physical"), [row[1:] for row in LARGE], ids=[r[0] for r in LARGE]
)
@pytest.mark.parametrize("same_names", [True, False])
def test_a_thousand_nodes_match(
    pairs: list[tuple[int, int]], physical: Sequence[int], same_names: bool
) -> None:
    topology = graph(pairs, physical)
    other = scrambled(topology, 1, same_names)
    assert is_right(topology.isomorphism(other), topology, other)


def rook() -> list[tuple[int, int]]:
    """Squares of a 4 x 4 board, joined within rows and columns."""
    return [(a, b) for a, b in combinations(range(16), 2) if a // 4 == b // 4 or a % 4 == b % 4]


def shrikhande() -> list[tuple[int, int]]:
    """As strongly regular as the rook's graph, and not isomorphic to it."""
    steps = {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}
    return [(a, b) for a, b in combinations(range(16), 2)
            if ((b // 4 - a // 4) % 4, (b % 4 - a % 4) % 4) in steps]  # fmt: skip


PRISM = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)]
K33 = [(a, b) for a in range(3) for b in range(3, 6)]
TWINS = {
    "ring_and_two_rings": (ring(6), ring(3) + ring(3, 3)),
    "prism_and_complete_bipartite": (PRISM, K33),
    "rook_and_shrikhande": (rook(), shrikhande()),
    "several_rings": (
        [pair for k in range(3) for pair in ring(6, 6 * k)],
        [pair for k in range(2) for pair in ring(6, 6 * k)] + ring(3, 12) + ring(3, 15),
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_what_colour_refinement_cannot_tell_apart_is_rejected(name: str) -> None:
    first, second = map(graph, TWINS[name])
    for a, b in ((first, second), (second, first)):
        with pytest.raises(TopologyError, match="Summands must have isomorphic topologies"):
            a.isomorphism(b)
        assert is_right(a.isomorphism(scrambled(a, 0, True)), a, scrambled(a, 0, True))


START = "Summands must have isomorphic topologies: "
END = " Rename modes with Network.rename, or build both from one Topology."

# What differs, this topology, the other, what the message says.
DIFFERENCES = [
    (
        "physical modes of a node", "ir,rj->ij", "ijr,r->ij",
        "node 'A' of the other holds physical modes ('i', 'j'), "
        "node 'A' of this topology holds ('i',).",
    ),
    (
        "physical modes of a node, paired by position", "ijr,rk->ijk", "xr,ryz->xyz",
        "node 'A' of the other holds physical modes ('x',), "
        "node 'A' of this topology holds ('i', 'j').",
    ),
    (
        "number of contraction modes of a node", "ir,rj->ij", "irs,rsj->ij",
        "node 'A' of the other holds 2 contraction modes ('r', 's'), "
        "node 'A' of this topology holds ('r',).",
    ),
    (
        "a shared physical mode", "irk,rj->kij", "irk,rjk->kij",
        "physical mode 'k' of the other is held by ('A', 'B'), "
        "physical mode 'k' of this topology by ('A',).",
    ),
    (
        "a hyperedge against pairs", "ir,jr,krt,t->ijk", "ir,jrs,ks,->ijk",
        "node 'A' of the other holds its contraction modes together with other nodes "
        "('r' with ('A', 'B')) than node 'A' of this topology ('r' with ('A', 'B', 'C')).",
    ),
    (
        "a trace against a pair", "irtt,rj->ij", "irtu,rjtu->ij",
        "node 'A' of the other holds its contraction modes together with other nodes ('r' with "
        "('A', 'B'); 't' with ('A', 'B'); 'u' with ('A', 'B')) than node 'A' of this topology "
        "('r' with ('A', 'B'); 't' with ('A', 'A'); 't' with ('A', 'A')).",
    ),
    (
        "how often a node holds a mode", "irrs,s->i", "irss,s->i",
        "node 'A' of the other holds its contraction modes together with other nodes ('r' with "
        "('A',); 's' with ('A', 'A', 'B'); 's' with ('A', 'A', 'B')) than node 'A' of this topology "
        "('r' with ('A', 'A'); 'r' with ('A', 'A'); 's' with ('A', 'B')).",
    ),
    (
        "number of nodes", "ia,ab,bj->ij", "ia,ab,bc,cj->ij",
        "the other has 4 nodes ('A', 'B', 'C', 'D'), this topology has 3 ('A', 'B', 'C').",
    ),
    (
        "number of contraction modes", "ia,ab,bj->ij", "ia,abcc,bj->ij",
        "the other has 3 contraction modes ('a', 'b', 'c'), this topology has 2 ('a', 'b').",
    ),
    (
        "contraction nodes", "ia,abc,bd,cd,dj->ij", "ia,ab,bcd,cd,dj->ij",
        "node 'B' of the other with modes ('a', 'b') and node 'B' of this topology with modes "
        "('a', 'b', 'c') have no counterpart left that is connected alike.",
    ),
    (
        "behind a shared mode whose holders come in another order",
        "ikr,jkr,rs,sl->ijkl", "jkr,ikr,rst,stl->ijkl",
        "node 'D' of the other holds 2 contraction modes ('s', 't'), "
        "node 'D' of this topology holds ('s',).",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "told"), [d[1:] for d in DIFFERENCES],
                         ids=[d[0] for d in DIFFERENCES])  # fmt: skip
def test_the_error_names_what_differs_in_both(first: str, second: str, told: str) -> None:
    with pytest.raises(TopologyError) as raised:
        einsum(first).isomorphism(einsum(second))
    assert str(raised.value) == START + told + END


def named_in(message: str) -> Iterator[str]:
    return (name for name in re.findall(r"'(\w+)'", message))


@pytest.mark.parametrize("name", ["prism_and_complete_bipartite", "rook_and_shrikhande"])
def test_the_error_names_a_node_or_mode_of_both_where_only_a_search_tells(name: str) -> None:
    first, second = map(graph, TWINS[name])
    second = second.rename(nodes={f"n{k}": f"m{k}" for k in range(len(second.nodes))})
    with pytest.raises(TopologyError) as raised:
        first.isomorphism(second)
    assert {f"n{k}" for k in range(len(first.nodes))}.intersection(named_in(str(raised.value)))
    assert {f"m{k}" for k in range(len(second.nodes))}.intersection(named_in(str(raised.value)))


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (
            "ir,rj->ij", "ir,r->i",
            "Summands must have the same order: the other has 1 physical modes ('i',), "
            "this topology has 2 ('i', 'j').",
        ),
        (
            "ir,rj->ij", "ir,rk->ik",
            "Physical modes must have all names in common, or none: the other has ('i', 'k'), this "
            "topology has ('i', 'j'); 'k' is only in the former, 'j' only in the latter. Rename "
            "modes with Network.rename.",
        ),
    ],
)  # fmt: skip
def test_physical_modes_that_cannot_be_paired_are_named(first: str, second: str, told: str) -> None:
    with pytest.raises(ModeError) as raised:
        einsum(first).isomorphism(einsum(second))
    assert str(raised.value) == told
