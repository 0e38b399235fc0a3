"""Samples of any order as scikit-learn hands them over: N-D arrays, or rows of a matrix."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tnsum.errors import ModeError, NetworkError

Matrix: TypeAlias = np.ndarray[Any, Any]
Ranks: TypeAlias = int | Sequence[int]

# The numbers of all samples that are worked on at once.
_BLOCK = 2**21


class SampleEstimator(TransformerMixin, BaseEstimator):
    """What the transformers of this package have in common.

    Samples come as an array whose first axis counts them. As rows of a matrix they are vectors, or
    tensors of shape `sample_shape`, in C order. What is learned from tensors can be applied to rows of
    as many numbers, and the other way round. A fit that fails leaves what was learned before.
    """

    sample_shape: Sequence[int] | None
    sample_shape_: tuple[int, ...]

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A block that learns all or nothing: if it fails, the estimator is as it was before.

        Values that were learned are replaced in it, never changed.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _accepted(self, X: Any, reset: bool) -> Matrix:
        """The samples as an array of their own shape; `reset` if it is now that it is learned."""
        shape = np.shape(X) if isinstance(X, np.ndarray | list | tuple) else getattr(X, "shape", ())
        has_axes = len(shape) > 2
        if not reset:
            check_is_fitted(self)
        rows = np.reshape(np.asarray(X), (shape[0], math.prod(shape[1:]))) if has_axes else X
        rows = validate_data(self, rows, reset=reset, dtype=[np.float64, np.float32])
        if reset:
            self.sample_shape_ = self._learned_shape(shape[1:] if has_axes else None, rows.shape[1])
        elif has_axes and tuple(shape[1:]) != self.sample_shape_:
            raise NetworkError(
                f"Samples must have the shape {self.sample_shape_} of those that were fitted; "
                f"{tuple(shape[1:])} came."
            )
        return np.reshape(rows, (len(rows), *self.sample_shape_))

    def _learned_shape(self, came: tuple[int, ...] | None, n_features: int) -> tuple[int, ...]:
        if self.sample_shape is None:
            return came or (n_features,)
        wanted = tuple(self.sample_shape)
        if not all(isinstance(n, numbers.Integral) and n > 0 for n in wanted):
            raise NetworkError(
                f"sample_shape must be positive integers; {self.sample_shape!r} came."
            )
        if came is not None and came != wanted:
            raise NetworkError(
                f"Samples must have sample_shape {wanted}; those of shape {came} came."
            )
        if math.prod(wanted) != n_features:
            raise NetworkError(
                f"Samples must have as many numbers as sample_shape {wanted}, {math.prod(wanted)}; "
                f"{n_features} came."
            )
        return tuple(int(n) for n in wanted)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SampleTransformer(ClassNamePrefixFeaturesOutMixin, SampleEstimator):
    """Those that give rows of features, which have names."""


def blocks_of(samples: Matrix, per_sample: int = 0) -> Iterator[Matrix]:
    """Some samples at a time; `per_sample` numbers are made of each, if that is more than it has."""
    step = max(1, _BLOCK // max(per_sample, math.prod(samples.shape[1:])))
    return (samples[start : start + step] for start in range(0, len(samples), step))


def checked_ranks(name: str, ranks: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """A rank for each mode: an integer is lowered to each size, one for each must fit."""
    are_many = isinstance(ranks, Sequence | np.ndarray) and not isinstance(ranks, str)
    wanted = tuple(ranks) if are_many else (ranks,) * len(shape)
    if len(wanted) != len(shape):
        raise ModeError(
            f"{name} must be one integer, or one for each of the {len(shape)} modes of samples of shape "
            f"{tuple(shape)}; {len(wanted)} came."
        )
    for rank, size in zip(wanted, shape, strict=True):
        is_integer = isinstance(rank, numbers.Integral) and not isinstance(rank, bool)
        if not is_integer or int(rank) < 1:
            raise ModeError(f"{name} must be positive integers; {rank!r} came.")
        if are_many and int(rank) > size:
            raise ModeError(
                f"{name} must be at most the sizes {tuple(shape)} of the modes; {wanted} came. A single "
                f"integer is lowered to each size."
            )
    return tuple(min(int(rank), size) for rank, size in zip(wanted, shape, strict=True))
