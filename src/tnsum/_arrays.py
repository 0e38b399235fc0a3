"""What tnsum asks of an array library, and the only module that asks for an array namespace.

Everything here follows the array API standard; what the standard lacks (products over named modes,
blocks placed in an array) is built here from what it
has, or is looked up in the library at hand. Nothing is copied from one library to another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache

import array_api_compat
import numpy as np

from tnsum._numpy import NUMPY
from tnsum._typing import Array, Device, DType, Namespace, Scalar
from tnsum.errors import NetworkError

DTYPES = ("float32", "float64", "complex64", "complex128")


def is_array(value: object) -> bool:
    """Whether `value` is an array of a library that follows the array API standard."""
    return bool(array_api_compat.is_array_api_obj(value)) and not isinstance(value, np.generic)


def common_namespace(arrays: Mapping[str, Array]) -> Namespace:
    """The namespace of arrays that must share one library and one device; keys are for errors."""
    if all(type(array) is np.ndarray for array in arrays.values()):
        return namespace(next(iter(arrays.values())))
    found: tuple[str, Namespace, Device] | None = None
    for name, array in arrays.items():
        if not is_array(array) or isinstance(array, np.matrix | np.ma.MaskedArray):
            raise NetworkError(
                f"{_capital(name)} must be an array of NumPy, PyTorch, JAX or another library of "
                f"the array API standard; {type(array).__name__} came. Convert it first, for "
                f"instance with numpy.asarray."
            )
        xp, device = namespace(array), device_of(array)
        if found is None:
            found = name, xp, device
        elif xp is not found[1]:
            raise NetworkError(
                f"All arrays must be of one library: {name} is of {library(xp)}, {found[0]} of "
                f"{library(found[1])}. Convert one of them; nothing is converted silently."
            )
        elif device is not None and found[2] is not None and device != found[2]:
            raise NetworkError(
                f"All arrays must be on one device: {name} is on {device}, {found[0]} on "
                f"{found[2]}. Move one of them with to_device."
            )
    assert found is not None
    return found[1]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def namespace(array: Array) -> Namespace:
    """The namespace of an array that has been checked before."""
    return NUMPY if isinstance(array, np.ndarray) else array_api_compat.array_namespace(array)


@lru_cache(maxsize=32)
def library(xp: Namespace) -> str:
    """The plain name of a namespace's library, as a user would say it."""
    return str(xp.__name__).removeprefix("array_api_compat.").split(".")[0]


def device_of(array: Array) -> Device | None:
    """The device of an array; None of a traced one, which has none."""
    return None if is_traced(array) else array_api_compat.device(array)


def to_device(array: Array, device: Device) -> Array:
    """The array on another device of its library."""
    try:
        return array_api_compat.to_device(array, device)
    except Exception as error:
        raise NetworkError(
            f"device must be one that {library(namespace(array))} has; {device!r} came, and it says: "
            f"{_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def is_on_host(array: Array) -> bool:
    """Whether the array is one of NumPy's, which has no other device."""
    return isinstance(array, np.ndarray)


def on_host(array: Array) -> Array:
    """The values as a NumPy array, a view where that is possible; gradients stay behind."""
    if is_on_host(array):
        return array
    try:
        xp = namespace(array)
        if is_torch(xp):
            return array.detach().cpu().resolve_conj().resolve_neg().numpy()
        return array.get() if library(xp) == "cupy" else np.asarray(array)
    except Exception as error:
        # Traced, sparse, deleted, on a device without memory: each library has its own words for it.
        raise NetworkError(
            f"Arrays must be dense and have values that NumPy can hold; {type(array).__name__} came: "
            f"{_first_line(error)}"
        ) from error


def indexed(array: Array, where: tuple[int | slice, ...]) -> Array:
    """The part of an array, always as an array; steps may be negative in every library."""
    backwards = []
    forwards: list[int | slice] = []
    for index, size in zip(where, array.shape, strict=True):
        if isinstance(index, slice) and index.step is not None and index.step < 0:
            chosen = range(size)[index]
            backwards.append(sum(isinstance(k, slice) for k in forwards))
            index = slice(chosen[-1], chosen[0] + 1, -chosen.step)
        forwards.append(index)
    found = array[(*forwards, ...)]
    return namespace(array).flip(found, axis=tuple(backwards)) if backwards else found


def is_on_accelerator(array: Array) -> bool:
    """Whether the array lies elsewhere than in the memory of the processor."""
    device = None if is_on_host(array) else device_of(array)
    return device is not None and "cpu" not in str(device).lower()


def is_traced(array: Array) -> bool:
    """Whether the array is a stand-in without values, as inside jax.jit."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def check_values(what: str, arrays: Iterable[Array]) -> None:
    """Raise if what looks at values is to run where JAX has none yet."""
    if any(map(is_traced, arrays)):
        raise NetworkError(
            f"{what} needs arrays with values, on which its decisions depend; JAX is tracing these. "
            f"Call it outside of functions that jax.jit, jax.grad or jax.vmap transforms: inside, "
            f"contract, entries, norm, distance and inner take the lazy sum itself."
        )


def is_torch(xp: Namespace) -> bool:
    return library(xp) == "torch"


def is_jax(xp: Namespace) -> bool:
    return library(xp) == "jax"


def _is_mutable(xp: Namespace) -> bool:
    """Whether blocks are best written into an array of zeros (no gradients to carry)."""
    return library(xp) in ("numpy", "cupy")


def can_decide(array: Array) -> bool:
    """Whether a decision may depend on the values: not where they are traced, or carry a gradient."""
    xp = namespace(array)
    return not array.requires_grad if is_torch(xp) else not is_jax(xp)


def constant(xp: Namespace, array: Array) -> Array:
    """The same values, through which no gradient flows."""
    if is_torch(xp):
        return array.detach()
    if is_jax(xp):
        import jax

        return jax.lax.stop_gradient(array)
    return array


# dtypes


@lru_cache(maxsize=64, typed=True)
def dtype_name(dtype: DType) -> str:
    """The name of a dtype without its library: 'float64'."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).split(".")[-1]


def check_dtype(name: str, array: Array) -> None:
    """Raise unless the array holds real or complex numbers in single or double precision."""
    kind = dtype_name(array.dtype)
    if kind not in DTYPES:
        raise NetworkError(
            f"{_capital(name)} must be of dtype {', '.join(DTYPES[:-1])} or {DTYPES[-1]}; {kind} "
            f"came. Convert it first, for instance with astype('float64')."
        )


def resolve_dtype(xp: Namespace, dtype: DType) -> DType:
    """The library's own dtype for a name, a Python type or another library's dtype."""
    name = ""
    with suppress(TypeError):
        name = dtype_name(np.dtype(dtype) if isinstance(dtype, str | type) else dtype)
    if name not in DTYPES:
        raise NetworkError(f"dtype must be one of {', '.join(DTYPES)}; {dtype!r} came.")
    return _dtype(xp, name)


def _dtype(xp: Namespace, name: str) -> DType:
    """A library's dtype by name, as its arrays have it (NumPy and JAX also have types of that name)."""
    found = getattr(xp, name)
    return np.dtype(found) if isinstance(found, type) else found


def result_dtype(xp: Namespace, dtypes: Iterable[DType], any_complex: bool = False) -> DType:
    """The common dtype; with `any_complex` its complex counterpart, at the same precision."""
    unique = list(dict.fromkeys(dtypes))
    dtype = unique[0] if len(unique) == 1 else xp.result_type(*unique)
    if any_complex:
        name = {"float32": "complex64", "float64": "complex128"}.get(dtype_name(dtype))
        dtype = dtype if name is None else _dtype(xp, name)
    return dtype


def real_dtype(xp: Namespace, dtype: DType) -> DType:
    """The real dtype of the same precision."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype_name(dtype))
    return dtype if name is None else _dtype(xp, name)


def is_complex(dtype: DType) -> bool:
    """Whether a dtype is complex."""
    return dtype_name(dtype).startswith("complex")


def index_dtype(xp: Namespace) -> DType:
    """64-bit integers, or the widest ones that JAX has switched on."""
    return xp.asarray(0).dtype if is_jax(xp) else _dtype(xp, "int64")


def astype(xp: Namespace, array: Array, dtype: DType) -> Array:
    """The array in another dtype; itself if it has that dtype."""
    return array if array.dtype == dtype else xp.astype(array, dtype, copy=False)


def conj(xp: Namespace, array: Array) -> Array:
    """The complex conjugate; a real array itself."""
    return xp.conj(array) if is_complex(array.dtype) else array


# numbers


def is_number(value: object) -> bool:
    """Whether `value` is a Python or NumPy number."""
    kinds = int, float, complex, Fraction, np.number, np.bool_
    return isinstance(value, kinds) and not isinstance(value, np.timedelta64)


def as_array(value: Scalar) -> Array:
    """An array again, where NumPy's arithmetic made a number of an array without axes."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def copied(xp: Namespace, array: Array) -> Array:
    """The array's own copy, so that who writes to it changes no network; gradients flow through."""
    if is_jax(xp):
        return array
    return array.clone() if is_torch(xp) else xp.asarray(array, copy=True)


def widest_real(xp: Namespace) -> DType:
    """The real dtype in which numbers are kept before the dtype of their sum is known."""
    return xp.asarray(0.0).dtype if is_jax(xp) else _dtype(xp, "float64")


def scalar(array: Array) -> Scalar:
    """An array without axes as the library's own scalar, where it has one (NumPy)."""
    return array[()] if array.ndim == 0 else array


def python_number(number: Scalar) -> Scalar:
    """A number as Python's own int, float or complex, whose precision is weak."""
    if isinstance(number, complex | np.complexfloating):
        return complex(number)
    if isinstance(number, int | np.integer | np.bool_):
        return int(number)
    return float(number)


# blocks


def place_blocks(xp: Namespace, blocks: Sequence[Array], shared: frozenset[int]) -> Array:
    """Blocks along the superdiagonal of all axes but the shared ones; one axis at least is not."""
    axes = [k for k in range(blocks[0].ndim) if k not in shared]
    dtype = result_dtype(xp, [block.dtype for block in blocks])
    blocks = [astype(xp, block, dtype) for block in blocks]
    extents = {k: sum(block.shape[k] for block in blocks) for k in axes}
    if not _is_mutable(xp):
        return _concatenated(xp, blocks, axes, extents, dtype)
    # Shared axes come last in memory: then a block is a few long runs, and the zeros between blocks are
    # memory that nobody here writes to.
    order = (*axes, *sorted(shared))
    shape = [extents[k] if k in extents else blocks[0].shape[k] for k in order]
    axis_of = [order.index(k) for k in range(len(order))]
    placed = xp.permute_dims(xp.zeros(shape, dtype=dtype), axis_of)
    if library(xp) == "numpy" and len({block.shape for block in blocks}) == 1:
        # Equal blocks lie at equal steps: one view of all of them, and one assignment.
        step = sum(placed.strides[k] * blocks[0].shape[k] for k in axes)
        all_blocks = np.lib.stride_tricks.as_strided(
            placed, (len(blocks), *blocks[0].shape), (step, *placed.strides)
        )
        np.stack(blocks, out=all_blocks)
        return placed
    start = dict.fromkeys(axes, 0)
    for block in blocks:
        where = [slice(None)] * block.ndim
        for k in axes:
            where[k] = slice(start[k], start[k] + block.shape[k])
            start[k] += block.shape[k]
        placed[tuple(where)] = block
    return placed


def _concatenated(
    xp: Namespace,
    blocks: Sequence[Array],
    axes: Sequence[int],
    extents: Mapping[int, int],
    dtype: DType,
) -> Array:
    """The same without assignment: blocks padded along all axes but the first, then concatenated."""
    start = dict.fromkeys(axes[1:], 0)
    padded = []
    for block in blocks:
        for k in axes[1:]:
            size = block.shape[k]
            pads = []
            for width in (start[k], extents[k] - start[k] - size):
                shape = (*block.shape[:k], width, *block.shape[k + 1 :])
                pads.append(xp.zeros(shape, dtype=dtype, device=device_of(block)))
            block = xp.concat([pads[0], block, pads[1]], axis=k)
            start[k] += size
        padded.append(block)
    return xp.concat(padded, axis=axes[0])
