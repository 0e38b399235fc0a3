"""Damages files that `tnsum.save` wrote and loads them: each must be refused, or hold what it says.

    python tests/fuzz_storage.py --cases 100000 --seed 0

A file is refused with NetworkError, and by a check that says why: an error of NumPy that was merely
wrapped counts as a fault. A file that is loaded is read a second time by `decoded`, which follows
docs/format.md and shares no code with `src`: it must be valid, and all arrays must be equal bit by
bit, mapped or read, of all nodes or of some. Any other outcome ends the run with exit status 1.
"""

import argparse
import json
import math
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import tnsum
from tnsum import Network, NetworkError, NetworkStack, NetworkSum

Array: TypeAlias = NDArray[Any]
Saved: TypeAlias = Network | NetworkStack | NetworkSum

MOST_SECONDS = 1.0
"""Of the processor, for one file."""
MOST_GROWTH = 64 * 2**20
"""In bytes of memory, over the whole run: all files are small."""
MOST_ENTRIES = 10**5


class FuzzError(AssertionError):
    """A damaged file that was neither refused nor right."""


class _TooSlow(BaseException):
    """Raised by the timer; not an Exception, so that nobody on the way handles it."""


# the format, after docs/format.md


def decoded(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the tensors of a file, by the words of docs/format.md.

    Raises
    ------
    ValueError
        The container is not valid.
    """
    header, rest = taken_apart(data)
    metadata = header.pop("__metadata__")
    arrays, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype = {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]
        begin, stop = entry["data_offsets"]
        if begin != end:
            raise ValueError(f"tensor {name!r} does not follow the one before it")
        if len(entry) != 3 or any(type(n) is not int or n < 0 for n in (begin, *entry["shape"])):
            raise ValueError(f"tensor {name!r} is not described as it must be")
        arrays[name], end = np.frombuffer(rest[begin:stop], dtype).reshape(entry["shape"]), stop
    if end != len(rest):
        raise ValueError("the data have another length than the header says")
    description = json.loads(metadata["tnsum"], object_pairs_hook=_unique)
    if any(len(entry) != 2 for entry in (*description["nodes"], *description["parts"])):
        raise ValueError("a node or a part has further keys")
    n_arrays = len(description["nodes"]) * len(description["parts"])
    if len(arrays) != n_arrays + (description["kind"] == "sum"):
        raise ValueError("there are further tensors")
    return description, arrays


def taken_apart(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the data of a file."""
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n].decode(), object_pairs_hook=_unique)
    return header, data[8 + n :]


def put_together(header: Any, data: bytes = b"") -> bytes:
    """A file of a header, given as JSON or as bytes, and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is doubled")
    return dict(pairs)


def stored_terms(data: bytes) -> list[dict[str, Array]]:
    """The arrays of each part of a file by node, pairs of real numbers as complex ones."""
    description, tensors = decoded(data)
    return [
        {
            node["name"]: _numbers(tensors[f"{k}/{node['name']}"], part["dtype"])
            for node in description["nodes"]
        }
        for k, part in enumerate(description["parts"])
    ]


def stored_weights(data: bytes) -> Array:
    """The weights of a file that holds a sum."""
    description, tensors = decoded(data)
    return _numbers(tensors["weights"], description["weights"])


def stored_summands(data: bytes) -> list[tuple[dict[str, Array], Any]]:
    """The arrays and the weight of each summand of a file that holds a sum, in their order."""
    description, _ = decoded(data)
    weights = iter(stored_weights(data))
    terms: list[list[tuple[dict[str, Array], Any]]] = []
    for entry, part in zip(description["parts"], stored_terms(data), strict=True):
        n = len(next(iter(part.values())))
        singles = [({name: a[k] for name, a in part.items()}, next(weights)) for k in range(n)]
        terms += [singles] if entry["stacked"] else [[single] for single in singles]
    order = description.get("order", range(len(terms)))
    places = sorted(range(len(terms)), key=lambda k: order[k])
    return [summand for k in places for summand in terms[k]]


def _numbers(tensor: Array, dtype: str) -> Array:
    if not dtype.startswith("complex"):
        return tensor.astype(dtype)
    numbers = np.empty(tensor.shape[:-1], dtype)
    numbers.real, numbers.imag = tensor[..., 0], tensor[..., 1]
    return numbers


# what is damaged


def originals() -> list[bytes]:
    """Small files of all kinds."""
    rng = np.random.default_rng(0)

    def net(equation: str, dtype: str, *shapes: tuple[int, ...]) -> Network:
        factor = 1 + 1j if dtype.startswith("complex") else 1
        arrays = [rng.normal(size=shape) * factor for shape in shapes]
        return Network.from_einsum(equation, *(array.astype(dtype) for array in arrays))

    x = net("ir,rj->ij", "float64", (2, 3), (3, 2))
    y = net("ir,rj->ij", "complex64", (2, 1), (1, 2))
    z = net("ir,rj->ij", "float32", (2, 2), (2, 2))
    cp = net("ir,jr,kr->ijk", "complex128", (2, 2), (1, 2), (3, 2))
    apart = net("ia,a,,jj->ij", "float32", (2, 2), (2,), (), (2, 2))
    named = x.rename({"i": "ä/\U0001f600", "j": ""}, {"node0": "weights", "node1": "__metadata__"})
    stack = NetworkStack.from_networks([x, x, x])
    singles = tnsum.add(x, x, y, z, z, weights=[1, -2, 0.5, 1, 3])
    mixed = tnsum.add(singles, stack.sum([1, 2, 3]), y, weights=[1, 1j, 2])
    closed = net("ab,ba->", "float64", (2, 2), (2, 2))
    objects: list[Saved] = [
        *(x, y, cp, apart, named, stack, NetworkStack.from_networks([cp]), singles, mixed),
        *(apart + 2 * apart, +closed, stack.sum()),
    ]
    return [saved(x) for x in objects]


def saved(x: Saved) -> bytes:
    """The file of a network, a stack or a sum."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "original"
        tnsum.save(path, x)
        return path.read_bytes()


# damage to bytes

Damage: TypeAlias = Callable[[random.Random, list[bytes]], bytes]


def _flipped(rng: random.Random, files: list[bytes]) -> bytes:
    data = bytearray(rng.choice(files))
    for _ in range(rng.choice((1, 1, 2, 4))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _overwritten(rng: random.Random, files: list[bytes]) -> bytes:
    data = bytearray(rng.choice(files))
    new = rng.choice((b"\0", b"\xff", b"9", b"-", b'"', b"}", b",", b"null", b"1e9", b"\\ud800"))
    at = rng.randrange(len(data))
    data[at : at + len(new)] = new
    return bytes(data)


def _inserted(rng: random.Random, files: list[bytes]) -> bytes:
    data, source = rng.choice(files), rng.choice(files)
    at, start = rng.randrange(len(data) + 1), rng.randrange(len(source))
    return data[:at] + source[start : start + rng.choice((1, 1, 4, 8, 64))] + data[at:]


def _deleted(rng: random.Random, files: list[bytes]) -> bytes:
    data = rng.choice(files)
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 1, 4, 8, 64)) :]


def _cut(rng: random.Random, files: list[bytes]) -> bytes:
    data = rng.choice(files)
    return data[: rng.randrange(len(data))]


def _spliced(rng: random.Random, files: list[bytes]) -> bytes:
    """The header, or any piece, of one file before a piece of another."""
    first, second = rng.choice(files), rng.choice(files)
    ends = [8 + int.from_bytes(data[:8], "little") for data in (first, second)]
    if rng.random() < 0.5:
        return first[: ends[0]] + second[ends[1] :]
    return first[: rng.randrange(len(first))] + second[rng.randrange(len(second)) :]


def _wrong_length(rng: random.Random, files: list[bytes]) -> bytes:
    data = rng.choice(files)
    length = int.from_bytes(data[:8], "little")
    wrong = (length + 1, length - 1, length + 64, len(data), 0, 2, 2**25, 2**63, 2**64 - 1)
    return rng.choice(wrong).to_bytes(8, "little") + data[8:]


# damage to JSON

_Place: TypeAlias = tuple[Any, Any]  # an object or a list, and a key in it

_NUMBERS = (0, 1, 2, 3, 4, 8, 16, -1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 2**64 + 16)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 1.0, 1e308, [], {}, [[]], [{}], "", "A", "0/A", "\ud800", "ä" * 100),
    *("F64", "F32", "F16", "float32", "complex128", "network", "stack", "sum"),
)


def _altered(rng: random.Random, files: list[bytes]) -> bytes:
    """One to three changes to the header or the description, which stay valid JSON."""
    header, data = taken_apart(rng.choice(files))
    description = json.loads(header.pop("__metadata__")["tnsum"])
    tree = [header, description]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _alter(rng, tree)
    return put_together(_with_description(tree[0], json.dumps(tree[1])), data)


def _rearranged(rng: random.Random, files: list[bytes]) -> bytes:
    """One to three changes after which the file may well be valid, but another one."""
    header, data = taken_apart(rng.choice(files))
    description = json.loads(header.pop("__metadata__")["tnsum"])
    entries, nodes = list(header.values()), description["nodes"]
    modes = [mode for node in nodes for mode in node["modes"]]
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.choice(("shape", "data", "names", "physical", "modes", "nodes", "parts"))
        one, other = rng.choice(entries), rng.choice(entries)
        if kind == "shape":
            rng.shuffle(one["shape"])
        elif kind == "data":
            one["data_offsets"], other["data_offsets"] = other["data_offsets"], one["data_offsets"]
        elif kind == "names":
            header = dict(zip(rng.sample(list(header), len(header)), entries, strict=True))
        elif kind == "physical" and modes:
            names = sorted(set(modes))
            description["physical_modes"] = rng.sample(names, rng.randrange(len(names) + 1))
        elif kind == "modes" and modes:
            renamed, new = rng.choice(modes), rng.choice((*modes, "new"))
            for node in nodes:
                node["modes"] = [new if mode == renamed else mode for mode in node["modes"]]
        elif kind == "nodes":
            rng.shuffle(nodes)
        else:
            rng.shuffle(description["parts"])
            rng.choice(description["parts"])["stacked"] ^= True
    return put_together(_with_description(header, json.dumps(description)), data)


def _moved(rng: random.Random, files: list[bytes]) -> bytes:
    """One tensor, or it and all after it, elsewhere; the data as long as the header then says."""
    header, data = taken_apart(rng.choice(files))
    entries = [entry for name, entry in header.items() if name != "__metadata__"]
    start, stop = rng.choice(entries)["data_offsets"]
    step = rng.choice((-16, -8, -4, 4, 8, 16, start - stop, stop - start))
    last = rng.choice((start, len(data)))
    for entry in entries:
        if start <= entry["data_offsets"][0] <= last:
            entry["data_offsets"] = [at + step for at in entry["data_offsets"]]
    end = max(entry["data_offsets"][1] for entry in entries)
    return put_together(header, (data + bytes(max(0, end)))[: max(0, end)])


def _doubled_key(rng: random.Random, files: list[bytes]) -> bytes:
    """A key, which the object may hold already, put into an object of the header or description."""
    header, data = taken_apart(rng.choice(files))
    description = header.pop("__metadata__")["tnsum"]
    key = rng.choice(("dtype", "shape", "name", "kind", "version", *header))
    member = f"{json.dumps(key)}:{json.dumps(rng.choice(_NUMBERS + _VALUES))},"
    if rng.random() < 0.5:
        return put_together(_with_description(header, _with_member(rng, description, member)), data)
    text = json.dumps(_with_description(header, description))
    return put_together(_with_member(rng, text, member).encode(), data)


def _with_member(rng: random.Random, text: str, member: str) -> str:
    at = rng.choice([k + 1 for k, letter in enumerate(text) if letter == "{"])
    return text[:at] + member + text[at:]


def _with_description(header: Any, description: str) -> Any:
    if not isinstance(header, dict):
        return header
    return {"__metadata__": {"tnsum": description}, **header}


def _alter(rng: random.Random, tree: list[Any]) -> None:
    """A value replaced, removed, doubled, exchanged with another, or renamed."""
    places = list(_places(tree))
    (holder, key), (other, other_key) = rng.choice(places), rng.choice(places)
    kind = rng.choice(("number", "value", "copy", "exchange", "exchange", "remove", "add"))
    if kind == "number":
        old = holder[key] if type(holder[key]) is int else 1
        near = old + rng.choice((-8, -1, 1, 8, 2**60, 2**61, 2**62))
        holder[key] = rng.choice((near, *_NUMBERS))
    elif kind == "value":
        holder[key] = rng.choice(_VALUES)
    elif kind == "copy":
        # Through JSON: a value must not come to hold itself.
        holder[key] = json.loads(json.dumps(other[other_key]))
    elif kind == "exchange":
        a, b = (json.dumps(at) for at in (holder[key], other[other_key]))
        holder[key] = json.loads(b)
        if any(place[0] is other for place in _places(tree)):
            other[other_key] = json.loads(a)
    elif kind == "remove":
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(other[other_key])))
    else:
        holder[rng.choice(("extra", "0/extra", "weights", str(other_key)))] = holder[key]
    while len(tree) < 2:
        tree.append({})


def _places(value: Any) -> Iterator[_Place]:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


DAMAGES: dict[str, tuple[Damage, int]] = {
    "flipped bits": (_flipped, 3),
    "overwritten": (_overwritten, 2),
    "inserted": (_inserted, 2),
    "deleted": (_deleted, 2),
    "cut": (_cut, 1),
    "spliced": (_spliced, 2),
    "wrong length": (_wrong_length, 1),
    "altered JSON": (_altered, 8),
    "rearranged": (_rearranged, 3),
    "moved": (_moved, 1),
    "doubled key": (_doubled_key, 1),
}
"""The kinds of damage, and how often each is done."""


# what must hold


def outcome(path: Path, rng: random.Random) -> str:
    """`refused` or `loaded`; raises FuzzError if the file at `path` is neither as it must be."""
    mapped = _loaded(path)
    if mapped is None:
        if _loaded(path, rng.choice((None, ["node0"])), memory_map=False) is not None:
            raise FuzzError("it is refused, but not always")
        return "refused"
    read = _loaded(path, memory_map=False)
    if type(mapped) is not type(read):
        raise FuzzError(f"mapped it gives {type(mapped).__name__}, read {type(read).__name__}")
    try:
        data = path.read_bytes()
        is_sum = isinstance(mapped, NetworkSum)
        stored = stored_summands(data) if is_sum else [(stored_terms(data)[0], 1)]
    except Exception as error:
        raise FuzzError(f"it was loaded, but is not valid: {error}") from error
    for x in (mapped, read):
        assert x is not None
        _check_sound(x)
        found = x.summands if isinstance(x, NetworkSum) else (x,)
        _check_equal([a for y in found for a in y.arrays.values()],
                     [a for arrays, _ in stored for a in arrays.values()])  # fmt: skip
        if isinstance(x, NetworkSum):
            with np.errstate(all="ignore"):
                weights = np.asarray([weight for _, weight in stored]).astype(x.weights.dtype)
            _check_equal([x.weights], [weights])
    _check_some_nodes(path, mapped, rng)
    return "loaded"


def _loaded(path: Path, nodes: list[str] | None = None, memory_map: bool = True) -> Saved | None:
    """What the file holds, or None if it is refused."""
    try:
        return tnsum.load(path, nodes, memory_map)
    except NetworkError as error:
        if not isinstance(error.__cause__, NetworkError):
            raise FuzzError(f"it was refused by accident: {error}") from error
        return None


def _terms_of(x: Saved) -> tuple[Network | NetworkStack, ...]:
    return x._terms if isinstance(x, NetworkSum) else (x,)


def _check_equal(got: list[Array], expected: list[Array]) -> None:
    if len(got) != len(expected):
        raise FuzzError(f"it has {len(expected)} arrays, but {len(got)} were loaded")
    for a, b in zip(got, expected, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape or not same_bits(a, b):
            raise FuzzError("an array has other values than the file")


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one dtype are equal to the bit: NaN equals NaN, -0.0 is not 0.0."""
    kind = np.dtype(f"u{a.dtype.itemsize // (2 if a.dtype.kind == 'c' else 1)}")
    a_bits, b_bits = (np.ascontiguousarray(at).reshape(-1).view(kind) for at in (a, b))
    return np.array_equal(a_bits, b_bits)


def _check_sound(x: Saved) -> None:
    """The arrays fit together as the classes demand, and contracting neither fails nor lies."""
    for term in _terms_of(x):
        if isinstance(term, Network):
            Network.from_topology(term.topology, term.arrays)
        else:
            NetworkStack(term.topology, term.arrays)
        if term.shape != x.shape:
            raise FuzzError(f"a term has shape {term.shape}, the sum {x.shape}")
    if math.prod(x.shape) <= MOST_ENTRIES and len(x.shape) <= 60:
        with np.errstate(all="ignore"):
            x.contract()


def _check_some_nodes(path: Path, x: Saved, rng: random.Random) -> None:
    """Loading some nodes gives what the whole has of them."""
    names = [name for name in x.topology.nodes if rng.random() < 0.5] or list(x.topology.nodes)[:1]
    with np.errstate(all="ignore"):
        part = _loaded(path, names, memory_map=rng.random() < 0.5)
        if part is None or isinstance(part, NetworkSum):
            raise FuzzError("it can be loaded, but not some nodes of it")
        for name in names:
            whole = x.node(name) if isinstance(x, NetworkSum) else x.arrays[name]
            _check_equal([part.arrays[name]], [whole])


# the run


Counts: TypeAlias = Counter[tuple[str, str]]


def fuzz(
    cases: range, seed: int, folder: Path, tell: Callable[[Counts], None] = lambda _: None
) -> Counts:
    """How often each kind of damage had which outcome; raises FuzzError at the first fault."""
    files = originals()
    kinds = list(DAMAGES)
    weights = [DAMAGES[kind][1] for kind in kinds]
    path = folder / "damaged"
    counts: Counts = Counter()
    at_start = _peak_memory()
    with _timer():
        for number in cases:
            rng = random.Random(f"{seed}/{number}")
            (kind,) = rng.choices(kinds, weights)
            path.unlink(
                missing_ok=True
            )  # file systems wait for the disk when a file is overwritten
            path.write_bytes(DAMAGES[kind][0](rng, files))
            try:
                signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
                counts[kind, outcome(path, rng)] += 1
                if _peak_memory() - at_start > MOST_GROWTH:
                    raise FuzzError(f"it took more than {MOST_GROWTH} bytes of memory")
            except (Exception, _TooSlow) as error:
                again = f"--seed {seed} --first {number} --cases 1"
                raise FuzzError(
                    f"case {number} ({kind}): {type(error).__name__}: {error}\n"
                    f"  again: python tests/fuzz_storage.py {again}\n  the file: {path}"
                ) from error
            tell(counts)
    return counts


@contextmanager
def _timer() -> Iterator[None]:
    """What the timer does. It counts processor time: other programs may keep this one waiting."""

    def stop(*_: object) -> None:
        raise _TooSlow(f"it took more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    arguments = parser.parse_args()
    # What asks for absurd amounts of memory without using them fails too.
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, resource.RLIM_INFINITY))
    start = time.perf_counter()
    # In memory where that is possible: files are opened several times as fast.
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="tnsum-fuzz-"))
    cases = range(arguments.first, arguments.first + arguments.cases)

    def tell(counts: Counts) -> None:
        if counts.total() % 10_000 == 0 or counts.total() == len(cases):
            n_loaded = sum(n for (_, found), n in counts.items() if found == "loaded")
            seconds = time.perf_counter() - start
            _say(
                f"{counts.total()} files: {counts.total() - n_loaded} refused, {n_loaded} loaded, "
                f"{seconds:.0f} s, {counts.total() / seconds:.0f} per second"
            )

    try:
        counts = fuzz(cases, arguments.seed, folder, tell)
    except FuzzError as error:
        _say(str(error))
        return 1
    for kind in DAMAGES:
        n_refused, n_loaded = (counts[kind, found] for found in ("refused", "loaded"))
        _say(f"  {kind:14} {n_refused:8} refused {n_loaded:8} loaded")
    shutil.rmtree(folder)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
