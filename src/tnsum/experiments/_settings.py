"""What is to be run, checked once."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tnsum._checks import checked_integer
from tnsum.errors import NetworkError
from tnsum.experiments._protocols import PROTOCOLS
from tnsum.topology import listed

FRACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8)

# Splits have names with their number; more than this nobody waits for.
_MOST_SPLITS = 10_000


@dataclass(frozen=True)
class Settings:
    """What is to be run.

    Attributes
    ----------
    protocols : tuple of str
        Some of "paper", "tuned" and "objects", each once, in this order.
    fractions : tuple of float
        The parts of the images that are trained on, smallest first; "objects" has none.
    n_splits : int
        How many random splits there are at each fraction; "objects" has as many as objects.
    seed : int
        Split number k is drawn by `numpy.random.default_rng((seed, k))`.

    Raises
    ------
    NetworkError
        One of them is not what it must be.

    Examples
    --------
    >>> Settings(("paper",), (0.8, 0.2)).fractions
    (0.2, 0.8)
    """

    protocols: tuple[str, ...] = ("paper",)
    fractions: tuple[float, ...] = FRACTIONS
    n_splits: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocols", _checked_protocols(self.protocols))
        object.__setattr__(self, "fractions", _checked_fractions(self.fractions))
        for name, least in (("n_splits", 1), ("seed", 0)):
            object.__setattr__(self, name, checked_integer(name, getattr(self, name), least))
        if self.n_splits > _MOST_SPLITS:
            raise NetworkError(f"n_splits must be at most {_MOST_SPLITS}; {self.n_splits} came.")

    def as_values(self) -> dict[str, Any]:
        """The settings, ready for JSON."""
        return {
            "protocols": list(self.protocols),
            "fractions": list(self.fractions),
            "splits": self.n_splits,
            "seed": self.seed,
        }


def _checked_protocols(names: Sequence[str]) -> tuple[str, ...]:
    wanted = (names,) if isinstance(names, str) else tuple(names)
    unknown = [name for name in wanted if name not in PROTOCOLS]
    if unknown or not wanted:
        raise NetworkError(
            f"protocols must be one or more of {listed(tuple(PROTOCOLS))}; {wanted!r} came."
        )
    return tuple(name for name in PROTOCOLS if name in wanted)


def _checked_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    wanted = tuple(fractions)
    are_good = all(isinstance(f, numbers.Real) and math.isfinite(f) and 0 < f < 1 for f in wanted)
    if not wanted or not are_good or len(set(wanted)) < len(wanted):
        raise NetworkError(
            f"fractions must be different numbers between 0 and 1, as 0.8 for 80 %; {wanted!r} came."
        )
    return tuple(sorted(float(f) for f in wanted))
