"""
Streaming
=========

Terms come one after the other and are not kept. A :class:`tnsum.SumAccumulator` adds them in memory
that does not grow, here or on several machines, and gives the sum as a small network whenever it is
asked.
"""

# %%
# A particle runs along a knot, and leaves a small cloud in space and time wherever it is seen: a
# product of four bells, which is a tensor train of ranks 1 on a grid of 64 x 64 x 64 x 64.

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np

import tnsum

rng = np.random.default_rng(1)
grid = np.linspace(-1, 1, 64)
topology = tnsum.tensor_train([np.ones((1, 64, 1))] * 4).topology


def seen(n: int) -> np.ndarray:
    """Places (x, y, z, t) where the particle was seen."""
    t = rng.uniform(-1, 1, n)
    angle = np.pi * t
    radius = 0.5 + 0.2 * np.cos(3 * angle)
    x, y = radius * np.cos(2 * angle), radius * np.sin(2 * angle)
    return np.stack([x, y, 0.5 * np.sin(3 * angle), t]) + 0.03 * rng.standard_normal((4, n))


def clouds(places: np.ndarray) -> tnsum.NetworkStack:
    bells = np.exp(-(((grid - places[..., None]) / 0.25) ** 2))
    return tnsum.NetworkStack(
        topology,
        {
            "node0": bells[0][:, :, None],
            "node1": bells[1][:, None, :, None],
            "node2": bells[2][:, None, :, None],
            "node3": bells[3][:, None, :],
        },
    )


def stream(n: int) -> Iterator[tnsum.NetworkStack]:
    """A hundred clouds at a time; nobody keeps them."""
    for _ in range(n // 100):
        yield clouds(seen(100))


clouds(seen(100))

# %%
# Two machines see half of the clouds each. Their accumulators are made alike, so that they can be
# merged.

here, there = (tnsum.SumAccumulator(topology, (64, 64, 64, 64), max_rank=30) for _ in range(2))
for accumulator in (here, there):
    for some in stream(1000):
        accumulator.add(some)
here.merge(there)
print(f"{here.n_summands} terms in {here.n_parameters:,} numbers; the dense sum has {64**4:,}")

# %%
# The sum as a small network:

small = here.compress(tolerance=1e-2)
print(small)
small

# %%
# A film of it: the density at eight times, seen along z. Each picture is a slice of the network;
# the dense array of seventeen million entries is never built.

figure, axes = plt.subplots(2, 4, figsize=(9, 4.8))
for ax, moment in zip(axes.flat, range(4, 64, 8), strict=True):
    density = small.network.select(i3=moment).contract()
    ax.imshow(density.sum(axis=2).T, cmap="magma", origin="lower", vmin=0)
    ax.set_title(f"t = {grid[moment]:.2f}", fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
figure.tight_layout()

# sphinx_gallery_thumbnail_number = 1
