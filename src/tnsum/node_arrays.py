"""What networks, stacks and sums have in common: the operators, and arrays held by a topology."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tnsum import _arrays
from tnsum._checks import as_names, checked_arrays, checked_selection
from tnsum._pytrees import tell_jax
from tnsum._typing import Array, Device, DType, Namespace, NodeArrays, Scalar
from tnsum.errors import ModeError, NetworkError
from tnsum.topology import Topology, printable, short

if TYPE_CHECKING:
    from tnsum.summation import NetworkSum

_SHOWN_NODES = 12


class Summable:
    """What can stand in a sum: `x + y`, `x - y`, `-x`, `2 * x`, `x / 2` are lazy NetworkSums."""

    __slots__ = ()
    # NumPy leaves `2.0 * x`, `np.float64(2) * x` and `array + x` to the methods below.
    __array_ufunc__ = None

    _topology: Topology

    def __array__(self, *_: object, **__: object) -> Array:
        raise TypeError(f"A {type(self).__name__} is no array; x.contract() gives the dense one.")

    @property
    def topology(self) -> Topology:
        """Which node holds which modes."""
        return self._topology

    @property
    def physical_modes(self) -> tuple[str, ...]:
        """The names of the represented tensor's axes."""
        return self._topology.physical_modes

    @property
    def order(self) -> int:
        """The number of physical modes."""
        return self._topology.order

    def _repr_svg_(self) -> str | None:
        from tnsum.drawing._draw import shown_in_notebook

        return shown_in_notebook(self)  # type: ignore[arg-type]  # the subclasses are final

    # Notebooks prefer HTML, and only there a picture can follow the page's own theme.
    _repr_html_ = _repr_svg_

    def _sum(self, weight: Scalar, other: object = None, other_weight: Scalar = 1) -> NetworkSum:
        from tnsum.addition import sum_of_two

        return sum_of_two(self, weight, other, other_weight)

    def __add__(self, other: object) -> NetworkSum:
        return self._sum(1, other) if _adds(other) else NotImplemented

    def __radd__(self, other: object) -> NetworkSum:
        # sum([x, y, z]) starts from the integer 0.
        if type(other) is int and other == 0:
            return self._sum(1)
        return NotImplemented if not _adds(other) else self._sum(1, other)

    def __sub__(self, other: object) -> NetworkSum:
        return self._sum(1, other, -1) if _adds(other) else NotImplemented

    def __rsub__(self, other: object) -> NetworkSum:
        return self._sum(-1, other) if _adds(other) else NotImplemented

    def __neg__(self) -> NetworkSum:
        return self._sum(-1)

    def __pos__(self) -> NetworkSum:
        return self._sum(1)

    def __mul__(self, weight: Scalar) -> NetworkSum:
        return self._sum(weight) if _scales(weight) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, weight: Scalar) -> NetworkSum:
        if not _scales(weight):
            return NotImplemented
        from tnsum.addition import quotient

        return quotient(self, weight)


def _adds(other: object) -> bool:
    if isinstance(other, Summable):
        return True
    if _arrays.is_array(other) or _arrays.is_number(other):
        raise TypeError(
            f"A network adds to networks only; {type(other).__name__} came. Write x.contract() + "
            f"array for a dense result, or make a network of the array first."
        )
    return False


def _scales(weight: object) -> bool:
    if isinstance(weight, Summable):
        raise TypeError(
            "A network is multiplied by a number, not by another network; tnsum.inner gives the "
            "inner product."
        )
    if _arrays.is_array(weight) and getattr(weight, "ndim", 0) != 0:
        raise TypeError(
            "A network is multiplied by a single number; an array with axes came. "
            "tnsum.add(..., weights=array) and NetworkStack.sum(weights=array) take one weight a term."
        )
    return _arrays.is_array(weight) or _arrays.is_number(weight)


class NodeArraysBase(Summable):
    """A topology and one array per node, whose first `_n_leading` axes are not modes."""

    __slots__ = ("__weakref__", "_arrays", "_topology")
    _n_leading = 0
    _arrays: dict[str, Array]

    def __init__(self, topology: Topology, arrays: NodeArrays) -> None:
        self._topology = topology
        self._arrays = checked_arrays(topology, arrays, self._n_leading)
        tell_jax()

    @classmethod
    def _unchecked(cls, topology: Topology, arrays: Mapping[str, Array]) -> Self:
        """Built without checks: for arrays known to fit, and for JAX's stand-ins."""
        self = object.__new__(cls)
        self._topology = topology
        self._arrays = dict(arrays)
        tell_jax()
        return self

    @property
    def arrays(self) -> NodeArrays:
        """The array of each node, by the node's name."""
        return MappingProxyType(self._arrays)

    @property
    def _some_array(self) -> Array:
        """One of the arrays: all are of one library, dtype and device."""
        return next(iter(self._arrays.values()))

    @property
    def namespace(self) -> Namespace:
        """The array API namespace of the arrays."""
        return _arrays.namespace(self._some_array)

    @property
    def dtype(self) -> DType:
        """The dtype of all arrays."""
        return self._some_array.dtype

    @property
    def device(self) -> Device:
        """The device of all arrays."""
        return _arrays.device_of(self._some_array)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The size of each mode."""
        sizes: dict[str, int] = {}
        for name, modes in self._topology.nodes.items():
            sizes.update(zip(modes, self._arrays[name].shape[self._n_leading :], strict=True))
        return MappingProxyType(sizes)

    @property
    def ranks(self) -> Mapping[str, int]:
        """The size of each contraction mode."""
        sizes = self._sizes_at(self._topology.contraction_axes)
        return MappingProxyType(dict(zip(self._topology.contraction_modes, sizes, strict=True)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the represented tensor (of each of a stack's)."""
        return tuple(self._sizes_at(self._topology.physical_axes))

    def _sizes_at(self, axes: Sequence[tuple[str, int]]) -> list[int]:
        arrays, skipped = self._arrays, self._n_leading
        return [arrays[name].shape[k + skipped] for name, k in axes]

    @property
    def n_parameters(self) -> int:
        """The number of entries of all arrays together."""
        return sum(math.prod(array.shape) for array in self._arrays.values())

    def _mapped(self, function: Callable[[Array], Array]) -> Self:
        arrays = {name: function(array) for name, array in self._arrays.items()}
        return type(self)._unchecked(self._topology, arrays)

    def astype(self, dtype: DType) -> Self:
        """The same with arrays of another dtype, given by name or as the library's own.

        Raises
        ------
        NetworkError
            The dtype is not one of float32, float64, complex64, complex128, or complex numbers
            would lose their imaginary parts.
        """
        xp = self.namespace
        wanted = _arrays.resolve_dtype(xp, dtype)
        if _arrays.is_complex(self.dtype) and not _arrays.is_complex(wanted):
            raise NetworkError(
                f"A complex network must keep its imaginary part: dtype is {self.dtype}, {dtype!r} "
                f"came. Take the real part of the arrays yourself if that is what you want."
            )
        return self._mapped(lambda array: _arrays.astype(xp, array, wanted))

    def to_device(self, device: Device) -> Self:
        """The same on another device of the array library."""
        return self._mapped(lambda array: _arrays.to_device(array, device))

    def conj(self) -> Self:
        """The network of the complex conjugate."""
        xp = self.namespace
        return self._mapped(lambda array: _arrays.conj(xp, array))

    def rename(
        self, modes: Mapping[str, str] | None = None, nodes: Mapping[str, str] | None = None
    ) -> Self:
        """The same with some modes and nodes named anew: `x.rename(modes={"i": "row"})`.

        Raises
        ------
        ModeError
            A mode to be renamed is unknown, or two modes would have one name.
        NetworkError
            The same of nodes.
        """
        topology = self._topology.rename(modes, nodes)
        arrays = dict(zip(topology.nodes, self._arrays.values(), strict=True))
        return type(self)._unchecked(topology, arrays)

    def transpose(self, *modes: str | int) -> Self:
        """The network of the tensor with its axes in another order; no array is touched.

        Parameters
        ----------
        *modes : str or int
            All physical modes, by name or position, or a tuple of them; none reverses the order.

        Raises
        ------
        ModeError
            The modes are not the physical modes, each once.
        """
        names = self.physical_modes
        if len(modes) == 1 and isinstance(modes[0], tuple | list):
            modes = tuple(modes[0])
        wanted = tuple(reversed(names)) if not modes else as_names(modes, names)
        topology = Topology(self._topology.nodes, wanted)
        return type(self)._unchecked(topology, self._arrays)

    def select(
        self, indices: Mapping[str, int | slice] | None = None, /, **modes: int | slice
    ) -> Self:
        """The network of a slice of the tensor: `x.select(i=3, j=slice(0, 2))`.

        An integer takes the mode away, a slice keeps it. Names that are not Python identifiers go
        into a mapping: `x.select({"row 1": 3})`. Nothing is contracted.

        Raises
        ------
        ModeError
            A mode is not physical, an index is not an integer or a slice, lies outside the mode's
            size, or selects nothing.
        """
        if not isinstance(indices, Mapping | None):
            raise ModeError(
                f"select takes names of modes: x.select(i=3) or x.select({{'i': 3}}); "
                f"{type(indices).__name__} came."
            )
        chosen = checked_selection({**(indices or {}), **modes}, self.physical_modes, self.sizes)
        whole = (slice(None),) * self._n_leading
        arrays, nodes = {}, {}
        for name, held in self._topology.nodes.items():
            where = (*whole, *(chosen.get(mode, slice(None)) for mode in held))
            arrays[name] = _arrays.indexed(self._arrays[name], where)
            nodes[name] = [m for m in held if not isinstance(chosen.get(m), int)]
        kept = [m for m in self.physical_modes if not isinstance(chosen.get(m), int)]
        return type(self)._unchecked(Topology(nodes, kept), arrays)

    def contract(self) -> Array:
        """The dense array, axes in the order of `physical_modes`; of a stack, its axis first.

        Raises
        ------
        NetworkError
            The array, or one on the way to it, does not fit into memory.
        """
        from tnsum.contraction import contract

        return contract(self)  # type: ignore[arg-type]  # the subclasses are final

    def entries(self, indices: Any) -> Array:
        """Single entries of the tensor, without contracting it.

        Parameters
        ----------
        indices : integers of shape (..., order)
            One index per physical mode along the last axis; negative ones count from the end.

        Returns
        -------
        array of shape (...)
            For a stack, of shape (number of networks, ...).

        Raises
        ------
        ModeError
            The indices are not integers, not one per physical mode, or outside the shape.
        """
        from tnsum.contraction import entries

        return entries(self, indices)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self._topology, self._arrays)

    def _described(self, what: str) -> str:
        lines = [
            f"{what} of order {self.order}, shape {short(self.shape)}, "
            f"{_arrays.dtype_name(self.dtype)}, {self.n_parameters} parameters"
        ]
        sizes = self.sizes
        for name, modes in list(self._topology.nodes.items())[:_SHOWN_NODES]:
            named = [f"{printable(mode)}={sizes[mode]}" for mode in modes]
            lines.append(f"  {printable(name)}: " + ", ".join(named))
        left_out = len(self._arrays) - _SHOWN_NODES
        if left_out > 0:
            lines.append(f"  ... and {left_out} more nodes")
        return "\n".join(lines)


T = TypeVar("T", bound=NodeArraysBase)


def _rebuilt(cls: type[T], topology: Topology, arrays: Mapping[str, Array]) -> T:
    return cls._unchecked(topology, arrays)
