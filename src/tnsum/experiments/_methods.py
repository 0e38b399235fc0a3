"""The methods that are compared: each gives squared distances of all images to the training images.

What does not depend on the split is computed once: the distances of pixels, and the factors of each
image that FactorFusion looks at. Whatever is learned is learned from training images alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from sklearn.preprocessing import StandardScaler

from tnsum._memory import check_memory
from tnsum.datasets import ImageSet
from tnsum.experiments._protocols import CONCAT, FACTORS, PIXELS, SUM
from tnsum.experiments._splits import Indices
from tnsum.fusion import FactorFusion, TuckerConcat, TuckerFusion
from tnsum.fusion._distances import squared_distances
from tnsum.fusion._factor_fusion import energies, in_factor, joined, scales_of
from tnsum.fusion._samples import Matrix, blocks_of

_FEW_IMAGES = (
    "The experiment needs the distances of all pairs of images; it is for a few thousand of them."
)


@dataclass(frozen=True)
class Prepared:
    """Images and what all splits have in common.

    Attributes
    ----------
    data : ImageSet
    pixel_distances : ndarray of shape (n, n)
        The squared distances of the images.
    energies : tuple of ndarray
        For each mode the matrices of all images that `FactorFusion` sees in the common factors; none
        where it takes no part.
    """

    data: ImageSet
    pixel_distances: Matrix
    energies: tuple[Matrix, ...]


@dataclass(frozen=True)
class Distances:
    """Squared distances of all images to the training images, and the number of features."""

    squared: Matrix
    n_features: int


def prepared(data: ImageSet, with_factors: bool) -> Prepared:
    """What all splits have in common.

    Raises
    ------
    NetworkError
        The distances of all images do not fit into memory.
    """
    # Besides the distances there are those of a split, two kernels, and each image's energies.
    per_image = 4 * len(data) + 2 * sum(size**2 for size in data.images.shape[1:])
    needed = per_image * len(data)
    check_memory(needed, np.dtype(float), "The distances of all images", _FEW_IMAGES)
    # In double precision: in single precision other processors would mistake other images.
    images = data.images.astype(float)
    found = []
    for n in range(images.ndim - 1 if with_factors else 0):
        blocks = blocks_of(images, images.shape[n + 1] ** 2)
        parts = [energies(some, n, FactorFusion().power) for some in blocks]
        found.append(np.concatenate(parts))
    pixels = np.reshape(images, (len(data), -1))
    distances = squared_distances(pixels, pixels)
    return Prepared(replace(data, images=images), distances, tuple(found))


def on_disk(known: Prepared, folder: str) -> Prepared:
    """The same with its large arrays in files of a folder: processes share these, and copy nothing."""
    arrays = [known.data.images, known.pixel_distances, *known.energies]
    for k, array in enumerate(arrays):
        path = os.path.join(folder, f"{k}.npy")
        np.save(path, array)
        arrays[k] = np.load(path, mmap_mode="r")
    images, pixel_distances, *rest = arrays
    return Prepared(replace(known.data, images=images), pixel_distances, tuple(rest))


def distances(method: str, known: Prepared, train: Indices, is_scaled: bool) -> Distances:
    """The squared distances of all images to the training images, as a method sees them.

    With `is_scaled`, the features of SUM and TKD-CONCAT are standardised; pixels have one scale as it
    is, and FactorFusion its own.
    """
    images = known.data.images
    if method == PIXELS:
        return Distances(known.pixel_distances[:, train], images[0].size)
    if method == FACTORS:
        features = _factor_features(known, train)
    else:
        transformer = {SUM: TuckerFusion, CONCAT: TuckerConcat}[method](ranks=3)
        features = transformer.fit(images[train]).transform(images)
        if is_scaled:
            features = _standardised(features, train)
    return Distances(squared_distances(features, features[train]), features.shape[1])


def _standardised(features: Matrix, train: Indices) -> Matrix:
    """Features of mean zero and variance one, without those that are but rounding."""
    deviations = features[train].std(axis=0)
    kept = features[:, deviations >= np.sqrt(np.finfo(float).eps) * deviations.max()]
    found: Matrix = StandardScaler().fit(kept[train]).transform(kept)
    return found


def _factor_features(known: Prepared, train: Indices) -> Matrix:
    """What `FactorFusion().fit(training images).transform(all images)` gives, from known energies."""
    settings = FactorFusion()
    images = known.data.images
    fusion = TuckerFusion(settings.ranks, settings.common_ranks).fit(images[train])
    pairs = zip(known.energies, fusion.common_factors_, strict=True)
    blocks = [in_factor(matrices, factor) for matrices, factor in pairs]
    scales = scales_of([block[train] for block in blocks], settings.power)
    return joined(blocks, scales)
