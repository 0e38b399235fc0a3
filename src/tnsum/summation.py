"""NetworkSum: the weighted sum of networks of one topology, lazily.

By the paper's Conjecture 1 (a theorem for connected networks, see docs/theorem.md) the sum of the
tensors X_m with weights w_m is again a network of their topology. Each of its nodes is a block array:
along every contraction mode the blocks of the summands follow one another, along physical modes they
share the same indices, and everything else is zero,

    Z_v = superdiagonal(X_1,v, ..., X_M,v; physical modes shared),

with the weight in one node only. So a sum needs no arithmetic: it is the list of its summands. A
NetworkSum is that list, flat, with the weights beside it; blocks and zeros appear only when `node`
or `to_network` is called. Ranks add up; nothing is compressed.

Only modes that are summed over connect. A network with several components is first joined by modes
of rank one, which grow to rank M in the sum; the arrays of a lone node are simply added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, final

from tnsum import _arrays
from tnsum._memory import check_memory
from tnsum._pytrees import register
from tnsum._typing import Array, Device, DType, Namespace, Scalar
from tnsum._weights import (
    checked_weight,
    checked_weight_array,
    checked_weights,
    is_complex_weight,
    joined_weights,
    multiplied,
    weighted,
)
from tnsum.alignment import Term, aligned, count
from tnsum.errors import NetworkError
from tnsum.multilinear import superdiagonal
from tnsum.network import Network, NetworkStack
from tnsum.node_arrays import Summable
from tnsum.topology import Topology


@final
class NetworkSum(Summable):
    """The lazy weighted sum of networks: made by `x + 2 * y`, `tnsum.add` or `NetworkStack.sum`.

    A sum speaks in the names of its first summand. It holds its summands as they are: nothing is
    multiplied, no zero is stored, ranks add up and nothing is compressed.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(2), np.eye(2))
    >>> s = x + 2 * x - x / 2
    >>> s
    NetworkSum of 3 networks of order 2, shape (2, 2), float64, ranks r=6
    >>> s.contract()
    array([[2.5, 0. ],
           [0. , 2.5]])
    >>> s.node("node0")
    array([[ 1. ,  0. ,  2. ,  0. , -0.5, -0. ],
           [ 0. ,  1. ,  0. ,  2. , -0. , -0.5]])
    """

    __slots__ = ("__weakref__", "_terms", "_topology", "_weights")
    _topology: Topology
    _terms: tuple[Term, ...]
    _weights: tuple[Scalar, ...]

    def __init__(self) -> None:
        raise TypeError(
            "A NetworkSum is made by x + y, tnsum.add(x, y, ...) or NetworkStack.sum()."
        )

    @classmethod
    def _unchecked(
        cls, topology: Topology, terms: Sequence[Term], weights: Sequence[Scalar]
    ) -> NetworkSum:
        self = object.__new__(cls)
        self._topology = topology
        self._terms = tuple(terms)
        self._weights = tuple(weights)
        return self

    @classmethod
    def of_stack(
        cls, stack: NetworkStack, weights: Sequence[Scalar] | Array | None = None
    ) -> NetworkSum:
        """The sum of a stack's networks (see `NetworkStack.sum`)."""
        weight: Scalar = 1
        if _arrays.is_array(weights):
            weight = checked_weight_array(weights, len(stack), stack.some_array)
        elif weights is not None:
            numbers = checked_weights(weights, len(stack), stack.some_array)
            weight = joined_weights(numbers, [1] * len(stack), stack.some_array)
        return cls._unchecked(stack.topology, [stack], [weight])

    @property
    def topology(self) -> Topology:
        """The topology of every summand, in the first summand's names."""
        return self._topology

    @property
    def summands(self) -> tuple[Network, ...]:
        """The networks, in this sum's names and without their weights."""
        return tuple(x for t in self._terms for x in (t if isinstance(t, NetworkStack) else (t,)))

    @property
    def n_summands(self) -> int:
        """How many networks are added."""
        return sum(map(count, self._terms))

    @property
    def weights(self) -> Array:
        """One weight per summand, as an array of the summands' library."""
        return self._joined_weights(range(len(self._terms)))

    @property
    def some_array(self) -> Array:
        """An array of the first summand: all are of one library, on one device."""
        return self._terms[0].some_array

    @property
    def namespace(self) -> Namespace:
        """The array API namespace of the arrays."""
        return self._terms[0].namespace

    @property
    def device(self) -> Device:
        """The device of the arrays."""
        return self._terms[0].device

    @property
    def dtype(self) -> DType:
        """The result type of all summands; complex if a weight is."""
        dtypes = [term.dtype for term in self._terms]
        complex_weight = any(map(is_complex_weight, self._weights))
        return _arrays.result_dtype(self.namespace, dtypes, complex_weight)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the represented tensor."""
        return self._terms[0].shape

    @property
    def ranks(self) -> Mapping[str, int]:
        """The size of each contraction mode in the sum: the summands' ranks added up."""
        total = dict.fromkeys(self._topology.contraction_modes, 0)
        for term in self._terms:
            for mode, rank in term.ranks.items():
                total[mode] += rank * count(term)
        return MappingProxyType(total)

    @property
    def n_parameters(self) -> int:
        """The number of entries that are held; the zeros of the explicit blocks are not."""
        return sum(term.n_parameters for term in self._terms)

    def node(self, name: str) -> Array:
        """One node of the sum as the explicit block array of Conjecture 1.

        Contraction nodes are superdiagonal; physical nodes are stacked with their physical modes
        kept. The first node carries the weights. If the network is disconnected, the first node of
        each component has further axes, for the modes that join the components.

        Raises
        ------
        NetworkError
            There is no such node, or the array does not fit into memory.
        """
        return self._block_node(name, self._explicit_topology())

    def to_network(self) -> Network:
        """The explicit block network: the paper's Conjecture 1, zeros included.

        For a disconnected network its topology has further modes, which join the components.

        Raises
        ------
        NetworkError
            The arrays do not fit into memory.
        """
        topology = self._explicit_topology()
        sizes = self._explicit_sizes(topology)
        n_entries = sum(math.prod(sizes[m] for m in held) for held in topology.nodes.values())
        check_memory(n_entries, self.dtype, "The explicit sum", _KEEP_LAZY)
        arrays = {name: self._block_node(name, topology) for name in topology.nodes}
        return Network._unchecked(topology, arrays)

    def contract(self) -> Array:
        """The dense array, axes in the order of `physical_modes`; summands are added one by one.

        Raises
        ------
        NetworkError
            The array, or one on the way to it, does not fit into memory.
        """
        from tnsum.contraction import contract

        return contract(self)

    def entries(self, indices: Any) -> Array:
        """Single entries of the sum; see `Network.entries`."""
        from tnsum.contraction import entries

        return entries(self, indices)

    def select(
        self, indices: Mapping[str, int | slice] | None = None, /, **modes: int | slice
    ) -> NetworkSum:
        """The sum of the summands' slices; see `Network.select`."""
        return self._mapped(lambda term: term.select(indices, **modes))

    def rename(
        self, modes: Mapping[str, str] | None = None, nodes: Mapping[str, str] | None = None
    ) -> NetworkSum:
        """The same sum with some modes and nodes named anew; see `Network.rename`."""
        return self._mapped(lambda term: term.rename(modes, nodes))

    def transpose(self, *modes: str | int) -> NetworkSum:
        """The sum with its axes in another order; see `Network.transpose`."""
        return self._mapped(lambda term: term.transpose(*modes))

    def astype(self, dtype: DType) -> NetworkSum:
        """The same sum with summands of another dtype; weights follow. See `Network.astype`."""
        xp = self.namespace
        wanted = _arrays.resolve_dtype(xp, dtype)
        if _arrays.is_complex(self.dtype) and not _arrays.is_complex(wanted):
            raise NetworkError(
                f"A complex sum must keep its imaginary part: dtype is {self.dtype}, {dtype!r} came."
            )
        return self._mapped(lambda term: term.astype(wanted))

    def to_device(self, device: Device) -> NetworkSum:
        """The same sum on another device of the array library."""
        weights = [
            _arrays.to_device(w, device) if _arrays.is_array(w) else w for w in self._weights
        ]
        terms = [term.to_device(device) for term in self._terms]
        return self._unchecked(self._topology, terms, weights)

    def conj(self) -> NetworkSum:
        """The sum of the complex conjugates, weights conjugated too."""
        weights = [
            _arrays.conj(self.namespace, w) if _arrays.is_array(w) else w.conjugate()
            for w in self._weights
        ]
        return self._unchecked(self._topology, [term.conj() for term in self._terms], weights)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The networks and stacks as they are held, in this sum's names."""
        return self._terms

    def tail(self, start: int) -> NetworkSum:
        """The sum of the terms from number `start` on."""
        return self._unchecked(self._topology, self._terms[start:], self._weights[start:])

    def grouped(self, dtype: DType = None) -> list[tuple[NetworkStack, Array]]:
        """The summands as stacks of equal ranks in one dtype, each with its array of weights.

        Single networks of equal ranks are copied into a stack, so that work on them is batched.
        """
        xp, dtype = self.namespace, dtype or self.dtype
        groups: dict[object, list[int]] = {}
        for k, term in enumerate(self._terms):
            single = isinstance(term, Network)
            key = tuple(term.arrays[name].shape for name in term.arrays) if single else k
            groups.setdefault(key, []).append(k)
        found = []
        for members in groups.values():
            terms = [self._terms[k] for k in members]
            weights = self._joined_weights(members)
            if isinstance(terms[0], Network):
                arrays = {n: xp.stack([t.arrays[n] for t in terms]) for n in self._topology.nodes}
                stack = NetworkStack._unchecked(self._topology, arrays)
            else:
                stack = terms[0]
            found.append((stack.astype(dtype), weights))
        return found

    def _mapped(self, function: Callable[[Any], Term]) -> NetworkSum:
        terms = [function(term) for term in self._terms]
        return self._unchecked(terms[0].topology, terms, self._weights)

    def _joined_weights(self, members: Iterable[int]) -> Array:
        weights = [self._weights[k] for k in members]
        counts = [count(self._terms[k]) for k in members]
        return joined_weights(weights, counts, self.some_array, self.dtype)

    def _explicit_topology(self) -> Topology:
        return self._topology if self.n_summands == 1 else self._topology.joined

    def _explicit_sizes(self, topology: Topology) -> dict[str, int]:
        sizes = dict.fromkeys(topology.modes, self.n_summands)
        return {**sizes, **dict(zip(self.physical_modes, self.shape, strict=True)), **self.ranks}

    def _block_node(self, name: str, topology: Topology) -> Array:
        if name not in topology.nodes:
            raise NetworkError(f"A node must be one of {tuple(topology.nodes)}; {name!r} came.")
        modes = topology.nodes[name]
        sizes = self._explicit_sizes(topology)
        what = f"Node {name!r} of the explicit sum"
        check_memory(math.prod(sizes[m] for m in modes), self.dtype, what, _KEEP_LAZY)
        xp, dtype = self.namespace, self.dtype
        carries_weights = name == next(iter(topology.nodes))
        n_joining = len(modes) - len(self._topology.nodes[name])
        blocks: list[Array] = []
        for term, weight in zip(self._terms, self._weights, strict=True):
            array = _arrays.astype(xp, term.arrays[name], dtype)
            if carries_weights:
                array = weighted(xp, array, weight)
            array = xp.reshape(array, (*array.shape, *(1,) * n_joining)) if n_joining else array
            blocks += (
                [array[m, ...] for m in range(len(term))]
                if isinstance(term, NetworkStack)
                else [array]
            )
        shared = [k for k, mode in enumerate(modes) if mode in self.physical_modes]
        return superdiagonal(*blocks, shared=shared)

    def __repr__(self) -> str:
        ranks = ", ".join(f"{mode}={rank}" for mode, rank in list(self.ranks.items())[:12])
        more = ", ..." if len(self.ranks) > 12 else ""
        return (
            f"NetworkSum of {self.n_summands} networks of order {self.order}, shape {self.shape}, "
            f"{_arrays.dtype_name(self.dtype)}" + (f", ranks {ranks}{more}" if ranks else "")
        )

    def __reduce__(self) -> tuple[object, ...]:
        return NetworkSum._unchecked, (self._topology, self._terms, self._weights)


_KEEP_LAZY = "Keep the sum lazy: contract, entries, select, norm, inner and distance need no explicit blocks."

register(
    NetworkSum,
    lambda s: ((s._terms, s._weights), s._topology),
    lambda topology, children: NetworkSum._unchecked(topology, *children),
)


def add(*summands: Summable, weights: Sequence[Scalar] | Array | None = None) -> NetworkSum:
    """The lazy sum of networks, sums and stacks, with one weight for each argument.

    Parameters
    ----------
    *summands : Network, NetworkSum or NetworkStack
        Of isomorphic topologies and equal physical sizes; ranks may differ. Physical modes are
        paired by name if all names agree, by position if none does; a sum speaks in the names of its
        first summand. A stack stands for all its networks.
    weights : sequence of numbers or array, optional
        One for each argument, ones by default. They may be complex, and arrays that carry gradients.

    Notes
    -----
    Nothing is computed: ranks add up, and nothing is compressed. The dtype is the result type of all
    summands; weights do not change its precision, but a complex weight makes the sum complex.

    Raises
    ------
    NetworkError
        No summand came, one is not a network, they are of different array libraries or devices, or
        there is not one weight for each.
    ModeError
        Physical modes cannot be paired, or differ in size.
    TopologyError
        Topologies differ; the message names where.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.ones((2, 1)), np.ones((1, 2)))
    >>> y = Network.from_einsum("as,sb->ab", np.eye(2), np.eye(2))
    >>> add(x, y, weights=[1, 10]).contract()
    array([[11.,  1.],
           [ 1., 11.]])
    """
    for k, summand in enumerate(summands):
        if not isinstance(summand, Summable):
            advice = ""
            if isinstance(summand, list | tuple):
                advice = " Pass the networks one by one: tnsum.add(*networks)."
            raise NetworkError(
                f"Summand {k} must be a Network, NetworkSum or NetworkStack; "
                f"{type(summand).__name__} came.{advice}"
            )
    if not summands:
        raise NetworkError(
            "A sum must have at least one summand; none came. The shape of an empty sum is unknown."
        )
    scalars: Sequence[Scalar] = (1,) * len(summands)
    if weights is not None:
        scalars = checked_weights(weights, len(summands), summands[0].some_array)
    return _flat(list(zip(summands, scalars, strict=True)))


def mean(*summands: Summable) -> NetworkSum:
    """The lazy mean of networks: their sum with equal weights; a stack counts as all its networks.

    Raises
    ------
    NetworkError, ModeError, TopologyError
        As for `add`.
    """
    n = sum(len(x) if isinstance(x, NetworkStack) else 1 for x in summands)
    return add(*summands, weights=[1 / n] * len(summands) if n else None)


def sum_of_two(a: Summable, weight: Scalar, b: object, other_weight: Scalar) -> NetworkSum:
    """`weight * a + other_weight * b`, or without b: what the operators of networks mean."""
    pairs = [(a, weight)] + ([(b, other_weight)] if isinstance(b, Summable) else [])
    for x, _ in pairs:
        if isinstance(x, NetworkStack):
            raise TypeError(
                "A stack is many networks, not one: say stack.sum() for the sum of its networks, "
                "NetworkStack.concatenate for one longer stack."
            )
    return _flat([(x, checked_weight(w, 0, x.some_array)) for x, w in pairs])


def _flat(pairs: Sequence[tuple[Summable, Scalar]]) -> NetworkSum:
    terms: list[Term] = []
    weights: list[Scalar] = []
    n_before = 0
    for summand, weight in pairs:
        if isinstance(summand, NetworkSum):
            parts = list(zip(summand._terms, summand._weights, strict=True))
        else:
            assert isinstance(summand, Network | NetworkStack)
            parts = [(summand, 1)]
        for term, own in parts:
            terms.append(aligned(term, terms[0], n_before) if terms else term)
            weights.append(multiplied(own, weight))
            n_before += count(term)
    return NetworkSum._unchecked(terms[0].topology, terms, weights)
