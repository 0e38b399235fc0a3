"""Classifiers in one safetensors file: plain arrays and a description, without code in it.

The description holds the classes, the sizes and the few numbers; the tensors are the common factors
`factor0`, `factor1`, `factor2`, and `scales`, `vectors`, `coefficients`, `intercepts` and `confusion`,
in double precision, as `FactorFeatures`, `KernelMachine` and `Validation` hold them. What is read is
checked in full against the description before any data are touched; then the data are: a file that is
accepted gives finite margins for every image.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from tnsum._packing import CLASSIFIER, VERSION
from tnsum._replacing import replacing
from tnsum._tensor_files import Pieces, TensorFile, opened, parsed_json, short_repr, write
from tnsum._unpacking import check_version
from tnsum.errors import NetworkError
from tnsum.fusion._classifier import ImageClassifier
from tnsum.fusion._classifier_choice import Validation
from tnsum.fusion._classifier_images import MOST_PIXELS, FactorFeatures, is_class_name
from tnsum.fusion._classifier_machine import KernelMachine
from tnsum.fusion._factor_fusion import n_features_of
from tnsum.fusion._samples import Matrix
from tnsum.storage import KEY, check_path, faults_named
from tnsum.topology import short

# Larger numbers than any fit gives, and so small that nothing computed with them overflows.
_LARGEST = 2.0**60


def save_classifier(path: str | os.PathLike[str], classifier: ImageClassifier) -> None:
    """Write a fitted classifier to a file."""
    features, machine = classifier.features_, classifier.machine_
    validation = classifier.validation_
    document = {
        "version": VERSION,
        "kind": CLASSIFIER,
        "classes": classifier.classes_.tolist(),
        "image_shape": classifier.image_shape_,
        "power": features.power,
        "support_vectors": machine.counts,
        "gamma": validation.gamma,
        "C": validation.C,
        "sharpness": validation.sharpness,
        "standard_error": validation.standard_error,
        "folds": validation.n_folds,
        "objects": validation.n_objects,
        "seed": int(classifier.seed),
    }
    arrays = {
        **{f"factor{n}": factor for n, factor in enumerate(features.factors)},
        "scales": features.scales,
        "vectors": machine.vectors,
        "coefficients": machine.coefficients,
        "intercepts": machine.intercepts,
        "confusion": validation.confusion,
    }
    arrays = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in arrays.items()}
    pieces = {name: Pieces("F64", array.shape, [array]) for name, array in arrays.items()}
    description = json.dumps(document, separators=(",", ":"))
    check_path(path)
    with faults_named(path, "saved"):
        write(path, pieces, {KEY: description, _DIGEST: _digest(description, arrays)})


def load_classifier(path: str | os.PathLike[str]) -> ImageClassifier:
    """The classifier of a file that `ImageClassifier.save` wrote, ready to predict.

    Nothing in a file is executed, and a file that is not right in every detail is refused.

    Raises
    ------
    NetworkError
        The file cannot be read, holds no classifier, or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> images = rng.random((20, 8, 8, 1))
    >>> images[:10] += np.eye(8)[:, :, None]
    >>> classifier = ImageClassifier().fit(images, ["diagonal"] * 10 + ["none"] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classifier.save(f"{folder}/model.safetensors")
    ...     again = load_classifier(f"{folder}/model.safetensors")
    >>> bool(np.all(again.predict(images) == classifier.predict(images)))
    True
    """
    check_path(path)
    with faults_named(path, "loaded"), opened(path, memory_map=False) as file:
        if KEY not in file.metadata:
            raise NetworkError("it is a safetensors file that tnsum did not write")
        return _unpacked(parsed_json(file.metadata[KEY], "its description"), file)


_DIGEST = "sha256"


def _digest(description: str, arrays: Mapping[str, Matrix]) -> str:
    """What tells that neither the description nor a number was changed."""
    found = hashlib.sha256(description.encode())
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(np.ascontiguousarray(arrays[name], dtype="<f8").data)
    return found.hexdigest()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the error that saving to `path` would end with, before the work that is to be saved."""
    check_path(path)
    with suppress(_NothingWrittenError), faults_named(path, "saved"), replacing(path):
        raise _NothingWrittenError


class _NothingWrittenError(Exception):
    """Ends the replacing of a file, which is then as it was."""


def _unpacked(document: Any, file: TensorFile) -> ImageClassifier:
    _check_kind(document)
    classes, shape = _checked_classes(document), _checked_shape(document)
    counts = _checked_counts(document, len(classes))
    gamma, C, sharpness, error, power = (
        _checked_number(document, name, least, most)
        for name, least, most in (
            ("gamma", 1e-12, 1e12),
            ("C", 1e-12, 1e12),
            ("sharpness", 1e-6, 1e6),
            ("standard_error", 0, 1),
            ("power", 1e-6, 1e3),
        )
    )
    n_folds, n_objects, seed = (
        _checked_integer(document, name, least, most)
        for name, least, most in (("folds", 2, 1000), ("objects", 0, 2**31), ("seed", 0, 2**32 - 1))
    )
    k, m = len(classes), sum(counts)
    ranks = [_checked_rank(file, n, size) for n, size in enumerate(shape)]
    n_features = n_features_of(ranks)
    shapes = {
        **{f"factor{n}": (size, ranks[n]) for n, size in enumerate(shape)},
        "scales": (len(shape),),
        "vectors": (m, n_features),
        "coefficients": (k - 1, m),
        "intercepts": (k * (k - 1) // 2,),
        "confusion": (k, k),
    }
    arrays = _checked_arrays(file, shapes)
    confusion = _checked_confusion(arrays["confusion"])
    if file.metadata.get(_DIGEST) != _digest(file.metadata[KEY], arrays):
        raise NetworkError("its contents are not those that were saved. Fit the classifier again")
    factors = tuple(arrays[f"factor{n}"] for n in range(len(shape)))
    classifier = ImageClassifier(n_folds, seed)
    classifier._learn(
        np.array(classes),
        FactorFeatures(factors, arrays["scales"], power),
        KernelMachine(
            arrays["vectors"], counts, arrays["coefficients"], arrays["intercepts"], gamma
        ),
        Validation(gamma, C, n_folds, n_objects, confusion, error, sharpness),
    )
    return classifier


# the description


def _check_kind(document: Any) -> None:
    check_version(document)
    kind = document.get("kind")
    if kind != CLASSIFIER:
        raise NetworkError(
            f"it must hold a {CLASSIFIER}; {short_repr(kind)} came. tnsum.load reads others"
        )


def _checked_classes(document: Mapping[str, Any]) -> list[str]:
    classes: Any = document.get("classes")
    is_list = isinstance(classes, list) and all(map(is_class_name, classes))
    if not is_list or len(classes) < 2 or classes != sorted(set(classes)):
        raise NetworkError(
            f"its classes must be two texts or more, sorted and all different; "
            f"{short_repr(classes)} came"
        )
    return list(classes)


def _checked_shape(document: Mapping[str, Any]) -> tuple[int, ...]:
    shape: Any = document.get("image_shape")
    if not _are_integers(shape, 1, MOST_PIXELS) or len(shape) != 3:
        raise NetworkError(
            f"its image_shape must be three integers from 1 to {MOST_PIXELS}; {short_repr(shape)} came"
        )
    return tuple(shape)


def _checked_counts(document: Mapping[str, Any], n_classes: int) -> tuple[int, ...]:
    counts: Any = document.get("support_vectors")
    if not _are_integers(counts, 1, 2**31) or len(counts) != n_classes:
        raise NetworkError(
            f"its support_vectors must be {n_classes} positive integers, one for each class; "
            f"{short_repr(counts)} came"
        )
    return tuple(counts)


def _are_integers(values: Any, least: int, most: int) -> bool:
    return isinstance(values, list) and all(type(v) is int and least <= v <= most for v in values)


def _checked_number(document: Mapping[str, Any], name: str, least: float, most: float) -> float:
    value: Any = document.get(name)
    if type(value) not in (int, float) or not least <= value <= most:
        raise NetworkError(
            f"its {name} must be a number from {least:g} to {most:g}; {short_repr(value)} came"
        )
    return float(value)


def _checked_integer(document: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value: Any = document.get(name)
    if not _are_integers([value], least, most):
        raise NetworkError(
            f"its {name} must be an integer from {least} to {most}; {short_repr(value)} came"
        )
    return int(value)


# the tensors


def _checked_rank(file: TensorFile, n: int, size: int) -> int:
    """How many vectors the common factor along mode n has."""
    stored = file.arrays.get(f"factor{n}")
    shape = None if stored is None else stored.shape
    if shape is None or len(shape) != 2 or not 1 <= shape[1] <= size:
        came = "none" if shape is None else short(shape)
        raise NetworkError(
            f"tensor 'factor{n}' must have shape ({size}, rank) with a rank of 1 to {size}; {came} came"
        )
    return shape[1]


def _checked_arrays(file: TensorFile, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Matrix]:
    """All tensors: what they are is checked before the first is read."""
    for name in shapes:
        if name not in file.arrays:
            raise NetworkError(f"tensor {name!r} is missing")
    if len(file.arrays) != len(shapes):
        raise NetworkError(f"it has {len(file.arrays)} tensors; a classifier has {len(shapes)}")
    for name, shape in shapes.items():
        stored = file.arrays[name]
        if (stored.dtype, stored.shape) != ("F64", shape):
            raise NetworkError(
                f"tensor {name!r} must be F64 of shape {short(shape)}; {stored.dtype} of shape "
                f"{short(stored.shape)} came"
            )
    found = {name: file.read(name) for name in shapes}
    for name, array in found.items():
        if not np.all(np.abs(array) <= _LARGEST):
            raise NetworkError(
                f"tensor {name!r} must hold finite numbers of at most 2**60; some are not"
            )
    return found


def _checked_confusion(confusion: Matrix) -> Matrix:
    counts = np.clip(confusion, 0, 2**31).astype(int)
    if np.any(counts != confusion) or not counts.sum():
        raise NetworkError("tensor 'confusion' must count images; some entries are no such numbers")
    return counts
