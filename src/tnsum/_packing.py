"""Networks, stacks and sums as named arrays and a description in plain values.

The description holds the topology and the dtypes; the arrays are one for each node of each *part*,
named `0/core`, `0/factor0`, ... A network is one part; a stack is one part with the leading axis. A sum
is a list of parts, each with a leading axis, and the vector of all weights: single networks of equal
sizes and dtype make one part, so that the description of a sum of ten thousand networks is hardly
longer than that of one. Where that changes their order, the description keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tnsum import _arrays
from tnsum._checks import checked_arrays
from tnsum._tensor_files import Pieces
from tnsum._typing import Array, Scalar
from tnsum.alignment import Term, count
from tnsum.compression._accumulator import SumAccumulator
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum

Networks: TypeAlias = Network | NetworkStack | NetworkSum
Saved: TypeAlias = Networks | SumAccumulator

VERSION = 1
KINDS = {
    Network: "network",
    NetworkStack: "stack",
    NetworkSum: "sum",
    SumAccumulator: "accumulator",
}
# What tnsum.fusion keeps.
CLASSIFIER = "classifier"
REAL = {"float32": "F32", "float64": "F64", "complex64": "F32", "complex128": "F64"}


@dataclass(frozen=True)
class _Part:
    """Terms of equal sizes and dtype, to be stored as a stack, and their places among all terms."""

    terms: Sequence[Term]
    numbers: Sequence[int]
    dtype: str
    is_stacked: bool

    def pieces(self, node: str, is_single: bool) -> Pieces:
        arrays = [term.arrays[node] for term in self.terms]
        shape = tuple(arrays[0].shape)
        leading = () if self.is_stacked or is_single else (len(arrays),)
        return as_pieces(self.dtype, (*leading, *shape), arrays)


def packed(x: Networks) -> tuple[dict[str, Any], dict[str, Pieces]]:
    """What the header says of `x`, and its arrays by name."""
    terms = x._terms if isinstance(x, NetworkSum) else (x,)
    kind = KINDS[type(x)]
    parts = _parts(terms)
    order = [number for part in parts for number in part.numbers]
    topology = x.topology
    check_names((*topology.nodes, *topology.modes))
    document: dict[str, Any] = {
        "version": VERSION,
        "kind": kind,
        "nodes": [{"name": name, "modes": held} for name, held in topology.nodes.items()],
        "physical_modes": topology.physical_modes,
        "parts": [{"dtype": part.dtype, "stacked": part.is_stacked} for part in parts],
    }
    arrays = {
        f"{k}/{name}": part.pieces(name, is_single=kind == "network")
        for k, part in enumerate(parts)
        for name in topology.nodes
    }
    if isinstance(x, NetworkSum):
        weights = _weights_of([x._weighted_terms[number] for number in order])
        if order != sorted(order):
            document["order"] = order
        document["weights"] = weights.dtype.name
        arrays["weights"] = as_pieces(weights.dtype.name, weights.shape, [weights])
    return document, arrays


def _parts(terms: Sequence[Term]) -> list[_Part]:
    """Stacks by themselves; single networks together that have equal sizes and dtype."""
    groups: dict[object, list[int]] = {}
    for number, term in enumerate(terms):
        sizes = tuple((array.shape, array.dtype) for array in term.arrays.values())
        groups.setdefault(number if isinstance(term, NetworkStack) else sizes, []).append(number)
    return [_part([terms[number] for number in numbers], numbers) for numbers in groups.values()]


def _part(terms: Sequence[Term], numbers: Sequence[int]) -> _Part:
    # What comes out of JAX's transformations has never been checked.
    first = terms[0]
    arrays = checked_arrays(first.topology, first.arrays, first._n_leading)
    for name, array in arrays.items():
        if array.dtype != first.arrays[name].dtype:
            raise NetworkError(
                f"all nodes must be of one dtype; {name!r} is of another than the others"
            )
    dtype = _arrays.dtype_name(first.dtype)
    return _Part(terms, numbers, dtype, isinstance(first, NetworkStack))


def as_pieces(dtype: str, shape: tuple[int, ...], arrays: Sequence[Array]) -> Pieces:
    """Arrays of that shape together; complex numbers are pairs of real ones."""
    return Pieces(REAL[dtype], (*shape, 2) if dtype.startswith("complex") else shape, arrays)


def _weights_of(weighted_terms: Sequence[tuple[Term, Scalar]]) -> Array:
    """All weights in double precision: their own precision does not matter to a sum."""
    found = []
    for term, weight in weighted_terms:
        if _arrays.is_array(weight):
            values = _arrays.on_host(weight)
        else:
            number = _arrays.python_number(weight)
            values = np.asarray(number, complex if isinstance(number, complex) else float)
        found.append(np.broadcast_to(values, (count(term),)))
    weights = np.concatenate(found)
    return weights.astype("complex128" if np.iscomplexobj(weights) else "float64")


def check_names(names: Sequence[str]) -> None:
    """Raise unless every name is a text that can be written."""
    for name in names:
        if not is_text(name):
            raise NetworkError(
                f"names must be valid Unicode; {name!r} is not. Rename it with x.rename."
            )


def is_text(name: object) -> bool:
    """Whether a name is a string that every language can read: halves of surrogate pairs are not."""
    return isinstance(name, str) and not any("\ud800" <= letter <= "\udfff" for letter in name)
