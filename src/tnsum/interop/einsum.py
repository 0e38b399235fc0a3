"""Networks as einsum equations, for every library that has an einsum.

The way back is `Network.from_einsum`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from string import ascii_letters

from tnsum._typing import Array
from tnsum.errors import NetworkError
from tnsum.interop._recognition import as_network
from tnsum.network import Network


def to_einsum(x: Network) -> tuple[str, tuple[Array, ...]]:
    """The einsum equation of a network and its arrays: `equation, arrays = to_einsum(x)`.

    `np.einsum(equation, *arrays)` is then `x.contract()`, as is `einsum` of opt_einsum, PyTorch or
    JAX. The arrays are the network's own. If every mode is named by a single letter the letters are
    kept; otherwise modes are lettered in order of appearance, a-z, A-Z, then further letters of
    Unicode. NumPy and PyTorch know the 52 of ASCII only; opt_einsum takes all.

    Not kept are the names of nodes, and names of modes that are longer than a letter.

    Raises
    ------
    NetworkError
        Something else than a Network came, or it has more modes than there are letters.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network({"A": (np.eye(2), ("row", "r")), "B": (np.eye(2), ("r", "column"))})
    >>> equation, arrays = to_einsum(x)
    >>> equation
    'ab,bc->ac'
    >>> np.einsum(equation, *arrays)
    array([[1., 0.],
           [0., 1.]])
    """
    x = as_network(x, "to_einsum")
    letter = _letters_of(x.topology.modes)
    terms = ["".join(letter[mode] for mode in modes) for modes in x.topology.nodes.values()]
    physical = "".join(letter[mode] for mode in x.physical_modes)
    return f"{','.join(terms)}->{physical}", tuple(x.arrays.values())


def _letters_of(modes: Sequence[str]) -> dict[str, str]:
    if all(len(mode) == 1 and mode.isalpha() for mode in modes):
        return {mode: mode for mode in modes}
    letter = dict(zip(modes, _letters(), strict=False))
    if len(letter) < len(modes):
        raise NetworkError(
            f"An einsum equation has a letter for each mode: there are {len(letter)} letters, the "
            f"network has {len(modes)} modes. Contract parts of it first."
        )
    return letter


def _letters() -> Iterator[str]:
    """All letters: those that every einsum knows, then those from 'À' on, as in opt_einsum."""
    yield from ascii_letters
    yield from filter(str.isalpha, map(chr, range(ord("À"), sys.maxunicode + 1)))
