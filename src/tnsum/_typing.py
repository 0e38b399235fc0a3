"""Aliases used in annotations."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

# An array of any library that follows the array API standard, and that library's namespace. The
# standard has no run-time type to check against, so these two names are for the reader.
Array: TypeAlias = Any
Namespace: TypeAlias = Any
DType: TypeAlias = Any
Device: TypeAlias = Any

# A Python or NumPy number, or an array without axes that may carry a gradient.
Scalar: TypeAlias = Any

Modes: TypeAlias = Sequence[str]
# What the contraction engine calls a mode: a mode's name, or a private label beside the names.
Label: TypeAlias = Hashable
Operand: TypeAlias = tuple[Array, tuple[Label, ...]]
NodeArrays: TypeAlias = Mapping[str, Array]
