"""Rounding as another processor has it: `pytest --shake SEED`.

How a product is rounded depends on the processor: on the order in which BLAS adds, on fused multiply-adds,
on the width of its registers. No result of tnsum may depend on it by more than rounding, and no error that
it reports may be exceeded because of it. Here every product, sum and decomposition of NumPy arrays that a
module of tnsum asks for is evaluated as some other processor might have:

- the axes that are summed over are permuted, and a product is the sum of two partial ones;
- what depends on that order is moved by another last bit: what is exact in any order stays exact;
- `qr`, `svd`, `eigh`, `cholesky`, `solve` and `inv` are those of the array with an error as large as the
  one that LAPACK makes (its backward error), so that vectors turn within equal singular values and in null
  spaces, and vectors get random signs or phases, which are arbitrary;
- `exp`, `log`, `log2` and the modulus of complex numbers are moved by a last bit where they are not exact.

What comes out depends on the seed and on the arrays alone, as a processor's result does: the same question
has the same answer twice.

The operator @ of an array cannot be replaced. Hence the modules of tnsum are compiled from their source
with `a @ b` and with every attribute that has one of the names below replaced by a call; no module of the
tests is, so that the oracle and what tests compute themselves are rounded as ever. It must be done before
tnsum is imported.
"""

from __future__ import annotations

import ast
import operator
import sys
import zlib
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from math import prod
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


class Rounding:
    """The rounding of a processor that does not exist, given by a seed."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._seed = rng.integers(2**31).item()
        # Twice the same, one after the other, so that a piece may begin anywhere in the first half.
        self._normal = np.tile(rng.standard_normal(_POOL), 2)

    def noise(self, arrays: Sequence[Array], shape: Sequence[int], salt: int) -> Array:
        """Standard normal numbers that depend on the values and the shapes of arrays."""
        key = self._seed + salt
        for array in arrays:
            key = zlib.crc32(np.ascontiguousarray(array).data, zlib.crc32(repr(array.shape).encode(), key))
        size = prod(shape)
        if size > _POOL:
            return np.random.default_rng(key).standard_normal(shape)
        return self._normal[(start := key % _POOL) : start + size].reshape(shape)

    def order(self, arrays: Sequence[Array], n: int, salt: int) -> Array:
        """A permutation of n places."""
        return np.argsort(self.noise(arrays, (n,), salt))


_POOL = 2**16


class Shaking:
    """The functions by which NumPy's are replaced."""

    def __init__(self, seed: int) -> None:
        self._rounding = Rounding(seed)

    def attribute(self, of: Any, name: str) -> Any:
        """The attribute of that name, shaken if it is a function of NumPy or a method of its arrays."""
        found = getattr(of, name)
        if isinstance(of, np.ndarray):
            if name in _METHODS:
                return lambda *rest, **more: self._called(name, found, of, rest, more)
        elif isinstance(of, ModuleType) and of.__name__ in MODULES:
            return lambda *given, **more: self._called(name, found, None, given, more)
        return found

    def product(self, a: Any, b: Any) -> Any:
        """What `a @ b` is."""
        return self._matmul(operator.matmul, a, b)

    def _called(
        self, name: str, function: Function, of: Any, given: tuple[Any, ...], more: dict[str, Any]
    ) -> Any:
        if "out" in more or "where" in more or "initial" in more:
            raise NotImplementedError(f"{name} with out, where or initial: say how it is to be shaken")
        if of is not None:
            # A method: the function of the same name takes the array first.
            given, function = (of, *given), getattr(np, name)
        return _SHAKEN[name](self, function, *given, **more)

    # products

    def _matmul(self, function: Function, a: Any, b: Any) -> Any:
        plain = function(a, b)
        if not (_is_inexact(a) and _is_inexact(b)) or (n := a.shape[-1]) < 2 or not plain.size:
            return plain
        order = self._rounding.order((a, b), n, 1)
        first = 1 + int(order[0]) % (n - 1)
        with np.errstate(all="ignore"):
            found = sum(
                function(a[..., part], b[part] if b.ndim == 1 else b[..., part, :])
                for part in (order[:first], order[first:])
            )
            return self._moved(found, plain)

    def _einsum(self, function: Function, equation: Any, *arrays: Any, **more: Any) -> Any:
        plain = function(equation, *arrays, **more)
        if not isinstance(equation, str) or "..." in equation or not all(map(_is_inexact, arrays)):
            return plain
        inputs, _, output = equation.replace(" ", "").partition("->")
        permuted = list(arrays)
        for letter in sorted({*inputs} - {*output, ","}):
            held = [(k, i) for k, modes in enumerate(inputs.split(",")) for i, m in enumerate(modes) if m == letter]
            order = self._rounding.order(arrays, arrays[held[0][0]].shape[held[0][1]], ord(letter))
            for k, axis in held:
                permuted[k] = np.take(permuted[k], order, axis=axis)
        with np.errstate(all="ignore"):
            return self._moved(function(equation, *permuted, **more), plain)

    def _tensordot(self, function: Function, a: Any, b: Any, axes: Any = 2, **more: Any) -> Any:
        plain = function(a, b, axes, **more)
        if not (_is_inexact(a) and _is_inexact(b)) or not plain.size:
            return plain
        if isinstance(axes, int):
            ours, theirs = list(range(a.ndim - axes, a.ndim)), list(range(axes))
        else:
            ours, theirs = (list(np.atleast_1d(each)) for each in axes)
        x, y = a, b
        for salt, (i, j) in enumerate(zip(ours, theirs, strict=True)):
            order = self._rounding.order((a, b), a.shape[i], salt)
            x, y = np.take(x, order, axis=i), np.take(y, order, axis=j)
        with np.errstate(all="ignore"):
            return self._moved(function(x, y, axes, **more), plain)

    def _along(self, function: Function, a: Any, b: Any, axis: int = -1) -> Any:
        """vecdot: the axis is the last one of both, unless it is said."""
        more = {} if axis == -1 else {"axis": axis}
        plain = function(a, b, **more)
        if not (_is_inexact(a) and _is_inexact(b)):
            return plain
        n = max(a.shape[axis], b.shape[axis])
        order = self._rounding.order((a, b), n, 2)
        x, y = (np.take(each, order, axis=axis) if each.shape[axis] == n else each for each in (a, b))
        with np.errstate(all="ignore"):
            return self._moved(function(x, y, **more), plain)

    def _vdot(self, function: Function, a: Any, b: Any) -> Any:
        plain = function(a, b)
        if not (_is_inexact(a) and _is_inexact(b)):
            return plain
        order = self._rounding.order((a, b), a.size, 2)
        with np.errstate(all="ignore"):
            return self._moved(function(a.ravel()[order], b.ravel()[order]), plain)

    # sums

    def _reduced(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        """sum, mean and other functions whose second argument is an axis, axes or None."""
        plain = function(a, *rest, **more)
        array = np.asarray(a)
        if not _is_inexact(array) or not array.size:
            return plain
        axis = rest[0] if rest else more.get("axis")
        axes = range(array.ndim) if axis is None else np.atleast_1d(axis)
        return self._permuted(function, array, axes, plain, rest, more)

    def _norm(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        """norm and matrix_norm: Frobenius and Euclidean norms; others are taken as they are."""
        plain = function(a, *rest, **more)
        array, kind = np.asarray(a), rest[0] if rest else more.get("ord")
        if not _is_inexact(array) or not array.size or kind not in (None, 2, "fro"):
            return plain
        axis = rest[1] if len(rest) > 1 else more.get("axis")
        if kind == 2 and array.ndim > 1 and not np.ndim(axis) == 0:
            return plain
        axes = range(array.ndim) if axis is None else np.atleast_1d(axis)
        return self._permuted(function, array, axes, plain, rest, more)

    def _permuted(
        self,
        function: Function,
        array: Array,
        axes: Any,
        plain: Any,
        rest: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Any:
        found = array
        for axis in axes:
            order = self._rounding.order((array,), array.shape[axis], 3 + int(axis))
            found = np.take(found, order, axis=int(axis))
        with np.errstate(all="ignore"):
            return self._moved(function(found, *rest, **more), plain)

    def _moved(self, found: Any, plain: Any) -> Any:
        """What was found, moved by up to another last bit where the order matters."""
        return self._by_a_bit(found, found != plain)

    def _by_a_bit(self, found: Any, is_moved: Any) -> Any:
        """The numbers, some of them moved by up to a last bit."""
        array = np.asarray(found)
        with np.errstate(all="ignore"):
            eps = np.finfo(array.dtype).eps
            factor = 1 + eps * np.clip(self._rounding.noise((array,), array.shape, 4), -1, 1) * is_moved
            moved = (array * factor.astype(factor.dtype if array.dtype.kind == "c" else array.dtype)).astype(
                array.dtype, copy=False
            )
            moved = np.where(np.isfinite(moved), moved, array)
        return moved if isinstance(found, np.ndarray) else moved[()]

    # functions of numbers

    def _of_numbers(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        """exp, log, log2 and abs: what is an integer may be exact, and is let be."""
        plain = function(a, *rest, **more)
        if not _is_inexact(np.asarray(plain)):
            return plain
        array = np.asarray(a)
        if function in (np.abs, np.absolute):
            is_moved = (array.real != 0) & (array.imag != 0) if array.dtype.kind == "c" else False
        else:
            with np.errstate(all="ignore"):
                is_moved = plain != np.round(plain)
        return self._by_a_bit(plain, is_moved) if np.any(is_moved) else plain

    # decompositions

    def _qr(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        if not _is_inexact(a) or not a.size:
            return function(a, *rest, **more)
        found = function(self._wrong_by_columns(a), *rest, **more)
        mode = rest[0] if rest else more.get("mode", "reduced")
        if mode == "raw":
            return found
        q, r = (None, found) if mode == "r" else found
        phases = self._phases(a, (*a.shape[:-2], r.shape[-2]))
        r = phases.conj()[..., :, None] * r
        return r if q is None else type(found)(q * phases[..., None, :], r)

    def _svd(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        if not _is_inexact(a) or not a.size:
            return function(a, *rest, **more)
        found = function(self._wrong(a), *rest, **more)
        if not isinstance(found, tuple):
            return found
        left, values, right = found
        n = max(left.shape[-1], right.shape[-2])
        phases = self._phases(a, (*a.shape[:-2], n))
        left = left * phases[..., None, : left.shape[-1]]
        right = phases.conj()[..., : right.shape[-2], None] * right
        return type(found)(left, values, right)

    def _eigh(self, function: Function, a: Any, *rest: Any, **more: Any) -> Any:
        if not _is_inexact(a) or not a.size:
            return function(a, *rest, **more)
        found = function(self._wrong(a, is_hermitian=True), *rest, **more)
        if not isinstance(found, tuple):
            return found
        values, vectors = found
        return type(found)(values, vectors * self._phases(a, values.shape)[..., None, :])

    def _cholesky(self, function: Function, a: Any, **more: Any) -> Any:
        if not _is_inexact(a) or not a.size:
            return function(a, **more)
        sizes = np.sqrt(np.abs(np.diagonal(a, axis1=-2, axis2=-1)))
        error = _hermitian(self._error(a, a.shape)) * sizes[..., :, None] * sizes[..., None, :]
        return function((a + error).astype(a.dtype), **more)

    def _solved(self, function: Function, a: Any, *rest: Any) -> Any:
        """solve and inv."""
        return function(self._wrong_by_columns(a) if _is_inexact(a) and a.size else a, *rest)

    def _wrong(self, a: Array, is_hermitian: bool = False) -> Array:
        """The matrices with an error as large as LAPACK's, relative to their norms.

        Rows and columns of zeros remain: reflections do not touch them.
        """
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(a, axis=(-2, -1), keepdims=True)
            error = self._error(a, a.shape) * lengths / np.sqrt(prod(a.shape[-2:]))
            error = _hermitian(error) if is_hermitian else error
            is_used = np.any(a, axis=-1, keepdims=True) & np.any(a, axis=-2, keepdims=True)
            return (a + error * is_used).astype(a.dtype) if np.all(np.isfinite(error)) else a

    def _wrong_by_columns(self, a: Array) -> Array:
        """The matrices with an error as large as LAPACK's, relative to the norm of each column."""
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(a, axis=-2, keepdims=True)
            error = self._error(a, a.shape) * lengths / np.sqrt(a.shape[-2])
            error = error * np.any(a, axis=-1, keepdims=True)
            return (a + error).astype(a.dtype) if np.all(np.isfinite(error)) else a

    def _error(self, a: Array, shape: Sequence[int]) -> Array:
        noise: Array = self._rounding.noise((a,), shape, 5)
        if a.dtype.kind == "c":
            noise = noise + 1j * self._rounding.noise((a,), shape, 6)
        return np.finfo(a.dtype).eps * noise

    def _phases(self, a: Array, shape: Sequence[int]) -> Array:
        """Numbers of modulus one of the same dtype: signs, if it is real."""
        noise = self._rounding.noise((a,), shape, 7)
        phases = np.exp(3j * noise) if a.dtype.kind == "c" else np.where(noise < 0, -1, 1)
        return phases.astype(a.dtype)


def _hermitian(error: Array) -> Array:
    found: Array = (error + error.conj().swapaxes(-2, -1)) / np.sqrt(2)
    return found


def _is_inexact(a: Any) -> bool:
    """Whether it is an array of floating-point numbers, which are rounded."""
    return type(a) is np.ndarray and a.ndim > 0 and a.dtype.kind in "fc"


_SHAKEN: dict[str, Function] = {
    **dict.fromkeys(("matmul", "dot"), Shaking._matmul),
    "einsum": Shaking._einsum,
    "tensordot": Shaking._tensordot,
    "vecdot": Shaking._along,
    "vdot": Shaking._vdot,
    **dict.fromkeys(("sum", "mean", "prod", "var", "std"), Shaking._reduced),
    "vector_norm": Shaking._norm,
    "norm": Shaking._norm,
    **dict.fromkeys(("exp", "log", "log2", "abs", "absolute"), Shaking._of_numbers),
    "qr": Shaking._qr,
    **dict.fromkeys(("svd", "svdvals"), Shaking._svd),
    **dict.fromkeys(("eigh", "eigvalsh"), Shaking._eigh),
    "cholesky": Shaking._cholesky,
    **dict.fromkeys(("solve", "inv"), Shaking._solved),
}
_METHODS = {"dot", "sum", "mean", "prod", "var", "std"}


# modules compiled anew


class _Replaced(ast.NodeTransformer):
    """Source in which products and attributes of the names above are calls."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return _call(node, "product", [node.left, node.right])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            raise NotImplementedError(f"line {node.lineno}: @= is not shaken; write a = a @ b")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if node.attr not in _SHAKEN or not isinstance(node.ctx, ast.Load):
            return node
        return _call(node, "attribute", [node.value, ast.Constant(node.attr)])


_NAME = "__shaking__"


def _call(node: ast.AST, method: str, arguments: list[ast.expr]) -> ast.AST:
    function = ast.Attribute(ast.Name(_NAME, ast.Load()), method, ast.Load())
    call = ast.Call(function, arguments, [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


class _Loader(SourceFileLoader):
    """Loads a module whose NumPy rounds otherwise; no bytecode is read or written."""

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
    """Finds the modules of a package, to be shaken."""

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
    """From now on, modules of the package are imported with the rounding of that seed.

    Raises
    ------
    RuntimeError
        The package is imported already.
    """
    if package in sys.modules:
        raise RuntimeError(f"{package} must not be imported before it is shaken")
    sys.meta_path.insert(0, Finder(package, seed))
