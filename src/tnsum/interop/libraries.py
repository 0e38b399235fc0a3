"""The same network with the arrays of another library, through DLPack.

DLPack hands over memory, so that nothing is copied where both libraries allow it: then the arrays on
both sides are one, and neither may be written to. Copied is memory

- that runs backwards, at which PyTorch ends the process, or in which several entries share one place;
- with gaps between the entries, for JAX, which refuses it;
- of read-only NumPy arrays, which JAX refuses and PyTorch would write to, and of JAX's arrays, for
  PyTorch and CuPy, which have no read-only arrays;
- whose entries are to be read as something else: conjugated or negated (PyTorch), in the other order
  of bytes (NumPy).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tnsum import _arrays
from tnsum._typing import Array, Device, Namespace, Scalar
from tnsum.errors import NetworkError
from tnsum.interop._imports import imported
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum

_MODULES = {
    "array_api_strict": "array_api_strict",
    "cupy": "cupy",
    "jax": "jax.numpy",
    "numpy": "numpy",
    "torch": "torch",
}
# How these libraries call the processor; others call it 'cpu'.
_HOST = {
    "array_api_strict": "array_api_strict.Device('CPU_DEVICE')",
    "jax": "jax.devices('cpu')[0]",
}
_SINGLE = {"float64": "float32", "complex128": "complex64"}

T = TypeVar("T", Network, NetworkStack, NetworkSum)


def to_library(x: T, library: str | Namespace, device: Device | None = None) -> T:
    """The same network, stack or sum with arrays of another library; itself if it has them already.

    Names, their order and dtypes are kept. Weights that are arrays are converted too; beside single
    precision they become single for a JAX without 64-bit numbers. Arrays stay on their device, but
    CuPy, which has none on the processor, brings those to its current one. Both sides share their
    memory where the libraries allow it: do not write to it. JAX's arrays are read-only in NumPy.

    Gradients are not kept: they end where a library ends.

    Parameters
    ----------
    x : Network, NetworkStack or NetworkSum
    library : str or module
        "numpy", "torch", "jax", "cupy" or "array_api_strict", or the module or namespace itself:
        `torch`, `jax.numpy`, `y.namespace`.
    device : optional
        Where the arrays are moved then, in the library's own words: "cuda" for PyTorch,
        `jax.devices()[0]` for JAX.

    Raises
    ------
    NetworkError
        `x` or `library` is something else, the library is not installed, or it cannot take the
        arrays: they carry a gradient, are traced by JAX, are on a device that it does not reach, or
        have 64-bit numbers that are switched off in JAX.
    """
    if not isinstance(x, Network | NetworkStack | NetworkSum):
        raise NetworkError(
            f"to_library takes a Network, NetworkStack or NetworkSum; {type(x).__name__} came."
        )
    name = _library_name(library)
    if name != _arrays.library(x.namespace):
        x = _converted(x, imported(_MODULES[name], "to_library"))
    return x if device is None else x.to_device(device)


def _library_name(library: Any) -> str:
    name = _arrays.library(library) if hasattr(library, "__name__") else library
    if not isinstance(name, str) or name not in _MODULES:
        raise NetworkError(
            f"library must be one of {', '.join(_MODULES)}, as a string or as the module; "
            f"{library!r} came."
        )
    return name


def _converted(x: T, xp: Namespace) -> T:
    moved = partial(_moved, xp=xp)
    if not isinstance(x, NetworkSum):
        return x._mapped(moved)
    terms = [term._mapped(moved) for term in x._terms]
    weights = [_moved_weight(weight, x, xp) for weight in x._weights]
    return NetworkSum._unchecked(x.topology, terms, weights)


def _moved_weight(weight: Scalar, x: NetworkSum, xp: Namespace) -> Scalar:
    if not _arrays.is_array(weight):
        return _arrays.python_number(weight)
    if _lacks_double(xp) and _arrays.dtype_name(x.dtype) not in _SINGLE:
        # Weights are weak in precision, and x.astype, the advice for nodes, leaves them alone.
        dtype = _arrays.real_dtype(x.namespace, x.dtype)
        dtype = _arrays.result_dtype(x.namespace, [dtype], _arrays.is_complex(weight.dtype))
        weight = _arrays.astype(x.namespace, weight, dtype)
    return _moved(weight, xp)


def _moved(array: Array, xp: Namespace) -> Array:
    """The values of an array as an array of another library."""
    _check(array, xp)
    try:
        return _handed_over(array, xp)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        source = _arrays.library(_arrays.namespace(array))
        cpu = _HOST.get(source, "'cpu'")
        raise NetworkError(
            f"{_arrays.library(xp)} must reach the device of the arrays; it cannot take those of "
            f"{source} on {_arrays.device_of(array)} ({error}). Move them first with "
            f"x.to_device({cpu})."
        ) from error


def _handed_over(array: Array, xp: Namespace) -> Array:
    """The same, with the other library's own errors."""
    source, target = _arrays.library(_arrays.namespace(array)), _arrays.library(xp)
    array = _plain(array, target)
    if target == "cupy" and not _arrays.is_on_accelerator(array):
        return xp.asarray(np.from_dlpack(array))
    moved = xp.from_dlpack(array)
    # Who writes to a tensor must not change an array that JAX takes for constant.
    if source == "jax" and target in ("cupy", "torch"):
        return _arrays.copied(_arrays.namespace(moved), moved)
    return moved


def _check(array: Array, xp: Namespace) -> None:
    """Raise if the values of an array do not exist yet or would not all arrive."""
    if _arrays.is_traced(array):
        raise NetworkError(
            "Arrays must have values to be handed to another library; JAX is tracing these. Call "
            "to_library outside of functions that jax.jit, jax.grad or jax.vmap transforms."
        )
    if getattr(array, "requires_grad", False):
        raise NetworkError(
            "Gradients end where a library ends: arrays must not require one, and these do. Build x of "
            "detached arrays first, for a network with Network.from_topology(x.topology, {name: "
            "array.detach() for name, array in x.arrays.items()})."
        )
    kind = _arrays.dtype_name(array.dtype)
    if _lacks_double(xp) and kind in _SINGLE:
        raise NetworkError(
            f"JAX has 64-bit numbers switched off and would make {_SINGLE[kind]} of {kind}. Say "
            f"jax.config.update('jax_enable_x64', True), or x.astype('{_SINGLE[kind]}') first."
        )


def _lacks_double(xp: Namespace) -> bool:
    """Whether this is a JAX with 64-bit numbers switched off."""
    return _arrays.library(xp) == "jax" and str(_arrays.widest_real(xp)) == "float32"


def _plain(array: Array, target: str) -> Array:
    """The array, or a copy of it, in memory that the library `target` reads rightly and may keep."""
    source = _arrays.library(_arrays.namespace(array))
    if source == "jax":
        return array
    if source == "torch":
        # DLPack knows neither; PyTorch refuses to export conjugated entries, but forgets the sign.
        array = array.resolve_conj().resolve_neg()
        is_plain = _is_plain(array.stride(), 1, array.shape, target)
        return array if is_plain else array.contiguous()
    if source == "array_api_strict":
        array = np.asarray(array)
    if isinstance(array, np.ndarray):
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        if not array.flags.writeable:
            return array.copy()
    return array if _is_plain(array.strides, array.itemsize, array.shape, target) else array.copy()


def _is_plain(steps: Sequence[int], unit: int, shape: Sequence[int], target: str) -> bool:
    """Whether each entry has a place of its own, later ones later; for JAX, without gaps between.

    `steps` are those from one entry to the next along each axis; an entry is `unit` long.
    """
    reached = unit
    for step, size in sorted(zip(steps, shape, strict=True)):
        if size > 1:
            has_gap = step > reached
            if step < reached or step % unit or (has_gap and target == "jax"):
                return False
            reached += (size - 1) * step
    return True
