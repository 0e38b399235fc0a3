"""What came out of a split, and the split done.

An outcome holds for each method which images it took for what: accuracies, confusion matrices and the
images that are often mistaken all follow from that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tnsum.datasets import ImageSet
from tnsum.errors import NetworkError
from tnsum.experiments._kernels import chosen_width, mean_distance, predicted_with_leads, rbf
from tnsum.experiments._methods import Prepared, distances
from tnsum.experiments._protocols import PROTOCOLS
from tnsum.experiments._splits import Indices, Split, divided, folds

# Of leads, which are for putting mistakes in order.
_DIGITS = 4


@dataclass(frozen=True)
class MethodOutcome:
    """What one method did.

    Attributes
    ----------
    mistakes : tuple of (int, int)
        The number of each image that was mistaken, and the class it was taken for.
    leads : tuple of float
        How clearly each of them was: the closest of the duels of that class with the others.
    width : float
        gamma times the mean squared distance of the training images.
    seconds : float
        The time it took.
    """

    mistakes: tuple[tuple[int, int], ...]
    leads: tuple[float, ...]
    width: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What came out of a split.

    Attributes
    ----------
    split : Split
    n_train : int
    n_tested : tuple of int
        How many images of each class were tested.
    methods : mapping of str to MethodOutcome
    """

    split: Split
    n_train: int
    n_tested: tuple[int, ...]
    methods: Mapping[str, MethodOutcome]

    def accuracy(self, method: str) -> float:
        """The part of the tested images whose class a method found."""
        return 1 - len(self.methods[method].mistakes) / sum(self.n_tested)

    def as_values(self) -> dict[str, Any]:
        """The outcome, ready for JSON."""
        return {
            "protocol": self.split.protocol,
            "fraction": self.split.fraction,
            "split": self.split.number,
            "trained": self.n_train,
            "tested": list(self.n_tested),
            "methods": {
                name: {
                    "mistakes": [list(pair) for pair in found.mistakes],
                    "leads": list(found.leads),
                    "width": found.width,
                    "seconds": found.seconds,
                }
                for name, found in self.methods.items()
            },
        }


def outcome_of(split: Split, known: Prepared, seed: int) -> Outcome:
    """What comes out of a split, the same whatever else the machine does."""
    # This may be another process than the one that limits its threads.
    with threadpool_limits(1):
        train, test = divided(split, known.data, seed)
        methods = {}
        for name in PROTOCOLS[split.protocol].methods:
            start = time.perf_counter()
            found = _mistakes(name, split, known, train, test, seed)
            methods[name] = MethodOutcome(*found, seconds=time.perf_counter() - start)
    n_tested = np.bincount(known.data.labels[test], minlength=len(known.data.classes))
    return Outcome(split, len(train), tuple(int(n) for n in n_tested), methods)


def _mistakes(
    method: str, split: Split, known: Prepared, train: Indices, test: Indices, seed: int
) -> tuple[tuple[tuple[int, int], ...], tuple[float, ...], float]:
    """The images that a method mistakes and what it takes them for, how clearly, the kernel's width."""
    protocol = PROTOCOLS[split.protocol]
    found = distances(method, known, train, is_scaled=protocol.is_tuned)
    trained, labels = found.squared[train], known.data.labels
    scale = mean_distance(trained)
    if protocol.is_tuned:
        parts = list(folds(split, known.data, train, seed))
        width = chosen_width(trained, labels[train], parts, protocol.cost)
    else:
        width = scale / found.n_features
    gamma = width / scale
    kernels = rbf(trained, gamma), rbf(found.squared[test], gamma)
    answers, leads = predicted_with_leads(kernels[0], labels[train], kernels[1], protocol.cost)
    wrong = np.flatnonzero(answers != labels[test])
    mistakes = tuple((int(test[k]), int(answers[k])) for k in wrong)
    return mistakes, tuple(round(float(leads[k]), _DIGITS) for k in wrong), width


def outcome_from(values: Any, split: Split, data: ImageSet) -> Outcome:
    """The outcome that `as_values` made values of.

    Raises
    ------
    NetworkError
        They are not such values, or of another split or other images.
    """
    try:
        methods = {
            str(name): MethodOutcome(
                tuple((int(image), int(label)) for image, label in found["mistakes"]),
                tuple(float(lead) for lead in found["leads"]),
                float(found["width"]),
                float(found["seconds"]),
            )
            for name, found in values["methods"].items()
        }
        n_tested = tuple(int(n) for n in values["tested"])
        outcome = Outcome(split, int(values["trained"]), n_tested, methods)
        # Types too must be right, and nothing may be left over.
        is_same = json.dumps(outcome.as_values()) == json.dumps(values)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        is_same = False
    if not is_same or not _is_possible(outcome, data):
        raise NetworkError(f"This is not the outcome of {split.name}.")
    return outcome


def _is_possible(outcome: Outcome, data: ImageSet) -> bool:
    """Whether an outcome can be of these images."""
    n_classes, n_tested = len(data.classes), outcome.n_tested
    is_complete = tuple(outcome.methods) == PROTOCOLS[outcome.split.protocol].methods
    if (
        not is_complete
        or len(n_tested) != n_classes
        or outcome.n_train + sum(n_tested) != len(data)
    ):
        return False
    for found in outcome.methods.values():
        if not all(0 <= k < len(data) and 0 <= label < n_classes for k, label in found.mistakes):
            return False
        if len(found.leads) != len(found.mistakes) or not np.all(np.isfinite(found.leads)):
            return False
        numbers = [k for k, _ in found.mistakes]
        wrong = np.bincount(data.labels[numbers], minlength=n_classes)
        if len(set(numbers)) < len(numbers) or np.any(wrong > n_tested):
            return False
    return True
