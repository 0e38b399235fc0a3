"""Agreement with other libraries on the same arrays, and their mistakes beside our results.

What a peer gets wrong is logged, not asserted: a test must not fail when a peer is mended. To see
it: `pytest tests/test_peers.py --log-cli-level=INFO`.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import oracle
import tnsum
from topologies import BY_NAME, CASES, Case, arrays

pytestmark = pytest.mark.large

Cores = list[Any]


def peer(name: str) -> Any:
    """The library, or skip; its warnings are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, exc_type=ImportError)


def log(what: str, theirs: Callable[[], object]) -> None:
    """Log what a peer makes of it, be it an error."""
    try:
        found = theirs()
    except Exception as error:
        found = repr(error)
    logging.getLogger("peers").info("%s: %s", what, found)


def positive(seed: int, *shape: int) -> Any:
    return np.random.default_rng([seed, *shape]).uniform(0.5, 1.5, shape)


def train_cores(ranks: Sequence[int], sizes: Sequence[tuple[int, ...]], seed: int = 0) -> Cores:
    """Cores (rank, *sizes, rank) of a train; `ranks` are those between neighbours."""
    ends = [1, *ranks, 1]
    return [positive(seed + k, ends[k], *n, ends[k + 1]) for k, n in enumerate(sizes)]


def without_ends(cores: Cores) -> Cores:
    return [cores[0][0], *cores[1:-1], cores[-1][..., 0]]


def compare(ours: tnsum.NetworkSum, theirs: Any, tolerance: float = 1e-13) -> None:
    """Assert that the lazy and the explicit sum have the values of the peer's dense array."""
    assert oracle.relative_error(ours.contract(), theirs) < tolerance
    assert oracle.relative_error(ours.to_network().contract(), theirs) < tolerance


def same_blocks(explicit: tnsum.Network, tensors: dict[str, tuple[Any, tuple[str, ...]]]) -> None:
    """Assert that block arrays are equal, the peer's axes named by our modes."""
    assert set(tensors) == set(explicit.arrays)
    for name, (array, modes) in tensors.items():
        axes = [modes.index(mode) for mode in explicit.topology.nodes[name]]
        np.testing.assert_array_equal(explicit.arrays[name], np.transpose(array, axes))


# quimb

SIZES = [(3,), (2,), (4,), (2,)]
OPERATOR_SIZES = [(2, 3), (4, 2), (3, 2)]


@pytest.mark.parametrize("weight", [1, -1])
@pytest.mark.parametrize("kind", ["MPS", "MPO"])
def test_sums_of_trains_equal_those_of_quimb(kind: str, weight: int) -> None:
    qtn = peer("quimb.tensor")
    sizes = SIZES if kind == "MPS" else OPERATOR_SIZES
    made = qtn.MatrixProductState if kind == "MPS" else qtn.MatrixProductOperator
    layout = "lpr" if kind == "MPS" else "ludr"
    ranks = ([2, 3, 2], [1, 2, 3])
    cores = [train_cores(r[: len(sizes) - 1], sizes, seed) for seed, r in enumerate(ranks)]
    a, b = (made(without_ends(x), shape=layout) for x in cores)
    ours = tnsum.add(*map(tnsum.tensor_train, cores), weights=[1, weight])
    theirs = a + b if weight == 1 else a - b
    compare(ours, theirs.to_dense().reshape(ours.shape))
    assert [*ours.ranks.values()] == [*theirs.bond_sizes()]
    assert [*ours.to_network().ranks.values()] == [*theirs.bond_sizes()]
    if weight == 1:
        # quimb holds the physical axes last, and the bond names of the first summand.
        bonds = {theirs.bond(k, k + 1): f"r{k}" for k in range(len(sizes) - 1)}
        own = {"k": "i", "b": "j"}
        tensors = {
            f"node{k}": (
                theirs[k].data,
                tuple(bonds.get(ind) or own[ind[0]] + ind[1:] for ind in theirs[k].inds),
            )
            for k in range(len(sizes))
        }
        same_blocks(ours.to_network(), tensors)


def test_norms_inner_products_and_many_sums_equal_those_of_quimb() -> None:
    qtn = peer("quimb.tensor")
    cores = [train_cores([2, 3, 2], SIZES, seed) for seed in range(10)]
    trains = [tnsum.tensor_train(x) for x in cores]
    theirs = [qtn.MatrixProductState(without_ends(x), shape="lpr") for x in cores]
    total = reduce(lambda a, b: a + b, theirs)
    compare(sum(trains), total.to_dense().reshape(trains[0].shape))
    assert tnsum.norm(sum(trains)) == pytest.approx(total.norm(), rel=1e-12)
    inner = theirs[0].H @ total
    assert tnsum.inner(trains[0], tnsum.add(*trains)) == pytest.approx(inner, rel=1e-12)
    dense = theirs[0].distance(theirs[1])
    assert tnsum.distance(trains[0], trains[1]) == pytest.approx(dense, rel=1e-6)


def test_sums_of_grids_equal_those_of_quimb() -> None:
    qtn = peer("quimb.tensor")

    def rows(rank: int, seed: int) -> list[Cores]:
        def shape(a: int, b: int) -> list[int]:
            up, right, down, left = a > 0, b < 2, a < 2, b > 0
            return [rank + 1] * up + [rank] * right + [rank + 1] * down + [rank] * left + [2]

        return [[positive(seed + 3 * a + b, *shape(a, b)) for b in range(3)] for a in range(3)]

    summands = rows(2, 0), rows(1, 50)
    # Up, in quimb, is towards the next row.
    a, b = (qtn.PEPS(x, shape="drulp") for x in summands)
    ours, theirs = tnsum.add(*map(tnsum.grid, summands)), a + b
    compare(ours, theirs.to_dense().reshape(ours.shape))
    sites = [(x, y) for x in range(3) for y in range(3)]
    modes = {f"k{x},{y}": f"i{3 * x + y}" for x, y in sites}
    modes |= {theirs.bond((x, y), (x + 1, y)): f"v{x}_{y}" for x, y in sites if x < 2}
    modes |= {theirs.bond((x, y), (x, y + 1)): f"h{x}_{y}" for x, y in sites if y < 2}
    tensors = {
        f"node{x}_{y}": (theirs[x, y].data, tuple(modes[ind] for ind in theirs[x, y].inds))
        for x, y in sites
    }
    same_blocks(ours.to_network(), tensors)


def quimb_can_add(case: Case) -> bool:
    """Whether nodes are joined by at most one mode a pair, and no mode by more than one pair."""
    held = Counter(mode for modes in case.nodes.values() for mode in modes)
    pairs = combinations(case.nodes.values(), 2)
    return (
        case.is_connected
        and len(case.nodes) > 1
        and all(held[mode] == 1 for mode in case.physical_modes)
        and all(held[mode] == 2 for mode in case.contraction_modes)
        and all(len(set(modes)) == len(modes) for modes in case.nodes.values())
        and all(len({*a} & {*b}) < 2 for a, b in pairs)
    )


def quimb_network(qtn: Any, case: Case, which: int, prefix: str, dtype: str = "float64") -> Any:
    """The summand as a quimb network, one tag a node, contraction modes with a prefix."""
    found = arrays(case, which, dtype=dtype)
    inds = {
        name: [m if m in case.physical_modes else prefix + m for m in modes]
        for name, modes in case.nodes.items()
    }
    return qtn.TensorNetwork([qtn.Tensor(found[n], inds[n], tags=[n]) for n in case.nodes])


def our_network(case: Case, which: int, dtype: str = "float64") -> tnsum.Network:
    topology = tnsum.Topology(case.nodes, case.physical_modes)
    return tnsum.Network.from_topology(topology, arrays(case, which, dtype=dtype))


QUIMB_CASES = [case for case in CASES if quimb_can_add(case)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("case", QUIMB_CASES, ids=lambda case: case.name)
def test_sums_on_any_graph_equal_those_of_quimb(case: Case, dtype: str) -> None:
    qtn = peer("quimb.tensor")
    a, b = quimb_network(qtn, case, 0, "", dtype), quimb_network(qtn, case, 1, "other ", dtype)
    theirs = qtn.tensor_network_ag_sum(a, b, site_tags=list(case.nodes))
    ours = our_network(case, 0, dtype) + our_network(case, 1, dtype)
    assert dict(ours.ranks) == {mode: theirs.ind_size(mode) for mode in case.contraction_modes}
    same_blocks(
        ours.to_network(), {name: (theirs[name].data, theirs[name].inds) for name in case.nodes}
    )
    if case.order <= 12:
        dense = theirs.contract(output_inds=case.physical_modes)
        compare(ours, getattr(dense, "data", dense))


def test_table_of_graphs_for_quimb_is_not_empty() -> None:
    names = {case.name for case in QUIMB_CASES}
    assert names >= {"tensor_train5", "ring4", "star5", "tree8", "grid3x3", "complete5", "mera"}


def test_stored_scale_is_added_where_quimb_ignores_it() -> None:
    qtn = peer("quimb.tensor")
    cores = [train_cores([2, 3, 2], SIZES, seed) for seed in range(2)]
    a, b = (qtn.MatrixProductState(without_ends(x), shape="lpr") for x in cores)
    dense = [x.to_dense().reshape(3, 2, 4, 2) for x in (a, b)]
    a.exponent = 1.0
    np.testing.assert_allclose(a.to_dense().ravel(), 10 * dense[0].ravel())
    x, y = map(tnsum.tensor_train, cores)
    compare(10 * x + y, 10 * dense[0] + dense[1])
    expected = (10 * dense[0] + dense[1]).reshape(-1, 1)
    log("error of quimb", lambda: oracle.relative_error((a + b).to_dense(), expected))


def test_disconnected_networks_are_added_where_quimb_multiplies_sums() -> None:
    qtn = peer("quimb.tensor")
    case = BY_NAME["disconnected_chains"]
    x, y = our_network(case, 0), our_network(case, 1)
    summands = [arrays(case, which) for which in range(2)]
    expected = oracle.dense_sum(case.nodes, case.physical_modes, summands, [1, 1])
    compare(x + y, expected)
    a, b = quimb_network(qtn, case, 0, ""), quimb_network(qtn, case, 1, "other ")

    def error() -> float:
        theirs = qtn.tensor_network_ag_sum(a, b, site_tags=list(case.nodes))
        dense = theirs.contract(output_inds=case.physical_modes)
        return oracle.relative_error(dense.data, expected)

    log("error of quimb", error)


@pytest.mark.parametrize("library", ["quimb", "teneva"])
def test_small_distance_is_exact_where_peers_see_rounding(library: str) -> None:
    cores, other = (train_cores([2, 3, 2], SIZES, seed) for seed in range(2))
    x, y = map(tnsum.tensor_train, (cores, other))
    length = 2.3e-10 * tnsum.norm(x) / tnsum.norm(y)
    near = (x + length * y).to_network()
    assert tnsum.distance(near, x, relative=True) == pytest.approx(2.3e-10, rel=1e-5)
    their_cores = [near.arrays[f"node{k}"] for k in range(4)]
    if library == "quimb":
        qtn = peer("quimb.tensor")
        a = qtn.MatrixProductState(their_cores, shape="lpr")
        b = qtn.MatrixProductState(without_ends(cores), shape="lpr")
        log("quimb's distance", lambda: a.distance(b) / b.norm())
    else:
        teneva = peer("teneva")
        a = [their_cores[0][None], *their_cores[1:3], their_cores[3][..., None]]
        log("teneva's distance", lambda: teneva.accuracy(a, cores))


# HOTTBOX


def test_sums_of_tucker_networks_equal_those_of_hottbox() -> None:
    core = peer("hottbox.core")
    summands = []
    for seed, ranks in enumerate([(2, 3, 2), (1, 2, 3)]):
        factors = [positive(seed, n, r) for n, r in zip((4, 5, 3), ranks, strict=True)]
        summands.append((positive(seed, *ranks), factors))
    a, b = (core.TensorTKD(fmat=factors, core_values=g) for g, factors in summands)
    ours, theirs = tnsum.add(*(tnsum.tucker(*x) for x in summands)), a + b
    compare(ours, theirs.reconstruct().data)
    np.testing.assert_array_equal(ours.node("core"), theirs.core.data)
    for n, factor in enumerate(theirs.fmat):
        np.testing.assert_array_equal(ours.node(f"factor{n}"), factor)


def test_sums_of_cp_networks_equal_those_of_hottbox() -> None:
    core = peer("hottbox.core")
    summands = [
        ([positive(seed + n, size, rank) for n, size in enumerate((4, 5, 3))], positive(seed, rank))
        for seed, rank in [(0, 2), (10, 3)]
    ]
    a, b = (core.TensorCPD(fmat=factors, core_values=weights) for factors, weights in summands)
    ours, theirs = tnsum.add(*(tnsum.cp(*x) for x in summands)), a + b
    compare(ours, theirs.reconstruct().data)
    assert ours.ranks["r"] == theirs.rank[0] == 5
    # Our weights are in the first factor.
    first = theirs.fmat[0] * np.einsum("rrr->r", theirs.core.data)
    np.testing.assert_allclose(ours.node("factor0"), first, rtol=1e-15)
    for n in (1, 2):
        np.testing.assert_array_equal(ours.node(f"factor{n}"), theirs.fmat[n])


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_imaginary_part_is_kept_where_hottbox_drops_it() -> None:
    core = peer("hottbox.core")
    factors = [positive(n, n + 2, 2) for n in range(3)]
    g, h = positive(5, 2, 2, 2), 1j * positive(6, 2, 2, 2)
    ours = tnsum.tucker(g, factors) + tnsum.tucker(h, factors)
    expected = np.einsum("abc,ia,jb,kc->ijk", g + h, *factors)
    assert np.linalg.norm(expected.imag) > 0.1 * np.linalg.norm(expected)
    compare(ours, expected)
    a, b = (core.TensorTKD(fmat=factors, core_values=x) for x in (g, h))
    log("error of HOTTBOX", lambda: oracle.relative_error((a + b).reconstruct().data, expected))


# TensorLy has no sums: its dense tensors are added.


def tensorly_cases() -> dict[str, Any]:
    """Name -> (its function, our builder, what both take, for a seed and a rank)."""

    def tucker(seed: int, rank: int) -> Any:
        core = positive(seed, rank, rank + 1, 2)
        sizes = zip((4, 5, 3), core.shape, strict=True)
        return core, [positive(seed + n, size, r) for n, (size, r) in enumerate(sizes)]

    def cp(seed: int, rank: int) -> Any:
        return positive(seed, rank), [positive(seed + n, n + 3, rank) for n in range(3)]

    def ring(seed: int, rank: int) -> Cores:
        ranks = [rank, 2, rank + 1, rank]
        return [positive(seed + k, ranks[k], k + 2, ranks[k + 1]) for k in range(3)]

    def operator(seed: int, rank: int) -> Cores:
        return train_cores([rank, 2], OPERATOR_SIZES, seed)

    def train(seed: int, rank: int) -> Cores:
        return train_cores([rank, 2, rank + 1], SIZES, seed)

    return {
        "tucker_to_tensor": (lambda x: tnsum.tucker(*x), tucker),
        "cp_to_tensor": (lambda x: tnsum.cp(x[1], x[0]), cp),
        "tt_to_tensor": (tnsum.tensor_train, train),
        "tr_to_tensor": (tnsum.tensor_ring, ring),
        "tt_matrix_to_tensor": (tnsum.tensor_train, operator),
    }


@pytest.mark.parametrize("name", tensorly_cases())
def test_sums_equal_the_dense_tensors_of_tensorly_added(name: str) -> None:
    tensorly = peer("tensorly")
    to_dense = getattr(tensorly, name, None) or getattr(peer("tensorly.tt_matrix"), name)
    build, draw = tensorly_cases()[name]
    inputs = [draw(10 * k, rank) for k, rank in enumerate((2, 3, 1))]
    dense = [to_dense(x) for x in inputs]
    ours = tnsum.add(*map(build, inputs), weights=[1, -2, 0.5])
    compare(ours, dense[0] - 2 * dense[1] + dense[2] / 2)


# teneva


def same_cores(explicit: tnsum.Network, theirs: Cores) -> None:
    for array, core in zip(explicit.arrays.values(), without_ends(theirs), strict=True):
        np.testing.assert_array_equal(array, core)


def test_sums_norms_and_inner_products_equal_those_of_teneva() -> None:
    teneva = peer("teneva")
    a, b = train_cores([2, 3, 2], SIZES, 0), train_cores([1, 2, 3], SIZES, 10)
    x, y = map(tnsum.tensor_train, (a, b))
    theirs = teneva.add(a, b)
    compare(x + y, teneva.full(theirs))
    same_cores((x + y).to_network(), theirs)
    assert [1, *(x + y).ranks.values(), 1] == [*teneva.ranks(theirs)]
    compare(x - y, teneva.full(teneva.sub(a, b)))
    assert tnsum.norm(x + y) == pytest.approx(teneva.norm(theirs), rel=1e-12)
    assert tnsum.inner(x + y, y) == pytest.approx(teneva.mul_scalar(theirs, b), rel=1e-12)
    assert tnsum.distance(x, y, relative=True) == pytest.approx(teneva.accuracy(a, b), rel=1e-8)


def test_sums_of_many_equal_those_of_teneva() -> None:
    teneva = peer("teneva")
    cores = [train_cores([2, 3, 2], SIZES, 10 * k) for k in range(12)]
    ours = tnsum.NetworkStack.from_networks([tnsum.tensor_train(x) for x in cores]).sum()
    same_cores(ours.to_network(), reduce(teneva.add, cores))
    # add_many truncates its result to the accuracy e.
    compare(ours, teneva.full(teneva.add_many(cores, e=1e-14)), 1e-12)


@pytest.mark.filterwarnings("ignore")
def test_many_complex_trains_are_added_where_teneva_goes_wrong() -> None:
    teneva = peer("teneva")
    shapes = [core.shape for core in train_cores([2, 2, 2], SIZES)]
    cores = [
        [positive(k, *n) * np.exp(1j * positive(k + 99, *n)) for n in shapes] for k in range(20)
    ]
    ours = tnsum.add(*map(tnsum.tensor_train, cores))
    expected = sum(np.einsum("aib,bjc,ckd,dle->ijkl", *x) for x in cores)
    assert np.linalg.norm(expected.imag) > 0.1 * np.linalg.norm(expected)
    compare(ours, expected)
    log(
        "error of teneva",
        lambda: oracle.relative_error(teneva.full(teneva.add_many(cores)), expected),
    )


def test_different_orders_are_refused_where_teneva_adds_them() -> None:
    teneva = peer("teneva")
    a, b = train_cores([2, 3, 2], SIZES), train_cores([2, 3], SIZES[:3])
    with pytest.raises(tnsum.NetworkError, match="i3"):
        tnsum.tensor_train(a) + tnsum.tensor_train(b)
    log("cores of teneva's sum", lambda: [core.shape for core in teneva.add(a, b)])


@pytest.mark.filterwarnings("ignore")
def test_norm_at_order_400_is_finite_where_that_of_teneva_overflows() -> None:
    teneva = peer("teneva")
    cores = train_cores([2] * 399, [(10,)] * 400)
    cores = [core / 2 for core in cores]
    value, exponent = teneva.norm(cores, use_stab=True)
    x = tnsum.tensor_train(cores)
    expected = np.log2(value) + exponent
    assert 600 < expected < 1000
    assert np.log2(tnsum.norm(x)) == pytest.approx(expected, abs=1e-9)
    assert np.log2(tnsum.norm(x + x)) == pytest.approx(expected + 1, abs=1e-9)
    log("teneva's norm", lambda: teneva.norm(cores))
