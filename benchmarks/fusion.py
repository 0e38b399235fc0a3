"""Common factors of many images: ours, and the same algorithm in a loop with TensorLy.

    python benchmarks/fusion.py [--quick] [--write FILE]

The images are those of ETH-80 (TNSUM_ETH80 names its folder, else ../shared/eth80 is looked at) or,
where that is missing, made ones.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import measure  # isort: skip - threads are set before NumPy is imported

import numpy as np
import tensorly
from tensorly.decomposition._tucker import initialize_tucker

from measure import ROOT, Report, in_bytes, in_seconds, interleaved, with_peak_memory
from tnsum import decompose_stack
from tnsum.datasets import load_eth80, make_objects
from tnsum.fusion import TuckerConcat, TuckerFusion

PACKAGES = ("tnsum", "numpy", "scikit-learn", "tensorly")
RANKS = (3, 3, 3)


def images_of(quick: bool) -> tuple[Any, str]:
    """Images from 0 to 1, in double precision, and what they are."""
    path = Path(os.environ.get("TNSUM_ETH80", ROOT.parent / "shared" / "eth80"))
    found = load_eth80(path) if path.exists() else make_objects(n_objects=2 if quick else 10)
    images = found.images[:: 10 if quick else 1].astype(float)
    return images, f"{len(images)} images of 32 x 32 x 3 ({found.source})"


def hosvd(image: Any) -> tuple[Any, list[Any]]:
    """TensorLy's HOSVD of one image."""
    core, factors = initialize_tucker(
        tensorly.tensor(image), rank=RANKS, modes=range(3), random_state=0
    )
    return np.asarray(core), [np.asarray(factor) for factor in factors]


def by_tensorly(images: Any) -> list[Any]:
    """The paper's Algorithm 1, as one writes it with TensorLy."""
    columns: list[list[Any]] = [[], [], []]
    for image in images:
        core, factors = hosvd(image)
        eta = np.linalg.norm(core)
        for n, factor in enumerate(factors):
            columns[n].append(eta ** (1 / 3) * factor)
    joined = [np.concatenate(each, axis=1) for each in columns]
    return [np.linalg.svd(each, full_matrices=False)[0][:, :3] for each in joined]


def fitting(report: Report, quick: bool) -> None:
    images, what = images_of(quick)
    single = images.astype(np.float32)
    ours, theirs = TuckerFusion(RANKS).fit(images).common_factors_, by_tensorly(images)
    apart = max(
        np.linalg.norm(a @ a.T - b @ b.T, 2) for a, b in zip(ours[:2], theirs[:2], strict=True)
    )
    times = interleaved(
        {
            "TuckerFusion.fit": lambda: TuckerFusion(RANKS).fit(images),
            "the same in float32": lambda: TuckerFusion(RANKS).fit(single),
            "TensorLy, HOSVD in a loop": lambda: by_tensorly(images),
            "TuckerConcat.fit": lambda: TuckerConcat(RANKS).fit(images),
        },
        2.0,
        at_most=9,
    )
    some = images[:: max(1, len(images) // 200)]
    errors = {"ours": error_of(decomposed(some), some), "TensorLy": error_of(looped(some), some)}
    report.text(
        f"## Finding common factors\n\nRanks 3, {what}. Mean relative error of the images' own "
        f"networks: {errors['ours']:.6f} (ours), {errors['TensorLy']:.6f} (TensorLy); the subspaces of "
        f"the common factors differ by {apart:.0e}."
    )
    first = times["TuckerFusion.fit"]
    rows = [
        (name, in_seconds(t), in_seconds(t / len(images)), f"{t / first:.3g}")
        for name, t in times.items()
    ]
    report.table(("route", "time", "an image", "ratio"), rows)


def decomposed(images: Any) -> Any:
    return np.array([x.contract() for x in decompose_stack(images, "tucker", RANKS)])


def looped(images: Any) -> Any:
    found = []
    for image in images:
        core, factors = hosvd(image)
        found.append(np.einsum("abc,ia,jb,kc->ijk", core, *factors))
    return np.array(found)


def error_of(found: Any, images: Any) -> float:
    axes = (1, 2, 3)
    errors = np.sqrt(np.sum((found - images) ** 2, axis=axes) / np.sum(images**2, axis=axes))
    return float(np.mean(errors))


def transforming(report: Report, quick: bool) -> None:
    images, what = images_of(quick)
    fusion = TuckerFusion(RANKS).fit(images)
    rows, together = images.reshape(-1, 96), np.kron(*fusion.common_factors_[1:])
    times = interleaved(
        {
            "TuckerFusion.transform": lambda: fusion.transform(images),
            "one matrix product": lambda: rows @ together,
        },
        1.0,
    )
    ours, product = times.values()
    report.text(
        f"## Projecting samples\n\n{what}: transform takes {in_seconds(ours)}, {ours / product:.2g} "
        f"times the {in_seconds(product)} of the matrix product that is all but 3 % of its arithmetic "
        f"(all rows times the Kronecker product of two factors). The rest is scikit-learn's check that "
        f"every entry is finite, and the product along the first mode."
    )


def memory(report: Report, quick: bool) -> None:
    numbers = (300, 3000) if quick else (3000, 30000)
    rows = []
    for n in numbers:
        images = np.random.default_rng(0).random((n, 32, 32, 3))
        works = [partial(E(3).fit, images) for E in (TuckerFusion, TuckerConcat)]
        peaks = [with_peak_memory(work)[1] for work in works]
        rows.append((n, in_bytes(images.nbytes), *map(in_bytes, peaks)))
    report.text(
        "## Memory\n\nPeak of what `fit` asks for beyond the samples, 32 x 32 x 3, double precision."
    )
    report.table(("samples", "they take", "TuckerFusion", "TuckerConcat"), rows)


PARTS = (fitting, transforming, memory)

if __name__ == "__main__":
    measure.run(PARTS, "Common factors, side by side", PACKAGES, __doc__)
