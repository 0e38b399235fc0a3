"""The diagrams of the paper, from its text and captions: building blocks, two networks, two sums.

Figure 2 is adapted there from a survey; ours are networks of the same orders. A honeycomb has
contraction nodes inside and, at its rim, sixteen physical ones. A multiscale entanglement
renormalisation ansatz (MERA) has disentanglers of fourth and isometries of third order in turns, each
level with half the modes of the one below.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain as chained

from tnsum.drawing._placement import scene_of
from tnsum.drawing._places import UP, at_angle
from tnsum.drawing._scene import Point, Role, Scene, in_column, in_row, lone_text
from tnsum.drawing._subjects import bare_subject, subject_of, sum_subject
from tnsum.network import Network
from tnsum.random_networks import random_network
from tnsum.topology import Topology

_CAPTION = 13.0
_SIGN = 20.0


def building_blocks() -> Scene:
    """Figure 1: anticlockwise from the top left a scalar, a vector, a matrix, a third-order tensor."""
    blocks = [
        _captioned("scalar", Topology({"x": ()})),
        _captioned("vector", Topology({"x": ("I",)})),
        _captioned("matrix", Topology({"X": ("I", "J")})),
        _captioned("third-order tensor", Topology({"X": ("I", "J", "K")})),
    ]
    columns = [in_column([blocks[0], blocks[1]], 24), in_column([blocks[3], blocks[2]], 24)]
    return in_row(columns, 48, "Building blocks of tensor networks: scalar, vector, matrix, "
                  "third-order tensor")  # fmt: skip


def two_networks() -> Scene:
    """Figure 2: a honeycomb of 16th order, a MERA of 32nd order."""
    left, places = honeycomb()
    right, circles = mera()
    fourth: dict[str, Role] = {
        name: "fourth-order node" for name in right.contraction_nodes if len(right.nodes[name]) == 4
    }
    scenes = [
        scene_of(bare_subject(left, {}, "honeycomb"), places),
        scene_of(bare_subject(right, fourth, "MERA"), circles),
    ]
    words = ["a network of 16th order", "a network of 32nd order"]
    pairs = [in_column([s, lone_text(w, _CAPTION)]) for s, w in zip(scenes, words, strict=True)]
    return in_row(pairs, 56, "A honeycomb of 16th order and a MERA of 32nd order")


def matrix_chain_sum() -> Scene:
    """Figure 3: the sum of two chains of matrices, concatenated at the ends, block-diagonal between."""
    modes = {k: (f"R{k - 1}" if k > 1 else "I", f"R{k}" if k < 4 else "J") for k in range(1, 5)}
    x = _network({f"A{k}": held for k, held in modes.items()}, {"I": 6, "J": 5}, 2)
    y = _network({f"B{k}": held for k, held in modes.items()}, {"I": 6, "J": 5}, 3)
    rows = [_named("X", x), _named("Y", y), _summed("C", x, y)]
    return in_column(rows, 20, "The sum of two chains of matrices: the blocks of its nodes")


def tucker_sum() -> Scene:
    """Figure 4: the sum of two Tucker networks, the core superdiagonal, the factors side by side."""
    sizes = {"I1": 6, "I2": 5, "I3": 4}
    networks = []
    for letter, rank in (("x", 2), ("y", 3)):
        nodes: dict[str, tuple[str, ...]] = {f"G{letter}": ("R1", "R2", "R3")}
        nodes |= {f"{name}{letter}": (f"I{k}", f"R{k}") for k, name in enumerate("ABC", start=1)}
        networks.append(_network(nodes, sizes, rank))
    x, y = networks
    texts = {f"{name}z": (f"{name}x", f"{name}y") for name in "GABC"}
    total = (x + y).rename(nodes={f"{name}x": f"{name}z" for name in "GABC"})
    parts = [scene_of(subject_of(x)), lone_text("+", _SIGN), scene_of(subject_of(y))]
    parts += [lone_text("=", _SIGN), scene_of(sum_subject(total, texts))]
    return in_row(parts, 14, "The sum of two Tucker networks: the blocks of its nodes")


def honeycomb(n_rows: int = 3, n_columns: int = 4) -> tuple[Topology, dict[str, Point]]:
    """A honeycomb of nodes of third order, and where they lie; by default of 16th order.

    Hexagon (r, k) is a brick: three nodes of row r above three of row r + 1. Nodes with three
    neighbours are contraction nodes; those at the rim with two hold a physical mode each.
    """
    joined: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    for r in range(n_rows):
        for k in range(n_columns):
            left = 2 * k + r
            for row in (r, r + 1):
                joined |= {((row, c), (row, c + 1)) for c in (left, left + 1)}
            joined |= {((r, c), (r + 1, c)) for c in (left, left + 2)}
    modes: dict[tuple[int, int], list[str]] = {}
    for n, pair in enumerate(sorted(joined)):
        for position in pair:
            modes.setdefault(position, []).append(f"r{n}")
    physical_modes: list[str] = []
    for position in sorted(modes):
        if len(modes[position]) == 2:
            physical_modes.append(f"i{len(physical_modes)}")
            modes[position].append(physical_modes[-1])
    nodes = {f"n{row}_{column}": tuple(modes[row, column]) for row, column in sorted(modes)}
    # A brick becomes a hexagon: where a line goes down, the node lies lower.
    places = {
        f"n{row}_{column}": (
            0.866 * column,
            1.5 * row + (0.25 if (column - row) % 2 == 0 else -0.25),
        )
        for row, column in modes
    }
    return Topology(nodes, physical_modes), places


def mera(order: int = 32) -> tuple[Topology, dict[str, Point]]:
    """A periodic binary MERA, and where its nodes lie: on circles, the top in the middle.

    The lowest disentanglers are the physical nodes, two physical modes each. Above them isometries
    (third order) and disentanglers (fourth order) alternate, each level halving the number of modes,
    until a top node takes the last four.
    """
    nodes: dict[str, tuple[str, ...]] = {}
    physical_modes = tuple(f"i{n}" for n in range(order))
    lower, level = physical_modes, 0
    # Where each mode lies on its circle, in turns.
    turns = [n / order for n in range(order)]
    circles: list[dict[str, float]] = []
    while len(lower) > 4:
        n_modes = len(lower)
        upper = tuple(f"u{level}_{n}" for n in range(n_modes))
        coarse = tuple(f"w{level}_{n}" for n in range(n_modes // 2))
        outer, inner = dict[str, float](), dict[str, float]()
        for n in range(n_modes // 2):
            left, right = 2 * n + 1, (2 * n + 2) % n_modes
            modes = (lower[left], lower[right], upper[left], upper[right])
            nodes[f"disentangler{level}_{n}"] = modes
            outer[f"disentangler{level}_{n}"] = turns[left] + (turns[1] - turns[0]) / 2
        for n in range(n_modes // 2):
            nodes[f"isometry{level}_{n}"] = (upper[2 * n], upper[2 * n + 1], coarse[n])
            inner[f"isometry{level}_{n}"] = (turns[2 * n] + turns[2 * n + 1]) / 2
        circles += [outer, inner]
        lower, level, turns = coarse, level + 1, list(inner.values())
    nodes["top"] = lower
    places = {
        name: at_angle(UP + 360 * turn, float(len(circles) - k))
        for k, circle in enumerate(circles)
        for name, turn in circle.items()
    }
    return Topology(nodes, physical_modes), {**places, "top": (0.0, 0.0)}


def _captioned(words: str, topology: Topology) -> Scene:
    return in_column([scene_of(subject_of(topology)), lone_text(words, _CAPTION)], 4)


def _network(nodes: dict[str, tuple[str, ...]], sizes: dict[str, int], rank: int) -> Network:
    """A network of some sizes, all ranks equal: only its shape is drawn."""
    topology = Topology(nodes, tuple(sizes))
    modes = dict.fromkeys(chained(*nodes.values()))
    return random_network(topology, {mode: sizes.get(mode, rank) for mode in modes})


def _named(name: str, x: Network) -> Scene:
    return in_row([lone_text(f"{name} =", _SIGN), scene_of(subject_of(x))], 10)


def _summed(letter: str, x: Network, y: Network) -> Scene:
    """The sum with nodes of that letter, and the names of the summands' nodes in its blocks."""
    names: Sequence[tuple[str, str]] = list(zip(x.arrays, y.arrays, strict=True))
    new = {first: f"{letter}{first[1:]}" for first, _ in names}
    texts = {new[first]: (first, second) for first, second in names}
    total = (x + y).rename(nodes=new)
    return in_row([lone_text("X + Y =", _SIGN), scene_of(sum_subject(total, texts))], 10)
