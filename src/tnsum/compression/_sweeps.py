"""One sweep of alternating least squares.

The square of the error of a network Y is quadratic in each single node A of Y while the others are held.
With N = <Y|Y> and b = <Y|s>, both without that node (`_environments`), it is

    | Y - s |^2 = A* N A - 2 Re A* b + |s|^2,     least where N A = b.

N acts on the contraction modes of the node, and is the same for all its own physical indices. A sweep
brings one node after the other to its optimum. Directions of which N knows nothing are left as they are:

    (N + d) (A - A_old) = b - N A_old,     d: ten times machine precision times the trace of N.

Larger d, up to 1e-4 of the trace, made no difference where it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tnsum import _arrays
from tnsum._typing import Array, Namespace
from tnsum.compression._environments import Kets, Overlap, Summands
from tnsum.compression._targets import Target
from tnsum.compression._walks import Tree

# How many times the rounding at one node or pair the whole may be.
_DOUBTS = 4.0
# No power of two is larger: what is so far out of scale is no fit, and only must not overflow.
_HUGE = 900.0
# The damping of the normal equations, in units of machine precision.
_DAMPING = 10.0


@dataclass(frozen=True)
class Fit:
    """A network near a sum.

    Attributes
    ----------
    arrays : list of array
        Its nodes, of norms near one.
    exponent : float
        The power of two that their product is to be multiplied by.
    square : float
        The square of the relative error, as far as inner products tell: rounding may make it negative.
    doubt : float
        By how much rounding at one node or pair may have changed the square.
    is_balanced : bool
        Whether its nodes were brought into balance.
    """

    arrays: list[Array]
    exponent: float
    square: float
    doubt: float
    is_balanced: bool = False

    @property
    def most(self) -> float:
        """What the square hardly ever exceeds: no fit is better because rounding flatters it."""
        # A negative square is all rounding.
        return abs(self.square) + _DOUBTS * self.doubt


def swept(
    xp: Namespace,
    target: Target,
    tree: Tree,
    kets: Sequence[Kets],
    arrays: Sequence[Array],
    only_length: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> Fit:
    """The network after each node, or its length only, was brought to its optimum, one by one.

    `tick` is called before each step; what it raises ends the sweep.
    """
    arrays = [array / xp.linalg.vector_norm(array) for array in arrays]
    one = xp.ones((), dtype=arrays[0].dtype, device=_arrays.device_of(arrays[0]))
    own, summands = (
        Overlap(xp, tree, arrays, None, (one, ())),
        Summands(xp, tree, arrays, kets),
    )
    exponent: float | None = None
    square, doubt = 1.0, 0.0
    precision = float(xp.finfo(_arrays.real_dtype(xp, one.dtype)).eps)

    def relative(number: float, power: float) -> float:
        """A number times a power of two, relative to the square of the sum's norm."""
        return number / target.norm**2 * math.exp2(min(_HUGE, power - 2 * target.norm_exponent))

    for what, place in tree.steps:
        tick()
        if what == "update":
            normal, taken = own.normal_matrix(place)
            right, other = summands.right_side(place)
            node = _solved(xp, normal, right, arrays[place], other - taken, exponent, only_length)
            arrays[place], exponent = node.array, node.exponent
            power = 2 * exponent + taken
            square = 1 - relative(node.gain, power)
            doubt = max(doubt, precision * relative(node.terms, power))
            continue
        for overlap in (own, summands):
            (overlap.find_inside if what == "inside" else overlap.find_outside)(place)
        if exponent is not None:
            (terms, power), (mixed, other) = own.terms_at(place), summands.terms_at(place)
            sizes = relative(terms, power + 2 * exponent), relative(mixed, other + exponent)
            doubt = max(doubt, precision * _largest_terms(*sizes))
    assert exponent is not None
    return Fit(arrays, exponent, square, doubt)


def _largest_terms(own: float, mixed: float) -> float:
    """How large the terms may be in <Y|Y>, 2 <Y|s> and <s|s>, from those of <Y|Y> and <Y|s>.

    By Cauchy's and Schwarz's inequality those of <s|s> are not smaller than what is said of them.
    """
    return max(own, 2 * mixed, mixed**2 / own if own > 0 else 0.0)


@dataclass(frozen=True)
class _Node:
    """A node at its optimum.

    Attributes
    ----------
    array : array
        Of norm between one and two.
    exponent : float
        The power of two that it is to be multiplied by.
    gain : float
        By what the square of the error is smaller than the square of the sum's norm.
    terms : float
        How large the terms may be of which that consists.
    """

    array: Array
    exponent: float
    gain: float
    terms: float


def _solved(
    xp: Namespace,
    normal: Array,
    right: Array,
    old: Array,
    scale: float,
    exponent: float | None,
    only_length: bool,
) -> _Node:
    """The optimum of a node, or of its length.

    Parameters
    ----------
    normal : array of shape (shared physical indices, contraction indices, contraction indices)
    right : array of the node's shape
        To be multiplied by two to the `scale`.
    old : array
        The node as it is, to be multiplied by two to the `exponent`, which is found if it is None.
    """
    shape = old.shape
    old = xp.reshape(old, (*normal.shape[:2], -1))
    right = xp.reshape(right, old.shape)
    product = normal @ old
    if exponent is None:
        parts = _inner(xp, old, right), _inner(xp, old, product)
        exponent = scale + (math.floor(math.log2(abs(parts[0] / parts[1]))) if all(parts) else 0)
    right = right * 2.0 ** (scale - exponent)
    precision = float(xp.finfo(_arrays.real_dtype(xp, old.dtype)).eps)
    largest = float(xp.max(xp.abs(xp.linalg.trace(normal))))
    unit = xp.eye(normal.shape[-1], dtype=normal.dtype, device=_arrays.device_of(normal))
    damped = normal + _DAMPING * precision * largest * unit
    if only_length:
        new = old * (_inner(xp, old, right) / (_inner(xp, old, product) or 1.0))
    else:
        new = old + xp.linalg.solve(damped, right - product)
    size = float(xp.linalg.vector_norm(new))
    if not 0 < size < math.inf:
        new, size = old, 1.0
    # A power of two leaves all digits as they are.
    taken = math.floor(math.log2(size))
    new, right = new * 2.0**-taken, right * 2.0**-taken
    gain = 2 * _inner(xp, new, right) - _inner(xp, new, normal @ new)
    terms = float(xp.linalg.vector_norm(normal)) * (size * 2.0**-taken) ** 2
    return _Node(xp.reshape(new, shape), exponent + taken, gain, terms)


def _inner(xp: Namespace, a: Array, b: Array) -> float:
    """The real part of the inner product of two arrays."""
    found = xp.sum(_arrays.conj(xp, a) * b)
    return float(xp.real(found) if _arrays.is_complex(found.dtype) else found)
