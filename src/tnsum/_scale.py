"""Arrays with a power of two beside them, so that long products neither overflow nor underflow.

The power is the exponent's, a real number in an array of its own, or one for each network of a stack.
That of zero is far below any other, so that zero sets no scale where terms are added. No gradient flows
through a power of two: it is taken out here and multiplied back there.
"""

import math
from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np

from tnsum._arrays import (
    astype,
    constant,
    device_of,
    dtype_name,
    is_on_host,
    library,
    real_dtype,
)
from tnsum._matrices import length
from tnsum._typing import Array, DType, Label, Namespace, Operand

Scaled: TypeAlias = tuple[Array, Array]
"""An array, and the exponent of the power of two that it is to be multiplied by."""

# The exponent of zero: below any other, so that it sets no scale.
OF_ZERO = -(2.0**24)


def reach(dtype: DType) -> float:
    """The log2 that all factors of a product may have together, such that its square is in range too."""
    return 30.0 if dtype_name(dtype) in ("float32", "complex64") else 60.0


def rescaled(xp: Namespace, array: Array) -> tuple[Array, Array]:
    """The array scaled to a largest entry near one if that was extreme, and the log2 taken out.

    Nothing is taken out of zero: this is for factors, not for terms.
    """
    array, exponent = rescaled_if_extreme(xp, array, None, extreme(array.dtype))
    if exponent is None:
        return array, np.float64(0)
    return array, xp.where(exponent == OF_ZERO, xp.zeros_like(exponent), exponent)


def extreme(dtype: DType) -> float:
    """The log2 beyond which an array is rescaled: the product of two others is in range, and squared."""
    return 30.0 if dtype_name(dtype) in ("float32", "complex64") else 300.0


def rescaled_each(xp: Namespace, array: Array, axis: int, limit: float) -> tuple[Array, Array]:
    """The array with its part at each index of an axis near one, and the log2 taken out of each.

    Only a log2 beyond the limit is taken out. That of zero is OF_ZERO.
    """
    scaled, exponents = rescaled_if_extreme(xp, array, axis, limit)
    return scaled, np.zeros(array.shape[axis]) if exponents is None else exponents


def rescaled_if_extreme(
    xp: Namespace, array: Array, axis: int | None, limit: float
) -> tuple[Array, Array | None]:
    """The same, or for the whole array if there is no axis; the exponents are None where all are zero,
    as far as one look tells (NumPy).
    """
    if is_on_host(array) and _is_near(array, axis, limit):
        return array, None
    others = tuple(k for k in range(array.ndim) if k != axis)
    largest = xp.abs(constant(xp, array))
    largest = xp.max(largest, axis=others, keepdims=True) if others else largest
    usable = (largest > 0) & xp.isfinite(largest)
    exponents = xp.floor(xp.log2(xp.where(usable, largest, xp.ones_like(largest))))
    exponents = xp.where(xp.abs(exponents) > limit, exponents, xp.zeros_like(exponents))
    array = unscaled(xp, array, -exponents)
    exponents = xp.where(largest == 0, xp.full_like(exponents, OF_ZERO), exponents)
    return array, xp.reshape(exponents, () if axis is None else (array.shape[axis],))


def _is_near(array: Array, axis: int | None, limit: float) -> bool:
    """Whether the log2 of the norm of every part of one of NumPy's arrays is within a limit of zero."""
    low, high = 4.0**-limit, 4.0**limit
    if axis is None:
        flat = array.ravel(order="K")
        return bool(low <= np.vdot(flat, flat).real <= high)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _squares(array, axis)
    # No comparison holds with what is no number.
    if squares.shape[0] <= _FEW:
        return all(low <= square <= high for square in squares.tolist())
    return bool(squares.min() >= low and squares.max() <= high)


# So many numbers are compared one by one in less time than a reduction takes to start.
_FEW = 32


def _squares(array: Array, axis: int) -> Array:
    """The squared norm of the part at each index of an axis."""
    n = array.shape[axis]
    before = math.prod(array.shape[:axis])
    if before == 1:
        flat = array.reshape(n, -1)
        return np.vecdot(flat, flat).real
    flat = array.reshape(before, -1).T
    squares: Array = np.vecdot(flat, flat).real
    return squares if squares.shape[0] == n else squares.reshape(n, -1).sum(axis=1)


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
    # Beyond the range of the dtype the result is zero or infinite in any case; clipped, a zero stays.
    limit = 120.0 if dtype_name(array.dtype) in ("float32", "complex64") else 1000.0
    if library(xp) == "numpy":
        largest = np.max(np.abs(exponent))
        if largest == 0:
            return array
        if largest <= limit:
            return array * _power_of_two(xp, exponent, array.dtype)
    half = xp.floor(exponent / 2)
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


def added(xp: Namespace, numbers: Array, exponents: Array) -> Scaled:
    """The sum of numbers, each with a power of two beside it."""
    top = xp.max(exponents)
    return xp.sum(unscaled(xp, numbers, exponents - top)), top


def beside(xp: Namespace, number: Array, exponent: float) -> Array:
    """A power of two that is a Python number, as an array that may stand beside another."""
    dtype = real_dtype(xp, number.dtype)
    return xp.asarray(exponent, dtype=dtype, device=device_of(number))


# powers of two that networks of a stack have each for itself, as arrays whose axes have names


def together(xp: Namespace, a: Operand | None, b: Operand | None) -> Operand | None:
    """The powers of a product of two; None stands for none."""
    if a is None or b is None:
        return b if a is None else a
    modes = (*a[1], *(m for m in b[1] if m not in a[1]))
    return _along(xp, a, modes) + _along(xp, b, modes), modes


def multiplied_in(
    xp: Namespace, operand: Operand, powers: Operand | None, keep: Collection[Label]
) -> tuple[Operand, Operand | None]:
    """An operand times those powers that belong to modes about to be summed, and the others.

    Along a mode that is summed only the largest is left, which is that of the sum.
    """
    if powers is None or all(mode in keep for mode in powers[1]):
        return operand, powers
    (array, modes), (exponents, held) = operand, powers
    summed = tuple(k for k, mode in enumerate(held) if mode not in keep)
    top = xp.max(exponents, axis=summed, keepdims=True)
    array = unscaled(xp, array, _along(xp, (exponents - top, held), modes))
    kept = tuple(k for k, mode in enumerate(held) if mode in keep)
    top = xp.reshape(top, tuple(exponents.shape[k] for k in kept))
    return (array, modes), (top, tuple(held[k] for k in kept))


def spread(
    xp: Namespace, powers: Operand | None, modes: Sequence[Label], shape: Sequence[int], like: Array
) -> Array:
    """The powers along modes of these sizes, with none elsewhere; zeros for None."""
    zeros = xp.zeros(tuple(shape), dtype=real_dtype(xp, like.dtype), device=device_of(like))
    return zeros if powers is None else zeros + _along(xp, powers, modes)


def _along(xp: Namespace, powers: Operand, modes: Sequence[Label]) -> Array:
    """The powers with their axes in the order of modes, and axes of size one for the modes they lack."""
    array, held = powers
    if tuple(held) == tuple(modes):
        return array
    held_in_order = [mode for mode in modes if mode in held]
    array = xp.permute_dims(array, tuple(held.index(mode) for mode in held_in_order))
    sizes = dict(zip(held_in_order, array.shape, strict=True))
    return xp.reshape(array, tuple(sizes.get(mode, 1) for mode in modes))
