"""Small again: compressing a sum of networks, to a stated error."""

from tnsum.compression._compress import Compression, compress, sketched_length

__all__ = ["Compression", "compress", "sketched_length"]
