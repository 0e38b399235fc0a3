"""Sums of networks, against the dense arrays added: the table of topologies, dtypes, libraries."""

import copy
import pickle
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tnsum
from libraries import LIBRARIES, LIBRARIES_AND_DTYPES, NUMPY, Library, library, network, rounding
from oracle import dense, dense_sum, probe_sum, relative_error, vectors
from tnsum import Network, NetworkStack, NetworkSum
from topologies import BY_NAME, CASES, DTYPES, EQUAL_RANKS, Case, any_cases, arrays, random_cases

Array = NDArray[Any]

MODERATE = [case for case in CASES if case.order <= 12]
DISCONNECTED = [case for case in CASES if not case.is_connected]

# One weight of each kind; the summands' ranks differ, and equal ones do not stand side by side.
RANKS = (0, 1, 2, 1, 0)
REAL = (1.0, -2.5, 0.0, 0.5, 0.25)
COMPLEX = (1, -2.5j, 0.0, 0.5 + 1j, 0.25)


def named(cases: Sequence[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def weights_of(dtype: str) -> tuple[complex, ...]:
    return COMPLEX if dtype.startswith("complex") else REAL


def drawn(case: Case, dtype: str = "float64", ranks: Sequence[int] = RANKS) -> list[dict[str, Any]]:
    return [arrays(case, which, seed=k, dtype=dtype) for k, which in enumerate(ranks)]


def networks(case: Case, of: Library = NUMPY, dtype: str = "float64") -> list[Network]:
    return [network(case, one, of) for one in drawn(case, dtype)]


@cache
def dense_of(case: Case, weights: Sequence[complex], dtype: str = "float64") -> Array:
    return dense_sum(case.nodes, case.physical_modes, drawn(case, dtype), weights)


def dtype_of(array: Any) -> str:
    return str(array.dtype).split(".")[-1]


def block_array(
    modes: Sequence[str],
    physical: Sequence[str],
    blocks: Sequence[Array],
    weights: Sequence[complex],
) -> Array:
    """A node of Conjecture 1 from its definition, entry by entry; modes past a block's join."""
    blocks = [block.reshape(block.shape + (1,) * (len(modes) - block.ndim)) for block in blocks]
    kept = [mode in physical for mode in modes]
    sizes = zip(kept, *(block.shape for block in blocks), strict=True)
    shape = [extents[0] if is_kept else sum(extents) for is_kept, *extents in sizes]
    found = np.zeros(shape, np.result_type(*blocks, *weights))
    start = [0] * len(modes)
    for block, weight in zip(blocks, weights, strict=True):
        for index in np.ndindex(block.shape):
            found[tuple(map(sum, zip(start, index, strict=True)))] += weight * block[index]
        start = [
            s if is_kept else s + n for s, n, is_kept in zip(start, block.shape, kept, strict=True)
        ]
    return found


def block_errors(
    case: Case, explicit: Network, nodes: Mapping[str, Any], dtype: str
) -> dict[str, float]:
    """The errors of all nodes of a sum of `networks`; the first node carries the weights."""
    summands = drawn(case, dtype)
    ones = (1,) * len(summands)
    errors = {}
    for k, name in enumerate(case.nodes):
        weights = weights_of(dtype) if k == 0 else ones
        modes = explicit.topology.nodes[name]
        assert modes[: len(case.nodes[name])] == case.nodes[name]
        blocks = [summand[name] for summand in summands]
        expected = block_array(modes, case.physical_modes, blocks, weights)
        errors[f"node {name}"] = relative_error(nodes[name], expected)
        errors[f"explicit {name}"] = relative_error(explicit.arrays[name], expected)
    return errors


@cache
def indices_of(shape: tuple[int, ...]) -> Array:
    """Every index of a small tensor, some of a large one."""
    if np.prod(shape) > 2000:
        return np.random.default_rng(0).integers(0, shape, (40, len(shape)))
    return (
        np.stack([*np.indices(shape).reshape(len(shape), -1)], -1)
        if shape
        else np.zeros((1, 0), int)
    )


@named(MODERATE)
@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
def test_every_view_of_a_weighted_sum_is_that_of_the_dense_arrays_added(
    case: Case, name: str, dtype: str
) -> None:
    of = library(name)
    weights = weights_of(dtype)
    expected = dense_of(case, weights, dtype)
    other = dense(case.nodes, case.physical_modes, drawn(case, dtype)[1])
    indices = indices_of(case.shape)
    where: dict[str, int | slice] = {}
    part = expected
    if case.order > 0:
        where[case.physical_modes[-1]] = slice(0, 2)
        part = part[..., 0:2]
    if case.order > 1:
        where[case.physical_modes[0]] = 1
        part = part[1]

    def views(summands: list[Network]) -> tuple[dict[str, Any], Network, dict[str, Any]]:
        s = tnsum.add(*summands, weights=weights)
        explicit = s.to_network()
        found = {
            "contract": s.contract(),
            "explicit": explicit.contract(),
            "entries": s.entries(indices),
            "select": s.select(where).contract(),
            "norm": tnsum.norm(s),
            "inner": tnsum.inner(s, summands[1]),
            "distance": tnsum.distance(s, summands[1]),
        }
        return found, explicit, {node: s.node(node) for node in s.topology.nodes}

    found, explicit, nodes = of.compiled(views)(networks(case, of, dtype))
    right = {
        "contract": expected,
        "explicit": expected,
        "entries": expected[tuple(indices.T)] if case.order else expected[None],
        "select": part,
        "norm": np.linalg.norm(expected),
        "inner": np.vdot(expected, other),
        "distance": np.linalg.norm(expected - other),
    }
    for view, array in found.items():
        is_real = view in ("norm", "distance")
        kind = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
        assert dtype_of(array) == (kind if is_real else dtype), view
    numpy_explicit = Network.from_topology(
        explicit.topology, {node: of.to_numpy(array) for node, array in explicit.arrays.items()}
    )
    numpy_nodes = {node: of.to_numpy(array) for node, array in nodes.items()}
    errors = {view: relative_error(of.to_numpy(a), right[view]) for view, a in found.items()}
    errors |= block_errors(case, numpy_explicit, numpy_nodes, dtype)
    assert max(errors.values()) < rounding(dtype), errors


def probed(case: Case, x: Network, keep: Sequence[str], of: Library, dtype: str) -> Network:
    """The network with the oracle's vectors applied to all modes that are not kept."""
    applied = vectors(case.sizes, [m for m in case.physical_modes if m not in keep], seed=5)
    nodes = {name: (x.arrays[name], modes) for name, modes in x.topology.nodes.items()}
    kind = "float32" if dtype in ("float32", "complex64") else "float64"
    for mode, vector in applied.items():
        nodes[f"probe_{mode}"] = (of.convert(vector.astype(kind)), (mode,))
    return Network(nodes, keep)


@cache
def high_order_oracle(case: Case, dtype: str, keep: tuple[str, ...]) -> tuple[Array, Array, Array]:
    """The probe of the sum; an index, and the entry there."""
    terms, weights = drawn(case, dtype), weights_of(dtype)
    expected = probe_sum(case.nodes, case.physical_modes, terms, weights, keep, seed=5)
    indices = np.random.default_rng(0).integers(0, 2, (1, case.order))
    found = []
    for index in indices:
        at = {mode: slice(k, k + 1) for mode, k in zip(case.physical_modes, index, strict=True)}
        cut = [
            {n: one[n][tuple(at.get(m, slice(None)) for m in ms)] for n, ms in case.nodes.items()}
            for one in terms
        ]
        found.append(dense_sum(case.nodes, case.physical_modes, cut, weights).item())
    return expected, indices, np.asarray(found)


QUICK_PROBES = {("numpy", "complex64"), ("array_api_strict", "float64")}
# Of JAX, which compiles these for a minute each, one dtype.
TOO_LONG = {("jax", "float32"), ("jax", "float64")}
HIGH_ORDER = [BY_NAME["honeycomb"], pytest.param(BY_NAME["mera"], marks=pytest.mark.large)]


@pytest.mark.parametrize("case", HIGH_ORDER, ids=["honeycomb", "mera"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(*p.values, marks=[] if p.values in QUICK_PROBES else pytest.mark.large)
        for p in LIBRARIES_AND_DTYPES
        if p.values not in TOO_LONG
    ],
)
def test_sums_of_high_order_are_right_under_probes(case: Case, name: str, dtype: str) -> None:
    of = library(name)
    weights = weights_of(dtype)
    keep = case.physical_modes[3 :: case.order // 8]
    expected, indices, entries = high_order_oracle(case, dtype, keep)

    def views(summands: list[Network]) -> tuple[dict[str, Any], Network]:
        s = tnsum.add(*summands, weights=weights)
        explicit = s.to_network()
        lazy = tnsum.add(*(probed(case, x, keep, of, dtype) for x in summands), weights=weights)
        found = {
            "contract": lazy.contract(),
            "explicit": probed(case, explicit, keep, of, dtype).contract(),
            "norm": tnsum.norm(lazy),
            "entries": s.entries(indices),
        }
        return found, explicit

    found, explicit = of.compiled(views)(networks(case, of, dtype))
    right = {
        "contract": expected,
        "explicit": expected,
        "norm": np.linalg.norm(expected),
        "entries": entries,
    }
    errors = {
        view: relative_error(of.to_numpy(array), right[view]) for view, array in found.items()
    }
    blocks = {node: of.to_numpy(array) for node, array in explicit.arrays.items()}
    errors |= block_errors(case, Network.from_topology(explicit.topology, blocks), blocks, dtype)
    assert max(errors.values()) < rounding(dtype), errors


def scrambled(case: Case, one: Mapping[str, Array], seed: int, rename_physical: bool) -> Network:
    """A summand with other names and another order of nodes, of axes and, kept by name, of modes."""
    rng = np.random.default_rng(seed)
    modes = [*case.physical_modes, *case.contraction_modes]
    renamed = {mode: f"m{k}" for mode, k in zip(modes, rng.permutation(len(modes)), strict=True)}
    physical = list(case.physical_modes)
    if not rename_physical:
        renamed |= {mode: mode for mode in physical}
        physical = list(rng.permutation(physical)) if physical else []
    nodes = {}
    for k in rng.permutation(len(case.nodes)):
        name = list(case.nodes)[k]
        axes = rng.permutation(one[name].ndim)
        held = [renamed[case.nodes[name][axis]] for axis in axes]
        nodes[f"node {k}"] = (one[name].transpose(axes), held)
    return Network(nodes, [renamed[mode] for mode in physical])


@named(MODERATE)
@pytest.mark.parametrize("rename_physical", [False, True], ids=["by name", "by position"])
def test_summands_with_other_names_and_orders_add_to_the_same(
    case: Case, rename_physical: bool
) -> None:
    terms = drawn(case)
    renamed = [scrambled(case, one, k, rename_physical) for k, one in enumerate(terms[1:])]
    s = tnsum.add(network(case, terms[0]), *renamed, weights=REAL)
    assert s.topology.nodes == case.nodes
    assert s.physical_modes == case.physical_modes
    expected = dense_of(case, REAL)
    assert relative_error(s.contract(), expected) < 1e-12
    assert relative_error(s.to_network().contract(), expected) < 1e-12
    assert abs(tnsum.norm(s) / np.linalg.norm(expected) - 1) < 1e-12


TWO_NODES = BY_NAME["two_nodes"]
x, y, z, u, v = networks(TWO_NODES)
X, Y, Z, U, V = (t.contract() for t in (x, y, z, u, v))
STACKED = [network(TWO_NODES, one) for one in drawn(TWO_NODES, ranks=EQUAL_RANKS)]
STACK = NetworkStack.from_networks(STACKED)

EXPRESSIONS = {
    "x + y - z": (x + y - z, X + Y - Z, [1, 1, -1]),
    "x - (y - z)": (x - (y - z), X - Y + Z, [1, -1, 1]),
    "2 * (x + 3 * (y - z / 4))": (2 * (x + 3 * (y - z / 4)), 2 * X + 6 * Y - 1.5 * Z, [2, 6, -1.5]),
    "sum of a list": (sum([x, y, z]), X + Y + Z, [1, 1, 1]),
    "sum of a generator of sums": (sum(2 * t for t in (x, y)), 2 * X + 2 * Y, [2, 2]),
    "one term": (tnsum.add(x), X, [1]),
    "2.0 * x": (2.0 * x, 2 * X, [2]),
    "x * 2": (x * 2, 2 * X, [2]),
    "np.float64(2) * x": (np.float64(2) * x, 2 * X, [2]),
    "x * np.float32(2)": (x * np.float32(2), 2 * X, [2]),
    "np.array(2.0) * x": (np.array(2.0) * x, 2 * X, [2]),
    "x / 2": (x / 2, X / 2, [0.5]),
    "(x + y) / 4": ((x + y) / 4, (X + Y) / 4, [0.25, 0.25]),
    "-x": (-x, -X, [-1]),
    "-(x - y)": (-(x - y), Y - X, [-1, 1]),
    "+x": (+x, X, [1]),
    "0 * x + y": (0 * x + y, Y, [0, 1]),
    "mean": (tnsum.mean(x, y, z, u), (X + Y + Z + U) / 4, [0.25] * 4),
    "mean of a stack and another": (
        tnsum.mean(STACK, u),
        (STACK.contract().sum(0) + U) / 3,
        [1 / 3] * 3,
    ),
    "the sum of a stack": (STACK.sum(), STACK.contract().sum(0), [1, 1]),
    "weighted stack": (
        STACK.sum([2, -3]),
        2 * STACK.contract()[0] - 3 * STACK.contract()[1],
        [2, -3],
    ),
    "stack among others": (
        tnsum.add(x, STACK, y - u, weights=[3, -2, 0.5]),
        3 * X - 2 * STACK.contract().sum(0) + 0.5 * (Y - U),
        [3, -2, -2, 0.5, -0.5],
    ),
    "scaled weighted stack": (
        x - 2 * STACK.sum(np.array([0.5, 4.0])),
        X - STACK.contract()[0] - 8 * STACK.contract()[1],
        [1, -1, -8],
    ),
    "array of weights": (tnsum.add(x, y, weights=np.array([2, -3])), 2 * X - 3 * Y, [2, -3]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_one_flat_sum_with_these_weights_in_this_order(name: str) -> None:
    s, expected, weights = EXPRESSIONS[name]
    assert isinstance(s, NetworkSum)
    np.testing.assert_allclose(s.weights, weights, rtol=1e-15)
    assert s.n_summands == len(s.summands) == len(weights)
    assert all(isinstance(one, Network) for one in s.summands)
    ordered = sum(w * one.contract() for w, one in zip(weights, s.summands, strict=True))
    for found in (s.contract(), s.to_network().contract(), ordered):
        assert relative_error(found, expected) < 1e-14


def test_summands_keep_their_order_and_are_held_as_they_are() -> None:
    s = 2 * x + (y - z)
    for one, given_one in zip(s.summands, (x, y, z), strict=True):
        assert all(one.arrays[n] is given_one.arrays[n] for n in x.arrays)


def test_a_sum_holds_a_stack_as_one_array_per_node_without_a_copy() -> None:
    s = tnsum.add(x, STACK, weights=[1, 5])
    assert len(s._terms) == 2
    for one, k in zip(s.summands[1:], range(2), strict=True):
        for name in STACK.arrays:
            assert np.shares_memory(one.arrays[name], STACK.arrays[name])
            np.testing.assert_array_equal(one.arrays[name], STACK.arrays[name][k])


@named(CASES)
def test_ranks_add_up_and_no_zero_is_stored(case: Case) -> None:
    terms = networks(case)
    s = tnsum.add(*terms, weights=REAL)
    ranks = {mode: sum(case.ranks[k][mode] for k in RANKS) for mode in case.contraction_modes}
    assert dict(s.ranks) == ranks
    assert s.n_parameters == sum(array.size for one in drawn(case) for array in one.values())
    assert s.shape == case.shape
    sizes = {mode: len(RANKS) for mode in s.to_network().topology.modes}
    assert dict(s.to_network().sizes) == {**sizes, **ranks, **case.sizes}


@named(MODERATE)
def test_a_weight_stands_in_the_first_node_only(case: Case) -> None:
    one, other = networks(case)[:2]
    plain, doubled = (one + other).to_network(), (2 * one + other).to_network()
    differing = [n for n in case.nodes if not np.array_equal(plain.arrays[n], doubled.arrays[n])]
    assert differing == [next(iter(case.nodes))]


def test_zero_weights_are_kept_with_their_summands() -> None:
    s = 0 * x + 0.0 * y + z
    assert s.n_summands == 3
    assert s.ranks["r"] == sum(t.ranks["r"] for t in (x, y, z))
    np.testing.assert_array_equal(s.weights, [0, 0, 1])
    first = s.node("A")[:, : x.ranks["r"] + y.ranks["r"]]
    assert not first.any()
    assert s.node("B")[: x.ranks["r"]].any()


WEAK = 0.1
DTYPE_RULES = [
    (("float32", "float32"), (WEAK, np.float64(2)), "float32"),
    (("float32", "float32"), np.array([WEAK, 2.0]), "float32"),
    (("float32", "float64"), (WEAK, 2), "float64"),
    (("float64", "float32"), (WEAK, 2), "float64"),
    (("complex64", "float32"), (WEAK, 2), "complex64"),
    (("float32", "complex128"), (WEAK, 2), "complex128"),
    (("float64", "complex64"), (WEAK, 2), "complex128"),
    (("float32", "float32"), (WEAK, 2j), "complex64"),
    (("float32", "float32"), (WEAK, np.complex128(2j)), "complex64"),
    (("float32", "float32"), np.array([WEAK, 2j]), "complex64"),
    (("float64", "float64"), (WEAK, np.complex64(2j)), "complex128"),
    (("float64", "float64"), np.array([WEAK, 2], np.float32), "float64"),
]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize(("dtypes", "weights", "expected"), DTYPE_RULES)
def test_the_dtype_is_that_of_the_summands_and_weights_decide_the_kind_only(
    name: str, dtypes: tuple[str, str], weights: Any, expected: str
) -> None:
    of = library(name)
    terms = [arrays(TWO_NODES, k, seed=k, dtype=dtype) for k, dtype in enumerate(dtypes)]
    of_weights = of.convert(weights) if isinstance(weights, np.ndarray) else weights
    s = tnsum.add(*(network(TWO_NODES, one, of) for one in terms), weights=of_weights)
    dense_expected = dense_sum(TWO_NODES.nodes, TWO_NODES.physical_modes, terms, weights)
    explicit = s.to_network()
    assert dtype_of(explicit) == dtype_of(s.contract()) == expected
    assert s.dtype == explicit.dtype
    assert type(s.dtype) is type(explicit.dtype)
    for array in (s.contract(), explicit.contract()):
        assert relative_error(of.to_numpy(array), dense_expected) < rounding(expected, 1e-7)
    assert dtype_of(s.weights) in (expected, expected.replace("complex64", "float32"), "float64")


@named([BY_NAME[n] for n in ("lone_matrix", "lone_trace", "cp3", "tensor_train5", "shared_kept")])
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize(("dtype", "weights"), [("complex128", REAL), ("float64", COMPLEX)])
def test_real_and_complex_weights_and_networks_go_together(
    case: Case, name: str, dtype: str, weights: tuple[complex, ...]
) -> None:
    of = library(name)
    expected = dense_of(case, weights, dtype)
    other = dense(case.nodes, case.physical_modes, drawn(case, dtype)[1])
    indices = indices_of(case.shape)

    def views(summands: list[Network]) -> tuple[Any, ...]:
        s = tnsum.add(*summands, weights=weights)
        numbers = tnsum.norm(s), tnsum.inner(s, summands[1]), tnsum.distance(s, summands[1])
        return s.contract(), s.to_network().contract(), s.entries(indices), *numbers

    right = (
        *(expected, expected, expected[tuple(indices.T)], np.linalg.norm(expected)),
        *(np.vdot(expected, other), np.linalg.norm(expected - other)),
    )
    found = of.compiled(views)(networks(case, of, dtype))
    for array, wanted in zip(found, right, strict=True):
        assert relative_error(of.to_numpy(array), wanted) < 1e-12


JOINED = {
    "disconnected_chains": {"A": "ia join0", "B": "aj", "C": "kb join0", "D": "bl"},
    "disconnected_vectors": {"A": "i join0", "B": "j join0 join1", "C": "k join1"},
    "disconnected_scalar": {"A": "ir join0", "B": " join0", "C": "rj"},
    "shared_kept": {"A": "ir join0", "B": "jr join0"},
}


def test_a_stack_counts_as_all_its_networks_in_the_ranks_of_a_sum() -> None:
    x = tnsum.chain([np.ones((4, 2)), np.ones((2, 3))])
    y = tnsum.chain([np.ones((4, 5)), np.ones((5, 3))])
    s = tnsum.add(y, tnsum.NetworkStack.from_networks([x] * 6))
    assert list(s.ranks.values()) == [5 + 6 * 2]
    assert dict(s.ranks) == dict(s.to_network().ranks)


@pytest.mark.parametrize("name", JOINED)
def test_components_are_joined_by_modes_whose_rank_is_the_number_of_summands(name: str) -> None:
    case = BY_NAME[name]
    explicit = tnsum.add(*networks(case), weights=REAL).to_network()
    expected = {}
    for node, text in JOINED[name].items():
        own, *joining = text.split(" ")
        expected[node] = (*own, *joining)
    assert dict(explicit.topology.nodes) == expected
    assert explicit.topology.is_connected
    assert {explicit.sizes[m] for m in explicit.topology.modes if "join" in m} == {len(RANKS)}


@named(DISCONNECTED)
def test_one_summand_is_not_joined_and_an_explicit_sum_adds_again(case: Case) -> None:
    one, *others = networks(case)
    assert (3 * one).to_network().topology == one.topology
    explicit = tnsum.add(one, *others, weights=REAL).to_network()
    again = explicit - 2 * explicit
    assert relative_error(again.to_network().contract(), -dense_of(case, REAL)) < 1e-12


def test_a_mode_that_has_the_name_of_a_joining_mode_keeps_it() -> None:
    nodes = {
        "A": (np.ones((2, 3)), ("join0", "r")),
        "B": (np.ones(3), ("r",)),
        "C": (np.ones(2), ("j",)),
    }
    one = Network(nodes)
    explicit = (one + 2 * one).to_network()
    assert explicit.physical_modes == ("join0", "j")
    np.testing.assert_array_equal(explicit.contract(), np.full((2, 2), 9.0))


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nodes_that_are_single_numbers_add(name: str, dtype: str) -> None:
    of = library(name)

    def number(value: float) -> Network:
        return Network({"A": (of.convert(np.asarray(value, dtype)), ())})

    s = 2 * number(3.0) - number(5.0)
    explicit = s.to_network()
    assert type(explicit.arrays["A"]) is type(s.node("A")) is type(of.convert(np.ones(1)))
    for found in (s.contract(), explicit.contract(), (explicit - 2 * explicit).contract() * -1):
        assert of.to_numpy(found) == 1
    assert float(tnsum.norm(-s)) == float(tnsum.norm(explicit)) == 1


@pytest.mark.parametrize("name", LIBRARIES)
def test_slices_that_leave_single_numbers_as_nodes_add(name: str) -> None:
    case = BY_NAME["disconnected_vectors"]
    of = library(name)
    one, other, *_ = networks(case, of)
    s = one.select(i=1) - 2 * other.select(i=0)
    (first, second) = (of.to_numpy(t.contract()) for t in (one, other))
    for found in (s.contract(), s.to_network().contract()):
        assert relative_error(of.to_numpy(found), first[1] - 2 * second[0]) < 1e-14
    assert (
        relative_error(of.to_numpy(tnsum.norm(s)), np.linalg.norm(first[1] - 2 * second[0])) < 1e-14
    )
    assert len(NetworkStack.from_networks([one.select(i=k) for k in range(3)])) == 3


@named(MODERATE)
def test_sums_survive_pickling_and_deep_copies_and_leave_their_summands_alone(case: Case) -> None:
    terms = networks(case)
    before = copy.deepcopy([dict(t.arrays) for t in terms])
    s = tnsum.add(*terms, stack_of(case), weights=(*REAL, -1.5))
    expected = s.contract()
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), copy.copy(s)):
        assert other.topology == s.topology
        np.testing.assert_array_equal(other.weights, s.weights)
        np.testing.assert_array_equal(other.contract(), expected)
    s.to_network(), tnsum.norm(s), tnsum.inner(s, terms[0]), -s / 2
    for term, arrays_before in zip(terms, before, strict=True):
        for name, array in arrays_before.items():
            np.testing.assert_array_equal(term.arrays[name], array)


def stack_of(case: Case) -> NetworkStack:
    return NetworkStack.from_networks(
        [network(case, one) for one in drawn(case, ranks=EQUAL_RANKS)]
    )


FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
numbers = st.sampled_from([1, -1, 0, 0.5, -2.5, 1e-3, 1j, 2 - 1j])


def check_drawn(case: Case, weights: list[complex], dtype: str) -> None:
    """Every view of the sum of three, with an error relative to the summands' norms."""
    terms = [arrays(case, k, seed=k, dtype=dtype) for k in range(3)]
    nets = [network(case, one) for one in terms]
    dense_terms = [dense(case.nodes, case.physical_modes, one) for one in terms]
    expected = dense_sum(case.nodes, case.physical_modes, terms, weights)
    bound = rounding(dtype) * sum(
        abs(w) * np.linalg.norm(t) for w, t in zip(weights, dense_terms, strict=True)
    )
    s = tnsum.add(*nets, weights=weights)
    indices = indices_of(case.shape)
    entries = expected[tuple(indices.T)] if case.order else expected[None]
    assert np.linalg.norm(s.contract() - expected) <= bound
    assert np.linalg.norm(s.to_network().contract() - expected) <= bound
    assert np.linalg.norm(s.entries(indices) - entries) <= bound
    assert abs(tnsum.norm(s) - np.linalg.norm(expected)) <= bound
    other = dense_terms[0]
    assert abs(tnsum.inner(s, nets[0]) - np.vdot(expected, other)) <= bound * np.linalg.norm(other)


@given(random_cases(), st.tuples(numbers, numbers, numbers), st.sampled_from(DTYPES))
@FEW
def test_random_connected_networks_add(case: Case, weights: Any, dtype: str) -> None:
    check_drawn(case, weights, dtype)


@given(any_cases(), st.tuples(numbers, numbers, numbers), st.sampled_from(DTYPES))
@FEW
def test_random_networks_add_also_when_disconnected(case: Case, weights: Any, dtype: str) -> None:
    check_drawn(case, weights, dtype)
