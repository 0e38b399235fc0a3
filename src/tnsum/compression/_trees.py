"""Trees made small again, to a stated error.

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
from collections.abc import Mapping, Sequence

from tnsum import _arrays
from tnsum._matrices import length
from tnsum._progress import Step, shown
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import Orthogonal, direct_bases
from tnsum.compression._branches import Branch, Group, branches_of
from tnsum.compression._chains import Chain, chain_of, direct_chain, is_path, truncated_chain
from tnsum.compression._conversion import (
    check_range,
    groups_of,
    largest_basis,
    network_of,
    scaled,
    zero_network,
)
from tnsum.compression._norms import log2_of_norms
from tnsum.compression._result import Compression, counted, warn_of_rounding
from tnsum.compression._sketch import sketched_bases
from tnsum.compression._truncation import truncated
from tnsum.summation import NetworkSum

# Bases up to this size are cheaper to find by QR than by sketching.
_SMALL, _SMALL_OF_PATH = 64, 96
# Singular values below so many times the noise are noise.
_NOISE = 4.0
# The rounding error in units of the noise, times the root of the number of nodes: never, and hardly
# ever exceeded.
_ROUNDING = {"bound": 20.0, "estimate": 8.0}
# The same in units of what is multiplied at one mode, where that is far larger than the sum.
_OF_PRODUCT = 4.0
# Summands whose norms in quadrature are at most so many times that of their sum do not cancel.
_MILD = 4.0
# A rounding error so many times smaller than the tolerance need not be known better.
_UNSEEN = 1000.0
# How many times larger than its estimate what a sketch loses hardly ever is.
_LOSS = 4.0
# What is added to an error of which a part is estimated.
_MARGIN = 1.001


def compressed_tree(
    xp: Namespace,
    s: NetworkSum,
    tolerance: float,
    ranks: Mapping[str, int],
    method: str,
    seed: int,
    progress: bool,
) -> Compression:
    """A sum of trees compressed; `ranks` are the largest ones, of the modes that have one."""
    topology = s.topology.joined
    precision = float(xp.finfo(_arrays.real_dtype(xp, s.dtype)).eps)
    tree = branches_of(topology)
    caps = [ranks.get(str(branch.up)) for branch in tree[:-1]]
    groups, exponent = groups_of(xp, s, topology, tree)
    with shown(f"Compressing {counted(s)}", len(tree) + 1, progress) as step:
        found, kind = _reduced(xp, tree, groups, tolerance, caps, precision, method, seed, step)
        size = length(xp, found.core)
        noise = precision * _alone(xp, tree, groups, found, size, kind, tolerance / precision)
        arrays, error = _truncated(xp, tree, found, size, tolerance, caps, noise, kind, precision)
        step()
    if arrays is None:
        network = zero_network(xp, s, topology)
    else:
        check_range(found.exponent + exponent + math.log2(size), len(tree), s.dtype)
        network = network_of(xp, topology, s.shape, tree, scaled(arrays, found.exponent + exponent))
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
    size: float,
    kind: str,
    digits: float,
) -> float:
    """The norms of all summands added, in the scale of what was found; in quadrature, for an estimate.

    They are not less than `size`, the norm of the sum. `digits` is the tolerance in units of machine
    precision: what is far below it need not be exact. What a sketch sees is enough where summands do
    not cancel; through long trees it may be ten times too little, which counts where they do.
    """
    if found.about is not None and found.about <= _MILD * size:
        return max(found.about, size)
    if found.alone is not None:
        return max(found.alone, size)
    unseen = size * digits / (_UNSEEN * _ROUNDING[kind] * math.sqrt(len(tree)))
    enough = (math.log2(unseen) if unseen else -math.inf) + found.exponent
    power = 1 if kind == "bound" else 2
    log2 = log2_of_norms(xp, tree, groups, power, enough) - found.exponent
    return max(float(2.0**log2), size)


def _truncated(
    xp: Namespace,
    tree: Sequence[Branch],
    found: Orthogonal | Chain,
    size: float,
    tolerance: float,
    caps: Sequence[int | None],
    noise: float,
    kind: str,
    precision: float,
) -> tuple[list[Array] | None, float]:
    """The truncated arrays, or None if there is nothing but noise, and the relative error."""
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
        small = rounding * size / (_OF_PRODUCT * precision)
        arrays, dropped, product = truncated_chain(xp, found, budget, _NOISE * noise, caps, small)
        if kind == "bound":
            # Neighbours with large entries that cancel round as these do.
            rounding = max(rounding, _OF_PRODUCT * precision * product / size)
    else:
        arrays, dropped = truncated(xp, tree, found, budget, _NOISE * noise, caps)
    warn_of_rounding(rounding, tolerance, stacklevel=5)
    # The result is a projection of the sum: not farther from it than zero is.
    return arrays, min(math.hypot(dropped / size, loss) * margin, 1.0) + rounding
