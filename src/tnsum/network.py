"""Network and NetworkStack: a topology and the arrays of its nodes, frozen, checked once.

Both are values: no method changes them, and their arrays are not copied, so an array must not be
written to after a network has been built of it. A stack is many networks of one topology and equal
sizes, held as one array per node with a leading axis that counts them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, final, overload

from tnsum import _arrays
from tnsum._checks import checked_arrays
from tnsum._pytrees import register
from tnsum._typing import Array, Modes, NodeArrays, Scalar
from tnsum.errors import NetworkError
from tnsum.node_arrays import NodeArraysBase
from tnsum.topology import Topology

if TYPE_CHECKING:
    from tnsum.summation import NetworkSum


@final
class Network(NodeArraysBase):
    """A tensor held as nodes that are joined by contraction modes.

    Parameters
    ----------
    nodes : Mapping[str, tuple[array, Sequence[str]]]
        For each node its array and the names of the array's axes.
    physical_modes : Sequence[str], optional
        The axes of the represented tensor, in order; every other mode is summed over, even one
        held once. Without it, modes seen once are physical, in order of appearance.

    Notes
    -----
    Arrays of different dtypes are brought to their common one; otherwise nothing is copied. NaN and
    infinity are allowed and carried.

    Raises
    ------
    NetworkError
        A node is not an array, has a dtype that is not real or complex floating, is empty, or is of
        another library or device than the first.
    ModeError
        An array has not one axis per mode, or a mode has two sizes.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network({"A": (np.ones((2, 3)), ("i", "r")), "B": (np.ones((3, 4)), ("r", "j"))})
    >>> x
    Network of order 2, shape (2, 4), float64, 18 parameters
      A: i=2, r=3
      B: r=3, j=4
    >>> x.contract()[0, 0]
    np.float64(3.0)
    """

    __slots__ = ()

    def __init__(
        self, nodes: Mapping[str, tuple[Array, Modes]], physical_modes: Modes | None = None
    ) -> None:
        if not isinstance(nodes, Mapping):
            raise NetworkError(
                f"nodes must be a mapping from names to (array, modes); {type(nodes).__name__} came."
            )
        for name, node in nodes.items():
            if not isinstance(node, tuple | list) or len(node) != 2:
                raise NetworkError(
                    f"Node {name!r} must be a pair (array, modes); {type(node).__name__} came."
                )
        topology = Topology({name: modes for name, (_, modes) in nodes.items()}, physical_modes)
        super().__init__(topology, {name: array for name, (array, _) in nodes.items()})

    @classmethod
    def from_topology(cls, topology: Topology, arrays: NodeArrays) -> Network:
        """The network of a topology and one array per node.

        Raises
        ------
        NetworkError, ModeError
            As for the class.
        """
        return cls._unchecked(topology, checked_arrays(topology, arrays, 0))

    @classmethod
    def from_einsum(cls, equation: str, *arrays: Array) -> Network:
        """The network that an einsum equation describes: `Network.from_einsum("ir,rj->ij", A, B)`.

        Modes are named by their letters, nodes `node0`, `node1`, ... Without "->", letters that
        occur once are physical, in alphabetical order, as in NumPy.

        Raises
        ------
        NetworkError
            The equation is not of that form, or has not one term per array.
        """
        return cls(*_parsed_einsum(equation, arrays))

    def __repr__(self) -> str:
        return self._described("Network")


@final
class NetworkStack(NodeArraysBase):
    """Many networks of one topology and equal sizes, one array per node with a leading axis.

    Parameters
    ----------
    topology : Topology
    arrays : Mapping[str, array]
        For each node an array whose first axis counts the networks and whose others are its modes.

    Raises
    ------
    NetworkError
        As for Network; also if the leading axes differ.
    ModeError
        As for Network.

    Examples
    --------
    >>> import numpy as np
    >>> topology = Topology({"A": ("i", "r"), "B": ("r", "j")})
    >>> stack = NetworkStack(topology, {"A": np.ones((5, 2, 3)), "B": np.ones((5, 3, 4))})
    >>> len(stack), stack[0].shape, stack.sum().contract()[0, 0]
    (5, (2, 4), np.float64(15.0))
    """

    __slots__ = ()
    _n_leading = 1

    @classmethod
    def from_networks(cls, networks: Sequence[Network]) -> NetworkStack:
        """Networks of equal sizes, matched to the first one and copied into a stack.

        Raises
        ------
        NetworkError
            None came, something else than networks, or their ranks differ.
        TopologyError, ModeError
            Their topologies do not match (see `tnsum.add`).
        """
        from tnsum.alignment import stacked

        return stacked(networks)

    @classmethod
    def concatenate(cls, stacks: Sequence[NetworkStack]) -> NetworkStack:
        """All networks of several stacks in one stack.

        Raises
        ------
        NetworkError
            None came, something else than stacks, or their ranks differ.
        TopologyError, ModeError
            Their topologies do not match (see `tnsum.add`).
        """
        from tnsum.alignment import concatenated

        return concatenated(stacks)

    def sum(self, weights: Sequence[Scalar] | Array | None = None) -> NetworkSum:
        """The lazy sum of all networks, with one weight each; nothing is computed or copied.

        Raises
        ------
        NetworkError
            There is not one weight per network.
        """
        from tnsum.summation import NetworkSum

        return NetworkSum._of_stack(self, weights)

    def __len__(self) -> int:
        return int(next(iter(self._arrays.values())).shape[0])

    @overload
    def __getitem__(self, index: int) -> Network: ...
    @overload
    def __getitem__(self, index: slice) -> NetworkStack: ...
    def __getitem__(self, index: int | slice) -> Network | NetworkStack:
        if isinstance(index, slice):
            if not range(len(self))[index]:
                raise NetworkError(
                    f"A stack must not be empty; {index} selects nothing of {len(self)}."
                )
            rest = (slice(None),)
            return self._mapped(lambda a: _arrays.indexed(a, (index, *rest * (a.ndim - 1))))
        if not hasattr(index, "__index__") or getattr(index, "ndim", False):
            raise TypeError(
                f"A stack is indexed by an integer or a slice; {type(index).__name__} came. "
                f"NetworkStack.from_networks([stack[k] for k in ...]) takes any selection."
            )
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"A stack of {len(self)} networks has none with index {index}.")
        arrays = {name: array[index, ...] for name, array in self._arrays.items()}
        return Network._unchecked(self._topology, arrays)

    def __iter__(self) -> Iterator[Network]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return self._described(f"NetworkStack of {len(self)} networks")


for _cls in (Network, NetworkStack):
    register(
        _cls,
        lambda x: (tuple(x._arrays.values()), x._topology),
        lambda topology, arrays, cls=_cls: cls._unchecked(  # type: ignore[misc]
            topology, dict(zip(topology.nodes, arrays, strict=True))
        ),
    )


def _parsed_einsum(
    equation: str, arrays: Sequence[Array]
) -> tuple[dict[str, tuple[Array, tuple[str, ...]]], tuple[str, ...]]:
    if not isinstance(equation, str):
        raise NetworkError(
            f"An einsum equation must be a string, before the arrays; {type(equation).__name__} came."
        )
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = [letter for term in terms for letter in term]
    if not all(letter.isalpha() for letter in [*letters, *right]):
        raise NetworkError(
            f"An einsum equation must consist of letters, commas and one '->', as in 'ir,rj->ij'; "
            f"{equation!r} came. Write out an ellipsis."
        )
    if len(terms) != len(arrays):
        raise NetworkError(
            f"An einsum equation must have one term per array: {equation!r} has {len(terms)}, "
            f"{len(arrays)} arrays came."
        )
    physical = right if arrow else sorted(m for m in set(letters) if letters.count(m) == 1)
    nodes = {f"node{k}": (a, tuple(t)) for k, (a, t) in enumerate(zip(arrays, terms, strict=True))}
    return nodes, tuple(physical)
