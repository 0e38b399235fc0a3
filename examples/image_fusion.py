"""
Image fusion
============

Pictures of objects are told apart by what they have in common: every image becomes a Tucker
network, the networks are added, and the factors of the sum describe each image. That is the paper's
use of sums.
"""

# %%
# Eight classes of objects, four of each, nine views of every object. They are rendered by a
# program; the paper's own data set, ETH-80, is read by :func:`tnsum.datasets.load_eth80`.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import tnsum
from tnsum.datasets import make_objects
from tnsum.fusion import CommonIndividual, FactorFusion, TuckerFusion

data = make_objects(n_objects=4, n_views=9)
print(data)

# %%
# All images at once become Tucker networks of ranks 3, a stack. Their sum is lazy: of its 288
# blocks in each node the picture shows the first and the last. The cores lie on the superdiagonal,
# the factors side by side.

stack = tnsum.decompose_stack(data.images, "tucker", ranks=(3, 3, 3))
total = stack.sum()
total

# %%
# The leading left singular vectors of the factors side by side are the *common factors*. Rows and
# columns together span images; below them some objects, the part of each that the common factors
# hold, and the rest.

split = CommonIndividual(ranks=3, common_ranks=(6, 6, 3)).fit(data.images)
chosen = [int(np.flatnonzero(data.labels == k)[1]) for k in range(len(data.classes))]
parts = split.split(data.images[chosen])
rows, columns = split.common_factors_[:2]

figure, axes = plt.subplots(4, 8, figsize=(9, 5))
for k, index in enumerate(chosen):
    spanned = np.outer(rows[:, k // 4], columns[:, k % 4])
    axes[0, k].imshow(spanned, cmap="RdBu_r", vmin=-0.15, vmax=0.15)
    axes[1, k].imshow(data.images[index])
    axes[2, k].imshow(np.clip(parts.common[k], 0, 1))
    axes[3, k].imshow(np.clip(parts.individual[k] + 0.5, 0, 1))
    axes[1, k].set_title(data.classes[k], fontsize=8)
for ax, text in zip(axes[:, 0], ("spanned by", "object", "common", "individual"), strict=True):
    ax.set_ylabel(text, fontsize=8)
for ax in axes.flat:
    ax.set_xticks([])
    ax.set_yticks([])
figure.tight_layout()
print(f"{parts.common_energy.mean():.0%} of the energy lies in 6 x 6 x 3 common vectors")

# %%
# How many images of objects that were never seen are told right? Views of one object are never on
# both sides of a split. ``TuckerFusion`` is the paper's algorithm; ``FactorFusion`` keeps each
# image's own factors as well.

models = {
    "pixels": make_pipeline(SVC(gamma=0.01, C=100)),
    "TuckerFusion": make_pipeline(TuckerFusion(3), StandardScaler(), SVC(gamma=0.05, C=100)),
    "FactorFusion": make_pipeline(FactorFusion(), SVC(gamma=1.0, C=100)),
}
objects = data.labels * 4 + data.objects
for name, model in models.items():
    samples = data.images.reshape(len(data), -1) if name == "pixels" else data.images
    scores = cross_val_score(model, samples, data.labels, groups=objects, cv=GroupKFold(4))
    print(f"{name:>12}: {scores.mean():.0%} of new objects are told right")

# sphinx_gallery_thumbnail_number = 1
