"""The safetensors format: named arrays in one file, replaced at one stroke and read as if hostile.

A file is the length n of its header (8 bytes, little-endian), n bytes of JSON, and the data of the
arrays, one after the other without gaps, little-endian, the last axis fastest. The header gives each
array's dtype, shape, and where its data begin and end; under `__metadata__` it holds a mapping of
strings. docs/format.md describes what tnsum puts there.

The format is written and read here rather than by the safetensors package because three things are
needed that it does not do: arrays are written piece by piece, so that saving a sum of many networks
takes no second copy of them; they are mapped into memory instead of being read, so that one node of a
large file costs that node; and every fault of a header, doubled keys included, is told in words. The
tests hold the two against each other in both directions.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from io import FileIO
from typing import Any

import numpy as np

from tnsum._arrays import on_host
from tnsum._memory import check_memory
from tnsum._replacing import replacing
from tnsum._typing import Array
from tnsum.errors import NetworkError
from tnsum.topology import listed

# Parsing JSON takes up to 25 times its size in memory, so this bounds what a header can cost.
MOST_HEADER_BYTES = 2**24
MOST_AXES = 64
_LENGTH_BYTES = 8
_ALIGNMENT = 64
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_METADATA = "__metadata__"
_BUNDLE_BYTES = 2**20


@dataclass(frozen=True)
class Pieces:
    """An array to be written: arrays of one dtype whose data follow one another.

    Complex ones are written as pairs of real numbers of `dtype`, along a further axis of `shape`.
    """

    dtype: str
    shape: tuple[int, ...]
    arrays: Sequence[Array]


@dataclass(frozen=True)
class Stored:
    """Where an array of a file lies."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


# writing


def write(
    path: str | os.PathLike[str], arrays: Mapping[str, Pieces], metadata: Mapping[str, str]
) -> None:
    """Write a file that takes the place of an older one only when it is complete."""
    # Wider numbers first: then each array lies at a multiple of its itemsize.
    ordered = sorted(arrays.items(), key=lambda item: -_DTYPES[item[1].dtype].itemsize)
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    end = 0
    for name, pieces in ordered:
        begin, end = end, end + math.prod(pieces.shape) * _DTYPES[pieces.dtype].itemsize
        header[name] = {"dtype": pieces.dtype, "shape": pieces.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    if len(text) > MOST_HEADER_BYTES:
        raise NetworkError(
            f"The header of a file must have at most {MOST_HEADER_BYTES} bytes; {len(ordered)} arrays "
            f"need {len(text)}. Put networks of equal sizes into a NetworkStack, or save several files."
        )
    with replacing(path) as file:
        file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
        for _, pieces in ordered:
            for bundle in _in_bundles(pieces.arrays):
                file.write(_bytes_of(bundle))


def _in_bundles(arrays: Sequence[Array]) -> Iterator[Sequence[Array]]:
    """Small arrays of one shape some at a time: writing each by itself takes longer than copying it."""
    n_bytes = 8 * math.prod(arrays[0].shape)
    step = max(1, _BUNDLE_BYTES // max(1, n_bytes))
    for start in range(0, len(arrays), step):
        yield arrays[start : start + step]


def _bytes_of(arrays: Sequence[Array]) -> memoryview:
    """The data in little-endian order, the last axis fastest; one array is copied only if it must be."""
    values = on_host(arrays[0]) if len(arrays) == 1 else np.stack([on_host(a) for a in arrays])
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return values.reshape(-1).view(np.uint8).data


# reading


@contextmanager
def opened(path: str | os.PathLike[str], memory_map: bool) -> Iterator[TensorFile]:
    """A file whose header has been checked, open for reading."""
    _check_is_file(os.stat(path))
    # A pipe that has come in its place since must not make us wait for somebody to write to it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb", buffering=0) as file:
        _check_is_file(os.fstat(file.fileno()))
        tensor_file = TensorFile(file, memory_map)
        try:
            yield tensor_file
        except BaseException:
            # The traceback of an error holds the mapping, for as long as the error lives.
            tensor_file.unmap()
            raise


def _check_is_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NetworkError("it is a directory or a device, not a file")


class TensorFile:
    """An open file: the metadata of its header, and its arrays, mapped into memory or read."""

    def __init__(self, file: FileIO, memory_map: bool) -> None:
        n_bytes = os.fstat(file.fileno()).st_size
        header = _header_of(file, n_bytes)
        self.metadata = _checked_metadata(header.pop(_METADATA, {}))
        self._file = file
        self._header = header
        self._start = file.tell()
        self._n_bytes = n_bytes - self._start
        # Arrays keep the mapping alive when the file is closed.
        self._map = (
            mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_READ) if memory_map else None
        )

    def unmap(self) -> None:
        """Close the mapping, unless an array needs it."""
        if self._map is not None:
            with suppress(BufferError):
                self._map.close()

    @cached_property
    def arrays(self) -> Mapping[str, Stored]:
        """Where each array lies, once that has been checked."""
        return _checked_entries(self._header, self._n_bytes)

    def read(self, name: str) -> Array:
        """An array by name; nothing else of the data is touched."""
        stored = self.arrays[name]
        array = self._copied(stored) if self._map is None else self._mapped(stored, self._map)
        # The numbers in this machine's order of bytes, which on nearly all machines is the file's.
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def _mapped(self, stored: Stored, data: mmap.mmap) -> Array:
        dtype, count = _DTYPES[stored.dtype], math.prod(stored.shape)
        array = np.frombuffer(data, dtype, count, self._start + stored.begin)
        # Other writers may put arrays where their numbers straddle words.
        return np.require(array, requirements="A").reshape(stored.shape)

    def _copied(self, stored: Stored) -> Array:
        dtype, count = _DTYPES[stored.dtype], math.prod(stored.shape)
        check_memory(count, dtype, "each of its arrays", "Load it with memory_map=True.")
        array = np.empty(stored.shape, dtype)
        rest = array.reshape(-1).view(np.uint8).data
        self._file.seek(self._start + stored.begin)
        while rest:
            n_read = self._file.readinto(rest)
            if not n_read:
                raise NetworkError("it became shorter while it was read")
            rest = rest[n_read:]
        return array


def _header_of(file: FileIO, n_bytes: int) -> dict[str, Any]:
    """The header of a file of that size, as JSON has it."""
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if n_bytes < _LENGTH_BYTES + 2:
        raise NetworkError(f"it has {n_bytes} bytes, too few for a safetensors file")
    if length > MOST_HEADER_BYTES:
        raise NetworkError(
            f"its header would have {length} bytes, more than the {MOST_HEADER_BYTES} that are "
            f"allowed: it is no safetensors file, or not one of tnsum's"
        )
    if length > n_bytes - _LENGTH_BYTES:
        raise NetworkError(
            f"its header should have {length} bytes, but only {n_bytes - _LENGTH_BYTES} follow: the "
            f"file was cut, or is no safetensors file"
        )
    header = parsed_json(file.read(length), "its header")
    if not isinstance(header, dict):
        raise NetworkError(f"its header must be a JSON object; {type(header).__name__} came")
    return header


def parsed_json(text: str | bytes, what: str) -> Any:
    """The value of a JSON text, strictly: no doubled keys, no NaN, no absurd depth or numbers."""
    try:
        return json.loads(
            text if isinstance(text, str) else text.decode("utf-8"),
            object_pairs_hook=partial(_with_unique_keys, what),
            parse_constant=partial(_refuse_constant, what),
        )
    except (RecursionError, ValueError) as error:
        if isinstance(error, NetworkError):
            raise
        reason = "too deep" if isinstance(error, RecursionError) else str(error)
        raise NetworkError(f"{what} is not valid JSON ({reason[:200]})") from None


def _with_unique_keys(what: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        double, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise NetworkError(f"{what} names {double[:80]!r} twice")
    return found


def _refuse_constant(what: str, name: str) -> None:
    raise NetworkError(f"{what} holds {name}, which is not JSON")


def _checked_metadata(metadata: object) -> dict[str, str]:
    if isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values()):
        return metadata
    raise NetworkError(f"{_METADATA} of its header must map strings to strings")


def _checked_entries(header: Mapping[str, Any], n_bytes: int) -> dict[str, Stored]:
    """Where each array lies; together they must be the `n_bytes` of data, without gap or overlap."""
    arrays = {name: _checked_entry(name, entry) for name, entry in header.items()}
    end = 0
    for name, stored in sorted(arrays.items(), key=lambda item: (item[1].begin, item[1].end)):
        if stored.begin != end:
            fault = "overlap those before them" if stored.begin < end else "leave a gap before them"
            raise NetworkError(
                f"the data of tensor {name[:80]!r} {fault}: they begin at byte {stored.begin}, the ones "
                f"before end at {end}"
            )
        end = stored.end
    if end != n_bytes:
        fault = "was cut" if end > n_bytes else "has something appended"
        raise NetworkError(
            f"its header asks for {end} bytes of data, {n_bytes} are there: it {fault}"
        )
    return arrays


def _checked_entry(name: str, entry: object) -> Stored:
    where = f"tensor {name[:80]!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise NetworkError(f"{where} must have dtype, shape and data_offsets, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise NetworkError(
            f"{where} must be of dtype {listed(tuple(_DTYPES))}; {short_repr(dtype)} came"
        )
    if not _are_sizes(shape) or len(shape) > MOST_AXES:
        raise NetworkError(
            f"{where} must have a shape of at most {MOST_AXES} sizes below 2**63; "
            f"{short_repr(shape)} came"
        )
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise NetworkError(
            f"{where} must have two data_offsets below 2**63; {short_repr(offsets)} came"
        )
    n_needed = math.prod(shape) * _DTYPES[dtype].itemsize
    if offsets[1] - offsets[0] != n_needed:
        raise NetworkError(
            f"{where} of dtype {dtype} and shape {short_repr(shape)} takes {n_needed} bytes; its "
            f"data_offsets {offsets} are {offsets[1] - offsets[0]} apart"
        )
    return Stored(dtype, tuple(shape), *offsets)


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)


def short_repr(value: object) -> str:
    """What came, for an error, cut short."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
