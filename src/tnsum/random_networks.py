"""Random networks, for trying things out and for tests."""

import operator
from collections.abc import Mapping

import numpy as np

from tnsum._arrays import resolve_dtype
from tnsum._typing import DType
from tnsum.errors import ModeError, NetworkError
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
    if not isinstance(topology, Topology):
        raise NetworkError(f"topology must be a Topology; {type(topology).__name__} came.")
    size_of = dict(sizes) if isinstance(sizes, Mapping) else dict.fromkeys(topology.modes, sizes)
    if set(size_of) != set(topology.modes):
        missing = [mode for mode in topology.modes if mode not in size_of]
        unknown = [mode for mode in size_of if mode not in topology.modes]
        what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} came"
        raise ModeError(f"sizes must name every mode of {listed(topology.modes)}; {what}.")
    for mode, size in size_of.items():
        if not hasattr(size, "__index__") or operator.index(size) < 1:
            raise ModeError(f"A size must be a positive integer; {mode!r} has {size!r}.")
    kind = np.dtype(resolve_dtype(np, dtype))
    generator = np.random.default_rng(seed)
    arrays = {}
    for name, held in topology.nodes.items():
        shape = tuple(size_of[mode] for mode in held)
        array = np.asarray(generator.standard_normal(shape))
        if kind.kind == "c":
            array = (array + 1j * generator.standard_normal(shape)) / np.sqrt(2)
        summed = [mode for mode in held if mode in topology.contraction_modes]
        share = [float(size_of[m]) ** (-0.5 / len(topology.holders(m))) for m in summed]
        arrays[name] = np.asarray(array * np.prod(share), dtype=kind)
    return Network.from_topology(topology, arrays)
