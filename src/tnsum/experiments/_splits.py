"""Which images are trained on and which are tested, and folds of the training images.

At all fractions split number k draws from the same order of the images, so that a smaller training set
is part of a larger one, and curves are smoother than they would be otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tnsum.datasets import ImageSet
from tnsum.errors import UnsuitableError
from tnsum.experiments._protocols import PROTOCOLS
from tnsum.experiments._settings import Settings

Indices: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# Cross-validation has fewer folds where each takes long.
_MANY_SAMPLES = 1000


@dataclass(frozen=True)
class Split:
    """One division of the images: `fraction` of them by random draw `number`, or object `number`.

    Examples
    --------
    >>> Split("paper", 0.8, 3).name, Split("objects", None, 3).name
    ('paper-0.8-3', 'objects-3')
    """

    protocol: str
    fraction: float | None
    number: int

    @property
    def name(self) -> str:
        """A name for files."""
        at = "" if self.fraction is None else f"-{self.fraction!r}"
        return f"{self.protocol}{at}-{self.number}"

    @property
    def title(self) -> str:
        """A name for people."""
        if self.fraction is None:
            return f"{self.protocol}, object {self.number + 1} left out"
        return f"{self.protocol}, {percent(self.fraction)} trained on, split {self.number}"


def percent(fraction: float) -> str:
    """A fraction in per cent.

    Examples
    --------
    >>> percent(0.8), percent(0.025)
    ('80 %', '2.5 %')
    """
    return f"{100 * fraction:.6g} %"


def splits_of(settings: Settings, data: ImageSet) -> list[Split]:
    """All splits, in the order in which they are done.

    Raises
    ------
    NetworkError
        There is no image to train on or none to test, or fewer than two objects of a class.
    """
    found = []
    for name in settings.protocols:
        if PROTOCOLS[name].by_object:
            found += [Split(name, None, k) for k in range(_n_objects(data))]
            continue
        for number in range(settings.n_splits):
            found += [Split(name, fraction, number) for fraction in settings.fractions]
    uses_fractions = any(not PROTOCOLS[name].by_object for name in settings.protocols)
    for fraction in settings.fractions if uses_fractions else ():
        n_train = n_trained_on(fraction, len(data))
        if not 0 < n_train < len(data):
            raise UnsuitableError(
                f"A fraction must leave images for training and for testing: {percent(fraction)} of "
                f"{len(data)} images are {n_train}. Give other fractions, or more images."
            )
    return found


def n_trained_on(fraction: float, n_images: int) -> int:
    """How many images a fraction is."""
    return round(fraction * n_images)


def divided(split: Split, data: ImageSet, seed: int) -> tuple[Indices, Indices]:
    """The numbers of the images that are trained on, and of those that are tested."""
    if split.fraction is None:
        is_left_out = object_ranks(data) == split.number
        return np.flatnonzero(~is_left_out), np.flatnonzero(is_left_out)
    rng = np.random.default_rng((seed, split.number))
    order = rng.permutation(len(data))
    if PROTOCOLS[split.protocol].is_tuned:
        order = _stratified(order, data.labels)
    n_train = n_trained_on(split.fraction, len(data))
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def folds(
    split: Split, data: ImageSet, train: Indices, seed: int
) -> Iterator[tuple[Indices, Indices]]:
    """Folds of the training images, as positions in `train`: to be fitted, and to be held out.

    Each class, or the objects of each class, are dealt to the folds in turn: stratified, and content
    with a class of one image.
    """
    rng = np.random.default_rng((seed, split.number, 1))
    n_folds = 5 if len(train) < _MANY_SAMPLES else 3
    if split.fraction is None:
        ranks = object_ranks(data)[train]
        numbers = rng.permutation(np.unique(ranks))
        fold_of_number = np.zeros(numbers.max() + 1, dtype=np.int64)
        fold_of_number[numbers] = np.arange(len(numbers)) % n_folds
        fold = fold_of_number[ranks]
    else:
        order = rng.permutation(len(train))
        order = order[np.argsort(data.labels[train][order], kind="stable")]
        fold = np.zeros(len(train), dtype=np.int64)
        fold[order] = np.arange(len(train)) % n_folds
    for k in range(n_folds):
        is_held = fold == k
        if is_held.any() and not is_held.all():
            yield np.flatnonzero(~is_held), np.flatnonzero(is_held)


def object_ranks(data: ImageSet) -> Indices:
    """The objects of each class counted from 0 on, without gaps."""
    found = np.zeros(len(data), dtype=np.int64)
    for label in np.unique(data.labels):
        of_class = data.labels == label
        found[of_class] = np.unique(data.objects[of_class], return_inverse=True)[1]
    return found


def _stratified(order: Indices, labels: Indices) -> Indices:
    """The order changed such that every beginning of it has the classes in their proportions."""
    place = np.empty(len(order))
    for label in np.unique(labels):
        of_class = np.flatnonzero(labels[order] == label)
        place[of_class] = (np.arange(len(of_class)) + 0.5) / len(of_class)
    return order[np.argsort(place, kind="stable")]


def _n_objects(data: ImageSet) -> int:
    """How many folds leave out an object of every class."""
    n_of_class = {
        name: len(np.unique(data.objects[data.labels == label]))
        for label, name in enumerate(data.classes)
    }
    fewest = min(n_of_class, key=lambda name: n_of_class[name])
    if n_of_class[fewest] < 2:
        raise UnsuitableError(
            f"Leaving out an object of every class needs two or more of each: class {fewest!r} has "
            f"{n_of_class[fewest]}. Leave out the protocol 'objects', or give more objects."
        )
    return n_of_class[fewest]
