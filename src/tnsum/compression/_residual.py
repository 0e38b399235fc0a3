"""How far a compressed network is from its sum, measured.

What rounding may do is known beforehand (`_norms`), but terms that cancel exactly, or that share their
rounding, do far less: a bound thousands of times too large is of no use. So the difference between the
sum and the result is measured, as a further summand, through random test tensors that had no part in
finding the result: with O_v all that lies outside branch v through them,

    | sum over m of w_m T_v[m] O_v[m] - T_v[result] O_v[result] |  /  | T_v[result] O_v[result] |

is about the relative error. Multiplying by random numbers rounds anew, independently of the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tnsum._matrices import length
from tnsum._typing import Array, Namespace
from tnsum.compression._bases import Orthogonal
from tnsum.compression._branches import Branch, Group
from tnsum.compression._chains import Chain
from tnsum.compression._products import Factor, total_of
from tnsum.compression._test_tensors import TestTensors

# The columns that the difference is measured through.
_WIDTH = 64


def residual(
    xp: Namespace,
    tree: Sequence[Branch],
    groups: Sequence[Group],
    found: Orthogonal | Chain,
    arrays: Sequence[Array],
    seed: int,
) -> float:
    """The relative distance of the arrays of a network to the sum, estimated."""
    if len(tree) == 1:
        total = total_of([Factor(xp, group[0], []).total() for group in groups])
        return length(xp, total - arrays[0][..., 0]) / length(xp, arrays[0])
    # In the scale of the groups.
    scale = 2.0 ** (found.exponent / len(tree))
    result = [array[None, ...] * scale for array in arrays]
    everything = [*groups, result]
    tests = TestTensors(xp, tree, everything, (seed, _APART), all_branches=True)
    outside = tests.outside(_WIDTH)[0]
    *seen, own = (
        Factor(xp, group[0], []).times(columns)
        for group, columns in zip(everything, outside, strict=True)
    )
    return length(xp, total_of(seen) - own) / length(xp, own) if length(xp, own) else math.inf


# What makes the test tensors others than those that a sketch of the same seed draws.
_APART = 0x7E57
