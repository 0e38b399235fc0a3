"""Matching two topologies, and saying where they differ when they do not match.

The physical modes are paired first; then the graph of nodes and modes, with an edge for each axis
and a colour for each pair of physical modes, is matched by `_matching`. Ranks play no part: any
matching that keeps the pairing gives the same sum.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from tnsum._matching import Mismatch, match
from tnsum.errors import ModeError, TopologyError
from tnsum.topology import Topology, listed


@dataclass(frozen=True)
class Isomorphism:
    """The names of one topology's nodes and modes in another.

    Attributes
    ----------
    nodes, modes : Mapping[str, str]
        For each name of the first topology, the name in the second.
    """

    nodes: Mapping[str, str]
    modes: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("nodes", "modes"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[object, ...]:
        return Isomorphism, (dict(self.nodes), dict(self.modes))


def pair_physical_modes(
    first: Topology, second: Topology, labels: tuple[str, str]
) -> dict[str, str]:
    """For each physical mode of `first` its partner in `second` (see `Topology.isomorphism`)."""
    ours, theirs = first.physical_modes, second.physical_modes
    if len(ours) != len(theirs):
        raise ModeError(
            f"Summands must have the same order: {labels[1]} has {len(theirs)} physical modes "
            f"{listed(theirs)}, {labels[0]} has {len(ours)} {listed(ours)}."
        )
    if set(ours) == set(theirs):
        return {mode: mode for mode in ours}
    if set(ours).isdisjoint(theirs):
        return dict(zip(ours, theirs, strict=True))
    only = [mode for mode in theirs if mode not in ours]
    missing = [mode for mode in ours if mode not in theirs]
    raise ModeError(
        f"Physical modes must have all names in common, or none: {labels[1]} has {listed(theirs)}, "
        f"{labels[0]} has {listed(ours)}; {only[0]!r} is only in the former, {missing[0]!r} only "
        f"in the latter. Rename modes with Network.rename."
    )


def match_topologies(
    first: Topology,
    second: Topology,
    labels: tuple[str, str],
    ranks: tuple[Mapping[str, int], Mapping[str, int]] | None = None,
) -> Isomorphism:
    """`Topology.isomorphism`, with words for the two in its errors.

    With `ranks`, a matching of modes of equal ranks is returned if there is one.
    """
    pairing = pair_physical_modes(first, second, labels)
    pairs = tuple(pairing.items())
    if ranks is not None:
        both = tuple(ranks[0].items()), tuple(ranks[1].items())
        found = _found_matching(first, second, pairs, both)
        if isinstance(found, Isomorphism):
            return found
    found = _found_matching(first, second, pairs)
    if isinstance(found, Isomorphism):
        return found
    difference = _difference(first, second, pairing, labels, found)
    raise TopologyError(
        f"Summands must have isomorphic topologies: {difference} Rename modes with Network.rename, "
        f"or build both from one Topology."
    )


@lru_cache(maxsize=1024)
def _found_matching(
    first: Topology,
    second: Topology,
    pairing: tuple[tuple[str, str], ...],
    ranks: tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = ((), ()),
) -> Isomorphism | Mismatch:
    found = match(
        _incidence(first),
        _incidence(second),
        _colours(first, [mode for mode, _ in pairing], dict(ranks[0])),
        _colours(second, [mode for _, mode in pairing], dict(ranks[1])),
    )
    if isinstance(found, Mismatch):
        return found
    names = (*first.nodes, *first.modes), (*second.nodes, *second.modes)
    renamed = [(names[0][v], names[1][w]) for v, w in enumerate(found)]
    n_nodes = len(first.nodes)
    return Isomorphism(dict(renamed[:n_nodes]), dict(renamed[n_nodes:]))


def _incidence(topology: Topology) -> list[list[tuple[int, int]]]:
    """The graph of nodes and modes, with an edge for each axis: nodes come first."""
    n_nodes = len(topology.nodes)
    vertex = {mode: n_nodes + k for k, mode in enumerate(topology.modes)}
    edges: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes + len(vertex))]
    for k, modes in enumerate(topology.nodes.values()):
        for mode, count in Counter(modes).items():
            edges[k].append((vertex[mode], count))
            edges[vertex[mode]].append((k, count))
    return edges


def _colours(
    topology: Topology, physical_modes: Sequence[str], ranks: Mapping[str, int]
) -> list[int]:
    """0 for nodes, a colour of its own for each physical mode, and one for each rank of the others.

    Where no ranks are given the contraction modes have one colour.
    """
    n = len(physical_modes)
    colour = {mode: 1 + k for k, mode in enumerate(physical_modes)}
    others = [1 + n + ranks.get(mode, 0) for mode in topology.modes]
    modes = [colour.get(m, other) for m, other in zip(topology.modes, others, strict=True)]
    return [0] * len(topology.nodes) + modes


def _difference(
    first: Topology,
    second: Topology,
    pairing: Mapping[str, str],
    labels: tuple[str, str],
    mismatch: Mismatch,
) -> str:
    """In words, where two topologies differ: at a physical node if possible, else in numbers."""
    for mode, partner in pairing.items():
        ours, theirs = first.holders(mode), second.holders(partner)
        if len(ours) != len(theirs):
            return (
                f"physical mode {partner!r} of {labels[1]} is held by {listed(theirs)}, "
                f"physical mode {mode!r} of {labels[0]} by {listed(ours)}."
            )
        for name, other in _paired_holders(first, ours, second, theirs, pairing):
            told = _node_difference(first, name, second, other, pairing, labels)
            if told:
                return told
    for kind, a, b in (
        ("nodes", first.nodes, second.nodes),
        ("contraction modes", first.contraction_modes, second.contraction_modes),
    ):
        if len(a) != len(b):
            return (
                f"{labels[1]} has {len(b)} {kind} {listed(tuple(b))}, "
                f"{labels[0]} has {len(a)} {listed(tuple(a))}."
            )
    sides = [
        _described(topology, vertex, label)
        for topology, vertex, label in (
            (second, mismatch.second, labels[1]),
            (first, mismatch.first, labels[0]),
        )
        if vertex is not None
    ]
    if not sides:
        return "the same numbers of nodes and modes are connected in another way."
    verb = "has" if len(sides) == 1 else "have"
    return " and ".join(sides) + f" {verb} no counterpart left that is connected alike."


def _paired_holders(
    first: Topology,
    ours: Sequence[str],
    second: Topology,
    theirs: Sequence[str],
    pairing: Mapping[str, str],
) -> list[tuple[str, str]]:
    """The holders of a physical mode side by side: those that hold the same physical modes first."""
    left = list(theirs)
    pairs, unpaired = [], []
    for name in ours:
        held = {pairing[m] for m in first.nodes[name] if m in pairing}
        partners = set(pairing.values())
        same = [other for other in left if partners.intersection(second.nodes[other]) == held]
        if same:
            left.remove(same[0])
            pairs.append((name, same[0]))
        else:
            unpaired.append(name)
    return [*zip(unpaired, left, strict=True), *pairs]


def _node_difference(
    first: Topology,
    name: str,
    second: Topology,
    other: str,
    pairing: Mapping[str, str],
    labels: tuple[str, str],
) -> str | None:
    """How two physical nodes that share a paired mode differ, by their own modes alone."""

    def told(what: str, ours: Sequence[str], theirs: Sequence[str]) -> str:
        return (
            f"node {other!r} of {labels[1]} holds {what} {listed(theirs)}, "
            f"node {name!r} of {labels[0]} holds {listed(ours)}."
        )

    ours = [m for m in first.nodes[name] if m in pairing]
    partners = set(pairing.values())
    theirs = [m for m in second.nodes[other] if m in partners]
    if Counter(pairing[m] for m in ours) != Counter(theirs):
        return told("physical modes", ours, theirs)
    ours = [m for m in first.nodes[name] if m not in pairing]
    theirs = [m for m in second.nodes[other] if m not in partners]
    if len(ours) != len(theirs):
        return told(f"{len(theirs)} contraction modes", ours, theirs)
    degrees = [
        sorted((len(topology.holders(m)), len(set(topology.holders(m)))) for m in held)
        for topology, held in ((first, ours), (second, theirs))
    ]
    if degrees[0] != degrees[1]:
        shared = [
            "; ".join(f"{m!r} with {listed(topology.holders(m))}" for m in held)
            for topology, held in ((first, ours), (second, theirs))
        ]
        return (
            f"node {other!r} of {labels[1]} holds its contraction modes together with other nodes "
            f"({shared[1]}) than node {name!r} of {labels[0]} ({shared[0]})."
        )
    return None


def _described(topology: Topology, vertex: int, label: str) -> str:
    names = tuple(topology.nodes)
    if vertex < len(names):
        name = names[vertex]
        return f"node {name!r} of {label} with modes {listed(topology.nodes[name])}"
    mode = topology.modes[vertex - len(names)]
    return f"mode {mode!r} of {label} held by {listed(topology.holders(mode))}"
