"""The one table of topologies that all tests share, and strategies that draw random ones.

Words are those of the design: a mode that is not physical is summed over, even when held once;
a mode twice in one node and not physical is a trace.
"""

from dataclasses import dataclass
from itertools import cycle
from math import prod
from string import ascii_uppercase
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray

from tnsum.drawing._paper import honeycomb, mera

DTYPES = ("float32", "float64", "complex64", "complex128")

EQUAL_RANKS = (0, 2)
"""The rank assignments of every case that equal each other: their summands make a stack."""


@dataclass(frozen=True, eq=False)
class Case:
    """A topology with the sizes of its physical modes and ranks for three summands.

    Attributes
    ----------
    name : str
    nodes : dict of str to tuple of str
        Node name -> mode names.
    physical_modes : tuple of str
        The order of the tensor's axes.
    sizes : dict of str to int
        Sizes of the physical modes.
    ranks : tuple of dict of str to int
        Ranks of the contraction modes, one assignment per summand; 0 and 2 are equal.
    """

    name: str
    nodes: dict[str, tuple[str, ...]]
    physical_modes: tuple[str, ...]
    sizes: dict[str, int]
    ranks: tuple[dict[str, int], ...]

    @property
    def contraction_modes(self) -> tuple[str, ...]:
        """Modes that are summed over, in order of appearance."""
        return _contraction_modes(self.nodes, self.physical_modes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(self.sizes[mode] for mode in self.physical_modes)

    @property
    def order(self) -> int:
        """Number of physical modes."""
        return len(self.physical_modes)

    @property
    def is_connected(self) -> bool:
        """Whether modes that are summed over join all nodes; a kept mode joins nothing."""
        summed = set(self.contraction_modes)
        waiting = {name: summed.intersection(modes) for name, modes in self.nodes.items()}
        reached = waiting.pop(next(iter(waiting)))
        while joined := [name for name, modes in waiting.items() if modes & reached]:
            reached = reached.union(*(waiting.pop(name) for name in joined))
        return not waiting

    def node_shape(self, node: str, which: int) -> tuple[int, ...]:
        """Shape of a node's array in summand `which`."""
        sizes = {**self.sizes, **self.ranks[which]}
        return tuple(sizes[mode] for mode in self.nodes[node])


def arrays(
    case: Case, which: int, seed: int = 0, dtype: DTypeLike = "float64"
) -> dict[str, NDArray[Any]]:
    """Random arrays of a summand: node name -> array with the ranks ``case.ranks[which]``.

    Entries are near 1 and some near -1/2 (fewer in networks of many nodes) or, if complex, of
    modulus near 1 and phase within 54 degrees, all divided by a power of the ranks. So summands
    weigh alike, none is lost beside another, and neither their sums nor closed networks cancel.
    """
    rng = np.random.default_rng([seed, which, *case.name.encode()])
    held = [mode for modes in case.nodes.values() for mode in modes]
    scales = {mode: rank ** (-0.5 / held.count(mode)) for mode, rank in case.ranks[which].items()}
    is_complex = np.issubdtype(np.dtype(dtype), np.complexfloating)
    negative = min(0.25, 1 / len(case.nodes))
    result = {}
    for node, modes in case.nodes.items():
        shape = case.node_shape(node, which)
        moduli = rng.uniform(0.8, 1.2, shape) * prod(scales.get(mode, 1.0) for mode in modes)
        if is_complex:
            phases = np.exp(1j * np.pi * rng.uniform(-0.3, 0.3, shape))
        else:
            phases = np.where(rng.random(shape) < negative, -0.5, 1.0)
        result[node] = np.asarray(moduli * phases).astype(dtype)
    return result


def _contraction_modes(
    nodes: dict[str, tuple[str, ...]], physical_modes: tuple[str, ...]
) -> tuple[str, ...]:
    held = dict.fromkeys(mode for modes in nodes.values() for mode in modes)
    return tuple(mode for mode in held if mode not in physical_modes)


def _with_sizes(
    name: str,
    nodes: dict[str, tuple[str, ...]],
    physical_modes: tuple[str, ...],
    sizes: tuple[int, ...] = (3, 2, 4),
    first: tuple[int, ...] = (2, 3, 1),
    second: tuple[int, ...] = (3, 1, 2),
) -> Case:
    """Case whose modes take the given sizes and ranks in turn."""
    summed = _contraction_modes(nodes, physical_modes)
    ranks = [dict(zip(summed, cycle(values), strict=False)) for values in (first, second, first)]
    turns = dict(zip(physical_modes, cycle(sizes), strict=False))
    return Case(name, nodes, physical_modes, turns, tuple(ranks))


def _einsum(name: str, equation: str) -> Case:
    """Case of an einsum equation; nodes are called A, B, C, ..."""
    inputs, output = equation.split("->")
    nodes = dict(zip(ascii_uppercase, map(tuple, inputs.split(",")), strict=False))
    return _with_sizes(name, nodes, tuple(output))


def _honeycomb() -> Case:
    """Honeycomb patch, the paper's Fig. 2, left: 38 nodes of 3rd order, 16 of them physical."""
    found, _ = honeycomb()
    return _with_sizes(
        "honeycomb", dict(found.nodes), found.physical_modes, (2,), (2, 1, 1), (1, 2, 2, 1)
    )


def _mera() -> Case:
    """Periodic binary MERA of 32nd order, the paper's Fig. 2, right."""
    found, _ = mera()
    ranks = (1, 2, 1, 1, 1), (1, 1, 2, 1, 1, 2, 1)
    return _with_sizes("mera", dict(found.nodes), found.physical_modes, (2,), *ranks)


CASES: tuple[Case, ...] = (
    _einsum("lone_matrix", "ij->ij"),
    _einsum("lone_vector", "i->i"),
    _einsum("lone_trace", "irjr->ij"),
    _einsum("lone_summed_once", "ir->i"),
    _einsum("two_nodes", "ir,rj->ij"),
    _einsum("parallel_modes", "irs,sjr->ij"),
    _einsum("trace", "itrt,rj->ij"),
    _einsum("summed_once", "irs,rj->ij"),
    _einsum("chain5", "ia,ab,bc,cd,dj->ij"),
    _einsum("tensor_train5", "ia,ajb,bkc,cld,dm->ijklm"),
    _einsum("operator_train6", "ija,aklb,bmn->ijklmn"),
    _einsum("ring4", "aib,bjc,ckd,dla->ijkl"),
    _einsum("ring2", "aib,bja->ij"),
    _einsum("star2", "ab,ia,jb->ij"),
    _einsum("star3", "abc,ia,jb,kc->ijk"),
    _einsum("star4", "abcd,ia,jb,kc,ld->ijkl"),
    _einsum("star5", "abcde,ia,jb,kc,ld,me->ijklm"),
    _einsum("cp3", "ir,jr,kr->ijk"),
    _einsum("cp4", "ir,jr,kr,lr->ijkl"),
    _einsum("hyperedge_and_modes", "ira,jrab,krbc,c->ijk"),
    _einsum("shared_kept", "ir,jr->ijr"),
    _einsum("shared_kept_and_summed", "irs,jrs->ijr"),
    _einsum("kept_twice", "iir,rj->ij"),
    _einsum("tree8", "yz,yuv,zwx,uab,vcd,wef,xgh,ia,jb,kc,ld,me,nf,og,ph->ijklmnop"),
    _einsum("comb", "ax,aby,bcz,cw,xit,yju,zkv,wlo,tm,un,vp,oq->ijklmnpq"),
    _einsum("grid3x3", "pag,qabh,rbi,scgj,tcdhk,udil,vej,wefk,xfl->pqrstuvwx"),
    _einsum("complete5", "abcdv,aefgw,behix,cfhjy,dgijz->vwxyz"),
    _einsum("disconnected_chains", "ia,aj,kb,bl->ijkl"),
    _einsum("disconnected_vectors", "i,j,k->ijk"),
    _einsum("disconnected_scalar", "ir,,rj->ij"),
    _einsum("disconnected_closed", "ir,ab,rj,ba->ij"),
    _einsum("closed_ring", "ab,bc,ca->"),
    _einsum("closed_tree", "abc,a,b,cd,d->"),
    _einsum("permuted", "ira,rjb,abk->kij"),
    _honeycomb(),
    _mera(),
)

BY_NAME: dict[str, Case] = {case.name: case for case in CASES}


MAX_WORK = 2_000_000
"""Bound of a drawn case: the product over all modes once its three summands' ranks are added."""


def random_cases() -> st.SearchStrategy[Case]:
    """Strategy for connected networks of 2 to 6 nodes and order 0 to 5.

    Draws parallel modes, loops, hyperedges, traces, modes held twice by one node and once by
    another, summed modes held once, physical modes that are shared or twice in one node; the
    physical modes and each node's modes come in any order; sizes and ranks are 1 to 3.
    """
    return _drawn_cases(connected=True)


def any_cases() -> st.SearchStrategy[Case]:
    """Strategy as `random_cases`, of 1 to 6 nodes and not always connected."""
    return _drawn_cases(connected=False)


@st.composite
def _drawn_cases(draw: st.DrawFn, connected: bool) -> Case:
    n_nodes = draw(st.integers(2 if connected else 1, 6))
    any_node = st.integers(0, n_nodes - 1)
    holders: dict[str, list[int]] = {}
    for new in range(1, n_nodes):
        if not connected and draw(st.booleans()):
            continue
        if holders and draw(st.sampled_from([False, False, True])):
            holders[draw(st.sampled_from(sorted(holders)))].append(new)
        else:
            holders[f"r{len(holders)}"] = [draw(st.integers(0, new - 1)), new]
    more = st.lists(any_node, min_size=1, max_size=3).filter(lambda held: _multiplicity(held) < 3)
    for held in draw(st.lists(more, max_size=3)):
        holders[f"r{len(holders)}"] = held
    summed = sorted(holders)
    physical_modes = tuple(draw(st.permutations([f"i{n}" for n in range(draw(st.integers(0, 5)))])))
    for mode in physical_modes:
        n_holders = draw(st.sampled_from([1, 1, 1, 1, 2]))
        holders[mode] = draw(st.lists(any_node, min_size=n_holders, max_size=n_holders))

    nodes = {}
    for n in range(n_nodes):
        modes = [mode for mode, where in holders.items() for _ in range(where.count(n))]
        nodes[f"n{n}"] = tuple(draw(st.permutations(modes)))
    sizes, first, second = _drawn_sizes(draw, holders, summed)
    return Case("random", nodes, physical_modes, sizes, (first, second, dict(first)))


def _drawn_sizes(
    draw: st.DrawFn, holders: dict[str, list[int]], summed: list[str]
) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Sizes of the physical modes and two rank assignments, within MAX_WORK."""
    sizes: dict[str, int] = {}
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    pairs = sorted(((a, b) for a in (1, 2, 3) for b in (1, 2, 3)), key=sum)
    # A mode twice in one node counts twice: that bounds the nodes' arrays too.
    power = {mode: _multiplicity(where) for mode, where in holders.items()}
    work = prod(3 ** power[mode] for mode in summed)
    for mode in draw(st.permutations(sorted(holders))):
        if mode in summed:
            work //= 3 ** power[mode]
            fitting = [(a, b) for a, b in pairs if work * (2 * a + b) ** power[mode] <= MAX_WORK]
            first[mode], second[mode] = draw(st.sampled_from(fitting))
            work *= (2 * first[mode] + second[mode]) ** power[mode]
        else:
            fits = [size for size in (1, 2, 3) if work * size ** power[mode] <= MAX_WORK]
            sizes[mode] = draw(st.sampled_from(fits))
            work *= sizes[mode] ** power[mode]
    return sizes, first, second


def _multiplicity(held: list[int]) -> int:
    """How often a mode with these holders stands in one node at most."""
    return max(held.count(node) for node in held)
