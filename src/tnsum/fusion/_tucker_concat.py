"""TuckerConcat: all samples as one tensor, of one order more: the paper's baseline TKD-CONCAT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tnsum.fusion._common_factors import CommonFactorTransformer
from tnsum.fusion._samples import Matrix, Ranks, checked_ranks


class TuckerConcat(CommonFactorTransformer):
    """Samples projected on the factors of the tensor of them all, of shape (n, ...), by HOSVD.

    A factor holds the leading left singular vectors of the unfoldings of all samples, side by side.

    Parameters
    ----------
    ranks : int or sequence of int
        How many vectors the factors have. An integer is lowered to the size of each mode.
    sample_shape : sequence of int, optional
        The shape of samples that come as rows of a matrix; without it, they are vectors.

    Attributes
    ----------
    common_factors_ : list of ndarray
        For each mode a matrix of shape (size, rank), with orthonormal columns.
    singular_values_ : list of ndarray
        The singular values of each unfolding, largest first, all of them.
    sample_shape_ : tuple of int
    n_samples_seen_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((20, 8, 8, 3))
    >>> TuckerConcat(ranks=3).fit_transform(images).shape
    (20, 27)
    """

    def __init__(self, ranks: Ranks = 3, sample_shape: Sequence[int] | None = None) -> None:
        self.ranks = ranks
        self.sample_shape = sample_shape

    def _checked_common_ranks(self) -> tuple[int, ...]:
        return checked_ranks("ranks", self.ranks, self.sample_shape_)

    def _add(self, samples: Matrix) -> None:
        unfolded = (np.moveaxis(samples, n + 1, 0) for n in range(samples.ndim - 1))
        self._concatenations = [
            before.beside(np.reshape(matrix, (len(matrix), -1)))
            for before, matrix in zip(self._concatenations, unfolded, strict=True)
        ]
