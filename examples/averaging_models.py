"""
Averaging low-rank models
=========================

Ten people each fit a model W = A B of rank 4 to data of their own, and share A and B but not the
data. The mean of the models is not the product of the mean factors. As a sum of networks it is
exact, and it is made small again without forming any W.
"""

# %%
# A hidden matrix of rank 4, ten small and noisy data sets, and a fit of rank 4 to each. The factors
# of a fit may be turned by any invertible matrix between them, and everyone's are turned otherwise.

import matplotlib.pyplot as plt
import numpy as np

import tnsum

rng = np.random.default_rng(0)
n_inputs, n_outputs, rank, n_models = 60, 40, 4, 10
hidden = rng.standard_normal((n_inputs, rank)) @ rng.standard_normal((rank, n_outputs))


def fitted() -> tnsum.Network:
    inputs = rng.standard_normal((100, n_inputs))
    outputs = inputs @ hidden + 8 * rng.standard_normal((100, n_outputs))
    full = np.linalg.lstsq(inputs, outputs, rcond=None)[0]
    u, s, vh = np.linalg.svd(full, full_matrices=False)
    turn = rng.standard_normal((rank, rank))
    return tnsum.chain(
        [u[:, :rank] * s[:rank] @ turn, np.linalg.solve(turn, vh[:rank])],
    )


models = [fitted() for _ in range(n_models)]
mean = tnsum.mean(*models)
print(mean)
mean

# %%
# Compressed to rank 4 the mean has the form of each model, and the singular values that are left
# out are mostly noise. How far is each candidate from the hidden matrix?

small = tnsum.compress(mean, max_rank=rank)
factors = [np.mean([m.arrays[name] for m in models], axis=0) for name in ("matrix0", "matrix1")]


def error(network: tnsum.Network | tnsum.NetworkSum) -> float:
    return float(np.linalg.norm(network.contract() - hidden) / np.linalg.norm(hidden))


errors = {
    "mean of the factors": error(tnsum.chain(factors)),
    "one model": np.mean([error(m) for m in models]),
    "mean of the models, rank 40": error(mean),
    "the same in rank 4": error(small.network),
}
for name, value in errors.items():
    print(f"{name:>28}: {value:.1%}")

figure, ax = plt.subplots(figsize=(7, 2.6))
ax.barh([*errors], [*errors.values()], color=["#bd4a68", "#a3acb8", "#3572c6", "#2a9468"])
ax.invert_yaxis()
ax.set_xlabel("relative error")
figure.tight_layout()

# %%
# The compressed model as a network, ready for use in place of any of the ten:

small

# sphinx_gallery_thumbnail_number = 1
