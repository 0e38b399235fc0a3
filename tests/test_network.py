"""Network and NetworkStack against the oracle and against indexing of the dense array."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from oracle import dense, probe, relative_error, vectors
from tnsum import ModeError, Network, NetworkStack, Topology
from topologies import BY_NAME, CASES, DTYPES, Case, any_cases, arrays

DENSE = [case for case in CASES if case.order <= 12]
TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-13, "complex128": 1e-13}

on_dense = pytest.mark.parametrize("case", DENSE, ids=lambda case: case.name)
on_all = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def network(case: Case, which: int = 0, dtype: str = "float64", seed: int = 0) -> Network:
    held = arrays(case, which, seed, dtype)
    nodes = {name: (held[name], modes) for name, modes in case.nodes.items()}
    return Network(nodes, case.physical_modes)


def expected(case: Case, which: int = 0, dtype: str = "float64", seed: int = 0) -> NDArray[Any]:
    return dense(case.nodes, case.physical_modes, arrays(case, which, seed, dtype))


def stack(case: Case, n: int = 3, dtype: str = "float64") -> NetworkStack:
    members = [arrays(case, 0, seed, dtype) for seed in range(n)]
    held = {name: np.stack([member[name] for member in members]) for name in case.nodes}
    return NetworkStack(Topology(case.nodes, case.physical_modes), held)


def expected_stack(case: Case, n: int = 3) -> NDArray[Any]:
    return np.stack([expected(case, seed=seed) for seed in range(n)])


def all_indices(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.moveaxis(np.indices(shape), 0, -1)


def close(got: Any, wanted: Any, dtype: str = "float64") -> bool:
    return relative_error(got, wanted) < TOLERANCE[dtype] and np.asarray(got).dtype == dtype


# building


def test_a_network_is_built_by_name() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    x = Network({"A": (a, ("i", "r")), "B": [b, ["r", "j"]]})  # type: ignore[dict-item]
    assert x.topology == Topology({"A": ("i", "r"), "B": ("r", "j")})
    np.testing.assert_array_equal(x.contract(), a @ b)
    y = Network({"A": (a, ("i", "r")), "B": (b, ("r", "j"))}, physical_modes=("j", "i"))
    np.testing.assert_array_equal(y.contract(), (a @ b).T)


def test_physical_modes_are_authoritative() -> None:
    a, b = np.arange(1.0, 7.0).reshape(2, 3), np.arange(1.0, 13.0).reshape(3, 4)
    nodes = {"A": (a, ("i", "r")), "B": (b, ("r", "j"))}
    np.testing.assert_allclose(Network(nodes, ("i",)).contract(), (a @ b).sum(axis=1))
    np.testing.assert_allclose(
        Network(nodes, ("r", "i", "j")).contract(), np.einsum("ir,rj->rij", a, b)
    )
    np.testing.assert_allclose(Network(nodes, ()).contract(), (a @ b).sum())


@on_dense
def test_from_topology_and_by_name_are_the_same(case: Case) -> None:
    x = network(case)
    held = arrays(case, 0)
    y = Network.from_topology(x.topology, dict(reversed(held.items())))
    assert y.topology == x.topology
    assert list(y.arrays) == list(case.nodes)
    assert all(y.arrays[name] is held[name] for name in held)


@pytest.mark.parametrize(
    "equation",
    ["ir,rj->ij", "ir , rj -> ji", "ir,jr->ijr", "irtt,rj->ij", "ir,rj->i", "ir,rj->", "ir,,rj->ji",
     "zr,ra", "ir,jr,kr", "Zr,ar", "trr"],
)  # fmt: skip
def test_from_einsum_means_what_numpy_means(equation: str) -> None:
    rng = np.random.default_rng(0)
    terms = equation.replace(" ", "").split("->")[0].split(",")
    held = [rng.uniform(1, 2, (3,) * len(term)) for term in terms]
    x = Network.from_einsum(equation, *held)
    assert list(x.arrays) == [f"node{k}" for k in range(len(terms))]
    np.testing.assert_allclose(x.contract(), np.einsum(equation, *held), rtol=1e-14)


def test_from_einsum_keeps_a_mode_of_implicit_three_out() -> None:
    x = Network.from_einsum("ir,jr,kr", *(np.ones((2, 3)),) * 3)
    assert x.physical_modes == ("i", "j", "k")


# properties


@on_all
def test_properties_agree_with_the_table(case: Case) -> None:
    x = network(case, which=1)
    assert dict(x.ranks) == case.ranks[1]
    assert dict(x.sizes) == case.sizes | case.ranks[1]
    assert (x.shape, x.order, x.physical_modes) == (case.shape, case.order, case.physical_modes)
    assert x.n_parameters == sum(prod(case.node_shape(name, 1)) for name in case.nodes)
    assert x.dtype == np.float64
    assert x.device == "cpu"
    s = stack(case)
    assert dict(s.sizes) == case.sizes | case.ranks[0]
    assert (s.shape, s.order, dict(s.ranks)) == (case.shape, case.order, case.ranks[0])
    assert (len(s), s.n_parameters) == (3, 3 * network(case).n_parameters)


def test_arrays_are_held_and_not_copied() -> None:
    case = BY_NAME["star3"]
    held = arrays(case, 0)
    x = Network.from_topology(Topology(case.nodes, case.physical_modes), held)
    for y in (x, x.transpose(), x.rename(modes={"i": "row"}), x.conj(), x.astype("float64")):
        assert all(y.arrays[name] is held[name] for name in held)
    assert np.shares_memory(x.select(i=1).arrays["B"], held["B"])
    s = stack(case)
    assert np.shares_memory(s[1].arrays["A"], s.arrays["A"])
    assert np.shares_memory(s[1:].arrays["A"], s.arrays["A"])


@pytest.mark.parametrize("name", ["topology", "arrays", "shape", "dtype", "sizes", "new"])
@pytest.mark.parametrize("build", [network, stack])
def test_networks_and_stacks_cannot_be_changed(build: Callable[..., Any], name: str) -> None:
    x = build(BY_NAME["two_nodes"])
    with pytest.raises(AttributeError):
        setattr(x, name, None)
    for mapping in (x.arrays, x.sizes, x.ranks, x.topology.nodes):
        with pytest.raises(TypeError):
            mapping[next(iter(mapping))] = None


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("float32", "float64", "float64"),
        ("float64", "complex64", "complex128"),
        ("float32", "complex64", "complex64"),
        ("complex128", "float32", "complex128"),
    ],
)
def test_mixed_dtypes_are_brought_to_the_common_one(first: str, second: str, common: str) -> None:
    case = BY_NAME["two_nodes"]
    held = {"A": arrays(case, 0, 0, first)["A"], "B": arrays(case, 0, 1, second)["B"]}
    x = Network.from_topology(Topology(case.nodes, case.physical_modes), held)
    assert x.dtype == common
    assert {array.dtype for array in x.arrays.values()} == {np.dtype(common)}
    assert close(x.contract(), dense(case.nodes, case.physical_modes, held), common)


# NumPy warns of NaN in a product on some processors (with AVX-512) and not on others.
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")
def test_nan_is_carried() -> None:
    a = np.array([[np.nan, 1.0], [2.0, np.inf]])
    x = Network.from_einsum("ir,rj->ij", a, np.ones((2, 2)))
    np.testing.assert_array_equal(x.contract(), [[np.nan, np.nan], [np.inf, np.inf]])
    assert np.isnan(x.entries([0, 1]))
    assert x.entries([1, 1]) == np.inf


def test_repr_says_sizes() -> None:
    x = Network.from_einsum("ir,rj->ij", np.ones((2, 3), "float32"), np.ones((3, 4), "float32"))
    nodes = "\n  node0: i=2, r=3\n  node1: r=3, j=4"
    assert repr(x) == "Network of order 2, shape (2, 4), float32, 18 parameters" + nodes
    s = NetworkStack.from_networks([x] * 5)
    assert repr(s) == (
        "NetworkStack of 5 networks of order 2, shape (2, 4), float32, 90 parameters" + nodes
    )
    lines = repr(network(BY_NAME["honeycomb"])).splitlines()
    assert len(lines) == 14
    assert lines[-1] == "  ... and 26 more nodes"


# contract, entries


@on_dense
@pytest.mark.parametrize("dtype", DTYPES)
def test_contract_is_the_dense_array(case: Case, dtype: str) -> None:
    for which in (0, 1):
        got = network(case, which, dtype).contract()
        assert isinstance(got, np.ndarray)
        assert close(got, expected(case, which, dtype), dtype)


def test_contract_gives_an_array_at_order_zero_too() -> None:
    a = np.arange(1.0, 5.0).reshape(2, 2)
    for equation, held in (("rr->", [a]), ("rs,sr->", [a, a]), ("->", [a[0, 0, ...]])):
        got = Network.from_einsum(equation, *held).contract()
        assert isinstance(got, np.ndarray)
        assert got == np.einsum(equation, *held)


@settings(max_examples=60, deadline=None)
@given(any_cases())
def test_contract_and_entries_of_any_network_are_the_dense_array(case: Case) -> None:
    x, wanted = network(case, 1), expected(case, 1)
    assert relative_error(x.contract(), wanted) < 1e-12
    assert relative_error(x.entries(all_indices(case.shape)), wanted) < 1e-12


@pytest.mark.parametrize("case", [c for c in CASES if c.order > 12], ids=lambda case: case.name)
def test_select_and_contract_of_high_order_agree_with_the_probe(case: Case) -> None:
    # Vectors on all but 8 modes, on our side as further nodes.
    keep = case.physical_modes[::4][:8]
    probed = [mode for mode in case.physical_modes if mode not in keep]
    held = arrays(case, 0)
    applied = vectors(case.sizes, probed, 7)
    nodes = {name: (held[name], modes) for name, modes in case.nodes.items()}
    nodes |= {f"vector of {mode}": (applied[mode], (mode,)) for mode in probed}
    got = Network(nodes, keep).contract()
    assert close(got, probe(case.nodes, case.physical_modes, held, keep, 7))
    ones = dict.fromkeys(probed, 1)
    units = {f"vector of {mode}": np.array([0.0, 1.0]) for mode in probed}
    at_one = dense(case.nodes | {name: (name[10:],) for name in units}, keep, held | units)
    assert close(network(case).select(ones).contract(), at_one)
    index = np.ones((2, case.order), int)
    assert close(network(case).entries(index), np.full(2, at_one[(1,) * len(keep)]))


@on_dense
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_all_entries_are_the_dense_array(case: Case, dtype: str) -> None:
    x, wanted = network(case, 1, dtype), expected(case, 1, dtype)
    indices = all_indices(case.shape)
    assert close(x.entries(indices), wanted, dtype)
    from_the_end = indices - np.array(case.shape, int)
    assert close(x.entries(from_the_end), wanted, dtype)
    single = x.entries([0] * case.order)
    assert np.shape(single) == ()
    assert isinstance(single, np.generic)
    assert close(single, wanted[(0,) * case.order], dtype)


def test_entries_take_what_numpy_takes_as_indices() -> None:
    case = BY_NAME["star3"]
    x, wanted = network(case), expected(case)
    assert close(x.entries([[2, 1, 3], [0, -1, -4]]), wanted[[2, 0], [1, -1], [3, -4]])
    assert close(x.entries(((2, 1, 3),)), wanted[2:, 1, 3])
    assert close(x.entries(np.ones((2, 1, 3), "uint8")), np.full((2, 1), wanted[1, 1, 1]))
    assert x.entries(np.empty((0, 3), int)).shape == (0,)
    closed = BY_NAME["closed_ring"]
    assert close(network(closed).entries(()), expected(closed))
    assert close(network(closed).entries(np.empty((4, 0), int)), np.full(4, expected(closed)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64", "int64"])
def test_entries_do_not_overflow_narrow_indices(dtype: str) -> None:
    a = np.arange(1.0, 20 * 30 + 1).reshape(20, 30)
    indices = np.array([[15, 3], [19, 29]], dtype)
    got = Network.from_einsum("ij->ij", a).entries(indices)
    np.testing.assert_array_equal(got, a[[15, 19], [3, 29]])
    wide = np.arange(1.0, 601).reshape(300, 2)
    got = Network.from_einsum("ij->ij", wide).entries(np.array([[99, 1]], dtype))
    np.testing.assert_array_equal(got, wide[[99], [1]])


# select


SELECTIONS: list[Callable[[int], Any]] = [
    lambda size: size - 1,
    lambda size: -size,
    lambda size: np.int64(size // 2),
    lambda size: slice(1, None),
    lambda size: slice(None, None, 2),
    lambda size: slice(-1, None),
    lambda size: slice(None, None, -1),
    lambda size: slice(size // 2, size // 2 + 1),
]


@on_dense
@pytest.mark.parametrize("number", range(len(SELECTIONS)))
def test_select_is_indexing_of_the_dense_array(case: Case, number: int) -> None:
    # Every mode alone, then all of them, each with another selection.
    x, wanted = network(case, 1), expected(case, 1)
    turns = {
        mode: SELECTIONS[(number + k) % len(SELECTIONS)](case.sizes[mode])
        for k, mode in enumerate(case.physical_modes)
    }
    for chosen in [{mode: index} for mode, index in turns.items()] + [turns]:
        where = tuple(chosen.get(mode, slice(None)) for mode in case.physical_modes)
        got = np.asarray(x.select(chosen).contract())
        assert got.shape == wanted[where].shape
        np.testing.assert_allclose(got, wanted[where], rtol=0, atol=1e-13 * np.abs(wanted).max())
    kept = tuple(m for m, index in turns.items() if isinstance(index, slice))
    assert x.select(turns).physical_modes == kept
    assert x.select(turns).topology.contraction_modes == x.topology.contraction_modes


def test_select_takes_keywords_a_mapping_and_both() -> None:
    case = BY_NAME["star3"]
    x = network(case).rename(modes={"i": "row 1", "j": "self", "k": "indices"})
    wanted = expected(case)[1, :, 2:]
    assert close(x.select({"row 1": 1}, indices=slice(2, None)).contract(), wanted)
    assert close(x.select({"row 1": 1, "indices": slice(2, None)}).contract(), wanted)
    assert close(x.select(self=1).contract(), expected(case)[:, 1])
    assert close(x.select().contract(), expected(case))


# rename, astype, conj, transpose, copies


@on_dense
def test_rename_keeps_the_tensor(case: Case) -> None:
    x = network(case)
    y = x.rename({m: f"{m} new" for m in x.topology.modes}, {n: f"{n} new" for n in case.nodes})
    assert y.physical_modes == tuple(f"{mode} new" for mode in case.physical_modes)
    assert list(y.arrays) == [f"{name} new" for name in case.nodes]
    assert close(y.contract(), expected(case))
    assert x.physical_modes == case.physical_modes


@on_dense
def test_transpose_orders_the_axes(case: Case) -> None:
    x, wanted = network(case), expected(case)
    axes = np.random.default_rng(0).permutation(case.order).tolist()
    names = [case.physical_modes[k] for k in axes]
    assert close(x.transpose().contract(), wanted.T)
    if case.order:
        assert close(x.transpose(*names).contract(), wanted.transpose(axes))
        assert close(x.transpose(*axes).contract(), wanted.transpose(axes))
        assert close(
            x.transpose(*(k - case.order for k in axes)).contract(), wanted.transpose(axes)
        )
        assert close(x.transpose(*names[:1], *axes[1:]).contract(), wanted.transpose(axes))
        assert x.transpose(*axes).physical_modes == tuple(names)
        assert x.transpose(*axes).entries([0] * case.order) == x.entries([0] * case.order)


def test_transpose_takes_numpys_integers() -> None:
    x = network(BY_NAME["star3"])
    assert x.transpose(*np.array([2, 0, -2])).physical_modes == ("k", "i", "j")


@on_dense
def test_conj_conjugates_and_astype_converts(case: Case) -> None:
    x, wanted = network(case, 0, "complex128"), expected(case, 0, "complex128")
    assert np.any(wanted.imag)
    assert close(x.conj().contract(), wanted.conj(), "complex128")
    assert close(x.astype("complex64").contract(), wanted, "complex64")
    real = network(case)
    for dtype in ("complex128", complex, np.complex128, np.dtype("complex128")):
        assert close(real.astype(dtype).contract(), expected(case), "complex128")
    assert close(real.astype(np.float32).contract(), expected(case), "float32")
    assert close(real.to_device("cpu").contract(), expected(case))


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), deepcopy])
@pytest.mark.parametrize("build", [network, stack])
@on_dense
def test_pickles_and_copies_are_equal_and_apart(
    case: Case, build: Callable[..., Any], copied: Callable[[Any], Any]
) -> None:
    x = build(case)
    y = copied(x)
    assert type(y) is type(x)
    assert y is not x
    assert y.topology == x.topology
    np.testing.assert_array_equal(y.contract(), x.contract())
    assert not any(np.shares_memory(y.arrays[n], x.arrays[n]) for n in x.arrays)


def test_networks_equal_by_identity() -> None:
    x, y = network(BY_NAME["star3"]), network(BY_NAME["star3"])
    assert x == x
    assert x != y
    assert len({x, y, x}) == 2


# stacks


@on_dense
def test_a_stack_contracts_to_the_stacked_dense_arrays(case: Case) -> None:
    s, wanted = stack(case), expected_stack(case)
    assert close(s.contract(), wanted)
    assert close(s.entries(all_indices(case.shape)), wanted)
    assert close(s.entries([-1] * case.order), wanted[(slice(None), *(-1,) * case.order)])
    assert close(s.transpose().contract(), np.stack([each.T for each in wanted]))
    assert close(s.astype("complex128").conj().contract(), wanted, "complex128")
    if case.order:
        mode = case.physical_modes[-1]
        assert close(s.select({mode: 1}).contract(), wanted[..., 1])
        assert close(s.select({mode: slice(1, None)}).contract(), wanted[..., 1:])
        assert close(s.rename({mode: "new"}).select(new=-1).contract(), wanted[..., -1])


def test_a_stack_is_indexed_sliced_and_iterated() -> None:
    case = BY_NAME["ring4"]
    s, wanted = stack(case, 5), expected_stack(case, 5)
    assert len(s) == 5
    for index in (0, 4, -1, -5, np.int64(2)):
        assert isinstance(s[index], Network)
        assert close(s[index].contract(), wanted[index])
    for where in (slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(-2, None)):
        assert isinstance(s[where], NetworkStack)
        assert close(s[where].contract(), wanted[where])
    assert [close(x.contract(), w) for x, w in zip(s, wanted, strict=True)] == [True] * 5
    for index in (5, -6):
        with pytest.raises(IndexError):
            s[index]
    for bad in ("0", 1.5, None):
        with pytest.raises(TypeError):
            s[bad]  # type: ignore[index]


@on_dense
def test_from_networks_matches_names_and_axes(case: Case) -> None:
    x, y = network(case, 0), network(case, 2)
    other = y.rename({m: f"{m} new" for m in y.topology.modes}, {n: f"{n} new" for n in case.nodes})
    turned = Network(
        {n: (other.arrays[n].T, other.topology.nodes[n][::-1]) for n in reversed(other.arrays)},
        other.physical_modes,
    )
    for networks in ([x, y, x], [x, turned, x], (each for each in (x, turned, x))):
        s = NetworkStack.from_networks(networks)  # type: ignore[arg-type]
        assert s.topology == x.topology
        wanted = expected(case, 0), expected(case, 2), expected(case, 0)
        assert close(s.contract(), np.stack(wanted))


def test_concatenate_joins_stacks_of_other_names_and_dtypes() -> None:
    case = BY_NAME["star3"]
    s, t = stack(case, 2), stack(case, 3, "complex64").rename({"i": "x", "j": "y", "k": "z"})
    joined = NetworkStack.concatenate([s, t[1:], s[:1]])
    parts = [s.contract(), t.contract()[1:], s.contract()[:1]]
    assert len(joined) == 5
    assert joined.topology == s.topology
    assert relative_error(joined.contract(), np.concatenate(parts)) < 1e-6
    assert joined.dtype == np.complex128
    assert np.any(joined.contract().imag)


@on_dense
def test_the_sum_of_a_stack_weighs_every_network(case: Case) -> None:
    s, wanted = stack(case), expected_stack(case)
    assert close(s.sum().contract(), wanted.sum(axis=0))
    weights = [2.0, -0.5, 3.0]
    total = np.tensordot(weights, wanted, 1)
    for given_weights in (weights, np.array(weights), [2, np.float32(-0.5), np.array(3.0)]):
        assert close(s.sum(given_weights).contract(), total)
    assert close(s.sum(np.array([0, 3, 0])).contract(), 3 * wanted[1])
    complex_weights = np.array([1j, 2.0, -1.0])
    assert close(
        s.sum(complex_weights).contract(), np.tensordot(complex_weights, wanted, 1), "complex128"
    )
    assert s.sum().n_summands == 3


def test_a_stack_may_hold_more_networks_than_fit_one_piece() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 2, (300, 60, 2)), rng.uniform(1, 2, (300, 2, 70))
    s = NetworkStack(Topology({"A": ("i", "r"), "B": ("r", "j")}), {"A": a, "B": b})
    assert close(s.contract(), a @ b)
    assert close(s.sum().contract(), (a @ b).sum(axis=0))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("n", [1, 3, 2000])
def test_a_stack_of_networks_large_or_small_holds_each(n: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    networks = []
    for _ in range(n):
        a, b, one = (rng.standard_normal(shape).astype(dtype) for shape in ((20, 30), (30, 3), ()))
        # In any order in memory.
        held = {"A": (np.asfortranarray(a), ("i", "r")), "B": (b, ("r", "j")), "one": (one, ())}
        networks.append(Network(held))
    stack = NetworkStack.from_networks(networks)
    assert len(stack) == n
    for name, array in stack.arrays.items():
        assert array.dtype == dtype
        for k in (0, n // 2, n - 1):
            assert np.array_equal(array[k], networks[k].arrays[name])
    # Nothing of a stack is another part of it, or of the networks.
    stack.arrays["B"][...] = 0
    assert np.array_equal(stack.arrays["A"][n - 1], networks[n - 1].arrays["A"])
    assert n == 1 or np.any(networks[0].arrays["B"])


def test_unknown_modes_are_refused_by_all() -> None:
    x = network(BY_NAME["star3"])
    calls: list[Callable[[], Any]] = [
        lambda: x.select(q=0),
        lambda: x.select(a=0),
        lambda: x.rename({"q": "z"}),
        lambda: x.transpose("i", "j", "a"),
        lambda: x.topology.holders("q"),
    ]
    for call in calls:
        with pytest.raises(ModeError):
            call()
