"""What TuckerFusion and TuckerConcat share: common factors, and samples projected on them."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tnsum.errors import NetworkError
from tnsum.fusion._concatenation import Concatenation
from tnsum.fusion._projection import projected
from tnsum.fusion._samples import Matrix, SampleTransformer, blocks_of


class CommonFactorTransformer(SampleTransformer):
    """Samples projected on common factors: leading left singular vectors of matrices side by side.

    What the matrices are, a subclass says; it adds those of a block of samples at a time.
    """

    common_factors_: list[Matrix]
    singular_values_: list[Matrix]
    n_samples_seen_: int
    _concatenations: list[Concatenation]

    @abstractmethod
    def _checked_common_ranks(self) -> tuple[int, ...]:
        """How many vectors each common factor has; all parameters are checked."""

    @abstractmethod
    def _add(self, samples: Matrix) -> None:
        """Put the matrices of some samples beside the others, whose values are left as they were."""

    def _begin(self) -> None:
        """Forget the samples seen so far."""

    def _turned(self, n: int, vectors: Matrix, values: Matrix) -> Matrix:
        """The singular vectors of mode n, those of equal values chosen by a rule."""
        return vectors

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the common factors of samples of shape (n, ...).

        Raises
        ------
        NetworkError
            A parameter is not what it must be, or samples do not have `sample_shape`.
        ModeError
            A rank is not a positive integer, exceeds its size, or there is not one for each mode.
        ValueError
            scikit-learn says what is wrong with `X`: no samples, entries that are not finite.
        """
        with self._whole():
            return self._learned_from(self._accepted(X, reset=True), anew=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Let further samples have a part in the common factors. Raises as `fit` does."""
        is_new = not hasattr(self, "common_factors_")
        with self._whole():
            return self._learned_from(self._accepted(X, reset=is_new), anew=is_new)

    def transform(self, X: Any) -> Matrix:
        """The features of samples, of shape (n, product of the common ranks).

        Raises
        ------
        NetworkError
            Samples have another shape than those that were fitted.
        NotFittedError, ValueError
            As scikit-learn says.
        """
        samples = self._accepted(X, reset=False)
        factors = [factor.astype(samples.dtype, copy=False) for factor in self.common_factors_]
        return np.reshape(projected(samples, factors), (len(samples), -1))

    def inverse_transform(self, X: Any) -> Matrix:
        """The samples as far as they lie in the common factors, of shape `(n, *sample_shape_)`.

        Raises
        ------
        NetworkError
            There are not as many features as `transform` gives.
        """
        check_is_fitted(self)
        features = np.asarray(X)
        if features.ndim != 2 or features.shape[1] != self._n_features_out:
            raise NetworkError(
                f"Features must have the shape (number of samples, {self._n_features_out}) that "
                f"transform gives; {features.shape} came."
            )
        factors = [factor.T for factor in self.common_factors_]
        if features.dtype == np.float32:
            factors = [factor.astype(np.float32, copy=False) for factor in factors]
        cores = np.reshape(features, (len(features), *(len(factor) for factor in factors)))
        return projected(cores, factors)

    @property
    def _n_features_out(self) -> int:
        return math.prod(factor.shape[1] for factor in self.common_factors_)

    def _learned_from(self, samples: Matrix, anew: bool) -> Self:
        common_ranks = self._checked_common_ranks()
        if anew:
            sizes = self.sample_shape_
            self._concatenations = [Concatenation.empty(size, samples.dtype) for size in sizes]
            self.n_samples_seen_ = 0
            self._begin()
        for block in blocks_of(samples):
            self._add(block)
        self.n_samples_seen_ += len(samples)
        self.common_factors_, self.singular_values_ = [], []
        for n, rank in enumerate(common_ranks):
            vectors, values = self._concatenations[n].left_vectors()
            vectors = self._turned(n, vectors, values)
            self.common_factors_.append(np.ascontiguousarray(vectors[:, :rank]))
            self.singular_values_.append(values)
        return self
