"""What compressing gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tnsum.network import Network
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
        "bound": the error is not larger. "estimate": it hardly ever is.
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

    def __repr__(self) -> str:
        return (
            f"Compression to ranks {listed_sizes(self.ranks)}, error {self.error:.1e} "
            f"({self.error_kind}), {self.method}"
        )
