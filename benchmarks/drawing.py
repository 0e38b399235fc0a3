"""How long pictures take: networks of about a hundred nodes, as SVG and by matplotlib."""

from measure import Report, run, in_seconds, interleaved  # isort: skip - threads

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

import tnsum
from tnsum.drawing import to_svg
from tnsum.drawing._paper import mera

PACKAGES = ("tnsum", "numpy", "matplotlib")

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


def random_tree(n: int, seed: int = 0) -> tnsum.Topology:
    """A tree that grows by chance, each new node at one of the last eight."""
    random = np.random.default_rng(seed)
    nodes: dict[str, list[str]] = {f"n{k}": [f"i{k}"] for k in range(n)}
    for k in range(1, n):
        for end in (k, random.integers(max(0, k - 8), k)):
            nodes[f"n{end}"].append(f"r{k}")
    return tnsum.Topology(nodes)


def grid(n: int) -> tnsum.Network:
    def node(a: int, b: int) -> np.ndarray:
        return np.ones((2,) * ((a > 0) + (a < n - 1) + (b > 0) + (b < n - 1)) + (3,))

    return tnsum.grid([[node(a, b) for b in range(n)] for a in range(n)])


def a_hundred_nodes(report: Report, quick: bool) -> None:
    ends = {0: (1, 4, 3), 99: (3, 4, 1)}
    train = tnsum.tensor_train([np.ones(ends.get(k, (3, 4, 3))) for k in range(100)])
    pictures: dict[str, object] = {
        "tensor train, 100 nodes": train,
        "sum of 100 trains, 100 nodes": tnsum.add(*[train] * 100),
        "ring, 100 nodes": tnsum.tensor_ring([np.ones((3, 4, 3))] * 100),
        "grid, 100 nodes": grid(10),
        "MERA, 57 nodes": mera()[0],
        "random tree, 100 nodes": random_tree(100),
        "random graph, 100 nodes": random_graph(100),
    }
    svg = interleaved(
        {name: lambda x=x: to_svg(x) for name, x in pictures.items()}, 0 if quick else 1
    )
    drawn = interleaved(
        {name: lambda x=x: (tnsum.draw(x), pyplot.close("all")) for name, x in pictures.items()}, 0
    )
    report.text("## A hundred nodes")
    rows = [(name, in_seconds(svg[name]), in_seconds(drawn[name])) for name in pictures]
    report.table(("picture", "SVG", "matplotlib, without writing a file"), rows)


def a_thousand_nodes(report: Report, quick: bool) -> None:
    if not quick:
        x = random_graph(1000)
        found = interleaved({"svg": lambda: to_svg(x)}, 0, at_least=1, at_most=1)
        report.text(f"A random graph of 1000 nodes takes {in_seconds(found['svg'])} as SVG.")


if __name__ == "__main__":
    run((a_hundred_nodes, a_thousand_nodes), "Pictures", PACKAGES, __doc__)
