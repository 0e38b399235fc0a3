"""A kernel that does not tell a sample from its mirror image.

The mean of an RBF kernel over both images of both samples,

    k(x, y) = mean over f in {x, mirrored x}, g in {y, mirrored y} of exp(-gamma |f - g|^2),

is a kernel, but not the RBF kernel of any features: so a transformer puts the features of both images
side by side, and a callable takes the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from tnsum.errors import NetworkError
from tnsum.fusion._samples import Matrix


class Mirrored(TransformerMixin, BaseEstimator):
    """The features of each sample and those of its mirror image, side by side, for `MirrorKernel`.

    Parameters
    ----------
    transformer : estimator
        Finds the features; it is fitted to the samples as they are.
    axis : int
        The axis of the samples' array along which they are mirrored; 2 is an image's width.

    Attributes
    ----------
    transformer_ : estimator

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from tnsum.fusion import FactorFusion
    >>> images = np.random.default_rng(0).random((20, 8, 8, 3))
    >>> model = make_pipeline(Mirrored(FactorFusion()), SVC(kernel=MirrorKernel(0.5), C=100))
    >>> model = model.fit(images, np.arange(20) % 2)
    >>> bool(np.all(model.predict(images) == model.predict(images[:, :, ::-1])))
    True
    """

    def __init__(self, transformer: Any, axis: int = 2) -> None:
        self.transformer = transformer
        self.axis = axis

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer to samples. Raises as it does."""
        self.transformer_ = clone(self.transformer).fit(X, y)
        return self

    def transform(self, X: Any) -> Matrix:
        """Twice as many features as the transformer gives.

        Raises
        ------
        NetworkError
            Samples have no such axis: they must come as tensors.
        """
        check_is_fitted(self)
        samples = np.asarray(X)
        if not 0 < self.axis < samples.ndim:
            raise NetworkError(
                f"axis must be one of the axes 1 to {samples.ndim - 1} of samples of shape "
                f"{samples.shape[1:]}; {self.axis} came. Images must come as tensors, not as rows."
            )
        both = samples, np.flip(samples, axis=self.axis)
        return np.concatenate([self.transformer_.transform(some) for some in both], axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> Matrix:
        """The transformer's names, and each again after `mirrored_`; `set_output` needs them."""
        check_is_fitted(self)
        names = self.transformer_.get_feature_names_out(input_features)
        return np.concatenate([names, [f"mirrored_{name}" for name in names]]).astype(object)


@dataclass(frozen=True)
class MirrorKernel:
    """The mean of an RBF kernel over both images of samples that `Mirrored` has transformed.

    Parameters
    ----------
    gamma : float
    """

    gamma: float = 1.0

    def __call__(self, X: Matrix, Y: Matrix) -> Matrix:
        """The kernel matrix of shape (rows of X, rows of Y)."""
        total = np.zeros((len(X), len(Y)))
        for f in np.split(X, 2, axis=1):
            for g in np.split(Y, 2, axis=1):
                total += np.exp(-self.gamma * euclidean_distances(f, g, squared=True))
        return total / 4
