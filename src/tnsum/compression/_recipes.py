"""Products of several operands, compiled once for each topology and all sizes.

A sweep makes the same few hundred products again and again, of arrays of the same shapes. In which
order, along which axes and as which matrices is found once; the rest is to permute,
reshape and multiply.

Overlaps of a network with itself do not change when both layers are exchanged. As a matrix from pairs of
indices (a, a') to pairs (b, b') such an array maps symmetric pairs to symmetric ones and antisymmetric
pairs to antisymmetric ones, each about half of all: the product of two takes a quarter of the
multiplications. Where these are many that is worth the copies, and takes half the time.

Axes are chosen so that little is copied: those that are summed stand in the order of the larger operand,
where that spares a copy of it, and the result stays in the order in which it comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tnsum._arrays import library
from tnsum._memory import check_memory
from tnsum._products import simplified
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.contraction import ADVICE
from tnsum.paths import plan_for

Shape = tuple[int, ...]


def ket(mode: Label) -> Label:
    """The label of a contraction mode of Z in <Y|Z>."""
    return ("ket", mode)


def is_ket(label: Label) -> bool:
    """Whether a label is of a contraction mode of Z."""
    return isinstance(label, tuple) and label[0] == "ket"


@dataclass(frozen=True)
class _Matrix:
    """How an operand is made a matrix, or a stack of matrices."""

    axes: Shape | None
    shape: Shape


@dataclass(frozen=True)
class _Product:
    """A product of two operands, by their numbers, as one matrix product.

    If both layers may be exchanged, `layers` are the three extents of either layer: of what is only in
    the first operand, of what is summed over, and of what is only in the second.
    """

    left: int
    right: int
    matrices: tuple[_Matrix, _Matrix]
    shape: Shape
    layers: Shape | None = None


@dataclass(frozen=True)
class _Preparation:
    """What is done with an operand before any product."""

    shape: Shape | None
    modes: tuple[Label, ...]
    keep: frozenset[Label] | None


@dataclass(frozen=True)
class Recipe:
    """A compiled product.

    Attributes
    ----------
    modes : tuple of Label
        The modes of the result.
    """

    preparations: tuple[_Preparation, ...]
    products: tuple[_Product, ...]
    axes: Shape | None
    shape: Shape
    modes: tuple[Label, ...]
    largest: int

    def __call__(self, xp: Namespace, arrays: Sequence[Array]) -> Array:
        """The product of arrays of the shapes for which this was compiled."""
        check_memory(self.largest, arrays[0].dtype, "The largest array on the way", ADVICE)
        live: list[Array] = []
        for array, preparation in zip(arrays, self.preparations, strict=True):
            if preparation.shape is not None:
                array = xp.reshape(array, preparation.shape)
            if preparation.keep is not None:
                array, _ = simplified(xp, (array, preparation.modes), preparation.keep)
            live.append(array)
        for step in self.products:
            pair = live[step.left], live[step.right]
            live[step.left] = live[step.right] = None
            x, y = (_as_matrix(xp, *each) for each in zip(pair, step.matrices, strict=True))
            if step.layers is not None and _is_real_numpy(xp, x):
                live.append(xp.reshape(_product_of_layers(x, y, *step.layers), step.shape))
                continue
            # One matrix product; where nothing is summed over NumPy multiplies entries in less time.
            z = x * y if step.matrices[0].shape[-1] == 1 else x @ y
            live.append(xp.reshape(z, step.shape))
        result = live[-1]
        if self.axes is not None:
            result = xp.permute_dims(result, self.axes)
        return xp.reshape(result, self.shape)


def _is_real_numpy(xp: Namespace, array: Array) -> bool:
    return library(xp) == "numpy" and not np.iscomplexobj(array)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[Array, Array, Array]:
    """The places of (i, j) and of (j, i) with i <= j among pairs of indices, and the part of a sum over
    all pairs that a product of two sums, or differences, of both is.
    """
    i, j = np.triu_indices(n)
    return i * n + j, j * n + i, np.where(i < j, 0.5, 0.25)


def _product_of_layers(x: Array, y: Array, left: int, summed: int, right: int) -> Array:
    """The product of two matrices between pairs of indices, neither of which changes when the indices of
    all pairs are exchanged.
    """
    (rows, rows_too, _), (columns, columns_too, _) = _pairs(left), _pairs(right)
    upper, lower, part = _pairs(summed)
    some = x.take(rows, axis=0)
    a, b = some.take(upper, axis=1), some.take(lower, axis=1)
    c, d = (y.take(k, axis=0).take(columns, axis=1) for k in (upper, lower))
    even, odd = ((a + b) * part) @ (c + d), ((a - b) * part) @ (c - d)
    found, half = np.empty((left**2, right**2)), np.empty((len(rows), right**2))
    for place, sign in ((rows, 1), (rows_too, -1)):
        # Where both are the same the odd part is zero.
        half[:, columns_too] = even - sign * odd
        half[:, columns] = even + sign * odd
        found[place] = half
    return found


def _as_matrix(xp: Namespace, array: Array, matrix: _Matrix) -> Array:
    if matrix.axes is not None:
        array = xp.permute_dims(array, matrix.axes)
    return xp.reshape(array, matrix.shape)


def multiplied(
    xp: Namespace,
    operands: Sequence[Operand],
    output: Sequence[Label],
    in_order: bool = False,
    is_own: bool = False,
) -> Operand:
    """The product of all operands, summed over every mode that is not in `output`.

    Its modes come in any order, unless they are to be in that of `output`. No operand holds a mode
    twice. With `is_own` they are of the overlap of a network with itself.
    """
    shapes = tuple(tuple(array.shape) for array, _ in operands)
    recipe = _compiled(
        shapes, tuple(modes for _, modes in operands), tuple(output), in_order, is_own
    )
    return recipe(xp, [array for array, _ in operands]), recipe.modes


@dataclass(frozen=True)
class _Shape:
    """Stands for an array where only its shape is asked for."""

    shape: Shape


@lru_cache(maxsize=8192)
def _compiled(
    shapes: tuple[Shape, ...],
    modes: tuple[tuple[Label, ...], ...],
    output: tuple[Label, ...],
    in_order: bool,
    is_own: bool,
) -> Recipe:
    plan, numbers = plan_for([(_Shape(s), m) for s, m in zip(shapes, modes, strict=True)], output)
    names = {number: mode for mode, number in numbers.items()}
    keep = [frozenset(names[k] for k in kept) for kept in plan.keep]
    size: dict[Label, int] = {}
    live: list[tuple[Label, ...]] = []
    preparations = []
    for k, (shape, held) in enumerate(zip(shapes, modes, strict=True)):
        size.update(zip(held, shape, strict=True))
        # Summed modes of size one would only cost axes.
        left = tuple(m for m in held if m in numbers)
        reshaped = tuple(size[m] for m in left) if len(left) < len(held) else None
        is_whole = keep[k].issuperset(left)
        preparations.append(_Preparation(reshaped, left, None if is_whole else keep[k]))
        live.append(tuple(m for m in left if m in keep[k]))
    products = []
    for (i, j), kept in zip(plan.path, keep[len(shapes) :], strict=True):
        product, held = _product(i, j, live[i], live[j], kept, size, is_own)
        products.append(product)
        live.append(held)
    held = live[-1]
    trivial = tuple(m for m in output if m not in held)
    assert all(size[m] == 1 for m in trivial)
    wanted = output if in_order else (*held, *trivial)
    order = tuple(held.index(m) for m in wanted if m in held)
    axes = None if order == tuple(range(len(order))) else order
    shape = tuple(size[m] for m in wanted)
    return Recipe(tuple(preparations), tuple(products), axes, shape, wanted, plan.largest)


def _product(
    i: int,
    j: int,
    ours: tuple[Label, ...],
    theirs: tuple[Label, ...],
    keep: Set[Label],
    size: dict[Label, int],
    is_own: bool,
) -> tuple[_Product, tuple[Label, ...]]:
    batch = tuple(m for m in ours if m in theirs and m in keep)
    left = tuple(m for m in ours if m not in theirs)
    right = tuple(m for m in theirs if m not in ours)
    summed = [tuple(m for m in held if m in ours and m in theirs and m not in keep)
              for held in (ours, theirs)]  # fmt: skip

    def copied(order: tuple[Label, ...]) -> int:
        parts = (ours, (batch, left, order)), (theirs, (batch, order, right))
        return sum(_extent(h, size) for h, groups in parts if not _is_view(h, groups, size))

    order = min(summed, key=copied)
    layers: Shape | None = None
    if is_own and not batch:
        found = [_first_layer(modes, size) for modes in (left, order, right)]
        extents = tuple(n for each in found if each is not None for n in each[1:])
        if len(extents) == 3 and math.prod(extents) ** 2 > _MUCH:
            left, order, right = (each[0] for each in found if each is not None)
            layers = extents
    shapes = [
        ((_extent(batch, size),) if batch else ()) + (_extent(a, size), _extent(b, size))
        for a, b in ((left, order), (order, right))
    ]
    matrices = (
        _Matrix(_axes(ours, (*batch, *left, *order)), shapes[0]),
        _Matrix(_axes(theirs, (*batch, *order, *right)), shapes[1]),
    )
    held = (*batch, *left, *right)
    return _Product(i, j, matrices, tuple(size[m] for m in held), layers), held


# A product of so many multiplications is made for each kind of pairs apart.
_MUCH = 2**27


def _first_layer(
    modes: tuple[Label, ...], size: dict[Label, int]
) -> tuple[tuple[Label, ...], int] | None:
    """The modes of one layer and then those of the other, and the extent of one; None if they differ."""
    first = tuple(m for m in modes if not is_ket(m))
    second = tuple(map(ket, first))
    if len(first) + len(second) != len(modes) or not set(second) <= set(modes):
        return None
    return (*first, *second), _extent(first, size)


def _extent(modes: Sequence[Label], size: dict[Label, int]) -> int:
    return math.prod(size[m] for m in modes)


def _axes(held: tuple[Label, ...], wanted: tuple[Label, ...]) -> Shape | None:
    return None if held == wanted else tuple(held.index(m) for m in wanted)


def _is_view(
    held: tuple[Label, ...], groups: Sequence[tuple[Label, ...]], size: dict[Label, int]
) -> bool:
    """Whether an array with these axes need not be copied to join each group to one axis."""
    axes = [m for m in held if size[m] > 1]
    for group in groups:
        found = [axes.index(m) for m in group if size[m] > 1]
        if found != list(range(found[0], found[0] + len(found))) if found else False:
            return False
    return True
