"""Support vector machines on distances that were computed once.

An RBF kernel exp(-gamma d^2) needs nothing of samples but their squared distances. These are one matrix
product; each kernel that is tried is then one exponential, and a fold of cross-validation is a part of
it. The machine sees precomputed kernels only, one-vs-one between classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.svm import SVC

from tnsum.experiments._protocols import WIDTHS
from tnsum.experiments._splits import Indices

Matrix: TypeAlias = np.ndarray[Any, Any]
Folds: TypeAlias = Sequence[tuple[Indices, Indices]]


def squared_distances(rows: Matrix, others: Matrix) -> Matrix:
    """The squared Euclidean distance of each row to each of the others, in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances(np.array([[0.0], [2.0]]), np.array([[1.0], [5.0]])).tolist()
    [[1.0, 25.0], [1.0, 9.0]]
    """
    # Far from the origin the differences of squares would lose digits.
    middle = others.mean(axis=0, dtype=float)
    rows, others = rows - middle, others - middle
    found: Matrix = rows @ others.T
    found *= -2
    found += np.einsum("ij,ij->i", rows, rows)[:, None]
    found += np.einsum("ij,ij->i", others, others)
    np.maximum(found, 0, out=found)
    return found


def rbf(distances: Matrix, gamma: float) -> Matrix:
    """The kernel exp(-gamma d^2) of squared distances."""
    kernel = distances * -gamma
    return np.exp(kernel, out=kernel)


def predicted(trained: Matrix, labels: Indices, tested: Matrix, cost: float) -> Indices:
    """The labels that a support vector machine gives to tested samples.

    `trained` is the kernel of the training samples with each other, `tested` that of the tested samples
    with these. Where there is only one label to be learned, everything has it.
    """
    if np.all(labels == labels[0]):
        return np.full(len(tested), labels[0])
    machine = SVC(C=cost, kernel="precomputed").fit(trained, labels)
    found: Indices = machine.predict(tested)
    return found


def chosen_width(distances: Matrix, labels: Indices, folds: Folds, cost: float) -> float:
    """The one of `WIDTHS` with which cross-validation on the training samples errs least.

    `distances` are the squared ones of the training samples. Of several that are equally good it is the
    middle one.
    """
    scale = mean_distance(distances)
    n_right = []
    for width in WIDTHS:
        kernel = rbf(distances, width / scale)
        n_right.append(sum(_n_right(kernel, labels, fold, cost) for fold in folds))
    best = [k for k, n in enumerate(n_right) if n == max(n_right)]
    return WIDTHS[best[len(best) // 2]]


def mean_distance(distances: Matrix) -> float:
    """The mean of squared distances; one where all are zero."""
    return float(distances.mean()) or 1.0


def _n_right(kernel: Matrix, labels: Indices, fold: tuple[Indices, Indices], cost: float) -> int:
    fitted, held = fold
    trained, tested = kernel[np.ix_(fitted, fitted)], kernel[np.ix_(held, fitted)]
    return int(np.sum(predicted(trained, labels[fitted], tested, cost) == labels[held]))
