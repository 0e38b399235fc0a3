"""SumAccumulator: sums of networks that are never held together.

Terms are looked at as they come, through test tensors that a seed fixes (`_fixed_tests`), and what is
seen is added up (`_two_sided`): a few arrays whose sizes depend on the ranks that are wanted, and not on
the number of terms. In the end a network is recovered from them (`_recovery`) and compressed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from tnsum import _arrays
from tnsum._checks import checked_integer, checked_max_rank, checked_tolerance
from tnsum._memory import check_memory
from tnsum._typing import Array, DType, Namespace, Scalar
from tnsum.compression._accepting import (
    aligned_terms,
    checked_shape,
    checked_term,
    checked_topology,
)
from tnsum.compression._branches import branches_of
from tnsum.compression._conversion import check_finite, joined_stack, network_of
from tnsum.compression._fixed_tests import FixedTests, fixed_tests, widths_for
from tnsum.compression._recovery import compressed, precision_of
from tnsum.compression._result import Compression
from tnsum.compression._two_sided import Sums, sums_of
from tnsum.contraction import piece_size
from tnsum.errors import ModeError, NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, short


@final
class SumAccumulator:
    """A sum of networks that come one by one, or in stacks, and are not kept.

    What is held is of a size that depends on the topology, the shape and `max_rank` alone. Terms may
    come in any order, and to several accumulators that are merged in the end, on one machine or on
    many: the result is the same up to rounding.

    Parameters
    ----------
    topology : Topology
        A tree: a chain of matrices, a tensor train, a Tucker network, a tree. A disconnected one, all
        of whose components are trees, is joined, as in `NetworkSum.to_network`.
    shape : sequence of int
        The sizes of the physical modes, in the order of `topology.physical_modes`.
    max_rank : int
        The largest rank of every contraction mode of the result.
    dtype : {"float32", "float64", "complex64", "complex128"}
        Terms are brought to this dtype. Complex ones need a complex one.
    seed : int
        Fixes the test tensors that terms are looked at through. Only accumulators of one seed can be
        merged.

    Notes
    -----
    Terms may be added from several threads. The array library and the device are those of the first
    term added. No gradient passes.

    Terms that nearly cancel lose no more digits than they have: what is seen of the terms is added, and
    nothing is truncated before the end. If the sum has no larger ranks than `max_rank`, the result is
    exact but for rounding. If it has, the error is mostly within 1.3 times what `tnsum.compress` reaches
    with that `max_rank`, and about twice where the ranks needed are far larger.

    Raises
    ------
    NetworkError
        A parameter is of the wrong kind, or what is to be held does not fit into memory.
    ModeError
        There is not one positive size for each physical mode.
    TopologyError
        The topology is not a tree.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(3), np.diag([1.0, 2.0, 1e-6]))
    >>> a = SumAccumulator(x.topology, x.shape, max_rank=2)
    >>> for k in range(100):
    ...     a.add(x, weight=k)
    >>> a
    SumAccumulator of 100 networks of order 2, shape (3, 3), float64, max_rank 2, seed 0
    >>> a.compress()
    Compression to ranks r=2, error 4.5e-07 (estimate), accumulator
    """

    def __init__(
        self,
        topology: Topology,
        shape: Sequence[int],
        max_rank: int,
        dtype: DType = "float64",
        seed: int = 0,
    ) -> None:
        self._topology = checked_topology(topology)
        self._shape = checked_shape(shape, topology)
        self._max_rank = checked_integer("max_rank", max_rank, 1)
        self._dtype = _arrays.dtype_name(_arrays.resolve_dtype(np, dtype))
        self._seed = checked_integer("seed", seed, 0)
        self._tree = branches_of(topology.joined)
        size = dict(zip(topology.physical_modes, self._shape, strict=True))
        self._sizes = [math.prod(size[m] for m in branch.physical) for branch in self._tree]
        self._widths = widths_for(self._tree, self._sizes, self._max_rank)
        # The test tensors are about as large as what is seen through them.
        n_entries = min(2 * sum(self._widths.n_sums), 2**60)
        check_memory(n_entries, self._dtype, "What is accumulated", "Take a smaller max_rank.")
        self._n_summands = 0
        self._sums: Sums | None = None
        self._tests: FixedTests | None = None
        # Sums that come from a file are NumPy's until something is added.
        self._has_library = False
        self._lock = threading.Lock()

    @property
    def topology(self) -> Topology:
        """Which node holds which modes."""
        return self._topology

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the represented tensor."""
        return self._shape

    @property
    def order(self) -> int:
        """The number of physical modes."""
        return self._topology.order

    @property
    def max_rank(self) -> int:
        """The largest rank of the result."""
        return self._max_rank

    @property
    def dtype(self) -> str:
        """The name of the dtype of what is held."""
        return self._dtype

    @property
    def seed(self) -> int:
        """What fixes the test tensors."""
        return self._seed

    @property
    def n_summands(self) -> int:
        """How many networks have been added."""
        return self._n_summands

    @property
    def n_parameters(self) -> int:
        """How many numbers are held, however many networks are added."""
        return sum(self._widths.n_sums)

    def add(
        self,
        x: Network | NetworkStack | NetworkSum,
        weight: Scalar | Sequence[Scalar] | Array = 1.0,
    ) -> None:
        """Add a network, all networks of a stack, or a sum.

        It is matched to the topology as `tnsum.add` matches summands. If an error is raised, nothing
        has been added.

        Parameters
        ----------
        x : Network, NetworkStack or NetworkSum
        weight : number, or for a stack one for each of its networks
            Its precision does not matter.

        Raises
        ------
        NetworkError
            `x` is something else, of another library or device than what was added before, complex in
            a real accumulator, or not finite; or the weight is not as above.
        ModeError
            Its physical modes cannot be paired with those of the accumulator, or differ in size.
        TopologyError
            Its topology is another.
        """
        beside = self._sums.some_array if self._sums and self._has_library else None
        total = checked_term(x, weight, self._dtype, beside)
        terms = aligned_terms(total, self._topology, self._shape)
        xp = total.namespace
        dtype = _arrays.resolve_dtype(xp, self._dtype)
        pairs = NetworkSum._unchecked(self._topology, terms, total._weights)._grouped(dtype)
        for stack, weights in pairs:
            check_finite(xp, [*stack.arrays.values(), weights])
        like = pairs[0][1]
        tests = self._tests_like(like)
        sums: Sums | None = None
        for stack, weights in pairs:
            for piece in self._pieces(stack):
                part = joined_stack(xp, stack[piece], self._topology.joined)
                new = sums_of(xp, self._tree, tests, part, weights[piece])
                sums = sums.plus(new) if sums else new
        assert sums is not None
        with self._lock:
            # Others may have added meanwhile, from other threads.
            self._sums, self._has_library = self._plus(sums, True), True
            self._n_summands += total.n_summands

    def merge(self, other: SumAccumulator) -> None:
        """Add all that another accumulator has added; that one is left alone.

        Raises
        ------
        NetworkError
            It is something else, or was made with other parameters, or holds arrays of another library
            or device.
        """
        if not isinstance(other, SumAccumulator):
            raise NetworkError(
                f"An accumulator is merged with another SumAccumulator; {type(other).__name__} came."
            )
        for what in ("topology", "shape", "max_rank", "dtype", "seed"):
            ours, theirs = getattr(self, what), getattr(other, what)
            if ours != theirs:
                raise NetworkError(
                    f"Accumulators must have one {what} to be merged: this one has {ours}, the other "
                    f"{theirs}."
                )
        with other._lock:
            sums, has_library, n_summands = other._sums, other._has_library, other._n_summands
        with self._lock:
            if sums is not None:
                self._sums = self._plus(sums, has_library)
                self._has_library = self._has_library or has_library
            self._n_summands += n_summands

    def compress(
        self, tolerance: float | None = None, max_rank: int | Mapping[str, int] | None = None
    ) -> Compression:
        """A network of small ranks near the sum of all that has been added, with its error.

        More can be added afterwards.

        Parameters
        ----------
        tolerance : float, optional
            The largest relative error. Without it, as little is lost as `max_rank` allows.
        max_rank : int or Mapping[str, int], optional
            The largest rank of every contraction mode, or of those named: not larger than the
            accumulator's own, which is the default. It counts more than the tolerance: the error
            reached is in the result.

        Returns
        -------
        Compression
            Its error is an estimate. A sum that is zero up to rounding gives zero, of rank one, with
            error 1.

        Raises
        ------
        NetworkError
            Nothing has been added; the tolerance is not in 0 ... 1 or smaller than the dtype can hold;
            the sum is larger or smaller than the numbers of its dtype, or what was loaded is damaged.
        ModeError
            A rank is not a positive integer or too large, or its mode is unknown.
        """
        if self._sums is None:
            raise NetworkError("There must be a summand at least; none has been added yet.")
        sums, tree = self._sums, self._tree
        xp = _arrays.namespace(sums.some_array)
        wanted = checked_tolerance(tolerance, 4 * precision_of(xp, sums), self.dtype)
        caps = self._checked_caps(max_rank)
        arrays, error = compressed(
            *(xp, tree, self._sizes, sums, wanted, caps, self._max_rank),
            lambda: self._tests_like(sums.some_array),
        )
        network = network_of(xp, self._topology.joined, self._shape, tree, arrays)
        return Compression(network, error, "estimate", "accumulator")

    def _plus(self, others: Sums, have_library: bool) -> Sums:
        """The sums and those of another accumulator."""
        ours = self._sums
        if ours is None:
            return others
        a, b = ours.some_array, others.some_array
        if self._has_library and have_library:
            _arrays.common_namespace({"this accumulator": a, "the other": b})
        return ours.plus(others.moved_to(a)) if self._has_library else ours.moved_to(b).plus(others)

    def _tests_like(self, like: Array) -> FixedTests:
        """The test tensors in the library and on the device of an array, drawn once."""
        if self._tests is None or not self._has_library:
            self._tests = self._drawn(_arrays.namespace(like), like)
        return self._tests

    def _drawn(self, xp: Namespace, like: Array) -> FixedTests:
        """The test tensors, in the library and on the device of an array."""
        if _arrays.dtype_name(like.dtype) != self._dtype:
            raise NetworkError(
                f"dtype must be one that {_arrays.library(xp)} has switched on; {self._dtype} came, and "
                f"it makes {_arrays.dtype_name(like.dtype)} of it."
            )
        return fixed_tests(xp, self._tree, self._sizes, self._widths, self._seed, like)

    def _pieces(self, stack: NetworkStack) -> Iterator[slice]:
        """Some networks of a stack at a time, so that what is seen of them stays in cache."""
        n_seen = 1 + sum(stack.ranks.values()) * self._widths.wide
        n, step = len(stack), max(1, piece_size(stack._some_array) // n_seen)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def _checked_caps(self, max_rank: int | Mapping[str, int] | None) -> list[int]:
        """The largest rank up of each branch."""
        ranks = checked_max_rank(max_rank, self._topology.joined.contraction_modes)
        largest = max(ranks.values(), default=1)
        if largest > self._max_rank:
            raise ModeError(
                f"max_rank must be at most {self._max_rank}, which the accumulator was made for; "
                f"{largest} came."
            )
        return [ranks.get(str(branch.up), self._max_rank) for branch in self._tree[:-1]]

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = dict(vars(self))
        # The seed says what the test tensors are.
        state["_tests"] = None
        del state["_lock"]
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return (
            f"SumAccumulator of {self.n_summands} networks of order {self.order}, "
            f"shape {short(self.shape)}, {self.dtype}, max_rank {self.max_rank}, seed {self.seed}"
        )
