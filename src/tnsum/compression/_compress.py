"""compress: one way in, for every topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tnsum import _arrays
from tnsum._checks import checked_integer, checked_max_rank, checked_seconds, checked_tolerance
from tnsum._progress import shown
from tnsum._typing import Namespace
from tnsum.addition import as_sum
from tnsum.compression._fitting import MOST_SWEEPS, fitted
from tnsum.compression._gradients import constant_sum, held_arrays, is_tracked, with_gradients
from tnsum.compression._result import Compression, counted
from tnsum.compression._trees import compressed_tree
from tnsum.errors import ModeError, NetworkError, TopologyError
from tnsum.network import Network
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, listed

_METHODS = "auto", "direct", "sketch", "fit"


def compress(
    x: Network | NetworkSum,
    tolerance: float | None = None,
    max_rank: int | Mapping[str, int] | None = None,
    method: str = "auto",
    seed: int = 0,
    progress: bool = False,
    max_seconds: float | None = None,
) -> Compression:
    """A network of small ranks near a sum, with its error.

    Parameters
    ----------
    x : Network or NetworkSum
        Of any topology. One that is not connected is joined first, as in `NetworkSum.to_network`.
    tolerance : float, optional
        The largest relative error. Without it and `max_rank`, nothing is lost but rounding. For a
        network that is not a tree, the error at which the fit may end.
    max_rank : int or Mapping[str, int], optional
        The largest rank of every contraction mode, or of those named. It takes precedence over
        `tolerance`: the error reached is in the result. A network that is not a tree needs it.
    method : {"auto", "direct", "sketch", "fit"}
        With "direct" a sum of trees is orthogonalised as it is; the error is a bound. With "sketch" it
        is projected onto random test tensors, in time linear in the number of summands; the error is
        an estimate. With "fit" a network of the largest ranks is fitted to the summands, in turns
        for each node. "auto" takes the quicker of the first two for trees, and fits all others.
    seed : int
        Fixes the test tensors and the starts of fits, and with them the result.
    progress : bool
        Whether to show how far the work is, on the standard error stream: with a bar on a terminal, with
        a few lines elsewhere.
    max_seconds : float, optional
        The time after which a fit ends with the best network so far; its error is reported as ever. At
        least one sweep over all nodes is made, and the error is found afterwards, so that a fit may take
        longer. Trees are not fitted, and take no notice of it.

    Notes
    -----
    `x` is left alone, and no block of zeros and no dense array is built. Terms that nearly cancel lose
    no more digits than they have: the error is relative to the sum, and includes its rounding. A sum
    that is zero up to rounding gives zero, of rank one, with error 1.

    Trees are chains of matrices, tensor trains, Tucker networks, all networks in which every contraction
    mode joins two nodes and no two ways lead from one node to another: there the tolerance is met. For
    loops (rings, grids) and hyperedges (CP) no such promise exists: the ranks are given, and the best
    network that alternating least squares find is returned, in the same format, with the error that it
    reached, which is an estimate. Truncating locally is not offered: the summands of a sum look
    orthogonal along each single mode, however alike they are, so that they could only be dropped.
    `cp_to_tucker` turns CP networks into a tree.

    Decisions depend on values, so that nothing here can be traced (jax.jit, jax.grad, jax.vmap). Under
    PyTorch gradients flow through the network of a compressed tree, once: those of the projection onto
    networks of its ranks. This is exact where nothing but rounding is dropped; otherwise it leaves out
    that kept directions turn towards dropped ones, about the ratio of the largest dropped to the
    smallest kept singular value. A function of the network must not depend on its gauge (norms, inner
    products, entries do not). No gradient flows through `error`, nor through a fit.

    Raises
    ------
    NetworkError
        `x` is something else; the tolerance is not in 0 ... 1 or smaller than the dtype can hold; the
        method is unknown; the seed is no integer of at least 0; `max_seconds` is not a positive number;
        entries or weights are not finite, or are being traced by JAX.
    ModeError
        A rank is not a positive integer, its mode is unknown, or there is none for a network that is
        not a tree.
    TopologyError
        The topology is not a tree, and the method is "direct" or "sketch".

    Warns
    -----
    RuntimeWarning
        Rounding exceeds the tolerance, because terms cancel, or large entries of neighbouring nodes do.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(3), np.diag([1.0, 2.0, 1e-6]))
    >>> c = compress(x + 2 * x, tolerance=1e-3)
    >>> c
    Compression to ranks r=2, error 4.5e-07 (bound), direct
    >>> from tnsum import tensor_ring
    >>> ring = tensor_ring([np.eye(4).reshape(2, 4, 2)] * 3)
    >>> compress(ring - 3 * ring, max_rank=2).method
    'fit'
    """
    s = as_sum(x)
    _arrays.check_values("compress", held_arrays(s))
    xp, topology = s.namespace, s.topology.joined
    if method not in _METHODS:
        raise NetworkError(f"method must be one of {listed(_METHODS)}; {method!r} came.")
    precision = float(xp.finfo(_arrays.real_dtype(xp, s.dtype)).eps)
    wanted = checked_tolerance(tolerance, 4 * precision, s.dtype)
    ranks = checked_max_rank(max_rank, topology.contraction_modes)
    checked_integer("seed", seed, 0)
    seconds = checked_seconds(max_seconds)
    # Decisions depend on values: gradients take a way of their own.
    tracked, s = (s, constant_sum(s)) if is_tracked(s) else (None, s)
    if method == "fit" or (method == "auto" and not topology.is_tree):
        return _fitted(xp, s, wanted, ranks, seed, progress, seconds)
    _check_tree(topology)
    found = compressed_tree(xp, s, wanted, ranks, method, seed, progress)
    if tracked is None:
        return found
    return replace(found, network=with_gradients(xp, tracked, found.network))


def _fitted(
    xp: Namespace,
    s: NetworkSum,
    tolerance: float,
    ranks: Mapping[str, int],
    seed: int,
    progress: bool,
    max_seconds: float | None,
) -> Compression:
    if not ranks and s.topology.joined.contraction_modes:
        raise ModeError(
            "max_rank must be given where a network is fitted: it is not a tree, or the method is "
            "'fit', and no tolerance tells how large its ranks must be. CP networks become trees with "
            "cp_to_tucker."
        )
    with shown(f"Fitting {counted(s)}", MOST_SWEEPS, progress) as step:

        def report(_: int, error: float) -> None:
            step(f"error {error:.2e}")

        network, error = fitted(xp, s, ranks, tolerance, seed, report, max_seconds)
    return Compression(network, error, "estimate", "fit")


def _check_tree(topology: Topology) -> None:
    if not topology.is_tree:
        raise TopologyError(
            f"Methods 'direct' and 'sketch' need a tree, in which each contraction mode joins two nodes "
            f"and no two ways lead from one node to another; a network with {len(topology.nodes)} "
            f"nodes and {len(topology.contraction_modes)} contraction modes that is none came. Take "
            f"'fit'."
        )
