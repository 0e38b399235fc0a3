"""A short tour: networks of every format are built, added and checked against dense arrays.

Run it with `make reproduce`, or `python examples/tour.py` where tnsum is installed.
"""

import time

import numpy as np

import tnsum

GENERATOR = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return GENERATOR.standard_normal(shape)


def chain(rank: int) -> tnsum.Network:
    return tnsum.chain([random(6, rank), random(rank, rank), random(rank, 5)])


def tucker(rank: int) -> tnsum.Network:
    return tnsum.tucker(random(rank, rank, rank), [random(n, rank) for n in (6, 5, 4)])


def tensor_train(rank: int) -> tnsum.Network:
    ranks = [1, rank, rank, rank, rank, 1]
    return tnsum.tensor_train([random(ranks[k], 4, ranks[k + 1]) for k in range(5)])


def operator(rank: int) -> tnsum.Network:
    ranks = [1, rank, rank, 1]
    return tnsum.tensor_train([random(ranks[k], 3, 3, ranks[k + 1]) for k in range(3)])


def tensor_ring(rank: int) -> tnsum.Network:
    return tnsum.tensor_ring([random(rank, 4, rank) for _ in range(4)])


def cp(rank: int) -> tnsum.Network:
    return tnsum.cp([random(n, rank) for n in (6, 5, 4)])


def tree(rank: int) -> tnsum.Network:
    def pair() -> tuple[np.ndarray, list[np.ndarray]]:
        return random(rank, rank, rank), [random(4, rank), random(4, rank)]

    return tnsum.tree((random(rank, rank), [pair(), pair()]))


def grid(rank: int) -> tnsum.Network:
    def array(row: int, column: int) -> np.ndarray:
        neighbours = sum((row > 0, column < 2, row < 2, column > 0))
        return random(*[rank] * neighbours, 2)

    return tnsum.grid([[array(row, column) for column in range(3)] for row in range(3)])


def outer_product(rank: int) -> tnsum.Network:
    return tnsum.Network({"a": (random(6), ("i",)), "b": (random(5), ("j",))})


def renamed(x: tnsum.Network) -> tnsum.Network:
    """The same network with every node and mode named otherwise: sums match it by itself."""
    modes = {mode: f"mode {k}" for k, mode in enumerate(x.topology.modes)}
    return x.rename(modes=modes, nodes={name: f"node {name}" for name in x.topology.nodes})


FORMATS = {
    "chain of matrices": chain,
    "Tucker": tucker,
    "tensor train": tensor_train,
    "operator train": operator,
    "tensor ring": tensor_ring,
    "CP": cp,
    "tree": tree,
    "grid": grid,
    "disconnected": outer_product,
}


def check(name: str, build: object) -> float:
    """Print a line on z = x + 2 y - w / 3 in one format, and return its error."""
    assert callable(build)
    x, y, w = build(2), renamed(build(3)), build(2)
    dense = x.contract() + 2 * y.contract() - w.contract() / 3
    started = time.perf_counter()
    z = x + 2 * y - w / 3
    explicit = z.to_network()
    milliseconds = 1e3 * (time.perf_counter() - started)
    size = np.linalg.norm(dense)
    errors = [
        np.linalg.norm(z.contract() - dense) / size,
        np.linalg.norm(explicit.contract() - dense) / size,
        abs(tnsum.norm(z) - size) / size,
        abs(tnsum.inner(z, x) - np.vdot(dense, x.contract())) / size**2,
    ]
    ranks = max(explicit.ranks.values(), default=0)
    shape = "x".join(map(str, z.shape))
    print(
        f"{name:18} {shape:>18} {z.n_parameters:6} numbers, largest rank {ranks:2},"
        f" {milliseconds:5.1f} ms, largest error {max(errors):.0e}"
    )
    return float(max(errors))


def main() -> None:
    print(f"tnsum {tnsum.__version__}: z = x + 2 y - w / 3 in every format, against dense arrays\n")
    worst = max(check(name, build) for name, build in FORMATS.items())
    if not worst < 1e-12:
        raise SystemExit(f"An error of {worst:.0e} is larger than rounding explains.")

    print("\nA thousand tensor trains of order 50 and size 10, added lazily:")
    trains = [
        tnsum.tensor_train(
            [random(1 if k == 0 else 4, 10, 1 if k == 49 else 4) / 6 for k in range(50)]
        )
        for _ in range(1000)
    ]
    started = time.perf_counter()
    total = tnsum.mean(*trains)
    milliseconds = 1e3 * (time.perf_counter() - started)
    print(
        f"  {total.n_summands} networks, ranks {max(total.ranks.values())}, {milliseconds:.0f} ms"
    )
    index = [0] * 50
    entry = np.mean([train.entries(index) for train in trains])
    error = abs(total.entries(index) - entry) / abs(entry)
    print(f"  the entry at zero, from the sum and one by one: they differ by {error:.0e}")
    if not error < 1e-10:
        raise SystemExit("The sum is wrong.")
    print("\nAll sums are right.")


if __name__ == "__main__":
    main()
