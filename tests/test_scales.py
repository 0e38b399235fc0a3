"""norm, inner and distance over the whole range: no scale pushes another out, zero sets none."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tnsum
from libraries import LIBRARIES_AND_DTYPES, TALL, Library, library, network
from oracle import dense
from tnsum import NetworkStack, NetworkSum, _scale, distance, inner, measures, norm
from topologies import BY_NAME, CASES, DTYPES, Case, arrays

Array = NDArray[Any]

SINGLE = ("float32", "complex64")
EPS = {dtype: float(np.finfo(dtype).eps) for dtype in DTYPES}
# How far an exponent may be from zero, so that a few entries times each other are no surprise.
REACH = {dtype: 100 if dtype in SINGLE else 900 for dtype in DTYPES}

# JAX compiles each of many small steps: it has tests of its own below.
libraries_and_dtypes = pytest.mark.parametrize(
    ("name", "dtype"), [each for each in LIBRARIES_AND_DTYPES if each.values[0] != "jax"]
)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def trains(n: int, of: Library, dtype: str, order: int = 4) -> list[tnsum.Network]:
    rng = np.random.default_rng(0)
    shapes = [(6, 4), *[(4, 6, 4)] * (order - 2), (4, 6)]
    return [
        tnsum.tensor_train([of.convert(rng.standard_normal(s).astype(dtype)) for s in shapes])
        for _ in range(n)
    ]


# what was wrong


@libraries_and_dtypes
def test_long_sums_of_terms_that_repeat_are_measured(name: str, dtype: str) -> None:
    of = library(name)
    some = trains(4, of, dtype, order=8)
    s = NetworkStack.from_networks([some[k % 4] for k in range(150)]).sum()
    short = tnsum.add(*some, weights=[38, 38, 37, 37])
    near = 100 * EPS[dtype]
    assert float(norm(s)) == pytest.approx(float(norm(short)), rel=near)
    assert float(distance(s, short, relative=True)) < near
    assert float(distance(s, some[0])) == pytest.approx(float(distance(short, some[0])), rel=near)


@libraries_and_dtypes
def test_a_term_of_weight_zero_sets_no_scale(name: str, dtype: str) -> None:
    of = library(name)
    x, y = trains(2, of, dtype)
    weight = 1e-30 if dtype in SINGLE else 1e-170
    s = weight * x + 0.0 * y
    expected, near = weight * float(norm(x)), 100 * EPS[dtype]
    assert float(norm(s)) == pytest.approx(expected, rel=near)
    assert float(distance(s, 0 * y)) == pytest.approx(expected, rel=near)
    assert float(distance(3 * s, s, relative=True)) == pytest.approx(2, rel=near)
    assert complex(inner(x, s)) == pytest.approx(expected * float(norm(x)), rel=near)
    assert complex(inner(y, s)) == pytest.approx(weight * complex(inner(y, x)), rel=1e4 * near)


@libraries_and_dtypes
@pytest.mark.parametrize("zero", ["first", "last"])
def test_a_term_with_a_node_of_zeros_sets_no_scale(name: str, dtype: str, zero: str) -> None:
    of = library(name)
    case = BY_NAME["tensor_train5"]
    far = 2.0 ** -(REACH[dtype] // 4)
    held = {node: far * array for node, array in arrays(case, 0, dtype=dtype).items()}
    # The nodes of the other term are large but one, first or last in the order of the products.
    other = {node: array / far for node, array in arrays(case, 0, 1, dtype).items()}
    other["A" if zero == "first" else "E"] *= 0
    x, y = network(case, held, of), network(case, other, of)
    expected = float(np.linalg.norm(dense(case.nodes, case.physical_modes, held)))
    weight = 2.0 ** (REACH[dtype] // 2)
    near = 100 * EPS[dtype]
    for s in (weight * x + y, y + weight * x):
        assert float(norm(s)) == pytest.approx(weight * expected, rel=near)
        assert float(distance(s, y)) == pytest.approx(weight * expected, rel=near)
        assert float(distance(s, weight * x, relative=True)) <= near


@libraries_and_dtypes
def test_summands_beyond_the_range_are_measured_beside_small_ones(name: str, dtype: str) -> None:
    """Their norms are 1e58 in single precision, and their weights bring them back."""
    of = library(name)
    case = BY_NAME["disconnected_chains"]
    power = 90 if dtype in SINGLE else 900
    large = arrays(case, 0, dtype=dtype)
    small = arrays(case, 1, dtype=dtype)
    size = float(np.linalg.norm(dense(case.nodes, case.physical_modes, large)))
    first, *_, last = large
    scaled = {**large, first: large[first] * 2.0**power, last: large[last] * 2.0**power}
    x, y = network(case, scaled, of), network(case, small, of)
    s = tnsum.add(x, y, y, weights=[2.0**-power, 2.0**-power, 1.0])
    near = 100 * EPS[dtype]
    assert float(norm(s)) == pytest.approx(size * 2.0**power, rel=near)
    assert float(distance(s, 0.5 * y)) == pytest.approx(size * 2.0**power, rel=near)
    assert float(distance(s, x, relative=True)) == pytest.approx(1, rel=near)


@libraries_and_dtypes
def test_sums_of_nothing_but_zeros_are_zero(name: str, dtype: str) -> None:
    of = library(name)
    x, y = trains(2, of, dtype)
    s = 0.0 * x + 0.0 * y
    assert float(norm(s)) == float(distance(s, 0 * x)) == 0
    assert complex(inner(s, x)) == complex(inner(s, s)) == 0
    assert float(distance(s, x, relative=True)) == pytest.approx(1, rel=100 * EPS[dtype])
    with np.errstate(divide="ignore"):
        assert float(distance(x, s, relative=True)) == np.inf


# any sum


def wide(array: Any) -> Array:
    return np.asarray(array).astype(np.result_type(array.dtype, np.longdouble))


def length(array: Array) -> Any:
    return np.sqrt(np.sum(np.abs(array) ** 2))


def scattered(
    rng: np.random.Generator, case: Case, seed: int, dtype: str
) -> dict[str, NDArray[Any]]:
    """Arrays of the case with powers of two anywhere in the range, that cancel or not, or a zero."""
    held = arrays(case, int(rng.integers(3)), seed, dtype)
    kind = rng.choice(["any", "level", "one-sided", "near", "zero"])
    powers = rng.integers(-REACH[dtype], REACH[dtype] + 1, len(held))
    if kind == "level":
        powers = np.clip(powers - round(powers.mean()), -REACH[dtype], REACH[dtype])
    elif kind == "one-sided":
        powers = abs(powers) * rng.choice([-1, 1])
    elif kind in ("near", "zero"):
        powers = 0 * powers
    found = {
        node: np.ldexp(1.0, p) * wide(a) for (node, a), p in zip(held.items(), powers, strict=True)
    }
    if kind == "zero":
        found[str(rng.choice(list(held)))] *= 0
    return {node: array.astype(dtype) for node, array in found.items()}


def random_weight(rng: np.random.Generator, size: Any, dtype: str) -> float:
    """Zero, any power of two, an ordinary number, or what brings a summand near one."""
    most = REACH[dtype] + 20
    if size == 0 or (kind := rng.integers(4)) == 0:
        return 0.0
    if kind == 1:
        return float(2.0 ** rng.integers(-most, most))
    if kind == 2:
        return float(np.float32(rng.standard_normal()))
    return float(2.0 ** np.clip(round(-float(np.log2(size))) + rng.integers(-20, 20), -most, most))


class Drawn:
    """A random sum with its dense array in extended precision, whose range nothing here leaves."""

    def __init__(self, case: Case, seed: int, dtype: str, of: Library) -> None:
        rng = np.random.default_rng([seed, *case.name.encode()])
        terms = [scattered(rng, case, seed + k, dtype) for k in range(int(rng.integers(1, 5)))]
        dense_terms = [self._dense(case, term) for term in terms]
        sizes = [length(array) for array in dense_terms]
        weights = [random_weight(rng, size, dtype) for size in sizes]
        self.sum: NetworkSum = tnsum.add(*(network(case, t, of) for t in terms), weights=weights)
        self.first = network(case, terms[0], of)
        self.dense_first, self.first_size = dense_terms[0], sizes[0]
        self.dense = sum(w * array for w, array in zip(weights, dense_terms, strict=True))
        self.together = sum(abs(w) * size for w, size in zip(weights, sizes, strict=True))

    @staticmethod
    def _dense(case: Case, term: Mapping[str, Any]) -> Array:
        held = {node: wide(array) for node, array in term.items()}
        return dense(case.nodes, case.physical_modes, held)


def check(found: Any, expected: Any, together: Any, dtype: str, of: Library) -> None:
    """Whether a number is right to rounding, relative to what is added, wherever that is in range."""
    info = np.finfo(dtype)
    number = np.asarray(of.to_numpy(of.convert(np.asarray(found)) if of.name == "numpy" else found))
    if together > float(info.max) / 4:
        # What overflows, does so: it is not zero, and no other number.
        assert (
            not np.all(np.isfinite(number)) or abs(number - expected) <= 1e3 * info.eps * together
        )
        return
    least = info.tiny if of.name == "jax" else info.smallest_subnormal
    assert abs(wide(number) - expected) <= 100 * float(info.eps) * together + 2 * wide(least)


def check_measures(drawn: Drawn, dtype: str, of: Library) -> None:
    s, y = drawn.sum, drawn.first
    difference = length(drawn.dense - drawn.dense_first)
    apart = drawn.together + drawn.first_size
    check(norm(s), length(drawn.dense), drawn.together, dtype, of)
    product = np.vdot(drawn.dense_first.ravel(), drawn.dense.ravel())
    check(inner(y, s), product, drawn.first_size * drawn.together, dtype, of)
    check(distance(s, y), difference, apart, dtype, of)
    if drawn.first_size > 0:
        relative, size = distance(s, y, relative=True), drawn.first_size
        check(relative, difference / size, apart / size, dtype, of)


SCATTERED = [case for case in CASES if case.order <= 9 and len(case.nodes) < 14] + TALL
has_wide_range = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp < 16000, reason="the oracle needs numbers of a wider range"
)


@has_wide_range
@every_dtype
@pytest.mark.parametrize("case", SCATTERED, ids=lambda case: case.name)
def test_scattered_sums(case: Case, dtype: str) -> None:
    of = library("numpy")
    with np.errstate(all="ignore"):
        for seed in range(3):
            check_measures(Drawn(case, seed, dtype, of), dtype, of)


@has_wide_range
@pytest.mark.large
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in ("array_api_strict", "torch") for dtype in DTYPES],
)
def test_scattered_sums_in_other_libraries(name: str, dtype: str) -> None:
    of = library(name)
    with np.errstate(all="ignore"):
        for case in SCATTERED:
            check_measures(Drawn(case, 7, dtype, of), dtype, of)


@has_wide_range
@pytest.mark.large
@pytest.mark.parametrize(
    ("case", "dtype"), [("tensor_train5", "float32"), ("disconnected_chains", "complex128")]
)
def test_scattered_sums_under_jax(case: str, dtype: str) -> None:
    of = library("jax")
    drawn = Drawn(BY_NAME[case], 1, dtype, of)
    check(of.compiled(norm)(drawn.sum), length(drawn.dense), drawn.together, dtype, of)


@pytest.mark.large
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_term_of_weight_zero_sets_no_scale_under_jax(dtype: str) -> None:
    of = library("jax")
    x, y = trains(2, of, dtype, order=3)
    weight = 1e-30 if dtype in SINGLE else 1e-170
    s = tnsum.add(x, y, weights=of.convert(np.asarray([weight, 0.0], dtype)))
    expected = weight * float(of.compiled(norm)(x))
    assert float(of.compiled(norm)(s)) == pytest.approx(expected, rel=100 * EPS[dtype])


@has_wide_range
@every_dtype
@pytest.mark.parametrize("route", ["by pairs", "orthogonalised"])
def test_scattered_sums_by_either_route(
    route: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = library("numpy")
    work = -1 if route == "orthogonalised" else 10**30
    monkeypatch.setattr(measures, "work_of_cores", lambda *_: work)
    with np.errstate(all="ignore"):
        for case in SCATTERED:
            drawn = Drawn(case, 11, dtype, of)
            if route == "by pairs":
                s = drawn.sum
                found = measures._length_by_pairs(s.namespace, s.topology, s._grouped(s.dtype))
                if found is not None:
                    number = _scale.unscaled(s.namespace, *found)
                    # The part of its bound that it has at least is a hundredth.
                    check(number, length(drawn.dense), 100 * drawn.together, dtype, of)
            check_measures(drawn, dtype, of)


def chain_of_stacks(scales: Sequence[Sequence[float]], dtype: str) -> NetworkSum:
    """Networks of rank one whose nodes have these entries: one row for each network."""
    nodes = np.asarray(scales)[:, :, None] * np.ones(2)
    terms = []
    for row in nodes:
        shapes = [(2, 1), *[(1, 2, 1)] * (len(row) - 2), (1, 2)]
        cores = [np.reshape(r, shape).astype(dtype) for r, shape in zip(row, shapes, strict=True)]
        terms.append(tnsum.tensor_train(cores))
    return NetworkStack.from_networks(terms).sum()


@every_dtype
@pytest.mark.parametrize("order", [12, 100])
def test_networks_of_a_stack_do_not_push_each_other_out_on_the_way(
    order: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One grows along its nodes and shrinks, one shrinks and grows: in the end they weigh alike."""
    half, step = order // 2, 2.0 ** min(REACH[dtype], 2000 // order)
    up = [step] * half + [1 / step] * half
    s = chain_of_stacks([up, up[::-1], [1.0] * order], dtype)
    expected = 3 * 2.0 ** (order / 2)
    for work in (None, -1, 10**30):
        if work is not None:
            monkeypatch.setattr(measures, "work_of_cores", lambda *_, work=work: work)
        assert norm(s) == pytest.approx(expected, rel=100 * EPS[dtype])
        assert inner(s, s.summands[0]) == pytest.approx(expected**2 / 3, rel=100 * EPS[dtype])
