"""All of an overlap but one node, for each node in turn: the environments of a fit.

The overlap <Y|Z> of two networks of one topology is multiplied along a binary tree (`_walks`), whose
leaves are the nodes, each with its two arrays, that of Y conjugated. What lies below a place of the tree
is its *inside*, all the rest its *outside*; both hold the modes that are cut between them, once for Y
and once for Z. For a place k with the places i and j below it

    inside(k) = inside(i) inside(j),    outside(i) = outside(k) inside(j),    outside(j) alike.

A walk that comes to one leaf after the other, and changes that node of Y there, needs each of these
products once, and each inside once more before it starts. So all environments, each with the nodes as
they then are, cost about four times one overlap, however many nodes there are. On a chain this is the
usual sweep with what lies left and right; on CP the insides are products, entry by entry, of Gram
matrices.

Many Z are held as a stack, whose leading axis is one more mode. Physical modes that several nodes hold
are cut too, but are the same in Y and Z.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TypeAlias

from tnsum import _arrays
from tnsum._matrices import length
from tnsum._scale import rescaled
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.compression._recipes import ket, multiplied
from tnsum.compression._walks import Tree
from tnsum.contraction import STACK, piece_size, sliced
from tnsum.orthogonal import Group


class Overlap:
    """<Y|Z> for one Z or a stack of them: the insides and outsides that have been found.

    Parameters
    ----------
    arrays : list of array
        The nodes of Y. What is found later is found with what the list then holds.
    kets : list of Operand, optional
        The nodes of Z, contraction modes named by `ket`; without them Z is Y.
    outermost : Operand
        What the whole is multiplied by: the weights of a stack.
    is_stack : bool
        Whether Y is a stack, too, each network of which meets its own Z.
    """

    def __init__(
        self,
        xp: Namespace,
        tree: Tree,
        arrays: list[Array],
        kets: Sequence[Operand] | None,
        outermost: Operand,
        is_stack: bool = False,
    ) -> None:
        self._xp, self._tree, self._arrays, self._kets = xp, tree, arrays, kets
        leading = (STACK,) if is_stack else ()
        self._held = [(*leading, *held) for held in tree.topology.nodes.values()]
        self._physical = {*tree.topology.physical_modes, *leading}
        self._stack = outermost[1]
        # Each with a power of two beside it, so that long products stay in range.
        self._inside: dict[int, tuple[Operand, float]] = {}
        self._outside: dict[int, tuple[Operand, float]] = {tree.root: (outermost, 0.0)}
        self._lengths: dict[tuple[str, int], float] = {}

    def find_inside(self, place: int) -> None:
        """Find the inside of a pair from what lies below it."""
        i, j = self._tree.pairs[place - self._tree.n_nodes]
        (some, taken), (others, taken_too) = self._below(i), self._below(j)
        modes = self._cut_modes(place)
        found = self._scaled([*some, *others], modes, taken + taken_too)
        self._inside[place], self._lengths["inside", place] = found

    def find_outside(self, place: int) -> None:
        """Find the outside of a place from what lies around it."""
        around, taken = self._around(place)
        modes = self._cut_modes(place)
        found = self._scaled(around, modes, taken)
        self._outside[place], self._lengths["outside", place] = found

    def _scaled(
        self, operands: Sequence[Operand], modes: Sequence[Label], taken: float
    ) -> tuple[tuple[Operand, float], float]:
        """A product with a power of two beside it, and its norm."""
        array, held = multiplied(self._xp, operands, modes, is_own=self._kets is None)
        size = length(self._xp, array)
        # The norm tells that the largest entry is in range, in less time than a look at each of them.
        if not _LEAST < size < 1 / _LEAST:
            array, exponent = rescaled(self._xp, array)
            taken, size = taken + float(exponent), length(self._xp, array)
        return ((array, held), taken), size

    def whole(self) -> tuple[Operand, float]:
        """The overlap itself, without what is outermost, and a power of two beside it."""
        for place in range(self._tree.n_nodes, len(self._tree.cuts)):
            self.find_inside(place)
            # No longer needed.
            for below in self._tree.pairs[place - self._tree.n_nodes]:
                self._inside.pop(below, None)
        operands, exponent = self._below(self._tree.root)
        array, modes = multiplied(self._xp, operands, self._stack)
        return (array, modes), exponent

    def inside_of(self, place: int) -> tuple[Operand, float]:
        """The inside of a pair that has been found, and the power of two beside it."""
        return self._inside[place]

    def outside_of(self, place: int) -> tuple[Operand, float]:
        """The outside of a place that has been found, and the power of two beside it."""
        return self._outside[place]

    def terms_at(self, place: int) -> tuple[float, float]:
        """How large the terms may be of which the overlap consists at a pair, and a power of two.

        The norms of its inside and outside, multiplied; zero while one of them has not been found.
        """
        if place not in self._inside or place not in self._outside:
            return 0.0, 0.0
        (_, exponent), (_, other) = self._inside[place], self._outside[place]
        norms = self._lengths["inside", place] * self._lengths["outside", place]
        return norms, exponent + other

    def normal_matrix(self, node: int) -> tuple[Array, float]:
        """The overlap without both arrays of a node: (shared physical indices, Y's indices, Z's)."""
        around, taken = self._around(node)
        cut = self._tree.cuts[node]
        shared = [m for m in self._held[node] if m in cut and m in self._physical]
        summed = [m for m in self._held[node] if m in cut and m not in self._physical]
        modes = (*shared, *summed, *map(ket, summed))
        array, _ = multiplied(self._xp, around, modes, True, self._kets is None)
        n_shared = math.prod(array.shape[: len(shared)])
        side = math.prod(array.shape[len(shared) : len(shared) + len(summed)])
        return self._xp.reshape(array, (n_shared, side, side)), taken

    def right_side(self, node: int) -> tuple[Array, float]:
        """The overlap without Y's array of a node, stacks summed: with the modes of that array."""
        around, taken = self._around(node)
        operands = [*around, self._ket(node)]
        array, _ = multiplied(self._xp, operands, self._held[node], in_order=True)
        return array, taken

    def _ket(self, node: int) -> Operand:
        if self._kets is not None:
            return self._kets[node]
        return self._arrays[node], kets_of(self._held[node], self._physical)

    def _below(self, place: int) -> tuple[list[Operand], float]:
        if place >= self._tree.n_nodes:
            inside, exponent = self._inside[place]
            return [inside], exponent
        bra = _arrays.conj(self._xp, self._arrays[place]), self._held[place]
        return [bra, self._ket(place)], 0.0

    def _around(self, place: int) -> tuple[list[Operand], float]:
        above = self._tree.above[place]
        outside, exponent = self._outside[above]
        if above == place:
            return [outside], exponent
        beside, taken = self._below(self._tree.beside(place))
        return [outside, *beside], exponent + taken

    def _cut_modes(self, place: int) -> tuple[Label, ...]:
        cut = self._tree.cuts[place]
        return (*self._stack, *cut, *(ket(m) for m in cut if m not in self._physical))


def kets_of(modes: Iterable[Label], physical: Set[Label]) -> tuple[Label, ...]:
    """The labels of a node of Z."""
    return tuple(m if m in physical else ket(m) for m in modes)


Kets: TypeAlias = list[Operand]
"""The nodes of a stack of networks, and after them the weights."""


def kets_of_group(xp: Namespace, group: Group) -> Kets:
    """A group of summands, laid out so that sweeps need not copy it: own physical modes first."""
    stack, weights = group
    topology = stack.topology
    found: Kets = []
    for name, held in topology.nodes.items():
        labels = (STACK, *kets_of(held, set(topology.physical_modes)))
        own = [k for k, m in enumerate(labels) if m in held and len(topology.holders(str(m))) == 1]
        axes = (*own, *(k for k in range(len(labels)) if k not in own))
        array = xp.permute_dims(stack.arrays[name], axes)
        array = xp.reshape(xp.reshape(array, (-1,)), array.shape)
        found.append((array, tuple(labels[k] for k in axes)))
    return [*found, (weights, (STACK,))]


class Summands:
    """The sum of w_m <Y|X_m> over groups of summands.

    Environments are kept from step to step, unless those of all summands together would take too much
    memory: then they are made anew for each node, of as many summands at a time as fit. That takes
    one overlap for each node, instead of about four in all.
    """

    def __init__(
        self, xp: Namespace, tree: Tree, arrays: list[Array], groups: Sequence[Kets]
    ) -> None:
        self._xp, self._tree, self._arrays, self._groups = xp, tree, arrays, groups
        n_kept = sum(g[-1][0].shape[0] * _n_kept(tree, arrays, g) for g in groups)
        self._kept: list[Overlap] | None = None
        if n_kept <= _MOST_KEPT:
            self._kept = [self._overlap(kets) for kets in groups]

    def _overlap(self, kets: Kets) -> Overlap:
        return Overlap(self._xp, self._tree, self._arrays, kets[:-1], kets[-1])

    def find_inside(self, place: int) -> None:
        """Find the insides of a pair."""
        for overlap in self._kept or ():
            overlap.find_inside(place)

    def find_outside(self, place: int) -> None:
        """Find the outsides of a place."""
        for overlap in self._kept or ():
            overlap.find_outside(place)

    def terms_at(self, place: int) -> tuple[float, float]:
        """How large the terms may be of all overlaps at a pair; zero if they are not kept."""
        found = [overlap.terms_at(place) for overlap in self._kept or ()]
        top = max((exponent for _, exponent in found), default=0.0)
        return sum(terms * 2.0 ** (exponent - top) for terms, exponent in found), top

    def right_side(self, node: int) -> tuple[Array, float]:
        """The sum without Y's array of a node, with the modes of that array."""
        total: Array = 0.0
        top = -math.inf
        for overlap in self._made_for(node) if self._kept is None else self._kept:
            array, exponent = overlap.right_side(node)
            before, top = top, max(top, exponent)
            total = total * 2.0 ** (before - top) + array * 2.0 ** (exponent - top)
        return total, top

    def _made_for(self, node: int) -> Iterator[Overlap]:
        """Overlaps of as many summands as fit, with all that is needed at one node."""
        tree = self._tree
        way = tree.way_to(node)
        for kets in self._groups:
            for where in _pieces(kets[-1][0], _n_kept(tree, self._arrays, kets)):
                overlap = self._overlap(sliced(kets, STACK, where))
                for place in range(tree.n_nodes, tree.root):
                    if place not in way:
                        overlap.find_inside(place)
                for place in way:
                    overlap.find_outside(place)
                yield overlap


def _pieces(weights: Array, per_summand: int) -> Iterator[slice]:
    """Parts of the summands, each with as many as fit."""
    step = max(1, _PIECES * piece_size(weights) // per_summand)
    for start in range(0, weights.shape[0], step):
        yield slice(start, min(start + step, weights.shape[0]))


def pieces_of(tree: Tree, arrays: Sequence[Array], n: int) -> Iterator[slice]:
    """Parts of a stack of n networks, whose environments in themselves fit into memory together."""
    held = tree.topology.nodes.values()
    size = {m: k for a, modes in zip(arrays, held, strict=True)
            for m, k in zip(modes, a.shape[1:], strict=True)}  # fmt: skip
    physical = set(tree.topology.physical_modes)
    extents = [math.prod(size[m] ** (2 - (m in physical)) for m in cut) for cut in tree.cuts]
    yield from _pieces(arrays[0], 1 + 2 * sum(extents))


# A norm above this one, and below its inverse, is far inside the range of double precision.
_LEAST = 2.0**-300

# The numbers that environments of all summands may take: a gibibyte in double precision.
_MOST_KEPT = 2**27
# The pieces that those of a part of them may take, together.
_PIECES = 8


def _n_kept(tree: Tree, arrays: Sequence[Array], kets: Kets) -> int:
    """The numbers that the insides and outsides of one summand take."""
    size: dict[Label, int] = {}
    nodes = zip(arrays, tree.topology.nodes.values(), strict=True)
    for array, modes in [*nodes, *kets]:
        size.update(zip(modes, array.shape, strict=True))
    extents = [math.prod(size[m] * size.get(ket(m), 1) for m in cut) for cut in tree.cuts]
    return 1 + 2 * sum(extents[tree.n_nodes :])
