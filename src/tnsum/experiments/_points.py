"""Splits taken together: means, their spread, and differences from split to split.

Methods see the same splits, so they are compared split by split: the mean of the differences is known
much better than the means are. Its standard error is that of independent splits. Random splits of one
data set overlap, so it says how firmly an order holds on these images, not on all images of the world.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import stdtrit

from tnsum.experiments._outcomes import Outcome
from tnsum.experiments._protocols import PROTOCOLS
from tnsum.experiments._splits import Indices, percent
from tnsum.fusion._samples import Matrix


@dataclass(frozen=True)
class Summary:
    """The mean of some numbers, their standard deviation, and the standard error of the mean.

    The last two are NaN where there is one number only.
    """

    mean: float
    std: float
    error: float
    n: int

    @property
    def sign(self) -> int:
        """1 if the mean is firmly above zero, -1 if firmly below, 0 if it cannot be told."""
        # Two differences that happen to be equal have an error of zero, and say nothing.
        if self.n < 3 or not abs(self.mean) > firm_errors(self.n) * self.error:
            return 0
        return 1 if self.mean > 0 else -1


class Compared(Protocol):
    """What a figure needs of splits taken together: those of a run, or of its file."""

    @property
    def fraction(self) -> float | None: ...
    @property
    def methods(self) -> tuple[str, ...]: ...
    def accuracy(self, method: str) -> Summary: ...
    def difference(self, method: str, other: str) -> Summary: ...


@dataclass(frozen=True)
class Point:
    """All splits of a protocol at one fraction; numbers are in per cent.

    Attributes
    ----------
    protocol : str
    fraction : float or None
        None where objects are left out.
    outcomes : tuple of Outcome
    """

    protocol: str
    fraction: float | None
    outcomes: tuple[Outcome, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were compared."""
        return PROTOCOLS[self.protocol].methods

    @property
    def title(self) -> str:
        """The fraction in words."""
        return "new objects" if self.fraction is None else percent(self.fraction)

    def accuracies(self, method: str) -> Matrix:
        """The accuracy of a method in each split."""
        return np.array([100 * outcome.accuracy(method) for outcome in self.outcomes])

    def accuracy(self, method: str) -> Summary:
        """The accuracies of a method, summarised."""
        return summary(self.accuracies(method))

    def difference(self, method: str, other: str) -> Summary:
        """The differences of two methods, split by split, summarised."""
        return summary(self.accuracies(method) - self.accuracies(other))

    def confusion(self, method: str, labels: Indices) -> Matrix:
        """How often an image of each class (rows) was taken for each class (columns), in all splits."""
        n_tested = np.sum([outcome.n_tested for outcome in self.outcomes], axis=0)
        found: Matrix = np.diag(n_tested)
        for outcome in self.outcomes:
            for image, taken_for in outcome.methods[method].mistakes:
                found[labels[image], labels[image]] -= 1
                found[labels[image], taken_for] += 1
        return found

    def mistaken(self, method: str) -> dict[int, dict[int, int]]:
        """Images that were mistaken, and how often for each class.

        The most often mistaken come first; of those that were as often, the most clearly mistaken: with
        the largest lead of the wrong class, in the mean.
        """
        found: dict[int, Counter[int]] = {}
        total: dict[int, float] = defaultdict(float)
        for outcome in self.outcomes:
            of_method = outcome.methods[method]
            for (image, taken_for), lead in zip(of_method.mistakes, of_method.leads, strict=True):
                found.setdefault(image, Counter())[taken_for] += 1
                total[image] += lead
        order = sorted(found, key=lambda image: (-found[image].total(), -total[image], image))
        return {image: dict(found[image]) for image in order}


def summary(numbers: Matrix) -> Summary:
    """Mean, standard deviation and standard error of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> summary(np.array([1.0, 2.0, 3.0, 6.0])).mean
    3.0
    """
    n = len(numbers)
    std = float(np.std(numbers, ddof=1)) if n > 1 else float("nan")
    return Summary(float(np.mean(numbers)), std, std / n**0.5, n)


def firm_errors(n: int) -> float:
    """How many standard errors a mean of n numbers must be from zero to be called firm.

    That which a mean of normal numbers exceeds, one way or the other, once in twenty times (Student's
    distribution): two for many numbers, and more for few, whose spread is badly known.

    Examples
    --------
    >>> [round(firm_errors(n), 1) for n in (2, 5, 20, 1000)]
    [12.7, 2.8, 2.1, 2.0]
    """
    return float(stdtrit(n - 1, 0.975)) if n > 1 else float("inf")


def points_of(outcomes: Iterable[Outcome]) -> list[Point]:
    """Outcomes taken together by protocol and fraction, in the order in which these come first."""
    groups: dict[tuple[str, float | None], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.split.protocol, outcome.split.fraction), []).append(outcome)
    return [Point(*key, tuple(group)) for key, group in groups.items()]
