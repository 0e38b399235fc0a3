"""
Adding many tensor trains
=========================

Three hundred waves on a grid of a million points: each is a small tensor train, their exact sum has
ranks in the hundreds, and a train of small ranks is near it. How near, tnsum says.
"""

# %%
# A plane wave cos(f (x0 + ... + x5) + p) is a tensor train of rank 2: the rotation by f x in every
# node. Ten points along each of six axes make a million entries, which are never built.

import matplotlib.pyplot as plt
import numpy as np

import tnsum

rng = np.random.default_rng(0)
points = np.linspace(0, 1, 10)


def wave(frequency: float, phase: float) -> tnsum.Network:
    angles = frequency * points
    cosine, sine = np.cos(angles), np.sin(angles)
    turn = np.array([[cosine, -sine], [sine, cosine]]).transpose(0, 2, 1)
    first = np.array([np.cos(angles + phase), -np.sin(angles + phase)]).T[None]
    last = np.array([cosine, sine])[:, :, None]
    return tnsum.tensor_train([first, turn, turn, turn, turn, last])


waves = [wave(f, p) for f, p in zip(rng.uniform(2, 6, 300), rng.uniform(0, 6, 300), strict=True)]
waves[0]

# %%
# The lazy sum holds the waves and their weights. Its explicit nodes would be block arrays of 600 x
# 10 x 600, nearly all of it zeros; the picture shows where the blocks would lie.

total = tnsum.add(*waves, weights=rng.standard_normal(300))
print(total)
total

# %%
# Compressed to a relative error of 1e-8 it is a train again, of the ranks that the sum really
# needs.

small = tnsum.compress(total, tolerance=1e-8)
print(small)
small

# %%
# The reported error against the true one, for tolerances from 1e-1 to 1e-12, and the largest rank.

tolerances = 10.0 ** -np.arange(1, 13)
found = [tnsum.compress(total, tolerance=tolerance) for tolerance in tolerances]
true = [float(tnsum.distance(c.network, total, relative=True)) for c in found]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.loglog(tolerances, tolerances, color="0.7", label="tolerance")
left.loglog(tolerances, [c.error for c in found], "o-", label="reported error")
left.loglog(tolerances, true, "x-", label="true error")
left.set_xlabel("tolerance")
left.legend()
right.semilogx(tolerances, [max(c.ranks.values()) for c in found], "o-")
right.set_xlabel("tolerance")
right.set_ylabel("largest rank (the exact sum: 600)")
figure.tight_layout()

# sphinx_gallery_thumbnail_number = 1
