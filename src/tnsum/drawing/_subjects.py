"""What is to be drawn: a topology with the sizes of its modes, and a face for each node.

The blocks in the nodes of a sum are those of `tnsum.explicit`. Along each axis of a node that is a
contraction mode the blocks of the summands follow one another, so a node with one such axis holds them
side by side, one with more along its superdiagonal, and one without any adds them up. A disconnected
network is joined first, and the first node carries the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from tnsum import _arrays
from tnsum.alignment import count
from tnsum.compression import Compression
from tnsum.drawing._faces import Block, BlockLayout, Face, bare_face, block_face, plain_face
from tnsum.drawing._scene import Role
from tnsum.errors import NetworkError
from tnsum.explicit import explicit_topology
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import Topology, printable, short

Drawable: TypeAlias = Topology | Network | NetworkStack | NetworkSum | Compression

# As many blocks are drawn in a node; of more summands, the first, the last, and dots between them.
_MOST_BLOCKS = 3
_MOST_TITLED = 12


@dataclass(frozen=True)
class Subject:
    """What is to be drawn.

    Attributes
    ----------
    topology : Topology
    sizes : mapping of str to int, or None
        The sizes of all modes; a topology alone has none.
    faces : mapping of str to Face
        What each node looks like.
    caption : str
        What stands below the picture, if anything.
    description : str
        The picture in words, in one line.
    is_bare : bool
        Whether modes have no texts.
    """

    topology: Topology
    sizes: Mapping[str, int] | None
    faces: Mapping[str, Face]
    caption: str
    description: str
    is_bare: bool = False

    def sized(self, mode: str) -> str:
        """The name of a mode, with its size if that is known."""
        return _sized(mode, self.sizes)


def topology_of(x: Drawable) -> Topology:
    """The topology of what is to be drawn.

    Raises
    ------
    NetworkError
        `x` cannot be drawn.
    """
    if isinstance(x, Compression):
        return x.network.topology
    if isinstance(x, Network | NetworkStack | NetworkSum):
        return x.topology
    if isinstance(x, Topology):
        return x
    raise NetworkError(
        f"What is drawn must be a Network, NetworkStack, NetworkSum, Topology or Compression; "
        f"{type(x).__name__} came."
    )


def subject_of(x: Drawable) -> Subject:
    """What is to be drawn of a topology, network, stack, sum or compression."""
    if isinstance(x, Compression):
        x = x.network
    if isinstance(x, NetworkSum):
        return sum_subject(x)
    if isinstance(x, Topology):
        what = f"Topology of {_counted(len(x.nodes), 'node')}, order {x.order}"
        return _plain(x, None, what)
    n_networks = len(x) if isinstance(x, NetworkStack) else None
    return _plain(x.topology, x.sizes, repr(x).splitlines()[0], n_networks)


def bare_subject(topology: Topology, roles: Mapping[str, Role], description: str) -> Subject:
    """A topology without any text; `roles` gives some of its nodes another role than their kind."""
    kinds = {**_roles(topology), **roles}
    faces = {name: bare_face(kinds[name], _title(name, topology, None)) for name in topology.nodes}
    return Subject(topology, None, faces, "", description, is_bare=True)


def sum_subject(s: NetworkSum, texts: Mapping[str, Sequence[str]] | None = None) -> Subject:
    """A sum with the blocks of its summands.

    `texts` says for each node what is written in its blocks, the numbers of the summands by default.
    """
    topology = explicit_topology(s)
    sizes = {**dict.fromkeys(topology.modes, s.n_summands), **s.sizes}
    shown = _shown_summands(s.n_summands)
    weights = _weights(s)
    parts = {m: _part(s, m) for m in shown if m is not None}
    roles = _roles(topology)
    first = next(iter(topology.nodes))
    faces = {}
    for name, modes in topology.nodes.items():
        blocks = [
            None
            if m is None
            else Block(
                str(m) if texts is None else texts[name][m],
                _block_title(m, modes, parts[m], "" if weights is None else weights[m]),
            )
            for m in shown
        ]
        line = _weight_line(weights, shown) if name == first else ""
        layout = _layout(modes, topology)
        title = f"{_title(name, topology, sizes)}; {_counted(s.n_summands, 'block')} {layout}"
        faces[name] = block_face(name, roles[name], title, blocks, layout, line)
    what = f"Sum of {_counted(s.n_summands, 'network')} of order {s.order}, shape {short(s.shape)}"
    return Subject(topology, sizes, faces, "", what)


def _plain(
    topology: Topology,
    sizes: Mapping[str, int] | None,
    description: str,
    n_networks: int | None = None,
) -> Subject:
    n_behind = 0 if n_networks is None else min(2, n_networks - 1)
    roles = _roles(topology)
    faces = {
        name: plain_face(name, roles[name], _title(name, topology, sizes), n_behind)
        for name in topology.nodes
    }
    caption = "" if n_networks is None else f"\N{MULTIPLICATION SIGN} {n_networks}"
    return Subject(topology, sizes, faces, caption, description)


def _layout(modes: Sequence[str], topology: Topology) -> BlockLayout:
    """How the blocks of a node lie, by how many of its axes are summed over."""
    n_apart = sum(mode not in topology.physical_modes for mode in modes)
    return "added" if n_apart == 0 else "side by side" if n_apart == 1 else "superdiagonal"


def _shown_summands(n: int) -> list[int | None]:
    """The summands whose blocks are drawn; None stands for all others."""
    return list(range(n)) if n <= _MOST_BLOCKS else [0, None, n - 1]


def _part(s: NetworkSum, m: int) -> Mapping[str, int]:
    """The sizes of summand number m, found without making networks of all of them."""
    ends = accumulate(map(count, s._terms))
    return next(term.sizes for term, end in zip(s._terms, ends, strict=True) if m < end)


def _block_title(m: int, modes: Sequence[str], sizes: Mapping[str, int], weight: str) -> str:
    # A mode that joins components has size 1 in every summand.
    held = ", ".join(_sized(mode, {mode: sizes.get(mode, 1)}) for mode in modes[:_MOST_TITLED])
    weighted = f", weight {weight}" if weight else ""
    return f"block of summand {m}{weighted}" + (f": {held}" if held else "")


def _weights(s: NetworkSum) -> Sequence[str] | None:
    """The weights in words, or None where all are 1 or none has a value yet."""
    weights = s.weights
    if _arrays.is_traced(weights):
        return None
    found = _arrays.on_host(weights)
    return None if (found == 1).all() else _Formatted(found)


class _Formatted(Sequence[str]):
    """Numbers in words, each when it is asked for: there may be many."""

    def __init__(self, numbers: Any) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, k: Any) -> str:
        return f"{self._numbers[k]:.3g}"


def _weight_line(weights: Sequence[str] | None, shown: Sequence[int | None]) -> str:
    if weights is None:
        return ""
    listed = ", ".join("…" if m is None else weights[m] for m in shown)
    return f"weight{'s' if len(shown) > 1 else ''} {listed}"


def _roles(topology: Topology) -> dict[str, Role]:
    physical = set(topology.physical_nodes)
    return {
        name: "physical node" if name in physical else "contraction node" for name in topology.nodes
    }


def _title(name: str, topology: Topology, sizes: Mapping[str, int] | None) -> str:
    """A node in words; of many modes the first, as each has a title of its own."""
    modes = topology.nodes[name]
    some = [_sized(mode, sizes) for mode in modes[:_MOST_TITLED]]
    more = [f"... {len(modes)} in all"] if len(modes) > _MOST_TITLED else []
    return f"{printable(name)}: {', '.join([*some, *more]) or 'no modes'}"


def _sized(mode: str, sizes: Mapping[str, int] | None) -> str:
    return printable(mode) + ("" if sizes is None else f"={sizes[mode]}")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
