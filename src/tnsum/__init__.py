"""tnsum adds tensor networks and keeps the result a network."""

from tnsum import drawing, interop, multilinear
from tnsum.addition import add, mean
from tnsum.compression import Compression, SumAccumulator, compress, cp_to_tucker
from tnsum.decomposition import decompose, decompose_stack
from tnsum.drawing import draw
from tnsum.errors import ModeError, NetworkError, TopologyError
from tnsum.formats import (
    chain,
    cp,
    grid,
    tensor_ring,
    tensor_train,
    tree,
    tucker,
)
from tnsum.isomorphism import Isomorphism
from tnsum.measures import distance, inner, norm
from tnsum.network import Network, NetworkStack
from tnsum.random_networks import random_network
from tnsum.storage import load, save
from tnsum.summation import NetworkSum
from tnsum.topology import Topology

__version__ = "0.1.0"

__all__ = [
    "Compression",
    "Isomorphism",
    "ModeError",
    "Network",
    "NetworkError",
    "NetworkStack",
    "NetworkSum",
    "SumAccumulator",
    "Topology",
    "TopologyError",
    "add",
    "chain",
    "compress",
    "cp",
    "cp_to_tucker",
    "decompose",
    "decompose_stack",
    "distance",
    "draw",
    "drawing",
    "grid",
    "inner",
    "interop",
    "load",
    "mean",
    "multilinear",
    "norm",
    "random_network",
    "save",
    "tensor_ring",
    "tensor_train",
    "tree",
    "tucker",
]
