"""The mode that shakes the rounding: results change in their last bits, and fragile tests fail."""

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shaking import _SHAKEN, Finder, Shaking, shake

Array = NDArray[Any]
ROOT = Path(__file__).parent.parent
DTYPES = ["float32", "float64", "complex64", "complex128"]


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if "complex" in dtype else real).astype(dtype)


def namespace(seed: int) -> Any:
    """NumPy as tnsum sees it when it is shaken with a seed."""
    shaking = Shaking(seed)

    class Shaken:
        matmul = staticmethod(shaking.product)

        def __init__(self, of: Any) -> None:
            self._of = of

        def __getattr__(self, name: str) -> Any:
            if name == "linalg":
                return Shaken(np.linalg)
            return shaking.attribute(self._of, name) if name in _SHAKEN else getattr(self._of, name)

    return Shaken(np)


PRODUCTS: dict[str, Callable[[Any, Array, Array], Any]] = {
    "matmul": lambda xp, a, b: xp.matmul(a, b.T),
    "matrix times vector": lambda xp, a, b: xp.matmul(a, b[0]),
    "stack": lambda xp, a, b: xp.matmul(a[None] * np.ones((2, 1, 1), a.dtype), b.T),
    "dot": lambda xp, a, b: xp.dot(a, b.T),
    "einsum": lambda xp, a, b: xp.einsum("ij,kj->ik", a, b),
    "einsum of one": lambda xp, a, b: xp.einsum("ij->i", a),
    "tensordot": lambda xp, a, b: xp.tensordot(a, b, (1, 1)),
    "tensordot of two axes": lambda xp, a, b: xp.tensordot(a, b, 2),
    "vecdot": lambda xp, a, b: xp.vecdot(a, b),
    "vecdot along the first": lambda xp, a, b: xp.vecdot(a, b, axis=0),
    "vdot": lambda xp, a, b: xp.vdot(a, b),
    "sum": lambda xp, a, b: xp.sum(a),
    "sum along an axis": lambda xp, a, b: xp.sum(a, axis=1, keepdims=True),
    "sum along two axes": lambda xp, a, b: xp.sum(a[:, :, None], axis=(0, 1)),
    "mean": lambda xp, a, b: xp.mean(a, 0),
    "norm": lambda xp, a, b: xp.linalg.norm(a, axis=1),
    "vector_norm": lambda xp, a, b: xp.linalg.vector_norm(a, axis=1),
    "trace": lambda xp, a, b: xp.linalg.trace(a[:, :30]),
    "exp": lambda xp, a, b: xp.exp(a.real),
    "log2": lambda xp, a, b: xp.log2(a.real**2),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_differ_in_their_last_bits(name: str, dtype: str) -> None:
    a, b = random((30, 40), dtype), random((30, 40), dtype, 1)
    of = PRODUCTS[name]
    plain = np.asarray(of(np, a, b))
    # A single number may be the same by chance, but not for every seed.
    found = [np.asarray(of(namespace(seed), a, b)) for seed in range(3 if plain.size > 1 else 20)]
    scale = np.max(np.abs(of(np, np.abs(a), np.abs(b))))
    for each in found:
        assert each.dtype == plain.dtype
        assert each.shape == plain.shape
        assert np.max(np.abs(each - plain)) < 20 * np.finfo(dtype).eps * scale
    assert any(not np.array_equal(each, plain) for each in found)
    assert any(not np.array_equal(each, found[0]) for each in found[1:])
    np.testing.assert_array_equal(found[0], np.asarray(of(namespace(0), a, b)))


def gram(a: Array) -> Array:
    found: Array = a @ a.conj().T
    return found


DECOMPOSITIONS: dict[str, Callable[[Any, Array], tuple[Array, Array]]] = {
    "qr": lambda xp, a: (lambda q, r: (q @ r, a))(*xp.linalg.qr(a)),
    "r": lambda xp, a: (gram(xp.linalg.qr(a, mode="r").conj().T), gram(a.conj().T)),
    "svd": lambda xp, a: (
        (lambda u, s, v: ((u * s) @ v, a))(*xp.linalg.svd(a, full_matrices=False))
    ),
    "whole svd": lambda xp, a: (
        lambda u, s, v: ((u[:, : len(s)] * s) @ v[: len(s)], a)
    )(*xp.linalg.svd(a)),
    "svdvals": lambda xp, a: (xp.linalg.svdvals(a), np.linalg.svd(a, compute_uv=False)),
    "eigh": lambda xp, a: (
        (lambda w, v: ((v * w) @ v.conj().T, gram(a)))(*xp.linalg.eigh(gram(a)))
    ),
    "eigvalsh": lambda xp, a: (xp.linalg.eigvalsh(gram(a)), np.linalg.eigvalsh(gram(a))),
    "cholesky": lambda xp, a: (
        gram(xp.linalg.cholesky(gram(a.conj().T))),
        gram(a.conj().T),
    ),
    "solve": lambda xp, a: (a[:30] @ xp.linalg.solve(a[:30], a[:30]), a[:30]),
    "inv": lambda xp, a: (a[:30] @ xp.linalg.inv(a[:30]), np.eye(30)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_decompositions_are_right_to_rounding(name: str, dtype: str) -> None:
    a = random((40, 30), dtype)
    of = DECOMPOSITIONS[name]
    plain, expected = of(np, a)
    found, _ = of(namespace(0), a)
    assert found.dtype == plain.dtype
    assert not np.array_equal(found, plain)
    # The last two are as wrong as the condition of the matrix makes them.
    condition = np.linalg.cond(a[:30]) if name in ("solve", "inv") else 1.0
    allowed = 100 * condition * np.finfo(dtype).eps * max(1.0, np.linalg.norm(expected))
    assert np.linalg.norm(found - expected) < allowed


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_arbitrary_is_random(dtype: str) -> None:
    xp, values = namespace(0), np.diag([3.0, 2.0, 2.0, 2.0, 0.0, 0.0]).astype(dtype)
    turn = np.linalg.qr(random((6, 6), dtype))[0]
    matrix = (turn @ values @ turn.conj().T).astype(dtype)
    plain, found = np.linalg.eigh(matrix)[1], xp.linalg.eigh(matrix)[1]
    overlaps = np.abs(plain.conj().T @ found)
    # Simple ones are the same but for a phase; the others are turned within their space.
    assert abs(overlaps[5, 5] - 1) < 1e-5
    for space in (slice(0, 2), slice(2, 5)):
        inside = overlaps[space, space]
        n = inside.shape[0]
        np.testing.assert_allclose(np.linalg.norm(inside, axis=1), np.ones(n), atol=1e-5)
        assert np.max(np.abs(inside - np.eye(n))) > 1e-3


def test_phases_of_vectors_are_random() -> None:
    a = random((6, 6), "complex128")
    q, r = namespace(0).linalg.qr(a)
    assert np.max(np.abs(np.diag(r).imag)) > 0.1
    np.testing.assert_allclose(q @ r, a, atol=1e-13)
    u, _, v = namespace(0).linalg.svd(random((6, 6), "float64"))
    plain, _, _ = np.linalg.svd(random((6, 6), "float64"))
    signs = np.sign(np.vecdot(u, plain, axis=0))
    assert set(signs) == {-1.0, 1.0}
    assert np.allclose(v @ v.T, np.eye(6))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_exact_in_any_order_stays_exact(seed: int) -> None:
    xp, a = namespace(seed), random((20, 20), "float64")
    integers = np.rint(10 * a)
    permutation = np.eye(20)[np.random.default_rng(0).permutation(20)]
    for x, y in [
        (integers, integers.T),
        (permutation, a),
        (a, permutation),
        (np.zeros((20, 20)), a),
    ]:
        np.testing.assert_array_equal(xp.matmul(x, y), x @ y)
    assert xp.sum(integers) == np.sum(integers)
    assert xp.log2(2.0**40) == 40
    np.testing.assert_array_equal(xp.abs(a), np.abs(a))
    zeros = np.where(np.arange(20) < 10, a, 0)
    assert not np.any(xp.linalg.svd(zeros)[2][:10, 10:])
    assert not np.any(xp.linalg.qr(zeros.T)[0][10:, :10])


def test_what_is_not_finite_or_not_rounded_comes_through() -> None:
    xp = namespace(0)
    wrong = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(xp.matmul(wrong, np.eye(2)[:, :1]), [[np.nan], [np.inf]])
    assert xp.sum(np.arange(4)) == 6
    assert xp.sum([1.5, 2.5]) == 4.0
    assert xp.sum(np.zeros((0, 3))) == 0
    assert xp.matmul(np.zeros((3, 0)), np.zeros((0, 3))).shape == (3, 3)
    assert xp.abs(-3) == 3
    with pytest.raises(NotImplementedError, match="out"):
        xp.sum(np.ones(3), out=np.zeros(()))


# modules


SOURCE = """
import numpy as np
from numpy import linalg

def times(a, b):
    return a @ b

def total(a):
    return a.sum(axis=1)

def mean(a):
    return np.mean(a, axis=0)

def vectors(a):
    return linalg.qr(a)[0]

class Other:
    def __matmul__(self, other):
        return "product"

    def sum(self):
        return "sum"

def others():
    return Other() @ 3, Other().sum()
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that is imported with a shaken NumPy."""
    (tmp_path / "planted.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [Finder("planted", 3), *sys.meta_path])
    yield importlib.import_module("planted")
    del sys.modules["planted"]


def test_modules_are_shaken(planted: Any) -> None:
    a, b = random((30, 40), "float64"), random((40, 30), "float64", 1)
    for found, plain in [
        (planted.times(a, b), a @ b),
        (planted.total(a), a.sum(axis=1)),
        (planted.mean(a), np.mean(a, axis=0)),
    ]:
        assert not np.array_equal(found, plain)
        np.testing.assert_allclose(found, plain, atol=1e-13)
    assert not np.allclose(planted.vectors(a), np.linalg.qr(a)[0])
    assert planted.others() == ("product", "sum")


def test_a_product_in_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in_place.py").write_text("def f(a, b):\n    a @= b\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [Finder("in_place", 3), *sys.meta_path])
    with pytest.raises(NotImplementedError, match="line 2"):
        importlib.import_module("in_place")


def test_a_package_that_is_imported_already_is_refused() -> None:
    assert "numpy" in sys.modules
    with pytest.raises(RuntimeError, match="numpy"):
        shake("numpy", 1)


# Functions of NumPy whose results depend on an order, and which shaking does not know.
UNKNOWN = {
    "average", "bincount_weights", "cond", "convolve", "corrcoef", "correlate", "cov", "cross", "det",
    "eig", "eigvals", "inner", "lstsq", "matrix_norm", "matrix_power", "matrix_rank", "matvec",
    "multi_dot", "nanmean", "nansum", "pinv", "slogdet", "tensorinv", "tensorsolve", "trapezoid",
    "vecmat",
}  # fmt: skip


def test_nothing_that_is_rounded_escapes() -> None:
    escaped = []
    for path in sorted((ROOT / "src" / "tnsum").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in UNKNOWN:
                of = ast.unparse(node.value).removesuffix(".linalg")
                escaped += [f"{path.name}:{node.lineno}"] if of in ("np", "xp", "NUMPY") else []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numpy"):
                names = {alias.name for alias in node.names}
                escaped += [f"{path.name}:{node.lineno}"] if names & _SHAKEN.keys() else []
    assert escaped == []


# the option

FRAGILE = """
import numpy as np
from tnsum import Network

rng = np.random.default_rng(0)
A, B = rng.standard_normal((40, 50)), rng.standard_normal((50, 40))
x = Network.from_einsum("ir,rj->ij", A, B)

def test_fragile():
    np.testing.assert_array_equal(x.contract(), A @ B)

def test_robust():
    np.testing.assert_allclose(x.contract(), A @ B, atol=1e-12)
"""


@pytest.mark.parametrize(
    ("options", "said"), [((), "2 passed"), (("--shake", "1"), "1 failed, 1 passed")]
)
def test_a_fragile_test_fails(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text(FRAGILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = numerical\n")
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "conftest",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert said in done.stdout, done.stdout + done.stderr
    assert ("test_fragile" in done.stdout) is bool(options)
