"""The formats people know, each returned as a Network with names that are stable.

Physical modes are named `i0`, `i1`, ... in every format (operators have `j0`, `j1`, ... besides), so
two networks from one builder add by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tnsum import _arrays
from tnsum._typing import Array
from tnsum._weights import checked_weight_array
from tnsum.errors import NetworkError
from tnsum.network import Network


def chain(matrices: Sequence[Array]) -> Network:
    """The network of a product of matrices (the paper's Proposition 1).

    Nodes `matrix0`, `matrix1`, ...; physical modes `i0` (rows) and `i1` (columns); contraction modes
    `r0`, `r1`, ... between neighbours.

    Raises
    ------
    NetworkError
        No matrix came, or one is not an array with two axes.
    ModeError
        Neighbours do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> chain([np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))])
    Network of order 2, shape (2, 5), float64, 38 parameters
      matrix0: i0=2, r0=3
      matrix1: r0=3, r1=4
      matrix2: r1=4, i1=5
    """
    matrices = _checked("chain", matrices)
    last = len(matrices) - 1
    nodes = {}
    for k, matrix in enumerate(matrices):
        _check_axes(f"Matrix {k} of a chain", matrix, (2,))
        left, right = "i0" if k == 0 else f"r{k - 1}", "i1" if k == last else f"r{k}"
        nodes[f"matrix{k}"] = (matrix, (left, right))
    return Network(nodes, ("i0", "i1"))


def tucker(core: Array, factors: Sequence[Array]) -> Network:
    """The star of a core and one factor matrix per mode (the paper's Proposition 2).

    Nodes `core` and `factor0`, ...; factor n has physical mode `i{n}` and contraction mode `r{n}`.

    Parameters
    ----------
    core : array of shape (rank 0, rank 1, ...)
    factors : sequence of arrays of shape (size n, rank n)

    Raises
    ------
    NetworkError
        The core has not one axis per factor, or a factor has not two axes.
    ModeError
        A factor does not fit to the core.
    """
    factors = _checked("Tucker network", factors)
    _check_axes(f"The core of a Tucker network with {len(factors)} factors", core, (len(factors),))
    nodes = {"core": (core, tuple(f"r{n}" for n in range(len(factors))))}
    for n, factor in enumerate(factors):
        _check_axes(f"Factor {n} of a Tucker network", factor, (2,))
        nodes[f"factor{n}"] = (factor, (f"i{n}", f"r{n}"))
    return Network(nodes, _numbered("i", len(factors)))


def cp(factors: Sequence[Array], weights: Array | None = None) -> Network:
    """The CP (canonical polyadic) network: factor matrices that share one mode of all of them.

    Nodes `factor0`, ...; physical modes `i0`, ...; one contraction mode `r`, held by every factor.
    Weights of the components are multiplied into the first factor, so that every CP network of an
    order has the same topology.

    Raises
    ------
    NetworkError
        A factor has not two axes, or there is not one weight per component.
    ModeError
        Factors differ in their number of columns.
    """
    factors = list(_checked("CP network", factors))
    for n, factor in enumerate(factors):
        _check_axes(f"Factor {n} of a CP network", factor, (2,))
    if weights is not None:
        _arrays.common_namespace({"factor 0": factors[0], "weights": weights})
        if tuple(weights.shape) != (factors[0].shape[1],):
            raise NetworkError(
                f"There must be one weight per component: factor 0 has {factors[0].shape[1]} "
                f"columns, weights of shape {tuple(weights.shape)} came."
            )
        factors[0] = factors[0] * _in_precision_of(weights, factors[0])
    nodes = {f"factor{n}": (factor, (f"i{n}", "r")) for n, factor in enumerate(factors)}
    return Network(nodes, _numbered("i", len(factors)))


def tensor_train(cores: Sequence[Array]) -> Network:
    """The tensor train (matrix product state), or the operator, of a list of cores.

    Nodes `node0`, ...; physical modes `i0`, ...; contraction modes `r0`, ... between neighbours. Of an
    operator the physical modes are `i0`, `i1`, ..., then `j0`, `j1`, ...: the matrix is
    `x.contract().reshape(rows, columns)`.

    Parameters
    ----------
    cores : sequence of arrays of shape (rank, size, rank) or, for operators, (rank, size, size, rank)
        The boundary ranks of the first and last core must be 1 and are dropped; these two cores may
        also come without them (an operator of fewer than three cores may not: it would read as a
        train of vectors).

    Raises
    ------
    NetworkError
        A core has another number of axes, or a boundary rank is not 1.
    ModeError
        Neighbours do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> tensor_train([np.ones((1, 2, 3)), np.ones((3, 4, 1))])
    Network of order 2, shape (2, 4), float64, 18 parameters
      node0: i0=2, r0=3
      node1: r0=3, i1=4
    """
    cores = list(_checked("tensor train", cores))
    last = len(cores) - 1
    n_physical = _axes_between(cores)
    for k in {0, last}:
        cores[k] = _without_boundary(cores[k], k, last, n_physical)
    nodes = {}
    for k, core in enumerate(cores):
        modes = [f"r{k - 1}"] * (k > 0) + _own_modes(k, n_physical) + [f"r{k}"] * (k < last)
        _check_axes(f"Core {k} of a tensor train", core, (len(modes),))
        nodes[f"node{k}"] = (core, tuple(modes))
    return Network(nodes, _operator_modes(len(cores), n_physical))


def tensor_ring(cores: Sequence[Array]) -> Network:
    """The tensor ring of a list of cores, or of four-axis cores the ring of an operator.

    Nodes `node0`, ...; physical modes `i0`, ... (and `j0`, ...); contraction mode `r{k}` on the left of
    core k, so that `r0` closes the ring.

    Parameters
    ----------
    cores : sequence of arrays of shape (rank, size, rank) or (rank, size, size, rank)

    Raises
    ------
    NetworkError
        A core has another number of axes.
    ModeError
        Neighbours, the last and the first included, do not fit.
    """
    cores = _checked("tensor ring", cores)
    n_physical = 2 if getattr(cores[0], "ndim", 0) == 4 else 1
    nodes = {}
    for k, core in enumerate(cores):
        _check_axes(f"Core {k} of a tensor ring", core, (2 + n_physical,))
        right = f"r{(k + 1) % len(cores)}"
        nodes[f"node{k}"] = (core, (f"r{k}", *_own_modes(k, n_physical), right))
    return Network(nodes, _operator_modes(len(cores), n_physical))


def tree(root: Any) -> Network:
    """The tree network (hierarchical Tucker) of nested nodes.

    A leaf is a factor matrix of shape (size, rank). An inner node is a pair (array, children): the
    array has one axis per child, in order, and then its own rank; the root's array has no last axis.
    Leaves are `leaf0`, `leaf1`, ... with physical modes `i0`, `i1`, ... from left to right, inner nodes
    `inner0` (the root), `inner1`, ... in the order in which they open; contraction mode `r_leaf0` joins
    `leaf0` to what is above it, and so on. For physical modes elsewhere use Network.

    Raises
    ------
    NetworkError
        A node is not of that form.
    ModeError
        Sizes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> leaf = np.ones((2, 3))
    >>> pair = (np.ones((3, 3, 4)), [leaf, leaf])
    >>> tree((np.ones((4, 4)), [pair, pair])).shape
    (2, 2, 2, 2)
    """
    counts = {"leaf": 0, "inner": 0}
    arrays: dict[str, Array] = {}
    held: dict[str, list[str]] = {}
    # Nodes still to be opened, each with its parent's name; the next one is the last.
    waiting: list[tuple[Any, str | None]] = [(root, None)]
    while waiting:
        node, parent = waiting.pop()
        kind = "inner" if isinstance(node, tuple | list) else "leaf"
        name = f"{kind}{counts[kind]}"
        held[name] = [f"i{counts[kind]}"] if kind == "leaf" else []
        counts[kind] += 1
        if parent is not None:
            held[parent].append(f"r_{name}")
        if kind == "leaf":
            arrays[name] = node
            continue
        if len(node) != 2 or not isinstance(node[1], list | tuple) or not node[1]:
            raise NetworkError(
                f"An inner node of a tree must be a pair (array, list of children); {name} is "
                f"{type(node).__name__} of length {len(node)}."
            )
        arrays[name], children = node
        waiting += [(child, name) for child in reversed(children)]
    top = next(iter(held))
    for name, modes in held.items():
        below = f", with {len(modes)} children," if name.startswith("inner") else ""
        modes += [] if name == top else [f"r_{name}"]
        _check_axes(f"{name.capitalize()} of a tree{below}", arrays[name], (len(modes),))
    nodes = {name: (arrays[name], tuple(modes)) for name, modes in held.items()}
    return Network(nodes, _numbered("i", counts["leaf"]))


def grid(arrays: Sequence[Sequence[Array]]) -> Network:
    """The grid (PEPS) of a list of rows of arrays.

    Each array has the axes up (towards the row before), right, down (towards the next row), left,
    those beyond the border left out, and then its physical ones: none, one, or two of an operator.
    Nodes `node0_0`, `node0_1`, ...; the physical modes `i0`, `i1`, ... (and `j0`, ...) count the arrays
    row by row; `v0_0` joins `node0_0` to the one below it, `h0_0` to the one on its right.

    Raises
    ------
    NetworkError
        Rows differ in length, or an array has a wrong number of axes.
    ModeError
        Neighbours do not fit.
    """
    rows = [list(_checked("row of a grid", row)) for row in _checked("grid", arrays)]
    width = len(rows[0])
    if width == 0 or any(len(row) != width for row in rows):
        lengths = [len(row) for row in rows]
        raise NetworkError(f"The rows of a grid must have one length, at least 1; {lengths} came.")
    nodes = {}
    physical: tuple[list[str], list[str]] = [], []
    for a, row in enumerate(rows):
        for b, array in enumerate(row):
            modes = [f"v{a - 1}_{b}"] * (a > 0) + [f"h{a}_{b}"] * (b < width - 1)
            modes += [f"v{a}_{b}"] * (a < len(rows) - 1) + [f"h{a}_{b - 1}"] * (b > 0)
            n = len(modes)
            _check_axes(f"Array {a}, {b} of a grid", array, (n, n + 1, n + 2))
            own = _own_modes(a * width + b, array.ndim - n)
            for names, mode in zip(physical, own, strict=False):
                names.append(mode)
            nodes[f"node{a}_{b}"] = (array, (*modes, *own))
    return Network(nodes, (*physical[0], *physical[1]))


def _checked(what: str, arrays: Any) -> Sequence[Any]:
    try:
        items = list(arrays)
    except TypeError:
        raise NetworkError(
            f"A {what} is made of a list of arrays; {type(arrays).__name__} came."
        ) from None
    if not items:
        raise NetworkError(f"A {what} must have at least one array; none came.")
    return items


def _check_axes(what: str, array: Any, allowed: tuple[int, ...]) -> None:
    if not _arrays.is_array(array):
        raise NetworkError(f"{what} must be an array; {type(array).__name__} came.")
    if array.ndim not in allowed:
        raise NetworkError(
            f"{what} must have {' or '.join(map(str, allowed))} axes; shape {tuple(array.shape)} came."
        )


def _in_precision_of(weights: Array, factor: Array) -> Array:
    """Weights of any kind, real or complex, in the precision of a factor."""
    xp = _arrays.namespace(factor)
    real = _arrays.real_dtype(xp, factor.dtype)
    checked = checked_weight_array(weights, weights.shape[0], factor)
    dtype = _arrays.result_dtype(xp, [real], _arrays.is_complex(checked.dtype))
    return _arrays.astype(xp, checked, dtype)


def _numbered(letter: str, n: int) -> tuple[str, ...]:
    return tuple(f"{letter}{k}" for k in range(n))


def _own_modes(k: int, n_physical: int) -> list[str]:
    return [f"i{k}", f"j{k}"][:n_physical]


def _operator_modes(n: int, n_physical: int) -> tuple[str, ...]:
    return _numbered("i", n) + (_numbered("j", n) if n_physical == 2 else ())


def _axes_between(cores: Sequence[Any]) -> int:
    """The physical modes per core of a train: two if cores have four axes (three at the ends)."""
    middle = cores[1:-1] or cores
    inner = max(getattr(core, "ndim", 0) for core in middle)
    return 2 if inner == 4 else 1


def _without_boundary(core: Any, k: int, last: int, n_physical: int) -> Any:
    """The first or last core without the boundary axes of rank 1, if it has them."""
    _check_axes(f"Core {k} of a tensor train", core, tuple(range(n_physical, n_physical + 3)))
    if core.ndim == n_physical + (k > 0) + (k < last):
        return core
    _check_axes(f"Core {k} of a tensor train", core, (n_physical + 2,))
    ends = [0] * (k == 0) + [core.ndim - 1] * (k == last)
    for axis in ends:
        if core.shape[axis] != 1:
            raise NetworkError(
                f"The boundary ranks of a tensor train must be 1: core {k} has shape "
                f"{tuple(core.shape)}. A train whose ends are joined is a tensor_ring."
            )
    kept = tuple(n for axis, n in enumerate(core.shape) if axis not in ends)
    return _arrays.namespace(core).reshape(core, kept)
