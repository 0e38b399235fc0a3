"""Topology: which node of a network holds which modes, without sizes and without arrays.

A mode is *physical* when it is an axis of the tensor that the network represents, and a
*contraction mode* when it is summed over. A contraction mode is held by two nodes, by more (a
hyperedge, as in CP), twice by one node (a trace), or once (it is then simply summed). Only
contraction modes connect nodes: a mode that several nodes hold and that is kept does not.

Two topologies are isomorphic when a renaming of nodes and modes that keeps a pairing of the physical
modes makes them equal. The order of nodes, and of modes within a node, does not matter for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from tnsum.errors import ModeError, NetworkError, TopologyError

if TYPE_CHECKING:
    from tnsum.isomorphism import Isomorphism

_SHOWN_NODES = 12


class Topology:
    """Which node holds which modes, and which modes are physical.

    Parameters
    ----------
    nodes : Mapping[str, Sequence[str]]
        The mode names of each node, in the order of its array's axes.
    physical_modes : Sequence[str], optional
        The axes of the represented tensor, in order; every other mode is summed over, even one
        held once. Without it, modes seen once are physical, in order of appearance.

    Raises
    ------
    NetworkError
        There is no node, or a name is not a string.
    ModeError
        A physical mode is named twice, or no node holds it.

    Examples
    --------
    >>> tree = Topology({"A": ("i", "r"), "B": ("r", "j")})
    >>> tree.physical_modes, tree.contraction_modes, tree.is_tree
    (('i', 'j'), ('r',), True)
    """

    def __init__(
        self, nodes: Mapping[str, Sequence[str]], physical_modes: Sequence[str] | None = None
    ) -> None:
        if not isinstance(nodes, Mapping):
            raise NetworkError(
                f"nodes must be a mapping from names to modes; {type(nodes).__name__} came."
            )
        held_by = {name: _checked_modes(name, modes) for name, modes in nodes.items()}
        if not held_by:
            raise NetworkError("A network must have at least one node; none came.")
        holders: dict[str, list[str]] = {}
        for name, modes in held_by.items():
            for mode in modes:
                holders.setdefault(mode, []).append(name)
        if physical_modes is None:
            physical = tuple(mode for mode, names in holders.items() if len(names) == 1)
        else:
            physical = _checked_physical_modes(physical_modes, holders)
        vars(self).update(
            _nodes=held_by,
            _holders={mode: tuple(names) for mode, names in holders.items()},
            _physical_modes=physical,
        )

    _nodes: dict[str, tuple[str, ...]]
    _holders: dict[str, tuple[str, ...]]
    _physical_modes: tuple[str, ...]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Topology cannot be changed; {name!r} was to be set.")

    @property
    def nodes(self) -> Mapping[str, tuple[str, ...]]:
        """The modes of each node."""
        return MappingProxyType(self._nodes)

    @property
    def modes(self) -> tuple[str, ...]:
        """All modes, in order of appearance."""
        return tuple(self._holders)

    @property
    def physical_modes(self) -> tuple[str, ...]:
        """The modes that are axes of the represented tensor, in the order of those axes."""
        return self._physical_modes

    @cached_property
    def contraction_modes(self) -> tuple[str, ...]:
        """The modes that are summed over, in order of appearance."""
        physical = set(self._physical_modes)
        return tuple(mode for mode in self._holders if mode not in physical)

    @cached_property
    def physical_nodes(self) -> tuple[str, ...]:
        """The nodes that hold a physical mode."""
        physical = set(self._physical_modes)
        return tuple(name for name, modes in self._nodes.items() if not physical.isdisjoint(modes))

    @cached_property
    def contraction_nodes(self) -> tuple[str, ...]:
        """The nodes without a physical mode."""
        physical_nodes = set(self.physical_nodes)
        return tuple(name for name in self._nodes if name not in physical_nodes)

    @property
    def order(self) -> int:
        """The number of physical modes."""
        return len(self._physical_modes)

    def holders(self, mode: str) -> tuple[str, ...]:
        """The nodes that hold `mode`, a node twice if it holds the mode twice (a trace).

        Raises
        ------
        ModeError
            No node holds that mode.
        """
        if mode not in self._holders:
            raise ModeError(f"A mode must be one of {listed(self.modes)}; {mode!r} came.")
        return self._holders[mode]

    @cached_property
    def physical_axes(self) -> tuple[tuple[str, int], ...]:
        """For each physical mode a node that holds it, and which of the node's axes it is."""
        return self._axes_of(self._physical_modes)

    @cached_property
    def contraction_axes(self) -> tuple[tuple[str, int], ...]:
        """The same for each contraction mode."""
        return self._axes_of(self.contraction_modes)

    def _axes_of(self, modes: Sequence[str]) -> tuple[tuple[str, int], ...]:
        names = [self._holders[mode][0] for mode in modes]
        pairs = zip(names, modes, strict=True)
        return tuple((name, self._nodes[name].index(mode)) for name, mode in pairs)

    @cached_property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The nodes in groups that contraction modes connect, in order of appearance."""
        leader = {name: name for name in self._nodes}

        def find(name: str) -> str:
            while leader[name] != name:
                leader[name] = leader[leader[name]]
                name = leader[name]
            return name

        for mode in self.contraction_modes:
            first, *others = self._holders[mode]
            for other in others:
                leader[find(other)] = find(first)
        groups: dict[str, list[str]] = {}
        for name in self._nodes:
            groups.setdefault(find(name), []).append(name)
        return tuple(map(tuple, groups.values()))

    @property
    def is_connected(self) -> bool:
        """Whether the modes that are summed over connect all nodes."""
        return len(self.components) == 1

    @cached_property
    def is_tree(self) -> bool:
        """Whether the contraction modes form a tree and each physical mode is held once."""
        joins_two = all(len(set(self._holders[m])) == 2 == len(self._holders[m])
                        for m in self.contraction_modes)  # fmt: skip
        kept_once = all(len(self._holders[m]) == 1 for m in self._physical_modes)
        right_number = len(self.contraction_modes) == len(self._nodes) - 1
        return joins_two and kept_once and right_number and self.is_connected

    @cached_property
    def joined(self) -> Topology:
        """The topology with its components joined one after the other, each pair by a new mode.

        A connected topology is its own. The new modes are named `join0`, `join1`, ... (underscores
        are added to names already taken) and come last in the first node of each component.
        """
        nodes = {name: list(modes) for name, modes in self._nodes.items()}
        leaders = [component[0] for component in self.components]
        for k, (left, right) in enumerate(pairwise(leaders)):
            mode = f"join{k}"
            while mode in self._holders:
                mode += "_"
            nodes[left].append(mode)
            nodes[right].append(mode)
        return self if self.is_connected else Topology(nodes, self._physical_modes)

    def isomorphism(self, other: Topology) -> Isomorphism:
        """The names in `other` of this topology's nodes and modes.

        Physical modes are paired first: by name if both sets of names are equal, by position if
        they are disjoint. Any renaming that keeps this pairing will do; one is returned.

        Raises
        ------
        ModeError
            The physical modes cannot be paired: their numbers differ, or only some names are equal.
        TopologyError
            No renaming makes the topologies equal; the message names where they differ.
        """
        from tnsum.isomorphism import match_topologies

        if not isinstance(other, Topology):
            raise TopologyError(f"other must be a Topology; {type(other).__name__} came.")
        return match_topologies(self, other, ("this topology", "the other"))

    def rename(
        self, modes: Mapping[str, str] | None = None, nodes: Mapping[str, str] | None = None
    ) -> Topology:
        """The same topology with some modes and nodes named anew.

        Raises
        ------
        ModeError
            A mode to be renamed is unknown, or two modes would have one name.
        NetworkError
            The same of nodes.
        """
        new_mode = _renaming("mode", self.modes, modes or {}, ModeError)
        new_node = _renaming("node", tuple(self._nodes), nodes or {}, NetworkError)
        return Topology(
            {new_node[n]: [new_mode[m] for m in held] for n, held in self._nodes.items()},
            [new_mode[m] for m in self._physical_modes],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return self is other or self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return (*self._nodes.items(), self._physical_modes)

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        return Topology, (dict(self._nodes), self._physical_modes)

    def _repr_svg_(self) -> str | None:
        from tnsum.drawing._draw import shown_in_notebook

        return shown_in_notebook(self)

    # Notebooks prefer HTML, and only there a picture can follow the page's own theme.
    _repr_html_ = _repr_svg_

    def __repr__(self) -> str:
        if len(self._nodes) <= _SHOWN_NODES:
            return f"Topology({self._nodes}, physical_modes={self._physical_modes})"
        return (
            f"<Topology: {len(self._nodes)} nodes, {self.order} physical and "
            f"{len(self.contraction_modes)} contraction modes>"
        )


def _checked_modes(node: str, modes: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(node, str):
        raise NetworkError(f"A node's name must be a string; {node!r} came.")
    if isinstance(modes, str):
        raise NetworkError(
            f"The modes of node {node!r} must be a sequence of names; the single string {modes!r} "
            f"came. Write {tuple(modes)}, or use Network.from_einsum."
        )
    is_ordered = isinstance(modes, Iterable) and not isinstance(modes, Set | Mapping)
    names = tuple(modes) if is_ordered else None
    if names is None or not all(isinstance(mode, str) for mode in names):
        raise NetworkError(
            f"The modes of node {node!r} must be a sequence of strings; {modes!r} came."
        )
    return names


def _checked_physical_modes(modes: Sequence[str], held: Mapping[str, object]) -> tuple[str, ...]:
    if isinstance(modes, str) or not isinstance(modes, Iterable):
        raise ModeError(f"physical_modes must be a sequence of mode names; {modes!r} came.")
    modes = tuple(modes)
    if not all(isinstance(mode, str) for mode in modes):
        raise ModeError(f"physical_modes must be a sequence of mode names; {modes!r} came.")
    repeated = [mode for mode, count in Counter(modes).items() if count > 1]
    if repeated:
        raise ModeError(f"A physical mode must be named once; {repeated[0]!r} came twice.")
    unknown = [mode for mode in modes if mode not in held]
    if unknown:
        raise ModeError(
            f"A physical mode must be held by a node; none holds {unknown[0]!r}. "
            f"The nodes hold {listed(tuple(held))}."
        )
    return modes


def _renaming(
    kind: str, names: Sequence[str], new: Mapping[str, str], error: type[NetworkError]
) -> dict[str, str]:
    if not isinstance(new, Mapping):
        raise error(f"rename takes a mapping from old to new names; {type(new).__name__} came.")
    unknown = [name for name in new if name not in set(names)]
    if unknown:
        raise error(f"A {kind} to rename must be one of {listed(names)}; {unknown[0]!r} came.")
    renamed = {name: new.get(name, name) for name in names}
    repeated = [name for name, count in Counter(renamed.values()).items() if count > 1]
    if repeated:
        raise error(f"Every {kind} needs a name of its own; {repeated[0]!r} would name two.")
    return renamed


def short(shape: Sequence[int]) -> str:
    """A shape as a tuple, cut short when it is long."""
    if len(shape) <= _SHOWN_NODES:
        return repr(tuple(shape))
    return f"({', '.join(map(str, shape[:_SHOWN_NODES]))}, ... {len(shape)} in all)"


def listed_sizes(sizes: Mapping[str, int]) -> str:
    """Names with their sizes, cut short when there are many."""
    some = [f"{printable(name)}={size}" for name, size in list(sizes.items())[:_SHOWN_NODES]]
    return ", ".join([*some, *(["..."] if len(sizes) > _SHOWN_NODES else [])])


def printable(text: str) -> str:
    """A name with its control characters written out, so that none reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def listed(names: Sequence[str]) -> str:
    """The names as a tuple, cut short when there are many."""
    if len(names) <= _SHOWN_NODES:
        return repr(tuple(names))
    return f"({', '.join(map(repr, names[:_SHOWN_NODES]))}, ... {len(names)} in all)"
