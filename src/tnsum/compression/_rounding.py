"""How far rounding may move a sum, from the sizes of the nodes of its summands.

A network is linear in each of its nodes, X = A E, with A one node and E all the rest of the network, its
*environment*. Entries of A that are rounded move X by about

    eps |A| |E|,     and the product of two parts T_i T_j on the way by     eps |T_i| |T_j| |E_ij|.

These *terms* are far larger than |X| where the entries of neighbouring nodes are large and cancel, in
gauges of a bad condition: there a sum is known to no more than

    F = eps sum_m |w_m| max of the terms of X_m,

however it is computed. All norms come from the overlaps <X_m|X_m> (`_environments`): the trace of an
inside is the square of |T|, that of an outside the square of |E|. This takes about four times the work
of the norms of the summands, which are found with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tnsum import _arrays
from tnsum._products import simplified
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.compression._environments import Overlap, pieces_of
from tnsum.compression._recipes import is_ket
from tnsum.compression._walks import Tree, tree_of
from tnsum.contraction import STACK
from tnsum.orthogonal import Group


@dataclass(frozen=True)
class Sizes:
    """What summands measure, as NumPy arrays of log2, one number for each.

    Attributes
    ----------
    norms : array
        The |w_m| |X_m|.
    terms : array
        The |w_m| times the largest term of X_m; not smaller.
    """

    norms: Any
    terms: Any


def sizes_of(xp: Namespace, group: Group, moduli: Mapping[str, Array] | None = None) -> Sizes:
    """The sizes of the summands of a group, of distinct modes.

    Parameters
    ----------
    moduli : Mapping[str, array], optional
        What to take for the nodes' absolute values, where the nodes are themselves sums of larger
        numbers.
    """
    stack, weights = group
    tree = tree_of(stack.topology, tuple(stack.sizes.items()))
    arrays = [stack.arrays[name] for name in stack.topology.nodes]
    held = moduli or stack.arrays
    lengths = [_log2(_norms_of_each(xp, held[name])) for name in stack.topology.nodes]
    norms, terms = [], []
    for where in pieces_of(tree, arrays, len(stack)):
        found = _sizes(xp, tree, [a[where, ...] for a in arrays], [n[where] for n in lengths])
        norms.append(found.norms)
        terms.append(found.terms)
    log = _log2(xp.abs(weights))
    return Sizes(np.concatenate(norms) + log, np.concatenate(terms) + log)


def _sizes(
    xp: Namespace,
    tree: Tree,
    arrays: list[Array],
    lengths: Sequence[Any],
) -> Sizes:
    """The sizes of networks without weights; `lengths` are the log2 of the norms of their nodes."""
    ones = xp.ones(
        (arrays[0].shape[0],), dtype=arrays[0].dtype, device=_arrays.device_of(arrays[0])
    )
    overlap = Overlap(xp, tree, arrays, None, (ones, (STACK,)), is_stack=True)
    parts = list(lengths)
    for place in range(tree.n_nodes, len(tree.cuts)):
        overlap.find_inside(place)
        parts.append(_log2_root(xp, *overlap.inside_of(place)))
    # A lone node is the whole network.
    norms = parts[-1] if tree.pairs else _log2(_norms_of_each(xp, arrays[0]))
    terms = [parts[-1]]
    for place in reversed(range(tree.root)):
        overlap.find_outside(place)
        around = _log2_root(xp, *overlap.outside_of(place))
        whole = parts[place]
        if place >= tree.n_nodes:
            i, j = tree.pairs[place - tree.n_nodes]
            whole = parts[i] + parts[j]
        terms.append(whole + around)
    if tree.pairs:
        i, j = tree.pairs[-1]
        terms.append(parts[i] + parts[j])
    return Sizes(norms, np.maximum(norms, np.max(terms, axis=0)))


def _norms_of_each(xp: Namespace, array: Array) -> Array:
    return xp.linalg.vector_norm(xp.reshape(array, (array.shape[0], -1)), axis=1)


def _log2(array: Array) -> Any:
    with np.errstate(divide="ignore"):
        return np.log2(np.asarray(_arrays.on_host(array), dtype=float))


def _log2_root(xp: Namespace, operand: Operand, exponent: float) -> Any:
    """Half the log2 of the traces of a stack of positive matrices; rounding may make them negative."""
    array, modes = operand
    same: list[Label] = [m[1] if isinstance(m, tuple) and is_ket(m) else m for m in modes]
    traces, _ = simplified(xp, (array, tuple(same)), (STACK,))
    return (_log2(xp.abs(traces)) + exponent) / 2


def summed(logs: Sequence[Any]) -> float:
    """The log2 of the sum of what has these log2."""
    return float(np.logaddexp2.reduce(np.concatenate(list(logs))))
