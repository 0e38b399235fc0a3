"""Images for a classifier: checked as they come, and described by factor fusion.

A fitted `FactorFusion` is here a value of plain arrays: it can be stored and read without code. What is
computed is the same, in double precision, whatever the images are in: a prediction then does not depend
on how they were read. Neither does it on their range: features are those of an image scaled to norm one.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tnsum.errors import NetworkError, UnsuitableError
from tnsum.fusion._factor_fusion import FactorFusion, factor_blocks, joined, n_features_of
from tnsum.fusion._samples import Matrix

MOST_PIXELS = 1024
"""The height, width and number of channels of an image that are taken."""
_LARGEST = 1e100


@dataclass(frozen=True)
class FactorFeatures:
    """The features that a fitted `FactorFusion` gives to images.

    Attributes
    ----------
    factors : tuple of ndarray
        The common factors along height, width and channels, of shape (size, rank).
    scales : ndarray of shape (3,)
        What the features of each mode are multiplied by.
    power : float
        The power of the singular values.
    """

    factors: tuple[Matrix, ...]
    scales: Matrix
    power: float

    @classmethod
    def of(cls, fusion: FactorFusion) -> FactorFeatures:
        """The features of a transformer that was fitted."""
        return cls(tuple(fusion.common_factors_), fusion.scales_, float(fusion.power))

    @property
    def image_shape(self) -> tuple[int, ...]:
        """The height, width and channels of images."""
        return tuple(len(factor) for factor in self.factors)

    @property
    def n_features(self) -> int:
        """How many numbers describe an image."""
        return n_features_of([factor.shape[1] for factor in self.factors])

    def __call__(self, images: Matrix) -> Matrix:
        """The features of images, of shape (n, n_features)."""
        return joined(factor_blocks(images, self.factors, self.power), self.scales)


def checked_images(images: Any, shape: tuple[int, ...] | None = None) -> Matrix:
    """Images in double precision, of shape (n, height, width, channels).

    Parameters
    ----------
    images : array_like
    shape : tuple of int, optional
        The height, width and channels that they must have.

    Raises
    ------
    NetworkError
        They are no such array, empty, too large, of another shape, or not all finite.
    """
    try:
        found = np.asarray(images)
    except ValueError:
        raise NetworkError(
            "Images must be of one size, as one array; lists of different lengths came."
        ) from None
    if found.ndim != 4 or found.dtype.kind not in "uif":
        raise NetworkError(
            f"Images must be an array of real numbers of shape (images, height, width, channels); one "
            f"of shape {found.shape} and dtype {found.dtype} came. A single image is image[None], grey "
            f"ones are images[..., None]."
        )
    if shape is not None and found.shape[1:] != shape:
        raise NetworkError(
            f"Images must have the height, width and channels {shape} of those that were fitted; "
            f"{found.shape[1:]} came. Load them in that size."
        )
    if 0 in found.shape or max(found.shape[1:]) > MOST_PIXELS:
        raise NetworkError(
            f"There must be an image at least, of 1 to {MOST_PIXELS} pixels a side; an array of shape "
            f"{found.shape} came."
        )
    found = found.astype(float, copy=False)
    # The largest of numbers one of which is NaN is NaN, and that is not below anything.
    bad = np.flatnonzero(~(np.abs(found).max(axis=(1, 2, 3)) <= _LARGEST))
    if len(bad):
        raise NetworkError(
            f"Images must hold finite numbers of at most {_LARGEST:g}; {len(bad)} do not, the first is "
            f"image {bad[0]}."
        )
    return found


def checked_labels(labels: Any, n_images: int) -> tuple[list[str], Matrix]:
    """The names of the classes, sorted, and the number of each image's class.

    Raises
    ------
    NetworkError
        There is not one label for each image, or one is no text that can be stored.
    """
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        raise NetworkError(
            f"labels must be a sequence of texts, one for each image; {type(labels).__name__} came."
        )
    if len(labels) != n_images:
        raise NetworkError(
            f"labels must be one for each image: {n_images} images and {len(labels)} labels came."
        )
    for number, label in enumerate(labels):
        if not is_class_name(label):
            raise NetworkError(
                f"labels must be texts of valid Unicode, not empty and without the character NUL; "
                f"label {number} is {label!r}."
            )
    names = sorted({str(label) for label in labels})
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[str(label)] for label in labels])


def check_classes(names: Sequence[str], counts: Sequence[int]) -> None:
    """Raise unless there are two classes at least, and two images of each."""
    if len(names) < 2:
        raise UnsuitableError(
            f"There must be images of two classes at least; all are of class {names[0]!r}. Add images "
            f"of another class."
        )
    lonely = [name for name, count in zip(names, counts, strict=True) if count < 2]
    if lonely:
        n = len(lonely) - 1
        more = f", and of {n} other class{'es' * (n > 1)}" if n else ""
        raise UnsuitableError(
            f"Each class must have two images at least, so that some can be held back to see how well "
            f"they are predicted; there is one of {lonely[0]!r}{more}. Add images, or leave the class "
            f"out."
        )


def checked_objects(objects: Any, labels: Matrix) -> Matrix | None:
    """The number of the object that each image shows; None if they cannot be held back by it.

    For that some object must be shown by several images, and every class must have two objects. Objects
    of different classes are different ones.

    Raises
    ------
    NetworkError
        There is not one object for each image, or one is neither a text nor an integer.
    """
    if objects is None:
        return None
    if isinstance(objects, str) or not isinstance(objects, Sequence | np.ndarray):
        raise NetworkError(
            f"objects must be a sequence of texts or integers, one for each image; "
            f"{type(objects).__name__} came."
        )
    if len(objects) != len(labels):
        raise NetworkError(
            f"objects must be one for each image: {len(labels)} images and {len(objects)} objects came."
        )
    for number, name in enumerate(objects):
        if not isinstance(name, str | numbers.Integral):
            raise NetworkError(f"objects must be texts or integers; object {number} is {name!r}.")
    numbered: dict[tuple[int, Any], int] = {}
    pairs = zip(labels.tolist(), objects, strict=True)
    found = np.array([numbered.setdefault(pair, len(numbered)) for pair in pairs])
    n_of_class = np.bincount([label for label, _ in numbered])
    return found if len(numbered) < len(found) and n_of_class.min() > 1 else None


def is_class_name(name: object) -> bool:
    """Whether a class can have that name: NumPy cuts NULs off, and no file holds half a character."""
    if not isinstance(name, str) or not name or "\0" in name:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
