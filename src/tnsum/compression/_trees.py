"""Trees made small again, to a stated error.

The sum is brought into orthonormal bases of its branches, by QR (`_bases`) or by sketching
(`_sketch`), and truncated there (`_truncation`). On a tree with E contraction modes, dropping at most
tolerance / sqrt(E) on each keeps the whole relative error below the tolerance.

Rounding is part of the error. The sum is known to about machine precision times the norms of all that is
multiplied on the way (`_norms`), however small the sum itself is: singular values below that are noise,
and the reported error includes it. Where it would dominate the error, the difference between the sum and
the result is measured (`_residual`). Where the error is an estimate, the rounding errors of different
summands are taken to be independent, and add up in quadrature.

Asked by rank, bases of a size somewhat above the rank are refined (`_refining`), and what they lose is
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tnsum import _arrays
from tnsum._matrices import in_double, length
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
from tnsum.compression._norms import log2_of_products
from tnsum.compression._refining import in_bases, krylov_bases, refined_bases
from tnsum.compression._residual import measured_loss, residual
from tnsum.compression._result import Compression, counted, warn_of_rounding
from tnsum.compression._sketch import sketched_bases
from tnsum.compression._truncation import truncated
from tnsum.summation import NetworkSum

# Bases up to this size are cheaper to find by QR than by sketching.
_SMALL, _SMALL_OF_PATH = 64, 96
# The same where ranks are given and no tolerance: then a sketch takes several passes. Where many
# branches meet, large bases make a far larger core.
_SMALL_BY_RANK = 256
# What bases may lose beside what ranks drop, before they are refined.
_LITTLE = 0.3
# What ranks must drop, as a part of the square of the norm, for bases of these ranks to be refined.
_ROOM = 1e-4
# The rounding error in units of what it is measured by, and what is added to that, times the root of
# the number of rows, as long columns round more: at most 2.9 in 2000 sums of small trees, 7.9 with
# 10,000 rows and 25 with 60,000; with shaken rounding somewhat more.
_ROUNDING, _OF_ROWS = 12.0, 0.25
# Rounding so small a part of the tolerance need not be known better; and how many times larger than a
# sketch sees it what it is measured by hardly ever is.
_LIGHT, _ROUGH = 0.01, 8.0
# A sum so many times smaller than what its rounding is measured by is zero.
_ZERO = 4.0
# Beyond an error of one, zero is returned where so much of it is rounding.
_ALL = 0.1
# Rounding beyond so many times machine precision, times the root of the number of nodes, is worth being
# measured; what is measured is to be multiplied by this.
_WORTH, _OF_RESIDUAL = 2.0**11, 4.0
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
        arrays, error = _truncated(
            xp, tree, groups, found, size, tolerance, caps, kind, precision, seed
        )
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
    most = min(_WIDEST, largest_basis(tree, groups)[0] // 2)
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
    size, _ = largest_basis(tree, groups)
    cap = max(cap for cap in caps if cap) if len(tree) > 1 and all(caps) else None
    small = _SMALL_OF_PATH if is_path(tree) else _SMALL
    if cap is not None and tolerance == 0 and all(len(branch.children) < 3 for branch in tree):
        small = _SMALL_BY_RANK
    sketched: Orthogonal | None = None
    if len(tree) > 1 and (method == "sketch" or (method == "auto" and size > small)):
        # A sketch that is nearly as wide as the sum is no gain.
        most = size // 2 if method == "auto" else None
        if cap is not None and tolerance == 0 and len(tree) == 2:
            sketched = krylov_bases(xp, groups, cap, seed)
        else:
            enough = tolerance / (8 * math.sqrt(len(tree) - 1))
            sketched = sketched_bases(xp, tree, groups, enough, cap, precision, seed, most, step)
        if sketched is not None and cap is not None:
            sketched = _by_rank(xp, tree, groups, sketched, tolerance, caps, precision, seed)
    if sketched is not None:
        return sketched, "estimate"
    step()
    if is_path(tree):
        return direct_chain(xp, groups, step), "bound"
    return direct_bases(xp, tree, groups, step), "bound"


def _by_rank(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal,
    tolerance: float,
    caps: Sequence[int | None],
    precision: float,
    seed: int,
) -> Orthogonal:
    """Bases of limited size, refined unless they lose little beside what ranks drop in any case."""

    def scale(some: Orthogonal) -> float:
        # Powers of two that were taken out may differ.
        return float(2.0 ** (some.exponent - found.exponent))

    def squared(some: Orthogonal) -> float:
        return (length(xp, in_double(xp, some.core)) * scale(some)) ** 2

    def dropped(some: Orthogonal) -> float:
        return truncated(xp, tree, some, 0.0, 0.0, caps)[1] * scale(some)

    size = length(xp, found.core)
    if size == 0:
        return found
    near = found
    if len(tree) > 2 or tolerance > 0:
        rounding = precision * max(found.about or 0.0, size)
        enough = max(_LITTLE * dropped(found), tolerance * size / 2, _ROUNDING * rounding)
        if _LOSS * found.lost * size <= enough:
            return found
        wide: list[int | None] = [None] * len(caps)
        near = refined_bases(
            xp, tree, groups, found, wide, lambda some: squared(some) - dropped(some) ** 2
        )
    lost = measured_loss(xp, tree, groups, near, dropped(near) / scale(near), seed) * scale(near)
    total = squared(near) + lost**2
    if len(tree) > 2 and dropped(near) ** 2 > _ROOM * total:
        # In the ranks asked for, each basis can be made to suit the others.
        arrays = truncated(xp, tree, near, 0.0, 0.0, caps)[0]
        matrices = [xp.reshape(array, (-1, array.shape[-1])) for array in arrays[:-1]]
        start = in_bases(xp, tree, groups, lambda v, _: matrices[v])
        near = replace(refined_bases(xp, tree, groups, start, caps, squared), about=found.about)
    lost = math.sqrt(max(0.0, total - squared(near)) / squared(near))
    return replace(near, lost=lost, is_measured=True)


def _products(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal | Chain,
    kind: str,
    small: float,
) -> tuple[float, float]:
    """What rounding is measured by, F of `_norms`, in the scale of what was found; and how many times
    too small it may be.

    It need not be exact if it is at most `small`. What a sketch sees of it is a rough estimate, and
    serves there only.
    """
    if found.about is not None and _ROUGH * found.about <= small:
        return found.about, _ROUGH
    enough = math.log2(small) + found.exponent if small > 0 else -math.inf
    power = 1 if kind == "bound" else 2
    log2 = log2_of_products(xp, tree, groups, power, enough) - found.exponent
    return float(2.0 ** min(log2, 1000.0)), 1.0


def _truncated(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal | Chain,
    size: float,
    tolerance: float,
    caps: Sequence[int | None],
    kind: str,
    precision: float,
    seed: int,
) -> tuple[list[Array] | None, float]:
    """The truncated arrays, or None if nothing but noise is left, and the relative error."""
    light = _LIGHT * tolerance * size
    factor = precision * (_ROUNDING + _OF_ROWS * math.sqrt(largest_basis(tree, groups)[1]))
    worth = _WORTH * math.sqrt(len(tree)) * precision * size
    truncation: tuple[list[Array], float] | None = None
    slack = 1.0
    if kind == "estimate" and is_path(tree) and isinstance(found, Orthogonal):
        found = chain_of(xp, found)
    if isinstance(found, Chain) and kind == "bound" and light > 0:
        # Along a path the arrays at hand show what rounding in the result is measured by.
        small = min(light, worth) / (factor * math.sqrt(len(tree)))
        left = (tolerance - _LIGHT * tolerance) * size
        arrays, dropped, product = truncated_chain(xp, found, left, 0.0, caps, small)
        truncation = (arrays, dropped) if factor * product <= light else None
    if truncation is None:
        product, slack = _products(xp, tree, groups, found, kind, light / factor)
    if size <= precision * product / _ZERO:
        # A sum of zeros is known exactly.
        warn_of_rounding(math.inf if product > 0 else 0.0, tolerance, stacklevel=5)
        return None, 1.0
    # Independent errors of many summands add up to little; but the result rounds, too.
    product = max(product, math.sqrt(len(tree)) * size)
    rounding = factor * slack * product / size
    loss = found.lost if found.is_measured else _LOSS * found.lost
    margin = _MARGIN if loss else 1.0
    if truncation is None:
        # What is dropped and lost is orthogonal; rounding is not, and adds up.
        left = max(0.0, tolerance - rounding) / margin
        budget = size * math.sqrt(max(0.0, left**2 - loss**2))
        noise = precision * product
        if isinstance(found, Chain):
            arrays, dropped, _ = truncated_chain(xp, found, budget, noise, caps, math.inf)
            truncation = arrays, dropped
        else:
            truncation = truncated(xp, tree, found, budget, noise, caps)
    arrays, dropped = truncation
    lost = math.hypot(dropped / size, loss) * margin
    if found.is_measured:
        # Relative to the sum, which is larger than what the bases hold of it.
        lost /= math.hypot(1.0, loss)
    if rounding * size > max(lost * size, slack * worth):
        rest = residual(xp, tree, groups, arrays, found.exponent, seed)
        # Of what cancels altogether, nothing may be left in the result.
        kept = length(xp, arrays[0] if isinstance(found, Chain) else arrays[-1])
        rounding = min(rounding, _OF_RESIDUAL * rest / min(size, kept)) if kept else math.inf
    # The result is a projection of the sum: not farther from it than zero is.
    error = min(lost, 1.0) + rounding
    is_capped = any(cap is not None for cap in caps)
    warn_of_rounding(rounding if is_capped else error, tolerance, stacklevel=5)
    return (arrays, error) if error < 1 or rounding < _ALL else (None, 1.0)
