"""Networks from and to xarray: names of dimensions are names of modes, variables are nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tnsum import _arrays
from tnsum._typing import Array, Modes
from tnsum.errors import ModeError, NetworkError
from tnsum.interop._imports import imported
from tnsum.interop._recognition import as_network
from tnsum.network import Network
from tnsum.topology import Topology


def from_xarray(data: Any, physical_modes: Modes | None = None) -> Network:
    """The network whose nodes are the data variables of a Dataset, dimensions as modes.

    Not kept are coordinates, attributes and names of coordinates. Nothing is copied; values that
    xarray has not yet read from a file are read.

    Parameters
    ----------
    data : xarray.Dataset, Mapping[str, xarray.DataArray] or xarray.DataArray
        A single DataArray is a network of one node, called by its name or else `node0`.
    physical_modes : Sequence[str], optional
        As for Network. Without it, a Dataset that has `attrs["physical_modes"]`, as `to_xarray`
        writes it, is taken at its word: the modes named there are physical, all others are summed.

    Raises
    ------
    NetworkError
        Something else came, a variable or a dimension is not named by a string, xarray is not
        installed, or an array does not fit (as for Network).
    ModeError
        `attrs["physical_modes"]` does not name modes of the Dataset, each once; as for Network.
    """
    xarray = imported("xarray", "from_xarray")
    if isinstance(data, xarray.Dataset):
        variables: Mapping[Any, Any] = data.data_vars
        if physical_modes is None and "physical_modes" in data.attrs:
            physical_modes = _remembered(variables, data.attrs["physical_modes"])
    elif isinstance(data, xarray.DataArray):
        variables = {"node0" if data.name is None else data.name: data}
    elif isinstance(data, Mapping):
        variables = data
    else:
        raise NetworkError(
            f"from_xarray takes a Dataset, a DataArray or a mapping from names to DataArrays; "
            f"{type(data).__name__} came."
        )
    for name, variable in variables.items():
        if not isinstance(variable, xarray.DataArray):
            raise NetworkError(
                f"Node {name!r} must be a DataArray; {type(variable).__name__} came. Name the axes "
                f"with xarray.DataArray(array, dims=...)."
            )
    return Network({name: (v.data, v.dims) for name, v in variables.items()}, physical_modes)


def to_xarray(x: Network) -> Any:
    """The Dataset whose data variables are the nodes of a network, modes as dimensions.

    The order of the physical modes is in `attrs["physical_modes"]`, where `from_xarray` finds it. The
    Dataset has no coordinates. Nothing is copied.

    Raises
    ------
    NetworkError
        Something else than a Network came, xarray is not installed, or it cannot hold the network: a
        node has the name of a mode (xarray would take it for a coordinate), or the arrays are of a
        library that xarray would convert to NumPy, such as PyTorch.
    ModeError
        A node holds a mode twice, which xarray does not support.
    """
    x = as_network(x, "to_xarray")
    xarray = imported("xarray", "to_xarray")
    _check_names(x.topology)
    _check_library(x._some_array)
    variables = {name: (modes, x.arrays[name]) for name, modes in x.topology.nodes.items()}
    return xarray.Dataset(variables, attrs={"physical_modes": x.physical_modes})


def _remembered(variables: Mapping[Any, Any], modes: Any) -> tuple[str, ...]:
    """The order that a Dataset remembers, checked: attributes are for everybody to write."""
    # A netCDF file gives back a list of one name as that name, a longer one as a list or an array.
    wanted = (modes,) if isinstance(modes, str) else modes
    try:
        return Topology({name: v.dims for name, v in variables.items()}, wanted).physical_modes
    except ModeError as error:
        raise ModeError(
            f"attrs['physical_modes'] of a Dataset must name its physical modes: {error} Mend it, or "
            f"pass physical_modes to from_xarray."
        ) from error


def _check_names(topology: Topology) -> None:
    all_modes = set(topology.modes)
    for name, modes in topology.nodes.items():
        if name in all_modes:
            raise NetworkError(
                f"xarray takes a variable with the name of a dimension for a coordinate; {name!r} "
                f"names a node and a mode. Rename one of them with x.rename(nodes={{...}})."
            )
        repeated = [mode for mode in modes if modes.count(mode) > 1]
        if repeated:
            raise ModeError(
                f"xarray has no place for a dimension that is twice in one variable; node {name!r} "
                f"holds mode {repeated[0]!r} twice. Take the diagonal or the trace of its array first."
            )


def _check_library(array: Array) -> None:
    # What xarray wraps as it is; np.asarray is called on anything else.
    if not hasattr(array, "__array_namespace__") and not hasattr(array, "__array_function__"):
        library = _arrays.library(_arrays.namespace(array))
        raise NetworkError(
            f"xarray would convert the arrays of {library} to NumPy; nothing is converted silently. "
            f"Say to_library(x, 'numpy') first."
        )
