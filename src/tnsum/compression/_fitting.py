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

Sweeps take the error from the three inner products, whose squares hold half the digits: below the root
of machine precision times the sum of |w_m| |X_m| over |s|, some 1e-8 in double precision where nothing
cancels, they do not see it. There some further sweeps end the fit. In single precision it would be some
1e-3: such sums are fitted in double precision, and the result is rounded.

The error that is reported is found anew, in another way: as the norm of the difference between the
result, rounded as it is returned, and the summands as they came, orthogonalised (`orthogonal`). Nothing
cancels there that cancelled in the fit, and no square is taken. Where that would take longer than an
eighth of the fit, inner products are used once more, with all that they may not see. In either case the
rounding of what was compared, F, is added (`_rounding`): bad gauges and cancelling terms make it large.
The fit itself works on summands in balance (`_balance`), where their gauges are bad.

No gradient flows through a fit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tnsum import _arrays
from tnsum._typing import Array, DType, Namespace
from tnsum.compression._balance import balanced_networks, balanced_nodes
from tnsum.compression._conversion import scaled, zero_network
from tnsum.compression._environments import kets_of_group
from tnsum.compression._pairs import inner_products
from tnsum.compression._result import warn_of_rounding
from tnsum.compression._rounding import sizes_of, summed
from tnsum.compression._starts import starts
from tnsum.compression._sweeps import Fit, swept
from tnsum.compression._targets import (
    QUICK,
    Target,
    network_of,
    orthogonal_length,
    sizes_within,
    target_of,
)
from tnsum.compression._walks import tree_of, work_of_sweep
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
# Rounding changes an error by at most machine precision times the terms of summands and fit, times the
# root of the number of nodes, times this: of 3,600 fits in gauges of condition 1 to 1e6, in double
# precision, none was changed by a quarter of that.
_DOUBTS = 4.0
# The difference is orthogonalised if that is quick, or takes no more multiplications than one part in so
# many of what the sweeps took.
_SHARE = 8
# No power of two is larger: what is so far out of scale is no fit, and only must not overflow.
_HUGE = 900.0
# The number of sweeps, the multiplications that all of them may take, and the sweeps of each start.
_FEWEST, MOST_SWEEPS, _MOST_WORK, _TRIAL = 10, 500, 10**12, 5
# The step beyond a sweep: at first, after a failure, and how it grows.
_STEP, _STEP_AGAIN, _GROWTH = 1.0, 0.5, 1.1
# A fit stands still when its error fell by less than this part in so many sweeps.
_STILL, _N_WATCHED = 0.01, 10
# Squares of at most so many times what is not seen of them are improved by further sweeps: three bring
# the error down to a tenth, six to a hundredth, where terms cancel by 1e2 to 1e4.
_HIDDEN, _N_POLISH = 100.0, 6
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
    max_seconds: float | None = None,
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
    max_seconds : float, optional
        When so many seconds have passed, the best network so far is returned, as soon as there is one.

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
    clock = _Clock(report, max_seconds)
    topology = s.topology.joined
    wide = s.astype(_arrays.result_dtype(xp, [s.dtype, _arrays.widest_real(xp)]))
    target = target_of(xp, wide)
    own_precision = _precision(xp, s.dtype)
    # Of the summands in the dtype of the fit, and of the weights in that of the sum.
    rounding = max(
        _precision(xp, wide.dtype) * target.original_terms, own_precision * target.cancellation
    )
    if _ROUNDING * math.sqrt(len(topology.nodes)) * rounding >= 1:
        return _nothing(xp, s, topology, tolerance)
    whole = {**dict.fromkeys(topology.contraction_modes, s.n_summands), **s.ranks}
    if all(ranks.get(mode, rank) >= rank for mode, rank in whole.items()):
        # One node of each summand is multiplied by its weight.
        error = _ROUNDING * own_precision * target.original_terms
        if error >= 1:
            return _nothing(xp, s, topology, tolerance)
        warn_of_rounding(error, tolerance, stacklevel=4)
        return _blocks(xp, s, topology), error
    caps = {mode: min(rank, ranks.get(mode, rank)) for mode, rank in whole.items()}
    fit = _fit(xp, target, sizes_within(target.topology, s.shape, caps), tolerance, seed, clock)
    result = _stack_of(xp, target, fit).astype(s.dtype)
    error, doubt = _error_of(xp, target, result.astype(wide.dtype), clock.affordable)
    doubt += 2 * rounding if wide.dtype != s.dtype else 0.0
    error = (error + doubt) / (1 - doubt) if doubt < 1 else 1.0
    if not error < 1:
        return _nothing(xp, s, topology, tolerance)
    if error > tolerance:
        # A fit that ended where rounding hides its error missed the tolerance because of that.
        unseen = _unseen(xp, target)
        warn_of_rounding(error if fit.most <= unseen else doubt, tolerance, stacklevel=4)
    arrays = scaled([a[0, ...] for a in result.arrays.values()], target.exponent)
    return network_of(xp, target, arrays, topology), error


def _nothing(
    xp: Namespace, s: NetworkSum, topology: Topology, tolerance: float
) -> tuple[Network, float]:
    """Zero, where rounding or a poor fit leaves nothing of the sum."""
    warn_of_rounding(1.0, tolerance, stacklevel=5)
    return zero_network(xp, s, topology), 1.0


def _precision(xp: Namespace, dtype: DType) -> float:
    return float(xp.finfo(_arrays.real_dtype(xp, dtype)).eps)


def _unseen(xp: Namespace, target: Target) -> float:
    """What inner products do not see of the square of an error."""
    return _UNSEEN * _precision(xp, target.groups[0][1].dtype) * target.cancellation


class _Clock:
    """How long a fit has taken: in sweeps, multiplications and seconds."""

    def __init__(self, report: Report | None, max_seconds: float | None) -> None:
        self._report = report
        self._end = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self._least = math.inf
        self.n_sweeps = self.work = 0

    def count(self, square: float, work: int) -> None:
        """Count a sweep that ended with this square of the error, and took so many multiplications."""
        self.n_sweeps, self.work = self.n_sweeps + 1, self.work + work
        self._least = min(self._least, square)
        if self._report is not None:
            self._report(self.n_sweeps, math.sqrt(self._least))

    @property
    def is_up(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._end

    def tick(self) -> None:
        """Raise when the time is up, but not in the first sweep, without which there is no fit."""
        if self.n_sweeps and self.is_up:
            raise _TimeUpError

    @property
    def affordable(self) -> int:
        """The multiplications that finding the error may take."""
        return QUICK if self.is_up else max(QUICK, self.work // _SHARE)


class _TimeUpError(Exception):
    """The time is up in the middle of a sweep."""


def _stack_of(xp: Namespace, target: Target, fit: Fit) -> NetworkStack:
    """The network of a fit in balance, as a stack of one."""
    nodes = zip(target.topology.nodes, scaled(fit.arrays, fit.exponent), strict=True)
    stack = NetworkStack._unchecked(target.topology, {name: a[None, ...] for name, a in nodes})
    return balanced_networks(xp, stack)


def _error_of(
    xp: Namespace, target: Target, result: NetworkStack, affordable: int
) -> tuple[float, float]:
    """The relative error of a network, as a stack of one, and by how much rounding may have changed it.

    From the norm of the difference from the summands as they came, orthogonalised; from inner products,
    with what these do not see, where that takes more multiplications than are affordable.
    """
    topology, precision = target.topology, _precision(xp, result.dtype)
    one = xp.ones((1,), dtype=result.dtype, device=result.device)
    own = target.relative(summed([sizes_of(xp, (result, one)).terms]))
    places = math.sqrt(len(topology.nodes))
    doubt = _DOUBTS * places * precision * (target.original_terms + own)
    groups = [*target.originals, (result, -one)]
    if work_of_cores(topology, [groups]) <= affordable:
        length, exponent = orthogonal_length(xp, topology, groups)
        return target.relative(_log2(length) + exponent), doubt
    unseen = _UNSEEN * precision * (target.terms + own) ** 2
    return math.sqrt(abs(_square_by_products(xp, target, result, one)) + unseen), doubt


def _square_by_products(xp: Namespace, target: Target, result: NetworkStack, one: Array) -> float:
    """The square of the relative error from <Y|Y> - 2 Re <Y|s> + <s|s>."""
    square = 1.0
    scale = 2 * (target.norm_exponent + math.log2(target.norm))
    for factor, (stack, weights) in ((1.0, (result, one)), *((-2.0, g) for g in target.groups)):
        numbers, exponents = inner_products(xp, result[0], stack)
        products = np.real(numbers * np.asarray(_arrays.on_host(weights)))
        square += factor * float(np.sum(products * np.exp2(np.minimum(_HUGE, exponents - scale))))
    return square


def _log2(number: float) -> float:
    return math.log2(number) if number > 0 else -math.inf


def _fit(
    xp: Namespace,
    target: Target,
    sizes: Mapping[str, int],
    tolerance: float,
    seed: int,
    clock: _Clock,
) -> Fit:
    """The best of several starts, improved until it is good enough, stands still or the time is up."""
    tree = tree_of(target.topology, tuple(sizes.items()))
    kets = [kets_of_group(xp, group) for group in target.groups]
    work = work_of_sweep(tree, sizes, target.groups)
    n_sweeps = max(_FEWEST, min(MOST_SWEEPS, _MOST_WORK // work))
    unseen = _unseen(xp, target)
    enough = max(tolerance**2 - unseen, unseen)

    def sweep(arrays: Sequence[Array]) -> Fit:
        fit = swept(xp, target, tree, kets, arrays, tick=clock.tick)
        if fit.doubt > _HIDING * abs(fit.square):
            # What is found in balance is kept, be it larger: rounding may have flattered the fit.
            nodes = balanced_nodes(xp, target.topology, fit.arrays)
            fit = replace(swept(xp, target, tree, kets, nodes, only_length=True), is_balanced=True)
        clock.count(fit.most, work)
        return fit

    best: Fit | None = None
    for arrays in starts(xp, target, sizes, seed):
        n_trial = max(1, min(_TRIAL, n_sweeps // 10))
        fit = _improved(xp, target.topology, sweep, arrays, n_trial, enough, best)
        if best is None or fit.most < best.most:
            best = fit
        if best.most <= enough or clock.is_up:
            break
    assert best is not None
    if best.most > enough and not clock.is_up:
        n_left = n_sweeps - clock.n_sweeps
        best = _improved(xp, target.topology, sweep, best.arrays, n_left, enough, best)
    hidden = best.most < _HIDDEN * (unseen + best.doubt) and best.most > tolerance**2 - unseen
    return _polished(sweep, best) if hidden else best


def _polished(sweep: Callable[[Sequence[Array]], Fit], fit: Fit) -> Fit:
    """A fit after some more sweeps that are not asked for their error, which rounding hides.

    A sweep adds to each node the solution for what is left of the right side, as iterative refinement
    does. So it goes on where inner products do not tell one network from the next.
    """
    try:
        for _ in range(_N_POLISH):
            fit = sweep(fit.arrays)
    except _TimeUpError:
        pass
    return fit


def _improved(
    xp: Namespace,
    topology: Topology,
    sweep: Callable[[Sequence[Array]], Fit],
    arrays: Sequence[Array],
    n_sweeps: int,
    enough: float,
    instead: Fit | None,
) -> Fit:
    """The best fit of some sweeps, each of which starts beyond the last; `instead` if time is up."""
    best, before, step = instead, list[Array](), _STEP
    try:
        best = sweep(arrays)
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
    except _TimeUpError:
        pass
    assert best is not None
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


def _blocks(xp: Namespace, s: NetworkSum, topology: Topology) -> Network:
    """The explicit sum, in the joined topology also if there is only one summand."""
    blocks = s.to_network()
    arrays = {}
    for name, modes in topology.nodes.items():
        array = blocks.arrays[name]
        arrays[name] = xp.reshape(array, (*array.shape, *(1,) * (len(modes) - array.ndim)))
    return Network._unchecked(topology, arrays)
