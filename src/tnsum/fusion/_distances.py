"""Distances of all pairs of samples."""

from __future__ import annotations

import numpy as np

from tnsum.fusion._samples import Matrix


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
