"""Objects told apart by what they have in common: made images, Tucker networks, their sum, an SVM.

Run it with `python examples/objects.py` where tnsum[fusion] is installed. It writes
common_factors.png: the images that the common factors span, and a few objects with their two parts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tnsum.datasets import ImageSet, make_objects
from tnsum.fusion import CommonIndividual, FactorFusion, TuckerFusion


def main() -> None:
    data = make_objects(n_objects=4, n_views=9)
    print(data)
    models = {
        "pixels": make_pipeline(SVC(gamma=0.01, C=100)),
        "TuckerFusion": make_pipeline(TuckerFusion(3), StandardScaler(), SVC(gamma=0.05, C=100)),
        "FactorFusion": make_pipeline(FactorFusion(), SVC(gamma=1.0, C=100)),
    }
    # Views of one object are never on both sides of a split.
    objects = data.labels * 4 + data.objects
    for name, model in models.items():
        samples = data.images.reshape(len(data), -1) if name == "pixels" else data.images
        scores = cross_val_score(model, samples, data.labels, groups=objects, cv=GroupKFold(4))
        print(f"{name:>12}: {scores.mean():.0%} of new objects are told right")
    split = CommonIndividual(ranks=3, common_ranks=(6, 6, 3)).fit(data.images)
    parts = split.split(data.images)
    print(f"{parts.common_energy.mean():.0%} of the energy lies in 6 x 6 x 3 common vectors")
    draw(data, split)


def draw(data: ImageSet, split: CommonIndividual) -> None:
    chosen = [int(np.flatnonzero(data.labels == k)[1]) for k in range(len(data.classes))]
    parts = split.split(data.images[chosen])
    figure, axes = plt.subplots(4, 8, figsize=(9, 5))
    rows, columns = split.common_factors_[:2]
    spanned = [np.outer(rows[:, k // 4], columns[:, k % 4]) for k in range(8)]
    for k, image in enumerate(spanned):
        axes[0, k].imshow(image, cmap="RdBu_r", vmin=-0.15, vmax=0.15)
    for k, index in enumerate(chosen):
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
    figure.savefig("common_factors.png", dpi=120)
    print("common_factors.png shows them")


if __name__ == "__main__":
    main()
