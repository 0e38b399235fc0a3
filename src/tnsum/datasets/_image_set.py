"""Labelled images of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ImageSet:
    """Labelled images of one size, some of which may show the same object.

    Attributes
    ----------
    images : ndarray of shape (n, height, width, 3), float32
        Red, green and blue, from 0 to 1.
    labels : ndarray of shape (n,), int64
        The class of each, as its number in `classes`.
    classes : tuple of str
    objects : ndarray of shape (n,), int64
        The object that each shows, numbered within its class from 0 on. Where nothing is known of
        objects, every image has one of its own.
    names : tuple of str
        The file that each was read from, relative to the folder; or what a made one shows.
    source : str
        Where the images are from, in words.
    """

    images: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    classes: tuple[str, ...]
    objects: np.ndarray[Any, Any]
    names: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        height, width = self.images.shape[1:3]
        return (
            f"ImageSet of {len(self)} images of {height} x {width}, {len(self.classes)} classes: "
            f"{self.source}"
        )
