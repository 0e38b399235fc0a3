"""Support vector machines on distances that were computed once.

An RBF kernel exp(-gamma d^2) needs nothing of samples but their squared distances. These are one matrix
product; each kernel that is tried is then one exponential, and a fold of cross-validation is a part of
it. The machine sees precomputed kernels only, one-vs-one between classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from sklearn.svm import SVC

from tnsum.experiments._protocols import WIDTHS
from tnsum.experiments._splits import Indices
from tnsum.fusion._samples import Matrix

Folds: TypeAlias = Sequence[tuple[Indices, Indices]]


def rbf(distances: Matrix, gamma: float) -> Matrix:
    """The kernel exp(-gamma d^2) of squared distances."""
    kernel = distances * -gamma
    return np.exp(kernel, out=kernel)


def predicted(trained: Matrix, labels: Indices, tested: Matrix, cost: float) -> Indices:
    """The labels that a support vector machine gives to tested samples.

    `trained` is the kernel of the training samples with each other, `tested` that of the tested samples
    with these. Where there is only one label to be learned, everything has it.
    """
    machine = _fitted(trained, labels, cost)
    return _labels(machine, labels, tested)


def predicted_with_leads(
    trained: Matrix, labels: Indices, tested: Matrix, cost: float
) -> tuple[Indices, Matrix]:
    """The same, and how clearly each label won: the closest of its duels with the other labels."""
    machine = _fitted(trained, labels, cost)
    found = _labels(machine, labels, tested)
    if machine is None:
        return found, np.zeros(len(tested))
    duels = machine.decision_function(tested)
    # Of two classes scikit-learn turns the signs: positive is the second.
    duels = -duels[:, None] if duels.ndim == 1 else duels
    first, second = np.triu_indices(len(machine.classes_), 1)
    winner = np.searchsorted(machine.classes_, found)[:, None]
    own = np.where(winner == first, duels, np.where(winner == second, -duels, np.inf))
    return found, own.min(axis=1)


def _fitted(trained: Matrix, labels: Indices, cost: float) -> SVC | None:
    if np.all(labels == labels[0]):
        return None
    return SVC(C=cost, kernel="precomputed", decision_function_shape="ovo").fit(trained, labels)


def _labels(machine: SVC | None, labels: Indices, tested: Matrix) -> Indices:
    found: Indices = np.full(len(tested), labels[0]) if machine is None else machine.predict(tested)
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
