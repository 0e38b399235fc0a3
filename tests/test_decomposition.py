"""decompose: against plain loops of singular value decompositions, and errors within the tolerance."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tnsum
from libraries import LIBRARIES_AND_DTYPES, SMALL, library
from oracle import dense, relative_error
from raising import check_message, unreached
from tnsum import ModeError, Network, NetworkError, Topology, TopologyError
from tnsum.decomposition import decompose, decompose_stack
from topologies import BY_NAME, CASES, DTYPES, Case

Array: TypeAlias = NDArray[Any]

EPS = {name: float(np.finfo(name).eps) for name in DTYPES}
FORMATS = "tucker", "tensor_train", "tree"
METHODS = "hosvd", "sequential", "hooi"
FORMATS_AND_METHODS = [(f, m) for f in FORMATS for m in METHODS if m != "hooi" or f == "tucker"]
SHAPES = [(6, 5, 4), (4, 3, 5, 3), (7, 6), (9,), (1, 4, 1, 3)]
TREES = [
    case
    for case in CASES
    if Topology(case.nodes, case.physical_modes).is_tree and "disconnected" not in case.name
]


# plain loops


def random_array(shape: Sequence[int], seed: int = 0, dtype: str = "float64") -> Array:
    """An array whose singular values fall along every axis, by about a half from one to the next."""
    rng = np.random.default_rng([seed, *shape])
    array = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        array = array + 1j * rng.standard_normal(shape)
    for k, size in enumerate(shape):
        basis = np.linalg.qr(rng.standard_normal((size, size)))[0] * 0.5 ** np.arange(size)
        array = np.moveaxis(np.tensordot(basis, array, (1, k)), 0, k)
    return np.asarray(array).astype(dtype)


def unfolded(x: Array, axes: Sequence[int]) -> Array:
    """The matrix with these axes as rows."""
    rest = [k for k in range(x.ndim) if k not in axes]
    return x.transpose(*axes, *rest).reshape(math.prod(x.shape[k] for k in axes), -1)


def projected(x: Array, axes: Sequence[int], basis: Array) -> Array:
    """The orthogonal projection of x on a basis along some axes."""
    rest = [k for k in range(x.ndim) if k not in axes]
    order = [*axes, *rest]
    flat = basis @ (basis.conj().T @ unfolded(x, axes))
    return flat.reshape([x.shape[k] for k in order]).transpose(np.argsort(order))


def leading(matrix: Array, rank: int) -> Array:
    return np.linalg.svd(matrix, full_matrices=True)[0][:, :rank]


Groups: TypeAlias = list[tuple[tuple[int, ...], int]]
"""The axes below each contraction mode, deeper ones first, and its rank."""


def expected(x: Array, groups: Groups, sequential: bool) -> Array:
    """What a tree gives: each group's basis within those of the largest groups inside it."""
    bases: dict[tuple[int, ...], Array] = {}
    here = x
    for axes, rank in groups:
        inside = np.ones((1, 1))
        for part in parts_of(axes, list(bases)):
            inside = np.kron(inside, bases.get(part, np.eye(x.shape[part[0]])))
        matrix = inside.conj().T @ unfolded(here if sequential else x, axes)
        bases[axes] = inside @ leading(matrix, rank)
        if sequential:
            here = projected(here, axes, bases[axes])
    for axes, _ in groups:
        here = projected(here, axes, bases[axes])
    return here


def parts_of(axes: tuple[int, ...], groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The largest groups within some axes, and single axes where there is none."""
    found: list[tuple[int, ...]] = []
    while sum(map(len, found)) < len(axes):
        first = axes[sum(map(len, found))]
        fitting = [g for g in groups if g[0] == first and set(g) < set(axes)]
        found.append(max(fitting, key=len, default=(first,)))
    return found


def groups_of(format: str, shape: Sequence[int], ranks: Mapping[str, int]) -> Groups:
    """The axes below each contraction mode of a format, from its definition."""
    order = len(shape)
    if format == "tucker":
        return [((k,), ranks[f"r{k}"]) for k in range(order)]
    if format == "tensor_train":
        return [(tuple(range(k + 1)), ranks[f"r{k}"]) for k in range(order - 1)]
    found: list[tuple[int, tuple[int, ...], int]] = []
    n_inner = 0

    def split(start: int, stop: int, depth: int) -> None:
        nonlocal n_inner
        name = f"r_inner{n_inner}" if stop - start > 1 else f"r_leaf{start}"
        if depth:
            found.append((depth, tuple(range(start, stop)), ranks[name]))
        if stop - start > 1:
            n_inner += 1
            middle = start + (stop - start + 1) // 2
            split(start, middle, depth + 1)
            split(middle, stop, depth + 1)

    split(0, order, 0)
    return [(axes, rank) for _, axes, rank in sorted(found, key=lambda g: -g[0])]


def alternated(x: Array, ranks: Sequence[int], n_sweeps: int) -> Array:
    """HOOI by plain loops, from the HOSVD."""
    bases = [leading(unfolded(x, [k]), rank) for k, rank in enumerate(ranks)]
    for _ in range(n_sweeps):
        for k, rank in enumerate(ranks):
            here = x
            for j, basis in enumerate(bases):
                here = here if j == k else projected(here, [j], basis)
            bases[k] = leading(unfolded(here, [k]), rank)
    for k, basis in enumerate(bases):
        x = projected(x, [k], basis)
    return x


# what holds of every decomposition


def wide(x: Network) -> Array:
    """The dense array in extended precision, which sees what double precision rounds."""
    kind = np.clongdouble if np.iscomplexobj(np.asarray(x._some_array)) else np.longdouble
    held = {name: np.asarray(array).astype(kind) for name, array in x.arrays.items()}
    return dense(x.topology.nodes, x.physical_modes, held)


def error_of(y: Network, x: Array) -> float:
    exact = x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)
    return relative_error(wide(y), exact)


def root_of(y: Network) -> str:
    """The node towards which all others are orthonormal, by counting from the format's names."""
    nodes = list(y.arrays)
    return nodes[-1] if nodes[0] == "node0" else nodes[0]


def check_columns(y: Network, root: str, dtype: str) -> None:
    """Columns towards the root are orthonormal, and their signs follow the rule."""
    up = {root: ""}
    for name in (order := [root]):
        for mode in y.topology.nodes[name]:
            for other in y.topology.holders(mode):
                if other not in up:
                    up[other] = mode
                    order.append(other)
    for name, mode in up.items():
        if name != root:
            axis = y.topology.nodes[name].index(mode)
            array = np.moveaxis(np.asarray(y.arrays[name]), axis, -1)
            check_orthonormal(array.reshape(-1, array.shape[-1]), dtype)


def check_orthonormal(matrix: Array, dtype: str) -> None:
    gram = matrix.conj().T @ matrix
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=50 * EPS[dtype])
    for column in matrix.T:
        sizes = np.abs(column)
        first = column[np.flatnonzero(sizes > 0.999 * sizes.max())[0]]
        assert abs(first - abs(first)) <= 10 * EPS[dtype]
        assert first.real > 0


def small_ranks(format: str, shape: Sequence[int], most: int = 2) -> dict[str, int]:
    """Ranks of a format, `most` or one more where the sizes allow that."""
    topology = decompose(np.ones(shape), format).topology
    largest = decompose_stack(np.ones((1, *shape)), format).ranks
    return {m: min(most + k % 2, largest[m]) for k, m in enumerate(topology.contraction_modes)}


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_given_ranks_equal_plain_loops(
    format: str, method: str, shape: tuple[int, ...], dtype: str
) -> None:
    x = random_array(shape, dtype=dtype)
    ranks = small_ranks(format, shape)
    y = decompose(x, format, ranks, method=method)
    assert dict(y.ranks) == ranks
    assert (y.shape, y.dtype) == (shape, np.dtype(dtype))
    check_columns(y, root_of(y), dtype)
    is_single = EPS[dtype] > 1e-10
    if method == "hooi":
        theirs = alternated(x.astype(complex), list(ranks.values()), 60)
        assert abs(error_of(y, x) - relative_error(theirs, x)) < 1e-5
        allowed = 2e-3
    else:
        groups = groups_of(format, shape, ranks)
        theirs = expected(x.astype(complex), groups, method == "sequential")
        allowed = 2e-5 if is_single else 1e-13
    assert relative_error(wide(y), theirs) < allowed


@pytest.mark.parametrize("method", METHODS[:2])
def test_the_ways_differ_where_they_should(method: str) -> None:
    x = random_array((5, 4, 3, 4), 3)
    for format in ("tucker", "tree"):
        ranks = small_ranks(format, x.shape, 1)
        groups = groups_of(format, x.shape, ranks)
        other = expected(x, groups, method != "sequential")
        assert relative_error(wide(decompose(x, format, ranks, method=method)), other) > 1e-3
    trains = [wide(decompose(x, "tensor_train", 2, method=m)) for m in METHODS[:2]]
    np.testing.assert_array_equal(*trains)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 7])
def test_names_are_those_of_the_builders(format: str, order: int) -> None:
    x = random_array((3,) * order)
    y = decompose(x, format)
    arrays = list(y.arrays.values())
    if format == "tucker":
        built = tnsum.tucker(arrays[0], arrays[1:])
    elif format == "tensor_train":
        built = tnsum.tensor_train(arrays)
    else:
        built = tnsum.tree(nested(y, next(iter(y.arrays))))
    assert y.topology == built.topology
    twice = y + built
    assert twice.n_summands == 2
    assert relative_error(twice.contract(), 2 * x) < 1e-13


def nested(y: Network, name: str) -> Any:
    """A tree as `tnsum.tree` takes it."""
    down = [m.removeprefix("r_") for m in y.topology.nodes[name] if m not in ("i0", f"r_{name}")]
    children = [nested(y, child) for child in down if child in y.arrays]
    return (y.arrays[name], children) if children else y.arrays[name]


def test_the_tree_is_balanced() -> None:
    y = decompose(np.ones((2, 3, 2, 3, 2)), "tree", 1)
    assert y.topology.nodes["inner0"] == ("r_inner1", "r_inner3")
    assert y.topology.nodes["inner1"] == ("r_inner2", "r_leaf2", "r_inner1")
    assert y.topology.nodes["inner2"] == ("r_leaf0", "r_leaf1", "r_inner2")
    assert y.topology.nodes["inner3"] == ("r_leaf3", "r_leaf4", "r_inner3")


# any tree


def array_for(case: Case, dtype: str) -> Array:
    return random_array(case.shape, dtype=dtype) if case.shape else np.asarray(-2.5).astype(dtype)


def losses(x: Array, y: Network) -> list[float]:
    """For each contraction mode what its rank loses at least, relative to the norm."""
    found = []
    physical = y.physical_modes
    for mode in y.topology.contraction_modes:
        reached = [y.topology.holders(mode)[0]]
        for name in reached:
            for other in y.topology.nodes[name]:
                new = set(y.topology.holders(other)) - set(reached) if other != mode else set()
                reached += sorted(new)
        axes = [k for k, m in enumerate(physical) if y.topology.holders(m)[0] in reached]
        values = np.linalg.svd(unfolded(x, axes), compute_uv=False)
        found.append(np.linalg.norm(values[y.ranks[mode] :]) / np.linalg.norm(values))
    return found


@pytest.mark.parametrize("case", TREES, ids=lambda case: case.name)
@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_any_tree(case: Case, method: str, dtype: str) -> None:
    topology = Topology(case.nodes, case.physical_modes)
    x = array_for(case, dtype)
    exact = x.astype(complex)
    for ranks, tolerance in ((None, None), (None, 0.05), (2, None), (2, 0.3)):
        y = decompose(x, topology, ranks, tolerance, method)
        assert y.topology == topology
        assert y.dtype == x.dtype
        error = error_of(y, x)
        if ranks is None:
            assert error <= (tolerance or 100 * EPS[dtype])
        else:
            assert max(y.ranks.values(), default=1) <= ranks
        lost = losses(exact, y)
        noise = 100 * EPS[dtype]
        assert max(lost, default=0) - noise <= error <= np.linalg.norm(lost) + noise


def test_a_topology_of_a_named_format_gives_the_same() -> None:
    x = random_array((4, 5, 3, 4))
    for format in FORMATS:
        y = decompose(x, format, 2)
        z = decompose(x, y.topology, 2)
        assert y.topology == z.topology
        assert relative_error(z.contract(), y.contract()) < 1e-13


def test_hooi_of_a_star_whose_middle_is_physical() -> None:
    star = Topology({"m": ("a", "i", "b", "c"), "x": ("j", "a"), "y": ("b", "k"), "z": ("l", "c")})
    x = random_array((3, 4, 5, 4))
    errors = [error_of(decompose(x, star, 2, method=m), x) for m in METHODS]
    assert errors[2] < min(errors[:2])


# tolerances and ranks


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_error_is_within_the_tolerance(format: str, method: str, dtype: str) -> None:
    least = 300 * EPS[dtype]
    for shape in SHAPES[::2]:
        x = random_array(shape, 1, dtype)
        for tolerance in (0.9, 0.1, 1e-4, 1e-7, 1e-10, 1e-13):
            if tolerance > least:
                y = decompose(x, format, tolerance=tolerance, method=method)
                assert error_of(y, x) <= tolerance
                check_columns(y, root_of(y), dtype)


@settings(deadline=None, max_examples=150, database=None)
@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=5),
    st.sampled_from(FORMATS_AND_METHODS),
    st.sampled_from(DTYPES),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 2**32),
    st.integers(-30, 30),
)
def test_any_array_is_within_any_tolerance(
    shape: list[int], how: tuple[str, str], dtype: str, part: float, seed: int, power: int
) -> None:
    rng = np.random.default_rng(seed)
    x = random_array(shape, seed, dtype) if seed % 2 else rng.standard_normal(shape).astype(dtype)
    x = x * x.dtype.type(2.0) ** power
    tolerance = (300 * EPS[dtype]) ** part * 0.99
    y = decompose(x, how[0], tolerance=tolerance, method=how[1])
    assert error_of(y, x) <= tolerance
    assert all(rank >= 1 for rank in y.ranks.values())


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
@pytest.mark.parametrize("tolerance", [0.1, 1e-4, 1e-9])
def test_ranks_are_no_larger_than_each_share_asks_for(
    format: str, method: str, tolerance: float
) -> None:
    x = random_array((9, 8, 7, 5), 2)
    y = decompose(x, format, tolerance=tolerance, method=method)
    share = tolerance * (1 - 1 / 64) / math.sqrt(len(y.ranks)) * np.linalg.norm(x)
    for (axes, rank), _ in zip(groups_of(format, x.shape, y.ranks), y.ranks, strict=True):
        values = np.linalg.svd(unfolded(x, axes), compute_uv=False)
        tails = np.sqrt(np.cumsum(values[::-1] ** 2))[::-1]
        assert rank <= max(1, np.sum(tails > share * (1 - 1e-4)))


def test_what_a_mode_leaves_of_its_share_goes_to_those_after_it() -> None:
    # The first mode has nothing to drop, so the second may drop all.
    x = np.zeros((2, 2, 2))
    x[0, 0, 0], x[0, 1, 1] = 1.0, 0.09
    y = decompose(x, "tensor_train", tolerance=0.1)
    assert dict(y.ranks) == {"r0": 1, "r1": 1}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_without_ranks_and_tolerance_the_exact_ranks_are_found(format: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((30, 20, 25), (60, 50), (5, 6, 5, 6, 4)):
        core = random_array((3,) * len(shape), 5, dtype)
        x = core
        for k, size in enumerate(shape):
            x = np.moveaxis(np.tensordot(rng.standard_normal((size, 3)), x, (1, k)), 0, k)
        x = x.astype(dtype)
        for tolerance in (None, 0.0):
            y = decompose(x, format, tolerance=tolerance)
            inner = decompose(core, format)
            assert y.ranks == inner.ranks
            assert error_of(y, x) < 40 * EPS[dtype]


def test_singular_values_that_a_gram_matrix_does_not_see() -> None:
    rng = np.random.default_rng(0)
    values = 10.0 ** -np.arange(0, 12)
    left, right = (np.linalg.qr(rng.standard_normal((n, 12)))[0] for n in (40, 300))
    x = ((left * values) @ right.T).reshape(40, 15, 20)
    for power in range(1, 12):
        y = decompose(x, "tucker", tolerance=3 * 10.0**-power)
        assert error_of(y, x) <= 3 * 10.0**-power
        assert y.ranks["r0"] == power
    for rank in (2, 5, 9):
        y = decompose(x, "tucker", {"r0": rank})
        assert error_of(y, x) < 1.1 * np.linalg.norm(values[rank:])


def test_ranks_in_all_ways() -> None:
    x = random_array((6, 5, 4))
    for ranks in (2, np.int64(2), (2, 2, 2), [2, 2, 2], {"r0": 2, "r1": 2, "r2": 2}):
        y = decompose(x, "tucker", ranks)
        assert dict(y.ranks) == {"r0": 2, "r1": 2, "r2": 2}
    assert list(decompose(x, "tucker", (3, 1, 2)).ranks.values()) == [3, 1, 2]
    assert list(decompose(x, "tensor_train", (3, 2)).ranks.values()) == [3, 2]
    some = decompose(x, "tucker", {"r1": 1})
    assert dict(some.ranks) == {"r0": 6, "r1": 1, "r2": 4}


def test_one_rank_for_all_is_lowered_to_what_sizes_allow() -> None:
    x = random_array((6, 5, 4))
    assert list(decompose(x, "tucker", 100).ranks.values()) == [6, 5, 4]
    assert list(decompose(x, "tensor_train", 100).ranks.values()) == [6, 4]
    assert list(decompose(x, "tensor_train", 5).ranks.values()) == [5, 4]
    assert list(decompose(x[:1], "tucker", 3).ranks.values()) == [1, 3, 3]
    assert list(decompose(x[:2, :2], "tucker", 5).ranks.values()) == [2, 2, 4]
    tall = random_array((2, 2, 9))
    for method in METHODS:
        assert list(decompose(tall, "tucker", 9, method=method).ranks.values()) == [2, 2, 4]


def test_ranks_that_leave_fewer_columns_than_vectors() -> None:
    # With ranks (1, 1) before it the last unfolding has one column, but four vectors are asked for.
    x = random_array((4, 4, 4))
    for method in METHODS:
        y = decompose(x, "tucker", (1, 1, 4), method=method)
        assert list(y.ranks.values()) == [1, 1, 4]
        check_columns(y, "core", "float64")


def test_a_rank_that_others_leave_no_room_for_is_lowered() -> None:
    x = np.multiply.outer(np.arange(1.0, 5), np.multiply.outer(np.arange(3.0), np.ones(5)))
    for name in SMALL:
        y = decompose(library(name).convert(x), "tensor_train", {"r1": 5})
        assert dict(y.ranks) == {"r0": 1, "r1": 3}


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
def test_ranks_count_more_than_the_tolerance(format: str, method: str) -> None:
    x = random_array((6, 5, 4, 5))
    capped = decompose(x, format, 2, 1e-12, method)
    assert set(capped.ranks.values()) <= {1, 2}
    assert error_of(capped, x) > 1e-3
    loose = decompose(x, format, 2, 0.9, method)
    assert set(loose.ranks.values()) == {1}
    assert error_of(loose, x) <= 0.9


def test_larger_ranks_than_the_array_has_keep_orthonormal_factors() -> None:
    x = np.multiply.outer(np.arange(1.0, 5), np.multiply.outer(np.ones(5), np.arange(3.0)))
    for format, method in FORMATS_AND_METHODS:
        y = decompose(x, format, 3, method=method)
        assert max(y.ranks.values()) == 3
        check_columns(y, root_of(y), "float64")
        assert error_of(y, x) < 1e-14


# HOOI


def test_hooi_is_better_than_hosvd_and_cannot_be_improved() -> None:
    x = np.random.default_rng(0).standard_normal((8, 7, 6))
    first, _, best = (decompose(x, "tucker", 3, method=m) for m in METHODS)
    assert error_of(best, x) < error_of(first, x) - 0.01
    factors = [best.arrays[f"factor{k}"] for k in range(3)]
    for k in range(3):
        here = x
        for j in range(3):
            here = here if j == k else projected(here, [j], factors[j])
        values = np.linalg.svd(unfolded(here, [k]), compute_uv=False)
        reached = np.linalg.norm(factors[k].T @ unfolded(here, [k]))
        assert reached > np.linalg.norm(values[:3]) * (1 - 1e-6)


# signs


def test_signs_where_entries_have_equal_modulus() -> None:
    for noise in (0.0, 1e-14, -1e-14):
        pair = np.asarray([1.0, -1.0 + noise, 1.0 - noise, -1.0])
        for x in (np.outer(pair, [3.0, 4.0]), np.outer(-pair, [-3.0, 4.0])):
            for tolerance in (None, 0.1):
                y = decompose(x, "tucker", 1, tolerance)
                np.testing.assert_allclose(y.arrays["factor0"][:, 0], pair / 2, atol=1e-13)
    z = decompose(np.outer([1j, -1.0, 1.0], [1.0, 2j]), "tucker", 1)
    expected_phases = np.asarray([1.0, 1j, -1j]) / math.sqrt(3)
    np.testing.assert_allclose(z.arrays["factor0"][:, 0], expected_phases, atol=1e-14)


# small and extreme arrays


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
def test_zero_has_rank_one_and_orthonormal_factors(format: str, method: str) -> None:
    for tolerance in (None, 0.1, 1e-9):
        y = decompose(np.zeros((4, 3, 5)), format, tolerance=tolerance, method=method)
        assert set(y.ranks.values()) == {1}
        assert not np.any(wide(y))
        check_columns(y, root_of(y), "float64")
    y = decompose(np.zeros((4, 3, 5), "complex64"), format, 2, method=method)
    assert set(y.ranks.values()) == {2}
    assert not np.any(wide(y))
    check_columns(y, root_of(y), "complex64")


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
@pytest.mark.parametrize(
    ("scale", "dtype"),
    [(1e200, "float64"), (1e-200, "float64"), (1e305, "complex128"), (1e-310, "float64"),
     (1e36, "float32"), (1e-37, "complex64"), (1e-40, "float32")],
)  # fmt: skip
def test_huge_and_tiny_arrays(format: str, method: str, scale: float, dtype: str) -> None:
    plain = random_array((5, 4, 6), 1).astype(dtype)
    x = plain * np.dtype(dtype).type(scale)
    # Below the smallest normal number there are fewer digits.
    is_normal = scale > float(np.finfo(dtype).tiny)
    for tolerance in (0.2, 1e-3):
        y = decompose(x, format, tolerance=tolerance, method=method)
        assert y.ranks == decompose(plain, format, tolerance=tolerance, method=method).ranks
        assert error_of(y, x) <= tolerance
    exact = decompose(x, format, method=method)
    assert error_of(exact, x) < (100 * EPS[dtype] if is_normal else 1e-2)


def test_order_one_and_none() -> None:
    x = np.asarray([3.0, -4.0])
    train, tree, tucker = (decompose(x, f) for f in ("tensor_train", "tree", "tucker"))
    for y in (train, tree):
        np.testing.assert_array_equal(next(iter(y.arrays.values())), x)
    np.testing.assert_allclose(tucker.arrays["factor0"][:, 0], [-0.6, 0.8], rtol=1e-15)
    np.testing.assert_allclose(tucker.arrays["core"], [-5.0], rtol=1e-15)
    closed = Topology({"a": ("r",), "b": ("r", "s"), "c": ("s",)})
    y = decompose(np.asarray(-3.0), closed)
    assert float(y.contract()) == -3
    lone = decompose(np.ones((2, 3)), Topology({"A": ("i", "j")}, ("j", "i")), method="hooi")
    assert lone.arrays["A"].shape == (3, 2)


def test_the_array_is_left_alone_and_not_shared() -> None:
    x = np.ascontiguousarray(random_array((4, 3)))
    before = x.copy()
    lone = Topology({"A": ("i", "j")})
    networks = [decompose(x, f) for f in (*FORMATS, lone)]
    np.testing.assert_array_equal(x, before)
    x[...] = 0
    for y in networks:
        assert relative_error(y.contract(), before) < 1e-14


def test_arrays_in_any_memory_order() -> None:
    x = random_array((5, 4, 3))
    for view in (np.asfortranarray(x), x[::-1, ::2], x.transpose(2, 0, 1)):
        for format in FORMATS:
            assert error_of(decompose(view, format), view) < 1e-14


def test_many_axes() -> None:
    x = random_array((2,) * 12)
    for format in ("tensor_train", "tree"):
        assert error_of(decompose(x, format, tolerance=1e-3), x) <= 1e-3
    ones = np.ones((1,) * 59 + (3,))
    assert decompose(ones, "tensor_train").shape == ones.shape


# libraries


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_library(name: str, dtype: str, format: str) -> None:
    if name == "jax" and (dtype, format) != ("float64", "tucker"):
        pytest.skip("JAX compiles it for long")
    of, x = library(name), random_array((5, 4) if name == "jax" else (5, 4, 3, 4), 1, dtype)
    theirs = of.convert(x)
    ranks = small_ranks(format, x.shape)
    hows: list[dict[str, Any]] = [{"ranks": ranks}, {"tolerance": 0.3}, {"tolerance": 1e-4}]
    if format == "tucker" and name != "jax":
        hows.append({"ranks": ranks, "method": "hooi"})
    for how in hows:
        y, ours = decompose(theirs, format, **how), decompose(x, format, **how)
        assert y.topology == ours.topology
        for node, array in y.arrays.items():
            assert type(array) is type(theirs)
            assert array.dtype == theirs.dtype
            allowed = 1e4 * EPS[dtype] if "tolerance" in how else 1e3 * EPS[dtype]
            got, wanted = of.to_numpy(array), ours.arrays[node]
            if how.get("method") != "hooi":
                np.testing.assert_allclose(got, wanted, atol=allowed * np.abs(wanted).max())


# errors


X = np.ones((4, 3, 5))
RANK = (
    "The rank of mode {} must be at most {}: it lies between {} indices on one side and {} on the "
    "other; "
)
LOWERED = "{} came. A single number for all modes is lowered to what the sizes allow."
FINITE = "The entries of {} must be finite; some are not."
NORM = "The norm of {} must be a number of dtype {}, at most {}; it is larger. Scale it first."
HOOI = (
    "Method 'hooi' needs nodes that are all joined to one, as those of 'tucker' are; nodes {} came, "
    "which are not. Take 'hosvd' or 'sequential'."
)
RING = Topology({"a": ("r", "i", "s"), "b": ("s", "j", "t"), "c": ("t", "k", "r")})


def with_entry(value: float, dtype: str = "float64") -> Array:
    x = np.ones((4, 3, 5), dtype)
    x[2, 1, 3] = value
    return x


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: decompose([[1.0]], "tucker"), NetworkError,
     "Array must be an array of NumPy, PyTorch, JAX or another library of the array API standard; "
     "list came. Convert it first, for instance with numpy.asarray."),
    (lambda: decompose(np.ones((2, 2), int), "tucker"), NetworkError,
     "Array must be of dtype float32, float64, complex64 or complex128; int64 came. Convert it first, "
     "for instance with astype('float64')."),
    (lambda: decompose(np.ones((2, 0, 3)), "tucker"), NetworkError,
     "array must not be empty; shape (2, 0, 3) came."),
    (lambda: decompose(np.ones((1,) * 61), "tucker"), NetworkError,
     "array must have at most 60 axes; 61 came. Leave out axes of size one."),
    (lambda: decompose(np.asarray(1.0), "tree"), NetworkError,
     "Format 'tree' needs an array with at least one axis."),
    (lambda: decompose_stack(np.ones(3), "tucker"), NetworkError,
     "Format 'tucker' needs an array with at least one axis."),
    (lambda: decompose_stack(np.asarray(1.0), "tucker"), NetworkError,
     "The first axis of samples must count them; an array without axes came."),
    (lambda: decompose_stack(np.ones((0, 2, 3)), "tucker"), NetworkError,
     "samples must not be empty; shape (0, 2, 3) came."),
    (lambda: decompose(X, "cp"), NetworkError,
     "format must be one of ('tucker', 'tensor_train', 'tree'), or a Topology; 'cp' came."),
    (lambda: decompose(X, 3), NetworkError,  # type: ignore[arg-type]
     "format must be one of ('tucker', 'tensor_train', 'tree'), or a Topology; 3 came."),
    (lambda: decompose(X, RING), TopologyError,
     "An array is decomposed into a tree, in which each contraction mode joins two nodes and no two "
     "ways lead from one node to another; a topology with 3 nodes and 3 contraction modes that is "
     "none came."),
    (lambda: decompose(X, Topology({"a": ("i", "r"), "b": ("r", "j")})), ModeError,
     "The topology must have one physical mode for each axis: it has ('i', 'j'), the array has 3 "
     "axes."),
    (lambda: decompose(X, "tucker", method="svd"), NetworkError,
     "method must be one of ('hosvd', 'sequential', 'hooi'); 'svd' came."),
    (lambda: decompose(X, "tensor_train", method="hooi"), NetworkError,
     HOOI.format("('node0', 'node1', 'node2')")),
    (lambda: decompose_stack(X, BY_NAME["chain5"].nodes and Topology(BY_NAME["chain5"].nodes),
                             method="hooi"), NetworkError,
     HOOI.format("('A', 'B', 'C', 'D', 'E')")),
    (lambda: decompose(X, "tucker", tolerance="1e-3"), NetworkError,  # type: ignore[arg-type]
     "tolerance must be a number; str came."),
    (lambda: decompose(X, "tucker", tolerance=1.0), NetworkError,
     "tolerance must be at least 0 and less than 1; 1.0 came."),
    (lambda: decompose(X, "tucker", tolerance=1e-15), NetworkError,
     "tolerance must be at least 1.4e-14, which float64 can hold; 1e-15 came. Use a wider dtype, or "
     "no tolerance: then nothing is lost but rounding."),
    (lambda: decompose(X.astype("float32"), "tucker", tolerance=1e-7), NetworkError,
     "tolerance must be at least 7.6e-06, which float32 can hold; 1e-07 came. Use a wider dtype, or "
     "no tolerance: then nothing is lost but rounding."),
    (lambda: decompose(X, "tucker", (2, 2)), ModeError,
     "ranks must be one for each contraction mode of ('r0', 'r1', 'r2'); 2 came."),
    (lambda: decompose(X, "tucker", {"i0": 2}), ModeError,
     "ranks must name contraction modes of ('r0', 'r1', 'r2'); 'i0' came."),
    (lambda: decompose(X, "tucker", 0), ModeError, "A rank must be a positive integer; 0 came."),
    (lambda: decompose(X, "tucker", (2, 2, -1)), ModeError,
     "A rank must be a positive integer; -1 came."),
    (lambda: decompose(X, "tucker", 2.0), ModeError,  # type: ignore[arg-type]
     "A rank must be a positive integer; 2.0 came."),
    (lambda: decompose(X, "tucker", True), ModeError,
     "A rank must be a positive integer; True came."),
    (lambda: decompose(X, "tucker", "222"), ModeError,  # type: ignore[arg-type]
     "A rank must be a positive integer; '222' came."),
    (lambda: decompose(X, "tucker", (2, 4, 2)), ModeError,
     RANK.format("'r1'", 3, 3, 20) + LOWERED.format(4)),
    (lambda: decompose(X, "tensor_train", {"r0": 2, "r1": 7}), ModeError,
     RANK.format("'r1'", 5, 6, 5) + LOWERED.format(7)),
    (lambda: decompose(X, "tensor_train", {"r0": 1, "r1": 4}), ModeError,
     RANK.format("'r1'", 3, 3, 5) + LOWERED.format(4)),
    (lambda: decompose_stack(X, "tucker", (3, 4)), ModeError,
     RANK.format("'r1'", 3, 5, 3) + LOWERED.format(4)),
    (lambda: decompose(with_entry(math.nan), "tucker", 2), NetworkError, FINITE.format("array")),
    (lambda: decompose(with_entry(math.inf, "complex64"), "tree", 2), NetworkError,
     FINITE.format("array")),
    (lambda: decompose_stack(with_entry(-math.inf), "tensor_train", 2), NetworkError,
     FINITE.format("sample 2")),
    (lambda: decompose(np.full((2, 2), 1.7e308), "tucker", 2), NetworkError,
     NORM.format("array", "float64", "1.8e+308")),
    (lambda: decompose_stack(np.full((3, 2), 3e38j, "complex64"), "tucker", 2), NetworkError,
     NORM.format("sample 0", "float32", "3.4e+38")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    check_message(call, error, message)


def test_every_raise_is_in_the_table() -> None:
    folder = Path(tnsum.__file__).parent
    files = [folder / f"{name}.py" for name in ("decomposition", "_tree_bases", "_leading")]
    assert not unreached(files, [call for call, *_ in ERRORS])
