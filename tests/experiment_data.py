"""Small images for tests of experiments: classes and objects that can be told apart, but not quite."""

import numpy as np

from tnsum.datasets import ImageSet


def small_images(
    n_classes: int = 3, n_objects: int = 4, n_views: int = 5, size: int = 6, noise: float = 0.35
) -> ImageSet:
    """Noisy patterns, one for each class, shifted a little for each object."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(n_classes), n_objects * n_views)
    objects = np.tile(np.repeat(np.arange(n_objects), n_views), n_classes)
    patterns = rng.random((n_classes, size, size, 3))
    shifts = 0.3 * rng.random((n_classes, n_objects, size, size, 3))
    images = patterns[labels] + shifts[labels, objects]
    images = images + noise * rng.standard_normal(images.shape)
    classes = ("cow", "dog", "<horse>", "cat", "sheep")[:n_classes]
    names = tuple(
        f"{classes[c]}{o}-{k}.png" for k, (c, o) in enumerate(zip(labels, objects, strict=True))
    )
    images = np.clip(images / 2, 0, 1).astype(np.float32)
    return ImageSet(images, labels, classes, objects, names, "patterns & noise")
