"""Networks from and to TensorLy, which has a class for each of five formats.

Both libraries hold a tensor of such a format in the same arrays. Only the boundary ranks of a train,
axes of size one, are TensorLy's alone, and the weights of a CP tensor, which tnsum multiplies into the
first factor.
"""

from __future__ import annotations

from typing import Any

from tnsum import _arrays
from tnsum.errors import NetworkError
from tnsum.formats import cp, tensor_ring, tensor_train, tucker
from tnsum.interop._imports import imported
from tnsum.interop._recognition import as_network, recognised
from tnsum.network import Network

# In order of preference, which decides between two formats of a product of two matrices.
_KINDS = "tucker", "cp", "tensor_train", "operator_train", "tensor_ring"


def from_tensorly(tensor: Any) -> Network:
    """The network of a TuckerTensor, CPTensor, TTTensor, TTMatrix or TRTensor of TensorLy.

    Nodes and modes have the names that `tnsum.tucker`, `tnsum.cp`, `tnsum.tensor_train` and
    `tnsum.tensor_ring` give; the physical modes of a TTMatrix are `i0`, `i1`, ..., then `j0`, `j1`, ...

    Notes
    -----
    Arrays of any backend are taken as they are, without a copy; those at the ends of a train as views
    without the boundary ranks. Weights of a CP tensor are multiplied into its first factor, unless
    they are all one, and are not kept apart.

    Raises
    ------
    NetworkError
        Something else came, or its arrays are not such as Network takes.
    ModeError
        Arrays do not fit together, having been replaced since TensorLy checked them.
    """
    classes = _classes("from_tensorly")
    if isinstance(tensor, classes["tucker"]):
        return tucker(tensor.core, tensor.factors)
    if isinstance(tensor, classes["cp"]):
        weights = tensor.weights
        return cp(tensor.factors, None if _are_ones(weights, tensor.rank) else weights)
    if isinstance(tensor, (classes["tensor_train"], classes["operator_train"])):
        return tensor_train(tensor.factors)
    if isinstance(tensor, classes["tensor_ring"]):
        return tensor_ring(tensor.factors)
    raise NetworkError(
        f"from_tensorly takes a TuckerTensor, CPTensor, TTTensor, TTMatrix or TRTensor of TensorLy; "
        f"{type(tensor).__name__} came. Say what plain arrays are by TuckerTensor((core, factors)), "
        f"CPTensor((weights, factors)), TTTensor(factors), TTMatrix(factors) or TRTensor(factors)."
    )


def to_tensorly(x: Network, kind: str | None = None) -> Any:
    """The TuckerTensor, CPTensor, TTTensor, TTMatrix or TRTensor of TensorLy for a network.

    Parameters
    ----------
    x : Network
        A Tucker or CP network, a tensor train, a train of operators or a tensor ring (see
        `tnsum.formats`), whatever its names, with physical modes in the order of its nodes.
    kind : {"tucker", "cp", "tensor_train", "operator_train", "tensor_ring"}, optional
        The format. Without it, that of the builder whose names the network has, or else the first of
        these that it has. Only a product of two matrices has two of them: under other names it
        becomes a CPTensor unless `kind` is "tensor_train".

    Notes
    -----
    No data are copied: boundary ranks are added, and axes are brought to TensorLy's order, as views.
    The weights of a CPTensor are ones. Not kept: names of nodes and modes.

    Raises
    ------
    NetworkError
        Something else than a Network came, the kind is not one of these, the network is a Tucker
        network or a ring of order one, which TensorLy does not have, or its backend is for the arrays
        of another library.
    TopologyError
        The network has none of these formats, or not the one that is asked for.
    """
    x = as_network(x, "to_tensorly")
    if kind is not None and kind not in _KINDS:
        raise NetworkError(f"kind must be one of {', '.join(_KINDS)} or None; {kind!r} came.")
    name, x = recognised(x, _KINDS if kind is None else [kind], "to_tensorly")
    made = _classes("to_tensorly")[name]
    if name in ("tucker", "tensor_ring") and x.order < 2:
        raise NetworkError(
            f"A {made.__name__} of TensorLy must be of order 2 at least; a network of order 1 came. "
            f"Hand over the vector x.contract() itself."
        )
    try:
        return made(_parts(x, name))
    except (AttributeError, TypeError) as error:
        raise NetworkError(
            f"The backend of TensorLy must be that of the arrays, which are of "
            f"{_arrays.library(x.namespace)} ({error}). Say tensorly.set_backend first."
        ) from error


def _parts(x: Network, name: str) -> Any:
    """The arrays of a network as the class of a format takes them."""
    arrays = list(x.arrays.values())
    if name == "tucker":
        return arrays[0], arrays[1:]
    if name == "cp":
        return x.namespace.ones(x.ranks["r"], dtype=x.dtype, device=x.device), arrays
    if name != "tensor_ring":
        arrays[0] = arrays[0][None, ...]
        arrays[-1] = arrays[-1][..., None]
    return arrays


def _classes(function: str) -> dict[str, Any]:
    """The class that TensorLy has for each format."""
    places = {
        "tucker": ("tucker_tensor", "TuckerTensor"),
        "cp": ("cp_tensor", "CPTensor"),
        "tensor_train": ("tt_tensor", "TTTensor"),
        "operator_train": ("tt_matrix", "TTMatrix"),
        "tensor_ring": ("tr_tensor", "TRTensor"),
    }
    return {
        name: getattr(imported(f"tensorly.{module}", function), class_name)
        for name, (module, class_name) in places.items()
    }


def _are_ones(weights: Any, rank: int) -> bool:
    """Whether weights may be left out: there are none, or all are one and carry no gradient."""
    if weights is None:
        return True
    if not _arrays.is_array(weights) or tuple(weights.shape) != (rank,):
        return False
    if _arrays.is_traced(weights) or getattr(weights, "requires_grad", False):
        return False
    return bool(_arrays.namespace(weights).all(weights == 1))
