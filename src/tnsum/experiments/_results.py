"""A finished run: what was run on what, what came out, and the files that say so to programs.

`results.json` and `results.csv` hold nothing of time or place: the same images, settings and versions
give the same bytes on one kind of processor, however often the run was stopped. Times are in
`times.json`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from tnsum.datasets import ImageSet
from tnsum.experiments._claims import pairs_of
from tnsum.experiments._outcomes import Outcome
from tnsum.experiments._points import Point, points_of, summary
from tnsum.experiments._protocols import PROTOCOLS, WIDTHS
from tnsum.experiments._settings import Settings
from tnsum.experiments._splits import divided
from tnsum.fusion import TuckerFusion

_LIBRARIES = ("tnsum", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A finished run.

    Attributes
    ----------
    data : ImageSet
    is_eth80 : bool
        Whether these are the images of the paper; otherwise its number is not shown.
    settings : Settings
    outcomes : tuple of Outcome
        One for each split, in order.
    """

    data: ImageSet
    is_eth80: bool
    settings: Settings
    outcomes: tuple[Outcome, ...]

    @cached_property
    def _points(self) -> list[Point]:
        return points_of(self.outcomes)

    def points(self, protocol: str) -> list[Point]:
        """The splits of a protocol taken together, by fraction; none if it was not run."""
        return [point for point in self._points if point.protocol == protocol]

    def times_tested(self, point: Point) -> np.ndarray[Any, Any]:
        """How often each image was tested."""
        found = np.zeros(len(self.data), dtype=np.int64)
        for outcome in point.outcomes:
            _, test = divided(outcome.split, self.data, self.settings.seed)
            found[test] += 1
        return found

    def common_factors(self) -> list[np.ndarray[Any, Any]]:
        """The common factors of SUM in the first split, at the largest fraction of its protocol."""
        split = self.points(self.settings.protocols[0])[-1].outcomes[0].split
        train, _ = divided(split, self.data, self.settings.seed)
        return TuckerFusion(ranks=3).fit(self.data.images[train]).common_factors_


def described(data: ImageSet, is_eth80: bool, settings: Settings) -> dict[str, Any]:
    """What is run on what, with which versions: what a folder belongs to."""
    return {
        "format": 2,
        "data": {
            "source": data.source,
            "is_eth80": is_eth80,
            "images": len(data),
            "shape": list(data.images.shape[1:]),
            "classes": list(data.classes),
            "fingerprint": _fingerprint(data),
        },
        "settings": {
            **settings.as_values(),
            "widths": list(WIDTHS),
            "cost": {name: PROTOCOLS[name].cost for name in settings.protocols},
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
    }


def _fingerprint(data: ImageSet) -> str:
    """A number that other images, labels, objects or names would not have."""
    found = hashlib.sha256()
    for array in (data.images, data.labels, data.objects):
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    for name in (*data.classes, *data.names, data.source):
        # Names may hold what is no valid text; a length before each keeps them apart.
        text = name.encode("utf-8", "surrogateescape")
        found.update(f"{len(text)}:".encode() + text)
    return found.hexdigest()


def as_values(run: Reproduction) -> dict[str, Any]:
    """The whole run, ready for JSON; accuracies and differences are in per cent."""
    return {
        **described(run.data, run.is_eth80, run.settings),
        "protocols": {
            name: {
                "description": PROTOCOLS[name].description,
                "points": [_point_values(point, run) for point in run.points(name)],
                "misclassified": _misclassified(run.points(name)[-1], run),
            }
            for name in run.settings.protocols
        },
    }


def _point_values(point: Point, run: Reproduction) -> dict[str, Any]:
    seed, labels = run.settings.seed, run.data.labels
    return {
        "fraction": point.fraction,
        "splits": [
            {
                "number": outcome.split.number,
                "seed": None if point.fraction is None else [seed, outcome.split.number],
                "trained": outcome.n_train,
                "tested": sum(outcome.n_tested),
            }
            for outcome in point.outcomes
        ],
        "methods": {
            name: {
                **_summary_values(point.accuracies(name)),
                "accuracies": point.accuracies(name).tolist(),
                "widths": [outcome.methods[name].width for outcome in point.outcomes],
                "confusion": point.confusion(name, labels).tolist(),
            }
            for name in point.methods
        },
        "differences": [
            {
                "method": a,
                "other": b,
                **_summary_values(point.accuracies(a) - point.accuracies(b)),
            }
            for a, b in pairs_of([point])
        ],
    }


def _summary_values(numbers: np.ndarray[Any, Any]) -> dict[str, float | None]:
    """Mean, standard deviation and standard error; the last two are null for one split."""
    found = summary(numbers)
    pairs = {"mean": found.mean, "std": found.std, "standard_error": found.error}
    return {name: None if np.isnan(value) else value for name, value in pairs.items()}


def _misclassified(point: Point, run: Reproduction) -> dict[str, list[dict[str, Any]]]:
    """For each method the images that were mistaken at the largest fraction, in order: see `Point`."""
    data, tested = run.data, run.times_tested(point)
    return {
        method: [
            {
                "name": data.names[image],
                "class": data.classes[data.labels[image]],
                "tested": int(tested[image]),
                "taken_for": {data.classes[label]: n for label, n in sorted(counts.items())},
            }
            for image, counts in point.mistaken(method).items()
        ]
        for method in point.methods
    }


def as_csv(outcomes: Sequence[Outcome]) -> str:
    """A line for each split and method; accuracies from 0 to 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["protocol", "fraction", "split", "method", "trained", "tested", "accuracy"])
    for outcome in outcomes:
        split = outcome.split
        at = "" if split.fraction is None else repr(split.fraction)
        for name in outcome.methods:
            n_tested, accuracy = sum(outcome.n_tested), repr(outcome.accuracy(name))
            row = (split.protocol, at, split.number, name, outcome.n_train, n_tested, accuracy)
            writer.writerow(row)
    return text.getvalue()


def times(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """The seconds of each method in each split."""
    return {
        outcome.split.name: {name: found.seconds for name, found in outcome.methods.items()}
        for outcome in outcomes
    }
