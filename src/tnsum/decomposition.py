"""decompose, decompose_stack: dense arrays as networks of any tree format.

All formats are trees, and one algorithm serves them: see `_tree_bases` for it, and for why dropping at
most tolerance / sqrt(number of contraction modes) on each keeps the relative error of the whole below
the tolerance. What one mode leaves of its share goes to those after it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tnsum import _arrays
from tnsum._checks import MOST_AXES, checked_tolerance
from tnsum._leading import by_gram, by_svd
from tnsum._scale import is_in_range, rescaled_each, unscaled
from tnsum._tree_bases import Tree, decomposed, tree_of
from tnsum._typing import Array, Namespace
from tnsum.contraction import piece_size
from tnsum.errors import ModeError, NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.topology import Topology, listed

Ranks: TypeAlias = int | Sequence[int] | Mapping[str, int]

METHODS = "hosvd", "sequential", "hooi"
# Rounding makes a relative error below this many times machine precision, times the root of the number
# of nodes; and it, with that of norms and singular values, spoils less than this part of a tolerance.
_ROUNDING, _SPARE = 16.0, 64.0
# Gram matrices are taken where a mode may drop so many times machine precision, squared norms compared.
_GRAM = 1e4
# The working arrays of a piece are several, and used again at once: small, but enough samples in them.
_PART_OF_A_PIECE = 4
# Squares of numbers with a log2 up to this are in the range of single precision.
_NEAR = 20.0


def decompose(
    array: Array,
    format: str | Topology,
    ranks: Ranks | None = None,
    tolerance: float | None = None,
    method: str = "hosvd",
) -> Network:
    """The network of a format that is near a dense array.

    Parameters
    ----------
    array : array
        Real or complex, of any order.
    format : {"tucker", "tensor_train", "tree"} or Topology
        "tree" is a balanced binary tree (hierarchical Tucker). Nodes and modes have the names that
        `tnsum.tucker`, `tnsum.tensor_train` and `tnsum.tree` give. Any other tree comes as a Topology
        whose physical modes, in their order, are the array's axes.
    ranks : int, Sequence[int] or Mapping[str, int], optional
        One for all contraction modes, lowered where the sizes allow only less; one for each of them, in
        the order of `Topology.contraction_modes` (that of the axes in "tucker" and "tensor_train"); or
        those of some, by name.
    tolerance : float, optional
        The largest relative error, in the Frobenius norm. With ranks as well, these count more. With
        neither, nothing is lost but rounding.
    method : {"hosvd", "sequential", "hooi"}
        From what a node is found: "hosvd" from the array in which nothing but the branch below the
        node is truncated, "sequential" from what all nodes before it have left (ST-HOSVD). "hooi"
        improves in turns what "hosvd" found, until the squared error falls by less than a millionth of
        it or for 50 sweeps; all nodes must be joined to one, as in "tucker". For a tensor train the
        first two are the same: TT-SVD.

    Notes
    -----
    All nodes but one (Tucker's core, a train's last node, a tree's root) have orthonormal columns along
    the mode towards it. In each column the first of the entries whose modulus is within a thousandth of
    the largest is positive, so that results do not depend on the library.

    The error is at most sqrt(number of contraction modes) times the least that is possible with the
    same ranks; no method promises the least. Tolerances above sqrt(number of contraction modes) times
    1.5e-6 (0.035 in single precision) are reached by way of Gram matrices, which is several times as
    fast; all else goes by singular value decompositions.

    Raises
    ------
    NetworkError
        `array` is no array, is empty, has no axis or too many, its entries are not finite or their norm
        is out of range; the format or the method is unknown, or the method does not suit the topology;
        the tolerance is not in 0 ... 1, or smaller than the dtype can hold.
    ModeError
        A rank is not a positive integer, or larger than the sizes allow; there is not one for each
        mode, or a mode is unknown; a topology has not one physical mode for each axis.
    TopologyError
        The topology is not a tree.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.add.outer(np.arange(4.0), np.add.outer(np.arange(5.0), np.arange(6.0)))
    >>> decompose(x, "tucker", tolerance=1e-6)
    Network of order 3, shape (4, 5, 6), float64, 38 parameters
      core: r0=2, r1=2, r2=2
      factor0: i0=4, r0=2
      factor1: i1=5, r1=2
      factor2: i2=6, r2=2
    >>> bool(np.allclose(decompose(x, "tensor_train", ranks=(2, 2)).contract(), x))
    True
    """
    xp = _checked_array("array", array, 0)
    tree = tree_of(format, array.ndim)
    _check_method(method, tree)
    precision = float(xp.finfo(_arrays.real_dtype(xp, array.dtype)).eps)
    rounding = _ROUNDING * math.sqrt(len(tree.nodes)) * precision
    allowed = checked_tolerance(tolerance, 2 * rounding, array.dtype) or 2 * rounding
    wanted = _checked_ranks(ranks, tree.topology)
    most = _largest_ranks(tree, array.shape, wanted, _are_many(ranks))
    fixed = wanted if tolerance is None else {}
    x, exponents, norms = _scaled(xp, "array", array[None, ...], 0)
    droppable = (allowed - max(rounding, allowed / _SPARE)) * float(_arrays.on_host(norms)[0])
    budget = _Budget(droppable**2, len(most) - len(fixed))
    kernel = by_gram if allowed**2 > _GRAM * precision * len(most) else by_svd

    def find(matrices: Array, mode: str, rank: int | None) -> Array:
        if rank is None and mode not in fixed:
            return kernel(xp, matrices, lambda values: budget.rank(values, most[mode]))
        return kernel(xp, matrices, rank or most[mode])

    arrays = decomposed(xp, tree, x, find, method)
    arrays = {name: a[0, ...] for name, a in _unscaled(xp, arrays, exponents).items()}
    return Network.from_topology(tree.topology, arrays)


def decompose_stack(
    samples: Array, format: str | Topology, ranks: Ranks | None = None, method: str = "hosvd"
) -> NetworkStack:
    """The networks of a format that are near many dense arrays of one shape, as a stack.

    The same as `decompose` of each sample, all at once, without a loop over samples. Since all get equal
    ranks, there is no tolerance.

    Parameters
    ----------
    samples : array of shape (number of samples, ...)
    format, method
        As of `decompose`.
    ranks : int, Sequence[int] or Mapping[str, int], optional
        As of `decompose`; a mode without one gets the largest that the sizes allow.

    Notes
    -----
    Everything goes by way of Gram matrices, which for small samples is 1.5 times as fast as by singular
    value decompositions. Directions whose singular values are below the root of machine precision times
    the largest (1e-8 in double, 3e-4 in single precision) are noise; the error of a sample grows by
    about that at most. Samples of lower rank, zero ones included, have factors with orthonormal columns
    as well; those beyond their rank are arbitrary.

    Samples are worked on in pieces: memory is needed for twice the result, and little more.

    Raises
    ------
    NetworkError, ModeError, TopologyError
        As of `decompose`; also if there is no sample.

    Examples
    --------
    >>> import numpy as np
    >>> samples = np.random.default_rng(0).standard_normal((100, 8, 8, 3))
    >>> stack = decompose_stack(samples, "tucker", ranks=(2, 2, 2))
    >>> len(stack), stack[0].shape, dict(stack.ranks)
    (100, (8, 8, 3), {'r0': 2, 'r1': 2, 'r2': 2})
    """
    xp = _checked_array("samples", samples, 1)
    n, *shape = samples.shape
    tree = tree_of(format, len(shape))
    _check_method(method, tree)
    wanted = _checked_ranks(ranks, tree.topology)
    rank_of = _largest_ranks(tree, shape, wanted, _are_many(ranks))

    def find(matrices: Array, mode: str, _: int | None) -> Array:
        return by_gram(xp, matrices, rank_of[mode])

    step = max(1, piece_size(samples) // (_PART_OF_A_PIECE * math.prod(shape)))
    found = []
    for start in range(0, n, step):
        some = samples[start : min(start + step, n), ...]
        x, exponents, _ = _scaled(xp, "sample {}", some, start)
        found.append(_unscaled(xp, decomposed(xp, tree, x, find, method), exponents))
    arrays = {name: xp.concat([one[name] for one in found], axis=0) for name in found[0]}
    return NetworkStack(tree.topology, arrays)


class _Budget:
    """The squared norm that may still be dropped, shared equally by the modes that are to come."""

    def __init__(self, square: float, n_modes: int) -> None:
        self._left, self._n_modes = square, n_modes

    def rank(self, values: np.ndarray[Any, Any], most: int) -> int:
        """How many of its singular values the next mode keeps: at least one."""
        dropped = np.cumsum(values[::-1] ** 2)
        n_dropped = int(np.searchsorted(dropped, self._left / self._n_modes, side="right"))
        rank = max(1, min(len(values) - n_dropped, most))
        self._left = max(0.0, self._left - float(np.sum(values[rank:] ** 2)))
        self._n_modes -= 1
        return rank


# what came


def _checked_array(what: str, array: Array, n_leading: int) -> Namespace:
    xp = _arrays.common_namespace({what: array})
    _arrays.check_values("decompose" if n_leading == 0 else "decompose_stack", [array])
    _arrays.check_dtype(what, array)
    shape = tuple(array.shape)
    if len(shape) < n_leading:
        raise NetworkError(f"The first axis of {what} must count them; an array without axes came.")
    if len(shape) > MOST_AXES:
        raise NetworkError(
            f"{what} must have at most {MOST_AXES} axes; {len(shape)} came. Leave out axes of size one."
        )
    if 0 in shape:
        raise NetworkError(f"{what} must not be empty; shape {shape} came.")
    return xp


def _check_method(method: str, tree: Tree) -> None:
    if method not in METHODS:
        raise NetworkError(f"method must be one of {listed(METHODS)}; {method!r} came.")
    if method == "hooi" and not tree.is_star:
        raise NetworkError(
            f"Method 'hooi' needs nodes that are all joined to one, as those of 'tucker' are; nodes "
            f"{listed(tuple(tree.topology.nodes))} came, which are not. Take 'hosvd' or 'sequential'."
        )


def _scaled(xp: Namespace, name: str, x: Array, start: int) -> tuple[Array, Array, Array]:
    """Samples with entries near one, the powers of two taken out of them, and their norms then.

    `name` is what an error calls a sample, given its number, which is counted from `start`.
    """
    flat = xp.reshape(x, (x.shape[0], -1))
    if is_in_range(flat, _NEAR):
        # One look at each number, not five.
        norms = np.sqrt(np.vecdot(flat, flat).real)
        return x, np.zeros_like(norms), norms
    bad = _first(xp, ~xp.all(xp.isfinite(flat), axis=1))
    if bad is not None:
        raise NetworkError(
            f"The entries of {name.format(start + bad)} must be finite; some are not."
        )
    flat, exponents = rescaled_each(xp, flat, 0, _NEAR)
    norms = xp.linalg.vector_norm(flat, axis=1)
    # Multiplied back, the norm might overflow: both sides are made smaller first.
    largest = float(xp.finfo(norms.dtype).max)
    bad = _first(xp, unscaled(xp, norms, exponents - 64.0) > largest * 2.0**-64)
    if bad is not None:
        raise NetworkError(
            f"The norm of {name.format(start + bad)} must be a number of dtype "
            f"{_arrays.dtype_name(norms.dtype)}, at most {largest:.1e}; it is larger. Scale it first."
        )
    return xp.reshape(flat, x.shape), exponents, norms


def _first(xp: Namespace, holds: Array) -> int | None:
    """The number of the first sample for which something holds."""
    if not bool(xp.any(holds)):
        return None
    return int(xp.argmax(_arrays.astype(xp, holds, _arrays.index_dtype(xp))))


def _unscaled(xp: Namespace, arrays: dict[str, Array], exponents: Array) -> dict[str, Array]:
    """The arrays with powers of two multiplied back to the last of them, the root's."""
    *_, root = arrays
    shape = (-1, *(1,) * (arrays[root].ndim - 1))
    return {**arrays, root: unscaled(xp, arrays[root], xp.reshape(exponents, shape))}


def _checked_ranks(ranks: Any, topology: Topology) -> dict[str, int]:
    """The ranks that came, by mode."""
    modes = topology.contraction_modes
    if ranks is None:
        return {}
    if isinstance(ranks, Mapping):
        wanted = dict(ranks)
    elif _are_many(ranks):
        if len(ranks) != len(modes):
            raise ModeError(
                f"ranks must be one for each contraction mode of {listed(modes)}; {len(ranks)} came."
            )
        wanted = dict(zip(modes, ranks, strict=True))
    else:
        wanted = dict.fromkeys(modes, ranks)
    for mode, rank in wanted.items():
        if mode not in modes:
            raise ModeError(f"ranks must name contraction modes of {listed(modes)}; {mode!r} came.")
        is_integer = isinstance(rank, numbers.Integral) and not isinstance(rank, bool)
        if not is_integer or rank < 1:
            raise ModeError(f"A rank must be a positive integer; {rank!r} came.")
    return {mode: int(rank) for mode, rank in wanted.items()}


def _are_many(ranks: Any) -> bool:
    return isinstance(ranks, Sequence | Mapping) and not isinstance(ranks, str)


def _largest_ranks(
    tree: Tree, shape: Sequence[int], wanted: Mapping[str, int], are_strict: bool
) -> dict[str, int]:
    """The largest rank of each mode: the one wanted, and else the largest that the sizes allow.

    That is the number of rows or of columns of the matrix whose singular vectors are taken.
    """
    sizes = dict(zip(tree.topology.physical_modes, shape, strict=True))
    ranks: dict[str, int] = {}
    n_inside: dict[str, int] = {}
    for node in tree.nodes[:-1]:
        up = str(node.up)
        n_inside[up] = math.prod(sizes.get(mode) or n_inside[mode] for mode in node.rows)
        n_rows = math.prod(sizes.get(mode) or ranks[mode] for mode in node.rows)
        n_columns = math.prod(shape) // n_inside[up]
        limit = min(n_rows, n_columns)
        rank = wanted.get(up, limit)
        if rank > limit and are_strict:
            raise ModeError(
                f"The rank of mode {up!r} must be at most {limit}: it lies between {n_rows} indices on "
                f"one side and {n_columns} on the other; {rank} came. A single number for all modes is "
                f"lowered to what the sizes allow."
            )
        ranks[up] = min(rank, limit)
    return ranks
