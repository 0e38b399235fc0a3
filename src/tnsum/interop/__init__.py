"""Networks from and to other libraries, each of which is imported only when it is asked for.

Data are not copied where both libraries allow that. What a conversion does not keep its docstring says.
"""

from tnsum.interop.einsum import to_einsum
from tnsum.interop.hottbox import from_hottbox, to_hottbox
from tnsum.interop.libraries import to_library
from tnsum.interop.networkx import from_networkx, to_networkx, topology_from_networkx
from tnsum.interop.quimb import from_quimb, to_quimb
from tnsum.interop.state_dict import from_state_dict, to_state_dict
from tnsum.interop.tensorly import from_tensorly, to_tensorly
from tnsum.interop.xarray import from_xarray, to_xarray
from tnsum.network import Network as _Network

from_einsum = _Network.from_einsum

__all__ = [
    "from_einsum",
    "from_hottbox",
    "from_networkx",
    "from_quimb",
    "from_state_dict",
    "from_tensorly",
    "from_xarray",
    "to_einsum",
    "to_hottbox",
    "to_library",
    "to_networkx",
    "to_quimb",
    "to_state_dict",
    "to_tensorly",
    "to_xarray",
    "topology_from_networkx",
]
