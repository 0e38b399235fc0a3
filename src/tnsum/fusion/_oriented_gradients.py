"""OrientedGradients: images as channels of edges, one for each direction.

At every pixel the gradient of the colour that changes most is taken, its strength shared between the two
nearest of the orientations 0, pi/n, 2 pi/n, ... (an edge and its negative are alike), the root of it
taken, so that a few strong edges do not outweigh all others, and smoothed. The result is an image again,
with a channel per orientation: a second tensor of the same object, to be fused as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tnsum._checks import checked_integer
from tnsum.fusion._samples import Matrix, SampleEstimator, blocks_of


class OrientedGradients(SampleEstimator):
    """Images of shape (rows, columns, ...) as images of oriented edges, (rows, columns, orientations).

    Nothing is learned but the shape. Vectors are images of one row.

    Parameters
    ----------
    n_orientations : int
    sample_shape : sequence of int, optional
        The shape of samples that come as rows of a matrix; without it, they are vectors.

    Attributes
    ----------
    sample_shape_ : tuple of int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline, make_union
    >>> from tnsum.fusion import FactorFusion
    >>> images = np.random.default_rng(0).random((20, 16, 16, 3))
    >>> OrientedGradients().fit_transform(images).shape
    (20, 16, 16, 8)
    >>> both = make_union(FactorFusion(), make_pipeline(OrientedGradients(), FactorFusion()))
    >>> both.fit_transform(images).shape
    (20, 586)
    """

    def __init__(self, n_orientations: int = 8, sample_shape: Sequence[int] | None = None) -> None:
        self.n_orientations = n_orientations
        self.sample_shape = sample_shape

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the shape of samples.

        Raises
        ------
        NetworkError
            `n_orientations` is not a positive integer, or samples do not have `sample_shape`.
        ValueError
            scikit-learn says what is wrong with `X`.
        """
        checked_integer("n_orientations", self.n_orientations, 1)
        with self._whole():
            self._accepted(X, reset=True)
        return self

    def transform(self, X: Any) -> Matrix:
        """The oriented edges of samples. Raises as `TuckerFusion.transform` does."""
        samples = self._accepted(X, reset=False)
        shape = self.sample_shape_ if len(self.sample_shape_) > 1 else (1, *self.sample_shape_)
        images = np.reshape(samples, (len(samples), *shape[:2], -1))
        found = np.concatenate([_edges(some, self.n_orientations) for some in blocks_of(images)])
        return found if len(self.sample_shape_) > 1 else np.reshape(found, (len(samples), -1))


def _edges(images: Matrix, n: int) -> Matrix:
    down, right = _slope(images, 1), _slope(images, 2)
    strength = np.hypot(down, right)
    strongest = np.argmax(strength, axis=-1)[..., None]
    down, right, strength = (
        np.take_along_axis(array, strongest, axis=-1)[..., 0] for array in (down, right, strength)
    )
    place = np.arctan2(down, right) % np.pi * (n / np.pi)
    below = np.floor(place)
    part = place - below
    found = np.zeros((*strength.shape, n), dtype=images.dtype)
    for k in range(n):
        # An angle rounded up to pi is that of zero.
        found[..., k] += strength * (1 - part) * (below % n == k)
        found[..., k] += strength * part * ((below + 1) % n == k)
    return _smoothed(_smoothed(np.sqrt(found), 1), 2)


def _slope(images: Matrix, axis: int) -> Matrix:
    """Half of the difference of a pixel's two neighbours; zero at the border."""
    found = np.zeros_like(images)
    inner = [slice(None)] * images.ndim
    inner[axis] = slice(1, -1)
    size = images.shape[axis]
    if size > 2:
        after = np.take(images, np.arange(2, size), axis=axis)
        before = np.take(images, np.arange(size - 2), axis=axis)
        found[tuple(inner)] = (after - before) / 2
    return found


def _smoothed(images: Matrix, axis: int) -> Matrix:
    """A quarter of each neighbour and half of the pixel; the border counts for what is beyond it."""
    places = np.arange(images.shape[axis])
    before = np.take(images, np.maximum(places - 1, 0), axis=axis)
    after = np.take(images, np.minimum(places + 1, len(places) - 1), axis=axis)
    found: Matrix = (before + 2 * images + after) / 4
    return found
