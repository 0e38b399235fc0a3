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

from tnsum import _arrays
from tnsum._checks import checked_tolerance
from tnsum._progress import Step, shown
from tnsum._typing import Array, Namespace
from tnsum.addition import as_sum
from tnsum.compression._bases import Orthogonal, direct_bases
from tnsum.compression._branches import Branch, Group, branches_of
from tnsum.compression._chains import Chain, chain_of, direct_chain, is_path, truncated_chain
from tnsum.compression._conversion import groups_of, largest_basis, network_of, scaled, zero_network
from tnsum.compression._norms import log2_of_norms
from tnsum.compression._result import Compression
from tnsum.compression._sketch import sketched_bases
from tnsum.compression._truncation import truncated
from tnsum.errors import ModeError, NetworkError, TopologyError
from tnsum.network import Network
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed

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
    tolerance = checked_tolerance(tolerance, 4 * precision, s.dtype)
    tree = branches_of(topology)
    caps = checked_ranks(max_rank, tree, topology)
    if method not in _METHODS:
        raise NetworkError(f"method must be one of {listed(_METHODS)}; {method!r} came.")
    groups, exponent = groups_of(xp, s, topology, tree)
    title = f"Compressing {s.n_summands} summands"
    with shown(title, len(tree) + 1, progress) as step:
        found, kind = _reduced(xp, tree, groups, tolerance, caps, precision, method, seed, step)
        noise = precision * _alone(xp, tree, groups, found, kind, tolerance / precision)
        arrays, error = _truncated(xp, tree, found, tolerance, caps, noise, kind)
        step()
    if arrays is None:
        network = zero_network(xp, s, topology)
    else:
        network = network_of(xp, s, topology, tree, scaled(arrays, found.exponent + exponent))
    return Compression(network, error, kind, "direct" if kind == "bound" else "sketch")


def sketched_length(s: NetworkSum) -> tuple[Array, float] | None:
    """The norm of a sum of trees and a power of two beside it, or None if its ranks are large."""
    xp, topology = s.namespace, s.topology.joined
    precision = float(xp.finfo(_arrays.real_dtype(xp, s.dtype)).eps)
    tree = branches_of(topology)
    groups, exponent = groups_of(xp, s, topology, tree)
    most = min(_WIDEST, largest_basis(tree, groups) // 2)
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
    size = largest_basis(tree, groups)
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


def checked_ranks(
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
