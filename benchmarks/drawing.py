"""How long pictures take: networks of about a hundred nodes, as SVG and by matplotlib.

Run it with `python benchmarks/drawing.py`. Each picture is drawn seven times; the median counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

import tnsum
from tnsum.drawing import to_svg
from tnsum.drawing._paper import mera

mpl.use("agg")


def random_graph(n: int, seed: int = 0) -> tnsum.Topology:
    """A path through n nodes and n // 2 further lines between any of them."""
    random = np.random.default_rng(seed)
    pairs = [(k, k + 1) for k in range(n - 1)]
    pairs += [tuple(random.choice(n, 2, replace=False)) for _ in range(n // 2)]
    nodes: dict[str, list[str]] = {f"n{k}": [f"i{k}"] for k in range(n)}
    for number, pair in enumerate(pairs):
        for k in pair:
            nodes[f"n{k}"].append(f"r{number}")
    return tnsum.Topology(nodes)


def grid(n: int) -> tnsum.Network:
    def node(a: int, b: int) -> np.ndarray:
        return np.ones((2,) * ((a > 0) + (a < n - 1) + (b > 0) + (b < n - 1)) + (3,))

    return tnsum.grid([[node(a, b) for b in range(n)] for a in range(n)])


def pictures() -> dict[str, object]:
    ends = {0: (1, 4, 3), 99: (3, 4, 1)}
    train = tnsum.tensor_train([np.ones(ends.get(k, (3, 4, 3))) for k in range(100)])
    return {
        "tensor train, 100 nodes": train,
        "sum of 1000 trains, 100 nodes": tnsum.add(*[train] * 1000),
        "ring, 100 nodes": tnsum.tensor_ring([np.ones((3, 4, 3))] * 100),
        "grid, 100 nodes": grid(10),
        "MERA, 57 nodes": mera()[0],
        "random graph, 100 nodes": random_graph(100),
        "random graph, 1000 nodes": random_graph(1000),
    }


def median(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    print("| picture | SVG, ms | matplotlib, ms |")
    print("|---|---|---|")
    for name, x in pictures().items():
        repeats = 1 if "1000 nodes" in name else 7
        svg = median(lambda x=x: to_svg(x), repeats)
        if repeats == 1:
            print(f"| {name} | {1000 * svg:.0f} | |")
            continue
        figure = median(lambda x=x: (tnsum.draw(x), pyplot.close("all")), 3)
        print(f"| {name} | {1000 * svg:.0f} | {1000 * figure:.0f} |")


if __name__ == "__main__":
    main()
