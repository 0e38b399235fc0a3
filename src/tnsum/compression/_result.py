"""What compressing gives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from tnsum.network import Network
from tnsum.summation import NetworkSum
from tnsum.topology import listed_sizes


@dataclass(frozen=True)
class Compression:
    """A compressed network, and how far it is from what was compressed.

    Attributes
    ----------
    network : Network
    error : float
        Relative to the norm of what was compressed, rounding included.
    error_kind : str
        "bound": the error is not larger. "estimate": it is larger in fewer than one case in a thousand.
        What rounding adds is measured where it matters, and is always an estimate.
    method : str
        "direct", "sketch", "fit" or "accumulator".
    """

    network: Network
    error: float
    error_kind: str
    method: str

    @property
    def ranks(self) -> Mapping[str, int]:
        """The rank of each contraction mode."""
        return self.network.ranks

    def _repr_svg_(self) -> str | None:
        return self.network._repr_svg_()

    _repr_html_ = _repr_svg_

    def __repr__(self) -> str:
        return (
            f"Compression to ranks {listed_sizes(self.ranks)}, error {self.error:.1e} "
            f"({self.error_kind}), {self.method}"
        )


def counted(s: NetworkSum) -> str:
    """How many summands there are, in words."""
    return f"{s.n_summands} summand" + ("s" if s.n_summands != 1 else "")


def warn_of_rounding(rounding: float, tolerance: float, stacklevel: int) -> None:
    """Warn where the tolerance cannot be met because of rounding; infinite if nothing else is left."""
    if 0 < tolerance < rounding:
        size = f"of about {rounding:.1e}" if rounding < 1 else "of 1 or more"
        warnings.warn(
            f"Rounding alone makes a relative error {size}, more than the tolerance {tolerance:.1e}: "
            f"the summands cancel, or large entries of their neighbouring nodes do, or the tolerance is "
            f"near the precision of their dtype. Compress them in a wider dtype, or to a larger "
            f"tolerance.",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
