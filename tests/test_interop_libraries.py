"""The same network with arrays of another library: values, names, shared memory, and its traps."""

import os
import sys
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings

import tnsum.interop.libraries
from libraries import LARGE, SMALL, library, network
from oracle import dense, dense_sum, relative_error
from raising import unreached
from tnsum import Network, NetworkError, NetworkStack
from tnsum._arrays import dtype_name
from tnsum._arrays import library as name_of
from tnsum.interop.libraries import to_library
from topologies import BY_NAME, CASES, DTYPES, Case, any_cases, arrays

NAMES = [*SMALL, *LARGE]
PAIRS = [
    pytest.param(a, b, marks=[pytest.mark.large] if {a, b} & set(LARGE) else [])
    for a, b in product(NAMES, repeat=2)
    if a != b
]
TARGETS = ["array_api_strict", *(pytest.param(name, marks=pytest.mark.large) for name in LARGE)]
FEW = [BY_NAME[name] for name in ("lone_trace", "star3", "cp3", "disconnected_scalar", "permuted")]

TWO = BY_NAME["two_nodes"]
X = network(TWO, arrays(TWO, 0))
AWAY = array_api_strict.Device("device1")

on_targets = pytest.mark.parametrize("target", TARGETS)
on_pairs = pytest.mark.parametrize(("source", "target"), PAIRS)


def numpy_of(array: Any, name: str) -> Any:
    return library(name).to_numpy(array)


def place(array: Any, name: str) -> int:
    """Where in memory an array begins; NumPy copies some of JAX's arrays."""
    if name == "jax":
        return int(array.unsafe_buffer_pointer())
    return int(numpy_of(array, name).__array_interface__["data"][0])


def share(x: Any, source: str, y: Any, target: str) -> bool:
    """Whether two arrays begin at the same place in memory."""
    return place(x, source) == place(y, target)


def lone(array: Any) -> Network:
    """The network of a single node."""
    return Network({"node": (array, [f"i{k}" for k in range(array.ndim)])})


def moved(array: Any, target: str) -> Any:
    """The array of a single node in another library."""
    x = to_library(lone(array), target)
    assert name_of(x.namespace) == target
    return x.arrays["node"]


# values and names


@pytest.mark.parametrize("dtype", DTYPES)
@on_pairs
def test_networks_are_the_same_in_the_other_library(source: str, target: str, dtype: str) -> None:
    for case in FEW:
        held = arrays(case, 0, dtype=dtype)
        x = network(case, held, library(source))
        library(target)
        y = to_library(x, target)
        assert type(y) is Network
        assert y.topology == x.topology
        assert list(y.arrays) == list(x.arrays)
        assert name_of(y.namespace) == target
        for name, array in y.arrays.items():
            assert dtype_name(array.dtype) == dtype
            np.testing.assert_array_equal(numpy_of(array, target), held[name])
        wanted = dense(case.nodes, case.physical_modes, held)
        tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-13
        if target != "jax":  # which compiles for seconds
            assert relative_error(numpy_of(y.contract(), target), wanted) < tolerance
        back = to_library(y, source)
        for name, array in back.arrays.items():
            np.testing.assert_array_equal(numpy_of(array, source), held[name])


# Arrays that come by DLPack are read-only in NumPy 2.1 and early 2.2, and are copied on their way back.
IS_READ_ONLY = not np.from_dlpack(np.ones(2)).flags.writeable


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_topology_goes_there_and_back(case: Case) -> None:
    x = network(case, arrays(case, 0))
    y = to_library(x, "array_api_strict")
    back = to_library(y, "numpy")
    assert back.topology == y.topology == x.topology
    for name in x.arrays:
        assert type(back.arrays[name]) is np.ndarray
        assert IS_READ_ONLY or np.shares_memory(back.arrays[name], x.arrays[name])
        np.testing.assert_array_equal(back.arrays[name], x.arrays[name])


@settings(deadline=None)
@given(any_cases())
def test_any_network_goes_there_and_back(case: Case) -> None:
    x = network(case, arrays(case, 0))
    back = to_library(to_library(x, "array_api_strict"), "numpy")
    assert back.topology == x.topology
    assert all(np.array_equal(back.arrays[name], x.arrays[name]) for name in x.arrays)


@on_targets
def test_stacks_are_the_same_in_the_other_library(target: str) -> None:
    library(target)
    case = BY_NAME["star3"]
    x = NetworkStack.from_networks([network(case, arrays(case, 0, seed)) for seed in range(3)])
    y = to_library(x, target)
    assert type(y) is NetworkStack
    assert len(y) == 3
    for name in x.arrays:
        np.testing.assert_array_equal(numpy_of(y.arrays[name], target), x.arrays[name])


@on_targets
def test_sums_keep_their_terms_and_weights(target: str) -> None:
    library(target)
    case = BY_NAME["star3"]
    held = [arrays(case, which, seed) for which, seed in ((0, 0), (1, 1), (0, 2), (2, 3))]
    networks = [network(case, each) for each in held]
    stack = NetworkStack.from_networks([networks[0], networks[2]])
    s = stack.sum(np.array([2.0, -3.0])) + np.array(0.5j) * networks[1] + 4 * networks[3]
    t = to_library(s, target)
    assert type(t) is tnsum.NetworkSum
    assert t.topology == s.topology
    assert [type(term) for term in t._terms] == [type(term) for term in s._terms]
    assert [type(weight) for weight in t._weights][2] is int
    assert dtype_name(t.dtype) == "complex128"
    assert name_of(t.namespace) == target
    np.testing.assert_array_equal(numpy_of(t.weights, target), s.weights)
    order = [held[0], held[2], held[1], held[3]]
    wanted = dense_sum(case.nodes, case.physical_modes, order, [2, -3, 0.5j, 4])
    assert relative_error(numpy_of(t.contract(), target), wanted) < 1e-13
    back = to_library(t, "numpy")
    np.testing.assert_array_equal(back.weights, s.weights)


@on_targets
def test_weights_that_became_numbers_of_numpy_are_numbers_everywhere(target: str) -> None:
    library(target)
    s = 2 * (np.asarray(0.5, dtype="float32") * X)
    t = to_library(s, target)
    assert type(t._weights[0]) is float
    assert relative_error(numpy_of(t.contract(), target), X.contract()) < 1e-14


# what is asked for


def test_the_same_library_changes_nothing() -> None:
    strict = library("array_api_strict")
    y = network(TWO, arrays(TWO, 0), strict)
    for x, names in ((X, ("numpy", np, X.namespace)), (y, ("array_api_strict", y.namespace))):
        for name in names:
            assert to_library(x, name) is x
    s = X + X
    assert to_library(s, "numpy") is s
    assert to_library(X, "numpy", "cpu").topology == X.topology


def test_libraries_are_named_by_modules_too() -> None:
    assert name_of(to_library(X, array_api_strict).namespace) == "array_api_strict"
    y = to_library(X, "array_api_strict")
    assert type(to_library(y, np).arrays["A"]) is np.ndarray
    assert type(to_library(y, X.namespace).arrays["A"]) is np.ndarray


@pytest.mark.large
def test_large_libraries_are_named_by_modules_too() -> None:
    for name in LARGE:
        library(name)
    import jax
    import torch

    for module, name in ((torch, "torch"), (jax.numpy, "jax"), (jax, "jax")):
        y = to_library(X, module)
        assert name_of(y.namespace) == name
        assert to_library(y, module) is y
        assert to_library(y, y.namespace) is y
        assert name_of(to_library(X, y.namespace).namespace) == name


def test_arrays_are_moved_to_the_device() -> None:
    y = to_library(X, "array_api_strict", AWAY)
    assert y.device == AWAY
    s = to_library(X + np.asarray(2.0) * X, "array_api_strict", AWAY)
    assert s.device == s._weights[1].device == AWAY
    back = to_library(y, "array_api_strict", array_api_strict.Device("CPU_DEVICE"))
    np.testing.assert_array_equal(to_library(back, "numpy").contract(), X.contract())


@pytest.mark.large
def test_arrays_are_moved_to_devices_of_torch_and_jax() -> None:
    for name in LARGE:
        library(name)
    import jax

    assert str(to_library(X, "torch", "meta").device) == "meta"
    assert str(to_library(X, "torch", "cpu").device) == "cpu"
    assert to_library(X, "jax", jax.devices()[0]).device == jax.devices()[0]


# memory


def overlapping() -> Any:
    return np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 3), (8, 8))


def record() -> Any:
    """A field of a record: steps that are no whole number of entries."""
    rows = np.zeros(4, dtype=[("a", "f4"), ("b", "f8")])
    rows["b"] = np.arange(4)
    return rows["b"]


def read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


class Subclass(np.ndarray[Any, Any]):
    """An array of NumPy that says it is something else."""


BASE = np.arange(24.0).reshape(2, 3, 4)
# Name -> (array, who must copy it).
LAYOUTS: dict[str, tuple[Any, set[str]]] = {
    "plain": (BASE, set()),
    "complex": (BASE * (1 + 2j), set()),
    "no axes": (np.array(3.0), set()),
    "size one": (BASE[:1, :1, :1], set()),
    "backwards, size one": (BASE[::-1][:1], set()),
    "transposed": (BASE.T, set()),
    "permuted": (BASE.transpose(1, 0, 2), set()),
    "subclass": (BASE.view(Subclass), set()),
    "gaps": (BASE[:, :, ::2], {"jax"}),
    "part": (BASE[:, 1:, :], {"jax"}),
    "backwards": (BASE[:, ::-1], {"array_api_strict", "torch", "jax"}),
    "all backwards": (BASE[::-1, ::-1, ::-1], {"array_api_strict", "torch", "jax"}),
    "repeated": (np.lib.stride_tricks.as_strided(BASE, (5, 4), (0, 8)),
                 {"array_api_strict", "torch", "jax"}),
    "overlapping": (overlapping(), {"array_api_strict", "torch", "jax"}),
    "record": (record(), {"array_api_strict", "torch", "jax"}),
    "other bytes": (BASE.astype(">f8"), {"array_api_strict", "torch", "jax"}),
    "read-only": (read_only(BASE), {"array_api_strict", "torch", "jax"}),
    "broadcast": (np.broadcast_to(BASE[0], BASE.shape), {"array_api_strict", "torch", "jax"}),
}  # fmt: skip


@on_targets
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_numpy_arrives_and_is_copied_only_if_it_must(
    layout: str, target: str
) -> None:
    library(target)
    array, copied = LAYOUTS[layout]
    before = array.copy()
    y = moved(array, target)
    assert tuple(y.shape) == array.shape
    assert dtype_name(y.dtype) == dtype_name(array.dtype)
    np.testing.assert_array_equal(numpy_of(y, target), before)
    # JAX shares memory that begins at a multiple of 64 bytes, which NumPy does not promise.
    if target != "jax":
        assert share(array, "numpy", y, target) == (target not in copied)
    if target == "torch" and target in copied:
        y += 1
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_array_api_strict_arrives_in_numpy(layout: str) -> None:
    array = LAYOUTS[layout][0].astype(LAYOUTS[layout][0].dtype.newbyteorder("="), copy=False)
    y = moved(array_api_strict.asarray(array, copy=False), "numpy")
    np.testing.assert_array_equal(y, array)
    if np.shares_memory(y, array):
        assert y.flags.writeable == (array.flags.writeable and not IS_READ_ONLY)


@pytest.mark.large
@pytest.mark.parametrize("target", LARGE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_array_api_strict_arrives_elsewhere(layout: str, target: str) -> None:
    library(target)
    array = LAYOUTS[layout][0].astype(LAYOUTS[layout][0].dtype.newbyteorder("="), copy=False)
    y = moved(array_api_strict.asarray(array, copy=False), target)
    np.testing.assert_array_equal(numpy_of(y, target), array)


@pytest.mark.large
@pytest.mark.parametrize("dtype", DTYPES)
def test_jax_shares_memory_that_is_aligned(dtype: str) -> None:
    library("jax")
    itemsize = np.dtype(dtype).itemsize
    memory = np.ones(64 * 8 + 64, dtype="uint8")
    start = -memory.__array_interface__["data"][0] % 64
    array = memory[start : start + 6 * itemsize].view(dtype).reshape(2, 3)
    for each in (array, array.T):
        assert share(each, "numpy", moved(each, "jax"), "jax")


@cache
def torch_layouts() -> dict[str, tuple[Any, set[str]]]:
    """Name -> (tensor, who must copy it)."""
    import torch

    base = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4)
    everywhere = {"numpy", "array_api_strict", "jax"}
    return {
        "plain": (base, set()),
        "no axes": (torch.tensor(3.0), set()),
        "transposed": (base.permute(2, 0, 1), set()),
        "gaps": (base[:, :, ::2], {"jax"}),
        "expanded": (base[:, :1].expand(2, 5, 4), everywhere),
        "overlapping": (base.as_strided((3, 3), (1, 1)), everywhere),
        "conjugated": ((base * (1 + 2j)).conj(), everywhere),
        "negated": ((base * (1 + 2j)).conj().imag, everywhere),
        "parameter": (torch.nn.Parameter(base, requires_grad=False), set()),
    }


@pytest.mark.large
@pytest.mark.parametrize("target", ["numpy", "array_api_strict", "jax"])
def test_every_layout_of_torch_arrives_and_is_copied_only_if_it_must(target: str) -> None:
    library("torch"), library(target)
    for name, (tensor, copied) in torch_layouts().items():
        wanted = tensor.resolve_conj().resolve_neg().clone().numpy()
        y = moved(tensor, target)
        np.testing.assert_array_equal(numpy_of(y, target), wanted, err_msg=name)
        assert dtype_name(y.dtype) == dtype_name(tensor.dtype)
        assert (place(y, target) == tensor.data_ptr()) == (target not in copied), name


@pytest.mark.large
def test_jax_is_read_only_in_numpy_and_copied_for_torch() -> None:
    for name in LARGE:
        library(name)
    import jax

    array = jax.numpy.arange(6.0).reshape(2, 3)
    y = moved(array, "numpy")
    assert share(array, "jax", y, "numpy")
    assert not y.flags.writeable
    strict = moved(array, "array_api_strict")
    assert share(array, "jax", strict, "array_api_strict")
    tensor = moved(array, "torch")
    assert not share(array, "jax", tensor, "torch")
    tensor += 1
    np.testing.assert_array_equal(array, np.arange(6.0).reshape(2, 3))
    # Read-only arrays of NumPy that were JAX's go back to it, by a copy.
    np.testing.assert_array_equal(moved(y, "jax"), array)


@pytest.mark.large
def test_values_survive_a_long_way() -> None:
    for name in LARGE:
        library(name)
    way = ["jax", "torch", "jax", "array_api_strict", "torch", "numpy", "jax", "numpy"]
    for array in (BASE, BASE.T[::-1], BASE * 1j, np.array(2.0)):
        y = lone(array)
        for target in way:
            y = to_library(y, target)
        np.testing.assert_array_equal(y.arrays["node"], array)


def test_arrays_outlive_the_network_they_came_from() -> None:
    y = to_library(lone(np.arange(1000.0)), "array_api_strict")
    np.testing.assert_array_equal(np.asarray(y.arrays["node"]), np.arange(1000.0))


@pytest.mark.large
def test_arrays_in_other_libraries_outlive_the_network_they_came_from() -> None:
    for target in LARGE:
        library(target)
        y = to_library(lone(np.arange(1000.0)), target)
        junk = [np.full(1000, -1.0) for _ in range(100)]
        np.testing.assert_array_equal(numpy_of(y.arrays["node"], target), np.arange(1000.0))
        assert len(junk) == 100


# JAX without 64-bit numbers


@pytest.mark.large
def test_single_precision_goes_to_a_jax_without_double() -> None:
    library("jax")
    import jax

    with jax.enable_x64(False):
        for dtype in ("float32", "complex64"):
            y = to_library(X.astype(dtype), "jax")
            assert dtype_name(y.dtype) == dtype
            np.testing.assert_array_equal(np.asarray(y.arrays["A"]), X.astype(dtype).arrays["A"])
        # Weights in double precision are nothing that a user could mend.
        single = X.astype("float32")
        stack = NetworkStack.from_networks([single, single])
        for weights, dtype in (([0.25, 0.5], "float32"), ([0.25, 0.5j], "complex64")):
            s = stack.sum(weights) + np.array(2.0) * single
            assert dtype_name(s._weights[0].dtype) in ("float64", "complex128")
            t = to_library(s, "jax")
            assert dtype_name(t.dtype) == dtype_name(t._weights[0].dtype) == dtype
            np.testing.assert_array_equal(np.asarray(t.weights), [*weights, 2])
    t = to_library(stack.sum([0.1, 0.5]), "jax")
    assert float(t._weights[0][0]) == 0.1


# errors


def without_x64(x: Any) -> Any:
    library("jax")
    import jax

    with jax.enable_x64(False):
        return to_library(x, "jax")


def tensors(**options: Any) -> Network:
    library("torch")
    import torch

    return lone(torch.ones(3, dtype=torch.float64, **options))


def traced() -> Any:
    library("jax")
    import jax

    return jax.jit(lambda x: to_library(x, "numpy").contract())(lone(jax.numpy.ones(3)))


def weighted_with_gradient() -> Any:
    x = tensors()
    import torch

    return to_library(torch.tensor(2.0, requires_grad=True) * x, "numpy")


NAMED = "library must be one of array_api_strict, cupy, jax, numpy, torch, as a string or as the "
NAMED += "module; "
GRADIENT = (
    "Gradients end where a library ends: arrays must not require one, and these do. Build x of detached "
    "arrays first, for a network with Network.from_topology(x.topology, {name: array.detach() for name, "
    "array in x.arrays.items()})."
)
DOUBLE = "JAX has 64-bit numbers switched off and would make {} of {}. Say jax.config.update("
DOUBLE += "'jax_enable_x64', True), or x.astype('{}') first."

SMALL_ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: to_library(BASE, "torch"),  # type: ignore[type-var]
     "to_library takes a Network, NetworkStack or NetworkSum; ndarray came."),
    (lambda: to_library(X, "tensorflow"), f"{NAMED}'tensorflow' came."),
    (lambda: to_library(X, "NumPy"), f"{NAMED}'NumPy' came."),
    (lambda: to_library(X, os), f"{NAMED}{os!r} came."),
    (lambda: to_library(X, None), f"{NAMED}None came."),
    (lambda: to_library(X, ["numpy"]), f"{NAMED}['numpy'] came."),
    (lambda: to_library(to_library(X, "array_api_strict", AWAY), "numpy"),
     "numpy must reach the device of the arrays; it cannot take those of array_api_strict on "
     "array_api_strict.Device('device1') (CAUSE). Move them first with "
     "x.to_device(array_api_strict.Device('CPU_DEVICE'))."),
]  # fmt: skip
LARGE_ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: to_library(tensors(requires_grad=True), "numpy"), GRADIENT),
    (lambda: to_library(tensors(requires_grad=True), "jax"), GRADIENT),
    (weighted_with_gradient, GRADIENT),
    (traced,
     "Arrays must have values to be handed to another library; JAX is tracing these. Call to_library "
     "outside of functions that jax.jit, jax.grad or jax.vmap transforms."),
    (lambda: without_x64(X), DOUBLE.format("float32", "float64", "float32")),
    (lambda: without_x64(X.astype("complex128")),
     DOUBLE.format("complex64", "complex128", "complex64")),
    (lambda: without_x64(X + X), DOUBLE.format("float32", "float64", "float32")),
    (lambda: to_library(tensors(device="meta"), "numpy"),
     "numpy must reach the device of the arrays; it cannot take those of torch on meta (CAUSE). "
     "Move them first with x.to_device('cpu')."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [*SMALL_ERRORS, *(pytest.param(*row, marks=pytest.mark.large) for row in LARGE_ERRORS)],
)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(NetworkError) as raised:
        call()
    # What the other library says is its own.
    assert str(raised.value) == message.replace("CAUSE", str(raised.value.__cause__))


@pytest.mark.large
def test_every_raise_is_reached() -> None:
    calls = [call for call, _ in [*SMALL_ERRORS, *LARGE_ERRORS]]
    assert not unreached([Path(tnsum.interop.libraries.__file__)], calls)


@pytest.mark.large
def test_the_advice_for_gradients_works() -> None:
    x = tensors(requires_grad=True)
    detached = Network.from_topology(x.topology, {name: a.detach() for name, a in x.arrays.items()})
    np.testing.assert_array_equal(to_library(detached, "numpy").contract(), np.ones(3))


def test_a_library_that_is_not_installed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NetworkError, match=r"to_library needs cupy.*`pip install cupy`"):
        to_library(X, "cupy")
