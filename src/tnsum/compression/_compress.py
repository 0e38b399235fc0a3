"""compress: one way in, for every tree.

The sum is brought into orthonormal bases of its branches, by QR (`_bases`) or by sketching
(`_sketch`), and truncated there (`_truncation`). On a tree with E contraction modes, dropping at most
tolerance / sqrt(E) on each keeps the whole relative error below the tolerance.

Rounding is part of the error. The sum of networks X_m with weights w_m is known to about machine
precision times the sum of |w_m| |X_m|, however small the sum itself is: singular values below that are
noise, and the reported error includes it. Where the error is an estimate, so is this: the rounding
errors of different summands are taken to be independent, and add up in quadrature.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tnsum import _arrays
from tnsum._progress import Step, shown
from tnsum._scale import are_in_range, rescaled_together
from tnsum._typing import Array, Namespace
from tnsum.addition import as_sum
from tnsum.compression._bases import Orthogonal, direct_bases
from tnsum.compression._branches import Branch, Group, branches_of, group_of, node_array
from tnsum.compression._chains import Chain, chain_of, direct_chain, is_path, truncated_chain
from tnsum.compression._norms import log2_of_norms
from tnsum.compression._sketch import sketched_bases
from tnsum.compression._truncation import truncated
from tnsum.errors import ModeError, NetworkError, TopologyError
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import balanced
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed, listed_sizes

_METHODS = "auto", "direct", "sketch"
# Bases up to this size are cheaper to find by QR than by sketching.
_SMALL, _SMALL_OF_PATH = 64, 96
# Singular values below so many times the noise are noise.
_NOISE = 4.0
# The rounding error in units of the noise, times the root of the number of nodes: never, and hardly
# ever exceeded.
_ROUNDING = {"bound": 20.0, "estimate": 8.0}
# A rounding error so many times smaller than the tolerance need not be known better.
_UNSEEN = 1000.0
# How many times larger than its estimate what a sketch loses hardly ever is.
_LOSS = 4.0
# What is added to an error of which a part is estimated.
_MARGIN = 1.001


@dataclass(frozen=True)
class Compression:
    """A compressed network, and how far it is from what was compressed.

    Attributes
    ----------
    network : Network
    error : float
        Relative to the norm of what was compressed, rounding included.
    error_kind : str
        "bound": the error is not larger. "estimate": it hardly ever is.
    method : str
        "direct" or "sketch".
    """

    network: Network
    error: float
    error_kind: str
    method: str

    @property
    def ranks(self) -> Mapping[str, int]:
        """The rank of each contraction mode."""
        return self.network.ranks

    def __repr__(self) -> str:
        return (
            f"Compression to ranks {listed_sizes(self.ranks)}, error {self.error:.1e} "
            f"({self.error_kind}), {self.method}"
        )


def compress(
    x: Network | NetworkSum,
    tolerance: float | None = None,
    max_rank: int | Mapping[str, int] | None = None,
    method: str = "auto",
    seed: int = 0,
    progress: bool = False,
) -> Compression:
    """A network of small ranks near a sum, with its error.

    Parameters
    ----------
    x : Network or NetworkSum
        Its topology must be a tree: a chain of matrices, a tensor train, a Tucker network, a tree. A
        disconnected one, all of whose components are trees, is joined first, as in
        `NetworkSum.to_network`.
    tolerance : float, optional
        The largest relative error. Without it and `max_rank`, nothing is lost but rounding.
    max_rank : int or Mapping[str, int], optional
        The largest rank of every contraction mode, or of those named. It counts more than the
        tolerance: the error reached is in the result.
    method : {"auto", "direct", "sketch"}
        With "direct" the sum is orthogonalised as it is; the error is a bound. With "sketch" it is
        looked at through random test tensors, in time linear in the number of summands; the error is
        an estimate. "auto" takes the quicker one.
    seed : int
        Fixes the test tensors, and with them the result.
    progress : bool
        Whether to show how far the work is, on the standard error stream: with a bar on a terminal, with
        a few lines elsewhere.

    Notes
    -----
    `x` is left alone, and no block of zeros and no dense array is built. Terms that nearly cancel lose
    no more digits than they have: the error is relative to the sum, and includes its rounding. A sum
    that is zero up to rounding gives zero, of rank one, with error 1.

    Raises
    ------
    NetworkError
        `x` is something else; the tolerance is not in 0 ... 1 or smaller than the dtype can hold; the
        method is unknown; entries or weights are not finite.
    ModeError
        A rank is not a positive integer, or its mode is unknown.
    TopologyError
        The topology is not a tree.

    Warns
    -----
    RuntimeWarning
        Terms cancel so that rounding alone exceeds the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(3), np.diag([1.0, 2.0, 1e-6]))
    >>> c = compress(x + 2 * x, tolerance=1e-3)
    >>> c
    Compression to ranks r=2, error 4.5e-07 (bound), direct
    """
    s = as_sum(x)
    topology = s.topology.joined
    _check_tree(topology)
    xp = s.namespace
    precision = float(xp.finfo(_arrays.real_dtype(xp, s.dtype)).eps)
    tolerance = _checked_tolerance(tolerance, precision, s)
    tree = branches_of(topology)
    caps = _checked_ranks(max_rank, tree, topology)
    if method not in _METHODS:
        raise NetworkError(f"method must be one of {listed(_METHODS)}; {method!r} came.")
    groups, exponent = _groups(xp, s, topology, tree)
    title = f"Compressing {s.n_summands} summands"
    with shown(title, len(tree) + 1, progress) as step:
        found, kind = _reduced(xp, tree, groups, tolerance, caps, precision, method, seed, step)
        noise = precision * _alone(xp, tree, groups, found, kind, tolerance / precision)
        arrays, error = _truncated(xp, tree, found, tolerance, caps, noise, kind)
        step()
    if arrays is None:
        network = _zero(xp, s, topology)
    else:
        network = _network(xp, s, topology, tree, _scaled(arrays, found.exponent + exponent))
    return Compression(network, error, kind, "direct" if kind == "bound" else "sketch")


def sketched_length(s: NetworkSum) -> tuple[Array, float] | None:
    """The norm of a sum of trees and a power of two beside it, or None if its ranks are large."""
    xp, topology = s.namespace, s.topology.joined
    precision = float(xp.finfo(_arrays.real_dtype(xp, s.dtype)).eps)
    tree = branches_of(topology)
    groups, exponent = _groups(xp, s, topology, tree)
    most = min(_WIDEST, _largest_basis(tree, groups) // 2)
    found = sketched_bases(xp, tree, groups, 0.0, None, precision, 0, most)
    return None if found is None else (xp.linalg.vector_norm(found.core), exponent + found.exponent)


# The widest sketch that is quicker than the other ways to a norm.
_WIDEST = 200


def _reduced(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    tolerance: float,
    caps: Sequence[int | None],
    precision: float,
    method: str,
    seed: int,
    step: Step,
) -> tuple[Orthogonal | Chain, str]:
    """The sum in orthonormal bases of its branches, and what kind of error that allows."""
    sketched: Orthogonal | None = None
    size = _largest_basis(tree, groups)
    many = size > (_SMALL_OF_PATH if is_path(tree) else _SMALL)
    if len(tree) > 1 and (method == "sketch" or (method == "auto" and many)):
        enough = tolerance / (8 * math.sqrt(len(tree) - 1))
        cap = max(cap for cap in caps if cap) if all(caps) else None
        # A sketch that is nearly as wide as the sum is no gain.
        most = size // 2 if method == "auto" else None
        sketched = sketched_bases(xp, tree, groups, enough, cap, precision, seed, most, step)
    if sketched is not None:
        return (chain_of(xp, sketched) if is_path(tree) else sketched), "estimate"
    step()
    if is_path(tree):
        return direct_chain(xp, groups, step), "bound"
    return direct_bases(xp, tree, groups, step), "bound"


def _alone(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal | Chain,
    kind: str,
    digits: float,
) -> float:
    """The norms of all summands added, in the scale of what was found; in quadrature, for an estimate.

    `digits` is the tolerance in units of machine precision: what is far below it need not be exact.
    """
    size = float(xp.linalg.vector_norm(found.core))
    alone = found.alone
    if alone is None:
        unseen = size * digits / (_UNSEEN * _ROUNDING[kind] * math.sqrt(len(tree)))
        enough = (math.log2(unseen) if unseen else -math.inf) + found.exponent
        power = 1 if kind == "bound" else 2
        alone = 2.0 ** (log2_of_norms(xp, tree, groups, power, enough) - found.exponent)
    return max(alone, size)


def _truncated(
    xp: Namespace,
    tree: Sequence[Branch],
    found: Orthogonal | Chain,
    tolerance: float,
    caps: Sequence[int | None],
    noise: float,
    kind: str,
) -> tuple[list[Array] | None, float]:
    """The truncated arrays, or None if there is nothing but noise, and the relative error."""
    size = float(xp.linalg.vector_norm(found.core))
    rounding = _ROUNDING[kind] * math.sqrt(len(tree)) * noise
    if size <= rounding:
        return None, 1.0
    rounding /= size
    loss = _LOSS * found.lost
    margin = _MARGIN if loss else 1.0
    # What is dropped and lost is orthogonal; rounding is not, and adds up.
    left = max(0.0, tolerance - rounding) / margin
    budget = size * math.sqrt(max(0.0, left**2 - loss**2))
    if isinstance(found, Chain):
        arrays, dropped = truncated_chain(xp, found, budget, _NOISE * noise, caps)
    else:
        arrays, dropped = truncated(xp, tree, found, budget, _NOISE * noise, caps)
    if 0 < tolerance < rounding:
        warnings.warn(
            f"Rounding alone makes a relative error of about {rounding:.1e}, more than the tolerance "
            f"{tolerance:.1e}: the summands cancel, or are many. Compress them in a wider dtype.",
            RuntimeWarning,
            stacklevel=3,
        )
    return arrays, math.hypot(dropped / size, loss) * margin + rounding


# what came


def _check_tree(topology: Topology) -> None:
    if not topology.is_tree:
        raise TopologyError(
            f"compress needs a tree, in which each contraction mode joins two nodes and no two ways "
            f"lead from one node to another; a network with {len(topology.nodes)} nodes and "
            f"{len(topology.contraction_modes)} contraction modes that is none came."
        )


def _checked_tolerance(tolerance: Any, precision: float, s: NetworkSum) -> float:
    if tolerance is None:
        return 0.0
    if isinstance(tolerance, bool) or not isinstance(tolerance, numbers.Real):
        raise NetworkError(f"tolerance must be a number; {type(tolerance).__name__} came.")
    wanted = float(tolerance)
    if not 0 <= wanted < 1:
        raise NetworkError(f"tolerance must be at least 0 and less than 1; {tolerance} came.")
    if 0 < wanted < 4 * precision:
        raise NetworkError(
            f"tolerance must be at least {4 * precision:.1e}, which {_arrays.dtype_name(s.dtype)} can "
            f"hold; {tolerance} came. Use a wider dtype, or no tolerance: then nothing is lost but "
            f"rounding."
        )
    return wanted


def _checked_ranks(
    max_rank: int | Mapping[str, int] | None, tree: Sequence[Branch], topology: Topology
) -> list[int | None]:
    """The largest rank up of each branch."""
    modes = topology.contraction_modes
    ranks = max_rank if isinstance(max_rank, Mapping) else dict.fromkeys(modes, max_rank)
    for mode, rank in ranks.items():
        if mode not in modes:
            raise ModeError(
                f"max_rank must name contraction modes of {listed(modes)}; {mode!r} came."
            )
        is_integer = isinstance(rank, numbers.Integral) and not isinstance(rank, bool)
        if rank is not None and (not is_integer or rank < 1):
            raise ModeError(f"max_rank must be a positive integer; {rank!r} came.")
    return [ranks.get(str(branch.up)) for branch in tree[:-1]]


# the sum along the branches, and back


def _groups(
    xp: Namespace, s: NetworkSum, topology: Topology, tree: Sequence[Branch]
) -> tuple[list[Group], float]:
    """The summands in groups of equal ranks, and the power of two that was taken out of all."""
    pairs = s._grouped(s.dtype)
    exponent: Array = 0.0
    arrays = [array for stack, _ in pairs for array in stack.arrays.values()]
    if not are_in_range(arrays, _RANGE):
        _check_finite(xp, arrays)
        pairs, exponent = balanced(xp, pairs)
    _check_finite(xp, [weights for _, weights in pairs])
    all_weights, taken = rescaled_together(xp, [weights for _, weights in pairs])
    found = []
    for (stack, _), weights in zip(pairs, all_weights, strict=True):
        if topology is not s.topology:
            stack = _joined(xp, stack, topology)
        found.append(group_of(xp, tree, stack, weights))
    return found, float(exponent) + taken


# The powers of two that all nodes together may have without being balanced.
_RANGE = 60.0


def _check_finite(xp: Namespace, arrays: Sequence[Array]) -> None:
    if not all(bool(xp.all(xp.isfinite(array))) for array in arrays):
        raise NetworkError("The entries and weights of all summands must be finite; some are not.")


def _joined(xp: Namespace, stack: NetworkStack, topology: Topology) -> NetworkStack:
    """A stack with modes of rank one that join its components."""
    arrays = {}
    for name, array in stack.arrays.items():
        n_new = len(topology.nodes[name]) + 1 - array.ndim
        arrays[name] = xp.reshape(array, (*array.shape, *(1,) * n_new))
    return NetworkStack._unchecked(topology, arrays)


def _largest_basis(tree: Sequence[Branch], groups: Sequence[Group]) -> int:
    """The largest basis that QR would find."""
    sizes: list[int] = []
    for v, branch in enumerate(tree[:-1]):
        n_rows = math.prod(sizes[c] for c in branch.children) * groups[0][v].shape[-2]
        n_columns = sum(group[v].shape[0] * group[v].shape[-1] for group in groups)
        sizes.append(min(n_rows, n_columns))
    return max(sizes, default=1)


def _scaled(arrays: list[Array], exponent: float) -> list[Array]:
    """The arrays times two to the exponent: at the root, or spread over all if it is large."""
    whole, n = int(exponent), len(arrays)
    parts = [whole * (k + 1) // n - whole * k // n for k in range(n)]
    if abs(whole) <= _MOST_AT_ROOT:
        parts = [0] * (n - 1) + [whole]
    return [a * 2.0**part if part else a for a, part in zip(arrays, parts, strict=True)]


# Powers of two that one node may take.
_MOST_AT_ROOT = 20


def _network(
    xp: Namespace,
    s: NetworkSum,
    topology: Topology,
    tree: Sequence[Branch],
    arrays: Sequence[Array],
) -> Network:
    sizes = dict(zip(s.physical_modes, s.shape, strict=True))
    held = {branch.name: (branch, array) for branch, array in zip(tree, arrays, strict=True)}
    return Network._unchecked(
        topology,
        {name: node_array(xp, *held[name], modes, sizes) for name, modes in topology.nodes.items()},
    )


def _zero(xp: Namespace, s: NetworkSum, topology: Topology) -> Network:
    """The network of zero, of rank one."""
    sizes = dict(zip(s.physical_modes, s.shape, strict=True))
    device = _arrays.device_of(s._some_array)
    arrays = {}
    for name, modes in topology.nodes.items():
        shape = tuple(sizes.get(mode, 1) for mode in modes)
        arrays[name] = xp.zeros(shape, dtype=s.dtype, device=device)
    return Network._unchecked(topology, arrays)
