"""Matrices side by side, [A_1 | A_2 | ...], of which only the left singular vectors are wanted.

They are those of R^T, where R is the triangle of the transpose: it has as many columns as the matrices
have rows, however many of them come, and one more goes in by QR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tnsum._leading import with_fixed_signs
from tnsum._matrices import svd, triangle
from tnsum.fusion._samples import Matrix


@dataclass(frozen=True)
class Concatenation:
    """Matrices of as many rows, side by side; another beside them makes a new value."""

    _triangle: Matrix

    @classmethod
    def empty(cls, n_rows: int, dtype: np.dtype[np.floating]) -> Concatenation:
        """No matrix yet."""
        return cls(np.zeros((0, n_rows), dtype=dtype))

    def beside(self, matrix: Matrix) -> Concatenation:
        """These and one more."""
        longer = np.concatenate([self._triangle, matrix.T.astype(self._triangle.dtype)])
        return Concatenation(triangle(np, longer) if len(longer) > longer.shape[1] else longer)

    def left_vectors(self) -> tuple[Matrix, Matrix]:
        """All left singular vectors, completed to an orthonormal basis, and the singular values."""
        n_found, n_rows = self._triangle.shape
        square = np.zeros((n_rows, n_rows), dtype=self._triangle.dtype)
        square[:n_found] = self._triangle
        _, values, right = svd(np, square)
        return with_fixed_signs(np, right.T[None])[0], values


def separated(vectors: Matrix, values: Matrix, energy: Matrix) -> Matrix:
    """Singular vectors with those of nearly equal values turned to the principal axes of `energy`.

    Within equal singular values the vectors are arbitrary: rounding would choose them. `energy` is a
    symmetric matrix whose quadratic form says how much of the data lies in a direction.
    """
    found = np.array(vectors)
    largest = values[0] if len(values) else 0.0
    near = np.sqrt(np.finfo(values.dtype).eps) * largest
    start = 0
    for end in range(1, len(values) + 1):
        if end < len(values) and values[start] - values[end] <= near:
            continue
        if end - start > 1 and values[start] > near:
            some = vectors[:, start:end]
            _, turn = np.linalg.eigh(some.T @ energy @ some)
            found[:, start:end] = with_fixed_signs(np, (some @ turn[:, ::-1])[None])[0]
        start = end
    return found
