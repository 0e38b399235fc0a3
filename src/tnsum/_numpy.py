"""NumPy as an array namespace, quicker with small arrays.

NumPy follows the array API standard by itself. Some of its functions do nothing but look for the array's
own method, in three steps that take longer than the method; here they call it at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from tnsum._typing import Array, Namespace


def _reshape(array: Array, shape: Sequence[int]) -> Array:
    return array.reshape(shape)


def _permute_dims(array: Array, axes: Sequence[int]) -> Array:
    return array.transpose(axes)


def _matrix_transpose(array: Array) -> Array:
    return array.mT


def _namespace() -> Namespace:
    found = ModuleType("numpy", np.__doc__)
    quicker = {
        "reshape": _reshape,
        "permute_dims": _permute_dims,
        "matrix_transpose": _matrix_transpose,
    }
    found.__dict__.update(vars(np) | quicker)
    return found


NUMPY = _namespace()
