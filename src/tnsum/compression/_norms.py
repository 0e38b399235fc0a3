"""How large the summands are: what the rounding error of their sum is measured by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tnsum._arrays import conj, on_host
from tnsum._scale import rescaled_each
from tnsum._typing import Array, Namespace
from tnsum.compression._branches import Branch, Group
from tnsum.compression._products import absorbed


def log2_of_norms(
    xp: Namespace, tree: Sequence[Branch], groups: Sequence[Group], power: int
) -> float:
    """The log2 of all summands' norms added, or of the root of their powers added.

    None is left out: it may be the largest.
    """
    logs = np.concatenate([_log2_norms(xp, tree, group) for group in groups])
    top = float(np.max(logs))
    if not np.isfinite(top):
        return top
    return top + float(np.log2(np.sum(2.0 ** (power * (logs - top))))) / power


def _log2_norms(xp: Namespace, tree: Sequence[Branch], group: Group) -> Array:
    """The log2 of the norm of each summand, from the Gram matrices of its branches."""
    grams: list[Array] = []
    exponents: Array = 0.0
    for branch, array in zip(tree, group, strict=True):
        m, up = array.shape[0], array.shape[-1]
        other = absorbed(xp, array, [grams[c] for c in branch.children], 0)
        bra = xp.matrix_transpose(xp.reshape(conj(xp, array), (m, -1, up)))
        gram, taken = rescaled_each(xp, xp.matmul(bra, xp.reshape(other, (m, -1, up))), 0, 30.0)
        grams.append(xp.matrix_transpose(gram))
        exponents = exponents + taken
    squares = np.abs(np.asarray(on_host(grams[-1]))[:, 0, 0]).astype(float)
    with np.errstate(divide="ignore"):
        return (np.log2(squares) + np.asarray(on_host(exponents))) / 2
