"""decompose_stack: the same as decompose of each sample; and both beside TensorLy."""

import math
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tnsum
from libraries import LIBRARIES_AND_DTYPES, library
from oracle import relative_error
from test_decomposition import (
    EPS,
    FORMATS,
    FORMATS_AND_METHODS,
    METHODS,
    TREES,
    Array,
    alternated,
    array_for,
    check_columns,
    check_orthonormal,
    error_of,
    expected,
    groups_of,
    projected,
    random_array,
    root_of,
    small_ranks,
    unfolded,
    wide,
)
from tnsum import Topology, decomposition
from tnsum.decomposition import decompose, decompose_stack
from topologies import DTYPES, Case

SHAPES = [(6, 5, 4), (7, 6), (9,), (3, 4, 1, 3)]


def random_samples(n: int, shape: tuple[int, ...], dtype: str = "float64") -> Array:
    return np.stack([random_array(shape, seed, dtype) for seed in range(n)])


def images(n: int, size: int = 12) -> Array:
    """Blobs on a flat background, with three channels: samples of rapidly falling singular values."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-1, 1, size)
    found = np.full((n, size, size, 3), 0.5)
    for k in range(4):
        x, y, width = rng.uniform(-0.5, 0.5, (3, n, 1, 1))
        angle = rng.uniform(0, np.pi, (n, 1, 1))
        u = np.cos(angle) * (grid[:, None] - x) + np.sin(angle) * (grid - y)
        v = np.cos(angle) * (grid - y) - np.sin(angle) * (grid[:, None] - x)
        blob = np.exp(-(u**2 + 3 * v**2) / (0.1 + np.abs(width) * (k + 1)))
        found += blob[..., None] * rng.uniform(0, 1, (n, 1, 1, 3))
    return found


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_sample_is_decomposed_as_by_itself(format: str, method: str, dtype: str) -> None:
    is_single = EPS[dtype] > 1e-10
    for shape in SHAPES:
        samples = random_samples(4, shape, dtype)
        stack = decompose_stack(samples, format, 2, method)
        assert (len(stack), stack.shape, stack.dtype) == (4, shape, np.dtype(dtype))
        for one, sample in zip(stack, samples, strict=True):
            alone = decompose(sample, format, 2, method=method)
            assert one.topology == alone.topology
            assert one.ranks == alone.ranks
            check_columns(one, root_of(one), dtype)
            if method == "hooi":
                assert abs(error_of(one, sample) - error_of(alone, sample)) < 1e-5
                continue
            for name, array in alone.arrays.items():
                allowed = 2e-4 if is_single else 1e-12
                np.testing.assert_allclose(one.arrays[name], array, atol=allowed)


@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
def test_images_equal_plain_loops(format: str, method: str) -> None:
    samples = images(10)
    ranks = small_ranks(format, samples.shape[1:], 3)
    stack = decompose_stack(samples, format, ranks, method)
    for one, sample in zip(stack, samples, strict=True):
        if method == "hooi":
            theirs = alternated(sample, list(ranks.values()), 60)
            best = relative_error(theirs, sample)
            assert abs(error_of(one, sample) - best) < 1e-4 * best
        else:
            groups = groups_of(format, sample.shape, ranks)
            theirs = expected(sample, groups, method == "sequential")
            assert relative_error(wide(one), theirs) < 1e-10
    assert relative_error(stack.sum().contract(), samples.sum(0)) < 0.2


def test_factors_are_singular_vectors() -> None:
    samples = images(30)
    stack = decompose_stack(samples, "tucker", (3, 3, 2))
    for axis, rank in enumerate((3, 3, 2)):
        for sample, factor in zip(samples, stack.arrays[f"factor{axis}"], strict=True):
            vectors = np.linalg.svd(unfolded(sample, [axis]))[0][:, :rank]
            overlaps = vectors.T @ factor
            np.testing.assert_allclose(np.abs(overlaps), np.eye(rank), atol=1e-9)
            check_orthonormal(factor, "float64")


@pytest.mark.parametrize("method", METHODS)
def test_cores_are_the_samples_in_their_factors(method: str) -> None:
    # Of these some need one sweep of HOOI and some ten: all must be left consistent.
    noise = np.random.default_rng(0).standard_normal((12, 12, 12, 3))
    samples = images(12) + noise * 10.0 ** -np.arange(12.0)[:, None, None, None]
    stack = decompose_stack(samples, "tucker", (3, 3, 2), method)
    for network, sample in zip(stack, samples, strict=True):
        here = sample
        for axis in range(3):
            here = projected(here, [axis], network.arrays[f"factor{axis}"])
        assert relative_error(wide(network), here) < 1e-13


@pytest.mark.parametrize("case", TREES, ids=lambda case: case.name)
def test_any_tree(case: Case) -> None:
    topology = Topology(case.nodes, case.physical_modes)
    sample = array_for(case, "complex128")
    samples = np.stack([sample, -2j * sample, np.zeros_like(sample)])
    for method in METHODS[:2]:
        full = decompose_stack(samples, topology, method=method)
        assert relative_error(full.contract(), samples) < 1e-13
        lossy = decompose_stack(samples, topology, 1, method)
        alone = decompose(sample, topology, 1, method=method)
        assert relative_error(lossy[0].contract(), alone.contract()) < 1e-10
        assert relative_error(lossy[1].contract(), -2j * alone.contract()) < 1e-10
        assert not np.any(lossy[2].contract())


@settings(deadline=None, max_examples=60, database=None)
@given(
    st.integers(1, 5),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.sampled_from(FORMATS_AND_METHODS),
    st.sampled_from(DTYPES),
    st.integers(1, 7),
)
def test_any_samples(n: int, shape: list[int], how: tuple[str, str], dtype: str, rank: int) -> None:
    format, method = how
    samples = random_samples(n, tuple(shape), dtype)
    stack = decompose_stack(samples, format, rank, method)
    alone = decompose(samples[-1], format, rank, method=method)
    assert stack.ranks == alone.ranks
    difference = abs(error_of(stack[n - 1], samples[-1]) - error_of(alone, samples[-1]))
    # What a Gram matrix does not see: the root of machine precision.
    assert difference < 4 * math.sqrt(EPS[dtype])
    for one in stack:
        check_columns(one, root_of(one), dtype)


# samples of lower rank


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
def test_samples_of_lower_rank_have_orthonormal_factors(
    format: str, method: str, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    vectors = [rng.standard_normal((3, n)) for n in (8, 7, 3)]
    one, two = (
        sum(np.multiply.outer(u, np.multiply.outer(v, w)) for u, v, w in
            zip(*(a[:rank] for a in vectors), strict=True)) for rank in (1, 2)
    )  # fmt: skip
    spike = np.zeros((8, 7, 3))
    spike[3, 2, 1] = -5.0
    zeros = np.zeros_like(spike)
    samples = np.stack([one, two, np.full_like(spike, 0.7), zeros, spike]).astype(dtype)
    stack = decompose_stack(samples, format, 3, method)
    assert set(stack.ranks.values()) == {3}
    for network, sample in zip(stack, samples, strict=True):
        check_columns(network, root_of(network), dtype)
        distance = np.linalg.norm((wide(network) - sample).astype(complex))
        # Directions below the root of machine precision are noise, but nothing is lost with them.
        assert distance <= 50 * EPS[dtype] * np.linalg.norm(sample)


def test_what_a_gram_matrix_does_not_see_costs_no_more_than_that() -> None:
    rng = np.random.default_rng(0)
    values = 10.0 ** -np.arange(0, 12)
    left, right = (np.linalg.qr(rng.standard_normal((n, 12)))[0] for n in (20, 30))
    sample = (left * values) @ right.T
    for rank in range(1, 13):
        stack = decompose_stack(np.stack([sample, 3 * sample]), "tucker", (rank, 12))
        best = np.linalg.norm(values[rank:]) / np.linalg.norm(values)
        for network, x in zip(stack, (sample, 3 * sample), strict=True):
            error = error_of(network, x)
            assert best * (1 - 1e-9) - 1e-15 <= error <= best + 1e-7
            if rank < 6:
                assert error <= best * (1 + 1e-3)


@pytest.mark.parametrize("format", FORMATS)
def test_each_sample_has_a_scale_of_its_own(format: str) -> None:
    plain = random_samples(6, (5, 4, 3))
    scales = 10.0 ** np.asarray([0, 200, -200, 305, -300, 0])
    samples = plain * scales[:, None, None, None]
    stack = decompose_stack(samples, format, 2)
    expected_stack = decompose_stack(plain, format, 2)
    for k, scale in enumerate(scales):
        for name, array in expected_stack[k].arrays.items():
            factor = scale if name == root_of(stack[k]) else 1.0
            np.testing.assert_allclose(stack[k].arrays[name] / factor, array, atol=1e-12)


# pieces


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = images(23)
    whole = decompose_stack(samples, "tucker", (3, 3, 2))
    monkeypatch.setattr(decomposition, "piece_size", lambda _: 8 * 5 * 432)
    pieces = decompose_stack(samples, "tucker", (3, 3, 2))
    for name, array in whole.arrays.items():
        np.testing.assert_allclose(pieces.arrays[name], array, atol=1e-12)
    samples[17, 3, 3, 1] = np.nan
    with pytest.raises(tnsum.NetworkError, match=r"^The entries of sample 17 must be finite"):
        decompose_stack(samples, "tucker", 3)


def test_memory_grows_with_the_result_only() -> None:
    def beyond_the_result(n: int) -> int:
        samples = np.random.default_rng(0).standard_normal((n, 16, 16, 3))
        tracemalloc.start()
        stack = decompose_stack(samples, "tucker", (2, 2, 2))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - 2 * sum(array.nbytes for array in stack.arrays.values())

    beyond_the_result(200)
    assert beyond_the_result(2000) < beyond_the_result(500) + 2e5


def test_one_sample_and_samples_left_alone() -> None:
    samples = images(1)
    before = samples.copy()
    stack = decompose_stack(samples, "tree")
    np.testing.assert_array_equal(samples, before)
    lone = decompose_stack(samples, Topology({"A": ("i", "j", "k")}))
    samples[...] = 0
    for found in (stack, lone):
        assert relative_error(found[0].contract(), before[0]) < 1e-13


def test_adds_to_networks_from_the_builder() -> None:
    samples = random_samples(4, (5, 4, 3))
    stack = decompose_stack(samples, "tucker", 2)
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((n, 2)) for n in (5, 4, 3)]
    built = tnsum.tucker(rng.standard_normal((2, 2, 2)), factors)
    total = stack.sum() + built
    theirs = sum(one.contract() for one in stack) + built.contract()
    assert relative_error(total.contract(), theirs) < 1e-13


# libraries


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
@pytest.mark.parametrize(("format", "method"), FORMATS_AND_METHODS)
def test_every_library(name: str, dtype: str, format: str, method: str) -> None:
    if name == "jax" and (dtype, format, method) != ("float32", "tensor_train", "hosvd"):
        pytest.skip("JAX compiles it for long")
    of, samples = library(name), random_samples(5, (6, 5, 3), dtype)
    samples[3] = 0
    theirs = of.convert(samples)
    stack = decompose_stack(theirs, format, 2, method)
    ours = decompose_stack(samples, format, 2, method)
    assert stack.topology == ours.topology
    for node, array in stack.arrays.items():
        assert type(array) is type(theirs)
        assert array.dtype == theirs.dtype
        allowed = 5e-3 if method == "hooi" else 1e4 * EPS[dtype]
        kept = [k for k in range(5) if k != 3]
        got, wanted = of.to_numpy(array), ours.arrays[node]
        np.testing.assert_allclose(got[kept], wanted[kept], atol=allowed * np.abs(wanted).max())
        assert np.all(np.isfinite(got))


# TensorLy


def tensorly_decomposition() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorly.decomposition", exc_type=ImportError)


def same_span(a: Array, b: Array, allowed: float) -> None:
    """The columns of both, orthonormal, span one space."""
    assert a.shape == b.shape
    np.testing.assert_allclose(b.conj().T @ a @ a.conj().T @ b, np.eye(b.shape[1]), atol=allowed)


@pytest.mark.large
def test_tucker_equals_that_of_tensorly() -> None:
    theirs = tensorly_decomposition()
    samples = images(12)
    ranks = (3, 3, 2)
    stacks = [decompose_stack(samples, "tucker", ranks, method) for method in METHODS]
    for k, sample in enumerate(samples):
        first, improved = (
            theirs.tucker(sample, rank=ranks, init="svd", n_iter_max=n, tol=1e-14) for n in (0, 200)
        )
        ours = decompose(sample, "tucker", ranks)
        for axis, factor in enumerate(first.factors):
            same_span(ours.arrays[f"factor{axis}"], factor, 1e-9)
            same_span(stacks[0][k].arrays[f"factor{axis}"], factor, 1e-9)
        best = relative_error(tnsum.tucker(*improved).contract(), sample)
        assert error_of(stacks[2][k], sample) < best * (1 + 1e-4)
        assert best * (1 - 1e-4) < error_of(stacks[2][k], sample)


@pytest.mark.large
def test_partial_tucker_is_a_star_whose_middle_is_physical() -> None:
    theirs = tensorly_decomposition()
    sample = images(1)[0]
    found = theirs.partial_tucker(sample, rank=(3, 3), modes=[0, 1], init="svd", n_iter_max=100)
    core, factors = found[0] if isinstance(found[0], tuple) else found
    star = Topology(
        {"core": ("a", "b", "k"), "A": ("i", "a"), "B": ("j", "b")}, physical_modes=("i", "j", "k")
    )
    dense = np.einsum("abk,ia,jb->ijk", core, *factors)
    ours = decompose(sample, star, {"a": 3, "b": 3}, method="sequential")
    assert error_of(ours, sample) < 1.05 * relative_error(dense, sample)


@pytest.mark.large
def test_trains_equal_those_of_tensorly() -> None:
    theirs = tensorly_decomposition()
    for shape, ranks in (((12, 12, 3), (4, 2)), ((5, 6, 4, 5), (3, 5, 4))):
        samples = images(5) if shape[-1] == 3 else random_samples(5, shape)
        stack = decompose_stack(samples, "tensor_train", ranks)
        for k, sample in enumerate(samples):
            train = tnsum.tensor_train(list(theirs.tensor_train(sample, rank=[1, *ranks, 1])))
            ours = decompose(sample, "tensor_train", ranks)
            assert ours.topology == train.topology
            for one in (ours, stack[k]):
                assert relative_error(one.contract(), train.contract()) < 1e-9
