"""Random networks, for trying things out and for tests."""

from collections.abc import Mapping

import numpy as np

from tnsum._arrays import resolve_dtype
from tnsum._typing import DType
from tnsum.errors import ModeError
from tnsum.network import Network
from tnsum.topology import Topology, listed


def random_network(
    topology: Topology,
    sizes: Mapping[str, int] | int,
    seed: int = 0,
    dtype: DType = "float64",
) -> Network:
    """A network of NumPy arrays with independent normal entries, reproducible from the seed.

    The entries are scaled so that those of the represented tensor have variance one (where no
    hyperedge or trace makes them depend on each other), whatever the ranks and the order.

    Parameters
    ----------
    topology : Topology
    sizes : Mapping[str, int] or int
        The size of each mode, or one for all.
    seed : int
    dtype : str

    Raises
    ------
    ModeError
        A mode has no size, or a size is not a positive integer.

    Examples
    --------
    >>> topology = Topology({"A": ("i", "r"), "B": ("r", "j")})
    >>> random_network(topology, {"i": 4, "r": 2, "j": 3}).shape
    (4, 3)
    """
    size_of = dict.fromkeys(topology.modes, sizes) if isinstance(sizes, int) else dict(sizes)
    missing = [mode for mode in topology.modes if mode not in size_of]
    if missing:
        raise ModeError(
            f"sizes must name every mode of {listed(topology.modes)}; {missing[0]!r} is missing."
        )
    for mode in topology.modes:
        if not isinstance(size_of[mode], int) or size_of[mode] < 1:
            raise ModeError(f"A size must be a positive integer; {mode!r} has {size_of[mode]!r}.")
    kind = np.dtype(resolve_dtype(np, dtype))
    generator = np.random.default_rng(seed)
    arrays = {}
    for name, held in topology.nodes.items():
        shape = tuple(size_of[mode] for mode in held)
        array = generator.standard_normal(shape)
        if kind.kind == "c":
            array = (array + 1j * generator.standard_normal(shape)) / np.sqrt(2)
        summed = [mode for mode in held if mode in topology.contraction_modes]
        share = [float(size_of[m]) ** (-0.5 / len(topology.holders(m))) for m in summed]
        arrays[name] = (array * np.prod(share)).astype(kind)
    return Network.from_topology(topology, arrays)
