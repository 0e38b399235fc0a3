"""Networks from and to HOTTBOX, which has a class for each of three formats.

HOTTBOX knows NumPy's arrays only. It calls modes `mode-0`, `mode-1`, ... unless they are given other
names: these defaults stand for tnsum's, `i0`, `i1`, ..., and every other name is kept as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tnsum import _arrays
from tnsum.errors import ModeError, NetworkError
from tnsum.formats import cp, tensor_train, tucker
from tnsum.interop._imports import imported
from tnsum.interop._recognition import as_network, recognised
from tnsum.network import Network

# In order of preference, which decides between two formats of a product of two matrices.
_KINDS = "tucker", "cp", "tensor_train"


def from_hottbox(tensor: Any) -> Network:
    """The network of a TensorTKD, TensorCPD or TensorTT of HOTTBOX.

    Nodes and modes have the names that `tnsum.tucker`, `tnsum.cp` and `tnsum.tensor_train` give, but
    for physical modes that have been given a name in HOTTBOX, which is kept (underscores are added to
    a contraction mode's name if a physical mode has it).

    Notes
    -----
    Arrays are taken as they are, without a copy. The values of a TensorCPD's core are multiplied into
    its first factor, unless they are all one, and are not kept apart. Nor are the labels along a mode
    (`set_mode_index`).

    Raises
    ------
    NetworkError
        Something else came, or its arrays are not such as Network and the format take (a TensorTT
        with a single core is none).
    ModeError
        There is not one name per mode, or two modes have one name.
    """
    core = imported("hottbox.core", "from_hottbox")
    # HOTTBOX shows copies of these private arrays, and of a complex CP core only the real part.
    if isinstance(tensor, core.TensorTKD):
        x = tucker(tensor._core_values, tensor.fmat)
    elif isinstance(tensor, core.TensorCPD):
        values = tensor._core_values
        x = cp(tensor.fmat, None if np.array_equal(values, np.ones(tensor.rank)) else values)
    elif isinstance(tensor, core.TensorTT):
        x = tensor_train(tensor._core_values)
    else:
        raise NetworkError(
            f"from_hottbox takes a TensorTKD, TensorCPD or TensorTT of HOTTBOX; "
            f"{type(tensor).__name__} came. A dense Tensor is an array: tensor.data."
        )
    return _with_names(x, tensor.mode_names)


def to_hottbox(x: Network, kind: str | None = None) -> Any:
    """The TensorTKD, TensorCPD or TensorTT of HOTTBOX for a network.

    A physical mode named `i{k}` at position k has HOTTBOX's default name, any other keeps its own, so
    that `from_hottbox` gives all names of physical modes back.

    Parameters
    ----------
    x : Network
        A Tucker or CP network or a tensor train (see `tnsum.formats`), whatever its names, with
        physical modes in the order of its nodes and with arrays of NumPy.
    kind : {"tucker", "cp", "tensor_train"}, optional
        The format. Without it, that of the builder whose names the network has, or else the first of
        these that it has. Only a product of two matrices has two of them: under other names it
        becomes a TensorCPD unless `kind` is "tensor_train".

    Notes
    -----
    HOTTBOX copies all arrays. The values of a TensorCPD's core are ones. Not kept: names of nodes and
    of contraction modes. HOTTBOX itself reconstructs a TensorCPD in double precision.

    Raises
    ------
    NetworkError
        Something else than a Network came, the kind is not one of these, the arrays are not NumPy's,
        or the network is a train of order one, which HOTTBOX does not have.
    ModeError
        HOTTBOX would change the name of a physical mode.
    TopologyError
        The network has none of these formats, or not the one that is asked for.
    """
    x = as_network(x, "to_hottbox")
    if kind is not None and kind not in _KINDS:
        raise NetworkError(f"kind must be one of {', '.join(_KINDS)} or None; {kind!r} came.")
    if not _arrays.is_on_host(x._some_array):
        raise NetworkError(
            f"HOTTBOX knows arrays of NumPy only; those of the network are of "
            f"{_arrays.library(x.namespace)}. Say tnsum.interop.to_library(x, 'numpy') first."
        )
    core = imported("hottbox.core", "to_hottbox")
    names = [_hottbox_name(k, name) for k, name in enumerate(x.physical_modes)]
    name, x = recognised(x, _KINDS if kind is None else [kind], "to_hottbox")
    arrays = list(x.arrays.values())
    if name == "tucker":
        return core.TensorTKD(fmat=arrays[1:], core_values=arrays[0], mode_names=names)
    if name == "cp":
        # Real ones of complex factors too: HOTTBOX makes a real core of them.
        ones = np.ones(x.ranks["r"], dtype=_arrays.real_dtype(x.namespace, x.dtype))
        return core.TensorCPD(fmat=arrays, core_values=ones, mode_names=names)
    if x.order < 2:
        raise NetworkError(
            "A TensorTT of HOTTBOX must be of order 2 at least; a network of order 1 came. Hand over "
            "the vector x.contract() itself."
        )
    return core.TensorTT(core_values=arrays, mode_names=names)


def _with_names(x: Network, names: Sequence[str]) -> Network:
    """The network with HOTTBOX's names of physical modes, other than its defaults."""
    if len(names) != x.order:
        raise ModeError(
            f"A tensor of HOTTBOX must have one name per mode; one of order {x.order} came with names "
            f"{names}. Make it anew with mode_names that are as many."
        )
    physical = [f"i{k}" if name == f"mode-{k}" else name for k, name in enumerate(names)]
    repeated = [name for name, count in Counter(physical).items() if count > 1]
    if repeated:
        raise ModeError(
            f"Every mode needs a name of its own; HOTTBOX's names {names} make two modes "
            f"{repeated[0]!r}. Rename one with tensor.set_mode_names."
        )
    new = dict(zip(x.physical_modes, physical, strict=True))
    for mode in x.topology.contraction_modes:
        new[mode] = mode
        while new[mode] in physical:
            new[mode] += "_"
    return x.rename(modes=new)


def _hottbox_name(position: int, name: str) -> str:
    """The name of a physical mode in HOTTBOX, which `_with_names` turns back into it."""
    default = f"mode-{position}"
    if name == f"i{position}":
        return default
    if name == default or name != name.strip().replace("_", "-"):
        raise ModeError(
            f"HOTTBOX would change the name {name!r} of a physical mode: it writes '-' for '_', strips "
            f"blanks, and {default!r} is its default for the mode at position {position}. Choose "
            f"another with x.rename."
        )
    return name
