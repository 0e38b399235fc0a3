"""Networks as Datasets of xarray: exact ways back, and what xarray cannot hold."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum.interop.xarray
from libraries import library, network
from oracle import dense, relative_error
from raising import check_message, check_missing, unreached
from test_peers import peer
from tnsum import ModeError, Network, NetworkError, NetworkStack
from tnsum.interop.xarray import from_xarray, to_xarray
from topologies import BY_NAME, CASES, DTYPES, Case, arrays

pytestmark = pytest.mark.large
xr = peer("xarray")

TWO = network(BY_NAME["two_nodes"], arrays(BY_NAME["two_nodes"], 0))
A, B = TWO.arrays["A"], TWO.arrays["B"]

HOLDABLE = [
    case for case in CASES if all(len(set(modes)) == len(modes) for modes in case.nodes.values())
]
on_holdable = pytest.mark.parametrize("case", HOLDABLE, ids=lambda case: case.name)


@pytest.mark.parametrize("dtype", DTYPES)
@on_holdable
def test_networks_become_datasets_and_come_back(case: Case, dtype: str) -> None:
    held = arrays(case, 0, dtype=dtype)
    x = network(case, held)
    dataset = to_xarray(x)
    assert type(dataset) is xr.Dataset
    assert list(dataset.data_vars) == list(case.nodes)
    assert not dataset.coords
    assert dataset.attrs == {"physical_modes": case.physical_modes}
    for name, modes in case.nodes.items():
        assert dataset[name].dims == modes
        assert dataset[name].data is x.arrays[name]
    back = from_xarray(dataset)
    assert back.topology == x.topology
    assert list(back.arrays) == list(x.arrays)
    assert all(back.arrays[name] is x.arrays[name] for name in x.arrays)


@pytest.mark.parametrize("name", ["array_api_strict", "jax"])
def test_arrays_that_xarray_wraps_stay_as_they_are(name: str) -> None:
    case = BY_NAME["star3"]
    x = network(case, arrays(case, 0), library(name))
    back = from_xarray(to_xarray(x))
    assert all(back.arrays[k] is x.arrays[k] for k in x.arrays)


@pytest.mark.parametrize("array", [
    A[::-1], A.T[:, ::2], A.astype(">f8"), np.broadcast_to(A[:1], A.shape), np.ones(()), A[:, :1],
])  # fmt: skip
def test_no_layout_in_memory_is_copied(array: Any) -> None:
    x = Network({"node": (array, tuple("abc")[: array.ndim])})
    assert to_xarray(x)["node"].data is array
    assert from_xarray(to_xarray(x)).arrays["node"] is array


# what users bring


def test_dimensions_are_modes() -> None:
    """The sum of products over shared dimensions, which is what xarray.dot computes."""
    a = xr.DataArray(A, dims=("time", "r"), coords={"time": [5, 6, 7]}, name="first")
    b = xr.DataArray(B, dims=("r", "space"), attrs={"units": "m"})
    wanted = xr.dot(a, b)
    for data in ({"a": a, "b": b}, xr.Dataset({"a": a, "b": b}, attrs={"title": "two"})):
        x = from_xarray(data)
        assert x.topology.nodes == {"a": ("time", "r"), "b": ("r", "space")}
        assert x.physical_modes == ("time", "space") == wanted.dims
        assert np.shares_memory(x.arrays["a"], A)
        assert relative_error(x.contract(), wanted.data) < 1e-14
        assert from_xarray(data, ("space", "time")).physical_modes == ("space", "time")
        assert relative_error(from_xarray(data, ["space"]).contract(), (A @ B).sum(0)) < 1e-14


def test_a_single_array_is_a_single_node() -> None:
    for name, node in ((None, "node0"), ("weights", "weights"), ("", "")):
        x = from_xarray(xr.DataArray(A, dims=("i", "j"), name=name))
        assert list(x.arrays) == [node]
        assert x.arrays[node] is A
        assert x.physical_modes == ("i", "j")
    assert from_xarray(xr.DataArray(A, dims=("i", "j")), ("j",)).shape == (A.shape[1],)
    assert from_xarray(xr.DataArray(np.float64(3))).contract() == 3


def test_coordinates_are_no_nodes() -> None:
    dataset = xr.Dataset(
        {"a": (("i", "r"), A), "b": (("r", "j"), B)},
        coords={"i": np.arange(len(A)), "extra": ("j", np.arange(B.shape[1]))},
    )
    assert list(from_xarray(dataset).arrays) == ["a", "b"]


def test_a_dimension_twice_in_one_variable_is_a_trace() -> None:
    case = BY_NAME["lone_trace"]
    held = arrays(case, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = xr.Dataset({name: (case.nodes[name], held[name]) for name in held})
        x = from_xarray(dataset)
    assert relative_error(x.contract(), dense(case.nodes, case.physical_modes, held)) < 1e-14


def test_the_remembered_order_yields_to_the_argument() -> None:
    dataset = to_xarray(TWO.transpose())
    assert from_xarray(dataset).physical_modes == ("j", "i")
    assert from_xarray(dataset, ("i",)).physical_modes == ("i",)
    assert from_xarray(dict(dataset.data_vars)).physical_modes == ("i", "j")


@pytest.mark.parametrize(
    ("remembered", "modes"),
    [(["j", "i"], ("j", "i")), (np.array(["j", "i"], dtype=object), ("j", "i")), ("i", ("i",)),
     ([], ()), (np.array([]), ()), ((), ())],
)  # fmt: skip
def test_the_order_is_understood_as_files_give_it_back(remembered: Any, modes: Any) -> None:
    dataset = to_xarray(TWO)
    dataset.attrs["physical_modes"] = remembered
    assert from_xarray(dataset).physical_modes == modes


def test_a_file_keeps_a_network(tmp_path: Path) -> None:
    x = Network({"A": (A, ("r", "s")), "B": (A, ("r", "s"))})
    peer("scipy")
    to_xarray(x).to_netcdf(tmp_path / "x.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "x.nc", engine="scipy") as dataset:
        back = from_xarray(dataset)
        assert back.topology == x.topology
        assert all(np.array_equal(back.arrays[name], x.arrays[name]) for name in x.arrays)


# errors


def remembering(modes: Any) -> Any:
    dataset = to_xarray(TWO)
    dataset.attrs["physical_modes"] = modes
    return dataset


def torch_network() -> Network:
    case = BY_NAME["two_nodes"]
    return network(case, arrays(case, 0), library("torch"))


ATTRS = "attrs['physical_modes'] of a Dataset must name its physical modes: "
MEND = " Mend it, or pass physical_modes to from_xarray."

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: from_xarray(A), NetworkError,
     "from_xarray takes a Dataset, a DataArray or a mapping from names to DataArrays; ndarray came."),
    (lambda: from_xarray({"A": A}), NetworkError,
     "Node 'A' must be a DataArray; ndarray came. Name the axes with xarray.DataArray(array, "
     "dims=...)."),
    (lambda: from_xarray({}), NetworkError, "A network must have at least one node; none came."),
    (lambda: from_xarray(xr.Dataset()), NetworkError,
     "A network must have at least one node; none came."),
    (lambda: from_xarray(xr.Dataset({1: (("i",), np.ones(2))})), NetworkError,
     "A node's name must be a string; 1 came."),
    (lambda: from_xarray(xr.DataArray(np.ones(2), dims=[0])), NetworkError,
     "The modes of node 'node0' must be a sequence of strings; (0,) came."),
    (lambda: from_xarray(xr.DataArray([1, 2], dims=["i"])), NetworkError,
     "Node 'node0' must be of dtype float32, float64, complex64 or complex128; int64 came. Convert it "
     "first, for instance with astype('float64')."),
    (lambda: from_xarray({"A": xr.DataArray(np.ones(2), dims=["i"]),
                          "B": xr.DataArray(np.ones(3), dims=["i"])}), ModeError,
     "Mode 'i' must have one size: 3 at axis 0 of node 'B' with shape (3,), 2 at axis 0 of node 'A' "
     "with shape (2,)."),
    (lambda: from_xarray(to_xarray(TWO), ("i", "k")), ModeError,
     "A physical mode must be held by a node; none holds 'k'. The nodes hold ('i', 'r', 'j')."),
    (lambda: from_xarray(remembering(("i", "k"))), ModeError,
     f"{ATTRS}A physical mode must be held by a node; none holds 'k'. The nodes hold ('i', 'r', 'j')."
     f"{MEND}"),
    (lambda: from_xarray(to_xarray(TWO).isel(i=0)), ModeError,
     f"{ATTRS}A physical mode must be held by a node; none holds 'i'. The nodes hold ('r', 'j').{MEND}"),
    (lambda: from_xarray(remembering(("i", "i"))), ModeError,
     f"{ATTRS}A physical mode must be named once; 'i' came twice.{MEND}"),
    (lambda: from_xarray(remembering(5)), ModeError,
     f"{ATTRS}physical_modes must be a sequence of mode names; 5 came.{MEND}"),
    (lambda: from_xarray(remembering(["i", 3])), ModeError,
     f"{ATTRS}physical_modes must be a sequence of mode names; ('i', 3) came.{MEND}"),
    (lambda: to_xarray(TWO + TWO), NetworkError,  # type: ignore[arg-type]
     "to_xarray takes a Network; NetworkSum came. Say x.to_network() first, for the explicit blocks."),
    (lambda: to_xarray(NetworkStack.from_networks([TWO])), NetworkError,  # type: ignore[arg-type]
     "to_xarray takes a Network; NetworkStack came. Say x[k] for one network, or "
     "x.sum().to_network()."),
    (lambda: to_xarray(TWO.rename(nodes={"A": "i"})), NetworkError,
     "xarray takes a variable with the name of a dimension for a coordinate; 'i' names a node and a "
     "mode. Rename one of them with x.rename(nodes={...})."),
    # Also where the mode is another node's.
    (lambda: to_xarray(TWO.rename(nodes={"A": "j"})), NetworkError,
     "xarray takes a variable with the name of a dimension for a coordinate; 'j' names a node and a "
     "mode. Rename one of them with x.rename(nodes={...})."),
    (lambda: to_xarray(network(BY_NAME["trace"], arrays(BY_NAME["trace"], 0))), ModeError,
     "xarray has no place for a dimension that is twice in one variable; node 'A' holds mode 't' twice. "
     "Take the diagonal or the trace of its array first."),
    (lambda: to_xarray(torch_network()), NetworkError,
     "xarray would convert the arrays of torch to NumPy; nothing is converted silently. Say "
     "to_library(x, 'numpy') first."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    check_message(call, error, message)


def test_every_raise_is_reached() -> None:
    assert not unreached([Path(tnsum.interop.xarray.__file__)], [call for call, *_ in ERRORS])


def test_without_xarray_the_error_says_how_to_install_it() -> None:
    check_missing("xarray", "xarray", lambda: to_xarray(TWO))
    check_missing("xarray", "xarray", lambda: from_xarray(None))
