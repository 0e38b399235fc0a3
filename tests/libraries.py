"""The one table of array libraries that tests share, and networks of the table's cases in them.

NumPy and array-api-strict always run. torch and JAX are large: they are imported only when a test
that is marked so asks for them, and skipped where they are not installed.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tnsum import Network
from topologies import BY_NAME, DTYPES, Case


@dataclass(frozen=True)
class Library:
    """An array library.

    Attributes
    ----------
    name : str
    convert : callable
        A NumPy array as an array of this library, in the same dtype.
    to_numpy : callable
        The way back.
    compiled : callable
        A function of arrays, or of networks, in the way that is quickest to run once: itself, but
        under JAX compiled as a whole, since JAX compiles every single operation otherwise.
    """

    name: str
    convert: Callable[[Any], Any]
    to_numpy: Callable[[Any], NDArray[Any]]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]


def library(name: str) -> Library:
    """The library of that name; the test is skipped where it is not installed."""
    return _BUILDERS[name]()


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _numpy() -> Library:
    return Library("numpy", np.asarray, np.asarray, _same)


def _array_api_strict() -> Library:
    strict = pytest.importorskip("array_api_strict")
    return Library("array_api_strict", strict.asarray, np.asarray, _same)


def _torch() -> Library:
    torch = pytest.importorskip("torch")
    # A copy: torch does not like the arrays that NumPy holds back to front or read-only.
    return Library(
        "torch",
        lambda array: torch.asarray(np.array(array)),
        lambda tensor: tensor.detach().resolve_conj().numpy(),
        _same,
    )


def _jax() -> Library:
    # Compiling takes far longer here than running: as little of it as possible.
    flags = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    os.environ.setdefault("XLA_FLAGS", flags)
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    # Classes become known to JAX when the next network is built after its import.
    Network({"A": (np.ones(1), ("i",))})
    return Library("jax", jax.numpy.asarray, np.asarray, jax.jit)


_BUILDERS: dict[str, Callable[[], Library]] = {
    "numpy": _numpy,
    "array_api_strict": _array_api_strict,
    "torch": _torch,
    "jax": _jax,
}

SMALL = ("numpy", "array_api_strict")
LARGE = ("torch", "jax")

LIBRARIES = [*SMALL, *(pytest.param(name, marks=pytest.mark.large) for name in LARGE)]
"""The names of all libraries, as parameters of a test."""

QUICK = {("numpy", dtype) for dtype in DTYPES} | {
    ("array_api_strict", "float32"),
    ("array_api_strict", "complex128"),
}

LIBRARIES_AND_DTYPES = [
    pytest.param(name, dtype, marks=[] if (name, dtype) in QUICK else [pytest.mark.large])
    for name in _BUILDERS
    for dtype in DTYPES
    if (name, dtype) != ("jax", "complex64")
]
"""Every library with every dtype (of JAX, which compiles for minutes, three); large if not QUICK."""

NUMPY = _numpy()


def network(case: Case, arrays: Mapping[str, Any], of: Library = NUMPY) -> Network:
    """The network of a case with these NumPy arrays, converted to a library."""
    nodes = {name: (of.convert(arrays[name]), modes) for name, modes in case.nodes.items()}
    return Network(nodes, case.physical_modes)


def tall(name: str, size: int) -> Case:
    """A case of the table with larger sizes, where measures orthogonalise instead of contracting."""
    case = BY_NAME[name]
    return replace(case, name=f"tall_{name}", sizes=dict.fromkeys(case.physical_modes, size))


TALL = [
    *(tall("chain5", 40), tall("tensor_train5", 8), tall("star3", 12), tall("star4", 8)),
    *(tall("cp3", 12), tall("ring4", 12)),
]


def rounding(dtype: str, double: float = 1e-12, single: float = 3e-5) -> float:
    """The relative error that is allowed to a computation in this dtype."""
    return single if dtype in ("float32", "complex64") else double
