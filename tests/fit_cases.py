"""Random sums of networks with loops, and of CP networks, in random gauges, and their true errors.

On every contraction mode a random matrix of a given condition stands on one side and its inverse on the
other, so that the entries of neighbouring nodes are large and cancel.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import tnsum
from oracle import dense, relative_error

Array = Any
Rng = np.random.Generator


def ring(rng: Rng) -> tnsum.Topology:
    """Between three and six nodes."""
    n = int(rng.integers(3, 7))
    return tnsum.Topology({f"n{k}": (f"r{k}", f"i{k}", f"r{(k + 1) % n}") for k in range(n)})


def grid(rng: Rng) -> tnsum.Topology:
    """Two or three rows and columns."""
    height, width = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    nodes: dict[str, list[str]] = {f"n{a}{b}": [] for a in range(height) for b in range(width)}
    for a in range(height):
        for b in range(width):
            nodes[f"n{a}{b}"].append(f"i{a}{b}")
            for c, d in ((a + 1, b), (a, b + 1)):
                if c < height and d < width:
                    for name in (f"n{a}{b}", f"n{c}{d}"):
                        nodes[name].append(f"r{a}{b}{c}{d}")
    return tnsum.Topology(nodes)


def honeycomb(rng: Rng) -> tnsum.Topology:
    """Two hexagons that share an edge; the two nodes of it hold no physical mode."""
    edges = [(k, (k + 1) % 10) for k in range(10)] + [(0, 5)]
    nodes = {f"n{k}": [f"i{k}"] * (k not in (0, 5)) for k in range(10)}
    for a, b in edges:
        for k in (a, b):
            nodes[f"n{k}"].append(f"r{a}{b}")
    return tnsum.Topology(nodes)


def cp(rng: Rng) -> tnsum.Topology:
    """Order three or four."""
    n = int(rng.integers(3, 5))
    return tnsum.Topology({f"n{k}": (f"i{k}", "r") for k in range(n)}, [f"i{k}" for k in range(n)])


def parallel(rng: Rng) -> tnsum.Topology:
    """A chain of two to four nodes with two modes between neighbours."""
    n = int(rng.integers(2, 5))
    nodes = {f"n{k}": [f"i{k}"] for k in range(n)}
    for k in range(n - 1):
        for name in (f"n{k}", f"n{k + 1}"):
            nodes[name] += [f"r{k}", f"s{k}"]
    return tnsum.Topology(nodes)


def trace(rng: Rng) -> tnsum.Topology:
    """A chain of two or three nodes, each with a mode that it holds twice."""
    n = int(rng.integers(2, 4))
    nodes = {f"n{k}": [f"i{k}", f"t{k}", f"t{k}"] for k in range(n)}
    for k in range(n - 1):
        for name in (f"n{k}", f"n{k + 1}"):
            nodes[name].append(f"r{k}")
    return tnsum.Topology(nodes, [f"i{k}" for k in range(n)])


FAMILIES: dict[str, Callable[[Rng], tnsum.Topology]] = {
    "rings": ring,
    "grids": grid,
    "honeycombs": honeycomb,
    "CP": cp,
    "parallel modes": parallel,
    "traces": trace,
}


def in_a_gauge(x: tnsum.Network, condition: float, rng: Rng) -> tnsum.Network:
    """The same tensor, but for rounding, with random matrices of a condition on every mode."""
    held = {name: np.asarray(array) for name, array in x.arrays.items()}
    for mode in x.topology.contraction_modes:
        places = [
            (name, axis)
            for name, modes in x.topology.nodes.items()
            for axis, other in enumerate(modes)
            if other == mode
        ]
        matrices = _matrices(x.ranks[mode], len(places), condition, rng)
        for (name, axis), matrix in zip(places, matrices, strict=True):
            array = held[name]
            moved = np.tensordot(array, matrix.astype(array.dtype), (axis, 0))
            held[name] = np.moveaxis(moved, -1, axis)
    return tnsum.Network.from_topology(x.topology, held)


def _matrices(n: int, copies: int, condition: float, rng: Rng) -> list[Array]:
    """Matrices whose product over the holders of a mode is one."""
    if copies == 2:
        turns = [np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2)]
        matrix = (turns[0] * np.geomspace(1, condition, n)) @ turns[1]
        return [matrix, np.linalg.inv(matrix).T]
    logs = rng.uniform(-0.5, 0.5, (copies, n)) * np.log(condition)
    return [np.diag(np.exp(row)) for row in logs - logs.mean(axis=0)]


def random_sum(
    family: str, condition: float, seed: int, dtype: str | None = None
) -> tuple[tnsum.NetworkSum, int, int]:
    """A sum, the largest rank to ask for, and the sweeps to make."""
    rng = np.random.default_rng([seed, *family.encode(), int(condition)])
    topology = FAMILIES[family](rng)
    drawn = ("float64", "complex128", "float64", "float32", "complex64")[rng.integers(5)]
    dtype = dtype or drawn
    size, rank, n = int(rng.integers(2, 4)), int(rng.integers(2, 4)), int(rng.integers(1, 6))
    if topology.order > 6:
        size = rank = 2
    sizes = dict.fromkeys(topology.physical_modes, size)
    sizes |= dict.fromkeys(topology.contraction_modes, rank)
    base = tnsum.random_network(topology, sizes, seed)
    kind = ("unrelated", "alike", "graded", "cancelling")[rng.integers(4)]
    terms, weights = [], []
    for m in range(n):
        part = {"alike": 10.0 ** rng.uniform(-6, 0), "cancelling": 10.0 ** rng.uniform(-6, 0)}
        x = _perturbed(base, part.get(kind, 100.0), rng)
        if "complex" in dtype:
            x = x.astype("complex128")
            first = next(iter(x.arrays))
            turned = {**x.arrays, first: x.arrays[first] * np.exp(1j * rng.uniform(0, 6))}
            x = tnsum.Network.from_topology(topology, turned) if kind == "unrelated" else x
        terms.append(in_a_gauge(x, condition, rng).astype(dtype))
        weights.append({"graded": 10.0 ** -(2.0 * m), "cancelling": (-1.0) ** m}.get(kind, 1.0))
    return tnsum.add(*terms, weights=weights), int(rng.integers(1, 5)), int(rng.integers(1, 40))


def _perturbed(x: tnsum.Network, part: float, rng: Rng) -> tnsum.Network:
    held = {}
    for name, array in x.arrays.items():
        noise = rng.standard_normal(array.shape)
        held[name] = array + part * noise * np.linalg.norm(array) / np.linalg.norm(noise)
    return tnsum.Network.from_topology(x.topology, held)


def true_error(s: tnsum.NetworkSum, y: tnsum.Network) -> float:
    """The relative error of dense arrays in extended precision."""
    terms = [w * _extended(x) for w, x in zip(np.asarray(s.weights), s.summands, strict=True)]
    return relative_error(_extended(y), sum(terms))


def _extended(x: tnsum.Network) -> Array:
    held = {name: np.asarray(array) for name, array in x.arrays.items()}
    kind = np.clongdouble if any(map(np.iscomplexobj, held.values())) else np.longdouble
    wide = {name: array.astype(kind) for name, array in held.items()}
    return dense(x.topology.nodes, x.physical_modes, wide)
