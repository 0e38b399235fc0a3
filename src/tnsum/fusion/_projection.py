"""Products of many samples with a matrix along each of their modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from tnsum.fusion._samples import Matrix

# The entries of a Kronecker product that is quicker than its factors one after the other.
_SMALL = 2**14


def projected(samples: Matrix, factors: Sequence[Matrix]) -> Matrix:
    """Each sample times the transpose of a factor along each mode: (m, ranks).

    The last modes go together, as one matrix product with the Kronecker product of their factors: it
    reads the samples once, as they lie in memory.
    """
    n_together = _n_together(factors)
    first, last = factors[: len(factors) - n_together], factors[len(factors) - n_together :]
    m, sizes = samples.shape[0], samples.shape[1 : 1 + len(first)]
    together = reduce(np.kron, last)
    found = np.reshape(samples, (-1, together.shape[0])) @ together
    for n in range(len(first) - 1, -1, -1):
        found = np.reshape(found, (m * math.prod(sizes[:n]), sizes[n], -1))
        found = np.matmul(first[n].T, found)
    return np.reshape(found, (m, *(factor.shape[1] for factor in factors)))


def _n_together(factors: Sequence[Matrix]) -> int:
    """How many modes at the end go together: not all, if there are several."""
    entries, n = 1, 0
    for factor in reversed(factors[1:]):
        entries *= factor.size
        if entries > _SMALL:
            break
        n += 1
    return max(1, n)
