"""Every error message: what must hold, what came, what to do.

One table of calls, with the type and the whole text of the error each must give. The last test holds
that the table reaches every `raise` of the package's modules.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import array_api_strict as strict
import numpy as np
import pytest

import tnsum
from raising import unreached
from tnsum import ModeError, Network, NetworkError, NetworkStack, Topology, TopologyError, _arrays
from tnsum import multilinear as ml

ones = np.ones
A, B = ones((2, 3)), ones((3, 4))
x = Network({"A": (A, ("i", "r")), "B": (B, ("r", "j"))})
wide = Network({"A": (ones((5, 3)), ("i", "r")), "B": (B, ("r", "j"))})
complex_x = x.astype("complex128")
tall = Network({"A": (ones((3, 3)), ("i", "r")), "B": (ones((3, 2)), ("r", "j"))})
flat = Network({"A": (ones((2, 3)), ("i", "r")), "B": (ones((3, 3)), ("r", "j"))})
pair = Topology({"A": ("i", "r"), "B": ("r", "j")})
stack = NetworkStack.from_networks([x, x, x])
closed = Network({"A": (ones((2, 2)), ("r", "s")), "B": (ones((2, 2)), ("r", "s"))})
order1 = Network({"A": (A, ("i", "r")), "B": (ones(3), ("r",))})
half = Network({"A": (A, ("i", "r")), "B": (B, ("r", "k"))})
other = strict.asarray(A)
device = strict.Device("device1")
away = strict.ones((3, 4), device=device)
long_train = tnsum.tensor_train([ones((2, 10, 2))[: 1 if k == 0 else 2, :, : 1 if k == 19 else 2]
                                 for k in range(20)])  # fmt: skip
star = tnsum.tucker(ones((2,) * 8), [ones((3, 2))] * 8)
many = NetworkStack.from_networks([star] * 100).sum()


def complete_graph(n: int, rank: int) -> Network:
    """Every two of n nodes share a mode: small nodes, huge products."""
    modes = {k: [f"r{min(k, m)}_{max(k, m)}" for m in range(n) if m != k] for k in range(n)}
    return Network({f"n{k}": (ones((rank,) * (n - 1)), held) for k, held in modes.items()}, ())


class SparseLike:
    """What a sparse matrix of SciPy looks like: shape and dtype, and no array."""

    shape, dtype, ndim = (2, 3), np.dtype("float64"), 2


class MaskedSubclass(np.ma.MaskedArray):  # type: ignore[type-arg]
    """Entries that are not there, under another name."""


LIBRARY = "an array of NumPy, PyTorch, JAX or another library of the array API standard"
CONVERT = "Convert it first, for instance with numpy.asarray."
DTYPES = "float32, float64, complex64 or complex128"
TO_FLOAT = "Convert it first, for instance with astype('float64')."
ONLY_NETWORKS = ("Write x.contract() + array for a dense result, or make a network of the array "
                 "first.")  # fmt: skip
STACK = ("A stack is many networks, not one: say stack.sum() for the sum of its networks, "
         "NetworkStack.concatenate for one longer stack.")  # fmt: skip
DIFFER = "Summands must have isomorphic topologies: "
RENAME = " Rename modes with Network.rename, or build both from one Topology."
LAZY = "Keep the sum lazy: only node and to_network build explicit blocks."
FREE = r"\d+(\.\d)? (bytes|[MGT]iB) are free\. "

Row = tuple[Callable[[], Any], type[Exception], str | re.Pattern[str]]


def node(array: Any, modes: Any = ("i", "r")) -> Network:
    return Network({"A": (array, modes), "B": (B, ("r", "j"))})


TOPOLOGY: list[Row] = [
    (lambda: pair.isomorphism(x), TopologyError,  # type: ignore[arg-type]
     "other must be a Topology; Network came."),
    (lambda: Topology({"A": {"i"}}), NetworkError,  # type: ignore[dict-item]
     "The modes of node 'A' must be a sequence of strings; {'i'} came."),
    (lambda: Network({"A": (ones((1,) * 61), [f"i{k}" for k in range(61)])}), NetworkError,
     "A node must have at most 60 modes; node 'A' has 61. Split it, or leave out modes of size one."),
    (lambda: np.asarray(x), TypeError, "A Network is no array; x.contract() gives the dense one."),
    (lambda: tnsum.tensor_train([ones((1, 1, 1))] * 65).contract(), NetworkError,
     "A dense array must have at most 64 axes; this tensor has order 65. Take entries(...) or "
     "select(...) of it, or tnsum.norm and tnsum.inner."),
    (lambda: ml.fold(A, 0, 6), NetworkError,  # type: ignore[arg-type]
     "shape must be a sequence of integers; 6 came."),
    (lambda: stack[np.array([0, 1])], TypeError,  # type: ignore[call-overload]
     "A stack is indexed by an integer or a slice; ndarray came. "
     "NetworkStack.from_networks([stack[k] for k in ...]) takes any selection."),
    (lambda: setattr(pair, "is_tree", False), AttributeError,
     "A Topology cannot be changed; 'is_tree' was to be set."),
    (lambda: Topology({"A": ("i",)}, [["i"]]), ModeError,  # type: ignore[list-item]
     "physical_modes must be a sequence of mode names; (['i'],) came."),
    (lambda: x.rename(["i"]), ModeError,  # type: ignore[arg-type]
     "rename takes a mapping from old to new names; list came."),
    (lambda: tnsum.random_network({"A": ("i",)}, 2), NetworkError,  # type: ignore[arg-type]
     "topology must be a Topology; dict came."),
    (lambda: tnsum.random_network(pair, {"i": 2, "r": 2, "j": 2, "k": 2}), ModeError,
     "sizes must name every mode of ('i', 'r', 'j'); 'k' came."),
    (lambda: x.select([0, 1]), ModeError,  # type: ignore[arg-type]
     "select takes names of modes: x.select(i=3) or x.select({'i': 3}); list came."),
    (lambda: x.entries([[0, 1], [0]]), ModeError,
     "indices must form an array of integers; they do not."),
    (lambda: NetworkStack.from_networks(x), NetworkError,  # type: ignore[arg-type]
     "A sequence of Networks must come; Network came."),
    (lambda: ml.superdiagonal(A, A, shared=0), ModeError,  # type: ignore[arg-type]
     "shared must be a collection of modes; 0 came."),
    (lambda: Topology({}), NetworkError, "A network must have at least one node; none came."),
    (lambda: Topology([("A", ("i",))]), NetworkError,  # type: ignore[arg-type]
     "nodes must be a mapping from names to modes; list came."),
    (lambda: Topology({1: ("i",)}), NetworkError,  # type: ignore[dict-item]
     "A node's name must be a string; 1 came."),
    (lambda: Topology({"A": "ir"}), NetworkError,
     "The modes of node 'A' must be a sequence of names; the single string 'ir' came. "
     "Write ('i', 'r'), or use Network.from_einsum."),
    (lambda: Topology({"A": 3}), NetworkError,  # type: ignore[dict-item]
     "The modes of node 'A' must be a sequence of strings; 3 came."),
    (lambda: Topology({"A": ("i", 2)}), NetworkError,  # type: ignore[dict-item]
     "The modes of node 'A' must be a sequence of strings; ('i', 2) came."),
    (lambda: Topology({"A": ("i",)}, "i"), ModeError,
     "physical_modes must be a sequence of mode names; 'i' came."),
    (lambda: Topology({"A": ("i",)}, 3), ModeError,  # type: ignore[arg-type]
     "physical_modes must be a sequence of mode names; 3 came."),
    (lambda: Topology({"A": ("i",)}, ("i", "i")), ModeError,
     "A physical mode must be named once; 'i' came twice."),
    (lambda: Topology({"A": ("i", "r")}, ("i", "k")), ModeError,
     "A physical mode must be held by a node; none holds 'k'. The nodes hold ('i', 'r')."),
    (lambda: pair.holders("k"), ModeError, "A mode must be one of ('i', 'r', 'j'); 'k' came."),
    (lambda: x.rename(modes={"k": "l"}), ModeError,
     "A mode to rename must be one of ('i', 'r', 'j'); 'k' came."),
    (lambda: x.rename(nodes={"C": "D"}), NetworkError,
     "A node to rename must be one of ('A', 'B'); 'C' came."),
    (lambda: x.rename(modes={"i": "j"}), ModeError,
     "Every mode needs a name of its own; 'j' would name two."),
    (lambda: x.rename(nodes={"A": "B"}), NetworkError,
     "Every node needs a name of its own; 'B' would name two."),
    (lambda: long_train.topology.holders("k"), ModeError,
     re.compile(r"A mode must be one of \('i0', 'r0', 'i1', .*, \.\.\. 39 in all\); 'k' came\.")),
]  # fmt: skip

NETWORK: list[Row] = [
    (lambda: Network([A, B]), NetworkError,  # type: ignore[arg-type]
     "nodes must be a mapping from names to (array, modes); list came."),
    (lambda: Network({"A": A}), NetworkError,  # type: ignore[dict-item]
     "Node 'A' must be a pair (array, modes); ndarray came."),
    (lambda: node(A.tolist()), NetworkError, f"Node 'A' must be {LIBRARY}; list came. {CONVERT}"),
    (lambda: node(None), NetworkError, f"Node 'A' must be {LIBRARY}; NoneType came. {CONVERT}"),
    (lambda: node(SparseLike()), NetworkError,
     f"Node 'A' must be {LIBRARY}; SparseLike came. {CONVERT}"),
    (lambda: node(np.ma.masked_array(A)), NetworkError,
     f"Node 'A' must be {LIBRARY}; MaskedArray came. {CONVERT}"),
    (lambda: node(A.astype(object)), NetworkError,
     f"Node 'A' must be of dtype {DTYPES}; object came. {TO_FLOAT}"),
    (lambda: node(A.astype(int)), NetworkError,
     f"Node 'A' must be of dtype {DTYPES}; int64 came. {TO_FLOAT}"),
    (lambda: node(A.astype("float16")), NetworkError,
     f"Node 'A' must be of dtype {DTYPES}; float16 came. {TO_FLOAT}"),
    (lambda: node(A > 0), NetworkError,
     f"Node 'A' must be of dtype {DTYPES}; bool came. {TO_FLOAT}"),
    (lambda: node(other), NetworkError,
     "All arrays must be of one library: node 'B' is of numpy, node 'A' of array_api_strict. "
     "Convert one of them; nothing is converted silently."),
    (lambda: Network({"A": (other, ("i", "r")), "B": (away, ("r", "j"))}), NetworkError,
     f"All arrays must be on one device: node 'B' is on {device}, node 'A' on "
     f"{other.device}. Move one of them with to_device."),
    (lambda: node(ones((2, 3, 1))), ModeError,
     "Node 'A' must have one axis per mode: it has modes ('i', 'r') and an array of shape "
     "(2, 3, 1)."),
    (lambda: node(ones((2, 0))), NetworkError,
     "Node 'A' must not be empty; its array has shape (2, 0)."),
    (lambda: node(ones((2, 5))), ModeError,
     "Mode 'r' must have one size: 3 at axis 0 of node 'B' with shape (3, 4), 5 at axis 1 of node "
     "'A' with shape (2, 5)."),
    (lambda: Network({"A": (A, ("r", "r"))}, ()), ModeError,
     "Mode 'r' must have one size: 3 at axis 1 of node 'A' with shape (2, 3), 2 at axis 0 of node "
     "'A' with shape (2, 3)."),
    (lambda: Network.from_topology({"A": ("i",)}, {"A": A}), NetworkError,  # type: ignore[arg-type]
     "topology must be a Topology; dict came."),
    (lambda: Network.from_topology(pair, {"A": A}), NetworkError,
     "There must be one array per node of ('A', 'B'); ('A',) came."),
    (lambda: Network.from_topology(pair, [A, B]), NetworkError,  # type: ignore[arg-type]
     "There must be one array per node of ('A', 'B'); list came."),
    (lambda: Network.from_einsum("ir,rj->i...", A, B), NetworkError,
     "An einsum equation must consist of letters, commas and one '->', as in 'ir,rj->ij'; "
     "'ir,rj->i...' came. Write out an ellipsis."),
    (lambda: Network.from_einsum(A, "ij"), NetworkError,  # type: ignore[arg-type]
     "An einsum equation must be a string, before the arrays; ndarray came."),
    (lambda: Network.from_einsum("ir,rj->ij", A), NetworkError,
     "An einsum equation must have one term per array: 'ir,rj->ij' has 2, 1 arrays came."),
    (lambda: x.astype("int32"), NetworkError,
     "dtype must be one of float32, float64, complex64, complex128; 'int32' came."),
    (lambda: complex_x.astype("float64"), NetworkError,
     "A complex network must keep its imaginary part: dtype is complex128, 'float64' came. Take the "
     "real part of the arrays yourself if that is what you want."),
    (lambda: x.transpose("i"), ModeError,
     "transpose must name each physical mode of ('i', 'j') once; ('i',) came."),
    (lambda: x.transpose(0, 2), ModeError,
     "transpose must name each physical mode of ('i', 'j') once; (0, 2) came."),
    (lambda: x.transpose("i", 1.5), ModeError,  # type: ignore[arg-type]
     "transpose must name each physical mode of ('i', 'j') once; ('i', 1.5) came."),
    (lambda: x.select(r=0), ModeError,
     "A selected mode must be one of the physical modes ('i', 'j'); 'r' came."),
    (lambda: x.select(i=slice(2, None)), ModeError,
     "slice(2, None, None) selects nothing of mode 'i' of size 2."),
    (lambda: x.select(i=1.0), ModeError,  # type: ignore[arg-type]
     "Mode 'i' is selected by an integer or a slice; 1.0 came."),
    (lambda: x.select(i=np.array([0, 1])), ModeError,  # type: ignore[arg-type]
     "Mode 'i' is selected by an integer or a slice; array([0, 1]) came."),
    (lambda: x.select(j=-5), ModeError, "Index -5 lies outside mode 'j' of size 4."),
    (lambda: x.entries([1, 2, 3]), ModeError,
     "indices must have one index per physical mode ('i', 'j') along the last axis; shape (3,) "
     "came."),
    (lambda: x.entries([0.0, 1.0]), ModeError, "indices must be integers; float64 came."),
    (lambda: x.entries([[0, 1], [1, 4]]), ModeError,
     "Index 4 lies outside mode 'j' of size 4."),
    (lambda: x.entries([0, -7]), ModeError,
     "Index -7 lies outside mode 'j' of size 4."),
]  # fmt: skip

STACKS: list[Row] = [
    (lambda: NetworkStack(pair, {"A": ones((5, 2, 3)), "B": B}), ModeError,
     "Node 'B' must have one axis per mode after the leading axis of the stack: it has modes "
     "('r', 'j') and an array of shape (3, 4)."),
    (lambda: NetworkStack(pair, {"A": ones((5, 2, 3)), "B": ones((4, 3, 4))}), NetworkError,
     "The leading axis must count the same networks in every node: 4 at axis 0 of node "
     "'B' with shape (4, 3, 4), 5 at axis 0 of node 'A' with shape (5, 2, 3)."),
    (lambda: NetworkStack(pair, {"A": ones((0, 2, 3)), "B": ones((0, 3, 4))}), NetworkError,
     "Node 'A' must not be empty; its array has shape (0, 2, 3)."),
    (lambda: stack[3:], NetworkError,
     "A stack must not be empty; slice(3, None, None) selects nothing of 3."),
    (lambda: stack[3], IndexError, "A stack of 3 networks has none with index 3."),
    (lambda: stack + stack, TypeError, STACK),
    (lambda: 2 * stack, TypeError, STACK),
    (lambda: x - stack, TypeError, STACK),
    (lambda: sum([stack, stack]), TypeError, STACK),
    (lambda: NetworkStack.from_networks([x, stack]), NetworkError,  # type: ignore[list-item]
     "Item 1 must be a Network; NetworkStack came."),
    (lambda: NetworkStack.from_networks([]), NetworkError,
     "There must be at least one Network; none came."),
    (lambda: NetworkStack.concatenate([]), NetworkError,
     "There must be at least one NetworkStack; none came."),
    (lambda: NetworkStack.concatenate([stack, x]), NetworkError,  # type: ignore[list-item]
     "Item 1 must be a NetworkStack; Network came."),
    (lambda: NetworkStack.from_networks([x, (x + x).to_network()]), NetworkError,
     "Networks of a stack must have equal ranks: mode 'r' has rank 6 in item 1, 3 in item 0. "
     "tnsum.add takes networks of any ranks."),
    (lambda: stack.sum([1, 2]), NetworkError,
     "There must be one weight per summand: 3 summands and 2 weights came."),
    (lambda: stack.sum(ones((3, 1))), NetworkError,
     "There must be one weight per summand: 3 summands and weights of shape (3, 1) came."),
]  # fmt: skip

SUMS: list[Row] = [
    (lambda: tnsum.NetworkSum(), TypeError,
     "A NetworkSum is made by x + y, tnsum.add(x, y, ...) or NetworkStack.sum()."),
    (lambda: tnsum.add(), NetworkError,
     "A sum must have at least one summand; none came. The shape of an empty sum is unknown."),
    (lambda: tnsum.mean(), NetworkError,
     "A sum must have at least one summand; none came. The shape of an empty sum is unknown."),
    (lambda: tnsum.add(x, A), NetworkError,  # type: ignore[arg-type]
     "Summand 1 must be a Network, NetworkSum or NetworkStack; ndarray came."),
    (lambda: tnsum.add([x, x]), NetworkError,  # type: ignore[arg-type]
     "Summand 0 must be a Network, NetworkSum or NetworkStack; list came. Pass the networks one by "
     "one: tnsum.add(*networks)."),
    (lambda: tnsum.add(x, x, weights=[1]), NetworkError,
     "There must be one weight per summand: 2 summands and 1 weights came."),
    (lambda: tnsum.add(x, x, weights=ones(3)), NetworkError,
     "There must be one weight per summand: 2 summands and weights of shape (3,) came."),
    (lambda: tnsum.add(x, weights=2), NetworkError,  # type: ignore[arg-type]
     "weights must be a sequence of numbers or an array; int came."),
    (lambda: tnsum.add(x, x, weights=[1, "2"]), NetworkError,
     "A weight must be a single number; weight 1 is '2'."),
    (lambda: tnsum.add(x, x, weights=[1, ones(2)]), NetworkError,
     "A weight must be a single number; weight 1 is of shape (2,)."),
    (lambda: tnsum.add(x, weights=strict.ones(1)), NetworkError,
     "All arrays must be of one library: weights is of array_api_strict, the summand of numpy. "
     "Convert one of them; nothing is converted silently."),
    (lambda: tnsum.add(x, x, weights=np.array(["a", "b"])), NetworkError,
     re.compile(r"Weights must be .*numbers.*; <?U1.* came\..*|Weights must .*str.*")),
    (lambda: x + A, TypeError, f"A network adds to networks only; ndarray came. {ONLY_NETWORKS}"),
    (lambda: A - x, TypeError, f"A network adds to networks only; ndarray came. {ONLY_NETWORKS}"),
    (lambda: x + 1, TypeError, f"A network adds to networks only; int came. {ONLY_NETWORKS}"),
    (lambda: 1.5 + x, TypeError, f"A network adds to networks only; float came. {ONLY_NETWORKS}"),
    (lambda: x + None, TypeError,  # type: ignore[operator]
     "unsupported operand type(s) for +: 'Network' and 'NoneType'"),
    (lambda: x * x, TypeError,
     "A network is multiplied by a number, not by another network; tnsum.inner gives the inner "
     "product."),
    (lambda: x * A, TypeError,
     "A network is multiplied by a single number; an array with axes came. tnsum.add(..., "
     "weights=array) and NetworkStack.sum(weights=array) take one weight a term."),
    (lambda: flat + tall, ModeError,
     "Summands must have the same physical sizes: mode 'i' of summand 1 has size 3, mode 'i' of "
     "summand 0 has 2."),
    (lambda: x + x + wide.rename({"i": "row", "j": "column"}), ModeError,
     "Summands must have the same physical sizes: mode 'row' of summand 2 has size 5, mode 'i' of "
     "summand 0 has 2."),
    (lambda: x + order1, ModeError,
     "Summands must have the same order: summand 1 has 1 physical modes ('i',), summand 0 has 2 "
     "('i', 'j')."),
    (lambda: x - half, ModeError,
     "Physical modes must have all names in common, or none: summand 1 has ('i', 'k'), summand 0 "
     "has ('i', 'j'); 'k' is only in the former, 'j' only in the latter. Rename modes with "
     "Network.rename."),
    (lambda: x + tnsum.chain([A, ones((3, 3)), B]), TopologyError,
     f"{DIFFER}summand 1 has 3 nodes ('matrix0', 'matrix1', 'matrix2'), summand 0 has 2 "
     f"('A', 'B').{RENAME}"),
    (lambda: tnsum.add(x, x, Network.from_einsum("ijr,r->ij", ones((2, 4, 3)), ones(3))),
     TopologyError,
     f"{DIFFER}node 'node0' of summand 2 holds physical modes ('i', 'j'), node 'A' of summand 0 "
     f"holds ('i',).{RENAME}"),
    (lambda: x + Network.from_einsum("ir,rj->ij", other, strict.ones((3, 4))), NetworkError,
     "All arrays must be of one library: summand 1 is of array_api_strict, summand 0 of numpy. "
     "Convert one of them; nothing is converted silently."),
    (lambda: (x + x).node("C"), NetworkError, "A node must be one of ('A', 'B'); 'C' came."),
    (lambda: (x + complex_x).astype("float32"), NetworkError,
     "A complex sum must keep its imaginary part: dtype is complex128, 'float32' came."),
    (lambda: tnsum.norm(A), NetworkError,  # type: ignore[arg-type]
     "A Network or NetworkSum must come; ndarray came."),
    (lambda: tnsum.inner(x, stack), NetworkError,  # type: ignore[arg-type]
     "A Network or NetworkSum must come; NetworkStack came. Say stack.sum() first."),
    (lambda: tnsum.distance(x, tall), ModeError,
     "Summands must have the same physical sizes: mode 'i' of summand 1 has size 3, mode 'i' of "
     "summand 0 has 2."),
]  # fmt: skip

MEMORY: list[Row] = [
    (lambda: long_train.contract(), NetworkError,
     re.compile(r"The dense array of shape \(10, .*20 in all\) must fit into memory: it needs 8\.0e\+20 "
                f"bytes, {FREE}Smaller ranks need less; entries.*")),
    (lambda: (long_train + long_train).contract(), NetworkError,
     re.compile(f"The dense array of shape .* needs 8\\.0e\\+20 bytes, {FREE}.*")),
    (lambda: complete_graph(14, 2).contract(), NetworkError,
     re.compile(f"The largest array on the way must fit into memory: it needs .* bytes, {FREE}.*")),
    (lambda: many.to_network(), NetworkError,
     re.compile(rf"The explicit sum must fit into memory: it needs 2\.0e\+19 bytes, {FREE}{LAZY}")),
    (lambda: many.node("core"), NetworkError,
     re.compile(f"Node 'core' of the explicit sum must fit into memory: .* {FREE}{LAZY}")),
]  # fmt: skip

FORMATS: list[Row] = [
    (lambda: tnsum.chain([]), NetworkError, "A chain must have at least one array; none came."),
    (lambda: tnsum.chain(3), NetworkError,  # type: ignore[arg-type]
     "A chain is made of a list of arrays; int came."),
    (lambda: tnsum.chain([A, None]), NetworkError,
     "Matrix 1 of a chain must be an array; NoneType came."),
    (lambda: tnsum.chain([A, ones(3)]), NetworkError,
     "Matrix 1 of a chain must have 2 axes; shape (3,) came."),
    (lambda: tnsum.chain([A, A]), ModeError,
     "Mode 'r0' must have one size: 2 at axis 0 of node 'matrix1' with shape (2, 3), 3 at axis 1 of "
     "node 'matrix0' with shape (2, 3)."),
    (lambda: tnsum.tucker(ones((2, 2)), [A, A, A]), NetworkError,
     "The core of a Tucker network with 3 factors must have 3 axes; shape (2, 2) came."),
    (lambda: tnsum.tucker(ones(2), [ones(2)]), NetworkError,
     "Factor 0 of a Tucker network must have 2 axes; shape (2,) came."),
    (lambda: tnsum.cp([A, ones((4, 2))]), ModeError,
     "Mode 'r' must have one size: 2 at axis 1 of node 'factor1' with shape (4, 2), 3 at axis 1 of "
     "node 'factor0' with shape (2, 3)."),
    (lambda: tnsum.cp([A, A], ones(2)), NetworkError,
     "There must be one weight per component: factor 0 has 3 columns, weights of shape (2,) came."),
    (lambda: tnsum.cp([A, A], [1.0, 2.0, 3.0]), NetworkError,
     f"Weights must be {LIBRARY}; list came. {CONVERT}"),
    (lambda: tnsum.tensor_train([ones((2, 3, 2)), ones((2, 3, 1))]), NetworkError,
     "The boundary ranks of a tensor train must be 1: core 0 has shape (2, 3, 2). A train whose "
     "ends are joined is a tensor_ring."),
    (lambda: tnsum.tensor_train([ones((1, 3, 2)), ones((2, 3)), ones((2, 3, 1))]), NetworkError,
     "Core 1 of a tensor train must have 3 axes; shape (2, 3) came."),
    (lambda: tnsum.tensor_ring([ones((2, 3, 2)), ones((2, 3))]), NetworkError,
     "Core 1 of a tensor ring must have 3 axes; shape (2, 3) came."),
    (lambda: tnsum.tree((A, [A, A, A])), NetworkError,
     "Inner0 of a tree, with 3 children, must have 3 axes; shape (2, 3) came."),
    (lambda: tnsum.tree((A, [A, (B,)])), NetworkError,
     "An inner node of a tree must be a pair (array, list of children); inner1 is tuple of length "
     "1."),
    (lambda: tnsum.tree((A, [None, A])), NetworkError,
     "Leaf0 of a tree must be an array; NoneType came."),
    (lambda: tnsum.grid([[A, A], [A]]), NetworkError,
     "The rows of a grid must have one length, at least 1; [2, 1] came."),
    (lambda: tnsum.grid([[ones((2,) * 5)]]), NetworkError,
     "Array 0, 0 of a grid must have 0 or 1 or 2 axes; shape (2, 2, 2, 2, 2) came."),
    (lambda: tnsum.grid([None]), NetworkError,  # type: ignore[list-item]
     re.compile(r"A row of a grid .*; NoneType came\.")),
    (lambda: tnsum.random_network(pair, {"i": 2, "j": 3}), ModeError,
     "sizes must name every mode of ('i', 'r', 'j'); 'r' is missing."),
    (lambda: tnsum.random_network(pair, {"i": 2, "r": 0, "j": 3}), ModeError,
     "A size must be a positive integer; 'r' has 0."),
    (lambda: tnsum.random_network(pair, 2, dtype="int64"), NetworkError,
     "dtype must be one of float32, float64, complex64, complex128; 'int64' came."),
]  # fmt: skip

MULTILINEAR: list[Row] = [
    (lambda: ml.unfold(A, 2), ModeError, "mode must be an integer in 0 ... 1 for shape (2, 3); 2 came."),
    (lambda: ml.unfold([[1.0]], 0), NetworkError,
     f"Array 0 must be {LIBRARY}; list came. {CONVERT}"),
    (lambda: ml.fold(A, 2, (2, 3)), ModeError,
     "mode must be an integer in 0 ... 1 for shape (2, 3); 2 came."),
    (lambda: ml.fold(A, 1, (2, 3)), NetworkError,
     "The mode-1 unfolding of a tensor of shape (2, 3) must have shape (3, 2); (2, 3) came."),
    (lambda: ml.mode_product(A, B, 0), ModeError,
     "A mode-0 product must have as many columns in the matrix as the size of the mode: the matrix "
     "has shape (3, 4), the tensor (2, 3)."),
    (lambda: ml.contraction_product(A, B, 1, 1), ModeError,
     "Contracted modes must have one size: mode 1 of shape (2, 3) has 3, mode 1 of shape (3, 4) "
     "has 4."),
    (lambda: ml.superdiagonal(A, B, shared=[0]), ModeError,
     "A shared mode must have one size: mode 0 of block 1 has 3, of block 0 2."),
    (lambda: ml.superdiagonal(), NetworkError, "At least one array must come; none did."),
    (lambda: ml.kronecker(), NetworkError, "At least one array must come; none did."),
    (lambda: ml.outer(), NetworkError, "At least one array must come; none did."),
    (lambda: ml.kronecker(A, ones(2)), NetworkError,
     "The arrays of a Kronecker product must have one order; orders [2, 1] came."),
    (lambda: ml.superdiagonal(A, ones(2)), NetworkError,
     "The arrays of a superdiagonal must have one order; orders [2, 1] came."),
]  # fmt: skip

# Files have so many ways of being wrong that they have a table of their own; so has decompose.
OWN_TABLE = (
    "_accumulator_files", "_packing", "_replacing", "_tensor_files", "_unpacking", "storage",
    "_tree_bases", "decomposition",
)  # fmt: skip


def traced() -> None:
    """JAX, which small tests do not import, is tracing an array."""
    stand_in = SimpleNamespace(core=SimpleNamespace(Tracer=np.ndarray))
    with patch.dict(sys.modules, {"jax": stand_in}):
        _arrays.check_values("compress", [np.ones(2)])


ARRAYS: list[Row] = [
    (traced, NetworkError,
     "compress needs arrays with values, on which its decisions depend; JAX is tracing these. Call it "
     "outside of functions that jax.jit, jax.grad or jax.vmap transforms: inside, contract, entries, "
     "norm, distance and inner take the lazy sum itself."),
    (lambda: _arrays.on_host(away), NetworkError,
     re.compile(r"Arrays must be dense and have values that NumPy can hold; Array came: .+")),
    (lambda: Network({"A": (away, ("i", "j"))}).to_device("nowhere"), NetworkError,
     re.compile(r"device must be one that array_api_strict has; 'nowhere' came, and it says: .+")),
    (lambda: node(MaskedSubclass(A)), NetworkError,
     f"Node 'A' must be {LIBRARY}; MaskedSubclass came. {CONVERT}"),
]  # fmt: skip

one = Network({"A": (np.ones(2), ("i",))})
two = Network.from_einsum("ir,rj->ij", np.ones((2, 2)), np.ones((2, 2)))
TOLERANCES: list[Row] = [
    (lambda: tnsum.compress(one, tolerance="small"), NetworkError,
     "tolerance must be a number; str came."),
    (lambda: tnsum.compress(one, max_seconds=0), NetworkError,
     "max_seconds must be a positive number; 0 came."),
    (lambda: tnsum.compress(one, tolerance=1.5), NetworkError,
     "tolerance must be at least 0 and less than 1; 1.5 came."),
    (lambda: tnsum.compress(one, tolerance=1e-17), NetworkError,
     "tolerance must be at least 8.9e-16, which float64 can hold; 1e-17 came. Use a wider dtype, or "
     "no tolerance: then nothing is lost but rounding."),
    (lambda: tnsum.compress(one, max_rank={"r": 2}), ModeError,
     "max_rank must name contraction modes of (); 'r' came."),
    (lambda: tnsum.compress(two, max_rank=0), ModeError,
     "max_rank must be a positive integer, or a dict of such by mode; 0 came."),
    (lambda: tnsum.compress(two, seed=-1), NetworkError,
     "seed must be an integer of at least 0; -1 came."),
]  # fmt: skip

TABLES = {
    "arrays": ARRAYS,
    "topology": TOPOLOGY, "network": NETWORK, "stack": STACKS, "sum": SUMS, "memory": MEMORY,
    "formats": FORMATS, "multilinear": MULTILINEAR, "tolerances": TOLERANCES,
}  # fmt: skip
ROWS = [pytest.param(*row, id=f"{name}{k}") for name, rows in TABLES.items()
        for k, row in enumerate(rows)]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ROWS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str | re.Pattern[str]
) -> None:
    with pytest.raises(Exception) as raised:
        call()
    assert type(raised.value) is error
    if isinstance(message, str):
        assert str(raised.value) == message
    else:
        assert message.fullmatch(str(raised.value))


def test_mode_and_topology_errors_are_network_errors_and_value_errors() -> None:
    assert issubclass(ModeError, NetworkError)
    assert issubclass(TopologyError, NetworkError)
    assert issubclass(NetworkError, ValueError)


def test_every_raise_is_in_the_table() -> None:
    files = [f for f in Path(tnsum.__file__).parent.glob("*.py") if f.stem not in OWN_TABLE]
    calls = [call for rows in TABLES.values() for call, *_ in rows]
    assert not unreached(files, calls), "no row of the table reaches these lines"
