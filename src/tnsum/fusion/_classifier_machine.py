"""A support vector machine of several classes as plain arrays, and what it says of features.

Every two of k classes fight a duel over a sample x, decided by a sum over the support vectors of both,

    D_ij(x) = sum over v of class i or j of a_v exp(-gamma |x - v|^2) + b_ij,     D_ji = -D_ij,

which class i wins if it is positive. There are k - 1 coefficients for each vector, one for each other
class. The *margin* of a class is the number of duels that it wins, and, so that equal numbers are told
apart, the sum s of its D_ij, brought between -1/3 and 1/3 as s / (3 |s| + 3): this is scikit-learn's
`SVC(break_ties=True)`, whose decision function and predictions these are. The *lead* of a class is its
worst D_ij: it says how far the closest rival is, which a number of duels does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.svm import SVC

from tnsum.fusion._distances import squared_distances
from tnsum.fusion._samples import Matrix

# The numbers of a kernel, or of duels, that are held at once.
_BLOCK = 2**22


@dataclass(frozen=True)
class KernelMachine:
    """A support vector machine with an RBF kernel.

    Attributes
    ----------
    vectors : ndarray of shape (m, features)
        The support vectors, those of the first class first.
    counts : tuple of int
        How many there are of each class.
    coefficients : ndarray of shape (classes - 1, m)
        Those of a vector of class i in its duels with 0, ..., i - 1, i + 1, ...
    intercepts : ndarray of shape (classes (classes - 1) / 2,)
        b_ij of the classes 01, 02, ..., 12, 13, ...
    gamma : float
    """

    vectors: Matrix
    counts: tuple[int, ...]
    coefficients: Matrix
    intercepts: Matrix
    gamma: float

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.counts)

    def duels(self, features: Matrix) -> Iterator[Matrix]:
        """D_ij of some samples at a time, of shape (some, classes, classes)."""
        step = max(1, _BLOCK // max(len(self.vectors), self.n_classes**2))
        for start in range(0, len(features), step):
            distances = squared_distances(features[start : start + step], self.vectors)
            yield self.duels_by(np.exp(-self.gamma * distances))

    def duels_by(self, kernel: Matrix) -> Matrix:
        """D_ij of samples from their kernel with the support vectors, of shape (n, m)."""
        k = self.n_classes
        found = np.zeros((len(kernel), k, k))
        for i, own in enumerate(_ranges(self.counts)):
            parts = kernel[:, own] @ self.coefficients[:, own].T
            others = np.delete(np.arange(k), i)
            # A coefficient counts for the class with the smaller number in a duel.
            signs = np.where(others > i, 1, -1)
            found[:, i, others] += signs * parts
            found[:, others, i] -= signs * parts
        first, second = np.triu_indices(k, 1)
        found[:, first, second] += self.intercepts
        found[:, second, first] -= self.intercepts
        return found


def fitted_machine(
    kernel: Matrix, features: Matrix, labels: Matrix, gamma: float, C: float
) -> tuple[KernelMachine, Matrix]:
    """The machine of samples whose kernel with each other is given, and which of them support it."""
    svc = SVC(kernel="precomputed", C=C, cache_size=500).fit(kernel, labels)
    # Of two classes scikit-learn turns the signs: positive is the second.
    sign = -1.0 if len(svc.n_support_) == 2 else 1.0
    machine = KernelMachine(
        np.ascontiguousarray(features[svc.support_]),
        tuple(int(n) for n in svc.n_support_),
        sign * np.asarray(svc.dual_coef_),
        sign * np.asarray(svc.intercept_),
        gamma,
    )
    return machine, np.asarray(svc.support_)


def margins_of(duels: Matrix) -> Matrix:
    """The margin of each class, of shape (n, classes)."""
    first, second = np.triu_indices(duels.shape[1], 1)
    wins = np.zeros(duels.shape, dtype=bool)
    wins[:, first, second] = duels[:, first, second] >= 0
    wins[:, second, first] = ~wins[:, first, second]
    total = duels.sum(axis=2)
    return np.asarray(wins.sum(axis=2) + total / (3 * np.abs(total) + 3))


def leads_of(duels: Matrix) -> Matrix:
    """The lead of each class over its closest rival, of shape (n, classes)."""
    own = np.eye(duels.shape[1], dtype=bool)
    return np.asarray(np.where(own, np.inf, duels).min(axis=2))


def _ranges(counts: tuple[int, ...]) -> Iterator[slice]:
    end = 0
    for count in counts:
        yield slice(end, end + count)
        end += count
