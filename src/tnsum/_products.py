"""Products of nodes whose axes have names: what einsum does, one pair at a time, in any library."""

import math
from collections.abc import Iterable, Sequence

from tnsum._typing import Array, Label, Namespace, Operand


def simplified(xp: Namespace, operand: Operand, keep: Iterable[Label]) -> Operand:
    """One node on its own: repeated modes become diagonals, modes not in `keep` are summed."""
    array, modes = operand
    while len(set(modes)) < len(modes):
        mode = next(m for m in modes if modes.count(m) > 1)
        first = modes.index(mode)
        second = modes.index(mode, first + 1)
        rest = [k for k in range(len(modes)) if k not in (first, second)]
        array = xp.linalg.diagonal(xp.permute_dims(array, (*rest, first, second)))
        modes = (*(modes[k] for k in rest), mode)
    kept = set(keep)
    summed = tuple(k for k, mode in enumerate(modes) if mode not in kept)
    if summed:
        array = xp.sum(array, axis=summed)
        modes = tuple(mode for mode in modes if mode in kept)
    return array, modes


def transposed(xp: Namespace, operand: Operand, modes: Sequence[Label]) -> Array:
    """The operand's array with its axes in the order of `modes`."""
    array, held = operand
    axes = tuple(held.index(mode) for mode in modes)
    return array if axes == tuple(range(len(axes))) else xp.permute_dims(array, axes)


def product(xp: Namespace, a: Operand, b: Operand, keep: Iterable[Label]) -> Operand:
    """The product of two simplified nodes, summed over the common modes not in `keep`.

    One matrix product, batched over the common modes that are kept.
    """
    kept = set(keep)
    ours, theirs = set(a[1]), set(b[1])
    batch = [m for m in a[1] if m in theirs and m in kept]
    summed = [m for m in a[1] if m in theirs and m not in kept]
    left = [m for m in a[1] if m not in theirs]
    right = [m for m in b[1] if m not in ours]
    x = transposed(xp, a, [*batch, *left, *summed])
    y = transposed(xp, b, [*batch, *summed, *right])
    shape = (*x.shape[: len(batch) + len(left)], *y.shape[len(batch) + len(summed) :])
    x_shape, y_shape = _matrix_shapes(x.shape, y.shape, len(batch), len(left), len(summed))
    x, y = _reshape(xp, x, x_shape), _reshape(xp, y, y_shape)
    z = x * y if x_shape[-1] == 1 else x @ y
    return _reshape(xp, z, shape), (*batch, *left, *right)


def _matrix_shapes(
    x: Sequence[int], y: Sequence[int], n_batch: int, n_left: int, n_summed: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes (batch, left, summed) and (batch, summed, right), the batch left out if there is none."""
    batch = (math.prod(x[:n_batch]),) if n_batch else ()
    left = math.prod(x[n_batch : n_batch + n_left])
    summed = math.prod(y[n_batch : n_batch + n_summed])
    right = math.prod(y[n_batch + n_summed :])
    return (*batch, left, summed), (*batch, summed, right)


def _reshape(xp: Namespace, array: Array, shape: tuple[int, ...]) -> Array:
    return array if tuple(array.shape) == shape else xp.reshape(array, shape)
