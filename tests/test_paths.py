"""Orders of products: found once per topology and sizes, right in any order, better with cotengra."""

import random

import numpy as np
import pytest

import tnsum
from tnsum import paths
from tnsum.topology import Topology


def cubic_graph(n: int, seed: int) -> Topology:
    """A closed network whose n nodes hold three modes each, joined at random."""
    generator = random.Random(seed)
    while True:
        ends = [k for k in range(n) for _ in range(3)]
        generator.shuffle(ends)
        pairs = list(zip(ends[::2], ends[1::2], strict=True))
        if all(a != b for a, b in pairs):
            held: list[list[str]] = [[] for _ in range(n)]
            for k, (a, b) in enumerate(pairs):
                held[a].append(f"r{k}")
                held[b].append(f"r{k}")
            return Topology({f"node{k}": modes for k, modes in enumerate(held)}, ())


def problem(topology: Topology, size: int) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    number = {mode: k for k, mode in enumerate(topology.modes)}
    inputs = tuple(tuple(number[m] for m in held) for held in topology.nodes.values())
    return inputs, (size,) * len(number)


def test_a_plan_is_found_once_for_equal_topologies_and_sizes() -> None:
    shape = Topology({"A": ("i", "r"), "B": ("r", "s"), "C": ("s", "j")})
    sizes = {"i": 7, "r": 11, "s": 13, "j": 5}
    tnsum.random_network(shape, sizes).contract()
    before = paths._plan.cache_info()
    renamed = tnsum.random_network(shape, sizes, seed=1).rename(modes={"i": "row", "r": "q"})
    renamed.contract()
    after = paths._plan.cache_info()
    assert (after.misses, after.hits > before.hits) == (before.misses, True)


def test_a_tree_is_joined_from_its_leaves_to_a_centre() -> None:
    chain = Topology({f"n{k}": (f"r{k}", f"r{k + 1}") for k in range(5)})
    assert sorted(paths.inward(chain)) == [(0, 1), (1, 2), (3, 2), (4, 3)]


def test_without_cotengra_the_greedy_order_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cotengra", None)
    inputs, sizes = problem(cubic_graph(30, 0), 8)
    assert paths._cotengra_path(inputs, (), dict(enumerate(sizes))) is None
    assert len(paths.found_path(inputs, (), sizes)) == len(inputs) - 1


@pytest.mark.large
def test_cotengra_finds_cheaper_orders_for_large_irregular_graphs() -> None:
    pytest.importorskip("cotengra")
    inputs, sizes = problem(cubic_graph(100, 0), 3)
    greedy = pytest.importorskip("opt_einsum").paths.greedy(
        list(map(frozenset, inputs)), frozenset(), dict(enumerate(sizes))
    )
    order = paths._numbered(greedy, len(inputs))
    ours = paths._plan(inputs, (), sizes, paths.found_path(inputs, (), sizes))
    theirs = paths._plan(inputs, (), sizes, order)
    assert ours.n_multiplications * 10 < theirs.n_multiplications


@pytest.mark.large
def test_a_large_irregular_graph_is_contracted_right_in_cotengras_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("cotengra")
    x = tnsum.random_network(cubic_graph(40, 1), 2)
    greedy = x.contract()
    monkeypatch.setattr(paths, "_DEAR", 0)
    paths._plan.cache_clear()
    np.testing.assert_allclose((2 * x - x).contract(), greedy, rtol=1e-10)
    paths._plan.cache_clear()
