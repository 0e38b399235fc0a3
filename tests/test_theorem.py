"""The claims of docs/theorem.md, one test each, in the order of that page.

For the theorem itself block networks are formed here, by `superdiagonal` alone; what tnsum's own
sums do comes after it.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tnsum
from libraries import network
from oracle import dense, dense_sum, relative_error
from tnsum import Network
from tnsum.multilinear import kronecker, superdiagonal, unfold
from topologies import BY_NAME, CASES, Case, arrays

Array = NDArray[Any]

MODERATE = [case for case in CASES if case.order <= 12]
CONNECTED = [case for case in MODERATE if case.is_connected and case.contraction_modes]
DISCONNECTED = [case for case in MODERATE if not case.is_connected]
WEIGHTS = (0.5, -2.0, 1.5)


def named(cases: Sequence[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def drawn(case: Case, dtype: str = "float64") -> list[dict[str, Array]]:
    return [arrays(case, which, seed=which, dtype=dtype) for which in range(3)]


def block_network(
    case: Case,
    terms: Sequence[dict[str, Array]],
    weights: Sequence[complex],
    weighted: Collection[str],
) -> Network:
    """The block network of the page, the weights in the nodes `weighted`."""
    nodes = {}
    for name, modes in case.nodes.items():
        shared = [axis for axis, mode in enumerate(modes) if mode in case.physical_modes]
        factors = weights if name in weighted else [1] * len(terms)
        blocks = [np.asarray(w * one[name]) for w, one in zip(factors, terms, strict=True)]
        nodes[name] = (np.asarray(superdiagonal(*blocks, shared=shared)), modes)
    return Network(nodes, case.physical_modes)


def dense_of(x: Network) -> Array:
    return dense(x.topology.nodes, x.physical_modes, x.arrays)


def weighted_sum(
    case: Case, terms: Sequence[dict[str, Array]], weights: Sequence[complex]
) -> Array:
    return dense_sum(case.nodes, case.physical_modes, terms, weights)


# Networks


HELD = {
    "two_nodes": ("ir,rj->ij", "by two nodes"),
    "cp3": ("ir,jr,kr->ijk", "by more"),
    "lone_trace": ("irjr->ij", "twice by one"),
    "lone_summed_once": ("ir->i", "once"),
    "shared_kept": ("ir,jr->ijr", "kept, by two nodes"),
    "kept_twice": ("iir,rj->ij", "kept, twice by one"),
}


@pytest.mark.parametrize("name", HELD)
def test_the_tensor_is_the_sum_of_products_however_often_a_mode_is_held(name: str) -> None:
    case = BY_NAME[name]
    one = drawn(case)[0]
    expected = np.einsum(HELD[name][0], *one.values())
    assert relative_error(network(case, one).contract(), expected) < 1e-14


def test_only_modes_that_are_summed_over_join() -> None:
    kept = tnsum.Topology({"A": ("i", "r"), "B": ("j", "r")}, ("i", "j", "r"))
    summed = tnsum.Topology({"A": ("i", "r"), "B": ("j", "r")}, ("i", "j"))
    assert not kept.is_connected
    assert summed.is_connected


# Block networks


@named(CONNECTED)
def test_ranks_of_a_block_network_are_the_sums_of_ranks_and_its_topology_is_the_same(
    case: Case,
) -> None:
    z = block_network(case, drawn(case), WEIGHTS, list(case.nodes)[:1])
    assert z.topology == network(case, drawn(case)[0]).topology
    assert z.ranks == {mode: sum(r[mode] for r in case.ranks) for mode in case.contraction_modes}
    assert z.shape == case.shape


@named(CONNECTED)
def test_a_node_is_a_summand_where_all_contraction_indices_lie_in_its_block_and_else_zero(
    case: Case,
) -> None:
    terms = drawn(case)
    z = block_network(case, terms, (1, 1, 1), ())
    for name, modes in case.nodes.items():
        left = z.arrays[name].copy()
        for m, one in enumerate(terms):
            where = tuple(
                slice(None)
                if mode in case.physical_modes
                else slice(
                    sum(r[mode] for r in case.ranks[:m]), sum(r[mode] for r in case.ranks[: m + 1])
                )
                for mode in modes
            )
            np.testing.assert_array_equal(left[where], one[name])
            left[where] = 0
        assert not left.any()


def test_contraction_nodes_are_superdiagonal_and_physical_nodes_are_stacked() -> None:
    core, other = np.full((1, 2), 3.0), np.full((2, 1), 5.0)
    expected = [[3, 3, 0], [0, 0, 5], [0, 0, 5]]
    np.testing.assert_array_equal(superdiagonal(core, other), expected)
    stacked = superdiagonal(core, 2 * core, shared=[0])
    np.testing.assert_array_equal(stacked, [[3, 3, 6, 6]])


def test_blocks_without_a_contraction_mode_fall_onto_each_other() -> None:
    a, b = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    np.testing.assert_array_equal(superdiagonal(a, b, shared=[0]), [11, 22])


# Theorem


@named(CONNECTED)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_block_network_of_a_connected_network_represents_the_weighted_sum(
    case: Case, dtype: str
) -> None:
    terms = drawn(case, dtype)
    weights = WEIGHTS if dtype == "float64" else (0.5, -2j, 1 + 1j)
    z = block_network(case, terms, weights, list(case.nodes)[:1])
    assert relative_error(dense_of(z), weighted_sum(case, terms, weights)) < 1e-13


def test_the_table_has_every_kind_of_topology_that_the_theorem_includes() -> None:
    names = {case.name for case in CONNECTED}
    assert {"ring4", "grid3x3", "complete5", "parallel_modes", "trace", "lone_trace"} <= names
    assert {"cp3", "hyperedge_and_modes", "summed_once", "lone_summed_once"} <= names
    assert {"kept_twice", "shared_kept_and_summed", "closed_ring", "chain5", "star5"} <= names


@named(CONNECTED)
def test_every_node_of_a_connected_network_holds_a_contraction_mode(case: Case) -> None:
    assert all(set(modes) & set(case.contraction_modes) for modes in case.nodes.values())


@named(
    [BY_NAME[name] for name in ("two_nodes", "trace", "cp3", "ring2", "closed_ring", "summed_once")]
)
def test_products_vanish_unless_all_indices_lie_in_one_block(case: Case) -> None:
    """Steps 1 to 3 of the proof, index by index: what is left are the products of the summands."""
    terms = drawn(case)
    z = block_network(case, terms, WEIGHTS, list(case.nodes)[:1])
    modes = case.contraction_modes
    block_of = {c: np.repeat(range(3), [ranks[c] for ranks in case.ranks]) for c in modes}
    sums = np.zeros((3, *case.shape))
    for index in np.ndindex(*(z.ranks[c] for c in modes)):
        at = {c: slice(k, k + 1) for c, k in zip(modes, index, strict=True)}
        cut = {
            name: z.arrays[name][tuple(at.get(mode, slice(None)) for mode in held)]
            for name, held in case.nodes.items()
        }
        product = dense(case.nodes, case.physical_modes, cut)
        blocks = {block_of[c][k] for c, k in zip(modes, index, strict=True)}
        if len(blocks) == 1:
            sums[blocks.pop()] += product
        else:
            assert not product.any()
    for w, one, found in zip(WEIGHTS, terms, sums, strict=True):
        assert relative_error(found, weighted_sum(case, [one], [w])) < 1e-13


@named(CONNECTED)
def test_it_does_not_matter_which_node_carries_the_weights(case: Case) -> None:
    terms = drawn(case)
    expected = weighted_sum(case, terms, WEIGHTS)
    for name in case.nodes:
        assert (
            relative_error(dense_of(block_network(case, terms, WEIGHTS, [name])), expected) < 1e-13
        )


def test_summands_may_be_matched_in_any_way_that_keeps_the_topology() -> None:
    case = BY_NAME["parallel_modes"]
    terms = drawn(case)
    swapped = {"A": terms[1]["A"].transpose(0, 2, 1), "B": terms[1]["B"].transpose(2, 1, 0)}
    plain = block_network(case, [terms[0], terms[1]], (1, 1), ())
    other = block_network(case, [terms[0], swapped], (1, 1), ())
    assert plain.arrays["A"].shape != other.arrays["A"].shape
    assert relative_error(dense_of(other), dense_of(plain)) < 1e-13


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_node_with_k_contraction_modes_has_m_nonzero_blocks_of_m_to_the_k(k: int) -> None:
    m, rank = 4, 2
    node = superdiagonal(*[np.ones((rank,) * k)] * m)
    assert node.size == m**k * rank**k
    assert np.count_nonzero(node) == m * rank**k


@named(CONNECTED)
def test_a_zero_weight_leaves_its_block_in_the_ranks(case: Case) -> None:
    terms = drawn(case)
    z = block_network(case, terms, (0.5, 0, -1.5), list(case.nodes)[:1])
    expected = weighted_sum(case, [terms[0], terms[2]], (0.5, -1.5))
    assert relative_error(dense_of(z), expected) < 1e-13
    assert z.ranks == {mode: sum(r[mode] for r in case.ranks) for mode in case.contraction_modes}


# Where it is false


def test_two_vectors_give_all_products_instead_of_two() -> None:
    a, b, c, d = np.random.default_rng(0).standard_normal((4, 3))
    case = Case("", {"A": ("i",), "B": ("j",)}, ("i", "j"), {"i": 3, "j": 3}, ({}, {}))
    z = block_network(case, [{"A": a, "B": c}, {"A": b, "B": d}], (1, 1), ())
    assert relative_error(z.contract(), np.outer(a + b, c + d)) < 1e-14
    assert relative_error(z.contract(), np.outer(a, c) + np.outer(b, d)) > 0.1


def components(case: Case) -> list[Case]:
    """The parts of a disconnected case, each a case of its own."""
    topology = tnsum.Topology(case.nodes, case.physical_modes)
    parts = []
    for names in topology.components:
        nodes = {name: case.nodes[name] for name in names}
        held = {mode for modes in nodes.values() for mode in modes}
        physical = tuple(mode for mode in case.physical_modes if mode in held)
        sizes = {mode: case.sizes[mode] for mode in physical}
        ranks = tuple({c: r for c, r in of.items() if c in held} for of in case.ranks)
        parts.append(Case(case.name, nodes, physical, sizes, ranks))
    return parts


@named(DISCONNECTED)
def test_a_disconnected_block_network_represents_the_product_of_the_components_sums(
    case: Case,
) -> None:
    terms = drawn(case)
    parts = components(case)
    assert len(parts) > 1
    sums = {}
    for part in parts:
        ours = [{name: one[name] for name in part.nodes} for one in terms]
        sums["".join(part.nodes)] = (weighted_sum(part, ours, (1, 1, 1)), part.physical_modes)
    product = Network(sums, case.physical_modes)
    found = dense_of(block_network(case, terms, (1, 1, 1), ()))
    assert relative_error(found, dense_of(product)) < 1e-13
    assert relative_error(found, weighted_sum(case, terms, (1, 1, 1))) > 0.1


@named(DISCONNECTED)
@pytest.mark.parametrize("m", [2, 3])
def test_m_equal_disconnected_summands_give_m_to_the_p_times_the_summand(
    case: Case, m: int
) -> None:
    one = drawn(case)[0]
    p = len(components(case))
    z = block_network(case, [one] * m, [1] * m, ())
    assert relative_error(dense_of(z), m**p * weighted_sum(case, [one], [1])) < 1e-13


def test_a_shared_mode_that_is_kept_does_not_connect_and_one_that_is_summed_does() -> None:
    rng = np.random.default_rng(0)
    a, c = rng.uniform(0.5, 1.5, (2, 3, 2))
    b, d = rng.uniform(0.5, 1.5, (2, 4, 2))
    terms = [{"A": a, "B": b}, {"A": c, "B": d}]
    nodes = {"A": ("i", "r"), "B": ("j", "r")}
    kept = Case("", nodes, ("i", "j", "r"), {"i": 3, "j": 4, "r": 2}, ({}, {}))
    summed = Case("", nodes, ("i", "j"), {"i": 3, "j": 4}, ({"r": 2}, {"r": 2}))
    found = block_network(kept, terms, (1, 1), ()).contract()
    assert relative_error(found, np.einsum("ir,jr->ijr", a + c, b + d)) < 1e-14
    assert relative_error(found, weighted_sum(kept, terms, (1, 1))) > 0.1
    joined = block_network(summed, terms, (1, 1), ()).contract()
    assert relative_error(joined, weighted_sum(summed, terms, (1, 1))) < 1e-14


def test_stacking_a_lone_node_along_a_physical_mode_changes_the_size_of_the_tensor() -> None:
    a, b = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    assert superdiagonal(a, b).shape == (4,)
    case = BY_NAME["lone_matrix"]
    terms = drawn(case)
    z = block_network(case, terms, WEIGHTS, ["A"])
    assert relative_error(z.contract(), weighted_sum(case, terms, WEIGHTS)) < 1e-14


@named(CONNECTED)
def test_a_weight_in_each_of_n_nodes_counts_as_its_nth_power(case: Case) -> None:
    terms = drawn(case)
    n = len(case.nodes)
    z = block_network(case, terms, (0.5, 1.25, 0.75), list(case.nodes))
    powers = [w**n for w in (0.5, 1.25, 0.75)]
    assert relative_error(dense_of(z), weighted_sum(case, terms, powers)) < 1e-12


# What tnsum does there


@named(DISCONNECTED)
def test_joining_components_by_modes_of_rank_one_changes_no_summand(case: Case) -> None:
    one = drawn(case)[1]
    joined = tnsum.Topology(case.nodes, case.physical_modes).joined
    held = {
        name: array.reshape(array.shape + (1,) * (len(joined.nodes[name]) - array.ndim))
        for name, array in one.items()
    }
    assert joined.is_connected
    assert len(joined.contraction_modes) == len(case.contraction_modes) + len(components(case)) - 1
    found = Network.from_topology(joined, held)
    assert relative_error(dense_of(found), weighted_sum(case, [one], [1])) < 1e-14


@named(MODERATE)
def test_the_explicit_sum_is_right_connected_or_not(case: Case) -> None:
    terms = drawn(case)
    s = tnsum.add(*(network(case, one) for one in terms), weights=WEIGHTS)
    assert relative_error(dense_of(s.to_network()), weighted_sum(case, terms, WEIGHTS)) < 1e-13


@named(DISCONNECTED)
def test_joining_modes_are_named_and_have_the_number_of_summands_as_rank(case: Case) -> None:
    nets = [network(case, one) for one in drawn(case)]
    z = tnsum.add(*nets, weights=WEIGHTS).to_network()
    new = [mode for mode in z.topology.modes if mode not in nets[0].topology.modes]
    assert sorted(new) == [f"join{k}" for k in range(len(components(case)) - 1)]
    assert all(z.ranks[mode] == 3 for mode in new)
    assert z.topology.is_connected
    assert (2 * nets[0]).to_network().topology == nets[0].topology


@named([BY_NAME["lone_matrix"], BY_NAME["lone_vector"]])
def test_arrays_of_a_lone_node_are_added_times_their_weights(case: Case) -> None:
    terms = drawn(case)
    s = tnsum.add(*(network(case, one) for one in terms), weights=WEIGHTS)
    expected = sum(w * one["A"] for w, one in zip(WEIGHTS, terms, strict=True))
    np.testing.assert_allclose(s.node("A"), expected, rtol=1e-14)
    assert s.to_network().shape == case.shape


@named(CONNECTED)
def test_the_explicit_sum_is_the_block_network_with_the_weights_in_the_first_node(
    case: Case,
) -> None:
    terms = drawn(case)
    z = tnsum.add(*(network(case, one) for one in terms), weights=WEIGHTS).to_network()
    expected = block_network(case, terms, WEIGHTS, list(case.nodes)[:1])
    assert z.topology == expected.topology
    for name in case.nodes:
        np.testing.assert_allclose(z.arrays[name], expected.arrays[name], rtol=1e-14)


# Slips in the paper


def tucker_arrays(
    shape: tuple[int, ...], ranks: tuple[int, ...], seed: int
) -> tuple[Array, list[Array]]:
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((n, r)) for n, r in zip(shape, ranks, strict=True)]
    return rng.standard_normal(ranks), factors


@pytest.mark.parametrize("n", [1, 2, 3])
def test_equation_3_as_printed_holds_for_the_first_and_the_last_mode_only(n: int) -> None:
    core, factors = tucker_arrays((3, 4, 5), (2, 2, 2), seed=0)
    x = tnsum.tucker(core, factors).contract()
    A = dict(enumerate(factors, 1))
    right = {1: (3, 2), 2: (3, 1), 3: (2, 1)}[n]
    printed = {1: (3, 2), 2: (1, 3), 3: (2, 1)}[n]
    unfolded = [
        A[n] @ unfold(core, n - 1) @ kronecker(*(A[k] for k in order)).T
        for order in (right, printed)
    ]
    assert relative_error(unfolded[0], unfold(x, n - 1)) < 1e-13
    assert (relative_error(unfolded[1], unfold(x, n - 1)) < 1e-13) == (n != 2)


def proposition_2(
    x: tuple[Array, list[Array]], y: tuple[Array, list[Array]], transposed: bool
) -> Array:
    """Z_* of the proof, with K_1 and K_2 as printed (transposed) or not."""
    (g_x, (a_x, b_x, c_x)), (g_y, (a_y, b_y, c_y)) = x, y
    k_1, k_2 = kronecker(c_x, b_x), kronecker(c_y, b_y)
    if transposed:
        k_1, k_2 = k_1.T, k_2.T
    middle = superdiagonal(unfold(g_x, 0), unfold(g_y, 0))
    return np.hstack([a_x, a_y]) @ middle @ np.hstack([k_1, k_2]).T


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 4, 5)])
def test_k_1_and_k_2_are_to_be_transposed_once(shape: tuple[int, ...]) -> None:
    x, y = tucker_arrays(shape, (2, 2, 2), seed=0), tucker_arrays(shape, (2, 2, 2), seed=1)
    z = unfold((tnsum.tucker(*x) + tnsum.tucker(*y)).contract(), 0)
    assert relative_error(proposition_2(x, y, transposed=False), z) < 1e-13
    if shape == (2, 2, 2):
        assert relative_error(proposition_2(x, y, transposed=True), z) > 0.1
    else:
        with pytest.raises(ValueError, match="matmul"):
            proposition_2(x, y, transposed=True)


def test_c_d_of_algorithm_1_is_extended_from_c_d_and_is_then_the_third_factor_of_the_sum() -> None:
    images = [tucker_arrays((32, 32, 3), (3, 3, 3), seed) for seed in range(2)]
    etas = [np.linalg.norm(core) for core, _ in images]
    c_d = np.hstack([eta ** (1 / 3) * f[2] for eta, (_, f) in zip(etas, images, strict=True)])
    scaled = [
        tnsum.tucker(core / eta, [eta ** (1 / 3) * factor for factor in factors])
        for eta, (core, factors) in zip(etas, images, strict=True)
    ]
    s = sum(scaled)
    np.testing.assert_allclose(s.node("factor2"), c_d, rtol=1e-14)
    dense_images = [tnsum.tucker(core, factors).contract() for core, factors in images]
    assert relative_error(s.contract(), sum(dense_images)) < 1e-13
    b_d = np.hstack([eta ** (1 / 3) * f[1] for eta, (_, f) in zip(etas, images, strict=True)])
    with pytest.raises(ValueError, match="dimension"):
        np.hstack([b_d, c_d])
