"""norm, inner and distance: right for every topology, small distances, long chains, long sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tnsum
from compression_cases import binary_tree, decaying, log2_norm, star
from compression_cases import train as train_of
from libraries import TALL, library, network, rounding
from oracle import dense, dense_sum, relative_error
from tnsum import (
    Network,
    NetworkStack,
    NetworkSum,
    Topology,
    _matrices,
    distance,
    inner,
    measures,
    norm,
)
from topologies import BY_NAME, CASES, Case, arrays

Array = NDArray[Any]

MODERATE = [case for case in CASES if case.order <= 12]
CLOSED = [case for case in CASES if case.order == 0]
# Chain, train, Tucker, tree, CP, ring, grid: what people hold, with and without loops.
FORMATS = [
    BY_NAME[name]
    for name in ("chain5", "tensor_train5", "star3", "star4", "tree8", "cp3", "ring4", "grid3x3")
] + TALL


def named(cases: Sequence[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def dense_of(x: Network) -> Array:
    return dense(x.topology.nodes, x.physical_modes, x.arrays)


def drawn(case: Case, which: int, seed: int, dtype: str = "float64", scale: float = 0.0) -> Network:
    """A network of the case; with a scale, its norm."""
    found = arrays(case, which, seed, dtype)
    if scale:
        first = next(iter(found))
        found[first] *= scale / np.linalg.norm(dense(case.nodes, case.physical_modes, found))
    return network(case, found)


@named(TALL)
def test_tall_networks_are_orthogonalised_so_that_the_tests_below_see_it(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = []
    triangle = _matrices.triangle
    monkeypatch.setattr(
        _matrices, "triangle", lambda xp, a: shapes.append(a.shape) or triangle(xp, a)
    )
    assert norm(drawn(case, 0, 0) - drawn(case, 1, 1)) > 0
    assert shapes
    assert all(rows > columns for rows, columns in shapes)


@named([*MODERATE, *TALL])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_measures_of_networks_are_those_of_the_dense_arrays(case: Case, dtype: str) -> None:
    x, y = drawn(case, 0, 0, dtype), drawn(case, 1, 1, dtype)
    X, Y = dense_of(x), dense_of(y)
    right = {
        "norm": (norm(x), np.linalg.norm(X)),
        "inner": (inner(x, y), np.vdot(X, Y)),
        "distance": (distance(x, y), np.linalg.norm(X - Y)),
        "relative": (distance(x, y, relative=True), np.linalg.norm(X - Y) / np.linalg.norm(Y)),
        "inner with a sum": (inner(x - 2 * y, 3 * y), np.vdot(X - 2 * Y, 3 * Y)),
        "distance of sums": (distance(x - 2 * y, 3 * x), np.linalg.norm(-2 * X - 2 * Y)),
    }
    errors = {name: relative_error(found, expected) for name, (found, expected) in right.items()}
    assert max(errors.values()) < 1e-12, errors


@pytest.mark.parametrize(
    "case",
    [BY_NAME["honeycomb"], pytest.param(BY_NAME["mera"], marks=pytest.mark.large)],
    ids=["honeycomb", "mera"],
)
def test_measures_of_high_order_are_those_of_the_doubled_network(case: Case) -> None:
    terms = [arrays(case, k, seed=k, dtype="complex128") for k in range(2)]
    weights = (1.5, -0.5j)
    grams = np.array([[doubled(case, a, b) for b in terms] for a in terms])
    s = tnsum.add(*(network(case, one) for one in terms), weights=weights)
    squared = np.conj(weights) @ grams @ weights
    assert relative_error(norm(s), np.sqrt(squared.real)) < 1e-12
    assert relative_error(inner(s, s.summands[1]), np.conj(weights) @ grams[:, 1]) < 1e-12


def doubled(case: Case, one: dict[str, Array], other: dict[str, Array]) -> complex:
    """The oracle's inner product: one network of both, joined by the physical modes."""
    physical = set(case.physical_modes)
    nodes = dict(case.nodes)
    held = {name: array.conj() for name, array in one.items()}
    for name, modes in case.nodes.items():
        nodes[f"other {name}"] = tuple(m if m in physical else f"other {m}" for m in modes)
        held[f"other {name}"] = other[name]
    return complex(dense(nodes, (), held).item())


@named(MODERATE)
def test_inner_conjugates_its_first_argument(case: Case) -> None:
    x, y = drawn(case, 0, 0, "complex128"), drawn(case, 1, 1, "complex128")
    plain = inner(x, y)
    assert abs(plain.imag) > 1e-6 * abs(plain)
    assert relative_error(inner(2j * x, y), -2j * plain) < 1e-12
    assert relative_error(inner(x, 2j * y), 2j * plain) < 1e-12
    assert relative_error(inner(y, x), np.conj(plain)) < 1e-12
    assert relative_error(inner(x, x), norm(x) ** 2) < 1e-12


@named(FORMATS)
def test_a_distance_of_2e_10_is_reported_as_such(case: Case) -> None:
    """The difference is exact: a node minus another that is close to it is not rounded."""
    x = drawn(case, 0, 0, scale=1.0)
    changed = list(case.nodes)[len(case.nodes) // 2]
    step = drawn(case, 0, 7).arrays[changed]
    for _ in range(2):
        moved = x.arrays[changed] + step
        difference = {**x.arrays, changed: moved - x.arrays[changed]}
        expected = np.linalg.norm(dense(case.nodes, case.physical_modes, difference))
        step = step * (2e-10 / expected)
    y = network(case, {**x.arrays, changed: moved})
    assert expected == pytest.approx(2e-10, rel=1e-4)
    assert distance(x, y) == pytest.approx(expected, rel=1e-5)
    assert distance(y, x, relative=True) == pytest.approx(expected, rel=1e-5)
    assert norm(y - x) == pytest.approx(expected, rel=1e-5)


@named(FORMATS)
@pytest.mark.parametrize("far", [1e-4, 2e-10])
def test_a_distance_to_a_sum_is_accurate(case: Case, far: float) -> None:
    x, c = drawn(case, 0, 0, scale=1.0), drawn(case, 1, 1, scale=1.0)
    assert distance(x, x + far * c) == pytest.approx(far, rel=1e-5)
    assert distance(x + far * c, x) == pytest.approx(far, rel=1e-5)
    assert distance(3 * x, 3 * x + far * c, relative=True) == pytest.approx(far / 3, rel=2e-4)


def in_another_gauge(case: Case, x: Network, seed: int) -> Network:
    """The same tensor: a matrix and its inverse between the two holders of each contraction mode."""
    rng = np.random.default_rng(seed)
    found = dict(x.arrays)
    for mode in case.contraction_modes:
        holders = [name for name, modes in case.nodes.items() if mode in modes]
        left, _ = np.linalg.qr(rng.standard_normal((x.ranks[mode],) * 2))
        right, _ = np.linalg.qr(rng.standard_normal((x.ranks[mode],) * 2))
        gauge = left * rng.uniform(0.5, 2.0, x.ranks[mode]) @ right
        for name, matrix in zip(holders, (gauge, np.linalg.inv(gauge).T), strict=True):
            axis = case.nodes[name].index(mode)
            found[name] = np.moveaxis(np.tensordot(found[name], matrix, (axis, 0)), -1, axis)
    return network(case, found)


# Not CP: a mode held by three nodes has no gauge but the order and scale of its indices.
@named([case for case in FORMATS if "cp3" not in case.name])
@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6, 1e-8])
def test_what_is_left_after_cancellation_is_accurate(case: Case, eps: float) -> None:
    a, c = drawn(case, 0, 0, scale=1.0), drawn(case, 1, 1, scale=1.0)
    other = in_another_gauge(case, a, 3)
    assert relative_error(dense_of(other), dense_of(a)) < 1e-14
    assert max(abs(other.arrays[n] - a.arrays[n]).max() for n in case.nodes) > 0.1
    s = a - other + eps * c
    assert norm(s) == pytest.approx(eps, rel=1e-13 / eps)
    assert distance(a + eps * c, other) == pytest.approx(eps, rel=1e-13 / eps)
    assert relative_error(s.contract(), eps * dense_of(c)) < 1e-13 / eps
    assert inner(c, s) == pytest.approx(eps, rel=1e-13 / eps)


@named([*CASES, *TALL])
def test_a_network_minus_itself_has_a_norm_at_rounding_level(case: Case) -> None:
    x = drawn(case, 0, 0)
    length = norm(x)
    assert length > 0
    assert 0 <= norm(x - x) <= 5e-14 * length
    assert 0 <= norm(x + 2 * x - 3 * x) <= 5e-14 * length
    assert 0 <= distance(x, x, relative=True) <= 5e-14


def train(
    factors: Sequence[float], rank: int = 3, size: int = 10, dtype: str = "float64"
) -> list[Array]:
    """Cores of a tensor train whose entries are all equal: the product of the factors."""
    last = len(factors) - 1
    return [
        np.full((rank if k else 1, size, rank if k < last else 1), f / (rank if k else 1), dtype)
        for k, f in enumerate(factors)
    ]


ORDER = 400
SCALED = {
    "plain": [1.0] * ORDER,
    "small then large": [1e-3] * (ORDER // 2) + [1e3] * (ORDER // 2),
    "large then small": [1e3] * (ORDER // 2) + [1e-3] * (ORDER // 2),
}
# Thousands of small steps: NumPy is quick; JAX, which compiles each of them, would take minutes.
LONG = [
    *(("numpy", factors) for factors in SCALED),
    pytest.param("array_api_strict", "large then small", marks=pytest.mark.large),
    *(pytest.param("torch", factors, marks=pytest.mark.large) for factors in SCALED),
]


@pytest.mark.parametrize(("name", "factors"), LONG)
@pytest.mark.parametrize("rank", [1, 3])
def test_norms_of_order_400_neither_overflow_nor_underflow(
    name: str, factors: str, rank: int
) -> None:
    of = library(name)
    x = tnsum.tensor_train([of.convert(core) for core in train(SCALED[factors], rank)])
    assert float(norm(x)) == pytest.approx(1e200, rel=1e-11)
    assert float(norm(x + 2 * x - 5 * x)) == pytest.approx(2e200, rel=1e-11)
    assert float(distance(x, x / 2)) == pytest.approx(5e199, rel=1e-11)
    assert float(distance(x / 2, x, relative=True)) == pytest.approx(0.5, rel=1e-11)


@pytest.mark.parametrize(("name", "factors"), LONG[1:])
@pytest.mark.parametrize(
    "dtype",
    [
        *("float32", "complex128"),
        *(pytest.param(dtype, marks=pytest.mark.large) for dtype in ("float64", "complex64")),
    ],
)
def test_order_400_is_right_where_the_result_is_representable(
    name: str, factors: str, dtype: str
) -> None:
    of = library(name)
    cores = train([f * 10**-0.5 for f in SCALED[factors]], dtype=dtype)
    cores[-1] = cores[-1] * np.asarray(1j if dtype.startswith("complex") else -1, dtype)
    y = tnsum.tensor_train([of.convert(core) for core in cores])
    x = tnsum.tensor_train([of.convert(np.abs(core).astype(dtype)) for core in cores])
    near = rounding(dtype, 1e-11, 1e-3)
    phase = 1j if dtype.startswith("complex") else -1
    assert float(norm(x)) == pytest.approx(1, rel=near)
    assert complex(inner(x, y)) == pytest.approx(phase, rel=near)
    assert complex(inner(x, x + 2 * y)) == pytest.approx(1 + 2 * phase, rel=near)
    assert complex(inner(3 * y, x - y)) == pytest.approx(3 * np.conj(phase) - 3, rel=near)
    assert float(distance(x, y)) == pytest.approx(abs(1 - phase), rel=near)


@pytest.mark.parametrize(
    ("order", "rank", "size"), [(400, 1, 10), (100, 1, 1), (100, 2, 1), (100, 1, 2)]
)
def test_modes_of_size_or_rank_one_do_not_exhaust_the_axes_of_an_array(
    order: int, rank: int, size: int
) -> None:
    x = tnsum.tensor_train(train([1.0] * order, rank, size))
    expected = float(size) ** (order / 2)
    assert norm(x) == pytest.approx(expected, rel=1e-12)
    assert norm(2 * x + x) == pytest.approx(3 * expected, rel=1e-12)
    assert distance(x, 3 * x) == pytest.approx(2 * expected, rel=1e-12)
    if size < 10:
        assert inner(x, x - 3 * x) == pytest.approx(-2 * expected**2, rel=1e-12)


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_a_relative_distance_needs_no_norm_that_is_representable(factor: float) -> None:
    x = tnsum.tensor_train(train([factor] * ORDER))
    assert distance(1.001 * x, x, relative=True) == pytest.approx(1e-3, rel=1e-9)
    with np.errstate(all="ignore"):
        assert norm(x) == (np.inf if factor > 1 else 0.0)


def random_sum(
    case: Case, n: int, seed: int, dtype: str = "complex128"
) -> tuple[NetworkSum, Array]:
    """A sum of n networks of both rank assignments with random weights, and its dense array."""
    rng = np.random.default_rng(seed)
    terms = [arrays(case, k % 2, seed=seed + k, dtype=dtype) for k in range(n)]
    weights = rng.standard_normal(n) + (1j * rng.standard_normal(n) if dtype[0] == "c" else 0)
    s = tnsum.add(*(network(case, one) for one in terms), weights=weights)
    return s, dense_sum(case.nodes, case.physical_modes, terms, weights)


@named([BY_NAME["star3"], BY_NAME["star5"]])
@pytest.mark.parametrize("n", [2, 30, 300])
def test_the_norm_of_a_sum_of_many_tucker_networks(case: Case, n: int) -> None:
    s, expected = random_sum(case, n, seed=1)
    assert relative_error(norm(s), np.linalg.norm(expected)) < 1e-12
    assert relative_error(s.contract(), expected) < 1e-12


@named([BY_NAME[name] for name in ("two_nodes", "tensor_train5", "star3", "cp3", "ring4")])
def test_the_inner_product_of_two_long_sums_is_that_of_the_dense_arrays(case: Case) -> None:
    (s, expected), (t, other) = random_sum(case, 200, seed=1), random_sum(case, 200, seed=1000)
    near = 1e-12 * np.linalg.norm(expected) * np.linalg.norm(other)
    assert abs(inner(s, t) - np.vdot(expected, other)) < near
    assert relative_error(distance(s, t), np.linalg.norm(expected - other)) < 1e-12


@named(MODERATE)
@pytest.mark.parametrize("n", [1, 4])
def test_inner_is_the_same_pair_by_pair_and_by_orthogonalising(
    case: Case, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (s, expected), (t, other) = random_sum(case, n, seed=1), random_sum(case, n + 2, seed=1000)
    right = np.vdot(expected, other)
    near = 1e-12 * np.linalg.norm(expected) * np.linalg.norm(other)
    for work in (-1, 10**30):
        monkeypatch.setattr(measures, "work_of_cores", lambda *_, work=work: work)
        assert abs(inner(s, t) - right) < near


@named(MODERATE)
def test_stacks_of_different_ranks_are_measured_together(case: Case) -> None:
    stacks, dense_terms = [], []
    for which, n in ((0, 3), (1, 2)):
        terms = [drawn(case, which, seed) for seed in range(n)]
        stacks.append(NetworkStack.from_networks(terms))
        dense_terms.append([dense_of(x) for x in terms])
    s = stacks[0].sum([1.0, -0.5, 2.0]) + stacks[1].sum(np.array([0.25, 3.0]))
    (a, b, c), (d, e) = dense_terms
    expected = a - 0.5 * b + 2 * c + 0.25 * d + 3 * e
    assert relative_error(norm(s), np.linalg.norm(expected)) < 1e-12
    assert relative_error(inner(stacks[1][1], s), np.vdot(e, expected)) < 1e-12
    assert relative_error(distance(s, stacks[0][0]), np.linalg.norm(expected - a)) < 1e-12


@named(CLOSED)
def test_the_norm_without_a_physical_mode_is_the_modulus_of_the_number(case: Case) -> None:
    x, y = drawn(case, 0, 0, "complex128"), drawn(case, 1, 1, "complex128")
    X, Y = dense_of(x)[()], dense_of(y)[()]
    assert relative_error(norm(x - 2j * y), abs(X - 2j * Y)) < 1e-13
    assert relative_error(inner(x, y), np.conj(X) * Y) < 1e-13


@named(MODERATE)
def test_nan_is_carried(case: Case) -> None:
    x, y = drawn(case, 0, 0), drawn(case, 1, 1)
    last = list(case.nodes)[-1]
    broken = dict(x.arrays)
    broken[last] = np.full_like(broken[last], np.nan)
    z = network(case, broken)
    for found in (
        norm(z),
        norm(x + z),
        norm(0 * z + y),
        inner(y, z),
        inner(z, x + y),
        distance(y, z),
    ):
        assert np.isnan(found)
    assert np.isnan((y + z).contract()).all()


# long sums of trees are sketched


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("nodes", "size", "rank"), [(train_of(8), 9, 6), (binary_tree(8), 9, 5), (star(3), 90, 6)]
)
def test_long_sums_of_small_rank_are_sketched(
    nodes: dict[str, tuple[str, ...]],
    size: int,
    rank: int,
    dtype: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    sketched = tnsum.compression.sketched_length
    monkeypatch.setattr(
        tnsum.compression, "sketched_length", lambda x: calls.append(found := sketched(x)) or found
    )
    rng = np.random.default_rng(0)
    some = [decaying(nodes, size, rank, lambda k: 0.5**k, rng, dtype) for _ in range(4)]
    weights = rng.standard_normal(400)
    stack = NetworkStack.from_networks([some[k % 4] for k in range(400)])
    s = stack.sum(weights)
    totals = [np.sum(weights[k::4]) for k in range(4)]
    terms = [x.arrays for x in some]
    wanted = 2.0 ** log2_norm(nodes, s.physical_modes, terms, totals)
    assert abs(norm(s) - wanted) < 1e-12 * wanted
    short = tnsum.add(*some, weights=totals)
    assert distance(s, short) < 1e-12 * wanted
    other = tnsum.add(*some, weights=[totals[0] + 1e-8, *totals[1:]])
    small = 1e-8 * 2.0 ** log2_norm(nodes, s.physical_modes, terms[:1], [1])
    assert abs(distance(s, other) - small) < 1e-12 * wanted
    assert len(calls) == 3
    assert all(found is not None for found in calls)


def test_a_long_sum_of_large_rank_is_not_sketched_to_the_end() -> None:
    rng = np.random.default_rng(0)
    nodes = train_of(8)
    terms = [decaying(nodes, 9, 6, lambda k: (k + 1.0) ** -0.1, rng) for _ in range(60)]
    s = tnsum.add(*terms)
    assert tnsum.compression.sketched_length(s) is None
    wanted = 2.0 ** log2_norm(nodes, s.physical_modes, [x.arrays for x in terms], [1] * 60)
    assert abs(norm(s) - wanted) < 1e-12 * wanted


@pytest.mark.parametrize("order", [5, 600])
def test_pairs_tell_whether_digits_cancel_whatever_the_scale(order: int) -> None:
    rng = np.random.default_rng(0)
    cores = [rng.standard_normal((2, 3, 2)) for _ in range(order)]
    x = tnsum.tensor_train([cores[0][0], *cores[1:-1], cores[-1][..., 0]])
    for second, is_known in ((1.0, True), (-(1 - 1e-7), False)):
        s = tnsum.add(x, x, weights=[1.0, second])
        found = measures._length_by_pairs(s.namespace, s.topology, s._grouped(s.dtype))
        assert (found is not None) == is_known


LOOPED = [
    case
    for case in MODERATE
    if not Topology(case.nodes, case.physical_modes).joined.is_tree and case.order
]


@named(LOOPED)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_norms_of_sums_with_loops_by_their_inner_products(
    case: Case, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "_DEAR", -1)
    monkeypatch.setattr(measures, "_MUCH", 1e-9)
    x, y, z = (drawn(case, k, k, dtype) for k in range(3))
    s = 1e30 * (x - 2 * y + NetworkStack.from_networks([x, z, z]).sum([0.5, 1, -0.3]))
    terms = [drawn(case, k, k, dtype).arrays for k in (0, 1, 0, 2, 2)]
    weights = [1, -2, 0.5, 1, -0.3]
    exact = dense_sum(case.nodes, case.physical_modes, terms, weights)
    assert np.isclose(norm(s) / 1e30, np.linalg.norm(exact), rtol=200 * np.finfo(dtype).eps)
    # Where terms cancel, the sum is orthogonalised after all.
    assert norm(x - y - x + y) < 1e-4 * norm(x)
