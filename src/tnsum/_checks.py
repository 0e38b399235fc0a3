"""Checks of what a user hands over when a network is built or sliced."""

import numbers
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tnsum import _arrays
from tnsum._typing import Array, DType, NodeArrays
from tnsum.errors import ModeError, NetworkError
from tnsum.topology import Topology, listed

# Arrays of most libraries have at most 64 axes; some are needed on the way.
MOST_AXES = 60


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
    # NumPy's arithmetic turns arrays without axes into numbers; they are taken back as arrays.
    arrays = {k: np.asarray(a) if isinstance(a, np.generic) else a for k, a in arrays.items()}
    named = {f"node {name!r}": arrays[name] for name in topology.nodes}
    xp = _arrays.common_namespace(named)
    for label, array in named.items():
        _arrays.check_dtype(label, array)
    check_shapes(topology, arrays, n_leading)
    dtype = _arrays.result_dtype(xp, [array.dtype for array in named.values()])
    return {name: _arrays.astype(xp, arrays[name], dtype) for name in topology.nodes}


def check_shapes(topology: Topology, arrays: Mapping[str, Any], n_leading: int) -> None:
    """Raise unless what has the shape of each node's array fits together."""
    seen: dict[str | None, tuple[int, str, int]] = {}
    for name, modes in topology.nodes.items():
        shape = tuple(arrays[name].shape)
        if len(shape) != len(modes) + n_leading:
            leading = " after the leading axis of the stack" if n_leading else ""
            raise ModeError(
                f"Node {name!r} must have one axis per mode{leading}: it has modes {modes} and an "
                f"array of shape {shape}."
            )
        if len(modes) > MOST_AXES:
            raise NetworkError(
                f"A node must have at most {MOST_AXES} modes; node {name!r} has {len(modes)}. Split it, "
                f"or leave out modes of size one."
            )
        if 0 in shape:
            raise NetworkError(f"Node {name!r} must not be empty; its array has shape {shape}.")
        for axis, (mode, size) in enumerate(zip((None,) * n_leading + modes, shape, strict=True)):
            known, node, at = seen.setdefault(mode, (size, name, axis))
            if known != size:
                came = (
                    f"{size} at axis {axis} of node {name!r} with shape {shape}, "
                    f"{known} at axis {at} of node {node!r} with shape {tuple(arrays[node].shape)}."
                )
                if mode is None:
                    raise NetworkError(
                        f"The leading axis must count the same networks in every node: {came}"
                    )
                raise ModeError(f"Mode {mode!r} must have one size: {came}")


def as_names(modes: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """The names of modes that are given by name or position, checked to be all of them."""
    found: list[object] = []
    for mode in modes:
        if _is_integer(mode) and -len(names) <= operator.index(mode) < len(names):
            found.append(names[operator.index(mode)])
        else:
            found.append(mode)
    if sorted(map(repr, found)) != sorted(map(repr, names)):
        raise ModeError(
            f"transpose must name each physical mode of {listed(names)} once; {modes} came."
        )
    return tuple(map(str, found))


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
        elif isinstance(index, bool) or not _is_integer(index):
            raise ModeError(f"Mode {mode!r} is selected by an integer or a slice; {index!r} came.")
        elif not -size <= (number := index.__index__()) < size:
            raise ModeError(f"Index {number} lies outside mode {mode!r} of size {size}.")
        else:
            checked[mode] = number % size
    return checked


def _is_integer(index: Any) -> bool:
    try:
        operator.index(index)
    except TypeError:
        return False
    return True


def checked_tolerance(tolerance: Any, least: float, dtype: DType) -> float:
    """A tolerance that a dtype can hold; zero for none."""
    if tolerance is None:
        return 0.0
    if isinstance(tolerance, bool) or not isinstance(tolerance, numbers.Real):
        raise NetworkError(f"tolerance must be a number; {type(tolerance).__name__} came.")
    wanted = float(tolerance)
    if not 0 <= wanted < 1:
        raise NetworkError(f"tolerance must be at least 0 and less than 1; {tolerance} came.")
    if 0 < wanted < least:
        raise NetworkError(
            f"tolerance must be at least {least:.1e}, which {_arrays.dtype_name(dtype)} can "
            f"hold; {tolerance} came. Use a wider dtype, or no tolerance: then nothing is lost but "
            f"rounding."
        )
    return wanted


def checked_max_rank(max_rank: Any, modes: Sequence[str]) -> dict[str, int]:
    """The largest rank of each contraction mode that has one."""
    ranks = max_rank if isinstance(max_rank, Mapping) else dict.fromkeys(modes, max_rank)
    for mode, rank in ranks.items():
        if mode not in modes:
            raise ModeError(
                f"max_rank must name contraction modes of {listed(tuple(modes))}; {mode!r} came."
            )
        is_integer = isinstance(rank, numbers.Integral) and not isinstance(rank, bool)
        if rank is not None and (not is_integer or rank < 1):
            raise ModeError(
                f"max_rank must be a positive integer, or a dict of such by mode; {rank!r} came."
            )
    return {mode: int(rank) for mode, rank in ranks.items() if rank is not None}


def checked_integer(name: str, value: Any, least: int) -> int:
    """An integer that is large enough."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise NetworkError(f"{name} must be an integer of at least {least}; {value!r} came.")
    return int(value)


def checked_seconds(max_seconds: Any) -> float | None:
    """A time that work may take, or None for any."""
    if max_seconds is None:
        return None
    is_number = isinstance(max_seconds, numbers.Real) and not isinstance(max_seconds, bool)
    if not is_number or not float(max_seconds) > 0:
        raise NetworkError(f"max_seconds must be a positive number; {max_seconds!r} came.")
    return float(max_seconds)
