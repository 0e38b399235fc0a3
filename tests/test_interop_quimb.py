"""Networks from and to quimb: the same arrays, names and values, and what quimb cannot hold."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import oracle
import tnsum
from libraries import library, network, rounding
from raising import check_message, check_missing, unreached
from test_peers import peer
from tnsum import ModeError, Network, NetworkError, TopologyError
from tnsum.interop import quimb as module
from tnsum.interop.quimb import from_quimb, to_quimb
from topologies import CASES, DTYPES, Case, any_cases, arrays

pytestmark = pytest.mark.large


@pytest.fixture
def qtn() -> Any:
    """quimb's module of networks, whose random ones are the same in every run."""
    found = peer("quimb.tensor")
    peer("quimb").seed_rand(0)
    return found


def random(seed: int, *shape: int, dtype: str = "float64") -> Any:
    rng = np.random.default_rng([seed, *shape])
    phases = rng.uniform(-0.5, 0.5, shape) * 1j if dtype.startswith("complex") else 0
    return (rng.uniform(0.5, 1.5, shape) * np.exp(phases)).astype(dtype)


def train(order: int, rank: int = 2, n_physical: int = 1, dtype: str = "float64") -> Network:
    """A tensor train of sizes 2, 3, 2, ..., or of operators with sizes (2, 3), (3, 4), ..."""
    ranks = [1, *[rank] * (order - 1), 1]
    sizes = [[2 + k % 2, 3 + k % 2][:n_physical] for k in range(order)]
    shapes = [(ranks[k], *sizes[k], ranks[k + 1]) for k in range(order)]
    return tnsum.tensor_train([random(k, *shape, dtype=dtype) for k, shape in enumerate(shapes)])


def grid(height: int, width: int, rank: int = 2, seed: int = 0) -> Network:
    def shape(a: int, b: int) -> list[int]:
        up, right, down, left = a > 0, b < width - 1, a < height - 1, b > 0
        return [rank] * up + [rank + 1] * right + [rank] * down + [rank + 1] * left + [2 + b % 2]

    return tnsum.grid(
        [[random(seed + 9 * a + b, *shape(a, b)) for b in range(width)] for a in range(height)]
    )


def same_arrays(x: Network, y: Network) -> None:
    """Assert that both have the same names, and the very same arrays."""
    assert x.topology.nodes == y.topology.nodes
    for name, array in x.arrays.items():
        assert y.arrays[name] is array


def close(x: Any, expected: Any, tolerance: float = 1e-13) -> None:
    dense = x.contract()
    assert oracle.relative_error(dense, np.asarray(expected).reshape(dense.shape)) < tolerance


def is_held_by_quimb(case: Case) -> bool:
    """Whether exactly the physical modes are held once."""
    counts = Counter(mode for modes in case.nodes.values() for mode in modes)
    return {mode for mode in counts if counts[mode] == 1} == set(case.physical_modes)


# Any topology


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_networks_keep_names_arrays_and_values(qtn: Any, case: Case, dtype: str) -> None:
    given_arrays = arrays(case, 0, dtype=dtype)
    x = network(case, given_arrays)
    if not is_held_by_quimb(case):
        with pytest.raises(ModeError, match="quimb"):
            to_quimb(x)
        return
    theirs = to_quimb(x)
    assert type(theirs) is qtn.TensorNetwork
    assert [tuple(t.tags) for t in theirs.tensors] == [(name,) for name in case.nodes]
    back = from_quimb(theirs, physical_modes=x.physical_modes)
    same_arrays(x, back)
    assert back.topology == x.topology
    appearing = tnsum.Topology(case.nodes).physical_modes
    assert from_quimb(theirs).physical_modes == appearing == theirs.outer_inds()
    if case.order <= 16:
        dense = theirs.contract(output_inds=case.physical_modes)
        expected = oracle.dense(case.nodes, case.physical_modes, given_arrays)
        found = np.asarray(getattr(dense, "data", dense))
        assert oracle.relative_error(found, expected) < rounding(dtype, 1e-12)


def test_most_topologies_are_held_by_quimb() -> None:
    refused = {case.name for case in CASES if not is_held_by_quimb(case)}
    assert refused == {"lone_summed_once", "summed_once", "shared_kept",
                       "shared_kept_and_summed", "kept_twice"}  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(any_cases())
def test_random_networks_are_refused_or_keep_their_values(case: Case) -> None:
    qtn = peer("quimb.tensor")
    x = network(case, arrays(case, 0))
    if not is_held_by_quimb(case):
        with pytest.raises(ModeError, match="quimb"):
            to_quimb(x)
        return
    theirs = to_quimb(x)
    assert isinstance(theirs, qtn.TensorNetwork)
    same_arrays(x, from_quimb(theirs))
    assert from_quimb(theirs, x.physical_modes).topology == x.topology
    dense = theirs.contract(output_inds=case.physical_modes)
    expected = oracle.dense(case.nodes, case.physical_modes, arrays(case, 0))
    np.testing.assert_allclose(getattr(dense, "data", dense), expected, rtol=1e-10, atol=1e-10)


def test_what_quimb_cannot_hold_it_holds_after_what_the_error_advises() -> None:
    peer("quimb.tensor")
    a, b = random(0, 3, 4), random(1, 5, 4)
    kept = Network({"A": (a, ("i", "r")), "B": (b, ("j", "r"))}, ("i", "j", "r"))
    joined = {"A": (a, ("i", "s")), "B": (b, ("j", "s")), "eye": (np.eye(4), ("s", "r"))}
    theirs = to_quimb(Network(joined))
    assert theirs.outer_inds() == ("i", "j", "r")
    close(from_quimb(theirs), kept.contract())
    once = Network({"A": (a, ("i", "r"))}, ("i",))
    theirs = to_quimb(Network({"A": (a, ("i", "r")), "ones": (np.ones(4), ("r",))}))
    close(from_quimb(theirs), once.contract())


# quimb's classes


def quimb_networks(dtype: str = "complex128") -> dict[str, Callable[[Any], Any]]:
    return {
        "mps": lambda q: q.MPS_rand_state(6, 3, dtype=dtype),
        "mps of one site": lambda q: q.MPS_rand_state(1, 3, dtype=dtype),
        "cyclic mps": lambda q: q.MPS_rand_state(5, 3, cyclic=True, dtype=dtype),
        "dense": lambda q: q.Dense1D(random(0, 16, dtype=dtype), phys_dim=2),
        "peps": lambda q: q.PEPS.rand(2, 3, 2, dtype=dtype),
        "cyclic peps": lambda q: q.PEPS.rand(3, 3, 2, cyclic=True, dtype=dtype),
        "mera": lambda q: q.MERA.rand(8, dtype=dtype),
        "mpo": lambda q: q.MPO_rand(4, 3, dtype=dtype),
        "cyclic mpo": lambda q: q.MPO_rand(4, 3, cyclic=True, dtype=dtype),
        "pepo": lambda q: q.PEPO.rand(2, 2, 2, dtype=dtype),
        "peps in 3D": lambda q: q.PEPS3D.rand(2, 2, 2, 2, dtype=dtype),
        "circuit": lambda q: circuit(q).psi.astype(dtype),
        "unitary": lambda q: circuit(q).get_uni().astype(dtype),
    }


def circuit(qtn: Any) -> Any:
    made = qtn.Circuit(3)
    made.h(0)
    made.cnot(0, 1)
    made.ry(0.3, 2)
    made.cz(2, 0)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", quimb_networks())
@pytest.mark.filterwarnings("ignore")
def test_quimb_networks_have_the_axes_of_to_dense(qtn: Any, name: str, dtype: str) -> None:
    theirs = quimb_networks(dtype)[name](qtn)
    x = from_quimb(theirs)
    assert x.dtype == dtype
    for array, tensor in zip(x.arrays.values(), theirs.tensors, strict=True):
        assert array is tensor.data
    dense = theirs.to_dense()
    assert oracle.relative_error(x.contract().reshape(dense.shape), dense) < rounding(dtype)
    assert len(set(x.arrays)) == theirs.num_tensors


def test_nodes_and_modes_are_named_as_in_quimb(qtn: Any) -> None:
    x = from_quimb(qtn.MPS_rand_state(3, 2))
    assert tuple(x.arrays) == ("I0", "I1", "I2")
    assert x.physical_modes == ("k0", "k1", "k2")
    x = from_quimb(qtn.PEPS.rand(2, 2, 2))
    assert tuple(x.arrays) == ("I0,0", "I0,1", "I1,0", "I1,1")
    assert x.physical_modes == ("k0,0", "k0,1", "k1,0", "k1,1")
    x = from_quimb(qtn.MPO_rand(2, 2))
    assert x.physical_modes == ("k0", "k1", "b0", "b1")
    x = from_quimb(qtn.PEPO.rand(2, 2, 2))
    assert x.physical_modes[3:5] == ("k1,1", "b0,0")


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ([["A"], ["B"]], ["A", "B"]),
        ([["all", "A"], ["B", "all"]], ["A", "B"]),
        ([[], []], ["node0", "node1"]),
        ([["all"], ["all"]], ["node0", "node1"]),
        ([["node1"], []], ["node1", "node1_"]),
        ([[], ["node0"]], ["node0_", "node0"]),
        ([["node1"], ["x"], []], ["node1", "x", "node2"]),
        ([["node1"], [], ["node1_"]], ["node1", "node1__", "node1_"]),
        # The second tag names no node, so the name is free.
        ([["A", "node1"], []], ["A", "node1"]),
    ],
)
def test_nodes_are_named_by_the_first_tag_of_their_own(
    qtn: Any, tags: list[list[str]], names: list[str]
) -> None:
    tensors = [qtn.Tensor(np.ones(2), [f"i{k}"], tags=tag) for k, tag in enumerate(tags)]
    assert list(from_quimb(qtn.TensorNetwork(tensors)).arrays) == names


def test_sites_that_lost_their_indices_leave_the_order_of_the_others(qtn: Any) -> None:
    mps = qtn.MPS_rand_state(4, 2)
    dense = mps.to_dense().reshape(2, 2, 2, 2)
    x = from_quimb(mps.isel({"k1": 1}))
    assert x.physical_modes == ("k0", "k2", "k3")
    close(x, dense[:, 1])
    renamed = mps.reindex({"k1": "q"})
    x = from_quimb(renamed)
    assert x.physical_modes == renamed.outer_inds()
    close(x.transpose("k0", "q", "k2", "k3"), dense)
    # The sites of this one are not those that quimb counts.
    some = qtn.MatrixProductState([t.data for t in mps], sites=(1, 3, 6, 7))
    close(from_quimb(some), dense)
    # Tensors in another order than the sites.
    mps = qtn.MPS_rand_state(4, 2)
    dense = mps.to_dense()
    moved = qtn.TensorNetwork(reversed(mps.tensors)).view_as(
        qtn.MatrixProductState, L=4, cyclic=False, site_ind_id="k{}", site_tag_id="I{}"
    )
    assert moved.outer_inds() == ("k3", "k2", "k1", "k0")
    assert from_quimb(moved).physical_modes == ("k0", "k1", "k2", "k3")
    close(from_quimb(moved), dense)


def test_physical_modes_may_be_chosen(qtn: Any) -> None:
    mps = qtn.MPS_rand_state(3, 2)
    dense = mps.to_dense().reshape(2, 2, 2)
    close(from_quimb(mps, physical_modes=["k2", "k0"]), dense.sum(axis=1).T)
    close(from_quimb(mps, ()), dense.sum())
    factors = [random(n, n + 2, 3) for n in range(3)]
    hyper = qtn.TensorNetwork([qtn.Tensor(f, (f"i{n}", "r")) for n, f in enumerate(factors)])
    close(from_quimb(hyper), np.einsum("ar,br,cr->abc", *factors))
    close(from_quimb(hyper, ("r", "i0", "i2")), np.einsum("ar,br,cr->rac", *factors))


def test_single_tensors_traces_scalars_and_parameters(qtn: Any) -> None:
    array = random(0, 3, 2, 4, 2)
    tensor = qtn.Tensor(array, ("i", "r", "j", "r"), tags=["all", "A"])
    x = from_quimb(tensor)
    assert x.physical_modes == ("i", "j")
    assert tuple(x.arrays) == ("all",)
    assert x.arrays["all"] is array
    assert tensor.owners == {}
    close(x, np.einsum("irjr->ij", array))
    scalars = [qtn.Tensor(2.0), qtn.Tensor(np.float64(3)), qtn.Tensor(array[0, 0, 0], ("i",))]
    x = from_quimb(qtn.TensorNetwork(scalars))
    assert x.physical_modes == ("i",)
    close(x, 6 * array[0, 0, 0])
    assert from_quimb(qtn.Tensor(2.5)).contract() == 2.5
    parametrised = qtn.PTensor(lambda p: p.reshape(2, 3), np.arange(6.0), inds=("a", "b"))
    np.testing.assert_array_equal(from_quimb(parametrised).contract(), np.arange(6.0).reshape(2, 3))
    copied = qtn.TensorNetwork([parametrised, qtn.Tensor(np.ones(3), ("b",))])
    close(from_quimb(copied), [3.0, 12.0])


def test_trace_that_quimb_calls_outer_is_summed(qtn: Any) -> None:
    array = random(0, 3, 2, 4, 2)
    theirs = qtn.TensorNetwork(
        [qtn.Tensor(array, ("i", "r", "j", "r")), qtn.Tensor(random(1, 2), ("r",), tags=["B"])]
    )
    theirs.delete("B")
    assert theirs.outer_inds() == ("i", "j", "r")
    close(from_quimb(theirs), np.einsum("irjr->ij", array))
    np.testing.assert_allclose(theirs.contract().data, np.einsum("irjr->ij", array))


# The exponent


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [1.0, 1e-7, 3e7])
def test_equalised_norms_are_multiplied_back(qtn: Any, value: float, dtype: str) -> None:
    mps = qtn.MPS_rand_state(6, 3, dtype=dtype)
    equalised = mps.equalize_norms(value)
    assert abs(equalised.exponent) > 0.01
    x = from_quimb(equalised)
    assert x.dtype == dtype
    close(x, mps.to_dense(), rounding(dtype, 1e-12, 1e-3))
    close(from_quimb(mps.equalize_norms()), mps.to_dense(), rounding(dtype, 1e-12, 1e-3))


def test_zero_exponent_copies_nothing_and_others_as_little_as_they_need(qtn: Any) -> None:
    mps = qtn.MPS_rand_state(20, 3)

    def n_new(exponent: Any) -> int:
        mps.exponent = exponent
        x = from_quimb(mps)
        held = zip(x.arrays.values(), mps.tensors, strict=True)
        return sum(not np.shares_memory(array, tensor.data) for array, tensor in held)

    assert [n_new(e) for e in (0.0, 0, np.float64(0), np.asarray(0.0), -0.0)] == [0] * 5
    assert [n_new(e) for e in (2.0, -30, 30.5, -60.5, 400, -400)] == [1, 1, 2, 3, 14, 14]
    mps = mps.astype("complex64")
    assert [n_new(e) for e in (2.0, -8, 8.5, np.float32(-80.0))] == [1, 1, 2, 10]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("dtype", "power", "order"), [("float64", 2, 200), ("complex64", 1, 100), ("float64", 100, 4)]
)
def test_large_exponents_neither_overflow_nor_lose_digits(
    qtn: Any, dtype: str, power: int, order: int, sign: int
) -> None:
    mps = qtn.MPS_rand_state(order, 3, dtype=dtype)
    expected = [mps.amplitude([0] * order), mps.norm()] if order < 5 else None
    for tensor in mps.tensors:
        tensor.modify(data=tensor.data * np.dtype(dtype).type(10.0 ** (-sign * power)))
    mps.exponent = float(sign * power * order)
    x = from_quimb(mps)
    assert all(np.all(np.isfinite(array)) for array in x.arrays.values())
    assert tnsum.norm(x) == pytest.approx(1, rel=rounding(dtype, 1e-12, 1e-3))
    if expected is not None:
        found = [x.entries([0] * order), tnsum.norm(x)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_exponent_goes_where_there_is_room(qtn: Any) -> None:
    for sign in (1, -1):
        large = np.full(3, 10.0 ** (sign * 260))
        inds = [("i", "r"), ("r",), ("i",)]
        data = [np.ones((2, 3)), large, np.zeros(2)]
        tensors = [qtn.Tensor(a, i) for a, i in zip(data, inds, strict=True)]
        theirs = qtn.TensorNetwork([tensors[1], tensors[0], tensors[2]])
        theirs.exponent = sign * 50.0
        x = from_quimb(theirs, ("i",))
        assert x.arrays["node0"] is large
        np.testing.assert_allclose(x.arrays["node1"], 10.0 ** (sign * 30))
        assert not np.any(x.arrays["node2"])


def test_exponent_of_tensors_that_are_not_finite_is_carried(qtn: Any) -> None:
    theirs = qtn.TensorNetwork([qtn.Tensor(np.array([np.nan, np.inf, 1.0]), ("i",))])
    theirs.exponent = 1.0
    np.testing.assert_array_equal(from_quimb(theirs).contract(), [np.nan, np.inf, 10.0])


# From tnsum to quimb's classes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [1, 2, 3, 6])
@pytest.mark.parametrize(("kind", "letters"), [("mps", "k"), ("mpo", "kb")])
def test_trains_become_mps_and_mpo(
    qtn: Any, kind: str, letters: str, order: int, dtype: str
) -> None:
    x = train(order, n_physical=len(letters), dtype=dtype)
    theirs = to_quimb(x, kind)
    made = qtn.MatrixProductState if kind == "mps" else qtn.MatrixProductOperator
    assert type(theirs) is made
    assert theirs.num_tensors == order
    assert not theirs.cyclic
    dense = theirs.to_dense()
    assert oracle.relative_error(dense.reshape(x.shape), x.contract()) < rounding(dtype)
    for k in range(order):
        assert np.shares_memory(theirs[k].data, x.arrays[f"node{k}"])
    back = from_quimb(theirs)
    assert tuple(back.arrays) == tuple(f"I{k}" for k in range(order))
    assert back.physical_modes == tuple(f"{c}{k}" for c in letters for k in range(order))
    close(back, x.contract(), rounding(dtype))
    for ours, again in zip(theirs.arrays, to_quimb(back, kind).arrays, strict=True):
        np.testing.assert_array_equal(ours, again)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 2), (2, 3), (3, 2), (3, 3)])
def test_grids_become_peps(qtn: Any, shape: tuple[int, int]) -> None:
    x = grid(*shape)
    theirs = to_quimb(x, "peps")
    assert type(theirs) is qtn.PEPS
    assert (theirs.Lx, theirs.Ly) == shape
    # Under other names a single column is the same network as a single row.
    renamed = to_quimb(x.rename(nodes={"node0_0": "A"}), "peps")
    assert (renamed.Lx, renamed.Ly) == (shape if 1 not in shape else (1, max(shape)))
    assert oracle.relative_error(theirs.to_dense().reshape(x.shape), x.contract()) < 1e-13
    for tensor, array in zip(theirs.tensors, x.arrays.values(), strict=True):
        assert np.shares_memory(tensor.data, array)
    back = from_quimb(theirs)
    close(back, x.contract())
    close(from_quimb(to_quimb(back, "peps")), x.contract())


def test_formats_are_recognised_by_any_names_and_orders_of_axes(qtn: Any) -> None:
    a, b, c = random(0, 2, 3), random(1, 4, 3, 2), random(2, 4, 5)
    x = Network(
        {"last": (c, ("s", "row")), "middle": (b, ("s", "r", "x")), "first": (a, ("y", "r"))},
        ("y", "x", "row"),
    )
    theirs = to_quimb(x, "mps")
    assert oracle.relative_error(theirs.to_dense().reshape(2, 2, 5), x.contract()) < 1e-14
    assert [theirs.ind_size(f"k{k}") for k in range(3)] == [2, 2, 5]
    with pytest.raises(TopologyError, match="transpose"):
        to_quimb(x.transpose("row", "y", "x"), "mps")
    close(from_quimb(to_quimb(x.transpose(), "mps")), x.transpose().contract())
    assert qtn.expec_TN_1D(theirs.H, theirs) == pytest.approx(tnsum.norm(x) ** 2)


@pytest.mark.parametrize("name", ["torch", "jax", "array_api_strict"])
def test_arrays_of_any_library_are_passed_on(qtn: Any, name: str) -> None:
    of = library(name)
    numpy_arrays = [random(0, 2, 3), random(1, 3, 4)]
    first, second = map(of.convert, numpy_arrays)
    x = Network({"A": (first, ("i", "r")), "B": (second, ("r", "j"))})
    theirs = to_quimb(x)
    assert theirs["A"].data is first
    back = from_quimb(theirs)
    same_arrays(x, back)
    theirs.exponent = -31.0
    scaled = from_quimb(theirs)
    assert type(scaled.arrays["A"]) is type(first)
    expected = numpy_arrays[0] @ numpy_arrays[1] * 1e-31
    assert oracle.relative_error(of.to_numpy(scaled.contract()), expected) < 1e-13
    if name != "array_api_strict":  # quimb cannot transpose its arrays
        mps = to_quimb(x, "mps")
        assert (
            oracle.relative_error(of.to_numpy(mps.to_dense()), expected.reshape(-1, 1) * 1e31)
            < 1e-13
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_gradients_flow_through_the_exponent(qtn: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    arrays = [random(0, 2, 3, dtype=dtype), random(1, 3, 4, dtype=dtype)]

    def gradient(equalise: bool) -> Any:
        leaves = [torch.tensor(array, requires_grad=True) for array in arrays]
        mps = qtn.MatrixProductState(leaves, shape="lpr")
        if equalise:
            mps = mps.equalize_norms(1e-20)
            assert mps.exponent.requires_grad
            assert mps.exponent > 30
        x = from_quimb(mps)
        assert x.dtype == leaves[0].dtype
        (x.contract().abs() ** 2).sum().backward()
        return leaves[0].grad

    found, expected = gradient(True), gradient(False)
    assert oracle.relative_error(found, expected) < (1e-3 if dtype == "float32" else 1e-12)


def test_jax_exponent_keeps_precision_and_gradients(qtn: Any) -> None:
    of = library("jax")
    jax = pytest.importorskip("jax")
    first, second = (
        of.convert(random(0, 2, 3, dtype="float32")),
        of.convert(random(1, 3, 4, dtype="float32")),
    )

    def value(array: Any, exponent: Any) -> Any:
        theirs = qtn.TensorNetwork([qtn.Tensor(array, "ir"), qtn.Tensor(second, "rj")])
        theirs.exponent = exponent
        x = from_quimb(theirs)
        assert x.dtype == np.float32
        return jax.numpy.sum(x.contract())

    exponent = jax.numpy.asarray(0.0, dtype="float64")
    found = jax.grad(value, argnums=1)(first, exponent)
    assert float(found) == pytest.approx(np.log(10) * float(value(first, 0.0)), rel=1e-5)


# Sums


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["mps", "cyclic mps", "mpo", "peps", "pepo"])
def test_sums_of_converted_networks_equal_those_of_quimb(qtn: Any, name: str, dtype: str) -> None:
    a, b = (quimb_networks(dtype)[name](qtn) for _ in range(2))
    total = tnsum.add(from_quimb(a), from_quimb(b), weights=[1, 1])
    dense = a.to_dense() + b.to_dense()
    close(total, dense)
    if "cyclic" not in name:
        close(total, (a + b).to_dense())
    close(from_quimb(to_quimb(total.to_network()), total.physical_modes), dense)


def test_sums_with_tnsum_pair_modes_by_position(qtn: Any) -> None:
    for kind, x in {"mps": train(4), "mpo": train(3, n_physical=2), "peps": grid(2, 3)}.items():
        theirs = to_quimb(x, kind)
        close(tnsum.add(from_quimb(theirs), x, weights=[2, 1]), 3 * x.contract())
    mps = qtn.MPS_rand_state(4, 3).equalize_norms(1.0)
    ours = tnsum.tensor_train([random(k, *s) for k, s in enumerate([(1, 2, 2), (2, 2, 2),
                                                                    (2, 2, 3), (3, 2, 1)])])  # fmt: skip
    expected = ours.contract() - mps.to_dense().reshape(2, 2, 2, 2)
    close(ours - from_quimb(mps), expected)
    close(-from_quimb(mps) + ours, expected)


# Errors

A = np.ones((2, 3))
ones = {"A": (A, ("i", "r")), "B": (np.ones((3, 4)), ("r", "j"))}
pair = Network(ones)
SPREAD = (" cannot be spread over them without overflow or underflow ({}, number of nodes: 1). Set "
          "network.exponent to 0 and keep that factor apart.")  # fmt: skip
KIND = "kind must be one of network, mps, mpo, peps; "
NEEDS = ("physical modes in the order of its nodes; a network of order 2 with nodes ('A', 'B') came. If "
         "only the order is wrong, mend it with x.transpose(...).")  # fmt: skip


def tensor(data: Any, inds: Any = ("i",), exponent: Any = 0.0) -> Any:
    qtn = peer("quimb.tensor")
    made = qtn.TensorNetwork([qtn.Tensor(data, inds, tags=["A"])])
    made.exponent = exponent
    return made


Row = tuple[Callable[[], Any], type[Exception], str]

ERRORS: list[Row] = [
    (lambda: from_quimb(A), NetworkError,
     "from_quimb takes a quimb TensorNetwork or Tensor; ndarray came."),
    (lambda: from_quimb([tensor(np.ones(2))]), NetworkError,
     "from_quimb takes a quimb TensorNetwork or Tensor; list came."),
    (lambda: from_quimb(pair), NetworkError,
     "from_quimb takes a quimb TensorNetwork or Tensor; Network came."),
    (lambda: from_quimb(peer("quimb.tensor").TensorNetwork([])), NetworkError,
     "A network must have at least one node; none came."),
    (lambda: from_quimb(tensor(np.arange(3))), NetworkError,
     "Node 'A' must be of dtype float32, float64, complex64 or complex128; int64 came. Convert it "
     "first, for instance with astype('float64')."),
    (lambda: from_quimb(tensor(np.ones(2), (0,))), NetworkError,
     "The modes of node 'A' must be a sequence of strings; (0,) came."),
    (lambda: from_quimb(tensor(np.ones(2)), ("j",)), ModeError,
     "A physical mode must be held by a node; none holds 'j'. The nodes hold ('i',)."),
    (lambda: from_quimb(tensor(np.ones(2), exponent=-np.inf)), NetworkError,
     "The exponent of a quimb network must be a finite number; -inf came. quimb makes it infinite when "
     "it equalises the norm of a tensor of zeros: pass it check_zero=True."),
    (lambda: from_quimb(tensor(np.ones(2), exponent=1j)), NetworkError,
     "The exponent of a quimb network must be a finite number; 1j came. quimb makes it infinite when "
     "it equalises the norm of a tensor of zeros: pass it check_zero=True."),
    (lambda: from_quimb(tensor(np.ones(2), exponent=np.nan)), NetworkError,
     "The exponent of a quimb network must be a finite number; nan came. quimb makes it infinite when "
     "it equalises the norm of a tensor of zeros: pass it check_zero=True."),
    (lambda: from_quimb(tensor(np.ones(2), exponent=300.0)), NetworkError,
     "The exponent of a quimb network must fit into its nodes: 10**300" + SPREAD.format("float64")),
    (lambda: from_quimb(tensor(np.ones(2, "complex64"), exponent=-32.5)), NetworkError,
     "The exponent of a quimb network must fit into its nodes: 10**-32.5" + SPREAD.format("complex64")),
    (lambda: from_quimb(tensor(np.full(2, 1e240), exponent=20.0)), NetworkError,
     "The exponent of a quimb network must fit into its nodes: 10**20" + SPREAD.format("float64")),
    (lambda: to_quimb(A), NetworkError,  # type: ignore[arg-type]
     "to_quimb takes a Network; ndarray came."),
    (lambda: to_quimb(pair + pair), NetworkError,  # type: ignore[arg-type]
     "to_quimb takes a Network; NetworkSum came. Say x.to_network() first, for the explicit blocks."),
    (lambda: to_quimb(pair, "MPS"), NetworkError, KIND + "'MPS' came."),
    (lambda: to_quimb(pair, None), NetworkError, KIND + "None came."),  # type: ignore[arg-type]
    (lambda: to_quimb(pair, ["mps"]), NetworkError, KIND + "['mps'] came."),  # type: ignore[arg-type]
    (lambda: to_quimb(Network(ones, ("i",))), ModeError,
     "quimb keeps an index that only one axis has, so a contraction mode must be held more than once; "
     "'j' is held once, by node 'B'. Sum that axis of its array, or add a node of ones that holds the "
     "mode too."),
    (lambda: to_quimb(Network(ones, ("i", "r", "j"))), ModeError,
     "quimb sums over an index that several axes have, so a physical mode must be held once; 'r' is "
     "held by nodes ('A', 'B'). Give it another name in these nodes, and join both names by a node that "
     "is the identity matrix."),
    (lambda: to_quimb(pair.transpose(), "mpo"), TopologyError,
     "to_quimb(x, kind='mpo') needs a train of operators, " + NEEDS),
    (lambda: to_quimb(Network(ones, ("i", "r", "j")), "mps"), TopologyError,
     "to_quimb(x, kind='mps') needs a tensor train, " + NEEDS.replace("order 2", "order 3")),
    (lambda: to_quimb(Network(ones, ("i",)), "peps"), TopologyError,
     "to_quimb(x, kind='peps') needs a grid, " + NEEDS.replace("order 2", "order 1")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    peer("quimb.tensor")
    check_message(call, error, message)


def test_every_raise_is_in_the_table() -> None:
    assert not unreached([Path(module.__file__)], [call for call, *_ in ERRORS])


def test_quimb_equalising_zeros_gives_the_error_that_names_check_zero(qtn: Any) -> None:
    theirs = tensor(np.zeros(2))
    with np.errstate(all="ignore"):
        broken = theirs.equalize_norms(1.0)
    with pytest.raises(NetworkError, match="check_zero=True"):
        from_quimb(broken)
    assert not np.any(from_quimb(theirs.equalize_norms(1.0, check_zero=True)).contract())


@pytest.mark.parametrize("call", [lambda: from_quimb(A), lambda: to_quimb(pair)])
def test_without_quimb_the_error_says_how_to_install_it(call: Callable[[], Any]) -> None:
    check_missing("quimb", "quimb.tensor", call)
