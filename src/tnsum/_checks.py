"""Checks of what a user hands over when a network is built or sliced."""

from collections.abc import Mapping, Sequence
from typing import Any

from tnsum import _arrays
from tnsum._typing import Array, NodeArrays
from tnsum.errors import ModeError, NetworkError
from tnsum.topology import Topology, listed


def checked_arrays(topology: Topology, arrays: NodeArrays, n_leading: int) -> dict[str, Array]:
    """The arrays in the order of the nodes and in one dtype, or an error that names what is wrong."""
    if not isinstance(topology, Topology):
        raise NetworkError(f"topology must be a Topology; {type(topology).__name__} came.")
    if not isinstance(arrays, Mapping) or set(arrays) != set(topology.nodes):
        came = (
            listed(tuple(map(str, arrays)))
            if isinstance(arrays, Mapping)
            else type(arrays).__name__
        )
        raise NetworkError(
            f"There must be one array per node of {listed(tuple(topology.nodes))}; {came} came."
        )
    named = {f"node {name!r}": arrays[name] for name in topology.nodes}
    xp = _arrays.common_namespace(named)
    for label, array in named.items():
        _arrays.check_dtype(label, array)
    _check_shapes(topology, arrays, n_leading)
    dtype = _arrays.result_dtype(xp, [array.dtype for array in named.values()])
    return {name: _arrays.astype(xp, arrays[name], dtype) for name in topology.nodes}


def _check_shapes(topology: Topology, arrays: NodeArrays, n_leading: int) -> None:
    seen: dict[str | None, tuple[int, str]] = {}
    for name, modes in topology.nodes.items():
        shape = tuple(arrays[name].shape)
        if len(shape) != len(modes) + n_leading:
            leading = " after the leading axis of the stack" if n_leading else ""
            raise ModeError(
                f"Node {name!r} must have one axis per mode{leading}: it has modes {modes} and an "
                f"array of shape {shape}."
            )
        for axis, (mode, size) in enumerate(zip((None,) * n_leading + modes, shape, strict=True)):
            if size == 0:
                raise NetworkError(f"Node {name!r} must not be empty; its array has shape {shape}.")
            place = f"axis {axis} of node {name!r} with shape {shape}"
            known, where = seen.setdefault(mode, (size, place))
            if known != size:
                if mode is None:
                    raise NetworkError(
                        f"The leading axis must count the same networks in every node: it has size "
                        f"{size} at {place}, {known} at {where}."
                    )
                raise ModeError(
                    f"Mode {mode!r} must have one size: {size} at {place}, {known} at {where}."
                )


def as_names(modes: Sequence[str | int], names: Sequence[str]) -> tuple[str, ...]:
    in_range = all(-len(names) <= m < len(names) for m in modes if isinstance(m, int))
    if not in_range:
        raise ModeError(
            f"transpose must name each physical mode of {listed(names)} once; {modes} came."
        )
    return tuple(names[m] if isinstance(m, int) else m for m in modes)


def checked_selection(
    chosen: Mapping[str, Any], physical_modes: Sequence[str], sizes: Mapping[str, int]
) -> dict[str, int | slice]:
    checked: dict[str, int | slice] = {}
    for mode, index in chosen.items():
        if mode not in physical_modes:
            raise ModeError(
                f"A selected mode must be one of the physical modes {listed(physical_modes)}; "
                f"{mode!r} came."
            )
        size = sizes[mode]
        if isinstance(index, slice):
            if not range(size)[index]:
                raise ModeError(f"{index} selects nothing of mode {mode!r} of size {size}.")
            checked[mode] = index
        elif isinstance(index, bool) or not hasattr(index, "__index__"):
            raise ModeError(f"Mode {mode!r} is selected by an integer or a slice; {index!r} came.")
        elif not -size <= (number := index.__index__()) < size:
            raise ModeError(f"Index {number} lies outside mode {mode!r} of size {size}.")
        else:
            checked[mode] = number % size
    return checked
