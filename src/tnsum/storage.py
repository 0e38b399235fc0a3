"""save and load: networks, stacks, sums and accumulators in one safetensors file, without code in it.

`_packing` and `_unpacking` say how a network becomes named arrays and a description,
`_accumulator_files` how an accumulator does, `_tensor_files` how these become a file; docs/format.md
says it for other languages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tnsum._accumulator_files import packed_accumulator, unpacked_accumulator
from tnsum._packing import KINDS, Saved, packed
from tnsum._tensor_files import opened, parsed_json, write
from tnsum._unpacking import checked_kind, unpacked
from tnsum.compression._accumulator import SumAccumulator
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum

# What the description of a file is called in its header.
KEY = "tnsum"
_MOST_LETTERS = 1000


def save(path: str | os.PathLike[str], x: Saved) -> None:
    """Write a network, a stack, a sum or an accumulator to a file, which `tnsum.load` reads.

    The file is a safetensors file. It is written beside the old one and takes its place when it is
    complete and on the disk: whatever happens, there is the old file or the new one. (A process that is
    killed may leave a `.tnsum-....tmp` in the folder.) A symbolic link is followed.

    Arrays of any library and device are written as they are, bit by bit; which library they were of,
    and gradients, are not kept. A sum stays lazy: its summands and weights are written, no blocks. Of an
    accumulator its seed and what it has added up are written, so that adding can go on.

    Parameters
    ----------
    path : str or PathLike
    x : Network, NetworkStack, NetworkSum or SumAccumulator

    Raises
    ------
    NetworkError
        `x` is something else, a name is no valid text, or the file cannot be written; an older file is
        then as it was.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.eye(2), np.eye(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/sum.safetensors", x + 2 * x)
    ...     print(load(f"{folder}/sum.safetensors"))
    NetworkSum of 2 networks of order 2, shape (2, 2), float64, ranks r=4
    """
    if not isinstance(x, Network | NetworkStack | NetworkSum | SumAccumulator):
        raise NetworkError(
            f"save takes a path and then a Network, NetworkStack, NetworkSum or SumAccumulator; "
            f"{type(x).__name__} came."
        )
    check_path(path)
    with faults_named(path, "saved"):
        if isinstance(x, SumAccumulator):
            document, arrays = packed_accumulator(x)
        else:
            document, arrays = packed(x)
        write(path, arrays, {KEY: json.dumps(document, separators=(",", ":"))})


def load(
    path: str | os.PathLike[str],
    nodes: Iterable[str] | None = None,
    memory_map: bool = True,
) -> Saved:
    """The network, stack, sum or accumulator of a file that `tnsum.save` wrote, with NumPy arrays.

    Nothing in a file is executed, and a file that is not right in every detail is refused. A sum of
    very many single networks comes back in stacks, which may change the order of its summands. An
    accumulator is read as a whole; its array library is that of the first term added afterwards.

    Parameters
    ----------
    path : str or PathLike
    nodes : iterable of str, optional
        Only these nodes, in the order of the file: the rest of it is not read. What comes back is the
        network (the stack) of these nodes alone, in which modes that lead to other nodes are physical,
        after the others.
        Of a sum it is the network of their explicit blocks, as `NetworkSum.node` gives them, the
        weights in the sum's first node: so each machine can hold some nodes of a sum.
    memory_map : bool
        By default arrays are mapped into memory, read-only: what is never used is never read, and the
        file may be larger than the memory. Somebody who cuts the file short meanwhile (saving anew
        does not) makes the process crash, and each mapped file counts as an open one, of which
        systems allow some thousand; with False, arrays are read and belong to the network.

    Raises
    ------
    NetworkError
        The file cannot be read, is not one of tnsum's, or is damaged; or it has no such node.

    See Also
    --------
    tnsum.interop.to_library : the same with arrays of PyTorch, JAX, ...
    """
    check_path(path)
    if nodes is not None:
        if isinstance(nodes, str) or not isinstance(nodes, Iterable):
            raise NetworkError(f"nodes must be a list of names; {nodes!r} came.")
        nodes = list(nodes)
    with faults_named(path, "loaded"), opened(path, memory_map) as file:
        if KEY not in file.metadata:
            raise NetworkError(
                "it is a safetensors file that tnsum did not write. Read it with the safetensors "
                "package and make a network with tnsum.interop.from_state_dict."
            )
        document = parsed_json(file.metadata[KEY], "its description")
        kind = checked_kind(document)
        if kind == KINDS[SumAccumulator]:
            return unpacked_accumulator(document, file, nodes)
        return unpacked(document, kind, file, nodes)


def check_path(path: object) -> None:
    """Raise unless it is the path of a file."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise NetworkError(
            f"The path of a file must come first, as text or pathlib.Path; {type(path).__name__} came."
        )


@contextmanager
def faults_named(path: str | os.PathLike[str], verb: str) -> Iterator[None]:
    """Errors of the system and of what is inside, as one error that names the file."""
    try:
        yield
    except (OSError, OverflowError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        if type(error) is ValueError and "embedded null" in reason:
            # Of the path; how Python puts it depends on its version.
            reason = "embedded null byte"
        # A damaged file can hold names as long as itself.
        reason = reason if len(reason) <= _MOST_LETTERS else f"{reason[:_MOST_LETTERS]}..."
        raise NetworkError(f"{os.fspath(path)!r} cannot be {verb}: {reason}") from error
