"""CommonIndividual: what a sample has in common with all, and what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tnsum.fusion._samples import Matrix, Ranks, SampleTransformer
from tnsum.fusion._tucker_fusion import TuckerFusion


@dataclass(frozen=True)
class Parts:
    """Samples split in two.

    Attributes
    ----------
    common : ndarray of shape (n, ...)
        The samples in the common factors.
    individual : ndarray of shape (n, ...)
        The rest; it is orthogonal to the common part.
    common_energy, individual_energy : ndarray of shape (n,)
        The part of the squared norm that lies in each; they add up to one, or to zero for a zero sample.
    """

    common: Matrix
    individual: Matrix
    common_energy: Matrix
    individual_energy: Matrix


class CommonIndividual(SampleTransformer):
    """Samples split into the part in their common factors and the individual rest.

    `transform` gives the individual rest of samples as rows; `split` gives both parts and the energies.

    Parameters
    ----------
    ranks, common_ranks, weighting, decomposition, sample_shape
        As of `TuckerFusion`, which finds the common factors.

    Attributes
    ----------
    fusion_ : TuckerFusion
    common_factors_ : list of ndarray
    sample_shape_ : tuple of int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pattern = np.outer(np.arange(6.0), np.ones(5))
    >>> samples = pattern + 0.1 * rng.standard_normal((30, 6, 5))
    >>> parts = CommonIndividual(ranks=1).fit(samples).split(samples)
    >>> bool(parts.common_energy.mean() > 0.99)
    True
    >>> bool(np.allclose(parts.common + parts.individual, samples))
    True
    """

    fusion_: TuckerFusion

    def __init__(
        self,
        ranks: Ranks = 3,
        common_ranks: Ranks | None = None,
        weighting: str = "norm",
        decomposition: str = "hosvd",
        sample_shape: Sequence[int] | None = None,
    ) -> None:
        self.ranks = ranks
        self.common_ranks = common_ranks
        self.weighting = weighting
        self.decomposition = decomposition
        self.sample_shape = sample_shape

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the common factors. Raises as `TuckerFusion.fit`."""
        with self._whole():
            samples = self._accepted(X, reset=True)
            parameters = self.ranks, self.common_ranks, self.weighting, self.decomposition
            self.fusion_ = TuckerFusion(*parameters).fit(samples)
            self.common_factors_ = self.fusion_.common_factors_
        return self

    def split(self, X: Any) -> Parts:
        """Samples split in two, and how much energy each part holds. Raises as `transform` does."""
        samples = self._accepted(X, reset=False)
        features = self.fusion_.transform(samples)
        common = self.fusion_.inverse_transform(features)
        individual = samples - common
        # Squares of huge and of tiny numbers are out of range.
        largest = np.max(np.abs(np.reshape(samples, (len(samples), -1))), axis=1)[:, None]
        largest = np.where(largest > 0, largest, 1)
        energies = [
            np.sum((np.reshape(part, (len(part), -1)) / largest) ** 2, axis=1)
            for part in (features, individual)
        ]
        total = np.where(sum(energies) > 0, sum(energies), 1)
        return Parts(common, individual, energies[0] / total, energies[1] / total)

    def transform(self, X: Any) -> Matrix:
        """The individual rest of samples, as rows. Raises as `TuckerFusion.transform`."""
        rest = self.split(X).individual
        return np.reshape(rest, (len(rest), -1))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)
