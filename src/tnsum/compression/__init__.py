"""Small again: compressing a sum of networks, to a stated error."""

from tnsum.compression._accumulator import SumAccumulator
from tnsum.compression._compress import compress
from tnsum.compression._cp import cp_to_tucker
from tnsum.compression._result import Compression
from tnsum.compression._targets import looped_length
from tnsum.compression._trees import sketched_length

__all__ = [
    "Compression",
    "SumAccumulator",
    "compress",
    "cp_to_tucker",
    "looped_length",
    "sketched_length",
]
