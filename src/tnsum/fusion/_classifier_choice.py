"""Choosing a kernel by cross-validation, and saying what to expect of the choice.

The images are divided into folds, each with its part of every class. For each fold, the features are
found from the other folds and a machine is fitted to them for each of a few kernels; what it says of
the images held back is kept. The kernel that is right most often is chosen.

Where several images show one object, those of an object are held back together, if it is known which
they are: what is found then holds for new objects. Otherwise it holds for new images of the same ones.

How often *it* was right is too good a number: it is the best of several, by luck too. What is reported
holds against that: for each fold the kernel is the one that the *other* folds choose. This costs
nothing, as all machines are there; on labels without meaning it is right as often as chance has it.

From the same predictions comes how sure one may be. With the lead l_i of each class (see
`_classifier_machine`), the probability of class i is proportional to exp(s l_i). The sharpness s is the
one number that makes the true classes of the images held back most probable, where each of the n images
counts as of its class with probability 1 - 1 / (n + 2) only: ten right predictions prove no certainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from tnsum._memory import check_memory
from tnsum._progress import Step, shown
from tnsum.fusion._classifier_machine import fitted_machine, leads_of, margins_of
from tnsum.fusion._distances import squared_distances
from tnsum.fusion._factor_fusion import FactorFusion
from tnsum.fusion._samples import Matrix

GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)
PENALTIES = (1.0, 10.0, 100.0)
# The smoothest first: it is taken where several are right equally often.
KERNELS = [(gamma, C) for C in PENALTIES for gamma in GAMMAS]
SHARPNESSES = np.logspace(-2, 2, 201)


@dataclass(frozen=True)
class Validation:
    """What cross-validation chose, and what it says to expect.

    Attributes
    ----------
    gamma, C : float
        The kernel that was chosen, and the penalty.
    n_folds : int
        How many folds there were.
    n_objects : int
        How many objects the images show, if those of an object were held back together; otherwise 0.
    confusion : ndarray of shape (classes, classes)
        How many images of each class (row) were taken for each class (column), when held back.
    standard_error : float
        The standard error of the accuracy, as of independent objects, or of independent images. By how
        much other images to fit would have made a better or worse classifier is not in it.
    sharpness : float
        What leads are multiplied by to give probabilities.
    """

    gamma: float
    C: float
    n_folds: int
    n_objects: int
    confusion: Matrix
    standard_error: float
    sharpness: float

    @property
    def n_images(self) -> int:
        """How many images there were."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The part of all images that was predicted right when held back: what to expect of others.

        Those may show new objects if `n_objects` is not 0. Otherwise it holds for images that are to the
        fitted ones as these are to each other: where several show one object, expect less of a new one.
        """
        return float(np.trace(self.confusion)) / self.n_images


@dataclass(frozen=True)
class _HeldBack:
    """What each kernel's machines said of images when they were held back."""

    predicted: Matrix
    leads: Matrix
    fold: Matrix

    @classmethod
    def of(cls, n_images: int, n_classes: int) -> _HeldBack:
        n = len(KERNELS)
        predicted, leads = np.zeros((n, n_images), int), np.zeros((n, n_images, n_classes))
        return cls(predicted, leads, np.zeros(n_images, int))


def cross_validated(
    images: Matrix,
    labels: Matrix,
    objects: Matrix | None,
    n_folds: int,
    seed: int,
    progress: bool,
) -> Validation:
    """The choice of a kernel for images whose classes are numbered 0, 1, ..., all of them there.

    `objects` are numbered too. If they are given, there are as many of each class as folds, or more.
    """
    n, n_classes = len(images), int(labels.max()) + 1
    check_memory(
        3 * n * n, np.dtype(float), f"The distances of {n} images from each other", "Fit fewer."
    )
    said = _HeldBack.of(n, n_classes)
    dealt = StratifiedKFold if objects is None else StratifiedGroupKFold
    folds = dealt(n_folds, shuffle=True, random_state=seed).split(labels, labels, objects)
    title = f"Cross-validating {len(KERNELS)} kernels on {n_folds} folds"
    with shown(title, n_folds * len(KERNELS), progress) as step:
        for number, (known, new) in enumerate(folds):
            said.fold[new] = number
            _hold_back(images, labels, known, new, said, step)
    return _validation(labels, objects, n_folds, said)


def _hold_back(
    images: Matrix, labels: Matrix, known: Matrix, new: Matrix, said: _HeldBack, step: Step
) -> None:
    """Let the machines of the known images say what the new ones are."""
    fusion = FactorFusion()
    features = fusion.fit_transform(images[known])
    among = squared_distances(features, features)
    across = squared_distances(fusion.transform(images[new]), features)
    for gamma in GAMMAS:
        kernel, kernel_across = np.exp(-gamma * among), np.exp(-gamma * across)
        for C in PENALTIES:
            machine, support = fitted_machine(kernel, features, labels[known], gamma, C)
            duels = machine.duels_by(kernel_across[:, support])
            number = KERNELS.index((gamma, C))
            said.predicted[number, new] = margins_of(duels).argmax(axis=1)
            said.leads[number, new] = leads_of(duels)
            step()


def _validation(
    labels: Matrix, objects: Matrix | None, n_folds: int, said: _HeldBack
) -> Validation:
    right = said.predicted == labels
    # Summed over folds in integers: equal numbers are equal.
    by_fold = np.stack([right[:, said.fold == f].sum(axis=1) for f in range(n_folds)], axis=1)
    total = by_fold.sum(axis=1)
    gamma, C = KERNELS[int(total.argmax())]
    chosen_by_others = (total[:, None] - by_fold).argmax(axis=0)
    place = chosen_by_others[said.fold], np.arange(len(labels))
    n_classes = said.leads.shape[2]
    confusion = np.zeros((n_classes, n_classes), int)
    np.add.at(confusion, (labels, said.predicted[place]), 1)
    return Validation(
        gamma,
        C,
        n_folds,
        n_objects=0 if objects is None else int(objects.max()) + 1,
        confusion=confusion,
        standard_error=_standard_error(right[place], objects),
        sharpness=_sharpness(said.leads[place], labels),
    )


def _standard_error(is_right: Matrix, objects: Matrix | None) -> float:
    """The standard error of the part that is right, where the images of an object are one trial.

    It is computed as if one more object, with as many images as others have, had been right and one more
    wrong: it is never zero.
    """
    objects = np.arange(len(is_right)) if objects is None else objects
    n_images = np.bincount(objects)
    n_right = np.bincount(objects, weights=is_right)
    more = n_images.mean()
    n_images, n_right = np.append(n_images, [more, more]), np.append(n_right, [more, 0])
    rate = n_right.sum() / n_images.sum()
    return float(np.linalg.norm(n_right - rate * n_images) / n_images.sum())


def _sharpness(leads: Matrix, labels: Matrix) -> float:
    n, n_classes = leads.shape
    doubt = 1 / (n + 2)
    believed = np.full(leads.shape, doubt / (n_classes - 1))
    believed[np.arange(n), labels] = 1 - doubt
    likelihoods = [np.sum(believed * log_probabilities(s * leads)) for s in SHARPNESSES]
    return float(SHARPNESSES[int(np.argmax(likelihoods))])


def log_probabilities(scores: Matrix) -> Matrix:
    """The logarithms of probabilities proportional to the exponentials of scores, row by row."""
    below = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))
