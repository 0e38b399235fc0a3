"""Orthonormal bases of the branches of a tree, and a dense array in them.

A tree is rooted at one of its nodes. Any other node v, with all that lies below it, is a branch; the
branch's physical modes are the rows of a matrix X_v made of the array x, all other modes its columns.
From the leaves to the root every branch gets an orthonormal basis W_v: with W the bases of the branches
just below v, and unit vectors for v's own physical modes,

    U_v = leading left singular vectors of (W kron ... kron 1)^H X_v,     W_v = (W kron ... kron 1) U_v,

so that U_v, with the rank of the mode up as last axis, is the array of node v. The root's array is x in
the bases of the branches below it. In a Tucker network every branch is a single node: this is the HOSVD,
each factor from the original unfolding. In a tensor train each branch holds all before it: TT-SVD.

Let P_v be the projection on W_v, and d_v the norm of what is dropped at v, which is orthogonal to W_v
and lies in the span of the bases below. Then, with P for the projections of the branches just below,

    |x - P_v x|^2 = |x - (P kron ... kron 1) x|^2 + d_v^2,
    |x - (P kron ... kron 1) x|^2 <= sum over the branches below of |x - P x|^2,

and the squared error of the whole is at most the sum of all d_v^2.

*Sequentially* truncated, x is replaced by its projection whenever a basis is found: what follows is
smaller and quicker, and the squared error is equal to the sum of d_v^2. *HOOI* starts from the HOSVD and
chooses each factor anew, the best for given others, in turns: the error falls to a local minimum.

All arrays have a first axis that counts samples, whose bases are found at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tnsum import formats
from tnsum._arrays import conj, copied
from tnsum._products import product, transposed
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.compression._branches import branches_of
from tnsum.contraction import STACK
from tnsum.errors import ModeError, NetworkError, TopologyError
from tnsum.topology import Topology, listed

_FORMATS = "tucker", "tensor_train", "tree"

Find: TypeAlias = Callable[[Array, str, int | None], Array]
"""Gives the leading left singular vectors of matrices: as many as wanted for a mode, or so many."""

Bases: TypeAlias = dict[str, Operand]
"""The basis U_v of each branch, by its mode up, which is the last of the modes."""

# HOOI ends for a sample when its squared error falls by less than this part of it, or than so many times
# machine precision of the sample; and after so many sweeps.
_LITTLE, _ROUNDING, _SWEEPS = 1e-6, 8.0, 50


@dataclass(frozen=True)
class Node:
    """A node of a rooted tree.

    Attributes
    ----------
    name : str
    up : str or None
        The mode to the parent; the root has none.
    rows : tuple of str
        All other modes, in the node's order.
    below : tuple of tuple of str
        For each child all modes of its branch, those farther down first; the last leads to the child.
    """

    name: str
    up: str | None
    rows: tuple[str, ...]
    below: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Tree:
    """A tree whose nodes are in an order in which children come before parents, the root last."""

    topology: Topology
    nodes: tuple[Node, ...]

    @property
    def is_star(self) -> bool:
        """Whether all nodes but the root are joined to the root."""
        return not any(node.below for node in self.nodes[:-1])


def tree_of(format: str | Topology, order: int) -> Tree:
    """The rooted tree of a format for arrays of an order, or an error that says what does not fit."""
    if not isinstance(format, Topology):
        if not isinstance(format, str) or format not in _FORMATS:
            raise NetworkError(
                f"format must be one of {listed(_FORMATS)}, or a Topology; {format!r} came."
            )
        if order == 0:
            raise NetworkError(f"Format {format!r} needs an array with at least one axis.")
        return _named_tree(format, order)
    if not format.is_tree:
        raise TopologyError(
            f"An array is decomposed into a tree, in which each contraction mode joins two nodes and "
            f"no two ways lead from one node to another; a topology with {len(format.nodes)} nodes "
            f"and {len(format.contraction_modes)} contraction modes that is none came."
        )
    if format.order != order:
        raise ModeError(
            f"The topology must have one physical mode for each axis: it has "
            f"{listed(format.physical_modes)}, the array has {order} axes."
        )
    return _rooted(format, branches_of(format)[-1].name)


@lru_cache(maxsize=256)
def _named_tree(format: str, order: int) -> Tree:
    """The tree of a format, with the names that its builder gives."""
    one = np.ones((1, 1))
    if format == "tensor_train":
        topology = formats.tensor_train([one[None]] * order).topology
        return _rooted(topology, f"node{order - 1}")
    if format == "tucker":
        topology = formats.tucker(np.ones((1,) * order), [one] * order).topology
    else:
        topology = formats.tree(_balanced(order, 0)).topology
    return _rooted(topology, next(iter(topology.nodes)))


def _balanced(n_leaves: int, n_up: int) -> Any:
    """A balanced binary tree, as `formats.tree` takes it."""
    if n_leaves == 1:
        return np.ones((1,) * (1 + n_up))
    n_left = (n_leaves + 1) // 2
    return np.ones((1,) * (2 + n_up)), [_balanced(n_left, 1), _balanced(n_leaves - n_left, 1)]


@lru_cache(maxsize=256)
def _rooted(topology: Topology, root: str) -> Tree:
    """The tree rooted at one of its nodes."""
    order, above = [root], dict[str, str]()
    summed = set(topology.contraction_modes)
    for name in order:
        # Backwards, so that in the reversed order the first modes come first.
        for mode in reversed(topology.nodes[name]):
            if mode in summed and mode != above.get(name):
                other = next(n for n in topology.holders(mode) if n != name)
                above[other] = mode
                order.append(other)
    branches: dict[str, tuple[str, ...]] = {}
    nodes = []
    for name in reversed(order):
        up = above.get(name)
        rows = tuple(mode for mode in topology.nodes[name] if mode != up)
        below = tuple(branches[mode] for mode in rows if mode in summed)
        if up is not None:
            branches[up] = (*(mode for branch in below for mode in branch), up)
        nodes.append(Node(name, up, rows, below))
    return Tree(topology, tuple(nodes))


def decomposed(xp: Namespace, tree: Tree, x: Array, find: Find, method: str) -> dict[str, Array]:
    """The arrays of all nodes, for samples x of shape (m, ...); that of the root comes last."""
    whole = x, (STACK, *tree.topology.physical_modes)
    bases, core = _bases(xp, tree, whole, find, method == "sequential")
    if method == "hooi":
        bases, core = _alternated(xp, whole, find, bases, core)
    if not bases:
        core = copied(xp, core[0]), core[1]
    found = {}
    for node in tree.nodes:
        operand = core if node.up is None else bases[node.up]
        found[node.name] = transposed(xp, operand, (STACK, *tree.topology.nodes[node.name]))
    return found


def _bases(
    xp: Namespace, tree: Tree, x: Operand, find: Find, sequential: bool
) -> tuple[Bases, Operand]:
    """The bases of all branches, and x in those below the root."""
    bases: Bases = {}
    seen: dict[str, Operand] = {}
    here = x
    for node in tree.nodes:
        if not sequential:
            here = _reduced(xp, x, node, bases, seen)
        if node.up is not None:
            bases[node.up] = _basis(xp, here, node.rows, node.up, find)
            if sequential:
                here = _projected(xp, here, bases[node.up])
            else:
                seen[node.up] = here
    return bases, here


def _reduced(
    xp: Namespace, x: Operand, node: Node, bases: Bases, seen: dict[str, Operand]
) -> Operand:
    """The array in the bases of the branches below a node, and of no others.

    `seen` holds, by its mode up, what the basis of each branch was found from.
    """
    if not node.below:
        return x
    longest = max(node.below, key=len)
    here = _projected(xp, seen[longest[-1]], bases[longest[-1]])
    for branch in node.below:
        del seen[branch[-1]]
        if branch is not longest:
            for mode in branch:
                here = _projected(xp, here, bases[mode])
    return here


def _basis(
    xp: Namespace, x: Operand, rows: Sequence[Label], up: str, find: Find, rank: int | None = None
) -> Operand:
    """The leading left singular vectors of x with these modes as rows."""
    columns = [mode for mode in x[1] if mode not in (STACK, *rows)]
    if x[1] not in ((STACK, *rows, *columns), (STACK, *columns, *rows)):
        # Numbers must be moved: with the longest of the columns' modes last, in long runs.
        size_of = dict(zip(x[1], x[0].shape, strict=True))
        columns.sort(key=size_of.__getitem__)
    array = transposed(xp, x, (STACK, *rows, *columns))
    m, *sizes = array.shape[: len(rows) + 1]
    n_rows = math.prod(sizes)
    matrices = xp.reshape(array, (m, n_rows, math.prod(array.shape) // (m * n_rows)))
    vectors = find(matrices, up, rank)
    return xp.reshape(vectors, (m, *sizes, vectors.shape[-1])), (STACK, *rows, up)


def _projected(xp: Namespace, x: Operand, basis: Operand) -> Operand:
    """U^H x: the rows of the basis give way to its mode up."""
    array, modes = basis
    return product(xp, (conj(xp, array), modes), x, (STACK,))


def _alternated(
    xp: Namespace, x: Operand, find: Find, bases: Bases, core: Operand
) -> tuple[Bases, Operand]:
    """The bases of a star, improved in turns, and x in them: HOOI.

    A sample that improves no more stays as it is, whatever others do.
    """
    array, modes = core
    total, inside = _squares(xp, x[0]), _squares(xp, array)
    rounding = _ROUNDING * float(xp.finfo(total.dtype).eps) * total
    for _ in range(_SWEEPS if bases else 0):
        new, new_array = _swept(xp, x, find, bases, modes)
        new_inside = _squares(xp, new_array)
        is_better = new_inside - inside > xp.maximum(_LITTLE * (total - inside), rounding)
        if not bool(xp.any(is_better)):
            break
        bases = {
            mode: (_chosen(xp, is_better, basis[0], bases[mode][0]), basis[1])
            for mode, basis in new.items()
        }
        array = _chosen(xp, is_better, new_array, array)
        inside = xp.where(is_better, new_inside, inside)
    return bases, (array, modes)


def _swept(
    xp: Namespace, x: Operand, find: Find, bases: Bases, modes: Sequence[Label]
) -> tuple[Bases, Array]:
    """Each basis chosen anew, the best for the others, and x in them, its axes in this order."""
    new, here = dict(bases), x
    for up, (array, held) in bases.items():
        here = x
        for other, basis in new.items():
            if other != up:
                here = _projected(xp, here, basis)
        new[up] = _basis(xp, here, held[1:-1], up, find, array.shape[-1])
    return new, transposed(xp, _projected(xp, here, new[up]), modes)


def _squares(xp: Namespace, array: Array) -> Array:
    """The squared norm of each sample."""
    return xp.linalg.vector_norm(xp.reshape(array, (array.shape[0], -1)), axis=1) ** 2


def _chosen(xp: Namespace, which: Array, new: Array, old: Array) -> Array:
    return xp.where(xp.reshape(which, (-1, *(1,) * (new.ndim - 1))), new, old)
