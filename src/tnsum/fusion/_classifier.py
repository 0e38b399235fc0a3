"""ImageClassifier: a user's own images to a classifier.

`FactorFusion` describes an image, a support vector machine with an RBF kernel decides, cross-validation
chooses the kernel and says what to expect. What is learned are three values of plain arrays: features,
machine and validation. Predicting needs nothing else, and no object of scikit-learn.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tnsum.errors import NetworkError
from tnsum.fusion._classifier_choice import Validation, cross_validated, log_probabilities
from tnsum.fusion._classifier_images import (
    FactorFeatures,
    check_classes,
    checked_images,
    checked_labels,
    checked_objects,
)
from tnsum.fusion._classifier_machine import (
    KernelMachine,
    fitted_machine,
    leads_of,
    margins_of,
)
from tnsum.fusion._distances import squared_distances
from tnsum.fusion._factor_fusion import FactorFusion
from tnsum.fusion._samples import Matrix


class ImageClassifier(ClassifierMixin, BaseEstimator):
    """The classes of images: factor fusion and a support vector machine, chosen by cross-validation.

    Parameters
    ----------
    folds : int
        How many folds cross-validation has; fewer if a class has fewer images, or objects.
    seed : int
        What divides the images into folds at random, 0 to 2**32 - 1.
    progress : bool
        Show on the error output how far `fit` is.

    Attributes
    ----------
    classes_ : ndarray of str
        The classes in alphabetical order.
    image_shape_ : tuple of int
        The height, width and channels of images.
    features_ : FactorFeatures
        What describes an image: common factors, scales, power.
    machine_ : KernelMachine
        What decides: support vectors, coefficients, intercepts, gamma.
    validation_ : Validation
        What was chosen, and what to expect: accuracy, standard error, confusion matrix.

    Notes
    -----
    Images are arrays of shape (n, height, width, channels) in any range. The expected accuracy is not
    that of the kernel that was chosen, which is the best of several and so too good: each fold is
    predicted by the kernel that the other folds choose. Features are sensitive to noise in the pixels:
    fit images as noisy as those to be predicted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stripes = np.where(np.arange(8) % 2, 1.0, 0.0)[:, None, None]
    >>> lying = stripes + 0.3 * rng.random((20, 8, 8, 1))
    >>> images = np.concatenate([lying, lying.swapaxes(1, 2)])
    >>> classifier = ImageClassifier().fit(images, ["lying"] * 20 + ["upright"] * 20)
    >>> classifier.validation_.accuracy
    1.0
    >>> classifier.predict(images[[0, 30]])
    array(['lying', 'upright'], dtype='<U7')
    """

    classes_: Matrix
    image_shape_: tuple[int, ...]
    features_: FactorFeatures
    machine_: KernelMachine
    validation_: Validation

    def __init__(self, folds: int = 5, seed: int = 0, progress: bool = False) -> None:
        self.folds = folds
        self.seed = seed
        self.progress = progress

    def fit(self, images: Any, labels: Any = None, objects: Any = None) -> Self:
        """Learn from images which classes they are of.

        Parameters
        ----------
        images : array_like of shape (n, height, width, channels), or ImageSet
        labels : sequence of str
            The class of each image; an ImageSet brings its own.
        objects : sequence of str or int, optional
            The object that each image shows, known by its name or number within its class; an ImageSet
            brings its own. If some show the same and every class has two or more objects, the images of
            an object are held back together: the expected accuracy is then that of new objects.

        Raises
        ------
        NetworkError
            Images, labels or objects are not what they must be, there is one class only or a class with
            one image, `folds` or `seed` is out of range, or distances do not fit into memory.
        """
        self._check_parameters()
        images, labels, objects = _taken_apart(images, labels, objects)
        images = checked_images(images)
        names, numbered = checked_labels(labels, len(images))
        check_classes(names, np.bincount(numbered).tolist())
        shown = checked_objects(objects, numbered)
        # An object, or else an image, is what is held back as a whole.
        held = numbered if shown is None else numbered[np.unique(shown, return_index=True)[1]]
        n_folds = min(int(self.folds), int(np.bincount(held).min()))
        validation = cross_validated(
            images, numbered, shown, n_folds, int(self.seed), bool(self.progress)
        )
        fusion = FactorFusion()
        features = fusion.fit_transform(images)
        kernel = np.exp(-validation.gamma * squared_distances(features, features))
        machine, _ = fitted_machine(kernel, features, numbered, validation.gamma, validation.C)
        self._learn(np.array(names), FactorFeatures.of(fusion), machine, validation)
        return self

    def predict(self, images: Any) -> Matrix:
        """The class of each image, that of the largest margin.

        Raises
        ------
        NetworkError
            Images are not what they must be, or of another size than those that were fitted.
        """
        best = self.margins(images).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def margins(self, images: Any) -> Matrix:
        """How many duels with other classes each class wins, of shape (n, classes).

        A part between -1/3 and 1/3 is added, by which equal numbers are told apart: this is the
        `decision_function` of scikit-learn's SVC. Raises as `predict` does.
        """
        return np.concatenate([margins_of(duels) for duels in self._duels(images)])

    def probabilities(self, images: Any) -> Matrix:
        """How probable each class is, of shape (n, classes), as far as the fitted images show.

        Leads over the closest rival are made probabilities by one number, which fits what the images
        were when they were held back. They are of use for images like the fitted ones: an image of
        nothing known has some class too. In the rare case of classes that beat each other in a circle,
        the most probable one may be another than that of the largest margin. Raises as `predict` does.
        """
        leads = np.concatenate([leads_of(duels) for duels in self._duels(images)])
        return np.asarray(np.exp(log_probabilities(self.validation_.sharpness * leads)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier to a safetensors file, which `load_classifier` reads.

        It takes the place of an older file at one stroke, when it is complete.

        Raises
        ------
        NetworkError
            The file cannot be written; an older one is then as it was.
        NotFittedError
            Nothing has been fitted.
        """
        from tnsum.fusion._classifier_files import save_classifier

        check_is_fitted(self)
        save_classifier(path, self)

    def _duels(self, images: Any) -> Iterator[Matrix]:
        check_is_fitted(self)
        checked = checked_images(images, self.image_shape_)
        return self.machine_.duels(self.features_(checked))

    def _learn(
        self,
        classes: Matrix,
        features: FactorFeatures,
        machine: KernelMachine,
        validation: Validation,
    ) -> None:
        self.classes_, self.image_shape_ = classes, features.image_shape
        self.features_, self.machine_, self.validation_ = features, machine, validation

    def _check_parameters(self) -> None:
        for name, value, least, most in (
            ("folds", self.folds, 2, 1000),
            ("seed", self.seed, 0, 2**32 - 1),
        ):
            is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not is_integer or not least <= value <= most:
                raise NetworkError(
                    f"{name} must be an integer from {least} to {most}; {value!r} came."
                )


def _taken_apart(images: Any, labels: Any, objects: Any) -> tuple[Any, Any, Any]:
    """Images, labels, objects; those of an ImageSet are known by name, without importing Pillow."""
    if not hasattr(images, "classes") or not hasattr(images, "labels"):
        return images, labels, objects
    if labels is not None or objects is not None:
        raise NetworkError(
            "labels and objects must not be given with an ImageSet, which has its own."
        )
    return images.images, [images.classes[number] for number in images.labels], images.objects
