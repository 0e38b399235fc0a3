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

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, final

from tnsum import _arrays
from tnsum._pytrees import register
from tnsum._typing import Array, Device, DType, Namespace, Scalar
from tnsum._weights import (
    checked_weight_array,
    checked_weights,
    is_complex_weight,
    joined_weights,
)
from tnsum.alignment import Term, count, stack_of
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.node_arrays import Summable
from tnsum.topology import Topology, listed_sizes, short


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

    __slots__ = ("__weakref__", "_dtype", "_n_summands", "_terms", "_topology", "_weights")
    _dtype: DType | None
    _n_summands: int | None
    _terms: tuple[Term, ...]
    _weights: tuple[Scalar, ...]

    def __init__(self, *_: object, **__: object) -> None:
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
        self._n_summands = None
        self._dtype = None
        return self

    @classmethod
    def _of_stack(
        cls, stack: NetworkStack, weights: Sequence[Scalar] | Array | None = None
    ) -> NetworkSum:
        """The sum of a stack's networks (see `NetworkStack.sum`)."""
        weight: Scalar = 1
        if _arrays.is_array(weights):
            weight = checked_weight_array(weights, len(stack), stack._some_array)
        elif weights is not None:
            numbers = checked_weights(weights, len(stack), stack._some_array)
            weight = joined_weights(numbers, [1] * len(stack), stack._some_array)
        return cls._unchecked(stack.topology, [stack], [weight])

    @property
    def summands(self) -> tuple[Network, ...]:
        """The networks, in this sum's names and without their weights."""
        return tuple(x for t in self._terms for x in (t if isinstance(t, NetworkStack) else (t,)))

    @property
    def n_summands(self) -> int:
        """How many networks are added."""
        if self._n_summands is None:
            self._n_summands = sum(map(count, self._terms))
        return self._n_summands

    @property
    def weights(self) -> Array:
        """One weight per summand, as an array of the summands' library."""
        return self._joined_weights(range(len(self._terms)))

    @property
    def _some_array(self) -> Array:
        """An array of the first summand: all are of one library, on one device."""
        return self._terms[0]._some_array

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
        if self._dtype is None:
            dtypes = [term.dtype for term in self._terms]
            complex_weight = any(map(is_complex_weight, self._weights))
            self._dtype = _arrays.result_dtype(self.namespace, dtypes, complex_weight)
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the represented tensor."""
        return self._terms[0].shape

    @property
    def ranks(self) -> Mapping[str, int]:
        """The size of each contraction mode in the sum: the summands' ranks added up."""
        axes = self._topology.contraction_axes
        each = [[rank * count(t) for rank in t._sizes_at(axes)] for t in self._terms]
        totals = map(sum, zip(*each, strict=True))
        return MappingProxyType(dict(zip(self._topology.contraction_modes, totals, strict=True)))

    @property
    def sizes(self) -> Mapping[str, int]:
        """The size of each mode in the sum."""
        physical = dict(zip(self.physical_modes, self.shape, strict=True))
        ranks = self.ranks
        sizes = {m: physical[m] if m in physical else ranks[m] for m in self._topology.modes}
        return MappingProxyType(sizes)

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
        from tnsum.explicit import block_node

        return block_node(self, name)

    def to_network(self) -> Network:
        """The explicit block network: the paper's Conjecture 1, zeros included.

        For a disconnected network its topology has further modes, which join the components.

        Raises
        ------
        NetworkError
            The arrays do not fit into memory.
        """
        from tnsum.explicit import block_network

        return block_network(self)

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
    def _weighted_terms(self) -> tuple[tuple[Term, Scalar], ...]:
        """The networks and stacks as they are held, each with its weight or weights."""
        return tuple(zip(self._terms, self._weights, strict=True))

    def _tail(self, start: int) -> NetworkSum:
        """The sum of the terms from number `start` on."""
        return self._unchecked(self._topology, self._terms[start:], self._weights[start:])

    def _grouped(self, dtype: DType = None) -> list[tuple[NetworkStack, Array]]:
        """The summands as stacks of equal ranks in one dtype, each with its array of weights.

        Single networks of equal ranks are copied into a stack, so that work on them is batched.
        """
        dtype = dtype or self.dtype
        groups: dict[object, list[int]] = {}
        for k, term in enumerate(self._terms):
            single = isinstance(term, Network)
            key = tuple([array.shape for array in term._arrays.values()]) if single else k
            groups.setdefault(key, []).append(k)
        found = []
        for members in groups.values():
            terms: list[Any] = [self._terms[k] for k in members]
            weights = self._joined_weights(members)
            if any(term.dtype != dtype for term in terms):
                terms = [term.astype(dtype) for term in terms]
            first = stack_of(terms) if isinstance(terms[0], Network) else terms[0]
            # In the arrays' own dtype: not every library multiplies mixed ones.
            found.append((first, _arrays.astype(self.namespace, weights, dtype)))
        return found

    def _mapped(self, function: Callable[[Any], Term]) -> NetworkSum:
        terms = [function(term) for term in self._terms]
        return self._unchecked(terms[0].topology, terms, self._weights)

    def _joined_weights(self, members: Iterable[int]) -> Array:
        weights = [self._weights[k] for k in members]
        counts = [count(self._terms[k]) for k in members]
        dtype = _arrays.real_dtype(self.namespace, self.dtype)
        return joined_weights(weights, counts, self._some_array, dtype)

    def __repr__(self) -> str:
        ranks = listed_sizes(self.ranks)
        return (
            f"NetworkSum of {self.n_summands} networks of order {self.order}, "
            f"shape {short(self.shape)}, {_arrays.dtype_name(self.dtype)}"
            + (f", ranks {ranks}" if ranks else "")
        )

    def __reduce__(self) -> tuple[object, ...]:
        return NetworkSum._unchecked, (self._topology, self._terms, self._weights)


register(
    NetworkSum,
    lambda s: (
        (s._terms, tuple(float(w) if type(w) is int else w for w in s._weights)),
        s._topology,
    ),
    lambda topology, children: NetworkSum._unchecked(topology, *children),
)
