"""FactorFusion: the factors of each sample, seen in the common factors of all.

The projection of `TuckerFusion` keeps of a sample its core. Here its factors count. Along mode n let U
and s be all singular vectors and values of a sample's unfolding. With the common factor C_n,

    F_n = C_n^T U diag(s^p) U^T C_n,        s^p scaled to unit norm,

is a symmetric matrix: how the sample's energy lies along mode n, in the common basis, whatever the signs
and the order of its own vectors. Its upper triangle, off-diagonal entries times sqrt(2), is a block of
features, in which Euclidean distance is Frobenius distance d_n. Blocks are scaled such that

    exp(-g |x - y|^2)  =  exp(-2 g mean over n of d_n^2 / mean(d_n^2)),

with the mean of d_n^2 over all pairs of training samples: every mode counts alike, and g near one is
right whatever the data.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tnsum.errors import NetworkError
from tnsum.fusion._samples import Matrix, Ranks, SampleTransformer, blocks_of, checked_ranks
from tnsum.fusion._tucker_fusion import TuckerFusion


class FactorFusion(SampleTransformer):
    """The factors of samples in the common factors of all, as features for an RBF kernel.

    Parameters
    ----------
    ranks : int or sequence of int
        The ranks of the networks from whose sum the common factors are found, as of `TuckerFusion`.
    common_ranks : int or sequence of int
        How many vectors the common factors have. An integer is lowered to the size of each mode.
    power : float
        The power of the singular values: the smaller it is, the more do weak directions count.
    sample_shape : sequence of int, optional
        The shape of samples that come as rows of a matrix; without it, they are vectors.

    Attributes
    ----------
    common_factors_ : list of ndarray
    scales_ : ndarray
        What the features of each mode are multiplied by.
    sample_shape_ : tuple of int
    n_features_in_ : int

    Notes
    -----
    Features are those of an RBF kernel with gamma near 1: `SVC(kernel="rbf", gamma=1.0, C=100)`. They
    are quadratic in the number of common vectors. A mode along which all training samples are alike, as
    the colours of grey images, has features that are zero.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((20, 8, 8, 3))
    >>> FactorFusion(common_ranks=4).fit_transform(images).shape
    (20, 26)
    """

    common_factors_: list[Matrix]
    scales_: Matrix

    def __init__(
        self,
        ranks: Ranks = 3,
        common_ranks: Ranks = 16,
        power: float = 0.75,
        sample_shape: Sequence[int] | None = None,
    ) -> None:
        self.ranks = ranks
        self.common_ranks = common_ranks
        self.power = power
        self.sample_shape = sample_shape

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the common factors, and how far apart samples lie in them. Raises as `TuckerFusion`."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """The features of the samples that are fitted. Raises as `fit` does."""
        with self._whole():
            samples = self._accepted(X, reset=True)
            is_number = isinstance(self.power, numbers.Real) and not isinstance(self.power, bool)
            if not is_number or not 0 < self.power < np.inf:
                raise NetworkError(f"power must be a positive number; {self.power!r} came.")
            common_ranks = checked_ranks("common_ranks", self.common_ranks, self.sample_shape_)
            fusion = TuckerFusion(self.ranks, common_ranks).fit(samples)
            self.common_factors_ = fusion.common_factors_
            blocks = factor_blocks(samples, self.common_factors_, self.power)
            self.scales_ = scales_of(blocks, self.power)
            return joined(blocks, self.scales_)

    def transform(self, X: Any) -> Matrix:
        """The features of samples, of shape (n, features). Raises as `TuckerFusion.transform`."""
        samples = self._accepted(X, reset=False)
        return joined(factor_blocks(samples, self.common_factors_, self.power), self.scales_)

    @property
    def _n_features_out(self) -> int:
        return n_features_of([factor.shape[1] for factor in self.common_factors_])


def n_features_of(ranks: Sequence[int]) -> int:
    """How many features common factors of these ranks give."""
    return sum(rank * (rank + 1) // 2 for rank in ranks)


def factor_blocks(samples: Matrix, factors: Sequence[Matrix], power: float) -> list[Matrix]:
    """The features of each mode, before they are scaled."""
    found = []
    for n, factor in enumerate(factors):
        some = blocks_of(samples, samples.shape[n + 1] ** 2)
        found.append(np.concatenate([in_factor(energies(x, n, power), factor) for x in some]))
    return found


def energies(samples: Matrix, n: int, power: float) -> Matrix:
    """U diag(s^p) U^T of each sample along mode n, s^p scaled to unit norm; zero of a zero sample."""
    unfolded = np.moveaxis(samples, n + 1, 1).astype(float)
    unfolded = np.reshape(unfolded, (*unfolded.shape[:2], -1))
    # Squares of huge and of tiny numbers are out of range; only ratios matter.
    largest = np.max(np.abs(unfolded), axis=(1, 2), keepdims=True)
    unfolded = unfolded / np.where(largest > 0, largest, 1)
    squares, vectors = np.linalg.eigh(np.matmul(unfolded, np.swapaxes(unfolded, 1, 2)))
    # The smallest are rounding, which a small power would make large.
    squares = np.where(squares > _rounding(squares.shape[1]) * squares[:, -1:], squares, 0)
    values = squares ** (power / 2)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    values = values / np.where(norms > 0, norms, 1)
    found: Matrix = np.matmul(vectors * values[:, None, :], np.swapaxes(vectors, 1, 2))
    return found.astype(samples.dtype)


def _rounding(size: int) -> float:
    """What an eigenvalue of a matrix is uncertain by, relative to the largest."""
    return 8 * size * float(np.finfo(float).eps)


def in_factor(matrices: Matrix, factor: Matrix) -> Matrix:
    """C^T E C of symmetric matrices as vectors of equal length: (m, rank (rank + 1) / 2)."""
    factor = factor.astype(matrices.dtype, copy=False)
    small = np.matmul(factor.T, np.matmul(matrices, factor))
    rows, columns = np.triu_indices(factor.shape[1])
    weights = np.where(rows == columns, 1, np.sqrt(2)).astype(matrices.dtype)
    found: Matrix = small[:, rows, columns] * weights
    return found


def scales_of(blocks: Sequence[Matrix], power: float) -> Matrix:
    """What each mode's features are multiplied by: 1 / sqrt(modes times their variance).

    A mode whose features do not vary by more than rounding does not count: zero.
    """
    # The mean squared distance of all pairs is twice the variance.
    variances = np.array([np.var(block, axis=0, dtype=float).sum() for block in blocks])
    noise = [
        max(_rounding(block.shape[1]) ** (power / 2), 100 * float(np.finfo(block.dtype).eps))
        for block in blocks
    ]
    vary = variances > np.array(noise) ** 2
    scales: Matrix = np.where(
        vary, 1 / np.sqrt(max(1, vary.sum()) * np.where(vary, variances, 1)), 0
    )
    return scales


def joined(blocks: Sequence[Matrix], scales: Matrix) -> Matrix:
    """The features of all modes side by side, each mode times its scale."""
    pairs = zip(blocks, scales, strict=True)
    return np.concatenate([block * block.dtype.type(scale) for block, scale in pairs], axis=1)
