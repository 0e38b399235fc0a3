"""Arrays with a power of two beside them, so that long products neither overflow nor underflow.

The power is the exponent's, a real number in an array of its own; zero is scaled by nothing. No gradient
flows through a power of two: it is taken out here and multiplied back there.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tnsum._arrays import astype, constant, dtype_name, is_on_host, library
from tnsum._matrices import length
from tnsum._typing import Array, DType, Namespace

Scaled: TypeAlias = tuple[Array, Array]
"""An array, and the exponent of the power of two that it is to be multiplied by."""

# The exponent of zero: below any other, so that it sets no scale.
OF_ZERO = -(2.0**24)


def reach(dtype: DType) -> float:
    """The log2 that all factors of a product may have together, such that its square is in range too."""
    return 30.0 if dtype_name(dtype) in ("float32", "complex64") else 60.0


def rescaled(xp: Namespace, array: Array) -> tuple[Array, Array]:
    """The array scaled to a largest entry near one if that was extreme, and the log2 taken out."""
    limit = 30.0 if dtype_name(array.dtype) in ("float32", "complex64") else 300.0
    if library(xp) == "numpy":
        largest = float(np.max(np.abs(array)))
        if largest == 0 or not np.isfinite(largest) or abs(np.log2(largest)) <= limit:
            return array, np.float64(0)
        exponent = np.floor(np.log2(largest))
        return unscaled(xp, array, -exponent), exponent
    # Without looking at the values, which a traced array does not have.
    largest = constant(xp, xp.max(xp.abs(array)))
    usable = (largest > 0) & xp.isfinite(largest)
    exponent = xp.floor(xp.log2(xp.where(usable, largest, xp.ones_like(largest))))
    exponent = xp.where(xp.abs(exponent) > limit, exponent, xp.zeros_like(exponent))
    return unscaled(xp, array, -exponent), exponent


def rescaled_each(xp: Namespace, array: Array, axis: int, least: float) -> tuple[Array, Array]:
    """The array with the largest entry at each index of an axis near one, and the log2 taken out.

    Where no log2 exceeds `least` nothing is changed, if the values can be looked at.
    """
    others = tuple(k for k in range(array.ndim) if k != axis)
    largest = constant(xp, xp.max(xp.abs(array), axis=others))
    usable = (largest > 0) & xp.isfinite(largest)
    exponents = xp.floor(xp.log2(xp.where(usable, largest, xp.ones_like(largest))))
    if is_on_host(array) and np.max(np.abs(exponents)) <= least:
        return array, np.zeros_like(exponents)
    shape = tuple(-1 if k == axis else 1 for k in range(array.ndim))
    return unscaled(xp, array, xp.reshape(-exponents, shape)), exponents


def is_in_range(array: Array, limit: float) -> bool:
    """Whether an array is finite, and the log2 of its norm at each index of the first axis within a
    limit of zero, as far as one look tells, where that is quick (NumPy).
    """
    # What is not finite makes the logarithm infinite, or no number.
    return is_on_host(array) and bool(np.abs(_log2_norms([array])).max() <= limit)


def are_alike(stacks: Sequence[Sequence[Array]], limit: float, n_factors: int = 1) -> bool:
    """Whether stacks of arrays are finite, and the products of one array of each kind so much alike
    that a few common powers of two keep them all in range, as far as one look tells.

    Each stack has the same kinds, in one order, for summands along the first axis of all its arrays. The
    log2 of their norms, added up for all kinds, must be within the limit of zero; or, as common powers
    are taken out whenever `n_factors` are multiplied, within the limit of the largest, which must be
    near zero for each kind. It is looked where that is quick (NumPy).
    """
    if not all(is_on_host(array) for arrays in stacks for array in arrays):
        return False
    each = [_log2_norms(arrays) for arrays in stacks]
    logs = each[0] if len(each) == 1 else np.concatenate(each, axis=1)
    # No comparison holds with what is no number.
    if np.abs(logs).max(axis=1).sum() <= limit:
        return True
    high = logs.max(axis=1)
    is_near = np.abs(high).max() <= _NEAR / (2 * n_factors)
    return bool(is_near and (high - logs.min(axis=1)).sum() <= limit)


def _log2_norms(arrays: Sequence[Array]) -> Array:
    """The log2 of the norm of each array, at each index of the first axis that they have in common."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        flat = [array.reshape(array.shape[0], -1) for array in arrays]
        return np.log2([np.vecdot(each, each).real for each in flat]) / 2


def rescaled_together(
    xp: Namespace, arrays: list[Array], n_factors: int = 1
) -> tuple[list[Array], float]:
    """Arrays scaled by one power of two to a largest entry near one if that was far off, and its log2.

    What is to be multiplied with others, `n_factors` together, must be as many times nearer to one. The
    values are looked at: not for what is being traced.
    """
    near = _NEAR / n_factors
    if library(xp) == "numpy" and all(2.0**-near <= length(xp, a) <= 2.0**near for a in arrays):
        return arrays, 0.0
    largest = max(float(xp.max(xp.abs(array))) for array in arrays)
    if largest == 0 or not math.isfinite(largest) or abs(math.log2(largest)) <= near:
        return arrays, 0.0
    exponent = math.floor(math.log2(largest))
    # In two steps: one alone may be out of range.
    half = exponent // 2
    return [array * 2.0**-half * 2.0 ** (half - exponent) for array in arrays], float(exponent)


# Products of a few numbers of this log2 are in the range of single precision.
_NEAR = 20


def unscaled(xp: Namespace, array: Array, exponent: Array) -> Array:
    """The array times two to the exponent, in two steps that overflow only if the result does."""
    if library(xp) == "numpy" and not np.any(exponent):
        return array
    half = xp.floor(exponent / 2)
    # Beyond the range of the dtype the result is zero or infinite in any case; clipped, a zero stays.
    limit = 120.0 if dtype_name(array.dtype) in ("float32", "complex64") else 1000.0
    for part in (half, exponent - half):
        array = array * _power_of_two(xp, xp.clip(part, -limit, limit), array.dtype)
    return array


def _power_of_two(xp: Namespace, exponent: Array, dtype: DType) -> Array:
    return astype(xp, xp.pow(xp.full_like(exponent, 2.0), exponent), dtype)


def plus(xp: Namespace, a: Scaled | None, b: Scaled) -> Scaled:
    """The sum of two arrays that have powers of two beside them; without the first, the second."""
    if a is None:
        return b
    top = xp.maximum(a[1], b[1])
    return unscaled(xp, a[0], a[1] - top) + unscaled(xp, b[0], b[1] - top), top
