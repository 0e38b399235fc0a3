"""Pictures of objects that are made up, so that everything can be tried without any file.

As ETH-80, which they are made after, they show 8 classes of objects from directions over the upper
hemisphere before a blue background, and a cow is not easily told from a dog or a horse. They are
easier or harder than photographs in ways nobody has measured: a result on them says nothing about
ETH-80.

Every object has a random generator of its own, so that it stays the same whatever else is asked for,
and directions are the beginning of one sequence: the first views too stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tnsum._checks import checked_integer
from tnsum._memory import check_memory
from tnsum.datasets._animals import cow, dog, horse
from tnsum.datasets._image_set import ImageSet
from tnsum.datasets._rendering import render
from tnsum.datasets._solids import Solid, Vector
from tnsum.datasets._things import apple, car, cup, pear, tomato

_KINDS: Mapping[str, Callable[[np.random.Generator], Solid]] = {
    kind.__name__: kind for kind in (apple, car, cow, cup, dog, horse, pear, tomato)
}
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def make_objects(n_objects: int = 10, n_views: int = 41, size: int = 32, seed: int = 0) -> ImageSet:
    """Pictures of made-up objects of 8 classes, each seen from several directions.

    Images come in order of class, object and view. An object is the same whatever `n_objects`, and
    its first views are whatever `n_views`.

    Parameters
    ----------
    n_objects : int
        How many objects there are of each class.
    n_views : int
        How many pictures there are of each object. They are spread over the upper hemisphere.
    size : int
        The height and the width of a picture in pixels.
    seed : int
        What the shapes and the colours of the objects are drawn from.

    Raises
    ------
    NetworkError
        A number is not a positive integer, or the seed a negative one; or the images do not fit into
        memory.

    Examples
    --------
    >>> make_objects(n_objects=1, n_views=2, size=8)
    ImageSet of 16 images of 8 x 8, 8 classes: made by make_objects: 1 object a class, 2 views, seed 0
    """
    n_objects = checked_integer("n_objects", n_objects, 1)
    n_views = checked_integer("n_views", n_views, 1)
    size = checked_integer("size", size, 1)
    seed = checked_integer("seed", seed, 0)
    n = len(_KINDS) * n_objects * n_views
    check_memory(n * size * size * 3, "float32", f"{n} images", "Ask for fewer or smaller ones.")
    images = np.empty((len(_KINDS), n_objects, n_views, size, size, 3), np.float32)
    for label, kind in enumerate(_KINDS.values()):
        for number in range(n_objects):
            rng = np.random.default_rng([seed, label, number])
            turn = rng.uniform(-0.25, 0.25)
            images[label, number] = render(kind(rng), _directions(n_views, turn), size)
    images /= 255
    labels, objects, views = (a.ravel() for a in np.indices(images.shape[:3]))
    classes = tuple(_KINDS)
    return ImageSet(
        images=images.reshape(n, size, size, 3),
        labels=labels,
        classes=classes,
        objects=objects,
        names=tuple(
            f"{classes[label]} {number}, view {view}"
            for label, number, view in zip(labels, objects, views, strict=True)
        ),
        source=f"made by make_objects: {n_objects} object{'s' * (n_objects > 1)} a class, "
        f"{n_views} view{'s' * (n_views > 1)}, seed {seed}",
    )


def _directions(n: int, turn: float) -> list[Vector]:
    """Unit vectors over the upper hemisphere: heights by bits in reverse, azimuths by golden angles."""
    directions = []
    for k in range(n):
        height = 0.98 * int(f"{k:b}"[::-1], 2) / 2 ** k.bit_length()
        across, azimuth = math.sqrt(1 - height**2), turn + 0.5 + _GOLDEN_ANGLE * k
        directions.append((across * math.cos(azimuth), across * math.sin(azimuth), height))
    return directions
