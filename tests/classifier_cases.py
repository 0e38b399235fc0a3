"""Images for the tests of classifiers."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]


def striped(n: int, seed: int = 0) -> tuple[Array, list[str]]:
    """Images of 8 x 10 x 3 of three classes, `n` of each, that are easy to tell apart."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((8, 10))
    patterns = {"flat": 0.5 + 0 * rows, "lying": rows % 2, "upright": columns % 2}
    names = list(patterns) * n
    noise = 0.1 * rng.random((3 * n, 8, 10, 3))
    return np.stack([patterns[name] for name in names])[..., None] * 0.9 + noise, names


def blurred(n_classes: int, n: int, seed: int = 0) -> tuple[Array, list[str]]:
    """Images of 6 x 5 x 2, `n` of each class, that are hard to tell apart."""
    rng = np.random.default_rng((seed, n_classes))
    centres = rng.standard_normal((n_classes, 6, 5, 2))
    labels = np.arange(n * n_classes) % n_classes
    images = centres[labels] + 1.5 * rng.standard_normal((len(labels), 6, 5, 2))
    return images, [f"class {label}" for label in labels]


def eth80() -> tuple[Array, list[str]]:
    """The prepared images of ETH-80 and their classes; the test is skipped where they are missing."""
    root = Path(__file__).parent.parent.parent / "shared" / "eth80"
    folder = Path(os.environ.get("TNSUM_ETH80", root))
    file = folder if folder.suffix == ".npz" else folder / "eth80_32.npz"
    if not file.is_file():
        pytest.skip("ETH-80 is not here: set TNSUM_ETH80 to the folder of eth80_32.npz")
    with np.load(file, allow_pickle=False) as data:
        classes = data["classes"].astype(str)
        return data["images"].astype(np.float32) / 255, classes[data["labels"]].tolist()
