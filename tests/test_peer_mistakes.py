"""What other libraries get wrong about sums, norms and distances, each as a test of ours.

No other library is needed here; test_peers.py runs those that can be installed beside us.
"""

from typing import Any

import numpy as np
import pytest

import oracle
import tnsum
from topologies import BY_NAME, Case, arrays

ACYCLIC = ("tensor_train5", "star3", "tree8")
NAMES = ("two_nodes", "ring4", "cp3", "grid3x3", "disconnected_chains", "lone_matrix", *ACYCLIC)

cases = pytest.mark.parametrize("case", [BY_NAME[name] for name in NAMES], ids=NAMES)


def network(case: Case, which: int = 0, seed: int = 0, dtype: str = "float64") -> tnsum.Network:
    topology = tnsum.Topology(case.nodes, case.physical_modes)
    return tnsum.Network.from_topology(topology, arrays(case, which, seed, dtype))


def dense(x: tnsum.Network) -> Any:
    return oracle.dense(x.topology.nodes, x.physical_modes, x.arrays)


def check(s: tnsum.NetworkSum, expected: Any, tolerance: float = 1e-13) -> None:
    """Assert that the lazy sum, the explicit one, entries and norm are all those of `expected`."""
    assert oracle.relative_error(s.contract(), expected) < tolerance
    assert oracle.relative_error(dense(s.to_network()), expected) < tolerance
    assert s.dtype == s.to_network().dtype == expected.dtype
    indices = np.argwhere(np.ones(expected.shape))[:: max(1, expected.size // 50)]
    assert oracle.relative_error(s.entries(indices), expected[tuple(indices.T)]) < 10 * tolerance
    assert tnsum.norm(s) == pytest.approx(np.linalg.norm(expected), rel=tolerance)


@cases
def test_scale_that_a_summand_carries_is_kept(case: Case) -> None:
    a, b = network(case, 0), network(case, 1)
    check(10 * a + b, 10 * dense(a) + dense(b))
    check(b - (a + 3 * (b * 10)) / 4, dense(b) - (dense(a) + 30 * dense(b)) / 4)
    check((10 * a).to_network() + b, 10 * dense(a) + dense(b))


@pytest.mark.parametrize("name", ["disconnected_chains", "disconnected_vectors"])
def test_disconnected_networks_add_as_tensors_not_component_by_component(name: str) -> None:
    case = BY_NAME[name]
    a, b, c = (network(case, which) for which in range(3))
    s = a + 2 * b - c
    check(s, dense(a) + 2 * dense(b) - dense(c))
    # A second sum, of the joined networks, is right too.
    check(s.to_network() + s.to_network(), 2 * (dense(a) + 2 * dense(b) - dense(c)))


def gauged(x: tnsum.Network, seed: int) -> tnsum.Network:
    """The same tensor from other arrays: a rotation put into every contraction mode."""
    rng = np.random.default_rng(seed)
    changed = dict(x.arrays)
    for mode in x.topology.contraction_modes:
        rotation = np.linalg.qr(rng.standard_normal((x.ranks[mode],) * 2))[0]
        for name in x.topology.holders(mode):
            axis = x.topology.nodes[name].index(mode)
            turned = np.tensordot(changed[name], rotation, axes=(axis, 0))
            changed[name] = np.moveaxis(turned, -1, axis)
    return tnsum.Network.from_topology(x.topology, changed)


@pytest.mark.parametrize("ratio", [86.0, 1e4, 1e8])
@pytest.mark.parametrize("name", ["ring4", "grid3x3", *ACYCLIC])
def test_cancelling_sum_is_accurate_relative_to_the_sum(name: str, ratio: float) -> None:
    case = BY_NAME[name]
    a, c = network(case, 0), network(case, 1)
    weight = np.linalg.norm(dense(a)) / np.linalg.norm(dense(c)) / ratio
    s = tnsum.add(a, gauged(a, 1), c, weights=[1, -1, weight])
    assert np.linalg.norm(dense(a)) == pytest.approx(ratio * tnsum.norm(s), rel=1e-15 * ratio**2)
    # The rounding of the terms is all that may be lost.
    tolerance = 1e-14 * ratio
    assert tolerance < 1e-5
    assert tnsum.norm(s) == pytest.approx(weight * np.linalg.norm(dense(c)), rel=tolerance)
    assert tnsum.distance(a + weight * c, gauged(a, 2)) == pytest.approx(
        tnsum.norm(s), rel=tolerance
    )
    assert oracle.relative_error(s.contract(), weight * dense(c)) < tolerance
    assert oracle.relative_error(dense(s.to_network()), weight * dense(c)) < tolerance


@cases
def test_real_and_complex_summands_keep_the_imaginary_part(case: Case) -> None:
    a, b = network(case, 0), network(case, 1, dtype="complex128")
    expected = dense(a) + 2 * dense(b)
    assert np.linalg.norm(expected.imag) > 0.05 * np.linalg.norm(expected)
    check(a + 2 * b, expected)
    check(2 * b + a, expected)
    check(a + 2j * a, (1 + 2j) * dense(a))


def test_arrays_of_lone_nodes_are_added() -> None:
    a, b = (tnsum.Network({"x": (np.array(v), ("i",))}) for v in ([1.0, 2.0], [10.0, 20.0]))
    check(a + b, np.array([11.0, 22.0]))
    np.testing.assert_array_equal((a + b).node("x"), [11.0, 22.0])


@cases
def test_sum_is_not_normalised(case: Case) -> None:
    a = network(case)
    norm = np.linalg.norm(dense(a))
    check(a + a, 2 * dense(a))
    check(7 * a + 5 * a, 12 * dense(a))
    assert tnsum.norm(a + a) == pytest.approx(2 * norm, rel=1e-13)
    assert tnsum.norm((a + a).to_network()) == pytest.approx(2 * norm, rel=1e-13)


def train(sizes: tuple[int, ...], rank: int = 2, seed: int = 0) -> tnsum.Network:
    rng = np.random.default_rng(seed)
    ranks = [1, *[rank] * (len(sizes) - 1), 1]
    shapes = zip(ranks, sizes, ranks[1:], strict=False)
    return tnsum.tensor_train([rng.standard_normal(shape) for shape in shapes])


@pytest.mark.parametrize("sizes", [(4, 3, 2), (2, 3, 2), (1, 3, 2)], ids=str)
def test_sizes_that_differ_are_refused_not_repeated(sizes: tuple[int, ...]) -> None:
    a, b = train((8, 3, 2)), train(sizes)
    for x, y in [(a, b), (b, a)]:
        message = f"has size {y.shape[0]}, .* has {x.shape[0]}"
        for call in (tnsum.add, tnsum.mean, tnsum.inner, tnsum.distance):
            with pytest.raises(tnsum.ModeError, match=message):
                call(x, y)
        with pytest.raises(tnsum.ModeError, match=message):
            tnsum.NetworkStack.from_networks([x, y])
    with pytest.raises(tnsum.ModeError, match=r"has size 2, .* has 4"):
        train((4, 4)) + train((4, 2))


@pytest.mark.parametrize("size", [2.3e-10, 2e-10, 1e-12])
@pytest.mark.parametrize("name", ["ring4", "cp3", "grid3x3", *ACYCLIC])
def test_distance_of_two_in_ten_billionths_is_right_and_not_nan(name: str, size: float) -> None:
    case = BY_NAME[name]
    x, d = network(case, 0), network(case, 1)
    x, d = x / tnsum.norm(x), d / tnsum.norm(d)
    y = x + size * d
    # 1e-15 of the terms is rounding.
    allowed = 2e-15 / size
    assert tnsum.distance(x, y) == pytest.approx(size, rel=allowed)
    assert tnsum.distance(y.to_network(), x.to_network()) == pytest.approx(size, rel=allowed)
    near = tnsum.distance(3 * y, 3 * x, relative=True)
    assert near == pytest.approx(size, rel=allowed)
    assert tnsum.norm(y - x) == pytest.approx(size, rel=allowed)


def test_distance_of_a_sum_to_itself_is_zero_to_rounding_and_not_nan() -> None:
    x = network(BY_NAME["tensor_train5"])
    assert 0 <= tnsum.distance(x, x) <= 1e-15 * tnsum.norm(x)
    assert 0 <= tnsum.distance(x + x, 2 * gauged(x, 1)) <= 1e-14 * tnsum.norm(x)


def test_different_orders_are_refused() -> None:
    long, short = train((3, 3, 3, 3)), train((3, 3, 3))
    for call in (tnsum.add, tnsum.inner, tnsum.distance):
        for x, y in [(long, short), (short, long), (long + long, short)]:
            with pytest.raises(tnsum.NetworkError, match=r"summand 0.*'?i3'?|'?i3'?.*summand 0"):
                call(x, y)


@pytest.mark.parametrize("how", ["add", "sum", "stack"])
@cases
def test_sum_of_many_complex_networks_is_right(case: Case, how: str) -> None:
    terms = [network(case, 2 * (k % 2), seed=k, dtype="complex128") for k in range(6)]
    weights = np.exp(1j * np.linspace(0, 1, 6)) * np.linspace(1, 2, 6)
    if how == "add":
        s = tnsum.add(*terms, weights=weights)
    elif how == "sum":
        s = sum(complex(w) * x for w, x in zip(weights, terms, strict=True))
    else:
        s = tnsum.NetworkStack.from_networks(terms).sum(weights)
    expected = sum(w * dense(x) for w, x in zip(weights, terms, strict=True))
    assert oracle.relative_error(s.contract(), expected) < 1e-13
    small = tnsum.add(*terms[:2], weights=weights[:2])
    check(small, weights[0] * dense(terms[0]) + weights[1] * dense(terms[1]))
    x = terms[1]
    assert tnsum.inner(x, s) == pytest.approx(np.vdot(dense(x), expected), rel=1e-12)
    assert tnsum.inner(s, s) == pytest.approx(np.linalg.norm(expected) ** 2, rel=1e-12)
    assert tnsum.norm(s) == pytest.approx(np.linalg.norm(expected), rel=1e-12)


def log10_of_inner(first: list[Any], second: list[Any]) -> float:
    """log10 of the inner product of two trains of positive cores, by a plain loop."""
    matrix, exponent = np.ones((1, 1)), 0.0
    for a, b in zip(first, second, strict=True):
        matrix = np.einsum("ab,aic,bid->cd", matrix, a, b)
        exponent += np.log10(matrix.max())
        matrix = matrix / matrix.max()
    return exponent


def long_trains(factors: list[float]) -> tuple[tnsum.Network, tnsum.Network, Any]:
    """Two positive trains of order 400 and size 10, the first's cores scaled, and log10 of their
    inner products with themselves and with each other.
    """
    rng = np.random.default_rng(0)
    ranks = [1, *[3] * 399, 1]
    shapes = [(ranks[k], 10, ranks[k + 1]) for k in range(400)]
    first = [rng.uniform(0, 0.2, shape) * f for shape, f in zip(shapes, factors, strict=True)]
    second = [rng.uniform(0, 0.2, shape) for shape in shapes]
    pairs = [(first, first), (second, second), (first, second)]
    logs = [log10_of_inner(*pair) for pair in pairs]
    return tnsum.tensor_train(first), tnsum.tensor_train(second), logs


# Parts of the products leave the range of float64, the norms do not.
SCALES = {
    "plain": [1.0] * 400,
    "large inside": [1e-2] * 100 + [1e2] * 200 + [1e-2] * 100,
    "small inside": [1e2] * 100 + [1e-2] * 200 + [1e2] * 100,
    "large, then small": [1e3] * 200 + [1e-3] * 200,
}


@pytest.mark.parametrize("factors", SCALES.values(), ids=SCALES)
def test_order_400_with_sizes_of_10_neither_overflows_nor_underflows(factors: list[float]) -> None:
    a, b, (log_aa, log_bb, log_ab) = long_trains(factors)
    assert abs(log_aa) < 300
    assert np.log10(tnsum.norm(a + 3 * a)) == pytest.approx(log_aa / 2 + np.log10(4), abs=1e-10)
    assert np.log10(tnsum.inner(a, b - 3 * b) / -2) == pytest.approx(log_ab, abs=1e-10)
    assert tnsum.distance(a + a, a, relative=True) == pytest.approx(1, rel=1e-10)
    # Summands of one sum that are scaled differently along the chain.
    squares = [1, 10 ** (log_bb - log_aa), 2 * 10 ** (log_ab - log_aa)]
    expected = np.log10(np.sqrt(sum(squares))) + log_aa / 2
    assert tnsum.norm(a + b) > 0
    assert np.log10(tnsum.norm(a + b)) == pytest.approx(expected, abs=1e-10)


def test_norm_of_order_400_is_right_where_its_square_overflows() -> None:
    ones = tnsum.tensor_train([np.ones((1, 10, 1))] * 400)
    assert tnsum.norm(ones) == pytest.approx(1e200, rel=1e-12)
    assert tnsum.norm(ones + ones) == pytest.approx(2e200, rel=1e-12)
    tiny = tnsum.tensor_train([np.full((1, 10, 1), 1e-1)] * 400)
    assert tnsum.norm(tiny + tiny) == pytest.approx(2e-200, rel=1e-12)
    assert tnsum.inner(tiny + tiny, ones) == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize(("size", "rank"), [(1, 2), (2, 1), (1, 1)])
def test_norms_of_long_trains_of_size_or_rank_one_need_no_array_of_many_axes(
    size: int, rank: int
) -> None:
    ranks = [1, *[rank] * 99, 1]
    x = tnsum.tensor_train([np.ones((ranks[k], size, ranks[k + 1])) for k in range(100)])
    expected = float(rank) ** 99 * float(size) ** 50
    assert tnsum.norm(x) == pytest.approx(expected, rel=1e-12)
    assert tnsum.norm(x - 3 * x) == pytest.approx(2 * expected, rel=1e-12)
    assert tnsum.inner(x, x + x) == pytest.approx(2 * expected**2, rel=1e-12)


@cases
def test_norm_of_a_sum_is_that_of_the_tensor_and_not_zero(case: Case) -> None:
    terms = [network(case, which) for which in range(3)]
    expected = np.linalg.norm(dense(terms[0]) - 2 * dense(terms[1]) + dense(terms[2]) / 2)
    assert expected > 0.1
    s = tnsum.add(*terms, weights=[1, -2, 0.5])
    assert tnsum.norm(s) == pytest.approx(expected, rel=1e-12)
    assert tnsum.norm(s.to_network()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("value", [np.ones((3, 2, 4)), np.ones(()), 1.0, 3], ids=repr)
def test_adding_an_array_or_a_number_is_a_clear_type_error(value: Any) -> None:
    x = network(BY_NAME["star3"])
    for y in (x, x + x):
        for call in (
            lambda y: y + value,
            lambda y: value + y,
            lambda y: y - value,
            lambda y: value - y,
        ):
            with pytest.raises(TypeError, match=r"A network adds to networks only; .* came"):
                call(y)
