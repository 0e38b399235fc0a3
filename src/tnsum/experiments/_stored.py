"""A finished run as its folder tells it: what figures need of `results.json`, read as if hostile."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tnsum.errors import NetworkError, UnsuitableError
from tnsum.experiments._folder import read_json
from tnsum.experiments._points import Summary, summary
from tnsum.experiments._protocols import PROTOCOLS
from tnsum.fusion._samples import Matrix
from tnsum.topology import printable

# The results of the longest run there is, 10,000 splits, are shorter.
_LONGEST = 2**28
_MOST_CLASSES = 1000
_LONGEST_SOURCE = 100
_PROTOCOL = "paper"


@dataclass(frozen=True, eq=False)
class StoredPoint:
    """All splits at one fraction: accuracies in per cent, and what was taken for what."""

    fraction: float
    found: Mapping[str, Matrix]
    confusions: Mapping[str, Matrix]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were compared."""
        return tuple(self.found)

    def accuracy(self, method: str) -> Summary:
        """The accuracies of a method, summarised."""
        return summary(self.found[method])

    def difference(self, method: str, other: str) -> Summary:
        """The differences of two methods, split by split, summarised."""
        return summary(self.found[method] - self.found[other])


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A finished run of the paper's protocol.

    Attributes
    ----------
    is_eth80 : bool
        Whether it says to be of the paper's images.
    source : str
        Where the images are from, in words.
    n_images, n_splits : int
    classes : tuple of str
    points : tuple of StoredPoint
        By fraction, the smallest first.
    """

    is_eth80: bool
    source: str
    n_images: int
    n_splits: int
    classes: tuple[str, ...]
    points: tuple[StoredPoint, ...]

    @property
    def heading(self) -> str:
        """The images in a few words, for a figure."""
        name = "images of ETH-80" if self.is_eth80 else "images that are not ETH-80"
        return f"{self.n_images} {name}, {self.n_splits} splits"

    @property
    def data(self) -> str:
        """The images in words."""
        name = "images of ETH-80" if self.is_eth80 else f"images, not of ETH-80 but {self.source}"
        return f"{self.n_images} {name}; {self.n_splits} splits"


def stored_run(folder: str | os.PathLike[str]) -> StoredRun:
    """The run whose folder this is.

    Raises
    ------
    NetworkError
        There is no `results.json` of a finished run in it, or the paper's protocol was not run.
    """
    path = Path(folder) / "results.json"
    if not path.is_file():
        raise UnsuitableError(
            f"{printable(os.fspath(folder))} must be the folder of a finished `tnsum reproduce`; it "
            f"holds no results.json. Run it, or give another folder."
        )
    values = read_json(path, _LONGEST)
    try:
        return _run(values)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise NetworkError(
            f"{printable(os.fspath(path))} must hold the results of `tnsum reproduce` with the protocol "
            f"{_PROTOCOL}; it does not ({type(error).__name__}). Run it again, into another folder."
        ) from error


def _run(values: Any) -> StoredRun:
    """What the values say; whatever is wrong with them is one of Python's own errors."""
    data, points = values["data"], values["protocols"][_PROTOCOL]["points"]
    classes = tuple(data["classes"])
    if not 2 <= len(classes) <= _MOST_CLASSES or not all(isinstance(c, str) for c in classes):
        raise ValueError(classes)
    found = sorted((_point(point, len(classes)) for point in points), key=lambda p: p.fraction)
    n_splits = {len(numbers) for point in found for numbers in point.found.values()}
    if len(n_splits) != 1:
        raise ValueError(n_splits)
    for name, kind in (("images", int), ("is_eth80", bool), ("source", str)):
        if not isinstance(data[name], kind):
            raise TypeError(name)
    source = printable(data["source"][:_LONGEST_SOURCE])
    return StoredRun(
        data["is_eth80"], source, data["images"], n_splits.pop(), classes, tuple(found)
    )


def _point(values: Any, n_classes: int) -> StoredPoint:
    fraction = float(values["fraction"])
    if not 0 < fraction < 1:
        raise ValueError(fraction)
    found, confusions = {}, {}
    for method in PROTOCOLS[_PROTOCOL].methods:
        one = values["methods"][method]
        found[method] = _numbers(one["accuracies"], 1, 100.0)
        confusions[method] = _numbers(one["confusion"], 2, math.inf)
        if found[method].size == 0 or confusions[method].shape != (n_classes, n_classes):
            raise ValueError(method)
    return StoredPoint(fraction, found, confusions)


def _numbers(values: Any, n_axes: int, most: float) -> Matrix:
    array = np.array(values, dtype=np.float64)
    if array.ndim != n_axes or not np.all((array >= 0) & (array <= most) & (array < math.inf)):
        raise ValueError(n_axes)
    return array
