"""TuckerFusion: the paper's Algorithm 1, for samples of any order.

Each sample X_m becomes a Tucker network with core G_m and factors A_m, B_m, ... Its norm eta is moved
from the core to the N factors, eta^(1/N) to each. In the sum of all networks the factors lie side by
side,

    A_d = [ eta_1^(1/N) A_1 | eta_2^(1/N) A_2 | ... ],

and their leading left singular vectors A_c span what the samples have in common along that mode: the
*common factors*. The features of a sample are its projection X x_1 A_c^T x_2 B_c^T ..., vectorised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tnsum.decomposition import METHODS, decompose_stack
from tnsum.errors import NetworkError
from tnsum.fusion._common_factors import CommonFactorTransformer
from tnsum.fusion._concatenation import separated
from tnsum.fusion._samples import Matrix, Ranks, checked_ranks
from tnsum.network import NetworkStack
from tnsum.topology import listed

_WEIGHTINGS = ("norm", "equal")
# The square of this, many times over, is a number yet.
_LARGE = 1e100


class TuckerFusion(CommonFactorTransformer):
    """Samples projected on the factors that their Tucker networks have in common.

    Parameters
    ----------
    ranks : int or sequence of int
        The ranks of the samples' networks. An integer is lowered to the size of each mode.
    common_ranks : int or sequence of int, optional
        How many vectors the common factors have; as many as `ranks` unless given.
    weighting : {"norm", "equal"}
        How much a sample counts: as its norm, as in the paper, or all alike. A zero sample does not.
    decomposition : {"hosvd", "sequential", "hooi"}
        How networks are found; see `tnsum.decompose`.
    sample_shape : sequence of int, optional
        The shape of samples that come as rows of a matrix; without it, they are vectors.

    Attributes
    ----------
    common_factors_ : list of ndarray
        For each mode a matrix of shape (size, common rank), with orthonormal columns.
    singular_values_ : list of ndarray
        The singular values of each concatenated factor, largest first, all of them.
    sample_shape_ : tuple of int
    n_samples_seen_ : int
    n_features_in_ : int

    Notes
    -----
    `fit` sees the samples block by block, and keeps of each mode a triangle with as many rows and
    columns as the mode is long: memory does not grow with the number of samples.

    Where singular values are equal, as they all are along a mode whose rank is its size, their vectors
    are chosen along the principal axes of the training data, as its networks hold it; the first of the
    large entries of each vector is positive. Common vectors beyond those that the networks span, where
    there are few samples of small ranks, are any that complete a basis.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> images = rng.random((20, 8, 8, 3))
    >>> fusion = TuckerFusion(ranks=(3, 3, 2)).fit(images)
    >>> fusion.transform(images).shape
    (20, 18)
    >>> [factor.shape for factor in fusion.common_factors_]
    [(8, 3), (8, 3), (3, 2)]
    """

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

    def _checked_common_ranks(self) -> tuple[int, ...]:
        checked_ranks("ranks", self.ranks, self.sample_shape_)
        if self.weighting not in _WEIGHTINGS:
            raise NetworkError(
                f"weighting must be one of {listed(_WEIGHTINGS)}; {self.weighting!r} came."
            )
        if self.decomposition not in METHODS:
            raise NetworkError(
                f"decomposition must be one of {listed(METHODS)}; {self.decomposition!r} came."
            )
        wanted = self.ranks if self.common_ranks is None else self.common_ranks
        return checked_ranks("common_ranks", wanted, self.sample_shape_)

    def _begin(self) -> None:
        self._energies = [np.zeros((size, size)) for size in self.sample_shape_]
        self._unit = 0.0

    def _turned(self, n: int, vectors: Matrix, values: Matrix) -> Matrix:
        return separated(vectors, values, self._energies[n])

    def _add(self, samples: Matrix) -> None:
        """The networks of some samples, added; their factors, side by side, go beside the others."""
        stack = decompose_stack(samples, "tucker", self._possible_ranks(), self.decomposition)
        stack, norms = _normalised(stack)
        # Energies are compared with each other alone: in units of the first norm they stay in range.
        self._unit = self._unit or float(np.max(norms))
        sizes = np.minimum(norms.astype(float) / (self._unit or 1.0), _LARGE)
        self._energies = [
            energy + _energy(stack, sizes, n) for n, energy in enumerate(self._energies)
        ]
        weights = norms if self.weighting == "norm" else np.where(norms > 0, 1, 0)
        total = _weighted(stack, weights.astype(samples.dtype)).sum()
        self._concatenations = [
            before.beside(total.node(f"factor{n}")) for n, before in enumerate(self._concatenations)
        ]

    def _possible_ranks(self) -> tuple[int, ...]:
        """Ranks lowered to what the other modes allow: a mode has as many columns as these indices."""
        shape = self.sample_shape_
        pairs = zip(checked_ranks("ranks", self.ranks, shape), shape, strict=True)
        return tuple(min(rank, math.prod(shape) // size) for rank, size in pairs)


def _normalised(stack: NetworkStack) -> tuple[NetworkStack, Matrix]:
    """The networks with cores of unit norm, and the norms they had; a zero core stays zero."""
    core = stack.arrays["core"]
    flat = np.reshape(core, (len(core), -1))
    # Squares of huge and of tiny numbers are out of range.
    largest = np.max(np.abs(flat), axis=1)
    flat = flat / np.where(largest > 0, largest, 1)[:, None]
    norms = np.linalg.norm(flat, axis=1)
    flat = flat / np.where(norms > 0, norms, 1)[:, None]
    arrays = {**stack.arrays, "core": np.reshape(flat, core.shape)}
    return NetworkStack(stack.topology, arrays), norms * largest


def _weighted(stack: NetworkStack, weights: Matrix) -> NetworkStack:
    """Each network times its weight, in equal parts in each of its factors."""
    names = [name for name in stack.arrays if name != "core"]
    parts = weights[:, None, None] ** (1 / len(names))
    return NetworkStack(
        stack.topology, {**stack.arrays, **{name: stack.arrays[name] * parts for name in names}}
    )


def _energy(stack: NetworkStack, sizes: Matrix, n: int) -> Matrix:
    """The sum of X_(n) X_(n)^T over networks of these norms, whose factors are orthonormal."""
    core = np.moveaxis(stack.arrays["core"], n + 1, 1)
    unfolded = np.reshape(core, (*core.shape[:2], -1)) * sizes[:, None, None]
    rows = np.matmul(stack.arrays[f"factor{n}"], unfolded)
    side_by_side = np.reshape(np.swapaxes(rows, 0, 1), (rows.shape[1], -1))
    return side_by_side @ side_by_side.T
