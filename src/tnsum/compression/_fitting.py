"""Fitting a network of given ranks to a sum, by alternating least squares: for loops, and for CP.

On a tree each contraction mode cuts the network in two, and truncating the singular values there loses a
known part of the sum. With loops no single mode cuts anything, and no such bound exists. Nor is there a
local truncation to offer instead: along each contraction mode a sum has one block for each summand, and
its nodes are zero outside the blocks, so that the blocks look orthogonal on every mode, however alike
the summands are. What looks at one mode, or at one node and its neighbours, can only drop summands.

So the network Y is fitted to the list of summands as a whole, node by node, by what makes

    | Y - s |^2 = <Y|Y> - 2 Re <Y|s> + <s|s>,     s = sum_m w_m X_m,

least (`_sweeps`). Sweeps alone creep. So the nodes go on after each sweep in the direction in which they
went, by a step that grows while the error falls and starts anew when it does not: half the sweeps on
grids, and the difference between stuck and done on CP networks with similar columns.

There are many local optima, and nothing tells whether one is the best. The fit starts from several
networks (`_starts`), and goes on with the best of them after a few sweeps. It ends when the error is at
most the tolerance, when it fell by less than a hundredth in ten sweeps, or after a number of sweeps that
depends on what one costs.

The error comes from the three inner products, whose squares hold half the digits: below the root of
machine precision times the sum of |w_m| |X_m| over |s|, some 1e-8 in double precision where nothing
cancels, it is not seen, and the fit ends there. The error is then found once more from the difference,
orthogonalised; where that would take long, what is not seen is reported as the error. When summands
cancel, what is left of them is fitted no better than to that root. In single precision it would be some
1e-3: such sums are fitted in double precision, and the result is rounded.

No gradient flows through a fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tnsum import _arrays
from tnsum._typing import Array, DType, Namespace
from tnsum.compression._conversion import scaled, zero_network
from tnsum.compression._environments import kets_of_group
from tnsum.compression._starts import starts
from tnsum.compression._sweeps import Fit, balanced_nodes, swept
from tnsum.compression._targets import (
    Target,
    inner_products,
    network_of,
    sizes_within,
    sum_of,
    target_of,
)
from tnsum.compression._walks import tree_of, work_of_sweep
from tnsum.measures import length_of
from tnsum.network import Network, NetworkStack
from tnsum.orthogonal import work_of_cores
from tnsum.summation import NetworkSum
from tnsum.topology import Topology

Report: TypeAlias = Callable[[int, float], None]

# A sum whose norm is below so many times its rounding error, times the root of the number of nodes,
# is zero.
_ROUNDING = 20.0
# The uncertainty of the square of an error, in units of machine precision times what cancels.
_UNSEEN = 8.0
# Errors so many times what is not seen are worth being found exactly, if that takes no more
# multiplications than this.
_NEAR_UNSEEN, _QUICK = 10.0, 2**33
# The number of sweeps, the multiplications that all of them may take, and the sweeps of each start.
_FEWEST, MOST_SWEEPS, _MOST_WORK, _TRIAL = 10, 500, 10**12, 5
# The step beyond a sweep: at first, after a failure, and how it grows.
_STEP, _STEP_AGAIN, _GROWTH = 1.0, 0.5, 1.1
# A fit stands still when its error fell by less than this part in so many sweeps.
_STILL, _N_WATCHED = 0.01, 10
# Nodes are brought into balance when rounding may have changed this part of the square of the error,
# which is then found once more: in balance rounding hides less.
_HIDING = 1e-3


def fitted(
    xp: Namespace,
    s: NetworkSum,
    ranks: Mapping[str, int],
    tolerance: float,
    seed: int,
    report: Report | None = None,
) -> tuple[Network, float]:
    """A network of at most these ranks near a sum of any topology, and its relative error.

    No bound is promised: what is returned is the best that was found. `s` is left alone, and no dense
    array is built. If the ranks hold the whole sum, its blocks are returned. A sum that is zero up to
    rounding gives zero, of rank one, with error 1; so does a fit that comes no nearer.

    Parameters
    ----------
    ranks : Mapping[str, int]
        The largest rank of each contraction mode of `s.topology.joined`; modes left out have no limit.
    tolerance : float
        The relative error at which the fit may end.
    seed : int
        Fixes the random numbers of the starts, and with them the result.
    report : callable, optional
        Called after each sweep with the number of sweeps and the least error so far.

    Raises
    ------
    NetworkError
        Entries or weights are not finite, or an array on the way does not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from tnsum import tensor_ring
    >>> x = tensor_ring([np.ones((2, 3, 2))] * 4)
    >>> y, error = fitted(np, x + x, {f"r{k}": 2 for k in range(4)}, 1e-6, seed=0)
    >>> dict(y.ranks), error < 1e-6
    ({'r0': 2, 'r1': 2, 'r2': 2, 'r3': 2}, True)
    """
    topology = s.topology.joined
    wide = s.astype(_arrays.result_dtype(xp, [s.dtype, _arrays.widest_real(xp)]))
    target = target_of(xp, wide)
    rounding = _precision(xp, s.dtype) * target.cancellation
    if _ROUNDING * math.sqrt(len(topology.nodes)) * rounding >= 1:
        return zero_network(xp, s, topology), 1.0
    whole = {**dict.fromkeys(topology.contraction_modes, s.n_summands), **s.ranks}
    if all(ranks.get(mode, rank) >= rank for mode, rank in whole.items()):
        return _blocks(xp, s, topology), _ROUNDING * rounding
    caps = {mode: min(rank, ranks.get(mode, rank)) for mode, rank in whole.items()}
    sizes = sizes_within(target.topology, s.shape, caps)
    precision = _precision(xp, wide.dtype)
    unseen = _UNSEEN * precision * target.cancellation
    fit = _fit(xp, target, sizes, tolerance, unseen, seed, report)
    error = math.sqrt(fit.most + unseen)
    unseen += fit.doubt
    if error < _NEAR_UNSEEN * math.sqrt(unseen):
        fine = precision * target.cancellation + math.sqrt(precision * fit.doubt)
        error = min(error, _exact_error(xp, target, fit) + _ROUNDING * fine)
    if wide.dtype != s.dtype:
        # The weights are rounded, and the nodes of the fit, which is at most twice as large as the sum.
        error += 2 * (rounding + _rounded_off(xp, target, fit, s.dtype))
    if not error < 1:
        return zero_network(xp, s, topology), 1.0
    arrays = scaled(fit.arrays, fit.exponent + target.exponent)
    return network_of(xp, target, arrays, topology).astype(s.dtype), error


def _precision(xp: Namespace, dtype: DType) -> float:
    return float(xp.finfo(_arrays.real_dtype(xp, dtype)).eps)


def _rounded_off(xp: Namespace, target: Target, fit: Fit, dtype: DType) -> float:
    """How far the fit moves when its nodes are rounded to a dtype, relative to its norm."""
    nodes = zip(target.topology.nodes, fit.arrays, strict=True)
    exact = NetworkStack._unchecked(target.topology, {name: a[None, ...] for name, a in nodes})
    rounded = exact.astype(dtype).astype(exact.dtype)
    pairs = (exact, exact), (exact, rounded), (rounded, rounded)
    products = [inner_products(xp, *pair) for pair in pairs]
    whole, *others = (float(np.real(n[0])) for n, _ in products)
    powers = [float(exponent[0] - products[0][1][0]) for _, exponent in products[1:]]
    mixed, other = (n * math.exp2(power) for n, power in zip(others, powers, strict=True))
    unseen = _UNSEEN * _precision(xp, exact.dtype) + fit.doubt
    return math.sqrt(max(0.0, 1 - 2 * mixed / whole + other / whole) + unseen)


def _fit(
    xp: Namespace,
    target: Target,
    sizes: Mapping[str, int],
    tolerance: float,
    unseen: float,
    seed: int,
    report: Report | None,
) -> Fit:
    """The best of several starts, improved until it is good enough or stands still."""
    tree = tree_of(target.topology, tuple(sizes.items()))
    kets = [kets_of_group(xp, group) for group in target.groups]
    work = work_of_sweep(tree, sizes, target.groups)
    n_sweeps = max(_FEWEST, min(MOST_SWEEPS, _MOST_WORK // work))
    enough = max(tolerance**2 - unseen, unseen)
    squares: list[float] = []

    def sweep(arrays: Sequence[Array]) -> Fit:
        fit = swept(xp, target, tree, kets, arrays)
        if fit.doubt > _HIDING * abs(fit.square):
            nodes = balanced_nodes(xp, target.topology, fit.arrays)
            balanced = swept(xp, target, tree, kets, nodes, only_length=True)
            fit = replace(balanced, is_balanced=True) if balanced.most < fit.most else fit
        squares.append(fit.most)
        if report is not None:
            report(len(squares), math.sqrt(min(squares)))
        return fit

    best: Fit | None = None
    for arrays in starts(xp, target, sizes, seed):
        n_trial = max(1, min(_TRIAL, n_sweeps // 10))
        fit = _improved(xp, target.topology, sweep, arrays, n_trial, enough)
        if best is None or fit.most < best.most:
            best = fit
        if best.most <= enough:
            return best
    assert best is not None
    n_left = n_sweeps - len(squares)
    return _improved(xp, target.topology, sweep, best.arrays, n_left, enough)


def _improved(
    xp: Namespace,
    topology: Topology,
    sweep: Callable[[Sequence[Array]], Fit],
    arrays: Sequence[Array],
    n_sweeps: int,
    enough: float,
) -> Fit:
    """The best fit of some sweeps, each of which starts beyond the last."""
    best, before, step = sweep(arrays), list[Array](), _STEP
    squares = [best.most]
    while len(squares) < n_sweeps and best.most > enough and not _stands_still(squares):
        now = best.arrays
        if before and best.is_balanced:
            before = balanced_nodes(xp, topology, before)
        fit = sweep(_beyond(xp, before, now, step) if before else now)
        if fit.most < best.most:
            before, best, step = now, fit, _GROWTH * step
        else:
            before, step = [], _STEP_AGAIN
        squares.append(best.most)
    return best


def _stands_still(squares: Sequence[float]) -> bool:
    left = (1 - _STILL) ** 2
    return len(squares) > _N_WATCHED and squares[-1] > left * squares[-1 - _N_WATCHED]


def _beyond(
    xp: Namespace, before: Sequence[Array], now: Sequence[Array], step: float
) -> list[Array]:
    """Nodes so many steps beyond those of now, all taken with norm one."""
    old, new = ([a / xp.linalg.vector_norm(a) for a in arrays] for arrays in (before, now))
    return [a + step * (a - b) for a, b in zip(new, old, strict=True)]


def _exact_error(xp: Namespace, target: Target, fit: Fit) -> float:
    """The relative error from the norm of the difference; infinite if that would take long."""
    topology = target.topology
    nodes = zip(topology.nodes, scaled(fit.arrays, fit.exponent), strict=True)
    stack = NetworkStack._unchecked(topology, {name: array[None, ...] for name, array in nodes})
    minus_one = -xp.ones((1,), dtype=stack.dtype, device=stack.device)
    groups = [*target.groups, (stack, minus_one)]
    if work_of_cores(topology, [groups]) > _QUICK:
        return math.inf
    length, exponent = length_of(sum_of(topology, groups))
    return float(length) / target.norm * math.exp2(float(exponent) - target.norm_exponent)


def _blocks(xp: Namespace, s: NetworkSum, topology: Topology) -> Network:
    """The explicit sum, in the joined topology also if there is only one summand."""
    blocks = s.to_network()
    arrays = {}
    for name, modes in topology.nodes.items():
        array = blocks.arrays[name]
        arrays[name] = xp.reshape(array, (*array.shape, *(1,) * (len(modes) - array.ndim)))
    return Network._unchecked(topology, arrays)
