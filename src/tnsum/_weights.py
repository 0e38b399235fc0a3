"""Weights of summands: numbers, or arrays of the summands' library that may carry gradients.

A weight is weak in precision (a float64 weight leaves a float32 network alone) but not in kind (a
complex weight makes the sum complex), and it is never turned into a Python number.
"""

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np

from tnsum._arrays import (
    DTYPES,
    as_array,
    astype,
    common_namespace,
    device_of,
    dtype_name,
    is_array,
    is_complex,
    is_number,
    namespace,
    python_number,
    real_dtype,
    result_dtype,
    widest_real,
)
from tnsum._typing import Array, DType, Namespace, Scalar
from tnsum.errors import NetworkError


def checked_weights(weights: Sequence[Scalar] | Array, n: int, beside: Array) -> list[Scalar]:
    """One weight for each of n summands; `beside` is an array of the summands."""
    if is_array(weights):
        weights = checked_weight_array(weights, n, beside)
        return [weights[k] for k in range(n)]
    if not isinstance(weights, Iterable) or isinstance(weights, Mapping | Set | str | bytes):
        raise NetworkError(
            f"weights must be a sequence of numbers or an array; {type(weights).__name__} came."
        )
    numbers = list(weights)
    if len(numbers) != n:
        raise NetworkError(
            f"There must be one weight per summand: {n} summands and {len(numbers)} weights came."
        )
    return [checked_weight(weight, k, beside) for k, weight in enumerate(numbers)]


def checked_weight_array(weights: Array, n: int, beside: Array) -> Array:
    """An array of n weights."""
    if tuple(weights.shape) != (n,):
        raise NetworkError(
            f"There must be one weight per summand: {n} summands and weights of shape "
            f"{tuple(weights.shape)} came."
        )
    return _as_floating(weights, "weights", beside)


def checked_weight(weight: Scalar, number: int, beside: Array) -> Scalar:
    """A single weight: a number, or an array without axes."""
    if is_number(weight):
        return python_number(weight)
    if not is_array(weight) or weight.ndim != 0:
        came = f"of shape {tuple(weight.shape)}" if is_array(weight) else f"{weight!r}"
        raise NetworkError(f"A weight must be a single number; weight {number} is {came}.")
    return _as_floating(weight, f"weight {number}", beside)


def _as_floating(weights: Array, name: str, beside: Array) -> Array:
    """Integers as real numbers; real and complex numbers as they are."""
    xp = common_namespace({"the summand": beside, name: weights})
    kind = dtype_name(weights.dtype)
    if kind in DTYPES:
        return weights
    if not kind.startswith(("int", "uint", "bool", "float", "bfloat")):
        raise NetworkError(f"Weights must be real or complex numbers; an array of {kind} came.")
    return xp.astype(weights, widest_real(xp))


def is_complex_weight(weight: Scalar) -> bool:
    """Whether a number or an array of numbers is complex."""
    # Most are plain numbers, and there may be many.
    return type(weight) not in (int, float) and _is_complex(weight)


def _is_complex(weight: Scalar) -> bool:
    return isinstance(weight, complex | np.complexfloating) or (
        is_array(weight) and is_complex(weight.dtype)
    )


def inverse(weight: Scalar, beside: Array) -> Scalar:
    """One over a weight, in no less than the precision of `beside`."""
    if is_number(weight):
        return 1 / python_number(weight)
    checked = checked_weight(weight, 0, beside)
    xp = namespace(checked)
    return 1 / astype(xp, checked, result_dtype(xp, [checked.dtype, real_dtype(xp, beside.dtype)]))


def multiplied(a: Scalar, b: Scalar) -> Scalar:
    """The product of two weights, each a number or an array; a complex one makes it complex."""
    if is_number(a) and is_number(b):
        return python_number(a) * python_number(b)
    if is_number(a):
        a, b = b, a
    if is_number(b):
        if type(b) is int and b == 1:
            return a
        xp = namespace(a)
        dtype = result_dtype(xp, [a.dtype], is_complex_weight(b))
        return astype(xp, a, dtype) * python_number(b)
    xp = namespace(a)
    dtype = result_dtype(xp, [a.dtype, b.dtype])
    return astype(xp, a, dtype) * astype(xp, b, dtype)


def joined_weights(
    weights: Sequence[Scalar], counts: Sequence[int], beside: Array, dtype: DType = None
) -> Array:
    """All weights in one array, `counts` of each, in `dtype` (complex if a weight is).

    Each is a number, an array without axes, or an array of as many weights as its count.
    """
    xp, device = namespace(beside), device_of(beside)
    any_complex = any(map(is_complex_weight, weights))
    dtype = result_dtype(xp, [dtype or widest_real(xp)], any_complex)
    if len(weights) == 1 and is_number(weights[0]):
        return xp.full((counts[0],), python_number(weights[0]), dtype=dtype, device=device)
    if all(map(is_number, weights)):
        pairs = zip(weights, counts, strict=True)
        numbers = [python_number(weight) for weight, n in pairs for _ in range(n)]
        return xp.asarray(numbers, dtype=dtype, device=device)
    parts = []
    for weight, n in zip(weights, counts, strict=True):
        if is_number(weight):
            parts.append(xp.full((n,), python_number(weight), dtype=dtype, device=device))
        else:
            part = astype(xp, weight, dtype)
            parts.append(xp.broadcast_to(part, (n,)) if part.ndim == 0 else part)
    return xp.concat(parts)


def weighted(xp: Namespace, array: Array, weight: Scalar) -> Array:
    """An array times its weight; of a stack, times one weight per network or one for all."""
    if type(weight) is int and weight == 1:
        return array
    if is_array(weight):
        weight = astype(xp, weight, array.dtype)
        weight = xp.reshape(weight, (*weight.shape, *(1,) * (array.ndim - weight.ndim)))
    return as_array(array * weight)
