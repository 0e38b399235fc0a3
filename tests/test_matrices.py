"""Decompositions of matrices, against NumPy's own."""

from typing import Any

import numpy as np
import pytest

from libraries import LIBRARIES_AND_DTYPES, library
from tnsum import _matrices
from tnsum._arrays import namespace
from tnsum._matrices import adjoint, left_vectors, length, qr, range_of, svd, triangle

SHAPES = [(5, 3), (3, 5), (40, 4), (4, 40), (1, 1), (70, 66)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrix_of(shape: tuple[int, int], dtype: str) -> Any:
    rng = np.random.default_rng(0)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if "complex" in dtype else real).astype(dtype)


def near(a: Any, b: Any) -> bool:
    """Whether two arrays are equal up to rounding, relative to the largest entry (or to one)."""
    return bool(np.max(np.abs(a - b)) < 200 * np.finfo(a.dtype).eps * max(1.0, np.max(np.abs(b))))


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
def test_matrices_of_dependent_columns_are_orthogonalised(name: str, dtype: str) -> None:
    """MKL's QR in complex64, which PyTorch calls, gives NaN for many of these."""
    of = library(name)
    eps = float(np.finfo(dtype).eps)
    for n in (6, 12, 17) if name == "jax" else range(2, 20):
        for size in (1.0, 1e-30):
            phases = np.exp(0.5j * np.pi * np.random.default_rng(n).integers(0, 4, n))
            entries = np.full((n + 3, 1), 1.686548 * size) * phases
            entries[:, 0] *= n % 2
            matrix = (entries if "complex" in dtype else entries.real.copy()).astype(dtype)
            xp = namespace(of.convert(matrix))
            basis, upper = map(of.to_numpy, qr(xp, of.convert(matrix)))
            alone = of.to_numpy(triangle(xp, of.convert(matrix)))
            assert np.max(np.abs(adjoint(np, basis) @ basis - np.eye(n))) < 100 * eps
            assert np.max(np.abs(basis @ upper - matrix)) < 100 * eps * size
            grams = [adjoint(np, r) @ (r / size) / size for r in (alone, matrix)]
            assert np.max(np.abs(grams[0] - grams[1])) < 1000 * n * eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[0] >= s[1]])
def test_a_triangle_is_that_of_numpy(shape: tuple[int, int], dtype: str) -> None:
    matrix = matrix_of(shape, dtype)
    found = triangle(np, matrix)
    assert found.dtype == dtype
    assert found.shape == (shape[1], shape[1])
    assert np.array_equal(found, np.triu(found))
    expected = np.linalg.qr(matrix, mode="r")
    # The phases of its rows are arbitrary.
    phases = np.diag(found) / np.diag(expected)
    assert near(np.abs(phases), np.ones(shape[1], dtype=np.abs(phases).dtype))
    assert near(found, phases[:, None] * expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_failures", [0, 1, 2])
def test_singular_values_are_found_though_lapack_fails(
    shape: tuple[int, int], dtype: str, n_failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix, calls = matrix_of(shape, dtype), []
    right = np.linalg.svd(matrix, compute_uv=False)
    decompose = np.linalg.svd

    def failing(array: Any, full_matrices: bool) -> Any:
        calls.append(array.shape)
        if len(calls) <= n_failures:
            raise np.linalg.LinAlgError("SVD did not converge")
        return decompose(array, full_matrices=full_matrices)

    monkeypatch.setattr(np.linalg, "svd", failing)
    left, values, adjoint_right = svd(np, matrix)
    assert calls == [shape, shape[::-1], shape][: n_failures + 1]
    assert near(values, right)
    assert near((left * values) @ adjoint_right, matrix)
    assert near(adjoint(np, left) @ left, np.eye(min(shape), dtype=dtype))


def test_a_matrix_that_lapack_fails_on_always_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(array: Any, full_matrices: bool) -> Any:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", failing)
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        svd(np, np.eye(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_left_vectors_are_orthonormal_and_give_the_matrix_back(
    shape: tuple[int, int], dtype: str
) -> None:
    matrix = matrix_of(shape, dtype)
    vectors, values = left_vectors(np, matrix)
    assert near(adjoint(np, vectors) @ vectors, np.eye(min(shape), dtype=dtype))
    images = np.linalg.norm(adjoint(np, vectors) @ matrix, axis=1)
    assert near(images, np.linalg.svd(matrix, compute_uv=False))
    assert near(values.astype(images.dtype), images)


def graded(shape: tuple[int, int], dtype: str) -> Any:
    """A matrix whose singular values fall by twelve orders of magnitude."""
    left = np.linalg.qr(matrix_of(shape, "complex128" if "complex" in dtype else "float64"))[0]
    right = np.linalg.qr(matrix_of((shape[1],) * 2, str(left.dtype)))[0]
    return ((left * np.logspace(0, -12, shape[1])) @ right).astype(dtype)


@pytest.mark.parametrize(
    "name", ["numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.large)]
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(60, 30), (200, 40), (9, 2)])
def test_a_range_holds_a_matrix_up_to_rounding(
    name: str, shape: tuple[int, int], dtype: str
) -> None:
    of, matrix = library(name), graded(shape, dtype)
    xp = namespace(of.convert(matrix))
    basis, values = range_of(xp, of.convert(matrix))
    vectors, precision = of.to_numpy(basis), np.finfo(dtype).eps
    assert vectors.dtype == dtype
    assert vectors.shape == (shape[0], len(values))
    left = matrix - vectors @ (adjoint(np, vectors) @ matrix)
    assert np.linalg.norm(left) < 20 * precision
    singular = np.linalg.svd(matrix.astype("complex128"), compute_uv=False)
    # LAPACK stops where it neglects 90 times machine precision (dbdsqr).
    assert np.max(np.abs(values - singular[: len(values)])) < 100 * precision
    # Weak ones too, whatever LAPACK leaves in them.
    gram = adjoint(np, vectors) @ vectors - np.eye(len(values))
    assert np.max(np.abs(gram)) < 20 * precision
    images = np.linalg.norm(adjoint(np, vectors) @ matrix, axis=1)
    assert np.max(np.abs(images - values)) < 100 * precision


def test_the_range_of_zero_is_orthonormal() -> None:
    basis, values = range_of(np, np.zeros((6, 3), dtype="float32"))
    assert np.allclose(basis.T @ basis, np.eye(3))
    assert not values.any()


def test_a_length_is_the_norm() -> None:
    array = matrix_of((6, 5), "complex128").T
    assert abs(length(np, array) - np.linalg.norm(array)) < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["array_api_strict", pytest.param("torch", marks=pytest.mark.large)]
)
def test_small_matrices_of_accelerators_are_decomposed_on_the_host(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = library(name)
    theirs = of.convert(matrix_of((5, 3), dtype))
    xp, plain = namespace(theirs), svd(np, matrix_of((5, 3), dtype))
    monkeypatch.setattr(
        _matrices, "is_on_accelerator", lambda array: not isinstance(array, np.ndarray)
    )
    for small in (True, False):
        monkeypatch.setattr(_matrices, "_SMALL", 15 if small else 14)
        found = svd(xp, theirs)
        assert [type(each) for each in found] == [type(theirs)] * 3
        # The same bits where the host was asked.
        same = [np.array_equal(of.to_numpy(f), p) for f, p in zip(found, plain, strict=True)]
        assert all(same) or not small
        left, values, right = (of.to_numpy(each) for each in found)
        assert near((left * values) @ right, matrix_of((5, 3), dtype))


@pytest.mark.large
def test_gradients_flow_through_matrices_of_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    of = library("torch")
    theirs = of.convert(matrix_of((5, 3), "float64"))
    theirs.requires_grad_(True)
    monkeypatch.setattr(
        _matrices, "is_on_accelerator", lambda array: not isinstance(array, np.ndarray)
    )
    assert svd(namespace(theirs), theirs)[1].requires_grad
