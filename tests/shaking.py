"""Rounding of another processor: `pytest --shake SEED`.

How a product is rounded depends on the processor: on the order in which BLAS adds, on fused
multiply-adds, on the width of registers. No result of tnsum may depend on it by more than rounding, and
no reported error may be exceeded because of it. In this mode every product, sum and decomposition of
NumPy arrays in tnsum is evaluated as some other processor might evaluate it:

- The summed axes are permuted, and a matrix product is the sum of two partial ones.
- Entries that depend on this order are moved by one more last bit. What is exact in any order, such as a
  product with the identity, stays exact.
- `qr`, `svd`, `eigh`, `cholesky`, `solve` and `inv` get the array plus an error as large as LAPACK's own
  (its backward error), which turns vectors of nearly equal singular values and of null spaces. Signs or
  phases of vectors, which are arbitrary, are random.
- `exp`, `log`, `log2` and the modulus of complex numbers are moved by a last bit unless they are exact.

The result depends on the seed and on the arrays only, as a processor's result does: the same call
returns the same bits twice.

The operator @ of arrays cannot be patched. Therefore an import hook compiles the modules of tnsum with
`a @ b`, and every attribute that has one of the names in `_SHAKEN`, replaced by a call. Modules of the
tests are left alone, hence the oracle is rounded as usual. The hook must be installed before tnsum is
imported.
"""

from __future__ import annotations

import ast
import operator
import sys
import zlib
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from math import gcd, prod
from types import CodeType, ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Function: TypeAlias = Callable[..., Any]

MODULES = {
    "numpy",
    "numpy.linalg",
    "array_api_compat.numpy",
    "array_api_compat.numpy.linalg",
}
"""Namespaces whose functions are shaken."""

# Errors of LAPACK, in units of machine precision and relative to the norm. Null singular values and
# eigenvalues are at most 2, and QR leaves up to 6, typically 3. Vectors of other values are worse: for
# matrices of size 8, 32 and 128, the residuals of `eigh` are up to 5, 6 and 8 in OpenBLAS 0.3.31 but up
# to 8, 31 and 71 in 0.3.34; those of the SVD up to 10, 48 and 50 in both; typically a third of that.
# Here they are the root of the size, and up to five times that where LAPACK divides to conquer.
_OF_VALUES, _OF_QR, _DIVIDED = 1.5, 2.0, 25

_POOL, _FEW = 2**16, 64


class Rounding:
    """Random numbers that depend on a seed and on the arrays that are rounded."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._seed = rng.integers(2**31).item()
        # Twice the same numbers, so that a piece can start anywhere in the first half.
        self._normal = np.tile(rng.standard_normal(_POOL), 2)

    def _key(self, arrays: Sequence[Array], salt: int) -> int:
        key = self._seed + salt
        for array in arrays:
            key = zlib.crc32(repr(array.shape).encode(), key)
            key = zlib.crc32(np.ascontiguousarray(array).data, key)
        return key

    def noise(self, arrays: Sequence[Array], shape: Sequence[int], salt: int) -> Array:
        """Standard normal numbers."""
        key, size = self._key(arrays, salt), prod(shape)
        if size > _POOL:
            return np.random.default_rng(key).standard_normal(shape)
        start = key % _POOL
        return self._normal[start : start + size].reshape(shape)

    def order(self, arrays: Sequence[Array], n: int, salt: int) -> Array:
        """A permutation of n indices; steps of equal length where there are many, which is quick."""
        if n <= _FEW:
            return np.argsort(self.noise(arrays, (n,), salt))
        key = self._key(arrays, salt)
        step = next(k for k in range(2 + key % (n // 2), n) if gcd(k, n) == 1)
        return (np.arange(n) * step + key) % n


class Shaking:
    """The functions that replace NumPy's."""

    def __init__(self, seed: int) -> None:
        self._rounding = Rounding(seed)

    def attribute(self, of: Any, name: str) -> Any:
        """The attribute of that name; shaken if it is a function of NumPy or a method of its arrays."""
        found = getattr(of, name)
        if isinstance(of, np.ndarray):
            if name in _METHODS:
                # The function of the same name takes the array as its first argument.
                function = getattr(np, name)
                return lambda *rest, **more: self._called(name, function, (of, *rest), more)
        elif isinstance(of, ModuleType) and of.__name__ in MODULES:
            return lambda *given, **more: self._called(name, found, given, more)
        return found

    def product(self, a: Any, b: Any) -> Any:
        """What `a @ b` returns."""
        return self._matmul(operator.matmul, a, b)

    def _called(
        self, name: str, function: Function, given: tuple[Any, ...], more: dict[str, Any]
    ) -> Any:
        if unknown := more.keys() & {"out", "where", "initial"}:
            raise NotImplementedError(f"shaking does not know the argument {unknown} of {name}")
        return _SHAKEN[name](self, function, *given, **more)

    # products

    def _matmul(self, function: Function, a: Any, b: Any) -> Any:
        plain = function(a, b)
        if not _are_rounded(a, b) or a.shape[-1] < 2 or not plain.size:
            return plain
        order = self._rounding.order((a, b), a.shape[-1], 1)
        split = 1 + int(order[0]) % (len(order) - 1)
        with np.errstate(all="ignore"):
            found = sum(
                function(a[..., part], b[part] if b.ndim == 1 else b[..., part, :])
                for part in (order[:split], order[split:])
            )
            return self._moved(found, plain)

    def _einsum(self, function: Function, equation: str, *arrays: Any, **more: Any) -> Any:
        plain = function(equation, *arrays, **more)
        if "..." in equation or not _are_rounded(*arrays):
            return plain
        inputs, _, output = equation.replace(" ", "").partition("->")
        shuffled = list(arrays)
        for letter in sorted({*inputs} - {*output, ","}):
            for k, modes in enumerate(inputs.split(",")):
                for axis in (i for i, mode in enumerate(modes) if mode == letter):
                    n = arrays[k].shape[axis]
                    order = self._rounding.order(arrays, n, ord(letter))
                    shuffled[k] = np.take(shuffled[k], order, axis=axis)
        with np.errstate(all="ignore"):
            return self._moved(function(equation, *shuffled, **more), plain)

    def _tensordot(self, function: Function, a: Any, b: Any, axes: Any = 2, **more: Any) -> Any:
        plain = function(a, b, axes, **more)
        if not _are_rounded(a, b) or not plain.size:
            return plain
        if isinstance(axes, int):
            axes = list(range(a.ndim - axes, a.ndim)), list(range(axes))
        x, y = a, b
        for i, j in zip(*map(np.atleast_1d, axes), strict=True):
            order = self._rounding.order((a, b), a.shape[i], int(i))
            x, y = np.take(x, order, axis=int(i)), np.take(y, order, axis=int(j))
        with np.errstate(all="ignore"):
            return self._moved(function(x, y, axes, **more), plain)

    def _vecdot(self, function: Function, a: Any, b: Any, axis: int = -1) -> Any:
        # array_api_compat's takes no other axis.
        more = {} if axis == -1 else {"axis": axis}
        plain = function(a, b, **more)
        if not _are_rounded(a, b) or a.shape[axis] != b.shape[axis]:
            return plain
        order = self._rounding.order((a, b), a.shape[axis], 2)
        x, y = np.take(a, order, axis=axis), np.take(b, order, axis=axis)
        with np.errstate(all="ignore"):
            return self._moved(function(x, y, **more), plain)

    def _vdot(self, function: Function, a: Any, b: Any) -> Any:
        plain = function(a, b)
        if not _are_rounded(a, b):
            return plain
        order = self._rounding.order((a, b), a.size, 2)
        with np.errstate(all="ignore"):
            return self._moved(function(a.ravel()[order], b.ravel()[order]), plain)

    # sums

    def _sum(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        """sum, mean and other functions whose second argument is an axis, axes or None."""
        plain, array = function(a, *rest, **more), np.asarray(a)
        if not _are_rounded(array) or not array.size:
            return plain
        axis = rest[0] if rest else more.get("axis")
        return self._permuted(function, array, axis, plain, rest, more)

    def _norm(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        """Euclidean and Frobenius norms; others are left alone."""
        plain, array = function(a, *rest, **more), np.asarray(a)
        if rest or more.get("ord") is not None or not _are_rounded(array) or not array.size:
            return plain
        return self._permuted(function, array, more.get("axis"), plain, rest, more)

    def _permuted(
        self,
        function: Function,
        array: Array,
        axis: Any,
        plain: Any,
        rest: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Any:
        found = array
        for k in range(array.ndim) if axis is None else np.atleast_1d(axis):
            order = self._rounding.order((array,), array.shape[k], 3 + int(k))
            found = np.take(found, order, axis=int(k))
        with np.errstate(all="ignore"):
            return self._moved(function(found, *rest, **more), plain)

    def _trace(self, function: Function, a: Any) -> Any:
        plain = function(a)
        if not _are_rounded(a) or (a.ndim > 2 and function is np.trace):
            return plain
        order = self._rounding.order((a,), min(a.shape[-2:]), 3)
        with np.errstate(all="ignore"):
            return self._moved(function(a[..., order[:, None], order]), plain)

    # functions of each entry

    def _exp(self, function: Function, a: Any) -> Any:
        """exp, log and log2. What is an integer may be exact, and is left alone."""
        plain = function(a)
        with np.errstate(all="ignore"):
            return self._by_a_bit(plain, plain != np.round(plain))

    def _abs(self, function: Function, a: Any) -> Any:
        plain, array = function(a), np.asarray(a)
        if array.dtype.kind != "c":
            return plain
        return self._by_a_bit(plain, (array.real != 0) & (array.imag != 0))

    def _moved(self, found: Any, plain: Any) -> Any:
        """What was found, moved by up to one more last bit where the order matters."""
        return self._by_a_bit(found, found != plain)

    def _by_a_bit(self, found: Any, is_moved: Any) -> Any:
        """The numbers, some of them moved up or down by a last bit."""
        array = np.asarray(found)
        if array.dtype.kind not in "fc" or not np.any(is_moved):
            return found
        bits = np.clip(np.rint(self._rounding.noise((array,), array.shape, 4)), -1, 1)
        with np.errstate(all="ignore"):
            factors = 1 + np.finfo(array.dtype).eps * bits * is_moved
            moved = array * factors.astype(array.real.dtype)
            moved = np.where(np.isfinite(moved), moved, array)
        return moved if isinstance(found, np.ndarray) else moved[()]

    # decompositions

    def _qr(self, function: Function, a: Any, mode: str = "reduced") -> Any:
        if not _are_rounded(a) or not a.size:
            return function(a, mode=mode)
        found = function(self._wrong_by_columns(a), mode=mode)
        if mode == "raw":
            return found
        q, r = (None, found) if mode == "r" else found
        phases = self._phases(a, (*a.shape[:-2], r.shape[-2]))
        r = phases.conj()[..., :, None] * r
        return r if q is None else type(found)(q * phases[..., None, :], r)

    def _svd(self, function: Function, a: Any, **more: Any) -> Any:
        if not _are_rounded(a) or not a.size:
            return function(a, **more)
        found = function(self._wrong(a), **more)
        if not isinstance(found, tuple):
            return found
        left, values, right = found
        n_left, n_right, n = left.shape[-1], right.shape[-2], values.shape[-1]
        phases = self._phases(a, (*a.shape[:-2], max(n_left, n_right)))
        turned = right[..., :n, :] + self._turn(a, values, 10) @ right[..., :n, :]
        right = np.concatenate([turned, right[..., n:, :]], axis=-2)
        turned = left[..., :n] + left[..., :n] @ self._turn(a, values, 9)
        left = np.concatenate([turned, left[..., n:]], axis=-1)
        left = left * phases[..., None, :n_left]
        right = phases.conj()[..., :n_right, None] * right
        return type(found)(left, values, right)

    def _eigh(self, function: Function, a: Any) -> Any:
        if not _are_rounded(a) or not a.size:
            return function(a)
        found = function(self._wrong(a, is_hermitian=True))
        if not isinstance(found, tuple):
            return found
        values, vectors = found
        vectors = vectors + vectors @ self._turn(a, values, 9)
        return type(found)(values, vectors * self._phases(a, values.shape)[..., None, :])

    def _cholesky(self, function: Function, a: Any) -> Any:
        if not _are_rounded(a) or not a.size:
            return function(a)
        roots = np.sqrt(np.abs(np.diagonal(a, axis1=-2, axis2=-1)))
        error = _hermitian(self._error(a)) * roots[..., :, None] * roots[..., None, :]
        return function((a + error).astype(a.dtype))

    def _solve(self, function: Function, a: Any, *rest: Any) -> Any:
        """solve and inv."""
        return function(self._wrong_by_columns(a) if _are_rounded(a) and a.size else a, *rest)

    def _wrong(self, a: Array, is_hermitian: bool = False) -> Array:
        """The matrices with an error relative to their norms.

        Rows and columns of zeros remain, since reflections keep them.
        """
        with np.errstate(all="ignore"):
            lengths = np.max(np.linalg.norm(a, axis=-2, keepdims=True), axis=-1, keepdims=True)
            error = _OF_VALUES * self._error(a) * lengths / np.sum(np.sqrt(a.shape[-2:]))
            error = _hermitian(error) if is_hermitian else error
            is_used = np.any(a, axis=-1, keepdims=True) & np.any(a, axis=-2, keepdims=True)
            return (a + error * is_used).astype(a.dtype) if np.all(np.isfinite(error)) else a

    def _wrong_by_columns(self, a: Array) -> Array:
        """The matrices with an error relative to the norm of each column."""
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(a, axis=-2, keepdims=True)
            error = _OF_QR * self._error(a) * lengths / np.sqrt(a.shape[-2])
            error = error * np.any(a, axis=-1, keepdims=True)
            return (a + error).astype(a.dtype) if np.all(np.isfinite(error)) else a

    def _error(self, a: Array) -> Array:
        noise: Array = self._rounding.noise((a,), a.shape, 5)
        if a.dtype.kind == "c":
            noise = (noise + 1j * self._rounding.noise((a,), a.shape, 6)) / np.sqrt(2)
        return np.finfo(a.dtype).eps * noise

    def _turn(self, a: Array, values: Array, salt: int) -> Array:
        """By how much vectors turn among themselves, all but those of null values."""
        stack, n = a.shape[:-2], values.shape[-1]
        noise: Array = self._rounding.noise((a,), (*stack, n, n), salt)
        tails = 1.5 * np.abs(self._rounding.noise((a,), (*stack, 1, 1), 7)) * (n > _DIVIDED)
        eps, sizes = np.finfo(a.dtype).eps, np.abs(values)
        is_turned = sizes > 4 * n * eps * np.max(sizes, axis=-1, keepdims=True)
        turn = eps * (1 + tails) * np.triu(noise, 1)
        turn = turn * is_turned[..., :, None] * is_turned[..., None, :]
        return (turn - turn.swapaxes(-2, -1)).astype(a.dtype)

    def _phases(self, a: Array, shape: Sequence[int]) -> Array:
        """Numbers of modulus one in the dtype of an array: signs, if it is real."""
        noise = self._rounding.noise((a,), shape, 8)
        phases = np.exp(3j * noise) if a.dtype.kind == "c" else np.where(noise < 0, -1, 1)
        return phases.astype(a.dtype)


def _hermitian(error: Array) -> Array:
    found: Array = (error + error.conj().swapaxes(-2, -1)) / np.sqrt(2)
    return found


def _are_rounded(*arrays: Any) -> bool:
    """Whether all are NumPy arrays of floating-point numbers."""
    return all(type(a) is np.ndarray and a.ndim > 0 and a.dtype.kind in "fc" for a in arrays)


_SHAKEN: dict[str, Function] = {
    **dict.fromkeys(("matmul", "dot"), Shaking._matmul),
    "einsum": Shaking._einsum,
    "tensordot": Shaking._tensordot,
    "vecdot": Shaking._vecdot,
    "vdot": Shaking._vdot,
    **dict.fromkeys(("sum", "mean", "prod", "var", "std"), Shaking._sum),
    **dict.fromkeys(("norm", "vector_norm"), Shaking._norm),
    "trace": Shaking._trace,
    **dict.fromkeys(("exp", "log", "log2"), Shaking._exp),
    **dict.fromkeys(("abs", "absolute"), Shaking._abs),
    "qr": Shaking._qr,
    **dict.fromkeys(("svd", "svdvals"), Shaking._svd),
    **dict.fromkeys(("eigh", "eigvalsh"), Shaking._eigh),
    "cholesky": Shaking._cholesky,
    **dict.fromkeys(("solve", "inv"), Shaking._solve),
}
_METHODS = {"dot", "sum", "mean", "prod", "var", "std", "trace"}


# the import hook

_NAME = "__shaking__"


class _Replaced(ast.NodeTransformer):
    """Source with matrix products and the attributes above replaced by calls."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return _call(node, "product", [node.left, node.right])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            raise NotImplementedError(f"line {node.lineno}: shaking knows a = a @ b, not a @= b")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in _SHAKEN or not isinstance(node.ctx, ast.Load):
            return node
        return _call(node, "attribute", [node.value, ast.Constant(node.attr)])


def _call(node: ast.AST, method: str, arguments: list[ast.expr]) -> ast.AST:
    function = ast.Attribute(ast.Name(_NAME, ast.Load()), method, ast.Load())
    call = ast.Call(function, arguments, [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


class _Loader(SourceFileLoader):
    """Loads a module with shaken functions; neither reads nor writes bytecode."""

    def __init__(self, name: str, path: str, shaking: Shaking) -> None:
        super().__init__(name, path)
        self._shaking = shaking

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = _Replaced().visit(ast.parse(self.get_data(path), path))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _NAME, self._shaking)
        super().exec_module(module)


class Finder(MetaPathFinder):
    """Finds the modules of a package and has them loaded with shaken functions."""

    def __init__(self, package: str, seed: int) -> None:
        self._package, self._shaking = package, Shaking(seed)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self._package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self._shaking)
        return spec


def shake(package: str, seed: int) -> None:
    """Import the package, from now on, with the rounding of a seed.

    Raises
    ------
    RuntimeError
        The package is imported already.
    """
    if package in sys.modules:
        raise RuntimeError(f"{package} was imported before it could be shaken")
    sys.meta_path.insert(0, Finder(package, seed))
