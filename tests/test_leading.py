"""Leading singular vectors of many matrices at once: as accurate as eigh has them, whatever comes."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from libraries import LIBRARIES_AND_DTYPES, library
from tnsum import _subspaces, decompose_stack
from tnsum._leading import by_gram, by_svd, with_fixed_signs
from tnsum._subspaces import leading_eigenvectors, pays
from topologies import DTYPES

Array = NDArray[Any]
EPS = {dtype: float(np.finfo(dtype).eps) for dtype in DTYPES}


def random_bases(m: int, n: int, dtype: str, seed: int = 0) -> Array:
    """Orthonormal bases of m samples."""
    rng = np.random.default_rng(seed)
    entries = rng.standard_normal((2, m, n, n))
    bases: Array = np.linalg.qr(entries[0] + 1j * entries[1] * (dtype[0] == "c"))[0]
    return bases if dtype[0] == "c" else bases.real


def with_eigenvalues(values: Array, dtype: str, seed: int = 0) -> Array:
    """Positive semidefinite matrices with these eigenvalues, (m, n), and random eigenvectors."""
    bases = random_bases(*values.shape, dtype, seed)
    found = (bases * values[:, None, :]) @ bases.conj().swapaxes(1, 2)
    return ((found + found.conj().swapaxes(1, 2)) / 2).astype(dtype)


def step(n: int, k: int) -> Array:
    """Ones at the first k places."""
    return np.where(np.arange(n) < k, 1.0, 0.0)


N = 32
PLACES = np.arange(N)
SPECTRA = {
    "falling": 0.6**PLACES,
    "falling_slowly": 0.75**PLACES,
    "hardly_falling": 0.95**PLACES,
    "like_images": np.concatenate([[1.0, 0.02, 0.01], 0.008 * 0.7 ** np.arange(N - 3)]),
    "two_close": np.concatenate(
        [[1.0, 0.5, 0.1, 0.1 * (1 - 1e-9)], 0.01 * 0.6 ** np.arange(N - 4)]
    ),
    "two_equal": np.concatenate([[1.0, 0.5, 0.1, 0.1], 0.01 * 0.6 ** np.arange(N - 4)]),
    "leading_equal": np.where(PLACES < 3, 1.0, 1e-3 * 0.7**PLACES),
    "many_equal": np.where(PLACES < 20, 1.0, 1e-3),
    "all_equal": np.ones(N),
    "one_dominates": np.where(PLACES < 1, 1.0, 1e-9 * 0.5**PLACES),
    "down_to_nothing": 10.0 ** -(PLACES * 1.5),
    "rank_0": 0 * step(N, 0),
    "rank_1": step(N, 1),
    "rank_2": step(N, 2) * 0.5**PLACES,
    "rank_3": step(N, 3) * 0.5**PLACES,
    "rank_5": step(N, 5) * 0.5**PLACES,
    "rank_8": step(N, 8),
}


def check_leading(matrices: Array, vectors: Array, rank: int) -> None:
    """Assert that they are orthonormal eigenvectors, and that they hold as much as eigh's."""
    m, n, _ = matrices.shape
    rounding = 4 * math.sqrt(n) * EPS[str(matrices.dtype)]
    assert vectors.shape == (m, n, rank)
    assert vectors.dtype == matrices.dtype
    # In double precision, so that what is measured is the error of the vectors alone.
    g, v = (a.astype(np.result_type(a, np.float64)) for a in (matrices, vectors))
    values, theirs = np.linalg.eigh(g)
    largest = values[:, -1:]
    adjoint = v.conj().swapaxes(1, 2)
    np.testing.assert_allclose(
        adjoint @ v, np.broadcast_to(np.eye(rank), (m, rank, rank)), atol=2 * rounding
    )
    found = np.vecdot(v, g @ v, axis=1).real
    residuals = np.linalg.norm(g @ v - v * found[:, None, :], axis=1)
    assert np.all(residuals <= rounding * largest)
    # One by one, in falling order: nothing larger is missed.
    assert np.all(np.abs(found - values[:, : -rank - 1 : -1]) <= rounding * largest)
    gaps = values[:, -rank] - values[:, -rank - 1]
    leading = theirs[..., -rank:]
    missed = np.linalg.norm(v - leading @ (leading.conj().swapaxes(1, 2) @ v), axis=(1, 2))
    assert np.all(missed * gaps <= 2 * rounding * largest[:, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SPECTRA)
def test_every_spectrum(name: str, dtype: str) -> None:
    values = np.stack([SPECTRA[name] * scale for scale in (1.0, 3e4, 2e-5, 1.0) * 5])
    matrices = with_eigenvalues(values, dtype)
    for rank in (1, 3, 8):
        check_leading(matrices, leading_eigenvectors(np, matrices, rank), rank)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_spectra_in_one_stack(dtype: str) -> None:
    matrices = with_eigenvalues(np.stack([*SPECTRA.values()] * 2), dtype)
    check_leading(matrices, leading_eigenvectors(np, matrices, 3), 3)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_well_separated_vectors_equal_those_of_eigh(dtype: str) -> None:
    matrices = with_eigenvalues(np.stack([0.5**PLACES] * 20), dtype)
    ours = with_fixed_signs(np, leading_eigenvectors(np, matrices, 3))
    theirs = with_fixed_signs(np, np.linalg.eigh(matrices)[1][..., : -3 - 1 : -1])
    np.testing.assert_allclose(ours, theirs, atol=1e-13)


@settings(deadline=None, max_examples=60, database=None)
@given(
    st.integers(1, 4),
    st.lists(st.sampled_from([0, 1e-14, 1e-8, 1e-4, 0.1, 0.5, 0.9, 1]), min_size=12, max_size=40),
    st.sampled_from(DTYPES),
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
)
def test_any_spectrum(m: int, values: list[float], dtype: str, rank: int, seed: int) -> None:
    matrices = with_eigenvalues(np.asarray([values] * m, dtype=float), dtype, seed)
    check_leading(matrices, leading_eigenvectors(np, matrices, rank), rank)


@pytest.mark.parametrize("n", [17, 40, 64, pytest.param(128, marks=pytest.mark.large)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_sizes(n: int, dtype: str) -> None:
    for ratio in (0.5, 0.7, 0.9):
        matrices = with_eigenvalues(np.stack([ratio ** np.arange(n)] * 16), dtype)
        for rank in (1, 2, 3, 8):
            check_leading(matrices, leading_eigenvectors(np, matrices, rank), rank)


# what is missed is found


def hidden(n_hidden: int, value: float, dtype: str = "float64") -> Array:
    """Matrices with leading vectors that the start of the iteration is orthogonal to."""
    start = _subspaces._start(N, 3 + _subspaces._MORE)
    basis = np.linalg.svd(start)[2]
    values = np.where(PLACES < 8, 0.5**PLACES, 1e-6)
    values[-n_hidden:] = value
    return np.stack([(basis.T * values) @ basis] * 20).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [2.0, 1.0, 0.3, 0.2501])
def test_a_vector_that_the_start_is_orthogonal_to(value: float, dtype: str) -> None:
    for n_hidden in (1, 2, 5):
        matrices = hidden(n_hidden, value, dtype)
        check_leading(matrices, leading_eigenvectors(np, matrices, 3), 3)


def test_a_missed_vector_is_noticed() -> None:
    # The block holds eigenvectors exactly, but not those of the largest eigenvalues.
    values = np.where(PLACES < 4, 1.0 - 0.1 * PLACES, 0.1 * 0.5**PLACES)
    matrices, eye = np.stack([np.diag(values)] * 2), np.eye(N)
    for places, is_right in [
        ([0, 1, 2, 3, 4, 5, 6, 7], True),
        ([0, 1, 2, 4, 5, 6, 7, 8], True),  # the fourth is less than the third, as the norm shows
        ([1, 2, 3, 4, 5, 6, 7, 8], False),
        ([0, 1, 3, 4, 5, 6, 7, 8], False),
        ([0, 1, 4, 5, 6, 7, 8, 9], False),
    ]:
        block = np.stack([eye[places]] * 2)
        assert np.all(_subspaces._rotated(np, matrices, block, 3)[2] == is_right)


def test_vectors_that_are_not_converged_are_noticed() -> None:
    matrices = with_eigenvalues(np.stack([0.5**PLACES] * 2), "float64")
    vectors = np.linalg.eigh(matrices)[1][..., ::-1]
    for error, is_right in [(0.0, True), (1e-16, True), (1e-13, False), (1e-9, False)]:
        block = np.linalg.qr(vectors[..., :8] + error * vectors[..., 8:16])[0].swapaxes(1, 2)
        # Here the error of the third vector is worth a quarter of it in the residual.
        assert np.all(_subspaces._rotated(np, matrices, block, 3)[2] == is_right)


def test_rest_is_bounded_by_norm_and_by_trace() -> None:
    flat_tail = np.where(PLACES < 3, 1.0 - 0.1 * PLACES, 0.1)
    of_rank_2 = step(N, 2)
    for values in (flat_tail, of_rank_2):
        matrices = np.stack([np.diag(values)] * 2)
        block = np.stack([np.eye(N)[:8]] * 2)
        assert np.all(_subspaces._rotated(np, matrices, block, 3)[2])


# the steps


def test_a_power_shows_where_eigenvalues_are() -> None:
    values = np.stack([5.0 * 0.4**PLACES] * 20)
    matrices = with_eigenvalues(values, "float64")
    block, sizes = _subspaces._powered(np, matrices, np.trace(matrices, axis1=1, axis2=2), 8)
    # The start is random: some are off by a few times.
    assert np.all(np.median(np.abs(np.log2(sizes / values[:, :8])), axis=0) < 1)
    np.testing.assert_allclose(block @ block.swapaxes(1, 2), np.stack([np.eye(8)] * 20), atol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_filters_are_chebyshev_polynomials(degree: int) -> None:
    values = np.linspace(0, 1, N)
    bound = np.asarray([0.3, 0.5])
    matrices, block = np.stack([np.diag(values)] * 2), np.ones((2, 1, N))
    found = _subspaces._filtered(np, matrices, block, bound, (degree,))[:, 0, :]
    places = 2 * values / bound[:, None] - 1
    wanted = np.polynomial.chebyshev.chebval(places, np.eye(degree + 1)[degree])
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(found * np.sign(found[:, -1:]), wanted, atol=1e-14)


# which way is gone


def not_called(*_: object) -> None:
    raise RuntimeError("this way is not to be gone")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name",
    ["falling", "falling_slowly", "like_images", "two_close", "two_equal", "rank_3", "rank_5"],
)
def test_what_falls_needs_no_full_decomposition(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_subspaces, "_by_eigh", not_called)
    matrices = with_eigenvalues(np.stack([SPECTRA[name]] * 40), dtype)
    check_leading(matrices, leading_eigenvectors(np, matrices, 3), 3)


def test_what_does_not_fall_is_not_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_subspaces, "_filtered", not_called)
    noise = np.random.default_rng(0).standard_normal((40, N, 3 * N))
    matrices = noise @ noise.swapaxes(1, 2)
    check_leading(matrices, leading_eigenvectors(np, matrices, 3), 3)


def test_where_it_pays() -> None:
    for m, n, rank, does in [
        (84, 32, 3, True),
        (84, 31, 3, False),
        (84, 32, 4, False),
        (84, 128, 8, True),
        (15, 32, 3, False),
        (1, 512, 1, False),
    ]:
        assert pays(np.zeros((m, n, n)), rank) is does


@pytest.mark.parametrize("shape", [(20, 32, 50), (20, 50, 32), (20, 32, 32)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_vectors(
    shape: tuple[int, int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, rows, columns = shape
    left, right = random_bases(m, rows, dtype), random_bases(m, columns, dtype, 1)
    matrices = ((left[..., :32] * 0.8**PLACES) @ right[:, :32, :]).astype(dtype)
    monkeypatch.setattr(_subspaces, "_by_eigh", not_called)
    calls = []

    def recorded(*arguments: Any) -> Array:
        calls.append(arguments[1].shape)
        return leading_eigenvectors(*arguments)

    monkeypatch.setattr("tnsum._leading.leading_eigenvectors", recorded)
    ours = by_gram(np, matrices, 3)
    assert calls == [(m, 32, 32)]
    for k in range(m):
        theirs = by_svd(np, matrices[k : k + 1], 3)
        np.testing.assert_allclose(ours[k], theirs[0], atol=100 * EPS[dtype])


def test_neighbours_make_no_difference() -> None:
    values = np.stack([*SPECTRA.values()] * 2)
    matrices = with_eigenvalues(values, "float64")
    kept = [k for k, name in enumerate(SPECTRA) if name in ("falling", "like_images")]
    together = leading_eigenvectors(np, matrices, 3)
    for k in kept:
        alone = leading_eigenvectors(np, matrices[k : k + 1], 3)[0]
        overlaps = np.abs(alone.T @ together[k])
        np.testing.assert_allclose(overlaps, np.eye(3), atol=1e-12)


def test_nothing_is_written_to_what_came() -> None:
    matrices = with_eigenvalues(np.stack([*SPECTRA.values()]), "float64")
    before = matrices.copy()
    leading_eigenvectors(np, matrices, 3)
    np.testing.assert_array_equal(matrices, before)


def test_replaced() -> None:
    array, others = np.arange(6.0)[:, None] * [1, 1], -np.arange(1.0, 4)[:, None] * [1, 1]
    is_kept = np.asarray([True, False, True, False, False, True])
    found = _subspaces._replaced(np, array, is_kept, others)
    np.testing.assert_array_equal(found[:, 1], [0, -1, 2, -2, -3, 5])


# signs


def test_signs_are_those_of_the_first_large_entry() -> None:
    vectors = np.asarray([[[-0.6, 0.1, -0.5], [0.6, -0.9, 0.5002], [0.1, 0.2, 0.1]]])
    wanted = np.asarray([[[0.6, -0.1, 0.5], [-0.6, 0.9, -0.5002], [-0.1, -0.2, -0.1]]])
    np.testing.assert_allclose(with_fixed_signs(np, vectors), wanted, atol=1e-15)
    phases = np.exp(1j * np.asarray([0.3, 2.0, -1.0]))
    np.testing.assert_allclose(with_fixed_signs(np, vectors * phases), wanted, atol=1e-15)


# libraries


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
def test_every_library(name: str, dtype: str) -> None:
    if name == "jax":
        pytest.skip("JAX takes eigh, since it may be tracing")
    of = library(name)
    matrices = with_eigenvalues(np.stack([*SPECTRA.values()] * 2), dtype)
    theirs = of.convert(matrices)
    found = leading_eigenvectors(_namespace(theirs), theirs, 3)
    assert type(found) is type(theirs)
    check_leading(matrices, of.to_numpy(found), 3)


def _namespace(array: Any) -> Any:
    from tnsum import _arrays

    return _arrays.namespace(array)


@pytest.mark.large
def test_gradients_go_through_eigh() -> None:
    torch = pytest.importorskip("torch")
    samples = torch.randn(20, 32, 40, dtype=torch.float64, requires_grad=True)
    assert pays(samples.detach() @ samples.detach().mT, 3)
    assert not pays(samples @ samples.mT, 3)
    by_gram(_namespace(samples), samples, 3).sum().backward()
    assert samples.grad is not None
    assert bool(torch.all(torch.isfinite(samples.grad)))


@pytest.mark.large
def test_jax_goes_through_eigh() -> None:
    jax = pytest.importorskip("jax")
    assert not pays(jax.numpy.zeros((20, 32, 32)), 3)


# images


def eth80() -> Array:
    root = Path(__file__).parents[1]
    path = Path(os.environ.get("TNSUM_ETH80", root.parent / "shared" / "eth80")) / "eth80_32.npz"
    if not path.is_file():
        pytest.skip(f"no ETH-80: {path.name} is missing; TNSUM_ETH80 names its folder")
    with np.load(path, allow_pickle=False) as file:
        return file["images"] / np.float64(255)


@pytest.mark.large
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_images_as_by_eigh(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images = eth80()[::4].astype(dtype)
    n_full = [0]
    by_eigh = _subspaces._by_eigh

    def counted(xp: Any, matrices: Array, rank: int) -> Any:
        n_full[0] += len(matrices)
        return by_eigh(xp, matrices, rank)

    monkeypatch.setattr(_subspaces, "_by_eigh", counted)
    ours = decompose_stack(images, "tucker", 3)
    assert n_full[0] <= 0.01 * len(images)
    monkeypatch.setattr("tnsum._leading.pays", lambda *_: False)
    theirs = decompose_stack(images, "tucker", 3)
    for k in range(len(images)):
        lengths = [np.linalg.norm(stack.arrays["core"][k]) for stack in (ours, theirs)]
        assert abs(lengths[0] - lengths[1]) <= 20 * EPS[dtype] * lengths[1]
    for axis in (1, 2):
        unfolded = np.moveaxis(images, axis, 1).reshape(len(images), 32, 96)
        matrices = unfolded @ unfolded.swapaxes(1, 2)
        check_leading(matrices, ours.arrays[f"factor{axis - 1}"], 3)
