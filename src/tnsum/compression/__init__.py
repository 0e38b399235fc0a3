"""Small again: compressing a sum of networks, to a stated error."""

from tnsum.compression._compress import compress, sketched_length
from tnsum.compression._result import Compression

__all__ = ["Compression", "compress", "sketched_length"]
